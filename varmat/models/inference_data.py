"""All that ArviZ wants to know of a model beside its parameters: pointwise log-likelihoods, data,
draws of other samplers.
"""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.derivatives.recorded import record_values
from varmat.models.fitting import LaplaceApproximation, density_at
from varmat.models.functions import Named, of_values
from varmat.models.predictive import Predictive, draws_of, stacked
from varmat.models.results import coordinates, shapes_in, to_arviz, with_groups
from varmat.models.starts import random_start
from varmat.programs.program import ElsewhereError
from varmat.programs.runners import runner_for

Arrays = dict[str, np.ndarray]
Groups = dict[str, dict[str, Any]]

# What the log density is given if it asks for it, and the group of ArviZ.
LOG_LIKELIHOOD = "log_likelihood"
# Draws from which the terms are recorded: numba takes a second to import.
_MANY = 1000


class LogLikelihood:
    """The pointwise terms of the log-likelihood of a model, at one point and at all draws.

    Parameters
    ----------
    function : Named
        Returns an array, or a dict of them.
    observed : sequence of str
        The data that are observations, if the user has named them.
    """

    def __init__(self, function: Named, observed: Sequence[str]) -> None:
        self.function = function
        # ArviZ calls terms like the observations to which they belong.
        self._name = observed[0] if len(observed) == 1 else LOG_LIKELIHOOD

    def at(self, values: dict[str, Any]) -> dict[str, Any]:
        """The terms by name."""
        result = self.function(values)
        if result is None:
            raise TypeError(
                "Model: log_likelihood returned None (is a return statement missing?), but must "
                "return an array!"
            )
        return dict(result) if isinstance(result, Mapping) else {self._name: result}

    def shapes(self, model: Any) -> dict[str, tuple[int, ...]]:
        """The shapes of the terms, by calling the function near zero."""
        found: dict[str, tuple[int, ...]] = {}

        def is_allowed(q: np.ndarray) -> bool:
            found.update(
                (name, x.shape) for name, x in self._plain(model, model.constrain(q)).items()
            )
            return True

        size = model.param_unc_num()
        random_start(np.random.default_rng(0), size, is_allowed, np.zeros(size), of_values)
        return found

    def of_draws(
        self,
        model: Any,
        arrays: Arrays,
        shape: tuple[int, int],
        allows: Callable[[Exception], bool],
    ) -> Arrays:
        """The terms at draws of the parameters, arrays of shape (chains, draws, ...); nan where an
        error is allowed.
        """
        inner = [x.shape[2:] for x in arrays.values()]
        count, ends = math.prod(shape), np.cumsum([math.prod(each) for each in inner]).tolist()
        points = np.concatenate(
            [
                x.reshape(count, math.prod(each))
                for x, each in zip(arrays.values(), inner, strict=True)
            ],
            axis=1,
        )

        def parts(point: Any) -> dict[str, Any]:
            found = {}
            for name, each, end in zip(arrays, inner, ends, strict=True):
                found[name] = (
                    point[end - math.prod(each) : end].reshape(each) if each else point[end - 1]
                )
            return found

        rows: list[dict[str, Any] | None] = [None] * len(points)
        known = np.isnan(points).all(axis=1)  # of a chain that was interrupted
        if len(points) >= _MANY:
            found = self._recorded(model, parts, points[~known])
            for i, row in zip(np.flatnonzero(~known).tolist(), found, strict=True):
                rows[i], known[i] = row, row is not None
        for i in np.flatnonzero(~known).tolist():
            try:
                rows[i] = self._plain(model, parts(points[i]))
            except Exception as error:
                if not allows(error):
                    error.add_note(
                        f"log_likelihood: at draw {i}, counted from 0 through all chains"
                    )
                    raise
        shapes = next(
            ({name: np.shape(x) for name, x in row.items()} for row in rows if row is not None), {}
        )
        missing = {name: np.full(inner, np.nan) for name, inner in shapes.items()}
        return (
            stacked("log_likelihood", [missing if row is None else row for row in rows], shape)
            if shapes
            else {}
        )

    def _plain(self, model: Any, values: dict[str, Any]) -> Arrays:
        """The terms at plain values, of which the functions get copies."""
        values = copy.deepcopy(values)
        if model._transformed is not None:
            values.update(model._transformed.named_values(copy.deepcopy(values)))
        found = {name: np.asarray(x) for name, x in self.at(values).items()}
        for name, x in found.items():
            if x.dtype.kind not in "biuf":
                raise TypeError(
                    f"Model: log_likelihood returned {name!r} of dtype {x.dtype}, but must return "
                    "real numbers!"
                )
        return found

    def _recorded(self, model: Any, parts: Any, points: np.ndarray) -> list[dict[str, Any] | None]:
        """The terms at all points by a program; None where it does not hold, everywhere if they
        cannot be recorded.
        """
        names: list[str] = []

        def terms(point: Any, again: Any) -> list[Any]:
            values = parts(point)
            if model._transformed is not None:  # which may write into what it is given
                values.update(model._transformed.named_values(parts(again)))
            found = self.at(values)
            names[:] = found
            return list(found.values())

        elsewhere: list[dict[str, Any] | None] = [None] * len(points)
        try:
            program, _ = record_values(terms, points[0].copy(), 2)
            runner = runner_for(program)
        # of the functions themselves, or because they cannot be recorded: they are called at every
        # draw
        except Exception:
            return elsewhere
        shapes = [v.shape for v in program.outputs[1:]]
        if not shapes:
            return elsewhere
        ends = np.cumsum([math.prod(each) for each in shapes]).tolist()
        values, flat = np.full(len(points), np.nan), np.empty((len(points), ends[-1]))
        if hasattr(runner, "map"):
            runner.map(points, values, flat, len(os.sched_getaffinity(0)))
        else:
            for i, point in enumerate(points):
                with suppress(ArithmeticError, ValueError, ElsewhereError):
                    values[i], *found = runner([point])
                    flat[i] = np.concatenate([np.ravel(x) for x in found])
        for i in np.flatnonzero(np.isfinite(values) & np.isfinite(flat).all(axis=1)).tolist():
            parts_of = zip(names, shapes, ends, strict=True)
            elsewhere[i] = {
                name: flat[i, end - math.prod(each) : end].reshape(each)
                for name, each, end in parts_of
            }
        return elsewhere


