"""Derivatives of modified Bessel functions in the order: large arguments, and cumulants."""

import mpmath
import numpy as np
import pytest
from comparing import close, equal
from functions.partials import exact

import varmat as vm


@pytest.mark.parametrize("name", ["ive", "kve"])
@pytest.mark.parametrize("order", [0.3, 2.5, 20.5])
def test_scaled_bessel_functions_of_large_arguments(name, order):
    """They have as many digits as the documentation says."""

    def reference(y):
        if name == "ive":
            return mpmath.exp(-y) * mpmath.besseli(order, y)
        return mpmath.exp(y) * mpmath.besselk(order, y)

    function = lambda y: getattr(vm, name)(order, y)  # noqa: E731 - used below
    for y in (1e2, 1e3, 1e5):
        close(vm.gradient(function, y), exact(reference, (y,), 0), 2e-15 * y)
        close(vm.hessian(function, y), exact(reference, (y,), 0, 0), 5e-15 * y * y)


@pytest.mark.parametrize("v", [0.0, 1e-60, 1e-10, 0.3, 0.5, 1.0, 2.5, 30.0, 300.5])
def test_the_logarithm_of_i_of_small_and_large_arguments(v):
    for z in (1e-150, 1e-20, 1e-8, 1e-5, 1e-3, 0.1, 0.99, 1.01, 5.0, 1e3, 9e7, 2e8, 1e12):
        with mpmath.workdps(400):
            if z < 1e4:
                value = mpmath.log(mpmath.besseli(v, z))
                slope = mpmath.besseli(v + 1, z) / mpmath.besseli(v, z) + mpmath.mpf(v) / z
            else:  # DLMF 10.40.1
                m, x = 4 * mpmath.mpf(v) ** 2, 8 * mpmath.mpf(z)
                terms = [mpmath.mpf(1)]
                for k in range(1, 12):
                    terms.append(-terms[-1] * (m - (2 * k - 1) ** 2) / (k * x))
                value = z - mpmath.log(2 * mpmath.pi * z) / 2 + mpmath.log(sum(terms))
                slope = 1 - mpmath.mpf(1) / (2 * z) + (m - 1) / (x * z)
        for argument in (z, np.array([z])):
            found, gradient = vm.value_and_grad(
                lambda y: np.sum(vm.log_modified_bessel_first_kind(v, y))
            )(argument)
            assert found == pytest.approx(float(value), rel=2e-13, abs=0.0), z
            assert np.ravel(gradient)[0] == pytest.approx(float(slope), rel=2e-13, abs=0.0), z


def test_the_logarithm_of_i_at_the_ends():
    f, inf = vm.log_modified_bessel_first_kind, np.inf
    found = [f(0.0, inf), f(2.5, inf), f(inf, 1.0), f(0.0, 0.0), f(0.5, 0.0)]
    assert found == [inf, inf, -inf, 0.0, -inf]
    assert np.isnan([f(inf, inf), f(np.nan, 1.0), f(0.0, np.nan), f(0.0, -1.0)]).all()
    close(f([0.0, 0.0, inf], [inf, 1e-8, 2.0]), [inf, 2.5e-17, -inf], 1e-15)
    assert vm.value_and_grad(lambda z: f(1.5, z))(inf) == (inf, 1.0)
    assert vm.value_and_grad(lambda v: f(v, inf))(1.5) == (inf, 0.0)
    assert vm.value_and_grad(lambda z: f(0.0, z))(0.0) == (0.0, 0.0)
    assert vm.hessian(lambda z: f(1.5, z), inf) == 0.0


def test_the_logarithm_of_the_rising_factorial_at_the_ends():
    f, inf = vm.log_rising_factorial, np.inf
    found = [f(5.2, inf), f(inf, 2.0), f(inf, -2.0), f(inf, 0.0), f(inf, inf)]
    assert found == [inf, inf, -inf, 0.0, inf]
    assert np.isnan([f(inf, -inf), f(5.2, np.nan), f(np.nan, inf), f(5.2, -inf)]).all()
    equal(f([5.2, 5.2], [inf, 0.0]), [inf, 0.0])
    assert vm.value_and_grad(lambda y: f(5.2, y))(inf) == (inf, inf)
    assert vm.log_falling_factorial(inf, 2.0) == inf


@pytest.mark.parametrize("order", [0.0, 0.3, 1.0, 5.0, 100.0])
def test_the_logarithm_is_recorded_without_calls_of_python(order):
    """Where `ive` underflows the function itself is evaluated."""
    recorded = vm.recorded(lambda x: vm.log_modified_bessel_first_kind(order, x), runner="numpy")
    with mpmath.workdps(50):
        for x in (1e-8, 0.3, 1.0, 1.01, 2.0, 100.0, 1e4, 1e6):
            value, slope = recorded(x)
            below, at, above = (mpmath.besseli(order + k, x) for k in (-1, 0, 1))
            close(value, float(mpmath.log(at)), 1e-13)
            close(slope, float((below + above) / at / 2), 1e-12)
    assert all(step.kernel.is_native for step in recorded.program.steps)
