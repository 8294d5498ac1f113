"""Distributions of positive numbers: lognormal, gamma, inverse gamma, exponential, chi-square,
Weibull, Rayleigh, inverse Gaussian.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive, positive_finite
from varmat.densities.density import HALF_LOG_TWO_PI, LARGEST, LN2, not_nan
from varmat.densities.moments import gamma_moments, if_above
from varmat.densities.normal import standardised
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.gamma_functions import gammaln
from varmat.functions.special.zeta_functions import digamma
from varmat.typing import Operand

__all__ = [
    "chi_square_lpdf",
    "exponential_lpdf",
    "gamma_lpdf",
    "inv_gamma_lpdf",
    "inv_gaussian_lpdf",
    "lognormal_lpdf",
    "rayleigh_lpdf",
    "weibull_lpdf",
]

VARIABLE = ("Random variable", not_nan)
SHAPE = ("Shape parameter", positive_finite)
RATE = ("Inverse scale parameter", positive_finite)
SCALE = ("Scale parameter", positive_finite)


@univariate(
    "lognormal distribution",
    y=VARIABLE,
    mu=("Location parameter", finite),
    sigma=SCALE,
    lazy=("y", "mu"),
    fast=Fast(number="sigma"),
    points=[(0.3, 0.1, 1.5), (4.0, 0.7, 0.3), (1e-9, -20.0, 1e3), (700.0, 6.5, 1e-2)],
    tails=[(1e-300, 3.0, 0.5), (1e300, -3.0, 2.0)],
    outside=[(-1.0, 0.1, 1.5), (0.0, 0.1, 1.5)],
    mean=lambda mu, sigma: np.exp(mu + 0.5 * sigma**2),
    variance=lambda mu, sigma: np.exp(2.0 * mu + sigma**2) * np.expm1(sigma**2),
    ends=(0.0, math.inf),
)
def lognormal_lpdf(y: Operand, mu: Operand, sigma: Operand, fast: bool) -> LogDensity:
    """With :math:`z = (\\log y - \\mu) / \\sigma` the log density is :math:`-\\log y - \\log
    \\sigma - z^2 / 2 - \\log(2\\pi) / 2`. In SciPy ``scipy.stats.lognorm(sigma,
    scale=exp(mu))``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.lognormal_lpdf([1.0, 1.0], mu, 1.0), 2.0)
    -4.0
    """
    log_y = np.log(y)
    inv = 1.0 / sigma
    z, s = standardised(log_y, mu, inv, fast)
    return LogDensity(
        -np.log(sigma),
        -log_y,
        -0.5 * z * z,
        -HALF_LOG_TWO_PI,
        y=-(1.0 + s) / y,
        mu=s,
        sigma=s * z - inv,
        support=y > 0.0,
    )


# In this slope, and in those below, dividing 0 by the smallest number gives 0, and 0 for the
# derivative in y. The derivative in the shape overflows to infinity, as it should.
@univariate(
    "gamma distribution",
    y=VARIABLE,
    alpha=SHAPE,
    beta=RATE,
    fast=Fast(),
    points=[(0.3, 2.0, 1.5), (4.0, 0.7, 0.3), (1e-9, 0.1, 1e3), (70.0, 65.0, 1.1), (1.5, 1.0, 2.0)],
    tails=[(41.0, 45.0, 1.1), (1e-300, 1e-3, 1.0), (1000.0, 2.0, 1.0), (1.0, 1e6, 1.1e6)],
    outside=[(-1.0, 2.0, 1.5)],
    mean=lambda alpha, beta: alpha / beta,
    variance=lambda alpha, beta: alpha / beta**2,
    ends=(0.0, math.inf),
)
def gamma_lpdf(y: Operand, alpha: Operand, beta: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`\\alpha \\log \\beta - \\log\\Gamma(\\alpha) + (\\alpha - 1)
    \\log y - \\beta y`: shape :math:`\\alpha`, rate :math:`\\beta`, mean :math:`\\alpha / \\beta`.
    In SciPy ``scipy.stats.gamma(alpha, scale=1 / beta)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda beta: vm.gamma_lpdf([1.0, 3.0], 2.0, beta), 1.0)
    0.0
    """
    log_y = np.log(y)
    if fast:
        log_power = (alpha - 1.0) * log_y
        slope = (alpha - 1.0) / y
    else:
        log_power = np.where(alpha == 1.0, 0.0, (alpha - 1.0) * log_y)
        slope = (alpha - 1.0) / np.where((alpha == 1.0) & (y == 0.0), 5e-324, y)
    return LogDensity(
        -gammaln(alpha),
        alpha * np.log(beta),
        log_power,
        -beta * y,
        y=slope - beta,
        alpha=np.log(beta) - digamma(alpha) + log_y,
        beta=alpha / beta - y,
        support=(y >= 0.0) & (y <= LARGEST),
    )


