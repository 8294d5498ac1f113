"""The parts of a graph: which axes are loops, and which nodes a view takes."""

import numpy as np
import pytest
from comparing import close, equal

import varmat as vm
from varmat.programs.ir.program import Value
from varmat.programs.run import nodes
from varmat.programs.run.constants import Constants

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import instructions


@pytest.mark.parametrize(("shape", "given", "axes"), [
    ((), (), ()), ((16,), (), ()), ((17,), (), (0,)), ((4, 4), (), ()), ((3, 6), (), (0,)),
    ((6, 3), (), (0,)), ((9, 9), (), (0, 1)), ((2, 100, 3), (), (1,)), ((5, 100, 3), (), (0, 1)),
    ((100, 100), (), (0, 1)), ((2, 100), (0,), (0, 1)), ((100, 3), (1,), (1, 0)),
])  # fmt: skip
def test_axes_that_are_loops(shape, given, axes):
    """Axes of more than 16 elements, and leading ones until at most 8 elements are left."""
    assert nodes.loop_axes(shape, given) == axes


def test_axes_are_shorter_where_functions_take_long():
    """Small matrices stay numbers, because they have algorithms of their own."""
    for n in range(1, 20):
        assert nodes.loop_axes((n,), long=nodes.LONG_IF_HEAVY) == ((0,) if n > 7 else ())
        assert nodes.loop_axes((n,)) == ((0,) if n > 16 else ())
    assert nodes.loop_axes((4, 4), long=nodes.LONG_IF_HEAVY) == ()
    assert nodes.loop_axes((2, 8), long=nodes.LONG_IF_HEAVY) == (1,)


@pytest.mark.parametrize("n", [7, 8, 14, 16, 17])
@pytest.mark.parametrize("function", [np.tanh, np.abs, lambda x: np.exp(-np.max(x)) * x])
def test_short_arrays_in_loops(n, function):
    """Vectors of functions that take long agree with NumPy's, also where the array is carried."""

    def f(x):
        state = x
        for _ in range(40):
            state = function(0.7 * state + x) + 0.1 * state[0]
        return np.sum(state * np.arange(1.0, n + 1.0))

    x = np.linspace(-0.8, 0.9, n)
    native, plain = vm.recorded(f, runner="native")(x), vm.recorded(f, runner="numpy")(x)
    close(native[0], plain[0], 1e-12)
    close(native[1], plain[1], 1e-10)


def test_where_vectors_are_worth_it():
    def longest(f, n):
        gradient = vm.recorded(f)
        gradient(np.ones(n))
        constants = Constants([])
        instructions(gradient.program, constants)
        return constants.long

    assert longest(lambda x: np.sum(np.exp(x)), 7) == nodes.LONG
    assert longest(lambda x: np.sum(np.exp(x)), 8) == nodes.LONG_IF_HEAVY
    assert longest(lambda x: np.sum(np.exp(x)), 16) == nodes.LONG_IF_HEAVY
    assert longest(lambda x: np.sum(np.exp(x)), 17) == nodes.LONG
    assert longest(lambda x: np.sum(x**3) * np.exp(x[0]), 8) == nodes.LONG
    carried = longest(lambda x: vm.scan(lambda y, _: (np.tanh(y), ()), x, np.zeros(40))[0][0], 8)
    assert carried == nodes.LONG_IF_HEAVY


def named(shape, axes):
    """Nodes, and each step is its place."""
    return nodes.by_places(shape, axes, lambda place: place)  # type: ignore[arg-type, return-value]


def test_a_view_takes_nodes_of_its_base():
    base = Value((3, 4))
    whole = named((3, 4), ())
    for how in (lambda a: a.T, lambda a: a[1], lambda a: a[::-1, ::2]):
        part = how(np.arange(12).reshape(3, 4))
        view = base.view(part.shape, 8 * int(part.ravel()[0]), part.strides)
        found = nodes.chosen_nodes(view, whole)
        assert (found.axes, found.array.tolist()) == ((), how(whole.array).tolist())
    element = nodes.chosen_nodes(base.view((), 8 * 11, ()), whole)
    assert element.array.item() == (2, 3)


def test_a_view_along_loops():
    base = Value((3, 100))
    whole = named((3, 100), (1,))
    turned = nodes.chosen_nodes(base.view((100, 3), 0, (8, 800)), whole)
    assert turned.axes == (0,)
    assert turned.array.tolist() == [[(0, 0), (1, 0), (2, 0)]]
    row = nodes.chosen_nodes(base.view((100,), 800, (8,)), whole)
    assert (row.axes, row.array.tolist()) == ((0,), [(1, 0)])
    # A part of the loop, and every second element, have no nodes of their own.
    assert nodes.chosen_nodes(base.view((50,), 8, (8,)), whole) is None
    assert nodes.chosen_nodes(base.view((3, 50), 0, (800, 16)), whole) is None
    # Nor have the elements around the end of a row, and one element a hundred times.
    assert nodes.chosen_nodes(base.view((100,), 400, (8,)), whole) is None
    assert nodes.chosen_nodes(base.view((100,), 0, (0,)), whole) is None


def test_lines_and_places():
    x = np.arange(24).reshape(2, 3, 4)
    equal(nodes.lines_of(x, (1, 0, 2), (1,)), x[1, :, 2])
    equal(nodes.lines_of(x, (0, 2, 0), (2, 0)), x[:, 2].T)
    assert nodes.offset_of((1, 2), (32, 8), 4) == 52
    equal(nodes.picked(x, np.array([[3, 0], [23, 5]])), [[3, 0], [23, 5]])
    sums = nodes.each_place(lambda a, b: a + b, [x.astype(object), np.array([[100]], object)])
    equal(sums, x + 100)
