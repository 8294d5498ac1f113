"""Pseudo-inverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.dispatch import implements, plain
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import check_matrix, check_square
from varmat.functions.factorisations import svd_vh
from varmat.functions.lapack import check_svd
from varmat.functions.solves import column, symmetric, uncolumn

__all__ = ["generalized_inverse"]


@operation(stacked=True)
def pinv(a: Any, rcond: Any = None, rtol: Any = None) -> Any:
    """The pseudo-inverse of Moore and Penrose.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    rcond, rtol : float or array_like, optional
        Singular values below so much of the largest one count as zero.

    Returns
    -------
    VarMat, shape (..., n, m)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`P = A^+`, :math:`dP = -P\\, dA\\, P + P P^T dA^T (I - A P) + (I - P A)\\, dA^T P^T P` [1]_. The rank is taken to
    be constant: where it changes, the pseudo-inverse jumps and has no derivative. Also called ``varmat.generalized_inverse``.

    References
    ----------
    .. [1] G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
       separate", SIAM Journal on Numerical Analysis 10, 1973.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.pinv(a)[0, 0], np.array([[1.0], [2.0]]))
    array([[ 0.12],
           [-0.16]])
    """
    check_matrix("pinv", "a", a)
    check_svd("pinv", a)
    return np.array(np.linalg.pinv(a, **_cutoffs(rcond, rtol)))


def _cutoffs(rcond: Any, rtol: Any) -> dict[str, Any]:
    return {name: x for name, x in (("rcond", rcond), ("rtol", rtol)) if x is not None}


def _product(x: Any, y: Any, z: Any) -> Any:
    """``x @ y @ z`` in the order that keeps the long side of a matrix from being squared; differentiable."""
    p, q = np.shape(x)[-2:]
    s, t = np.shape(z)[-2:]
    return (x @ y) @ z if p * s * (q + t) <= q * t * (p + s) else x @ (y @ z)


@pinv.reverse
def pinv_reverse(g: Any, r: Any, a: Any, rcond: Any, rtol: Any) -> Any:
    left, right = _product(g.mT, r, r.mT), _product(r.mT, r, g.mT)
    return left - _product(a, r, left) + right - _product(right, r, a) - _product(r.mT, g, r.mT)


@pinv.tangent
def pinv_tangent(r: Any, a: Any, rcond: Any, rtol: Any) -> Any:
    def push(t: Any) -> Any:
        left, right = _product(r, r.mT, t.mT), _product(t.mT, r.mT, r)
        return left - _product(left, a, r) + right - _product(r, a, right) - _product(r, t, r)

    return push


@implements(np.linalg.pinv)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    a = as_operand(a, "pinv: a")
    if hermitian:
        check_square("pinv", "a", np.shape(a))
        a = symmetric(a)
    return pinv(a, rcond=rcond, rtol=None if rtol is getattr(np, "_NoValue", None) else rtol)


def _cutoff(rcond: Any, shape: tuple[int, ...]) -> float:
    """The fraction of the largest singular value below which the others count as zero, as `numpy.linalg.lstsq` reads `rcond`."""
    eps = float(np.finfo(float).eps)
    if rcond is None:
        return max(shape) * eps
    return float(rcond) if rcond >= 0 else eps


@operation()
def lstsq_solution(a: Any, b: Any, rcond: Any = None) -> Any:
    """Solution of least norm and singular values: the differentiable part of `numpy.linalg.lstsq`."""
    check_svd("lstsq", a)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    kept = s > _cutoff(rcond, a.shape) * np.max(s, initial=0.0)
    p = (vt.T * np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)) @ u.T
    return Saved((p @ b, s), p=p, u=u, vt=vt)


@lstsq_solution.reverse
def lstsq_solution_reverse(g: Any, r: Any, a: Any, b: Any, rcond: Any, p: Any, u: Any, vt: Any) -> Any:
    # Golub and Pereyra, as in pinv, applied to b without forming the adjoint of the pseudo-inverse.
    vector = b.ndim == 1
    x, b = column(r[0], vector), column(b, vector)
    c = np.zeros(x.shape) if g[0] is None else column(g[0], vector)
    z = p.T @ c

    def of_a() -> Any:
        total = (b - a @ x) @ (p @ z).T - z @ x.T + (p.T @ x) @ (c - p @ (a @ c)).T
        return total if g[1] is None else total + (u * g[1]) @ vt

    return of_a, lambda: uncolumn(z, vector)


@lstsq_solution.tangent
def lstsq_solution_tangent(r: Any, a: Any, b: Any, rcond: Any, p: Any, u: Any, vt: Any) -> Any:
    vector, s = np.ndim(b) == 1, plain(r[1])
    p, (u, _, vt) = pinv.known(p, a), svd_vh.known((u, s, vt), a, full_matrices=False)
    x, b = column(r[0], vector), column(b, vector)

    def of_a(t: Any) -> Any:
        lost = t.mT @ (p.mT @ x)
        change = -(p @ (t @ x)) + p @ (p.mT @ (t.mT @ (b - a @ x))) + lost - p @ (a @ lost)
        return uncolumn(change, vector), np.sum(u * (t @ vt.mT), axis=-2)

    return of_a, lambda t: (uncolumn(p @ column(t, vector), vector), np.zeros(np.shape(s)))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least squares solution of ``a @ x = b``: `numpy.linalg.lstsq`.

    Parameters
    ----------
    a : array_like, shape (m, n)
    b : array_like, shape (m,) or (m, k)
    rcond : float, optional
        Singular values below so much of the largest one count as zero; by default ``max(m, n)`` times the machine precision.

    Returns
    -------
    x : VarMat, shape (n,) or (n, k)
        The solution, of least norm if `a` has not full column rank.
    residuals : VarMat, shape (1,) or (k,), or (0,)
        Sums of squared residuals; empty if the rank is less than n, or m is not more than n.
    rank : int
    s : VarMat, shape (min(m, n),)
        The singular values.

    Notes
    -----
    The derivative is that of ``pinv(a) @ b``: the rank is taken to be constant.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> vm.gradient(lambda b: np.linalg.lstsq(a, b)[0][1], np.array([1.0, 0.0, 2.0])).round(12) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    a, b = as_operand(a, "lstsq: a"), as_operand(b, "lstsq: b")
    if np.ndim(a) != 2 or np.ndim(b) not in (1, 2) or np.shape(b)[0] != np.shape(a)[0]:
        shapes = f"{np.shape(a)} and {np.shape(b)}"
        raise ShapeError(f"lstsq: a and b have shapes {shapes}, but must be a matrix and a vector or matrix of as many rows!")
    x, s = lstsq_solution(a, b, rcond=rcond)
    (m, n), values = np.shape(a), plain(s)
    rank = int(np.count_nonzero(values > _cutoff(rcond, (m, n)) * np.max(values, initial=0.0)))
    residuals = np.empty(0)
    if rank == n < m:
        one_column: Any = np.ndim(b) == 1
        residuals = np.sum(np.square(b - a @ x), axis=0, keepdims=one_column)
    return x, residuals, rank, s


generalized_inverse = pinv
