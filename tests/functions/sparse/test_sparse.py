"""`SparseVar` and Stan's functions of sparse matrices: values, all routes, and refusals."""

import numpy as np
import pytest
import scipy.sparse
import stan
from comparing import DOMAIN, SHAPE, close, equal, refuses_as
from functions.sparse_matrices import DENSE, RIGHT, RIGHTS, A, B, random_sparse, sparse

import varmat as vm
from varmat.testing import expect_ad, expect_ad_matvar

INDICES, STARTS = A.indices + 1, A.indptr + 1
SQUARE = random_sparse((4, 4))
TALL = random_sparse((5, 3), 0.5)
W, V, U = np.array([1.0, 2.0]), [1, 2], [1, 2, 3]


# --- the variable ---


def test_attributes_of_a_sparse_variable():
    a = vm.var(A)
    assert type(a) is vm.SparseVar
    assert (a.shape, a.ndim, a.nnz) == ((4, 5), 2, A.nnz)
    assert type(a.data) is vm.VarMat
    assert (np.shape(a), np.ndim(a)) == ((4, 5), 2)
    np.sum((a @ RIGHT) ** 2).grad()
    for found, true in (
        (a.val, DENSE),
        (a.T.val, DENSE.T),
        (a.adj, (A != 0) * np.outer(2.0 * (A @ RIGHT), RIGHT)),
    ):
        assert scipy.sparse.issparse(found)
        close(found.toarray(), true.toarray() if scipy.sparse.issparse(true) else true, 1e-15)
    assert scipy.sparse.issparse(vm.value(a))
    assert (
        repr(sparse([5.0], scipy.sparse.csr_array([[0.0, 1.0]])))
        == "SparseVar(1 x 2, 1 non-zeros: array([5.]))"
    )


def test_values_are_its_own():
    x = A.copy()
    a = vm.var(x)
    x.data[:], x.indices[:] = 0.0, 0
    equal(a.val.toarray(), DENSE)
    a.val.data[:] = 0.0
    equal(a.val.toarray(), DENSE)


@pytest.mark.parametrize("make", [
    scipy.sparse.coo_matrix,
    scipy.sparse.csc_array,
    lambda x: vm.var(x),
    lambda x: vm.var(x).pattern,
])  # fmt: skip
def test_patterns(make):
    equal(sparse(A.data, make(A)).val.toarray(), DENSE)


def test_zeros_that_are_stored_are_part_of_the_pattern():
    x = A.copy()
    x.data[0] = 0.0
    assert vm.var(x).nnz == A.nnz


# Expressions of sparse matrices, and where they are written otherwise the same of dense ones.
EXPRESSIONS = [
    *((f, f) for f in (
        lambda a, b: a.T, lambda a, b: -a, lambda a, b: a + b, lambda a, b: a - b,
        lambda a, b: a * b, lambda a, b: a @ b.T, lambda a, b: 3.0 * a, lambda a, b: a / 3.0,
        lambda a, b: a * np.arange(4.0)[:, None], lambda a, b: np.arange(5.0) * a,
        lambda a, b: a / np.arange(1.0, 6.0), lambda a, b: np.positive(a),
    )),
    (lambda a, b: a * a.with_data(a.data * 2.0), lambda a, b: 2.0 * a * a),
    (lambda a, b: B.T @ a, lambda a, b: B.toarray().T @ a),
    (lambda a, b: a @ TALL, lambda a, b: a @ TALL.toarray()),
    (lambda a, b: B + a, lambda a, b: B.toarray() + a),
    (lambda a, b: B - a, lambda a, b: B.toarray() - a),
    (lambda a, b: B * a, lambda a, b: B.toarray() * a),
    (lambda a, b: a.multiply(DENSE), lambda a, b: a * DENSE),
]  # fmt: skip


@pytest.mark.parametrize(("ours", "dense"), EXPRESSIONS)
def test_arithmetic(ours, dense):
    def f(v, w):
        return ours(sparse(v), sparse(w, B)).to_dense()

    def g(v, w):
        return dense(sparse(v).to_dense(), sparse(w, B).to_dense())

    assert expect_ad(f, A.data, B.data).worst < 1e-13
    close(f(A.data, B.data), dense(DENSE, B.toarray()), 1e-14)
    found, true = (vm.jacobian(lambda x, h=h: h(*x), [A.data, B.data]) for h in (f, g))
    close(found, true, 1e-14, 1e-15)


def test_matvars():
    report = expect_ad_matvar(lambda v, w: (sparse(v) @ sparse(w, B).T * 2.0).data, A.data, B.data)
    assert report.worst < 1e-13


