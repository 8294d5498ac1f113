"""Data: arguments that are not variables, as floats and float64 arrays."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.dispatch import ComplexDataError
from varmat.core.errors import ShapeError
from varmat.plain_arrays import is_scipy_sparse

if TYPE_CHECKING:
    from varmat.typing import Plain

_SPARSE = (
    "varmat.SparseVar(w, x) is the sparse matrix with non-zeros w, which may be x.data; a @ x and "
    "x @ a take x as it is"
)


def data(x: object, name: str = "data") -> Plain:
    """Convert a scalar to a float, anything array-like to a float64 array; raise for anything but
    real numbers.
    """
    if type(x) is np.ndarray and x.dtype is FLOAT64 and x.ndim:
        return x
    refuse_masks_and_matrices(x, name)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ShapeError(
            f"{name} is a {type(x).__name__} with parts of different shapes, but must be an array!"
        ) from error
    if array.dtype is not FLOAT64:
        if array.dtype.kind not in "biuf":
            raise _refusal(x, array, name)
        # Fast paths test for the one dtype object; an array that was pickled has an equal one.
        array = array.view(FLOAT64) if array.dtype == FLOAT64 else array.astype(FLOAT64)
    return array if array.ndim else float(array)


def has_masks(x: object) -> bool:
    """Return whether something is a masked array, or a list with one in it."""
    if isinstance(x, (list, tuple)):
        return "numpy.ma" in sys.modules and any(map(has_masks, x))  # not imported with NumPy
    return isinstance(x, np.ndarray) and hasattr(x, "mask")


def refuse_masks_and_matrices(x: object, name: str) -> None:
    if has_masks(x):
        text = "a masked array, but must be real numbers without a mask; use x.compressed() or "
        raise TypeError(f"{name} is {text}x.filled(value)")
    if isinstance(x, np.matrix):  # its * and its shapes would mean something else on variables
        text = "a numpy.matrix, but must be an array; use np.asarray(x), and @ for products of "
        raise TypeError(f"{name} is {text}matrices")


def _refusal(x: object, array: np.ndarray, name: str) -> TypeError:
    """Return the error for something that NumPy makes an array of, but not of real numbers."""
    if is_scipy_sparse(x):
        return TypeError(
            f"{name} is a sparse {type(x).__name__}, but must be dense here: {_SPARSE}"
        )
    is_object = array.dtype.kind == "O" and not array.ndim
    kind = f" (type {type(x).__name__})" if is_object else ""
    text = "but must be real numbers (float64, or what converts to it)"
    refusal = ComplexDataError if array.dtype.kind == "c" else TypeError
    return refusal(f"{name} has dtype {array.dtype}{kind}, {text}")
