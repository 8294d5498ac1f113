"""Discrete parameters against enumeration, and against models that are marginalised by hand."""

from __future__ import annotations

import math
import pickle
from itertools import product

import mpmath
import numpy as np
import pytest
from comparing import close, close_slopes, refuses
from scipy import stats

import varmat as vm
import varmat.distributions as dist
from varmat.core.errors import DomainError, ShapeError

# Detections of a species in visits to sites.
SEEN = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 1]])
Y = np.array([-2.1, 3.2, 2.9, -1.8, 0.4, 3.6])
GROUP = np.array([2, 0, 2, 1, 0, 4])
COUNTS = np.array([4, 5, 3, 4, 1, 0, 1, 1])


def occupancy(**changed):
    stated = {
        "psi": vm.interval(0, 1, prior=dist.Beta(1, 1)),
        "p": vm.interval(0, 1, prior=dist.Beta(1, 1)),
        "z": vm.discrete([0, 1], 5, prior=lambda psi: dist.Bernoulli(psi), dims="site"),
        "seen": vm.observed(SEEN, bernoulli, dims=("site", "visit")),
    }
    return vm.Model(**{**stated, **changed})


def bernoulli(p, z):
    return dist.Bernoulli(z[:, None] * p)


def occupancy_by_hand():
    def log_density(psi, p):
        n, visits = SEEN.sum(axis=1), SEEN.shape[1]
        seen = np.log(psi) + n * np.log(p) + (visits - n) * np.log1p(-p)
        return np.sum(np.where(n > 0, seen, np.logaddexp(seen, np.log1p(-psi))))

    return vm.Model(log_density, psi=vm.interval(0, 1), p=vm.interval(0, 1))


def mixture(**changed):
    stated = {
        "w": vm.simplex(3, prior=dist.Dirichlet(np.ones(3))),
        "mu": vm.real(3, prior=dist.Normal(0, 5)),
        "z": vm.discrete([1, 2, 3], len(Y), prior=lambda w: dist.Categorical(w)),
        "y": vm.observed(Y, lambda mu, z: dist.Normal(mu[z - 1], 1.0)),
    }
    return vm.Model(**{**stated, **changed})


def switch(**changed):
    years = np.arange(8)
    stated = {
        "early": vm.positive(prior=dist.Exponential(1.0)),
        "late": vm.positive(prior=dist.Exponential(1.0)),
        "last": vm.discrete(range(8)),
        "rate": lambda early, late, last: np.where(years <= last, early, late),
        "y": vm.observed(COUNTS, lambda rate: dist.Poisson(rate)),
    }
    return vm.Model(**{**stated, **changed})


def agree(model, by_hand, *, terms=0.0):
    for q in np.random.default_rng(1).normal(0.0, 1.0, (3, model.param_unc_num())):
        value, slope = by_hand.log_density_gradient(q)
        close_slopes(model.log_density_gradient(q), (value + terms, slope), 1e-12, 1e-12)
    values, gradients = model.log_density_gradient.map(q + np.zeros((10, 1)))  # recorded
    close(values, value + terms, 1e-12)
    close(gradients, np.tile(slope, (10, 1)), 1e-10, 1e-12)


# --- densities ---


def test_occupancy_is_that_by_hand():
    agree(occupancy(), occupancy_by_hand())


def test_a_mixture_is_dist_mixture():
    def distribution(w, mu):
        return dist.Mixture(w, [dist.Normal(mu[k], 1.0) for k in range(3)])

    by_hand = vm.Model(
        w=vm.simplex(3, prior=dist.Dirichlet(np.ones(3))),
        mu=vm.real(3, prior=dist.Normal(0, 5)),
        y=vm.observed(Y, distribution),
    )
    q = np.array([0.3, -0.2, 1.0, -2.0, 0.5])
    model = mixture()
    agree(model, by_hand, terms=model.log_density(q) - by_hand.log_density(q))
    # The two differ by constants of priors only.
    np.testing.assert_allclose(
        model.likelihood.plain(model.constrain(q))["y"],
        by_hand.likelihood.plain(by_hand.constrain(q))["y"],
        rtol=1e-13,
    )


