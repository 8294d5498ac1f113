"""Derivatives in shapes, orders and parameters, over their domains, against 50-digit arithmetic."""

import math

import mpmath
import numpy as np
import pytest
from comparing import close
from functions.partials import exact, gradient, relative

import varmat as vm
from varmat.functions.special.bessel_functions import log_iv_derivative, log_kv_derivative
from varmat.functions.special.incomplete_functions import betainc_derivative, gammainc_derivative
from varmat.testing import expect_ad

INF = math.inf


def hessian_rows(function, columns, axis):
    """Return the second derivatives along `axis` and each other operand, by forward over reverse
    mode.
    """
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in columns]
        duals = [vm.Dual(x, np.full(x.shape, float(i == axis))) for i, x in enumerate(xs)]
        np.sum(function(*duals).tan).grad()
        return [np.array(x.adj) for x in xs]


# Each family has a function, the same function in mpmath, and points. The mpmath function may
# differ by a constant, so that it is small in the tails.


def gamma_points():
    for a in (1e-3, 0.2, 3.99, 4.01, 1e5):
        yield from ((a, x) for x in (1e-6, 0.9, 1.1))
        for deviations in (-20.0, -2.0, -0.01, 0.5, 6.0, 20.0):
            x = a + deviations * math.sqrt(a)
            yield a, x if x > 0.01 * a else a * math.exp(deviations)


def small_gamma(a, x):
    if x < a:
        return mpmath.gammainc(a, 0, x, regularized=True)
    return -mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def beta_points():
    for a, b in ((0.01, 0.01), (0.01, 3.0), (1.0, 0.02), (3.9, 4.1), (1e4, 0.1), (900.0, 700.0)):
        mean = a / (a + b)
        deviation = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        for deviations in (-8.0, -0.3, 2.0):
            x = mean + deviations * deviation
            x = x if x > 0 else mean * math.exp(deviations)
            yield a, b, x if x < 1 else 1.0 - (1.0 - mean) * math.exp(-deviations)


def small_beta(a, b, x):
    if x < a / (a + b):
        return mpmath.betainc(a, b, 0, x, regularized=True)
    return -mpmath.betainc(b, a, 0, 1 - x, regularized=True)


BESSEL_POINTS = [
    (v, x)
    for v in (1e-6, 0.49, 0.51, 7.5, 200.5)
    for x in (1e-100, 0.9, 1.1, 4.0, 35.0)
    if v < 5.0 or x > 0.1
]
HYPERGEOMETRIC_POINTS = [
    (1.0, 1.0, 2.0, 0.5),      (0.5, 1.5, 2.5, 0.9),      (3.7, 1.1, 2.2, 0.99),
    (1.0, 2.0, 3.0, 0.999999),  # c - a - b is an integer
    (-2.0, 3.0, 1.5, 0.7),  # a polynomial at this a, but not next to it
    (-2.0, 3.0, 1.5, -0.7),    (1.5, 2.5, -3.5, 0.8),     (20.0, 30.0, 62.0, 0.3),
    (5.0, 7.0, 25.0, 0.92),    (2.0, 2.5, 3.0, -30.0),    (0.3, 0.4, 2.0, -1e6),
]  # fmt: skip
FAMILIES = {
    # Name: function, reference, points, number of shapes, largest relative errors of the first and
    # of the second derivatives.
    "gammainc": (vm.gammainc, small_gamma, list(gamma_points()), 1, 3e-13, 3e-12),
    "betainc": (vm.betainc, small_beta, list(beta_points()), 2, 3e-13, 3e-12),
    "kv": (log_kv_derivative, lambda v, x: mpmath.log(mpmath.besselk(v, x)), BESSEL_POINTS, 1,
        3e-14, 3e-14),
    "iv": (log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)), BESSEL_POINTS, 1,
        3e-14, 3e-13),
    "hyp2f1": (vm.hyp2f1, mpmath.hyp2f1, HYPERGEOMETRIC_POINTS, 3, 3e-13, 3e-12),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_over_the_domain(name):
    function, reference, points, shapes, first, second = FAMILIES[name]
    columns = [np.array(column) for column in zip(*points, strict=True)]
    if name in ("iv", "kv"):
        bessel = function
        function = lambda v, x: bessel(0.0, v, x)  # noqa: E731 - of order 0 it is the logarithm itself
    gradients = gradient(function, columns)
    for i in range(shapes):
        truth = [exact(reference, point, i) for point in points]
        assert relative(gradients[i], truth) <= first
        # Each point has the second derivatives in one of its shapes, because they take long.
        some, truth = slice(i, None, shapes), truth[i::shapes]
        part = [column[some] for column in columns]
        for j, ours in enumerate(hessian_rows(function, part, i)):
            # A second derivative may be zero. Its error is then measured on the scale of the first
            # derivative.
            scale = np.abs(truth) / np.maximum(1.0, np.abs(part[j])) if name != "kv" else 0.0
            found = relative(ours, [exact(reference, point, i, j) for point in points[some]], scale)
            assert found <= second


