"""Variables that belong to the passes of a loop, wherever they are declared."""

import numpy as np
import pytest

from programs.test_procedures import EVEN, Writer, declared_before
from varmat.programs.build.procedures import procedure
from varmat.programs.build.scalar_functions import ADD, SAME
from varmat.programs.ir import statements as s
from varmat.programs.passes.privatise import privatised
from varmat.programs.passes.reverse import Source


def test_variables_of_a_pass_are_declared_in_it():
    w = Writer()
    declared_before(w)
    body = Source([w.x], [w.n], [], w.block).body
    assert [type(x) for x in body] == [s.For]
    assert {x.name for x in s.declared(body)} == {"own", "z"}


def _statements(*inner, after=None):
    i = s.Cell("i", is_integer=True)
    loop = s.For(i, 0.0, 3.0, [*inner])
    return [loop, *([after] if after else [])]


def test_variables_that_are_handed_on_are_not():
    z, own, x, j = (
        s.Cell("z", False), s.Storage((4,), "own"), s.Cell(), s.Cell("j", is_integer=True),
    )  # fmt: skip
    assign, read = s.Compute(z, SAME, (1.0,)), s.Compute(x, ADD, (z, 1.0))
    element = s.Load(x, own, (1,))

    def fill(lower, upper):
        return s.For(j, lower, upper, [s.Store(own, (j,), 1.0)])

    many = s.For(s.Cell("k", is_integer=True), 0.0, 2.0, [fill(0.0, 3.0)])
    assert s.declared(privatised(_statements(assign, read), [])) == {z}
    assert s.declared(privatised(_statements(fill(0.0, 3.0), element), [])) == {own}
    both = s.If(x, [assign], [s.Compute(z, SAME, (2.0,))])
    assert s.declared(privatised(_statements(both, read), [])) == {z}
    bound = s.For(s.Cell("k", is_integer=True), 0.0, z, [assign, read])
    for statements in (
        [bound],                                        _statements(read, assign),
        _statements(assign, read, after=read),          _statements(s.If(x, [assign]), read),
        _statements(s.If(z, [assign], [s.Compute(z, SAME, (0.0,))])),
        _statements(s.Compute(z, ADD, (z, 1.0)), read), _statements(many, element),
        _statements(fill(1.0, 3.0), element),           _statements(fill(0.0, 2.0), element),
        _statements(s.Store(own, (0,), 1.0), element),  _statements(s.Fill(own, 1.0), element),
    ):  # fmt: skip
        own.is_temporary = False  # as long as no pass has shown that it is
        assert not s.declared(privatised(statements, []))
    own.is_temporary = False
    assert not s.declared(privatised(_statements(fill(0.0, 3.0), element), [own]))


def _random_block(rng, cells, depth):
    """Statements that assign cells and read them, also as conditions and bounds."""

    def number():
        return cells[rng.integers(len(cells))] if rng.random() < 0.7 else float(rng.integers(3))

    made = []
    for kind in rng.integers(0, 6 if depth else 3, rng.integers(1, 4)):
        inner = [_random_block(rng, cells, depth - 1) for _ in range(2)] if kind > 2 else []
        if kind in (0, 1):
            made.append(s.Compute(cells[rng.integers(len(cells))], EVEN, (number(),)))
        elif kind == 2:
            made.append(s.Increment(number()))
        elif kind == 3:
            made.append(s.If(number(), *inner))
        else:
            made.append(s.For(s.Cell("", is_integer=True), 0.0, number(), inner[0], most=3))
    return made


@pytest.mark.parametrize("seed", range(300))
def test_random_statements_mean_the_same(seed):
    rng = np.random.default_rng(seed)
    cells = [s.Cell(name, False) for name in "abc"]
    start = [s.Compute(x, SAME, (float(k),)) for k, x in enumerate(cells)]
    last = cells[0] if rng.random() < 0.3 else 2.0
    passes = s.For(s.Cell("", is_integer=True), 0.0, last, _random_block(rng, cells, 3), most=3)
    body = [*start, passes]
    total, out = s.Cell("total", False), s.Storage((), "out")

    def value(statements):
        def counted(block):
            return [
                s.Add(total, x.term) if isinstance(x, s.Increment) else s.mapped(x, counted)
                for x in block
            ]

        ended = [*counted(statements), s.Store(out, (), total)]
        return float(procedure([], [out], ended).evaluate()[0])

    assert value(privatised(body, [])) == value(body)
