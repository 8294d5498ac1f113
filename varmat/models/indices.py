"""Data of a model that are an index of its parameters, and must be integers from 0.

NumPy's errors do not name data, and below 0 it takes elements from the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from varmat.core import indexing
from varmat.core.errors import DataError
from varmat.functions.arrays import selecting
from varmat.typing import Index, Shape


class DataIndexError(DataError, IndexError):
    """Data of a model cannot be an index."""


def below_zero(data: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Find the data that are arrays of integers, some of them below 0."""
    arrays = {
        name: np.asarray(x)
        for name, x in data.items()
        if isinstance(x, list) or getattr(x, "ndim", None)
    }
    return {n: x for n, x in arrays.items() if x.dtype.kind == "i" and np.min(x, initial=0) < 0}


def check_indices(data: Mapping[str, np.ndarray], tape: Sequence[Any]) -> None:
    """Refuse data with integers below 0 if they are an index in an evaluation on a tape."""
    for rule, _, source, index in tape:
        if rule is not indexing.GATHER:
            continue
        for axis, part in enumerate(_parts(index)):
            for name, x in data.items():
                # `np.take` counts from the end by itself.
                for indices in (x, np.where(x < 0, x + source.shape[axis], x)):
                    if np.shape(part) == x.shape and np.array_equal(part, indices):
                        _refuse(_first(name, x, x < 0), "must not be below 0", source.shape)


def refuse_index(data: Mapping[str, Any], error: IndexError) -> None:
    """Reject the data from which an index was made that variables do not accept."""
    for index, shape in _indices(error):
        for axis, part in enumerate(_parts(index)):
            for name, x in data.items():
                if x is not part or not np.ndim(part) or axis >= len(shape):
                    continue
                indices = np.asarray(x)
                if indices.dtype.kind not in "biu":
                    _refuse(f"{name} has dtype {indices.dtype}", "must be integers", shape)
                if np.any(bad := indices >= shape[axis]):
                    _refuse(_first(name, indices, bad), f"must be below {shape[axis]}", shape)


def _indices(error: IndexError) -> Iterator[tuple[Index, Shape]]:
    """Yield the indices of variables, with their shapes, in the functions that an error left."""
    at = error.__traceback__
    while at is not None:
        local = at.tb_frame.f_locals
        if at.tb_frame.f_code is indexing.getitem.__code__:
            yield local["index"], local["self"].shape
        elif at.tb_frame.f_code is selecting.take.__code__:
            yield local["indices"], local["a"].shape[local["axis"] :]
        at = at.tb_next


def _parts(index: object) -> tuple[Index, ...]:
    return index if isinstance(index, tuple) else (index,)


def _first(name: str, indices: np.ndarray, bad: np.ndarray) -> str:
    index = tuple(np.argwhere(bad)[0])
    return f"{name}[{', '.join(map(str, index))}] is {indices[index]}"


def _refuse(result: str, rule: str, shape: Shape) -> NoReturn:
    text = f"{result}, but {rule}, because it is an index of an array of shape {shape}!"
    raise DataIndexError(f"Model: {text}") from None
