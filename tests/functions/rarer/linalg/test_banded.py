"""Banded, Toeplitz and circulant systems: against dense ones in 50 digits, against SciPy, and along
all routes.
"""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from functions.matrices import worst_error

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(9)
N = 5
LONG = 130
AB = RNG.normal(size=(4, N)) + 4.0 * (np.arange(4) == 2)[:, None]  # one diagonal below, two above
UPPER = RNG.normal(size=(3, N)) + 6.0 * (np.arange(3) == 2)[:, None]
LOWER = RNG.normal(size=(3, N)) + 6.0 * (np.arange(3) == 0)[:, None]
B, BB = RNG.normal(size=N), RNG.normal(size=(N, 2))
C, R = RNG.normal(size=N) + 5.0 * (np.arange(N) == 0), RNG.normal(size=N)


def dense(ab, upper, symmetric=False):
    """Return the matrix that a banded storage stands for."""
    n = ab.cols
    a = mp.zeros(n)
    for k in range(ab.rows):
        for j in range(n):
            i = j + k - upper
            if 0 <= i < n:
                a[i, j] = ab[k, j]
                if symmetric:
                    a[j, i] = ab[k, j]
    return a


def stored(a, upper, rows):
    n = a.cols
    ab = mp.zeros(rows, n)
    for k in range(rows):
        for j in range(n):
            if 0 <= j + k - upper < n:
                ab[k, j] = a[j + k - upper, j]
    return ab


def toeplitz(c, r):
    return mp.matrix(len(c), len(r)) + mp.matrix(
        [[c[i - j] if i >= j else r[j - i] for j in range(len(r))] for i in range(len(c))]
    )


def circulant(c):
    return mp.matrix([[c[(i - j) % len(c)] for j in range(len(c))] for i in range(len(c))])


banded = partial(vm.solve_banded, (1, 2))


def toeplitz_solution(c, r, b):
    return vm.solve_toeplitz((c, r), b)


def toeplitz_product(c, r, x):
    return vm.matmul_toeplitz((c, r), x)


def solution(matrix):
    return lambda x, b: mp.lu_solve(matrix(x), b)


# Function, the same with dense matrices in 50 digits, arguments.
EXACT = [
    (banded, solution(lambda ab: dense(ab, 2)), [AB, B]),
    (vm.solveh_banded, solution(lambda ab: dense(ab, 2, True)), [UPPER, B]),
    (partial(vm.solveh_banded, lower=True), solution(lambda ab: dense(ab, 0, True)), [LOWER, B]),
    (vm.cholesky_banded, lambda ab: stored(mp.cholesky(dense(ab, 2, True)).T, 2, 3), [UPPER]),
    (partial(vm.cholesky_banded, lower=True),
     lambda ab: stored(mp.cholesky(dense(ab, 0, True)), 0, 3), [LOWER]),
    (toeplitz_solution, lambda c, r, b: mp.lu_solve(toeplitz(c, r), b), [C, R, B]),
    (vm.solve_toeplitz, solution(lambda c: toeplitz(c, c)), [C, B]),
    (toeplitz_product, lambda c, r, x: toeplitz(c, r) * x, [C[:3], R, B]),
    (vm.solve_circulant, solution(circulant), [C, B]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "args"), EXACT)
def test_against_50_digits(f, exact, args):
    assert worst_error(f, exact, args) < 1e-14


ROUTES = [
    (banded, (AB, BB)), (banded, (AB[:, :2], BB[:2])), (vm.solveh_banded, (UPPER, BB)),
    (lambda ab, b: vm.solveh_banded(ab, b, True), (LOWER, B)), (vm.cholesky_banded, (UPPER,)),
    (lambda ab: vm.cholesky_banded(ab, True), (LOWER,)), (vm.cholesky_banded, (UPPER[:, :2],)),
    (lambda ab, b: vm.cho_solve_banded((ab, True), b), (LOWER, BB)),
    (lambda ab, b: vm.cho_solve_banded((ab, False), b), (UPPER, B)),
    (toeplitz_solution, (C, R, BB)), (vm.solve_toeplitz, (C, B)),
    (toeplitz_product, (C[:3], R, BB)), (vm.solve_circulant, (C, BB)),
    (vm.solve_circulant, (C[:4], B[:4])),
    (lambda ab, b: (vm.solve_banded((0, 1), ab, b), vm.solveh_banded(ab, b)),
     (np.zeros((2, 0)), np.zeros(0))),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), ROUTES)
