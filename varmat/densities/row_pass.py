"""One pass through the rows of a matrix of independent variables, block by block, which forms both
products with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.plain_arrays import BLOCK, blocks
from varmat.typing import Operand, Plain, Result

# Rows of a block, at most: more would not share out NumPy's overhead any better.
MOST_ROWS = 8000

# The slice of all rows.
ALL = slice(None)


def pass_over(
    x: Operand, beta: Plain, size: int, weigh: Callable[[Any, slice], Any], recording: bool
) -> Plain | None:
    """Make one pass through the rows of a matrix, block by block.

    `weigh` is given the products of the rows of a block with `beta`, in memory that it may use, or
    a number for a row that all observations share, and the places of the rows. If recording, it
    returns weights, and their product with the matrix is the result."""
    if type(x) is not np.ndarray:
        weights = weigh(x @ beta, ALL)
        return x.T @ weights if recording else None
    if x.ndim == 1 or len(x) != size:
        row = x.reshape(-1)
        weights = weigh(float(row.dot(beta)), ALL)
        return total(weights) * row if recording else None
    # `dot` is quicker, but copies arrays that are not in C order; `matmul` is slow without a unit
    # stride.
    flags = x.flags
    x = x if flags.forc else np.ascontiguousarray(x)
    multiply: Any = np.matmul if flags.f_contiguous and not flags.c_contiguous else np.dot
    most = min(max(2 * BLOCK // max(1, beta.size), 8), MOST_ROWS)
    if size <= most:
        weights = weigh(multiply(x, beta), ALL)
        return multiply(weights, x) if recording else None
    product, share, space = np.zeros(beta.size), np.empty(beta.size), np.empty(most)
    for here in blocks(size, most):
        block = x[here]
        weights = weigh(multiply(block, beta, space[: len(block)]), here)
        if recording:
            product += multiply(weights, block, share)
    return product


def in_matrix(weights: Operand, x: Plain, beta: Plain) -> Result:
    """Compute the derivatives with respect to the matrix, or to the row that all observations
    share, from the derivatives with respect to the linear predictors.
    """
    if x.ndim == 1 or type(weights) is float or len(x) != len(weights):
        return (total(weights) * beta).reshape(x.shape)
    return np.multiply.outer(weights, beta)


def total(weights: object) -> float:
    """Sum an array; return a number unchanged."""
    return weights if type(weights) is float else float(add_reduce(weights))


def part(x: Operand, here: slice) -> Result:
    """Return the elements of a block; a number stays one."""
    return x[here] if type(x) is np.ndarray and here is not ALL else x


def observations(function: str, x: Operand, vectors: Iterable[tuple[str, Operand]]) -> int:
    """Return the number of observations, after checks of the shapes of the matrix and of the other
    arguments, given with titles: numbers, or vectors of one element for each observation.
    """
    shape = np.shape(x)
    if len(shape) not in (1, 2):
        raise misfit(
            function, "Matrix of independent variables", shape, "be a matrix, or a vector: one row"
        )
    size: int = shape[0] if len(shape) == 2 else 1
    for title, value in vectors:
        shape = np.shape(value)
        if shape not in ((), (1,), (size,)):
            if len(shape) != 1 or size != 1:
                raise misfit(function, title, shape, f"be a scalar or have the shape ({size},)")
            size = shape[0]
    return size
