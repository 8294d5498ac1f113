"""Arrays made of elements, parts or rows of others, in native code."""

import numpy as np
import pytest
from comparing import close, equal, near
from layouts import returning, run_all, with_arguments

import varmat as vm
from varmat.programs.build.builder import Builder
from varmat.programs.kernels.places import GATHER, Assemble
from varmat.programs.run import has_native

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")


@pytest.mark.parametrize("order", ["C", "F", "part"])
@pytest.mark.parametrize(("rows", "columns"), [(77, 21), (96, 17), (101, 40), (333, 24)])
def test_products_with_the_rows_of_a_matrix_are_part_of_a_loop(rows, columns, order):
    """The last turns of both loops overlap with the ones before, and count once."""
    rng = np.random.default_rng(rows + columns)
    whole = rng.normal(size=(rows, 2 * columns))
    matrix = whole[:, columns:] if order == "part" else np.array(whole[:, columns:], order=order)
    passed = (rng.random(rows) < 0.5).astype(int)

    def f(b):
        logits = vm.bernoulli_logit_glm_lpmf(passed, matrix, 0.0, b)
        return logits + np.sum(np.sin(np.exp(b) @ matrix.T))

    recorded = vm.recorded(f, runner="native")
    point = 0.1 * rng.normal(size=columns)
    recorded(point)
    near(recorded(1.1 * point), vm.value_and_grad(f)(1.1 * point), 1e-13)


@pytest.mark.parametrize("rows", [5, 40])
def test_products_with_a_part_of_an_argument(rows):
    builder, x, y = with_arguments((rows * 10, 60), (20,))
    product = builder.matmul(builder.view(x, lambda a: a[rows:, 30:50]), y)
    program = returning(builder, builder.ufunc(np.sin, product))
    rng = np.random.default_rng(rows)
    given = [rng.normal(size=v.shape) for v in program.arguments]
    for found in run_all(program, *given).values():
        expected = np.sin(given[0][rows:, 30:50] @ given[1])
        close(found[0], expected, 1e-12, 1e-13)


@pytest.mark.parametrize("n", [6, 60])
@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_elements_are_added_where_the_index_says(order, n):
    """One place gets nothing, and others get several elements."""
    rng, count = np.random.default_rng(n), 3 * n
    places = rng.integers(0, n, size=count)
    places[places == 2] = 3
    places = np.sort(places) if order == "sorted" else places
    builder = Builder()
    x, index = builder.argument((count,)), builder.constant(places)
    added = builder.call(Assemble((n,), (None,), ((count,),)), x, index)
    values = rng.normal(size=count)
    expected = np.zeros(n)
    np.add.at(expected, places, values)
    program = returning(builder, added, builder.call(GATHER, x, index))
    for found in run_all(program, values).values():
        close(found[0], expected, 1e-13, 1e-14)
        equal(found[1], values[places])


def test_a_part_of_a_long_array_is_written_after_the_rest():
    def f(x):
        y = np.exp(x / np.sum(x))
        y[5:30] = 2.0 * x[40:65]
        return y @ np.cos(y[::-1])

    recorded, x = vm.recorded(f, runner="native"), np.linspace(0.1, 1.0, 200)
    recorded(x)
    near(recorded(x**2), vm.value_and_grad(f)(x**2), 1e-13)
