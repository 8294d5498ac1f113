"""Factorisations: Cholesky, symmetric eigenvalues, singular values, QR.

Where a factorisation is not unique, derivatives are those of one smooth choice near the point. They
are meaningful for functions that do not depend on the choice: eigenvalues, projections onto
eigenspaces, ``u @ vt``, but not the sign of an eigenvector. Eigenvalues or singular values that
agree to rounding count as equal: the rotation of their vectors among themselves is not determined,
and its share in a derivative is taken to be zero, never nan. Second derivatives at such a point
lack that share.

For symmetric arguments see `varmat.functions.linalg.solves`: one triangle is read, and the adjoint
lies in it; functions with a name of Stan refuse a matrix that is not symmetric. QR decompositions
are made in `varmat.functions.linalg.qr`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.operation import as_operand, is_differentiable, operation
from varmat.functions.checks import TOLERANCE, check_matrix, check_square, check_values, fixed
from varmat.functions.linalg.lapack import (
    check_svd,
    check_symmetric,
    cholesky_adjoint,
    cholesky_factor,
    to_triangle,
    transposed,
    triangle_mask,
)
from varmat.functions.linalg.qr import qr, qr_Q, qr_R, qr_thin, qr_thin_Q, qr_thin_R
from varmat.functions.linalg.solves import solve_triangular, symmetric
from varmat.programs.symbols import refuse, require, solve_lower, triangle, unrolled

__all__ = [
    "cholesky_decompose",
    "eigendecompose_sym",
    "eigenvalues_sym",
    "eigenvectors_sym",
    "qr",
    "qr_Q",
    "qr_R",
    "qr_thin",
    "qr_thin_Q",
    "qr_thin_R",
    "singular_values",
    "svd",
    "svd_U",
    "svd_V",
]


def reciprocal(x: Any, tolerance: Any) -> Any:
    """``1 / x``, and zero where `x` is zero to within `tolerance`; differentiable."""
    zero = np.abs(fixed(x)) <= tolerance
    return np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, x))


def _tolerance(values: Any, n: int) -> Any:
    """Below which differences of eigenvalues or singular values of an n x n matrix are rounding
    errors.
    """
    return (
        n * np.finfo(float).eps * np.max(np.abs(fixed(values)), axis=-1, keepdims=True, initial=0.0)
    )


@operation(np.linalg.cholesky, stacked=True)
def cholesky(a: Any, *, upper: bool = False, workspace: Any = np.empty) -> Any:
    """The Cholesky factor of a symmetric positive definite matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric; the lower triangle is read (the upper one with `upper`).
    upper : bool
        Return the upper factor, ``a = r.T @ r``, instead of the lower one, ``a = r @ r.T``.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not positive definite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`\\Phi` the lower triangle with halved diagonal, :math:`dL = L\\, \\Phi(L^{-1}\\,
    dA\\, L^{-T})`, and in reverse :math:`L^{-T}\\, \\Phi(L^T \\bar L)\\, L^{-1}`, folded onto the
    triangle that is read: for small matrices by these formulas, for large ones by undoing the
    factorisation block by block, in products of matrices [1]_. ``varmat.cholesky_decompose`` is
    this function with a check of symmetry.

    References
    ----------
    .. [1] I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, 2016.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.cholesky(a)[1, 1], np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[ 0.0625,  0.    ],
           [-0.25  ,  0.25  ]])
    """
    check_square("cholesky", "a", np.shape(a))
    return (
        transposed(cholesky_factor("cholesky", a.mT))
        if upper
        else cholesky_factor("cholesky", a, workspace)
    )


def _phi(x: Any) -> Any:
    """The lower triangle with halved diagonal; differentiable."""
    mask = triangle_mask(np.shape(x))
    return np.where(mask, x, 0.0) * (mask - 0.5 * np.eye(len(mask)))


@cholesky.reverse
def cholesky_reverse(g: Any, r: Any, a: Any, upper: bool = False) -> Any:
    return transposed(cholesky_adjoint(transposed(r), g.mT)) if upper else cholesky_adjoint(r, g)


# With Phi the lower triangle with halved diagonal, the contribution is Phi(S + S^T), S = L^-T
# Phi(L^T G) L^-1.
@cholesky.straight
def cholesky_straight(a: Any, upper: bool = False) -> Any:
    if np.ndim(a) != 2:
        refuse()
    unrolled(a)
    factor = np.linalg.cholesky(a.mT if upper else a)
    # all of it is nan where the matrix is not positive definite
    require(np.isfinite(factor[:1, 0]))

    def contribution(g: Any) -> Any:
        phi = triangle(factor.mT @ triangle(g.mT if upper else g), half=True)
        left = solve_lower(factor, phi, transposed=True)
        s = solve_lower(factor, left.mT, transposed=True)
        folded = triangle(s + s.mT, half=True)
        return folded.mT if upper else folded

    return (factor.mT if upper else factor), contribution


@cholesky.tangent
def cholesky_tangent(r: Any, a: Any, upper: bool = False) -> Any:
    factor = r.mT if upper else r

    def push(t: Any) -> Any:
        left = solve_triangular(factor, symmetric(t, not upper), lower=True)
        d = factor @ _phi(solve_triangular(factor, left.mT, lower=True))
        return d.mT if upper else d

    return push


@operation(stacked=True)
def cholesky_decompose(a: Any, workspace: Any = np.empty) -> Any:
    """The lower Cholesky factor of a symmetric positive definite matrix: `numpy.linalg.cholesky`
    with a check of symmetry.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The derivative is that of `numpy.linalg.cholesky`; the adjoint lies in the lower triangle.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.cholesky_decompose(a)[1, 0], np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[-0.125,  0.   ],
           [ 0.5  ,  0.   ]])
    """
    check_square("cholesky_decompose", "a", np.shape(a))
    check_symmetric("cholesky_decompose", a)
    return cholesky_factor("cholesky_decompose", a, workspace)


cholesky_decompose.reverse(cholesky_reverse)
cholesky_decompose.tangent(cholesky_tangent)


@cholesky_decompose.straight
def cholesky_decompose_straight(a: Any) -> Any:
    require(np.abs(a - a.mT) <= TOLERANCE)
    return cholesky_straight(a)


@operation(np.linalg.eigh, stacked=True)
def eigh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803 - NumPy's name
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric; one triangle is read.
    UPLO : {"L", "U"}
        Which one.

    Returns
    -------
    eigenvalues : VarMat, shape (..., n)
        In ascending order.
    eigenvectors : VarMat, shape (..., n, n)
        In columns. The sign of each is that of LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    :math:`d\\lambda = \\mathrm{diag}(V^T dA\\, V)` and :math:`dV = V (F \\circ V^T dA\\, V)` with
    :math:`F_{ij} = 1 / (\\lambda_j - \\lambda_i)`, zero where the eigenvalues are equal. The
    derivatives of eigenvalues alone are right at repeated ones too if they are used symmetrically
    (sums of functions of the eigenvalues). Those of a function of the matrix, :math:`V f(\\Lambda)
    V^T`, are not: between equal eigenvalues the part :math:`f'(\\lambda)` is missing, which does
    not follow from the adjoints of `V` and :math:`\\lambda`. For the exponential use `varmat.expm`.
    Second derivatives, also of eigenvalues alone, lack that part at repeated eigenvalues, as at an
    identity matrix, and are wrong there.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.eigh(a).eigenvalues[1], np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[0., 0.],
           [0., 1.]])
    """
    check_square("eigh", "a", np.shape(a))
    return np.linalg.eigh(a, UPLO)


