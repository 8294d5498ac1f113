"""Periods of recordings: which entries repeat, from where, and how often."""

from functools import partial
from operator import itemgetter

import numpy as np
import pytest

import varmat as vm
from varmat.programs.record.periods import LEAST, Periods, Stretch, setting_key

DATA = np.linspace(0.0, 1.0, 50)


def stretches(f, x=0.3):
    with vm.nested() as tape:
        y = f(vm.var(x))
        return [*Periods([*tape], [y]).stretches(0, len(tape))]


def repeated(step, trips):
    """A loop after two entries. The first trip of a loop without them would read no entry."""

    def f(x):
        start = x = np.cos(np.exp(x))
        for t in range(trips):
            x = step(x, t)
        return x * start

    return f


@pytest.mark.parametrize(("step", "period"), [
    (lambda x, t: np.sin(x), 1),
    (lambda x, t: 0.5 * x + np.sin(x), 3),
    (lambda x, t: np.sin(x) * DATA[t] + t, 3),
    (lambda x, t: np.sin(x) ** 2, 2),
])  # fmt: skip
def test_a_loop_is_a_stretch(step, period):
    (found, *_) = stretches(repeated(step, 20))
    assert found == Stretch(2, period, 20)
    assert found.end == 2 + 20 * period


def test_a_short_loop_is_none():
    assert not stretches(repeated(lambda x, t: np.sin(x), LEAST - 1))
    assert stretches(repeated(lambda x, t: np.sin(x), LEAST))


@pytest.mark.parametrize("step", [
    lambda x, t: np.sum(x * DATA[: 2 if t < 25 else 3]),
    lambda x, t: vm.logsumexp(x * DATA[:4].reshape(2, 2), axis=None if t < 25 else (0, 1)),
], ids=["shape", "setting"])  # fmt: skip
def test_entries_of_other_shapes_and_settings_are_not_alike(step):
    found = sorted(stretches(repeated(step, 50)))
    assert [(each.start, each.trips) for each in found] == [(2, 25), (52, 25)]


def test_operands_correspond():
    """From the 25th trip on, a loop reads the result of another trip than before. The last
    trips are found first.
    """

    def f(x):
        values = [x, np.exp(x), np.cos(x)]
        for t in range(50):
            values.append(np.sin(values[-1 if t < 25 else -2]))
        return values[-1] * values[-2]

    assert stretches(f)[0] == Stretch(27, 1, 25)


def test_parts_correspond():
    def step(x, t):
        return np.sin(x) * np.sum(x[1:] if t < 25 else x[:-1])

    assert stretches(repeated(step, 50), DATA[:3]) == [Stretch(2, 3, 25), Stretch(77, 3, 25)]


def test_a_result_of_the_first_trip_which_all_others_read():
    """The loop begins with the second trip, for which that is a result from before."""
    first = []

    def step(x, t):
        first.append(np.sin(x))
        return first[-1] + 2.0 * first[0]

    (found, *_) = stretches(repeated(step, 30))
    assert found == Stretch(5, 3, 29)


def test_what_is_read_last():
    with vm.nested() as tape:
        x = vm.var(0.3)
        y = np.sin(x)
        z = np.cos(y)
        both = y * z
        np.exp(z)
        assert Periods([*tape], [both]).last_use.tolist() == [2, 3, 4, -1]


def test_keys_of_settings():
    """Equal settings have equal keys; numbers of another type or sign are other settings."""
    same = [
        ((1, [2.0, None]), (1, [2.0, None])),           (np.arange(3), np.arange(3)),
        (slice(1, None, 2), slice(1, None, 2)),         (itemgetter(1, 2), itemgetter(1, 2)),
        ({"a": DATA[:2]}, {"a": DATA[:2].copy()}),
        (partial(np.sum, axis=0), partial(np.sum, axis=0)),
    ]  # fmt: skip
    other = [
        (0.0, -0.0), (1, True), (1, 1.0), ((1,), [1]), (np.arange(3), np.arange(3.0)),
        (np.zeros((1, 2)), np.zeros((2, 1))), (partial(np.sum, axis=0), partial(np.sum, axis=1)),
        ({"a": 1}, {"b": 1}), (itemgetter(1), itemgetter(2)),
    ]  # fmt: skip
    assert all(setting_key(a) == setting_key(b) for a, b in same)
    assert not any(setting_key(a) == setting_key(b) for a, b in other)
    unhashable = np.array([None], object)
    assert setting_key(unhashable) == id(unhashable)
