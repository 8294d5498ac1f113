"""Series for functions where the direct formulas cancel or overflow."""

from __future__ import annotations

from math import factorial

import numpy as np

from varmat.plain_arrays import special
from varmat.typing import Operand

# B_2k / (2 k)!, with the Bernoulli numbers B.
EULER_MACLAURIN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
)
# The coefficients of the asymptotic series of log gamma, B_2k / (2 k (2 k - 1)), and of the digamma
# function, B_2k / (2 k).
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# From this argument on these series have all digits.
ASYMPTOTIC = 12.0
# Of log(1 + u) - u, see `line_series`: up to 0.25 all of them are needed, for u up to 0.1 five.
ODD = tuple(2.0 / k for k in range(3, 29, 2))
_EXPONENTIAL = tuple(1.0 / factorial(k) for k in range(2, 17))


def polynomial(x: Operand, coefficients: tuple[float, ...]) -> Operand:
    """Compute the sum of ``coefficients[k] * x**k``."""
    total: Operand = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def line_series(s: Operand, u: Operand, terms: tuple[float, ...] = ODD) -> Operand:
    """``log(1 + u) - u`` where u is near 0, given ``s = u / (2 + u)``."""
    # log(1 + u) = 2 artanh(s), and u = 2 s + s u.
    square = s * s
    return s * (square * polynomial(square, terms) - u)


def log_less_line(ratio: Operand, less_one: Operand) -> Operand:
    """``log(ratio) - (ratio - 1)``, given ``ratio - 1`` as well."""
    s = less_one / (2.0 + less_one)
    return np.where(np.abs(s) < 0.25, line_series(s, less_one), np.log(ratio) - less_one)


def expm1_less_line(u: Operand) -> Operand:
    """``exp(u) - 1 - u``."""
    near = np.abs(u) < 0.5
    v = np.where(near, u, 0.0)
    return np.where(near, v * v * polynomial(v, _EXPONENTIAL), np.expm1(u) - u)


def stirling_factor(a: Operand) -> Operand:
    """``gamma(a)`` over Stirling's approximation ``sqrt(2 pi / a) (a / e)**a``."""
    large, small = np.maximum(a, ASYMPTOTIC), np.minimum(a, ASYMPTOTIC)
    direct = special.gamma(small) * np.exp(small) * small ** (0.5 - small) / np.sqrt(2.0 * np.pi)
    return np.where(a > ASYMPTOTIC, np.exp(polynomial(large**-2, STIRLING) / large), direct)
