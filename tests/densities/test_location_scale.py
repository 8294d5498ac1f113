"""Densities with a location and a scale: wide tails, and residuals whose squares overflow."""

import mpmath
import numpy as np
import pytest
from comparing import close
from densities.references import exact

import varmat as vm


@pytest.mark.parametrize(("row", "point"), [
    (vm.normal_lpdf, (0.3, 0.1, 1.5)),
    (vm.cauchy_lpdf, (83535.57915092437, 0.0, 73.93990289253912)),
    (vm.cauchy_lpdf, (-41531.0, -9534.0, 3.4e-6)),
    (vm.student_t_lpdf, (446.0, 0.1, 0.5, 1.0)),
    (vm.student_t_lpdf, (-41531.0, 0.5, -9534.0, 3.4e-6)),
    (vm.student_t_lpdf, (1e-6, 20.0, 0.25e-6, 4e3)),
])  # fmt: skip
def test_second_derivatives_in_wide_tails(row, point):
    """No derivative loses digits to terms that cancel in the tails."""
    count = len(point)
    one = np.eye(count, dtype=int)
    with mpmath.workdps(100):
        at = [mpmath.mpf(x) for x in point]
        expected = [float(mpmath.diff(exact(row), at, tuple(a + b))) for a in one for b in one]
    for f in (row, row.pointwise, lambda *args: row(*(x * np.ones(1) for x in args))):
        hessian = vm.hessian(lambda v, f=f: f(*(v[i] for i in range(count))), np.array(point))
        close(hessian.ravel(), expected, 1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("row", "nu"), [(vm.cauchy_lpdf, ()), (vm.student_t_lpdf, (0.3,)), (vm.student_t_lpdf, (7.0,))]
)
def test_residuals_whose_square_overflows(row, nu, sign):
    y, sigma = sign * 1e90, 1e-70
    value = float(exact(row)(*map(mpmath.mpf, (y, *nu, 0.0, sigma))))
    freedom = nu[0] if nu else 1.0
    slope = (freedom + 1.0) / y
    names = (0, 1 + len(nu), 2 + len(nu))
    for f in (row, row.pointwise):
        found = vm.value_and_grad(f, names)(y, *nu, 0.0, sigma)
        close(found, (value, (-slope, slope, freedom / sigma)), 1e-14)
        ones, total = np.ones(3), lambda *args, f=f: np.sum(f(*args))
        found = vm.value_and_grad(total, names)(y * ones, *nu, 0.0, sigma * ones)
        close(found, (3 * value, (-slope * ones, 3 * slope, freedom / sigma * ones)), 1e-14)