def _inverse_gaps(values: Any) -> Any:
    """``1 / (w_j - w_i)`` and zero for equal ones; differentiable."""
    tolerance = _tolerance(values, np.shape(values)[-1])
    return reciprocal(values[..., None, :] - values[..., :, None], tolerance[..., None])


@eigh.reverse
def eigh_reverse(g: Any, r: Any, a: Any, UPLO: str) -> Any:  # noqa: N803 - NumPy's name
    (w, v), (gw, gv) = r, g
    inside = np.zeros(a.shape) if gv is None else _inverse_gaps(w) * (v.mT @ gv)
    if gw is not None:
        inside = inside + gw[..., None] * np.eye(a.shape[-1])
    return to_triangle(v @ inside @ v.mT, UPLO.upper() == "L")


@eigh.tangent
def eigh_tangent(r: Any, a: Any, UPLO: str) -> Any:  # noqa: N803 - NumPy's name
    w, v = r
    gaps = _inverse_gaps(w)

    def push(t: Any) -> Any:
        p = v.mT @ symmetric(t, UPLO.upper() == "L") @ v
        return np.diagonal(p, axis1=-2, axis2=-1), v @ (gaps * p)

    return push


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: Any, UPLO: Any = "L") -> Any:  # noqa: N803 - NumPy's name
    return eigh(a, UPLO)[0]


def _symmetric_argument(function: str, a: Any) -> Any:
    a = as_operand(a, f"{function}: a")
    check_square(function, "a", np.shape(a))
    check_values(partial(check_symmetric, function), a)
    return a


