"""Derivatives of the incomplete gamma and beta functions with respect to their shapes, of any
order: the algorithms.

A derivative in a shape is the integral of the density times a polynomial in the logarithm of the
variable. The whole integral of a derivative is zero, so either tail gives it; the one is taken in
which the integrand of the first derivative does not change its sign, and nothing cancels. In the
logarithm (gamma) or the log odds (beta) of the variable the integrand is a smooth hump with
exponential or faster tails, for which a fixed number of nodes does, whatever the shapes.

The functions get `scipy.special` as their first argument; `varmat.functions.special.table` has the
rows that call them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from math import comb, factorial, gamma, inf, lgamma, log, log1p
from typing import Any

import numpy as np

__all__: list[str] = []

# Elements at a time: the nodes of a block stay in the cache.
BLOCK = 512
# Where exp(-DROP) is nothing against 1.
DROP = 45.0
# From these shapes on the integrand has one scale, and a Gauss rule does.
SMOOTH = 4.0
# B_2k / (2 k)!, with the Bernoulli numbers B.
_EULER_MACLAURIN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
)
# B_2k / (2 k (2 k - 1)) and B_2k / (2 k): the asymptotic series of log gamma and of the digamma
# function.
_STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# Where these series have all digits.
_ASYMPTOTIC = 12.0
# Up to here a number grows when one is added.
_COUNTED = 1e15
# From where on to where on the beta function is computed by them. Below, gamma functions do; above,
# they overflow.
_FAR, _HUGE = 100.0, 1e100
_FAR_TERMS = _STIRLING[:4]
_ODD = tuple(1.0 / k for k in range(3, 29, 2))
_EXPONENTIAL = tuple(1.0 / factorial(k) for k in range(2, 17))


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """The sum of ``coefficients[k] * x**k``."""
    total: Any = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total


# The zeta function's differences.


def zeta_difference(special: Any, x: Any, y: Any, z: Any) -> Any:
    """``zeta(x, y) - zeta(x, y + z)``, for x = 1 ``psi(y + z) - psi(y)``, without cancellation."""
    result = _zeta_difference_direct(special, x, y, z)
    far = np.minimum(y, y + z) >= 15.0
    close = (np.abs(z) < 0.02 * y) & ~far & (z != 0)
    if np.any(far):
        result = np.where(
            far, _zeta_difference_far(x, np.where(far, y, 15.0), np.where(far, z, 1.0)), result
        )
    if np.any(close):
        # Elsewhere SciPy may sum for seconds: at -1e8 it begins with 1e8 terms.
        half = 0.5 * np.where(close, z, 0.0)
        near = np.where(
            close, _zeta_difference_close(special, x, np.where(close, y, 1.0) + half, half), result
        )
        # Where the pole at zero is all that counts, the zeta functions of the series overflow.
        result = np.where(
            close & (y < 1e-20), -np.power(y, -x) * np.expm1(-x * np.log1p(z / y)), near
        )
    return result


def _zeta_difference_direct(special: Any, x: Any, y: Any, z: Any) -> Any:
    if np.all(x == 1.0):
        return special.psi(y + z) - special.psi(y)
    return np.where(
        x == 1.0, special.psi(y + z) - special.psi(y), special.zeta(x, y) - special.zeta(x, y + z)
    )


def _zeta_difference_far(x: Any, y: Any, z: Any) -> Any:
    # The Euler-Maclaurin series of the two zeta functions, subtracted term by term: with L = log(1
    # + z / y) the difference of two powers is y**-p (1 - exp(-p L)). Johansson (2015), Numerical
    # Algorithms 69, 253-270.
    log_ratio = np.log1p(z / y)

    def powers(p: Any) -> Any:
        return -(y**-p) * np.expm1(-p * log_ratio)

    total = np.where(
        x == 1.0, log_ratio, powers(x - 1.0) / np.where(x == 1.0, 1.0, x - 1.0)
    ) + 0.5 * powers(x)
    rising: Any = x
    for k, coefficient in enumerate(_EULER_MACLAURIN):
        total = total + coefficient * rising * powers(x + 2.0 * k + 1.0)
        rising = rising * (x + 2.0 * k + 1.0) * (x + 2.0 * k + 2.0)
    return total


def _zeta_difference_close(special: Any, x: Any, middle: Any, half: Any) -> Any:
    # The Taylor series around the middle of the two arguments: only odd terms remain.
    total: Any = 0.0
    factor = 2.0 * x * half
    for k in range(4):
        total = total + factor * special.zeta(x + 2.0 * k + 1.0, middle)
        factor = (
            factor
            * (x + 2.0 * k + 1.0)
            * (x + 2.0 * k + 2.0)
            * half
            * half
            / ((2.0 * k + 2.0) * (2.0 * k + 3.0))
        )
    return total


def zeta_difference_straight(x: Any, y: Any, z: Any) -> Any:
    """`zeta_difference` for x = 1 as `zeta_difference_of_numbers` computes it, the same for all
    positive arguments.
    """
    if not isinstance(x, float) or x != 1.0:
        raise TypeError("only differences of digamma functions are one formula")
    near = np.minimum(y, y + z) < _ASYMPTOTIC
    start = np.where(near, y, 1.0)
    steps = sum(z / (start + k + z) / (start + k) for k in range(int(_ASYMPTOTIC)))
    y = np.where(near, y + _ASYMPTOTIC, y)
    a, b, powers, tail, rest = 1.0 / (y + z), 1.0 / y, 0.0, 0.0, 1.0
    u, v = a * a, b * b
    for c in _DIGAMMA:
        powers = powers * u + rest
        rest = rest * v
        tail = tail + c * powers
    ratio = z * a
    return (
        np.where(near, steps, 0.0)
        + np.log1p(z * b)
        + 0.5 * ratio * b
        + ratio * (1.0 + y * a) * v * tail
    )


def zeta_difference_of_numbers(x: float, y: float, z: float) -> float:
    """`zeta_difference` of Python floats, quickly where x = 1; anything else is left to the
    arrays.
    """
    if not (x == 1.0 and 0.0 < y < inf and 0.0 < y + z < inf) or y + z < _ASYMPTOTIC < _COUNTED < y:
        raise ArithmeticError
    total = 0.0
    while min(y, y + z) < _ASYMPTOTIC:
        total += z / (y + z) / y  # the product of the two may overflow or underflow
        y += 1.0
    u, v, powers, tail, rest = (y + z) ** -2, y**-2, 0.0, 0.0, 1.0
    for c in _DIGAMMA:  # u**k - v**k is u - v times the sum of all products of k - 1 of them
        powers = powers * u + rest
        rest *= v
        tail += c * powers
    ratio = z / (y + z)
    return total + log1p(z / y) + 0.5 * ratio / y + ratio * (1.0 + y / (y + z)) * v * tail


def log_rising(special: Any, x: Any, y: Any) -> Any:
    """``gammaln(x + y) - gammaln(x)`` without cancellation."""
    # Python's raise where arrays have infinities
    x, y = (np.float64(v) if type(v) is float else v for v in (x, y))
    near = np.minimum(x, x + y) < _ASYMPTOTIC
    if not np.any(near):
        result = _log_rising_far(x, y)
    else:
        start = np.where(near, x, 1.0)
        steps = sum(np.log1p(y / (start + k)) for k in range(int(_ASYMPTOTIC)))
        result = _log_rising_far(np.where(near, x + _ASYMPTOTIC, x), y) - np.where(near, steps, 0.0)
    infinite = (x == inf) | ((y == inf) & (x > 0) & (x < inf))
    if not np.any(infinite):
        return result
    # As x**y for an infinite x, and gamma(y) for an infinite y.
    return np.where(infinite, np.where(y == 0, 0.0, np.where(y == -inf, np.nan, y * inf)), result)


def log_rising_of_numbers(x: float, y: float) -> float:
    """`log_rising` of Python floats; anything unusual is left to the arrays."""
    if not (0.0 < x < inf and 0.0 < x + y < inf) or x + y < _ASYMPTOTIC < _COUNTED < x:
        raise ArithmeticError
    total = 0.0
    while min(x, x + y) < _ASYMPTOTIC:
        total -= log1p(y / x)
        x += 1.0
    return total + float(_log_rising_far(x, y))


def _log_rising_far(x: Any, y: Any, terms: tuple[float, ...] = _STIRLING) -> Any:
    # Stirling's series at x + y and at x: of the difference of the tails, a**m - b**m is a - b
    # times the sum of all products of m - 1 of them.
    a, b = 1.0 / (x + y), 1.0 / x
    powers, rest, tail = 1.0, 1.0, terms[0]
    for d in terms[1:]:
        for _ in range(2):
            rest = rest * b
            powers = powers * a + rest
        tail = tail + d * powers
    if type(x) is float:
        return (x - 0.5) * log1p(y / x) + y * (log(x + y) - 1.0) - y * a * b * tail
    return (x - 0.5) * np.log1p(y / x) + y * (np.log(x + y) - 1.0) - y * a * b * tail


# The beta function and the binomial coefficient. Where SciPy takes differences of log gamma
# functions, it loses up to nine digits.


def _far(x: Any, y: Any) -> Any:
    large = np.maximum(x, y)
    far = large > _FAR
    return far & (large < _HUGE) & (np.minimum(x, y) > 0) if far.any() else far


def log_beta(special: Any, x: Any, y: Any) -> Any:
    """`betaln`, with all digits also where one argument is large."""
    far, result = _far(x, y), special.betaln(x, y)
    if not far.any():
        return result
    small, large = np.where(far, np.minimum(x, y), 1.0), np.where(far, np.maximum(x, y), _FAR)
    return np.where(
        far, special.gammaln(small) - _log_rising_far(large, small, _FAR_TERMS), result
    )[()]


def log_beta_of_numbers(x: float, y: float) -> float:
    """`log_beta` of Python floats; anything unusual is left to the arrays."""
    if not (0.0 < x < _HUGE and 0.0 < y < _HUGE):
        raise ArithmeticError
    small, large = min(x, y), max(x, y)
    if large <= _FAR:
        return log(gamma(small) * (gamma(large) / gamma(x + y)))
    return lgamma(small) - float(_log_rising_far(large, small, _FAR_TERMS))


def beta(special: Any, x: Any, y: Any) -> Any:
    """The beta function, with all digits also where one argument is large."""
    far, result = _far(x, y), special.beta(x, y)
    return np.where(far, np.exp(log_beta(special, x, y)), result)[()] if far.any() else result


def binomial(special: Any, x: Any, y: Any) -> Any:
    """The binomial coefficient, with all digits also where `x` is large."""
    # SciPy multiplies if these are few.
    factors = np.where(y == np.rint(y), np.where(x == np.rint(x), np.minimum(y, x - y), y), np.inf)
    far, result = _far(x - y + 1.0, y + 1.0) & (factors >= 20.0), special.binom(x, y)
    return np.where(far, np.exp(log_binomial(special, x, y)), result)[()] if far.any() else result


def log_binomial(special: Any, x: Any, y: Any) -> Any:
    """The logarithm of the binomial coefficient."""
    return -np.log1p(x) - log_beta(special, x - y + 1.0, y + 1.0)


# Shared parts.


def on_domain(
    function: Callable[..., Any], code: Any, inside: Any, *values: Any, block: int = BLOCK
) -> Any:
    """``function(code, *values)`` for the elements inside the domain, block by block of one code
    each; nan for the others.
    """
    codes, inside, *flat = (each.ravel() for each in np.broadcast_arrays(code, inside, *values))
    result = np.full(np.broadcast_shapes(*map(np.shape, (code, *values))), np.nan)
    for each in np.unique(codes[inside]):
        which = np.flatnonzero(inside & (codes == each))
        for start in range(0, len(which), block):
            part = which[start : start + block]
            result.reshape(-1)[part] = function(int(each), *(v[part] for v in flat))
    return result


@cache
def gauss(count: int) -> tuple[Any, Any]:
    """Nodes and weights on (0, 1) of Gauss' rule, for integrands of one scale."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 + 0.5 * nodes, 0.5 * weights


