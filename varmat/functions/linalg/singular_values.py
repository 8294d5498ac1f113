"""Singular value decompositions.

Derivatives belong to one smooth choice of the vectors near the point, as for eigenvectors (see
`varmat.functions.linalg.eigenvalues`). They are meaningful for functions that do not depend on the
choice, such as singular values and ``u @ vt``."""

from __future__ import annotations

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.operation import as_operand, is_differentiable, operation
from varmat.functions.checks import check_matrix, check_square
from varmat.functions.linalg.eigenvalues import check_vectors, reciprocal, rounding_tolerance, turn
from varmat.functions.linalg.lapack import check_svd
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, array_valued, triple_valued

__all__ = ["singular_values", "svd", "svd_U", "svd_V"]


@operation(stacked=True)
def svd_vh(a: Plain, full_matrices: bool = True) -> Plain:
    """Compute the singular value decomposition ``a = u @ diag(s) @ vt``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)
    full_matrices : bool
        Complete `u` and `vt` to square matrices. The additional vectors span the complement; which
        ones they are is not determined, and a function of them should not depend on it.

    Returns
    -------
    u : VarMat, shape (..., m, m) or (..., m, k) with k = min(m, n)
    s : VarMat, shape (..., k)
        In descending order.
    vt : VarMat, shape (..., n, n) or (..., k, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The rule is from [1]_, but written so that repeated singular values and zero ones divide by
    different things. With :math:`J = U^T \\bar U - \\bar U^T U` and
    :math:`K = V^T \\bar V - \\bar V^T V` it is
    :math:`\\tfrac12 [(J + K)_{ij} / (\\sigma_j - \\sigma_i) +
    (J - K)_{ij} / (\\sigma_j + \\sigma_i)]`. Between equal singular values the first part is not
    determined by the adjoints. There the reverse pass raises a `DomainError`, also for second
    derivatives of the singular values alone; tangents of the vectors are nan. For ``u @ vt``, the
    orthogonal polar factor, use `varmat.polar_decompose`.

    References
    ----------
    .. [1] J. Townsend, "Differentiating the singular value decomposition", 2016.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> vm.gradient(lambda a: np.sum(np.linalg.svd(a).S ** 2), a).round(12)
    array([[2., 4.],
           [0., 6.]])
    """
    check_svd("svd", a)
    return np.linalg.svd(a, full_matrices)


def _inverse_sums_and_gaps(s: Plain, n: int) -> tuple[Result, Result, Result]:
    """``1 / s_j``, ``1 / (s_j + s_i)`` and ``1 / (s_j - s_i)``, zero where the divisor is;
    differentiable.
    """
    tolerance = rounding_tolerance(s, n)
    row, col = s[..., None, :], s[..., :, None]
    return (
        reciprocal(s, tolerance)[..., None, :],
        reciprocal(row + col, tolerance[..., None]),
        reciprocal(row - col, tolerance[..., None]),
    )


OF_GENERAL = "matrix_exp, inverse, pinv, polar_decompose or log_determinant"


def _skew(x: Operand, g: Adjoint, k: int) -> Result:
    """``x^T g - g^T x`` for the first k columns of `x`; zero if nothing depends on them."""
    if g is None:
        return 0.0
    p = x[..., :k].mT @ g[..., :k]
    return p - p.mT


def _complement(x: Operand, g: Adjoint, k: int) -> Result:
    """Return the part of the adjoint of the first k columns of orthonormal `x` that leads out of
    their span.

    The other columns, if there are any, turn against the first ones.
    """
    x1, g1 = x[..., :k], g[..., :k]
    return g1 - x1 @ (x1.mT @ g1) - x[..., k:] @ (g[..., k:].mT @ x1)


@svd_vh.reverse
def svd_vh_reverse(g: Adjoint, r: Plain, a: Plain, full_matrices: bool) -> Adjoint:
    u, s, v = r[0], r[1], r[2].mT
    gu, gs, gv = g[0], g[1], None if g[2] is None else g[2].mT
    k = s.shape[-1]
    u1, v1 = u[..., :k], v[..., :k]
    total = np.zeros(a.shape) if gs is None else (u1 * gs[..., None, :]) @ v1.mT
    if gu is None and gv is None:
        return total
    inverse, sums, gaps = _inverse_sums_and_gaps(s, max(a.shape[-2:]))
    used = [None if x is None else x[..., :k] for x in (gu, gv)]
    check_vectors("svd", "singular values", OF_GENERAL, gaps, *used)
    j, k_ = _skew(u, gu, k), _skew(v, gv, k)
    total += u1 @ (0.5 * ((j + k_) * gaps + (j - k_) * sums)) @ v1.mT
    if gu is not None:
        total += (_complement(u, gu, k) * inverse) @ v1.mT
    if gv is not None:
        total += u1 @ (_complement(v, gv, k) * inverse).mT
    return total


