"""Guards: they end a run at a point where the straight line of a program does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.kernel import HERE, Arrays, Kernel, Results, Run
from varmat.programs.ir.program import ArrayLayout, ElsewhereError, Step, Value

if TYPE_CHECKING:
    from varmat.programs.build.builder import Builder
    from varmat.programs.ir.kernel import Module
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


class Guard(Kernel):
    """Ends the run unless all truth values hold."""

    name = "guard"
    is_pure = False
    is_guard = True

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return []

    def evaluate(self, *operands: np.ndarray) -> Results:
        if not np.all(operands[0]):
            raise ElsewhereError
        return ()

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        return partial(self.evaluate, *operands)

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        for holds in graph.nodes(operands[0]).array.flat:
            graph.require(holds)

    def in_jax(self, jax: Module, step: Step) -> Function:
        return jax.numpy.all  # type: ignore[no-any-return]

    def require(self, builder: Builder, x: Value) -> None:
        builder.guard(builder.truth(x))


GUARD = Guard()


class Unless(Guard):
    """A guard that hands over to another function of the same arguments, if not all truth values
    hold.
    """

    def __init__(self, otherwise: Function) -> None:
        self.otherwise = otherwise


@dataclass(frozen=True, repr=False)
class GuardBetween(Guard):
    """Ends the run unless a number lies between two others."""

    low: float
    high: float

    name = "guard_between"

    def settings(self, *operands: Value) -> str:
        return f"{self.low:g} to {self.high:g}"

    def evaluate(self, *operands: np.ndarray) -> Results:
        if not self.low < operands[0] < self.high:
            raise ElsewhereError
        return ()

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        x = memoryview(operands[0])

        def run() -> None:
            if not self.low < x[HERE] < self.high:
                raise ElsewhereError

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        x = graph.nodes(operands[0]).array.item()
        graph.require(
            graph.apply(
                "logical_and",
                graph.apply("greater", x, graph.number(self.low)),
                graph.apply("less", x, graph.number(self.high)),
            )
        )

    def in_jax(self, jax: Module, step: Step) -> Function:
        return lambda x: (x > self.low) & (x < self.high)

    def require(self, builder: Builder, x: Value) -> None:
        builder.guard_between(x, self.low, self.high)
