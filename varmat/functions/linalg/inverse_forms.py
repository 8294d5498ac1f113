"""Stan's quadratic forms with an inverse, and triangular systems of either triangle."""

from __future__ import annotations

from functools import partial

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import broadcastable, check_matrix, check_square, check_values
from varmat.functions.linalg.lapack import cholesky_solve, folded_outer, spd_factor
from varmat.functions.linalg.solves import right_solution
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import check_system, column, inner, uncolumn
from varmat.functions.linalg.triangular_solves import check_diagonal, solve_triangular
from varmat.typing import (
    Adjoint,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    array_valued,
    scalar_or_array_valued,
)

__all__ = [
    "mdivide_left_tri",
    "mdivide_right_tri",
    "trace_gen_inv_quad_form_ldlt",
    "trace_inv_quad_form_ldlt",
]


@array_valued
def mdivide_left_tri(a: Operand, b: Operand, lower: bool = True) -> Result:
    """``inv(a) @ b`` for a triangular `a`: `solve_triangular` with the lower triangle by default.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        One triangle is read, and nothing else.
    b : array_like, shape (n,) or (..., n, k)
    lower : bool
        Which one; in Stan a parameter of the template.

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If there is a zero on the diagonal; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint of `b` is ``inv(a).T @ g``, that of `a` is the negative outer product of this and
    the result, in the triangle.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.mdivide_left_tri(vm.var([[2.0, 1.0], [0.0, 1.0]]), np.array([5.0, 3.0]), lower=False)
    VarMat([1., 3.])
    """
    a, b = as_operand(a, "mdivide_left_tri: a"), as_operand(b, "mdivide_left_tri: b")
    check_system("mdivide_left_tri", a, b)
    check_values(partial(check_diagonal, "mdivide_left_tri"), a)
    return solve_triangular(a, b, lower=lower)


@array_valued
def mdivide_right_tri(b: Operand, a: Operand, lower: bool = True) -> Result:
    """``b @ inv(a)`` for a triangular `a`: `solve_triangular` with the transposed matrices.

    Parameters
    ----------
    b : array_like, shape (n,) or (..., k, n)
    a : array_like, shape (..., n, n)
        One triangle is read, and nothing else.
    lower : bool
        Which one; in Stan a parameter of the template.

    Returns
    -------
    VarMat, shape (..., n) or (..., k, n)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of columns.
    DomainError
        If there is a zero on the diagonal; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoints are `mdivide_left_tri`'s, transposed.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.mdivide_right_tri(np.array([2.0, 5.0]), vm.var([[2.0, 1.0], [0.0, 1.0]]), lower=False)
    VarMat([1., 4.])
    """

    def left(a: Operand, b: Operand) -> Result:
        check_values(partial(check_diagonal, "mdivide_right_tri"), a)
        return solve_triangular(a, b, lower=lower, trans=1)

    return right_solution("mdivide_right_tri", left, b, a)


@operation()
@scalar_or_array_valued
def trace_inv_quad_form_ldlt(a: Plain, b: Plain) -> Saved:
    """Compute the trace of ``b.T @ inv(a) @ b`` for a symmetric positive definite `a`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.
    b : array_like, shape (n,) or (..., n, m)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them.

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    For ``x = inv(a) @ b`` and the adjoint `g` of the result, `b` has the adjoint ``2 * g * x`` and
    `a` has ``-g * x @ x.T``, folded onto the lower triangle. Stan's function takes a factor; here
    the one that is made for the value serves the reverse pass.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda b: vm.trace_inv_quad_form_ldlt(2.0 * np.eye(2), b), np.array([1.0, 3.0]))
    array([1., 3.])
    """
    name = "trace_inv_quad_form_ldlt"
    check_system(name, a, b)
    factor = spd_factor(name, a)
    b = column(b, b.ndim == 1)
    x = cholesky_solve(factor, b, False)
    return Saved(np.einsum("...ij,...ij->...", b, x), factor=factor, x=x)


@trace_inv_quad_form_ldlt.reverse
def trace_inv_quad_form_ldlt_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, factor: Plain, x: Plain
) -> tuple[Thunk, ...]:
    scaled = np.asarray(g)[..., None, None] * x
    return lambda: folded_outer(scaled, x, -1.0), lambda: uncolumn(scaled + scaled, b.ndim == 1)


@trace_inv_quad_form_ldlt.tangent
def trace_inv_quad_form_ldlt_tangent(
    r: Result, a: Operand, b: Operand, factor: Plain
) -> tuple[Linear, ...]:
    vector = np.ndim(b) == 1
    x = inverse_spd_of(a, factor) @ column(b, vector)
    return lambda t: -inner(x, symmetric(t) @ x), lambda t: 2.0 * inner(x, column(t, vector))


@operation()
@scalar_or_array_valued
def trace_gen_inv_quad_form_ldlt(d: Plain, a: Plain, b: Plain) -> Saved:
    """Compute the trace of ``d @ b.T @ inv(a) @ b`` for a symmetric positive definite `a`.

    Parameters
    ----------
    d : array_like, shape (..., m, m)
        Any square matrix.
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.
    b : array_like, shape (..., n, m)

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `d` or `a` is not square, or `b` does not have the rows of `a` and the columns of `d`.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    For ``x = inv(a) @ b`` and the adjoint `g` of the result, `d` has the adjoint ``g * x.T @ b``,
    `b` has ``g * x @ (d + d.T)`` and `a` has ``-g * x @ d.T @ x.T``, folded onto the lower
    triangle. Stan's function takes a factor; here the one that is made for the value serves the
    reverse pass.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> b = np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> vm.gradient(lambda d: vm.trace_gen_inv_quad_form_ldlt(d, 2.0 * np.eye(2), b), np.eye(2))
    array([[2.5, 1. ],
           [1. , 0.5]])
    """
    name = "trace_gen_inv_quad_form_ldlt"
    check_square(name, "d", np.shape(d))
    check_matrix(name, "b", b)
    check_system(name, a, b)
    stacks = (np.shape(x)[:-2] for x in (d, a, b))
    if np.shape(b)[-1] != np.shape(d)[-1] or not broadcastable(*stacks):
        rule = f"must have {np.shape(d)[-1]} columns and match d, of shape {np.shape(d)}"
        raise ShapeError(f"{name}: b has shape {np.shape(b)}, but {rule}!")
    factor = spd_factor(name, a)
    x = cholesky_solve(factor, b, False)
    return Saved(np.einsum("...ij,...ij->...", b @ d.mT, x), factor=factor, x=x)


@trace_gen_inv_quad_form_ldlt.reverse
def trace_gen_inv_quad_form_ldlt_reverse(
    g: Adjoint, r: Plain, d: Plain, a: Plain, b: Plain, factor: Plain, x: Plain
) -> tuple[Thunk, ...]:
    scaled = np.asarray(g)[..., None, None] * x
    return (
        lambda: scaled.mT @ b,
        lambda: folded_outer(scaled @ d.mT, x, -1.0),
        lambda: scaled @ (d + d.mT),
    )


@trace_gen_inv_quad_form_ldlt.tangent
def trace_gen_inv_quad_form_ldlt_tangent(
    r: Result, d: Operand, a: Operand, b: Operand, factor: Plain
) -> tuple[Linear, ...]:
    x = inverse_spd_of(a, factor) @ b
    return (
        lambda t: inner(b @ t.mT, x),
        lambda t: -inner(x @ d.mT, symmetric(t) @ x),
        lambda t: inner(t, x @ (d + d.mT)),
    )
