"""Loops of the representation as graphs and instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from varmat.programs.ir.program import BOOL, Value, contiguous_strides
from varmat.programs.run.code import Code
from varmat.programs.run.compiler import INT
from varmat.programs.run.graph import Graph
from varmat.programs.run.loops import NoLoopError
from varmat.programs.run.nodes import Memory, Nodes, by_places, loop_axes

if TYPE_CHECKING:
    from varmat.programs.kernels.loop import Loop

# Values in registers that are carried, shared or summed have at most this many elements.
IN_REGISTERS = 64
GivenNodes = Memory | Callable[[Graph], Nodes]


def is_short(v: Value, graph: Graph) -> bool:
    return v.size <= IN_REGISTERS and not loop_axes(v.shape, long=graph.constants.long)


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
        self.kernel, self.constants = kernel, graph.constants
        n, m, k = kernel.carried, kernel.carried + kernel.sliced, kernel.carried + kernel.stacked
        # The inputs of the body, by the number of the argument: nodes, or where they lie.
        self.nodes: dict[int, Nodes] = {}
        self.places: dict[int, tuple[Memory, int]] = {}
        self.strides = [v.strides for v in operands]
        for i, v in enumerate(operands):
            if is_short(v, graph) and not n <= i < m:
                self.nodes[i] = graph.nodes(v, ())
                continue
            if (
                v.strides[n <= i < m :]
                != contiguous_strides(v.shape, v.dtype.itemsize)[n <= i < m :]
            ):
                v = graph.broadcast(v, v.shape)
                self.strides[i] = v.strides
            self.places[i] = graph.place(v)
        stages = [x.stage for node in self.nodes.values() for x in node.array.flat]
        stage = max([*stages, *(memory.stage for memory, _ in self.places.values())], default=0)
        if not kernel.is_pure:
            stage = graph.impure(stage)
        # The results, by their number: nodes whose values come later, or memory.
        self.computed: dict[int, Nodes] = {}
        self.memory: dict[int, Memory] = {}
        for i, v in enumerate(results):
            if not n <= i < k and is_short(v, graph):
                array = later(graph, v, stage)
                self.computed[i] = array
                graph.put(v, *array)
                continue
            itemsize = int(v.dtype.itemsize)
            if i < n:  # two buffers, which the iterations use alternately
                memory = Memory("later", v.size * itemsize, itemsize)
                memory.behind = tuple(graph.scratch(v.size, itemsize) for _ in range(2))
                graph.memory[id(v)] = memory
            else:
                memory = graph.fresh(v)
            memory.stage = stage
            self.memory[i] = memory
        graph.act(stage, self.emit)

    def emit(self, code: Code) -> None:
        kernel, b = self.kernel, code.b
        n, k, count = kernel.carried, kernel.carried + kernel.stacked, len(kernel.outputs)
        outer = code.memo
        first: list[ir.Value] = []
        for i in (*range(n), *range(k, count)):
            if i in self.computed and i < n:
                first += [code.number(x) for x in self.nodes[i].array.flat]
            elif i in self.computed:
                first += [code.one.constant(0.0)] * kernel.outputs[i].size
            elif i < n:
                here, there = (code.address(x) for x in self.memory[i].behind)
                code.copy(here, code.address(*self.places[i]), self.memory[i].size)
                first += [here, there]
            else:
                code.fill_zeros([(self.memory[i], 0)], self.memory[i].size)
        shared = {i: [code.number(x) for x in node.array.flat] for i, node in self.nodes.items()}
        after = b.append_basic_block()
        with code.repeated():
            code.memo = {}
            last = iter(self._trips(code, first, shared, after))
        code.memo = outer
        b.position_at_end(after)
        for i in (*range(n), *range(k, count)):
            if i in self.computed:
                for node in self.computed[i].array.flat:
                    code.memo[id(node)] = next(last)
            elif i < n:
                self.memory[i].base = next(last)
                next(last)

    def _trips(
        self, code: Code, first: list[ir.Value], shared: dict[int, list[ir.Value]], after: ir.Block
    ) -> list[ir.Value]:
        """Emit the block of an iteration; return the next carry."""
        kernel, b = self.kernel, code.b
        before, block = b.block, b.append_basic_block()
        b.branch(block)
        b.position_at_end(block)
        turn = b.phi(INT)
        phis = [b.phi(x.type) for x in first]
        t = b.sub(INT(kernel.trips - 1), turn) if kernel.backwards else turn
        args, outputs, turned = self._arguments(code, t, iter(phis), shared)
        graph = Graph(kernel.body, args, outputs, self.constants)
        for i, v in enumerate(kernel.outputs):
            if i in self.memory and outputs[i] is None:  # a sum in memory
                memory = pointing(v, code.address(self.memory[i]), (self.memory[i],))
                strides = contiguous_strides(v.shape)
                graph.store(memory, v.shape, 0, strides, graph.made_of(i), add=True)
        short = {i: graph.nodes(kernel.outputs[i], ()) for i in self.computed}
        code.emit(graph)
        result: list[ir.Value] = []
        for i in range(len(kernel.outputs)):
            if i in self.computed:
                for x in short[i].array.flat:
                    y = code.number(x)
                    result.append(y if i < kernel.carried else b.fadd(phis[len(result)], y))
            elif i < kernel.carried:
                result += turned[i]
        following = b.add(turn, INT(1))
        goes_on = b.icmp_signed("<", following, INT(kernel.trips))
        if kernel.ends:
            goes_on = b.and_(goes_on, code.number(graph.truth(graph.made_of(-1).array.item())))
        for phi, x, y in zip([turn, *phis], [INT(0), *first], [following, *result], strict=True):
            phi.add_incoming(x, before)
            phi.add_incoming(y, b.block)
        b.cbranch(goes_on, block, after)
        return result

    def _arguments(
        self, code: Code, t: ir.Value, phis: object, shared: dict[int, list[ir.Value]]
    ) -> tuple[dict[int, GivenNodes], list[Memory | None], dict[int, list[ir.Value]]]:
        """Return the inputs of the body, where its outputs go, and the buffers that alternate."""
        kernel, b = self.kernel, code.b
        n, m, k = kernel.carried, kernel.carried + kernel.sliced, kernel.carried + kernel.stacked
        args: dict[int, GivenNodes] = {}
        outputs: list[Memory | None] = [None] * len(kernel.body.outputs)
        turned: dict[int, list[ir.Value]] = {}
        for i, v in enumerate(kernel.body.arguments):
            if i < n and i in self.computed:
                args[id(v)] = in_registers(v, [next(phis) for _ in range(v.size)])  # type: ignore[call-overload]
            elif i < n:
                here, there = next(phis), next(phis)  # type: ignore[call-overload]
                args[id(v)] = pointing(v, here, self.memory[i].behind)
                outputs[i] = pointing(v, there, self.memory[i].behind)
                turned[i] = [there, here]
            elif i in shared:
                args[id(v)] = in_registers(v, shared[i])
            else:
                memory, offset = self.places[i]
                place: ir.Value = INT(offset)
                if i < m:
                    place = b.add(b.mul(t, INT(self.strides[i][0])), place)
                args[id(v)] = pointing(v, code.address(memory, place), (memory,))
        for i, v in enumerate(kernel.outputs[n:k], n):
            place = b.mul(t, INT(v.size * int(v.dtype.itemsize)))
            memory = self.memory[i]
            outputs[i] = pointing(v, code.address(memory, place), (memory,))
        return args, outputs, turned


def later(graph: Graph, v: Value, stage: int) -> Nodes:
    """Return the nodes of a result whose values come with the instructions."""
    return by_places(v.shape, (), lambda _: graph.given(None, stage, truth=v.dtype == BOOL))


def pointing(v: Value, pointer: ir.Value, behind: tuple[Memory, ...]) -> Memory:
    """Return the memory of a value at an address that changes from iteration to iteration."""
    itemsize = int(v.dtype.itemsize)
    memory = Memory(pointer, v.size * itemsize, itemsize)
    memory.behind = behind
    return memory


def in_registers(v: Value, values: Sequence[ir.Value]) -> Callable[[Graph], Nodes]:
    """Return the nodes of an argument that is in registers."""

    def nodes(graph: Graph) -> Nodes:
        taken = iter(values)
        return by_places(v.shape, (), lambda _: graph.given(next(taken), 0, truth=v.dtype == BOOL))

    return nodes
