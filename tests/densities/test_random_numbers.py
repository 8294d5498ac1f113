"""Random numbers, each family against its own distribution.

All seeds are fixed. If the seeds were drawn at random, a correct function would fail one of these
comparisons with a probability of at most 1e-6 (`RATE`, or five standard errors).
"""

import copy
import inspect
import math
import pickle
from functools import partial

import numpy as np
import pytest
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from densities.references import every
from scipy import stats

import varmat as vm
from varmat.densities.random_numbers.row import RandomNumbers, log_gamma
from varmat.densities.random_numbers.vectors import chosen
from varmat.densities.univariate import Univariate

DRAWS, MANY, RATE, ERRORS = 20_000, 100_000, 1e-6, 5.0
ALL = [each for name in vm.__all__ if isinstance(each := getattr(vm, name), RandomNumbers)]
ROWS = [row for row in ALL if isinstance(row.family, Univariate)]
CONTINUOUS = [row for row in ROWS if not row.integer]
DISCRETE = [row for row in ROWS if row.integer]
S = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.7]])
L = np.linalg.cholesky(S)
MU = np.array([0.3, -1.0, 5.0])

# Families whose draws are transformed beta, gamma or normal numbers. The other families are
# compared with their own cumulative function alone.
SCIPY = {
    "beta": lambda a, b: stats.beta(a, b),
    "beta_proportion": lambda mu, kappa: stats.beta(mu * kappa, (1 - mu) * kappa),
    "chi_square": stats.chi2,
    "exp_mod_normal": lambda mu, sigma, rate: stats.exponnorm(1 / (sigma * rate), mu, sigma),
    "gamma": lambda a, b: stats.gamma(a, scale=1 / b),
    "inv_chi_square": lambda nu: stats.invgamma(nu / 2, scale=0.5),
    "inv_gamma": lambda a, b: stats.invgamma(a, scale=b),
    "scaled_inv_chi_square": lambda nu, s: stats.invgamma(nu / 2, scale=nu * s**2 / 2),
    "skew_normal": lambda xi, omega, alpha: stats.skewnorm(alpha, xi, omega),
    "student_t": stats.t,
    "von_mises": lambda mu, kappa: stats.vonmises(kappa, mu),
}


def parameters(row):
    """Return the parameters at two points, without the observation."""
    names = list(row.arguments)
    return [
        tuple(
            int(x) if name in row.discrete else x for name, x in zip(names, point[1:], strict=True)
        )
        for point in row.family.points[:2]
    ]


def stacked(row, seed):
    """Return the points and the draws, a row for each point, drawn in one call."""
    points = parameters(row)
    columns = [np.array(column)[:, None] for column in zip(*points, strict=True)]
    return points, row(*columns, rng=seed, size=(len(points), MANY))


def check_uniform(p):
    assert stats.kstest(p, "uniform").pvalue > RATE


def check_chances(draws, values, chances):
    """Compare the frequencies of values with their probabilities. Values expected less than ten
    times are pooled.
    """
    expected = len(draws) * np.asarray(chances)
    ordered, values = np.sort(draws), np.asarray(values)
    found = np.searchsorted(ordered, values, "right") - np.searchsorted(ordered, values)
    assert not np.any(found[expected == 0.0])
    often = expected >= 10.0
    expected, found = (
        np.append(x[often], len(draws) - np.sum(x[often])) for x in (expected, found)
    )
    # If even the pool is small, it is added to the largest expectation.
    if expected[-1] < 10.0:
        for x in (expected, found):
            x[np.argmax(expected[:-1])] += x[-1]
        expected, found = expected[:-1], found[:-1]
    if len(expected) > 1:
        assert stats.chi2.sf(np.sum((found - expected) ** 2 / expected), len(expected) - 1) > RATE
    else:
        assert found[0] == len(draws)


def check_mean(x, expected):
    """Compare the means of independent draws, along the first axis, with the expectation, in
    standard errors.
    """
    errors = np.std(x, axis=0) / math.sqrt(len(x))
    np.testing.assert_array_less(np.abs(np.mean(x, axis=0) - expected), ERRORS * errors + 1e-12)


