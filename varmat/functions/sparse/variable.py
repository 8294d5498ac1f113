"""`SparseVar`, a sparse matrix with a fixed pattern whose non-zeros are a variable.

A sparse matrix is its `Pattern`, which is constant, and the vector of its non-zeros. Whatever is
done to it is done to that vector by operations on vectors, so that reverse and forward mode,
Hessians and recordings know nothing of sparse matrices."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from varmat.core import dispatch
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import misfit, outside
from varmat.functions.sparse.factors import Pattern, pattern_at
from varmat.functions.sparse.products import (
    checked_matrix,
    collected,
    from_right,
    sparse_matmul,
    sparse_to_dense,
)
from varmat.plain_arrays import is_scipy_sparse
from varmat.typing import (
    Function,
    Operand,
    Result,
    Setting,
    Settings,
    array_valued,
    scalar_or_array_valued,
)

__all__ = ["SparseVar", "sparse_quad_form", "to_dense"]


def pattern_of(function: str, x: Operand) -> Pattern:
    """Return the pattern of a sparse matrix of any kind."""
    if isinstance(x, Pattern):
        return x
    if isinstance(x, SparseVar):
        return x.pattern
    check_sparse(function, x, "pattern")
    rows = checked_matrix(function, "pattern", x).tocsr()
    return Pattern(rows.indices.copy(), rows.indptr.copy(), rows.shape)


def check_sparse(function: str, x: object, name: str = "a") -> None:
    """Raise `TypeError` unless `x` is a sparse matrix."""
    if not is_sparse(x):
        raise TypeError(
            f"{function}: {name} is a {type(x).__name__}, but must be a sparse matrix: of "
            "scipy.sparse, or a SparseVar!"
        )


def as_sparse(x: object) -> SparseVar:
    """Convert a sparse matrix of SciPy to a `SparseVar`; return a `SparseVar` unchanged."""
    if isinstance(x, SparseVar):
        return x
    rows = checked_matrix("SparseVar", "the argument", x).tocsr()
    return SparseVar(rows.data, rows)


def is_sparse(x: object) -> bool:
    return isinstance(x, SparseVar) or is_scipy_sparse(x)


def _apply(name: str, x: Operand, y: Operand) -> Result:
    """Apply the operator that stands for a function of NumPy to two operands, one of them a
    `SparseVar`.
    """
    result = (
        getattr(x, f"__{name}__")(y) if isinstance(x, SparseVar) else getattr(y, f"__r{name}__")(x)
    )
    return (
        _refuse(name, y if isinstance(x, SparseVar) else x) if result is NotImplemented else result
    )


def _refuse(name: str, other: object) -> NoReturn:
    raise TypeError(
        f"{name}: the other operand of a SparseVar is of type {type(other).__name__}, but must be "
        "sparse as well: use a.to_dense(), or varmat.SparseVar(function of a.data, a) to apply a "
        "function to the non-zeros alone"
    )


class SparseVar:
    """A sparse matrix with a fixed pattern: values and adjoints of its non-zeros, row by row (CSR).

    ``varmat.var(x)`` makes one of a sparse array or matrix `x` of SciPy. Made with a vector of
    non-zeros that is computed, it is part of what is differentiated.

    Parameters
    ----------
    data : array_like, shape (k,)
        The non-zeros: a variable, a dual, or plain numbers; as they are in
        ``pattern.tocsr().data``.
    pattern : sparse array or matrix of SciPy, SparseVar
        Its non-zeros say where the new matrix has non-zeros; their values do not matter. Zeros that
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
        If `data` is not a vector, or has another length than the pattern has non-zeros.
    TypeError
        If `pattern` is not a sparse matrix, or `data` is complex.

    Notes
    -----
    There are products with vectors and matrices from both sides (``a @ b``, ``b @ a``) and with
    other sparse matrices; sums, differences and elementwise products (``a * b``, as of SciPy's
    sparse arrays) with sparse matrices; elementwise products with dense arrays that broadcast to
    the shape; multiples; `sum`, `diagonal`, `trace`, `to_dense`. Adjoints are kept for the
    non-zeros only. A product with a vector, and each of its adjoints, takes time in proportion to
    their number; a product of two sparse matrices takes time and memory in proportion to the number
    of multiplications.

    A sparse matrix that is data needs no `SparseVar`: ``x @ b`` and ``b @ x`` work with variables
    `b` unchanged. SciPy's ``x * b`` and ``x + b`` do not call the variable: write
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

    def __init__(self, data: object, pattern: object) -> None:
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
    def _plain(self) -> Result:
        return self.pattern.matrix(np.array(dispatch.plain(self.data)))

    val = _plain

    @property
    def adj(self) -> Result:
        return self.pattern.matrix(np.array(self.data.adj))

    @property
    def T(self) -> SparseVar:
        pattern, order = self.pattern.transposition
        return SparseVar(self.data[order], pattern)

    def transpose(self) -> SparseVar:
        """Return the transpose."""
        return self.T

    def __repr__(self) -> str:
        m, n = self.shape
        return f"SparseVar({m} x {n}, {self.nnz} non-zeros: {self.data!r})"

    # --- products ---

    def __matmul__(self, other: Operand) -> Result:
        if is_sparse(other):
            return _sparse_product(self, as_sparse(other))
        return sparse_matmul(self.data, other, pattern=self.pattern)

    def __rmatmul__(self, other: Operand) -> Result:
        if is_sparse(other):
            return _sparse_product(as_sparse(other), self)
        return from_right(
            lambda x: sparse_matmul(self.data, x, pattern=self.pattern, transposed=True),
            other,
            self.shape,
        )

    def dot(self, other: Operand) -> Result:
        """Compute ``self @ other``."""
        return self @ other

    # --- element by element ---

    def with_data(self, data: Operand) -> SparseVar:
        """Make a matrix of other non-zeros with the same pattern."""
        return SparseVar(data, self.pattern)

    def in_order(self) -> SparseVar:
        """Return the same matrix with the columns of each row in order, and none twice."""
        if self.pattern.is_canonical:
            return self
        pattern, which = self.pattern.in_order
        return SparseVar(collected(self.data, indices=which, size=pattern.nnz), pattern)

    def __neg__(self) -> SparseVar:
        return self.with_data(-self.data)

    def __pos__(self) -> SparseVar:
        return self

    def __add__(self, other: Operand) -> Result:
        return _sparse_sum(self, as_sparse(other)) if is_sparse(other) else _refuse("add", other)

    def __sub__(self, other: Operand) -> Result:
        return _sparse_sum(self, -as_sparse(other)) if is_sparse(other) else _refuse("sub", other)

    __radd__ = __add__

    def __rsub__(self, other: Operand) -> Result:
        return _sparse_sum(as_sparse(other), -self) if is_sparse(other) else _refuse("sub", other)

    def __mul__(self, other: Operand) -> Result:
        if is_scipy_sparse(other) and isinstance(other, sys.modules["scipy.sparse"].spmatrix):
            raise TypeError(
                f"multiply: a {type(other).__name__}, whose * is the matrix product, is "
                "multiplied with a SparseVar, whose * is elementwise; write @, or a.multiply(x)"
            )
        return self.multiply(other)

    __rmul__ = __mul__

    def multiply(self, other: Operand) -> SparseVar:
        """Multiply elementwise by a sparse matrix, a number, or a dense array that broadcasts to
        the shape.
        """
        if is_sparse(other):
            return _elementwise_product(self, as_sparse(other))
        return self.with_data(self.data * self._broadcast("multiply", other))

    def __truediv__(self, other: Operand) -> Result:
        if is_sparse(other):
            raise TypeError(
                "divide: a sparse matrix is divided by one, whose zeros would make it dense, but "
                "must be by an array!"
            )
        return self.with_data(self.data / self._broadcast("divide", other))

    def __rtruediv__(self, other: Operand) -> Result:
        return _refuse("divide", other)

    def _broadcast(self, name: str, x: Operand) -> Result:
        """Return a number unchanged, or the elements at the non-zeros of an array that broadcasts
        to this shape.
        """
        x = as_operand(x, f"{name}: operand 2")
        shape = np.shape(x)
        if not shape:
            return x
        if len(shape) > 2 or any(
            n not in (1, m) for n, m in zip(shape[::-1], self.shape[::-1], strict=False)
        ):
            raise misfit(
                name, "operand 2", shape, f"broadcast to the shape of the SparseVar, {self.shape}"
            )
        x = np.reshape(x, (1, *shape)) if len(shape) == 1 else x
        index = [
            place if n > 1 else np.zeros(self.nnz, np.int64)
            for n, place in zip(np.shape(x), (self.pattern.rows, self.pattern.columns), strict=True)
        ]
        return x[tuple(index)]

    # --- sums and elements ---

    def sum(self, axis: int | None = None) -> Result:
        """Sum all elements, or the columns (axis 0) or rows (axis 1) to a vector."""
        if axis is None:
            return np.sum(self.data)
        if axis not in (0, 1, -1, -2):
            raise outside("sum", "axis", axis, "be 0 or 1")
        indices = self.pattern.rows if axis % 2 else self.pattern.columns
        return collected(self.data, indices=indices, size=self.shape[1 - axis % 2])

    def diagonal(self) -> Result:
        """Return the diagonal as a vector, with its zeros."""
        which = np.flatnonzero(self.pattern.rows == self.pattern.columns)
        return collected(self.data[which], indices=self.pattern.rows[which], size=min(self.shape))

    def trace(self) -> Result:
        """Sum the diagonal."""
        return np.sum(self.data[np.flatnonzero(self.pattern.rows == self.pattern.columns)])

    def to_dense(self) -> Result:
        """Make the dense matrix, a variable as the non-zeros are."""
        return sparse_to_dense(self.data, pattern=self.pattern)

    toarray = to_dense

    # --- NumPy's protocols ---

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Operand, **settings: Setting
    ) -> Result:
        name = _OPERATORS.get(ufunc)
        if name is not None and method == "__call__" and not settings:
            return (
                _apply(name, *inputs) if len(inputs) == 2 else getattr(inputs[0], f"__{name}__")()
            )
        raise TypeError(
            f"{ufunc.__name__} does not support a SparseVar: use "
            f"varmat.SparseVar(np.{ufunc.__name__}(a.data), a) for its non-zeros alone, or "
            "a.to_dense()"
        )

    def __array_function__(
        self, function: Function, types: Iterable[type], args: Operand, kwargs: Settings
    ) -> Result:
        name = function.__name__
        if name in _METHODS and args and isinstance(args[0], SparseVar):
            method = getattr(SparseVar, name)
            return method(*args, **kwargs) if callable(method) else getattr(args[0], name)
        raise TypeError(
            f"{function.__module__}.{name} does not support a SparseVar: use a.data, its "
            "non-zeros, or a.to_dense()"
        )


