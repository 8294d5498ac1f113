"""Factorisations: against 50-digit arithmetic and Stan Math, at repeated eigenvalues and singular
values, and refusals.
"""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.matrices import (
    GENERAL,
    LARGES,
    SPD,
    SPDS,
    TALL,
    TALLS,
    WIDE,
    gradients,
    symmetric,
    worst_error,
)
from recordings import RUNNERS

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

cholesky, eigh, eigvalsh = np.linalg.cholesky, np.linalg.eigh, np.linalg.eigvalsh
svd, svdvals, qr, cond = np.linalg.svd, np.linalg.svdvals, np.linalg.qr, np.linalg.cond


upper_cholesky = partial(cholesky, upper=True)
thin = partial(svd, full_matrices=False)


def squared_vectors(a):
    return eigh(a)[1] ** 2


def polar(a):
    u, _, vt = thin(a)
    return u @ vt


def mp_squares(x):
    return mp.matrix([[x[i, j] ** 2 for j in range(x.cols)] for i in range(x.rows)])


def mp_qr(a, mode="skinny"):
    q, r = mp.qr(a, mode=mode)
    signs = mp.diag([mp.sign(r[i, i]) if i < r.cols else 1 for i in range(r.rows)])
    return [q * signs, signs * r]


def mp_polar(a):
    u, _, v = mp.svd_r(a)
    return u * v


