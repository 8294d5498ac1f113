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
Timed: TypeAlias = tuple[Operand, Operand]
TimedPairs: TypeAlias = tuple[Timed | None, Timed | None]


class ArgumentPart:
    """The position of an argument in the rows of active or of passive numbers."""

    __slots__ = ("end", "is_active", "shape", "start")

    def __init__(self, is_active: bool, start: int, end: int, shape: Shape) -> None:
        self.is_active, self.start, self.end, self.shape = is_active, start, end, shape


class IntervalArguments:
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

    def part(self, rows: Operand, is_active: bool) -> ArgumentPart:
        """Add the rows of an argument."""
        shape, start = np.shape(rows)[1:], self._sizes[is_active]
        rows = np.reshape(rows, (len(rows), -1))
        self._tables[is_active].append(rows)
        self._sizes[is_active] = end = start + np.shape(rows)[1]
        return ArgumentPart(is_active, start, end, shape)

    def table(self, is_active: bool) -> Operand:
        """Return the rows of all intervals."""
        return np.concatenate(self._tables[is_active], axis=1)

    def inner(self, name: str, f: Function, args: Sequence[object]) -> Inner:
        """Make the function of a row of active and of a row of passive numbers; `args` are the
        further arguments of `f`, with parts where rows have their numbers.
        """

        def called(t: Operand, y: Operand, active: Operand, passive: Operand) -> Result:
            def read(x: object, _: str) -> object:
                if type(x) is not ArgumentPart:
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
    name: str, n: int, t0: Operand, ts: Operand, events: Timed | None, inputs: Timed | None
) -> Stops:
    """Make the stops of a subject, with checked arguments."""
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
    name: str, title: str, parts: str, pair: Timed | None, nothing: np.ndarray
) -> tuple[Operand, Operand]:
    """Split a pair into times and what happens at them."""
    if pair is None:
        return np.zeros(0), nothing
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"{name}: {title} must be a pair {parts}!")
    times, values = (stacked(x) if is_differentiable(x) else np.asarray(x, float) for x in pair)
    return times, values


def _moments(name: str, title: str, times: Operand) -> np.ndarray:
    """Return the plain values of ascending times, which may be empty."""
    moments: np.ndarray = checked_vector(name, title, times) if np.size(times) else np.zeros(0)
    check_ascending(name, title, moments)
    return moments


def _not_before(name: str, title: str, times: np.ndarray, start: float) -> np.ndarray:
    if times.size and times[0] < start:
        raise outside(name, f"{title}[0]", float(times[0]), f"not be below t0, {start!r}")
    return times


class StopOrder:
    """The stops of all subjects in the order of time: outputs, events and changes of inputs.

    A subject with fewer stops than others has more of them at its last output. If the times are
    data, the order is an index; otherwise it is a matrix of zeros and ones that compares the times,
    so that times may pass each other in a recording.

    Attributes
    ----------
    chain : int
        The number M of stops of each subject.
    ends : Operand, shape (S, M)
        The times in order.
    """

    def __init__(self, stops: Sequence[Stops]) -> None:
        sizes = np.array([[np.size(x) for x in item.times] for item in stops])
        total = np.sum(sizes, axis=1)
        self.chain = int(np.max(total))
        # The first index of each of the three kinds of stops, by subject.
        self._places = np.cumsum(sizes, axis=1) - sizes
        self._sizes, self._numbers = sizes, np.arange(self.chain)
        first = (np.cumsum(total) - total)[:, None]
        last_output = first + sizes[:, :1] - 1
        index = np.where(self._numbers < total[:, None], first + self._numbers, last_output)
        flat = np.concatenate([x for item in stops for x in item.times])
        times = flat[index]
        self._is_data = not is_differentiable(flat)
        # At equal times an output comes first.
        if self._is_data:
            self._order = np.argsort(times, axis=1, kind="stable")
        else:
            earlier, later = times[:, None, :], times[:, :, None]
            ties = np.where(earlier > later, 0.0, np.tri(self.chain, k=-1))
            rank = np.sum(np.where(earlier < later, 1.0, ties), axis=2)
            is_place = rank[:, None, :] == self._numbers[:, None]
            self._order = np.where(is_place, 1.0, 0.0)
        self.ends = self._sorted(times[:, :, None])[:, :, 0]

    def _sorted(self, x: Operand) -> Operand:
        """Sort what the stops of each subject have, of shape (S, M, n)."""
        return (
            np.take_along_axis(x, self._order[:, :, None], 1) if self._is_data else self._order @ x
        )

    def _table(self, kind: int, x: Operand, nothing: np.ndarray) -> Operand:
        """Return the rows that stops of a kind have, for all subjects, with `nothing` for other
        stops; in the order of time.
        """
        sizes = self._sizes[:, kind]
        within = self._numbers - self._places[:, kind, None]
        rows = (np.cumsum(sizes) - sizes)[:, None] + within
        index = np.where((within >= 0) & (within < sizes[:, None]), rows, -1)
        return self._sorted(np.concatenate([x, nothing])[index])

    def jumps(self, y0: Operand, additions: Operand) -> Operand:
        """Return what is added where each interval begins; the initial state is added to zero."""
        added = self._table(1, additions, np.zeros((1, np.shape(y0)[1])))
        return np.concatenate([y0[:, None], added[:, :-1]], axis=1)

    def inputs(self, values: Operand) -> Operand:
        """Return the inputs in each interval, shape (S, M, m)."""
        is_change = self._table(2, np.ones((len(values), 1)), np.zeros((1, 1)))[:, :, 0]
        changes = np.tri(self.chain, k=-1) @ is_change[:, :, None]
        number, sizes = np.maximum(changes - 1.0, 0.0), self._sizes[:, 2]
        first = (np.cumsum(sizes) - sizes)[:, None]
        if self._is_data:
            return values[first + number[:, :, 0].astype(int)]
        most = np.arange(np.max(sizes))
        table = values[first + np.minimum(most, sizes[:, None] - 1)]
        return np.where(number == most, 1.0, 0.0) @ table

    def outputs(self, states: Operand) -> Operand:
        """Select the states at the outputs of all subjects from the states at all stops."""
        is_output = self._numbers < self._sizes[:, :1]
        if self._is_data:
            states = np.take_along_axis(states, np.argsort(self._order, axis=1)[:, :, None], 1)
        else:
            states = np.swapaxes(self._order, 1, 2) @ states
        return states[is_output]


