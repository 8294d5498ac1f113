"""Models written as loops over observations, as people first write them, compared with the same
models on whole arrays.

The data are simulated, with the sizes of public data sets. JAX would unroll the loops. Where steps
depend on each other it uses a scan instead, and otherwise whole arrays, as its users would.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np

from workloads.workload import Workload

FAMILY = "loops"


def scanned(xp: Any, step: Callable[[Any, Any], tuple[Any, Any]], start: Any, y: Any) -> Any:
    """Sum what the steps return, in the way of each library. Each step returns a pair: the next
    state and a term of the sum.
    """
    if xp.library == "jax":
        from jax import lax

        return xp.sum(lax.scan(step, start, xp.asarray(y))[1])
    total = 0.0
    for now in y:
        start, term = step(start, now)
        total = total + term
    return total


# --- an autoregression ---

ORDER = 5


@cache
def series(times: int) -> np.ndarray:
    rng = np.random.default_rng(times)
    y = rng.normal(size=times)
    for t in range(1, times):
        y[t] += 0.6 * y[t - 1]
    return y


def autoregression(loop: bool) -> Callable[[Any, int], Callable[..., Any]]:
    """The unknowns are the intercept, the coefficients, and the logarithm of the noise."""

    def expression(xp: Any, times: int) -> Callable[..., Any]:
        y = series(times)
        numbers, later = y.tolist(), xp.asarray(y[ORDER:])
        lags = xp.asarray(np.lib.stride_tricks.sliding_window_view(y[:-1], ORDER)[:, ::-1].copy())

        def likelihood(alpha: Any, beta: Any, sigma: Any) -> Any:
            if not loop:
                return xp.normal_id_glm_lpdf(later, lags, alpha, beta, sigma)
            total = 0.0
            for t in range(ORDER, times):
                mu = alpha
                for k in range(ORDER):
                    mu = mu + beta[k] * numbers[t - 1 - k]
                total = total + xp.normal_lpdf(numbers[t], mu, sigma)
            return total

        def log_density(unknowns: Any) -> Any:
            alpha, beta, sigma = unknowns[0], unknowns[1:-1], xp.exp(unknowns[-1])
            priors = xp.normal_lpdf(unknowns[:-1], 0.0, 10.0) + xp.cauchy_lpdf(sigma, 0.0, 2.5)
            return likelihood(alpha, beta, sigma) + priors + unknowns[-1]

        return log_density

    return expression


# --- intercepts of counties ---

COUNTIES = 85


@cache
def houses(count: int) -> dict[str, Any]:
    """Return the data as the Stan program expects them: counties count from one."""
    rng = np.random.default_rng(count)
    county = rng.integers(COUNTIES, size=count)
    uranium, floor = rng.normal(size=COUNTIES)[county], (rng.random(count) < 0.2).astype(float)
    y = (
        1.5
        + 0.3 * rng.normal(size=COUNTIES)[county]
        + 0.7 * uranium
        - 0.6 * floor
        + 0.8 * rng.normal(size=count)
    )
    return {
        "N": count,
        "J": COUNTIES,
        "log_radon": y,
        "log_uppm": uranium,
        "floor_measure": floor,
        "county_idx": county + 1,
    }


def county_intercepts(loop: bool) -> Callable[[Any, int], Callable[..., Any]]:
    """The non-centred model. The unknowns are the standardised intercepts, two slopes, the mean of
    the intercepts, and the logarithms of two scales.
    """

    def expression(xp: Any, count: int) -> Callable[..., Any]:
        data = houses(count)
        arrays = data["log_radon"], data["log_uppm"], data["floor_measure"], data["county_idx"] - 1
        y, uranium, floor, county = map(xp.asarray, arrays)
        rows = list(zip(*(array.tolist() for array in arrays), strict=True))

        def likelihood(alpha: Any, beta: Any, sigma: Any) -> Any:
            if not loop:
                return xp.normal_lpdf(y, alpha[county] + beta[0] * uranium + beta[1] * floor, sigma)
            total = 0.0
            for log_radon, log_uppm, floor_measure, j in rows:
                total = total + xp.normal_lpdf(
                    log_radon, alpha[j] + beta[0] * log_uppm + beta[1] * floor_measure, sigma
                )
            return total

        def log_density(unknowns: Any) -> Any:
            raw, beta, mu = unknowns[:COUNTIES], unknowns[COUNTIES:-3], unknowns[-3]
            log_scales = unknowns[-2:]
            scales = xp.exp(log_scales)
            return (
                likelihood(mu + scales[0] * raw, beta, scales[1])
                + xp.normal_lpdf(scales, 0.0, 1.0)
                + xp.normal_lpdf(unknowns[COUNTIES:-2], 0.0, 10.0)
                + xp.normal_lpdf(raw, 0.0, 1.0)
                + xp.sum(log_scales)
            )

        return log_density

    return expression


# --- volatility, and smoothing ---


def unit_interval(xp: Any, u: Any) -> tuple[Any, Any]:
    """Return a number between 0 and 1 from its logit, and the log-Jacobian."""
    return xp.expit(u), -xp.log1p_exp(-u) - xp.log1p_exp(u)


def garch(xp: Any, times: int) -> Callable[..., Any]:
    """GARCH(1, 1). The unknowns are the mean, the logarithm of the constant, and the logits of the
    weights of the last square and the last variance.
    """
    first, *later = series(times).tolist()

    def log_density(unknowns: Any) -> Any:
        mu, omega = unknowns[0], xp.exp(unknowns[1])
        (alpha, of_alpha), (beta, of_beta) = (
            unit_interval(xp, unknowns[2]),
            unit_interval(xp, unknowns[3]),
        )

        def step(last: Any, y: Any) -> Any:
            variance, residual = last
            variance = omega + alpha * residual**2 + beta * variance
            return (variance, y - mu), xp.normal_lpdf(y, mu, xp.sqrt(variance))

        priors = xp.normal_lpdf(mu, 0.0, 1.0) + xp.normal_lpdf(omega, 0.0, 1.0)
        priors = priors + xp.beta_lpdf(alpha, 2.0, 5.0) + xp.beta_lpdf(beta, 5.0, 2.0)
        start = xp.normal_lpdf(first, mu, 1.0)
        return (
            priors
            + unknowns[1]
            + of_alpha
            + of_beta
            + start
            + scanned(xp, step, (1.0, first - mu), later)
        )

    return log_density


def smoothing(xp: Any, times: int) -> Callable[..., Any]:
    """Exponential smoothing. The unknowns are the first level, the logit of the gain, and the
    logarithm of the noise.
    """
    y = series(times).tolist()

    def log_density(unknowns: Any) -> Any:
        level, sigma = unknowns[0], xp.exp(unknowns[2])
        gain, of_gain = unit_interval(xp, unknowns[1])

        def step(level: Any, now: Any) -> Any:
            return level + gain * (now - level), xp.normal_lpdf(now, level, sigma)

        priors = xp.normal_lpdf(level, 0.0, 1.0) + xp.normal_lpdf(sigma, 0.0, 1.0)
        return priors + of_gain + unknowns[2] + scanned(xp, step, level, y)

    return log_density


for suffix in ("", "_loop"):
    without = ("jax",) if suffix else ()
    Workload(
        FAMILY,
        "autoregression" + suffix,
        (200,),
        lambda times: (np.array([0.1, 0.5, 0.1, -0.1, 0.05, 0.02, 0.1]),),
        autoregression(bool(suffix)),
        without=without,
        stan=lambda times, suffix=suffix: (
            "autoregression" + suffix,
            {"K": ORDER, "T": times, "y": series(times)},
        ),
    )
    Workload(
        FAMILY,
        "county_intercepts" + suffix,
        (919,),
        lambda count: (np.append(0.3 * np.sin(np.arange(COUNTIES)), [0.6, -0.5, 1.4, -1.0, -0.3]),),
        county_intercepts(bool(suffix)),
        without=without,
        stan=lambda count, suffix=suffix: ("radon" + suffix, houses(count)),
    )
Workload(
    FAMILY,
    "garch_loop",
    (1_000,),
    lambda times: (np.array([0.1, -1.0, -1.5, 1.0]),),
    garch,
    stan=lambda times: ("garch", {"T": times, "y": series(times)}),
)
Workload(
    FAMILY,
    "smoothing_loop",
    (4_000,),
    lambda times: (np.array([0.2, -0.5, 0.1]),),
    smoothing,
    stan=lambda times: ("smoothing", {"T": times, "y": series(times)}),
)
