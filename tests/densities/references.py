"""50-digit versions of the rows of densities, for their tests."""

from functools import wraps

import mpmath
import numpy as np
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


# The log densities and log probabilities in terms of mpmath and of the functions above.
REFERENCES = {
    "bernoulli_lpmf": lambda n, theta: log(theta if n == 1 else 1 - theta),
    "bernoulli_logit_lpmf": lambda n, alpha: -log1p(exp(-alpha if n == 1 else alpha)),
    "binomial_lpmf": lambda n, N, theta: (
        log(binomial(N, n))
        + (n * log(theta) if n else 0)
        + ((N - n) * log(1 - theta) if n < N else 0)
    ),
    "binomial_logit_lpmf": lambda n, N, alpha: (
        log(binomial(N, n)) - n * log1p(exp(-alpha)) - (N - n) * log1p(exp(alpha))),
    "uniform_lpdf": lambda y, alpha, beta: -log(beta - alpha),
    "beta_lpdf": lambda theta, alpha, beta: (
        loggamma(alpha + beta)
        - loggamma(alpha)
        - loggamma(beta)
        + (alpha - 1) * log(theta)
        + (beta - 1) * log(1 - theta)
    ),
    "beta_proportion_lpdf": lambda theta, mu, kappa: (
        loggamma(kappa)
        - loggamma(mu * kappa)
        - loggamma(kappa - mu * kappa)
        + (mu * kappa - 1) * log(theta)
        + (kappa - mu * kappa - 1) * log(1 - theta)
    ),
    "poisson_lpmf": lambda n, rate: (n * log(rate) if n else 0) - rate - loggamma(n + 1),
    "poisson_log_lpmf": lambda n, alpha: (n * alpha if n else 0) - exp(alpha) - loggamma(n + 1),
    "neg_binomial_2_lpmf": lambda n, mu, phi: (
        loggamma(n + phi)
        - loggamma(phi)
        - loggamma(n + 1)
        + n * log(mu / (mu + phi))
        - phi * log1p(mu / phi)
    ),
    "neg_binomial_2_log_lpmf": lambda n, eta, phi: (
        loggamma(n + phi)
        - loggamma(phi)
        - loggamma(n + 1)
        - n * log1p(phi * exp(-eta))
        - phi * log1p(exp(eta) / phi)
    ),
    "neg_binomial_lpmf": lambda n, alpha, beta: (
        loggamma(n + alpha) - loggamma(alpha) - loggamma(n + 1) - n * log1p(beta) - alpha * log1p(
            1 / beta)),
    "student_t_lpdf": lambda y, nu, mu, sigma: (
        loggamma((nu + 1) / 2)
        - loggamma(nu / 2)
        - log(nu * pi) / 2
        - log(sigma)
        - (nu + 1) / 2 * log1p(((y - mu) / sigma) ** 2 / nu)
    ),
    "cauchy_lpdf": lambda y, mu, sigma: -log(pi * sigma) - log1p(((y - mu) / sigma) ** 2),
    "double_exponential_lpdf": lambda y, mu, sigma: -log(2 * sigma) - fabs(y - mu) / sigma,
    "logistic_lpdf": lambda y, mu, sigma: (
        -log(sigma) - (y - mu) / sigma - 2 * log1p(exp(-(y - mu) / sigma))),
    "normal_lpdf": lambda y, mu, sigma: (
        -(((y - mu) / sigma) ** 2) / 2 - log(sigma) - log(2 * pi) / 2),
    "std_normal_lpdf": lambda y: -(y**2) / 2 - log(2 * pi) / 2,
    "normal_sufficient_lpdf": lambda y_bar, s_squared, n_obs, mu, sigma: (
        -(s_squared + n_obs * (y_bar - mu) ** 2) / (2 * sigma**2) - n_obs * (
            log(sigma) + log(2 * pi) / 2)),
    "lognormal_lpdf": lambda y, mu, sigma: (
        -log(y * sigma) - ((log(y) - mu) / sigma) ** 2 / 2 - log(2 * pi) / 2),
    "gamma_lpdf": lambda y, alpha, beta: (
        alpha * log(beta) - loggamma(alpha) + (alpha - 1) * log(y) - beta * y),
    "inv_gamma_lpdf": lambda y, alpha, beta: (
        alpha * log(beta) - loggamma(alpha) - (alpha + 1) * log(y) - beta / y),
    "exponential_lpdf": lambda y, beta: log(beta) - beta * y,
    "chi_square_lpdf": lambda y, nu: (
        -nu / 2 * log(2) - loggamma(nu / 2) + (nu / 2 - 1) * log(y) - y / 2),
    "weibull_lpdf": lambda y, alpha, sigma: (
        log(alpha) + (alpha - 1) * log(y) - alpha * log(sigma) - (y / sigma) ** alpha),
    "rayleigh_lpdf": lambda y, sigma: log(y) - 2 * log(sigma) - (y / sigma) ** 2 / 2,
    "beta_binomial_lpmf": lambda n, N, alpha, beta: (
        log(binomial(N, n))
        + loggamma(n + alpha)
        + loggamma(N - n + beta)
        - loggamma(N + alpha + beta)
        - loggamma(alpha)
        - loggamma(beta)
        + loggamma(alpha + beta)
    ),
    "beta_neg_binomial_lpmf": lambda n, r, alpha, beta: (
        loggamma(n + r)
        - loggamma(r)
        - loggamma(n + 1)
        + loggamma(alpha + r)
        + loggamma(beta + n)
        - loggamma(alpha + r + beta + n)
        - loggamma(alpha)
        - loggamma(beta)
        + loggamma(alpha + beta)
    ),
    "yule_simon_lpmf": lambda n, alpha: log(alpha) + log(mpmath.beta(n, alpha + 1)),
    "von_mises_lpdf": lambda y, mu, kappa: kappa * cos(y - mu) - log(2 * pi * besseli(0, kappa)),
    "gumbel_lpdf": lambda y, mu, beta: -log(beta) - (y - mu) / beta - exp(-(y - mu) / beta),
    "frechet_lpdf": lambda y, alpha, sigma: (
        log(alpha) + alpha * log(sigma) - (alpha + 1) * log(y) - (sigma / y) ** alpha),
    "inv_gaussian_lpdf": lambda y, mu, lam: (
        log(lam / (2 * pi * y**3)) / 2 - lam * (y - mu) ** 2 / (2 * mu**2 * y)),
    "generalized_extreme_value_lpdf": lambda y, mu, sigma, xi: (
        -log(sigma)
        - (1 + xi) * power_logarithm((y - mu) / sigma, xi)
        - exp(-power_logarithm((y - mu) / sigma, xi))
    ),
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
    "inv_chi_square_lpdf": lambda y, nu: (
        -nu / 2 * log(2) - loggamma(nu / 2) - (nu / 2 + 1) * log(y) - 1 / (2 * y)),
    "scaled_inv_chi_square_lpdf": lambda y, nu, s: (
        nu / 2 * log(nu / 2)
        - loggamma(nu / 2)
        + nu * log(s)
        - (nu / 2 + 1) * log(y)
        - nu * s**2 / (2 * y)
    ),
    "skew_normal_lpdf": lambda y, xi, omega, alpha: (
        -log(omega)
        - ((y - xi) / omega) ** 2 / 2
        + log(erfc(-alpha * (y - xi) / omega / sqrt(2)))
        - log(2 * pi) / 2
    ),
    "skew_double_exponential_lpdf": lambda y, mu, sigma, tau: (
        log(2 * tau * (1 - tau) / sigma) - 2 * (tau if y > mu else tau - 1) * (y - mu) / sigma),
    "exp_mod_normal_lpdf": lambda y, mu, sigma, rate: (
        log(rate / 2) + rate * (mu + rate * sigma**2 / 2 - y) + log(
            erfc((mu + rate * sigma**2 - y) / (sqrt(2) * sigma)))),
    "uniform_lcdf": lambda y, alpha, beta: log1p(-(beta - y) / (beta - alpha)),
    "uniform_lccdf": lambda y, alpha, beta: log1p(-(y - alpha) / (beta - alpha)),
    "von_mises_lcdf": lambda y, mu, kappa: log_von_mises(y, mu, kappa)[0],
    "von_mises_lccdf": lambda y, mu, kappa: log_von_mises(y, mu, kappa)[1],
    "bernoulli_lcdf": lambda n, theta: log1p(-theta),
    "bernoulli_lccdf": lambda n, theta: log(theta),
    "discrete_range_lcdf": lambda y, lower, upper: log(
        (floor(y) - lower + 1) / (upper - lower + 1)),
    "discrete_range_lccdf": lambda y, lower, upper: log((upper - floor(y)) / (upper - lower + 1)),
    "yule_simon_lcdf": lambda n, alpha: log1m_exp(log(n) + log(mpmath.beta(n, alpha + 1))),
    "yule_simon_lccdf": lambda n, alpha: log(n) + log(mpmath.beta(n, alpha + 1)),
    "gumbel_lcdf": lambda y, mu, beta: -exp(-(y - mu) / beta),
    "gumbel_lccdf": lambda y, mu, beta: log1m_exp(-exp(-(y - mu) / beta)),
    "inv_gaussian_lcdf": lambda y, mu, lam: log_inv_gaussian(y, mu, lam)[0],
    "inv_gaussian_lccdf": lambda y, mu, lam: log_inv_gaussian(y, mu, lam)[1],
    "generalized_extreme_value_lcdf": lambda y, mu, sigma, xi: (
        -exp(-power_logarithm((y - mu) / sigma, xi))),
    "generalized_extreme_value_lccdf": lambda y, mu, sigma, xi: (
        log1m_exp(-exp(-power_logarithm((y - mu) / sigma, xi)))),
    "generalized_pareto_lcdf": lambda y, mu, sigma, xi: (
        log1m_exp(-power_logarithm((y - mu) / sigma, xi))),
    "generalized_pareto_lccdf": lambda y, mu, sigma, xi: -power_logarithm((y - mu) / sigma, xi),
    "geometric_lcdf": lambda n, theta: log1m_exp((floor(n) + 1) * log1p(-theta)),
    "geometric_lccdf": lambda n, theta: (floor(n) + 1) * log1p(-theta),
    "frechet_lcdf": lambda y, alpha, sigma: -((y / sigma) ** (-alpha)),
    "frechet_lccdf": lambda y, alpha, sigma: log1m_exp(-((y / sigma) ** (-alpha))),
    "pareto_lcdf": lambda y, y_min, alpha: log1m_exp(-alpha * log(y / y_min)),
    "pareto_lccdf": lambda y, y_min, alpha: -alpha * log(y / y_min),
    "pareto_type_2_lcdf": lambda y, mu, scale, alpha: log1m_exp(-alpha * log1p((y - mu) / scale)),
    "pareto_type_2_lccdf": lambda y, mu, scale, alpha: -alpha * log1p((y - mu) / scale),
    "loglogistic_lcdf": lambda y, alpha, beta: -log1p((alpha / y) ** beta),
    "loglogistic_lccdf": lambda y, alpha, beta: -log1p((y / alpha) ** beta),
    "beta_lcdf": lambda theta, alpha, beta: log_betainc(alpha, beta, theta),
    "beta_lccdf": lambda theta, alpha, beta: log_betaincc(alpha, beta, theta),
    "beta_proportion_lcdf": lambda theta, mu, kappa: log_betainc(mu * kappa, (1 - mu) * kappa,
        theta),
    "beta_proportion_lccdf": lambda theta, mu, kappa: log_betaincc(mu * kappa, (1 - mu) * kappa,
        theta),
    "binomial_lcdf": lambda n, N, theta: log_betaincc(floor(n) + 1, N - floor(n), theta),
    "binomial_lccdf": lambda n, N, theta: log_betainc(floor(n) + 1, N - floor(n), theta),
    "neg_binomial_lcdf": lambda n, alpha, beta: log_betainc(alpha, floor(n) + 1, beta / (1 + beta),
        1 / (1 + beta)),
    "neg_binomial_lccdf": lambda n, alpha, beta: log_betaincc(alpha, floor(n) + 1,
        beta / (1 + beta), 1 / (1 + beta)),
    "neg_binomial_2_lcdf": lambda n, mu, phi: log_betainc(phi, floor(n) + 1, phi / (mu + phi),
        mu / (mu + phi)),
    "neg_binomial_2_lccdf": lambda n, mu, phi: log_betaincc(phi, floor(n) + 1, phi / (mu + phi),
        mu / (mu + phi)),
    "student_t_lcdf": lambda y, nu, mu, sigma: (
        log_t_tail(nu, abs(y - mu) / sigma)
        if y < mu
        else log1p(-exp(log_t_tail(nu, abs(y - mu) / sigma)))
    ),
    "student_t_lccdf": lambda y, nu, mu, sigma: (
        log_t_tail(nu, abs(y - mu) / sigma)
        if y > mu
        else log1p(-exp(log_t_tail(nu, abs(y - mu) / sigma)))
    ),
    "gamma_lcdf": lambda y, alpha, beta: log_gammainc(alpha, beta * y),
    "gamma_lccdf": lambda y, alpha, beta: log_gammaincc(alpha, beta * y),
    "chi_square_lcdf": lambda y, nu: log_gammainc(nu / 2, y / 2),
    "chi_square_lccdf": lambda y, nu: log_gammaincc(nu / 2, y / 2),
    "inv_gamma_lcdf": lambda y, alpha, beta: log_gammaincc(alpha, beta / y),
    "inv_gamma_lccdf": lambda y, alpha, beta: log_gammainc(alpha, beta / y),
    "inv_chi_square_lcdf": lambda y, nu: log_gammaincc(nu / 2, 1 / (2 * y)),
    "inv_chi_square_lccdf": lambda y, nu: log_gammainc(nu / 2, 1 / (2 * y)),
    "scaled_inv_chi_square_lcdf": lambda y, nu, s: log_gammaincc(nu / 2, nu * s**2 / (2 * y)),
    "scaled_inv_chi_square_lccdf": lambda y, nu, s: log_gammainc(nu / 2, nu * s**2 / (2 * y)),
    "poisson_lcdf": lambda n, rate: log_gammaincc(floor(n) + 1, rate),
    "poisson_lccdf": lambda n, rate: log_gammainc(floor(n) + 1, rate),
    "normal_lcdf": lambda y, mu, sigma: log_ncdf((y - mu) / sigma),
    "normal_lccdf": lambda y, mu, sigma: log_ncdf((mu - y) / sigma),
    "std_normal_lcdf": lambda y: log_ncdf(y),
    "std_normal_lccdf": lambda y: log_ncdf(-y),
    "lognormal_lcdf": lambda y, mu, sigma: log_ncdf((log(y) - mu) / sigma),
    "lognormal_lccdf": lambda y, mu, sigma: log_ncdf((mu - log(y)) / sigma),
    "logistic_lcdf": lambda y, mu, sigma: -log1p(exp(-(y - mu) / sigma)),
    "logistic_lccdf": lambda y, mu, sigma: -log1p(exp((y - mu) / sigma)),
    "double_exponential_lcdf": lambda y, mu, sigma: (
        log(1 / mpf(2)) - (mu - y) / sigma if y < mu else log1p(-exp((mu - y) / sigma) / 2)),
    "double_exponential_lccdf": lambda y, mu, sigma: (
        log(1 / mpf(2)) - (y - mu) / sigma if y > mu else log1p(-exp((y - mu) / sigma) / 2)),
    "cauchy_lcdf": lambda y, mu, sigma: (
        log(atan2(1, (mu - y) / sigma) / pi) if y < mu else log1p(-atan2(1, (y - mu) / sigma) / pi)
    ),
    "cauchy_lccdf": lambda y, mu, sigma: (
        log(atan2(1, (y - mu) / sigma) / pi) if y > mu else log1p(-atan2(1, (mu - y) / sigma) / pi)
    ),
    "exponential_lcdf": lambda y, beta: log1m_exp(-beta * y),
    "exponential_lccdf": lambda y, beta: -beta * y,
    "weibull_lcdf": lambda y, alpha, sigma: log1m_exp(-((y / sigma) ** alpha)),
    "weibull_lccdf": lambda y, alpha, sigma: -((y / sigma) ** alpha),
    "rayleigh_lcdf": lambda y, sigma: log1m_exp(-((y / sigma) ** 2) / 2),
    "rayleigh_lccdf": lambda y, sigma: -((y / sigma) ** 2) / 2,
    "skew_double_exponential_lcdf": lambda y, mu, sigma, tau: (
        log(tau) + 2 * (1 - tau) * (y - mu) / sigma
        if y < mu
        else log1p(-(1 - tau) * exp(-2 * tau * (y - mu) / sigma))
    ),
    "skew_double_exponential_lccdf": lambda y, mu, sigma, tau: (
        log1p(-tau * exp(2 * (1 - tau) * (y - mu) / sigma))
        if y < mu
        else log1p(-tau) - 2 * tau * (y - mu) / sigma
    ),
    "exp_mod_normal_lcdf": lambda y, mu, sigma, rate: log_exp_mod_normal(
        (y - mu) / sigma, rate * sigma
    )[0],
    "exp_mod_normal_lccdf": lambda y, mu, sigma, rate: log_exp_mod_normal(
        (y - mu) / sigma, rate * sigma
    )[1],
    "skew_normal_lcdf": lambda y, xi, omega, alpha: log_skew_normal((y - xi) / omega, alpha),
    "skew_normal_lccdf": lambda y, xi, omega, alpha: log_skew_normal((xi - y) / omega, -alpha),
}  # fmt: skip


def exact(row):
    """The formula of a row in mpmath's arithmetic."""
    name = row.name.removesuffix("_cdf") + "_lcdf" if row.name.endswith("_cdf") else row.name
    return REFERENCES[name]


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
