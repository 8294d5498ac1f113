"""Comparisons in recordings: variables of zeros and ones, which may only be combined and select.

A plain array of truth values would be frozen into the recording. A `Condition` replaces one, and
raises for everything that cannot be written as a program: branches, masks as indices, counts.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from varmat.core import dispatch
from varmat.core.dual import value_now
from varmat.core.elementwise import Elementwise
from varmat.core.rules import ZERO
from varmat.core.variables import VARIABLES, own_tape
from varmat.programs.ir.program import BOOL, RecordingError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from varmat.core.operation import Operation
    from varmat.core.tape import Tape
    from varmat.typing import Entry, Function, Index, Operand, Setting, Settings


def refuse_look(*_: object, **__: object) -> NoReturn:
    """Raise where a function that is being recorded depends on the value of a variable."""
    raise RecordingError(
        "recorded: the function looks at the value of a variable here (it branches, ranks, or "
        "takes the plain value or a derivative), and a recording would always take the same "
        "branch; use np.where to select, varmat.cond to run one of two functions, or "
        "varmat.value_and_grad, "
        "which evaluates the function again each time"
    )


def _row(name: str, function: Function, partials: tuple[str, ...], scalar: str) -> Elementwise:
    """Make a row that is in no table: outside of recordings nothing is its handler."""

    def ufunc(*values: Operand, out: np.ndarray | None = None) -> Operand:
        out = np.empty(np.broadcast_shapes(*map(np.shape, values))) if out is None else out
        out[...] = function(*values)
        return out

    return Elementwise(name, ufunc, *partials, scalar=scalar)


# The name of a row -> the operator.
SYMBOLS = {
    ufunc.__name__: text
    for ufunc, text in zip(dispatch.COMPARISONS, ("<", "<=", "==", "!=", ">=", ">"), strict=True)
}
_OPERATORS: dict[Function, Function] = dict(
    zip(
        dispatch.COMPARISONS,
        (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt),
        strict=True,
    )
)
_COMPARISONS: dict[Function, Elementwise] = {
    ufunc: _row(ufunc.__name__, ufunc, (ZERO, ZERO), f"float(x {SYMBOLS[ufunc.__name__]} y)")
    for ufunc in dispatch.COMPARISONS
}
_KINDS = {
    np.isnan: "float(x != x)",
    np.isinf: "float(abs(x) == inf)",
    np.isfinite: "float(abs(x) < inf)",
}
_COMPARISONS |= {
    ufunc: _row(ufunc.__name__, ufunc, (ZERO,), text) for ufunc, text in _KINDS.items()
}
# A row -> the ufunc that it stands for.
COMPARISON_OF: dict[Any, Any] = {row: ufunc for ufunc, row in _COMPARISONS.items()}
SELECTION = _row(
    "selection", np.where, (ZERO, "where(x, g, 0.0)", "where(x, 0.0, g)"), "y if x else z"
)
# The value of a variable, held constant.
FIXED = _row("fixed", np.positive, (ZERO,), "x")


# For functions that jump, an expression that is zero at a jump.
_JUMPS: dict[np.ufunc, Function] = {
    np.sign: lambda x: x,
    np.heaviside: lambda x, y: x,
    np.rint: lambda x: x - np.floor(x) - 0.5,
    **dict.fromkeys((np.floor, np.ceil, np.trunc), lambda x: x - np.rint(x)),
    **dict.fromkeys((np.remainder, np.fmod, np.floor_divide), lambda x, y: x / y - np.rint(x / y)),
}


class Branches:
    """The branches that a function takes while it is recorded.

    Branches on variables of nested scopes raise, because a program does not have them.

    Parameters
    ----------
    most : int, optional
        The most branches that it may take.

    Attributes
    ----------
    ways : list of tuple
        Variables of zeros and ones on which it branches, and whether they were one.
    assumed : list
        Variables of zeros and ones that must be one.
    margins : list
        The difference of both sides of each comparison, and other expressions that are zero where a
        value jumps.
    """

    def __init__(self, most: float = np.inf) -> None:
        self.most = most
        self.tape: Operand = None
        self.decisions: list[tuple[Operand, bool]] = []
        self.assumed: list[Operand] = []
        self.margins: list[Operand] = []

    @property
    def conditions(self) -> list[tuple[Operand, bool]]:
        """The conditions under which a program holds."""
        return [*self.decisions, *((x, True) for x in self.assumed)]

    @property
    def taken(self) -> tuple[bool, ...]:
        """The branches that it took."""
        return tuple(way for _, way in self.decisions)

    def add_jumps(self, entries: Sequence[Entry]) -> None:
        """Add the margins of functions that jump."""
        for rule, _, x, y in list(entries):
            ufunc = getattr(rule.op, "ufunc", None)
            if isinstance(ufunc, np.ufunc) and ufunc in _JUMPS:
                self.margins.append(_JUMPS[ufunc](*(x, y)[: rule.op.arity]))


# `branches`, where they are followed; None where they raise.
_FOLLOWED = threading.local()


@contextmanager
def following(branches: Branches | None, tape: Tape) -> Iterator[None]:
    """Follow the branches of a function on the variables of a tape and note them; if `branches` is
    None, make them raise.
    """
    if branches is not None:
        branches.tape = tape
    before, _FOLLOWED.branches = getattr(_FOLLOWED, "branches", None), branches
    try:
        yield
    finally:
        _FOLLOWED.branches = before


# Functions of an array that only copy or move its elements; others make views.
_REARRANGE = {np.broadcast_to, np.copy, np.repeat, np.roll, np.tile}


# Functions that join arrays.
_JOIN = {np.concatenate, np.stack, np.hstack, np.vstack, np.column_stack}
# Functions that reduce a condition, and its methods for them.
_REDUCE: dict[Function, str] = {
    np.sum: "sum", np.count_nonzero: "sum", np.mean: "mean", np.any: "any", np.all: "all",
    np.max: "any", np.min: "all",
}  # fmt: skip
# Functions that make numbers of a condition.
_COUNT = {np.cumprod, np.cumsum, np.prod}
# Functions whose result depends on the shape and the dtype of an array, not on its elements.
_LIKE = {np.empty_like, np.full_like, np.imag, np.ones_like, np.zeros_like}


class Condition:
    """The outcome of a comparison while a function is recorded; made by the comparison operators.

    It goes into `numpy.where` and `numpy.select`, combines with others and with truth values by
    ``&``, ``|``, ``^`` and ``~`` or the ufuncs of that meaning, and in arithmetic with numbers
    counts as 0 or 1. It can be counted, and reduced by `any` and `all`."""

    __slots__ = ("variable",)
    dtype = BOOL

    def __init__(self, variable: Operand) -> None:
        self.variable = variable

    @property
    def _tape(self) -> Operand:
        return own_tape(self.variable)

    shape = property(lambda self: self.variable.shape)
    ndim = property(lambda self: self.variable.ndim)
    size = property(lambda self: self.variable.size)

    def select(self, *choices: Operand) -> Operand:
        """Implement ``np.where`` for this condition."""
        if not choices:
            refuse_look()
        chosen = SELECTION(self.variable, *choices)
        return Condition(chosen) if _are_truths(choices) else chosen

    def astype(self, dtype: DTypeLike) -> Operand:
        """Convert the condition to zeros and ones; integers are floating-point numbers here."""
        kind = np.dtype(dtype).kind
        if kind not in "bif":
            refuse_look()
        copy = np.copy(self.variable)
        return Condition(copy) if kind == "b" else copy

    def apply_row(self, row: Operand, operands: Sequence[Operand]) -> Operand:
        """Apply a row to operands that include this condition."""
        return row(*_as_numbers(operands))

    def apply_operation(
        self, operation: Operation, operands: Sequence[Operand], settings: Settings
    ) -> Operand:
        """Apply an operation. Of truth values only, NumPy's functions may make truth values."""
        are_truths = _are_truths(operands)
        if are_truths and operation.name != "where":
            refuse_look()
        result = operation(*_as_numbers(operands), **settings)
        return Condition(result) if are_truths else result

    def __getitem__(self, index: Index) -> Operand:
        return Condition(self.variable[index])

    def __array_function__(
        self, function: Function, types: Operand, args: Operand, kwargs: Setting
    ) -> Operand:
        if args and args[0] is self:
            if function in _LIKE:
                return function(np.broadcast_to(False, self.shape), *args[1:], **kwargs)
            if function in _REARRANGE:
                return Condition(function(self.variable, *args[1:], **kwargs))
            if function in _REDUCE:
                return getattr(self, _REDUCE[function])(*args[1:], **kwargs)
            if function in _COUNT:
                return function(self.variable, *args[1:], **kwargs)
        if function in _JOIN:
            joined = function(_as_numbers(args[0]), *args[1:], **kwargs)
            return Condition(joined) if _are_truths(args[0]) else joined
        result = dispatch.array_function(self, function, types, args, kwargs)
        values, settings = dispatch.plain((args, kwargs), _value_now)
        if _lost_truths(result, function(*values, **settings)):
            raise RecordingError(
                f"recorded: {dispatch.full_name(function)} makes truth values of truth values, and "
                "a recording would make numbers; convert them first, as in (x > 0).astype(float)"
            )
        return result

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Operand, **kwargs: Setting
    ) -> Operand:
        return refuse_look() if kwargs or method != "__call__" else combined(ufunc, *inputs)

    def any(self, *args: Setting, **kwargs: Setting) -> Operand:
        """Return whether at least one element holds; with the arguments of `numpy.sum`."""
        return compared(np.greater, (np.sum(self.variable, *args, **kwargs), 0.0))

    def all(self, *args: Setting, **kwargs: Setting) -> Operand:
        """Return whether all elements hold."""
        return ~(~self).any(*args, **kwargs)

    def sum(self, *args: Setting, **kwargs: Setting) -> Operand:
        """Count the elements that hold."""
        return np.sum(self.variable, *args, **kwargs)

    def mean(self, *args: Setting, **kwargs: Setting) -> Operand:
        """Return the share of the elements that hold."""
        return np.mean(self.variable, *args, **kwargs)

    def __invert__(self) -> Operand:
        return combined(np.invert, self)

    def __abs__(self) -> Operand:
        return combined(np.absolute, self)

    def _followed(self) -> Branches:
        """Return the branches that are noted; raise for a condition on which none may depend."""
        followed = getattr(_FOLLOWED, "branches", None)
        if followed is None or self._tape is not followed.tape:
            refuse_look()
        return followed  # type: ignore[no-any-return]

    def assumed(self) -> bool:
        """Return whether all of it holds now; if so, a run ends where it does not."""
        followed, holds = self._followed(), bool(np.all(value_now(self.variable)))
        if holds:
            followed.assumed.append(self.variable)
        return holds

    def __bool__(self) -> bool:
        followed = self._followed()
        if self.size != 1 or len(followed.decisions) >= followed.most:
            refuse_look()
        followed.decisions.append((self.variable, bool(np.all(value_now(self.variable)))))
        return followed.decisions[-1][1]

    __array__ = __iter__ = __len__ = __index__ = __int__ = __float__ = refuse_look
    __hash__ = refuse_look

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse_look()


