"""What functions of several families do with their arguments: checks, and the settings of NumPy's
functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial, wraps
from operator import index
from typing import Any

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import Standing, plain, refuse_dtype, refuse_plain_out
from varmat.core.dual import Dual
from varmat.core.errors import Domain, DomainError, ShapeError, called
from varmat.core.matvar import MatVar
from varmat.core.tape import ALWAYS, Rule
from varmat.core.variables import VARIABLES, Var, tape_of
from varmat.programs.builder import Builder
from varmat.programs.entries import plain as plain_operands
from varmat.programs.kernels import PythonCall
from varmat.programs.program import ElsewhereError
from varmat.programs.symbols import UntraceableError, lift, plain_or_symbol
from varmat.programs.tape_programs import TapeProgram, writes

__all__: list[str] = []

# How far sums, norms, diagonals and elements across a diagonal may be from what they must be, as in
# Stan.
TOLERANCE = 1e-8
one = Domain(f"1 to within {TOLERANCE}", lambda x: abs(x - 1.0) <= TOLERANCE)


def check_values(check: Callable[..., Any], *operands: Any) -> Any:
    """Call a function that may refuse the plain values of operands: now, and whenever a recording
    of this is run.

    What it returns may be branched on: where it returns something else later, the recording ends.
    """
    operands = tuple([x.val if isinstance(x, Dual) else x for x in operands])
    found = check(*(x._val if type(x) in VARIABLES else plain(x) for x in operands))
    tape = tape_of(operands)
    if tape is not None and tape.watch is not None:
        tape.append((_CHECK, ALWAYS, operands, (check, found)))
    return found


def is_watched(*operands: Any) -> bool:
    """Whether what is done with the operands is being recorded, to be run again."""
    tape = tape_of(operands)
    return tape is not None and tape.watch is not None


def is_held(domain: Domain, x: Any) -> bool:
    """Whether all of the plain value of `x` is in a domain; a recording holds only where it is."""
    tape = tape_of((x,))
    if tape is None or tape.watch is None:
        return bool(np.all(domain.holds(plain(x))))
    if not np.all(domain.holds(x._val)):
        raise ElsewhereError
    check_values(partial(domain.check, "recorded", "the value"), x)
    return True


def fixed(x: Any) -> Any:
    """The value of one operand as a constant, for scales that cancel and for choices between
    formulas.

    Eagerly it is the plain value. In a recording, which must hold at other points too, it is a
    variable without derivatives: comparisons of it select, and nobody can branch on it."""
    tape = getattr(x, "_tape", None)
    if tape is None or tape.watch is None:
        return plain(x)
    outcome = tape.watch(x, np.positive, (x,))
    return plain(x) if outcome is None else outcome


def _check_anew(_: Any, operands: Any, check: Any) -> None:
    if not np.array_equal(check_values(check[0], *operands), check[1]):
        raise ElsewhereError


_CHECK = Rule("check", lambda result, operands, check: None, None, _check_anew)


@writes(_CHECK)
def _write_check(program: TapeProgram, rule: Any, result: Any, operands: Any, check: Any) -> None:
    values = [program.operand(x)[0] for x in operands]
    if all(v.is_constant for v in values):
        return
    function, found = check
    domain = getattr(getattr(function, "func", None), "__self__", None)
    if isinstance(domain, Domain) and len(values) == 1:
        program.builder.guard(lift(program.builder, domain.holds(program.symbol(values[0]))))
        return
    if _traced(program.builder, function, found, values):
        return
    again = partial(_check_again, function, found, [v.shape for v in values])
    program.builder.apply(PythonCall("check", again, [], False), *values)


def _traced(builder: Builder, function: Any, found: Any, values: Any) -> bool:
    """Write a check as guards: what it asks for before it returns holds, and so does what it
    returns.
    """
    builder.asked = []
    try:
        made = function(*(plain_or_symbol(builder, v) for v in values))
        if isinstance(made, bool) and made != found:
            return False
        if found is not None:
            builder.asked.append(lift(builder, made == found))
        asked = builder.asked
    except (UntraceableError, TypeError, ValueError, AttributeError):
        return False
    finally:
        builder.asked = None
    for condition in asked:
        builder.guard(condition)
    return True


def _check_again(
    check: Callable[..., Any], found: Any, shapes: Any, *values: Any
) -> tuple[Any, ...]:
    if not np.array_equal(check(*plain_operands(values, shapes)), found):
        raise ElsewhereError
    return ()


# What becomes float64 beside variables does so by each of these.
_CASTINGS = ("safe", "same_kind", "unsafe")


def check_settings(
    function: Any, out: Any = None, dtype: Any = None, casting: Any = "safe", device: Any = None
) -> None:
    """Refuse what the result of a NumPy function of variables cannot be written into, or made
    as.
    """
    refuse_dtype(function, dtype)
    if casting not in _CASTINGS:
        raise DomainError(
            f"{function.__name__}: casting is {casting!r}, but must be one of "
            f"{', '.join(_CASTINGS)}!"
        )
    if device not in (None, "cpu"):
        raise DomainError(f"{function.__name__}: device is {device!r}, but must be 'cpu'!")
    if out is not None:
        refuse_plain_out(function, out)
        if type(out) is Var or not isinstance(out, (ArrayMethods, np.ndarray, Standing)):
            rule = "must be an array of variables, made with np.zeros_like(variable)"
            raise TypeError(f"{function.__name__}: out is a {type(out).__name__}, but {rule}!")


def delivered(function: Any, out: Any, r: Any) -> Any:
    """The result, written into `out` if there is one."""
    if out is None:
        return r
    name = function.__name__
    if np.shape(out) != np.shape(r):
        raise ShapeError(
            f"{name}: out has shape {np.shape(out)}, but must have that of the result, "
            f"{np.shape(r)}!"
        )
    if isinstance(r, ArrayMethods if isinstance(out, np.ndarray) else MatVar):
        raise TypeError(
            f"{name}: out is a {type(out).__name__}, but must be a {type(r).__name__}, as the "
            "result is!"
        )
    out[...] = r
    return out


def kept(setting: Any) -> Any:
    """A setting as it is now: of a list or an array, which the caller may change before the reverse
    pass, a copy.
    """
    if type(setting) is tuple:
        return tuple(map(kept, setting))
    return deepcopy(setting) if isinstance(setting, (list, dict, np.ndarray)) else setting


def by_position(function: Any, answer: Callable[..., Any]) -> Callable[..., Any]:
    """An answer for a NumPy function, which may also be given its first argument by the name that
    NumPy gives it.
    """
    first, *_ = inspect.signature(function).parameters

    @wraps(answer)
    def called(*args: Any, **settings: Any) -> Any:
        x, *others = args or [settings.pop(first)]
        return answer(
            x, *map(kept, others), **{name: kept(setting) for name, setting in settings.items()}
        )

    return called


@contextmanager
def in_the_name_of(function: str) -> Iterator[None]:
    """What is refused within begins with the name of `function`, which the user called, not of what
    it is written with.
    """
    try:
        yield
    except (DomainError, ShapeError, TypeError) as error:
        name, _, rest = str(error).partition(": ")
        error.args = (f"{function}: {rest if name.isidentifier() else error}", *error.args[1:])
        raise


def pair(function: str, name: str, value: Any) -> tuple[Any, Any]:
    """Two things that are given as one argument."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise TypeError(
            called(f"{function}: {name} is a {type(value).__name__}, but must be a pair!")
        ) from None
    return first, second


