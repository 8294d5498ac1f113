"""Models that are stated once: what follows from the statement."""

import copy
import pickle

import numpy as np
import pytest
import scipy.stats
from comparing import close, close_slopes, equal, refuses
from models.schools import SIGMA, Y

import varmat as vm
import varmat.distributions as dist
from varmat.derivatives.recorded import Recorded

RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 2))
CLASS = RNG.integers(2, size=30)
PLACES = np.linspace(0.0, 3.0, 12)
HEIGHTS = np.sin(PLACES)


def schools(centred=True, **settings):
    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        tau=vm.positive(prior=dist.Cauchy(0, 5)),
        theta=vm.real(prior=lambda mu, tau: dist.Normal(mu, tau), dims="school", centred=centred),
        y=vm.observed(Y, lambda theta: dist.Normal(theta, SIGMA), dims="school"),
        coords={"school": list("ABCDEFGH")},
        **settings,
    )


def of_scales(mu, tau):
    return vm.normal_lpdf(mu, 0, 5), vm.cauchy_lpdf(tau, 0, 5)


def schools_function(mu, tau, theta):
    schools = vm.normal_lpdf(theta, mu, tau), vm.normal_lpdf(Y, theta, SIGMA)
    return (*of_scales(mu, tau), *schools)


def non_centred_function(mu, tau, z):
    schools = vm.normal_lpdf(Y, mu + tau * z, SIGMA), vm.normal_lpdf(z, 0, 1)
    return (*of_scales(mu, tau), *schools)


def logistic():
    return vm.Model(
        alpha=vm.real(prior=dist.Normal(0, 2)),
        beta=vm.real(2, prior=dist.Normal(0, 1)),
        y=vm.observed(CLASS, lambda alpha, beta: dist.BernoulliLogitGLM(X, alpha, beta)),
    )


def logistic_function(alpha, beta):
    priors = vm.normal_lpdf(alpha, 0, 2), vm.normal_lpdf(beta, 0, 1)
    return (*priors, vm.bernoulli_logit_glm_lpmf(CLASS, X, alpha, beta))


def covariance(length, noise):
    return vm.gp_exp_quad_cov(PLACES, 1.0, length) + noise**2 * np.eye(12)


def process():
    return vm.Model(
        length=vm.positive(prior=dist.InvGamma(5, 5)),
        noise=vm.positive(prior=dist.Exponential(2)),
        K=covariance,
        y=vm.observed(HEIGHTS, lambda K: dist.MultiNormal(np.zeros(12), K)),
    )


def process_function(length, noise):
    priors = vm.inv_gamma_lpdf(length, 5, 5), vm.exponential_lpdf(noise, 2)
    return (*priors, vm.multi_normal_lpdf(HEIGHTS, np.zeros(12), covariance(length, noise)))


SCALES = {"mu": vm.real(), "tau": vm.positive()}
SAME = {
    "schools": (schools(), schools_function, {**SCALES, "theta": vm.real(8)}),
    "non-centred": (schools(False), non_centred_function, {**SCALES, "z": vm.real(8)}),
    "logistic": (logistic(), logistic_function, {"alpha": vm.real(), "beta": vm.real(2)}),
    "process": (process(), process_function, {"length": vm.positive(), "noise": vm.positive()}),
}


@pytest.mark.parametrize("name", SAME)
def test_a_statement_is_the_same_density_and_program_as_the_function(name):
    stated, function, parameters = SAME[name]
    written = vm.Model(function, **parameters)
    q = np.linspace(-0.5, 0.7, stated.param_unc_num())
    for jacobian in (True, False) if name != "non-centred" else (True,):
        values = [m.log_density(q, propto=False, jacobian=jacobian) for m in (stated, written)]
        close(values[0], values[1], 1e-13)
    assert stated.check_gradient(q)
    steps = []
    for model in (stated, written):
        recorded = Recorded(model._target, 0)
        recorded(q, False, True)
        steps.append(sorted(step.kernel.name for step in recorded.program.steps))
    assert steps[0] == steps[1]


