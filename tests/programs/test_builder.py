"""Building programs: steps that are computed at once, only once, or not at all."""

import gc
import math

import numpy as np
import pytest
from comparing import close, equal
from layouts import laid_out, returning, run_all, shape, with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import FLOAT
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.kernels.reductions import Reduce

X = np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]])


def names(builder):
    return [step.kernel.name for step in builder.steps]


# --- what depends on constants alone ---


def test_constants_are_computed_at_once():
    builder = Builder()
    data = np.arange(3.0)
    x = builder.constant(data)
    made = builder.sum(builder.ufunc(np.exp, builder.ufunc(np.multiply, x, builder.constant(2.0))))
    assert made.is_constant
    assert made.data == np.sum(np.exp(2.0 * data))
    assert builder.where(
        builder.compare(np.greater, x, builder.constant(0.5)), x, made
    ).data.tolist() == [made.data, 1.0, 2.0]
    assert not builder.steps


def test_nothing_is_computed_without_elements():
    """A step of machine code that adds elements at listed places wrote one where there are none."""
    builder, places = Builder(), np.zeros((1, 0), np.int64)
    x = builder.argument((0,))
    part = builder.full(builder.accumulate(np.add, x, 0), (1, 0))
    whole = builder.assemble((9, 0), [(places, (1, 0), part)] * 9)
    builder.guard(builder.compare(np.greater, whole, part))
    assert not builder.steps
    for (found,) in run_all(builder.program([builder.sum(x), part]), np.zeros(0)).values():
        assert found.shape == (1, 0)


def test_arrays_are_held_by_reference():
    builder = Builder()
    for data in (np.arange(3.0), np.arange(3), np.array([True, False])):
        assert builder.constant(data).data is data
        assert builder.constant(data) is builder.constant(data)
    other = builder.constant(np.arange(3, dtype=np.float32))
    assert other.dtype == FLOAT
    assert builder.constant(np.array(2.5)) is builder.constant(2.5)
    assert builder.constant(2) is builder.constant(2.0)
    assert builder.constant(0.0) is not builder.constant(-0.0)
    assert builder.constant(True) is not builder.constant(1.0)
    assert builder.constant(math.nan) is builder.constant(math.nan)


def test_numbers_that_are_made_of_constants_are_not_mixed_up():
    """The garbage collector may have run in between."""
    builder, data = Builder(), np.arange(100.0)
    x = builder.constant(data)
    for i in range(4):
        gc.collect()
        part = builder.call(ufunc_kernel(np.sqrt), builder.view(x, lambda a, i=i: a[i : i + 2]))
        equal(part.data, np.sqrt(data[i : i + 2]))


# --- equal steps ---


def test_equal_steps_are_one():
    builder, x, y = with_arguments((3,), (3,))
    assert builder.ufunc(np.exp, x) is builder.ufunc(np.exp, x)
    assert builder.ufunc(np.add, x, y) is builder.ufunc(np.add, x, y)
    assert builder.call(Reduce(np.maximum, (0,)), x) is builder.call(Reduce(np.maximum, (0,)), x)
    places = np.array([0, 2, 1])
    assert builder.gather(x, places) is builder.gather(x, places)
    assert len(builder.steps) == 4
    assert builder.ufunc(np.subtract, x, y) is not builder.ufunc(np.subtract, y, x)
    assert builder.call(Reduce(np.minimum, (0,)), x) is not builder.call(
        Reduce(np.maximum, (0,)), x
    )
    assert builder.gather(x, np.array([0, 1])) is not builder.gather(x, places)


def test_parts_that_are_the_same_are_one_value():
    builder, x = with_arguments((4, 3))
    assert builder.view(x, lambda a: a[1:3]) is builder.view(
        builder.view(x, lambda a: a[1:]), lambda a: a[:2]
    )
    assert builder.transposed(builder.transposed(x)).strides == x.strides
    assert builder.ufunc(np.exp, builder.view(x, lambda a: a[0])) is builder.ufunc(
        np.exp, builder.view(x, lambda a: a[0])
    )


def test_calls_with_effects_are_not_shared():
    builder, x = with_arguments((3,))
    kernel = PythonCall("noted", lambda x: (x,), [((3,), FLOAT)], False)
    assert builder.call(kernel, x) is not builder.call(kernel, x)
    condition = builder.compare(np.greater, x, builder.constant(0.0))
    before = len(builder.steps)
    builder.guard(condition)
    builder.guard(builder.constant(np.array([True, True])))
    assert names(builder)[before:] == ["guard"]


# --- views ---


