"""Bernoulli and binomial distributions, of a probability and of its log odds."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import finite, nonnegative
from varmat.densities.density import not_nan, probability, zero_or_one
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.deviances import binomial_deviance, binomial_logit_deviance
from varmat.functions.special.gamma_functions import lchoose
from varmat.functions.special.logistic_functions import expit
from varmat.functions.special.stirling import log_factorial_excess
from varmat.typing import Operand

__all__ = ["bernoulli_logit_lpmf", "bernoulli_lpmf", "binomial_logit_lpmf", "binomial_lpmf"]


def _of_both(n: Operand, m: Operand, theta: Operand) -> tuple[Operand, Operand, Operand]:
    """Compute the log probabilities of n successes and of m failures, and the derivative of their
    sum; the probabilities are neither 0 nor 1.
    """
    return n * np.log(theta), m * np.log1p(-theta), n / theta - m / (1.0 - theta)


# The binomial coefficient has no terms of the size of N log(N). They are in the deviance from the
# most likely probability, which is written without them: see `varmat.functions.special.deviances`.
def _log_choices(n: Operand, trials: Operand, fast: bool) -> Operand:
    if fast:
        return lchoose(trials, n)
    return log_factorial_excess(trials) - log_factorial_excess(n) - log_factorial_excess(trials - n)


def _is_possible(n: Operand, trials: Operand) -> Operand:
    return (n >= 0.0) & (n <= trials) & (np.floor(n) == n)


# The choices in `odds` and `against` are of what to divide by: a quotient by zero that is not taken
# would be 0 times infinity in the second derivative.
@univariate(
    "Bernoulli distribution",
    "n",
    n=("n", not_nan),
    theta=("Probability parameter", probability),
    fast=Fast(),
    points=[(1, 0.3), (0, 0.3), (1, 0.999), (0, 1e-9)],
    tails=[(1, 1e-300), (0, 1.0 - 2.0**-53)],
    outside=[(2, 0.5), (0.5, 0.5), (-1, 0.5)],
    mean=lambda theta: theta,
    variance=lambda theta: theta * (1.0 - theta),
    ends=(0, 1),
)
def bernoulli_lpmf(n: Operand, theta: Operand, fast: bool) -> LogDensity:
    """The log mass is :math:`\\log \\theta` for n = 1 and :math:`\\log(1 - \\theta)` for n =
    0, with the derivatives :math:`1 / \\theta` and :math:`-1 / (1 - \\theta)`. In SciPy
    ``scipy.stats.bernoulli(theta)``.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.bernoulli_lpmf, argnums=1)([1, 0, 1], 0.5)
    (-2.0794415416798357, 2.0)
    """
    m = 1.0 - n
    if fast:
        wins, losses, slope = _of_both(n, m, theta)
    else:
        wins = np.where(n > 0.5, np.log(theta), 0.0)
        losses = np.where(n > 0.5, 0.0, np.log1p(-theta))
        slope = n / np.where(n > 0.5, theta, 1.0) - m / np.where(n > 0.5, 1.0, 1.0 - theta)
    return LogDensity(wins, losses, theta=slope, support=zero_or_one.holds(n))


# With t = alpha for a success and -alpha for a failure: log p = log(expit(t)) = min(t, 0) - log(1 +
# exp(-|t|)). The absolute value is written as an extreme, which has a derivative at 0 that is right
# in both formulas that use it. So is the choice of 1 or e, which is at most 1: `where` takes
# several times as long as an extreme, all more if what it selects is random.
@univariate(
    "Bernoulli distribution of the log odds",
    "n",
    n=("n", not_nan),
    alpha=("Logit transformed probability parameter", not_nan),
    fast=Fast(),
    points=[(1, 0.3), (0, 0.3), (1, -4.0), (0, 4.0), (1, 30.0), (0, 0.0), (1, 0.0)],
    tails=[(1, 700.0), (0, 700.0), (1, -1e5)],
    outside=[(2, 0.5), (0.5, 0.5), (-1, 0.5)],
    mean=lambda alpha: expit(alpha),
    variance=lambda alpha: expit(alpha) * expit(-alpha),
    ends=(0, 1),
)
def bernoulli_logit_lpmf(n: Operand, alpha: Operand, fast: bool) -> LogDensity:
    """With the log odds :math:`\\alpha` the log mass is :math:`-\\log(1 + e^{-\\alpha})` for
    n = 1 and :math:`-\\log(1 + e^{\\alpha})` for n = 0; the derivative is n minus the probability
    ``expit(alpha)``.

    >>> import varmat as vm
    >>> vm.value_and_grad(vm.bernoulli_logit_lpmf, argnums=1)([1, 0, 1], 0.0)
    (-2.0794415416798357, 0.5)
    """
    # Where this exponential overflows, the value does.
    sign = 1.0 - (n + n)
    if fast:
        above = e = np.exp(sign * alpha)
        chance = -np.log1p(e)
    else:
        t = -sign * alpha
        e = np.exp(np.minimum(t, -t))
        chance = np.minimum(t, 0.0) - np.log1p(e)
        above = np.maximum(t <= 0.0, e)
    return LogDensity(chance, alpha=sign * above / (-1.0 - e), support=zero_or_one.holds(n))


bernoulli_lpmf.data_domain = bernoulli_logit_lpmf.data_domain = lambda *_: zero_or_one


@univariate(
    "binomial distribution",
    "n",
    "N",
    n=("Successes variable", not_nan),
    N=("Population size parameter", nonnegative),
    theta=("Probability parameter", probability),
    fast=Fast(counts=("N",)),
    points=[(3, 10, 0.35), (0, 10, 0.01), (10, 10, 0.99), (40, 100, 0.5), (0, 0, 0.5)],
    tails=[
        (1, 2, 1e-300),
        (500000, 1000000, 0.5001),
        (1, 10, 1e-12),
        (10**10, 3 * 10**10, 0.33334),
    ],
    outside=[(11, 10, 0.5), (-1, 10, 0.5), (2.5, 10, 0.5)],
    mean=lambda N, theta: N * theta,
    variance=lambda N, theta: N * theta * (1.0 - theta),
    ends=lambda N, theta: (0, N),
)
def binomial_lpmf(n: Operand, N: Operand, theta: Operand, fast: bool) -> LogDensity:
    """The log mass is :math:`\\log \\binom{N}{n} + n \\log \\theta + (N - n) \\log(1 -
    \\theta)`, with the derivative :math:`n / \\theta - (N - n) / (1 - \\theta)`. In SciPy
    ``scipy.stats.binom(N, theta)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda theta: vm.binomial_lpmf([3, 4], 10, theta), 0.5)
    -12.0
    """
    m = N - n
    if fast:
        wins, losses, slope = _of_both(n, m, theta)
        chance = wins + losses
    else:
        chance = -binomial_deviance(n, N, theta)
        slope = n / np.where(n > 0.0, theta, 1.0) - m / np.where(n < N, 1.0 - theta, 1.0)
        wins = np.where(n > 0.0, n * np.log(theta), 0.0)
        losses = np.where(n < N, m * np.log1p(-theta), 0.0)
    return LogDensity(
        _log_choices(n, N, fast),
        chance,
        theta=slope,
        support=_is_possible(n, N),
        dropping=(wins, losses),
    )


# With e = exp(-|alpha|):  log(expit(alpha)) = min(alpha, 0) - log(1 + e), and of the complement
# min(-alpha, 0) - log(1 + e).
@univariate(
    "binomial distribution of the log odds",
    "n",
    "N",
    n=("Successes variable", not_nan),
    N=("Population size parameter", nonnegative),
    alpha=("Probability parameter", finite),
    fast=Fast(counts=("N",)),
    points=[
        (3, 10, 0.3),
        (0, 10, -4.0),
        (10, 10, 4.0),
        (40, 100, 0.5),
        (0, 0, 0.5),
        (10, 10, 30.0),
        (3, 10, 0.0),
    ],
    tails=[
        (1, 2, 700.0),
        (10, 10, 700.0),
        (0, 10, -700.0),
        (500000, 1000000, 1e-3),
        (10**10, 3 * 10**10, -0.6931),
    ],
    outside=[(11, 10, 0.5), (-1, 10, 0.5), (2.5, 10, 0.5)],
    mean=lambda N, alpha: N * expit(alpha),
    variance=lambda N, alpha: N * expit(alpha) * expit(-alpha),
    ends=lambda N, alpha: (0, N),
)
def binomial_logit_lpmf(n: Operand, N: Operand, alpha: Operand, fast: bool) -> LogDensity:
    """With the log odds :math:`\\alpha` the log mass is :math:`\\log \\binom{N}{n} - n
    \\log(1 + e^{-\\alpha}) - (N - n) \\log(1 + e^{\\alpha})`, with the derivative ``n - N *
    expit(alpha)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda alpha: vm.binomial_logit_lpmf([3, 4], 10, alpha), 0.0)
    -3.0
    """
    m = N - n
    e = np.exp(np.minimum(alpha, -alpha))
    saved = n * np.minimum(alpha, 0.0) + m * np.minimum(-alpha, 0.0) - N * np.log1p(e)
    return LogDensity(
        _log_choices(n, N, fast),
        saved if fast else -binomial_logit_deviance(n, N, alpha),
        alpha=(n * np.maximum(alpha <= 0.0, e) - m * np.maximum(alpha > 0.0, e)) / (1.0 + e),
        support=_is_possible(n, N),
        dropping=(saved,),
    )
