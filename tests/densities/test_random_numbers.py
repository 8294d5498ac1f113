"""Random numbers, each family against its own distribution.

All seeds are fixed. If the seeds were drawn at random, a correct function would fail one of these
comparisons with a probability of at most 1e-6 (`RATE`, or five standard errors).
"""

import copy
import inspect
import math
import pickle
import re

import numpy as np
import pytest
import stan
from comparing import close, equal, refuses
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


def by_name(rows):
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


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


@by_name(CONTINUOUS)
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


@by_name(DISCRETE)
def test_masses(row):
    points, draws = stacked(row, 2)
    assert draws.dtype == np.int64
    for point, x in zip(points, draws, strict=True):
        values = np.arange(np.min(x), min(np.max(x), np.min(x) + 2000) + 1)
        check_chances(x, values, np.exp(row.family.pointwise(values, *point)))


@by_name(ROWS)
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


@by_name(ALL)
def test_names(row):
    assert pickle.loads(pickle.dumps(row)) is copy.deepcopy(row) is row
    assert repr(row).startswith(f"<varmat random numbers {row.name}(")
    assert [*inspect.signature(row).parameters] == [*row.arguments, "rng", "size"]
    assert row.family is None or row.family.rng is row


@by_name([row for row in ALL if row.family is not None])
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
    row = getattr(vm, entry["function"])
    refuses((vm.DomainError, vm.ShapeError), f"^{row.name}: ", row, *stan.arguments(entry))