@cache
def double_exponential() -> tuple[Any, Any]:
    """Nodes and weights on (0, 1) of the tanh-sinh rule of Takahasi and Mori (1974), for integrands
    that vary on all scales.
    """
    t, step = np.linspace(-3.2, 3.2, 121, retstep=True)
    nodes = 1.0 / (1.0 + np.exp(-np.pi * np.sinh(t)))
    return nodes, step * np.pi * np.cosh(t) * nodes / (1.0 + np.exp(np.pi * np.sinh(t)))


def reach(fall: Callable[[Any], tuple[Any, Any]], start: Any) -> Any:
    """The distance at which a convex function (and its slope) rises to DROP, or `start` if that is
    nearer.

    Newton's method from `start`, which has to be beyond or too near; the answer need not be exact.
    """
    u = start
    for _ in range(60):
        value, slope = fall(u)
        step = np.where(value > DROP, (value - DROP) / np.where(slope > 0, slope, 1.0), 0.0)
        # Element by element, so that none depends on what it is evaluated together with.
        step = np.where(step > 0.01 * u, step, 0.0)
        if not step.any():
            break
        u = u - step
    return u


# The derivative of order (i, j) of a function.
Derivative = Callable[[int, int], Any]


def bell(n: int, m: int, cumulant: Derivative) -> Any:
    """The derivative of order (n, m) of exp(f), over exp(f): Bell's polynomial of the derivatives
    (i, j) of f.
    """
    if n == m == 0:
        return 1.0
    if n == 0:
        return bell(m, 0, lambda i, j: cumulant(j, i))
    total: Any = 0.0
    for i in range(n):
        for j in range(m + 1):
            total = total + comb(n - 1, i) * comb(m, j) * bell(
                n - 1 - i, m - j, cumulant
            ) * cumulant(i + 1, j)
    return total


