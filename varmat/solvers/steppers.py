"""Integrators of differential equations on plain arrays: from SciPy, and from SUNDIALS if
installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.errors import DomainError
from varmat.solvers import sundials
from varmat.typing import Operand, Result

# The methods whose steps end at the output times.
ONE_STEP = ("rk45", "ckrk")
Rate = Callable[[float, np.ndarray], np.ndarray]
# Why a solver stopped.
USED_UP_STEPS = "the steps that it may take are used up"
TOO_SMALL_STEP = "the next step would be too small for the time to change"


class Problem(NamedTuple):
    """An initial value problem, with the tolerances and the most steps of its integration.

    Attributes
    ----------
    name : str
        The name of the function that the user called.
    rate : callable
        The derivative of the state with respect to time.
    slopes : callable
        Derivatives of the rates with respect to the first of several equal parts of the state, an
        array of shape (parts, n, n). The rates of every other part also depend on that part, as
        the rates of the first part on it.
    rtol, atol : float
    max_steps : int
        The most steps from one output time to the next.
    """

    name: str
    rate: Rate
    slopes: Callable[[float, np.ndarray], np.ndarray]
    rtol: float
    atol: float
    max_steps: int


def integrate(
    method: str, problem: Problem, t0: float, z: np.ndarray, times: np.ndarray, dense: bool = False
) -> tuple[Operand, Operand]:
    """Compute the states at the times and, if `dense`, the state as a function of time.

    Parameters
    ----------
    method : {"rk45", "ckrk", "bdf", "adams"}
    problem : Problem
    t0 : float
    z : ndarray, shape (n,)
    times : ndarray, shape (T,)
        In order, all on one side of `t0`.
    dense : bool

    Returns
    -------
    states : ndarray, shape (T, n)
    between : callable or None
    """
    with np.errstate(all="ignore"):
        if not np.isfinite(problem.rate(t0, z)).all():
            raise stopped(problem.name, t0, 0, "the rates of change are not finite")
    if method in ONE_STEP:
        return _by_one_step(method, problem, t0, z, times), None
    # Forward in time, programs take the steps of SciPy's BDF: see
    # `varmat.solvers.backward_differentiation`.
    by_sundials = not dense and (method == "adams" or times[0] < t0)
    if by_sundials and sundials.has_sundials():
        return _by_sundials(method, problem, t0, z, times), None
    try:
        return _by_scipy(method, problem, t0, z, times, dense)
    except DomainError as error:
        # Close to rounding errors SUNDIALS goes on for longer, as at jumps of relaxation
        # oscillators with tolerances of 1e-10.
        if TOO_SMALL_STEP not in str(error) or dense or not sundials.has_sundials():
            raise
        with suppress(DomainError):
            return _by_sundials(method, problem, t0, z, times), None
        raise


def _by_one_step(
    method: str, problem: Problem, t0: float, z: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Take steps that end at the output times, as in `varmat.solvers.runge_kutta`."""
    states, ahead, common = [], 0.0, {"rtol": problem.rtol, "atol": problem.atol}
    for time in times.tolist():
        if time != t0:
            settings = {"first_step": min(ahead, abs(time - t0))} if ahead else {}
            solver = _started(problem, one_step(method), t0, z, time, **common, **settings)
            solver.h_abs = ahead or solver.h_abs
            steps = 0
            while solver.status == "running":
                before = solver.h_abs
                _go(problem, solver, steps)
                steps += 1
            # The last step was cut short at the output time: go on with the size before it.
            ahead = max(before, solver.h_abs)
            t0, z = time, solver.y
        states.append(z)
    return np.array(states)


def _by_scipy(
    method: str, problem: Problem, t0: float, z: np.ndarray, times: np.ndarray, dense: bool
) -> tuple[Operand, Operand]:
    """Integrate by multistep methods: they interpolate at the output times, where a restart would
    cost their order.
    """
    from scipy.integrate import OdeSolution

    if times[-1] == t0:
        return np.repeat(z[None], len(times), axis=0), lambda t: z
    solver = _multistep(method, problem, t0, z, times[-1])
    states, ends, parts = [], [t0], []
    for time in times.tolist():
        steps = 0
        while (solver.t - time) * solver.direction < 0.0:
            _go(problem, solver, steps)
            steps += 1
            if dense:
                parts.append(solver.dense_output())
                ends.append(solver.t)
        states.append(
            z if time == t0 else solver.y if time == solver.t else solver.dense_output()(time)
        )
    return np.array(states), OdeSolution(ends, parts) if dense else None


