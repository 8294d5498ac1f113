"""Integrals of samples: against SciPy, polynomials that are integrated exactly, and along all
routes.
"""

import numpy as np
import pytest
import scipy.integrate
from comparing import close, refuses_as

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

RNG = np.random.default_rng(15)
X = np.cumsum(RNG.uniform(0.1, 1.0, size=9))
Y = RNG.normal(size=(9, 2))
NAMES = ("simpson", "cumulative_trapezoid", "cumulative_simpson")


@pytest.mark.parametrize("name", NAMES)
def test_values_of_scipy(name):
    f, g = getattr(vm, name), getattr(scipy.integrate, name)
    for n in (1, 2, 3, 4, 5, 8):
        y, x = Y[:n], X[:n]
        for settings in (
            {},
            {"dx": 0.3},
            *(({"x": x}, {"x": np.stack([x, 2.0 * x], 1)}) if n > 1 else ()),
        ):
            close(f(vm.var(y), axis=0, **settings).val, g(y, axis=0, **settings), 1e-7, 1e-13)
            if name != "simpson":
                found = f(vm.var(y), axis=0, initial=0, **settings).val
                close(found, g(y, axis=0, initial=0, **settings), 1e-7, 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_by_all_routes(name):
    f = getattr(vm, name)
    expect_ad(lambda y, x: f(y, x=x), Y[:5, 0], X[:5])
    expect_ad(lambda y, dx: f(y, dx=dx, axis=0), Y[:4], 0.3)
    expect_ad_matvar(f, Y[:4, 0])


def test_initial_value_of_a_running_integral():
    expect_ad(lambda y, c: vm.cumulative_simpson(y, initial=c), Y[:4, 0], 0.7)


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_romberg(n):
    close(vm.romb(vm.var(Y[:n]), 0.3, 0).val, scipy.integrate.romb(Y[:n], 0.3, 0), 1e-13)
    expect_ad(vm.romb, Y[:n, 0])


@pytest.mark.parametrize(("call", "message"), [
    (lambda y: vm.simpson(y[0, 0]), "y has shape (), but must have samples along the axis!"),
    (lambda y: vm.simpson(y, x=X[:3]), "x has shape (3,), but must have shape (2,) or (9, 2)!"),
    (lambda y: vm.cumulative_trapezoid(y, initial=1.0), "initial is 1.0, but must be 0 or None!"),
    (lambda y: vm.romb(y, axis=0)[:0] + vm.romb(y[:4], axis=0),
     "y has shape (4, 2), but must have 2**k + 1 samples along the axis!"),
])  # fmt: skip
def test_refusals(call, message):
    refuses_as(ValueError, message, call, vm.var(Y))