def integer(function: str, name: str, value: Any) -> int:
    """A count or a place as an int; refuses what is none, a float that is whole included."""
    try:
        return index(value)
    except TypeError:
        raise TypeError(
            called(f"{function}: {name} is {value!r}, but must be an integer!")
        ) from None


def check_integer(function: str, name: str, value: Any, least: int) -> None:
    """Refuse what is no integer of at least `least`: a size, or a number of draws."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(
            called(
                f"{function}: {name} is a {type(value).__name__}, but must be an integer of at "
                f"least {least}!"
            )
        )
    if value < least:
        raise DomainError(
            f"{function}: {name} is {value}, but must be an integer of at least {least}!"
        )


def check_square(function: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise `ShapeError` unless `shape` is that of a square matrix or a stack of them."""
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(
            f"{function}: {name} has shape {shape}, but must be a square matrix (or a stack of "
            "them)!"
        )


def check_array(function: str, name: str, x: Any) -> None:
    """Raise `ShapeError` if `x` is a scalar."""
    if not np.ndim(x):
        raise ShapeError(f"{function}: {name} is a scalar, but must be an array!")


def check_matrix(function: str, name: str, x: Any) -> None:
    """Raise `ShapeError` unless `x` is a matrix or a stack of them."""
    if np.ndim(x) < 2:
        raise ShapeError(
            f"{function}: {name} has shape {np.shape(x)}, but must be a matrix (or a stack of "
            "them)!"
        )


def broadcastable(*shapes: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes go together."""
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True
