"""Checks of arguments, and of the settings of NumPy's functions, for several families."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial, wraps
from operator import index

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Standing, plain, refuse_dtype, refuse_plain_out
from varmat.core.domains import Domain
from varmat.core.dual import Dual
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar
from varmat.core.tape import ALWAYS, Rule
from varmat.core.variables import VARIABLES, Var, tape_of
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import plain_or_symbol
from varmat.programs.build.symbol import UntraceableError, holds, lift
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.record.entries import plain as plain_operands
from varmat.programs.record.tape_programs import Operands, TapeProgram, writes
from varmat.typing import DTypeLike, Function, Operand, Plain, Result, Setting, Shape

# Stan's tolerance for sums, norms, diagonals and elements that must be equal across a diagonal.
TOLERANCE = 1e-8
one = Domain(f"1 to within {TOLERANCE}", lambda x: abs(x - 1.0) <= TOLERANCE)


def check_values(check: Function, *operands: Operand) -> Result:
    """Call a function that may refuse the plain values of operands: now, and whenever a recording
    of this is run.

    Code may branch on what it returns: a recording ends where a later run returns something else.
    """
    operands = tuple([x.val if isinstance(x, Dual) else x for x in operands])
    result = check(*(x._val if type(x) in VARIABLES else plain(x) for x in operands))
    tape = tape_of(operands)
    if tape is not None and tape.watch is not None:
        tape.append((_CHECK, ALWAYS, operands, (check, result)))
    return result


def is_watched(*operands: object) -> bool:
    """Return whether operations on the operands are being recorded, to be run again."""
    tape = tape_of(operands)
    return tape is not None and tape.watch is not None


def is_held(domain: Domain, x: Operand) -> bool:
    """Return whether all values of `x` are in a domain; a recording holds only where they are."""
    x = x.val if isinstance(x, Dual) else x
    tape = tape_of((x,))
    if tape is None or tape.watch is None:
        return holds(domain.holds(plain(x)))
    if not np.all(domain.holds(x._val)):
        raise ElsewhereError
    check_values(partial(domain.check, "recorded", "the value"), x)
    return True


def fixed(x: Operand) -> Result:
    """Return the value of one operand as a constant, for scales that cancel and for choices between
    formulas.

    Eagerly it is the plain value. In a recording, which must hold at other points too, it is a
    variable without derivatives: a comparison of it selects elements, and code cannot branch on it.
    """
    tape = getattr(x, "_tape", None)
    if tape is None or tape.watch is None:
        return plain(x)
    outcome = tape.watch(x, np.positive, (x,))
    return plain(x) if outcome is None else outcome


def _check_anew(_: object, operands: Operand, check: tuple[Function, Result]) -> None:
    try:
        result = check_values(check[0], *operands)
    except DomainError as error:  # the function says it in its own words
        raise ElsewhereError from error
    if not np.array_equal(result, check[1]):
        raise ElsewhereError


_CHECK = Rule("check", lambda result, operands, check: None, None, _check_anew)


@writes(
    _CHECK, operands=Operands(lambda rule, x, y: (x, y), lambda rule, x, y, new: (tuple(new), y))
)
def _write_check(
    program: TapeProgram,
    rule: Rule,
    result: Operand,
    operands: Operand,
    check: tuple[Function, Result],
) -> None:
    values = [program.operand(x)[0] for x in operands]
    if all(v.is_constant for v in values):
        return
    function, output = check
    domain = getattr(getattr(function, "func", None), "__self__", None)
    if isinstance(domain, Domain) and len(values) == 1:
        program.builder.guard(lift(program.builder, domain.holds(program.symbol(values[0]))))
        return
    if _traced(program.builder, function, output, values):
        return
    recompute = partial(_check_again, function, output, [v.shape for v in values])
    program.builder.apply(PythonCall("check", recompute, [], False), *values)


def _traced(builder: Builder, function: Function, result: Result, values: Plain) -> bool:
    """Write a check as guards: the conditions that it asks for, and its result, must hold again.
    False if it cannot be traced.
    """
    builder.asked = []
    try:
        output = function(*(plain_or_symbol(builder, v) for v in values))
        if isinstance(output, bool) and output != result:
            return False
        if result is not None:
            builder.asked.append(lift(builder, output == result))
        asked = builder.asked
    except (UntraceableError, TypeError, ValueError, AttributeError):
        return False
    finally:
        builder.asked = None
    for condition in asked:
        builder.guard(condition)
    return True


def _check_again(
    check: Function, result: Result, shapes: Sequence[Shape], *values: Operand
) -> tuple[Result, ...]:
    if not np.array_equal(check(*plain_operands(values, shapes)), result):
        raise ElsewhereError
    return ()


# Castings that turn numbers into float64.
_CASTINGS = ("safe", "same_kind", "unsafe")


def check_settings(
    function: Function,
    out: object = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    device: str | None = None,
) -> None:
    """Refuse settings of a NumPy function that a result made of variables cannot follow."""
    refuse_dtype(function, dtype)
    if casting not in _CASTINGS:
        raise outside(function.__name__, "casting", casting, f"be one of {', '.join(_CASTINGS)}")
    if device not in (None, "cpu"):
        raise outside(function.__name__, "device", device, "be 'cpu'")
    if out is not None:
        refuse_plain_out(function, out)
        if type(out) is Var or not isinstance(out, (ArrayMethods, np.ndarray, Standing)):
            rule = "must be an array of variables, made with np.zeros_like(variable)"
            raise TypeError(f"{function.__name__}: out is a {type(out).__name__}, but {rule}!")


def delivered(function: Function, out: Operand, r: Operand) -> Result:
    """Return the result, written into `out` if `out` is given."""
    if out is None:
        return r
    name = function.__name__
    if np.shape(out) != np.shape(r):
        raise misfit(name, "out", np.shape(out), f"have the shape of the result, {np.shape(r)}")
    if isinstance(r, ArrayMethods if isinstance(out, np.ndarray) else MatVar):
        raise TypeError(
            f"{name}: out is a {type(out).__name__}, but must be a {type(r).__name__}, as the "
            "result is!"
        )
    out[...] = r
    return out


def kept(setting: Setting) -> Result:
    """Return a setting; copy a list or an array, because the caller may change it before the
    reverse pass.
    """
    if type(setting) is tuple:
        return tuple(map(kept, setting))
    return deepcopy(setting) if isinstance(setting, (list, dict, np.ndarray)) else setting


def by_position(function: Function, answer: Function) -> Function:
    """Make a handler for a NumPy function, whose first argument may also be given by NumPy's name
    for it.
    """
    first, *_ = inspect.signature(function).parameters

    @wraps(answer)
    def called(*args: Setting, **settings: Setting) -> Result:
        x, *others = args or [settings.pop(first)]
        return answer(
            x, *map(kept, others), **{name: kept(setting) for name, setting in settings.items()}
        )

    return called


@contextmanager
def in_the_name_of(function: str) -> Iterator[None]:
    """Let errors raised within begin with the name of `function`, which the user called, and not
    with the name of a function it calls.
    """
    try:
        yield
    except (DomainError, ShapeError, TypeError) as error:
        name, _, remainder = str(error).partition(": ")
        error.args = (f"{function}: {remainder if name.isidentifier() else error}", *error.args[1:])
        raise


def pair(function: str, name: str, value: Setting) -> tuple[Setting, Setting]:
    """Return the two items of an argument that is a pair."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise TypeError(
            f"{function}: {name} is a {type(value).__name__}, but must be a pair!"
        ) from None
    return first, second


