"""Stan's products of matrices: quadratic forms and their traces, cross products, products with
diagonals and exponentials.

Vectors are arrays with one axis, and there are no row vectors. Matrices may come in stacks, whose
leading axes broadcast. Each product of two matrices is computed once: what the reverse pass needs
is kept, and what several adjoints need is shared."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.elementwise import ROWS
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import TOLERANCE, broadcastable, check_matrix, check_square
from varmat.functions.linalg.lapack import check_symmetric, lower_triangle, mirrored, product
from varmat.functions.linalg.matrix_functions import expm, expm_reverse, expm_tangent
from varmat.functions.linalg.products import matmul_reverse
from varmat.functions.linalg.solves import check_system, column, inner, uncolumn
from varmat.plain_arrays import unbroadcast
from varmat.programs.symbols import require

__all__ = [
    "crossprod",
    "diag_post_multiply",
    "diag_pre_multiply",
    "elt_divide",
    "elt_multiply",
    "matrix_exp_multiply",
    "minus",
    "multiply_lower_tri_self_transpose",
    "plus",
    "quad_form",
    "quad_form_diag",
    "quad_form_sym",
    "scale_matrix_exp_multiply",
    "tcrossprod",
    "trace_gen_quad_form",
    "trace_quad_form",
]

elt_multiply = ROWS["multiply"]
elt_divide = ROWS["divide"]
plus = ROWS["positive"]
minus = ROWS["negative"]


# --- what is refused ---


def _check_diagonal(function: str, v: Any, m: Any, axis: int) -> None:
    """Raise `ShapeError` unless `v` has an element for each row (axis -2) or column (axis -1) of
    the matrix `m`.
    """
    check_matrix(function, "m", m)
    v, m = np.shape(v), np.shape(m)
    if v[-1:] != m[axis:][:1] or not broadcastable(v[:-1], m[:-2]):
        what = "row" if axis == -2 else "column"
        raise ShapeError(
            f"{function}: v has shape {v}, but must have one element for each {what} of m, of "
            f"shape {m}!"
        )


# --- quadratic forms ---


def _transposed_times(b: Any, x: Any) -> Any:
    """``bᵀ x`` for a matrix of columns, or a vector, `b`, and `x` likewise; differentiable."""
    return x @ b if np.ndim(b) == 1 else b.mT @ x


def _outer_square(g: Any, b: Any) -> Any:
    """``g b bᵀ`` for a vector `b` and a scalar, or a stack of scalars, `g`."""
    return (_column(g) * b)[..., None] * b


def _column(g: Any) -> Any:
    """A scalar, or a stack of them, as what vectors are multiplied with."""
    return g[..., None] if np.ndim(g) else g


def _product(a: Any, b: Any, workspace: Any) -> Any:
    """``a @ b``, of two matrices in memory from a workspace, if there is one."""
    if a.ndim == b.ndim == 2 and workspace is not np.empty and type(b) is np.ndarray:
        return a.dot(b, workspace((len(a), b.shape[1])))
    return a @ b


def _inner(x: Any, y: Any) -> Any:
    """The inner product of matrices, for each of a stack."""
    if x.ndim == y.ndim == 2 and x.size:
        return np.vdot(x, y)
    return np.einsum("...ij,...ij->...", x, y)


def _sum(x: Any, y: Any) -> Any:
    """``x + y`` for two new arrays of one shape, in place."""
    return np.add(x, y, out=x)


def _times(g: Any, x: Any) -> Any:
    """``g x`` for a scalar, or a stack of scalars, `g` and a new array `x` of matrices, in place if
    there is no stack.
    """
    if isinstance(g, float):
        return np.multiply(x, g, out=x)
    return g[..., None, None] * x if np.ndim(g) else g * x


@operation(native=True)
def quad_form(a: Any, b: Any, workspace: Any = np.empty) -> Any:
    """The quadratic form ``b.T @ a @ b``.

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
    For the adjoint `g` of the result, that of `a` is ``b @ g @ b.T`` and that of `b` is ``a @ b @
    g.T + a.T @ b @ g``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> vm.gradient(lambda b: vm.quad_form(a, b), np.array([1.0, 3.0]))
    array([7., 7.])
    """
    check_system("quad_form", a, b)
    ab = _product(a, b, workspace)
    return Saved(ab @ b if b.ndim == 1 else _product(b.mT, ab, workspace), ab=ab)


@quad_form.reverse
def quad_form_reverse(g: Any, r: Any, a: Any, b: Any, ab: Any) -> Any:
    if b.ndim == 1:
        return lambda: _outer_square(g, b), lambda: _column(g) * (ab + a.mT @ b)
    bg = product(b, g)
    return lambda: product(bg, b.mT), lambda: _sum(product(ab, g.mT), product(a.mT, bg))


@quad_form.tangent
def quad_form_tangent(r: Any, a: Any, b: Any) -> Any:
    return lambda t: quad_form(
        t, b
    ), lambda t: _transposed_times(t, a @ b) + _transposed_times(b, a @ t)


@operation()
def quad_form_sym(a: Any, b: Any, workspace: Any = np.empty) -> Any:
    """The quadratic form ``b.T @ a @ b`` of a symmetric matrix; exactly symmetric.

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
    For the adjoint `g` of the result and ``s = g + g.T``, that of `a` is ``b @ s @ b.T / 2``,
    symmetric as well, and that of `b` is ``a @ b @ s``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: vm.quad_form_sym(a, b), np.array([1.0, 3.0]))
    array([10.,  8.])
    """
    check_system("quad_form_sym", a, b)
    check_symmetric("quad_form_sym", a)
    ab = _product(a, b, workspace)
    return Saved(ab @ b if b.ndim == 1 else mirrored(_product(b.mT, ab, workspace)), ab=ab)


@quad_form_sym.straight
def quad_form_sym_straight(a: Any, b: Any) -> Any:
    require(abs(a - a.mT) <= TOLERANCE)
    ab = a @ b
    return (ab @ b if np.ndim(b) == 1 else b.mT @ ab), lambda g: quad_form_sym_reverse(
        g, None, a, b, ab
    )


@quad_form_sym.reverse
def quad_form_sym_reverse(g: Any, r: Any, a: Any, b: Any, ab: Any) -> Any:
    if b.ndim == 1:
        return lambda: _outer_square(g, b), lambda: _column(g + g) * ab
    s = g + g.mT
    return lambda: product(_times(0.5, product(b, s)), b.mT), lambda: product(ab, s)


@quad_form_sym.tangent
def quad_form_sym_tangent(r: Any, a: Any, b: Any) -> Any:
    def both(half: Any) -> Any:
        return half + (half if np.ndim(b) == 1 else half.mT)

    return lambda t: 0.5 * both(quad_form(t, b)), lambda t: both(_transposed_times(t, a @ b))


@operation(native=True)
def trace_quad_form(a: Any, b: Any) -> Any:
    """The trace of the quadratic form ``b.T @ a @ b``.

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
    For the adjoint `g` of the result, that of `a` is ``g * b @ b.T`` and that of `b` is ``g * (a @
    b + a.T @ b)``.

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
    return Saved(_inner(b, ab), ab=ab)


