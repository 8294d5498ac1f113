"""Sparse systems and determinants: against 50-digit arithmetic and dense matrices, along all
routes, and refusals.
"""

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as
from functions.matrices import COLUMNS, GENERAL, SPD, VECTOR, worst_error
from functions.sparse_matrices import covariance, grid, random_sparse, sparse
from recordings import RUNNERS

import varmat as vm
from varmat.functions.sparse.factors import symmetric_of
from varmat.testing import expect_ad, expect_ad_matvar

WHOLE = scipy.sparse.csr_array(np.ones((3, 3)))
A = (random_sparse((6, 6), 0.2) + 2.0 * scipy.sparse.eye_array(6)).tocsr()
Q = covariance(6, 0.2)
PATTERN = vm.SparseVar(Q.data, Q).pattern
STRUCTURE = symmetric_of("f", PATTERN)
LOWER = np.flatnonzero(~STRUCTURE.is_above)
# For each non-zero, the place of its counterpart among the non-zeros of the lower triangle.
SOURCE = np.searchsorted(LOWER, STRUCTURE.source)
B = np.cos(np.arange(6.0))
BS = np.sin(np.arange(12.0)).reshape(6, 2)


def whole(f):
    """Turn a function of a sparse matrix into a function of a dense matrix without zeros."""
    return lambda a, *others: f(sparse(np.ravel(a), WHOLE), *others)


def symmetric(w):
    """Return the matrix with the pattern of `Q` and the given non-zeros in the lower triangle."""
    return sparse(w[SOURCE], PATTERN)


def log_det(m):
    return mp.log(mp.det(m))


@pytest.mark.parametrize(("f", "exact", "args"), [
    (vm.spsolve, lambda a, b: a**-1 * b, [GENERAL, VECTOR]),
    (vm.spsolve, lambda a, b: a**-1 * b, [GENERAL, COLUMNS]),
    (vm.sparse_mdivide_left_spd, lambda a, b: a**-1 * b, [SPD, VECTOR]),
    (vm.sparse_mdivide_left_spd, lambda a, b: a**-1 * b, [SPD, COLUMNS]),
    (vm.sparse_log_determinant_spd, log_det, [SPD]),
    (lambda a: vm.sparse_inverse_subset(a).to_dense(), lambda a: a**-1, [SPD]),
])  # fmt: skip
def test_against_50_digits(f, exact, args):
    assert worst_error(whole(f), exact, args, symmetric=f is not vm.spsolve) < 1e-14


