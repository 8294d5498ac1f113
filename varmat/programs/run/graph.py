"""A program as a graph of numbers and vectors, from which `code` makes instructions.

Every axis of few elements is written out, so that a value is an array of nodes, one for each index
on its short axes: a matrix of 1,000 x 5 is five vectors of a loop of 1,000 iterations, a sum over
its rows four additions; an array of 1,000 x 100 x 5 is five nodes of two loops. Views choose nodes.
Equal nodes are one. A value that broadcasts along a loop is read from memory, with a stride of 0.
Values without code are computed by the inner loops of NumPy and SciPy.

Each node has a stage. Nodes that need a reduction over a loop, or memory that loops fill, come one
stage after it. In a stage the actions (numbers, calls, guards, loops of the representation) run in
the order of the program, then one nest of loops for all nodes of the same lengths.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    OBJECT,
    Program,
    Shape,
    Step,
    Value,
    broadcast_strides,
    contiguous_strides,
)
from varmat.programs.run import nests
from varmat.programs.run.constants import of_few_digits
from varmat.programs.run.functions import PARTS, SUPPORTED
from varmat.programs.run.loops import NoLoopError
from varmat.programs.run.nodes import (
    FIRST,
    LONG,
    MOST,
    Called,
    Memory,
    Node,
    NodeFunction,
    Nodes,
    NotFusedError,
    Required,
    RowSum,
    Store,
    Stored,
    as_objects,
    by_places,
    chosen_nodes,
    each_place,
    lengths_of,
    lines_of,
    loop_axes,
    offset_of,
    shortened,
)

if TYPE_CHECKING:
    from varmat.programs.run.code import Code
    from varmat.programs.run.constants import Constants

Action = Callable[["Code"], None]
_floats, _truths = (partial(np.ascontiguousarray, dtype=dtype) for dtype in (FLOAT, BOOL))
# Add at most this many terms in sequence.
FEW = 8


class Graph:
    """The nodes and actions of a program.

    Parameters
    ----------
    program : Program
    given : dict
        For each argument, by its id, its memory, or what makes its nodes.
    outputs : sequence of Memory
        The memory of the outputs. Outputs without shape and memory are nodes, in `results`.
    constants : Constants
    """

    def __init__(
        self,
        program: Program,
        args: dict[int, Memory | Callable[[Graph], Nodes]],
        outputs: Sequence[Memory | None],
        constants: Constants,
    ) -> None:
        self.constants = constants
        self.interned: dict[Any, Node] = {}
        self.columns: dict[Any, Node] = {}
        self.references: list[object] = [program]
        self.memory: dict[int, Memory] = {}
        self.arrays: dict[int, Nodes] = {}
        self._count = 0
        # By stage and lengths.
        self.loops: dict[tuple[int, Shape], list[Store | RowSum]] = defaultdict(list)
        self.actions: dict[int, list[Action]] = defaultdict(list)
        # Steps that are not pure keep their order: the stage of the last one.
        self._impure = 0
        self.calls_python = False
        for key, result in args.items():
            if isinstance(result, Memory):
                self.memory[key] = result
            else:
                self.arrays[key] = result(self)
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
        self,
        op: str,
        *args: Node,
        data: Any = None,
        loops: Shape | None = None,
        stage: int | None = None,
    ) -> Node:
        loops = max([a.loops for a in args], key=len, default=()) if loops is None else loops
        stage = max([a.stage for a in args], default=0) if stage is None else stage
        key = (op, *map(id, args), repr(data) if op == "constant" else data, loops)
        node = self.interned.get(key)
        if node is None:
            self._count += 1
            node = self.interned[key] = Node(op, args, data, loops, stage, self._count)
        return node

    def number(self, x: float | bool) -> Node:
        is_truth = isinstance(x, (bool, np.bool_))
        node = self.make("constant", data=bool(x) if is_truth else float(x))
        node.truth = is_truth
        return node

    def given(self, value: object, stage: int, *, truth: bool = False) -> Node:
        """Make a node for a number that is computed elsewhere."""
        self._count += 1
        node = Node("given", (), value, (), stage, self._count)
        node.truth = truth
        return node

    def apply(self, op: str, *x: Node) -> Node:
        """Apply a function to nodes; composed functions share what they have in common."""
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
            result: Node = PARTS[op](self._part, *x)
            return result
        if op in ("absolute", "fabs") and x[0].op == "negative":
            x = x[0].args
        if op not in SUPPORTED:
            raise NotFusedError(op)
        return self.make(op, *x)

    def _part(self, op: str, *x: Node | float | bool) -> Node:
        return self.apply(
            op, *(item if isinstance(item, Node) else self.number(item) for item in x)
        )

    def _float(self, x: Node) -> Node:
        return self.make("where", x, self.number(1.0), self.number(0.0)) if x.truth else x

    def truth(self, x: Node) -> Node:
        return x if x.truth else self.make("not_equal", x, self.number(0.0))

    def nodes(self, value: Value, axes: tuple[int, ...] | None = None) -> Nodes:
        """Return the nodes of a value; if axes are given, the nodes along them."""
        result = self._nodes(value)
        return result if axes is None or result.axes == axes else self.loaded(value, axes)

    def _nodes(self, value: Value) -> Nodes:
        result = self.arrays.get(id(value))
        if result is not None:
            return result
        if value.base.data is None and id(value.base) not in self.memory:
            chosen = chosen_nodes(value, self.arrays[id(value.base)])
            if chosen is not None:
                return chosen
        return self.loaded(value, loop_axes(value.shape, long=self.constants.long))

    def aligned(self, value: Value, shape: Shape, axes: tuple[int, ...]) -> np.ndarray:
        """Return the nodes of a value that broadcasts to a shape whose loops are along axes."""
        result, missing = self.nodes(value), len(shape) - len(value.shape)
        own = tuple(i - missing for i in axes)
        is_number = not result.axes and all(value.shape[i] == 1 for i in own if i >= 0)
        if result.axes == own or is_number:
            return result.array
        strides = broadcast_strides(value.shape, value.strides, shape)
        own_shape = (*(1,) * missing, *value.shape)
        inner = tuple(n if i in axes else own_shape[i] for i, n in enumerate(shape))
        return self.loaded(self.viewed(value, inner, strides), axes).array

    def expanded(self, value: Value, *axes: int) -> Value:
        """Insert axes of one element into a value."""
        shape, strides = list(value.shape), list(value.strides)
        for i in axes:
            shape.insert(i, 1)
            strides.insert(i, 0)
        return self.viewed(value, tuple(shape), tuple(strides))

    def viewed(self, value: Value, shape: Shape, strides: Shape) -> Value:
        """View a value with other axes, along which it may be repeated."""
        if value.base.data is not None:
            return self.literal(as_strided(value.array_in(value.base.data), shape, strides))
        view = value.view(shape, value.offset, strides)
        self.references.append(view)
        return view

    def loaded(self, value: Value, axes: tuple[int, ...]) -> Nodes:
        if value.base.data is not None:
            return self._constant(value, axes)
        memory, lengths = self.stored(value.base), lengths_of(value.shape, axes)
        strides, truth = lengths_of(value.strides, axes), value.dtype == BOOL

        def node(place: Shape) -> Node:
            at = offset_of(place, value.strides, value.offset)
            return self.load(memory, at, strides, lengths, truth)

        return by_places(value.shape, axes, node)

    def load(
        self, memory: Memory, at: int, strides: Shape, lengths: Shape, truth: bool = False
    ) -> Node:
        if not any(strides):
            strides = lengths = ()
        node = self.make("load", data=(memory, at, strides), loops=lengths, stage=memory.stage)
        node.truth = truth
        return node

    def _constant(self, value: Value, axes: tuple[int, ...]) -> Nodes:
        x = value.array_in(value.base.data)
        if not axes:
            return Nodes(self._elements(x), axes)
        return by_places(value.shape, axes, lambda place: self._line(lines_of(x, place, axes)))

    def _elements(self, x: np.ndarray) -> np.ndarray:
        """Return the nodes of the elements; those with few digits are literals in the code."""
        if x.dtype == BOOL:
            return each_place(self.number, [self.constants.seen(x)])
        values = self.constants.seen(x, of_few_digits)
        result = each_place(self.number, [values])
        indices = np.flatnonzero(np.isnan(values))
        if indices.size:
            memory = self.constants.memory(x, _floats)
            for i in indices:
                result.reshape(-1)[i] = self.load(memory, 8 * int(i), (), ())
        return result

    def _line(self, x: np.ndarray) -> Node:
        """Make a node of a part of a constant, in one piece."""
        if not any(x.strides):
            first: Node = self._elements(x[(slice(1),) * x.ndim]).item()
            return first
        key = x.ctypes.data, x.strides, x.shape
        if key not in self.columns:
            self.references.append(x)  # or another array could come to lie there
            is_truth = x.dtype == bool
            once = x[tuple(slice(None) if stride else slice(1) for stride in x.strides)]
            memory = self.constants.memory(once, _truths if is_truth else _floats)
            strides = contiguous_strides(once.shape, memory.itemsize)
            strides = broadcast_strides(once.shape, strides, x.shape)
            self.columns[key] = self.load(memory, 0, strides, x.shape, is_truth)
        return self.columns[key]

    def literal(self, x: np.ndarray) -> Value:
        result = Value(x.shape, x.dtype, data=x)
        self.references.append(result)
        return result

    # --- memory ---

    def fresh(self, value: Value) -> Memory:
        """Return memory for a result: where it is returned, if it is."""
        memory = self._returned.pop(id(value), None)
        if memory is None:
            memory = self.scratch(max(value.size, 1), int(value.dtype.itemsize))
        self.memory[id(value)] = memory
        return memory

    def scratch(self, n: int, itemsize: int = 8) -> Memory:
        return Memory(None, n * itemsize, itemsize)

    def stored(self, base: Value) -> Memory:
        """Return the memory of a value; store the value if it is not stored yet."""
        if base.data is not None and id(base) not in self.memory:
            self.memory[id(base)] = self.constants.memory(base.data, np.atleast_1d)
        elif id(base) not in self.memory:
            result = self.arrays[id(base)]
            self.store(self.fresh(base), base.shape, 0, base.strides, result)
        return self.memory[id(base)]

    def place(self, value: Value) -> tuple[Memory, int]:
        """Return where a value lies in memory."""
        return self.stored(value.base), value.offset

    def store(
        self,
        memory: Memory,
        shape: Shape,
        offset: int,
        strides: Shape,
        result: Nodes,
        *,
        add: bool = False,
        ordered: bool = False,
    ) -> None:
        """Write nodes to memory, after what was written before if `ordered`; or add them to it."""
        after = memory.stage if add or ordered else 0
        lengths, along = lengths_of(shape, result.axes), lengths_of(strides, result.axes)
        for place in np.ndindex(result.array.shape):
            node: Any = result.array[place]
            at = offset_of(place, strides, offset)
            self._store(memory, node, at, along, lengths, after, add)

    def _store(
        self,
        memory: Memory,
        node: Node,
        at: int,
        strides: Shape,
        lengths: Shape,
        after: int,
        add: bool,
    ) -> None:
        node = self.truth(node) if memory.itemsize == 1 else self._float(node)
        stage = max(node.stage, after)
        if lengths:
            self.loops[stage, lengths].append(
                Store(memory, node, at, strides, "add" if add else "")
            )
            memory.stage = max(memory.stage, stage + 1)
        else:
            self.act(stage, Stored(memory, node, at, add))
            memory.stage = max(memory.stage, stage)

    def impure(self, stage: int) -> int:
        """Return the stage of a step that keeps its order among steps that are not pure."""
        self._impure = max(stage, self._impure)
        return self._impure

    def made_of(self, number: int) -> Nodes:
        """Return the nodes of an output that has no memory."""
        result = self.results[number]
        if result is None:
            raise NotFusedError("an output in memory")
        return result

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

    def put(self, value: Value, array: np.ndarray, axes: tuple[int, ...]) -> None:
        """Set the nodes of a result."""
        self.arrays[id(value)] = Nodes(array.reshape(shortened(value.shape, axes)), axes)

    def each(self, op: str, operands: Sequence[Value], result: Value) -> None:
        """Apply an elementwise function to values that broadcast."""
        self.put(result, *self.mapped(partial(self.apply, op), operands, result.shape))

    def mapped(
        self,
        op: NodeFunction,
        operands: Sequence[Value],
        shape: Shape,
        axes: tuple[int, ...] | None = None,
    ) -> Nodes:
        """Apply a function to the nodes of values that broadcast; it has the operands' loops."""
        axes = self._common(operands, shape) if axes is None else axes
        result = each_place(op, [self.aligned(v, shape, axes) for v in operands])
        return Nodes(np.broadcast_to(result, shortened(shape, axes)), axes)

    def _common(self, operands: Sequence[Value], shape: Shape) -> tuple[int, ...]:
        """Return the loops of a result: the operands', and axes along which only numbers vary."""
        result, taken = [], set()
        for v in operands:
            axes, missing = self.nodes(v).axes, len(shape) - len(v.shape)
            result.append([i + missing for i in axes])
            if axes:
                taken |= {i for i, n in enumerate(v.shape, missing) if n > 1}
        args = dict.fromkeys(i for x in sorted(result, key=len, reverse=True) for i in x)
        if not args:
            return loop_axes(shape, long=self.constants.long)
        free = tuple(1 if i in taken else n for i, n in enumerate(shape))
        axes = tuple(args)
        for i, n in enumerate(free):
            if n > 1 and math.prod(shortened(shape, axes)) > LONG:
                axes = (*axes, i)
        return loop_axes(shape, axes, MOST, self.constants.long)

    def reduced(self, op: str, x: Value, axes: Sequence[int], result: Value) -> None:
        """Reduce over axes."""
        array, loops = self.nodes(x)
        for i in sorted(set(axes) - set(loops), reverse=True):
            array = np.expand_dims(self.folded(op, array, i), i)
        over = [k for k, i in enumerate(loops) if i in axes]
        if over:
            lengths = lengths_of(x.shape, loops)
            total = np.frompyfunc(lambda node: self.total(op, node, lengths, over), 1, 1)
            array = as_objects(total(array))
        saved = tuple(i - sum(j < i for j in axes) for i in loops if i not in axes)
        self.put(result, array, saved)

    def folded(self, op: str, x: np.ndarray, axis: int) -> np.ndarray:
        """Reduce over a short axis, by halves."""
        parts = [x.take(j, axis) for j in range(x.shape[axis])]
        if not parts:
            raise NotFusedError("a reduction of nothing")
        if op == "accumulate":
            return as_objects(reduce(np.frompyfunc(partial(self.make, op), 2, 1), parts))
        if op != "logaddexp":
            return self.joined(op, parts)
        most = self.joined("maximum", parts)
        return as_objects(np.frompyfunc(self._log_sum_exp, len(parts) + 1, 1)(most, *parts))

    def joined(self, op: str, parts: list[np.ndarray]) -> np.ndarray:
        while len(parts) > 1:
            parts = [
                self.pairwise(op, *parts[j : j + 2]) if j + 1 < len(parts) else parts[j]
                for j in range(0, len(parts), 2)
            ]
        return as_objects(parts[0])

    def pairwise(self, op: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return as_objects(np.frompyfunc(partial(self.apply, op), 2, 1)(x, y))

    def summed(self, *x: Node) -> Node:
        """Sum several nodes: a few in their order, as other runners do."""
        if len(x) > FEW:
            return self.joined("add", [as_objects(item) for item in x]).item()  # type: ignore[no-any-return]
        return reduce(partial(self.apply, "add"), x)

    def _log_sum_exp(self, most: Node, *x: Node) -> Node:
        apply, shift = self.apply, self._finite(most)
        terms = [apply("exp", apply("subtract", item, shift)) for item in x]
        return apply("add", shift, apply("log", self.summed(*terms)))

    def _finite(self, x: Node) -> Node:
        """Return a number, or zero instead of an infinite one."""
        size = self.apply("absolute", x)
        infinite = self.apply("equal", size, self.number(math.inf))
        return self.apply("where", infinite, self.number(0.0), x)

    def total(
        self, op: str, x: Node, lengths: Shape = (), over: Sequence[int] | None = None
    ) -> Node:
        """Reduce over loops, by default over all loops of the node."""
        lengths = lengths or x.loops
        over = range(len(lengths)) if over is None else over
        n = math.prod(lengths[k] for k in over)
        if op == "logaddexp":
            if not x.loops:
                return self.apply("add", x, self.number(math.log(n)))
            most = self.total("maximum", x, lengths, over)
            shift = self.along(self._finite(most), lengths, over)
            terms = self.apply("exp", self.apply("subtract", x, shift))
            sums = self.apply("log", self.total("add", terms, lengths, over))
            return self.apply("add", self._finite(most), sums)
        op = "add" if op == "accumulate" else op
        if op not in FIRST:
            raise NotFusedError(f"{op} along a loop")
        x = self.truth(x) if op == "logical_and" else self._float(x)
        if not x.loops:
            return self.apply("multiply", x, self.number(float(n))) if op == "add" else x
        key = (f"{op} all", id(x), *over)
        if key not in self.interned:
            saved = shortened(lengths, over)
            size = 1 if op == "logical_and" else 8
            memory, strides = self.scratch(math.prod(saved), size), contiguous_strides(saved, size)
            strides = tuple(0 if k in over else stride for k, stride in enumerate(strides))
            self.loops[x.stage, lengths].append(Store(memory, x, 0, strides, op, True))
            memory.stage = x.stage + 1
            left = [k for k in range(len(lengths)) if k not in over]
            along = lengths_of(strides, left), lengths_of(lengths, left)
            self.interned[key] = self.load(memory, 0, *along, op == "logical_and")
        return self.interned[key]

    def along(self, x: Node, lengths: Shape, over: Sequence[int]) -> Node:
        """Make a node without some of the loops a node of all of them."""
        if not x.loops:
            return x
        memory = self.scratch(math.prod(x.loops))
        strides = iter(contiguous_strides(x.loops, 8))
        self._store(memory, x, 0, contiguous_strides(x.loops, 8), x.loops, 0, False)
        broadcast = tuple(0 if k in over else next(strides) for k in range(len(lengths)))
        return self.load(memory, 0, broadcast, lengths)

    def require(self, holds: Node) -> None:
        """End the run unless a truth value holds."""
        holds = self.total("logical_and", holds) if holds.loops else self.truth(holds)
        self.impure(holds.stage)
        self.act(holds.stage, Required(holds))

    # --- calls ---

    def call(
        self,
        method: str,
        operands: Sequence[Value],
        results: Sequence[Value],
        *more: object,
        impure: bool = False,
    ) -> None:
        """Call a method of `Code` on operands and results in memory."""
        buffers = [None if v.dtype is OBJECT else self.place(v) for v in operands]
        for v in results:
            if v.dtype is OBJECT:
                buffers.append(None)
                continue
            memory = self.memory[id(v.base)] if id(v.base) in self.memory else self.fresh(v)
            buffers.append((memory, v.offset))
        stage = max((p[0].stage for p in buffers if p is not None), default=0)
        if impure:
            stage = self.impure(stage)
        for p in buffers[len(operands) :]:
            if p is not None:
                p[0].stage = stage
        self.act(stage, Called(method, buffers, more))

    def broadcast(self, v: Value, shape: Shape) -> Value:
        """Copy a value that broadcasts, in one piece."""
        if v.shape == shape and v.is_contiguous:
            return v
        if v.base.data is not None:
            return self.literal(
                self.constants.copied(np.broadcast_to(v.array_in(v.base.data), shape))
            )
        full = self.temporary(shape, v.dtype)
        self.put(full, *self.copied(v, shape))
        return full

    def zeros(self, result: Value) -> None:
        """Fill the memory of a result."""
        self.call("fill_zeros", [], [result], result.size * int(result.dtype.itemsize))

    def temporary(self, shape: Shape, dtype: np.dtype = FLOAT) -> Value:
        result = Value(shape, dtype)
        self.references.append(result)
        return result

    def copied(self, v: Value, shape: Shape) -> Nodes:
        """Return the nodes of a value that broadcasts to a shape."""
        return self.mapped(lambda x: x, [v], shape)

    def elementwise(self, kernel: Any, name: str, operands: Sequence[Value], result: Value) -> None:
        """Apply an elementwise function: to nodes, or else by the loop of a ufunc."""
        try:
            self.each(name, operands, result)
        except NotFusedError:
            nests.elementwise(self, kernel.loop(operands, [result]), operands, result)

    def python(self, step: Step) -> None:
        """Add a step that calls Python."""
        # Its operands may be objects, which later steps find: it keeps its order among such steps.
        self.calls_python = True
        self.call("call_python", step.operands, step.results, self._number, impure=True)