def test_a_switch_point_against_50_digits():
    model = switch()
    q = np.array([0.9, -0.4])
    value, gradient = model.log_density_gradient(q, propto=False)

    def density(a, b):
        early, late = mpmath.exp(a), mpmath.exp(b)
        total = mpmath.mpf(0)
        for last in range(8):
            rates = [early if i <= last else late for i in range(8)]
            term = mpmath.mpf(1) / 8
            for y, rate in zip(COUNTS.tolist(), rates, strict=True):
                term *= rate**y * mpmath.exp(-rate) / mpmath.factorial(y)
            total += term
        return mpmath.log(total) - early - late + a + b

    with mpmath.workdps(50):
        point = [mpmath.mpf(x) for x in q.tolist()]
        assert value == pytest.approx(float(density(*point)), rel=1e-14)
        slopes = [mpmath.diff(density, point, tuple(i == k for i in range(2))) for k in range(2)]
    np.testing.assert_allclose(gradient, [float(x) for x in slopes], rtol=1e-12)


def test_observations_by_an_index_are_summed_by_their_element():
    """Groups have any number of observations, one none, in any order."""
    model = vm.Model(
        mu=vm.real(2, prior=dist.Normal(0, 5)),
        group=vm.discrete([0, 1], 5, prior=dist.Bernoulli(0.3)),
        y=vm.observed(Y, lambda mu, group: dist.Normal(mu[group[GROUP]], 1.0)),
    )
    for q in np.random.default_rng(2).normal(size=(3, 2)):
        expected = vm.normal_lpdf(q, 0.0, 5.0, propto=False)
        for g in range(5):
            own = Y[g == GROUP]
            terms = [
                math.log(0.3 if z else 0.7) + sum(vm.normal_lpdf(y, q[z], 1.0) for y in own)
                for z in (0, 1)
            ]
            expected += np.logaddexp(*terms)
        assert model.log_density(q, propto=False) == pytest.approx(expected, rel=1e-13)
        assert model.check_gradient(q)
    terms = model.likelihood.plain({"mu": np.array([0.5, 1.0])})
    assert terms.keys() == {"group"}
    assert terms["group"].shape == (5,)
    assert terms["group"][3] == pytest.approx(0.0, abs=1e-14)  # that group has no observation


@pytest.mark.parametrize("shared", ["sum", "neighbours", "matrix"])
def test_elements_that_share_an_observation_are_summed_jointly(shared):
    weights = np.array([[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]])

    def distribution(mu, z):
        if shared == "sum":
            return dist.Normal(mu * np.sum(z), 1.0)
        if shared == "neighbours":
            return dist.Normal(mu * (z[1:] != z[:-1]), 1.0)
        return dist.Normal(mu + weights @ z, 1.0)

    y = np.array([0.5, 1.2])
    model = vm.Model(
        mu=vm.real(prior=dist.Normal(0, 2)),
        z=vm.discrete([0, 1], 3, prior=dist.Bernoulli(0.4)),
        y=vm.observed(y, distribution),
    )
    q = np.array([0.7])
    logs = []
    for z in map(np.array, product([0, 1], repeat=3)):
        prior = vm.bernoulli_lpmf(z, 0.4)
        logs.append(prior + vm.normal_lpdf(y, distribution(0.7, z).parameters["mu"], 1.0))
    expected = np.logaddexp.reduce(logs) + vm.normal_lpdf(0.7, 0.0, 2.0)
    assert model.log_density(q, propto=False) == pytest.approx(expected, rel=1e-13)
    assert model.check_gradient(q)
    values = model.constrain(q, include_gq=True, rng=np.random.default_rng(1))
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    ones = [sum(p for p, z in zip(shares, product([0, 1], repeat=3), strict=True) if z[i])
            for i in range(3)]  # fmt: skip
    np.testing.assert_allclose(values["z_probability"][:, 1], ones, rtol=1e-12)


def test_too_many_elements_that_share_an_observation_are_refused():
    model = vm.Model(
        mu=vm.real(prior=dist.Normal(0, 2)),
        z=vm.discrete([0, 1], 20, prior=dist.Bernoulli(0.4)),
        y=vm.observed(np.arange(20.0), lambda mu, z: dist.Normal(mu * np.cumsum(z), 1.0)),
    )
    message = r"z have elements that share an observation of y.*1048576"
    refuses(TypeError, message, model.log_density, [0.5])