def test_the_non_centred_form_is_another_way_to_the_same_density():
    centred, free = schools(), schools(False)
    q = np.linspace(-0.5, 0.7, 10)
    values = free.constrain(q)
    close(values["theta"], values["mu"] + values["tau"] * q[2:], 1e-7)
    point = centred.param_unconstrain(values)
    close(free.param_unconstrain(values), q, 1e-12, 1e-14)
    of_centred = centred.log_density(point, propto=False, jacobian=False)
    close(free.log_density(q, propto=False, jacobian=False), of_centred, 1e-6)
    expected = centred.log_density(point, propto=False) + 8 * np.log(values["tau"])
    close(free.log_density(q, propto=False), expected, 1e-6)


def test_vectors_have_a_non_centred_form():
    def prior(tau, L):
        return dist.MultiNormalCholesky(np.ones(2), tau[:, None] * L)

    model = vm.Model(
        tau=vm.positive(2, prior=dist.Normal(0, 1)),
        L=vm.cholesky_corr(2, prior=dist.LKJCorrCholesky(2.0)),
        beta=vm.real(5, 2, centred=False, prior=prior),
    )
    q = np.linspace(-0.5, 0.7, 13)
    values = model.constrain(q)
    factor = values["tau"][:, None] * values["L"]
    close(values["beta"], 1.0 + q[3:].reshape(5, 2) @ factor.T, 1e-7)
    close(model.param_unconstrain(values), q, 1e-12, 1e-14)
    of_beta = vm.multi_normal_cholesky_lpdf(values["beta"], np.ones(2), factor)
    others = vm.normal_lpdf(values["tau"], 0, 1) + vm.lkj_corr_cholesky_lpdf(values["L"], 2.0)
    found = model.log_density(q, propto=False, jacobian=False)
    close(found, of_beta + others, 1e-6)
    assert model.check_gradient(q)
    assert model.sample_prior_predictive(seed=1, draws=3)["prior"]["beta"].shape == (1, 3, 5, 2)


def test_names_and_sizes_come_from_dimensions():
    model = schools()
    assert model.shapes()["theta"] == (8,)
    drawn = model.sample_prior_predictive(seed=1, draws=5)
    assert drawn.dims == {"theta": ["school"], "y": ["school"]}
    assert drawn.coords["school"] == list("ABCDEFGH")


def test_pandas_and_xarray_bring_their_labels():
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    labels = {"school": list("ABCDEFGH")}
    series = pandas.Series(Y, pandas.Index(labels["school"], name="school"))
    for y in (series, xarray.DataArray(Y, labels, ["school"])):
        model = vm.Model(
            theta=vm.real(dims="school", prior=dist.Normal(0, 9)),
            y=vm.observed(y, lambda theta: dist.Normal(theta, SIGMA)),
        )
        assert model.shapes() == {"theta": (8,)}
        assert model.dims == {"y": ["school"], "theta": ["school"]}
        assert model.coords == labels


def test_simulation_follows_from_the_statement():
    model = schools(False)
    drawn = model.sample_prior_predictive(seed=1, draws=500)
    mu, tau, theta = (drawn["prior"][name][0] for name in ("mu", "tau", "theta"))
    close(np.std(mu), 5.0, 0.2)
    close(np.median(tau), 5.0, 0.25)  # of half a Cauchy distribution
    z = (theta - mu[:, None]) / tau[:, None]
    close(np.std(z), 1.0, 0.1)
    residuals = (drawn["prior_predictive"]["y"][0] - theta) / SIGMA
    close(np.std(residuals), 1.0, 0.1)

    approximation = model.laplace(seed=1, draws=50)
    assert approximation.groups()["log_likelihood"]["y"].shape == (1, 50, 8)
    found = model.sample_posterior_predictive(approximation, seed=2)
    assert found["posterior_predictive"]["y"].shape == (1, 50, 8)
    at = {name: x[0] for name, x in approximation.draws.items()}
    expected = vm.normal_lpdf.pointwise(Y, at["theta"], SIGMA)
    close(approximation.groups()["log_likelihood"]["y"][0, 0], expected, 1e-7)


