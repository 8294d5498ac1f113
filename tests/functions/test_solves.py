"""Linear systems: against 50-digit arithmetic and Stan Math, at the edges, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from matrices import (
    COLUMN_STACK,
    COLUMNS,
    GENERAL,
    GENERALS,
    SPD,
    SPDS,
    VECTOR,
    fold,
    gradients,
    stan_entries,
    stan_error,
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
    return mp.matrix(a.rows, a.cols) + mp.matrix([[a[i, j] if j <= i else 0 for j in range(a.cols)] for i in range(a.rows)])


def triu(a: Any) -> Any:
    return tril(a.T).T


def unit_triu(a: Any) -> Any:
    return mp.matrix([[1 if i == j else a[i, j] if j > i else 0 for j in range(a.cols)] for i in range(a.rows)])


# name -> function, the same in mpmath, arguments, whether the first one is symmetric
EXACT: dict[str, tuple[Any, Any, Any, bool]] = {
    "inv": (inv, lambda a: a**-1, [GENERAL], False),
    "solve": (solve, lambda a, b: a**-1 * b, [GENERAL, COLUMNS], False),
    "solve vector": (solve, lambda a, b: a**-1 * b, [GENERAL, VECTOR], False),
    "lower": (lower, lambda a, b: tril(a) ** -1 * b, [GENERAL, COLUMNS], False),
    "lower transposed": (lower_transposed, lambda a, b: tril(a).T ** -1 * b, [GENERAL, COLUMNS], False),
    "upper": (upper, lambda a, b: triu(a) ** -1 * b, [GENERAL, VECTOR], False),
    "upper unit transposed": (upper_unit_transposed, lambda a, b: unit_triu(a).T ** -1 * b, [GENERAL, COLUMNS], False),
    "cho_solve": (cho_lower, lambda c, b: (tril(c) * tril(c).T) ** -1 * b, [GENERAL, COLUMNS], False),
    "cho_solve upper": (cho_upper, lambda c, b: (triu(c).T * triu(c)) ** -1 * b, [GENERAL, VECTOR], False),
    "chol2inv": (vm.chol2inv, lambda c: (tril(c) * tril(c).T) ** -1, [GENERAL], False),
    "inverse_spd": (vm.inverse_spd, lambda a: a**-1, [SPD], True),
    "mdivide_left_spd": (vm.mdivide_left_spd, lambda a, b: a**-1 * b, [SPD, COLUMNS], True),
    "mdivide_right": (vm.mdivide_right, lambda b, a: b * a**-1, [COLUMNS.T.copy(), GENERAL], False),
}


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name: str) -> None:
    f, exact, args, symmetric = EXACT[name]
    assert worst_error(f, exact, args, symmetric) < 1e-13


STAN = {
    "chol2inv": vm.chol2inv,
    "inverse": vm.inverse,
    "inverse_spd": vm.inverse_spd,
    "mdivide_left": vm.mdivide_left,
    "mdivide_left_spd": vm.mdivide_left_spd,
    "mdivide_left_tri_low": vm.mdivide_left_tri_low,
    "mdivide_right": vm.mdivide_right,
    "mdivide_right_spd": vm.mdivide_right_spd,
    "mdivide_right_tri_low": vm.mdivide_right_tri_low,
}


@pytest.mark.parametrize("entry", [e for e in stan_entries("linear_algebra") if e["function"] in STAN], ids=lambda e: e["id"])
def test_against_stan(entry: Any) -> None:
    name = entry["function"]
    assert stan_error(STAN[name], entry, symmetric=name.endswith("spd")) < 1e-13


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
    (vm.chol2inv, [GENERALS]),
    (vm.inverse_spd, [SPDS]),
    (vm.mdivide_left_spd, [SPD, VECTOR]),
    (vm.mdivide_left_spd, [SPDS, VECTOR]),
    (vm.mdivide_left_spd, [SPDS, COLUMN_STACK]),
    (vm.mdivide_right, [VECTOR, GENERAL]),
    (vm.mdivide_right_spd, [COLUMNS.T, SPD]),
    (vm.mdivide_right_tri_low, [COLUMNS.T, GENERAL]),
    (lambda a: np.linalg.tensorinv(a, ind=1), [np.linspace(-1, 1, 16).reshape(4, 2, 2) ** 2 + np.eye(4).reshape(4, 2, 2)]),
    (np.linalg.tensorsolve, [np.eye(4).reshape(2, 2, 4) + 0.1, np.array([[1.0, 2.0], [3.0, -4.0]])]),
    (lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), [np.eye(4).reshape(4, 2, 2) + 0.1, np.array([[1.0, 2.0], [3.0, -4.0]])]),
    (inv, [np.empty((0, 0))]),
    (solve, [np.empty((0, 0)), np.empty(0)]),
    (solve, [GENERAL, np.empty((3, 0))]),
    (solve, [np.empty((0, 3, 3)), VECTOR]),
    (lower, [np.empty((0, 0)), np.empty((0, 2))]),
    (vm.inverse_spd, [np.empty((2, 0, 0))]),
    (vm.mdivide_left_spd, [SPD, np.empty((3, 0))]),
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
    # Two solves are in the adjoint, so it may lose as much again as the value.
    exact = (lambda a: a**-1) if len(args) == 1 else (lambda a, b: a**-1 * b)
    condition = np.linalg.cond(HILBERT)
    assert condition > 1e10
    assert worst_error(f, exact, args, symmetric=f is vm.mdivide_left_spd) < 10 * condition * np.finfo(float).eps


def test_only_the_named_triangle_is_read() -> None:
    poisoned = np.where(np.tri(3, dtype=bool), GENERAL, np.nan)
    (value,), (adjoint, _) = gradients(lower, [poisoned, VECTOR])
    (clean,), (expected, _) = gradients(lower, [np.tril(GENERAL), VECTOR])
    np.testing.assert_array_equal(value, clean)
    np.testing.assert_array_equal(adjoint, expected)
    spoilt = np.where(np.tri(3, dtype=bool), SPD, np.nan)
    (value,), (adjoint, _) = gradients(vm.mdivide_left_spd, [spoilt, VECTOR])
    _, (expected, _) = gradients(solve, [SPD, VECTOR])
    np.testing.assert_allclose(adjoint, fold(expected), rtol=1e-13)


@pytest.mark.parametrize("bad", [lower, cho_lower])
def test_unit_diagonal_is_not_read(bad: Any) -> None:
    zero = np.array([[0.0, 0.0], [1.0, 2.0]])
    with pytest.raises(vm.DomainError, match=r"solve_triangular: a\[0, 0\] is 0.0, but must be nonzero!"):
        bad(vm.var(zero), np.ones(2))
    np.testing.assert_array_equal(vm.solve_triangular(zero, np.ones(2), lower=True, unit_diagonal=True), [1.0, 0.0])


def test_one_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.linalg.lapack as lapack

    calls: list[str] = []

    def counted(name: str, function: Any) -> Any:
        def call(*args: Any, **settings: Any) -> Any:
            calls.append(name)
            return function(*args, **settings)

        return call

    for module, name in ((lapack, "dgetrf"), (np.linalg, "cholesky"), (np.linalg, "solve"), (np.linalg, "inv"), (np.linalg, "svd")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    for f, expected in (
        (lambda a: vm.mdivide_left(a, VECTOR), ["dgetrf"]),
        (vm.determinant, ["dgetrf"]),
        (vm.log_determinant, ["dgetrf"]),
        (lambda a: vm.mdivide_left_spd(a, VECTOR), ["cholesky"]),
        (vm.log_determinant_spd, ["cholesky"]),
    ):
        calls.clear()
        gradients(f, [SPD])
        assert calls == expected


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
REFUSALS: list[tuple[Any, list[Any], type[Exception], str]] = [
    (inv, [np.ones((2, 3))], vm.ShapeError, r"inv: a has shape \(2, 3\), but must be a square matrix"),
    (inv, [SINGULAR], vm.DomainError, "inv: a is singular, but must be invertible!"),
    (inv, [np.stack([np.eye(2), SINGULAR])], np.linalg.LinAlgError, "inv: a is singular"),
    (solve, [SINGULAR, np.ones(2)], vm.DomainError, "solve: a is singular, but must be invertible!"),
    (solve, [SINGULAR[None], np.ones(2)], np.linalg.LinAlgError, "solve: a is singular"),
    (solve, [np.eye(2), np.ones(3)], vm.ShapeError, r"solve: b has shape \(3,\), but must have 2 rows, as a has!"),
    (solve, [np.eye(2), 1.0], vm.ShapeError, r"solve: b has shape \(\), but must have 2 rows"),
    (solve, [GENERALS, np.ones((3, 3, 1))], vm.ShapeError, r"solve: b has shape \(3, 3, 1\), but must go with a, of shape"),
    (lower, [np.ones(3), np.ones(3)], vm.ShapeError, "solve_triangular: a has shape"),
    (lambda a: vm.solve_triangular(a, VECTOR, trans=3), [GENERAL], vm.DomainError, "solve_triangular: trans is 3, but must be 0"),
    (vm.inverse_spd, [INDEFINITE], vm.DomainError, "inverse_spd: a has the eigenvalue -1, but must be positive definite!"),
    (vm.inverse_spd, [np.stack([np.eye(2), INDEFINITE])], np.linalg.LinAlgError, r"inverse_spd: a\[1\] has the eigenvalue -1"),
    (vm.inverse_spd, [np.full((2, 2), np.nan)], vm.DomainError, "inverse_spd: a has elements that are not finite"),
    (vm.mdivide_left_spd, [INDEFINITE, np.ones(2)], vm.DomainError, "mdivide_left_spd: a has the eigenvalue -1"),
    (vm.chol2inv, [np.ones(3)], vm.ShapeError, "chol2inv: factor has shape"),
    (lambda a: np.linalg.tensorinv(a, ind=0), [np.eye(2)], vm.DomainError, "tensorinv: ind is 0, but must be positive!"),
]


@pytest.mark.parametrize(("f", "args", "error", "message"), REFUSALS)
def test_refusals(f: Any, args: Any, error: type[Exception], message: str) -> None:
    with vm.nested() as tape:
        variables = [vm.var(x) for x in args]
        with pytest.raises(error, match=message):
            f(*variables)
        assert not [entry for entry in tape if entry[0].name in ("inv", "solve", "inverse_spd")]


def test_names_of_stan() -> None:
    from varmat.functions import solves

    assert vm.inverse is solves.inv
    assert vm.mdivide_left is solves.solve


def test_scipy_linalg_is_imported_when_first_used() -> None:
    code = "import sys, varmat; assert 'scipy.linalg' not in sys.modules, 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