_OPERATORS = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv",
     np.matmul: "matmul", np.negative: "neg",
    np.positive: "pos",
}  # fmt: skip
_METHODS = frozenset({"shape", "ndim", "sum", "transpose", "diagonal", "trace", "dot"})


def _made(function: str, x: object) -> SparseVar:
    """Make a `SparseVar` of a sparse matrix of SciPy, all of whose non-zeros become variables."""
    from varmat.core.variables import var

    rows = checked_matrix(function, "the argument", x).tocsr()
    return SparseVar(var(rows.data), rows)


dispatch.HOOKS["sparse"] = _made


# --- two sparse matrices ---


def _check_shapes(name: str, a: SparseVar, b: SparseVar) -> None:
    if a.shape != b.shape:
        raise misfit(
            name,
            "operand 2",
            b.shape,
            f"have the shape of operand 1, {a.shape}, because both are sparse",
        )


def _sparse_sum(a: SparseVar, b: SparseVar) -> SparseVar:
    _check_shapes("add", a, b)
    if a.pattern.is_same(b.pattern):
        return a.with_data(a.data + b.data)
    both = np.concatenate([a.pattern.places, b.pattern.places])
    indices, which = np.unique(both, return_inverse=True)
    data = collected(np.concatenate([a.data, b.data]), indices=which, size=len(indices))
    return SparseVar(data, pattern_at(indices, a.shape))


