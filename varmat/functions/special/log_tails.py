"""Logarithms of the incomplete gamma and beta functions, with their derivatives in all arguments,
of any order: the algorithms.

Where a function is small, its logarithm and derivatives come from one integral over its own tail:
value and derivatives share a weight that may underflow, and in the logarithm the weight is a
separate term. Where it is not small, it is one minus the other tail, and its derivative is divided
by it.

`varmat.functions.special.log_incomplete` has the rows that call them. The digits of an `order` are
the orders of differentiation in each argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import product
from math import comb, factorial, prod

import numpy as np

from varmat.functions.special.incomplete_gamma import incomplete_gamma
from varmat.functions.special.quadrature import SMOOTH, double_exponential, gauss, on_domain
from varmat.functions.special.series import expm1_less_line
from varmat.functions.special.shape_derivatives import (
    beta_cumulants,
    beta_integral,
    beta_log_weight,
    beta_mass,
    betainc_derivative,
    gamma_cumulants,
    gamma_integral,
    gamma_log_weight,
    gamma_reach,
    gamma_series,
    gammainc_derivative,
)
from varmat.plain_arrays import special
from varmat.typing import Plain

Order = tuple[int, ...]
# Below this value SciPy's functions are close to underflow.
_TINY = 1e-270
# Up to these shapes the terms of the logarithm of a density may be added directly, which costs two
# digits.
_MODERATE = 20.0
# Up to this probability its logarithm has all digits but one.
_NEAR_ONE = 0.9
# Down to this logarithm a density is divided by the function. Below, it would underflow, and the
# difference of logarithms, which loses some digits, is taken.
_DIVIDED = -100.0


def _parts(order: Order, function: Callable[[Order, Order], Plain]) -> Plain:
    """Compute the derivative of a product with one derivative taken apart: the sum of ``function(i,
    order - i)`` times binomials over all orders i.
    """
    axis = next(k for k, n in enumerate(order) if n)
    remainder = tuple(n - (k == axis) for k, n in enumerate(order))
    total: Plain = 0.0
    for i in product(*(range(n + 1) for n in remainder)):
        inner = tuple(m + (k == axis) for k, m in enumerate(i))
        outer = tuple(n - m for n, m in zip(remainder, i, strict=True))
        total = total + prod(map(comb, remainder, i)) * function(inner, outer)
    return total


def of_exponential(order: Order, f: Callable[[Order], Plain]) -> Plain:
    """Compute the derivative of exp(f) over exp(f), from the derivatives of f."""
    return (
        _parts(order, lambda i, remainder: f(i) * of_exponential(remainder, f))
        if any(order)
        else 1.0
    )


def of_logarithm(order: Order, moment: Callable[[Order], Plain]) -> Plain:
    """Compute the derivative of log(f), from the derivatives of f over f."""
    return moment(order) - _parts(
        order,
        lambda i, remainder: of_logarithm(i, moment) * moment(remainder) if any(remainder) else 0.0,
    )


def _log(
    tail: Plain,
    small: Plain,
    other: Plain,
    inside: Plain,
    *values: Plain,
    near_one: Plain = _NEAR_ONE,
) -> Plain:
    """Compute the logarithm of a probability from three functions: `small` computes it, `other` its
    complement, and `tail` its logarithm where it is tiny.
    """
    value = np.asarray(small(*values))
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.array(np.log(value))
    large = value > near_one
    if large.any():
        result[large] = np.log1p(-other(*_parts_of(large, values)))
    if not value.min(initial=1.0) >= _TINY:
        tiny = (value < _TINY) & inside()
        result = np.where(tiny, on_domain(lambda _, *v: tail(*v), 0, tiny, *values), result)
    return result[()]


def _parts_of(which: Plain, values: Plain) -> list[Plain]:
    """Select elements of arrays. Numbers stay numbers, so that functions of them are computed only
    once.
    """
    return [v if np.ndim(v) == 0 else np.broadcast_to(v, which.shape)[which] for v in values]


# The incomplete gamma function: P(a, x), or Q(a, x) if `upper`.


def log_gamma(upper: bool, a: Plain, x: Plain) -> Plain:
    """Compute the logarithm of the regularised incomplete gamma function."""
    return _log(
        lambda a, x: _log_gamma_tail(upper, a, x),
        partial(incomplete_gamma, upper),
        partial(incomplete_gamma, not upper),
        lambda: _inside(a, x),
        a,
        x,
    )


def _inside(*positive: Plain) -> Plain:
    return reduce(np.logical_and, [(v > 0) & np.isfinite(v) for v in positive])


def _log_gamma_tail(upper: bool, a: Plain, x: Plain) -> Plain:
    return gamma_log_weight(a, x) + np.log(_gamma_integrals(0, upper, a, x))


def _gamma_integrals(n: int, upper: bool, a: Plain, x: Plain) -> Plain:
    """Compute the derivative of order n of the tail, over the weight."""
    cumulant = gamma_cumulants(a, x)
    result = np.empty(x.shape)
    series, smooth = (x <= 1.0) & (not upper), a >= SMOOTH
    for kind, which in enumerate((series, ~series & ~smooth, ~series & smooth)):
        if not which.any():
            continue

        def here(i: int, j: int, which: Plain = which) -> Plain:
            value = cumulant(i, j)
            return value[which] if np.ndim(value) else value

        values = a[which], x[which]
        if kind == 0:
            result[which] = np.exp(values[1]) * gamma_series(n, here, *values)
        else:
            result[which] = gamma_integral(
                n, kind == 2, here, *values, np.full(values[0].shape, 1.0 if upper else -1.0)
            )
    return result


def log_gamma_slope(upper: bool, order: Plain, a: Plain, x: Plain, log_value: Plain) -> Plain:
    """Compute the derivative of `log_gamma` in the argument, given its value; the order is 1."""
    if not _all_inside(a, x):
        return log_gamma_derivative(upper, order, a, x)
    with np.errstate(over="ignore"):
        rate = np.asarray((-1.0 if upper else 1.0) * np.exp(_log_gamma_density(a, x) - log_value))
    return _beside_far(rate, log_value, lambda _, *v: _log_gamma_parts(upper, 3, *v), a, x)


def _all_inside(*positive: Plain) -> bool:
    return all(
        bool(np.min(v, initial=1.0) > 0.0 and np.max(v, initial=1.0) < np.inf) for v in positive
    )


def _beside_far(rate: Plain, log_value: Plain, far_away: Plain, *values: Plain) -> Plain:
    """Replace a rate by another function's where the value is far in the tail."""
    if np.min(log_value, initial=0.0) >= _DIVIDED:
        return rate
    far = np.asarray(log_value) < _DIVIDED
    return np.where(far, on_domain(far_away, 0, far, *values), rate)


