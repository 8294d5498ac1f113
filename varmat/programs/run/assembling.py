"""Arrays that are made of elements, parts or rows of others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.program import BOOL, Shape, Value, contiguous_strides, element_places
from varmat.programs.run.loops import NoLoopError
from varmat.programs.run.nodes import (
    LONG,
    Node,
    Nodes,
    RowSum,
    as_objects,
    by_places,
    each_place,
    lengths_of,
    lines_of,
    loop_axes,
    picked,
)

if TYPE_CHECKING:
    from varmat.programs.run.graph import Graph


def gathered(graph: Graph, x: Value, index: Value) -> Nodes:
    """Gather elements of an array that lies in one piece, by their indices."""
    axes, numbers = loop_axes(index.shape, long=graph.constants.long), plain(index)
    if not axes:
        numbers = graph.constants.seen(numbers)
        full = graph.nodes(x)
        if not full.axes:
            return Nodes(picked(full.array, numbers), ())
    memory, at = graph.place(x)
    size, truth, lengths = int(x.dtype.itemsize), x.dtype == BOOL, lengths_of(index.shape, axes)

    def node(place: Shape) -> Node:
        line = _places(lines_of(numbers, place, axes))
        if not axes:
            return graph.load(memory, at + size * int(line.item()), (), (), truth)
        indices = graph.constants.memory(lines_of(numbers, place, axes), _places)
        data = (memory, at, line.strides, size, indices, 0)
        result = graph.make(
            "gather", data=data, loops=lengths, stage=max(memory.stage, indices.stage)
        )
        result.truth = truth
        return result

    return by_places(index.shape, axes, node)


def assemble(
    graph: Graph,
    result: Value,
    base: Value | None,
    parts: Sequence[tuple[Any, Shape, Value, Value | None]],
    is_written: bool,
) -> None:
    """Make an array of parts, which are added to zeros or to a base, or written over it."""
    shape, size = result.shape, int(result.dtype.itemsize)
    axes = loop_axes(shape, long=graph.constants.long)
    if not axes:
        _assemble_short(graph, result, base, parts, is_written)
        return
    totals = [] if base is None else [graph.nodes(base, axes)]
    inside = []
    for place, extent, part, index in parts:
        if index is not None:
            totals.append(_scattered(graph, part, extent, index, shape, base is None))
        elif not is_written and (extent, place) == (shape, (0, contiguous_strides(shape, size))):
            totals.append(graph.nodes(graph.broadcast(part, shape), axes))
        else:
            inside.append((place, extent, part))
    total = None
    if totals:
        arrays = [x.array for x in totals]
        total = Nodes(as_objects(each_place(graph.summed, arrays)), axes)
    if total is not None and not inside:
        graph.put(result, *total)
        return
    memory, covers = graph.fresh(result), is_written and base is None
    if total is not None:
        graph.store(memory, shape, 0, contiguous_strides(shape, size), total)
    elif not covers:
        graph.zeros(result)
    for (at, steps), extent, part in inside:
        output = graph.nodes(graph.broadcast(part, extent))
        graph.store(memory, extent, at, steps, output, add=not is_written, ordered=not covers)


def _assemble_short(
    graph: Graph,
    result: Value,
    base: Value | None,
    parts: Sequence[tuple[Any, Shape, Value, Value | None]],
    is_written: bool,
) -> None:
    """Make the same array if it has few elements, each a node."""
    shape, size = result.shape, int(result.dtype.itemsize)
    zero = graph.number(0.0) if size > 1 else graph.number(False)
    full = np.full(shape, zero, object)
    if base is not None:
        full[...] = graph.nodes(base, ()).array
    flat = full.reshape(-1)
    for place, extent, part, index in parts:
        if index is not None:
            elements = _scattered(graph, part, extent, index, shape, base is None).array
            offsets = np.arange(result.size)
        else:
            offsets = element_places(extent, place[1], place[0], size)
            elements = np.broadcast_to(graph.nodes(part, ()).array, extent)
        for at, x in zip(offsets.reshape(-1), elements.reshape(-1), strict=True):
            plain = is_written or flat[at] is zero
            flat[at] = x if plain else graph.apply("add", flat[at], x)
    graph.put(result, full, ())


def _scattered(
    graph: Graph, part: Value, extent: Shape, index: Value, shape: Shape, is_alone: bool
) -> Nodes:
    """Sum the elements that go to each index."""
    result = graph.temporary(shape)
    size, indices, constants = result.size, plain(index), graph.constants
    starts = constants.memory(indices, partial(_starts, size))
    listed = None if constants.seen(indices, _are_sorted) else constants.memory(indices, _order)
    zero = 0.0 if is_alone else -0.0
    graph.call("segments_to", [graph.broadcast(part, extent)], [result], starts, listed, size, zero)
    return graph.loaded(result, loop_axes(shape, long=graph.constants.long))


def long_product(graph: Graph, a: Value, b: Value, out: Value) -> bool:
    """Multiply a vector by a matrix of many rows, each in one piece, as part of the loop over its
    rows; return False for other products.
    """
    if sorted((len(a.shape), len(b.shape))) != [1, 2]:
        return False
    matrix, vector = (a, b) if len(a.shape) == 2 else (b, a)
    rows = int(matrix.shape[0] < matrix.shape[1])  # the axis along which it is long
    n, k = matrix.shape[rows], matrix.shape[1 - rows]
    if matrix.strides[1 - rows] != 8 or k <= LONG or n < 4 * k:
        return False
    memory, at = graph.place(matrix)
    # Both may be filled by loops, and `vector` is contiguous or a line of nodes.
    is_sum = rows == (matrix is a)
    if not is_sum:
        numbers, begin = graph.place(graph.broadcast(vector, vector.shape))
        data = (memory, at, matrix.strides[rows], k, numbers, begin)
        stage = max(memory.stage, numbers.stage)
        result = graph.make("rows", data=data, loops=(n,), stage=stage)
        graph.put(out, as_objects(result), (0,))
        return True
    weights = graph.nodes(vector, (0,)).array.item()
    graph.zeros(out)
    total = graph.memory[id(out)]
    stage = max(weights.stage, memory.stage, total.stage)
    graph.loops[stage, (n,)].append(RowSum(total, weights, memory, at, matrix.strides[rows], k))
    total.stage = stage + 1
    return True


_places = partial(np.ascontiguousarray, dtype=np.int64)


def _starts(count: int, buffers: np.ndarray) -> np.ndarray:
    """Return where the elements of each index begin when they are sorted."""
    return np.concatenate([[0], np.cumsum(np.bincount(np.ravel(buffers), minlength=count))])


def _order(buffers: np.ndarray) -> np.ndarray:
    return np.argsort(buffers, axis=None, kind="stable")


def _are_sorted(buffers: np.ndarray) -> np.ndarray:
    return np.all(np.diff(np.ravel(buffers)) >= 0)  # type: ignore[return-value]


def plain(v: Value) -> np.ndarray:
    """Return a constant as an array; raise for other values."""
    if v.base.data is None:
        raise NoLoopError("places that are not constants")
    return np.asarray(v.array_in(v.base.data))
