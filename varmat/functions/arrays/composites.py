"""NumPy functions written with differentiable ones: clipping, pieces, lanes, sets, conversions.

Each answers for NumPy's function of the same name, with its arguments and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

import numpy as np
from numpy._core import umath
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.dispatch import SUPPORTED, implements, plain, refuse_settings
from varmat.core.domains import Domain
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar, to_matvar, to_varmat
from varmat.core.operation import as_operand, is_differentiable, operation
from varmat.core.variables import ARRAYS, like
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.shaping import memory_of
from varmat.functions.checks import check_settings, delivered, misfit
from varmat.typing import Adjoint, DTypeLike, Function, Linear, Operand, Plain, Result, Setting

# NumPy's clip is a function; the ufunc behind it is private.
_CLIP = vars(umath)["clip"]
nonzero = Domain("nonzero", lambda x: x != 0)


def composite(*answers: Function) -> Callable[[Function], Function]:
    """Let a function written with differentiable ones answer for NumPy's functions. Beside matvars
    it returns a varmat if one was given, else a matvar.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def answer(*args: Setting, **settings: Setting) -> Result:
            result = function(*args, **settings)
            kinds = {type(x) for x in (*args, *settings.values())}
            if MatVar not in kinds:
                return result
            convert = to_varmat if kinds & ARRAYS else to_matvar
            return (
                like(result, map(convert, result)) if isinstance(result, tuple) else convert(result)
            )

        return implements(*answers)(answer)

    return decorate


# Values


@composite(np.clip)
def clip(
    a: Operand,
    a_min: Operand = None,
    a_max: Operand = None,
    out: Operand = None,
    *,
    min: Operand = None,
    max: Operand = None,
    **settings: Setting,
) -> Result:
    """Limit the values; the derivative goes to the bound where a value is outside, to `a` inside
    and at the bounds.
    """
    check_settings(np.clip, out)
    refuse_settings(np.clip, settings)
    for name, old, new in (("min", a_min, min), ("max", a_max, max)):
        if old is not None and new is not None:
            raise DomainError(f"clip: {name} is given, but must be left out where a_{name} is!")
    lower, upper = a_min if min is None else min, a_max if max is None else max
    if lower is None and upper is None:
        return delivered(np.clip, out, np.copy(a))
    if lower is not None:
        a = np.maximum(a, lower)
    return delivered(np.clip, out, a if upper is None else np.minimum(a, upper))


class _ClipUfunc:
    """NumPy's method ``plain.clip(lower, upper)`` calls this ufunc, with all three operands."""

    __call__ = call = staticmethod(clip)


SUPPORTED[_CLIP] = _ClipUfunc()


@composite(np.nan_to_num)
def nan_to_num(
    x: Operand,
    copy: bool = True,
    nan: Operand = 0.0,
    posinf: Operand = None,
    neginf: Operand = None,
) -> Result:
    """Replace what is not finite; the derivative there is the derivative of the replacement.

    Where only some elements are replaced, in reverse mode those whose own derivative is infinite
    have the gradient nan."""
    if not copy:
        raise TypeError(
            "nan_to_num: copy is False, but must be True for a variable; assign the result"
        )
    largest = np.finfo(np.float64).max
    values = plain(x)
    posinf, neginf = largest if posinf is None else posinf, -largest if neginf is None else neginf
    others = np.where(np.isnan(values), nan, np.where(np.isposinf(values), posinf, neginf))
    finite = np.isfinite(values)
    # If all are replaced, nothing is left of what made them: zeros times an infinite derivative
    # would be nan.
    return np.where(finite, x, others) if np.any(finite) else np.zeros_like(x) + others


@operation()
def round(a: Plain, decimals: int = 0) -> Plain:
    """Round to a number of decimals; the derivative is zero."""
    return np.round(a, decimals)


@round.reverse
def round_reverse(g: Adjoint, r: Plain, a: Plain, decimals: int) -> Adjoint:
    return np.zeros(np.shape(r))


