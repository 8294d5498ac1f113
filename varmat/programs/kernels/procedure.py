"""Procedures: statements over numbers and arrays, as one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir import statements as s
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.kernel import Arrays, Kernel, Results
from varmat.programs.ir.program import FLOAT, ArrayLayout, ElsewhereError, Program, Step, Value

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


@dataclass(eq=False)
class Line(s.Statement):
    """Functions in sequence, as a program from cells to cells, and to terms that are added to
    cells.
    """

    program: Program
    inputs: list[s.Cell]
    outputs: list[s.Cell]
    sums: list[s.Cell]

    @property
    def is_of_numbers(self) -> bool:
        """Whether the steps make numbers only; steps that are alike may have been batched."""
        return not any(v.shape for step in self.program.steps for v in step.results)

    @cached_property
    def functions(self) -> Sequence[Function]:
        """Python of floats, and the same in IEEE arithmetic where that raises; empty for arrays."""
        from varmat.programs.run.emit import function_of_program

        names = [f"x{i}" for i in range(len(self.inputs))]
        return function_of_program(self.program, names, "statements") if self.is_of_numbers else ()


class Procedure(Kernel):
    """Statements that are run on arrays.

    The operands of a step are what `inputs` hold, the results what `outputs` hold at the end, which
    are 0 at the beginning. A run ends where a stack is full.

    Parameters
    ----------
    inputs, outputs : sequence of Storage
    body : sequence of Statement
        Without `Compute` and `Add`, which are in lines.
    """

    name = "procedure"
    is_pure = False
    is_foldable = False

    def __init__(
        self, inputs: Sequence[s.Storage], outputs: Sequence[s.Storage], body: Sequence[s.Statement]
    ) -> None:
        self.inputs, self.outputs, self.body = [*inputs], [*outputs], [*body]
        programs = [x.program for x in s.walk(self.body) if isinstance(x, Line)]
        self.is_native = all(
            step.kernel.is_native for program in programs for step in program.steps
        )

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(x.shape, FLOAT) for x in self.outputs]

    def settings(self, *operands: Value) -> str:
        return f"{sum(1 for _ in s.walk(self.body))} statements"

    def evaluate(self, *operands: np.ndarray) -> Results:
        return self._run(_interpreted, operands)

    def bind(self, operands: Arrays, results: Arrays) -> Callable[[], object]:
        from varmat.programs.run.procedure_text import run_text

        text = self._text

        def run() -> None:
            result = (
                self._run(_computed, operands) if text is None else run_text(self, text, operands)
            )
            for place, x in zip(results, result, strict=True):
                place[...] = x

        return run

    @cached_property
    def _text(self) -> tuple[Function, Function] | None:
        from varmat.programs.run.procedure_text import functions_of

        return functions_of(self)

    def _run(self, line: Function, operands: Arrays) -> Results:
        inputs = dict(zip(self.inputs, operands, strict=True))
        run = Run(inputs | {x: np.zeros(x.shape) for x in self.outputs}, line)
        run.block(self.body)
        return tuple(run.arrays[x] for x in self.outputs)

    def __str__(self) -> str:
        """Print the statements, one in a line; cells without names are numbered."""
        names: dict[object, str] = {}
        return "\n".join(_text(self.body, "", names))

    @property
    def cost(self) -> int:
        """The largest number of statements that run."""
        return _cost(self.body)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        from varmat.programs.run.procedures import Emitted

        Emitted(graph, self, operands, results)

    def in_jax(self, jax: Module, step: Step) -> Function:
        from varmat.programs.run.jax_procedures import Traced

        return Traced(jax, self)


def _interpreted(x: Line, values: Sequence[float]) -> Sequence[float]:
    return [*map(float, interpret(x.program, *values))]


def _computed(x: Line, values: Sequence[float]) -> Sequence[float]:
    if not x.functions:
        return _interpreted(x, values)
    function, exact = x.functions
    try:
        first, others = function(*values)
    except (ArithmeticError, ValueError):
        with np.errstate(all="ignore"):
            first, others = exact(*map(np.float64, values))
    return [float(first), *map(float, others)]


def _text(statements: Sequence[s.Statement], indent: str, names: dict[object, str]) -> list[str]:
    def text(x: object) -> str:
        if isinstance(x, s.Cell) and not x.name:
            return names.setdefault(x, f"v{len(names)}")
        if isinstance(x, s.Stack):
            return names.setdefault(x, f"stack{len(names)}")
        if isinstance(x, s.Affine):
            terms = [text(cell) if n == 1 else f"{n} {text(cell)}" for cell, n in x.terms]
            return " + ".join([*terms, *([str(x.constant)] if x.constant else [])])
        if isinstance(x, Program):
            return f"{len(x.steps)} steps"
        return f"({', '.join(map(text, x))})" if isinstance(x, (list, tuple)) else str(x)

    result: list[str] = []
    for y in statements:
        inner = [*s.bodies(y)]
        parts = (getattr(y, part.name) for part in fields(y))
        shown = [text(x) for x in parts if x not in inner and x is not None]
        result.append(f"{indent}{s.name_of(y)} {', '.join(shown)}")
        for body in inner:
            result += _text(body, f"{indent}    ", names)
    return result


def _cost(statements: Sequence[s.Statement]) -> int:
    return sum(1 + sum(map(_cost, s.bodies(x))) * getattr(x, "most", 1) for x in statements)


class Run:
    """One run of statements: their meaning."""

    def __init__(self, arrays: dict[s.Storage, np.ndarray], line: Function) -> None:
        self.arrays, self._line = arrays, line
        self.cells: dict[s.Cell, float] = {}
        self.stacks: dict[s.Stack, list[float]] = {}

    def block(self, statements: Sequence[s.Statement]) -> None:
        for x in statements:
            getattr(self, s.name_of(x))(x)

    def number(self, x: s.Number) -> float:
        return self.cells.get(x, 0.0) if isinstance(x, s.Cell) else x

    def array(self, x: s.Storage) -> np.ndarray:
        if x not in self.arrays:
            self.arrays[x] = np.zeros(x.shape)
        return self.arrays[x]

    def index(self, indices: s.Indices) -> tuple[int, ...]:
        return tuple(
            int(sum(n * self.number(cell) for cell, n in i.terms)) + i.constant
            if isinstance(i, s.Affine)
            else int(self.number(i))
            for i in indices
        )

    def stack(self, x: s.Stack) -> list[float]:
        return self.stacks.setdefault(x, [])

    def line(self, x: Line) -> None:
        result = self._line(x, [*map(self.number, x.inputs)])
        self.cells.update(zip(x.outputs, result, strict=False))
        for cell, value in zip(x.sums, result[len(x.outputs) :], strict=True):
            self.cells[cell] = self.number(cell) + value

    def load(self, x: s.Load) -> None:
        self.cells[x.out] = float(self.array(x.array)[self.index(x.indices)])

    def store(self, x: s.Store) -> None:
        array, at = self.array(x.array), self.index(x.indices)
        if x.log is not None:
            place = np.ravel_multi_index(at, x.array.shape) if at else 0
            self.stack(x.log).extend((float(place), float(array[at])))
        array[at] = self.number(x.value)

    def add_at(self, x: s.AddAt) -> None:
        self.array(x.array)[self.index(x.indices)] += self.number(x.value)

    def fill(self, x: s.Fill) -> None:
        value = x.value
        self.array(x.array)[...] = self.array(value) if isinstance(value, s.Storage) else value

    def declare(self, x: s.Declare) -> None:
        if isinstance(x.variable, s.Cell):
            self.cells[x.variable] = x.variable.unset
        elif not x.variable.is_temporary:
            self.array(x.variable)[...] = np.nan

    def loop(self, x: s.For) -> None:
        trips = range(int(self.number(x.lower)), int(self.number(x.upper)) + 1)
        for i in trips[::-1] if x.backwards else trips:
            self.cells[x.index] = float(i)
            self.block(x.body)

    def while_loop(self, x: s.While) -> None:
        self.block(x.condition)
        while self.number(x.holds) != 0.0:
            self.block(x.body)
            self.block(x.condition)

    def branch(self, x: s.If) -> None:
        self.block(x.yes if self.number(x.holds) != 0.0 else x.no)

    def end(self, x: s.End) -> None:
        raise ElsewhereError

    def push(self, x: s.Push) -> None:
        self.stack(x.stack).extend(map(self.number, x.cells))

    def pop(self, x: s.Pop) -> None:
        for cell in reversed(x.cells):
            self.cells[cell] = self.stack(x.stack).pop()

    def recall(self, x: s.Recall) -> None:
        first, stack = int(self.number(x.cursor)), self.stack(x.stack)
        self.cells.update(zip(x.cells, stack[first : first + len(x.cells)], strict=True))
        self.cells[x.cursor] = float(first + len(x.cells))

    def release(self, x: s.Release) -> None:
        del self.stack(x.stack)[int(self.number(x.mark)) :]

    def mark(self, x: s.Mark) -> None:
        self.cells[x.out] = float(len(self.stack(x.stack)))

    def undo(self, x: s.Undo) -> None:
        log = self.stack(x.log)
        mark = len(log) - 2 if x.mark is None else self.number(x.mark)
        while len(log) > mark:
            value, place = log.pop(), int(log.pop())
            self.array(x.array).reshape(-1)[place] = value