def unbell(n: int, m: int, moment: Derivative) -> Any:
    """The inverse: the derivative of order (n, m) of f, given those of exp(f), over exp(f)."""
    if n == 0:
        return unbell(m, 0, lambda i, j: moment(j, i))
    total = moment(n, m)
    for i in range(n):
        for j in range(m + 1):
            if (i + 1, j) != (n, m):
                total = total - comb(n - 1, i) * comb(m, j) * moment(n - 1 - i, m - j) * unbell(
                    i + 1, j, moment
                )
    return total


def _log_less_line(ratio: Any, less_one: Any) -> Any:
    """``log(ratio) - (ratio - 1)``, given ``ratio - 1`` as well."""
    # log(1 + u) = 2 artanh(s) with s = u / (2 + u), and u = 2 s + s u.
    s = less_one / (2.0 + less_one)
    square = s * s
    series = s * (2.0 * square * polynomial(square, _ODD) - less_one)
    return np.where(np.abs(s) < 0.25, series, np.log(ratio) - less_one)


def _expm1_less_line(u: Any) -> Any:
    """``exp(u) - 1 - u``."""
    near = np.abs(u) < 0.5
    v = np.where(near, u, 0.0)
    return np.where(near, v * v * polynomial(v, _EXPONENTIAL), np.expm1(u) - u)


