"""Reductions: sums, products, means, spreads, extremes and norms.

`restored` gives what was reduced its axes back, so that one rule serves every `axis` and
`keepdims`. NumPy's names with all their arguments (``where=``, ``initial=``, ...) are answered in
`varmat.functions.arrays.reduction_names`."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64
from varmat.core.errors import ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.core.tape import Rule
from varmat.core.variables import Var, VarMat, new
from varmat.functions.checks import fixed
from varmat.plain_arrays import by_columns, is_between, is_safe_divisor, summed
from varmat.programs.conditions import Condition
from varmat.programs.symbols import refuse, require

__all__ = ["dot_self", "mean", "norm1", "norm2", "prod", "sd", "variance"]

# Elements from which an adjoint that is the same everywhere is not written out.
REPEATED = 1024
# Sums of powers, and norms, that are far from the ends of what a float holds: nothing was lost on
# the way to them.
ORDINARY = (1e-140, 1e140)
# Typed as Any: NumPy's stubs know no general axis.
add_reduce: Any = np.add.reduce
multiply_reduce: Any = np.multiply.reduce
max_reduce: Any = np.maximum.reduce
min_reduce: Any = np.minimum.reduce


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The reduced axes, counted from the end: right also below a leading axis of directions."""
    if axis is None or not ndim:
        return tuple(range(-ndim, 0))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis - ndim if axis >= 0 else axis,)
    return tuple(i - ndim for i in normalize_axis_tuple(axis, ndim))


def count_of(shape: tuple[int, ...], axis: Any) -> int:
    """How many elements are reduced to one."""
    return (
        math.prod(shape)
        if axis is None
        else math.prod(shape[i] for i in normalize_axis_tuple(axis, len(shape)))
    )


