"""Cumulative functions of skewed distributions: skew normal, skew double exponential, exponentially
modified normal.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.densities.cumulative.row import Tail, Tails, cumulative, scaled
from varmat.densities.density import LN2
from varmat.densities.skewed import (
    ROOT_TWO_OVER_PI,
    exp_mod_normal_lpdf,
    exponential_part,
    skew_double_exponential_lpdf,
    skew_normal_lpdf,
)
from varmat.functions.special.error_functions import log_ndtr
from varmat.functions.special.log_normal_tails import log_exp_mod_normal, log_skew_normal
from varmat.typing import Operand

__all__ = [
    "exp_mod_normal_cdf", "exp_mod_normal_lccdf", "exp_mod_normal_lcdf",
    "skew_double_exponential_cdf", "skew_double_exponential_lccdf", "skew_double_exponential_lcdf",
    "skew_normal_cdf", "skew_normal_lccdf", "skew_normal_lcdf",
]  # fmt: skip


# The probability is tau e below mu, and 1 - (1 - tau) f above it.
def _skew_double_exponential(x: Operand, mu: Operand, sigma: Operand, tau: Operand) -> Tails:
    """The probability up to y is :math:`\\tau e^{2 (1 - \\tau) z}` below :math:`\\mu` and
    :math:`1 - (1 - \\tau) e^{-2 \\tau z}` above, with :math:`z = (y - \\mu) / \\sigma`.

    >>> import varmat as vm
    >>> vm.skew_double_exponential_cdf(2.0, 2.0, 1.0, 0.25)
    0.25
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    left, right, c = np.minimum(z, 0.0), np.maximum(z, 0.0), 1.0 - tau
    e, f = np.exp(2.0 * c * left), np.exp(-2.0 * tau * right)
    # The probabilities 1 - tau e and 1 - c f, from terms that are not near 1.
    p, q = tau * f - np.expm1(-2.0 * tau * right), c * e - np.expm1(2.0 * c * left)
    below = np.where(z < 0.0, 2.0 * c, 2.0 * tau * c * f / p)
    above = np.where(z < 0.0, 2.0 * tau * c * e / q, 2.0 * tau)
    in_below = 1.0 / tau - 2.0 * left, (1.0 + 2.0 * c * right) * f / p
    in_above = (2.0 * tau * left - 1.0) * e / q, -1.0 / c - 2.0 * right
    return Tails(
        below=Tail(
            np.where(z < 0.0, np.log(tau) + 2.0 * c * left, np.log1p(-c * f)),
            tau=np.where(z < 0.0, *in_below),
            **scaled(below, inv, z),
        ),
        above=Tail(
            np.where(z < 0.0, np.log1p(-tau * e), np.log1p(-tau) - 2.0 * tau * right),
            tau=np.where(z < 0.0, *in_above),
            **scaled(-above, inv, z),
        ),
    )


skew_double_exponential_cdf, skew_double_exponential_lcdf, skew_double_exponential_lccdf = (
    cumulative(
        skew_double_exponential_lpdf,
        _skew_double_exponential,
        tails=[
            (-1e8, 1.0, 1e-3, 0.3),
            (1e8, 1.0, 1e-3, 0.3),
            (30.0, 0.0, 1.0, 0.4),
            (-30.0, 0.0, 1.0, 0.4),
        ],
        inside=lambda mu, *_: mu,
    )
)


# The probability above y is the normal variable's plus the density over the rate, so the
# derivatives have the same parts as the derivatives of the density.
def _exp_mod_normal(x: Operand, mu: Operand, sigma: Operand, rate: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` and :math:`a = \\lambda\\sigma` the probability
    up to y is :math:`\\Phi(z) - e^{a^2 / 2 - a z} \\Phi(z - a)`, which is computed as an integral
    of positive terms where the two are close. In SciPy ``scipy.stats.exponnorm(1 / (rate * sigma),
    mu, sigma)``.

    >>> import varmat as vm
    >>> round(vm.exp_mod_normal_lccdf(1e4, 0.0, 1.0, 2.0), 9)
    -19998.0
    """
    inv = 1.0 / sigma
    z, a = (x - mu) * inv, rate * sigma
    w, _, v, left, right = exponential_part(z, a)
    second = np.where(w < 0.0, left - LN2, right)
    lower = log_exp_mod_normal(z, a)
    upper = np.where(
        lower < -LN2, np.log1p(-np.exp(np.minimum(lower, -LN2))), np.logaddexp(log_ndtr(-z), second)
    )

    def tail(sign: float, value: object) -> Tail:
        """Differentiate a log probability, whose exponential part has the weight `over`."""
        over = sign * np.exp(second - value)
        slope = rate * over
        return Tail(value, y=slope, mu=-slope, sigma=slope * (v - z), rate=sigma * v * over)

    return Tails(tail(1.0, lower), tail(-1.0, upper))


exp_mod_normal_cdf, exp_mod_normal_lcdf, exp_mod_normal_lccdf = cumulative(
    exp_mod_normal_lpdf,
    _exp_mod_normal,
    tails=[
        (-30.0, 0.0, 1.0, 1.0),
        (1.0, 0.0, 1.0, 50.0),
        (1e4, 0.0, 1.0, 2.0),
        (-30.0, 0.0, 1.0, 1e-3),
        (7.0, 0.0, 1.0, 1e-3),
    ],
    inside=lambda mu, *_: mu,
)


# The mirrored distribution has the opposite shape. The derivative in the shape has a closed form.
def _skew_normal(x: Operand, xi: Operand, omega: Operand, alpha: Operand) -> Tails:
    """With :math:`z = (y - \\xi) / \\omega` the probability up to y is :math:`\\Phi(z) - 2
    T(z, \\alpha)`, with Owen's function T, or the integral of the density where the two cancel. In
    SciPy ``scipy.stats.skewnorm(alpha, xi, omega)``.

    >>> import varmat as vm
    >>> vm.skew_normal_cdf(2.0, 2.0, 1.0, 0.0)
    0.5
    """
    inv = 1.0 / omega
    z, square = (x - xi) * inv, 1.0 + alpha * alpha

    def tail(sign: float) -> Tail:
        value = log_skew_normal(sign * z, sign * alpha)
        height = ROOT_TWO_OVER_PI * np.exp(log_ndtr(alpha * z) - 0.5 * z * z - value) * inv
        slope = sign * height
        in_alpha = np.exp(-0.5 * square * (z * z) - value) / math.pi / square
        return Tail(value, y=slope, xi=-slope, omega=-z * slope, alpha=-sign * in_alpha)

    return Tails(tail(1.0), tail(-1.0))


skew_normal_cdf, skew_normal_lcdf, skew_normal_lccdf = cumulative(
    skew_normal_lpdf,
    _skew_normal,
    points=[(0.3, 0.1, 1.5, 0.8), (-2.0, -1.0, 0.7, -2.0), (4.0, 3.0, 2.5, -3.0)],
    tails=[(-5.0, 0.0, 1.0, 1.0), (8.0, 0.0, 1.0, 1.0)],
    inside=lambda xi, *_: xi,
)