def _elementwise_product(a: SparseVar, b: SparseVar) -> SparseVar:
    _check_shapes("multiply", a, b)
    a, b = a.in_order(), b.in_order()
    if a.pattern.is_same(b.pattern):
        return a.with_data(a.data * b.data)
    indices, first, second = np.intersect1d(a.pattern.places, b.pattern.places, True, True)
    return SparseVar(a.data[first] * b.data[second], pattern_at(indices, a.shape))


def _sparse_product(a: SparseVar, b: SparseVar) -> SparseVar:
    """Multiply two sparse matrices: each element sums the products of the non-zeros that meet
    there.
    """
    if a.shape[1] != b.shape[0]:
        raise misfit(
            "matmul", "b", b.shape, f"have {a.shape[1]} rows, because a has shape {a.shape}"
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
    indices, which = np.unique(p.rows[left] * shape[1] + q.columns[right], return_inverse=True)
    data = collected(a.data[left] * b.data[right], indices=which, size=len(indices))
    return SparseVar(data, pattern_at(indices, shape))


# --- functions ---


@array_valued
def to_dense(a: Operand) -> Result:
    """Convert a sparse matrix to a dense one.

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
    The adjoint of a non-zero is its element's adjoint. See `csr_to_dense_matrix` for a matrix in
    Stan's form.

    References
    ----------
    Stan Functions Reference, "Sparse Matrix Operations".

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> x = scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0]])
    >>> vm.gradient(lambda w: np.linalg.det(vm.to_dense(vm.SparseVar(w, x))), x.data)
    array([-3., -2.])
    """
    check_sparse("to_dense", a)
    return as_sparse(a).to_dense()


@scalar_or_array_valued
def sparse_quad_form(a: Operand, b: Operand) -> Result:
    """Compute the quadratic form ``b.T @ a @ b`` of a sparse matrix.

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

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> q = scipy.sparse.csr_array([[2.0, -1.0], [-1.0, 2.0]])
    >>> vm.gradient(lambda b: vm.sparse_quad_form(q, b), np.array([1.0, 3.0]))
    array([-2., 10.])
    """
    check_sparse("sparse_quad_form", a)
    if a.shape[0] != a.shape[1]:
        raise misfit("sparse_quad_form", "a", a.shape, "be a square matrix")
    b = as_operand(b, "sparse_quad_form: b")
    product = as_sparse(a) @ b
    return np.matmul(np.transpose(b), product)
