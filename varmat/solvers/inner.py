"""The functions that users give to solvers: their variables, and their derivatives at plain
numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import settled
from varmat.core.dual import Dual, Level, taken_apart, value_now
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar
from varmat.core.operation import is_differentiable
from varmat.core.variables import data
from varmat.derivatives.forward import jvp
from varmat.derivatives.inputs_and_outputs import lost
from varmat.derivatives.jacobians import vjp
from varmat.derivatives.recorded import recorded
from varmat.derivatives.structure import leaves_of, map_leaves, rebuilt
from varmat.functions.checks import misfit, outside
from varmat.interrupts import from_signal
from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import called, is_symbol, refuse
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.passes import optimised
from varmat.programs.record.conditions import Condition, as_number, is_truth
from varmat.programs.run import has_native, runner_for
from varmat.typing import Function, Operand, Result

# A derivative is recorded after this many evaluations: a recording takes as long as ten of them.
OFTEN = 10
# The native runner takes over after this many evaluations by NumPy, because compiling a program
# takes as long as them.
MANY = 2000


def zeros_like(x: Operand) -> Result:
    """Return a zero of the shape of an operand: a float or an array."""
    return np.zeros(np.shape(x)) if np.shape(x) else 0.0


def filled(g: Sequence[Operand], like: Sequence[Operand]) -> list[Operand]:
    """Replace adjoints of None by zeros."""
    return [zeros_like(x) if item is None else item for item, x in zip(g, like, strict=True)]


def truths_of(tree: object) -> list[bool]:
    """Return which leaves of a tree are truth values."""
    return [*map(is_truth, leaves_of(tree))]


def numbers_of(tree: object) -> list[Operand]:
    """List the leaves of a tree, with the numbers of conditions."""
    return [*map(as_number, leaves_of(tree))]


def refilled(tree: Operand, numbers: Sequence[Operand]) -> Operand:
    """Rebuild a tree with other leaves; they become truth values where it has some."""
    pairs = zip(numbers, truths_of(tree), strict=True)
    return rebuilt(tree, [np.not_equal(x, 0.0) if is_one else x for x, is_one in pairs])


class KernelRunners:
    """Runs kernels on plain arrays, by a runner for each that is made once, and on symbols."""

    def __init__(self) -> None:
        self._runners: dict[Kernel, Function] = {}

    def run(self, kernel: Kernel, count: int, *operands: Operand) -> list[Operand] | None:
        """Return the results of a kernel, whose steps run `count` times; None where its run ends.
        For symbols, write a step of their program.
        """
        if any(map(is_symbol, operands)):
            return called(kernel, *operands)
        if kernel not in self._runners:
            builder = Builder()
            zero, arguments = (
                builder.constant(0.0),
                [builder.argument(np.shape(x)) for x in operands],
            )
            program = builder.program([zero, *builder.apply(kernel, *arguments)])
            runner = "auto" if native_pays(count) else "numpy"
            self._runners[kernel] = runner_for(optimised(program), runner)
        try:
            ended, *result = self._runners[kernel]([*operands])
        except (ArithmeticError, ValueError, ElsewhereError) as error:
            if from_signal(error):
                raise
            return None
        return result if ended == 0.0 else None


class _Place:
    """The index of a variable among the arguments; `is_truth` if it is one of zeros and ones."""

    __slots__ = ("index", "is_truth")

    def __init__(self, index: int, is_truth: bool) -> None:
        self.index, self.is_truth = index, is_truth


def checked_vector(name: str, title: str, x: Operand, ndmin: int = 0) -> np.ndarray:
    """Return the plain values of a vector with elements, all finite, in a new array."""
    values = np.array(data(value_now(x), f"{name}: {title}"), ndmin=ndmin)
    if values.ndim != 1:
        raise misfit(name, title, values.shape, "be a vector")
    if not values.size:
        raise ShapeError(f"{name}: {title} has no elements, but must have at least one!")
    check_finite(name, title, values)
    return values


def check_finite(name: str, title: str, x: np.ndarray) -> None:
    if not np.isfinite(x).all():
        i = int(np.flatnonzero(~np.isfinite(x))[0])
        raise outside(name, f"{title}[{i}]", float(x[i]), "be finite")


def native_pays(count: int) -> bool:
    """Return whether a native runner exists, and is worth compiling for after `count` runs."""
    return count >= MANY and has_native()  # which imports llvmlite


def _ieee(x: Operand) -> Operand:
    """Convert a float to NumPy's, because Python's raise where NumPy's are infinite or nan."""
    return np.float64(x) if type(x) is float else x


