"""Loops: a program that runs again and again, each time on the carry of the last run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.kernel import Arrays, Kernel, Results, Run
from varmat.programs.ir.program import ArrayLayout, Program, Step, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array as JaxArray

    from varmat.programs.ir.kernel import Module
    from varmat.programs.ir.program import Array, Output
    from varmat.programs.run.graph import Graph
    from varmat.programs.run.numpy import NumpyRunner
    from varmat.typing import Function


class Loop(Kernel):
    """A program that runs again and again.

    The operands of a step are the first carry, the rows and the operands that all runs share, in
    the order of the arguments of the body. Its results are the last carry, the stacked and the
    summed outputs, in the order of the outputs of the body.

    Parameters
    ----------
    body : Program
        Its arguments are the carry, a row of each array of rows, and the shared operands. Its
        outputs are the next carry, and outputs to stack and to sum; with `ends` they are followed
        by a truth value: whether to go on.
    trips : int
        How often it runs; with `ends` at most.
    carried, sliced, stacked : int
        How many values are carried, are rows of an operand, and are stacked. All other arguments
        are shared, and all other outputs are summed.
    backwards : bool
        Whether the runs take the rows from the last to the first. Stacked outputs have the order of
        the rows.
    ends : bool
        Whether the body says when to stop. Such a loop stacks nothing and takes no rows.
    """

    name = "loop"

    def __init__(
        self,
        body: Program,
        trips: int,
        carried: int,
        sliced: int = 0,
        stacked: int = 0,
        *,
        backwards: bool = False,
        ends: bool = False,
    ) -> None:
        self.body, self.trips, self.backwards, self.ends = body, trips, backwards, ends
        self.carried, self.sliced, self.stacked = carried, sliced, stacked
        self.is_native = all(step.kernel.is_native for step in body.steps)
        self.is_pure = all(step.kernel.is_pure for step in body.steps)

    @property
    def bodies(self) -> Sequence[Program]:  # type: ignore[override]
        return (self.body,)

    @property
    def as_loop(self) -> Loop:  # type: ignore[override]
        return self

    @property
    def outputs(self) -> Sequence[Value]:
        """The outputs of the body without the truth value that ends the loop."""
        return self.body.outputs[:-1] if self.ends else self.body.outputs

    def results(self, *operands: Value) -> list[ArrayLayout]:
        stacked = range(self.carried, self.carried + self.stacked)
        return [
            ((self.trips, *v.shape) if i in stacked else v.shape, v.dtype)
            for i, v in enumerate(self.outputs)
        ]

    def settings(self, *operands: Value) -> str:
        return f"{self.trips} times {len(self.body.steps)} steps"

    def evaluate(self, *operands: np.ndarray) -> Results:
        if self.is_native:
            return self._run(partial(interpret, self.body), operands)
        return self._by_numpy(operands)  # quicker: native runs evaluate loops that call Python

    def _by_numpy(self, operands: Sequence[Array]) -> Results:
        return self._runner.lent(lambda body: self._run(lambda *x: body.run(x), operands))

    def bind(self, operands: Arrays, results: Arrays) -> Run:
        def run() -> None:
            for place, x in zip(results, self._by_numpy(operands), strict=True):
                place[...] = x

        return run

    @cached_property
    def _runner(self) -> NumpyRunner:
        """Runs the body; made once, because steps on long arrays are bound at every call."""
        from varmat.programs.run.numpy import NumpyRunner

        return NumpyRunner(self.body)

    def _run(self, body: Callable[..., Sequence[Output]], operands: Sequence[Array]) -> Results:
        n, m = self.carried, self.carried + self.sliced
        now, rows, shared = [*operands[:n]], operands[n:m], operands[m:]
        output = [np.zeros(shape, dtype) for shape, dtype in self.results()]
        stacked, totals = output[n : n + self.stacked], output[n + self.stacked :]
        for t in range(self.trips)[:: -1 if self.backwards else 1]:
            result = body(*now, *(x[t] for x in rows), *shared)
            now = [np.array(x) for x in result[:n]]
            for array, x in zip(stacked, result[n:], strict=False):
                array[t] = x
            for total, x in zip(totals, result[n + self.stacked :], strict=False):
                total += x
            if self.ends and not result[-1]:
                break
        return (*now, *output[n:])

    def code(self, graph: Graph, operands: Sequence[Value], results: Sequence[Value]) -> None:
        from varmat.programs.run.repeat import Repeat

        Repeat(graph, self, operands, results)

    def in_jax(self, jax: Module, step: Step) -> Function:
        """Return the loop as one of JAX; a run that ends makes all that follows nan."""
        from varmat.programs.run.jax import translated

        jnp, body = jax.numpy, translated(jax, self.body)
        n, m, k = self.carried, self.carried + self.sliced, self.carried + self.stacked

        def rule(*operands: JaxArray) -> tuple[JaxArray, ...]:
            shared = operands[m:]
            zeros = [jnp.zeros(v.shape) for v in self.outputs[k:]]

            def trip(now: Any, rows: Sequence[JaxArray]) -> tuple[Any, list[JaxArray]]:
                carried, sums, holds, _ = now
                result, also = body(*carried, *rows, *shared)
                goes_on = result.pop() if self.ends else holds
                sums = [x + y for x, y in zip(sums, result[k:], strict=True)]
                return (result[:n], sums, holds & also, goes_on & also), result[n:k]

            first = ([*operands[:n]], zeros, jnp.array(True), jnp.array(True))
            if self.ends:
                (carried, sums, holds, _), _ = jax.lax.while_loop(
                    lambda now: now[0][3] & (now[1] < self.trips),
                    lambda now: (trip(now[0], [])[0], now[1] + 1),
                    (first, 0),
                )
                stacks: list[JaxArray] = []
            else:
                last, stacks = jax.lax.scan(
                    trip, first, [*operands[n:m]], self.trips, reverse=self.backwards
                )
                carried, sums, holds, _ = last
            return tuple(jnp.where(holds, x, jnp.nan) for x in (*carried, *stacks, *sums))

        return rule