def _stirling_factor(special: Any, a: Any) -> Any:
    """``gamma(a)`` over Stirling's approximation ``sqrt(2 pi / a) (a / e)**a``."""
    large, small = np.maximum(a, _ASYMPTOTIC), np.minimum(a, _ASYMPTOTIC)
    direct = special.gamma(small) * np.exp(small) * small ** (0.5 - small) / np.sqrt(2.0 * np.pi)
    return np.where(a > _ASYMPTOTIC, np.exp(polynomial(large**-2, _STIRLING) / large), direct)


# The incomplete gamma function. E(t) = t**a exp(-t) / gamma(a + 1) is the density times t / a. With
# it the factor a, which makes derivatives in small shapes cancel, is apart: (a E)^(n) = a E^(n) + n
# E^(n - 1).


def gamma_log_weight(special: Any, a: Any, x: Any) -> Any:
    """The logarithm of ``x**a exp(-x) / gamma(a + 1)``."""
    direct = special.xlogy(a, x) - x - special.gammaln(a + 1.0)
    scaled = a * _log_less_line(x / a, (x - a) / a) - np.log(
        np.sqrt(2.0 * np.pi * a) * _stirling_factor(special, a)
    )
    return np.where(a < 8.0, direct, scaled)


def _gamma_weight(special: Any, a: Any, x: Any) -> Any:
    return np.exp(gamma_log_weight(special, a, x))


