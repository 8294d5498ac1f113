"""Whole models: regressions, hierarchies, series, mixtures, a network, and long sums of matrices.

Derivatives by hand are those of the whole model, simplified on paper where that saves a pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np
from scipy.signal import lfilter
from scipy.special import expit, gammaln

from workloads.workload import Workload

FAMILY = "models"
HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
LOG_PI = math.log(math.pi)


@cache
def warm(name: str, *shape: int) -> np.ndarray:
    """Return a buffer that is kept for the next call."""
    return np.empty(shape)


def cauchy(x: float, scale: float) -> tuple[float, float]:
    """Return the log density around zero, and its slope."""
    z = x / scale
    return -LOG_PI - math.log(scale) - math.log1p(z * z), -2.0 * z / (scale * (1.0 + z * z))


def normal(x: Any, scale: float) -> float:
    """Return the log density of numbers around zero."""
    x = np.atleast_1d(x)
    return -0.5 * float(x.dot(x)) / scale**2 - x.size * (math.log(scale) + HALF_LOG_TWO_PI)


# --- regressions: a line and a logistic one ---

ROWS, TALL = 1_000, 100_000


@cache
def regression_data(
    kind: str, rows: int, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predictors, observations, and a point near the coefficients that made them."""
    rng = np.random.default_rng(columns)
    x, beta = rng.normal(size=(rows, columns)), rng.normal(size=columns) / math.sqrt(columns)
    eta = 0.3 + x @ beta
    point = np.append(0.2, 0.9 * beta)
    if kind == "normal":
        return x, eta + rng.normal(size=rows), np.append(point, 0.1)
    return x, (rng.random(rows) < expit(eta)).astype(float), point


def regression_in_stan(kind: str, rows: int, columns: int) -> tuple[str, dict[str, Any]]:
    """Return the Stan program and its data. There is one program for both ways to write the model,
    because stanc turns one into the other.
    """
    x, y, _ = regression_data(kind, rows, columns)
    name, y = (
        ("linear_regression", y) if kind == "normal" else ("logistic_regression", y.astype(int))
    )
    return name, {"N": rows, "K": columns, "x": x, "y": y}


def linear_regression(fused: bool) -> Callable[[Any, int], Callable[..., Any]]:
    """The unknowns are the intercept, the coefficients, and the logarithm of the noise."""

    def expression(xp: Any, columns: int) -> Callable[..., Any]:
        x, y = map(xp.asarray, regression_data("normal", ROWS, columns)[:2])

        def log_density(unknowns: Any) -> Any:
            alpha, beta, log_sigma = unknowns[0], unknowns[1:-1], unknowns[-1]
            sigma = xp.exp(log_sigma)
            likelihood = (
                xp.normal_id_glm_lpdf(y, x, alpha, beta, sigma)
                if fused
                else xp.normal_lpdf(y, x @ beta + alpha, sigma)
            )
            priors = (
                xp.normal_lpdf(alpha, 0.0, 10.0)
                + xp.normal_lpdf(beta, 0.0, 1.0)
                + xp.exponential_lpdf(sigma, 1.0)
            )
            return likelihood + priors + log_sigma

        return log_density

    return expression


