"""Values of the regularised incomplete gamma functions: SciPy's, and for large shapes the uniform
expansion.

SciPy's series for the lower tail ends after 2,000 terms. From shapes of 2e5 on that is too early
between 4.5 and some 30 standard deviations below the mean: at the shape 1e9 the probability is up
to 80 % too small. The expansion of Temme (DLMF 8.12) has all digits there, and in both tails."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.special.series import log_less_line, polynomial
from varmat.plain_arrays import special
from varmat.typing import Operand, Plain

# From this shape on two terms of the expansion are enough.
LARGE_SHAPE = 1e5
# The coefficients c_0 and c_1 of the expansion as series of eta, DLMF 8.12.9 to 8.12.12. Where the
# probability does not underflow, eta is at most 0.13.
_FIRST = (
    -1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -2.18544851067999216e-6,
    -1.85406221071515996e-6, 8.29671134095308601e-7,
)  # fmt: skip
_SECOND = (-1 / 540, -1 / 288, 1 / 378, -77 / 77760)


def _expansion(upper: bool, a: Plain, x: Plain) -> Plain:
    """Compute the function for large shapes and finite arguments."""
    less_one = (x - a) / a
    half_square = np.minimum(-log_less_line(x / a, less_one), 0.5)  # of eta
    exponent = a * half_square
    eta = np.sqrt(2.0 * half_square)
    eta = np.where(less_one < 0.0, -eta, eta)
    remainder = (polynomial(eta, _FIRST) + polynomial(eta, _SECOND) / a) / np.sqrt(
        2.0 * math.pi * a
    )
    # The tail on the side of x on which the mean is not.
    tail = np.exp(-exponent) * (
        0.5 * special.erfcx(np.sqrt(exponent)) + np.where(less_one < 0.0, -remainder, remainder)
    )
    return np.where((less_one < 0.0) == upper, 1.0 - tail, tail)


def incomplete_gamma(upper: bool, a: Plain, x: Plain) -> Plain:
    """P(a, x), or Q(a, x) if `upper`."""
    value = (special.gammaincc if upper else special.gammainc)(a, x)
    if type(a) is float:
        if a < LARGE_SHAPE:
            return value
    elif not np.maximum.reduce(a, None, initial=0.0) >= LARGE_SHAPE:
        return value
    with np.errstate(all="ignore"):
        expanded = _expansion(upper, np.asarray(a), x)
    return np.where(_is_large(a, x), expanded, value)[()]


def incomplete_gamma_straight(upper: bool, a: Operand, x: Operand) -> Operand:
    """Compute the same function without branching on the values."""
    value = (special.gammaincc if upper else special.gammainc)(a, x)
    return np.where(_is_large(a, x), _expansion(upper, a, x), value)


def _is_large(a: Operand, x: Operand) -> Operand:
    # At the ends of the range SciPy has the limits.
    return (a >= LARGE_SHAPE) & (a < math.inf) & (x > 0.0) & (x < math.inf)
