"""Elements that move: gathers, and arrays that are made of parts."""

import numpy as np
import pytest
from comparing import close, equal
from layouts import X, returning, run_all, with_arguments
from recordings import RUNNERS

from varmat.programs.build.builder import Builder, is_partition
from varmat.programs.ir.interpret import interpret
from varmat.programs.kernels.places import GATHER
from varmat.programs.passes import optimised
from varmat.programs.run import runner_for


@pytest.mark.parametrize(("at", "place"), [
    ((5, 2), (0, (8, 8))), ((2, 5), (0, (8, 8))), ((2, 2, 3), (0, (24, 8, 16))),
     ((3, 2), (8, (0, 24))), ((10, 9), (0, (8, 8))),
    ((4, 3), (72, (-16, 8))),
])  # fmt: skip
def test_windows_that_overlap_are_added_up(at, place):
    """An element of the result is the sum over all windows that contain it."""
    places = np.ndarray(at, np.int64, np.arange(20), *place)
    for base in (None, np.arange(20.0)):
        builder, x = with_arguments(at)
        parts = [(place, at, x), ((0, ()), (), builder.constant(3.0))]
        whole = builder.assemble((20,), parts, None if base is None else builder.constant(base))
        values = np.random.default_rng(1).normal(size=at)
        expected = np.zeros(20) if base is None else base.copy()
        np.add.at(expected, places, values)
        expected[0] += 3.0
        for found in run_all(returning(builder, whole), values).values():
            close(found[0], expected, 1e-14)


@pytest.mark.parametrize(("places", "covers"), [
    ([((0, (8,)), (2,)), ((16, (8,)), (2,))], True),
    ([((0, (16,)), (2,)), ((8, (16,)), (2,))], True),
    ([((0, (8,)), (2,)), ((8, (8,)), (2,))], False),
    ([((0, (8,)), (2,)), ((16, ()), ())], False),
    ([((0, (8,)), (2,)), ((16, ()), ()), ((24, ()), ())], True),
])  # fmt: skip
def test_partitions(places, covers):
    assert is_partition((4,), places) is covers


def test_gathers_from_arrays_that_are_not_contiguous():
    builder, x = with_arguments((2, 3))
    made = builder.gather(builder.transposed(x), np.array([[0, 1], [5, 5]]))
    assert [step.kernel for step in builder.steps][-1] is GATHER
    for found in run_all(returning(builder, made), X).values():
        equal(found[0], X.T.ravel()[[[0, 1], [5, 5]]])


def test_gathers_from_parts_of_one_array_are_one_gather():
    builder, x = with_arguments((60,))
    parts = [builder.view(x, lambda a, i=i: a[3 * i : 3 * i + 3]) for i in range(20)]
    made = [builder.gather(part, np.array([[2, 0], [i % 3, 1]])) for i, part in enumerate(parts)]
    program = builder.program(
        [builder.sum(builder.add_all([builder.ufunc(np.sin, v) for v in made]))]
    )
    assert optimised(program).counts()["gather"] == 1
    agree(program, 60)


@pytest.mark.parametrize("is_shared", [True, False])
def test_arrays_made_of_parts_are_one_array(is_shared):
    """A part by its place and one by its index, which is the same in all or not."""
    builder, shared = Builder(), np.array([2, 0, 2])
    x, terms = builder.argument((60,)), []
    for i in range(20):
        part = builder.view(x, lambda a, i=i: a[3 * i : 3 * i + 3])
        index = shared if is_shared else (shared + i) % 4
        two = builder.view(part, lambda a: a[1:])
        whole = builder.assemble((4,), [(index, (3,), part), ((8, (16,)), (2,), two)])
        terms.append(builder.sum(builder.ufunc(np.sin, whole)))
    program = builder.program([builder.add_all(terms)])
    assert optimised(program).counts()["assemble"] == 1
    agree(program, 60)


def agree(program, size):
    point = np.cos(np.arange(float(size)))
    expected = interpret(program, point)
    for runner in RUNNERS:
        (found,) = runner_for(optimised(program), runner)([point])
        assert found == pytest.approx(expected[0], rel=1e-13)


def test_arrays_made_of_parts_are_those_of_jax():
    """Parts that cover an array are written, others are added."""
    jax = pytest.importorskip("jax")
    builder, x, whole = with_arguments((3,), (5,))
    two = builder.view(x, lambda a: a[1:])
    values = [
        builder.assemble((5,), [((0, (8,)), (3,), x), ((24, (8,)), (2,), two)]),
        builder.assemble((5,), [((0, (8,)), (3,), x), ((8, (16,)), (2,), two)], whole),
        builder.written(whole, (8, (16,)), (2,), two),
        builder.assemble((5,), [(np.array([4, 4, 0]), (3,), x)]),
    ]
    program = returning(builder, *values)
    given = np.array([1.0, -2.0, 0.5]), np.arange(5.0)
    with jax.enable_x64(True):
        found = jax.jit(program.to_jax())(*given)
    for made, true in zip(found, interpret(program, *given), strict=True):
        equal(made, true)
