"""Truncated densities: 50 digits, all routes, total mass one, both tails, refusals."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from comparing import close, refuses, refuses_as
from densities.references import exact

import varmat as vm
from varmat.testing import expect_ad, expect_value

Y = np.array([0.5, 1.2, 0.1])
LOWER, UPPER, BOTH = {"lower": 0.0}, {"upper": 2.0}, {"lower": 0.0, "upper": 2.0}
every_bound = pytest.mark.parametrize(
    "bounds", [LOWER, UPPER, BOTH], ids=["lower", "upper", "both"]
)


def truth(density, lower=None, upper=None):
    """Return the truncated density of one observation in 50 digits."""

    def function(y, *parameters):
        low = mpmath.exp(exact(density.lcdf)(lower, *parameters)) if lower is not None else 0
        high = mpmath.exp(exact(density.lcdf)(upper, *parameters)) if upper is not None else 1
        return exact(density)(y, *parameters) - mpmath.log(high - low)

    return function


@every_bound
@pytest.mark.parametrize(("density", "point"), [
    (vm.normal_lpdf, (0.5, 0.3, 1.1)),
    (vm.weibull_lpdf, (0.5, 1.3, 2.0)),
    (vm.cauchy_lpdf, (0.5, -3.0, 0.2)),
])  # fmt: skip
def test_value_and_derivatives(density, point, bounds):
    bounds = {name: x + 0.1 for name, x in bounds.items()}
    expect_value(vm.truncated(density, **bounds), truth(density, **bounds), [point], rtol=1e-11)


@pytest.mark.parametrize("bounds", [(40.0, 41.0), (-41.0, -40.0), (-0.1, 30.0), (8.0, 9.0)])
def test_intervals_in_the_tails(bounds):
    """The difference of two probabilities close to one would have no digits."""
    lower, upper = bounds
    with mpmath.workdps(400):
        expected = truth(vm.normal_lpdf, lower, upper)(mpmath.mpf(lower + 0.25), 0, 1)
    value = vm.truncated(vm.normal_lpdf, lower=lower, upper=upper)(lower + 0.25, 0.0, 1.0)
    close(value, float(expected), 1e-12)


@every_bound
def test_all_routes_agree(bounds):
    def f(mu, sigma):
        return vm.truncated(vm.normal_lpdf, **bounds)(Y, mu, sigma)

    expect_ad(f, 0.3, 1.1)
    expect_ad(f, np.array([0.3, -0.2, 1.0]), 1.1)


def test_all_routes_agree_for_ends():
    def f(y, lower, upper):
        return vm.truncated(vm.logistic_lpdf, lower=lower, upper=upper)(y, 0.2, 1.3)

    expect_ad(lambda y, lower: f(y, lower, 3.0), Y, -0.4)
    expect_ad(lambda upper: f(Y, -1.0, upper), np.array([1.4, 2.0, 3.0]))


def test_parameters_that_all_observations_share():
    several = vm.truncated(vm.normal_lpdf, **BOTH)
    close(several(Y, 0.3, 1.1), sum(several(y, 0.3, 1.1) for y in Y), 1e-14)
    assert several(Y, sigma=1.1, mu=0.3) == several(Y, 0.3, 1.1)
    rows = several(Y[:, None], np.array([0.3, 0.4]), 1.1)
    close(rows, several(Y, 0.3, 1.1) + several(Y, 0.4, 1.1), 1e-14)


@every_bound
def test_outside(bounds):
    f = vm.truncated(vm.normal_lpdf, **bounds)
    outside = -0.5 if "lower" in bounds else 2.5
    assert f(outside, 0.0, 1.0) == -math.inf
    assert f(np.append(Y, outside), 0.0, 1.0) == -math.inf
    assert vm.value_and_grad(f, 1)(outside, 0.0, 1.0) == (-math.inf, 0.0)
    assert vm.value_and_grad(f)(outside, 0.0, 1.0)[0] == -math.inf
    for end in bounds.values():
        assert math.isfinite(f(end, 0.0, 1.0))


def test_recorded_where_an_observation_leaves_the_interval():
    recorded = vm.recorded(lambda x: vm.truncated(vm.normal_lpdf, lower=x[1])(Y, x[0], 1.0))
    assert recorded(np.array([0.3, 0.0]))[0] == vm.truncated(vm.normal_lpdf, lower=0.0)(Y, 0.3, 1.0)
    assert recorded(np.array([0.3, 0.2]))[0] == -math.inf


@pytest.mark.parametrize(("density", "bounds", "error", "text"), [
    (vm.normal_lpdf, {}, TypeError, "truncated: neither lower nor upper is given"),
    (vm.normal_lpdf, {"lower": 1.0, "upper": 0.0}, vm.DomainError,
     "truncated: lower is 1.0 and upper is 0.0, but lower must be below upper!"),
])  # fmt: skip
def test_refusals(density, bounds, error, text):
    refuses_as(error, text, vm.truncated, density, **bounds)


def test_a_truncated_density_checks_its_parameters():
    made = vm.truncated(vm.normal_lpdf, lower=1.0)
    refuses(vm.DomainError, r"normal_lpdf: Scale parameter is -1\.0", made, 2.0, 0.0, -1.0)
    assert repr(made) == "varmat.truncated(normal_lpdf, lower=1.0)"
    message = "must be a density of one variable that has"
    refuses(TypeError, message, vm.truncated, vm.multi_normal_lpdf, lower=0.0)


@pytest.mark.parametrize("shapes", [*itertools.product([(), (2,), (3, 1)], repeat=4)])
def test_all_arguments_broadcast(shapes):
    """The value is the sum over all elements, whichever of ends and arguments are arrays."""
    rng = np.random.default_rng(1)
    y, mu = (rng.uniform(-0.5, 0.5, shape) for shape in shapes[:2])
    lower, upper = rng.uniform(-3.0, -1.0, shapes[2]), rng.uniform(1.0, 3.0, shapes[3])
    for ends in ({"lower": lower}, {"upper": upper}, {"lower": lower, "upper": upper}):
        names, bounds = [*ends], [*ends.values()]
        expected = sum(
            vm.truncated(vm.normal_lpdf, **dict(zip(names, each[2:], strict=True)))(*each[:2], 1.5)
            for each in np.broadcast(y, mu, *bounds)
        )
        found = vm.value_and_grad(
            lambda y, mu, *bounds, names=names: vm.truncated(
                vm.normal_lpdf, **dict(zip(names, bounds, strict=True))
            )(y, mu, 1.5),
            tuple(range(2 + len(bounds))),
        )(y, mu, *bounds)
        close(found[0], expected, 1e-13)
        slope = sum((each[1] - each[0]) / 1.5**2 for each in np.broadcast(y, mu, *bounds))
        close(np.sum(found[1][0]), slope, 1e-12)


def test_no_observations():
    none = np.zeros(0)
    for lower in (none, np.zeros(1)):
        made = vm.truncated(vm.normal_lpdf, lower=lower, upper=np.ones(1))
        value, slopes = vm.value_and_grad(made, (0, 1, 2))(none, none, 1.0)
        assert (value, slopes[2]) == (0.0, 0.0)


def test_infinite_ends_are_no_ends():
    """Also where the distribution function refuses them."""
    circular = vm.truncated(vm.von_mises_lpdf, lower=0.0, upper=np.inf)
    assert circular(0.6, 0.3, 2.0) == vm.truncated(vm.von_mises_lpdf, lower=0.0)(0.6, 0.3, 2.0)
    whole = vm.truncated(vm.normal_lpdf, lower=-np.inf, upper=np.inf)
    close(whole(0.6, 0.3, 2.0), vm.normal_lpdf(0.6, 0.3, 2.0), 1e-15)


def test_intervals_without_probability_have_no_derivative():
    """The difference of two probabilities of zero would have nan."""
    lower, upper = np.array([0.1, 0.3]), np.array([0.2, 0.9])

    def f(alpha):
        interval = vm.truncated(vm.generalized_pareto_lpdf, lower=lower, upper=upper)
        logs = interval.log_probability(np.array([0.5, 0.1]), alpha, 0.2)
        return np.sum(np.logaddexp(logs, -1.0))

    value, gradient = vm.value_and_grad(f)(0.7)
    h = 1e-6
    np.testing.assert_allclose(gradient, (f(0.7 + h) - f(0.7 - h)) / (2 * h), 1e-7)
    np.testing.assert_allclose(vm.recorded(f)(0.7), (value, gradient), 1e-13)
