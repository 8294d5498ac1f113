"""Predictive draws: prior and posterior, in the shapes of ArviZ."""

import re
import types

import numpy as np
import pytest
from comparing import equal, refuses
from scipy import stats

import varmat as vm
import varmat.distributions as dist
from varmat.models import predictive, results
from varmat.models.at_draws import MANY

Y = np.array([2, 3, 0, 1, 4])
CHAINS = {"mu": np.arange(6.0).reshape(2, 3), "sigma": np.ones((2, 3, 2))}


def make(**settings):
    def log_density(mu, sigma, y):
        priors = vm.normal_lpdf(mu, 0.0, 1.0) + vm.gamma_lpdf(sigma, 2.0, 1.0)
        return priors + vm.normal_lpdf(y, mu, sigma[0])

    return vm.Model(
        log_density,
        mu=vm.real(),
        sigma=vm.positive(2),
        data={"y": Y},
        transformed_parameters=lambda mu, sigma: {"ratio": mu / sigma},
        **{"coords": {"j": ["a", "b"]}, "dims": {"sigma": ["j"]}, **settings},
    )


def prior(rng):
    return {
        "mu": vm.normal_rng(0.0, 1.0, rng=rng),
        "sigma": vm.gamma_rng(2.0, 1.0, rng=rng, size=2),
    }


def simulate(mu, ratio, y, rng):
    return {"y": vm.poisson_rng(np.full(len(y), 1e3 + mu), rng=rng), "twice": 2.0 * ratio}


def test_posterior_predictive_of_chains():
    found = make().sample_posterior_predictive(CHAINS, simulate, seed=1)
    group = found["posterior_predictive"]
    assert group["y"].shape == (2, 3, 5)
    assert group["y"].dtype == np.int64
    equal(group["twice"], 2.0 * CHAINS["mu"][:, :, None] * np.ones(2))
    again, other = (
        make().sample_posterior_predictive(CHAINS, simulate, seed=seed)["posterior_predictive"]["y"]
        for seed in (1, 2)
    )
    equal(again, group["y"])
    assert np.any(other != group["y"])
    assert "posterior_predictive: twice, shape (2, 3, 2)" in repr(found)


def test_posterior_predictive_of_what_a_sampler_returns():
    for result in (types.SimpleNamespace(posterior=CHAINS), CHAINS):
        found = make().sample_posterior_predictive(result, lambda mu: {"z": mu})
        equal(found["posterior_predictive"]["z"], CHAINS["mu"])


def test_posterior_predictive_of_an_approximation():
    model = make()
    approximation = model.laplace(seed=1, draws=7)
    found = model.sample_posterior_predictive(approximation, simulate)["posterior_predictive"]
    equal(found["twice"][0], 2.0 * approximation.draws["ratio"])


def test_many_draws_from_the_prior_are_recorded(monkeypatch):
    def prior(centre, scale):
        return dist.Normal(centre, scale).truncated(upper=4.0)

    model = vm.Model(
        centre=vm.interval(0.0, 3.0, prior=dist.Normal(0.0, 2.0)),
        scale=vm.positive(prior=dist.Normal(0.0, 1.0)),
        theta=vm.upper(4.0, 2, prior=prior),
        twice=lambda theta: 2.0 * theta,
    )
    found = model.sample_prior_predictive(draws=2 * MANY, seed=1)["prior"]
    called = []
    monkeypatch.setattr(predictive, "called", lambda *args: called.append(args))
    again = model.sample_prior_predictive(draws=2 * MANY, seed=1)["prior"]
    assert not called
    equal(again["theta"], found["theta"])
    equal(found["twice"], 2.0 * found["theta"])
    assert stats.kstest(found["scale"][0], stats.halfnorm.cdf).pvalue > 1e-3
    centre, scale = found["centre"][0], found["scale"][0]
    assert ((centre >= 0.0) & (centre <= 3.0)).all()
    shares = stats.norm.cdf(found["theta"][0], centre[:, None], scale[:, None])
    shares /= stats.norm.cdf(4.0, centre, scale)[:, None]
    assert stats.kstest(shares.ravel(), "uniform").pvalue > 1e-3


def test_prior_predictive():
    found = make().sample_prior_predictive(prior, simulate, draws=9, seed=1)
    assert list(found.groups) == ["prior", "prior_predictive"]
    expected = {"mu": (1, 9), "sigma": (1, 9, 2), "ratio": (1, 9, 2)}
    assert {name: x.shape for name, x in found["prior"].items()} == expected
    equal(found["prior_predictive"]["twice"], 2.0 * found["prior"]["ratio"])
    alone = make().sample_prior_predictive(prior, draws=9, seed=1)
    assert list(alone.groups) == ["prior"]
    equal(alone["prior"]["mu"], found["prior"]["mu"])
    expected = {"prior": {}, "prior_predictive": {}}
    assert make().sample_prior_predictive(prior, simulate, draws=0).groups == expected


def test_arviz(monkeypatch):
    arviz = types.ModuleType("arviz")
    arviz.__version__ = "1.0"
    arviz.from_dict = lambda *args, **kwargs: (args, kwargs)
    monkeypatch.setitem(__import__("sys").modules, "arviz", arviz)
    found = make().sample_posterior_predictive(
        CHAINS, simulate, seed=1, coords={"i": list("vwxyz")}, dims={"y": "i"}
    )
    (groups,), settings = found.to_arviz()
    assert list(groups) == ["posterior_predictive"]
    assert settings == {"coords": {"j": ["a", "b"], "i": list("vwxyz")}, "dims": {"y": ["i"]}}
    drawn = make().sample_prior_predictive(prior, draws=2)
    assert drawn.to_arviz()[1]["dims"] == {"sigma": ["j"]}


