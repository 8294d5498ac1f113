"""What all recorded functions share: the recordings they keep, and the scope that makes one."""

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
from varmat.derivatives.inputs_and_outputs import recording
from varmat.derivatives.random_states import RandomStates
from varmat.derivatives.recorded_calls import called_function, called_tangent
from varmat.derivatives.recorded_rows import ArgumentRows, Mapped
from varmat.derivatives.reverse import DerivedFunction
from varmat.derivatives.structure import ArgumentTree
from varmat.locks import held
from varmat.programs.ir.program import ElsewhereError, Program, RecordingError
from varmat.programs.record.conditions import compared, refuse_look
from varmat.programs.record.tape_programs import writer_of
from varmat.programs.run import check_runner
from varmat.programs.run.threads import one_blas_thread
from varmat.typing import Entry, Function, Operand, Result, Settings, Thunk

if TYPE_CHECKING:
    from varmat.core.elementwise import Elementwise
    from varmat.core.operation import Operation


# The most recordings that one function keeps.
MOST_RECORDINGS = 16
Made: TypeAlias = tuple[Any, ...]  # a program, what runs it, and what else there is to know
Others: TypeAlias = dict[Any, Any]  # arguments by position or name
InAxes: TypeAlias = int | tuple[int | None, ...] | None
# Bytes up to which a copy of them is compared faster than the array.
_FEW_BYTES = 1 << 12
_SAME_IF_EQUAL = (int, float, str, bool, type(None))


class Recording(NamedTuple):
    """A program and what it holds for.

    Attributes
    ----------
    structures : tuple
        Of the arguments to differentiate with respect to; for a number or an array its shape.
    others : dict
        All other arguments, by position or name; those with rows as `Mapped.key`.
    program : Program
    run : callable
        Takes the list of numbers and arrays; returns the list of outputs.
    more : object
        What the subclass has to remember about the program.
    """

    structures: tuple[Operand, ...]
    others: Others
    program: Program
    run: Any
    more: Any = None

    @property
    def data(self) -> list[Operand]:
        """The other arguments that are arguments of the program, with a gradient that nobody
        wants.
        """
        return sorted(key for key, x in self.others.items() if type(x) is Mapped)

    def is_alike(self, structures: tuple[object, ...], others: Others) -> bool:
        """Whether this holds for other arguments like these: with other numbers in arrays."""
        like = dict(others)
        for key, x in self.others.items():
            y = others.get(key)
            if type(x) is type(y) is np.ndarray and (x.shape, x.dtype) == (y.shape, y.dtype):
                like[key] = x
        return self.holds_for(structures, like)

    def holds_for(self, structures: tuple[object, ...], others: Others) -> bool:
        if self.structures != structures or len(self.others) != len(others):
            return False
        return all(key in others and is_same(x, others[key]) for key, x in self.others.items())


def kept(
    x: Operand, copies: dict[int, np.ndarray] | None = None, *, is_new: bool = True
) -> Operand:
    """An argument as it is now: arrays, lists and dicts may be changed later. An array is copied
    once, and unless `is_new` only if it was.
    """
    copies = {} if copies is None else copies
    if type(x) in (tuple, list):
        return type(x)([kept(each, copies, is_new=is_new) for each in x])
    if type(x) is np.ndarray and not x.dtype.hasobject:
        if is_new and id(x) not in copies:
            copies[id(x)] = x.copy(order="K")
        return copies.get(id(x), x)
    if type(x) is dict:
        return {key: kept(each, copies, is_new=is_new) for key, each in x.items()}
    return x


def is_same(x: Operand, y: Operand) -> bool:
    if type(x) is np.ndarray and type(y) is np.ndarray and not x.dtype.hasobject:
        if x.nbytes <= _FEW_BYTES:
            return (x.shape, x.dtype, x.tobytes()) == (y.shape, y.dtype, y.tobytes())
        return bool(x.dtype == y.dtype and np.array_equal(_bits(x), _bits(y)))
    if x is y:
        return True
    if type(x) is Mapped and type(y) is np.ndarray:
        return bool(x.tree == y.shape and y.dtype == np.float64)
    if type(x) is not type(y):
        return False
    if type(x) in (tuple, list, Mapped):
        return len(x) == len(y) and all(map(is_same, x, y))
    if type(x) is dict:
        return list(x) == list(y) and all(map(is_same, x.values(), y.values()))
    # 0.0 equals -0.0, and a day equals 24 hours: equal values must look the same too.
    comparable = type(x) in _SAME_IF_EQUAL or (isinstance(x, np.generic) and x.dtype == y.dtype)
    return comparable and bool(x == y) and bool(x or repr(x) == repr(y))


def _bits(x: np.ndarray) -> np.ndarray:
    """An array of floats as integers, because 0.0 equals -0.0 and nan equals nothing."""
    return x.view(np.int64) if x.dtype == np.float64 else x


