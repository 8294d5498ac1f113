"""Cumulative functions that are sums of masses: 50 digits, Stan, all routes, the ends, refusals."""

import itertools
import math
from functools import partial

import mpmath
import numpy as np
import pytest
import stan
from comparing import close, equal, refuses

import varmat as vm
from varmat.testing import Tolerances, expect_ad, expect_ad_matvar, expect_value

FAMILIES = {
    name: getattr(vm, f"{name}_lpmf")
    for name in ("beta_binomial", "beta_neg_binomial", "poisson_binomial")
}
REST = {
    "beta_binomial": (4, 2.0, 3.0),
    "beta_neg_binomial": (4.0, 2.0, 3.0),
    "poisson_binomial": (np.array([0.3, 0.2, 0.6, 0.5]),),
}
SUFFIXES = ("cdf", "lcdf", "lccdf")
every_suffix = pytest.mark.parametrize("suffix", SUFFIXES)


def function(family, suffix):
    return getattr(vm, f"{family}_{suffix}")


def of_suffix(suffix, lower):
    return mpmath.log(lower) if suffix == "lcdf" else mpmath.log1p(-lower)


def beta_binomial(suffix):
    def mass(k, trials, alpha, beta):
        return (
            mpmath.binomial(trials, k)
            * mpmath.beta(alpha + k, beta + trials - k)
            / mpmath.beta(alpha, beta)
        )

    return lambda n, trials, alpha, beta: of_suffix(
        suffix, sum(mass(k, trials, alpha, beta) for k in range(int(n) + 1))
    )


def beta_neg_binomial(suffix):
    def mass(k, r, alpha, beta):
        log = mpmath.loggamma(k + r) - mpmath.loggamma(k + 1) - mpmath.loggamma(r)
        return mpmath.exp(log) * mpmath.beta(alpha + r, beta + k) / mpmath.beta(alpha, beta)

    return lambda n, *rest: of_suffix(suffix, sum(mass(k, *rest) for k in range(int(n) + 1)))


def poisson_binomial(suffix):
    def mass(k, theta):
        chosen = itertools.combinations(range(len(theta)), k)
        return sum(
            mpmath.fprod(t if i in which else 1 - t for i, t in enumerate(theta))
            for which in chosen
        )

    return lambda y, *theta: of_suffix(suffix, sum(mass(k, theta) for k in range(int(y) + 1)))


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_fifty_digits(suffix):
    points = [
        (3, 10, 2.0, 3.0), (0, 5, 0.5, 1.5), (6, 7, 4.0, 0.8), (17, 40, 30.0, 60.0),
        (38, 40, 0.1, 20.0),
    ]  # fmt: skip
    points += [(2, 10, 1e-3, 1e-3), (40, 100, 1e4, 2e4)]
    expect_value(function("beta_binomial", suffix), beta_binomial(suffix), points, rtol=1e-12)
    # Heavy and light tails, large and small shapes, and the tail of all but the whole distribution.
    points = [
        (0, 0.5, 2.0, 0.01), (10, 2.0, 0.5, 3.0), (50, 10.0, 40.0, 20.0), (500, 5.0, 3.0, 7.0),
        (7, 2.0, 1e-3, 1e-2), (40, 0.1, 0.3, 0.5), (20, 3.0, 1e5, 2e5), (100, 30.0, 0.3, 0.01),
    ]  # fmt: skip
    expect_value(
        function("beta_neg_binomial", suffix), beta_neg_binomial(suffix), points, rtol=1e-12
    )
    trials = (0.3, 0.2, 0.6, 0.95, 0.01)
    points = [(y, *trials) for y in (0, 2, 4)]
    f = lambda y, *theta: function("poisson_binomial", suffix)(y, np.stack(theta, axis=-1))  # noqa: E731 - used below
    expect_value(f, poisson_binomial(suffix), points, rtol=1e-12)


@every_suffix
def test_matvars_agree(suffix):
    expect_ad_matvar(function("beta_binomial", suffix), 3, 8, 2.0, 3.0)
    expect_ad_matvar(function("beta_neg_binomial", suffix), 3, 1.5, 2.0, 3.0)
    expect_ad_matvar(function("poisson_binomial", suffix), 1, np.array([0.3, 0.2, 0.6]))


