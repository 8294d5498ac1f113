"""Branches: one of several programs, on every runner, inside loops and around them."""

import numpy as np
import pytest
from comparing import close, equal, refuses
from layouts import with_arguments

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.build.loops import branch as branch_of
from varmat.programs.build.loops import loop
from varmat.programs.build.symbol import Symbol
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError
from varmat.programs.kernels.branch import Branch
from varmat.programs.kernels.loop import Loop
from varmat.programs.run import runner_for

SIZES = (1, 7, 64, 65, 1001)


def body(function, n):
    """A program of a vector and a number, for a function of a builder and both."""
    builder = Builder()
    return builder.program(function(builder, builder.argument((n,)), builder.argument(())))


def scaled(b, x, a):
    y = b.ufunc(np.multiply, x, a)
    return [y, b.sum(y)]


def bent(b, x, a):
    b.guard(b.compare(np.less, a, b.constant(100.0)))
    return [b.ufunc(np.tanh, x), a]


def constant(b, x, a):
    return [b.broadcast(b.constant(2.5), x.shape), b.constant(-1.0)]


def branch(n):
    kernel = Branch([body(f, n) for f in (scaled, bent, constant)])
    b, index, x, a = with_arguments((), (n,), ())
    return b.program([b.constant(0.0), *b.apply(kernel, index, x, a)])


def run(program, runner, *given):
    if runner == "interpreter":
        return interpret(program, *given)
    return runner_for(program, runner)([np.asarray(x, float) for x in given])  # type: ignore[no-any-return]


@pytest.mark.parametrize("runner", ["interpreter", "numpy", "native"])
@pytest.mark.parametrize("n", SIZES)
def test_one_of_the_programs_runs(runner, n):
    program, x = branch(n), np.linspace(-1.0, 1.0, n)
    verify(program)
    expected = [[0.5 * x, 0.5 * x.sum()], [np.tanh(x), 0.5], [np.full(n, 2.5), -1.0]]
    # Below and above it is the first and the last; so is nan.
    for index, number in ((0, 0), (1, 1), (2, 2), (-3, 0), (7, 2), (0.9, 0), (np.nan, 2)):
        for found, true in zip(
            run(program, runner, index, x, 0.5)[1:], expected[number], strict=True
        ):
            close(found, true, 1e-14, 1e-13)


@pytest.mark.parametrize("runner", ["interpreter", "numpy"])
def test_a_guard_ends_the_run_only_where_its_program_is_chosen(runner):
    program, x = branch(3), np.ones(3)
    assert run(program, runner, 0, x, 200.0)[2] == 600.0
    refuses(ElsewhereError, None, run, program, runner, 1, x, 200.0)


def test_in_native_code_the_first_output_is_then_nan():
    program, x = branch(3), np.ones(3)
    assert run(program, "native", 0, x, 200.0)[0] == 0.0
    assert np.isnan(run(program, "native", 1, x, 200.0)[0])


def test_print_says_how_long_the_programs_are():
    assert "= branch(a0, a1, a2; 3 steps or 3 steps or 0 steps)" in str(branch(4))


@pytest.mark.parametrize("runner", ["interpreter", "numpy", "native"])
@pytest.mark.parametrize("n", [3, 100])
def test_a_branch_in_a_loop(runner, n):
    """x <- x a or tanh(x), by a row of indices; all x are stacked."""
    inner, b = Branch([body(scaled, n), body(bent, n)]), Builder()
    x, index, a = b.argument((n,)), b.argument(()), b.argument(())
    after, total = b.apply(inner, index, x, a)
    loop = Loop(b.program([after, after, total]), 6, 1, 1, 1)
    whole = Builder()
    given = [whole.argument(shape) for shape in ((n,), (6,), ())]
    program = whole.program([whole.constant(0.0), *whole.apply(loop, *given)])
    verify(program)
    x0, indices, total = np.linspace(-1.0, 2.0, n), np.array([0.0, 1, 1, 0, 1, 0]), 0.0
    now, stack = x0, []
    for i in indices:
        now, more = (0.7 * now, 0.7 * now.sum()) if i == 0 else (np.tanh(now), 0.7)
        stack.append(now)
        total += more
    found = run(program, runner, x0, indices, 0.7)
    for made, true in zip(found[1:], (now, np.stack(stack), total), strict=True):
        close(made, true, 1e-13, 1e-15)


@pytest.mark.parametrize("runner", ["interpreter", "numpy", "native"])
@pytest.mark.parametrize("n", SIZES)
def test_branches_of_symbols(runner, n):
    """A truth value chooses between arguments as they are and a loop."""
    b = Builder()
    a, x = (Symbol(b, b.argument(shape)) for shape in ((), (n,)))

    def doubled(x, a):
        return loop(lambda x, a: ([x + x, a], []), 3, [x, a])

    made = branch_of(a > 0.0, [lambda x, a: [x, a], doubled], x, a)
    program = b.program([b.constant(0.0), *(y.value for y in made)])
    verify(program)
    for number, factor in ((-1.0, 1.0), (2.0, 8.0)):
        _, found, same = run(program, runner, number, np.arange(float(n)))
        equal(found, factor * np.arange(n))
        assert same == number
