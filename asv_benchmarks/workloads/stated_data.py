"""Simulated data of eight models, and the true values of some of their parameters.

Each function returns the data as arguments of the models of the same name, in `stated_models` and
`stated_numpyro`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import varmat as vm

Simulated = tuple[dict[str, Any], dict[str, Any]]


def hierarchical_logit(groups: int = 40, n: int = 1200) -> Simulated:
    rng = np.random.default_rng(1)
    group, X = rng.integers(groups, size=n), np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    beta = [0.5, -1.0, 0.8] + rng.normal(size=(groups, 3)) * [1.0, 0.5, 0.3]
    y = vm.bernoulli_logit_rng(np.sum(X * beta[group], axis=1), rng=rng)
    return {"X": X, "group": group, "groups": groups, "y": y}, {"mu": [0.5, -1.0, 0.8]}


def censored_survival(n: int = 400) -> Simulated:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    lifetime = vm.weibull_rng(1.5, np.exp(1.0 + X @ [0.5, -0.3]), rng=rng)
    end = rng.uniform(1.0, 8.0, n)  # of the time for which each was watched
    true = {"shape": 1.5, "alpha": 1.0, "beta": [0.5, -0.3]}
    return {"X": X, "end": end, "y": np.minimum(lifetime, end)}, true


def gaussian_process(n: int = 60) -> Simulated:
    rng = np.random.default_rng(3)
    x, new = np.sort(rng.uniform(0, 10, n)), np.linspace(0, 10, 25)
    return {"x": x, "new": new, "y": np.sin(x) + 0.2 * rng.normal(size=n)}, {"noise": 0.2}


def slope(t: Any, z: Any, rates: Any) -> list[Any]:
    """The growth of prey and predators."""
    prey, predators = z
    a, b, c, d = rates
    return [(a - b * predators) * prey, (d * prey - c) * predators]


def lotka_volterra() -> Simulated:
    rng = np.random.default_rng(4)
    times, rates = np.arange(1.0, 21.0), np.array([0.55, 0.028, 0.84, 0.026])
    true = vm.ode_rk45(slope, np.array([30.0, 4.0]), 0.0, times, rates)
    return {"times": times, "y": vm.lognormal_rng(np.log(true), 0.25, rng=rng)}, {"rates": rates}


def stochastic_volatility(n: int = 500) -> Simulated:
    rng = np.random.default_rng(5)
    h = np.zeros(n)
    for t in range(1, n):
        h[t] = 0.95 * h[t - 1] + 0.25 * rng.normal()
    y = np.exp((h - 1.0) / 2) * rng.normal(size=n)
    return {"y": y}, {"phi": 0.95, "sigma": 0.25, "mu": -1.0}


def hidden_markov(n: int = 300) -> Simulated:
    rng = np.random.default_rng(6)
    state = np.cumsum(rng.random(n) < 0.1) % 2
    return {"y": np.where(state, 3.0, 0.0) + rng.normal(size=n)}, {"mu": [0.0, 3.0]}


def ordinal(n: int = 500) -> Simulated:
    rng = np.random.default_rng(7)
    true = {"beta": [1.0, -0.5, 0.0], "cut": [-1.0, 0.0, 1.5]}
    X = rng.normal(size=(n, 3))
    return {"X": X, "y": vm.ordered_logistic_rng(X @ true["beta"], true["cut"], rng=rng)}, true


def zero_inflated(n: int = 400) -> Simulated:
    rng = np.random.default_rng(8)
    x = rng.normal(size=n)
    y = np.where(rng.random(n) < 0.3, 0, rng.poisson(np.exp(1.0 + 0.5 * x)))
    return {"x": x, "y": y}, {"alpha": 1.0, "beta": 0.5, "psi": 0.3}
