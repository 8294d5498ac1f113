"""Diagonals and triangles of matrices."""

from __future__ import annotations

import numpy as np

from varmat.core import dispatch
from varmat.core.operation import operation
from varmat.functions.aliases import alias
from varmat.functions.arrays.moving import moved
from varmat.functions.arrays.repeating import directions
from varmat.functions.checks import check_matrix, check_square, misfit
from varmat.programs.build.symbol import Symbol
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["add_diag", "diag_matrix", "symmetrize_from_lower_tri", "symmetrize_from_upper_tri"]


def _triangle(function: Function) -> Function:
    def answer(m: Operand, k: int = 0) -> Result:
        def move(a: Operand) -> Result:
            return function(a, k)

        return moved(m, move=move, back=move if m.ndim > 1 else None)

    return answer


dispatch.SUPPORTED[np.tril] = _triangle(np.tril)
dispatch.SUPPORTED[np.triu] = _triangle(np.triu)


@dispatch.implements(np.diag)
@array_valued
def diag(v: Operand, k: int = 0) -> Result:
    """Make the matrix with a given diagonal, or return the diagonal of a matrix (as a view).

    Parameters
    ----------
    v : array_like, shape (n,) or (m, n)
    k : int
        Index of the diagonal; above the main one if positive.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If `v` is neither a vector nor a matrix.

    Notes
    -----
    The adjoint of the diagonal is the diagonal of the adjoint. Also reached as ``np.diag``.

    References
    ----------
    Stan Functions Reference, "Diagonal matrix functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> weights = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda x: np.sum(vm.diag_matrix(x) * weights), np.array([5.0, 6.0]))
    array([1., 4.])
    """
    if np.ndim(v) not in (1, 2):
        raise misfit("diag", "v", np.shape(v), "be a vector or a matrix")
    if np.ndim(v) == 2:
        return np.diagonal(v, k)
    return moved(v, move=lambda a: np.diag(a, k), back=lambda g: np.diagonal(g, k))


@dispatch.implements(np.diagflat)
def diagflat(v: Operand, k: int = 0) -> Result:
    """Implement `np.diagflat`."""
    return diag(np.ravel(v), k)


@array_valued
def symmetrize_from_lower_tri(a: Operand) -> Result:
    """Mirror the lower triangle of `a` to make a symmetric matrix; the upper triangle is not read.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    An element below the diagonal receives the adjoints of both its places.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.symmetrize_from_lower_tri(np.array([[1.0, 9.0], [2.0, 3.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    return _symmetrized("symmetrize_from_lower_tri", a, np.tri)


@array_valued
def symmetrize_from_upper_tri(a: Operand) -> Result:
    """Mirror the upper triangle of `a` to make a symmetric matrix; the lower triangle is not read.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    An element above the diagonal receives the adjoints of both its places.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.symmetrize_from_upper_tri(np.array([[1.0, 9.0], [2.0, 3.0]]))
    array([[1., 9.],
           [9., 3.]])
    """
    return _symmetrized("symmetrize_from_upper_tri", a, lambda n, dtype: np.tri(n, dtype=dtype).T)


def _symmetrized(name: str, a: Operand, triangle: Function) -> Result:
    check_square(name, "a", np.shape(a))
    saved = triangle(np.shape(a)[-1], dtype=bool)
    return moved(a, move=lambda x: np.where(saved, x, np.swapaxes(x, -1, -2)))


@operation(stacked=True)
@array_valued
def add_diag(m: Plain, d: Plain) -> Plain:
    """Add to the diagonal of a matrix.

    Parameters
    ----------
    m : array_like, shape (..., n, p)
    d : scalar or array_like, shape (min(n, p),)

    Returns
    -------
    VarMat, shape (..., n, p)

    Raises
    ------
    ShapeError
        If `m` is not a matrix or `d` does not fit its diagonal.

    Notes
    -----
    The adjoint of `d` is the diagonal of the adjoint of the result.

    References
    ----------
    Stan Functions Reference, "Diagonal matrix functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.add_diag(np.zeros((2, 2)), np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    shape = np.shape(m)
    check_matrix("add_diag", "m", m)
    if np.shape(d) not in ((), shape[-2:][:1] if shape[-2] <= shape[-1] else shape[-1:]):
        raise misfit(
            "add_diag", "d", np.shape(d), f"be a scalar or have shape ({min(shape[-2:])},)"
        )
    rows, columns = shape[-2:]
    if type(m) is Symbol or type(d) is Symbol:
        along = d[:, None] if np.ndim(d) and rows <= columns else d
        return np.where(np.eye(rows, columns, dtype=bool), m + along, m)
    result = np.array(m, order="C")
    # The elements of the diagonal are one row and one column apart.
    end = min(rows, columns) * (columns + 1)
    result.reshape(*shape[:-2], rows * columns)[..., : end : columns + 1] += d
    return result


@add_diag.reverse
def add_diag_reverse(g: Adjoint, r: Plain, m: Plain, d: Plain) -> tuple[Thunk, ...]:
    return lambda: g, lambda: np.diagonal(g, axis1=-2, axis2=-1)


@add_diag.tangent
def add_diag_tangent(r: Result, m: Operand, d: Operand) -> tuple[Linear, Linear]:
    n, p = np.shape(m)[-2:]
    on_diagonal = np.tri(n, p, dtype=bool) & np.tri(p, n, dtype=bool).T
    matrix = (1, 1) if not np.ndim(d) else (n, 1) if n <= p else (1, p)

    def push(t: Operand) -> Result:
        return np.where(
            on_diagonal, np.reshape(t, (*directions(t, d), *(1,) * (np.ndim(r) - 2), *matrix)), 0.0
        )

    return np.copy, push


diag_matrix = alias("diag_matrix", diag)
