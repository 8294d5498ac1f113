"""The comparison of recordings with eager evaluation, for the tests of recorded functions."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm
from varmat.programs.runners import has_native

X = np.random.default_rng(1).normal(size=(5, 3))
Y = np.array([0.5, -1.0, 2.0, 0.3, 0.1])
RUNNERS = ("numpy", "native") if has_native() else ("numpy",)
# For tests of each runner.
EVERY_RUNNER = [
    "numpy",
    pytest.param(
        "native", marks=pytest.mark.skipif(not has_native(), reason="numba is not installed")
    ),
]


def agree(f, *points, argnums=0, rtol=1e-13, elsewhere=0, runners=RUNNERS):
    """Demand that a recording made at the first point gives the eager value and gradients at all
    points, with every runner.

    `elsewhere` is the number of points at which the run of the program ends, so that the function
    itself is evaluated.
    """
    evaluations = []

    def counted(*args):
        evaluations.append(args)
        return f(*args)

    eager = vm.value_and_grad(f, argnums)
    expected = [eager(*point) for point in points]
    for runner in runners:
        evaluations.clear()
        recorded = vm.recorded(counted, argnums, runner=runner)
        for point, (value, gradient) in zip(points, expected, strict=True):
            _demand_same(recorded(*point), value, gradient, rtol)
        assert len(evaluations) == len(recorded._recordings) + elsewhere
    return recorded


def _demand_same(found, expected, true, rtol):
    value, gradient = found
    np.testing.assert_allclose(value, expected, rtol=1e-14)
    assert type(value) is float
    for g, t in zip(
        vm.derivatives.structure.leaves_of(gradient),
        vm.derivatives.structure.leaves_of(true),
        strict=True,
    ):
        assert type(g) is type(t)
        np.testing.assert_allclose(
            g, t, rtol=rtol, atol=1e-15 + 0.1 * rtol * np.max(np.abs(t), initial=0.0)
        )
        assert type(g) is float or (g.flags.c_contiguous and g.dtype == np.float64)


def vectors(n, count=3):
    rng = np.random.default_rng(n)
    return [(rng.normal(size=n),) for _ in range(count)]


LARGE = np.linspace(0.0, 1.0, 40_000)
