"""Pseudo-inverses and least squares."""

from __future__ import annotations

import numpy as np

from varmat.core.dispatch import implements, plain
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import check_matrix, check_square
from varmat.functions.linalg.lapack import check_svd
from varmat.functions.linalg.matmul import matmul
from varmat.functions.linalg.singular_values import svd_vh
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import column, uncolumn
from varmat.typing import Adjoint, ArrayLike, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["generalized_inverse"]


@operation(stacked=True)
@array_valued
def pinv(a: Plain, rcond: Operand = None, rtol: Operand = None) -> Plain | Saved:
    """Compute the pseudo-inverse of Moore and Penrose.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    rcond, rtol : float or array_like, optional
        Singular values below this fraction of the largest one count as zero.

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
    With :math:`P = A^+`, :math:`dP = -P\\, dA\\, P + P P^T dA^T (I - A P) + (I - P A)\\, dA^T P^T
    P` [1]_. The rank is taken to be constant: where it changes, the pseudo-inverse jumps and has no
    derivative. Where a cutoff drops singular values that are not zero, `P` belongs to the part of
    `A` that is kept, which turns against the other: the change of that part stands for :math:`dA`.
    Also called ``varmat.generalized_inverse``.

    References
    ----------
    .. [1] G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
           squares problems whose variables separate", SIAM Journal on Numerical Analysis 10, 1973.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.pinv(a)[0, 0], np.array([[1.0], [2.0]]))
    array([[ 0.12],
           [-0.16]])
    """
    check_matrix("pinv", "a", a)
    check_svd("pinv", a)
    cutoff = rtol if rcond is None else rcond
    # the default, an empty matrix, or two cutoffs at once, which NumPy refuses
    if cutoff is None or not np.size(a) or (rcond is not None and rtol is not None):
        arguments = {name: x for name, x in (("rcond", rcond), ("rtol", rtol)) if x is not None}
        return np.array(np.linalg.pinv(a, **arguments))
    r, basis = _inverse_and_basis(a, cutoff)
    return Saved(r, basis=basis if _is_cut(a, basis) else None)


def _inverse_and_basis(a: Operand, cutoff: ArrayLike | None) -> tuple[Result, Result]:
    """Compute the pseudo-inverse and its ingredients: the singular vectors and values, and their
    inverses, zero where dropped.
    """
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    saved = s > np.asarray(cutoff)[..., None] * np.max(s, axis=-1, keepdims=True, initial=0.0)
    inverse = np.where(saved, 1.0 / np.where(saved, s, 1.0), 0.0)
    return (vt.mT * inverse[..., None, :]) @ u.mT, (u, s, vt, inverse)


def _is_cut(a: Operand, basis: Plain) -> bool:
    """Tell whether singular values were dropped that are more than rounding errors."""
    _, s, _, inverse = basis
    if inverse.all():
        return False
    rounding = (
        max(np.shape(a)[-2:]) * np.finfo(float).eps * np.max(s, axis=-1, keepdims=True, initial=0.0)
    )
    return bool(np.any((inverse == 0) & (s > rounding)))


def _triple_product(x: Operand, y: Operand, z: Operand) -> Result:
    """``x @ y @ z`` in the order that keeps the long side of a matrix from being squared;
    differentiable.
    """
    p, q = np.shape(x)[-2:]
    s, t = np.shape(z)[-2:]
    return (x @ y) @ z if p * s * (q + t) <= q * t * (p + s) else x @ (y @ z)


@operation()
def coupled(t: Plain, p: Plain, b: Plain, *, basis: Plain) -> Plain:
    """Solve ``x = t + b x^T p^T + p^T x^T b``, for the pseudo-inverse `p` of the kept part of a
    matrix and the rest `b`.

    In the basis of the singular vectors each element is coupled with the one across the diagonal,
    and the factor is the quotient of a dropped singular value and a kept one. The map on the right
    is its own adjoint."""
    u, s, vt, inverse = basis
    dropped = np.where(inverse == 0, s, 0.0)
    q = dropped[..., :, None] * inverse[..., None, :]
    q = q + q.mT
    x = _triple_product(u.mT, t, vt.mT)
    return t + _triple_product(u, q * (x.mT + q * x) / (1.0 - q * q), vt)


