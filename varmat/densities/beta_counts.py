"""Distributions of counts with a beta distributed probability: beta-binomial, beta negative
binomial, Yule-Simon."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import nonnegative, positive_finite
from varmat.densities.density import is_count, not_nan
from varmat.densities.moments import if_above
from varmat.densities.univariate import LogDensity, univariate
from varmat.functions.special.gamma_functions import gammaln, lbeta, lchoose, log_rising_factorial
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.typing import Operand

__all__ = ["beta_binomial_lpmf", "beta_neg_binomial_lpmf", "yule_simon_lpmf"]


# The difference of two log beta functions is written with rising factorials, which lose no digits
# for large shapes.
@univariate(
    "beta-binomial distribution",
    "n",
    "N",
    n=("Successes variable", not_nan),
    N=("Population size parameter", nonnegative),
    alpha=("First prior sample size parameter", positive_finite),
    beta=("Second prior sample size parameter", positive_finite),
    points=[
        (5, 20, 10.0, 25.0),
        (0, 5, 0.5, 1.5),
        (6, 7, 4.0, 0.8),
        (0, 0, 2.0, 3.0),
        (40, 100, 3.0, 4.5),
    ],
    tails=[(2, 10, 1e-5, 1e-5), (3, 10, 1e8, 3e8), (5000, 10000, 2.0, 3.0)],
    outside=[(11, 10, 2.0, 3.0), (-1, 10, 2.0, 3.0), (2.5, 10, 2.0, 3.0)],
    mean=lambda N, alpha, beta: N * alpha / (alpha + beta),
    variance=lambda N, alpha, beta: (
        N
        * (alpha / (alpha + beta))
        * (beta / (alpha + beta))
        * ((alpha + beta + N) / (alpha + beta + 1.0))
    ),
    ends=lambda N, alpha, beta: (0, N),
)
def beta_binomial_lpmf(n: Operand, N: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """The log mass is :math:`\\log \\binom{N}{n} + \\log B(n + \\alpha, N - n + \\beta) -
    \\log B(\\alpha, \\beta)`, for a binomial count whose probability has a beta distribution of
    these shapes. In SciPy ``scipy.stats.betabinom(N, alpha, beta)``.

    >>> import varmat as vm
    >>> round(vm.beta_binomial_lpmf(3, 10, 1.0, 1.0), 12)
    -2.397895272798
    """
    m = N - n
    both = alpha + beta
    d = zeta_difference(1.0, both, N)
    return LogDensity(
        lchoose(N, n),
        log_rising_factorial(alpha, n)
        + log_rising_factorial(beta, m)
        - log_rising_factorial(both, N),
        alpha=zeta_difference(1.0, alpha, n) - d,
        beta=zeta_difference(1.0, beta, m) - d,
        support=(n >= 0.0) & (n <= N) & (np.floor(n) == n),
    )


@univariate(
    "beta negative binomial distribution",
    "n",
    n=("Failures variable", not_nan),
    r=("Number of successes parameter", positive_finite),
    alpha=("Prior success parameter", positive_finite),
    beta=("Prior failure parameter", positive_finite),
    points=[(3, 2.0, 1.5, 2.5), (0, 1.5, 0.5, 1.2), (12, 4.0, 3.0, 0.3), (40, 3.5, 12.0, 60.0)],
    tails=[(2, 1e-3, 1e3, 1e-2), (1000, 20.0, 3.0, 35.0), (3, 2.0, 1e6, 1e7)],
    outside=[(-1, 2.0, 1.5, 2.5), (0.5, 2.0, 1.5, 2.5), (float("inf"), 2.0, 1.5, 2.5)],
    mean=lambda r, alpha, beta: if_above(1.0, alpha, lambda a: r * beta / (a - 1.0)),
    variance=lambda r, alpha, beta: if_above(
        2.0,
        alpha,
        lambda a: r * (a + r - 1.0) * beta * (a + beta - 1.0) / ((a - 2.0) * (a - 1.0) ** 2),
    ),
    ends=(0, math.inf),
)
def beta_neg_binomial_lpmf(n: Operand, r: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """The log mass is :math:`\\log \\frac{\\Gamma(n + r)}{n!\\, \\Gamma(r)} + \\log
    B(\\alpha + r, \\beta + n) - \\log B(\\alpha, \\beta)`, for the failures before the r-th
    success, whose probability has a beta distribution of these shapes. In SciPy
    ``scipy.stats.betanbinom(r, alpha, beta)``.

    >>> import varmat as vm
    >>> round(vm.beta_neg_binomial_lpmf(0, 1.0, 1.0, 1.0), 12)
    -0.69314718056
    """
    both = alpha + beta
    trials = r + n
    d = zeta_difference(1.0, both, trials)
    return LogDensity(
        -gammaln(n + 1.0),
        log_rising_factorial(r, n),
        log_rising_factorial(alpha, r)
        + log_rising_factorial(beta, n)
        - log_rising_factorial(both, trials),
        r=zeta_difference(1.0, r, n) - zeta_difference(1.0, alpha + r, beta + n),
        alpha=zeta_difference(1.0, alpha, r) - d,
        beta=zeta_difference(1.0, beta, n) - d,
        support=is_count(n),
    )


@univariate(
    "Yule-Simon distribution",
    "n",
    n=("Outcome variable", not_nan),
    alpha=("Shape parameter", positive_finite),
    points=[(1, 0.7), (3, 2.5), (12, 1.0), (40, 6.0)],
    tails=[(2, 1e-5), (10**6, 1.5), (3, 1e8)],
    outside=[(0, 2.0), (-1, 2.0), (1.5, 2.0), (float("inf"), 2.0)],
    mean=lambda alpha: if_above(1.0, alpha, lambda a: a / (a - 1.0)),
    variance=lambda alpha: if_above(2.0, alpha, lambda a: (a / (a - 1.0)) ** 2 / (a - 2.0)),
    ends=(1, math.inf),
)
def yule_simon_lpmf(n: Operand, alpha: Operand) -> LogDensity:
    """The log mass is :math:`\\log \\alpha + \\log B(n, \\alpha + 1)`, for the trials up to a
    first success whose probability has a beta distribution of the shapes :math:`\\alpha` and 1.
    In SciPy ``scipy.stats.yulesimon(alpha)``.

    >>> import varmat as vm
    >>> round(vm.yule_simon_lpmf(1, 1.0), 12)
    -0.69314718056
    """
    return LogDensity(
        np.log(alpha) + lbeta(n, alpha + 1.0),
        alpha=1.0 / alpha - zeta_difference(1.0, alpha + 1.0, n),
        support=(n >= 1.0) & is_count(n),
    )


# As in Stan: the mass of a count below zero is zero here.
beta_binomial_lpmf.data_domain = None
