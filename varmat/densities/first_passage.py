"""The time at which a Brownian motion between two boundaries reaches the upper one: its density,
and the derivatives of that.

The density of the time u at which Brownian motion that starts at b in (0, 1) leaves through 1 has
two series [1]_: over images,

    f(u, b) = (2 pi u**3)**(-1/2) sum over odd m of (m - b) exp(-(m - b)**2 / (2 u)),

which is quick for small times, and over eigenfunctions,

    f(u, b) = pi sum over k >= 1 of (-1)**(k + 1) k exp(-k**2 pi**2 u / 2) sin(k pi b),

for large ones. As a function of u and b it satisfies the heat equation, df/du = d2f/db2 / 2: the
derivatives of its logarithm are made of ratios of derivatives with respect to b and f itself, and
those of a ratio of further ones. The leading exponential is left out.

References
----------
.. [1] D. J. Navarro and I. G. Fuss, "Fast and accurate calculations for first-passage times in
   Wiener diffusion models", Journal of Mathematical Psychology 53 (2009), 222-230.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varmat.core.elementwise import Elementwise, new_row
from varmat.functions.elementwise import formula

__all__: list[str] = []

# Up to this time there are five or six images, afterwards so many eigenfunctions: what is left out
# is less than 1e-17 of the sum, also of those of the derivatives up to the fourth.
SMALL, FUNCTIONS = 0.2, 10
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def _hermite(n: int, z: Any) -> list[Any]:
    """The Hermite polynomials up to the degree n, those that go with exp(-z**2 / 2)."""
    found = [np.ones_like(z), z]
    for k in range(1, n):
        found.append(z * found[k] - k * found[k - 1])
    return found


# Two images at the same distance from one of the boundaries: with an odd polynomial they nearly
# cancel where the start is next to it, so the difference is taken term by term.
def _pair(degree: int, centre: float, step: Any, root: Any) -> Any:
    """He(z - s) -+ He(z + s) exp(-2 z s), minus for odd degrees, with z and s the centre and the
    step over `root`.
    """
    z, s = centre / root, step / root
    above = _hermite(degree, z + s)[degree]
    if degree % 2 == 0:
        return _hermite(degree, z - s)[degree] + above * np.exp(-2.0 * z * s)
    at_centre = _hermite(degree, z)
    apart = -2.0 * sum(
        math.comb(degree, j) * s**j * at_centre[degree - j] for j in range(1, degree + 1, 2)
    )
    return apart - above * np.expm1(-2.0 * z * s)


def _by_images(n: int, u: Any, b: Any) -> Any:
    """The derivative of order n with respect to b, without a factor that all of them have in
    common.
    """
    total, root, is_near = np.empty(u.shape), np.sqrt(u), b > 0.5
    for here, function in ((~is_near, _images_around_zero), (is_near, _images_around_one)):
        if here.any():
            total[here] = function(n + 1, u[here], b[here], root[here])
    return total * root ** (1 - n)


def _images_around_zero(degree: int, u: Any, b: Any, root: Any) -> Any:
    return sum(
        np.exp(-(m - 1) * ((m + 1) - 2.0 * b) / (2.0 * u)) * _pair(degree, m, b, root)
        for m in (1, 3, 5)
    )


def _images_around_one(degree: int, u: Any, b: Any, root: Any) -> Any:
    w, sign = 1.0 - b, -1.0 if degree % 2 else 1.0
    pairs = sum(np.exp(-k * (k - 2.0 * w) / (2.0 * u)) * _pair(degree, k, w, root) for k in (2, 4))
    return _hermite(degree, w / root)[degree] + sign * pairs


def _by_functions(n: int, u: Any, b: Any) -> Any:
    """The same by the other series, without another common factor."""
    is_near = b > 0.5
    # From the nearer boundary it has all its digits; from 1 the signs do not alternate, but odd
    # derivatives have the other one.
    angle = math.pi * np.where(is_near, 1.0 - b, b)
    alternating = np.where(is_near, 1.0, -1.0)
    turn = np.where(is_near & (n % 2 == 1), -1.0, 1.0) * (-1.0 if n % 4 in (2, 3) else 1.0)
    # Sines, or cosines, of multiples, and powers of an exponential with the exponents 0, 3, 8, 15,
    # ...
    wave, before = (np.cos(angle), np.ones_like(b)) if n % 2 else (np.sin(angle), np.zeros_like(b))
    twice, sign, power = 2.0 * np.cos(angle), turn, 1.0
    decay = np.exp((-0.5 * math.pi**2) * u)
    square, step = decay * decay, decay**3
    total: Any = 0.0
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


def _where(u: Any, b: Any, small: Any, large: Any) -> Any:
    """One function for small times, another one for large ones."""
    u, b = np.broadcast_arrays(u, b)
    out, is_small = np.full(u.shape, np.nan), u <= SMALL
    inside = (u > 0.0) & (u < math.inf) & (b > 0.0) & (b < 1.0)
    for here, function in ((is_small & inside, small), (~is_small & inside, large)):
        if here.any():
            out[here] = function(u[here], b[here])
    return out


def _log_density(u: Any, b: Any) -> Any:
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


def _ratio(n: Any, u: Any, b: Any) -> Any:
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


def _row(name: str, function: Any, *partials: str, doc: str) -> Elementwise:
    nothing: Any = dict.fromkeys(
        ("scalar", "operator", "shortcuts", "with_itself", "points", "reference")
    )
    return new_row(name, formula(function), *partials, doc=doc, **nothing)


# Not functions for users: names in the expressions of densities.
log_first_passage = _row(
    "log_first_passage",
    _log_density,
    "0.5 * g * first_passage_ratio(2.0, x, y)",
    "g * first_passage_ratio(1.0, x, y)",
    doc="Logarithm of the density of the time x at which Brownian motion from y leaves (0, 1) "
    "through 1.",
)
first_passage_ratio = _row(
    "first_passage_ratio",
    _ratio,
    "nan * g",
    "0.5 * g * (first_passage_ratio(x + 2.0, y, z) - r * first_passage_ratio(2.0, y, z))",
    "g * (first_passage_ratio(x + 1.0, y, z) - r * first_passage_ratio(1.0, y, z))",
    doc="Derivative of order x, a constant, of this density at the time y with respect to the "
    "start z, over the density.",
)
