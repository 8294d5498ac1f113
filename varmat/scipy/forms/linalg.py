"""Forms of `scipy.linalg`."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.core.variables import value
from varmat.derivatives.forward import jvp
from varmat.functions.checks import misfit
from varmat.functions.linalg.matrix_functions import expm
from varmat.functions.linalg.triangular_solves import cho_solve, solve_triangular
from varmat.functions.rarer.linalg.decompositions import eigh as generalised_eigh
from varmat.functions.rarer.linalg.decompositions import eigvalsh as generalised_eigvalsh
from varmat.functions.rarer.linalg.decompositions import lu, polar_decompose
from varmat.functions.rarer.linalg.matrix_equations import solve_continuous_lyapunov
from varmat.typing import Operand, Result, Setting

_POSITIVE = ("pos", "positive definite")
_SYMMETRIC = ("sym", "symmetric", "her", "hermitian")
_TRIANGULAR = ("upper triangular", "lower triangular")
_GENERAL = (None, "gen", "general", "banded")


def _array(x: Operand) -> Result:
    return x if is_differentiable(x) else np.asarray(x)


def _symmetric(a: Operand, lower: bool) -> Result:
    """Mirror one triangle, because SciPy does not read the other one."""
    part = np.tril(a) if lower else np.triu(a)
    remainder = np.tril(a, -1) if lower else np.triu(a, 1)
    return part + np.matrix_transpose(remainder)


# --- systems ---


def solve(
    a: Operand,
    b: Operand,
    lower: bool = False,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Result:
    a, b = _array(a), _array(b)
    if assume_a in _POSITIVE:
        return cho_solve(cho_factor(a, lower), b)
    if assume_a in _TRIANGULAR:
        return solve_triangular(a, b, lower=assume_a == _TRIANGULAR[1], trans=int(transposed))
    if assume_a in ("diagonal", "tridiagonal"):
        a = np.triu(np.tril(a, assume_a == "tridiagonal"), -(assume_a == "tridiagonal"))
    elif assume_a in _SYMMETRIC:
        a = _symmetric(a, lower)
    elif assume_a not in _GENERAL:
        raise ValueError(f"solve: assume_a is {assume_a!r}, but must be a structure SciPy names!")
    return np.linalg.solve(np.matrix_transpose(a) if transposed else a, b)


def lu_factor(a: Operand) -> Result:
    a = _array(a)
    if np.ndim(a) != 2 or np.shape(a)[0] != np.shape(a)[1]:
        raise misfit("lu_factor", "a", np.shape(a), "be a square matrix")
    permutation, lower, upper = lu(a, p_indices=True)
    rows, requested, pivots = list(range(len(a))), np.argsort(permutation), []
    for i, row in enumerate(requested.tolist()):
        pivots.append(rows.index(row))
        rows[i], rows[pivots[i]] = rows[pivots[i]], rows[i]
    return np.tril(lower, -1) + upper, np.array(pivots, np.int32)


def lu_solve(lu_and_piv: tuple[Operand, Operand], b: Operand, trans: int = 0) -> Result:
    lu, pivots = lu_and_piv
    order = np.arange(len(pivots))
    for i, j in enumerate(np.asarray(pivots)):
        order[[i, j]] = order[[j, i]]
    b = _array(b)
    if not trans:
        y = solve_triangular(lu, b[order], lower=True, unit_diagonal=True)
        return solve_triangular(lu, y, lower=False)
    y = solve_triangular(lu, b, lower=False, trans=1)
    return solve_triangular(lu, y, lower=True, trans=1, unit_diagonal=True)[np.argsort(order)]


def lstsq(a: Operand, b: Operand, cond: float | None = None) -> Result:
    x, remainder, rank, s = np.linalg.lstsq(
        a, b, float(np.finfo(float).eps) if cond is None else cond
    )
    return x, remainder[0] if np.ndim(b) == 1 and np.size(remainder) else remainder, rank, s


def pinv(a: Operand, *, rtol: float | None = None) -> Result:
    least = max(np.shape(a)[-2:]) * np.finfo(float).eps
    return np.linalg.pinv(a, rtol=least if rtol is None else rtol)


def pinvh(a: Operand, rtol: float | None = None, lower: bool = True) -> Result:
    return pinv(_symmetric(a, lower), rtol=rtol)


solve_lyapunov = solve_continuous_lyapunov


# --- factors ---


def cholesky(a: Operand, lower: bool = False) -> Result:
    return np.linalg.cholesky(a, upper=not lower)


def cho_factor(a: Operand, lower: bool = False) -> Result:
    """Factorise `a`; the other triangle is zero, where SciPy before 1.18 keeps elements of `a`."""
    return cholesky(a, lower), lower


def qr(a: Operand, mode: str = "full", pivoting: bool = False) -> Result:
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: mode is {mode!r}, but must be 'full', 'r' or 'economic'!")
    permutation = []
    if pivoting:
        import scipy.linalg

        permutation = [scipy.linalg.qr(value(a), mode="r", pivoting=True)[1]]
        a = a[..., permutation[0]]
    q, r = np.linalg.qr(a, "reduced" if mode == "economic" else "complete")
    return ((r,) if mode == "r" else (q, r)) + tuple(permutation)


polar = polar_decompose


# --- eigenvalues ---


def eig(a: Operand) -> Result:
    """Compute eigenvalues, complex also if all are real, as in SciPy, and eigenvectors."""
    values, vectors = np.linalg.eig(a)
    return values + 0j, vectors


def eigvals(a: Operand) -> Result:
    return np.linalg.eigvals(a) + 0j


def eigh(
    a: Operand,
    b: Operand = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    type: int = 1,
    subset_by_index: Setting = None,
) -> Result:
    chosen = slice(None)
    if subset_by_index is not None:
        chosen = slice(subset_by_index[0], subset_by_index[1] + 1)
    if eigvals_only:
        return generalised_eigvalsh(a, b, lower, type)[..., chosen]
    values, vectors = generalised_eigh(a, b, lower, type)
    return values[..., chosen], vectors[..., chosen]


def eigvalsh(
    a: Operand,
    b: Operand = None,
    *,
    lower: bool = True,
    type: int = 1,
    subset_by_index: Setting = None,
) -> Result:
    return eigh(a, b, lower=lower, eigvals_only=True, type=type, subset_by_index=subset_by_index)


def eigh_tridiagonal(d: Operand, e: Operand, eigvals_only: bool = False) -> Result:
    return eigh(np.diag(d) + np.diag(e, -1), eigvals_only=eigvals_only)


def eigvalsh_tridiagonal(d: Operand, e: Operand) -> Result:
    return eigh_tridiagonal(d, e, True)


# --- functions of matrices, and matrices of a structure ---


def expm_frechet(
    A: Operand, E: Operand, method: str | None = None, compute_expm: bool = True
) -> Result:
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(f"expm_frechet: method is {method!r}, but must be one of SciPy's!")
    both = jvp(expm, (A,), (E,))
    return both if compute_expm else both[1]


def diagsvd(s: Operand, M: int, N: int) -> Result:
    return np.eye(M, len(s)) * s @ np.eye(len(s), N)


def fiedler(a: Operand) -> Result:
    return np.abs(np.subtract.outer(a, a))


def leslie(f: Operand, s: Operand) -> Result:
    return np.concatenate([_array(f)[None], np.eye(len(s), len(f)) * _array(s)[:, None]])


kron = np.kron
