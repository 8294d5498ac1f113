"""Loops whose iterations are independent: one iteration in each lane of vector instructions.

Numbers are vectors, arrays declared in an iteration have an element for each lane, and branches run
all of their sides that some lane takes, with a mask. If lanes add to the same number or array,
their terms are added lane by lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from varmat.programs.ir import statements as s
from varmat.programs.kernels.procedure import Line, Procedure
from varmat.programs.run.compiler import BIT, DOUBLE, INT, INT32, POINTER, counted, declared
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.graph import Graph
from varmat.programs.run.independence import Independent, independent_loops
from varmat.programs.run.instructions import Instructions
from varmat.programs.run.nodes import LONG, NotFusedError, Required
from varmat.programs.run.repeat import in_registers
from varmat.programs.run.vector_loops import HEAVY

if TYPE_CHECKING:
    from varmat.programs.run.constants import Constants
    from varmat.programs.run.procedures import Emitted

# The least number of iterations of a loop of functions that take long, and that has vectors.
FEWEST = 3
_INTS, _BITS = ir.VectorType(INT, WIDTH), ir.VectorType(BIT, WIDTH)


class WideLoop(NamedTuple):
    """A loop whose iterations are independent, with the graphs of the lines."""

    passes: Independent
    graphs: dict[Line, Graph]

    @property
    def turns(self) -> int:
        """The number of vectors."""
        return -(-self.passes.trips // WIDTH)

    def sizes(self) -> Iterator[tuple[s.Storage | s.Stack, int]]:
        """Yield how many vectors the arrays and stacks of iterations have."""
        yield from ((x, s.size_of(x)) for x in self.passes.arrays)
        for x in self.passes.stacks:
            yield x, -(-x.capacity * self.turns // self.passes.trips)


def wide_loops(kernel: Procedure, constants: Constants) -> dict[s.For, WideLoop]:
    """Find the outermost loops that run in vectors."""
    graphs: dict[Line, Graph] = {}

    def accepts(loop: s.For, passes: Independent) -> bool:
        lines = [x for x in s.walk(loop.body) if isinstance(x, Line) and x not in graphs]
        graphs.update((x, graph) for x in lines if (graph := _graph_of(x, constants)) is not None)
        inner = [x for x in s.walk(loop.body) if isinstance(x, s.For)]
        return (
            all(x in graphs for x in lines)
            and (passes.trips >= WIDTH or _is_heavy(loop.body))
            and not any(_is_better_inside(x, loop, passes) for x in inner)
        )

    loops = independent_loops(kernel, FEWEST, accepts)
    return {loop: WideLoop(passes, graphs) for loop, passes in loops.items()}


def _is_heavy(statements: Sequence[s.Statement]) -> bool:
    """Return whether statements have functions that take long, or values of them that were kept."""
    return any(
        isinstance(y, s.Recall)
        or (isinstance(y, Line) and any(x.kernel.name in HEAVY for x in y.program.steps))
        for y in s.walk(statements)
    )


def _is_better_inside(inner: s.For, loop: s.For, passes: Independent) -> bool:
    """Return whether the iterations of an inner loop are better lanes: they are many, their
    functions are cheap, and they add to elements that the outer iterations have in common.
    """
    return (
        inner.most > LONG
        and not _is_heavy(inner.body)
        and any(
            isinstance(x, s.AddAt)
            and x.array not in passes.arrays
            and not any(s.Affine.of(i).cells == [loop.index] for i in x.indices)
            for x in inner.body
        )
    )


def _graph_of(x: Line, constants: Constants) -> Graph | None:
    """Make the graph of a line, if vectors have its functions; arguments get their values later."""
    args = {id(v): in_registers(v, [None]) for v in x.program.arguments}
    try:
        graph = Graph(x.program, args, [None] * len(x.program.outputs), constants)  # type: ignore[arg-type]
    except NotFusedError:
        return None
    has_others = graph.loops or not all(isinstance(x, Required) for x in _actions(graph))
    return None if has_others else graph


def _actions(graph: Graph) -> Iterator[Any]:
    for stage in sorted(graph.actions):
        yield from graph.actions[stage]


class _Position(NamedTuple):
    """The index of an element: a number that all lanes have in common, the factor of the
    iteration's number, and the part that is different in each lane.
    """

    common: ir.Value
    factor: int
    other: ir.Value | None


class Wide(Instructions):
    """The instructions of a loop whose iterations are independent."""

    def __init__(self, outer: Emitted, loop: s.For, plan: WideLoop) -> None:
        self.outer, self._loop, self.known = outer, loop, plan
        self.code, self.b = outer.code, outer.b
        self.many, self.kind = self.code.many, self.code.many.kind
        self.slots: dict[Any, ir.Value] = {}
        passes = plan.passes
        self.own, self.common, self.arrays = passes.own, passes.common, passes.arrays
        # The lanes that take part in a branch or an inner loop, where not all do; and whether the
        # others need what cells hold although it is temporary.
        self.mask: ir.Value | None = None
        self.is_branch = False
        # The lanes of iterations that are new, where not all are.
        self.new: ir.Value | None = None

    def emit(self) -> None:
        code, b, outer, loop = self.code, self.b, self.outer, self._loop
        lower, upper = int(loop.lower), int(loop.upper)  # type: ignore[arg-type]
        trips, turns = self.known.passes.trips, self.known.turns
        zero = self.many.constant(0.0)
        for x in self.known.passes.sums:
            b.store(zero, self.slot(x))
        self.nowhere = code.on_stack(DOUBLE, 1)
        steps = ir.Constant(_INTS, [*range(WIDTH)])

        def iteration(k: ir.Value, _: object) -> Sequence[ir.Value]:
            if loop.backwards:
                k = b.sub(INT(turns - 1), k)
            # The last vector overlaps with the one before.
            begin, last = b.add(b.mul(k, INT(WIDTH)), INT(lower)), INT(upper - WIDTH + 1)
            self.begin = begin
            if trips > WIDTH:
                self.begin = b.select(b.icmp_signed("<", begin, last), begin, last)
            index = b.add(code.splat(self.begin), steps)
            if trips < WIDTH:
                self.mask = ir.Constant(_BITS, [j < trips for j in range(WIDTH)])
            elif trips % WIDTH:
                self.new = b.icmp_signed(">=", index, code.splat(begin))
            b.store(index, self.slot(loop.index))
            self.block(loop.body)
            return ()

        code.over(turns, [], iteration)
        for x in self.known.passes.sums:
            total = code.sum_of_lanes(b.load(self.slot(x), typ=self.kind))
            outer.set(x, b.fadd(outer.number(x), total))

    # --- numbers ---

    def slot(self, x: s.Cell) -> ir.Value:
        if x not in self.slots:
            kinds = (DOUBLE, INT) if x in self.common else (self.kind, _INTS)
            kind = kinds[x.is_integer]
            self.slots[x] = self.code.entry.alloca(kind)
        return self.slots[x]

    def is_common(self, x: s.Number) -> bool:
        return not isinstance(x, s.Cell) or x in self.common or x not in self.own

    def common_integer(self, x: s.Number) -> ir.Value:
        if not isinstance(x, s.Cell) or x not in self.common:
            return self.outer.integer(x)
        if x.is_integer:
            return self.b.load(self.slot(x), typ=INT)
        return self.b.fptosi(self.common_number(x), INT)

    def common_slot(self, x: s.Cell | s.Stack) -> ir.Value:
        return self.slot(x) if x in self.own else self.outer.slot(x)

    def common_number(self, x: s.Number) -> ir.Value:
        if not isinstance(x, s.Cell) or x not in self.common:
            return self.outer.number(x)
        if x.is_integer:
            return self.b.sitofp(self.common_integer(x), DOUBLE)
        return self.b.load(self.slot(x), typ=DOUBLE)

    def number(self, x: s.Number) -> ir.Value:
        if not isinstance(x, s.Cell):
            return self.many.constant(float(x))
        if self.is_common(x):
            return self.code.splat(self.common_number(x))
        if x.is_integer:
            return self.b.sitofp(self.integer(x), self.kind)
        return self.b.load(self.slot(x), typ=self.kind)

    def integer(self, x: s.Number) -> ir.Value:
        if self.is_common(x):
            return self.code.splat(self.common_integer(x))
        if isinstance(x, s.Cell) and x.is_integer:
            return self.b.load(self.slot(x), typ=_INTS)
        return self.b.fptosi(self.number(x), _INTS)

    def holds(self, x: s.Number) -> ir.Value:
        if isinstance(x, s.Cell) and x.is_integer:
            return self.b.icmp_signed("!=", self.integer(x), ir.Constant(_INTS, None))
        return self.b.fcmp_unordered("!=", self.number(x), self.many.constant(0.0))

    def set(self, x: s.Cell, value: ir.Value) -> None:
        b = self.b
        if x in self.common:
            if value.type != DOUBLE:
                value = b.extract_element(value, INT32(0))
            b.store(b.fptosi(value, INT) if x.is_integer else value, self.slot(x))
            return
        if x.is_integer:
            value = b.fptosi(value, _INTS)
        if self.mask is not None and (self.is_branch or not x.is_temporary):
            value = b.select(self.mask, value, b.load(self.slot(x), typ=value.type))
        b.store(value, self.slot(x))

    def any_of(self, lanes: ir.Value) -> ir.Value:
        kind = ir.FunctionType(BIT, [_BITS])
        name = f"llvm.vector.reduce.or.v{WIDTH}i1"
        return self.b.call(declared(self.code.module, name, kind), [lanes])

    # --- memory ---

    def position(self, x: s.Load | s.Store | s.AddAt) -> _Position:
        b, common, factor, other, size = self.b, INT(0), 0, None, 1
        for i, n in zip(reversed(x.indices), reversed(x.array.shape), strict=True):
            index = s.Affine.of(i)
            common = b.add(common, INT(size * index.constant))
            for cell, m in index.terms:
                if cell is self._loop.index:
                    factor += size * m
                elif self.is_common(cell):
                    common = b.add(common, b.mul(self.common_integer(cell), INT(size * m)))
                else:
                    term = b.mul(self.integer(cell), self.code.splat(INT(size * m)))
                    other = term if other is None else b.add(other, term)
            size *= n
        return _Position(common, factor, other)

    def _at(self, at: _Position) -> ir.Value:
        """Return the indices of elements, 0 in lanes that are off or may have others."""
        b, splat = self.b, self.code.splat
        address = splat(at.common)
        if at.factor:
            index = b.load(self.slot(self._loop.index), typ=_INTS)
            address = b.add(address, b.mul(index, splat(INT(at.factor))))
        address = address if at.other is None else b.add(address, at.other)
        mask = self.mask if at.other is None else self._taking_part()
        return address if mask is None else b.select(mask, address, ir.Constant(_INTS, None))

    def _places(self, array: s.Storage, at: _Position) -> list[ir.Value]:
        """Return the addresses of the elements of all lanes."""
        b, result = self.b, self._at(at)
        if array in self.arrays:
            result = b.add(
                b.mul(result, self.code.splat(INT(WIDTH))), ir.Constant(_INTS, [*range(WIDTH)])
            )
        lanes = (b.extract_element(result, INT32(j)) for j in range(WIDTH))
        return [self.outer.element(array, x) for x in lanes]

    def _line_of(self, array: s.Storage, at: _Position) -> ir.Value | None:
        """Return the address of elements that are next to each other."""
        b = self.b
        if array in self.arrays:
            if at.factor or at.other is not None:
                return None
            return self.outer.element(array, b.mul(at.common, INT(WIDTH)))
        if at.factor != 1 or at.other is not None:
            return None
        return self.outer.element(array, b.add(at.common, self.begin))

    def _loaded(self, array: s.Storage, at: _Position) -> ir.Value:
        b, place = self.b, self._line_of(array, at)
        if place is not None:
            mask = None if array in self.arrays else self.mask
            return self._vector(place, mask)
        if array not in self.arrays and not at.factor and at.other is None:
            return self.code.splat(b.load(self.outer.element(array, at.common), typ=DOUBLE))
        addresses = self._places(array, at)
        return self.code.lanes(lambda j: b.load(addresses[j], typ=DOUBLE))

    def _vector(self, place: ir.Value, mask: ir.Value | None = None) -> ir.Value:
        """Load elements next to each other; with a mask, others are not read."""
        if mask is None:
            return self.b.load(place, align=8, typ=self.kind)
        name = f"llvm.masked.load.v{WIDTH}f64.p0"
        function = ir.FunctionType(self.kind, [POINTER, INT32, _BITS, self.kind])
        arguments = [place, INT32(8), mask, self.many.constant(0.0)]
        return self.b.call(declared(self.code.module, name, function), arguments)

    def _put(self, value: ir.Value, place: ir.Value, mask: ir.Value | None = None) -> None:
        """Write elements next to each other; with a mask, others are not touched."""
        if mask is None:
            self.b.store(value, place, align=8)
            return
        name = f"llvm.masked.store.v{WIDTH}f64.p0"
        function = ir.FunctionType(ir.VoidType(), [value.type, POINTER, INT32, _BITS])
        arguments = [value, place, INT32(8), mask]
        self.b.call(declared(self.code.module, name, function), arguments)

    def load(self, x: s.Load) -> None:
        if x.out in self.common:
            place = self.outer.element(x.array, self.position(x).common)
            self.set(x.out, self.b.load(place, typ=DOUBLE))
            return
        self.set(x.out, self._loaded(x.array, self.position(x)))

    def _taking_part(self) -> ir.Value | None:
        """Return the lanes whose effects count, where not all do."""
        if self.mask is None or self.new is None:
            return self.new if self.mask is None else self.mask
        return self.b.and_(self.mask, self.new)

    def _put_apart(
        self, value: ir.Value, buffers: Sequence[ir.Value], mask: ir.Value | None
    ) -> None:
        """Write elements that lie apart; with a mask, others are not touched."""
        b = self.b
        for j, place in enumerate(buffers):
            if mask is not None:
                place = b.select(b.extract_element(mask, INT32(j)), place, self.nowhere)
            b.store(b.extract_element(value, INT32(j)), place)

    def store(self, x: s.Store) -> None:
        b, at, value = self.b, self.position(x), self.number(x.value)
        is_own = x.array in self.arrays
        mask = self.mask if is_own else self._taking_part()
        if x.log is not None:
            number = b.sitofp(self._at(at), self.kind)
            if mask is not None:
                number = b.select(mask, number, self.many.constant(-1.0))
            self.pushed(x.log, [number, self._loaded(x.array, at)])
        place = self._line_of(x.array, at)
        if place is None:
            self._put_apart(value, self._places(x.array, at), mask)
        elif not is_own:
            self._put(value, place, mask)
        else:
            if mask is not None and (self.is_branch or not x.array.is_temporary):
                value = b.select(mask, value, self._vector(place))
            self._put(value, place)

    def add_at(self, x: s.AddAt) -> None:
        b, at, value = self.b, self.position(x), self.number(x.value)
        is_own, zero = x.array in self.arrays, self.many.constant(0.0)
        mask = self.mask if is_own else self._taking_part()
        value = value if mask is None else b.select(mask, value, zero)
        place = self._line_of(x.array, at)
        if place is not None:
            mask = None if is_own else mask
            self._put(b.fadd(self._vector(place, mask), value), place, mask)
            return
        if not is_own and not at.factor and at.other is None:
            place = self.outer.element(x.array, at.common)
            b.store(b.fadd(b.load(place, typ=DOUBLE), self.code.sum_of_lanes(value)), place)
            return
        for j, place in enumerate(self._places(x.array, at)):
            one = b.extract_element(value, INT32(j))
            b.store(b.fadd(b.load(place, typ=DOUBLE), one), place)

    def fill(self, x: s.Fill) -> None:
        b = self.b

        def element(i: ir.Value, _: object) -> Sequence[ir.Value]:
            at = b.mul(i, INT(WIDTH))
            place = self.outer.element(x.array, at)
            if isinstance(x.value, s.Storage):
                value = self._vector(self.outer.element(x.value, at))
            else:
                value = self.many.constant(float(x.value))
            if self.mask is not None:
                value = b.select(self.mask, value, self._vector(place))
            self._put(value, place)
            return ()

        self.code.over(s.size_of(x.array), [], element)

    def declare(self, x: s.Declare) -> None:
        if isinstance(x.variable, s.Cell):
            self.set(x.variable, self.many.constant(x.variable.unset))
        elif not x.variable.is_temporary:
            self.fill(s.Fill(x.variable, float("nan")))

    # --- stacks ---

    def entry(self, stack: s.Stack, at: ir.Value) -> ir.Value:
        return self.outer.element(stack, self.b.mul(at, INT(WIDTH)))

    def capacity(self, stack: s.Stack) -> int:
        return self.outer.apart[stack]

    def take_back(self, x: s.Undo) -> None:
        at, value = self.popped(x.log, 2)
        changed = self.b.fcmp_ordered(">=", at, self.many.constant(0.0))
        with self._masked(changed, is_branch=True):
            addresses = self._places(x.array, _Position(INT(0), 0, self.b.fptosi(at, _INTS)))
        self._put_apart(value, addresses, changed)

    # --- statements ---

    def line(self, x: Line) -> None:
        code, b, graph = self.code, self.b, self.known.graphs[x]
        arguments = [graph.arrays[id(v)].array.item() for v in x.program.arguments]
        outputs = [graph.made_of(i).array.item() for i in range(len(x.program.outputs))]
        result: dict[s.Cell, ir.Value] = {}
        for lane, number in ((code.one, self.common_number), (self.many, self.number)):
            is_one = lane is code.one
            code.memo, code.lane = {}, lane
            for node, cell in zip(arguments, x.inputs, strict=True):
                node.data = number(cell) if self.is_common(cell) or not is_one else None
            for node, cell in zip(outputs, x.outputs, strict=False):
                if (cell in self.common) == is_one:
                    result[cell] = code.number(node)
        for required in _actions(graph):
            self._end_where(b.not_(code.number(required.holds)))
        sums = [*map(code.number, outputs[len(x.outputs) :])]
        code.lane = code.one
        for cell, value in result.items():
            self.set(cell, value)
        for cell, value in zip(x.sums, sums, strict=True):
            self._add(cell, value)

    def _add(self, cell: s.Cell, value: ir.Value) -> None:
        b = self.b
        mask = self.mask if cell in self.own else self._taking_part()
        value = value if mask is None else b.select(mask, value, self.many.constant(0.0))
        if cell.is_integer:
            total = b.add(self.integer(cell), b.fptosi(value, _INTS))
        else:
            before = b.load(self.slot(cell), typ=value.type)
            total = b.fadd(before, value, flags=("reassoc",))
        b.store(total, self.slot(cell))

    def _end_where(self, lanes: ir.Value) -> None:
        mask = self._taking_part()
        lanes = lanes if mask is None else self.b.and_(lanes, mask)
        self.code.unless(self.b.not_(self.any_of(lanes)), self.code.ended)

    @contextmanager
    def _masked(self, mask: ir.Value | None, *, is_branch: bool) -> Iterator[None]:
        before = self.mask, self.is_branch
        self.mask, self.is_branch = mask, self.is_branch or is_branch
        yield
        self.mask, self.is_branch = before

    def branch(self, x: s.If) -> None:
        b = self.b
        if self.is_common(x.holds):
            holds = b.fcmp_unordered("!=", self.common_number(x.holds), DOUBLE(0.0))
            self.either(holds, x.yes, x.no)
            return
        holds = self.holds(x.holds)
        for lanes, body in ((holds, x.yes), (b.not_(holds), x.no)):
            if not body:
                continue
            if all(isinstance(item, s.End) for item in body):
                self._end_where(lanes)
                continue
            mask = lanes if self.mask is None else b.and_(self.mask, lanes)
            inside, after = b.append_basic_block(), b.append_basic_block()
            b.cbranch(self.any_of(mask), inside, after)
            b.position_at_end(inside)
            with self._masked(mask, is_branch=True):
                self.block(body)
            b.branch(after)
            b.position_at_end(after)

    def loop(self, x: s.For) -> None:
        b, splat = self.b, self.code.splat
        is_known = x.index in self.common
        if self.is_common(x.lower) and self.is_common(x.upper):
            lower, lanes = self.common_integer(x.lower), None
            most = b.add(b.sub(self.common_integer(x.upper), lower), INT(1))
        else:
            one = splat(INT(1))
            lanes = b.add(b.sub(self.integer(x.upper), self.integer(x.lower)), one)
            mask = self._taking_part()
            if mask is not None:
                lanes = b.select(mask, lanes, ir.Constant(_INTS, None))
            kind = ir.FunctionType(INT, [_INTS])
            largest = declared(self.code.module, f"llvm.vector.reduce.smax.v{WIDTH}i64", kind)
            most = b.call(largest, [lanes])
            lower = self.common_integer(x.lower) if is_known else self.integer(x.lower)

        def iteration(t: ir.Value, _: object) -> Sequence[ir.Value]:
            if x.backwards:
                t = b.sub(b.sub(most, INT(1)), t)
            index = b.add(lower, splat(t) if lower.type == _INTS else t)
            b.store(index if is_known or index.type == _INTS else splat(index), self.slot(x.index))
            mask = self.mask
            if lanes is not None:
                inside = b.icmp_signed(">", lanes, splat(t))
                mask = inside if mask is None else b.and_(mask, inside)
            with self._masked(mask, is_branch=False):
                self.block(x.body)
            return ()

        counted(b, INT(0), most, 1, (), iteration)

    def while_loop(self, x: s.While) -> None:
        b = self.b
        slot = self.code.entry.alloca(_BITS)
        mask = self._taking_part()
        b.store(ir.Constant(_BITS, [1] * WIDTH) if mask is None else mask, slot)

        def begin() -> ir.Value:
            mask = b.load(slot, typ=_BITS)
            with self._masked(mask, is_branch=True):
                self.block(x.condition)
                mask = b.and_(mask, self.holds(x.holds))
            b.store(mask, slot)
            return self.any_of(mask)

        def body() -> None:
            with self._masked(b.load(slot, typ=_BITS), is_branch=True):
                self.block(x.body)

        self.while_true(begin, body)
