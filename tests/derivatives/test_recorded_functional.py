"""Recorded functionals: which recordings they keep; Hessians, Jacobians, and products with them."""

import operator
import pickle
from collections import Counter

import numpy as np
import pytest
from comparing import close, refuses
from recordings import X, Y, agree_in_threads, assert_same, on_numpy

import varmat as vm
from varmat.derivatives.structure import leaves_of, map_leaves, structure_of

POINT = np.array([0.3, -0.8, 1.2])
DIRECTION = np.array([0.5, 2.0, -1.0])


def log_density(q):
    return vm.normal_lpdf(Y, X @ q, 1.5) + vm.cauchy_lpdf(q, 0.0, np.exp(q[0]))


def several(q):
    return np.stack([np.sum(q * q), np.exp(q[0]) * q[1], np.sin(q[2]), q[0] - q[1]])


def factor(q):
    return np.sum(np.linalg.cholesky(np.outer(q, q) + 3.0 * np.eye(3)))


def agree(made, true):
    assert type(made) is type(true)
    close(made, true, 1e-12, 1e-13)


@pytest.mark.parametrize(
    "f", [log_density, factor, lambda q: q @ q], ids=["density", "cholesky", "squares"]
)
def test_second_derivatives(f, runner):
    hessian = vm.recorded(vm.hessian(f), runner=runner)
    product = vm.recorded(vm.hessian_times_vector(f), runner=runner)
    for point in (POINT, 2.0 * POINT, POINT[::-1].copy()):
        agree(hessian(point), vm.hessian(f, point))
        agree(product(point, DIRECTION), vm.hessian_times_vector(f, point, DIRECTION))
        agree(
            vm.recorded(vm.hessp(f), runner=runner)(point, DIRECTION), vm.hessp(f)(point, DIRECTION)
        )


def test_jacobians_and_products(runner):
    jacobian = vm.recorded(vm.jacobian(several), runner=runner)
    forward = vm.recorded(vm.jvp(several), runner=runner)
    for point in (POINT, 2.0 * POINT):
        agree(jacobian(point), vm.jacobian(several, point))
        for made, true in zip(
            forward((point,), (DIRECTION,)), vm.jvp(several, (point,), (DIRECTION,)), strict=True
        ):
            agree(made, true)


def tangents_of_gradients_agree(f, points, tangents, argnums, runner):
    """Compare the recorded product with the eager one, and return the recording."""
    gradient = vm.grad(f, argnums)
    made = vm.recorded(vm.jvp(gradient), runner=runner)
    for found, true in zip(made(points, tangents), vm.jvp(gradient, points, tangents), strict=True):
        assert structure_of(found) == structure_of(true)
        for x, y in zip(leaves_of(found), leaves_of(true), strict=True):
            agree(x, y)
    return made


def test_a_gradient_and_its_derivative_are_one_program(runner):
    def mixed(x, y):
        return np.sum(np.exp(x["a"]) * y) + x["b"] ** 3 * y[0] + np.min(np.outer(y, y))

    points = {"a": POINT, "b": 0.7}, np.array([1.0, -2.0, 0.5])
    tangents = {"a": DIRECTION, "b": -1.5}, np.array([0.3, 0.2, -0.1])
    for argnums in (0, 1, -1, (1,), (1, 0)):
        made = tangents_of_gradients_agree(mixed, points, tangents, argnums, runner)
        assert all(step.kernel.is_native for step in made.program.steps)
    for f in (log_density, factor, lambda q: 3.0 * q[0], lambda q: 1.0):
        tangents_of_gradients_agree(f, (POINT,), (DIRECTION,), 0, runner)
    tangents_of_gradients_agree(lambda x: x**3, (2.0,), (0.5,), 0, runner)


def test_a_gradient_of_an_array_has_no_recorded_derivative():
    for call in (vm.jvp, lambda f, *rest: vm.recorded(vm.jvp(f))(*rest)):
        for f, argnums, error, message in (
            (several, 0, vm.ShapeError, r"^grad: the result has shape \(4,\), but"),
            (log_density, 1, TypeError, "^grad: argnums is 1, but the function was called with 1 "),
        ):
            refuses(error, message, call, vm.grad(f, argnums), (POINT,), (DIRECTION,))


