"""The reference interpreter: the meaning of the kernels, step by step."""

import numpy as np
import pytest
from comparing import close, equal, refuses
from layouts import with_arguments

import varmat as vm
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import FLOAT, ElsewhereError
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.python_calls import PythonCall


def program():
    builder, x, s = with_arguments((2, 3), ())
    y = builder.ufunc(np.multiply, builder.ufunc(np.exp, x), s)
    builder.guard(builder.compare(np.greater, s, builder.constant(0.0)))
    return builder.program(
        [builder.sum(y), builder.transposed(y), builder.constant(np.arange(2.0)), x]
    )


def test_outputs_are_arrays_of_their_own():
    x = np.arange(6.0).reshape(2, 3)
    total, turned, constant, same = interpret(program(), x, 2.0)
    assert total == pytest.approx(np.sum(2.0 * np.exp(x)), rel=1e-15)
    equal(turned, 2.0 * np.exp(x).T)
    equal(same, x)
    for made in (turned, constant, same):
        made += 1.0
    equal(x, np.arange(6.0).reshape(2, 3))
    equal(interpret(program(), x, 2.0)[2], [0.0, 1.0])


def test_arguments_may_lie_in_any_order_and_be_of_any_type():
    x = np.arange(6).reshape(3, 2).T
    equal(interpret(program(), x, 1)[3], x)
    close(interpret(program(), x, 1)[1], np.exp(x).T, 1e-15)


def test_a_guard_that_does_not_hold_ends_the_run():
    refuses(ElsewhereError, None, interpret, program(), np.ones((2, 3)), -1.0)
    refuses(ElsewhereError, None, interpret, program(), np.ones((2, 3)), np.nan)


def test_the_number_of_arguments():
    refuses(ValueError, "zip", interpret, program(), np.ones((2, 3)))


def test_nothing_warns():
    builder, x = with_arguments((2,))
    made = builder.call(
        ufunc_kernel(np.log), builder.call(ufunc_kernel(np.divide), x, builder.constant(0.0))
    )
    assert np.isnan(interpret(builder.program([made]), np.array([-1.0, 0.0]))[0]).all()


def test_errors_of_steps_are_raised():
    builder = Builder()

    def refuse(x):
        raise KeyError("mine")

    made = builder.call(PythonCall("refuse", refuse, [((), FLOAT)], True), builder.argument(()))
    refuses(KeyError, "mine", interpret, builder.program([made]), 1.0)


def test_a_program_explains_which_steps_call_python():
    f = vm.recorded(
        lambda x: np.sum(vm.betaln(x, 2.0)) + np.sum(np.linalg.svdvals(np.outer(x, x) + np.eye(3))),
        runner="numpy",
    )
    x = np.array([0.5, 1.0, 2.0])
    f(x)
    called = f.program.python_steps()
    assert called
    lines = f.program.explain(x).splitlines()
    assert lines[0] == f"{len(f.program)} steps; {len(called)} call Python:"
    assert len(lines) == 1 + len(called)
    assert all(line.endswith(" us") for line in lines[1:])
    assert not any(line.endswith(" us") for line in f.program.explain().splitlines())
