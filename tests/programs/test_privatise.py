"""Variables that belong to the passes of a loop, wherever they are declared."""

from __future__ import annotations

from programs.test_procedures import Writer, declared_before
from varmat.programs.build.scalar_functions import ADD, SAME
from varmat.programs.ir import statements as s
from varmat.programs.passes.privatise import privatised
from varmat.programs.passes.reverse import Source


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
    bound = s.For(s.Cell("k", is_integer=True), 0.0, z, [assign, read])
    for statements in (
        [bound],
        _statements(read, assign),
        _statements(assign, read, after=read),
        _statements(s.If(x, [assign]), read),
        _statements(s.If(z, [assign], [s.Compute(z, SAME, (0.0,))])),
        _statements(s.Compute(z, ADD, (z, 1.0)), read),
        _statements(many, element),
        _statements(fill(1.0, 3.0), element),
        _statements(fill(0.0, 2.0), element),
        _statements(s.Store(own, (0,), 1.0), element),
    ):
        assert not s.declared(privatised(statements, []))
    assert not s.declared(privatised(_statements(fill(0.0, 3.0), element), [own]))
