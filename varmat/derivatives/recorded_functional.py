"""A functional of a function, recorded once: its programs, and the calls that they hold for."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.derivatives.bound_calls import BoundCalls
from varmat.derivatives.inputs_and_outputs import holds_outer, plain_copy
from varmat.derivatives.recorded_programs import (
    Written,
    assembler,
    first_leaf,
    hessian_program,
    jacobian_program,
    product_program,
    pullback_program,
    pushforward_program,
    record,
    sparse_jacobian_program,
)
from varmat.derivatives.recorded_rows import (
    ArgumentRows,
    Mapped,
    at_points,
    check_threads,
    copied,
    is_same,
    run_rows,
)
from varmat.derivatives.reverse import DerivedFunction, is_plain, positions_of, value_and_grad
from varmat.derivatives.structure import (
    Argnums,
    ArgumentTree,
    leaves_of,
    matching_leaves,
    plain_tree,
    rebuilt,
    structure_of,
    template_of,
)
from varmat.interrupts import Attempt, from_signal
from varmat.locks import held
from varmat.programs.ir.program import ElsewhereError, Program, RecordingError
from varmat.programs.passes.either import either
from varmat.programs.record.conditions import Branches
from varmat.programs.run import check_runner, runner_for
from varmat.typing import Function, Operand, Result, Settings, Shape, Threads

# The most recordings that one function keeps, and the most of them that differ in data only.
_MOST_RECORDINGS, _MOST_DATA = 16, 3
# Branches that a function takes in a call, and paths through it that are recorded, at most.
_MOST_BRANCHES, _MOST_PATHS = 4, 8
# Elements of data from which comparing them takes longer than what a program saves by holding them.
_LARGE = 1 << 15

Others: TypeAlias = dict[Any, Any]  # arguments by position or name
InAxes: TypeAlias = int | tuple[int | None, ...] | None
T = TypeVar("T")


class Functional(NamedTuple):
    """The call of a functional, and the program that it becomes.

    Attributes
    ----------
    write : callable, optional
        Makes the program of a function, its points, other arguments and keywords; None for the
        gradient.
    title : str
        The name of the point in messages, with positions in place of ``{0}`` and ``{1}``.
    vector : str
        The name of the vector in messages, if the call has one.
    is_of_primals : bool
        Whether all arguments of the function are its point.
    """

    write: Function | None = None
    title: str = "argument {1}"
    vector: str = ""
    is_of_primals: bool = False


_FUNCTIONALS = {
    "hessian": Functional(hessian_program, "x"),
    "hessian_times_vector": Functional(product_program, "x", "v"),
    "hessp": Functional(product_program, "x", "v"),
    "jacobian": Functional(jacobian_program, "x"),
    "sparse_jacobian": Functional(sparse_jacobian_program, "x"),
    "jvp": Functional(pushforward_program, "primals[{0}]", "tangents", is_of_primals=True),
    "vjp": Functional(pullback_program, "primals[{0}]", is_of_primals=True),
}


@dataclass(slots=True)
class RecordedCall:
    """A call of a functional.

    Attributes
    ----------
    args, named : sequence, dict
        The arguments of the function; the point's are plain.
    positions, points : sequence of int, tuple
        The point: its positions among them, and its values.
    structures, others : tuple, dict
        As in a `Recording`.
    leaves : list
        The leaves of the point and the vector.
    """

    args: Sequence[Any]
    named: Settings
    positions: Sequence[int]
    points: tuple[Any, ...]
    structures: tuple[object, ...]
    others: Others
    leaves: list[Operand]

    def copied(self) -> RecordedCall:
        """Return the same call with copies of arrays that the caller may change, because the
        program holds them.
        """
        if not self.others:
            return self
        copies: dict[int, np.ndarray] = {}
        others = copied(self.others, copies)
        args, kwargs = copied([self.args, self.named], copies, is_new=False)
        return replace(self, args=args, named=kwargs, others=others)


@dataclass(eq=False)
class Recording:
    """A program, and what it holds for.

    Attributes
    ----------
    structures : tuple
        The structures of the arguments to differentiate with respect to; for a number or an array
        its shape.
    others : dict
        All other arguments, by position or name; those with rows as `Mapped.key`.
    written : Written
    runner : str
    paths : list of tuple
        The branches of the function that the program takes, see `Branches.taken`.
    run : callable
        Takes the list of numbers and arrays; returns the list of outputs.
    results : callable
        Makes the results of the list of outputs but the first.
    values : Recording, optional
        The program of the values only, for a pull-back.
    data : list
        Positions of the other arguments that are arguments of the program.
    """

    structures: tuple[Operand, ...]
    others: Others
    written: Written
    runner: str
    paths: list[tuple[bool, ...]]

    def __post_init__(self) -> None:
        written = self.written
        self.run: Any = runner_for(written.program, self.runner)
        self.results = assembler(written.template)
        self.data = sorted(key for key, x in self.others.items() if type(x) is Mapped)
        self.values = written.values and Recording(
            self.structures, {}, written.values, self.runner, []
        )

    @property
    def program(self) -> Program:
        return self.written.program

    def is_alike(self, structures: tuple[object, ...], others: Others) -> bool:
        """Return whether this holds for arguments that differ only in the numbers in arrays."""
        like = dict(others)
        for key, x in self.others.items():
            y = others.get(key)
            if type(x) is type(y) is np.ndarray and (x.shape, x.dtype) == (y.shape, y.dtype):
                like[key] = x
        return self.holds_for(structures, like)

    def holds_for(self, structures: tuple[object, ...], others: Others) -> bool:
        if self.structures != structures or len(self.others) != len(others):
            return False
        for key, x in self.others.items():
            if key not in others or not is_same(x, others[key]):
                return False
        return True


class Recorded(BoundCalls, Generic[T]):
    """A functional of a function, recorded once for each combination of shapes and of other
    arguments; made by `recorded`.

    Parameters
    ----------
    function : callable or DerivedFunction
        The result of a functional for a function; any other function means its `value_and_grad`.
    argnums : int or tuple of int, optional
        As in `value_and_grad`.
    runner : str
    """

    def __init__(
        self, function: Function, argnums: Argnums | None = None, runner: str = "auto"
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"recorded: the argument is a {type(function).__name__}, but must be a function!"
            )
        functional: Any = function
        if type(function) is not DerivedFunction:
            functional = value_and_grad(function, 0 if argnums is None else argnums)
        self._eager: Callable[..., T] = functional
        self.function, self.argnums = functional.__wrapped__, functional.argnums
        self.runner = check_runner("recorded", runner)
        self._has_value = functional.functional == "value_and_grad"
        self._kind = _FUNCTIONALS.get(functional.functional, Functional())
        self._is_gradient = self._kind.write is None
        self._name = "recorded" if self._is_gradient else functional.functional
        source = self.function if self._has_value else functional
        self.__name__ = f"recorded({getattr(source, '__name__', 'function')})"
        self._recordings: list[Recording] = []
        # The shortcut for the most common calls, which take one array and perhaps truth values:
        # the runner by shape and truth values.
        self._by_shape: dict[tuple[object, ...], Any] = {}
        self.branches = False  # on values
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[object, ...]:
        # Programs are not pickled: the function is recorded again.
        return type(self), (self._eager, None, self.runner)

    def __repr__(self) -> str:
        return f"<varmat {self.__name__}>"

    __get__ = DerivedFunction.__get__

    def runner_of(self, shape: Shape) -> Any:
        """Return the runner of the value and gradient for a single vector, if it was recorded."""
        return self._by_shape.get((shape,)) if self._is_gradient and self._has_value else None

    @property
    def program(self) -> Program | None:
        """The program that was made last; None before the first call. Printed, it is a list of its
        steps.
        """
        return self._recordings[0].program if self._recordings else None

    # --- calls ---

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        x, others = (args[0], args[1:]) if args else (None, ())
        if (
            type(x) is np.ndarray
            and x.dtype is FLOAT64
            and not kwargs
            and (not others or all(type(item) is bool for item in others))
        ):
            run = self._by_shape.get((x.shape, *others))
            if run is not None:
                try:
                    value, result = run.at(x)
                    if math.isfinite(value) and (self._is_gradient or np.isfinite(result).all()):
                        return (value, result) if self._has_value else result  # type: ignore[return-value]
                except ElsewhereError:
                    pass
                if not self.branches:
                    return self._eager(*args)
        return self._general(args, kwargs)  # type: ignore[no-any-return]

    def _general(self, args: Sequence[object], kwargs: Settings) -> Any:
        entry = None
        try:
            call = self._call(args, kwargs)
            entry = self._found(call) or self._recording(call)
            if entry.values is not None:
                return self._pulled_back(entry, call.points)
            arguments = [*call.leaves, *[args[i] for i in entry.data]]
            value, *output = _outputs(entry, arguments, 1 if self._is_gradient else None)
            return (value, entry.results(output)) if self._has_value else entry.results(output)
        except ElsewhereError:
            # An error, a density of zero, an overflow, or another branch: the function decides.
            result = self._eager(*args, **kwargs)
            if entry is not None:
                self._follow(entry, call)
            return result

    def _call(self, args: Sequence[Any], kwargs: Settings) -> RecordedCall:
        """Split a call into its parts. Raise `ElsewhereError` if something is missing, because the
        functional says what, and inside another functional.
        """
        kind, outer, vector = self._kind, args, None
        positions: Any = self.argnums if type(self.argnums) is tuple else (self.argnums,)
        if (kind.is_of_primals and kwargs) or len(args) < bool(kind.write) + bool(kind.vector):
            raise ElsewhereError
        if kind.vector:
            x, vector, *more = args
            if kind.is_of_primals and (more or not isinstance(x, (tuple, list))):
                raise ElsewhereError
            args = x if kind.is_of_primals else (x, *more)
        if kind.is_of_primals:
            positions = range(len(args))
        points = leaves = [
            args[i]
            for i in positions
            if type(i) is int and 0 <= i < len(args) and is_plain(args[i])
        ]
        structures = tuple([() if type(x) is float else x.shape for x in leaves])
        if len(points) < len(positions) or not (self._is_gradient or all(map(is_plain, outer))):
            if self._is_gradient:
                positions = positions_of(self._name, self.argnums, len(args))
            if holds_outer(tuple(outer)):
                raise ElsewhereError
            args = [*args]
            for i in positions:
                args[i] = plain_tree(self._name, kind.title.format(i, i + 1), args[i])
            points = [args[i] for i in positions]
            structures, leaves = tuple(map(structure_of, points)), leaves_of(points)
        if kind.vector:
            like = tuple(points) if kind.is_of_primals else points[0]
            leaves = [*leaves, *matching_leaves(self._name, kind.vector, vector, like)]
        others: Others = kwargs
        if len(args) > len({*positions}):
            others = others.copy()
            for i, x in enumerate(args):
                if i not in positions:
                    others[i] = Mapped.key(x) if type(x) is Mapped else x
        return RecordedCall(args, kwargs, positions, tuple(points), structures, others, leaves)

    def _pulled_back(self, entry: Recording, args: Sequence[object]) -> Any:
        """Return the values at a point, and the function that pulls cotangents back."""
        assert entry.values is not None
        points = tuple(rebuilt(args, map(plain_copy, leaves_of(args))))
        leaves = leaves_of(points)
        _, *values = _outputs(entry.values, leaves)

        def pullback(cotangent: ArgumentTree) -> Any:
            weights = self._cotangent(entry, cotangent)
            try:
                _, *result = _outputs(entry, [*leaves, *weights])
            except ElsewhereError:
                return self._eager(*points)[1](cotangent)  # type: ignore[index]
            return entry.results(result)

        return entry.values.results(values), pullback

    def _cotangent(self, entry: Recording, cotangent: ArgumentTree) -> list[Operand]:
        assert entry.values is not None
        template = entry.values.written.template
        return matching_leaves(self._name, "the cotangent", cotangent, template)

    # --- recordings ---

    def known(self, x: np.ndarray, *others: object) -> Recording | None:
        """Return the recording for calls with such an array and these other arguments, or None."""
        return self._found(self._call((x, *others), {}))

    def _found(self, call: RecordedCall) -> Recording | None:
        for entry in self._recordings:
            if entry.holds_for(call.structures, call.others):
                return entry
        return None

    def _recording(self, call: RecordedCall, *, of_rows: bool = False) -> Recording:
        """Return the recording for a call. If several threads need one at once, one of them
        records.

        For a gradient, data that differ from an earlier call, or are large, become arguments of the
        program if the function can be recorded so: it then holds for all data of their shapes, and
        nothing is compared. Raise `ElsewhereError` where recording does not pay, because data that
        cannot be arguments differ again and again."""
        with held(self._lock):
            entry = self._found(call)
            if entry is not None:
                return entry
            if self._is_gradient and not of_rows:
                entry = self._recording_of_data(call)
            if entry is None:
                entry = self._recorded(call.copied())
            self._keep([entry, *self._recordings[: _MOST_RECORDINGS - 1]])  # the newest comes first
            return entry

    def _recorded(self, call: RecordedCall) -> Recording:
        written, taken = self._written(call)
        return Recording(call.structures, call.others, written, self.runner, [taken])

    def _written(self, call: RecordedCall) -> tuple[Written, tuple[bool, ...]]:
        """Write the program for a call; return also the branches it takes."""
        followed, count = Branches(_MOST_BRANCHES), len(call.positions)
        if self._kind.write is not None:
            args = call.args[:count], call.args[count:], call.named
            return self._kind.write(self._name, self.function, *args), ()
        program = record(self.function, call.positions, call.args, call.named, follows=followed)
        point: Any = call.points if type(self.argnums) is tuple else call.points[0]
        self.branches |= bool(followed.decisions)
        return Written(program, template_of(point)), followed.taken

    def _recording_of_data(self, call: RecordedCall) -> Recording | None:
        """Record with data as arguments of the program; return None if that is not possible."""
        others = call.others
        alike = [
            recording
            for recording in self._recordings
            if recording.is_alike(call.structures, others)
        ]
        if len(alike) >= _MOST_DATA:
            raise ElsewhereError
        data = [i for i, x in others.items() if type(i) is int and is_plain(x) and np.ndim(x)]
        if not data or not call.points:
            return None
        if not alike and max(others[i].size for i in data) < _LARGE:
            return None
        args = [Mapped(x) if i in data else x for i, x in enumerate(call.args)]
        keys = {i: Mapped.key(args[i]) if i in data else copied(x) for i, x in others.items()}
        with Attempt():  # the function may raise any error, and none for plain data
            entry = self._recorded(replace(call, args=args, others=keys))
            expected = leaves_of(self._eager(*call.args, **call.named))
            result = entry.run([*call.leaves, *(call.args[i] for i in data)])[not self._has_value :]
            # Terms of data only are dropped from densities without constants, terms of variables
            # not.
            if all(np.allclose(x, y, 1e-8, 1e-12) for x, y in zip(result, expected, strict=True)):
                return entry
        return None

    def _follow(self, entry: Recording, call: RecordedCall) -> Recording | None:
        """Extend a recording to another branch of the function; return None if it is a known one,
        or if it has too many.
        """
        paths: list[tuple[bool, ...]] = entry.paths
        if not any(paths) or len(paths) >= _MOST_PATHS:
            return None
        args = [Mapped(x) if i in entry.data else x for i, x in enumerate(call.args)]
        with held(self._lock):
            written, taken = None, tuple[bool, ...]()
            with suppress(RecordingError):
                written, taken = self._written(replace(call, args=args))
            if written is None or entry not in self._recordings or taken in paths:
                # Points where the function raises or is not finite are not tried again and again.
                paths.append(taken)
                return None
            written = Written(either(entry.program, written.program), written.template)
            paths = [*paths, taken]
            result = Recording(entry.structures, entry.others, written, self.runner, paths)
            self._keep([result if x is entry else x for x in self._recordings])
            return result

    def _keep(self, recordings: list[Recording]) -> None:
        self._recordings = recordings
        self._by_shape = {
            (recording.structures[0], *recording.others.values()): recording.run
            for recording in recordings
            if self.argnums == 0
            and not self._kind.vector
            and not self._kind.is_of_primals
            and recording.results is first_leaf
            and all(type(x) is bool for x in recording.others.values())
            and [*recording.others] == [*range(1, len(recording.others) + 1)]
        }

    # --- many calls ---

    def map(self, *args: object, in_axes: InAxes = 0, executor: Threads = None) -> Result:
        """Evaluate many calls, natively and in threads where the native runner is installed.

        Parameters
        ----------
        *args
            The arguments of all calls. A mapped argument has one part for each call along an axis;
            it may be a structure of arrays. Any other argument is the same in every call.
        in_axes : int, None or tuple of them
            The axis along which an argument is mapped, or None for one that is not mapped: the same
            for all arguments, or one item for each, as in ``jax.vmap``.
        executor : concurrent.futures.ThreadPoolExecutor, str or None
            Whose threads compute: an executor's, ``"threads"``, one for each processor, or
            ``"serial"``, this one. By default more than this one where that takes less time.

        Returns
        -------
        ndarray or structure of them
            What one call returns, with a first axis for the calls. So is the gradient for an
            argument that is not mapped: it has a row for each call.

        Raises
        ------
        ShapeError
            If a mapped argument lacks the axis, or is of another length than the first; or if the
            length is zero and the shapes of the results differ from the arguments'.
        ValueError
            If nothing is mapped, or `in_axes` has not one item for each argument.
        TypeError
            If an item of `in_axes` is neither an integer nor None, or a mapped argument is not
            plain numbers; or if `executor` has workers other than threads.
        TapeError
            As by a call; and if the function looks at the value of a mapped argument.
        DomainError and others
            What the function raises at a point.

        Notes
        -----
        One recording serves all calls: mapped arguments are arguments of the program. The function
        is called only for the recording and at points where the program ends or is not finite. The
        observations of a discrete density cannot be mapped.

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
        check_threads(f"{self.__name__}.map", executor)
        result = at_points(self.runner_of, args, executor) if in_axes == 0 else None
        if result is not None:
            return result
        rows = ArgumentRows(f"{self.__name__}.map", args, in_axes)
        if self._kind.write is not pullback_program:
            return rows.results(lambda rows: self._mapped(rows, executor), self._eager)

        def pullback(cotangent: ArgumentTree) -> ArgumentTree:
            both = ArgumentRows(rows.name, (*args, cotangent), (*rows.axes, 0))
            return both.results(
                lambda both: self._mapped(both, executor, len(args)),
                lambda *call: self._eager(*call[:-1])[1](call[-1]),  # type: ignore[index]
            )

        values = rows.results(
            lambda rows: self._mapped(rows, executor),
            lambda *call: self._eager(*call)[0],  # type: ignore[index]
        )
        return values, pullback

    def _mapped(
        self, rows: ArgumentRows, executor: Threads, cotangent: int | None = None
    ) -> tuple[ArgumentTree, np.ndarray]:
        """Compute the results of calls, and which of them hold. With the position of a cotangent,
        pull it back.
        """
        points: Sequence[int] = (0,)
        if self._kind.write is pullback_program:
            points = range(len(rows.args) if cotangent is None else cotangent)
        elif self._is_gradient:
            points = positions_of("recorded", self.argnums, len(rows.args))
            if not rows.count:
                trees = tuple(rows.mapped.get(i, rows.args[i]) for i in points)
                empty = rebuilt(trees, (np.empty(x.shape) for x in rows.leaves(*points)))
                result: Any = empty if type(self.argnums) is tuple else empty[0]
                return ((np.empty(0), result) if self._has_value else result), np.empty(0, bool)
        vector = [1] if self._kind.vector else [] if cotangent is None else [cotangent]
        first, data = rows.first([*points, *vector])
        call = self._call(first[:cotangent], {})
        recording = self._found(call) or self._recording(call, of_rows=True)
        entry: Recording | None = recording
        if cotangent is None:
            entry = recording.values or recording
        else:
            self._cotangent(recording, first[cotangent])
        arguments = [*rows.leaves(*points), *data, *rows.leaves(*vector)]
        while entry is not None:
            run, template = entry.run, entry.written.template
            values, result, holds = run_rows(run, arguments, template, executor, self._is_gradient)
            left = np.flatnonzero(~holds)[:1].tolist() if self._is_gradient else []
            # Recorded again for each way that a call takes.
            entry = self._follow(entry, self._call(rows.call(left[0]), {})) if left else None
        return ((values, result) if self._has_value else result), holds


def _outputs(
    entry: Recording, arguments: Sequence[object], checked: int | None = None
) -> list[Operand]:
    """Return the outputs of a run. Raise `ElsewhereError` unless the first ones, by default all,
    are finite, and where Python's floats raise or an argument is invalid.
    """
    try:
        result: list[Operand] = entry.run(arguments)
    except (ArithmeticError, ValueError) as error:
        if from_signal(error):
            raise
        raise ElsewhereError from error
    for x in result[:checked]:
        if not (math.isfinite(x) if type(x) is float else np.isfinite(x).all()):
            raise ElsewhereError
    return result
