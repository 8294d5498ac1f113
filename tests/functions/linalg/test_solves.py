"""Linear systems: against 50-digit arithmetic and Stan Math, at the edges, and refusals."""

from functools import partial
from itertools import product

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg.lapack
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.matrices import (
    COLUMN_STACK,
    COLUMNS,
    GENERAL,
    GENERALS,
    LARGES,
    SPD,
    SPDS,
    VECTOR,
    gradients,
    lower_triangular,
    symmetric,
    weights_for,
    worst_error,
)

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

solve, inv, slogdet, lstsq = (
    getattr(np.linalg, name) for name in ("solve", "inv", "slogdet", "lstsq")
)
lower, upper = partial(vm.solve_triangular, lower=True), vm.solve_triangular
lower_transposed = partial(vm.solve_triangular, lower=True, trans=1)
upper_unit_transposed = partial(vm.solve_triangular, trans="T", unit_diagonal=True)


def cho_lower(c, b):
    return vm.cho_solve((c, True), b)


def cho_upper(c, b):
    return vm.cho_solve((c, False), b)


def tril(a):
    return mp.matrix(a.rows, a.cols) + mp.matrix(
        [[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)]
    )


def triu(a):
    return tril(a.T).T


def unit_triu(a):
    return mp.matrix(
        [[1 if i == j else a[i, j] if j > i else 0 for j in range(a.cols)] for i in range(a.rows)]
    )


# Function, the same in mpmath, arguments.
EXACT = [
    (inv, lambda a: a**-1, [GENERAL]), (solve, lambda a, b: a**-1 * b, [GENERAL, COLUMNS]),
    (solve, lambda a, b: a**-1 * b, [GENERAL, VECTOR]),
    (lower, lambda a, b: tril(a) ** -1 * b, [GENERAL, COLUMNS]),
    (lower_transposed, lambda a, b: tril(a).T ** -1 * b, [GENERAL, COLUMNS]),
    (upper, lambda a, b: triu(a) ** -1 * b, [GENERAL, VECTOR]),
    (upper_unit_transposed, lambda a, b: unit_triu(a).T ** -1 * b, [GENERAL, COLUMNS]),
    (cho_lower, lambda c, b: (tril(c) * tril(c).T) ** -1 * b, [GENERAL, COLUMNS]),
    (cho_upper, lambda c, b: (triu(c).T * triu(c)) ** -1 * b, [GENERAL, VECTOR]),
    (lower_triangular(vm.chol2inv), lambda c: (tril(c) * tril(c).T) ** -1, [GENERAL]),
    (vm.inverse_spd, lambda a: a**-1, [SPD]),
    (vm.mdivide_left_spd, lambda a, b: a**-1 * b, [SPD, COLUMNS]),
    (vm.mdivide_right, lambda b, a: b * a**-1, [COLUMNS.T.copy(), GENERAL]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "exact", "args"), EXACT)
def test_against_50_digits(f, exact, args):
    assert worst_error(f, exact, args, symmetric=args[0] is SPD) < 1e-13


FOUR, SQUARE = np.eye(4) + 0.1, np.array([[1.0, 2.0], [3.0, -4.0]])
CASES = [
    (inv, [GENERAL]), (inv, [GENERALS]), (inv, [np.empty((0, 0))]),
    *((solve, args) for args in (
        [GENERAL, VECTOR], [GENERALS, VECTOR], [GENERALS, COLUMNS], [GENERAL, COLUMN_STACK],
        [np.empty((0, 0)), np.empty(0)], [GENERAL, np.empty((3, 0))],
        [np.empty((0, 3, 3)), VECTOR], [np.array([[2.0]]), np.array([3.0])],
        [GENERAL[::-1, ::-1], VECTOR[::-1]],
    )),
    (lower, [GENERAL, COLUMNS]), (lower, [GENERALS, VECTOR]),
    (lower, [np.empty((0, 0)), np.empty((0, 2))]), (lower_transposed, [GENERAL, VECTOR]),
    (upper, [GENERALS, COLUMNS]), (upper_unit_transposed, [GENERALS, COLUMN_STACK]),
    (cho_lower, [GENERAL, VECTOR]), (cho_upper, [GENERALS, VECTOR]),
    (lower_triangular(vm.chol2inv), [GENERALS]),
    (lower_triangular(vm.chol2inv), [GENERAL[::-1, ::-1]]), (vm.chol2inv, [np.empty((0, 0))]),
    (symmetric(vm.inverse_spd), [SPDS]), (vm.inverse_spd, [np.empty((2, 0, 0))]),
    *((symmetric(vm.mdivide_left_spd), args) for args in (
        [SPD, VECTOR], [SPD, COLUMN_STACK], [SPDS, VECTOR], [SPDS, COLUMN_STACK],
        [SPD, np.empty((3, 0))],
    )),
    (vm.mdivide_left_tri_low, [GENERAL, VECTOR]), (vm.mdivide_left_tri_low, [GENERALS, COLUMNS]),
    (vm.mdivide_right, [VECTOR, GENERAL]), (vm.mdivide_right, [COLUMN_STACK.mT, GENERALS]),
    (symmetric(lambda a, b: vm.mdivide_right_spd(b, a)), [SPD, COLUMNS.T]),
    (vm.mdivide_right_tri_low, [COLUMNS.T, GENERAL]),
    (lambda a: np.linalg.tensorinv(a, ind=1), [FOUR.reshape(4, 2, 2)]),
    (np.linalg.tensorsolve, [FOUR.reshape(2, 2, 4), SQUARE]),
    (lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), [FOUR.reshape(4, 2, 2), SQUARE]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args"), CASES)
def test_all_routes(f, args):
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


HILBERT = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)


