"""What Stirling's formula leaves of the gamma function: logarithms of factorials without their
large parts.

In a probability mass, the logarithms of a factorial and of the power next to it are both of the
size ``n log(n)``, while their difference is of the size of ``log(n)``. Computing this difference
directly keeps the digits of masses of large counts: Loader (2000), Fast and accurate computation of
binomial probabilities."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.rows import formula, row
from varmat.functions.special.series import (
    ASYMPTOTIC,
    DIGAMMA,
    EULER_MACLAURIN,
    STIRLING,
    polynomial,
)
from varmat.plain_arrays import special
from varmat.typing import Plain

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _tail(x: Plain) -> Plain:
    """Sum the terms after ``0.5 log(2 pi / x)`` of Stirling's series, from ASYMPTOTIC on."""
    return polynomial(1.0 / (x * x), STIRLING) / x


def _log_gamma_excess(x: Plain) -> Plain:
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    direct = special.gammaln(near) - near * (np.log(near) - 1.0)
    return np.where(x < ASYMPTOTIC, direct, HALF_LOG_TWO_PI - 0.5 * np.log(far) + _tail(far))


def _log_gamma_excess_of_number(x: float) -> float:
    if x < ASYMPTOTIC:
        return math.lgamma(x) - x * (math.log(x) - 1.0)
    return HALF_LOG_TWO_PI - 0.5 * math.log(x) + float(_tail(x))


def _log_factorial_excess(x: Plain) -> Plain:
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    direct = special.gammaln(near + 1.0) - special.xlogy(near, near) + near
    return np.where(x < ASYMPTOTIC, direct, HALF_LOG_TWO_PI + 0.5 * np.log(far) + _tail(far))


def _log_factorial_excess_of_number(x: float) -> float:
    if x < ASYMPTOTIC:
        return math.lgamma(x + 1.0) - (x * (math.log(x) - 1.0) if x else 0.0)
    return HALF_LOG_TWO_PI + 0.5 * math.log(x) + float(_tail(x))


def _derivative(n: Plain, x: Plain) -> Plain:
    """Compute the derivative of order n of `log_gamma_excess`. From order 2 on it is the difference
    of Hurwitz' zeta function and a power.
    """
    order, near, far = np.maximum(n, 2.0), np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    direct = special.zeta(order, near) - near ** (1.0 - order) / (order - 1.0)
    # That power is the first term of the Euler-Maclaurin series of the zeta function, so it is left
    # out.
    series = 0.5 * far**-order
    rising: Plain = order
    for k, coefficient in enumerate(EULER_MACLAURIN):
        series = series + coefficient * rising * far ** -(order + 2.0 * k + 1.0)
        rising = rising * (order + 2.0 * k + 1.0) * (order + 2.0 * k + 2.0)
    half = 0.5 * order
    size = special.gamma(order) * np.where(np.floor(half) == half, 1.0, -1.0)
    higher = size * np.where(x < ASYMPTOTIC, direct, series)
    return np.where(n == 0.0, _log_gamma_excess(x), np.where(n == 1.0, _digamma_excess(x), higher))


def _digamma_excess(x: Plain) -> Plain:
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    inverse = 1.0 / far
    series = -inverse * (0.5 + inverse * polynomial(inverse * inverse, DIGAMMA))
    return np.where(x < ASYMPTOTIC, special.psi(near) - np.log(near), series)


# fmt: off
log_gamma_excess = row("log_gamma_excess", "g * digamma_excess(x)",
    "What Stirling's formula leaves of the log gamma function: ``gammaln(x) - x log(x) + x`` "
    "without cancellation",
    _log_gamma_excess_of_number, "log(gamma(x)) - x * log(x) + x",
    (0.5, 1e-10, 3.7, 11.9, 12.0, 150.0, 1e8, 1e15), -1.27036,
    source="DLMF 5.11(i)", domain="x > 0", ufunc=formula(_log_gamma_excess), module=__name__)
digamma_excess = row("digamma_excess", "g * log_gamma_excess_derivative(2.0, x)",
    "The derivative of `log_gamma_excess`: ``digamma(x) - log(x)`` without cancellation",
    None, "psi(0, x) - log(x)", (0.5, 1e-10, 3.7, 11.9, 12.0, 150.0, 1e8, 1e15), 2.9348,
    source="DLMF 5.11(i)", domain="x > 0", ufunc=formula(_digamma_excess), module=__name__)
log_gamma_excess_derivative = row("log_gamma_excess_derivative",
    (None, "g * log_gamma_excess_derivative(x + 1.0, y)"),
    "Derivative of order x of `log_gamma_excess`, at y: ``digamma(y) - log(y)`` for x = 1",
    None, "psi(int(x) - 1, y) - (log(y) if x == 1 else (-1)**int(x) * factorial(x - 2) * y**(1 - "
    "int(x)))", ((2, 3.7), (1, 150.0), (2, 12.0), (3, 11.9), (2, 1e6)), -0.0223493,
    source="DLMF 5.11(i), 5.15", domain="x = 0, 1, 2, ..., y > 0", constant=("the order x",),
    ufunc=formula(_derivative), module=__name__)
log_factorial_excess = row("log_factorial_excess", "g * (digamma_excess(x) + 1.0 / x)",
    "What Stirling's formula leaves of the logarithm of a factorial: ``gammaln(x + 1) - x log(x) + "
    "x``, 0 at 0",
    _log_factorial_excess_of_number, "log(gamma(x + 1)) - x * log(x) + x",
    (0.5, 3.0, 12.0, 150.0, 1e10), 0.729637,
    source="DLMF 5.11(i)", domain="x >= 0", ufunc=formula(_log_factorial_excess), module=__name__)
# fmt: on