def as_number(x: Operand) -> Operand:
    """Return the numbers of a condition, which are a variable; other operands are unchanged."""
    return x.variable if type(x) is Condition else x


def is_truth(x: Operand) -> bool:
    """Return whether an operand is a truth value, or an array of them."""
    return type(x) is bool or getattr(x, "dtype", None) == BOOL


def _as_numbers(operands: Sequence[Operand]) -> list[Operand]:
    return [*map(as_number, operands)]


def _are_truths(operands: Sequence[Operand]) -> bool:
    return all(map(is_truth, operands))


def _value_now(x: object) -> Operand:
    return value_now(x.variable) != 0.0 if type(x) is Condition else value_now(x)


def _lost_truths(result: object, expected: object) -> bool:
    """Tell whether a result has numbers where NumPy makes truth values, as `dot` does, whose sums
    of truth values are truth values too.
    """
    if isinstance(expected, (tuple, list)):
        return any(map(_lost_truths, result, expected))  # type: ignore[call-overload]
    return type(result) in VARIABLES and is_truth(expected)


def _is_word(x: Operand) -> bool:
    return x is None or isinstance(x, (str, bytes))


def all_hold(condition: Operand) -> bool:
    """Return whether all of a condition holds; then the runs of a recording end where it does
    not.
    """
    return condition.assumed() if isinstance(condition, Condition) else bool(np.all(condition))


