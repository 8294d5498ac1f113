"""What is known of the variables of statements, and what reversing them keeps for that reason."""

import pytest

from programs.test_procedures import (
    declared_before,
    looks_ahead,
    overwritten,
    ragged,
    series,
    source,
)
from varmat.programs.build.scalar_functions import SAME
from varmat.programs.ir import statements as s
from varmat.programs.passes.liveness import assigned_once, is_sum


def kept(write):
    """The names of what statements keep backwards, which is logs of elements and numbers."""
    body = source(write, False).with_gradient().body
    every = [*s.walk(body)]
    names = [x.array.name for x in every if isinstance(x, s.Store) and x.log]
    return names + [cell.name for x in every if isinstance(x, s.Push) for cell in x.cells]


@pytest.mark.parametrize("write", [series, declared_before])
def test_what_does_not_change_any_more_is_not_kept(write):
    assert not {"out", "own", "z"} & {*kept(write)}


@pytest.mark.parametrize(("write", "name"), [(looks_ahead, "out"), (overwritten, "own")])
def test_what_a_later_pass_overwrites_is_kept(write, name):
    assert name in kept(write)


def test_sums_are_not_kept():
    assert "total" not in kept(ragged)
    total, i = s.Cell("total", False), s.Cell("i")
    assert is_sum([s.Add(total, i)], total)
    read, assigned = s.Compute(i, SAME, (total,)), s.Compute(total, SAME, (0.0,))
    for others in ([read], [assigned], [read, assigned]):
        assert not is_sum([s.Add(total, i), *others], total)


@pytest.mark.parametrize(
    ("store", "load", "expected"),
    [(0, -1, True), (0, 0, True), (0, 1, False), (1, 0, True), (1, 1, True), (1, 2, False)],
)
def test_elements_that_do_not_change_any_more(store, load, expected):
    array, i, x = s.Storage((9,), "array"), s.Cell("i", is_integer=True), s.Cell()
    at = [(s.Affine(((i, 1),), n),) for n in (store, load)]
    body = [s.Store(array, at[0], 2.0), s.Load(x, array, at[1])]
    start = s.Fill(array, 0.0)
    found = assigned_once([start, s.For(i, 1.0, 5.0, body)])
    assert found == (set(), {array} if expected else set())
    # Before the loop, elements have what it overwrites; and so they have where a pass begins.
    assert not assigned_once([start, s.Load(x, array, (1,)), s.For(i, 1.0, 5.0, body)])[1]
    assert (array in assigned_once([start, s.For(i, 1.0, 5.0, body[::-1])])[1]) == (load < store)
    # A copy of the whole has elements that later passes assign.
    copy = s.Fill(s.Storage((9,)), array)
    assert not assigned_once([start, s.For(i, 1.0, 5.0, [*body, copy])])[1]
    assert array in assigned_once([s.Declare(array), s.For(i, 1.0, 5.0, body)])[0]
