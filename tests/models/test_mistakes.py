"""What users mistake: each mistake has an error that names what they wrote, at the building of the
model if it can be seen there.
"""

import copy

import numpy as np
import pytest
from comparing import equal

import varmat as vm
import varmat.distributions as dist
from varmat.models.diagnostics import problems
from varmat.models.nuts import check_settings

STANDARD = dist.Normal(0, 1)
FEW = {"draws": 10, "tune": 10, "chains": 2, "seed": 1, "progress_bar": False}


def normal(**settings):
    return vm.Model(mu=vm.real(prior=STANDARD), **settings)


def grouped(group):
    return vm.Model(
        a=vm.real(3, prior=STANDARD),
        y=vm.observed(np.zeros(3), lambda a, group: dist.Normal(a[group], 1)),
        data={"group": group},
    )


def taken(group):
    return vm.Model(
        lambda a, group: np.sum(np.take(a, group)), a=vm.real(3), data={"group": group}
    ).log_density(np.zeros(3))


def observing(y, distribution):
    return vm.Model(
        a=vm.positive(prior=dist.Gamma(2, 1)), y=vm.observed(y, distribution)
    ).initial_point(seed=1)


def prior(parameter):
    return vm.Model(p=parameter).initial_point(seed=1)


def school(**settings):
    return vm.Model(
        theta=vm.real(3, dims="school", prior=STANDARD),
        y=vm.observed(np.zeros(3), lambda theta: dist.Normal(theta, 1), dims="school"),
        **settings,
    )


def factor(**settings):
    return vm.Model(
        L=vm.cov_matrix(2),
        y=vm.observed(np.ones((5, 2)), lambda L: dist.MultiNormalCholesky(np.zeros(2), L)),
        **settings,
    ).log_density(np.array([0.1, 0.2, 0.3]))


NO_START = (
    "Model: the log density is not finite at 100 random starts; check the data and the priors, or "
    "give a start"
)
NO_PARAMETERS = "the model has no parameters, but must have some, such as mu=varmat.real()!"
A_DISTRIBUTION = (
    "but must be a distribution such as varmat.distributions.Normal(0, 1), dist.Custom with a "
    "density of your own, or a function that returns one!"
)
WHATEVER = "where the density is 0 whatever the parameters are"
INDEX = "because it is an index of an array of shape (3,)!"

