"""Loops over the elements of a long axis, several at a time."""

import numpy as np
import pytest
from comparing import close, equal
from layouts import native_code, with_arguments

import varmat as vm
from varmat.programs.build.builder import Builder

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import NativeRunner


@pytest.mark.parametrize("n", range(1, 36))
def test_lanes_beyond_the_end_do_not_count(n):
    """A loop takes several vectors in a turn, and what is left in a last turn, which overlaps."""
    builder, x = with_arguments((n,))
    y = builder.ufunc(np.exp, x)
    outputs = [builder.reduce(f, y, (0,)) for f in (np.add, np.maximum, np.minimum)]
    run = NativeRunner(builder.program([*outputs, y]))
    data = np.random.default_rng(n).normal(size=n)
    total, most, least, made = run([data])
    expected = np.exp(data)
    close(made, expected, 1e-15)
    assert total == pytest.approx(np.sum(expected), rel=1e-14)
    assert (most, least) == (np.max(made), np.min(made))


def test_arguments_lie_anywhere():
    """Arguments may have any order of axes, gaps, and addresses that are not multiples of eight."""
    g = vm.recorded(lambda x: np.sum(np.exp(x) * x) + np.sum(np.sin(x)), runner="native")
    data = np.linspace(0.0, 1.0, 600).reshape(20, 30)
    odd = np.zeros(8 * data.size + 1, np.uint8)[1:].view(np.float64).reshape(data.shape)
    odd[...] = data
    expected = g(data)
    for x in (
        odd,                    np.asfortranarray(data),
        np.repeat(data, 2, axis=1)[:, ::2],             data[::-1][::-1],       data.copy(),
    ):  # fmt: skip
        found = g(x)
        close(found, expected, 1e-14)
        assert found[1].flags.c_contiguous


@pytest.mark.parametrize(("function", "is_kept"), [(np.exp, True), (np.negative, False)])
def test_what_is_cheap_is_computed_again(function, is_kept):
    """The product waits for the sum, and then needs the values once more."""
    builder = Builder()
    y = builder.ufunc(function, builder.argument((1000,)))
    total = builder.sum(y)
    program = builder.program([total, builder.ufunc(np.multiply, y, total)])
    assert (native_code(program).scratch_bytes >= 8000) is is_kept
    given = np.linspace(0.0, 1.0, 1000)
    found, made = NativeRunner(program)([given])
    assert found == pytest.approx(np.sum(function(given)), rel=1e-14)
    close(made, function(given) * found, 1e-15)


def test_what_is_written_to_places_apart_is_written_one_by_one():
    """Two columns of a matrix, and a sum beside them."""
    builder, x = with_arguments((37,))
    y = builder.ufunc(np.multiply, x, builder.constant(3.0))
    parts = [((at, (16,)), (37,), each) for at, each in ((0, x), (8, y))]
    program = builder.program([builder.assemble((37, 2), parts)])
    data = np.linspace(0.0, 1.0, 37)
    (made,) = NativeRunner(program)([data])
    equal(made, np.column_stack([data, 3.0 * data]))
    assert "x double>" not in str(native_code(program).module)
