"""Eigenvalues and eigenvectors of symmetric matrices.

Eigenvectors are determined up to a factor, for equal eigenvalues up to a rotation. Derivatives
belong to one smooth choice near the point. They are meaningful for functions that do not depend
on the choice: eigenvalues, projections onto eigenspaces, but not the sign of an eigenvector.
Eigenvalues that agree to rounding count as equal: the rotation of their vectors among themselves is
not determined. An adjoint of such vectors, also one within a second derivative, is refused; their
tangents are nan.

Which triangle is read, and where the adjoint lies, is said in
`varmat.functions.linalg.symmetric_arguments`."""

from __future__ import annotations

from functools import partial

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.errors import DomainError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_square, check_values, fixed
from varmat.functions.linalg.symmetric_arguments import check_symmetric, symmetric, to_triangle
from varmat.programs.build.symbol import holds, is_symbol
from varmat.typing import (
    Adjoint,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
    array_valued,
    pair_valued,
)

__all__ = ["eigendecompose_sym", "eigenvalues_sym", "eigenvectors_sym"]


def reciprocal(x: Operand, tolerance: Operand) -> Result:
    """``1 / x``, and zero where `x` is zero to within `tolerance`; differentiable."""
    zero = np.abs(fixed(x)) <= tolerance
    return np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, x))


def rounding_tolerance(values: Plain, n: int) -> Result:
    """Below which differences of eigenvalues or singular values of an n x n matrix are rounding
    errors.
    """
    if not np.size(values):
        return np.zeros((*np.shape(values)[:-1], 1))
    return n * np.finfo(float).eps * np.max(np.abs(fixed(values)), axis=-1, keepdims=True)


def _are_equal(gaps: Operand) -> Result:
    """Tell which pairs of values are equal, given the reciprocals of their gaps."""
    return (gaps == 0.0) & ~np.eye(np.shape(gaps)[-1], dtype=bool)


def check_vectors(function: str, values: str, hint: str, gaps: Operand, *adjoints: Adjoint) -> None:
    """Refuse adjoints of vectors, in columns, that belong to equal values.

    How such a vector turns is not determined. If all values are equal and no vector has an adjoint
    although a function uses them, its parts have cancelled, as in ``v * f(w) @ inv(v)``."""
    size = np.size(gaps)
    pairs = size - size // max(1, np.shape(gaps)[-1])
    if not is_symbol(gaps) and np.count_nonzero(gaps) == pairs:  # no values are equal
        return
    largest = [np.max(np.abs(g), axis=-2) for g in adjoints if g is not None]
    if not largest:
        return
    sizes = sum(largest[1:], largest[0])
    one_value = np.max(np.abs(gaps), axis=(-2, -1), keepdims=True)[..., 0] == 0.0
    used = (sizes > 0.0) | (one_value & (np.max(sizes) == 0.0))
    if not holds(np.logical_not(_are_equal(gaps) & (used[..., None, :] | used[..., :, None]))):
        raise DomainError(
            f"{function}: Argument a has equal {values}, but must have distinct ones where a "
            "derivative of their vectors, or a second derivative of the values, is needed! For "
            f"functions of the matrix use {hint}."
        )


def turn(gaps: Operand, p: Operand) -> Result:
    """``gaps * p``, and nan for a turn of vectors that is not determined; differentiable."""
    if not np.size(p):
        return gaps * p
    size = np.abs(fixed(p))
    turned = size > 1e-10 * np.max(size, axis=(-2, -1), keepdims=True)
    return np.where(_are_equal(fixed(gaps)) & turned, np.nan, gaps * p)


OF_SYMMETRIC = "matrix_exp, matrix_power, log_determinant, inverse, scipy.linalg.sqrtm or logm"


