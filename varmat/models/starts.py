"""Where optimisers and samplers start: random points, the first that is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import compress, islice
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.tape import nested
from varmat.core.variables import var
from varmat.models.functions import recoverable
from varmat.models.unpacking import sum_of_terms

if TYPE_CHECKING:
    from varmat.models.model import Model

_TRIES = 100
_DENSITY = re.compile(r"_l(pdf|pmf|cdf|ccdf)\b")


def names_at(model: Model, places: np.ndarray) -> str:
    """The names of the first marked unconstrained parameters, for a message about a start."""
    return ", ".join(islice(compress(model.param_unc_names(), places), 5))


def random_start(
    rng: np.random.Generator,
    size: int,
    accepts: Callable[[np.ndarray], bool],
    centre: np.ndarray | None = None,
    refuses: Callable[[Exception], bool] = recoverable,
    model: Model | None = None,
) -> np.ndarray:
    """The first random point that is accepted, uniform between -2 and 2 as in Stan.

    With a centre, each try is closer to it, and the last one is the centre itself. An error that is
    not a refusal of the point is raised. If no point is accepted, the message names the term of
    `model` that is not finite.
    """
    reason: Exception | None = None
    rejected: np.ndarray | None = None
    for reach in np.linspace(1.0, 0.0, _TRIES):
        q = rng.uniform(-2.0, 2.0, size)
        if centre is not None:
            q = centre + reach * q
        try:
            if accepts(q):
                return q
            rejected = q
        except Exception as error:
            if not refuses(error):
                raise
            reason = error
    if reason is not None and not recoverable(reason):
        raise reason
    text = (
        f"at {_TRIES} random points the model refused the parameters, or its log density was not "
        "finite; give a start"
    )
    term = "" if model is None or rejected is None else not_finite(model, rejected)
    last = "no point was refused" if reason is None else f"the last refusal: {reason}"
    raise DomainError(f"Model: {text} ({term or last})") from reason


def not_finite(model: Model, q: np.ndarray) -> str:
    """The first result at a point that is not finite, of a density if there is one; else empty."""
    found = ""
    with nested() as tape, np.errstate(all="ignore"):
        model._target(var(q), True, True)
        for rule, result, _, _ in tape:
            x = np.asarray(getattr(result, "_val", 0.0))
            bad = np.argwhere(~np.isfinite(x))
            if len(bad):
                place = f"[{', '.join(map(str, bad[0]))}]" if x.ndim else ""
                name = "the log density" if rule.op is sum_of_terms else rule.name
                text = f"at the last of these, {name}{place} is {x[tuple(bad[0])].item()}"
                if _DENSITY.search(rule.name):
                    return text
                found = found or text
    return found
