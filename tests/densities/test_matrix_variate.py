"""Densities of matrices: 50 digits, identities, refusals."""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal
from densities.multivariate import CORRELATION, SPD, SPD_2, B, normalised
from functions.matrices import worst_error

import varmat as vm
from varmat.densities.lkj import lkj_corr_cholesky_lpdf, lkj_corr_lpdf
from varmat.densities.wishart import inv_wishart_lpdf, wishart_lpdf


def log_gamma(k, x):
    """Return the logarithm of the multivariate gamma function of dimension k."""
    return mp.mpf(k * (k - 1)) / 4 * mp.log(mp.pi) + mp.fsum(
        mp.loggamma(x - mp.mpf(j) / 2) for j in range(k)
    )


def trace(m):
    return mp.fsum(m[i, i] for i in range(m.rows))


def wishart(w, nu, s):
    k = w.rows
    value = (
        (nu - k - 1) * mp.log(mp.det(w))
        - trace(s**-1 * w)
        - nu * mp.log(mp.det(s))
        - nu * k * mp.log(2)
    )
    return value / 2 - log_gamma(k, nu / 2)


def inv_wishart(w, nu, s):
    k = w.rows
    value = (
        nu * mp.log(mp.det(s))
        - (nu + k + 1) * mp.log(mp.det(w))
        - trace(s * w**-1)
        - nu * k * mp.log(2)
    )
    return value / 2 - log_gamma(k, nu / 2)


def lkj_constant(eta, k):
    """Return minus the logarithm of the integral of det**(eta - 1), which is a product of beta
    functions along the vine.
    """
    total = mp.mpf(0)
    for j in range(1, k):
        b = eta + mp.mpf(k - 1 - j) / 2
        total -= (2 * eta - 2 + k - j) * (k - j) * mp.log(2) + (k - j) * mp.log(mp.beta(b, b))
    return total


def lkj(sigma, eta):
    return (eta - 1) * mp.log(mp.det(sigma)) + lkj_constant(eta, sigma.rows)


def lkj_cholesky(factor, eta):
    k = factor.rows
    return lkj_constant(eta, k) + mp.fsum(
        (k - i - 3 + 2 * eta) * mp.log(factor[i, i]) for i in range(1, k)
    )


def lkj_at_one(eta):
    factor = mp.matrix(CORRELATION.tolist())
    return lkj(factor * factor.T, eta)


BIG = normalised(np.sin(np.arange(49.0)).reshape(7, 7))
EXACT = {
    "wishart": (wishart_lpdf, wishart, [SPD, 4.2, SPD_2]),
    "wishart, large nu": (wishart_lpdf, wishart, [SPD, 200.0, SPD_2]),
    "inv_wishart": (inv_wishart_lpdf, inv_wishart, [SPD, 4.2, SPD_2]),
    "inv_wishart, small nu": (inv_wishart_lpdf, inv_wishart, [SPD, 2.01, SPD_2]),
    **{f"lkj_corr, {eta}": (lkj_corr_lpdf, lkj, [CORRELATION @ CORRELATION.T, eta]) for eta in (0.6,
        1.7, 50.0)},
    # At 1 Stan takes the derivative of another formula.
    "lkj_corr at 1": (lambda eta: lkj_corr_lpdf(CORRELATION @ CORRELATION.T, eta), lkj_at_one,
        [1.0]),
    **{f"lkj_corr_cholesky, {x}": (lkj_corr_cholesky_lpdf, lkj_cholesky,
        [CORRELATION, x]) for x in (0.6, 1.0, 1.7, 50.0)},
    "lkj_corr_cholesky, 7": (lkj_corr_cholesky_lpdf, lkj_cholesky, [BIG, 2.5]),
    "lkj_corr, 7": (lkj_corr_lpdf, lkj, [BIG @ BIG.T, 2.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args, symmetric="cholesky" not in name) < 3e-14


@pytest.mark.parametrize("k", [0, 1])
def test_trivial_correlation_matrices(k):
    for f in (lkj_corr_lpdf, lkj_corr_cholesky_lpdf):
        value, (matrix, eta) = vm.value_and_grad(f, (0, 1))(np.eye(k), 2.0)
        assert (value, eta) == (0.0, 0.0)
        equal(matrix, np.eye(k) if f is lkj_corr_lpdf else np.zeros((k, k)))


def test_gradients_lie_in_the_lower_triangle():
    for f in (wishart_lpdf, inv_wishart_lpdf):
        _, (w, _, s) = vm.value_and_grad(f, (0, 1, 2))(SPD, 4.2, SPD_2)
        assert not np.triu(w, 1).any()
        assert not np.triu(s, 1).any()
    correlation = CORRELATION @ CORRELATION.T
    assert not np.triu(vm.gradient(lambda c: lkj_corr_lpdf(c, 1.7), correlation), 1).any()
    through_factor = vm.gradient(lambda b: lkj_corr_lpdf((x := normalised(b)) @ x.T, 1.7), B)
    directly = vm.gradient(lambda b: 1.4 * np.sum(np.log(np.diagonal(normalised(b)))), B)
    close(through_factor, directly, 0.0, 1e-13)


@pytest.mark.parametrize("f", [lkj_corr_lpdf, lkj_corr_cholesky_lpdf])
def test_a_shape_near_zero(f):
    """For two rows the density is a beta density whose shapes are both eta. It behaves like
    log(eta) near zero.
    """
    close(f(np.eye(2), 1e-20), math.log(1e-20), 1e-14)


@pytest.mark.parametrize(("f", "sign"), [(vm.wishart_lpdf, 1.0), (vm.inv_wishart_lpdf, -1.0)])
def test_the_trace_is_dropped_where_only_the_degrees_of_freedom_vary(f, sign):
    w, s, nu = np.diag([2.0, 0.5]), np.diag([1.0, 3.0]), 4.2
    value, _ = vm.value_and_grad(f.proportional, 1)(w, nu, s)
    log_w, log_s = 0.0, math.log(3.0)
    normaliser = (
        nu * math.log(2) + 0.5 * math.log(math.pi) + math.lgamma(nu / 2) + math.lgamma((nu - 1) / 2)
    )
    expected = 0.5 * (sign * nu - 3.0) * log_w - sign * 0.5 * nu * log_s - normaliser
    close(value, expected, 1e-13)