@pytest.mark.parametrize("first", [0, 1])
def test_one_shared_observation_among_many_is_found(first):
    """It depends on one element more than the others; also where the values of two agree."""
    y = np.zeros(17)

    def distribution(mu, z):
        mean = np.append(mu[z], mu[z[first] * z[11]])
        return dist.Normal(mean, 1.0)

    model = vm.Model(
        mu=vm.real(2, prior=dist.Normal(0, 2)),
        z=vm.discrete([0, 1], 16),
        y=vm.observed(y, distribution),
    )
    refuses(TypeError, "share an observation of y", model.log_density, [0.5, 0.2])


def test_two_parameters_of_the_same_rows():
    model = vm.Model(
        mu=vm.real(2, prior=dist.Normal(0, 2)),
        a=vm.discrete([0, 1], 6, prior=dist.Bernoulli(0.3)),
        b=vm.discrete([1.0, 2.0, 4.0], 6),
        y=vm.observed(Y, lambda mu, a, b: dist.Normal(mu[a], b)),
    )
    q = np.array([0.4, -1.0])
    expected = vm.normal_lpdf(q, 0.0, 2.0)
    for y in Y:
        expected += np.logaddexp.reduce(
            [math.log((0.3 if a else 0.7) / 3.0) + vm.normal_lpdf(y, q[a], b)
             for a in (0, 1) for b in (1.0, 2.0, 4.0)]
        )  # fmt: skip
    assert model.log_density(q, propto=False) == pytest.approx(expected, rel=1e-13)
    values = model.constrain(q, include_gq=True, rng=np.random.default_rng(1))
    assert values["a_probability"].shape == (6, 2)
    assert values["b_probability"].shape == (6, 3)
    np.testing.assert_allclose(values["b_probability"].sum(axis=1), 1.0)


def test_parameters_that_share_nothing_are_summed_apart():
    model = vm.Model(
        mu=vm.real(2, prior=dist.Normal(0, 2)),
        a=vm.discrete([0, 1], 20, prior=dist.Bernoulli(0.3)),
        b=vm.discrete(range(100)),
        y=vm.observed(np.arange(20.0), lambda mu, a: dist.Normal(mu[a], 9.0)),
        x=vm.observed(np.arange(50.0), lambda mu, b: dist.Normal(mu[0] + b, 1.0)),
    )
    assert [[*each.variables] for each in model.stated.summed] == [["a"], ["b"]]
    assert model.check_gradient()


def test_a_prior_may_depend_on_a_discrete_parameter():
    """A spike and a slab: the scale of each coefficient."""
    model = vm.Model(
        slab=vm.discrete([0, 1], 3, prior=dist.Bernoulli(0.5)),
        beta=vm.real(3, prior=lambda slab: dist.Normal(0.0, np.where(slab == 1, 2.0, 0.1))),
        y=vm.observed(Y[:3], lambda beta: dist.Normal(beta, 1.0)),
    )
    q = np.array([0.3, -0.2, 1.5])
    narrow, wide = (vm.normal_lpdf.pointwise(q, 0.0, s) for s in (0.1, 2.0))
    expected = np.sum(np.logaddexp(narrow, wide) + math.log(0.5)) + vm.normal_lpdf(Y[:3], q, 1.0)
    assert model.log_density(q, propto=False) == pytest.approx(expected, rel=1e-13)
    assert model.check_gradient(q)
    assert model.likelihood.plain({"beta": q}).keys() == {"y"}


def test_ends_of_a_distribution_that_are_parameters():
    """What is impossible at the points of the evaluations need not be so elsewhere."""
    model = vm.Model(
        end=vm.positive(prior=dist.Exponential(0.1)),
        z=vm.discrete([1, 2], 2),
        y=vm.observed([100.0, 0.5], lambda end, z: dist.Uniform(0.0, end * z)),
    )
    assert model.log_density([1.0]) == -np.inf
    q = math.log(150.0)
    each = math.log(0.5 / 150.0 + 0.5 / 300.0)
    expected = 2.0 * each + vm.exponential_lpdf(150.0, 0.1) + q
    assert model.log_density([q], propto=False) == pytest.approx(expected, rel=1e-13)


def test_terms_of_your_own_may_name_it():
    own = switch(y=vm.observed([0.0], dist.Normal(0.0, 1.0)))
    assert own.check_gradient([0.3, 0.1])
    model = vm.Model(
        lambda rate: (vm.poisson_lpmf(COUNTS, rate),),
        early=vm.positive(prior=dist.Exponential(1.0)),
        late=vm.positive(prior=dist.Exponential(1.0)),
        last=vm.discrete(range(8)),
        rate=lambda early, late, last: np.where(np.arange(8) <= last, early, late),
    )
    agree(model, switch())