class Intervals:
    """The intervals of all subjects, and the system in them.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    f : callable
    y0 : Operand, shape (S, n)
    t0 : sequence of Operand
    stops : sequence of Stops
    parts : callable
        Takes a function that adds rows and says whether they are active, and the subject of each
        interval; it returns the further arguments of `f`.
    with_inputs : bool
    """

    def __init__(
        self,
        name: str,
        f: Function,
        y0: Operand,
        t0: Sequence[Operand],
        stops: Sequence[Stops],
        parts: Callable[[Callable[..., ArgumentPart], np.ndarray], list[object]],
        with_inputs: bool,
    ) -> None:
        (count, n), self.order, self._stops = np.shape(y0), StopOrder(stops), stops
        size, ends = count * self.order.chain, self.order.ends
        begins = np.concatenate([np.stack(t0)[:, None], ends[:, :-1]], axis=1)
        jumps = self.order.jumps(y0, np.concatenate([x.additions for x in stops]))
        rows = IntervalArguments(size)
        args: list[object] = []
        if with_inputs:
            values = np.concatenate([x.inputs for x in stops])
            flat = self.order.inputs(np.reshape(values, (len(values), -1)))
            shaped = np.reshape(flat, (size, *np.shape(values)[1:]))
            args.append(rows.part(shaped, is_differentiable(values)))
        args += parts(rows.part, np.repeat(np.arange(count), self.order.chain))
        self.system = System(rows.inner(name, f, args), n, passive=1)
        self.operands = (
            np.reshape(begins, (size,)),
            np.reshape(ends, (size,)),
            np.reshape(jumps, (size, n)),
            rows.table(True),
            rows.table(False),
        )

    def states(self, how: SolverSettings, threads: ChainThreads | None = None) -> Result:
        """Compute the states at the outputs of all subjects."""
        chain, shape = self.order.chain, (len(self._stops), self.order.chain, self.system.n)
        if is_differentiable([*self.operands]):
            chained = [*self.operands[:3], *(x.inputs for x in self._stops)]
            in_state = is_differentiable(chained)
            states = states_at_ends(
                *self.operands,
                system=self.system,
                how=how,
                chain=chain,
                in_state=in_state,
                threads=threads,
            )
        else:
            solve = in_sequence if threads is None else threads.solve
            states, _ = solve(self.operands, self.system, how, chain, None)
        return self.order.outputs(np.reshape(states, shape))

    def crossing(self, how: SolverSettings, value: Callable[[float, np.ndarray], float]) -> float:
        """Find the first time at which a value of the time and the state of one subject crosses
        zero; return nan if it does not.
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
