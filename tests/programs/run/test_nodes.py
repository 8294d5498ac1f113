"""The parts of a graph: which axes are loops, and which nodes a view takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import varmat as vm
from varmat.programs.ir.program import Value
from varmat.programs.run.constants import Constants
from varmat.programs.run.nodes import (
    LONG,
    LONG_IF_HEAVY,
    Nodes,
    by_places,
    chosen_nodes,
    each_place,
    lines_of,
    loop_axes,
    offset_of,
    picked,
)

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import instructions


@pytest.mark.parametrize(
    ("shape", "given", "axes"),
    [
        ((), (), ()),
        ((16,), (), ()),
        ((17,), (), (0,)),
        ((4, 4), (), ()),
        ((3, 6), (), (0,)),
        ((6, 3), (), (0,)),
        ((9, 9), (), (0, 1)),
        ((2, 100, 3), (), (1,)),
        ((5, 100, 3), (), (0, 1)),
        ((100, 100), (), (0, 1)),
        ((2, 100), (0,), (0, 1)),
        ((100, 3), (1,), (1, 0)),
    ],
)
def test_axes_that_are_loops(shape: Any, given: Any, axes: Any) -> None:
    """Axes of more than 16 elements, and leading ones until at most 8 elements are left."""
    assert loop_axes(shape, given) == axes


def test_axes_are_shorter_where_functions_take_long() -> None:
    """Small matrices stay numbers, because they have algorithms of their own."""
    for n in range(1, 20):
        assert loop_axes((n,), long=LONG_IF_HEAVY) == ((0,) if n > 7 else ())
        assert loop_axes((n,)) == ((0,) if n > 16 else ())
    assert loop_axes((4, 4), long=LONG_IF_HEAVY) == ()
    assert loop_axes((2, 8), long=LONG_IF_HEAVY) == (1,)


@pytest.mark.parametrize("n", [7, 8, 14, 16, 17])
@pytest.mark.parametrize("function", [np.tanh, np.abs, lambda x: np.exp(-np.max(x)) * x])
def test_short_arrays_in_loops(n: int, function: Any) -> None:
    """Vectors of functions that take long agree with NumPy's, also where the array is carried."""

    def f(x: Any) -> Any:
        state = x
        for _ in range(40):
            state = function(0.7 * state + x) + 0.1 * state[0]
        return np.sum(state * np.arange(1.0, n + 1.0))

    x = np.linspace(-0.8, 0.9, n)
    native, plain = vm.recorded(f, runner="native")(x), vm.recorded(f, runner="numpy")(x)
    np.testing.assert_allclose(native[0], plain[0], rtol=1e-12)
    np.testing.assert_allclose(native[1], plain[1], rtol=1e-10)


def test_where_vectors_are_worth_it() -> None:
    def longest(f: Any, n: int) -> int:
        gradient = vm.recorded(f)
        gradient(np.ones(n))
        constants = Constants([])
        instructions(gradient.program, constants)
        return constants.long

    assert longest(lambda x: np.sum(np.exp(x)), 7) == LONG
    assert longest(lambda x: np.sum(np.exp(x)), 8) == LONG_IF_HEAVY
    assert longest(lambda x: np.sum(np.exp(x)), 16) == LONG_IF_HEAVY
    assert longest(lambda x: np.sum(np.exp(x)), 17) == LONG
    assert longest(lambda x: np.sum(x**3) * np.exp(x[0]), 8) == LONG
    carried = longest(lambda x: vm.scan(lambda y, _: (np.tanh(y), ()), x, np.zeros(40))[0][0], 8)
    assert carried == LONG_IF_HEAVY


def named(shape: Any, axes: Any) -> Nodes:
    """Nodes, each of which is its place."""
    return by_places(shape, axes, lambda place: place)  # type: ignore[arg-type, return-value]


def test_a_view_takes_nodes_of_its_base() -> None:
    base = Value((3, 4))
    whole = named((3, 4), ())
    for how in (lambda a: a.T, lambda a: a[1], lambda a: a[::-1, ::2]):
        part = how(np.arange(12).reshape(3, 4))
        view = base.view(part.shape, 8 * int(part.ravel()[0]), part.strides)
        found = chosen_nodes(view, whole)
        assert found is not None
        assert (found.axes, found.array.tolist()) == ((), how(whole.array).tolist())
    element = chosen_nodes(base.view((), 8 * 11, ()), whole)
    assert element is not None
    assert element.array.item() == (2, 3)


def test_a_view_along_loops() -> None:
    base = Value((3, 100))
    whole = named((3, 100), (1,))
    turned = chosen_nodes(base.view((100, 3), 0, (8, 800)), whole)
    assert turned is not None
    assert turned.axes == (0,)
    assert turned.array.tolist() == [[(0, 0), (1, 0), (2, 0)]]
    row = chosen_nodes(base.view((100,), 800, (8,)), whole)
    assert row is not None
    assert (row.axes, row.array.tolist()) == ((0,), [(1, 0)])
    # A part of the loop, and every second element, have no nodes of their own.
    assert chosen_nodes(base.view((50,), 8, (8,)), whole) is None
    assert chosen_nodes(base.view((3, 50), 0, (800, 16)), whole) is None
    # Nor have the elements around the end of a row, and one element a hundred times.
    assert chosen_nodes(base.view((100,), 400, (8,)), whole) is None
    assert chosen_nodes(base.view((100,), 0, (0,)), whole) is None


def test_lines_and_places() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(lines_of(x, (1, 0, 2), (1,)), x[1, :, 2])
    np.testing.assert_array_equal(lines_of(x, (0, 2, 0), (2, 0)), x[:, 2].T)
    assert offset_of((1, 2), (32, 8), 4) == 52
    np.testing.assert_array_equal(picked(x, np.array([[3, 0], [23, 5]])), [[3, 0], [23, 5]])
    sums = each_place(lambda a, b: a + b, [x.astype(object), np.array([[100]], object)])
    np.testing.assert_array_equal(sums, x + 100)
