"""Missing values of data: masked, None, or the `NA` of pandas and Arrow."""

from __future__ import annotations

import sys

import numpy as np

from varmat.core.data import has_masks
from varmat.core.errors import DataError

__all__: list[str] = []


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
        Floats with nan for missing values. Python objects become numbers if they all are.
    missing : ndarray of bool or None
        None if no value is missing.
    """
    if isinstance(x, (list, tuple)) and has_masks(x):
        pairs = [with_missing(item) for item in x]
        array = np.stack([item for item, _ in pairs])
        missing = np.stack([np.zeros(a.shape, bool) if m is None else m for a, m in pairs])
    elif isinstance(x, np.ndarray) and has_masks(x):
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
    """Refuse missing values in an array that is used unchanged."""
    if (
        isinstance(x, (list, tuple))
        or hasattr(x, "to_numpy")
        or (isinstance(x, np.ndarray) and (x.dtype.kind == "O" or has_masks(x)))
    ):
        try:
            without_missing(x, name)
        except DataError:
            raise
        except (TypeError, ValueError):
            return  # variables among the elements, or parts of different shapes


def _nulls(x: object, array: np.ndarray) -> np.ndarray:
    """Find where tables, and arrays of Python objects, have no value."""
    if array.dtype.kind == "O":
        pandas = sys.modules.get("pandas")
        flat = [e is None or (pandas is not None and pandas.isna(e) is True) for e in array.flat]
        return np.reshape(np.array(flat, bool), array.shape)
    if array.ndim == 2 and hasattr(x, "iloc"):
        columns = (_nulls(x.iloc[:, i], array[:, i]) for i in range(array.shape[1]))
        return np.stack([*columns], axis=1) if array.size else np.zeros(array.shape, bool)
    # pandas' dtypes, arrays of Arrow, series of polars.
    find = None if isinstance(getattr(x, "dtype", None), np.dtype) else getattr(x, "isna", None)
    find = find or getattr(x, "is_null", None)
    return np.zeros(array.shape, bool) if find is None else np.asarray(find(), bool)
