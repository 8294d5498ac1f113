"""The memory plan: two values share memory only if nothing reads the older one any more."""

import gc
from itertools import permutations

import numpy as np
import pytest
from comparing import equal
from layouts import with_arguments
from random_functions import random_function

from varmat.derivatives.recorded_programs import record
from varmat.programs.build.arithmetic import ADD
from varmat.programs.ir.memory import LINE, Plan, array_at, overwritable
from varmat.programs.ir.program import BOOL, OBJECT, Step, Value
from varmat.programs.kernels.places import copy_kernel
from varmat.programs.kernels.reductions import SUM, Reduce


def check_plan(program):
    """Demand that values in the same place are never alive at once, except a result that is written
    over its operand.
    """
    plan = Plan(program)
    lasts = {id(v.base): i for i, step in enumerate(program.steps) for v in step.operands}
    lasts.update((id(v.base), len(program.steps)) for v in program.outputs)
    lives = []
    for i, step in enumerate(program.steps):
        for value in step.results:
            if value.dtype == OBJECT:
                assert id(value) in plan.objects
            elif id(value) not in plan.outputs:
                start, size = plan.scratch[id(value)], value.size * value.dtype.itemsize
                assert start % 8 == 0
                assert size < LINE or start % LINE == 0
                assert start + size <= plan.scratch_bytes
                last = lasts.get(id(value), i)
                lives.append((start, start + max(size, 1), i, last, step, value))
    for a, b in permutations(lives, 2):
        if a[0] < b[1] and b[0] < a[1] and a[2] <= b[2] <= a[3]:
            assert a[2] < b[2], "two results of a step in one place"
            assert b[2] == a[3], f"{b[5].shape} is made where {a[5].shape} is still read: {program}"
            assert b[5] is b[4].results[0]
            assert a[5] in overwritable(b[4])
            assert a[0] == b[0]


def test_plans_of_recordings():
    for seed in range(30):
        f = random_function(seed, 20)
        with np.errstate(invalid="ignore"):  # of values that are not chosen
            program = record(f, tuple(range(len(f.shapes))), f.points(1)[0], {})
        check_plan(program)


def test_a_chain_of_steps_needs_one_array():
    builder, x = with_arguments((100,))
    for f in (np.sin, np.exp, np.tanh, np.cos):
        x = builder.ufunc(f, x)
    program = builder.program([builder.sum(x)])
    plan = Plan(program)
    assert len({plan.scratch[id(step.results[0])] for step in program.steps[:4]}) == 1
    assert plan.scratch_bytes < 850


def test_memory_is_used_again():
    """The values have the same size, and a matrix product cannot be written over its operands."""
    builder, x = with_arguments((10, 10))
    for _ in range(10):
        x = builder.matmul(x, x)
    assert Plan(builder.program([builder.sum(x)])).scratch_bytes < 3 * 800


def test_results_are_computed_in_the_returned_memory():
    builder, x = with_arguments((100,))
    y = builder.ufunc(np.exp, x)
    z = builder.ufunc(np.multiply, x, y)
    plan = Plan(builder.program([builder.sum(y), y, builder.view(z, lambda a: a[::2]), y]))
    assert plan.outputs == {id(y): 1}
    assert id(y) not in plan.scratch
    assert id(z) in plan.scratch


@pytest.mark.parametrize(("kernel", "operands", "over"), [
    (ADD, "ab", "ab"),
    (ADD, "aa", "aa"),
    (ADD, "aA", ""),
    (ADD, "bA", "b"),
    (SUM, "abc", "ab"),
    (SUM, "aba", "b"),
    (SUM, "aab", ""),
    (Reduce(np.add, (0,)), "a", ""),
    (copy_kernel((2, 2)), "A", ""),
    (copy_kernel((2, 2)), "a", "a"),
])  # fmt: skip
def test_operands_that_may_be_overwritten(kernel, operands, over):
    """Small letters are values, and capital letters are their transposes."""
    known = {name: Value((2, 2)) for name in "abc"}
    known |= {name.upper(): x.view((2, 2), 0, (8, 16)) for name, x in known.items()}
    given = [known[name] for name in operands]
    step = Step(kernel, given, kernel.results(*given))  # type: ignore[attr-defined]
    assert overwritable(step) == [known[name] for name in over]


def test_truth_values_take_a_byte():
    builder, x = with_arguments((64,))
    condition = builder.compare(np.greater, x, builder.constant(0.0))
    assert condition.dtype == BOOL
    made = builder.where(condition, x, builder.constant(1.0))
    assert Plan(builder.program([builder.sum(made)])).scratch_bytes <= 64 + 512 + 8


@pytest.mark.parametrize("x", [
    np.arange(12.0).reshape(3, 4)[::-1, 1::2], np.array(True), np.arange(5)[::-1], np.zeros((0, 3)),
])  # fmt: skip
def test_an_array_at_an_address_is_freed_without_the_collector(x):
    gc.collect()
    gc.disable()
    try:
        found = array_at(x.__array_interface__["data"][0], x.shape, x.dtype, x.strides)
        equal(found, x)
        assert np.may_share_memory(found, x) == (x.size > 0)
        del found
        assert gc.collect() == 0
    finally:
        gc.enable()