def of_data(model: Any, observed: Iterable[str]) -> Groups:
    """The data of a model that are arrays: observations, and the others."""
    taken = {
        *model.coords,
        "chain",
        "draw",
        *(dim for names in model.dims.values() for dim in names),
    }
    observed, groups = {*observed}, dict[str, dict[str, Any]]()
    for name, x in model._layout.given.items():
        try:
            array = np.asarray(x)
        except Exception:  # what is no array is of no use there
            continue
        if array.dtype.kind in "biufUM" and name not in taken:
            groups.setdefault("observed_data" if name in observed else "constant_data", {})[
                name
            ] = array
    return {name: groups[name] for name in ("observed_data", "constant_data") if name in groups}


def beside(
    model: Any,
    arrays: Arrays | None,
    shape: tuple[int, int],
    allows: Callable[[Exception], bool] = lambda error: False,
) -> Groups:
    """The groups that a model has beside draws: log-likelihood, if there are draws, and data."""
    groups: Groups = {}
    if model._likelihood is not None and arrays is not None:
        terms = model._likelihood.of_draws(model, arrays, shape, allows)
        groups = {LOG_LIKELIHOOD: terms} if terms else {}
    return groups | of_data(model, model.observed or groups.get(LOG_LIKELIHOOD, {}))


