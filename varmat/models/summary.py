"""Draws in a table: means, quantiles, and whether chains agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from varmat import html
from varmat.core.errors import DomainError
from varmat.models.layout import indexed
from varmat.models.results import optional

if TYPE_CHECKING:
    from varmat.models.results import ArvizData

COLUMNS = ("mean", "sd", "5%", "50%", "95%")
DIAGNOSTICS = ("ess_bulk", "ess_tail", "r_hat")
# Vehtari and others (2021) recommend to trust draws if R-hat is below the first, and the effective
# sample size of each chain above the second.
_LARGEST_R_HAT, _LEAST_ESS = 1.01, 100.0


@dataclass(frozen=True, repr=False)
class Summary:
    """A table of draws; made by `Model.summary`, printed as text or, in a notebook, as HTML.

    Attributes
    ----------
    names : list of str
        Of the elements, counted from one.
    table : dict of str to ndarray
        Columns: "mean", "sd", "5%", "50%", "95%", and with ArviZ "ess_bulk", "ess_tail", "r_hat".
    chains, draws : int
    divergences : int or None
        None if the sampler did not count them.
    failures : int
        Draws with an element that is inf or nan.
    """

    names: list[str]
    table: dict[str, np.ndarray]
    chains: int
    draws: int
    divergences: int | None
    failures: int = 0

    @property
    def warnings(self) -> list[str]:
        """Reasons not to trust the draws."""
        found = []
        # The standard deviation of a single draw is nan.
        kept = self.table["sd" if self.chains * self.draws > 1 else "mean"]
        if bad := [*compress(self.names, ~np.isfinite(kept))]:
            found.append(
                f"draws are inf or nan, or too large for a standard deviation: "
                f"{', '.join(bad[:5])}; the posterior may be improper, as without a prior"
            )
        if self.divergences:
            found.append(
                f"{self.divergences} of {self.chains * self.draws} draws diverged: try "
                "target_accept=0.95 or another form"
            )
        if "r_hat" in self.table and self.chains > 1:
            bad = [
                name
                for name, x in zip(self.names, self.table["r_hat"], strict=True)
                if x > _LARGEST_R_HAT
            ]
            if bad:
                found.append(
                    f"chains do not agree, r_hat is above {_LARGEST_R_HAT}: {', '.join(bad[:5])}"
                )
            least = np.minimum(self.table["ess_bulk"], self.table["ess_tail"])
            few = [
                name
                for name, x in zip(self.names, least, strict=True)
                if x < _LEAST_ESS * self.chains
            ]
            if few:
                found.append(
                    f"fewer than {_LEAST_ESS:g} effective draws for each chain: "
                    f"{', '.join(few[:5])}"
                )
        return found

    def _lines(self) -> list[str]:
        failures = f", {self.failures} of them inf or nan" if self.failures else ""
        divergences = "" if self.divergences is None else f", {self.divergences} divergences"
        head = f"{self.chains} chains of {self.draws} draws{failures}{divergences}"
        return [head, *self.warnings]

    def __repr__(self) -> str:
        width = max([9, *map(len, self.names)])
        rows = [f"{'':{width}} " + " ".join(f"{column:>10}" for column in self.table)]
        for i, name in enumerate(self.names):
            rows.append(f"{name:{width}} " + " ".join(f"{x[i]:10.4g}" for x in self.table.values()))
        return "\n".join([*self._lines(), *rows])

    def _repr_html_(self) -> str:
        rows = (
            (name, *(f"{x[i]:.4g}" for x in self.table.values()))
            for i, name in enumerate(self.names)
        )
        return "".join(map(html.paragraph, self._lines())) + html.table(["", *self.table], rows)


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


def summarised(result: ArvizData) -> Summary:
    """See `Model.summary`."""
    groups = result.groups() if hasattr(result, "log_approximation") else None
    posterior: ArvizData = (
        groups["posterior"]
        if groups
        else result
        if type(result) is dict
        else getattr(result, "posterior", None)
    )
    if posterior is None:
        raise TypeError(
            f"Model.summary: result is a {type(result).__name__}, but must be what Model.sample, "
            "Model.laplace or Model.to_arviz returned, or a dict of arrays of shape (chains, "
            "draws, ...)!"
        )
    plain = groups is not None or type(result) is dict
    arrays = {
        str(name): np.asarray(posterior[name])
        for name in (posterior if plain else posterior.data_vars)
    }
    names = [label for name, x in arrays.items() for label in indexed(name, x.shape[2:])]
    chains, draws = next(iter(arrays.values())).shape[:2]
    if not chains * draws:
        raise DomainError("Model.summary: result has 0 draws, but must have at least 1!")
    flat = np.concatenate([x.reshape(chains * draws, -1) for x in arrays.values()], axis=1)
    table, divergences = columns(flat), None
    if groups is None:
        table |= _diagnostics(arrays)
        stats = getattr(result, "sample_stats", {})
        divergences = int(np.sum(np.asarray(stats["diverging"]))) if "diverging" in stats else None
    failures = int(np.sum(~np.isfinite(flat).all(axis=1)))
    return Summary(names, table, chains, draws, divergences, failures)


def _diagnostics(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The diagnostics of ArviZ, element by element."""
    arviz, xarray = optional("arviz", "Model.summary"), optional("xarray", "Model.summary")
    flat = {name: x.reshape(*x.shape[:2], -1) for name, x in arrays.items()}
    data = xarray.Dataset(
        {name: (("chain", "draw", f"{name}_elements"), x) for name, x in flat.items()}
    )
    found = arviz.ess(data, method="bulk"), arviz.ess(data, method="tail"), arviz.rhat(data)
    return {
        title: np.concatenate([np.ravel(each[name].values) for name in arrays])
        for title, each in zip(DIAGNOSTICS, found, strict=True)
    }
