"""Cumulative sums and products."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.operation import Operation, operation
from varmat.functions.aliases import alias
from varmat.functions.arrays.constant import named
from varmat.functions.arrays.reductions import before
from varmat.functions.checks import check_settings, delivered, misfit
from varmat.programs.build.symbol import is_safe_divisor
from varmat.typing import Adjoint, DTypeLike, Function, Linear, Operand, Plain, Result, array_valued

__all__ = ["cumulative_sum"]


@operation(native=True, stacked=True)
@array_valued
def cumsum(a: Plain, axis: int | None = None) -> Plain:
    """Compute the cumulative sum along an axis; also known as `cumulative_sum`.

    Parameters
    ----------
    a : array_like, any shape
    axis : int, optional
        The axis to sum along; by default `a` is flattened first.

    Returns
    -------
    VarMat
        With the shape of `a`, flat if `axis` is None.

    Notes
    -----
    Every element has derivative one in itself and in all later sums.

    References
    ----------
    Stan Functions Reference, "Special matrix functions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.cumsum(x)), np.array([1.0, 2.0, 3.0]))
    array([3., 2., 1.])
    """
    return np.cumsum(a, axis=axis)


@cumsum.reverse
def cumsum_reverse(g: Adjoint, r: Plain, a: Plain, axis: int | None) -> Adjoint:
    backwards = (slice(None),) * (axis % g.ndim if axis else 0) + (slice(None, None, -1),)
    if not isinstance(g, np.ndarray):
        return np.reshape(np.add.accumulate(g[backwards], axis=axis or 0)[backwards], np.shape(a))
    # Written into a new array, which becomes the adjoint: a view would be copied, which takes a
    # twentieth of the whole.
    c = np.empty(g.shape)
    g[backwards].cumsum(axis=axis, out=c[backwards])
    return c if c.shape == np.shape(a) else c.reshape(np.shape(a))


def _axis_last(axis: int | None, t: Operand, ndim: int) -> Result:
    """Move the axis of `t` to accumulate along to the end; flatten `t` if `axis` is None."""
    lead = np.shape(t)[: np.ndim(t) - ndim]
    if axis is None or not ndim:
        return np.reshape(t, (*lead, math.prod(np.shape(t)[len(lead) :])))
    return np.moveaxis(t, normalize_axis_index(axis, ndim) - ndim, -1)


def _axis_back(t: Operand, axis: int | None, ndim: int) -> Result:
    """Undo what `_axis_last` did with the axis."""
    return (
        t
        if axis is None or not ndim
        else np.moveaxis(t, -1, normalize_axis_index(axis, ndim) - ndim)
    )


@cumsum.tangent
def cumsum_tangent(r: Result, a: Operand, axis: int | None) -> Linear:
    ndim = np.ndim(a)
    return lambda t: _axis_back(np.cumsum(_axis_last(axis, t, ndim), axis=-1), axis, ndim)


@operation(native=True, stacked=True)
def cumprod(a: Plain, axis: int | None = None) -> Plain:
    """Compute the cumulative product along an axis.

    Parameters
    ----------
    a : array_like, any shape
    axis : int, optional
        The axis to multiply along; by default `a` is flattened first.

    Returns
    -------
    VarMat
        With the shape of `a`, flat if `axis` is None.

    Notes
    -----
    Derivatives are exact also where elements are zero, at the cost of about ``log2(n)`` passes
    instead of one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.cumprod(x)), np.array([2.0, 0.0, 5.0]))
    array([ 1., 12.,  0.])
    """
    return np.cumprod(a, axis=axis)


def _recurrence(m: Operand, b: Operand) -> Result:
    """Solve ``s[k] = m[k] * s[k - 1] + b[k]`` along the last axis by doubling, without a
    division.
    """
    step = 1
    while step < m.shape[-1]:
        b = np.concatenate([b[..., :step], b[..., step:] + m[..., step:] * b[..., :-step]], axis=-1)
        m = np.concatenate([m[..., :step], m[..., step:] * m[..., :-step]], axis=-1)
        step *= 2
    return b


@cumprod.reverse
def cumprod_reverse(g: Adjoint, r: Plain, a: Plain, axis: int | None) -> Adjoint:
    ndim = np.ndim(a)
    flat = _axis_last(axis, a, ndim)
    g, r = (x if axis is None else np.moveaxis(x, axis, -1) for x in (g, r))
    if is_safe_divisor(r):
        c = np.cumsum((g * r)[..., ::-1], axis=-1)[..., ::-1] / flat
    else:
        # s[i] = g[i] + a[i + 1] s[i + 1] is the adjoint of the product up to i, with the shares of
        # all later products.
        following = before(flat[..., ::-1])
        c = before(r) * _recurrence(following, g[..., ::-1])[..., ::-1]
    return _axis_back(c, axis, ndim).reshape(np.shape(a))


@cumprod.tangent
def cumprod_tangent(r: Result, a: Operand, axis: int | None) -> Linear:
    ndim = np.ndim(a)
    factors = _axis_last(axis, a, ndim)
    shifted = before(r if axis is None or not ndim else np.moveaxis(r, axis, -1))
    return lambda t: _axis_back(
        _recurrence(factors, _axis_last(axis, t, ndim) * shifted), axis, ndim
    )


cumulative_sum = alias("cumulative_sum", cumsum)


def _accumulation(
    op: Operation, ignoring: Function, name: str, identity: float
) -> tuple[Result, Result, Result]:
    """Make the cumulative functions with NumPy's arguments, one that ignores nan, and one with the
    array API's arguments.
    """

    def accumulate(
        a: Operand, axis: int | None = None, dtype: DTypeLike | None = None, out: Operand = None
    ) -> Result:
        check_settings(op, out, dtype)
        return delivered(op, out, op(a, axis=axis))

    def without_nan(
        a: Operand, axis: int | None = None, dtype: DTypeLike | None = None, out: Operand = None
    ) -> Result:
        check_settings(ignoring, out, dtype)
        return delivered(ignoring, out, op(np.where(np.isnan(a), identity, a), axis=axis))

    def cumulative(
        x: Operand,
        /,
        *,
        axis: int | None = None,
        dtype: DTypeLike | None = None,
        out: Operand = None,
        include_initial: bool = False,
    ) -> Result:
        function, x = getattr(np, name), x if np.ndim(x) else np.atleast_1d(x)
        if axis is None and np.ndim(x) != 1:
            raise misfit(name, "x", np.shape(x), "have one dimension if no axis is given")
        check_settings(function, out, dtype)
        axis = 0 if axis is None else axis
        r = op(x, axis=axis)
        if include_initial:
            shape = list(np.shape(r))
            shape[axis] = 1
            r = np.concatenate([np.full(shape, identity), r], axis=axis)
        return delivered(function, out, r)

    return accumulate, without_nan, cumulative


def _answer_accumulate(ufunc: np.ufunc, accumulate: Function) -> None:
    """Let `accumulate` answer for ``ufunc.accumulate``, whose axis is the first by default."""

    def answer(a: Operand, axis: int = 0, dtype: DTypeLike | None = None) -> Result:
        _refuse_scalar(ufunc, a)
        return accumulate(a, axis, dtype)

    dispatch.SUPPORTED[ufunc, "accumulate"] = answer


def _refuse_scalar(ufunc: np.ufunc, a: Operand) -> None:
    if not np.ndim(a):
        raise TypeError(
            f"np.{ufunc.__name__}.accumulate: the argument is a scalar, but must be an array!"
        )


for _op, _function, _ignoring, _name, _ufunc, _identity in (
    (cumsum, np.cumsum, np.nancumsum, "cumulative_sum", np.add, 0.0),
    (cumprod, np.cumprod, np.nancumprod, "cumulative_prod", np.multiply, 1.0),
):
    _accumulate, _without_nan, _cumulative = _accumulation(_op, _ignoring, _name, _identity)
    dispatch.SUPPORTED.update({_function: _accumulate, _ignoring: _without_nan})
    dispatch.implements(*named(_name))(_cumulative)  # since NumPy 2.1
    _answer_accumulate(_ufunc, _accumulate)


def _running(ufunc: np.ufunc) -> Function:
    """Make the extreme so far, with the arguments of ``ufunc.accumulate``; of equal elements the
    derivative belongs to the latest.
    """

    def accumulate(a: Operand, axis: int = 0, dtype: DTypeLike | None = None) -> Result:
        check_settings(ufunc, dtype=dtype)
        _refuse_scalar(ufunc, a)
        values = dispatch.plain(a)
        indices = np.indices(values.shape, sparse=True)[axis]
        attained = (values == ufunc.accumulate(values, axis=axis)) | np.isnan(values)
        return np.take_along_axis(
            a, np.maximum.accumulate(np.where(attained, indices, 0), axis=axis), axis=axis
        )

    return accumulate


for _extreme in (np.maximum, np.minimum):
    dispatch.SUPPORTED[_extreme, "accumulate"] = _running(_extreme)
