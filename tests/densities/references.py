"""50-digit versions of the rows of densities, for their tests."""

from functools import wraps

import mpmath
import numpy as np
import pytest
from mpmath import (
    atan2,
    besseli,
    binomial,
    cos,
    erfc,
    exp,
    fabs,
    floor,
    log,
    log1p,
    loggamma,
    mpf,
    pi,
    sqrt,
)

import varmat as vm
from varmat.densities.cumulative.row import Cumulative, LogCumulative
from varmat.densities.univariate import Univariate


def remembered(function):
    """Keep what a function returns, because rows of both tails ask for the same numbers."""
    known = {}

    @wraps(function)
    def found(*args):
        key = (*args, mpmath.mp.prec)
        if key not in known:
            known[key] = function(*args)
        return known[key]

    return found


def log_beta(a, b):
    """Return the logarithm of the beta function."""
    return loggamma(a) + loggamma(b) - loggamma(a + b)


def log_rising(x, n):
    """Return the logarithm of ``gamma(x + n) / gamma(x) / n!``."""
    return loggamma(x + n) - loggamma(x) - loggamma(n + 1)


def times(n, log_of):
    """Return n log(x), which is 0 for no events of probability zero."""
    return n * log(log_of) if n else 0


def log_ncdf(z):
    """Return the logarithm of the normal distribution function. Even 50 digits of 1 - 1e-300 are 1,
    hence the logarithm of the complement.
    """
    half = mpmath.erfc(abs(z) / mpmath.sqrt(2)) / 2
    return mpmath.log1p(-half) if z > 0 else mpmath.log(half)


def log1m_exp(t):
    """Return ``log(1 - exp(t))`` for t < 0."""
    return mpmath.log(-mpmath.expm1(t)) if t > -1 else mpmath.log1p(-mpmath.exp(t))


def power_logarithm(z, xi):
    """Return ``log(1 + xi * z) / xi``."""
    return mpmath.log1p(xi * z) / xi if xi else z


def _logs(lower, upper):
    """Return the logarithms of a probability and of its complement, given one of the two."""
    return (
        (mpmath.log(lower), mpmath.log1p(-lower))
        if upper is None
        else (mpmath.log1p(-upper), mpmath.log(upper))
    )


def log_inv_gaussian(y, mu, lam):
    """Return the logarithms of both probabilities."""
    a, b = (mpmath.sqrt(lam / (2 * y)) * (y / mu + sign) for sign in (-1, 1))
    rest = mpmath.exp(2 * lam / mu) * mpmath.erfc(b)
    if a < 0:
        return _logs((mpmath.erfc(-a) + rest) / 2, None)
    return _logs(None, (mpmath.erfc(a) - rest) / 2)


@remembered
def _log_gamma(a, x):
    if x < a:
        return _logs(mpmath.gammainc(a, 0, x, regularized=True), None)
    return _logs(None, mpmath.gammainc(a, x, mpmath.inf, regularized=True))


def log_gammainc(a, x):
    """Return the logarithm of P(a, x)."""
    return _log_gamma(a, x)[0]


def log_gammaincc(a, x):
    """Return the logarithm of Q(a, x)."""
    return _log_gamma(a, x)[1]


def _betainc(a, b, x, y):
    """Sum the series DLMF 8.17.8. Its terms are positive, and decrease if x is below the mean."""
    term = total = x**a * y**b / (a * mpmath.beta(a, b))
    k = 0
    while term > total * mpmath.eps:
        term *= x * (a + b + k) / (a + 1 + k)
        total += term
        k += 1
    return total


@remembered
def _log_beta(a, b, x, y):
    return (
        _logs(_betainc(a, b, x, y), None)
        if x * (a + b) < a or (x < 0.5 and a + b < 100)
        else _logs(None, _betainc(b, a, y, x))
    )


def log_betainc(a, b, x, y=None):
    """Return the logarithm of the regularised incomplete beta function; y is 1 - x."""
    return _log_beta(a, b, x, 1 - x if y is None else y)[0]


def log_betaincc(a, b, x, y=None):
    """Return the logarithm of the complement of the regularised incomplete beta function."""
    return _log_beta(a, b, x, 1 - x if y is None else y)[1]


def log_t_tail(nu, z):
    """Return the logarithm of the probability that Student's t exceeds z >= 0."""
    u = nu / (nu + z * z)
    return (
        log_betainc(nu / 2, mpmath.mpf(1) / 2, u, z * z / (nu + z * z)) - mpmath.log(2)
        if z
        else -mpmath.log(2)
    )