EXACT = {
    "cholesky": (cholesky, mp.cholesky, SPD, True),
    "eigvalsh": (eigvalsh, lambda a: list(mp.eigsy(a, eigvals_only=True)), SPD, True),
    "eigenvectors": (squared_vectors, lambda a: mp_squares(mp.eigsy(a)[1]), SPD, True),
    "svdvals": (svdvals, lambda a: list(mp.svd_r(a, compute_uv=False)), TALL, False),
    "u": (lambda a: thin(a)[0] ** 2, lambda a: mp_squares(mp.svd_r(a)[0]), TALL, False),
    "vt": (lambda a: thin(a)[2] ** 2, lambda a: mp_squares(mp.svd_r(a)[2]), TALL, False),
    "vt wide": (lambda a: thin(a)[2] ** 2, lambda a: mp_squares(mp.svd_r(a)[2]), WIDE, False),
    "polar": (polar, mp_polar, TALL, False),
    "qr": (vm.qr_thin, mp_qr, TALL, False),
    "qr square": (vm.qr_thin, mp_qr, GENERAL, False),
    "qr with all columns": (vm.qr, partial(mp_qr, mode="full"), TALL[:, :2].copy(), False),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, a, symmetric = EXACT[name]
    assert worst_error(f, exact, [a], symmetric) < 1e-13


def null_space_and_first(a):
    u, s, vt = svd(a)
    k = np.shape(s)[-1]
    u2, v2 = u[..., k:], vt[..., k:, :].mT
    return u2 @ u2.mT, v2 @ v2.mT, u[..., :k] ** 2, s


CASES = [
    (cholesky, SPD), (upper_cholesky, SPD), (cholesky, SPDS), (upper_cholesky, SPDS),
    (cholesky, np.array([[4.0]])), (cholesky, SPD[::-1, ::-1]), (cholesky, np.empty((0, 0))),
    (cholesky, np.empty((0, 3, 3))),
    (lambda a: (eigh(a)[0], eigh(a)[1] * eigh(a)[1]), SPD),
    (lambda a: tuple(eigh(a, "U")), SPD),
    (lambda a: eigh(a)[1], SPDS), (eigvalsh, SPDS), (lambda a: eigvalsh(a, "U"), SPD),
    (vm.eigenvectors_sym, np.array([[2.0]])),
    (symmetric(vm.cholesky_decompose), SPDS),
    (symmetric(vm.eigendecompose_sym), SPDS),
    (symmetric(vm.eigenvalues_sym), SPD[::-1, ::-1]),
    (vm.svd, TALLS), (vm.svd_U, WIDE), (vm.svd_V, np.empty((3, 0))), (eigvalsh, np.empty((0, 0))),
    (lambda a: tuple(svd(a)), GENERAL), (lambda a: tuple(thin(a)), TALL),
    (lambda a: tuple(thin(a)), WIDE), (lambda a: tuple(thin(a)), TALLS),
    (null_space_and_first, TALL), (null_space_and_first, WIDE), (null_space_and_first, TALLS),
    (lambda a: svd(a, hermitian=True)[1], GENERAL),
    (lambda a: svd(a, compute_uv=False), TALL),
    (lambda a: tuple(thin(a)), np.empty((0, 3))),
    (svdvals, np.empty((2, 3, 0))), (polar, TALL), (lambda a: tuple(qr(a)), GENERAL),
    (lambda a: tuple(qr(a)), TALLS), (lambda a: tuple(qr(a)), WIDE),
    (lambda a: tuple(qr(a, "complete")), GENERAL),
    (lambda a: tuple(qr(a, "complete")), TALL),
    (lambda a: tuple(qr(a, "complete")), TALLS[..., :2]),
    (lambda a: tuple(qr(a, "complete")), np.array([[1.5], [0.0], [-2.0], [0.3], [1.0]])),
    (lambda a: tuple(qr(a, "complete")), WIDE),
    (lambda a: qr(a, "r"), TALL), (vm.qr, TALLS), (vm.qr, WIDE), (vm.qr_Q, -TALL[:, :1]),
    (vm.qr_R, TALL), (vm.qr_thin, WIDE), (vm.qr_thin_Q, TALL[::-1, ::-1]),
    (vm.qr_thin_R, np.empty((3, 0))),
    (lambda a: qr(a, mode="r"), np.swapaxes(TALLS, -1, -2)),
    (lambda a: tuple(qr(a)), np.empty((3, 0))),
]  # fmt: skip


@pytest.mark.parametrize(("f", "a"), CASES)
def test_all_routes(f, a):
    expect_ad(f, a)
    expect_ad_matvar(f, a)


READERS = [
    (cholesky, True), (upper_cholesky, False), (eigvalsh, True),
    (lambda a: eigvalsh(a, "U"), False),
]  # fmt: skip


@pytest.mark.parametrize(("f", "lower"), READERS)
def test_one_triangle_is_read_and_takes_the_adjoint(f, lower):
    mask = np.tri(3, dtype=bool) if lower else np.tri(3, dtype=bool).T
    (value,), (adjoint,) = gradients(f, [np.where(mask, SPD, np.nan)])
    (clean,), (expected,) = gradients(f, [SPD])
    equal(value, clean)
    equal(adjoint, expected)
    equal(adjoint[~mask], 0.0)


REPEATED = np.diag([2.0, 2.0, 5.0])
ROTATION = qr(GENERAL)[0]


EQUAL = [np.eye(3), REPEATED, ROTATION @ REPEATED @ ROTATION.T]
refused = partial(pytest.raises, vm.DomainError)


@pytest.mark.parametrize("a", EQUAL)
def test_eigenvalues_that_are_equal(a):
    """Sums of functions of them have a gradient; nothing that needs their vectors has, in either
    mode, eagerly or recorded.
    """
    _, (adjoint,) = gradients(lambda a: np.log(eigvalsh(a)), [a], [np.ones(3)])
    close(adjoint, stan.lower(np.linalg.inv(a)), 1e-7, 1e-14)

    def log_determinant(a):
        return np.sum(np.log(eigvalsh(a)))

    def exponential(a, inverse):
        values, v = eigh(a)
        return np.sum(GENERAL * ((v * np.exp(values)) @ (np.linalg.inv(v) if inverse else v.T)))

    def of_separate_calls(a):
        v = vm.eigenvectors_sym(a)
        return np.sum(GENERAL * ((v * np.exp(vm.eigenvalues_sym(a))) @ v.T))

    message = (
        "^eigh: Argument a has equal eigenvalues, but must have distinct ones where a derivative "
        "of their vectors, or a second derivative of the values, is needed! For functions of the "
        "matrix use matrix_exp, matrix_power, log_determinant"
    )
    start = GENERAL @ GENERAL.T
    first = [partial(exponential, inverse=False), partial(exponential, inverse=True)]
    for f in (*first, of_separate_calls, lambda a: np.sum(squared_vectors(a))):
        with refused(match=message):
            vm.gradient(f, a)
        assert np.isnan(vm.jvp(f, (a,), (start,))[1])
    for f in (log_determinant, *first):
        with refused(match=message):
            vm.hessian(f, a)
    for runner in RUNNERS:
        for f in (vm.grad(first[0]), vm.hessian(log_determinant)):
            recorded = vm.recorded(f, runner=runner)
            recorded(start)
            with refused(match=message):
                recorded(a)


def test_vectors_of_other_eigenvalues():
    """A vector of a simple eigenvalue has all derivatives, whatever the others are. Perturbation
    theory gives dP as the sum of (P dA Q + Q dA P) / gap over the other eigenvalues.
    """
    weights = np.cos(np.arange(9.0)).reshape(3, 3)

    def projection(a, first, last):
        v = eigh(a)[1][:, first:last]
        return v @ v.T

    for a in (REPEATED, ROTATION @ REPEATED @ ROTATION.T):
        _, (adjoint,) = gradients(lambda a: projection(a, 2, 3), [a], [weights])
        q = eigh(a)[1][:, 2:]
        p, q = np.eye(3) - q @ q.T, q @ q.T
        close(adjoint, stan.lower((p @ weights @ q + q @ weights @ p) / 3.0), 1e-7, 1e-14)
        assert np.all(np.isfinite(vm.hessian(lambda a: eigvalsh(a)[2], a)))
        with refused(match="eigh: Argument a has equal eigenvalues"):
            vm.gradient(lambda a: np.sum(weights * projection(a, 0, 2)), a)


@pytest.mark.parametrize("a", [np.eye(3), 2.0 * ROTATION, np.vstack([np.eye(3), np.zeros((1, 3))])])
def test_singular_values_that_are_equal(a):
    weights = np.cos(np.arange(a.size)).reshape(a.shape)
    assert np.all(np.isfinite(vm.gradient(lambda a: np.sum(svdvals(a)), a)))

    def itself(a):
        u, s, vt = np.linalg.svd(a, full_matrices=False)
        return np.sum(weights * ((u * s) @ vt))

    message = "^svd: Argument a has equal singular values, but must have .* use .*polar_decompose"
    for f in (lambda a: np.sum(weights * polar(a)), itself):
        with refused(match=message):
            vm.gradient(f, a)
        assert np.isnan(vm.jvp(f, (a,), (weights,))[1])
    with refused(match=message):
        vm.hessian(lambda a: np.sum(svdvals(a)), a)


@pytest.mark.parametrize("a", [
    np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]), np.zeros((3, 3)), np.diag([2.0, 2.0, 0.0]),
])  # fmt: skip
def test_singular_values_that_are_zero(a):
    _, (adjoint,) = gradients(lambda a: svdvals(a) ** 2, [a], [np.ones(3)])
    close(adjoint, 2 * a, 1e-7, 1e-14)
    with refused(match="svd: Argument a has equal singular values"):
        gradients(lambda a: tuple(svd(a)), [a])


