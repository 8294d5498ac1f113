"""Branches of the representation as graphs and instructions."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from varmat.programs.ir.program import Program, Value
from varmat.programs.run.code import Code
from varmat.programs.run.compiler import BIT, DOUBLE
from varmat.programs.run.graph import Graph
from varmat.programs.run.nodes import Memory, Nodes
from varmat.programs.run.repeat import GivenNodes, in_registers, is_short, later, pointing


class Choice:
    """A branch in the graph around it.

    Parameters
    ----------
    graph : Graph
    bodies : sequence of Program
        The programs of the branch.
    is_pure : bool
        Whether all of them are.
    operands, results : sequences of Value
    """

    def __init__(
        self,
        graph: Graph,
        bodies: Sequence[Program],
        is_pure: bool,
        operands: Sequence[Value],
        results: Sequence[Value],
    ) -> None:
        self.bodies, self.constants = bodies, graph.constants
        number, *args = operands
        self.number = graph.nodes(number, ()).array.item()
        # The inputs of the programs, by the number of the argument: nodes, or where they lie.
        self.nodes = {i: graph.nodes(v, ()) for i, v in enumerate(args) if is_short(v, graph)}
        self.places = {
            i: graph.place(graph.broadcast(v, v.shape))
            for i, v in enumerate(args)
            if i not in self.nodes
        }
        stages = [x.stage for result in self.nodes.values() for x in result.array.flat]
        stage = max([self.number.stage, *stages, *(m.stage for m, _ in self.places.values())])
        if not is_pure:
            stage = graph.impure(stage)
        # The results, by their number: nodes whose values come later, or memory.
        self.computed: dict[int, Nodes] = {}
        self.memory: dict[int, Memory] = {}
        for i, v in enumerate(results):
            if is_short(v, graph):
                self.computed[i] = later(graph, v, stage)
                graph.put(v, *self.computed[i])
            else:
                self.memory[i] = graph.fresh(v)
                self.memory[i].stage = stage
        graph.act(stage, self.emit)

    def emit(self, code: Code) -> None:
        b, number = code.b, code.number(self.number)
        shared = {i: [code.number(x) for x in v.array.flat] for i, v in self.nodes.items()}
        outer, ends = code.memo, list[tuple[ir.Block, list[ir.Value]]]()
        after = b.append_basic_block()
        with code.repeated():
            for i, body in enumerate(self.bodies):
                block, others = b.append_basic_block(), b.append_basic_block()
                is_last = i == len(self.bodies) - 1
                chosen = BIT(1) if is_last else b.fcmp_ordered("<", number, DOUBLE(i + 1))
                b.cbranch(chosen, block, others)
                b.position_at_end(block)
                code.memo = {}
                output = self._values(code, body, shared)
                ends.append((b.block, output))
                b.branch(after)
                b.position_at_end(others)
            b.unreachable()
        code.memo = outer
        b.position_at_end(after)
        nodes = [x for result in self.computed.values() for x in result.array.flat]
        for k, node in enumerate(nodes):
            phi = b.phi(DOUBLE)
            for block, output in ends:
                phi.add_incoming(output[k], block)
            code.memo[id(node)] = phi

    def _values(
        self, code: Code, body: Program, shared: dict[int, list[ir.Value]]
    ) -> list[ir.Value]:
        """Emit one of the programs; return its results, in registers."""
        args: dict[int, GivenNodes] = {}
        for i, v in enumerate(body.arguments):
            if i in shared:
                args[id(v)] = in_registers(v, shared[i])
            else:
                memory, offset = self.places[i]
                args[id(v)] = pointing(v, code.address(memory, offset), (memory,))
        outputs = [
            pointing(v, code.address(self.memory[i]), (self.memory[i],))
            if i in self.memory
            else None
            for i, v in enumerate(body.outputs)
        ]
        graph = Graph(body, args, outputs, self.constants)
        short = [graph.nodes(v, ()) for i, v in enumerate(body.outputs) if i in self.computed]
        code.emit(graph)
        return [code.number(x) for result in short for x in result.array.flat]