@univariate(
    "inverse gamma distribution",
    y=VARIABLE,
    alpha=SHAPE,
    beta=SCALE,
    lazy=("y",),
    points=[
        (0.3, 2.0, 1.5),
        (4.0, 0.7, 0.3),
        (1e-3, 0.1, 1e-2),
        (1.1, 65.0, 70.0),
        (1.5, 1.0, 2.0),
    ],
    tails=[(0.03, 45.0, 1.1), (1e300, 1e-3, 1.0), (1e-3, 2.0, 1.0)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    mean=lambda alpha, beta: if_above(1.0, alpha, lambda a: beta / (a - 1.0)),
    variance=lambda alpha, beta: if_above(
        2.0, alpha, lambda a: (beta / (a - 1.0)) ** 2 / (a - 2.0)
    ),
    ends=(0.0, math.inf),
)
def inv_gamma_lpdf(y: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """The log density is :math:`\\alpha \\log \\beta - \\log\\Gamma(\\alpha) - (\\alpha + 1)
    \\log y - \\beta / y`. In SciPy ``scipy.stats.invgamma(alpha, scale=beta)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda beta: vm.inv_gamma_lpdf([0.5, 0.5], 2.0, beta), 1.0)
    0.0
    """
    log_y = np.log(y)
    u = 1.0 / y
    return LogDensity(
        -gammaln(alpha),
        alpha * np.log(beta),
        -(alpha + 1.0) * log_y,
        -beta * u,
        y=(beta * u - alpha - 1.0) * u,
        alpha=np.log(beta) - digamma(alpha) - log_y,
        beta=alpha / beta - u,
        support=y > 0.0,
    )


@univariate(
    "exponential distribution",
    y=VARIABLE,
    beta=RATE,
    points=[(0.3, 1.5), (4.0, 0.3), (1e-9, 1e3), (70.0, 1e-3)],
    tails=[(1e10, 2e-10), (1e-200, 2e200)],
    outside=[(-1.0, 1.5)],
    mean=lambda beta: 1.0 / beta,
    variance=lambda beta: 1.0 / beta**2,
    ends=(0.0, math.inf),
)
def exponential_lpdf(y: Operand, beta: Operand) -> LogDensity:
    """The log density is :math:`\\log \\beta - \\beta y`, with the rate :math:`\\beta`. In
    SciPy ``scipy.stats.expon(scale=1 / beta)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda beta: vm.exponential_lpdf([0.5, 1.5], beta), 1.0)
    0.0
    """
    return LogDensity(np.log(beta), -beta * y, y=-beta, beta=1.0 / beta - y, support=y >= 0.0)


@univariate(
    "chi-square distribution",
    y=VARIABLE,
    nu=("Degrees of freedom parameter", positive_finite),
    fast=Fast(),
    points=[(0.3, 2.5), (4.0, 0.7), (1e-9, 0.1), (70.0, 65.0), (1.5, 2.0)],
    tails=[(50.0, 55.0), (1e-300, 1e-3), (1000.0, 2.0)],
    outside=[(-1.0, 2.0)],
    mean=lambda nu: nu,
    variance=lambda nu: 2.0 * nu,
    ends=(0.0, math.inf),
)
def chi_square_lpdf(y: Operand, nu: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`-\\frac\\nu2 \\log 2 - \\log\\Gamma(\\frac\\nu2) +
    (\\frac\\nu2 - 1) \\log y - \\frac y2`. In SciPy ``scipy.stats.chi2(nu)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda y: vm.chi_square_lpdf(y, 4.0), 2.0)
    0.0
    """
    half = 0.5 * nu
    log_y = np.log(y)
    if fast:
        log_power = (half - 1.0) * log_y
        slope = (half - 1.0) / y
    else:
        log_power = np.where(nu == 2.0, 0.0, (half - 1.0) * log_y)
        slope = (half - 1.0) / np.where((nu == 2.0) & (y == 0.0), 5e-324, y)
    return LogDensity(
        -gammaln(half) - LN2 * half,
        log_power,
        -0.5 * y,
        y=slope - 0.5,
        nu=-0.5 * digamma(half) - 0.34657359027997264 + 0.5 * log_y,
        support=(y >= 0.0) & (y <= LARGEST),
    )


@univariate(
    "Weibull distribution",
    y=VARIABLE,
    alpha=SHAPE,
    sigma=SCALE,
    fast=Fast(),
    points=[(0.3, 2.0, 1.5), (4.0, 0.7, 0.3), (1e-9, 0.1, 1e3), (70.0, 6.5, 65.0), (1.5, 1.0, 2.0)],
    tails=[(1e-8, 2.0, 1.0), (1e3, 3.0, 2.0), (1e-300, 0.01, 1.0)],
    outside=[(-1.0, 2.0, 1.5)],
    mean=lambda alpha, sigma: gamma_moments(sigma, 1.0 / alpha)[0],
    variance=lambda alpha, sigma: gamma_moments(sigma, 1.0 / alpha)[1],
    ends=(0.0, math.inf),
)
def weibull_lpdf(y: Operand, alpha: Operand, sigma: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`\\log \\alpha + (\\alpha - 1) \\log y - \\alpha \\log
    \\sigma - (y / \\sigma)^\\alpha`. In SciPy ``scipy.stats.weibull_min(alpha, scale=sigma)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda sigma: vm.weibull_lpdf([1.0, 1.0], 2.0, sigma), 1.0)
    0.0
    """
    log_y = np.log(y)
    u = y / sigma
    t = np.power(u, alpha)
    if fast:
        log_power = (alpha - 1.0) * log_y
        slope = (alpha - 1.0 - alpha * t) / y
    else:
        log_power = np.where(alpha == 1.0, 0.0, (alpha - 1.0) * log_y)
        slope = (alpha - 1.0) / np.where((alpha == 1.0) & (y == 0.0), 5e-324, y) - alpha * np.power(
            u, alpha - 1.0
        ) / sigma
    return LogDensity(
        np.log(alpha),
        log_power,
        -alpha * np.log(sigma),
        -t,
        y=slope,
        alpha=1.0 / alpha + np.log(u) * (1.0 - t),
        sigma=alpha * (t - 1.0) / sigma,
        support=(y >= 0.0) & (y <= LARGEST),
    )


@univariate(
    "Rayleigh distribution",
    y=VARIABLE,
    sigma=("Scale parameter", positive),
    lazy=("sigma",),
    points=[(1.3, 2.0), (0.4, 0.9), (3.9, 1.5), (1e-9, 1e-6)],
    tails=[(1e3, 2.0), (1e-300, 1e5), (1.0 + 1e-6, 1.0)],
    outside=[(-1.0, 1.5), (0.0, 1.5), (float("inf"), 1.5)],
    mean=lambda sigma: math.sqrt(0.5 * math.pi) * sigma,
    variance=lambda sigma: (2.0 - 0.5 * math.pi) * sigma**2,
    ends=(0.0, math.inf),
)
def rayleigh_lpdf(y: Operand, sigma: Operand) -> LogDensity:
    """The log density is :math:`\\log y - 2 \\log \\sigma - y^2 / 2 \\sigma^2`. In SciPy
    ``scipy.stats.rayleigh(scale=sigma)``.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.rayleigh_lpdf)(1.0, 1.0)
    (-0.5, 0.0)
    """
    log_y = np.log(y)
    inv = 1.0 / sigma
    z = y * inv
    return LogDensity(
        -2.0 * np.log(sigma),
        log_y,
        -0.5 * z * z,
        y=(1.0 - z) * (1.0 + z) / y,
        sigma=(z * z - 2.0) * inv,
        support=(y > 0.0) & (y <= LARGEST),
    )


@univariate(
    "inverse Gaussian (Wald) distribution",
    y=VARIABLE,
    mu=("Location parameter", positive_finite),
    lam=SHAPE,
    points=[(1.3, 2.0, 1.5), (0.4, 0.9, 3.0), (3.9, 1.5, 0.7), (2.0, 1.9, 8.0), (0.05, 1.0, 0.3)],
    tails=[(1e-3, 1.0, 1.0), (1e3, 1.0, 1.0), (1.0, 1e6, 2.0), (1.0 + 1e-9, 1.0, 1e6)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5), (float("inf"), 2.0, 1.5)],
    mean=lambda mu, lam: mu,
    variance=lambda mu, lam: mu**3 / lam,
    ends=(0.0, math.inf),
)
def inv_gaussian_lpdf(y: Operand, mu: Operand, lam: Operand) -> LogDensity:
    """With the shape :math:`\\lambda` the log density is :math:`\\frac12 \\log
    \\frac{\\lambda}{2 \\pi y^3} - \\frac{\\lambda (y - \\mu)^2}{2 \\mu^2 y}`: that of the time in
    which Brownian motion with a drift first reaches a level. In SciPy
    ``scipy.stats.invgauss(mu / lam, scale=lam)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.inv_gaussian_lpdf([1.0, 3.0], mu, 1.5), 2.0)
    0.0
    """
    q = (y - mu) / mu
    square = q * q / y
    return LogDensity(
        0.5 * np.log(lam),
        -1.5 * np.log(y),
        -0.5 * lam * square,
        -HALF_LOG_TWO_PI,
        y=-(1.5 + 0.5 * lam * (q / mu) * (y + mu) / y) / y,
        mu=lam * (q / mu) / mu,
        lam=0.5 / lam - 0.5 * square,
        support=(y > 0.0) & (y < math.inf),
    )
