"""Factorisations: against 50-digit arithmetic and Stan Math, at repeated eigenvalues and singular
values, and refusals.
"""

from functools import partial

import mpmath as mp
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses
from functions.matrices import (
    GENERAL,
    LARGES,
    SPD,
    SPDS,
    TALL,
    TALLS,
    WIDE,
    gradients,
    stan_entries,
    symmetric,
    worst_error,
)
from recordings import RUNNERS

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

cholesky, eigh, eigvalsh, svd, svdvals, qr = (
    getattr(np.linalg, name) for name in ("cholesky", "eigh", "eigvalsh", "svd", "svdvals", "qr")
)


def upper_cholesky(a):
    return cholesky(a, upper=True)


def squared_vectors(a):
    return eigh(a)[1] ** 2


def thin(a):
    return svd(a, full_matrices=False)


def polar(a):
    u, _, vt = thin(a)
    return u @ vt


def mp_squares(x):
    return mp.matrix([[x[i, j] ** 2 for j in range(x.cols)] for i in range(x.rows)])


def mp_qr(a):
    q, r = mp.qr(a, mode="skinny")
    signs = mp.diag([mp.sign(r[i, i]) for i in range(r.rows)])
    return [q * signs, signs * r]


def mp_full_qr(a):
    q, r = mp.qr(a)
    signs = mp.diag([mp.sign(r[i, i]) for i in range(r.cols)] + [1] * (r.rows - r.cols))
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
    "qr with all columns": (vm.qr, mp_full_qr, TALL[:, :2].copy(), False),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, a, symmetric = EXACT[name]
    assert worst_error(f, exact, [a], symmetric) < 1e-13


SYMMETRIC_FOLDS = dict.fromkeys(
    ("cholesky_decompose", "eigendecompose_sym", "eigenvalues_sym", "eigenvectors_sym"), stan.lower
)
STAN = (
    *SYMMETRIC_FOLDS, "singular_values", "svd", "svd_U", "svd_V", "qr", "qr_Q", "qr_R", "qr_thin",
    "qr_thin_Q", "qr_thin_R",
)  # fmt: skip


def as_stan_signs(entry):
    """Return our function for the entry, with the signs that the vectors have in Stan. If Stan's
    result is squared, ours is squared too.
    """
    f = getattr(vm, entry["function"])
    if entry.get("post"):
        return lambda a: f(a) ** 2
    if not entry["function"].startswith(("svd", "eigenvectors", "eigendecompose")):
        return f

    def turned(ours, exact):
        exact = stan.number(exact)
        return ours * np.sign(np.sum(vm.value(ours) * exact, axis=0)) if exact.ndim == 2 else ours

    if not entry.get("tuple"):
        return lambda a: turned(f(a), entry["output"])
    return lambda a: tuple(map(turned, f(a), entry["output"]))


def joined(parts):
    return np.concatenate([np.ravel(stan.number(part)) for part in parts])


@pytest.mark.parametrize("entry", stan_entries(STAN))
def test_against_stan(entry):
    # In these entries two eigenvalues are close, and Stan's iteration leaves an error.
    rtol = 1e-11 if entry["id"] in ("eigenvectors_sym#3", "eigenvectors_sym#11") else 1e-13
    f = as_stan_signs(entry)
    if entry.get("tuple"):  # the tuple is compared as one vector
        entry = {
            **entry, "tuple": False, "output": joined(entry["output"]),
            "weights": joined(entry["weights"]),
        }  # fmt: skip
        stan.check(
            lambda a: np.concatenate(list(map(np.ravel, f(a)))),
            entry,
            rtol,
            SYMMETRIC_FOLDS.get(entry["function"]),
        )
    else:
        stan.check(f, entry, rtol, SYMMETRIC_FOLDS.get(entry["function"]))


@pytest.mark.parametrize("entry", stan_entries(STAN, throws=True))
def test_what_stan_refuses(entry):
    (a,) = stan.arguments(entry)
    with pytest.raises(
        vm.ShapeError if a.shape[0] != a.shape[1] else vm.DomainError,
        match=f"^{entry['function']}: a",
    ):
        getattr(vm, entry["function"])(a)


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


def test_either_triangle_of_a_symmetric_product_gives_the_same_derivative():
    adjoints = [gradients(lambda b, u=u: eigvalsh(b @ b.T, u), [GENERAL])[1][0] for u in "LU"]
    np.testing.assert_allclose(*adjoints, rtol=1e-12)
    # The upper and the lower factor are transposes of each other.
    adjoints = [
        gradients(lambda b, f=f: np.diagonal(f(b @ b.T)), [GENERAL])[1][0]
        for f in (cholesky, upper_cholesky)
    ]
    np.testing.assert_allclose(*adjoints, rtol=1e-12)


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


