"""Many calls of a recorded function at once: which arguments have rows, and where these lie."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from comparing import close, refuses

import varmat as vm
from varmat.derivatives.recorded_rows import ArgumentRows

X = np.arange(12.0).reshape(3, 4) / 7.0
RATES = np.array([0.5, 2.0, 3.0])


def total(x, rate, data):
    return rate * np.sum(x**2) + x @ np.ravel(data["d"])


def expected(count, xs, rates, data):
    made = [vm.value_and_grad(total, (0, 1))(xs[k], rates[k], data(k)) for k in range(count)]
    return [np.array(each) for each in zip(*((v, g, r) for v, (g, r) in made), strict=True)]


@pytest.mark.parametrize(("args", "in_axes", "data"), [
    ((X, RATES, {"d": X}), 0, lambda k: {"d": X[k]}),
    ((X.T, RATES, {"d": X[0]}), (1, 0, None), lambda k: {"d": X[0]}),
    ((X.T, RATES, {"d": X.reshape(3, 2, 2).transpose(1, 2, 0)}), (-1, 0, 2), lambda k: {"d": X[k]}),
    ((np.asfortranarray(X), [0.5, 2.0, 3.0], {"d": np.repeat(X, 2, 1)[:, ::2]}), 0,
     lambda k: {"d": X[k]}),
], ids=["first axis", "axes of their own", "last axis", "gaps"])  # fmt: skip
def test_rows_are_those_of_calls(recorded, args, in_axes, data):
    g = recorded(total, (0, 1))
    value, (slope, rate) = g.map(*args, in_axes=in_axes, executor="threads")
    for found, true in zip((value, slope, rate), expected(3, X, RATES, data), strict=True):
        close(found, true, 1e-14)
        assert found.flags.c_contiguous
    assert len(g._recordings) == 1


def test_an_argument_without_rows_has_a_gradient_for_each_call(recorded):
    value, gradient = recorded(total).map(X[0], RATES, {"d": X[1]}, in_axes=(None, 0, None))
    _, true, _ = expected(3, [X[0]] * 3, RATES, lambda k: {"d": X[1]})
    close(gradient, true, 1e-14)
    assert value.shape == (3,)


def test_the_function_is_called_where_the_program_does_not_hold(recorded):
    calls = []

    def f(x):
        calls.append(x)
        return vm.normal_lpdf(0.3, 0.0, x[0]) if len(calls) < 2 else 2.0 * x[0]

    points = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    value, gradient = recorded(f).map(points)
    assert len(calls) == 3  # the recording, and two of the points
    assert value[[1, 3]].tolist() == [-2.0, -4.0]
    assert gradient[[1, 3]].tolist() == [[2.0], [2.0]]
    close(value[2], vm.normal_lpdf(0.3, 0.0, 2.0), 1e-15)
    close(gradient[2].item(), (0.3**2 / 4.0 - 1.0) / 2.0, 1e-14)


def test_results_that_are_not_finite_are_computed_as_the_function_says(recorded):
    calls = []
    g = recorded(vm.hessp(lambda x: (calls.append(x), np.sum(x**1.5))[1]))
    g.map(np.ones((3, 1)), np.ones((3, 1)))
    before = len(calls)
    g.map(np.ones((3, 1)), np.ones((3, 1)))
    assert len(calls) == before
    with np.errstate(divide="ignore"):
        found = g.map(np.array([[1.0], [0.0], [4.0]]), np.ones((3, 1)))
    assert found.tolist() == [[0.75], [np.inf], [0.375]]
    assert len(calls) > before


def test_no_program_at_all(recorded):
    """The first point is one at which a refusal is caught, so the recording ends."""

    def caught(x):
        try:
            return vm.normal_lpdf(0.3, 0.0, x)
        except vm.DomainError:
            return -np.inf * x

    value, _ = recorded(caught).map(np.array([-1.0, 1.0]))
    assert value.tolist() == [np.inf, vm.normal_lpdf(0.3, 0.0, 1.0)]


REFUSALS = {
    "in_axes has 1 entries, but must have 2": ((X, X), (0,), ValueError),
    "argument 1 has shape (3, 4), but must have the axis 2": ((X, X), 2, vm.ShapeError),
    "argument 2['a'][1] has length 2 along the axis 0, but must have length 3, as argument 1!": (
        (X, {"a": [X, RATES[:2]]}), 0, vm.ShapeError),
    "in_axes is 0.0, but must be an integer, None or a tuple of them!": ((X,), 0.0, TypeError),
    "in_axes is None, but must name an axis of an argument": ((X,), None, ValueError),
    "there are no rows, but there must be at least one": ((X[:0],), 0, vm.ShapeError),
    "argument 1 has dtype <U1, but must be real numbers": ((["a"],), 0, TypeError),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSALS)
def test_rows_that_are_refused(message):
    args, in_axes, error = REFUSALS[message]
    refuses(error, f"^f: {re.escape(message)}", lambda: ArgumentRows("f", args, in_axes).call(0))


@pytest.mark.parametrize("count", [1, 7, 3000])
def test_whose_threads(count):
    f, points = vm.recorded(lambda x: np.sum(np.exp(x))), np.linspace(-1.0, 1.0, 3 * count)
    points = points.reshape(count, 3)
    f(points[0])
    with ThreadPoolExecutor(2) as pool:
        for executor in (None, "serial", "threads", pool):
            values, gradients = f.map(points, executor=executor)
            close(values, np.exp(points).sum(1), 1e-14)
            close(gradients, np.exp(points), 1e-14)


def test_executors_that_are_refused():
    message = "recorded(<lambda>).map: executor is 'processes', but must be a ThreadPoolExecutor, "
    f = vm.recorded(lambda x: x @ x)
    refuses(TypeError, re.escape(message), lambda: f.map(X, executor="processes"))
