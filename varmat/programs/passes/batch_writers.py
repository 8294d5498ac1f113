"""One step of many: how steps of one kernel are written as one with a leading axis.

`WRITERS` has a function for each kernel whose steps can be batched. It returns None if the operands
do not allow it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.program import FLOAT, Shape, Step, Value
from varmat.programs.kernels import (
    GATHER,
    Assemble,
    Copy,
    Function,
    Gather,
    GuardBetween,
    Gufunc,
    Kernel,
    Matmul,
    Reduce,
    Select,
    Sum,
    Ufunc,
)

if TYPE_CHECKING:
    from varmat.programs.build.builder import Builder
    from varmat.programs.passes.batching import Batching, Column


def _aligned(batching: Batching, column: Column, shape: Shape) -> Value:
    """A column in a shape that broadcasts to members of a shape behind a leading axis."""
    x = column.make()
    missing = len(shape) - len(column.shape)
    if column.is_shared or not missing:
        return x
    if x.data is not None:
        return batching.builder.constant(
            x.data.reshape(len(x.data), *(1,) * missing, *column.shape)
        )
    strides = (x.strides[0], *(0,) * missing, *x.strides[1:])
    return batching.builder.part(x, (x.shape[0], *(1,) * missing, *column.shape), 0, strides)


def _full(batching: Batching, column: Column, n: int) -> Value:
    """A column with a leading axis, also if it is shared."""
    return batching.builder.broadcast(column.make(), (n, *column.shape))


def _ufunc(batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray) -> Value:
    operands = [_aligned(batching, column, step.results[0].shape) for column in columns]
    if all(v.dtype == FLOAT for v in (*operands, *step.results)):  # in its simplest form
        return batching.builder.ufunc(step.kernel.ufunc, *operands)
    return batching.builder.call(step.kernel, *operands)


def _elementwise(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value:
    return batching.builder.call(
        step.kernel, *(_aligned(batching, column, step.results[0].shape) for column in columns)
    )


def _copy(batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray) -> Value:
    shape = step.results[0].shape
    return batching.builder.full(_aligned(batching, columns[0], shape), (len(numbers), *shape))


def _reduce(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value:
    return batching.builder.reduce(
        step.kernel.ufunc, columns[0].make(), [i + 1 for i in step.kernel.axes]
    )


def _gufunc(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value | None:
    if len(step.results) > 1 or len(set(step.kernel.parted(step.operands)[0])) > 1:
        return None
    return batching.builder.call(
        step.kernel, *(_full(batching, column, len(numbers)) for column in columns)
    )


def _matmul(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value | None:
    """Products as one: a product with a shared matrix or vector, sums of rows for vectors, a stack
    of all others.
    """
    builder, (a, b) = batching.builder, columns
    axes = len(a.shape), len(b.shape)
    if max(axes) > 2:
        return None
    if axes[0] == 1 and b.is_shared:
        return builder.matmul(a.make(), b.make())
    if axes[1] == 1 and a.is_shared:
        return builder.matmul(b.make(), builder.transposed(a.make()) if axes[0] == 2 else a.make())
    if axes == (1, 1):
        return builder.call(Reduce(np.add, (1,)), builder.ufunc(np.multiply, a.make(), b.make()))
    n = len(numbers)
    if axes[0] == 2 and b.is_shared:
        product = builder.matmul(builder.reshaped(a.make(), (n * a.shape[0], a.shape[1])), b.make())
        return builder.reshaped(product, (n, *step.results[0].shape))
    left, right = _full(batching, a, n), _full(batching, b, n)
    left = builder.reshaped(left, (n, 1, *a.shape)) if axes[0] == 1 else left
    right = builder.reshaped(right, (n, *b.shape, 1)) if axes[1] == 1 else right
    return builder.reshaped(builder.matmul(left, right), (n, *step.results[0].shape))


def _gather(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value | None:
    """Elements of parts of one value as elements of it."""
    places, offsets = batching.where(numbers[:, 0])
    if (
        places[0] < 0
        or (places != places[0]).any()
        or not batching.graph.constant[numbers[:, 1]].all()
    ):
        return None
    index = np.array([batching.constant(i) for i in numbers[:, 1].tolist()])
    index += (offsets // 8).reshape(-1, *(1,) * (index.ndim - 1))
    whole = batching.made(int(places[0]))
    return batching.builder.call(GATHER, whole, batching.builder.constant(index))


def _assemble(
    batching: Batching, step: Step, columns: Sequence[Column], numbers: np.ndarray
) -> Value | None:
    kernel, n = step.kernel, len(numbers)
    if kernel.dtype != FLOAT:
        return None
    parts = []
    row = 8 * math.prod(kernel.shape)
    for place, shape, column, index in kernel.parts(columns):
        if index is None:
            parts.append(
                ((place[0], (row, *place[1])), (n, *shape), _aligned(batching, column, shape))
            )
            continue
        places = np.broadcast_to(
            index.make().data.reshape((1, *shape) if index.is_shared else (n, *shape)), (n, *shape)
        )
        places = places + (np.arange(n) * (row // 8)).reshape(-1, *(1,) * len(shape))
        parts.append(
            (
                places,
                (n, *shape),
                batching.builder.full(_aligned(batching, column, shape), (n, *shape)),
            )
        )
    base = _full(batching, columns[0], n) if kernel.has_base else None
    return batching.builder.assemble((n, *kernel.shape), parts, base)


def write_guard(builder: Builder, kernel: Kernel, x: Value) -> None:
    """Write a guard for all elements of an array."""
    if isinstance(kernel, GuardBetween):
        builder.guard_between(x, kernel.low, kernel.high)
    else:
        builder.guard(builder.truth(x))


WRITERS: dict[type, Callable[[Batching, Step, Sequence[Column], np.ndarray], Value | None]] = {
    Ufunc: _ufunc, Function: _elementwise, Select: _elementwise, Sum: _elementwise, Copy: _copy,
     Reduce: _reduce, Gufunc: _gufunc,
    Matmul: _matmul, Gather: _gather, Assemble: _assemble,
}  # fmt: skip
