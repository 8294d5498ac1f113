"""The tape: what was computed, in order, and the reverse pass over it.

A tape is a list of entries ``(rule, result, x, y)``. Entries are data: `x` and `y` are what the
reverse rule needs (two operands, or a tuple of operands and the values saved for them). Only the
loop in `_run` makes the reverse pass.

Every variable holds the tape of the scope that made it. ``variable._tape.top`` is the tape that
records now: another one while a nested scope is open, and `RECOVERED` once the tape is gone. So a
stale variable fails when it is used, and all others pay nothing for the check.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.arena import LARGE, Arena, Mark
from varmat.core.errors import TapeError, raise_hidden

if TYPE_CHECKING:
    from varmat.core.dual import Level
    from varmat.core.indexing import AssignmentBatch
    from varmat.core.operation import Operation
    from varmat.typing import Entry, Function, Operand, Settings, Thunk

__all__ = ["keep_alive", "nested", "recover_memory", "set_zero_all_adjoints"]


class Tape(list["Entry"]):
    """The entries of one scope (chaining), and the other stacks of that scope.

    A recorder is a subclass, chosen when a scope is opened: it may override `append` for entries,
    `tangent` and `answering` for what is recorded of an operation of duals and of a function of
    NumPy, and `inner` for the scopes inside. So tapes without a recorder pay nothing for it.

    Attributes
    ----------
    top : Tape
        The tape that records now: this one, or the tape of the innermost scope opened since.
    leaves : list
        Variables without an operation (non-chaining): their adjoints only need zeroing.
    kept : list
        Objects to be kept alive until the scope is recovered.
    assignments : list
        Assignments into variables, to be made again when the reverse pass has undone them.
    adjoint_buffers : dict
        Id of an array of a workspace -> its memory for adjoints.
    swept : bool
        Whether an earlier reverse pass may have left adjoints.
    sweeping : bool
        Whether a reverse pass is under way; its callbacks may open scopes.
    by_hand : list
        The levels of duals made explicitly in the function that runs here, see `core.dual`.
    lost : TypeError, optional
        The last error for making a plain number or array of a variable in this scope. A function
        that catches it continues in a way that plain numbers do not.
    watch : callable, optional
        For recordings that are made once: called with a variable whose plain value or derivative is
        looked at, here or in a nested scope. For a comparison it is also given the ufunc and its
        operands, and may return the outcome.
    """

    __slots__ = (
        "adjoint_buffers",
        "arena",
        "assignments",
        "by_hand",
        "kept",
        "leaves",
        "lost",
        "mark",
        "parent",
        "sweeping",
        "swept",
        "top",
        "watch",
    )

    def __init__(self, arena: Arena, parent: Tape | None = None) -> None:
        self.top: Any = self
        self.arena = arena
        self.mark: Mark = arena.mark()
        self.parent = parent
        self.leaves: list[Operand] = []
        self.kept: list[Operand] = []
        self.assignments: list[AssignmentBatch] = []
        self.adjoint_buffers: dict[int, np.ndarray] = {}
        self.swept = self.sweeping = False
        self.lost: TypeError | None = None
        self.watch: Function | None = None if parent is None else parent.watch
        self.by_hand: list[Level] = [] if parent is None else parent.by_hand

    def inner(self) -> Tape:
        """Make the tape of a scope inside this one."""
        return Tape(self.arena, self)

    def chain(self) -> list[Tape]:
        """Return this tape and the tapes of the scopes around it, innermost first."""
        tapes, tape = [self], self.parent
        while tape is not None:
            tapes.append(tape)
            tape = tape.parent
        return tapes

    def workspace(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return an uninitialised array, to be used until the tape is recovered; large ones lie in
        warm memory.
        """
        if math.prod(shape) <= LARGE:
            return np.empty(shape)
        values, adjoints = self.arena.take(shape)
        # The memory of the adjoint, if the array becomes the values of a variable.
        self.adjoint_buffers[id(values)] = adjoints
        return values

    def tangent(
        self, by_rule: Thunk, op: Operation, args: Sequence[object], settings: Settings
    ) -> Operand:
        """Return the tangent that the rule of an operation of duals gives."""
        return by_rule()

    def answering(self, function: Function, implementation: Function) -> Function:
        """Return what runs for a function of NumPy: its implementation."""
        return implementation

    def drop_adjoints(self) -> None:
        """Forget every adjoint; the next contribution to each variable is written, not added."""
        for _, result, _, _ in self:
            result._adj = None
        for leaf in self.leaves:
            leaf._adj = None
        self.swept = False

    def recover(self) -> None:
        """Make all variables of this tape stale and give their memory back."""
        self.top = RECOVERED
        stacks: Any = (self, self.leaves, self.kept, self.assignments, self.adjoint_buffers)
        for stack in stacks:
            stack.clear()
        self.arena.release(self.mark)


