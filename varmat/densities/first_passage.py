"""The density of the time at which Brownian motion between two boundaries reaches the upper one,
and its derivatives.

The density of the time u at which Brownian motion that starts at b in (0, 1) leaves through 1 has
two series [1]_: over images,

    f(u, b) = (2 pi u**3)**(-1/2) sum over odd m of (m - b) exp(-(m - b)**2 / (2 u)),

which is quick for small times, and over eigenfunctions,

    f(u, b) = pi sum over k >= 1 of (-1)**(k + 1) k exp(-k**2 pi**2 u / 2) sin(k pi b),

which is quick for large times. The density satisfies the heat equation, df/du = d2f/db2 / 2, so the
derivatives of log f need only ratios of derivatives in b to f, and the derivatives of a ratio are
further ratios. The leading exponential is left out of the sums.

References
----------
.. [1] D. J. Navarro and I. G. Fuss, "Fast and accurate calculations for first-passage times in
       Wiener diffusion models", Journal of Mathematical Psychology 53 (2009), 222-230.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.core.elementwise import new_row
from varmat.functions.rows import formula
from varmat.typing import Operand, Result

# Up to SHORT_TIME five or six images are summed, later FUNCTIONS eigenfunctions. The rest is less
# than 1e-17 of the sum, and of the sums for derivatives up to the fourth.
SHORT_TIME, FUNCTIONS = 0.2, 10
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _hermite(n: int, z: Operand) -> list[Result]:
    """Compute the Hermite polynomials for the weight exp(-z**2 / 2), up to the degree n."""
    result = [np.ones_like(z), z]
    for k in range(1, n):
        result.append(z * result[k] - k * result[k - 1])
    return result


# Two images lie at the same distance from a boundary. With an odd polynomial they nearly cancel for
# a start next to the boundary, so their difference is taken term by term.
def _pair(degree: int, centre: float, step: Operand, root: Operand) -> Result:
    """Compute He(z - s) -+ He(z + s) exp(-2 z s), minus for odd degrees, with z = centre / root and
    s = step / root.
    """
    z, s = centre / root, step / root
    above = _hermite(degree, z + s)[degree]
    if degree % 2 == 0:
        return _hermite(degree, z - s)[degree] + above * np.exp(-2.0 * z * s)
    at_centre = _hermite(degree, z)
    difference = -2.0 * sum(
        math.comb(degree, j) * s**j * at_centre[degree - j] for j in range(1, degree + 1, 2)
    )
    return difference - above * np.expm1(-2.0 * z * s)


def _by_images(n: int, u: Operand, b: Operand) -> Result:
    """Compute the derivative of order n with respect to b, by images, without a factor common to
    all orders.
    """
    total, root, is_near = np.empty(u.shape), np.sqrt(u), b > 0.5
    for here, function in ((~is_near, _images_around_zero), (is_near, _images_around_one)):
        if here.any():
            total[here] = function(n + 1, u[here], b[here], root[here])
    return total * root ** (1 - n)


def _images_around_zero(degree: int, u: Operand, b: Operand, root: Operand) -> Result:
    return sum(
        np.exp(-(m - 1) * ((m + 1) - 2.0 * b) / (2.0 * u)) * _pair(degree, m, b, root)
        for m in (1, 3, 5)
    )


def _images_around_one(degree: int, u: Operand, b: Operand, root: Operand) -> Result:
    w, sign = 1.0 - b, -1.0 if degree % 2 else 1.0
    pairs = sum(np.exp(-k * (k - 2.0 * w) / (2.0 * u)) * _pair(degree, k, w, root) for k in (2, 4))
    return _hermite(degree, w / root)[degree] + sign * pairs


def _by_functions(n: int, u: Operand, b: Operand) -> Result:
    """Compute the same by eigenfunctions, without another common factor."""
    is_near = b > 0.5
    # The angle from the nearer boundary has all its digits. From the boundary 1 the signs do not
    # alternate, but those of odd derivatives change.
    angle = math.pi * np.where(is_near, 1.0 - b, b)
    alternating = np.where(is_near, 1.0, -1.0)
    turn = np.where(is_near & (n % 2 == 1), -1.0, 1.0) * (-1.0 if n % 4 in (2, 3) else 1.0)
    # Recurrences give the sines or cosines of multiples of the angle, and the powers 0, 3, 8, 15,
    # ... of an exponential.
    wave, before = (np.cos(angle), np.ones_like(b)) if n % 2 else (np.sin(angle), np.zeros_like(b))
    twice, sign, power = 2.0 * np.cos(angle), turn, 1.0
    decay = np.exp((-0.5 * math.pi**2) * u)
    square, step = decay * decay, decay**3
    total: Result = 0.0
    for k in range(1, FUNCTIONS + 1):
        total = total + (k * (k * math.pi) ** n) * power * sign * wave
        wave, before, sign, power, step = (
            twice * wave - before,
            wave,
            sign * alternating,
            power * step,
            step * square,
        )
    return total


def _where(u: Operand, b: Operand, small: Operand, large: Operand) -> Result:
    """Call one function for small times and another for large ones."""
    u, b = np.broadcast_arrays(u, b)
    out, is_small = np.full(u.shape, np.nan), u <= SHORT_TIME
    inside = (u > 0.0) & (u < math.inf) & (b > 0.0) & (b < 1.0)
    for here, function in ((is_small & inside, small), (~is_small & inside, large)):
        if here.any():
            out[here] = function(u[here], b[here])
    return out


def _log_density(u: Operand, b: Operand) -> Result:
    return _where(
        u,
        b,
        lambda u, b: (
            np.log(_by_images(0, u, b))
            - (1.0 - b) ** 2 / (2.0 * u)
            - 1.5 * np.log(u)
            - HALF_LOG_TWO_PI
        ),
        lambda u, b: np.log(_by_functions(0, u, b)) - 0.5 * math.pi**2 * u + math.log(math.pi),
    )


def _ratio(n: Operand, u: Operand, b: Operand) -> Result:
    n, u, b = np.broadcast_arrays(n, u, b)
    out = np.full(n.shape, np.nan)
    for order in np.unique(n).astype(int).tolist():
        here = n == order
        out[here] = _where(
            u[here],
            b[here],
            lambda u, b, order=order: _by_images(order, u, b) / _by_images(0, u, b),
            lambda u, b, order=order: _by_functions(order, u, b) / _by_functions(0, u, b),
        )
    return out


# These are names in the expressions of densities, not functions for users.
log_first_passage = new_row(
    "log_first_passage",
    formula(_log_density),
    "0.5 * g * first_passage_ratio(2.0, x, y)",
    "g * first_passage_ratio(1.0, x, y)",
    doc="Logarithm of the density of the time x at which Brownian motion from y leaves (0, 1) "
    "through 1.",
)
first_passage_ratio = new_row(
    "first_passage_ratio",
    formula(_ratio),
    "nan * g",
    "0.5 * g * (first_passage_ratio(x + 2.0, y, z) - r * first_passage_ratio(2.0, y, z))",
    "g * (first_passage_ratio(x + 1.0, y, z) - r * first_passage_ratio(1.0, y, z))",
    doc="Derivative of order x, a constant, of this density at the time y with respect to the "
    "start z, over the density.",
)