def test_priors_are_restricted_to_the_set():
    model = vm.Model(
        a=vm.interval(-1, 2, 3, prior=dist.Normal(0, 5)),
        b=vm.ordered(4, prior=dist.Normal(0, 1)),
        c=vm.upper(0.0, prior=dist.StudentT(3, 1, 1)),
        L=vm.cholesky_corr(3, prior=dist.LKJCorrCholesky(2.0)),
        p=vm.simplex(2, 5, prior=dist.Dirichlet(np.ones(2))),
    )
    found = model.sample_prior_predictive(seed=1, draws=50)["prior"]
    assert (np.abs(found["a"] - 0.5) <= 1.5).all()
    assert (found["c"] <= 0).all()
    assert (np.diff(found["b"], axis=-1) > 0).all()
    assert found["p"].shape == (1, 50, 5, 2)


@pytest.mark.parametrize("observed", [
    lambda c: dist.Normal(1.0 if c > 0 else 2.0, 1.0),
    lambda c: dist.Normal(0.0, 1.0) if c > 0 else dist.Cauchy(0.0, 1.0),
    lambda c: dist.Normal(c, 1.0) if c > 0 else dist.StudentT(3.0, c, 2.0),
])  # fmt: skip
def test_statements_that_branch_on_parameters_keep_all_terms(observed):
    y = np.random.default_rng(0).normal(size=20)
    model = vm.Model(c=vm.real(prior=dist.Normal(0, 1)), y=vm.observed(y, observed))
    for c in (-1.0, -0.2, 0.3, 1.2):
        expected = observed(c).lpdf(y) - 0.5 * c**2
        close(model.log_density([c]), expected, 1e-14)
        close(model.log_density_gradient([c])[0], expected, 1e-13)


def test_functions_terms_and_named_values_mix():
    model = vm.Model(
        lambda mu, size: -0.5 * mu**2 * size,
        sigma=vm.positive(prior=dist.Exponential(1.0)),
        twice=lambda double: 2 * double,
        double=lambda mu: 2 * mu,
        mu=vm.real(),
        y=vm.observed([1.0, 2.0], lambda twice, sigma: dist.Normal(twice, sigma)),
        data={"size": 3.0},
    )
    found = model.log_density(np.array([0.0, 0.25]), propto=False)
    expected = -1.0 + vm.normal_lpdf([1.0, 2.0], 1.0, 1.0) - 0.5 * 0.25**2 * 3.0
    close(found, expected, 1e-6)
    assert model.constrain([0.0, 0.25], include_tp=True)["twice"] == 1.0
    lines = [" ".join(line.split()) for line in str(model.graph()).splitlines()]
    assert lines == [
        "sigma parameter", "mu parameter", "double value mu", "twice value double",
        "y observed twice, sigma",
    ]  # fmt: skip
    assert '"double" -> "twice";' in model.graph().dot
    whole = vm.Model(mu=vm.real(prior=dist.Normal(0, 5)), y=vm.observed(Y, dist.Normal(0, SIGMA)))
    same = pickle.loads(pickle.dumps(copy.copy(whole)))
    assert same.log_density(np.ones(1)) == whole.log_density(np.ones(1))


def test_missing_observations_become_parameters():
    y = Y.copy()
    y[[2, 5]] = np.nan
    model = vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(y, lambda mu: dist.Normal(mu, SIGMA), missing=vm.real, dims="school"),
    )
    q = np.array([1.0, 3.0, -4.0])
    full = np.array([28.0, 8.0, 3.0, 7.0, -1.0, -4.0, 18.0, 12.0])
    expected = vm.normal_lpdf(1.0, 0, 5) + vm.normal_lpdf(full, 1.0, SIGMA)
    close(model.log_density(q, propto=False), expected, 1e-6)
    assert model.shapes() == {"mu": (), "y_missing": (2,)}
    equal(model.constrain(q, include_tp=True)["y"], full)
    groups = model.laplace(seed=1, draws=10).groups()
    assert groups["log_likelihood"]["y_observed"].shape == (1, 10, 6)
    equal(groups["observed_data"]["y"], y)
    assert model.sample_prior_predictive(seed=1, draws=4)["prior"]["y_missing"].shape == (1, 4, 2)


