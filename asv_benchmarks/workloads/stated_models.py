"""Eight models as people fit them, each stated once, with simulated data.

Run one with ``python -m asv_benchmarks.workloads.stated_models NAME``. Each function returns the
model, and the true values of its parameters.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import varmat as vm
import varmat.distributions as dist


def hierarchical_logit(groups=40, n=1200):
    """A logistic regression whose coefficients vary by group, and are correlated (LKJ)."""
    rng = np.random.default_rng(1)
    group, X = rng.integers(groups, size=n), np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    true = [0.5, -1.0, 0.8] + rng.normal(size=(groups, 3)) * [1.0, 0.5, 0.3]
    y = vm.bernoulli_logit_rng(np.sum(X * true[group], axis=1), rng=rng)

    model = vm.Model(
        mu=vm.real(3, prior=dist.Normal(0, 2), dims="term"),
        tau=vm.positive(3, prior=dist.Normal(0, 1), dims="term"),
        L=vm.cholesky_corr(3, prior=dist.LKJCorrCholesky(2)),
        beta=vm.real(groups, 3, centred=False, dims=("group", "term"),
                     prior=lambda mu, tau, L: dist.MultiNormalCholesky(mu, tau[:, None] * L)),
        y=vm.observed(y, lambda beta: dist.BernoulliLogit(np.sum(X * beta[group], axis=1))),
        coords={"term": ["intercept", "age", "income"]},
    )  # fmt: skip
    return model, {"mu": [0.5, -1.0, 0.8]}


def censored_survival(n=400):
    """A Weibull regression of lifetimes, some of which had not ended."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    lifetime = vm.weibull_rng(1.5, np.exp(1.0 + X @ [0.5, -0.3]), rng=rng)
    end = rng.uniform(1.0, 8.0, n)  # of the time for which each was watched
    y = np.minimum(lifetime, end)

    model = vm.Model(
        shape=vm.positive(prior=dist.Gamma(2, 1)),
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(2, prior=dist.Normal(0, 1)),
        y=vm.observed(y, lambda shape, alpha, beta: dist.Weibull(
            shape, np.exp(alpha + X @ beta)).censored(upper=end)),
    )  # fmt: skip
    return model, {"shape": 1.5, "alpha": 1.0, "beta": [0.5, -0.3]}


def gaussian_process(n=60):
    """A Gaussian process with its hyperparameters, and predictions at new places."""
    rng = np.random.default_rng(3)
    x, new = np.sort(rng.uniform(0, 10, n)), np.linspace(0, 10, 25)
    y = np.sin(x) + 0.2 * rng.normal(size=n)

    def covariance(scale, length, noise):
        return vm.gp_exp_quad_cov(x, scale, length) + noise**2 * np.eye(n)

    def prediction(scale, length, K, rng):
        cross = vm.gp_exp_quad_cov(x, new, scale, length)
        weights = np.linalg.solve(K, cross)
        rest = vm.gp_exp_quad_cov(new, scale, length) - cross.T @ weights
        return {"f": vm.multi_normal_rng(weights.T @ y, rest + 1e-9 * np.eye(new.size), rng=rng)}

    model = vm.Model(
        scale=vm.positive(prior=dist.Normal(0, 1)),
        length=vm.positive(prior=dist.InvGamma(5, 5)),
        noise=vm.positive(prior=dist.Normal(0, 1)),
        y=vm.observed(y, lambda scale, length, noise: dist.MultiNormal(
            np.zeros(n), covariance(scale, length, noise))),
        generated_quantities=lambda scale, length, noise, rng: prediction(
            scale, length, covariance(scale, length, noise), rng),
    )  # fmt: skip
    return model, {"noise": 0.2}


def lotka_volterra():
    """Predators and prey: a differential equation with unknown rates."""
    rng = np.random.default_rng(4)
    times = np.arange(1.0, 21.0)

    def slope(t, z, rates):
        prey, predators = z
        a, b, c, d = rates
        return [(a - b * predators) * prey, (d * prey - c) * predators]

    def populations(start, rates):
        return vm.ode_rk45(slope, start, 0.0, times, rates)

    true = populations(np.array([30.0, 4.0]), np.array([0.55, 0.028, 0.84, 0.026]))
    y = vm.lognormal_rng(np.log(true), 0.25, rng=rng)

    model = vm.Model(
        rates=vm.positive(4, prior=dist.Normal([1, 0.05, 1, 0.05], [0.5, 0.05, 0.5, 0.05])),
        start=vm.positive(2, prior=dist.Lognormal(np.log(10), 1)),
        sigma=vm.positive(2, prior=dist.Lognormal(-1, 1)),
        z=lambda rates, start: populations(start, rates),
        y=vm.observed(y, lambda z, sigma: dist.Lognormal(np.log(z), sigma),
                      dims=("year", "species")),
    )  # fmt: skip
    return model, {"rates": [0.55, 0.028, 0.84, 0.026]}