def check_moments(x, mean, covariance):
    mean, covariance = np.asarray(mean, float), np.asarray(covariance, float)
    check_mean(x, mean)
    d = x - mean
    check_mean(d[:, :, None] * d[:, None, :], covariance)


# --- numbers ---


@every(CONTINUOUS)
def test_distribution(row):
    points, draws = stacked(row, 1)
    stem = row.name.removesuffix("_rng")
    cdf = row.family.cdf
    assert cdf is not None or stem in SCIPY
    for point, x in zip(points, draws, strict=True):
        if cdf is not None:
            few = x[:4000] if stem in SCIPY else x  # SciPy's function takes all, and is quicker
            # Draws are angles around the location, but the distribution function covers an interval
            # around 0.
            inside = np.mod(few + np.pi, 2.0 * np.pi) - np.pi if stem == "von_mises" else few
            check_uniform(cdf.pointwise(inside, *point))
        if stem in SCIPY:
            check_uniform(SCIPY[stem](*point).cdf(x))


@every(DISCRETE)
def test_masses(row):
    points, draws = stacked(row, 2)
    assert draws.dtype == np.int64
    for point, x in zip(points, draws, strict=True):
        values = np.arange(np.min(x), min(np.max(x), np.min(x) + 2000) + 1)
        check_chances(x, values, np.exp(row.family.pointwise(values, *point)))


@every(ROWS)
def test_forms_of_calls(row):
    point = parameters(row)[0]
    number = row(*point, rng=3)
    assert type(number) is (int if row.integer else float)
    assert row(*point, rng=np.random.default_rng(3)) == number
    assert row(**dict(zip(row.arguments, point, strict=True)), rng=3, size=()) == number
    assert row(*point, rng=3, size=1).tolist() == [number]
    assert row(*point, size=(2, 3)).shape == (2, 3)
    assert row(*point, size=0).shape == (0,)
    if point:
        assert row(np.full((2, 1), point[0]), *point[1:]).shape == (2, 1)
    generator = np.random.default_rng(4)
    assert (
        np.any(row(*point, rng=generator, size=64) != row(*point, rng=generator, size=64))
        or row.name == "bernoulli_rng"
    )


@pytest.mark.parametrize("alpha", [0.05, 1.0, 7.0])
def test_logarithms_of_gamma_numbers(alpha):
    x = log_gamma(np.random.default_rng(1), alpha, (MANY,))
    check_uniform(stats.loggamma(alpha).cdf(x))


def test_without_a_seed_draws_are_new():
    assert vm.normal_rng(0.0, 1.0) != vm.normal_rng(0.0, 1.0)


@every(ALL)
def test_names(row):
    assert pickle.loads(pickle.dumps(row)) is copy.deepcopy(row) is row
    assert repr(row).startswith(f"<varmat random numbers {row.name}(")
    assert [*inspect.signature(row).parameters] == [*row.arguments, "rng", "size"]
    assert row.family is None or row.family.rng is row


@every([row for row in ALL if row.family is not None])
def test_parameters_are_those_of_the_density(row):
    """The parameters have the order that they have in the density. Sizes, which only a draw needs,
    may come between them.
    """
    named = [name for name in inspect.signature(row.family).parameters if name != "propto"][1:]
    assert [name for name in row.arguments if name in named] == named
    assert set(row.arguments) - set(named) <= {"K", "N", "T"}
    for name in named:
        assert row.arguments[name][0] == row.family.arguments[name][0]


# --- beside Stan ---

# Families whose draws have no variance, or no fourth moment, so that variances cannot be compared.
HEAVY = {
    *("cauchy", "frechet", "inv_chi_square", "inv_gamma", "loglogistic", "lognormal", "pareto",
      "pareto_type_2"),
    *("scaled_inv_chi_square", "student_t"),
}  # fmt: skip
# Stan takes the location modulo 2 pi.
SHIFTED = {"von_mises_rng": -2.0 * math.pi}


