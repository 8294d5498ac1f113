"""Cumulative functions of distributions of extreme values: Gumbel, Fréchet, generalised ones."""

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
from varmat.densities.extreme_value import (
    frechet_lpdf,
    generalized_extreme_value_lpdf,
    generalized_pareto_lpdf,
    gumbel_lpdf,
    power_logarithm,
)
from varmat.typing import Operand

__all__ = [
    "frechet_cdf",
    "frechet_lccdf",
    "frechet_lcdf",
    "generalized_extreme_value_cdf",
    "generalized_extreme_value_lccdf",
    "generalized_extreme_value_lcdf",
    "generalized_pareto_cdf",
    "generalized_pareto_lccdf",
    "generalized_pareto_lcdf",
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
    remainder, odds = less(t, fast)
    if not fast:
        remainder = np.where(z > 50.0, -z, remainder)
    return Tails(
        below=Tail(-t, y=t * inv, mu=-t * inv, beta=-t * inv * z),
        above=Tail(remainder, y=-odds * inv, mu=odds * inv, beta=odds * inv * z),
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
    remainder, odds = less(t, fast)
    if not fast:
        remainder = np.where(t < 1e-20, -alpha * log_u, remainder)
    slope = odds * alpha
    return Tails(
        below=Tail(-t, y=t * alpha / x, alpha=t * log_u, sigma=-t * alpha / sigma),
        above=Tail(remainder, y=-slope / x, alpha=-odds * log_u, sigma=slope / sigma),
        when=within(t),
    )


frechet_cdf, frechet_lcdf, frechet_lccdf = cumulative(
    frechet_lpdf,
    _frechet,
    fast=True,
    tails=[(1e9, 3.0, 1.0), (1e100, 2.0, 1.0), (0.05, 2.0, 1.0)],
    **POSITIVE,
)


def _generalized_extreme_value(x: Operand, mu: Operand, sigma: Operand, xi: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probability up to y is :math:`\\exp(-(1 + \\xi
    z)^{-1 / \\xi})`. In SciPy ``scipy.stats.genextreme(-xi, mu, sigma)``.

    >>> import varmat as vm
    >>> vm.generalized_extreme_value_lcdf(2.0, 2.0, 1.0, 0.3)
    -1.0
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    logarithm, in_xi = power_logarithm(z, xi)
    rate = inv / (1.0 + xi * z)
    # An infinite one is without derivatives.
    t = np.where(
        -logarithm < LARGEST_EXPONENT, np.exp(np.minimum(-logarithm, LARGEST_EXPONENT)), math.inf
    )
    remainder, odds = less(t, False)
    remainder = np.where(logarithm > 50.0, -logarithm, remainder)
    return Tails(
        below=Tail(-t, y=t * rate, mu=-t * rate, sigma=-t * rate * z, xi=t * in_xi),
        above=Tail(
            remainder, y=-odds * rate, mu=odds * rate, sigma=odds * rate * z, xi=-odds * in_xi
        ),
    )


def _is_inside(y: Operand, mu: Operand, sigma: Operand, xi: Operand) -> Operand:
    return 1.0 + xi * ((y - mu) / sigma) > 0.0


generalized_extreme_value_cdf, generalized_extreme_value_lcdf, generalized_extreme_value_lccdf = (
    cumulative(
        generalized_extreme_value_lpdf,
        _generalized_extreme_value,
        tails=[(1e8, 1.0, 1.0, 0.5), (-1.8, 0.0, 1.0, 0.5), (3.9, 0.0, 1.0, -0.25)],
        start=lambda y, mu, sigma, xi: (
            (y > -math.inf) & ((xi <= 0.0) | _is_inside(y, mu, sigma, xi))
        ),
        end=lambda y, mu, sigma, xi: (y < math.inf) & ((xi >= 0.0) | _is_inside(y, mu, sigma, xi)),
        before=((-2.5, 0.0, 1.0, 0.5), (-math.inf, 0.0, 1.0, 0.0)),
        after=((5.0, 0.0, 1.0, -0.25), (math.inf, 0.0, 1.0, 0.2)),
        inside=lambda mu, *_: mu,
    )
)


def _generalized_pareto(x: Operand, mu: Operand, sigma: Operand, xi: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probability above y is :math:`(1 + \\xi z)^{-1 /
    \\xi}`. In SciPy ``scipy.stats.genpareto(xi, mu, sigma)``.

    >>> import varmat as vm
    >>> vm.generalized_pareto_cdf(1.0, 0.0, 1.0, 1.0)
    0.5
    """
    inv = 1.0 / sigma
    z = (x - mu) * inv
    t, in_xi = power_logarithm(z, xi)
    rate = inv / (1.0 + xi * z)
    remainder, odds = less(t, False)
    slope = odds / t
    return Tails(
        below=Tail(remainder, y=slope * rate, mu=-slope * rate, sigma=-slope * rate * z,
                   xi=slope * in_xi),
        above=Tail(-t, y=-rate, mu=rate, sigma=rate * z, xi=-in_xi),
    )  # fmt: skip


generalized_pareto_cdf, generalized_pareto_lcdf, generalized_pareto_lccdf = cumulative(
    generalized_pareto_lpdf,
    _generalized_pareto,
    tails=[(1e8, 1.0, 1.0, 0.5), (1e-12, 0.0, 1.0, 0.5), (3.9, 0.0, 1.0, -0.25)],
    start=lambda y, mu, *_: y > mu,
    end=lambda y, mu, sigma, xi: (y < math.inf) & ((xi >= 0.0) | _is_inside(y, mu, sigma, xi)),
    before=((-2.5, 0.0, 1.0, 0.5),),
    after=((5.0, 0.0, 1.0, -0.25), (math.inf, 0.0, 1.0, 0.2)),
    inside=lambda mu, sigma, xi: mu + 0.5 * sigma / (1.0 + np.abs(xi)),
)
