"""NumPy functions written with differentiable ones: clipping, differences, interpolation, grids,
polynomials.

Each answers for NumPy's function of the same name, with its arguments and values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy._core import umath
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from varmat.core.dispatch import SUPPORTED, implements, plain, refuse_settings
from varmat.core.errors import Domain, DomainError, ShapeError, nonnegative
from varmat.core.matvar import MatVar, to_matvar, to_varmat
from varmat.core.operation import as_operand, is_differentiable, operation
from varmat.core.variables import ARRAYS, like
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.shaping import memory_of
from varmat.functions.checks import check_settings, check_values, delivered

__all__: list[str] = []

# NumPy's clip is a function; the ufunc behind it is private.
_CLIP = vars(umath)["clip"]
_nonzero = Domain("nonzero", lambda x: x != 0)


def composite(*answers: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a composition answer for NumPy's functions, with the rule for kinds: a varmat out if
    there is one in.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def answer(*args: Any, **settings: Any) -> Any:
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
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
    **settings: Any,
) -> Any:
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
    """What a method like ``plain.clip(lower, upper)`` calls: three operands, all of them given."""

    __call__ = call = staticmethod(clip)


SUPPORTED[_CLIP] = _ClipUfunc()


@composite(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Replace what is not finite; the derivative there is that of the replacement."""
    if not copy:
        raise TypeError(
            "nan_to_num: copy is False, but must be True for a variable; assign the result"
        )
    largest = np.finfo(np.float64).max
    values = plain(x)
    x = np.where(np.isnan(values), nan, x)
    x = np.where(np.isposinf(values), largest if posinf is None else posinf, x)
    return np.where(np.isneginf(values), -largest if neginf is None else neginf, x)


@operation()
def round(a: Any, decimals: int = 0) -> Any:
    """Round to a number of decimals; the derivative is zero."""
    return np.round(a, decimals)


@round.reverse
def round_reverse(g: Any, r: Any, a: Any, decimals: int) -> Any:
    return np.zeros(np.shape(r))


@round.tangent
def round_tangent(r: Any, a: Any, decimals: int) -> Any:
    return lambda t: np.zeros(np.shape(r))


def _answer_for_rounding(function: Any) -> None:
    @implements(function)
    def rounded(a: Any, decimals: int = 0, out: Any = None) -> Any:
        check_settings(function, out)
        return delivered(function, out, round(a, decimals=decimals))


_answer_for_rounding(np.round)
_answer_for_rounding(np.around)


@composite(*named("fix"))
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero; the derivative is zero."""
    check_settings(np.fix, out)
    return delivered(np.fix, out, np.trunc(x))


@operation(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """Take jumps of a multiple of `period` out of a sequence; they are constants, so the derivative
    is one.
    """
    if is_differentiable([discont, period]):
        raise TypeError("unwrap: discont and period must be data, not variables!")
    return np.unwrap(p, discont, axis, period=period)


@unwrap.reverse
def unwrap_reverse(g: Any, r: Any, p: Any, **settings: Any) -> Any:
    return g


@unwrap.tangent
def unwrap_tangent(r: Any, p: Any, **settings: Any) -> Any:
    return lambda t: t


@composite(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> Any:
    """The argument: variables are real."""
    return a


@composite(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    """Each function (or number) where its condition holds, the last of those that hold; zero
    elsewhere.
    """
    conditions = np.asarray(plain(condlist), dtype=bool)
    if conditions.ndim == np.ndim(x):
        conditions = conditions[None]
    count = len(funclist)
    if count not in (len(conditions), len(conditions) + 1):
        raise ShapeError(
            f"piecewise: funclist has {count} items, but must have one per condition "
            f"({len(conditions)}), or one more"
        )
    functions = [funclist[-1] if count > len(conditions) else 0.0, *funclist[: len(conditions)]]
    choice = np.zeros(np.shape(x), dtype=int)
    for k, condition in enumerate(conditions, 1):
        choice[condition] = k
    flat, order, parts = np.ravel(x), [], []
    for k, function in enumerate(functions):
        places = np.flatnonzero(choice == k)
        if len(places):
            part = function(flat[places], *args, **kw) if callable(function) else function
            parts.append(np.broadcast_to(part, places.shape))
            order.append(places)
    result = np.concatenate(parts)[np.argsort(np.concatenate(order))] if parts else flat
    return np.reshape(result, np.shape(x))


# Differences and integrals


def _along(axis: int, *limits: int | None) -> tuple[slice, ...]:
    """The index of a slice along one axis."""
    return (slice(None),) * axis + (slice(*limits),)


@composite(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours, `n` times over."""
    nonnegative.check("diff", "n", n)
    a = as_operand(a, "diff: a")
    if n == 0:
        return a  # as NumPy does, without what is to be put before and after
    axis = normalize_axis_index(axis, np.ndim(a))
    if prepend is not None or append is not None:
        edge = (*np.shape(a)[:axis], 1, *np.shape(a)[axis + 1 :])
        parts = [
            part if part is None or np.ndim(part) else np.broadcast_to(part, edge)
            for part in (prepend, a, append)
        ]
        a = np.concatenate([part for part in parts if part is not None], axis)
    for _ in range(n):
        a = a[_along(axis, 1, None)] - a[_along(axis, 0, -1)]
    return a