def test_gradients(runner):
    agree(vm.recorded(vm.grad(log_density), runner=runner)(POINT), vm.grad(log_density)(POINT))
    value, gradient = vm.recorded(vm.value_and_grad(log_density), runner=runner)(POINT)
    true_value, true_gradient = vm.value_and_grad(log_density)(POINT)
    agree(value, true_value)
    agree(gradient, true_gradient)


def test_a_function_is_recorded_once_for_each_shape(runner):
    calls = []

    def f(x):
        calls.append(np.shape(x))
        return np.sum(np.exp(x) * x)

    hessian = vm.recorded(vm.hessian(f), runner=runner)
    for n in (2, 2, 3, 2, 3):
        hessian(np.linspace(0.1, 0.5, n))
    assert sorted(calls) == [(2,), (3,)]


def test_functionals_are_pickled_with_their_function(runner):
    hessian = pickle.loads(pickle.dumps(vm.recorded(vm.hessian(log_density), runner=runner)))
    agree(hessian(POINT), vm.hessian(log_density, POINT))


def test_a_functional_brings_its_own_arguments():
    refuses(TypeError, "argnums is given", lambda: vm.recorded(vm.hessian(log_density), 0))


# --- which recordings are kept ---


def test_the_last_sixteen_recordings_are_kept():
    sizes = []

    def f(x):
        sizes.append(x.size)
        return np.sum(x)

    g = on_numpy(f)
    for n in (*range(1, 18), 2, 17, 1, 2):
        assert g(np.ones(n))[0] == n
    assert sizes == [*range(1, 18), 1, 2]


def test_other_arguments_are_recorded_anew():
    g = on_numpy(lambda x, y, power=2: np.sum((x - y) ** power))
    x, y = np.array([3.0]), np.array([1.0])
    assert g(x, y)[0] == 4.0
    assert g(x, y + 1.0)[0] == 1.0
    assert g(x, y, power=3)[0] == 8.0
    assert g(x, y)[0] == 4.0
    assert g(x, 2)[0] == 1.0
    assert g(x, 2.0)[0] == 1.0
    count = []

    def selected(x, bounds, size):
        count.append(size)
        return np.sum(x[slice(*bounds)]) * size

    h = on_numpy(selected)
    for scale in (1.0, 2.0):
        x = scale * np.ones(4)
        # The tuple is a new one at each call, and equal to the one before.
        assert h(x, (1, len(x) - 1), np.float64(2.5))[0] == 5.0 * scale
        assert h(x, (1, len(x) - 1, 2), np.float64(2.5))[0] == 2.5 * scale
        assert h(x, (1, len(x)), np.float64(2.5))[0] == 7.5 * scale
        assert h(x, (1, len(x)), np.float64(0.0))[0] == 0.0
        assert h(x, (1, len(x)), float("0.5"))[0] == 1.5 * scale
    assert count == [2.5, 2.5, 2.5, 0.0, 0.5]
    along = on_numpy(lambda x, axes: np.sum(np.sum(x, axis=axes) ** 2))
    assert [along(np.ones((2, 3)), axes)[0] for axes in ((0,), (0, 1), (0,))] == [12.0, 36.0, 12.0]
    signed = on_numpy(lambda x, zero: x * np.copysign(1.0, zero))
    assert signed(2.0, 0.0)[0] == -signed(2.0, -0.0)[0]
    lasting = on_numpy(lambda x, time: x * time.astype(float))
    found = [lasting(2.0, np.timedelta64(*time))[0] for time in ((1, "D"), (24, "h"), (1, "D"))]
    assert found == [2.0, 48.0, 2.0]


def test_arguments_that_are_changed_in_place():
    """Lists and dicts are compared by what is in them, arrays and other objects by identity."""
    calls = []

    def f(x, weights, settings):
        calls.append(weights)
        return np.sum(x) * weights[0] * settings["a"][1]

    weights, settings = [2.0], {"a": [1.0, 3.0]}
    g = vm.recorded(f)
    assert g(np.ones(2), weights, settings)[0] == 12.0
    weights[0] = 5.0
    assert g(np.ones(2), weights, settings)[0] == 30.0
    settings["a"][1] = 1.0
    assert g(np.ones(2), weights, settings=settings)[0] == 10.0
    settings["b"] = None
    assert g(np.ones(2), weights, settings=settings)[0] == 10.0
    assert len(calls) == 4
    assert g(np.ones(2), [5.0], settings={"a": [1.0, 1.0], "b": None})[0] == 10.0
    assert len(calls) == 4


