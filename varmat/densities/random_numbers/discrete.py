"""Random counts: integers of distributions of one variable."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.densities.bernoulli import (
    bernoulli_logit_lpmf,
    bernoulli_lpmf,
    binomial_logit_lpmf,
    binomial_lpmf,
)
from varmat.densities.beta_counts import beta_binomial_lpmf, beta_neg_binomial_lpmf, yule_simon_lpmf
from varmat.densities.counts import (
    geometric_lpmf,
    neg_binomial_2_log_lpmf,
    neg_binomial_2_lpmf,
    neg_binomial_lpmf,
    poisson_log_lpmf,
    poisson_lpmf,
)
from varmat.densities.finite_populations import discrete_range_lpmf, hypergeometric_lpmf
from varmat.densities.random_numbers.row import Generator, log_gamma, poisson_counts, random_numbers
from varmat.functions.special.logistic_functions import expit
from varmat.typing import Operand, Result, Shape

__all__ = [
    "bernoulli_logit_rng",
    "bernoulli_rng",
    "beta_binomial_rng",
    "beta_neg_binomial_rng",
    "binomial_logit_rng",
    "binomial_rng",
    "discrete_range_rng",
    "geometric_rng",
    "hypergeometric_rng",
    "neg_binomial_2_log_rng",
    "neg_binomial_2_rng",
    "neg_binomial_rng",
    "poisson_log_rng",
    "poisson_rng",
    "yule_simon_rng",
]

# NumPy draws hypergeometric counts up to here.
small = Domain("nonnegative and less than 10**9", lambda x: (x >= 0) & (x < 10**9))


@random_numbers(bernoulli_lpmf)
def bernoulli_rng(rng: Generator, shape: Shape, theta: Operand) -> Result:
    """A draw is 1 where one of ``numpy.random.Generator.random()`` is less than the
    probability.
    """
    return rng.random(shape) < theta


@random_numbers(bernoulli_logit_lpmf)
def bernoulli_logit_rng(rng: Generator, shape: Shape, alpha: Operand) -> Result:
    """A draw is 1 where one of ``numpy.random.Generator.random()`` is less than
    ``expit(alpha)``.
    """
    return rng.random(shape) < expit(alpha)


@random_numbers(binomial_lpmf)
def binomial_rng(rng: Generator, shape: Shape, N: Operand, theta: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.binomial(N, theta)``."""
    return rng.binomial(N, theta, shape)


@random_numbers(binomial_logit_lpmf)
def binomial_logit_rng(rng: Generator, shape: Shape, N: Operand, alpha: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.binomial(N, expit(alpha))``."""
    return rng.binomial(N, expit(alpha), shape)


@random_numbers(beta_binomial_lpmf)
def beta_binomial_rng(
    rng: Generator, shape: Shape, N: Operand, alpha: Operand, beta: Operand
) -> Result:
    """The counts are binomial, of probabilities drawn as by `beta_rng`."""
    return rng.binomial(N, rng.beta(alpha, beta, shape))


@random_numbers(discrete_range_lpmf)
def discrete_range_rng(rng: Generator, shape: Shape, lower: Operand, upper: Operand) -> Result:
    """The numbers are from ``numpy.random.Generator.integers(lower, upper, endpoint=True)``."""
    return rng.integers(lower, upper, shape, endpoint=True)


@random_numbers(geometric_lpmf)
def geometric_rng(rng: Generator, shape: Shape, theta: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.geometric(theta)``, less 1."""
    return rng.geometric(theta, shape) - 1


@random_numbers(hypergeometric_lpmf, a=("", small), b=("", small))
def hypergeometric_rng(rng: Generator, shape: Shape, N: Operand, a: Operand, b: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.hypergeometric(a, b, N)``."""
    return rng.hypergeometric(a, b, N, shape)


@random_numbers(poisson_lpmf)
def poisson_rng(rng: Generator, shape: Shape, rate: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.poisson(rate)``. Rates beyond 64-bit
    integers are refused.
    """
    return poisson_counts("poisson_rng", rng, rate, shape)


@random_numbers(poisson_log_lpmf)
def poisson_log_rng(rng: Generator, shape: Shape, alpha: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.poisson(exp(alpha))``. Rates beyond
    64-bit integers are refused.
    """
    return poisson_counts("poisson_log_rng", rng, np.exp(alpha), shape)


@random_numbers(neg_binomial_lpmf)
def neg_binomial_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """The counts are Poisson numbers whose rates are gamma numbers, as by `gamma_rng`. Rates beyond
    64-bit integers are refused, also if they are drawn.
    """
    return poisson_counts("neg_binomial_rng", rng, rng.standard_gamma(alpha, shape) / beta, shape)


@random_numbers(neg_binomial_2_lpmf)
def neg_binomial_2_rng(rng: Generator, shape: Shape, mu: Operand, phi: Operand) -> Result:
    """The counts are Poisson numbers whose rates are gamma numbers, of the shape :math:`\\phi` and
    the mean :math:`\\mu`. Rates beyond 64-bit integers are refused, also if they are drawn.
    """
    return poisson_counts(
        "neg_binomial_2_rng", rng, mu * (rng.standard_gamma(phi, shape) / phi), shape
    )


@random_numbers(neg_binomial_2_log_lpmf)
def neg_binomial_2_log_rng(rng: Generator, shape: Shape, eta: Operand, phi: Operand) -> Result:
    """The counts are Poisson numbers whose rates are gamma numbers, of the shape :math:`\\phi` and
    the mean :math:`e^\\eta`. Rates beyond 64-bit integers are refused, also if they are drawn.
    """
    return poisson_counts(
        "neg_binomial_2_log_rng", rng, np.exp(eta + log_gamma(rng, phi, shape) - np.log(phi)), shape
    )


@random_numbers(beta_neg_binomial_lpmf)
def beta_neg_binomial_rng(
    rng: Generator, shape: Shape, r: Operand, alpha: Operand, beta: Operand
) -> Result:
    """The counts are Poisson numbers whose rates are gamma numbers, whose scales are ratios of
    gamma numbers, the odds against a success. Rates beyond 64-bit integers are refused, also if
    they are drawn.
    """
    return poisson_counts(
        "beta_neg_binomial_rng",
        rng,
        rng.standard_gamma(r, shape)
        * np.exp(log_gamma(rng, beta, shape) - log_gamma(rng, alpha, shape)),
        shape,
    )


@random_numbers(yule_simon_lpmf)
def yule_simon_rng(rng: Generator, shape: Shape, alpha: Operand) -> Result:
    """A draw is one more than a Poisson number whose rate is an exponential number times the odds
    against a success. Rates beyond 64-bit integers are refused, also if they are drawn.
    """
    odds = np.expm1(rng.standard_exponential(shape) / alpha)
    return 1 + poisson_counts("yule_simon_rng", rng, rng.standard_exponential(shape) * odds, shape)