class _Recovered:
    """The recording tape of variables whose own tape has been recovered."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Operand:
        raise TapeError(
            "this variable is stale: its tape has been recovered (by recover_memory, at the end of "
            "a nested scope, or because the function being differentiated has returned); create "
            "it again with varmat.var"
        )


RECOVERED = _Recovered()


class _Always:
    """The result of entries without one. It always has an adjoint, so their rule always runs."""

    __slots__ = ()
    _val = None
    _adj = property(lambda self: True, lambda self, _: None)


ALWAYS = _Always()


class Rule:
    """The tape's data for an operation: its name, the reverse rule for an entry, and the operation.

    Without an operation, `recompute` recomputes the result of an entry, from operands of any kind.
    """

    # One class for all operations, because the interpreter specialises the loop of the reverse pass
    # for the types it sees.
    __slots__ = ("chain", "name", "op", "recompute")

    def __init__(
        self, name: str, chain: Function, op: Any = None, recompute: Function | None = None
    ) -> None:
        self.name = name
        self.chain = chain
        self.op = op
        self.recompute: Function | None = recompute


_thread = threading.local()


def current_tape() -> Tape:
    """Return the tape that records in this thread; make it on first use."""
    try:
        tape: Tape = _thread.tape
    except AttributeError:
        tape = Tape(Arena())
        _thread.tape = tape
    return tape


def join(tape: Tape, other: Tape) -> Tape:
    """Return the tape that records an operation on variables of two tapes."""
    top = tape.top
    if top is other.top:
        return top  # type: ignore[no-any-return]
    # Accessing `.arena` raises if a tape was recovered.
    _ = top.arena, other.top.arena
    raise TapeError(
        "one operation uses variables from two threads; a variable belongs to the thread that "
        "created it"
    )


def open_scope(recorder: type[Tape] | None = None) -> Tape:
    """Open a nested scope: from here everything is recorded on the tape returned."""
    parent = current_tape()
    inner = recorder(parent.arena, parent) if recorder else parent.inner()
    tapes = parent.chain()
    try:
        for tape in tapes:
            tape.top = inner
        _thread.tape = inner
        return inner
    except BaseException:  # of the handler of a signal
        for tape in tapes:
            tape.top = parent
        _thread.tape = parent
        raise


def close_scope(inner: Tape) -> None:
    """Recover a nested scope, and with it any scope left open inside it.

    If the handler of a signal raises in the middle, or before the beginning, call it again.
    """
    parent, tape = inner.parent, current_tape()
    if parent is None or (tape is not inner and all(x is not inner for x in tape.chain())):
        raise TapeError("this nested scope was closed before, or belongs to another thread")
    for outer in parent.chain():
        outer.top = parent
    while tape is not parent:
        tape.recover()
        _thread.tape = tape = tape.parent  # type: ignore[assignment]


@contextmanager
def scope(recorder: type[Tape] | None = None) -> Iterator[Tape]:
    """Open a nested scope, on a tape of a given class, and recover it on exit."""
    tape = open_scope(recorder)
    try:
        yield tape
    except ValueError as error:
        raise_hidden(error)
        raise
    finally:
        try:
            close_scope(tape)
        except BaseException:
            close_scope(tape)
            raise


def nested() -> AbstractContextManager[Tape]:
    """Record in a separate scope, recovered on exit, also when an exception leaves it.

    ``y.grad()`` inside the scope runs the reverse pass over the scope only. Variables from outside
    may be used in it and receive their adjoints; variables made in it are stale afterwards.

    Returns
    -------
    context manager
        For ``with``; it gives the tape of the scope.

    Raises
    ------
    TapeError
        On exit, if the scope was closed before or belongs to another thread.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = vm.var([1.0, 2.0])
    >>> with vm.nested():
    ...     z = vm.var(3.0)
    ...     (z * z).grad()
    ...     print(z.adj)
    6.0
    >>> z * z
    Traceback (most recent call last):
        ...
    varmat.core.errors.TapeError: this variable is stale: ...
    """
    return scope()


def recover_memory() -> None:
    """Empty this thread's tape and take back its memory; all its variables become stale.

    Arrays that were taken from variables keep their values.

    Raises
    ------
    TapeError
        Inside a nested scope, which recovers itself when it ends, and in a callback of a reverse
        pass.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(1.0)
    >>> vm.recover_memory()
    >>> x + 1.0
    Traceback (most recent call last):
        ...
    varmat.core.errors.TapeError: this variable is stale: ...
    """
    tape = current_tape()
    if tape.parent is not None or tape.sweeping:
        raise TapeError(
            "recover_memory: a nested scope is open, which recovers its own memory, or a reverse "
            "pass is running"
        )
    tape.recover()
    _thread.tape = Tape(tape.arena)


def set_zero_all_adjoints() -> None:
    """Set the adjoints of all variables on this thread's tapes to zero.

    Every reverse pass begins so. Call it for callbacks, and for adjoints that you set explicitly.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(3.0)
    >>> (x * x).grad()
    >>> vm.set_zero_all_adjoints()
    >>> x.adj
    0.0
    """
    for tape in current_tape().chain():
        tape.drop_adjoints()


def keep_alive(thing: Operand) -> None:
    """Keep `thing` alive until the memory of the current scope is recovered.

    For objects that a callback refers to weakly, or that must live as long as the tape.

    Parameters
    ----------
    thing : object

    Examples
    --------
    >>> import varmat as vm
    >>> with vm.nested():
    ...     vm.keep_alive(object())
    """
    current_tape().kept.append(thing)


def start_sweep(tape: Tape) -> None:
    """Forget the adjoints of an earlier reverse pass."""
    if tape.swept:
        tape.drop_adjoints()
    for outer in tape.chain():
        outer.swept = True


def sweep(tape: Tape) -> None:
    """Run the reverse rules of `tape`, newest first, for the adjoints seeded since
    `start_sweep`.
    """
    # An adjoint may rightly be infinite or nan, and users did not write the code that would warn.
    with np.errstate(all="ignore"):
        try:
            tape.sweeping = True
            _run(tape)
            for assignment in tape.assignments:
                assignment.redo()
        except BaseException:  # perhaps in the middle of undoing or redoing an assignment
            for assignment in reversed([x for x in tape.assignments if x.undone]):
                assignment.undo()
            for assignment in tape.assignments:
                assignment.redo()
            raise
        finally:
            tape.sweeping = False


def _run(tape: Tape) -> None:
    for rule, result, x, y in reversed(tape):
        if result._adj is not None:
            chain = rule.chain
            chain(result, x, y)
