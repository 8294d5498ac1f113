"""Derivatives with respect to shapes, orders and parameters, over their domains, against 50-digit arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
import pytest

import varmat as vm
from varmat.functions import hypergeometric_derivatives, order_derivatives, shape_derivatives
from varmat.testing import expect_ad, expect_ad_matvar

INF = math.inf


def exact(function: Any, point: tuple[float, ...], *axes: int) -> float:
    """The partial derivative along the axes, by central differences of fourth order with steps that leave 30 digits."""
    with mpmath.workdps(64):
        xs = [mpmath.mpf(x) for x in point]

        def difference(f: Any, axis: int) -> Any:
            h = (abs(xs[axis]) or 1) * mpmath.mpf(10) ** -12

            def slope(*ts: Any) -> Any:
                at = [f(*ts[:axis], ts[axis] + k * h, *ts[axis + 1 :]) for k in (-2, -1, 1, 2)]
                return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h)

            return slope

        for axis in axes:
            function = difference(function, axis)
        return float(mpmath.re(function(*xs)))


def gradient(function: Any, columns: list[Any]) -> list[Any]:
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in columns]
        np.sum(function(*xs)).grad()
        return [x.adj for x in xs]


def hessian_rows(function: Any, columns: list[Any], axis: int) -> list[Any]:
    """The second derivatives along `axis` and each other operand, by forward over reverse."""
    with vm.nested(), np.errstate(all="ignore"):
        xs = [vm.var(x) for x in columns]
        duals = [vm.Dual(x, np.full(x.shape, float(i == axis))) for i, x in enumerate(xs)]
        np.sum(function(*duals).tan).grad()
        return [np.array(x.adj) for x in xs]


def relative(ours: Any, truth: Any, scale: Any = 0.0) -> float:
    truth = np.asarray(truth)
    return float(np.max(np.abs(ours - truth) / np.maximum(np.maximum(np.abs(truth), scale), 1e-290)))


# Each family: the function, the same in mpmath, with small values in the tails (a constant does not matter), and points.


def gamma_points() -> Iterator[tuple[float, float]]:
    for a in (1e-3, 0.2, 1.0, 3.99, 4.01, 150.0, 1e5):
        yield from ((a, x) for x in (1e-6, 0.9, 1.1))
        for deviations in (-20.0, -2.0, -0.01, 0.5, 6.0, 20.0):
            x = a + deviations * math.sqrt(a)
            yield a, x if x > 0.01 * a else a * math.exp(deviations)


def small_gamma(a: Any, x: Any) -> Any:
    return mpmath.gammainc(a, 0, x, regularized=True) if x < a else -mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def beta_points() -> Iterator[tuple[float, float, float]]:
    for a, b in ((0.01, 0.01), (0.01, 3.0), (1.0, 0.02), (3.9, 4.1), (30.0, 300.0), (1e4, 0.1), (900.0, 700.0)):
        mean = a / (a + b)
        deviation = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
        for deviations in (-8.0, -0.3, 2.0):
            x = mean + deviations * deviation
            x = x if x > 0 else mean * math.exp(deviations)
            yield a, b, x if x < 1 else 1.0 - (1.0 - mean) * math.exp(-deviations)


def small_beta(a: Any, b: Any, x: Any) -> Any:
    if x < a / (a + b):
        return mpmath.betainc(a, b, 0, x, regularized=True)
    return -mpmath.betainc(b, a, 0, 1 - x, regularized=True)


BESSEL_POINTS = [
    (v, x)
    for v in (1e-6, 0.04, 0.49, 0.51, 1.3, 7.5, 29.0, 200.5)
    for x in (1e-100, 0.9, 1.1, 4.0, 35.0)
    if v < 5.0 or x > 0.1
]
HYPERGEOMETRIC_POINTS = [
    (1.0, 1.0, 2.0, 0.5),
    (0.5, 1.5, 2.5, 0.9),
    (3.7, 1.1, 2.2, 0.99),
    (1.0, 2.0, 3.0, 0.999999),  # c - a - b is an integer
    (-2.0, 3.0, 1.5, 0.7),  # a polynomial, but not beside this a
    (-2.0, 3.0, 1.5, -0.7),
    (1.5, 2.5, -3.5, 0.8),
    (20.0, 30.0, 62.0, 0.3),
    (5.0, 7.0, 25.0, 0.92),
    (2.0, 2.5, 3.0, -30.0),
    (0.3, 0.4, 2.0, -1e6),
]
FAMILIES: dict[str, tuple[Any, Any, list[Any], int, float, float]] = {
    # name: function, reference, points, number of shapes, largest relative errors of first and of second derivatives
    "gammainc": (vm.gammainc, small_gamma, list(gamma_points()), 1, 3e-13, 3e-12),
    "betainc": (vm.betainc, small_beta, list(beta_points()), 2, 3e-13, 3e-12),
    "kv": (vm.log_kv_derivative, lambda v, x: mpmath.log(mpmath.besselk(v, x)), BESSEL_POINTS, 1, 3e-14, 3e-14),
    "iv": (vm.log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)), BESSEL_POINTS, 1, 3e-14, 3e-13),
    "hyp2f1": (vm.hyp2f1, mpmath.hyp2f1, HYPERGEOMETRIC_POINTS, 3, 3e-13, 3e-12),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_derivatives_over_the_domain(name: str) -> None:
    function, reference, points, shapes, first, second = FAMILIES[name]
    columns = [np.array(column) for column in zip(*points, strict=True)]
    if name in ("iv", "kv"):
        bessel = function
        function = lambda v, x: bessel(0.0, v, x)  # noqa: E731 - of order 0 it is the logarithm itself
    gradients = gradient(function, columns)
    for i in range(shapes):
        truth = [exact(reference, point, i) for point in points]
        assert relative(gradients[i], truth) <= first
        for j, ours in enumerate(hessian_rows(function, columns, i)):
            # A second derivative may be zero: then on the scale of the first one.
            scale = np.abs(truth) / np.maximum(1.0, np.abs(columns[j])) if name != "kv" else 0.0
            assert relative(ours, [exact(reference, point, i, j) for point in points], scale) <= second


@pytest.mark.parametrize(
    ("function", "reference", "points"),
    [
        (vm.gammainc_derivative, small_gamma, [(3, 0.7, 0.5), (3, 2.5, 4.0), (3, 60.0, 75.0)]),
        (vm.betainc_derivative, small_beta, [(21, 0.7, 2.5, 0.1), (30, 5.0, 7.0, 0.8), (12, 0.3, 0.4, 0.5)]),
        (vm.log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)), [(30, 0.3, 2.0), (21, 2.5, 0.7), (12, 9.0, 40.0)]),
        (vm.log_iv_derivative, lambda v, x: mpmath.log(mpmath.besseli(v, x)), [(10, -0.3, 0.5), (20, -2.3, 3.0), (11, -0.5, 9.0)]),
        (vm.log_kv_derivative, lambda v, x: mpmath.log(mpmath.besselk(v, x)), [(30, 0.3, 2.0), (21, 2.5, 0.7), (12, -9.1, 40.0)]),
    ],
)
def test_derivatives_of_higher_order(function: Any, reference: Any, points: list[Any]) -> None:
    for order, *point in points:
        axes = [0] * (order // 10) + [1] * (order % 10) if function is not vm.gammainc_derivative else [0] * order
        assert relative(function(order, *point), exact(reference, tuple(point), *axes)) <= 1e-11


def test_third_derivative_of_the_hypergeometric_function() -> None:
    def third(x: float) -> Any:
        with vm.nested():
            v = vm.var(x)
            inner = vm.Dual(vm.Dual(v, 1.0), vm.Dual(1.0, 0.0))
            vm.hyp2f1(inner, 1.5, 2.5, -3.0).tan.tan.grad()
            return v.adj

    assert third(1.2) == pytest.approx(exact(lambda a: mpmath.hyp2f1(a, 1.5, 2.5, -3), (1.2,), 0, 0, 0), rel=1e-12)


@pytest.mark.parametrize("name", ["ive", "kve"])
@pytest.mark.parametrize("order", [0.3, 2.5, 20.5])
def test_scaled_bessel_functions_of_large_arguments(name: str, order: float) -> None:
    """To as many digits as the documentation says."""

    def reference(y: Any) -> Any:
        return mpmath.exp(-y) * mpmath.besseli(order, y) if name == "ive" else mpmath.exp(y) * mpmath.besselk(order, y)

    function = lambda y: getattr(vm, name)(order, y)  # noqa: E731 - used below
    for y in (1e2, 1e3, 1e5):
        assert vm.gradient(function, y) == pytest.approx(exact(reference, (y,), 0), rel=2e-15 * y, abs=0.0)
        assert vm.hessian(function, y) == pytest.approx(exact(reference, (y,), 0, 0), rel=5e-15 * y * y, abs=0.0)


# Function, point, gradient there.
ENDS: list[tuple[Any, tuple[float, ...], tuple[float, ...]]] = [
    (vm.gammainc, (2.5, 0.0), (0.0, 0.0)),
    (vm.gammainc, (1.0, 0.0), (0.0, 1.0)),
    (vm.gammainc, (2.5, INF), (0.0, 0.0)),
    (vm.gammaincc, (0.5, 0.0), (0.0, -INF)),
    (vm.gammaincc, (1e-3, 1e4), (0.0, 0.0)),
    (vm.betainc, (2.0, 3.0, 0.0), (0.0, 0.0, 0.0)),
    (vm.betainc, (1.0, 3.0, 0.0), (0.0, 0.0, 3.0)),
    (vm.betainc, (2.0, 1.0, 1.0), (0.0, 0.0, 2.0)),
    (vm.betaincinv, (2.0, 3.0, 0.0), (0.0, 0.0, INF)),
    (vm.betaincinv, (2.0, 3.0, 1.0), (0.0, 0.0, INF)),
    (vm.gammaincinv, (2.0, 0.0), (0.0, INF)),
    (vm.iv, (1.5, 0.0), (0.0, 0.0)),
    (vm.iv, (0.0, 1e-300), (-690.891459, 0.0)),
    (vm.kv, (0.0, 2.5), (0.0, -0.07389082)),
    (vm.kv, (2.5, 1e3), (0.0, 0.0)),
    (vm.hyp2f1, (2.0, 3.0, 1.5, 0.0), (0.0, 0.0, 0.0, 4.0)),
    (vm.hyp2f1, (0.0, 3.0, 1.5, 0.5), (1.0 + 0.25 * math.pi, 0.0, 0.0, 0.0)),
]


@pytest.mark.parametrize(("function", "point", "expected"), ENDS)
def test_derivatives_at_the_ends(function: Any, point: tuple[float, ...], expected: tuple[float, ...]) -> None:
    for columns in (list(point), [np.array([x]) for x in point]):
        np.testing.assert_allclose(np.ravel(gradient(function, columns)), expected, rtol=1e-7, atol=1e-290)


@pytest.mark.parametrize(("shape", "distance"), [(0.01, 1e-20), (0.02, 1e-15), (0.05, 1e-8), (0.01, 1e-40), (0.001, 1e-300)])
def test_small_shapes_far_from_the_bulk(shape: float, distance: float) -> None:
    """With one shape 1 the function is a power of the distance from an end, and so is its inverse."""
    power = lambda a: mpmath.mpf(distance) ** a  # noqa: E731 - used below
    first, second = (exact(power, (shape,), *axes) for axes in ([0], [0, 0]))
    for f in (lambda a: vm.betainc(a, 1.0, distance), lambda a: -vm.betaincc(a, 1.0, distance)):
        assert vm.gradient(f, shape) == pytest.approx(first, rel=1e-13)
        assert vm.hessian(f, shape) == pytest.approx(second, rel=1e-13)
    if distance > 1e-16:
        complement = 1.0 - distance  # what is left after rounding is the distance
        left = lambda b: -mpmath.mpf(1.0 - complement) ** b  # noqa: E731 - used below
        assert vm.gradient(lambda b: vm.betainc(1.0, b, complement), shape) == pytest.approx(exact(left, (shape,), 0), rel=1e-13)
        assert vm.hessian(lambda b: vm.betainc(1.0, b, complement), shape) == pytest.approx(exact(left, (shape,), 0, 0), rel=1e-13)


@pytest.mark.parametrize(("shape", "level"), [(0.01, 0.7), (0.02, 0.3), (0.05, 0.1)])
def test_inverse_of_the_incomplete_beta_function_of_small_shapes(shape: float, level: float) -> None:
    power = lambda a: mpmath.mpf(level) ** (1 / a)  # noqa: E731 - used below
    for f in (lambda a: vm.betaincinv(a, 1.0, level), lambda a: vm.betainccinv(a, 1.0, 1.0 - level)):
        assert vm.gradient(f, shape) == pytest.approx(exact(power, (shape,), 0), rel=1e-12, abs=0.0)
        assert vm.hessian(f, shape) == pytest.approx(exact(power, (shape,), 0, 0), rel=1e-12, abs=0.0)


def test_symmetric_shapes() -> None:
    # At one half the median does not move with the common shape, and the two shapes pull with the same force.
    for shape in (1e-2, 0.5, 3.0, 1e4):
        a, b, _ = gradient(vm.betainc, [shape, shape, 0.5])
        assert a == pytest.approx(-b, rel=1e-13)
        assert gradient(lambda t: vm.betainc(t, t, 0.5), [shape])[0] == pytest.approx(0.0, abs=1e-13 * abs(a))


def test_hypergeometric_function_at_one() -> None:
    # Gauss: gamma(c) gamma(c - a - b) / (gamma(c - a) gamma(c - b)).
    def gauss(a: Any, b: Any, c: Any) -> Any:
        return mpmath.gammaprod([c, c - a - b], [c - a, c - b])

    point = (0.7, 1.1, 5.0)
    ours = gradient(lambda a, b, c: vm.hyp2f1(a, b, c, 1.0), list(point))
    assert relative(np.array(ours), [exact(gauss, point, i) for i in range(3)]) <= 1e-13
    assert relative(vm.hyp2f1_da(*point, 1.0), exact(gauss, point, 0)) <= 1e-13


def test_where_the_series_cancels_no_number_is_given() -> None:
    message = (
        r"^hyp2f1: the arguments are \(30.0, -20.5, 3.0, 0.4\), but must be such that the derivative with respect to a "
        "does not cancel!$"
    )
    with vm.nested():
        a = vm.var([2.0, 30.0])
        with pytest.raises(vm.DomainError, match=message):
            np.sum(vm.hyp2f1(a, -20.5, 3.0, 0.4)).grad()


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (vm.gammainc, (np.array([[0.3], [2.5], [9.0]]), np.array([0.5, 3.0]))),
        (vm.gammaincc, (np.array([0.3, 7.0])[::-1], np.float64(1.5))),
        (vm.gammaincinv, (np.array([0.7, 7.0]), np.array([0.3, 0.8]))),
        (vm.betainc, (np.array([[0.3], [5.0]]), np.float64(4.5), np.array([0.2, 0.7]))),
        (vm.betainc, (np.empty(0), np.empty(0), np.empty(0))),
        (vm.betaincinv, (np.array([0.7, 5.0]), np.array([4.5, 0.6]), np.float64(0.3))),
        (vm.ive, (np.array([[0.1], [1.5], [6.0]]), np.array([0.5, 3.0, 40.0]))),
        (vm.kve, (np.array([[0.1], [1.5], [6.0]]), np.array([0.5, 3.0, 40.0]))),
        (vm.log_modified_bessel_first_kind, (np.array([0.1, 0.6]), np.array([[0.5], [30.0]]))),
        (vm.hyp2f1, (np.array([0.7, 2.0]), np.float64(1.5), np.array([2.2, 3.1]), np.array([0.3, -1.5]))),
    ],
)
def test_all_routes(function: Any, args: tuple[Any, ...]) -> None:
    expect_ad(function, *args)
    expect_ad_matvar(function, *args)


def test_blocks_agree_with_single_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = np.geomspace(0.1, 50.0, 40)
    calls = [
        lambda t: vm.gammainc_derivative(1.0, t, 2.0),
        lambda t: vm.betainc_derivative(10.0, t, 2.0, 0.3),
        lambda t: vm.log_iv_derivative(10.0, t, 5.0),
        lambda t: vm.log_kv_derivative(10.0, t, 5.0),
        lambda t: vm.hyp2f1_da(t, 2.0, 3.0, 0.3),
    ]
    whole = [call(shapes) for call in calls]
    for call, expected in zip(calls, whole, strict=True):
        np.testing.assert_allclose([call(float(t)) for t in shapes], expected, rtol=1e-13)
    monkeypatch.setattr(shape_derivatives.on_domain, "__kwdefaults__", {"block": 7})
    for call, expected in zip(calls[:4], whole, strict=False):
        np.testing.assert_allclose(call(shapes), expected, rtol=1e-13)


def test_jets_multiply_like_derivatives() -> None:
    # (x y)' in three directions, of x = exp(t + 2 u + 3 v) and y = 1 / (5 + t) at 0: against the derivatives written out.
    line = np.array([0.0, 1.0, 2.0, 0.0, 3.0, 0.0, 0.0, 0.0]).reshape(8, 1)
    exponential = hypergeometric_derivatives.Jet(line).exponential(np.ones(1))
    np.testing.assert_allclose(exponential.parts[:, 0], [1, 1, 2, 2, 3, 3, 6, 6], rtol=1e-15)
    shifted = np.array([5.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).reshape(8, 1)
    reciprocal = hypergeometric_derivatives.Jet(shifted).reciprocal()
    product = exponential * reciprocal
    np.testing.assert_allclose(product.parts[:, 0], [0.2, 0.16, 0.4, 0.32, 0.6, 0.48, 1.2, 0.96], rtol=1e-15)


def test_cumulants_of_two_exponentials() -> None:
    # log(exp(2 s + t) + 3 exp(-s + 4 t)) at 0: moments of a variable with two values, of probability 1 / 4 and 3 / 4.
    weights = np.array([[1.0, 3.0]])
    slopes = {(1, 0): np.array([[2.0, -1.0]]), (0, 1): np.array([[1.0, 4.0]])}
    derivative = lambda i, j: slopes.get((i, j), 0.0)  # noqa: E731 - used below
    expected = {10: -0.25, 1: 3.25, 20: 27 / 16, 11: -27 / 16, 2: 27 / 16, 30: 81 / 32, 21: -81 / 32}
    for order, value in expected.items():
        np.testing.assert_allclose(order_derivatives.cumulant(order, weights, derivative), value, rtol=1e-14)