@composite(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, between given ends."""
    parts = (to_begin, np.diff(np.ravel(as_operand(ary, "ediff1d: ary"))), to_end)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@composite(*named("trapezoid trapz"))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by the trapezoidal rule."""
    y = as_operand(y, "trapezoid: y")
    along = normalize_axis_index(axis, np.ndim(y))
    if x is not None:
        x = as_operand(x, "trapezoid: x")
        dx = (
            np.diff(x, axis=axis)
            if np.ndim(x) > 1
            else np.diff(x)[(..., *(None,) * (np.ndim(y) - 1 - along))]
        )
    return np.sum(dx * (y[_along(along, 1, None)] + y[_along(along, 0, -1)]) / 2.0, axis=axis)


@composite(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order differences inside, one-sided ones of first or second order at the ends."""
    if edge_order not in (1, 2):
        raise DomainError(f"gradient: edge_order is {edge_order}, but must be 1 or 2!")
    f = as_operand(f, "gradient: f")
    axes = tuple(range(np.ndim(f))) if axis is None else normalize_axis_tuple(axis, np.ndim(f))
    spacings = varargs or (1.0,)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient: {len(spacings)} spacings are given, but must be one, or one for each of "
            f"{len(axes)} axes!"
        )
    results = [_gradient_along(f, i, h, edge_order) for i, h in zip(axes, spacings, strict=True)]
    return results[0] if len(axes) == 1 else tuple(results)


def _gradient_along(f: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    x = np.moveaxis(f, axis, -1)
    n = np.shape(x)[-1]
    if n <= edge_order:
        raise ShapeError(
            f"gradient: axis {axis} has length {n}, but must have at least {edge_order + 1}!"
        )
    spacing = as_operand(spacing, "gradient: the spacing")
    if np.ndim(spacing) and np.shape(spacing) != (n,):
        raise ShapeError(
            f"gradient: the coordinates have shape {np.shape(spacing)}, but must have shape {(n,)} "
            f"along axis {axis}!"
        )
    h = np.diff(spacing) if np.ndim(spacing) else spacing
    # The slopes of the two neighbouring intervals, weighted so that a parabola is differentiated
    # exactly. Where these are equal the value between them does not count, and may be nan.
    slopes = np.diff(x) / h
    bend = slopes[..., 1:] - slopes[..., :-1]
    share = h[:-1] / (h[:-1] + h[1:]) if np.ndim(spacing) else np.array([0.5])
    first, last = slopes[..., :1], slopes[..., -1:]
    inner = (
        slopes[..., :-1] + share * bend
        if np.ndim(spacing)
        else (x[..., 2:] - x[..., :-2]) / (2.0 * h)
    )
    if edge_order == 2:
        first = first - share[:1] * bend[..., :1]
        last = last + (1.0 - share[-1:]) * bend[..., -1:]
    return np.moveaxis(np.concatenate((first, inner, last), axis=-1), -1, axis)


@composite(np.interp)
def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """Linear interpolation, differentiable in all of `x`, `xp` and `fp`; at a knot the slope is
    that to its right.
    """
    x, xp, fp = (
        as_operand(item, f"interp: {name}") for name, item in (("x", x), ("xp", xp), ("fp", fp))
    )
    if np.ndim(xp) != 1 or np.shape(xp) != np.shape(fp) or not np.size(xp):
        raise ShapeError(
            f"interp: xp has shape {np.shape(xp)} and fp {np.shape(fp)}, but both must be vectors "
            "of one length!"
        )
    if period is not None:
        if is_differentiable(period):
            raise TypeError("interp: period is a variable, but must be data!")
        _nonzero.check("interp", "period", period)
        period = abs(period)
        x, xp = (item - np.floor(plain(item) / period) * period for item in (x, xp))
        order = np.argsort(plain(xp))
        xp, fp = xp[order], fp[order]
        xp = np.concatenate((xp[-1:] - period, xp, xp[:1] + period))
        fp = np.concatenate((fp[-1:], fp, fp[:1]))
        left = right = None
    left = fp[0] if left is None else left
    right = fp[-1] if right is None else right
    points, knots = plain(x), plain(xp)
    if np.size(knots) == 1:
        inside = fp[0] + 0.0 * x
    else:
        i = np.clip(np.searchsorted(knots, points, side="right") - 1, 0, np.size(knots) - 2)
        width = xp[i + 1] - xp[i]
        # Two knots in one place are a jump, met only at the last knot and outside: no slope, and
        # the value behind it.
        jump = plain(width) == 0
        slope = np.where(jump, 0.0, (fp[i + 1] - fp[i]) / np.where(jump, 1.0, width))
        # Beyond the knots, which may be infinitely far, it is not used.
        near = np.where((points < knots[0]) | (points > knots[-1]), xp[i], x)
        inside = fp[i + jump] + slope * (near - xp[i])
    return np.where(points < knots[0], left, np.where(points > knots[-1], right, inside))


# Grids


@composite(np.linspace)
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Evenly spaced numbers between variable ends."""
    check_settings(np.linspace, dtype=dtype, device=device)
    num = operator.index(num)
    nonnegative.check("linspace", "num", num)
    start, stop = as_operand(start, "linspace: start"), as_operand(stop, "linspace: stop")
    span = stop - start
    intervals = num - 1 if endpoint else num
    step = span / intervals if intervals > 0 else np.nan
    ticks = np.arange(float(num)).reshape((-1,) + (1,) * np.ndim(span))
    grid = start + ticks * (step if intervals > 0 else span)
    if endpoint and num > 1:
        grid = np.where(ticks == intervals, stop, grid)
    grid = np.moveaxis(grid, 0, axis)
    return (grid, step) if retstep else grid


@composite(np.logspace)
def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Powers of `base` with evenly spaced exponents between variable ends."""
    check_settings(np.logspace, dtype=dtype)
    base = as_operand(base, "logspace: base")
    if np.ndim(base):
        start, stop = start + 0.0 * base, stop + 0.0 * base
    exponents = np.linspace(start, stop, num, endpoint)
    return np.moveaxis(np.power(base, exponents), 0, axis)


@composite(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """A geometric progression between variable ends of one sign."""
    check_settings(np.geomspace, dtype=dtype)
    start, stop = as_operand(start, "geomspace: start"), as_operand(stop, "geomspace: stop")
    _nonzero.check("geomspace", "start", plain(start))
    _nonzero.check("geomspace", "stop", plain(stop))
    sign = np.sign(plain(start))
    Domain("of the sign of start", lambda x: np.sign(x) == sign).check(
        "geomspace", "stop", plain(stop)
    )
    start, stop = sign * start, sign * stop
    grid = np.power(10.0, np.linspace(np.log10(start), np.log10(stop), num, endpoint))
    count = np.shape(grid)[0]
    ticks = np.arange(count).reshape((-1,) + (1,) * (np.ndim(grid) - 1))
    grid = np.where(ticks == 0, start, grid)
    if endpoint and count > 1:
        grid = np.where(ticks == count - 1, stop, grid)
    return np.moveaxis(sign * grid, 0, axis)


# Polynomials


@composite(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """A polynomial by Horner's rule, the highest power first."""
    p, x = as_operand(p, "polyval: p"), as_operand(x, "polyval: x")
    result: Any = np.zeros(np.shape(x))
    for coefficient in p:
        result = result * x + coefficient
    return result


@composite(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of `x` as columns, the highest first."""
    if np.ndim(x) != 1:
        raise ShapeError(f"vander: x has shape {np.shape(x)}, but must be a vector!")
    powers = np.arange(float(np.size(x) if N is None else N))
    return np.power(x[:, None], powers if increasing else powers[::-1])


def _polynomials(a: Any, b: Any) -> tuple[Any, Any]:
    """Both coefficient vectors with leading zeros to one length."""
    a, b = (
        np.atleast_1d(as_operand(a, "a polynomial")),
        np.atleast_1d(as_operand(b, "a polynomial")),
    )
    length = max(np.size(a), np.size(b))
    padded = [
        np.concatenate((np.zeros(length - np.size(p)), p)) if np.size(p) < length else p
        for p in (a, b)
    ]
    return padded[0], padded[1]


@composite(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    return operator.add(*_polynomials(a1, a2))


@composite(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    return operator.sub(*_polynomials(a1, a2))


@composite(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials, without their leading zeros."""
    p, q = (
        np.atleast_1d(as_operand(x, f"polymul: {name}")) for name, x in (("a1", a1), ("a2", a2))
    )
    return np.convolve(p[check_values(_leading_zeros, p) :], q[check_values(_leading_zeros, q) :])


def _leading_zeros(p: Any) -> int:
    """How many zeros stand before the first other coefficient, or before the last one."""
    return int(np.argmax(np.append(p[:-1] != 0, True)))


@composite(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with given real zeros."""
    if np.ndim(seq_of_zeros) > 1:
        raise TypeError(
            "poly: the characteristic polynomial of a matrix is not supported; use "
            "np.poly(np.linalg.eigvalsh(a))"
        )
    result: Any = np.ones(1)
    for zero in np.atleast_1d(seq_of_zeros):
        result = np.concatenate((result, np.zeros(1))) - np.concatenate(
            (np.zeros(1), result * zero)
        )
    return result


@composite(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """The `m`-th derivative of a polynomial."""
    nonnegative.check("polyder", "m", m)
    for _ in range(m):
        p = p[:-1] * np.arange(np.size(p) - 1.0, 0.0, -1.0)
    return p


@composite(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The `m`-th antiderivative of a polynomial, with constants of integration `k`."""
    nonnegative.check("polyint", "m", m)
    p = as_operand(p, "polyint: p")
    constants = np.broadcast_to(
        np.zeros(1) if k is None else np.atleast_1d(as_operand(k, "polyint: k"))[:m], (m,)
    )
    for i in range(m):
        p = np.concatenate((p / np.arange(float(np.size(p)), 0.0, -1.0), constants[i : i + 1]))
    return p


# Lanes and sets


@composite(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    """A function of vectors, applied to each vector along an axis."""
    axis = normalize_axis_index(axis, np.ndim(arr))
    lanes = np.moveaxis(arr, axis, -1)
    outer = np.shape(lanes)[:-1]
    if 0 in outer:
        raise ShapeError(
            f"apply_along_axis: arr has shape {np.shape(arr)}, but must have at least one vector "
            f"along axis {axis}!"
        )
    results = np.stack([func1d(lanes[i], *args, **kwargs) for i in np.ndindex(outer)])
    inner = np.shape(results)[1:]
    results = np.reshape(results, outer + inner)
    return np.moveaxis(
        results, range(len(outer), len(outer) + len(inner)), range(axis, axis + len(inner))
    )


@composite(np.apply_over_axes)
def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Any:
    """A reduction, applied along one axis after the other."""
    for axis in np.atleast_1d(axes).tolist():
        axis = normalize_axis_index(axis, np.ndim(a))
        result = func(a, axis)
        a = result if np.ndim(result) == np.ndim(a) else np.expand_dims(result, axis)
    return a


@composite(np.unique)
def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    **settings: Any,
) -> Any:
    """The distinct values in order; the derivative of each goes to its first occurrence."""
    found: Any = np.unique
    _, index, *others = found(plain(ar), True, return_inverse, return_counts, axis, **settings)
    values = np.take(ar, index, axis=axis) if axis is not None else np.take(np.ravel(ar), index)
    results = (values, index, *others) if return_index else (values, *others)
    return results if len(results) > 1 else values


def _answer_for_unique(function: Any) -> None:
    """The array API's variants: one returns the values, the others named tuples with the values in
    them.
    """

    @composite(function)
    def variant(x: Any) -> Any:
        result: Any = function(plain(x))
        values = np.unique(x, equal_nan=False)
        return type(result)(values, *result[1:]) if isinstance(result, tuple) else values


for _function in (np.unique_values, np.unique_all, np.unique_counts, np.unique_inverse):
    _answer_for_unique(_function)


@operation()
def bincount_weighted(weights: Any, *, x: Any, minlength: int) -> Any:
    """The sums of the weights that belong to each integer."""
    return np.bincount(x, weights, minlength)


@bincount_weighted.reverse
def bincount_reverse(g: Any, r: Any, weights: Any, x: Any, minlength: int) -> Any:
    return g[x]


@bincount_weighted.tangent
def bincount_tangent(r: Any, weights: Any, x: Any, minlength: int) -> Any:
    return lambda t: np.bincount(x, t, minlength)


@composite(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """The sums of the weights that belong to each integer, linear in the weights."""
    if is_differentiable(x):
        raise TypeError(
            "bincount: x is a variable, but must be integers; pass varmat.value(x).astype(int)"
        )
    return bincount_weighted(weights, x=np.array(x), minlength=minlength)


# With like=


def _answer_with_like(function: Any, first: str) -> None:
    """An array of variables, asked for with ``like=``; data stays data."""
    name = function.__name__

    @implements(function)
    def make(*args: Any, **settings: Any) -> Any:
        if not is_differentiable([*args, *settings.values()]):
            return function(*args, **settings)
        a, *rest = args or (settings.pop(first),)
        check_settings(function, dtype=rest.pop(0) if rest else settings.pop("dtype", None))
        x = as_operand(a, f"{name}: the argument")
        if x is not a and settings.get("copy") is False:
            raise DomainError(
                f"{name}: copy is False, but must be None or True where a {type(a).__name__} is to "
                "become an array!"
            )
        # NumPy says on the values which shape is asked for, and whether that needs a copy.
        values = memory_of(x)
        made = function(values, None, *rest, **settings)
        if x is a and np.ndim(x) and not np.may_share_memory(made, values):
            x = np.copy(x)
        return np.reshape(x, made.shape) if made.shape != np.shape(x) else x


_answer_with_like(np.array, "object")
for _function in named("asarray asanyarray ascontiguousarray asfortranarray require"):
    _answer_with_like(_function, "a")


@composite(*named("astype"))
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The method: a copy, or for integers and truth values a constant."""
    check_settings(np.astype, device=device)
    return x.astype(dtype, copy=copy)


# Matrices, with the array API's convention: the last two axes


@composite(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonal of each matrix of a stack."""
    return np.diagonal(x, offset, axis1=-2, axis2=-1)


@composite(np.linalg.matrix_transpose)
def linalg_matrix_transpose(x: Any, /) -> Any:
    """The transpose of each matrix of a stack."""
    return np.swapaxes(x, -1, -2)
