"""Settings of a sampling: thinning, seeds, starts of some parameters, a metric that is known."""

from __future__ import annotations

import numpy as np
import pytest

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
    with pytest.raises(vm.DomainError, match="thin is 0, but must be an integer of at least 1"):
        model.sample(thin=0)


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
    with pytest.raises(TypeError, match="inits is 1, the radius around 0, so init_radius must be"):
        model.sample(inits=1, init_radius=2.0)
    with pytest.raises(vm.DomainError, match="inits is -1, but must be nonnegative finite"):
        model.sample(inits=-1)


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
    with pytest.raises(TypeError, match="initial_point: the dict has slop, but must have the para"):
        model.sample(inits={"slop": 1.0})
    with pytest.raises(TypeError, match="param_unconstrain: the dict has no scale"):
        model.param_unconstrain({"slope": 1.0})


def test_bounds_of_parameters_that_inits_leave_out():
    """A bound follows from a parameter that is given, or from one that is not."""
    model = vm.Model(
        low=vm.real(prior=dist.Normal(0, 1)),
        high=vm.lower(lambda low: low, prior=dist.Normal(0, 5)),
    )
    assert model.constrain(model.initial_point({"low": 7.0}, seed=1))["high"] > 7.0
    q = model.initial_point({"high": 3.0}, seed=1)
    assert q[1] == np.log(3.0)  # the distance from a `low` of 0
