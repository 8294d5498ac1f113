"""Data of Stan programs: from Python, JSON and R's dump format, checked against declarations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from varmat.core.errors import DataError, ShapeError
from varmat.functions.missing import without_missing
from varmat.stan.errors import nearest
from varmat.stan.types import Tuple, Type
from varmat.stan.values import StanValue, dtype_of
from varmat.typing import Shape

__all__ = ["read_data"]


def read_data(source: Any) -> dict[str, Any]:
    """Read data by name.

    Parameters
    ----------
    source : mapping, pandas.DataFrame, path or None
        Values by name; a table, whose columns are vectors; or the path of a file in Stan's JSON, or
        in R's dump format if its name does not end in ``.json``.

    Returns
    -------
    dict

    Raises
    ------
    TypeError
        If `source` is something else.
    ValueError
        If a file is in neither format.

    Examples
    --------
    >>> from varmat.stan.data import read_data
    >>> read_data({"N": 2})
    {'N': 2}
    """
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return dict(source)
    if hasattr(source, "columns"):
        names = getattr(source, "column_names", source.columns)  # the first is pyarrow's
        return {str(name): source[name] for name in names}
    if isinstance(source, (str, Path)):
        text = Path(source).read_text(encoding="utf-8")
        if Path(source).suffix == ".json":
            result = json.loads(text)
            if not isinstance(result, dict):
                raise ValueError(f"{source}: must be a JSON object with the data by name!")
            return result
        return dict(from_dump(text))
    raise TypeError(
        f"data: is a {type(source).__name__}, but must be a dict, a table or the path of a file!"
    )


_DUMPED = re.compile(r"""["'`]?([\w.]+)["'`]?\s*(?:<-|=)\s*""")
_STRUCTURE = re.compile(r"structure\s*\((.*),\s*\.Dim\s*=\s*(.*)\)$", re.DOTALL)


def from_dump(text: str) -> Iterator[tuple[str, Any]]:
    """Read the assignments of a file in R's dump format.

    Examples
    --------
    >>> from varmat.stan.data import from_dump
    >>> [(name, x.tolist()) for name, x in from_dump("y <- structure(1:4, .Dim = c(2, 2))")]
    [('y', [[1, 3], [2, 4]])]
    """
    text = re.sub(r"#[^\n]*", "", text)
    matches = [*_DUMPED.finditer(text)]
    # `.Dim =` inside of a structure is not an assignment.
    matches = [item for item in matches if not item.group(1).startswith(".")]
    for i, x in enumerate(matches):
        end = matches[i + 1].start() if i + 1 < len(matches) else len(text)
        yield x.group(1), _dumped(text[x.end() : end].strip().rstrip(";").strip())


def _dumped(text: str) -> Any:
    structure = _STRUCTURE.match(text)
    if structure is not None:
        sizes = np.atleast_1d(_dumped(structure.group(2).strip()))
        return np.reshape(_dumped(structure.group(1).strip()), sizes, order="F")
    if re.match(r"(integer|double|numeric)\s*\(", text):
        count = int(re.sub(r"\D", "", text) or 0)
        return np.zeros(count, int if text.startswith("integer") else float)
    if text.startswith("c"):
        inner = text[text.index("(") + 1 : text.rindex(")")]
        parts = [_dumped(part.strip()) for part in inner.split(",") if part.strip()]
        return (
            np.concatenate([np.atleast_1d(part) for part in parts]) if parts else np.zeros(0, int)
        )
    ends = re.fullmatch(r"(-?\d+)L?\s*:\s*(-?\d+)L?", text)
    if ends is not None:
        first, last = map(int, ends.groups())
        step = 1 if last >= first else -1
        return np.arange(first, last + step, step)
    return _number(text)


def _number(text: str) -> int | float:
    try:
        return int(text.removesuffix("L"))
    except ValueError:
        return float({"Inf": "inf", "-Inf": "-inf", "NA": "nan"}.get(text, text))


def missing(name: str, declaration: str, names: Iterable[str]) -> TypeError:
    """Return the error for data that are missing."""
    return TypeError(
        f"data: {name} is missing, but must be given: {declaration}!{nearest(name, names)}"
    )


def value_of(name: str, raw: object, kind: Type, shape: Shape, declaration: str) -> StanValue:
    """Convert a given value to an array of a type and shape without tuples."""
    array = _array(name, raw, declaration)
    requested = dtype_of(kind)
    if requested is complex and array.dtype.kind != "c":
        array = _complex(array, shape)
    if array.shape != shape:
        if array.size == 0 and prod(shape) == 0:
            array = np.zeros(shape)
        else:
            raise ShapeError(
                f"data: {name} has shape {array.shape}, but must have shape {shape}: {declaration}!"
            )
    if requested is np.int64 and array.dtype.kind == "f":
        wrong = array[~(array == np.floor(array))]
        if wrong.size:
            raise TypeError(
                f"data: {name} contains {wrong[0].item()!r}, but must hold integers: {declaration}!"
            )
    if requested is not complex and array.dtype.kind == "c":
        raise TypeError(f"data: {name} is complex, but must be real: {declaration}!")
    array = np.array(array, requested, order="C")
    array.flags.writeable = False
    return array.item() if not shape else array


def _array(name: str, raw: object, declaration: str) -> np.ndarray:
    try:
        array = without_missing(raw, f"data: {name}")
        if array.dtype.kind in "USO":  # "NaN" and "Infinity", or integers next to floats
            array = array.astype(float)
    except DataError:
        raise
    except (ValueError, TypeError):
        raise TypeError(
            f"data: {name} is {raw!r:.80}, but must be numbers: {declaration}!"
        ) from None
    if array.dtype.kind not in "biufc":
        raise TypeError(f"data: {name} is {raw!r:.80}, but must be numbers: {declaration}!")
    return array


def _complex(array: np.ndarray, shape: Shape) -> np.ndarray:
    """Make complex numbers from pairs, as JSON has them."""
    if array.shape == (*shape, 2):
        return array[..., 0] + 1j * array[..., 1]
    return array


def elements_of(name: str, raw: object, kind: Tuple, declaration: str) -> list[Any]:
    """Return the elements of a given tuple, which may be JSON's object with numbers as keys."""
    count = len(kind.elements)
    if isinstance(raw, Mapping):
        raw = [raw.get(str(i + 1)) for i in range(count)]
    if not isinstance(raw, (tuple, list)) or len(raw) != count:
        raise TypeError(
            f"data: {name} is {raw!r:.80}, but must be a tuple of {count} values: {declaration}!"
        )
    return list(raw)
