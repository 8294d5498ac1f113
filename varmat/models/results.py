"""Draws as ArviZ data, for every version of ArviZ, and in a table; optional imports."""

from __future__ import annotations

import copy
import difflib
import importlib
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import getitem
from typing import Any, TypeAlias

import numpy as np

from varmat import html
from varmat.core.errors import DomainError, ShapeError
from varmat.functions.missing import with_missing
from varmat.interrupts import uninterrupted
from varmat.models.datasets import DRAWS, GROUPS, dataset, refuse_quantity, unimported_arviz
from varmat.models.diagnostics import DIAGNOSTICS, SamplingWarning, diagnostics, problems
from varmat.models.progress import Display
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


def check_names(
    shapes: Mapping[str, Shape], coords: Labels, dims: Mapping[str, Sequence[str]]
) -> None:
    """Raise if a parameter or quantity has the name of a dimension: ArviZ would silently keep the
    dimension alone.
    """
    for title, data in (
        ("coords", coords),
        ("dims", [dim for names in dims.values() for dim in names]),
    ):
        for dim in data:
            if dim in DRAWS:
                raise TypeError(
                    f"Model: {title} has {dim!r}, but must have names other than chain and draw, "
                    "which all draws have!"
                )
    owners = dict.fromkeys(DRAWS, "all draws")
    for name in {**shapes, **dims}:
        # ArviZ gives these names to dimensions that have none.
        names = (
            dims[name] if name in dims else [f"{name}_dim_{i}" for i in range(len(shapes[name]))]
        )
        owners.update(dict.fromkeys(names, name))
    for name in shapes:
        if name in owners:
            raise TypeError(
                f"Model: {name} has the name of a dimension of {owners[name]}, but must have a "
                "different name!"
            )


def coordinates(
    shapes: Mapping[str, Shape], coords: Labels, dims: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[Any]]:
    """Return the labels of all dimensions of named values, by default counted from zero. Raise if
    labels do not fit.
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


def check_shapes(function: str, values: Mapping[str, Operand], cached: Mapping[str, Shape]) -> None:
    """Raise if named values have other names or shapes at one draw than at another."""
    shapes = {name: np.shape(value) for name, value in values.items()}
    if shapes != cached:
        name = next(name for name in [*cached, *shapes] if shapes.get(name) != cached.get(name))
        now, before = (
            f"has shape {x[name]}" if name in x else "is missing" for x in (shapes, cached)
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
    """Stack draws in sequence to arrays of chains by draws. Raise if one does not have the shapes
    of the first, unless others are given.
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
    """Join the groups of single chains, by number. Return also the numbers of the chains that are
    kept; `count` were requested.

    After an interrupt, chains without draws are left out if others have some, and the others are
    cut to the shortest, with a warning.
    """
    if not results:
        raise KeyboardInterrupt
    lost = [result.pop(LOST) for result in results.values() if LOST in result]
    lengths = {chain: draws_in(result["sample_stats"])[1] for chain, result in results.items()}
    if any(lengths.values()):
        results = {chain: result for chain, result in results.items() if lengths[chain]}
    least, most = (x(lengths[chain] for chain in results) for x in (min, max))
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
        joined[LOST] = {**lost[0], "count": sum(x["count"] for x in lost)}
    return joined, list(results)


def lost_values(errors: Sequence[BaseException]) -> dict[str, Any]:
    """Describe the draws at which functions of the model raised errors, for the result."""
    return {"count": len(errors), "first": described(errors[0])}


def described(error: BaseException) -> str:
    """Return the kind and the text of an error."""
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
    """Return the numbers of chains and of draws of a group."""
    chains, draws = np.shape(next(iter(group.values()), np.empty((1, 0))))[:2]
    return chains, draws


def _of_whole(function: Function) -> Function:
    """Make a method that calls a function of the data of ArviZ."""
    return lambda sampled, *args: function(sampled.whole(), *args)


