"""Products with sparse matrices as steps: the meaning, the bound call and the native loop agree."""

import numpy as np
import pytest
import scipy.sparse
from comparing import close
from layouts import returning, run_all, with_arguments

from varmat.programs.build.builder import Builder
from varmat.programs.kernels import sparse

X = scipy.sparse.random_array((6, 4), density=0.4, rng=np.random.default_rng(2), format="csr")
COLUMNS, STARTS = X.indices.astype(np.int64), X.indptr.astype(np.int64)
ROWS = np.repeat(np.arange(6), np.diff(STARTS))


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(width, transposed):
    tail = () if width is None else (width,)
    rows = X.shape[not transposed]
    b = np.cos(np.arange(rows * (width or 1)).reshape(rows, *tail) + 1.0)
    builder = Builder()
    arguments = [builder.argument(X.data.shape), builder.argument(b.shape)]
    constants = [builder.constant(x) for x in (COLUMNS, STARTS)]
    kernel = sparse.SparseProduct(X.shape, transposed)
    product = builder.call(kernel, arguments[0], *constants, arguments[1])
    for found in run_all(returning(builder, product), X.data, b).values():
        close(found[0], (X.T if transposed else X) @ b, 1e-14, 1e-15)
    assert kernel == sparse.SparseProduct(X.shape, transposed)
    assert kernel != sparse.SparseProduct(X.shape, not transposed)


@pytest.mark.parametrize("width", [None, 1, 3])
def test_sampled_products(width, monkeypatch):
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
        close(found[0], exact[ROWS, COLUMNS], 1e-14, 1e-15)


def test_the_native_runner_sees_changes_of_the_non_zeros():
    """Every run reads the non-zeros from the same memory anew."""
    builder, data = with_arguments(X.data.shape)
    constants = [builder.constant(x) for x in (COLUMNS, STARTS, np.ones(4))]
    product = builder.call(sparse.SparseProduct(X.shape, False), data, *constants)
    program = returning(builder, product)
    for scale in (1.0, -2.0):
        for found in run_all(program, scale * X.data).values():
            close(found[0], scale * X.sum(1), 1e-14)
