"""Plain arrays: sums, choices and scatters faster than NumPy's own, indices, `x.flat`, and SciPy.

Nothing here knows of variables; everything else may call it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import FrameType

    from varmat.typing import Axis, Function, Index, Operand, Plain, Shape


# NumPy takes 15 to 40 ns for each row of a few elements. Matrices with at most `COLUMNS` columns
# and at least `ROWS` rows are reduced in other ways: at 10^5 x 5 a sum takes a fifth of the time,
# and a maximum a tenth.
COLUMNS, ROWS = 12, 200
# Elements from which slices are scattered element by element, and from which by a sparse matrix.
SOME, MANY = 1 << 9, 1 << 12
# Elements from which `where` is computed without a branch: at 10^5 in a fifth of the time.
BLIND = 1 << 12

# Elements of a block of each array, where large arrays are gone through block by block: 1 MB.
# Measured with an L2 cache of 1 MB, at 10^5 to 10^6 elements. With half of it the reverse pass of
# elementwise operations takes up to a twentieth longer, products with the rows of a matrix up to a
# tenth. With an eighth of it NumPy spends half of its time on calls, and softmax takes a tenth
# longer. Compiled loops take as long with all of these.
BLOCK = 1 << 17

# --- blocks ---


def blocks(n: int, size: int) -> Iterator[slice]:
    """Split `n` elements into slices of `size` elements; the last may be shorter."""
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


# --- reductions ---


def has_short_rows(a: Plain) -> bool:
    """Return whether an array has many rows of a few elements each."""
    few = (
        type(a) is np.ndarray
        and a.ndim > 1
        and 1 < a.shape[-1] <= COLUMNS
        and a.size >= ROWS * a.shape[-1]
    )
    return few and a.dtype.type is np.float64 and bool(a.flags.c_contiguous)


def by_columns(a: Plain, axis: Axis) -> Plain:
    """Return the array, copied to lie column by column if its short rows are to be reduced."""
    n = np.ndim(a)
    if type(axis) is not int or axis not in (-1, n - 1) or not has_short_rows(a):
        return a
    return np.ascontiguousarray(a.transpose(n - 1, *range(n - 1))).transpose(*range(1, n), 0)


@lru_cache
def ones(n: int) -> np.ndarray:
    """Return read-only `numpy.ones`: a product with it is the fastest sum."""
    x = np.ones(n)
    x.flags.writeable = False
    return x


def summed(a: Plain, axis: Axis, keepdims: bool = False) -> Plain:
    """Sum over given axes."""
    axes = (axis,) if type(axis) is int else axis
    if (
        axes is not None
        and axes in ((0,), (-1,), (1,))
        and has_short_rows(a)
        and (a.ndim == 2 or axes == (-1,))
    ):
        if axes == (0,):
            return np.ones(len(a)).dot(a).reshape((1, -1) if keepdims else -1)
        shape, k = (*a.shape[:-1], 1) if keepdims else a.shape[:-1], a.shape[-1]
        return a.reshape(-1, k).dot(ones(k)).reshape(shape)
    return np.add.reduce(a, axis=axis, keepdims=keepdims)  # type: ignore[call-overload]


def unbroadcast(c: Plain, shape: Shape) -> Plain:
    """Bring a contribution to the shape of its operand: sum over broadcast axes, repeat along
    missing ones.
    """
    c = np.asarray(c)
    if c.ndim > len(shape):
        c = summed(c, tuple(range(c.ndim - len(shape))))
    axes = tuple(
        i
        for i, (n, m) in enumerate(zip(reversed(shape), reversed(c.shape), strict=False))
        if n == 1 != m
    )
    if axes:
        c = summed(c, tuple(-1 - i for i in axes), keepdims=True)
    return c if c.shape == shape else np.broadcast_to(c, shape)


def address(a: np.ndarray) -> int:
    """Return the address of the first element."""
    return int(a.__array_interface__["data"][0])


def overlaps(a: np.ndarray) -> bool:
    """Return whether several indices of an array share an element, as in a broadcast."""
    lines = sorted((abs(step), n) for step, n in zip(a.strides, a.shape, strict=True) if n > 1)
    reach = 0
    for step, n in lines:
        if step <= reach:
            break
        reach += step * (n - 1)
    else:
        return False
    offsets = sum(
        (np.arange(n).reshape(-1, *(1,) * i) * step for i, (step, n) in enumerate(lines)),
        np.zeros((), int),
    )
    return a.size > 0 and np.unique(offsets).size < a.size


# --- functions like ufuncs ---


def with_out(function: Function) -> Function:
    """Give a function of arrays the calling convention of a ufunc: `out` takes the result."""

    def ufunc(*values: Plain, out: np.ndarray | None = None) -> Plain:
        result = function(*values)
        if out is None:
            return result
        out[...] = result
        return out

    ufunc.formula = function  # type: ignore[attr-defined]
    return ufunc


# --- choices ---


def where(condition: Plain, x: Plain, y: Plain) -> Plain:
    """Select like `numpy.where`. A choice between many elements and zero has no branch, because a
    mispredicted one takes 3 ns.
    """
    saved, zero = (x, y) if type(y) is float else (y, x)
    if (
        type(zero) is float
        and not zero
        and type(condition) is np.ndarray
        and condition.dtype == bool
        and condition.size > BLIND
    ):
        keep = condition if saved is x else ~condition
        if isinstance(saved, float) and math.isfinite(saved):
            return np.multiply(keep, saved)
        if (
            type(saved) is np.ndarray
            and saved.dtype.type is np.float64
            and saved.shape == keep.shape
        ):
            bits = keep.astype(np.int64)  # all of them, or none
            return np.bitwise_and(np.negative(bits, bits), saved.view(np.int64), bits).view(
                np.float64
            )
    return np.where(condition, x, y)


# --- indices ---

_BASIC = frozenset(
    {
        int,
        slice,
        type(None),
        type(Ellipsis),
        *(np.dtype(code).type for code in np.typecodes["AllInteger"]),
    }
)


def is_basic(index: Index) -> bool:
    """Return whether NumPy returns a view for this index."""
    return _BASIC.issuperset(map(type, index)) if type(index) is tuple else type(index) in _BASIC


def scatter_add(a: np.ndarray, index: Index, c: Plain) -> None:
    """Add `c` to ``a[index]``, also where `index` names an element several times."""
    if is_basic(index) or (type(index) is np.ndarray and index.dtype == bool):
        a[index] += c
        return
    # The fast loop of `at` is for one axis: 11 times as fast for 10^4 elements, 3 times for
    # pairs of indices.
    full = (
        type(index) is tuple
        and len(index) == a.ndim
        and all(np.asarray(i).dtype.kind in "iu" for i in index)
    )
    if full and a.flags.c_contiguous:
        a, index = a.reshape(-1), np.ravel_multi_index(index, a.shape, mode="wrap")
    *before, last = index if type(index) is tuple else (index,)
    if type(last) is np.ndarray and last.dtype.kind in "iu" and a.flags.c_contiguous:
        if a.ndim == 1 and not before:
            index, c = last.ravel(), np.broadcast_to(c, last.shape).ravel()
        elif np.size(c) > SOME and all(type(i) is slice and i == slice(None) for i in before):
            _add_slices(a, last, len(before), c)
            return
    np.add.at(a, index, c)


def _add_slices(a: np.ndarray, indices: np.ndarray, axis: int, c: np.ndarray) -> None:
    """Add slices to slices of a contiguous array at given indices along an axis."""
    n, k, outer = a.shape[axis], math.prod(a.shape[axis + 1 :]), math.prod(a.shape[:axis])
    c = np.broadcast_to(c, a.shape[:axis] + indices.shape + a.shape[axis + 1 :])
    indices = np.where(indices < 0, indices + n, indices).ravel()
    if outer > 1:
        indices, n = (np.arange(0, outer * n, n)[:, None] + indices).ravel(), outer * n
    rows, c = a.reshape(n, k), c.reshape(indices.size, k)
    if k > 1 and c.size > MANY and c.size > a.size // 4:
        # A product with a matrix that has a one in each column: a tenth of the time, at 10^4 x 10
        # and at 300 x 300.
        from scipy.sparse import csc_array

        rows += (
            csc_array(
                (np.ones(indices.size), indices, np.arange(indices.size + 1)),
                shape=(n, indices.size),
            )
            @ c
        )
    else:
        np.add.at(a.reshape(-1), (indices[:, None] * k + np.arange(k)).ravel(), c.ravel())


def last_writers(shape: Shape, index: Index, c: np.ndarray) -> np.ndarray:
    """Return `c` with zeros where a repeated index overwrote an element in the same assignment."""
    writer = np.empty(shape, dtype=np.intp)
    writer[index] = order = np.arange(c.size).reshape(c.shape)
    return np.where(writer[index] == order, c, 0.0)


def apart(source: Plain, target: np.ndarray) -> Plain:
    """Return a source to assign into `target`, copied if they share memory: otherwise NumPy could
    read elements that it has just written.
    """
    return (
        source.copy()
        if type(source) is np.ndarray and np.may_share_memory(source, target)
        else source
    )


# --- what arrays and scalars are to Python, of anything that NumPy can reshape ---


def scalar_item(x: Operand, index: Index) -> Operand:
    """Index a scalar as NumPy's scalars do: return it, or an array of new axes."""
    try:
        shape = np.empty(())[index].shape
        return (np.broadcast_to if 0 in shape else np.reshape)(x, shape) if shape else x
    except (IndexError, ValueError):
        raise IndexError(
            f"a scalar {type(x).__name__} has no elements; its index must consist of (), ... and "
            "None"
        ) from None


