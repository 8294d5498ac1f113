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
from varmat.programs.build.symbol import UntraceableError, is_symbol, require
from varmat.programs.record.conditions import as_number
from varmat.solvers.backward_differentiation import BackwardDifferentiation
from varmat.solvers.equation import Equation
from varmat.solvers.inner import Inner, checked_vector
from varmat.solvers.multistep import Multistep
from varmat.solvers.runge_kutta import RungeKutta
from varmat.solvers.steppers import ONE_STEP, Problem, integrate, one_step
from varmat.solvers.systems import Leaves, System, SystemTangent
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Thunk

# SciPy and SUNDIALS take no smaller relative tolerance.
SMALLEST = 2.3e-14
# The most steps of rates that are written out for each stage.
FEW_STEPS = 100
# Relative and absolute tolerance, and the most steps from one output time to the next.
Limits: TypeAlias = tuple[float, float, int | None]


class SolverSettings(NamedTuple):
    """The settings of a solver: method and tolerances, forward and backward. With 0 steps,
    `solution` takes `most_steps`.
    """

    method: str
    rtol: float
    atol: float
    max_steps: int
    # Method and tolerances of the adjoint equation; None if sensitivities are integrated instead.
    backward: tuple[str, float, float] | None = None


def check_limits(name: str, limits: Limits) -> None:
    """Raise for tolerances or a number of steps that are not positive and finite."""
    for title, value in zip(("rel_tol", "abs_tol", "max_num_steps"), limits, strict=True):
        if value is not None and not 0.0 < value < np.inf:
            raise outside(name, title, value, "be positive and finite")


def most_steps(method: str, times: int) -> int:
    """Return the most steps from one output time to the next where the user sets no limit.

    A sampler proposes parameters for which no solver gets to the end. Such a proposal may cost some
    hundred times as much as usual: tens of steps at the tolerances of the one-step methods, and
    hundreds to thousands for the others.
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
    """Compute the states at the times, shape (T, n); operands and arguments may be variables."""
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
    """Make a list of variables a vector."""
    return np.stack(x) if isinstance(x, (list, tuple)) and is_differentiable(x) else x


def checked_start(
    name: str, y0: object, t0: object, ts: object, args: Sequence[object], title: str = "y0"
) -> tuple[np.ndarray, float, np.ndarray]:
    """Check the initial state, the initial time and the times, and return their plain values."""
    state, times = checked_vector(name, title, y0), checked_vector(name, "ts", ts)
    start = checked_time(name, t0)
    check_ascending(name, "ts", times)
    if not start < times[0]:
        raise outside(name, "t0", start, f"be less than ts[0], {float(times[0])!r}")
    check_arguments(name, args)
    return state, start, times


def check_ascending(name: str, title: str, times: np.ndarray) -> None:
    """Raise if a time is below the time before it."""
    decreasing = np.flatnonzero(np.diff(times) < 0.0)
    if decreasing.size:
        i = int(decreasing[0]) + 1
        raise outside(
            name,
            f"{title}[{i}]",
            float(times[i]),
            f"not be below {title}[{i - 1}], {float(times[i - 1])!r}",
        )


def checked_time(name: str, t0: object) -> float:
    """Return the plain value of the initial time."""
    start: float = data(value_now(t0), f"{name}: t0")
    if type(start) is not float:
        raise misfit(name, "t0", np.shape(start), "be a scalar")
    if not np.isfinite(start):
        raise outside(name, "t0", start, "be finite")
    return start


def check_arguments(name: str, args: Sequence[object]) -> None:
    """Raise for arguments of the right-hand side that are not finite."""
    for x in args:
        values = np.asarray(value_now(as_number(x))) if not callable(x) else np.zeros(())
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            result = float(values[~np.isfinite(values)][0])
            raise DomainError(
                f"{name}: an argument of f has an element {result!r}, but must be finite!"
            )


def problem_of(
    system: System, how: SolverSettings, leaves: Leaves, k: int = 0, in_state: bool = False
) -> Problem:
    """Make the equation of the state and of its derivatives in `k` directions."""

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
    """Compute the states at the times; `in_state`: whether derivatives in the initial state or time
    are wanted.
    """
    if any(map(is_symbol, (y0, t0, ts, *leaves))):
        return _by_loops(y0, t0, ts, leaves, system, how, in_state)
    y0, t0, ts = np.asarray(y0), float(t0), np.asarray(ts)
    checked_start(system.inner.name, y0, t0, ts, leaves)  # in a recording they may be other values
    parameters, between, sensitivity = Leaves(leaves), None, None
    if how.backward is not None:
        states, between = integrate(
            how.method, problem_of(system, how, parameters), t0, y0, ts, dense=True
        )
        states = np.ascontiguousarray(states)
    else:
        states, sensitivity = integrated(system, how, y0, t0, ts, parameters, in_state)

    def rates() -> np.ndarray:
        return np.array(
            [system.rate(t, y, parameters) for t, y in zip(ts.tolist(), states, strict=True)]
        )

    first = lambda: system.rate(t0, y0, parameters)  # noqa: E731
    return Saved(states, sensitivity=sensitivity, between=between, first=first, rates=rates)


def integrated(
    system: System,
    how: SolverSettings,
    y0: np.ndarray,
    t0: float,
    ts: np.ndarray,
    leaves: Leaves,
    in_state: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the states and their derivatives, shapes (T, n) and (T, n, k), on plain numbers."""
    n, k, start = system.n, *start_of(system.n, y0, leaves.elements.size, in_state)
    problem = problem_of(system, how, leaves, k, in_state)
    states, _ = integrate(how.method, problem, t0, start, ts)
    sensitivity = states[:, n:].reshape(ts.size, k, n).swapaxes(1, 2)
    return np.ascontiguousarray(states[:, :n]), np.ascontiguousarray(sensitivity)


