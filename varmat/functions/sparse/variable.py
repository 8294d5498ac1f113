"""`SparseVar`, a sparse matrix with a fixed pattern whose non-zeros are a variable, and Stan's
functions of sparse matrices.

A sparse matrix is its `Pattern`, which is constant, and the vector of its non-zeros. Whatever is
done to it is done to that vector by operations on vectors, so that reverse and forward mode,
Hessians and recordings know nothing of sparse matrices."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import numpy as np

from varmat.core import dispatch
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_values
from varmat.functions.sparse.products import (
    Pattern,
    checked_matrix,
    from_right,
    pattern_at,
    sparse_matmul,
    sparse_to_dense,
)
from varmat.plain_arrays import is_scipy_sparse
from varmat.programs.symbols import spread_back

__all__ = [
    "SparseVar",
    "csr_extract",
    "csr_extract_u",
    "csr_extract_v",
    "csr_extract_w",
    "csr_matrix_times_vector",
    "csr_to_dense_matrix",
    "sparse_quad_form",
    "to_dense",
]


@operation()
def collected(x: Any, *, places: Any, size: int) -> Any:
    """A vector of sums: element i is that of the elements of `x` whose place is i.

    Parameters
    ----------
    x : array_like, shape (k,)
    places : ndarray of int, shape (k,)
    size : int
        The length of the result.

    Returns
    -------
    VarMat, shape (size,)

    Notes
    -----
    The adjoint of an element is that of the sum it went into.
    """
    return np.bincount(places, x, size) if len(places) else np.zeros(size)


@collected.reverse
def collected_reverse(g: Any, r: Any, x: Any, places: Any, size: int) -> Any:
    return g[places]


@collected.tangent
def collected_tangent(r: Any, x: Any, places: Any, size: int) -> Any:
    return lambda t: collected(t, places=places, size=size)


@collected.straight
def collected_straight(x: Any, places: Any, size: int) -> Any:
    return spread_back(x, places, (size,)), lambda g: g[places]


def pattern_of(function: str, x: Any) -> Pattern:
    """The pattern of a sparse matrix of any kind."""
    if isinstance(x, Pattern):
        return x
    if isinstance(x, SparseVar):
        return x.pattern
    if not is_scipy_sparse(x):
        kind = type(x).__name__
        raise TypeError(
            f"{function}: pattern is a {kind}, but must be a sparse matrix: of scipy.sparse, or a "
            "SparseVar!"
        )
    rows = checked_matrix(function, "pattern", x).tocsr()
    return Pattern(rows.indices.copy(), rows.indptr.copy(), rows.shape)


def as_sparse(x: Any) -> SparseVar:
    """A sparse matrix of SciPy, or of ours, as ours."""
    if isinstance(x, SparseVar):
        return x
    rows = checked_matrix("SparseVar", "the argument", x).tocsr()
    return SparseVar(rows.data, rows)


def is_sparse(x: Any) -> bool:
    return isinstance(x, SparseVar) or is_scipy_sparse(x)


def _apply(name: str, x: Any, y: Any) -> Any:
    """What an operator makes of two operands, of which one is a `SparseVar`, for NumPy's function
    of that meaning.
    """
    result = (
        getattr(x, f"__{name}__")(y) if isinstance(x, SparseVar) else getattr(y, f"__r{name}__")(x)
    )
    return (
        _refuse(name, y if isinstance(x, SparseVar) else x) if result is NotImplemented else result
    )


def _refuse(name: str, other: Any) -> NoReturn:
    raise TypeError(
        f"{name}: the operand beside a SparseVar is of type {type(other).__name__}, but must be "
        "sparse as well: use a.to_dense(), "
        "or varmat.SparseVar(function of a.data, a) for what is done to the non-zeros alone"
    )


class SparseVar:
    """A sparse matrix with a fixed pattern: values and adjoints of its non-zeros, row by row (CSR).

    ``varmat.var(x)`` makes one of a sparse array or matrix `x` of SciPy. Made with a vector of
    non-zeros that is computed, it is part of what is differentiated.

    Parameters
    ----------
    data : array_like, shape (k,)
        The non-zeros: a variable, a dual, or plain numbers; as they stand in
        ``pattern.tocsr().data``.
    pattern : sparse array or matrix of SciPy, SparseVar
        Its non-zeros say where those of the new matrix are; their values do not matter. Zeros that
        are stored are part of it.

    Attributes
    ----------
    data : VarMat
        The non-zeros.
    pattern : Pattern
        Where they are: `shape`, `indices`, `indptr`. It may be handed on as the `pattern` of
        another one.
    val, adj : scipy.sparse.csr_array
        The values and the adjoints, as new sparse arrays.
    T : SparseVar
        The transpose.

    Raises
    ------
    ShapeError
        If `data` is no vector, or has another length than the pattern has non-zeros.
    TypeError
        If `pattern` is no sparse matrix, or `data` is complex.

    Notes
    -----
    There are products with vectors and matrices from both sides (``a @ b``, ``b @ a``) and with
    other sparse matrices; sums, differences and elementwise products (``a * b``, as of SciPy's
    sparse arrays) with sparse matrices; elementwise products with dense arrays that broadcast to
    the shape; multiples; `sum`, `diagonal`, `trace`, `to_dense`. Adjoints are kept for the
    non-zeros alone. A product with a vector, and each of its adjoints, takes time in proportion to
    their number; a product of two sparse matrices takes time and memory in proportion to the number
    of multiplications.

    A sparse matrix that is data needs no `SparseVar`: ``x @ b`` and ``b @ x`` work with variables
    `b` as they are. SciPy's ``x * b`` and ``x + b`` do not ask the variable: write
    ``varmat.SparseVar(x.data, x) * b``. Neither does ``x @ b`` if `b` is a `MatVar`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> x = scipy.sparse.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> a = vm.var(x)
    >>> np.sum((a @ [1.0, 2.0, 3.0]) ** 2).grad()
    >>> a.adj.toarray()
    array([[14.,  0., 42.],
           [ 0., 24.,  0.]])
    >>> vm.gradient(lambda w: np.sum(vm.SparseVar(np.exp(w), x) @ [1.0, 2.0, 3.0]), np.zeros(3))
    array([1., 3., 2.])
    """

    __slots__ = ("data", "pattern")
    __array_priority__ = 2000.0
    ndim = 2

    def __init__(self, data: Any, pattern: Any) -> None:
        self.pattern = pattern_of("SparseVar", pattern)
        self.data = as_operand(data, "SparseVar: data")
        if np.shape(self.data) != (self.pattern.nnz,):
            rule = f"must be a vector of the {self.pattern.nnz} non-zeros"
            raise ShapeError(f"SparseVar: data has shape {np.shape(self.data)}, but {rule}!")

    # --- what it is ---

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """The number of non-zeros, with those that happen to be zero."""
        return self.pattern.nnz

    @property
    def _plain(self) -> Any:
        return self.pattern.matrix(np.array(dispatch.plain(self.data)))

    val = _plain

    @property
    def adj(self) -> Any:
        return self.pattern.matrix(np.array(self.data.adj))

    @property
    def T(self) -> SparseVar:
        pattern, order = self.pattern.transposition
        return SparseVar(self.data[order], pattern)

    def transpose(self) -> SparseVar:
        """The transpose."""
        return self.T

    def __repr__(self) -> str:
        m, n = self.shape
        return f"SparseVar({m} x {n}, {self.nnz} non-zeros: {self.data!r})"

    # --- products ---

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _sparse_product(self, as_sparse(other))
        return sparse_matmul(self.data, other, pattern=self.pattern)

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _sparse_product(as_sparse(other), self)
        return from_right(
            lambda x: sparse_matmul(self.data, x, pattern=self.pattern, transposed=True),
            other,
            self.shape,
        )

    def dot(self, other: Any) -> Any:
        """The same as ``self @ other``."""
        return self @ other

    # --- element by element ---

    def with_data(self, data: Any) -> SparseVar:
        """Other non-zeros at the same places."""
        return SparseVar(data, self.pattern)

    def in_order(self) -> SparseVar:
        """The same matrix with the columns of each row in order, and none twice."""
        if self.pattern.is_canonical:
            return self
        pattern, which = self.pattern.in_order
        return SparseVar(collected(self.data, places=which, size=pattern.nnz), pattern)

    def __neg__(self) -> SparseVar:
        return self.with_data(-self.data)

    def __pos__(self) -> SparseVar:
        return self

    def __add__(self, other: Any) -> Any:
        return _sum(self, as_sparse(other)) if is_sparse(other) else _refuse("add", other)

    def __sub__(self, other: Any) -> Any:
        return _sum(self, -as_sparse(other)) if is_sparse(other) else _refuse("sub", other)

    __radd__ = __add__

    def __rsub__(self, other: Any) -> Any:
        return _sum(as_sparse(other), -self) if is_sparse(other) else _refuse("sub", other)

    def __mul__(self, other: Any) -> Any:
        if is_scipy_sparse(other) and isinstance(other, sys.modules["scipy.sparse"].spmatrix):
            raise TypeError(
                f"multiply: a {type(other).__name__}, of which * is the matrix product, is "
                "multiplied with a SparseVar, of which "
                "it is elementwise; write @, or a.multiply(x)"
            )
        return self.multiply(other)

    __rmul__ = __mul__

    def multiply(self, other: Any) -> SparseVar:
        """The elementwise product with a sparse matrix, a number, or a dense array that broadcasts
        to the shape.
        """
        if is_sparse(other):
            return _elementwise_product(self, as_sparse(other))
        return self.with_data(self.data * self._beside("multiply", other))

    def __truediv__(self, other: Any) -> Any:
        if is_sparse(other):
            raise TypeError(
                "divide: a sparse matrix is divided by one, whose zeros would make it dense, but "
                "must be by an array!"
            )
        return self.with_data(self.data / self._beside("divide", other))

    def __rtruediv__(self, other: Any) -> Any:
        return _refuse("divide", other)

    def _beside(self, name: str, x: Any) -> Any:
        """A number, or the elements of what broadcasts to the shape of this, at the places of the
        non-zeros.
        """
        x = as_operand(x, f"{name}: operand 2")
        shape = np.shape(x)
        if not shape:
            return x
        if len(shape) > 2 or any(
            n not in (1, m) for n, m in zip(shape[::-1], self.shape[::-1], strict=False)
        ):
            raise ShapeError(
                f"{name}: operand 2 has shape {shape}, but must broadcast to that of the "
                f"SparseVar, {self.shape}!"
            )
        x = np.reshape(x, (1, *shape)) if len(shape) == 1 else x
        index = [
            place if n > 1 else np.zeros(self.nnz, np.int64)
            for n, place in zip(np.shape(x), (self.pattern.rows, self.pattern.columns), strict=True)
        ]
        return x[tuple(index)]

    # --- sums and elements ---

    def sum(self, axis: int | None = None) -> Any:
        """The sum of all elements, or of the columns (axis 0) or rows (axis 1): a vector."""
        if axis is None:
            return np.sum(self.data)
        if axis not in (0, 1, -1, -2):
            raise DomainError(f"sum: axis is {axis!r}, but must be 0 or 1!")
        places = self.pattern.rows if axis % 2 else self.pattern.columns
        return collected(self.data, places=places, size=self.shape[1 - axis % 2])

    def diagonal(self) -> Any:
        """The diagonal as a vector, with its zeros."""
        which = np.flatnonzero(self.pattern.rows == self.pattern.columns)
        return collected(self.data[which], places=self.pattern.rows[which], size=min(self.shape))

    def trace(self) -> Any:
        """The sum of the diagonal."""
        return np.sum(self.data[np.flatnonzero(self.pattern.rows == self.pattern.columns)])

    def to_dense(self) -> Any:
        """The dense matrix, a variable as the non-zeros are."""
        return sparse_to_dense(self.data, pattern=self.pattern)

    toarray = to_dense

    # --- NumPy's protocols ---

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        name = _OPERATORS.get(ufunc)
        if name is not None and method == "__call__" and not settings:
            return (
                _apply(name, *inputs) if len(inputs) == 2 else getattr(inputs[0], f"__{name}__")()
            )
        raise TypeError(
            f"{ufunc.__name__} is not there for a SparseVar: use "
            f"varmat.SparseVar(np.{ufunc.__name__}(a.data), a) for its "
            "non-zeros alone, or a.to_dense()"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name in _METHODS and args and isinstance(args[0], SparseVar):
            method = getattr(SparseVar, name)
            return method(*args, **kwargs) if callable(method) else getattr(args[0], name)
        raise TypeError(
            f"{function.__module__}.{name} is not there for a SparseVar: use a.data, its "
            "non-zeros, or a.to_dense()"
        )


_OPERATORS = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
     np.matmul: "matmul", np.negative: "neg",
    np.positive: "pos",
}  # fmt: skip
_METHODS = frozenset({"shape", "ndim", "sum", "transpose", "diagonal", "trace", "dot"})


def _made(function: str, x: Any) -> SparseVar:
    """A `SparseVar` of a sparse matrix of SciPy, all of whose non-zeros are variables."""
    from varmat.core.variables import var

    rows = checked_matrix(function, "the argument", x).tocsr()
    return SparseVar(var(rows.data), rows)


dispatch.MAKERS.append(_made)


# --- two sparse matrices ---


def _check_shapes(name: str, a: SparseVar, b: SparseVar) -> None:
    if a.shape != b.shape:
        raise ShapeError(
            f"{name}: operand 2 has shape {b.shape}, but must have that of operand 1, {a.shape}: "
            "both are sparse!"
        )


def _sum(a: SparseVar, b: SparseVar) -> SparseVar:
    _check_shapes("add", a, b)
    if a.pattern.is_same(b.pattern):
        return a.with_data(a.data + b.data)
    both = np.concatenate([a.pattern.places, b.pattern.places])
    places, which = np.unique(both, return_inverse=True)
    data = collected(np.concatenate([a.data, b.data]), places=which, size=len(places))
    return SparseVar(data, pattern_at(places, a.shape))


def _elementwise_product(a: SparseVar, b: SparseVar) -> SparseVar:
    _check_shapes("multiply", a, b)
    a, b = a.in_order(), b.in_order()
    if a.pattern.is_same(b.pattern):
        return a.with_data(a.data * b.data)
    places, first, second = np.intersect1d(a.pattern.places, b.pattern.places, True, True)
    return SparseVar(a.data[first] * b.data[second], pattern_at(places, a.shape))


def _sparse_product(a: SparseVar, b: SparseVar) -> SparseVar:
    """Of the products of two non-zeros that meet, those that go to the same element are summed."""
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"matmul: b has shape {b.shape}, but must have {a.shape[1]} rows, for a has shape "
            f"{a.shape}!"
        )
    p, q = a.pattern, b.pattern
    counts = np.diff(q.starts)[p.columns]
    left = np.repeat(np.arange(p.nnz), counts)
    # The non-zeros of row p.columns[i] of `b`, for each i.
    right = (
        np.arange(len(left))
        - np.repeat(np.cumsum(counts) - counts, counts)
        + np.repeat(q.starts[p.columns], counts)
    )
    shape = (a.shape[0], b.shape[1])
    places, which = np.unique(p.rows[left] * shape[1] + q.columns[right], return_inverse=True)
    data = collected(a.data[left] * b.data[right], places=which, size=len(places))
    return SparseVar(data, pattern_at(places, shape))


# --- functions ---


def to_dense(a: Any) -> Any:
    """The dense matrix of a sparse one.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (m, n)

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    TypeError
        If `a` is not sparse.

    Notes
    -----
    The adjoint of a non-zero is that of its element. See `csr_to_dense_matrix` for a matrix in
    Stan's form.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> x = scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]])
    >>> vm.gradient(lambda w: np.linalg.det(vm.to_dense(vm.SparseVar(w, x))), x.data)
    array([-3., -2.])
    """
    if not is_sparse(a):
        raise TypeError(
            f"to_dense: a is a {type(a).__name__}, but must be a sparse matrix: of scipy.sparse, "
            "or a SparseVar!"
        )
    return as_sparse(a).to_dense()


def sparse_quad_form(a: Any, b: Any) -> Any:
    """The quadratic form ``b.T @ a @ b`` of a sparse matrix.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (n, n)
    b : array_like, shape (n,) or (n, j)

    Returns
    -------
    Var, or VarMat of shape (j, j)

    Raises
    ------
    ShapeError
        If `a` is not square, or the shapes do not fit.
    TypeError
        If `a` is not sparse.

    Notes
    -----
    For a vector the derivative with respect to a non-zero is :math:`b_i b_j`, that with respect to
    `b` is :math:`(A + A^T) b`. `quad_form` is the same of dense matrices.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> q = scipy.sparse.csr_array([[2.0, -1.0], [-1.0, 2.0]])
    >>> vm.gradient(lambda b: vm.sparse_quad_form(q, b), np.array([1.0, 3.0]))
    array([-2., 10.])
    """
    if not is_sparse(a):
        kind = type(a).__name__
        raise TypeError(
            f"sparse_quad_form: a is a {kind}, but must be a sparse matrix: of scipy.sparse, or a "
            "SparseVar!"
        )
    if a.shape[0] != a.shape[1]:
        raise ShapeError(f"sparse_quad_form: a has shape {a.shape}, but must be a square matrix!")
    b = as_operand(b, "sparse_quad_form: b")
    product = as_sparse(a) @ b
    return np.matmul(np.transpose(b), product)


# --- Stan's sparse matrices ---


def _stan_pattern(function: str, m: Any, n: Any, w: Any, v: Any, u: Any) -> Pattern:
    """The pattern of Stan's form of a sparse matrix, after its checks."""
    for name, size in (("m", m), ("n", n)):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(
                f"{function}: {name} is a {type(size).__name__}, but must be an integer!"
            )
        if size < 1:
            raise DomainError(f"{function}: {name} is {size}, but must be positive!")
    v, u = (_indices(function, name, x) for name, x in (("v", v), ("u", u)))
    if np.ndim(w) != 1 or len(v) != np.shape(w)[0]:
        raise ShapeError(
            f"{function}: w has shape {np.shape(w)}, but must be a vector as long as v, of "
            f"{len(v)} elements!"
        )
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


