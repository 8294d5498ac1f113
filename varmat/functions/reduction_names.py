"""NumPy's reductions with all their arguments: ``dtype=``, ``out=``, ``initial=``, ``where=``, and those that ignore nan.

Elements are selected with `np.where` before they are reduced, so that none of these needs rules of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core import dispatch
from varmat.core.array_methods import FLOAT64
from varmat.core.errors import ShapeError
from varmat.core.variables import ARRAYS
from varmat.functions.checks import broadcastable
from varmat.functions.reductions import (
    AVERAGE,
    TOTAL,
    add_reduce,
    count_of,
    max,
    mean,
    min,
    prod,
    reduced_to_scalar,
    std,
    sum,
    var,
)
from varmat.programs.conditions import Condition

__all__: list[str] = []


def check_arguments(function: Any, dtype: Any, out: Any) -> None:
    """Refuse to compute in, or to write into, what cannot hold a variable."""
    if dtype is not None and np.dtype(dtype) != FLOAT64:
        raise TypeError(f"{function.__name__}: dtype is {np.dtype(dtype)}, but must be float64!")
    dispatch.refuse_plain_out(function, out)


def selected(function: str, where: Any, a: Any, otherwise: Any) -> Any:
    """`a` with another number in place of the elements that are left out."""
    if type(where) is not Condition and np.asarray(where).dtype != bool:
        raise TypeError(f"{function}: where has dtype {np.asarray(where).dtype}, but must be boolean!")
    given, shape = np.shape(where), np.shape(a)
    if not broadcastable(given, shape) or np.broadcast_shapes(given, shape) != shape:
        raise ShapeError(f"{function}: where has shape {given}, but must broadcast to that of a, {shape}!")
    return np.where(where, a, otherwise)


def delivered(out: Any, r: Any) -> Any:
    """The result, written into `out` if there is one."""
    if out is None:
        return r
    if np.shape(out) != np.shape(r):
        raise ShapeError(f"out has shape {np.shape(out)}, but must have that of the result, {np.shape(r)}!")
    out[...] = r
    return out


def reduction(op: Any, ufunc: Any, identity: float) -> Any:
    """The reduction with the arguments of ``ufunc.reduce``."""

    def reduce(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Any:
        if dtype is None and out is None and initial is None and where is True:
            return op(a, axis=axis, keepdims=keepdims)
        check_arguments(op, dtype, out)
        if where is not True:
            if initial is None and ufunc.identity is None:
                raise TypeError(f"{op.name}: initial is None, but must be a number where elements are left out with where!")
            a = selected(op.name, where, a, identity)
        if initial is not None and ufunc.identity is None and not count_of(np.shape(a), axis):
            r = sum(a, axis=axis, keepdims=keepdims) + identity
        else:
            r = op(a, axis=axis, keepdims=keepdims)
        return delivered(out, r if initial is None else ufunc(r, initial))

    return reduce


_sum_reduce, _prod_reduce, _max_reduce, _min_reduce = (
    reduction(op, ufunc, identity)
    for op, ufunc, identity in (
        (sum, np.add, 0.0),
        (prod, np.multiply, 1.0),
        (max, np.maximum, -np.inf),
        (min, np.minimum, np.inf),
    )
)
dispatch.implements(np.prod)(_prod_reduce)


@dispatch.implements(np.sum)
def _sum(a: Any, axis: Any = None, *args: Any, **settings: Any) -> Any:
    if axis is None and type(a) in ARRAYS and not args and not settings:
        return reduced_to_scalar(TOTAL, a, float(add_reduce(a._val, None)), None)
    return _sum_reduce(a, axis, *args, **settings)


def _extreme(reduce: Any, identity: float) -> tuple[Any, Any]:
    """The extreme with the arguments of NumPy's function, and the one that ignores nan."""

    def extreme(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
        return reduce(a, axis, None, out, keepdims, initial, where)

    def without_nan(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        check_arguments(np.fmax, None, out)
        missing = np.isnan(a)
        r = reduce(np.where(missing, identity, a), axis, None, None, keepdims, initial, where)
        if initial is None:  # nan where there is nothing else
            r = np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, r)
        return delivered(out, r)

    return extreme, without_nan


_max, _nanmax = _extreme(_max_reduce, -np.inf)
_min, _nanmin = _extreme(_min_reduce, np.inf)
dispatch.SUPPORTED.update(dict.fromkeys((np.max, np.amax), _max) | dict.fromkeys((np.min, np.amin), _min))
dispatch.SUPPORTED.update({np.nanmax: _nanmax, np.nanmin: _nanmin})


@dispatch.implements(np.ptp)
def _ptp(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    check_arguments(np.ptp, None, out)
    return delivered(out, max(a, axis=axis, keepdims=keepdims) - min(a, axis=axis, keepdims=keepdims))


def _count_of_selected(where: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    """How many elements are selected."""
    if type(where) is Condition:
        return sum(np.where(where, np.ones(np.shape(a)), 0.0), axis=axis, keepdims=keepdims)
    return add_reduce(np.broadcast_to(where, np.shape(a)), axis=axis, dtype=np.float64, keepdims=keepdims)


@dispatch.implements(np.mean)
def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Any:
    if axis is None and type(a) in ARRAYS and not keepdims and where is True and dtype is None and out is None and a._val.size:
        n = a._val.size
        return reduced_to_scalar(AVERAGE, a, float(add_reduce(a._val, None)) / n, n)
    check_arguments(np.mean, dtype, out)
    if where is True:
        r = mean(a, axis=axis, keepdims=keepdims)
    else:
        r = sum(selected("mean", where, a, 0.0), axis=axis, keepdims=keepdims) / _count_of_selected(where, a, axis, keepdims)
    return delivered(out, r)


def _spread_measure(op: Any, root: bool, no_freedom: float = 0.0) -> Any:
    """The variance, or its root, with the arguments of NumPy's functions; divided by `no_freedom` where none is left."""

    def measure(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *,
        where: Any = True, mean: Any = None, correction: Any = None,
    ) -> Any:
        check_arguments(op, dtype, out)
        if correction is not None:
            if ddof:
                raise TypeError(f"{op.name}: ddof is {ddof}, but must be left out where correction is given!")
            ddof = correction
        if where is True and mean is None:
            return delivered(out, op(a, axis=axis, keepdims=keepdims, ddof=ddof))
        center = _mean(a, axis, keepdims=True, where=where) if mean is None else mean
        d = selected(op.name, where, a - center, 0.0)
        freedom = _count_of_selected(where, a, axis, keepdims) - ddof
        r = sum(d * d, axis=axis, keepdims=keepdims) / np.where(freedom > 0, freedom, no_freedom)
        if root:
            zero = dispatch.plain(r) == 0
            r = np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, r)))
        return delivered(out, r)

    return measure


_var, _std = _spread_measure(var, False), _spread_measure(std, True)
dispatch.SUPPORTED.update({np.var: _var, np.std: _std})


def _without_nan(function: Any) -> Any:
    def ignoring(a: Any, *args: Any, where: Any = True, **settings: Any) -> Any:
        return function(a, *args, where=~np.isnan(a) & where, **settings)

    return ignoring


_nanvar, _nanstd = _spread_measure(var, False, np.nan), _spread_measure(std, True, np.nan)
for _name, _function in {"sum": _sum, "prod": _prod_reduce, "mean": _mean, "var": _nanvar, "std": _nanstd}.items():
    dispatch.SUPPORTED[getattr(np, f"nan{_name}")] = _without_nan(_function)


def answer_reduce(ufunc: Any, reduce: Any) -> None:
    """Let `reduce` answer for ``ufunc.reduce``, whose axis is the first by default."""
    dispatch.UFUNC_METHODS[ufunc, "reduce"] = lambda a, axis=0, **settings: reduce(a, axis, **settings)


answer_reduce(np.add, _sum)
answer_reduce(np.multiply, _prod_reduce)
answer_reduce(np.maximum, _max_reduce)
answer_reduce(np.minimum, _min_reduce)
