"""The tape of a recording that becomes a program: it raises for what no program can do, and records
functions that look at values as one operation, which calls them at every run.

A tangent rule may choose a formula by the values of its operands: the determinant's rule treats
singular matrices separately. The choice made at the recorded point can be wrong at other points.
Such a tangent is therefore recorded as one operation, which calls the rule at every run: in forward
mode for its value, and in forward over reverse mode for its contributions. So are functions of
NumPy that order, search or mask by values, as `numpy.median` and `numpy.interp`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile

import numpy as np

from varmat.core.arena import Arena
from varmat.core.dual import Dual, Level, paired, taken_apart, value_now
from varmat.core.elementwise import Elementwise
from varmat.core.errors import refusals
from varmat.core.operation import Operation, is_differentiable
from varmat.core.tape import Tape, scope
from varmat.core.variables import VARIABLES, borrow_leaf, outsiders, own_tape
from varmat.derivatives.inputs_and_outputs import pulled_back, recording
from varmat.derivatives.random_states import RandomStates
from varmat.derivatives.structure import leaves_of, rebuilt
from varmat.programs.ir.program import ElsewhereError, RecordingError
from varmat.programs.record.conditions import Branches, Condition, compared, following, refuse_look
from varmat.programs.record.tape_programs import writer_of
from varmat.typing import Entry, Function, Linear, Operand, Result, Settings, Thunk


class InnerTape(Tape):
    """The tape of a scope inside a recording that becomes a program."""

    __slots__ = ()

    @property
    def recorder(self) -> type[Tape]:
        """The tape of a scope whose leaves stand for variables of the recording."""
        return WatchedTape

    def inner(self) -> Tape:
        return InnerTape(self.arena, self)

    def _by_rule(self, rule: Thunk, call: Thunk) -> Result:
        """Record a function step by step or, if it looks at a value, as one call."""
        entries, assignments, looks = len(self), len(self.assignments), refusals.of_looks
        try:
            return rule()
        except RecordingError:
            del self[entries:], self.assignments[assignments:]
            result = call()
            if result is None:
                raise
            refusals.of_looks = looks
            return result

    def answering(self, function: Function, implementation: Function) -> Function:
        """Return the handler of a function of NumPy."""

        def answer(*args: object, **settings: object) -> Result:
            return self._by_rule(
                partial(implementation, *args, **settings),
                partial(called_function, function, args, settings),
            )

        return answer

    def tangent(
        self,
        by_rule: Thunk,
        op: Operation | Elementwise,
        args: Sequence[object],
        settings: Settings,
    ) -> Result:
        """Compute the tangent of an operation on duals. A user's rule is always recorded as a call,
        because it may use values that it saved at the recorded point.
        """
        call = partial(called_tangent, op, tuple(args), settings)
        return self._by_rule(by_rule, call) if getattr(op, "is_traceable", True) else call()


class WatchedTape(InnerTape):
    """The tape of such a recording: it raises at once for an entry that no program can have as a
    step.
    """

    __slots__ = ()

    def append(self, entry: Entry) -> None:
        writer_of(entry[0])
        super().append(entry)


def _looked_at(variable: object, ufunc: Operand = None, operands: Sequence[Operand] = ()) -> Result:
    """Return the outcome of a comparison. Any other look at a value raises, unless a nested scope
    looks at what it computed without the variables of the recording.
    """
    scopes = list(takewhile(lambda tape: type(tape) is not WatchedTape, own_tape(variable).chain()))
    if scopes and not any(
        type(own_tape(x)) is WatchedTape for tape in scopes for x in outsiders(tape)
    ):
        return None
    # Duals are compared by their values.
    return compared(ufunc, tuple([x.val if isinstance(x, Dual) else x for x in operands]))


@contextmanager
def recording_to_write() -> Iterator[Tape]:
    """Open a scope with separate memory, for a recording that becomes a program."""
    with recording(WatchedTape) as tape:
        # The program does not use the memory of the recording, and this thread may never again
        # need this much: with a separate arena it goes back to the system.
        tape.arena.release(tape.mark)
        tape.arena = Arena()
        tape.mark = tape.arena.mark()
        yield tape


@contextmanager
def watched(tape: Tape, *reached: object, branches: Branches | None = None) -> Iterator[None]:
    """Raise for what no program can do, and for a function that catches such an error; follow
    branches on values if `branches` can note them.

    `reached` are the function and its arguments."""
    random = RandomStates(*reached)
    of_values, of_looks = refusals.of_values, refusals.of_looks
    tape.watch = _looked_at
    try:
        with following(branches, tape):
            yield
    except Exception:
        # The error says so itself. Restore the counts, because a solver may catch it and call the
        # function as it is written, inside another recording.
        refusals.of_values, refusals.of_looks = of_values, of_looks
        raise
    if refusals.of_looks != of_looks:
        refuse_look()
    random.refuse_draws()
    if refusals.of_values != of_values:
        raise ElsewhereError


# --- functions that look at values ---


def called_tangent(
    op: Operation | Elementwise, args: tuple[Operand, ...], settings: Settings
) -> Result:
    """Record the tangent of an operation on operands, at least one of them a dual, as one call; the
    tangents of an operation with several results as a tuple.
    """
    indices = [i for i, x in enumerate(args) if isinstance(x, Dual)]
    inputs = [x.val if isinstance(x, Dual) else x for x in args] + [args[i].tan for i in indices]
    level, count = Level(op.name), len(args)

    def tangent(*arguments: object) -> Result:
        operands = list(arguments[:count])
        for i, t in zip(indices, arguments[count:], strict=True):
            operands[i] = paired(operands[i], t, level)
        y = op(*operands, **settings)
        return tuple(part.tan for part in y) if isinstance(y, tuple) else y.tan

    return _called(f"{op.name}.tangent", tangent, [type(x) in VARIABLES for x in inputs])(*inputs)


def _called(name: str, function: Function, variable: Sequence[bool]) -> Operation:
    """Make a differentiable function an operation that programs call; `variable` says which
    operands have contributions.
    """

    def reverse(g: Operand, r: Operand, *args: Operand) -> tuple[Operand, ...]:
        with scope(Tape) as tape:
            tape.watch = None  # the function is evaluated, not recorded
            leaves = [
                borrow_leaf(x, tape) if item else x for x, item in zip(args, variable, strict=True)
            ]
            wrt = [x for x, item in zip(leaves, variable, strict=True) if item]
            output = iter(pulled_back(tape, _tuple(function(*leaves)), _tuple(g), wrt))
            return tuple(next(output) if x else 0.0 for x in variable)

    def tangent(r: object, *args: object) -> tuple[Linear, ...]:
        def along(i: int, t: object) -> Result:
            level, now = Level(name), list(args)
            now[i] = paired(now[i], t, level)
            y = function(*now)
            pairs = [taken_apart(x, level) for x in _tuple(y)]
            rates = tuple(np.zeros(np.shape(x))[()] if t is None else t for x, t in pairs)
            return rates if isinstance(y, tuple) else rates[0]

        return tuple(partial(along, i) for i in range(len(args)))

    def value(*args: object) -> Result:
        return function(*args)

    value.__name__ = name
    result = Operation(value, None, variadic=True, stacked=False, native=False)
    result.is_traceable = False
    result.reverse(reverse)
    result.tangent(tangent)
    return result


def called_function(function: Function, args: Sequence[object], settings: Settings) -> Result:
    """Record a function of arrays as one call. None if it makes no plain numbers of plain numbers:
    what else it depends on would be lost.

    Shapes, and results other than real numbers, such as a rank, must be the same at every run.
    """
    arguments = list(args), settings
    leaves = leaves_of(arguments)
    indices = [i for i, x in enumerate(leaves) if is_differentiable(x)]
    if any(type(x) is Condition for x in leaves):
        return None

    def call(*numbers: object) -> Result:
        now = dict(zip(indices, numbers, strict=True))
        recompute, kwargs = rebuilt(arguments, (now.get(i, x) for i, x in enumerate(leaves)))
        return function(*recompute, **kwargs)

    operands = [leaves[i] for i in indices]
    result = call(*map(value_now, operands))
    if is_differentiable(result):
        return None
    at_first = leaves_of(result)
    is_real = [
        isinstance(x, (float, np.ndarray)) and np.asarray(x).dtype.kind == "f" for x in at_first
    ]
    if not any(is_real):
        return None

    def results(*numbers: object) -> Result:
        created = leaves_of(call(*numbers))
        for x, y, item in zip(created, at_first, is_real, strict=True):
            if np.shape(x) != np.shape(y) or not (item or np.array_equal(x, y)):
                raise ElsewhereError
        reals = tuple(x for x, value in zip(created, is_real, strict=True) if value)
        return reals if len(reals) > 1 else reals[0]

    name = getattr(function, "__name__", "function")
    output = _called(name, results, [True] * len(operands))

    reals = iter(_tuple(output(*operands)))
    items = zip(at_first, is_real, strict=True)
    return rebuilt(result, [next(reals) if item else x for x, item in items])


def _tuple(x: object) -> tuple[Operand, ...]:
    return x if isinstance(x, tuple) else (x,)
