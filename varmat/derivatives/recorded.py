"""Functions recorded once: their value and gradient as a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.errors import DomainError
from varmat.core.tape import Tape, sweep
from varmat.core.variables import VARIABLES, borrow_leaf
from varmat.derivatives.inputs_and_outputs import leaf_tree, outputs, scalar_result
from varmat.derivatives.nested import holds_outer
from varmat.derivatives.recorded_base import (
    MOST_RECORDINGS,
    Others,
    Recording,
    Recordings,
    is_same,
    kept,
    recording_to_write,
    watched,
)
from varmat.derivatives.recorded_derivatives import DERIVATIVES, RecordedFunctional
from varmat.derivatives.recorded_programs import with_leaves
from varmat.derivatives.recorded_rows import ArgumentRows, Mapped
from varmat.derivatives.reverse import (
    DerivedFunction,
    fixed_positions,
    gradients_with_aux,
    is_plain,
    positions_of,
    value_and_grad,
    with_aux,
)
from varmat.derivatives.structure import (
    Argnums,
    ArgumentTree,
    leaves_of,
    plain_tree,
    rebuilt,
    structure_of,
)
from varmat.interrupts import from_signal
from varmat.locks import held
from varmat.programs.ir.program import ElsewhereError, Program, RecordingError
from varmat.programs.passes import optimised
from varmat.programs.passes.either import either
from varmat.programs.record.conditions import Branches, following
from varmat.programs.record.tape_programs import program_of
from varmat.programs.run import runner_for
from varmat.typing import Function, Operand, Result, Settings, ValueAndGrad

__all__ = ["recorded"]

# Recordings that differ in data only, at most.
_MOST_DATA = 3
# Branches that a function takes in a call, and ways through it that are recorded, at most.
_MOST_BRANCHES, _MOST_WAYS = 4, 8
# Elements of data from which comparing them takes longer than what a program saves by holding them.
_LARGE = 1 << 15

T = TypeVar("T")


class Recorded(Recordings):
    """A function recorded once; made by `recorded`."""

    _eager: Callable[..., tuple[float, Result]]

    def __init__(self, function: Function, argnums: Argnums, runner: str = "auto") -> None:
        super().__init__(function, runner)
        self.argnums = fixed_positions(argnums)
        self._eager = value_and_grad(function, self.argnums)
        # The shortcut for the most common calls, which take one array and perhaps truth values:
        # the runner by shape and truth values.
        self._by_shape: dict[tuple[object, ...], Function] = {}
        # Whether the function branches on values.
        self.branches = False

    def __reduce__(self) -> tuple[object, ...]:
        # Programs are not pickled: the function is recorded anew.
        return type(self), (self.function, self.argnums, self.runner)

    def __call__(self, *args: object, **named: Any) -> tuple[float, Result]:
        x, others = (args[0], args[1:]) if args else (None, ())
        if (
            type(x) is np.ndarray
            and x.dtype is FLOAT64
            and not named
            and (not others or all(type(each) is bool for each in others))
        ):
            run = self._by_shape.get((x.shape, *others))
            if run is not None:
                with suppress(ElsewhereError):
                    value, gradient = run((x,))
                    if math.isfinite(value):
                        return value, gradient
                if not self.branches:
                    return self._eager(*args)
        positions: Any = self.argnums if type(self.argnums) is tuple else (self.argnums,)
        leaves: list[Operand] = [
            args[i]
            for i in positions
            if type(i) is int and 0 <= i < len(args) and is_plain(args[i])
        ]
        direct = len(leaves) == len(positions)
        if direct:
            structures = tuple([() if type(x) is float else x.shape for x in leaves])
        else:
            positions = positions_of("recorded", self.argnums, len(args))
            if holds_outer(args):  # inside another functional
                return self._eager(*args, **named)
            trees = [plain_tree("recorded", f"argument {i + 1}", args[i]) for i in positions]
            leaves = leaves_of(trees)
            structures = tuple(map(structure_of, trees))
        settings: Others = named
        if len(args) > len({*positions}):
            settings = {**named, **{i: x for i, x in enumerate(args) if i not in positions}}
        known = self._found(structures, settings)
        if known is None:
            try:
                known = self._recording(structures, settings, positions, args, named)
            except ElsewhereError:
                return self._eager(*args, **named)
        try:
            value, *gradients = known.run([*leaves, *(args[i] for i in known.data)])
            if not math.isfinite(value):
                raise ElsewhereError
        except (ArithmeticError, ValueError, ElsewhereError) as error:
            if from_signal(error):
                raise
            # Floats raised, a refusal, a density of zero, an overflow, or another branch: the
            # function decides.
            result = self._eager(*args, **named)
            self._follow(known, positions, args, named)
            return result
        if not direct:
            following = iter(gradients)
            gradients = [
                rebuilt(tree, [next(following) for _ in leaves_of(tree)]) for tree in trees
            ]
        return value, tuple(gradients) if type(self.argnums) is tuple else gradients[0]

    def _recording(
        self, structures: tuple[object, ...], others: Others, *call: Operand
    ) -> Recording:
        """The recording for a call. Data that differ from an earlier call, or are large, become
        arguments of the program if the function can be recorded so: it then holds for all data of
        their shapes, and nothing is compared. Raises `ElsewhereError` where recording does not pay,
        because data that cannot be arguments differ again and again.
        """
        data = [i for i, x in others.items() if type(i) is int and is_plain(x) and np.ndim(x)]
        with held(self._lock):
            alike = [known for known in self._recordings if known.is_alike(structures, others)]
            if len(alike) >= _MOST_DATA:
                raise ElsewhereError
            if data and call[0] and (alike or max(others[i].size for i in data) >= _LARGE):
                known = self._recording_of_data(structures, others, data, *call)
                if known is not None:
                    self._keep([known, *self._recordings[: MOST_RECORDINGS - 1]])
                    return known
            return super()._recording(structures, others, *call)

    def _recording_of_data(
        self,
        structures: tuple[object, ...],
        others: Others,
        data: Sequence[int],
        positions: Sequence[int],
        args: Sequence[Operand],
        named: Settings,
    ) -> Recording | None:
        """A recording with data as arguments of the program; None if there is none."""
        given = [Mapped(x) if i in data else x for i, x in enumerate(args)]
        try:
            program, run, ways = self._made(positions, given, named)
        # Any of the function, which may raise none for plain data.
        except Exception as error:
            if from_signal(error):
                raise
            return None
        value, gradients = self._eager(*args, **named)
        expected = [value, *leaves_of(gradients)]
        leaves = leaves_of([args[i] for i in positions])
        try:
            found = run([*leaves, *(args[i] for i in data)])
        except (ArithmeticError, ValueError, ElsewhereError) as error:
            if from_signal(error):
                raise
            return None
        # Terms of data alone are dropped from densities without constants, those of variables not.
        if not all(np.allclose(x, y, 1e-8, 1e-12) for x, y in zip(found, expected, strict=True)):
            return None
        keys = {i: Mapped.key(given[i]) if i in data else kept(x) for i, x in others.items()}
        return Recording(structures, keys, program, run, ways)

    def _mapped(
        self, rows: ArgumentRows, workers: int | None
    ) -> tuple[tuple[np.ndarray, ArgumentTree], np.ndarray]:
        positions = positions_of("recorded", self.argnums, len(rows.args))
        arguments = [rows.leaves(i) for i in positions]
        values = np.empty(rows.count)
        results = [[np.empty(x.shape) for x in each] for each in arguments]
        if rows.count:
            call, data = rows.first(positions)
            structures = tuple([structure_of(call[i]) for i in positions])
            others = {i: Mapped.key(x) for i, x in enumerate(call) if i not in positions}
            known: Recording | None = super()._recording(structures, others, positions, call, {})
            while known is not None:
                known.run.map([*chain(*arguments), *data], [values, *chain(*results)], workers)
                left = np.flatnonzero(~np.isfinite(values))[:1].tolist()
                # Recorded again for each way that a call takes.
                known = self._follow(known, positions, rows.call(left[0]), {}) if left else None
        trees = [rows.mapped.get(i, rows.args[i]) for i in positions]
        gradients = tuple(map(rebuilt, trees, results))
        found = gradients if type(self.argnums) is tuple else gradients[0]
        return (values, found), np.isfinite(values)

    def known(self, x: np.ndarray, *others: object) -> Recording | None:
        """The recording for calls with such an array and these other arguments, if there is one."""
        return self._found((x.shape,), dict(enumerate(others, 1)))

    def _made(self, *call: Operand) -> tuple[Program, Function, list[tuple[bool, ...]]]:
        followed = Branches(_MOST_BRANCHES)
        program = record(self.function, *call, follows=followed)
        self.branches |= bool(followed.ways)
        return program, runner_for(program, self.runner), [followed.taken]

    def _follow(
        self, known: Recording, positions: Sequence[int], args: Sequence[Operand], named: Settings
    ) -> Recording | None:
        """Let a recording hold where the function takes another way; None if it takes a known one,
        or if there are too many.
        """
        ways: list[tuple[bool, ...]] = known.more
        if not any(ways) or len(ways) >= _MOST_WAYS:
            return None
        given = [Mapped(x) if i in known.data else x for i, x in enumerate(args)]
        followed = Branches(_MOST_BRANCHES)
        with held(self._lock):
            program = None
            with suppress(RecordingError):
                program = record(self.function, positions, given, named, follows=followed)
            if program is None or known not in self._recordings or followed.taken in ways:
                # Points that are refused, or are not finite, are not tried again and again.
                ways.append(followed.taken)
                return None
            program = either(known.program, program)
            made = known._replace(
                program=program, run=runner_for(program, self.runner), more=[*ways, followed.taken]
            )
            self._keep([made if each is known else each for each in self._recordings])
            return made

    def _keep(self, recordings: list[Recording]) -> None:
        super()._keep(recordings)
        alone = [
            each
            for each in recordings
            if self.argnums == 0 and all(type(x) is bool for x in each.others.values())
        ]
        by_position = [
            each for each in alone if [*each.others] == [*range(1, len(each.others) + 1)]
        ]
        self._by_shape = {
            (each.structures[0], *each.others.values()): each.run for each in by_position
        }


if TYPE_CHECKING:

    class RecordedOfPoint(Recorded):
        """A function recorded once, to be differentiated with respect to its first argument."""

        __call__: ValueAndGrad  # type: ignore[assignment]


class RecordedWithData(Recorded):
    """A function recorded once, and again where arrays that it reads have other values.

    Parameters
    ----------
    function : callable
    argnums : int
    data : sequence of ndarray
        The arrays. Those that are read-only are not compared.
    """

    def __init__(self, function: Function, argnums: Argnums, data: Sequence[np.ndarray]) -> None:
        super().__init__(function, argnums)
        self._data = [(x, kept(x)) for x in data if x.flags.writeable]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.function, self.argnums, [x for x, _ in self._data])

    def refresh(self) -> bool:
        """Forget the recordings if data have changed, and return whether they have."""
        is_changed = not all(is_same(x, copy) for x, copy in self._data)
        if is_changed:
            with held(self._lock):
                self._data = [(x, kept(x)) for x, _ in self._data]
                self._keep([])
        return is_changed

    def __call__(self, *args: object, **named: Any) -> tuple[float, Result]:
        self.refresh()
        return super().__call__(*args, **named)

    def known(self, x: np.ndarray, *others: object) -> Recording | None:
        self.refresh()
        return super().known(x, *others)


class RecordedIfPossible(Recorded):
    """A function recorded once; evaluated anew each time if it cannot be."""

    # What the attempt to record raised. The function may raise it too: while it is recorded, a
    # comparison is not a truth value.
    obstacle: Exception | None = None

    def __call__(self, *args: object, **named: Any) -> tuple[float, Result]:
        obstacle = self.obstacle
        if obstacle is None:
            try:
                return super().__call__(*args, **named)
            # Evaluated as it is written, the function needs more memory.
            except (DomainError, MemoryError):
                raise
            # Any of the function, which may raise none when it runs eagerly.
            except Exception as error:
                if from_signal(error):
                    raise
                obstacle = error
        result = self._eager(*args, **named)
        self.obstacle = obstacle
        return result


def record(
    function: Function,
    positions: Sequence[int],
    args: Sequence[Operand],
    named: Settings,
    *,
    follows: Branches | None = None,
) -> Program:
    """The program of the value and the gradients with respect to the arguments at some positions.
    Arguments that are `Mapped` are further arguments of it; `follows` is as in `record_values`.

    Raises `ElsewhereError` if the function catches the refusal of a value: at points where nothing
    is refused it would take another path."""
    with recording_to_write() as tape:
        arguments, rows = with_leaves(args, tape)
        given = list(arguments)
        for i in dict.fromkeys(positions):
            given[i] = leaf_tree("recorded", f"argument {i + 1}", args[i], tape)
        variables = leaves_of([given[i] for i in positions])
        with watched(tape, function, args, named), following(follows, tape):
            y = scalar_result("recorded", function(*given, **named), tape)
        ways = () if follows is None else follows.conditions
        program = program_of(tape, [*variables, *rows], [y], [y], variables, ways=ways)
        return optimised(program)


def record_values(
    function: Function, point: np.ndarray, *, follows: Branches | None = None
) -> tuple[Program, list[bool]]:
    """The program of several results of a function of one vector, without derivatives. It raises
    what `record` raises.

    Parameters
    ----------
    function : callable
        Returns a list of variables and plain values.
    point : ndarray of float64
    follows : Branches, optional
        Takes the branches of a function that branches on values. The program then holds where it
        takes the same branches, and ends elsewhere.

    Returns
    -------
    program : Program
        Its outputs are zero and the results.
    varies : list of bool
        For each result, whether it is a variable.
    """
    with recording_to_write() as tape:
        leaf = borrow_leaf(point, tape)
        results = outputs("recorded", _followed(function, leaf, tape, follows), tape)
        ways = () if follows is None else follows.conditions
        program = program_of(tape, [leaf], [0.0, *results], ways=ways)
        return optimised(program), [type(y) in VARIABLES for y in results]


def _followed(function: Function, leaf: Operand, tape: Tape, branches: Branches | None) -> Result:
    """What a function that is recorded returns, while its branches are noted, or refused."""
    with watched(tape, function), following(branches, tape):
        results = function(leaf)
        if branches is not None:
            branches.add_jumps(tape)
    return results


def margins_of(function: Function, point: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """The differences of both sides of all that a function of a vector compares at a point, with
    their gradients.
    """
    found, made = Branches(), []
    with recording_to_write() as tape:
        leaf = borrow_leaf(point, tape)
        _followed(function, leaf, tape, found)
        for x in (each for margin in found.margins for each in np.ravel(margin)):
            tape.drop_adjoints()
            x._adj = 1.0
            sweep(tape)
            made.append((float(x._val), np.array(leaf.adj)))
    return made


class RecordedGradient(RecordedFunctional[T]):
    """`varmat.grad`, recorded once: the gradient of a `Recorded`."""

    def __init__(self, functional: DerivedFunction[T], runner: str = "auto") -> None:
        super().__init__(functional, runner)
        self._recorded = Recorded(self.function, functional.argnums, runner)

    @property
    def program(self) -> Program | None:
        """The program that was made last, of the value and the gradient; None before the first
        call.
        """
        return self._recorded.program

    def __call__(self, *args: object, **named: Any) -> T:
        return self._recorded(*args, **named)[1]  # type: ignore[no-any-return]

    def _mapped(self, rows: ArgumentRows, workers: int | None) -> tuple[ArgumentTree, np.ndarray]:
        (_, gradients), holds = self._recorded._mapped(rows, workers)
        return gradients, holds


@overload
def recorded(f: DerivedFunction[T], *, runner: str = "auto") -> RecordedFunctional[T]: ...  # type: ignore[overload-overlap]
@overload
def recorded(f: Function, *, runner: str = "auto") -> RecordedOfPoint: ...
@overload
def recorded(f: Function, argnums: Argnums, *, runner: str = "auto") -> Recorded: ...
def recorded(f: Function, argnums: Argnums | None = None, *, runner: str = "auto") -> Recordings:
    """A function, or a functional of one, that is recorded once, and evaluated without it
    afterwards.

    Of a scalar function it is the value and the gradient: the first call runs `f` on variables, as
    `value_and_grad` does at every call, and writes what was recorded, forward and reverse, as a
    program, a list of steps on arrays. Later calls run that. For small arrays this takes a fraction
    of the time, for most of what `value_and_grad` takes is recording. Of a functional it is the
    same functional: ``vm.recorded(vm.hessian(f))`` has the results of ``vm.hessian(f)``.

    Parameters
    ----------
    f : callable
        Returns a scalar. It must compute the same operations at every call, whatever the values of
        its arguments, or branch in few ways: see Notes. Or what `value_and_grad`, `grad`,
        `hessian`, `hessian_times_vector`, `hessp`, `jacobian`, `jvp` or `vjp` returns for such a
        function alone, without a point; for the last three it need not be scalar.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to, by default the first. A
        functional brings its own.
    runner : {"auto", "numpy", "native"}
        What runs programs: calls of NumPy, or machine code, which needs llvmlite and is taken
        where that is installed.

    Returns
    -------
    callable
        Takes the arguments of `f` and returns ``(value, gradient)``, as in `value_and_grad`; for a
        functional it takes what that takes, and returns what that returns. For other shapes or
        structures, and other objects as the other arguments, `f` is recorded anew; the last 16
        recordings are kept. The attribute ``program`` is the last of them, and in print the list of
        its steps. The method ``map`` makes many calls at once, with the arguments of ``jax.vmap``.

    Raises
    ------
    TapeError
        If `f` looks at the value of a variable: with more than four ``if``, ``.val``, ``.grad()``,
        a mask as an index, or a function that does so, as `numpy.argsort`; comparisons may select,
        in `numpy.where` and `cond`. And for `reverse_pass_callback` and `MatVar`, which cannot be
        written as a program.
    ValueError
        If there is no such runner.
    ImportError
        If the native runner is asked for and llvmlite is not installed.
    TypeError
        If `f` is no function, or is a functional and `argnums` is given.
    DomainError and others
        What `f` raises.

    Notes
    -----
    An ``if`` on a comparison is followed. Where a later call takes another way, `f` is recorded
    again, and the program holds for both ways, up to eight; calls that take further ways are
    evaluated as `f` is written. A run computes all recorded ways and selects one, so use `cond`
    where a way is expensive.

    What `f` does apart from operations on its arguments happens at the recording only. Arrays among
    the other arguments are compared at every call, or become arguments of the program where they
    are large or change: then new data of the same shapes, such as minibatches, are not recorded
    anew. Arrays that `f` reads from elsewhere are held by reference: a new array in their place,
    another global value, or a random number, is not seen, and new values in the same array not
    everywhere. A function that catches the refusal of ``float(x)`` or ``np.asarray(x)`` is refused,
    because it would take another path for plain numbers. Where the program
    comes to an argument that is refused, or to a density of zero, `f` itself is evaluated, and so
    is a functional where a derivative is not finite. NumPy's warnings appear at the recording only.

    Second derivatives are recorded with dual numbers over variables, and so are a `jvp` and a
    `jacobian` of more outputs than inputs; for this one `f` is called twice. A Hessian is one run
    for each element of the point, a Jacobian one for each input or output, whichever are fewer. A
    tangent rule that looks at values is called from Python at every run.

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
    >>> g = vm.recorded(lambda x: np.sum(np.exp(-0.5 * x**2)))
    >>> value, gradient = g(np.array([0.0, 1.0]))
    >>> print(g.program)
    program(a0[2])
        v0[2] = square(a0)
        v1[2] = multiply(-0.5, v0)
        v2[2] = exp(v1)
        v3 = add.reduce(v2)
        v4[2] = negative(v2)
        v5[2] = multiply(v4, a0)
        return v3, v5
    >>> hessian = vm.recorded(vm.hessian(f))
    >>> hessian(np.array([0.0, 1.0, 2.0]))
    array([[1., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    if type(f) is not DerivedFunction:
        return Recorded(f, 0 if argnums is None else argnums, runner)
    if argnums is not None:
        raise TypeError(
            f"recorded: argnums is given with {f.__name__}, but must be left out: a functional "
            "brings its own!"
        )
    if f.func in (with_aux, gradients_with_aux):
        raise TypeError(
            f"recorded: {f.__name__} has has_aux, but must not, because a recording returns the "
            "numbers of the value and the derivatives only!"
        )
    if f.functional == "value_and_grad":
        return Recorded(f.__wrapped__, f.argnums, runner)
    return _RECORDED[f.functional](f, runner)  # type: ignore[no-any-return]


# By the name of the functional.
_RECORDED: dict[str, Function] = {**DERIVATIVES, "grad": RecordedGradient}