# --- results ---


def test_results_have_draws_and_probabilities():
    model = occupancy()
    fit = model.sample(300, tune=300, chains=2, seed=1, progress_bar=False)
    z, p = (fit.posterior[name].values for name in ("z", "z_probability"))
    assert fit.posterior["z_probability"].dims == ("chain", "draw", "site", "z_value")
    assert fit.posterior["z_value"].values.tolist() == [0, 1]
    assert np.all(z[..., SEEN.any(axis=1)] == 1)
    assert {*np.unique(z)} == {0, 1}
    np.testing.assert_allclose(p.sum(axis=-1), 1.0)
    # Where nothing was seen, the formula of Bayes.
    psi, missed = fit.posterior["psi"].values, (1.0 - fit.posterior["p"].values) ** 3
    expected = psi * missed / (psi * missed + 1.0 - psi)
    np.testing.assert_allclose(p[..., 1, 1], expected, rtol=1e-12)
    error = 4.0 * np.sqrt(np.mean(expected * (1.0 - expected)) / z[..., 1].size)
    assert abs(z[..., [1, 3]].mean() - expected.mean()) < error
    # The log-likelihood is that of sites.
    assert fit.log_likelihood["z"].dims == ("chain", "draw", "site")
    by_hand = np.log(psi * missed + 1.0 - psi)
    np.testing.assert_allclose(fit.log_likelihood["z"].values[..., 1], by_hand, rtol=1e-10)


def test_functions_of_many_operations_are_recorded_for_fewer_draws():
    """A switch point of 40 values has 120 operations: 150 draws take Python, 300 a recording."""
    years, counts = np.arange(40), np.random.default_rng(1).poisson(np.repeat([3.0, 1.0], 20))
    calls = []

    def of_years(early, late, switch):
        calls.append(switch)
        return dist.Poisson(np.where(years < switch, early, late))

    model = vm.Model(
        early=vm.positive(prior=dist.Exponential(1)),
        late=vm.positive(prior=dist.Exponential(1)),
        switch=vm.discrete(range(40)),
        y=vm.observed(counts, of_years),
    )
    rng = np.random.default_rng(2)
    sides = [np.where(years < k, 0, 1) for k in range(40)]
    for draws, most in ((150, math.inf), (300, 40 * 60)):
        rates = rng.gamma(30.0, 1 / 15.0, size=(2, draws))
        arrays = dict(zip(("early", "late"), rates[:, np.newaxis], strict=True))
        model.log_density([0.0, 0.0])  # finds which observations depend on which element
        for use in (model.to_arviz, model.sample_posterior_predictive):
            calls.clear()
            result = use(arrays, seed=1)
            assert (len(calls) > 40 * draws) == (most == math.inf)
            assert len(calls) < 2 * most
            same = use(arrays, seed=1)
            group = "posterior" if use == model.to_arviz else "posterior_predictive"
            assert all(np.array_equal(same[group][n], x) for n, x in result[group].items())
        logs = np.stack([poisson_sums(counts, rates[side]) for side in sides])
        chances = np.exp(logs - logs.max(axis=0))
        found = model.to_arviz(arrays, seed=1)
        expected = (chances / chances.sum(axis=0)).T
        close(found.posterior["switch_probability"].values[0], expected, 1e-9, 1e-14)
        of_all = np.logaddexp.reduce(logs) - math.log(40)
        close(found.log_likelihood["switch"].values[0], of_all, 1e-12)


def poisson_sums(counts, rates):
    return stats.poisson.logpmf(counts[:, np.newaxis], rates).sum(axis=0)


def test_quantities_may_name_it():
    model = switch(generated_quantities=lambda last, rate: {"after": last + 1, "first": rate[0]})
    values = model.constrain([2.0, -1.0], include_gq=True, rng=np.random.default_rng(1))
    assert values["after"] == values["last"] + 1
    assert values["first"] == values["rate"][0]
    draws = model.sample(600, tune=200, chains=2, seed=1, progress_bar=False).posterior
    np.testing.assert_array_equal(draws["after"], draws["last"] + 1)


