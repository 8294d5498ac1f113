"""Derivatives of the incomplete gamma and beta functions with respect to their shapes, of any
order: the algorithms.

A derivative in a shape is the integral of the density times a polynomial in the logarithm of the
variable, over the tail. The integral over the whole range is zero, so either tail gives it. The
tail is taken in which the integrand of the first derivative keeps its sign, so that nothing
cancels. In the logarithm of the variable (gamma) or its log odds (beta) the integrand is a smooth
hump with exponential or faster tails. A fixed number of nodes is therefore enough for all shapes.

The rows that call them are in `incomplete_functions`."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import numpy as np

from varmat.functions.special.bell_polynomials import DerivativeAt, bell
from varmat.functions.special.gamma_differences import zeta_difference
from varmat.functions.special.incomplete_gamma import incomplete_gamma
from varmat.functions.special.quadrature import (
    DROP,
    SMOOTH,
    double_exponential,
    gauss,
    on_domain,
    reach,
)
from varmat.functions.special.series import (
    ASYMPTOTIC,
    DIGAMMA,
    expm1_less_line,
    log_less_line,
    polynomial,
    stirling_factor,
)
from varmat.plain_arrays import special
from varmat.typing import Operand

# The incomplete gamma function. The density is a / t times E(t) = t**a exp(-t) / gamma(a + 1). The
# factor a would make derivatives in small shapes cancel, so it is kept apart: (a E)^(n) = a E^(n) +
# n E^(n - 1).


def gamma_log_weight(a: Operand, x: Operand) -> Operand:
    """Compute the logarithm of ``x**a exp(-x) / gamma(a + 1)``."""
    direct = special.xlogy(a, x) - x - special.gammaln(a + 1.0)
    scaled = a * log_less_line(x / a, (x - a) / a) - np.log(
        np.sqrt(2.0 * np.pi * a) * stirling_factor(a)
    )
    return np.where(a < 8.0, direct, scaled)


def _gamma_weight(a: Operand, x: Operand) -> Operand:
    return np.exp(gamma_log_weight(a, x))


def gamma_cumulants(a: Operand, x: Operand) -> DerivativeAt:
    """Return the derivatives with respect to a of ``log E(x)``."""
    large = np.maximum(a, ASYMPTOTIC)
    # log(a) - psi(a + 1)
    less_digamma = 0.5 / large + polynomial(large**-2, DIGAMMA) / large**2 - 1.0 / large
    log_ratio = np.where(np.abs(x - a) < 0.5 * a, np.log1p((x - a) / a), np.log(x / a))
    first = np.where(a > ASYMPTOTIC, log_ratio + less_digamma, np.log(x) - special.psi(a + 1.0))

    def cumulant(i: int, _: int) -> Operand:
        return (
            first
            if i == 1
            else (-1.0) ** (i + 1) * factorial(i - 1) * special.zeta(float(i), a + 1.0)
        )

    return cumulant


def gammainc_derivative(order: Operand, a: Operand, x: Operand) -> Operand:
    """Compute the derivative with respect to a of the regularised lower incomplete gamma function
    P(a, x).
    """
    order, a, x = np.broadcast_arrays(order, a, x)
    region = np.where(x <= 1.0, 0, np.where(a < SMOOTH, 1, 2))
    inside = (a > 0) & np.isfinite(a) & (x > 0) & np.isfinite(x) & (order > 0)
    code = np.where(inside, 3 * order + region, 0)
    result = on_domain(lambda code, *v: _gammainc_parts(*divmod(code, 3), *v), code, inside, a, x)
    # At both ends of the range P is constant.
    result = np.where(
        (a > 0) & (x >= 0) & ((x == 0) | (np.isinf(x) ^ np.isinf(a))) & (order > 0), 0.0, result
    )
    return np.where(order == 0, incomplete_gamma(False, a, x), result)


def _gammainc_parts(n: int, region: int, a: Operand, x: Operand) -> Operand:
    cumulant = gamma_cumulants(a, x)
    if region == 0:
        return np.exp(x) * _gamma_weight(a, x) * gamma_series(n, cumulant, a, x)
    side = np.where(cumulant(1, 0) + 1.0 / a < 0.0, -1.0, 1.0)
    return -side * _gamma_weight(a, x) * gamma_integral(n, region == 2, cumulant, a, x, side)


def gamma_integral(
    n: int, smooth: bool, cumulant: DerivativeAt, a: Operand, x: Operand, side: Operand
) -> Operand:
    """Integrate, over one side of x, the derivative of order n of the density, over
    `gamma_log_weight`'s weight.
    """
    nodes, weights = gauss(32) if smooth else double_exponential()
    distance = gamma_reach(a, x, side)
    steps = (side * distance)[:, None] * nodes
    column = a[:, None]
    # For large shapes the two terms of the exponent are large and nearly equal.
    integrand = np.exp((a - x)[:, None] * steps - x[:, None] * expm1_less_line(steps))

    def along(i: int, j: int) -> Operand:
        return cumulant(i, j)[:, None] + (steps if i == 1 else 0.0)

    integrand *= column * bell(n, 0, along) + n * bell(n - 1, 0, along)
    return distance * np.sum(integrand * weights, axis=1)


def gamma_reach(a: Operand, x: Operand, side: Operand) -> Operand:
    """Find how far from x, in the logarithm, the integrand reaches."""

    def fall(u: Operand) -> tuple[Operand, Operand]:
        more = side * np.expm1(side * u)
        return x * expm1_less_line(side * u) + side * (x - a) * u, x * more + side * (x - a)

    # Newton's method halves the distance at first, so for large shapes it starts from a near point.
    near = 1.1 * np.sqrt(3.0 * DROP / x)
    start = np.where(side < 0, (DROP + x) / a, np.log1p((100.0 + 12.0 * np.sqrt(a)) / x))
    return reach(fall, np.where(near < 1.0, np.minimum(near, start), start))


def gamma_series(n: int, cumulant: Operand, a: Operand, x: Operand) -> Operand:
    # gamma(a + 1) x**-a P(a, x) = 1 + a sum (-x)**k / (k! (a + k)), for x up to 1.
    total = bell(n, 0, cumulant)
    factor: Operand = 1.0
    for k in range(1, 20):
        factor = factor * -x / k

        def along(i: int, j: int, k: int = k) -> Operand:
            return cumulant(i, j) + (-1.0) ** i * factorial(i - 1) / (a + k) ** i

        total = total + factor * (a * bell(n, 0, along) + n * bell(n - 1, 0, along)) / (a + k)
    return total


def gamma_density_derivative(order: Operand, a: Operand, x: Operand) -> Operand:
    """Compute the derivative with respect to a of the density ``x**(a - 1) exp(-x) / gamma(a)``."""
    order, a, x = np.broadcast_arrays(order, a, x)
    direct = np.exp(special.xlogy(a - 1.0, x) - x - special.gammaln(a))
    density = np.where(a < 8.0, direct, a / np.where(x == 0, 1.0, x) * _gamma_weight(a, x))
    density = np.where(np.isinf(x) & np.isfinite(a), 0.0, density)
    inside = (a > 0) & (x >= 0) & (density > 0) & (order > 0)
    shape = on_domain(
        lambda n, *v: _density_factor(n, gamma_cumulants(*v), v[0]), order, inside, a, x
    )
    return np.where(
        (a > 0) & (x >= 0),
        np.where((order == 0) | (density == 0), density, density * shape),
        np.nan,
    )


def _density_factor(n: int, cumulant: Operand, a: Operand) -> Operand:
    return bell(n, 0, cumulant) + n / a * bell(n - 1, 0, cumulant)


# The incomplete beta function. The two digits of an order are the orders in a and in b.


def beta_log_weight(a: Operand, b: Operand, x: Operand, y: Operand) -> Operand:
    """Compute the logarithm of ``x**a y**b / beta(a, b)`` where y is 1 - x."""
    total = a + b
    direct = (
        special.xlogy(a, x)
        + np.where(x < 0.5, special.xlog1py(b, -x), special.xlogy(b, y))
        - special.betaln(a, b)
    )
    # The exponent is taken relative to its value at the mode a / (a + b), where the linear terms of
    # the two logarithms cancel.
    off = x * b - a * y
    exponent = a * log_less_line(x * (total / a), off / a) + b * log_less_line(
        y * (total / b), -off / b
    )
    factor = stirling_factor(total) / (stirling_factor(a) * stirling_factor(b))
    scaled = np.log(np.sqrt(a * (b / total) / (2.0 * np.pi)) * factor) + exponent
    return np.where(total < 8.0, direct, scaled)


def _beta_weight(a: Operand, b: Operand, x: Operand, y: Operand) -> Operand:
    return np.exp(beta_log_weight(a, b, x, y))


def beta_cumulants(a: Operand, b: Operand, x: Operand, y: Operand) -> DerivativeAt:
    """Return the derivatives with respect to a and b of ``log(x**a y**b / beta(a, b))``."""

    def logarithm(t: Operand, complement: Operand) -> Operand:
        return np.where(t < 0.5, np.log(t), np.log1p(-complement))

    def cumulant(i: int, j: int) -> Operand:
        s = i + j
        if i and j:
            return (-1.0) ** s * factorial(s - 1) * special.zeta(float(s), a + b)
        shapes, logarithms = ((a, b), (x, y)) if i else ((b, a), (y, x))
        remainder = (-1.0) ** (s + 1) * factorial(s - 1) * zeta_difference(float(s), *shapes)
        return remainder + logarithm(*logarithms) if s == 1 else remainder

    return cumulant


def betainc_derivative(order: Operand, a: Operand, b: Operand, x: Operand) -> Operand:
    """Compute the derivative in a and b of the regularised incomplete beta function."""
    order, a, b, x = np.broadcast_arrays(order, a, b, x)
    inside = (a > 0) & np.isfinite(a) & (b > 0) & np.isfinite(b) & (x > 0) & (x < 1) & (order > 0)
    code = np.where(inside, 2 * order + (np.minimum(a, b) >= SMOOTH), 0)
    result = on_domain(
        lambda code, *v: _betainc_parts(code // 2, bool(code % 2), *v), code, inside, a, b, x
    )
    result = np.where((a > 0) & (b > 0) & ((x == 0) | (x == 1)) & (order > 0), 0.0, result)
    return np.where(order == 0, special.betainc(a, b, x), result)


def _betainc_parts(order: int, smooth: bool, a: Operand, b: Operand, x: Operand) -> Operand:
    n, m = divmod(order, 10)
    y = 1.0 - x
    # The integrand of the first derivative in a changes its sign where log(x) is -excess; that of
    # the first derivative in b where log(y) is.
    signs = [
        sign * np.log(np.expm1(zeta_difference(1.0, *shapes)))
        for sign, shapes, requested in ((-1.0, (a, b), n), (1.0, (b, a), m))
        if requested
    ]
    left = np.log(x / y) < sum(signs) / len(signs)
    result = np.empty(x.shape)
    for which, sign, values, orders in (
        (left, 1.0, (b, a, y, x), (m, n)),
        (~left, -1.0, (a, b, x, y), (n, m)),
    ):
        if which.any():
            part = [v[which] for v in values]
            result[which] = sign * _beta_weight(*part) * beta_integral(orders, smooth, *part)
    return result


def beta_integral(
    orders: tuple[int, int], smooth: bool, a: Operand, b: Operand, x: Operand, y: Operand
) -> Operand:
    """Integrate, from x to 1, the derivative of the density, over `beta_log_weight`'s weight; in
    the log odds.
    """
    cumulant = beta_cumulants(a, b, x, y)
    nodes, weights = gauss(32) if smooth else double_exponential()
    columns = [v[:, None] for v in (x, y, np.log(x))]
    distance, corner = beta_panels(smooth, a, b, x, y)
    total = np.zeros(x.shape)
    for start, stop in ((0.0 * corner, corner), (corner, distance)):
        which = stop > start
        if not which.any():
            continue
        width = (stop - start)[which]
        steps = start[which, None] + width[:, None] * nodes
        p, q = _log_changes(steps, *(c[which] for c in columns))
        along = _moved(cumulant, which, p, q)
        integrand = np.exp(-a[which, None] * p - b[which, None] * q) * bell(*orders, along)
        total[which] += width * np.sum(integrand * weights, axis=1)
    return total


def beta_panels(
    smooth: bool, a: Operand, b: Operand, x: Operand, y: Operand
) -> tuple[Operand, Operand]:
    """Find how far from x, in the log odds, the integrand reaches, and where one panel ends and the
    next begins.
    """
    distance = _beta_reach(a, b, x, y)
    # For small shapes the integrand has a corner, at which a panel has to end.
    corner = np.zeros(x.shape)
    if not smooth:
        corner = np.clip(
            np.log(np.maximum(a, 1.0) / np.maximum(b, 1.0)) - np.log(x / y), 0.0, distance
        )
    return distance, corner


def beta_mass(
    smooth: bool, a: Operand, b: Operand, x: Operand, y: Operand
) -> tuple[Operand, Operand, Operand]:
    """Compute, for nodes above x, how far the logarithms of the argument and of its complement
    fall, and the density times the weight of the node.
    """
    nodes, weights = gauss(32) if smooth else double_exponential()
    distance, corner = beta_panels(smooth, a, b, x, y)
    ends = (0.0 * corner, distance) if smooth else (0.0 * corner, corner, distance)
    steps, mass = [], []
    for start, stop in pairwise(ends):
        width = (stop - start)[:, None]
        steps.append(start[:, None] + width * nodes)
        mass.append(width * weights)
    p, q = _log_changes(np.concatenate(steps, axis=1), *(v[:, None] for v in (x, y, np.log(x))))
    return p, q, np.concatenate(mass, axis=1) * np.exp(-a[:, None] * p - b[:, None] * q)


def _moved(cumulant: Operand, which: Operand, p: Operand, q: Operand) -> DerivativeAt:
    change = {(1, 0): p, (0, 1): q}

    def along(i: int, j: int) -> Operand:
        return cumulant(i, j)[which, None] - change.get((i, j), 0.0)

    return along


def _log_changes(steps: Operand, x: Operand, y: Operand, log_x: Operand) -> tuple[Operand, Operand]:
    """Compute how far log(x) and log(1 - x) fall when the log odds grow by `steps`."""
    near = np.log1p(x * np.expm1(np.minimum(steps, 37.0)))
    if np.max(steps) > 37.0:
        near = np.where(steps > 37.0, np.logaddexp(0.0, steps + log_x), near)
    # The fall of the argument is inexact where y is rounded to 1, because the argument of the
    # logarithm is then near 0. There the fall of log(x) follows from the fall of log(1 - x).
    fall = -y * np.expm1(-steps)
    return np.where(fall < 0.5, np.log1p(-fall), near - steps), near


def _beta_reach(a: Operand, b: Operand, x: Operand, y: Operand) -> Operand:
    """Find how far from x, in the log odds, the integrand reaches."""
    odds, log_x = np.log(x / y), np.log(x)

    def fall(u: Operand) -> tuple[Operand, Operand]:
        p, q = _log_changes(u, x, y, log_x)
        upper = 1.0 / (1.0 + np.exp(-odds - u))
        return a * p + b * q, b * upper - a * (1.0 - upper)

    return reach(fall, (DROP - a * log_x) / b - log_x)


def beta_density_derivative(order: Operand, a: Operand, b: Operand, x: Operand) -> Operand:
    """Compute the derivative with respect to a and b of the density ``x**(a - 1) (1 - x)**(b - 1) /
    beta(a, b)``.
    """
    order, a, b, x = np.broadcast_arrays(order, a, b, x)
    y = 1.0 - x
    direct = np.exp(special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b))
    ends = (x == 0) | (x == 1)
    density = np.where(
        (a + b < 8.0) | ends, direct, _beta_weight(a, b, x, y) / np.where(ends, 1.0, x * y)
    )
    inside = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)

    def factor(code: int, *values: Operand) -> Operand:
        return bell(*divmod(code, 10), beta_cumulants(*values))

    shape = on_domain(factor, order, inside & (density > 0) & (order > 0), a, b, x, y)
    return np.where(
        inside, np.where((order == 0) | (density == 0), density, density * shape), np.nan
    )
