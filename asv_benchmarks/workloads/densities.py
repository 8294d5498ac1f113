"""Densities of one variable and generalised linear models.

The code by hand and varmat both compute all terms of the value in every call, including those that
depend on data only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
import peers
from budgets import Budget
from scipy.special import digamma, expit, gammaln
from timing import duration, timings

import varmat as vm
from varmat.core.domains import Domain
from workloads.vectors import SCALARS, SIZES, warm
from workloads.workload import FAMILIES, Workload

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
FREEDOM = 4.5
# The number of columns of the matrix of a generalised linear model.
COLUMNS = 50


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


# --- normal ---


def normal_y_by_hand(y: Any, mu: float, sigma: float) -> Any:
    gradient = y - mu
    squares = float(gradient.dot(gradient)) / sigma**2
    gradient *= -1.0 / sigma**2
    return -0.5 * squares - y.size * (math.log(sigma) + HALF_LOG_TWO_PI), (gradient,)


def normal_mu_by_hand(mu: float, y: Any, sigma: float) -> Any:
    z = np.subtract(y, mu, warm("z", y.size))
    value = -0.5 * float(z.dot(z)) / sigma**2 - y.size * (math.log(sigma) + HALF_LOG_TWO_PI)
    return value, (float(np.add.reduce(z)) / sigma**2,)


def normal_mu_sigma_by_hand(mu: float, sigma: float, y: Any) -> Any:
    z = np.subtract(y, mu, warm("z", y.size))
    squares = float(z.dot(z)) / sigma**2
    value = -0.5 * squares - y.size * (math.log(sigma) + HALF_LOG_TWO_PI)
    return value, (float(np.add.reduce(z)) / sigma**2, (squares - y.size) / sigma)


def normal_arrays_by_hand(y: Any, mu: Any, sigma: Any) -> Any:
    z, logs = warm("z", y.size), warm("logs", y.size)
    in_y, in_mu, in_sigma = np.empty(y.size), np.empty(y.size), np.empty(y.size)
    np.subtract(y, mu, z)
    np.divide(z, sigma, z)
    np.log(sigma, logs)
    value = -0.5 * float(z.dot(z)) - float(np.add.reduce(logs)) - y.size * HALF_LOG_TWO_PI
    np.divide(z, sigma, in_mu)
    np.negative(in_mu, in_y)
    np.multiply(z, z, in_sigma)
    np.subtract(in_sigma, 1.0, in_sigma)
    np.divide(in_sigma, sigma, in_sigma)
    return value, (in_y, in_mu, in_sigma)


def lognormal_by_hand(mu: float, sigma: float, y: Any) -> Any:
    logs = np.log(y, warm("logs", y.size))
    value, gradient = normal_mu_sigma_by_hand(mu, sigma, logs)
    return value - float(np.add.reduce(logs)), gradient


# --- Student t ---


def student_constant(nu: float, sigma: float) -> float:
    return (
        math.lgamma(0.5 * (nu + 1.0))
        - math.lgamma(0.5 * nu)
        - 0.5 * math.log(nu * math.pi)
        - math.log(sigma)
    )


def student_parts(y: Any, mu: float, sigma: float, nu: float) -> Any:
    """Return the residuals, ``nu sigma**2 + residual**2``, and the log density."""
    d, s = np.subtract(y, mu, warm("d", y.size)), warm("s", y.size)
    scale = nu * sigma**2
    np.multiply(d, d, s)
    logs = np.log1p(np.multiply(s, 1.0 / scale, warm("logs", y.size)), warm("logs", y.size))
    value = y.size * student_constant(nu, sigma) - 0.5 * (nu + 1.0) * float(np.add.reduce(logs))
    s += scale
    return d, s, value


def student_y_by_hand(y: Any, nu: float, mu: float, sigma: float) -> Any:
    d, s, value = student_parts(y, mu, sigma, nu)
    gradient = d / s
    gradient *= -(nu + 1.0)
    return value, (gradient,)


def student_mu_by_hand(mu: float, y: Any, nu: float, sigma: float) -> Any:
    d, s, value = student_parts(y, mu, sigma, nu)
    return value, ((nu + 1.0) * float(np.add.reduce(np.divide(d, s, s))),)


def student_mu_sigma_by_hand(mu: float, sigma: float, y: Any, nu: float) -> Any:
    d, s, value = student_parts(y, mu, sigma, nu)
    ratio = np.divide(d, s, s)
    in_sigma = ((nu + 1.0) * float(ratio.dot(d)) - y.size) / sigma
    return value, ((nu + 1.0) * float(np.add.reduce(ratio)), in_sigma)


def student_all_by_hand(y: Any, nu: float, mu: Any, sigma: Any) -> Any:
    z, s, logs = (warm(name, y.size) for name in ("d", "s", "logs"))
    in_y, in_mu, in_sigma = np.empty(y.size), np.empty(y.size), np.empty(y.size)
    n, half = y.size, 0.5 * (nu + 1.0)
    np.subtract(y, mu, z)
    np.divide(z, sigma, z)
    np.multiply(z, z, s)
    np.multiply(s, 1.0 / nu, logs)
    np.log1p(logs, logs)
    spread = float(np.add.reduce(logs))
    scale = float(np.add.reduce(np.log(sigma, logs)))
    value = n * student_constant(nu, 1.0) - half * spread - scale
    # The weight of an observation is z**2 / (nu + z**2).
    np.add(s, nu, logs)
    np.divide(s, logs, s)
    share = float(np.add.reduce(s))
    np.divide(z, logs, in_mu)
    np.divide(in_mu, sigma, in_mu)
    in_mu *= nu + 1.0
    np.negative(in_mu, in_y)
    np.multiply(s, nu + 1.0, in_sigma)
    in_sigma -= 1.0
    in_sigma /= sigma
    in_nu = 0.5 * (
        n * float(digamma(half) - digamma(0.5 * nu)) - n / nu - spread + (nu + 1.0) / nu * share
    )
    return value, (in_y, in_nu, in_mu, in_sigma)


# --- counts ---


def bernoulli_logit_by_hand(theta: Any, n: Any) -> Any:
    sign, t, e, part = (warm(name, n.size) for name in ("sign", "t", "e", "part"))
    np.multiply(n, 2.0, sign)
    np.subtract(sign, 1.0, sign)
    np.multiply(sign, theta, t)
    np.exp(np.negative(np.abs(t, e), e), e)
    value = float(np.add.reduce(np.minimum(t, 0.0, out=part))) - float(
        np.add.reduce(np.log1p(e, part))
    )
    gradient = np.where(t > 0.0, e, 1.0)
    gradient *= sign
    gradient /= np.add(e, 1.0, e)
    return value, (gradient,)


def poisson_log_by_hand(log_rate: Any, n: Any) -> Any:
    rate, part = np.exp(log_rate, warm("rate", n.size)), warm("part", n.size)
    factorials = float(np.add.reduce(gammaln(np.add(n, 1.0, part), out=part)))
    return float(n.dot(log_rate)) - float(np.add.reduce(rate)) - factorials, (n - rate,)


# --- generalised linear models ---


def two_passes(weigh: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the linear predictors, and then the product of the matrix with what `weigh` returns
    for them.
    """

    def by_hand(alpha: float, beta: Any, *others: Any) -> Any:
        *scale, y, x = others
        t = np.matmul(x, beta, out=warm("predictor", y.size))
        t += alpha
        value, w, *rest = weigh(y, t, *scale)
        return value, (float(np.add.reduce(w)), w @ x, *rest)

    return by_hand


