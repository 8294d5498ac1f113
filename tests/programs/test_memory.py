"""The memory plan: two values share memory only if nothing reads the older one any more."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import returning, run_all, shape
from random_functions import random_function
from recordings import LARGE

import varmat as vm
from varmat.derivatives.recorded_programs import record
from varmat.programs.build.arithmetic import ADD, MULTIPLY, NEGATIVE
from varmat.programs.build.builder import Builder
from varmat.programs.ir.memory import LINE, Plan, overwritable
from varmat.programs.ir.program import BOOL, OBJECT, Program, Step, Value
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel
from varmat.programs.kernels.places import copy_kernel
from varmat.programs.kernels.reductions import SUM, Reduce


def check_plan(program: Program) -> None:
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
                start = plan.scratch[id(value)]
                assert start % 8 == 0
                assert value.size * value.dtype.itemsize < LINE or start % LINE == 0
                assert start + value.size * value.dtype.itemsize <= plan.scratch_bytes
                lives.append(
                    (
                        start,
                        start + max(value.size * value.dtype.itemsize, 1),
                        i,
                        lasts.get(id(value), i),
                        step,
                        value,
                    )
                )
    for a in lives:
        for b in lives:
            if a is b or a[0] >= b[1] or b[0] >= a[1] or not a[2] <= b[2] <= a[3]:
                continue
            assert a[2] < b[2], "two results of a step in one place"
            assert b[2] == a[3], f"{b[5].shape} is made where {a[5].shape} is still read: {program}"
            assert b[5] is b[4].results[0]
            assert a[5] in overwritable(b[4])
            assert a[0] == b[0]


def random_program(seed: int) -> tuple[Program, list[np.ndarray]]:
    """Make steps of which some may be written over their operands. The operands are views, and
    occur several times.
    """
    rng = np.random.default_rng(seed)
    builder, at = Builder(), shape(rng, 1, 2, (1, 2, 3, 4))
    arguments = [rng.normal(size=at) for _ in range(2)]
    values: list[Value] = [builder.argument(at) for _ in arguments]
    for _ in range(rng.integers(5, 30)):
        x, y, z = (values[-1 - min(int(rng.geometric(0.4)) - 1, len(values) - 1)] for _ in range(3))
        kind = rng.integers(11)
        if kind == 0:
            made = builder.call(ADD, x, y)
        elif kind == 1:
            made = builder.call(
                MULTIPLY, x, builder.broadcast(builder.view(y, lambda a: a[:1]), at)
            )
        elif kind == 2:
            made = (
                builder.call(NEGATIVE, builder.transposed(x))
                if len(set(at)) < len(at)
                else builder.call(NEGATIVE, x)
            )
        elif kind == 3:
            chosen = rng.integers(max(len(values) - 4, 0), len(values), rng.integers(2, 6))
            made = builder.call(SUM, *(values[int(i)] for i in chosen))
        elif kind == 4:
            made = builder.call(SELECT, builder.compare(np.greater, x, y), z, builder.constant(0.3))
        elif kind == 5:
            made = builder.call(ADD, x, builder.view(x, lambda a: a[::-1]))
        elif kind == 6:
            made = builder.call(ufunc_kernel(np.tanh), x)
        elif kind == 7:
            made = builder.call(MULTIPLY, builder.call(Reduce(np.maximum, (0,)), x), y)
        elif kind == 8:
            made = builder.call(copy_kernel(at), builder.view(x, lambda a: a[::-1]))
        elif kind == 9:
            places, few = (
                rng.integers(x.size, size=1),
                builder.view(builder.reshaped(z, (z.size,)), lambda a: a[:1]),
            )
            made = builder.assemble(
                at, [((0, x.strides), at, y), (places, (1,), few), ((0, x.strides), at, x)], x
            )
        else:
            made = builder.gather(x, rng.integers(x.size, size=at))
        made = builder.contiguous(made)
        if made.shape == at:
            values.append(
                builder.call(ufunc_kernel(np.arctan), made) if rng.uniform() < 0.3 else made
            )
    outputs = [values[-1], values[int(rng.integers(len(values)))], builder.sum(values[-2])]
    return returning(builder, *outputs), arguments


def test_runners_give_what_the_interpreter_gives() -> None:
    for seed in range(40):
        program, arguments = random_program(seed)
        check_plan(program)
        found = run_all(program, *arguments)
        for name, made in found.items():
            for a, b in zip(made, found["interpreter"], strict=True):
                np.testing.assert_allclose(
                    a, b, rtol=1e-12, atol=1e-13, err_msg=f"{name}, seed {seed}: {program}"
                )


def test_plans_of_recordings() -> None:
    for seed in range(20):
        f = random_function(seed, 20)
        with np.errstate(invalid="ignore"):  # of values that are not chosen
            program = record(f, tuple(range(len(f.shapes))), f.points(1)[0], {})
        check_plan(program)


def test_a_chain_of_steps_needs_one_array() -> None:
    builder = Builder()
    x = builder.argument((100,))
    for f in (np.sin, np.exp, np.tanh, np.cos):
        x = builder.ufunc(f, x)
    program = builder.program([builder.sum(x)])
    plan = Plan(program)
    assert len({plan.scratch[id(step.results[0])] for step in program.steps[:4]}) == 1
    assert plan.scratch_bytes < 850


def test_memory_is_used_again() -> None:
    """The values have the same size, and a matrix product cannot be written over its operands."""
    builder = Builder()
    x = builder.argument((10, 10))
    for _ in range(10):
        x = builder.matmul(x, x)
    assert Plan(builder.program([builder.sum(x)])).scratch_bytes < 3 * 800


def test_results_are_computed_in_the_returned_memory() -> None:
    builder = Builder()
    x = builder.argument((100,))
    y = builder.ufunc(np.exp, x)
    z = builder.ufunc(np.multiply, x, y)
    plan = Plan(builder.program([builder.sum(y), y, builder.view(z, lambda a: a[::2]), y]))
    assert plan.outputs == {id(y): 1}
    assert id(y) not in plan.scratch
    assert id(z) in plan.scratch


@pytest.mark.parametrize(
    ("kernel", "operands", "over"),
    [
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
    ],
)
def test_operands_that_may_be_overwritten(kernel: object, operands: str, over: str) -> None:
    """Small letters are values, and capital letters are their transposes."""
    known = {name: Value((2, 2)) for name in "abc"}
    known |= {name.upper(): x.view((2, 2), 0, (8, 16)) for name, x in known.items()}
    given = [known[name] for name in operands]
    step = Step(kernel, given, kernel.results(*given))  # type: ignore[attr-defined]
    assert overwritable(step) == [known[name] for name in over]


def test_truth_values_take_a_byte() -> None:
    builder = Builder()
    x = builder.argument((64,))
    condition = builder.compare(np.greater, x, builder.constant(0.0))
    assert condition.dtype == BOOL
    made = builder.where(condition, x, builder.constant(1.0))
    assert Plan(builder.program([builder.sum(made)])).scratch_bytes <= 64 + 512 + 8


def test_large_arrays_are_overwritten_between_calls() -> None:
    """Every call uses the same memory, but results that were returned are left alone."""
    g = vm.recorded(lambda x: np.sum(np.sin(np.exp(x) * 2.0)) + np.sum(np.cumsum(x) * x[0]))
    first = g(LARGE)[1]
    kept = first.copy()
    g(LARGE + 1.0)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(g(LARGE)[1], kept)
