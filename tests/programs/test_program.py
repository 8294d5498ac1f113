"""Programs: printing, counting, and refusals."""

import numpy as np
import pytest
from comparing import equal, refuses
from layouts import with_arguments

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


def small():
    """Return a program with several kinds of steps."""
    builder, x, scale = with_arguments((2, 3), ())
    data = builder.constant(np.arange(3.0))
    y = builder.ufunc(np.multiply, builder.ufunc(np.exp, x), data)
    builder.guard(builder.compare(np.greater, scale, builder.constant(0.5)))
    column = builder.view(y, lambda a: a[:, 1])
    last = builder.view(y, lambda a: a[-1])
    corner = builder.element(y, 2)
    total = builder.ufunc(np.add, builder.sum(column), builder.ufunc(np.multiply, scale, corner))
    return builder.program([total, builder.contiguous(column), last, builder.transposed(y)])


def test_a_program_in_print():
    verify(small())
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


def test_numbers_of_steps():
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


def test_a_program_of_nothing():
    builder = Builder()
    program = builder.program([builder.constant(2.5)])
    verify(program)
    assert str(program) == "program()\n    return 2.5"
    assert len(program) == 0


def test_steps_of_several_results_and_of_none_in_print():
    builder, x = with_arguments((2,))
    results = [((2,), FLOAT), ((), FLOAT), ((), OBJECT)]
    made = builder.apply(PythonCall("both", lambda x: (x, 1.0, {}), results, True), x)
    builder.apply(PythonCall("print", lambda *_: (), [], False), *made)
    assert str(builder.program(made[:1])).splitlines()[1:3] == [
        "    v0[2], v1, v2 = both(a0)",
        "    print(v0, v1, v2)",
    ]


def wrong_programs():
    """Programs for which `verify` says what is wrong."""
    whole, x = small(), Value((2,))
    arguments, steps, outputs = whole.arguments, whole.steps, whole.outputs
    first, second = Step(EXP, [x], [((2,), FLOAT)]), Step(EXP, [x], [((2,), FLOAT)])
    second.results = first.results
    early, unmade, twice = (
        "before it is made",
        "the program returns what it does not make",
        "exp, makes",
    )
    return [
        (
            (arguments, steps[1:], outputs),
            r"step 0, multiply, reads a value of shape \(2, 3\) " + early,
        ),
        ((arguments[:1], steps, outputs), r"step 2, greater, reads a value of shape \(\) " + early),
        ((arguments, steps[:-1], outputs), unmade),
        (([], [], [x]), unmade),
        (
            (arguments, [steps[0], *steps], outputs),
            f"step 1, {twice} a value that another step makes",
        ),
        (([x], [second], [*second.results]), f"step 0, {twice} a value that another step makes"),
    ]


@pytest.mark.parametrize(("parts", "message"), wrong_programs())
def test_wrong_programs_are_refused(parts, message):
    refuses(ValueError, f"^{message}", verify, Program(*parts))


@pytest.mark.parametrize(("shape", "offset", "strides", "is_within"), [
    ((4,), 0, (8,), False),     ((3,), 8, (8,), False),     ((2,), 16, (-24,), False),
    ((2, 2), 0, (8, 16), False), ((), 24, (), False),       ((1,), -8, (8,), False),
    ((2,), 0, (24,), False),    ((3,), 16, (-8,), True),    ((2,), 0, (16,), True),
    ((5,), 16, (0,), True),     ((), 16, (), True),         ((0,), 80, (8,), True),
    ((2, 2), 0, (8, 8), True),
])  # fmt: skip
def test_views_lie_within_their_memory(shape, offset, strides, is_within):
    x = Value((3,))
    view = x.view(shape, offset, strides)
    step = Step(copy_kernel(shape), [view], [(shape, FLOAT)])
    for program in (Program([x], [step], [*step.results]), Program([x], [], [view])):
        if is_within:
            verify(program)
        else:
            message = r"reads outside of the memory of a value of shape \(3,\)"
            refuses(ValueError, message, verify, program)


def test_views_of_views_lie_in_the_same_memory():
    x = Value((4, 3))
    view = x.view((3,), 24, (8,))
    within = view.view((2,), 32, (8,))
    assert view.base is within.base is x
    assert view.is_view
    assert not x.is_view
    assert not view.is_constant
    assert (view.size, x.size) == (3, 12)


def test_values_in_one_piece():
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


def test_guards_stay_if_nobody_reads_them():
    assert not GUARD.is_pure
    assert ADD.is_pure


def test_places_of_the_elements_of_a_view():
    x = np.arange(24.0).reshape(2, 3, 4)
    view = x[1, ::2, ::-1].T
    offset = view.__array_interface__["data"][0] - x.__array_interface__["data"][0]
    places = element_places(view.shape, view.strides, offset)
    equal(x.reshape(-1)[places], view)
