"""Cumulative functions of distributions of extreme values: Gumbel, Fréchet."""

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
from varmat.densities.density import LARGEST_EXPONENT
from varmat.densities.extreme_value import frechet_lpdf, gumbel_lpdf
from varmat.typing import Operand

__all__ = [
    "frechet_cdf",
    "frechet_lccdf",
    "frechet_lcdf",
    "gumbel_cdf",
    "gumbel_lccdf",
    "gumbel_lcdf",
]


# These are the formulas of the Weibull distribution with the two probabilities exchanged.
def _gumbel(x: Operand, mu: Operand, beta: Operand, fast: bool) -> Tails:
    """The probability up to y is :math:`\\exp(-e^{-z})` with :math:`z = (y - \\mu) / \\beta`.
    In SciPy ``scipy.stats.gumbel_r(mu, beta)``.

    >>> import varmat as vm
    >>> vm.gumbel_lcdf(2.0, 2.0, 1.0)
    -1.0
    """
    inv = 1.0 / beta
    z = (x - mu) * inv
    if fast:
        t = np.exp(-z)
    else:  # an infinite one is without derivatives
        t = np.where(-z < LARGEST_EXPONENT, np.exp(np.minimum(-z, LARGEST_EXPONENT)), math.inf)
    rest, odds = less(t, fast)
    if not fast:
        rest = np.where(z > 50.0, -z, rest)
    return Tails(
        below=Tail(-t, y=t * inv, mu=-t * inv, beta=-t * inv * z),
        above=Tail(rest, y=-odds * inv, mu=odds * inv, beta=odds * inv * z),
        when=within(t),
    )


gumbel_cdf, gumbel_lcdf, gumbel_lccdf = cumulative(
    gumbel_lpdf,
    _gumbel,
    fast=True,
    tails=[(-5.0, 0.0, 1.0), (40.0, 0.0, 1.0), (1000.0, 0.0, 1.0), (-600.0, 0.0, 1.0)],
    inside=lambda mu, *_: mu,
)


def _frechet(x: Operand, alpha: Operand, sigma: Operand, fast: bool) -> Tails:
    """The probability up to y is :math:`\\exp(-(y / \\sigma)^{-\\alpha})`. In SciPy
    ``scipy.stats.invweibull(alpha, scale=sigma)``.

    >>> import varmat as vm
    >>> vm.frechet_lcdf(0.5, 2.0, 1.0)
    -4.0
    """
    u = x / sigma
    log_u = np.log(u)
    t = power_of(u, log_u, -alpha, fast)
    rest, odds = less(t, fast)
    if not fast:
        rest = np.where(t < 1e-20, -alpha * log_u, rest)
    slope = odds * alpha
    return Tails(
        below=Tail(-t, y=t * alpha / x, alpha=t * log_u, sigma=-t * alpha / sigma),
        above=Tail(rest, y=-slope / x, alpha=-odds * log_u, sigma=slope / sigma),
        when=within(t),
    )


frechet_cdf, frechet_lcdf, frechet_lccdf = cumulative(
    frechet_lpdf,
    _frechet,
    fast=True,
    tails=[(1e9, 3.0, 1.0), (1e100, 2.0, 1.0), (0.05, 2.0, 1.0)],
    **POSITIVE,
)