def weigh_normal(y: Any, t: Any, sigma: float) -> Any:
    z = np.subtract(y, t, t)
    squares = float(z.dot(z)) / sigma**2
    z /= sigma**2
    return (
        -0.5 * squares - y.size * (math.log(sigma) + HALF_LOG_TWO_PI),
        z,
        (squares - y.size) / sigma,
    )


def weigh_bernoulli(y: Any, t: Any) -> Any:
    value, (w,) = bernoulli_logit_by_hand(t, y)
    return value, w


def weigh_poisson(y: Any, t: Any) -> Any:
    value, (w,) = poisson_log_by_hand(t, y)
    return value, w


def glm_point(kind: str) -> Callable[[int], tuple[Any, ...]]:
    """Return a function from size to intercept, coefficients (and scale), observations and
    matrix.
    """

    def point(n: int) -> tuple[Any, ...]:
        rng = generator()
        x, beta = rng.normal(size=(n, COLUMNS)), 0.1 * rng.normal(size=COLUMNS)
        eta = x @ beta + 0.3
        if kind == "normal":
            return 0.2, 0.9 * beta, 1.1, eta + rng.normal(size=n), x
        y = rng.random(n) < expit(eta) if kind == "bernoulli" else rng.poisson(np.exp(eta))
        return 0.2, 0.9 * beta, y.astype(float), x

    return point


