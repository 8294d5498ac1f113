"""Draws as ArviZ data, for every version of ArviZ, and optional imports."""

from __future__ import annotations

import copy
import importlib
import operator
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from varmat.core.errors import ShapeError
from varmat.functions.missing import with_missing
from varmat.interrupts import uninterrupted
from varmat.typing import Function, Operand, Shape


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
            f"{purpose} needs {package}, which is not installed: in a clone of varmat, "
            'pip install -e ".[sample]"'
        )
        raise ImportError(sentence, name=package) from None


# Types of results, for annotations.
ArvizData: TypeAlias = Any  # an ``InferenceData``; from ArviZ 1 on a ``DataTree``
Labels: TypeAlias = Mapping[str, Sequence[Any]]  # of dimensions
Dims: TypeAlias = Mapping[str, Sequence[str]]  # the names of the dimensions of named values
Groups: TypeAlias = dict[str, dict[str, Any]]  # of ArviZ, as plain arrays by name

# A group that says at how many draws functions of the model raised errors.
LOST = "lost"

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


def stacked(
    function: str,
    rows: Sequence[Mapping[str, Operand]],
    shape: Shape,
    shapes: Mapping[str, Shape] | None = None,
) -> dict[str, np.ndarray]:
    """Draws in sequence as arrays of chains by draws. Raises if one has not the shapes of the
    first, unless others are given.
    """
    if shapes is None:
        shapes = {name: np.shape(x) for name, x in rows[0].items()} if rows else {}
    for row in rows:
        check_shapes(function, row, shapes)
    return {
        name: np.array([row[name] for row in rows]).reshape(shape + inner)
        for name, inner in shapes.items()
    }


def joined_chains(results: Mapping[int, Groups], count: int) -> tuple[Groups, list[int]]:
    """The groups of single chains, by number, joined, and the numbers that are left; `count` were
    asked for.

    After an interrupt, chains without draws are left out if others have some, and the others are
    cut to the shortest, with a warning.
    """
    if not results:
        raise KeyboardInterrupt
    lost = [each.pop(LOST) for each in results.values() if LOST in each]
    lengths = {chain: draws_in(result["sample_stats"])[1] for chain, result in results.items()}
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
        warnings.warn(text, UserWarning, stacklevel=4)
    first, *_ = parts = list(results.values())
    joined: Groups = {}
    for group, arrays in first.items():
        size = min(draws_in(part[group])[1] for part in parts)
        joined[group] = {
            name: np.concatenate([part[group][name][:, :size] for part in parts]) for name in arrays
        }
    if lost:
        joined[LOST] = {**lost[0], "count": sum(each["count"] for each in lost)}
    return joined, list(results)


def lost_values(errors: Sequence[BaseException]) -> dict[str, Any]:
    """What a result says of the draws at which functions of the model raised errors."""
    return {"count": len(errors), "first": described(errors[0])}


def described(error: BaseException) -> str:
    """The kind and the text of an error."""
    return f"{type(error).__name__}: {error}"


def tell_lost(groups: Groups, level: int) -> None:
    """Warn of draws at which functions of the model raised errors."""
    lost = groups.pop(LOST, None)
    if lost is not None:
        text = (
            f"at {lost['count']} draws the functions of the model raised an error, the first "
            f"{lost['first']}; transformed parameters and generated quantities are nan there. With "
            "a function that is corrected, model.to_arviz(dict(result.posterior)) computes them"
        )
        warnings.warn(f"Model.sample: {text}", UserWarning, stacklevel=level + 1)


def draws_in(group: Mapping[str, Operand]) -> tuple[int, int]:
    """The numbers of chains and of draws of a group."""
    chains, draws = np.shape(next(iter(group.values()), np.empty((1, 0))))[:2]
    return chains, draws


def _of_whole(function: Function) -> Function:
    """Make a method that calls a function of the data of ArviZ."""
    return lambda sampled, *args: function(sampled.whole(), *args)


