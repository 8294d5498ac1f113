"""Instructions for LLVM out of the graph of a program.

Numbers are in registers. All steps of one stage over axes of the same lengths are one nest of
loops, in vectors, with an accumulator for each reduction. Values that a nest needs from an earlier
one are computed again if cheap, and kept in scratch memory otherwise. Scratch memory is assigned at
the end, when the last use of each part is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from varmat.programs.run import small_matrices
from varmat.programs.run.compiler import (
    BIT,
    BYTE,
    DOUBLE,
    INT,
    INT32,
    POINTER,
    Module,
    counted,
    declared,
)
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.functions import Functions
from varmat.programs.run.graph import Graph
from varmat.programs.run.nodes import Memory, Node
from varmat.programs.run.vector_loops import Nest, plan

# Bytes to which scratch memory is aligned.
LINE = 64
# Instructions after which a new block begins, because LLVM takes a time that grows with the square
# of a block: 23 s for a block of 120,000 lines, and 1.4 s for the same in blocks.
BLOCK = 1000
MemoryPlace = tuple[Memory, int]


class Code:
    """The function of a program: its arguments are the addresses of arguments and outputs, of the
    table of constants, with the function that calls Python before it, and of scratch memory. It
    returns 0, or why the run ended.
    """

    def __init__(self, module: Module, name: str, buffers: int, first_output: int) -> None:
        self.module, self.first_output = module, first_output
        kind = ir.FunctionType(INT, [POINTER] * (buffers + 2) + self.more(buffers))
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        for argument in self.function.args[: buffers + 2]:
            argument.add_attribute("noalias")
        self.places = self.function.args[:buffers]
        self.table, self.scratch = self.function.args[buffers : buffers + 2]
        entry = self.function.append_basic_block("entry")
        begin = self.function.append_basic_block("begin")
        self.entry = ir.IRBuilder(entry)
        self._enter = self.entry.branch(begin)
        self.entry.position_before(self._enter)
        self.b = ir.IRBuilder(begin)
        self.one, self.many = Functions(module, 1), Functions(module, WIDTH)
        # The functions of the numbers of a graph.
        self.lane = self.one
        self.ended = self._exit(1)
        self.failed = self._exit(2)
        self.references: list[object] = []
        self._clock = 0
        self._log: list[Memory] = []
        self._scratch: dict[int, tuple[Memory, list[ir.Constant]]] = {}
        self._constants: dict[Any, ir.GlobalVariable] = {}
        self._entries: dict[int, ir.Value] = {}
        self.memo: dict[int, ir.Value] = {}
        self.scratch_bytes = 0

    def more(self, buffers: int) -> list[ir.Type]:
        """Return the types of further arguments."""
        return []

    def _exit(self, status: int) -> ir.Block:
        block = self.function.append_basic_block()
        ir.IRBuilder(block).ret(INT(status))
        return block

    # --- a graph ---

    def emit(self, graph: Graph) -> None:
        """Emit all stages of a graph, where the builder is."""
        self.references += graph.references
        repeated = plan(graph)
        last = max([*(stage for stage, _ in graph.loops), *graph.actions, 0])
        for stage in range(last + 1):
            for action in graph.actions.get(stage, ()):
                self._clock += 1
                action(self)
            for key in sorted(key for key in graph.loops if key[0] == stage):
                self._clock += 1
                Nest(self, key[1], graph.loops[key], repeated.get(stage, {})).emit()

    def finish(self) -> None:
        """Return, and assign scratch memory."""
        self.b.ret(INT(0))
        ends: list[tuple[int, int, int]] = []  # when a piece is free, where it begins, its bytes
        for memory, buffers in sorted(self._scratch.values(), key=lambda item: item[0].since):
            size = -(-memory.size * self.lane.width // LINE) * LINE
            fitting = [e for e in ends if e[0] < memory.since and e[2] >= size]
            if fitting:
                chosen = min(fitting, key=lambda e: e[2])
                ends.remove(chosen)
                at, size = chosen[1:]
            else:
                at = self.scratch_bytes
                self.scratch_bytes += size
            ends.append((memory.last, at, size))
            for x in buffers:
                x.constant = at

    # --- memory ---

    def touch(self, memory: Memory) -> None:
        memory.since = self._clock if memory.since < 0 else memory.since
        memory.last = self._clock
        self._log.append(memory)

    def address(self, memory: Memory, offset: ir.Value | int = 0) -> ir.Value:
        """Return a pointer to an offset in memory."""
        self.touch(memory)
        if memory.is_constant:
            base = self.entry_of_table(memory.base)
        elif memory.base is None:
            at = ir.Constant(INT, 0)
            self._scratch.setdefault(id(memory), (memory, []))[1].append(at)
            base = self.b.gep(self.scratch, [at], source_etype=BYTE)
        elif isinstance(memory.base, int):
            base = self.places[memory.base]
        else:
            for x in memory.behind:
                self.touch(x)
            base = memory.base
        return self.beyond(base, offset)

    def entry_of_table(self, number: int) -> ir.Value:
        """Return an address from the table of constants."""
        if number not in self._entries:
            place = self.entry.gep(self.table, [INT(number)], source_etype=POINTER)
            self._entries[number] = self.entry.load(place, typ=POINTER)
        return self._entries[number]

    def beyond(self, place: ir.Value, offset: ir.Value | int) -> ir.Value:
        """Return a pointer to a number of bytes after another one."""
        if isinstance(offset, int):
            if not offset:
                return place
            offset = INT(offset)
        return self.b.gep(place, [offset], source_etype=BYTE)

    @contextmanager
    def repeated(self) -> Iterator[None]:
        """Keep memory that is touched inside for the whole block."""
        start, first = len(self._log), self._clock
        yield
        touched = [*{id(m): m for m in self._log[start:]}.values()]
        for memory in touched:
            memory.since, memory.last = min(memory.since, first), self._clock
        # A loop around this one needs it all the time too.
        self._log[start:] = touched

    def words(self, *numbers: int) -> ir.Value:
        """Return the address of integers."""
        return self.constant(ir.ArrayType(INT, max(len(numbers), 1)), [*numbers] or [0])

    def constant(self, kind: ir.Type, x: Any) -> ir.Value:
        """Return the address of a constant."""
        key = str(kind), str(x)
        if key not in self._constants:
            name = f"constant.{self.function.name}.{len(self._constants)}"
            self._constants[key] = variable = ir.GlobalVariable(self.module, kind, name)
            variable.linkage, variable.global_constant = "internal", True
            variable.initializer = ir.Constant(kind, x)
        return self._constants[key]

    def on_stack(self, kind: ir.Type, count: int) -> ir.Value:
        return self.entry.alloca(kind, count)

    # --- numbers ---

    def number(self, node: Node) -> ir.Value:
        result = self.memo.get(id(node))
        if result is not None:
            return result
        needed: dict[int, Node] = {}
        stack = [node]
        while stack:
            x = stack.pop()
            if id(x) not in needed and id(x) not in self.memo:
                needed[id(x)] = x
                stack += x.args
        for x in sorted(needed.values(), key=lambda item: item.number):
            self.memo[id(x)] = self._number(x)
        return self.memo[id(node)]

    def _number(self, node: Node) -> ir.Value:
        if len(self.b.block.instructions) >= BLOCK:
            following = self.function.append_basic_block()
            self.b.branch(following)
            self.b.position_at_end(following)
        if node.op == "constant":
            return self.lane.constant(node.data)
        if node.op == "given":
            return node.data
        if node.op == "load":
            memory, at, _ = node.data
            return self.read(memory, at, node.truth)
        if node.op == "gather":
            memory, at, _, size, index, index_at = node.data
            here = self.b.mul(self.b.load(self.address(index, index_at), typ=INT), INT(size))
            return self.read(memory, self.b.add(here, INT(at)), node.truth)
        return self.lane.apply(self.b, node.op, *(self.memo[id(a)] for a in node.args))

    def read(self, memory: Memory, at: ir.Value | int, truth: bool = False) -> ir.Value:
        """Return the number at a place in memory, in all lanes."""
        x = self.b.load(self.address(memory, at), typ=BYTE if truth else DOUBLE)
        x = self.b.icmp_unsigned("!=", x, BYTE(0)) if truth else x
        return x if self.lane is self.one else self.splat(x)

    def put(self, memory: Memory, at: ir.Value | int, x: ir.Value) -> None:
        """Write a number to a place in memory."""
        if memory.itemsize == 1:
            x = self.b.zext(x, BYTE)
        self.b.store(x, self.address(memory, at))

    def store_number(self, memory: Memory, node: Node, at: int, add: bool) -> None:
        x = self.number(node)
        if add:
            x = self.b.fadd(self.read(memory, at), x)
        self.put(memory, at, x)

    def guard(self, holds: Node) -> None:
        self.unless(self.number(holds), self.ended)

    def unless(self, holds: ir.Value, end: ir.Block) -> None:
        following = self.function.append_basic_block()
        self.b.cbranch(holds, following, end)
        self.b.position_at_end(following)

    # --- loops ---

    def over(
        self,
        count: ir.Value | int,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
        step: int = 1,
    ) -> list[ir.Value]:
        """Emit a loop, of at least one iteration if its count is unknown; `body` takes the index
        and the carry, and returns the next carry.
        """
        if count == 0:
            return [*carried]
        b = self.b
        before, block = b.block, b.append_basic_block()
        b.branch(block)
        b.position_at_end(block)
        i = b.phi(INT)
        phis = [b.phi(x.type) for x in carried]
        result = list(body(i, phis))
        following = b.add(i, INT(step))
        for phi, x, y in zip([i, *phis], [INT(0), *carried], [following, *result], strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, b.block)
        after = b.append_basic_block()
        stop = INT(count) if isinstance(count, int) else count
        b.cbranch(b.icmp_signed("<", following, stop), block, after)
        b.position_at_end(after)
        return result

    # --- calls: they take the places of operands and results ---

    def call_python(self, buffers: Sequence[MemoryPlace | None], number: int) -> None:
        self.module.calls_out = True
        args = self.on_stack(POINTER, max(len(buffers), 1))
        for i, place in enumerate(buffers):
            address = POINTER(None) if place is None else self.address(*place)
            self.b.store(address, self.b.gep(args, [INT(i)], source_etype=POINTER))
        kind = ir.FunctionType(INT, [INT, POINTER])
        address = self.b.ptrtoint(self.entry_of_table(0), INT)
        function = self.b.inttoptr(address, kind.as_pointer())
        status = self.b.call(function, [INT(number), args])
        self.unless(self.b.icmp_unsigned("==", status, INT(0)), self.failed)

    def call_loop(
        self,
        buffers: Sequence[MemoryPlace],
        loop: tuple[int, int],
        order: Sequence[int],
        lengths: Sequence[int],
        outer: Sequence[Sequence[int]],
        dims: Sequence[int],
        steps: Sequence[int],
    ) -> None:
        """Emit calls of an inner loop of NumPy, within loops over outer axes; `outer` has the
        strides of all operands for each outer axis.
        """
        self.module.calls_out = True
        buffers = [buffers[i] for i in order]
        args = self.on_stack(POINTER, len(buffers))
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, POINTER])
        function = self.b.inttoptr(INT(loop[0]), kind.as_pointer())

        def nest(axis: int, offsets: Sequence[ir.Value]) -> None:
            if axis < len(lengths):

                def iteration(i: ir.Value, _: object) -> Sequence[ir.Value]:
                    pairs = zip(offsets, outer[axis], strict=True)
                    nest(axis + 1, [self.b.add(at, self.b.mul(i, INT(n))) for at, n in pairs])
                    return []

                self.over(lengths[axis], [], iteration)
                return
            for j, ((memory, _), at) in enumerate(zip(buffers, offsets, strict=True)):
                place = self.b.gep(args, [INT(j)], source_etype=POINTER)
                self.b.store(self.address(memory, at), place)
            data = INT(loop[1]).inttoptr(POINTER)
            self.b.call(function, [args, self.words(*dims), self.words(*steps), data])

        nest(0, [INT(at) for _, at in buffers])

    def call_fortran(
        self, buffers: Sequence[MemoryPlace], address: int, args: Sequence[Any]
    ) -> None:
        """Emit a call of a function of LAPACK or BLAS, which takes addresses: of characters,
        integers, floats, and of the operands whose numbers are in tuples.
        """
        self.module.calls_out = True
        arguments = []
        for x in args:
            if isinstance(x, tuple):
                arguments.append(self.address(*buffers[x[0]]))
                continue
            kind = BYTE if isinstance(x, bytes) else INT32 if isinstance(x, int) else DOUBLE
            arguments.append(self.constant(kind, x[0] if isinstance(x, bytes) else x))
        kind = ir.FunctionType(ir.VoidType(), [POINTER] * len(arguments))
        self.b.call(self.b.inttoptr(INT(address), kind.as_pointer()), arguments)

    def of_small(self, buffers: Sequence[MemoryPlace], name: str, *more: Any) -> None:
        """Emit a function of `small_matrices`."""
        getattr(small_matrices, name)(self, buffers, *more)

    def copy(self, to: ir.Value, source: ir.Value, count: int) -> None:
        """Copy bytes."""
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INT, BIT])
        f = declared(self.module, "llvm.memcpy.p0.p0.i64", kind)
        self.b.call(f, [to, source, INT(count), BIT(0)])

    def fill_zeros(self, buffers: Sequence[MemoryPlace], count: int) -> None:
        kind = ir.FunctionType(ir.VoidType(), [POINTER, BYTE, INT, BIT])
        f = declared(self.module, "llvm.memset.p0.i64", kind)
        self.b.call(f, [self.address(*buffers[0]), BYTE(0), INT(count), BIT(0)])

    def segments_to(
        self,
        buffers: Sequence[MemoryPlace],
        starts: Memory,
        order: Memory | None,
        count: int,
        zero: float,
    ) -> None:
        """Emit sums over the elements that go to each index: `order` lists them, index by index. A
        sum that is added to a base begins with a negative zero, to keep the sign of another one.
        """
        b, (part, part_at), (out, out_at) = self.b, buffers[0], buffers[1]

        def element(k: ir.Value) -> ir.Value:
            if order is not None:
                k = b.load(self.address(order, b.mul(k, INT(8))), typ=INT)
            return self.address(part, b.add(b.mul(k, INT(8)), INT(part_at)))

        def vector(k: ir.Value) -> ir.Value:
            if order is None:
                return b.load(element(k), align=8, typ=self.many.kind)
            return self.lanes(lambda j: b.load(element(b.add(k, INT(j))), typ=DOUBLE))

        def place(j: ir.Value, _: object) -> Sequence[ir.Value]:
            at = b.mul(j, INT(8))
            first = b.load(self.address(starts, at), typ=INT)
            last = b.load(self.address(starts, b.add(at, INT(8))), typ=INT)
            vector_end = b.sub(last, b.urem(b.sub(last, first), INT(WIDTH)))
            k, (total,) = counted(
                b,
                first,
                vector_end,
                WIDTH,
                [self.many.constant(zero)],
                lambda k, x: [b.fadd(x[0], vector(k))],
            )
            number = self.sum_of_lanes(total)
            _, (number,) = counted(
                b, k, last, 1, [number], lambda k, x: [b.fadd(x[0], b.load(element(k), typ=DOUBLE))]
            )
            b.store(number, self.address(out, b.add(at, INT(out_at))))
            return []

        self.over(count, [], place)

    # --- vectors ---

    def lanes(self, element: Callable[[int], ir.Value], width: int = WIDTH) -> ir.Value:
        """Make a vector of elements that are loaded one by one."""
        first = element(0)
        x = ir.Constant(ir.VectorType(first.type, width), ir.Undefined)
        for j in range(width):
            x = self.b.insert_element(x, element(j) if j else first, INT32(j))
        return x

    def splat(self, x: ir.Value, width: int = WIDTH) -> ir.Value:
        kind = ir.VectorType(x.type, width)
        one = self.b.insert_element(ir.Constant(kind, ir.Undefined), x, INT32(0))
        return self.b.shuffle_vector(
            one, one, ir.Constant(ir.VectorType(INT32, width), [0] * width)
        )

    def sum_of_lanes(self, x: ir.Value) -> ir.Value:
        name = f"llvm.vector.reduce.fadd.v{WIDTH}f64"
        f = declared(self.module, name, ir.FunctionType(DOUBLE, [DOUBLE, x.type]))
        return self.b.call(f, [DOUBLE(-0.0), x], fastmath=("reassoc",))
