"""Every distribution of the table, and those made of others."""

import pickle

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from scipy import stats

import varmat as vm
import varmat.distributions as dist
from varmat.densities.univariate import Univariate
from varmat.distributions.distribution import Distribution
from varmat.distributions.observations import FORMULAS

CLASSES = {name: getattr(dist, name) for name in dir(dist)}
OF_ROWS = {name: each for name, each in CLASSES.items() if hasattr(each, "row")}
UNIVARIATE = {name: each for name, each in OF_ROWS.items() if isinstance(each.row, Univariate)}
SPD = np.array([[2.0, 0.5], [0.5, 1.0]])
X = np.array([[0.5, -1.0], [1.0, 2.0], [0.0, 0.3]])
SIMPLEX = np.array([0.3, 0.7])
# Parameters and observations of the others, by the name of the class.
OTHERS = {
    "BernoulliLogitGLM": ((X, 0.2, [0.5, -0.3]), [0, 1, 1]),
    "BinomialLogitGLM": (([3, 4, 5], X, 0.2, [0.5, -0.3]), [1, 2, 3]),
    "CategoricalLogitGLM": ((X, [0.1, 0.2], [[0.5, -0.3], [0.1, 0.2]]), [1, 2, 1]),
    "NegBinomial2LogGLM": ((X, 0.2, [0.5, -0.3], 2.0), [0, 3, 1]),
    "NormalIdGLM": ((X, 0.2, [0.5, -0.3], 2.0), [0.5, 3.0, 1.0]),
    "OrderedLogisticGLM": ((X, [0.5, -0.3], [-1.0, 1.0]), [1, 3, 2]),
    "PoissonLogGLM": ((X, 0.2, [0.5, -0.3]), [0, 3, 1]),
    "Categorical": ((SIMPLEX,), [1, 2, 2]),
    "CategoricalLogit": ((SIMPLEX,), [1, 2, 2]),
    "OrderedLogistic": (([0.1, 0.2, 0.3], [-1.0, 1.0]), [1, 3, 2]),
    "OrderedProbit": (([0.1, 0.2, 0.3], [-1.0, 1.0]), [1, 3, 2]),
    "PoissonBinomial": (([0.2, 0.5, 0.9],), [1, 3, 2]),
    "Dirichlet": ((np.array([1.5, 2.0]),), np.array([SIMPLEX, [0.5, 0.5]])),
    "DirichletMultinomial": ((np.array([1.5, 2.0]),), [[3, 1], [2, 2]]),
    "Multinomial": ((SIMPLEX,), [[3, 1], [2, 2]]),
    "MultinomialLogit": ((SIMPLEX,), [[3, 1], [2, 2]]),
    "MultiNormal": ((np.zeros(2), SPD), X),
    "MultiNormalPrec": ((np.zeros(2), SPD), X),
    "MultiNormalCholesky": ((np.zeros(2), np.linalg.cholesky(SPD)), X),
    "MultiStudentT": ((3.0, np.zeros(2), SPD), X),
    "MultiStudentTCholesky": ((3.0, np.zeros(2), np.linalg.cholesky(SPD)), X),
    "MultiGP": ((SPD, np.array([1.0, 2.0, 0.5])), X),
    "MultiGPCholesky": ((np.linalg.cholesky(SPD), np.array([1.0, 2.0, 0.5])), X),
    "MatrixNormalPrec": ((np.zeros((3, 2)), np.eye(3), SPD), X),
    "LKJCorr": ((2.0,), np.array([[1.0, 0.3], [0.3, 1.0]])),
    "LKJCorrCholesky": ((2.0,), np.linalg.cholesky([[1.0, 0.3], [0.3, 1.0]])),
    "LKJCov": ((np.zeros(2), np.ones(2), 2.0), SPD),
    "Wishart": ((3.0, SPD), np.eye(2)),
    "InvWishart": ((3.0, SPD), np.eye(2)),
    "WishartCholesky": ((3.0, np.linalg.cholesky(SPD)), np.eye(2)),
    "InvWishartCholesky": ((3.0, np.linalg.cholesky(SPD)), np.eye(2)),
    "GaussianDLMObs": ((np.eye(2), np.eye(2), np.eye(2), SPD, np.zeros(2), np.eye(2)), X.T),
    "Wiener": ((1.5, 0.1, 0.5, 0.3), 0.7),
}  # fmt: skip
# Families with the cumulative functions of others.
OTHER_PARAMETERS = {
    "BernoulliLogit": lambda alpha: dist.Bernoulli(vm.inv_logit(alpha)),
    "BernoulliLogitGLM": lambda X, alpha, beta: dist.BernoulliLogit(alpha + X @ beta),
    "BinomialLogit": lambda N, alpha: dist.Binomial(N, vm.inv_logit(alpha)),
    "BinomialLogitGLM": lambda N, X, alpha, beta: dist.BinomialLogit(N, alpha + X @ beta),
    "NegBinomial2Log": lambda eta, phi: dist.NegBinomial2(np.exp(eta), phi),
    "NegBinomial2LogGLM": lambda X, alpha, beta, phi: dist.NegBinomial2Log(alpha + X @ beta, phi),
    "NormalIdGLM": lambda X, alpha, beta, sigma: dist.Normal(alpha + X @ beta, sigma),
    "PoissonLog": lambda alpha: dist.Poisson(np.exp(alpha)),
    "PoissonLogGLM": lambda X, alpha, beta: dist.PoissonLog(alpha + X @ beta),
}  # fmt: skip
WITHOUT_DRAWS = {"LKJCov", "NormalSufficient", "Wiener"}


