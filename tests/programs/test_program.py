"""Programs: where they differ from what the function says, or could."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm
from varmat.programs.program import RecordingError


def test_a_factor_that_is_taken_out_of_a_sum_does_not_make_it_overflow():
    """Nor does it give a value where there is none."""
    for f, x in (
        (lambda x: np.sum(x * 1e-10), [1e308, 1e308]), (lambda x: np.sum(np.cosh(x[0]) * x), [-np.inf, 0.3]),
        (lambda x: np.sum(x * 1e10), [1e300, 1e300]),
    ):  # fmt: skip
        with np.errstate(all="ignore"):
            expected = vm.value_and_grad(f)(np.array(x))
            value, gradient = vm.recorded(f)(np.array(x))
        np.testing.assert_array_equal(value, expected[0])
        np.testing.assert_array_equal(gradient, expected[1])


def test_zeros_keep_their_signs():
    def f(x):
        return np.sum(np.arctan2(x * 0.0, -1.0)) * 1e3 + np.sum(np.arctan2(x * -0.0, -1.0))

    x = np.array([1.0, 2.0])
    assert vm.recorded(f)(x)[0] == vm.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-15)


def test_the_outcome_of_a_comparison_is_no_key():
    with pytest.raises(RecordingError, match="looks at the value"):
        vm.recorded(lambda x: {True: x[0], False: x[1]}[x[0] > 0])(np.array([1.0, 2.0]))


def test_views_of_views_of_any_depth():
    """As a loop over ``x = x[1:]`` makes them."""
    def neighbours(x):
        total = 0.0
        while len(x) > 1:
            total = total + x[0] * x[1]
            x = x[1:]
        return total

    def turned(x):
        for _ in range(2001):
            x = x.T
        return np.sum(x * np.array([[1.0], [2.0]]))

    x = np.linspace(0.0, 1.0, 1500)
    expected = np.concatenate([x[1:], [0.0]]) + np.concatenate([[0.0], x[:-1]])
    np.testing.assert_allclose(vm.gradient(neighbours, x), expected, rtol=1e-15)
    for gradient in (vm.gradient(turned, np.ones((1, 2))), vm.recorded(turned)(np.ones((1, 2)))[1]):
        assert gradient.tolist() == [[1.0, 2.0]]
