"""Branches: one of several programs, chosen when they are run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.kernel import Arrays, Kernel, Results, Run
from varmat.programs.ir.program import ArrayLayout, Program, Step, Value

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Module
    from varmat.programs.run.graph import Graph
    from varmat.typing import Function


class Branch(Kernel):
    """One of several programs of the same arguments, with outputs of the same shapes.

    The operands of a step are the index of the program and the arguments of the programs. An index
    out of range is the first or the last, as in ``jax.lax.switch``; so is nan.

    Parameters
    ----------
    bodies : sequence of Program
    """

    name = "branch"
    is_foldable = False

    def __init__(self, bodies: Sequence[Program]) -> None:
        self.bodies = bodies
        self.is_native = all(step.kernel.is_native for body in bodies for step in body.steps)
        self.is_pure = all(step.kernel.is_pure for body in bodies for step in body.steps)

    def results(self, *operands: Value) -> list[ArrayLayout]:
        return [(v.shape, v.dtype) for v in self.bodies[0].outputs]

    def settings(self, *operands: Value) -> str:
        return " or ".join(f"{len(body.steps)} steps" for body in self.bodies)

    def _chosen(self, index: float) -> int:
        """Return the number of the program for an index."""
        return sum(not index < i for i in range(1, len(self.bodies)))

    def evaluate(self, number: np.ndarray, *operands: np.ndarray) -> Results:  # type: ignore[override]
        return tuple(interpret(self.bodies[self._chosen(float(number))], *operands))

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        from varmat.programs.run.numpy import NumpyRunner

        number, *inputs = operands
        runners = [NumpyRunner(body) for body in self.bodies]

        def run() -> None:
            result = runners[self._chosen(float(number))](inputs)
            for place, x in zip(results, result, strict=True):
                place[...] = x

        return run

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        from varmat.programs.run.choice import Choice

        Choice(graph, self.bodies, self.is_pure, operands, results)

    def in_jax(self, jax: Module, step: Step) -> Function:
        """Return the branch as one of JAX; results of a run that ends are nan."""
        from varmat.programs.run.jax import translated

        jnp, bodies = jax.numpy, [translated(jax, body) for body in self.bodies]

        def rule(number: object, *operands: object) -> tuple[object, ...]:
            index = jnp.sum(~(number < jnp.arange(1, len(bodies))))
            result, holds = jax.lax.switch(index, bodies, *operands)
            return tuple(jnp.where(holds, x, jnp.nan) for x in result)

        return rule
