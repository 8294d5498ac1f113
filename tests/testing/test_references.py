"""Comparison with another library: all outputs, weights, and folded gradients."""

import numpy as np
import pytest

from varmat.testing import expect_reference


def test_references_with_several_outputs():
    def both(x):
        return np.sum(x**2), 3.0 * x

    x = np.array([1.0, 2.0])
    weights = 2.0, np.array([1.0, -1.0])
    gradient = 2.0 * 2.0 * x + 3.0 * weights[1]
    expect_reference(both, (x,), (5.0, [3.0, 6.0]), (gradient,), weights=weights)
    with pytest.raises(AssertionError, match="result 1"):
        expect_reference(both, (x,), (5.0, [3.0, 6.1]), (gradient,), weights=weights)
    with pytest.raises(AssertionError, match="gradient with respect to argument 0"):
        expect_reference(both, (x,), (5.0, [3.0, 6.0]), (gradient + 0.1,), weights=weights)


def test_references_of_folded_gradients():
    def fold(g):
        return g + g.T

    a, upper = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[0.0, 2.0], [0.0, 0.0]])
    expect_reference(lambda a: a[0, 1] + a[1, 0], (a,), 1.0, (upper,), fold=fold)
    with pytest.raises(AssertionError, match="gradient"):
        expect_reference(lambda a: a[0, 1] + a[1, 0], (a,), 1.0, (upper,))