@pytest.mark.parametrize("entry", stan.entries("random_numbers"))
def test_moments_are_those_of_stan(entry):
    row, args = getattr(vm, entry["function"]), stan.arguments(entry)
    mean, variance, least, largest, n = map(stan.number, entry["output"])
    x = np.reshape(row(*args, rng=5, size=n), (n, -1)).astype(float)
    shift = SHIFTED.get(row.name, 0.0)
    if row.name.removesuffix("_rng") in HEAVY:
        # The chance that 20 draws lie beyond all of equally many others is 2**-20.
        assert np.sum(x < least) < 20
        assert np.sum(x > largest) < 20
        return
    error = np.sqrt(2.0 * variance / n)
    if entry["id"] == "hypergeometric_rng#2":
        # Stan's generator does not follow Stan's mass: their means differ by more than a hundred
        # standard errors.
        values = np.arange(4)
        right = np.sum(values * np.exp(vm.hypergeometric_lpmf.pointwise(values, *args)))
        assert abs(mean - right) > 100.0 * error
        mean = right
        variance = np.var(x, axis=0)
    assert np.all(np.abs(np.mean(x, axis=0) - (mean + shift)) < 6.0 * error)
    spread = np.sqrt(2.0 * np.var((x - np.mean(x, axis=0)) ** 2, axis=0) / n)
    assert np.all(np.abs(np.var(x, axis=0) - variance) < 6.0 * spread + 1e-3 * variance)


@pytest.mark.parametrize("entry", stan.entries("random_numbers", throws=True))
def test_refuses_what_stan_refuses(entry):
    if entry["id"] == "neg_binomial_2_rng#3":  # a mean of 0
        assert vm.neg_binomial_2_rng(*stan.arguments(entry)) == 0
        return
    row = getattr(vm, entry["function"])
    refuses((vm.DomainError, vm.ShapeError), f"^{row.name}: ", row, *stan.arguments(entry))


# --- what is refused ---

NORMAL, ONE = vm.normal_rng, [[1.0]]
TOO_LARGE = "but must be at most 9.22e+18, because counts have 64 bits!"
NO_DERIVATIVE = "is a variable, but a draw has no derivative: pass varmat.value of it!"
NOT_BROADCAST = "but must be a shape to which the shape of the arguments,"


