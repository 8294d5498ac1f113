"""Derivatives of probabilities in a precision keep all digits, although the shape derivatives of
which they are made nearly cancel.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import close
from densities import references

import varmat as vm
from varmat.testing import coverage

COUNTS = [
    (3, 2.5, 1.3), (40, 37.0, 12.0), (7, 50.0, 0.3), (3, 2.5, 1e4), (0, 1e-3, 1e5), (3, 1.0, 1e7),
    (20, 2.5, 1e4),
]  # fmt: skip
PROPORTIONS = [
    (0.3, 0.4, 3.0), (0.9, 0.6, 0.7), (0.01, 0.01, 10.0), (0.61, 0.6, 105.0), (1e-5, 0.4, 3.0),
    (0.62, 0.6, 2e3),
]  # fmt: skip


def in_precision(function, exact, point):
    """Return the errors of the first and the second derivative in the last argument."""
    *others, last = point
    first = vm.value_and_grad(function, 2)(*point)[1]
    second = vm.hessian(lambda x: function(*others, x), last)
    with mp.workdps(50):
        true = [mp.diff(exact, mp.mpf(last), n) for n in (1, 2)]
        return [float(abs(a / b - 1)) for a, b in zip((first, float(second)), true, strict=True)]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("point", [*COUNTS, *PROPORTIONS])
def test_derivatives_in_a_precision(point, upper):
    n, mean = mp.mpf(point[0]), mp.mpf(point[1])
    exact = references.log_betaincc if upper else references.log_betainc
    if point in COUNTS:
        function = vm.neg_binomial_2_lccdf if upper else vm.neg_binomial_2_lcdf
        true = lambda phi: exact(phi, n + 1, phi / (mean + phi), mean / (mean + phi))  # noqa: E731
    else:
        function = vm.beta_proportion_lccdf if upper else vm.beta_proportion_lcdf
        true = lambda kappa: exact(mean * kappa, (1 - mean) * kappa, n)  # noqa: E731
    errors = in_precision(function, true, point)
    assert max(errors) < 1e-12
    coverage.note(function, point, mpmath=max(errors))


def test_mixed_derivatives():
    """The order of the two differentiations does not matter."""
    for f, point in (
        *((f, (3, 2.5, 1.3)) for f in (vm.neg_binomial_2_lcdf, vm.neg_binomial_2_lccdf)),
        *((f, (0.61, 0.6, 15.0)) for f in (vm.beta_proportion_lcdf, vm.beta_proportion_lccdf)),
    ):
        start, free = point[:1], point[1:]
        hessian = vm.hessian(lambda x, f=f, start=start: f(*start, x[0], x[1]), np.array(free))
        close(hessian[0, 1], hessian[1, 0], 1e-12)
