"""Twelve models as people fit them, each stated once, of the data in `stated_data`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import varmat as vm
import varmat.distributions as dist
from workloads.stated_data import absorbed, slope


def hierarchical_logit(X, group, groups, y):
    """A logistic regression whose coefficients vary by group, and are correlated (LKJ)."""
    return vm.Model(
        mu=vm.real(3, prior=dist.Normal(0, 2), dims="term"),
        tau=vm.positive(3, prior=dist.Normal(0, 1), dims="term"),
        L=vm.cholesky_corr(3, prior=dist.LKJCorrCholesky(2)),
        beta=vm.real(groups, 3, centred=False, dims=("group", "term"),
                     prior=lambda mu, tau, L: dist.MultiNormalCholesky(mu, tau[:, None] * L)),
        y=vm.observed(y, lambda beta: dist.BernoulliLogit(np.sum(X * beta[group], axis=1))),
        coords={"term": ["intercept", "age", "income"]},
        recorded=True,
    )  # fmt: skip


def censored_survival(X, end, y):
    """A Weibull regression of lifetimes, some of which had not ended."""
    return vm.Model(
        shape=vm.positive(prior=dist.Gamma(2, 1)),
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(2, prior=dist.Normal(0, 1)),
        y=vm.observed(y, lambda shape, alpha, beta: dist.Weibull(
            shape, np.exp(alpha + X @ beta)).censored(upper=end)),
        recorded=True,
    )  # fmt: skip


def gaussian_process(x, new, y):
    """A Gaussian process with its hyperparameters, and predictions at new places."""

    def covariance(scale, length, noise):
        return vm.gp_exp_quad_cov(x, scale, length) + noise**2 * np.eye(x.size)

    def prediction(scale, length, noise, rng):
        cross = vm.gp_exp_quad_cov(x, new, scale, length)
        weights = np.linalg.solve(covariance(scale, length, noise), cross)
        rest = vm.gp_exp_quad_cov(new, scale, length) - cross.T @ weights
        return {"f": vm.multi_normal_rng(weights.T @ y, rest + 1e-9 * np.eye(new.size), rng=rng)}

    return vm.Model(
        scale=vm.positive(prior=dist.Normal(0, 1)),
        length=vm.positive(prior=dist.InvGamma(5, 5)),
        noise=vm.positive(prior=dist.Normal(0, 1)),
        y=vm.observed(y, lambda scale, length, noise: dist.MultiNormal(
            np.zeros(x.size), covariance(scale, length, noise))),
        generated_quantities=prediction,
        recorded=True,
    )  # fmt: skip


def lotka_volterra(times, y):
    """Predators and prey: a differential equation with unknown rates."""
    return vm.Model(
        rates=vm.positive(4, prior=dist.Normal([1, 0.05, 1, 0.05], [0.5, 0.05, 0.5, 0.05])),
        start=vm.positive(2, prior=dist.Lognormal(np.log(10), 1)),
        sigma=vm.positive(2, prior=dist.Lognormal(-1, 1)),
        z=lambda rates, start: vm.ode_rk45(slope, start, 0.0, times, rates),
        y=vm.observed(y, lambda z, sigma: dist.Lognormal(np.log(z), sigma),
                      dims=("year", "species")),
        recorded=True,
    )  # fmt: skip


def stochastic_volatility(y):
    """Returns whose log variance is a stationary autoregression."""

    def volatility(mu, phi, sigma, z):
        first = z[:1] / np.sqrt(1 - phi**2)
        return mu + sigma * vm.lfilter([1.0], [1.0, -phi], np.concatenate([first, z[1:]]))

    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        phi=vm.interval(-1, 1, prior=dist.Uniform(-1, 1)),
        sigma=vm.positive(prior=dist.Normal(0, 1)),
        z=vm.real(y.size, prior=dist.StdNormal()),
        h=volatility,
        y=vm.observed(y, lambda h: dist.Normal(0, np.exp(h / 2))),
        recorded=True,
    )


def hidden_markov(y):
    """A hidden Markov model with normal observations, and the decoded states."""

    def chain(mu, sigma, rho, Gamma):
        return dist.HiddenMarkov(rho, Gamma, dist.Normal(mu, sigma))

    return vm.Model(
        mu=vm.ordered(2, prior=dist.Normal(0, 3)),
        sigma=vm.positive(prior=dist.Normal(0, 2)),
        rho=vm.simplex(2, prior=dist.Dirichlet(np.ones(2))),
        Gamma=vm.simplex(2, 2, prior=dist.Dirichlet(np.array([[8.0, 2.0], [2.0, 8.0]]))),
        y=vm.observed(y, chain),
        generated_quantities=lambda mu, sigma, rho, Gamma, rng: {
            "state": chain(mu, sigma, rho, Gamma).latent(y, rng)},
        recorded=True,
    )  # fmt: skip


def ordinal(X, y):
    """Ordered categories with a linear predictor."""
    return vm.Model(
        beta=vm.real(3, prior=dist.Normal(0, 1)),
        cut=vm.ordered(3, prior=dist.Normal(0, 3)),
        y=vm.observed(y, lambda beta, cut: dist.OrderedLogisticGLM(X, beta, cut)),
        recorded=True,
    )


def zero_inflated(x, y):
    """Counts with more zeros than a Poisson distribution has, ready for leave-one-out."""
    return vm.Model(
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(prior=dist.Normal(0, 1)),
        psi=vm.interval(0, 1, prior=dist.Beta(1, 1)),
        y=vm.observed(y, lambda alpha, beta, psi: dist.Mixture(
            psi, [dist.DiscreteRange(0, 0), dist.PoissonLog(alpha + beta * x)])),
        recorded=True,
    )  # fmt: skip


def delayed_entry(X, entry, end, y):
    """A Weibull regression of lifetimes, each watched from an entry on, some not to the end."""
    return vm.Model(
        shape=vm.positive(prior=dist.Gamma(2, 1)),
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(2, prior=dist.Normal(0, 1)),
        y=vm.observed(y, lambda shape, alpha, beta: dist.Weibull(
            shape, np.exp(alpha + X @ beta)).truncated(lower=entry).censored(upper=end)),
        recorded=True,
    )  # fmt: skip


def switch_point(y):
    """Counts whose rate changes after an unknown year, which is summed out."""
    year = np.arange(y.size)
    return vm.Model(
        early=vm.positive(prior=dist.Exponential(1)),
        late=vm.positive(prior=dist.Exponential(1)),
        last=vm.discrete(year),
        y=vm.observed(y, lambda early, late, last: dist.Poisson(
            np.where(year <= last, early, late))),
        recorded=True,
    )  # fmt: skip


def occupancy(x, visits, y):
    """Sites that a species may occupy without being seen, with the presence at each."""
    return vm.Model(
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(prior=dist.Normal(0, 1)),
        detection=vm.interval(0, 1, prior=dist.Beta(1, 1)),
        present=vm.discrete([0, 1], y.size, prior=lambda alpha, beta: dist.BernoulliLogit(
            alpha + beta * x)),
        y=vm.observed(y, lambda detection, present: dist.Binomial(visits, present * detection)),
        recorded=True,
    )  # fmt: skip


def doses(times, events, y):
    """Concentrations of a drug swallowed three times, with a clearance for each patient."""
    n = len(y)

    def amount(log_rates, omega, z):
        clearance, volume, absorption = np.exp(log_rates)
        each = clearance * np.exp(omega * z)
        start = [0.0, 0.0]
        return vm.solve_ode_group(
            absorbed, start, 0.0, [times] * n, absorption, each, volume, events=[events] * n
        )[:, 1]

    return vm.Model(
        log_rates=vm.real(3, prior=dist.Normal(np.log([5, 50, 1]), 0.5), centred=False),
        omega=vm.positive(prior=dist.Normal(0, 0.5)),
        sigma=vm.positive(prior=dist.Normal(0, 0.5)),
        z=vm.real(n, prior=dist.Normal(0, 1)),
        amount=amount,
        y=vm.observed(y.ravel(), lambda log_rates, amount, sigma: dist.Lognormal(
            np.log(amount) - log_rates[1], sigma)),
        recorded=True,
    )  # fmt: skip


def sampler(model: vm.Model, tune: int, kept: int, method: str) -> Callable[[int], dict[str, Any]]:
    """A function of a seed that samples four chains, with log likelihood and generated quantities.

    Chains run on all cores, whatever `method` is.
    """

    def draws(seed: int) -> dict[str, Any]:
        found = model.sample(
            kept, tune=tune, chains=4, seed=seed, init_radius=0.5, keep_warmup=False,
            progress_bar=False,
        )  # fmt: skip
        return {str(name): np.asarray(x) for name, x in found.posterior.items()}

    return draws
