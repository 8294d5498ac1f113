"""`expect_value` differentiates its reference on the scale of the operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from varmat.testing import expect_value

SIZES = [1e-280, 1e-60, 1e-20, 1.0, 1e20, 1e60, 1e280]
FUNCTIONS: dict[str, tuple[Any, str, list[Any]]] = {
    "log": (np.log, "log(x)", SIZES),
    "sqrt": (np.sqrt, "sqrt(x)", SIZES),
    "cbrt": (np.cbrt, "cbrt(x)", SIZES),
    "arctan": (np.arctan, "atan(x)", [0.0, *SIZES[:5]]),
    "divide": (np.divide, "x / y", [(1e-100, 1e-30), (1e30, 1e-100), (-1e-30, 1e100), (0.0, 1e-50)]),
    "hypot": (np.hypot, "sqrt(x**2 + y**2)", [(3e-100, 4e-100), (3e100, 4e100), (1e-10, -2e-10)]),
    "integers": (lambda x, n: x**n, "x**y", [(1e-50, 3), (1e50, 3)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiny_and_huge_operands(name: str) -> None:
    f, reference, points = FUNCTIONS[name]
    assert expect_value(f, reference, points).worst < 1e-14


@pytest.mark.parametrize("x", [1e-60, 1.0, 1e60])
def test_a_wrong_derivative_is_found_at_any_size(x: float) -> None:
    with pytest.raises(AssertionError, match="the value is"):
        expect_value(np.sin, "sin(x) * (1 + mpf(10)**-9)", [x])
    with pytest.raises(AssertionError, match="the derivative with respect to argument 0"):
        expect_value(lambda t: np.log(t) - np.log(t / x) * 1e-9, f"log(x) - 1e-9 * log(x / mpf({x!r})) * 2", [x])
