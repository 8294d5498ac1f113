"""Sparse matrices in Stan's form: the non-zeros row by row, their columns, and where rows begin."""

from __future__ import annotations

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_values, misfit
from varmat.functions.sparse.factors import Pattern, pattern_at
from varmat.functions.sparse.products import sparse_matmul, sparse_to_dense
from varmat.functions.sparse.variable import SparseVar, as_sparse, is_sparse
from varmat.typing import Operand, Result, array_valued

__all__ = [
    "csr_extract",
    "csr_extract_u",
    "csr_extract_v",
    "csr_extract_w",
    "csr_matrix_times_vector",
    "csr_to_dense_matrix",
]


def _stan_pattern(function: str, m: Operand, n: int, w: Operand, v: Operand, u: Operand) -> Pattern:
    """Make the pattern of Stan's form of a sparse matrix, after checking its parts."""
    for name, size in (("m", m), ("n", n)):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(
                f"{function}: {name} is a {type(size).__name__}, but must be an integer!"
            )
        if size < 1:
            raise DomainError(f"{function}: {name} is {size}, but must be positive!")
    v, u = (_indices(function, name, x) for name, x in (("v", v), ("u", u)))
    if np.ndim(w) != 1 or len(v) != np.shape(w)[0]:
        raise misfit(function, "w", np.shape(w), f"be a vector as long as v, of {len(v)} elements")
    if len(u) != m + 1:
        raise ShapeError(
            f"{function}: u has {len(u)} elements, but must have {m + 1}, one more than there are "
            "rows!"
        )
    if len(v) and not (v.min() >= 1 and v.max() <= n):
        i = int(np.flatnonzero((v < 1) | (v > n))[0])
        raise DomainError(f"{function}: v[{i}] is {v[i]}, but must be a column from 1 to {n}!")
    if u[0] != 1 or u[-1] != len(v) + 1 or np.any(np.diff(u) < 0):
        raise DomainError(
            f"{function}: u is {u.tolist()}, but must rise from 1 to {len(v) + 1}, one more than v "
            "has elements!"
        )
    return Pattern(v - 1, u - 1, (m, n))


def _indices(function: str, name: str, x: Operand) -> Result:
    array = np.asarray(x)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{function}: {name} has shape {array.shape} and dtype {array.dtype}, but must be a "
            "vector of integers!"
        )
    return array.astype(np.int64)


@array_valued
def csr_to_dense_matrix(m: int, n: int, w: Operand, v: Operand, u: Operand) -> Result:
    """Make the dense matrix of a sparse one in Stan's form.

    Parameters
    ----------
    m, n : int
        Numbers of rows and columns, positive.
    w : array_like, shape (k,)
        The non-zeros, row by row.
    v : array_like of int, shape (k,)
        Their columns, from 1 to n as in Stan.
    u : array_like of int, shape (m + 1,)
        Where in `w` each row begins, and where the last one ends, counted from 1 as in Stan.

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    DomainError
        If a number of rows or columns, or an index, is out of range.
    ShapeError
        If the lengths do not fit.
    TypeError
        If an index is not an integer.

    Notes
    -----
    The adjoint of a non-zero is its element's adjoint. SciPy's `indices` and `indptr` are ``v - 1``
    and ``u - 1``.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_to_dense_matrix(2, 2, vm.var([5.0, 6.0]), [2, 1], [1, 2, 3])
    VarMat([[0., 5.],
            [6., 0.]])
    """
    w = as_operand(w, "csr_to_dense_matrix: w")
    return sparse_to_dense(w, pattern=_stan_pattern("csr_to_dense_matrix", m, n, w, v, u))


