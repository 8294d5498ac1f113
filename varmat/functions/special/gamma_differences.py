"""Differences of zeta, digamma and log gamma functions without cancellation, and the beta function
and the binomial coefficient, which are made of them: the algorithms.

The rows that call them are in `gamma_functions` and `zeta_functions`."""

from __future__ import annotations

from math import gamma, inf, lgamma, log, log1p

import numpy as np

from varmat.functions.special.series import ASYMPTOTIC, DIGAMMA, EULER_MACLAURIN, STIRLING
from varmat.plain_arrays import special
from varmat.typing import Operand

# From here on adding one to a float may not change it.
_COUNTED = 1e15
# Between these bounds of the larger argument the beta function comes from Stirling's series. Below,
# gamma functions are exact enough; above, the terms overflow.
_FAR, _HUGE = 100.0, 1e100
_FAR_TERMS = STIRLING[:4]


def zeta_difference(x: Operand, y: Operand, z: Operand) -> Operand:
    """``zeta(x, y) - zeta(x, y + z)``, for x = 1 ``psi(y + z) - psi(y)``, without cancellation."""
    result = _zeta_difference_direct(x, y, z)
    far = np.minimum(y, y + z) >= 15.0
    close = (np.abs(z) < 0.02 * y) & ~far & (z != 0)
    if np.any(far):
        result = np.where(
            far, _zeta_difference_far(x, np.where(far, y, 15.0), np.where(far, z, 1.0)), result
        )
    if np.any(close):
        # The other elements get harmless arguments: for -1e8 SciPy would sum 1e8 terms.
        half = 0.5 * np.where(close, z, 0.0)
        near = np.where(
            close, _zeta_difference_close(x, np.where(close, y, 1.0) + half, half), result
        )
        # Next to the pole at zero the zeta functions of the series overflow; the difference is then
        # that of the first terms.
        result = np.where(
            close & (y < 1e-20), -np.power(y, -x) * np.expm1(-x * np.log1p(z / y)), near
        )
    return result


def _zeta_difference_direct(x: Operand, y: Operand, z: Operand) -> Operand:
    if np.all(x == 1.0):
        return special.psi(y + z) - special.psi(y)
    return np.where(
        x == 1.0, special.psi(y + z) - special.psi(y), special.zeta(x, y) - special.zeta(x, y + z)
    )


def _zeta_difference_far(x: Operand, y: Operand, z: Operand) -> Operand:
    # The Euler-Maclaurin series of the two zeta functions, subtracted term by term. With L = log(1
    # + z / y) the difference of two powers is y**-p (1 - exp(-p L)). See Johansson (2015),
    # Numerical Algorithms 69, 253-270.
    log_ratio = np.log1p(z / y)
    return _integral(x, y, log_ratio) + _zeta_excess_far(x, y, log_ratio)


def _power_difference(p: Operand, y: Operand, log_ratio: Operand) -> Operand:
    return -(y**-p) * np.expm1(-p * log_ratio)


def _integral(x: Operand, y: Operand, log_ratio: Operand) -> Operand:
    """Compute the first term of the series: the integral from y to y + z of ``t**-x``."""
    remainder = np.where(x == 1.0, 1.0, x - 1.0)
    return np.where(x == 1.0, log_ratio, _power_difference(x - 1.0, y, log_ratio) / remainder)


def _zeta_excess_far(x: Operand, y: Operand, log_ratio: Operand) -> Operand:
    """Sum the other terms."""
    total = 0.5 * _power_difference(x, y, log_ratio)
    rising: Operand = x
    for k, coefficient in enumerate(EULER_MACLAURIN):
        p = x + 2.0 * k + 1.0
        total = total + coefficient * rising * _power_difference(p, y, log_ratio)
        rising = rising * p * (p + 1.0)
    return total


def zeta_excess_difference(x: Operand, y: Operand, z: Operand) -> Operand:
    """`zeta_difference` less the integral from y to y + z of ``t**-x``, for z >= 0: for x = 1
    ``psi(y + z) - psi(y) - log(1 + z / y)``.
    """
    near, far = np.minimum(y, 15.0), np.maximum(y, 15.0)
    direct = zeta_difference(x, near, z) - _integral(x, near, np.log1p(z / near))
    return np.where(y < 15.0, direct, _zeta_excess_far(x, far, np.log1p(z / far)))


def digamma_excess_far(y: Operand, z: Operand) -> Operand:
    """``psi(y + z) - psi(y) - log(1 + z / y)`` from `ASYMPTOTIC` on, where all its terms are
    small: numbers or arrays.
    """
    a, b = 1.0 / (y + z), 1.0 / y
    u, v = a * a, b * b
    powers, tail, remainder = 1.0, DIGAMMA[0], v
    for c in DIGAMMA[1:]:  # u**k - v**k is u - v times the sum of all products of k - 1 of them
        powers = powers * u + remainder
        remainder = remainder * v
        tail = tail + c * powers
    ratio = z * a
    return 0.5 * ratio * b + ratio * (1.0 + y * a) * v * tail


def _zeta_difference_close(x: Operand, middle: Operand, half: Operand) -> Operand:
    # The Taylor series around the middle of the two arguments; only the odd terms remain.
    total: Operand = 0.0
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


def zeta_difference_straight(x: Operand, y: Operand, z: Operand) -> Operand:
    """`zeta_difference` for x = 1, in one formula for all positive arguments: that of
    `zeta_difference_of_numbers`.
    """
    if not isinstance(x, float) or x != 1.0:
        raise TypeError("only differences of digamma functions have one formula")
    near = np.minimum(y, y + z) < ASYMPTOTIC
    steps = digamma_steps(np.where(near, y, 1.0), z)
    y = np.where(near, y + ASYMPTOTIC, y)
    return np.where(near, steps, 0.0) + np.log1p(z / y) + digamma_excess_far(y, z)


