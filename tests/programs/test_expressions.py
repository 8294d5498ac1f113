"""Rows of the elementwise table in programs."""

import numpy as np
import pytest
from comparing import close, equal
from layouts import returning, run_all, with_arguments
from recordings import agree, vectors

import varmat as vm
from varmat.core.elementwise import ROWS
from varmat.programs.build.builder import Builder
from varmat.programs.build.expressions import apply_row
from varmat.programs.ir.program import BOOL
from varmat.programs.kernels.elementwise import PythonFunction
from varmat.programs.record.conditions import COMPARISON_OF, FIXED, SELECTION

X, Y = np.array([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]]), np.array([1.5, 0.2, -0.4])


def test_rows_of_the_table_become_ufuncs():
    for name, steps in (("exp", ["exp"]), ("gammaln", ["gammaln"]), ("square", ["square"])):
        builder = Builder()
        apply_row(builder, ROWS[name], [builder.argument((3,))])
        assert [step.kernel.name for step in builder.steps] == steps


def test_conditions_are_steps_of_truth_values():
    builder, x, y = with_arguments((3,), (3,))
    assert apply_row(builder, FIXED, [x]) is x
    less = apply_row(builder, {f: row for row, f in COMPARISON_OF.items()}[np.less], [x, y])
    assert less.dtype == BOOL
    chosen = apply_row(builder, SELECTION, [less, x, y])
    assert [step.kernel.name for step in builder.steps] == ["less", "where"]
    for found in run_all(returning(builder, chosen), Y, Y[::-1].copy()).values():
        equal(found[0], np.minimum(Y, Y[::-1]))


# So many rows are one program, because most take longer to compile than to run.
TOGETHER = 12
NAMED = [name for name in sorted(ROWS) if ROWS[name].points]


@pytest.mark.parametrize("start", range(0, len(NAMED), TOGETHER))
def test_every_row_is_traced(start):
    """Nothing calls Python, except functions for which there is no ufunc."""
    builder, arrays, values, expected = Builder(), [], [], []
    names = NAMED[start : start + TOGETHER]
    for name in names:
        row, given = ROWS[name], [np.array([x, x]) for x in ROWS[name].points[0]]
        before = len(builder.steps)
        values.append(apply_row(builder, row, [builder.argument((2,)) for _ in given]))
        steps = builder.steps[before:]
        calls_python = any(isinstance(step.kernel, PythonFunction) for step in steps)
        assert not (calls_python and hasattr(row.ufunc, "types")), name
        with np.errstate(all="ignore"):
            expected.append(np.asarray(row.ufunc(*given), float))
        arrays += given
    for runner, found in run_all(returning(builder, *values), *arrays).items():
        for name, made, true in zip(names, found, expected, strict=True):
            message = f"{name}, {runner}"
            np.testing.assert_allclose(made, true, rtol=1e-13, equal_nan=True, err_msg=message)


def test_functions_of_python_that_are_no_formulas_are_called():
    half = np.frompyfunc(lambda x: x / 2 if x > 0 else x, 1, 1)
    row = vm.elementwise("half_of", half, "g * where(x > 0, 0.5, 1.0)", scalar=half)
    builder = Builder()
    made = apply_row(builder, row, [builder.argument((3,))])
    assert isinstance(made.step.kernel, PythonFunction)
    for found in run_all(returning(builder, made), Y).values():
        equal(found[0], np.where(Y > 0, Y / 2, Y))


def cubed(name):
    """Return a row of which only the name is unusual."""
    return vm.elementwise(
        name, np.frompyfunc(lambda x: x**3, 1, 1), "3.0 * g * square(x)", scalar=lambda x: x**3
    )


NAMES = [
    "greater", "less", "not_equal", "selection", "total", "whole", "zeros", "del", "lambda", "None",
    "copy", "g", "x", "v0", "k2", "empty", "filled", "out", "sum", "guard", "gather", "two words",
]  # fmt: skip


@pytest.mark.parametrize("start", range(4))
def test_names_of_rows_mean_nothing_to_a_program(start):
    """The names do not collide with the names of comparisons, sums and constants either."""
    rows = [cubed(name) for name in NAMES[start::4]]

    def f(x):
        total = 0.0
        for k, row in enumerate(rows):
            total = total + np.sum(row(x) * x) + np.sum(np.where(x > 0.1 * k, row(x), -x))
            total = total + row(x[0]) + np.sum((x < 0.2) * x) + np.sum(x) * 3.0
        return total

    def of_shapes(x):
        total = 0.0
        for row in rows:
            total = total + np.sum(row(x[:2])) * row(x[3]) + np.sum(row(x[:, None]) + x)
            total = total + np.sum(np.outer(row(x), x) * np.outer(x, row(x)))
            total = total + np.sum(row(x)[[0, 2, 2]]) + np.sum(row(np.concatenate([x, x[:2]])))
        return total

    agree(f, *vectors(4))
    agree(of_shapes, *vectors(5))
    point = np.linspace(-1.0, 1.0, 4)
    models = [vm.Model(f, x=vm.real(4), recorded=recorded) for recorded in (True, False)]
    found, expected = (model.log_density_gradient(point) for model in models)
    close(found, expected, 1e-13)


def test_rows_of_two_and_three_operands_that_are_called_as_comparisons():
    def product(x, y):
        return x * y * y

    def difference(x, y, z):
        return x * y - z

    greater = vm.elementwise(
        "greater", np.frompyfunc(product, 2, 1), "g * y * y", "2.0 * g * x * y", scalar=product
    )
    chosen = vm.elementwise(
        "selection", np.frompyfunc(difference, 3, 1), "g * y", "g * x", "-g", scalar=difference
    )

    def f(x):
        sums = np.sum(greater(x, x[::-1]) * np.where(x > 0.3, x, 2.0))
        return sums + np.sum(chosen(x, x[0], np.sin(x)) ** 2)

    agree(f, *vectors(4))


def test_a_name_that_is_registered_twice():
    """Each row keeps its own meaning, whichever was registered first."""
    first, ufunc = cubed("mine"), np.frompyfunc(lambda x: x**2, 1, 1)
    second = vm.elementwise("mine", ufunc, "2.0 * g * x", scalar=lambda x: x**2)

    def both(x):
        return np.sum(first(x)) + 10.0 * np.sum(second(x)) + first(x[0]) * second(x[1])

    agree(both, *vectors(3))
    agree(lambda x: np.sum(second(x)) + 10.0 * np.sum(first(x)), *vectors(3))
    x = np.array([0.5, -1.0, 2.0])
    model = vm.Model(lambda x: -np.sum((first(x) - second(x)) ** 2), x=vm.real(3), recorded=True)
    value, gradient = model.log_density_gradient(x)
    assert value == pytest.approx(-np.sum((x**3 - x**2) ** 2), rel=1e-13)
    close(gradient, -2.0 * (x**3 - x**2) * (3.0 * x**2 - 2.0 * x), 1e-13)
