"""finite_diff_gradient, finite_diff_hessian."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import varmat as vm

POINT = np.array([-1.2, 1.0, 0.7, 1e-9])


def f(x):
    assert type(x) is np.ndarray
    return np.sum(np.exp(np.sin(x)) * x[0])


def test_gradient():
    expected = vm.gradient(lambda x: np.sum(np.exp(np.sin(x)) * x[0]), POINT)
    np.testing.assert_allclose(vm.finite_diff_gradient(f, POINT), expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(vm.finite_diff_gradient(f, POINT, eps=1e-2), expected, rtol=1e-9)


def test_hessian():
    got = vm.finite_diff_hessian(scipy.optimize.rosen, POINT)
    np.testing.assert_allclose(got, scipy.optimize.rosen_hess(POINT), rtol=1e-7, atol=1e-6)
    np.testing.assert_array_equal(got, got.T)
    assert vm.finite_diff_hessian(lambda x: 0.0, np.empty(0)).shape == (0, 0)


def test_structures_and_scale():
    point = {"a": 1e6, "b": [np.array([[1.0, 2.0]]), 3]}
    got = vm.finite_diff_gradient(lambda p: p["a"] * np.sum(p["b"][0] ** 2) * p["b"][1], point)
    assert got["a"] == pytest.approx(15.0, rel=1e-11)
    np.testing.assert_allclose(got["b"][0], [[6e6, 12e6]], rtol=1e-10)
    assert got["b"][1] == pytest.approx(5e6, rel=1e-10)
    assert vm.finite_diff_gradient(lambda x: x**2, 3.0) == pytest.approx(6.0, rel=1e-11)
    np.testing.assert_allclose(
        vm.finite_diff_hessian(lambda p: p[0] * p[1] ** 2, (2.0, 3.0)), [[0, 6], [6, 4]], atol=1e-7
    )
    assert vm.finite_diff_gradient(lambda p: 1.0, {}) == {}
    assert vm.finite_diff_hessian(lambda p: 1.0, {}).shape == (0, 0)


def test_refusals():
    with pytest.raises(TypeError, match=r"^finite_diff_gradient: the result is None"):
        vm.finite_diff_gradient(lambda x: None, 1.0)
    with pytest.raises(TypeError, match=r"^finite_diff_hessian: x has dtype complex128"):
        vm.finite_diff_hessian(f, 1j)
    for functional in (vm.finite_diff_gradient, vm.finite_diff_hessian):
        with pytest.raises(
            vm.ShapeError,
            match=rf"^{functional.__name__}: the result has shape \(1,\), but must be a scalar",
        ):
            functional(lambda x: x[:1], np.ones(2))
