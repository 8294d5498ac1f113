"""Choices between functions: as Python's own branch, and recorded on every runner."""

import math

import numpy as np
import pytest
from comparing import close, close_slopes, equal, refuses
from recordings import agree_everywhere

import varmat as vm

WEIGHTS = np.random.default_rng(0).normal(size=(40, 40)) / 6.0


def branches_in(program):
    return sum(step.kernel.name == "branch" for step in program.steps)


def huber(x):
    return vm.cond(np.abs(x) < 1.0, lambda x: 0.5 * x**2, lambda x: np.abs(x) - 0.5, x)


def structures(x):
    """Long and short results, a number among them, of a dict and a number."""

    def here(p, s):
        return {"a": np.exp(-(p["x"] ** 2)), "b": (p["x"][:3], s * 2.0)}

    def there(p, s):
        return {"a": WEIGHTS @ p["x"], "b": (np.ones(3), np.sum(p["x"]))}

    y = vm.cond(x[0] > 0.0, here, there, {"x": x}, x[1])
    return np.sum(y["a"] ** 2) + y["b"][1] * x[2] + np.prod(y["b"][0])


def nested(x):
    def inside(x):
        return vm.cond(x[1] > 0.0, lambda x: np.sum(np.sin(x)), lambda x: x[0] ** 3, x)

    return vm.cond(x[0] > 0.0, inside, lambda x: np.sum(x**2), x)


def in_a_scan(x):
    """A process that falls back where it passes a threshold."""

    def step(level, shock, threshold):
        fallen, kept = lambda c: 0.3 * c, lambda c: c + 0.1 * np.sin(c)
        level = vm.cond(level > threshold, fallen, kept, level + shock)
        return level, level**2

    last, squares = vm.scan(step, x[0], x[2:], x[1])
    return last + np.sum(squares)


SHOCKS = np.random.default_rng(1).normal(size=(50, 2))


def in_a_loop(x):
    """The same in a loop of Python, with data of each iteration as operands."""
    level, total = x[0], 0.0
    for shock, y in SHOCKS:
        level = vm.cond(
            level > x[1],
            lambda c, s: 0.3 * c[0] + s * np.sin(c[0]),
            lambda c, s: c[0] + 0.1 * s,
            [level],
            shock,
        )
        total = total + (level * x[2] - y) ** 2
    return total


def by_looking_at_data(x):
    """Data that a function looks at stay plain numbers."""
    level = x[0]
    for shock, y in SHOCKS[:4]:
        level = vm.cond(
            level > x[1],
            lambda c, s, y: c * s if y > 0.0 else c + y,
            lambda c, s, y: c + math.exp(y) * s,
            level,
            shock,
            y,
        )
    return level * x[2]


def refused_elsewhere(x):
    """Each function is refused where the other is chosen."""
    return vm.cond(
        x[0] > 0.0,
        lambda x: vm.normal_lpdf(x, 0.0, x[0]),
        lambda x: vm.normal_lpdf(x, 0.0, -x[0]),
        x,
    )


def truths(x):
    """Truth values go in and come out."""
    above = x > 0.1
    level, is_one = vm.cond(
        above[0],
        lambda x, above: (x[0], np.all(above)),
        lambda x, above: (x[1] ** 2, ~above[2]),
        x,
        above,
    )
    return np.where(is_one, level, x[2]) + (is_one + above[1]) * x[0]


def pieces(x):
    functions = [lambda x: x[0] ** 2, lambda x: np.sum(x), lambda x: np.exp(x[1])]
    return vm.switch(np.sum(x > 0.0), functions, x)


POINTS = np.random.default_rng(1).normal(size=(4, 40))


@pytest.mark.parametrize(("f", "points"), [
    (huber, [(0.5,), (-3.0,), (0.2,)]),
    (structures, [(POINTS[0],), (-POINTS[0],), (0.1 * POINTS[1],)]),
    (nested, [(np.array(p),) for p in ([1.0, 2.0], [1.0, -2.0], [-1.0, 2.0])]),
    (in_a_loop, [(POINTS[0, :3],), (np.abs(POINTS[1, :3]),), (-POINTS[2, :3],)]),
    (by_looking_at_data, [(POINTS[0, :3],), (np.abs(POINTS[1, :3]),)]),
    (in_a_scan, [(POINTS[0],), (np.abs(POINTS[1]),), (-POINTS[2],)]),
    (truths, [(POINTS[k, :3],) for k in range(4)]),
    (pieces, [(np.array(p),) for p in ([-1.0, -2.0], [1.0, -2.0], [1.0, 2.0])]),
])  # fmt: skip
def test_choices_agree_with_pythons_own(f, points):
    agree_everywhere(f, points, tolerance=1e-12)


def test_choices_of_a_loop_become_a_loop():
    recorded = vm.recorded(in_a_loop)
    recorded(np.array([0.3, 0.2, 0.5]))
    counts = recorded.program.counts()
    assert counts["loop"] == 2
    assert counts["branch"] < 10


