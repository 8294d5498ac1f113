"""Transforms of ordered vectors. All work on stacks, along the last axis."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.core.operation import Saved, operation
from varmat.transforms.common import (
    check_inside,
    check_vector,
    joined,
    later_sums,
    operand,
    plain_sum,
    split,
    sum_over,
    times_slope,
)
from varmat.typing import Adjoint, Operand, Result, elementwise_valued, transforming

__all__ = [
    "ordered_constrain",
    "ordered_free",
    "positive_ordered_constrain",
    "positive_ordered_free",
]


def _differences(y: Operand, before: float) -> Result:
    """Subtract from each element the one before it along the last axis, and `before` from the
    first; also for symbols.
    """
    return y - np.concatenate([np.full((*np.shape(y)[:-1], 1), before), y[..., :-1]], axis=-1)


# y[0] = x[0], y[k] = y[k - 1] + exp(x[k]); the log-Jacobian is the sum of x[1:].
@operation(stacked=True)
@transforming
def ordered_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map a vector to one with ascending elements: sums of ``x[0], exp(x[1]), exp(x[2]), ...``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: the sum of ``x[..., 1:]``.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    The derivative with respect to ``x[k]`` of ``y[k]``, and of all elements after it, is
    ``exp(x[k])``, and one for the first.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Ordered vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.ordered_constrain(np.array([-1.0, 0.0, np.log(2.0)]))
    array([-1.,  0.,  2.])
    """
    check_vector("ordered_constrain", "x", np.shape(x))
    steps = np.exp(x)
    steps[..., :1] = x[..., :1]
    y = np.add.accumulate(steps, axis=-1)
    return Saved((y, plain_sum(x[..., 1:])) if jacobian else y, steps=steps)


@ordered_constrain.reverse
def ordered_reverse(g: Adjoint, r: Operand, x: Operand, jacobian: bool, steps: Operand) -> Result:
    g, h, _ = split(g, r, jacobian)
    later = later_sums(g)
    c = times_slope(later, steps) + h
    c[..., :1] = later[..., :1]
    return c


@ordered_constrain.tangent
def ordered_tangent(r: Operand, x: Operand, jacobian: bool) -> Result:
    steps = np.exp(x[..., 1:])

    def maps(t: Operand) -> Result:
        y = np.cumsum(np.concatenate([t[..., :1], steps * t[..., 1:]], axis=-1), axis=-1)
        return y, sum_over(t[..., 1:], x)

    return joined(maps, jacobian)


@elementwise_valued
def ordered_free(y: Operand) -> Result:
    """Invert `ordered_constrain`: return the first element and the logarithms of the steps.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Strictly ascending along the last axis.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is not strictly ascending.
    ShapeError
        If `y` is a scalar.

    Notes
    -----
    The derivative of element `k` is ``1 / (y[k] - y[k - 1])`` in ``y[k]`` and its negative in
    ``y[k - 1]``; of the first it is one.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Ordered vector".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ordered_free([-1.0, 0.0, 1.0])
    array([-1.,  0.,  0.])
    """
    y = operand(y, "ordered_free", "y")
    check_vector("ordered_free", "y", np.shape(y))
    ascending = Domain("greater than the element before it", lambda y: _differences(y, -np.inf) > 0)
    check_inside(ascending, "ordered_free", "Ordered variable", y)
    return np.concatenate([y[..., :1], np.log(np.diff(y))], axis=-1)


@operation(stacked=True)
@transforming
def positive_ordered_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map a vector to one with positive, ascending elements: sums of ``exp(x)``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: the sum of `x`.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    The derivative with respect to ``x[k]`` of ``y[k]``, and of all elements after it, is
    ``exp(x[k])``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Ordered vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.positive_ordered_constrain(np.zeros(3))
    array([1., 2., 3.])
    """
    check_vector("positive_ordered_constrain", "x", np.shape(x))
    steps = np.exp(x)
    y = np.add.accumulate(steps, axis=-1)
    return Saved((y, plain_sum(x)) if jacobian else y, steps=steps)


@positive_ordered_constrain.reverse
def positive_ordered_reverse(
    g: Adjoint, r: Operand, x: Operand, jacobian: bool, steps: Operand
) -> Result:
    g, h, _ = split(g, r, jacobian)
    return times_slope(later_sums(g), steps) + h


@positive_ordered_constrain.tangent
def positive_ordered_tangent(r: Operand, x: Operand, jacobian: bool) -> Result:
    steps = np.exp(x)
    return joined(lambda t: (np.cumsum(steps * t, axis=-1), sum_over(t, x)), jacobian)


@elementwise_valued
def positive_ordered_free(y: Operand) -> Result:
    """Invert `positive_ordered_constrain`: compute the logarithms of the steps, from 0 on.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Positive and strictly ascending along the last axis.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is not positive and strictly ascending.
    ShapeError
        If `y` is a scalar.

    Notes
    -----
    The derivative of element `k` is ``1 / (y[k] - y[k - 1])`` in ``y[k]`` and its negative in
    ``y[k - 1]``; of the first it is ``1 / y[0]``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Ordered vector".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_ordered_free([1.0, 2.0, 3.0])
    array([0., 0., 0.])
    """
    y = operand(y, "positive_ordered_free", "y")
    check_vector("positive_ordered_free", "y", np.shape(y))
    ascending = Domain(
        "positive and greater than the element before it", lambda y: _differences(y, 0.0) > 0
    )
    check_inside(ascending, "positive_ordered_free", "Positive ordered variable", y)
    return np.log(np.diff(y, prepend=0.0))