def compared(ufunc: np.ufunc, operands: Sequence[Operand]) -> Operand:
    """Return the outcome of a comparison of variables; with None and with text it is the same for
    all values.
    """
    if ufunc is np.positive:
        return FIXED(*operands)
    if ufunc not in _COMPARISONS:
        refuse_look()
    if len(operands) == 1:
        return Condition(_COMPARISONS[ufunc](*operands))
    if any(map(_is_word, operands)):
        return _OPERATORS[ufunc](
            *[x if _is_word(x) else np.broadcast_to(np.nan, x.shape)[()] for x in operands]
        )
    followed = getattr(_FOLLOWED, "branches", None)
    if followed is not None:
        margin = np.subtract(*operands)
        if own_tape(margin) is followed.tape:
            followed.margins.append(margin)
    return Condition(_COMPARISONS[ufunc](*operands))


def combined(ufunc: np.ufunc, *operands: Operand) -> Operand:
    """Return the outcome of a ufunc of conditions and others: a condition for truth values only,
    and otherwise numbers.
    """
    if ufunc in _OPERATORS:
        return compared(ufunc, [+x if type(x) is bool else x for x in _as_numbers(operands)])
    if _are_truths(operands):
        of_truths = _OF_ONES.get(OF_TRUTHS.get(ufunc, ufunc), refuse_look)
        truths = [x if type(x) is Condition else np.asarray(x, np.float64)[()] for x in operands]
        return Condition(of_truths(*_as_numbers(truths)))
    if ufunc in OF_TRUTHS.keys() - _OF_NUMBERS or ufunc not in dispatch.SUPPORTED:
        refuse_look()
    return ufunc(*_as_numbers(operands))


