"""Arrays made of elements, parts or rows of others, in native code."""

from __future__ import annotations

import numpy as np
import pytest

import varmat as vm
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
