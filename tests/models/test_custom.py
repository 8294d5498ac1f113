"""Distributions with densities of the user: of plain functions, and objects with methods."""

import pickle
from functools import partial

import numpy as np
import pytest
import scipy.stats
from comparing import close, equal, refuses
from test_docs import run_doctest

import varmat as vm
import varmat.distributions as dist
from varmat.derivatives.recorded import Recorded

Y = np.linspace(-1.0, 2.0, 6)
TAILS = {"lcdf": vm.normal_lcdf, "lccdf": vm.normal_lccdf}


def normal_lpdf(y, mu, sigma):
    return -0.5 * ((y - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)


class Normal:
    """An object with methods, which knows nothing of varmat's classes."""

    def __init__(self, mu, sigma):
        self.lpdf = lambda y: normal_lpdf(y, mu, sigma)
        self.lcdf = lambda y: vm.normal_lcdf.pointwise(y, mu, sigma)
        self.lccdf = lambda y: vm.normal_lccdf.pointwise(y, mu, sigma)
        self.rng = lambda generator, size: generator.normal(mu, sigma, size)


def lomax_lpdf(y, alpha, scale):
    return np.log(alpha / scale) - (alpha + 1.0) * np.log1p(y / scale)


def lomax_lccdf(y, alpha, scale):
    return -alpha * np.log1p(y / scale)


def lomax_cdf(y, alpha, scale):
    return 1.0 - np.exp(lomax_lccdf(y, alpha, scale))


def lomax_rng(alpha, scale, rng, size):
    return scale * rng.pareto(alpha, size)


Lomax = partial(dist.Custom, lomax_lpdf, rng=lomax_rng, cdf=lomax_cdf, lccdf=lomax_lccdf)
PLAIN = dist.Custom(lomax_lpdf, 2.0, 3.0)
KINDS = {
    "functions": partial(
        dist.Custom, normal_lpdf, rng=lambda mu, s, rng, size: rng.normal(mu, s, size), **TAILS
    ),
    "those of varmat": partial(dist.Custom, vm.normal_lpdf, rng=vm.normal_rng, **TAILS),
    "an object": Normal,
}


def hierarchy(of):
    return vm.Model(
        mu=vm.real(prior=of(0.0, 5.0)),
        tau=vm.positive(prior=lambda: of(0.0, 2.0)),
        theta=vm.real(6, prior=lambda mu, tau: of(mu, tau)),
        y=vm.observed(Y, lambda theta: of(theta, 1.5)),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_model_is_that_of_the_same_distribution_of_varmat(kind):
    ours, theirs = hierarchy(dist.Normal), hierarchy(KINDS[kind])
    q = np.linspace(-0.5, 0.6, 8)
    expected = ours.log_density_hessian(q, propto=False)
    close(theirs.log_density(q), expected[0], 1e-13)  # all terms count
    recorded = Recorded(lambda q: theirs._target(q, False, True), 0)
    close(theirs.log_density_hessian(q), expected, 1e-12, 1e-12)
    close(recorded(q), expected[:2], 1e-12, 1e-12)
    assert repr(theirs.graph()) == repr(ours.graph())
    at = ours.constrain(q)
    close(theirs.stated.pointwise(**at)["y"], ours.stated.pointwise(**at)["y"], 1e-13)
    other = [model.with_data(y=Y + 1.0).log_density(q, propto=False) for model in (theirs, ours)]
    close(other[0], other[1], 1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_those_of_the_same_distribution_of_varmat(kind):
    models = hierarchy(KINDS[kind]), hierarchy(dist.Normal)
    found, expected = (model.sample_prior_predictive(draws=20, seed=1) for model in models)
    for group in ("prior", "prior_predictive"):
        for name, x in expected[group].items():
            close(found[group][name], x, 1e-12)
    # From 1,000 on they are recorded.
    many = models[0].sample_prior_predictive(draws=3000, seed=1)["prior"]
    at = {name: x[0] for name, x in many.items()}
    z = (at["theta"].T - at["mu"]) / at["tau"]
    for x, reference in (
        (at["mu"] / 5.0, scipy.stats.norm), (at["tau"] / 2.0, scipy.stats.halfnorm),
        (z.ravel(), scipy.stats.norm),
    ):  # fmt: skip
        assert scipy.stats.kstest(x, reference.cdf).pvalue > 0.001
    chains = {"mu": np.zeros((1, 1500)), "tau": np.ones((1, 1500)), "theta": np.ones((1, 1500, 6))}
    y = models[0].sample_posterior_predictive(chains, seed=1)["posterior_predictive"]["y"]
    close([y.mean(), y.std()], [1.0, 1.5], 0.0, 0.06)


def test_functions_are_those_of_scipy():
    y, lomax = np.array([0.3, 1.0, 4.0]), Lomax(2.0, 3.0)
    reference = scipy.stats.lomax(2.0, scale=3.0)
    logs = reference.logpdf(y)
    close(lomax.lpdf.pointwise(y), logs, 1e-13)
    close(lomax.lpdf(y.tolist()), float(logs.sum()), 1e-13)
    for found, expected in (
        (lomax.cdf, reference.cdf), (lomax.lcdf, reference.logcdf), (lomax.lccdf, reference.logsf)
    ):  # fmt: skip
        close(found.pointwise(y), expected(y), 1e-12)
    inside = np.log(reference.cdf(5.0) - reference.cdf(0.2))
    both, censored = lomax.truncated(0.2, 5.0), lomax.censored(upper=4.0)
    close(both.lpdf.pointwise(y), logs - inside, 1e-12)
    close(both.lpdf(y), float(np.sum(logs - inside)), 1e-12)
    drawn = both.rng(1, size=2000)
    assert 0.2 <= drawn.min() < drawn.max() <= 5.0
    close(both.cdf.pointwise(np.quantile(drawn, [0.2, 0.7])), [0.2, 0.7], 0.0, 0.04)
    expected = np.array([*logs[:2], reference.logsf(4.0)])
    close(censored.lpdf.pointwise(y), expected, 1e-12)
    close(censored.lpdf(y), float(expected.sum()), 1e-12)
    mixed = dist.Mixture(0.3, [lomax, dist.Exponential(1.0)]).lpdf.pointwise(y)
    close(np.exp(mixed), 0.3 * np.exp(logs) + 0.7 * np.exp(-y), 1e-12)
    states = dist.HiddenMarkov([0.5, 0.5], np.full((2, 2), 0.5), Lomax(np.full(2, 2.0), 3.0))
    close(states.lpdf(y), float(logs.sum()), 1e-12)
    again = pickle.loads(pickle.dumps(lomax))
    equal(again.truncated(0.2).lpdf.pointwise(y), lomax.truncated(0.2).lpdf.pointwise(y))
    equal(again.rng(1, size=3), lomax.rng(1, size=3))


@pytest.mark.parametrize("draws", [10, 1200])
def test_draws_in_intervals(draws):
    model = vm.Model(
        alpha=vm.positive(prior=dist.Gamma(4.0, 2.0)),
        scale=vm.interval(0.5, 2.0, prior=Lomax(3.0, 1.0)),
        y=vm.observed([0.3, 1.0], lambda alpha, scale: Lomax(alpha, scale).truncated(0.1)),
    )
    drawn = model.sample_prior_predictive(draws=draws, seed=1)
    assert drawn["prior_predictive"]["y"].min() >= 0.1
    assert 0.5 <= drawn["prior"]["scale"].min() < drawn["prior"]["scale"].max() <= 2.0


class Ball:
    event = 1

    def lpdf(self, y):
        return -np.sum(y**2, axis=-1)

    def rng(self, generator, size):
        return generator.normal(size=(*size, 2))


class Geometric:
    def lpmf(self, y):
        return -(y + 1) * np.log(2.0)


@pytest.mark.parametrize("prior", [Ball(), dist.Custom(
    Ball().lpdf, event=1, rng=lambda rng, size: rng.normal(size=(*size, 2))
)])  # fmt: skip
def test_vectors(prior):
    model, q = vm.Model(x=vm.real(3, 2, prior=prior)), np.arange(6.0)
    value, gradient = model.log_density_gradient(q)
    close(value, -55.0, 1e-14)
    close(gradient, -2.0 * q, 1e-14)
    assert model.sample_prior_predictive(draws=5, seed=1)["prior"]["x"].shape == (1, 5, 3, 2)


@pytest.mark.parametrize("of", [Geometric(), dist.Custom(Geometric().lpmf, is_discrete=True)])
def test_counts(of):
    model = vm.Model(mu=vm.real(prior=dist.Normal(0.0, 1.0)), y=vm.observed([1, 2], of))
    close(model.stated.pointwise(mu=0.0)["y"], scipy.stats.geom.logpmf([2, 3], 0.5), 1e-12)
    refuses(TypeError, "must be continuous", lambda: vm.Model(n=vm.real(prior=of)))


def terms(function):
    """The log density of a model whose mean is a parameter."""
    y = vm.observed(Y[:3], lambda mu: dist.Custom(function, mu))
    return vm.Model(mu=vm.real(3), y=y).log_density(np.zeros(3))


def prior_draws(**functions):
    model = vm.Model(x=vm.positive(prior=dist.Custom(lomax_lpdf, 2.0, 3.0, **functions)))
    return model.sample_prior_predictive(draws=3, seed=1)


REFUSALS = [
    (lambda: terms(lambda y, mu: np.sum(y - mu)), vm.ShapeError,
     r"^dist.Custom: <lambda> returns shape \(\) for y of shape \(3,\), but must return one"),
    (lambda: terms(lambda y, mu: y[:, None] - mu), vm.ShapeError,
     r"returns shape \(3, 3\) .* so shape \(3,\): give event=1 if one observation is a vector!$"),
    (lambda: vm.Model(y=vm.observed(Y, dist.Custom(np.sum)), mu=vm.real()), vm.ShapeError,
     r"returns shape \(\)"),
    (prior_draws, TypeError,
     r"^dist.Custom: rng is missing, but must be given for draws of Custom\(lomax_lpdf, 2.0, 3.0"),
    (lambda: prior_draws(rng=lambda *_, rng, size: rng.random(7)), vm.ShapeError,
     r"^dist.Custom: rng returns shape \(7,\) for size \(\), but must"),
    (lambda: PLAIN.cdf(1.0), TypeError, "^dist.Custom: cdf is missing, but must be given for prob"),
    (lambda: dist.Custom(lomax_lpdf, 2.0, 3.0, cdf=lomax_cdf).truncated(lower=1.0), TypeError,
     r"density is dist.Custom\(lomax_lpdf\) without lccdf, but must be .* cumulative functions"),
    (lambda: PLAIN.censored(lower=1.0), TypeError, "without lcdf and lccdf, but must be"),
    (lambda: dist.Custom(2.0), TypeError, "^dist.Custom: lpdf is a float, but must be a function!"),
    (lambda: dist.Custom(lomax_lpdf, cdf=2.0), TypeError, "^dist.Custom: cdf is a float"),
    (lambda: vm.Model(mu=vm.real(prior=3.0)), TypeError,
     "the prior of mu is a float, but must be a distribution .*dist.Custom"),
    (lambda: vm.Model(mu=vm.real(), y=vm.observed(Y, scipy.stats.norm())), TypeError,
     "the distribution of y is a rv_continuous_frozen, but must be .*dist.Custom"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), REFUSALS)
def test_refusals(make, error, message):
    refuses(error, message, make)


def test_example_runs():
    run_doctest(dist.Custom.__doc__, "Custom")
