"""Products with diagonal matrices, given as vectors."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import broadcastable, check_matrix, check_square, misfit
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["diag_post_multiply", "diag_pre_multiply", "quad_form_diag"]


def _check_diagonal(function: str, v: Operand, m: Operand, axis: int) -> None:
    """Raise `ShapeError` unless `v` has an element for each row (axis -2) or column (axis -1) of
    the matrix `m`.
    """
    check_matrix(function, "m", m)
    v, m = np.shape(v), np.shape(m)
    if v[-1:] != m[axis:][:1] or not broadcastable(v[:-1], m[:-2]):
        what = "row" if axis == -2 else "column"
        raise misfit(function, "v", v, f"have one element for each {what} of m, of shape {m}")


@array_valued
def diag_pre_multiply(v: Operand, m: Operand) -> Result:
    """Compute ``diag(v) @ m``: each row of `m` times an element of `v`.

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

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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


@array_valued
def diag_post_multiply(m: Operand, v: Operand) -> Result:
    """Compute ``m @ diag(v)``: each column of `m` times an element of `v`.

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

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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
@array_valued
def quad_form_diag(m: Plain, v: Plain, workspace: Function = np.empty) -> Saved:
    """Compute ``diag(v) @ m @ diag(v)``, a covariance matrix from correlations and standard
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
    For the adjoint `g` of the result, `m` has the adjoint ``g`` times the outer product of `v` with
    itself, and `v` has ``h @ v + h.T @ v`` with ``h = g * m``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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
def quad_form_diag_reverse(
    g: Adjoint, r: Plain, m: Plain, v: Plain, scales: Plain
) -> tuple[Thunk, ...]:
    def of_v() -> Result:
        h = g * m
        return (h @ v[..., None])[..., 0] + (v[..., None, :] @ h)[..., 0, :]

    return lambda: g * scales, of_v


@quad_form_diag.tangent
def quad_form_diag_tangent(r: Result, m: Operand, v: Operand) -> tuple[Linear, ...]:
    def scaled(m: Operand, u: Operand, v: Operand) -> Result:
        return u[..., :, None] * v[..., None, :] * m

    return lambda t: scaled(t, v, v), lambda t: scaled(m, t, v) + scaled(m, v, t)