def at_its_point(name):
    """A distribution, and observations, from its own reference points."""
    if name in OTHERS:
        parameters, y = OTHERS[name]
    else:
        y, *parameters = OF_ROWS[name].row.points[0]
    return OF_ROWS[name](*parameters), y


def test_there_is_a_class_for_every_density():
    rows = {f"varmat.{each.row.name}" for each in OF_ROWS.values()}
    names = {f"varmat.{n}" for n in dir(vm) if n.endswith(("_lpdf", "_lpmf"))}
    assert {name for name in names - rows if "laplace_marginal" not in name} == set()
    assert {*OTHERS} == {*OF_ROWS} - {*UNIVARIATE}


@pytest.mark.parametrize("name", OF_ROWS)
def test_the_functions_are_those_of_the_row(name):
    made, y = at_its_point(name)
    values = made.parameters.values()
    assert made.lpdf(y) == made.row(y, *values)
    if name not in WITHOUT_DRAWS - {"NormalSufficient"}:
        close(np.sum(made.lpmf.pointwise(y)), made.row(y, *values), 1e-12)
    for each in ("cdf", "lcdf", "lccdf"):
        function = getattr(made.row, each, None)
        if name in OTHER_PARAMETERS:
            other = OTHER_PARAMETERS[name](*values)
            close(getattr(made, each)(y), getattr(other, each)(y), 1e-14)
        elif function is None:
            refuses(TypeError, f"^{name} has no {each}!$", getattr, made, each)
        else:
            assert getattr(made, each)(y) == function(y, *values)
    if name in WITHOUT_DRAWS:
        refuses(TypeError, f"^{name} has no random numbers", lambda: made.rng())
    else:
        drawn = made.like(y, 1)
        assert np.shape(drawn) == np.shape(y)
        assert np.isfinite(made.lpdf(drawn))
    assert repr(pickle.loads(pickle.dumps(made))) == repr(made)


# Other parameters and observations of those with a formula: stacks, impossible observations.
STACKS = {
    "Categorical": [(([[0.3, 0.7], [1.0, 0.0]],), [2, 2]), ((SIMPLEX,), [1, 3])],
    "CategoricalLogit": [((X,), [1, 3, 2]), ((X[0],), [[1, 2], [0, 1]])],
    "OrderedLogistic": [((0.3, [[-1.0, 1.0], [0.0, 2.0]]), [2, 1]), ((0.3, [1.0]), [1, 2, 4])],
    "OrderedProbit": [((0.3, [[-1.0, 1.0], [0.0, 2.0]]), [2, 1]), ((0.3, [1.0]), [1, 2, 4])],
    "Dirichlet": [(([[1.5, 2.0], [3.0, 1.0]],), np.array([SIMPLEX, [0.5, 0.5]]))],
    "Multinomial": [(([[0.3, 0.7], [1.0, 0.0]],), [[3, 1], [2, 0]])],
    "MultiNormal": [((X, SPD), np.ones(2)), (([0.0, 1.0], [SPD, 2.0 * SPD]), X[:2])],
    "MultiNormalCholesky": [((X, np.linalg.cholesky(SPD)), X[:1])],
    "MultiNormalPrec": [(([0.1, 0.2], SPD), np.array([X, X + 1.0]))],
}


