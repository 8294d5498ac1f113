"""Operations that are linear in the non-zeros of a sparse matrix: products with vectors and
matrices, and the dense matrix.

A `Pattern` says where the non-zeros are; it is constant. Their values are one vector, which may be
a variable: the operations here take that vector, and the pattern as a setting, so that every kind
of derivative and recordings follow as for arrays. Where the whole sparse matrix is data, as of
independent variables, it is a setting itself, in the format that it has."""

from __future__ import annotations

from functools import partial

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import misfit
from varmat.functions.sparse.factors import Pattern
from varmat.programs.build.symbol import Symbol, is_symbol, spread_back
from varmat.programs.kernels.sparse import product_step
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Thunk


def checked_matrix(function: str, name: str, x: Operand) -> Result:
    """Return a sparse matrix of SciPy; refuse one without two axes or real elements."""
    if len(x.shape) != 2:
        raise misfit(function, name, x.shape, "be a matrix")
    if x.dtype.kind not in "biuf":
        raise TypeError(
            f"{function}: {name} has dtype {x.dtype}, but must be real numbers (float64, or what "
            "converts to it)"
        )
    return x


def check_product(function: str, length: int, b: Operand) -> None:
    """Refuse what a sparse matrix with `length` columns cannot be multiplied with."""
    shape = np.shape(b)
    if len(shape) not in (1, 2):
        raise misfit(
            function, "b", shape, "be a vector or a matrix, because the other operand is sparse"
        )
    if shape[0] != length:
        raise misfit(
            function, "b", shape, f"have {length} rows, as many as the sparse matrix has columns"
        )


def with_directions(product: Function, t: Operand, b: Operand) -> Result:
    """Compute a product with tangents of `b`, all directions side by side if an axis of them is in
    front.
    """
    if np.ndim(t) == np.ndim(b):
        return product(t)
    if np.ndim(b) == 1:
        return np.transpose(product(np.transpose(t)))
    k, n, columns = np.shape(t)
    result = product(np.reshape(np.moveaxis(t, 0, 1), (n, k * columns)))
    return np.moveaxis(np.reshape(result, (np.shape(result)[0], k, columns)), 1, 0)


@operation(stacked=True)
def sparse_matmul(w: Plain, b: Plain, *, pattern: Pattern, transposed: bool = False) -> Plain:
    """Multiply a sparse matrix, or its transpose, by a vector or a matrix.

    Parameters
    ----------
    w : array_like, shape (k,)
        The non-zeros.
    b : array_like, shape (n,) or (n, j)
    pattern : Pattern
        Pattern of a matrix of shape (m, n), or (n, m) if it is `transposed`.
    transposed : bool

    Returns
    -------
    VarMat, shape (m,) or (m, j)

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    For the adjoint `g` of the result, a non-zero in row i and column j has the inner product of
    row i of `g` and row j of `b` as its adjoint, and `b` the transpose times `g`. Both take time in
    proportion to the number of non-zeros."""
    check_product("matmul", pattern.shape[not transposed], b)
    return pattern.times(w, b, transposed)


@sparse_matmul.reverse
def sparse_matmul_reverse(
    g: Adjoint, r: Plain, w: Plain, b: Plain, pattern: Pattern, transposed: bool
) -> tuple[Thunk, ...]:
    x, y = (b, g) if transposed else (g, b)
    return lambda: pattern.sampled(x, y), lambda: pattern.times(w, g, not transposed)


@sparse_matmul.tangent
def sparse_matmul_tangent(
    r: Result, w: Operand, b: Operand, pattern: Pattern, transposed: bool
) -> tuple[Linear, ...]:
    def product(w: Operand, b: Operand) -> Result:
        return sparse_matmul(w, b, pattern=pattern, transposed=transposed)

    def of_w(t: Operand) -> Result:
        return product(t, b) if np.ndim(t) == 1 else np.stack([product(x, b) for x in t])

    return of_w, lambda t: with_directions(lambda x: product(w, x), t, b)


@operation(stacked=True)
def sparse_data_matmul(b: Plain, *, matrix: Plain, transposed: bool = False) -> Saved:
    """Multiply a sparse matrix that is data, or its transpose, by a vector or a matrix.

    Parameters
    ----------
    b : array_like, shape (n,) or (n, j)
    matrix : sparse array or matrix of SciPy, shape (m, n), or (n, m) if it is `transposed`
    transposed : bool

    Returns
    -------
    VarMat, shape (m,) or (m, j)

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The adjoint of `b` is the transpose times that of the result.
    """
    check_product("matmul", matrix.shape[not transposed], b)
    if not is_symbol(b):
        return Saved(data_times(matrix, b, transposed), step=None)
    step = step_of(matrix)
    return Saved(step(b, transposed), step=step)