def named_terms(mu, y):
    return {"prior": vm.normal_lpdf(mu, 0, 5), "y": vm.normal_lpdf.pointwise(y, mu, SIGMA)}


def of_terms(y, **more):
    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(y, lambda y, mu: vm.normal_lpdf.pointwise(y, mu, SIGMA), **more),
    )


@pytest.mark.parametrize("draws", [3, 1000])
@pytest.mark.parametrize("make", [
    lambda: vm.Model(named_terms, mu=vm.real(), data={"y": Y}), lambda: of_terms(Y),
])  # fmt: skip
def test_terms_of_functions_have_names(make, draws):
    model = make()
    expected = vm.normal_lpdf(0.3, 0, 5) + vm.normal_lpdf(Y, 0.3, SIGMA)
    close(model.log_density([0.3], propto=False), expected, 1e-14)
    groups = model.laplace(seed=1, draws=draws).groups()
    mu = groups["posterior"]["mu"][..., np.newaxis]
    close(groups["log_likelihood"]["y"], scipy.stats.norm.logpdf(Y, mu, SIGMA), 1e-13)
    equal(groups["observed_data"]["y"], Y)
    by_school = vm.Model(named_terms, mu=vm.real(), data={"y": Y}, dims={"y": ["school"]},
                         log_likelihood="school")  # fmt: skip
    close(by_school.likelihood.at({"mu": 0.3, "y": Y})["log_likelihood"],
          scipy.stats.norm.logpdf(Y, 0.3, SIGMA), 1e-13)  # fmt: skip


def test_terms_of_functions_are_not_drawn():
    model = of_terms(np.append(Y[:-1], np.nan), missing=vm.real)
    expected = vm.normal_lpdf(0.3, 0, 5) + vm.normal_lpdf(np.append(Y[:-1], 2.0), 0.3, SIGMA)
    close(model.log_density([0.3, 2.0], propto=False), expected, 1e-14)
    result = model.laplace(seed=1, draws=3)
    assert result.groups()["log_likelihood"]["y_observed"].shape == (1, 3, 7)
    assert [*of_terms(Y).sample_prior_predictive(draws=2, seed=1).groups] == ["prior"]
    mixed = vm.Model(lambda mu, y: {"x": vm.normal_lpdf.pointwise(y, mu, 1.0)}, mu=vm.real(),
                     z=vm.observed([1.0], lambda mu: dist.Normal(mu, 1)),
                     data={"x": Y, "y": Y})  # fmt: skip
    groups = mixed.laplace(seed=1, draws=3)
    assert groups.groups()["log_likelihood"].keys() == {"x", "z"}
    assert mixed.sample_posterior_predictive(groups)["posterior_predictive"].keys() == {"z"}
    message = "^sample_posterior_predictive: y cannot be drawn, because the model has only a"
    refuses(TypeError, message, model.sample_posterior_predictive, result)
    message = "^calibration: y cannot be drawn, because"
    refuses(TypeError, message, vm.testing.calibration, of_terms(Y), simulations=2)


K = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, -0.3], [0.2, -0.3, 1.5]])
M = np.array([0.2, -0.1, 0.4])
KINDS = {
    "Sigma": (lambda a: dist.MultiNormal(a * M, K), lambda y, m, k: (y, m, k)),
    "rows": (lambda a: dist.MultiNormal(a * np.tile(M, (5, 1)), K), lambda y, m, k: (y, m, k)),
    "Omega": (lambda a: dist.MultiNormalPrec(a * M, np.linalg.inv(K)), lambda y, m, k: (y, m, k)),
    "L": (lambda a: dist.MultiNormalCholesky(a * M, np.linalg.cholesky(K)),
          lambda y, m, k: (y, m, k)),
    "t": (lambda a: dist.MultiStudentT(4.0, a * M, K), lambda y, m, k: (y, m, k, 4.0)),
    "t, L": (lambda a: dist.MultiStudentTCholesky(4.0, a * M, np.linalg.cholesky(K)),
             lambda y, m, k: (y, m, k, 4.0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draws", [2, 1000])
def test_vectors_with_missing_elements_have_the_log_density_of_the_others(kind, draws):
    make, arguments = KINDS[kind]
    y = np.arange(15.0).reshape(5, 3) / 10.0
    y[[0, 2, 2, 2, 3, 4], [1, 0, 1, 2, 2, 1]] = np.nan
    model = vm.Model(a=vm.real(prior=dist.Normal(0, 1)), y=vm.observed(y, make, missing=vm.real))
    groups = model.laplace(seed=1, draws=draws).groups()
    of = scipy.stats.multivariate_t if "t" in kind else scipy.stats.multivariate_normal
    for i in range(2):
        rows = [(row[s], groups["posterior"]["a"][0, i] * M[s], K[np.ix_(s, s)])
                for row in y if (s := ~np.isnan(row)).any()]  # fmt: skip
        expected = [of.logpdf(*arguments(*row)) for row in rows]
        close(groups["log_likelihood"]["y_observed"][0, i], expected, 1e-12)


def test_other_vectors_with_missing_elements_are_left_out():
    y = np.array([[0.2, 0.8], [0.5, np.nan], [0.4, 0.6]])
    model = vm.Model(a=vm.positive(prior=dist.Exponential(1)), y=vm.observed(
        y, lambda a: dist.Dirichlet([a, 2.0]), missing=vm.positive))  # fmt: skip
    terms = model.likelihood.at({"a": 1.5, "y": np.array([[0.2, 0.8], [0.5, 0.5], [0.4, 0.6]])})
    close(terms["y_observed"], scipy.stats.dirichlet.logpdf(y[[0, 2]].T, [1.5, 2.0]), 1e-12)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: vm.Model(mu=vm.real(), y=vm.observed(Y, lambda y, mu: vm.normal_lpdf(y, mu, 1)))
     .log_density([0.0]), vm.ShapeError,
     r"^Model: the distribution of y is a function that returns log densities of shape \(\), but"),
    (lambda: vm.Model(lambda mu, y: {"y": vm.normal_lpdf(y, mu, 1)}, mu=vm.real(), data={"y": Y})
     .laplace(seed=1, draws=1).groups(), vm.ShapeError,
     r"^Model: the log density returned a number as its term y, but must return the log density"),
    (lambda: vm.Model(lambda mu: {"y": -mu**2}, mu=vm.real(), y=vm.observed(
        Y, lambda mu: dist.Normal(mu, 1))).log_density([0.0]), TypeError,
     "^Model: the log density returned a term y, but must return terms of other names"),
    (lambda: vm.Model(y=vm.observed([[1.0, np.nan]], dist.Normal(0, 1))), vm.DataError,
     r"^Model: y\[0, 1\] is nan, but must be a number: missing=varmat.real makes"),
    (lambda: vm.Model(mu=vm.real(), tau=vm.real(prior=lambda nu: dist.Normal(nu, 1))), TypeError,
     r"^Model: the prior of tau takes 'nu', but must take parameters and data: mu, tau!"),
    (lambda: vm.Model(x=vm.real(), y=vm.observed([1.0], lambda z: dist.Normal(z, 1))), TypeError,
     r"^Model: the distribution of y takes 'z', but must take parameters and data: x, y!"),
    (lambda: vm.Model(mu=vm.real(prior=vm.normal_lpdf(0, 0, 1))), TypeError,
     r"^Model: the prior of mu is a float, but must be a distribution such as"),
    (lambda: vm.Model(mu=vm.real(prior=lambda: 1.0)).log_density(np.zeros(1)), TypeError,
     r"^Model: the prior of mu is a float, but must be a distribution such as"),
    (lambda: vm.Model(mu=lambda: vm.real()).log_density(np.zeros(0)), TypeError,
     r"^Model: mu is a function that returns a parameter, but must be one such as"),
    (lambda: vm.Model(mu=vm.real(prior=dist.Gamma(1, 1), centred=False)), TypeError,
     r"^Gamma has no location and scale, but must have them for centred=False"),
    (lambda: vm.real(centred=False), TypeError, "^real: centred is False, but must be True"),
    (lambda: vm.real(2, pior=3), TypeError, r"^real\(\) got an unexpected keyword argument"),
    (lambda: vm.Model(y=vm.observed([1.0], dist.Normal(0, 1)), data={"y": [1.0]}), TypeError,
     "^Model: y is both observed and data$"),
    (lambda: vm.Model(a=lambda b: b, b=lambda a: a), TypeError,
     "^Model: a takes 'b', but must take parameters and data"),
    (lambda: vm.Model(a=vm.real(prior=lambda b: dist.Normal(b, 1)),
         b=vm.real(prior=lambda a: dist.Normal(a, 1)),
         c=vm.real(prior=lambda a: dist.Normal(a, 1))), TypeError,
     (r"^Model: the priors depend on each other in a cycle \(a needs b, b needs a\), but must be "
     r"in an order")),
    (lambda: vm.Model(c=vm.real(prior=lambda a: dist.Normal(a, 1)),
         a=vm.real(prior=lambda twice: dist.Normal(twice, 1)), twice=lambda b: 2 * b,
         b=vm.real(prior=lambda a: dist.Normal(a, 1))), TypeError,
     (r"^Model: the priors depend on each other in a cycle \(a needs twice, twice needs b, b "
     r"needs a\), but")),
    (lambda: vm.Model(a=vm.real(3, prior=lambda a: dist.Normal(np.mean(a), 1))), TypeError,
     "^Model: the prior of a is a function of a itself, but must be the distribution that a has"),
    (lambda: vm.observed(["a"], dist.Normal(0, 1)), TypeError,
     "^observed: y is an array of <U1, but must be one of real numbers: varmat.groups"),
    (lambda: vm.Model(mu=vm.real()).sample_prior_predictive(), TypeError,
     "^sample_prior_predictive: mu has no prior, but must"),
    (lambda: vm.Model(mu=vm.real()).sample_posterior_predictive({"mu": np.zeros((1, 1))}),
     TypeError, "^sample_posterior_predictive: simulate is missing, but must be given"),
])  # fmt: skip
def test_mistakes(make, error, message):
    refuses(error, message, make)


