"""`varmat.vjp`: pull-backs, which may be called again, from any thread."""

import gc

import numpy as np
import pytest
from comparing import close, equal, refuses
from core.tapes import state
from recordings import assert_same, in_threads

import varmat as vm

VJPS = {
    "scalar": (lambda x: x * x, (3.0,), 1.5, (9.0,)),
    "array": (lambda x, a: a * x, (np.array([1.0, 2.0]), 3.0), np.array([1.0, 10.0]),
        (np.array([3.0, 30.0]), 21.0)),
    "identity": (lambda x: x, (np.arange(3.0),), np.arange(3.0) + 1, (np.arange(3.0) + 1,)),
    "view": (lambda x: x[::2], (np.arange(3.0),), np.array([1.0, 2.0]),
        (np.array([1.0, 0.0, 2.0]),)),
    "transpose": (lambda x: x.T, (np.ones((1, 2)),), np.array([[3.0], [4.0]]),
        (np.array([[3.0, 4.0]]),)),
    "structure": (lambda x: {"s": np.sum(x), "c": [x * 2, 7.0]}, (np.ones(2),),
        {"c": [np.array([5, 6]), 1], "s": 1.0}, (np.array([11.0, 13.0]),)),
    "twice the same": (lambda x: (x, x), (np.ones(2),), (np.ones(2), np.arange(2.0)),
        (np.array([1.0, 2.0]),)),
    "nested primal": (lambda p: p["a"] * p["b"], ({"a": 2.0, "b": np.ones(2)},), np.array([1, 2]),
        ({"a": 3.0, "b": np.array([2.0, 4.0])},)),
    "matvar": (lambda x: vm.to_matvar(x) ** 2, (np.array([1.0, 2.0]),), np.array([1.0, 10.0]),
        (np.array([2.0, 40.0]),)),
    "constant": (lambda x: 4, (1.0,), 1.0, (0.0,)),
}  # fmt: skip


@pytest.mark.parametrize(("f", "primals", "cotangent", "expected"), VJPS.values(), ids=VJPS)
def test_vjp(f, primals, cotangent, expected):
    _, pullback = vm.vjp(f, *primals)
    vm.gradient(lambda x: np.sum(x * x), np.ones(40_000))
    for _ in range(2):
        assert_same(pullback(cotangent), expected)


def test_vjp_value_and_independence():
    x = np.array([1.0, 2.0])
    value, pullback = vm.vjp(lambda x: (x * x, np.sum(x), x), x)
    assert_same(value, (np.array([1.0, 4.0]), 3.0, np.array([1.0, 2.0])))
    x[:] = 100.0
    value[0][:] = value[2][:] = 100.0
    expected = (np.array([3.0, 5.0]),)
    cotangent = (np.array([1.0, 1.0]), 1.0, np.zeros(2))
    first = pullback(cotangent)
    assert_same(first, expected)
    first[0][:] = 0.0
    equal(cotangent[0], [1.0, 1.0])
    assert_same(pullback(cotangent), expected)


def test_vjp_outlives_its_scope_and_crosses_threads():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 40_000))
    with vm.nested():
        vm.var(np.ones(40_000))
        pullbacks = [vm.vjp(lambda x: np.exp(x) * x, row)[1] for row in x]
    results = [None] * 3

    def work(i):
        for _ in range(3):
            results[i] = pullbacks[i](np.ones(40_000))[0]
            pullbacks[0](np.ones(40_000))

    in_threads(work, range(3))
    close(results, np.exp(x) * (1 + x), 1e-14, 1e-15)


@pytest.mark.parametrize(("cotangent", "message"), [
    (np.ones(3), r"the cotangent is a ndarray, but must be a sequence of length 2!"),
    ((np.ones(3), 1.0), r"the cotangent\[0\] has shape \(3,\), but must have shape \(2,\)!"),
    ((np.ones(2), np.ones(1)), r"the cotangent\[1\] has shape \(1,\), but must have shape \(\)!"),
    ((np.ones(2),), "the cotangent is a sequence of length 1, but must be a sequence of length 2!"),
    ({"a": 1.0, "b": 2.0}, "the cotangent is a dict with the keys"),
])  # fmt: skip
def test_vjp_refuses_what_does_not_fit(cotangent, message):
    _, pullback = vm.vjp(lambda x: (x, np.sum(x)), np.ones(2))
    refuses(vm.ShapeError, f"^vjp: {message}", pullback, cotangent)


def test_vjp_of_a_function_that_assigns():
    def f(x):
        x[0] = x[1] * x[1]
        return x

    _, pullback = vm.vjp(f, np.array([1.0, 3.0]))
    for _ in range(3):
        assert_same(pullback(np.array([1.0, 0.0])), (np.array([0.0, 6.0]),))


def test_vjp_of_a_function_with_a_reverse_pass():
    def f(x):
        np.sum(x**3).grad()
        return x * x.adj

    _, pullback = vm.vjp(f, np.array([1.0, 2.0]))
    for _ in range(2):
        assert_same(pullback(np.ones(2)), (np.array([3.0, 12.0]),))


def test_pullbacks_with_cotangents_that_depend_on_something():
    def f(x):
        value, pullback = vm.vjp(lambda a, b: (a * b * x, a**2), x, x * x)
        (first, second) = pullback((value[0], x))
        return first + second * value[1]

    # The values are x⁴ and x². The pullback gives x³ x⁴ + 2 x² and x² x⁴.
    close(vm.grad(f)(1.5), 7 * 1.5**6 + 4 * 1.5 + 8 * 1.5**7, 1e-15)
    close(vm.derivative(f, 1.5), 7 * 1.5**6 + 4 * 1.5 + 8 * 1.5**7, 1e-15)


def test_a_pullback_gives_its_memory_back():
    x = np.linspace(0.0, 1.0, 40_000)
    before = state()
    _, pullback = vm.vjp(lambda x: np.exp(x) * x, x)
    assert state() == before
    expected = np.exp(x) * (1 + x)
    for _ in range(3):
        vm.gradient(lambda x: np.sum(np.exp(x)), x + 1)
        close(pullback(np.ones(40_000))[0], expected, 1e-14)
    del pullback
    gc.collect()
    assert state() == before
