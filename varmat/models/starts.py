"""Where optimisers and samplers start: random points, the first that is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.interrupts import Attempt
from varmat.models.functions import recoverable
from varmat.models.results import draws_in, groups_of
from varmat.typing import Operand

_TRIES = 100
# How far starts at 0 are from it. Many densities are flat there, and nutpie scales its first steps
# by the gradient.
_NEAR = 1e-9


class Starts(NamedTuple):
    """Where the chains start.

    Attributes
    ----------
    points : ndarray of shape (chains, N), optional
        Unconstrained points.
    radius : float
        How far each element may be from them, or from 0.
    """

    points: np.ndarray | None = None
    radius: float = 2.0

    def of(self, chain: int) -> np.ndarray | None:
        """Return the point of a chain."""
        return None if self.points is None else self.points[chain]


def starts_of(
    initial_point: Callable[..., np.ndarray],
    parameters: Mapping[str, object],
    inits: Operand,
    radius: float | None,
    chains: int,
    name: str = "Model.sample",
    seed: int | np.random.Generator | None = None,
) -> Starts:
    """Return the starts that `inits` describes: a point for all chains, one for each, or draws,
    from whose chains the last draws are taken in turn; or a number, the radius around 0.
    `initial_point` makes a point from one of them. Parameters that a dict leaves out start at
    random.
    """
    if isinstance(inits, (int, float)) and not isinstance(inits, bool):
        if radius is not None:
            raise TypeError(
                f"{name}: inits is {inits!r}, the radius around 0, so init_radius must be left out!"
            )
        if not 0.0 <= inits < np.inf:
            raise DomainError(f"{name}: inits is {inits!r}, but must be nonnegative finite!")
        return Starts(None, float(inits) or _NEAR)
    if radius is None:
        radius = 2.0 if inits is None else 0.0
    if not 0.0 <= radius < np.inf:
        raise DomainError(f"{name}: init_radius is {radius!r}, but must be nonnegative finite!")
    if inits is None:
        return Starts(None, radius)
    result = None if type(inits) is dict else groups_of(inits)
    if result is not None:
        posterior = result[0]["posterior"]
        if missing := [parameter for parameter in parameters if parameter not in posterior]:
            raise TypeError(f"{name}: inits has no draws of {missing[0]}, but must have some!")
        there, draws = draws_in(posterior)
        if not there * draws:
            raise DomainError(f"{name}: inits has 0 draws, but must have at least 1!")
        turns = [
            (i % there, draws - 1 - (i // there) * max(1, draws // chains)) for i in range(chains)
        ]
        inits = [
            {parameter: posterior[parameter][index] for parameter in parameters} for index in turns
        ]
    is_one = isinstance(inits, Mapping) or hasattr(inits, "jacobian")
    if not is_one and (isinstance(inits, str) or not hasattr(inits, "__len__")):
        raise TypeError(
            f"{name}: inits is {inits!r}, but must be a dict of parameters, an unconstrained "
            "vector, a list of these for the chains, draws, or a number!"
        )
    if not is_one:
        first = inits[0] if len(inits) else 0.0
        is_one = not isinstance(first, Mapping) and np.ndim(first) == 0
    x = [inits] * chains if is_one else list(inits)
    if len(x) != chains:
        raise ShapeError(
            f"{name}: inits has {len(x)} points, but must have one, or one for each of the "
            f"{chains} chains!"
        )
    if all(not isinstance(point, Mapping) or len(point) >= len(parameters) for point in x):
        return Starts(np.array([initial_point(point) for point in x]), radius)
    seeds = np.random.default_rng(seed).integers(2**63, size=chains).tolist()
    return Starts(np.array([*map(initial_point, x, seeds)]), radius)


def random_start(
    rng: np.random.Generator,
    size: int,
    accepts: Callable[[np.ndarray], bool],
    centre: np.ndarray | None = None,
    refuses: Callable[[Exception], bool] = recoverable,
    blame: Callable[[np.ndarray], str] = lambda q: "",
    radius: float | np.ndarray = 2.0,
) -> np.ndarray:
    """Return the first random point that is accepted, by default uniform between -2 and 2 as in
    Stan. Elements may have different radii.

    With a centre, each try is closer to it, and the last one is the centre itself. An error that is
    not a refusal of the point is raised. If no point is accepted, the message says
    what `blame` finds at the last one.
    """
    reason: Exception | None = None
    rejected: np.ndarray | None = None
    is_random = bool(np.any(radius))
    tries = _TRIES if is_random else 1
    for reach in np.linspace(1.0, 0.0, tries):
        q = rng.uniform(-radius, radius, size)
        if centre is not None:
            q = centre + reach * q
        with Attempt(refuses) as refused:
            if accepts(q):
                return q
            rejected = q
        reason = refused.error or reason
    if reason is not None and not recoverable(reason):
        raise reason
    where = f"{tries} random starts" if is_random else "the start that was given"
    text = (
        f"the log density is not finite at {where}; check the data and the priors, or give "
        f"{'a' if is_random else 'another'} start"
    )
    term = "" if rejected is None else blame(rejected)
    last = "no point was refused" if reason is None else f"the last refusal: {reason}"
    raise DomainError(f"Model: {text} ({term or last})") from reason