FUNCTIONS = {
    "spsolve": (lambda w, b: vm.spsolve(sparse(w, A), b), (A.data, B)),
    "spsolve for columns": (lambda w, b: vm.spsolve(sparse(w, A), b), (A.data, BS)),
    "spsolve of data": (lambda b: vm.spsolve(A, b), (BS,)),
    "sparse_mdivide_left_spd": (lambda w, b: vm.sparse_mdivide_left_spd(symmetric(w), b),
                                (Q.data[LOWER], B)),
    "sparse_mdivide_left_spd for columns": (lambda w,
    b: vm.sparse_mdivide_left_spd(symmetric(w), b), (Q.data[LOWER], BS)),
    "sparse_log_determinant_spd": (lambda w: vm.sparse_log_determinant_spd(symmetric(w)),
        (Q.data[LOWER],)),
    "sparse_inverse_subset": (lambda w: vm.sparse_inverse_subset(symmetric(w)).data,
                              (Q.data[LOWER],)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_routes(name):
    f, args = FUNCTIONS[name]
    assert expect_ad(f, *args).worst < 1e-13
    assert expect_ad_matvar(f, *args).worst < 1e-13


def test_the_adjoint_lies_in_the_lower_triangle():
    """The functions of dense matrices have the same convention."""
    for ours, dense in (
        (vm.sparse_log_determinant_spd, vm.log_determinant_spd),
        (lambda a: np.sum(np.sin(vm.sparse_mdivide_left_spd(a, B))),
         lambda a: np.sum(np.sin(vm.mdivide_left_spd(a, B)))),
        (lambda a: np.sum(vm.sparse_inverse_subset(a).diagonal() ** 3),
         lambda a: np.sum(np.diagonal(vm.inverse_spd(a)) ** 3)),
    ):  # fmt: skip
        found = vm.gradient(lambda w, f=ours: f(sparse(w, Q)), Q.data)
        exact = vm.gradient(dense, Q.toarray())[PATTERN.rows, PATTERN.columns]
        close(found, exact, 1e-12, 1e-14)
        equal(found[STRUCTURE.is_above], 0.0)


def test_hessians_against_dense():
    places = np.zeros((6, 6), int)
    places[PATTERN.rows, PATTERN.columns] = SOURCE

    def dense(w):
        return vm.log_determinant_spd(np.where(Q.toarray() != 0.0, w[places], 0.0))

    w = Q.data[LOWER]
    found = vm.hessian(FUNCTIONS["sparse_log_determinant_spd"][0])(w)
    close(found, vm.hessian(dense)(w), 1e-11, 1e-13)


def log_density(theta):
    """The log density of a Gaussian field with a sparse precision matrix, observed with noise."""
    q = sparse(np.exp(theta[0]) * FIELD.data + theta[1] ** 2 * EYE, FIELD)
    return 0.5 * vm.sparse_log_determinant_spd(q) - 0.5 * vm.sparse_quad_form(q, theta[2:])


FIELD = grid(3)
EYE = (FIELD.tocoo().row == FIELD.tocoo().col).astype(float)


@pytest.mark.parametrize("runner", RUNNERS)
def test_recorded(runner):
    """The steps call Python, and `explain` says so."""
    theta = np.concatenate([[0.3, 0.7], np.cos(np.arange(9.0))])
    eager, recorded = vm.value_and_grad(log_density), vm.recorded(log_density, runner=runner)
    for point in (theta, 0.5 * theta):
        close(recorded(point), eager(point), 1e-13)
    called = [step.kernel.name for step in recorded.program.python_steps()]
    assert called == ["sparse_log_determinant", "sparse_log_determinant.reverse"]
    assert "sparse_log_determinant" in recorded.program.explain()


@pytest.mark.parametrize("runner", RUNNERS)
def test_recordings_refuse_what_is_not_positive_definite(runner):
    def f(s):
        return vm.sparse_log_determinant_spd(sparse(s * FIELD.data, FIELD))

    recorded = vm.recorded(f, runner=runner)
    recorded(1.0)
    message = r"^sparse_log_determinant_spd: a has a pivot that is not positive, but must"
    refuses(vm.DomainError, message, recorded, -1.0)
    close(recorded(2.0), (f(2.0), 4.5), 1e-14)


@pytest.mark.parametrize(
    "name",
    ["spsolve", "sparse_mdivide_left_spd", "sparse_log_determinant_spd", "sparse_inverse_subset"],
)
def test_recorded_second_derivatives_are_of_the_point(name):
    """The derivatives belong to the point of the run. The factor that the rules saved belongs to
    the point of the recording, and must not be used.
    """
    g, args = FUNCTIONS[name]

    def f(*given):
        return np.sum(np.sin(g(*given)))

    recorded = vm.recorded(vm.hessian(f))
    for scale in (1.0, 1.2):
        point = (scale * args[0], *args[1:])
        close(recorded(*point), vm.hessian(f)(*point), 1e-13, 1e-15)


SINGULAR = scipy.sparse.csr_array([[1.0, 2.0], [2.0, 4.0]])
OBLONG = scipy.sparse.csr_array((2, 3))
LOWER_ONLY = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 2.0]])
CROOKED = scipy.sparse.csr_array([[2.0, 1.5], [1.0, 2.0]])
WILD = scipy.sparse.csr_array([[2.0, np.nan], [np.nan, 2.0]])
INDEFINITE = scipy.sparse.csr_array([[1.0, 2.0], [2.0, 1.0]])
NO_PIVOT = scipy.sparse.csr_array([[0.0, 1.0], [1.0, 0.0]])


NO_MATRIX = "a is a ndarray, but must be a sparse matrix: of scipy.sparse, or a SparseVar!"
NO_PIVOTS = "a has a pivot that is not positive, but must be positive definite!"