def test_by_all_routes(f, args):
    expect_ad(f, *args)
    if all(x.ndim < 2 or x.shape[0] < 4 for x in args):
        expect_ad_matvar(f, *args)


def test_the_transposed_of_one_element_has_that_element():
    """The first element of the row is not read, as in SciPy."""
    f = vm.value_and_grad(lambda c, r: np.sum(vm.solve_toeplitz((c, r), [8.0])), (0, 1))
    _, adjoints = f(np.array([2.0]), np.array([5.0]))
    equal(adjoints[0], [-2.0])
    equal(adjoints[1], [0.0])


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: vm.solve_banded((1, 1), x, B), SHAPE,
     "ab has shape (4, 5), but must be a matrix with 3 rows, one for each diagonal!"),
    (lambda x: vm.solve_banded((1, 2), x, B[:3]), SHAPE,
     "b has shape (3,), but must be a vector or a matrix with 5 rows!"),
    (lambda x: vm.solve_banded((1, 2), 0.0 * x, B), np.linalg.LinAlgError,
     "the matrix is singular, but must be invertible!"),
    (lambda x: vm.solveh_banded(x[0], B), SHAPE,
     "ab has shape (5,), but must be a matrix with a row for each diagonal!"),
    (lambda x: vm.solveh_banded(-x, B, True), DOMAIN,
     "the leading block of size 2 is not positive definite, but must be!"),
    (lambda x: vm.cholesky_banded(-0.0 * x), DOMAIN,
     "the leading block of size 1 is not positive definite, but must be!"),
    (lambda x: vm.cho_solve_banded((x[0], True), B), SHAPE,
     "cb has shape (5,), but must be a matrix with a row for each diagonal!"),
    (lambda x: vm.solve_toeplitz((x[0], x[0, :2]), B), SHAPE,
     "r has shape (2,), but must have shape (5,), as c!"),
    (lambda x: vm.solve_toeplitz(0.0 * x[0], B), np.linalg.LinAlgError,
     "a leading block of the matrix is singular, but must be invertible!"),
    (lambda x: vm.matmul_toeplitz(x[0], B[:2]), SHAPE,
     "x has shape (2,), but must be a vector or a matrix with 5 rows!"),
    (lambda x: vm.solve_circulant(0.0 * x[0] + 1.0, B), np.linalg.LinAlgError,
     "the matrix is singular, but must be invertible!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses_as(error, message, call, vm.var(AB))


@pytest.mark.parametrize("width", [0, 1, 5, 60])
def test_long_banded_matrices(width):
    """The matrices span several blocks of columns. The oracle is the factor of the dense matrix."""
    ab = (
        RNG.normal(size=(width + 1, LONG))
        + (4.0 * width + 4.0) * (np.arange(width + 1) == 0)[:, None]
    )
    weights = RNG.normal(size=ab.shape)
    i, j = np.indices((LONG, LONG))
    inside = (i >= j) & (i - j <= width)
    place = np.where(inside, i - j, 0)

    def of_whole(ab):
        factor = np.linalg.cholesky(np.where(inside, ab[place, j], 0.0))
        return np.sum(np.where(inside, weights[place, j] * factor, 0.0))

    found = vm.gradient(lambda ab: np.sum(weights * vm.cholesky_banded(ab, lower=True)), ab)
    close(found, vm.gradient(of_whole, ab), 1e-11, 1e-13)
