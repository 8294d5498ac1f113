"""Simulated data of twelve models, and the true values of some of their parameters.

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


def delayed_entry(n: int = 400) -> Simulated:
    rng = np.random.default_rng(9)
    X, entry = rng.normal(size=(3 * n, 2)), rng.uniform(0.0, 2.0, 3 * n)
    lifetime = vm.weibull_rng(1.5, np.exp(1.0 + X @ [0.5, -0.3]), rng=rng)
    seen = np.flatnonzero(lifetime > entry)[:n]  # who died before never entered
    end = entry[seen] + rng.uniform(1.0, 8.0, seen.size)
    true = {"shape": 1.5, "alpha": 1.0, "beta": [0.5, -0.3]}
    data = {"X": X[seen], "entry": entry[seen], "end": end, "y": np.minimum(lifetime[seen], end)}
    return data, true


def switch_point(n: int = 112) -> Simulated:
    rng = np.random.default_rng(10)
    y = rng.poisson(np.where(np.arange(n) < 40, 3.1, 0.9))
    return {"y": y}, {"early": 3.1, "late": 0.9}


def occupancy(n: int = 300) -> Simulated:
    rng = np.random.default_rng(11)
    visits, x = rng.integers(1, 7, n), rng.normal(size=n)
    present = rng.random(n) < 1.0 / (1.0 + np.exp(-0.3 - x))
    true = {"alpha": 0.3, "beta": 1.0, "detection": 0.4}
    return {"x": x, "visits": visits, "y": rng.binomial(visits, 0.4 * present)}, true


def absorbed(t: Any, amount: Any, absorption: Any, clearance: Any, volume: Any) -> list[Any]:
    """The change of the amounts of a drug in the gut and in the blood."""
    gut, blood = amount
    return [-absorption * gut, absorption * gut - clearance / volume * blood]


def doses(n: int = 8) -> Simulated:
    rng = np.random.default_rng(12)
    times = np.array([1.0, 4.0, 12.0, 25.0, 30.0, 40.0, 50.0, 60.0, 72.0])
    events = (np.array([0.0, 24.0, 48.0]), np.array([100.0, 0.0]))
    clearance = 5.0 * np.exp(0.3 * rng.normal(size=n))
    amount = [
        vm.solve_ode(absorbed, [0.0, 0.0], 0.0, times, 0.8, each, 50.0, events=events)[:, 1]
        for each in clearance
    ]
    y = vm.lognormal_rng(np.log(np.array(amount) / 50.0), 0.15, rng=rng)
    true = {"log_rates": np.log([5.0, 50.0, 0.8]), "sigma": 0.15}
    return {"times": times, "events": events, "y": y}, true