def test_what_is_no_circle():
    y = np.array([1.0, np.nan, 2.0])
    model = vm.Model(
        b=vm.positive(prior=lambda a: dist.Normal(a, 1)),
        a=vm.interval(0, lambda b: b, prior=dist.Uniform(0, 1)),
        # The density of each observation, given the one before it.
        y=vm.observed(y, lambda a, y: dist.Normal(a * np.append(0.0, y[:-1]), 1), missing=vm.real),
    )
    q = np.array([0.3, -0.2, 1.5])
    values = model.constrain(q)
    a, b = values["a"], values["b"]
    steps = vm.normal_lpdf([1.0, 1.5, 2.0], a * np.array([0, 1, 1.5]), 1)
    expected = vm.normal_lpdf(b, a, 1) + steps
    close(model.log_density(q, propto=False, jacobian=False), expected, 1e-6)


def test_other_data_for_the_same_model():
    def log_density(mu, x):
        return vm.normal_lpdf(x, mu, 2.0)

    model = vm.Model(
        log_density,
        mu=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed([1.0, 3.0], lambda mu: dist.Normal(mu, 1.0)),
        data={"x": np.array([0.5])},
    )
    other = model.with_data(y=[5.0, 1.0, 2.0], x=np.array([1.0, 2.0]))
    q = np.array([0.3])
    expected = vm.normal_lpdf(q, 0, 5) + vm.normal_lpdf([5.0, 1.0, 2.0], 0.3, 1)
    expected = expected + vm.normal_lpdf([1, 2], 0.3, 2)
    close(other.log_density(q, propto=False), expected, 1e-14)
    equal(model.with_data().log_density(q), model.log_density(q))
    message = r"^with_data: the model has no data z, but must have: y, x!"
    refuses(TypeError, message, model.with_data, z=1.0)