def gamma_cumulants(special: Any, a: Any, x: Any) -> Derivative:
    """The derivatives with respect to a of ``log E(x)``."""
    large = np.maximum(a, _ASYMPTOTIC)
    # log(a) - psi(a + 1)
    less_digamma = 0.5 / large + polynomial(large**-2, _DIGAMMA) / large**2 - 1.0 / large
    log_ratio = np.where(np.abs(x - a) < 0.5 * a, np.log1p((x - a) / a), np.log(x / a))
    first = np.where(a > _ASYMPTOTIC, log_ratio + less_digamma, np.log(x) - special.psi(a + 1.0))

    def cumulant(i: int, _: int) -> Any:
        return (
            first
            if i == 1
            else (-1.0) ** (i + 1) * factorial(i - 1) * special.zeta(float(i), a + 1.0)
        )

    return cumulant


def gammainc_derivative(special: Any, order: Any, a: Any, x: Any) -> Any:
    """The derivative with respect to a of the regularised lower incomplete gamma function P(a,
    x).
    """
    order, a, x = np.broadcast_arrays(order, a, x)
    region = np.where(x <= 1.0, 0, np.where(a < SMOOTH, 1, 2))
    inside = (a > 0) & np.isfinite(a) & (x > 0) & np.isfinite(x) & (order > 0)
    code = np.where(inside, 3 * order + region, 0)
    result = on_domain(
        lambda code, *v: _gammainc_parts(special, *divmod(code, 3), *v), code, inside, a, x
    )
    # At the ends P is constant.
    result = np.where(
        (a > 0) & (x >= 0) & ((x == 0) | (np.isinf(x) ^ np.isinf(a))) & (order > 0), 0.0, result
    )
    return np.where(order == 0, special.gammainc(a, x), result)


def _gammainc_parts(special: Any, n: int, region: int, a: Any, x: Any) -> Any:
    cumulant = gamma_cumulants(special, a, x)
    if region == 0:
        return np.exp(x) * _gamma_weight(special, a, x) * gamma_series(n, cumulant, a, x)
    side = np.where(cumulant(1, 0) + 1.0 / a < 0.0, -1.0, 1.0)
    return (
        -side * _gamma_weight(special, a, x) * gamma_integral(n, region == 2, cumulant, a, x, side)
    )


def gamma_integral(n: int, smooth: bool, cumulant: Derivative, a: Any, x: Any, side: Any) -> Any:
    """The integral over one side of x of the derivative of order n of the density, over
    `gamma_log_weight`'s weight.
    """
    nodes, weights = gauss(32) if smooth else double_exponential()
    distance = _gamma_reach(a, x, side)
    steps = (side * distance)[:, None] * nodes
    column = a[:, None]
    # For large shapes the two terms are large and nearly equal.
    integrand = np.exp((a - x)[:, None] * steps - x[:, None] * _expm1_less_line(steps))

    def along(i: int, j: int) -> Any:
        return cumulant(i, j)[:, None] + (steps if i == 1 else 0.0)

    integrand *= column * bell(n, 0, along) + n * bell(n - 1, 0, along)
    return distance * np.sum(integrand * weights, axis=1)


def _gamma_reach(a: Any, x: Any, side: Any) -> Any:
    """How far, in the logarithm, the integrand reaches from x."""

    def fall(u: Any) -> tuple[Any, Any]:
        more = side * np.expm1(side * u)
        return x * _expm1_less_line(side * u) + side * (x - a) * u, x * more + side * (x - a)

    # For large shapes the start of Newton's method, which halves the distance at first, has to be
    # near.
    near = 1.1 * np.sqrt(3.0 * DROP / x)
    start = np.where(side < 0, (DROP + x) / a, np.log1p((100.0 + 12.0 * np.sqrt(a)) / x))
    return reach(fall, np.where(near < 1.0, np.minimum(near, start), start))


def gamma_series(n: int, cumulant: Any, a: Any, x: Any) -> Any:
    # gamma(a + 1) x**-a P(a, x) = 1 + a sum (-x)**k / (k! (a + k)), for x up to 1.
    total = bell(n, 0, cumulant)
    factor: Any = 1.0
    for k in range(1, 20):
        factor = factor * -x / k

        def along(i: int, j: int, k: int = k) -> Any:
            return cumulant(i, j) + (-1.0) ** i * factorial(i - 1) / (a + k) ** i

        total = total + factor * (a * bell(n, 0, along) + n * bell(n - 1, 0, along)) / (a + k)
    return total


