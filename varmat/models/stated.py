"""What a model states once: the distributions of parameters and observations, and values that
follow from them. Log density, log-likelihood and all kinds of simulation are made from it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from varmat.core.errors import DataError, DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import positional
from varmat.distributions.custom import FromTerms, as_distribution
from varmat.distributions.distribution import Distribution
from varmat.distributions.marginals import observed_terms
from varmat.functions.linalg.triangular_solves import mdivide_left_tri_low
from varmat.interrupts import Attempt
from varmat.models.arguments import taken
from varmat.models.bounds import Dependent
from varmat.models.discrete import Discrete, OwnTerms, SummedOut, Term, summed_out
from varmat.models.functions import Named
from varmat.models.observations import INTEGRATED, Observed
from varmat.models.statement_checks import (
    Stated,
    better_declaration,
    check_distribution,
    check_possible,
    check_statement,
    named_element,
)
from varmat.transforms import (
    Lower,
    LowerUpper,
    Ordered,
    Positive,
    PositiveOrdered,
    Real,
    Transform,
    Upper,
)

if TYPE_CHECKING:
    from varmat.typing import Function, Operand, Plain, Result, Shape


@final
class Located(Transform):
    """A parameter of a location-scale family, made from a standard variable: the non-centred form.

    The log-Jacobian has the log density of the parameter in it: together they are the log density
    of the standard variable.
    """

    def __init__(self, prior: Distribution, shape: Shape) -> None:
        super().__init__(shape, shape)
        title = "the prior of a parameter with centred=False"
        prior = as_distribution(prior)
        check_distribution(title, prior)
        self._standard = prior.standard()
        check_statement(title, prior, shape)
        if np.shape(self._constrain(np.zeros(shape), False)) != shape:
            raise ShapeError(f"real: the prior {prior!r} does not fit the shape {shape}!")

    def _constrain(self, x: object, jacobian: bool) -> Result:
        location, scale, is_matrix, log_density = self._standard
        y = location + (x @ np.swapaxes(scale, -1, -2) if is_matrix else scale * x)
        return (y, log_density(x)) if jacobian else y

    def _unconstrain(self, y: object) -> Result:
        location, scale, is_matrix, _ = self._standard
        x = y - location
        return mdivide_left_tri_low(scale, x.T).T if is_matrix else x / scale


def _nothing() -> dict[str, Operand]:
    return {}


class Derived(Named):
    """Named values that follow from others: a function for each, and one for several.

    It is called as the function for several is, which may be missing.
    """

    def __init__(
        self, functions: Mapping[str, Named], others: Function | None, data: Mapping[str, object]
    ) -> None:
        super().__init__("transformed_parameters", others or _nothing, data)
        waiting, self.functions = dict(functions), dict[str, Named]()
        while waiting:
            # None is ready if they depend on each other: the check finds the name that is unknown.
            ready = [n for n, f in waiting.items() if waiting.keys().isdisjoint(f.names)]
            for name in ready or [*waiting]:
                self.functions[name] = waiting.pop(name)

    def check(self, names: Iterable[str]) -> None:
        names = [*names]
        for name, function in self.functions.items():
            function.check(names)
            names.append(name)
        super().check(names)

    def named_values(self, values: dict[str, object], **options: object) -> dict[str, Operand]:
        result: dict[str, Operand] = {}
        for name, function in self.functions.items():
            result[name] = function({**values, **result}, **options)
            if isinstance(result[name], Transform):
                raise TypeError(
                    f"Model: {name} is a function that returns a parameter, but must be one such "
                    "as varmat.real(), or a function of parameters and data!"
                )
            if isinstance(result[name], Distribution):
                raise TypeError(
                    f"Model: {name} is a function that returns a {type(result[name]).__name__}, "
                    f"but must be varmat.observed(y, ...) with it if {name} is data, or a "
                    "parameter "
                    "such as varmat.real(prior=...)!"
                )
        return {**result, **super().named_values({**values, **result}, **options)}


class Generated(Named):
    """Draws of discrete parameters with their probabilities, and generated quantities."""

    def __init__(
        self, spec: StatedModel, function: Function | None, data: Mapping[str, object]
    ) -> None:
        super().__init__("generated_quantities", function or _nothing, data)
        self._stated = spec

    def named_values(self, values: dict[str, object], **options: object) -> dict[str, Operand]:
        result: dict[str, Operand] = {}
        for x in self._stated.summed:
            result |= x.quantities(values, options["rng"])
        return {**result, **super().named_values({**values, **result}, **options)}


class _Part(NamedTuple):
    """The distribution of observations.

    `where` are the places of those that are not missing, and None if none is.
    """

    stated: Stated
    y: np.ndarray
    where: np.ndarray | None

    def draw_missing(self, values: dict[str, object], rng: np.random.Generator) -> Plain:
        """Draw the observations that are missing."""
        assert self.where is not None
        return np.delete(self.stated.at(values).like(self.y, rng), self.where)


class StatedModel:
    """All that a model states.

    Parameters
    ----------
    parameters : dict of str to Transform or Discrete
    observed : dict of str to Observed
    given : Mapping
        Data, to which the observations are added.
    """

    def __init__(
        self,
        parameters: Mapping[str, Transform],
        observed: Mapping[str, Observed],
        data: dict[str, object],
    ) -> None:
        self.discrete, self.parameters = taken(parameters, lambda x: isinstance(x, Discrete))
        self._data = data
        self.parts: dict[str, _Part] = {}
        self.completions: dict[str, Named] = {}
        for name, item in observed.items():
            if item.missing == INTEGRATED or not np.isnan(item.y.astype(float)).any():
                data[name] = item.y
        for name, item in observed.items():
            self.parts[name] = self._part(name, item)
        self.priors = {
            name: Stated(f"the prior of {name}", declaration.prior, data, transform)
            for name, transform in {**self.parameters, **self.discrete}.items()
            if (declaration := getattr(transform, "declaration", None))
            and declaration.prior is not None
        }
        self.located = frozenset(
            name for name, transform in self.parameters.items() if is_located(transform)
        )
        # Parameters to sum out, and the names of priors and observations that depend on them.
        self.summed: list[SummedOut] = []
        self._summed_names: frozenset[str] = frozenset()

    def sum_out(
        self, derived: Mapping[str, Named], own: Sequence[OwnTerms], points: Function
    ) -> None:
        """Sum the discrete parameters out of all statements that depend on them, by named values
        too.

        Parameters
        ----------
        derived : dict of str to Named
            The named values that do.
        own : sequence of OwnTerms
            The terms of the log density of the user, if they do.
        points : callable
            See `SummedOut`.
        """
        depends = {*self.discrete, *derived}
        statements: list[Term | OwnTerms] = [
            Term(name, prior)
            for name, prior in self.priors.items()
            if name in self.discrete or not depends.isdisjoint(prior.names)
        ]
        statements += [
            Term(name, part.stated, part.y if part.where is None else None, part.where, True)
            for name, part in self.parts.items()
            if not depends.isdisjoint(part.stated.names)
        ]
        self._summed_names = frozenset(x.name for x in statements)
        self.summed = summed_out(self.discrete, derived, [*statements, *own], points)

    def _part(self, name: str, observed: Observed) -> _Part:
        y = observed.y
        of, weights = observed.distribution, observed.weights
        spec = Stated(f"the distribution of {name}", of, self._data, y, weights)
        if name in self._data:
            if spec.function is None:
                check_possible(name, spec.fixed, y)
            return _Part(spec, y, None)
        missing = np.isnan(y)
        if observed.missing is None or isinstance(observed.missing, str):
            index = ", ".join(map(str, np.argwhere(missing)[0]))
            raise DataError(
                f"Model: {name}{f'[{index}]' if index else ''} is nan, but must be a number: "
                "missing=varmat.real makes parameters of missing observations!"
            )
        self.parameters[f"{name}_missing"] = observed.missing(int(missing.sum()))
        # The places of all elements in those that are there, followed by those that are missing.
        order = np.argsort(np.argsort(missing.ravel(), kind="stable"), kind="stable")

        def completed(**values: object) -> Result:
            return np.concatenate([y[~missing], *values.values()])[order].reshape(y.shape)

        parameters = positional([f"{name}_missing"])
        completed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        self.completions[name] = Named(f"the missing {name}", completed, {})
        return _Part(spec, y, np.flatnonzero(~missing.ravel()))

    @property
    def incomplete(self) -> dict[str, np.ndarray]:
        """The observations with nan among them."""
        return {name: part.y for name, part in self.parts.items() if part.where is not None}

    @property
    def centred(self) -> list[str]:
        """The parameters of a hierarchy that have a non-centred form which is not used."""
        return [
            name
            for name, prior in self.priors.items()
            if isinstance(self.parameters.get(name), Real) and {*prior.names} - self._data.keys()
        ]

    def check(self, names: Iterable[str]) -> None:
        """Raise `TypeError` if a distribution depends on something that the model does not have."""
        names = [*names]
        for prior in [*self.priors.values(), *(part.stated for part in self.parts.values())]:
            if prior.function:
                prior.function.check(names)

    def impossible(self, values_at: Callable[[np.ndarray], Any], q: np.ndarray) -> str:
        """Name the observation, or the prior, whose density is zero around the start of a sampler;
        empty if none is.

        Parameters
        ----------
        values_at : callable
            All named values at an unconstrained point.
        q : ndarray
            A point that was refused.
        """
        zeros: dict[str, np.ndarray] = {}
        said = ""
        for point in (q, *(np.full(q.shape, x) for x in (-1.5, -0.5, 0.0, 0.5, 1.5))):
            with Attempt(), np.errstate(all="ignore"):
                values = values_at(point)
                said = said or self._impossible_prior(values)
                for name, part in self.parts.items():
                    if part.where is None and name not in self._summed_names:
                        terms = part.stated.pointwise(values, part.y)
                        zeros[name] = zeros.get(name, True) & np.isneginf(np.asarray(terms))
        for name, zero in zeros.items():
            if np.any(zero):
                return (
                    named_element(name, self.parts[name].y, zero) + " whatever the parameters are"
                )
        return said

    def _impossible_prior(self, values: Mapping[str, object]) -> str:
        for name, item in self.priors.items():
            if name in self.located | self._summed_names:
                continue
            prior, x = item.at(dict(values)), np.asarray(values[name])
            zero = np.isneginf(np.asarray(prior.lpdf.pointwise(x)))
            if np.any(zero):
                better = (
                    better_declaration(prior, x) if isinstance(self.parameters[name], Real) else ""
                )
                return f"{named_element(name, x, zero)} by its prior {prior!r}{better}"
        return ""

    def check_order(self, derived: Mapping[str, Named]) -> None:
        """Raise `TypeError` if priors depend on each other in a circle, also by named values: their
        product is then not the density of a distribution from which they could be drawn.
        """
        needed = {name: prior.names for name, prior in self.priors.items()}
        needed |= {name: function.names for name, function in derived.items()}
        while ready := [n for n, names in needed.items() if needed.keys().isdisjoint(names)]:
            for name in ready:
                del needed[name]
        path = [*needed][:1]
        while path:
            name = next(n for n in needed[path[-1]] if n in needed)
            if name == path[-1] and name in self.priors:
                raise TypeError(
                    f"Model: the prior of {name} is a function of {name} itself, but must be the "
                    f"distribution that {name} has: a density of your own is one by "
                    "varmat.distributions.Custom!"
                )
            if name in path:
                circle = [*path[path.index(name) :], name]
                steps = ", ".join(f"{a} needs {b}" for a, b in pairwise(circle))
                raise TypeError(
                    f"Model: the priors depend on each other in a cycle ({steps}), but must be "
                    "in an order in which each can be drawn!"
                )
            path.append(name)

    # --- densities ---

    def terms(
        self, values: dict[str, Operand], propto: bool, jacobian: bool, without: Container[str] = ()
    ) -> list[Result]:
        """Return the log densities of parameters and observations, `without` some of these. With
        the log-Jacobian, leave out non-centred parameters, because their log densities are added
        with it.
        """
        result = [
            prior.log_density(values, values[name], propto)
            for name, prior in self.priors.items()
            if not (jacobian and name in self.located) and name not in self._summed_names
        ]
        result += [x.log_density(values) for x in self.summed]
        for name, part in self.parts.items():
            if name in self._summed_names or name in without:
                continue
            y = part.y if part.where is None else values[name]
            result.append(part.stated.log_density(values, y, propto))
        return result

    def pointwise(self, **values: object) -> dict[str, Operand]:
        """Return the log-likelihood of each observation, without those that are missing."""
        result: dict[str, Operand] = {}
        for x in self.summed:
            result |= x.log_likelihood(values)
        for name, (spec, y, where) in self.parts.items():
            if name in self._summed_names:
                continue
            terms = spec.pointwise(values, y if where is None else values[name])
            if where is None:
                result[name] = terms
            elif np.shape(terms) == y.shape:
                result[f"{name}_observed"] = np.reshape(terms, -1)[where]
            elif np.shape(terms) == y.shape[:-1]:
                result[f"{name}_observed"] = observed_terms(spec.at(values), terms, y)
        return result

    def log_prior(self, **values: object) -> dict[str, Operand]:
        """Return the log prior of each element of the parameters that state one. Where a draw of
        the prior is a vector or matrix, the name says so, because the shape is another.
        """
        result = {}
        for name, prior in self.priors.items():
            if name not in self._summed_names:
                terms = prior.pointwise(values, values[name])
                is_own = np.shape(terms) == self.parameters[name].shape
                result[name if is_own else f"{name}_prior"] = terms
        return result

    # --- simulation ---

    def replicate(self, rng: np.random.Generator, **values: Operand) -> dict[str, Plain]:
        """Draw other observations from their distributions, where these are known."""
        stated = ((name, part.y, part.stated.at(values)) for name, part in self.parts.items())
        return {name: d.like(y, rng) for name, y, d in stated if not isinstance(d, FromTerms)}

    def simulate(
        self, function: str, rng: np.random.Generator, values: dict[str, Operand]
    ) -> dict[str, Plain]:
        """Draw all other observations; raise if the distribution of one is not known."""
        result = self.replicate(rng, **values)
        for name in self.parts.keys() - result.keys():
            raise TypeError(
                f"{function}: {name} cannot be drawn, because the model has only a function of its "
                "log densities: give a function that simulates!"
            )
        return result

    def predict(self, rng: np.random.Generator, **values: object) -> dict[str, Plain]:
        """Draw observations of as many elements as their distributions have."""
        result = {}
        for name, part in self.parts.items():
            distribution, shape = part.stated.for_prediction(values)
            if isinstance(distribution, FromTerms):
                continue
            result[name] = distribution.rng(rng, shape, **distribution.seen(part.y))
        return result

    def drawer(self, function: str, derived: Derived | None) -> Function:
        """Make a function that draws parameters from their priors, given a generator."""

        def draw(rng: np.random.Generator) -> dict[str, Plain]:
            values: dict[str, Plain] = {}
            waiting = self._draws(function, values, rng)
            functions = {n: f for x in self.summed for n, f in x.derived.items()}
            for name, f in {**(derived.functions if derived else {}), **functions}.items():
                waiting[name] = f, lambda name=name, f=f: {name: f(values)}
            if derived is not None:
                waiting["transformed"] = derived, lambda: Named.named_values(derived, values)
            while waiting:
                ready = [
                    name
                    for name, (f, _) in waiting.items()
                    if (not f or f.is_ready(values)) and self._of_bounds(name) <= values.keys()
                ]
                if not ready:
                    raise TypeError(
                        f"{function}: {', '.join(waiting)} depend on each other, but must not: "
                        "give a function that draws all parameters!"
                    )
                for name in ready:
                    values.update(waiting.pop(name)[1]())
            return {name: values[name] for name in (*self.parameters, *self.discrete)}

        return draw

    def _draws(
        self, function: str, values: dict[str, object], rng: np.random.Generator
    ) -> dict[str, tuple[Named | None, Function]]:
        """Return for each parameter the function on which its draw waits, and a function that draws
        it.
        """
        result: dict[str, tuple[Named | None, Function]] = {}
        for name in self.parameters:
            source = name.removesuffix("_missing")
            if name in self.priors:
                of, draw = self.priors[name], partial(self._drawn, function, name, values, rng)
            elif source in self.completions:
                of = self.parts[source].stated
                draw = partial(self.parts[source].draw_missing, values, rng)
            else:
                raise TypeError(
                    f"{function}: {name} has no prior, but must have one, "
                    "as in varmat.real(prior=...); or give a function that draws all parameters!"
                )
            result[name] = of.function, lambda name=name, draw=draw: {name: draw()}
        for name, x in self.discrete.items():
            prior = self.priors.get(name)
            result[name] = (
                prior.function if prior else None,
                lambda name=name, item=x, prior=prior: {
                    name: item.draw(prior.at(values) if prior else None, rng)
                },
            )
        return result

    def _of_bounds(self, name: str) -> set[str]:
        """Return the parameters that occur in the bounds of a parameter."""
        transform = self.parameters.get(name)
        if not isinstance(transform, Dependent) or name in self.located:
            return set()
        return {x for f in transform.functions for x in (*f.needed, *f.optional)} & {
            *self.parameters
        }

    def _drawn(
        self, function: str, name: str, values: dict[str, object], rng: np.random.Generator
    ) -> Plain:
        """Draw a parameter from its prior, restricted to its set."""
        transform, prior = self.parameters[name], self.priors[name].at(values)
        # The log density is not divided by the probability of the set. Draws are restricted to it
        # only where that is a constant, because otherwise other parameters depend on it.
        varying = {*self.priors[name].names} - self._data.keys() | self._of_bounds(name)
        if isinstance(transform, Dependent) and name not in self.located:
            transform = transform.at({**self._data, **values})
        lower, upper = _ends(transform)
        ends = [x for x in (lower, upper) if x is not None]
        has_tails = hasattr(getattr(prior, "row", None), "lcdf")
        if ends and has_tails and not varying:
            prior = prior.truncated(lower, upper)
        x = prior.like(np.zeros(transform.shape), rng)
        if isinstance(transform, (Ordered, PositiveOrdered)):
            outer, event = prior.extent()
            if event or outer[-1:] not in ((), (1,)):
                raise TypeError(
                    f"{function}: the prior of {name} is {prior!r}, but must be the same for all "
                    "elements of an ordered vector: give a function that draws all parameters!"
                )
            x = _ascending(np.sort(x, axis=-1))
        if not ends:
            return x
        inside = (x >= (-math.inf if lower is None else lower)) & (
            x <= (math.inf if upper is None else upper)
        )
        # Draws rounded to an end are moved inside, because an unconstrained point must exist.
        if lower is not None and not is_differentiable(lower):
            x = np.where(x == lower, np.nextafter(lower, math.inf), x)
            x = _ascending(x) if isinstance(transform, PositiveOrdered) else x
        if upper is not None and not is_differentiable(upper):
            x = np.where(x == upper, np.nextafter(upper, -math.inf), x)
        if is_differentiable(x):  # a recording cannot raise, but Python is called where it has nan
            return np.where(inside, x, np.nan)
        if not np.all(inside):
            raise DomainError(
                f"{function}: {name} is {np.min(x) if lower is not None else np.max(x)} in a draw "
                f"from its prior {prior!r}, but must be in its support: restrict the prior by "
                ".truncated(lower, upper)!"
            )
        return x


def _ascending(x: Plain) -> Plain:
    """Separate sorted draws where they were rounded to the same number."""
    if is_differentiable(x):  # Python is called where a recording has nan
        tied = np.any(x[..., 1:] <= x[..., :-1], axis=-1, keepdims=True)
        return np.where(tied, np.nan, x)
    for k in range(1, x.shape[-1]):
        x[..., k] = np.maximum(x[..., k], np.nextafter(x[..., k - 1], math.inf))
    return x


def is_located(transform: Transform) -> bool:
    """Return whether a parameter is in its non-centred form."""
    return (transform.make if isinstance(transform, Dependent) else type(transform)) is Located


def _ends(transform: Transform) -> tuple[Operand, Operand]:
    """Return the bounds of each element's set; None for a side without one."""
    if isinstance(transform, (Positive, PositiveOrdered)):
        return 0.0, None
    if isinstance(transform, Lower):
        return transform.bound, None
    if isinstance(transform, Upper):
        return None, transform.bound
    if isinstance(transform, LowerUpper):
        lower, upper = transform.constraint[1]
        return lower, upper
    return None, None