@pytest.mark.parametrize(("f", "args", "error", "text"), [
    (NORMAL, (0.0, [1.0, -1.0]), DOMAIN,
     "Scale parameter[1] is -1.0, but must be positive finite!"),
    (NORMAL, (0.0, math.inf), DOMAIN, "Scale parameter is inf, but must be positive finite!"),
    (vm.bernoulli_logit_rng, (math.inf,), DOMAIN,
     "Logit transformed probability parameter is inf, but must be finite!"),
    (vm.binomial_rng, (2.5, 0.3), DOMAIN,
     "Population size parameter is 2.5, but must be an integer!"),
    (vm.binomial_rng, (math.inf, 0.3), DOMAIN,
     "Population size parameter is inf, but must be nonnegative finite!"),
    (vm.uniform_rng, (1.0, 1.0), DOMAIN,
     "Upper bound parameter is 1.0, but must be greater than the lower bound!"),
    (vm.skew_double_exponential_rng, (0.0, 1.0, 1.0), DOMAIN,
     "Skewness parameter is 1.0, but must be greater than 0 and less than 1!"),
    (vm.poisson_rng, (1e19,), DOMAIN, f"the rate of a count is 1e+19, {TOO_LARGE}"),
    (vm.poisson_log_rng, (800.0,), DOMAIN, f"the rate of a count is inf, {TOO_LARGE}"),
    (vm.hypergeometric_rng, (3, 10**9, 4), DOMAIN, ("Successes in population parameter is "
     "1000000000.0, but must be nonnegative and less than 10**9!")),
    (NORMAL, (np.zeros(2), np.ones(3)), SHAPE,
     "Scale parameter has shape (3,), but must have a shape that broadcasts with (2,)!"),
    (partial(NORMAL, size=3), (np.zeros(2), 1.0), SHAPE,
     f"size is (3,), {NOT_BROADCAST} (2,), broadcasts!"),
    (partial(NORMAL, size=3), (np.zeros((2, 1)), 1.0), SHAPE,
     f"size is (3,), {NOT_BROADCAST} (2, 1), broadcasts!"),
    (partial(NORMAL, size=-1), (0.0, 1.0), DOMAIN, "size is -1, but must not be negative!"),
    (partial(NORMAL, size=1.5), (0.0, 1.0), TypeError,
     "size is 1.5, but must be an integer or a tuple of integers!"),
    (NORMAL, (0.0,), TypeError, ("missing a required argument: 'sigma'; the signature is "
     "normal_rng(mu, sigma, *, rng=None, size=None)")),
    (NORMAL, (vm.var(0.0), 1.0), TypeError, f"Location parameter {NO_DERIVATIVE}"),
    (vm.dirichlet_rng, (vm.var([1.0, 2.0]),), TypeError, f"prior sample sizes {NO_DERIVATIVE}"),
    (NORMAL, (0.0, "1"), TypeError, ("Scale parameter has dtype <U1, but must be real numbers "
     "(float64, or what converts to it)")),
    (vm.dirichlet_rng, (1.0,), SHAPE,
     "prior sample sizes has shape (), but must be a vector (or a stack of them)!"),
    (vm.multi_normal_rng, (MU[:2], S), SHAPE, ("Covariance matrix has shape (3, 3), with 3 where "
     "it must fit Location parameter, which has 2!")),
    (vm.multi_normal_rng, (MU, -S), DOMAIN, "Covariance matrix has the eigenvalue -2.3"),
    (vm.wishart_rng, (1.5, S), DOMAIN,
     "Degrees of freedom parameter is 1.5, but must be finite and greater than 2!"),
    (vm.lkj_corr_rng, (0, 1.0), DOMAIN, "Number of rows is 0.0, but must be at least 1!"),
    (vm.gaussian_dlm_obs_rng, (ONE, ONE, [[-1.0]], ONE, [0.0], ONE, 2), DOMAIN,
     "V has the eigenvalue -1, but must be positive semidefinite!"),
    (vm.gaussian_dlm_obs_rng, (ONE, ONE, [ONE], ONE, [0.0], ONE, 2), SHAPE,
     "V has shape (1, 1, 1), but must be a matrix!"),
    (vm.hmm_latent_rng, (np.zeros(3), np.eye(2), [0.5, 0.5]), SHAPE,
     "log_omegas has shape (3,), but must be a matrix (or a stack of them)!"),
    (vm.hmm_latent_rng, (np.zeros((2, 3)), np.full((2, 2), 0.6), [0.5, 0.5]), DOMAIN,
     "sum(Gamma)[0] is 1.2, but must be 1 to within 1e-08!"),
    (vm.hmm_latent_rng, ([[-math.inf], [-math.inf]], np.eye(2), [0.5, 0.5]), DOMAIN,
     "log_omegas, Gamma and rho allow no path of states, but must allow at least one!"),
])  # fmt: skip
def test_refusals(f, args, error, text):
    refuses_as(error, f"{getattr(f, 'func', f).name}: {text}", f, *args)


# --- edges ---


def test_parameters_at_their_limits():
    assert vm.bernoulli_rng([0.0, 1.0], rng=1, size=(500, 2)).mean(axis=0).tolist() == [0.0, 1.0]
    assert vm.binomial_rng(2**60, 1.0) == 2**60
    assert vm.discrete_range_rng(2**53 + 1, 2**53 + 1) == 2**53 + 1
    assert vm.poisson_rng(0.0) == 0
    tiny = vm.dirichlet_rng([1e-3, 1e-3], rng=1, size=2000)
    close(np.sum(tiny, axis=-1), 1.0, 1e-12)
    check_mean(tiny, 0.5)
    assert np.all(np.isfinite(vm.uniform_rng(-1.7e308, 1.7e308, rng=1, size=100)))
    assert np.all(vm.categorical_rng([0.0, 1.0, 0.0], rng=1, size=1000) == 2)
    assert np.all(np.isfinite(vm.beta_proportion_rng(0.5, 1e-320, rng=1, size=10)))


