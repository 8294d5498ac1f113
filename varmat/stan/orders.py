"""Names and order of elements as in Stan's output, where the first index varies fastest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from varmat.models.layout import Layout, indexed
from varmat.stan import syntax as s
from varmat.typing import Shape

__all__ = ["bracketed", "by_columns", "elements", "from_columns", "leaves", "unconstrained_names"]


def elements(name: str, shape: Shape) -> list[str]:
    """Name every element, as ``m.1.1``, ``m.2.1``.

    Examples
    --------
    >>> from varmat.stan.orders import elements
    >>> elements("m", (2, 2))
    ['m.1.1', 'm.2.1', 'm.1.2', 'm.2.2']
    """
    indices = (index[::-1] for index in np.ndindex(*shape[::-1]))
    return [".".join([name, *(str(i + 1) for i in index)]) for index in indices]


def bracketed(name: str) -> str:
    """Write the name of an element with brackets.

    Examples
    --------
    >>> from varmat.stan.orders import bracketed
    >>> [bracketed(each) for each in ("x", "m.2.1", "t.1:2.3")]
    ['x', 'm[2,1]', 't[1].2[3]']
    """
    parts = (part.split(".") for part in name.split(":"))
    return ".".join(f"{head}[{','.join(others)}]" if others else head for head, *others in parts)


def by_columns(values: Iterable[np.ndarray | float], axes: int = 0) -> np.ndarray:
    """Join the elements of all values along the last axis; the first `axes` axes are kept."""
    flat = []
    for value in values:
        x = np.asarray(value, dtype=float)
        inner = range(x.ndim - 1, axes - 1, -1)
        x = x.transpose(*range(axes), *inner)
        flat.append(x.reshape(*x.shape[:axes], prod(x.shape[axes:])))
    return np.concatenate(flat, axis=-1) if flat else np.empty(0)


def from_columns(flat: np.ndarray, shapes: Mapping[str, Shape]) -> dict[str, np.ndarray | float]:
    """Split joined elements of a vector into values by name."""
    values: dict[str, np.ndarray | float] = {}
    start = 0
    for name, shape in shapes.items():
        part = flat[start : start + prod(shape)]
        values[name] = part.reshape(shape, order="F") if shape else float(part[0])
        start += prod(shape)
    return values


def leaves(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield values as arrays by name; elements of tuples have separate names, as ``x:1``."""
    if isinstance(value, (Mapping, tuple)):
        items = value.items() if isinstance(value, Mapping) else enumerate(value, 1)
        for key, x in items:
            yield from leaves(f"{name}:{key}", x)
    elif _has_tuples(value):
        for i, x in enumerate(value, 1):
            yield from leaves(f"{name}.{i}", x)
    else:
        yield name, np.asarray(value, dtype=float)


def _has_tuples(value: object) -> bool:
    return isinstance(value, list) and any(
        isinstance(x, (Mapping, tuple)) or _has_tuples(x) for x in value[:1]
    )


def unconstrained_names(tree: s.ProgramTree, layout: Layout) -> list[str]:
    """Name the unconstrained elements in their order, in matrices by row and column."""
    matrices = {
        name
        for parameter in tree.parameters
        for name in _matrices(parameter.name, parameter.declared)
    }
    names = []
    for name, transform in layout.parameters.items():
        shape = transform.unconstrained_shape
        inner = transform.shape[-2:] if re.sub(r"\.\d+", "", name) in matrices else shape[-1:]
        # Stan reads the elements of an array in sequence, and a matrix by columns.
        for outer in indexed(name, shape[:-1]):
            names += elements(outer, inner)
    return names


def _matrices(name: str, declared_type: s.SizedType) -> Iterator[str]:
    """Yield names declared as ``matrix``, without the indices of arrays."""
    if declared_type.name == "matrix":
        yield name
    for i, x in enumerate(declared_type.elements if declared_type.name == "tuple" else (), 1):
        yield from _matrices(f"{name}:{i}", x)
