"""Cumulative functions of location-scale families: normal, lognormal, logistic, double exponential,
Cauchy.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.densities.cumulative.row import POSITIVE, Tail, Tails, cumulative, scaled
from varmat.densities.location_scale import cauchy_lpdf, double_exponential_lpdf, logistic_lpdf
from varmat.densities.normal import normal_lpdf, std_normal_lpdf
from varmat.densities.positive import lognormal_lpdf
from varmat.functions.special.error_functions import erfcx, log_ndtr
from varmat.functions.special.logistic_functions import expit, log_expit
from varmat.typing import Operand

__all__ = [
    "cauchy_cdf", "cauchy_lccdf", "cauchy_lcdf", "double_exponential_cdf",
     "double_exponential_lccdf", "double_exponential_lcdf",
    "logistic_cdf", "logistic_lccdf", "logistic_lcdf", "lognormal_cdf", "lognormal_lccdf",
     "lognormal_lcdf",
    "normal_cdf", "normal_lccdf", "normal_lcdf", "std_normal_cdf", "std_normal_lccdf",
     "std_normal_lcdf",
]  # fmt: skip

ROOT_HALF = math.sqrt(0.5)
ROOT_TWO_OVER_PI = math.sqrt(2.0 / math.pi)
LOG_HALF = math.log(0.5)


def mills(z: Operand) -> Operand:
    """Compute the derivative of ``log_ndtr(z)``: density over probability, about -z far below zero
    and 0 far above.
    """
    return ROOT_TWO_OVER_PI / erfcx(-ROOT_HALF * np.minimum(z, 38.0))


def _normal(x: Operand, mu: Operand, sigma: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probabilities are :math:`\\Phi(z)` up to y
    and :math:`\\Phi(-z)` above. The derivative of :math:`\\log \\Phi(z)` is the inverse Mills ratio
    :math:`\\phi(z) / \\Phi(z)`. In SciPy ``scipy.stats.norm(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.normal_cdf(2.0, 2.0, 1.0)
    0.5
    >>> round(vm.normal_lccdf(40.0, 0.0, 1.0), 10)
    -804.6084420138
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    return Tails(
        below=Tail(log_ndtr(z), **scaled(mills(z), inv, z)),
        above=Tail(log_ndtr(-z), **scaled(-mills(-z), inv, z)),
    )


normal_cdf, normal_lcdf, normal_lccdf = cumulative(
    normal_lpdf,
    _normal,
    tails=[
        (-40.0, 3.0, 1.0),
        (40.0, 0.0, 1.0),
        (-1e8, 0.0, 1.0),
        (1e8, 0.0, 1.0),
        (37.0, 0.0, 1.0),
    ],
    inside=lambda mu, *_: mu,
)


def _std_normal(x: Operand) -> Tails:
    """The probabilities are :math:`\\Phi(y)` up to y and :math:`\\Phi(-y)` above. In SciPy
    ``scipy.stats.norm``.

    >>> import varmat as vm
    >>> vm.std_normal_cdf([0.0, 0.0])
    0.25
    """
    return Tails(Tail(log_ndtr(x), y=mills(x)), Tail(log_ndtr(-x), y=-mills(-x)))


std_normal_cdf, std_normal_lcdf, std_normal_lccdf = cumulative(
    std_normal_lpdf, _std_normal, tails=[(-40.0,), (40.0,), (-1e8,), (1e8,)], inside=0.0
)


def _lognormal(x: Operand, mu: Operand, sigma: Operand) -> Tails:
    """With :math:`z = (\\log y - \\mu) / \\sigma` the probabilities are :math:`\\Phi(z)` up
    to y and :math:`\\Phi(-z)` above. In SciPy ``scipy.stats.lognorm(sigma, scale=exp(mu))``.

    >>> import varmat as vm
    >>> vm.lognormal_cdf(1.0, 0.0, 2.0)
    0.5
    """
    inv = 1.0 / sigma
    z = (np.log(x) - mu) * inv
    below, above = mills(z), -mills(-z)
    return Tails(
        below=Tail(log_ndtr(z), **scaled(below, inv, z) | {"y": below * inv / x}),
        above=Tail(log_ndtr(-z), **scaled(above, inv, z) | {"y": above * inv / x}),
    )


lognormal_cdf, lognormal_lcdf, lognormal_lccdf = cumulative(
    lognormal_lpdf,
    _lognormal,
    tails=[(1e-300, 3.0, 0.5), (1e300, -3.0, 2.0), (1e-9, -20.0, 1e3)],
    **POSITIVE,
)


def _logistic(x: Operand, mu: Operand, sigma: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probability up to y is :math:`1 / (1 +
    e^{-z})`. In SciPy ``scipy.stats.logistic(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.logistic_lcdf(-1000.0, 0.0, 1.0)
    -1000.0
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    return Tails(
        below=Tail(log_expit(z), **scaled(expit(-z), inv, z)),
        above=Tail(log_expit(-z), **scaled(-expit(z), inv, z)),
    )


logistic_cdf, logistic_lcdf, logistic_lccdf = cumulative(
    logistic_lpdf,
    _logistic,
    tails=[(1000.0, 0.0, 1.0), (-1000.0, 0.0, 1.0), (300.0, 0.0, 1.0), (-1e10, 1.0, 2.0)],
    inside=lambda mu, *_: mu,
)


# The smaller probability is half an exponential, the other one is the rest.
def _double_exponential(x: Operand, mu: Operand, sigma: Operand) -> Tails:
    """The probability up to y is :math:`\\frac12 e^{-|z|}` below :math:`\\mu` and one minus
    this above, with :math:`z = (y - \\mu) / \\sigma`. In SciPy ``scipy.stats.laplace(mu,
    sigma)``.

    >>> import varmat as vm
    >>> vm.double_exponential_cdf(2.0, 2.0, 1.0)
    0.5
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    a = np.absolute(z)
    e = 0.5 * np.exp(-a)
    remainder, slope = np.log1p(-e), e / (1.0 - e)

    def tail(is_smaller: Operand, sign: float) -> Tail:
        return Tail(
            np.where(is_smaller, LOG_HALF - a, remainder),
            **scaled(sign * np.where(is_smaller, 1.0, slope), inv, z),
        )

    return Tails(tail(z < 0.0, 1.0), tail(z > 0.0, -1.0))


