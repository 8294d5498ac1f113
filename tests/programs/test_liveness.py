"""What is known of the variables of statements, and what reversing them keeps for that reason."""

from __future__ import annotations

from typing import Any

import pytest

from programs.test_procedures import (
    Writer,
    declared_before,
    looks_ahead,
    overwritten,
    ragged,
    series,
    source,
)
from varmat.programs.build.scalar_functions import ADD, SAME
from varmat.programs.ir import statements as s
from varmat.programs.passes.liveness import assigned_once, is_sum
from varmat.programs.passes.privatise import privatised
from varmat.programs.passes.reverse import Source


def kept(write: Any) -> list[str]:
    """The names of what statements keep backwards, which is logs of elements and numbers."""
    body = source(write, False).with_gradient().body
    every = [*s.walk(body)]
    names = [x.array.name for x in every if isinstance(x, s.Store) and x.log]
    return names + [cell.name for x in every if isinstance(x, s.Push) for cell in x.cells]


@pytest.mark.parametrize("write", [series, declared_before])
def test_what_does_not_change_any_more_is_not_kept(write: Any) -> None:
    assert not {"out", "own", "z"} & {*kept(write)}


@pytest.mark.parametrize(("write", "name"), [(looks_ahead, "out"), (overwritten, "own")])
def test_what_a_later_pass_overwrites_is_kept(write: Any, name: str) -> None:
    assert name in kept(write)


def test_sums_are_not_kept() -> None:
    assert "total" not in kept(ragged)
    total, i = s.Cell("total", False), s.Cell("i")
    assert is_sum([s.Add(total, i)], total)
    assert not is_sum([s.Add(total, i), s.Compute(i, SAME, (total,))], total)


@pytest.mark.parametrize(
    ("store", "load", "expected"),
    [(0, -1, True), (0, 0, True), (0, 1, False), (1, 0, True), (1, 1, True), (1, 2, False)],
)
def test_elements_that_do_not_change_any_more(store: int, load: int, expected: bool) -> None:
    array, i, x = s.Storage((9,), "array"), s.Cell("i", is_integer=True), s.Cell()
    at = [(s.Affine(((i, 1),), n),) for n in (store, load)]
    body = [s.Store(array, at[0], 2.0), s.Load(x, array, at[1])]
    start = s.Fill(array, 0.0)
    assert assigned_once([start, s.For(i, 1.0, 5.0, body)]) == (
        set(),
        {array} if expected else set(),
    )
    # Before the loop, elements have what it overwrites; and so they have where a pass begins.
    assert not assigned_once([start, s.Load(x, array, (1,)), s.For(i, 1.0, 5.0, body)])[1]
    assert (array in assigned_once([start, s.For(i, 1.0, 5.0, body[::-1])])[1]) == (load < store)
    # A copy of the whole has elements that later passes assign.
    copy = s.Fill(s.Storage((9,)), array)
    assert not assigned_once([start, s.For(i, 1.0, 5.0, [*body, copy])])[1]
    assert array in assigned_once([s.Declare(array), s.For(i, 1.0, 5.0, body)])[0]


def test_variables_of_a_pass_are_declared_in_it() -> None:
    w = Writer()
    declared_before(w)
    body = Source([w.x], [w.n], [], w.block).body
    assert [type(x) for x in body] == [s.For]
    assert {x.name for x in s.declared(body)} == {"own", "z"}


def _statements(*inner: s.Statement, after: s.Statement | None = None) -> list[s.Statement]:
    i = s.Cell("i", is_integer=True)
    loop = s.For(i, 0.0, 3.0, [*inner])
    return [loop, *([after] if after else [])]


def test_variables_that_are_handed_on_are_not() -> None:
    z, own, x, j = (
        s.Cell("z", False),
        s.Storage((4,), "own"),
        s.Cell(),
        s.Cell("j", is_integer=True),
    )
    assign, read = s.Compute(z, SAME, (1.0,)), s.Compute(x, ADD, (z, 1.0))
    element = s.Load(x, own, (1,))

    def fill(lower: float, upper: float) -> s.Statement:
        return s.For(j, lower, upper, [s.Store(own, (j,), 1.0)])

    many = s.For(s.Cell("k", is_integer=True), 0.0, 2.0, [fill(0.0, 3.0)])
    assert s.declared(privatised(_statements(assign, read), [])) == {z}
    assert s.declared(privatised(_statements(fill(0.0, 3.0), element), [])) == {own}
    both = s.If(x, [assign], [s.Compute(z, SAME, (2.0,))])
    assert s.declared(privatised(_statements(both, read), [])) == {z}
    for statements in (
        _statements(read, assign),
        _statements(assign, read, after=read),
        _statements(s.If(x, [assign]), read),
        _statements(s.Compute(z, ADD, (z, 1.0)), read),
        _statements(many, element),
        _statements(fill(1.0, 3.0), element),
        _statements(fill(0.0, 2.0), element),
        _statements(s.Store(own, (0,), 1.0), element),
    ):
        assert not s.declared(privatised(statements, []))
    assert not s.declared(privatised(_statements(fill(0.0, 3.0), element), [own]))