@remembered
def log_exp_mod_normal(z, a):
    """Return the logarithms of both probabilities of the sum of a standard normal variable and an
    exponential variable of rate a.
    """
    second = mpmath.exp(a * a / 2 - a * z) * mpmath.ncdf(z - a)
    lower, upper = mpmath.ncdf(z) - second, mpmath.ncdf(-z) + second
    return _logs(lower, None) if lower < 0.5 else _logs(None, upper)


@remembered
def log_skew_normal(z, alpha):
    """Return the logarithm of the distribution function of the skew normal distribution. Like
    Owen's, it is an integral of a positive function.
    """
    if z > 0:
        return mpmath.log1p(-mpmath.exp(log_skew_normal(-z, -alpha)))
    # The integrand is exp(-(z**2) (1 + t**2) / 2) / (1 + t**2), and t runs from alpha to infinity.
    # It is negligible beyond the last place.
    start, scale = max(alpha, 0), 1 / (z * z * max(alpha, 0) + abs(z))
    places = [start + k * scale for k in ((0, 2, 8, 30, 130) if alpha > 0 else (0, 1, 4, 16))]
    places += [start + 4**k for k in range(12) if 4**k < 16 * scale]
    if alpha < 0:
        places += [alpha, *(-place for place in places[1:] if -place > alpha)]
    half = z * z / 2
    # Computing the nodes takes longest, so there is one table of them.
    with mpmath.workdps(max(mpmath.mp.dps, 80)):
        total = mpmath.quad(
            lambda t: mpmath.exp(half * (start - t) * (start + t)) / (1 + t * t),
            sorted(places),
            method="gauss-legendre",
        )
    return mpmath.log(total / mpmath.pi) - half * (1 + start * start)


@remembered
def log_von_mises(y, mu, kappa):
    """Return the logarithms of the probabilities of angles between -pi and y and of angles between
    y and pi, from a Fourier series.
    """
    with mpmath.workdps(mpmath.mp.dps + 100):
        count = int(2 * kappa) + 200
        above, here = mpmath.mpf(0), mpmath.mpf(1)
        total = mpmath.mpf(0)
        # Sines of multiples of both angles, by the recurrence from the largest multiple down.
        angles = y - mu, -mpmath.pi - mu
        twice = [2 * mpmath.cos(angle) for angle in angles]
        later = [mpmath.sin((count + 1) * angle) for angle in angles]
        sines = [mpmath.sin(count * angle) for angle in angles]
        for n in range(count, 0, -1):
            total += here * (sines[0] - sines[1]) / n
            above, here = here, above + 2 * n / kappa * here
            before = [c * now - then for c, now, then in zip(twice, sines, later, strict=True)]
            later, sines = sines, before
        lower = (y + mpmath.pi + 2 * total / here) / (2 * mpmath.pi)
        return _logs(lower, None) if lower < 0.5 else _logs(None, 1 - lower)


