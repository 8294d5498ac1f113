"""Programs: printing, counting, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import (
    FLOAT,
    OBJECT,
    Program,
    Step,
    Value,
    contiguous_strides,
    element_places,
    read_values,
)
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.guards import GUARD
from varmat.programs.kernels.places import copy_kernel
from varmat.programs.kernels.python_calls import PythonCall

EXP, ADD = ufunc_kernel(np.exp), ufunc_kernel(np.add)


def small() -> Program:
    """Return a program with several kinds of steps."""
    builder = Builder()
    x, scale, data = (
        builder.argument((2, 3)),
        builder.argument(()),
        builder.constant(np.arange(3.0)),
    )
    y = builder.ufunc(np.multiply, builder.ufunc(np.exp, x), data)
    builder.guard(builder.compare(np.greater, scale, builder.constant(0.5)))
    column = builder.view(y, lambda a: a[:, 1])
    last = builder.view(y, lambda a: a[-1])
    corner = builder.element(y, 2)
    total = builder.ufunc(np.add, builder.sum(column), builder.ufunc(np.multiply, scale, corner))
    return builder.program([total, builder.contiguous(column), last, builder.transposed(y)])


def test_a_program_in_print() -> None:
    assert str(small()).splitlines() == [
        "program(a0[2, 3], a1)",
        "    v0[2, 3] = exp(a0)",
        "    v1[2, 3] = multiply(k0, v0)",
        "    v2 = greater(a1, 0.5)",
        "    guard(v2)",
        "    v3 = add.reduce(v1<1: 2 by 3>)",
        "    v4 = multiply(a1, v1<2>)",
        "    v5 = add(v3, v4)",
        "    v6[2] = copy(v1<1: 2 by 3>)",
        "    return v5, v6, v1<3: 3>, v1<0: 3 x 2 by 1, 3>",
    ]


def test_numbers_of_steps() -> None:
    program = small()
    assert len(program) == 8
    assert program.counts() == {
        "exp": 1, "multiply": 2, "greater": 1, "guard": 1, "add.reduce": 1, "add": 1, "copy": 1,
    }  # fmt: skip
    assert program.counts()["matmul"] == 0
    # Numbers count as constants too.
    assert sorted(v.size for v in program.constants()) == [1, 3]
    reads = read_values(program.steps, program.outputs)
    assert reads[id(program.steps[1].results[0])] == 5


def test_a_program_of_nothing() -> None:
    builder = Builder()
    program = builder.program([builder.constant(2.5)])
    verify(program)
    assert str(program) == "program()\n    return 2.5"
    assert len(program) == 0


def test_steps_of_several_results_and_of_none_in_print() -> None:
    builder = Builder()
    x = builder.argument((2,))
    made = builder.apply(
        PythonCall(
            "both", lambda x: (x, 1.0, {}), [((2,), FLOAT), ((), FLOAT), ((), OBJECT)], True
        ),
        x,
    )
    builder.apply(PythonCall("print", lambda *_: (), [], False), *made)
    assert str(builder.program(made[:1])).splitlines()[1:3] == [
        "    v0[2], v1, v2 = both(a0)",
        "    print(v0, v1, v2)",
    ]


def test_right_programs_are_verified() -> None:
    verify(small())


def test_values_read_before_they_are_made_are_refused() -> None:
    program = small()
    with pytest.raises(
        ValueError, match=r"^step 0, multiply, reads a value of shape \(2, 3\) before it is made"
    ):
        verify(Program(program.arguments, program.steps[1:], program.outputs))
    with pytest.raises(
        ValueError, match=r"^step 2, greater, reads a value of shape \(\) before it is made"
    ):
        verify(Program(program.arguments[:1], program.steps, program.outputs))


def test_results_that_no_step_makes_are_refused() -> None:
    program = small()
    with pytest.raises(ValueError, match=r"^the program returns what it does not make"):
        verify(Program(program.arguments, program.steps[:-1], program.outputs))
    with pytest.raises(ValueError, match=r"^the program returns what it does not make"):
        verify(Program([], [], [Value((2,))]))


def test_values_made_twice_are_refused() -> None:
    program = small()
    with pytest.raises(ValueError, match=r"^step 1, exp, makes a value that another step makes"):
        verify(Program(program.arguments, [program.steps[0], *program.steps], program.outputs))
    x = Value((2,))
    first, second = Step(EXP, [x], [((2,), FLOAT)]), Step(EXP, [x], [((2,), FLOAT)])
    second.results = first.results
    with pytest.raises(ValueError, match=r"^step 0, exp, makes a value that another step makes"):
        verify(Program([x], [second], list(second.results)))


@pytest.mark.parametrize(
    ("shape", "offset", "strides"),
    [
        ((4,), 0, (8,)),
        ((3,), 8, (8,)),
        ((2,), 16, (-24,)),
        ((2, 2), 0, (8, 16)),
        ((), 24, ()),
        ((1,), -8, (8,)),
        ((2,), 0, (24,)),
    ],
)
def test_views_outside_of_their_memory(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> None:
    x = Value((3,))
    view = x.view(shape, offset, strides)
    step = Step(copy_kernel(shape), [view], [(shape, FLOAT)])
    with pytest.raises(ValueError, match=r"reads outside of the memory of a value of shape \(3,\)"):
        verify(Program([x], [step], list(step.results)))
    with pytest.raises(ValueError, match=r"reads outside of the memory of a value of shape \(3,\)"):
        verify(Program([x], [], [view]))


@pytest.mark.parametrize(
    ("shape", "offset", "strides"),
    [
        ((3,), 16, (-8,)),
        ((2,), 0, (16,)),
        ((5,), 16, (0,)),
        ((), 16, ()),
        ((0,), 80, (8,)),
        ((2, 2), 0, (8, 8)),
    ],
)
def test_views_within_their_memory(
    shape: tuple[int, ...], offset: int, strides: tuple[int, ...]
) -> None:
    x = Value((3,))
    verify(Program([x], [], [x.view(shape, offset, strides)]))


def test_views_of_views_lie_in_the_same_memory() -> None:
    x = Value((4, 3))
    view = x.view((3,), 24, (8,))
    within = view.view((2,), 32, (8,))
    assert view.base is within.base is x
    assert view.is_view
    assert not x.is_view
    assert not view.is_constant
    assert (view.size, x.size) == (3, 12)


def test_values_in_one_piece() -> None:
    x = Value((4, 3))
    assert x.is_contiguous
    assert x.strides == contiguous_strides((4, 3)) == (24, 8)
    assert x.view((4, 1), 0, (24, 8)).is_contiguous is False
    assert x.view((1, 1), 0, (24, 8)).is_contiguous
    assert x.view((2, 3), 24, (24, 8)).is_contiguous
    assert not x.view((3, 4), 0, (8, 24)).is_contiguous
    assert Value((0, 3)).is_contiguous
    assert Value((3,), np.dtype(bool)).strides == (1,)
    assert Value((2, 3), data=np.arange(6.0).reshape(3, 2).T).strides == (8, 16)


def test_guards_stay_if_nobody_reads_them() -> None:
    assert not GUARD.is_pure
    assert ADD.is_pure


def test_places_of_the_elements_of_a_view():
    x = np.arange(24.0).reshape(2, 3, 4)
    view = x[1, ::2, ::-1].T
    offset = view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    places = element_places(view.shape, view.strides, offset)
    np.testing.assert_array_equal(x.reshape(-1)[places], view)