def glm_in_stan(kind: str, program: str) -> Callable[[int], tuple[str, dict[str, Any]]]:
    def with_data(n: int) -> tuple[str, dict[str, Any]]:
        *_, y, x = glm_point(kind)(n)
        return program, {
            "N": n,
            "K": COLUMNS,
            "x": x,
            "y": y if kind == "normal" else y.astype(int),
        }

    return with_data


# --- the rows ---


def row(
    name: str,
    point: Any,
    density: Any,
    by_hand: Any,
    variables: int,
    limit: float | None = None,
    sizes: Any = SIZES,
    matvar: tuple[int, ...] = (),
    stan: Any = None,
) -> Workload:
    """Make a workload; `density` takes the namespace and then the arguments. A matvar takes part
    only if some variables are arrays.
    """
    limits = {} if limit is None else {100_000: limit}

    def expression(xp: Any, n: int) -> Any:
        return lambda *args: density(xp, *args)

    return Workload(
        "densities",
        name,
        sizes,
        point,
        expression,
        by_hand,
        variables,
        matvar=matvar,
        limits=limits,
        stan=stan,
    )


def observations(n: int) -> np.ndarray:
    return generator().normal(size=n)


def arrays(n: int) -> tuple[np.ndarray, ...]:
    """Return observations, locations and scales."""
    y = observations(n)
    return y, np.sin(y), np.exp(0.5 * y)


def student_arrays(n: int) -> tuple[Any, ...]:
    y, mu, sigma = arrays(n)
    return y, FREEDOM, mu, sigma


def log_odds(n: int) -> tuple[np.ndarray, ...]:
    rng = generator()
    return rng.normal(size=n), (rng.random(n) < 0.5).astype(float)


def log_rates(n: int) -> tuple[np.ndarray, ...]:
    rng = generator()
    return rng.normal(size=n), rng.poisson(1.5, size=n).astype(float)


row(
    "normal: y",
    lambda n: (observations(n), 0.1, 1.2),
    lambda xp, y, mu, sigma: xp.normal_lpdf(y, mu, sigma),
    normal_y_by_hand,
    1,
    1.2,
    matvar=SCALARS,
)
row(
    "normal: mu",
    lambda n: (0.1, observations(n), 1.2),
    lambda xp, mu, y, sigma: xp.normal_lpdf(y, mu, sigma),
    normal_mu_by_hand,
    1,
    1.2,
)
row(
    "normal: mu, sigma",
    lambda n: (0.1, 1.2, observations(n)),
    lambda xp, mu, sigma, y: xp.normal_lpdf(y, mu, sigma),
    normal_mu_sigma_by_hand,
    2,
    1.2,
)
row(
    "normal: all, arrays",
    arrays,
    lambda xp, *args: xp.normal_lpdf(*args),
    normal_arrays_by_hand,
    3,
    1.2,
    matvar=SCALARS,
)
row(
    "lognormal: mu, sigma",
    lambda n: (0.1, 1.2, np.exp(observations(n))),
    lambda xp, mu, sigma, y: xp.lognormal_lpdf(y, mu, sigma),
    lognormal_by_hand,
    2,
)
row(
    "student_t: y",
    lambda n: (observations(n), FREEDOM, 0.1, 1.2),
    lambda xp, *args: xp.student_t_lpdf(*args),
    student_y_by_hand,
    1,
)
row(
    "student_t: mu",
    lambda n: (0.1, observations(n), FREEDOM, 1.2),
    lambda xp, mu, y, nu, sigma: xp.student_t_lpdf(y, nu, mu, sigma),
    student_mu_by_hand,
    1,
)
row(
    "student_t: mu, sigma",
    lambda n: (0.1, 1.2, observations(n), FREEDOM),
    lambda xp, mu, sigma, y, nu: xp.student_t_lpdf(y, nu, mu, sigma),
    student_mu_sigma_by_hand,
    2,
)
row(
    "student_t: all, arrays",
    student_arrays,
    lambda xp, *args: xp.student_t_lpdf(*args),
    student_all_by_hand,
    4,
    matvar=SCALARS,
)
row(
    "bernoulli_logit: theta",
    log_odds,
    lambda xp, theta, n: xp.bernoulli_logit_lpmf(n, theta),
    bernoulli_logit_by_hand,
    1,
    matvar=SCALARS,
)
row(
    "poisson_log: log rate",
    log_rates,
    lambda xp, rate, n: xp.poisson_log_lpmf(n, rate),
    poisson_log_by_hand,
    1,
    matvar=SCALARS,
)