@pytest.mark.parametrize("name", STACKS)
def test_formulas_of_each_observation_are_the_density_of_one(name):
    assert OF_ROWS[name].row.name in FORMULAS
    for given, y in [OTHERS[name], *STACKS[name]]:
        made = CLASSES[name](*given)
        expected = made._one_by_one(y)
        close(made.lpdf.pointwise(y), expected, 1e-12)
        if not np.isfinite(expected).all():
            continue  # impossible data are refused where parameters are variables
        *others, last = map(np.array, given)

        def total(last, each, others=others, y=y):
            return np.sum(getattr(CLASSES[name](*others, last), each)(y))

        formula, loop = (
            vm.gradient(lambda last, each=each: total(last, each), last.astype(float))
            for each in ("_each", "_one_by_one")
        )
        close(formula, loop, 1e-9, 1e-12)


LOCATION_SCALE = ["Cauchy", "DoubleExponential", "GeneralizedExtremeValue", "Gumbel", "Logistic",
                  "Normal", "SkewDoubleExponential", "SkewNormal", "StudentT"]  # fmt: skip


@pytest.mark.parametrize("name", LOCATION_SCALE)
def test_location_scale_families_have_a_standard_form(name):
    _, *parameters = OF_ROWS[name].row.points[-1]
    made = OF_ROWS[name](*parameters)
    location, scale, _, log_density = made.standard()
    z = np.array([-1.0, 0.4])
    expected = made.lpdf(location + scale * z) + z.size * np.log(scale)
    close(log_density(z), expected, 1e-10)


def test_no_other_family_has_one():
    for name in UNIVARIATE.keys() - {*LOCATION_SCALE}:
        made, _ = at_its_point(name)
        refuses(TypeError, "has no location and scale", made.standard)


# --- made of others ---


@pytest.mark.parametrize("made", [
    dist.Normal(1.0, 2.0).truncated(0.0), dist.Normal(1.0, 2.0).truncated(None, -3.0),
    dist.Gamma(2.0, 1.0).truncated(0.5, 4.0), dist.Normal(0.0, 1.0).truncated(9.0),
    dist.Mixture(0.2, [dist.Normal(0.0, 1.0), dist.StudentT(4.0, 3.0, 2.0)]),
], ids=repr)  # fmt: skip
def test_draws_have_the_distribution(made):
    """The densities are compared with SciPy's in `random_distributions`."""
    draws = made.rng(1, size=2000)
    assert stats.kstest(made.cdf.pointwise(draws), "uniform").pvalue > 1e-3


def test_draws_of_truncated_counts():
    made = dist.Poisson(3.0).truncated(1, 4)
    counts = np.bincount(made.rng(1, size=4000), minlength=7)
    masses = np.exp(made.lpmf.pointwise(np.arange(7)))
    assert counts[0] == 0
    assert stats.chisquare(counts[1:5], 4000 * masses[1:5]).pvalue > 1e-3
    assert dist.Poisson(3.0).truncated(upper=2).rng(1, size=100).max() == 2


def test_a_truncated_distribution_with_a_variable_end():
    y = np.array([2.0, 3.0])
    ours = vm.value_and_grad(lambda m, a: dist.Normal(m, 1.0).truncated(a).lpdf(y), (0, 1))
    lpdf = vm.value_and_grad(lambda m, a: vm.truncated(vm.normal_lpdf, lower=a)(y, m, 1.0), (0, 1))
    close(ours(0.5, 1.0)[1], lpdf(0.5, 1.0)[1], 1e-12)


