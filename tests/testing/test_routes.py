"""For large arrays the routes take samples."""

from __future__ import annotations

from math import inf

import numpy as np

from varmat.testing import Tolerances, expect_ad


def test_large_arrays_are_sampled():
    calls = []

    def f(x):
        calls.append(1)
        return x * x

    expect_ad(f, np.linspace(0.5, 2.0, 1000), tolerances=Tolerances(hessian_finite_difference=inf))
    assert len(calls) < 2500  # 16 calls for every element would be far more
