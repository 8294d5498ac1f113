"""Products and extremes, and the functions that all reductions share.

`restored` gives what was reduced its axes back, so that one rule serves every `axis` and
`keepdims`. NumPy's names with all their arguments (``where=``, ``initial=``, ...) are answered in
`varmat.functions.arrays.reduction_names`."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from varmat.core.operation import operation
from varmat.functions.checks import fixed, misfit
from varmat.plain_arrays import by_columns
from varmat.programs.build.symbol import Symbol, is_safe_divisor
from varmat.typing import Adjoint, Axis, Function, Linear, Operand, Plain, Result, reducing

__all__ = ["prod"]

# Any function to a type checker, because NumPy's stubs know no general axis.
add_reduce: Function = np.add.reduce
multiply_reduce: Function = np.multiply.reduce
max_reduce: Function = np.maximum.reduce
min_reduce: Function = np.minimum.reduce


def axes_of(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the reduced axes, counted from the end, so that a leading axis may be added."""
    if axis is None or not ndim:
        return tuple(range(-ndim, 0))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis - ndim if axis >= 0 else axis,)
    return tuple(i - ndim for i in normalize_axis_tuple(axis, ndim))


def count_of(shape: tuple[int, ...], axis: Axis) -> int:
    """Count the elements that are reduced to one."""
    return (
        math.prod(shape)
        if axis is None
        else math.prod(shape[i] for i in normalize_axis_tuple(axis, len(shape)))
    )


def restored(r: Operand, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Result:
    """Give a reduced array its reduced axes back, of length one, so that it broadcasts against the
    array before the reduction.
    """
    if keepdims or not getattr(r, "shape", ()):
        return r
    lengths = list(shape)
    for i in axes_of(axis, len(shape)):
        lengths[i] = 1
    return r.reshape(lengths)


@operation(native=True, stacked=True)
@reducing
def prod(a: Plain, axis: Axis = None, keepdims: bool = False) -> Plain:
    """Multiply the elements over given axes.

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

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.prod(x), np.array([2.0, 0.0, 5.0]))
    array([ 0., 10.,  0.])
    """
    return multiply_reduce(by_columns(a, axis), axis=axis, keepdims=keepdims)


def before(x: Operand) -> Result:
    """Return each element's predecessor along the last axis; one before the first."""
    return np.concatenate([np.ones(np.shape(x[..., :1])), x[..., :-1]], axis=-1)


def products_of_others(a: Operand) -> Result:
    """Compute along the last axis, for each element, the product of all others."""
    backwards = np.cumprod(a[..., ::-1], axis=-1)
    return before(np.cumprod(a, axis=-1)) * before(backwards)[..., ::-1]


def _merged(x: Operand, axes: tuple[int, ...]) -> Result:
    """Merge the given axes of `x` (counted from the end) into one, the last."""
    x = np.moveaxis(x, axes, range(-len(axes), 0)) if axes else x
    lead = np.shape(x)[: np.ndim(x) - len(axes)]
    return np.reshape(x, (*lead, math.prod(np.shape(x)[len(lead) :])))


@prod.reverse
def prod_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool) -> Adjoint:
    shape = np.shape(a)
    g = restored(g, shape, axis, keepdims)
    if type(r) is not Symbol and is_safe_divisor(r):
        return g * restored(r, shape, axis, keepdims) / a
    axes = axes_of(axis, len(shape))
    last = range(-len(axes), 0)
    lengths = np.moveaxis(np.broadcast_to(0.0, shape), axes, last).shape
    others = products_of_others(_merged(a, axes)).reshape(lengths)
    return g * np.moveaxis(others, last, axes)


@prod.tangent
def prod_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool) -> Linear:
    axes = axes_of(axis, np.ndim(a))
    others = products_of_others(_merged(a, axes))

    def push(t: Operand) -> Result:
        dr = np.sum(_merged(t, axes) * others, axis=-1)
        return np.reshape(dr, np.shape(t)[: np.ndim(t) - np.ndim(a)] + np.shape(r))

    return push


def _reduced_extreme(name: str, reduce: Function, a: Operand, axis: Axis, keepdims: bool) -> Result:
    try:
        return reduce(by_columns(a, axis), axis=axis, keepdims=keepdims)
    except ValueError:
        if count_of(np.shape(a), axis):
            raise
        raise misfit(name, "a", np.shape(a), "not be empty along the reduced axes") from None


@operation(stacked=True)
def max(a: Plain, axis: Axis = None, keepdims: bool = False) -> Plain:
    """Find the maximum over given axes.

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
def min(a: Plain, axis: Axis = None, keepdims: bool = False) -> Plain:
    """Find the minimum over given axes.

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


def _attained(a: Operand, r: Operand, axis: Axis, keepdims: bool) -> tuple[Result, Result]:
    """Find where an extreme is attained, and how often (with the reduced axes kept)."""
    if isinstance(r, float):
        there = a == r if r == r else np.isnan(a)
        return there, np.count_nonzero(there)
    r = restored(r, np.shape(a), axis, keepdims)
    there = a == r
    if not isinstance(r, np.ndarray) or np.any(np.isnan(r)):
        there = there | (a != a)
    return there, add_reduce(np.where(there, 1.0, 0.0), axis=axis, keepdims=True)


def extreme_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool) -> Adjoint:
    there, count = _attained(a, r, axis, keepdims)
    return np.where(there, restored(g, np.shape(a), axis, keepdims) / count, 0.0)


def extreme_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool) -> Linear:
    there, count = _attained(fixed(a), fixed(r), axis, keepdims)
    count = np.reshape(count, np.shape(r)) if np.ndim(count) else count
    axes = axes_of(axis, np.ndim(a))
    return lambda t: np.sum(np.where(there, t, 0.0), axis=axes, keepdims=keepdims) / count


for _op in (max, min):
    _op.reverse(extreme_reverse)
    _op.tangent(extreme_tangent)