def test_censored_observations():
    y, end = np.array([0.5, 2.0, 3.0, 1.0]), np.array([1.0, 2.0, 5.0, 1.0])

    def f(sigma):
        return dist.Weibull(1.5, sigma).censored(upper=end).lpdf(y)

    def expected(sigma):
        return vm.weibull_lpdf(y[[0, 2]], 1.5, sigma) + vm.weibull_lccdf(y[[1, 3]], 1.5, sigma)

    close(vm.value_and_grad(f)(2.0), vm.value_and_grad(expected)(2.0), 1e-7)
    assert (dist.Weibull(1.5, 2.0).censored(upper=end).like(y, 1) <= end).all()
    several = vm.weibull_lpdf(2.0, 1.5, 2.0) + vm.weibull_lccdf(end[[0, 1, 3]], 1.5, 2.0)
    close(dist.Weibull(1.5, 2.0).censored(upper=end).lpdf(2.0), several, 1e-6)
    # A count that reached the end may be that number itself.
    close(dist.Poisson(2.0).censored(upper=3).lpmf(3), vm.poisson_lccdf(2, 2.0), 1e-6)


def test_mixtures():
    y = np.array([-1.0, 0.3, 4.0])
    parts = [dist.Normal(0.0, 1.0), dist.StudentT(4.0, 3.0, 2.0), dist.Cauchy(0.0, 1.0)]
    logs = [np.log(w) + d.lpdf.pointwise(y) for w, d in zip([0.2, 0.3, 0.5], parts, strict=True)]
    for weights in ([0.2, 0.3, 0.5], np.tile([0.2, 0.3, 0.5], (3, 1))):
        close(dist.Mixture(weights, parts).lpdf.pointwise(y), np.logaddexp.reduce(logs), 1e-12)
    two = dist.Mixture(0.2, parts[:2])
    close(two.lpdf(y), dist.Mixture([0.2, 0.8], parts[:2]).lpdf(y), 1e-12)
    vectors = [dist.MultiNormal(np.full(2, m), 0.01 * np.eye(2)) for m in (0.0, 9.0)]
    drawn = dist.Mixture([0.25, 0.75], vectors).rng(1, size=400)
    close(np.mean(drawn.mean(axis=1) > 5), 0.75, 0.0, 0.08)
    assert (np.ptp(drawn, axis=1) < 2).all()  # each vector is from one component
    assert dist.Mixture([0.5, 0.5], vectors).like(np.zeros((3, 2)), 1).shape == (3, 2)
    counts = [dist.Multinomial(SIMPLEX), dist.Multinomial(SIMPLEX[::-1])]
    drawn = dist.Mixture([0.5, 0.5], counts).like([[3, 1], [6, 4]], 1)
    equal(drawn.sum(axis=-1), [4, 10])


def test_an_end_may_be_infinite_for_some():
    drawn = dist.Normal(0.0, 1.0).truncated(lower=np.array([-np.inf, 9.0])).rng(1, size=(20, 2))
    assert (drawn[:, 1] >= 9.0).all()
    assert (drawn[:, 0] < 9.0).all()
    drawn = dist.Normal(0.0, 1.0).truncated(-np.inf, np.array([np.inf, -9.0])).rng(1, size=(20, 2))
    assert (drawn[:, 1] <= -9.0).all()


def test_hidden_markov_models():
    emission = dist.Normal(np.array([0.0, 9.0]), 1.0)
    made = dist.HiddenMarkov([0.9, 0.1], [[0.9, 0.1], [0.3, 0.7]], emission)
    y = made.rng(1, size=4000)
    state = made.latent(y, 1)
    assert np.mean(state == (y > 4.5)) > 0.999
    close(np.mean(state), 0.25, 0.0, 0.04)  # the stationary share
    logs = np.column_stack([vm.normal_lpdf.pointwise(y, m, 1.0) for m in (0.0, 9.0)]).T
    assert made.lpdf(y) == vm.hmm_marginal(logs, made.transition, made.initial)
    message = r"^HiddenMarkov: y has shape \(2, 5\), but must have one"  # two sequences are not one
    refuses(vm.ShapeError, message, made.lpdf, np.zeros((2, 5)))