@pytest.mark.parametrize(("function", "reference", "points"), [
    (gammainc_derivative, small_gamma, [(3, 0.7, 0.5), (3, 2.5, 4.0), (3, 60.0, 75.0)]),
    (betainc_derivative, small_beta,
        [(21, 0.7, 2.5, 0.1), (30, 5.0, 7.0, 0.8), (12, 0.3, 0.4, 0.5)]),
    (log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)),
        [(30, 0.3, 2.0), (21, 2.5, 0.7), (12, 9.0, 40.0)]),
    (log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)),
        [(10, -0.3, 0.5), (20, -2.3, 3.0), (11, -0.5, 9.0)]),
    (log_kv_derivative, lambda v, x: mpmath.log(mpmath.besselk(v, x)),
        [(30, 0.3, 2.0), (21, 2.5, 0.7), (12, -9.1, 40.0)]),
])  # fmt: skip
def test_derivatives_of_higher_order(function, reference, points):
    for order, *point in points:
        tens, ones = (order, 0) if function is gammainc_derivative else divmod(order, 10)
        axes = [0] * tens + [1] * ones
        assert relative(function(order, *point), exact(reference, tuple(point), *axes)) <= 1e-11


# Function, point, gradient there.
ENDS = [
    (vm.gammainc, (2.5, 0.0), (0.0, 0.0)),          (vm.gammainc, (1.0, 0.0), (0.0, 1.0)),
    (vm.gammainc, (2.5, INF), (0.0, 0.0)),          (vm.gammaincc, (0.5, 0.0), (0.0, -INF)),
    (vm.gammaincc, (1e-3, 1e4), (0.0, 0.0)),        (vm.gammaincinv, (2.0, 0.0), (0.0, INF)),
    (vm.betainc, (2.0, 3.0, 0.0), (0.0, 0.0, 0.0)), (vm.betainc, (1.0, 3.0, 0.0), (0.0, 0.0, 3.0)),
    (vm.betainc, (2.0, 1.0, 1.0), (0.0, 0.0, 2.0)), (vm.iv, (1.5, 0.0), (0.0, 0.0)),
    (vm.betaincinv, (2.0, 3.0, 0.0), (0.0, 0.0, INF)),
    (vm.betaincinv, (2.0, 3.0, 1.0), (0.0, 0.0, INF)),
    (vm.iv, (0.0, 1e-300), (-690.891459, 0.0)),     (vm.kv, (0.0, 2.5), (0.0, -0.07389082)),
    (vm.kv, (2.5, 1e3), (0.0, 0.0)),
    (vm.hyp2f1, (2.0, 3.0, 1.5, 0.0), (0.0, 0.0, 0.0, 4.0)),
    (vm.hyp2f1, (0.0, 3.0, 1.5, 0.5), (1.0 + 0.25 * math.pi, 0.0, 0.0, 0.0)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "point", "expected"), ENDS)
def test_derivatives_at_the_ends(function, point, expected):
    for columns in (list(point), [np.array([x]) for x in point]):
        close(np.ravel(gradient(function, columns)), expected, 1e-7, 1e-290)


@pytest.mark.parametrize(
    ("shape", "distance"),
    [(0.01, 1e-20), (0.02, 1e-15), (0.05, 1e-8), (0.01, 1e-40), (0.001, 1e-300)],
)
def test_small_shapes_far_from_the_bulk(shape, distance):
    """If one shape is 1, the function and its inverse are powers of the distance from an end."""
    power = lambda a: mpmath.mpf(distance) ** a  # noqa: E731 - used below
    first, second = (exact(power, (shape,), *axes) for axes in ([0], [0, 0]))
    for f in (lambda a: vm.betainc(a, 1.0, distance), lambda a: -vm.betaincc(a, 1.0, distance)):
        close(vm.gradient(f, shape), first, 1e-13)
        close(vm.hessian(f, shape), second, 1e-13)
    if distance > 1e-16:
        complement = 1.0 - distance  # its rounded distance from 1 is what counts
        left = lambda b: -(mpmath.mpf(1.0 - complement) ** b)  # noqa: E731 - used below
        expected = exact(left, (shape,), 0)
        close(vm.gradient(lambda b: vm.betainc(1.0, b, complement), shape), expected, 1e-13)
        expected = exact(left, (shape,), 0, 0)
        close(vm.hessian(lambda b: vm.betainc(1.0, b, complement), shape), expected, 1e-13)


@pytest.mark.parametrize(("shape", "level"), [(0.01, 0.7), (0.02, 0.3), (0.05, 0.1)])
def test_inverse_of_the_incomplete_beta_function_of_small_shapes(shape, level):
    power = lambda a: mpmath.mpf(level) ** (1 / a)  # noqa: E731 - used below
    for f in (
        lambda a: vm.betaincinv(a, 1.0, level),
        lambda a: vm.betainccinv(a, 1.0, 1.0 - level),
    ):
        close(vm.gradient(f, shape), exact(power, (shape,), 0), 1e-12)
        close(vm.hessian(f, shape), exact(power, (shape,), 0, 0), 1e-12)


def test_all_routes_of_hyp2f1():
    expect_ad(vm.hyp2f1, np.array([0.7]), 2, np.array([2.2]), np.array([-1.5]))