@round.tangent
def round_tangent(r: Result, a: Operand, decimals: int) -> Linear:
    return lambda t: np.zeros(np.shape(r))


def _answer_for_rounding(function: Function) -> None:
    @implements(function)
    def rounded(a: Operand, decimals: int = 0, out: Operand = None) -> Result:
        check_settings(function, out)
        return delivered(function, out, round(a, decimals=decimals))


_answer_for_rounding(np.round)
_answer_for_rounding(np.around)


@composite(*named("fix"))
def fix(x: Operand, out: Operand = None) -> Result:
    """Round towards zero; the derivative is zero."""
    check_settings(np.fix, out)
    return delivered(np.fix, out, np.trunc(x))


@operation(np.unwrap)
def unwrap(
    p: Plain, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Plain:
    """Take jumps of a multiple of `period` out of a sequence; they are constants, so the derivative
    is one.
    """
    if is_differentiable([discont, period]):
        raise TypeError("unwrap: discont and period must be data, not variables!")
    return np.unwrap(p, discont, axis, period=period)


@unwrap.reverse
def unwrap_reverse(g: Adjoint, r: Plain, p: Plain, **settings: Setting) -> Adjoint:
    return g


@unwrap.tangent
def unwrap_tangent(r: Result, p: Operand, **settings: Setting) -> Linear:
    return lambda t: t


@composite(np.real_if_close)
def real_if_close(a: Operand, tol: float = 100) -> Result:
    """Return the argument, because variables are real."""
    return a


@composite(np.piecewise)
def piecewise(
    x: Operand, condlist: Operand, funclist: Sequence[Operand], *args: Setting, **kw: Setting
) -> Result:
    """Apply each function (or number) where its condition holds, the last of those that hold; zero
    elsewhere.
    """
    conditions = np.asarray(plain(condlist), dtype=bool)
    if conditions.ndim == np.ndim(x):
        conditions = conditions[None]
    count = len(funclist)
    if count not in (len(conditions), len(conditions) + 1):
        raise ShapeError(
            f"piecewise: funclist has {count} items, but must have one for each "
            f"condition ({len(conditions)}), or one more"
        )
    functions = [funclist[-1] if count > len(conditions) else 0.0, *funclist[: len(conditions)]]
    choice = np.zeros(np.shape(x), dtype=int)
    for k, condition in enumerate(conditions, 1):
        choice[condition] = k
    flat, order, parts = np.ravel(x), [], []
    for k, function in enumerate(functions):
        indices = np.flatnonzero(choice == k)
        if len(indices):
            part = function(flat[indices], *args, **kw) if callable(function) else function
            parts.append(np.broadcast_to(part, indices.shape))
            order.append(indices)
    result = np.concatenate(parts)[np.argsort(np.concatenate(order))] if parts else flat
    return np.reshape(result, np.shape(x))


# Lanes and sets


@composite(np.apply_along_axis)
def apply_along_axis(
    func1d: Function, axis: int, arr: Operand, *args: Setting, **kwargs: Setting
) -> Result:
    """Apply a function of vectors to each vector along an axis."""
    axis = normalize_axis_index(axis, np.ndim(arr))
    lanes = np.moveaxis(arr, axis, -1)
    outer = np.shape(lanes)[:-1]
    if 0 in outer:
        raise misfit(
            "apply_along_axis", "arr", np.shape(arr), f"have at least one vector along axis {axis}"
        )
    results = np.stack([func1d(lanes[i], *args, **kwargs) for i in np.ndindex(outer)])
    inner = np.shape(results)[1:]
    results = np.reshape(results, outer + inner)
    return np.moveaxis(
        results, range(len(outer), len(outer) + len(inner)), range(axis, axis + len(inner))
    )


@composite(np.apply_over_axes)
def apply_over_axes(func: Callable[[Operand, int], Result], a: Operand, axes: Setting) -> Result:
    """Apply a reduction along several axes in sequence."""
    for axis in np.atleast_1d(axes).tolist():
        axis = normalize_axis_index(axis, np.ndim(a))
        result = func(a, axis)
        a = result if np.ndim(result) == np.ndim(a) else np.expand_dims(result, axis)
    return a


@composite(np.unique)
def unique(
    ar: Operand,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    **settings: Setting,
) -> Result:
    """Find the distinct values in order; the derivative of each goes to its first occurrence."""
    result: Function = np.unique
    _, index, *others = result(plain(ar), True, return_inverse, return_counts, axis, **settings)
    values = np.take(ar, index, axis=axis) if axis is not None else np.take(np.ravel(ar), index)
    results = (values, index, *others) if return_index else (values, *others)
    return results if len(results) > 1 else values


def _answer_for_unique(function: Function) -> None:
    """Make the array API's variants: one returns the values, the others named tuples with the
    values in them.
    """

    @composite(function)
    def variant(x: Operand) -> Result:
        result: Result = function(plain(x))
        values = np.unique(x, equal_nan=False)
        return type(result)(values, *result[1:]) if isinstance(result, tuple) else values


for _function in (np.unique_values, np.unique_all, np.unique_counts, np.unique_inverse):
    _answer_for_unique(_function)


@operation(linear=True)
def bincount_weighted(weights: Plain, *, x: Plain, minlength: int) -> Plain:
    """Sum the weights that belong to each integer."""
    return np.bincount(x, weights, minlength)


@bincount_weighted.reverse
def bincount_reverse(g: Adjoint, r: Plain, weights: Plain, x: Plain, minlength: int) -> Adjoint:
    return g[x]


@composite(np.bincount)
def bincount(x: Operand, weights: Operand = None, minlength: int = 0) -> Result:
    """Sum the weights that belong to each integer; linear in the weights."""
    if is_differentiable(x):
        raise TypeError(
            "bincount: x is a variable, but must be integers; pass varmat.value(x).astype(int)"
        )
    return bincount_weighted(weights, x=np.array(x), minlength=minlength)


# With like=


def _answer_with_like(function: Function, first: str) -> None:
    """Make an array of variables, requested with ``like=``; data stays data."""
    name = function.__name__

    @implements(function)
    def make(*args: Setting, **settings: Setting) -> Result:
        if not is_differentiable([*args, *settings.values()]):
            return function(*args, **settings)
        a, *others = args or (settings.pop(first),)
        check_settings(function, dtype=others.pop(0) if others else settings.pop("dtype", None))
        x = as_operand(a, f"{name}: the argument")
        if x is not a and settings.get("copy") is False:
            raise DomainError(
                f"{name}: copy is False, but must be None or True where a {type(a).__name__} is to "
                "become an array!"
            )
        # NumPy, applied to the values, says which shape is asked for, and whether that needs a
        # copy.
        values = memory_of(x)
        result = function(values, None, *others, **settings)
        if x is a and np.ndim(x) and not np.may_share_memory(result, values):
            x = np.copy(x)
        return np.reshape(x, result.shape) if result.shape != np.shape(x) else x


_answer_with_like(np.array, "object")


for _function in named("asarray asanyarray ascontiguousarray asfortranarray require"):
    _answer_with_like(_function, "a")


@composite(*named("astype"))
def astype(
    x: Operand, dtype: DTypeLike | None, /, *, copy: bool = True, device: str | None = None
) -> Result:
    """Implement the method: a copy, or for integers and truth values a constant."""
    check_settings(np.astype, device=device)
    return x.astype(dtype, copy=copy)


# Matrices, with the array API's convention: the last two axes


@composite(np.linalg.diagonal)
def linalg_diagonal(x: Operand, /, *, offset: int = 0) -> Result:
    """Return the diagonal of each matrix of a stack."""
    return np.diagonal(x, offset, axis1=-2, axis2=-1)


@composite(np.linalg.matrix_transpose)
def linalg_matrix_transpose(x: Operand, /) -> Result:
    """Transpose each matrix of a stack."""
    return np.swapaxes(x, -1, -2)
