"""QR decompositions, with NumPy's signs and with Stan's."""

from __future__ import annotations

import numpy as np

from varmat.core.dispatch import implements, plain
from varmat.core.dual import Dual
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_matrix, fixed, is_watched
from varmat.functions.linalg.lapack import triangular_solve
from varmat.functions.linalg.triangles import triangle_mask
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, array_valued, pair_valued

__all__ = ["qr", "qr_Q", "qr_R", "qr_thin", "qr_thin_Q", "qr_thin_R"]


@operation(stacked=True)
def qr_reduced(a: Plain) -> Plain:
    """Compute the reduced QR decomposition of a square or tall matrix.

    Parameters
    ----------
    a : array_like, shape (..., m, n) with m >= n

    Returns
    -------
    Q : VarMat, shape (..., m, n)
        With orthonormal columns.
    R : VarMat, shape (..., n, n)
        Upper triangular; the signs of its diagonal come from LAPACK.

    Notes
    -----
    With :math:`M = R \\bar R^T - \\bar Q^T Q` the adjoint is :math:`[\\bar Q + Q\\,
    \\mathrm{sym}(M)] R^{-T}`, where sym copies the lower triangle to the upper one [1]_. The matrix
    must have full column rank; otherwise derivatives are not finite. On variables `numpy.linalg.qr`
    gives this for the modes "reduced" and "r"; of a wide matrix the first square block is
    decomposed. The additional columns of the mode "complete" are functions of the first ones, as
    `varmat.qr` says.

    References
    ----------
    .. [1] S. F. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions
           with application in optimum experimental design", arXiv:1001.1654, 2010.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[3.0, 1.0], [4.0, 2.0]])
    >>> vm.gradient(lambda a: np.linalg.qr(a).R[0, 0] ** 2, a).round(12)
    array([[6., 0.],
           [8., 0.]])
    """
    return np.linalg.qr(a)


@qr_reduced.reverse
def qr_reduced_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    (q, u), (gq, gu) = r, g
    m = 0.0 if gu is None else u @ gu.mT
    if gq is not None:
        m = m - gq.mT @ q
    total = q @ (np.tril(m) + np.tril(m, -1).mT)
    if gq is not None:
        total = total + gq
    return triangular_solve(u, total, lower=False, trans=True, right=True)


@qr_reduced.tangent
def qr_reduced_tangent(r: Result, a: Operand) -> Linear:
    q, u = r

    def push(t: Operand) -> Result:
        c = solve_right(t, u)
        p = q.mT @ c
        below = np.where(triangle_mask(np.shape(p), strict=True), p, 0.0)
        difference = below - below.mT
        return c - q @ (p - difference), (p - difference) @ u

    return push


def solve_right(b: Operand, u: Operand) -> Result:
    """``b @ inv(u)`` for upper triangular `u`; differentiable."""
    return solve_triangular(u, b.mT, trans=1).mT


@implements(np.linalg.qr)
def _qr(a: Operand, mode: str = "reduced") -> Result:
    a = as_operand(a, "qr: a")
    check_matrix("qr", "a", a)
    if mode not in ("reduced", "r", "complete"):
        raise TypeError(
            f"qr: mode is {mode!r}, but must be 'reduced', 'complete' or 'r' for a result that has "
            "a derivative!"
        )
    q, u = _reduced(a)
    if mode == "complete":
        q, u = _completed(q, a), _padded(u, np.shape(a)[-2])
    return u if mode == "r" else type(np.linalg.qr(np.eye(1)))(q, u)


def _reduced(a: Operand) -> tuple[Result, Result]:
    """Compute the reduced decomposition of a matrix of any shape; differentiable."""
    m, n = np.shape(a)[-2:]
    q, u = qr_reduced(a if m >= n else a[..., :m])
    return q, np.concatenate([u, q.mT @ a[..., m:]], axis=-1) if m < n else u


def _completed(q: Operand, a: Operand) -> Result:
    """Complete the columns of `q` to a square matrix, as the Householder reflections do;
    differentiable.

    The product of n reflections is ``I - V W V^T`` with a lower trapezoidal V, so with E the first
    n columns of the identity, F the others, Q1 the top and Q2 the bottom of `q`: ``E - q`` is V
    times a square matrix, and the others are ``F + (E - q) (I - Q1)^{-T} Q2^T``. A reflection that
    LAPACK left out, because it had nothing to reflect, is put in: it only turns the sign of its
    column, and I - Q1 is then far from singular."""
    m, n = np.shape(q)[-2:]
    if m == n:
        return q
    while isinstance(a, Dual):  # the signs have no derivative
        a = a.val
    signs = reflection_signs(a) if is_watched(a) else reflection_signs(plain(a))
    h = signs[..., None, :] * q
    remainder = np.linalg.solve((np.eye(n) - h[..., :n, :]).mT, h[..., n:, :].mT)
    return np.concatenate([q, np.eye(m)[:, n:] + (np.eye(m, n) - h) @ remainder], axis=-1)


