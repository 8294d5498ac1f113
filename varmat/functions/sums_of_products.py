"""How sums of everything and matrix products are written into programs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varmat.functions.arrays.reductions import AVERAGE, TOTAL
from varmat.functions.linalg.products import MATMUL
from varmat.programs.program import Value
from varmat.programs.tape_programs import TapeProgram, writes


@writes(TOTAL, AVERAGE)
def _total(program: TapeProgram, rule: Any, result: Any, x: Any, count: Any) -> None:
    operand, builder = program.find(x), program.builder
    number = None if count is None else builder.constant(float(count))
    value = builder.sum(operand.value)
    node = program.node(
        result, value if number is None else builder.ufunc(np.divide, value, number)
    )

    def back() -> None:
        g: Any = program.adjoint(node)
        operand.contributions.append(g if number is None else builder.ufunc(np.divide, g, number))

    program.back((node,), back)


@writes(MATMUL)
def _matmul(program: TapeProgram, rule: Any, result: Any, a: Any, b: Any) -> None:
    (x, left), (y, right) = program.operand(a), program.operand(b)
    builder = program.builder
    node = program.node(result, builder.matmul(x, y))

    def back() -> None:
        g: Any = program.adjoint(node)
        if not node.shape:  # an inner product
            for operand, other in ((left, y), (right, x)):
                if operand is not None:
                    operand.contributions.append(builder.ufunc(np.multiply, g, other))
            return
        # Vectors as matrices of one row, or one column.
        rows = x if len(x.shape) > 1 else builder.reshaped(x, (1, *x.shape))
        columns = y if len(y.shape) > 1 else builder.reshaped(y, (*y.shape, 1))
        whole = (
            *np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2]),
            rows.shape[-2],
            columns.shape[-1],
        )
        full = builder.reshaped(g, whole) if g.shape else builder.broadcast(g, whole)
        if left is not None:
            _contribute(program, left, full, _mirrored(builder, columns), rows.shape)
        if right is not None:
            _contribute(program, right, _mirrored(builder, rows), full, columns.shape)

    program.back((node,), back)


def _mirrored(builder: Any, x: Value) -> Value:
    axes = list(range(len(x.shape)))
    axes[-2:] = axes[:-3:-1]
    return builder.transposed(x, axes)  # type: ignore[no-any-return]


def _contribute(program: TapeProgram, operand: Any, p: Value, q: Value, shape: Any) -> None:
    """Add a product to the adjoint of an operand that was a matrix, or a stack of them, of a
    shape.
    """
    is_pair = len(p.shape) == len(q.shape) == 2
    if (
        is_pair
        and operand.shape == shape == (p.shape[0], q.shape[1])
        and p.size + q.size < operand.value.size
    ):
        operand.products.append((p, q))  # the sum of many of them is one product
        return
    c = program.builder.product(p, q)
    builder = program.builder
    missing = len(c.shape) - len(shape)
    axes = [
        *range(missing),
        *(missing + i for i, n in enumerate(shape[:-2]) if n == 1 != c.shape[missing + i]),
    ]
    c = builder.sum(c, axes) if axes else c
    operand.contributions.append(
        builder.reshaped(c, operand.shape) if math.prod(c.shape) == math.prod(operand.shape) else c
    )