def _log_gamma_density(a: Plain, x: Plain) -> Plain:
    """Compute the logarithm of the density."""
    log_x, small = np.log(x), np.asarray(a) < _MODERATE
    if not small.all() and (not np.ndim(a) or not small.any()):
        return gamma_log_weight(a, x) + np.log(a / x)
    result = np.asarray((a - 1.0) * log_x - x - special.gammaln(a))
    if not small.all():
        which = np.broadcast_to(~small, result.shape)
        a, x = _parts_of(which, (a, x))
        result[which] = gamma_log_weight(a, x) + np.log(a / x)
    return result[()]


def log_gamma_derivative(upper: bool, order: Plain, a: Plain, x: Plain) -> Plain:
    """Compute a derivative of `log_gamma` in the shape and the argument."""
    if np.ndim(order) == 0 and order == 1.0 and _all_inside(a, x):
        return log_gamma_slope(upper, order, a, x, log_gamma(upper, a, x))
    order, a, x = np.broadcast_arrays(order, a, x)
    inside = _inside(a, x) & (order > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Up to x = 1 the lower function has a series whose derivatives keep all digits.
        in_tail = (np.log(x) > special.psi(a)) & (x > 1.0) if upper else np.log(x) <= special.psi(a)
    code = np.where(inside, 2 * order + in_tail, 0)
    result = on_domain(lambda code, *v: _log_gamma_parts(upper, code, *v), code, inside, a, x)
    # At one end the function is one, and constant up to exp(-x).
    constant = (a > 0) & (np.isinf(x) if not upper else x == 0) & (order > 0)
    result = np.where(constant, np.where(upper & (a == 1) & (order == 1), -1.0, 0.0), result)
    # At the other end it falls as x**a, or as x**(a - 1) exp(-x).
    for first, limit in ((1, -1.0 if upper else np.inf), (10, np.inf if upper else -np.inf)):
        result = np.where(
            (a > 0) & np.isfinite(a) & (x == (np.inf if upper else 0)) & (order == first),
            limit,
            result,
        )
    return np.where(order == 0, log_gamma(upper, a, x), result) if np.any(order == 0) else result


# In a tail the logarithm is the weight's plus the logarithm of the integral, over steps u in the
# logarithm, of exp(a u - x (exp(u) - 1)). The second derivatives are covariances of this integrand;
# as products of the density and a difference they would cancel.


def _gamma_curvature(upper: bool, of_shape: bool, a: Plain, x: Plain) -> Plain:
    """Compute a second derivative in the argument and one more, the shape or the argument."""
    side, scale = np.full(x.shape, 1.0 if upper else -1.0), np.empty(x.shape)
    distance = gamma_reach(a, x, side)
    for which, (nodes, weights) in ((a >= SMOOTH, gauss(32)), (a < SMOOTH, double_exponential())):
        steps = (side * distance)[which, None] * nodes
        mass = weights * np.exp(
            (a - x)[which, None] * steps - x[which, None] * expm1_less_line(steps)
        )
        fall = -np.expm1(steps)
        scale[which] = _covariance(mass, steps if of_shape else fall, fall)
    return scale + (1.0 / x if of_shape else -a / (x * x))


def _covariance(mass: Plain, u: Plain, v: Plain) -> Plain:
    """Compute the covariance under a mass, along the last axis."""
    mass = mass / np.sum(mass, axis=-1, keepdims=True)
    u, v = (t - np.sum(mass * t, axis=-1, keepdims=True) for t in (u, v))
    return np.sum(mass * u * v, axis=-1)


def _log_gamma_parts(upper: bool, code: int, a: Plain, x: Plain) -> Plain:
    order, in_tail = divmod(code, 2)
    if in_tail and order in (2, 11):
        near_zero = (x <= 1.0) & (not upper)
        if not near_zero.any():
            return _gamma_curvature(upper, order == 11, a, x)
        if not near_zero.all():
            result = np.empty(x.shape)
            for which in (near_zero, ~near_zero):
                result[which] = _log_gamma_parts(upper, code, a[which], x[which])
            return result
    cumulant, sign = gamma_cumulants(a, x), -1.0 if upper else 1.0
    # The density over the function.
    if in_tail:
        total = _gamma_integrals(0, upper, a, x)
        rate = a / x / total
    else:
        log_value = log_gamma(upper, a, x)
        total = np.exp(log_value)
        rate = np.exp(gamma_log_weight(a, x) + np.log(a / x) - log_value)

    def density(i: Order) -> Plain:
        n, m = i
        if m == 0:
            return cumulant(n, 0) - (-1.0) ** n * factorial(n - 1) / a**n
        power = (-1.0) ** (m - 1) * factorial(m - 1) / x**m
        return power * (a - 1.0) - (m == 1) if n == 0 else power if n == 1 else 0.0

    def moment(i: Order) -> Plain:
        n, m = i
        if m:
            return sign * rate * of_exponential((n, m - 1), density)
        if in_tail:
            return _gamma_integrals(n, upper, a, x) / total
        return sign * gammainc_derivative(n, a, x) / total

    return of_logarithm(divmod(order, 10), moment)


# The incomplete beta function I_x(a, b), or its complement if `upper`, which is the function with
# exchanged shapes at 1 - x.


def log_beta(upper: bool, a: Plain, b: Plain, x: Plain) -> Plain:
    """Compute the logarithm of the regularised incomplete beta function."""
    if _is_constant(upper, a, b, x):
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))[()]
    small, other = (_upper_beta, special.betainc)[:: 1 if upper else -1]
    return _log(
        lambda *v: _log_beta_tail(_towards(upper, *v)),
        small,
        other,
        lambda: _inside(a, b, x) & (x < 1),
        a,
        b,
        x,
        # For large shapes SciPy has three more digits for the smaller of the two probabilities.
        near_one=np.where(np.maximum(a, b) > LARGE_SHAPE, 0.5, _NEAR_ONE),
    )


