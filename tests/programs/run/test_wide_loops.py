"""Loops over statements whose passes run in the lanes of vectors."""

import operator
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from programs.test_procedures import BELOW, SOURCES, Writer, program, run
from varmat.programs.build.scalar_functions import MULTIPLY
from varmat.programs.ir import statements as s
from varmat.programs.passes.reverse import Source
from varmat.programs.run import has_native, runner_for
from varmat.programs.run.independence import independent_loops

pytestmark = pytest.mark.skipif(not has_native(), reason="vectors are native")


def in_passes(write, trips, is_shared):
    """Statements that every pass of a loop runs on rows of arrays, or on copies of them."""
    w = Writer()
    whole = {row: s.Storage((trips, *row.shape), row.name) for row in (w.x, w.n, w.out)}
    x, n, out = whole.values()
    start, i = s.Storage(out.shape, "start"), s.Cell("row", is_integer=True)

    def on_rows(statements):
        return [
            replace(each, array=whole[each.array], indices=(i, *each.indices))
            if isinstance(each, (s.Load, s.Store)) and each.array in whole
            else s.mapped(each, on_rows)
            for each in statements
        ]

    if is_shared:
        write(w)
        body = on_rows(w.block)
    else:
        for row, array in ((w.x, x), (w.n, n), (w.out, out)):
            w.write(s.Declare(row))
            with w.loop(0, row.shape[0] - 1) as j:
                w.write(s.Store(row, (j,), w.load(array, i, j)))
        write(w)
        with w.loop(0, 3) as j:
            w.write(s.Store(out, (i, j), w.load(w.out, j)))
        body = w.block
    passes = s.For(i, 0.0, trips - 1.0, body, most=trips)
    return Source([x, start], [n], [out], [s.Fill(out, start), passes])


@pytest.mark.parametrize(("trips", "is_shared"), [(3, False), (8, True), (19, False), (19, True)])
@pytest.mark.parametrize("write", SOURCES, ids=operator.attrgetter("__name__"))
def test_independent_passes_are_vectors(write, trips, is_shared):
    rng = np.random.default_rng(trips)
    whole = in_passes(write, trips, is_shared)
    leaves = rng.uniform([-1.0, -1.0, -1.0, 0.4], 1.2, (2, trips, 4))
    given = [*leaves, rng.integers(0, 4, (trips, 5))]
    directions, seeds = rng.normal(size=(2, trips, 4)), [1.3, rng.normal(size=(trips, 4))]
    kernels = [
        (whole.forward(), given),
        (whole.backward(), [*given, *seeds]),
        (whole.along(0).backward(), [*leaves, directions[0], given[-1], *seeds]),
    ]
    for kernel, operands in kernels:
        loops = independent_loops(kernel, 3, lambda *_: True)
        assert [*loops] == [each for each in kernel.body if isinstance(each, s.For)]
        expected = run(kernel, "interpreter", *operands)
        for a, b in zip(run(kernel, "native", *operands), expected, strict=True):
            assert_allclose(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("ends", [0, 5, 8, 10])
def test_vectors_end_where_a_pass_does(ends):
    """Also in the last vector, which has passes of the one before."""
    x, n, i, at = (
        s.Storage((11,), "x"), s.Storage((11,), "n"), s.Cell("i", is_integer=True), s.Cell(),
    )  # fmt: skip
    loaded, fails = s.Cell(), s.Cell()
    body = [
        s.Load(at, n, (i,)),    s.Load(loaded, x, (at,)),
        s.Compute(fails, BELOW, (loaded, 0.0)),         s.If(fails, [s.End()]), s.Increment(loaded),
    ]  # fmt: skip
    kernel = Source([x], [n], [], [s.For(i, 0.0, 10.0, body, most=11)]).with_gradient()
    assert independent_loops(kernel, 8, lambda *_: True)
    value, order = np.arange(1.0, 12.0), np.arange(11.0)[::-1]
    assert run(kernel, "native", value, order)[0] == 66.0
    value[ends] = -1.0
    assert np.isnan(runner_for(program(kernel), "native")([value, order])[0])


def test_places_that_a_pass_overwrites():
    """The last vector has passes of the one before, whose places are then far beyond the array."""
    x, start, out = (s.Storage((11,), name) for name in ("x", "start", "out"))
    i = s.Cell("i", is_integer=True)
    at, loaded, far = s.Cell(), s.Cell(), s.Cell()
    body = [
        s.Load(at, out, (i,)),      s.Load(loaded, x, (at,)),       s.Increment(loaded),
        s.Compute(far, MULTIPLY, (loaded, 1e15)),                   s.Store(out, (i,), far),
    ]  # fmt: skip
    passes = s.For(i, 0.0, 10.0, body, most=11)
    kernel = Source([x], [start], [out], [s.Fill(out, start), passes]).forward()
    assert independent_loops(kernel, 8, lambda *_: True)
    order = np.arange(11.0)[::-1]
    total, found = run(kernel, "native", np.arange(1.0, 12.0), order)
    assert total == 66.0
    assert_allclose(found, (order + 1.0) * 1e15)
