"""Factors of sparse matrices, and the elements of the inverse at the non-zeros, against dense
matrices.
"""

import numpy as np
import pytest
import scipy.sparse
from comparing import close
from functions.sparse_matrices import covariance, grid, sparse

import varmat as vm
from varmat.functions.sparse import factors

ARROW = np.outer(np.eye(6)[0], np.arange(6.0))
# SuperLU does not store an element of this factor that is zero, but other elements depend on it.
ZERO = np.array(
    [[5.0, 1.0, -1.0, 0.0], [1.0, 5.0, 0.0, 2.0], [-1.0, 0.0, 6.0, 2.0], [0.0, 2.0, 2.0, 8.0]]
)
ZERO[1, 2] = ZERO[2, 1] = ZERO[0, 1] * ZERO[0, 2] / ZERO[0, 0]
DENSE = {
    "arrow": 8.0 * np.eye(6) + ARROW + ARROW.T, "whole": np.eye(5) + 0.5, "identity": np.eye(4),
    "chain": 3.0 * np.eye(7) - np.eye(7, k=1) - np.eye(7, k=-1), "zero in the factor": ZERO,
}  # fmt: skip
MATRICES = {
    "one": grid(1), "grid": grid(3), "larger grid": grid(9), "random": covariance(30, 0.05),
    "nearly dense": covariance(25, 0.3), "no rows": scipy.sparse.csr_array((0, 0)),
    "in parts": scipy.sparse.block_diag([grid(2), np.eye(2), covariance(5, 0.5)], format="csr"),
    **{name: scipy.sparse.csr_array(a) for name, a in DENSE.items()},
}  # fmt: skip


def inverse_at_non_zeros(a):
    return lambda w: vm.sparse_inverse_subset(sparse(w, a)).data


@pytest.mark.parametrize("name", MATRICES)
def test_against_dense(name):
    a = MATRICES[name]
    dense, pattern = a.toarray(), vm.SparseVar(a.data, a).pattern
    inverse, there = np.linalg.inv(dense), (pattern.rows, pattern.columns)
    found = vm.sparse_log_determinant_spd(a)
    close(found, np.linalg.slogdet(dense)[1], 1e-14, 1e-14)
    b = np.cos(np.arange(2.0 * len(dense))).reshape(-1, 2)
    close(vm.sparse_mdivide_left_spd(a, b), inverse @ b, 1e-12, 1e-14)
    t = np.sin(pattern.rows + pattern.columns + 1.0)  # a symmetric direction
    exact = -(inverse @ pattern.matrix(t).toarray() @ inverse)
    found = vm.jvp(inverse_at_non_zeros(a), (a.data,), (t,))
    close(found, (inverse[there], exact[there]), 1e-12, 1e-14)


@pytest.mark.parametrize("columns", [1, 4, 1000])
def test_any_number_of_columns_at_a_time(columns, monkeypatch):
    f, w = inverse_at_non_zeros(grid(4)), grid(4).data
    expected = vm.jvp(f, (w,), (np.ones_like(w),))
    monkeypatch.setattr(factors, "COLUMNS", columns)
    close(vm.jvp(f, (w,), (np.ones_like(w),)), expected, 1e-13)


def test_the_structure_is_kept_with_the_pattern():
    """Matrices with one pattern share what depends on the pattern alone."""
    a = grid(3)
    pattern = vm.SparseVar(a.data, a).pattern
    structure = factors.symmetric_of("f", pattern)
    for scale in (1.0, 2.0):
        vm.sparse_inverse_subset(vm.SparseVar(scale * a.data, pattern))
    assert factors.symmetric_of("f", pattern) is structure
    assert len(structure.forests) == 1


def test_an_element_of_the_factor_that_happens_to_be_zero():
    cholesky, x = np.linalg.cholesky(ZERO), scipy.sparse.csr_array(ZERO)
    factor, pattern = cholesky / np.diag(cholesky), vm.SparseVar(x.data, x).pattern
    assert abs(factor[2, 1]) < 1e-15
    factor[2, 1] = 0.0
    forest = factors.Forest(pattern, np.arange(4))
    found = forest.inverse(scipy.sparse.csc_array(factor), np.diag(cholesky) ** 2)
    close(found, np.linalg.inv(ZERO)[pattern.rows, x.indices], 1e-13)
