"""gradient, value_and_grad, grad, vjp."""

import collections
import math
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from comparing import equal, refuses
from recordings import assert_same

import varmat as vm


class Point(NamedTuple):
    a: object
    b: object


def quadratic(x):
    return np.sum(x * x)


def weighted(p):
    """Return a function of a nested structure whose derivative tells the parts apart."""
    return p["a"] * np.sum(p["b"][0]) + np.sum(p["b"][1].a * p["b"][1].b) ** 2


SIX = np.arange(6.0)
NESTED = {"a": 2.0, "b": [np.array([[1.0, 2.0]]), Point(np.array([1.0, -1.0]), 3)]}


GRADIENTS = {
    "vector": (quadratic, np.array([1.0, -2.0]), np.array([2.0, -4.0])),
    "matrix": (quadratic, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 4.0], [6.0, 8.0]])),
    "integers": (quadratic, np.array([1, 2]), np.array([2.0, 4.0])),
    "float32": (quadratic, np.array([1.5], np.float32), np.array([3.0])),
    "booleans": (quadratic, np.array([True, False]), np.array([2.0, 0.0])),
    "big endian": (quadratic, np.array([1.0, 2.0], ">f8"), np.array([2.0, 4.0])),
    "Fortran order": (lambda x: np.sum(x * x * x), np.asfortranarray(SIX.reshape(2, 3)),
        3 * SIX.reshape(2, 3) ** 2),
    "reversed": (lambda x: np.sum(x * np.arange(3)), np.arange(6.0)[::-2], np.arange(3.0)),
    "empty": (quadratic, np.empty((0, 3)), np.empty((0, 3))),
    "size one": (lambda x: x[0], np.array([3.0]), np.array([1.0])),
    "scalar": (lambda x: x * x * x, 2.0, 12.0),
    "integer": (lambda x: x * x * x, 2, 12.0),
    "NumPy scalar": (lambda x: x * x, np.float32(3.0), 6.0),
    "0-d array": (lambda x: x * x, np.array(3.0), 6.0),
    "identity": (lambda x: x, 3.0, 1.0),
    "one element": (lambda x: x[1], np.arange(3.0), np.array([0.0, 1.0, 0.0])),
    "list": (lambda x: x[0] * x[1], [2.0, 3], [3.0, 2.0]),
    "tuple": (lambda x: x[0] * np.sum(x[1]), (2.0, np.ones(2)), (2.0, np.array([2.0, 2.0]))),
    "dict": (lambda p: p["b"] / p["a"], {"b": 1.0, "a": 2.0}, {"b": 0.5, "a": -0.25}),
    "ordered dict": (lambda p: p["x"] * 2, collections.OrderedDict(x=1.0),
        collections.OrderedDict(x=2.0)),
    "named tuple": (lambda p: p.a * p.b, Point(2.0, 5.0), Point(5.0, 2.0)),
    "nested": (weighted, NESTED,
        {"a": 3.0, "b": [np.array([[2.0, 2.0]]), Point(np.zeros(2), 0.0)]}),
    "empty structure": (lambda p: 1.0, {}, {}),
    "view as result": (lambda x: x.reshape(1, 1)[0, 0], np.array([2.0]), np.array([1.0])),
    "transposed adjoint": (lambda x: np.sum(x.T * SIX.reshape(3, 2)), np.ones((2, 3)),
        SIX.reshape(3, 2).T.copy()),
    "a matvar inside": (lambda x: np.sum(vm.to_matvar(x) ** 2), np.array([1.0, 2.0]),
        np.array([2.0, 4.0])),
    "same twice": (lambda x: np.sum(x * np.sin(x) + x), np.array([0.5]),
        np.array([math.sin(0.5) + 0.5 * math.cos(0.5) + 1])),
}  # fmt: skip