def restored(r: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """A reduced array with its reduced axes back, of length one, so that it broadcasts against what
    was reduced.
    """
    if keepdims or not getattr(r, "shape", ()):
        return r
    lengths = list(shape)
    for i in axes_of(axis, len(shape)):
        lengths[i] = 1
    return r.reshape(lengths)


def _spread(g: Any, shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """The adjoint of a reduced array, repeated along the reduced axes."""
    g = restored(g, shape, axis, keepdims)
    if math.prod(shape) > LARGE or not isinstance(g, (float, np.ndarray)):
        return np.broadcast_to(g, shape)
    c = np.empty(shape)
    c[...] = g
    return c


@operation(native=True, stacked=True)
def sum(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Sum of the elements over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to sum over; all by default.
    keepdims : bool
        Keep the summed axes with length one.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative with respect to every element is one. The sum of nothing is zero.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(x * x), np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return summed(a, axis, keepdims)


@sum.reverse
def sum_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    return _spread(g, np.shape(a), axis, keepdims)


@sum.tangent
def sum_tangent(r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    axes = axes_of(axis, np.ndim(a))
    return lambda t: np.sum(t, axis=axes, keepdims=keepdims)


@operation(native=True, stacked=True)
def mean(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to average over; all by default.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative with respect to each of `n` elements is ``1 / n``. The mean of nothing is nan,
    with NumPy's warning.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.mean(x), np.array([1.0, 2.0]))
    array([0.5, 0.5])
    """
    n = count_of(np.shape(a), axis)
    if not n:  # an empty sum of Var is the integer 0, which Python would refuse to divide
        a = np.zeros(np.shape(a))
    return np.true_divide(summed(a, axis, keepdims), n)


@mean.reverse
def mean_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    return _spread(np.true_divide(g, count_of(np.shape(a), axis)), np.shape(a), axis, keepdims)


@mean.tangent
def mean_tangent(r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    axes, n = axes_of(axis, np.ndim(a)), count_of(np.shape(a), axis) or 1
    return lambda t: np.sum(t, axis=axes, keepdims=keepdims) / n


def _total_chain(result: Any, x: Any, count: Any) -> None:
    shape = x._val.shape
    adjoint = result._adj if count is None else result._adj / count
    if x._val.size > REPEATED:
        # The same number everywhere, without writing it: a read-only array whose strides are zero.
        c = np.ndarray(shape, FLOAT64, np.float64(adjoint), 0, (0,) * len(shape))
    else:
        c = np.empty(shape)
        c.fill(adjoint)
        if type(x) is VarMat and x._adj is None:
            x._adj = c
            return
    x._take(c)


TOTAL = Rule("sum", _total_chain, None, lambda _, x, count: np.sum(x))
AVERAGE = Rule("mean", _total_chain, None, lambda _, x, count: np.mean(x))


def reduced_to_scalar(callback: Rule, a: Any, val: float, count: Any) -> Any:
    """Sums and means of a whole `VarMat`, the common case, without the rhythm."""
    result: Any = new(Var)
    result._val = val
    result._adj = None
    result._tape = tape = a._tape.top
    tape.append((callback, result, a, count))
    return result


@operation(native=True, stacked=True)
def prod(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Product of the elements over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to multiply over; all by default.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative with respect to an element is the product of the others, which is exact also
    where elements are zero. The product of nothing is one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.prod(x), np.array([2.0, 0.0, 5.0]))
    array([ 0., 10.,  0.])
    """
    return multiply_reduce(by_columns(a, axis), axis=axis, keepdims=keepdims)


def before(x: Any) -> Any:
    """Each element's predecessor along the last axis; one before the first."""
    return np.concatenate([np.ones(np.shape(x[..., :1])), x[..., :-1]], axis=-1)


def _others(a: Any) -> Any:
    """Along the last axis, the product of all elements but the one at each place."""
    backwards = np.cumprod(a[..., ::-1], axis=-1)
    return before(np.cumprod(a, axis=-1)) * before(backwards)[..., ::-1]


def _merged(x: Any, axes: tuple[int, ...]) -> Any:
    """`x` with the given axes (counted from the end) as one, the last."""
    x = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    lead = np.shape(x)[: np.ndim(x) - len(axes)]
    return np.reshape(x, (*lead, math.prod(np.shape(x)[len(lead) :])))


@prod.straight
def prod_straight(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if not np.size(a):
        refuse()
    shape, axes = np.shape(a), axes_of(axis, np.ndim(a))
    r, inner = np.prod(a, axis=axis, keepdims=True), tuple(range(-len(axes), 0))

    def contribution(g: Any) -> Any:
        others = np.reshape(
            _others(_merged(a, axes)), np.shape(np.moveaxis(np.empty(shape, bool), axes, inner))
        )
        return np.reshape(g, np.shape(r)) * np.moveaxis(others, inner, axes)

    return (r if keepdims else np.squeeze(r, axis=axis)), contribution


@prod.reverse
def prod_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    shape = np.shape(a)
    g = restored(g, shape, axis, keepdims)
    if is_safe_divisor(r):
        return g * restored(r, shape, axis, keepdims) / a
    axes = axes_of(axis, len(shape))
    moved = np.moveaxis(np.asarray(a), axes, range(-len(axes), 0))
    others = _others(_merged(a, axes)).reshape(moved.shape)
    return g * np.moveaxis(others, range(-len(axes), 0), axes)


@prod.tangent
def prod_tangent(r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    axes = axes_of(axis, np.ndim(a))
    others = _others(_merged(a, axes))

    def push(t: Any) -> Any:
        dr = np.sum(_merged(t, axes) * others, axis=-1)
        return np.reshape(dr, np.shape(t)[: np.ndim(t) - np.ndim(a)] + np.shape(r))

    return push


@operation(stacked=True)
def var(a: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    """Variance over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Keep the reduced axes with length one.
    ddof : float
        The sum of squares is divided by ``n - ddof``.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative is ``2 (a - mean(a)) / (n - ddof)``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.var(x), np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    d = _deviations(a, axis, mean.function)
    return Saved(np.true_divide(_squares(d, axis, keepdims), _freedom(a, axis, ddof)), d=d)


def _deviations(a: Any, axis: Any, mean: Any = np.mean) -> Any:
    return a - mean(a, axis=axis, keepdims=axis is not None) if np.ndim(a) else a - a


def _squares(d: Any, axis: Any, keepdims: bool) -> Any:
    return np.vdot(d, d) if axis is None and not keepdims else summed(d * d, axis, keepdims)


def _freedom(a: Any, axis: Any, ddof: float) -> Any:
    # small integers would wrap around
    return builtins.max(count_of(np.shape(a), axis) - float(ddof), 0.0)


@var.reverse
def var_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any, ddof: float, d: Any) -> Any:
    return restored(np.true_divide(g + g, _freedom(a, axis, ddof)), np.shape(a), axis, keepdims) * d


@var.tangent
def var_tangent(r: Any, a: Any, axis: Any, keepdims: Any, ddof: float) -> Any:
    axes, n = axes_of(axis, np.ndim(a)), _freedom(a, axis, ddof)
    d = _deviations(a, axis) * np.true_divide(2.0, n)
    return lambda t: np.sum(d * t, axis=axes, keepdims=keepdims)


@operation(stacked=True)
def std(a: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    """Standard deviation over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Keep the reduced axes with length one.
    ddof : float
        The sum of squares is divided by ``n - ddof``.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative is ``(a - mean(a)) / ((n - ddof) std(a))``; zero where all elements are equal,
    the smallest subgradient there.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.std(x), np.array([1.0, 3.0]))
    array([-0.5,  0.5])
    """
    m = mean.function(a, axis=axis, keepdims=axis is not None)
    d, n = a - m, _freedom(a, axis, ddof)
    r = np.sqrt(np.true_divide(_squares(d, axis, keepdims), n))
    # Deviations of elements that are all equal are the rounding error of their mean, and its root
    # would have a derivative.
    if np.count_nonzero(restored(r, np.shape(a), axis, keepdims) < 1e-8 * np.abs(m)):
        d = d - mean.function(d, axis=axis, keepdims=axis is not None)
        r = np.sqrt(np.true_divide(_squares(d, axis, keepdims), n))
    return Saved(r, d=d)


@std.straight
def std_straight(a: Any, axis: Any = None, keepdims: bool = False, ddof: float = 0) -> Any:
    n, m = (
        _freedom(a, axis, ddof),
        np.sum(a, axis=axis, keepdims=True) / builtins.max(count_of(np.shape(a), axis), 1),
    )
    if not n or not np.size(a):
        refuse()
    d = a - m
    r = np.sqrt(np.sum(np.square(d), axis=axis, keepdims=True) / n)
    require((r > 0.0) & (r >= 1e-8 * np.abs(m)))
    return (
        r if keepdims else np.squeeze(r, axis=axis)
    ), lambda g: d * (np.reshape(g, np.shape(r)) / (r * n))


@std.reverse
def std_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any, ddof: float, d: Any) -> Any:
    scale = np.where(r == 0, 0.0, np.true_divide(g, r * _freedom(a, axis, ddof)))
    return restored(scale, np.shape(a), axis, keepdims) * d


@std.tangent
def std_tangent(r: Any, a: Any, axis: Any, keepdims: Any, ddof: float) -> Any:
    axes, n = axes_of(axis, np.ndim(a)), _freedom(a, axis, ddof)
    d, flat = _deviations(a, axis), (fixed(r) == 0) | (n == 0)
    divisor = np.where(flat, 1.0, r) * n

    def push(t: Any) -> Any:
        dr = np.sum(d * t, axis=axes, keepdims=keepdims) / divisor
        return np.where(flat, 0.0, dr) if type(flat) is Condition or np.any(flat) else dr

    return push


def _reduced_extreme(name: str, reduce: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    try:
        return reduce(by_columns(a, axis), axis=axis, keepdims=keepdims)
    except ValueError:
        if count_of(np.shape(a), axis):
            raise
        raise ShapeError(
            f"{name}: a has shape {np.shape(a)}, but must not be empty along the reduced axes!"
        ) from None


@operation(stacked=True)
def max(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Maximum over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If there is nothing to take the maximum of.

    Notes
    -----
    The derivative is one at the largest element. Where several are equally large they share it in
    equal parts, and where the maximum is nan, the elements that are nan do.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.max(x), np.array([1.0, 3.0, 3.0]))
    array([0. , 0.5, 0.5])
    """
    return _reduced_extreme("max", max_reduce, a, axis, keepdims)


@operation(stacked=True)
def min(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Minimum over given axes.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to reduce; all by default.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If there is nothing to take the minimum of.

    Notes
    -----
    The derivative is one at the smallest element. Where several are equally small they share it in
    equal parts, and where the minimum is nan, the elements that are nan do.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.min(x), np.array([1.0, 3.0, 3.0]))
    array([1., 0., 0.])
    """
    return _reduced_extreme("min", min_reduce, a, axis, keepdims)


def _attained(a: Any, r: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """Where an extreme is attained, and how often (with the reduced axes kept)."""
    if isinstance(r, float):
        there = a == r if r == r else np.isnan(a)
        return there, np.count_nonzero(there)
    r = restored(r, np.shape(a), axis, keepdims)
    there = a == r
    if not isinstance(r, np.ndarray) or np.any(np.isnan(r)):
        there = there | (a != a)
    return there, add_reduce(np.where(there, 1.0, 0.0), axis=axis, keepdims=True)


def extreme_reverse(g: Any, r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    there, count = _attained(a, r, axis, keepdims)
    return np.where(there, restored(g, np.shape(a), axis, keepdims) / count, 0.0)


def extreme_tangent(r: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    there, count = _attained(fixed(a), fixed(r), axis, keepdims)
    axes = axes_of(axis, np.ndim(a))
    return lambda t: np.sum(np.where(there, t / count, 0.0), axis=axes, keepdims=keepdims)


for _op in (max, min):
    _op.reverse(extreme_reverse)
    _op.tangent(extreme_tangent)


@operation(stacked=True)
def dot_self(x: Any) -> Any:
    """Sum of squares of all elements.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is ``2 x``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.dot_self, np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return np.vdot(x, x)


@dot_self.reverse
def dot_self_reverse(g: Any, r: Any, x: Any) -> Any:
    return (g + g) * x


@dot_self.tangent
def dot_self_tangent(r: Any, x: Any) -> Any:
    axes = axes_of(None, np.ndim(x))
    return lambda t: 2.0 * np.sum(x * t, axis=axes)


def norm1(x: Any) -> Any:
    """Sum of the absolute values of all elements.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is the sign of each element, zero at zero.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.norm1, np.array([1.0, -2.0]))
    array([ 1., -1.])
    """
    return p_norm(as_operand(x, "norm1: x"), ord=1.0)


def norm2(x: Any) -> Any:
    """Euclidean length of all elements, the root of the sum of squares, without overflow or
    underflow.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is ``x / norm2(x)``; zero at the origin, the smallest subgradient there (Stan has
    nan).

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.norm2, np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return p_norm(as_operand(x, "norm2: x"))


@operation(stacked=True)
def p_norm(x: Any, ord: float = 2.0, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm ``sum(abs(x)**ord)**(1/ord)`` over given axes, for a finite order other than zero,
    without overflow or underflow.

    Parameters
    ----------
    x : array_like, any shape
    ord : float
        The order; 2 is the Euclidean (for a matrix the Frobenius) norm.
    axis : int or tuple of int, optional
        All axes by default.
    keepdims : bool
        Keep the summed axes with length one.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative is :math:`\\mathrm{sign}(x_i) (|x_i| / r)^{p-1}`. It is taken to be zero where
    :math:`x_i = 0`, and so for the vector of zeros, where the norm has no derivative: zero is one
    of its subgradients.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(np.linalg.norm, np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> vm.gradient(np.linalg.norm, np.zeros(2))
    array([0., 0.])
    """
    if ord == 1:
        return summed(np.abs(x), axis, keepdims)
    if ord == 2 and axis is None and not keepdims:  # the common case, which needs no `errstate`
        total = np.vdot(x, x)
        if is_between(total, *ORDINARY):
            return math.sqrt(total)
    return _root_of_powers(x, ord, axis, keepdims)


@np.errstate(all="ignore")
def _root_of_powers(x: Any, ord: float, axis: Any, keepdims: bool) -> Any:
    """A norm; where the sum of the powers leaves the range of a float, that of the elements in
    units of the one that dominates.
    """

    def powers(x: Any) -> Any:
        return _squares(x, axis, keepdims) if ord == 2 else summed(np.abs(x) ** ord, axis, keepdims)

    def root(total: Any) -> Any:
        return np.sqrt(total) if ord == 2 else total ** (1.0 / ord)

    total = powers(x)
    r = root(total)
    if is_between(total, *ORDINARY):
        return r
    reduce, initial = (max_reduce, 0.0) if ord > 0 else (min_reduce, np.inf)
    unit = reduce(np.abs(x), axis=axis, keepdims=True, initial=initial)
    # What is zero, infinite or nan is so in any unit.
    lost = ~((total > 1e-290) & (total < np.inf)) & ((unit > 0) & (unit < np.inf)).reshape(
        np.shape(r)
    )
    if not np.count_nonzero(lost):
        return r
    return np.where(lost, unit.reshape(np.shape(r)) * root(powers(x / unit)), r)[()]


def _slope(g: Any, r: Any, x: Any, ord: float, r_plain: Any, x_plain: Any) -> Any:
    """`g` times the derivative with respect to each element, for `r` with all axes;
    differentiable.
    """
    if ord == 1:
        return g * np.sign(x_plain)
    if ord == 2 and type(r_plain) in (float, np.ndarray) and is_between(r_plain, *ORDINARY):
        return x * (g / r)
    none = r_plain == 0
    slope = x / np.where(none, 1.0, r)
    if ord != 2:
        sign = np.sign(x_plain)
        slope = np.where(
            sign == 0, 0.0, sign * np.abs(np.where(sign == 0, 1.0, slope)) ** (ord - 1.0)
        )
    return np.where(none, 0.0, g * slope)


@p_norm.straight
def p_norm_straight(x: Any, ord: float = 2.0, axis: Any = None, keepdims: bool = False) -> Any:
    if not np.size(x):
        refuse()
    size = np.abs(x)
    total = np.sum(
        size if ord == 1 else np.square(x) if ord == 2 else size**ord, axis=axis, keepdims=True
    )
    if ord != 1:
        require((total > ORDINARY[0]) & (total < ORDINARY[1]))
    r = total if ord == 1 else np.sqrt(total) if ord == 2 else total ** (1.0 / ord)

    def contribution(g: Any) -> Any:
        g = np.reshape(g, np.shape(r))
        if ord in (1, 2):
            return g * np.sign(x) if ord == 1 else x * (g / r)
        return g * np.where(
            x == 0.0, 0.0, np.sign(x) * (np.where(x == 0.0, r, size) / r) ** (ord - 1.0)
        )

    return (r if keepdims else np.squeeze(r, axis=axis)), contribution


@p_norm.reverse
def p_norm_reverse(g: Any, r: Any, x: Any, ord: float, axis: Any, keepdims: Any) -> Any:
    if axis is not None and not keepdims:
        g, r = (restored(each, x.shape, axis, False) for each in (g, r))
    return _slope(g, r, x, ord, r, x)


@p_norm.tangent
def p_norm_tangent(r: Any, x: Any, ord: float, axis: Any, keepdims: Any) -> Any:
    axes, r = axes_of(axis, np.ndim(x)), restored(r, np.shape(x), axis, keepdims)
    slope = _slope(1.0, r, x, ord, fixed(r), fixed(x))
    return lambda t: np.sum(slope * t, axis=axes, keepdims=keepdims)


def variance(x: Any) -> Any:
    """Sample variance of all elements, with the denominator ``n - 1``; zero for a single element.

    Parameters
    ----------
    x : array_like, any shape, not empty

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `x` is empty.

    Notes
    -----
    The derivative is ``2 (x - mean(x)) / (n - 1)``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.variance, np.array([1.0, 3.0]))
    array([-2.,  2.])
    """
    return var(x, ddof=_sample_ddof("variance", x))


def sd(x: Any) -> Any:
    """Sample standard deviation of all elements, with the denominator ``n - 1``; zero for a single
    element.

    Parameters
    ----------
    x : array_like, any shape, not empty

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `x` is empty.

    Notes
    -----
    The derivative is ``(x - mean(x)) / ((n - 1) sd(x))``; zero where all elements are equal.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sd(vm.var([1.0, 2.0, 3.0]))
    Var(1.0)
    """
    return std(x, ddof=_sample_ddof("sd", x))


def _sample_ddof(name: str, x: Any) -> int:
    size = np.size(x)
    if not size:
        raise ShapeError(f"{name}: x has shape {np.shape(x)}, but must not be empty!")
    return int(size > 1)
