"""jvp, gradient_dot_vector, partial_derivative."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm


def test_jvp_is_the_jacobian_times_a_vector():
    x, v = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, -1.0])
    value, tangent = vm.jvp(lambda x: np.sin(x) * x[0], (x,), (v,))
    np.testing.assert_allclose(value, np.sin(x) * 0.5, rtol=1e-15)
    np.testing.assert_allclose(tangent, np.cos(x) * v * 0.5 + np.sin(x) * v[0], rtol=1e-14)
    assert type(tangent) is np.ndarray
    assert tangent.base is None


def test_jvp_of_structures():
    primals = ({"a": 2, "b": [np.ones(2)]}, 3.0)
    tangents = ({"b": [np.array([1.0, 0.0])], "a": 1}, 0)

    def f(p, y):
        return {"out": (p["a"] * p["b"][0] * y, p["a"]), "constant": np.zeros(2), "one": 1}

    value, tangent = vm.jvp(f, primals, tangents)
    np.testing.assert_array_equal(value["out"][0], [6.0, 6.0])
    np.testing.assert_array_equal(tangent["out"][0], [9.0, 3.0])
    assert (value["out"][1], tangent["out"][1], value["one"], tangent["one"]) == (2.0, 1.0, 1.0, 0.0)
    np.testing.assert_array_equal(tangent["constant"], [0.0, 0.0])


def test_jvp_and_vjp_are_adjoint():
    rng = np.random.default_rng(3)
    x, v, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(4, 3))

    def f(x):
        return np.exp(np.sin(x) - x[0]).T * np.sum(x)

    value, tangent = vm.jvp(f, (x,), (v,))
    other, pullback = vm.vjp(f, x)
    np.testing.assert_allclose(value, other, rtol=1e-15)
    assert np.sum(w * tangent) == pytest.approx(np.sum(pullback(w)[0] * v), rel=1e-13)


def test_inputs_are_not_changed():
    x, v = np.ones(3), np.arange(3.0)

    def f(x):
        x[0] = x[1] * 5.0
        return x

    value, tangent = vm.jvp(f, (x,), (v,))
    np.testing.assert_array_equal(value, [5.0, 1.0, 1.0])
    np.testing.assert_array_equal(tangent, [5.0, 1.0, 2.0])
    np.testing.assert_array_equal(x, np.ones(3))
    np.testing.assert_array_equal(v, np.arange(3.0))


@pytest.mark.parametrize(("primals", "tangents", "error", "message"), [
    (np.ones(2), (np.ones(2),), TypeError, "jvp: primals is a ndarray, but must be a tuple or list of the arguments!"),
    ((np.ones(2),), (np.ones(3),), vm.ShapeError, r"jvp: tangents\[0\] has shape \(3,\), but must have shape \(2,\)!"),
    ((np.ones(2),), (), vm.ShapeError, "jvp: tangents is a sequence of length 0, but must be a sequence of length 1!"),
    (({"a": 1.0},), ({"b": 1.0},), vm.ShapeError, r"jvp: tangents\[0\] is a dict with the keys \[\"'b'\"\]"),
    ((1.0,), (1j,), TypeError, r"jvp: tangents\[0\] has dtype complex128"),
])
def test_jvp_refuses_what_does_not_fit(primals, tangents, error, message):
    with pytest.raises(error, match=f"^{message}"):
        vm.jvp(lambda x: x, primals, tangents)


def test_gradient_dot_vector():
    x, v = np.array([0.5, -1.0]), np.array([2.0, 3.0])

    def f(x, a=1.0, *, b=0.0):
        return a * np.sum(np.exp(x)) + b

    assert vm.gradient_dot_vector(f, x, v, 2.0, b=1.0) == pytest.approx(2 * np.exp(x) @ v, rel=1e-15)
    assert vm.gradient_dot_vector(lambda x: 1.0, x, v) == 0.0
    assert vm.gradient_dot_vector(lambda p: p[0] * p[1], (2.0, 3.0), (1.0, 10.0)) == 23.0
    with pytest.raises(vm.ShapeError, match=r"^gradient_dot_vector: the result has shape \(2,\), but must be a scalar"):
        vm.gradient_dot_vector(np.sin, x, v)
    with pytest.raises(vm.ShapeError, match=r"^gradient_dot_vector: v has shape \(3,\), but must have shape \(2,\)!"):
        vm.gradient_dot_vector(f, x, np.ones(3))


@pytest.mark.parametrize(("x", "n", "expected"), [
    (np.array([2.0, 3.0]), 0, 6.0), (np.array([2.0, 3.0]), -1, 4.0), ([2, 3], 1, 4.0), (np.array([[2.0], [3.0]]), (1, 0), 4.0),
])
def test_partial_derivative(x, n, expected):
    assert vm.partial_derivative(lambda x, a, *, b: a * np.prod(x) + b, x, n, 2.0, b=1.0) == expected


def test_partial_derivative_of_a_scalar_and_refusals():
    assert vm.partial_derivative(lambda x: x**3, 2.0, ()) == 12.0
    with pytest.raises(IndexError):
        vm.partial_derivative(np.sum, np.ones(2), 2)
    with pytest.raises(IndexError, match=r"^partial_derivative: n is 0, but must be the index of one element in the shape"):
        vm.partial_derivative(np.sum, np.ones((2, 2)), 0)
    with pytest.raises(vm.ShapeError, match=r"^partial_derivative: the result has shape"):
        vm.partial_derivative(np.sin, np.ones(2), 0)


def test_results_must_be_numbers():
    with pytest.raises(TypeError, match=r"^jvp: the result is None"):
        vm.jvp(lambda x: None, (1.0,), (1.0,))
    with pytest.raises(TypeError, match=r"^gradient_dot_vector: x is a Var, but must be plain numbers"), vm.nested():
        vm.gradient_dot_vector(np.sum, vm.var(1.0), 1.0)
