"""Linear systems: against 50-digit arithmetic and Stan Math, at the edges, and refusals."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import stan
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
    stan_entries,
    symmetric,
    worst_error,
)

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

solve, inv = np.linalg.solve, np.linalg.inv


def lower(a: Any, b: Any) -> Any:
    return vm.solve_triangular(a, b, lower=True)


def lower_transposed(a: Any, b: Any) -> Any:
    return vm.solve_triangular(a, b, lower=True, trans=1)


def upper(a: Any, b: Any) -> Any:
    return vm.solve_triangular(a, b)


def upper_unit_transposed(a: Any, b: Any) -> Any:
    return vm.solve_triangular(a, b, trans="T", unit_diagonal=True)


def cho_lower(c: Any, b: Any) -> Any:
    return vm.cho_solve((c, True), b)


def cho_upper(c: Any, b: Any) -> Any:
    return vm.cho_solve((c, False), b)


def tril(a: Any) -> Any:
    return mp.matrix(a.rows, a.cols) + mp.matrix(
        [[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)]
    )


def triu(a: Any) -> Any:
    return tril(a.T).T


def unit_triu(a: Any) -> Any:
    return mp.matrix(
        [[1 if i == j else a[i, j] if j > i else 0 for j in range(a.cols)] for i in range(a.rows)]
    )


# Name -> function, the same in mpmath, arguments, whether the first one is symmetric.
EXACT: dict[str, tuple[Any, Any, Any, bool]] = {
    "inv": (inv, lambda a: a**-1, [GENERAL], False),
    "solve": (solve, lambda a, b: a**-1 * b, [GENERAL, COLUMNS], False),
    "solve vector": (solve, lambda a, b: a**-1 * b, [GENERAL, VECTOR], False),
    "lower": (lower, lambda a, b: tril(a) ** -1 * b, [GENERAL, COLUMNS], False),
    "lower transposed": (lower_transposed, lambda a, b: tril(a).T ** -1 * b, [GENERAL, COLUMNS],
        False),
    "upper": (upper, lambda a, b: triu(a) ** -1 * b, [GENERAL, VECTOR], False),
    "upper unit transposed": (upper_unit_transposed, lambda a, b: unit_triu(a).T ** -1 * b,
        [GENERAL, COLUMNS], False),
    "cho_solve": (cho_lower, lambda c, b: (tril(c) * tril(c).T) ** -1 * b, [GENERAL, COLUMNS],
        False),
    "cho_solve upper": (cho_upper, lambda c, b: (triu(c).T * triu(c)) ** -1 * b, [GENERAL, VECTOR],
        False),
    "chol2inv": (lower_triangular(vm.chol2inv), lambda c: (tril(c) * tril(c).T) ** -1, [GENERAL],
        False),
    "inverse_spd": (vm.inverse_spd, lambda a: a**-1, [SPD], True),
    "mdivide_left_spd": (vm.mdivide_left_spd, lambda a, b: a**-1 * b, [SPD, COLUMNS], True),
    "mdivide_right": (vm.mdivide_right, lambda b, a: b * a**-1, [COLUMNS.T.copy(), GENERAL], False),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name: str) -> None:
    f, exact, args, symmetric = EXACT[name]
    assert worst_error(f, exact, args, symmetric) < 1e-13


STAN = (
    "chol2inv",
    "inverse",
    "inverse_spd",
    *(f"mdivide_{side}{kind}" for side in ("left", "right") for kind in ("", "_ldlt", "_spd",
        "_tri_low")),
)  # fmt: skip


@pytest.mark.parametrize("entry", stan_entries(STAN))
def test_against_stan(entry: Any) -> None:
    fold = stan.lower if entry["function"].endswith(("spd", "ldlt")) else None
    stan.check(getattr(vm, entry["function"]), entry, rtol=1e-13, fold=fold)


@pytest.mark.parametrize("entry", stan_entries(STAN, throws=True))
def test_what_stan_refuses(entry: Any) -> None:
    with pytest.raises(
        vm.DomainError if entry["throws"] == "domain_error" else vm.ShapeError,
        match=r": (a|b|factor)(\[| has )",
    ):
        getattr(vm, entry["function"])(*stan.arguments(entry))


CASES: list[tuple[Any, list[Any]]] = [
    (inv, [GENERAL]),
    (inv, [GENERALS]),
    (solve, [GENERAL, VECTOR]),
    (solve, [GENERALS, VECTOR]),
    (solve, [GENERALS, COLUMNS]),
    (solve, [GENERAL, COLUMN_STACK]),
    (lower, [GENERAL, COLUMNS]),
    (lower, [GENERALS, VECTOR]),
    (lower_transposed, [GENERAL, VECTOR]),
    (upper, [GENERALS, COLUMNS]),
    (upper_unit_transposed, [GENERALS, COLUMN_STACK]),
    (cho_lower, [GENERAL, VECTOR]),
    (cho_upper, [GENERALS, VECTOR]),
    (lower_triangular(vm.chol2inv), [GENERALS]),
    (lower_triangular(vm.chol2inv), [GENERAL[::-1, ::-1]]),
    (vm.chol2inv, [np.empty((0, 0))]),
    (symmetric(vm.inverse_spd), [SPDS]),
    (symmetric(vm.mdivide_left_spd), [SPD, VECTOR]),
    (symmetric(vm.mdivide_left_spd), [SPD, COLUMN_STACK]),
    (symmetric(vm.mdivide_left_spd), [SPDS, VECTOR]),
    (symmetric(vm.mdivide_left_spd), [SPDS, COLUMN_STACK]),
    (vm.mdivide_left_tri_low, [GENERAL, VECTOR]),
    (vm.mdivide_left_tri_low, [GENERALS, COLUMNS]),
    (vm.mdivide_right, [VECTOR, GENERAL]),
    (vm.mdivide_right, [COLUMN_STACK.mT, GENERALS]),
    (symmetric(lambda a, b: vm.mdivide_right_spd(b, a)), [SPD, COLUMNS.T]),
    (vm.mdivide_right_tri_low, [COLUMNS.T, GENERAL]),
    (
        lambda a: np.linalg.tensorinv(a, ind=1),
        [np.linspace(-1, 1, 16).reshape(4, 2, 2) ** 2 + np.eye(4).reshape(4, 2, 2)],
    ),
    (
        np.linalg.tensorsolve,
        [np.eye(4).reshape(2, 2, 4) + 0.1, np.array([[1.0, 2.0], [3.0, -4.0]])],
    ),
    (
        lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)),
        [np.eye(4).reshape(4, 2, 2) + 0.1, np.array([[1.0, 2.0], [3.0, -4.0]])],
    ),
    (inv, [np.empty((0, 0))]),
    (solve, [np.empty((0, 0)), np.empty(0)]),
    (solve, [GENERAL, np.empty((3, 0))]),
    (solve, [np.empty((0, 3, 3)), VECTOR]),
    (lower, [np.empty((0, 0)), np.empty((0, 2))]),
    (vm.inverse_spd, [np.empty((2, 0, 0))]),
    (symmetric(vm.mdivide_left_spd), [SPD, np.empty((3, 0))]),
    (solve, [np.array([[2.0]]), np.array([3.0])]),
    (solve, [GENERAL[::-1, ::-1], VECTOR[::-1]]),
]


@pytest.mark.parametrize(("f", "args"), CASES)
def test_all_routes(f: Any, args: Any) -> None:
    expect_ad(f, *args)
    expect_ad_matvar(f, *args)


HILBERT = 1.0 / (np.arange(8)[:, None] + np.arange(8) + 1.0)


@pytest.mark.parametrize("f", [inv, solve, vm.mdivide_left_spd])
def test_ill_conditioned(f: Any) -> None:
    args = [HILBERT] if f is inv else [HILBERT, np.ones(8)]
    # The adjoint takes two solves, so it may lose as many digits again as the value.
    exact = (lambda a: a**-1) if len(args) == 1 else (lambda a, b: a**-1 * b)
    condition = np.linalg.cond(HILBERT)
    assert condition > 1e10
    assert (
        worst_error(f, exact, args, f is vm.mdivide_left_spd) < 10 * condition * np.finfo(float).eps
    )


def test_only_the_named_triangle_is_read() -> None:
    poisoned = np.where(np.tri(3, dtype=bool), GENERAL, np.nan)
    (value,), (adjoint, _) = gradients(lower, [poisoned, VECTOR])
    (clean,), (expected, _) = gradients(lower, [np.tril(GENERAL), VECTOR])
    np.testing.assert_array_equal(value, clean)
    np.testing.assert_array_equal(adjoint, expected)
    np.testing.assert_array_equal(adjoint[np.triu_indices(3, 1)], 0.0)


def test_symmetric_systems_have_the_folded_adjoint() -> None:
    _, (adjoint, _) = gradients(vm.mdivide_left_spd, [SPD, VECTOR])
    _, (expected, _) = gradients(solve, [SPD, VECTOR])
    np.testing.assert_allclose(adjoint, stan.lower(expected), rtol=1e-13)


LARGE_COLUMNS = np.sin(np.arange(2 * 3 * 40.0)).reshape(2, 3, 20, 2)


def place(index: Any, x: Any) -> Any:
    """Return the index into the leading axes of `x` for one matrix of the stack."""
    axes = max(x.ndim - 2, 0)
    return tuple(
        0 if n == 1 else i for i, n in zip(index[len(index) - axes :], x.shape[:axes], strict=True)
    )


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (inv, [LARGES]),
        (solve, [LARGES, LARGE_COLUMNS]),
        (solve, [LARGES, LARGE_COLUMNS[1]]),
        (solve, [LARGES[:, :1], LARGE_COLUMNS]),
        (solve, [LARGES, LARGE_COLUMNS[0, 0, :, 0]]),
        (vm.inverse_spd, [LARGES]),
        (lower_triangular(vm.chol2inv), [LARGES]),
        (vm.mdivide_left_spd, [LARGES, LARGE_COLUMNS]),
        (vm.mdivide_left_tri_low, [LARGES, LARGE_COLUMNS[0, 0, :, 0]]),
    ],
)
def test_stacks_of_large_matrices(f: Any, args: Any) -> None:
    (value,), adjoints = gradients(f, args)
    weights = np.cos(1.7 * np.arange(1, 1 + value.size)).reshape(value.shape) + 0.3
    stack, total = LARGES.shape[:-2], [np.zeros(x.shape) for x in args]
    for index in np.ndindex(stack):
        where = [place(index, x) for x in args]
        (part,), ones = gradients(
            f, [x[i] for x, i in zip(args, where, strict=True)], [weights[index]]
        )
        np.testing.assert_allclose(value[index], part, rtol=0, atol=1e-13 * np.max(np.abs(part)))
        for c, i, one in zip(total, where, ones, strict=True):
            c[i] += one
    for adjoint, c in zip(adjoints, total, strict=True):
        np.testing.assert_allclose(adjoint, c, rtol=0, atol=1e-13 * np.max(np.abs(c)))


@pytest.mark.parametrize("n", [63, 64, 65, 130])
def test_large_systems_in_blocks(n: int) -> None:
    b = np.cos(np.arange(n * n, dtype=float)).reshape(n, n)
    a = b @ b.T / n + 3.0 * np.eye(n)
    _, general = gradients(solve, [a, b])
    _, spd = gradients(vm.mdivide_left_spd, [a, b])
    np.testing.assert_allclose(
        spd[0], stan.lower(general[0]), rtol=0, atol=1e-12 * np.max(np.abs(general[0]))
    )
    np.testing.assert_allclose(spd[1], general[1], rtol=0, atol=1e-13 * np.max(np.abs(general[1])))
    for trans in (0, 1):
        for triangle in (np.tril, np.triu):
            t = triangle(a)
            _, general = gradients(solve, [t.T if trans else t, b])
            _, ours = gradients(
                lambda a, b, k=triangle is np.tril, m=trans: vm.solve_triangular(a, b, k, m), [t, b]
            )
            expected = triangle(general[0].T if trans else general[0])
            np.testing.assert_allclose(
                ours[0], expected, rtol=0, atol=1e-12 * np.max(np.abs(expected))
            )
            np.testing.assert_allclose(
                ours[1], general[1], rtol=0, atol=1e-13 * np.max(np.abs(general[1]))
            )
    (value,), (adjoint,) = gradients(vm.inverse_spd, [a])
    (plain,), (expected,) = gradients(inv, [a])
    np.testing.assert_array_equal(value, value.T)
    np.testing.assert_allclose(value, plain, rtol=0, atol=1e-14)
    np.testing.assert_allclose(adjoint, stan.lower(expected), rtol=0, atol=1e-13)
    c = np.linalg.cholesky(a)
    (value,), (adjoint,) = gradients(vm.chol2inv, [c])
    _, (expected,) = gradients(lambda c: vm.inverse_spd(c @ c.T), [c])
    np.testing.assert_array_equal(value, value.T)
    np.testing.assert_allclose(adjoint, np.tril(expected), rtol=0, atol=1e-13)


@pytest.mark.parametrize("bad", [lower, cho_lower])
def test_unit_diagonal_is_not_read(bad: Any) -> None:
    zero = np.array([[0.0, 0.0], [1.0, 2.0]])
    with pytest.raises(
        vm.DomainError, match=r"solve_triangular: a\[0, 0\] is 0.0, but must be nonzero!"
    ):
        bad(vm.var(zero), np.ones(2))
    np.testing.assert_array_equal(
        vm.solve_triangular(zero, np.ones(2), lower=True, unit_diagonal=True), [1.0, 0.0]
    )


def test_one_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.linalg.lapack as lapack

    calls: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **settings: Any) -> Any:
            calls.append(name)
            return function(*args, **settings)

        return call

    for name in ("cholesky", "det", "inv", "slogdet", "solve", "svd"):
        monkeypatch.setattr(np.linalg, name, counted(name, getattr(np.linalg, name)))
    for name in ("dgetrf", "dpotrf"):
        monkeypatch.setattr(lapack, name, counted(name, getattr(lapack, name)))
    for f, expected in (
        (lambda a: vm.mdivide_left(a, np.ones(a.shape[-1])), ["dgetrf"]),
        (vm.inverse, ["dgetrf"]),
        (vm.determinant, ["dgetrf"]),
        (vm.log_determinant, ["dgetrf"]),
        (lambda a: vm.mdivide_left_spd(a, np.ones(a.shape[-1])), ["dpotrf"]),
        (vm.inverse_spd, ["dpotrf"]),
        (vm.cholesky_decompose, ["dpotrf"]),
        (vm.log_determinant_spd, ["dpotrf"]),
    ):
        for a, times in ((SPD, 1), (LARGES, 6)):
            calls.clear()
            gradients(f, [a])
            assert calls == expected * times


LARGE_SINGULAR = LARGES[0] * np.array([1.0, 1.0, 0.0])[:, None, None]
SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
SKEWED = np.array([[2.0, 0.5], [0.1, 1.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
REFUSALS: list[tuple[Any, list[Any], type[Exception], str]] = [
    (inv, [np.ones((2, 3))], vm.ShapeError,
        r"inv: a has shape \(2, 3\), but must be a square matrix"),
    (inv, [SINGULAR], vm.DomainError, "inv: a is singular, but must be invertible!"),
    (inv, [np.stack([np.eye(2), SINGULAR])], np.linalg.LinAlgError, r"inv: a\[1\] is singular"),
    (inv, [LARGE_SINGULAR], np.linalg.LinAlgError, r"inv: a\[2\] is singular"),
    (solve, [LARGE_SINGULAR, np.ones(20)], vm.DomainError, r"solve: a\[2\] is singular"),
    (solve, [SINGULAR, np.ones(2)], vm.DomainError,
        "solve: a is singular, but must be invertible!"),
    (solve, [SINGULAR[None], np.ones(2)], np.linalg.LinAlgError, r"solve: a\[0\] is singular"),
    (solve, [np.eye(2), np.ones(3)], vm.ShapeError,
        r"solve: b has shape \(3,\), but must have 2 rows, as a has!"),
    (solve, [np.eye(2), 1.0], vm.ShapeError, r"solve: b has shape \(\), but must have 2 rows"),
    (solve, [GENERALS, np.ones((3, 3, 1))], vm.ShapeError,
        r"solve: b has shape \(3, 3, 1\), but must match a, of shape"),
    (lower, [np.ones(3), np.ones(3)], vm.ShapeError, "solve_triangular: a has shape"),
    (lambda a: vm.solve_triangular(a, VECTOR, trans=3), [GENERAL], vm.DomainError,
        "solve_triangular: trans is 3, but must be 0"),
    (vm.inverse_spd, [INDEFINITE], vm.DomainError,
        "inverse_spd: a has the eigenvalue -1, but must be positive definite!"),
    (vm.inverse_spd, [np.stack([np.eye(2), INDEFINITE])], np.linalg.LinAlgError,
        r"inverse_spd: a\[1\] has the eigenvalue -1"),
    (vm.inverse_spd, [np.full((2, 2), np.nan)], vm.DomainError,
        r"inverse_spd: a\[0, 0\] is nan, but must be finite!"),
    (vm.inverse_spd, [SKEWED], vm.DomainError,
        r"inverse_spd: a\[0, 1\] is 0.5, but must be 0.1, as a\[1, 0\] is, for a symmetric"),
    (vm.inverse_spd, [LARGES - 5.0 * np.eye(20)], vm.DomainError,
        r"inverse_spd: a\[0, 0\] has the eigenvalue"),
    (vm.mdivide_left_spd, [SKEWED, np.ones(2)], vm.DomainError,
        r"mdivide_left_spd: a\[0, 1\] is 0.5, but must be 0.1"),
    (vm.mdivide_left_tri_low, [np.eye(2), np.ones(3)], vm.ShapeError,
        r"mdivide_left_tri_low: b has shape \(3,\), but must have 2"),
    (vm.mdivide_left_tri_low, [np.diag([1.0, 0.0]), np.ones(2)], vm.DomainError,
        r"mdivide_left_tri_low: a\[1, 1\] is 0.0, but"),
    (vm.mdivide_right, [np.ones((2, 3)), np.eye(2)], vm.ShapeError,
        r"mdivide_right: b has shape \(2, 3\), but must have 2 col"),
    (vm.mdivide_right_spd, [1.0, np.eye(2)], vm.ShapeError,
        r"mdivide_right_spd: b has shape \(\), but must have 2 columns"),
    (vm.mdivide_right_tri_low, [np.ones(2), np.ones((2, 3))], vm.ShapeError,
        r"mdivide_right_tri_low: a has shape \(2, 3\)"),
    (vm.chol2inv, [SKEWED], vm.DomainError,
        r"chol2inv: factor\[0, 1\] is 0.5, but must be 0.0, above the diagonal!"),
    (vm.chol2inv, [np.diag([1.0, 0.0])], vm.DomainError,
        r"chol2inv: factor\[1, 1\] is 0.0, but must be nonzero!"),
    (vm.mdivide_left_spd, [INDEFINITE, np.ones(2)], vm.DomainError,
        "mdivide_left_spd: a has the eigenvalue -1"),
    (vm.chol2inv, [np.ones(3)], vm.ShapeError, "chol2inv: factor has shape"),
    (lambda a: np.linalg.tensorinv(a, ind=0), [np.eye(2)], vm.DomainError,
        "tensorinv: ind is 0, but must be positive!"),
]  # fmt: skip


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSALS)
def test_refusals(f: Any, args: Any, error: type[Exception], message: str) -> None:
    with vm.nested() as tape:
        variables = [vm.var(x) for x in args]
        with pytest.raises(error, match=message):
            f(*variables)
        assert not [entry for entry in tape if entry[0].name in ("inv", "solve", "inverse_spd")]


def test_scipy_linalg_is_imported_when_first_used() -> None:
    code = "import sys, varmat; assert 'scipy.linalg' not in sys.modules, 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(("i", "j"), [(3, 40), (0, 69), (66, 68)])
def test_elements_above_the_diagonal_are_found_in_every_block(i: int, j: int) -> None:
    factor = np.eye(70)
    factor[i, j] = 0.5
    with pytest.raises(
        vm.DomainError,
        match=rf"chol2inv: factor\[{i}, {j}\] is 0.5, but must be 0.0, above the diagonal!",
    ):
        vm.chol2inv(factor)


@pytest.mark.parametrize("a", [
    np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]),
    np.array([[0.3, -0.3], [0.8999999999999999, -0.8999999999999999]]),
    np.array([[1.0, np.inf], [0.0, 1.0]]),
])  # fmt: skip
def test_a_matrix_of_which_only_the_transpose_has_a_zero_pivot(a: Any) -> None:
    """Rounding decides: LAPACK works on the transpose, and only the transpose has a pivot of
    zero.
    """
    for f in (np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(len(a)))):
        with pytest.raises(vm.DomainError, match="a is singular, but must be invertible!"):
            f(vm.var(a))
