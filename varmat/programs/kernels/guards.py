"""Guards: they end a run at a point where the straight line of a program does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.kernel import Arrays, Kernel, Results, Run
from varmat.programs.ir.program import ArrayLayout, ElsewhereError, Step, Value

if TYPE_CHECKING:
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


GUARD = Guard()


class Unless(Guard):
    """A guard that hands over to another function of the same arguments, if not all truth values
    hold.
    """

    def __init__(self, otherwise: Function) -> None:
        self.otherwise = otherwise
