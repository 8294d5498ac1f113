"""Determinants and their logarithms."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import check_matrix, check_square, fixed
from varmat.functions.linalg.lapack import (
    LU,
    inverse_triangle,
    log_diagonal,
    lu_det,
    lu_factor,
    lu_inverse,
    lu_logabsdet,
    lu_sign,
    spd_factor,
)
from varmat.functions.linalg.solves import inverse_of
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import inner
from varmat.functions.linalg.triangles import half_diagonal, transposed
from varmat.programs.build.symbol import is_safe_divisor
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, scalar_or_array_valued

__all__ = ["determinant", "log_determinant", "log_determinant_ldlt", "log_determinant_spd", "trace"]

SlogdetResult: Function = type(np.linalg.slogdet(np.empty((0, 0))))


def scaled(g: Adjoint, x: Operand) -> Result:
    """Multiply matrices, in place, by a number for each of them."""
    return np.multiply(x, g[..., None, None] if isinstance(g, np.ndarray) else g, out=x)


@operation(stacked=True)
@scalar_or_array_valued
def log_determinant_spd(a: Plain, workspace: Function = np.empty) -> Plain:
    """Compute the logarithm of the determinant of a symmetric positive definite matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint of `a` is its inverse, made of the same Cholesky factor as the value, folded onto
    the lower triangle. Also called ``varmat.log_determinant_ldlt``.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.log_determinant_spd, np.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[ 1.,  0.],
           [-2.,  2.]])
    """
    check_square("log_determinant_spd", "a", np.shape(a))
    factor = spd_factor("log_determinant_spd", a, workspace)
    return _log_determinant_of(factor)


def _log_determinant_of(factor: Plain) -> Saved:
    return Saved(2.0 * log_diagonal(factor), factor=factor)


def log_determinant_spd_of(a: Operand, factor: Plain) -> Result:
    """Compute the logarithm of the determinant of `a` from its Cholesky factor."""
    return log_determinant_spd.known(_log_determinant_of(factor), a)


@log_determinant_spd.reverse
def log_determinant_spd_reverse(g: Adjoint, r: Plain, a: Plain, factor: Plain) -> Adjoint:
    return scaled(g + g, half_diagonal(inverse_triangle(factor)))


@log_determinant_spd.tangent
def log_determinant_spd_tangent(r: Result, a: Operand, factor: Plain) -> Linear:
    x = inverse_spd_of(a, factor)
    return lambda t: inner(x, symmetric(t))


@operation(np.linalg.det, stacked=True)
@scalar_or_array_valued
def det(a: Plain, workspace: Function = np.empty) -> Plain | Saved:
    """Compute the determinant of a square matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    The derivative is the matrix of cofactors, which is finite and right also at singular matrices,
    as far as their singular values are: LAPACK knows them to 1e-16 of the largest one. For the
    logarithm of a determinant use `numpy.linalg.slogdet`, which neither overflows nor underflows.
    Also called ``varmat.determinant``.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(np.linalg.det, np.array([[1.0, 2.0], [2.0, 4.0]]))
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    check_square("det", "a", np.shape(a))
    factor = lu_factor(a, workspace)
    return Saved(lu_det(factor), factor=factor) if factor else np.linalg.det(a)


@det.reverse
def det_reverse(g: Adjoint, r: Plain, a: Plain, factor: LU | None = None) -> Adjoint:
    return _cofactors(a, r, factor, g)


@det.tangent
def det_tangent(r: Result, a: Operand, factor: LU | None = None) -> Linear:
    values = fixed(a), fixed(r)
    # A recording computes the cofactors at every run.
    c = (
        cofactor.known(_cofactors(*values, factor), a)
        if factor and type(values[0]) is np.ndarray
        else cofactor(a)
    )
    return lambda t: inner(c, t)


