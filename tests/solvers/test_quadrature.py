"""Integrals: values, derivatives by all routes, Stan's reference values, and what is refused."""

from __future__ import annotations

import math
import re

import mpmath
import numpy as np
import pytest

import varmat as vm
from varmat.testing import expect_ad

TH = np.array([0.7, 1.3])


def wave(x, xc, th):
    return np.exp(-th[0] * x**2) * np.cos(th[1] * x)


def test_agrees_with_stan():
    """Reference values computed with Stan Math, to its tolerance."""
    value, gradient = vm.value_and_grad(lambda th: vm.integrate_1d(wave, -np.inf, 0.4, th))(TH)
    assert value == pytest.approx(0.9481694419811609, rel=1e-13)
    np.testing.assert_allclose(gradient, [0.06732293694689269, -0.5631338861930932], rtol=1e-7)
    value, gradient = vm.value_and_grad(
        lambda th: vm.integrate_1d(
            lambda x, xc, th: x ** (th[0] - 1) * np.exp(-x * th[1]), 0.0, np.inf, th
        )
    )(np.array([2.4, 1.3]))
    assert value == pytest.approx(math.gamma(2.4) / 1.3**2.4, rel=1e-12)
    np.testing.assert_allclose(gradient, [0.2584513719953364, -1.2217564795012874], rtol=1e-7)
    value, gradient = vm.value_and_grad(
        lambda th: vm.integrate_1d(
            lambda x, xc, th: x ** (th[0] - 1) * np.abs(xc) ** (th[1] - 1), 0.0, 1.0, th
        )
    )(np.array([1.4, 1.3]))
    assert value == pytest.approx(0.45340168054348373, rel=1e-6)
    np.testing.assert_allclose(gradient, [-0.32343110668973396, -0.6443856493155984], rtol=1e-6)


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
    np.testing.assert_allclose([value, *gradient], np.array(exact, float), rtol=1e-12)


def test_all_routes_agree():
    expect_ad(lambda th: vm.integrate_1d(lambda x, xc, th: np.exp(-th * x), 0.1, th, th), 1.3)


def test_second_derivatives_in_limits_and_parameters():
    """The integral of exp(-k x) from a to b, which has a closed form."""
    x = np.array([0.2, 0.9, 1.3])

    def f(x):
        return vm.integrate_1d(lambda u, uc, k: np.exp(-k * u), x[0], x[1], x[2])

    def exact(x):
        return (np.exp(-x[2] * x[0]) - np.exp(-x[2] * x[1])) / x[2]

    np.testing.assert_allclose(vm.gradient(f, x), vm.gradient(exact, x), rtol=1e-12)
    np.testing.assert_allclose(vm.hessian(f, x), vm.hessian(exact, x), rtol=1e-11)


def test_the_complement_keeps_its_digits():
    """(1 - x)^(-1/2) near 1, where 1 - x has lost its digits and xc has not."""
    value = vm.integrate_1d(lambda x, xc: 1.0 / np.sqrt(xc if xc > 0 else 1.0 - x), 0.0, 1.0)
    assert value == pytest.approx(2.0, rel=1e-12)
    signs = []
    vm.integrate_1d(lambda x, xc: signs.append((x, xc)) or 1.0, 2.0, 4.0)
    assert all(
        xc == pytest.approx(2.0 - x if x < 3.0 else 4.0 - x, abs=1e-15)
        for x, xc in signs
        if abs(x - 3.0) > 1e-9
    )


def test_limits():
    assert vm.integrate_1d(wave, 1.0, 1.0, TH) == 0.0
    assert vm.gradient(lambda a: vm.integrate_1d(wave, a, 1.0, TH), 1.0) == pytest.approx(
        -wave(1.0, 0.0, TH)
    )
    np.testing.assert_array_equal(
        vm.gradient(lambda th: vm.integrate_1d(wave, 1.0, 1.0, th), TH), np.zeros(2)
    )
    assert vm.gradient(lambda a: vm.integrate_1d(wave, a, 1.0, TH), -np.inf) == 0.0


def test_recorded_models_integrate_anew():
    f = vm.recorded(lambda th: vm.integrate_1d(lambda x, xc, th: np.exp(-th * x), 0.0, np.inf, th))
    for th in (2.0, 3.0):
        value, gradient = f(th)
        assert value == pytest.approx(1.0 / th, rel=1e-12)
        assert gradient == pytest.approx(-1.0 / th**2, rel=1e-12)


def test_boxes():
    def gauss(x, a):
        return np.exp(-a[0] * np.sum(x**2)) * np.cos(a[1] * x[0])

    assert vm.hcubature(lambda x: 1.0, [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]) == pytest.approx(
        6.0, rel=1e-14
    )
    exact = math.pi * math.exp(-0.25)
    assert vm.hcubature(gauss, [-np.inf] * 2, [np.inf] * 2, np.array([1.0, 1.0])) == pytest.approx(
        exact, rel=1e-8
    )


def test_derivatives_over_boxes():
    """The integral of exp(-a x - b y) is a product of two integrals."""

    def f(c):
        return vm.hcubature(lambda x, c: np.exp(-np.sum(c * x)), [0.0, 0.0], [1.0, 2.0], c)

    def exact(c):
        return np.prod((1.0 - np.exp(-c * np.array([1.0, 2.0]))) / c)

    c = np.array([1.5, 0.7])
    np.testing.assert_allclose(vm.gradient(f, c), vm.gradient(exact, c), rtol=1e-11)
    np.testing.assert_allclose(vm.hessian(f, c), vm.hessian(exact, c), rtol=1e-10)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: vm.integrate_1d(wave, 1.0, 0.0, TH), vm.DomainError,
     "integrate_1d: a is 1.0, but must be at most b, 0.0!"),
    (lambda: vm.integrate_1d(wave, np.nan, 0.0, TH), vm.DomainError,
     "integrate_1d: a is nan, but must not be nan!"),
    (lambda: vm.integrate_1d(wave, [0.0], 1.0, TH), vm.ShapeError,
     "integrate_1d: a has shape (1,), but must be a scalar!"),
    (lambda: vm.integrate_1d(wave, 0.0, 1.0, np.array([np.nan, 1.0])), vm.DomainError,
     ("integrate_1d: f is not finite somewhere between the limits, or does not fall off, but must "
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
     ("hcubature: a corner is a variable, but has no derivative here: substitute x = a + (b - a) * "
     "u in f!")),
    (lambda: vm.hcubature(lambda x: np.sin(300.0 * x[0]), [0.0], [1.1], max_subdivisions=2),
     vm.DomainError,
     "hcubature: the estimate of the error is "),
])  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()
