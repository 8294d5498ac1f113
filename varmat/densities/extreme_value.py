"""Distributions of extreme values: Gumbel, Fréchet, generalised extreme value, Pareto."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive, positive_finite
from varmat.densities.density import LARGEST, not_nan
from varmat.densities.moments import extreme_moments, gamma_moments, if_above
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.typing import Operand

__all__ = [
    "frechet_lpdf",
    "generalized_extreme_value_lpdf",
    "generalized_pareto_lpdf",
    "gumbel_lpdf",
]


# At -inf the two parts of the log density are inf - inf, and the second is the larger one, so the
# support ends before.
@univariate(
    "Gumbel distribution",
    y=("Random variable", not_nan),
    mu=("Location parameter", finite),
    beta=("Scale parameter", positive),
    lazy=("y", "mu"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 2.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 1e-1)],
    tails=[(1e8, 1.0, 1e-3), (-600.0, 1.0, 1.0), (6.0, 6.0 + 1e-9, 0.5)],
    outside=[(float("-inf"), 0.1, 1.5)],
    mean=lambda mu, beta: mu + np.euler_gamma * beta,
    variance=lambda mu, beta: math.pi**2 / 6.0 * beta**2,
)
def gumbel_lpdf(y: Operand, mu: Operand, beta: Operand) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\beta` the log density is :math:`-\\log \\beta - z -
    e^{-z}`, with the derivative :math:`(e^{-z} - 1) / \\beta` in y. In SciPy
    ``scipy.stats.gumbel_r(mu, beta)``.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.gumbel_lpdf)(1.0, 1.0, 0.5)
    (-0.3068528194400547, 0.0)
    """
    inv = 1.0 / beta
    z = (y - mu) * inv
    s = np.expm1(-z)
    return LogDensity(
        -np.log(beta),
        -z - s - 1.0,
        y=s * inv,
        mu=-s * inv,
        beta=-(z * s + 1.0) * inv,
        support=y >= -LARGEST,
    )