@trace_quad_form.reverse
def trace_quad_form_reverse(g: Any, r: Any, a: Any, b: Any, ab: Any) -> Any:
    vector = b.ndim == 1
    b = column(b, vector)
    return lambda: _times(g, b @ b.mT), lambda: uncolumn(_times(g, ab + a.mT @ b), vector)


@trace_quad_form.tangent
def trace_quad_form_tangent(r: Any, a: Any, b: Any) -> Any:
    vector = np.ndim(b) == 1
    x = column(b, vector)
    return lambda t: trace_quad_form(t, b), lambda t: inner(column(t, vector), a @ x + a.mT @ x)


@operation(native=True)
def trace_gen_quad_form(d: Any, a: Any, b: Any) -> Any:
    """The trace of a product with a quadratic form, ``d @ b.T @ a @ b``.

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
    For the adjoint `g` of the result, that of `d` is ``g * (a @ b).T @ b``, that of `a` is ``g * b
    @ d.T @ b.T`` and that of `b` is ``g * (a @ b @ d + a.T @ b @ d.T)``. The products ``a @ b`` and
    ``b @ d.T`` are made once, for the value.

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
        raise ShapeError(
            f"trace_gen_quad_form: b has shape {b.shape}, but must have {d.shape[-1]} columns and "
            f"go with d, of shape {d.shape}!"
        )
    ab, bd = a @ b, b @ d.mT
    return Saved(_inner(ab, bd), ab=ab, bd=bd)


@trace_gen_quad_form.reverse
def trace_gen_quad_form_reverse(g: Any, r: Any, d: Any, a: Any, b: Any, ab: Any, bd: Any) -> Any:
    return (
        lambda: _times(g, ab.mT @ b),
        lambda: _times(g, bd @ b.mT),
        lambda: _times(g, _sum(ab @ d, a.mT @ bd)),
    )


@trace_gen_quad_form.tangent
def trace_gen_quad_form_tangent(r: Any, d: Any, a: Any, b: Any) -> Any:
    return (
        lambda t: trace_gen_quad_form(t, a, b),
        lambda t: trace_gen_quad_form(d, t, b),
        lambda t: inner(t, a @ b @ d + a.mT @ (b @ d.mT)),
    )


# --- a matrix and its transpose ---


@operation(stacked=True, native=True)
def crossprod(m: Any) -> Any:
    """The product ``m.T @ m``, exactly symmetric.

    Parameters
    ----------
    m : array_like, shape (..., n, k)

    Returns
    -------
    VarMat, shape (..., k, k)

    Raises
    ------
    ShapeError
        If `m` is not a matrix.

    Notes
    -----
    For the adjoint `g` of the result, that of `m` is ``m @ (g + g.T)``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.crossprod(vm.var([[1.0, 2.0], [0.0, 1.0]]))
    VarMat([[1., 2.],
            [2., 5.]])
    """
    check_matrix("crossprod", "m", m)
    return m.mT @ m


@crossprod.reverse
def crossprod_reverse(g: Any, r: Any, m: Any) -> Any:
    return m @ (g + g.mT)


@crossprod.tangent
def crossprod_tangent(r: Any, m: Any) -> Any:
    return lambda t: _plus_transpose(m.mT @ t)


def _plus_transpose(x: Any) -> Any:
    return x + x.mT


@operation(stacked=True, native=True)
def tcrossprod(m: Any) -> Any:
    """The product ``m @ m.T``, exactly symmetric.

    Parameters
    ----------
    m : array_like, shape (..., n, k)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `m` is not a matrix.

    Notes
    -----
    For the adjoint `g` of the result, that of `m` is ``(g + g.T) @ m``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.tcrossprod(vm.var([[1.0, 2.0], [0.0, 1.0]]))
    VarMat([[5., 2.],
            [2., 1.]])
    """
    check_matrix("tcrossprod", "m", m)
    return m @ m.mT


@tcrossprod.reverse
def tcrossprod_reverse(g: Any, r: Any, m: Any) -> Any:
    return (g + g.mT) @ m


@tcrossprod.tangent
def tcrossprod_tangent(r: Any, m: Any) -> Any:
    return lambda t: _plus_transpose(t @ m.mT)


@operation(stacked=True)
def multiply_lower_tri_self_transpose(m: Any) -> Any:
    """The product of the lower triangle of a matrix with its transpose, exactly symmetric.

    Parameters
    ----------
    m : array_like, shape (..., n, k)
        The lower triangle, with the diagonal, is read.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `m` is not a matrix.

    Notes
    -----
    The covariance matrix of a Cholesky factor. For the adjoint `g` of the result, that of the lower
    triangle `m` is the lower triangle of ``(g + g.T) @ m``; above it there is none.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.multiply_lower_tri_self_transpose(vm.var([[1.0, 9.0], [2.0, 1.0]]))
    VarMat([[1., 2.],
            [2., 5.]])
    """
    check_matrix("multiply_lower_tri_self_transpose", "m", m)
    lower = np.tril(m)
    return Saved(lower @ lower.mT, lower=lower)


@multiply_lower_tri_self_transpose.straight
def multiply_lower_tri_self_transpose_straight(m: Any) -> Any:
    lower = np.tril(m)
    return lower @ lower.mT, lambda g: np.tril((g + g.mT) @ lower)


@multiply_lower_tri_self_transpose.reverse
def multiply_lower_tri_self_transpose_reverse(g: Any, r: Any, m: Any, lower: Any) -> Any:
    s = g + g.mT
    if m.shape[-2] != m.shape[-1]:
        return np.tril(s @ lower)
    return lower_triangle(
        m.shape, lambda i, j, out: np.matmul(s[..., i:j, :], lower[..., :j], out=out)
    )


@multiply_lower_tri_self_transpose.tangent
def multiply_lower_tri_self_transpose_tangent(r: Any, m: Any) -> Any:
    lower = np.tril(m)
    return lambda t: _plus_transpose(np.tril(t) @ lower.mT)


# --- diagonal matrices ---


def diag_pre_multiply(v: Any, m: Any) -> Any:
    """The product ``diag(v) @ m``: each row of `m` times an element of `v`.

    Parameters
    ----------
    v : array_like, shape (..., n)
    m : array_like, shape (..., n, k)

    Returns
    -------
    VarMat, shape (..., n, k)

    Raises
    ------
    ShapeError
        If `m` is not a matrix, or has another number of rows than `v` has elements.

    Notes
    -----
    The elementwise product of columns, ``v[..., None] * m``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.diag_pre_multiply(vm.var([1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    VarMat([[1., 2.],
            [6., 8.]])
    """
    v, m = as_operand(v, "diag_pre_multiply: v"), as_operand(m, "diag_pre_multiply: m")
    _check_diagonal("diag_pre_multiply", v, m, -2)
    return v[..., None] * m


def diag_post_multiply(m: Any, v: Any) -> Any:
    """The product ``m @ diag(v)``: each column of `m` times an element of `v`.

    Parameters
    ----------
    m : array_like, shape (..., n, k)
    v : array_like, shape (..., k)

    Returns
    -------
    VarMat, shape (..., n, k)

    Raises
    ------
    ShapeError
        If `m` is not a matrix, or has another number of columns than `v` has elements.

    Notes
    -----
    The elementwise product of rows, ``m * v[..., None, :]``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.diag_post_multiply(np.array([[1.0, 2.0], [3.0, 4.0]]), vm.var([1.0, 2.0]))
    VarMat([[1., 4.],
            [3., 8.]])
    """
    m, v = as_operand(m, "diag_post_multiply: m"), as_operand(v, "diag_post_multiply: v")
    _check_diagonal("diag_post_multiply", v, m, -1)
    return m * v[..., None, :]


@operation()
def quad_form_diag(m: Any, v: Any, workspace: Any = np.empty) -> Any:
    """The product ``diag(v) @ m @ diag(v)``, a covariance matrix from correlations and standard
    deviations.

    Parameters
    ----------
    m : array_like, shape (..., n, n)
    v : array_like, shape (..., n)

    Returns
    -------
    VarMat, shape (..., n, n)
        Exactly symmetric if `m` is.

    Raises
    ------
    ShapeError
        If `m` is not square, or has another number of rows than `v` has elements.

    Notes
    -----
    For the adjoint `g` of the result, that of `m` is ``g`` times the outer product of `v` with
    itself, and that of `v` is ``h @ v + h.T @ v`` with ``h = g * m``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.quad_form_diag(np.array([[1.0, 0.5], [0.5, 1.0]]), vm.var([1.0, 2.0]))
    VarMat([[1., 1.],
            [1., 4.]])
    """
    check_square("quad_form_diag", "m", np.shape(m))
    _check_diagonal("quad_form_diag", v, m, -2)
    n = v.shape[-1]
    scales = np.multiply(v[..., :, None], v[..., None, :], out=workspace((*v.shape, n)))
    shape = np.broadcast_shapes(m.shape, scales.shape)
    return Saved(np.multiply(scales, m, out=workspace(shape)), scales=scales)


@quad_form_diag.reverse
def quad_form_diag_reverse(g: Any, r: Any, m: Any, v: Any, scales: Any) -> Any:
    def of_v() -> Any:
        h = g * m
        return (h @ v[..., None])[..., 0] + (v[..., None, :] @ h)[..., 0, :]

    return lambda: g * scales, of_v


@quad_form_diag.tangent
def quad_form_diag_tangent(r: Any, m: Any, v: Any) -> Any:
    def scaled(m: Any, u: Any, v: Any) -> Any:
        return u[..., :, None] * v[..., None, :] * m

    return lambda t: scaled(t, v, v), lambda t: scaled(m, t, v) + scaled(m, v, t)


# --- exponentials times matrices ---


@operation()
def scale_matrix_exp_multiply(t: Any, a: Any, b: Any) -> Any:
    """The product ``expm(t * a) @ b``: the solution at time `t` of the linear differential equation
    with matrix `a` and start `b`.

    Parameters
    ----------
    t : scalar
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, m)

    Raises
    ------
    ShapeError
        If `t` is not a scalar, `a` is not square, or `b` has another number of rows.

    Notes
    -----
    The derivative with respect to `t` is ``a`` times the result; that with respect to `a` goes
    through the Fréchet derivative of the exponential, see `expm`, and is computed only if `a` is a
    variable.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a, b = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 3.0])
    >>> vm.scale_matrix_exp_multiply(vm.var(2.0), a, b)
    VarMat([7., 3.])
    """
    if np.ndim(t):
        raise ShapeError(
            f"scale_matrix_exp_multiply: t has shape {np.shape(t)}, but must be a scalar!"
        )
    check_system("scale_matrix_exp_multiply", a, b)
    e = expm(t * a)
    return Saved(np.matmul(e, b), e=e)


@scale_matrix_exp_multiply.reverse
def scale_matrix_exp_multiply_reverse(g: Any, r: Any, t: Any, a: Any, b: Any, e: Any) -> Any:
    of_e, of_b = matmul_reverse(g, r, e, b)
    vector = b.ndim == 1
    return (
        lambda: np.sum(g * _applied(a, r, vector)),
        lambda: t * expm_reverse(unbroadcast(of_e(), e.shape), e, t * a),
        of_b,
    )


@scale_matrix_exp_multiply.tangent
def scale_matrix_exp_multiply_tangent(r: Any, t: Any, a: Any, b: Any) -> Any:
    e, vector = expm(t * a), np.ndim(b) == 1
    return (
        lambda s: s * _applied(a, r, vector),
        lambda s: expm_tangent(e, t * a)(t * s) @ b,
        lambda s: _applied(e, s, False),
    )


def _applied(a: Any, x: Any, vector: bool) -> Any:
    """``a @ x`` for a matrix of columns or, in the last axis, vectors; differentiable."""
    return uncolumn(a @ column(x, vector), vector)


def matrix_exp_multiply(a: Any, b: Any) -> Any:
    """The product ``expm(a) @ b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, m)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, m)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.

    Notes
    -----
    The exponential and its product with `b`, whose derivatives these are.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.matrix_exp_multiply(vm.var([[0.0, 2.0], [0.0, 0.0]]), np.array([1.0, 3.0]))
    VarMat([7., 3.])
    """
    a, b = as_operand(a, "matrix_exp_multiply: a"), as_operand(b, "matrix_exp_multiply: b")
    check_system("matrix_exp_multiply", a, b)
    return expm(a) @ b
