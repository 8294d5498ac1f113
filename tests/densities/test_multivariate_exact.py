"""Densities of matrices, processes, series, factors, counts and categories: 50 digits, Stan,
identities, programs, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal
from densities.multivariate import ARGUMENTS, CUTS, DENSITIES, MU, SERIES, SPD, SPD_2, P, S, W
from densities.test_categorical import elements, multinomial
from densities.test_matrix_variate import inv_wishart, lkj, trace, wishart
from functions.matrices import worst_error

import varmat as vm

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
        total = mp.fsum(map(mp.exp, gamma))
        return multinomial(n)(gamma.apply(lambda x: mp.exp(x) / total))

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


def row(name, exact, *args):
    return DENSITIES[name], exact, [*(args or ARGUMENTS[name][0])]


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