@univariate(
    "Fréchet distribution",
    y=("Random variable", not_nan),
    alpha=("Shape parameter", positive_finite),
    sigma=("Scale parameter", positive_finite),
    lazy=("y",),
    fast=Fast(),
    points=[
        (0.3, 2.0, 0.5),
        (4.0, 0.7, 0.3),
        (1e-9, 0.1, 1e-7),
        (70.0, 6.5, 65.0),
        (1.5, 1.0, 2.0),
    ],
    tails=[(1e8, 2.0, 1.0), (0.01, 3.0, 2.0), (1e300, 0.01, 1.0)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    mean=lambda alpha, sigma: if_above(1.0, alpha, lambda a: gamma_moments(sigma, -1.0 / a)[0]),
    variance=lambda alpha, sigma: if_above(2.0, alpha, lambda a: gamma_moments(sigma, -1.0 / a)[1]),
    ends=(0.0, math.inf),
)
def frechet_lpdf(y: Operand, alpha: Operand, sigma: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`\\log \\alpha + \\alpha \\log \\sigma - (\\alpha + 1) \\log
    y - (\\sigma / y)^\\alpha`, for the reciprocal of a Weibull variable. In SciPy
    ``scipy.stats.invweibull(alpha, scale=sigma)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda sigma: vm.frechet_lpdf([1.0, 1.0], 2.0, sigma), 1.0)
    0.0
    """
    u = sigma / y
    log_u = np.log(u)
    if fast:
        log_y = np.log(sigma) - log_u
        t = np.exp(alpha * log_u)
    else:
        log_y = np.log(y)
        t = np.power(u, alpha)
    return LogDensity(
        np.log(alpha),
        -(alpha + 1.0) * log_y,
        alpha * np.log(sigma),
        -t,
        y=(alpha * (t - 1.0) - 1.0) / y,
        alpha=1.0 / alpha + log_u * (1.0 - t),
        sigma=alpha * (1.0 - t) / sigma,
        support=y > 0.0,
    )


# Terms of the series of (log(1 + u) - u) / u**2, for u so near to 0.
_TERMS, _NEAR = 16, 0.1


def power_logarithm(z: Operand, xi: Operand) -> tuple[Operand, Operand]:
    """Compute log(1 + xi z) / xi, which is z where xi is 0, and its derivative in xi."""
    u = xi * z
    near = (u < _NEAR) & (u > -_NEAR)
    small, large = np.where(near, u, 0.0), np.where(near, 1.0, u)
    series: Operand = 0.0
    for k in range(_TERMS, -1, -1):
        series = (-1.0) ** (k + 1) / (k + 2.0) + small * series
    logarithm = np.log1p(large)
    ratio = np.where(near, 1.0 + small * series, logarithm / large)
    slope = np.where(
        near, -1.0 / (1.0 + small) - series, (large / (1.0 + large) - logarithm) / (large * large)
    )
    return z * ratio, z * z * slope


@univariate(
    "generalised extreme value distribution",
    y=("Random variable", not_nan),
    mu=("Location parameter", finite),
    sigma=("Scale parameter", positive_finite),
    xi=("Shape parameter", finite),
    points=[
        (0.3, 0.1, 1.5, 0.4),
        (2.5, 0.5, 1.2, 1e-9),
        (-1.0, 0.7, 2.3, -0.3),
        (2.5, 0.5, 1.2, 0.0),
        (70.0, 0.05, 2.0, 1.3),
    ],
    tails=[
        (1e8, 1.0, 1.0, 0.5),
        (-1.8, 0.0, 1.0, 0.5),
        (3.9, 0.0, 1.0, -0.25),
        (20.0, 0.0, 1.0, -1e-6),
    ],
    outside=[(-2.5, 0.0, 1.0, 0.5), (5.0, 0.0, 1.0, -0.25), (float("inf"), 0.0, 1.0, 0.2)],
    mean=lambda mu, sigma, xi: extreme_moments(mu, sigma, xi)[0],
    variance=lambda mu, sigma, xi: extreme_moments(mu, sigma, xi)[1],
    ends=lambda mu, sigma, xi: (
        np.where(np.greater(xi, 0.0), _end(mu, sigma, xi), -math.inf),
        np.where(np.less(xi, 0.0), _end(mu, sigma, xi), math.inf),
    ),
)
def generalized_extreme_value_lpdf(
    y: Operand, mu: Operand, sigma: Operand, xi: Operand
) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\sigma` and :math:`\\ell = \\log(1 + \\xi z) / \\xi`, which is
    z where :math:`\\xi = 0`, the log density is :math:`-\\log \\sigma - (1 + \\xi) \\ell -
    e^{-\\ell}` where :math:`1 + \\xi z > 0`. Shapes above 0 have a heavy upper tail. In SciPy
    ``scipy.stats.genextreme(-xi, mu, sigma)``.

    >>> import varmat as vm
    >>> vm.generalized_extreme_value_lpdf(1.0, 1.0, 1.0, 0.2)
    -1.0
    """
    inv = 1.0 / sigma
    z = (y - mu) * inv
    base = 1.0 + xi * z
    logarithm, in_xi = power_logarithm(z, xi)
    s = np.expm1(-logarithm)
    rate = (s - xi) * inv / base
    return LogDensity(
        -np.log(sigma),
        -(1.0 + xi) * logarithm - s - 1.0,
        y=rate,
        mu=-rate,
        sigma=-inv - rate * z,
        xi=s * in_xi - z / base,
        support=(base > 0.0) & (y < math.inf) & (y > -math.inf),
    )


@univariate(
    "generalised Pareto distribution",
    y=("Random variable", not_nan),
    mu=("Location parameter", finite),
    sigma=("Scale parameter", positive_finite),
    xi=("Shape parameter", finite),
    points=[
        (0.3, 0.1, 1.5, 0.4),
        (2.5, 0.5, 1.2, 1e-9),
        (1.0, 0.7, 2.3, -0.3),
        (2.5, 0.5, 1.2, 0.0),
        (70.0, 0.05, 2.0, 1.3),
    ],
    tails=[
        (1e8, 1.0, 1.0, 0.5),
        (1e-12, 0.0, 1.0, 0.5),
        (3.9, 0.0, 1.0, -0.25),
        (90.0, 0.0, 1.0, -1e-6),
    ],
    outside=[(-0.5, 0.0, 1.0, 0.5), (5.0, 0.0, 1.0, -0.25), (float("inf"), 0.0, 1.0, 0.2)],
    mean=lambda mu, sigma, xi: if_above(-1.0, -xi, lambda x: mu + sigma / (1.0 + x)),
    variance=lambda mu, sigma, xi: if_above(
        -0.5, -xi, lambda x: (sigma / (1.0 + x)) ** 2 / (1.0 + 2.0 * x)
    ),
    ends=lambda mu, sigma, xi: (mu, np.where(np.less(xi, 0.0), _end(mu, sigma, xi), math.inf)),
)
def generalized_pareto_lpdf(y: Operand, mu: Operand, sigma: Operand, xi: Operand) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-\\log \\sigma - (1 + 1 /
    \\xi) \\log(1 + \\xi z)` from :math:`\\mu` on, where :math:`1 + \\xi z > 0`. It is exponential
    where :math:`\\xi = 0`. In SciPy ``scipy.stats.genpareto(xi, mu, sigma)``.

    >>> import varmat as vm
    >>> vm.generalized_pareto_lpdf(1.0, 1.0, 1.0, 0.2)
    -0.0
    """
    inv = 1.0 / sigma
    z = (y - mu) * inv
    base = 1.0 + xi * z
    logarithm, in_xi = power_logarithm(z, xi)
    rate = -(1.0 + xi) * inv / base
    return LogDensity(
        -np.log(sigma),
        -(1.0 + xi) * logarithm,
        y=rate,
        mu=-rate,
        sigma=-inv - rate * z,
        xi=-in_xi - z / base,
        support=(z >= 0.0) & (base > 0.0) & (y < math.inf),
    )


def _end(mu: Operand, sigma: Operand, xi: Operand) -> Operand:
    return mu - sigma / np.where(np.equal(xi, 0.0), 1.0, xi)
