"""Sums over counts, with tables and without."""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from comparing import equal

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
def test_log_factorials(size, largest):
    counts = np.random.default_rng(size).integers(0, largest, size, endpoint=True).astype(float)
    counts[:1] = largest
    assert log_factorials(counts) == pytest.approx(
        math.fsum(math.lgamma(n + 1.0) for n in counts), rel=1e-14
    )


@pytest.mark.parametrize("size", [1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0.0, 7.0, 7.5, DIFFERENCES, DIFFERENCES + 1, 1e6])
def test_log_binomials(size, largest):
    rng = np.random.default_rng(size)
    counts = rng.integers(0, int(largest), size, endpoint=True).astype(float)
    bounds = np.minimum(counts + rng.integers(0, 9, size), largest)

    @cache
    def expected(total, n):
        return float(mpmath.log(mpmath.binomial(total, n)))

    for total, n in ((largest, counts), (bounds, counts), (bounds, 0.0)):
        exact = math.fsum(map(expected, *np.broadcast_arrays(total, n)))
        assert log_binomials(total, n) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("size", [1, 100, 101, 3000])
@pytest.mark.parametrize("largest", [0, 7, 300, TABLE, TABLE + 1])
@pytest.mark.parametrize("x", [1e-200, 0.3, 12.5, 1e9])
def test_sums_of_rising_factorials(size, largest, x):
    counts = np.minimum(np.random.default_rng(size).geometric(0.2, size) - 1.0, largest)
    counts[:1] = largest
    each, times = np.unique(counts, return_counts=True)
    with mpmath.workdps(30):
        pairs = [(mpmath.mpf(n), int(k)) for n, k in zip(each, times, strict=True)]
        rising, digammas = (
            sum(k * (f(x + n) - f(x)) for n, k in pairs) for f in (mpmath.loggamma, mpmath.digamma)
        )
        less_lines = digammas - sum(n * k for n, k in pairs) / mpmath.mpf(x)
    tallied = tally(counts)
    assert (tallied is None) == (largest > TABLE)
    for f, exact in (
        (log_rising_factorials, rising), (digamma_differences, digammas),
        (digamma_less_lines, less_lines),
    ):  # fmt: skip
        for number in (x, np.array(x), np.full(size, x)):
            assert f(number, counts) == pytest.approx(float(exact), rel=1e-13)
        assert f(x, counts, tallied) == f(x, counts)


def test_tally():
    equal(tally(np.array([3.0, 0.0, 1.0, 1.0])), [3, 1, 1])
    assert tally(np.zeros(2)).size == 0
    assert tally(3.0) is tally(np.array([])) is tally(np.array([TABLE + 1.0])) is None
