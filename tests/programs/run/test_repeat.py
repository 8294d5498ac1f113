"""Loops of the representation in native code: what is carried is in registers or in memory."""

import numpy as np
import pytest
from comparing import close
from layouts import with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.kernels.loop import Loop
from varmat.programs.run import has_native, runner_for

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")


def returning(kernel, shapes):
    builder = Builder()
    results = builder.apply(kernel, *map(builder.argument, shapes))
    return builder.program([builder.constant(0.0), *results])


def agree(program, *given):
    run = runner_for(program, "native")
    assert not run.calls_python
    expected = interpret(program, *given)
    for _ in range(2):  # memory is used again
        for x, true in zip(run(list(given)), expected, strict=True):
            close(x, true, 1e-14)
    return expected


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("trips", [1, 2, 7])
@pytest.mark.parametrize("shape", [(), (3,), (2, 30), (100,)])
def test_values_change_their_places(shape, trips, backwards):
    """(x, y) <- (y, a x + r): in memory, each trip reads what the one before wrote."""
    body = Builder()
    x, y, r, a = (body.argument(at) for at in (shape, shape, shape, ()))
    after = body.ufunc(np.add, body.ufunc(np.multiply, a, x), r)
    outputs = [y, after, body.ufunc(np.tanh, x), body.ufunc(np.multiply, x, r)]
    kernel = Loop(body.program(outputs), trips, 2, 1, 1, backwards=backwards)
    rng = np.random.default_rng(trips)
    given = [rng.normal(size=at) for at in (shape, shape, (trips, *shape), ())]
    agree(returning(kernel, [shape, shape, (trips, *shape), ()]), *given)


def test_rows_of_a_transposed_array():
    body, x, r = with_arguments((), (3,))
    kernel = Loop(body.program([body.ufunc(np.add, x, body.sum(r))]), 5, 1, 1)
    builder, start, rows = with_arguments((), (3, 5))
    made = builder.apply(kernel, start, builder.transposed(rows))
    program = builder.program([builder.constant(0.0), *made])
    rows = np.arange(15.0).reshape(3, 5)
    assert agree(program, np.array(1.0), rows)[1] == 106.0


@pytest.mark.parametrize("size", [2, 100])
def test_a_loop_in_a_loop(size):
    """The inner loop uses the same scratch memory in every trip of the outer one."""
    inner, x, r = with_arguments((size,), (size,))
    after = inner.ufunc(np.add, inner.accumulate(np.add, x, 0), r)
    within = Loop(inner.program([inner.ufunc(np.tanh, after), x]), 3, 1, stacked=1)
    outer, y, s = with_arguments((size,), (size,))
    last, stack = outer.apply(within, y, s)
    kernel = Loop(outer.program([last, outer.reduce(np.add, stack, (0,))]), 4, 1, 1, 1)
    rng = np.random.default_rng(size)
    agree(
        returning(kernel, [(size,), (4, size)]), rng.normal(size=size), rng.normal(size=(4, size))
    )


def test_what_all_trips_read_keeps_its_memory():
    """Each trip reads a running sum from before the loop, and needs memory of its own later."""
    body, x, z = with_arguments((100,), (100,))
    read = body.accumulate(np.add, body.ufunc(np.tanh, body.ufunc(np.add, x, z)), 0)
    kernel = Loop(body.program([body.accumulate(np.add, body.ufunc(np.cos, read), 0)]), 4, 1)
    builder, given = with_arguments((100,))
    shared = builder.accumulate(np.add, given, 0)
    builder.apply(kernel, given, shared)
    program = builder.program([builder.constant(0.0), *builder.apply(kernel, given, shared)])
    agree(program, np.linspace(-1.0, 1.0, 100))


@pytest.mark.parametrize("size", [1, 100])
def test_a_loop_ends_where_its_body_says(size):
    body, x, n = with_arguments((size,), ())
    half = body.ufunc(np.multiply, body.constant(0.5), x)
    largest = body.reduce(np.maximum, half, (0,))
    goes_on = body.compare(np.greater_equal, largest, body.constant(1.0))
    kernel = Loop(body.program([half, body.ufunc(np.add, n, body.constant(1.0)), goes_on]), 50, 2,
                  ends=True)  # fmt: skip
    start = np.full(size, 12.0)
    _, last, count = agree(returning(kernel, [(size,), ()]), start, np.array(0.0))
    assert (last.max(), count) == (0.75, 4.0)
