"""Differential equations: a sum over the states at all output times, with sensitivities in four
parameters.

JAX takes part with diffrax. It uses the same pair of formulas, or an implicit one of the same order
for stiff equations. The libraries take different steps, so the results agree only within the
tolerances.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np

from workloads.workload import Workload

FAMILY = "equations"
TOLERANCE = 1e-6
MOST_STEPS = 100_000
START = np.array([33.9, 5.9])


def times(count: int) -> np.ndarray:
    return np.arange(1.0, count + 1.0)


def change(stack: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return the rates of change of hares and lynxes."""
    return lambda t, z, theta: stack(
        [(theta[0] - theta[1] * z[1]) * z[0], (-theta[2] + theta[3] * z[0]) * z[1]]
    )


def by_diffrax(stiff: bool, count: int, forward: bool = False) -> Callable[..., Any]:
    """Return value and gradient by diffrax, with its default adjoint or in forward mode."""
    jax, diffrax = (importlib.import_module(name) for name in ("jax", "diffrax"))
    jax.config.update("jax_enable_x64", True)
    term = diffrax.ODETerm(change(jax.numpy.stack))
    solver = diffrax.Kvaerno5() if stiff else diffrax.Dopri5()
    adjoint = diffrax.ForwardMode() if forward else diffrax.RecursiveCheckpointAdjoint()
    control, saved = (
        diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
        diffrax.SaveAt(ts=jax.numpy.asarray(times(count))),
    )

    def total(theta: Any) -> Any:
        solution = diffrax.diffeqsolve(
            term,
            solver,
            0.0,
            float(count),
            None,
            jax.numpy.asarray(START),
            theta,
            saveat=saved,
            adjoint=adjoint,
            stepsize_controller=control,
            max_steps=MOST_STEPS,
        )
        return jax.numpy.sum(solution.ys)

    def pair(theta: Any) -> Any:
        return total(theta), (jax.jacfwd if forward else jax.grad)(total)(theta)

    compiled = jax.jit(pair if forward else jax.value_and_grad(total))

    def gradient(theta: np.ndarray) -> tuple[float, tuple[Any, ...]]:
        value, g = compiled(theta)
        return float(value), (np.asarray(g),)

    return gradient


@dataclass(frozen=True)
class Equation(Workload):
    """A workload that JAX computes with diffrax."""

    def implementation(self, library: str, size: int) -> Any:
        if library != "jax":
            return None
        if importlib.util.find_spec("diffrax") is None:
            from peers import MissingError

            raise MissingError("diffrax is not installed")
        return by_diffrax("bdf" in self.name, size)


def solved(method: str) -> Callable[[Any, int], Callable[..., Any]]:
    def expression(xp: Any, count: int) -> Callable[..., Any]:
        rates, at, solve = change(np.stack), times(count), getattr(xp, f"ode_{method}_tol")
        return lambda theta: np.sum(
            solve(rates, START, 0.0, at, TOLERANCE, TOLERANCE, MOST_STEPS, theta)
        )

    return expression


for method in ("rk45", "bdf"):
    Equation(
        FAMILY,
        f"lotka_volterra_{method}",
        (20,),
        lambda count: (np.array([0.55, 0.028, 0.84, 0.026]),),
        solved(method),
        without=("torch", "autograd"),
        rtol=1e-4,
        stan=lambda count, method=method: (
            f"equation_{method}",
            {"N": count, "ts": times(count), "start": START},
        ),
    )