def digamma_steps(y: Operand, z: Operand) -> Operand:
    """Compute how much greater ``psi(y + z) - psi(y)`` is than where y is `ASYMPTOTIC` more."""
    return sum(z / (y + k + z) / (y + k) for k in range(int(ASYMPTOTIC)))


def zeta_difference_of_numbers(x: float, y: float, z: float) -> float:
    """`zeta_difference` of Python floats with x = 1. For anything else it raises, and the arrays
    compute it.
    """
    if not (x == 1.0 and 0.0 < y < inf and 0.0 < y + z < inf) or y + z < ASYMPTOTIC < _COUNTED < y:
        raise ArithmeticError
    total = 0.0
    while min(y, y + z) < ASYMPTOTIC:
        total += z / (y + z) / y  # the product of the two may overflow or underflow
        y += 1.0
    return total + log1p(z / y) + float(digamma_excess_far(y, z))


def log_rising(x: Operand, y: Operand) -> Operand:
    """``gammaln(x + y) - gammaln(x)`` without cancellation."""
    # Python's floats raise where NumPy's become infinite
    x, y = (np.float64(v) if type(v) is float else v for v in (x, y))
    near = np.minimum(x, x + y) < ASYMPTOTIC
    if not np.any(near):
        result = _log_rising_far(x, y)
    else:
        start = np.where(near, x, 1.0)
        steps = sum(np.log1p(y / (start + k)) for k in range(int(ASYMPTOTIC)))
        result = _log_rising_far(np.where(near, x + ASYMPTOTIC, x), y) - np.where(near, steps, 0.0)
    infinite = (x == inf) | ((y == inf) & (x > 0) & (x < inf))
    if not np.any(infinite):
        return result
    # The limit is the same as for x**y if x is infinite, and as for gamma(y) if y is infinite.
    return np.where(infinite, np.where(y == 0, 0.0, np.where(y == -inf, np.nan, y * inf)), result)


def log_rising_of_numbers(x: float, y: float) -> float:
    """`log_rising` of Python floats. For unusual ones it raises, and the arrays compute it."""
    if not (0.0 < x < inf and 0.0 < x + y < inf) or x + y < ASYMPTOTIC < _COUNTED < x:
        raise ArithmeticError
    total = 0.0
    while min(x, x + y) < ASYMPTOTIC:
        total -= log1p(y / x)
        x += 1.0
    return total + float(_log_rising_far(x, y))


def _log_rising_far(x: Operand, y: Operand, terms: tuple[float, ...] = STIRLING) -> Operand:
    # Stirling's series at x + y less that at x. In the difference of the tails, a**m - b**m is a -
    # b times the sum of all products of m - 1 factors a and b.
    a, b = 1.0 / (x + y), 1.0 / x
    powers, remainder, tail = 1.0, 1.0, terms[0]
    for d in terms[1:]:
        for _ in range(2):
            remainder = remainder * b
            powers = powers * a + remainder
        tail = tail + d * powers
    if type(x) is float:
        return (x - 0.5) * log1p(y / x) + y * (log(x + y) - 1.0) - y * a * b * tail
    return (x - 0.5) * np.log1p(y / x) + y * (np.log(x + y) - 1.0) - y * a * b * tail


# The beta function and the binomial coefficient. SciPy loses up to nine digits where it subtracts
# log gamma functions.


def _far(x: Operand, y: Operand) -> Operand:
    large = np.maximum(x, y)
    far = large > _FAR
    return far & (large < _HUGE) & (np.minimum(x, y) > 0) if far.any() else far


def log_beta(x: Operand, y: Operand) -> Operand:
    """`betaln`, with all digits also where one argument is large."""
    far, result = _far(x, y), special.betaln(x, y)
    if not far.any():
        return result
    small, large = np.where(far, np.minimum(x, y), 1.0), np.where(far, np.maximum(x, y), _FAR)
    return np.where(
        far, special.gammaln(small) - _log_rising_far(large, small, _FAR_TERMS), result
    )[()]


def log_beta_of_numbers(x: float, y: float) -> float:
    """`log_beta` of Python floats. For unusual ones it raises, and the arrays compute it."""
    if not (0.0 < x < _HUGE and 0.0 < y < _HUGE):
        raise ArithmeticError
    small, large = min(x, y), max(x, y)
    if large <= _FAR:
        return log(gamma(small) * (gamma(large) / gamma(x + y)))
    return lgamma(small) - float(_log_rising_far(large, small, _FAR_TERMS))


def beta(x: Operand, y: Operand) -> Operand:
    """Compute the beta function, with all digits also where one argument is large."""
    far, result = _far(x, y), special.beta(x, y)
    return np.where(far, np.exp(log_beta(x, y)), result)[()] if far.any() else result


def binomial(x: Operand, y: Operand) -> Operand:
    """Compute the binomial coefficient, with all digits also where `x` is large."""
    # SciPy multiplies, exactly enough, if there are few factors.
    factors = np.where(y == np.rint(y), np.where(x == np.rint(x), np.minimum(y, x - y), y), np.inf)
    far, result = _far(x - y + 1.0, y + 1.0) & (factors >= 20.0), special.binom(x, y)
    return np.where(far, np.exp(log_binomial(x, y)), result)[()] if far.any() else result


def log_binomial(x: Operand, y: Operand) -> Operand:
    """Compute the logarithm of the binomial coefficient."""
    return -np.log1p(x) - log_beta(x - y + 1.0, y + 1.0)
