"""Elementwise transforms: bounds from below, from above and from both sides, and affine ones.

An element with an infinite bound is not changed. Bounds may be variables. If all are finite, which
is the common case, nothing is selected element by element.
"""

from __future__ import annotations

import operator
from functools import partial
from math import inf

import numpy as np

from varmat.core.domains import Domain
from varmat.core.elementwise import ROWS
from varmat.core.operation import Saved, operation
from varmat.functions.checks import check_values
from varmat.functions.rows import formula, row
from varmat.functions.special.logistic_functions import expit
from varmat.programs.build.symbol import Symbol
from varmat.transforms.common import check_against, check_within, joined, operands, plain_sum, split
from varmat.typing import Adjoint, Function, Operand, Result, elementwise_valued, transforming

__all__ = [
    "lb_constrain",
    "lb_free",
    "log_cosh",
    "lub_constrain",
    "lub_free",
    "ub_constrain",
    "ub_free",
]

# The library's own functions give floats for floats, and skip NumPy's dispatch for variables.
exp, log, tanh, arctanh = (ROWS[name].call for name in ("exp", "log", "tanh", "arctanh"))

lower_bound = Domain("less than inf", lambda x: x < inf)
upper_bound = Domain("greater than -inf", lambda x: x > -inf)


@formula
def _log_cosh(x: Operand) -> Result:
    # The first form is accurate near 0, the second far from it.
    a = np.abs(x)
    return np.where(
        a < 1.0,
        -0.5 * np.log1p(-np.square(np.tanh(a))),
        a - np.log(2.0) + np.log1p(np.exp(-2.0 * a)),
    )


log_cosh = row(
    "log_cosh",
    "g * tanh(x)",
    "Logarithm of the hyperbolic cosine, without overflow",
    None,
    "log(cosh(x))",
    (0.5, -1e-8, 1.0, 20.0, -700.0),
    0.462117,
    source="DLMF 4.28, 4.34",
    ufunc=_log_cosh,
)


def _sum(x: Operand) -> Result:
    if type(x) is np.ndarray:
        return plain_sum(x)
    return x if type(x) is float or not x.shape else np.sum(x)


def _check_bound(function: str, name: str, bound: Operand, domain: Domain, x: Operand) -> Result:
    """Tell whether the bound is finite, element by element; raise if it cannot be a bound."""
    if np.ndim(bound):
        check_within(function, name, np.shape(bound), np.shape(x))

    def check(value: Operand) -> Result:
        domain.check(function, name, value)
        return abs(value) < inf

    return check_values(check, bound)


def _quiet_log(x: Operand) -> Result:
    with np.errstate(divide="ignore"):
        return log(x)


# These take bounds that have been checked and are finite.


def from_bound(bound: Operand, distance: Operand, sign: float) -> Result:
    """Return the number at a distance above a bound or, if the sign is negative, below it."""
    if sign < 0.0:
        return bound - distance
    return distance if type(bound) is float and bound == 0 else distance + bound


def _one_sided(x: Operand, bound: Operand, jacobian: bool = False, *, sign: float) -> Result:
    y = from_bound(bound, exp(x), sign)
    return (y, _sum(x)) if jacobian else y


above, below = partial(_one_sided, sign=1.0), partial(_one_sided, sign=-1.0)


def _constrained(
    function: str,
    name: str,
    domain: Domain,
    constrain: Function,
    x: Operand,
    bound: Operand,
    jacobian: bool,
) -> Result:
    """Call `constrain` with a bound that may be infinite."""
    x, bound = operands(function, **{"x": x, name: bound})
    free = np.logical_not(_check_bound(function, name, bound, domain, x))
    if not np.any(free):
        return constrain(x, bound, jacobian)
    if np.all(free):
        return (x, 0.0) if jacobian else x
    # exp(x) must not overflow for the elements without a bound, which do not use it.
    bounded = np.where(free, 0.0, x)
    y = np.where(free, x, constrain(bounded, np.where(free, 0.0, bound)))
    return (y, _sum(bounded)) if jacobian else y


# Let e = exp(-|x|) and s = expit(-|x|) = e / (1 + e). The distance from the nearer bound is
# (ub - lb) s, which keeps all its digits at either end, and dy/dx = (ub - lb) s (1 - s). The
# log-Jacobian is log(ub - lb) + log(s) + log(1 - s) = log(ub - lb) - |x| - 2 log1p(e), and its
# derivative is -tanh(x / 2).
@operation()
def interval_constrain(x: Operand, lb: Operand, ub: Operand, jacobian: bool = False) -> Result:
    """Compute `lub_constrain` with bounds that have been checked and are finite."""
    a = abs(x)
    e = np.exp(-a)
    width = ub - lb
    near = width * (e / (1.0 + e))
    if type(x) is float:
        y = ub - near if x > 0 else lb + near
        y = y if type(y) is Symbol else float(y)
    else:
        y = np.where(x > 0, ub - near, lb + near)
    slope = near / (1.0 + e)
    return Saved(
        (y, plain_sum(np.log(width) - a - 2.0 * np.log1p(e))) if jacobian else y, slope=slope
    )