@pytest.mark.parametrize("f", [inv, solve, vm.mdivide_left_spd])
def test_ill_conditioned(f):
    args = [HILBERT] if f is inv else [HILBERT, np.ones(8)]
    # The adjoint takes two solves, so it may lose as many digits again as the value.
    error = worst_error(f, lambda a, b=1: a**-1 * b, args, f is vm.mdivide_left_spd)
    assert np.linalg.cond(HILBERT) > 1e10
    assert error < 10 * np.linalg.cond(HILBERT) * np.finfo(float).eps


def test_only_the_named_triangle_is_read():
    poisoned = np.where(np.tri(3, dtype=bool), GENERAL, np.nan)
    (value,), (adjoint, _) = gradients(lower, [poisoned, VECTOR])
    (clean,), (expected, _) = gradients(lower, [np.tril(GENERAL), VECTOR])
    equal(value, clean)
    equal(adjoint, expected)
    equal(adjoint[np.triu_indices(3, 1)], 0.0)


LARGE_COLUMNS = np.sin(np.arange(2 * 3 * 40.0)).reshape(2, 3, 20, 2)


def place(index, x):
    """Return the index into the leading axes of `x` for one matrix of the stack."""
    axes = max(x.ndim - 2, 0)
    return tuple(
        0 if n == 1 else i for i, n in zip(index[len(index) - axes :], x.shape[:axes], strict=True)
    )


@pytest.mark.parametrize(("f", "args"), [
    (inv, [LARGES]), (solve, [LARGES, LARGE_COLUMNS]), (solve, [LARGES, LARGE_COLUMNS[1]]),
    (solve, [LARGES[:, :1], LARGE_COLUMNS]), (solve, [LARGES, LARGE_COLUMNS[0, 0, :, 0]]),
    (vm.inverse_spd, [LARGES]), (lower_triangular(vm.chol2inv), [LARGES]),
    (vm.mdivide_left_spd, [LARGES, LARGE_COLUMNS]),
    (vm.mdivide_left_tri_low, [LARGES, LARGE_COLUMNS[0, 0, :, 0]]),
])  # fmt: skip
def test_stacks_of_large_matrices(f, args):
    (value,), adjoints = gradients(f, args)
    (weights,), total = weights_for([value]), [np.zeros(x.shape) for x in args]
    for index in np.ndindex(LARGES.shape[:-2]):
        where = [place(index, x) for x in args]
        each = [x[i] for x, i in zip(args, where, strict=True)]
        (part,), ones = gradients(f, each, [weights[index]])
        close(value[index], part, 0.0, 1e-13 * np.max(np.abs(part)))
        for c, i, one in zip(total, where, ones, strict=True):
            c[i] += one
    for adjoint, c in zip(adjoints, total, strict=True):
        close(adjoint, c, 0.0, 1e-13 * np.max(np.abs(c)))


