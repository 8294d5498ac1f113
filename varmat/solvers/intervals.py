"""Solutions over intervals of time that follow each other: an operation on times, jumps and
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.operation import Saved, operation
from varmat.core.variables import VARIABLES
from varmat.derivatives.recorded_rows import run_rows
from varmat.programs.build.builder import Builder
from varmat.programs.build.loops import branch, each_trip, loop
from varmat.programs.build.symbol import Symbol, UntraceableError, is_symbol, lift, refuse, require
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.passes import optimised
from varmat.programs.run import has_native, runner_for
from varmat.solvers.initial_values import SolverSettings, as_loops, problem_of, start_of
from varmat.solvers.inner import Inner
from varmat.solvers.steppers import integrate
from varmat.solvers.systems import Leaves, System
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Threads, Thunk

# The most evaluations of rates for which compiling a program takes longer.
LARGE = 40_000


@operation()
def states_at_ends(
    begins: Plain,
    ends: Plain,
    jumps: Plain,
    active: Plain,
    passive: Plain,
    *,
    system: System,
    how: SolverSettings,
    chain: int,
    in_state: bool,
    threads: ChainThreads | None = None,
) -> Saved:
    """Compute the states at the ends of M intervals, shape (M, n).

    An interval begins at the last state plus its jump, and the first of every `chain` intervals at
    its jump. The system takes a row of the active and of the passive arguments in each interval.
    The passive ones are data.

    With `in_state`, the sensitivities of an interval are with respect to the state where it begins
    and its row, and the reverse pass chains them. Without, times and jumps are data, the active
    rows of a chain are equal, and the sensitivities are with respect to this row since the chain
    began.
    """
    arguments = begins, ends, jumps, active, passive
    if any(map(is_symbol, arguments)):
        in_program = threads is None or threads.executor == "serial"
        return _by_loops(arguments, system, how, chain, in_state) if in_program else refuse()
    if np.any(begins > ends):
        raise ElsewhereError  # a time of a recording has passed the initial one
    solve = in_sequence if threads is None else threads.solve
    states, sensitivity = solve(arguments, system, how, chain, in_state)
    before = jumps + _before(states, chain)

    def rates(times: np.ndarray, at: np.ndarray) -> np.ndarray:
        leaves = map(Leaves, zip(active, passive, strict=True))
        return np.array([*map(system.rate, times.tolist(), at, leaves)])

    return Saved(
        states,
        sensitivity=sensitivity,
        first=lambda: rates(begins, before),
        last=lambda: rates(ends, states),
    )


def _before(states: Operand, chain: int) -> Operand:
    """Return the states to which the jumps are added: zero where a chain begins."""
    shifted = np.concatenate([np.zeros((1, np.shape(states)[1])), states[:-1]])
    return np.where(np.arange(len(shifted))[:, None] % chain == 0, 0.0, shifted)


def _goes_on(count: int, chain: int) -> np.ndarray:
    """Return zero for the first interval of each chain, and one for the others."""
    return np.where(np.arange(count) % chain == 0, 0.0, 1.0)


def in_sequence(
    arguments: Sequence[np.ndarray],
    system: System,
    how: SolverSettings,
    chain: int,
    in_state: bool | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the states at the ends and, if `in_state` says which, sensitivities."""
    begins, ends, jumps, active, passive = arguments
    n, states, slopes = system.n, [], []
    k, start = _start(n, active.shape[1], in_state)
    z = start
    for i in range(len(ends)):
        if i % chain == 0:
            z = start
        elif in_state:
            z = np.concatenate([z[:n], start[n:]])
        z = np.concatenate([z[:n] + jumps[i], z[n:]])
        if begins[i] < ends[i]:
            problem = problem_of(system, how, Leaves((active[i], passive[i])), k, bool(in_state))
            z = integrate(how.method, problem, float(begins[i]), z, ends[i : i + 1])[0][0]
        states.append(z[:n])
        slopes.append(np.reshape(z[n:], (k, n)).T)
    return np.array(states), np.array(slopes)


def _start(n: int, p: int, in_state: bool | None) -> tuple[int, np.ndarray]:
    """Return the number of directions, and a state of zero with its sensitivities."""
    zero = np.zeros(n)
    return (0, zero) if in_state is None else start_of(n, zero, p, in_state)


