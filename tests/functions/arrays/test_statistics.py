"""Averages, covariances and quantiles: weights, and nan results with NumPy's warnings."""

import numpy as np
import pytest
from comparing import equal, refuses
from functions.samples import MATRIX, VECTOR, by_weight

import varmat as vm


def test_weighted_quantiles_are_elements():
    x, q = np.array([3.0, 1.0, 2.0, 2.5]), np.array([0.0, 0.1, 0.25, 0.3, 0.9, 1.0])
    w = np.array([1.0, 0.0, 1.0, 2.0])
    # The smallest element has no weight, so it is never chosen.
    equal(vm.value(by_weight(vm.var(x), w, q)), [2.0, 2.0, 2.0, 2.5, 3.0, 3.0])
    equal(vm.gradient(lambda a: by_weight(a, w, 0.3), x), [0.0, 0.0, 0.0, 1.0])
    # Integer weights count elements.
    repeated = np.repeat(MATRIX.ravel(), np.arange(1, 13))
    for each in q:
        expected = np.quantile(repeated, each, method="inverted_cdf")
        assert vm.value(by_weight(vm.var(MATRIX), np.arange(1, 13).reshape(3, 4), each)) == expected


def test_weighted_quantiles_that_ignore_nan():
    x = np.array([[1.0, np.nan, 2.0, 5.0], [np.nan] * 4, [3.0, 1.0, 2.0, 0.0]])
    w, q = np.array([1.0, 9.0, 2.0, 1.0]), np.array([0.2, 0.5, 1.0])
    settings = {"axis": 1, "weights": w, "method": "inverted_cdf"}
    # NumPy needs a weight for each element in this case.
    with pytest.warns(RuntimeWarning):
        expected = np.nanquantile(x, q, **{**settings, "weights": np.tile(w, (3, 1))})
    equal(vm.value(np.nanquantile(vm.var(x), q, **settings)), expected)
    found = np.isnan(vm.value(np.quantile(vm.var(x), q, **settings))).tolist()
    assert found == [[True, True, False]] * 3


def test_average_without_weight_raises_what_numpy_raises():
    refuses(ZeroDivisionError, None, np.average, VECTOR, weights=np.zeros(5))
    with pytest.raises(ZeroDivisionError, match=r"average: the weights sum to zero"):
        np.average(vm.var(VECTOR), weights=np.zeros(5))


@pytest.mark.parametrize("function", [np.median, np.nanmedian])
@pytest.mark.parametrize("settings", [{}, {"axis": 1}, {"axis": 1, "keepdims": True}], ids=str)
def test_median_of_nothing_is_nan_with_numpys_warning(function, settings):
    with pytest.warns(RuntimeWarning):
        expected = function(np.empty((2, 0)), **settings)
    with pytest.warns(RuntimeWarning):
        assert np.array_equal(
            vm.value(function(vm.var(np.empty((2, 0))), **settings)), expected, equal_nan=True
        )


def test_degrees_of_freedom_warn():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom <= 0"), np.errstate(all="ignore"):
        np.cov(vm.var([[1.0], [2.0]]))
