"""Variances and standard deviations."""

from __future__ import annotations

import builtins

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.arrays.reductions import axes_of, count_of, restored
from varmat.functions.arrays.sums import mean, sum_of_squares
from varmat.functions.checks import fixed, misfit
from varmat.programs.build.symbol import holds
from varmat.programs.record.conditions import Condition
from varmat.typing import Adjoint, Axis, Function, Linear, Operand, Plain, Result, scalar_valued

__all__ = ["sd", "variance"]


@operation(stacked=True)
def var(a: object, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Saved:
    """Compute the variance over given axes.

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
    return Saved(np.true_divide(sum_of_squares(d, axis, keepdims), _freedom(a, axis, ddof)), d=d)


def _deviations(a: Operand, axis: Axis, mean: Function = np.mean) -> Result:
    return a - mean(a, axis=axis, keepdims=axis is not None) if np.ndim(a) else a - a


def _freedom(a: Operand, axis: Axis, ddof: float) -> Result:
    # small integer types would wrap around
    return builtins.max(count_of(np.shape(a), axis) - float(ddof), 0.0)


@var.reverse
def var_reverse(
    g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool, ddof: float, d: Plain
) -> Adjoint:
    return restored(np.true_divide(g + g, _freedom(a, axis, ddof)), np.shape(a), axis, keepdims) * d


@var.tangent
def var_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool, ddof: float) -> Linear:
    axes, n = axes_of(axis, np.ndim(a)), _freedom(a, axis, ddof)
    d = _deviations(a, axis) * np.true_divide(2.0, n)
    return lambda t: np.sum(d * t, axis=axes, keepdims=keepdims)


@operation(stacked=True)
def std(a: Plain, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Saved:
    """Compute the standard deviation over given axes.

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
    r = np.sqrt(np.true_divide(sum_of_squares(d, axis, keepdims), n))
    # If all elements are equal, their deviations are the rounding error of the mean, and its root
    # would have a derivative: they are centred again.
    if not holds(restored(r, np.shape(a), axis, keepdims) >= 1e-8 * np.abs(m)):
        d = d - mean.function(d, axis=axis, keepdims=axis is not None)
        r = np.sqrt(np.true_divide(sum_of_squares(d, axis, keepdims), n))
    return Saved(r, d=d)


@std.reverse
def std_reverse(
    g: Adjoint, r: Plain, a: Plain, axis: Axis, keepdims: bool, ddof: float, d: Plain
) -> Adjoint:
    scale = np.where(r == 0, 0.0, np.true_divide(g, r * _freedom(a, axis, ddof)))
    return restored(scale, np.shape(a), axis, keepdims) * d


@std.tangent
def std_tangent(r: Result, a: Operand, axis: Axis, keepdims: bool, ddof: float) -> Linear:
    axes, n = axes_of(axis, np.ndim(a)), _freedom(a, axis, ddof)
    d, flat = _deviations(a, axis), (fixed(r) == 0) | (n == 0)
    divisor = np.where(flat, 1.0, r) * n

    def push(t: Operand) -> Result:
        dr = np.sum(d * t, axis=axes, keepdims=keepdims) / divisor
        return np.where(flat, 0.0, dr) if type(flat) is Condition or np.any(flat) else dr

    return push


@scalar_valued
def variance(x: Operand) -> Result:
    """Compute the sample variance, with the denominator ``n - 1``; zero for a single element.

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

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.variance, np.array([1.0, 3.0]))
    array([-2.,  2.])
    """
    return var(x, ddof=_sample_ddof("variance", x))


@scalar_valued
def sd(x: Operand) -> Result:
    """Compute the sample standard deviation of all elements, with the denominator ``n - 1``; zero
    for a single element.

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

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sd(vm.var([1.0, 2.0, 3.0]))
    Var(1.0)
    """
    return std(x, ddof=_sample_ddof("sd", x))


def _sample_ddof(name: str, x: Operand) -> int:
    size = np.size(x)
    if not size:
        raise misfit(name, "x", np.shape(x), "not be empty")
    return int(size > 1)
