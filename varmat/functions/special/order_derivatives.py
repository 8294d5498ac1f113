"""Derivatives of the logarithms of the modified Bessel functions with respect to order and
argument: the algorithms.

Both functions are integrals of an exponential over a path. On the path of steepest descent the
exponential is positive, and so are the factors that differentiation in the order brings: nothing
cancels. The derivatives of the logarithm are the cumulants of the derivatives of the exponent, with
the exponential as weight; large exponents drop out of these.

`bessel_functions` has the rows that call them. The two digits of `order` tell how often to
differentiate with respect to the order v of the function, and to its argument x."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, factorial, pi

import numpy as np

from varmat.functions.special.bell_polynomials import DerivativeAt, bell, unbell
from varmat.functions.special.gamma_differences import log_rising
from varmat.functions.special.quadrature import DROP, double_exponential, gauss, on_domain, reach
from varmat.functions.special.series import polynomial
from varmat.plain_arrays import special
from varmat.typing import Plain

# Below this order the path of steepest descent turns sharply, and a path along the axes is better.
_STRAIGHT = 0.5
# Where hypot(v, x) is larger, the integrand of I is a hump far from the end of the path.
_HUMP = 30.0
# Where hypot(v, x) is larger, one term of the expansion for large orders and arguments is enough.
_WIDE = 1e8
# Up to this argument the integrand of K is long and flat.
_FLAT = 1e-3
# (t - sin t) / t**3 and (sin t - t cos t) / t**3 as polynomials of t**2.
_SINE = tuple((-1.0) ** k / factorial(2 * k + 3) for k in range(10))
_SLOPE = tuple((-1.0) ** k * (2 * k + 2) / factorial(2 * k + 3) for k in range(10))
_HYPERBOLIC_SINE = tuple(map(abs, _SINE))


def cumulant(order: int, weights: Plain, derivative: DerivativeAt) -> Plain:
    """Compute the derivative of the logarithm of a sum of exponentials, from their values and the
    derivatives of their exponents.
    """
    n, m = divmod(order, 10)
    total = np.sum(weights.real, axis=1)

    def mean(values: Plain) -> Plain:
        return np.sum((weights * values).real, axis=1) / total

    if n + m == 1:
        return mean(derivative(n, m))
    centre = {
        (i, j): mean(derivative(i, j))[:, None] for i, j in ((1, 0), (0, 1)) if i <= n and j <= m
    }

    def moment(i: int, j: int) -> Plain:
        return (
            float(i + j == 0)
            if i + j < 2
            else mean(bell(i, j, lambda p, q: derivative(p, q) - centre.get((p, q), 0.0)))
        )

    return unbell(n, m, moment)


# I(v, x) is Schlaefli's integral of exp(x cosh t - v t) / (2 pi i) along a path from infinity - i
# pi to infinity + i pi. The upper half of the path is given by nodes t and coefficients c: pi I is
# the sum of Re(c), times exp of the largest exponent.


def log_iv_derivative(order: Plain, v: Plain, x: Plain) -> Plain:
    """Compute the derivative with respect to v and x of the logarithm of I(v, x)."""
    order, v, x = np.broadcast_arrays(order, v, x)
    region = np.where(
        v < 0, 0, np.where(x <= 1.0, 5, 1 + 2 * (v >= _STRAIGHT) + (np.hypot(v, x) >= _HUMP))
    )
    inside = np.isfinite(v) & (x > 0) & np.isfinite(x) & (order > 0)
    code = np.where(inside, 6 * order + region, 0)
    result = on_domain(lambda code, *u: _log_iv_parts(*divmod(code, 6), *u), code, inside, v, x)
    result = np.where((x == 0) & (v >= 0) & (order == 10), -np.inf, result)
    result = np.where((x == 0) & (v >= 0) & (order == 1), np.where(v == 0, 0.0, np.inf), result)
    result = np.where(
        (x == np.inf) & np.isfinite(v) & (order > 0), np.where(order == 1, 1.0, 0.0), result
    )
    return np.where(order == 0, log_iv(v, x), result)


def _log_iv_parts(order: int, region: int, v: Plain, x: Plain) -> Plain:
    if region == 0:
        return _log_iv_reflected(order, -v, x)
    v, x = v[:, None], x[:, None]
    if region == 5:
        return cumulant(order, *_iv_series(v, x))
    paths = zip(*_iv_path(v, x, straight=region < 3, hump=region % 2 == 0), strict=True)
    c, t = (np.concatenate(parts, axis=1) for parts in paths)
    return cumulant(order, c, lambda i, j: (-t, np.cosh(t))[j] if i + j == 1 else 0.0)


def log_iv(v: Plain, x: Plain) -> Plain:
    """Compute the logarithm of the modified Bessel function of the first kind, also where the
    function itself overflows or underflows.
    """
    scaled, width = special.ive(v, x), np.hypot(v, x)
    region = np.where(
        x <= 1.0,
        1,
        np.where(
            width >= _WIDE, 2, np.where((scaled < 1e-290) & (v >= 1.0), 3 + (width >= _HUMP), 0)
        ),
    )
    region = np.where(np.isfinite(v) & (v >= 0) & (x > 0) & np.isfinite(x), region, 0)
    result = on_domain(_log_iv_at, region, region > 0, v, x)
    result = np.where(region > 0, result, np.log(np.where(x < 0, np.nan, scaled)) + x)
    result = np.where((x == np.inf) & np.isfinite(v), np.inf, result)
    return np.where((v == np.inf) & (x >= 0) & np.isfinite(x), -np.inf, result)


def log_iv_straight(v: Plain, x: Plain) -> Plain:
    """`log_iv` for programs: nan, where the function is called, if `ive` underflows."""
    scaled = special.ive(v, x)
    small = v * np.log(0.5 * x) - special.gammaln(v + 1.0) + np.log1p(_iv_excess(v, x))
    large = np.where((scaled >= 1e-290) & (v + x < _WIDE), scaled, np.nan)
    return np.where(x <= 1.0, small, np.log(large) + x)


def log_iv_derivative_straight(order: Plain, v: Plain, x: Plain) -> Plain:
    """`log_iv_derivative` for programs, once in x: a quotient of neighbours, in which nothing
    cancels.
    """
    if not isinstance(order, float) or order != 1.0:
        raise TypeError("only the first derivative in x has one formula")
    small = 0.5 * x / (v + 1.0) * ((1.0 + _iv_excess(v + 1.0, x)) / (1.0 + _iv_excess(v, x)))
    scaled = special.ive(v, x)
    large = special.ive(v + 1.0, x) / np.where(scaled >= 1e-290, scaled, np.nan)
    return np.where(x <= 1.0, small, large) + v / x


def _iv_excess(v: Plain, x: Plain) -> Plain:
    """Compute the series of I(v, x) over its first term, less 1, where x is at most 1."""
    total, square = 0.0, 0.25 * x * x
    for k in range(10, 0, -1):
        total = square / (k * (v + k)) * (1.0 + total)
    return total


def _log_iv_at(region: int, v: Plain, x: Plain) -> Plain:
    if region == 1:  # the logarithms of the leading term, and of the sum of all terms over it
        terms = _iv_terms(v[:, None], x[:, None])[:, 1:]
        return v * np.log(0.5 * x) - log_rising(1.0, v) + np.log1p(np.sum(terms, axis=1))
    if region == 2:  # DLMF 10.41.3; the next term is below the last digit
        width = np.hypot(v, x)
        return (
            width
            - v * np.arcsinh(v / x)
            - 0.5 * np.log(2.0 * pi * width)
            + (3.0 - 5.0 * (v / width) ** 2) / (24.0 * width)
        )
    return _log_iv_small(region == 4, v, x)


def _log_iv_small(hump: bool, v: Plain, x: Plain) -> Plain:
    paths = _iv_path(v[:, None], x[:, None], straight=False, hump=hump)
    return (
        np.hypot(v, x)
        - v * np.arcsinh(v / x)
        + np.log(sum(np.sum(c.real, axis=1) for c, _ in paths) / pi)
    )


def _iv_terms(v: Plain, x: Plain) -> Plain:
    # I(v, x) = sum over k of (x / 2)**(2 k + v) / (k! gamma(v + k + 1)); the terms, over the first
    # one.
    k = np.arange(11.0)
    return np.cumprod(
        np.where(k == 0, 1.0, 0.25 * x * x / np.where(k == 0, 1.0, k * (v + k))), axis=1
    )


def _iv_series(v: Plain, x: Plain) -> tuple[Plain, DerivativeAt]:
    k, terms = np.arange(11.0), _iv_terms(v, x)

    def derivative(i: int, j: int) -> Plain:
        # The derivatives of (2 k + v) log(x / 2) - log gamma(v + k + 1).
        logarithm = np.log(0.5 * x) if j == 0 else (-1.0) ** (j + 1) * factorial(j - 1) / x**j
        if i == 0:
            return (2.0 * k + v) * logarithm
        if i == 1:
            return logarithm - (special.psi(v + k + 1.0) if j == 0 else 0.0)
        return (
            (-1.0) ** (i + 1) * factorial(i - 1) * special.zeta(float(i), v + k + 1.0)
            if j == 0
            else 0.0
        )

    return terms, derivative


def _iv_path(v: Plain, x: Plain, straight: bool, hump: bool) -> Iterator[tuple[Plain, Plain]]:
    for angle, sine, weight in _angles(np.hypot(v, x), hump):
        if straight:
            yield (
                weight * np.exp(-2.0 * x * np.sin(0.5 * angle) ** 2 - 1j * v * angle),
                1j * (angle + 0.0 * v),
            )
        else:
            yield _steepest(v, x, angle, sine, weight)
    if straight:
        for t, weight in _half_line(
            0.0 * x, np.arcsinh(1.0 / x), 2.0 * np.arcsinh(np.sqrt(0.5 * DROP / np.maximum(x, 1.0)))
        ):
            yield (
                -1j * weight * np.exp(-2.0 * x * np.cosh(0.5 * t) ** 2 - v * t - 1j * pi * v),
                t + 1j * pi,
            )


def _steepest(v: Plain, x: Plain, angle: Plain, sine: Plain, weight: Plain) -> tuple[Plain, Plain]:
    # On the path t = T + i A with sinh T = (v / x) A / sin A the exponent is real, and largest at A
    # = 0.
    near = np.minimum(angle, 1.0)
    stretch = angle / sine
    # stretch**2 - 1
    excess = (
        np.where(angle < 1.0, near**3 * polynomial(near**2, _SINE), angle - sine)
        * (angle + sine)
        / sine**2
    )
    slope = (
        np.where(angle < 1.0, near**3 * polynomial(near**2, _SLOPE), sine - angle * np.cos(angle))
        / sine**2
    )
    width, here = np.hypot(v, x), np.hypot(x, v * stretch)
    # How far T grows from A = 0 on, from the difference of the squares of sinh T.
    growth = np.arcsinh(v * excess / (stretch * width + here))
    exponent = (
        2.0 * width * np.sinh(0.5 * growth) ** 2
        + v * _sinh_less(growth)
        - 2.0 * here * np.sin(0.5 * angle) ** 2
    )
    return weight * np.exp(exponent) * (1.0 - 1j * (v / here) * slope), np.arcsinh(
        v / x
    ) + growth + 1j * angle


def _sinh_less(t: Plain) -> Plain:
    """``sinh(t) - t``."""
    near = np.clip(t, -1.0, 1.0)
    return np.where(
        np.abs(t) < 1.0, near**3 * polynomial(near**2, _HYPERBOLIC_SINE), np.sinh(t) - t
    )


def _angles(width: Plain, hump: bool) -> Iterator[tuple[Plain, Plain, Plain]]:
    """Nodes from 0 to pi, their sines, and weights."""
    if hump:
        nodes, weights = gauss(48)
        end = 2.0 * np.arcsin(np.sqrt(0.5 * DROP / np.maximum(width, 0.6 * DROP)))
        yield end * nodes, np.sin(end * nodes), end * weights
        return
    nodes, weights = gauss(32)
    yield 0.5 * pi * nodes, np.sin(0.5 * pi * nodes), 0.5 * pi * weights
    # The angles are counted from pi downwards, where their sines are exact.
    nodes, weights = gauss(48)
    yield pi - 0.5 * pi * nodes, np.sin(0.5 * pi * nodes), 0.5 * pi * weights


def _half_line(
    start: Plain, corner: Plain, beyond: Plain, flat: bool = False
) -> Iterator[tuple[Plain, Plain]]:
    """Nodes from `start` over `corner` to `corner + beyond`, and weights."""
    nodes, weights = double_exponential() if flat else gauss(32)
    for low, length in ((start, corner - start), (corner, beyond)):
        yield low + length * nodes, length * weights


def _log_iv_reflected(order: int, v: Plain, x: Plain) -> Plain:
    """At the order -v: I(-v) = I(v) + (2 / pi) sin(pi v) K(v)."""
    nearest = np.round(v)
    sign, angle = 1.0 - 2.0 * (nearest % 2.0), pi * (v - nearest)
    sines = [sign * f for f in (np.sin(angle), np.cos(angle), -np.sin(angle), -np.cos(angle))]
    first, second = special.ive(v, x), special.kve(v, x) * np.exp(-2.0 * x) * (2.0 / pi)

    def derivative(i: int, j: int) -> Plain:
        total = first * bell(i, j, lambda p, q: log_iv_derivative(10 * p + q, v, x))
        for k in range(i + 1):
            other = second * bell(i - k, j, lambda p, q: log_kv_derivative(10 * p + q, v, x))
            total = total + comb(i, k) * pi**k * np.where(
                sines[k % 4] == 0, 0.0, sines[k % 4] * other
            )
        return (-1.0) ** i * total

    return unbell(*divmod(order, 10), lambda i, j: derivative(i, j) / derivative(0, 0))


# K(v, x) is the integral of exp(-x cosh t) cosh(v t) from 0 to infinity.


def log_kv_derivative(order: Plain, v: Plain, x: Plain) -> Plain:
    """Compute the derivative with respect to v and x of the logarithm of K(v, x)."""
    order, v, x = np.broadcast_arrays(order, v, x)
    inside = np.isfinite(v) & (x > 0) & np.isfinite(x) & (order > 0)
    code = np.where(inside, 2 * order + (x < _FLAT), 0)
    result = on_domain(lambda code, *u: _log_kv_parts(*divmod(code, 2), *u), code, inside, v, x)
    return np.where(order == 0, np.log(special.kve(v, x)) - x, result)


def _log_kv_parts(order: int, flat: int, v: Plain, x: Plain) -> Plain:
    sign = np.where(v < 0, -1.0, 1.0) ** (order // 10)
    v, x = np.abs(v)[:, None], x[:, None]
    width, peak = np.hypot(v, x), np.arcsinh(v / x)
    start = np.minimum(peak, 1.0 + DROP / np.maximum(v, 1e-9))
    below = reach(
        lambda u: (v * u + x * np.cosh(peak - u) - width, v - x * np.sinh(peak - u)), start
    )
    beyond = reach(lambda u: _kv_fall(width, v, u), 2.0 * np.arcsinh(np.sqrt(0.5 * DROP / width)))
    # Where order and argument are small, the integrand has a corner far from its peak.
    corner = np.clip(np.arcsinh(1.0 / x), peak, peak + beyond)
    panels = zip(*_half_line(peak - below, corner, peak + beyond - corner, bool(flat)), strict=True)
    t, weight = (np.concatenate(parts, axis=1) for parts in panels)
    off = t - peak
    fall = np.where(off < -1.0, v * -off + x * np.cosh(t) - width, _kv_fall(width, v, off)[0])

    def derivative(i: int, j: int) -> Plain:
        # The derivatives of log cosh(v t) - x cosh t.
        if i == 0:
            return -np.cosh(np.minimum(t, 700.0)) if j == 1 else 0.0
        return t**i * polynomial(np.tanh(v * t), _log_cosh(i)) if j == 0 else 0.0

    return sign * cumulant(order, weight * np.exp(-fall) * (1.0 + np.exp(-2.0 * v * t)), derivative)


def _kv_fall(width: Plain, v: Plain, off: Plain) -> tuple[Plain, Plain]:
    """Compute how far the exponent has fallen from its peak, and the slope of the fall."""
    remainder = 2.0 * np.sinh(0.5 * off) ** 2
    return width * remainder + v * _sinh_less(off), width * np.sinh(off) + v * remainder


def _log_cosh(n: int) -> tuple[float, ...]:
    """Return the derivative of order n of log cosh, as a polynomial of tanh."""
    result = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n - 1):
        result = result.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    return tuple(result.coef)
