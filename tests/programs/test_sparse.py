"""Products with sparse matrices as steps: the meaning, the bound call and the native loop agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from layouts import returning, run_all

from varmat.programs.build.builder import Builder
from varmat.programs.kernels import sparse

X = scipy.sparse.random_array((6, 4), density=0.4, rng=np.random.default_rng(2), format="csr")
COLUMNS, STARTS = X.indices.astype(np.int64), X.indptr.astype(np.int64)
ROWS = np.repeat(np.arange(6), np.diff(STARTS))


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(width: Any, transposed: bool) -> None:
    b = np.cos(
        np.arange(X.shape[not transposed] * (width or 1)).reshape(
            -1, *() if width is None else (width,)
        )
        + 1.0
    )
    builder = Builder()
    arguments = [builder.argument(X.data.shape), builder.argument(b.shape)]
    constants = [builder.constant(x) for x in (COLUMNS, STARTS)]
    kernel = sparse.SparseProduct(X.shape, transposed)
    product = builder.call(kernel, arguments[0], *constants, arguments[1])
    for found in run_all(returning(builder, product), X.data, b).values():
        np.testing.assert_allclose(found[0], (X.T if transposed else X) @ b, rtol=1e-14, atol=1e-15)
    assert (
        kernel
        == sparse.SparseProduct(X.shape, transposed)
        != sparse.SparseProduct(X.shape, not transposed)
    )


@pytest.mark.parametrize("width", [None, 1, 3])
def test_sampled_products(width: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "BLOCK", 4)
    tail = () if width is None else (width,)
    x, y = (np.sin(np.arange(n * (width or 1)) + 0.5).reshape(n, *tail) for n in X.shape)
    builder = Builder()
    arguments = [builder.argument(each.shape) for each in (x, y)]
    product = builder.call(
        sparse.SAMPLED, *arguments, builder.constant(ROWS), builder.constant(COLUMNS)
    )
    exact = np.outer(x, y) if width is None else x @ y.T
    for found in run_all(returning(builder, product), x, y).values():
        np.testing.assert_allclose(found[0], exact[ROWS, COLUMNS], rtol=1e-14, atol=1e-15)


def test_the_native_runner_sees_changes_of_the_non_zeros() -> None:
    """Every run reads the non-zeros from the same memory anew."""
    builder = Builder()
    data = builder.argument(X.data.shape)
    constants = [builder.constant(x) for x in (COLUMNS, STARTS, np.ones(4))]
    product = builder.call(sparse.SparseProduct(X.shape, False), data, *constants)
    program = returning(builder, product)
    for scale in (1.0, -2.0):
        for found in run_all(program, scale * X.data).values():
            np.testing.assert_allclose(found[0], scale * X.sum(1), rtol=1e-14)
