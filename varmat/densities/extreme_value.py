"""Distributions of extreme values: Gumbel, Fréchet."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive, positive_finite
from varmat.densities.density import LARGEST, not_nan
from varmat.densities.moments import gamma_moments, if_above
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.typing import Operand

__all__ = ["frechet_lpdf", "gumbel_lpdf"]


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
    y - (\\sigma / y)^\\alpha`: that of the reciprocal of a Weibull variable. In SciPy
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
