"""Differential equations with doses and inputs, of one subject or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from varmat.core.dual import value_now
from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.core.variables import data
from varmat.derivatives.structure import leaves_of, map_leaves
from varmat.functions.checks import check_choice, misfit, outside
from varmat.solvers.initial_values import (
    SolverSettings,
    check_arguments,
    check_ascending,
    check_limits,
    checked_time,
    most_steps,
    stacked,
)
from varmat.solvers.inner import Inner, checked_vector
from varmat.solvers.intervals import in_sequence, states_at_ends
from varmat.solvers.systems import System
from varmat.typing import Function, Operand, Result, Shape

__all__ = ["solve_ode", "solve_ode_group"]

# Times, and what happens at them.
Pair: TypeAlias = tuple[Operand, Operand]
METHODS = ("rk45", "ckrk", "bdf", "adams")


class _Part:
    """The place of an argument in the rows of active or of passive numbers."""

    __slots__ = ("end", "is_active", "shape", "start")

    def __init__(self, is_active: bool, start: int, end: int, shape: Shape) -> None:
        self.is_active, self.start, self.end, self.shape = is_active, start, end, shape


class _Arguments:
    """The arguments of the right-hand side in each interval, as rows of numbers.

    Variables are active. Data that differ between intervals are passive.

    Parameters
    ----------
    count : int
        The number of intervals.
    """

    def __init__(self, count: int) -> None:
        none = np.zeros((count, 0))
        self._tables: dict[bool, list[Operand]] = {True: [none], False: [none]}
        self._sizes = {True: 0, False: 0}

    def part(self, x: Operand, index: np.ndarray) -> _Part:
        """Add an array whose row in each interval is that of the index."""
        is_active, shape = is_differentiable(x), np.shape(x)[1:]
        rows = np.reshape(x if is_active else np.asarray(x, np.float64), (np.shape(x)[0], -1))
        self._tables[is_active].append(rows[index])
        start = self._sizes[is_active]
        self._sizes[is_active] = end = start + np.shape(rows)[1]
        return _Part(is_active, start, end, shape)

    def table(self, is_active: bool) -> Operand:
        """The rows of all intervals."""
        return np.concatenate(self._tables[is_active], axis=1)

    def inner(self, name: str, f: Function, args: Sequence[object]) -> Inner:
        """The function of a row of active and of a row of passive numbers; `args` are the further
        arguments of `f`, with parts where rows have their numbers.
        """

        def called(t: Operand, y: Operand, active: Operand, passive: Operand) -> Result:
            def read(x: object, _: str) -> object:
                if type(x) is not _Part:
                    return x
                row = active if x.is_active else passive
                return np.reshape(row[x.start : x.end], x.shape) if x.shape else row[x.start]

            return f(t, y, *(map_leaves(read, x) for x in args))

        rows = [np.zeros(self._sizes[kind]) for kind in (True, False)]
        return Inner(name, called, rows, with_data=True)


class _Stops(NamedTuple):
    """The times at which the solution of a subject stops, and what happens there.

    Attributes
    ----------
    times : list of Operand
        The times of the outputs, of the events, and of the changes of inputs.
    additions : Operand, shape (E, n)
    inputs : Operand, shape (C, ...)
    """

    times: list[Operand]
    additions: Operand
    inputs: Operand


def _stops(
    name: str, n: int, t0: Operand, ts: Operand, events: Pair | None, inputs: Pair | None
) -> _Stops:
    """The stops of a subject, whose arguments are checked."""
    start, ts = checked_time(name, t0), stacked(ts)
    check_ascending(name, "ts", _not_before(name, "ts", checked_vector(name, "ts", ts), start))
    event_times, additions = _pair(name, "events", "(times, additions)", events, np.zeros((0, n)))
    moments = _moments(name, "event_times", event_times)
    _not_before(name, "event_times", moments, start)
    if np.shape(additions) not in ((n,), (moments.size, n)):
        raise misfit(name, "additions", np.shape(additions), f"have shape {(moments.size, n)}")
    change_times, values = _pair(name, "inputs", "(times, values)", inputs, np.zeros(0))
    changes = _moments(name, "input_times", change_times)
    if np.shape(values)[:1] != (changes.size,):
        rule = f"have a row for each of the input_times, {changes.size}"
        raise misfit(name, "values", np.shape(values), rule)
    if inputs is not None and not changes.size:
        raise misfit(name, "values", np.shape(values), "have at least one row")
    for title, x in (("additions", additions), ("values", values)):
        if not np.isfinite(data(value_now(x), f"{name}: {title}")).all():
            raise DomainError(f"{name}: {title} has an element that is not finite!")
    # What comes after the last output has no effect, so it may come at that time.
    times = [ts, np.minimum(event_times, ts[-1]), np.minimum(np.maximum(change_times, t0), ts[-1])]
    return _Stops(times, np.broadcast_to(additions, (moments.size, n)), values)


def _pair(
    name: str, title: str, parts: str, pair: Pair | None, nothing: np.ndarray
) -> tuple[Operand, Operand]:
    """Times and what happens at them."""
    if pair is None:
        return np.zeros(0), nothing
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"{name}: {title} must be a pair {parts}!")
    times, values = (stacked(x) if is_differentiable(x) else np.asarray(x, float) for x in pair)
    return times, values


def _moments(name: str, title: str, times: Operand) -> np.ndarray:
    """The plain values of ascending times, of which there may be none."""
    moments: np.ndarray = checked_vector(name, title, times) if np.size(times) else np.zeros(0)
    check_ascending(name, title, moments)
    return moments


def _not_before(name: str, title: str, times: np.ndarray, start: float) -> np.ndarray:
    if times.size and times[0] < start:
        raise outside(name, f"{title}[0]", float(times[0]), f"not be below t0, {start!r}")
    return times


class _Order:
    """The stops of all subjects as intervals that follow each other.

    Attributes
    ----------
    subject : ndarray
        The subject of each interval.
    firsts : tuple of bool
        Whether an interval is the first one of its subject.
    stop, begin, jump, inputs : ndarray
        For each interval, the place of its end among all times; that of its begin among the initial
        times and the ends; that of its jump among the initial states, the additions, and a zero at
        the end; that of its inputs among those of all subjects.
    outputs : ndarray
        The intervals that end at an output.
    """

    def __init__(self, stops: Sequence[_Stops]) -> None:
        rows: list[Sequence[np.ndarray]] = []
        count, done, events, changes = len(stops), 0, 0, 0
        for s, each in enumerate(stops):
            sizes = [np.size(x) for x in each.times]
            order = np.argsort(np.concatenate([*map(value_now, each.times)]), kind="stable")
            before, numbers = np.append(-1, order[:-1]), done + np.arange(order.size)
            is_event = (before >= sizes[0]) & (before < sizes[0] + sizes[1])
            jump = np.where(is_event, count + events + before - sizes[0], -1)
            changed = np.maximum.accumulate(np.maximum(before - sizes[0] - sizes[1], 0))
            begin = np.append(s, count + numbers[:-1])
            jump[0] = s
            rows.append((
                np.full(order.size, s), before < 0, done + order, begin, jump, changes + changed,
                done + np.argsort(order)[: sizes[0]],
            ))  # fmt: skip
            done, events, changes = done + order.size, events + sizes[1], changes + sizes[2]
        self.subject, firsts, self.stop, self.begin, self.jump, self.inputs, self.outputs = map(
            np.concatenate, zip(*rows, strict=True)
        )
        self.firsts = tuple(firsts.tolist())


def _solved(
    name: str,
    f: Function,
    y0: Operand,
    t0: Sequence[Operand],
    stops: Sequence[_Stops],
    parts: Callable[[Callable[..., _Part], np.ndarray], list[object]],
    with_inputs: bool,
    how: SolverSettings,
) -> Result:
    """The states at the outputs of all subjects.

    `parts` takes a function that adds rows, and the subject of each interval, and returns the
    further arguments of `f`.
    """
    n, order = np.shape(y0)[1], _Order(stops)
    ends = np.concatenate([x for each in stops for x in each.times])[order.stop]
    begins = np.concatenate([np.stack(t0), ends])[order.begin]
    jumps = np.concatenate([y0, *(each.additions for each in stops), np.zeros((1, n))])[order.jump]
    rows = _Arguments(order.subject.size)
    args: list[object] = []
    if with_inputs:
        args.append(rows.part(np.concatenate([each.inputs for each in stops]), order.inputs))
    args += parts(rows.part, order.subject)
    system = System(rows.inner(name, f, args), n, passive=1)
    operands = begins, ends, jumps, rows.table(True), rows.table(False)
    if is_differentiable([*operands]):
        in_state = is_differentiable([*operands[:3], *(each.inputs for each in stops)])
        states = states_at_ends(
            *operands, system=system, how=how, firsts=order.firsts, in_state=in_state
        )
    else:
        states, _ = in_sequence(*operands, system, how, order.firsts, None)
    return states[order.outputs]


def _settings(
    name: str, method: str, limits: tuple[float, float, int | None], times: int
) -> SolverSettings:
    check_choice(name, "method", method, *METHODS)
    check_limits(name, limits)
    return SolverSettings(method, *limits[:2], limits[2] or most_steps(method, times))


def solve_ode(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Operand,
    *args: Operand,
    events: Pair | None = None,
    inputs: Pair | None = None,
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
        ``f(t, y, u, *args)``, where `u` are those that hold at the time. Written in NumPy; all
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
        The most steps between two times; by default those of the function of the method.

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
    after) . l, and that in the addition is l [1]_. An infusion is an input that is above zero for
    a while. The other notes of `ode_rk45` hold. In a recording the solution is a loop of the
    program; a run in which the times are in another order than when it was recorded is evaluated
    as the function is written. The methods "bdf" and "adams" start again at each stop, which takes
    many steps: choose them only where the others fail.

    References
    ----------
    .. [1] E. N. Rozenvasser, General sensitivity equations of discontinuous systems, Automation and
       Remote Control 28, 1967.

    Examples
    --------
    Two doses, of which the second is twice as large:

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
    y0 = stacked(y0)
    n = checked_vector(name, "y0", y0).size
    stops = _stops(name, n, t0, ts, events, inputs)
    check_arguments(name, leaves_of(args))
    how = _settings(name, method, (rel_tol, abs_tol, max_num_steps), np.size(ts))

    def parts(add: Callable[..., _Part], subject: np.ndarray) -> list[object]:
        def place(leaf: Operand, _: str) -> object:
            return (
                add(np.reshape(leaf, (1, *np.shape(leaf))), subject)
                if is_differentiable(leaf)
                else leaf
            )

        return [map_leaves(place, x) for x in args]

    y0 = np.reshape(y0, (1, n))
    return _solved(name, f, y0, [t0], [stops], parts, inputs is not None, how)


def solve_ode_group(
    f: Function,
    y0: Operand,
    t0: Operand,
    ts: Sequence[Operand],
    *args: Operand,
    events: Sequence[Pair | None] | None = None,
    inputs: Sequence[Pair] | None = None,
    method: str = "rk45",
    rel_tol: float = 1e-6,
    abs_tol: float = 1e-6,
    max_num_steps: int | None = None,
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
    subjects: it is compiled as quickly as the solution of one subject.

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
        stops.append(_stops(subject, np.shape(y0)[1], initial[s], ts[s], *own))
    check_arguments(name, leaves_of(args))
    how = _settings(name, method, (rel_tol, abs_tol, max_num_steps), max(map(np.size, ts)))

    def parts(add: Callable[..., _Part], subject: np.ndarray) -> list[object]:
        def place(leaf: Operand, path: str) -> object:
            if not np.ndim(leaf):
                return add(np.reshape(leaf, (1,)), 0 * subject) if is_differentiable(leaf) else leaf
            if np.shape(leaf)[0] != count:
                raise misfit(
                    name,
                    "an argument",
                    np.shape(leaf),
                    f"have a row for each of the {count} subjects",
                )
            return add(leaf, subject)

        return [map_leaves(place, x) for x in args]

    return _solved(name, f, y0, initial, stops, parts, inputs is not None, how)
