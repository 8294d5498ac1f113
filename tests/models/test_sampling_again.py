"""Settings of a sampling: thinning, seeds, starts of some parameters, a metric that is known."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import refuses

import varmat as vm
import varmat.distributions as dist

pytest.importorskip("nutpie._lib")
SETTINGS = {"draws": 60, "tune": 60, "chains": 2, "progress_bar": False}


def line(**changed):
    y = np.array([1.1, 1.9, 3.2])
    stated = {
        "slope": vm.real(prior=dist.Normal(0, 2)),
        "scale": vm.positive(prior=dist.Exponential(1.0)),
        "y": vm.observed(y, lambda slope, scale: dist.Normal(slope * np.arange(3.0), scale)),
        "generated_quantities": lambda slope: {"twice": 2.0 * slope},
    }
    return vm.Model(**{**stated, **changed})


@pytest.mark.parametrize("recorded", [None, False])
def test_thin_keeps_one_draw_in_so_many(recorded):
    model = line(recorded=recorded)
    whole = model.sample(180, 2, 1, tune=60, cores=1, progress_bar=False)
    thinned = model.sample(60, 2, 1, tune=60, cores=1, progress_bar=False, thin=3)
    for name in ("slope", "scale", "twice"):
        np.testing.assert_array_equal(thinned.posterior[name], whole.posterior[name][:, 2::3])
    energies = (x.sample_stats["energy"].values for x in (thinned, whole))
    np.testing.assert_array_equal(next(energies), next(energies)[:, 2::3])
    assert thinned.warmup_posterior.sizes["draw"] == 60
    assert thinned.log_likelihood["y"].shape == (2, 60, 3)
    refuses(vm.DomainError, "thin is 0, but must be an integer of at least 1", model.sample, thin=0)


def test_a_generator_is_a_seed():
    model = line()
    one, same, next_one = (
        model.sample(**SETTINGS, seed=seed).posterior["slope"].values
        for rng in [np.random.default_rng(7)]
        for seed in (np.random.default_rng(7), rng, rng)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.any(one == next_one)


def test_a_number_is_a_radius_around_zero():
    model = line()
    found = [model.sample(**SETTINGS, seed=1, **each).warmup_posterior["slope"].values
             for each in ({"inits": 0.5}, {"init_radius": 0.5}, {"inits": 0})]  # fmt: skip
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    starts = model._starts(0, None, 2, "Model.sample", 1)
    assert starts.points is None
    assert starts.radius == 1e-9
    flat = vm.Model(x=vm.real(2, prior=dist.Normal(0.0, 3.0)))  # at 0
    draws = flat.sample(500, 2, 1, inits=0, progress_bar=False).posterior["x"]
    assert 2.5 < float(draws.std()) < 3.5
    message = "inits is 1, the radius around 0, so init_radius must be"
    refuses(TypeError, message, model.sample, inits=1, init_radius=2.0)
    message = "inits is -1, but must be nonnegative finite"
    refuses(vm.DomainError, message, model.sample, inits=-1)


def test_parameters_that_inits_leave_out_start_at_random():
    model = line()
    starts = model._starts({"slope": 1.5}, None, 4, "Model.sample", 3)
    assert starts.radius == 0.0
    np.testing.assert_array_equal(starts.points[:, 0], 1.5)
    assert len(np.unique(starts.points[:, 1])) == 4
    assert np.all(np.abs(starts.points[:, 1]) <= 2.0)
    again = model._starts({"slope": 1.5}, None, 4, "Model.sample", 3)
    np.testing.assert_array_equal(again.points, starts.points)
    each = model._starts([{"slope": 1.0}, {"scale": 2.0}], None, 2, "Model.sample", 3).points
    assert (each[0, 0], each[1, 1]) == (1.0, np.log(2.0))
    one, two = (model.initial_point({"scale": 3.0}, seed=seed) for seed in (1, 2))
    assert one[1] == two[1] == np.log(3.0)
    assert one[0] != two[0]
    message = "initial_point: the dict has slop, but must have the para"
    refuses(TypeError, message, model.sample, inits={"slop": 1.0})
    message = "param_unconstrain: the dict has no scale"
    refuses(TypeError, message, model.param_unconstrain, {"slope": 1.0})


def test_bounds_of_parameters_that_inits_leave_out():
    """A bound follows from a parameter that is given, or from one that is not."""
    model = vm.Model(
        low=vm.real(prior=dist.Normal(0, 1)),
        high=vm.lower(lambda low: low, prior=dist.Normal(0, 5)),
    )
    assert model.constrain(model.initial_point({"low": 7.0}, seed=1))["high"] > 7.0
    q = model.initial_point({"high": 3.0}, seed=1)
    assert q[1] == np.log(3.0)  # the distance from a `low` of 0


# --- a metric that is known ---


def correlated(**settings):
    rho = 0.995
    covariance = np.array([[1.0, rho, 0.0], [rho, 1.0, 0.0], [0.0, 0.0, 1e-6]])
    factor = np.linalg.cholesky(covariance)
    centre = np.array([10.0, -10.0, 3.0])
    prior = dist.MultiNormalCholesky(centre, factor)
    return vm.Model(x=vm.real(3, prior=prior), **settings), covariance, centre


@pytest.mark.parametrize("kind", ["matrix", "draws", "laplace"])
@pytest.mark.parametrize("recorded", [None, False])
def test_a_known_metric_follows_correlations(kind, recorded):
    model, covariance, centre = correlated(recorded=recorded)
    given = {
        "matrix": lambda: covariance,
        "draws": lambda: model.pathfinder(seed=1),
        "laplace": lambda: model.laplace(seed=1, draws=20),
    }[kind]()
    settings = {"draws": 400, "tune": 60, "chains": 2, "cores": 1, "progress_bar": False}
    if kind == "matrix":
        settings["inits"] = {"x": centre + 0.5 * np.sqrt(np.diag(covariance))}
    fit = model.sample(**settings, seed=2, metric=given)
    # Without it, trajectories have 16 steps.
    assert float(fit.sample_stats["n_steps"].mean()) < 6.0
    x = fit.posterior["x"].values.reshape(-1, 3)
    error = np.sqrt(np.diag(covariance) / len(x))
    assert np.all(np.abs(x.mean(axis=0) - centre) < 5.0 * error)
    np.testing.assert_allclose(np.cov(x.T)[:2, :2], covariance[:2, :2], rtol=0.3)


def test_earlier_draws_are_the_metric_and_the_starts():
    model = line()
    first = model.sample(**SETTINGS, seed=1)
    again = model.sample(draws=300, tune=50, chains=2, seed=2, metric=first, progress_bar=False)
    start = again.warmup_posterior["slope"].values[:, 0]
    assert np.all(np.abs(start - first.posterior["slope"].values[:, -1]) < 3.0)
    assert again.posterior["twice"].shape == (2, 300)
    np.testing.assert_allclose(again.posterior["twice"], 2.0 * again.posterior["slope"])
    assert model.layout.scale is None


def test_variances_scale_parameters():
    model, covariance, centre = correlated()
    start = {"x": centre + 0.1 * np.sqrt(np.diag(covariance))}
    fit = model.sample(**SETTINGS, seed=1, metric=[1.0, 1.0, 1e-6], inits=start)
    assert np.all(np.abs(fit.posterior["x"].values[..., 2] - 3.0) < 0.01)


@pytest.mark.parametrize(("metric", "error", "text"), [
    ("dense", vm.DomainError, "metric is 'dense', but must be one of diag, diag_draws, low_r"),
    (np.eye(3), vm.ShapeError, r"metric has shape \(3, 3\), but must have shape \(2,\) or"),
    ([1.0, -1.0], vm.DomainError, "metric has invalid numbers, but must be variances, or a"),
    ([[1.0, 2.0], [2.0, 1.0]], vm.DomainError, "symmetric and positive definite"),
    ([[1.0, 0.5], [0.0, 1.0]], vm.DomainError, "symmetric and positive definite"),
    ({"slope": np.ones((1, 2)), "scale": np.ones((1, 2))}, vm.DomainError, "has 2 draws, but"),
    ({"slope": np.ones((1, 9))}, TypeError, "result has no scale, but must have"),
    (object(), TypeError, "metric has dtype object"),
])  # fmt: skip
def test_metrics_are_checked(metric, error, text):
    refuses(error, text, line().sample, metric=metric)


def test_standardised_coordinates_are_not_stored():
    message = "store_unconstrained cannot be combined with a given metric"
    refuses(TypeError, message, line().sample, metric=[1.0, 1.0], store_unconstrained=True)


# --- groups of results ---


def outcomes(**settings):
    rng = np.random.default_rng(5)
    counts, of_counts = rng.poisson(2.0, (6, 3)), lambda effect: dist.PoissonLog(effect[:, None])
    weight, of_weight = rng.normal(size=6), lambda effect, mu: dist.Normal(effect + mu[1], 1.0)
    return vm.Model(
        mu=vm.real(2, prior=dist.MultiNormal(np.zeros(2), np.eye(2)), dims="outcome"),
        effect=vm.real(6, prior=lambda mu: dist.Normal(mu[0], 1.0), dims="site"),
        counts=vm.observed(counts, of_counts, dims=("site", "visit")),
        weight=vm.observed(weight, of_weight, dims="site"),
        **settings,
    )


@pytest.mark.filterwarnings("ignore")  # ArviZ warns of influential sites
def test_the_log_likelihood_of_several_variables_by_a_dimension():
    model, whole = outcomes(log_likelihood="site"), outcomes()
    fit = model.sample(300, tune=300, chains=2, seed=1, progress_bar=False)
    found = fit.log_likelihood["log_likelihood"]
    assert found.dims == ("chain", "draw", "site")
    each = whole.to_arviz(dict(fit.posterior)).log_likelihood
    expected = each["counts"].values.sum(axis=-1) + each["weight"].values
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert pytest.importorskip("arviz").loo(fit).n_data_points == 6
    values = model.constrain(np.zeros(8))
    assert model.with_data(weight=np.ones(6)).likelihood.plain(values)["log_likelihood"].size == 6
    message = r"log_likelihood is 'visit', but must be .*weight has"
    refuses(TypeError, message, outcomes(log_likelihood="visit").sample, **SETTINGS)


def test_the_log_prior_of_parameters():
    az = pytest.importorskip("arviz")
    model = outcomes(log_likelihood="site")
    fit = model.sample(600, tune=300, chains=2, seed=1, progress_bar=False)
    assert not hasattr(fit, "log_prior")
    made = model.to_arviz(fit, log_prior=True)
    mu, effect = (made.posterior[name].values for name in ("mu", "effect"))
    assert [*made.log_prior.data_vars] == ["mu_prior", "effect"]
    assert made.log_prior["effect"].dims == ("chain", "draw", "site")
    each = -0.5 * (effect - mu[..., :1]) ** 2 - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(made.log_prior["effect"], each, rtol=1e-10)
    both = -0.5 * np.sum(mu**2, axis=-1) - np.log(2.0 * np.pi)
    np.testing.assert_allclose(made.log_prior["mu_prior"], both, rtol=1e-10)
    assert az.psens(made, component="prior", component_var_names=["mu_prior"])["mu"][1] > 0.01
    few = model.to_arviz(model.laplace(seed=1, draws=20), log_prior=True)
    assert few.log_prior["effect"].shape == (1, 20, 6)
    message = "log_prior is True, but must be False where no parameter"
    without = vm.Model(lambda x: -x * x, x=vm.real()).to_arviz
    refuses(TypeError, message, without, {"x": np.ones((1, 3))}, log_prior=True)