def labels_of(model: Any, groups: Groups) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Coordinates and dimensions of what is in groups."""
    shapes = shapes_in(groups)
    dims = {name: names for name, names in model.dims.items() if name in shapes}
    return coordinates(shapes, model.coords, dims), dims


def known_dims(
    model: Any, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Coordinates of all that has named dimensions, and the dimensions of what has these shapes."""
    others = dict[str, tuple[int, ...]]()
    if model._likelihood is not None and any(name not in shapes for name in model.dims):
        others = model._likelihood.shapes(model)
    others |= {name: x.shape for group in of_data(model, ()).values() for name, x in group.items()}
    coords = coordinates({**others, **shapes}, model.coords, model.dims)
    return coords, {name: names for name, names in model.dims.items() if name in shapes}


def completed(model: Any, result: Any) -> Any:
    """What the sampler returned, with the groups that the model has beside draws."""
    posterior = getattr(result, "posterior", None)
    if (
        posterior is None
        or not (model._likelihood or model._layout.given)
        or not model._layout.parameters
    ):
        return result
    try:
        arrays, shape = draws_of("Model.sample", result, model._layout.parameters)
        groups = beside(model, arrays, shape)
    except KeyboardInterrupt:
        warnings.warn(
            "Model.sample: interrupted after sampling: the result has no log-likelihood",
            UserWarning,
            stacklevel=3,
        )
        groups = beside(model, None, (0, 0))
    return with_groups(result, groups, *labels_of(model, groups))


def approximated(model: Any, approximation: LaplaceApproximation) -> LaplaceApproximation:
    """An approximation with the groups that the model has beside draws."""
    arrays = {name: approximation.draws[name][np.newaxis] for name in model._layout.parameters}
    return replace(
        approximation, beside=beside(model, arrays, (1, len(approximation.q)), of_values)
    )


def from_draws(model: Any, draws: Any, predictive: Sequence[Predictive], seed: Any) -> Any:
    """See `Model.to_arviz`."""
    base: Any = None
    if isinstance(draws, LaplaceApproximation):
        groups = draws.groups()
    elif hasattr(draws, "posterior"):
        base, groups = draws.copy(), {}
        if LOG_LIKELIHOOD in base:
            groups[LOG_LIKELIHOOD] = {
                name: x.values for name, x in base[LOG_LIKELIHOOD].data_vars.items()
            }
    else:
        groups = _named(model, draws, np.random.default_rng(seed))
    if model._likelihood is not None and LOG_LIKELIHOOD not in groups:
        arrays, shape = draws_of(
            "Model.to_arviz", groups.get("posterior", base), model._layout.parameters
        )
        groups[LOG_LIKELIHOOD] = model._likelihood.of_draws(
            model, arrays, shape, lambda error: False
        )
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


def _named(model: Any, draws: Any, rng: np.random.Generator) -> Groups:
    """The groups of draws by another sampler: by name, or unconstrained vectors."""
    if isinstance(draws, Mapping):
        arrays, shape = draws_of("Model.to_arviz", dict(draws), model._layout.parameters)
        each = ({name: x[place] for name, x in arrays.items()} for place in np.ndindex(shape))
        return {
            "posterior": stacked(
                "Model.to_arviz", [_made(model, values, rng) for values in each], shape
            )
        }
    q, size = np.asarray(draws), model.param_unc_num()
    if q.ndim != 3 or q.shape[2] != size:
        raise ShapeError(
            f"Model.to_arviz: draws has shape {q.shape}, but must have shape (chains, draws, "
            f"{size})!"
        )
    points = np.ascontiguousarray(q, float).reshape(-1, size)
    posterior = stacked(
        "Model.to_arviz", [model.constrain(x, True, True, rng) for x in points], q.shape[:2]
    )
    lp = np.array([density_at(model, x, True)[0] for x in points]).reshape(q.shape[:2])
    return {"posterior": posterior, "sample_stats": {"lp": lp}}


def _made(model: Any, values: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Parameters, and what the model makes of them."""
    values = dict(values)
    if model._transformed is not None:
        values.update(model._transformed.named_values(copy.deepcopy(values)))
    if model._generated is not None:
        values.update(model._generated.named_values(copy.deepcopy(values), rng=rng))
    return values
