"""Arrays, and operations that stay private to a test, for the tests of the harness."""

import sys

import numpy as np
import pytest

import varmat as vm

A = np.array([0.7, -1.3, 2.1])
B = np.array([1.9, 0.4, -0.6])
M = np.array([[0.5, 1.5, -2.5], [3.0, -0.25, 1.0]])


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    """Keep the wrong operations of these tests out of the library's tables."""
    for path in ("operation.OPERATIONS", "dispatch.SUPPORTED"):
        module, name = path.split(".")
        table = getattr(sys.modules[f"varmat.core.{module}"], name)
        monkeypatch.setattr(f"varmat.core.{path}", dict(table))


def make(value, reverse, tangent=None, **settings):
    """Make an operation called `op` from its rules."""
    value.__name__ = "op"
    op = vm.operation(**settings)(value)
    op.reverse(reverse)
    if tangent is not None:
        op.tangent(tangent)
    return op


def square_reverse(g, r, x):
    return 2.0 * g * x


def square_tangent(r, x):
    return lambda t: 2.0 * x * t


def square(
    reverse=square_reverse, tangent=square_tangent, value=lambda x: np.square(x), **settings
):
    return make(value, reverse, tangent, **settings)


def matvar_value_off():
    return lambda x: x * x if not isinstance(x, vm.MatVar) else x * x * (1.0 + 1e-7)
