"""Sums of exponentials: logsumexp, softmax and its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.core import dispatch
from varmat.core.arena import LARGE
from varmat.core.domains import nonnegative
from varmat.core.elementwise import ROWS
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.arrays.reduction_names import answer_reduce, reduction
from varmat.functions.arrays.reductions import add_reduce, axes_of, max_reduce, restored
from varmat.functions.checks import check_values, fixed, misfit, one
from varmat.plain_arrays import BLOCK, blocks, by_columns, summed
from varmat.programs.build.symbol import Symbol, refuse, require
from varmat.programs.record.conditions import Condition
from varmat.typing import (
    Adjoint,
    Axis,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    array_valued,
    elementwise_valued,
    reducing,
)

__all__ = ["inverse_softmax", "log_softmax", "log_sum_exp", "logsumexp", "softmax"]


def _shifted_exp(a: Operand, m: Operand, workspace: Function = np.empty) -> Result:
    """Compute ``exp(a - m)`` with the maximum `m` of `a`; where `m` is infinite, the limit: one for
    the elements that attain it.
    """
    # In the order of `a`: by rows or by columns.
    e = (
        workspace(np.shape(a))
        if np.ndim(a) < 2 or a.strides[-1] <= a.strides[0]
        else np.empty_like(a)
    )
    if type(m) is not float and np.isfinite(m).all():
        return np.exp(np.subtract(a, m, e), e)
    with np.errstate(over="ignore"):
        np.exp(np.subtract(a, np.where(np.isfinite(m), m, 0.0), e), e)
    return np.where(m == np.inf, a == np.inf, e)


def _shifted_exp_total(a: Operand, m: float, workspace: Function) -> tuple[Result, float]:
    """Compute ``exp(a - m)`` and its sum, block by block, so that the differences stay in the
    cache.
    """
    if a.size <= LARGE:
        e = np.subtract(a, m, np.empty(a.shape))
        return e, float(add_reduce(np.exp(e, e), None))
    e, s = workspace(a.shape), 0.0
    flat, out = a.ravel(), e.reshape(-1)
    for here in blocks(flat.size, BLOCK):
        part = out[here]
        np.subtract(flat[here], m, part)
        s += float(add_reduce(np.exp(part, part)))
    return e, s


def _log_total(e: Plain, s: Plain, axis: Axis) -> Result:
    """Compute the logarithm of the sum `s` of ``exp(a - max(a))``, accurate also where one element
    outweighs all others.
    """
    if type(s) is float and s > 1.01:
        return math.log(s)
    with np.errstate(divide="ignore"):
        log = np.log(s)
    is_symbol = type(s) is Symbol
    close = s < 1.01 if is_symbol else (s < 1.01) & (s > 0)
    if is_symbol or np.any(close):
        saved = is_symbol or axis is not None
        remainder = add_reduce(np.where(e == 1.0, 0.0, e), axis=axis, keepdims=saved)
        log = np.where(close, np.log1p(remainder), log)
    return log


def _exponentials(
    a: Operand, axis: Axis, workspace: Function = np.empty
) -> tuple[Result, Result, Result]:
    """Compute the maximum `m` of `a`, ``exp(a - m)`` and its sum: floats if everything is reduced,
    else with the reduced axes kept. A run of a program ends where a maximum is infinite.
    """
    if type(a) is Symbol:
        m = np.max(a, axis=axis, keepdims=True) if np.size(a) else refuse()
        require(np.isfinite(m))
        e = np.exp(a - m)
        return m, e, np.sum(e, axis=axis, keepdims=True)
    a = by_columns(np.asarray(a), axis)
    # Without keywords it takes half as long.
    m = (
        max_reduce(a, None)
        if axis is None and a.size
        else max_reduce(a, axis=axis, keepdims=axis is not None, initial=-np.inf)
    )
    if axis is None and math.isfinite(m):
        return float(m), *_shifted_exp_total(a, float(m), workspace)
    m = float(m) if axis is None else m
    e = _shifted_exp(a, m, workspace)
    s = add_reduce(e, axis=axis, keepdims=axis is not None)
    return m, e, float(s) if axis is None else s


def _dropped(x: Operand, ndim: int, axis: Axis, keepdims: bool) -> Result:
    """Drop the reduced axes, unless they are to be kept."""
    if axis is None and type(x) is not Symbol:
        return np.full((1,) * ndim, x) if keepdims else float(x)
    return x if keepdims else np.squeeze(x, axis=axis)[()]


def _called(name: str) -> Callable[[Function], Function]:
    """Give a function the name that users know."""

    def rename(function: Function) -> Function:
        function.__name__ = name
        return function

    return rename


@operation(stacked=True)
@_called("logsumexp")
def _logsumexp(
    a: object, axis: Axis = None, keepdims: bool = False, workspace: Function = np.empty
) -> Saved:
    """Compute ``log(sum(exp(a)))`` over given axes: see `logsumexp`."""
    m, e, s = _exponentials(a, axis, workspace)
    return Saved(_dropped(m + _log_total(e, s, axis), e.ndim, axis, keepdims), e=e, s=s)


@_logsumexp.reverse
def logsumexp_reverse(
    g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool, e: Plain, s: Plain
) -> Adjoint:
    if type(s) is float and s:
        return e * (g / s)
    g = restored(g, np.shape(a), axis, keepdims)
    if type(s) is Symbol:
        return e * (g / s)
    return e * np.where(s == 0, 0.0, np.true_divide(g, s))


@_logsumexp.tangent
def logsumexp_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool) -> Linear:
    axes, saved = axes_of(axis, np.ndim(a)), restored(r, np.shape(a), axis, keepdims)
    regular = np.abs(fixed(saved)) < np.inf
    if type(regular) is Condition or np.all(regular):  # a recording ends where one is not
        weights = np.exp(a - saved)
    else:
        _, e, s = _exponentials(dispatch.plain(a), axis)
        weights = np.where(
            regular, np.exp(np.where(regular, a - saved, 0.0)), np.where(s == 0, 0.0, e / s)
        )
    return lambda t: np.sum(weights * t, axis=axes, keepdims=keepdims)


@operation()
@_called("weighted_logsumexp")
def _logsumexp_weighted(a: Plain, b: Plain, axis: Axis = None, keepdims: bool = False) -> Saved:
    """Compute ``log(sum(b * exp(a)))`` over given axes: see `logsumexp`."""
    counted: Operand = np.where(b == 0, -np.inf, a)
    if type(counted) is Symbol:
        m, _, _ = _exponentials(counted, axis)
        e = np.exp(a - m)
    else:
        m = max_reduce(counted, axis=axis, keepdims=True, initial=-np.inf)
        with np.errstate(over="ignore"):
            e = _shifted_exp(np.broadcast_to(a, counted.shape), m)
    w = np.where(b == 0, 0.0, b * np.where(b == 0, 0.0, e))
    s = add_reduce(w, axis=axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        r = m + np.log(s)
    return Saved(r if keepdims else np.squeeze(r, axis=axis)[()], e=e, s=s, w=w)


@_logsumexp_weighted.reverse
def logsumexp_weighted_reverse(
    g: Adjoint,
    r: Plain,
    a: Plain,
    b: Plain,
    axis: Axis,
    keepdims: bool,
    e: Plain,
    s: Plain,
    w: Plain,
) -> tuple[Thunk, ...]:
    scale = np.true_divide(restored(g, np.shape(w), axis, keepdims), s)
    return lambda: np.where(w == 0, 0.0, w * scale), lambda: np.where(e == 0, 0.0, e * scale)


@_logsumexp_weighted.tangent
def logsumexp_weighted_tangent(
    r: Result, a: Operand, b: Operand, axis: Axis, keepdims: bool
) -> tuple[Linear, ...]:
    saved = restored(r, np.broadcast_shapes(np.shape(a), np.shape(b)), axis, keepdims)
    regular = np.abs(fixed(saved)) < np.inf
    ratio = np.where(regular, np.exp(np.where(regular, a - saved, 0.0)), 0.0)
    # A weight of zero excludes its element, also where the exponential overflows.
    excluded = (fixed(ratio) == np.inf) & (fixed(b) == 0)
    weights = b * np.where(excluded, 0.0, ratio)
    return (
        lambda t: np.sum(weights * t, axis=axis, keepdims=keepdims),
        lambda t: np.sum(ratio * t, axis=axis, keepdims=keepdims),
    )


@reducing
def logsumexp(a: Operand, axis: Axis = None, b: Operand = None, keepdims: bool = False) -> Result:
    """Compute the logarithm of the sum of exponentials, ``log(sum(b * exp(a)))``, without overflow;
    also known as `log_sum_exp`.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes to reduce; all by default. Anything else is a second operand: of two numbers or arrays
        (floats, not integers) it is `numpy.logaddexp`, as in Stan.
    b : array_like, optional
        Weights that broadcast with `a`. An element with weight zero is left out; the result is nan
        where the sum is negative.
    keepdims : bool
        Keep the reduced axes with length one.

    Returns
    -------
    Var or VarMat

    Raises
    ------
    TypeError
        If there are weights, or `keepdims`, with a second operand.

    Notes
    -----
    The derivative with respect to `a` is `softmax` of `a`. The sum of nothing is zero, so the
    result is -inf where all elements are, with derivative zero; elements that are +inf share a
    derivative of one. The result has full relative accuracy also where one element outweighs the
    others and the result is near zero because that element is.

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.logsumexp, np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    if axis is not None and not isinstance(axis, (tuple, int, np.integer)):
        if b is not None or keepdims:
            kind = type(axis).__name__
            raise TypeError(
                f"logsumexp: axis is a {kind}, but must be an integer or a tuple if b or "
                "keepdims is given!"
            )
        row = ROWS["logaddexp"]
        result = row.call(a, axis)
        return row(a, axis) if result is NotImplemented else result
    if b is None:
        return _logsumexp(a, axis=axis, keepdims=keepdims)
    return _logsumexp_weighted(a, b, axis=axis, keepdims=keepdims)


