"""What all recorded functions share: the recordings that each keeps, and the scope in which one is
made.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from varmat.core.arena import Arena
from varmat.core.dual import Dual
from varmat.core.errors import refusals
from varmat.core.tape import Tape
from varmat.core.variables import outsiders
from varmat.derivatives.inputs_and_outputs import held, recording
from varmat.derivatives.recorded_tangents import called_tangent
from varmat.derivatives.reverse import Derived
from varmat.programs.conditions import compared, refuse_look
from varmat.programs.program import ElsewhereError, Program, RecordingError
from varmat.programs.runners import check_runner
from varmat.programs.tape_programs import writer_of

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise
    from varmat.core.operation import Operation
    from varmat.derivatives.structure import Tree
    from varmat.typing import Entry, Function, Operand, Result, Settings, Thunk


# Recordings that one function keeps, for so many combinations of shapes and of other arguments.
MOST_RECORDINGS = 16
Made: TypeAlias = tuple[Any, ...]  # a program, what runs it, and what else there is to know
Others: TypeAlias = dict[Any, Any]  # arguments by position or name
_SAME_IF_EQUAL = (int, float, str, bool, type(None))


class Recording(NamedTuple):
    """A program and what it holds for.

    Attributes
    ----------
    structures : tuple
        Of the arguments that are differentiated with respect to: a shape is that of a number or an
        array.
    others : dict
        All other arguments, by position or name.
    program : Program
    run : callable
        Takes the list of numbers and arrays; returns the list of outputs.
    more : object
        What else the recorded function wants to know about it.
    """

    structures: tuple[Operand, ...]
    others: Others
    program: Program
    run: Any
    more: Tree = None

    def holds_for(self, structures: tuple[object, ...], others: Others) -> bool:
        if self.structures != structures or len(self.others) != len(others):
            return False
        return all(key in others and _is_same(x, others[key]) for key, x in self.others.items())


def _is_same(x: Operand, y: Operand) -> bool:
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if type(x) is tuple:
        return len(x) == len(y) and all(map(_is_same, x, y))
    # Zeros are equal, and have signs; so are a day and 24 hours, and have units.
    comparable = type(x) in _SAME_IF_EQUAL or (isinstance(x, np.generic) and x.dtype == y.dtype)
    return comparable and bool(x == y) and bool(x or repr(x) == repr(y))


class Recordings:
    """A function that is recorded for each combination of shapes and of other arguments; the base
    of all of them.

    Parameters
    ----------
    function : callable
    runner : str
    """

    def __init__(self, function: Function, runner: str) -> None:
        if not callable(function):
            raise TypeError(
                f"recorded: the argument is a {type(function).__name__}, but must be a function!"
            )
        self.function, self.runner = function, check_runner("recorded", runner)
        self.__name__ = f"recorded({getattr(function, '__name__', 'function')})"
        self._recordings: list[Recording] = []
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<varmat {self.__name__}>"

    __get__ = Derived.__get__

    @property
    def program(self) -> Program | None:
        """The program that was made last; None before the first call. Printed, it is a list of its
        steps.
        """
        return self._recordings[0].program if self._recordings else None

    def _found(self, structures: tuple[object, ...], others: Others) -> Recording | None:
        for known in self._recordings:
            if known.holds_for(structures, others):
                return known
        return None

    def _recording(
        self, structures: tuple[object, ...], others: Others, *call: Operand
    ) -> Recording:
        """What several threads want at once is recorded by one of them."""
        with held(self._lock):
            known = self._found(structures, others)
            if known is None:
                known = Recording(structures, others, *self._made(*call))
                # The newest comes first.
                self._keep([known, *self._recordings[: MOST_RECORDINGS - 1]])
            return known

    def _keep(self, recordings: list[Recording]) -> None:
        self._recordings = recordings

    def _made(self, *call: Operand) -> Made:
        """For a call the program, what runs it, and what else there is to know."""
        raise NotImplementedError


class WatchedTape(Tape):
    """A tape that refuses entries which cannot be written as a program, where they are made."""

    __slots__ = ()

    def append(self, entry: Entry) -> None:
        writer_of(entry[0])
        super().append(entry)

    def tangent(
        self,
        by_rule: Thunk,
        op: Operation | Elementwise,
        args: Sequence[Operand],
        settings: Settings,
    ) -> Result:
        """The tangent of the result of an operation of duals: by its rule, or by a call of it where
        the rule looks at a value.

        Of a user's rule nobody knows that it depends on its operands alone, and not on what was
        saved at the recorded point."""
        if not getattr(op, "is_traceable", True):
            return called_tangent(op, tuple(args), settings)
        entries, assignments, looks = len(self), len(self.assignments), refusals.of_looks
        try:
            return by_rule()
        except RecordingError:
            del self[entries:], self.assignments[assignments:]
            refusals.of_looks = looks
            return called_tangent(op, tuple(args), settings)


def _looked_at(
    variable: Operand, ufunc: Operand = None, operands: Sequence[Operand] = ()
) -> Result:
    """The outcome of a comparison; other looks are refused, but at what a nested scope computes
    without the variables here.
    """
    scopes = list(takewhile(lambda tape: type(tape) is not WatchedTape, variable._tape.chain()))
    if scopes and not any(type(x._tape) is WatchedTape for tape in scopes for x in outsiders(tape)):
        return None
    # Whoever compares duals compares their values.
    return compared(ufunc, tuple([x.val if isinstance(x, Dual) else x for x in operands]))


@contextmanager
def recording_to_write() -> Iterator[Tape]:
    """A scope of its own memory, of which a program is to be written."""
    with recording() as tape:
        # The memory of a recording goes back to the system: its program does not want it, nor
        # perhaps anything else in this thread.
        tape.arena.release(tape.mark)
        tape.arena = Arena()
        tape.mark = tape.arena.mark()
        yield tape


@contextmanager
def watched(tape: Tape) -> Iterator[None]:
    """Refuse what no program can do on a tape, and functions that catch a refusal."""
    of_values, of_looks = refusals.of_values, refusals.of_looks
    # The scope is open already, and all its variables know this tape.
    tape.__class__, tape.watch = WatchedTape, _looked_at
    yield
    if refusals.of_looks != of_looks:
        refuse_look()
    if refusals.of_values != of_values:
        raise ElsewhereError