def linear_regression_by_hand(unknowns: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
    alpha, beta, log_sigma = float(unknowns[0]), unknowns[1:-1], float(unknowns[-1])
    x, y, _ = regression_data("normal", ROWS, beta.size)
    sigma = math.exp(log_sigma)
    precision = 1.0 / (sigma * sigma)
    z = np.matmul(x, beta, out=warm("residual", ROWS))
    z += alpha
    np.subtract(y, z, z)
    squares = precision * float(z.dot(z))
    value = (
        -0.5 * squares
        - ROWS * (log_sigma + HALF_LOG_TWO_PI)
        + normal(alpha, 10.0)
        + normal(beta, 1.0)
        - sigma
        + log_sigma
    )
    gradient = np.empty(unknowns.size)
    gradient[0] = precision * float(np.add.reduce(z)) - alpha / 100.0
    slopes = np.matmul(z, x, out=gradient[1:-1])
    slopes *= precision
    slopes -= beta
    gradient[-1] = squares - ROWS - sigma + 1.0
    return value, (gradient,)


def logistic_regression(rows: int, fused: bool) -> Callable[[Any, int], Callable[..., Any]]:
    """The unknowns are the intercept and the coefficients."""

    def expression(xp: Any, columns: int) -> Callable[..., Any]:
        x, y = map(xp.asarray, regression_data("bernoulli", rows, columns)[:2])

        def log_density(unknowns: Any) -> Any:
            alpha, beta = unknowns[0], unknowns[1:]
            likelihood = (
                xp.bernoulli_logit_glm_lpmf(y, x, alpha, beta)
                if fused
                else xp.bernoulli_logit_lpmf(y, x @ beta + alpha)
            )
            return likelihood + xp.normal_lpdf(unknowns, 0.0, 2.5)

        return log_density

    return expression


def logistic_regression_by_hand(rows: int) -> Callable[..., tuple[float, tuple[np.ndarray]]]:
    def by_hand(unknowns: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
        beta = unknowns[1:]
        x, y, _ = regression_data("bernoulli", rows, beta.size)
        eta, e, low = (warm(name, rows) for name in ("predictor", "exponential", "low"))
        np.matmul(x, beta, out=eta)
        eta += unknowns[0]
        np.abs(eta, e)
        np.negative(e, e)
        np.exp(e, e)
        # log(1 + exp(eta)) equals max(eta, 0) + log(1 + exp(-
        # eta
        # )).
        value = float(
            y.dot(eta)
            - np.add.reduce(np.maximum(eta, 0.0, out=low))
            - np.add.reduce(np.log1p(e, out=low))
        )
        np.copyto(low, e)
        low[eta > 0.0] = 1.0
        e += 1.0
        low /= e
        score = np.subtract(y, low, out=low)
        gradient = unknowns / -6.25
        gradient[0] += float(np.add.reduce(score))
        gradient[1:] += np.matmul(score, x, out=warm("slopes", beta.size))
        return value + normal(unknowns, 2.5), (gradient,)

    return by_hand


for suffix in ("", "_fused"):
    Workload(
        FAMILY,
        "linear_regression" + suffix,
        sizes=(10, 50, 150),
        point=lambda columns: (regression_data("normal", ROWS, columns)[2],),
        expression=linear_regression(bool(suffix)),
        by_hand=linear_regression_by_hand,
        stan=lambda columns: regression_in_stan("normal", ROWS, columns),
    )
for title, rows, columns in (
    ("logistic_regression", ROWS, (10, 50, 150)),
    ("logistic_regression_tall", TALL, (50,)),
):
    for suffix in ("", "_fused"):
        Workload(
            FAMILY,
            title + suffix,
            sizes=columns,
            point=lambda columns, rows=rows: (regression_data("bernoulli", rows, columns)[2],),
            expression=logistic_regression(rows, bool(suffix)),
            by_hand=logistic_regression_by_hand(rows),
            stan=lambda columns, rows=rows: regression_in_stan("bernoulli", rows, columns),
        )


# --- hierarchies ---

# Treatment effects and standard errors of the eight schools: Rubin (1981), Journal of Educational
# Statistics 6, 377-401.
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS_CONSTANT = -17 * HALF_LOG_TWO_PI - float(np.sum(np.log(ERRORS))) - math.log(5.0)
SCHOOLS_POINT = np.array([0.3, 0.2, -0.2, -0.3, 0.1, 0.3, 0.1, -0.2, -0.2, 0.1])


def eight_schools(xp: Any, size: int) -> Callable[..., Any]:
    """The non-centred model. The unknowns are the standardised effects, their mean, and the
    logarithm of their scale.
    """
    effects, errors = xp.asarray(EFFECTS), xp.asarray(ERRORS)

    def log_density(unknowns: Any) -> Any:
        raw, mu, log_tau = unknowns[:8], unknowns[8], unknowns[9]
        tau = xp.exp(log_tau)
        theta = mu + tau * raw
        lp = xp.normal_lpdf(raw, 0.0, 1.0)
        lp = lp + xp.normal_lpdf(effects, theta, errors)
        lp = lp + xp.normal_lpdf(mu, 0.0, 5.0)
        lp = lp + xp.cauchy_lpdf(tau, 0.0, 5.0)
        return lp + log_tau

    return log_density


def eight_schools_by_hand(unknowns: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
    raw, mu, log_tau = unknowns[:8], float(unknowns[8]), float(unknowns[9])
    tau = math.exp(log_tau)
    residual = (EFFECTS - (mu + tau * raw)) / ERRORS
    prior, slope = cauchy(tau, 5.0)
    value = (
        SCHOOLS_CONSTANT
        - 0.5 * (float(residual.dot(residual) + raw.dot(raw)) + (mu / 5.0) ** 2)
        + prior
        + log_tau
    )
    score = residual / ERRORS
    gradient = np.empty(10)
    np.subtract(tau * score, raw, gradient[:8])
    gradient[8] = np.add.reduce(score) - mu / 25.0
    gradient[9] = tau * (score.dot(raw) + slope) + 1.0
    return value, (gradient,)


RATS, AGES = 30, np.array([-14.0, -7.0, 0.0, 7.0, 14.0])
RAT = np.repeat(np.arange(RATS), AGES.size)


@cache
def growth_data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ages and weights, with a row for each observation, and a point near the parameters
    that made them.
    """
    rng = np.random.default_rng(5)
    alpha, beta = rng.normal(240.0, 14.0, RATS), rng.normal(6.2, 0.5, RATS)
    age = np.tile(AGES, RATS)
    weight = alpha[RAT] + beta[RAT] * age + rng.normal(0.0, 6.0, RAT.size)
    point = np.concatenate((alpha + 2.0, beta + 0.1, [241.0, 6.0], np.log([15.0, 0.6, 5.0])))
    return age, weight, point


def growth_curves(xp: Any, size: int) -> Callable[..., Any]:
    """A line for each rat. The unknowns are intercepts, slopes, their means, and the logarithms of
    their scales and of the noise.
    """
    age, weight = map(xp.asarray, growth_data()[:2])
    rat = xp.asarray(RAT)

    def log_density(unknowns: Any) -> Any:
        alpha, beta, mu_alpha, mu_beta = (
            unknowns[:RATS],
            unknowns[RATS : 2 * RATS],
            unknowns[-5],
            unknowns[-4],
        )
        log_scales = unknowns[-3:]
        scales = xp.exp(log_scales)
        return (
            xp.normal_lpdf(weight, alpha[rat] + beta[rat] * age, scales[2])
            + xp.normal_lpdf(alpha, mu_alpha, scales[0])
            + xp.normal_lpdf(beta, mu_beta, scales[1])
            + xp.normal_lpdf(mu_alpha, 250.0, 100.0)
            + xp.normal_lpdf(mu_beta, 0.0, 10.0)
            + xp.normal_lpdf(scales[0], 0.0, 50.0)
            + xp.normal_lpdf(scales[1], 0.0, 5.0)
            + xp.normal_lpdf(scales[2], 0.0, 50.0)
            + xp.sum(log_scales)
        )

    return log_density


def growth_curves_by_hand(unknowns: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
    alpha, beta, (mu_alpha, mu_beta, *log_scales) = (
        unknowns[:RATS],
        unknowns[RATS : 2 * RATS],
        unknowns[-5:].tolist(),
    )
    weight = growth_data()[1].reshape(RATS, -1)
    sigma_alpha, sigma_beta, sigma = map(math.exp, log_scales)
    residual = weight - beta[:, None] * AGES
    residual -= alpha[:, None]
    squares = float(np.vdot(residual, residual))
    from_alpha, from_beta = alpha - mu_alpha, beta - mu_beta
    value = -0.5 * squares / sigma**2 - weight.size * (log_scales[2] + HALF_LOG_TWO_PI)
    value += normal(from_alpha, sigma_alpha) + normal(from_beta, sigma_beta)
    value += (
        normal(mu_alpha - 250.0, 100.0)
        + normal(mu_beta, 10.0)
        + normal(sigma_alpha, 50.0)
        + normal(sigma_beta, 5.0)
    )
    value += normal(sigma, 50.0) + sum(log_scales)
    gradient = np.empty(unknowns.size)
    residual *= 1.0 / sigma**2
    for part, deviations, scale, weights in (
        (gradient[:RATS], from_alpha, sigma_alpha, None),
        (gradient[RATS : 2 * RATS], from_beta, sigma_beta, AGES),
    ):
        np.subtract(
            np.add.reduce(residual, axis=1) if weights is None else residual @ weights,
            deviations / scale**2,
            part,
        )
    gradient[-5] = float(np.add.reduce(from_alpha)) / sigma_alpha**2 - (mu_alpha - 250.0) / 100.0**2
    gradient[-4] = float(np.add.reduce(from_beta)) / sigma_beta**2 - mu_beta / 10.0**2
    gradient[-3] = (
        float(from_alpha.dot(from_alpha)) / sigma_alpha**2 - RATS - (sigma_alpha / 50.0) ** 2 + 1.0
    )
    gradient[-2] = (
        float(from_beta.dot(from_beta)) / sigma_beta**2 - RATS - (sigma_beta / 5.0) ** 2 + 1.0
    )
    gradient[-1] = squares / sigma**2 - weight.size - (sigma / 50.0) ** 2 + 1.0
    return value, (gradient,)


Workload(
    FAMILY,
    "eight_schools_fused",
    sizes=(8,),
    point=lambda size: (SCHOOLS_POINT.copy(),),
    expression=eight_schools,
    by_hand=eight_schools_by_hand,
    dispatch=True,
    stan=lambda size: ("eight_schools", {"J": size, "y": EFFECTS, "sigma": ERRORS}),
)
Workload(
    FAMILY,
    "growth_curves",
    sizes=(RATS,),
    point=lambda size: (growth_data()[2].copy(),),
    expression=growth_curves,
    by_hand=growth_curves_by_hand,
    dispatch=True,
    stan=lambda rats: (
        "growth_curves",
        {
            "N": RAT.size,
            "J": rats,
            "rat": RAT + 1,
            "age": growth_data()[0],
            "weight": growth_data()[1],
        },
    ),
)


# --- series: stochastic volatility and a hidden Markov chain ---


def autoregression(xp: Any, phi: Any, e: Any) -> Any:
    """Return the solution of ``z[t] = phi z[t - 1] + e[t]``, in the way of each library."""
    if xp.library == "varmat":
        return xp.lfilter(1.0, [1.0, -phi], e)
    if xp.library == "jax":
        from jax import lax

        return lax.scan(lambda z, now: (phi * z + now,) * 2, xp.asarray(0.0), e)[1]
    # The number of steps is the number of binary digits of the length. A loop over times would take
    # a hundred times as long.
    lag = 1
    while lag < len(e):
        e = xp.concatenate([e[:lag], e[lag:] + phi * e[:-lag]])
        phi, lag = phi * phi, 2 * lag
    return e


@cache
def returns(times: int) -> np.ndarray:
    rng = np.random.default_rng(times)
    z = lfilter([1.0], [1.0, -0.9], 0.3 * rng.normal(size=times))
    return np.exp(0.5 * (z - 1.0)) * rng.normal(size=times)


def volatility_point(times: int) -> tuple[np.ndarray]:
    """The unknowns are the innovations, the mean, the inverse hyperbolic tangent of the
    persistence, and the logarithm of the scale.
    """
    return (
        np.append(0.5 * np.random.default_rng(times + 1).normal(size=times), [-0.8, 1.3, -1.0]),
    )


def stochastic_volatility(xp: Any, times: int) -> Callable[..., Any]:
    y = xp.asarray(returns(times))

    def log_density(unknowns: Any) -> Any:
        raw, mu, atanh_phi, log_sigma = unknowns[:-3], unknowns[-3], unknowns[-2], unknowns[-1]
        phi, sigma = xp.tanh(atanh_phi), xp.exp(log_sigma)
        stationary = 1.0 - phi * phi
        e = xp.concatenate([raw[:1] / xp.sqrt(stationary), raw[1:]])
        h = mu + sigma * autoregression(xp, phi, e)
        likelihood = xp.normal_lpdf(y, 0.0, xp.exp(0.5 * h))
        priors = (
            xp.normal_lpdf(raw, 0.0, 1.0)
            + xp.cauchy_lpdf(mu, 0.0, 10.0)
            + xp.cauchy_lpdf(sigma, 0.0, 5.0)
        )
        return likelihood + priors + xp.log(stationary) + log_sigma

    return log_density


def stochastic_volatility_by_hand(unknowns: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
    raw, (mu, atanh_phi, log_sigma) = unknowns[:-3], unknowns[-3:].tolist()
    times = raw.size
    y = returns(times)
    phi, sigma = math.tanh(atanh_phi), math.exp(log_sigma)
    stationary = 1.0 - phi * phi
    e, h, w = (warm(name, times) for name in ("innovations", "h", "w"))
    np.copyto(e, raw)
    e[0] /= math.sqrt(stationary)
    z = lfilter((1.0,), (1.0, -phi), e)
    np.multiply(z, sigma, h)
    h += mu
    np.negative(h, w)
    np.exp(w, w)
    w *= y
    w *= y
    of_mu, of_sigma = cauchy(mu, 10.0), cauchy(sigma, 5.0)
    value = (
        -0.5 * float(np.add.reduce(w) + np.add.reduce(h))
        - times * HALF_LOG_TWO_PI
        + normal(raw, 1.0)
    )
    value += of_mu[0] + of_sigma[0] + math.log(stationary) + log_sigma
    w -= 1.0
    w *= 0.5
    gradient = np.empty(unknowns.size)
    gradient[-3] = float(np.add.reduce(w)) + of_mu[1]
    gradient[-1] = sigma * (float(w.dot(z)) + of_sigma[1]) + 1.0
    w *= sigma
    adjoints = lfilter((1.0,), (1.0, -phi), w[::-1])[::-1]
    of_phi = float(adjoints[1:].dot(z[:-1])) + float(adjoints[0] * e[0]) * phi / stationary
    gradient[-2] = of_phi * stationary - 2.0 * phi
    np.subtract(adjoints, raw, gradient[:-3])
    gradient[0] = adjoints[0] / math.sqrt(stationary) - raw[0]
    return value, (gradient,)


STAY, LEAVE = np.eye(2), 1.0 - np.eye(2)


@cache
def chain_data(times: int) -> np.ndarray:
    """Return observations around 0 and 3, from a chain that leaves a state every ten or twenty
    times.
    """
    rng = np.random.default_rng(times)
    state, y = 0, rng.normal(size=times)
    for t, u in enumerate(rng.random(times)):
        state = 1 - state if u < (0.05, 0.1)[state] else state
        y[t] += 3.0 * state
    return y


def log_chain(xp: Any, log_omegas: Any, gamma: Any) -> Any:
    """Return the log likelihood of a chain that may start in either state, in the way of each
    library.
    """
    if xp.library == "varmat":
        return xp.hmm_marginal(log_omegas, gamma, np.array([0.5, 0.5]))
    if xp.library == "jax":
        return scaled_filter(xp, log_omegas, gamma)
    # Logarithms of transitions times emissions are multiplied in pairs. This takes few operations,
    # whatever the length.
    steps = xp.log(gamma) + log_omegas.T[1:, None, :]
    while len(steps) > 1:
        pairs = len(steps) // 2
        product = xp.logsumexp(
            steps[: 2 * pairs : 2, :, :, None] + steps[1 : 2 * pairs : 2, None, :, :], axis=2
        )
        steps = xp.concatenate([product, steps[2 * pairs :]]) if len(steps) % 2 else product
    return xp.logsumexp(log_omegas[:, 0] + xp.logsumexp(steps[0], axis=1)) - math.log(2.0)


def scaled_filter(xp: Any, log_omegas: Any, gamma: Any) -> Any:
    """Filter step by step, with probabilities that are normalised at each step. This is the fastest
    way in compiled libraries.
    """
    from jax import lax

    largest = xp.max(log_omegas, axis=0)
    omegas = xp.exp(log_omegas - largest).T

    def step(states: Any, omega: Any) -> Any:
        states = (states @ gamma) * omega
        total = xp.sum(states)
        return states / total, xp.log(total)

    total = 0.5 * xp.sum(omegas[0])
    logs = lax.scan(step, 0.5 * omegas[0] / total, omegas[1:])[1]
    return xp.log(total) + xp.sum(logs) + xp.sum(largest)


def hidden_markov(xp: Any, times: int) -> Callable[..., Any]:
    """The unknowns are the log odds of staying in each of two states, and the means of the
    states.
    """
    stay, leave = xp.asarray(STAY), xp.asarray(LEAVE)

    def log_density(unknowns: Any, y: Any) -> Any:
        p, mu = xp.expit(unknowns[:2]), unknowns[2:]
        gamma = p[:, None] * stay + (1.0 - p)[:, None] * leave
        log_omegas = -0.5 * (y - mu[:, None]) ** 2 - HALF_LOG_TWO_PI
        return log_chain(xp, log_omegas, gamma) + xp.normal_lpdf(unknowns, 0.0, 5.0)

    return log_density


def pairs_multiplied(steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multiply the matrices along the last axis with their neighbours. Scale them to a largest
    element of 1, and return the scales too.
    """
    pairs = steps.shape[2] // 2
    left, right = steps[:, :, : 2 * pairs : 2], steps[:, :, 1 : 2 * pairs : 2]
    products = left[:, 0, None] * right[0]
    products += left[:, 1, None] * right[1]
    scales = products.max(axis=(0, 1))
    products /= scales
    return np.concatenate((products, steps[:, :, 2 * pairs :]), axis=2), scales


def pairs_reversed(g: np.ndarray, steps: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return the adjoints of the matrices from those of their products; the scales count as
    constants.
    """
    pairs = scales.size
    left, right = steps[:, :, : 2 * pairs : 2], steps[:, :, 1 : 2 * pairs : 2]
    adjoints = np.empty(steps.shape)
    adjoints[:, :, 2 * pairs :] = g[:, :, pairs:]
    g = g[:, :, :pairs] / scales
    adjoints[:, :, : 2 * pairs : 2] = g[:, 0, None] * right[:, 0] + g[:, 1, None] * right[:, 1]
    adjoints[:, :, 1 : 2 * pairs : 2] = left[0][:, None] * g[0] + left[1][:, None] * g[1]
    return adjoints


def hidden_markov_by_hand(unknowns: np.ndarray, y: np.ndarray) -> tuple[float, tuple[np.ndarray]]:
    """Multiply transitions times emissions in pairs up a tree, and take the adjoints down again."""
    p, mu = expit(unknowns[:2]), unknowns[2:]
    gamma = np.where(STAY, p[:, None], 1.0 - p[:, None])
    residuals = y - mu[:, None]
    log_omegas = -0.5 * residuals * residuals
    largest = log_omegas.max(axis=0)
    omegas = np.exp(log_omegas - largest)
    value = float(np.add.reduce(largest)) - y.size * HALF_LOG_TWO_PI + normal(unknowns, 5.0)
    levels, scales = [gamma[:, :, None] * omegas[:, 1:]], []
    while levels[-1].shape[2] > 1:
        products, scale = pairs_multiplied(levels[-1])
        value += float(np.add.reduce(np.log(scale)))
        levels.append(products)
        scales.append(scale)
    start, chain = 0.5 * omegas[:, 0], levels.pop()[:, :, 0]
    ends = np.add.reduce(chain, axis=1)
    likelihood = float(start.dot(ends))
    g = np.repeat(start / likelihood, 2).reshape(2, 2, 1)
    for steps, scale in zip(reversed(levels), reversed(scales), strict=True):
        g = pairs_reversed(g, steps, scale)
    g *= omegas[:, 1:]
    of_gamma = np.add.reduce(g, axis=2)
    g *= gamma[:, :, None]
    states = np.empty(residuals.shape)
    states[:, 0] = start * ends / likelihood
    np.add(g[0], g[1], states[:, 1:])
    gradient = unknowns / -25.0
    gradient[:2] += np.add.reduce(np.where(STAY, of_gamma, -of_gamma), axis=1) * p * (1.0 - p)
    gradient[2:] += np.einsum("it,it->i", states, residuals)
    return value + math.log(likelihood), (gradient,)


Workload(
    FAMILY,
    "stochastic_volatility",
    sizes=(2, 8, 64, 512, 8192),
    point=volatility_point,
    expression=stochastic_volatility,
    by_hand=stochastic_volatility_by_hand,
    stan=lambda times: ("stochastic_volatility", {"T": times, "y": returns(times)}),
)
Workload(
    FAMILY,
    "hidden_markov",
    sizes=(100, 1_000, 10_000),
    point=lambda times: (np.array([2.5, 2.0, 0.1, 2.8]), chain_data(times)),
    expression=hidden_markov,
    by_hand=hidden_markov_by_hand,
    stan=lambda times: ("hidden_markov", {"T": times, "y": chain_data(times)}),
)


# --- a Gaussian mixture, the objective of ADBench ---

MIXED = 1_000
WISHART_GAMMA, WISHART_M = 1.0, 0


@cache
def mixture_data(dimensions: int) -> np.ndarray:
    return np.random.default_rng(dimensions).normal(size=(MIXED, dimensions))


def mixture_point(dimensions: int) -> Callable[[int], tuple[np.ndarray, ...]]:
    """Return log weights, means, and factors of the inverse covariances: logarithms of the
    diagonal, then the elements below it.
    """

    def point(components: int) -> tuple[np.ndarray, ...]:
        rng, factor = np.random.default_rng(components), dimensions * (dimensions + 1) // 2
        return (
            rng.normal(size=components),
            rng.random((components, dimensions)),
            rng.normal(size=(components, factor)) / dimensions,
        )

    return point


@cache
def places(dimensions: int) -> np.ndarray:
    """Return where the elements of a lower triangle are in the list of its diagonal, the elements
    below it column by column, and a zero.
    """
    d = dimensions
    found = np.full((d, d), d * (d + 1) // 2)
    np.fill_diagonal(found, np.arange(d))
    found.T[np.triu_indices(d, 1)] = np.arange(d, d * (d + 1) // 2)
    return found


def mixture_constant(dimensions: int, components: int) -> float:
    """Return the constants of the mixture and of the Wishart prior."""
    d = dimensions
    freedom = d + WISHART_M + 1
    log_gamma = 0.25 * d * (d - 1) * LOG_PI + float(np.sum(gammaln(0.5 * (freedom - np.arange(d)))))
    prior = freedom * d * math.log(WISHART_GAMMA / math.sqrt(2.0)) - log_gamma
    return -MIXED * d * HALF_LOG_TWO_PI - components * prior


def gaussian_mixture(dimensions: int) -> Callable[[Any, int], Callable[..., Any]]:
    def expression(xp: Any, components: int) -> Callable[..., Any]:
        d, k = dimensions, components
        transposed = xp.asarray(np.ascontiguousarray(mixture_data(d).T))
        place, zero = xp.asarray(places(d)), xp.asarray(np.zeros((k, 1)))
        constant = mixture_constant(d, k)

        def objective(alphas: Any, means: Any, factors: Any) -> Any:
            logs, below = factors[:, :d], factors[:, d:]
            diagonal, sums = xp.exp(logs), xp.sum(logs, axis=1)
            lower = xp.concatenate([diagonal, below, zero], axis=1)[:, place]
            at_points = xp.reshape(xp.reshape(lower, (k * d, d)) @ transposed, (k, d, MIXED))
            whitened = at_points - lower @ means[:, :, None]
            terms = (alphas + sums)[:, None] - 0.5 * xp.sum(whitened**2, axis=1)
            prior = 0.5 * WISHART_GAMMA**2 * (
                xp.sum(diagonal**2) + xp.sum(below**2)
            ) - WISHART_M * xp.sum(sums)
            return (
                constant
                + xp.sum(xp.logsumexp(terms, axis=0))
                - MIXED * xp.logsumexp(alphas)
                + prior
            )

        return objective

    return expression


def gaussian_mixture_by_hand(
    alphas: np.ndarray, means: np.ndarray, factors: np.ndarray
) -> tuple[float, tuple[np.ndarray, ...]]:
    k, d = means.shape
    x, place = mixture_data(d), places(d)
    diagonal, below, sums = np.exp(factors[:, :d]), factors[:, d:], factors[:, :d].sum(axis=1)
    lower = np.concatenate((diagonal, below, np.zeros((k, 1))), axis=1)[:, place]
    whitened, terms = warm("whitened", k, d, MIXED), warm("terms", k, MIXED)
    np.matmul(lower.reshape(k * d, d), x.T, out=whitened.reshape(k * d, MIXED))
    whitened -= lower @ means[:, :, None]
    np.einsum("kdn,kdn->kn", whitened, whitened, out=terms)
    terms *= -0.5
    terms += (alphas + sums)[:, None]
    largest = terms.max(axis=0)
    terms -= largest
    np.exp(terms, terms)
    totals = np.add.reduce(terms, axis=0)
    weights = np.exp(alphas - alphas.max())
    total = float(np.add.reduce(weights))
    value = mixture_constant(d, k) + float(np.add.reduce(largest) + np.add.reduce(np.log(totals)))
    value -= MIXED * (float(alphas.max()) + math.log(total))
    value += 0.5 * WISHART_GAMMA**2 * float(
        np.vdot(diagonal, diagonal) + np.vdot(below, below)
    ) - WISHART_M * float(sums.sum())
    terms /= totals
    shares = np.add.reduce(terms, axis=1)
    whitened *= terms[:, None]
    sums_of_g = np.add.reduce(whitened, axis=2)
    of_lower = sums_of_g[:, :, None] * means[:, None]
    of_lower -= (whitened.reshape(k * d, MIXED) @ x).reshape(k, d, d)
    of_factors = np.empty(factors.shape)
    of_diagonal = np.einsum("kdd->kd", of_lower)
    np.multiply(of_diagonal + WISHART_GAMMA**2 * diagonal, diagonal, of_factors[:, :d])
    of_factors[:, :d] += shares[:, None] - WISHART_M
    columns, rows = np.triu_indices(d, 1)
    np.add(of_lower[:, rows, columns], WISHART_GAMMA**2 * below, of_factors[:, d:])
    of_means = np.matmul(sums_of_g[:, None], lower)[:, 0]
    return value, (shares - MIXED / total * weights, of_means, of_factors)


for dimensions, components in ((2, (5,)), (10, (5, 25))):
    Workload(
        FAMILY,
        f"gaussian_mixture_{dimensions}d",
        sizes=components,
        point=mixture_point(dimensions),
        expression=gaussian_mixture(dimensions),
        by_hand=gaussian_mixture_by_hand,
        variables=3,
        stan=lambda components, d=dimensions: (
            "gaussian_mixture",
            {
                "N": MIXED,
                "D": d,
                "K": components,
                "x": mixture_data(d).T,
                "constant": mixture_constant(d, components),
            },
        ),
    )


# --- a recurrent network ---

STEPS, BATCH, INPUTS = 50, 8, 8


@cache
def network_data() -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, a row for each time and series, and the desired last state."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(STEPS * BATCH, INPUTS)), rng.normal(size=BATCH)


def network_point(hidden: int) -> tuple[np.ndarray, ...]:
    """Return weights of inputs and of states, offsets, and weights of the last state."""
    rng = np.random.default_rng(hidden)
    inputs, states = (
        rng.normal(size=(INPUTS, hidden)) / math.sqrt(INPUTS),
        rng.normal(size=(hidden, hidden)) / math.sqrt(hidden),
    )
    return (
        inputs,
        states,
        0.1 * rng.normal(size=hidden),
        rng.normal(size=hidden) / math.sqrt(hidden),
    )


def last_state(xp: Any, drive: Any, states: Any) -> Any:
    """Return the last of ``h[t] = tanh(drive[t] + h[t - 1] @ states)``, from zero, in the way of
    each library.
    """
    if xp.library == "jax":
        from jax import lax

        return lax.scan(
            lambda h, now: (xp.tanh(now + h @ states), None), xp.tanh(drive[0]), drive[1:]
        )[0]
    # If PyTorch took one index after the other, each derivative would be a whole array.
    now = drive.unbind() if xp.library == "torch" else drive
    h = xp.tanh(now[0])
    for t in range(1, STEPS):
        h = xp.tanh(now[t] + h @ states)
    return h


def recurrent_network(xp: Any, hidden: int) -> Callable[..., Any]:
    x, target = map(xp.asarray, network_data())

    def loss(inputs: Any, states: Any, offsets: Any, outputs: Any) -> Any:
        if xp.library == "autograd":
            drive = [x[BATCH * t : BATCH * (t + 1)] @ inputs + offsets for t in range(STEPS)]
        else:
            drive = xp.reshape(x @ inputs + offsets, (STEPS, BATCH, hidden))
        return xp.sum((last_state(xp, drive, states) @ outputs - target) ** 2)

    return loss


def recurrent_network_by_hand(
    inputs: np.ndarray, states: np.ndarray, offsets: np.ndarray, outputs: np.ndarray
) -> tuple[float, tuple[np.ndarray, ...]]:
    """Backpropagate through time. The gradient of each set of weights is one product."""
    x, target = network_data()
    hidden = offsets.size
    h, g, back = (
        warm("h", STEPS, BATCH, hidden),
        warm("g", STEPS, BATCH, hidden),
        warm("back", BATCH, hidden),
    )
    drive = np.matmul(x, inputs, out=h.reshape(STEPS * BATCH, hidden))
    drive += offsets
    np.tanh(h[0], h[0])
    for before, now in pairwise(h):
        now += np.matmul(before, states, out=back)
        np.tanh(now, now)
    error = h[-1] @ outputs
    error -= target
    value = float(error.dot(error))
    error *= 2.0
    # Compute the slopes of all steps at once, and then multiply them by what comes back from the
    # next step.
    np.multiply(h, h, g)
    np.subtract(1.0, g, g)
    g[-1] *= np.multiply.outer(error, outputs)
    transposed = states.T
    for t in range(STEPS - 2, -1, -1):
        g[t] *= np.matmul(g[t + 1], transposed, out=back)
    flat = g.reshape(STEPS * BATCH, hidden)
    of_states = h[:-1].reshape(-1, hidden).T @ flat[BATCH:]
    return value, (x.T @ flat, of_states, np.add.reduce(flat, axis=0), error @ h[-1])


Workload(
    FAMILY,
    "recurrent_network",
    sizes=(4, 16, 64, 256),
    point=network_point,
    expression=recurrent_network,
    by_hand=recurrent_network_by_hand,
    variables=4,
)


# --- a hundred additions to a matrix ---

ADDITIONS = 100


def addition_point(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a square matrix, and the rows that are added to all its rows, one after the other."""
    rng = np.random.default_rng(rows)
    return rng.normal(size=(rows, rows)), rng.normal(size=(ADDITIONS, rows))


def additions(xp: Any, rows: int) -> Callable[..., Any]:
    def half_of_squares(a: Any, b: Any) -> Any:
        for i in range(ADDITIONS):
            a = a + b[i]
        return 0.5 * xp.sum(a * a)

    return half_of_squares


def additions_by_hand(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[np.ndarray, ...]]:
    total = a + b[0]
    for row in b[1:]:
        total += row
    of_b = np.empty(b.shape)
    of_b[:] = np.add.reduce(total, axis=0)
    return 0.5 * float(np.vdot(total, total)), (total, of_b)


def additions_to_rows(xp: Any, rows: int) -> Callable[..., Any]:
    def half_of_squares(a: Any, b: Any) -> Any:
        if xp.library == "jax":
            for i in range(ADDITIONS):
                a = a.at[i].add(b)
        else:
            a = a.clone() if xp.library == "torch" else xp.copy(a)
            for i in range(ADDITIONS):
                a[i] += b
        return 0.5 * xp.sum(a * a)

    return half_of_squares


def additions_to_rows_by_hand(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[np.ndarray, ...]]:
    total = a.copy()
    for i in range(ADDITIONS):
        total[i] += b
    return 0.5 * float(np.vdot(total, total)), (total, np.add.reduce(total[:ADDITIONS], axis=0))


Workload(
    FAMILY,
    "hundred_additions",
    sizes=(10, 100, 1_000),
    point=addition_point,
    expression=additions,
    by_hand=additions_by_hand,
    variables=2,
)
Workload(
    FAMILY,
    "hundred_additions_in_place",
    sizes=(100, 1_000),
    point=lambda rows: (addition_point(rows)[0], addition_point(rows)[1][0]),
    expression=additions_to_rows,
    by_hand=additions_to_rows_by_hand,
    variables=2,
    without=("autograd",),
)