def step_of(matrix: Operand) -> Function:
    """Make a function of a symbol, and of whether to transpose, that multiplies a sparse matrix of
    data by the symbol.
    """
    rows = matrix.tocsr()
    columns, starts = (x.astype(np.int64) for x in (rows.indices, rows.indptr))
    return partial(product_step, rows.data.astype(np.float64), columns, starts, rows.shape)


def data_times(matrix: Operand, b: Operand, transposed: bool = False) -> Result:
    """Multiply plain numbers; return an array."""
    return np.asarray((matrix.T if transposed else matrix) @ b, np.float64)


@sparse_data_matmul.reverse
def sparse_data_matmul_reverse(
    g: Adjoint, r: Plain, b: Plain, matrix: Plain, transposed: bool, step: Plain
) -> Adjoint:
    if step is not None:  # of a program
        return step(g, not transposed)
    return data_times(matrix, g, not transposed)


@sparse_data_matmul.tangent
def sparse_data_matmul_tangent(r: Result, b: Operand, matrix: Operand, transposed: bool) -> Linear:
    def product(x: Operand) -> Result:
        return sparse_data_matmul(x, matrix=matrix, transposed=transposed)

    return lambda t: with_directions(product, t, b)


def times_data(matrix: Operand, b: Operand) -> Result:
    """Compute ``matrix @ b`` for a sparse matrix of SciPy and anything that carries derivatives."""
    return sparse_data_matmul(b, matrix=checked_matrix("matmul", "a", matrix))


def data_times_right(b: Operand, matrix: Operand) -> Result:
    """Compute ``b @ matrix`` for a sparse matrix of SciPy and anything that carries derivatives."""
    matrix = checked_matrix("matmul", "b", matrix)
    return from_right(
        lambda x: sparse_data_matmul(x, matrix=matrix, transposed=True), b, matrix.shape
    )


def from_right(product: Function, b: Operand, shape: tuple[int, int]) -> Result:
    """Compute ``b @ a`` for a sparse matrix of a shape, from the product of the transpose with a
    vector or matrix.
    """
    b = as_operand(b, "matmul: a")
    arguments = np.shape(b)
    if len(arguments) not in (1, 2) or arguments[-1] != shape[0]:
        rule = (
            f"must be a vector or a matrix with {shape[0]} columns, as many as the sparse matrix "
            "has rows"
        )
        raise ShapeError(f"matmul: a has shape {arguments}, but {rule}!")
    return product(b) if len(arguments) == 1 else np.transpose(product(np.transpose(b)))


@operation(linear=True)
def sparse_to_dense(w: Plain, *, pattern: Pattern) -> Plain:
    """Convert a sparse matrix to a dense one.

    Parameters
    ----------
    w : array_like, shape (k,)
        The non-zeros.
    pattern : Pattern

    Returns
    -------
    VarMat, of the shape of the pattern

    Notes
    -----
    The adjoint of a non-zero is its element's adjoint.
    """
    if type(w) is Symbol:
        return spread_back(w, pattern.places, pattern.shape)
    return pattern.matrix(w).toarray()


@sparse_to_dense.reverse
def sparse_to_dense_reverse(g: Adjoint, r: Plain, w: Plain, pattern: Pattern) -> Adjoint:
    return g[pattern.rows, pattern.columns]


@operation(linear=True)
def collected(x: Plain, *, indices: Plain, size: int) -> Plain:
    """Make a vector of sums: element i is the sum of the elements of `x` whose place is i.

    Parameters
    ----------
    x : array_like, shape (k,)
    indices : ndarray of int, shape (k,)
    size : int
        The length of the result.

    Returns
    -------
    VarMat, shape (size,)

    Notes
    -----
    The adjoint of an element is the adjoint of its sum.
    """
    if type(x) is Symbol:
        return spread_back(x, indices, (size,))
    return np.bincount(indices, x, size) if len(indices) else np.zeros(size)


@collected.reverse
def collected_reverse(g: Adjoint, r: Plain, x: Plain, indices: Plain, size: int) -> Adjoint:
    return g[indices]
