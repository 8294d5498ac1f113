"""Sylvester and Lyapunov equations: against the linear system of all elements in 50 digits, and
along all routes.
"""

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, refuses_as
from functions.matrices import COLUMNS, GENERAL, SPD, worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

SMALL = np.array([[0.8, -0.3], [0.5, 1.1]])
STABLE = 0.25 * GENERAL


def linear_system(images, q):
    """Solve a linear equation for a matrix. The linear map is given by its images of the unit
    matrices, and its value is `q`.
    """
    m, n = q.rows, q.cols
    matrix, units = mp.zeros(m * n), [(i, j) for i in range(m) for j in range(n)]
    for k, (i, j) in enumerate(units):
        unit = mp.zeros(m, n)
        unit[i, j] = 1
        image = images(unit)
        for row, place in enumerate(units):
            matrix[row, k] = image[place]
    solution = mp.lu_solve(matrix, mp.matrix([q[place] for place in units]))
    x = mp.zeros(m, n)
    for k, place in enumerate(units):
        x[place] = solution[k]
    return x


EXACT = {
    "Sylvester": (vm.solve_sylvester, lambda a, b, q: linear_system(lambda x: a * x + x * b, q),
        [GENERAL, SMALL, COLUMNS]),
    "Lyapunov": (vm.solve_continuous_lyapunov, lambda a,
        q: linear_system(lambda x: a * x + x * a.T, q), [GENERAL, SPD]),
    "discrete": (vm.solve_discrete_lyapunov, lambda a,
        q: linear_system(lambda x: x - a * x * a.T, q), [STABLE, SPD]),
    "bilinear": (lambda a, q: vm.solve_discrete_lyapunov(a, q, "bilinear"), lambda a,
        q: linear_system(lambda x: x - a * x * a.T, q), [STABLE, SPD]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args) < 2e-14


def test_by_all_routes():
    complex_pair = np.array([[1.0, 2.0, 0.0], [-2.0, 1.0, 0.5], [0.3, 0.0, 3.0]])
    expect_ad(vm.solve_sylvester, complex_pair, SMALL, COLUMNS)
    expect_ad(vm.solve_continuous_lyapunov, complex_pair, GENERAL)
    expect_ad(vm.solve_discrete_lyapunov, STABLE, GENERAL)
    expect_ad_matvar(vm.solve_sylvester, SMALL, SMALL, COLUMNS[:2])
    expect_ad_matvar(vm.solve_continuous_lyapunov, SMALL, SMALL)
    expect_ad_matvar(vm.solve_discrete_lyapunov, 0.5 * SMALL, SMALL)


def test_empty():
    empty = np.empty((0, 0))
    expect_ad(vm.solve_sylvester, SMALL, empty, np.empty((2, 0)))
    expect_ad(
        lambda a, q: (vm.solve_continuous_lyapunov(a, q), vm.solve_discrete_lyapunov(a, q)),
        empty,
        empty,
    )


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda a: vm.solve_sylvester(a[0], a, a), SHAPE,
     "a has shape (2,), but must be a square matrix!"),
    (lambda a: vm.solve_sylvester(a, a[:1], a), SHAPE,
     "b has shape (1, 2), but must be a square matrix!"),
    (lambda a: vm.solve_sylvester(a, a, a[:1]), SHAPE,
     "q has shape (1, 2), but must have shape (2, 2)!"),
    (lambda a: vm.solve_sylvester(a, -a, a), DOMAIN,
     "the sum of an eigenvalue of a and an eigenvalue of b is 0, so there is no unique solution!"),
    (lambda a: vm.solve_sylvester(a, a * np.inf, a), DOMAIN,
     "b has elements that are not finite, but must have finite ones!"),
    (lambda a: vm.solve_continuous_lyapunov(np.diag([1.0, -1.0]), a), DOMAIN,
     "the sum of two eigenvalues of a is 0, so there is no unique solution!"),
    (lambda a: vm.solve_continuous_lyapunov(a, a[0]), SHAPE,
     "q has shape (2,), but must be a matrix!"),
    (lambda a: vm.solve_discrete_lyapunov(np.eye(2), a), DOMAIN,
     "the product of two eigenvalues of a is one, or something not finite!"),
    (lambda a: vm.solve_discrete_lyapunov(a, a, "no"), DOMAIN,
     "method is 'no', but must be 'direct' or 'bilinear'!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(SMALL))