@coupled.reverse
def coupled_reverse(
    g: Adjoint, r: Plain, t: Plain, p: Plain, b: Plain, basis: Plain
) -> tuple[Thunk, ...]:
    c = coupled(g, p, b, basis=basis)
    return (
        lambda: c,
        lambda: _triple_product(c.mT, b, r.mT) + _triple_product(r.mT, b, c.mT),
        lambda: _triple_product(c, p, r) + _triple_product(r, p, c),
    )


@coupled.tangent
def coupled_tangent(
    r: Result, t: Operand, p: Operand, b: Operand, basis: Plain
) -> tuple[Linear, ...]:
    def push(change: Operand) -> Result:
        return coupled(change, p, b, basis=basis)

    return (
        push,
        lambda d: push(_triple_product(b, r.mT, d.mT) + _triple_product(d.mT, r.mT, b)),
        lambda d: push(_triple_product(d, r.mT, p.mT) + _triple_product(p.mT, r.mT, d)),
    )


def _of_kept(t: Operand, a: Operand, p: Operand, basis: Plain) -> Result:
    """Differentiate the part of `a` that is kept along `t`, if anything is dropped; differentiable,
    and its own adjoint.

    The subspaces of the kept singular vectors turn, and take those of the others with them (Stewart
    & Sun 1990, ch. V)."""
    if basis is None:
        return t
    u, s, vt, inverse = basis
    saved = matmul.known((u * np.where(inverse == 0, 0.0, s)[..., None, :]) @ vt, a, p @ a)
    left = _triple_product(a, p, t)
    return coupled(left + _triple_product(t - left, p, a), p, a - saved, basis=basis)


@pinv.reverse
def pinv_reverse(
    g: Adjoint,
    r: Plain,
    a: Plain,
    rcond: ArrayLike | None,
    rtol: ArrayLike | None,
    basis: Plain = None,
) -> Adjoint:
    left, right = _triple_product(g.mT, r, r.mT), _triple_product(r.mT, r, g.mT)
    total = (
        left
        - _triple_product(a, r, left)
        + right
        - _triple_product(right, r, a)
        - _triple_product(r.mT, g, r.mT)
    )
    return _of_kept(total, a, r, basis)


@pinv.tangent
def pinv_tangent(
    r: Result, a: Operand, rcond: ArrayLike | None, rtol: ArrayLike | None, basis: Plain = None
) -> Linear:
    plain(a)  # a recording does not hold: other singular values may be cut at the next run

    def push(t: Operand) -> Result:
        t = _of_kept(t, a, r, basis)
        left, right = _triple_product(r, r.mT, t.mT), _triple_product(t.mT, r.mT, r)
        return (
            left
            - _triple_product(left, a, r)
            + right
            - _triple_product(r, a, right)
            - _triple_product(r, t, r)
        )

    return push


_NOT_GIVEN = np._NoValue


@implements(np.linalg.pinv)
def _pinv(
    a: Operand,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rtol: Operand = _NOT_GIVEN,
) -> Result:
    a = as_operand(a, "pinv: a")
    if hermitian:
        check_square("pinv", "a", np.shape(a))
        a = symmetric(a)
    if rtol is None:  # None stands for the default of the array API
        check_matrix("pinv", "a", a)
        rtol = max(np.shape(a)[-2:]) * float(np.finfo(float).eps)
    return pinv(a, rcond=rcond, rtol=None if rtol is _NOT_GIVEN else rtol)


def _cutoff(rcond: Operand, shape: tuple[int, ...]) -> float:
    """Return the fraction of the largest singular value below which the others count as zero, as
    `numpy.linalg.lstsq` reads `rcond`.
    """
    eps = float(np.finfo(float).eps)
    if rcond is None:
        return max(shape) * eps
    return float(rcond) if rcond >= 0 else eps


