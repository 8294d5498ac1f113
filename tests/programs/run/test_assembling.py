"""Arrays made of elements, parts or rows of others, in native code."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import returning, run_all

import varmat as vm
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import Value
from varmat.programs.kernels.loop import Loop
from varmat.programs.kernels.places import GATHER, Assemble
from varmat.programs.run import has_native

pytestmark = pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")


@pytest.mark.parametrize("order", ["C", "F", "part"])
@pytest.mark.parametrize(("rows", "columns"), [(77, 21), (96, 17), (101, 40), (333, 24)])
def test_products_with_the_rows_of_a_matrix_are_part_of_a_loop(
    rows: int, columns: int, order: str
) -> None:
    """The last turns of both loops overlap with the ones before, and count once."""
    rng = np.random.default_rng(rows + columns)
    whole = rng.normal(size=(rows, 2 * columns))
    matrix = whole[:, columns:] if order == "part" else np.array(whole[:, columns:], order=order)
    passed = (rng.random(rows) < 0.5).astype(int)

    def f(b):  # type: ignore[no-untyped-def]
        logits = vm.bernoulli_logit_glm_lpmf(passed, matrix, 0.0, b)
        return logits + np.sum(np.sin(np.exp(b) @ matrix.T))

    recorded = vm.recorded(f, runner="native")
    point = 0.1 * rng.normal(size=columns)
    recorded(point)
    value, gradient = recorded(1.1 * point)
    expected, slopes = vm.value_and_grad(f)(1.1 * point)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12, atol=1e-13 * np.max(np.abs(slopes)))


@pytest.mark.parametrize("rows", [5, 40])
def test_products_with_a_part_of_an_argument(rows: int) -> None:
    builder = Builder()
    x, y = builder.argument((rows * 10, 60)), builder.argument((20,))
    product = builder.matmul(builder.view(x, lambda a: a[rows:, 30:50]), y)
    program = returning(builder, builder.ufunc(np.sin, product))
    rng = np.random.default_rng(rows)
    given = [rng.normal(size=v.shape) for v in program.arguments]
    for found in run_all(program, *given).values():
        expected = np.sin(given[0][rows:, 30:50] @ given[1])
        np.testing.assert_allclose(found[0], expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n", [6, 60])
@pytest.mark.parametrize("order", ["sorted", "shuffled", "rows of a loop"])
def test_elements_are_added_where_the_index_says(order: str, n: int) -> None:
    """One place gets nothing, and others get several elements."""
    rng, count = np.random.default_rng(n), 3 * n
    places = rng.integers(0, n, size=(4, count))
    places[places == 2] = 3
    places = places if order == "rows of a loop" else places[0]
    places = np.sort(places) if order == "sorted" else places
    builder = Builder()
    x, index = builder.argument((count,)), builder.constant(places)
    kernel = Assemble((n,), (None,), ((count,),))
    if places.ndim == 1:
        made = [builder.call(kernel, x, index), builder.call(GATHER, x, index)]
    else:
        body = Builder()
        row = Value((count,), places.dtype)
        body.arguments.append(row)
        y = body.argument((count,))
        outputs = [body.call(kernel, y, row), body.call(GATHER, y, row)]
        made = builder.apply(Loop(body.program(outputs), 4, 0, 1), index, x)
    values = rng.normal(size=count)
    expected = np.zeros(n)
    np.add.at(expected, places.ravel(), np.broadcast_to(values, places.shape).ravel())
    for found in run_all(returning(builder, *made), values).values():
        np.testing.assert_allclose(found[0], expected, rtol=1e-13, atol=1e-14)
        total = values[places].reshape(-1, count).sum(0)
        np.testing.assert_allclose(found[1], total, rtol=1e-13, atol=1e-14)