def stochastic_volatility(n=500):
    """Returns whose log variance is a stationary autoregression."""
    rng = np.random.default_rng(5)
    h = np.zeros(n)
    for t in range(1, n):
        h[t] = 0.95 * h[t - 1] + 0.25 * rng.normal()
    y = np.exp((h - 1.0) / 2) * rng.normal(size=n)

    def volatility(mu, phi, sigma, z):
        first = z[:1] / np.sqrt(1 - phi**2)
        return mu + sigma * vm.lfilter([1.0], [1.0, -phi], np.concatenate([first, z[1:]]))

    model = vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        phi=vm.interval(-1, 1, prior=dist.Uniform(-1, 1)),
        sigma=vm.positive(prior=dist.Normal(0, 1)),
        z=vm.real(n, prior=dist.StdNormal()),
        h=volatility,
        y=vm.observed(y, lambda h: dist.Normal(0, np.exp(h / 2))),
    )
    return model, {"phi": 0.95, "sigma": 0.25, "mu": -1.0}


def hidden_markov(n=300):
    """A hidden Markov model with normal observations, and the decoded states."""
    rng = np.random.default_rng(6)
    state = np.cumsum(rng.random(n) < 0.1) % 2
    y = np.where(state, 3.0, 0.0) + rng.normal(size=n)

    model = vm.Model(
        mu=vm.ordered(2, prior=dist.Normal(0, 3)),
        sigma=vm.positive(prior=dist.Normal(0, 2)),
        rho=vm.simplex(2, prior=dist.Dirichlet(np.ones(2))),
        Gamma=vm.simplex(2, 2, prior=dist.Dirichlet(np.array([[8.0, 2.0], [2.0, 8.0]]))),
        y=vm.observed(y, lambda mu, sigma, rho, Gamma: dist.HiddenMarkov(
            rho, Gamma, dist.Normal(mu, sigma))),
        generated_quantities=lambda y, mu, sigma, rho, Gamma, rng: {
            "state": dist.HiddenMarkov(rho, Gamma, dist.Normal(mu, sigma)).latent(y, rng)},
    )  # fmt: skip
    return model, {"mu": [0.0, 3.0]}


def ordinal(n=500):
    """Ordered categories with a linear predictor."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, 3))
    y = vm.ordered_logistic_rng(X @ [1.0, -0.5, 0.0], [-1.0, 0.0, 1.5], rng=rng)

    model = vm.Model(
        beta=vm.real(3, prior=dist.Normal(0, 1)),
        cut=vm.ordered(3, prior=dist.Normal(0, 3)),
        y=vm.observed(y, lambda beta, cut: dist.OrderedLogisticGLM(X, beta, cut)),
    )
    return model, {"beta": [1.0, -0.5, 0.0], "cut": [-1.0, 0.0, 1.5]}


def zero_inflated(n=400):
    """Counts with more zeros than a Poisson distribution has, ready for leave-one-out."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    y = np.where(rng.random(n) < 0.3, 0, rng.poisson(np.exp(1.0 + 0.5 * x)))

    model = vm.Model(
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(prior=dist.Normal(0, 1)),
        psi=vm.interval(0, 1, prior=dist.Beta(1, 1)),
        y=vm.observed(y, lambda alpha, beta, psi: dist.Mixture(
            psi, [dist.DiscreteRange(0, 0), dist.PoissonLog(alpha + beta * x)])),
    )  # fmt: skip
    return model, {"alpha": 1.0, "beta": 0.5, "psi": 0.3}


MODELS = [
    hierarchical_logit, censored_survival, gaussian_process, lotka_volterra,
    stochastic_volatility, hidden_markov, ordinal, zero_inflated,
]  # fmt: skip


def main() -> None:
    for make in MODELS:
        if make.__name__ in (sys.argv[1:] or [each.__name__ for each in MODELS]):
            model, true = make()
            start = time.perf_counter()
            found = model.sample(500, tune=500, chains=2, seed=1, progress_bar=False)
            seconds = time.perf_counter() - start
            print(f"{make.__name__}: {seconds:.1f} s")
            for name, value in true.items():
                draws = found.posterior[name].values
                mean, spread = draws.mean((0, 1)), draws.std((0, 1))
                print(f"    {name}: {np.round(mean, 2)} ({np.round(spread, 2)}), true {value}")
            model.sample_prior_predictive(draws=20, seed=1)
            model.sample_posterior_predictive(found, seed=1)


if __name__ == "__main__":
    main()
