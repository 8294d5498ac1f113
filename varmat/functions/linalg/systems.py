"""Linear systems ``a @ x = b``: the check of their shapes, and vectors `b` as matrices with one
column."""

from __future__ import annotations

import numpy as np

from varmat.functions.checks import check_square, misfit
from varmat.typing import Operand, Result


def inner(x: Operand, y: Operand) -> Result:
    """Compute the inner product of matrices, for each of a stack."""
    return np.sum(x * y, axis=(-2, -1))


def column(x: Operand, vector: bool) -> Result:
    """Turn a vector, or a stack of them, into matrices with one column."""
    return x[..., None] if vector else x


def uncolumn(x: Operand, vector: bool) -> Result:
    return x[..., 0] if vector else x


def columns(x: Operand, y: Operand, vector: bool) -> tuple[Result, Result]:
    """Vectors, or stacks of them, as they go into products of a column with a row: a single one as
    it is.
    """
    return (x, y) if x.ndim == 1 else (column(x, vector), column(y, vector))


def check_system(function: str, a: Operand, b: Operand) -> None:
    """Raise `ShapeError` unless ``a x = b`` makes sense: `a` square (a stack), `b` a vector or a
    matrix (a stack).
    """
    square, shape = np.shape(a), np.shape(b)
    if len(square) == 2 and square == shape[:1] * 2 and len(shape) < 3:
        return
    check_square(function, "a", square)
    n = square[-1]
    rows = shape[-2:][0] if shape else None
    if rows != n:
        raise misfit(function, "b", shape, f"have {n} rows, as a has")
    try:
        if len(shape) > 2 < len(square):
            np.broadcast_shapes(square[:-2], shape[:-2])
    except ValueError:
        raise misfit(function, "b", shape, f"match a, of shape {square}") from None
