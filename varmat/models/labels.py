"""Names and labels of dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from varmat.functions.missing import refuse_missing
from varmat.models.results import Labels
from varmat.transforms import Transform
from varmat.typing import Operand


def names_of(dims: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of dimensions, of which one may be given alone."""
    return (dims,) if isinstance(dims, str) else tuple(dims)


def labelled(x: Any) -> tuple[list[str | None], list[list[Any] | None]]:
    """Names and labels of the dimensions of what xarray or pandas hold."""
    if hasattr(x, "dims") and hasattr(x, "coords"):
        return list(x.dims), [
            x.coords[d].values.tolist() if d in x.coords else None for d in x.dims
        ]
    if hasattr(x, "to_numpy") and hasattr(x, "iloc"):
        axes = [x.index, x.columns] if hasattr(x, "columns") else [x.index]
        return [axis.name for axis in axes], [axis.tolist() for axis in axes]
    return [], []


class Labelled:
    """The names and labels of the dimensions of a model: those it is given, and those of
    parameters, observations and data.
    """

    def __init__(
        self,
        given: Mapping[str, Operand],
        observed: Mapping[str, tuple[Sequence[Any], list[list[Any] | None]]],
        *parameters: Mapping[str, Transform],
        coords: Labels,
        dims: Mapping[str, str | Sequence[str]],
    ) -> None:
        for name, x in given.items():
            refuse_missing(x, f"Model: {name}")
        found: dict[str, tuple[Sequence[Any], list[list[Any] | None]]]
        found = {name: labelled(x) for name, x in given.items()}
        found |= observed
        self.dims: dict[str, list[str]] = {
            name: list(names) for name, (names, _) in found.items() if names and all(names)
        }
        self.coords: dict[str, Sequence[Any]] = {}
        for name, names in self.dims.items():
            for dim, labels in zip(names, found[name][1], strict=False):
                if labels is not None:
                    self.coords[dim] = labels
        for name, each in {**parameters[0], **parameters[1]}.items():
            declared = getattr(each, "declaration", None)
            if declared and declared.dims:
                self.dims[name] = list(declared.dims)
        self.coords |= {name: list(labels) for name, labels in coords.items()}
        self.dims |= {name: [*names_of(each)] for name, each in dims.items()}
        used = {dim for names in self.dims.values() for dim in names}
        for name in coords.keys() - used:
            # Labels that nothing has may be those of predictions, unless one misses some.
            for near in get_close_matches(name, used - self.coords.keys(), 1):
                raise TypeError(
                    f"Model: coords has {name!r}, which is no dimension, but must have dimensions: "
                    f"did you mean {near!r}?"
                )

    def sized(self, parameters: Mapping[str, Transform]) -> dict[str, Transform]:
        """The parameters, with sizes where only names of dimensions were given."""
        made = dict(parameters)
        for name, each in parameters.items():
            declared: Any = getattr(each, "declaration", None)
            outer = len(declared.dims) - len(each.shape) if declared else 0
            if outer > 0 and all(dim in self.coords for dim in declared.dims[:outer]):
                made[name] = declared.make(
                    tuple(len(self.coords[d]) for d in declared.dims[:outer])
                )
                made[name].declaration = declared
        return made