class Recordings:
    """The base of recorded functions: one recording for each combination of shapes and of other
    arguments.

    Parameters
    ----------
    function : callable
    runner : str
    """

    _eager: Function

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

    __get__ = DerivedFunction.__get__

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
        """The recording for a call. If several threads ask at once, one of them records."""
        with held(self._lock):
            known = self._found(structures, others)
            if known is None:
                # The program holds the copies, so that arrays of the caller may change.
                copies: dict[int, np.ndarray] = {}
                others = kept(others, copies)
                call = kept(call, copies, is_new=False)
                known = Recording(structures, others, *self._made(*call))
                # The newest comes first.
                self._keep([known, *self._recordings[: MOST_RECORDINGS - 1]])
            return known

    def _keep(self, recordings: list[Recording]) -> None:
        self._recordings = recordings

    @one_blas_thread()
    def map(self, *args: object, in_axes: InAxes = 0, workers: int | None = None) -> Result:
        """The results of many calls, natively and in threads where the native runner is installed.

        Parameters
        ----------
        *args
            The arguments of all calls. A mapped argument has one part for each call along an axis;
            it may be a structure of arrays. Any other argument is the same in every call.
        in_axes : int, None or tuple of them
            The axis along which an argument is mapped, or None for one that is not mapped: the same
            for all arguments, or one item for each, as in ``jax.vmap``.
        workers : int, optional
            Threads; by default as many as there are processors that this process may use.

        Returns
        -------
        ndarray or structure of them
            What one call returns, with a first axis for the calls. So is the gradient for an
            argument that is not mapped: it has a row for each call.

        Raises
        ------
        ShapeError
            If a mapped argument lacks the axis, or is of another length than the first; or if the
            length is zero and the shapes of the results are not those of the arguments.
        ValueError
            If nothing is mapped, or `in_axes` has not one item for each argument.
        TypeError
            If an item of `in_axes` is neither an integer nor None, or a mapped argument is not
            plain numbers.
        TapeError
            As by a call; and if the function looks at the value of a mapped argument.
        DomainError and others
            What the function raises at a point.

        Notes
        -----
        One recording serves all calls: a mapped argument is an argument of the program, whether it
        is differentiated or not. The function is called only for the recording and at points where
        the program ends or is not finite. The observations of a discrete density cannot be mapped.

        Examples
        --------
        The gradient of the loss of each observation, at the same parameters:

        >>> import numpy as np, varmat as vm
        >>> def loss(beta, x, y):
        ...     return np.log1p(np.exp(x @ beta)) - y * (x @ beta)
        >>> x, y = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, -1.0]]), np.array([1.0, 0.0, 1.0])
        >>> values, gradients = vm.recorded(loss).map(np.zeros(2), x, y, in_axes=(None, 0, 0))
        >>> gradients
        array([[-0.5,  0. ],
               [ 0.5,  1. ],
               [-0.5,  0.5]])
        """
        rows = ArgumentRows(f"{self.__name__}.map", args, in_axes)
        return rows.results(lambda rows: self._mapped(rows, workers), self._eager)

    def _mapped(self, rows: ArgumentRows, workers: int | None) -> tuple[ArgumentTree, np.ndarray]:
        """What `Rows.results` takes."""
        raise NotImplementedError

    def _made(self, *call: Operand) -> Made:
        """The program for a call, its runner, and what `Recording.more` is to be."""
        raise NotImplementedError


class WatchedTape(Tape):
    """A tape that refuses an entry at once if no program can have it as a step."""

    __slots__ = ()

    def append(self, entry: Entry) -> None:
        writer_of(entry[0])
        super().append(entry)

    def answering(self, function: Function, implementation: Function) -> Function:
        """What answers for a function of NumPy: recorded step by step, or as one call if it looks
        at a value.
        """

        def answer(*args: Operand, **settings: Any) -> Result:
            entries, assignments, looks = len(self), len(self.assignments), refusals.of_looks
            try:
                return implementation(*args, **settings)
            except RecordingError:
                del self[entries:], self.assignments[assignments:]
                made = called_function(function, args, settings)
                if made is None:
                    raise
                refusals.of_looks = looks
                return made

        return answer

    def tangent(
        self,
        by_rule: Thunk,
        op: Operation | Elementwise,
        args: Sequence[Operand],
        settings: Settings,
    ) -> Result:
        """The tangent of an operation on duals: recorded step by step, or as one call if the rule
        looks at a value.

        A user's rule is always recorded as a call: it may use what it saved at the recorded point.
        """
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
def watched(tape: Tape, *reached: object) -> Iterator[None]:
    """Refuse what no program can do, and a function that catches such a refusal; `reached` are the
    function and its arguments.
    """
    random = RandomStates(*reached)
    of_values, of_looks = refusals.of_values, refusals.of_looks
    # The scope is open and its variables refer to this tape: it changes its class.
    tape.__class__, tape.watch = WatchedTape, _looked_at
    try:
        yield
    except Exception:
        # The error says so itself. One that a solver catches, which then calls a function as it is
        # written, is none of a recording around this one.
        refusals.of_values, refusals.of_looks = of_values, of_looks
        raise
    if refusals.of_looks != of_looks:
        refuse_look()
    random.refuse_draws()
    if refusals.of_values != of_values:
        raise ElsewhereError