class Flat:
    """``x.flat``: an iterator over the elements, which are read and assigned to by their places in
    row-major order.
    """

    __slots__ = ("_iterator", "base")

    def __init__(self, base: Operand) -> None:
        self.base = base
        self._iterator: Any = None

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Operand:
        self._iterator = self._iterator or iter(np.ravel(self.base))
        return next(self._iterator)

    def __getitem__(self, index: Index) -> Operand:
        part = np.ravel(self.base)[index]
        return np.copy(part) if np.ndim(part) else part

    def __array__(self, *args: Operand, **settings: Operand) -> Operand:
        return np.array(self.base, *args, **settings).reshape(-1)

    def __setitem__(self, index: Index, source: Plain) -> None:
        self.base[np.unravel_index(np.arange(len(self))[index], self.base.shape)] = source

    def copy(self) -> Operand:
        return np.copy(np.ravel(self.base))


flat = property(Flat, lambda x, source: Flat(x).__setitem__(..., source))


class ScalarError(AttributeError, TypeError):
    """A scalar is asked for its length: `hasattr` says no, and `len` raises a TypeError, as for
    NumPy's scalars.
    """


def array_length(x: Operand) -> int:
    return int(x.shape[0])


class Length:
    """``__len__`` of a class whose instances are arrays or scalars."""

    def __get__(self, x: Any, kind: Any) -> Any:
        if x is None:
            return array_length
        if not x.shape:
            raise ScalarError(f"len() of a scalar {kind.__name__}")
        return lambda: array_length(x)


