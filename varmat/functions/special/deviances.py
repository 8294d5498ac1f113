"""Deviances of counts: how much less likely a count is than it is at best, in logarithms.

A log mass of a count is a part without parameters, which Stirling's formula gives, less the
deviance from the parameters at which the count is most likely: Loader (2000), Fast and accurate
computation of binomial probabilities. The terms of a deviance are of the size of the count, the
deviance itself, near its minimum at 0, is of the size of one. It is computed from the difference of
the count and its mean, and that difference with twice the digits. That of a Poisson count is
`kl_div`."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from varmat.functions.rows import formula, row
from varmat.functions.special.entropies_and_losses import kl_div_of_numbers, kl_div_series
from varmat.functions.special.logistic_functions import softplus_of_number
from varmat.functions.special.series import log_less_line
from varmat.plain_arrays import special
from varmat.typing import Function, Plain

# Up to this count the direct formula of Python's floats keeps twelve digits.
SMALL = 1000.0
# Up to this size of t, exp(t) - 1 - t needs its series.
NEAR = 0.25
_EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(2, 16))


def _product(x: Plain, y: Plain) -> tuple[Plain, Plain]:
    """Compute the product of numbers and its rounding error: Dekker (1971), Numerische Mathematik
    18, 224-242.
    """
    product = x * y
    (x_high, x_low), (y_high, y_low) = (_halves(v) for v in (x, y))
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _halves(x: Plain) -> tuple[Plain, Plain]:
    """Split a number into the sum of two of half the digits."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


def _sum(*terms: Plain) -> Plain:
    """Sum numbers, rounded once: Ogita, Rump, Oishi (2005), SIAM Journal on Scientific Computing
    26, 1955-1988.
    """
    total, remainder = terms[0], 0.0
    for x in terms[1:]:
        before, total = total, total + x
        part = total - before
        remainder = remainder + ((before - (total - part)) + (x - part))
    return total + remainder


# The logarithm of 2 in two parts; the first has 42 bits, so that its product with an exponent is
# exact.
_LN2 = (0.6931471805598903, 5.497923018708371e-14)
_GRID = 128.0


@cache
def _logarithms() -> tuple[Plain, Plain]:
    """Compute the logarithms of 0, 1 / 128, 2 / 128, ..., 182 / 128 (the first few are not used) in
    two parts.
    """
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 40
        exact = [(Decimal(max(k, 1)) / 128).ln() for k in range(183)]
        high = [float(x) for x in exact]
        return np.array(high), np.array(
            [float(x - Decimal(h)) for x, h in zip(exact, high, strict=True)]
        )


def _log_parts(x: Plain) -> tuple[Plain, ...]:
    """Compute the logarithm of positive numbers as a sum of parts, largest first, with twice the
    digits of a float.
    """
    mantissa, exponent = np.frexp(x)
    low = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(low, 2.0 * mantissa, mantissa), exponent - low
    place = np.rint(_GRID * mantissa)
    main, (high, remainder) = (
        place / _GRID,
        (table.take(place.astype(np.intp)) for table in _logarithms()),
    )
    # log(m / c) = 2 artanh(q), q = (m - c) / (m + c); the numerator is exact.
    above, below = mantissa - main, mantissa + main
    lost = main - (below - mantissa)
    q = above / below
    product, error = _product(q, below)
    correction = (((above - product) - error) - q * lost) / below
    square = q * q
    tail = 2.0 * q * square * (1.0 / 3.0 + square * (0.2 + square * (1.0 / 7.0 + square / 9.0)))
    return exponent * _LN2[0], high, 2.0 * q, exponent * _LN2[1], remainder, 2.0 * correction, tail


def _negative(parts: tuple[Plain, ...]) -> tuple[Plain, ...]:
    return tuple(-x for x in parts)


def _exponential_excess(t: Plain) -> Plain:
    """``exp(t) - 1 - t``."""
    near = np.where(np.abs(t) < NEAR, t, 0.0)
    series: Plain = 0.0
    for c in reversed(_EXPONENTIAL):
        series = series * near + c
    return np.where(np.abs(t) < NEAR, near * near * series, np.expm1(t) - t)


def _softplus(x: Plain) -> Plain:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _of_arrays(function: Function) -> Plain:
    """Make a formula whose numbers are NumPy's, because Python's raise where arrays have
    infinities.
    """
    return formula(lambda *values: function(*(np.asarray(v)[()] for v in values)))


def _needs(condition: bool) -> None:
    """Raise for unusual numbers, which the arrays then compute."""
    if not condition:
        raise ArithmeticError


def _poisson_log(n: Plain, alpha: Plain) -> Plain:
    positive = np.where((n > 0.0) & (n < np.inf), n, 1.0)
    t = _sum(alpha, *_negative(_log_parts(positive)))
    value = n * _exponential_excess(t)
    return np.where(n > 0.0, np.where(np.isnan(value), np.inf, value), np.exp(alpha))


