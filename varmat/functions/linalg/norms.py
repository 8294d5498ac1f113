"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.dispatch import implements, plain
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.arrays.reductions import p_norm
from varmat.functions.checks import check_matrix
from varmat.functions.linalg.factorisations import singular_values

__all__: list[str] = []

_INFINITE = (np.inf, -np.inf)


def _vector_norm(function: str, x: Any, ord: Any, axis: Any, keepdims: Any) -> Any:
    if ord is None:
        ord = 2
    if isinstance(ord, str):
        raise DomainError(f"{function}: ord is {ord!r}, but must be a number for a vector!")
    if not np.size(x):  # NumPy knows which norms of nothing are zero
        return np.linalg.vector_norm(plain(x), axis=axis, keepdims=keepdims, ord=ord)
    if ord in _INFINITE:
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(plain(x) != 0, axis=axis, keepdims=keepdims).astype(float)
    return p_norm(x, ord=float(ord), axis=axis, keepdims=keepdims)


def _matrix_norm(function: str, x: Any, ord: Any, axes: tuple[int, int], keepdims: Any) -> Any:
    row, col = axes
    if not np.size(x):
        return np.linalg.norm(plain(x), ord, axes, keepdims)
    if ord in (None, "fro", "f"):
        return p_norm(x, axis=None if np.ndim(x) == 2 else axes, keepdims=keepdims)
    if ord in (1, -1, *_INFINITE):
        first, second = (row, col) if abs(ord) == 1 else (col, row)
        sums = np.sum(np.abs(x), axis=first, keepdims=keepdims)
        return (np.max if ord > 0 else np.min)(
            sums, axis=second - (not keepdims and second > first), keepdims=keepdims
        )
    if ord not in ("nuc", 2, -2):
        raise DomainError(
            f"{function}: ord is {ord!r}, but must be None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or "
            "-2 for a matrix!"
        )
    s = singular_values(np.moveaxis(x, axes, (-2, -1)))
    r = np.sum(s, axis=-1) if ord == "nuc" else _extreme(s, ord)
    return np.expand_dims(r, axes) if keepdims else r


def _extreme(s: Any, ord: int) -> Any:
    """The largest (2) or the smallest (-2) singular value."""
    return np.moveaxis(s, -1, 0)[0 if ord > 0 else -1]


def _normalised(function: str, axis: Any, ndim: int) -> tuple[int, ...]:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    wrapped = tuple(k % ndim for k in axes if -ndim <= k < ndim)
    if len(wrapped) < len(axes) or len(set(wrapped)) < len(axes):
        raise ShapeError(
            f"{function}: axis is {axis}, but must be distinct axes of an array that has {ndim}!"
        )
    return wrapped


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """`numpy.linalg.norm`: norms of vectors (one axis) and of matrices (two axes).

    Parameters
    ----------
    x : array_like
        With one or two axes, unless `axis` or no `ord` is given.
    ord : {None, "fro", "nuc", inf, -inf, int, float}
        The order, as in NumPy.
    axis : int or pair of int, optional
    keepdims : bool

    Returns
    -------
    Var or VarMat

    Notes
    -----
    Conventions: where a norm has a kink, elements that are zero have derivative zero (so has the
    norm of a vector of zeros), maxima and minima hand their derivative on as `numpy.max` and
    `numpy.min` do, and singular values as `numpy.linalg.svdvals`. The number of nonzero elements
    (``ord=0``) is a constant."""
    if axis is None and ord is None:
        return p_norm(x, keepdims=keepdims)
    x = as_operand(x, "norm: x")
    ndim = np.ndim(x)
    if axis is None:
        axis = tuple(range(ndim))
    axes = _normalised("norm", axis, ndim)
    if len(axes) == 1:
        return _vector_norm("norm", x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm("norm", x, ord, (axes[0], axes[1]), keepdims)
    raise ShapeError(f"norm: axis is {axis}, but must be one axis of vectors or two of matrices!")


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """`numpy.linalg.vector_norm`: the norm of all elements along the given axes, by default of
    all.
    """
    x = as_operand(x, "vector_norm: x")
    axes = None if axis is None else _normalised("vector_norm", axis, np.ndim(x))
    return _vector_norm("vector_norm", x, ord, axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """`numpy.linalg.matrix_norm`: norms of the matrices in the last two axes."""
    x = as_operand(x, "matrix_norm: x")
    check_matrix("matrix_norm", "x", x)
    return _matrix_norm("matrix_norm", x, ord, (np.ndim(x) - 2, np.ndim(x) - 1), keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """`numpy.linalg.cond`: the condition number, as a ratio of singular values or a product of two
    norms.

    A singular matrix has no condition number in the norms other than 2 and -2: its inverse is
    refused."""
    x = as_operand(x, "cond: x")
    check_matrix("cond", "x", x)
    if not np.size(x):
        return np.linalg.cond(plain(x), p)
    if p in (None, 2, -2):
        s = singular_values(x)
        most, least = _extreme(s, 2), _extreme(s, -2)
        return np.where(most == 0.0, np.inf, least / most if p == -2 else most / least)
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
