"""Recorded functions: which recordings they keep, and what they refuse to record."""

from __future__ import annotations

import operator
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from recordings import LARGE, agree_in_threads, on_numpy, vectors

import varmat as vm
from varmat.programs.ir.memory import Plan


def test_the_function_runs_once():
    calls = []

    def f(x):
        calls.append(x)
        return np.sum(x)

    g = on_numpy(f)
    for _ in range(5):
        g(np.ones(3))
    assert len(calls) == 1
    g(np.ones(4))
    assert len(calls) == 2
    g(np.ones(3))
    assert len(calls) == 2


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
    assert [lasting(2.0, np.timedelta64(*time))[0] for time in ((1, "D"), (24, "h"), (1, "D"))] == [
        2.0,
        48.0,
        2.0,
    ]


def test_the_last_recordings_are_kept():
    evaluations = []

    def f(x, *others):
        evaluations.append(others)
        return np.sum(x)

    g = on_numpy(f)
    for _ in range(2):
        for n in range(14):
            g(np.ones(n))
        g(np.ones(1), float("2.5"), float("0"))  # new objects, and equal
        g(np.ones(1), (int("1000"), str(1.5)))
    assert len(evaluations) == 16
    g(np.ones(14))
    g(np.ones(1))
    assert len(evaluations) == 17
    g(np.ones(0))
    assert len(evaluations) == 18


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


def value_in_a_nested_scope(x):
    with vm.nested():
        weight = np.sum(x**2).val
    return np.sum(x) * weight


def value_in_a_scope_within(x):
    with vm.nested():
        y = x * 2.0
        with vm.nested():
            weight = np.sum(y).val
    return np.sum(x) * weight


def own_reverse_pass(x):
    np.sum(x**3).grad()
    return x[0] * x.adj[1]


@pytest.mark.parametrize(
    "f",
    [
        value_in_a_nested_scope,
        value_in_a_scope_within,
        own_reverse_pass,
        lambda x: sum(y if y > 0 else y**2 for y in np.tile(x, 2)),  # more than four branches
        lambda x: np.sum(x[x > 0]),
        lambda x: np.sum(x) * float(x.val[0]),
        lambda x: np.sum(x) * vm.value(x)[0],
        lambda x: np.sum(x * np.argsort(x)),
        lambda x: np.sum(x) if x[0] else 0.0,
    ],
)
def test_looking_at_values_is_refused(f):
    with pytest.raises(
        vm.TapeError, match="recorded: the function looks at the value of a variable here"
    ):
        on_numpy(f)(np.array([1.0, 2.0, 3.0]))
    assert vm.value_and_grad(f)(np.array([1.0, 2.0, 3.0]))


def test_nested_scopes_without_the_arguments_are_not_refused(agree):
    data = np.array([3.0, 1.0, 2.0])

    def f(x):
        with vm.nested():
            weight = np.sort(vm.var(data)).val
        slope = vm.gradient(lambda z: z**2 if z > 0 else z, data[0])
        return np.sum(x * weight) * slope

    agree(f, *vectors(3))


def test_what_cannot_be_written_is_refused():
    def f(x):
        y = vm.make_callback_var(1.0, lambda y: None)
        return y + np.sum(x)

    def callback(x):
        vm.reverse_pass_callback(lambda: None)
        return np.sum(x)

    # The traceback leads to the line in the user's function.
    for function in (f, callback, lambda x: np.sum(vm.to_matvar(x))):
        with pytest.raises(
            vm.TapeError, match=r"recorded: \w+ cannot be written as a program"
        ) as refusal:
            on_numpy(function)(np.ones(2))
        assert function.__code__ in [entry.frame.code.raw for entry in refusal.traceback]
    with pytest.raises(TypeError, match="recorded: the argument is a float"):
        on_numpy(1.0)
    with pytest.raises(TypeError, match=r"^recorded: argument 2 has dtype complex128"):
        on_numpy(np.multiply, 1)(1.0, 1j)


def test_a_refusal_that_is_caught_is_not_frozen(recorded):
    def guarded(x):
        try:
            return vm.normal_lpdf(x[1:], 0.0, x[0])
        except vm.DomainError:
            return -np.inf

    bad, good = np.array([-1.0, 2.0]), np.array([1.0, 2.0])
    g, eager = recorded(guarded), vm.value_and_grad(guarded)
    for x in (bad, good, bad, good):
        assert repr(g(x)) == repr(eager(x))
    assert len(g._recordings) == 1


def test_a_look_whose_refusal_is_caught_is_not_frozen():
    def guarded(x):
        try:
            return np.sum(x[x > 0.0])
        except Exception:
            return -np.inf

    with pytest.raises(
        vm.TapeError, match="recorded: the function looks at the value of a variable"
    ):
        on_numpy(guarded)(np.ones(2))


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
        with pytest.raises(
            ValueError,
            match=r"^recorded: runner is .*, but must be one of 'auto', 'numpy', 'native'!",
        ):
            vm.recorded(operator.neg, runner=runner)


def test_the_memory_of_a_recording_is_given_back(recorded):
    def f(x):
        for _ in range(20):
            x = np.sin(x) + 1.0
        return np.sum(x)

    with vm.nested() as tape:
        outside = vm.var(LARGE) * 2.0
        taken = tape.arena.bytes_taken
        tracemalloc.start()
        g = recorded(f)
        g(LARGE)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert held < Plan(g.program).scratch_bytes + 4 * LARGE.nbytes
        assert tape.arena.bytes_taken == taken
        assert (outside + 1.0)._val.base is outside._val.base
        np.sum(outside + vm.var(LARGE)).grad()
        np.testing.assert_array_equal(outside.val, LARGE * 2.0)


def test_nothing_stays_on_the_tape():
    with vm.nested() as tape:
        on_numpy(vm.logsumexp)(np.ones(5))
        with pytest.raises(vm.TapeError):
            on_numpy(lambda x: np.sum(x[x > 0]))(np.ones(2))
        assert not tape
        assert tape.watch is None
