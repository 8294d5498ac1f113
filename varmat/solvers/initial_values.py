"""Solutions of initial value problems: an operation on the initial state, times and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dual import value_now
from varmat.core.errors import DomainError
from varmat.core.operation import Saved, is_differentiable, operation
from varmat.core.variables import VARIABLES, data
from varmat.derivatives.structure import leaves_of, shaped
from varmat.functions.checks import misfit, outside
from varmat.programs.build.symbol import UntraceableError, require
from varmat.solvers.adams import Adams
from varmat.solvers.backward_differentiation import BackwardDifferentiation
from varmat.solvers.equation import Equation
from varmat.solvers.inner import Inner, checked_vector
from varmat.solvers.multistep import Multistep
from varmat.solvers.runge_kutta import RungeKutta
from varmat.solvers.steppers import ONE_STEP, Problem, integrate, one_step
from varmat.solvers.systems import Leaves, System, SystemTangent
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

__all__: list[str] = []

# SciPy and SUNDIALS take no smaller relative tolerance.
SMALLEST = 2.3e-14
# Relative and absolute tolerance, and the most steps from one output time to the next.
Limits: TypeAlias = tuple[float, float, int | None]


class SolverSettings(NamedTuple):
    """How an equation is solved: method and tolerances, forward and backward. With 0 steps,
    `solution` takes `most_steps`.
    """

    method: str
    rtol: float
    atol: float
    max_steps: int
    # Method and tolerances of the adjoint equation; None if sensitivities are integrated instead.
    backward: tuple[str, float, float] | None = None


def check_limits(name: str, limits: Limits) -> None:
    """Refuse tolerances or a number of steps that are not positive and finite."""
    for title, value in zip(("rel_tol", "abs_tol", "max_num_steps"), limits, strict=True):
        if value is not None and not 0.0 < value < np.inf:
            raise outside(name, title, value, "be positive and finite")


def most_steps(method: str, times: int) -> int:
    """The most steps from one output time to the next where the user sets no limit.

    A sampler proposes parameters for which no solver gets to the end. Such a proposal may cost some
    hundred times what a usual one does: tens of steps at the tolerances of the one-step methods,
    and hundreds to thousands at those of the others.
    """
    if method in ONE_STEP:
        return max(10_000 // times, 1_000)
    return max(50_000 // times, 5_000)


def solution(
    name: str,
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    args: Sequence[Operand],
    how: SolverSettings,
) -> Result:
    """The states at the times, shape (T, n); operands and arguments may be variables."""
    y0, ts = stacked(y0), stacked(ts)
    inner = Inner(name, f, args)
    state, start, times = checked_start(name, y0, t0, ts, [*leaves_of(args)])
    if not how.max_steps:
        how = how._replace(max_steps=most_steps(how.method, times.size))
    system = System(inner, state.size)
    if not inner.leaves and not is_differentiable([y0, t0, ts]):
        return integrated(system, how, state, start, times, Leaves(()), False)[0]
    operands = [
        x if is_differentiable(x) else p for x, p in ((y0, state), (t0, start), (ts, times))
    ]
    return ode_solution(
        *operands, *inner.leaves, system=system, how=how, in_state=is_differentiable([y0, t0])
    )


def stacked(x: Operand) -> Operand:
    """A list of variables as a vector."""
    return np.stack(x) if isinstance(x, (list, tuple)) and is_differentiable(x) else x


def checked_start(
    name: str, y0: Operand, t0: Operand, ts: Operand, args: Sequence[Operand], title: str = "y0"
) -> tuple[np.ndarray, float, np.ndarray]:
    """Check the initial state, the initial time and the times, and return their plain values."""
    state, times = checked_vector(name, title, y0), checked_vector(name, "ts", ts)
    start = data(value_now(t0), f"{name}: t0")
    if type(start) is not float:
        raise misfit(name, "t0", np.shape(start), "be a scalar")
    if not np.isfinite(start):
        raise outside(name, "t0", start, "be finite")
    late = np.flatnonzero(np.diff(times) < 0.0)
    if late.size:
        i = int(late[0]) + 1
        raise outside(
            name, f"ts[{i}]", float(times[i]), f"not be below ts[{i - 1}], {float(times[i - 1])!r}"
        )
    if not start < times[0]:
        raise outside(name, "t0", start, f"be less than ts[0], {float(times[0])!r}")
    for x in args:
        values = np.asarray(value_now(x)) if not callable(x) else np.zeros(())
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            found = float(values[~np.isfinite(values)][0])
            raise DomainError(
                f"{name}: an argument of f has an element {found!r}, but must be finite!"
            )
    return state, start, times


def _problem(
    system: System, how: SolverSettings, leaves: Leaves, k: int = 0, in_state: bool = False
) -> Problem:
    """The equation of the state and of its derivatives in `k` directions."""

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        return system.coupled(t, z, leaves, in_state) if k else system.rate(t, z, leaves)

    limits = max(how.rtol, SMALLEST), how.atol, how.max_steps
    slopes = lambda t, z: system.slopes(t, z, leaves, in_state)  # noqa: E731
    return Problem(system.inner.name, rate, slopes, *limits)


@operation(variadic=True)
def ode_solution(
    y0: Plain,
    t0: Plain,
    ts: Plain,
    *leaves: Plain,
    system: System,
    how: SolverSettings,
    in_state: bool,
) -> Plain:
    """The states at the times; `in_state`: whether derivatives in the initial state or time are
    wanted.
    """
    y0, t0, ts = np.asarray(y0), float(t0), np.asarray(ts)
    checked_start(system.inner.name, y0, t0, ts, leaves)  # in a recording they may be other values
    given = Leaves(leaves)
    if how.backward is not None:
        states, between = integrate(
            how.method, _problem(system, how, given), t0, y0, ts, dense=True
        )
        return Saved(np.ascontiguousarray(states), sensitivity=None, between=between)
    states, sensitivity = integrated(system, how, y0, t0, ts, given, in_state)
    return Saved(states, sensitivity=sensitivity, between=None)


def integrated(
    system: System,
    how: SolverSettings,
    y0: np.ndarray,
    t0: float,
    ts: np.ndarray,
    leaves: Leaves,
    in_state: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """The states and their derivatives, of shapes (T, n) and (T, n, k), on plain numbers."""
    n, k, start = system.n, *_start(system.n, y0, leaves.elements.size, in_state)
    problem = _problem(system, how, leaves, k, in_state)
    whole, _ = integrate(how.method, problem, t0, start, ts)
    sensitivity = whole[:, n:].reshape(ts.size, k, n).swapaxes(1, 2)
    return np.ascontiguousarray(whole[:, :n]), np.ascontiguousarray(sensitivity)


def _start(n: int, y0: Operand, given: int, in_state: bool) -> tuple[int, Operand]:
    """The number of directions, and the initial state with its derivatives in them."""
    units = np.eye(n).ravel() if in_state else np.empty(0)
    return n * in_state + given, np.concatenate([y0, units, np.zeros(given * n)])


def _as_loops(
    system: System, how: SolverSettings, k: int, in_state: bool
) -> RungeKutta | Multistep:
    """The method as loops of a program, for the state and its derivatives in `k` directions."""
    rates = system.rates(k, in_state)
    if rates is None:
        raise UntraceableError
    equation = Equation(rates, max(how.rtol, SMALLEST), how.atol, how.max_steps)
    if how.method in ONE_STEP:
        table = one_step(how.method)
        return RungeKutta(equation, table.C, table.A, table.B, table.E)
    if how.backward is not None:
        raise UntraceableError
    if how.method == "adams":
        return Adams(equation)
    slopes = system.slope_program(k, in_state)
    if slopes is None:
        raise UntraceableError
    return BackwardDifferentiation(equation, slopes, system.n)


# Steps of a program: loops. Where they end early, the operation itself says why.
@ode_solution.straight
def _(
    y0: Operand,
    t0: Operand,
    ts: Operand,
    *leaves: Operand,
    system: System,
    how: SolverSettings,
    in_state: bool,
) -> Result:
    n, count, sizes = system.n, np.shape(ts)[0], [*map(np.size, leaves)]
    k, start = _start(n, y0, sum(sizes), in_state)
    method = _as_loops(system, how, k, in_state)
    for x in (y0, t0, ts, *leaves):
        require(np.isfinite(x))
    require(t0 < ts[0])
    require(ts[1:] >= ts[:-1])
    shapes = [np.shape(x) for x in leaves]
    flat = np.concatenate(
        [np.empty(0), *(np.reshape(x, (size,)) for x, size in zip(leaves, sizes, strict=True))]
    )
    whole, slopes, first = method.solve(t0, start, ts, flat)
    sensitivity: Operand = np.swapaxes(np.reshape(whole[:, n:], (count, k, n)), 1, 2)

    def pull(g: Adjoint) -> tuple[Operand, ...]:
        weights = np.reshape(g, (count * n,)) @ np.reshape(sensitivity, (count * n, k))
        starts = np.cumsum([n * in_state, *sizes]).tolist()
        parts = [weights[at : at + size] for at, size in zip(starts, sizes, strict=False)]
        return (
            lambda: weights[:n],
            lambda: -(weights[:n] @ first[:n]),
            lambda: np.sum(g * slopes()[:, :n], axis=1),
            *(
                np.reshape(part, shape) if shape else part[0]
                for part, shape in zip(parts, shapes, strict=True)
            ),
        )

    return whole[:, :n], pull


@ode_solution.reverse
def _(
    g: Adjoint,
    r: Plain,
    y0: Plain,
    t0: Plain,
    ts: Plain,
    *leaves: Plain,
    system: System,
    how: SolverSettings,
    in_state: bool,
    sensitivity: Plain,
    between: Any,  # a function of time, or None
) -> tuple[Adjoint, ...]:
    n, given = system.n, Leaves(leaves)
    if sensitivity is not None:
        weights = np.tensordot(g, sensitivity, 2)
        if not in_state:
            weights = np.concatenate([np.zeros(n), weights])
    else:
        weights = _backwards(g, y0, t0, ts, given, system, how, between)
    of_state, *of_leaves = shaped(weights, [(n,), *map(np.shape, leaves)])

    def in_times() -> np.ndarray:
        return np.array(
            [row @ system.rate(float(t), y, given) for row, t, y in zip(g, ts, r, strict=True)]
        )

    in_start = lambda: -float(of_state @ system.rate(t0, y0, given))  # noqa: E731
    return (of_state, in_start, in_times, *of_leaves)


def _backwards(
    g: np.ndarray,
    y0: np.ndarray,
    t0: float,
    ts: np.ndarray,
    leaves: Leaves,
    system: System,
    how: SolverSettings,
    between: Function,
) -> np.ndarray:
    """The adjoint of the initial state and the gradient in the leaves, by the adjoint equation.

    Cao, Li, Petzold and Serban, SIAM J. Sci. Comput. 24, 2003.
    """
    n, inner = system.n, system.inner
    method, rtol, atol = how.backward  # type: ignore[misc]
    size = n + sum(map(np.size, leaves))

    def rate(t: float, w: np.ndarray) -> np.ndarray:
        value, pullback = inner.pullback((t, between(t)), leaves)
        weights = w[:n] if isinstance(value, np.ndarray) else type(value)(w[:n].tolist())
        _, *parts = pullback(weights)
        return -np.concatenate([np.ravel(part) for part in parts])

    def jacobian(t: float, w: np.ndarray) -> np.ndarray:
        matrix = np.zeros((1, size, size))
        matrix[0, :n, :n] = -system.jacobian(t, between(t), leaves).T
        return matrix

    problem = Problem(inner.name, rate, jacobian, max(rtol, SMALLEST), atol, how.max_steps)
    w = np.zeros(size)
    for i in range(len(ts) - 1, -1, -1):
        w[:n] += g[i]
        end = ts[i - 1] if i else t0
        if end != ts[i]:
            w = np.array(integrate(method, problem, float(ts[i]), w, np.array([end]))[0][0])
    return w


@ode_solution.tangent
def _(
    r: Operand,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    *leaves: Operand,
    system: System,
    how: SolverSettings,
    in_state: bool,
    sensitivity: Plain,
) -> tuple[Linear, ...]:
    inner, n = system.inner, system.n
    ready = sensitivity is not None and not any(
        type(x) in VARIABLES or isinstance(x, ArrayMethods) for x in (y0, t0, ts, *leaves)
    )

    def rate(t: Operand, y: Operand) -> Result:
        return system.checked(inner((t, y), leaves))

    def along(i: int | None, start: Operand, t: Operand) -> Result:
        """The derivative along the initial state (None) or leaf `i`, by a larger equation."""
        states = solution(
            inner.name,
            SystemTangent(system, i),
            np.concatenate([y0, start]),
            t0,
            ts,
            [list(leaves), t],
            how,
        )
        return states[:, n:]

    def in_state_of(t: Operand) -> Result:
        return (
            np.tensordot(sensitivity[:, :, :n], t, (2, 0))
            if ready and in_state
            else along(None, t, 0.0)
        )

    def in_leaf(i: int, t: Operand) -> Result:
        if not ready:
            return along(i, np.zeros(n), t)
        first = n * in_state + sum(map(np.size, leaves[:i]))
        return np.tensordot(
            sensitivity[:, :, first : first + np.size(leaves[i])], np.ravel(t), (2, 0)
        )

    def in_times(t: Operand) -> Result:
        return np.stack([rate(ts[i], r[i]) * t[i] for i in range(np.size(ts))])

    return (
        in_state_of,
        lambda t: in_state_of(-t * rate(t0, y0)),
        in_times,
        *(partial(in_leaf, i) for i in range(len(leaves))),
    )
