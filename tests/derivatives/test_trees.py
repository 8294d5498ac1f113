"""Structures as a vector and back, derivatives that stop, None and dataclasses as arguments,
and what a function returns beside its scalar.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
from comparing import close, equal, refuses
from recordings import RUNNERS, agree

import varmat as vm

X = np.array([0.5, -1.0, 2.0])


@dataclass(frozen=True)
class Point:
    a: Any
    b: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


def test_stopped_derivatives():
    def f(x):
        return np.sum(x**2 * vm.stop_gradient(np.exp(x))) + vm.stop_gradient(x[0]) * x[1]

    expected = 2.0 * X * np.exp(X) + [0.0, X[0], 0.0]
    close(vm.gradient(f, X), expected, 1e-14)
    agree(f, (np.zeros(3),), (X,))
    for runner in RUNNERS:
        recorded = vm.recorded(vm.hessian(f), runner=runner)
        for x in (np.zeros(3), X):
            close(recorded(x), np.diag(2.0 * np.exp(x)), 1e-14)
    close(vm.hessian(f, X), np.diag(2.0 * np.exp(X)), 1e-14)
    close(vm.jvp(f, (X,), (np.ones(3),))[1], np.sum(expected), 1e-14)


def test_stopped_structures_are_plain():
    with vm.nested():
        x = vm.var(X)
        found = vm.stop_gradient({"a": [x, 2.0], "b": (vm.matvar(X), None)})
    assert found["a"][1] == 2.0
    assert found["b"][1] is None
    for each in (found["a"][0], found["b"][0]):
        assert type(each) is np.ndarray
        equal(each, X)


def test_a_structure_as_a_vector_and_back():
    tree = {"a": X.reshape(3, 1), "b": Point(2.0, [np.eye(2), None])}
    flat, unravel = vm.ravel_pytree(tree)
    equal(flat, [*X, 2.0, 1.0, 0.0, 0.0, 1.0])
    again = unravel(2.0 * flat)
    equal(again["a"], 2.0 * tree["a"])
    assert again["b"].a == 4.0
    assert type(again["b"].a) is float
    equal(again["b"].b[0], 2.0 * np.eye(2))
    assert again["b"].b[1] is None

    def f(vector):
        point = unravel(vector)
        return np.sum(point["a"] ** 2) * point["b"].a + np.sum(point["b"].b[0])

    agree(f, (flat,), (flat + 1.0,))
    slopes = vm.gradient(lambda p: np.sum(vm.ravel_pytree(p)[0] ** 2), tree)
    equal(slopes["a"], 2.0 * tree["a"])
    assert slopes["b"].a == 4.0
    message = r"^unravel: the argument has shape \(3,\), but must have shape \(8,\)!$"
    refuses(vm.ShapeError, message, unravel, X)
    flat, unravel = vm.ravel_pytree([None])
    assert flat.shape == (0,)
    assert unravel(flat) == [None]


def test_none_and_dataclasses_as_arguments():
    def f(p, q):
        return np.sum(p.a**2) + q["x"] * p.b[1] + (0.0 if p.b[0] is None else 1.0)

    p, q = Point(X, (None, 3.0)), {"x": 2.0, "y": None}
    value, (in_p, in_q) = vm.value_and_grad(f, (0, 1))(p, q)
    assert value == np.sum(X**2) + 6.0
    assert type(in_p) is Point
    equal(in_p.a, 2.0 * X)
    assert in_p.b == (None, 2.0)
    assert in_q == {"x": 3.0, "y": None}
    recorded = vm.recorded(f, (0, 1))
    for each in (p, Point(X + 1.0, (None, 1.0)), Point(X, (1.0, 1.0))):
        close(recorded(each, q)[0], f(each, q), 1e-6)
    assert len(recorded._recordings) == 2
    rate = vm.jvp(lambda p: np.sum(p.a**2), (Point(X),), (Point(np.ones(3)),))[1]
    assert rate == 2.0 * np.sum(X)
    with pytest.raises(vm.ShapeError, match="but must be None!"):
        vm.jvp(lambda p: np.sum(p.a**2), (Point(X),), (Point(np.ones(3), 1.0),))
    with pytest.raises(vm.ShapeError, match=r"is a float, but must be a Point!"):
        vm.jvp(lambda p: np.sum(p.a**2), (Point(X),), (1.0,))


def test_a_list_of_arguments():
    def f(x, y):
        return x * y**2

    assert vm.grad(f, [0, 1])(2.0, 3.0) == (9.0, 12.0)
    assert vm.value_and_grad(f, argnums=[1])(2.0, 3.0) == (18.0, (12.0,))
    assert vm.recorded(f, [1, 0])(2.0, 3.0) == (18.0, (12.0, 9.0))
    assert vm.recorded(vm.grad(f, [1, 0]))(2.0, 3.0) == (12.0, 9.0)


def with_everything(x):
    z = np.zeros_like(x)
    z[0] = x[1] ** 2
    sparse = vm.SparseVar(x, scipy.sparse.eye_array(3))
    return np.sum(np.exp(x)), {
        "list": [x, x[0], 2, "s", None, np.sin],
        "point": Point(2.0 * x, (x[:2], Pair(1, np.sum(x)))),
        "others": (z[:1], z, vm.matvar([1.0, 2.0]) * 3.0, 1j * x, sparse, {1}, vm.Var),
    }


def test_anything_beside_the_scalar_becomes_plain():
    (value, aux), gradient = vm.value_and_grad(with_everything, has_aux=True)(X)
    close(value, np.sum(np.exp(X)), 1e-15)
    close(gradient, np.exp(X), 1e-15)
    *others, sparse, numbers, kind = aux["others"]
    found = [*aux["list"], aux["point"].a, *aux["point"].b, *others, sparse.toarray()]
    expected = [X, X[0], 2, "s", None, np.sin, 2.0 * X, X[:2], (1, np.sum(X))]
    expected += [[1.0], [1.0, 0.0, 0.0], [3.0, 6.0], 1j * X, np.diag(X)]
    for x, y in zip(found, expected, strict=True):
        assert type(x) in (float, int, str, np.ndarray, Pair, type(np.sin), type(None))
        equal(x, y)
    assert type(aux["point"].b[1].second) is float
    assert (numbers, kind) == ({1}, vm.Var)
    gradient, aux = vm.grad(with_everything, has_aux=True)(X)
    close(gradient, np.exp(X), 1e-15)
    equal(aux["point"].a, 2.0 * X)


def test_what_is_beside_the_scalar_belongs_to_the_caller():
    x = np.ones(100_000)  # large arrays are not copied at first
    _, (same, part) = vm.grad(lambda x: (np.sum(x), (x, x[:5])), has_aux=True)(x)
    same += 1.0
    part += 1.0
    assert x[0] == 1.0
    f = vm.value_and_grad(lambda a, b: (a["x"] * b, (a, b)), (1, 0), has_aux=True)
    assert f({"x": 2.0}, 3.0) == ((6.0, ({"x": 2.0}, 3.0)), (2.0, {"x": 3.0}))


def along(x):
    """A function of the numbers beside the scalars of gradients, one inside the other."""

    def inner(z, x):
        return np.sum(np.sin(z) * x), {"q": np.cumsum(z**2 * x)[-1], "v": (x, (z * x)[:2])}

    def middle(y):
        _, aux = vm.grad(inner, has_aux=True)(np.exp(y), x)
        return 1.0, [aux, "name"]

    aux, _ = vm.grad(middle, has_aux=True)(x)[1]
    return aux["q"] + np.sum(aux["v"][0] ** 3) + np.sum(aux["v"][1] ** 2)


def first_and_second(x):
    z, both = np.exp(x), np.array([1.0, 1.0, 0.0])
    first = z**2 * (2.0 * x + 1.0) + 3.0 * x**2 + both * 2.0 * z**2 * x * (x + 1.0)
    second = 4.0 * z**2 * (x + 1.0) + 6.0 * x
    return first, second + both * 2.0 * z**2 * ((x + 1.0) ** 2 + x * (x + 2.0))


def test_numbers_beside_the_scalar_keep_derivatives_from_outside():
    first, second = first_and_second(X)
    close(vm.gradient(along, X), first, 1e-13)
    close(vm.hessian(along, X), np.diag(second), 1e-13, 1e-13)
    close(vm.jacobian(vm.grad(along), X), np.diag(second), 1e-7, 1e-12)
    close(vm.jvp(along, (X,), (X,))[1], first @ X, 1e-13)
    for runner in RUNNERS:
        recorded = vm.recorded(along, runner=runner)
        for x in (np.zeros(3), X):
            close(recorded(x)[1], first_and_second(x)[0], 1e-13)
    stopped = vm.recorded(
        lambda x: vm.grad(lambda z: (np.sum(z), z[0] * vm.stop_gradient(z[0])), has_aux=True)(x)[1]
    )
    for x in (X, 2.0 * X):
        equal(stopped(x)[1], [x[0], 0.0, 0.0])


def test_variables_of_the_tape_beside_the_scalar():
    with vm.nested():
        c = vm.var(3.0)
        value, aux = vm.value_and_grad(lambda z: (z * z, (z**3, c * z, c)), has_aux=True)(2.0)[0]
        assert (value, aux[0], type(aux[0])) == (4.0, 8.0, float)
        assert aux[2] is c
        aux[1].grad()
        assert c.adj == 2.0
    dual = vm.grad(lambda z: (z * z, z**3), has_aux=True)(vm.Dual(2.0, 1.0))[1]
    assert (dual.val, dual.tan) == (8.0, 12.0)


@pytest.mark.parametrize("functional", [vm.grad, vm.value_and_grad])
def test_refusals_beside_the_scalar(functional):
    name = functional.__name__
    for f, kind in (
        (lambda z: z[0], "Var"), (lambda z: z, "VarMat"), (lambda z: (z[0],), "tuple of length 1"),
        (lambda z: (z[0], 1, 2), "tuple of length 3"),
    ):  # fmt: skip
        message = rf"^{name}: the result is a {kind}, but must be a tuple of two, the scalar"
        refuses(TypeError, message, functional(f, has_aux=True), np.ones(2))
    for f, x, error, message in (
        (lambda z: (z, z), np.ones(2), vm.ShapeError, r"the result has shape \(2,\)"),
        (lambda z: (z, vm.Dual(z, 1.0)), 2.0, vm.TapeError, ("the result is a Dual that the "
        "function created")),
    ):  # fmt: skip
        refuses(error, f"^{name}: {message}", functional(f, has_aux=True), x)
    message = rf"^recorded: {name}\(along\) has has_aux, but must not"
    refuses(TypeError, message, vm.recorded, functional(along, has_aux=True))


def test_callbacks_beside_the_scalar():
    def f(x):
        return vm.grad(lambda z: (z, called_back(z) * x), has_aux=True)(2.0)[1]

    message = r"^grad: the function uses make_callback_var, which has"
    refuses(TypeError, message, vm.grad(f), 3.0)
    assert vm.grad(lambda z: (z, called_back(z)), has_aux=True)(2.0) == (1.0, 4.0)


def called_back(x):
    return vm.make_callback_var(vm.value(x) ** 2, lambda y: None)


@pytest.mark.parametrize("outer", [vm.gradient, lambda f, x: vm.jvp(f, (x,), (x,))])
@pytest.mark.parametrize("other", [
    lambda z, x: x * 1j,
    lambda z, x: z * x * 1j,
    lambda z, x: vm.SparseVar(x, scipy.sparse.eye_array(3)),
])  # fmt: skip
def test_complex_and_sparse_variables_with_derivatives_from_outside_are_refused(outer, other):
    def f(x):
        return vm.grad(lambda z, x: (z, other(z, x)), has_aux=True)(2.0, x)[0]

    refuses(TypeError, r"^grad: the second item of the result has a (Comp|Spa)", outer, f, X)
