"""Draws in a table: means, quantiles, and whether chains agree."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import getitem
from typing import TYPE_CHECKING

import numpy as np

from varmat import html
from varmat.core.errors import DomainError
from varmat.models.diagnostics import DIAGNOSTICS, SamplingWarning, diagnostics, problems
from varmat.models.nuts import meant
from varmat.models.progress import Display
from varmat.models.results import draws_in, groups_of
from varmat.typing import Shape

if TYPE_CHECKING:
    from varmat.models.results import ArvizData, Dims, Groups, Labels

COLUMNS = ("mean", "sd", "5%", "50%", "95%")
_DIGITS = dict.fromkeys(COLUMNS, ".4g") | dict(zip(DIAGNOSTICS, (".0f", ".0f", ".3f"), strict=True))


@dataclass(frozen=True, repr=False)
class Summary:
    """A table of draws; made by `Model.summary`, printed as text or, in a notebook, as HTML.

    Attributes
    ----------
    names : list of str
        Of the elements: with the labels of their dimensions, or indices from 0.
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
        # Of constants there is no R-hat.
        known = self.table.get("r_hat", np.empty(0))
        known = np.isfinite(known)
        if known.any():
            least = min(np.min(self.table[name][known]) for name in DIAGNOSTICS[:2])
            said.append(f"r_hat up to {np.max(self.table['r_hat'][known]):.3f}")
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
    """Mean, standard deviation and quantiles of draws, of shape (draws, elements)."""
    with np.errstate(all="ignore"):  # draws may be infinite
        low, middle, high = np.quantile(flat, [0.05, 0.5, 0.95], axis=0)
        deviation = (
            np.std(flat, axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan)
        )
        return dict(
            zip(COLUMNS, (np.mean(flat, axis=0), deviation, low, middle, high), strict=True)
        )


def labelled(name: str, shape: Shape, dims: Dims, coords: Labels) -> list[str]:
    """The names of elements, with the labels of their dimensions or indices from 0."""
    known = dims.get(name, [""] * len(shape))
    labels = [
        coords.get(dim, range(size)) if dim else range(size)
        for dim, size in zip(known, shape, strict=True)
    ]
    found = (map(getitem, labels, index) for index in np.ndindex(*shape))
    return [f"{name}[{', '.join(map(str, each))}]" if shape else name for each in found]


def _names(arrays: Mapping[str, np.ndarray], dims: Dims, coords: Labels) -> list[str]:
    """The names of all elements of draws."""
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
    """The diagnostics of the elements, and the problems of the draws."""
    parts = [diagnostics(x) for x in arrays.values()]
    table = {each: np.concatenate([part[each] for part in parts]) for each in DIAGNOSTICS}
    chains, draws = draws_in(arrays)
    stats = groups.get("sample_stats", {})
    return table, problems(names, table, chains, draws, stats, finite, centred)


def summarised(
    result: ArvizData,
    var_names: str | Sequence[str] | None = None,
    rows: int | None = 10,
    centred: Sequence[str] = (),
) -> Summary:
    """See `Model.summary`."""
    found = groups_of(result)
    if found is None:
        raise TypeError(
            f"Model.summary: result is a {type(result).__name__}, but must be what Model.sample, "
            "Model.laplace or Model.to_arviz returned, or a dict of arrays of shape (chains, "
            "draws, ...)!"
        )
    groups, dims, coords = found
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
    flat = np.concatenate([x.reshape(chains * draws, -1) for x in arrays.values()], axis=1)
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
) -> None:
    """Say how the sampling went: warn of problems of the parameters; if there are none, a line
    where the progress was shown.
    """
    groups, dims, coords = groups_of(result) or ({"posterior": {}}, {}, {})
    arrays = {name: groups["posterior"][name] for name in parameters}
    chains, draws = draws_in(arrays)
    if not chains * draws:
        return
    names = _names(arrays, dims, coords)
    finite = np.concatenate([np.isfinite(x).all(axis=(0, 1)).ravel() for x in arrays.values()])
    table, said = _diagnosed(groups, names, arrays, finite, centred)
    if said:
        warnings.warn(SamplingWarning(said), stacklevel=level + 1)
    elif is_shown:
        divergences = int(np.sum(groups["sample_stats"]["diverging"]))
        head = Summary(names, table, chains, draws, divergences).head()
        Display(True).show(lambda: [head], True)
