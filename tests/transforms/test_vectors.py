"""Transforms of vectors: isometries, corners, lengths, and one result alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transforms.constraints import X2, X, gradient_of, inf

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar
from varmat.transforms import ordered, simplexes, sum_to_zero, unit_vectors


def test_all_routes_of_a_unit_vector_and_back() -> None:
    for expect in (expect_ad, expect_ad_matvar):
        expect(lambda x: unit_vectors.unit_vector_free(unit_vectors.unit_vector_constrain(x)), X2)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_sum_to_zero_is_an_isometry(n: int) -> None:
    h = sum_to_zero.sum_to_zero_constrain(np.eye(n)).T
    np.testing.assert_allclose(h.T @ h, np.eye(n), atol=1e-14)
    np.testing.assert_allclose(h.sum(axis=0), np.zeros(n), atol=1e-14 * n)
    np.testing.assert_allclose(h @ h.T, np.eye(n + 1) - 1.0 / (n + 1), atol=1e-14)
    np.testing.assert_allclose(
        vm.jacobian(sum_to_zero.sum_to_zero_constrain, np.zeros(n)), h, atol=0
    )
    assert sum_to_zero.sum_to_zero_constrain(np.zeros(n), jacobian=True)[1] == 0.0


def test_unit_vector_has_the_density_of_the_length() -> None:
    # In polar coordinates with y[0] = cos(phi) the measure dx is r dr dphi. The factor
    # exp(-r^2 / 2) makes it proper.
    x = np.array([1.5, 0.8])
    y, log_density = unit_vectors.unit_vector_constrain(x, jacobian=True)
    np.testing.assert_allclose(y, x / 1.7, rtol=1e-15)
    assert log_density == pytest.approx(-0.5 * 1.7**2, rel=1e-15)


@pytest.mark.parametrize("y", [
    [0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0],
     [0.0, 0.5, 0.0, 0.5],
])  # fmt: skip
def test_corners_of_simplexes_there_and_back(y: Any) -> None:
    x = simplexes.simplex_free(y)
    np.testing.assert_array_equal(x[np.array(y[:-1]) == 0.0], -inf)
    np.testing.assert_array_equal(simplexes.simplex_constrain(x), y)
    np.testing.assert_array_equal(
        simplexes.stochastic_column_free(np.transpose([y, y])), np.transpose([x, x])
    )
    np.testing.assert_array_equal(
        vm.Model(lambda s: 0.0, s=vm.simplex(4)).param_unconstrain({"s": y}), x
    )
    np.testing.assert_array_equal(vm.value(simplexes.simplex_free(vm.var(np.array(y)))), x)
    vm.recover_memory()


@pytest.mark.parametrize(
    "f",
    [ordered.ordered_constrain, simplexes.simplex_constrain, unit_vectors.unit_vector_constrain],
)
def test_one_result_alone(f: Any) -> None:
    def both(x: Any) -> Any:
        return f(x, jacobian=True)

    np.testing.assert_allclose(
        gradient_of(both, X, 0), vm.gradient(lambda x: np.sum(f(x)), X), rtol=1e-14, atol=1e-15
    )
    whole = vm.gradient(lambda x: np.sum(both(x)[0]) + both(x)[1], X)
    np.testing.assert_allclose(
        gradient_of(both, X, 0) + gradient_of(both, X, 1), whole, rtol=1e-13, atol=1e-15
    )


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_unit_vectors_of_lengths_whose_squares_are_no_numbers(scale: float) -> None:
    x = np.array([3.0, 4.0])
    np.testing.assert_allclose(
        unit_vectors.unit_vector_constrain(x * scale), [0.6, 0.8], rtol=1e-15
    )
    gradient = vm.gradient(lambda x: unit_vectors.unit_vector_constrain(x)[0], x * scale)
    np.testing.assert_allclose(
        gradient * scale,
        vm.gradient(lambda x: unit_vectors.unit_vector_constrain(x)[0], x),
        rtol=1e-13,
    )
    tangent = vm.jvp(unit_vectors.unit_vector_constrain, (x * scale,), (np.array([scale, 0.0]),))[1]
    np.testing.assert_allclose(
        tangent,
        vm.jvp(unit_vectors.unit_vector_constrain, (x,), (np.array([1.0, 0.0]),))[1],
        rtol=1e-13,
    )
