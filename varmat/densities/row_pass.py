"""One pass through the rows of a matrix of independent variables, block by block, which forms both
products with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.plain_arrays import BLOCK, blocks, is_scipy_sparse
from varmat.typing import Function, Linear, Operand, Plain, Result

# Rows of a block, at most: more would not share out NumPy's overhead any better.
MOST_ROWS = 4000

Weigh = Callable[[Any, slice], Any]
# Of all rows.
ALL = slice(None)


class PassSums(NamedTuple):
    """What a family makes of a pass. The derivatives with respect to the linear predictors are
    `scale` times `weights`.
    """

    value: float
    weights: Plain
    # X.T @ weights
    product: Plain
    scale: float = 1.0
    # Of what can be a variable besides X, alpha and beta: functions of the weights, elementwise.
    partials: Mapping[str, Linear] = {}


class Pass:
    """One pass through the rows of the matrix `x`: it makes the weights and, if recording, keeps
    them and their product with it.
    """

    __slots__ = ("beta", "product", "recording", "rows", "size", "space", "weights", "x")

    def __init__(
        self, x: Operand, beta: Operand, size: int, space: Function, recording: bool
    ) -> None:
        self.x, self.beta, self.size, self.space, self.recording = x, beta, size, space, recording
        rows = BLOCK // max(1, beta.size)
        at_once = rows >= size <= MOST_ROWS or is_scipy_sparse(x)
        self.rows = size if at_once else min(max(rows, 8), MOST_ROWS, size)
        self.weights: np.ndarray = space((size,)) if recording else np.empty(self.rows)
        self.product: np.ndarray | None = None

    def run(self, weigh: Weigh) -> None:
        """Have `weigh` replace linear predictors (without intercept) by weights, in place, block by
        block.
        """
        x, beta, recording = self.x, self.beta, self.recording
        if is_scipy_sparse(x):
            self.weights[...] = x @ beta
            weigh(self.weights, ALL)
            self.product = x.T @ self.weights if recording else None
            return None
        if x.ndim == 1 or len(x) != self.size:
            return self._one_row(weigh)
        in_order = x.flags.c_contiguous
        if in_order and self.rows == self.size:
            weigh(np.dot(x, beta, self.weights), ALL)
            self.product = np.dot(self.weights, x) if recording else None
            return None
        product, share = np.zeros(beta.size), np.empty(beta.size)
        # `dot` is quicker, but copies what is not in C order; `matmul` is slow with what has no
        # unit stride.
        multiply: Any = np.matmul if not in_order and x.flags.f_contiguous else np.dot
        for here in blocks(self.size, self.rows):
            block = x[here] if in_order or multiply is np.matmul else np.ascontiguousarray(x[here])
            t = multiply(
                block, beta, self.weights[here] if recording else self.weights[: len(block)]
            )
            weigh(t, here)
            if recording:
                product += multiply(t, block, share)
        self.product = product
        return None

    def _one_row(self, weigh: Weigh) -> None:
        """The same row for all observations."""
        row = self.x.reshape(-1)
        predictor, summed = row.dot(self.beta), 0.0
        for here in blocks(self.size, self.rows):
            t = self.weights[here] if self.recording else self.weights[: here.stop - here.start]
            t.fill(predictor)
            weigh(t, here)
            summed += add_reduce(t)
        self.product = summed * row


def in_matrix(weights: Plain, x: Plain, beta: Plain, g: float) -> Result:
    """The contribution to the matrix, or to the row that all observations share, of the derivatives
    with respect to the linear predictors.
    """
    if x.ndim == 1 or len(x) != len(weights):
        return (g * add_reduce(weights) * beta).reshape(x.shape)
    return np.multiply.outer(g * weights, beta)


def part(x: Operand, here: slice) -> Result:
    """The elements of a block: a number stays one."""
    return x if type(x) is float or here is ALL else x[here]


def observations(function: str, x: Operand, vectors: Iterable[tuple[str, Operand]]) -> int:
    """The number of observations, after checks of the shapes of the matrix and of what is a number
    or a vector of one for each, given with titles.
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
