"""Random numbers of continuous distributions of one variable."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain
from varmat.densities.bounded import beta_lpdf, beta_proportion_lpdf, uniform_lpdf
from varmat.densities.circular import von_mises_lpdf
from varmat.densities.extreme_value import (
    frechet_lpdf,
    generalized_extreme_value_lpdf,
    generalized_pareto_lpdf,
    gumbel_lpdf,
)
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
    inv_gaussian_lpdf,
    lognormal_lpdf,
    rayleigh_lpdf,
    weibull_lpdf,
)
from varmat.densities.random_numbers.row import Generator, random_numbers
from varmat.densities.skewed import (
    exp_mod_normal_lpdf,
    skew_double_exponential_lpdf,
    skew_normal_lpdf,
)
from varmat.typing import Operand, Result, Shape

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
    "generalized_extreme_value_rng",
    "generalized_pareto_rng",
    "gumbel_rng",
    "inv_chi_square_rng",
    "inv_gamma_rng",
    "inv_gaussian_rng",
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

# Shapes that are products may underflow, but NumPy requires positive ones.
LEAST = 1e-300
inner = Domain("greater than 0 and less than 1", lambda x: (x > 0) & (x < 1))


@random_numbers(normal_lpdf)
def normal_rng(rng: Generator, shape: Shape, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.normal(mu, sigma)``."""
    return rng.normal(mu, sigma, shape)


@random_numbers(std_normal_lpdf)
def std_normal_rng(rng: Generator, shape: Shape) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.standard_normal()``."""
    return rng.standard_normal(shape)


@random_numbers(lognormal_lpdf)
def lognormal_rng(rng: Generator, shape: Shape, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.lognormal(mu, sigma)``."""
    return rng.lognormal(mu, sigma, shape)