def test_mixtures_in_the_states_of_a_chain():
    parts = [dist.Normal(np.array([0.0, 5.0]), 1.0), dist.Normal(1.0, 2.0)]
    weights, y = np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0.3, 4.0, -1.0])
    made = dist.HiddenMarkov([0.9, 0.1], np.full((2, 2), 0.5), dist.Mixture(weights, parts))
    logs = [
        np.logaddexp(
            np.log(w[0]) + vm.normal_lpdf.pointwise(y, mu, 1.0),
            np.log(w[1]) + vm.normal_lpdf.pointwise(y, 1.0, 2.0),
        )
        for w, mu in zip(weights, (0.0, 5.0), strict=True)
    ]
    expected = vm.hmm_marginal(np.stack(logs), made.transition, np.array(made.initial))
    close(made.lpdf(y), expected, 1e-6)


@pytest.mark.parametrize("name", OTHER_PARAMETERS)
def test_families_without_cumulative_functions_of_their_own_are_truncated(name):
    made, y = at_its_point(name)
    other = OTHER_PARAMETERS[name](*made.parameters.values())
    for change in (lambda d: d.truncated(lower=1), lambda d: d.censored(upper=1)):
        close(change(made).lpdf(y), change(other).lpdf(y), 1e-13, 1e-14)
        close(change(made).lpdf.pointwise(y), change(other).lpdf.pointwise(y), 1e-13, 1e-14)
    drawn = made.truncated(lower=1).like(y, 1)
    assert np.shape(drawn) == np.shape(y)
    assert np.min(drawn) >= 1


PAIRS = np.array([[0.5, 0.5], [1.0, 2.5], [-np.inf, 0.7], [0.0, 0.7], [3.0, np.inf]])


def test_pairs_are_values_intervals_and_tails():
    def f(shape, scale):
        return dist.Weibull(shape, scale).interval_censored().lpdf(PAIRS)

    def expected(shape, scale):
        logs = [vm.weibull_lcdf(x, shape, scale) for x in (1.0, 2.5)]
        below = vm.weibull_lcdf([2.5, 0.7, 0.7], shape, scale)
        tail = vm.weibull_lccdf(3.0, shape, scale)
        return vm.weibull_lpdf(0.5, shape, scale) + below + vm.log1m_exp(logs[0] - logs[1]) + tail

    found = vm.value_and_grad(f, (0, 1))(1.5, 2.0)
    close(found, vm.value_and_grad(expected, (0, 1))(1.5, 2.0), 1e-12)
    recorded = vm.recorded(vm.grad(f, (0, 1)), runner="numpy")
    recorded(1.1, 1.9)
    close(recorded(1.5, 2.0), found[1], 1e-12)
    drawn = dist.Weibull(np.full(5, 1.5), 2.0).interval_censored().like(PAIRS, 1)
    assert drawn.shape == PAIRS.shape
    equal(drawn[:, 0], drawn[:, 1])
    counts = dist.Poisson(2.0).interval_censored()  # both ends belong to the interval
    between = np.log(stats.poisson.cdf(4, 2.0) - stats.poisson.cdf(1, 2.0))
    masses = [vm.poisson_lpmf(3, 2.0), between, vm.poisson_lccdf(2, 2.0)]
    close(counts.lpmf.pointwise([[3, 3], [2, 4], [3, np.inf]]), masses, 1e-12)


