"""Check draws: against exact posterior moments, and by simulation-based calibration.

    python asv_benchmarks/check_sampling.py [--quick]

The first check samples the eight schools (non-centred). It compares means and standard deviations
of the draws with numerical integration, which is exact because mu and theta are normal given tau.
It also compares the means with the reference means in the posteriordb collection
(eight_schools-eight_schools_noncentered, 10,000 draws). Each difference is in units of its Monte
Carlo error.

The second check is simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman
2018, arXiv:1804.06788) of three small models. Parameters are drawn from the prior, data from the
model, and the posterior is sampled. The rank of the true value among the draws is uniform if
density, Jacobian, gradient and sampler are right. `varmat.testing.calibration` does this, and the
script prints histograms of ranks and p-values. It exits with 1 if a difference is over 4 errors, or
if a p-value is under 0.05 divided by the number of tests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import environment  # noqa: F401 - before NumPy
import numpy as np
from workloads.dispatch import EFFECTS, ERRORS

import varmat as vm
from varmat.testing import calibration

# Means of theta, mu and tau, and their Monte Carlo errors.
REFERENCE = np.array(
    [6.1505, 4.9396, 3.9059, 4.7960, 3.6144, 4.0511, 6.3172, 4.8840, 4.4105, 3.6021]
)
REFERENCE_ERRORS = np.array(
    [0.0557, 0.0462, 0.0542, 0.0475, 0.0461, 0.0485, 0.0499, 0.0543, 0.0330, 0.0319]
)
NAMES = [*(f"theta[{i}]" for i in range(1, 9)), "mu", "tau"]
LARGEST = 4.0


def exact_moments() -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior means and standard deviations of theta, mu and tau. They are normal
    given tau, and the trapezoid rule integrates over log tau.
    """
    tau = np.exp(np.linspace(-18.0, 12.0, 30_001))[:, None]
    precision = 1 / (ERRORS**2 + tau**2)
    variance = 1 / (1 / 25 + precision.sum(axis=1, keepdims=True))
    centre = variance * (precision @ EFFECTS)[:, None]
    residuals = np.sum(np.log(precision) - precision * EFFECTS**2, axis=1, keepdims=True)
    weights = (
        0.5 * (residuals + np.log(variance) + centre**2 / variance)
        - np.log1p((tau / 5) ** 2)
        + np.log(tau)
    )
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    # Given tau, the mean of theta is between its own estimate and mu.
    share = tau**2 * precision
    theta = share * EFFECTS + (1 - share) * centre
    spread = share * ERRORS**2 + (1 - share) ** 2 * variance
    means = np.hstack([theta, centre, tau])
    squares = np.hstack([spread, variance, np.zeros_like(tau)]) + means**2
    first, second = (np.sum(weights * moment, axis=0) for moment in (means, squares))
    return first, np.sqrt(second - first**2)


def schools_draws(draws: int) -> np.ndarray:
    """Return draws with the axes chains, draws, and then theta, mu and tau."""

    def effects(theta_trans: Any, mu: Any, tau: Any) -> dict[str, Any]:
        return {"theta": mu + tau * theta_trans}

    def log_density(theta_trans: Any, mu: Any, tau: Any, theta: Any) -> Any:
        prior = (
            vm.std_normal_lpdf(theta_trans) + vm.normal_lpdf(mu, 0, 5) + vm.cauchy_lpdf(tau, 0, 5)
        )
        return prior + vm.normal_lpdf(EFFECTS, theta, ERRORS)

    parameters = {"theta_trans": vm.real(8), "mu": vm.real(), "tau": vm.positive()}
    model = vm.Model(log_density, parameters, transformed_parameters=effects)
    posterior = model.sample(
        draws=draws, tune=1000, seed=1, target_accept=0.95, progress_bar=False
    ).posterior
    return np.concatenate(
        [posterior["theta"].values, *(posterior[name].values[..., None] for name in ("mu", "tau"))],
        axis=-1,
    )


