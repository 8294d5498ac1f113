"""What functions of several families do with their arguments: results that are written into others."""

from __future__ import annotations

import numpy as np
import pytest
from samples import MATRIX, VECTOR

import varmat as vm


@pytest.mark.parametrize("convert", [vm.var, vm.matvar, lambda x: vm.Dual(x, np.ones(np.shape(x)))])
def test_results_are_written_into_out(convert):
    for f, settings in (
        (np.clip, {"a_min": 0.0, "a_max": 1.0}),
        (np.round, {"decimals": 1}),
        (np.median, {"axis": 0}),
        (np.percentile, {"q": 30, "axis": 0}),
        (np.take, {"indices": [2, 0], "axis": 1}),
        (np.cumsum, {"axis": 0}),
    ):
        expected = f(MATRIX, **settings)
        out = convert(np.zeros(np.shape(expected)))
        assert f(convert(MATRIX), **settings, out=out) is out
        np.testing.assert_array_equal(vm.value(out), expected)


def test_what_is_written_into_out_is_differentiated():
    def f(x):
        joined, chosen = np.zeros_like(x, shape=10), np.zeros_like(x)
        np.concatenate([x, 2.0 * x], out=joined)
        np.choose([0, 1, 0, 1, 1], [x, x * x], out=chosen)
        return np.sum(joined**2) + np.sum(chosen)

    assert vm.gradient(f, VECTOR) == pytest.approx(10.0 * VECTOR + np.where([1, 0, 1, 0, 0], 1.0, 2.0 * VECTOR), rel=1e-14)
