"""Derivatives of negative binomial log masses in the precision: all digits also where it is large,
and where its terms nearly cancel.
"""

import itertools
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from comparing import close
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.testing import coverage, expect_ad

# Counts up to a thousand, for the form of fewer steps, and larger ones.
MODERATE, LARGE = (0, 1, 2, 5, 40, 1000), (0, 1, 7, 1001, 10**4)
MEANS = (1e-6, 1e-3, 0.37, 2.1, 90.0, 1e4, 1e6)
PRECISIONS = (1e-3, 0.6, 11.0, 13.0, 249.0, 251.0, 2.4e5, 1e8, 1e10)


def points(counts):
    """The grid, as columns; every second of the large counts' points."""
    grid = [*itertools.product(counts, MEANS, PRECISIONS)]
    return np.array(grid[:: 1 if counts is MODERATE else 2]).T


@cache
def exact(n, mu, phi):
    """The first derivative in the precision, and the second ones, in closed form."""
    n, mu, phi = map(mp.mpf, (n, mu, phi))
    in_mu_phi = (n - mu) / (mu + phi) ** 2
    rest = mp.digamma(n + phi) - mp.digamma(phi)
    curvature = mp.psi(1, n + phi) - mp.psi(1, phi)
    return {
        "phi": rest - mp.log1p(mu / phi) + (mu - n) / (mu + phi),
        "mu phi": in_mu_phi,
        "phi phi": curvature + mu / phi / (mu + phi) + in_mu_phi,
    }


def true(key, counts, means, precisions):
    with mp.workdps(50):
        each = zip(
            *(np.asarray(x, float).tolist() for x in (counts, means, precisions)), strict=True
        )
        return np.array([float(exact(*point)[key]) for point in each])


def worst(found, expected):
    return float(np.max(np.abs(found / expected - 1.0)))


def in_log_mean(function):
    """The form of the log mean, as a function of the mean."""
    return lambda n, mu, phi: function(n, np.log(mu), phi)


def regression(n, mu, phi):
    x = np.zeros((np.size(n), 1))
    return vm.neg_binomial_2_log_glm_lpmf(n, x, np.log(mu), np.zeros(1), phi)


# The logarithm of a mean is rounded, which is an error of the mean of some 1e-15.
FORMS = {
    "mean": (vm.neg_binomial_2_lpmf, 1e-12),
    "log mean": (in_log_mean(vm.neg_binomial_2_log_lpmf), 1e-10),
    "regression": (regression, 1e-10),
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
@pytest.mark.parametrize("counts", [MODERATE, LARGE], ids=["moderate", "large"])
def test_of_arrays(form, counts):
    function, bound = FORMS[form]
    n, mu, phi = points(counts)
    expected = true("phi", n, mu, phi)
    found = [vm.gradient(lambda x: function(n, mu, x), phi)]
    if form != "regression":
        row = vm.neg_binomial_2_lpmf if form == "mean" else vm.neg_binomial_2_log_lpmf
        second = mu if form == "mean" else np.log(mu)
        found.append(vm.gradient(lambda x: np.sum(row.pointwise(n, second, x)), phi))
    error = max(worst(each, expected) for each in found)
    assert error < bound
    if form == "mean":
        coverage.note(vm.neg_binomial_2_lpmf, mpmath=error)


@every_form
def test_of_numbers_and_forward(form):
    function, bound = FORMS[form]
    columns = points(MODERATE)[:, ::5]
    found, forward = [], []
    for n, mu, phi in zip(*columns.tolist(), strict=True):
        of_phi = lambda x, n=n, mu=mu: function(n, mu, x)  # noqa: E731
        found.append(vm.gradient(of_phi, phi))
        forward.append(vm.jvp(of_phi, (phi,), (1.0,))[1])
    expected = true("phi", *columns)
    assert max(worst(found, expected), worst(forward, expected)) < bound


@pytest.mark.parametrize("form", ["mean", "log mean"])
@pytest.mark.parametrize("phi", PRECISIONS)
def test_of_one_precision(form, phi):
    """Then counts are tallied. The means are common, rare, of both kinds, or one."""
    function, bound = FORMS[form]
    n = np.array([0.0, 0.0, 1.0, 2.0, 5.0, 1.0, 40.0, 3.0])
    for mu in (n + 0.5, 1e-3 * phi * (n + 0.5), np.geomspace(1e-5, 1e5, n.size), np.float64(2.5)):
        means = np.broadcast_to(mu, n.shape)
        expected = true("phi", n, means, np.full(n.size, phi))
        found = vm.gradient(lambda x, mu=mu: function(n, mu, x), phi)
        assert abs(found - sum(expected)) < bound * np.max(np.abs(expected))


@every_form
@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_recorded(form, runner):
    function, bound = FORMS[form]
    for counts in (MODERATE, LARGE):
        n, mu, phi = points(counts)
        recorded = vm.recorded(lambda x, n=n, mu=mu: function(n, mu, x), runner=runner)
        recorded(phi[::-1])
        assert worst(recorded(phi)[1], true("phi", n, mu, phi)) < bound


SECOND = [
    (0, 1e-3, 1e5), (1, 1e-6, 14.0), (1, 0.3, 1e8), (3, 2.5, 1e6), (40, 7.0, 5.0),
    (2000, 1900.0, 1e4),
]  # fmt: skip


@every_form
@pytest.mark.parametrize("point", SECOND)
def test_second_derivatives(form, point):
    """Either order of the differentiations, also where they lost the square of the precision."""
    n, mu, phi = point

    def log_mass(x):
        if form == "mean":
            return vm.neg_binomial_2_lpmf(n, x[0], x[1])
        if form == "log mean":
            return vm.neg_binomial_2_log_lpmf(n, x[0], x[1])
        return vm.neg_binomial_2_log_glm_lpmf([n], np.zeros((1, 1)), x[0], np.zeros(1), x[1])

    hessian = vm.hessian(log_mass, np.array([mu if form == "mean" else np.log(mu), phi]))
    (mixed,), (curvature,) = (true(key, [n], [mu], [phi]) for key in ("mu phi", "phi phi"))
    mixed *= 1.0 if form == "mean" else mu
    close(hessian[0, 1], mixed, 2e-12)
    close(hessian[1, 0], mixed, 2e-12)
    close(hessian[1, 1], curvature, 2e-12)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_all_routes_agree_where_the_precision_is_large(n):
    for phi in (30.0, 400.0):
        expect_ad(vm.neg_binomial_2_lpmf, n, np.array([0.2, 3.0]), phi)
        expect_ad(vm.neg_binomial_2_log_lpmf, n, 0.7, np.array([phi, 2.0 * phi]))
