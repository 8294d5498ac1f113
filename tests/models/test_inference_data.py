"""Log-likelihood, data and predictive draws in the groups of ArviZ, of either kind."""

from __future__ import annotations

import re
import sys
import types

import numpy as np
import pytest

import varmat as vm
from varmat.models import at_draws, inference_data

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = list("ABCDEFGH")


def prior(mu, tau, z):
    return vm.normal_lpdf(mu, 0.0, 5.0), vm.cauchy_lpdf(tau, 0.0, 5.0), vm.normal_lpdf(z, 0.0, 1.0)


def terms(theta, y, sigma):
    return {"y": vm.normal_lpdf.pointwise(y, theta, sigma)}


def make(
    log_density=lambda mu, tau, z, log_likelihood: (*prior(mu, tau, z), log_likelihood["y"]),
    **settings,
):
    given = {
        "data": {"y": Y, "sigma": SIGMA, "link": np.exp},
        "transformed_parameters": lambda mu, tau, z: {"theta": mu + tau * z},
        "log_likelihood": terms,
        "coords": {"school": SCHOOLS},
        "dims": {name: ["school"] for name in ("z", "theta", "y", "sigma")},
    }
    parameters = {"mu": vm.real(), "tau": vm.positive(), "z": vm.real(8)}
    return vm.Model(log_density, parameters, **{**given, **settings})


def whole(mu, tau, z, theta, y, sigma):
    return (*prior(mu, tau, z), vm.normal_lpdf(y, theta, sigma))


def test_log_density_takes_the_terms():
    q = np.linspace(-1.0, 1.0, 10)
    both, alone = make(), make(whole)
    np.testing.assert_allclose(both.log_density(q), alone.log_density(q), rtol=1e-15)
    for recorded in (None, True):
        model = make(recorded=recorded)
        for point in (q, 0.5 * q):
            found, expected = (x.log_density_gradient(point)[1] for x in (model, alone))
            np.testing.assert_allclose(found, expected, rtol=1e-13)
    found, expected = (model.log_density_hessian(q)[2] for model in (both, alone))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_terms_are_no_part_of_a_density_that_does_not_ask():
    q = np.linspace(-1.0, 1.0, 10)
    assert make(whole).log_density(q) == make(whole, log_likelihood=None).log_density(q)


def draws(shape=(2, 3)):
    rng = np.random.default_rng(1)
    mu, tau = rng.normal(size=shape), rng.gamma(2.0, size=shape)
    return {"mu": mu, "tau": tau, "z": rng.normal(size=(*shape, 8))}


def terms_at(model, of, shape):
    return model.likelihood.of_draws(model.completed, of, shape, lambda error: False)


def expected(of):
    z = (Y - of["mu"][..., None] - of["tau"][..., None] * of["z"]) / SIGMA
    return -0.5 * z**2 - np.log(SIGMA) - 0.5 * np.log(2.0 * np.pi)


@pytest.mark.parametrize("runner", ["auto", "numpy"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 600)])  # without and with a recording
def test_terms_at_draws(monkeypatch, shape, runner):
    runner_for = at_draws.runner_for
    monkeypatch.setattr(at_draws, "runner_for", lambda program: runner_for(program, runner))
    of, calls, model = draws(shape), [], make()
    of["mu"][1, 2:4] = of["tau"][1, 2:4] = np.nan
    of["z"][1, 2:4] = np.nan  # as in an interrupted chain
    model = make(log_likelihood=lambda theta, y, sigma: calls.append(1) or terms(theta, y, sigma))
    np.testing.assert_allclose(terms_at(model, of, shape)["y"], expected(of), rtol=1e-13)
    assert len(calls) == (5 if shape == (2, 3) else 2)


def test_terms_that_cannot_be_recorded_are_called_at_every_draw():
    def chosen(theta, y):
        return vm.normal_lpdf.pointwise(y, theta if theta[0] > 0.0 else -theta, 10.0)

    of = draws((1, 1000))
    model = make(log_likelihood=chosen, observed="y", log_density=whole)
    found = terms_at(model, of, (1, 1000))
    theta = of["mu"][..., None] + of["tau"][..., None] * of["z"]
    theta = np.where(theta[..., :1] > 0.0, theta, -theta)
    np.testing.assert_allclose(found["y"], vm.normal_lpdf.pointwise(Y, theta, 10.0), rtol=1e-13)


def test_an_array_alone_is_called_after_what_is_observed():
    alone = "log_likelihood"
    for observed, name in ("y", "y"), (["y"], "y"), (None, alone), (["y", "sigma"], alone):
        model = make(whole, log_likelihood=lambda theta: theta, observed=observed)
        assert list(inference_data.term_shapes(model, model.likelihood)) == [name]


