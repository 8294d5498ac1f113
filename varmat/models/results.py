"""Draws as ArviZ data, for every version of ArviZ, and optional imports."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from varmat.core.errors import ShapeError
from varmat.interrupts import uninterrupted

if TYPE_CHECKING:
    from varmat.typing import Operand, Shape


def optional(module: str, purpose: str) -> Any:
    """Import a module of the extra ``sample``, or say how to install it."""
    try:
        with uninterrupted():
            return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        sentence = (
            f'{purpose} needs {package}, which is not installed: pip install "varmat[sample]"'
        )
        raise ImportError(sentence, name=package) from None


# Types of results, for annotations.
ArvizData: TypeAlias = Any  # an ``InferenceData``; from ArviZ 1 on a ``DataTree``
Labels: TypeAlias = Mapping[str, Sequence[Any]]  # of dimensions
Dims: TypeAlias = Mapping[str, Sequence[str]]  # the names of the dimensions of named values

# All draws have these dimensions.
_OF_ALL = ("chain", "draw")


def check_names(
    shapes: Mapping[str, Shape], coords: Labels, dims: Mapping[str, Sequence[str]]
) -> None:
    """Raise if a parameter or quantity has the name of a dimension: ArviZ would silently keep the
    dimension alone.
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
        # ArviZ gives these names to dimensions that have none.
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
    shapes: Mapping[str, Shape], coords: Labels, dims: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[Any]]:
    """The labels of all dimensions of named values, by default counted from zero. Raises if labels
    do not fit.
    """
    check_names(shapes, coords, dims)
    labels: dict[str, Sequence[Any]] = dict(coords)
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


def check_shapes(function: str, values: Mapping[str, Operand], known: Mapping[str, Shape]) -> None:
    """Raise if named values have other names or shapes at one draw than at another."""
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


def without(result: ArvizData, group: str, names: Sequence[str]) -> None:
    """Remove variables and coordinates from a group of ArviZ data."""
    kept = result[group]
    if hasattr(kept, "to_dataset"):
        kept.dataset = kept.to_dataset(inherit=False).drop_vars(names, errors="ignore")
    else:
        setattr(result, group, kept.drop_vars(names, errors="ignore"))


def joined_chains(results: Mapping[int, ArvizData], count: int) -> ArvizData:
    """The results of single chains, by number, joined; `count` were asked for.

    After an interrupt, chains without draws are left out if others have some, and the others are
    cut to the shortest, with a warning.
    """
    if not results:
        raise KeyboardInterrupt
    lengths = {chain: len(result["posterior"]["draw"]) for chain, result in results.items()}
    if any(lengths.values()):
        results = {chain: result for chain, result in results.items() if lengths[chain]}
    least, most = (each(lengths[chain] for chain in results) for each in (min, max))
    said = []
    if len(results) < count:
        left = ", ".join(str(i) for i in range(count) if i not in results)
        said.append(f"the result is without the chains {left}, which have no draws")
    if least < most:
        said.append(f"the chains, which have up to {most} draws, are cut to the shortest, {least}")
    if said:
        text = f"Model.sample: interrupted: {'; '.join(said)}"
        warnings.warn(text, UserWarning, stacklevel=6)
    xarray = optional("xarray", "Model.sample")
    kind = type(next(iter(results.values())))
    is_tree = hasattr(kind, "to_dataset")

    def groups(result: ArvizData) -> dict[str, Operand]:
        if is_tree:
            return {name: group.to_dataset() for name, group in result.children.items()}
        return {name: result[name] for name in result.groups()}

    parts: dict[str, list[ArvizData]] = {}
    for chain, result in results.items():
        for name, group in groups(result).items():
            parts.setdefault(name, []).append(
                group.assign_coords(chain=[chain]) if "chain" in group.dims else group
            )
    joined = {}
    for name, each in parts.items():
        shortest = min(part.sizes["draw"] for part in each)
        cut = [part.isel(draw=slice(shortest)) for part in each]
        joined[name] = xarray.concat(cut, "chain", combine_attrs="override", join="exact")
    return kind.from_dict(joined) if is_tree else kind(**joined)


def to_arviz(
    groups: Mapping[str, Mapping[str, Operand]], coords: Labels, dims: Mapping[str, Operand]
) -> ArvizData:
    """Groups of named arrays of shape (chains, draws, ...) as an ``InferenceData`` (ArviZ before
    1), or a ``DataTree``.
    """
    arviz = optional("arviz", "to_arviz")
    settings = {"coords": dict(coords), "dims": {name: list(names) for name, names in dims.items()}}
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict({name: dict(group) for name, group in groups.items()}, **settings)
    return arviz.from_dict(**{name: dict(group) for name, group in groups.items()}, **settings)


def shapes_in(groups: Mapping[str, Mapping[str, Operand]]) -> dict[str, Shape]:
    """The shapes of the values in groups, without the axes of draws. Data have no such axes."""
    return {
        name: np.shape(x)[0 if group.endswith("_data") else 2 :]
        for group, each in groups.items()
        for name, x in each.items()
    }


def with_groups(
    result: ArvizData,
    groups: Mapping[str, Mapping[str, Operand]],
    coords: Labels,
    dims: Mapping[str, Operand],
) -> ArvizData:
    """Add groups to an ``InferenceData`` or a ``DataTree``, in place, and return it. Groups that it
    has already are replaced.
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