# The log densities in terms of mpmath and of the functions above.
REFERENCES = {
    "bernoulli_lpmf": lambda n, theta: log(theta if n == 1 else 1 - theta),
    "bernoulli_logit_lpmf": lambda n, alpha: -log1p(exp(-alpha if n == 1 else alpha)),
    "binomial_lpmf": lambda n, N, theta: (
        log(binomial(N, n)) + times(n, theta) + times(N - n, 1 - theta)),
    "binomial_logit_lpmf": lambda n, N, alpha: (
        log(binomial(N, n)) - n * log1p(exp(-alpha)) - (N - n) * log1p(exp(alpha))),
    "uniform_lpdf": lambda y, alpha, beta: -log(beta - alpha),
    "beta_lpdf": lambda theta, alpha, beta: (
        (alpha - 1) * log(theta) + (beta - 1) * log(1 - theta) - log_beta(alpha, beta)),
    "beta_proportion_lpdf": lambda theta, mu, kappa: (
        REFERENCES["beta_lpdf"](theta, mu * kappa, kappa - mu * kappa)),
    "poisson_lpmf": lambda n, rate: times(n, rate) - rate - loggamma(n + 1),
    "poisson_log_lpmf": lambda n, alpha: (n * alpha if n else 0) - exp(alpha) - loggamma(n + 1),
    "neg_binomial_2_lpmf": lambda n, mu, phi: (
        log_rising(phi, n) + n * log(mu / (mu + phi)) - phi * log1p(mu / phi)),
    "neg_binomial_2_log_lpmf": lambda n, eta, phi: (
        log_rising(phi, n) - n * log1p(phi * exp(-eta)) - phi * log1p(exp(eta) / phi)),
    "neg_binomial_lpmf": lambda n, alpha, beta: (
        log_rising(alpha, n) - n * log1p(beta) - alpha * log1p(1 / beta)),
    "student_t_lpdf": lambda y, nu, mu, sigma: (
        -log_beta(nu / 2, mpf(1) / 2) - log(nu) / 2 - log(sigma)
        - (nu + 1) / 2 * log1p(((y - mu) / sigma) ** 2 / nu)),
    "cauchy_lpdf": lambda y, mu, sigma: -log(pi * sigma) - log1p(((y - mu) / sigma) ** 2),
    "double_exponential_lpdf": lambda y, mu, sigma: -log(2 * sigma) - fabs(y - mu) / sigma,
    "logistic_lpdf": lambda y, mu, sigma: (
        -log(sigma) - (y - mu) / sigma - 2 * log1p(exp(-(y - mu) / sigma))),
    "normal_lpdf": lambda y, mu, sigma: (
        -(((y - mu) / sigma) ** 2) / 2 - log(2 * pi * sigma**2) / 2),
    "std_normal_lpdf": lambda y: -(y**2) / 2 - log(2 * pi) / 2,
    "normal_sufficient_lpdf": lambda y_bar, s_squared, n_obs, mu, sigma: (
        -(s_squared + n_obs * (y_bar - mu) ** 2) / (2 * sigma**2)
        - n_obs * log(2 * pi * sigma**2) / 2),
    "lognormal_lpdf": lambda y, mu, sigma: (
        REFERENCES["normal_lpdf"](log(y), mu, sigma) - log(y)),
    "gamma_lpdf": lambda y, alpha, beta: (
        alpha * log(beta) - loggamma(alpha) + (alpha - 1) * log(y) - beta * y),
    "inv_gamma_lpdf": lambda y, alpha, beta: (
        alpha * log(beta) - loggamma(alpha) - (alpha + 1) * log(y) - beta / y),
    "exponential_lpdf": lambda y, beta: log(beta) - beta * y,
    "chi_square_lpdf": lambda y, nu: REFERENCES["gamma_lpdf"](y, nu / 2, mpf(1) / 2),
    "weibull_lpdf": lambda y, alpha, sigma: (
        log(alpha) + (alpha - 1) * log(y) - alpha * log(sigma) - (y / sigma) ** alpha),
    "rayleigh_lpdf": lambda y, sigma: log(y) - 2 * log(sigma) - (y / sigma) ** 2 / 2,
    "beta_binomial_lpmf": lambda n, N, alpha, beta: (
        log(binomial(N, n)) + log_beta(n + alpha, N - n + beta) - log_beta(alpha, beta)),
    "beta_neg_binomial_lpmf": lambda n, r, alpha, beta: (
        log_rising(r, n) + log_beta(alpha + r, beta + n) - log_beta(alpha, beta)),
    "yule_simon_lpmf": lambda n, alpha: log(alpha) + log(mpmath.beta(n, alpha + 1)),
    "von_mises_lpdf": lambda y, mu, kappa: kappa * cos(y - mu) - log(2 * pi * besseli(0, kappa)),
    "gumbel_lpdf": lambda y, mu, beta: -log(beta) - (y - mu) / beta - exp(-(y - mu) / beta),
    "frechet_lpdf": lambda y, alpha, sigma: (
        log(alpha) + alpha * log(sigma) - (alpha + 1) * log(y) - (sigma / y) ** alpha),
    "inv_gaussian_lpdf": lambda y, mu, lam: (
        log(lam / (2 * pi * y**3)) / 2 - lam * (y - mu) ** 2 / (2 * mu**2 * y)),
    "generalized_extreme_value_lpdf": lambda y, mu, sigma, xi: (
        -log(sigma) - (1 + xi) * power_logarithm((y - mu) / sigma, xi)
        - exp(-power_logarithm((y - mu) / sigma, xi))),
    "generalized_pareto_lpdf": lambda y, mu, sigma, xi: (
        -log(sigma) - (1 + xi) * power_logarithm((y - mu) / sigma, xi)),
    "geometric_lpmf": lambda n, theta: log(theta) + (n * log1p(-theta) if n else 0),
    "discrete_range_lpmf": lambda y, lower, upper: -log(upper - lower + 1),
    "hypergeometric_lpmf": lambda n, N, a, b: log(
        binomial(a, n) * binomial(b, N - n) / binomial(a + b, N)),
    "pareto_lpdf": lambda y, y_min, alpha: log(alpha) + alpha * log(y_min) - (alpha + 1) * log(y),
    "pareto_type_2_lpdf": lambda y, mu, scale, alpha: (
        log(alpha) - log(scale) - (alpha + 1) * log1p((y - mu) / scale)),
    "loglogistic_lpdf": lambda y, alpha, beta: (
        log(beta / alpha) + (beta - 1) * log(y / alpha) - 2 * log1p((y / alpha) ** beta)),
    "inv_chi_square_lpdf": lambda y, nu: REFERENCES["inv_gamma_lpdf"](y, nu / 2, mpf(1) / 2),
    "scaled_inv_chi_square_lpdf": lambda y, nu, s: (
        REFERENCES["inv_gamma_lpdf"](y, nu / 2, nu * s**2 / 2)),
    "skew_normal_lpdf": lambda y, xi, omega, alpha: (
        REFERENCES["normal_lpdf"](y, xi, omega) + log(erfc(-alpha * (y - xi) / omega / sqrt(2)))),
    "skew_double_exponential_lpdf": lambda y, mu, sigma, tau: (
        log(2 * tau * (1 - tau) / sigma) - 2 * (tau if y > mu else tau - 1) * (y - mu) / sigma),
    "exp_mod_normal_lpdf": lambda y, mu, sigma, rate: (
        log(rate / 2) + rate * (mu + rate * sigma**2 / 2 - y)
        + log(erfc((mu + rate * sigma**2 - y) / (sqrt(2) * sigma)))),
}  # fmt: skip