def _indices(function: str, name: str, x: Any) -> Any:
    array = np.asarray(x)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"{function}: {name} has shape {array.shape} and dtype {array.dtype}, but must be a "
            "vector of integers!"
        )
    return array.astype(np.int64)


def csr_to_dense_matrix(m: int, n: int, w: Any, v: Any, u: Any) -> Any:
    """The dense matrix of a sparse one in Stan's form.

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
        If an index is no integer.

    Notes
    -----
    The adjoint of a non-zero is that of its element. SciPy's `indices` and `indptr` are ``v - 1``
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


def csr_matrix_times_vector(m: int, n: int, w: Any, v: Any, u: Any, b: Any) -> Any:
    """The product of a sparse matrix in Stan's form with a vector.

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
        If an index is no integer.

    Notes
    -----
    For the adjoint `g` of the result, that of the non-zero in row i and column j is :math:`g_i
    b_j`, that of `b` is the transpose of the matrix times `g`. With a matrix of SciPy this is ``x @
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
        raise ShapeError(
            f"csr_matrix_times_vector: b has shape {np.shape(b)}, but must be a vector of {n} "
            "elements!"
        )
    return sparse_matmul(w, b, pattern=pattern)


def _extracted(function: str, a: Any) -> SparseVar:
    """A matrix as a sparse one, of what is not zero of a dense one."""
    if is_sparse(a):
        return as_sparse(a)
    a = as_operand(a, f"{function}: a")
    if np.ndim(a) != 2:
        raise ShapeError(f"{function}: a has shape {np.shape(a)}, but must be a matrix!")
    # A recording holds only where the same elements are zero.
    places = check_values(np.flatnonzero, a)
    return SparseVar(np.ravel(a)[places], pattern_at(places, np.shape(a)))