# --- what is refused ---


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.normal_rng(0.0, [1.0, -1.0]), vm.DomainError,
     "normal_rng: Scale parameter[1] is -1.0, but must be positive finite!"),
    (lambda: vm.normal_rng(0.0, math.inf), vm.DomainError,
     "normal_rng: Scale parameter is inf, but must be positive finite!"),
    (lambda: vm.bernoulli_logit_rng(math.inf), vm.DomainError,
     "bernoulli_logit_rng: Logit transformed probability parameter is inf, but must be finite!"),
    (lambda: vm.binomial_rng(2.5, 0.3), vm.DomainError,
     "binomial_rng: Population size parameter is 2.5, but must be an integer!"),
    (lambda: vm.binomial_rng(math.inf, 0.3), vm.DomainError,
     "binomial_rng: Population size parameter is inf, but must be nonnegative finite!"),
    (lambda: vm.uniform_rng(1.0, 1.0), vm.DomainError,
     "uniform_rng: Upper bound parameter is 1.0, but must be greater than the lower bound!"),
    (lambda: vm.skew_double_exponential_rng(0.0, 1.0, 1.0), vm.DomainError,
     ("skew_double_exponential_rng: Skewness parameter is 1.0, but must be greater than 0 and less "
     "than 1!")),
    (lambda: vm.poisson_rng(1e19), vm.DomainError,
     ("poisson_rng: the rate of a count is 1e+19, but must be at most 9.22e+18, for counts have 64 "
     "bits!")),
    (lambda: vm.poisson_log_rng(800.0), vm.DomainError,
     ("poisson_log_rng: the rate of a count is inf, but must be at most 9.22e+18, for counts have "
     "64 bits!")),
    (lambda: vm.hypergeometric_rng(3, 10**9, 4), vm.DomainError,
     ("hypergeometric_rng: Successes in population parameter is 1000000000.0, but must be "
     "nonnegative and less than 10**9!")),
    (lambda: vm.normal_rng(np.zeros(2), np.ones(3)), vm.ShapeError,
     ("normal_rng: Scale parameter has shape (3,), but must have a shape that broadcasts with "
      "(2,)!")),
    (lambda: vm.normal_rng(np.zeros(2), 1.0, size=3), vm.ShapeError,
     ("normal_rng: size is (3,), but must be a shape to which the shape of the arguments, (2,), "
     "broadcasts!")),
    (lambda: vm.normal_rng(np.zeros((2, 1)), 1.0, size=3), vm.ShapeError,
     ("normal_rng: size is (3,), but must be a shape to which the shape of the arguments, (2, "
     "1), broadcasts!")),
    (lambda: vm.normal_rng(0.0, 1.0, size=-1), vm.DomainError,
     "normal_rng: size is -1, but must not be negative!"),
    (lambda: vm.normal_rng(0.0, 1.0, size=1.5), TypeError,
     "normal_rng: size is 1.5, but must be an integer or a tuple of integers!"),
    (lambda: vm.normal_rng(0.0), TypeError,
     ("normal_rng: missing a required argument: 'sigma'; the signature is normal_rng(mu, sigma, *, "
     "rng=None, size=None)")),
    (lambda: vm.normal_rng(vm.var(0.0), 1.0), TypeError,
     ("normal_rng: Location parameter is a variable, but a draw has no derivative: pass "
     "varmat.value of it!")),
    (lambda: vm.dirichlet_rng(vm.var([1.0, 2.0])), TypeError,
     ("dirichlet_rng: prior sample sizes is a variable, but a draw has no derivative: pass "
     "varmat.value of it!")),
    (lambda: vm.normal_rng(0.0, "1"), TypeError,
     ("normal_rng: Scale parameter has dtype <U1, but must be real numbers (float64, or what "
     "converts to it)")),
    (lambda: vm.dirichlet_rng(1.0), vm.ShapeError,
     "dirichlet_rng: prior sample sizes has shape (), but must be a vector (or a stack of them)!"),
    (lambda: vm.multi_normal_rng(MU[:2], S), vm.ShapeError,
     ("multi_normal_rng: Covariance matrix has shape (3, 3), with 3 where it must fit Location "
     "parameter, which has 2!")),
    (lambda: vm.multi_normal_rng(MU, -S), vm.DomainError,
     "multi_normal_rng: Covariance matrix has the eigenvalue -2.3"),
    (lambda: vm.wishart_rng(1.5, S), vm.DomainError,
     "wishart_rng: Degrees of freedom parameter is 1.5, but must be finite and greater than 2!"),
    (lambda: vm.lkj_corr_rng(0, 1.0), vm.DomainError,
     "lkj_corr_rng: Number of rows is 0.0, but must be at least 1!"),
    (lambda: vm.gaussian_dlm_obs_rng([[1.0]], [[1.0]], [[-1.0]], [[1.0]], [0.0], [[1.0]], 2),
     vm.DomainError,
     "gaussian_dlm_obs_rng: V has the eigenvalue -1, but must be positive semidefinite!"),
    (lambda: vm.hmm_latent_rng(np.zeros(3), np.eye(2), [0.5, 0.5]), vm.ShapeError,
     "hmm_latent_rng: log_omegas has shape (3,), but must be a matrix (or a stack of them)!"),
    (lambda: vm.hmm_latent_rng(np.zeros((2, 3)), np.full((2, 2), 0.6), [0.5, 0.5]), vm.DomainError,
     "hmm_latent_rng: sum(Gamma)[0] is 1.2, but must be 1 to within 1e-08!"),
    (lambda: vm.gaussian_dlm_obs_rng([[1.0]], [[1.0]], np.ones((1, 1, 1)), [[1.0]], [0.0], [[1.0]],
        2), vm.ShapeError,
     "gaussian_dlm_obs_rng: V has shape (1, 1, 1), but must be a matrix!"),
    (lambda: vm.hmm_latent_rng([[-math.inf], [-math.inf]], np.eye(2), [0.5, 0.5]), vm.DomainError,
     ("hmm_latent_rng: log_omegas, Gamma and rho allow no path of states, but must allow at least "
     "one!")),
])  # fmt: skip
def test_refusals(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


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


# --- vectors ---


@pytest.mark.parametrize("draw", [
    lambda **k: vm.multi_normal_rng(MU, S, **k),
    lambda **k: vm.multi_normal_cholesky_rng(MU, L + np.triu(np.full((3, 3), 9.0), 1), **k),
    lambda **k: vm.multi_normal_prec_rng(MU, np.linalg.inv(S), **k),
    lambda **k: vm.multi_student_t_rng(math.inf, MU, S, **k),
    lambda **k: vm.multi_student_t_rng(12.0, MU, S / 1.2, **k),
    lambda **k: vm.multi_student_t_cholesky_rng(12.0, MU, L / math.sqrt(1.2), **k),
])  # fmt: skip
def test_normal_and_student_vectors(draw):
    check_moments(draw(rng=1, size=DRAWS), MU, S)


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
    refuses(vm.DomainError, r"(\[1, 2, 2\] is -1.0|\[1\] has the eigenvalue)", draw, MU, stack)
    with pytest.raises(vm.ShapeError, match=r"must be a square matrix \(or a stack of them\)!"):
        draw(MU, np.ones((2, 3, 2)))
    refuses(vm.ShapeError, r"broadcasts with \(2,\)!", draw, [MU, MU], [matrix] * 3)


def spread(theta):
    theta = np.asarray(theta)
    return np.diag(theta) - np.outer(theta, theta)


def test_simplexes_and_counts():
    alpha, theta = np.array([1.0, 0.5, 4.5]), np.array([0.2, 0.1, 0.7])
    share = alpha / 6.0
    check_moments(vm.dirichlet_rng(alpha, rng=1, size=DRAWS), share, spread(share) / 7.0)
    for x in (
        vm.multinomial_rng(theta, 9, rng=2, size=DRAWS),
        vm.multinomial_logit_rng(np.log(theta) + 3.0, 9, rng=3, size=DRAWS),
    ):
        assert x.dtype == np.int64
        check_moments(x, 9 * theta, 9 * spread(theta))
    x = vm.dirichlet_multinomial_rng(alpha, 9, rng=4, size=DRAWS)
    check_moments(x, 9 * share, 9 * spread(share) * (9 + 6) / 7)


def test_categories():
    theta, c = np.array([0.2, 0.1, 0.0, 0.7]), np.array([-1.0, 0.2, 1.5])
    check_chances(vm.categorical_rng(theta, rng=1, size=DRAWS), range(1, 5), theta)
    log = np.log([0.2, 0.1, 1e-9, 0.7])
    check_chances(vm.categorical_logit_rng(log, rng=2, size=DRAWS), range(1, 5), theta)
    logistic = [math.exp(vm.ordered_logistic_lpmf(n, 0.3, c)) for n in range(1, 5)]
    check_chances(vm.ordered_logistic_rng(0.3, c, rng=3, size=DRAWS), range(1, 5), logistic)
    probit = np.diff(stats.norm.cdf([-math.inf, *(c - 0.3), math.inf]))
    check_chances(vm.ordered_probit_rng(0.3, c, rng=4, size=DRAWS), range(1, 5), probit)
    p = np.array([0.2, 0.9, 0.5])
    x = vm.poisson_binomial_rng(p, rng=5, size=DRAWS)
    check_chances(x, range(4), np.convolve(np.convolve([0.8, 0.2], [0.1, 0.9]), [0.5, 0.5]))


# --- matrices ---


def test_wishart_matrices():
    nu, n = 6.5, DRAWS // 2
    factors = vm.wishart_cholesky_rng(nu, L, rng=2, size=n)
    assert np.all(np.triu(factors, 1) == 0.0)
    assert np.all(np.diagonal(factors, 0, 1, 2) > 0.0)
    variances = nu * (S**2 + np.outer(np.diag(S), np.diag(S)))
    for x in (vm.wishart_rng(nu, S, rng=1, size=n), factors @ factors.mT):
        check_mean(x, nu * S)
        check_mean((x - nu * S) ** 2, variances)
    factors = vm.inv_wishart_cholesky_rng(nu, L, rng=4, size=n)
    assert np.all(np.triu(factors, 1) == 0.0)
    assert np.all(np.diagonal(factors, 0, 1, 2) > 0.0)
    for x in (vm.inv_wishart_rng(nu, S, rng=3, size=n), factors @ factors.mT):
        check_mean(x, S / (nu - 4.0))
        inverse = np.linalg.inv(x)
        check_mean(inverse, nu * np.linalg.inv(S))
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


def test_matrices_of_normal_numbers():
    mu, d = np.arange(6.0).reshape(3, 2), np.array([[2.0, 0.5], [0.5, 1.0]])
    x = vm.matrix_normal_prec_rng(mu, S, d, rng=1, size=DRAWS)
    check_moments(x.reshape(DRAWS, 6), mu.ravel(), np.kron(np.linalg.inv(S), np.linalg.inv(d)))
    w = np.array([0.5, 3.0])
    for x in (
        vm.multi_gp_rng(S, w, rng=2, size=DRAWS),
        vm.multi_gp_cholesky_rng(L, w, rng=3, size=DRAWS),
    ):
        check_moments(x.reshape(DRAWS, 6), np.zeros(6), np.kron(np.diag(1.0 / w), S))


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


# --- regressions ---


def test_linear_models():
    x = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]])
    alpha = np.array([0.2, 0.1, -0.5])
    beta = np.array([0.4, -0.3])
    sigma, eta = np.array([1.0, 2.0, 0.5]), np.array([0.2, 0.1, -0.5]) + x @ beta
    settings = {"rng": 1, "size": DRAWS}
    p, mean = 1.0 / (1.0 + np.exp(-eta)), np.exp(eta)
    check_moments(vm.normal_id_glm_rng(x, alpha, beta, sigma, **settings), eta, np.diag(sigma**2))
    check_moments(vm.bernoulli_logit_glm_rng(x, alpha, beta, **settings), p, np.diag(p * (1 - p)))
    check_moments(
        vm.binomial_logit_glm_rng(7, x, alpha, beta, **settings), 7 * p, np.diag(7 * p * (1 - p))
    )
    check_moments(vm.poisson_log_glm_rng(x, alpha, beta, **settings), mean, np.diag(mean))
    x_phi = vm.neg_binomial_2_log_glm_rng(x, alpha, beta, 3.0, **settings)
    check_moments(x_phi, mean, np.diag(mean + mean**2 / 3.0))
    c = np.array([-1.0, 0.2])
    ordered = vm.ordered_logistic_glm_rng(x, beta, c, **settings)
    weights = np.array([[1.0, 0.0, -1.0], [0.5, 0.0, 2.0]])
    categories = vm.categorical_logit_glm_rng(x, [0.0, 0.3, -0.2], weights, **settings)
    logits = np.exp([0.0, 0.3, -0.2] + x @ weights)
    for i in range(3):
        chances = [math.exp(vm.ordered_logistic_lpmf(n, x[i] @ beta, c)) for n in (1, 2, 3)]
        check_chances(ordered[:, i], [1, 2, 3], chances)
        check_chances(categories[:, i], [1, 2, 3], logits[i] / np.sum(logits[i]))
    assert vm.normal_id_glm_rng(x, 0.0, beta, 1.0).shape == (3,)
    # Draws of the parameters give a row each.
    several = vm.normal_id_glm_rng(
        x, np.array([[0.0], [1e6]]), np.array([beta, -beta]), np.array([[1e-9], [1e-3]]), rng=1
    )
    close(several, [x @ beta, 1e6 - x @ beta], 1e-7)
    message = r"^normal_id_glm_rng: Intercept has shape \(2,\), with 2 where it must fit Matrix of"
    refuses(vm.ShapeError, message, vm.normal_id_glm_rng, x, [0.0, 1.0], beta, 1.0)


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
    refuses(vm.ShapeError, rule, vm.binomial_logit_glm_rng, [1, 2], x, 0.0, [1.0, 2.0])