def test_the_labels_of_other_data_are_their_own():
    pandas = pytest.importorskip("pandas")
    data = {"scale": 10.0}
    y = pandas.Series(Y, pandas.Index(list("ABCDEFGH"), name="school"))
    model = vm.Model(
        theta=vm.real(prior=dist.Normal(0, 5), dims="school"),
        y=vm.observed(y, lambda theta, scale: dist.Normal(theta, scale)),
        data=data,
    )
    assert model.with_data(y=2.0 * Y).coords["school"] == list("ABCDEFGH")
    del data["scale"]  # the model keeps what it was given
    other = model.with_data(y=pandas.Series([1.0, 2.0], pandas.Index(["I", "J"], name="school")))
    assert other.shapes() == {"theta": (2,)}
    assert other.coords["school"] == ["I", "J"]
    message = r"^observed: y is an array of <U1, but must be one of"
    refuses(TypeError, message, model.with_data, y=["a", "b"])


def overwriting(theta):
    theta.sort()
    theta *= 2.0
    return np.sum(theta)


def all_overwriting(theta, twice):
    theta[0] = 0.0
    return {"late": np.sum(theta) + twice}


@pytest.mark.parametrize("draws", [3, 1000])
def test_a_function_may_overwrite_what_it_is_given(draws):
    model = vm.Model(
        theta=vm.real(3, prior=dist.Normal(0, 1)),
        twice=overwriting,
        phi=vm.real(prior=lambda theta: dist.Normal(overwriting(theta), 1.0)),
        y=vm.observed([1.0, 2.0], lambda theta: dist.Normal(overwriting(theta), 1.0)),
        transformed_parameters=all_overwriting,
    )
    q = np.array([1.0, -2.0, 0.5, 0.3])
    theta = q[:3].copy()
    expected = vm.normal_lpdf(theta, 0, 1) + vm.normal_lpdf([0.3, 1.0, 2.0], -1.0, 1.0)
    close(model.log_density(q, propto=False), expected, 1e-6)
    slope = -theta + 2.0 * np.sum(np.array([0.3, 1.0, 2.0]) + 1.0)
    close(model.log_density_gradient(q)[1][:3], slope, 1e-7)
    values = model.constrain(q, include_tp=True)
    equal(values["theta"], theta)
    assert values["late"] == -2.5
    drawn = model.sample_prior_predictive(seed=1, draws=draws)["prior"]
    assert np.any(np.diff(drawn["theta"], axis=-1) < 0.0)
    close(drawn["twice"], 2.0 * drawn["theta"].sum(axis=-1), 1e-7, 1e-12)


# What has not the same distribution as the density of the model is no draw from its prior.
@pytest.mark.parametrize("draws", [3, 1000])
@pytest.mark.parametrize(("parameters", "error", "message"), [
    ({"p": vm.simplex(3, prior=dist.Beta(1, 1))}, vm.DomainError, "p: simplex_free: sum"),
    ({"p": vm.sum_to_zero(3, prior=dist.Normal(0, 1))}, vm.DomainError, "p: sum_to_zero_free"),
    ({"p": vm.unit_vector(3, prior=dist.Normal(0, 1))}, vm.DomainError, "p: unit_vector_free"),
    ({"c": vm.ordered(2, prior=dist.Normal([0.0, 2.0], 1.0))}, TypeError,
     r"the prior of c is Normal\(mu=<list \(2,\)>, sigma=1.0\), but must be the same"),
    ({"c": vm.ordered(2, prior=dist.MultiNormal(np.zeros(2), np.eye(2)))}, TypeError,
     "the prior of c is MultiNormal"),
    ({"a": vm.interval(0, 1, prior=dist.Uniform(0, 1)),
      "b": vm.interval(0, lambda a: 1 - a, prior=dist.Uniform(0, 1))},
     vm.DomainError, "b is .* in a draw from its prior .*: restrict the prior"),
])  # fmt: skip
def test_draws_that_are_not_those_of_the_density_are_refused(parameters, error, message, draws):
    draw = vm.Model(**parameters).sample_prior_predictive
    refuses(error, f"^sample_prior_predictive: {message}", draw, seed=1, draws=draws)