def _is_constant(upper: bool, a: Plain, b: Plain, x: Plain) -> bool:
    """Tell whether the argument is the end of the range at which the function is one."""
    return np.ndim(x) == 0 and bool(x == (0.0 if upper else 1.0)) and _all_inside(a, b)


LARGE_SHAPE = 1e4


def _upper_beta(a: Plain, b: Plain, x: Plain) -> Plain:
    """Compute the complement of the incomplete beta function, with all digits up to 0.9.

    It is computed as the function of the complement, which SciPy has ten times as fast.
    """
    y = 1.0 - x
    value = np.asarray(special.betainc(b, a, y))
    # The rounding error of the complement, times the density, which must not change over it.
    lost = np.asarray((1.0 - y) - x)
    # For a large and a small shape SciPy's own complement has five digits more.
    large = np.maximum(a, b) > LARGE_SHAPE
    if lost.any() or large.any():
        few, rounded = value < 0.9, lost != 0.0
        value = np.array(value)
        # For a tiny first shape the value changes even where the complement is rounded to 1.
        far = (x > 0.0) & ((large & few) | (rounded & (x < 1e-6)))
        near = (x > 0.0) & few & rounded & ~far
        if far.any():
            value[far] = special.betaincc(*_parts_of(far, (a, b, x)))
        if near.any():
            a, b, x, lost = _parts_of(near, (a, b, x, lost))
            value[near] += lost * np.exp(
                (a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) - special.betaln(a, b)
            )
    return value[()]


