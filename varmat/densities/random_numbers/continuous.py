"""Random numbers of continuous distributions of one variable."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.densities.bounded import beta_lpdf, beta_proportion_lpdf, uniform_lpdf
from varmat.densities.circular import von_mises_lpdf
from varmat.densities.extreme_value import frechet_lpdf, gumbel_lpdf
from varmat.densities.heavy_tails import loglogistic_lpdf, pareto_lpdf, pareto_type_2_lpdf
from varmat.densities.inverse_chi_square import inv_chi_square_lpdf, scaled_inv_chi_square_lpdf
from varmat.densities.location_scale import (
    cauchy_lpdf,
    double_exponential_lpdf,
    logistic_lpdf,
    student_t_lpdf,
)
from varmat.densities.normal import normal_lpdf, std_normal_lpdf
from varmat.densities.positive import (
    chi_square_lpdf,
    exponential_lpdf,
    gamma_lpdf,
    inv_gamma_lpdf,
    lognormal_lpdf,
    rayleigh_lpdf,
    weibull_lpdf,
)
from varmat.densities.random_numbers.row import random_numbers
from varmat.densities.skewed import (
    exp_mod_normal_lpdf,
    skew_double_exponential_lpdf,
    skew_normal_lpdf,
)

__all__ = [
    "beta_proportion_rng",
    "beta_rng",
    "cauchy_rng",
    "chi_square_rng",
    "double_exponential_rng",
    "exp_mod_normal_rng",
    "exponential_rng",
    "frechet_rng",
    "gamma_rng",
    "gumbel_rng",
    "inv_chi_square_rng",
    "inv_gamma_rng",
    "logistic_rng",
    "loglogistic_rng",
    "lognormal_rng",
    "normal_rng",
    "pareto_rng",
    "pareto_type_2_rng",
    "rayleigh_rng",
    "scaled_inv_chi_square_rng",
    "skew_double_exponential_rng",
    "skew_normal_rng",
    "std_normal_rng",
    "student_t_rng",
    "uniform_rng",
    "von_mises_rng",
    "weibull_rng",
]

NUMPY = "The numbers are those of ``numpy.random.Generator.{}``."
# Shapes that are products may underflow, but NumPy wants them positive.
LEAST = 1e-300
inner = Domain("greater than 0 and less than 1", lambda x: (x > 0) & (x < 1))

normal_rng = random_numbers(
    normal_lpdf,
    lambda rng, shape, mu, sigma: rng.normal(mu, sigma, shape),
    notes=NUMPY.format("normal(mu, sigma)"),
)
std_normal_rng = random_numbers(
    std_normal_lpdf,
    lambda rng, shape: rng.standard_normal(shape),
    notes=NUMPY.format("standard_normal()"),
)
lognormal_rng = random_numbers(
    lognormal_lpdf,
    lambda rng, shape, mu, sigma: rng.lognormal(mu, sigma, shape),
    notes=NUMPY.format("lognormal(mu, sigma)"),
)
student_t_rng = random_numbers(
    student_t_lpdf,
    lambda rng, shape, nu, mu, sigma: mu + sigma * rng.standard_t(nu, shape),
    notes=NUMPY.format("standard_t(nu)") + " They are scaled and shifted.",
)
cauchy_rng = random_numbers(
    cauchy_lpdf,
    lambda rng, shape, mu, sigma: mu + sigma * rng.standard_cauchy(shape),
    notes=NUMPY.format("standard_cauchy()") + " They are scaled and shifted.",
)
double_exponential_rng = random_numbers(
    double_exponential_lpdf,
    lambda rng, shape, mu, sigma: rng.laplace(mu, sigma, shape),
    notes=NUMPY.format("laplace(mu, sigma)"),
)
logistic_rng = random_numbers(
    logistic_lpdf,
    lambda rng, shape, mu, sigma: rng.logistic(mu, sigma, shape),
    notes=NUMPY.format("logistic(mu, sigma)"),
)
uniform_rng = random_numbers(
    # Written so because the width of the interval may overflow.
    uniform_lpdf,
    lambda rng, shape, alpha, beta: np.clip(
        alpha * (1.0 - (u := rng.random(shape))) + beta * u, alpha, beta
    ),
    notes="The numbers are :math:`\\alpha (1 - U) + \\beta U` of those of "
    "``numpy.random.Generator.random()``.",
)
gamma_rng = random_numbers(
    gamma_lpdf,
    lambda rng, shape, alpha, beta: rng.standard_gamma(alpha, shape) / beta,
    notes=NUMPY.format("standard_gamma(alpha)") + " They are divided by the rate.",
)
inv_gamma_rng = random_numbers(
    inv_gamma_lpdf,
    lambda rng, shape, alpha, beta: beta / rng.standard_gamma(alpha, shape),
    notes="The scale is divided by the numbers of "
    "``numpy.random.Generator.standard_gamma(alpha)``.",
)
exponential_rng = random_numbers(
    exponential_lpdf,
    lambda rng, shape, beta: rng.standard_exponential(shape) / beta,
    notes=NUMPY.format("standard_exponential()") + " They are divided by the rate.",
)
chi_square_rng = random_numbers(
    chi_square_lpdf,
    lambda rng, shape, nu: rng.chisquare(nu, shape),
    notes=NUMPY.format("chisquare(nu)"),
)
inv_chi_square_rng = random_numbers(
    inv_chi_square_lpdf,
    lambda rng, shape, nu: 1.0 / rng.chisquare(nu, shape),
    notes="The numbers are the reciprocals of those of ``numpy.random.Generator.chisquare(nu)``.",
)
scaled_inv_chi_square_rng = random_numbers(
    scaled_inv_chi_square_lpdf,
    lambda rng, shape, nu, s: s * (nu / rng.chisquare(nu, shape)) * s,
    notes="With C the numbers of ``numpy.random.Generator.chisquare(nu)`` these are :math:`\\nu "
    "s^2 / C`.",
)
weibull_rng = random_numbers(
    weibull_lpdf,
    lambda rng, shape, alpha, sigma: sigma * rng.weibull(alpha, shape),
    notes=NUMPY.format("weibull(alpha)") + " They are scaled.",
)
# Draws from exponential numbers E are accurate in both tails; draws from uniform ones are not.
EXPONENTIAL = (
    "With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`{}`."
)
frechet_rng = random_numbers(
    frechet_lpdf,
    lambda rng, shape, alpha, sigma: sigma * rng.standard_exponential(shape) ** (-1.0 / alpha),
    notes=EXPONENTIAL.format("\\sigma E^{-1 / \\alpha}"),
)
gumbel_rng = random_numbers(
    gumbel_lpdf,
    lambda rng, shape, mu, beta: mu - beta * np.log(rng.standard_exponential(shape)),
    notes=EXPONENTIAL.format("\\mu - \\beta \\log E"),
)
rayleigh_rng = random_numbers(
    rayleigh_lpdf,
    lambda rng, shape, sigma: sigma * np.sqrt(2.0 * rng.standard_exponential(shape)),
    notes=EXPONENTIAL.format("\\sigma \\sqrt{2 E}"),
)
pareto_rng = random_numbers(
    pareto_lpdf,
    lambda rng, shape, y_min, alpha: y_min * np.exp(rng.standard_exponential(shape) / alpha),
    notes=EXPONENTIAL.format("y_{min} e^{E / \\alpha}"),
)
pareto_type_2_rng = random_numbers(
    pareto_type_2_lpdf,
    lambda rng, shape, mu, scale, alpha: (
        mu + scale * np.expm1(rng.standard_exponential(shape) / alpha)
    ),
    notes=EXPONENTIAL.format("\\mu + \\lambda (e^{E / \\alpha} - 1)"),
)
loglogistic_rng = random_numbers(
    loglogistic_lpdf,
    lambda rng, shape, alpha, beta: (
        alpha * (rng.standard_exponential(shape) / rng.standard_exponential(shape)) ** (1.0 / beta)
    ),
    notes=EXPONENTIAL.format("\\alpha (E_1 / E_2)^{1 / \\beta}"),
)
skew_double_exponential_rng = random_numbers(
    skew_double_exponential_lpdf,
    lambda rng, shape, mu, sigma, tau: (
        mu
        + 0.5
        * sigma
        * (rng.standard_exponential(shape) / tau - rng.standard_exponential(shape) / (1.0 - tau))
    ),
    notes=EXPONENTIAL.format("\\mu + \\frac\\sigma2 (E_1 / \\tau - E_2 / (1 - \\tau))")
    + " At the skewness 0 and at 1 there is no distribution.",
    tau=inner,
)
exp_mod_normal_rng = random_numbers(
    exp_mod_normal_lpdf,
    lambda rng, shape, mu, sigma, rate: (
        rng.normal(mu, sigma, shape) + rng.standard_exponential(shape) / rate
    ),
    notes="The numbers are sums of those of `normal_rng` and `exponential_rng`.",
)
skew_normal_rng = random_numbers(
    skew_normal_lpdf,
    lambda rng, shape, xi, omega, alpha: (
        xi
        + omega
        * (
            (alpha * abs(rng.standard_normal(shape)) + rng.standard_normal(shape))
            / np.hypot(1.0, alpha)
        )
    ),
    notes="Of standard normal numbers Z these are :math:`\\xi + \\omega (\\alpha |Z_1| + Z_2) / "
    "\\sqrt{1 + \\alpha^2}`.",
)
beta_rng = random_numbers(
    beta_lpdf,
    lambda rng, shape, alpha, beta: rng.beta(alpha, beta, shape),
    notes=NUMPY.format("beta(alpha, beta)"),
)
beta_proportion_rng = random_numbers(
    beta_proportion_lpdf,
    lambda rng, shape, mu, kappa: rng.beta(
        np.maximum(mu * kappa, LEAST), np.maximum((1.0 - mu) * kappa, LEAST), shape
    ),
    notes=NUMPY.format("beta(mu * kappa, (1 - mu) * kappa)"),
)
von_mises_rng = random_numbers(
    von_mises_lpdf,
    lambda rng, shape, mu, kappa: mu + rng.vonmises(0.0, kappa, shape),
    notes=NUMPY.format("vonmises(0, kappa)")
    + " They are shifted: draws lie between :math:`\\mu - \\pi` and :math:`\\mu + \\pi`.\n"
    "    (Stan first takes the location modulo :math:`2 \\pi`.)",
)