def real_arrays(function: str, values: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Convert the named values that a function returned to arrays."""
    arrays = {name: np.asarray(value) for name, value in values.items()}
    for name, x in arrays.items():
        if x.dtype.kind not in "biuf":
            raise TypeError(
                f"{function} returned {name!r} of dtype {x.dtype}, but must return real numbers!"
            )
    return arrays


class Sampled:
    """Draws by name. They print as a summary, and are otherwise the data of ArviZ.

    They become an ``InferenceData``, or from ArviZ 1 on a ``DataTree``, as soon as something of it
    is used: `isinstance` and all attributes are then those of that object. Until then ArviZ, whose
    import takes seconds, is not imported. Draws and statistics do not need it: before ArviZ 1 these
    groups are datasets of xarray, which go into the ``InferenceData`` when it is made.

    Parameters
    ----------
    groups : dict of str to dict of str to ndarray
        Arrays of shape (chains, draws, ...) by name, in groups of ArviZ; data without these axes.
    coords, dims : dict
        Labels of dimensions, and the dimensions of what has named ones.
    """

    __slots__ = ("_arviz", "_as_arrays", "_datasets", "_labels", "_named")

    def __init__(self, groups: Groups, coords: Labels, dims: Dims) -> None:
        self._as_arrays, self._labels, self._named = groups, coords, dims
        self._arviz: ArvizData = None
        self._datasets: dict[str, Any] = {}

    def plain_groups(self) -> tuple[Groups, Dims, Labels] | None:
        """Return the same as `groups_of`."""
        if self._arviz is not None:
            return groups_of(self._arviz)
        if self._datasets:  # which may have been changed
            return _groups_in(self["posterior"], self["sample_stats"])
        return self._as_arrays, self._named, self._labels

    def whole(self) -> ArvizData:
        if self._arviz is None:
            self._arviz = to_arviz(self._as_arrays, self._labels, self._named)
            for name, dataset in self._datasets.items():
                setattr(self._arviz, name, dataset)
        return self._arviz

    def _dataset(self, name: str) -> Any:
        """Return a group without importing ArviZ, or None if that is not possible."""
        if self._arviz is not None or name not in GROUPS or name not in self._as_arrays:
            return refuse_quantity(name, self._as_arrays, self.whole)
        if name not in self._datasets and (arviz := unimported_arviz()).startswith("0."):
            group = self._as_arrays[name]
            self._datasets[name] = dataset(group, self._labels, self._named, arviz)
        return self._datasets.get(name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.whole())

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_repr_", "_ipython_")):  # asked by notebooks
            raise AttributeError(name)
        dataset = self._dataset(name)
        return getattr(self.whole(), name) if dataset is None else dataset

    def __getitem__(self, name: str) -> Any:
        dataset = self._dataset(name)
        return self.whole()[name] if dataset is None else dataset

    def __setattr__(self, name: str, value: object) -> None:
        if name in Sampled.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.whole(), name, value)

    __setitem__ = _of_whole(operator.setitem)
    __delitem__ = _of_whole(operator.delitem)
    __iter__, __len__, __dir__ = _of_whole(iter), _of_whole(len), _of_whole(dir)
    __add__, __copy__ = _of_whole(operator.add), _of_whole(copy.copy)

    def __contains__(self, name: str) -> bool:
        return name in (self._as_arrays if self._arviz is None else self._arviz)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._arviz is None and not self._datasets:
            return Sampled, (self._as_arrays, self._labels, self._named)
        return copy.copy, (self.whole(),)

    def __repr__(self) -> str:
        chains, draws = draws_in(self._as_arrays["sample_stats"])
        return repr(summarised(self)) if chains * draws else f"{chains} chains of 0 draws"

    def _repr_html_(self) -> str:
        return summarised(self)._repr_html_()


def groups_of(result: Any) -> tuple[Groups, Dims, Labels] | None:
    """Return the groups of draws as plain arrays, with the dimensions that have names and their
    labels; None if a result has no posterior.
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
    return _groups_in(posterior, getattr(result, "sample_stats", None))


def _groups_in(posterior: Any, stats: Any) -> tuple[Groups, Dims, Labels]:
    groups: Groups = {
        title: {str(name): np.asarray(group[name]) for name in getattr(group, "data_vars", group)}
        for title, group in (("posterior", posterior), ("sample_stats", stats))
        if group is not None
    }
    by_name = getattr(posterior, "data_vars", posterior).items()
    dims = {str(name): list(x.dims[2:]) for name, x in by_name if hasattr(x, "dims")}
    labels = {str(dim): x.values for dim, x in getattr(posterior, "coords", {}).items()}
    return groups, dims, labels


def to_arviz(
    groups: Mapping[str, Mapping[str, Operand]], coords: Labels, dims: Mapping[str, Operand]
) -> ArvizData:
    """Convert groups of named arrays of shape (chains, draws, ...) to an ``InferenceData`` (ArviZ
    before 1), or a ``DataTree``.
    """
    # From ArviZ 1 on, a part of it that is imported faster has the same function.
    is_split = unimported_arviz().partition(".")[0] not in ("", "0")
    arviz = optional("arviz_base" if is_split else "arviz", "to_arviz")
    settings: dict[str, Any] = {
        "coords": dict(coords),
        "dims": {name: list(names) for name, names in dims.items()},
    }
    if any(name.startswith("warmup_") for name in groups):
        settings["save_warmup"] = True
    data = {name: dict(group) for name, group in groups.items()}
    if int(arviz.__version__.partition(".")[0]) >= 1:
        return arviz.from_dict(data, **settings)
    prior = data.pop("log_prior", None)  # which is not taken
    result = arviz.from_dict(**data, **settings)
    if prior:
        result.add_groups(log_prior=prior, **{n: settings[n] for n in ("coords", "dims")})
    return result


def shapes_in(groups: Mapping[str, Mapping[str, Operand]]) -> dict[str, Shape]:
    """Return the shapes of the values in groups, without the axes of draws, which data lack."""
    return {
        name: np.shape(x)[0 if group.endswith("_data") else 2 :]
        for group, item in groups.items()
        for name, x in item.items()
    }


def with_groups(
    result: ArvizData,
    groups: Mapping[str, Mapping[str, object]],
    coords: Labels,
    dims: Mapping[str, object],
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


# --- in a table ---

COLUMNS = ("mean", "sd", "5%", "50%", "95%")
_DIGITS = dict.fromkeys(COLUMNS, ".4g") | dict(zip(DIAGNOSTICS, (".0f", ".0f", ".3f"), strict=True))


@dataclass(frozen=True, repr=False)
class Summary:
    """A table of draws; made by `Model.summary`, printed as text or, in a notebook, as HTML.

    Attributes
    ----------
    names : list of str
        Names of the elements, with the labels of their dimensions, or indices from 0.
    table : dict of str to ndarray
        Columns: "mean", "sd", "5%", "50%", "95%", and of chains "ess_bulk", "ess_tail", "r_hat",
        which are nan for an element that is constant.
    chains, draws : int
    divergences : int or None
        None if the sampler did not count them.
    failures : int
        Draws with an element that is inf or nan.
    problems : dict of str to str
        Reasons not to trust the draws, see `SamplingWarning`.
    rows : int or None
        How many rows are printed; None for all.
    """

    names: list[str]
    table: dict[str, np.ndarray]
    chains: int
    draws: int
    divergences: int | None
    failures: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    rows: int | None = 10

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust the draws."""
        return list(self.problems.values())

    def head(self) -> str:
        """Describe the draws in a line."""
        said = [f"{self.chains} chains of {self.draws} draws"]
        if self.failures:
            said.append(f"{self.failures} of them inf or nan")
        if self.divergences is not None:
            said.append(f"{self.divergences} divergences")
        # Constants have no R-hat.
        r_hat = self.table.get("r_hat", np.empty(0))
        r_hat = np.isfinite(r_hat)
        if r_hat.any():
            least = min(np.min(self.table[name][r_hat]) for name in DIAGNOSTICS[:2])
            said.append(f"r_hat up to {np.max(self.table['r_hat'][r_hat]):.3f}")
            said.append(f"at least {least:.0f} effective draws")
        return ", ".join(said)

    def _cells(self) -> list[tuple[str, ...]]:
        columns = [
            ["-" if name in DIAGNOSTICS and np.isnan(x) else f"{x:{_DIGITS[name]}}" for x in column]
            for name, column in ((name, x[: self.rows]) for name, x in self.table.items())
        ]
        return [*zip(self.names[: self.rows], *columns, strict=True)]

    def _left(self) -> list[str]:
        left = len(self.names[self.rows :]) if self.rows is not None else 0
        return [f"and {left} more: summary(..., rows=None) prints all"] if left else []

    def __repr__(self) -> str:
        cells = self._cells()
        width = max([9, *(len(row[0]) for row in cells)])
        lines = [f"{'':{width}} " + " ".join(f"{column:>10}" for column in self.table)]
        for name, *row in cells:
            lines.append(f"{name:{width}} " + " ".join(f"{cell:>10}" for cell in row))
        return "\n".join([self.head(), *self.warnings, *lines, *self._left()])

    def _repr_html_(self) -> str:
        said = "".join(map(html.paragraph, [self.head(), *self.warnings]))
        left = "".join(map(html.paragraph, self._left()))
        return said + html.table(["", *self.table], self._cells()) + left


def columns(flat: np.ndarray) -> dict[str, np.ndarray]:
    """Compute mean, standard deviation and quantiles of draws, of shape (draws, elements)."""
    with np.errstate(all="ignore"):  # draws may be infinite
        low, middle, high = np.quantile(flat, [0.05, 0.5, 0.95], axis=0)
        deviation = (
            np.std(flat, axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan)
        )
        return dict(
            zip(COLUMNS, (np.mean(flat, axis=0), deviation, low, middle, high), strict=True)
        )


def labelled(name: str, shape: Shape, dims: Dims, coords: Labels) -> list[str]:
    """Return the names of elements, with the labels of their dimensions or indices from 0."""
    names = dims.get(name, [""] * len(shape))
    labels = [
        coords.get(dim, range(size)) if dim else range(size)
        for dim, size in zip(names, shape, strict=True)
    ]
    result = (map(getitem, labels, index) for index in np.ndindex(*shape))
    return [f"{name}[{', '.join(map(str, x))}]" if shape else name for x in result]


def _names(arrays: Mapping[str, np.ndarray], dims: Dims, coords: Labels) -> list[str]:
    """Return the names of all elements of draws."""
    return [
        label for name, x in arrays.items() for label in labelled(name, x.shape[2:], dims, coords)
    ]


def _diagnosed(
    groups: Groups,
    names: Sequence[str],
    arrays: Mapping[str, np.ndarray],
    finite: np.ndarray,
    centred: Sequence[str],
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the diagnostics of the elements, and the problems of the draws."""
    parts = [diagnostics(x) for x in arrays.values()]
    table = {x: np.concatenate([part[x] for part in parts]) for x in DIAGNOSTICS}
    chains, draws = draws_in(arrays)
    stats = groups.get("sample_stats", {})
    return table, problems(names, table, chains, draws, stats, finite, centred)


def meant(name: str, values: Iterable[str]) -> str:
    """Suggest a name instead of an unknown one: "did you mean x?", or all names if none is near."""
    names = sorted(values)
    close = difflib.get_close_matches(name, names, 1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"


def summarised(
    result: ArvizData,
    var_names: str | Sequence[str] | None = None,
    rows: int | None = 10,
    centred: Sequence[str] = (),
) -> Summary:
    """Summarise draws for `Model.summary`."""
    output = groups_of(result)
    if output is None:
        raise TypeError(
            f"Model.summary: result is a {type(result).__name__}, but must be what Model.sample, "
            "Model.laplace or Model.to_arviz returned, or a dict of arrays of shape (chains, "
            "draws, ...)!"
        )
    groups, dims, coords = output
    arrays = {name: np.asarray(x) for name, x in groups["posterior"].items()}
    chosen = [var_names] if isinstance(var_names, str) else var_names or list(arrays)
    for name in chosen:
        if name not in arrays:
            raise TypeError(f"Model.summary: result has no {name}: {meant(name, arrays)}")
    arrays = {name: arrays[name] for name in chosen}
    chains, draws = draws_in(arrays)
    if not chains * draws:
        raise DomainError("Model.summary: result has 0 draws, but must have at least 1!")
    names = _names(arrays, dims, coords)
    flat = np.hstack([x.reshape(chains * draws, -1) for x in arrays.values()], dtype=float)
    table, said, divergences = columns(flat), {}, None
    # The standard deviation of a single draw is nan.
    finite = np.isfinite(table["sd" if chains * draws > 1 else "mean"])
    if hasattr(type(result), "log_approximation") or "log_approximation" in groups.get(
        "sample_stats", {}
    ):
        said = problems(names, {}, chains, draws, {}, finite)
    else:
        more, said = _diagnosed(groups, names, arrays, finite, centred)
        table |= more
        if "diverging" in groups.get("sample_stats", {}):
            divergences = int(np.sum(np.asarray(groups["sample_stats"]["diverging"])))
    failures = int(np.sum(~np.isfinite(flat).all(axis=1)))
    return Summary(names, table, chains, draws, divergences, failures, said, rows)


def report(
    result: ArvizData,
    parameters: Sequence[str],
    is_shown: bool,
    level: int,
    centred: Sequence[str] = (),
    words: Mapping[str, str] | None = None,
) -> None:
    """Say how the sampling went: warn of problems of the parameters; without any, print a line
    where the progress was shown. Words of `Model.sample` are replaced by the words of its caller.
    """
    groups, dims, coords = groups_of(result) or ({"posterior": {}}, {}, {})
    arrays = {name: groups["posterior"][name] for name in parameters}
    chains, draws = draws_in(arrays)
    if not chains * draws:
        return
    names = _names(arrays, dims, coords)
    finite = np.concatenate([np.isfinite(x).all(axis=(0, 1)).ravel() for x in arrays.values()])
    table, said = _diagnosed(groups, names, arrays, finite, centred)
    for word, other in (words or {}).items():
        said = {name: text.replace(word, other) for name, text in said.items()}
    if said:
        warning = SamplingWarning(said, (words or {}).get("Model.sample", "Model.sample"))
        warnings.warn(warning, stacklevel=level + 1)
    elif is_shown:
        divergences = int(np.sum(groups["sample_stats"]["diverging"]))
        head = Summary(names, table, chains, draws, divergences).head()
        Display(True).show(lambda: [head], True)