def test_one_of_the_functions_runs():
    """The other one would end the run."""

    def f(x):
        safe = lambda x: vm.normal_lpdf(x, 0.0, 1.0)  # noqa: E731
        return vm.cond(x[0] > -2.0, lambda x: vm.normal_lpdf(x, 0.0, x[0] + 2.0), safe, x)

    calls = []
    recorded = vm.recorded(lambda x: calls.append(x) or f(x))
    for x in (POINTS[0], POINTS[0] - 10.0):
        close_slopes(recorded(x), vm.value_and_grad(f)(x), 1e-12)
    assert len(calls) == 1
    assert branches_in(recorded.program) == 2  # forward and reverse


def test_a_function_that_is_refused_at_the_recorded_point_is_called_where_it_is_chosen():
    recorded = vm.recorded(refused_elsewhere)
    for x in (POINTS[0], -POINTS[0], POINTS[1]):
        close_slopes(recorded(x), vm.value_and_grad(refused_elsewhere)(x), 1e-12)


def test_a_choice_by_data_is_made_at_once():
    recorded = vm.recorded(lambda x: vm.cond(2 > 1, np.sin, np.cos, x))
    assert recorded(0.3) == (np.sin(0.3), np.cos(0.3))
    assert branches_in(recorded.program) == 0


def test_choices_on_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    recorded = vm.recorded(structures)
    recorded(POINTS[0])
    with jax.enable_x64():
        run = jax.jit(recorded.program.to_jax())
        for x in (POINTS[1], -POINTS[1]):
            close_slopes(run(x), vm.value_and_grad(structures)(x), 1e-11, 1e-13)


def test_third_derivatives():
    def f(x):
        return vm.cond(x > 0.0, lambda x: x**4, lambda x: np.sin(x), x)

    for x, third in ((2.0, 48.0), (-1.0, -np.cos(-1.0))):
        close(vm.derivative(lambda z: vm.hessian(f)(z), x), third, 1e-6)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: vm.cond(x > 0, 3.0, np.sin, x), TypeError,
     "cond: function 2 is a float, but must be a function!"),
    (lambda x: vm.cond(np.array([x, x]) > 0, np.sin, np.cos, x), vm.ShapeError,
     r"cond: the choice has shape (2,), but must be one number or truth value!"),
    (lambda x: vm.switch(0, [], x), ValueError,
     "switch: branches is empty, but must have at least one function!"),
])  # fmt: skip
def test_what_is_refused(call, error, message):
    with pytest.raises(error) as caught:
        call(1.0)
    assert str(caught.value) == message


def test_what_a_recording_refuses():
    def shapes(x):
        return np.sum(vm.cond(x[0] > 0, lambda x: x, lambda x: x[:1], x))

    def outside(x):
        return vm.cond(x[0] > 0, lambda y: y * x[1], lambda y: y, x[0])

    def kinds(x):
        return vm.cond(x[0] > 0, lambda x: x[0] > 1, lambda x: x[0], x) * 1.0

    refuses(
        TypeError, "^cond: one function returns truth values where", vm.recorded(kinds), np.ones(2)
    )
    with pytest.raises(vm.ShapeError, match=r"^cond: a function returns the structure"):
        vm.recorded(shapes)(np.ones(2))
    with pytest.raises(vm.TapeError, match=r"^cond: the function uses a VarMat of shape \(2,\)"):
        vm.recorded(outside)(np.ones(2))


# --- loops that end at a value ---


def root(x):
    """Newton's method, whose number of iterations depends on the point."""

    def far(c, a):
        return np.abs(c * c - a) > 1e-9

    a = np.sum(x**2)
    return vm.while_loop(far, lambda c, a: 0.5 * (c + a / c), 1.0, a, max_iterations=40) * x[0]


def series(x):
    """Terms of a series until they are small, with a vector in the carry."""

    def goes_on(state, rate):
        return state["term"] > 1e-6

    def add(state, rate):
        count = state["count"] + 1.0
        return {"term": state["term"] * rate / count, "count": count,
                "sum": state["sum"] + state["term"] * np.array([1.0, 2.0])}  # fmt: skip

    first = {"term": 1.0, "count": 0.0, "sum": x[1:3] * 0.0}
    found = vm.while_loop(goes_on, add, first, np.exp(x[0]), max_iterations=60)
    return np.sum(found["sum"] ** 2) + found["count"] * x[2]


@pytest.mark.parametrize("f", [root, series])
def test_while_loops_agree_with_pythons_own(f):
    agree_everywhere(f, [(POINTS[k, :4],) for k in range(4)], tolerance=1e-11)


def test_a_while_loop_that_does_not_end():
    def f(x):
        return vm.while_loop(lambda c: c < x[1].item(), lambda c: c + 1.0, 0.0, max_iterations=5)

    def g(x):
        return vm.while_loop(
            lambda c, x: c < x[1], lambda c, x: c + x[0], 0.0 * x[0], x, max_iterations=5
        )

    message = r"^while_loop: the condition holds after 5 iterations, but must end the loop"
    refuses(vm.DomainError, message, f, np.array([1.0, 9.0]))
    recorded = vm.recorded(g)
    assert recorded(np.array([1.0, 2.5]))[0] == 3.0
    equal(recorded(np.array([1.0, 4.5]))[1], [5.0, 0.0])
    refuses(vm.DomainError, message, recorded, np.array([1.0, 9.0]))
