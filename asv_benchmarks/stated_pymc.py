"""The models of `stated_models` in PyMC, which has no hidden Markov models and no doses.

Each function returns a model, a model of its predictions, and where chains start; None where there
is nothing to say.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

# A fresh folder, because the first call is to include all compiling.
os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={tempfile.mkdtemp()}"

import pymc as pm
import pytensor.tensor as pt
from workloads.stated_data import slope


def hierarchical_logit(X, group, groups, y):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=3)
        sd = pm.HalfNormal.dist(1, shape=3)
        factor, _, tau = pm.LKJCholeskyCov("factor", eta=2, n=3, sd_dist=sd)
        pm.Deterministic("tau", tau)
        z = pm.Normal("z", 0, 1, shape=(groups, 3))
        beta = pm.Deterministic("beta", mu + z @ factor.T)
        pm.Bernoulli("y", logit_p=(X * beta[group]).sum(1), observed=y)
    return model, None, None


def censored_survival(X, end, y):
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2, 1)
        alpha = pm.Normal("alpha", 0, 2)
        beta = pm.Normal("beta", 0, 1, shape=2)
        lifetime = pm.Weibull.dist(shape, pt.exp(alpha + X @ beta))
        pm.Censored("y", lifetime, lower=None, upper=end, observed=y)
    return model, None, None


def gaussian_process(x, new, y):
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        length = pm.InverseGamma("length", 5, 5)
        noise = pm.HalfNormal("noise", 1)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.ExpQuad(1, length))
        process.marginal_likelihood("y", x[:, None], y, noise)
    sampled = model.copy()  # without the predictions, which would be sampled with the rest
    with model:
        process.conditional("f", new[:, None])
    return sampled, model, None


def lotka_volterra(times, y):
    with pm.Model() as model:
        means, spreads = np.array([1, 0.05, 1, 0.05]), np.array([0.5, 0.05, 0.5, 0.05])
        rates = pm.TruncatedNormal("rates", means, spreads, lower=0, shape=4)
        start = pm.LogNormal("start", np.log(10), 1, shape=2)
        sigma = pm.LogNormal("sigma", -1, 1, shape=2)
        solver = pm.ode.DifferentialEquation(
            lambda z, t, rates: slope(t, (z[0], z[1]), [rates[i] for i in range(4)]),
            times=times, n_states=2, n_theta=4,
        )  # fmt: skip
        z = pm.Deterministic("z", solver(y0=start, theta=rates))
        pm.LogNormal("y", pt.log(z), sigma, observed=y)
    return model, None, None


def stochastic_volatility(y):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        phi = pm.Uniform("phi", -1, 1)
        sigma = pm.HalfNormal("sigma", 1)
        first = pm.Normal.dist(0, sigma / pt.sqrt(1 - phi**2))
        x = pm.AR("x", phi, sigma, init_dist=first, ar_order=1, shape=y.size)
        h = pm.Deterministic("h", mu + x)
        pm.Normal("y", 0, pt.exp(h / 2), observed=y)
    return model, None, None


def ordinal(X, y):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 1, shape=3)
        ordered = pm.distributions.transforms.ordered
        cut = pm.Normal("cut", 0, 3, shape=3, transform=ordered)
        pm.OrderedLogistic("y", X @ beta, cut, compute_p=False, observed=y - 1)
    return model, None, {"cut": [-1.0, 0.0, 1.0]}


def zero_inflated(x, y):
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 2)
        beta = pm.Normal("beta", 0, 1)
        psi = pm.Beta("psi", 1, 1)
        pm.ZeroInflatedPoisson("y", 1 - psi, pt.exp(alpha + beta * x), observed=y)
    return model, None, None


def delayed_entry(X, entry, end, y):
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2, 1)
        alpha = pm.Normal("alpha", 0, 2)
        beta = pm.Normal("beta", 0, 1, shape=2)
        scale = pt.exp(alpha + X @ beta)
        density = pm.logp(pm.Weibull.dist(shape, scale), y)
        terms = pt.switch(y < end, density, -((y / scale) ** shape))
        pm.Potential("y", terms + (entry / scale) ** shape)
    return model, None, None


def switch_point(y):
    with pm.Model() as model:
        early = pm.Exponential("early", 1)
        late = pm.Exponential("late", 1)
        before = pt.cumsum(pm.logp(pm.Poisson.dist(early), y))
        after = pt.cumsum(pm.logp(pm.Poisson.dist(late), y))
        pm.Potential("y", pm.math.logsumexp(before + after[-1] - after))
    return model, None, None


def occupancy(x, visits, y):
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0, 2)
        beta = pm.Normal("beta", 0, 1)
        detection = pm.Beta("detection", 1, 1)
        present = pm.math.sigmoid(alpha + beta * x)
        pm.ZeroInflatedBinomial("y", present, visits, detection, observed=y)
    return model, None, None


def sampler(made: Any, tune: int, kept: int, method: str) -> Callable[[int], dict[str, Any]]:
    """A function of a seed that samples four chains, with what varmat returns beside the draws: the
    log likelihood of each observation, and predictions.

    The chains run in four processes, or in sequence if `method` is "sequential".
    """
    model, predictions, start = made

    def draws(seed: int) -> dict[str, Any]:
        found = pm.sample(
            kept, tune=tune, chains=4, cores=1 if method == "sequential" else 4, model=model,
            initvals=start, random_seed=seed, progressbar=False, compute_convergence_checks=False,
            idata_kwargs={"log_likelihood": bool(model.observed_RVs)},
        )  # fmt: skip
        if predictions is not None:
            pm.sample_posterior_predictive(
                found, predictions, var_names=["f"], random_seed=seed, progressbar=False
            )
        return {str(name): np.asarray(x) for name, x in found.posterior.items()}

    return draws