@svd_vh.tangent
def svd_vh_tangent(r: Result, a: Operand, full_matrices: bool) -> Linear:
    u, s, v = r[0], r[1], r[2].mT
    k = np.shape(s)[-1]
    u1, v1 = u[..., :k], v[..., :k]
    inverse, sums, gaps = _inverse_sums_and_gaps(s, max(np.shape(a)[-2:]))

    def turned(x: Operand, inside: Operand, out: Operand) -> Result:
        """Compute the tangent of `x`: its first columns turn among themselves, and out of their
        span; the others make room.
        """
        x1, remainder = x[..., :k], x[..., k:]
        first = x1 @ inside + out - x1 @ (x1.mT @ out)
        return (
            np.concatenate([first, -(x1 @ (first.mT @ remainder))], axis=-1)
            if np.shape(remainder)[-1]
            else first
        )

    def push(t: Operand) -> Result:
        p = u1.mT @ t @ v1
        even, odd = turn(gaps, 0.5 * (p + p.mT)), 0.5 * (p - p.mT) * sums
        du = turned(u, even + odd, (t @ v1) * inverse)
        dv = turned(v, even - odd, (t.mT @ u1) * inverse)
        return du, np.diagonal(p, axis1=-2, axis2=-1), dv.mT

    return push


@implements(np.linalg.svd)
def _svd(
    a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Result:
    a = as_operand(a, "svd: a")
    check_matrix("svd", "a", a)
    if hermitian:
        check_square("svd", "a", np.shape(a))
        a = symmetric(a)
    return svd_vh(a, full_matrices) if compute_uv else singular_values(a)


@implements(np.linalg.svdvals)
@array_valued
def singular_values(a: Operand) -> Result:
    """Compute the singular values of a matrix in descending order: `numpy.linalg.svdvals`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., min(m, n))

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint is :math:`U\\, \\mathrm{diag}(\\bar\\sigma)\\, V^T`; at a singular value of zero
    this is the derivative to one side. Second derivatives at repeated singular values are refused:
    they need the rotation of the vectors among themselves.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.svdvals(a)[0], np.array([[3.0, 0.0], [0.0, 1.0]]))
    array([[1., 0.],
           [0., 0.]])
    """
    a = as_operand(a, "singular_values: a")
    check_matrix("singular_values", "a", a)
    if is_differentiable(a):
        return svd_vh(a, False)[1]
    check_svd("singular_values", a)
    return np.linalg.svdvals(a)


@triple_valued
def svd(a: Operand) -> Result:
    """Compute the thin singular value decomposition ``a = u @ diag(s) @ v.T``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    u : VarMat, shape (..., m, k) with k = min(m, n)
    s : VarMat, shape (..., k)
        In descending order.
    v : VarMat, shape (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    As in Stan, and unlike `numpy.linalg.svd`, which returns the transpose of `v`, and square
    matrices unless it is called with ``full_matrices=False``. A column of `u` and the one of `v`
    have their sign from LAPACK, and share it. The derivatives are the same as for
    `numpy.linalg.svd`: derivatives of the vectors of equal singular values, and second derivatives
    there, are refused.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> u, s, v = vm.svd(vm.var([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    >>> u.shape, s, v.shape
    ((3, 2), VarMat([3., 1.]), (2, 2))
    """
    return _thin_svd("svd", a)


@array_valued
def svd_U(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the left singular vectors of a matrix, in columns: the first of `varmat.svd`.

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
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The derivative is the same as for `varmat.svd`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.svd_U(a)[0, 0] ** 2, np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([[0., 0.],
           [0., 0.]])
    """
    return _thin_svd("svd_U", a)[0]


@array_valued
def svd_V(a: Operand) -> Result:  # noqa: N802 - Stan's name
    """Compute the right singular vectors of a matrix, in columns: the last of `varmat.svd`, the
    transpose of NumPy's ``Vh``.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    VarMat, shape (..., n, k) with k = min(m, n)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If `a` has elements that are not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The derivative is the same as for `varmat.svd`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.svd_V(vm.var([[2.0, 0.0, 0.0]])).shape
    (3, 1)
    """
    return _thin_svd("svd_V", a)[2]


def _thin_svd(function: str, a: Operand) -> Result:
    a = as_operand(a, f"{function}: a")
    check_matrix(function, "a", a)
    u, s, vt = svd_vh(a, False)
    return u, s, vt.mT
