"""Programs within programs as functions of JAX: loops over time, and initial value problems.

JAX compiles the body of a loop once (`jax.lax.scan`, `jax.lax.while_loop`), whatever the number of
steps. The way back is a step of its own, with the contributions to adjoints that were recorded, so
JAX differentiates nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from varmat.programs.ir.program import Shape, Step
from varmat.programs.kernels.one_step import NativeSteps
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


class OneStep:
    """An initial value problem, with the steps and their control of `compiled._one_step`.

    Parameters
    ----------
    jax : module
    steps : NativeSteps
    run : callable
        The program of the rates.
    """

    def __init__(self, jax: Module, steps: NativeSteps, run: Run) -> None:
        self.jax, self.steps, self.run = jax, steps, run
        self.rtol, self.atol = steps.method.numbers[:2]
        stages = steps.method.stages
        self.table = steps.method.numbers[2:].reshape(stages + 2, stages + 2)

    def __call__(self, step: Step, y0: Array, t0: Array, ts: Array, given: Array) -> Any:
        jax, jnp, n, k = self.jax, self.jax.numpy, self.steps.n, self.steps.k
        units = jnp.ravel(jnp.eye(n)) if self.steps.in_state else jnp.zeros(0)
        y = jnp.concatenate([y0, units, jnp.zeros(n * k - units.size)])

        def rates(t: Array, y: Array) -> tuple[Array, Array]:
            (zero, found), holds = self.run(jnp.concatenate([t[None], y, given]))
            return found, holds & (zero == 0.0)

        def to(now: Any, end: Array) -> tuple[Any, Any]:
            now = jax.lax.while_loop(
                lambda now: (now["t"] < end) & now["holds"],
                lambda now: self._tried(rates, now, end),
                {**now, "count": jnp.zeros(())},
            )
            return now, (now["y"], now["rates"])

        first, holds = rates(t0, y)
        ahead, also = self._first(rates, t0, y, first, ts[0] - t0)
        now = {"t": t0, "y": y, "rates": first, "ahead": ahead, "before": ahead}
        now |= {"rejected": jnp.array(False), "holds": holds & also & (ahead > 0.0)}
        now["count"] = jnp.zeros(())
        now, (states, slopes) = jax.lax.scan(to, now, ts)
        sensitivity = jnp.swapaxes(states[:, n:].reshape(len(ts), k, n), 1, 2)
        slopes = jnp.concatenate([first[None, :n], slopes[:, :n]])
        flag = jnp.where(now["holds"], 0.0, jnp.nan)
        return states[:, :n], sensitivity, slopes, flag, jnp.zeros(step.results[-1].shape)

    def _norm(self, x: Array) -> Array:
        return self.jax.numpy.sqrt(self.jax.numpy.mean(x**2))

    def _first(self, rates: Any, t: Array, y: Array, f: Array, span: Array) -> tuple[Array, Array]:
        """The first step size, as `compiled._first_step` has it."""
        jnp, scale = self.jax.numpy, self.atol + abs(y) * self.rtol
        d0, d1 = self._norm(y / scale), self._norm(f / scale)
        h = jnp.minimum(jnp.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1), span)
        later, holds = rates(t + h, y + h * f)
        d2 = self._norm((later - f) / scale) / h
        most = jnp.maximum(d1, d2)
        far = jnp.where(most <= 1e-15, jnp.maximum(1e-6, h * 1e-3), (0.01 / most) ** 0.2)
        return jnp.minimum(jnp.minimum(100.0 * h, far), span), holds

    def _tried(self, rates: Any, now: dict[str, Array], end: Array) -> dict[str, Array]:
        """After one more trial of a step towards `end`, which may be rejected."""
        jnp, t, y, rejected = self.jax.numpy, now["t"], now["y"], now["rejected"]
        least = 10.0 * (jnp.nextafter(t, jnp.inf) - t)
        before = jnp.where(rejected, now["before"], now["ahead"])
        ahead = jnp.where(rejected, now["ahead"], jnp.maximum(now["ahead"], least))
        count = now["count"] + ~rejected
        holds = now["holds"] & (ahead >= least) & (count <= self.steps.method.most)
        later = jnp.minimum(t + ahead, end)
        h = later - t

        def stage(i: Array, made: Any) -> Any:
            slopes, _, holds = made
            row = table[i]  # its last coefficients, of later stages, are zero
            point = y + h * (row[1:] @ slopes)
            slope, also = rates(t + row[0] * h, point)
            return slopes.at[i].set(slope), point, holds & also

        table = jnp.asarray(self.table)
        slopes = jnp.zeros((len(table) - 1, y.size)).at[0].set(now["rates"])
        slopes, point, holds = self.jax.lax.fori_loop(1, len(table) - 1, stage, (slopes, y, holds))
        scale = self.atol + jnp.maximum(abs(y), abs(point)) * self.rtol
        error = self._norm(table[-1, 1:] @ slopes * h / scale)
        good, factor = error < 1.0, 0.9 * error**-0.2
        larger = jnp.minimum(factor, jnp.where(rejected, 1.0, 10.0))
        ahead = h * jnp.where(good, larger, jnp.where(factor > 0.2, factor, 0.2))
        # A step that was cut short at the end says nothing against the step size before it.
        ahead = jnp.where(good & (later == end), jnp.maximum(before, ahead), ahead)
        return {
            "t": jnp.where(good, later, t), "y": jnp.where(good, point, y),
            "rates": jnp.where(good, slopes[-1], now["rates"]), "ahead": ahead, "before": before,
            "rejected": ~good, "holds": holds, "count": count,
        }  # fmt: skip
