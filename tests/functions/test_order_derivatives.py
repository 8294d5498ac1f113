"""Derivatives of modified Bessel functions with respect to the order: large arguments, and cumulants."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from partials import exact

import varmat as vm
from varmat.functions import order_derivatives


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


def test_cumulants_of_two_exponentials() -> None:
    # log(exp(2 s + t) + 3 exp(-s + 4 t)) at 0: moments of a variable with two values, of probability 1 / 4 and 3 / 4.
    weights = np.array([[1.0, 3.0]])
    slopes = {(1, 0): np.array([[2.0, -1.0]]), (0, 1): np.array([[1.0, 4.0]])}
    derivative = lambda i, j: slopes.get((i, j), 0.0)  # noqa: E731 - used below
    expected = {10: -0.25, 1: 3.25, 20: 27 / 16, 11: -27 / 16, 2: 27 / 16, 30: 81 / 32, 21: -81 / 32}
    for order, value in expected.items():
        np.testing.assert_allclose(order_derivatives.cumulant(order, weights, derivative), value, rtol=1e-14)
