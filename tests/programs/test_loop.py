"""Loops: programs that run again and again, on every runner."""

import numpy as np
import pytest
from comparing import close, refuses
from layouts import with_arguments
from recordings import EVERY_RUNNER

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.kernels.loop import Loop
from varmat.programs.run import runner_for


def recurrence(trips, backwards=False):
    """x <- a x + r, of which all x are stacked and all x r are summed; x and r have two elements,
    and the run ends if one of x is not below 100.
    """
    body, x, r, a = with_arguments((2,), (2,), ())
    after = body.ufunc(np.add, body.ufunc(np.multiply, a, x), r)
    body.guard(body.compare(np.less, after, body.constant(100.0)))
    outputs = [after, after, body.ufunc(np.multiply, x, r)]
    kernel = Loop(body.program(outputs), trips, 1, 1, 1, backwards=backwards)
    whole = Builder()
    zero = whole.constant(0.0)
    given = [whole.argument(shape) for shape in ((2,), (trips, 2), ())]
    return whole.program([zero, *whole.apply(kernel, *given)])


def by_hand(x, rows, a, backwards):
    total, stack = np.zeros(2), np.zeros_like(rows)
    for t in range(len(rows))[:: -1 if backwards else 1]:
        total += x * rows[t]
        x = stack[t] = a * x + rows[t]
    return [x, stack, total]


@pytest.mark.parametrize("runner", ["interpreter", *EVERY_RUNNER])
@pytest.mark.parametrize("backwards", [False, True])
def test_values_are_carried_stacked_and_summed(runner, backwards):
    program = recurrence(5, backwards)
    verify(program)
    rng = np.random.default_rng(0)
    given = [rng.normal(size=2), rng.normal(size=(5, 2)), 0.7]
    if runner == "interpreter":
        found = interpret(program, *given)
    else:
        found = runner_for(program, runner)([np.asarray(x) for x in given])
    for x, y in zip(found[1:], by_hand(*given, backwards), strict=True):
        close(x, y, 1e-14)


def test_a_guard_of_the_body_ends_the_run():
    program = recurrence(3)
    refuses(ElsewhereError, None, interpret, program, np.array([200.0, 0.0]), np.zeros((3, 2)), 1.0)


def test_loops_are_loops_of_jax():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        given = [rng.normal(size=2), rng.normal(size=(5, 2)), 0.7]
        for backwards in (False, True):
            found = jax.jit(recurrence(5, backwards).to_jax())(*given)
            for x, y in zip(found[1:], by_hand(*given, backwards), strict=True):
                close(x, y, 1e-14)
        ended = jax.jit(recurrence(3).to_jax())(np.array([200.0, 0.0]), np.zeros((3, 2)), 1.0)
        assert np.isnan(ended[1]).all()