def test_impossible_categories_are_not_chosen_at_the_ends():
    class Ends:
        """A generator that returns the smallest and the largest uniform number."""

        def random(self, shape):
            return np.broadcast_to([0.0, 1.0 - 2.0**-53], shape)

    for theta in (
        [0.0, 0.3, 0.7, 0.0], [0.0, 0.1 + 2.0**-40, 0.9, 0.0], [0.0, 1e-300, 1e-300, 0.0],
    ):  # fmt: skip
        assert chosen(Ends(), (5, 2), np.array(theta))[0].tolist() == [2, 3]
        assert chosen(Ends(), (2,), np.array([theta, theta])).tolist() == [2, 3]


# --- vectors and matrices ---


def spread(theta):
    """Return the covariance of the counts of one trial."""
    theta = np.asarray(theta)
    return np.diag(theta) - np.outer(theta, theta)


ALPHA, THETA = np.array([1.0, 0.5, 4.5]), np.array([0.2, 0.1, 0.7])
SHARE = ALPHA / 6.0
MEANS, COLUMNS = np.arange(6.0).reshape(3, 2), np.array([[2.0, 0.5], [0.5, 1.0]])
SCALES, WITHOUT_MEAN = np.array([0.5, 3.0]), np.zeros(6)
OF_PROCESSES = np.kron(np.diag(1.0 / SCALES), S)
X, BETA = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]]), np.array([0.4, -0.3])
INTERCEPTS, SIGMAS = np.array([0.2, 0.1, -0.5]), np.array([1.0, 2.0, 0.5])
ETA = INTERCEPTS + X @ BETA
WINS, RATES = 1.0 / (1.0 + np.exp(-ETA)), np.exp(ETA)


@pytest.mark.parametrize(("f", "args", "mean", "covariance"), [
    (vm.multi_normal_rng, (MU, S), MU, S),
    (vm.multi_normal_cholesky_rng, (MU, L + np.triu(np.full((3, 3), 9.0), 1)), MU, S),
    (vm.multi_normal_prec_rng, (MU, np.linalg.inv(S)), MU, S),
    (vm.multi_student_t_rng, (math.inf, MU, S), MU, S),
    (vm.multi_student_t_rng, (12.0, MU, S / 1.2), MU, S),
    (vm.multi_student_t_cholesky_rng, (12.0, MU, L / math.sqrt(1.2)), MU, S),
    (vm.dirichlet_rng, (ALPHA,), SHARE, spread(SHARE) / 7.0),
    (vm.multinomial_rng, (THETA, 9), 9 * THETA, 9 * spread(THETA)),
    (vm.multinomial_logit_rng, (np.log(THETA) + 3.0, 9), 9 * THETA, 9 * spread(THETA)),
    (vm.dirichlet_multinomial_rng, (ALPHA, 9), 9 * SHARE, 9 * spread(SHARE) * (9 + 6) / 7),
    (vm.matrix_normal_prec_rng, (MEANS, S, COLUMNS), MEANS.ravel(),
     np.kron(np.linalg.inv(S), np.linalg.inv(COLUMNS))),
    (vm.multi_gp_rng, (S, SCALES), WITHOUT_MEAN, OF_PROCESSES),
    (vm.multi_gp_cholesky_rng, (L, SCALES), WITHOUT_MEAN, OF_PROCESSES),
    (vm.normal_id_glm_rng, (X, INTERCEPTS, BETA, SIGMAS), ETA, np.diag(SIGMAS**2)),
    (vm.bernoulli_logit_glm_rng, (X, INTERCEPTS, BETA), WINS, np.diag(WINS * (1 - WINS))),
    (vm.binomial_logit_glm_rng, (7, X, INTERCEPTS, BETA), 7 * WINS, np.diag(7 * WINS * (1 - WINS))),
    (vm.poisson_log_glm_rng, (X, INTERCEPTS, BETA), RATES, np.diag(RATES)),
    (vm.neg_binomial_2_log_glm_rng, (X, INTERCEPTS, BETA, 3.0), RATES,
     np.diag(RATES + RATES**2 / 3.0)),
])  # fmt: skip
def test_means_and_covariances(f, args, mean, covariance):
    draws = f(*args, rng=1, size=DRAWS)
    assert (draws.dtype == np.int64) == f.integer
    check_moments(draws.reshape(DRAWS, -1), mean, covariance)


