"""The Poisson binomial mass: 50 digits, Stan, all routes, tails, certain and impossible trials."""

import math

import mpmath
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

THETA = np.array([0.1, 0.9, 0.3, 0.4, 0.75])


def exact(y, theta):
    """Return the mass as a coefficient of the generating polynomial."""
    product = [mpmath.mpf(1)]
    for p in map(mpmath.mpf, theta):
        shifted, product = [mpmath.mpf(0), *product], [*product, mpmath.mpf(0)]
        product = [(1 - p) * a + p * b for a, b in zip(product, shifted, strict=True)]
    return product[y]


def exact_gradient(y, theta):
    with mpmath.workdps(60):
        mass, gradient = exact(y, theta), []
        for k in range(len(theta)):
            rest = [*theta[:k], *theta[k + 1 :]]
            with_one = exact(y - 1, rest) if y else 0
            gradient.append(float((with_one - (exact(y, rest) if y < len(theta) else 0)) / mass))
        return float(mpmath.log(mass)), gradient


RNG = np.random.default_rng(5)
CASES = {
    "few": (2, THETA), "none": (0, THETA), "all": (5, THETA), "one trial": (1, [0.3]),
     "certain": (2, [0.0, 0.3, 1.0, 0.6, 0.0]),
    "tiny": (3, [1e-300, 1e-200, 1e-5, 0.3]), "large": (1, [1.0 - 1e-16, 1.0 - 1e-12, 0.999]),
    "many": (14, RNG.uniform(size=25)), "far": (24, RNG.uniform(0.0, 0.01, size=25)),
}  # fmt: skip


@pytest.mark.parametrize(("y", "theta"), CASES.values(), ids=CASES)
def test_fifty_digits(y, theta):
    value, gradient = vm.value_and_grad(vm.poisson_binomial_lpmf, 1)(y, np.array(theta))
    mass, slopes = exact_gradient(y, [float(p) for p in theta])
    close(value, mass, 1e-12)
    # A derivative is small if success at the trial hardly changes the mass. Many trials are then
    # compared on the scale of the largest derivative.
    close(gradient, slopes, 1e-11, 1e-12 * np.max(np.abs(slopes)) * (len(theta) > 10))


@pytest.mark.parametrize("entry", stan.entries("poisson_binomial"))
def test_stan(entry):
    stan.check(vm.poisson_binomial_lpmf, entry, rtol=1e-12)


@pytest.mark.parametrize("entry", stan.entries("poisson_binomial", throws=True))
def test_refuses_what_stan_refuses(entry):
    message = (
        r"poisson_binomial_lpmf: Probability parameters\[1\] is 1.5, but must be in the "
        r"interval \[0, 1\]!"
    )
    refuses(vm.DomainError, message, vm.poisson_binomial_lpmf, *stan.arguments(entry))


STACK = np.array([THETA, THETA[::-1] ** 2])


SHAPES = {
    "one": (2, THETA), "many": ([0, 3, 5], THETA), "stack": ([1, 4], STACK),
    "common": (3, STACK[:, None]),
}  # fmt: skip


@pytest.mark.parametrize(("y", "theta"), SHAPES.values(), ids=SHAPES)
def test_all_routes_agree(y, theta):
    expect_ad(lambda x: vm.poisson_binomial_lpmf(y, x), theta)
    expect_ad_matvar(lambda x: vm.poisson_binomial_lpmf(y, x), theta)
    found = vm.value_and_grad(vm.poisson_binomial_lupmf, 1)(y, theta)[0]
    assert found == vm.poisson_binomial_lpmf(y, theta)
    rows = np.broadcast_to(
        theta, (*np.broadcast_shapes(np.shape(y), np.shape(theta)[:-1]), 5)
    ).reshape(-1, 5)
    counts = np.broadcast_to(y, np.broadcast_shapes(np.shape(y), np.shape(theta)[:-1])).ravel()
    single = sum(vm.poisson_binomial_lpmf(int(n), row) for n, row in zip(counts, rows, strict=True))
    close(vm.poisson_binomial_lpmf(y, theta), single, 1e-13)
    assert vm.poisson_binomial_lupmf(y, theta) == 0.0


def test_equal_probabilities_are_binomial():
    for n in (0, 7, 30):
        value = vm.poisson_binomial_lpmf(n, np.full(30, 0.23))
        close(value, vm.binomial_lpmf(n, 30, 0.23), 1e-13)


def test_second_derivatives():
    with mpmath.workdps(50):
        at = lambda *theta: mpmath.log(exact(2, theta))  # noqa: E731 - used below
        orders = [
            [tuple((i == k) + (j == k) for k in range(3)) for j in range(3)] for i in range(3)
        ]
        truth = [
            [float(mpmath.diff(at, (0.25, 0.5, 0.125), order)) for order in row] for row in orders
        ]
    hessian = vm.hessian(
        lambda theta: vm.poisson_binomial_lpmf(2, theta), np.array([0.25, 0.5, 0.125])
    )
    close(hessian, truth, 1e-12)


def test_outside():
    for y in (-1, 6, 1.5):
        assert vm.poisson_binomial_lpmf(y, THETA) == -math.inf
        with pytest.raises(vm.DataError, match=r"must be an integer from 0 to 5!$"):
            vm.gradient(lambda theta, y=y: vm.poisson_binomial_lpmf(y, theta), THETA)
    for y, theta in ((0, [1.0, 0.5]), (2, [0.0, 0.5])):
        value, gradient = vm.value_and_grad(vm.poisson_binomial_lpmf, 1)(y, np.array(theta))
        assert value == -math.inf
        equal(gradient, 0.0)
        equal(vm.hessian(lambda x, y=y: vm.poisson_binomial_lpmf(y, x), np.array(theta)), 0.0)
    assert vm.poisson_binomial_lpmf([], THETA) == 0.0
    assert vm.poisson_binomial_lpmf(0, []) == 0.0


def test_refusals():
    for call, error, message in [
        (lambda: vm.poisson_binomial_lpmf(1, 0.5), vm.ShapeError,
         r"poisson_binomial_lpmf: Probability parameters has shape \(\), but must be a vector"),
        (lambda: vm.poisson_binomial_lpmf([1, 2, 3], STACK), vm.ShapeError,
         r"Successes variable has shape \(3,\), but must broadcast with \(2,\)!"),
        (lambda: vm.poisson_binomial_lpmf(vm.var(1.0), THETA), TypeError,
         "Successes variable is a variable, but has no derivative: it is discrete!"),
    ]:  # fmt: skip
        refuses(error, message, call)