def _towards(upper: bool, a: Plain, b: Plain, x: Plain) -> tuple[Plain, ...]:
    """Shapes, argument and complement, exchanged if need be, such that the tail lies above the
    argument.
    """
    return (a, b, x, 1.0 - x) if upper else (b, a, 1.0 - x, x)


def _log_beta_tail(values: tuple[Plain, ...]) -> Plain:
    return beta_log_weight(*values) + np.log(_beta_integrals((0, 0), values))


def _beta_integrals(orders: tuple[int, int], values: tuple[Plain, ...]) -> Plain:
    result = np.empty(values[0].shape)
    smooth = np.minimum(values[0], values[1]) >= SMOOTH
    for which in (smooth, ~smooth):
        if which.any():
            result[which] = beta_integral(
                orders, bool(smooth[which][0]), *(v[which] for v in values)
            )
    return result


def log_beta_slope(
    upper: bool, order: Plain, a: Plain, b: Plain, x: Plain, log_value: Plain
) -> Plain:
    """Compute the derivative of `log_beta` in the argument, given its value; the order is 1."""
    if not (_all_inside(a, b, x) and np.max(x, initial=0.0) < 1.0):
        return log_beta_derivative(upper, order, a, b, x)
    with np.errstate(over="ignore"):
        rate = np.asarray((-1.0 if upper else 1.0) * np.exp(_log_beta_density(a, b, x) - log_value))
    return _beside_far(rate, log_value, lambda _, *v: _log_beta_parts(upper, 3, *v), a, b, x)


def _log_beta_density(a: Plain, b: Plain, x: Plain) -> Plain:
    """Compute the logarithm of the density."""
    log_x, log_y, small = np.log(x), np.log1p(-x), np.asarray(a + b) < _MODERATE
    numbers = not small.ndim
    if not small.all() and (numbers or not small.any()):
        return beta_log_weight(a, b, x, 1.0 - x) - log_x - log_y
    result = np.asarray((a - 1.0) * log_x + (b - 1.0) * log_y - special.betaln(a, b))
    if not small.all():
        which = np.broadcast_to(~small, result.shape)
        a, b, x, logs = _parts_of(which, (a, b, x, log_x + log_y))
        result[which] = beta_log_weight(a, b, x, 1.0 - x) - logs
    return result[()]


