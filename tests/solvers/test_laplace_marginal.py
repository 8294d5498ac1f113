"""Laplace's approximation: against the textbook formula, by all routes, exact cases, refusals."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from comparing import close, close_slopes, refuses

import varmat as vm
from varmat.testing import expect_ad, finite_diff_gradient, finite_diff_hessian_auto

X = np.array([0.0, 0.4, 1.1, 1.5, 2.6])
N = len(X)
INDEX = np.array([0, 2, 4, 4, 1, 3, 0, 2])
RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(2.0, INDEX.size)
TRIALS = RNG.integers(0, 2, INDEX.size)
OFFSET = np.array([0.3, -0.2, 0.5, 0.1, 0.0])


def covariance(amplitude, length):
    return vm.add_diag(vm.gp_exp_quad_cov(X, amplitude, length), 1e-6)


def at_the_mode(log_likelihood, slope, curvature, k, *args):
    """Rasmussen and Williams, equation 3.32, from given derivatives of the likelihood.

    Its derivatives come from varmat's elementary operations.
    """

    def solve(k, *args):
        theta = np.zeros(N)
        for _ in range(100):
            w = curvature(theta, *args)
            theta = np.linalg.solve(np.eye(N) + k * w, k @ (w * theta + slope(theta, *args)))
        return theta

    theta = vm.implicit(solve, lambda theta, k, *args: theta - k @ slope(theta, *args))(k, *args)
    matrix = np.eye(N) + k * curvature(theta, *args)
    return (
        log_likelihood(theta, *args)
        - 0.5 * slope(theta, *args) @ theta
        - 0.5 * vm.log_determinant(matrix)
    )


TOTAL, NUMBER = np.bincount(INDEX, COUNTS, N), np.bincount(INDEX, minlength=N)
SUCCESSES = np.bincount(INDEX, TRIALS, N)


def mean_share(theta, m, eta):
    return np.exp(theta + m) / (np.exp(theta + m) + eta)


# Name, observations, log likelihood, its derivatives, its arguments besides the offset.
BUILT_IN = [
    ("poisson_log", COUNTS, lambda theta, m: vm.poisson_log_lpmf(COUNTS, (theta + m)[INDEX]),
     lambda theta, m: TOTAL - NUMBER * np.exp(theta + m), lambda theta,
      m: NUMBER * np.exp(theta + m), ()),
    ("bernoulli_logit", TRIALS, lambda theta, m: vm.bernoulli_logit_lpmf(TRIALS,
        (theta + m)[INDEX]),
     lambda theta, m: SUCCESSES - NUMBER / (1.0 + np.exp(-theta - m)),
     lambda theta, m: NUMBER / (2.0 + np.exp(-theta - m) + np.exp(theta + m)), ()),
    ("neg_binomial_2_log", COUNTS, lambda theta, m, eta: vm.neg_binomial_2_log_lpmf(COUNTS,
        (theta + m)[INDEX], eta),
     lambda theta, m, eta: TOTAL - (TOTAL + NUMBER * eta) * mean_share(theta, m, eta),
     lambda theta, m, eta: (TOTAL + NUMBER * eta) * mean_share(theta, m,
      eta) * (1.0 - mean_share(theta, m, eta)), (1.7,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "y", "log_likelihood", "slope", "curvature", "eta"), BUILT_IN)
def test_built_in_likelihoods(name, y, log_likelihood, slope, curvature, eta):
    """Values, gradients and Hessians as by the differentiated formula, and as by the general
    function.
    """
    built_in = getattr(vm, f"laplace_marginal_{name}_lpmf")

    def f(amplitude, length, m, *eta):
        return built_in(y, INDEX, *eta, m, covariance, (amplitude, length))

    def general(amplitude, length, m, *eta):
        return vm.laplace_marginal(log_likelihood, (m, *eta), covariance, (amplitude, length))

    def written(amplitude, length, m, *eta):
        return at_the_mode(log_likelihood, slope, curvature, covariance(amplitude, length), m, *eta)

    point = (1.3, 0.8, OFFSET, *eta)
    which = tuple(range(len(point)))
    value, expected = vm.value_and_grad(written, which)(*point)
    for function in (f, general):
        found, gradients = vm.value_and_grad(function, which)(*point)
        close(found, value, 1e-13)
        close(gradients, expected, 1e-11, 1e-12)
    flat = np.concatenate([np.ravel(x) for x in point])

    def of_vector(function):
        return lambda v: function(v[0], v[1], v[2 : 2 + N], *(v[i] for i in range(2 + N, v.size)))

    close(vm.hessian(of_vector(f), flat), vm.hessian(of_vector(written), flat), 1e-9, 1e-10)


def test_agrees_with_stan():
    """The value in Stan Math's laplace_marginal_lpdf_test.cpp, of two latent variables."""
    x = np.array([[0.05100797, 0.16086164], [-0.59823393, 0.98701425]])
    args = (np.array([1, 0]),), vm.gp_exp_quad_cov, (x, 1.6, 0.45)
    found = vm.laplace_marginal(lambda theta, y: vm.poisson_log_lpmf(y, theta), *args)
    close(found, -2.53056, 0.0, 1e-4)