def _poisson_log_of_numbers(n: float, alpha: float) -> float:
    _needs(n <= SMALL and -700.0 < alpha < 700.0)
    mean = math.exp(alpha)
    return n * (math.log(n) - alpha) - n + mean if n else mean


def _binomial(n: Plain, total: Plain, theta: Plain) -> Plain:
    m, remainder = total - n, 1.0 - theta
    mean, error = _product(total, theta)
    difference = (n - mean) - error
    return _part(n, mean, difference) + _part(m, total * remainder, -difference)


def _part(x: Plain, y: Plain, difference: Plain) -> Plain:
    """``x log(x / y) - x + y``, given also ``x - y``."""
    v = difference / (x + y)
    return np.where(
        (np.abs(v) < 0.1) & (y > 0.0), kl_div_series(x, v, difference), special.kl_div(x, y)
    )


def _binomial_of_numbers(n: float, total: float, theta: float) -> float:
    _needs(0.0 < total <= SMALL and 0.0 < theta < 1.0)
    return kl_div_of_numbers(n, total * theta) + kl_div_of_numbers(total - n, total * (1.0 - theta))


def _binomial_logit(n: Plain, total: Plain, alpha: Plain) -> Plain:
    m = total - n
    inside = (n > 0.0) & (m > 0.0) & (total < np.inf)
    more, less = np.where(inside, np.maximum(n, m), 1.0), np.where(inside, np.minimum(n, m), 1.0)
    # Computed in the log odds of the less frequent outcome. With its best probability p, and the
    # distance t from the best log odds, the deviance of each trial is log(1 + p (exp(t) - 1)) - p
    # t, written as a sum of two parts of the size of t**2.
    t = _sum(np.where(n <= m, alpha, -alpha), *_negative(_log_parts(less)), *_log_parts(more))
    near = np.where(np.abs(t) < NEAR, t, 0.0)
    p = less / (less + more)
    u = p * np.expm1(near)
    close = total * (p * _exponential_excess(near) + log_less_line(1.0 + u, u))
    fewer = np.minimum(n, m)
    best = special.xlogy(fewer, fewer / total) + special.xlog1py(np.maximum(n, m), -fewer / total)
    far = best + n * _softplus(-alpha) + m * _softplus(alpha)
    return np.where(total > 0.0, np.where(inside & (np.abs(t) < NEAR), close, far), 0.0)


def _binomial_logit_of_numbers(n: float, total: float, alpha: float) -> float:
    _needs(total <= SMALL and abs(alpha) < math.inf)
    m = total - n
    return (n * (math.log(n / total) + softplus_of_number(-alpha)) if n else 0.0) + (
        m * (math.log(m / total) + softplus_of_number(alpha)) if m else 0.0
    )


def _neg_binomial(n: Plain, mu: Plain, phi: Plain, difference: Plain = None) -> Plain:
    # The deviance is n log(1 + a) - phi log(1 + b); near the minimum the linear parts of the two
    # logarithms, which cancel, are left out.
    d = n - mu if difference is None else difference
    a, b = phi / (n + phi) * (d / mu), d / (mu + phi)
    gap = phi * d / (n + phi) * (phi * d / (mu + phi) / mu)
    close = gap + n * log_less_line(1.0 + a, a) - phi * log_less_line(1.0 + b, b)
    first = np.where(np.abs(a) < 0.5, np.log1p(a), np.log(n / mu * ((mu + phi) / (n + phi))))
    second = np.where(np.abs(b) < 0.5, np.log1p(b), np.log((n + phi) / (mu + phi)))
    far = np.where(n > 0.0, n * first, 0.0) - phi * second
    return np.where((np.abs(a) < NEAR) & (np.abs(b) < NEAR), close, far)


def _neg_binomial_of_numbers(n: float, mu: float, phi: float) -> float:
    _needs(n <= SMALL)
    d = n - mu
    a, b = phi / (n + phi) * (d / mu), d / (mu + phi)
    first = (
        (math.log1p(a) if abs(a) < 0.5 else math.log(n / mu * ((mu + phi) / (n + phi))))
        if n
        else 0.0
    )
    return n * first - phi * (math.log1p(b) if abs(b) < 0.5 else math.log((n + phi) / (mu + phi)))


def _neg_binomial_log(n: Plain, eta: Plain, phi: Plain) -> Plain:
    positive = np.where((n > 0.0) & (n < np.inf), n, 1.0)
    t = _sum(eta, *_negative(_log_parts(positive)))
    near = (np.abs(t) < NEAR) & (n > 0.0)
    t = np.where(near, t, 0.0)
    close = _neg_binomial(positive, positive * np.exp(t), phi, -positive * np.expm1(t))
    u = eta - np.log(phi)
    first = np.where(n > 0.0, n * (_softplus(-u) - np.log1p(phi / positive)), 0.0)
    # The quotient of a count and a tiny precision may overflow.
    remainder = np.where(n > phi, np.log(n + phi) - np.log(phi), np.log1p(np.minimum(n / phi, 1.0)))
    return np.where(near, close, first + phi * (_softplus(u) - remainder))


