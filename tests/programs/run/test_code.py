"""Instructions of a program: scratch memory is used again, and a run says why it ended."""

import numpy as np
import pytest
from comparing import close
from layouts import native_code, with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.run import has_native, runner_for

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.code import BLOCK

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")

N = 1000


@pytest.mark.parametrize("count", [1, 2, 6])
def test_scratch_memory_is_used_again(count):
    """Running sums need memory. Each reads the one before, so two arrays are enough."""
    builder, x = with_arguments((N,))
    y, given = x, np.linspace(0.0, 1.0, N)
    expected = given
    for _ in range(count):
        y = builder.accumulate(np.add, builder.ufunc(np.tanh, y), 0)
        expected = np.cumsum(np.tanh(expected))
    program = builder.program([builder.sum(y)])
    assert native_code(program).scratch_bytes == 8 * N * min(count + 1, 2)
    (total,) = runner_for(program, "native")([given])
    assert total == pytest.approx(np.sum(expected), rel=1e-12)


def test_memory_that_is_read_later_is_not_used_again():
    builder, x = with_arguments((N,))
    sums = [builder.accumulate(np.add, builder.ufunc(f, x), 0) for f in (np.sin, np.cos, np.exp)]
    program = builder.program([builder.sum(builder.add_all(sums)), *sums[::-1]])
    given = np.linspace(0.0, 1.0, N)
    expected = [np.cumsum(f(given)) for f in (np.exp, np.cos, np.sin)]
    total, *made = runner_for(program, "native")([given])
    assert total == pytest.approx(np.sum(expected), rel=1e-13)
    close(made, expected, 1e-13)


def test_a_constant_is_there_once():
    code = native_code(Builder().program([]))
    assert code.words(1, 2) is code.words(1, 2)
    assert code.words(1, 2) is not code.words(2, 1)


def test_a_loop_of_no_turn_has_no_code():
    code = native_code(Builder().program([]))
    assert code.over(0, [], lambda turn, carried: pytest.fail("a turn was written")) == []


def test_long_programs_are_compiled_in_blocks():
    """LLVM takes a time that grows with the square of a block, and cannot be interrupted."""
    builder, x = with_arguments((2,))
    first, second = builder.element(x, 0), builder.element(x, 1)
    y, expected, given = first, 0.3, np.array([0.3, 0.7])
    for i in range(3 * BLOCK):
        y = builder.ufunc(np.subtract, builder.ufunc(np.multiply, y, second), builder.constant(i))
        expected = expected * 0.7 - i
    program = builder.program([y])
    blocks = [len(each.instructions) for each in native_code(program).function.blocks]
    assert sum(blocks) > 5 * BLOCK
    # A number is some ten instructions at most, and a branch ends the block.
    assert max(blocks) < BLOCK + 20
    assert runner_for(program, "native")([given])[0] == pytest.approx(expected, rel=1e-13)
