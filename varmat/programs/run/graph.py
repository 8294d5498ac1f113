"""A program as a graph of numbers and vectors, from which `code` makes instructions.

Every axis of few elements is written out, so that a value is an array of nodes, one for each place
on its short axes: a matrix of 1,000 x 5 is five vectors of a loop of 1,000 turns, a sum over its
rows four additions. Views choose nodes. Equal nodes are one. What does not fit lies in memory, and
is computed by the inner loops of NumPy and SciPy.

Each node has a stage. Nodes that need a sum over a long axis, or memory that a loop fills, come one
stage after it. In a stage the actions (numbers, calls, guards, loops of the representation) run in
the order of the program, then one loop for each length.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    OBJECT,
    Program,
    Shape,
    Step,
    Value,
    contiguous_strides,
    element_places,
)
from varmat.programs.run import nests
from varmat.programs.run.functions import PARTS, SUPPORTED
from varmat.programs.run.loops import NoLoopError, loop_of
from varmat.programs.run.nodes import (
    FIRST,
    FLAT,
    MOST,
    Function,
    Memory,
    Node,
    Nodes,
    NotFusedError,
    RowSum,
    Store,
    as_objects,
    by_places,
    each_place,
    form_of,
    loop_length,
    offset_of,
    picked,
    shortened,
)

if TYPE_CHECKING:
    from varmat.programs.run.code import Code

Action = Callable[["Code"], None]
# Terms that are added one after the other.
FEW = 8


class Graph:
    """The nodes and actions of a program.

    Parameters
    ----------
    program : Program
    given : dict
        For each argument, by its id, its memory, or what makes its nodes.
    outputs : sequence of Memory
        Where the outputs go. Those without shape and memory are nodes, in `results`.
    """

    def __init__(
        self,
        program: Program,
        given: dict[int, Memory | Callable[[Graph], Nodes]],
        outputs: Sequence[Memory | None],
    ) -> None:
        self.made: dict[Any, Node] = {}
        self.columns: dict[Any, Node] = {}
        self.held: list[object] = [program]
        self.memory: dict[int, Memory] = {}
        self.arrays: dict[int, Nodes] = {}
        self._count = 0
        # By stage and length: reductions, and stores (memory, node, offset, stride).
        self.loops: dict[tuple[int, int], tuple[list[Node], list[Store | RowSum]]] = defaultdict(
            lambda: ([], [])
        )
        self.actions: dict[int, list[Action]] = defaultdict(list)
        # Steps that are not pure keep their order: the stage of the last one.
        self._impure = 0
        self.calls_python = False
        for key, found in given.items():
            if isinstance(found, Memory):
                self.memory[key] = found
            else:
                self.arrays[key] = found(self)
        # Where a value is returned, it is made.
        self._returned: dict[int, Memory] = {}
        for value, memory in zip(program.outputs, outputs, strict=True):
            if memory is not None and value.step is not None and value.is_contiguous:
                self._returned.setdefault(id(value), memory)
        for number, step in enumerate(program.steps):
            self._number = number
            self.step(step)
        self.results = [
            self._output(value, memory)
            for value, memory in zip(program.outputs, outputs, strict=True)
        ]

    def _output(self, value: Value, memory: Memory | None) -> Nodes | None:
        if memory is None:
            return self.nodes(value)
        if self.memory.get(id(value)) is not memory and value.size:
            strides = contiguous_strides(value.shape, value.dtype.itemsize)
            self.store(memory, value.shape, 0, strides, self.nodes(value))
        return None

    # --- nodes ---

    def make(
        self, op: str, *args: Node, data: Any = None, n: int | None = None, stage: int | None = None
    ) -> Node:
        n = max((a.n for a in args), default=0) if n is None else n
        stage = max((a.stage for a in args), default=0) if stage is None else stage
        key = (op, *map(id, args), repr(data) if op == "constant" else data, n)
        node = self.made.get(key)
        if node is None:
            self._count += 1
            node = self.made[key] = Node(op, args, data, n, stage, self._count)
        return node

    def number(self, x: float | bool) -> Node:
        is_truth = isinstance(x, (bool, np.bool_))
        node = self.make("constant", data=bool(x) if is_truth else float(x))
        node.truth = is_truth
        return node

    def given(self, value: Any, stage: int, *, truth: bool = False) -> Node:
        """A node for a number that is computed elsewhere."""
        self._count += 1
        node = Node("given", (), value, 0, stage, self._count)
        node.truth = truth
        return node

    def apply(self, op: str, *x: Node) -> Node:
        """A function of nodes; those that are composed share what they have in common."""
        if op == "divide" and x[0].n and not x[1].n:
            return self.make("multiply", x[0], self._reciprocal(x[1]))
        if op == "square":
            return self.make("multiply", x[0], x[0])
        if op == "positive":
            return x[0]
        if op in ("logical_and", "logical_or", "logical_not", "logical_xor"):
            x = tuple(map(self.truth, x))
        elif op == "where":
            x = (self.truth(x[0]), self._float(x[1]), self._float(x[2]))
        else:
            x = tuple(map(self._float, x))
        if op in PARTS:
            made: Node = PARTS[op](self._part, *x)
            return made
        if op in ("absolute", "fabs") and x[0].op == "negative":
            x = x[0].args
        if op not in SUPPORTED:
            raise NotFusedError(op)
        return self.make(op, *x)

    def _part(self, op: str, *x: Node | float | bool) -> Node:
        return self.apply(
            op, *(each if isinstance(each, Node) else self.number(each) for each in x)
        )

    def _float(self, x: Node) -> Node:
        return self.make("where", x, self.number(1.0), self.number(0.0)) if x.truth else x

    def truth(self, x: Node) -> Node:
        return x if x.truth else self.make("not_equal", x, self.number(0.0))

    def _reciprocal(self, x: Node) -> Node:
        """One over a number by which a vector is divided. The run ends where it loses digits."""
        if x.op == "constant" and (x.data == 0.0 or 1e-300 < abs(x.data) < 1e300):
            with np.errstate(all="ignore"):
                return self.number(np.divide(1.0, x.data))
        size, known = self.make("absolute", x), len(self.made)
        one = self.make("divide", self.number(1.0), x)
        if len(self.made) > known:
            both, either = partial(self.make, "logical_and"), partial(self.make, "logical_or")
            inside = both(
                self.make("less", size, self.number(2.0**1022)),
                self.make("greater", size, self.number(2.0**-1022)),
            )
            for special in (0.0, math.inf):
                inside = either(inside, self.make("equal", size, self.number(special)))
            self.require(either(inside, self.make("isnan", x)))
        return one

    def nodes(self, value: Value, axis: Any = "any") -> Nodes:
        """The nodes of a value; with an axis those along it."""
        found = self._nodes(value)
        if axis == "any" or found.axis == axis:
            return found
        return self.loaded(value, axis)

    def _nodes(self, value: Value) -> Nodes:
        found = self.arrays.get(id(value))
        if found is not None:
            return found
        base = value.base
        if base.data is not None:
            return self._constant(value, form_of(value.shape))
        if id(base) not in self.memory:
            chosen = self._chosen(value, self.arrays[id(base)])
            if chosen is not None:
                return chosen
        return self.loaded(value, form_of(value.shape))

    def _chosen(self, value: Value, whole: Nodes) -> Nodes | None:
        """The nodes of a view, out of those of its base."""
        base, along, size = value.base, whole.axis, value.dtype.itemsize
        if along is None:
            places = element_places(value.shape, value.strides, value.offset, size)
            axis = form_of(value.shape)
            if axis is not None:
                if axis == FLAT or value.strides[axis] != 0:
                    return None
                places = places.take([0], axis)
            return Nodes(picked(whole.array, places), axis)
        if along == FLAT:
            same = value.offset == 0 and value.size == base.size and value.is_contiguous
            return Nodes(whole.array, FLAT) if same else None
        for i, n in enumerate(value.shape):
            if n == base.shape[along] and value.strides[i] == base.strides[along]:
                shape = shortened(value.shape, i)
                places = element_places(shape, value.strides, value.offset, size)
                index = np.unravel_index(places, base.shape)
                if np.all(index[along] == 0):
                    short = shortened(base.shape, along)
                    return Nodes(picked(whole.array, np.ravel_multi_index(index, short)), i)
        return None

    def loaded(self, value: Value, axis: int | None) -> Nodes:
        base = value.base
        if base.data is not None:
            return self._constant(value, axis)
        if axis == FLAT and not value.is_contiguous:
            value = self.spread(value, value.shape)
            base = value
        memory = self.stored(base)
        n = loop_length(value.shape, axis)
        stride = 0 if not n else value.dtype.itemsize if axis == FLAT else value.strides[axis or 0]

        def node(place: Shape) -> Node:
            at = offset_of(place, value.strides, value.offset)
            if n and stride == 0:
                return self.load(memory, at, 0, 0, value.dtype == BOOL)
            return self.load(memory, at, stride, n, value.dtype == BOOL)

        return by_places(value.shape, axis, node)

    def load(self, memory: Memory, at: int, stride: int, n: int, truth: bool = False) -> Node:
        node = self.make("load", data=(memory, at, stride), n=n, stage=memory.stage)
        node.truth = truth
        return node

    def _constant(self, value: Value, axis: int | None) -> Nodes:
        x = value.array_in(value.base.data)
        if axis == FLAT:
            x = np.ascontiguousarray(x).reshape(-1)
            return Nodes(as_objects(self._column(x)), FLAT)

        def node(place: Shape) -> Node:
            if axis is None:
                return self.number(x[place])
            return self._column(x[(*place[:axis], slice(None), *place[axis + 1 :])])

        return by_places(value.shape, axis, node)

    def _column(self, x: np.ndarray) -> Node:
        """A line of a constant, in one piece."""
        if x.strides[0] == 0:
            return self.number(x[0])
        key = x.ctypes.data, x.strides, len(x)
        if key not in self.columns:
            self.held.append(x)  # or another array could come to lie there
            is_truth = x.dtype == bool
            if not (is_truth or x.dtype == FLOAT) or x.strides[0] != x.itemsize:
                x = np.ascontiguousarray(x, bool if is_truth else float)
            self.columns[key] = self.load(self.constant(x), 0, x.itemsize, len(x), is_truth)
        return self.columns[key]

    def constant(self, x: np.ndarray) -> Memory:
        self.held.append(x)
        return Memory(x.ctypes.data, x.nbytes, x.itemsize, is_constant=True)

    # --- memory ---

    def fresh(self, value: Value) -> Memory:
        """Memory for a result: where it is returned, if it is."""
        memory = self._returned.pop(id(value), None)
        if memory is None:
            itemsize = int(value.dtype.itemsize)
            memory = Memory(None, max(value.size, 1) * itemsize, itemsize)
        self.memory[id(value)] = memory
        return memory

    def scratch(self, n: int, itemsize: int = 8) -> Memory:
        return Memory(None, n * itemsize, itemsize)

    def stored(self, base: Value) -> Memory:
        """The memory of a value, which is stored if it is not yet."""
        if base.data is not None and id(base) not in self.memory:
            self.memory[id(base)] = self.constant(np.atleast_1d(base.data))
        elif id(base) not in self.memory:
            found = self.arrays[id(base)]
            self.store(self.fresh(base), base.shape, 0, base.strides, found)
        return self.memory[id(base)]

    def place(self, value: Value) -> tuple[Memory, int]:
        """Where a value lies in memory."""
        return self.stored(value.base), value.offset

    def store(
        self,
        memory: Memory,
        shape: Shape,
        offset: int,
        strides: Shape,
        found: Nodes,
        *,
        add: bool = False,
        ordered: bool = False,
    ) -> None:
        """Write nodes to memory, after what was written before if `ordered`; or add them to it."""
        array, axis = found
        after = memory.stage if add or ordered else 0
        if axis == FLAT:
            if strides != contiguous_strides(shape, memory.itemsize):
                raise NotFusedError("a store of a flattened array in pieces")
            size = math.prod(shape)
            self._store(memory, array.item(), offset, memory.itemsize, size, after, add)
            return
        n = loop_length(shape, axis)
        for place in np.ndindex(array.shape):
            at = offset_of(place, strides, offset)
            stride = strides[axis] if n else 0  # type: ignore[index]
            node: Any = array[place]
            self._store(memory, node, at, stride, n, after, add)

    def _store(
        self, memory: Memory, node: Node, at: int, stride: int, n: int, after: int, add: bool
    ) -> None:
        node = self.truth(node) if memory.itemsize == 1 else self._float(node)
        stage = max(node.stage, after)
        if n:
            self.loops[stage, n][1].append(Store(memory, node, at, stride, add))
            memory.stage = max(memory.stage, stage + 1)
        else:
            self.act(stage, lambda code: code.store_number(memory, node, at, add))
            memory.stage = max(memory.stage, stage)

    def impure(self, stage: int) -> int:
        """The stage of a step that keeps its place among those that are not pure."""
        self._impure = max(stage, self._impure)
        return self._impure

    def made_of(self, number: int) -> Nodes:
        """The nodes of an output that has no memory."""
        found = self.results[number]
        if found is None:
            raise NotFusedError("an output in memory")
        return found

    def act(self, stage: int, action: Action) -> None:
        self.actions[stage].append(action)

    # --- steps ---

    def step(self, step: Step) -> None:
        if step.kernel.is_native:
            try:
                step.kernel.code(self, step.operands, step.results)
                return
            except NoLoopError:
                pass
        self.python(step)

    def put(self, value: Value, array: np.ndarray, axis: int | None) -> None:
        """Say what the nodes of a result are."""
        self.arrays[id(value)] = Nodes(array.reshape(shortened(value.shape, axis)), axis)

    def each(self, op: str, operands: Sequence[Value], result: Value) -> None:
        """An elementwise function of values that broadcast."""
        self.put(result, *self.mapped(partial(self.apply, op), operands, result.shape))

    def mapped(self, op: Function, operands: Sequence[Value], shape: Shape) -> Nodes:
        found = [self.nodes(v) for v in operands]
        arrays = [
            (v, x) for v, x in zip(operands, found, strict=True) if v.size != 1 or v.shape == shape
        ]
        axes = {
            x.axis if x.axis in (FLAT, None) else x.axis + len(shape) - len(v.shape)
            for v, x in arrays
        }
        if len(axes - {None}) > 1 or axes == {FLAT, None} or FLAT in axes:
            return self._flat(op, operands, shape)
        axis = next(iter(axes - {None}), None)
        if math.prod(shortened(shape, axis)) > MOST or (
            axis is None and form_of(shape) is not None
        ):
            return self._flat(op, operands, shape)
        given = [x.array for x in found]
        made = each_place(op, given)
        return Nodes(as_objects(made).reshape(shortened(shape, axis)), axis)

    def _flat(self, op: Function, operands: Sequence[Value], shape: Shape) -> Nodes:
        """The same of arrays of one shape, and of numbers, along all axes at once."""
        given = []
        for v in operands:
            if v.size == 1 and math.prod(shape) != 1:
                given.append(self.nodes(v).array.item())
            elif v.shape == shape:
                given.append(self.nodes(v, FLAT).array.item())
            else:
                raise NotFusedError("arrays that broadcast along several long axes")
        return Nodes(as_objects(op(*given)), FLAT)

    def reduced(self, op: str, x: Value, axes: Sequence[int], result: Value) -> None:
        """A reduction over axes."""
        array, axis = self.nodes(x)
        if axis == FLAT:
            if len(axes) < len(x.shape):
                raise NotFusedError("a reduction of some axes of a large matrix")
            self.put(result, as_objects(self.total(op, array.item(), x.size)), None)
            return
        if len(x.shape) - len(axes) and axis is not None and math.prod(array.shape) > MOST:
            raise NotFusedError("too many nodes")
        for i in sorted(axes, reverse=True):
            if i != axis:
                array = self.folded(op, array, i)
                axis = axis if axis is None or axis < i else axis - 1
            else:
                n = x.shape[i]
                line = array.take(0, i)
                array = as_objects(np.frompyfunc(lambda v, n=n: self.total(op, v, n), 1, 1)(line))
                axis = None
        self.put(result, array, axis)

    def folded(self, op: str, x: np.ndarray, axis: int) -> np.ndarray:
        """A reduction over a short axis, by halves."""
        parts = [x.take(j, axis) for j in range(x.shape[axis])]
        if not parts:
            raise NotFusedError("a reduction of nothing")
        if op != "logaddexp":
            return self._joined(op, parts)
        most = self._joined("maximum", parts)
        return as_objects(np.frompyfunc(self._log_sum_exp, len(parts) + 1, 1)(most, *parts))

    def _joined(self, op: str, parts: list[np.ndarray]) -> np.ndarray:
        while len(parts) > 1:
            parts = [
                self.pairwise(op, *parts[j : j + 2]) if j + 1 < len(parts) else parts[j]
                for j in range(0, len(parts), 2)
            ]
        return as_objects(parts[0])

    def pairwise(self, op: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return as_objects(np.frompyfunc(partial(self.apply, op), 2, 1)(x, y))

    def summed(self, *x: Node) -> Node:
        """The sum of several nodes: of a few in their order, as other runners have it."""
        if len(x) > FEW:
            return self._joined("add", [as_objects(each) for each in x]).item()  # type: ignore[no-any-return]
        return reduce(partial(self.apply, "add"), x)

    def _log_sum_exp(self, most: Node, *x: Node) -> Node:
        apply, shift = self.apply, self._finite(most)
        terms = [apply("exp", apply("subtract", each, shift)) for each in x]
        return apply("add", shift, apply("log", self.summed(*terms)))

    def _finite(self, x: Node) -> Node:
        """A number, or zero in the place of an infinite one."""
        size = self.apply("absolute", x)
        infinite = self.apply("equal", size, self.number(math.inf))
        return self.apply("where", infinite, self.number(0.0), x)

    def total(self, op: str, x: Node, n: int) -> Node:
        """A reduction over a long axis."""
        if op == "logaddexp":
            if not x.n:
                return self.apply("add", x, self.number(math.log(n)))
            most = self.total("maximum", x, n)
            shift = self._finite(most)
            total = self.total("add", self.apply("exp", self.apply("subtract", x, shift)), n)
            return self.apply("add", shift, self.apply("log", total))
        if op not in FIRST:
            raise NotFusedError(f"{op} along a long axis")
        x = self.truth(x) if op == "logical_and" else self._float(x)
        if not x.n:
            return self.apply("multiply", x, self.number(float(n))) if op == "add" else x
        known = len(self.made)
        node = self.make(f"{op} all", x, n=0, stage=x.stage + 1)
        node.truth = op == "logical_and"
        if len(self.made) > known:
            self.loops[x.stage, x.n][0].append(node)
        return node

    def require(self, holds: Node) -> None:
        """End the run unless a truth value holds."""
        holds = self.total("logical_and", holds, holds.n) if holds.n else self.truth(holds)
        self.impure(holds.stage)
        self.act(holds.stage, lambda code: code.guard(holds))

    # --- calls ---

    def call(
        self,
        method: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        *more: Any,
        impure: bool = False,
    ) -> None:
        """A method of `Code`, of the places of operands and results in memory."""
        places = [None if v.dtype is OBJECT else self.place(v) for v in operands]
        for v in results:
            if v.dtype is OBJECT:
                places.append(None)
                continue
            memory = self.memory[id(v.base)] if id(v.base) in self.memory else self.fresh(v)
            places.append((memory, v.offset))
        stage = max((p[0].stage for p in places if p is not None), default=0)
        if impure:
            stage = self.impure(stage)
        for p in places[len(operands) :]:
            if p is not None:
                p[0].stage = stage
        self.act(stage, lambda code: getattr(code, method)(places, *more))

    def spread(self, v: Value, shape: Shape) -> Value:
        """A copy of a value that broadcasts, in one piece."""
        if v.shape == shape and v.is_contiguous:
            return v
        whole = self.temporary(shape, v.dtype)
        name = nests.copy_of(v.dtype.itemsize)
        nests.elementwise(self, loop_of(*name), [v] * name[0].nin, whole)
        return whole

    def zeros(self, result: Value) -> None:
        """Fill the memory of a result."""
        self.call("fill_zeros", [], [result], result.size * int(result.dtype.itemsize))

    def temporary(self, shape: Shape, dtype: np.dtype = FLOAT) -> Value:
        made = Value(shape, dtype)
        self.held.append(made)
        return made

    def copied(self, v: Value, shape: Shape) -> Nodes:
        """The nodes of a value that broadcasts to a shape."""
        axis = form_of(shape)
        if v.size == 1:
            array = np.empty(shortened(shape, axis), object)
            array[...] = self.nodes(v).array.item()
            return Nodes(array, axis)
        array, along = self.nodes(v)
        if v.shape == shape:
            return Nodes(array, along)
        if FLAT in (axis, along) or (
            along is not None and along + len(shape) - len(v.shape) != axis
        ):
            raise NotFusedError("a broadcast of a large array")
        return Nodes(np.broadcast_to(array, shortened(shape, axis)), axis)

    def elementwise(self, kernel: Any, name: str, operands: Sequence[Value], result: Value) -> None:
        """An elementwise function: of nodes, or else by the loop of a ufunc."""
        try:
            self.each(name, operands, result)
        except NotFusedError:
            nests.elementwise(self, kernel.loop(operands, [result]), operands, result)

    def python(self, step: Step) -> None:
        """A step that calls Python."""
        # Its operands may be objects, which later steps find: it keeps its place among such steps.
        self.calls_python = True
        self.call("call_python", step.operands, step.results, self._number, impure=True)
