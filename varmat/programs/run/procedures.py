"""Procedures as instructions: cells are registers, arrays and stacks are memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from varmat.programs.ir import statements as s
from varmat.programs.ir.program import Value
from varmat.programs.kernels.procedure import Line
from varmat.programs.run.code import Code
from varmat.programs.run.compiler import DOUBLE, INT, counted
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.graph import Graph
from varmat.programs.run.instructions import Instructions
from varmat.programs.run.nodes import Memory
from varmat.programs.run.repeat import in_registers
from varmat.programs.run.wide_loops import Wide, wide_loops

if TYPE_CHECKING:
    from varmat.programs.kernels.procedure import Procedure


class Emitted(Instructions):
    """A procedure in the graph around it.

    Parameters
    ----------
    graph : Graph
    kernel : Procedure
    operands, results : sequences of Value
    """

    def __init__(
        self, graph: Graph, kernel: Procedure, operands: Sequence[Value], results: Sequence[Value]
    ) -> None:
        self.kernel, self.constants = kernel, graph.constants
        self.wide = wide_loops(kernel, graph.constants)
        # The sizes of arrays and stacks that have an element for each lane.
        self.apart: dict[s.Storage | s.Stack, int] = {}
        for wide in self.wide.values():
            self.apart.update(wide.sizes())
        self.memory: dict[s.Storage | s.Stack, tuple[Memory, int]] = {}
        for buffer, v in zip(kernel.inputs, operands, strict=True):
            self.memory[buffer] = graph.place(graph.broadcast(v, v.shape))
        stage = graph.impure(max([m.stage for m, _ in self.memory.values()], default=0))
        self.zeros: list[s.Storage] = []
        for buffer, v in zip(kernel.outputs, results, strict=True):
            memory = graph.fresh(v)
            memory.stage = stage
            self.memory[buffer] = memory, 0
            self.zeros.append(buffer)
        for x in s.variables(kernel.body):
            if x in self.memory or isinstance(x, s.Cell):
                continue
            if x in self.apart:
                self.memory[x] = graph.scratch(WIDTH * max(self.apart[x], 1)), 0
            elif isinstance(x, s.Stack):
                self.memory[x] = graph.scratch(max(x.capacity, 1)), 0
            else:
                self.memory[x] = graph.scratch(max(s.size_of(x), 1)), 0
                self.zeros.append(x)
        graph.act(stage, self.emit)

    def emit(self, code: Code) -> None:
        self.code, self.b, self.kind = code, code.b, DOUBLE
        code.module.has_statements = True
        self.slots: dict[Any, ir.Value] = {}
        outer = code.memo
        with code.repeated():
            self.addresses = {x: code.address(*place) for x, place in self.memory.items()}
            for x in self.zeros:
                self.fill(s.Fill(x, 0.0))
            self.block(self.kernel.body)
        code.memo = outer

    # --- numbers ---

    def slot(self, x: s.Cell | s.Stack) -> ir.Value:
        """Return where a number lies: a register, once LLVM has seen all of it."""
        if x not in self.slots:
            kind = DOUBLE if isinstance(x, s.Cell) and not x.is_integer else INT
            entry = self.code.entry
            self.slots[x] = place = entry.alloca(kind)
            entry.store(kind(0), place)
        return self.slots[x]

    def number(self, x: s.Number) -> ir.Value:
        if not isinstance(x, s.Cell):
            return DOUBLE(float(x))
        if x.is_integer:
            return self.b.sitofp(self.integer(x), DOUBLE)
        return self.b.load(self.slot(x), typ=DOUBLE)

    def integer(self, x: s.Number) -> ir.Value:
        if not isinstance(x, s.Cell):
            return INT(int(x))
        if x.is_integer:
            return self.b.load(self.slot(x), typ=INT)
        return self.b.fptosi(self.number(x), INT)

    def common_integer(self, x: s.Number) -> ir.Value:
        return self.integer(x)

    def common_slot(self, x: s.Cell | s.Stack) -> ir.Value:
        return self.slot(x)

    def holds(self, x: s.Number) -> ir.Value:
        if isinstance(x, s.Cell) and x.is_integer:
            return self.b.icmp_signed("!=", self.integer(x), INT(0))
        return self.b.fcmp_unordered("!=", self.number(x), DOUBLE(0.0))

    def set(self, x: s.Cell, value: ir.Value) -> None:
        if x.is_integer:
            value = self.b.fptosi(value, INT)
        self.b.store(value, self.slot(x))

    # --- memory ---

    def index(self, i: s.Index) -> ir.Value:
        if not isinstance(i, s.Affine):
            return self.integer(i)
        b, total = self.b, INT(i.constant)
        for cell, n in i.terms:
            x = self.integer(cell)
            total = b.add(x if n == 1 else b.mul(x, INT(n)), total)
        return total

    def place(self, x: s.Load | s.Store | s.AddAt) -> ir.Value:
        """Return the flat index of an element."""
        b, at = self.b, None
        for i, n in zip(x.indices, x.array.shape, strict=True):
            index = self.index(i)
            at = index if at is None else b.add(b.mul(at, INT(n)), index)
        return INT(0) if at is None else at

    def element(self, x: s.Storage | s.Stack, at: ir.Value) -> ir.Value:
        return self.b.gep(self.addresses[x], [at], source_etype=DOUBLE)

    def entry(self, stack: s.Stack, at: ir.Value) -> ir.Value:
        return self.element(stack, at)

    def capacity(self, stack: s.Stack) -> int:
        return stack.capacity

    # --- statements ---

    def line(self, x: Line) -> None:
        code = self.code
        code.memo = {}
        args: dict[int, Any] = {
            id(v): in_registers(v, [self.number(cell)])
            for v, cell in zip(x.program.arguments, x.inputs, strict=True)
        }
        count = len(x.program.outputs)
        graph = Graph(x.program, args, [None] * count, self.constants)
        code.emit(graph)
        result = [code.number(graph.made_of(i).array.item()) for i in range(count)]
        for cell, value in zip(x.outputs, result, strict=False):
            self.set(cell, value)
        for cell, value in zip(x.sums, result[len(x.outputs) :], strict=True):
            if cell.is_integer:
                b = self.b
                b.store(b.add(self.integer(cell), b.fptosi(value, INT)), self.slot(cell))
            else:
                self.set(cell, self.b.fadd(self.number(cell), value, flags=("reassoc",)))

    def load(self, x: s.Load) -> None:
        place = self.element(x.array, self.place(x))
        self.set(x.out, self.b.load(place, typ=DOUBLE))

    def store(self, x: s.Store) -> None:
        at = self.place(x)
        place = self.element(x.array, at)
        if x.log is not None:
            self.pushed(x.log, [self.b.sitofp(at, DOUBLE), self.b.load(place, typ=DOUBLE)])
        self.b.store(self.number(x.value), place)

    def add_at(self, x: s.AddAt) -> None:
        b, place = self.b, self.element(x.array, self.place(x))
        b.store(b.fadd(b.load(place, typ=DOUBLE), self.number(x.value)), place)

    def fill(self, x: s.Fill) -> None:
        size = 8 * s.size_of(x.array)
        if isinstance(x.value, s.Storage):
            self.code.copy(self.addresses[x.array], self.addresses[x.value], size)
        elif x.value == 0.0:
            self.code.fill_zeros([self.memory[x.array]], size)
        elif size:
            value = DOUBLE(x.value)

            def element(i: ir.Value, _: object) -> Sequence[ir.Value]:
                self.b.store(value, self.element(x.array, i))
                return ()

            self.code.over(s.size_of(x.array), [], element)

    def declare(self, x: s.Declare) -> None:
        if isinstance(x.variable, s.Cell):
            self.set(x.variable, DOUBLE(x.variable.unset))
        elif not x.variable.is_temporary:
            self.fill(s.Fill(x.variable, math.nan))

    def loop(self, x: s.For) -> None:
        if x in self.wide:
            Wide(self, x, self.wide[x]).emit()
            return
        b, lower, upper = self.b, self.integer(x.lower), self.integer(x.upper)

        def iteration(i: ir.Value, _: object) -> Sequence[ir.Value]:
            index = b.sub(b.add(lower, upper), i) if x.backwards else i
            b.store(index, self.slot(x.index))
            self.block(x.body)
            return ()

        counted(b, lower, b.add(upper, INT(1)), 1, (), iteration)

    def while_loop(self, x: s.While) -> None:
        def begin() -> ir.Value:
            self.block(x.condition)
            return self.holds(x.holds)

        self.while_true(begin, lambda: self.block(x.body))

    def branch(self, x: s.If) -> None:
        holds = self.holds(x.holds)
        self.either(holds, x.yes, x.no)

    def take_back(self, x: s.Undo) -> None:
        at, value = self.popped(x.log, 2)
        self.b.store(value, self.element(x.array, self.b.fptosi(at, INT)))
