"""Products of a matrix and its transpose."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.checks import check_matrix
from varmat.functions.linalg.triangles import lower_triangle
from varmat.programs.build.symbol import Symbol
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, array_valued

__all__ = ["crossprod", "multiply_lower_tri_self_transpose", "tcrossprod"]


@operation(stacked=True, native=True)
@array_valued
def crossprod(m: Plain) -> Plain:
    """Compute ``m.T @ m``, exactly symmetric.

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
    For the adjoint `g` of the result, `m` has the adjoint ``m @ (g + g.T)``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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
def crossprod_reverse(g: Adjoint, r: Plain, m: Plain) -> Adjoint:
    return m @ (g + g.mT)


@crossprod.tangent
def crossprod_tangent(r: Result, m: Operand) -> Linear:
    return lambda t: _plus_transpose(m.mT @ t)


def _plus_transpose(x: Operand) -> Result:
    return x + x.mT


@operation(stacked=True, native=True)
@array_valued
def tcrossprod(m: Plain) -> Plain:
    """Compute ``m @ m.T``, exactly symmetric.

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
    For the adjoint `g` of the result, `m` has the adjoint ``(g + g.T) @ m``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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
def tcrossprod_reverse(g: Adjoint, r: Plain, m: Plain) -> Adjoint:
    return (g + g.mT) @ m


@tcrossprod.tangent
def tcrossprod_tangent(r: Result, m: Operand) -> Linear:
    return lambda t: _plus_transpose(t @ m.mT)


@operation(stacked=True)
@array_valued
def multiply_lower_tri_self_transpose(m: Plain) -> Saved:
    """Multiply the lower triangle of a matrix by its transpose; the result is exactly symmetric.

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
    The covariance matrix of a Cholesky factor. The adjoint of `m` is the lower triangle of
    ``(g + g.T) @ m``, with the adjoint `g` of the result.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

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


@multiply_lower_tri_self_transpose.reverse
def multiply_lower_tri_self_transpose_reverse(
    g: Adjoint, r: Plain, m: Plain, lower: Plain
) -> Adjoint:
    s = g + g.mT
    if m.shape[-2] != m.shape[-1] or type(s) is Symbol:
        return np.tril(s @ lower)
    return lower_triangle(
        m.shape, lambda i, j, out: np.matmul(s[..., i:j, :], lower[..., :j], out=out)
    )


@multiply_lower_tri_self_transpose.tangent
def multiply_lower_tri_self_transpose_tangent(r: Result, m: Operand) -> Linear:
    lower = np.tril(m)
    return lambda t: _plus_transpose(np.tril(t) @ lower.mT)
