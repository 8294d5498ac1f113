"""Which loops over statements have independent passes."""

import pytest

from programs.test_procedures import FRACTION
from varmat.programs.ir import statements as s
from varmat.programs.passes.reverse import Source
from varmat.programs.run.independence import independent_loops


def test_dependent_passes():
    """A number is handed on; an element of another pass is read; a sum is read."""
    x, n, index = s.Storage((11,), "x"), s.Storage((11,), "n"), s.Cell("i", is_integer=True)
    out, total, loaded = s.Storage((12,), "out"), s.Cell("total", False), s.Cell()
    bodies = [
        [s.Load(loaded, x, (index,)), s.Compute(total, FRACTION, (loaded, total))],
        [s.Load(loaded, out, (index,)), s.Store(out, (s.Affine(((index, 1),), 1),), loaded)],
        [s.Load(loaded, n, (index,)), s.Store(out, (loaded,), loaded)],
        [s.Load(loaded, x, (index,)), s.Add(total, loaded), s.Store(out, (index,), total)],
    ]
    for body in bodies:
        loop = s.For(index, 0.0, 10.0, body, most=11)
        kernel = Source([x], [n], [out], [loop, s.Store(out, (11.0,), total)]).forward()
        assert not independent_loops(kernel, 8, lambda *_: True)


@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True)])
def test_a_number_that_a_branch_assigns_is_of_the_pass_if_both_sides_do(sides):
    x, out, index = s.Storage((11,), "x"), s.Storage((11,), "out"), s.Cell("i", is_integer=True)
    total, loaded = s.Cell("total", False), s.Cell()
    assigned = s.Compute(total, FRACTION, (loaded, loaded))
    branch = s.If(loaded, *([assigned] if assigns else [] for assigns in sides))
    body = [s.Load(loaded, x, (index,)), branch, s.Store(out, (index,), total)]
    kernel = Source([x], [], [out], [s.For(index, 0.0, 10.0, body, most=11)]).forward()
    assert bool(independent_loops(kernel, 8, lambda *_: True)) == all(sides)
