"""Simulation-based calibration: its test is exact and finds mistakes, and the library's random
numbers and densities pass it.
"""

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
    every = itertools.product(range(draws + 1), repeat=simulations)
    found = np.array([_statistic(np.array(ranks), draws) for ranks in every])
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
    levels = np.random.default_rng(seed).uniform(sums[0], sums[-1], draws)
    values = [model.constrain([x]) for x in np.interp(levels, sums, q + 0.5 * (q[1] - q[0]))]
    return {name: np.array([each[name] for each in values]) for name in values[0]}


X = np.column_stack([np.ones(6), np.arange(6.0)])


def regression(prior_scale=1.0, times=1):
    """Return a linear model with a known scale. Its posterior is normal, so Laplace's approximation
    is exact. A model may count each observation several times.
    """

    def prior(rng):
        return {"beta": vm.normal_rng(0.0, 1.0, rng=rng, size=2)}

    def simulate(rng, beta):
        return np.tile(vm.normal_id_glm_rng(X, 0.0, beta, 2.0, rng=rng), times)

    def model(y):
        x = np.tile(X, (times, 1))
        return vm.Model(
            lambda beta: (
                vm.normal_lpdf(beta, 0.0, prior_scale) + vm.normal_id_glm_lpdf(y, x, 0.0, beta, 2.0)
            ),
            beta=vm.real(2),
        )

    return prior, simulate, model


def test_what_is_right_passes():
    found = calibration(*regression(), simulations=20, seed=1, sample=laplace)
    assert found.ok()
    assert bool(found)
    names = ["beta[0]", "beta[1]"]
    assert [*found.ranks] == [*found.p_values] == [*found.statistics] == names
    for ranks in found.ranks.values():
        assert ranks.shape == (20,)
        assert 0 <= ranks.min() <= ranks.max() <= 63
    text = r"ranks of the truth .*\n(beta\[\d\] +(\d+ +){8} p = [\d.]+\n?){2}"
    assert re.fullmatch(text, repr(found))
    again = calibration(*regression(), simulations=20, seed=1, sample=laplace)
    assert again.p_values == found.p_values


@pytest.mark.parametrize("wrong", [{"prior_scale": 0.3}, {"times": 16}])
def test_what_is_wrong_is_found(wrong):
    assert not calibration(*regression(**wrong), simulations=20, seed=1, sample=laplace)


# Models with one parameter. Together they test densities, Jacobians, and random numbers of prior
# and data.
SINGLE = {
    "gamma and Poisson": (
        lambda rng: {"rate": vm.gamma_rng(3.0, 1.0, rng=rng)},
        lambda rng, rate: vm.poisson_rng(rate, rng=rng, size=4),
        lambda rate, y: vm.gamma_lpdf(rate, 3.0, 1.0) + vm.poisson_lpmf(y, rate),
        {"rate": vm.positive()}),
    "beta and negative binomial": (
        lambda rng: {"x": vm.beta_proportion_rng(0.4, 5.0, rng=rng)},
        lambda rng, x: vm.neg_binomial_2_rng(10.0 * x, 2.0, rng=rng, size=4),
        lambda x, y: (vm.beta_proportion_lpdf(x, 0.4, 5.0)
                      + vm.neg_binomial_2_lpmf(y, 10.0 * x, 2.0)),
        {"x": vm.interval(0, 1)}),
    "skew normal and Weibull": (
        lambda rng: {"x": vm.skew_normal_rng(1.0, 1.0, 3.0, rng=rng)},
        lambda rng, x: vm.weibull_rng(2.0, np.exp(x), rng=rng, size=3),
        lambda x, y: vm.skew_normal_lpdf(x, 1.0, 1.0, 3.0) + vm.weibull_lpdf(y, 2.0, np.exp(x)),
        {"x": vm.real()}),
    "correlation": (
        lambda rng: {"factor": vm.lkj_corr_cholesky_rng(2, 2.0, rng=rng)},
        lambda rng, factor: vm.multi_normal_cholesky_rng(np.zeros(2), factor, rng=rng, size=5),
        lambda factor, y: (vm.lkj_corr_cholesky_lpdf(factor, 2.0)
                           + vm.multi_normal_cholesky_lpdf(y, np.zeros(2), factor)),
        {"factor": vm.cholesky_corr(2)}),
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_densities_and_random_numbers_are_of_the_same_distributions(name):
    prior, simulate, density, parameters = SINGLE[name]

    def model(y):
        return vm.Model(density, parameters, data={"y": y})

    settings = {"simulations": 30, "draws": 31, "seed": 1, "sample": by_grid}
    found = calibration(prior, simulate, model, **settings)
    assert found.ok(1e-3), found
    # Constant elements of a Cholesky factor are left out.
    expected = {"correlation": ["factor[1, 0]", "factor[1, 1]"]}.get(name, [*parameters])
    assert list(found.ranks) == expected


def test_ranks_of_equal_draws_are_one_of_them_at_random():
    def sample(model, draws, seed):
        return {"n": np.random.default_rng(seed).integers(0, 3, draws)}

    parts = lambda rng: {"n": rng.integers(0, 3)}, lambda rng, n: None, lambda y: None
    found = calibration(*parts, simulations=300, seed=2, sample=sample)
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

    parts = lambda rng: {"x": 5.0}, lambda rng, x: x, lambda y: Sampled()
    settings = {"draws": 7, "thin": 2, "tune": 20, "target_accept": 0.9}
    found = calibration(*parts, simulations=3, **settings)
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