@array_valued
def csr_matrix_times_vector(
    m: int, n: int, w: Operand, v: Operand, u: Operand, b: Operand
) -> Result:
    """Multiply a sparse matrix in Stan's form by a vector.

    Parameters
    ----------
    m, n : int
        Numbers of rows and columns, positive.
    w : array_like, shape (k,)
        The non-zeros, row by row.
    v : array_like of int, shape (k,)
        Their columns, from 1 to n as in Stan.
    u : array_like of int, shape (m + 1,)
        Where in `w` each row begins, and where the last one ends, counted from 1 as in Stan.
    b : array_like, shape (n,)

    Returns
    -------
    VarMat, shape (m,)

    Raises
    ------
    DomainError
        If a number of rows or columns, or an index, is out of range.
    ShapeError
        If the lengths do not fit.
    TypeError
        If an index is not an integer.

    Notes
    -----
    For the adjoint `g` of the result, the non-zero in row i and column j has the adjoint :math:`g_i
    b_j`, and `b` the transpose of the matrix times `g`. With a matrix of SciPy this is ``x @
    b``.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_matrix_times_vector(2, 2, vm.var([5.0, 6.0]), [2, 1], [1, 2, 3], [1.0, 10.0])
    VarMat([50.,  6.])
    """
    w, b = as_operand(w, "csr_matrix_times_vector: w"), as_operand(b, "csr_matrix_times_vector: b")
    pattern = _stan_pattern("csr_matrix_times_vector", m, n, w, v, u)
    if np.shape(b) != (n,):
        raise misfit("csr_matrix_times_vector", "b", np.shape(b), f"be a vector of {n} elements")
    return sparse_matmul(w, b, pattern=pattern)


def _extracted(function: str, a: Operand) -> SparseVar:
    """Convert a matrix to a sparse one, which contains the elements of a dense one that are not
    zero.
    """
    if is_sparse(a):
        return as_sparse(a)
    a = as_operand(a, f"{function}: a")
    if np.ndim(a) != 2:
        raise misfit(function, "a", np.shape(a), "be a matrix")
    # A recording holds only where the same elements are zero.
    indices = check_values(np.flatnonzero, a)
    return SparseVar(np.ravel(a)[indices], pattern_at(indices, np.shape(a)))


def csr_extract(a: Operand) -> tuple[Result, np.ndarray, np.ndarray]:
    """Convert a matrix to Stan's sparse form: non-zeros, their columns, and where rows begin.

    Parameters
    ----------
    a : array_like or sparse matrix, shape (m, n)
        Zeros that a sparse matrix stores are kept.

    Returns
    -------
    w : VarMat, shape (k,)
        The non-zeros, row by row.
    v : ndarray of int, shape (k,)
        Their columns, from 1 as in Stan.
    u : ndarray of int, shape (m + 1,)
        Where in `w` each row begins, and where the last one ends, counted from 1 as in Stan.

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The adjoint of a non-zero goes to its element. Elements that are zero have none, as in Stan:
    which ones these are is taken as constant.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_extract(vm.var([[0.0, 5.0], [6.0, 0.0]]))
    (VarMat([5., 6.]), array([2, 1]), array([1, 2, 3]))
    """
    result = _extracted("csr_extract", a)
    return result.data, result.pattern.columns + 1, result.pattern.starts + 1


@array_valued
def csr_extract_w(a: Operand) -> Result:
    """Return the non-zeros of a matrix, row by row: the first result of `csr_extract`.

    Parameters
    ----------
    a : array_like or sparse matrix, shape (m, n)

    Returns
    -------
    VarMat, shape (k,)

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    The adjoint of a non-zero goes to its element; elements that are zero have none.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(vm.csr_extract_w(a) ** 2), np.array([[0.0, 5.0], [6.0, 0.0]]))
    array([[ 0., 10.],
           [12.,  0.]])
    """
    return _extracted("csr_extract_w", a).data


def csr_extract_v(a: Operand) -> np.ndarray:
    """Return the columns of the non-zeros, row by row: the second result of `csr_extract`.

    Parameters
    ----------
    a : array_like or sparse matrix, shape (m, n)

    Returns
    -------
    ndarray of int, shape (k,)
        From 1, as in Stan.

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    Integers have no derivative.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_extract_v([[0.0, 5.0], [6.0, 0.0]])
    array([2, 1])
    """
    return np.asarray(_extracted("csr_extract_v", a).pattern.columns + 1)


def csr_extract_u(a: Operand) -> np.ndarray:
    """Find where each row begins among the non-zeros: the third result of `csr_extract`.

    Parameters
    ----------
    a : array_like or sparse matrix, shape (m, n)

    Returns
    -------
    ndarray of int, shape (m + 1,)
        Counted from 1 as in Stan; the last element is one more than there are non-zeros.

    Raises
    ------
    ShapeError
        If `a` is not a matrix.

    Notes
    -----
    Integers have no derivative.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_extract_u([[0.0, 5.0], [6.0, 0.0]])
    array([1, 2, 3])
    """
    return np.asarray(_extracted("csr_extract_u", a).pattern.starts + 1)
