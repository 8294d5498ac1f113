"""The parts of a graph: numbers and vectors, and the memory where values lie."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varmat.programs.ir.program import Shape, Step, Value, element_places

if TYPE_CHECKING:
    from varmat.programs.run.code import Code

NodeFunction = Callable[..., "Node"]

# Functions of numbers that are truth values.
TRUTHS = frozenset({
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isnan",
     "isinf", "signbit", "logical_and", "logical_or", "logical_not", "logical_xor",
})  # fmt: skip
# The first value of a sum over a long axis.
FIRST = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf, "logical_and": True}


class NotFusedError(Exception):
    """A step does not become part of a loop: it needs memory."""


# In native code: axes of more elements are loops, and an array without loops has at most this many;
# the second is for programs with functions that take as long for a number as for a vector.
LONG, LONG_IF_HEAVY = 16, 7
_HEAVY = frozenset({"exp", "expm1", "log", "log1p", "sin", "cos", "sinh", "cosh", "tanh", "expit"})
# Nodes of a value with loops, and the most that any value has.
TURN, MOST = 8, 256


def shortened(shape: Shape, axes: Sequence[int]) -> Shape:
    """Return a shape with one element along axes."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def loop_axes(shape: Shape, loop_shape: Shape = (), most: int = 0, long: int = LONG) -> Shape:
    """Choose which axes of an array become loops: axes that are given or long, and then leading
    ones until at most `most` elements are left.
    """
    axes = (*loop_shape, *(i for i, n in enumerate(shape) if n > long and i not in loop_shape))
    most = most or (LONG if not axes and math.prod(shape) <= LONG else TURN)
    for i, n in enumerate(shape):
        if math.prod(shortened(shape, axes)) > most and n > 1 and i not in axes:
            axes = (*axes, i)
    return axes if loop_shape else tuple(sorted(axes))


def longest_in_registers(steps: Sequence[Step]) -> int:
    """Return the length of the longest axes of a program that are not loops."""
    sizes = (v.size for step in steps if step.kernel.name in _HEAVY for v in step.results)
    bodies = (body.steps for step in steps for body in step.kernel.bodies)
    is_heavy = any(LONG_IF_HEAVY < n <= LONG for n in sizes)
    return LONG_IF_HEAVY if is_heavy else min(map(longest_in_registers, bodies), default=LONG)


def as_objects(x: object) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x
    result = np.empty((), object)
    result[()] = x
    return result


class Memory:
    """The memory of a value.

    Attributes
    ----------
    base : int or object
        The number of an argument, an output or a constant, or None for scratch memory.
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
        # Other memory that is touched: the memory that a pointer points into.
        self.behind: tuple[Memory, ...] = ()
        # The first and last action that touch it.
        self.since = self.last = -1


class Node:
    """A number, or one element for each iteration of loops of the lengths `loops`."""

    __slots__ = ("args", "data", "loops", "number", "op", "stage", "truth")

    def __init__(
        self, op: str, args: tuple[Node, ...], data: Any, loops: Shape, stage: int, number: int
    ) -> None:
        self.op, self.args, self.data, self.loops, self.stage = op, args, data, loops, stage
        # In the order in which nodes are made: operands come first.
        self.number = number
        self.truth = op in TRUTHS


@dataclass(frozen=True, slots=True)
class Required:
    """The action that ends a run unless a truth value holds."""

    holds: Node

    def __call__(self, code: Code) -> None:
        code.guard(self.holds)


@dataclass(frozen=True, slots=True)
class Stored:
    """The action that writes a number to memory, or adds it to the content."""

    memory: Memory
    node: Node
    at: int
    add: bool

    def __call__(self, code: Code) -> None:
        code.store_number(self.memory, self.node, self.at, self.add)


@dataclass(frozen=True, slots=True)
class Called:
    """The action that calls a method of `Code` on operands and results in memory."""

    method: str
    places: Sequence[tuple[Memory, int] | None]
    more: tuple[Any, ...]

    def __call__(self, code: Code) -> None:
        getattr(code, self.method)(self.places, *self.more)


class Nodes(NamedTuple):
    """The nodes of a value.

    Attributes
    ----------
    array : ndarray of Node
        One for each index on the short axes; along axes that are loops it has one element.
    axes : tuple of int
        The axes that are loops, the outer one first.
    """

    array: np.ndarray
    axes: tuple[int, ...]


def offset_of(place: Shape, strides: Shape, offset: int = 0) -> int:
    """Return where an element of a view lies, in bytes."""
    return offset + sum(map(int.__mul__, place, strides))


def lengths_of(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(shape[i] for i in axes)


class Store(NamedTuple):
    """Elements of loops that are written to memory, or joined with the content.

    Attributes
    ----------
    memory, at, strides
        The place; by how many bytes it moves on in each loop. Along axes of a reduction that is 0.
    node : Node
    op : str
        The function that joins; "" writes.
    is_total : bool
        Whether a reduction begins here, from the first value of `op`.
    """

    memory: Memory
    node: Node
    at: int
    strides: Shape
    op: str = ""
    is_total: bool = False


class RowSum(NamedTuple):
    """The sum of the rows of a matrix, each times an element of a loop."""

    memory: Memory
    node: Node
    matrix: Memory
    at: int
    stride: int
    columns: int


def by_places(shape: Shape, axes: tuple[int, ...], node: Callable[[Shape], Node]) -> Nodes:
    short = shortened(shape, axes)
    result = map(node, product(*map(range, short)))
    return Nodes(np.fromiter(result, object, math.prod(short)).reshape(short), axes)


def lines_of(x: np.ndarray, place: Shape, axes: Sequence[int]) -> np.ndarray:
    """Return the part of an array along loops, in their order, that a node is given."""
    part = x[tuple(slice(None) if i in axes else j for i, j in enumerate(place))]
    return part.transpose([sorted(axes).index(i) for i in axes])


def picked(array: np.ndarray, buffers: np.ndarray) -> np.ndarray:
    result: np.ndarray = array.reshape(-1)[buffers.reshape(-1)].reshape(buffers.shape)
    return result


def each_place(op: NodeFunction, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Apply a function to the elements of any number of arrays that broadcast."""
    shapes = {x.shape for x in arrays}
    shape = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    flat = ((x if x.shape == shape else np.broadcast_to(x, shape)).ravel() for x in arrays)
    return np.fromiter(map(op, *flat), object, math.prod(shape)).reshape(shape)


def chosen_nodes(value: Value, nodes: Nodes) -> Nodes | None:
    """Choose the nodes of a view from the nodes of its base."""
    base, size, axes = value.base, value.dtype.itemsize, []
    for along in nodes.axes:
        same = [
            i
            for i, n in enumerate(value.shape)
            if n == base.shape[along] and value.strides[i] == base.strides[along]
        ]
        if not same:
            return None
        axes.append(same[0])
    if not axes:
        axes = [*loop_axes(value.shape)]
        if any(value.strides[i] for i in axes):
            return None
    indices = element_places(shortened(value.shape, axes), value.strides, value.offset, size)
    if indices.size > MOST:
        return None
    if nodes.axes:
        index = np.unravel_index(indices, base.shape)
        if any(np.any(index[along]) for along in nodes.axes):
            return None
        indices = np.ravel_multi_index(index, shortened(base.shape, nodes.axes))
    return Nodes(picked(nodes.array, indices), tuple(axes))