CUTS, LOGITS = np.array([-1.0, 0.2, 1.5]), np.log([0.2, 0.1, 1e-9, 0.7])
ORDERED = [math.exp(vm.ordered_logistic_lpmf(n, 0.3, CUTS)) for n in range(1, 5)]
PROBIT = np.diff(stats.norm.cdf([-math.inf, *(CUTS - 0.3), math.inf]))
SUCCESSES = np.convolve(np.convolve([0.8, 0.2], [0.1, 0.9]), [0.5, 0.5])


@pytest.mark.parametrize(("f", "args", "first", "chances"), [
    (vm.categorical_rng, ([0.2, 0.1, 0.0, 0.7],), 1, [0.2, 0.1, 0.0, 0.7]),
    (vm.categorical_logit_rng, (LOGITS,), 1, [0.2, 0.1, 0.0, 0.7]),
    (vm.ordered_logistic_rng, (0.3, CUTS), 1, ORDERED),
    (vm.ordered_probit_rng, (0.3, CUTS), 1, PROBIT),
    (vm.poisson_binomial_rng, ([0.2, 0.9, 0.5],), 0, SUCCESSES),
])  # fmt: skip
def test_categories(f, args, first, chances):
    draws = f(*args, rng=2, size=DRAWS)
    check_chances(draws, np.arange(len(chances)) + first, chances)


def test_student_vectors_have_student_marginals():
    x = vm.multi_student_t_rng(3.0, MU, S, rng=2, size=DRAWS)
    for i in range(3):
        check_uniform(stats.t(3.0, MU[i], math.sqrt(S[i, i])).cdf(x[:, i]))


def test_stacks_of_vectors():
    means = np.array([MU, -MU])
    x = vm.multi_normal_rng(means, S, rng=1, size=(DRAWS, 2))
    for i in range(2):
        check_moments(x[:, i], means[i], S)
    theta = np.array([[0.2, 0.3, 0.5], [0.7, 0.0, 0.3]])
    assert vm.dirichlet_rng([[1.0, 2.0], [3.0, 4.0]]).shape == (2, 2)
    assert vm.multinomial_rng(theta, [3, 5]).sum(axis=-1).tolist() == [3, 5]
    for x in (
        vm.categorical_rng(theta, rng=1, size=(DRAWS, 2)),
        vm.ordered_logistic_rng([0.0, 1.0], [[-1.0], [0.5]], size=(9, 2)),
    ):
        assert x.shape[1:] == (2,)
    for i, x in enumerate(vm.categorical_rng(theta, rng=1, size=(DRAWS, 2)).T):
        check_chances(x, [1, 2, 3], theta[i])


@pytest.mark.parametrize(("draw", "matrix"), [
    (lambda *a, **k: vm.multi_normal_rng(*a, **k), S),
    (lambda *a, **k: vm.multi_normal_cholesky_rng(*a, **k), L),
    (lambda *a, **k: vm.multi_normal_prec_rng(*a, **k), np.linalg.inv(S)),
    (lambda *a, **k: vm.multi_student_t_rng(5.0, *a, **k), S),
    (lambda *a, **k: vm.multi_student_t_cholesky_rng(5.0, *a, **k), L),
])  # fmt: skip
def test_stacks_of_matrices(draw, matrix):
    scales = np.array([0.1, 1.0, 9.0])
    stack, means = scales[:, None, None] * matrix, np.array([[MU], [-MU]])
    x = draw(means, stack, rng=1)
    assert x.shape == (2, 3, 3)
    # The same numbers make the draws of each matrix alone, and of a stack of equal ones.
    alone = np.stack([draw(means, each, rng=1, size=(2, 3)) for each in stack])
    close(x, np.stack([alone[i, :, i] for i in range(3)], axis=1), 1e-12)
    assert draw(MU, stack[:0], rng=1).shape == (0, 3)
    assert draw(MU, stack, rng=1, size=(4, 3)).shape == (4, 3, 3)
    stack[1, 2, 2] = -1.0
    refuses(DOMAIN, r"(\[1, 2, 2\] is -1.0|\[1\] has the eigenvalue)", draw, MU, stack)
    rule = r"must be a square matrix \(or a stack of them\)!"
    refuses(SHAPE, rule, draw, MU, np.ones((2, 3, 2)))
    refuses(SHAPE, r"broadcasts with \(2,\)!", draw, [MU, MU], [matrix] * 3)