def test_bounds_wait_for_what_they_depend_on():
    model = vm.Model(
        a=vm.real(prior=lambda c: dist.Normal(np.sum(c), 1.0)),
        b=vm.lower(lambda a: a, prior=lambda a: dist.Normal(0, 1).truncated(lower=a)),
        c=vm.positive(3, prior=lambda scale: dist.Normal(0, scale)),
        data={"scale": 2.0},
    )
    drawn = model.sample_prior_predictive(seed=1, draws=20)["prior"]
    assert (drawn["b"] > drawn["a"]).all()
    assert (drawn["c"] > 0.0).all()


def test_weights_count_observations():
    y, counts = np.array([0.5, 1.5, 4.0, 2.0]), np.array([1, 3, 0, 2])

    def model(y, **settings):
        return vm.Model(
            mu=vm.real(prior=dist.Normal(0, 2)),
            sigma=vm.positive(prior=dist.Exponential(1)),
            y=vm.observed(y, lambda mu, sigma: dist.Normal(mu, sigma), **settings),
        )

    weighted, repeated = model(y, weights=counts), model(np.repeat(y, counts))
    for q in np.random.default_rng(1).normal(size=(3, 2)):
        close_slopes(weighted.log_density_gradient(q), repeated.log_density_gradient(q), 1e-12)
    assert weighted.check_gradient()
    values = weighted.constrain(q)
    terms = weighted.likelihood.plain(values)["y"]
    close(terms, counts * vm.normal_lpdf.pointwise(y, *values.values()), 1e-13)
    assert weighted.sample_prior_predictive(draws=5, seed=1)["prior_predictive"]["y"].all()
    again = weighted.with_data(y=y[::-1])
    close(again.likelihood.plain(values)["y"][0], terms[3] / 2.0, 1e-13)


def test_a_weight_of_zero_leaves_out_what_is_impossible():
    model = vm.Model(
        end=vm.positive(prior=dist.Exponential(1)),
        y=vm.observed([0.1, -5.0], lambda end: dist.Uniform(0.0, 20 + end), weights=[2, 0]),
    )
    assert np.isfinite(model.log_density([0.0]))
    assert model.check_gradient([0.0])


def test_weights_of_a_discrete_parameter():
    y, counts = np.array([0.5, 4.0, 1.5]), np.array([1, 0, 3])

    def model(y, z, **settings):
        return vm.Model(
            mu=vm.ordered(2, prior=dist.Normal(0, 2)),
            z=vm.discrete([0, 1], 3),
            y=vm.observed(y, lambda mu, z: dist.Normal(mu[z[group]], 1.0), **settings),
        )

    group = np.arange(3)
    found = model(y, group, weights=counts).log_density([0.3, 0.5])
    group = np.repeat(group, counts)
    close(found, model(np.repeat(y, counts), group).log_density([0.3, 0.5]), 1e-13)


@pytest.mark.parametrize(("settings", "error", "text"), [
    ({"weights": [1.0, -1.0]}, vm.DomainError, "weights are .* must be nonnegative finite"),
    ({"weights": [1.0, np.inf]}, vm.DomainError, "must be nonnegative finite"),
    ({"weights": np.ones(3)}, vm.ShapeError, r"weights in .* of y has shape \(3,"),
    ({"weights": 2.0, "missing": vm.real}, TypeError,
     "weights and missing are both given, but must not"),
])  # fmt: skip
def test_weights_are_checked(settings, error, text):
    def log_density():
        y = vm.observed([1.0, 2.0], lambda mu: dist.Normal(mu, 1.0), **settings)
        return vm.Model(mu=vm.real(), y=y).log_density([0.0])

    refuses(error, text, log_density)
