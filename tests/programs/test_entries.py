"""Entries of the tape in programs: assignments, gathers, parts, and operations, which are traced or
called from Python.
"""

import tracemalloc

import numpy as np
import pytest
from comparing import close, equal
from recordings import EVERY_RUNNER, LARGE, RUNNERS, agree, vectors

import varmat as vm
from varmat.core.operation import Saved
from varmat.programs.ir.memory import Plan
from varmat.programs.kernels.python_calls import PythonCall


def test_assignments_in_place_where_nobody_looks():
    """Each takes at most a gather and a selection, forward and in reverse."""

    def rows(x):
        a = np.zeros((4, 3)) + x[:3]
        for i in range(4):
            a[i] += x[i] * x[1:4]
            a[i, 1] = 2.0 * a[i, 0]
        return np.sum(a * a)

    counts = agree(rows, *vectors(8)).program.counts()
    assert counts["copy"] + counts["where"] + counts["gather"] <= 8 * 4 + 4, counts


def test_assignments_at_an_array_without_axes():
    def f(x):
        y, z = x * 1.5, x[0] * 1.5
        y[np.array(1)] = x[0] * 3.0
        y[np.array(2), [0, 1]] = x[1, :2] * y[1, 1]
        z[np.array(1)] = x[0, 0] * 3.0
        return np.sum(y * y) + np.sum(z**3)

    agree(f, *((np.cos(np.arange(16.0) + k).reshape(4, 4),) for k in range(3)))


def test_assignments_through_a_reshape_of_another_memory_order():
    def adjoints(x):
        y = x * 1.5
        y.reshape(-1)[1] = 5.0
        return np.sum(y * x.T.T * x.T.T)

    def added_to(x):
        y = np.exp(x)
        return np.sum(np.tanh(y.reshape(-1))) + np.sum(y * x.T.T * x.T.T)

    rng = np.random.default_rng(4)
    for f in (adjoints, added_to):
        rows, *columns = rng.normal(size=(3, 2, 3))
        agree(f, (rows,), *((np.asfortranarray(x),) for x in columns))


def test_assignments_into_large_arrays_between_loops():
    def steps(x):
        a = x[:20_000] * 1.0
        first = np.exp(a)
        for i in range(4):
            a[i * 5000 : (i + 1) * 5000] += np.sum(a) * 1e-4 * x[20_000 + i]
            a[i] = a[-1] * 2.0
            if i == 1:
                second = np.sin(a) * first
        return (
            np.sum(first * a) + np.sum(second * a * LARGE[:20_000]) + np.sum(a**2) * np.sum(second)
        )

    agree(steps, (LARGE[:20_010],), (LARGE[5:20_015] + 0.5,), rtol=1e-11)


def test_updates_of_whole_arrays_cost_nothing():
    def rows(x):
        y = x * 1.5
        y += LARGE
        y *= 2.0
        return np.sum(y * y)

    recorded = agree(rows, (LARGE,), (LARGE[::-1] + 1.0,))
    assert not recorded.program.counts().keys() & {"copy", "where", "gather", "assemble"}


def test_large_indices():
    places = np.arange(40_000) % 30_000

    def f(x):
        a = np.zeros(40_000) + x[0]
        a[places] = LARGE * x[1]
        a[places[:100]] = x[2]
        return np.sum(a * LARGE) + np.sum(a[places] ** 2)

    agree(f, (np.array([1.0, 2.0, 3.0]),), (np.array([0.5, 1.0, -1.0]),), rtol=1e-12)


def test_memory_that_an_operation_asks_for():
    """The operation asks for large arrays, which are used again. Small probabilities may underflow,
    and then it asks for other shapes.
    """
    emissions = np.log(np.random.default_rng(1).uniform(0.1, 1.0, (3, 9_000)))

    def f(p):
        return vm.hmm_marginal(
            emissions * (1.0 + p), p + np.eye(3) * (1.0 - 3.0 * p), np.full(3, 1.0 / 3.0)
        )

    recorded = agree(f, (0.1,), (0.0,), (0.2,), (0.0,), (1e-30,), rtol=1e-10)
    tracemalloc.start()
    for _ in range(4):
        recorded(0.1)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < emissions.nbytes


def test_a_large_argument_may_be_assigned_to():
    def f(x):
        first = x[10:20] * 2.0
        x[5:15] = first
        x[0] = 3.0
        return np.sum(x * LARGE) + np.sum(first**2)

    x = LARGE + 0.5
    before = x.copy()
    agree(f, (x,), (LARGE - 0.5,))
    equal(x, before)


