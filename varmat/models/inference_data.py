"""Groups of ArviZ except the posterior: pointwise log-likelihoods and data. Draws of other
samplers as ArviZ data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.functions.checks import misfit
from varmat.functions.missing import with_missing
from varmat.interrupts import Attempt
from varmat.models.at_draws import AtDraws, quantities
from varmat.models.blocks import Draws, of_blocks, rows_of
from varmat.models.fitting import LaplaceApproximation, densities_at
from varmat.models.functions import generator, never, of_values
from varmat.models.likelihood import LOG_LIKELIHOOD, LogLikelihood, NamedArrays
from varmat.models.predictive import Predictive, draws_of
from varmat.models.results import (
    Groups,
    Sampled,
    coordinates,
    described,
    draws_in,
    shapes_in,
    stacked,
    to_arviz,
    with_groups,
)
from varmat.models.starts import random_start
from varmat.typing import Operand, Shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.gradients import DensityModel
    from varmat.models.results import ArvizData

# The most bytes of a log-likelihood that is made unasked.
LARGEST = 4 * 2**30


def of_data(model: DensityModel, observed: Iterable[str]) -> Groups:
    """Group the data of a model that are arrays: observations, and the others."""
    dims = (dim for names in model.dims.values() for dim in names)
    taken = {*model.coords, "chain", "draw", *dims}
    observed, groups = {*observed}, Groups()
    for name, x in {**model.layout.given, **model.stated.incomplete}.items():
        with Attempt() as attempt:  # `x` may be of any library
            array = np.asarray(x)
        if attempt.error is None and array.dtype.kind in "biufUM" and name not in taken:
            group = "observed_data" if name in observed else "constant_data"
            groups.setdefault(group, {})[name] = array
    return {name: groups[name] for name in ("observed_data", "constant_data") if name in groups}


def beside(
    model: DensityModel,
    arrays: NamedArrays | None,
    shape: tuple[int, int],
    allows: Callable[[Exception], bool] = never,
    executor: Executor | str | None = None,
) -> Groups:
    """Make the groups that a model adds to draws: log-likelihood, if there are draws, and data."""
    groups: Groups = {}
    likelihood = model.likelihood
    if likelihood and arrays is not None and _fits(model, likelihood, math.prod(shape)):
        terms = likelihood.of_draws(model.completed, arrays, shape, allows, executor)
        groups = {LOG_LIKELIHOOD: terms} if terms else {}
    return groups | of_data(model, model.observed or groups.get(LOG_LIKELIHOOD, {}))


def _fits(model: DensityModel, likelihood: LogLikelihood, draws: int) -> bool:
    """Return whether the pointwise log-likelihood is small enough to make by default; warn if
    not.
    """
    terms = sum(math.prod(shape) for shape in term_shapes(model, likelihood).values())
    if 8 * terms * draws <= LARGEST:
        return True
    text = (
        f"the log-likelihood of {terms} observations at {draws} draws takes "
        f"{8 * terms * draws / 2**30:.1f} GiB, more than {LARGEST / 2**30:.3g}: the result is "
        "without it. model.to_arviz(result) computes it all the same"
    )
    warnings.warn(f"Model: {text}", UserWarning, stacklevel=5)
    return False


def term_shapes(model: DensityModel, likelihood: LogLikelihood) -> dict[str, Shape]:
    """Find the shapes of the terms, by calling the function near zero."""
    result: dict[str, Shape] = {}

    def is_allowed(q: np.ndarray) -> bool:
        terms = likelihood.plain(model.completed(model.constrain(q)))
        result.update((name, x.shape) for name, x in terms.items())
        return True

    size = model.param_unc_num()
    random_start(np.random.default_rng(0), size, is_allowed, np.zeros(size), of_values)
    return result


def labels_of(
    model: DensityModel, groups: Groups
) -> tuple[dict[str, Operand], dict[str, list[str]]]:
    """Return coordinates and dimensions of the values in groups."""
    shapes = shapes_in(groups)
    dims = {name: names for name, names in model.dims.items() if name in shapes}
    return coordinates(shapes, model.coords, dims), dims


def check_dims(model: DensityModel, shapes: Mapping[str, Shape]) -> None:
    """Raise, before draws would be lost, if dimensions or labels do not fit the shapes."""
    others: dict[str, Shape] = {}
    if model.likelihood is not None and any(name not in shapes for name in model.dims):
        others = term_shapes(model, model.likelihood)
    others |= {name: x.shape for group in of_data(model, ()).values() for name, x in group.items()}
    coordinates({**others, **shapes}, model.coords, model.dims)


def completed(
    model: DensityModel,
    groups: Groups,
    chains: Sequence[int],
    executor: Executor | str | None = None,
) -> Sampled:
    """Add the groups of the model to the result of a sampler."""
    arrays = {name: groups["posterior"][name] for name in model.layout.parameters} or None
    shape, missing = draws_in(groups["sample_stats"]), ""
    try:
        with Attempt(lambda error: not isinstance(error, Warning)) as attempt:
            more = beside(model, arrays, shape, executor=executor)
        if attempt.error is not None:
            missing = (
                f"after sampling, log_likelihood raised {described(attempt.error)}: the result is "
                "without it. model.to_arviz(result) computes it"
            )
    except KeyboardInterrupt:
        missing = "interrupted after sampling: the result has no log-likelihood"
    if missing:
        warnings.warn(f"Model.sample: {missing}", UserWarning, stacklevel=3)
        more = beside(model, None, (0, 0))
    groups = groups | more
    # Statistics may have the names of dimensions.
    coords, dims = labels_of(model, {n: g for n, g in groups.items() if "stats" not in n})
    for name, x in groups["sample_stats"].items():
        if np.ndim(x) == 3:
            dims[name], coords["unconstrained"] = ["unconstrained"], model.param_unc_names()
    return Sampled(groups, {**coords, "chain": list(chains)}, dims)


def approximated(model: DensityModel, approximation: LaplaceApproximation) -> LaplaceApproximation:
    """Add the groups of the model to an approximation."""
    arrays = {name: approximation.draws[name][np.newaxis] for name in model.layout.parameters}
    return replace(
        approximation, beside=beside(model, arrays, (1, len(approximation.q)), of_values)
    )


def from_draws(
    model: DensityModel,
    draws: Operand,
    predictive: Sequence[Predictive],
    seed: int | np.random.Generator | None,
    executor: Executor | str | None = None,
    log_prior: bool = False,
) -> ArvizData:
    """Convert draws for `Model.to_arviz`."""
    base: ArvizData = None
    if isinstance(draws, LaplaceApproximation):
        groups = draws.groups()
    elif hasattr(draws, "posterior"):
        base, groups = draws.copy(), {}
        if LOG_LIKELIHOOD in base:
            groups[LOG_LIKELIHOOD] = {
                name: x.values for name, x in base[LOG_LIKELIHOOD].data_vars.items()
            }
    else:
        groups = _named(model, draws, generator("Model.to_arviz", seed), executor)
    requested: dict[str, LogLikelihood] = {}
    if model.likelihood is not None and LOG_LIKELIHOOD not in groups:
        requested[LOG_LIKELIHOOD] = model.likelihood
    if log_prior:
        if not model.stated.priors:
            raise TypeError(
                "Model.to_arviz: log_prior is True, but must be False where no parameter states a "
                "prior, as in varmat.real(prior=...)!"
            )
        function, data = model.stated.log_prior, model.layout.given
        requested["log_prior"] = LogLikelihood(function, (), {}, data, "log_prior")
    for name, terms in requested.items():
        parameters = model.layout.parameters
        arrays, shape = draws_of("Model.to_arviz", groups.get("posterior", base), parameters)
        groups[name] = terms.of_draws(model.completed, arrays, shape, never, executor)
    simulated = [name for x in predictive for name in x.groups.get("posterior_predictive", {})]
    for name in ("observed_data", "constant_data"):  # simulations show what is observed
        groups.pop(name, None)
        if base is not None and name in base:
            del base[name]
    groups |= of_data(model, model.observed or [*groups.get(LOG_LIKELIHOOD, {}), *simulated])
    coords, dims = labels_of(model, groups)
    for item in predictive:
        groups, coords, dims = groups | item.groups, coords | item.coords, dims | item.dims
    return (
        to_arviz(groups, coords, dims) if base is None else with_groups(base, groups, coords, dims)
    )


def _named(
    model: DensityModel, draws: object, rng: np.random.Generator, executor: Executor | str | None
) -> Groups:
    """Make the groups of draws by another sampler: by name, or unconstrained vectors."""
    name = "Model.to_arviz"
    if isinstance(draws, Mapping):
        arrays, shape = draws_of(name, dict(draws), model.layout.parameters)
        points = rows_of(arrays)
        blocks = of_blocks(name, _Completed(model, points), points, executor, rng)
        return {"posterior": stacked(name, [row for rows in blocks for row in rows], shape)}
    (q, _), size = with_missing(draws), model.param_unc_num()
    if q.ndim != 3 or q.shape[2] != size:
        raise misfit(name, "draws", q.shape, f"have shape (chains, draws, {size})")
    points = np.ascontiguousarray(q, float).reshape(math.prod(q.shape[:2]), size)
    result = of_blocks(name, _Constrained(model, points), points, executor, rng)
    posterior = stacked(name, [row for rows, _ in result for row in rows], q.shape[:2])
    lp = np.array([value for _, values in result for value in values]).reshape(q.shape[:2])
    return {"posterior": posterior, "sample_stats": {"lp": lp}}


class _Completed:
    """Sent to the workers; completes a block of draws of the parameters with all named values.

    Parameters
    ----------
    model : DensityModel
    points : ndarray
        All draws. Where that pays, the generated quantities are recorded, once for each worker.
    """

    def __init__(self, model: DensityModel, points: np.ndarray) -> None:
        self.model = model
        self._at_draws: AtDraws | None = None
        if model.generated is not None and len(points):
            first = {name: np.asarray(x) for name, x in self.values(points[0]).items()}
            shapes = {name: x.shape for name, x in first.items()}
            at_draws = AtDraws(partial(quantities, model.generated), shapes, "serial")
            if at_draws.pays(_flat(first), len(points)):
                self._at_draws = at_draws

    def values(self, point: np.ndarray) -> dict[str, Operand]:
        """Return parameters and transformed parameters."""
        return self.model.completed(self.model.layout.split(point))

    def __call__(self, block: Draws) -> Any:
        values = [self.values(point) for point in block.rows]
        recorded = self._recorded(values, block) if self._at_draws is not None else None
        if recorded is not None:
            return [
                {**row, **{name: x[i] for name, x in recorded.items()}}
                for i, row in enumerate(values)
            ]
        rng = np.random.default_rng(block.seed)
        return [self.model.with_quantities(row, rng) for row in values]

    def _recorded(self, values: list[dict[str, Operand]], block: Draws) -> NamedArrays | None:
        at_draws, rng = self._at_draws, np.random.default_rng(block.seed)
        assert at_draws is not None
        rows = np.stack([_flat(row) for row in values])
        with Attempt(), np.errstate(all="ignore"):
            return at_draws.everywhere(rows, rng)
        return None


class _Constrained(_Completed):
    """Completes a block of unconstrained vectors; returns the log densities too."""

    def values(self, point: np.ndarray) -> dict[str, Operand]:
        return self.model.constrain(point, True)

    def __call__(self, block: Draws) -> Any:
        return super().__call__(block), densities_at(self.model, block.rows, True)


def _flat(values: Mapping[str, Operand]) -> np.ndarray:
    return np.concatenate([np.empty(0), *(np.ravel(x) for x in values.values())])