def test_ill_conditioned_cholesky():
    a = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)
    condition = np.linalg.cond(a)
    assert condition > 1e10
    assert worst_error(cholesky, mp.cholesky, [a], symmetric=True) < condition * np.finfo(float).eps


def large(n):
    b = np.cos(np.arange(n * n, dtype=float)).reshape(n, n)
    return b @ b.T + n * np.eye(n)


@pytest.mark.parametrize("n", [63, 64, 65, 150])
def test_cholesky_in_blocks(n):
    # The function is log det, computed from the factor.
    _, (adjoint,) = gradients(
        lambda a: 2.0 * np.log(np.diagonal(cholesky(a))), [large(n)], [np.ones(n)]
    )
    close(adjoint, stan.lower(np.linalg.inv(large(n))), 1e-7, 1e-14)


@pytest.mark.parametrize("f", [cholesky, upper_cholesky])
def test_cholesky_in_blocks_against_its_tangent(f):
    a = np.stack([large(130), large(130)[::-1, ::-1]])
    weights = np.cos(np.arange(a.size)).reshape(a.shape)
    direction = np.sin(np.arange(a.size)).reshape(a.shape)
    _, (adjoint,) = gradients(f, [a], [weights])
    slope = np.sum(weights * f(vm.Dual(a, direction)).tan)
    assert abs(np.sum(adjoint * direction) - slope) < 1e-13 * np.sum(np.abs(adjoint * direction))


def test_stacks_of_large_matrices():
    (factors,), (adjoint,) = gradients(cholesky, [LARGES])
    weights = gradients(lambda a: a, [LARGES])[1][0]
    for index in np.ndindex(LARGES.shape[:-2]):
        (factor,), (one,) = gradients(cholesky, [LARGES[index]], [weights[index]])
        close(factors[index], factor, 0.0, 1e-14)
        close(adjoint[index], one, 0.0, 1e-13 * np.max(np.abs(one)))


INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
SKEWED = np.array([[2.0, 0.5], [0.1, 1.0]])
REFUSALS = [
    (cholesky, np.ones((2, 3)), SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (cholesky, INDEFINITE, DOMAIN, "a has the eigenvalue -1, but must be positive definite!"),
    (cholesky, INDEFINITE, np.linalg.LinAlgError, "a has the eigenvalue"),
    (upper_cholesky, INDEFINITE, DOMAIN, "cholesky: a has the eigenvalue -1"),
    (cholesky, np.full((2, 2), np.nan), DOMAIN, "a has elements that are not finite"),
    *((cholesky, np.stack([np.eye(n), wrong * np.eye(n)]), DOMAIN, f"a[1] has {what}")
      for n in (2, 20) for wrong, what in (
          (-1.0, "the eigenvalue -1"), (np.nan, "elements that are not finite"))),
    (vm.cholesky_decompose, INDEFINITE, np.linalg.LinAlgError,
     "a has the eigenvalue -1, but must be positive definite!"),
    (vm.cholesky_decompose, SKEWED, DOMAIN, "a[0, 1] is 0.5, but must be 0.1, as a[1, 0] is, for"),
    (vm.cholesky_decompose, np.stack([SPD, SPD + np.tri(3)]), DOMAIN, "a[1, 0, 1] is"),
    (vm.cholesky_decompose, np.full((2, 2), np.nan), DOMAIN, "a[0, 0] is nan, but must be finite!"),
    (vm.eigenvalues_sym, SKEWED, DOMAIN, "a[0, 1] is 0.5, but must be 0.1"),
    (vm.eigenvectors_sym, SKEWED, DOMAIN, "a[0, 1] is 0.5, but must be 0.1"),
    (vm.eigendecompose_sym, np.array([[np.inf]]), DOMAIN, "a[0, 0] is inf, but must be finite!"),
    (vm.eigendecompose_sym, TALL, SHAPE, "a has shape (4, 3), but must be a square matrix"),
    (eigh, np.ones(3), SHAPE, "a has shape (3,)"),
    (vm.eigh, np.ones(3), SHAPE, "a has shape (3,)"),
    (eigvalsh, np.ones((2, 3)), SHAPE, "eigh: a has shape (2, 3)"),
    (svd, np.ones(3), SHAPE, "a has shape (3,), but must be a matrix (or a stack of them)!"),
    (svdvals, np.ones(3), SHAPE, "singular_values: a has shape (3,), but must be a matrix"),
    (qr, np.ones(3), SHAPE, "a has shape (3,), but must be a matrix (or a stack of them)!"),
    (lambda a: qr(a, "raw"), TALL, TypeError,
     "mode is 'raw', but must be 'reduced', 'complete' or 'r' for a result that has a derivative!"),
    (vm.qr_Q, np.ones(3), SHAPE, "a has shape (3,), but must be a matrix (or a stack of them)!"),
    (vm.svd_V, np.ones(3), SHAPE, "a has shape (3,), but must be a matrix (or a stack of them)!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "a", "error", "message"), REFUSALS)
def test_refusals(f, a, error, message):
    refuses_as(error, message, f, vm.var(a))


def test_how_symmetric_is_symmetric():
    large = 1e12 * SPD
    for f in (vm.cholesky_decompose, vm.eigenvalues_sym):
        f(SPD + 9e-9 * np.tri(3, k=-1))
        f(large + 5e-9 * np.abs(large) * np.tri(3, k=-1))
        for a in (SPD + 1.1e-8 * np.tri(3, k=-1), large * (1.0 + 1e-7 * np.tri(3, k=-1))):
            refuses(vm.DomainError, "for a symmetric matrix!", f, a)
    # The functions under NumPy's names do not check symmetry.
    equal(cholesky(vm.var(SKEWED)).val, np.linalg.cholesky(SKEWED))
    equal(eigvalsh(vm.var(SKEWED)).val, np.linalg.eigvalsh(SKEWED))


def test_symmetry_is_checked_in_every_block():
    for i, j in ((0, 149), (70, 5), (149, 140)):
        a, (low, high) = large(150), sorted((i, j))
        a[i, j] += 1.0
        message = rf"a\[{low}, {high}\] is .*, as a\[{high}, {low}\] is"
        refuses(vm.DomainError, message, vm.cholesky_decompose, a)


def test_names_and_types():
    a = vm.var(SPD)
    assert eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert svd(a)._fields == ("U", "S", "Vh")
    assert qr(a)._fields == ("Q", "R")
    equal(vm.eigenvalues_sym(SPDS), eigvalsh(SPDS))
    equal(vm.singular_values(TALL), svdvals(TALL))


@pytest.mark.parametrize("function", [vm.svd, vm.singular_values, vm.generalized_inverse, cond])
def test_singular_values_of_infinite_matrices_are_refused(function):
    """For some such matrices LAPACK's iteration would never end."""
    for wrong in (np.inf, -np.inf, np.nan):
        a = np.array([[1.0, 0.5, 0.0], [2.0, 3.0, 1.0], [0.0, 1.0, 1.0]])
        a[0, 0] = wrong
        for x in (a, vm.var(a)) if function is not cond else (vm.var(a),):
            refuses(vm.DomainError, "a has elements that are not finite", function, x)
