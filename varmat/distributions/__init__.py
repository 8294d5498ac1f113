"""Distributions as objects: `Normal(mu, sigma)` has the log density, the distribution function and
the random numbers of `varmat.normal_lpdf`, `varmat.normal_cdf` and `varmat.normal_rng`.

    >>> import varmat.distributions as dist
    >>> height = dist.Normal(170.0, 8.0)
    >>> round(height.lpdf([165.0, 181.0]), 6)
    -7.137385
    >>> height.cdf(170.0)
    0.5
    >>> height.rng(1, size=3).round(1)
    array([172.8, 176.6, 172.6])

There is a class for each density and mass of varmat, named after it: `StudentT`, `NegBinomial2Log`,
`BernoulliLogitGLM`, `LKJCorrCholesky`. It has the parameters of the density.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable
from functools import cache

from varmat.densities.density import Density
from varmat.distributions.areal import ICAR as ICAR
from varmat.distributions.composed import HiddenMarkov as HiddenMarkov
from varmat.distributions.composed import Mixture as Mixture
from varmat.distributions.custom import Custom as Custom
from varmat.distributions.distribution import Censored as Censored
from varmat.distributions.distribution import Distribution as Distribution
from varmat.distributions.distribution import IntervalCensored as IntervalCensored
from varmat.distributions.distribution import Truncated as Truncated
from varmat.distributions.hints import CLASSES
from varmat.distributions.rows import OfRow
from varmat.distributions.state_space import LinearStateSpace as LinearStateSpace

_INITIALS = ("dlm", "glm", "gp", "lkj")


def class_name(words: Iterable[str]) -> str:
    """Return the name of a class, from the words of the name of its density."""
    return "".join(word.upper() if word in _INITIALS else word.capitalize() for word in words)


@cache
def _rows() -> dict[str, Density]:
    """Return the row of each class, by the name of the class."""
    from varmat.densities import unnormalised  # it refers to every density

    rows = [getattr(unnormalised, name).density for name in unnormalised.__all__]
    return {class_name(row.name.split("_")[:-1]): row for row in rows}


def __getattr__(name: str) -> type[OfRow]:
    if name == "__all__":
        return [*_OWN, *_rows()]  # type: ignore[return-value]
    if name.startswith("_") or name not in _rows():
        near = [] if name.startswith("_") else difflib.get_close_matches(name, [*_OWN, *_rows()], 1)
        near = [CLASSES[name]] if name in CLASSES else near
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    # The first class stays, because objects that other threads made are of it.
    result: type[OfRow] = globals().setdefault(name, of_row(name, _rows()[name]))
    return result


_OWN = ("Censored", "Custom", "Distribution", "HiddenMarkov", "ICAR", "IntervalCensored",
        "LinearStateSpace", "Mixture", "Truncated")  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*_OWN, *_rows()])


def of_row(name: str, row: Density) -> type[OfRow]:
    """Make the class of the distribution of a row."""
    _, *parameters = inspect.signature(row).parameters.values()
    shown = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    functions = f"`varmat.{row.name}`"
    lines = "\n".join(
        f"    {p.name} : array_like\n        {row.arguments[p.name][0]}." for p in shown
    )
    return type(name, (OfRow,), {
        "row": row,
        "__signature__": inspect.Signature(shown),
        "__module__": "varmat.distributions",
        "__doc__": f"The distribution of {functions}.\n\n    Parameters\n    ----------\n{lines}\n",
    })  # fmt: skip