def _cofactors(a: Operand, d: Operand, factor: LU | None, g: Adjoint = 1.0) -> Result:
    """Compute the cofactors of `a` with determinant `d`, times g.

    Determinant and inverse from one LU factor belong to a matrix within rounding errors of `a`,
    whose cofactors are close to `a`'s however ill-conditioned it is; only an exact zero
    needs the singular values. A determinant that a float does not hold, or not with all digits, is
    multiplied with in two halves."""
    if is_safe_divisor(d):
        return transposed(_inverse(a, factor), g * d)
    sign, logarithm = (lu_sign(factor), lu_logabsdet(factor)) if factor else np.linalg.slogdet(a)
    if np.all(sign):
        half = np.exp(0.5 * logarithm)
        return transposed(scaled(half, _inverse(a, factor)), g * sign * half)
    sign, u, s, vt = _signed_svd(a)
    return scaled(g, u @ ((sign * np.multiply(*_products_before_and_after(s)))[..., None] * vt))


def _inverse(a: Operand, factor: LU | None) -> Result:
    return lu_inverse(factor) if factor else np.linalg.inv(a)


def _signed_svd(a: Operand) -> Result:
    # NumPy would refuse the whole stack for one matrix with nan.
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vt = np.linalg.svd(np.where(finite, a, 0.0))
    sign = np.where(
        finite[..., 0], np.rint(np.linalg.det(u) * np.linalg.det(vt))[..., None], np.nan
    )
    # Large ones and small ones in turn: products of some of them leave the range of floats only if
    # the product of all does.
    ranks = 2 * np.arange(s.shape[-1])
    order = np.argsort(np.minimum(ranks, ranks[::-1] + 1))
    return sign, u[..., order], s[..., order], vt[..., order, :]


def _products_before_and_after(s: Plain) -> tuple[Result, Result]:
    """Compute, for each element of the last axis, the products of those before and after it."""
    one = np.ones((*s.shape[:-1], 1))
    before = np.concatenate([one, np.cumprod(s[..., :-1], axis=-1)], axis=-1)
    after = np.concatenate([np.cumprod(s[..., :0:-1], axis=-1)[..., ::-1], one], axis=-1)
    return before, after


def _leave_two_out(s: Plain) -> Result:
    """Compute, for each pair of elements of the last axis, the product of all others; zero on the
    diagonal.
    """
    before, after = _products_before_and_after(s)
    above = ~np.tri(s.shape[-1], dtype=bool)
    upto = np.cumprod(np.where(above, s[..., None, :], 1.0), axis=-1)
    between = np.concatenate([np.ones((*s.shape, 1)), upto[..., :-1]], axis=-1)
    pairs = np.where(above, before[..., :, None] * between * after[..., None, :], 0.0)
    return pairs + pairs.mT


@operation(stacked=True)
def cofactor(a: Plain) -> Plain:
    """Compute the matrix of cofactors, the derivative of the determinant.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Notes
    -----
    From the singular values :math:`\\sigma` of :math:`A = U \\Sigma V^T` the cofactors are
    :math:`\\det(U) \\det(V)\\, U\\, \\mathrm{diag}(\\prod_{j \\ne i} \\sigma_j)\\, V^T`, without a
    division; the derivative leaves out two of them. Only the third derivative of the determinant
    wants an invertible matrix."""
    check_square("cofactor", "a", np.shape(a))
    if not a.size:
        return np.array(a)
    factor = lu_factor(a)
    return _cofactors(a, lu_det(factor) if factor else np.linalg.det(a), factor)


@cofactor.reverse
def cofactor_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    # The second derivative of the determinant: symmetric, so the reverse rule is the forward one.
    sign, u, s, vt = _signed_svd(a)
    b, pairs = u.mT @ g @ vt.mT, _leave_two_out(s)
    diagonal = np.diagonal(b, axis1=-2, axis2=-1)[..., None]
    inside = np.where(np.eye(s.shape[-1], dtype=bool), pairs @ diagonal, -pairs * b.mT)
    return u @ (sign[..., None] * inside) @ vt


