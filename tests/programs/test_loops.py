"""Loops of functions of arrays."""

import numpy as np
import pytest
from comparing import close
from layouts import returning, run_all
from recordings import EVERY_RUNNER

from varmat.programs.build.builder import Builder
from varmat.programs.build.loops import each_trip, loop
from varmat.programs.build.symbol import Symbol
from varmat.programs.ir.interpret import interpret
from varmat.programs.run import runner_for


def halving():
    """x is halved until it is below 1; the trips are counted."""
    whole = Builder()
    start = Symbol(whole, whole.argument(()))
    found = loop(
        lambda x, n: ([0.5 * x, n + 1.0], 0.5 * x >= 1.0), 50, [start, np.zeros(())], ends=True
    )
    return whole.program([whole.constant(0.0), *(x.value for x in found)])


@pytest.mark.parametrize("runner", EVERY_RUNNER)
def test_a_loop_may_end_early(runner):
    program = halving()
    assert interpret(program, 12.0)[1:] == [0.75, 4.0]
    assert runner_for(program, runner)([np.asarray(12.0)])[1:] == [0.75, 4.0]


def test_a_loop_that_ends_early_is_one_of_jax():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        found = jax.jit(halving().to_jax())(12.0)
    assert [float(x) for x in found[1:]] == [0.75, 4.0]


@pytest.mark.parametrize("backwards", [False, True])
def test_symbols_take_the_trips_that_arrays_take(backwards):
    """x <- a x + r, of which x r is stacked; only the rows are a symbol, and one is a number."""

    def body(x, y, r, a):
        return [a * x + r, y + 1.0], [x * r, 2.0 * y]

    rows, x, a = np.arange(8.0).reshape(4, 2), np.array([1.0, -1.0]), np.array([0.5, 2.0])
    after, stack, count = x, [], 0.0
    for t in range(4)[:: -1 if backwards else 1]:
        stack.append((after * rows[t], 2.0 * count))
        after, count = a * after + rows[t], count + 1.0
    products, doubles = zip(*stack[:: -1 if backwards else 1], strict=True)

    def trips(rows):
        return each_trip(body, 4, [x, 0.0], [rows], [a], backwards=backwards)

    builder = Builder()
    made = trips(Symbol(builder, builder.argument((4, 2))))
    program = returning(builder, *(each.value for each in made))
    assert list(program.counts()) == ["loop"]
    for found in (trips(rows), *run_all(program, rows).values()):
        for each, true in zip(found, (after, count, products, doubles), strict=True):
            close(each, true, 1e-15)