def log_beta_derivative(upper: bool, order: Plain, a: Plain, b: Plain, x: Plain) -> Plain:
    """Compute a derivative of `log_beta` in both shapes and the argument."""
    if (
        np.ndim(order) == 0
        and order == 1.0
        and _all_inside(a, b, x)
        and np.max(x, initial=0.0) < 1.0
    ):
        return log_beta_slope(upper, order, a, b, x, log_beta(upper, a, b, x))
    if (
        _is_constant(upper, a, b, x)
        and np.ndim(order) == 0
        and order > 0
        and not np.any((a if upper else b) == 1.0)
    ):
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))[()]
    order, a, b, x = np.broadcast_arrays(order, a, b, x)
    inside = _inside(a, b, x) & (x < 1) & (order > 0)
    in_tail = (_upper_beta(a, b, x) if upper else special.betainc(a, b, x)) < 0.4
    code = np.where(inside, 2 * order + in_tail, 0)
    result = on_domain(lambda code, *v: _log_beta_parts(upper, code, *v), code, inside, a, b, x)
    # As for the gamma function, but for (1 - x)**b and x**a.
    constant = (a > 0) & (b > 0) & (x == (0 if upper else 1)) & (order > 0)
    slope = np.where((order == 1) & ((a if upper else b) == 1), -b if upper else a, 0.0)
    result = np.where(constant, slope, result)
    # At the other end it falls as x**a, or as (1 - x)**b.
    end = _inside(a, b) & (x == (1 if upper else 0))
    if end.any():
        of_a, of_b = (special.psi(a + b) - special.psi(b if not upper else a), -np.inf)[
            :: 1 if upper else -1
        ]
        for first, limit in ((1, -np.inf if upper else np.inf), (100, of_a), (10, of_b)):
            result = np.where(end & (order == first), limit, result)
    return np.where(order == 0, log_beta(upper, a, b, x), result) if np.any(order == 0) else result


def _beta_curvature(upper: bool, order: int, a: Plain, b: Plain, x: Plain) -> Plain:
    """Compute a second derivative, at least once in the argument, as for the gamma function, with
    steps in the log odds.
    """
    a, b, x, y = _towards(upper, a, b, x)
    # If the tail is the lower one, x belongs to the second shape.
    of_first, of_second = order == (101 if upper else 11), order == (11 if upper else 101)
    result = np.empty(x.shape)
    smooth = np.minimum(a, b) >= SMOOTH
    for which in (smooth, ~smooth):
        if not which.any():
            continue
        one, other, p, q = (v[which] for v in (a, b, x, y))
        down, up, mass = beta_mass(bool(smooth[which][0]), one, other, p, q)
        mass = mass / np.sum(mass, axis=-1, keepdims=True)
        # How far the argument grows.
        gain = -q[:, None] * np.expm1(-up)
        mean, total = np.sum(mass * gain, axis=-1), one + other
        if of_first:
            result[which] = (q - mean + total * _covariance(mass, down, gain)) / (p * q)
        elif of_second:
            result[which] = (total * _covariance(mass, up, gain) - p - mean) / (p * q)
        else:
            slope = one * q - other * p - total * mean
            bend = total * (
                total * _covariance(mass, gain, gain)
                - np.sum(mass * (p[:, None] + gain) * q[:, None] * np.exp(-up), axis=-1)
            )
            result[which] = (bend - (q - p) * slope) / (p * q) ** 2
    return result if upper or order == 2 else -result


def _log_beta_parts(upper: bool, code: int, a: Plain, b: Plain, x: Plain) -> Plain:
    order, in_tail = divmod(code, 2)
    if in_tail and order in (2, 11, 101):
        return _beta_curvature(upper, order, a, b, x)
    y, values, sign = 1.0 - x, _towards(upper, a, b, x), -1.0 if upper else 1.0
    cumulant = beta_cumulants(a, b, x, y)
    if in_tail:
        total = _beta_integrals((0, 0), values)
        rate = 1.0 / total / x / y
    else:
        log_value = log_beta(upper, a, b, x)
        total = np.exp(log_value)
        rate = np.exp(beta_log_weight(a, b, x, y) - np.log(x) - np.log(y) - log_value)

    def density(i: Order) -> Plain:
        n, m, k = i
        if k == 0:
            return cumulant(n, m)
        of_x, of_y = (-1.0) ** (k - 1) * factorial(k - 1) / x**k, factorial(k - 1) / y**k
        if n + m == 0:
            return (a - 1.0) * of_x - (b - 1.0) * of_y
        return {(1, 0): of_x, (0, 1): -of_y}.get((n, m), 0.0)

    def moment(i: Order) -> Plain:
        n, m, k = i
        if k:
            return sign * rate * of_exponential((n, m, k - 1), density)
        if in_tail:
            return _beta_integrals((n, m) if upper else (m, n), values) / total
        return sign * betainc_derivative(10 * n + m, a, b, x) / total

    return of_logarithm((order // 100, order // 10 % 10, order % 10), moment)
