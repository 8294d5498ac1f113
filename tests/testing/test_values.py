"""`expect_value` finds mistakes, and differentiates its reference on the scale of the operands."""

import sys

import mpmath
import numpy as np
import pytest
from comparing import refuses
from testing.operations import make, own_tables  # noqa: F401 - own_tables is a fixture

import varmat as vm
from varmat.testing import expect_value

SIZES = [1e-280, 1e-60, 1e-20, 1.0, 1e20, 1e60, 1e280]
FUNCTIONS = {
    "log": (np.log, "log(x)", SIZES), "sqrt": (np.sqrt, "sqrt(x)", SIZES),
    "cbrt": (np.cbrt, "cbrt(x)", SIZES),
    "arctan": (np.arctan, "atan(x)", [0.0, *SIZES[:5]]),
    "divide": (np.divide, "x / y",
               [(1e-100, 1e-30), (1e30, 1e-100), (-1e-30, 1e100), (0.0, 1e-50)]),
    "hypot": (np.hypot, "sqrt(x**2 + y**2)", [(3e-100, 4e-100), (3e100, 4e100), (1e-10, -2e-10)]),
    "integers": (lambda x, n: x**n, "x**y", [(1e-50, 3), (1e50, 3)]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tiny_and_huge_operands(name):
    f, reference, points = FUNCTIONS[name]
    assert expect_value(f, reference, points).worst < 1e-14


@pytest.mark.parametrize("x", [1e-60, 1.0, 1e60])
def test_a_wrong_derivative_is_found_at_any_size(x):
    refuses(AssertionError, "the value is", expect_value, np.sin, "sin(x) * (1 + mpf(10)**-9)", [x])
    with pytest.raises(AssertionError, match="the derivative with respect to argument 0"):
        expect_value(
            lambda t: np.log(t) - np.log(t / x) * 1e-9,
            f"log(x) - 1e-9 * log(x / mpf({x!r})) * 2",
            [x],
        )


VALUES = [
    (np.log1p, "log1p(x)", [1e-10, 0.5, 3.0]),
    (np.multiply, "x * y", [(0.1, -3.0), (2.0, 1e-200)]),
    (np.exp, lambda x: mpmath.exp(x), [-700.0, 0.0, 700.0]),
    (lambda x, n: x**n, "x ** y", [(1.5, 3), (-0.2, 3)]),
    (np.log, "log(x)", []),
]


@pytest.mark.parametrize(("f", "reference", "points"), VALUES, ids=range(len(VALUES)))
def test_expect_value_passes(f, reference, points):
    report = expect_value(f, reference, points)
    assert report.worst < 1e-15 * 3
    expected = {"Var / 50-digit reference", "VarMat / 50-digit reference"} if points else set()
    assert set(report.errors) == expected


def wrong_for_arrays(x):
    return np.exp(x) if isinstance(x, vm.Var) else np.exp(x) * (1.0 + 1e-11)


WRONG_VALUES = [
    (lambda x: np.exp(x) - 1.0, "expm1(x)", 1e-10,
        r"Var and 50-digit reference disagree: <lambda>\(1e-10\): the value is"),
    (lambda x: x * vm.value(x), "x * x", 1.5,
        "the derivative with respect to argument 0 is 1.5 against 3, off by 1.5"),
    (wrong_for_arrays, "exp(x)", 1.0,
        r"VarMat and 50-digit reference disagree: arrays of 1 points: the value\[0\] is"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("f", "reference", "point", "message"), WRONG_VALUES, ids=range(len(WRONG_VALUES))
)
def test_expect_value_catches(f, reference, point, message):
    refuses(AssertionError, message, expect_value, f, reference, [point])


def test_expect_value_of_a_sum():
    total = make(lambda x: np.add.reduce(np.ravel(np.square(x))), lambda g, r, x: 2.0 * g * x)
    assert expect_value(total, "x * x", [0.1, 0.2, 0.3]).worst < 1e-15


def test_expect_value_refuses_complex_reference():
    refuses(ValueError, "the reference is complex there", expect_value, np.exp, "log(x)", [-1.0])


def test_expect_value_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpmath", None)
    refuses(ImportError, r'pip install -e "\.\[test\]"', expect_value, np.exp, "exp(x)", [1.0])