def test_all_routes_agree():
    def f(length, m):
        return vm.laplace_marginal_poisson_log_lpmf(
            [3, 0], [0, 1], m, lambda s: vm.gp_exp_quad_cov(X[:2], 1.1, s), (length,)
        )

    expect_ad(f, 0.8, np.array([0.3, -0.2]))


def normal_log_likelihood(theta, y, scale):
    return vm.normal_lpdf(y, theta, scale)


def test_of_normal_likelihoods_it_is_exact():
    y = np.array([0.3, 1.0, -0.5, 0.2, 0.8])

    def f(amplitude, length, scale):
        args = (y, scale), covariance, (amplitude, length)
        return vm.laplace_marginal(normal_log_likelihood, *args)

    def exact(amplitude, length, scale):
        return vm.multi_normal_lpdf(y, 0.0, vm.add_diag(covariance(amplitude, length), scale**2))

    point = (1.2, 0.7, 0.4)
    found, expected = (vm.value_and_grad(each, (0, 1, 2))(*point) for each in (f, exact))
    close(found[0], expected[0], 1e-13)
    close(found[1], expected[1], 1e-11)
    args = (y, 0.4), covariance, point[:2]
    draws = vm.laplace_latent_rng(normal_log_likelihood, *args, rng=1, size=40_000)
    k = covariance(1.2, 0.7)
    weights = np.linalg.solve(k + 0.16 * np.eye(N), k).T
    close(draws.mean(axis=0), weights @ y, 1e-7, 0.01)
    close(np.cov(draws.T), k - weights @ k, 1e-7, 0.01)


def spread_log_likelihood(theta, y, scale):
    """Pairs of latent variables: a location and the logarithm of a scale. It is not log-concave."""
    return vm.normal_lpdf(y, theta[::2], np.exp(theta[1::2]) * scale)


@pytest.mark.parametrize(("block", "solver"), [(2, 1), (2, 2), (6, 2), (2, 3)])
def test_blocks_and_solvers(block, solver):
    y, x = np.array([2.0, -1.0, 3.0]), np.linspace(0.0, 3.0, 6)

    def f(p, block=block, solver=solver):
        k = lambda a: vm.gp_exp_quad_cov(x, a, 0.7) + 0.3 * np.eye(6)  # noqa: E731
        settings = (np.full(6, 0.1), 1e-8, 100, block, solver, 50, True)
        return vm.laplace_marginal_tol(spread_log_likelihood, (y, p[1]), k, (p[0],), settings)

    p = np.array([1.0, 0.6])
    value, gradient = vm.value_and_grad(f)(p)
    close(value, f(p, 6, 2), 1e-11)
    close(gradient, finite_diff_gradient(f, p), 1e-8)
    if solver == 1:
        # Duals take another route, through the implicit function theorem.
        _, along = vm.jvp(f, (p,), (np.array([1.0, -0.5]),))
        close(along, gradient @ [1.0, -0.5], 1e-10)
        close(vm.hessian(f, p), finite_diff_hessian_auto(f, p), 1e-6)


