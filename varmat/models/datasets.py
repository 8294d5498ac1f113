"""Draws as datasets of xarray, equal to ArviZ's before version 1, whose import takes a second."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

import numpy as np

# The groups whose arrays have the axes of `DRAWS` in front.
GROUPS = ("posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats")
DRAWS = ("chain", "draw")


def unimported_arviz() -> str:
    """Return the version of ArviZ if it is installed, but not imported; else an empty text."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return "" if "arviz" in sys.modules else version("arviz")
    except PackageNotFoundError:
        return ""


def dataset(
    arrays: Mapping[str, Any],
    coords: Mapping[str, Sequence[Any]],
    dims: Mapping[str, Sequence[str]],
    arviz: str,
) -> Any:
    """Make the dataset of a group of draws, as ArviZ of a version makes it."""
    xarray, variables = import_module("xarray"), {}
    for name, x in arrays.items():
        dimensions = [
            *DRAWS,
            *(dims.get(name) or (f"{name}_dim_{i}" for i in range(np.ndim(x) - 2))),
        ]
        labels = {
            dim: np.asarray(coords.get(dim, range(size)))
            for dim, size in zip(dimensions, np.shape(x), strict=True)
        }
        variables[name] = xarray.DataArray(x, labels, dimensions)
    attributes = {"created_at": datetime.now(UTC).isoformat(), "arviz_version": arviz}
    return xarray.Dataset(variables, attrs=attributes)


class MissingGroupError(AttributeError, KeyError):
    """Draws have no group of a name."""

    __str__ = AttributeError.__str__  # that of a KeyError quotes the text


def refuse_quantity(
    name: str, groups: Mapping[str, Mapping[str, np.ndarray]], whole: Callable[[], object]
) -> None:
    """Raise where a name belongs to a parameter or quantity, and no group has it."""
    if name in groups.get("posterior", ()) and not hasattr(whole(), name):
        raise MissingGroupError(
            f"the draws have no group {name}: those of the quantity {name} are "
            f"draws.posterior[{name!r}]"
        )
