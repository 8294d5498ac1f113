"""Finite differences know their error."""

import numpy as np
import pytest
from comparing import refuses

from varmat.testing.differences import OutsideDomainError, sizes_at, slope

SLOPES = [
    (np.sin, 0.3, np.cos(0.3)), (np.exp, 1e-10, 1.0), (np.log, 1e-10, 1e10), (np.log, 1e8, 1e-8),
    (lambda x: np.sin(100.0 * x), 0.2, 100.0 * np.cos(20.0)),
    (lambda x: 1e4 + np.sin(200.0 * x), 0.2, 200.0 * np.cos(40.0)),
    (np.abs, 1e-300, 1.0), (np.reciprocal, 1e-100, -1e200),
    (lambda x: np.remainder(x, 0.7), 1e6, 1.0),
    (lambda x: np.log(1.0 - x), 0.9999999, -1.0 / (1.0 - 0.9999999)),
    (lambda x: 3.0, 0.5, 0.0),
    (lambda x: np.array([x * x, x**3]), 2.0, np.array([4.0, 12.0])),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "derivative"), SLOPES, ids=range(len(SLOPES)))
def test_slope_knows_its_error(f, x, derivative):
    estimate, error = slope(lambda h: f(x + h), sizes_at(x))
    assert np.all(np.abs(estimate - derivative) <= 3.0 * error)
    assert np.all(error <= 1e-6 * np.abs(derivative) + 1e-10)


def test_slope_refuses_outside_domain():
    def refuse_all(h):
        raise ValueError("outside")

    refuses(OutsideDomainError, "outside", slope, refuse_all, (1.0,))