@pytest.mark.parametrize(("f", "x", "expected"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradient(f, x, expected):
    assert_same(vm.gradient(f, x), expected)
    assert_same(vm.grad(f)(x), expected)
    value, gradient = vm.value_and_grad(f)(x)
    assert_same(gradient, expected)
    assert type(value) is float
    assert_same(vm.value_and_grad(f, argnums=(0,))(x)[1], (expected,))


def three(x, y, z=1.0, *, scale=1.0):
    return np.sum(x * y) * z * scale


@pytest.mark.parametrize(("argnums", "expected"), [
    (0, np.array([3.0, 4.0]) * 10),              (1, np.array([1.0, 2.0]) * 10),
    (-1, 55.0),                                  (np.int64(2), 55.0),
    ((0, 2), (np.array([3.0, 4.0]) * 10, 55.0)), ((2, 0), (55.0, np.array([3.0, 4.0]) * 10)),
    ((), ()),
], ids=repr)  # fmt: skip
def test_argnums(argnums, expected):
    args = np.array([1.0, 2.0]), np.array([3.0, 4.0]), 2.0
    value, gradient = vm.value_and_grad(three, argnums)(*args, scale=5.0)
    assert value == 110.0
    assert_same(gradient, expected)
    assert_same(vm.grad(three, argnums)(*args, scale=5.0), expected)


@pytest.mark.parametrize("n", [2, 40_000])
@pytest.mark.parametrize("functional", [vm.value_and_grad, vm.recorded])
@pytest.mark.parametrize("argnums", [(0, 0), (0, 1, -2)])
def test_an_argument_named_twice_has_two_gradients(n, functional, argnums):
    x = np.linspace(1.0, 2.0, n)
    first, *_, last = functional(lambda x, y: np.sum(x * x) * y, argnums)(x, 2.0)[1]
    first += 1.0
    assert_same(last, 4.0 * x)
    pair = functional(lambda p, y: np.sum(p[0] * p[1]) * y, argnums)([x, 3.0], 2.0)[1]
    pair[0][0][:] += 1.0
    assert_same(pair[-1][0], np.full(n, 6.0))


@pytest.mark.parametrize(("argnums", "message"), [
    (3, "argnums is 3, but the function was called with 2 positional"),
    ("x", "argnums is 'x', but must be an integer"),
    ((0, 0.5), "but must be an integer or a tuple"),
    (-3, "argnums is -3"),
])  # fmt: skip
def test_argnums_that_are_refused(argnums, message):
    refuses(TypeError, f"^value_and_grad: .*{message}", vm.value_and_grad(three, argnums), 1.0, 2.0)


def test_further_arguments_are_passed_as_they_are():
    seen = []

    def f(x, data, *, option):
        seen.append((data, option))
        return x * 2

    data, option = object(), [1]
    assert vm.gradient(f, 1.0, data, option=option) == 2.0
    assert vm.value_and_grad(f)(1.0, data, option=option) == (2.0, 2.0)
    assert all(d is data and o is option for d, o in seen)


@pytest.mark.parametrize(
    "constant", [3, 3.0, np.float64(3.0), np.array(3.0), np.float32(3.0)], ids=repr
)
def test_constant_functions_have_gradient_zero(constant):
    value, gradient = vm.value_and_grad(lambda x: constant)(np.ones(3))
    assert_same(value, 3.0)
    assert_same(gradient, np.zeros(3))
    zeros = {"a": 0.0, "b": [np.zeros((1, 2)), Point(np.zeros(2), 0.0)]}
    assert_same(vm.gradient(lambda x: constant, NESTED), zeros)


@pytest.mark.parametrize("functional", [vm.value_and_grad, vm.grad])
def test_arguments_other_than_functions_are_refused_at_once(functional):
    message = rf"^{functional.__name__}: the argument is a ndarray, but must be a function"
    refuses(TypeError, message, functional, np.ones(3))


def test_errors_inside_the_function_come_through():
    class SpecialError(Exception):
        pass

    def fails(x):
        raise SpecialError("unchanged")

    refuses(SpecialError, r"^unchanged$", vm.gradient, fails, np.ones(2))
    message = r"^normal_lpdf: Scale parameter is -1.0, but must be positive!$"
    refuses(vm.DomainError, message, vm.gradient, lambda s: vm.normal_lpdf(0.0, 0.0, s), -1.0)


def test_assigning_into_the_argument_does_not_change_the_callers_array():
    def f(x):
        x[0] = x[1] * 3
        return np.sum(x)

    for n in (3, 40_000):
        x = np.ones(n)
        expected = np.ones(n)
        expected[:2] = 0.0, 4.0
        assert_same(vm.gradient(f, x), expected)
        assert_same(vm.grad(f, argnums=(0,))(x), (expected,))
        equal(x, np.ones(n))


def test_taking_the_argument_apart_does_not_disturb():
    def f(p):
        return p.pop("a") * p.pop("b")[0]

    point = {"a": 2.0, "b": [5.0]}
    assert_same(vm.gradient(f, point), {"a": 5.0, "b": [2.0]})
    assert point == {"a": 2.0, "b": [5.0]}


def test_a_reverse_pass_inside_the_function_does_not_disturb():
    def f(x):
        (x[0] * 7.0).grad()
        return np.sum(x * x)

    x = np.array([1.0, 2.0])
    assert_same(vm.gradient(f, x), 2.0 * x)
    assert_same(vm.gradient(lambda x: 0.0 * float(vm.value(f(x))), x), np.zeros(2))
    product = vm.hessian_times_vector(lambda x: f(x.val) * 0 + np.sum(x * x), x, np.ones(2))
    assert_same(product, np.array([2.0, 2.0]))


class Scaled:
    def __init__(self, scale):
        self.scale = scale

    def loss(self, x):
        return self.scale * np.sum(x * x)

    both = vm.value_and_grad(loss, argnums=1)
    slope = vm.grad(loss, argnums=1)
    recorded = vm.recorded(loss, argnums=1)


def test_derivatives_in_a_class_are_methods():
    x = np.array([1.0, 2.0])
    for scale in (2.0, 3.0):
        scaled = Scaled(scale)
        for value, gradient in (
            scaled.both(x),             scaled.recorded(x),         Scaled.both(scaled, x),
            Scaled.recorded(scaled, x),
        ):  # fmt: skip
            assert value == 5.0 * scale
            equal(gradient, 2.0 * scale * x)
        equal(scaled.slope(x), 2.0 * scale * x)


def test_value_and_grad_looks_like_the_function_and_pickles():
    g = vm.value_and_grad(three)
    assert g.__name__ == "value_and_grad(three)"
    assert g.__wrapped__ is three
    assert vm.grad(three).__name__ == "grad(three)"
    assert vm.recorded(three).__name__ == "recorded(three)"
    again = pickle.loads(pickle.dumps((g, vm.grad(three), vm.recorded(three, 1))))
    assert again[0](1.0, 2.0) == (2.0, again[1](1.0, 2.0))
    assert again[2](1.0, 2.0) == (2.0, 1.0)


def test_grad_of_variables_and_of_other_things():
    with vm.nested():
        x = vm.var([1.0, 2.0])
        assert vm.grad(np.sum(x * x)) is None
        equal(x.adj, [2.0, 4.0])
        refuses(vm.ShapeError, "only a scalar has a gradient", vm.grad, x)
    message = r"^grad: the argument is a float, but must be a function or a scalar variable!"
    refuses(TypeError, message, vm.grad, 1.0)