@operation(np.linalg.eigh, stacked=True)
def eigh(a: Plain, UPLO: Setting = "L") -> Plain:  # noqa: N803 - NumPy's name
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
        In columns. The sign of each comes from LAPACK.

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
    V^T`, do not follow from the adjoints of `V` and :math:`\\lambda`: a part
    :math:`f'(\\lambda)` is missing between equal eigenvalues. There the reverse pass raises a
    `DomainError`, also for second derivatives of eigenvalues alone, as at an identity matrix;
    tangents of `V` are nan. Use `varmat.matrix_exp`, `varmat.matrix_power`,
    `varmat.log_determinant` or `scipy.linalg.sqrtm` instead.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.eigh(a).eigenvalues[1], np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[0., 0.],
           [0., 1.]])
    """
    check_square("eigh", "a", np.shape(a))
    return np.linalg.eigh(a, UPLO)


def _inverse_gaps(values: Plain) -> Result:
    """``1 / (w_j - w_i)`` and zero for equal ones; differentiable."""
    tolerance = rounding_tolerance(values, np.shape(values)[-1])
    return reciprocal(values[..., None, :] - values[..., :, None], tolerance[..., None])


@eigh.reverse
def eigh_reverse(g: Adjoint, r: Plain, a: Plain, UPLO: str) -> Adjoint:  # noqa: N803 - NumPy's name
    (w, v), (gw, gv) = r, g
    inside = np.zeros(a.shape)
    if gv is not None:
        gaps = _inverse_gaps(w)
        check_vectors("eigh", "eigenvalues", OF_SYMMETRIC, gaps, gv)
        inside = gaps * (v.mT @ gv)
    if gw is not None:
        inside = inside + gw[..., None] * np.eye(a.shape[-1])
    return to_triangle(v @ inside @ v.mT, UPLO.upper() == "L")


@eigh.tangent
def eigh_tangent(r: Result, a: Operand, UPLO: str) -> Linear:  # noqa: N803 - NumPy's name
    w, v = r
    gaps = _inverse_gaps(w)

    def push(t: Operand) -> Result:
        p = v.mT @ symmetric(t, UPLO.upper() == "L") @ v
        return np.diagonal(p, axis1=-2, axis2=-1), v @ turn(gaps, p)

    return push


@implements(np.linalg.eigvalsh)
def _eigvalsh(a: Operand, UPLO: str = "L") -> Result:  # noqa: N803 - NumPy's name
    return eigh(a, UPLO)[0]


def _symmetric_argument(function: str, a: Operand) -> Result:
    a = as_operand(a, f"{function}: a")
    check_square(function, "a", np.shape(a))
    check_values(partial(check_symmetric, function), a)
    return a


@array_valued
def eigenvalues_sym(a: Operand) -> Result:
    """Compute the eigenvalues of a symmetric matrix in ascending order: `numpy.linalg.eigvalsh`
    with a check of symmetry.

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
    triangle. Second derivatives at repeated eigenvalues are refused, see `numpy.linalg.eigh`: they
    need the rotation of the vectors among themselves.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda a: np.sum(np.log(vm.eigenvalues_sym(a))), a).round(12)
    array([[ 1.,  0.],
           [-2.,  2.]])
    """
    a = _symmetric_argument("eigenvalues_sym", a)
    return np.linalg.eigvalsh(a)


@array_valued
def eigenvectors_sym(a: Operand) -> Result:
    """Compute the eigenvectors of a symmetric matrix, in columns in the order of `eigenvalues_sym`:
    the first of `eigendecompose_sym`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)
        In columns. The sign of each comes from LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, or has elements that are not finite.

    Notes
    -----
    As for `eigendecompose_sym`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.eigenvectors_sym(a)[0, 0] ** 2, np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[0., 0.],
           [0., 0.]])
    """
    return eigh(_symmetric_argument("eigenvectors_sym", a))[1]


@pair_valued
def eigendecompose_sym(a: Operand) -> Result:
    """Eigenvectors and eigenvalues of a symmetric matrix, in this order: `numpy.linalg.eigh` has
    the other one.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    eigenvectors : VarMat, shape (..., n, n)
        In columns. The sign of each comes from LAPACK.
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
    The derivatives are the same as for `numpy.linalg.eigh`: derivatives of the vectors of equal
    eigenvalues, and second derivatives there, are refused.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vectors, values = vm.eigendecompose_sym(vm.var([[1.0, 0.0], [0.0, 3.0]]))
    >>> values
    VarMat([1., 3.])
    """
    values, vectors = eigh(_symmetric_argument("eigendecompose_sym", a))
    return vectors, values
