"""The Poisson binomial mass: 50 digits, Stan, all routes, tails, certain and impossible trials."""

import math

import mpmath
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

THETA = np.array([0.1, 0.9, 0.3, 0.4, 0.75])


def exact(y, theta):
    """Return the mass as a coefficient of the generating polynomial."""
    product = [mpmath.mpf(1)]
    for p in map(mpmath.mpf, theta):
        shifted, product = [mpmath.mpf(0), *product], [*product, mpmath.mpf(0)]
        product = [(1 - p) * a + p * b for a, b in zip(product, shifted, strict=True)]
    return product[y] if 0 <= y < len(product) else mpmath.mpf(0)


def exact_gradient(y, theta):
    """Return the log mass and its gradient: the mass is linear in each probability."""
    with mpmath.workdps(60):
        mass = exact(y, theta)
        others = ([*theta[:k], *theta[k + 1 :]] for k in range(len(theta)))
        gradient = [float((exact(y - 1, rest) - exact(y, rest)) / mass) for rest in others]
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
    text = "Probability parameters[1] is 1.5, but must be in the interval [0, 1]!"
    f = vm.poisson_binomial_lpmf
    refuses_as(vm.DomainError, f"{f.name}: {text}", f, *stan.arguments(entry))


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
    counts, *columns = np.broadcast_arrays(y, *np.moveaxis(np.asarray(theta), -1, 0))
    rows = np.stack(columns, axis=-1).reshape(-1, 5)
    single = sum(map(vm.poisson_binomial_lpmf, counts.ravel().tolist(), rows))
    close(vm.poisson_binomial_lpmf(y, theta), single, 1e-13)
    assert vm.poisson_binomial_lupmf(y, theta) == 0.0


def test_equal_probabilities_are_binomial():
    for n in (0, 7, 30):
        value = vm.poisson_binomial_lpmf(n, np.full(30, 0.23))
        close(value, vm.binomial_lpmf(n, 30, 0.23), 1e-13)


def test_second_derivatives():
    with mpmath.workdps(50):
        at = lambda *theta: mpmath.log(exact(2, theta))  # noqa: E731 - used below
        one = np.eye(3, dtype=int)
        truth = [
            [float(mpmath.diff(at, (0.25, 0.5, 0.125), tuple(a + b))) for a in one] for b in one
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


@pytest.mark.parametrize(("args", "error", "text"), [
    ((1, 0.5), vm.ShapeError, "Probability parameters has shape (), but must be a vector"),
    (([1, 2, 3], STACK), vm.ShapeError,
     "Successes variable has shape (3,), but must broadcast with (2,)!"),
    ((vm.var(1.0), THETA), TypeError,
     "Successes variable is a variable, but has no derivative: it is discrete!"),
])  # fmt: skip
def test_refusals(args, error, text):
    refuses_as(error, f"poisson_binomial_lpmf: {text}", vm.poisson_binomial_lpmf, *args)