@pytest.mark.parametrize("n", [64, 70])
def test_large_systems_in_blocks(n):
    b = np.cos(np.arange(n * n, dtype=float)).reshape(n, n)
    a = b @ b.T / n + 3.0 * np.eye(n)
    _, general = gradients(solve, [a, b])
    pairs = [(vm.mdivide_left_spd, [a, b], [stan.lower(general[0]), general[1]])]
    for trans, triangle in product((0, 1), (np.tril, np.triu)):
        t = triangle(a)
        _, general = gradients(solve, [t.T if trans else t, b])
        expected = [triangle(general[0].T if trans else general[0]), general[1]]
        f = partial(vm.solve_triangular, lower=triangle is np.tril, trans=trans)
        pairs.append((f, [t, b], expected))
    pairs.append((vm.inverse_spd, [a], [stan.lower(gradients(inv, [a])[1][0])]))
    c = np.linalg.cholesky(a)
    (of_factor,) = gradients(lambda c: vm.inverse_spd(c @ c.T), [c])[1]
    pairs.append((vm.chol2inv, [c], [np.tril(of_factor)]))
    for f, args, expected in pairs:
        (value,), ours = gradients(f, args)
        for x, y in zip(ours, expected, strict=True):
            close(x, y, 0.0, 1e-12 * np.max(np.abs(y)))
        if len(args) == 1:
            equal(value, value.T)
            close(value, inv(a), 0.0, 1e-14)


def test_unit_diagonal_is_not_read():
    a = np.array([[0.0, 0.0], [1.0, 2.0]])
    equal(vm.solve_triangular(a, np.ones(2), lower=True, unit_diagonal=True), [1.0, 0.0])


ROWS = np.array([1.0, -2.0, 0.5])
# Functions of a positive definite matrix, by the routine that factorises it.
FACTORISED = {
    "dgetrf": [
        lambda a: np.sum(solve(a, ROWS) ** 2), lambda a: np.sum(inv(a) ** 2),
        lambda a: vm.determinant(a) ** 2, lambda a: slogdet(a).logabsdet ** 2,
        lambda a: vm.log_determinant(a) ** 2,
    ],
    "dpotrf": [
        lambda a: vm.log_determinant_spd(a) ** 2, lambda a: np.sum(vm.cholesky_decompose(a) ** 3),
        lambda a: np.sum(vm.mdivide_left_spd(a, ROWS) ** 2),
        lambda a: np.sum(vm.inverse_spd(a) ** 2),
        lambda a: vm.multi_normal_lpdf(ROWS, 0.0, a),
        lambda a: vm.multi_normal_prec_lpdf(ROWS, 0.0, a),
        lambda a: vm.multi_student_t_lpdf(ROWS, 4.0, 0.0, a),
        lambda a: vm.lkj_corr_lpdf(0.3 * a + np.diag(1.0 - 0.3 * np.diagonal(SPD)), 2.0),
    ],
    "dpotrf dpotrf": [lambda a: vm.wishart_lpdf(a, 5.0, a)],
    "svd": [
        lambda a: np.sum(lstsq(a, ROWS)[0] ** 2),
        lambda a: np.sum(vm.singular_values(a) ** 3),
    ],
}  # fmt: skip


@pytest.mark.parametrize("routine", FACTORISED)
def test_value_gradient_and_tangent_share_one_factorisation(routine, monkeypatch):
    calls = []

    def count(module, name):
        whole = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: calls.append(name) or whole(*a, **k))

    for name in ("cholesky", "det", "inv", "slogdet", "solve", "svd"):
        count(np.linalg, name)
    for name in ("dgetrf", "dpotrf"):
        count(scipy.linalg.lapack, name)
    for f in FACTORISED[routine]:
        for functional in (
            vm.gradient,
            lambda f, a: vm.jvp(f, (a,), (SPD @ SPD,)),
            lambda f, a: vm.hessian_times_vector(f, a, SPD @ SPD),
        ):
            calls.clear()
            functional(f, SPD)
            kept = ("dgetrf", "dpotrf", routine)
            assert [name for name in calls if name in kept] == routine.split()


