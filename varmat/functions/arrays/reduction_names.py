"""NumPy's reductions with all their arguments: ``dtype=``, ``out=``, ``initial=``, ``where=``, and
those that ignore nan.

Elements are selected with `np.where` before they are reduced, so that none of these needs rules of
its own."""

from __future__ import annotations

import inspect

import numpy as np

from varmat.core import dispatch
from varmat.core.errors import DomainError
from varmat.core.operation import Operation
from varmat.core.variables import ARRAYS
from varmat.functions.arrays.reductions import add_reduce, count_of, max, min, prod
from varmat.functions.arrays.spreads import std, var
from varmat.functions.arrays.sums import mean, reduced_to_scalar, sum
from varmat.functions.checks import broadcastable, check_settings, delivered, misfit
from varmat.programs.record.conditions import Condition
from varmat.typing import ArrayLike, Axis, DTypeLike, Function, Operand, Result, Setting


def check_where(function: str, where: ArrayLike, a: Operand) -> None:
    """Refuse what does not say which elements of `a` are selected."""
    if type(where) is not Condition and np.asarray(where).dtype != bool:
        raise TypeError(
            f"{function}: where has dtype {np.asarray(where).dtype}, but must be boolean!"
        )
    shape_of_where, shape = np.shape(where), np.shape(a)
    if (
        not broadcastable(shape_of_where, shape)
        or np.broadcast_shapes(shape_of_where, shape) != shape
    ):
        raise misfit(function, "where", shape_of_where, f"broadcast to the shape of a, {shape}")


def selected(function: str, where: ArrayLike, a: Operand, otherwise: Operand) -> Result:
    """Return `a` with another number in place of the elements that are left out."""
    check_where(function, where, a)
    return np.where(where, a, otherwise)


def reduction(op: Operation, ufunc: np.ufunc, identity: float) -> Function:
    """Make the reduction with the arguments of ``ufunc.reduce``."""

    def reduce(
        a: Operand,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Operand = None,
        keepdims: bool = False,
        initial: Operand = None,
        where: ArrayLike = True,
    ) -> Result:
        if dtype is None and out is None and initial is None and where is True:
            return op(a, axis=axis, keepdims=keepdims)
        check_settings(op, out, dtype)
        if where is not True:
            if initial is None and ufunc.identity is None:
                raise DomainError(
                    f"{op.name}: initial is None, but must be a number if where leaves out "
                    "elements!"
                )
            a = selected(op.name, where, a, identity)
        if initial is not None and ufunc.identity is None and not count_of(np.shape(a), axis):
            r = sum(a, axis=axis, keepdims=keepdims) + identity
        else:
            r = op(a, axis=axis, keepdims=keepdims)
        return delivered(op, out, r if initial is None else ufunc(r, initial))

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
def _sum(a: Operand, axis: Axis = None, *args: Setting, **settings: Setting) -> Result:
    if axis is None and type(a) in ARRAYS and not args and not settings:
        return reduced_to_scalar(sum, a, float(add_reduce(a._val, None)))
    return _sum_reduce(a, axis, *args, **settings)


def _extreme(reduce: Function, ignoring: Function, identity: float) -> tuple[Function, Function]:
    """Make the extreme with the arguments of NumPy's function, and the one that ignores nan."""

    def extreme(
        a: Operand,
        axis: Axis = None,
        out: Operand = None,
        keepdims: bool = False,
        initial: Operand = None,
        where: ArrayLike = True,
    ) -> Result:
        return reduce(a, axis, None, out, keepdims, initial, where)

    def without_nan(
        a: Operand,
        axis: Axis = None,
        out: Operand = None,
        keepdims: bool = False,
        initial: Operand = None,
        where: ArrayLike = True,
    ) -> Result:
        check_settings(ignoring, out)
        missing = np.isnan(a)
        r = reduce(np.where(missing, identity, a), axis, None, None, keepdims, initial, where)
        if initial is None:  # nan where there is nothing else
            r = np.where(np.all(missing, axis=axis, keepdims=keepdims), np.nan, r)
        return delivered(ignoring, out, r)

    return extreme, without_nan


_max, _nanmax = _extreme(_max_reduce, np.nanmax, -np.inf)
_min, _nanmin = _extreme(_min_reduce, np.nanmin, np.inf)
dispatch.SUPPORTED.update(dict.fromkeys((np.max, np.amax), _max))
dispatch.SUPPORTED.update(dict.fromkeys((np.min, np.amin), _min))
dispatch.SUPPORTED.update({np.nanmax: _nanmax, np.nanmin: _nanmin})


