"""Data: what users hand over besides variables, as floats and float64 arrays."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.dispatch import ComplexDataError
from varmat.core.errors import DataError, ShapeError, called
from varmat.plain_arrays import is_scipy_sparse

if TYPE_CHECKING:
    from varmat.typing import Plain

_SPARSE = (
    "varmat.SparseVar(w, x) is the sparse matrix with non-zeros w, which may be x.data; a @ x and "
    "x @ a take x as it is"
)


def data(x: object, name: str = "data") -> Plain:
    """A float for a scalar, a float64 array for anything array-like; refuses what has no float64
    value.
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
        # A pickled array brings a dtype of its own, which is equal; fast paths ask for the one
        # object.
        array = array.view(FLOAT64) if array.dtype == FLOAT64 else array.astype(FLOAT64)
    return array if array.ndim else float(array)


def with_missing(x: object) -> tuple[np.ndarray, np.ndarray | None]:
    """Make an array of what may have missing values, and tell where these are.

    Parameters
    ----------
    x : array_like
        Values are missing if they are masked, None, or the `NA` or `NaT` of pandas. A nan among
        floats is a value.

    Returns
    -------
    array : ndarray
        Floats with nan for what is missing. Python objects become numbers if they all are.
    missing : ndarray of bool or None
        None if no value is missing.
    """
    if isinstance(x, (list, tuple)) and _has_masks(x):
        pairs = [with_missing(each) for each in x]
        array = np.stack([each for each, _ in pairs])
        missing = np.stack([np.zeros(a.shape, bool) if m is None else m for a, m in pairs])
    elif isinstance(x, np.ndarray) and _has_masks([x]):
        array, missing = np.asarray(x.data), np.ma.getmaskarray(x)
    else:
        array = np.asarray(x)
        missing = _nulls(x, array)
    if array.dtype.kind == "O":
        there = np.array(array[~missing].tolist())
        if there.ndim != 1 or (there.size and there.dtype.kind not in "biuf"):
            return array, None
        array = np.where(missing, np.nan, array) if missing.any() else there.reshape(array.shape)
    if not missing.any():
        return array, None
    if array.dtype.kind in "biufO":
        array = np.where(missing, np.nan, array).astype(float)
    return array, missing


def without_missing(x: object, name: str) -> np.ndarray:
    """Make an array of what must not have missing values."""
    array, missing = with_missing(x)
    if missing is not None:
        index = ", ".join(map(str, np.argwhere(missing)[0]))
        raise DataError(f"{name}{f'[{index}]' if index else ''} is missing, but must be a number!")
    return array


def refuse_missing(x: object, name: str) -> None:
    """Refuse missing values in what goes on as it is."""
    if (
        isinstance(x, (list, tuple))
        or hasattr(x, "to_numpy")
        or (isinstance(x, np.ndarray) and (x.dtype.kind == "O" or _has_masks([x])))
    ):
        try:
            without_missing(x, name)
        except DataError:
            raise
        except (TypeError, ValueError):
            return  # variables among the elements, or parts of different shapes


def _has_masks(parts: Iterable[object]) -> bool:
    """Whether one of the parts, or of their own parts, is a masked array."""
    masked = sys.modules.get("numpy.ma")  # not imported with NumPy
    return masked is not None and any(
        isinstance(x, masked.MaskedArray) or (isinstance(x, (list, tuple)) and _has_masks(x))
        for x in parts
    )


def _nulls(x: Any, array: np.ndarray) -> np.ndarray:
    """Where tables have no value, and arrays of Python objects."""
    if array.dtype.kind == "O":
        pandas = sys.modules.get("pandas")
        flat = [e is None or (pandas is not None and pandas.isna(e) is True) for e in array.flat]
        return np.reshape(np.array(flat, bool), array.shape)
    if array.ndim == 2 and hasattr(x, "iloc"):
        columns = (_nulls(x.iloc[:, i], array[:, i]) for i in range(array.shape[1]))
        return np.stack([*columns], axis=1) if array.size else np.zeros(array.shape, bool)
    # The dtypes that pandas has of its own, arrays of Arrow, series of polars.
    find = None if isinstance(getattr(x, "dtype", None), np.dtype) else getattr(x, "isna", None)
    find = find or getattr(x, "is_null", None)
    return np.zeros(array.shape, bool) if find is None else np.asarray(find(), bool)


def refuse_masks_and_matrices(x: object, name: str) -> None:
    if _has_masks([x]):
        text = "a masked array, but must be real numbers without a mask; use x.compressed() or "
        raise TypeError(called(f"{name} is {text}x.filled(value)"))
    if isinstance(x, np.matrix):  # its * and its shapes would mean something else on variables
        text = "a numpy.matrix, but must be an array; use np.asarray(x), and @ for products of "
        raise TypeError(called(f"{name} is {text}matrices"))


def _refusal(x: object, array: np.ndarray, name: str) -> TypeError:
    """What to raise for something that NumPy makes an array of, but not of real numbers."""
    if is_scipy_sparse(x):
        return TypeError(
            called(f"{name} is a sparse {type(x).__name__}, but must be dense here: {_SPARSE}")
        )
    is_object = array.dtype.kind == "O" and not array.ndim
    kind = f" (type {type(x).__name__})" if is_object else ""
    text = "but must be real numbers (float64, or what converts to it)"
    refusal = ComplexDataError if array.dtype.kind == "c" else TypeError
    return refusal(called(f"{name} has dtype {array.dtype}{kind}, {text}"))
