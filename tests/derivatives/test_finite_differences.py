"""finite_diff_gradient, finite_diff_hessian."""

import numpy as np
import pytest
import scipy.optimize
from comparing import close, equal, refuses

import varmat as vm
from varmat.testing import finite_diff_gradient, finite_diff_hessian

POINT = np.array([-1.2, 1.0, 0.7, 1e-9])


def f(x):
    assert type(x) is np.ndarray
    return np.sum(np.exp(np.sin(x)) * x[0])


def test_gradient():
    expected = vm.gradient(lambda x: np.sum(np.exp(np.sin(x)) * x[0]), POINT)
    close(finite_diff_gradient(f, POINT), expected, 1e-11, 1e-12)
    close(finite_diff_gradient(f, POINT, eps=1e-2), expected, 1e-9)


def test_hessian():
    got = finite_diff_hessian(scipy.optimize.rosen, POINT)
    close(got, scipy.optimize.rosen_hess(POINT), 1e-7, 1e-6)
    equal(got, got.T)
    assert finite_diff_hessian(lambda x: 0.0, np.empty(0)).shape == (0, 0)


def test_structures_and_scale():
    point = {"a": 1e6, "b": [np.array([[1.0, 2.0]]), 3]}
    got = finite_diff_gradient(lambda p: p["a"] * np.sum(p["b"][0] ** 2) * p["b"][1], point)
    close(got["a"], 15.0, 1e-11)
    close(got["b"][0], [[6e6, 12e6]], 1e-10)
    close(got["b"][1], 5e6, 1e-10)
    close(finite_diff_gradient(lambda x: x**2, 3.0), 6.0, 1e-11)
    expected = [[0, 6], [6, 4]]
    close(finite_diff_hessian(lambda p: p[0] * p[1] ** 2, (2.0, 3.0)), expected, 1e-7, 1e-7)
    assert finite_diff_gradient(lambda p: 1.0, {}) == {}
    assert finite_diff_hessian(lambda p: 1.0, {}).shape == (0, 0)


def test_refusals():
    with pytest.raises(TypeError, match=r"^finite_diff_gradient: the result is None"):
        finite_diff_gradient(lambda x: None, 1.0)
    refuses(TypeError, r"^finite_diff_hessian: x has dtype complex128", finite_diff_hessian, f, 1j)
    for functional in (finite_diff_gradient, finite_diff_hessian):
        message = rf"^{functional.__name__}: the result has shape \(1,\), but must be a scalar"
        refuses(vm.ShapeError, message, functional, lambda x: x[:1], np.ones(2))
