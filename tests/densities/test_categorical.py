"""Densities on the simplex, of counts, of categories and of ordered categories: 50 digits,
identities, limits, refusals.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from comparing import close, equal, refuses
from densities.multivariate import CUTS, CUTS_2, ETA, MU, P, Y
from functions.matrices import worst_error

import varmat as vm
from varmat.densities.categorical import categorical_logit_lpmf, categorical_lpmf
from varmat.densities.ordered import ordered_logistic_lpmf
from varmat.densities.simplex import dirichlet_lpdf, multinomial_lpmf

INF = math.inf
ALPHA = np.array([1.2, 0.7, 3.1])
THETAS = np.array([[0.25, 0.25, 0.5], [1e-9, 0.25, 0.75 - 1e-9]])
ALPHAS = np.array([[1.0, 0.5, 80.0], [2.5, 1e-3, 1.0]])
COUNTS = np.array([[3, 1, 4], [0, 2, 7]])
N = np.array([1, 3, 3, 2])


def elements(x, i, k=3):
    """Return the elements of a vector, or of row i of a matrix, with None outside."""
    return [x[i, j] if x.cols > 1 else x[j] for j in range(k)]


def rows(*arguments):
    return range(max(x.rows if x.cols > 1 else 1 for x in arguments))


def dirichlet(theta, alpha):
    total = mp.mpf(0)
    for i in rows(theta, alpha):
        t, a = elements(theta, i), elements(alpha, i)
        total += mp.loggamma(mp.fsum(a)) + mp.fsum(
            (b - 1) * mp.log(x) - mp.loggamma(b) for x, b in zip(t, a, strict=True)
        )
    return total


def multinomial(counts):
    def exact(theta):
        total = mp.mpf(0)
        for row in np.atleast_2d(counts).tolist():
            total += mp.loggamma(sum(row) + 1)
            total += mp.fsum(
                n * mp.log(t) - mp.loggamma(n + 1)
                for n, t in zip(row, elements(theta, 0), strict=True)
            )
        return total

    return exact


def categorical(logit):
    def exact(x):
        total = mp.mpf(0)
        for i, n in enumerate(N.tolist()):
            p = elements(x, i)
            total += p[n - 1] - mp.log(mp.fsum(map(mp.exp, p))) if logit else mp.log(p[n - 1])
        return total

    return exact


def ordered(n):
    def logistic(x):
        return 1 / (1 + mp.exp(-x))

    def exact(eta, cuts):
        total = mp.mpf(0)
        for i, category in enumerate(np.ravel(n).tolist()):
            x = eta if isinstance(eta, mp.mpf) else eta[i]
            c = elements(cuts, i)
            below = 1 if category == 1 else logistic(x - c[category - 2])
            total += mp.log(below - (0 if category == 4 else logistic(x - c[category - 1])))
        return total

    return exact


EXACT = {
    "dirichlet": (dirichlet_lpdf, dirichlet, [P, ALPHA]),
    "dirichlet, rows": (dirichlet_lpdf, dirichlet, [THETAS, ALPHAS]),
    "dirichlet, one alpha": (dirichlet_lpdf, dirichlet, [THETAS, ALPHA]),
    "dirichlet, one theta": (dirichlet_lpdf, dirichlet, [P, ALPHAS]),
    "multinomial": (lambda theta: multinomial_lpmf(COUNTS[0], theta), multinomial(COUNTS[0]), [P]),
    "multinomial, rows": (lambda theta: multinomial_lpmf(COUNTS, theta), multinomial(COUNTS), [P]),
    "categorical": (lambda theta: categorical_lpmf(N, theta), categorical(False), [P]),
    "categorical, rows": (lambda theta: categorical_lpmf(N, theta), categorical(False),
        [np.stack([P, *THETAS, P])]),
    "categorical_logit": (lambda beta: categorical_logit_lpmf(N, beta), categorical(True), [MU]),
    "categorical_logit, rows": (lambda beta: categorical_logit_lpmf(N, beta), categorical(True),
        [Y]),
    "categorical_logit, far": (lambda beta: categorical_logit_lpmf(N, beta), categorical(True),
        [np.array([0.1, 900.0, 31.0])]),
    **{f"ordered, {category}": (lambda eta, c, n=category: ordered_logistic_lpmf(n, eta, c),
        ordered(category), [0.4, CUTS]) for category in (1, 2, 3, 4)},
    "ordered, batch": (lambda eta, c: ordered_logistic_lpmf(N, eta, c), ordered(N), [ETA, CUTS]),
    "ordered, rows": (lambda eta, c: ordered_logistic_lpmf(N, eta, c), ordered(N),
        [ETA, np.stack([CUTS, CUTS_2, CUTS, CUTS_2])]),
    "ordered, far": (lambda eta, c: ordered_logistic_lpmf(N, eta, c), ordered(N),
        [30.0 * ETA, CUTS]),
    "ordered, narrow": (lambda eta, c: ordered_logistic_lpmf(N, eta, c), ordered(N),
        [ETA, 0.3 + np.array([0.0, 1e-9, 2e-9])]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_against_50_digits(name):
    f, exact, args = EXACT[name]
    assert worst_error(f, exact, args) < 2e-15


LIMITS = [
    # A count of zero and a probability of zero leave no term, although 0 * log(0) is nan.
    (lambda theta: multinomial_lpmf([0, 1, 1], theta, propto=True), np.array([0.0, 0.5, 0.5]),
        2 * math.log(0.5), [0.0, 2.0, 2.0]),
    (lambda theta: categorical_lpmf(2, theta), np.array([0.0, 1.0]), 0.0, [0.0, 1.0]),
    (lambda theta: categorical_lpmf(1, theta), np.array([0.0, 1.0]), -INF, [INF, 0.0]),
    (lambda theta: multinomial_lpmf([2, 1], theta, propto=True), np.array([0.0, 1.0]), -INF,
        [INF, 1.0]),
    (lambda theta: dirichlet_lpdf(theta, [1.0, 1.0]), np.array([0.0, 1.0]), 0.0, [0.0, 0.0]),
    (lambda theta: dirichlet_lpdf(theta, [3.0, 1.0]), np.array([0.0, 1.0]), -INF, [INF, 0.0]),
    (lambda theta: dirichlet_lpdf(theta, [0.5, 1.0]), np.array([0.0, 1.0]), INF, [-INF, 0.0]),
    (lambda beta: categorical_logit_lpmf([1, 1], beta), np.array([800.0, 0.0, -800.0]), 0.0,
        [0.0, 0.0, 0.0]),
    (lambda c: ordered_logistic_lpmf(1, 1000.0, c), np.array([0.0, 1.0]), -1000.0, [1.0, 0.0]),
    (lambda c: ordered_logistic_lpmf(3, -1000.0, c), np.array([0.0, 1.0]), -1001.0, [0.0, -1.0]),
]  # fmt: skip


@pytest.mark.parametrize(("f", "x", "value", "gradient"), LIMITS)
def test_limits(f, x, value, gradient):
    result = vm.value_and_grad(f)(x)
    close(result[0], value, 1e-14)
    close(result[1], gradient, 1e-14)
    forward = vm.jvp(f, (x,), (np.eye(len(x))[0],))
    close(forward[1], gradient[0], 1e-14)


def test_many_observations_of_one_category():
    n = np.random.default_rng(1).integers(1, 4, size=10_000)
    value, gradient = vm.value_and_grad(lambda theta: categorical_lpmf(n, theta))(P)
    counts = np.bincount(n - 1)
    close(value, math.fsum(counts * np.log(P)), 1e-14)
    close(gradient, counts / P, 1e-15)


def test_cutpoints_that_are_far_apart():
    """The upper cutpoint is so far away that only the lower one matters."""
    for eta, expected in (
        (-800.0, np.zeros((3, 3))),
        (0.0, [[-0.25, 0.25, 0.0], [0.25, -0.25, 0.0], [0.0, 0.0, 0.0]]),
    ):
        hessian = vm.hessian(
            lambda x: ordered_logistic_lpmf(2, x[0], x[1:]), np.array([eta, 0.0, 1000.0])
        )
        close(hessian, expected, 1e-7, 1e-300)


def test_one_category_is_certain():
    assert ordered_logistic_lpmf([1, 1], 0.3, np.zeros(0)) == 0.0
    assert ordered_logistic_lpmf([1, 2], 0.3, np.zeros(0)) == -math.inf


def test_impossible_categories_have_log_odds_of_minus_infinity():
    n = [1, 3, 3]

    def f(beta):
        return vm.categorical_logit_lpmf(n, beta)

    beta, others = np.array([0.3, -np.inf, 1.0]), np.array([0.3, 1.0])
    value, gradient = vm.value_and_grad(f)(beta)
    expected = vm.value_and_grad(lambda b: vm.categorical_logit_lpmf([1, 2, 2], b))(others)
    close(value, expected[0], 1e-15)
    equal(gradient[1], 0.0)
    close(gradient[[0, 2]], expected[1], 1e-14)
    for runner in ("native", "numpy"):
        recorded = vm.recorded(vm.value_and_grad(f), runner=runner)
        recorded(np.zeros(3))
        close(np.hstack(recorded(beta)), np.hstack([value, gradient]), 1e-14)
    assert np.all(vm.hessian(f)(beta)[1] == 0.0)
    assert vm.categorical_logit_lpmf(2, beta) == -np.inf
    close(vm.distributions.CategoricalLogit(beta).lpmf.pointwise(n).sum(), value, 1e-14)
    refuses(
        vm.DomainError, r"log odds parameter\[1\] is inf, but must be finite!", f, [0.0, np.inf]
    )