def test_heavy_tails_and_singular_covariances():
    """Student's likelihood has negative curvature in places; the covariance has rank two."""
    y = np.array([0.1, 4.0, -0.3, 0.2, 6.0])

    def f(p):
        k = lambda a: a * (1.0 + np.outer(X, X))  # noqa: E731
        return vm.laplace_marginal(
            lambda theta, nu: vm.student_t_lpdf(y, nu, theta, 0.5), (p[1],), k, (p[0],)
        )

    p = np.array([1.4, 3.0])
    close(vm.gradient(f, p), finite_diff_gradient(f, p), 1e-8)


def test_latent_draws():
    k = (1.1, 0.8)
    for name, y, *_, eta in BUILT_IN:
        draw = getattr(vm, f"laplace_latent_{name}_rng")
        args = y, INDEX, *eta, OFFSET, covariance, k
        draws = draw(*args, rng=3, size=4)
        assert draws.shape == (4, N)
        by_tol = getattr(vm, f"laplace_latent_tol_{name}_rng")
        again = by_tol(*args, (None, 1e-8, 100, 1, 2, 50), rng=3, size=4)
        close(draws, again, 1e-6, 1e-6)
        assert draw(*args, rng=3).shape == (N,)


def test_from_far_away_and_in_recordings():
    def f(length, settings):
        return vm.laplace_marginal_tol_poisson_log_lpmf(
            COUNTS, INDEX, 0.0, covariance, (3.0, length), settings
        )

    def from_start(start):
        return lambda s: f(s, (start, 1e-8, 100, 1, 1, 50))

    expected = vm.value_and_grad(from_start(None))(0.8)
    for start in (np.full(N, -8.0), np.full(N, 6.0)):
        close_slopes(vm.value_and_grad(from_start(start))(0.8), expected, 1e-12)
    recorded = vm.recorded(from_start(None))
    recorded(0.5)
    close(recorded(0.8), expected, 1e-12)


def poisson(y=(1, 2), index=(0, 1), m=0.0, k=((1.0, 0.5), (0.5, 1.0)), settings=None):
    if settings is None:
        return vm.laplace_marginal_poisson_log_lpmf(y, index, m, np.array, (k,))
    return vm.laplace_marginal_tol_poisson_log_lpmf(y, index, m, np.array, (k,), settings)


def general(f, *args, block=1):
    return vm.laplace_marginal(f, args, np.eye, (2,), block)