def test_mixtures_of_probabilities_and_densities():
    """Where one component has a probability, the densities of the others do not count."""
    hurdle = dist.Mixture(0.2, [dist.DiscreteRange(0, 0), dist.Exponential(1.5)])
    close(hurdle.lpdf.pointwise([0.0, 2.0]), np.log([0.2, 0.8 * 1.5 * np.exp(-3.0)]), 1e-12)
    close(hurdle.cdf.pointwise([0.0, 2.0]), [0.2, 0.2 - 0.8 * np.expm1(-3.0)], 1e-12)
    ends = dist.Mixture(0.3, [dist.Normal(0, 1), dist.Normal(1, 1).censored(upper=2.0)])
    close(ends.lpdf(2.0), np.log(0.7 * stats.norm.sf(1.0)), 1e-12)
    close(ends.lpdf(2.5), np.log(0.3 * stats.norm.pdf(2.5)), 1e-12)
    assert np.mean(hurdle.rng(1, size=2000) == 0.0) == pytest.approx(0.2, abs=0.03)
    close(hurdle.truncated(lower=0.0).lpdf(0.0), np.log(0.2), 1e-12)
    # The end of an interval that is narrow has a probability that an integral does not see.
    narrow = ends.truncated(2.0, 2.0 + 1e-9)
    close(narrow.lpdf(2.0), 0.0, 0.0, 1e-8)


def test_a_narrow_interval_of_a_mixture_keeps_its_digits():
    made = dist.Mixture(0.3, [dist.Normal(0, 1), dist.Normal(np.array([1.0, 2.0]), 1.0)])
    close(made.truncated(0.5, 0.5 + 2.0**-30).lpdf.pointwise(0.5), [30.0 * np.log(2.0)] * 2, 1e-9)


def test_custom_distributions_compose():
    custom = dist.Custom(
        lambda y, rate: np.log(rate) - rate * y, 0.5,
        cdf=lambda y, rate: -np.expm1(-rate * y), lccdf=lambda y, rate: -rate * y,
        rng=lambda rate, rng, size: rng.exponential(1.0 / rate, size),
    )  # fmt: skip
    for change in (
        lambda d: d.truncated(0.5, 4.0).censored(upper=3.0),
        lambda d: d.censored(upper=3.0).truncated(lower=0.5),
        lambda d: dist.Mixture(0.3, [d.truncated(lower=0.5), dist.Exponential(2.0)]).truncated(0.2),
        lambda d: dist.Mixture(0.3, [d, d.truncated(0.5)]).truncated(0.2, 6.0).censored(0.7),
    ):
        ours, expected = change(custom), change(dist.Exponential(0.5))
        y = expected.rng(1, size=50)
        close(ours.lpdf.pointwise(y), expected.lpdf.pointwise(y), 1e-12)
        close(ours.lcdf.pointwise(y), expected.lcdf.pointwise(y), 1e-12)
        drawn = ours.rng(1, size=2000)
        assert stats.ks_2samp(drawn, expected.rng(2, size=2000)).pvalue > 1e-3


# --- mistakes ---


@pytest.mark.parametrize(("make", "message"), [
    (lambda: dist.Normal(0),
     "missing a required argument: 'sigma'; the signature is Normal(mu, sigma)"),
    (lambda: dist.Mixture([0.5, 0.5], [dist.Normal(0, 1)]),
     "components must be two or more distributions!"),
    (lambda: dist.Mixture([0.2] * 3, [dist.Normal(0, 1)] * 2), "weights has shape (3,)"),
    (lambda: dist.Dirichlet([1.0, 1.0]).truncated(0.1),
     ("density is <varmat density dirichlet_lpdf(theta, alpha, *, propto=False)>, but must be "
     "a density of one variable")),
    (lambda: dist.HiddenMarkov([1.0], [[1.0]], dist.Normal(0, 1)).truncated(0.1),
     "HiddenMarkov has no lcdf"),
    (lambda: dist.Truncated(3.0, 0.0, 1.0), "base is a float, but must be a distribution!"),
    (lambda: dist.Normal(0, 1).interval_censored().cdf, "IntervalCensored has no cdf!"),
    (lambda: dist.Hypergeometric(3, 4, 5).interval_censored(),
     ("truncated: density is <varmat density hypergeometric_lpmf(n, N, a, b, *, propto=False)>, "
      "but must be a density of one variable that has cumulative functions!")),
    (lambda: dist.Gamma(1.0, 1.0).standard(), "Gamma has no location and scale"),
    (lambda: dist.HiddenMarkov([1.0], [[1.0]], 3.0).rng(), "emission is a float"),
])  # fmt: skip
def test_mistakes(make, message):
    refuses_as(TypeError, message, make)


