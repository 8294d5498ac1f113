"""Sums over counts, with tables and without."""

from __future__ import annotations

import math
from functools import cache

import mpmath
import numpy as np
import pytest

from varmat.programs.kernels.counts import (
    DIFFERENCES,
    TABLE,
    digamma_differences,
    digamma_less_lines,
    log_binomials,
    log_factorials,
    log_rising_factorials,
    tally,
)


@pytest.mark.parametrize("size", [0, 1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0, 7, TABLE, TABLE + 1, 10**6])
def test_log_factorials(size: int, largest: int) -> None:
    counts = np.random.default_rng(size).integers(0, largest, size, endpoint=True).astype(float)
    counts[:1] = largest
    assert log_factorials(counts) == pytest.approx(
        math.fsum(math.lgamma(n + 1.0) for n in counts), rel=1e-14
    )


@pytest.mark.parametrize("size", [1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0.0, 7.0, 7.5, DIFFERENCES, DIFFERENCES + 1, 1e6])
def test_log_binomials(size: int, largest: float) -> None:
    rng = np.random.default_rng(size)
    counts = rng.integers(0, int(largest), size, endpoint=True).astype(float)
    bounds = np.minimum(counts + rng.integers(0, 9, size), largest)

    @cache
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
        rising = sum(
            int(k) * (mpmath.loggamma(x + mpmath.mpf(n)) - mpmath.loggamma(x))
            for n, k in zip(each, times, strict=True)
        )
        digammas = sum(
            int(k) * (mpmath.digamma(x + mpmath.mpf(n)) - mpmath.digamma(x))
            for n, k in zip(each, times, strict=True)
        )
        less_lines = digammas - sum(int(n) * int(k) for n, k in zip(each, times, strict=True)) / (
            mpmath.mpf(x)
        )
    tallied = tally(counts)
    assert (tallied is None) == (largest > TABLE)
    for number in (x, np.array(x), np.full(size, x)):
        assert log_rising_factorials(number, counts) == pytest.approx(float(rising), rel=1e-13)
        assert digamma_differences(number, counts) == pytest.approx(float(digammas), rel=1e-13)
        assert digamma_less_lines(number, counts) == pytest.approx(float(less_lines), rel=1e-13)
    assert log_rising_factorials(x, counts, tallied) == log_rising_factorials(x, counts)
    assert digamma_differences(x, counts, tallied) == digamma_differences(x, counts)
    assert digamma_less_lines(x, counts, tallied) == digamma_less_lines(x, counts)


def test_tally() -> None:
    np.testing.assert_array_equal(tally(np.array([3.0, 0.0, 1.0, 1.0])), [3, 1, 1])
    assert tally(np.zeros(2)).size == 0
    assert tally(3.0) is tally(np.array([])) is tally(np.array([TABLE + 1.0])) is None