@random_numbers(student_t_lpdf)
def student_t_rng(rng: Generator, shape: Shape, nu: Operand, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.standard_t(nu)``. They are scaled and
    shifted.
    """
    return mu + sigma * rng.standard_t(nu, shape)


@random_numbers(cauchy_lpdf)
def cauchy_rng(rng: Generator, shape: Shape, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.standard_cauchy()``. They are scaled and
    shifted.
    """
    return mu + sigma * rng.standard_cauchy(shape)


@random_numbers(double_exponential_lpdf)
def double_exponential_rng(rng: Generator, shape: Shape, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.laplace(mu, sigma)``."""
    return rng.laplace(mu, sigma, shape)


@random_numbers(logistic_lpdf)
def logistic_rng(rng: Generator, shape: Shape, mu: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.logistic(mu, sigma)``."""
    return rng.logistic(mu, sigma, shape)


@random_numbers(uniform_lpdf)
def uniform_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """The numbers are :math:`\\alpha (1 - U) + \\beta U`, with U drawn with
    ``numpy.random.Generator.random()``.
    """
    # Written so because the width of the interval may overflow.
    return np.clip(alpha * (1.0 - (u := rng.random(shape))) + beta * u, alpha, beta)


@random_numbers(gamma_lpdf)
def gamma_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.standard_gamma(alpha)``. They are divided
    by the rate.
    """
    return rng.standard_gamma(alpha, shape) / beta


@random_numbers(inv_gaussian_lpdf)
def inv_gaussian_rng(rng: Generator, shape: Shape, mu: Operand, lam: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.wald(mu, lam)``."""
    return rng.wald(mu, lam, shape)


@random_numbers(inv_gamma_lpdf)
def inv_gamma_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """The scale is divided by the numbers of ``numpy.random.Generator.standard_gamma(alpha)``."""
    return beta / rng.standard_gamma(alpha, shape)


@random_numbers(exponential_lpdf)
def exponential_rng(rng: Generator, shape: Shape, beta: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.standard_exponential()``, and divided
    by the rate.
    """
    return rng.standard_exponential(shape) / beta


@random_numbers(chi_square_lpdf)
def chi_square_rng(rng: Generator, shape: Shape, nu: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.chisquare(nu)``."""
    return rng.chisquare(nu, shape)


@random_numbers(inv_chi_square_lpdf)
def inv_chi_square_rng(rng: Generator, shape: Shape, nu: Operand) -> Result:
    """The numbers are reciprocals of draws of ``numpy.random.Generator.chisquare(nu)``."""
    return 1.0 / rng.chisquare(nu, shape)


@random_numbers(scaled_inv_chi_square_lpdf)
def scaled_inv_chi_square_rng(rng: Generator, shape: Shape, nu: Operand, s: Operand) -> Result:
    """With C the numbers of ``numpy.random.Generator.chisquare(nu)`` these are :math:`\\nu s^2 /
    C`.
    """
    return s * (nu / rng.chisquare(nu, shape)) * s


@random_numbers(weibull_lpdf)
def weibull_rng(rng: Generator, shape: Shape, alpha: Operand, sigma: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.weibull(alpha)``. They are scaled."""
    return sigma * rng.weibull(alpha, shape)


# Draws from exponential numbers E are accurate in both tails; draws from uniform ones are not.
@random_numbers(frechet_lpdf)
def frechet_rng(rng: Generator, shape: Shape, alpha: Operand, sigma: Operand) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are
    :math:`\\sigma E^{-1 / \\alpha}`.
    """
    return sigma * rng.standard_exponential(shape) ** (-1.0 / alpha)


def _power_of_log(log: Operand, xi: Operand) -> Result:
    """Invert `power_logarithm`."""
    with np.errstate(over="ignore"):
        return np.where(xi == 0.0, log, np.expm1(xi * log) / np.where(xi == 0.0, 1.0, xi))


@random_numbers(generalized_extreme_value_lpdf)
def generalized_extreme_value_rng(
    rng: Generator, shape: Shape, mu: Operand, sigma: Operand, xi: Operand
) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`\\mu
    + \\sigma (E^{-\\xi} - 1) / \\xi`.
    """
    return mu + sigma * _power_of_log(-np.log(rng.standard_exponential(shape)), xi)


@random_numbers(generalized_pareto_lpdf)
def generalized_pareto_rng(
    rng: Generator, shape: Shape, mu: Operand, sigma: Operand, xi: Operand
) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`\\mu
    + \\sigma (e^{\\xi E} - 1) / \\xi`.
    """
    return mu + sigma * _power_of_log(rng.standard_exponential(shape), xi)


@random_numbers(gumbel_lpdf)
def gumbel_rng(rng: Generator, shape: Shape, mu: Operand, beta: Operand) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`\\mu
    - \\beta \\log E`.
    """
    return mu - beta * np.log(rng.standard_exponential(shape))


@random_numbers(rayleigh_lpdf)
def rayleigh_rng(rng: Generator, shape: Shape, sigma: Operand) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are
    :math:`\\sigma \\sqrt{2 E}`.
    """
    return sigma * np.sqrt(2.0 * rng.standard_exponential(shape))


@random_numbers(pareto_lpdf)
def pareto_rng(rng: Generator, shape: Shape, y_min: Operand, alpha: Operand) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are
    :math:`y_{min} e^{E / \\alpha}`.
    """
    return y_min * np.exp(rng.standard_exponential(shape) / alpha)


@random_numbers(pareto_type_2_lpdf)
def pareto_type_2_rng(
    rng: Generator, shape: Shape, mu: Operand, scale: Operand, alpha: Operand
) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`\\mu
    + \\lambda (e^{E / \\alpha} - 1)`.
    """
    return mu + scale * np.expm1(rng.standard_exponential(shape) / alpha)


@random_numbers(loglogistic_lpdf)
def loglogistic_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are
    :math:`\\alpha (E_1 / E_2)^{1 / \\beta}`.
    """
    return alpha * (rng.standard_exponential(shape) / rng.standard_exponential(shape)) ** (
        1.0 / beta
    )


@random_numbers(skew_double_exponential_lpdf, tau=("", inner))
def skew_double_exponential_rng(
    rng: Generator, shape: Shape, mu: Operand, sigma: Operand, tau: Operand
) -> Result:
    """With E the numbers of ``numpy.random.Generator.standard_exponential()`` these are :math:`\\mu
    + \\frac\\sigma2 (E_1 / \\tau - E_2 / (1 - \\tau))`. At the skewness 0 and at 1 there is no
    distribution.
    """
    return mu + 0.5 * sigma * (
        rng.standard_exponential(shape) / tau - rng.standard_exponential(shape) / (1.0 - tau)
    )


@random_numbers(exp_mod_normal_lpdf)
def exp_mod_normal_rng(
    rng: Generator, shape: Shape, mu: Operand, sigma: Operand, rate: Operand
) -> Result:
    """The numbers are sums of draws of `normal_rng` and `exponential_rng`."""
    return rng.normal(mu, sigma, shape) + rng.standard_exponential(shape) / rate


@random_numbers(skew_normal_lpdf)
def skew_normal_rng(
    rng: Generator, shape: Shape, xi: Operand, omega: Operand, alpha: Operand
) -> Result:
    """The numbers are :math:`\\xi + \\omega (\\alpha |Z_1| + Z_2) / \\sqrt{1 + \\alpha^2}`, with
    standard normal numbers Z.
    """
    return xi + omega * (
        (alpha * abs(rng.standard_normal(shape)) + rng.standard_normal(shape))
        / np.hypot(1.0, alpha)
    )


@random_numbers(beta_lpdf)
def beta_rng(rng: Generator, shape: Shape, alpha: Operand, beta: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.beta(alpha, beta)``."""
    return rng.beta(alpha, beta, shape)


@random_numbers(beta_proportion_lpdf)
def beta_proportion_rng(rng: Generator, shape: Shape, mu: Operand, kappa: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.beta(mu * kappa, (1 - mu) * kappa)``."""
    return rng.beta(np.maximum(mu * kappa, LEAST), np.maximum((1.0 - mu) * kappa, LEAST), shape)


@random_numbers(von_mises_lpdf)
def von_mises_rng(rng: Generator, shape: Shape, mu: Operand, kappa: Operand) -> Result:
    """The numbers are drawn with ``numpy.random.Generator.vonmises(0, kappa)``. They are shifted:
    draws lie between :math:`\\mu - \\pi` and :math:`\\mu + \\pi`. (Stan first takes the location
    modulo :math:`2 \\pi`.)
    """
    return mu + rng.vonmises(0.0, kappa, shape)
