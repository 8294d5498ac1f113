"""The parts of a graph: numbers and vectors, and the memory where values lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from varmat.programs.ir.program import Shape

Function = Callable[..., "Node"]
# The axis of nodes along all axes at once.
FLAT = -1

# Functions of numbers that are truth values.
TRUTHS = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isnan",
     "isinf", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor",
})  # fmt: skip
# What a sum over a long axis begins with.
FIRST = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf, "logical_and": True}


class NotFusedError(Exception):
    """A step does not become part of a loop: it needs memory."""


# In native code: axes of more elements are loops, and a value has at most so many nodes.
LONG, MOST = 16, 256


def long_axis(shape: Shape) -> int | None:
    return int(np.argmax(shape)) if shape and max(shape) > LONG else None


def shortened(shape: Shape, axis: int | None) -> Shape:
    """A shape with one element along an axis."""
    return () if axis == FLAT else tuple(1 if i == axis else n for i, n in enumerate(shape))


def form_of(shape: Shape) -> int | None:
    """Which axis of an array becomes a loop."""
    axis = long_axis(shape)
    if axis is not None and math.prod(shortened(shape, axis)) > LONG:
        return FLAT
    return axis


def as_objects(x: object) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x
    made = np.empty((), object)
    made[()] = x
    return made


class Memory:
    """Where a value lies.

    Attributes
    ----------
    base : int or object
        The number of an argument or output, None for scratch memory, or the address of a constant.
    size : int
        Bytes.
    stage : int
        From which on it can be read.
    """

    __slots__ = ("base", "behind", "is_constant", "itemsize", "last", "since", "size", "stage")

    def __init__(
        self, base: Any, size: int, itemsize: int = 8, *, is_constant: bool = False
    ) -> None:
        self.base, self.size, self.itemsize = base, size, itemsize
        self.is_constant, self.stage = is_constant, 0
        # What else is touched: the memory that a pointer points into.
        self.behind: tuple[Memory, ...] = ()
        # The first and last action that touch it.
        self.since = self.last = -1


class Node:
    """A number (n = 0), or one element of a long axis for each turn of a loop of n."""

    __slots__ = ("args", "data", "n", "number", "op", "stage", "truth")

    def __init__(
        self, op: str, args: tuple[Node, ...], data: Any, n: int, stage: int, number: int
    ) -> None:
        self.op, self.args, self.data, self.n, self.stage = op, args, data, n, stage
        # In the order in which nodes are made: operands come first.
        self.number = number
        self.truth = op in TRUTHS


class Nodes(NamedTuple):
    """The nodes of a value.

    Attributes
    ----------
    array : ndarray of Node
        One for each place on the short axes; along the long axis it has one element.
    axis : int or None
        The long axis; -1 where all axes are one.
    """

    array: np.ndarray
    axis: int | None


def offset_of(place: Shape, strides: Shape, offset: int = 0) -> int:
    """Where an element of a view lies, in bytes."""
    return offset + sum(map(int.__mul__, place, strides))


def loop_length(shape: Shape, axis: int | None) -> int:
    return 0 if axis is None else math.prod(shape) if axis == FLAT else shape[axis]


class Store(NamedTuple):
    """Elements of a loop that are written to memory."""

    memory: Memory
    node: Node
    at: int
    stride: int
    add: bool


class RowSum(NamedTuple):
    """The sum of the rows of a matrix, each times an element of a loop."""

    memory: Memory
    node: Node
    matrix: Memory
    at: int
    stride: int
    columns: int


def by_places(shape: Shape, axis: int | None, node: Callable[[Shape], Node]) -> Nodes:
    array = np.empty(shortened(shape, axis), object)
    for place in np.ndindex(array.shape):
        array[place] = node(place)
    return Nodes(array, axis)


def picked(array: np.ndarray, places: np.ndarray) -> np.ndarray:
    made: np.ndarray = array.reshape(-1)[places.reshape(-1)].reshape(places.shape)
    return made


def each_place(op: Function, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """A function of the elements of any number of arrays that broadcast."""
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    whole = [np.broadcast_to(x, shape) for x in arrays]
    made = np.empty(shape, object)
    for place in np.ndindex(shape):
        made[place] = op(*(x[place] for x in whole))
    return made
