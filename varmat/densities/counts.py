"""Distributions of counts: Poisson and negative binomial, of the mean and of its logarithm;
geometric.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import Domain, finite, nonnegative, positive_finite
from varmat.densities.density import LARGEST, is_count, nonnegative_finite, not_nan
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.deviances import (
    neg_binomial_2_deviance,
    neg_binomial_2_log_deviance,
    poisson_log_deviance,
)
from varmat.functions.special.entropies_and_losses import kl_div
from varmat.functions.special.gamma_functions import gammaln, log_rising_factorial
from varmat.functions.special.precision_scores import (
    digamma_less_line,
    log1m_less_line,
    neg_binomial_2_log_mean_score,
    neg_binomial_2_log_score,
    neg_binomial_2_score,
)
from varmat.functions.special.stirling import log_factorial_excess, log_gamma_excess
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.typing import Operand

__all__ = [
    "geometric_lpmf",
    "neg_binomial_2_log_lpmf",
    "neg_binomial_2_lpmf",
    "neg_binomial_lpmf",
    "poisson_log_lpmf",
    "poisson_lpmf",
]

OUTSIDE = [(-1, 2.0, 1.5), (0.5, 2.0, 1.5), (float("inf"), 2.0, 1.5)]

# A log mass is the deviance from the most likely parameters plus Stirling's remainder: neither has
# terms of the size of n log(n) (see `varmat.functions.special.deviances`). Moderate counts take a
# form of fewer steps.


# The choice is between divisors. If it were between quotients, one by zero that is not taken would
# give 0 times infinity in the second derivative.
@univariate(
    "Poisson distribution",
    "n",
    n=("Random variable", not_nan),
    rate=("Rate parameter", nonnegative),
    fast=Fast(counts=("n",)),
    points=[(3, 2.5), (0, 1e-3), (40, 37.0), (1, 1e-9), (0, 50.0)],
    tails=[(1000000, 1000500.0), (5, 1e-300), (0, 700.0), (10**10, 1.00001e10), (3, 1e5)],
    outside=[point[:2] for point in OUTSIDE],
    mean=lambda rate: rate,
    variance=lambda rate: rate,
    ends=(0, math.inf),
)
def poisson_lpmf(n: Operand, rate: Operand, fast: bool) -> LogDensity:
    """With the rate :math:`\\lambda` the log mass is :math:`n \\log \\lambda - \\lambda -
    \\log n!`, with the derivative :math:`n / \\lambda - 1`. In SciPy
    ``scipy.stats.poisson(rate)``.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.poisson_lpmf, argnums=1)([0, 1], 1.0)
    (-2.0, -1.0)
    """
    # With an infinite rate the second term is the larger one.
    if fast:
        log_rate = np.log(rate)
        log_part = n * log_rate
        chance = log_part - rate
        remainder = gammaln(n + 1.0)
        quotient = n / rate
    else:
        chance = -np.where(rate <= LARGEST, kl_div(n, rate), rate)
        remainder = log_factorial_excess(n)
        quotient = n / np.where(n > 0.0, rate, 1.0)
        log_part = np.where((n > 0.0) & (rate <= LARGEST), n * np.log(rate), 0.0)
    return LogDensity(
        chance,
        -remainder,
        rate=quotient - 1.0,
        support=is_count(n, fast),
        dropping=(log_part, -rate),
    )


@univariate(
    "Poisson distribution of the log rate",
    "n",
    n=("Random variable", not_nan),
    alpha=("Log rate parameter", not_nan),
    fast=Fast(counts=("n",)),
    points=[(3, 0.9), (0, -7.0), (40, 3.6), (1, -20.0), (0, 4.0)],
    tails=[(1000000, 13.8), (5, -700.0), (0, 700.0), (10**10, 23.02586)],
    outside=[point[:2] for point in OUTSIDE],
    mean=lambda alpha: np.exp(alpha),
    variance=lambda alpha: np.exp(alpha),
    ends=(0, math.inf),
)
def poisson_log_lpmf(n: Operand, alpha: Operand, fast: bool) -> LogDensity:
    """The log mass is :math:`n \\alpha - e^\\alpha - \\log n!`, with the derivative
    :math:`n - e^\\alpha`.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.poisson_log_lpmf, argnums=1)([0, 1], 0.0)
    (-2.0, -1.0)
    """
    # Where the sum is 0 * -inf or inf - inf, its limit is the second term's.
    mean = np.exp(alpha)
    if fast:
        log_part = n * alpha
        chance = log_part - mean
        remainder = gammaln(n + 1.0)
    else:
        chance = -poisson_log_deviance(n, alpha)
        remainder = log_factorial_excess(n)
        log_part = np.where((n > 0.0) & (alpha < 710.0), n * alpha, 0.0)
    return LogDensity(
        chance, -remainder, alpha=n - mean, support=is_count(n, fast), dropping=(log_part, -mean)
    )


def _log_choices(n: Operand, phi: Operand, fast: bool) -> Operand:
    """Compute the log binomial coefficient of n + phi - 1 and n; if not fast, without terms of the
    size of n log(n).
    """
    if fast:
        return log_rising_factorial(phi, n) - gammaln(n + 1.0)
    return log_gamma_excess(n + phi) - log_gamma_excess(phi) - log_factorial_excess(n)


# The derivative in mu avoids the cancellation of n / mu - (n + phi) / (mu + phi), and its first
# quotient has a derivative of exactly zero for n = 0. The derivative in phi has two forms; the fast
# one has a term that equal counts share: see `varmat.functions.special.precision_scores`.
@univariate(
    "negative binomial distribution of mean and precision",
    "n",
    n=("n", not_nan),
    mu=("Location parameter", nonnegative_finite),
    phi=("Precision parameter", positive_finite),
    fast=Fast(counts=("n",)),
    points=[(3, 2.5, 1.3), (0, 1e-3, 0.5), (40, 37.0, 12.0), (1, 0.1, 4.0), (7, 50.0, 0.3)],
    tails=[(3, 2.5, 1e6), (1000, 1020.0, 35.0), (2, 1e5, 1e-3), (10**10, 1.2e10, 13.0)],
    outside=OUTSIDE,
    mean=lambda mu, phi: mu,
    variance=lambda mu, phi: mu + mu**2 / phi,
    ends=(0, math.inf),
)
def neg_binomial_2_lpmf(n: Operand, mu: Operand, phi: Operand, fast: bool) -> LogDensity:
    """The mean is :math:`\\mu` and the variance :math:`\\mu + \\mu^2 / \\phi`. The log mass
    is :math:`\\log \\binom{n + \\phi - 1}{n} + n \\log \\frac{\\mu}{\\mu + \\phi} + \\phi \\log
    \\frac{\\phi}{\\mu + \\phi}`, and for :math:`\\mu = 0` its limit: only the count 0 is possible.
    Stan refuses this mean. In SciPy ``scipy.stats.nbinom(phi, phi / (mu + phi))``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.neg_binomial_2_lpmf([1, 3], mu, 2.0), 2.0)
    0.0
    """
    ratio = mu / phi
    if fast:
        logarithm = np.log1p(ratio)
        chance = n * np.log(mu) - n * np.log(mu + phi) - phi * logarithm
        p = mu / (mu + phi)
        in_phi = digamma_less_line(phi, n) + n * p / phi + log1m_less_line(p, logarithm, phi)
        excess, log_part = (n - mu) / mu, n * np.log(mu)
    else:
        # The count 0 of mean 0 has the limits; the divisor is chosen, as for Poisson counts.
        usual = (n > 0.0) | (mu > 0.0)
        mean = np.where(usual, mu, 1.0)
        chance = np.where(usual, -neg_binomial_2_deviance(n, mean, phi), 0.0)
        in_phi = neg_binomial_2_score(n, mu, phi)
        excess = np.where(usual, (n - mean) / mean, -1.0)
        log_part = np.where(n > 0.0, n * np.log(mu), 0.0)
    return LogDensity(
        _log_choices(n, phi, fast),
        chance,
        mu=excess / (1.0 + ratio),
        phi=in_phi,
        support=is_count(n, fast),
        dropping=(
            _log_choices(n, phi, True),
            log_part,
            -n * np.log(mu + phi),
            -phi * np.log1p(ratio),
        ),
    )


@univariate(
    "negative binomial distribution of log mean and precision",
    "n",
    n=("n", not_nan),
    eta=("Log location parameter", finite),
    phi=("Precision parameter", positive_finite),
    fast=Fast(counts=("n",)),
    points=[(3, 0.9, 1.3), (0, -7.0, 0.5), (40, 3.6, 12.0), (1, -2.0, 4.0), (7, 4.0, 0.3)],
    tails=[
        (3, 0.9, 1e6),
        (1000, 6.93, 35.0),
        (2, 12.0, 1e-3),
        (2, 300.0, 1.5),
        (80000, 1e8, 1e-10),
        (10**10, 23.3, 13.0),
        (10**6, 900.0, 1e-303),
    ],
    outside=OUTSIDE,
    mean=lambda eta, phi: np.exp(eta),
    variance=lambda eta, phi: np.exp(eta) + np.exp(2.0 * eta) / phi,
    ends=(0, math.inf),
)
def neg_binomial_2_log_lpmf(n: Operand, eta: Operand, phi: Operand, fast: bool) -> LogDensity:
    """The mean is :math:`e^\\eta` and the variance :math:`e^\\eta + e^{2 \\eta} / \\phi`:
    `neg_binomial_2_lpmf` with ``mu = exp(eta)``, without overflow.

    >>> import varmat as vm
    >>> round(vm.gradient(lambda eta: vm.neg_binomial_2_log_lpmf([1, 3], eta, 2.0), 0.0), 12)
    1.333333333333
    """
    # Terms dropped as in Stan are two, which cancel if the mean is large.
    log_phi = np.log(phi)
    t = eta - log_phi
    e = np.exp(np.minimum(t, -t))
    m = np.log1p(e)
    logarithm = np.maximum(t, 0.0) + m
    if fast:
        chance = -n * (np.maximum(-t, 0.0) + m) - phi * logarithm
        above, below = np.maximum(t > 0.0, e), np.maximum(t <= 0.0, e)
        p = above / (1.0 + e)
        in_eta = (n * below - phi * above) / (1.0 + e)
        in_phi = digamma_less_line(phi, n) + n * p / phi + log1m_less_line(p, logarithm, phi)
    else:
        chance = -neg_binomial_2_log_deviance(n, eta, phi)
        in_eta = neg_binomial_2_log_mean_score(n, eta, phi)
        in_phi = neg_binomial_2_log_score(n, eta, phi)
    return LogDensity(
        _log_choices(n, phi, fast),
        chance,
        eta=in_eta,
        phi=in_phi,
        support=is_count(n, fast),
        dropping=(
            _log_choices(n, phi, True),
            n * eta,
            -n * (log_phi + logarithm),
            -phi * logarithm,
        ),
    )


@univariate(
    "negative binomial distribution of shape and inverse scale",
    "n",
    n=("Failures variable", not_nan),
    alpha=("Shape parameter", positive_finite),
    beta=("Inverse scale parameter", positive_finite),
    points=[(3, 2.0, 0.5), (0, 1.5, 1.2), (12, 4.0, 0.3), (40, 370.0, 12.0), (1, 0.1, 40.0)],
    tails=[(13, 1e11, 1e10), (11, 1e5, 1e4), (1000, 35.0, 0.036), (2, 1e-3, 1e5)],
    outside=OUTSIDE,
    mean=lambda alpha, beta: alpha / beta,
    variance=lambda alpha, beta: alpha * (1.0 + beta) / beta**2,
    ends=(0, math.inf),
)
def neg_binomial_lpmf(n: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """The mean is :math:`\\alpha / \\beta` and the variance :math:`\\alpha (1 + \\beta) /
    \\beta^2`. The log mass is :math:`\\log \\binom{n + \\alpha - 1}{n} - n \\log(1 + \\beta) -
    \\alpha \\log(1 + 1 / \\beta)`, for a Poisson count whose rate has a gamma distribution of
    this shape and inverse scale. In SciPy ``scipy.stats.nbinom(alpha, beta / (1 + beta))``.

    >>> import varmat as vm
    >>> vm.gradient(lambda beta: vm.neg_binomial_lpmf([1, 3], 4.0, beta), 2.0)
    0.0
    """
    logarithm = np.log1p(1.0 / beta)
    return LogDensity(
        _log_choices(n, alpha, True),
        -n * np.log1p(beta),
        -alpha * logarithm,
        alpha=zeta_difference(1.0, alpha, n) - logarithm,
        beta=(alpha / beta - n) / (1.0 + beta),
        support=is_count(n),
    )


@univariate(
    "geometric distribution",
    "n",
    n=("Failures variable", not_nan),
    theta=(
        "Probability parameter",
        Domain("positive and at most 1", lambda x: (x > 0.0) & (x <= 1.0)),
    ),
    points=[(3, 0.3), (0, 0.9), (40, 0.02), (1, 0.5)],
    tails=[(0, 1.0), (2, 1e-300), (10**10, 1e-9), (3, 1.0 - 1e-12)],
    outside=[(-1, 0.3), (0.5, 0.3), (1, 1.0), (float("inf"), 0.3)],
    mean=lambda theta: (1.0 - theta) / theta,
    variance=lambda theta: (1.0 - theta) / theta**2,
    ends=(0, math.inf),
)
def geometric_lpmf(n: Operand, theta: Operand) -> LogDensity:
    """The log mass is :math:`\\log \\theta + n \\log(1 - \\theta)`, for the failures before the
    first success, so n may be 0, as in R. In SciPy, which counts the success too,
    ``scipy.stats.geom(theta, loc=-1)``.

    >>> import varmat as vm
    >>> round(vm.geometric_lpmf([0, 2], 0.5), 12)
    -2.772588722240
    """
    failed = n > 0.0
    remainder = np.where(failed & (theta < 1.0), 1.0 - theta, 1.0)
    return LogDensity(
        np.log(theta),
        np.where(failed, n * np.log1p(-np.where(failed & (theta < 1.0), theta, 0.0)), 0.0),
        theta=1.0 / theta - n / remainder,
        support=is_count(n) & ((theta < 1.0) | (n == 0.0)),
    )