def test_predictive_draws_use_the_drawn_values():
    model = mixture()
    fit = model.laplace(seed=1, draws=50)
    assert fit.groups()["log_likelihood"]["y"].shape == (1, 50, 6)
    simulate = lambda z, mu, rng: {"zs": 1 * z, "mean": mu[z - 1]}  # noqa: E731
    made = model.sample_posterior_predictive(fit, simulate, seed=2)["posterior_predictive"]
    np.testing.assert_array_equal(made["zs"][0], fit.draws["z"])
    drawn = model.sample_posterior_predictive({n: x[None] for n, x in fit.draws.items()
                                               if n in model.shapes()}, seed=2)  # fmt: skip
    assert drawn["posterior_predictive"]["y"].shape == (1, 50, 6)


@pytest.mark.parametrize("draws", [40, 1500])
def test_prior_draws(draws):
    found = occupancy().sample_prior_predictive(draws=draws, seed=1)
    z, seen = found["prior"]["z"][0], found["prior_predictive"]["seen"][0]
    assert set(np.unique(z)) == {0, 1}
    assert not seen[z == 0].any()
    uniform = switch().sample_prior_predictive(draws=draws, seed=1)["prior"]
    assert {*np.unique(uniform["last"])} <= {*range(8)}
    rates = np.where(uniform["last"] >= 7, uniform["early"], uniform["late"])
    np.testing.assert_array_equal(uniform["rate"][..., 7], rates)


@pytest.mark.parametrize("draws", [60, 1500])
def test_prior_draws_outside_the_support_are_refused(draws):
    model = switch(last=vm.discrete(range(8), prior=dist.Poisson(6.0)))
    message = r"last is \d+ in a draw from its prior, but must be in"
    refuses(DomainError, message, model.sample_prior_predictive, draws=draws, seed=1)
    without = lambda rng: {"early": rng.random(), "late": rng.random()}  # noqa: E731
    message = "the dict has no last, but must have the parameters early"
    refuses(TypeError, message, model.sample_prior_predictive, without, draws=draws)
    inside = switch(last=vm.discrete(range(8), prior=dist.Poisson(6.0).truncated(upper=7)))
    inside.sample_prior_predictive(draws=draws, seed=1)


def test_names_of_dimensions_give_the_shape():
    model = occupancy(
        z=vm.discrete([0, 1], prior=lambda psi: dist.Bernoulli(psi), dims="site"),
        coords={"site": list("ABCDE")},
    )
    assert model.stated.discrete["z"].shape == (5,)
    assert model.log_density([0.3, 0.1]) == occupancy().log_density([0.3, 0.1])
    fit = model.laplace(seed=1, draws=30)
    assert model.summary(fit).names[2:7] == [f"z[{site}]" for site in "ABCDE"]


def test_it_is_shown():
    model = occupancy()
    assert "z=Discrete([0 1], shape=(5,))" in repr(model)
    assert "z    discrete  psi" in repr(model.graph())
    assert "seen observed  p, z" in repr(model.graph())


def test_it_is_pickled():
    model = vm.Model(
        z=vm.discrete([0, 1], 5), seen=vm.observed(SEEN, bernoulli), p=vm.interval(0, 1)
    )
    copy = pickle.loads(pickle.dumps(model))
    assert copy.log_density([0.3]) == model.log_density([0.3])


def test_with_data_finds_elements_again():
    model = occupancy().with_data(seen=SEEN[::-1])
    assert model.log_density([0.3, 0.1]) == pytest.approx(occupancy().log_density([0.3, 0.1]))


# --- mistakes ---


@pytest.mark.parametrize("support", [[], [0, 0, 1], [[0, 1]], ["a"], [0.0, np.nan], 3])
def test_support_is_checked(support):
    refuses(DomainError, r"discrete: support is .* different finite numbers", vm.discrete, support)


SCALED = vm.real(prior=lambda z: dist.Normal(0.0, 1.0 + z), centred=False)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.discrete([0, 1], 3, centred=False), TypeError,
     "unexpected keyword argument 'centred'"),
    (lambda: vm.discrete([0, 1], -1), ShapeError, "discrete: a size is -1"),
    (lambda: occupancy(data={"z": 3}), TypeError, "z is both a parameter and data"),
    (lambda: occupancy(seen=vm.observed(SEEN, lambda p, k: dist.Bernoulli(p))), TypeError,
     "takes 'k', but must take parameters and data"),
    (lambda: vm.Model(z=vm.discrete([0, 1]), beta=SCALED), TypeError,
     "a bound of beta is a function of 'z'"),
])  # fmt: skip
def test_arguments_are_checked(call, error, message):
    refuses(error, message, call)