# What is done, the error, and its text or the end of it after three dots.
MISTAKES = {
    "labels": (lambda: school(coords={"scool": list("abc")}), TypeError,
        ("Model: coords has 'scool', which is not a dimension: did you mean 'school'?")),
    "a prior of a factor": (lambda: vm.Model(S=vm.cov_matrix(3, prior=dist.LKJCorrCholesky(2))),
        TypeError, ("Model: the prior of S is LKJCorrCholesky(eta=2), but must be one of a "
                    "CovMatrix: varmat.cholesky_corr declares parameters with this prior!")),
    "a prior of simplexes": (lambda: vm.Model(p=vm.real(2, prior=dist.Dirichlet(np.ones(2)))),
        TypeError, ("Model: the prior of p is Dirichlet(alpha=<ndarray (2,)>), but must be one "
                    "of a Real: varmat.simplex declares parameters with this prior!")),
    "a discrete prior": (lambda: vm.Model(p=vm.positive(prior=dist.Poisson(2.0))), TypeError,
        "Model: the prior of p is Poisson(rate=2.0), but must be continuous!"),
    "a covariance for a factor": (factor, vm.DataError,
        ("Model: the distribution of y has a matrix L with numbers above the diagonal, but "
         "must have a Cholesky factor: declare it by varmat.cholesky_cov!")),
    "laplace without parameters": (lambda: vm.Model(y=vm.observed([1.0], STANDARD)).laplace(),
        TypeError, f"Model.laplace: {NO_PARAMETERS}"),
    "pathfinder without parameters": (lambda: vm.Model().pathfinder(), TypeError,
        f"Model.pathfinder: {NO_PARAMETERS}"),
    "sample without parameters": (lambda: vm.Model().sample(**FEW), TypeError,
        f"Model.sample: {NO_PARAMETERS}"),
    "prior draws without parameters": (
        lambda: vm.Model(y=vm.observed([1.0], STANDARD)).sample_prior_predictive(), TypeError,
        f"Model.sample_prior_predictive: {NO_PARAMETERS}"),
    "a class as prior": (lambda: vm.Model(mu=vm.real(prior=dist.Normal)), TypeError,
        f"Model: the prior of mu is the class Normal, {A_DISTRIBUTION}"),
    "a class as distribution": (lambda: normal(y=vm.observed([1.0], dist.Normal)), TypeError,
        f"Model: the distribution of y is the class Normal, {A_DISTRIBUTION}"),
    "a class that a function returns": (
        lambda: vm.Model(mu=vm.real(prior=lambda: dist.Normal)).log_density([0.0]), TypeError,
        f"Model: the prior of mu is the class Normal, {A_DISTRIBUTION}"),
    "a distribution without observations": (
        lambda: normal(y=lambda mu: dist.Normal(mu, 1)).log_density([0.0]), TypeError,
        ("Model: y is a function that returns a Normal, but must be varmat.observed(y, ...) "
         "with it if y is data, or a parameter such as varmat.real(prior=...)!")),
    "an interval": (lambda: prior(vm.real(3, prior=dist.Uniform(3, 4))), vm.DomainError,
        "...by its prior Uniform(alpha=3, beta=4): declare it by varmat.interval(3, 4))"),
    "probabilities": (lambda: prior(vm.real(9, prior=dist.Beta(1, 2))), vm.DomainError,
        "...by its prior Beta(alpha=1, beta=2): declare it by varmat.interval(0, 1))"),
    "positive numbers": (lambda: prior(vm.real(9, prior=dist.Gamma(1, 2))), vm.DomainError,
        "...by its prior Gamma(alpha=1, beta=2): declare it by varmat.positive())"),
    "impossible times": (lambda: observing([-1.0, 2.0], lambda a: dist.Weibull(a, 1)),
        vm.DomainError, f"{NO_START} (y[0] is -1.0, {WHATEVER})"),
    "infinite data": (lambda: observing([[1.0, np.inf]], lambda a: dist.Normal(a, 1)),
        vm.DomainError, f"{NO_START} (y[0, 1] is inf, {WHATEVER})"),
    "too many successes": (lambda: observing([1, 4], lambda a: dist.Binomial(3, a / (1 + a))),
        vm.DomainError, f"{NO_START} (y[1] is 4, {WHATEVER})"),
    "one impossible number": (lambda: observing(-1.0, lambda a: dist.Exponential(a)),
        vm.DomainError, f"{NO_START} (y is -1.0, {WHATEVER})"),
    "impossible data of a fixed distribution": (
        lambda: vm.Model(y=vm.observed([1.0, -1.0], dist.Weibull(1, 1))), vm.DataError,
        "Model: y[1] is -1.0, where the density is 0, but must be possible!"),
    "counts below zero": (lambda: observing([1, -1], lambda a: dist.Poisson(a)), vm.DataError,
        ("Model: the distribution of y: poisson_lpmf: Random variable[1] is -1.0, but must be "
         "a nonnegative integer!")),
    "parts of observations": (lambda: vm.observed([[1, 2], [3]], STANDARD), vm.ShapeError,
        "observed: y is a list with parts of different shapes, but must be an array!"),
    "codes of missing groups": (lambda: grouped(np.array([0, -1, 2])), vm.DataError,
        f"Model: group[1] is -1, but must not be below 0, {INDEX}"),
    "codes of missing groups in a list": (lambda: grouped([0, -1, 2]).log_density(np.zeros(3)),
        vm.DataError, f"Model: group[1] is -1, but must not be below 0, {INDEX}"),
    "codes that are taken": (lambda: taken(np.array([0, -1, 2])), vm.DataError,
        f"Model: group[1] is -1, but must not be below 0, {INDEX}"),
    "groups counted from 1": (lambda: grouped(np.array([1, 2, 3])).log_density(np.zeros(3)),
        vm.DataError, f"Model: group[2] is 3, but must be below 3, {INDEX}"),
    "floats as groups": (lambda: grouped(np.array([0.0, 1.0, 2.0])).log_density(np.zeros(3)),
        vm.DataError, f"Model: group has dtype float64, but must be integers, {INDEX}"),
    "floats as groups of plain values": (
        lambda: grouped(np.array([0.0, 1.0, 2.0])).sample_prior_predictive(), vm.DataError,
        f"Model: group has dtype float64, but must be integers, {INDEX}"),
    "a truth value as starts": (lambda: normal().sample(**FEW, inits=True), TypeError,
        ("Model.sample: inits is True, but must be a dict of parameters, an unconstrained "
         "vector, a list of these for the chains, draws, or a number!")),
    "a seed that is no integer": (lambda: normal().optimize(seed=1.5), TypeError,
        "Model.initial_point: seed is a float, but must be an integer of at least 0!"),
    "a seed below zero": (lambda: normal().sample_prior_predictive(seed=-1), vm.DomainError,
        "sample_prior_predictive: seed is -1, but must be an integer of at least 0!"),
    # declarations
    "keywords that are misspelt": (lambda: vm.real(priors=STANDARD), TypeError,
        "real() got an unexpected keyword argument 'priors': did you mean prior?"),
    "spelling of centred": (lambda: vm.real(centered=False, prior=STANDARD), TypeError,
        "real() got an unexpected keyword argument 'centered': did you mean centred?"),
    "a bound by name": (lambda: vm.real(lower=0), TypeError,
        ("real() got an unexpected keyword argument 'lower': a bound makes another declaration: "
         "varmat.lower(0), varmat.upper(1) or varmat.interval(0, 1)")),
    "a size by name": (lambda: vm.positive(shape=3), TypeError,
        ("positive() got an unexpected keyword argument 'shape': a size is an argument without a "
         "name, as in varmat.real(3)")),
    "observations of a parameter": (lambda: vm.real(observed=[1.0]), TypeError,
        ("real() got an unexpected keyword argument 'observed': observations are declared by "
         "varmat.observed(y, distribution)")),
    "a start in a declaration": (lambda: vm.discrete([0, 1], initval=0), TypeError,
        ("discrete() got an unexpected keyword argument 'initval': starts belong to the sampler: "
         "Model.sample(inits=...)")),
    "a prior without a name": (lambda: vm.real(STANDARD), vm.ShapeError,
        ("real: a size is Normal(mu=0, sigma=1), but must be a nonnegative integer: the prior has "
         "a name, as in prior=...!")),
    "half of an interval": (lambda: vm.interval(1), TypeError,
        "interval() missing 1 required positional argument: 'upper'"),
    "a dimension without a size": (lambda: vm.Model(a=vm.real(dims="g", prior=STANDARD)),
        vm.ShapeError, ("Model: a has the dimension g and no size, but must have one: give a size, "
                        "or the labels of g, as in coords={'g': [...]}!")),
    "a number as labels": (lambda: school(coords={"school": 3}), TypeError,
        "Model: coords of school is a int, but must be a sequence of labels!"),
    # distributions as numbers, densities as distributions
    "a distribution as parameter": (lambda: vm.Model(mu=STANDARD), TypeError,
        ("Model: mu is a Normal, but must be a parameter such as varmat.real(): "
         "varmat.real(prior=...) takes a Normal!")),
    "a distribution of a distribution": (lambda: dist.Normal(STANDARD, 1), TypeError,
        ("Normal: mu is a Normal, but must be numbers: declare a parameter, such as "
         "mu=varmat.real(prior=...), and give a function that takes mu and returns the Normal!")),
    "a distribution of a declaration": (lambda: dist.Poisson(vm.positive()), TypeError,
        ("Poisson: rate is a Positive, but must be numbers: declare a parameter, such as "
         "rate=varmat.real(prior=...), and give a function that takes rate and returns the "
         "Poisson!")),
    "a density as prior": (lambda: vm.Model(mu=vm.real(prior=vm.normal_lpdf)), TypeError,
        ("Model: the prior of mu is the density normal_lpdf, but must be the distribution: "
         "varmat.distributions.Normal!")),
    "a prior that is a function of its parameter": (
        lambda: vm.Model(mu=vm.real(prior=lambda mu: vm.normal_lpdf(mu, 0, 1))), TypeError,
        ("Model: the prior of mu is a function of mu itself, but must be the distribution that "
         "mu has: a density of your own is one by varmat.distributions.Custom!")),
    "a log density of distributions": (
        lambda: vm.Model(lambda mu: (dist.Normal(mu, 1), 0.0), mu=vm.real()).log_density([0.0]),
        TypeError, ("Model: the log density returned a Normal, but must return numbers: "
                    "Normal(...).lpdf(y) of observations or parameters y!")),
    "one component": (lambda: dist.Mixture([0.5, 0.5], STANDARD), TypeError,
        "Mixture: components must be two or more distributions!"),
    # data
    "data and distribution swapped": (lambda: vm.observed(lambda mu: STANDARD, [1.0]), TypeError,
        ("observed: y is a function, but must be an array of real numbers: the distribution is "
         "the second argument!")),
    "names of categories": (lambda: vm.observed(["yes", "no"], dist.Bernoulli(0.5)), TypeError,
        ("observed: y is an array of <U3, but must be one of real numbers: "
         "varmat.groups(y).codes numbers the names of categories!")),
    "a dict of observations": (lambda: vm.observed({"a": 1.0}, STANDARD), TypeError,
        "observed: y is a dict, but must be an array of real numbers!"),
    "missing counts": (lambda: vm.Model(y=vm.observed(
        [1, None], lambda: dist.Poisson(2.0), missing=vm.real)).log_density([0.0]), TypeError,
        ("Model: the distribution of y is Poisson(rate=2.0), and some of the observations are "
         "missing, but must not be: discrete ones have no derivative. Leave them out, or sum over "
         "them with varmat.discrete!")),
    "predictions for unknown data": (lambda: normal(y=vm.observed([1.0], STANDARD)).predict(
        {"mu": np.zeros((1, 1))}, x=[1.0]), TypeError,
        "Model.predict: the model has no data x, but must have: y!"),
    "other data in a dict": (lambda: normal().with_data({"y": [1.0]}), TypeError,
        "with_data: data are arguments by name, as in with_data(y=...)!"),
    # the model
    "parameters as first argument": (lambda: vm.Model({"mu": vm.real()}), TypeError,
        ("Model: the log density is a dict, but must be a function: parameters are arguments by "
         "name, as in Model(mu=varmat.real())!")),
    "a parameter without a name": (lambda: vm.Model(vm.real()), TypeError,
        ("Model: the log density is a Real, but must be a function: parameters are arguments by "
         "name, as in Model(mu=varmat.real())!")),
    "a model as context": (lambda: normal().__enter__(), TypeError,
        ("Model: a model is not a context manager, but must be made of arguments, as in "
         "Model(mu=varmat.real(), y=varmat.observed(...))!")),
    "values for a vector": (lambda: normal().log_density({"mu": 1.0}), TypeError,
        ("log_density: q is a dict, but must be the unconstrained vector that "
         "param_unconstrain(values) returns!")),
    # names of other libraries
    "spelling of a method": (lambda: normal().optimise(), AttributeError,
        "Model: there is no optimise: did you mean optimize?"),
    "half distributions": (lambda: dist.HalfNormal(1), AttributeError,
        ("module 'varmat.distributions' has no attribute 'HalfNormal'; did you mean "
         "varmat.positive(prior=Normal(0, sigma))?")),
    "multivariate names": (lambda: dist.MvNormal, AttributeError,
        ("module 'varmat.distributions' has no attribute 'MvNormal'; did you mean MultiNormal?")),
    "methods of SciPy's distributions": (lambda: STANDARD.logpdf(1.0), AttributeError,
        "Normal has no logpdf: did you mean lpdf?"),
    "draws of a distribution": (lambda: STANDARD.sample(3), AttributeError,
        "Normal has no sample: did you mean rng?"),
    "sampling without a model": (lambda: vm.sample(), AttributeError,
        "module 'varmat' has no attribute 'sample'. Did you mean Model(...).sample?"),
    "named values of PyMC": (lambda: vm.Deterministic, AttributeError,
        ("module 'varmat' has no attribute 'Deterministic'. Did you mean a function as an argument "
         "of Model?")),
    "a parameter named rng": (lambda: vm.Model(rng=vm.real(prior=STANDARD),
            y=vm.observed([1.0], lambda rng: dist.Normal(rng, 1))), TypeError,
        ("Model: the distribution of y takes 'rng', which is the name of an argument that the "
        "model passes to functions: rename the parameter or the data rng!")),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    make, error, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        make()
    said = str(caught.value)
    assert said.endswith(text[3:]) if text.startswith("...") else said == text


SETTINGS = {
    "num_warmup": "did you mean tune?", "random_seed": "did you mean seed?",
    "num_samples": "did you mean draws?", "adapt_delta": "did you mean target_accept?",
    "max_treedepth": "did you mean max_depth?", "n_jobs": "did you mean cores?",
    "njobs": "did you mean cores?",
    "progressbar": "did you mean progress_bar?", "drows": "did you mean draws?",
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_other_packages(name):
    pytest.importorskip("nutpie._lib")
    with pytest.raises(TypeError) as caught:
        check_settings(["draws", "tune", "cores"], {name: 1})
    assert str(caught.value) == f"Model.sample: there is no setting {name}: {SETTINGS[name]}"


@pytest.mark.parametrize(
    ("theirs", "ours"), {"fit": "sample or optimize", "logp": "log_density"}.items()
)
def test_methods_of_other_packages(theirs, ours):
    model = normal()
    with pytest.raises(AttributeError) as caught:
        getattr(model, theirs)
    assert str(caught.value) == f"Model: there is no {theirs}: did you mean {ours}?"
    assert all(hasattr(model, each) for each in ours.split(" or "))


def test_attributes_that_are_missing():
    """Copies and pickles ask for some; errors of properties are not hidden."""

    class Broken(vm.Model):
        @property
        def broken(self):
            return self.nothing

    with pytest.raises(AttributeError, match="no attribute 'elbo'"):
        _ = normal().elbo
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = Broken(mu=vm.real(prior=STANDARD)).broken
    assert copy.copy(normal()).param_names() == ["mu"]


def test_quantities_are_not_groups_of_draws():
    pytest.importorskip("nutpie")
    draws = normal().sample(**FEW)
    text = "the draws have no group mu: those of the quantity mu are draws.posterior['mu']"
    for look, error in ((lambda: draws.mu, AttributeError), (lambda: draws["mu"], KeyError)):
        with pytest.raises(error) as caught:
            look()
        assert str(caught.value) == text
    assert not hasattr(draws, "mu")


def test_the_non_centred_form_is_named_only_where_there_is_one():
    def hierarchy(**settings):
        return vm.Model(
            tau=vm.positive(prior=dist.Exponential(1)),
            theta=vm.real(3, prior=lambda tau: dist.Normal(0, tau), **settings),
            beta=vm.real(prior=lambda scale: dist.Normal(0, scale)),
            data={"scale": 2.0},
        )

    assert hierarchy().stated.centred == ["theta"]
    assert hierarchy(centred=False).stated.centred == []
    assert normal().stated.centred == []
    stats = {"diverging": np.ones((2, 5))}
    for centred, form in (
        (["theta"], "the non-centred form, centred=False, of theta"),
        ([], "another form of the model"),
    ):
        said = problems([], {}, 2, 5, stats, np.ones(0, bool), centred)["divergences"]
        assert said.endswith(f"try target_accept=0.95, then {form}")


def test_what_is_no_mistake():
    school(coords={"school": list("abc"), "schools": [1], "city": [2]})  # of predictions, perhaps
    equal(normal().initial_point(seed=2**70), normal().initial_point(seed=2**70))
    lags = vm.Model(lambda a: a[-1] + np.sum(a[np.array([-1, 0])]), a=vm.real(3))
    assert lags.log_density([1.0, 2.0, 3.0]) == 7.0
    differences = np.array([-1, 0, 2])  # data below zero that are no index
    model = vm.Model(
        a=vm.real(prior=STANDARD), y=vm.observed(differences, lambda a: dist.Normal(a, 1))
    )
    assert np.isfinite(model.log_density([0.0]))


def test_seeds_of_any_size():
    pytest.importorskip("nutpie")
    found = [normal().sample(**{**FEW, "seed": seed}) for seed in (2**70, 2**70, 2**70 + 1)]
    first, second, other = (x.posterior["mu"].values for x in found)
    equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("draws", [20, 1000])
@pytest.mark.parametrize("parameter", [
    vm.positive(3, prior=dist.Gamma(0.001, 1)),
    vm.positive(prior=dist.Lognormal(-800, 100)),
    vm.interval(0, 1, prior=dist.Beta(0.001, 0.001)),
    vm.ordered(3, prior=dist.Beta(0.001, 0.001)),
    vm.positive_ordered(3, prior=dist.Gamma(0.001, 1)),
    vm.simplex(3, prior=dist.Dirichlet(np.full(3, 0.001))),
    vm.lower(1.0, prior=dist.Pareto(1, 1e6)),
])  # fmt: skip
def test_prior_draws_that_are_rounded_to_an_end(parameter, draws):
    model = vm.Model(x=parameter)
    found = model.sample_prior_predictive(seed=1, draws=draws)["prior"]["x"]
    assert found.shape == (1, draws, *parameter.shape)
    assert np.isfinite(found).all()