def test_wishart_matrices():
    nu, n = 6.5, DRAWS // 2
    factors, inverse_factors = (
        f(nu, L, rng=2, size=n) for f in (vm.wishart_cholesky_rng, vm.inv_wishart_cholesky_rng)
    )
    for each in (factors, inverse_factors):
        assert np.all(np.triu(each, 1) == 0.0)
        assert np.all(np.diagonal(each, 0, 1, 2) > 0.0)
    variances = nu * (S**2 + np.outer(np.diag(S), np.diag(S)))
    for x in (vm.wishart_rng(nu, S, rng=1, size=n), factors @ factors.mT):
        check_mean(x, nu * S)
        check_mean((x - nu * S) ** 2, variances)
    for x in (vm.inv_wishart_rng(nu, S, rng=3, size=n), inverse_factors @ inverse_factors.mT):
        check_mean(x, S / (nu - 4.0))
        check_mean(np.linalg.inv(x), nu * np.linalg.inv(S))
        close(x[0], x[0].T, 1e-14)


def test_correlation_matrices():
    eta, k = 1.7, 3
    factors = vm.lkj_corr_cholesky_rng(k, eta, rng=1, size=DRAWS)
    x = vm.lkj_corr_rng(k, eta, rng=2, size=DRAWS)
    assert np.all(np.diagonal(x, 0, 1, 2) == 1.0)
    equal(x, x.mT)
    for draws in (x, factors @ factors.mT):
        for i, j in ((1, 0), (2, 0), (2, 1)):
            check_uniform(stats.beta(eta + 0.5, eta + 0.5).cdf(0.5 + 0.5 * draws[:, i, j]))
    partial = factors[:, 2, 1] / np.sqrt(1.0 - factors[:, 2, 0] ** 2)
    check_uniform(stats.beta(eta, eta).cdf(0.5 + 0.5 * partial))
    assert vm.lkj_corr_rng(1, eta).tolist() == [[1.0]]


@pytest.mark.parametrize("vector", [False, True])
def test_dynamic_linear_model(vector):
    f = np.array([[1.0, 0.5], [0.0, 1.0]])
    g = np.array([[0.9, 0.1], [0.0, 0.7]])
    v = np.diag([0.3, 0.0])
    w, m, c = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0]), np.diag([0.5, 2.0])
    x = vm.gaussian_dlm_obs_rng(f, g, np.diag(v) if vector else v, w, m, c, 2, rng=1, size=DRAWS)
    assert x.shape == (DRAWS, 2, 2)
    first = g @ c @ g.T + w
    second = g @ first @ g.T + w
    means = f.T @ g @ m, f.T @ g @ g @ m
    covariance = np.block(
        [[f.T @ first @ f + v, f.T @ first @ g.T @ f], [f.T @ g @ first @ f, f.T @ second @ f + v]]
    )
    check_moments(x.mT.reshape(DRAWS, 4), np.concatenate(means), covariance)
    assert vm.gaussian_dlm_obs_rng(f, g, v, w, m, c, 0).shape == (2, 0)