def test_assignments_of_everything_that_fits():
    """The assigned arrays have leading axes of length one, are empty, repeat elements, or are the
    array itself.
    """
    rng = np.random.default_rng(9)

    def f(x):
        y = x * 1.5
        y[0] = x[None, 1] * 2.0
        y[:0] = x[:0]
        y[[1, 1, 2]] = x[:3] * 3.0
        y[:, [0, 0]] = y[:, 1:2]
        y[1:] = y[:-1]
        y[...] = y[::-1]
        y[x.shape[0] :] = 7.0
        y[2, 1] = np.sum(x)
        y[np.zeros(4, bool)] = x[0]
        y[np.arange(4) > 2] += 1.0
        return np.sum(y * y * x)

    agree(f, *((rng.normal(size=(4, 3)),) for _ in range(3)))


def test_writing_elements_one_after_the_other_is_linear():
    def elements_made(n):
        def f(x):
            y = np.zeros(n) + x[0]
            for i in range(n):
                y[i] = np.sin(x[i])
            return np.sum(y**2)

        g = vm.recorded(f)
        g(np.ones(n))
        # A result that is written over an operand must occupy a part of its memory.
        scratch = Plan(g.program).scratch
        elements = 0
        for step in g.program.steps:
            made, *read = (scratch.get(id(v)) for v in (*step.results, *step.operands))
            is_written = step.kernel.name in ("write", "assemble") and made is not None
            if not (is_written and made in read):
                elements += step.results[0].size
        return elements

    few, some, many = map(elements_made, (20, 100, 180))
    assert many - some <= 1.5 * (some - few)


# --- operations ---


@pytest.mark.parametrize("f", [
    lambda x: vm.normal_lpdf(x, 0.3, 1.2), vm.dot_self, lambda x: np.mean(x) * np.var(x),
    lambda x: np.sum(np.stack([x, x**2]) ** 2),
    lambda x: np.sum(np.concatenate([x, 2.0 * x]) ** 2),
    lambda x: np.sum(np.diff(x) ** 2) + np.trace(np.outer(x, x)),
    lambda x: np.sum(np.linalg.cholesky(np.outer(x, x) + np.eye(5))),
])  # fmt: skip
def test_operations_of_the_library_are_traced(f):
    """The value functions and rules are traced, so no step calls Python."""
    program = agree(f, *vectors(5), rtol=1e-11).program
    assert not any(isinstance(step.kernel, PythonCall) for step in program.steps), str(program)


def test_operations_of_ones_own_are_called():
    """A user's operation is called once forward and once in reverse, with the values that it
    saved.
    """
    calls = []
    cube = vm.operation()(lambda x: calls.append("value") or Saved(x**3, slope=3.0 * x**2))
    cube.reverse(lambda g, r, x, slope: calls.append("reverse") or g * slope)
    g = agree(lambda x: np.sum(cube(x) * x), *vectors(3))
    called = [x.kernel for x in g.program.steps if isinstance(x.kernel, PythonCall)]
    assert [kernel.is_native for kernel in called] == [False, False]
    calls.clear()
    g(np.ones(3))
    assert calls == ["value", "reverse"]


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_settings_of_operations_are_kept(runner):
    scaled = vm.operation()(lambda x, *, power: x**power)
    scaled.reverse(lambda g, r, x, power: g * power * x ** (power - 1))
    f = vm.recorded(lambda x: np.sum(scaled(x, power=3) + scaled(x, power=2)), runner=runner)
    for factor in (1.0, 2.0):
        value, gradient = f(factor * np.ones(2))
        assert value == 2.0 * (factor**3 + factor**2)
        close(gradient, 3.0 * factor**2 + 2.0 * factor, 1e-15)


# --- rows of the elementwise table ---


def test_a_constant_exponent_of_zero_has_no_derivative_anywhere():
    """Also where the reciprocal is not finite."""
    edge = np.array([5e-324, np.nan, 0.0, np.inf])
    for exponent in (0, 0.0, np.zeros(4)):
        for runner in RUNNERS:
            recorded = vm.recorded(lambda x: np.sum(x**exponent), runner=runner)  # noqa: B023
            recorded(np.ones(4))
            equal(recorded(edge)[1], np.zeros(4))
