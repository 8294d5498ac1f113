"""NumPy's functions that write into their first argument, by assignments to parts of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.errors import DomainError, ShapeError
from varmat.functions.checks import misfit
from varmat.typing import Function, Operand

# Function of NumPy -> what does the same to anything that can be assigned to.
WRITERS: dict[Function, Function] = {}


def _writer(function: Function) -> Function:
    def register(write: Function) -> Function:
        def answer(*args: object, **settings: object) -> None:
            target, *_ = args or settings.values()
            if isinstance(target, np.ndarray) and target.dtype != object:
                raise TypeError(
                    f"np.{function.__name__} is not differentiable here: a variable cannot be "
                    "written into a plain array, its derivative would be lost; make the array with "
                    "np.zeros_like(variable, shape=...) or varmat.numpy, and for a constant array, "
                    "as of np.full or of np.full_like of data, use np.broadcast_to"
                )
            write(*args, **settings)

        WRITERS[function] = answer
        dispatch.SUPPORTED[function] = dispatch.COMPLEX[function] = answer
        return write

    return register


def _flags(mask: object) -> np.ndarray:
    return np.asarray(dispatch.plain(dispatch.settled(mask)), dtype=bool)


def _chosen(function: str, mask: Operand, title: str, target: Operand) -> np.ndarray:
    """Return the indices that a mask chooses, in row-major order."""
    indices = np.flatnonzero(_flags(mask))
    if np.size(mask) != np.size(target):
        raise misfit(
            function, "mask", np.shape(mask), f"have as many elements as {title}, {np.size(target)}"
        )
    return indices


def _write_flat(target: Operand, indices: np.ndarray, values: Operand) -> None:
    """Assign to elements by their indices in row-major order."""
    if np.ndim(target) == 1:
        target[indices] = values
    elif np.ndim(target):
        target[np.unravel_index(indices, np.shape(target))] = values
    elif len(indices):  # a 0-d array
        target[()] = np.ravel(values)[-1] if np.ndim(values) else values


def _repeated(values: Operand, which: np.ndarray) -> Operand:
    """Return the values at indices of a sequence that begins again at its end."""
    values = np.ravel(values)
    return values[which % np.size(values)]


@_writer(np.copyto)
def copyto(dst: Operand, src: Operand, casting: str = "same_kind", where: Operand = True) -> None:
    if where is True:
        dst[...] = src
        return
    flags = np.broadcast_to(_flags(where), np.shape(dst))
    if flags.any():
        dst[flags if np.ndim(dst) else ()] = (
            np.broadcast_to(src, np.shape(dst))[flags] if np.ndim(src) else src
        )


@_writer(np.place)
def place(arr: Operand, mask: Operand, vals: Operand) -> None:
    indices = _chosen("place", mask, "arr", arr)
    if not len(indices):
        return
    if not np.size(vals):
        raise DomainError("place: vals is empty, but must have an element!")
    _write_flat(arr, indices, _repeated(vals, np.arange(len(indices))))


@_writer(np.putmask)
def putmask(a: Operand, mask: Operand, values: Operand) -> None:
    indices = _chosen("putmask", mask, "a", a)
    if len(indices) and np.size(values):
        _write_flat(a, indices, _repeated(values, indices))


@_writer(np.put)
def put(a: Operand, ind: Operand, v: Operand, mode: str = "raise") -> None:
    asked = np.ravel(dispatch.plain(dispatch.settled(ind))).astype(np.intp)
    if not asked.size or not np.size(v):
        return
    # NumPy refuses wrong indices, or brings them into the range.
    indices: Any = np.arange(np.size(a)).take(asked, mode=mode)  # type: ignore[call-overload]
    _write_flat(a, indices, _repeated(v, np.arange(len(indices))))


@_writer(np.put_along_axis)
def put_along_axis(arr: Operand, indices: Operand, values: Operand, axis: int | None = -1) -> None:
    indices, shape = np.asarray(dispatch.plain(dispatch.settled(indices))), np.shape(arr)
    if axis is None:
        _write_flat(arr, indices, values)
        return
    axis = normalize_axis_index(axis, len(shape))
    if indices.ndim != len(shape):
        raise ShapeError(
            f"put_along_axis: indices have {indices.ndim} axes, but must have {len(shape)}!"
        )
    grid = np.ix_(*map(np.arange, shape))
    arr[(*grid[:axis], indices, *grid[axis + 1 :])] = values


@_writer(np.fill_diagonal)
def fill_diagonal(a: Operand, val: Operand, wrap: bool = False) -> None:
    shape = np.shape(a)
    # NumPy refuses wrong shapes, and says where the diagonal is.
    marks = np.zeros(shape, bool)
    np.fill_diagonal(marks, True, wrap)
    indices = np.flatnonzero(marks)
    if len(indices) and np.size(val):
        _write_flat(a, indices, _repeated(val, np.arange(len(indices))))
