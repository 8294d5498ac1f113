"""Further log densities and masses. The observations are data, and the parameters are numbers.

The code by hand and varmat both compute all terms of the value in every call, including those that
depend on data only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
from scipy import special

from workloads.cumulative import (
    HALF_LOG_TWO_PI,
    LIMITS,
    SIZES,
    above_two,
    counts,
    generator,
    mills,
    positive,
    powers,
    real,
    shares,
    standardised,
    total,
)
from workloads.vectors import warm
from workloads.workload import Workload


def log_factorials(n: Any) -> float:
    part = np.add(n, 1.0, warm("factorial", n.size))
    return total(special.gammaln(part, part))


# --- location and scale ---


def gumbel_by_hand(mu: float, beta: float, y: Any) -> Any:
    z = standardised(y, mu, beta)
    s = np.negative(z, warm("slope", z.size))
    np.expm1(s, s)
    value = -total(z) - total(s) - z.size * (1.0 + math.log(beta))
    return value, (-total(s) / beta, -(float(z.dot(s)) + z.size) / beta)


def skew_double_exponential_by_hand(mu: float, sigma: float, tau: float, y: Any) -> Any:
    d = np.subtract(y, mu, warm("d", y.size))
    above = d > 0.0
    k = np.where(above, tau, tau - 1.0)
    n, spread = y.size, 2.0 * float(k.dot(d)) / sigma
    value = n * (math.log(2.0) + math.log(tau) + math.log1p(-tau) - math.log(sigma)) - spread
    in_tau = n * (1.0 / tau - 1.0 / (1.0 - tau)) - 2.0 * total(d) / sigma
    return value, (2.0 / sigma * total(k), (spread - n) / sigma, in_tau)


def skew_normal_by_hand(xi: float, omega: float, alpha: float, y: Any) -> Any:
    z = standardised(y, xi, omega)
    t = np.multiply(z, alpha, warm("t", z.size))
    n, h = z.size, mills(t)
    value = (
        total(special.log_ndtr(t, t))
        - 0.5 * float(z.dot(z))
        + n * (math.log(2.0) - math.log(omega) - HALF_LOG_TWO_PI)
    )
    in_alpha = float(z.dot(h))
    h *= alpha
    h -= z
    return value, (-total(h) / omega, -(float(h.dot(z)) + n) / omega, in_alpha)


def exp_mod_normal_by_hand(mu: float, sigma: float, rate: float, y: Any) -> Any:
    z, a, n = standardised(y, mu, sigma), rate * sigma, y.size
    x = np.subtract(z, a, warm("x", n))
    v = mills(x)
    v += x
    linear = total(z)
    value = n * (math.log(rate) + 0.5 * a * a) - a * linear + total(special.log_ndtr(x, x))
    spread = total(v)
    v -= z
    return value, (
        -total(v) / sigma,
        -(float(v.dot(z)) / sigma + rate * spread),
        n / rate - sigma * spread,
    )


def von_mises_by_hand(mu: float, kappa: float, y: Any) -> Any:
    d, part, n = np.subtract(y, mu, warm("d", y.size)), warm("part", y.size), y.size
    cosines = total(np.cos(d, part))
    whole = special.i0e(kappa)
    value = kappa * cosines - n * (math.log(2.0 * math.pi * whole) + kappa)
    return value, (kappa * total(np.sin(d, part)), cosines - n * special.i1e(kappa) / whole)


# --- positive numbers ---


def rayleigh_by_hand(sigma: float, y: Any) -> Any:
    squares, n = float(y.dot(y)) / sigma**2, y.size
    value = total(np.log(y, warm("log", n))) - 0.5 * squares - 2.0 * n * math.log(sigma)
    return value, ((squares - 2.0 * n) / sigma,)


def frechet_by_hand(alpha: float, sigma: float, y: Any) -> Any:
    log_u, t = powers(y, -alpha, sigma)
    n, whole, logs = y.size, total(t), total(log_u)
    value = n * math.log(alpha / sigma) - (alpha + 1.0) * logs - whole
    return value, (n / alpha - logs + float(t.dot(log_u)), alpha * (n - whole) / sigma)


def pareto_by_hand(y_min: float, alpha: float, y: Any) -> Any:
    logs, n = total(np.log(y, warm("log", y.size))), y.size
    value = n * (math.log(alpha) + alpha * math.log(y_min)) - (alpha + 1.0) * logs
    return value, (n * alpha / y_min, n / alpha + n * math.log(y_min) - logs)


def pareto_2_by_hand(mu: float, scale: float, alpha: float, y: Any) -> Any:
    d, part, n = np.subtract(y, mu, warm("d", y.size)), warm("part", y.size), y.size
    logs = total(np.log1p(np.multiply(d, 1.0 / scale, part), part))
    value = n * (math.log(alpha) - math.log(scale)) - (alpha + 1.0) * logs
    np.divide(1.0, np.add(d, scale, part), part)
    in_scale = (alpha + 1.0) / scale * float(part.dot(d)) - n / scale
    return value, ((alpha + 1.0) * total(part), in_scale, n / alpha - logs)


def loglogistic_by_hand(alpha: float, beta: float, y: Any) -> Any:
    log_u, w = np.multiply(y, 1.0 / alpha, warm("log", y.size)), warm("w", y.size)
    np.log(log_u, log_u)
    np.multiply(log_u, beta, w)
    n, logs = y.size, total(log_u)
    part = special.log_expit(w, warm("part", n))
    value = n * math.log(beta / alpha) - (beta + 1.0) * logs + 2.0 * total(part)
    # This is the probability above y.
    t = np.exp(np.subtract(part, w, part), part)
    return value, (beta * (n - 2.0 * total(t)) / alpha, n / beta - logs + 2.0 * float(t.dot(log_u)))


def inv_chi_square_by_hand(nu: float, y: Any) -> Any:
    half, n, part = 0.5 * nu, y.size, warm("part", y.size)
    logs = total(np.log(y, part))
    value = (
        -n * (half * math.log(2.0) + math.lgamma(half))
        - (half + 1.0) * logs
        - 0.5 * total(np.divide(1.0, y, part))
    )
    return value, (-0.5 * (n * (math.log(2.0) + special.digamma(half)) + logs),)


def scaled_inv_chi_square_by_hand(nu: float, s: float, y: Any) -> Any:
    half, n, part = 0.5 * nu, y.size, warm("part", y.size)
    logs, inverses = total(np.log(y, part)), total(np.divide(1.0, y, part))
    value = (
        n * (half * math.log(half) - math.lgamma(half) + nu * math.log(s))
        - (half + 1.0) * logs
        - half * s * s * inverses
    )
    in_nu = 0.5 * (
        n * (math.log(half) + 1.0 - special.digamma(half) + 2.0 * math.log(s))
        - logs
        - s * s * inverses
    )
    return value, (in_nu, n * nu / s - nu * s * inverses)


def beta_proportion_by_hand(mu: float, kappa: float, theta: Any) -> Any:
    a, b, n, part = mu * kappa, (1.0 - mu) * kappa, theta.size, warm("part", theta.size)
    logs, rests = total(np.log(theta, part)), total(np.log1p(np.negative(theta, part), part))
    value = (a - 1.0) * logs + (b - 1.0) * rests - n * special.betaln(a, b)
    both = special.digamma(kappa)
    in_a, in_b = n * (both - special.digamma(a)) + logs, n * (both - special.digamma(b)) + rests
    return value, (kappa * (in_a - in_b), mu * in_a + (1.0 - mu) * in_b)


# --- counts ---


def poisson_by_hand(rate: float, n: Any) -> Any:
    whole = total(n)
    return whole * math.log(rate) - n.size * rate - log_factorials(n), (whole / rate - n.size,)


def binomial_by_hand(theta: float, n: Any, trials: float) -> Any:
    wins, left = total(n), np.subtract(trials, n, warm("left", n.size))
    losses = total(left)
    choices = n.size * math.lgamma(trials + 1.0) - log_factorials(n) - log_factorials(left)
    return choices + wins * math.log(theta) + losses * math.log1p(-theta), (
        wins / theta - losses / (1.0 - theta),
    )


def rising(x: float, n: Any) -> tuple[float, float]:
    """Return the sum of ``log(gamma(x + n) / gamma(x))``, and its derivative."""
    upper, part = np.add(n, x, warm("upper", n.size)), warm("part", n.size)
    value = total(special.gammaln(upper, part)) - n.size * math.lgamma(x)
    return value, total(special.digamma(upper, part)) - n.size * float(special.digamma(x))


def neg_binomial_by_hand(alpha: float, beta: float, n: Any) -> Any:
    (value, slope), whole, log = rising(alpha, n), total(n), math.log1p(1.0 / beta)
    value -= log_factorials(n) + whole * math.log1p(beta) + n.size * alpha * log
    return value, (slope - n.size * log, (n.size * alpha / beta - whole) / (1.0 + beta))


def neg_binomial_2_by_hand(mu: float, phi: float, n: Any) -> Any:
    (value, slope), whole, log = rising(phi, n), total(n), math.log1p(mu / phi)
    value += whole * math.log(mu / (mu + phi)) - n.size * phi * log - log_factorials(n)
    excess = whole - n.size * mu
    return value, (excess / mu * phi / (mu + phi), slope - n.size * log - excess / (mu + phi))


def neg_binomial_2_means_by_hand(mu: Any, phi: float, n: Any) -> Any:
    """Each observation has a mean of its own."""
    value, slope = rising(phi, n)
    both, log, gradient = np.add(mu, phi, warm("both", n.size)), warm("log", n.size), n - mu
    gradient /= both
    slope -= total(gradient)
    value += float(n.dot(np.log(np.divide(mu, both, log), log))) - log_factorials(n)
    logs = total(np.log1p(np.multiply(mu, 1.0 / phi, log), log))
    gradient *= phi
    gradient /= mu
    return value - phi * logs, (gradient, slope - logs)


def beta_binomial_by_hand(alpha: float, beta: float, n: Any, trials: float) -> Any:
    left = trials - n
    (first, in_first), (second, in_second) = rising(alpha, n), rising(beta, left)
    both, size = alpha + beta, n.size
    choices = size * math.lgamma(trials + 1.0) - log_factorials(n) - log_factorials(left)
    value = choices + first + second - size * (math.lgamma(both + trials) - math.lgamma(both))
    d = size * float(special.digamma(both + trials) - special.digamma(both))
    return value, (in_first - d, in_second - d)


# --- the rows ---


def row(
    function: str,
    data: Callable[[int], np.ndarray],
    by_hand: Any,
    *parameters: float,
    title: str = "",
) -> None:
    """Add a row for a density of observations and parameters, which are the variables."""

    def expression(xp: Any, n: int) -> Any:
        f = getattr(xp, function)
        return lambda *args: f(args[-1], *args[:-1])

    Workload(
        "distributions",
        title or function,
        SIZES,
        lambda n: (*parameters, data(n)),
        expression,
        by_hand,
        len(parameters),
        limits=LIMITS,
    )


TRIALS = 20.0
row("gumbel_lpdf", real, gumbel_by_hand, 0.2, 1.3)
row("skew_double_exponential_lpdf", real, skew_double_exponential_by_hand, 0.2, 1.3, 0.4)
row("skew_normal_lpdf", real, skew_normal_by_hand, 0.2, 1.3, 1.5)
row("exp_mod_normal_lpdf", real, exp_mod_normal_by_hand, 0.2, 1.3, 0.7)
row("von_mises_lpdf", lambda n: generator().vonmises(0.3, 2.0, size=n), von_mises_by_hand, 0.3, 2.0)
row("rayleigh_lpdf", positive, rayleigh_by_hand, 2.0)
row("frechet_lpdf", positive, frechet_by_hand, 1.5, 3.0)
row("pareto_lpdf", above_two, pareto_by_hand, 1.5, 2.0)
row("pareto_type_2_lpdf", positive, pareto_2_by_hand, -0.5, 1.3, 2.0)
row("loglogistic_lpdf", positive, loglogistic_by_hand, 1.5, 2.0)
row("inv_chi_square_lpdf", positive, inv_chi_square_by_hand, 4.0)
row("scaled_inv_chi_square_lpdf", positive, scaled_inv_chi_square_by_hand, 4.0, 1.5)
row("beta_proportion_lpdf", lambda n: shares(n)[0], beta_proportion_by_hand, 0.4, 5.0)
row("poisson_lpmf", counts, poisson_by_hand, 4.0)
row(
    "poisson_lpmf",
    lambda n: generator().poisson(1e6, size=n).astype(float),
    poisson_by_hand,
    1e6,
    title="poisson_lpmf: 10^6",
)
row("neg_binomial_lpmf", counts, neg_binomial_by_hand, 2.0, 0.5)
row("neg_binomial_2_lpmf", counts, neg_binomial_2_by_hand, 4.0, 2.0)
Workload(
    "distributions",
    "neg_binomial_2_lpmf: means",
    SIZES,
    lambda n: (2.0 + positive(n), 2.0, counts(n)),
    lambda xp, _: lambda mu, phi, n: xp.neg_binomial_2_lpmf(n, mu, phi),
    neg_binomial_2_means_by_hand,
    2,
    limits=LIMITS,
)
Workload(
    "distributions",
    "binomial_lpmf",
    SIZES,
    lambda n: (0.3, np.minimum(counts(n), TRIALS), TRIALS),
    lambda xp, _: lambda theta, n, trials: xp.binomial_lpmf(n, trials, theta),
    binomial_by_hand,
    1,
    limits=LIMITS,
)
Workload(
    "distributions",
    "beta_binomial_lpmf",
    SIZES,
    lambda n: (2.0, 3.0, np.minimum(counts(n), TRIALS), TRIALS),
    lambda xp, _: lambda alpha, beta, n, trials: xp.beta_binomial_lpmf(n, trials, alpha, beta),
    beta_binomial_by_hand,
    2,
    limits=LIMITS,
)