def csr_extract(a: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A matrix in Stan's sparse form: its non-zeros, their columns, and where each row begins.

    Parameters
    ----------
    a : array_like or sparse matrix, shape (m, n)
        Of a sparse matrix the zeros that are stored are kept.

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
    found = _extracted("csr_extract", a)
    return found.data, found.pattern.columns + 1, found.pattern.starts + 1


def csr_extract_w(a: Any) -> Any:
    """The non-zeros of a matrix, row by row: the first result of `csr_extract`.

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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(vm.csr_extract_w(a) ** 2), np.array([[0.0, 5.0], [6.0, 0.0]]))
    array([[ 0., 10.],
           [12.,  0.]])
    """
    return _extracted("csr_extract_w", a).data


def csr_extract_v(a: Any) -> np.ndarray:
    """The columns of the non-zeros of a matrix, row by row: the second result of `csr_extract`.

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

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_extract_v([[0.0, 5.0], [6.0, 0.0]])
    array([2, 1])
    """
    return np.asarray(_extracted("csr_extract_v", a).pattern.columns + 1)


def csr_extract_u(a: Any) -> np.ndarray:
    """Where each row begins among the non-zeros of a matrix: the third result of `csr_extract`.

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

    Examples
    --------
    >>> import varmat as vm
    >>> vm.csr_extract_u([[0.0, 5.0], [6.0, 0.0]])
    array([1, 2, 3])
    """
    return np.asarray(_extracted("csr_extract_u", a).pattern.starts + 1)