class Sampled:
    """Draws by name. They print as a summary, and are otherwise the data of ArviZ.

    They become an ``InferenceData``, or from ArviZ 1 on a ``DataTree``, as soon as something of it
    is used: `isinstance` and all attributes are then those of that object. Until then ArviZ, whose
    import takes seconds, is not imported.

    Parameters
    ----------
    groups : dict of str to dict of str to ndarray
        Arrays of shape (chains, draws, ...) by name, in groups of ArviZ; data without these axes.
    coords, dims : dict
        Labels of dimensions, and the dimensions of what has named ones.
    """

    __slots__ = ("_arviz", "_as_arrays", "_labels", "_named")

    def __init__(self, groups: Groups, coords: Labels, dims: Dims) -> None:
        self._as_arrays, self._labels, self._named = groups, coords, dims
        self._arviz: ArvizData = None

    def plain_groups(self) -> tuple[Groups, Dims, Labels] | None:
        """The same as `groups_of`."""
        if self._arviz is None:
            return self._as_arrays, self._named, self._labels
        return groups_of(self._arviz)

    def whole(self) -> ArvizData:
        if self._arviz is None:
            self._arviz = to_arviz(self._as_arrays, self._labels, self._named)
        return self._arviz

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.whole())

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_repr_", "_ipython_")):  # asked by notebooks
            raise AttributeError(name)
        return getattr(self.whole(), name)

    def __setattr__(self, name: str, value: object) -> None:
        if name in Sampled.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.whole(), name, value)

    __getitem__ = _of_whole(operator.getitem)
    __setitem__ = _of_whole(operator.setitem)
    __delitem__ = _of_whole(operator.delitem)
    __iter__, __len__, __dir__ = _of_whole(iter), _of_whole(len), _of_whole(dir)
    __add__, __copy__ = _of_whole(operator.add), _of_whole(copy.copy)

    def __contains__(self, name: str) -> bool:
        return name in (self._as_arrays if self._arviz is None else self._arviz)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._arviz is None:
            return Sampled, (self._as_arrays, self._labels, self._named)
        return copy.copy, (self._arviz,)

    def __repr__(self) -> str:
        chains, draws = draws_in(self._as_arrays["sample_stats"])
        return repr(self._summary()) if chains * draws else f"{chains} chains of 0 draws"

    def _repr_html_(self) -> str:
        return str(self._summary()._repr_html_())

    def _summary(self) -> Any:
        from varmat.models.summary import summarised

        return summarised(self)


def groups_of(result: Any) -> tuple[Groups, Dims, Labels] | None:
    """The groups of draws as plain arrays, with the dimensions that have names and their labels;
    None if a result has no posterior.
    """
    if type(result) is Sampled:
        return result.plain_groups()
    if type(result) is dict:
        return {"posterior": {name: with_missing(x)[0] for name, x in result.items()}}, {}, {}
    if hasattr(result, "log_approximation"):
        return result.groups(), result.dims, result.coords
    posterior = getattr(result, "posterior", None)
    if posterior is None:
        return None
    stats = getattr(result, "sample_stats", None)
    groups: Groups = {
        title: {str(name): np.asarray(group[name]) for name in getattr(group, "data_vars", group)}
        for title, group in (("posterior", posterior), ("sample_stats", stats))
        if group is not None
    }
    named = getattr(posterior, "data_vars", posterior).items()
    dims = {str(name): list(each.dims[2:]) for name, each in named if hasattr(each, "dims")}
    labels = {str(dim): each.values for dim, each in getattr(posterior, "coords", {}).items()}
    return groups, dims, labels


def to_arviz(
    groups: Mapping[str, Mapping[str, Operand]], coords: Labels, dims: Mapping[str, Operand]
) -> ArvizData:
    """Groups of named arrays of shape (chains, draws, ...) as an ``InferenceData`` (ArviZ before
    1), or a ``DataTree``.
    """
    arviz = optional("arviz", "to_arviz")
    settings: dict[str, Any] = {
        "coords": dict(coords),
        "dims": {name: list(names) for name, names in dims.items()},
    }
    if any(name.startswith("warmup_") for name in groups):
        settings["save_warmup"] = True
    given = {name: dict(group) for name, group in groups.items()}
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict(given, **settings)
    return arviz.from_dict(**given, **settings)


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