@every_suffix
def test_all_routes(suffix):
    # The Hessians of the exponential of such a sum take seconds to compile.
    tolerances = Tolerances(hessian=math.inf) if suffix == "cdf" else None
    f, counts = (
        partial(function("beta_binomial", suffix), np.array([3, 0]), 4),
        np.array([2.0, 0.5]),
    )
    expect_ad(f, counts, 3.0, tolerances=tolerances)
    f = function("beta_neg_binomial", suffix)
    expect_ad(lambda r, a: f([0, 5], r, a, 3.0), 0.3, [2.0, 4.5], tolerances=tolerances)
    f = function("poisson_binomial", suffix)
    expect_ad(lambda theta: f(1, theta), np.array([0.3, 0.2, 0.6]))
    expect_ad(lambda theta: f([1, 0], theta), np.array([[0.3, 0.2, 0.6], [0.1, 0.7, 0.4]]))


# Stan has only eight digits at the first entry, which is among the points above. At the second it
# computes one minus a probability of one.
STAN_IS_OFF = {"beta_binomial_lccdf#7": 1e-7, "poisson_binomial_lccdf#3": -math.inf}


@pytest.mark.parametrize("entry", stan.entries("sums_of_masses"))
def test_stan(entry):
    right = STAN_IS_OFF.get(entry["id"], 1e-9)
    if right == -math.inf:
        assert getattr(vm, entry["function"])(*stan.arguments(entry)) == right
        return
    outputs = [entry["output"], *(c for _, c in entry["args"] if c is not None)]
    if all(np.all(np.isfinite(stan.number(x))) for x in outputs):
        stan.check(getattr(vm, entry["function"]), entry, rtol=right)
    else:  # `test_ends` tests the derivatives at the ends
        expected = stan.number(entry["output"])
        close(getattr(vm, entry["function"])(*stan.arguments(entry)), expected, 1e-9)


@pytest.mark.parametrize("entry", stan.entries("sums_of_masses", throws=True))
def test_refuses_what_stan_refuses(entry):
    f = getattr(vm, entry["function"])
    if entry["args"][0][0] == -1:  # below every number of successes, which is no error here
        found = f(*stan.arguments(entry))
        assert found == {"cdf": 0.0, "lcdf": -math.inf, "lccdf": 0.0}[f.name.rpartition("_")[2]]
        return
    refuses((vm.DomainError, vm.ShapeError), f"^{f.name}: ", f, *stan.arguments(entry))


@pytest.mark.parametrize("family", FAMILIES)
def test_ends(family):
    rest = REST[family]
    at = len(rest) - 1
    ends = {"beta_neg_binomial": (math.inf,)}.get(family, (4, 9))
    for n, probability in ((-1, 0.0), *((end, 1.0) for end in ends)):
        for suffix, expected in (
            ("cdf", probability),
            ("lcdf", 1.0 - 1.0 / probability if probability else -math.inf),
        ):
            f = function(family, suffix)
            value, gradient = vm.value_and_grad(lambda x, f=f, n=n: f(n, *rest[:at], x))(rest[at])
            assert value == expected
            equal(gradient, np.zeros(np.shape(rest[at])))
        assert function(family, "lccdf")(n, *rest) == (0.0 if n < 0 else -math.inf)
    assert function(family, "cdf")(1.5, *rest) == function(family, "cdf")(1, *rest)
    several = function(family, "lcdf")
    close(several([0, 2], *rest), several(0, *rest) + several(2, *rest), 1e-14)


@pytest.mark.parametrize("family", FAMILIES)
def test_refusals(family):
    rest = REST[family]
    title = next(iter(FAMILIES[family].arguments.values()))[0]
    for suffix in SUFFIXES:
        f = function(family, suffix)
        message = f"^{f.name}: {title} is a variable, but has no derivative"
        refuses(TypeError, message, f, vm.var(1.0), *rest)
        message = f"^{f.name}: {title} is nan, but must be not nan!"
        refuses(vm.DomainError, message, f, math.nan, *rest)


def test_truncated():
    masses = np.exp([vm.beta_binomial_lpmf(k, 5, 2.0, 3.0) for k in range(6)])
    expected = math.log(masses[2] / masses[1:].sum())
    close(vm.truncated(vm.beta_binomial_lpmf, lower=1)(2, 5, 2.0, 3.0), expected, 1e-13)
