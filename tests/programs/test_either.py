"""Two ways through a function that branches are one program."""

import numpy as np
import pytest
from comparing import close, refuses

from varmat.derivatives.recorded_programs import record_values
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import ElsewhereError, RecordingError
from varmat.programs.passes.either import either
from varmat.programs.record.conditions import Branches


def program_at(f, *point):
    return record_values(lambda v: [f(v)], np.array(point), follows=Branches())[0]


def logarithm(v):
    """Each branch is nan, or would end the run, where the other is taken."""
    if v[0] > 1.0:
        return np.log(v[0] - 1.0) * v[1]
    return np.sqrt(1.0 - v[0]) + v[1]


def test_a_program_holds_where_it_takes_the_same_branch():
    program = program_at(logarithm, 2.0, 3.0)
    assert interpret(program, np.array([3.0, 2.0]))[1] == np.log(2.0) * 2.0
    refuses(ElsewhereError, None, interpret, program, np.array([0.5, 2.0]))
    with pytest.raises(RecordingError, match="it branches"):
        record_values(lambda v: [logarithm(v)], np.array([2.0, 3.0]))


def test_two_programs_are_one_that_takes_what_holds():
    both = either(program_at(logarithm, 2.0, 3.0), program_at(logarithm, 0.5, 3.0))
    for point in ([3.0, 2.0], [0.5, 2.0], [1.0, -1.0]):
        found = interpret(both, np.array(point))[1]
        close(found, logarithm(np.array(point)), 1e-15)


def test_of_three_branches_two_programs_leave_one_out():
    def f(v):
        return v[0] if v[0] > 2.0 else v[0] ** 2 if v[0] > 1.0 else v[0] ** 3

    two = either(program_at(f, 3.0), program_at(f, 1.5))
    refuses(ElsewhereError, None, interpret, two, np.array([0.5]))
    three = either(two, program_at(f, 0.5))
    assert [float(interpret(three, np.array([x]))[1]) for x in (3.0, 1.5, 0.5)] == [3, 2.25, 0.125]
