"""Errors that a with statement ends at or adds notes to, and signals: Ctrl-C that waits for a good
moment, and errors that the handler of a signal raised.

Python calls the handlers of signals in the main thread, between any two instructions. An error
that a handler raises there may come up in a callback of compiled code, which can only print it, or
in the middle of an import. So code with such places keeps signals back, and code that catches
errors to try another way lets the errors of handlers pass.
"""

from __future__ import annotations

import inspect
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType


def from_signal(error: BaseException) -> bool:
    """Return whether an error came from outside the computation: the handler of a signal raised it,
    or it is not an `Exception`.

    Code that catches errors to try another way must raise these, because they come only once. A
    handler is recognised by its arguments, a number and the frame that the signal interrupted.
    """
    if not isinstance(error, Exception) or hasattr(error, "_is_from_signal"):
        return True
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        interrupted, at = at.tb_frame, at.tb_next
        arguments = _arguments(at.tb_frame)
        if any(isinstance(n, int) and x is interrupted for n, x in pairwise(arguments)):
            return True
    return False


def _any_of_code(error: Exception) -> bool:
    return not from_signal(error)


class Attempt:
    """Ends a with statement at an error that is expected, because there is another way after it.

    By default any error is, except those of the handlers of signals. That is for recording a
    function of the user, which may then raise what it does not raise for numbers, and for objects
    of other libraries. Whatever concerns the user is raised again by the other way.

    Parameters
    ----------
    expected : callable, optional
        Whether an error is.

    Attributes
    ----------
    error : Exception or None
    """

    __slots__ = ("_expected", "error")

    def __init__(self, expected: Callable[[Exception], bool] = _any_of_code) -> None:
        self._expected = expected
        self.error: Exception | None = None

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not (isinstance(error, Exception) and self._expected(error)):
            return False
        self.error = error
        return True


class Noted:
    """Adds a note to the errors that leave a with statement, unless they are to be skipped."""

    __slots__ = ("_skips", "_text")

    def __init__(self, text: str, skips: Callable[[Exception], bool] = lambda _: False) -> None:
        self._text, self._skips = text, skips

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not self._skips(error):
            error.add_note(self._text)


def _arguments(frame: FrameType) -> list[object]:
    """Return the positional arguments that a function was called with."""
    code, local_values = frame.f_code, frame.f_locals
    arguments = [local_values.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        remainder = local_values.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        arguments.extend(remainder if isinstance(remainder, tuple) else ())
    return arguments


def mark_from_signal(error: BaseException) -> None:
    """Let `from_signal` know an error whose traceback compiled code has dropped."""
    error._is_from_signal = True  # type: ignore[attr-defined]


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Hold back all signals to the end, for imports and compilations, because a module or a
    registry that is left half made would spoil all later ones, and for threads that write into
    memory that others free. The list of those that came so far grows.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    handlers = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
    callables = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in callables:
            signal.signal(number, lambda number, _: came.append(number))
        yield came
    finally:
        for number, handler in callables.items():
            signal.signal(number, handler)
        for number in came:
            callables[number](number, sys._getframe())


class Interrupts:
    """Ctrl-C counted instead of raised, for the time of a with statement.

    The code inside reads `count` now and then, and ends early if it is not zero. A press that was
    not read by the end of the with statement raises `KeyboardInterrupt` there, so none is lost.
    Handlers that the user has set are left alone, as is a signal that the process ignores. Only the
    main thread gets signals, so nothing changes in others.
    """

    def __init__(self) -> None:
        self._count = self._read = 0
        self._is_on = False

    @property
    def count(self) -> int:
        """How often Ctrl-C was pressed so far."""
        self._read = self._count
        return self._read

    def add(self, *_: object) -> None:
        """Count one more: the handler of the signal."""
        self._count += 1

    def __enter__(self) -> Interrupts:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            self._is_on = True
            signal.signal(signal.SIGINT, self.add)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_on:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_on = False
            if self._count > self._read:
                raise KeyboardInterrupt


@contextmanager
def kept_from_callbacks(
    callback: object, keep: Callable[[BaseException], object]
) -> Iterator[None]:
    """Keep the errors that handlers of signals raise before the first instruction of a callback.

    No try statement of the callback can catch such an error, and ctypes prints it. Only the main
    thread runs handlers, so only there the hook for printing is replaced.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        # From Python 3.13 on, only the text tells the callback.
        is_of_callback = unraisable.object is callback or (
            unraisable.object is None and repr(callback) in (unraisable.err_msg or "")
        )
        if is_of_callback and unraisable.exc_value is not None:
            keep(unraisable.exc_value)
        else:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
