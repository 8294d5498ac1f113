"""Differential equations with doses, inputs and an end by a condition, of one subject or of
several.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.derivatives.structure import leaves_of, map_leaves
from varmat.functions.checks import check_choice, misfit, outside
from varmat.solvers.implicit import solved_with
from varmat.solvers.initial_values import (
    SolverSettings,
    check_arguments,
    check_limits,
    checked_time,
    most_steps,
    stacked,
)
from varmat.solvers.inner import Inner, checked_vector
from varmat.solvers.intervals import ChainThreads
from varmat.solvers.timelines import ArgumentPart, Intervals, Timed, TimedPairs, checked_stops
from varmat.typing import Function, Operand, Result, array_valued

__all__ = ["solve_ode", "solve_ode_group", "solve_ode_until"]

METHODS = ("rk45", "ckrk", "bdf", "adams")


def _settings(
    name: str, method: str, limits: tuple[float, float, int | None], *ts: Operand
) -> SolverSettings:
    check_choice(name, "method", method, *METHODS)
    check_limits(name, limits)
    most = most_steps(method, max(1, *map(np.size, ts)))
    return SolverSettings(method, *limits[:2], limits[2] or most)


@array_valued
def solve_ode(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    *args: Operand,
    events: Timed | None = None,
    inputs: Timed | None = None,
    method: str = "rk45",
    rel_tol: float = 1e-6,
    abs_tol: float = 1e-6,
    max_num_steps: int | None = None,
) -> Result:
    """Solve an initial value problem, y' = f(t, y, ...), with events and inputs.

    At an event something is added to the state, as a dose is. An input is constant between the
    times at which it changes, as a covariate or the rate of an infusion is.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` returns the rates of change, one for each state; with inputs it is
        ``f(t, y, u, *args)``, where `u` are the inputs at the time. Written in NumPy; all
        variables on which it depends must be among its arguments.
    y0 : array_like, shape (n,)
        Initial state, finite.
    t0 : float or Var
        Initial time, finite.
    ts : array_like, shape (T,)
        Times of the solution: finite, in ascending order, none before `t0`.
    *args
        Further arguments of `f`; finite. Scalars and arrays in them may be variables, to any depth
        of lists, tuples and dicts.
    events : (array_like, array_like), keyword only
        The times of the events, shape (E,), in ascending order and none before `t0`; and what is
        added to the state, shape (E, n), or (n,) if it is the same at every event.
    inputs : (array_like, array_like), keyword only
        The times from which the inputs hold, shape (C,), in ascending order; and the inputs, shape
        (C, ...). The first ones also hold before the first time.
    method : {"rk45", "ckrk", "bdf", "adams"}, keyword only
        As in `ode_rk45` and the other functions of these names.
    rel_tol, abs_tol : float, keyword only
        Tolerances of the error of one step; positive.
    max_num_steps : int, keyword only
        The most steps between two times; by default as many as the function of the method takes.

    Returns
    -------
    ndarray or VarMat, shape (T, n)
        A state for each time. At the time of an event it is the state before the event; at `t0` it
        is `y0`.

    Raises
    ------
    DomainError
        If an argument is outside its domain, or the solver cannot keep to the tolerances or has
        used up its steps.
    ShapeError
        If shapes do not fit.
    TypeError
        If `events` or `inputs` is not a pair.

    Notes
    -----
    All arguments but the settings may be variables. Events and inputs after the last of `ts` have
    no effect. The solver stops at each time and each event and goes on from there. With l the
    adjoint of the state after an event, the derivative in the time of the event is (f before - f
    after) . l, and the derivative in the addition is l [1]_. An infusion is an input that is above
    zero for a while. The other notes of `ode_rk45` hold. In a recording the solution is a loop of
    the program, in which times that are variables may pass each other. The methods "bdf" and
    "adams" start again at each stop, which takes many steps: choose them only where the others
    fail.

    References
    ----------
    .. [1] E. N. Rozenvasser, General sensitivity equations of discontinuous systems, Automation and
       Remote Control 28, 1967.

    Examples
    --------
    Two doses, the second twice as large:

    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> def last(dose, rate):
    ...     events = [0.0, 12.0], np.stack([dose, 2.0 * dose])[:, None]
    ...     return vm.solve_ode(decay, [0.0], 0.0, [12.0, 24.0], rate, events=events)[-1, 0]
    >>> last(50.0, 0.1).round(3).item()
    34.655
    >>> [round(float(g), 3) for g in vm.grad(last, (0, 1))(50.0, 0.1)]
    [0.693, -470.295]
    """
    name = "solve_ode"
    how = _settings(name, method, (rel_tol, abs_tol, max_num_steps), ts)
    return _alone(name, f, y0, t0, ts, events, inputs, args).states(how)


def _alone(
    name: str,
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    events: Timed | None,
    inputs: Timed | None,
    args: Sequence[object],
) -> Intervals:
    """Make the intervals of one subject, with checked arguments."""
    y0 = stacked(y0)
    n = checked_vector(name, "y0", y0).size
    stops = checked_stops(name, n, t0, ts, events, inputs)
    check_arguments(name, leaves_of(args))

    def parts(add: Callable[..., ArgumentPart], subject: np.ndarray) -> list[object]:
        def place(leaf: Operand, _: str) -> object:
            if not is_differentiable(leaf):
                return leaf
            return add(np.reshape(leaf, (1, *np.shape(leaf)))[0 * subject], True)

        return [map_leaves(place, x) for x in args]

    y0 = np.reshape(y0, (1, n))
    return Intervals(name, f, y0, [t0], [stops], parts, inputs is not None)


def solve_ode_until(
    f: Function,
    condition: Function,
    y0: Operand,
    t0: Operand,
    t_max: float,
    *args: Operand,
    events: Timed | None = None,
    inputs: Timed | None = None,
    method: str = "rk45",
    rel_tol: float = 1e-6,
    abs_tol: float = 1e-6,
    max_num_steps: int | None = None,
) -> tuple[Operand, Operand]:
    """Solve an initial value problem until a condition crosses zero.

    Parameters
    ----------
    f : callable
        As in `solve_ode`.
    condition : callable
        ``condition(t, y, *args)`` returns a number. Written in NumPy; all variables on which it
        depends must be among its arguments.
    y0, t0
        As in `solve_ode`.
    t_max : float
        The latest time; above `t0`.
    *args
        Further arguments of `f` and of `condition`; finite.
    events, inputs, method, rel_tol, abs_tol, max_num_steps : keyword only
        As in `solve_ode`.

    Returns
    -------
    t : float or Var
        The first time after `t0` at which the condition changes its sign.
    y : ndarray or VarMat, shape (n,)
        The state at that time.

    Raises
    ------
    DomainError
        If the condition does not change its sign up to `t_max`; by the reverse pass, if its rate of
        change is zero where it does. Otherwise as by `solve_ode`.
    ShapeError, TypeError
        As by `solve_ode`; if the condition is not a number.

    Notes
    -----
    The derivatives of the time follow from the implicit function theorem, see `implicit`: dt = -dg
    / g', where g' is the rate of change of the condition g along the solution. Where g changes its
    sign twice within a step of the solver, both changes are missed. A sign that changes by an event
    does not count. In a recording the time is found by a call of Python at every run.

    References
    ----------
    .. [1] E. Hairer, S. P. Norsett and G. Wanner, Solving Ordinary Differential Equations I, 2nd
       edition, Springer, 1993, section II.6.

    Examples
    --------
    The time at which a concentration falls to a limit, here log(y0 / limit) / rate:

    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate, limit):
    ...     return -rate * y
    >>> def above(t, y, rate, limit):
    ...     return y[0] - limit
    >>> def duration(rate):
    ...     return vm.solve_ode_until(decay, above, [10.0], 0.0, 100.0, rate, 2.0)[0]
    >>> round(duration(0.5), 4), round(vm.gradient(duration, 0.5), 4)
    (3.2189, -6.4377)
    """
    name = "solve_ode_until"
    how = _settings(name, method, (rel_tol, abs_tol, max_num_steps), 0.0)
    if not (checked_time(name, t0) < t_max < np.inf):
        raise outside(name, "t_max", t_max, "be finite and above t0")

    def residual(
        t: Operand, y0: Operand, t0: Operand, pairs: TimedPairs, *args: Operand
    ) -> Operand:
        y = _alone(name, f, y0, t0, np.stack([t]), *pairs, args).states(how)
        return _number(name, condition(t, y[0], *args))

    def find(y0: object, t0: object, pairs: TimedPairs, *args: object) -> float:
        def value(t: float, y: np.ndarray) -> float:
            return float(_number(name, condition(t, y, *args)))

        t = _alone(name, f, y0, t0, [t_max], *pairs, args).crossing(how, value)
        if np.isnan(t):
            raise DomainError(f"{name}: the condition does not cross zero up to t_max, {t_max!r}!")
        return t

    pairs = events, inputs
    t = solved_with(Inner(name, residual, (stacked(y0), t0, pairs, *args)), find)
    y = _alone(name, f, y0, t0, np.stack([t]), *pairs, args).states(how)
    return t, y[0]


def _number(name: str, x: Operand) -> Operand:
    if np.shape(x):
        raise misfit(name, "the condition", np.shape(x), "be a number")
    return x


@array_valued
def solve_ode_group(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Sequence[Operand],
    *args: Operand,
    events: Sequence[Timed | None] | None = None,
    inputs: Sequence[Timed] | None = None,
    method: str = "rk45",
    rel_tol: float = 1e-6,
    abs_tol: float = 1e-6,
    max_num_steps: int | None = None,
    executor: ThreadPoolExecutor | str | None = None,
) -> Result:
    """Solve the initial value problems of a group of subjects, as `solve_ode` does of one.

    Parameters
    ----------
    f : callable
        ``f(t, y, *args)`` or, with inputs, ``f(t, y, u, *args)``: the same for all subjects.
    y0 : array_like, shape (S, n) or (n,)
        Initial states; one holds for all subjects.
    t0 : array_like, shape (S,) or ()
        Initial times; one holds for all subjects.
    ts : sequence of S array_like
        Times of the solution of each subject, as many as it has.
    *args
        Further arguments of `f`. Of an array, `f` takes the row of the subject; a scalar holds for
        all subjects. Both may be variables, to any depth of lists, tuples and dicts.
    events : sequence of S pairs, keyword only
        The events of each subject, as in `solve_ode`; None for a subject without events.
    inputs : sequence of S pairs, keyword only
        The inputs of each subject, as in `solve_ode`.
    method, rel_tol, abs_tol, max_num_steps : keyword only
        As in `solve_ode`.
    executor : ThreadPoolExecutor or "threads", keyword only
        The executor that solves the subjects at the same time, in native code; "threads" is a
        thread for each processor. By default they are solved in sequence.

    Returns
    -------
    ndarray or VarMat, shape (T, n)
        The states of the subjects in sequence, where T is the number of times of all subjects.

    Raises
    ------
    DomainError, ShapeError, TypeError
        As by `solve_ode`; the message has the number of the subject.

    Notes
    -----
    In a recording the group is one loop of the program, whose size does not depend on the number of
    subjects: it is compiled as quickly as the solution of one subject. With an executor a recording
    calls Python, which starts the threads, so leave it out where chains of a sampler run at the
    same time.

    References
    ----------
    * The notes of `solve_ode`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def decay(t, y, rate):
    ...     return -rate * y
    >>> ts, events = [[1.0], [1.0, 2.0]], [([0.0], [10.0]), ([0.0, 1.0], [20.0])]
    >>> rates = np.array([0.5, 0.1])
    >>> vm.solve_ode_group(decay, [0.0], 0.0, ts, rates, events=events).round(2)
    array([[ 6.07],
           [18.1 ],
           [34.47]])
    """
    name, count = "solve_ode_group", len(ts)
    y0 = np.stack([*map(stacked, y0)]) if isinstance(y0, (list, tuple)) else y0
    if np.ndim(y0) not in (1, 2) or (np.ndim(y0) == 2 and len(y0) != count):
        raise misfit(name, "y0", np.shape(y0), f"have a row for each of the {count} subjects")
    y0 = np.broadcast_to(y0, (count, np.shape(y0)[-1]))
    for title, x in (("t0", t0 if np.ndim(t0) else None), ("events", events), ("inputs", inputs)):
        if x is not None and len(x) != count:
            raise misfit(name, title, (len(x),), f"have a row for each of the {count} subjects")
    initial = [t0[s] for s in range(count)] if np.ndim(t0) else [t0] * count
    stops = []
    for s in range(count):
        subject = f"{name}: subject {s}"
        checked_vector(subject, "y0", y0[s])
        own = [x if x is None else x[s] for x in (events, inputs)]
        stops.append(checked_stops(subject, np.shape(y0)[1], initial[s], ts[s], *own))
    check_arguments(name, leaves_of(args))
    how = _settings(name, method, (rel_tol, abs_tol, max_num_steps), *ts)

    def parts(add: Callable[..., ArgumentPart], subject: np.ndarray) -> list[object]:
        def place(leaf: Operand, path: str) -> object:
            is_active = is_differentiable(leaf)
            if not np.ndim(leaf):
                return add(np.reshape(leaf, (1,))[0 * subject], True) if is_active else leaf
            if np.shape(leaf)[0] != count:
                rule = f"have a row for each of the {count} subjects"
                raise misfit(name, "an argument", np.shape(leaf), rule)
            return add((leaf if is_active else np.asarray(leaf, float))[subject], is_active)

        return [map_leaves(place, x) for x in args]

    if not (executor is None or executor == "threads" or isinstance(executor, ThreadPoolExecutor)):
        rule = 'be a ThreadPoolExecutor or "threads"'
        raise TypeError(f"{name}: executor is {executor!r}, but must {rule}!")
    intervals = Intervals(name, f, y0, initial, stops, parts, inputs is not None)
    pool = executor if isinstance(executor, ThreadPoolExecutor) else None
    return intervals.states(how, ChainThreads("serial" if executor is None else pool))