@operation()
def reflection_signs(a: Plain) -> Plain:
    """-1 for each column in which LAPACK finds nothing to reflect, and 1 for the others; the
    derivative is zero.
    """
    return np.where(np.linalg.qr(a, mode="raw")[1] == 0.0, -1.0, 1.0)


@reflection_signs.reverse
def reflection_signs_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    return np.zeros(np.shape(a))


@reflection_signs.tangent
def reflection_signs_tangent(r: Result, a: Operand) -> Linear:
    return lambda t: np.zeros(np.shape(r))


def _padded(u: Operand, m: int) -> Result:
    """Add rows of zeros below, up to m rows; differentiable."""
    n = np.shape(u)[-2]
    return (
        np.concatenate([u, np.zeros((*np.shape(u)[:-2], m - n, np.shape(u)[-1]))], axis=-2)
        if m > n
        else u
    )


def _unique(function: str, a: Operand, thin: bool) -> tuple[Result, Result]:
    """Stan's decomposition, whose R has no negative element on the diagonal."""
    a = as_operand(a, f"{function}: a")
    check_matrix(function, "a", a)
    q, u = _reduced(a)
    signs = np.where(fixed(np.diagonal(u, axis1=-2, axis2=-1)) < 0.0, -1.0, 1.0)
    positive = signs[..., :, None] * u
    if thin:
        return q * signs[..., None, :], positive
    m = np.shape(a)[-2]
    ones = np.ones((*signs.shape[:-1], m - signs.shape[-1]))
    return _completed(q, a) * np.concatenate([signs, ones], axis=-1)[..., None, :], _padded(
        positive, m
    )


@pair_valued
def qr(a: Operand) -> Result:
    """Compute the QR decomposition with an orthogonal Q and no negative element on the diagonal of
    R.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    Q : VarMat, shape (..., m, m)
    R : VarMat, shape (..., m, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    As in Stan; `numpy.linalg.qr` is the thin decomposition, with the signs of LAPACK. The first
    min(m, n) columns of Q are unique if `a` has full column rank, which derivatives demand. Those
    after them, of a tall matrix, are the ones that Householder reflections give, and so are their
    derivatives: smooth, but a model should depend only on the space that these columns span.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> q, r = vm.qr(vm.var([[3.0], [4.0]]))
    >>> r
    VarMat([[5.],
            [0.]])
    >>> vm.gradient(lambda a: vm.qr(a)[1][0, 0], np.array([[3.0], [4.0]])).round(12)
    array([[0.6],
           [0.8]])
    """
    return _unique("qr", a, thin=False)


@array_valued
def qr_Q(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the orthogonal Q of `varmat.qr`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., m, m)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The derivative is the same as for `varmat.qr`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.qr_Q(a)[1, 0], np.array([[3.0], [4.0]])).round(12)
    array([[-0.096],
           [ 0.072]])
    """
    return _unique("qr_Q", a, thin=False)[0]


@array_valued
def qr_R(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the upper trapezoidal R of `varmat.qr`, as large as the matrix.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., m, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The derivative is the same as for `varmat.qr`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.qr_R(np.array([[3.0], [4.0]]))
    array([[5.],
           [0.]])
    """
    return _unique("qr_R", a, thin=False)[1]


@pair_valued
def qr_thin(a: Operand) -> Result:
    """Compute the QR decomposition of `varmat.qr` without the columns of Q, and rows of zeros in R,
    that a tall matrix does not need.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    Q : VarMat, shape (..., m, k) with k = min(m, n)
    R : VarMat, shape (..., k, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    As for `varmat.qr`: unique, and differentiable, if `a` has full column rank, and of a wide
    matrix if its first m columns are independent.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> q, r = vm.qr_thin(np.array([[-3.0, 1.0], [-4.0, 2.0]]))
    >>> r.round(12)
    array([[ 5. , -2.2],
           [ 0. ,  0.4]])
    """
    return _unique("qr_thin", a, thin=True)


@array_valued
def qr_thin_Q(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the orthonormal columns of `varmat.qr_thin`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., m, k) with k = min(m, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The derivative is the same as for `varmat.qr_thin`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.qr_thin_Q(np.array([[3.0], [4.0]]))
    array([[0.6],
           [0.8]])
    """
    return _unique("qr_thin_Q", a, thin=True)[0]


@array_valued
def qr_thin_R(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the upper triangular R of `varmat.qr_thin`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., k, n) with k = min(m, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The derivative is the same as for `varmat.qr_thin`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.qr_thin_R(a)[0, 0], np.array([[3.0], [4.0]])).round(12)
    array([[0.6],
           [0.8]])
    """
    return _unique("qr_thin_R", a, thin=True)[1]