@operation()
def lstsq_solution(a: Plain, b: Plain, rcond: ArrayLike | None = None) -> Saved:
    """Solution of least norm and singular values: the differentiable part of
    `numpy.linalg.lstsq`.
    """
    check_svd("lstsq", a)
    p, basis = _inverse_and_basis(a, _cutoff(rcond, a.shape))
    return Saved((p @ b, basis[1]), p=p, basis=basis, cut=_is_cut(a, basis))


@lstsq_solution.reverse
def lstsq_solution_reverse(
    g: Adjoint,
    r: Plain,
    a: Plain,
    b: Plain,
    rcond: ArrayLike | None,
    p: Plain,
    basis: Plain,
    cut: bool,
) -> tuple[Thunk, ...]:
    # Golub and Pereyra, as in pinv, applied to b without forming the adjoint of the pseudo-inverse.
    vector = b.ndim == 1
    x, b = column(r[0], vector), column(b, vector)
    c = np.zeros(x.shape) if g[0] is None else column(g[0], vector)
    z = p.T @ c

    def of_a() -> Result:
        total = (b - a @ x) @ (p @ z).T - z @ x.T + (p.T @ x) @ (c - p @ (a @ c)).T
        total = _of_kept(total, a, p, basis if cut else None)
        return total if g[1] is None else total + (basis[0] * g[1]) @ basis[2]

    return of_a, lambda: uncolumn(z, vector)


@lstsq_solution.tangent
def lstsq_solution_tangent(
    r: Result, a: Operand, b: Operand, rcond: ArrayLike | None, p: Operand, basis: Plain, cut: bool
) -> tuple[Linear, ...]:
    plain(a)  # as in pinv
    vector, basis_if_cut = np.ndim(b) == 1, basis if cut else None
    p, (u, s, vt) = (
        pinv.known(Saved(p, basis=basis_if_cut), a),
        svd_vh.known(basis[:3], a, full_matrices=False),
    )
    x, b = column(r[0], vector), column(b, vector)

    def of_a(t: Operand) -> Result:
        of_s = np.sum(u * (t @ vt.mT), axis=-2)
        t = _of_kept(t, a, p, basis_if_cut)
        lost = t.mT @ (p.mT @ x)
        change = -(p @ (t @ x)) + p @ (p.mT @ (t.mT @ (b - a @ x))) + lost - p @ (a @ lost)
        return uncolumn(change, vector), of_s

    return of_a, lambda t: (uncolumn(p @ column(t, vector), vector), np.zeros(np.shape(s)))


@implements(np.linalg.lstsq)
def lstsq(a: Operand, b: Operand, rcond: ArrayLike | None = None) -> Result:
    """Compute the least squares solution of ``a @ x = b``: `numpy.linalg.lstsq`.

    Parameters
    ----------
    a : array_like, shape (m, n)
    b : array_like, shape (m,) or (m, k)
    rcond : float, optional
        Singular values below this fraction of the largest one count as zero; by default ``max(m,
        n)`` times the machine precision.

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
    The derivative is the same as for ``pinv(a, rcond) @ b``: the rank is taken to be constant.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> b = np.array([1.0, 0.0, 2.0])
    >>> vm.gradient(lambda b: np.linalg.lstsq(a, b)[0][1], b).round(12) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    a, b = as_operand(a, "lstsq: a"), as_operand(b, "lstsq: b")
    if np.ndim(a) != 2 or np.ndim(b) not in (1, 2) or np.shape(b)[0] != np.shape(a)[0]:
        shapes = f"{np.shape(a)} and {np.shape(b)}"
        raise ShapeError(
            f"lstsq: a and b have shapes {shapes}, but must be a matrix and a vector or matrix "
            "with the same number of rows!"
        )
    x, s = lstsq_solution(a, b, rcond=rcond)
    (m, n), values = np.shape(a), plain(s)
    rank = int(np.count_nonzero(values > _cutoff(rcond, (m, n)) * np.max(values, initial=0.0)))
    residuals = np.empty(0)
    if rank == n < m:
        one_column: bool = np.ndim(b) == 1
        residuals = np.sum(np.square(b - a @ x), axis=0, keepdims=one_column)
    return x, residuals, rank, s


generalized_inverse = alias("generalized_inverse", pinv)
