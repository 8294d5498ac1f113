"""Convolutions and correlations of vectors."""

import numpy as np
import pytest
from comparing import refuses
from functions.factors import both

import varmat as vm


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 3), (5, 4), (2, 5), (3, 4)])
@pytest.mark.parametrize("f", [np.convolve, np.correlate], ids=["convolve", "correlate"])
def test_convolution_modes(f, m, n, mode):
    both(lambda a, v: f(a, v, mode), (m,), (n,))


def test_correlated_are_vectors():
    message = r"correlate: a has shape \(2, 3\), but must be a vector!"
    refuses(vm.ShapeError, message, np.correlate, vm.var(np.ones((2, 3))), np.ones(2))
    with pytest.raises(vm.ShapeError, match=r"correlate: v has shape \(\), but must be a vector!"):
        np.correlate(vm.var(np.ones(3)), 2.0)