log_sum_exp = alias("log_sum_exp", logsumexp)


@operation(stacked=True)
@elementwise_valued
def softmax(a: Plain, axis: Axis = None, workspace: Function = np.empty) -> Plain:
    """Divide exponentials by their sum, ``exp(a) / sum(exp(a))``.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes over which the result sums to one; all by default.

    Returns
    -------
    VarMat
        With the shape of `a`.

    Notes
    -----
    The adjoint of `a` is ``r (g - sum(g r))`` for the result `r` and its adjoint `g`. Elements that
    are +inf share the whole.

    References
    ----------
    Stan Functions Reference, "Special matrix functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.softmax(vm.var([0.0, np.log(3.0)]))
    VarMat([0.25, 0.75])
    """
    _, e, s = _exponentials(a, axis, workspace)
    return np.true_divide(e, s, e)


@softmax.reverse
def softmax_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis) -> Adjoint:
    if axis is not None or type(r) in (float, Symbol):
        return r * (g - summed(np.multiply(g, r), axis, keepdims=True))
    g, p, c = g.ravel(), r.ravel(), np.empty(r.shape)
    total, out = g.dot(p), c.reshape(-1)
    for here in blocks(g.size, BLOCK):  # the differences stay in the cache
        part = out[here]
        np.subtract(g[here], total, part)
        np.multiply(part, p[here], part)
    return c