@dispatch.implements(np.ptp)
def _ptp(a: Operand, axis: Axis = None, out: Operand = None, keepdims: bool = False) -> Result:
    check_settings(np.ptp, out)
    return delivered(
        np.ptp, out, max(a, axis=axis, keepdims=keepdims) - min(a, axis=axis, keepdims=keepdims)
    )


def _count_of_selected(where: ArrayLike, a: Operand, axis: Axis, keepdims: bool) -> Result:
    """Count the selected elements."""
    if type(where) is Condition:
        return sum(np.where(where, np.ones(np.shape(a)), 0.0), axis=axis, keepdims=keepdims)
    return add_reduce(
        np.broadcast_to(where, np.shape(a)), axis=axis, dtype=np.float64, keepdims=keepdims
    )


@dispatch.implements(np.mean)
def _mean(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Operand = None,
    keepdims: bool = False,
    *,
    where: ArrayLike = True,
) -> Result:
    if (
        axis is None
        and type(a) in ARRAYS
        and not keepdims
        and where is True
        and dtype is None
        and out is None
        and a._val.size
    ):
        n = a._val.size
        return reduced_to_scalar(mean, a, float(add_reduce(a._val, None)) / n)
    check_settings(np.mean, out, dtype)
    if where is True:
        r = mean(a, axis=axis, keepdims=keepdims)
    else:
        r = sum(selected("mean", where, a, 0.0), axis=axis, keepdims=keepdims) / _count_of_selected(
            where, a, axis, keepdims
        )
    return delivered(np.mean, out, r)


def _spread_measure(op: Operation, root: bool, no_freedom: float = 0.0) -> Function:
    """Make the variance, or its root, with the arguments of NumPy's functions; it is divided by
    `no_freedom` where no degree of freedom is left.
    """

    def measure(
        a: Operand,
        axis: Axis = None,
        dtype: DTypeLike | None = None,
        out: Operand = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike = True,
        mean: Operand = None,
        correction: float | None = None,
    ) -> Result:
        check_settings(op, out, dtype)
        if correction is not None:
            if ddof:
                raise DomainError(
                    f"{op.name}: ddof is {ddof}, but must be left out where correction is given!"
                )
            ddof = correction
        if where is True and mean is None:
            return delivered(op, out, op(a, axis=axis, keepdims=keepdims, ddof=ddof))
        center = _mean(a, axis, keepdims=True, where=where) if mean is None else mean
        d = selected(op.name, where, a - center, 0.0)
        freedom = _count_of_selected(where, a, axis, keepdims) - ddof
        r = sum(d * d, axis=axis, keepdims=keepdims) / np.where(freedom > 0, freedom, no_freedom)
        if root:
            zero = dispatch.plain(r) == 0
            r = np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, r)))
        return delivered(op, out, r)

    return measure


_var, _std = _spread_measure(var, False), _spread_measure(std, True)
dispatch.SUPPORTED.update({np.var: _var, np.std: _std})


def _without_nan(function: Function, full: Operand) -> Function:
    _, *names = inspect.signature(function).parameters

    def ignoring(a: Operand, *args: Setting, **settings: Setting) -> Result:
        settings.update(zip(names, args, strict=False))
        check_settings(function, settings.get("out"), settings.get("dtype"))
        where = settings.pop("where", True)
        if where is not True:
            check_where(function.__name__, where, a)
        return full(a, where=~np.isnan(a) & where, **settings)

    return ignoring


_nanvar, _nanstd = _spread_measure(var, False, np.nan), _spread_measure(std, True, np.nan)
for _function, _whole in (
    (np.nansum, _sum),
    (np.nanprod, _prod_reduce),
    (np.nanmean, _mean),
    (np.nanvar, _nanvar),
    (np.nanstd, _nanstd),
):
    dispatch.SUPPORTED[_function] = _without_nan(_function, _whole)


def answer_reduce(ufunc: np.ufunc, reduce: Function) -> None:
    """Let `reduce` answer for ``ufunc.reduce``, whose axis is the first by default."""
    dispatch.SUPPORTED[ufunc, "reduce"] = lambda a, axis=0, **settings: reduce(a, axis, **settings)


answer_reduce(np.add, _sum)
answer_reduce(np.multiply, _prod_reduce)
answer_reduce(np.maximum, _max_reduce)
answer_reduce(np.minimum, _min_reduce)
