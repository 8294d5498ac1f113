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
from varmat.densities.beta_counts import beta_binomial_lpmf, beta_neg_binomial_lpmf
from varmat.densities.counts import (
    neg_binomial_2_log_lpmf,
    neg_binomial_2_lpmf,
    neg_binomial_lpmf,
    poisson_log_lpmf,
    poisson_lpmf,
)
from varmat.densities.finite_populations import discrete_range_lpmf, hypergeometric_lpmf
from varmat.densities.random_numbers.row import log_gamma, poisson_counts, random_numbers
from varmat.functions.special.logistic_functions import expit

__all__ = [
    "bernoulli_logit_rng",
    "bernoulli_rng",
    "beta_binomial_rng",
    "beta_neg_binomial_rng",
    "binomial_logit_rng",
    "binomial_rng",
    "discrete_range_rng",
    "hypergeometric_rng",
    "neg_binomial_2_log_rng",
    "neg_binomial_2_rng",
    "neg_binomial_rng",
    "poisson_log_rng",
    "poisson_rng",
]

NUMPY = "The numbers are those of ``numpy.random.Generator.{}``."
MIXTURE = """The counts are Poisson numbers whose rates are gamma numbers, {}.
    Rates beyond 64-bit integers are refused, also if they are drawn."""
# NumPy draws hypergeometric counts up to here.
small = Domain("nonnegative and less than 10**9", lambda x: (x >= 0) & (x < 10**9))

bernoulli_rng = random_numbers(
    bernoulli_lpmf,
    lambda rng, shape, theta: rng.random(shape) < theta,
    notes="A draw is 1 where one of ``numpy.random.Generator.random()`` is less than the "
    "probability.",
)
bernoulli_logit_rng = random_numbers(
    bernoulli_logit_lpmf,
    lambda rng, shape, alpha: rng.random(shape) < expit(alpha),
    notes="A draw is 1 where one of ``numpy.random.Generator.random()`` is less than "
    "``expit(alpha)``.",
)
binomial_rng = random_numbers(
    binomial_lpmf,
    lambda rng, shape, N, theta: rng.binomial(N, theta, shape),
    notes=NUMPY.format("binomial(N, theta)"),
)
binomial_logit_rng = random_numbers(
    binomial_logit_lpmf,
    lambda rng, shape, N, alpha: rng.binomial(N, expit(alpha), shape),
    notes=NUMPY.format("binomial(N, expit(alpha))"),
)
beta_binomial_rng = random_numbers(
    beta_binomial_lpmf,
    lambda rng, shape, N, alpha, beta: rng.binomial(N, rng.beta(alpha, beta, shape)),
    notes="The counts are binomial, of probabilities drawn as by `beta_rng`.",
)
discrete_range_rng = random_numbers(
    discrete_range_lpmf,
    lambda rng, shape, lower, upper: rng.integers(lower, upper, shape, endpoint=True),
    notes=NUMPY.format("integers(lower, upper, endpoint=True)"),
)
hypergeometric_rng = random_numbers(
    hypergeometric_lpmf,
    lambda rng, shape, N, a, b: rng.hypergeometric(a, b, N, shape),
    notes=NUMPY.format("hypergeometric(a, b, N)"),
    a=small,
    b=small,
)
poisson_rng = random_numbers(
    poisson_lpmf,
    lambda rng, shape, rate: poisson_counts("poisson_rng", rng, rate, shape),
    notes=NUMPY.format("poisson(rate)") + " Rates beyond 64-bit integers are refused.",
)
poisson_log_rng = random_numbers(
    poisson_log_lpmf,
    lambda rng, shape, alpha: poisson_counts("poisson_log_rng", rng, np.exp(alpha), shape),
    notes=NUMPY.format("poisson(exp(alpha))") + " Rates beyond 64-bit integers are refused.",
)
neg_binomial_rng = random_numbers(
    neg_binomial_lpmf,
    lambda rng, shape, alpha, beta: poisson_counts(
        "neg_binomial_rng", rng, rng.standard_gamma(alpha, shape) / beta, shape
    ),
    notes=MIXTURE.format("as by `gamma_rng`"),
)
neg_binomial_2_rng = random_numbers(
    neg_binomial_2_lpmf,
    lambda rng, shape, mu, phi: poisson_counts(
        "neg_binomial_2_rng", rng, mu * (rng.standard_gamma(phi, shape) / phi), shape
    ),
    notes=MIXTURE.format("of the shape :math:`\\phi` and the mean :math:`\\mu`"),
)
neg_binomial_2_log_rng = random_numbers(
    neg_binomial_2_log_lpmf,
    lambda rng, shape, eta, phi: poisson_counts(
        "neg_binomial_2_log_rng", rng, np.exp(eta + log_gamma(rng, phi, shape) - np.log(phi)), shape
    ),
    notes=MIXTURE.format("of the shape :math:`\\phi` and the mean :math:`e^\\eta`"),
)
beta_neg_binomial_rng = random_numbers(
    beta_neg_binomial_lpmf,
    lambda rng, shape, r, alpha, beta: poisson_counts(
        "beta_neg_binomial_rng",
        rng,
        rng.standard_gamma(r, shape)
        * np.exp(log_gamma(rng, beta, shape) - log_gamma(rng, alpha, shape)),
        shape,
    ),
    notes=MIXTURE.format("whose scales are ratios of gamma numbers, the odds against a success"),
)