# --- SciPy ---


class LazyModule:
    """A module that is imported when an attribute of it is first read, because its import takes
    longer than varmat's.
    """

    def __init__(self, name: str) -> None:
        self._module_name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module_name), name)
        setattr(self, name, value)
        return value


special, scipy_linalg = LazyModule("scipy.special"), LazyModule("scipy.linalg")
scipy_signal, scipy_fft = LazyModule("scipy.signal"), LazyModule("scipy.fft")


def is_scipy_sparse(x: Any) -> bool:
    """Return whether `x` is a sparse array or matrix of SciPy, without importing `scipy.sparse`."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(x))


def is_sparse_product(frame: FrameType | None) -> bool:
    """Return whether a product of SciPy's sparse matrices is converting its other operand; raise an
    error in their other operations.

    If the conversion gives an array of objects without axes, the product leaves the work to the
    operand's `__rmatmul__`. Other operations would go on with that array.
    """
    if frame is None or not frame.f_globals.get("__name__", "").startswith("scipy.sparse._"):
        return False
    if frame.f_code.co_name == "_matmul_dispatch":
        return True
    raise TypeError(
        "with a variable x, a matrix of scipy.sparse supports only a @ x and x @ a: for "
        "other operations convert it with varmat.SparseVar(a.data, a), or to a dense array with "
        "a.toarray()"
    )