def eigenvalues_sym(a: Any) -> Any:
    """The eigenvalues of a symmetric matrix in ascending order: `numpy.linalg.eigvalsh` with a
    check of symmetry.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, or has elements that are not finite.

    Notes
    -----
    The adjoint is :math:`V\\, \\mathrm{diag}(\\bar\\lambda)\\, V^T`, folded onto the lower
    triangle. Second derivatives at repeated eigenvalues are wrong, see `numpy.linalg.eigh`: they
    lack the rotation of the vectors among themselves.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(np.log(vm.eigenvalues_sym(a))), np.array([[2.0, 1.0], [1.0, 1.0]])).round(12)
    array([[ 1.,  0.],
           [-2.,  2.]])
    """
    a = _symmetric_argument("eigenvalues_sym", a)
    return np.linalg.eigvalsh(a)


def eigenvectors_sym(a: Any) -> Any:
    """The eigenvectors of a symmetric matrix, in columns in the order of `eigenvalues_sym`: the
    first of `eigendecompose_sym`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)
        In columns. The sign of each is that of LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, or has elements that are not finite.

    Notes
    -----
    As for `eigendecompose_sym`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.eigenvectors_sym(a)[0, 0] ** 2, np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[0., 0.],
           [0., 0.]])
    """
    return eigh(_symmetric_argument("eigenvectors_sym", a))[1]


def eigendecompose_sym(a: Any) -> Any:
    """Eigenvectors and eigenvalues of a symmetric matrix, in this order: `numpy.linalg.eigh` has
    the other one.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    eigenvectors : VarMat, shape (..., n, n)
        In columns. The sign of each is that of LAPACK.
    eigenvalues : VarMat, shape (..., n)
        In ascending order.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, or has elements that are not finite.

    Notes
    -----
    The derivatives are those of `numpy.linalg.eigh`: no derivative of a vector has a part along the
    vectors of equal eigenvalues. Second derivatives lack that part, and are wrong at repeated
    eigenvalues.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vectors, values = vm.eigendecompose_sym(vm.var([[1.0, 0.0], [0.0, 3.0]]))
    >>> values
    VarMat([1., 3.])
    """
    values, vectors = eigh(_symmetric_argument("eigendecompose_sym", a))
    return vectors, values


@operation(stacked=True)
def svd_vh(a: Any, full_matrices: bool = True) -> Any:
    """The singular value decomposition ``a = u @ diag(s) @ vt``.

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
    The rule is that of [1]_, but written so that repeated singular values and zero ones divide by
    different things: with :math:`J = U^T \\bar U - \\bar U^T U` and :math:`K = V^T \\bar V - \\bar
    V^T V`, :math:`\\tfrac12 [(J + K)_{ij} / (\\sigma_j
    - \\sigma_i) + (J - K)_{ij} / (\\sigma_j + \\sigma_i)]`. So functions like ``u @ vt`` (the
      orthogonal polar factor) have
    their right derivative at repeated singular values. Their second derivatives, and those of the
    singular values, are wrong there.

    References
    ----------
    .. [1] J. Townsend, "Differentiating the singular value decomposition", 2016.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(np.linalg.svd(a).S ** 2), np.array([[1.0, 2.0], [0.0, 3.0]])).round(12)
    array([[2., 4.],
           [0., 6.]])
    """
    check_svd("svd", a)
    return np.linalg.svd(a, full_matrices)


def _inverse_sums_and_gaps(s: Any, n: int) -> tuple[Any, Any, Any]:
    """``1 / s_j``, ``1 / (s_j + s_i)`` and ``1 / (s_j - s_i)``, zero where the divisor is;
    differentiable.
    """
    tolerance = _tolerance(s, n)
    row, col = s[..., None, :], s[..., :, None]
    return (
        reciprocal(s, tolerance)[..., None, :],
        reciprocal(row + col, tolerance[..., None]),
        reciprocal(row - col, tolerance[..., None]),
    )


def _skew(x: Any, g: Any, k: int) -> Any:
    """``x^T g - g^T x`` for the first k columns of `x`; zero if nothing depends on them."""
    if g is None:
        return 0.0
    p = x[..., :k].mT @ g[..., :k]
    return p - p.mT


def _complement(x: Any, g: Any, k: int) -> Any:
    """The part of the adjoint of the first k columns of orthonormal `x` that leads out of their
    span.

    The other columns, if there are any, turn against the first ones.
    """
    x1, g1 = x[..., :k], g[..., :k]
    return g1 - x1 @ (x1.mT @ g1) - x[..., k:] @ (g[..., k:].mT @ x1)


