"""Structures as a vector and back, derivatives that stop, None and dataclasses as arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from recordings import RUNNERS, agree

import varmat as vm

X = np.array([0.5, -1.0, 2.0])


@dataclass(frozen=True)
class Point:
    a: Any
    b: Any = None


def test_stopped_derivatives():
    def f(x):
        return np.sum(x**2 * vm.stop_gradient(np.exp(x))) + vm.stop_gradient(x[0]) * x[1]

    expected = 2.0 * X * np.exp(X) + [0.0, X[0], 0.0]
    np.testing.assert_allclose(vm.gradient(f, X), expected, rtol=1e-14)
    hessian = np.diag(2.0 * np.exp(X))
    for runner in RUNNERS:
        recorded = vm.recorded(vm.hessian(f), runner=runner)
        for x in (np.zeros(3), X):
            np.testing.assert_allclose(recorded(x), np.diag(2.0 * np.exp(x)), rtol=1e-14)
    np.testing.assert_allclose(vm.hessian(f, X), hessian, rtol=1e-14)
    np.testing.assert_allclose(vm.jvp(f, (X,), (np.ones(3),))[1], np.sum(expected), rtol=1e-14)
    np.testing.assert_allclose(vm.gradient(f, vm.value(vm.matvar(X))), expected, rtol=1e-14)


def test_recordings_keep_what_was_stopped():
    agree(
        lambda x: np.sum(x**2 * vm.stop_gradient(np.exp(x))) + vm.stop_gradient(x[0]),
        (np.zeros(3),),
        (X,),
    )


def test_stopped_structures_are_plain():
    with vm.nested():
        x = vm.var(X)
        found = vm.stop_gradient({"a": [x, 2.0], "b": (vm.matvar(X), None)})
    assert found["a"][1] == 2.0
    assert found["b"][1] is None
    for each in (found["a"][0], found["b"][0]):
        assert type(each) is np.ndarray
        np.testing.assert_array_equal(each, X)


def test_a_structure_as_a_vector_and_back():
    tree = {"a": X.reshape(3, 1), "b": Point(2.0, [np.eye(2), None])}
    flat, unravel = vm.ravel_pytree(tree)
    np.testing.assert_array_equal(flat, [*X, 2.0, 1.0, 0.0, 0.0, 1.0])
    again = unravel(2.0 * flat)
    np.testing.assert_array_equal(again["a"], 2.0 * tree["a"])
    assert again["b"].a == 4.0
    assert type(again["b"].a) is float
    np.testing.assert_array_equal(again["b"].b[0], 2.0 * np.eye(2))
    assert again["b"].b[1] is None

    def f(vector):
        point = unravel(vector)
        return np.sum(point["a"] ** 2) * point["b"].a + np.sum(point["b"].b[0])

    agree(f, (flat,), (flat + 1.0,))
    slopes = vm.gradient(lambda p: np.sum(vm.ravel_pytree(p)[0] ** 2), tree)
    np.testing.assert_array_equal(slopes["a"], 2.0 * tree["a"])
    assert slopes["b"].a == 4.0
    with pytest.raises(
        vm.ShapeError,
        match=r"^unravel: the argument has shape \(3,\), but must have shape \(8,\)!$",
    ):
        unravel(X)
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
    np.testing.assert_array_equal(in_p.a, 2.0 * X)
    assert in_p.b == (None, 2.0)
    assert in_q == {"x": 3.0, "y": None}
    recorded = vm.recorded(f, (0, 1))
    for each in (p, Point(X + 1.0, (None, 1.0)), Point(X, (1.0, 1.0))):
        assert recorded(each, q)[0] == pytest.approx(f(each, q))
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
