"""Quadratic forms and their traces.

Vectors are arrays with one axis, and there are no row vectors. Matrices may come in stacks, whose
leading axes broadcast. Each product of two matrices is computed once: what the reverse pass needs
is kept, and what several adjoints need is shared."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.checks import broadcastable, check_matrix, check_square, misfit
from varmat.functions.linalg.lapack import product
from varmat.functions.linalg.symmetric_arguments import check_symmetric
from varmat.functions.linalg.systems import check_system, column, inner, uncolumn
from varmat.functions.linalg.triangles import mirrored
from varmat.typing import (
    Adjoint,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    scalar_or_array_valued,
)

__all__ = ["quad_form", "quad_form_sym", "trace_gen_quad_form", "trace_quad_form"]


def _transposed_times(b: Operand, x: Operand) -> Result:
    """``bᵀ x`` for a matrix of columns, or a vector, `b`, and `x` likewise; differentiable."""
    return x @ b if np.ndim(b) == 1 else b.mT @ x


def _outer_square(g: Adjoint, b: Operand) -> Result:
    """``g b bᵀ`` for a vector `b` and a scalar, or a stack of scalars, `g`."""
    return (_beside_vectors(g) * b)[..., None] * b


def _beside_vectors(g: Adjoint) -> Result:
    """Give a scalar, or a stack of them, an axis to multiply vectors with; a scalar stays one."""
    return g[..., None] if np.ndim(g) else g


def _product_in(a: Operand, b: Operand, workspace: Function) -> Result:
    """``a @ b``, of two matrices in memory from a workspace, if there is one."""
    if a.ndim == b.ndim == 2 and workspace is not np.empty and type(b) is np.ndarray:
        return a.dot(b, workspace((len(a), b.shape[1])))
    return a @ b


def _plain_inner(x: Operand, y: Operand) -> Result:
    """Compute the inner product of matrices, for each of a stack."""
    if x.ndim == y.ndim == 2 and x.size:
        return np.vdot(x, y)
    return np.einsum("...ij,...ij->...", x, y)


def _sum_in_place(x: Operand, y: Operand) -> Result:
    """``x + y`` for two new arrays of one shape, in place."""
    return np.add(x, y, out=x)


def _multiple(g: Adjoint, x: Operand) -> Result:
    """``g x`` for a scalar, or a stack of scalars, `g` and a new array `x` of matrices, in place if
    there is no stack.
    """
    if isinstance(g, float):
        return np.multiply(x, g, out=x)
    return g[..., None, None] * x if np.ndim(g) else g * x


@operation(native=True)
@scalar_or_array_valued
def quad_form(a: Plain, b: Plain, workspace: Function = np.empty) -> Saved:
    """Compute the quadratic form ``b.T @ a @ b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them.

    Returns
    -------
    Var or VarMat
        Of shape ``(..., m, m)``; for a vector a scalar, or of the shape of the stack.

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.

    Notes
    -----
    For the adjoint `g` of the result, `a` has the adjoint ``b @ g @ b.T`` and `b` has ``a @ b @
    g.T + a.T @ b @ g``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> vm.gradient(lambda b: vm.quad_form(a, b), np.array([1.0, 3.0]))
    array([7., 7.])
    """
    check_system("quad_form", a, b)
    ab = _product_in(a, b, workspace)
    return Saved(ab @ b if b.ndim == 1 else _product_in(b.mT, ab, workspace), ab=ab)


@quad_form.reverse
def quad_form_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain, ab: Plain) -> tuple[Thunk, ...]:
    if b.ndim == 1:
        return lambda: _outer_square(g, b), lambda: _beside_vectors(g) * (ab + a.mT @ b)
    bg = product(b, g)
    return lambda: product(bg, b.mT), lambda: _sum_in_place(product(ab, g.mT), product(a.mT, bg))


@quad_form.tangent
def quad_form_tangent(r: Result, a: Operand, b: Operand) -> tuple[Linear, ...]:
    return lambda t: quad_form(
        t, b
    ), lambda t: _transposed_times(t, a @ b) + _transposed_times(b, a @ t)


@operation()
@scalar_or_array_valued
def quad_form_sym(a: Plain, b: Plain, workspace: Function = np.empty) -> Saved:
    """Compute the quadratic form ``b.T @ a @ b`` of a symmetric matrix; exactly symmetric.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8 absolutely and relatively; all of it is read.
    b : array_like, shape (n,) or (..., n, m)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them.

    Returns
    -------
    Var or VarMat
        Of shape ``(..., m, m)``; for a vector a scalar, or of the shape of the stack.

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is not symmetric.

    Notes
    -----
    For the adjoint `g` of the result and ``s = g + g.T``, `a` has the adjoint ``b @ s @ b.T /
    2``, symmetric as well, and `b` has ``a @ b @ s``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: vm.quad_form_sym(a, b), np.array([1.0, 3.0]))
    array([10.,  8.])
    """
    check_system("quad_form_sym", a, b)
    check_symmetric("quad_form_sym", a)
    ab = _product_in(a, b, workspace)
    return Saved(ab @ b if b.ndim == 1 else mirrored(_product_in(b.mT, ab, workspace)), ab=ab)


@quad_form_sym.reverse
def quad_form_sym_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain, ab: Plain) -> tuple[Thunk, ...]:
    if b.ndim == 1:
        return lambda: _outer_square(g, b), lambda: _beside_vectors(g + g) * ab
    s = g + g.mT
    return lambda: product(_multiple(0.5, product(b, s)), b.mT), lambda: product(ab, s)


@quad_form_sym.tangent
def quad_form_sym_tangent(r: Result, a: Operand, b: Operand) -> tuple[Linear, ...]:
    def both(half: Operand) -> Result:
        return half + (half if np.ndim(b) == 1 else half.mT)

    return lambda t: 0.5 * both(quad_form(t, b)), lambda t: both(_transposed_times(t, a @ b))


@operation(native=True)
@scalar_or_array_valued
def trace_quad_form(a: Plain, b: Plain) -> Saved:
    """Compute the trace of the quadratic form ``b.T @ a @ b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them.

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.

    Notes
    -----
    For the adjoint `g` of the result, `a` has the adjoint ``g * b @ b.T`` and `b` has ``g * (a @
    b + a.T @ b)``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.trace_quad_form(a, np.array([[1.0, 0.0], [2.0, 1.0]])), np.eye(2))
    array([[1., 2.],
           [2., 5.]])
    """
    check_system("trace_quad_form", a, b)
    b = column(b, b.ndim == 1)
    ab = a @ b
    return Saved(_plain_inner(b, ab), ab=ab)


@trace_quad_form.reverse
def trace_quad_form_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, ab: Plain
) -> tuple[Thunk, ...]:
    vector = b.ndim == 1
    b = column(b, vector)
    return lambda: _multiple(g, b @ b.mT), lambda: uncolumn(_multiple(g, ab + a.mT @ b), vector)


@trace_quad_form.tangent
def trace_quad_form_tangent(r: Result, a: Operand, b: Operand) -> tuple[Linear, ...]:
    vector = np.ndim(b) == 1
    x = column(b, vector)
    return lambda t: trace_quad_form(t, b), lambda t: inner(column(t, vector), a @ x + a.mT @ x)


@operation(native=True)
@scalar_or_array_valued
def trace_gen_quad_form(d: Plain, a: Plain, b: Plain) -> Saved:
    """Compute the trace of a product with a quadratic form, ``d @ b.T @ a @ b``.

    Parameters
    ----------
    d : array_like, shape (..., m, m)
    a : array_like, shape (..., n, n)
    b : array_like, shape (..., n, m)

    Returns
    -------
    Var, or VarMat of the shape of the stack

    Raises
    ------
    ShapeError
        If `d` or `a` is not square, or `b` does not have the rows of `a` and the columns of `d`.

    Notes
    -----
    For the adjoint `g` of the result, `d` has the adjoint ``g * (a @ b).T @ b``, `a` has ``g
    * b @ d.T @ b.T`` and `b` has ``g * (a @ b @ d + a.T @ b @ d.T)``. The products ``a @ b`` and
    ``b @ d.T`` are made once, for the value.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [2.0, 1.0]])
    >>> vm.gradient(lambda d: vm.trace_gen_quad_form(d, a, b), np.eye(2))
    array([[8., 2.],
           [3., 1.]])
    """
    check_square("trace_gen_quad_form", "d", np.shape(d))
    check_matrix("trace_gen_quad_form", "b", b)
    check_system("trace_gen_quad_form", a, b)
    if b.shape[-1] != d.shape[-1] or not broadcastable(d.shape[:-2], a.shape[:-2], b.shape[:-2]):
        raise misfit(
            "trace_gen_quad_form",
            "b",
            b.shape,
            f"have {d.shape[-1]} columns and match d, of shape {d.shape}",
        )
    ab, bd = a @ b, b @ d.mT
    return Saved(_plain_inner(ab, bd), ab=ab, bd=bd)


@trace_gen_quad_form.reverse
def trace_gen_quad_form_reverse(
    g: Adjoint, r: Plain, d: Plain, a: Plain, b: Plain, ab: Plain, bd: Plain
) -> tuple[Thunk, ...]:
    return (
        lambda: _multiple(g, ab.mT @ b),
        lambda: _multiple(g, bd @ b.mT),
        lambda: _multiple(g, _sum_in_place(ab @ d, a.mT @ bd)),
    )


@trace_gen_quad_form.tangent
def trace_gen_quad_form_tangent(
    r: Result, d: Operand, a: Operand, b: Operand
) -> tuple[Linear, ...]:
    return (
        lambda t: trace_gen_quad_form(t, a, b),
        lambda t: trace_gen_quad_form(d, t, b),
        lambda t: inner(t, a @ b @ d + a.mT @ (b @ d.mT)),
    )