def integer(function: str, name: str, value: Setting) -> int:
    """Convert a count or an index to an int; refuse a float, whole or not."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{function}: {name} is {value!r}, but must be an integer!") from None


def count(function: str, name: str, value: object, least: int = 0) -> int:
    """Convert a count to an int; refuse one that is less than `least`, which is 0 or 1."""
    result = integer(function, name, value)
    if result < least:
        rule = "positive" if least else "nonnegative"
        raise DomainError(f"{function}: {name} is {result}, but must be {rule}!")
    return result


def place(function: str, name: str, value: object, size: int) -> int:
    """Convert an index, counted from 0, to an int; refuse one that is not below `size`."""
    result = integer(function, name, value)
    if not 0 <= result < size:
        rule = f"an index from 0 to {size - 1}" if size else "left out: there is no element"
        raise DomainError(f"{function}: {name} is {result}, but must be {rule}!")
    return result


def check_integer(function: str, name: str, value: object, least: int) -> None:
    """Raise unless `value`, a size or a number of draws, is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            f"{function}: {name} is a {type(value).__name__}, but must be an integer of at "
            f"least {least}!"
        )
    if value < least:
        raise DomainError(
            f"{function}: {name} is {value}, but must be an integer of at least {least}!"
        )


def check_choice(function: str, name: str, value: object, *choices: object) -> None:
    """Raise `DomainError` unless a setting is one of the choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        rule = f"{', '.join(others)} or {last}" if others else last
        raise outside(function, name, value, f"be {rule}")


def outside(function: str, name: str, value: object, rule: str) -> DomainError:
    """Make the error for an argument whose value is refused."""
    return DomainError(f"{function}: {name} is {value!r}, but must {rule}!")


def misfit(function: str, name: str, shape: Shape, rule: str) -> ShapeError:
    """Make the error for an argument whose shape is refused."""
    return ShapeError(f"{function}: {name} has shape {shape}, but must {rule}!")


def check_square(function: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise `ShapeError` unless `shape` belongs to a square matrix or a stack of them."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise misfit(function, name, shape, "be a square matrix (or a stack of them)")


def check_array(function: str, name: str, x: Operand, rule: str = "be an array") -> None:
    """Raise `ShapeError` if `x` is a scalar."""
    if not np.ndim(x):
        raise ShapeError(f"{function}: {name} is a scalar, but must {rule}!")


def check_matrix(function: str, name: str, x: Operand) -> None:
    """Raise `ShapeError` unless `x` is a matrix or a stack of them."""
    if np.ndim(x) < 2:
        raise misfit(function, name, np.shape(x), "be a matrix (or a stack of them)")


def check_columns(function: str, name: str, x: Operand, rows: int) -> None:
    """Raise `ShapeError` unless `x` is a vector, or a matrix, with this many rows."""
    if np.ndim(x) not in (1, 2) or np.shape(x)[0] != rows:
        raise misfit(function, name, np.shape(x), f"be a vector or a matrix with {rows} rows")


def check_vectors(function: str, names: tuple[str, str], x: Operand, y: Operand) -> None:
    """Raise `ShapeError` unless `x` and `y` are vectors of one length."""
    if np.ndim(x) != 1 or np.shape(x) != np.shape(y):
        raise misfit(
            function,
            names[1],
            np.shape(y),
            f"be a vector as long as {names[0]}, of shape {np.shape(x)}",
        )


def broadcastable(*shapes: tuple[int, ...]) -> bool:
    """Return whether arrays of these shapes broadcast together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
