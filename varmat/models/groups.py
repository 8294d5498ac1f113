"""Groups of rows: numbers for what a column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varmat.core.errors import DataError, ShapeError
from varmat.typing import Plain

__all__ = ["groups"]


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of rows; made by `groups`.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        The group of each row, from 0: an index of parameters.
    labels : list
        What the groups are called, for `coords`.
    count : int
        How many there are.
    """

    codes: np.ndarray
    labels: list[Any]
    count: int


def groups(*columns: Plain) -> Groups:
    """Number the groups that one or several columns of a table name.

    Parameters
    ----------
    *columns : array_like, pandas.Series or pandas.Categorical, shape (n,)
        The name of the group of each row: strings, numbers or dates. Of several columns each
        combination that occurs is a group.

    Returns
    -------
    Groups
        ``codes``, ``labels`` and ``count``. Labels are in increasing order, labels of a categorical
        column in its order, with categories that do not occur; of several columns they are tuples.

    Raises
    ------
    TypeError
        If no column is given.
    ShapeError
        If a column is not one-dimensional, or has another length than the first.
    ValueError
        If a value is missing.

    Examples
    --------
    >>> import varmat as vm
    >>> school = vm.groups(["b", "a", "b", "c"])
    >>> school.codes
    array([1, 0, 1, 2])
    >>> school.labels, school.count
    (['a', 'b', 'c'], 3)

    Group effects: ``vm.real(dims="school")`` with ``coords={"school": school.labels}``, and
    ``effect[school.codes]`` for the rows.
    """
    if not columns:
        raise TypeError("groups: no column is given!")
    coded = [_coded(i, column) for i, column in enumerate(columns)]
    for i, (codes, _) in enumerate(coded):
        if len(codes) != len(coded[0][0]):
            raise ShapeError(
                f"groups: column {i + 1} has {len(codes)} rows, but must have {len(coded[0][0])} "
                "as the first!"
            )
    if len(coded) == 1:
        codes, labels = coded[0]
        return Groups(codes, labels, len(labels))
    rows, codes = np.unique(np.stack([c for c, _ in coded], axis=1), axis=0, return_inverse=True)
    labels = [tuple(names[k] for k, (_, names) in zip(row, coded, strict=True)) for row in rows]
    return Groups(np.reshape(codes, -1), labels, len(labels))


def code_names(
    data: dict[str, object], coords: Mapping[str, Sequence[object]]
) -> dict[str, list[Any]]:
    """Replace data that are columns of names, or categorical, by their codes.

    Parameters
    ----------
    data : dict
        The data, which are changed.
    coords : mapping
        The labels of some of them, in whose order they are numbered.

    Returns
    -------
    dict of str to list
        The labels of the data that were replaced.
    """
    result: dict[str, list[Any]] = {}
    for name, x in data.items():
        if _has_names(x):
            output = groups(x)
            result[name] = [*coords.get(name, output.labels)]
            data[name] = _numbered(name, output, result[name])
    return result


def _has_names(x: object) -> bool:
    """Return whether `x` is a categorical column, or one of strings."""
    if hasattr(getattr(x, "cat", x), "categories"):
        return True
    if hasattr(x, "to_numpy"):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and (x.ndim != 1 or x.dtype.kind not in "UO"):
        return False
    return isinstance(x, (list, tuple, np.ndarray)) and any(isinstance(e, str) for e in x)


def _numbered(name: str, result: Groups, labels: list[object]) -> np.ndarray:
    """Return the codes of groups by labels in another order, or with additional ones."""
    if labels == result.labels:
        return result.codes
    indices = {label: i for i, label in enumerate(labels)}
    for code, label in enumerate(result.labels):
        if label not in indices and np.any(result.codes == code):
            row = int(np.argmax(result.codes == code))
            raise DataError(
                f"Model: {name}[{row}] is {label!r}, but must be one of the labels "
                f"{', '.join(map(repr, labels[:5]))}{', ...' if len(labels) > 5 else ''}!"
            )
    codes = np.array([indices.get(label, -1) for label in result.labels], np.int64)
    return np.asarray(codes[result.codes])


def _coded(number: int, column: object) -> tuple[np.ndarray, list[Any]]:
    """Return the number of each row's label, and the labels."""
    categorical = getattr(column, "cat", column)
    if hasattr(categorical, "categories") and hasattr(categorical, "codes"):
        codes, labels = np.asarray(categorical.codes, np.int64), [*categorical.categories]
        missing = codes < 0
    else:
        values = np.asarray(column)
        if values.ndim != 1:
            raise ShapeError(
                f"groups: column {number + 1} has shape {values.shape}, but must have one axis!"
            )
        missing = np.array([_is_missing(x) for x in values], bool)
        codes, labels = np.empty(0, np.int64), []
        if not missing.any():
            result, codes = np.unique(values, return_inverse=True)
            labels = result.tolist() if result.dtype.kind not in "mM" else [*result]
    if missing.any():
        raise ValueError(
            f"groups: column {number + 1} is missing in row {int(np.argmax(missing))}, but each "
            "row must have a group!"
        )
    return codes, labels


def _is_missing(x: object) -> bool:
    """Return whether `x` is None, nan, NaT or the `NA` of pandas."""
    try:
        return x is None or bool(x != x)
    except TypeError:  # NA is neither equal to itself nor different
        return True