@pytest.mark.parametrize(("f", "dense"), [
    (lambda a: a.sum(), np.sum), (lambda a: a.sum(0), lambda x: x.sum(0)),
     (lambda a: np.sum(a, axis=-1), lambda x: x.sum(1)),
    (lambda a: a.diagonal(), np.diagonal), (lambda a: np.trace(a), np.trace),
     (lambda a: np.transpose(a).toarray(), np.transpose),
])  # fmt: skip
@pytest.mark.parametrize("x", [A, SQUARE, TALL])
def test_sums_and_diagonals(f, dense, x):
    assert expect_ad(lambda w: f(sparse(w, x)), x.data).worst < 1e-13
    close(f(sparse(x.data, x)), dense(x.toarray()), 1e-14)


def test_variables_beside_it():
    def f(w, s, v):
        return ((s * sparse(w)) / (s * s + 2.0) * v + sparse(w) * v[:, None][:4]).data

    assert expect_ad(f, A.data, 1.7, RIGHT).worst < 1e-13


BESIDE = "the other operand of a SparseVar is of type"
NO_MATRIX = "is a ndarray, but must be a sparse matrix: of scipy.sparse, or a SparseVar!"


@pytest.mark.parametrize(("f", "error", "text"), [
    (lambda a: a + 1.0, TypeError, f"add: {BESIDE} float, but must be sparse as well: use a.to"),
    (lambda a: DENSE - a, TypeError, f"sub: {BESIDE} ndarray, but must be sparse as well:"),
    (lambda a: np.ones(3) / a, TypeError, f"divide: {BESIDE} ndarray, but must be sparse as well:"),
    (lambda a: a / a, TypeError,
     "divide: a sparse matrix is divided by one, whose zeros would make it dense, but must be by"),
    *((f, TypeError, "multiply: a csr_matrix, whose * is the matrix product, is multiplied")
      for f in (lambda a: a * scipy.sparse.csr_matrix(A),
                lambda a: scipy.sparse.csr_matrix(A.T) * a)),
    (lambda a: a * RIGHT[:3], SHAPE,
     ("multiply: operand 2 has shape (3,), but must broadcast to the shape of the SparseVar, (4, "
     "5)!")),
    (lambda a: a + a.T, SHAPE,
     ("add: operand 2 has shape (5, 4), but must have the shape of operand 1, (4, 5), because "
     "both are sparse!")),
    (lambda a: a @ a, SHAPE,
     "matmul: b has shape (4, 5), but must have 5 rows, because a has shape (4, 5)!"),
    (lambda a: np.exp(a), TypeError,
     "exp does not support a SparseVar: use varmat.SparseVar(np.exp(a.data), a) for its"),
    (lambda a: np.linalg.norm(a), TypeError,
     "numpy.linalg.norm does not support a SparseVar: use a.data, its non-zeros, or"),
    (lambda a: a.sum(2), DOMAIN, "axis is 2, but must be 0 or 1!"),
    (lambda a: a[0], TypeError, "'SparseVar' object is not subscriptable"),
    (lambda a: vm.SparseVar(a.data[1:], a), SHAPE,
     "data has shape (7,), but must be a vector of the 8 non-zeros!"),
    (lambda a: vm.SparseVar(a.data, DENSE), TypeError, f"pattern {NO_MATRIX}"),
    (lambda a: vm.to_dense(DENSE), TypeError, f"a {NO_MATRIX}"),
    (lambda a: vm.sparse_quad_form(DENSE, RIGHT), TypeError, f"a {NO_MATRIX}"),
    (lambda a: vm.var(A * 1j), TypeError,
     "the argument has dtype complex128, but must be real numbers (float64, or what converts"),
    (lambda a: vm.sparse_quad_form(a, RIGHT), SHAPE, "a has shape (4, 5), but must be a square"),
    (lambda a: vm.csr_extract_w(W), SHAPE, "a has shape (2,), but must be a matrix!"),
])  # fmt: skip
def test_refusals(f, error, text):
    refuses_as(error, text, f, vm.var(A))


def test_elements_that_come_twice_or_out_of_order():
    """SciPy's own products make such matrices. Elements in the same place are added."""
    twice = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    a = vm.var(twice)
    for found, true in (
        ((a + a).to_dense(), [[4.0, 8.0]]),
        (a @ [2.0, 1.0], [8.0]),
        ((a * a).to_dense(), [[4.0, 16.0]]),
    ):
        equal(found.val, true)
    assert expect_ad(lambda w: (sparse(w, twice) * sparse(w, twice)).data, twice.data).worst < 1e-13
    sorted_out = a.in_order()
    assert sorted_out.in_order() is sorted_out


# --- functions ---


