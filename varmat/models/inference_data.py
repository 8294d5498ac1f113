"""Groups of ArviZ besides the posterior: pointwise log-likelihoods and data. Draws of other
samplers as ArviZ data.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.functions.checks import misfit
from varmat.functions.missing import with_missing
from varmat.interrupts import Attempt
from varmat.models.at_draws import MANY, AtDraws
from varmat.models.blocks import Draws, of_blocks, rows_of
from varmat.models.fitting import LaplaceApproximation, density_at
from varmat.models.functions import Named, generator, never, of_values
from varmat.models.predictive import Predictive, draws_of, real_arrays
from varmat.models.results import (
    Groups,
    Sampled,
    check_shapes,
    coordinates,
    described,
    draws_in,
    shapes_in,
    stacked,
    to_arviz,
    with_groups,
)
from varmat.models.starts import random_start
from varmat.programs.run.threads import one_blas_thread
from varmat.typing import Function, Operand, Shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.model import Model
    from varmat.models.results import ArvizData

NamedArrays = dict[str, np.ndarray]

# The most bytes of a log-likelihood that is made unasked.
LARGEST = 4 * 2**30

# The name of a parameter of the log density, and of the group of ArviZ.
LOG_LIKELIHOOD = "log_likelihood"


class LogLikelihood:
    """The pointwise terms of the log-likelihood of a model, at one point and at all draws.

    Parameters
    ----------
    function : callable
        Returns an array, or a dict of them.
    observed : sequence of str
        The data that are observations, if the user has named them.
    parameters, given : Mapping
        The parameters and the data of the model.
    """

    def __init__(
        self,
        function: Function | bool,
        observed: Sequence[str],
        parameters: Mapping[str, Operand],
        given: Mapping[str, Operand],
    ) -> None:
        for kind, names in (("a parameter", parameters), ("data", given)):
            if LOG_LIKELIHOOD in names:
                raise TypeError(
                    f"Model: {LOG_LIKELIHOOD} is {kind}, but must be the log-likelihood that is "
                    "given to the model alone!"
                )
        self.function = Named(LOG_LIKELIHOOD, function, given)  # type: ignore[arg-type]
        # In ArviZ a term has the name of the observations to which it belongs.
        self._name = observed[0] if len(observed) == 1 else LOG_LIKELIHOOD

    def at(self, values: dict[str, Operand]) -> dict[str, Operand]:
        """The terms by name."""
        result = self.function(values)
        if result is None:
            raise TypeError(
                "Model: log_likelihood returned None (is a return statement missing?), but must "
                "return an array!"
            )
        return dict(result) if isinstance(result, Mapping) else {self._name: result}

    def shapes(self, model: Model) -> dict[str, Shape]:
        """The shapes of the terms, by calling the function near zero."""
        found: dict[str, Shape] = {}

        def is_allowed(q: np.ndarray) -> bool:
            found.update(
                (name, x.shape) for name, x in self.plain(model, model.constrain(q)).items()
            )
            return True

        size = model.param_unc_num()
        random_start(np.random.default_rng(0), size, is_allowed, np.zeros(size), of_values)
        return found

    @one_blas_thread()
    def of_draws(
        self,
        model: Model,
        arrays: NamedArrays,
        shape: tuple[int, int],
        allows: Callable[[Exception], bool],
        executor: Executor | str | None = None,
    ) -> NamedArrays:
        """The terms at draws of the parameters, arrays of shape (chains, draws, ...); nan where an
        error is allowed.
        """
        inner = {name: x.shape[2:] for name, x in arrays.items()}
        is_recorded = math.prod(shape) >= MANY
        block = _Pointwise(self, model, inner, allows, is_recorded, executor is None)
        found = of_blocks("log_likelihood", block, rows_of(arrays), executor)
        shapes = next(({n: x.shape[1:] for n, x in each.items()} for each, _ in found if each), {})
        terms: NamedArrays = {}
        for each, size in found:
            if not each:
                each.update((name, np.full((size, *s), np.nan)) for name, s in shapes.items())
            elif size:
                check_shapes("log_likelihood", {n: x[0] for n, x in each.items()}, shapes)
        for name, s in shapes.items():
            # Each part is dropped as soon as it is joined, because terms may fill the memory.
            parts = [each.pop(name) for each, _ in found]
            joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
            terms[name] = joined.reshape(shape + s)
        return terms

    def plain(self, model: Model, values: dict[str, Operand]) -> NamedArrays:
        """The terms at plain values, of which the functions get copies."""
        values = model.completed(values)
        return real_arrays("Model: log_likelihood", self.at(values))


class _Pointwise:
    """What workers have: the terms at the draws of a block, None where an error is allowed.

    Parameters
    ----------
    terms : LogLikelihood
    model : Model
    inner : dict of str to tuple of int
        The shapes of the parameters, which stand one after the other in a row of a block.
    allows : callable
        Whether an error is allowed.
    is_recorded : bool
        Record the terms, once for each worker.
    is_alone : bool
        Whether there are no other workers, so that threads may share a block.
    """

    def __init__(
        self,
        terms: LogLikelihood,
        model: Model,
        inner: dict[str, Shape],
        allows: Callable[[Exception], bool],
        is_recorded: bool,
        is_alone: bool,
    ) -> None:
        self._terms, self._model, self._allows = terms, model, allows
        self._is_recorded = is_recorded
        self._at_draws = AtDraws(self._values, inner, None if is_alone else 1)

    def _values(self, values: dict[str, Operand], _: Operand) -> dict[str, Operand]:
        return self._terms.at(self._model.completed(values))

    def __call__(self, block: Draws) -> tuple[NamedArrays, int]:
        """The terms in rows, nan where an error is allowed, and the number of rows."""
        points, found = block.rows, NamedArrays()
        # Where all are nan, the chain was interrupted.
        left = np.flatnonzero(~np.isnan(points).all(axis=1)).tolist()

        def once(i: int, _: Operand, known: NamedArrays) -> NamedArrays:
            with Attempt(self._allows), block.noted("log_likelihood", left[i]):
                row = self._terms.plain(self._model, self._at_draws.named(points[left[i]]))
                if known:
                    check_shapes("log_likelihood", row, {n: x.shape[1:] for n, x in known.items()})
                return row
            return {}

        recorded = None
        if self._is_recorded and left:
            recorded = self._at_draws.everywhere(points[left], np.random.default_rng(0), once)
        if recorded is not None and len(left) < len(points):
            recorded = {name: _spread(x, left, len(points)) for name, x in recorded.items()}
        for i in range(len(left)) if recorded is None else ():
            for name, x in once(i, None, found).items():
                if name not in found:
                    found[name] = np.full((len(points), *x.shape), np.nan)
                found[name][left[i]] = x
        return found if recorded is None else recorded, len(points)


def _spread(rows: np.ndarray, places: Sequence[int], count: int) -> np.ndarray:
    """Rows at some places of more, which are nan elsewhere."""
    found = np.full((count, *rows.shape[1:]), np.nan)
    found[places] = rows
    return found


def of_data(model: Model, observed: Iterable[str]) -> Groups:
    """The data of a model that are arrays: observations, and the others."""
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
    model: Model,
    arrays: NamedArrays | None,
    shape: tuple[int, int],
    allows: Callable[[Exception], bool] = never,
    executor: Executor | str | None = None,
) -> Groups:
    """The groups that a model has beside draws: log-likelihood, if there are draws, and data."""
    groups: Groups = {}
    likelihood = model.likelihood
    if likelihood and arrays is not None and _fits(model, likelihood, math.prod(shape)):
        terms = likelihood.of_draws(model, arrays, shape, allows, executor)
        groups = {LOG_LIKELIHOOD: terms} if terms else {}
    return groups | of_data(model, model.observed or groups.get(LOG_LIKELIHOOD, {}))


def _fits(model: Model, likelihood: LogLikelihood, draws: int) -> bool:
    """Whether the pointwise log-likelihood is small enough to be made unasked; warns if not."""
    terms = sum(math.prod(shape) for shape in likelihood.shapes(model).values())
    if 8 * terms * draws <= LARGEST:
        return True
    text = (
        f"the log-likelihood of {terms} observations at {draws} draws takes "
        f"{8 * terms * draws / 2**30:.1f} GiB, more than {LARGEST / 2**30:.3g}: the result is "
        "without it. model.to_arviz(result) computes it all the same"
    )
    warnings.warn(f"Model: {text}", UserWarning, stacklevel=5)
    return False


def labels_of(model: Model, groups: Groups) -> tuple[dict[str, Operand], dict[str, list[str]]]:
    """Coordinates and dimensions of what is in groups."""
    shapes = shapes_in(groups)
    dims = {name: names for name, names in model.dims.items() if name in shapes}
    return coordinates(shapes, model.coords, dims), dims


def check_dims(model: Model, shapes: Mapping[str, Shape]) -> None:
    """Raise, before draws would be lost, if dimensions or labels do not fit the shapes."""
    others: dict[str, Shape] = {}
    if model.likelihood is not None and any(name not in shapes for name in model.dims):
        others = model.likelihood.shapes(model)
    others |= {name: x.shape for group in of_data(model, ()).values() for name, x in group.items()}
    coordinates({**others, **shapes}, model.coords, model.dims)


def completed(
    model: Model, groups: Groups, chains: Sequence[int], executor: Executor | str | None = None
) -> Sampled:
    """What the sampler returned, with the groups that the model has beside draws."""
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


def approximated(model: Model, approximation: LaplaceApproximation) -> LaplaceApproximation:
    """An approximation with the groups that the model has beside draws."""
    arrays = {name: approximation.draws[name][np.newaxis] for name in model.layout.parameters}
    return replace(
        approximation, beside=beside(model, arrays, (1, len(approximation.q)), of_values)
    )


def from_draws(
    model: Model,
    draws: Operand,
    predictive: Sequence[Predictive],
    seed: int | np.random.Generator | None,
    executor: Executor | str | None = None,
) -> ArvizData:
    """See `Model.to_arviz`."""
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
    if model.likelihood is not None and LOG_LIKELIHOOD not in groups:
        arrays, shape = draws_of(
            "Model.to_arviz", groups.get("posterior", base), model.layout.parameters
        )
        groups[LOG_LIKELIHOOD] = model.likelihood.of_draws(model, arrays, shape, never, executor)
    simulated = [
        name for each in predictive for name in each.groups.get("posterior_predictive", {})
    ]
    for name in ("observed_data", "constant_data"):  # simulations show what is observed
        groups.pop(name, None)
        if base is not None and name in base:
            del base[name]
    groups |= of_data(model, model.observed or [*groups.get(LOG_LIKELIHOOD, {}), *simulated])
    coords, dims = labels_of(model, groups)
    for each in predictive:
        groups, coords, dims = groups | each.groups, coords | each.coords, dims | each.dims
    return (
        to_arviz(groups, coords, dims) if base is None else with_groups(base, groups, coords, dims)
    )


def _named(
    model: Model, draws: Operand, rng: np.random.Generator, executor: Executor | str | None
) -> Groups:
    """The groups of draws by another sampler: by name, or unconstrained vectors."""
    name = "Model.to_arviz"
    if isinstance(draws, Mapping):
        arrays, shape = draws_of(name, dict(draws), model.layout.parameters)
        blocks = of_blocks(name, partial(_made, model), rows_of(arrays), executor, rng)
        return {"posterior": stacked(name, [row for rows in blocks for row in rows], shape)}
    (q, _), size = with_missing(draws), model.param_unc_num()
    if q.ndim != 3 or q.shape[2] != size:
        raise misfit(name, "draws", q.shape, f"have shape (chains, draws, {size})")
    points = np.ascontiguousarray(q, float).reshape(math.prod(q.shape[:2]), size)
    found = of_blocks(name, partial(_constrained, model), points, executor, rng)
    posterior = stacked(name, [row for rows, _ in found for row in rows], q.shape[:2])
    lp = np.array([value for _, values in found for value in values]).reshape(q.shape[:2])
    return {"posterior": posterior, "sample_stats": {"lp": lp}}


def _constrained(model: Model, block: Draws) -> tuple[list[dict[str, Operand]], list[float]]:
    """All named values at a block of unconstrained vectors, and their log densities."""
    rng = np.random.default_rng(block.seed)
    rows = [model.constrain(q, True, True, rng) for q in block.rows]
    return rows, [density_at(model, q, True)[0] for q in block.rows]


def _made(model: Model, block: Draws) -> list[dict[str, Operand]]:
    """Parameters, transformed parameters and generated quantities at a block of draws."""
    rng = np.random.default_rng(block.seed)
    values = map(model.layout.split, block.rows)
    return [model.with_quantities(model.completed(each), rng) for each in values]
