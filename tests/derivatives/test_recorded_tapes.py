"""Tapes of recordings: what they refuse, and what they leave behind."""

import tracemalloc

import numpy as np
import pytest
from comparing import equal, refuses
from recordings import LARGE, on_numpy, vectors

import varmat as vm
from varmat.programs.ir.memory import Plan


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


@pytest.mark.parametrize("f", [
    value_in_a_nested_scope,
    value_in_a_scope_within,
    own_reverse_pass,
    lambda x: sum(y if y > 0 else y**2 for y in np.tile(x, 2)),  # more than four branches
    lambda x: np.sum(x[x > 0]),
    lambda x: np.sum(x) * float(x.val[0]),
    lambda x: np.sum(x) * vm.value(x)[0],
    lambda x: np.sum(x * np.argsort(x)),
    lambda x: np.sum(x) if x[0] else 0.0,
])  # fmt: skip
def test_looking_at_values_is_refused(f):
    message = "recorded: the function looks at the value of a variable here"
    refuses(vm.TapeError, message, lambda: on_numpy(f)(np.array([1.0, 2.0, 3.0])))
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
        with pytest.raises(vm.TapeError, match=r"recorded: \w+ cannot be recorded") as refusal:
            on_numpy(function)(np.ones(2))
        assert function.__code__ in [entry.frame.code.raw for entry in refusal.traceback]
    refuses(TypeError, "recorded: the argument is a float", on_numpy, 1.0)
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

    message = "recorded: the function looks at the value of a variable"
    refuses(vm.TapeError, message, lambda: on_numpy(guarded)(np.ones(2)))


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
        equal(outside.val, LARGE * 2.0)


def test_nothing_stays_on_the_tape():
    with vm.nested() as tape:
        on_numpy(vm.logsumexp)(np.ones(5))
        refuses(vm.TapeError, None, lambda: on_numpy(lambda x: np.sum(x[x > 0]))(np.ones(2)))
        assert not tape
        assert tape.watch is None
