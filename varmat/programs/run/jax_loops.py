"""Initial value problems as functions of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from varmat.programs.ir.program import Step
from varmat.programs.kernels.one_step import NativeSteps

# JAX, which is imported only when it is used, its arrays, and a program as
# `varmat.programs.run.jax.translated` returns it: a function of the arguments, which returns the
# outputs and whether all guards hold.
Module: TypeAlias = Any
Array: TypeAlias = Any
Run: TypeAlias = Callable[..., tuple[list[Array], Array]]


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
