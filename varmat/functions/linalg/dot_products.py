"""Stan's inner products of rows and of columns, and distances.

There are no row vectors: the name of a function says which axis is meant, and a vector stands for a
matrix with one column."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import broadcastable, check_array, check_vectors, misfit
from varmat.functions.docstrings import filled
from varmat.functions.linalg.norms import dot_self, norm2
from varmat.functions.linalg.systems import column
from varmat.typing import (
    Adjoint,
    ArrayFunction,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    array_valued,
    scalar_valued,
)

__all__ = [
    "columns_dot_product",
    "columns_dot_self",
    "distance",
    "rows_dot_product",
    "rows_dot_self",
    "squared_distance",
]

# --- rows and columns ---
# The axis that is summed over -> subscripts of the matrix and of the result.
_SUMMED = {-1: "...ij,...ij->...i", -2: "...ij,...ij->...j"}


@operation(native=True, linear=True)
def dot_along(a: Plain, b: Plain, *, axis: int) -> Plain:
    """Inner products of the rows (axis -1) or columns (axis -2) of two matrices: what the public
    functions record.
    """
    return np.einsum(_SUMMED[axis], a, b)


@dot_along.reverse
def dot_along_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain, axis: int) -> tuple[Thunk, ...]:
    g = np.expand_dims(g, axis)
    return lambda: g * b, lambda: g * a


@operation(stacked=True, native=True)
def dot_self_along(a: Plain, *, axis: int) -> Plain:
    """Sums of squares of the rows (axis -1) or columns (axis -2) of a matrix: what the public
    functions record.
    """
    return np.einsum(_SUMMED[axis], a, a)


@dot_self_along.reverse
def dot_self_along_reverse(g: Adjoint, r: Plain, a: Plain, axis: int) -> Adjoint:
    return np.expand_dims(g + g, axis) * a


@dot_self_along.tangent
def dot_self_along_tangent(r: Result, a: Operand, axis: int) -> Linear:
    return lambda t: 2.0 * dot_along(a, t, axis=axis)


def _as_matrix(function: str, name: str, x: Operand) -> Result:
    x = as_operand(x, f"{function}: {name}")
    check_array(function, name, x, "be a vector, a matrix or a stack of matrices")
    return column(x, np.ndim(x) == 1)


_ROWS, _COLUMNS = {"line": "row", "length": "n"}, {"line": "column", "length": "m"}


def _dot_product(name: str, axis: int, example: str) -> ArrayFunction[...]:
    @filled(name, example=example, **(_ROWS if axis == -1 else _COLUMNS))
    @array_valued
    def dot_product(a: Operand, b: Operand) -> Result:
        """Inner product of each {line}.

        Parameters
        ----------
        a, b : array_like, shape (n, m) or (..., n, m)
            A vector stands for a matrix with one column.

        Returns
        -------
        VarMat
            Of shape ``(..., {length})``.

        Raises
        ------
        ShapeError
            If an operand is a scalar, or they have not the same shape.

        Notes
        -----
        The derivative with respect to each operand is the other one.

        References
        ----------
        Stan Functions Reference, "Dot products and specialized products".

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> a = vm.var([[1.0, 2.0], [3.0, 4.0]])
        >>> vm.{name}(a, a)
        VarMat([{example}])
        """
        a, b = _as_matrix(name, "a", a), _as_matrix(name, "b", b)
        p, q = np.shape(a), np.shape(b)
        if p[-2:] != q[-2:] or not broadcastable(p, q):
            raise misfit(name, "b", q, f"have the shape of a, {p}")
        return dot_along(a, b, axis=axis)

    return dot_product


def _dot_self(name: str, axis: int, example: str) -> ArrayFunction[...]:
    @filled(name, example=example, **(_ROWS if axis == -1 else _COLUMNS))
    @array_valued
    def dot_self(a: Operand) -> Result:
        """Sum of squares of each {line}.

        Parameters
        ----------
        a : array_like, shape (n, m) or (..., n, m)
            A vector stands for a matrix with one column.

        Returns
        -------
        VarMat
            Of shape ``(..., {length})``.

        Raises
        ------
        ShapeError
            If an operand is a scalar.

        Notes
        -----
        The derivative with respect to `a` is ``2 a``.

        References
        ----------
        Stan Functions Reference, "Dot products and specialized products".

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> a = vm.var([[1.0, 2.0], [3.0, 4.0]])
        >>> vm.{name}(a)
        VarMat([{example}])
        """
        return dot_self_along(_as_matrix(name, "a", a), axis=axis)

    return dot_self


rows_dot_product = _dot_product("rows_dot_product", -1, " 5., 25.")
rows_dot_self = _dot_self("rows_dot_self", -1, " 5., 25.")
columns_dot_product = _dot_product("columns_dot_product", -2, "10., 20.")
columns_dot_self = _dot_self("columns_dot_self", -2, "10., 20.")


# --- distances ---


def _difference(function: str, x: Operand, y: Operand) -> Result:
    """``x - y`` for two vectors of one length."""
    x, y = as_operand(x, f"{function}: x"), as_operand(y, f"{function}: y")
    check_vectors(function, ("x", "y"), x, y)
    return x - y


@scalar_valued
def squared_distance(x: Operand, y: Operand) -> Result:
    """Compute the square of the Euclidean distance of two vectors, or of two scalars.

    Parameters
    ----------
    x, y : array_like, vectors of one length, or scalars

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the operands are not vectors of one length, nor both scalars.

    Notes
    -----
    The derivative with respect to `x` is ``2 (x - y)``, and that with respect to `y` its negative.

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.squared_distance(x, np.array([1.0, 1.0])), np.array([4.0, 5.0]))
    array([6., 8.])
    """
    x, y = as_operand(x, "squared_distance: x"), as_operand(y, "squared_distance: y")
    if not np.ndim(x) and not np.ndim(y):
        return np.square(x - y)
    return dot_self(_difference("squared_distance", x, y))


@scalar_valued
def distance(x: Operand, y: Operand) -> Result:
    """Compute the Euclidean distance of two vectors, without overflow or underflow.

    Parameters
    ----------
    x, y : array_like, vectors of one length

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If the operands are not vectors of one length.

    Notes
    -----
    The derivative with respect to `x` is the unit vector from `y` to `x`, and that with respect to
    `y` its negative; both are zero where the vectors coincide.

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.distance(x, np.array([1.0, 1.0])), np.array([4.0, 5.0]))
    array([0.6, 0.8])
    """
    return norm2(_difference("distance", x, y))