@cofactor.tangent
def cofactor_tangent(r: Result, a: Operand) -> Linear:
    x = np.linalg.inv(a).mT
    return lambda t: r * np.sum(x * t, axis=(-2, -1), keepdims=True) - r @ t.mT @ x


@operation(np.linalg.slogdet, stacked=True)
def slogdet(a: Plain, workspace: Function = np.empty) -> Plain | Saved:
    """Sign and logarithm of the absolute value of the determinant.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    sign, logabsdet : Var, or VarMat of the shape of the stack
        A named tuple. A singular matrix has 0 and -inf.

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    The derivative of `logabsdet` is the transposed inverse (nan for a singular matrix), made of the
    LU factor of the value; that of `sign` is zero. `varmat.log_determinant` is the second of them
    alone.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.slogdet(a).logabsdet, np.array([[2.0, 1.0], [0.0, 4.0]]))
    array([[ 0.5  ,  0.   ],
           [-0.125,  0.25 ]])
    """
    check_square("slogdet", "a", np.shape(a))
    factor = lu_factor(a, workspace)
    return (
        Saved(SlogdetResult(lu_sign(factor), lu_logabsdet(factor)), factor=factor)
        if factor
        else np.linalg.slogdet(a)
    )


@slogdet.reverse
def slogdet_reverse(g: Adjoint, r: Plain, a: Plain, factor: LU | None = None) -> Adjoint:
    if g[1] is None:
        return np.zeros(a.shape)
    return log_determinant_reverse(g[1], r[1], a, factor)


@slogdet.tangent
def slogdet_tangent(r: Result, a: Operand, factor: LU | None = None) -> Linear:
    push = log_determinant_tangent(r[1], a, factor)
    return lambda t: (np.zeros(np.shape(t)[:-2]), push(t))


@operation(stacked=True)
@scalar_or_array_valued
def log_determinant(a: Plain, workspace: Function = np.empty) -> Plain | Saved:
    """Compute the logarithm of the absolute value of the determinant:
    ``np.linalg.slogdet(a).logabsdet``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    Var, or VarMat of the shape of the stack
        -inf for a singular matrix.

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    The derivative is the transposed inverse (nan for a singular matrix), made of the LU factor of
    the value.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.log_determinant, np.array([[2.0, 0.0], [1.0, -4.0]]))
    array([[ 0.5  ,  0.125],
           [ 0.   , -0.25 ]])
    """
    check_square("log_determinant", "a", np.shape(a))
    factor = lu_factor(a, workspace)
    return Saved(lu_logabsdet(factor), factor=factor) if factor else np.linalg.slogdet(a)[1]


@log_determinant.reverse
def log_determinant_reverse(g: Adjoint, r: Plain, a: Plain, factor: LU | None = None) -> Adjoint:
    if factor:
        return transposed(lu_inverse(factor), g)
    singular = np.equal(r, -np.inf)[..., None, None]
    return transposed(np.linalg.inv(np.where(singular, np.nan, a)), g)


@log_determinant.tangent
def log_determinant_tangent(r: Result, a: Operand, factor: LU | None = None) -> Linear:
    if not factor:  # a stack may have regular matrices as well as singular ones
        singular = np.equal(fixed(r), -np.inf)
        a = np.where(singular[..., None, None] if np.ndim(r) else singular, np.nan, a)
    x = inverse_of(a, factor).mT
    return lambda t: inner(x, t)


@scalar_or_array_valued
def trace(a: Operand) -> Result:
    """Sum the diagonal of a matrix: `numpy.linalg.trace`.

    Parameters
    ----------
    a : array_like, shape (..., m, n)

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The adjoint goes to each element of the diagonal, which of a rectangle ends with the shorter
    side.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.trace, np.array([[2.0, 1.0], [0.0, 4.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    a = as_operand(a, "trace: a")
    check_matrix("trace", "a", a)
    return np.trace(a, axis1=-2, axis2=-1)


determinant = alias("determinant", det)
log_determinant_ldlt = alias("log_determinant_ldlt", log_determinant_spd)
