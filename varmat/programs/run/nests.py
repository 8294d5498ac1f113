"""Steps as calls of inner loops of NumPy and SciPy on memory, within loops over outer axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.program import BOOL, Value, broadcast_strides
from varmat.programs.run.loops import LoopLengths, NoLoopError, loop_of

if TYPE_CHECKING:
    from varmat.programs.run.graph import Graph

COPY = (np.positive, "d->d")
_EXTREMES: dict[np.ufunc, float] = {np.maximum: -math.inf, np.minimum: math.inf}


def call(
    graph: Graph,
    loop: LoopLengths,
    operands: Sequence[Value],
    results: Sequence[Value],
    lengths: Sequence[int],
    outer: Sequence[Sequence[int]],
    dims: Sequence[int],
    steps: Sequence[int],
    order: Sequence[int] = (),
) -> None:
    """Add a loop within loops; `outer` has the strides of all its arguments for each outer axis,
    and `order` says which of the operands and results they are.
    """
    if 0 in lengths:
        return
    order = order or range(len(operands) + len(results))
    graph.call("call_loop", operands, results, loop, order, lengths, outer, dims, steps)


def elementwise(graph: Graph, loop: LoopLengths, operands: Sequence[Value], result: Value) -> None:
    """Add a loop over all elements of a result, to which the operands broadcast."""
    values = [*operands, result]
    shape, strides = merged(
        result.shape, [broadcast_strides(v.shape, v.strides, result.shape) for v in values]
    )
    if 0 in shape:
        graph.fresh(result)
        return
    if not shape:
        shape, strides = [1], [[0] * len(values)]
    # The longest axis goes inside, unless the last one is long enough.
    inner = len(shape) - 1
    # NumPy's loops of `isfinite` and `signbit` are wrong with other strides.
    if shape[inner] < 16 and result.dtype != BOOL:
        longest = max(range(len(shape)), key=lambda i: shape[i])
        # NumPy's loop of `negative` is also wrong if the operand's elements are 64 bytes apart and
        # the result's are not 8.
        is_wrong = loop == loop_of(np.negative, "d->d") and abs(strides[longest][0]) == 64
        inner = inner if is_wrong else longest
    lengths, outer = _around(inner, shape, strides)
    call(graph, loop, operands, [result], lengths, outer, (shape[inner],), strides[inner])


def _around(
    inner: int, shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[Sequence[int]]]:
    order = [i for i in range(len(shape)) if i != inner]
    return [shape[i] for i in order], [strides[i] for i in order]


def filled(graph: Graph, x: float, result: Value) -> None:
    elementwise(graph, loop_of(*COPY), [graph.literal(np.asarray(x))], result)


def reduce(graph: Graph, ufunc: np.ufunc, x: Value, axes: Sequence[int], result: Value) -> None:
    """Add a reduction: the loop of the ufunc with the result as an operand."""
    if x.dtype == BOOL:
        raise NoLoopError("truth values")
    loop = loop_of(ufunc, "dd->d")
    filled(graph, _EXTREMES[ufunc] if ufunc.identity is None else float(ufunc.identity), result)
    saved = iter(result.strides)
    out = [0 if i in axes else next(saved) for i in range(len(x.shape))]
    shape, strides = merged(x.shape, [out, x.strides, out])
    if 0 in shape:
        return
    if not shape:
        shape, strides = [1], [[0, 0, 0]]
    inner = min(range(len(shape)), key=lambda i: (abs(strides[i][1]), -shape[i]))
    lengths, outer = _around(inner, shape, strides)
    steps = strides[inner]
    call(graph, loop, [x], [result], lengths, outer, (shape[inner],), steps, (1, 0, 1))


def accumulate(graph: Graph, ufunc: np.ufunc, x: Value, axis: int, result: Value) -> None:
    """Add running results: each is made from the one before."""
    n = x.shape[axis]
    graph.fresh(result)
    others = [i for i in range(len(x.shape)) if i != axis]

    def line(value: Value, start: int) -> Value:
        strides = tuple(value.strides[i] for i in others)
        shape = tuple(value.shape[i] for i in others)
        view = value.view(shape, value.offset + start * value.strides[axis], strides)
        graph.references.append(view)
        return view

    elementwise(graph, loop_of(*COPY), [line(x, 0)], line(result, 0))
    if n > 1:
        outer = [[v.strides[k] for v in (result, x, result)] for k in others]
        steps = [v.strides[axis] for v in (result, x, result)]
        values = [line(x, 1)], [line(result, 0), line(result, 1)]
        lengths, order = [x.shape[i] for i in others], (1, 0, 2)
        call(graph, loop_of(ufunc, "dd->d"), *values, lengths, outer, (n - 1,), steps, order)


def gufunc(
    graph: Graph,
    loop: LoopLengths,
    operands: Sequence[Value],
    results: Sequence[Value],
    leading: Sequence[int],
    core: Sequence[int],
    steps: Sequence[int],
) -> None:
    """Add a generalised ufunc, whose loop takes one leading axis; `leading` counts the leading axes
    of each operand and result.
    """
    values = [*operands, *results]
    shape = values[-1].shape[: leading[-1]]
    aligned = [
        broadcast_strides(v.shape[:n], v.strides[:n], shape)
        for v, n in zip(values, leading, strict=True)
    ]
    lengths, strides = merged(shape, aligned)
    if 0 in shape:
        for v in results:
            graph.fresh(v)
        return
    inner, first = (lengths[-1], strides[-1]) if lengths else (1, [0] * len(values))
    sizes = (inner, *core)
    call(graph, loop, operands, results, lengths[:-1], strides[:-1], sizes, (*first, *steps))


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """Return the lengths of the axes of several arrays, and for each axis the strides of all.
    Neighbouring axes that are one line in all arrays are merged.
    """
    lengths: list[int] = []
    groups: list[list[int]] = []
    for i, n in enumerate(shape):
        if n == 1:
            continue
        here = [s[i] for s in strides]
        if lengths and all(before == n * x for before, x in zip(groups[-1], here, strict=True)):
            lengths[-1] *= n
            groups[-1] = here
        else:
            lengths.append(n)
            groups.append(here)
    return lengths, groups
