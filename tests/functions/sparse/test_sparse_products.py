"""Products with sparse matrices whose non-zeros are variables or data: along all routes, and
against dense products.
"""

import sys

import numpy as np
import pytest
import scipy.sparse
from comparing import close, equal, refuses, refuses_as
from functions.sparse_matrices import DENSE, LEFT, LEFTS, RIGHT, RIGHTS, A, random_sparse, sparse
from recordings import agree

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

FORMATS = ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"]
EMPTY = scipy.sparse.csr_array((4, 5))


@pytest.mark.parametrize(("f", "b"), [
    (lambda w, b: sparse(w) @ b, RIGHT), (lambda w, b: sparse(w) @ b, RIGHTS),
     (lambda w, b: b @ sparse(w), LEFT),
    (lambda w, b: b @ sparse(w), LEFTS), (lambda w, b: sparse(w).T @ b, LEFT),
])  # fmt: skip
def test_products_of_variables(f, b):
    assert expect_ad(f, A.data, b).worst < 1e-13
    assert expect_ad_matvar(f, A.data, b).worst < 1e-13


@pytest.mark.parametrize("b", [RIGHT, RIGHTS])
def test_products_of_data_from_the_left(b):
    assert expect_ad(lambda x: A @ x, b).worst < 1e-13


@pytest.mark.parametrize("b", [LEFT, LEFTS])
def test_products_of_data_from_the_right(b):
    assert expect_ad(lambda x: x @ A, b).worst < 1e-13
    assert expect_ad_matvar(lambda x: x @ A, b).worst < 1e-13


def test_matvars():
    """A SciPy matrix does not defer to a `MatVar`, but our sparse matrix does."""
    assert expect_ad_matvar(lambda x: sparse(A.data) @ x, RIGHTS).worst < 1e-13


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("make", [lambda x: x, scipy.sparse.csr_matrix])
def test_every_format_is_data(kind, make):
    x = make(A).asformat(kind)
    for f, b, true in (
        (lambda b: x @ b, RIGHT, DENSE @ RIGHT),
        (lambda b: b @ x, LEFT, LEFT @ DENSE),
    ):
        value, pulled = vm.vjp(f, b)
        assert type(value) is np.ndarray
        close(value, true, 1e-14, 1e-15)
        (found,) = pulled(true)
        close(found, (true @ DENSE) if b is RIGHT else DENSE @ true, 1e-14, 1e-14)


def test_integers_and_other_ways_to_write_a_product():
    x = scipy.sparse.csr_array([[1, 0, 2], [0, 3, 0]])
    b, c = vm.var([1.0, 2.0, 3.0]), vm.var([1.0, 2.0])
    for y in (x @ b, x.dot(b), np.matmul(x, b), scipy.sparse.csr_matrix(x) @ b):
        equal(y.val, [7.0, 6.0])
    for y in (c @ x, np.matmul(c, x)):
        equal(y.val, [1.0, 6.0, 2.0])


@pytest.mark.parametrize(("f", "message"), [
    (lambda v: A @ v[:4],
     "matmul: b has shape (4,), but must have 5 rows, as many as the sparse matrix has columns!"),
    (lambda v: v @ A,
     ("matmul: a has shape (5,), but must be a vector or a matrix with 4 columns, as many as "
     "the sparse")),
    (lambda v: A @ v[0],
     ("matmul: b has shape (), but must be a vector or a matrix, because the other operand is "
     "sparse!")),
    (lambda v: A @ (v[:, None, None] * np.ones((1, 2, 3))),
     ("matmul: b has shape (5, 2, 3), but must be a vector or a matrix, because the other operand "
     "is sparse!")),
    (lambda v: scipy.sparse.coo_array(RIGHT) @ v,
     "matmul: a has shape (5,), but must be a matrix!"),
])  # fmt: skip
def test_shapes_that_do_not_fit(f, message):
    with vm.nested() as tape:
        v = vm.var(RIGHT)
        entries = len(tape)
        refuses_as(vm.ShapeError, message, f, v)
        assert len([entry for entry in tape[entries:] if entry[0].name.startswith("sparse")]) == 0


def test_complex_matrices_are_refused():
    message = r"^matmul: a has dtype complex128, but must be real numbers"
    refuses(TypeError, message, lambda: (A * 1j) @ vm.var(RIGHT))


@pytest.mark.parametrize("f", [
    lambda v: A * v, lambda v: A.multiply(v), lambda v: A * v[0],
])  # fmt: skip
def test_operations_that_scipy_sparse_does_not_defer_are_refused(f):
    message = r"^with a variable x, a matrix of scipy\.sparse supports only a @ x and x @ a: for"
    refuses(TypeError, message, f, vm.var(RIGHT))


@pytest.mark.parametrize("f", [
    lambda v: A + v, lambda v: v * A, lambda v: np.exp(v) - A,
     lambda v: vm.normal_lpdf(A, 0.0, 1.0),
    lambda v: vm.log_determinant(A), lambda v: vm.gradient(np.sum, A),
])  # fmt: skip
def test_where_it_must_be_dense(f):
    message = r"is a sparse csr_array, but must be dense here: varmat\.SparseVar\(w, x\) is the"
    refuses(TypeError, message, f, vm.var(RIGHT))


def test_other_functions_are_refused_arrays_as_ever():
    from scipy.sparse.linalg import spsolve

    message = r"cannot become a plain array, its derivative would be lost"
    refuses(TypeError, message, spsolve, scipy.sparse.csc_array(np.eye(5)), vm.var(RIGHT))


def squares(w, b):
    return (
        np.sum((sparse(w) @ b) ** 2)
        + np.sum(np.sin(sparse(w).to_dense()))
        + np.sum(np.exp(LEFTS @ sparse(w)))
    )


def test_recorded():
    """No step calls Python or makes a dense matrix."""
    large = random_sparse((300, 200), 0.02)
    b = np.cos(np.arange(200.0))
    agree(squares, (A.data, RIGHT), (2.0 * A.data, -0.5 * RIGHT), argnums=(0, 1))
    recorded = agree(
        lambda b: np.sum(np.sin(large @ b)) + np.sum((b @ large.T) ** 2), (b,), (2.0 * b,)
    )
    assert not recorded.program.python_steps()
    found = max(v.size for step in recorded.program.steps for v in (*step.operands, *step.results))
    assert found <= large.nnz


def test_second_derivatives_are_recorded():
    def f(w):
        return np.sum(np.sin(sparse(w) @ RIGHT))

    rows = A.tocoo().row
    y, x = A @ RIGHT, RIGHT[A.indices]
    exact = -np.sin(y)[rows][:, None] * np.outer(x, x) * (rows[:, None] == rows)
    close(vm.hessian(f)(A.data), exact, 1e-13, 1e-15)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0), (4, 5), (0, 0)])
def test_without_non_zeros(shape):
    x = scipy.sparse.csr_array(shape)
    m, n = shape
    assert expect_ad(lambda w, b: sparse(w, x) @ b, x.data, np.ones(n)).worst == 0.0
    assert expect_ad(lambda b: b @ x, np.ones((2, m))).worst == 0.0
    assert expect_ad(lambda w: sparse(w, x).to_dense(), x.data).worst == 0.0


def test_scipy_sparse_is_not_imported_for_a_look():
    from varmat.plain_arrays import is_scipy_sparse

    kept = sys.modules.pop("scipy.sparse")
    try:
        assert not is_scipy_sparse(A)
        assert "scipy.sparse" not in sys.modules
    finally:
        sys.modules["scipy.sparse"] = kept