@pytest.mark.parametrize("b", [RIGHT[:4], RIGHTS[:4]])
def test_quadratic_forms(b):
    def f(w, b):
        return vm.sparse_quad_form(sparse(w, SQUARE), b)

    assert expect_ad(f, SQUARE.data, b).worst < 1e-13
    assert expect_ad_matvar(f, SQUARE.data, b).worst < 1e-13
    close(vm.sparse_quad_form(SQUARE, b), b.T @ SQUARE.toarray() @ b, 1e-14)


def test_dense_matrices():
    assert expect_ad(lambda w: vm.to_dense(sparse(w)), A.data).worst < 1e-13
    equal(vm.to_dense(A), DENSE)


def test_of_a_dense_matrix():
    assert expect_ad(lambda x: vm.csr_extract_w(x * (DENSE != 0.0)), DENSE + 0.5).worst < 1e-13
    assert expect_ad(lambda w: vm.csr_extract(sparse(w))[0], A.data).worst < 1e-13


def test_a_recording_holds_for_the_same_zeros():
    f = vm.recorded(lambda x: np.sum(vm.csr_extract_w(x) ** 3))
    for x in (DENSE, 2.0 * DENSE, DENSE + 0.5):
        value, gradient = f(x)
        close(value, np.sum(x**3), 1e-14)
        close(gradient, 3.0 * x**2, 1e-14)


def test_in_the_form_of_stan():
    def f(w, b):
        return vm.csr_matrix_times_vector(4, 5, w, INDICES, STARTS, b)

    assert expect_ad(f, A.data, RIGHT).worst < 1e-13
    assert expect_ad_matvar(f, A.data, RIGHT).worst < 1e-13
    assert (
        expect_ad(lambda w: vm.csr_to_dense_matrix(4, 5, w, INDICES, STARTS), A.data).worst < 1e-13
    )
    w, v, u = vm.csr_extract(DENSE)
    equal(w, A.data)
    for found, true in (
        (v, INDICES), (u, STARTS), (vm.csr_extract_v(A), INDICES),
        (vm.csr_extract_u(DENSE), STARTS),
    ):  # fmt: skip
        equal(found, true)
        assert found.dtype.kind == "i"


@pytest.mark.parametrize("entry", stan.entries("sparse"))
def test_against_stan(entry):
    f = getattr(vm, entry["function"])
    if entry.get("tuple"):
        made = f(*stan.arguments(entry))
        equal(made[1:], entry["output"][1:])
        entry = {
            **entry, "tuple": False, "output": entry["output"][0], "weights": entry["weights"][0],
        }  # fmt: skip
        stan.check(lambda a: f(a)[0], entry, rtol=1e-15)
        return
    stan.check(f, entry, rtol=1e-15)


@pytest.mark.parametrize("entry", stan.entries("sparse", throws=True))
def test_what_stan_refuses(entry):
    with pytest.raises((vm.DomainError, vm.ShapeError), match=rf"^{entry['function']}: "):
        getattr(vm, entry["function"])(*stan.arguments(entry))


@pytest.mark.parametrize(("args", "error", "text"), [
    ((0, 2, W, V, U), DOMAIN, "m is 0, but must be positive!"),
    ((2, -1, W, V, U), DOMAIN, "n is -1, but must be positive!"),
    ((2.0, 2, W, V, U), TypeError, "m is a float, but must be an integer!"),
    ((2, 2, W, V, [1, 2]), SHAPE,
     "u has 2 elements, but must have 3, one more than there are rows!"),
    ((2, 2, W, [1], U), SHAPE,
     "w has shape (2,), but must be a vector as long as v, of 1 elements!"),
    ((2, 2, W, [1, 3], U), DOMAIN, "v[1] is 3, but must be a column from 1 to 2!"),
    ((2, 2, W, [0, 1], U), DOMAIN, "v[0] is 0, but must be a column from 1 to 2!"),
    *(((2, 2, W, V, u), DOMAIN,
       f"u is {u}, but must rise from 1 to 3, one more than v has elements!")
      for u in ([0, 1, 2], [1, 4, 3])),
    ((2, 2, W, [1.0, 2.0], U), TypeError,
     "v has shape (2,) and dtype float64, but must be a vector of integers!"),
])  # fmt: skip
def test_refusals_in_the_form_of_stan(args, error, text):
    refuses_as(error, text, vm.csr_to_dense_matrix, *args)
    refuses_as(error, text, vm.csr_matrix_times_vector, *args, np.ones(2))


def test_a_vector_of_another_length():
    text = "b has shape (3,), but must be a vector of 2 elements!"
    refuses_as(SHAPE, text, vm.csr_matrix_times_vector, 2, 2, W, V, U, np.ones(3))