def test_views_cost_no_steps():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        builder, at = Builder(), shape(rng, 1)
        base, how = laid_out(rng, at)
        order = [int(i) for i in rng.permutation(len(at))]
        x = builder.argument(base)
        view = builder.view(x, how)
        turned = builder.transposed(view, order)
        wide = builder.broadcast(turned, (2, *turned.shape))
        lines = [view, turned, wide, builder.view(turned, lambda a: a[::-1][1:])]
        assert not builder.steps
        data = rng.normal(size=base)
        true = how(data).transpose(order)
        expected = [how(data), true, np.broadcast_to(true, wide.shape), true[::-1][1:]]
        for found in run_all(returning(builder, *lines), data).values():
            for a, b in zip(found, expected, strict=True):
                equal(a, b)


def test_elements_and_other_shapes():
    builder, x = with_arguments((2, 3))
    turned = builder.transposed(x)
    elements = [builder.element(turned, i) for i in range(6)]
    flat = builder.reshaped(x, (3, 2))
    assert not builder.steps
    copied = builder.reshaped(turned, (6,))
    assert names(builder) == ["copy"]
    assert builder.contiguous(x) is x
    assert builder.full(x, (2, 3)) is x
    found = interpret(returning(builder, *elements, flat, copied), X)[1:]
    assert [float(a) for a in found[:6]] == X.T.ravel().tolist() == found[-1].tolist()
    equal(found[-2], X.reshape(3, 2))
    assert builder.element(builder.constant(X), 4) is builder.constant(X[1, 1])


def test_an_element_taken_by_a_function_is_no_view():
    builder = Builder()
    with pytest.raises(TypeError, match="an element is not a view"):
        builder.view(builder.argument((3,)), lambda a: a[0])


# --- truth values ---


def test_truth_values_and_numbers():
    builder, x = with_arguments((3,))
    condition = builder.compare(np.greater, x, builder.constant(0.0))
    assert builder.truth(condition) is condition
    number = builder.number(condition)
    assert builder.truth(number) is condition
    assert builder.number(number) is number
    before = len(builder.steps)
    assert builder.where(condition, x, x) is x
    assert len(builder.steps) == before


def test_choices_that_are_always_the_same():
    builder, x, y = with_arguments((3,), ())
    everywhere = builder.constant(np.ones(3, bool))
    assert builder.where(everywhere, x, y) is x
    assert builder.where(builder.constant(np.zeros(3, bool)), y, x) is x
    assert builder.where(everywhere, y, x).base is y
    assert not builder.steps
    builder.where(builder.constant(np.array([True, False, True])), x, y)
    assert len(builder.steps) == 1


# --- places ---


def test_products_take_what_blas_takes_as_it_lies():
    builder, x, y = with_arguments((4, 3), (3, 5))
    builder.matmul(x, y)
    builder.matmul(builder.transposed(x), x)
    builder.matmul(builder.transposed(y), builder.transposed(x))
    builder.matmul(builder.view(x, lambda a: a[1:]), builder.view(y, lambda a: a[:, 1:3]))
    assert names(builder) == ["matmul"] * 4
    builder.matmul(builder.view(x, lambda a: a[:, ::-1]), builder.view(y, lambda a: a[:, 2]))
    assert sorted(names(builder)[4:]) == ["copy", "copy", "matmul"]


@pytest.mark.parametrize("given", ["argument", "view", "constant"])
def test_programs_within_programs(given):
    """What is given may lie in memory in any way; views of it stay views."""
    inner, outer = Builder(), Builder()
    x, y = inner.argument((2, 3)), inner.argument((3, 2))
    column = inner.view(x, lambda a: a[:, 1])
    outputs = [inner.ufunc(np.exp, column), inner.transposed(y), inner.matmul(x, y)]
    z = outer.argument((2, 3))
    first = outer.constant(X.T.copy().T) if given == "constant" else z
    second = outer.transposed(z) if given == "view" else outer.full(outer.transposed(z), (3, 2))
    made = outer.inlined(inner.program(outputs), first, second)
    for value, expected in zip(made, [np.exp(X[:, 1]), X, X @ X.T], strict=True):
        for found in run_all(returning(outer, value), X).values():
            close(found[0], expected, 1e-14)


def test_elements_that_are_repeated_are_summed_once():
    builder = Builder()
    x = builder.argument((3,))
    total = builder.sum(builder.broadcast(x, (50, 3)), (0, 1))
    (value,) = interpret(builder.program([total]), [X[0]])
    close(value, 50.0 * np.sum(X[0]), 1e-15)
    assert all(step.operands[-1].shape in ((), (3,)) for step in builder.steps)