class ChainThreads:
    """Solves the chains of a group, in threads, by the program of a chain.

    Parameters
    ----------
    executor : ThreadPoolExecutor, "serial" or None
        None is a thread for each processor. In sequence they are solved without a program if that
        is little work.
    """

    def __init__(self, executor: Threads) -> None:
        self.executor = executor
        self._runner: Function | None = None

    def solve(
        self,
        arguments: Sequence[np.ndarray],
        system: System,
        how: SolverSettings,
        chain: int,
        in_state: bool | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute the same as `in_sequence`."""
        total = len(arguments[0])
        rows = [np.reshape(x, (total // chain, chain, *x.shape[1:])) for x in arguments]

        def alone(s: int) -> tuple[np.ndarray, np.ndarray]:
            return in_sequence([x[s] for x in rows], system, how, chain, in_state)

        if self._runner is None:
            before = System.evaluations
            first = alone(0)  # which records the rates
            effort = (System.evaluations - before) * len(rows[0])
            with suppress(UntraceableError):
                if has_native() and (self.executor != "serial" or effort > LARGE):
                    self._runner = _runner_of_chain([x[0] for x in rows], system, how, in_state)
        if self._runner is None:
            states, slopes = zip(first, *map(alone, range(1, len(rows[0]))), strict=True)
            return np.concatenate(states), np.concatenate(slopes)
        n, k = system.n, _start(system.n, rows[3].shape[2], in_state)[0]
        template = [np.empty((chain, n)), np.empty((chain, n, k))]
        _, result, holds = run_rows(self._runner, rows, template, self.executor)
        for s in np.flatnonzero(~holds).tolist():
            result[0][s], result[1][s] = alone(s)
        return np.reshape(result[0], (total, n)), np.reshape(result[1], (total, n, k))


def _runner_of_chain(
    operands: Sequence[np.ndarray], system: System, how: SolverSettings, in_state: bool | None
) -> Function:
    """Make the runner of a chain: from the operands to zero, the states and the sensitivities."""
    builder = Builder()
    symbols = [Symbol(builder, builder.argument(x.shape)) for x in operands]
    result = _by_loops(symbols, system, how, len(operands[0]), in_state)
    outputs = [0.0, result.value, result.saved["sensitivity"]]
    program = builder.program([builder.contiguous(lift(builder, x)) for x in outputs])
    return runner_for(optimised(program))


def _by_loops(
    arguments: Sequence[Operand],
    system: System,
    how: SolverSettings,
    chain: int,
    in_state: bool | None,
) -> Saved:
    """Compute the same as a loop of a program over the intervals."""
    begins, ends, jumps, active, passive = arguments
    n, (count, p) = system.n, np.shape(active)
    k, start = _start(n, p, in_state)
    method = as_loops(system, how, k, bool(in_state), unrolled=True)
    for x in arguments:
        require(np.isfinite(x))
    require(begins <= ends)
    rows, zeros = np.concatenate([active, passive], axis=1), np.zeros(start.size)

    def interval(
        z: Operand,
        ahead: Operand,
        begin: Operand,
        end: Operand,
        jump: Operand,
        goes_on: Operand,
        row: Operand,
    ) -> tuple[list[Operand], list[Operand]]:
        if in_state:
            z = np.concatenate([goes_on * z[:n] + jump, start[n:]])
        else:
            z = goes_on * z + np.concatenate([jump, start[n:]])
        operands = begin, z, goes_on * ahead, end, row
        z, ahead = branch(begin < end, [lambda *x: x[1:3], method.go_on], *operands)
        return [z, ahead], [z]

    goes_on, every = _goes_on(count, chain), [begins, ends, jumps]
    *_, full = loop(interval, count, [zeros, 0.0], [*every, goes_on, rows])
    states = full[:, :n]
    slopes = np.swapaxes(np.reshape(full[:, n:], (count, k, n)), 1, 2)

    def rates_at(times: Operand, at: Operand) -> Operand:
        def rate(*point: Operand) -> tuple[list[Operand], list[Operand]]:
            return [], [method.equation.rate(*point)[:n]]

        at = np.concatenate([at, np.zeros((count, n * k))], axis=1)
        return loop(rate, count, [], [times, at, rows])[0]

    return Saved(
        states,
        sensitivity=slopes,
        first=lambda: rates_at(begins, jumps + _before(states, chain)),
        last=lambda: rates_at(ends, states),
    )


@states_at_ends.reverse
def states_at_ends_reverse(
    g: Adjoint,
    r: Plain,
    begins: Plain,
    ends: Plain,
    jumps: Plain,
    active: Plain,
    passive: Plain,
    *,
    system: System,
    how: SolverSettings,
    chain: int,
    in_state: bool,
    threads: ChainThreads | None,
    sensitivity: Plain,
    first: Thunk,
    last: Thunk,
) -> tuple[Adjoint, ...]:
    n, count = system.n, np.shape(g)[0]
    if not in_state:
        of_active = np.reshape(np.reshape(g, (count, 1, n)) @ sensitivity, np.shape(active))
        zeros = [partial(np.zeros, np.shape(x)) for x in (begins, ends, jumps, passive)]
        return *zeros[:3], of_active, zeros[3]

    def back(
        later: Operand, own: Operand, goes_on: Operand, slopes: Operand
    ) -> tuple[list[Operand], list[Operand]]:
        """Step from the adjoint of the state where the next interval begins to this interval's."""
        at_end = own + goes_on * later
        weights = at_end @ slopes
        return [weights[:n]], [at_end, weights]

    goes_on = np.roll(_goes_on(count, chain), -1)
    _, at_ends, weights = each_trip(
        back, count, [np.zeros(n)], [g, goes_on, sensitivity], [], backwards=True
    )
    of_jumps = weights[:, :n]
    return (
        lambda: -np.sum(of_jumps * first(), axis=1),
        lambda: np.sum(at_ends * last(), axis=1),
        of_jumps,
        weights[:, n:],
        lambda: np.zeros(np.shape(passive)),
    )


@states_at_ends.tangent
def states_at_ends_tangent(
    r: Operand,
    begins: Operand,
    ends: Operand,
    jumps: Operand,
    active: Operand,
    passive: Operand,
    *,
    system: System,
    how: SolverSettings,
    chain: int,
    in_state: bool,
    threads: ChainThreads | None,
    sensitivity: Plain,
) -> tuple[Linear, ...]:
    n, (count, p) = system.n, np.shape(active)
    operands = begins, ends, jumps, active, passive
    is_plain = not any(type(x) in VARIABLES or isinstance(x, ArrayMethods) for x in operands)

    def rates(times: Operand, at: Operand) -> Operand:
        result = [system.inner((times[i], at[i]), (active[i], passive[i])) for i in range(count)]
        return np.stack([*map(system.checked, result)])

    def along(of_jumps: Operand, of_active: Operand) -> Operand:
        """Differentiate along jumps and arguments; if some are variables, by a larger system."""
        if is_plain and not in_state:
            return np.reshape(sensitivity @ np.reshape(of_active, (count, p, 1)), (count, n))
        if is_plain:
            rows = [of_jumps, _goes_on(count, chain), of_active, sensitivity]
            return each_trip(_forward, count, [np.zeros(n)], rows, [])[1]
        joined = np.concatenate([jumps, of_jumps], axis=1)
        both = np.concatenate([active, of_active], axis=1)
        larger = _with_tangents(system, p, np.shape(passive)[1])
        states = states_at_ends(
            begins, ends, joined, both, passive,
            system=larger, how=how, chain=chain, in_state=True,
        )  # fmt: skip
        return states[:, n:]

    no_jumps, none_active = np.zeros((count, n)), np.zeros((count, p))

    def in_begins(t: Operand) -> Operand:
        before = jumps + _before(r, chain)
        return along(-np.reshape(t, (-1, 1)) * rates(begins, before), none_active)

    def in_ends(t: Operand) -> Operand:
        moved = np.reshape(t, (-1, 1)) * rates(ends, r)
        return moved + along(_before(moved, chain), none_active)

    return (
        in_begins,
        in_ends,
        lambda t: along(t, none_active),
        lambda t: along(no_jumps, t),
        lambda t: no_jumps,
    )


def _forward(
    t: Operand, of_jump: Operand, goes_on: Operand, of_active: Operand, slopes: Operand
) -> tuple[list[Operand], list[Operand]]:
    """Return the tangent at the end of an interval, from the previous interval's."""
    t = slopes @ np.concatenate([of_jump + goes_on * t, of_active])
    return [t], [t]


def _with_tangents(system: System, p: int, passive: int) -> System:
    """Make the system of a state and its tangent, whose rows have the directions of the `p` active
    arguments after them.
    """
    n = system.n

    def coupled(t: Operand, z: Operand, both: Operand, row: Operand) -> Operand:
        tangents = (None, z[n:], both[p:], None)
        return np.concatenate(system.along((t, z[:n]), tangents, (both[:p], row)))

    rows = np.zeros(2 * p), np.zeros(passive)
    return System(Inner(system.inner.name, coupled, rows, with_data=True), 2 * n, passive=1)