@pytest.mark.parametrize(
    "a", [np.outer([1.0, 2.0, -1.0], [0.5, 1.0, 3.0]), np.zeros((3, 3)), np.diag([2.0, 2.0, 0.0])]
)
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
    (cholesky, np.ones((2, 3)), vm.ShapeError,
        r"cholesky: a has shape \(2, 3\), but must be a square matrix"),
    (cholesky, INDEFINITE, vm.DomainError,
        "cholesky: a has the eigenvalue -1, but must be positive definite!"),
    (cholesky, INDEFINITE, np.linalg.LinAlgError, "cholesky: a has the eigenvalue"),
    (upper_cholesky, INDEFINITE, vm.DomainError, "cholesky: a has the eigenvalue -1"),
    (cholesky, np.full((2, 2), np.nan), vm.DomainError,
        "cholesky: a has elements that are not finite"),
    *((cholesky, np.stack([np.eye(n), wrong * np.eye(n)]), vm.DomainError,
        rf"cholesky: a\[1\] {what}") for n in (2, 20) for wrong,
        what in ((-1.0, "has the eigenvalue -1"), (np.nan, "has elements that are not finite"))),
    (vm.cholesky_decompose, INDEFINITE, np.linalg.LinAlgError,
        "cholesky_decompose: a has the eigenvalue -1, but must be positive"),
    (vm.cholesky_decompose, SKEWED, vm.DomainError,
        r"cholesky_decompose: a\[0, 1\] is 0.5, but must be 0.1, as a\[1, 0\] is, for"),
    (vm.cholesky_decompose, np.stack([SPD, SPD + np.tri(3)]), vm.DomainError,
        r"cholesky_decompose: a\[1, 0, 1\] is"),
    (vm.cholesky_decompose, np.full((2, 2), np.nan), vm.DomainError,
        r"cholesky_decompose: a\[0, 0\] is nan, but must be finite!"),
    (vm.eigenvalues_sym, SKEWED, vm.DomainError,
        r"eigenvalues_sym: a\[0, 1\] is 0.5, but must be 0.1"),
    (vm.eigenvectors_sym, SKEWED, vm.DomainError,
        r"eigenvectors_sym: a\[0, 1\] is 0.5, but must be 0.1"),
    (vm.eigendecompose_sym, np.array([[np.inf]]), vm.DomainError,
        r"eigendecompose_sym: a\[0, 0\] is inf, but must be finite!"),
    (vm.eigendecompose_sym, TALL, vm.ShapeError,
        r"eigendecompose_sym: a has shape \(4, 3\), but must be a square matrix"),
    (eigh, np.ones(3), vm.ShapeError, r"eigh: a has shape \(3,\)"),
    (eigvalsh, np.ones((2, 3)), vm.ShapeError, r"eigh: a has shape \(2, 3\)"),
    (svd, np.ones(3), vm.ShapeError, r"svd: a has shape \(3,\), but must be a matrix"),
    (svdvals, np.ones(3), vm.ShapeError,
        r"singular_values: a has shape \(3,\), but must be a matrix"),
    (qr, np.ones(3), vm.ShapeError, r"qr: a has shape \(3,\), but must be a matrix"),
    (lambda a: qr(a, "raw"), TALL, TypeError,
        "qr: mode is 'raw', but must be 'reduced', 'complete' or 'r'"),
    (vm.qr_Q, np.ones(3), vm.ShapeError, r"qr_Q: a has shape \(3,\), but must be a matrix"),
    (vm.svd_V, np.ones(3), vm.ShapeError, r"svd_V: a has shape \(3,\), but must be a matrix"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "a", "error", "message"), REFUSALS)
def test_refusals(f, a, error, message):
    refuses(error, message, f, vm.var(a))


def test_a_matrix_that_is_not_positive_definite_is_recoverable_also_as_data():
    with pytest.raises(
        vm.DomainError, match="cholesky_decompose: a has the eigenvalue -1"
    ) as caught:
        vm.cholesky_decompose(INDEFINITE)
    assert caught.value.is_recoverable


def test_how_symmetric_is_symmetric():
    large = 1e12 * SPD
    for f in (
        vm.cholesky_decompose, vm.eigenvalues_sym, vm.eigenvectors_sym, vm.eigendecompose_sym,
    ):  # fmt: skip
        f(SPD + 9e-9 * np.tri(3, k=-1))
        f(large + 5e-9 * np.abs(large) * np.tri(3, k=-1))
        for a in (SPD + 1.1e-8 * np.tri(3, k=-1), large * (1.0 + 1e-7 * np.tri(3, k=-1))):
            refuses(vm.DomainError, "for a symmetric matrix!", f, a)
    # The functions under NumPy's names do not check symmetry.
    equal(cholesky(vm.var(SKEWED)).val, np.linalg.cholesky(SKEWED))
    equal(eigvalsh(vm.var(SKEWED)).val, np.linalg.eigvalsh(SKEWED))


def test_symmetry_is_checked_in_every_block():
    for i, j in ((0, 149), (70, 5), (149, 140)):
        a = large(150)
        a[i, j] += 1.0
        with pytest.raises(
            vm.DomainError,
            match=rf"a\[{min(i, j)}, {max(i, j)}\] is .*, as a\[{max(i, j)}, {min(i, j)}\] is",
        ):
            vm.cholesky_decompose(a)


def test_names_and_types():
    a = vm.var(SPD)
    assert eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert svd(a)._fields == ("U", "S", "Vh")
    assert qr(a)._fields == ("Q", "R")
    equal(vm.eigenvalues_sym(SPDS), eigvalsh(SPDS))
    equal(vm.singular_values(TALL), svdvals(TALL))


@pytest.mark.parametrize(
    "function", [vm.svd, vm.singular_values, vm.generalized_inverse, np.linalg.cond]
)
def test_singular_values_of_infinite_matrices_are_refused(function):
    """For some such matrices LAPACK's iteration would never end."""
    for wrong in (np.inf, -np.inf, np.nan):
        a = np.array([[1.0, 0.5, 0.0], [2.0, 3.0, 1.0], [0.0, 1.0, 1.0]])
        a[0, 0] = wrong
        for x in (a, vm.var(a)) if function is not np.linalg.cond else (vm.var(a),):
            refuses(vm.DomainError, "a has elements that are not finite", function, x)