GLM_SIZES = (1000, 100_000)
row(
    "normal_id_glm",
    glm_point("normal"),
    lambda xp, alpha, beta, sigma, y, x: xp.normal_id_glm_lpdf(y, x, alpha, beta, sigma),
    two_passes(weigh_normal),
    3,
    sizes=GLM_SIZES,
    stan=glm_in_stan("normal", "normal_id_glm"),
)
row(
    "bernoulli_logit_glm",
    glm_point("bernoulli"),
    lambda xp, alpha, beta, y, x: xp.bernoulli_logit_glm_lpmf(y, x, alpha, beta),
    two_passes(weigh_bernoulli),
    2,
    sizes=GLM_SIZES,
    stan=glm_in_stan("bernoulli", "bernoulli_logit_glm"),
)
row(
    "poisson_log_glm",
    glm_point("poisson"),
    lambda xp, alpha, beta, y, x: xp.poisson_log_glm_lpmf(y, x, alpha, beta),
    two_passes(weigh_poisson),
    2,
    sizes=GLM_SIZES,
    stan=glm_in_stan("poisson", "poisson_log_glm"),
)


# --- budgets ---

# Seconds per turn of each competitor, and the number of turns.
SECONDS, TURNS = 0.02, 21
# Densities with their variable arguments, which are arrays.
CHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "normal_lpdf": lambda y, scale: vm.normal_lpdf(y, 0.3, scale),
    "student_t_lpdf": lambda y, scale: vm.student_t_lpdf(y, 4.0, 0.3, scale),
    "lognormal_lpdf": lambda y, scale: vm.lognormal_lpdf(y, 0.3, scale),
    "exponential_lpdf": lambda y, rate: vm.exponential_lpdf(y, rate),
    "gamma_lpdf": lambda y, rate: vm.gamma_lpdf(y, 2.0, rate),
    "weibull_lpdf": lambda y, scale: vm.weibull_lpdf(y, 2.0, scale),
}


def linear_models() -> list[Budget]:
    """Compare value and gradient with one product of the matrix with a vector, and with two passes
    by hand.
    """
    found, rows = [], GLM_SIZES[-1]
    for name in ("normal_id_glm", "bernoulli_logit_glm"):
        workload = next(each for each in FAMILIES["densities"] if each.name == name)
        args = workload.point(rows)
        beta, x = args[1], args[-1]
        gradients = {
            way: peers.gradient_function(way, workload, rows) for way in ("varmat", "by hand")
        }
        functions = {way: partial(gradient, *args) for way, gradient in gradients.items()}
        t = timings({"product": partial(np.matmul, x, beta), **functions}, 0.1, 11)
        for other, title, limit in (
            ("product", "X @ beta alone", 1.6),
            ("by hand", "two passes by hand", 0.75),
        ):
            ratio = float(t["varmat"].over(t[other]))
            note = f"{duration(t['varmat'])}, {duration(t[other])}"
            found.append(
                Budget(
                    0,
                    f"{name}, 10^5 x {COLUMNS} / {title}, at most {limit}",
                    ratio,
                    limit,
                    ratio <= limit,
                    note,
                )
            )
    return found


def cost_of_checks() -> list[Budget]:
    """Measure the checks of arguments as a share of value and gradient. The support of an
    observation counts as a part of the density.
    """
    check, found = Domain.check, []

    def unchecked(gradient: Any, *args: Any) -> None:
        Domain.check = lambda *_: None  # type: ignore[method-assign]
        try:
            gradient(*args)
        finally:
            Domain.check = check  # type: ignore[method-assign]

    for size in (1000, 100_000):
        y, other = np.exp(observations(size)), np.exp(0.3 * observations(size)[::-1])
        shares = {}
        for name, density in CHECKED.items():
            gradient = vm.value_and_grad(density, (0, 1))
            ways = {
                "with": partial(gradient, y, other),
                "without": partial(unchecked, gradient, y, other),
            }
            t = timings(ways, SECONDS, TURNS)
            shares[name] = 1.0 - float(t["without"].over(t["with"]))
        worst = max(shares, key=shares.__getitem__)
        note = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
        title = f"share of the checks in a density of {size} elements, at most 0.15"
        found.append(Budget(0, title, shares[worst], 0.15, shares[worst] <= 0.15, note))
    return found


def budgets() -> list[Budget]:
    """Measure the budgets of linear models and checks."""
    return [*linear_models(), *cost_of_checks()]
