"""The sums of expressions: what they are, and that numbers, abbreviations and sums of products cost no pass over the arrays."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from varmat.programs.expressions import (
    DIFFERENCES,
    TABLE,
    Writer,
    compiled,
    digamma_differences,
    log_binomials,
    log_factorials,
    log_rising_factorials,
    tree_of,
)

ARGUMENTS = {"a": np.array([1.5, -0.3, 2.0]), "b": np.array([0.2, 1.1, -0.7]), "c": np.array([0.4, 3.0, 1.2]), "x": 0.8, "y": -2.5}
LET = {"z": "(a - x) / y", "scaled": "a / y", "grown": "exp(b)", "twice": "x + x", "both": "a * b", "three": "a * b * c"}

# Expression -> the statements before the sum.
SUMS = {
    "x * y": [],
    "a": ["sum0 = total(a)"],
    "a - b": ["sum0 = total((a - b))"],
    "x * a / y": ["sum0 = total(a)"],
    "a * b": ["sum0 = a.dot(b)"],
    "a * b * c": ["sum0 = (a * b).dot(c)"],
    "a * b / c": ["sum0 = (a / c).dot(b)"],
    "1.0 / (a * c)": ["sum0 = total((1.0 / a / c))"],
    "-(x * a)": ["sum0 = total(a)"],
    "x * a + b": ["sum0 = total(a)", "sum1 = total(b)"],
    "b - x * a": ["sum0 = total(b)", "sum1 = total(a)"],
    "y * (a * b + exp(c))": ["sum0 = a.dot(b)", "sum1 = total(exp(c))"],
    "y * (a * b + x) * c": ["sum0 = ((a * b) + x).dot(c)"],
    "(x * a + b) / c": ["sum0 = total((((x * a) + b) / c))"],
    "a * b + b * a": ["sum0 = a.dot(b)"],
    "a / b + a * b": ["sum0 = total((a / b))", "sum1 = a.dot(b)"],
    "where(x < y, a, b * c)": ["sum0 = total(a)", "sum1 = b.dot(c)"],
    "-0.5 * z * z": ["z = ((a - x) / y)", "sum0 = z.dot(z)"],
    "scaled * b": ["sum0 = a.dot(b)"],
    "b / scaled": ["sum0 = total((b / a))"],
    "scaled * b + exp(scaled)": ["sum0 = a.dot(b)", "scaled = (a / y)", "sum1 = total(exp(scaled))"],
    "grown + a": ["grown = exp(b)", "sum0 = total(grown)", "sum1 = total(a)"],
    "both * x": ["sum0 = a.dot(b)"],
    "both * c": ["sum0 = (a * b).dot(c)"],
    "three * x": ["three = ((a * b) * c)", "sum0 = total(three)"],
    "twice * a": ["twice = (x + x)", "sum0 = total(a)"],
}


@pytest.mark.parametrize("expression", SUMS)
def test_sums(expression: str) -> None:
    writer = Writer({"a", "b", "c"}, LET)
    text = writer.sum(tree_of(expression))
    assert writer.statements == SUMS[expression]
    for function in compiled([*ARGUMENTS, "size"], [*writer.statements, f"return {text}"], writer.functions):
        known = ARGUMENTS | {"exp": np.exp, "where": np.where}
        for name, abbreviated in LET.items():
            known[name] = eval(abbreviated, known)
        expected = np.sum(eval(expression, known) * np.ones(3))
        assert function(*ARGUMENTS.values(), 3) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("size", [0, 1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0, 7, TABLE, TABLE + 1, 10**6])
def test_log_factorials(size: int, largest: int) -> None:
    counts = np.random.default_rng(size).integers(0, largest, size, endpoint=True).astype(float)
    counts[:1] = largest
    assert log_factorials(counts) == pytest.approx(math.fsum(math.lgamma(n + 1.0) for n in counts), rel=1e-14)


@pytest.mark.parametrize("size", [1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0.0, 7.0, 7.5, DIFFERENCES, DIFFERENCES + 1, 1e6])
def test_log_binomials(size: int, largest: float) -> None:
    rng = np.random.default_rng(size)
    counts = rng.integers(0, int(largest), size, endpoint=True).astype(float)
    bounds = np.minimum(counts + rng.integers(0, 9, size), largest)

    def expected(total: float, n: float) -> float:
        return float(mpmath.log(mpmath.binomial(total, n)))

    for total, n in ((largest, counts), (bounds, counts), (bounds, 0.0)):
        exact = math.fsum(map(expected, *np.broadcast_arrays(total, n)))
        assert log_binomials(total, n) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("size", [1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0, 7, 300, TABLE, TABLE + 1])
@pytest.mark.parametrize("x", [1e-200, 0.3, 12.5, 1e9])
def test_sums_of_rising_factorials(size: int, largest: int, x: float) -> None:
    counts = np.minimum(np.random.default_rng(size).geometric(0.2, size) - 1.0, largest)
    counts[:1] = largest
    each, times = np.unique(counts, return_counts=True)
    with mpmath.workdps(30):
        rising = sum(int(k) * (mpmath.loggamma(x + mpmath.mpf(n)) - mpmath.loggamma(x)) for n, k in zip(each, times, strict=True))
        digammas = sum(int(k) * (mpmath.digamma(x + mpmath.mpf(n)) - mpmath.digamma(x)) for n, k in zip(each, times, strict=True))
    for number in (x, np.array(x), np.full(size, x)):
        assert log_rising_factorials(number, counts) == pytest.approx(float(rising), rel=1e-13)
        assert digamma_differences(number, counts) == pytest.approx(float(digammas), rel=1e-13)
