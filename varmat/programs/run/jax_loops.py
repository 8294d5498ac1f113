"""Loops over time as functions of JAX.

JAX compiles the body of a loop once (`jax.lax.scan`), whatever the number of steps. The way back
is a step of its own, with the contributions to adjoints that were recorded, so
JAX differentiates nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from varmat.programs.ir.program import Shape, Step
from varmat.programs.kernels.scans import Sizes

# JAX, which is imported only when it is used, its arrays, and a program as
# `varmat.programs.run.jax.translated` returns it: a function of the arguments, which returns the
# outputs and whether all guards hold.
Module: TypeAlias = Any
Array: TypeAlias = Any
Run: TypeAlias = Callable[..., tuple[list[Array], Array]]
Rule: TypeAlias = Callable[..., tuple[Array, ...]]


def _leaves(shapes: Sequence[Shape], numbers: Array) -> list[Array]:
    """The leaves that lie one after the other in a vector."""
    ends = np.cumsum([0, *map(np.prod, shapes)]).astype(int)
    return [
        numbers[at:end].reshape(shape)
        for at, end, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
    ]


class Scan:
    """A loop over time, forward and backwards, as `varmat.programs.kernels.scans` describes it.

    Parameters
    ----------
    jax : module
    sizes : Sizes
    run : callable
        The program of a step. Its arguments are leaves: carried, of the row, shared and, backwards,
        the adjoints of what is carried on and of what the step makes; then numbers computed before.
    used : list of int, optional
        Which of these arguments the program takes; by default all.
    """

    def __init__(self, jax: Module, sizes: Sizes, run: Run, used: list[int] | None = None) -> None:
        self.jax, self.sizes, self.run, self.used = jax, sizes, run, used

    def _step(self, *arguments: Array) -> tuple[Array, Array]:
        """The results of a step as one vector, and whether its guards hold."""
        taken = arguments if self.used is None else [arguments[i] for i in self.used]
        (zero, *found), holds = self.run(*taken)
        jnp = self.jax.numpy
        return jnp.concatenate([jnp.zeros(0), *map(jnp.ravel, found)]), holds & (zero == 0.0)

    def forward(self, start: Array, rows: Array, shared: Array, before: Array) -> tuple[Array, ...]:
        """The history, and a number that is nan if a step failed."""
        jnp, n = self.jax.numpy, self.sizes.n
        carried, of_row, of_all, _ = self.sizes.shapes
        common = _leaves(of_all, shared)

        def step(carry: Array, x: Any) -> tuple[Array, Any]:
            row, numbers = x
            found, holds = self._step(
                *_leaves(carried, carry), *_leaves(of_row, row), *common, *numbers
            )
            return found[:n], (found, holds)

        _, (made, holds) = self.jax.lax.scan(step, start, (rows, before.T))
        width = self.sizes.width
        made = jnp.pad(made, ((0, 0), (0, width - made.shape[1])))  # a split loop makes the rest
        first = jnp.pad(start, (0, width - n))
        return jnp.concatenate([first[None], made]), jnp.where(jnp.all(holds), 0.0, jnp.nan)

    def backward(
        self, history: Array, rows: Array, shared: Array, g: Array, before: Array
    ) -> tuple[Array, ...]:
        """The adjoints of the history, what the steps contribute to those of rows and of what is
        shared, row by row, and a number that is nan if a step failed.
        """
        jnp, n = self.jax.numpy, self.sizes.n
        carried, of_row, of_all, made = self.sizes.shapes
        common = _leaves(of_all, shared)

        def step(adjoint: Array, x: Any) -> tuple[Array, Any]:
            point, row, of_made, of_point, numbers = x
            weights = [*_leaves(carried, adjoint), *_leaves(made, of_made)]
            found, holds = self._step(
                *_leaves(carried, point), *_leaves(of_row, row), *common, *weights, *numbers
            )
            adjoint = of_point + found[:n]
            return adjoint, (adjoint, found[n:], holds)

        _, (adjoints, rest, holds) = self.jax.lax.scan(
            step, g[-1, :n], (history[:-1, :n], rows, g[1:, n:], g[:-1, :n], before.T), reverse=True
        )
        return g.at[:-1, :n].set(adjoints), rest, jnp.where(jnp.all(holds), 0.0, jnp.nan)


def scan(jax: Module, sizes: Sizes, in_rows: bool | None, run: Run) -> Rule:
    """`varmat.programs.kernels.scans.Loop`."""
    loop, jnp = Scan(jax, sizes, run), jax.numpy

    def rule(step: Step, *operands: Array) -> tuple[Array, ...]:
        work = jnp.zeros(step.results[-1].shape)
        operands = *operands, jnp.zeros((0, operands[1].shape[0]))  # nothing is computed before
        if in_rows is None:
            return *loop.forward(*operands), work
        adjoints, rest, flag = loop.backward(*operands)
        of_rows, of_shared = rest[:, : rest.shape[1] - sizes.m], rest[:, rest.shape[1] - sizes.m :]
        whole = jnp.concatenate([jnp.ravel(adjoints), jnp.sum(of_shared, axis=0)])
        return whole, of_rows if in_rows else jnp.zeros((0, sizes.q)), flag, work

    return rule


def split_scan(jax: Module, sizes: Sizes, in_rows: bool | None, run: Run, used: list[int]) -> Rule:
    """`kernels.split_scans.SplitLoop`: its last operand holds what the runs need from steps
    before them.
    """
    loop = Scan(jax, sizes, run, used)

    def rule(step: Step, *operands: Array) -> tuple[Array, ...]:
        made, *_, flag = (loop.forward if in_rows is None else loop.backward)(*operands)
        return made, flag, jax.numpy.zeros(step.results[-1].shape)

    return rule
