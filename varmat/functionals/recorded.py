"""Functions recorded once: their value and gradient as a straight line of NumPy calls."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from varmat.core.arena import Arena
from varmat.core.errors import DomainError, refusals
from varmat.core.tape import Tape
from varmat.core.variables import outsiders
from varmat.functionals.recording import held, leaf_tree, recording, scalar_result
from varmat.functionals.reverse import Derived, is_plain, positions_of, value_and_grad
from varmat.functionals.structure import leaves_of, plain_tree, rebuilt, structure_of
from varmat.programs.conditions import compared, refuse_look
from varmat.programs.program import ElsewhereError, Node, Program, tuple_of, writer_of

__all__ = ["recorded"]

# Recordings that one function keeps, for so many combinations of shapes and of other arguments.
MOST_RECORDINGS = 16
_SAME_IF_EQUAL = (int, float, str, bool, type(None))


class Recording(NamedTuple):
    """A program and what it holds for.

    Attributes
    ----------
    structures : tuple
        Of the arguments that are differentiated with respect to: a shape is that of a number or an array.
    others : dict
        All other arguments, by position or name.
    run : callable
        Takes the numbers and arrays; returns the value and the tuple of their gradients.
    source : str
        The text of `run`.
    """

    structures: tuple[Any, ...]
    others: dict[Any, Any]
    run: Any
    source: str

    def holds_for(self, structures: Any, others: dict[Any, Any]) -> bool:
        if self.structures != structures or len(self.others) != len(others):
            return False
        return all(key in others and _is_same(x, others[key]) for key, x in self.others.items())


def _is_same(x: Any, y: Any) -> bool:
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if type(x) is tuple:
        return len(x) == len(y) and all(map(_is_same, x, y))
    # Zeros are equal, and have signs; so are a day and 24 hours, and have units.
    comparable = type(x) in _SAME_IF_EQUAL or (isinstance(x, np.generic) and x.dtype == y.dtype)
    return comparable and bool(x == y) and bool(x or repr(x) == repr(y))


class Recorded:
    """A function recorded once; made by `recorded`."""

    def __init__(self, function: Any, argnums: int | tuple[int, ...]) -> None:
        if not callable(function):
            raise TypeError(f"recorded: the argument is a {type(function).__name__}, but must be a function!")
        self.function = function
        self.argnums = argnums
        self.__name__ = f"recorded({getattr(function, '__name__', 'function')})"
        self._eager = value_and_grad(function, argnums)
        self._recordings: list[Recording] = []
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<varmat {self.__name__}>"

    __get__ = Derived.__get__

    def __reduce__(self) -> Any:
        # Programs are not pickled, but written anew.
        return type(self), (self.function, self.argnums)

    @property
    def source(self) -> str:
        """The text of the program that was made last, empty before the first call."""
        return self._recordings[0].source if self._recordings else ""

    def __call__(self, *args: Any, **named: Any) -> tuple[float, Any]:
        positions: Any = self.argnums if type(self.argnums) is tuple else (self.argnums,)
        leaves: Any = [args[i] for i in positions if type(i) is int and 0 <= i < len(args) and is_plain(args[i])]
        direct = len(leaves) == len(positions)
        if direct:
            structures = tuple([() if type(x) is float else x.shape for x in leaves])
        else:
            positions = positions_of("recorded", self.argnums, len(args))
            trees = [plain_tree("recorded", f"argument {i + 1}", args[i]) for i in positions]
            leaves = leaves_of(trees)
            structures = tuple(map(structure_of, trees))
        others: dict[Any, Any] = named
        if len(args) > len({*positions}):
            others = {**named, **{i: x for i, x in enumerate(args) if i not in positions}}
        known = self._found(structures, others)
        if known is None:
            try:
                known = self._recording(structures, others, positions, args, named)
            except ElsewhereError:
                return self._eager(*args, **named)
        try:
            with np.errstate(all="ignore"):
                value, gradients = known.run(*leaves)
            if not math.isfinite(value):
                raise ElsewhereError
        except (ArithmeticError, ValueError, ElsewhereError):
            # Where Python's floats raise, an argument is refused, a density is zero, or a sum without its factor overflows: as
            # it is written.
            return self._eager(*args, **named)
        if not direct:
            following = iter(gradients)
            gradients = tuple(rebuilt(tree, [next(following) for _ in leaves_of(tree)]) for tree in trees)
        return value, gradients if type(self.argnums) is tuple else gradients[0]

    def _found(self, structures: Any, others: dict[Any, Any]) -> Recording | None:
        for known in self._recordings:
            if known.holds_for(structures, others):
                return known
        return None

    def _recording(self, structures: Any, others: dict[Any, Any], *call: Any) -> Recording:
        """What several threads want at once is recorded by one of them."""
        with held(self._lock):
            known = self._found(structures, others)
            if known is None:
                known = Recording(structures, others, *record(self.function, *call))
                # The newest comes first.
                self._recordings = [known, *self._recordings[: MOST_RECORDINGS - 1]]
            return known


class RecordedIfPossible(Recorded):
    """A function recorded once; evaluated anew each time if it cannot be."""

    _possible = True

    def __call__(self, *args: Any, **named: Any) -> tuple[float, Any]:
        if self._possible:
            try:
                return super().__call__(*args, **named)
            except DomainError:
                raise
            except Exception:  # of the function itself, or because a comparison is another object while it is recorded
                pass
        result = self._eager(*args, **named)
        self._possible = False
        return result


class WatchedTape(Tape):
    """A tape that refuses entries which cannot be written as a program, where they are made."""

    __slots__ = ()

    def append(self, entry: Any) -> None:
        writer_of(entry[0])
        super().append(entry)


def _looked_at(variable: Any, ufunc: Any = None, operands: Any = ()) -> Any:
    """The outcome of a comparison; other looks are refused, but at what a nested scope computes without the variables here."""
    scopes = list(takewhile(lambda tape: type(tape) is not WatchedTape, variable._tape.chain()))
    if scopes and not any(type(x._tape) is WatchedTape for tape in scopes for x in outsiders(tape)):
        return None
    return compared(ufunc, operands)


def record(function: Any, positions: Sequence[int], args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, str]:
    """The value and the gradients with respect to the arguments at some positions as a program, and its text.

    Raises `ElsewhereError` if the function catches the refusal of a value: where nothing is refused it goes another way.
    """
    of_values, of_looks = refusals.of_values, refusals.of_looks
    with recording() as tape:
        # The memory of a recording goes back to the system: its program does not want it, nor perhaps anything else in this thread.
        tape.arena.release(tape.mark)
        tape.arena = Arena()
        tape.mark = tape.arena.mark()
        given = list(args)
        for i in dict.fromkeys(positions):
            given[i] = leaf_tree("recorded", f"argument {i + 1}", args[i], tape)
        variables = leaves_of([given[i] for i in positions])
        # The scope is open already, and all its variables know this tape.
        tape.__class__, tape.watch = WatchedTape, _looked_at
        y = scalar_result("recorded", function(*given, **named), tape)
        if refusals.of_looks != of_looks:
            refuse_look()
        if refusals.of_values != of_values:
            raise ElsewhereError
        return written(tape, variables, y)


def written(tape: Tape, variables: list[Any], y: Any) -> tuple[Any, str]:
    """The program of a tape as a function of its leaves, and its text."""
    program = Program()
    nodes: dict[int, Node] = {}
    parameters = []
    for x in variables:
        # What is differentiated with respect to twice arrives twice.
        known = id(x) in nodes
        nodes[id(x)] = nodes[id(x)] if known else program.node(x)
        parameters.append(program.new_name("v") if known else nodes[id(x)].name)
    leaves = [nodes[id(x)] for x in variables]
    if type(y) is float:
        gradients = [f"zeros({leaf.shape})" if leaf.shape else "0.0" for leaf in leaves]
        program.write(f"return {program.bind(y)}, {tuple_of(gradients)}")
        return program.compiled(parameters)
    # Assignments are undone, so that each has its own values beside what it overwrote; nobody reads the variables any more.
    for assignment in reversed(tape.assignments):
        assignment.undo()
    for leaf in tape.leaves[len(variables) :]:
        program.constant(leaf)
    for entry in tape:
        program.entry(*entry)
    program.finish(program.find(y), leaves)
    return program.compiled(parameters)


def recorded(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Recorded:
    """Value and gradient of a scalar function that is recorded once, and evaluated without it afterwards.

    The first call runs `f` on variables, as `value_and_grad` does at every call, and writes what was recorded, forward and reverse,
    as a straight line of NumPy calls. Later calls run that. For small arrays this takes a fraction of the time, for most of
    what `value_and_grad` takes is recording.

    Parameters
    ----------
    f : callable
        Returns a scalar. It must compute the same operations at every call, whatever the values of its arguments: see Notes.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns ``(value, gradient)``, as in `value_and_grad`. For other shapes or structures, and
        other objects as the other arguments, `f` is recorded anew; the last 16 recordings are kept. The attribute ``source`` is
        the text of the program.

    Raises
    ------
    TapeError
        If `f` looks at the value of a variable: with ``if``, ``.val``, ``.grad()``, a mask as an index, or a function that does so,
        as `numpy.sort`; comparisons may select, in `numpy.where`. And for `reverse_pass_callback` and `MatVar`, which cannot be
        written as a program.
    DomainError and others
        What `f` raises.

    Notes
    -----
    What `f` does apart from operations on its arguments happens at the recording only. Other arrays that it reads are held by
    reference: a new array in their place, another global value, or a random number, is not seen, and new values in the same array
    not everywhere. Where the program
    comes to an argument that is refused, or to a density of zero, `f` itself is evaluated. NumPy's warnings appear at the recording
    only.

    Calls from several threads at once are safe.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x):
    ...     return np.sum(x[1:] * x[:-1]) + np.exp(x[0])
    >>> gradient = vm.recorded(f)
    >>> gradient(np.array([0.0, 1.0, 2.0]))
    (3.0, array([2., 2., 1.]))
    >>> gradient(np.array([0.0, 2.0, 2.0]))
    (5.0, array([3., 2., 2.]))
    >>> f = vm.recorded(lambda x: np.sum(np.exp(-0.5 * x**2)))
    >>> value, gradient = f(np.array([0.0, 1.0]))
    >>> print(f.source)
    def gradient(v0):
        v1 = (v0 * v0)
        v3 = (k2 * v1)
        v4 = exp(v3)
        sum0 = total(v4)
        s5 = float((sum0))
        v6 = s5
        a8 = ((k7 * v4) * v0)
        return v6, (a8,)
    """
    return Recorded(f, argnums)
