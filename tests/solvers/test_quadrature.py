"""Integrals: values, derivatives by all routes, Stan's reference values, and what is refused."""

import math
import re

import mpmath
import numpy as np
import pytest
from comparing import close, equal, refuses
from scipy.special import beta, digamma

import varmat as vm
from varmat.testing import expect_ad

TH = np.array([0.7, 1.3])


def wave(x, xc, th):
    return np.exp(-th[0] * x**2) * np.cos(th[1] * x)


def test_against_fifty_digits():
    factors = (
        lambda x: mpmath.cos(1.3 * x),
        lambda x: -(x**2) * mpmath.cos(1.3 * x),
        lambda x: -x * mpmath.sin(1.3 * x),
    )
    with mpmath.workdps(30):
        exact = [
            mpmath.quad(lambda x, f=f: mpmath.exp(-0.7 * x**2) * f(x), [-0.5, 0, 0.4])
            for f in factors
        ]
    value, gradient = vm.value_and_grad(lambda th: vm.integrate_1d(wave, -0.5, 0.4, th))(TH)
    close([value, *gradient], np.array(exact, float), 1e-12)


def test_all_routes_agree():
    expect_ad(lambda th: vm.integrate_1d(lambda x, xc, th: np.exp(-th * x), 0.1, th, th), 1.3)


def test_second_derivatives_in_limits_and_parameters():
    """The integral of exp(-k x) from a to b, which has a closed form."""
    x = np.array([0.2, 0.9, 1.3])

    def f(x):
        return vm.integrate_1d(lambda u, uc, k: np.exp(-k * u), x[0], x[1], x[2])

    def exact(x):
        return (np.exp(-x[2] * x[0]) - np.exp(-x[2] * x[1])) / x[2]

    close(vm.gradient(f, x), vm.gradient(exact, x), 1e-12)
    close(vm.hessian(f, x), vm.hessian(exact, x), 1e-11)


def test_the_complement_keeps_its_digits():
    """(1 - x)^(-1/2) near 1, where 1 - x has lost its digits and xc has not."""
    value = vm.integrate_1d(lambda x, xc: 1.0 / np.sqrt(xc if xc > 0 else 1.0 - x), 0.0, 1.0)
    close(value, 2.0, 1e-12)
    signs = []
    vm.integrate_1d(lambda x, xc: signs.append((x, xc)) or 1.0, 2.0, 4.0)
    assert all(
        xc == pytest.approx(2.0 - x if x < 3.0 else 4.0 - x, abs=1e-15)
        for x, xc in signs
        if abs(x - 3.0) > 1e-9
    )


def test_limits():
    assert vm.integrate_1d(wave, 1.0, 1.0, TH) == 0.0
    close(vm.gradient(lambda a: vm.integrate_1d(wave, a, 1.0, TH), 1.0), -wave(1.0, 0.0, TH), 1e-6)
    equal(vm.gradient(lambda th: vm.integrate_1d(wave, 1.0, 1.0, th), TH), np.zeros(2))
    assert vm.gradient(lambda a: vm.integrate_1d(wave, a, 1.0, TH), -np.inf) == 0.0


def test_recorded_models_integrate_anew():
    f = vm.recorded(lambda th: vm.integrate_1d(lambda x, xc, th: np.exp(-th * x), 0.0, np.inf, th))
    for th in (2.0, 3.0):
        value, gradient = f(th)
        close(value, 1.0 / th, 1e-12)
        close(gradient, -1.0 / th**2, 1e-12)


def test_boxes():
    def gauss(x, a):
        return np.exp(-a[0] * np.sum(x**2)) * np.cos(a[1] * x[0])

    close(vm.hcubature(lambda x: 1.0, [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]), 6.0, 1e-14)
    exact = math.pi * math.exp(-0.25)
    close(vm.hcubature(gauss, [-np.inf] * 2, [np.inf] * 2, np.array([1.0, 1.0])), exact, 1e-8)