def lower(t):
    """Return both logarithms of probabilities, given that of the lower one."""
    return t, log1m_exp(t)


def upper(t):
    """Return both logarithms of probabilities, given that of the upper one."""
    return log1m_exp(t), t


def both(log_probability, z):
    """Return the logarithms of the probabilities below and above z of a symmetric distribution."""
    return log_probability(z), log_probability(-z)


def nearer(log_tail, z):
    """Return both logarithms, given that of a tail of a symmetric distribution, beyond abs(z)."""
    tail = log_tail(abs(z))
    return lower(tail) if z < 0 else upper(tail)


def gamma_tails(a, x):
    return log_gammainc(a, x), log_gammaincc(a, x)


def beta_tails(a, b, x, y=None):
    return log_betainc(a, b, x, y), log_betaincc(a, b, x, y)


def skew_double_exponential(z, tau):
    if z < 0:
        return lower(log(tau) + 2 * (1 - tau) * z)
    return upper(log1p(-tau) - 2 * tau * z)


# The logarithms of the probabilities of observations up to the first argument, and beyond it.
BOTH_TAILS = {
    "uniform": lambda y, alpha, beta: (
        log1p(-(beta - y) / (beta - alpha)), log1p(-(y - alpha) / (beta - alpha))),
    "von_mises": log_von_mises,
    "bernoulli": lambda n, theta: (log1p(-theta), log(theta)),
    "discrete_range": lambda y, least, most: (
        log((floor(y) - least + 1) / (most - least + 1)),
        log((most - floor(y)) / (most - least + 1))),
    "yule_simon": lambda n, alpha: upper(log(n) + log(mpmath.beta(n, alpha + 1))),
    "gumbel": lambda y, mu, beta: lower(-exp(-(y - mu) / beta)),
    "inv_gaussian": log_inv_gaussian,
    "generalized_extreme_value": lambda y, mu, sigma, xi: (
        lower(-exp(-power_logarithm((y - mu) / sigma, xi)))),
    "generalized_pareto": lambda y, mu, sigma, xi: upper(-power_logarithm((y - mu) / sigma, xi)),
    "geometric": lambda n, theta: upper((floor(n) + 1) * log1p(-theta)),
    "frechet": lambda y, alpha, sigma: lower(-((y / sigma) ** (-alpha))),
    "pareto": lambda y, y_min, alpha: upper(-alpha * log(y / y_min)),
    "pareto_type_2": lambda y, mu, scale, alpha: upper(-alpha * log1p((y - mu) / scale)),
    "loglogistic": lambda y, alpha, beta: (
        -log1p((alpha / y) ** beta), -log1p((y / alpha) ** beta)),
    "beta": lambda theta, alpha, beta: beta_tails(alpha, beta, theta),
    "beta_proportion": lambda theta, mu, kappa: beta_tails(mu * kappa, (1 - mu) * kappa, theta),
    "binomial": lambda n, N, theta: beta_tails(floor(n) + 1, N - floor(n), theta)[::-1],
    "neg_binomial": lambda n, alpha, beta: (
        beta_tails(alpha, floor(n) + 1, beta / (1 + beta), 1 / (1 + beta))),
    "neg_binomial_2": lambda n, mu, phi: (
        beta_tails(phi, floor(n) + 1, phi / (mu + phi), mu / (mu + phi))),
    "student_t": lambda y, nu, mu, sigma: nearer(lambda z: log_t_tail(nu, z), (y - mu) / sigma),
    "gamma": lambda y, alpha, beta: gamma_tails(alpha, beta * y),
    "chi_square": lambda y, nu: gamma_tails(nu / 2, y / 2),
    "inv_gamma": lambda y, alpha, beta: gamma_tails(alpha, beta / y)[::-1],
    "inv_chi_square": lambda y, nu: gamma_tails(nu / 2, 1 / (2 * y))[::-1],
    "scaled_inv_chi_square": lambda y, nu, s: gamma_tails(nu / 2, nu * s**2 / (2 * y))[::-1],
    "poisson": lambda n, rate: gamma_tails(floor(n) + 1, rate)[::-1],
    "normal": lambda y, mu, sigma: both(log_ncdf, (y - mu) / sigma),
    "std_normal": lambda y: both(log_ncdf, y),
    "lognormal": lambda y, mu, sigma: both(log_ncdf, (log(y) - mu) / sigma),
    "logistic": lambda y, mu, sigma: both(lambda z: -log1p(exp(-z)), (y - mu) / sigma),
    "double_exponential": lambda y, mu, sigma: nearer(lambda z: -log(2) - z, (y - mu) / sigma),
    "cauchy": lambda y, mu, sigma: nearer(lambda z: log(atan2(1, z) / pi), (y - mu) / sigma),
    "exponential": lambda y, beta: upper(-beta * y),
    "weibull": lambda y, alpha, sigma: upper(-((y / sigma) ** alpha)),
    "rayleigh": lambda y, sigma: upper(-((y / sigma) ** 2) / 2),
    "skew_double_exponential": lambda y, mu, sigma, tau: (
        skew_double_exponential((y - mu) / sigma, tau)),
    "exp_mod_normal": lambda y, mu, sigma, rate: log_exp_mod_normal((y - mu) / sigma, rate * sigma),
    "skew_normal": lambda y, xi, omega, alpha: (
        log_skew_normal((y - xi) / omega, alpha), log_skew_normal((xi - y) / omega, -alpha)),
}  # fmt: skip


