"""Logarithms of cumulative distribution functions. The observations are data, and the parameters
are numbers.

By hand, each is the formula of a textbook with SciPy's ufuncs, which is accurate in the bulk. Shape
derivatives of incomplete gamma and beta functions have no ufunc and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
from scipy import special

from workloads.vectors import warm
from workloads.workload import Workload

SIZES = (1000, 100_000, 1_000_000)
LIMITS = {100_000: 1.3}
ROOT_HALF, ROOT_TWO_OVER_PI = math.sqrt(0.5), math.sqrt(2.0 / math.pi)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
SHAPE = 2.5


def total(x: Any) -> float:
    return float(np.add.reduce(x))


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def standardised(y: Any, mu: float, sigma: float) -> Any:
    z = np.subtract(y, mu, warm("z", y.size))
    z *= 1.0 / sigma
    return z


def of_standardised(value: float, slope: Any, z: Any, sigma: float) -> Any:
    """Return the value and the derivatives in location and scale, from the value and the slope in
    ``z = (y - mu) / sigma``.
    """
    return value, (-total(slope) / sigma, -float(slope.dot(z)) / sigma)


# --- location and scale ---


def mills(z: Any) -> Any:
    """Return the normal density over the distribution function."""
    h = np.multiply(z, -ROOT_HALF, warm("hazard", z.size))
    special.erfcx(h, h)
    return np.divide(ROOT_TWO_OVER_PI, h, h)


def normal_by_hand(mu: float, sigma: float, y: Any) -> Any:
    z = standardised(y, mu, sigma)
    value = total(special.log_ndtr(z, warm("value", z.size)))
    return of_standardised(value, mills(z), z, sigma)


def lognormal_by_hand(mu: float, sigma: float, y: Any) -> Any:
    return normal_by_hand(mu, sigma, np.log(y, warm("log", y.size)))


def logistic_by_hand(mu: float, sigma: float, y: Any) -> Any:
    z = standardised(y, mu, sigma)
    value = total(special.log_expit(z, warm("value", z.size)))
    slope = np.negative(z, warm("slope", z.size))
    return of_standardised(value, special.expit(slope, slope), z, sigma)


def double_exponential_by_hand(mu: float, sigma: float, y: Any) -> Any:
    z = standardised(y, mu, sigma)
    e, slope = warm("e", z.size), warm("slope", z.size)
    np.abs(z, e)
    np.exp(np.negative(e, e), e)
    e *= 0.5
    below = z < 0.0
    value = total(np.where(below, z - math.log(2.0), np.log1p(np.negative(e, slope), slope)))
    np.divide(e, np.subtract(1.0, e, slope), slope)
    return of_standardised(value, np.where(below, 1.0, slope), z, sigma)


def cauchy_by_hand(mu: float, sigma: float, y: Any) -> Any:
    z = standardised(y, mu, sigma)
    angle, slope = warm("angle", z.size), warm("slope", z.size)
    np.arctan2(1.0, np.negative(z, angle), angle)
    value = total(np.log(angle, warm("value", z.size))) - z.size * math.log(math.pi)
    np.multiply(z, z, slope)
    slope += 1.0
    slope *= angle
    return of_standardised(value, np.divide(1.0, slope, slope), z, sigma)


def gumbel_by_hand(mu: float, beta: float, y: Any) -> Any:
    z = standardised(y, mu, beta)
    t = np.negative(z, warm("t", z.size))
    np.exp(t, t)
    return of_standardised(-total(t), t, z, beta)


def gumbel_above_by_hand(mu: float, beta: float, y: Any) -> Any:
    z = standardised(y, mu, beta)
    t, value = np.negative(z, warm("t", z.size)), warm("value", z.size)
    np.exp(t, t)
    rest, slope = one_less(t, value)
    np.negative(slope, slope)
    return of_standardised(rest, slope, z, beta)


def one_less(t: Any, value: Any) -> tuple[float, Any]:
    """Return the sum of ``log(1 - exp(-t))``, and ``t / (exp(t) - 1)``."""
    np.negative(t, value)
    np.expm1(value, value)
    np.negative(value, value)  # this is the probability p, and the odds are (1 - p) / p
    slope = np.subtract(1.0, value, warm("slope", t.size))
    slope *= t
    slope /= value
    return total(np.log(value, value)), slope


def student_by_hand(mu: float, sigma: float, y: Any, nu: float) -> Any:
    z = standardised(y, mu, sigma)
    p, slope = special.stdtr(nu, z, warm("value", z.size)), np.multiply(z, z, warm("slope", z.size))
    slope *= 1.0 / nu
    np.log1p(slope, slope)
    slope *= -0.5 * (nu + 1.0)
    np.exp(slope, slope)
    slope *= math.exp(
        math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi)
    )
    slope /= p
    return of_standardised(total(np.log(p, p)), slope, z, sigma)


# --- positive numbers ---


def exponential_by_hand(beta: float, y: Any) -> Any:
    t = np.multiply(y, beta, warm("t", y.size))
    value, slope = one_less(t, warm("value", y.size))
    return value, (total(slope) / beta,)


def powers(y: Any, alpha: float, sigma: float) -> tuple[Any, Any]:
    """Return the logarithm of ``y / sigma``, and the power of ``y / sigma``."""
    log_u, t = np.multiply(y, 1.0 / sigma, warm("log", y.size)), warm("t", y.size)
    np.log(log_u, log_u)
    return log_u, np.exp(np.multiply(log_u, alpha, t), t)


def weibull_by_hand(alpha: float, sigma: float, y: Any) -> Any:
    log_u, t = powers(y, alpha, sigma)
    value, slope = one_less(t, warm("value", y.size))
    return value, (float(slope.dot(log_u)), -alpha / sigma * total(slope))


def weibull_above_by_hand(alpha: float, sigma: float, y: Any) -> Any:
    log_u, t = powers(y, alpha, sigma)
    whole = total(t)
    return -whole, (-float(t.dot(log_u)), alpha / sigma * whole)


def rayleigh_by_hand(sigma: float, y: Any) -> Any:
    t = np.multiply(y, ROOT_HALF / sigma, warm("t", y.size))
    np.multiply(t, t, t)
    value, slope = one_less(t, warm("value", y.size))
    return value, (-2.0 / sigma * total(slope),)


def frechet_by_hand(alpha: float, sigma: float, y: Any) -> Any:
    log_u, t = powers(y, -alpha, sigma)
    whole = total(t)
    return -whole, (float(t.dot(log_u)), -alpha / sigma * whole)


def frechet_above_by_hand(alpha: float, sigma: float, y: Any) -> Any:
    log_u, t = powers(y, -alpha, sigma)
    value, slope = one_less(t, warm("value", y.size))
    return value, (-float(slope.dot(log_u)), alpha / sigma * total(slope))


def pareto_by_hand(y_min: float, alpha: float, y: Any) -> Any:
    t = np.multiply(y, 1.0 / y_min, warm("t", y.size))
    np.log(t, t)
    t *= alpha
    value, slope = one_less(t, warm("value", y.size))
    # The slope is t times the odds.
    in_alpha = total(slope) / alpha
    slope /= t
    return value, (-alpha / y_min * total(slope), in_alpha)


def pareto_2_by_hand(mu: float, scale: float, alpha: float, y: Any) -> Any:
    u, t = np.subtract(y, mu, warm("u", y.size)), warm("t", y.size)
    u *= 1.0 / scale
    np.log1p(u, t)
    t *= alpha
    value, odds = one_less(t, warm("value", y.size))
    in_alpha = total(odds) / alpha
    odds /= t
    odds /= np.add(u, 1.0, t)
    return value, (-alpha / scale * total(odds), -alpha / scale * float(odds.dot(u)), in_alpha)


def loglogistic_by_hand(alpha: float, beta: float, y: Any) -> Any:
    log_u, s = np.multiply(y, 1.0 / alpha, warm("log", y.size)), warm("t", y.size)
    np.log(log_u, log_u)
    np.multiply(log_u, beta, s)
    value = total(special.log_expit(s, warm("value", y.size)))
    special.expit(np.negative(s, s), s)
    return value, (-beta / alpha * total(s), float(s.dot(log_u)))


# --- incomplete gamma and beta functions ---


def incomplete_gamma(function: Any, a: Any, t: Any) -> tuple[float, Any]:
    """Return the sum of the logarithms of the function, and the derivative of the lower function
    over the function.
    """
    p, slope = function(a, t, warm("value", t.size)), np.log(t, warm("slope", t.size))
    if np.ndim(a):
        slope *= a - 1.0
        slope -= special.gammaln(a)
    else:
        slope *= a - 1.0
        slope -= math.lgamma(a)
    slope -= t
    np.exp(slope, slope)
    slope /= p
    return total(np.log(p, p)), slope


def gamma_by_hand(function: Any, sign: float) -> Callable[..., Any]:
    def by_hand(beta: float, y: Any, alpha: float) -> Any:
        value, slope = incomplete_gamma(function, alpha, np.multiply(y, beta, warm("t", y.size)))
        return value, (sign * float(slope.dot(y)),)

    return by_hand


def scaled_inv_chi_square_by_hand(s: float, y: Any, nu: float) -> Any:
    t = np.divide(0.5 * nu * s * s, y, warm("t", y.size))
    value, slope = incomplete_gamma(special.gammaincc, 0.5 * nu, t)
    return value, (-2.0 / s * float(slope.dot(t)),)


def poisson_by_hand(function: Any, sign: float) -> Callable[..., Any]:
    def by_hand(rate: float, n: Any) -> Any:
        p, slope = function(n, rate, warm("value", n.size)), np.add(n, 1.0, warm("slope", n.size))
        special.gammaln(slope, slope)
        np.subtract(n * math.log(rate) - rate, slope, slope)
        np.exp(slope, slope)
        slope /= p
        return total(np.log(p, p)), (sign * total(slope),)

    return by_hand


def beta_by_hand(theta: Any, alpha: float, beta: float) -> Any:
    p, log, slope = (warm(name, theta.size) for name in ("value", "log", "slope"))
    special.betainc(alpha, beta, theta, p)
    np.multiply(np.log(theta, log), alpha - 1.0, slope)
    np.log1p(np.negative(theta, log), log)
    log *= beta - 1.0
    slope += log
    slope -= special.betaln(alpha, beta)
    gradient = np.exp(slope)
    gradient /= p
    return total(np.log(p, p)), (gradient,)


def binomial_by_hand(theta: float, n: Any, trials: float) -> Any:
    left = np.subtract(trials, n, warm("left", n.size))
    p, slope = special.bdtr(n, trials, theta), warm("slope", n.size)
    # This is the mass at n, times the remaining trials over the probability of a failure.
    np.subtract(n * math.log(theta), special.betaln(n + 1.0, left), slope)
    slope += (left - 1.0) * math.log1p(-theta)
    np.exp(slope, slope)
    slope /= p
    return total(np.log(p)), (-total(slope),)


def negative_binomial(shape: float, p: float, n: Any) -> tuple[float, float]:
    """Return the value and the derivative in the probability p."""
    m = np.add(n, 1.0, warm("left", n.size))
    value, slope = (
        special.betainc(shape, m, p, warm("value", n.size)),
        special.betaln(shape, m, warm("slope", n.size)),
    )
    np.subtract((shape - 1.0) * math.log(p) + n * math.log1p(-p), slope, slope)
    np.exp(slope, slope)
    slope /= value
    return total(np.log(value, value)), total(slope)


def neg_binomial_by_hand(beta: float, n: Any, alpha: float) -> Any:
    value, slope = negative_binomial(alpha, beta / (1.0 + beta), n)
    return value, (slope / (1.0 + beta) ** 2,)


def neg_binomial_2_by_hand(mu: float, n: Any, phi: float) -> Any:
    value, slope = negative_binomial(phi, phi / (mu + phi), n)
    return value, (-slope * phi / (mu + phi) ** 2,)


# --- skewed ---


def exp_mod_normal_by_hand(mu: float, sigma: float, rate: float, y: Any) -> Any:
    z, a = standardised(y, mu, sigma), rate * sigma
    w = np.subtract(z, a, warm("w", z.size))
    h = mills(w)
    second = special.log_ndtr(w, warm("second", z.size))
    second += 0.5 * a * a
    second -= np.multiply(z, a, warm("value", z.size))
    np.exp(second, second)
    p = special.ndtr(z, warm("value", z.size))
    p -= second
    second /= p
    w += h  # the mean beyond y
    in_sigma = float(second.dot(np.subtract(w, z, h)))
    whole = total(second)
    return total(np.log(p, p)), (-rate * whole, rate * in_sigma, sigma * float(second.dot(w)))


def skew_double_exponential_by_hand(mu: float, sigma: float, y: Any, tau: float) -> Any:
    z = standardised(y, mu, sigma)
    below, slope, c = z < 0.0, warm("slope", z.size), 1.0 - tau
    np.multiply(z, -2.0 * tau, slope)
    np.minimum(slope, 0.0, out=slope)
    f = np.exp(slope, slope)
    f *= c
    value = total(np.where(below, 2.0 * c * z + math.log(tau), np.log1p(-f)))
    f /= 1.0 - f
    f *= 2.0 * tau
    return of_standardised(value, np.where(below, 2.0 * c, f), z, sigma)


def skew_normal_by_hand(xi: float, omega: float, alpha: float, y: Any) -> Any:
    z = standardised(y, xi, omega)
    p, part, slope = (
        special.ndtr(z, warm("value", z.size)),
        warm("log", z.size),
        warm("slope", z.size),
    )
    special.owens_t(z, alpha, part)
    part *= 2.0
    p -= part
    np.multiply(z, z, part)
    part *= -0.5
    special.ndtr(np.multiply(z, alpha, slope), slope)
    slope *= np.exp(part, warm("w", z.size))
    slope *= ROOT_TWO_OVER_PI
    slope /= p
    part *= 1.0 + alpha * alpha
    np.exp(part, part)
    part /= p
    value, (in_xi, in_omega) = of_standardised(total(np.log(p, p)), slope, z, omega)
    return value, (in_xi, in_omega, -total(part) / (math.pi * (1.0 + alpha * alpha)))


# --- the rows ---


def real(n: int) -> np.ndarray:
    return generator().normal(size=n)


def positive(n: int) -> np.ndarray:
    return generator().gamma(3.0, size=n)


def above_two(n: int) -> np.ndarray:
    return 2.0 + positive(n)


def counts(n: int) -> np.ndarray:
    return generator().poisson(4.0, size=n).astype(float)


def row(
    function: str,
    data: Callable[[int], np.ndarray],
    by_hand: Any,
    *parameters: float,
    shapes: tuple[float, ...] = (),
) -> None:
    """Add a row for a function of observations and parameters. The parameters are the variables.
    The last arguments are data, at their places.
    """

    def expression(xp: Any, n: int) -> Any:
        f = getattr(xp, function)
        places = PLACES.get(function, tuple(range(len(parameters) + len(shapes))))

        def call(*args: Any) -> Any:
            given = (*args[: len(parameters)], *args[len(parameters) + 1 :])
            return f(args[len(parameters)], *(given[i] for i in places))

        return call

    def point(n: int) -> tuple[Any, ...]:
        return *parameters, data(n), *shapes

    Workload(
        "cumulative", function, SIZES, point, expression, by_hand, len(parameters), limits=LIMITS
    )


# Functions whose shapes, which are data here, are not the last arguments.
PLACES = {
    "student_t_lcdf": (2, 0, 1), "gamma_lcdf": (1, 0), "gamma_lccdf": (1, 0),
     "scaled_inv_chi_square_lcdf": (1, 0),
    "binomial_lcdf": (1, 0), "neg_binomial_lcdf": (1, 0),
}  # fmt: skip

row("normal_lcdf", real, normal_by_hand, 0.2, 1.3)
row("lognormal_lcdf", positive, lognormal_by_hand, 0.2, 1.3)
row("logistic_lcdf", real, logistic_by_hand, 0.2, 1.3)
row("double_exponential_lcdf", real, double_exponential_by_hand, 0.2, 1.3)
row("cauchy_lcdf", real, cauchy_by_hand, 0.2, 1.3)
row("gumbel_lcdf", real, gumbel_by_hand, 0.2, 1.3)
row("gumbel_lccdf", real, gumbel_above_by_hand, 0.2, 1.3)
row("student_t_lcdf", real, student_by_hand, 0.2, 1.3, shapes=(4.5,))
row("exponential_lcdf", positive, exponential_by_hand, 0.7)
row("weibull_lcdf", positive, weibull_by_hand, 1.5, 3.0)
row("weibull_lccdf", positive, weibull_above_by_hand, 1.5, 3.0)
row("rayleigh_lcdf", positive, rayleigh_by_hand, 2.0)
row("frechet_lcdf", positive, frechet_by_hand, 1.5, 3.0)
row("frechet_lccdf", positive, frechet_above_by_hand, 1.5, 3.0)
row("pareto_lcdf", above_two, pareto_by_hand, 1.5, 2.0)
row("pareto_type_2_lcdf", positive, pareto_2_by_hand, -0.5, 1.3, 2.0)
row("loglogistic_lcdf", positive, loglogistic_by_hand, 1.5, 2.0)
row("gamma_lcdf", positive, gamma_by_hand(special.gammainc, 1.0), 0.9, shapes=(SHAPE,))
row("gamma_lccdf", positive, gamma_by_hand(special.gammaincc, -1.0), 0.9, shapes=(SHAPE,))
row("scaled_inv_chi_square_lcdf", positive, scaled_inv_chi_square_by_hand, 1.5, shapes=(4.0,))
row("poisson_lcdf", counts, poisson_by_hand(special.pdtr, -1.0), 4.0)
row("poisson_lccdf", counts, poisson_by_hand(special.pdtrc, 1.0), 4.0)
row("binomial_lcdf", lambda n: np.minimum(counts(n), 19.0), binomial_by_hand, 0.3, shapes=(20.0,))
row("neg_binomial_lcdf", counts, neg_binomial_by_hand, 0.5, shapes=(2.0,))
row("neg_binomial_2_lcdf", counts, neg_binomial_2_by_hand, 4.0, shapes=(2.0,))
row("exp_mod_normal_lcdf", real, exp_mod_normal_by_hand, 0.2, 1.3, 0.7)
row("skew_double_exponential_lcdf", real, skew_double_exponential_by_hand, 0.2, 1.3, shapes=(0.3,))
row("skew_normal_lcdf", real, skew_normal_by_hand, 0.2, 1.3, 1.5)


def shares(n: int) -> tuple[Any, ...]:
    return generator().beta(2.0, 3.0, size=n), 2.0, 3.0


Workload(
    "cumulative",
    "beta_lcdf: theta",
    SIZES,
    shares,
    lambda xp, n: xp.beta_lcdf,
    beta_by_hand,
    limits=LIMITS,
)