def crossing(
    method: str,
    problem: Problem,
    t0: float,
    z: np.ndarray,
    end: float,
    value: Callable[[float, np.ndarray], float],
) -> tuple[float | None, np.ndarray]:
    """Find the first time at which a value of time and state crosses zero, or None; and the last
    state.

    The sign is checked after each step.
    """
    if method in ONE_STEP:
        tolerances = {"rtol": problem.rtol, "atol": problem.atol}
        solver = _started(problem, one_step(method), t0, z, end, **tolerances)
    else:
        solver = _multistep(method, problem, t0, z, end)
    t, before, steps = t0, np.sign(value(t0, z)), 0
    while solver.status == "running":
        _go(problem, solver, steps)
        after = np.sign(value(solver.t, solver.y))
        if before * after < 0.0 or (after == 0.0 and before != 0.0):
            return _zero(method, problem, t, z, solver.t, value, before), solver.y
        t, z, before, steps = solver.t, np.array(solver.y), after, steps + 1
    return None, z


def _zero(
    method: str,
    problem: Problem,
    t0: float,
    z: np.ndarray,
    end: float,
    value: Callable[[float, np.ndarray], float],
    sign: float,
) -> float:
    """Find the time within a step at which a value that has a sign at first becomes zero. It solves
    over parts of the step, because interpolation would be less accurate than the step.
    """
    from scipy.optimize import brentq

    def at(t: float) -> float:
        states = integrate(method, problem, t0, z, np.array([t]))[0] if t != t0 else [z]
        return value(t, states[0])

    # At the end it may still have the first sign, because it is zero up to the tolerances.
    return float(brentq(at, t0, end, xtol=1e-14)) if sign * at(end) < 0.0 else end


def _started(
    problem: Problem, method: Any, t0: float, z: np.ndarray, end: float, **settings: Any
) -> Result:
    """Start a solver of SciPy; with a first step that is not finite it would loop for ever."""
    with np.errstate(all="ignore"):
        solver = method(problem.rate, t0, z, end, **settings)
    if not np.isfinite(getattr(solver, "h_abs", 0.0)):  # LSODA has none yet
        raise stopped(problem.name, t0, 0, "the first step is not finite")
    return solver


def _go(problem: Problem, solver: Any, steps: int) -> None:
    """Take a step, unless `steps` are all that the solver may take."""
    with np.errstate(all="ignore"):
        message = solver.step() if steps < problem.max_steps else USED_UP_STEPS
    if message == getattr(solver, "TOO_SMALL_STEP", ""):
        message = TOO_SMALL_STEP
    if message is None and not np.isfinite(solver.y).all():  # LSODA does not report this
        message = "the state is not finite"
    if message is not None:
        raise stopped(problem.name, solver.t, steps, message)


def stopped(name: str, t: float, effort: int | str, why: str) -> DomainError:
    """Return the error of a solver that stopped after some steps, or after what `effort` says."""
    after = f"{effort} steps towards the next output time" if type(effort) is int else effort
    return DomainError(f"{name}: the solver stopped at t = {t:.6g} after {after}: {why}")


class Progress:
    """Ends an integration whose time stands still.

    The multistep methods go on with steps that are too small for the time to change, until all
    their steps are used up.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    t : float
        The initial time.
    """

    # Evaluations of the rates in a row within `CLOSE` spacings of numbers: a step that is rejected
    # ten times takes some tens.
    MOST, CLOSE = 200, 10.0

    def __init__(self, name: str, t: float) -> None:
        self.name, self.t, self.calls, self.last = name, t, 0, 0

    def __call__(self, t: float) -> None:
        self.calls += 1
        if abs(t - self.t) > self.CLOSE * math.ulp(t):
            self.t, self.last = t, self.calls
        elif self.calls - self.last > self.MOST:
            raise stopped(self.name, t, f"{self.calls} evaluations", TOO_SMALL_STEP)


