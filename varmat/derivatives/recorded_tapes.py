"""The tape of a recording that becomes a program: it refuses what no program can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from varmat.core.arena import Arena
from varmat.core.dual import Dual
from varmat.core.errors import refusals
from varmat.core.tape import Tape
from varmat.core.variables import outsiders
from varmat.derivatives.inputs_and_outputs import recording
from varmat.derivatives.random_states import RandomStates
from varmat.derivatives.recorded_calls import called_function, called_tangent
from varmat.programs.ir.program import ElsewhereError, RecordingError
from varmat.programs.record.conditions import Branches, compared, following, refuse_look
from varmat.programs.record.tape_programs import writer_of
from varmat.typing import Entry, Function, Operand, Result, Settings, Thunk

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise
    from varmat.core.operation import Operation


class WatchedTape(Tape):
    """A tape that refuses an entry at once if no program can have it as a step."""

    __slots__ = ()

    def append(self, entry: Entry) -> None:
        writer_of(entry[0])
        super().append(entry)

    def _by_rule(self, rule: Thunk, call: Thunk) -> Result:
        """Record a function step by step or, if it looks at a value, as one call."""
        entries, assignments, looks = len(self), len(self.assignments), refusals.of_looks
        try:
            return rule()
        except RecordingError:
            del self[entries:], self.assignments[assignments:]
            made = call()
            if made is None:
                raise
            refusals.of_looks = looks
            return made

    def answering(self, function: Function, implementation: Function) -> Function:
        """What answers for a function of NumPy."""

        def answer(*args: Operand, **settings: Any) -> Result:
            return self._by_rule(
                partial(implementation, *args, **settings),
                partial(called_function, function, args, settings),
            )

        return answer

    def tangent(
        self,
        by_rule: Thunk,
        op: Operation | Elementwise,
        args: Sequence[Operand],
        settings: Settings,
    ) -> Result:
        """The tangent of an operation on duals. A user's rule is always recorded as a call, because
        it may use what it saved at the recorded point.
        """
        call = partial(called_tangent, op, tuple(args), settings)
        return self._by_rule(by_rule, call) if getattr(op, "is_traceable", True) else call()


def _looked_at(
    variable: Operand, ufunc: Operand = None, operands: Sequence[Operand] = ()
) -> Result:
    """The outcome of a comparison. Any other look at a value is refused, unless a nested scope
    looks at what it computed without the variables of the recording.
    """
    scopes = list(takewhile(lambda tape: type(tape) is not WatchedTape, variable._tape.chain()))
    if scopes and not any(type(x._tape) is WatchedTape for tape in scopes for x in outsiders(tape)):
        return None
    # Duals are compared by their values.
    return compared(ufunc, tuple([x.val if isinstance(x, Dual) else x for x in operands]))


@contextmanager
def recording_to_write() -> Iterator[Tape]:
    """A scope with memory of its own, for a recording that becomes a program."""
    with recording() as tape:
        # The program does not use the memory of the recording, and this thread may never again
        # need so much: with an arena of its own it goes back to the system.
        tape.arena.release(tape.mark)
        tape.arena = Arena()
        tape.mark = tape.arena.mark()
        yield tape


@contextmanager
def watched(tape: Tape, *reached: object, branches: Branches | None = None) -> Iterator[None]:
    """Refuse what no program can do, and a function that catches such a refusal; follow branches on
    values if there is something to note them in.

    `reached` are the function and its arguments."""
    random = RandomStates(*reached)
    of_values, of_looks = refusals.of_values, refusals.of_looks
    # The scope is open and its variables refer to this tape: it changes its class.
    tape.__class__, tape.watch = WatchedTape, _looked_at
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