P = "laplace_marginal_poisson_log_lpmf"
T = "laplace_marginal_tol_poisson_log_lpmf"


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: poisson(y=[1, -1]), vm.DomainError, f"{P}: y[1] is -1, but must be nonnegative!"),
    (lambda: poisson(y=[1.5, 1.0]), TypeError,
     f"{P}: y has elements of dtype float64, but must have integers!"),
    (lambda: poisson(y=[1]), vm.ShapeError,
     f"{P}: y has 1 elements, but must have 2, one for each element of y_index!"),
    (lambda: poisson(index=[0, 2]), vm.DomainError,
     f"{P}: y_index[1] is 2, but must be in 0, ..., 1!"),
    (lambda: poisson(m=np.zeros(3)), vm.ShapeError,
     f"{P}: m has shape (3,), but must have shape () or (2,)!"),
    (lambda: poisson(m=np.nan), vm.DomainError, f"{P}: m is nan, but must be finite!"),
    (lambda: poisson(k=(1.0, 2.0)), vm.ShapeError,
     f"{P}: the covariance has shape (2,), but must be a square matrix!"),
    (lambda: poisson(k=((1.0, 0.0), (0.0, np.inf))), vm.DomainError,
     f"{P}: the covariance[1, 1] is inf, but must be finite!"),
    (lambda: poisson(k=((1.0, 0.5), (0.4, 1.0))), vm.DomainError,
     f"{P}: the covariance[0, 1] is 0.5, but must be equal to element [1, 0], 0.4!"),
    (lambda: vm.laplace_marginal_bernoulli_logit_lpmf([2], [0], 0.0, np.eye, (1,)), vm.DomainError,
     "laplace_marginal_bernoulli_logit_lpmf: y[0] is 2, but must be 0 or 1!"),
    (lambda: vm.laplace_marginal_neg_binomial_2_log_lpmf([2], [0], -1.0, 0.0, np.eye, (1,)),
     vm.DomainError,
     "laplace_marginal_neg_binomial_2_log_lpmf: eta is -1.0, but must be positive finite!"),
    (lambda: poisson(settings=(None, -1.0, 10, 1, 1, 10)), vm.DomainError,
     f"{T}: tolerance is -1.0, but must be positive and finite!"),
    (lambda: poisson(settings=(None, 1e-8, 0, 1, 1, 10)), vm.DomainError,
     f"{T}: max_num_steps is 0, but must be an integer that is at least 1!"),
    (lambda: poisson(settings=(None, 1e-8, 10, 1, 4, 10)), vm.DomainError,
     f"{T}: solver is 4, but must be 1, 2 or 3!"),
    (lambda: poisson(settings=(np.zeros(3), 1e-8, 10, 1, 1, 10)), vm.ShapeError,
     f"{T}: theta_0 has shape (3,), but must have the shape of the latent variables, (2,)!"),
    (lambda: poisson(settings=([np.inf, 0.0], 1e-8, 10, 1, 1, 10)), vm.DomainError,
     f"{T}: theta_0 has the element inf, but must be finite!"),
    (lambda: poisson(settings=3), TypeError,
     f"{T}: tolerances is 3, but must be a tuple (theta_0, tolerance, max_num_steps,"),
    (lambda: poisson(settings=(None, 1e-8, 1, 1, 1, 10)), vm.DomainError,
     f"{T}: the mode was not found in 1 steps; the next one"),
    (lambda: general(lambda theta: theta), vm.ShapeError,
     "laplace_marginal: the log likelihood has shape (2,), but must be a scalar!"),
    (lambda: general(lambda theta: np.sum(theta) * np.inf), vm.DomainError,
     "laplace_marginal: the log likelihood is nan where the search starts, but must be finite!"),
    (lambda: general(lambda theta: -np.sum(theta) ** 2), vm.DomainError,
     ("laplace_marginal: the Hessian of the log likelihood is not block-diagonal with blocks of 1; "
     "give a hessian_block_size")),
    (lambda: general(np.sum, block=3), vm.DomainError,
     ("laplace_marginal: hessian_block_size is 3, but must divide the number of latent variables, "
     "2!")),
    (lambda: general(3.0), TypeError,
     "laplace_marginal: the function is a float, but must be a function!"),
    (lambda: vm.laplace_marginal(np.sum, (), 3.0, ()), TypeError,
     "laplace_marginal: the covariance function is a float, but must be a function!"),
    (lambda: vm.gradient(lambda s: np.sum(vm.laplace_latent_rng(np.sum, (), lambda s: s * np.eye(2),
        (s,))), 1.0), TypeError,
     ("laplace_latent_rng: an argument carries derivatives, but must be plain numbers, because "
     "draws have no derivative!")),
])  # fmt: skip
def test_errors(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


def test_the_example():
    """The example's Gaussian process on fewer counts: gradient against differences, and draws."""
    path = Path(__file__).parents[2] / "examples" / "latent_counts.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    t, counts = example.simulated(60)
    model = example.model_of(t, counts)
    q, step = np.array([-0.5, 0.1, 0.9]), 1e-4 * np.array([1.0, 0.5, -1.0])
    _, gradient = model.log_density_gradient(q)
    difference = 0.5 * (model.log_density(q + step) - model.log_density(q - step))
    close(gradient @ step, difference, 1e-6)
    drawn = example.rates(t, counts, [[0.6] * 30, [1.1] * 30, [0.9] * 30], seed=1)
    assert np.corrcoef(np.log(drawn.mean(axis=0)), np.log(example.true_rate(t)))[0, 1] > 0.8