def _multistep(method: str, problem: Problem, t0: float, z: np.ndarray, end: float) -> Result:
    from scipy import integrate as scipy_integrate

    common: dict[str, Any] = {"rtol": problem.rtol, "atol": problem.atol}
    if method == "adams":
        moves = Progress(problem.name, t0)

        def rate(t: float, y: np.ndarray) -> np.ndarray:
            moves(float(t))  # LSODA changes the array in place
            return problem.rate(t, y)

        stepped = problem._replace(rate=rate)
        return _started(stepped, scipy_integrate.LSODA, t0, z, end, **common)
    return _started(
        problem, scipy_integrate.BDF, t0, z, end, jac=partial(_jacobian, problem), **common
    )


def _jacobian(problem: Problem, t: float, z: np.ndarray) -> Result:
    """Compute the Jacobian of the rates, which is sparse if the state has several parts.

    It is used at a prediction, where it may not be finite: a smaller step does without.
    """
    from scipy.sparse import coo_array

    slopes = problem.slopes(t, z)
    slopes = np.where(np.isfinite(slopes), slopes, 0.0)
    if len(slopes) == 1:
        return slopes[0]
    # The blocks on the diagonal, and the blocks below the first one.
    part, row, column = np.indices(slopes.shape)
    at, same = part * len(slopes[0]), np.broadcast_to(slopes[0], slopes.shape)
    values = np.concatenate([np.ravel(same), np.ravel(slopes[1:])])
    diagonal, below = np.stack([row + at, column + at]), np.stack([row + at, column])[:, 1:]
    indices = np.concatenate([np.reshape(x, (2, -1)) for x in (diagonal, below)], axis=1)
    return coo_array((values, tuple(indices)), shape=(z.size, z.size))


@cache
def one_step(method: str) -> Result:
    """Return SciPy's class for a method in `ONE_STEP`, with its table of coefficients."""
    from scipy.integrate import RK45

    class CashKarp(RK45):  # type: ignore[misc]
        """The method of J. R. Cash and A. H. Karp, ACM Trans. Math. Softw. 16, 1990."""

        C = np.array([0, 1 / 5, 3 / 10, 3 / 5, 1, 7 / 8])
        A = np.array([
            [0, 0, 0, 0, 0],
            [1 / 5, 0, 0, 0, 0],
            [3 / 40, 9 / 40, 0, 0, 0],
            [3 / 10, -9 / 10, 6 / 5, 0, 0],
            [-11 / 54, 5 / 2, -70 / 27, 35 / 27, 0],
            [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
        ])  # fmt: skip
        B = np.array([37 / 378, 0, 250 / 621, 125 / 594, 0, 512 / 1771])
        E = np.array(
            [
                *(
                    B
                    - np.array([2825 / 27648, 0, 18575 / 48384, 13525 / 55296, 277 / 14336, 1 / 4])
                ),
                0.0,
            ]
        )

    return RK45 if method == "rk45" else CashKarp


def _by_sundials(
    method: str, problem: Problem, t0: float, z: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Integrate by the methods of CVODES, of variable order, through scikit-sundae.

    It calls only Python functions, so each call of the rates costs some microseconds even if their
    program runs natively.
    """
    from sksundae.cvode import CVODE

    if (times == t0).all():
        return np.repeat(z[None], len(times), axis=0)
    first, moves = sundials.FirstError(), Progress(problem.name, t0)

    def rate(t: float, y: np.ndarray, rates: np.ndarray) -> None:
        moves(t)
        rates[:] = problem.rate(t, y)

    def jacobian(t: float, y: np.ndarray, rates: np.ndarray, matrix: np.ndarray) -> None:
        result = _jacobian(problem, t, y.copy())
        matrix[:] = result if isinstance(result, np.ndarray) else result.toarray()

    settings = sundials.limits(problem.rtol, problem.atol, problem.max_steps)
    if method == "bdf":
        settings["jacfn"] = first.kept(jacobian)
    else:
        settings["linsolver"] = "gmres"
    name = "BDF" if method == "bdf" else "Adams"
    solver = sundials.instance(CVODE, first.kept(rate), method=name, **settings)
    report, states = sundials.solve(solver, first, np.array([t0, *times.tolist()]), z)
    if states is None:
        raise stopped(problem.name, report.t[-1], f"{report.nfev} evaluations", report.message)
    return states
