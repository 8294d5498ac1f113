"""Densities of matrices, processes, series, factors, counts and categories: 50 digits, Stan,
identities, programs, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal, refuses
from densities.multivariate import (
    ARGUMENTS,
    CUTS,
    DENSITIES,
    FACTOR,
    FACTOR_2,
    MU,
    SERIES,
    SPD,
    SPD_2,
    P,
    S,
    W,
    expect_refusal,
)
from densities.test_categorical import elements
from densities.test_matrix_variate import inv_wishart, lkj, trace, wishart
from functions.matrices import worst_error
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.densities.density import HALF_LOG_TWO_PI

INF = math.inf


def tri(x):
    """Return the lower triangle of a factor, which is all that a density reads."""
    return mp.matrix([[x[i, j] if j <= i else 0 for j in range(x.cols)] for i in range(x.rows)])


def jacobian(y):
    """Return the log-Jacobian of the map from a factor to its product with its transpose."""
    k = y.rows
    return k * mp.log(2) + mp.fsum((k - i) * mp.log(y[i, i]) for i in range(k))


def of_factors(exact):
    return lambda y, nu, s: exact(tri(y) * tri(y).T, nu, tri(s) * tri(s).T) + jacobian(y)


def log_determinant(x):
    return mp.log(mp.det(x))


def matrix_normal(y, mu, sigma, d):
    m, n, r = y.rows, y.cols, y - mu
    value = (
        n * log_determinant(sigma)
        + m * log_determinant(d)
        - m * n * mp.log(2 * mp.pi)
        - trace(d * r.T * sigma * r)
    )
    return value / 2


def gp(y, sigma, w):
    k, n = y.rows, y.cols
    value = n * mp.fsum(map(mp.log, w)) - k * log_determinant(sigma) - k * n * mp.log(2 * mp.pi)
    return (value - trace(mp.diag(list(w)) * y * sigma**-1 * y.T)) / 2


def dlm(y, f, g, v, w, m0, c0):
    """Evaluate the model as one normal distribution of all observations. Its covariance follows
    from that of the states.
    """
    v = v if v.cols == f.cols > 1 else mp.diag(list(v))
    r, times = y.rows, y.cols
    means, covariances = [], []
    mean, covariance = m0, c0
    for _ in range(times):
        mean, covariance = g * mean, g * covariance * g.T + w
        means.append(f.T * mean)
        covariances.append(covariance)
    sigma, residuals = mp.zeros(r * times), mp.zeros(r * times, 1)
    for s in range(times):
        for t in range(s, times):
            block = f.T * g ** (t - s) * covariances[s] * f + (v if s == t else 0 * v)
            for i in range(r):
                residuals[s * r + i] = y[i, s] - means[s][i]
                for j in range(r):
                    sigma[t * r + i, s * r + j] = sigma[s * r + j, t * r + i] = block[i, j]
    return (
        -(
            log_determinant(sigma)
            + (residuals.T * sigma**-1 * residuals)[0]
            + r * times * mp.log(2 * mp.pi)
        )
        / 2
    )


def lkj_cov(y, mu, sigma, eta):
    k = y.rows
    sds = [mp.sqrt(y[i, i]) for i in range(k)]
    value = lkj(
        mp.matrix(k, k)
        + mp.matrix([[y[i, j] / sds[i] / sds[j] for j in range(k)] for i in range(k)]),
        eta,
    )
    for sd, m, s in zip(sds, mu, sigma, strict=True):
        value -= mp.log(s * sd) + mp.log(2 * mp.pi) / 2 + ((mp.log(sd) - m) / s) ** 2 / 2
    return value


def dirichlet_multinomial(n):
    def exact(alpha):
        value = mp.mpf(0)
        for i, row in enumerate(np.atleast_2d(n).tolist()):
            a = elements(alpha, i)
            value += (
                mp.loggamma(mp.fsum(a))
                + mp.loggamma(sum(row) + 1)
                - mp.loggamma(mp.fsum(a) + sum(row))
            )
            value += mp.fsum(
                mp.loggamma(m + b) - mp.loggamma(b) - mp.loggamma(m + 1)
                for m, b in zip(row, a, strict=True)
            )
        return value

    return exact


def multinomial_logit(n):
    def exact(gamma):
        total = mp.log(mp.fsum(map(mp.exp, gamma)))
        value = mp.loggamma(sum(n) + 1)
        return value + mp.fsum(
            m * (x - total) - mp.loggamma(m + 1) for m, x in zip(n, gamma, strict=True)
        )

    return exact


def probit(n):
    def below(x):
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def exact(eta, cuts):
        value = mp.mpf(0)
        for i, category in enumerate(np.ravel(n).tolist()):
            x = eta if isinstance(eta, mp.mpf) else eta[i]
            c = [-mp.inf, *elements(cuts, i, 3), mp.inf]
            low, high = c[category - 1] - x, c[category] - x
            # Subtract probabilities of the nearer tail, which keeps the digits.
            mass = below(high) - below(low) if low + high < 0 else below(-low) - below(-high)
            value += mp.log(mass)
        return value

    return exact


def softmax_regression(y):
    def exact(x, alpha, beta):
        value = mp.mpf(0)
        for i, category in enumerate(y.tolist()):
            eta = [
                alpha[k] + mp.fsum(x[i, j] * beta[j, k] for j in range(x.cols))
                for k in range(beta.cols)
            ]
            value += eta[category - 1] - mp.log(mp.fsum(map(mp.exp, eta)))
        return value

    return exact


def ordered_regression(y):
    def exact(x, beta, cuts):
        value = mp.mpf(0)
        for i, category in enumerate(y.tolist()):
            eta, c = mp.fsum(x[i, j] * beta[j] for j in range(x.cols)), [*cuts]
            above = [1, *(1 / (1 + mp.exp(each - eta)) for each in c), 0]
            value += mp.log(above[category - 1] - above[category])
        return value

    return exact


def discrete(name):
    n = ARGUMENTS[name][0][0]
    return (lambda *args: DENSITIES[name](n, *args)), n, [*ARGUMENTS[name][0][1:]]


def row(name, exact, *args):
    return DENSITIES[name], exact, [*(args or ARGUMENTS[name][0])]


def discrete_row(name, exact, *args):
    f, n, others = discrete(name)
    return f, exact(n), [*(args or others)]


COUNTS = np.array([[3, 1, 4], [0, 200, 7]])
N = np.array([1, 4, 2])
EXACT = {
    "wishart_cholesky": row("wishart_cholesky_lpdf", of_factors(wishart)),
    "inv_wishart_cholesky": row("inv_wishart_cholesky_lpdf", of_factors(inv_wishart)),
    "lkj_cov": row("lkj_cov_lpdf", lkj_cov),
    "matrix_normal_prec": row("matrix_normal_prec_lpdf", matrix_normal),
    "multi_gp": row("multi_gp_lpdf", gp),
    "multi_gp_cholesky": row("multi_gp_cholesky_lpdf",
                             lambda y, factor, w: gp(y, tri(factor) * tri(factor).T, w)),
    "gaussian_dlm": row("gaussian_dlm_obs_lpdf", dlm, SERIES, SERIES[:, :2], SERIES[:, 1:] / 3, S,
                        SPD_2[:2, :2], W, SPD[1:, 1:]),
    "gaussian_dlm, variances": row("gaussian_dlm_obs_lpdf", dlm, SERIES, SPD[1:].T, SPD / 9, P[:2],
        SPD_2, MU, SPD),
    "dirichlet_multinomial": (lambda a: vm.dirichlet_multinomial_lpmf(COUNTS, a),
                              dirichlet_multinomial(COUNTS), [P]),
    "dirichlet_multinomial, rows": (lambda a: vm.dirichlet_multinomial_lpmf(COUNTS, a),
        dirichlet_multinomial(COUNTS), [np.stack([P, [2.0, 1e5, 1e-3]])]),
    "dirichlet_multinomial, large": (lambda a: vm.dirichlet_multinomial_lpmf([10**9, 10**7, 1], a),
        dirichlet_multinomial([10**9, 10**7, 1]), [P]),
    "multinomial_logit": (lambda g: vm.multinomial_logit_lpmf([3, 0, 40], g),
                          multinomial_logit([3, 0, 40]), [MU]),
    "multinomial_logit, far": (lambda g: vm.multinomial_logit_lpmf([3, 0, 40], g),
                               multinomial_logit([3, 0, 40]), [np.array([900.0, -800.0, 31.0])]),
    "ordered_probit": (lambda eta, c: vm.ordered_probit_lpmf(N, eta, c), probit(N), [MU, CUTS]),
    **{
        f"ordered_probit, {category} at {eta}": (
            lambda eta, c, category=category: vm.ordered_probit_lpmf(category, eta, c),
             probit(category), [eta, CUTS],
        )
        for category, eta in ((1, 30.0), (1, 0.3), (2, 30.0), (2, -30.0), (2, 0.3), (4, -30.0),
         (4, 0.3))
    },
    "ordered_probit, narrow": (lambda eta, c: vm.ordered_probit_lpmf(2, eta, c), probit(2),
                               [5.0, np.array([0.0, 1e-9, 1.0])]),
    "categorical_logit_glm": discrete_row("categorical_logit_glm_lpmf", softmax_regression),
    "ordered_logistic_glm": discrete_row("ordered_logistic_glm_lpmf", ordered_regression),
    "ordered_logistic_glm, far": discrete_row("ordered_logistic_glm_lpmf", ordered_regression,
        10.0 * ARGUMENTS["ordered_logistic_glm_lpmf"][0][1], 4.0 * MU, CUTS),
}  # fmt: skip
SYMMETRIC = ("lkj_cov", "matrix_normal_prec", "multi_gp", "gaussian_dlm", "gaussian_dlm, variances")


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args, symmetric=name in SYMMETRIC) < 3e-14


# --- identities ---


def test_a_matrix_normal_is_a_normal_vector():
    y, mu, sigma, d = ARGUMENTS["matrix_normal_prec_lpdf"][0]
    expected = vm.multi_normal_prec_lpdf(y.ravel(), mu.ravel(), np.kron(sigma, d))
    close(vm.matrix_normal_prec_lpdf(y, mu, sigma, d), expected, 1e-14)


def test_processes_are_normal_vectors():
    y, sigma, w = ARGUMENTS["multi_gp_lpdf"][0]
    expected = sum(
        vm.multi_normal_lpdf(each, 0.0, sigma / scale) for each, scale in zip(y, w, strict=True)
    )
    close(vm.multi_gp_lpdf(y, sigma, w), expected, 1e-14)
    close(vm.multi_gp_cholesky_lpdf(y, np.linalg.cholesky(sigma), w), expected, 1e-14)


def test_variances_are_a_diagonal_covariance():
    args = [SERIES, SPD[1:].T, SPD_2 / 9, P[:2], SPD_2, MU, SPD]
    diagonal = [*args[:3], np.diag(P[:2]), *args[4:]]
    value, gradient = vm.value_and_grad(vm.gaussian_dlm_obs_lpdf, 3)(*args)
    other = vm.value_and_grad(vm.gaussian_dlm_obs_lpdf, 3)(*diagonal)
    assert value == other[0]
    equal(gradient, np.diagonal(other[1]))


def test_states_may_be_known_exactly():
    """The states may have no noise. Nor need the observations, if the states have some."""
    zero = np.zeros((2, 2))
    value = vm.gaussian_dlm_obs_lpdf(SERIES, np.eye(2), np.eye(2), S, zero, W, 1e-30 * np.eye(2))
    close(value, vm.multi_normal_lpdf(SERIES.T, W, S), 1e-13)
    one = vm.gaussian_dlm_obs_lpdf(SERIES[:, :1], np.eye(2), np.eye(2), np.zeros(2), zero, W, S)
    close(one, vm.multi_normal_lpdf(SERIES[:, 0], W, S), 1e-13)
    with pytest.raises(
        np.linalg.LinAlgError,
        match=r"^gaussian_dlm_obs_lpdf: F.T @ .* \+ V .* must be positive definite!",
    ):
        vm.gaussian_dlm_obs_lpdf(SERIES, np.zeros((2, 2)), np.eye(2), zero, zero, W, S)


def test_covariances_have_two_parts():
    sds = np.sqrt(np.diagonal(SPD))
    expected = vm.lognormal_lpdf(sds, MU, P) + vm.lkj_corr_lpdf(SPD / np.outer(sds, sds), 1.7)
    close(vm.lkj_cov_lpdf(SPD, MU, P, 1.7), expected, 1e-13)


def test_masses_add_up():
    counts = [np.array([i, j, 4 - i - j]) for i in range(5) for j in range(5 - i)]
    close(math.fsum(math.exp(vm.dirichlet_multinomial_lpmf(n, P)) for n in counts), 1.0, 1e-14)
    close(math.fsum(math.exp(vm.multinomial_logit_lpmf(n, MU)) for n in counts), 1.0, 1e-14)
    found = math.fsum(math.exp(vm.ordered_probit_lpmf(n, 0.3, CUTS)) for n in range(1, 5))
    close(found, 1.0, 1e-14)
    close(vm.multinomial_logit_lpmf([3, 1, 4], np.log(P)), vm.multinomial_lpmf([3, 1, 4], P), 1e-14)


def test_one_row_is_a_normal():
    y = np.array([[0.7]])
    expected = -0.5 * 0.49 * 6.0 + 0.5 * math.log(6.0) - HALF_LOG_TWO_PI
    close(vm.matrix_normal_prec_lpdf(y, 0.0, np.array([[2.0]]), np.array([[3.0]])), expected, 1e-14)


# --- programs ---

# Densities whose programs have no step that calls Python.
STRAIGHT = [
    "categorical_logit_glm_lpmf", "gaussian_dlm_obs_lpdf", "inv_wishart_cholesky_lpdf",
    "matrix_normal_prec_lpdf", "multi_gp_cholesky_lpdf", "multi_gp_lpdf", "multinomial_logit_lpmf",
    "ordered_logistic_glm_lpmf", "ordered_probit_lpmf", "wishart_cholesky_lpdf",
]  # fmt: skip


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("name", STRAIGHT)
def test_recorded_without_python(name, runner):
    f, (args, others) = DENSITIES[name], ARGUMENTS[name]
    active = tuple(
        i for i, x in enumerate(others) if (x is not None and i != 1) or name.endswith("lpdf")
    )
    recorded = vm.recorded(f, active, runner=runner)
    for point in (
        args,
        [x if other is None else other for x, other in zip(args, others, strict=True)],
    ):
        point = [args[i] if i not in active else x for i, x in enumerate(point)]
        value, gradients = recorded(*point)
        expected = vm.value_and_grad(f, active)(*point)
        close(value, expected[0], 1e-13)
        close(gradients, expected[1], 1e-12, 1e-13)
    assert not recorded.program.python_steps()


@pytest.mark.parametrize(("name", "place", "bad"), [
    ("multi_gp_lpdf", 1, -SPD),                   ("wishart_cholesky_lpdf", 1, 0.5),
    ("gaussian_dlm_obs_lpdf", 3, -P[:1]),         ("ordered_probit_lpmf", 2, CUTS[::-1]),
    ("matrix_normal_prec_lpdf", 2, -S),           ("ordered_logistic_glm_lpmf", 3, CUTS[::-1]),
])  # fmt: skip
def test_recorded_refusals(name, place, bad):
    f, args = DENSITIES[name], list(ARGUMENTS[name][0])
    recorded = vm.recorded(f, place)
    recorded(*args)
    args[place] = bad
    refuses(vm.DomainError, rf"^{name}: ", recorded, *args)


# --- refusals ---

_GP, _DLM = "multi_gp_lpdf", "gaussian_dlm_obs_lpdf"
GOOD = [SERIES, S, S, P[:2], S, W, S]


def dlm_with(place, bad):
    return tuple(bad if i == place else x for i, x in enumerate(GOOD))


REFUSALS = [
    ("wishart_cholesky_lpdf", (FACTOR, 1.5, FACTOR_2), vm.DomainError,
     "Degrees of freedom parameter is 1.5, but must be finite and greater than 2!"),
    ("wishart_cholesky_lpdf", (FACTOR, 4.0, -FACTOR_2), vm.DomainError,
     f"Cholesky Scale matrix[0, 0] is {-float(FACTOR_2[0, 0])!r}, but must be positive!"),
    ("inv_wishart_cholesky_lpdf", (np.eye(2), 4.0, FACTOR), vm.ShapeError,
    ("Cholesky random variable has shape (2, 2), but must have the shape of Cholesky Scale "
    "matrix, (3, "
    "3)!")),
    ("lkj_cov_lpdf", (SPD, W, P, 1.0), vm.ShapeError,
     "Location parameter has shape (2,), but must be a scalar or have the shape (3,)!"),
    ("lkj_cov_lpdf", (SPD, MU, -P, 1.0), vm.DomainError,
     "Scale parameter[0] is -0.2, but must be positive finite!"),
    ("dirichlet_multinomial_lpmf", (np.array([1, 2, 3]), np.array([1.0, INF, 1.0])), vm.DomainError,
     "Prior size parameter[1] is inf, but must be positive finite!"),
    ("dirichlet_multinomial_lpmf", (np.array([1, 2]), P), vm.ShapeError,
    ("Number of trials variable has shape (2,), but must match Prior size parameter, of shape "
    "(3,)!")),
    ("multinomial_logit_lpmf", (np.array([1, 2]), np.array([0.0, -INF])), vm.DomainError,
     "log-probabilities parameter[1] is -inf, but must be finite!"),
    ("ordered_probit_lpmf", (1, INF, CUTS), vm.DomainError,
     "Location parameter is inf, but must be finite!"),
    ("ordered_probit_lpmf", (np.array([1, 2]), MU, CUTS), vm.ShapeError,
     "Location parameter has shape (3,), but must broadcast with (2,)!"),
    ("matrix_normal_prec_lpdf", (SERIES, 0.0, SPD, SPD), vm.ShapeError,
    ("Random variable has shape (2, 3), but must have the shape (3, 3), as the precision matrices "
    "say!")),
    ("matrix_normal_prec_lpdf", (SERIES, W, S, SPD), vm.ShapeError,
     "Location parameter has shape (2,), but must be a scalar or have the shape (2, 3)!"),
    ("matrix_normal_prec_lpdf", (SERIES, 0.0, np.array([[1.0, 2.0], [2.0, 1.0]]), SPD),
     np.linalg.LinAlgError,
     "Row precision matrix has the eigenvalue -1, but must be positive definite!"),
    (_GP, (SERIES, SPD, -P[:2]), vm.DomainError,
     "Kernel scales[0] is -0.2, but must be positive finite!"),
    (_GP, (SERIES, S, P[:2]), vm.ShapeError,
    ("Random variable has shape (2, 3), but must be a matrix with 2 columns, as many as "
     "Covariance "
    "matrix has rows!")),
    (_GP, (SERIES, SPD, P), vm.ShapeError,
    ("Kernel scales has shape (3,), but must have the shape (2,): one for each row of Random "
    "variable!")),
    (_DLM, dlm_with(2, SPD), vm.ShapeError,
     "G has shape (3, 3), but must have the shape (2, 2), as F has (2, 2)!"),
    (_DLM, dlm_with(3, -P[:2]), vm.DomainError,
     "V[0] is -0.2, but must be nonnegative and finite!"),
    (_DLM, dlm_with(3, 1.0), vm.ShapeError,
     "V has shape (), but must be a matrix, or a vector: its diagonal!"),
    (_DLM, dlm_with(4, -np.eye(2)), np.linalg.LinAlgError,
     "W has the eigenvalue -1, but must be positive semidefinite!"),
    (_DLM, dlm_with(6, -np.eye(2)), np.linalg.LinAlgError,
     "C0 has the eigenvalue -1, but must be positive definite!"),
    (_DLM, dlm_with(0, W), vm.ShapeError, "y has shape (2,), but must be a matrix!"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "error", "message"),
    REFUSALS,
    ids=[f"{name}: {m}" for name, _, _, m in REFUSALS],
)
def test_refusals(name, args, error, message):
    expect_refusal(DENSITIES[name], args, error, message)


CATEGORIES, X = np.array([1, 2, 3]), np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.8]])
GLM_REFUSALS = [
    ("categorical_logit_glm_lpmf", (CATEGORIES, X, MU, np.ones(3)), vm.ShapeError,
    ("Weight vector has shape (3,), but must be a matrix with 2 rows and a column for each "
    "category!")),
    ("categorical_logit_glm_lpmf", (CATEGORIES, X, W, np.ones((2, 3))), vm.ShapeError,
     "Intercept has shape (2,), but must have the shape (3,)!"),
    ("categorical_logit_glm_lpmf", (CATEGORIES[:2], X, MU, np.ones((2, 3))), vm.ShapeError,
     "Vector of dependent variables has shape (2,), but must be a scalar or have the shape (3,)!"),
    ("ordered_logistic_glm_lpmf", (CATEGORIES, X, MU, CUTS), vm.ShapeError,
     "Weight vector has shape (3,), but must have the shape (2,)!"),
    ("ordered_logistic_glm_lpmf", (CATEGORIES, X, W, np.stack([CUTS, CUTS])), vm.ShapeError,
     "Cut-points has shape (2, 3), but must be a vector!"),
    ("ordered_logistic_glm_lpmf", (CATEGORIES, np.ones((1, 2, 2)), W, CUTS), vm.ShapeError,
    ("Matrix of independent variables has shape (1, 2, 2), but must be a matrix, or a vector: one "
    "row!")),
    ("ordered_logistic_glm_lpmf", (CATEGORIES, X, W, CUTS[::-1]), vm.DomainError,
     "Cut-points[1] is 0.2, but must be greater than Cut-points[0], 1.5!"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "error", "message"),
    GLM_REFUSALS,
    ids=[f"{n}: {m}" for n, _, _, m in GLM_REFUSALS],
)
def test_refusals_of_regressions(name, args, error, message):
    expect_refusal(DENSITIES[name], args, error, message)


@pytest.mark.parametrize("name", ["categorical_logit_glm_lpmf", "ordered_logistic_glm_lpmf"])
def test_many_blocks(name):
    """With rows of several blocks the result equals the density of the linear predictors."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(9001, 3)), rng.integers(1, 5, 9001)
    alpha, beta, weights = rng.normal(size=4), rng.normal(size=(3, 4)), rng.normal(size=3)
    if name.startswith("cat"):
        args = (y, x, alpha, beta)

        def one(x, a, b):
            return vm.categorical_logit_lpmf(y, a + x @ b)
    else:
        args = (y, x, weights, CUTS)

        def one(x, b, c):
            return vm.ordered_logistic_lpmf(y, x @ b, c)

    value, gradients = vm.value_and_grad(DENSITIES[name], (1, 2, 3))(*args)
    expected = vm.value_and_grad(one, (0, 1, 2))(*args[1:])
    close(value, expected[0], 1e-13)
    close(DENSITIES[name](*args), value, 1e-14)
    for a, b in zip(gradients, expected[1], strict=True):
        close(a, b, 1e-12, 1e-12 * np.max(np.abs(b)))
