"""Draws as ArviZ data, whichever ArviZ is installed, and the sentence for a package that is not."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varmat.core.errors import ShapeError


def optional(module: str, purpose: str) -> Any:
    """Import a module of the extra ``sample``, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        sentence = (
            f'{purpose} needs {package}, which is not installed: pip install "varmat[sample]"'
        )
        raise ImportError(sentence, name=package) from None


# The dimensions that all draws have.
_OF_ALL = ("chain", "draw")


def check_names(
    shapes: Mapping[str, tuple[int, ...]],
    coords: Mapping[str, Sequence[Any]],
    dims: Mapping[str, Sequence[str]],
) -> None:
    """Refuse a parameter or quantity with the name of a dimension: ArviZ keeps the dimension alone,
    and says nothing.
    """
    for title, given in (
        ("coords", coords),
        ("dims", [dim for names in dims.values() for dim in names]),
    ):
        for dim in given:
            if dim in _OF_ALL:
                raise TypeError(
                    f"Model: {title} has {dim!r}, but must have names other than chain and draw, "
                    "which all draws have!"
                )
    owners = dict.fromkeys(_OF_ALL, "all draws")
    for name in {**shapes, **dims}:
        # Dimensions without names get these from ArviZ.
        names = (
            dims[name] if name in dims else [f"{name}_dim_{i}" for i in range(len(shapes[name]))]
        )
        owners.update(dict.fromkeys(names, name))
    for name in shapes:
        if name in owners:
            raise TypeError(
                f"Model: {name} has the name of a dimension of {owners[name]}, but must have one "
                "of its own!"
            )


def coordinates(
    shapes: Mapping[str, tuple[int, ...]],
    coords: Mapping[str, Sequence[Any]],
    dims: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """The labels of all dimensions of named values, counted from zero where there are none; refuses
    those that do not fit.
    """
    check_names(shapes, coords, dims)
    labels: dict[str, Any] = dict(coords)
    for name, names in dims.items():
        if name not in shapes:
            raise TypeError(
                f"Model: dims has {name!r}, but must have parameters and quantities: "
                f"{', '.join(shapes)}!"
            )
        shape = shapes[name]
        if len(names) != len(shape):
            raise ShapeError(
                f"Model: the dims of {name} are {', '.join(names)}, but must be those of the shape "
                f"{shape}!"
            )
        for dim, size in zip(names, shape, strict=True):
            count = len(labels.setdefault(dim, range(size)))
            if count != size:
                raise ShapeError(
                    f"Model: coords has {count} labels of {dim}, but must have {size}: {name} has "
                    f"shape {shape}!"
                )
    return labels


def check_shapes(
    function: str, values: Mapping[str, Any], known: Mapping[str, tuple[int, ...]]
) -> None:
    """Refuse named values at a draw that have other names or shapes than those at another."""
    shapes = {name: np.shape(value) for name, value in values.items()}
    if shapes != known:
        name = next(name for name in [*known, *shapes] if shapes.get(name) != known.get(name))
        now, before = (
            f"has shape {each[name]}" if name in each else "is missing" for each in (shapes, known)
        )
        raise ShapeError(
            f"{function}: {name} {now} at a draw, but {before} at another, and must be the same at "
            "all!"
        )


def without(result: Any, group: str, names: Sequence[str]) -> None:
    """Leave variables and coordinates out of a group of an ``InferenceData`` or a ``DataTree``."""
    kept = result[group]
    if hasattr(kept, "to_dataset"):
        kept.dataset = kept.to_dataset(inherit=False).drop_vars(names, errors="ignore")
    else:
        setattr(result, group, kept.drop_vars(names, errors="ignore"))


def joined_chains(results: Mapping[int, Any]) -> Any:
    """The results of single chains, by number, as one; what an interrupted chain lacks is nan or
    zero, as nutpie has it.
    """
    xarray = optional("xarray", "Model.sample")
    kind = type(next(iter(results.values())))
    is_tree = hasattr(kind, "to_dataset")

    def groups(result: Any) -> dict[str, Any]:
        if is_tree:
            return {name: group.to_dataset() for name, group in result.children.items()}
        return {name: result[name] for name in result.groups()}

    parts: dict[str, list[Any]] = {}
    for chain, result in results.items():
        for name, group in groups(result).items():
            parts.setdefault(name, []).append(
                group.assign_coords(chain=[chain]) if "chain" in group.dims else group
            )
    joined = {}
    for name, each in parts.items():
        longest = max((part["draw"] for part in each), key=len)
        filled = []
        for part in each:
            if part.sizes["draw"] < len(longest):
                fills = {
                    name: np.nan if x.dtype.kind == "f" else x.dtype.type(0)
                    for name, x in part.data_vars.items()
                }
                part = part.reindex(draw=longest, fill_value=fills)
            filled.append(part)
        joined[name] = xarray.concat(filled, "chain", combine_attrs="override", join="exact")
    return kind.from_dict(joined) if is_tree else kind(**joined)


def to_arviz(
    groups: Mapping[str, Mapping[str, Any]], coords: Mapping[str, Any], dims: Mapping[str, Any]
) -> Any:
    """Groups of named arrays of shape (chains, draws, ...) as an ``InferenceData`` (ArviZ before
    1), or a ``DataTree``.
    """
    arviz = optional("arviz", "to_arviz")
    settings = {"coords": dict(coords), "dims": {name: list(names) for name, names in dims.items()}}
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict({name: dict(group) for name, group in groups.items()}, **settings)
    return arviz.from_dict(**{name: dict(group) for name, group in groups.items()}, **settings)


def shapes_in(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    """The shapes of what is in groups, without the axes of draws, which data do not have."""
    return {
        name: np.shape(x)[0 if group.endswith("_data") else 2 :]
        for group, each in groups.items()
        for name, x in each.items()
    }


def with_groups(
    result: Any,
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any],
    dims: Mapping[str, Any],
) -> Any:
    """An ``InferenceData`` or a ``DataTree`` with more groups, which it takes up itself; those that
    it has are replaced.
    """
    if not groups:
        return result
    more = to_arviz(groups, coords, dims)
    if hasattr(result, "to_dataset"):
        for name, group in more.children.items():
            result[name] = group.copy()
    else:
        result.extend(more, join="right")
    return result