double_exponential_cdf, double_exponential_lcdf, double_exponential_lccdf = cumulative(
    double_exponential_lpdf,
    _double_exponential,
    tails=[(1e8, 1.0, 1e-3), (-1e-20, 1.0, 1e5), (-1e8, 1.0, 1e-3), (700.0, 0.0, 1.0)],
    inside=lambda mu, *_: mu,
)


# The probability is the angle of (-z, 1) over pi, which has all digits far below the location.
def _cauchy(x: Operand, mu: Operand, sigma: Operand, fast: bool) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probability up to y is :math:`\\frac12 +
    \\arctan(z) / \\pi`. In SciPy ``scipy.stats.cauchy(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.cauchy_cdf(2.0, 2.0, 1.0)
    0.5
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    if fast:
        # One probability is s, the other one 1 - s. The second terms restore the digits that 1 - s
        # loses.
        s = np.arctan(1.0 / np.absolute(z)) / math.pi
        h = np.maximum(z > 0.0, 0.0)
        g = s - 2.0 * h * s
        p, q = h + g, 1.0 - h - g
        lower = np.log(p) + (h - p + g) * p
        upper = np.log(q) + (1.0 - h - q - g) * q
        below, above = (1.0 / (math.pi * (1.0 + z * z) * item) for item in (p, q))
    else:
        under, over = np.arctan2(1.0, -z), np.arctan2(1.0, z)
        p, q = under / math.pi, over / math.pi
        lower = np.where(z < 0.0, np.log(p), np.log1p(-q))
        upper = np.where(z > 0.0, np.log(q), np.log1p(-p))
        rate = 1.0 / np.hypot(1.0, z)
        below, above = (rate / under) * rate, (rate / over) * rate
    return Tails(
        below=Tail(lower, **scaled(below, inv, z)),
        above=Tail(upper, **scaled(-above, inv, z)),
        when=(z > -1e100) & (z < 1e100),
    )


cauchy_cdf, cauchy_lcdf, cauchy_lccdf = cumulative(
    cauchy_lpdf,
    _cauchy,
    fast=True,
    tails=[(-1e8, 0.0, 1.0), (1.0, 2.0, 1e8), (1e20, 0.0, 1.0), (-1e20, 0.0, 1.0)],
    inside=lambda mu, *_: mu,
)