# Every density and mass of one variable, those with distribution functions, and the logarithms of
# all probabilities.
ROWS = [row for name in vm.__all__ if type(row := getattr(vm, name)) is Univariate]
WITH_TAILS = [row for row in ROWS if isinstance(row.cdf, Cumulative)]
TAILS = [row for name in vm.__all__ if isinstance(row := getattr(vm, name), LogCumulative)]


def every(rows):
    """Run a test for each row of a table."""
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def exact(row):
    """The formula of a row in mpmath's arithmetic; that of its logarithm for a probability."""
    if row.name in REFERENCES:
        return REFERENCES[row.name]
    family, _, kind = row.name.rpartition("_")
    tails = BOTH_TAILS[family]
    return lambda *args: tails(*args)[kind == "lccdf"]


def continuous(row):
    """Return the places of the arguments that may be variables."""
    return tuple(i for i, name in enumerate(row.arguments) if name not in row.discrete)


def given(row, point):
    """Return the arguments at a point, with whole numbers for what is discrete."""
    return tuple(
        int(x) if name in row.discrete else x for x, name in zip(point, row.arguments, strict=True)
    )


def columns(row):
    """Return the arguments at all points, as columns."""
    kinds = [np.int64 if name in row.discrete else np.float64 for name in row.arguments]
    return [
        np.array(column, dtype=kind)
        for column, kind in zip(zip(*row.points, strict=True), kinds, strict=True)
    ]
