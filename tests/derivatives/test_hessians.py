"""hessian, hessian_times_vector, hessp."""

import inspect

import numpy as np
import pytest
import scipy.optimize
from comparing import close, equal, refuses

import varmat as vm


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


POINT = np.array([-1.2, 1.0, 0.7, 2.1, -0.3])


def test_rosenbrock():
    expected = scipy.optimize.rosen_hess(POINT)
    close(vm.hessian(rosenbrock, POINT), expected, 1e-14, 1e-12)
    v = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    close(vm.hessian_times_vector(rosenbrock, POINT, v), expected @ v, 1e-13)
    close(vm.hessp(rosenbrock)(POINT, v), expected @ v, 1e-13)


@pytest.mark.parametrize(("f", "x", "expected"), [
    (lambda x: x**3, 2.0, 12.0),
    (lambda x: x, 2.0, 0.0),
    (lambda x: 1.0, np.ones(2), np.zeros((2, 2))),
    (lambda x: x[0], np.ones(2), np.zeros((2, 2))),
    (lambda x: np.sum(x), np.ones(2), np.zeros((2, 2))),
    (lambda x: np.sum(x * x), np.empty(0), np.empty((0, 0))),
    (lambda x: np.sum(x * x), np.ones((1, 2)), 2 * np.eye(2).reshape(1, 2, 1, 2)),
    (lambda x: np.sum(x[::-1] * x), np.array([1, 2]), np.array([[0.0, 2.0], [2.0, 0.0]])),
])  # fmt: skip
def test_shapes(f, x, expected):
    got = vm.hessian(f, x)
    assert np.shape(got) == np.shape(expected)
    close(got, expected, 1e-14)


def test_structures():
    point = {"a": 2.0, "b": (np.array([1.0, 3.0]), 4)}

    def f(p, k, *, scale):
        return scale * p["a"] ** k * np.sum(p["b"][0] ** 2) * p["b"][1]

    got = vm.hessian(f, point, 2, scale=0.5)
    assert got["a"]["a"] == 40.0
    close(got["a"]["b"][0], [16.0, 48.0], 1e-15)
    close(got["b"][0]["a"], [16.0, 48.0], 1e-15)
    close(got["b"][0]["b"][0], 16.0 * np.eye(2), 1e-15)
    close(got["b"][0]["b"][1], [4.0, 12.0], 1e-15)
    assert got["b"][1]["b"][1] == 0.0
    product = vm.hessian_times_vector(
        f, point, {"a": 1.0, "b": (np.array([0.0, 1.0]), 0.0)}, 2, scale=0.5
    )
    assert product["a"] == 40.0 + 48.0
    close(product["b"][0], [16.0, 48.0 + 16.0], 1e-15)


def test_a_function_that_assigns():
    def f(x):
        y = x.copy()
        y[0] = x[1] * x[2]
        return np.sum(y * y)

    x = np.array([1.0, 2.0, 3.0])
    close(vm.hessian(f, x), [[0, 0, 0], [0, 20, 24], [0, 24, 10]], 1e-14)
    equal(x, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("method", ["trust-ncg", "trust-krylov", "Newton-CG", "trust-constr"])
def test_in_scipy(method):
    def f(x, a):
        return rosenbrock(x) * a

    settings = {"args": (2.0,), "jac": True, "hessp": vm.hessp(f), "method": method}
    result = scipy.optimize.minimize(vm.value_and_grad(f), np.array([-1.0, 2.0, 0.5]), **settings)
    close(result.x, np.ones(3), 1e-7, 1e-4)


def test_refusals():
    for f in (np.sin, lambda x: np.zeros(2)):
        message = r"^hessian: the result has shape \(2,\), but must be a scalar"
        refuses(vm.ShapeError, message, vm.hessian, f, np.ones(2))
    message = r"^hessian_times_vector: v has shape \(3,\), but must have shape \(2,\)!"
    refuses(vm.ShapeError, message, vm.hessian_times_vector, np.sum, np.ones(2), np.ones(3))
    message = r"^hessp: v is a ndarray, but must be a dict with the keys"
    refuses(vm.ShapeError, message, lambda: vm.hessp(lambda p: p["a"])({"a": 1.0}, np.ones(1)))
    refuses(TypeError, r"^hessian: the result is None", vm.hessian, lambda x: None, np.ones(2))


def variable_with_callback(x):
    def adjoint(y):
        x.adj += 2.0 * vm.value(x) * y.adj

    return vm.make_callback_var(vm.value(x) ** 2, adjoint)


def leaf_and_callback(x):
    y = vm.var(vm.value(x) ** 2)

    def adjoint():
        x.adj += 2.0 * vm.value(x) * y.adj

    vm.reverse_pass_callback(adjoint)
    return y


@pytest.mark.parametrize(("squared", "name"), [
    (variable_with_callback, "make_callback_var"), (leaf_and_callback, "reverse_pass_callback"),
])  # fmt: skip
def test_callbacks_are_refused(squared, name):
    """The derivative of a callback is known in reverse mode only, so its part of the Hessian would
    be missing.
    """

    def f(x):
        return np.sum(np.exp(squared(x))) + np.sum(x**3)

    x = np.array([0.5, 1.0])
    close(vm.gradient(f, x), 2.0 * x * np.exp(x**2) + 3.0 * x**2, 1e-14)
    for functional in (
        vm.hessian,
        lambda f, x: vm.hessian_times_vector(f, x, x),
        lambda f, x: vm.hessp(f)(x, x),
    ):
        message = rf"^hess\w+: the function uses {name}, which has no tangent rule"
        refuses(TypeError, message, functional, f, x)


def test_hessp_is_a_function_as_the_other_functionals_make_them():
    refuses(TypeError, r"^hessp: the argument is a int, but must be a function!$", vm.hessp, 3)

    assert vm.hessp(np.sum).__name__ == "hessp(sum)"
    assert str(inspect.signature(vm.hessp(rosenbrock))).startswith(
        "(x: 'object', p: 'object', /, *args"
    )