@pytest.mark.parametrize(("a", "error", "text"), [
    (OBLONG, SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (LOWER_ONLY, DOMAIN,
     "a has a non-zero at [1, 0], but must have one at [0, 1] too: it is symmetric!"),
    (CROOKED, DOMAIN, "a[0, 1] is 1.5, but must be 1.0, as a[1, 0] is, for a symmetric matrix!"),
    (WILD, DOMAIN, "a[0, 1] is nan, but must be finite!"),
    (INDEFINITE, np.linalg.LinAlgError, NO_PIVOTS), (NO_PIVOT, DOMAIN, NO_PIVOTS),
    (SINGULAR, DOMAIN, NO_PIVOTS), (np.eye(2), TypeError, NO_MATRIX),
])  # fmt: skip
def test_refusals_of_symmetric_matrices(a, error, text):
    for given in (a, vm.var(a)) if scipy.sparse.issparse(a) else (a,):
        refuses_as(error, text, vm.sparse_mdivide_left_spd, given, np.ones(2))
        for f in (vm.sparse_log_determinant_spd, vm.sparse_inverse_subset):
            refuses_as(error, text, f, given)


@pytest.mark.parametrize(("size", "difference", "fits"), [
    (1e6, 5e-3, True), (1e6, 2e-2, False), (1e-3, 5e-9, True), (1e-3, 1.5e-8, False),
])  # fmt: skip
def test_matrices_are_symmetric_to_1e_8_of_an_element_or_of_one(size, difference, fits):
    a = scipy.sparse.csr_array([[2.0 * size, size + difference], [size, 2.0 * size]])
    if fits:
        close(vm.sparse_log_determinant_spd(a), np.log(3.0 * size**2), 1e-5)
    else:
        text = "for a symmetric matrix!"
        refuses(vm.DomainError, text, vm.sparse_log_determinant_spd, a)


@pytest.mark.parametrize(("f", "args", "error", "text"), [
    (vm.spsolve, (OBLONG, np.ones(2)), SHAPE, "a has shape (2, 3), but must be a square matrix"),
    (vm.spsolve, (SINGULAR, np.ones(2)), np.linalg.LinAlgError,
     "a is singular, but must be invertible!"),
    (vm.spsolve, (WILD, np.ones(2)), DOMAIN, "a[0, 1] is nan, but must be finite!"),
    (vm.spsolve, (np.eye(2), np.ones(2)), TypeError, NO_MATRIX),
    *((f, (a, np.ones(3)), SHAPE,
       "b has shape (3,), but must be a vector, or a matrix, of 2 rows, as a has!")
      for f, a in ((vm.spsolve, CROOKED),
                   (vm.sparse_mdivide_left_spd, scipy.sparse.eye_array(2, format="csr")))),
])  # fmt: skip
def test_refusals(f, args, error, text):
    refuses_as(error, text, f, *args)


def test_elements_that_come_twice_or_out_of_order():
    twice = scipy.sparse.csr_array(
        (np.arange(1.0, 6.0), np.array([1, 0, 1, 1, 0]), np.array([0, 3, 5])), shape=(2, 2)
    )
    dense = twice.toarray()
    close(vm.spsolve(twice, [1.0, 2.0]), np.linalg.solve(dense, [1.0, 2.0]), 1e-14)
    report = expect_ad(lambda w: vm.spsolve(sparse(w, twice), [1.0, 2.0]), twice.data)
    assert report.worst < 1e-13
    q = (twice @ twice.T).tocsr()
    q.indices[:2], q.data[:2] = q.indices[1::-1].copy(), q.data[1::-1].copy()
    close(vm.sparse_log_determinant_spd(q), 2.0 * np.linalg.slogdet(dense)[1], 1e-13)
    close(vm.sparse_inverse_subset(vm.var(q)).to_dense().val, np.linalg.inv(dense @ dense.T), 1e-12)


def test_pivots_are_not_exchanged():
    """A zero pivot of an invertible matrix does not raise, because the general function takes
    over.
    """
    close(vm.spsolve(NO_PIVOT, [1.0, 2.0]), [2.0, 1.0], 1e-15)
