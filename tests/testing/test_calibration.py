"""Simulation-based calibration: its test is exact and finds mistakes, and the library's random
numbers and densities pass it.
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from comparing import close
from scipy import stats

import varmat as vm
import varmat.distributions as dist
from varmat.testing import Calibration, calibration
from varmat.testing.calibration import _p_value, _statistic


def test_p_value_is_that_of_all_possible_ranks():
    simulations, draws = 4, 3
    found = np.array(
        [
            _statistic(np.array(ranks), draws)
            for ranks in itertools.product(range(draws + 1), repeat=simulations)
        ]
    )
    for statistic in np.unique(found):
        share = np.mean(found <= statistic * (1 + 1e-9))
        close(_p_value(statistic, simulations, draws), share, 1e-12)


def test_p_values_of_uniform_ranks_are_uniform():
    rng = np.random.default_rng(1)
    found = [_p_value(_statistic(rng.integers(0, 200, size=30), 199), 30, 199) for _ in range(100)]
    assert stats.kstest(found, "uniform").pvalue > 1e-6


def laplace(model, draws, seed):
    return model.laplace(draws=draws, seed=seed).draws


def by_grid(model, draws, seed):
    """Draw from a posterior of one parameter, by inversion of its distribution function on the
    unconstrained scale.
    """
    q = np.linspace(-6.0, 6.0, 161)
    log = np.array([model.log_density([x]) for x in q])
    sums = np.cumsum(np.exp(log - np.max(log)))
    chosen = np.interp(
        np.random.default_rng(seed).uniform(sums[0], sums[-1], draws), sums, q + 0.5 * (q[1] - q[0])
    )
    values = [model.constrain([x]) for x in chosen]
    return {name: np.array([each[name] for each in values]) for name in values[0]}


X = np.column_stack([np.ones(6), np.arange(6.0)])


def regression(prior_scale=1.0):
    """Return a linear model with a known scale. Its posterior is normal, so Laplace's approximation
    is exact.
    """
    return (
        lambda rng: {"beta": vm.normal_rng(0.0, 1.0, rng=rng, size=2)},
        lambda rng,
        beta: vm.normal_id_glm_rng(X, 0.0, beta, 2.0, rng=rng),
        lambda y: vm.Model(lambda beta: (vm.normal_lpdf(beta, 0.0,
            prior_scale) + vm.normal_id_glm_lpdf(y, X, 0.0, beta, 2.0)), beta=vm.real(2)),
    )  # fmt: skip


def test_what_is_right_passes():
    found = calibration(*regression(), simulations=40, seed=1, sample=laplace)
    assert found.ok()
    assert bool(found)
    assert (
        list(found.ranks)
        == list(found.p_values)
        == list(found.statistics)
        == ["beta[0]", "beta[1]"]
    )
    assert all(
        ranks.shape == (40,) and ranks.min() >= 0 and ranks.max() <= 63
        for ranks in found.ranks.values()
    )
    assert re.fullmatch(
        r"ranks of the truth .*\n(beta\[\d\] +(\d+ +){8} p = [\d.]+\n?){2}", repr(found)
    )
    again = calibration(*regression(), simulations=40, seed=1, sample=laplace)
    assert again.p_values == found.p_values


def test_what_is_wrong_is_found():
    prior, simulate, _ = regression()
    assert not calibration(*regression(0.3), simulations=40, seed=1, sample=laplace).ok()
    # This model counts each observation sixteen times.
    assert not calibration(
        prior,
        lambda rng, beta: np.tile(simulate(rng, beta), 16),
        lambda y: vm.Model(
            lambda beta: (
                vm.normal_lpdf(beta, 0.0, 1.0)
                + vm.normal_id_glm_lpdf(y, np.tile(X, (16, 1)), 0.0, beta, 2.0)
            ),
            beta=vm.real(2),
        ),
        simulations=40,
        seed=1,
        sample=laplace,
    )


# Models with one parameter. Together they test densities, Jacobians, and random numbers of prior
# and data.
SINGLE = {
    "gamma and Poisson": (lambda rng: {"rate": vm.gamma_rng(3.0, 1.0, rng=rng)}, lambda rng,
        rate: vm.poisson_rng(rate, rng=rng, size=4),
        lambda y: vm.Model(lambda rate: vm.gamma_lpdf(rate, 3.0, 1.0) + vm.poisson_lpmf(y, rate),
        rate=vm.positive())),
    "beta and negative binomial": (lambda rng: {"theta": vm.beta_proportion_rng(0.4, 5.0, rng=rng)},
        lambda rng, theta: vm.neg_binomial_2_rng(10.0 * theta, 2.0, rng=rng, size=4),
        lambda y: vm.Model(lambda theta: (vm.beta_proportion_lpdf(theta, 0.4,
        5.0) + vm.neg_binomial_2_lpmf(y, 10.0 * theta, 2.0)), theta=vm.interval(0, 1))),
    "skew normal and Weibull": (lambda rng: {"x": vm.skew_normal_rng(1.0, 1.0, 3.0, rng=rng)},
        lambda rng, x: vm.weibull_rng(2.0, np.exp(x), rng=rng, size=3),
        lambda y: vm.Model(lambda x: vm.skew_normal_lpdf(x, 1.0, 1.0, 3.0) + vm.weibull_lpdf(y, 2.0,
        np.exp(x)), x=vm.real())),
    "correlation": (lambda rng: {"factor": vm.lkj_corr_cholesky_rng(2, 2.0, rng=rng)}, lambda rng,
        factor: vm.multi_normal_cholesky_rng(np.zeros(2), factor, rng=rng, size=5),
        lambda y: vm.Model(lambda factor: (vm.lkj_corr_cholesky_lpdf(factor,
        2.0) + vm.multi_normal_cholesky_lpdf(y, np.zeros(2), factor)), factor=vm.cholesky_corr(2))),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_densities_and_random_numbers_are_of_the_same_distributions(name):
    found = calibration(*SINGLE[name], simulations=30, draws=31, seed=1, sample=by_grid)
    assert found.ok(1e-3), found
    # Constant elements of a Cholesky factor are left out.
    expected = {"correlation": ["factor[1, 0]", "factor[1, 1]"]}.get(name, [*SINGLE[name][0](0)])
    assert list(found.ranks) == expected


def test_ranks_of_equal_draws_are_one_of_them_at_random():
    found = calibration(
        lambda rng: {"n": rng.integers(0, 3)},
        lambda rng, n: None,
        lambda y: None,
        simulations=300,
        seed=2,
        sample=lambda model, draws, seed: {"n": np.random.default_rng(seed).integers(0, 3, draws)},
    )
    assert found.ok()
    assert len(np.unique(found.ranks["n"])) > 50


def test_sampling_by_default():
    """The chains are thinned, and the settings are passed on."""

    class Sampled:
        posterior: Any = None

        def sample(self, **settings):
            assert settings == {
                "draws": 14, "chains": 1, "seed": settings["seed"], "tune": 20,
                 "progress_bar": False, "target_accept": 0.9,
            }  # fmt: skip
            x = np.arange(14.0)[None, :]
            self.posterior = type("Group", (dict,), {"data_vars": ["x"]})(
                x=type("Array", (), {"values": x})()
            )
            return self

    found = calibration(
        lambda rng: {"x": 5.0},
        lambda rng, x: x,
        lambda y: Sampled(),
        simulations=3,
        draws=7,
        thin=2,
        tune=20,
        target_accept=0.9,
    )
    assert found.ranks["x"].tolist() == [3, 3, 3]


@pytest.mark.parametrize(("settings", "error", "message"), [
    ({"draws": 0}, ValueError, "calibration: draws is 0, but must be an integer of at least 1!"),
    ({"simulations": 1.5}, TypeError,
     "calibration: simulations is 1.5, but must be an integer of at least 1!"),
    ({"sample": lambda *_: {}}, TypeError,
     "calibration: the sample has no beta, but must have all that the prior has!"),
    ({"sample": lambda *_: {"beta": np.zeros((2, 2))}}, ValueError,
     "calibration: the draws of beta have shape (2, 2), but must have shape (63, 2)!"),
])  # fmt: skip
def test_refusals(settings, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        calibration(*regression(), **{"sample": laplace, **settings})


def test_rate_is_divided_by_the_number_of_p_values():
    found = Calibration({}, 7, {}, {"a": 0.008, "b": 0.5})
    assert found.ok(0.01)
    assert not found.ok(0.02)
    assert math.isclose(min(found.p_values.values()), 0.008)


def test_the_defaults_do_not_warn():
    """Nor are warnings hidden that `thin` does not explain."""
    pytest.importorskip("nutpie._lib")
    slow = vm.Model(
        x=vm.real(prior=dist.Normal(0.0, 1.0)), y=vm.observed([0.0], lambda x: dist.Normal(x, 1.0))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        calibration(slow, simulations=5, draws=15, seed=1)
    funnel = vm.Model(
        v=vm.real(prior=dist.Normal(0.0, 3.0)),
        x=vm.real(9, prior=lambda v: dist.Normal(0.0, np.exp(v))),
        y=vm.observed([0.0], lambda v: dist.Normal(v, 9.0)),
    )
    with pytest.warns(vm.SamplingWarning, match="diverged"):
        calibration(funnel, simulations=2, seed=1)
