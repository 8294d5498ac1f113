"""jacobian."""

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.core.operation import OPERATIONS
from varmat.derivatives import jacobians

X = np.array([0.5, -1.0, 2.0])


def wide(x):
    """Return fewer outputs than inputs; the Jacobian is computed by reverse sweeps."""
    return np.stack([np.sum(np.sin(x)), x[0] * x[2]])


def tall(x):
    """Return more outputs than inputs; the Jacobian is computed with dual numbers."""
    return np.concatenate([np.sin(x), x * x[0]])


WIDE = np.array([np.cos(X), [X[2], 0.0, X[0]]])
TALL = np.concatenate([np.diag(np.cos(X)), X[0] * np.eye(3) + np.outer(X, [1.0, 0.0, 0.0])])


@pytest.mark.parametrize(("f", "x", "expected"), [
    (wide, X, WIDE), (tall, X, TALL), (lambda x: x, X, np.eye(3)),
    (lambda x: x[::2], X, np.eye(3)[::2]),
    (lambda x: np.sum(x * x), X, 2 * X),
    (lambda x: np.zeros(2), X, np.zeros((2, 3))),
    (lambda x: np.zeros(5), X, np.zeros((5, 3))),
    (lambda x: x * X, 2.0, X), (lambda x: x * x, 2.0, 4.0),
    (lambda x: x * np.arange(2.0)[:, None], X, np.arange(2.0)[:, None, None] * np.eye(3)),
    (lambda x: np.sum(x, axis=0), np.ones((2, 2)),
     np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]])),
    (lambda x: x * 2, np.empty(0), np.empty((0, 0))),
    (lambda x: np.ones(2) * np.sum(x), np.empty(0), np.empty((2, 0))),
    (lambda x: x[:0], X, np.empty((0, 3))),
])  # fmt: skip
@pytest.mark.parametrize("forward", [False, True], ids=["sweeps", "directions"])
def test_jacobian(f, x, expected, forward, monkeypatch):
    monkeypatch.setattr(jacobians, "_forward_is_faster", lambda *_: forward)
    got = vm.jacobian(f, x)
    close(got, expected, 1e-14, 1e-15)
    assert np.shape(got) == np.shape(expected)
    assert type(got) is float or (got.base is None and got.flags.c_contiguous)


@pytest.mark.parametrize("forward", [False, True], ids=["sweeps", "directions"])
@pytest.mark.parametrize("many", [False, True])
def test_structures(many, forward, monkeypatch):
    monkeypatch.setattr(jacobians, "_forward_is_faster", lambda *_: forward)
    point = {"a": 2.0, "b": [X]}

    def f(p, k, *, scale):
        y = p["a"] * p["b"][0]
        return (scale * (np.concatenate([y] * k)), np.sum(y)), 1.0

    k = 3 if many else 1
    ((first, second), third) = vm.jacobian(f, point, k, scale=2.0)
    close(first["a"], 2 * np.concatenate([X] * k), 1e-15)
    close(first["b"][0], np.concatenate([4 * np.eye(3)] * k), 1e-15)
    assert second["a"] == np.sum(X)
    close(second["b"][0], [2.0] * 3, 1e-15)
    assert third["a"] == 0.0
    equal(third["b"][0], np.zeros(3))


def cube(name):
    """Make an operation without a tangent rule."""

    def own(x):
        return x**3

    own.__name__ = name
    op = vm.operation()(own)
    op.reverse(lambda g, r, x: 3 * x**2 * g)
    return op


def by_callback(x):
    def adjoint(y):
        x.adj += 3 * x.val**2 * y.adj

    return vm.make_callback_var(x.val**3, adjoint)


def test_operations_without_a_forward_rule_are_swept(monkeypatch):
    monkeypatch.setattr(jacobians, "_forward_is_faster", lambda *_: True)
    for name in ("own_cube", "stack"):
        monkeypatch.setitem(OPERATIONS, name, OPERATIONS.get(name))
    own_cube = cube("own_cube")
    # The operation itself decides whether there is a forward rule: not a later operation of the
    # same name, and not one of the library that needs none.
    cube("own_cube").tangent(lambda r, x: lambda t: 3 * x**2 * t)
    expected = np.concatenate([np.diag(3 * X**2), np.eye(3)])
    for f in (own_cube, cube("stack"), by_callback):
        close(vm.jacobian(lambda x, f=f: np.concatenate([f(x), x]), X), expected, 1e-14)


def rotated(x):
    """Use slices, joins, gathers and assignments, whose forward and reverse rules are written
    separately.
    """
    y = np.concatenate([x[1:], x[:1] * 2.0])
    y[0] = np.sum(x)
    return np.stack([y, np.exp(y[::-1])])[:, [0, 0, 2]]


@pytest.mark.parametrize("f", [
    lambda x: np.exp(np.sin(x)) * np.sum(x * x),
    lambda x: np.linalg.inv(x @ x.T + np.eye(3)),
    lambda x: rotated(x[:, 0]),
    lambda x: np.tanh(np.cumsum(x, axis=0)) ** 3,
    lambda x: (vm.normal_lpdf(x[:, 0], x[:, 1], 1.5), x.T),
])  # fmt: skip
def test_both_ways_agree(f, monkeypatch):
    x = np.random.default_rng(2).normal(size=(3, 2))
    found = []
    for forward in (False, True):
        monkeypatch.setattr(jacobians, "_forward_is_faster", lambda *_, forward=forward: forward)
        found.append(vm.jacobian(f, x))
    for one, other in zip(
        *(each if isinstance(each, tuple) else (each,) for each in found), strict=True
    ):
        close(one, other, 1e-12, 1e-15)


@pytest.mark.parametrize(
    ("outputs", "inputs", "calls"),
    [(64, 64, 2), (4, 4, 1), (2, 64, 1), (64, 2, 2), (1, 1, 1), (256, 256, 2)],
)
def test_the_way_is_chosen(outputs, inputs, calls):
    """Reverse sweeps evaluate the function once. Forward mode evaluates it once more, for all
    directions together.
    """
    w = np.random.default_rng(2).normal(size=(outputs, inputs)) / inputs
    x, count = np.linspace(-1.0, 1.0, inputs), 0

    def f(x):
        nonlocal count
        count += 1
        return np.tanh(w @ x)

    close(vm.jacobian(f, x), w * (1.0 - np.tanh(w @ x) ** 2)[:, None], 1e-10, 1e-15)
    assert count == calls


def test_refusals():
    refuses(TypeError, r"^jacobian: the result is None", vm.jacobian, lambda x: None, X)
    refuses(TypeError, r"^jacobian: x has dtype complex128", vm.jacobian, wide, X * 1j)
