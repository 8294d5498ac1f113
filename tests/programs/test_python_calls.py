"""Steps that call Python: in order, once each; their errors are raised where a program is run."""

import time
import traceback
from pathlib import Path

import numpy as np
import pytest
from comparing import refuses
from layouts import of_one_step, returning, run_all, with_arguments
from recordings import in_threads

from programs.verified import verify
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import FLOAT, OBJECT, ElsewhereError
from varmat.programs.kernels.elementwise import PythonFunction
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.passes import optimised

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import NativeRunner


class MineError(Exception):
    pass


def raises_at_seven(x):
    if x[0] == 7.0:
        raise MineError("seven")
    return (x,)


def test_functions_of_python_are_called():
    run = NativeRunner(of_one_step(PythonFunction("cubed", lambda x: x**3), (3,)))
    assert run.calls_python
    assert run([np.array([1.0, 2.0, 3.0])])[1].tolist() == [1.0, 8.0, 27.0]


def test_an_error_of_a_step_is_raised_where_the_runner_is_called():
    builder, x = with_arguments((3,))
    made = builder.call(PythonCall("refuse", raises_at_seven, [((3,), FLOAT)], True), x)
    run = NativeRunner(builder.program([builder.sum(made), made]))
    for _ in range(3):
        assert run([np.ones(3)])[0] == 3.0
        with pytest.raises(MineError, match="seven") as caught:
            run([np.full(3, 7.0)])
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert "raises_at_seven" in names
        line = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert Path(line.filename).name == Path(__file__).name
        assert line.line == 'raise MineError("seven")'
    assert run([np.ones(3)])[0] == 3.0


def test_errors_of_several_threads_are_their_own():
    def refuse(x):
        time.sleep(0.0005)
        raise MineError(float(x[0]))

    builder, x = with_arguments((1,))
    made = builder.call(PythonCall("refuse", refuse, [((1,), FLOAT)], False), x)
    run = NativeRunner(builder.program([builder.sum(made)]))
    wrong = []

    def work(k):
        for _ in range(50):
            try:
                run([np.array([k])])
                wrong.append(None)
            except MineError as error:
                if error.args != (k,):
                    wrong.append(error)

    in_threads(work, map(float, range(6)))
    assert not wrong


def test_interrupts_go_through():
    def interrupt(x):
        raise KeyboardInterrupt

    run = NativeRunner(
        of_one_step(PythonCall("interrupt", interrupt, [((2,), FLOAT)], False), (2,))
    )
    refuses(KeyboardInterrupt, None, run, [np.ones(2)])


def test_values_that_only_python_steps_understand():
    builder, x = with_arguments((2,))
    keep = PythonCall("keep", lambda x: ({"x": x},), [((), OBJECT)], True)
    take = PythonCall("take", lambda kept: (kept["x"] + 1.0,), [((2,), FLOAT)], True)
    made = builder.call(take, builder.call(keep, x))
    for found in run_all(returning(builder, made), np.array([1.0, 2.0])).values():
        assert found[0].tolist() == [2.0, 3.0]


def test_calls_of_python_are_not_computed_ahead():
    builder = Builder()
    calls = []
    kernel = PythonCall("noted", lambda x: calls.append(x) or (x,), [((), FLOAT)], True)
    assert not builder.call(kernel, builder.constant(1.0)).is_constant
    assert not calls
    assert [step.kernel for step in builder.steps] == [kernel]


def test_calls_of_python_stay_in_order():
    builder, calls = Builder(), []
    x = builder.argument((20,))
    terms = []
    for i in range(20):
        element = builder.element(x, i)
        builder.guard(builder.compare(np.greater, element, builder.constant(0.0)))

        def noted(a, i=i):
            calls.append(i)
            return (np.exp(a),)

        kernel = PythonCall(f"call {i}", noted, [((), FLOAT)], False)
        terms.append(builder.ufunc(np.log, *builder.apply(kernel, element)))
    program = optimised(builder.program([builder.add_all(terms)]))
    verify(program)
    assert interpret(program, np.arange(1.0, 21.0)) == [pytest.approx(210.0, rel=1e-15)]
    assert calls == list(range(20))
    assert program.counts()["log"] == 1
    refuses(ElsewhereError, None, interpret, program, np.where(np.arange(20) == 7, -1.0, 1.0))
    # The guards come before the first call that depends on any of them, so all 20 calls are
    # avoided.
    assert calls == list(range(20))