def test_where_there_are_no_terms():
    model = make(whole, log_likelihood=lambda theta: {})
    assert terms_at(model, draws((1, 1000)), (1, 1000)) == {}
    assert terms_at(make(), draws((2, 0)), (2, 0)) == {}


def test_laplace():
    found = make().laplace(seed=1, draws=30).groups()
    of = {name: found["posterior"][name] for name in ("mu", "tau", "z")}
    np.testing.assert_allclose(found["log_likelihood"]["y"], expected(of), rtol=1e-13)
    assert [*found["observed_data"]] == ["y"]
    assert [*found["constant_data"]] == ["sigma"]  # a function is left out


def test_laplace_goes_on_where_the_likelihood_refuses_a_draw():
    def refusing(x):
        if vm.value(x) > 0.1:
            raise vm.DomainError("too large")
        return x * np.ones(2)

    model = vm.Model(lambda x: -0.5 * x * x, x=vm.real(), log_likelihood=refusing)
    found = model.laplace(seed=1, draws=20).groups()
    large = found["posterior"]["x"] > 0.1
    assert 0 < np.sum(large) < 20
    terms = found["log_likelihood"]["log_likelihood"][..., 0]
    np.testing.assert_array_equal(np.isnan(terms), large)


@pytest.mark.parametrize(("settings", "message"), [
    ({"observed": "x"}, "Model: observed has 'x', but must have data: y, sigma, link!"),
    ({"log_likelihood": 3.0}, "Model: log_likelihood is a float, but must be a function!"),
    ({"data": {"log_likelihood": 1.0}},
     ("Model: log_likelihood is data, but must be the log-likelihood that is given to the model "
     "alone!")),
    ({"transformed_parameters": None, "log_likelihood": lambda nu, mu: nu},
     ("Model: log_likelihood takes 'nu', but must take parameters and data: mu, tau, z, y, sigma, "
     "link!")),
    ({"log_likelihood": None, "transformed_parameters": None},
     ("Model: the log density takes 'log_likelihood', but must take parameters and data: mu, tau, "
     "z, y, sigma, link!")),
])  # fmt: skip
def test_refusals(settings, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        make(**settings)


@pytest.mark.parametrize(("function", "message"), [
    (lambda theta: None,
     ("Model: log_likelihood returned None (is a return statement missing?), but must return an "
     "array!")),
    (lambda theta: {"y": "a"},
     "Model: log_likelihood returned 'y' of dtype <U1, but must return real numbers!"),
])  # fmt: skip
def test_what_is_no_likelihood(function, message):
    model = make(whole, log_likelihood=function)
    with pytest.raises(TypeError, match=f"^{re.escape(message)}\n") as failure:  # and the note
        model.likelihood.of_draws(model.completed, draws(), (2, 3), lambda error: False)
    assert failure.value.__notes__ == [
        "log_likelihood: at draw 0, counted from 0 through all chains"
    ]


@pytest.fixture(params=["InferenceData", "DataTree"])
def arviz(request, monkeypatch):
    """ArviZ before 1, and what it is made of since: that is installed by itself, and needs no newer
    Python.
    """
    if request.param == "InferenceData":
        arviz = pytest.importorskip("arviz")
        if int(arviz.__version__.partition(".")[0]) >= 1:
            pytest.skip("this ArviZ has no InferenceData")
        return arviz
    base, stats = pytest.importorskip("arviz_base"), pytest.importorskip("arviz_stats")
    module = types.ModuleType("arviz")
    module.__version__, module.from_dict = "1.0", base.from_dict
    module.loo, module.compare = stats.loo, stats.compare
    monkeypatch.setitem(sys.modules, "arviz", module)
    return module


def groups_of(data):
    names = data.groups() if callable(data.groups) else data.groups
    return {name.strip("/") for name in names} - {""}


# ArviZ warns about its future.
quiet = pytest.mark.filterwarnings("ignore")


@quiet
def test_to_arviz_of_all_kinds_of_draws(arviz):
    model = make(generated_quantities=lambda theta, rng: {"new": rng.normal(theta, 1.0)})
    of = draws((2, 50))
    named = model.to_arviz(of, seed=1)
    each = [[{name: x[c, d] for name, x in of.items()} for d in range(50)] for c in range(2)]
    q = np.array([[model.param_unconstrain(values) for values in chain] for chain in each])
    free = model.to_arviz(q, seed=1)

    def simulate(theta, rng):
        return {"y": rng.normal(theta, SIGMA)}

    def prior(rng):
        return {"mu": rng.normal(), "tau": rng.gamma(2.0), "z": rng.normal(size=8)}

    simulated = model.sample_posterior_predictive(named, simulate, seed=2)
    first = model.sample_prior_predictive(prior, simulate, draws=20, seed=3)
    full = model.to_arviz(named, simulated, first)
    model.laplace(seed=1, draws=20).to_arviz()
    shown = {"posterior": "theta", "log_likelihood": "y", "observed_data": "y",
             "constant_data": "sigma"}  # fmt: skip
    assert groups_of(named) == {*shown}
    assert groups_of(free) == {*shown, "sample_stats"}
    assert groups_of(full) == {*shown, "posterior_predictive", "prior", "prior_predictive"}
    for data in (named, free, full):
        for group, name in shown.items():
            assert data[group][name].dims[-1] == "school"
            assert data[group]["school"].values.tolist() == SCHOOLS
        np.testing.assert_allclose(data["log_likelihood"]["y"].values, expected(of), rtol=1e-12)
        np.testing.assert_array_equal(data["observed_data"]["y"].values, Y)
    assert free["posterior"]["new"].shape == (2, 50, 8)
    assert full["posterior_predictive"]["y"].dims == ("chain", "draw", "school")
    lp = free["sample_stats"]["lp"].values[1, 7]
    np.testing.assert_allclose(lp, model.log_density(q[1, 7]), rtol=1e-15)


@quiet
def test_simulations_show_what_is_observed(arviz):
    model = make(whole, log_likelihood=None)
    before = model.to_arviz(draws())
    simulate = lambda theta, rng: {"y": rng.normal(theta)}  # noqa: E731
    after = model.to_arviz(before, model.sample_posterior_predictive(before, simulate, seed=2))
    assert set(before["constant_data"].data_vars) == {"y", "sigma"}
    assert "observed_data" not in groups_of(before)
    assert set(after["constant_data"].data_vars) == {"sigma"}
    assert set(after["observed_data"].data_vars) == {"y"}


@quiet
def test_leave_one_out_of_a_normal_mean(arviz):
    """With a known variance and a flat prior, y_i given the others is normal around their mean, of
    variance 1 + 1 / (n - 1).
    """
    y = np.array([0.3, -0.5, 1.1, 0.2, -0.9, 0.4, 0.0, 0.8, -0.2, 0.6])
    n = len(y)
    model = vm.Model(
        lambda mu, log_likelihood: (log_likelihood,),
        mu=vm.real(),
        data={"y": y},
        observed="y",
        log_likelihood=lambda mu, y: vm.normal_lpdf.pointwise(y, mu, 1.0),
    )
    q = np.random.default_rng(1).normal(np.mean(y), n**-0.5, size=(4, 2000, 1))
    data = model.to_arviz(q)
    found = arviz.loo(data)
    table = arviz.compare({"one": data, "two": data})
    other = arviz.waic(data).elpd_waic if hasattr(arviz, "waic") else None
    means = (np.sum(y) - y) / (n - 1)
    exact = np.sum(vm.normal_lpdf.pointwise(y, means, np.sqrt(1.0 + 1.0 / (n - 1))))
    value = found.elpd_loo if hasattr(found, "elpd_loo") else found.elpd
    np.testing.assert_allclose(value, exact, atol=0.05)
    assert other is None or abs(other - exact) < 0.05
    assert len(table) == 2


def test_an_error_in_the_likelihood_comes_before_sampling():
    pytest.importorskip("nutpie")
    with pytest.raises(KeyError, match="no"):
        make(whole, log_likelihood=lambda theta: {}["no"]).sample(10, 1, progress_bar=False)


@pytest.mark.parametrize(("of", "error", "message"), [
    (np.ones((3, 10)), vm.ShapeError,
     "Model.to_arviz: draws has shape (3, 10), but must have shape (chains, draws, 10)!"),
    ({"mu": np.ones((1, 2))}, TypeError,
     "Model.to_arviz: result has no tau, but must have the parameters mu, tau, z!"),
])  # fmt: skip
def test_draws_that_do_not_fit(of, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        make().to_arviz(of)


def test_dims_of_what_is_not_there():
    pytest.importorskip("nutpie")
    with pytest.raises(TypeError, match="dims has 'x', but must have parameters and quantities: "):
        make(dims={"x": ["school"]}).sample(10, 1, progress_bar=False)


def test_an_interrupt_leaves_the_draws(monkeypatch):
    pytest.importorskip("arviz")
    model, groups = make(), {"posterior": draws(), "sample_stats": {"lp": np.zeros((2, 3))}}

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(model.likelihood, "of_draws", interrupted)
    text = "interrupted after sampling: the result has no log-likelihood"
    with pytest.warns(UserWarning, match=text):
        found = inference_data.completed(model, groups, [0, 1])
    assert "log_likelihood" not in found
    assert found["posterior"]["mu"].shape == (2, 3)


def test_no_draws():
    model = make()
    assert "log_likelihood" not in inference_data.beside(model, draws((2, 0)), (2, 0))
    assert "log_likelihood" not in model.laplace(seed=1, draws=0).groups()
