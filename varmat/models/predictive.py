"""Predictive draws: data that are simulated from the prior or the posterior of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat import html
from varmat.core.errors import DomainError
from varmat.functions.checks import misfit
from varmat.functions.missing import with_missing
from varmat.models.at_draws import AtDraws
from varmat.models.blocks import Draws, of_blocks, rows_of
from varmat.models.bounds import Dependent
from varmat.models.functions import Named, generator
from varmat.models.observations import names_of
from varmat.models.results import (
    check_shapes,
    coordinates,
    draws_in,
    groups_of,
    real_arrays,
    shapes_in,
    stacked,
    to_arviz,
)
from varmat.models.stated import is_located
from varmat.typing import Function, Operand, Shape

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from varmat.models.gradients import DensityModel
    from varmat.models.results import ArvizData, Labels

_TITLE = "predictive draws (chains, draws, ...)"


@dataclass(frozen=True, repr=False)
class Predictive:
    """Predictive draws, as made by `Model.sample_posterior_predictive` and
    `Model.sample_prior_predictive`.

    Attributes
    ----------
    groups : dict of str to dict
        Name of a group of ArviZ ("posterior_predictive", or "prior" and "prior_predictive") -> name
        of a quantity -> an array of shape (chains, draws, ...).
    coords, dims : dict
        Labels, and names of dimensions, for quantities that have any.
    """

    groups: dict[str, dict[str, np.ndarray]]
    coords: dict[str, Sequence[Any]] = field(default_factory=dict)
    dims: dict[str, list[str]] = field(default_factory=dict)

    def __getitem__(self, group: str) -> dict[str, np.ndarray]:
        return self.groups[group]

    def __repr__(self) -> str:
        lines = [f"{group}: {name}, shape {shape}" for name, group, shape in self._rows()]
        return "\n".join([_TITLE, *lines])

    def _repr_html_(self) -> str:
        return html.table(["", "group", "shape"], self._rows(), _TITLE)

    def _rows(self) -> list[tuple[str, str, str]]:
        groups = self.groups.items()
        return [(name, group, str(x.shape)) for group, item in groups for name, x in item.items()]

    def to_arviz(self) -> ArvizData:
        """Return the draws as ArviZ data: ``InferenceData`` or, from ArviZ 1, ``DataTree``.

        An ``InferenceData`` with the posterior takes them up by its method ``extend``.
        """
        return to_arviz(self.groups, self.coords, self.dims)


def called(function: Named, values: dict[str, object], rng: object) -> dict[str, Operand]:
    """Return the named arrays that a function returns. They may share names with the data they
    replicate.
    """
    result = function(values, rng=rng)
    if not isinstance(result, Mapping):
        raise TypeError(
            f"{function.title} returned a {type(result).__name__}, but must return a dict of named "
            "values!"
        )
    return real_arrays(function.title, result)


def draws_of(
    function: str, result: ArvizData, parameters: Mapping[str, Operand]
) -> tuple[dict[str, np.ndarray], tuple[int, int]]:
    """Return the draws of the parameters in a result, of shape (chains, draws, ...), and their
    number.
    """
    groups = groups_of(result)
    if groups is None:
        raise TypeError(
            f"{function}: result is a {type(result).__name__}, but must be what Model.sample or "
            "Model.laplace returned, or a dict of arrays of shape (chains, draws, ...)!"
        )
    output = groups[0]["posterior"]
    arrays: dict[str, np.ndarray] = {}
    outer: Shape | None = None
    for name, transform in parameters.items():
        if name not in output:
            raise TypeError(
                f"{function}: result has no {name}, but must have the parameters "
                f"{', '.join(parameters)}!"
            )
        x, _ = with_missing(output[name])
        requested = "(chains, draws)" if outer is None else str(outer)
        if (
            x.ndim != 2 + len(transform.shape)
            or x.shape[2:] != transform.shape
            or (outer or x.shape[:2]) != x.shape[:2]
        ):
            rule = f"have shape {requested} and then {transform.shape}"
            raise misfit(function, name, x.shape, rule)
        arrays[name], outer = x, x.shape[:2]
    if outer is None:
        raise TypeError(f"{function}: the model has no parameters, but must have some!")
    return arrays, (outer[0], outer[1])


class Predictor:
    """Simulations of data, with the names and the labels of a model.

    Parameters
    ----------
    model : DensityModel
    function : str
        The name of the method, for messages.
    seed : what `numpy.random.default_rng` takes
    coords, dims : dict, optional
        Beside those of the model.
    """

    def __init__(
        self,
        model: DensityModel,
        function: str,
        seed: int | np.random.Generator | None,
        coords: Labels | None,
        dims: Mapping[str, Operand] | None,
    ) -> None:
        self.model, self.function = model, function
        self.rng = generator(function, seed)
        self.coords = model.coords | {name: list(x) for name, x in (coords or {}).items()}
        self.dims = {name: [*names_of(x)] for name, x in (dims or {}).items()}

    def named(self, title: str, function: Function) -> Named:
        """Wrap a function of the user, which may name the data of the model."""
        return Named(title, function, self.model.layout.given)

    def simulation(self, simulate: Function | None) -> Function | None:
        """Return the function that simulates: the user's, or draws from the observations'
        distributions.
        """
        spec = self.model.stated
        return simulate or (spec.replicate if spec.parts else None)

    def simulated(
        self, simulate: Function, draws: dict[str, np.ndarray], executor: Executor | str | None
    ) -> dict[str, np.ndarray]:
        """Simulate at draws of the parameters; return arrays of shape (chains, draws, ...)."""
        shapes, rows = {name: x.shape[2:] for name, x in draws.items()}, rows_of(draws)
        block = _Simulation(self, self.named("simulate", simulate), shapes, rows)
        return self.joined(block, rows, draws_in(draws), executor)

    def joined(
        self,
        block: _Simulation,
        rows: np.ndarray,
        shape: tuple[int, int],
        executor: Executor | str | None = None,
    ) -> dict[str, np.ndarray]:
        """Join the simulations of all blocks to arrays of shape (chains, draws, ...)."""
        result = of_blocks(self.function, block, rows, executor, self.rng)
        inner = {name: x.shape[1:] for name, x in result[0].items()}
        for item in result:
            check_shapes(self.function, {name: x[0] for name, x in item.items()}, inner)
        return {
            name: np.concatenate([x[name] for x in result]).reshape(shape + of_one)
            for name, of_one in inner.items()
        }

    def result(self, groups: dict[str, dict[str, np.ndarray]]) -> Predictive:
        shapes = shapes_in(groups)
        dims = {name: x for name, x in self.model.dims.items() if name in shapes} | self.dims
        return Predictive(groups, coordinates(shapes, self.coords, dims), dims)


class _Simulation:
    """Simulates at the draws of a block, in a worker. An error says at which draw it arose."""

    def __init__(
        self, predictor: Predictor, function: Named, shapes: dict[str, Shape], rows: np.ndarray
    ) -> None:
        self._predictor, self._function = predictor, function
        self._at_draws = AtDraws(self._values, shapes, "serial")
        self._is_recorded = len(rows) > 0 and self._at_draws.pays(rows[0], len(rows))

    def _values(self, values: dict[str, Operand], rng: Operand) -> dict[str, Operand]:
        return dict(self._function(self._completed(values, rng), rng=rng))

    def _completed(self, values: dict[str, Operand], rng: Operand) -> dict[str, Operand]:
        """Complete draws of parameters with the values that follow, and with discrete
        parameters.
        """
        model = self._predictor.model
        return model.with_discrete(model.completed(values), rng)

    def _once(self, values: dict[str, object], rng: object) -> dict[str, Operand]:
        """Simulate at one draw without a recording."""
        return called(self._function, self._completed(values, rng), rng)

    def __call__(self, block: Draws) -> dict[str, np.ndarray]:
        rng, count = np.random.default_rng(block.seed), len(block.rows)

        def once(i: int, numbers: object, _: object = None) -> dict[str, Operand]:
            with block.noted(self._predictor.function, i):
                return self._once(self._at_draws.named(block.rows[i]), numbers)

        result = self._at_draws.everywhere(block.rows, rng, once) if self._is_recorded else None
        if result is not None:
            return result
        return stacked(self._predictor.function, [once(i, rng) for i in range(count)], (count,))


class _Prior(_Simulation):
    """Draws parameters from the prior, and computes transformed parameters."""

    def __init__(self, predictor: Predictor, function: Named, rows: np.ndarray) -> None:
        # A recording has an argument.
        super().__init__(predictor, function, {" nothing": ()}, rows)

    def _values(self, values: dict[str, Operand], rng: Operand) -> dict[str, Operand]:
        return self._all(self._function({}, rng=rng), rng)

    def _all(self, drawn: dict[str, object], rng: object) -> dict[str, Operand]:
        model = self._predictor.model
        names = (*model.layout.parameters, *model.stated.discrete)
        return self._completed({name: drawn[name] for name in names}, rng)

    def _once(self, values: dict[str, object], rng: object) -> dict[str, Operand]:
        model = self._predictor.model
        drawn = called(self._function, {}, rng)
        # Raises if they are not possible values.
        continuous = {name: x for name, x in drawn.items() if name not in model.stated.discrete}
        model.layout.pack(self._predictor.function, continuous)
        for name, item in model.stated.discrete.items():
            if name not in drawn:
                raise TypeError(
                    f"{self._predictor.function}: the dict has no {name}, but must have the "
                    f"parameters {', '.join([*model.layout.parameters, *model.stated.discrete])}!"
                )
            item.check(self._predictor.function, name, np.asarray(drawn[name]))
        return {name: np.asarray(x) for name, x in self._all(drawn, rng).items()}

    def __call__(self, block: Draws) -> dict[str, np.ndarray]:
        result = super().__call__(block)
        if self._is_recorded:  # otherwise each draw has been checked
            _check_prior(self._predictor, result)
        return result


def _check_prior(predictor: Predictor, draws: dict[str, np.ndarray]) -> None:
    """Raise if one of many draws of the parameters is not in its set."""
    layout = predictor.model.layout
    for name, item in predictor.model.stated.discrete.items():
        item.check(predictor.function, name, draws[name])
    for name, transform in layout.parameters.items():
        x = draws[name]
        if x.shape[1:] != transform.shape:
            layout.pack(predictor.function, {n: draws[n][0] for n in layout.parameters})
        if is_located(transform):
            continue
        try:
            if not isinstance(transform, Dependent):
                transform._unconstrain(x)  # of all draws at once
            else:
                for i, value in enumerate(x):
                    data = {**layout.given, **{n: draw[i] for n, draw in draws.items()}}
                    transform.at(data).unconstrain(value)
        except DomainError as error:
            raise DomainError(f"{predictor.function}: {name}: {error}") from None


def posterior_predictive(
    predictor: Predictor,
    result: ArvizData,
    simulate: Function | None,
    executor: Executor | str | None,
) -> Predictive:
    """Simulate for `Model.sample_posterior_predictive`."""
    simulate = predictor.simulation(simulate)
    if simulate is None:
        raise TypeError(
            f"{predictor.function}: simulate is missing, but must be given: the model has no "
            "varmat.observed!"
        )
    model = predictor.model
    arrays, _ = draws_of(predictor.function, result, model.layout.parameters)
    posterior = (groups_of(result) or ({},))[0].get("posterior", {})
    if model.stated.discrete.keys() <= posterior.keys():
        parameters = {**model.layout.parameters, **model.stated.discrete}
        arrays, _ = draws_of(predictor.function, result, parameters)
    output = predictor.simulated(simulate, arrays, executor)
    if not output and model.stated.parts:
        raise TypeError(
            f"{predictor.function}: {', '.join(model.stated.parts)} cannot be drawn, because the "
            "model has only a function of its log densities: give sample_posterior_predictive a "
            "function that simulates!"
        )
    return predictor.result({"posterior_predictive": output})


def prior_predictive(
    predictor: Predictor,
    prior: Function | None,
    simulate: Function | None,
    draws: int,
    executor: Executor | str | None,
) -> Predictive:
    """Draw and simulate for `Model.sample_prior_predictive`."""
    model, simulate = predictor.model, predictor.simulation(simulate)
    prior = prior or model.stated.drawer(predictor.function, model.transformed)
    rows = np.zeros((draws, 1))
    block = _Prior(predictor, predictor.named("prior", prior), rows)
    drawn = predictor.joined(block, rows, (1, draws)) if draws else {}
    groups = {"prior": drawn}
    if simulate is not None:
        names = (*model.layout.parameters, *model.stated.discrete)
        arrays = {name: drawn[name] for name in names} if draws else {}
        result = predictor.simulated(simulate, arrays, executor) if draws else {}
        if result or not draws:
            groups["prior_predictive"] = result
    return predictor.result(groups)
