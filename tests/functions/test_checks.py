"""Arguments that functions of several families treat alike, such as an array to write the result
into.
"""

import numpy as np
import pytest
from comparing import close, equal
from functions.samples import MATRIX, VECTOR
from recordings import EVERY_RUNNER

import varmat as vm
from varmat.core.domains import positive
from varmat.functions.checks import check_values, is_held


@pytest.mark.parametrize("convert", [vm.var, vm.matvar, lambda x: vm.Dual(x, np.ones(np.shape(x)))])
def test_results_are_written_into_out(convert):
    for f, settings in (
        (np.clip, {"a_min": 0.0, "a_max": 1.0}),   (np.round, {"decimals": 1}),
        (np.median, {"axis": 0}),                  (np.percentile, {"q": 30, "axis": 0}),
        (np.take, {"indices": [2, 0], "axis": 1}), (np.cumsum, {"axis": 0}),
    ):  # fmt: skip
        expected = f(MATRIX, **settings)
        out = convert(np.zeros(np.shape(expected)))
        assert f(convert(MATRIX), **settings, out=out) is out
        equal(vm.value(out), expected)


def test_what_is_written_into_out_is_differentiated():
    def f(x):
        joined, chosen = np.zeros_like(x, shape=10), np.zeros_like(x)
        np.concatenate([x, 2.0 * x], out=joined)
        np.choose([0, 1, 0, 1, 1], [x, x * x], out=chosen)
        return np.sum(joined**2) + np.sum(chosen)

    expected = 10.0 * VECTOR + np.where([1, 0, 1, 0, 0], 1.0, 2.0 * VECTOR)
    close(vm.gradient(f, VECTOR), expected, 1e-14)


SQUARE = np.arange(1.0, 10.0).reshape(3, 3)
SETTINGS = {
    "roll": (lambda x, s: np.roll(x, s, axis=(0, 1)), [1, 0], [0, 1]),
    "roll, array": (lambda x, s: np.roll(x, s, axis=(0, 1)), np.array([1, 0]), [0, 1]),
    "roll, axis": (lambda x, s: np.roll(x, 1, axis=s), [1], [0]),
    "transpose": (lambda x, s: x.transpose(s), [1, 0], [0, 1]),
    "rot90": (lambda x, s: np.rot90(x, 1, axes=s), [0, 1], [1, 0]),
    "moveaxis": (lambda x, s: np.moveaxis(x, s, (1, 0)), [0, 1], [1, 0]),
    "reshape": (lambda x, s: np.reshape(x, s), [9, 1], [1, 9]),
    "resize": (lambda x, s: np.resize(x, s), [2, 3], [3, 2]),
    "pad": (lambda x, s: np.pad(x, s), [1, 0], [0, 1]),
    "pad, edge": (lambda x, s: np.pad(x, s, "edge"), [1, 0], [0, 1]),
    "windows": (lambda x, s: np.lib.stride_tricks.sliding_window_view(x, s, axis=0), [1], [2]),
    "take_along_axis": (lambda x, s: np.take_along_axis(x, s, axis=0), np.array([[0, 1, 2]]),
                        [[2, 1, 0]]),
}  # fmt: skip


@pytest.mark.parametrize(("f", "setting", "later"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_may_be_changed_after_the_call(f, setting, later):
    def change_after(x):
        own = setting.copy()
        y = f(x, own)
        own[:] = later
        return np.sum(y * y * np.arange(1.0, 1 + y.size).reshape(y.shape))

    def leave(x):
        y = f(x, setting)
        return np.sum(y * y * np.arange(1.0, 1 + y.size).reshape(y.shape))

    value, gradient = vm.value_and_grad(leave)(SQUARE)
    for run in (vm.value_and_grad, vm.recorded):
        found = run(change_after)(SQUARE)
        assert found[0] == value
        equal(found[1], gradient)
    equal(vm.hessian(change_after, SQUARE), vm.hessian(leave, SQUARE))


def is_ordered(x):
    return bool(np.sort(x)[0] == x[0])  # NumPy's sort cannot be traced


def is_small(x):
    return bool(np.sum(x) < 10.0)


CHECKS = {
    "domain": lambda x: is_held(positive, x),
    "traced": lambda x: check_values(is_small, x),
    "called": lambda x: check_values(is_ordered, x),
}


@pytest.mark.parametrize("runner", EVERY_RUNNER)
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "in a gradient"])
@pytest.mark.parametrize("name", CHECKS)
def test_a_recording_ends_where_a_check_has_another_outcome(name, inside, runner):
    calls = []

    def square(x):
        calls.append(x)
        return np.sum(x**2) * (1.0 if CHECKS[name](x) else 3.0)

    def f(x):
        return np.sum(vm.grad(square)(x)) if inside else square(x)

    recorded, eager = vm.recorded(f, runner=runner), vm.value_and_grad(f)
    recorded(np.array([1.0, 2.0]))
    for x in (np.array([2.0, 3.0]), np.array([1.0, 4.0])):
        calls.clear()
        close(recorded(x)[0], vm.value(f(x)), 1e-15)
        assert len(calls) == 1, "the recording holds there"
    for x in (np.array([3.0, -2.0]), np.array([30.0, -2.0])):
        expected = eager(x)
        calls.clear()
        value, gradient = recorded(x)
        close(value, expected[0], 1e-15)
        close(gradient, expected[1], 1e-15)
        assert bool(calls) == (name != "traced" or x[0] > 10.0)
