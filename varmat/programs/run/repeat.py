"""Loops of the representation as graphs and instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from varmat.programs.ir.program import Value, contiguous_strides, form_of
from varmat.programs.run.code import Code
from varmat.programs.run.compiler import BIT, BYTE, INT, POINTER, declared
from varmat.programs.run.graph import Graph
from varmat.programs.run.loops import NoLoopError
from varmat.programs.run.nodes import Memory, Nodes, by_places

if TYPE_CHECKING:
    from varmat.programs.kernels.loop import Loop

# Elements up to which what is carried, shared or summed is in registers.
IN_REGISTERS = 64


def is_short(v: Value) -> bool:
    return v.size <= IN_REGISTERS and form_of(v.shape) is None


class Repeat:
    """A loop in the graph around it.

    Parameters
    ----------
    graph : Graph
    kernel : Loop
    operands, results : sequences of Value
    """

    def __init__(
        self, graph: Graph, kernel: Loop, operands: Sequence[Value], results: Sequence[Value]
    ) -> None:
        if not kernel.trips:
            raise NoLoopError("a loop without trips")
        self.kernel = kernel
        n, m, k = kernel.carried, kernel.carried + kernel.sliced, kernel.carried + kernel.stacked
        # What the body is given: nodes, or where they lie.
        self.given = [
            graph.nodes(v, form_of(v.shape))
            if is_short(v) and not n <= i < m
            else self._place(graph, v)
            for i, v in enumerate(operands)
        ]
        self.strides = [v.strides for v in operands]
        stages = [
            max((x.stage for x in found.array.flat), default=0)
            if isinstance(found, Nodes)
            else found[0].stage
            for found in self.given
        ]
        stage = max(stages, default=0)
        if not kernel.is_pure:
            stage = graph._impure = max(stage, graph._impure)
        # Where the results are: nodes whose values come later, or memory.
        self.made: list[Nodes | Memory] = []
        self.spare: dict[int, Memory] = {}
        for i, v in enumerate(results):
            if not n <= i < k and is_short(v):
                self.made.append(
                    by_places(
                        v.shape,
                        None,
                        lambda _, v=v: graph.given(None, stage, truth=v.dtype.char == "?"),
                    )
                )
                graph.put(v, self.made[-1].array, None)
                continue
            if i < n:  # there are two places, which the trips use in turns
                itemsize = int(v.dtype.itemsize)
                memory = Memory("later", v.size * itemsize, itemsize)
                memory.behind = tuple(graph.scratch(v.size, itemsize) for _ in range(2))
                graph.memory[id(v)] = memory
            else:
                memory = graph.fresh(v)
            memory.stage = stage
            self.made.append(memory)
        graph.act(stage, self.emit)

    @staticmethod
    def _place(graph: Graph, v: Value) -> tuple[Memory, int]:
        if v.strides[1:] != contiguous_strides(v.shape[1:], v.dtype.itemsize):
            found = graph.nodes(v)
            memory = graph.scratch(max(v.size, 1), v.dtype.itemsize)
            strides = contiguous_strides(v.shape, v.dtype.itemsize)
            graph.store(memory, v.shape, 0, strides, found)
            raise NotImplementedError
        return graph.place(v)

    def emit(self, code: Code) -> None:
        kernel, b = self.kernel, code.b
        n, k = kernel.carried, kernel.carried + kernel.stacked
        outer = code.memo
        first: list[ir.Value] = []
        for i, (found, made) in enumerate(zip(self.given[:n], self.made, strict=False)):
            if isinstance(made, Nodes):
                first += [code.number(x) for x in found.array.flat]
            else:
                here, there = (code.address(x) for x in made.behind)
                self._copy(code, here, found, made.size, kernel.body.arguments[i])
                first += [here, there]
        for v, made in zip(kernel.outputs[k:], self.made[k:], strict=True):
            if isinstance(made, Nodes):
                first += [code.one.constant(0.0)] * v.size
            else:
                code.fill_zeros([(made, 0)], made.size)
        shared = [
            [code.number(x) for x in found.array.flat] if isinstance(found, Nodes) else None
            for found in self.given
        ]
        after = b.append_basic_block()
        with code.repeated():
            code.memo = {}
            last = self._trips(code, first, shared, after)
        code.memo = outer
        b.position_at_end(after)
        at = 0
        for made in self.made:
            if isinstance(made, Nodes):
                for node in made.array.flat:
                    code.memo[id(node)] = last[at]
                    at += 1
            elif made.base == "later":
                made.base = last[at]
                at += 2

    def _copy(self, code: Code, to: ir.Value, found: Any, size: int, like: Value) -> None:
        if isinstance(found, Nodes):  # short at first, and in memory for the sake of the result
            for i, x in enumerate(found.array.flat):
                code.b.store(code.number(x), code.b.gep(to, [INT(8 * i)], source_etype=BYTE))
            return
        kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, INT, BIT])
        f = declared(code.module, "llvm.memcpy.p0.p0.i64", kind)
        code.b.call(f, [to, code.address(*found), INT(size), BIT(0)])

    def _trips(
        self, code: Code, first: list[ir.Value], shared: list[Any], after: ir.Block
    ) -> list[ir.Value]:
        kernel, b = self.kernel, code.b
        n, m, k = kernel.carried, kernel.carried + kernel.sliced, kernel.carried + kernel.stacked
        before, block = b.block, b.append_basic_block()
        b.branch(block)
        b.position_at_end(block)
        turn = b.phi(INT)
        phis = [b.phi(x.type) for x in first]
        t = b.sub(INT(kernel.trips - 1), turn) if kernel.backwards else turn
        given: dict[int, Any] = {}
        outputs: list[Memory | None] = []
        at = 0
        turns: list[tuple[ir.Value, ir.Value]] = []
        for i, v in enumerate(kernel.body.arguments):
            found = self.given[i]
            if i < n and isinstance(self.made[i], Nodes):
                given[id(v)] = _in_registers(v, phis[at : at + v.size])
                at += v.size
            elif i < n:
                here, there = phis[at : at + 2]
                given[id(v)] = self._moving(v, here, self.made[i].behind)
                outputs.append(self._moving(v, there, self.made[i].behind))
                turns.append((there, here))
                at += 2
                continue
            elif i < m:
                memory, offset = found
                place = b.add(b.mul(t, INT(self.strides[i][0])), INT(offset))
                given[id(v)] = self._moving(v, code.address(memory, place), (memory,))
            elif shared[i] is not None:
                given[id(v)] = _in_registers(v, shared[i])
            else:
                memory, offset = found
                given[id(v)] = self._moving(v, code.address(memory, offset), (memory,))
            if i < n:
                outputs.append(None)
        for i, v in enumerate(kernel.body.outputs[n:], n):
            if i < k:
                memory = self.made[i]
                size = v.size * v.dtype.itemsize
                place = code.address(memory, b.mul(t, INT(size)))
                outputs.append(self._moving(v, place, (memory,)))
            else:
                outputs.append(None)
        graph = Graph(kernel.body, given, outputs)
        for i, v in enumerate(kernel.outputs[k:], k):
            if isinstance(self.made[i], Memory):
                memory = self._moving(v, code.address(self.made[i]), (self.made[i],))
                strides = contiguous_strides(v.shape)
                graph.store(memory, v.shape, 0, strides, graph.results[i], add=True)
        code.emit(graph)
        made, at, swapped = [], 0, iter(turns)
        for i, found in enumerate(self.made):
            if n <= i < k:
                continue
            if isinstance(found, Nodes):
                for x in graph.results[i].array.flat:
                    x = code.number(x)
                    made.append(b.fadd(phis[at], x) if i >= k else x)
                    at += 1
            elif i < n:
                made += next(swapped)
                at += 2
        following = b.add(turn, INT(1))
        goes_on = b.icmp_signed("<", following, INT(kernel.trips))
        if kernel.ends:
            goes_on = b.and_(goes_on, code.number(graph._truth(graph.results[-1].array.item())))
        turn.add_incoming(INT(0), before)
        turn.add_incoming(following, b.block)
        for phi, x, y in zip(phis, first, made, strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, b.block)
        b.cbranch(goes_on, block, after)
        return made

    @staticmethod
    def _moving(v: Value, pointer: ir.Value, behind: tuple[Memory, ...]) -> Memory:
        itemsize = int(v.dtype.itemsize)
        memory = Memory(pointer, v.size * itemsize, itemsize)
        memory.behind = behind
        return memory


def _in_registers(v: Value, values: Sequence[ir.Value]) -> Any:
    """The nodes of an argument that is in registers."""

    def nodes(graph: Graph) -> Nodes:
        taken = iter(values)
        return by_places(
            v.shape, None, lambda _: graph.given(next(taken), 0, truth=v.dtype.char == "?")
        )

    return nodes