def gamma_density_derivative(special: Any, order: Any, a: Any, x: Any) -> Any:
    """The derivative with respect to a of the density ``x**(a - 1) exp(-x) / gamma(a)``."""
    order, a, x = np.broadcast_arrays(order, a, x)
    direct = np.exp(special.xlogy(a - 1.0, x) - x - special.gammaln(a))
    density = np.where(a < 8.0, direct, a / np.where(x == 0, 1.0, x) * _gamma_weight(special, a, x))
    density = np.where(np.isinf(x) & np.isfinite(a), 0.0, density)
    inside = (a > 0) & (x >= 0) & (density > 0) & (order > 0)
    shape = on_domain(
        lambda n, *v: _density_factor(n, gamma_cumulants(special, *v), v[0]), order, inside, a, x
    )
    return np.where(
        (a > 0) & (x >= 0),
        np.where((order == 0) | (density == 0), density, density * shape),
        np.nan,
    )


def _density_factor(n: int, cumulant: Any, a: Any) -> Any:
    return bell(n, 0, cumulant) + n / a * bell(n - 1, 0, cumulant)


# The incomplete beta function. The order is a number of two digits, those of a and of b.


def beta_log_weight(special: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The logarithm of ``x**a y**b / beta(a, b)`` where y is 1 - x."""
    total = a + b
    direct = (
        special.xlogy(a, x)
        + np.where(x < 0.5, special.xlog1py(b, -x), special.xlogy(b, y))
        - special.betaln(a, b)
    )
    # The exponent is relative to its value at the mode a / (a + b), where the linear terms of the
    # two logarithms cancel.
    off = x * b - a * y
    exponent = a * _log_less_line(x * (total / a), off / a) + b * _log_less_line(
        y * (total / b), -off / b
    )
    factor = _stirling_factor(special, total) / (
        _stirling_factor(special, a) * _stirling_factor(special, b)
    )
    scaled = np.log(np.sqrt(a * (b / total) / (2.0 * np.pi)) * factor) + exponent
    return np.where(total < 8.0, direct, scaled)


def _beta_weight(special: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    return np.exp(beta_log_weight(special, a, b, x, y))


def beta_cumulants(special: Any, a: Any, b: Any, x: Any, y: Any) -> Derivative:
    """The derivatives with respect to a and b of ``log(x**a y**b / beta(a, b))``."""

    def logarithm(t: Any, complement: Any) -> Any:
        return np.where(t < 0.5, np.log(t), np.log1p(-complement))

    def cumulant(i: int, j: int) -> Any:
        s = i + j
        if i and j:
            return (-1.0) ** s * factorial(s - 1) * special.zeta(float(s), a + b)
        shapes, logarithms = ((a, b), (x, y)) if i else ((b, a), (y, x))
        rest = (-1.0) ** (s + 1) * factorial(s - 1) * zeta_difference(special, float(s), *shapes)
        return rest + logarithm(*logarithms) if s == 1 else rest

    return cumulant


def betainc_derivative(special: Any, order: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative with respect to a and b of the regularised incomplete beta function."""
    order, a, b, x = np.broadcast_arrays(order, a, b, x)
    inside = (a > 0) & np.isfinite(a) & (b > 0) & np.isfinite(b) & (x > 0) & (x < 1) & (order > 0)
    code = np.where(inside, 2 * order + (np.minimum(a, b) >= SMOOTH), 0)
    result = on_domain(
        lambda code, *v: _betainc_parts(special, code // 2, bool(code % 2), *v),
        code,
        inside,
        a,
        b,
        x,
    )
    result = np.where((a > 0) & (b > 0) & ((x == 0) | (x == 1)) & (order > 0), 0.0, result)
    return np.where(order == 0, special.betainc(a, b, x), result)


def _betainc_parts(special: Any, order: int, smooth: bool, a: Any, b: Any, x: Any) -> Any:
    n, m = divmod(order, 10)
    y = 1.0 - x
    # The integrand of the first derivative in a changes its sign where log(x) is -excess, that in b
    # where log(y) is.
    signs = [
        sign * np.log(np.expm1(zeta_difference(special, 1.0, *shapes)))
        for sign, shapes, wanted in ((-1.0, (a, b), n), (1.0, (b, a), m))
        if wanted
    ]
    left = np.log(x / y) < sum(signs) / len(signs)
    result = np.empty(x.shape)
    for which, sign, values, orders in (
        (left, 1.0, (b, a, y, x), (m, n)),
        (~left, -1.0, (a, b, x, y), (n, m)),
    ):
        if which.any():
            part = [v[which] for v in values]
            result[which] = (
                sign * _beta_weight(special, *part) * beta_integral(special, orders, smooth, *part)
            )
    return result


def beta_integral(
    special: Any, orders: tuple[int, int], smooth: bool, a: Any, b: Any, x: Any, y: Any
) -> Any:
    """The integral from x to 1 of the derivative of the density, over `beta_log_weight`'s weight;
    in the log odds.
    """
    cumulant = beta_cumulants(special, a, b, x, y)
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


def beta_panels(smooth: bool, a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """How far, in the log odds, the integrand reaches from x, and where there is an end of a panel
    in between.
    """
    distance = _beta_reach(a, b, x, y)
    # Where the shapes are small the integrand has a corner, which has to be an end of a panel.
    corner = np.zeros(x.shape)
    if not smooth:
        corner = np.clip(
            np.log(np.maximum(a, 1.0) / np.maximum(b, 1.0)) - np.log(x / y), 0.0, distance
        )
    return distance, corner


def beta_mass(smooth: bool, a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """At nodes above x by how much the logarithms of the argument and of its complement fall, and
    the weight of the density.
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


def _moved(cumulant: Any, which: Any, p: Any, q: Any) -> Derivative:
    change = {(1, 0): p, (0, 1): q}

    def along(i: int, j: int) -> Any:
        return cumulant(i, j)[which, None] - change.get((i, j), 0.0)

    return along


def _log_changes(steps: Any, x: Any, y: Any, log_x: Any) -> tuple[Any, Any]:
    """By how much log(x) and log(1 - x) fall when the log odds grow by `steps`."""
    near = np.log1p(x * np.expm1(np.minimum(steps, 37.0)))
    if np.max(steps) > 37.0:
        near = np.where(steps > 37.0, np.logaddexp(0.0, steps + log_x), near)
    # That of log(x) is bounded by -log(x), which is lost where y is rounded to 1 and the argument
    # of the logarithm comes near 0.
    fall = -y * np.expm1(-steps)
    return np.where(fall < 0.5, np.log1p(-fall), near - steps), near


def _beta_reach(a: Any, b: Any, x: Any, y: Any) -> Any:
    """How far, in the log odds, the integrand reaches from x."""
    odds, log_x = np.log(x / y), np.log(x)

    def fall(u: Any) -> tuple[Any, Any]:
        p, q = _log_changes(u, x, y, log_x)
        upper = 1.0 / (1.0 + np.exp(-odds - u))
        return a * p + b * q, b * upper - a * (1.0 - upper)

    return reach(fall, (DROP - a * log_x) / b - log_x)


def beta_density_derivative(special: Any, order: Any, a: Any, b: Any, x: Any) -> Any:
    """The derivative with respect to a and b of the density ``x**(a - 1) (1 - x)**(b - 1) / beta(a,
    b)``.
    """
    order, a, b, x = np.broadcast_arrays(order, a, b, x)
    y = 1.0 - x
    direct = np.exp(special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x) - special.betaln(a, b))
    ends = (x == 0) | (x == 1)
    density = np.where(
        (a + b < 8.0) | ends, direct, _beta_weight(special, a, b, x, y) / np.where(ends, 1.0, x * y)
    )
    inside = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)

    def factor(code: int, *values: Any) -> Any:
        return bell(*divmod(code, 10), beta_cumulants(special, *values))

    shape = on_domain(factor, order, inside & (density > 0) & (order > 0), a, b, x, y)
    return np.where(
        inside, np.where((order == 0) | (density == 0), density, density * shape), np.nan
    )