def test_functions_get_copies():
    chains = {name: x.copy() for name, x in CHAINS.items()}

    def careless(mu, sigma):
        sigma *= 2.0
        return {"z": sigma}

    make().sample_posterior_predictive(chains, careless)
    equal(chains["sigma"], CHAINS["sigma"])


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: make().sample_posterior_predictive(3.0, simulate), TypeError,
     ("sample_posterior_predictive: result is a float, but must be what Model.sample or "
      "Model.laplace returned, or a dict of")),
    (lambda: make().sample_posterior_predictive({"mu": CHAINS["mu"]}, simulate), TypeError,
     "sample_posterior_predictive: result has no sigma, but must have the parameters mu, sigma!"),
    (lambda: make().sample_posterior_predictive({**CHAINS, "sigma": np.ones((2, 3))}, simulate),
     vm.ShapeError, ("sample_posterior_predictive: sigma has shape (2, 3), but must have shape "
                     "(2, 3) and then (2,)!")),
    (lambda: make().sample_posterior_predictive({**CHAINS, "mu": np.ones((2, 4))}, simulate),
     vm.ShapeError, ("sample_posterior_predictive: sigma has shape (2, 3, 2), but must have "
                     "shape (2, 4) and then (2,)!")),
    (lambda: make().sample_posterior_predictive(CHAINS, lambda nu, mu: {}), TypeError,
     "Model: simulate takes 'nu', but must take parameters and data: mu, sigma, ratio, y!"),
    (lambda: make().sample_posterior_predictive(CHAINS, lambda mu: mu), TypeError,
     "simulate returned a float64, but must return a dict of named values!"),
    (lambda: make().sample_posterior_predictive(CHAINS, lambda mu: {"z": "a"}), TypeError,
     "simulate returned 'z' of dtype <U1, but must return real numbers!"),
    (lambda: make().sample_posterior_predictive(CHAINS, lambda mu: {"z": np.ones(int(mu))}),
     vm.ShapeError, ("sample_posterior_predictive: z has shape (1,) at a draw, but has shape "
                     "(0,) at another, and must be the same at all!")),
    (lambda: make().sample_posterior_predictive(CHAINS, simulate, dims={"x": ["j"]}), TypeError,
     "Model: dims has 'x', but must have parameters and quantities: y, twice!"),
    (lambda: make().sample_prior_predictive(lambda rng: {"mu": 1.0}), TypeError,
     "sample_prior_predictive: the dict has no sigma, but must have the parameters mu, sigma!"),
    (lambda: make().sample_prior_predictive(lambda rng: {"mu": 1.0, "sigma": np.ones(3)}),
     vm.ShapeError, "sample_prior_predictive: sigma has shape (3,), but must have shape (2,)!"),
    (lambda: make().sample_prior_predictive(lambda rng: {"mu": 1.0, "sigma": -np.ones(2)}),
     vm.DomainError, "sample_prior_predictive: sigma: "),
    (lambda: make().sample_prior_predictive(prior, draws=-1), vm.DomainError,
     "sample_prior_predictive: draws is -1, but must be an integer of at least 0!"),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


def test_a_result_that_is_simulated_from_does_not_become_arviz_data(monkeypatch):
    """Importing ArviZ takes seconds, which nobody has asked for."""
    monkeypatch.setattr(results, "to_arviz", None)
    drawn = results.Sampled({"posterior": CHAINS, "sample_stats": {"lp": CHAINS["mu"]}}, {}, {})
    found = make().sample_posterior_predictive(drawn, simulate, seed=1)["posterior_predictive"]
    expected = make().sample_posterior_predictive(CHAINS, simulate, seed=1)["posterior_predictive"]
    equal(found["y"], expected["y"])


def test_predictions_for_new_rows_need_no_observations():
    x, group = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 0])
    model = vm.Model(
        slope=vm.real(2, prior=dist.Normal(0.0, 5.0)),
        scale=vm.positive(prior=dist.Exponential(1.0)),
        mean=lambda slope, x, group: slope[group] * x,
        y=vm.observed([1.1, 3.9, 3.2], lambda mean, scale: dist.Normal(mean, scale)),
        z=vm.observed([1, 0], lambda scale: dist.Bernoulli(vm.inv_logit(-scale))),
        data={"x": x, "group": group},
    )
    draws = {"slope": np.tile([1.0, 2.0], (1, 400, 1)), "scale": np.full((1, 400), 1e-3)}
    found = model.predict(draws, x=np.array([10.0, 20.0, 30.0, 40.0]), group=[1, 0, 1, 0], seed=1)
    y = found["posterior_predictive"]["y"]
    assert y.shape == (1, 400, 4)
    np.testing.assert_allclose(y.mean((0, 1)), [20.0, 20.0, 60.0, 40.0], atol=1e-3)
    assert found["posterior_predictive"]["z"].shape == (1, 400, 2)
    one = model.predict(draws, x=np.array([10.0]), group=[1], seed=1)
    assert one["posterior_predictive"]["y"].shape == (1, 400, 1)
    message = "the model has no data w, but must have: y, z, x, group"
    refuses(TypeError, message, model.predict, draws, w=1.0)
    alone = vm.Model(lambda slope: slope, slope=vm.real())
    message = r"Model\.predict: simulate is missing"
    refuses(TypeError, message, alone.predict, {"slope": np.zeros((1, 2))})
