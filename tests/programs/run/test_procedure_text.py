"""Procedures as text of Python."""

import numpy as np
from comparing import close, equal

from varmat.programs.build.procedures import procedure
from varmat.programs.build.scalar_functions import ADD, ScalarFunction
from varmat.programs.ir import statements as s
from varmat.programs.run.procedure_text import functions_of, run_text

LOG_OF_INVERSE = ScalarFunction(lambda x: np.log(1.0 / x), 1)


def sums(is_backwards, *, has_log=False):
    """Sums of logarithms along an array, of the second column where the first is not 0."""
    x, out, total = s.Storage((4, 2)), s.Storage((4,)), s.Cell("total", is_temporary=False)
    i, j, value, made = (
        s.Cell("i", is_integer=True), s.Cell("", is_integer=True), s.Cell(), s.Cell(),
    )  # fmt: skip
    body = [
        s.Load(j, x, (i, 0.0)),
        s.If(
            j,
            [s.Load(value, x, (i, 1.0)), s.Compute(made, LOG_OF_INVERSE, (value,)),
             s.Add(total, made)],
            [s.Compute(total, ADD, (total, 1.0))],
        ),
        s.Store(out, (s.Affine(((i, -1),), 3),), total, s.Stack() if has_log else None),
    ]  # fmt: skip
    loop = s.For(i, 0.0, 3.0, body, is_backwards, 4)
    return procedure([x], [out], [loop])


def test_text_means_what_statements_mean():
    x = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 0.5], [1.0, 4.0]])
    for is_backwards in (False, True):
        kernel = sums(is_backwards)
        functions = functions_of(kernel)
        (found,) = run_text(kernel, functions, [x])
        close(found, kernel.evaluate(x)[0], 1e-15)


def test_numbers_beyond_those_of_python():
    x = np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    kernel = sums(False)
    functions = functions_of(kernel)
    (found,) = run_text(kernel, functions, [x])
    equal(found[::-1], [np.inf, np.nan, np.nan, np.nan])


def test_procedures_without_text():
    assert functions_of(sums(False, has_log=True)) is None
