"""The stops of solutions of differential equations, as intervals of time that follow each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from varmat.core.dual import value_now
from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.core.variables import data
from varmat.derivatives.structure import map_leaves
from varmat.functions.checks import misfit, outside
from varmat.solvers.initial_values import (
    SolverSettings,
    check_ascending,
    checked_time,
    problem_of,
    stacked,
)
from varmat.solvers.inner import Inner, checked_vector
from varmat.solvers.intervals import ChainThreads, in_sequence, states_at_ends
from varmat.solvers.steppers import crossing
from varmat.solvers.systems import Leaves, System
from varmat.typing import Function, Operand, Result, Shape

# Times, and what happens at them.
Pair: TypeAlias = tuple[Operand, Operand]
Pairs: TypeAlias = tuple[Pair | None, Pair | None]


class Part:
    """The place of an argument in the rows of active or of passive numbers."""

    __slots__ = ("end", "is_active", "shape", "start")

    def __init__(self, is_active: bool, start: int, end: int, shape: Shape) -> None:
        self.is_active, self.start, self.end, self.shape = is_active, start, end, shape


class Arguments:
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

    def part(self, x: Operand, index: np.ndarray) -> Part:
        """Add an array whose row in each interval is that of the index."""
        is_active, shape = is_differentiable(x), np.shape(x)[1:]
        rows = np.reshape(x if is_active else np.asarray(x, np.float64), (np.shape(x)[0], -1))
        self._tables[is_active].append(rows[index])
        start = self._sizes[is_active]
        self._sizes[is_active] = end = start + np.shape(rows)[1]
        return Part(is_active, start, end, shape)

    def table(self, is_active: bool) -> Operand:
        """The rows of all intervals."""
        return np.concatenate(self._tables[is_active], axis=1)

    def inner(self, name: str, f: Function, args: Sequence[object]) -> Inner:
        """The function of a row of active and of a row of passive numbers; `args` are the further
        arguments of `f`, with parts where rows have their numbers.
        """

        def called(t: Operand, y: Operand, active: Operand, passive: Operand) -> Result:
            def read(x: object, _: str) -> object:
                if type(x) is not Part:
                    return x
                row = active if x.is_active else passive
                return np.reshape(row[x.start : x.end], x.shape) if x.shape else row[x.start]

            return f(t, y, *(map_leaves(read, x) for x in args))

        rows = [np.zeros(self._sizes[kind]) for kind in (True, False)]
        return Inner(name, called, rows, with_data=True)


class Stops(NamedTuple):
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


def checked_stops(
    name: str, n: int, t0: Operand, ts: Operand, events: Pair | None, inputs: Pair | None
) -> Stops:
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
    return Stops(times, np.broadcast_to(additions, (moments.size, n)), values)


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


class Order:
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

    def __init__(self, stops: Sequence[Stops]) -> None:
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


class Intervals:
    """The intervals of all subjects, and the system in them.

    Parameters
    ----------
    name : str
        What the user called.
    f : callable
    y0 : Operand, shape (S, n)
    t0 : sequence of Operand
    stops : sequence of Stops
    parts : callable
        Takes a function that adds rows, and the subject of each interval; it returns the further
        arguments of `f`.
    with_inputs : bool
    """

    def __init__(
        self,
        name: str,
        f: Function,
        y0: Operand,
        t0: Sequence[Operand],
        stops: Sequence[Stops],
        parts: Callable[[Callable[..., Part], np.ndarray], list[object]],
        with_inputs: bool,
    ) -> None:
        n, self.order, self._stops = np.shape(y0)[1], Order(stops), stops
        ends = np.concatenate([x for each in stops for x in each.times])[self.order.stop]
        begins = np.concatenate([np.stack(t0), ends])[self.order.begin]
        added = [y0, *(each.additions for each in stops), np.zeros((1, n))]
        rows = Arguments(self.order.subject.size)
        args: list[object] = []
        if with_inputs:
            values = np.concatenate([each.inputs for each in stops])
            args.append(rows.part(values, self.order.inputs))
        args += parts(rows.part, self.order.subject)
        self.system = System(rows.inner(name, f, args), n, passive=1)
        jumps = np.concatenate(added)[self.order.jump]
        self.operands = begins, ends, jumps, rows.table(True), rows.table(False)

    def states(self, how: SolverSettings, threads: ChainThreads | None = None) -> Result:
        """The states at the outputs of all subjects."""
        firsts = self.order.firsts
        if is_differentiable([*self.operands]):
            chained = [*self.operands[:3], *(each.inputs for each in self._stops)]
            in_state = is_differentiable(chained)
            states = states_at_ends(
                *self.operands,
                system=self.system,
                how=how,
                firsts=firsts,
                in_state=in_state,
                threads=threads,
            )
        else:
            solve = in_sequence if threads is None else threads.solve
            states, _ = solve(self.operands, self.system, how, firsts, None)
        return states[self.order.outputs]

    def crossing(self, how: SolverSettings, value: Callable[[float, np.ndarray], float]) -> float:
        """The first time at which a value of the time and the state of one subject crosses zero;
        nan if it does not.
        """
        y = np.zeros(self.system.n)
        for begin, end, jump, active, passive in zip(*self.operands, strict=True):
            y = y + jump
            if begin < end:
                problem = problem_of(self.system, how, Leaves((active, passive)))
                t, y = crossing(how.method, problem, float(begin), y, float(end), value)
                if t is not None:
                    return t
        return np.nan
