"""Sums of sums as one sum."""

import numpy as np
from comparing import close
from layouts import with_arguments

from varmat.programs.ir.interpret import interpret
from varmat.programs.passes.sums import flattened


def accumulated(count):
    """Return the program of a chain of additions and subtractions of two arguments and
    constants.
    """
    builder, x, y = with_arguments((), ())
    total = builder.ufunc(np.exp, x)
    for i in range(count):
        term = builder.ufunc(np.multiply, x, y) if i % 3 else builder.constant(float(i))
        total = builder.ufunc(np.subtract if i % 2 else np.add, total, term)
    return builder.program([total])


def test_long_accumulations_are_one_sum():
    program = flattened(accumulated(30))
    assert len(program) < 8
    expected = interpret(accumulated(30), 1.0, 2.0)
    close(interpret(program, 1.0, 2.0), expected, 1e-12)


def test_short_sums_stay_as_they_are_written():
    assert flattened(accumulated(6)).counts() == accumulated(6).counts()