@softmax.tangent
def softmax_tangent(r: Result, a: Operand, axis: Axis) -> Linear:
    axes = axes_of(axis, np.ndim(a))
    return lambda t: r * (t - np.sum(r * t, axis=axes, keepdims=True))


@operation(stacked=True)
@elementwise_valued
def log_softmax(a: Plain, axis: Axis = None) -> Saved:
    """Compute the logarithm of `softmax`, ``a - log(sum(exp(a)))``.

    Parameters
    ----------
    a : array_like, any shape
    axis : int or tuple of int, optional
        Axes over which the exponentials of the result sum to one; all by default.

    Returns
    -------
    VarMat
        With the shape of `a`.

    Notes
    -----
    The adjoint of `a` is ``g - exp(r) sum(g)`` for the result `r` and its adjoint `g`.

    References
    ----------
    Stan Functions Reference, "Special matrix functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.log_softmax(vm.var([0.0, 0.0]))
    VarMat([-0.69314718, -0.69314718])
    """
    m, e, s = _exponentials(a, axis)
    r = np.subtract(a, m if type(m) is Symbol else np.where(np.isfinite(m), m, 0.0))
    r -= _log_total(e, s, axis)
    return Saved(r, e=e, s=s)


@log_softmax.reverse
def log_softmax_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis, e: Plain, s: Plain) -> Adjoint:
    return g - e * (np.sum(g, axis=axis, keepdims=axis is not None) / s)


@log_softmax.tangent
def log_softmax_tangent(r: Result, a: Operand, axis: Axis) -> Linear:
    axes, p = axes_of(axis, np.ndim(a)), np.exp(r)
    return lambda t: t - np.sum(p * t, axis=axes, keepdims=True)


@array_valued
def inverse_softmax(theta: Operand) -> Result:
    """Compute the logarithms of probabilities: of all vectors with this `softmax` the one whose
    exponentials have the sum 1.

    Parameters
    ----------
    theta : array_like, shape (n,)
        Nonnegative numbers whose sum is 1, to within 1e-8.

    Returns
    -------
    VarMat, shape (n,)
        -inf where a probability is 0.

    Raises
    ------
    ShapeError
        If `theta` is not a vector, or empty.
    DomainError
        If it is not a vector of probabilities.

    Notes
    -----
    The adjoint is the logarithm's, ``g / theta``.

    References
    ----------
    Bob Carpenter et al., "The Stan Math Library: Reverse-Mode Automatic Differentiation in C++",
    arXiv:1509.07164, 2015.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.softmax(vm.inverse_softmax([0.25, 0.75]))
    array([0.25, 0.75])
    """
    theta = as_operand(theta, "inverse_softmax: theta")
    if np.ndim(theta) != 1 or not np.size(theta):
        raise misfit("inverse_softmax", "theta", np.shape(theta), "be a vector that is not empty")
    check_values(_check_probabilities, theta)
    with np.errstate(divide="ignore"):
        return np.log(theta)


def _check_probabilities(theta: Operand) -> None:
    nonnegative.check("inverse_softmax", "theta", theta)
    one.check("inverse_softmax", "sum(theta)", np.sum(theta))


answer_reduce(np.logaddexp, reduction(_logsumexp, np.logaddexp, -np.inf))