@interval_constrain.reverse
def interval_reverse(
    g: Adjoint, r: Operand, x: Operand, lb: Operand, ub: Operand, jacobian: bool, slope: Operand
) -> Result:
    g, h, _ = split(g, r, jacobian)

    def of_bound(sign: float) -> Result:
        c = g * expit.ufunc(sign * x)
        # The Jacobian has one factor ub - lb for each element of x.
        return c + h * (sign / (ub - lb)) if jacobian else c

    in_x = (lambda: g * slope - h * np.tanh(0.5 * x)) if jacobian else (lambda: g * slope)
    return in_x, lambda: of_bound(-1.0), lambda: of_bound(1.0)


@interval_constrain.tangent
def interval_tangent(r: Operand, x: Operand, lb: Operand, ub: Operand, jacobian: bool) -> Result:
    up, down = expit(x), expit(-x)
    width, shape = ub - lb, np.shape(x)
    return tuple(
        joined(maps, jacobian)
        for maps in (
            lambda t: (t * width * up * down, np.sum(t * (down - up))),
            lambda t: (t * down, -np.sum(np.broadcast_to(t / width, shape))),
            lambda t: (t * up, np.sum(np.broadcast_to(t / width, shape))),
        )
    )


# --- the public functions ---


@transforming
def lb_constrain(x: Operand, lb: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to numbers above a lower bound: ``exp(x) + lb``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    lb : array_like
        Lower bound, broadcast to the shape of `x`; -inf for none.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
        Without a bound, `x` itself.
    log_jacobian : scalar
        If asked for: the sum of `x` over the elements that have a bound.

    Raises
    ------
    DomainError
        If a bound is inf or nan.
    ShapeError
        If `lb` does not broadcast to the shape of `x`.

    Notes
    -----
    The derivative with respect to `x` is ``exp(x)``, and to `lb` one; without a bound, one
    and zero.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower bounded scalar".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.lb_constrain(np.array([0.0, np.log(2.0)]), 1.0, jacobian=True)
    (array([2., 3.]), 0.6931471805599453)
    >>> vm.gradient(lambda lb: np.sum(vm.lb_constrain(np.zeros(2), lb)), 1.0)
    2.0
    """
    return _constrained("lb_constrain", "lb", lower_bound, above, x, lb, jacobian)


@elementwise_valued
def lb_free(y: Operand, lb: Operand) -> Result:
    """Invert `lb_constrain`: compute ``log(y - lb)``.

    Parameters
    ----------
    y : array_like, any shape
        Not below the bound; at the bound the result is -inf.
    lb : array_like
        Lower bound, broadcast to the shape of `y`; -inf for none.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is below the bound or nan, or the bound is inf or nan.
    ShapeError
        If `lb` does not broadcast to the shape of `y`.

    Notes
    -----
    The derivative with respect to `y` is ``1 / (y - lb)``, to `lb` its negative; where there is no
    bound, one and zero.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower bounded scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.lb_free(2.0, 1.0)
    0.0
    """
    y, lb = operands("lb_free", y=y, lb=lb)
    free = np.logical_not(_check_bound("lb_free", "lb", lb, lower_bound, y))
    rule = "greater than or equal to {}"
    check_against("lb_free", "Lower bounded variable", y, rule, operator.ge, lb)
    x = _quiet_log(y - lb)
    return np.where(free, y, x) if np.any(free) else x


@transforming
def ub_constrain(x: Operand, ub: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to numbers below an upper bound: ``ub - exp(x)``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    ub : array_like
        Upper bound, broadcast to the shape of `x`; inf for none.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
        Without a bound, `x` itself.
    log_jacobian : scalar
        If asked for: the sum of `x` over the elements that have a bound.

    Raises
    ------
    DomainError
        If a bound is -inf or nan.
    ShapeError
        If `ub` does not broadcast to the shape of `x`.

    Notes
    -----
    The derivative with respect to `x` is ``-exp(x)``, and to `ub` one; without a bound, one
    and zero.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Upper bounded scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ub_constrain(0.0, 3.0, jacobian=True)
    (2.0, 0.0)
    """
    return _constrained("ub_constrain", "ub", upper_bound, below, x, ub, jacobian)


@elementwise_valued
def ub_free(y: Operand, ub: Operand) -> Result:
    """Invert `ub_constrain`: compute ``log(ub - y)``.

    Parameters
    ----------
    y : array_like, any shape
        Not above the bound; at the bound the result is -inf.
    ub : array_like
        Upper bound, broadcast to the shape of `y`; inf for none.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is above the bound or nan, or the bound is -inf or nan.
    ShapeError
        If `ub` does not broadcast to the shape of `y`.

    Notes
    -----
    The derivative with respect to `y` is ``-1 / (ub - y)``, to `ub` its negative; where there is no
    bound, one and zero.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Upper bounded scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ub_free(2.0, 3.0)
    0.0
    """
    y, ub = operands("ub_free", y=y, ub=ub)
    free = np.logical_not(_check_bound("ub_free", "ub", ub, upper_bound, y))
    rule = "less than or equal to {}"
    check_against("ub_free", "Upper bounded variable", y, rule, operator.le, ub)
    x = _quiet_log(ub - y)
    return np.where(free, y, x) if np.any(free) else x


@transforming
def lub_constrain(x: Operand, lb: Operand, ub: Operand, jacobian: bool = False) -> Result:
    """Map real numbers to numbers between two bounds: ``lb + (ub - lb) * expit(x)``.

    Parameters
    ----------
    x : array_like, any shape
        Unconstrained.
    lb, ub : array_like
        Bounds, broadcast to the shape of `x`; -inf and inf for none: then as `ub_constrain`,
        `lb_constrain`, or not at all.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : of the shape of `x`
        Exact to the last digits of its distance from the nearer bound.
    log_jacobian : scalar
        If asked for: the sum of ``log(ub - lb) + log(expit(x)) + log(expit(-x))``.

    Raises
    ------
    DomainError
        If `lb` is not less than `ub`.
    ShapeError
        If a bound does not broadcast to the shape of `x`.

    Notes
    -----
    The derivatives with respect to `x`, `lb` and `ub` are ``(ub - lb) * expit(x) * expit(-x)``,
    ``expit(-x)`` and ``expit(x)``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower and upper bounded
    scalar".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.lub_constrain(np.array([0.0, np.log(3.0)]), -1.0, 1.0)
    array([0. , 0.5])
    >>> vm.gradient(lambda alpha: vm.lub_constrain(0.0, 0.0, 1.0 - alpha), 0.2)
    -0.5
    """
    x, lb, ub = operands("lub_constrain", x=x, lb=lb, ub=ub)
    low = _check_bound("lub_constrain", "lb", lb, lower_bound, x)
    high = _check_bound("lub_constrain", "ub", ub, upper_bound, x)
    check_against(
        "lub_constrain", "lb", lb, "less than ub, which is {}", lambda lb, ub: lb < ub, ub
    )
    if np.all(low) and np.all(high):
        return interval_constrain(x, lb, ub, jacobian=jacobian)
    if not np.any(low):
        return ub_constrain(x, ub, jacobian)
    if not np.any(high):
        return lb_constrain(x, lb, jacobian)
    # The three transforms follow one another, and each is the identity where it does not apply. An
    # element at 0 between the bounds 0 and 4 has the log-Jacobian log(4) - 2 log(2), exactly 0.
    both = low & high
    y, p = interval_constrain(
        np.where(both, x, 0.0), np.where(both, lb, 0.0), np.where(both, ub, 4.0), jacobian=True
    )
    z, q = lb_constrain(np.where(both, 0.0, x), np.where(high, -inf, lb), jacobian=True)
    z, s = ub_constrain(z, np.where(low, inf, ub), jacobian=True)
    y = np.where(both, y, z)
    return (y, p + q + s) if jacobian else y


def _interval_free(function: str, title: str, y: Operand, lb: Operand, ub: Operand) -> Result:
    low = _check_bound(function, "lb", lb, lower_bound, y)
    high = _check_bound(function, "ub", ub, upper_bound, y)
    check_against(
        function,
        title,
        y,
        "in the interval [{}, {}]",
        lambda y, lb, ub: (lb <= y) & (y <= ub),
        lb,
        ub,
    )
    if not np.any(low):
        return ub_free(y, ub)
    if not np.any(high):
        return lb_free(y, lb)
    above, below = _quiet_log(y - lb), _quiet_log(ub - y)
    if np.all(low) and np.all(high):
        return above - below
    return np.where(low, above, np.where(high, below, y)) - np.where(low & high, below, 0.0)


@elementwise_valued
def lub_free(y: Operand, lb: Operand, ub: Operand) -> Result:
    """Invert `lub_constrain`: compute ``log(y - lb) - log(ub - y)``.

    Parameters
    ----------
    y : array_like, any shape
        Not outside the bounds; at a bound the result is infinite.
    lb, ub : array_like
        Bounds, broadcast to the shape of `y`; -inf and inf for none.

    Returns
    -------
    scalar or array, of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is outside the bounds, or `lb` is not less than `ub`.
    ShapeError
        If a bound does not broadcast to the shape of `y`.

    Notes
    -----
    With respect to `lb` the derivative is ``-1 / (y - lb)``, to `ub` it is ``-1 / (ub - y)``, and
    to `y` the negative of their sum.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Lower and upper bounded
    scalar".

    Examples
    --------
    >>> import varmat as vm
    >>> round(vm.lub_free(0.5, -1.0, 1.0), 12)
    1.098612288668
    """
    y, lb, ub = operands("lub_free", y=y, lb=lb, ub=ub)
    check_within("lub_free", "lb", np.shape(lb), np.shape(y))
    check_within("lub_free", "ub", np.shape(ub), np.shape(y))
    check_against("lub_free", "lb", lb, "less than ub, which is {}", lambda lb, ub: lb < ub, ub)
    return _interval_free("lub_free", "Bounded variable", y, lb, ub)