def test_derivatives_over_boxes():
    """The integral of exp(-a x - b y) is a product of two integrals."""

    def f(c):
        return vm.hcubature(lambda x, c: np.exp(-np.sum(c * x)), [0.0, 0.0], [1.0, 2.0], c)

    def exact(c):
        return np.prod((1.0 - np.exp(-c * np.array([1.0, 2.0]))) / c)

    c = np.array([1.5, 0.7])
    close(vm.gradient(f, c), vm.gradient(exact, c), 1e-11)
    close(vm.hessian(f, c), vm.hessian(exact, c), 1e-10)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.integrate_1d(wave, 1.0, 0.0, TH), vm.DomainError,
     "integrate_1d: a is 1.0, but must be at most b, 0.0!"),
    (lambda: vm.integrate_1d(wave, np.nan, 0.0, TH), vm.DomainError,
     "integrate_1d: a is nan, but must not be nan!"),
    (lambda: vm.integrate_1d(wave, [0.0], 1.0, TH), vm.ShapeError,
     "integrate_1d: a has shape (1,), but must be a scalar!"),
    (lambda: vm.integrate_1d(wave, 0.0, 1.0, np.array([np.nan, 1.0])), vm.DomainError,
     ("integrate_1d: f is not finite somewhere between the limits, or decays too slowly, but must "
     "have an integral!")),
    (lambda: vm.integrate_1d(lambda x, xc: np.ones(2), 0.0, 1.0), vm.ShapeError,
     "integrate_1d: f returns 2 elements, but must return a number!"),
    (lambda: vm.integrate_1d(wave, 0.0, 1.0, TH, relative_tolerance=0.0), vm.DomainError,
     "integrate_1d: relative_tolerance is 0.0, but must be positive!"),
    (lambda: vm.integrate_1d(lambda x, xc: np.sin(1e5 * x), 0.0, 1.1), vm.DomainError,
     "integrate_1d: the estimate of the error is "),
    (lambda: vm.hcubature(lambda x: 1.0, [0.0], [1.0, 2.0]), vm.ShapeError,
     "hcubature: the corners have shapes (1,) and (2,), but must be vectors of one length!"),
    (lambda: vm.gradient(lambda a: vm.hcubature(lambda x: 1.0, [a], [1.0]), 0.0), TypeError,
     ("hcubature: a corner is a variable, but corners have no derivative: substitute x = a + (b - "
     "a) * u in f!")),
    (lambda: vm.hcubature(lambda x: np.sin(300.0 * x[0]), [0.0], [1.1], max_subdivisions=2),
     vm.DomainError, "hcubature: the estimate of the error is "),
])  # fmt: skip
def test_errors(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


def to_one(x, xc):
    """1 - x on (0, 1), to full precision close to 1."""
    return xc if xc > 0 else 1.0 - x


def families(rng):
    """Integrands of a parameter, the limits, the parameter, the integral and its derivative; None
    if there is no integral, or no integrator could find it.
    """
    p, q, c = rng.uniform(-0.9, 3.0), rng.uniform(-0.9, 3.0), 10.0 ** rng.uniform(-2.0, 2.0)
    edge, m, place = rng.uniform(-0.999, -0.9), rng.uniform(-30.0, 30.0), rng.uniform(0.01, 0.99)
    k, none, inf = 10.0 ** rng.uniform(0.0, 3.0), (None, None), np.inf

    def peak(x, xc, s):
        return np.exp(-0.5 * ((x - m) / s) ** 2)

    b = beta(p + 1.0, q + 1.0)
    in_b = b * (digamma(p + 1.0) - digamma(p + q + 2.0))
    g = math.gamma(p + 1.0) * c ** -(p + 1.0)
    area = math.sqrt(0.5 * math.pi)
    for name, power in (("power", p), ("power at the edge", edge), ("no integral", -1.0 + edge)):
        known = (1.0 / (power + 1.0), -((power + 1.0) ** -2.0)) if power > -1.0 else none
        yield name, lambda x, xc, p: x**p, 0.0, 1.0, power, *known
        yield f"{name}, far out", lambda x, xc, p: x ** (-p - 2.0), 1.0, inf, power, *known
    yield "1/x", lambda x, xc, k: k / x, 0.0, 1.0, k, *none
    yield "both ends", lambda x, xc, p: x**p * to_one(x, xc) ** q, 0.0, 1.0, p, b, in_b
    yield "other end", lambda x, xc, p: x**q * to_one(x, xc) ** p, 0.0, 1.0, p, b, in_b
    yield ("gamma", lambda x, xc, p: x**p * np.exp(-c * x), 0.0, inf, p, g,
           g * (digamma(p + 1.0) - math.log(c)))  # fmt: skip
    yield ("wave", lambda x, xc, k: np.cos(k * x), 0.0, 1.0, k, math.sin(k) / k,
           math.cos(k) / k - math.sin(k) / k**2)  # fmt: skip
    yield "wave far out", lambda x, xc, k: np.sin(k * x) / x, 0.0, inf, k, 0.5 * math.pi, 0.0
    yield "wave at 0", lambda x, xc, k: np.sin(k / x) / x, 0.0, 1.0, k, *none
    yield "pole", lambda x, xc, c: x**-0.5 / (x - c), 0.0, 1.0, place, *none
    yield "pole in the middle", lambda x, xc, c: 1.0 / (x - c), -1.0, 1.0, 0.0, *none
    yield "double pole", lambda x, xc, c: (x - c) ** -2.0, 0.0, 1.0, place, *none
    yield ("pole outside", lambda x, xc, c: 1.0 / (x + c), 0.0, 1.0, c, math.log1p(1.0 / c),
           -1.0 / (c * (1.0 + c)))  # fmt: skip
    yield "peak", peak, -inf, inf, c, 2.0 * c * area, 2.0 * area
    yield "half a peak", peak, m, inf, c, c * area, area
    yield "the other half", peak, -inf, m, c, c * area, area
    yield ("Cauchy", lambda x, xc, s: 1.0 / (1.0 + ((x - m) / s) ** 2), -inf, inf, c, c * math.pi,
           math.pi)  # fmt: skip
    yield ("jump", lambda x, xc, k: k * np.where(x > place, 1.0, 0.0), 0.0, 1.0, c,
           c * (1.0 - place), 1.0 - place)  # fmt: skip
    yield "nan in a part", lambda x, xc, k: k * np.sqrt(x - place), 0.0, 1.0, c, *none


def checked(f, args, expected):
    """Whether a result was returned; it must be right, or the call must refuse."""
    try:
        found = f(*args)
    except vm.DomainError:
        return False
    assert expected is not None
    assert found == pytest.approx(expected, rel=1.5e-8, abs=1e-13)
    return True


# Most of these families are integrated at all parameters.
ALWAYS = {
    "power", "power, far out", "both ends", "other end", "gamma", "wave", "pole outside",
    "half a peak", "the other half",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_results_are_right_or_refused(seed):
    """With singular limits, poles, waves, peaks, tails: the value, and the derivatives in the
    parameter and in the limits.
    """
    for name, f, a, b, x, value, slope in families(np.random.default_rng(seed)):
        args = (f, a, b, x)
        found = checked(vm.integrate_1d, args, value)
        found = found and checked(vm.grad(vm.integrate_1d, 3), args, slope)
        assert found or name not in ALWAYS, name
        if found and np.isfinite(b):
            close(vm.grad(vm.integrate_1d, 2)(*args), f(np.float64(b), np.float64(0.0), x), 1e-12)


@pytest.mark.filterwarnings("error")
def test_numbers_follow_ieee_in_integrands():
    """Python's floats would raise at 0."""
    value, slope = vm.value_and_grad(
        lambda a: vm.integrate_1d(lambda x, xc, a: x ** (a - 1.0), 0.0, 1.0, a)
    )(0.5)
    assert (value, slope) == (pytest.approx(2.0, rel=1e-12), pytest.approx(-4.0, rel=1e-12))
    assert vm.gradient(lambda a: vm.integrate_1d(lambda x, xc: x**-0.5, a, 1.0), 0.0) == -np.inf
    close(vm.integrate_1d(lambda x, xc, k: x + 1.0 / (1.0 + 1.0 / k), 0.0, 1.0, 0.0), 0.5, 1e-12)
    close(vm.hcubature(lambda x, k: x[0] + 1.0 / (1.0 + 1.0 / k), [0.0], [1.0], 0.0), 0.5, 1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solve", [
    lambda f: vm.solve_newton(lambda y, k: y - f(k), [1.0], 0.0)[0],
    lambda f: vm.solve_powell(lambda y, k: y - f(k), [1.0], 0.0)[0],
    lambda f: vm.fixed_point(lambda y, k: 0.5 * y + f(k), [1.0], 0.0)[0],
    lambda f: vm.ode_rk45(lambda t, y, k: y * f(t) + f(k), [0.0], 0.0, [1.0], 0.0)[0, 0],
    lambda f: vm.ode_bdf(lambda t, y, k: y * f(t) + f(k), [0.0], 0.0, [1.0], 0.0)[0, 0],
    lambda f: vm.scan(lambda c, x: (f(c) + f(x), c), 0.0, np.zeros(2))[0],
], ids=["newton", "powell", "fixed_point", "rk45", "bdf", "scan"])  # fmt: skip
def test_numbers_follow_ieee_in_functions_of_solvers(solve):
    """1 / (1 + 1/k) is 0 at 0, in which the division by zero is infinite."""
    close(solve(lambda k: 1.0 / (1.0 + 1.0 / k)), 0.0, 0.0, 1e-8)
