"""Where optimisers and samplers start: random points, the first that is accepted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress, islice
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.errors import DomainError
from varmat.models.functions import recoverable

if TYPE_CHECKING:
    from varmat.models.model import Model

_TRIES = 100


def names_at(model: Model, places: np.ndarray) -> str:
    """The names of the first marked unconstrained parameters, for a message about a start."""
    return ", ".join(islice(compress(model.param_unc_names(), places), 5))


def random_start(
    rng: np.random.Generator,
    size: int,
    accepts: Callable[[np.ndarray], bool],
    centre: np.ndarray | None = None,
    refuses: Callable[[Exception], bool] = recoverable,
) -> np.ndarray:
    """The first random point that is accepted, uniform between -2 and 2 as in Stan.

    With a centre, each try is closer to it, and the last one is the centre itself. An error that is
    not a refusal of the point is raised.
    """
    reason: Exception | None = None
    for reach in np.linspace(1.0, 0.0, _TRIES):
        q = rng.uniform(-2.0, 2.0, size)
        if centre is not None:
            q = centre + reach * q
        try:
            if accepts(q):
                return q
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
    outside = (
        "none was refused, but perhaps data are outside the support of their density, as a "
        "category 0 is"
    )
    raise DomainError(
        f"Model: {text} ({f'the last refusal: {reason}' if reason else outside})"
    ) from reason