@svd_vh.reverse
def svd_vh_reverse(g: Any, r: Any, a: Any, full_matrices: bool) -> Any:
    u, s, v = r[0], r[1], r[2].mT
    gu, gs, gv = g[0], g[1], None if g[2] is None else g[2].mT
    k = s.shape[-1]
    u1, v1 = u[..., :k], v[..., :k]
    total = np.zeros(a.shape) if gs is None else (u1 * gs[..., None, :]) @ v1.mT
    if gu is None and gv is None:
        return total
    inverse, sums, gaps = _inverse_sums_and_gaps(s, max(a.shape[-2:]))
    j, k_ = _skew(u, gu, k), _skew(v, gv, k)
    total += u1 @ (0.5 * ((j + k_) * gaps + (j - k_) * sums)) @ v1.mT
    if gu is not None:
        total += (_complement(u, gu, k) * inverse) @ v1.mT
    if gv is not None:
        total += u1 @ (_complement(v, gv, k) * inverse).mT
    return total


@svd_vh.tangent
def svd_vh_tangent(r: Any, a: Any, full_matrices: bool) -> Any:
    u, s, v = r[0], r[1], r[2].mT
    k = np.shape(s)[-1]
    u1, v1 = u[..., :k], v[..., :k]
    inverse, sums, gaps = _inverse_sums_and_gaps(s, max(np.shape(a)[-2:]))

    def turned(x: Any, inside: Any, out: Any) -> Any:
        """The tangent of `x`: its first columns turn among themselves, and out of their span; the
        others make room.
        """
        x1, rest = x[..., :k], x[..., k:]
        first = x1 @ inside + out - x1 @ (x1.mT @ out)
        return (
            np.concatenate([first, -(x1 @ (first.mT @ rest))], axis=-1)
            if np.shape(rest)[-1]
            else first
        )

    def push(t: Any) -> Any:
        p = u1.mT @ t @ v1
        even, odd = 0.5 * (p + p.mT) * gaps, 0.5 * (p - p.mT) * sums
        du = turned(u, even + odd, (t @ v1) * inverse)
        dv = turned(v, even - odd, (t.mT @ u1) * inverse)
        return du, np.diagonal(p, axis1=-2, axis2=-1), dv.mT

    return push


@implements(np.linalg.svd)
def _svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    a = as_operand(a, "svd: a")
    check_matrix("svd", "a", a)
    if hermitian:
        check_square("svd", "a", np.shape(a))
        a = symmetric(a)
    return svd_vh(a, full_matrices) if compute_uv else singular_values(a)


@implements(np.linalg.svdvals)
def singular_values(a: Any) -> Any:
    """The singular values of a matrix in descending order: `numpy.linalg.svdvals`.

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
    this is the derivative to one side. Second derivatives at repeated singular values are wrong:
    they lack the rotation of the vectors among themselves.

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


def svd(a: Any) -> Any:
    """The thin singular value decomposition ``a = u @ diag(s) @ v.T``.

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
    matrices unless it is called with ``full_matrices=False``. A column of `u` and that of `v` have
    their sign from LAPACK, and share it. The derivatives are those of `numpy.linalg.svd`: between
    equal singular values, the rotation of their vectors that is not determined counts as zero, and
    second derivatives are wrong.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> u, s, v = vm.svd(vm.var([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    >>> u.shape, s, v.shape
    ((3, 2), VarMat([3., 1.]), (2, 2))
    """
    return _thin_svd("svd", a)


def svd_U(a: Any) -> Any:  # noqa: N802 - Stan's name
    """The left singular vectors of a matrix, in columns: the first of `varmat.svd`.

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
    The derivative is that of `varmat.svd`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.svd_U(a)[0, 0] ** 2, np.array([[2.0, 0.0], [0.0, 1.0]]))
    array([[0., 0.],
           [0., 0.]])
    """
    return _thin_svd("svd_U", a)[0]


def svd_V(a: Any) -> Any:  # noqa: N802 - Stan's name
    """The right singular vectors of a matrix, in columns: the last of `varmat.svd`, the transpose
    of what NumPy calls ``Vh``.

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
    The derivative is that of `varmat.svd`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.svd_V(vm.var([[2.0, 0.0, 0.0]])).shape
    (3, 1)
    """
    return _thin_svd("svd_V", a)[2]


def _thin_svd(function: str, a: Any) -> Any:
    a = as_operand(a, f"{function}: a")
    check_matrix(function, "a", a)
    u, s, vt = svd_vh(a, False)
    return u, s, vt.mT