def test_several_threads_record_several_shapes_at_once(recorded):
    """Each thread has its own point and its own memory. Each shape is recorded once."""
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return np.sum(np.linalg.solve(np.outer(x, x) + 5.0 * np.eye(len(x)), x)) + np.sum(
            np.exp(x) * x
        )

    g, eager = recorded(f), vm.value_and_grad(f)
    points = [np.linspace(0.1, 1.0 + 0.1 * k, 2 + k % 3) for k in range(12)]
    expected = [eager(x) for x in points]
    shapes.clear()
    agree_in_threads(g, points, expected, 100, 1e-11)
    assert Counter(shapes) == {(2,): 1, (3,): 1, (4,): 1}


def test_runners_are_named():
    assert vm.recorded(operator.neg).runner == "auto"
    for runner in ("fast", None, "Native"):
        message = r"^recorded: runner is .*, but must be one of 'auto', 'numpy', 'native'!"
        refuses(ValueError, message, vm.recorded, operator.neg, runner=runner)


# --- matrices as loops over unit vectors ---


def block(p):
    return {"y": p["a"] * np.exp(p["b"]), "z": [p["a"] @ p["a"], p["b"] * np.ones((2, 2))]}


@pytest.mark.parametrize(("functional", "f"), [
    (vm.hessian, lambda p: np.sum(p["a"] ** 3) * np.sin(p["b"])),
    (vm.jacobian, block),  # by columns
    (vm.jacobian, lambda p: {"y": p["a"] @ p["a"] * p["b"]}),  # by rows
], ids=["hessian", "columns", "rows"])  # fmt: skip
def test_blocks_of_structures(functional, f, runner):
    points = [{"a": k * np.arange(1.0, 4.0), "b": 0.5 * k} for k in (1.0, -0.3)]
    recorded = vm.recorded(functional(f), runner=runner)
    for point in points:
        assert_same(recorded(point), functional(f, point))
    assert recorded.program.counts()["loop"] == 1
    rows = {"a": np.stack([x["a"] for x in points]), "b": np.array([x["b"] for x in points])}
    many = recorded.map(rows)
    for k, point in enumerate(points):
        found = map_leaves(lambda x, _, k=k: x[k] if x.ndim > 1 else float(x[k]), many)
        close(leaves_of(found), leaves_of(functional(f, point)), 1e-13)


def test_steps_without_the_vector_are_outside_of_the_loop():
    """The exponentials and the condition do not depend on the vector; the condition is used in the
    loop, where only numbers can be shared.
    """

    def f(x):
        return np.sum(np.where(x > 0.0, np.exp(x) ** 2, x**3))

    hessian = on_numpy(vm.hessian(f))
    for point in (POINT, -POINT):
        agree(hessian(point), vm.hessian(f, point))
    assert hessian.program.counts()["exp"] == 1
    (loop,) = [x.kernel for x in hessian.program.steps if x.kernel.name == "loop"]
    assert "exp" not in loop.body.counts()


def test_points_without_elements(runner):
    empty = np.ones((0,))
    for functional, f in ((vm.hessian, np.sum), (vm.jacobian, np.exp), (vm.jacobian, np.sum)):
        found, true = vm.recorded(functional(f), runner=runner)(empty), functional(f, empty)
        assert found.shape == true.shape
    found = vm.recorded(vm.jacobian(lambda x: np.ones(3) * np.sum(x)), runner=runner)(empty)
    assert found.shape == (3, 0)


def test_a_loop_whose_steps_call_python(runner):
    def f(x):
        return np.median(x) ** 2 * np.sum(x**2)

    hessian = vm.recorded(vm.hessian(f), runner=runner)
    for point in (POINT, POINT[::-1].copy()):
        agree(hessian(point), vm.hessian(f, point))