def test_hidden_states():
    log_omegas = np.log([[0.9, 0.2, 0.5], [0.3, 0.8, 1e-200]])
    gamma, rho = np.array([[0.7, 0.3], [1.0, 0.0]]), np.array([0.4, 0.6])
    paths = [(i, j, k) for i in range(2) for j in range(2) for k in range(2)]
    omegas = np.exp(log_omegas)
    weights = [
        rho[i] * omegas[i, 0] * gamma[i, j] * omegas[j, 1] * gamma[j, k] * omegas[k, 2]
        for i, j, k in paths
    ]
    states = vm.hmm_latent_rng(log_omegas, gamma, rho, rng=1, size=DRAWS)
    assert states.shape == (DRAWS, 3)
    chances = np.array(weights) / np.sum(weights)
    check_chances((states - 1) @ [4, 2, 1], range(8), np.where(chances < 1e-100, 0.0, chances))
    assert vm.hmm_latent_rng(np.empty((2, 0)), gamma, rho).shape == (0,)
    # A stack has the paths of its chains, each with its own numbers.
    stack = np.stack([log_omegas, log_omegas[::-1]])
    drawn = vm.hmm_latent_rng(stack, gamma, [[1.0, 0.0], [0.0, 1.0]], rng=1, size=(500, 2))
    assert drawn.shape == (500, 2, 3)
    equal(drawn[..., 0], np.tile([1, 2], (500, 1)))


def test_categories_of_linear_models():
    c, alpha = np.array([-1.0, 0.2]), [0.0, 0.3, -0.2]
    weights = np.array([[1.0, 0.0, -1.0], [0.5, 0.0, 2.0]])
    ordered = vm.ordered_logistic_glm_rng(X, BETA, c, rng=1, size=DRAWS)
    categories = vm.categorical_logit_glm_rng(X, alpha, weights, rng=1, size=DRAWS)
    logits = np.exp(alpha + X @ weights)
    for i in range(3):
        chances = [math.exp(vm.ordered_logistic_lpmf(n, X[i] @ BETA, c)) for n in (1, 2, 3)]
        check_chances(ordered[:, i], [1, 2, 3], chances)
        check_chances(categories[:, i], [1, 2, 3], logits[i] / np.sum(logits[i]))


def test_each_draw_of_parameters_gives_a_row():
    assert vm.normal_id_glm_rng(X, 0.0, BETA, 1.0).shape == (3,)
    alpha, sigma = np.array([[0.0], [1e6]]), np.array([[1e-9], [1e-3]])
    several = vm.normal_id_glm_rng(X, alpha, np.array([BETA, -BETA]), sigma, rng=1)
    close(several, [X @ BETA, 1e6 - X @ BETA], 1e-7)
    text = "normal_id_glm_rng: Intercept has shape (2,), with 2 where it must fit Matrix of"
    refuses_as(SHAPE, text, vm.normal_id_glm_rng, X, [0.0, 1.0], BETA, 1.0)


def test_a_binomial_regression_has_its_own_trials_in_each_row():
    x, trials = np.zeros((3, 2)), [10, 0, 10**6]
    draws = vm.binomial_logit_glm_rng(trials, x, [0.0, 0.0, 40.0], [1.0, 2.0], rng=1, size=(500,))
    assert draws.shape == (500, 3)
    assert draws[:, 0].max() <= 10
    close(draws[:, 0].mean(), 5.0, 0.0, 0.5)
    assert not draws[:, 1].any()
    assert (draws[:, 2] == 10**6).all()
    stacked = vm.binomial_logit_glm_rng([[1], [50]], x, 40.0, [1.0, 2.0], rng=1)
    equal(stacked, [[1, 1, 1], [50, 50, 50]])
    assert vm.binomial_logit_glm_rng(7, x, 40.0, [1.0, 2.0], rng=1).tolist() == [7, 7, 7]
    rule = (
        "^binomial_logit_glm_rng: Matrix of independent variables has shape .*, with 3 where it "
        "must fit Population size parameter, which has 2!$"
    )
    refuses(SHAPE, rule, vm.binomial_logit_glm_rng, [1, 2], x, 0.0, [1.0, 2.0])
