"""The body of a loop while it is written: arguments that nothing reads are left out."""

import numpy as np
import pytest
from comparing import equal

from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.record.loop_bodies import Rows, TripBody


@pytest.mark.parametrize("backwards", [False, True])
def test_a_body_as_a_loop(backwards):
    """x <- x + r a, of which x is stacked; the trips in which a is small are counted."""
    outer = Builder()
    start, rows, other, scale = (outer.argument(at) for at in ((2,), (3, 2), (3,), ()))
    body = TripBody(3)
    builder = body.written.builder
    body.carried = [builder.argument((2,))]
    body.rows = [(builder.argument(()), Rows(other)), (builder.argument((2,)), Rows(rows))]
    body.shared = [(builder.argument(()), scale), (builder.argument((2,)), start)]
    x, r, a = body.carried[0], body.rows[1][0], body.shared[0][0]
    builder.ufunc(np.exp, body.rows[0][0])  # nothing reads it
    after = builder.ufunc(np.add, x, builder.ufunc(np.multiply, r, a))
    small = builder.compare(np.less, a, builder.constant(3.0))
    kernel, operands = body.loop([after, x, small], 1, backwards=backwards)
    assert (kernel.carried, kernel.sliced, kernel.stacked) == (1, 1, 1)
    assert operands == [rows, scale]
    assert {"multiply", "add", "less"} < kernel.body.counts().keys()
    program = outer.program([outer.constant(0.0), *outer.apply(kernel, start, *operands)])
    given = np.arange(6.0).reshape(3, 2)
    found = interpret(program, np.zeros(2), given, np.zeros(3), 2.0)[1:]
    order = given[::-1] if backwards else given
    before = np.concatenate([np.zeros((1, 2)), 2.0 * np.cumsum(order, axis=0)])
    stack = before[:-1][::-1] if backwards else before[:-1]
    for made, true in zip(found, (before[-1], stack, 3.0), strict=True):
        equal(made, true)