def monte_carlo_error(x: np.ndarray) -> float:
    """Return the Monte Carlo error of a mean, from the means of 20 batches in each chain."""
    batches = np.stack(np.split(x[:, : x.shape[1] // 20 * 20], 20, axis=1))
    return float(np.std(batches.mean(axis=-1), ddof=1) / np.sqrt(20 * len(x)))


def check_schools(draws: int) -> int:
    """Print a row for each unknown, and return how many differences are too large."""
    chains = schools_draws(draws)
    means, deviations = exact_moments()
    print(
        f"Eight schools, {chains.shape[0]} chains of {draws} draws; differences in Monte Carlo "
        "errors"
    )
    print(
        f"{'':10}{'mean':>9}{'exact':>9}{'diff':>7}{'reference':>11}{'diff':>7}{'sd':>9}{'exact':>9}{'diff':>7}"
    )
    bad = 0
    for i, name in enumerate(NAMES):
        x = chains[..., i]
        error, mean, deviation = monte_carlo_error(x), x.mean(), x.std()
        # The delta method applies, because the standard deviation is a function of the mean square.
        spread = monte_carlo_error((x - mean) ** 2) / (2 * deviation)
        by_mean, by_deviation = (mean - means[i]) / error, (deviation - deviations[i]) / spread
        by_reference = (mean - REFERENCE[i]) / np.hypot(error, REFERENCE_ERRORS[i])
        print(
            f"{name:10}{mean:9.3f}{means[i]:9.3f}{by_mean:7.1f}{REFERENCE[i]:11.3f}{by_reference:7.1f}"
            f"{deviation:9.3f}{deviations[i]:9.3f}{by_deviation:7.1f}"
        )
        bad += sum(
            abs(difference) > LARGEST for difference in (by_mean, by_reference, by_deviation)
        )
    return bad


class Calibrated(NamedTuple):
    """A model to be calibrated: draws from the prior, simulated data, and the model given the
    data.
    """

    prior: Callable[[np.random.Generator], dict[str, Any]]
    simulate: Callable[..., np.ndarray]
    build: Callable[[np.ndarray], vm.Model]


X = np.column_stack([np.ones(20), np.linspace(-1.5, 1.5, 20)])


def regression(y: np.ndarray) -> vm.Model:
    def log_density(beta: Any, sigma: Any) -> Any:
        prior = vm.std_normal_lpdf(beta) + vm.gamma_lpdf(sigma, 4, 4)
        return prior + vm.normal_id_glm_lpdf(y, X, 0.0, beta, sigma)

    return vm.Model(log_density, beta=vm.real(2), sigma=vm.positive())


def proportions(y: np.ndarray) -> vm.Model:
    def log_density(weights: Any, theta: Any) -> Any:
        prior = vm.dirichlet_lpdf(weights, np.array([1.0, 2.0, 3.0])) + vm.beta_lpdf(theta, 2, 2)
        return prior + vm.multinomial_lpmf(y[:3], weights) + vm.binomial_lpmf(y[3], 10, theta)

    return vm.Model(log_density, weights=vm.simplex(3), theta=vm.lower_upper(0, 1))


def pair(y: np.ndarray) -> vm.Model:
    def log_density(factor: Any, scales: Any) -> Any:
        prior = vm.lkj_corr_cholesky_lpdf(factor, 2.0) + vm.lognormal_lpdf(scales, 0, 0.5)
        return prior + vm.multi_normal_cholesky_lpdf(y, np.zeros(2), scales[:, None] * factor)

    return vm.Model(log_density, factor=vm.cholesky_corr(2), scales=vm.positive(2))


MODELS = {
    "linear regression, scale positive": Calibrated(
        lambda rng: {
            "beta": vm.std_normal_rng(rng=rng, size=2),
            "sigma": vm.gamma_rng(4, 4, rng=rng),
        },
        lambda rng, beta, sigma: vm.normal_id_glm_rng(X, 0.0, beta, sigma, rng=rng),
        regression,
    ),
    "proportions: a simplex and a probability": Calibrated(
        lambda rng: {
            "weights": vm.dirichlet_rng([1.0, 2.0, 3.0], rng=rng),
            "theta": vm.beta_rng(2, 2, rng=rng),
        },
        lambda rng, weights, theta: np.append(
            vm.multinomial_rng(weights, 15, rng=rng), vm.binomial_rng(10, theta, rng=rng)
        ),
        proportions,
    ),
    "correlated pair: factor of a correlation matrix": Calibrated(
        lambda rng: {
            "factor": vm.lkj_corr_cholesky_rng(2, 2.0, rng=rng),
            "scales": vm.lognormal_rng(0, 0.5, rng=rng, size=2),
        },
        lambda rng, factor, scales: vm.multi_normal_cholesky_rng(
            np.zeros(2), scales[:, None] * factor, rng=rng, size=10
        ),
        pair,
    ),
}


def calibrate(repeats: int, draws: int) -> dict[str, float]:
    """Print histograms of ranks, and return the p-values."""
    print("\nSimulation-based calibration")
    p_values = {}
    for title, each in MODELS.items():
        found = calibration(
            *each, simulations=repeats, draws=draws, seed=7, tune=300, target_accept=0.9
        )
        print(f"{title}: {found!r}", flush=True)
        p_values |= {f"{title}: {label}": p for label, p in found.p_values.items()}
    return p_values


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws and data sets")
    quick = parser.parse_args().quick
    bad = check_schools(1000 if quick else 10_000)
    p_values = calibrate(*((40, 63) if quick else (200, 63)))
    low = {label: p for label, p in p_values.items() if p < 0.05 / len(p_values)}
    print(
        f"\n{bad} differences over {LARGEST:g} errors; smallest p-value "
        f"{min(p_values.values()):.4f} of {len(p_values)}"
    )
    for label in low:
        print(f"not uniform: {label}")
    return 1 if bad or low else 0


if __name__ == "__main__":
    sys.exit(main())