class Inner:
    """The user's function in a solver, ``function(*lead, *args)``.

    The solver chooses the numbers `lead`, the user gave the arguments `args`. Each variable among
    the arguments, to any depth of lists, tuples and dicts, is a *leaf*: an operand of the solver.
    Everything else is passed on unchanged, but numbers are NumPy's, which do not raise. The methods
    take plain numbers for the leaves, in order.

    Parameters
    ----------
    name : str
        The name of the function that the user called.
    function : callable
    args : sequence
        The arguments after `lead`.
    with_data : bool
        Whether floats and arrays of floats are leaves too.

    Attributes
    ----------
    leaves : list
        The variables and duals among the arguments.
    """

    def __init__(
        self, name: str, function: Function, args: Sequence[Operand], *, with_data: bool = False
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"{name}: the function is a {type(function).__name__}, but must be a function!"
            )
        self.name, self.function, self._with_data = name, function, with_data
        self.leaves: list[Operand] = []
        self._arguments = map_leaves(self._place, tuple(args))
        self._counts: dict[str, int] = {}
        self._recorded: dict[str, Any] = {}

    def _place(self, leaf: Operand, _: str) -> Result:
        is_data = self._with_data and getattr(leaf, "dtype", type(leaf)) in (float, np.float64)
        is_truth = type(leaf) is Condition
        is_variable = is_truth or isinstance(leaf, (ArrayMethods, MatVar))
        if not (is_data or is_variable or is_differentiable(leaf)):
            return leaf
        self.leaves.append(as_number(leaf))
        return _Place(len(self.leaves) - 1, is_truth)

    def arguments(self, leaves: Sequence[Operand]) -> tuple[Operand, ...]:
        """Return the arguments with other leaves. Raise for symbols, because a user's function may
        catch what they raise, and its result for symbols would then be taken for the result for
        numbers.
        """
        if any(map(is_symbol, leaves)):
            refuse()

        def argument(x: Operand, _: str) -> Operand:
            if type(x) is not _Place:
                return _ieee(x)
            leaf = leaves[x.index]
            return np.not_equal(leaf, 0.0) if x.is_truth else _ieee(leaf)

        result: tuple[Operand, ...] = map_leaves(argument, self._arguments)
        return result

    def __call__(self, lead: Sequence[Operand], leaves: Sequence[Operand]) -> Result:
        if any(map(is_symbol, lead)):
            refuse()
        with np.errstate(all="ignore"):
            return settled(self.function(*map(_ieee, lead), *self.arguments(leaves)))

    def values(self, lead: Sequence[Operand], leaves: Sequence[Operand]) -> np.ndarray:
        """Return the function's results for plain numbers, as a float64 vector."""
        result = self(lead, leaves)
        if is_differentiable(result):
            raise lost(self.name, result)
        return np.ravel(data(result, f"{self.name}: what the function returns"))

    def tangent(
        self, lead: Sequence[Operand], leaves: Sequence[Operand], directions: Sequence[Operand]
    ) -> tuple[Operand, Operand]:
        """Compute the value and its derivative along `directions`, one for each leading argument
        and leaf.
        """
        derivative = self._derivative("jvp", jvp)
        return derivative((*lead, *leaves), tuple(directions))  # type: ignore[no-any-return]

    def pullback(
        self, lead: Sequence[Operand], leaves: Sequence[Operand]
    ) -> tuple[Operand, Operand]:
        """Return the value, and the function from its cotangent to the cotangents of the leading
        arguments and the leaves.
        """
        return self._derivative("vjp", vjp)(*lead, *leaves)  # type: ignore[no-any-return]

    def _derivative(self, name: str, functional: Function) -> Result:
        """Make a functional of this function; it is recorded after some calls, if it can be."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        eager = functional(self._of_all)
        if count <= OFTEN:
            return eager
        if name not in self._recorded or (count == MANY and self._recorded[name] is not None):
            self._recorded[name] = recorded(eager, runner="auto" if native_pays(count) else "numpy")
        return _IfPossible(self._recorded, name, eager)

    def _of_all(self, *numbers: Operand) -> Result:
        lead = len(numbers) - len(self.leaves)
        y = self(numbers[:lead], numbers[lead:])
        return np.stack(y) if isinstance(y, (list, tuple)) else y

    def along(
        self, lead: Sequence[Operand], tangents: Sequence[Operand], leaves: Sequence[Operand]
    ) -> tuple[Operand, Operand]:
        """Compute the value and its derivative in a direction, of numbers that may be variables.

        A tangent of None is zero. A tangent with a leading axis holds several directions, and so
        does the result's tangent. The result has the tangent None if the function does not depend
        on any number with a tangent.
        """
        level = Level(self.name)
        several = [
            np.shape(t)[:1]
            for x, t in zip([*lead, *leaves], tangents, strict=True)
            if np.ndim(t) > np.ndim(x)
        ]
        axis = several[0] if several else ()

        def dual(x: Operand, t: Operand) -> Result:
            if t is None:
                if not isinstance(x, Dual):
                    return x
                # This dual belongs to an outer derivative: wrap it, so that it is a value here.
                t = np.zeros(axis + np.shape(x)) if axis or np.shape(x) else 0.0
            result = Dual(x, t)
            result.level = level
            return result

        numbers = [dual(x, t) for x, t in zip([*lead, *leaves], tangents, strict=True)]
        return taken_apart(self._of_all(*numbers), level)

    def rate(
        self, lead: Sequence[Operand], leaves: Sequence[Operand], i: int, t: Operand
    ) -> Result:
        """Differentiate along `t` in leaf `i`; return None if the function does not use it."""
        tangents: list[Operand] = [None] * (len(lead) + len(leaves))
        tangents[len(lead) + i] = t
        return self.along(lead, tangents, leaves)[1]


class _IfPossible:
    """A recorded derivative, or the eager one where the function cannot be recorded."""

    def __init__(self, table: dict[str, Any], name: str, eager: Function) -> None:
        self.table, self.name, self.eager = table, name, eager

    def __call__(self, *args: Operand) -> Result:
        if self.table[self.name] is None:
            return self.eager(*args)
        try:
            return self.table[self.name](*args)
        except (DomainError, MemoryError):
            raise
        # Any of the function, which may raise none when it runs eagerly.
        except Exception as error:
            if from_signal(error):
                raise
            result = self.eager(*args)
            self.table[self.name] = None
            return result
