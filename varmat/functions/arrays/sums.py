"""Sums and means."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.array_methods import FLOAT64
from varmat.core.operation import Operation, operation
from varmat.core.variables import Var, VarMat, new
from varmat.functions.arrays.reductions import axes_of, count_of, restored
from varmat.plain_arrays import summed
from varmat.programs.build.symbol import is_symbol
from varmat.typing import (
    Adjoint,
    Axis,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Settings,
    reducing,
)

__all__ = ["mean"]

# An adjoint that is the same everywhere is not written out if it has more elements than this.
REPEATED = 1024


def _along_reduced_axes(g: Adjoint, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Result:
    """Repeat the adjoint of a reduced array along the reduced axes."""
    if is_symbol(g) and not np.shape(g):
        return g  # a number stands for equal elements
    g = restored(g, shape, axis, keepdims)
    if math.prod(shape) > LARGE or not isinstance(g, (float, np.ndarray)):
        return np.broadcast_to(g, shape)
    c = np.empty(shape)
    c[...] = g
    return c


@operation(native=True, stacked=True)
def sum(a: Plain, axis: Axis = None, keepdims: bool = False) -> Plain:
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
def sum_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool) -> Adjoint:
    return _along_reduced_axes(g, np.shape(a), axis, keepdims)


@sum.tangent
def sum_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool) -> Linear:
    axes = axes_of(axis, np.ndim(a))
    return lambda t: np.sum(t, axis=axes, keepdims=keepdims)


@operation(native=True, stacked=True)
@reducing
def mean(a: Plain, axis: Axis = None, keepdims: bool = False) -> Plain:
    """Compute the arithmetic mean over given axes.

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

    References
    ----------
    Stan Functions Reference, "Reductions".

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
def mean_reverse(g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool) -> Adjoint:
    return _along_reduced_axes(
        np.true_divide(g, count_of(np.shape(a), axis)), np.shape(a), axis, keepdims
    )


@mean.tangent
def mean_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool) -> Linear:
    axes, n = axes_of(axis, np.ndim(a)), count_of(np.shape(a), axis) or 1
    return lambda t: np.sum(t, axis=axes, keepdims=keepdims) / n


# The settings of sums and means of whole arrays, the common case.
WHOLE = {"axis": None, "keepdims": False}


def _chain(op: Operation) -> Function:
    """Make the reverse pass of a sum or mean, shortened for a whole `VarMat`."""

    def chain(result: Operand, operands: Sequence[Operand], settings: Settings) -> None:
        if settings is not WHOLE:
            op.chain(result, operands, settings)
            return
        x = operands[0]
        shape = x._val.shape
        adjoint = result._adj if op is sum else result._adj / x._val.size
        if x._val.size > REPEATED:
            # The same number everywhere, without writing it: a read-only array whose strides are
            # zero.
            c = np.ndarray(shape, FLOAT64, np.float64(adjoint), 0, (0,) * len(shape))
        else:
            c = np.empty(shape)
            c.fill(adjoint)
            if type(x) is VarMat and x._adj is None:
                x._adj = c
                return
        x._take(c)

    return chain


sum.chained(_chain(sum))
mean.chained(_chain(mean))


def reduced_to_scalar(op: Operation, a: Operand, val: float) -> Result:
    """Record the sum or mean of a whole `VarMat`."""
    result: Result = new(Var)
    result._val = val
    result._adj = None
    result._tape = tape = a._tape.top
    tape.append((op.rule, result, (a,), WHOLE))
    return result


def sum_of_squares(d: Operand, axis: Axis, keepdims: bool) -> Result:
    return np.vdot(d, d) if axis is None and not keepdims else summed(d * d, axis, keepdims)