LARGE_SINGULAR = LARGES[0] * np.array([1.0, 1.0, 0.0])[:, None, None]
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
SKEWED = np.array([[2.0, 0.5], [0.1, 1.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
REFUSALS = [
    (inv, [np.ones((2, 3))], SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (inv, [SINGULAR], DOMAIN, "a is singular, but must be invertible!"),
    (inv, [np.stack([np.eye(2), SINGULAR])], np.linalg.LinAlgError, "a[1] is singular"),
    (inv, [LARGE_SINGULAR], np.linalg.LinAlgError, "a[2] is singular, but must be invertible!"),
    (solve, [LARGE_SINGULAR, np.ones(20)], DOMAIN, "a[2] is singular, but must be invertible!"),
    (solve, [SINGULAR, np.ones(2)], DOMAIN, "a is singular, but must be invertible!"),
    (solve, [SINGULAR[None], np.ones(2)], np.linalg.LinAlgError, "a[0] is singular"),
    (solve, [np.eye(2), np.ones(3)], SHAPE, "b has shape (3,), but must have 2 rows, as a has!"),
    (solve, [np.eye(2), 1.0], SHAPE, "b has shape (), but must have 2 rows, as a has!"),
    (solve, [GENERALS, np.ones((3, 3, 1))], SHAPE,
     "b has shape (3, 3, 1), but must match a, of shape (2, 3, 3)!"),
    (lower, [np.ones(3), np.ones(3)], SHAPE, "solve_triangular: a has shape"),
    *((f, [[[0.0, 0.0], [1.0, 2.0]], np.ones(2)], DOMAIN,
       "solve_triangular: a[0, 0] is 0.0, but must be nonzero!") for f in (lower, cho_lower)),
    (lambda a: vm.solve_triangular(a, VECTOR, trans=3), [GENERAL], DOMAIN,
     "trans is 3, but must be 0, 1, 2, 'N', 'T' or 'C'!"),
    (vm.inverse_spd, [INDEFINITE], DOMAIN,
     "a has the eigenvalue -1, but must be positive definite!"),
    (vm.inverse_spd, [np.stack([np.eye(2), INDEFINITE])], np.linalg.LinAlgError,
     "a[1] has the eigenvalue -1, but must be positive definite!"),
    (vm.inverse_spd, [np.full((2, 2), np.nan)], DOMAIN, "a[0, 0] is nan, but must be finite!"),
    (vm.inverse_spd, [SKEWED], DOMAIN,
     "a[0, 1] is 0.5, but must be 0.1, as a[1, 0] is, for a symmetric matrix!"),
    (vm.inverse_spd, [LARGES - 5.0 * np.eye(20)], DOMAIN, "a[0, 0] has the eigenvalue"),
    (vm.mdivide_left_spd, [SKEWED, np.ones(2)], DOMAIN, "a[0, 1] is 0.5, but must be 0.1"),
    (vm.mdivide_left_tri_low, [np.eye(2), np.ones(3)], SHAPE, "b has shape (3,), but must have 2"),
    (vm.mdivide_left_tri_low, [np.diag([1.0, 0.0]), np.ones(2)], DOMAIN, "a[1, 1] is 0.0, but"),
    (vm.mdivide_right, [np.ones((2, 3)), np.eye(2)], SHAPE,
     "b has shape (2, 3), but must have 2 columns, as a has rows!"),
    (vm.mdivide_right_spd, [1.0, np.eye(2)], SHAPE, "b has shape (), but must have 2 columns"),
    (vm.mdivide_right_tri_low, [np.ones(2), np.ones((2, 3))], SHAPE, "a has shape (2, 3)"),
    (vm.chol2inv, [SKEWED], DOMAIN, "factor[0, 1] is 0.5, but must be 0.0, above the diagonal!"),
    (vm.chol2inv, [np.diag([1.0, 0.0])], DOMAIN, "factor[1, 1] is 0.0, but must be nonzero!"),
    (vm.mdivide_left_spd, [INDEFINITE, np.ones(2)], DOMAIN, "a has the eigenvalue -1"),
    (vm.mdivide_right_spd, [np.ones(2), INDEFINITE], DOMAIN, "a has the eigenvalue -1"),
    (vm.mdivide_right, [np.ones(2), SINGULAR], DOMAIN, "a is singular, but must be invertible!"),
    (vm.chol2inv, [np.ones(3)], SHAPE, "factor has shape"),
    (lambda a: np.linalg.tensorinv(a, ind=0), [np.eye(2)], DOMAIN,
     "ind is 0, but must be positive!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSALS)
def test_refusals(f, args, error, message):
    with vm.nested() as tape:
        variables = [vm.var(x) for x in args]
        refuses_as(error, message, f, *variables)
        assert not [entry for entry in tape if entry[0].name in ("inv", "solve", "inverse_spd")]


@pytest.mark.parametrize(("i", "j"), [(3, 40), (0, 69), (66, 68)])
def test_elements_above_the_diagonal_are_found_in_every_block(i, j):
    factor = np.eye(70)
    factor[i, j] = 0.5
    text = f"factor[{i}, {j}] is 0.5, but must be 0.0, above the diagonal!"
    refuses_as(DOMAIN, text, vm.chol2inv, factor)


@pytest.mark.parametrize("a", [
    np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]),
    np.array([[0.3, -0.3], [0.8999999999999999, -0.8999999999999999]]),
    np.array([[1.0, np.inf], [0.0, 1.0]]),
])  # fmt: skip
def test_a_matrix_of_which_only_the_transpose_has_a_zero_pivot(a):
    """Rounding decides: LAPACK works on the transpose, and only the transpose has a pivot of
    zero.
    """
    for f in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(len(a)))):
        refuses(vm.DomainError, "a is singular, but must be invertible!", f, vm.var(a))