def _neg_binomial_log_of_numbers(n: float, eta: float, phi: float) -> float:
    _needs(n <= SMALL and abs(eta) < 300.0 and phi > 0.0)
    return _neg_binomial_of_numbers(n, math.exp(eta), phi)


_COUNT = ("the count x",)
_COUNTS = ("the count x", "the number of trials y")
_ABOUT = "Half the deviance of a count x from "


# fmt: off
poisson_log_deviance = row("poisson_log_deviance", (None, "g * (exp(y) - x)"),
    _ABOUT + "a Poisson distribution of the log rate y: ``x log(x) - x y - x + exp(y)`` without "
    "cancellation",
    _poisson_log_of_numbers, "(x * log(x) if x else 0) - x * y - x + exp(y)",
    ((3.0, 0.9), (0.0, -2.0), (40.0, 3.6), (1e4, 9.2), (5e15, 36.15)), -0.540397,
    source="Loader (2000), Fast and accurate computation of binomial probabilities",
    domain="x >= 0", constant=_COUNT, ufunc=_of_arrays(_poisson_log), module=__name__)
binomial_deviance = row("binomial_deviance", (None, None, "g * ((y - x) / (1.0 - z) - x / z)"),
    _ABOUT + "a binomial distribution of y trials and probability z: ``x log(x / (y z)) + "
    "(y - x) log((y - x) / (y (1 - z)))`` without cancellation",
    _binomial_of_numbers,
    "(x * log(x / (y * z)) if x else 0) + ((y - x) * log((y - x) / (y * (1 - z))) if y > x else "
    "0)", ((3.0, 10.0, 0.35), (0.0, 10.0, 0.3), (7.0, 7.0, 0.3), (400.0, 2e3, 0.21),
    (5e9, 1.5e10, 0.35)), 2.1978,
    source="Loader (2000), Fast and accurate computation of binomial probabilities",
    domain="0 <= x <= y, 0 < z < 1", constant=_COUNTS, ufunc=_of_arrays(_binomial), module=__name__)
binomial_logit_deviance = row("binomial_logit_deviance", (None, None, "g * (y * expit(z) - x)"),
    _ABOUT + "a binomial distribution of y trials and the log odds z, without cancellation",
    _binomial_logit_of_numbers,
    "(x * log(x / y) if x else 0) + ((y - x) * log((y - x) / y) if y > x else 0) + x * "
    "log1p(exp(-z)) + (y - x) * log1p(exp(z))", ((3.0, 10.0, 0.35), (0.0, 10.0, 0.3),
    (7.0, 7.0, 0.3), (400.0, 2e3, -1.38), (5e9, 1.5e10, -0.6)), 2.86618,
    source="Loader (2000), Fast and accurate computation of binomial probabilities",
    domain="0 <= x <= y", constant=_COUNTS, ufunc=_of_arrays(_binomial_logit), module=__name__)
neg_binomial_2_deviance = row("neg_binomial_2_deviance",
    (None, "g * z / y * ((y - x) / (y + z))", "g * kl_div(1.0, (x + z) / (y + z))"),
    _ABOUT + "a negative binomial distribution of mean y and precision z: ``x log(x / y) - "
    "(x + z) log((x + z) / (y + z))`` without cancellation",
    _neg_binomial_of_numbers, "(x * log(x / y) if x else 0) - (x + z) * log((x + z) / (y + z))",
    ((3.0, 2.5, 1.3), (0.0, 1e-3, 0.5), (2e3, 2100.0, 12.0), (1e10, 1.3e10, 7.0)), -0.0684211,
    source="Loader (2000), Fast and accurate computation of binomial probabilities",
    domain="x >= 0, y > 0, z > 0", constant=_COUNT, ufunc=_of_arrays(_neg_binomial),
    module=__name__)
neg_binomial_2_log_deviance = row("neg_binomial_2_log_deviance", (None,
    "g * (z * expit(y - log(z)) - x * expit(log(z) - y))",
    "g * kl_div(1.0, (x + z) / (exp(y) + z))"),
    _ABOUT + "a negative binomial distribution of the log mean y and precision z, without "
    "cancellation",
    _neg_binomial_log_of_numbers,
    "(x * log(x) if x else 0) - x * y - (x + z) * log((x + z) / (exp(y) + z))",
    ((3.0, 0.9, 1.3), (0.0, -7.0, 0.5), (2e3, 7.7, 12.0), (1e10, 23.3, 7.0)), -0.186859,
    source="Loader (2000), Fast and accurate computation of binomial probabilities",
    domain="x >= 0, z > 0", constant=_COUNT, ufunc=_of_arrays(_neg_binomial_log), module=__name__)
# fmt: on
