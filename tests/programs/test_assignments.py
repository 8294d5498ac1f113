"""Recorded assignments: every way to copy an array, every view, and every order of writing."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from comparing import refuses
from random_functions import COPIES
from recordings import RUNNERS, agree, agree_everywhere

import varmat as vm

N = 3
X = np.array([[0.5, 2.0, -0.3], [1.1, 0.7, -1.4], [0.2, -0.9, 1.6]])
POINTS = [[X], [np.cos(3.0 * X) + 0.1]]
WEIGHTS = np.linspace(1.0, 2.0, N * N).reshape(N, N) ** 2
MASK = np.array([[True, False, True], [False, True, True], [True, True, False]])


VIEWS = {
    "whole": lambda x: x,                           "T": lambda x: x.T,
    "upside down": lambda x: x[::-1],               "rotated": lambda x: x[::-1, ::-1],
    "right to left": lambda x: x[:, ::-1],          "turned": lambda x: x.T[::-1],
    "reshaped": lambda x: x.reshape(-1)[::-1].reshape(x.shape),
    "copied": lambda x: x.T.reshape(-1).reshape(x.shape),
}  # fmt: skip


def by_out(v, c, x):
    np.multiply(v, x, out=v)


def by_itself(v, c, x):
    c[...] = v * 1.5


def by_swap(v, c, x):
    v[0], v[1] = v[1] * 2.0, v[0].copy()


def by_moving(v, c, x):
    v[1:] = v[:-1]


def by_addition(v, c, x):
    v += x


def by_factor(v, c, x):
    v *= x[0]


def by_add_at(v, c, x):
    np.add.at(v, ([0, 1, 0], [2, 2, 2]), x[0])


def by_elements(v, c, x):
    """Numbers written to elements, which are replaced before they are read."""
    row = v[0]
    row[0] = x[0, 1]
    row[1] = row[0] * x[1, 2]
    row[np.array([0, 2])] = x[1, :2]
    c[0, 0] = row[0] + row[2]


def by_diagonal(v, c, x):
    v.reshape(-1)[:: N + 1] = x[1]


def setter(index, source):
    def write(v, c, x):
        v[index] = source(c, x)

    return write


WRITES = {
    "=": setter(Ellipsis, lambda c, x: x),
    "[:] = T": setter(slice(None), lambda c, x: x.T),
    "= row": setter(Ellipsis, lambda c, x: x[1]),
    "= whole": setter(Ellipsis, lambda c, x: c),
    "[::-1] = whole": setter(slice(None, None, -1), lambda c, x: c),
    "part": setter((slice(1, None), slice(None, 2)), lambda c, x: x[:2, 1:]),
    "list": setter([2, 0, 2], lambda c, x: x),
    "mask": setter(MASK, lambda c, x: x[0, 0]),
    "number": setter((slice(None), 1), lambda c, x: 0.3),
    "one": setter((0, Ellipsis), lambda c, x: x[2:]),
    "fill": lambda v, c, x: v.fill(x[0, 1]),
    "flat": lambda v, c, x: v.flat.__setitem__(slice(None, None, 2), x[0, 1]),
    "out": by_out, "itself": by_itself, "swap": by_swap, "moving": by_moving, "+=": by_addition,
    "*=": by_factor, "add.at": by_add_at, "elements": by_elements, "diagonal": by_diagonal,
}  # fmt: skip


def weighed(c, power=2):
    return np.sum(c**power * WEIGHTS)


def once(c, v, write, x):
    write(v, c, x)
    return weighed(c)


def after_a_look(c, v, write, x):
    """What was read before is of the old values, also where it is computed from afterwards."""
    before, part = weighed(c, 3), v[1] * 1.0
    write(v, c, x)
    return before + weighed(v) + np.sum(part * c[0])


def twice(c, v, write, x):
    write(v, c, x)
    write(v[::-1], c, x)
    return weighed(c)


def through_two_views(c, v, write, x):
    other = c.T
    write(v, c, x)
    between = weighed(other)
    write(other, c, v[::-1])
    return between + weighed(v, 3)


ORDERS = (once, after_a_look, twice, through_two_views)
CASES = list(product(WRITES, ORDERS))


def function_of(copy, source, cases):
    """Return the sum of cases, each with a factor of its own."""

    def f(x):
        total = 0.0
        for k, (target, write, order) in enumerate(cases):
            c = COPIES[copy](VIEWS[source](x))
            total = total + (1.0 + 0.01 * k) * order(c, VIEWS[target](c), WRITES[write], x)
        return total

    return f


@pytest.mark.parametrize("copy", COPIES)
def test_copies_views_and_orders(copy):
    """Every way to copy, of every other view, overwritten through every other view; views, ways and
    orders of writing take turns.
    """
    ways, k = list(product(WRITES, ORDERS)), list(COPIES).index(copy)
    for i, source in list(enumerate(VIEWS))[k % 2 :: 2]:
        views = list(VIEWS)[(i + k // 2) % 2 :: 2]
        cases = [
            (view, *ways[(5 * k + 11 * i + 17 * j) % len(ways)]) for j, view in enumerate(views)
        ]
        # Second derivatives take longest.
        agree_everywhere(function_of(copy, source, cases), POINTS, second=(i + k) % 4 == 0)


def test_a_copy_that_is_elided_is_overwritten_the_other_way_round():
    weights = np.array([1.0, 3.0])

    def f(x):
        c = x[::-1].copy()
        c[::-1] = x
        return -0.5 * np.sum(c * c * weights)

    agree(f, (np.array([0.5, 2.0]),), (np.array([-1.5, 0.3]),))


def overwritten_with_others(index):
    """The number that was written to an element alone is not remembered any longer."""

    def f(x):
        c = x.copy()
        c[0] = x[1]
        c[np.array(index)] = 2.0 * x[:2]
        return c[0] ** 2 + 3.0 * c[1] * c[2]

    return f


def overwritten_with_an_array_of_one(x):
    """The element is a number."""
    c = x.copy()
    c[0, ...] = x[1:2]
    return np.stack([c[0], c[1]]) @ np.array([2.0, 3.0]) * c[0]


def added_at_indices(x):
    """The indices of `at` are not read as one array."""
    c = np.stack([x[:2], x[:2]])
    np.add.at(c, ([[0], [1]], [1]), x[:2, None])
    return np.sum(c**2)


def read_several_times(x):
    """An element gets all contributions. The places read are those of a view in which elements
    repeat; it is as large as the array.
    """
    c = x[:2] * 1.0
    c[1:] = c[:-1]
    return np.sum(c) + np.sum(x[[0, 0]]) + np.sum(x[[[0], [0]]])


def nothing_written_to_nothing(x):
    c = x[:0] * 1.0
    c[...] = x[0]
    c[1:] = c[:-1]
    return np.sum(c) + np.sum(x)


@pytest.mark.parametrize("f", [
    overwritten_with_others([1, 0]), overwritten_with_others([True, False, True]),
    overwritten_with_an_array_of_one, added_at_indices, read_several_times,
    nothing_written_to_nothing,
])  # fmt: skip
def test_single_assignments(f):
    agree(f, (np.array([0.5, 2.0, -1.0]),), (np.array([-1.5, 0.3, 0.7]),))


def test_what_is_added_at_places_may_have_more_axes_of_length_one():
    def f(x):
        c = x.copy()
        np.add.at(c, (slice(None), -1), x[:, :1] * x[:, 1:])
        return np.sum(c**2)

    agree(f, (np.array([[0.5, 2.0]]),), (np.array([[-1.5, 0.3]]),))
    assert vm.value(f(np.array([[0.5, 2.0]]))) == 0.25 + 9.0
    wrong = vm.value_and_grad(lambda x: np.add.at(x * 1.0, [0, 1], x[None]))
    refuses(ValueError, "could not be broadcast", wrong, np.ones(4))


def renewal(x, days, series):
    """Each day of a series is a weighted sum of all earlier ones."""
    made, weights = np.zeros((days, series)) + 0.0 * x[0], 0.9 ** np.arange(days)
    for j in range(series):
        made[0, j] = x[j % len(x)]
        for t in range(1, days):
            made[t, j] = np.tanh(0.3 * (made[:t, j] @ weights[days - t :]) + 0.1 * j)
    return np.sum(made * made)


def test_series_that_read_their_whole_past_stay_independent():
    """However many there are, each day is the same few steps."""
    x = np.array([0.4, -0.7, 1.1])
    counts = []
    for series in (8, 16):
        f = partial(renewal, days=20, series=series)
        recorded = agree(f, (x,), (x[::-1].copy(),), rtol=1e-12, runners=RUNNERS[:1])
        counts.append(len(recorded.program))
    assert counts[1] <= counts[0] + 10, counts
