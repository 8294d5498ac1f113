"""Elementwise transforms without bounds: identity, positive numbers, probabilities, correlations,
offset and multiplier.
"""

from __future__ import annotations

import numpy as np

from varmat.core.domains import finite, positive_finite
from varmat.functions.special.logistic_functions import expit
from varmat.transforms.bounded import (
    _check_bound,
    _interval_free,
    _sum,
    above,
    arctanh,
    interval_constrain,
    log,
    log_cosh,
    tanh,
)
from varmat.transforms.common import check_against, check_inside, operand, operands
from varmat.typing import Operand, Result, elementwise_valued, transforming

__all__ = [
    "corr_constrain",
    "corr_free",
    "identity_constrain",
    "identity_free",
    "offset_multiplier_constrain",
    "offset_multiplier_free",
    "positive_constrain",
    "positive_free",
    "prob_constrain",
    "prob_free",
]


def affine(x: Operand, offset: Operand, multiplier: Operand, jacobian: bool = False) -> Result:
    y = offset + multiplier * x
    if not jacobian:
        return y
    count = np.size(x) // max(1, np.size(multiplier))
    return y, _sum(log(multiplier)) * count


@transforming
def offset_multiplier_constrain(
    x: Operand, offset: Operand, multiplier: Operand, jacobian: bool = False
) -> Result:
    """Shift and stretch: ``offset + multiplier * x``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    offset, multiplier : array_like
        Broadcast to the shape of `x`; the multiplier is positive.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
    log_jacobian : scalar
        If asked for: the sum of ``log(multiplier)`` over the elements of `x`.

    Raises
    ------
    DomainError
        If the offset is not finite, or the multiplier not positive finite.
    ShapeError
        If one of them does not broadcast to the shape of `x`.

    Notes
    -----
    The derivatives with respect to `x`, `offset` and `multiplier` are `multiplier`, one and `x`.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Affinely transformed scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.offset_multiplier_constrain(2.0, 10.0, 3.0)
    16.0
    """
    x, offset, multiplier = operands(
        "offset_multiplier_constrain", x=x, offset=offset, multiplier=multiplier
    )
    _check_bound("offset_multiplier_constrain", "offset", offset, finite, x)
    _check_bound("offset_multiplier_constrain", "multiplier", multiplier, positive_finite, x)
    return affine(x, offset, multiplier, jacobian)


@elementwise_valued
def offset_multiplier_free(y: Operand, offset: Operand, multiplier: Operand) -> Result:
    """Invert `offset_multiplier_constrain`: compute ``(y - offset) / multiplier``.

    Parameters
    ----------
    y : array_like, any shape
        Finite.
    offset, multiplier : array_like
        Broadcast to the shape of `y`; the multiplier is positive.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` or the offset is not finite, or the multiplier not positive finite.
    ShapeError
        If one of them does not broadcast to the shape of `y`.

    Notes
    -----
    The derivatives with respect to `y`, `offset` and `multiplier` are 1, -1 and ``-x`` over the
    multiplier, for the result `x`.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Affinely transformed scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.offset_multiplier_free(16.0, 10.0, 3.0)
    2.0
    """
    y, offset, multiplier = operands(
        "offset_multiplier_free", y=y, offset=offset, multiplier=multiplier
    )
    _check_bound("offset_multiplier_free", "offset", offset, finite, y)
    _check_bound("offset_multiplier_free", "multiplier", multiplier, positive_finite, y)
    check_inside(finite, "offset_multiplier_free", "Affinely transformed variable", y)
    return (y - offset) / multiplier


@transforming
def identity_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Return real numbers unchanged: the transform where nothing is constrained.

    Parameters
    ----------
    x : array_like, any shape
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : `x`
    log_jacobian : float
        If asked for: 0.

    Raises
    ------
    TypeError
        If `x` holds anything but real numbers.

    Notes
    -----
    The derivative is 1; nothing is recorded.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.identity_constrain(1.5, jacobian=True)
    (1.5, 0.0)
    """
    x = operand(x, "identity_constrain", "x")
    return (x, 0.0) if jacobian else x


@elementwise_valued
def identity_free(y: Operand) -> Result:
    """Invert `identity_constrain`: return real numbers unchanged.

    Parameters
    ----------
    y : array_like, any shape

    Returns
    -------
    `y`

    Raises
    ------
    TypeError
        If `y` holds anything but real numbers.

    Notes
    -----
    The derivative is 1; nothing is recorded.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.identity_free([1.0, 2.0])
    array([1., 2.])
    """
    return operand(y, "identity_free", "y")


@transforming
def positive_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to positive ones: ``exp(x)``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
    log_jacobian : scalar
        If asked for: the sum of `x`.

    Notes
    -----
    The derivative is ``exp(x)``, the result.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower bounded scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_constrain(0.0, jacobian=True)
    (1.0, 0.0)
    """
    x = operand(x, "positive_constrain", "x")
    return above(x, 0.0, jacobian)


@elementwise_valued
def positive_free(y: Operand) -> Result:
    """Invert `positive_constrain`: compute ``log(y)``.

    Parameters
    ----------
    y : array_like, any shape
        Positive.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is not positive.

    Notes
    -----
    The derivative is ``1 / y``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower bounded scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_free(1.0)
    0.0
    """
    y = operand(y, "positive_free", "y")
    check_against("positive_free", "Positive variable", y, "positive", lambda y: y > 0)
    return log(y)


@transforming
def prob_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to probabilities: ``expit(x)``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained: log odds.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
    log_jacobian : scalar
        If asked for: the sum of ``log(y) + log(1 - y)``.

    Notes
    -----
    The derivative is ``y * (1 - y)`` for the result `y`.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower and upper bounded
    scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.prob_constrain(0.0)
    0.5
    """
    x = operand(x, "prob_constrain", "x")
    return interval_constrain(x, 0.0, 1.0, jacobian=True) if jacobian else expit(x)


@elementwise_valued
def prob_free(y: Operand) -> Result:
    """Invert `prob_constrain`: compute ``log(y) - log(1 - y)``.

    Parameters
    ----------
    y : array_like, any shape
        Between 0 and 1, where the result is infinite.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is outside the interval.

    Notes
    -----
    The derivative is ``1 / (y * (1 - y))``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower and upper bounded
    scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.prob_free(0.5)
    0.0
    """
    y = operand(y, "prob_free", "y")
    return _interval_free("prob_free", "Probability variable", y, 0.0, 1.0)


@transforming
def corr_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to correlations: ``tanh(x)``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
    log_jacobian : scalar
        If asked for: the sum of ``log(1 - y**2) = -2 log(cosh(x))``.

    Notes
    -----
    The derivative is ``1 - y**2`` for the result `y`.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Correlation matrices".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.corr_constrain(0.0)
    0.0
    """
    x = operand(x, "corr_constrain", "x")
    y = tanh(x)
    return (y, -2.0 * _sum(log_cosh(x))) if jacobian else y


@elementwise_valued
def corr_free(y: Operand) -> Result:
    """Invert `corr_constrain`: compute ``arctanh(y)``.

    Parameters
    ----------
    y : array_like, any shape
        Between -1 and 1, where the result is infinite.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is outside the interval.

    Notes
    -----
    The derivative is ``1 / (1 - y**2)``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Correlation matrices".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.corr_free(0.0)
    0.0
    """
    y = operand(y, "corr_free", "y")
    check_against(
        "corr_free", "Correlation variable", y, "in the interval [-1, 1]", lambda y: abs(y) <= 1
    )
    with np.errstate(divide="ignore"):
        return arctanh(y)