def start_of(n: int, y0: Operand, count: int, in_state: bool) -> tuple[int, Operand]:
    """Return the number of directions, and the initial state with its derivatives in them."""
    units = np.eye(n).ravel() if in_state else np.empty(0)
    return n * in_state + count, np.concatenate([y0, units, np.zeros(count * n)])


def as_loops(
    system: System, how: SolverSettings, k: int, in_state: bool, unrolled: bool = False
) -> RungeKutta | Multistep:
    """Return the method as loops of a program, for the state and derivatives in `k` directions."""
    rates = system.rates(k, in_state)
    if rates is None:
        raise UntraceableError
    equation = Equation(rates, max(how.rtol, SMALLEST), how.atol, how.max_steps)
    if how.method in ONE_STEP:
        table = one_step(how.method)
        unrolled = unrolled and len(rates.steps) <= FEW_STEPS
        return RungeKutta(equation, table.C, table.A, table.B, table.E, unrolled)
    if how.backward is not None:
        raise UntraceableError
    if how.method == "adams":
        from varmat.solvers.adams import Adams  # NumPy's polynomials take long to import

        return Adams(equation)
    slopes = system.slope_program(k, in_state)
    if slopes is None:
        raise UntraceableError
    return BackwardDifferentiation(equation, slopes, system.n)


def _by_loops(
    y0: Operand,
    t0: Operand,
    ts: Operand,
    leaves: Sequence[Operand],
    system: System,
    how: SolverSettings,
    in_state: bool,
) -> Saved:
    """Solve by loops of a program. Where they end early, the operation says why."""
    n, count = system.n, np.shape(ts)[0]
    k, start = start_of(n, y0, sum(map(np.size, leaves)), in_state)
    method = as_loops(system, how, k, in_state)
    for x in (y0, t0, ts, *leaves):
        require(np.isfinite(x))
    require(t0 < ts[0])
    require(ts[1:] >= ts[:-1])
    flat = np.concatenate([np.empty(0), *(np.reshape(x, (np.size(x),)) for x in leaves)])
    states, slopes, first = method.solve(t0, start, ts, flat)
    sensitivity: Operand = np.swapaxes(np.reshape(states[:, n:], (count, k, n)), 1, 2)
    return Saved(
        states[:, :n],
        sensitivity=sensitivity,
        between=None,
        first=lambda: first[:n],
        rates=lambda: slopes()[:, :n],
    )


@ode_solution.reverse
def ode_solution_reverse(
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
    first: Thunk,
    rates: Thunk,
) -> tuple[Adjoint, ...]:
    shapes, of_state = [(system.n,), *map(np.shape, leaves)], np.zeros(system.n)
    if sensitivity is None:
        weights = _backwards(g, y0, t0, ts, Leaves(leaves), system, how, between)
        of_state, *of_leaves = shaped(weights, shapes)
    else:
        weights = np.reshape(g, (-1,)) @ np.reshape(sensitivity, (np.size(g), -1))
        if in_state:
            of_state, *of_leaves = shaped(weights, shapes)
        else:
            of_leaves = shaped(weights, shapes[1:])

    def in_start() -> Operand:
        return -of_state @ first()

    return (of_state, in_start, lambda: np.sum(g * rates(), axis=1), *of_leaves)


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
    """Compute the adjoint of the initial state and the gradient in the leaves, by the adjoint
    equation.

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
def ode_solution_tangent(
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
        """Differentiate along the initial state (None) or leaf `i`, by a larger equation."""
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