@pytest.mark.parametrize(("y", "error", "message"), [
    ([[1.0, 2.0], [3.0, 2.0]], DOMAIN,
     "IntervalCensored: y[1] is [3.0, 2.0], but left must not be above right!"),
    ([np.nan, 2.0], DOMAIN, "IntervalCensored: y is [nan, 2.0], but left must not be above right!"),
    (np.zeros((4, 3)), SHAPE, "IntervalCensored: y has shape (4, 3), but must have pa"),
])  # fmt: skip
def test_pairs_are_in_order(y, error, message):
    refuses_as(error, message, lambda: dist.Normal(0, 1).interval_censored().lpdf(y))


@pytest.mark.parametrize(("weights", "message"), [
    ([0.5, 0.2], "Mixture: sum(weights) is 0.7, but must be 1 to within 1e-08!"),
    ([1.5, -0.5], "Mixture: weights[1] is -0.5, but must be nonnegative!"),
    (1.5, "Mixture: weights is 1.5, but must be in the interval [0, 1]!"),
])  # fmt: skip
def test_weights_are_probabilities(weights, message):
    refuses_as(vm.DomainError, message, lambda: dist.Mixture(weights, [dist.Normal(0, 1)] * 2))


def test_a_misspelled_name_gets_a_hint():
    refuses(AttributeError, "did you mean StudentT", lambda: dist.StudentsT)
    assert issubclass(dist.Normal, Distribution)
    assert vm.distributions is dist


@pytest.mark.parametrize("made", [
    dist.Normal(0, 1).truncated(np.zeros(3)),
    dist.Normal(0, 1).censored(upper=np.zeros(3)),
    dist.Mixture(np.full((3, 2), 0.5), [dist.Normal(0, 1)] * 2),
], ids=lambda made: type(made).__name__)  # fmt: skip
@pytest.mark.parametrize("size", [(), (1,), 2])
def test_one_draw_is_not_that_of_several_arguments(made, size):
    with pytest.raises(vm.ShapeError, match=f"^{type(made).__name__}: size is .* arguments, .3,"):
        made.rng(1, size=size)


@pytest.mark.parametrize("last", [-800.0, -np.inf, -3.0])
def test_a_weight_that_is_zero_leaves_derivatives(last):
    """They are those of the mixture without the component, eagerly and recorded."""
    y = np.array([0.3, 1.2])

    def f(x):
        weights = np.concatenate([vm.softmax(x[:2]), np.zeros(1)])
        weights = vm.softmax(np.concatenate([x[:2], [last]])) if last > -np.inf else weights
        components = [dist.Normal(x[2], 1.0), dist.Normal(1.0, x[3]), dist.Normal(x[2] + x[3], 2.0)]
        return dist.Mixture(weights, components).lpdf(y)

    def without(x):
        components = [dist.Normal(x[2], 1.0), dist.Normal(1.0, x[3])]
        return dist.Mixture(vm.softmax(x[:2]), components).lpdf(y)

    x, start = np.array([0.0, 0.5, 0.1, 1.3]), np.array([0.2, 0.1, 0.3, 1.1])
    found, curved = vm.value_and_grad(f)(x), vm.hessian(f)(x)
    assert np.all(np.isfinite(curved))
    if last < -3.0:
        close(found, vm.value_and_grad(without)(x), 1e-13)
        close(curved, vm.hessian(without)(x), 1e-12)
    for functional, expected in ((vm.grad, found[1]), (vm.hessian, curved)):
        recorded = vm.recorded(functional(f), runner="numpy")
        recorded(start)
        close(recorded(x), expected, 1e-12, 1e-15)


def test_the_derivative_in_a_weight_that_is_zero():
    """It is the ratio of the component's density to that of the mixture."""

    def f(weights):
        return dist.Mixture(weights, [dist.Normal(k, 1.0) for k in range(3)]).lpdf(0.3)

    weights = np.array([0.4, 0.6, 0.0])
    ratios = np.exp([vm.normal_lpdf(0.3, k, 1.0) - f(weights) for k in range(3)])
    close(vm.gradient(f, weights), ratios, 1e-13)
    close(vm.hessian(f, weights), -np.outer(ratios, ratios), 1e-12)