# Ufuncs that make truth values of truth values, and the logical ones that they are then. All others
# make numbers, some of fewer than 64 bits.
OF_TRUTHS: dict[np.ufunc, np.ufunc] = {
    np.bitwise_and: np.logical_and, np.logical_and: np.logical_and,
    np.multiply: np.logical_and, np.minimum: np.logical_and,
    np.bitwise_or: np.logical_or, np.logical_or: np.logical_or,
    np.add: np.logical_or, np.maximum: np.logical_or,
    np.bitwise_xor: np.logical_xor, np.logical_xor: np.logical_xor,
    np.invert: np.logical_not, np.logical_not: np.logical_not,
}  # fmt: skip
# How they are computed of zeros and ones.
_OF_ONES: dict[np.ufunc, Function] = {
    np.logical_and: operator.mul, np.logical_or: np.maximum,
    np.logical_xor: lambda x, y: np.absolute(x - y), np.logical_not: lambda x: 1.0 - x,
    np.absolute: np.copy,
}  # fmt: skip
# Those that make numbers of numbers.
_OF_NUMBERS = {np.add, np.multiply, np.maximum, np.minimum}


def _in_place(x: Condition, y: Operand, ufunc: np.ufunc) -> Condition:
    """Implement `x &= y` and its like."""
    result = combined(ufunc, x, y)
    if type(result) is not Condition or result.shape != x.shape:
        raise TypeError(
            f"np.{ufunc.__name__}: the result cannot be written into truth values of shape "
            f"{x.shape}; give it another name"
        )
    x.variable = result.variable
    return x


for _name, _ufunc in {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add,
     "sub": np.subtract, "mul": np.multiply,
    "truediv": np.divide, "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
     "matmul": np.matmul,
}.items():  # fmt: skip
    setattr(Condition, f"__{_name}__", lambda x, y, ufunc=_ufunc: combined(ufunc, x, y))
    setattr(Condition, f"__r{_name}__", lambda y, x, ufunc=_ufunc: combined(ufunc, x, y))
    setattr(Condition, f"__i{_name}__", lambda x, y, ufunc=_ufunc: _in_place(x, y, ufunc))
for _compare, _operator in _OPERATORS.items():
    setattr(
        Condition, f"__{_operator.__name__}__", lambda x, y, ufunc=_compare: combined(ufunc, x, y)
    )
