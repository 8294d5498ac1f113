"""Cumulative functions of distributions of positive numbers: exponential, Weibull, Rayleigh,
inverse Gaussian.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.densities.cumulative.row import (
    POSITIVE,
    Tail,
    Tails,
    cumulative,
    less,
    power_of,
    within,
)
from varmat.densities.positive import (
    exponential_lpdf,
    inv_gaussian_lpdf,
    rayleigh_lpdf,
    weibull_lpdf,
)
from varmat.functions.special.error_functions import erfcx
from varmat.functions.special.logistic_functions import log1m_exp
from varmat.typing import Operand

__all__ = [
    "exponential_cdf", "exponential_lccdf", "exponential_lcdf",
    "inv_gaussian_cdf", "inv_gaussian_lccdf", "inv_gaussian_lcdf",
    "rayleigh_cdf", "rayleigh_lccdf", "rayleigh_lcdf", "weibull_cdf", "weibull_lccdf",
     "weibull_lcdf",
]  # fmt: skip


def _exponential(x: Operand, beta: Operand, fast: bool) -> Tails:
    """The probability above y is :math:`e^{-\\beta y}`. In SciPy ``scipy.stats.expon(scale=1
    / beta)``.

    >>> import varmat as vm
    >>> vm.exponential_lccdf([0.5, 1.5], 1.0)
    -2.0
    """
    t = beta * x
    remainder, odds = less(t, fast)
    return Tails(
        below=Tail(remainder, y=odds / x, beta=odds / beta),
        above=Tail(-t, y=-beta, beta=-x),
        when=within(t),
    )


exponential_cdf, exponential_lcdf, exponential_lccdf = cumulative(
    exponential_lpdf,
    _exponential,
    fast=True,
    tails=[(1e-9, 1e3), (1e10, 2e-10), (1e-200, 2e200), (1e-300, 1.0), (800.0, 1.0)],
    **POSITIVE,
)


def _weibull(x: Operand, alpha: Operand, sigma: Operand, fast: bool) -> Tails:
    """The probability above y is :math:`\\exp(-(y / \\sigma)^\\alpha)`. In SciPy
    ``scipy.stats.weibull_min(alpha, scale=sigma)``.

    >>> import varmat as vm
    >>> vm.weibull_lccdf(3.0, 2.0, 1.0)
    -9.0
    """
    u = x / sigma
    log_u = np.log(u)
    t = power_of(u, log_u, alpha, fast)
    remainder, odds = less(t, fast)
    if not fast:
        remainder = np.where(t < 1e-20, alpha * log_u, remainder)
    slope = odds * alpha
    return Tails(
        below=Tail(remainder, y=slope / x, alpha=odds * log_u, sigma=-slope / sigma),
        above=Tail(-t, y=-t * alpha / x, alpha=-t * log_u, sigma=t * alpha / sigma),
        when=within(t),
    )


weibull_cdf, weibull_lcdf, weibull_lccdf = cumulative(
    weibull_lpdf,
    _weibull,
    fast=True,
    tails=[
        (1e-9, 0.1, 1e3),
        (1e-300, 1e-3, 1.0),
        (1e-100, 2.0, 1.0),
        (40.0, 2.0, 1.0),
        (1.001, 100.0, 1.0),
    ],
    **POSITIVE,
)


def _rayleigh(x: Operand, sigma: Operand, fast: bool) -> Tails:
    """The probability above y is :math:`\\exp(-y^2 / (2 \\sigma^2))`. In SciPy
    ``scipy.stats.rayleigh(scale=sigma)``.

    >>> import varmat as vm
    >>> vm.rayleigh_lccdf(4.0, 2.0)
    -2.0
    """
    u = x / sigma
    t = 0.5 * np.square(u)
    remainder, odds = less(t, fast)
    if not fast:
        remainder = np.where(u < 1e-8, 2.0 * np.log(u) - math.log(2.0), remainder)
    slope = 2.0 * odds
    return Tails(
        below=Tail(remainder, y=slope / x, sigma=-slope / sigma),
        above=Tail(-t, y=-u / sigma, sigma=2.0 * t / sigma),
        when=within(t),
    )


rayleigh_cdf, rayleigh_lcdf, rayleigh_lccdf = cumulative(
    rayleigh_lpdf, _rayleigh, fast=True, tails=[(1e-100, 2.0), (1e10, 3.0), (40.0, 1.0)], **POSITIVE
)


# The probability whose interval does not contain the location is a sum or a difference of two
# quotients of a tail and the density at it, times exp(-a**2 / 2).
def _inv_gaussian(x: Operand, mu: Operand, lam: Operand) -> Tails:
    """With :math:`a = \\sqrt{\\lambda / y} (y / \\mu - 1)` and :math:`b = \\sqrt{\\lambda / y} (y /
    \\mu + 1)` the probability up to y is :math:`\\Phi(a) + e^{2 \\lambda / \\mu} \\Phi(-b)`. In
    SciPy ``scipy.stats.invgauss(mu / lam, scale=lam)``.

    >>> import varmat as vm
    >>> round(vm.inv_gaussian_cdf(1.0, 1.0, 1.0), 12)
    0.668102001223
    """
    root = np.sqrt(lam / x)
    q = (x - mu) / mu
    a, b = root * q, root * (q + 2.0)
    is_low = a < 0.0
    one, other = (0.5 * erfcx(math.sqrt(0.5) * z) for z in (np.where(is_low, -a, a), b))
    part = np.where(is_low, one + other, one - other)
    smaller = np.log(part) - 0.5 * a * a
    larger = log1m_exp(smaller)
    # exp(-a**2 / 2) over the smaller probability and the larger one
    near, far = 1.0 / part, np.exp(-0.5 * a * a - larger)
    below, above = np.where(is_low, near, far), np.where(is_low, far, near)
    in_y = root / x * math.sqrt(0.5 / math.pi)
    in_mu = -2.0 * lam / mu / mu * other
    in_shape = 2.0 / mu * other - root / lam * math.sqrt(0.5 / math.pi)
    return Tails(
        below=Tail(np.where(is_low, smaller, larger), y=below * in_y, mu=below * in_mu,
                   lam=below * in_shape),
        above=Tail(np.where(is_low, larger, smaller), y=-above * in_y, mu=-above * in_mu,
                   lam=-above * in_shape),
    )  # fmt: skip


inv_gaussian_cdf, inv_gaussian_lcdf, inv_gaussian_lccdf = cumulative(
    inv_gaussian_lpdf,
    _inv_gaussian,
    tails=[(1e-3, 1.0, 1.0), (300.0, 1.0, 1.0), (1.0 + 1e-9, 1.0, 1e4), (0.3, 2.0, 50.0)],
    **POSITIVE,
)
