"""Distributions of numbers in an interval: uniform, beta, beta proportion."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain, finite, positive_finite
from varmat.densities.density import not_nan
from varmat.densities.univariate import Demand, Fast, LogDensity, univariate
from varmat.functions.special.gamma_functions import betaln, gammaln
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.typing import Operand

__all__ = ["beta_lpdf", "beta_proportion_lpdf", "uniform_lpdf"]

proper_fraction = Domain(
    "positive and less than 1", lambda x: (x > 0) & (x < 1), lambda x: x.min() > 0 and x.max() < 1
)


@univariate(
    "uniform distribution",
    y=("Random variable", not_nan),
    alpha=("Lower bound parameter", finite),
    beta=("Upper bound parameter", finite),
    demand=Demand("beta", lambda y, alpha, beta: beta > alpha, "greater than the lower bound"),
    points=[(0.3, 0.1, 1.5), (0.2, -4.0, 0.35), (0.25, -1e-9, 1e3), (0.31, 0.2, 0.7)],
    outside=[(-1.0, 0.1, 1.5), (1.6, 0.1, 1.5)],
    mean=lambda alpha, beta: 0.5 * alpha + 0.5 * beta,
    variance=lambda alpha, beta: (beta - alpha) ** 2 / 12.0,
    ends=lambda alpha, beta: (alpha, beta),
)
def uniform_lpdf(y: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """The log density is :math:`-\\log(\\beta - \\alpha)` between the bounds. In SciPy
    ``scipy.stats.uniform(alpha, beta - alpha)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda beta: vm.uniform_lpdf([0.5, 1.5], 0.0, beta), 2.0)
    -1.0
    """
    s = 1.0 / (beta - alpha)
    return LogDensity(
        -np.log(beta - alpha), y=0.0, alpha=s, beta=-s, support=(y >= alpha) & (y <= beta)
    )


# Dividing 0 by the smallest number gives 0, and 0 for its derivative in theta. The derivative in
# the shape overflows to infinity, as it should.
def _powers(theta: Operand, a: Operand, b: Operand, fast: bool) -> tuple[Operand, ...]:
    """Compute log(theta) and log(1 - theta), these times a - 1 and b - 1, and the derivative of the
    sum of the last two in theta.
    """
    log_theta, log_rest = np.log(theta), np.log1p(-theta)
    rising, falling, remainder = (a - 1.0) * log_theta, (b - 1.0) * log_rest, 1.0 - theta
    if not fast:
        rising, falling = np.where(a == 1.0, 0.0, rising), np.where(b == 1.0, 0.0, falling)
        remainder = np.where((b == 1.0) & (theta == 1.0), 5e-324, remainder)
        theta = np.where((a == 1.0) & (theta == 0.0), 5e-324, theta)
    return log_theta, log_rest, rising, falling, (a - 1.0) / theta - (b - 1.0) / remainder


@univariate(
    "beta distribution",
    theta=("Random variable", not_nan),
    alpha=("First shape parameter", positive_finite),
    beta=("Second shape parameter", positive_finite),
    fast=Fast(),
    points=[
        (0.3, 2.0, 3.0),
        (0.9, 0.7, 0.3),
        (1e-9, 0.1, 10.0),
        (0.6, 65.0, 40.0),
        (0.5, 1.0, 1.0),
    ],
    tails=[(1e-6, 2.0, 3.0), (0.999999, 2.0, 3.0), (1e-300, 1e-3, 5.0), (0.5001, 1e6, 1e6)],
    outside=[(-1.0, 2.0, 1.5), (1.5, 2.0, 1.5)],
    mean=lambda alpha, beta: alpha / (alpha + beta),
    variance=lambda alpha, beta: (
        alpha / (alpha + beta) * (beta / (alpha + beta)) / (alpha + beta + 1.0)
    ),
    ends=(0.0, 1.0),
)
def beta_lpdf(theta: Operand, alpha: Operand, beta: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`-\\log B(\\alpha, \\beta) + (\\alpha - 1) \\log \\theta +
    (\\beta - 1) \\log(1 - \\theta)`. In SciPy ``scipy.stats.beta(alpha, beta)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda theta: vm.beta_lpdf(theta, 3.0, 3.0), 0.5)
    0.0
    """
    # Terms dropped as in Stan are three, which cancel if both shapes are large.
    log_theta, log_rest, rising, falling, slope = _powers(theta, alpha, beta, fast)
    return LogDensity(
        -betaln(alpha, beta),
        rising,
        falling,
        theta=slope,
        alpha=zeta_difference(1.0, alpha, beta) + log_theta,
        beta=zeta_difference(1.0, beta, alpha) + log_rest,
        support=(theta >= 0.0) & (theta <= 1.0),
        dropping=(gammaln(alpha + beta), -gammaln(alpha), -gammaln(beta), rising, falling),
    )


@univariate(
    "beta distribution of mean and precision",
    theta=("Random variable", not_nan),
    mu=("Location parameter", proper_fraction),
    kappa=("Precision parameter", positive_finite),
    fast=Fast(),
    points=[
        (0.3, 0.4, 3.0),
        (0.9, 0.6, 0.7),
        (1e-9, 0.01, 10.0),
        (0.61, 0.6, 105.0),
        (0.4, 0.5, 2.0),
    ],
    tails=[(1e-6, 0.4, 3.0), (0.999999, 0.6, 3.0), (1e-300, 1e-3, 5.0), (0.5001, 0.5, 2e6)],
    outside=[(-1.0, 0.4, 1.5), (1.5, 0.4, 1.5)],
    mean=lambda mu, kappa: mu,
    variance=lambda mu, kappa: mu * (1.0 - mu) / (1.0 + kappa),
    ends=(0.0, 1.0),
)
def beta_proportion_lpdf(theta: Operand, mu: Operand, kappa: Operand, fast: bool) -> LogDensity:
    """`beta_lpdf` with the shapes :math:`\\alpha = \\mu\\kappa` and :math:`\\beta = (1 -
    \\mu)\\kappa`: the mean is :math:`\\mu`, the variance :math:`\\mu (1 - \\mu) / (1 + \\kappa)`.
    In SciPy ``scipy.stats.beta(mu * kappa, (1 - mu) * kappa)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.beta_proportion_lpdf([0.25, 0.75], mu, 4.0), 0.5)
    0.0
    """
    a = mu * kappa
    nu = 1.0 - mu
    b = nu * kappa
    log_theta, log_rest, rising, falling, slope = _powers(theta, a, b, fast)
    first = zeta_difference(1.0, a, b) + log_theta
    second = zeta_difference(1.0, b, a) + log_rest
    return LogDensity(
        -betaln(a, b),
        rising,
        falling,
        theta=slope,
        mu=kappa * (first - second),
        kappa=mu * first + nu * second,
        support=(theta >= 0.0) & (theta <= 1.0),
        dropping=(gammaln(kappa), -gammaln(a) - gammaln(b), rising, falling),
    )
