"""Factors of sparse matrices, and the elements of the inverse at the non-zeros, against dense
matrices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from functions.sparse_matrices import covariance, grid

from varmat.functions.sparse import factors as sparse_factors
from varmat.functions.sparse.factors import Definite, Forest, symmetric_of
from varmat.functions.sparse.variable import pattern_of

ARROW = scipy.sparse.csr_array(
    8.0 * np.eye(6)
    + np.outer(np.eye(6)[0], np.arange(6.0))
    + np.outer(np.arange(6.0), np.eye(6)[0])
)
APART = scipy.sparse.block_diag([grid(2), np.eye(2), covariance(5, 0.5)], format="csr")
MATRICES = {
    "one": grid(1), "grid": grid(3), "larger grid": grid(9), "random": covariance(30, 0.05),
    "nearly dense": covariance(25, 0.3),
    "identity": scipy.sparse.eye_array(4, format="csr"),
    "arrow": ARROW, "in parts": APART,
    "dense": scipy.sparse.csr_array(np.eye(5) + 0.5),
    "chain": scipy.sparse.csr_array(3.0 * np.eye(7) - np.eye(7, k=1) - np.eye(7, k=-1)),
}  # fmt: skip


def factor_of(a: Any) -> Definite:
    return Definite("f", pattern_of("f", a), a.data)


@pytest.mark.parametrize("name", MATRICES)
def test_against_dense(name: str) -> None:
    a = MATRICES[name]
    dense, factor = a.toarray(), factor_of(a)
    inverse, (rows, columns) = np.linalg.inv(dense), (factor.structure.pattern.rows, a.indices)
    np.testing.assert_allclose(
        factor.log_determinant(), np.linalg.slogdet(dense)[1], rtol=1e-14, atol=1e-14
    )
    np.testing.assert_allclose(
        factor.inverse_at_non_zeros(), inverse[rows, columns], rtol=1e-13, atol=1e-14
    )
    b = np.cos(np.arange(2.0 * len(dense))).reshape(-1, 2)
    np.testing.assert_allclose(factor.solve(b), inverse @ b, rtol=1e-12, atol=1e-14)
    t = np.sin(np.arange(a.nnz) + 1.0)
    middle = factor.structure.pattern.matrix(t).toarray()
    exact = (inverse @ middle @ inverse)[rows, columns]
    np.testing.assert_allclose(factor.sandwich(t), exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("columns", [1, 4, 1000])
def test_any_number_of_columns_at_a_time(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a = grid(4)
    factor = factor_of(a)
    expected = factor.sandwich(a.data)
    monkeypatch.setattr(sparse_factors, "COLUMNS", columns)
    np.testing.assert_allclose(factor.sandwich(a.data), expected, rtol=1e-13)


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_forest_of_any_order(name: str, seed: int) -> None:
    """The oracle is the dense factor in the same order. One panel may hold every column."""
    a = MATRICES[name]
    n = a.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    forest = Forest(pattern_of("f", a), order)
    places = np.argsort(order)
    cholesky = np.linalg.cholesky(a.toarray()[np.ix_(places, places)])
    lower = scipy.sparse.csc_array(cholesky / np.diag(cholesky))
    inverse = np.linalg.inv(a.toarray())[pattern_of("f", a).rows, a.indices]
    np.testing.assert_allclose(
        forest.inverse(lower, np.diag(cholesky) ** 2), inverse, rtol=1e-12, atol=1e-14
    )
    assert forest.widths.sum() == n


def test_columns_with_the_same_rows_are_one_supernode() -> None:
    n = 5
    dense = Forest(pattern_of("f", MATRICES["dense"]), np.arange(n))
    assert dense.widths.tolist() == [n]
    chain = Forest(pattern_of("f", MATRICES["chain"]), np.arange(7))
    assert chain.widths.tolist() == [1, 1, 1, 1, 1, 2]


def test_an_element_of_the_factor_that_happens_to_be_zero() -> None:
    """SuperLU does not store this element, but other elements depend on it."""
    lower = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [-1, 1, 1, 0], [0, 2, 0, 1]])
    a = lower @ lower.T
    a[np.abs(a) < 1e-12] = 0.0
    a += 3.0 * np.eye(4)
    a[1, 2] = a[2, 1] = a[0, 1] * a[0, 2] / a[0, 0]
    x = scipy.sparse.csr_array(a)
    forest = Forest(pattern_of("f", x), np.arange(4))
    cholesky = np.linalg.cholesky(a)
    factor = cholesky / np.diag(cholesky)
    assert abs(factor[2, 1]) < 1e-15
    factor[2, 1] = 0.0
    found = forest.inverse(scipy.sparse.csc_array(factor), np.diag(cholesky) ** 2)
    np.testing.assert_allclose(
        found, np.linalg.inv(a)[pattern_of("f", x).rows, x.indices], rtol=1e-13
    )


def test_the_structure_is_kept_with_the_pattern() -> None:
    a = grid(3)
    pattern = pattern_of("f", a)
    structure = symmetric_of("f", pattern)
    assert symmetric_of("f", pattern) is structure
    factors = [Definite("f", pattern, s * a.data) for s in (1.0, 2.0)]
    found = [f.inverse_at_non_zeros() for f in factors]
    np.testing.assert_allclose(found[0], 2.0 * found[1], rtol=1e-14)
    (forest,) = structure.forests.values()
    assert structure.forest(factors[1].factors.perm_c) is forest


def test_without_rows() -> None:
    factor = factor_of(scipy.sparse.csr_array((0, 0)))
    assert factor.log_determinant() == 0.0
    assert factor.inverse_at_non_zeros().shape == (0,)
    assert factor.solve(np.ones((0, 2))).shape == (0, 2)
