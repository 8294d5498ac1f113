"""Many points at once: one in each lane of vector instructions, as for a map.

Numbers are vectors, and scratch memory has a vector for each number. Arguments and outputs stay
where the caller has them, a row for each point. Where a point ends the run, all points of the
vector are evaluated again, one by one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from llvmlite import ir

from varmat.programs.run.code import Code
from varmat.programs.run.compiler import BIT, BYTE, DOUBLE, INT, INT32, POINTER, counted, declared
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.nodes import Called, NotFusedError, Required, RowSum, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from varmat.programs.run.code import MemoryPlace
    from varmat.programs.run.compiler import Module
    from varmat.programs.run.graph import Graph
    from varmat.programs.run.nodes import Memory, Node

# Elements of all loops together, beyond which vectors of elements are as fast.
MOST = 512


class PointLanes(Code):
    """The function of a program for as many points as a vector has lanes. Behind the arguments of
    the function for one point, it has the bytes by which each argument and output moves on.
    """

    def __init__(self, module: Module, name: str, buffers: int, first_output: int) -> None:
        super().__init__(module, name, buffers, first_output)
        self.lane = self.many
        self._moves = self.function.args[buffers + 2 :]

    def more(self, buffers: int) -> list[ir.Type]:
        return [INT] * buffers

    def emit(self, graph: Graph) -> None:
        """Emit all stages of a graph; raise `NotFusedError` if vectors of points cannot run it."""
        actions = [x for group in graph.actions.values() for x in group]
        stores = [x for group in graph.loops.values() for x in group]
        is_known = all(
            isinstance(x, (Required, Stored))
            or (isinstance(x, Called) and x.method in ("fill_zeros", "segments_to"))
            for x in actions
        ) and not any(isinstance(x, RowSum) for x in stores)
        if not is_known or any(node.op == "rows" for node in graph.interned.values()):
            raise NotFusedError("calls in vectors of points")
        if sum(math.prod(lengths) for _, lengths in graph.loops) > MOST:
            raise NotFusedError("long loops")
        super().emit(graph)

    # --- memory ---

    def address(self, memory: Memory, offset: ir.Value | int = 0) -> ir.Value:
        if memory.base is None and not memory.is_constant:
            is_plain = isinstance(offset, int)
            offset = offset * WIDTH if is_plain else self.b.mul(offset, INT(WIDTH))
        return super().address(memory, offset)

    def _of_lanes(self, memory: Memory, at: ir.Value | int) -> list[ir.Value]:
        """Return the addresses of a number of an argument or output, of all points."""
        place, move = self.address(memory, at), self._moves[memory.base]
        return [self.beyond(place, self.b.mul(move, INT(j))) for j in range(WIDTH)]

    def read(self, memory: Memory, at: ir.Value | int, truth: bool = False) -> ir.Value:
        if memory.is_constant:
            return super().read(memory, at, truth)
        kind = BYTE if truth else DOUBLE
        if memory.base is None:
            typ = ir.VectorType(kind, WIDTH)
            x = self.b.load(self.address(memory, at), align=memory.itemsize, typ=typ)
        else:
            addresses = self._of_lanes(memory, at)
            x = self.lanes(lambda j: self.b.load(addresses[j], typ=kind))
        return self.b.icmp_unsigned("!=", x, ir.Constant(x.type, None)) if truth else x

    def put(self, memory: Memory, at: ir.Value | int, x: ir.Value) -> None:
        b = self.b
        if memory.itemsize == 1:
            x = b.zext(x, ir.VectorType(BYTE, WIDTH))
        if memory.base is None:
            b.store(x, self.address(memory, at), align=memory.itemsize)
            return
        for j, place in enumerate(self._of_lanes(memory, at)):
            b.store(b.extract_element(x, INT32(j)), place)

    def fill_zeros(self, buffers: Sequence[MemoryPlace], count: int) -> None:
        ((memory, at),) = buffers
        if memory.base is None:
            super().fill_zeros(buffers, count * WIDTH)
            return
        kind = ir.FunctionType(ir.VoidType(), [POINTER, BYTE, INT, BIT])
        f = declared(self.module, "llvm.memset.p0.i64", kind)
        for place in self._of_lanes(memory, at):
            self.b.call(f, [place, BYTE(0), INT(count), BIT(0)])

    def segments_to(
        self,
        buffers: Sequence[MemoryPlace],
        starts: Memory,
        order: Memory | None,
        count: int,
        zero: float,
    ) -> None:
        b, (part, part_at), (out, out_at) = self.b, buffers[0], buffers[1]

        def word(memory: Memory, at: ir.Value) -> ir.Value:
            return b.load(self.address(memory, b.mul(at, INT(8))), typ=INT)

        def element(k: ir.Value, total: list[ir.Value]) -> list[ir.Value]:
            at = k if order is None else word(order, k)
            x = self.read(part, b.add(b.mul(at, INT(8)), INT(part_at)))
            return [b.fadd(total[0], x)]

        def place(j: ir.Value, _: object) -> list[ir.Value]:
            ends = word(starts, j), word(starts, b.add(j, INT(1)))
            _, (total,) = counted(b, *ends, 1, [self.many.constant(zero)], element)
            self.put(out, b.add(b.mul(j, INT(8)), INT(out_at)), total)
            return []

        self.over(count, [], place)

    def guard(self, holds: Node) -> None:
        kind = ir.FunctionType(BIT, [ir.VectorType(BIT, WIDTH)])
        all_of = declared(self.module, f"llvm.vector.reduce.and.v{WIDTH}i1", kind)
        self.unless(self.b.call(all_of, [self.number(holds)]), self.ended)
