"""The log density of named, constrained parameters, without what optimisers and samplers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import compress, islice
from typing import Any, Never, Self

import numpy as np

from varmat import html
from varmat.core.array_methods import FLOAT64
from varmat.core.tape import nested
from varmat.core.variables import data as plain_data
from varmat.core.variables import var
from varmat.derivatives.recorded import RecordedWithData
from varmat.derivatives.reverse import Terms, value_and_grad
from varmat.derivatives.structure import leaves_of
from varmat.functions.checks import misfit
from varmat.interrupts import Attempt
from varmat.models.arguments import check_dicts, declared_parameters, observed_names, taken
from varmat.models.discrete import OwnTerms
from varmat.models.functions import Named, of_values
from varmat.models.graph import ModelGraph, graph_of
from varmat.models.indices import below_zero, check_indices
from varmat.models.layout import Layout, indexed
from varmat.models.likelihood import LOG_LIKELIHOOD, LogLikelihood, by_dimension, chosen_terms
from varmat.models.observations import Labelled, Observed
from varmat.models.results import Labels, check_names, check_shapes, coordinates
from varmat.models.starts import random_start
from varmat.models.stated import Derived, Generated, StatedModel
from varmat.models.statement_checks import refuse_distributions
from varmat.models.unpacking import sum_of_terms
from varmat.transforms import Transform
from varmat.typing import Function, Operand, Plain, Result, Shape


def _no_terms() -> tuple[()]:
    return ()


def _quantity(x: object, title: str) -> Plain:
    """Convert a generated quantity: integers and truth values keep their kind, others become
    floats.
    """
    result = plain_data(x, title)
    saved = np.asarray(x)
    if saved.dtype.kind not in "biu":
        return result
    return saved if saved.ndim else saved.item()


class NamedDensity:
    """The log density of named parameters, and the ways between parameters and unconstrained
    vectors.

    `Model` adds optimisers and samplers, and describes the parameters.
    """

    _takes_indices_from_zero = True

    def __init__(
        self,
        log_density: Function | None = None,
        parameters: Mapping[str, Transform] | None = None,
        /,
        *,
        data: Mapping[str, object] | None = None,
        transformed_parameters: Function | None = None,
        generated_quantities: Function | None = None,
        log_likelihood: Function | str | bool | None = None,
        observed: str | Sequence[str] | None = None,
        coords: Labels | None = None,
        dims: Mapping[str, Sequence[str]] | None = None,
        recorded: bool | None = None,
        **kwargs: Transform | Observed | Function,
    ) -> None:
        self._arguments = {name: x for name, x in locals().items() if name != "self"}
        check_dicts(
            {"the second argument": parameters, "data": data, "coords": coords, "dims": dims}
        )
        # Copies, because what is observed is added to one, and the caller may change the dict.
        arguments, self._arguments["data"] = dict(data or {}), dict(data or {})
        functions, others = taken(kwargs, callable)
        observations, by_name = taken(others, lambda x: isinstance(x, Observed))
        parameters, coords, dims = parameters or {}, coords or {}, dims or {}
        named_dims = {name: (y.names, y.labels) for name, y in observations.items()}
        labels = Labelled(arguments, named_dims, parameters, by_name, coords=coords, dims=dims)
        self.coords, self.dims, self.group_labels = labels.coords, labels.dims, labels.groups
        declaration = declared_parameters(
            labels.sized(parameters), labels.sized(by_name), arguments, observations
        )
        self.stated = StatedModel(declaration, observations, arguments)
        declaration = self.stated.parameters
        self.layout = Layout(declaration, arguments)
        self._shape = (self.layout.size,)
        # The shapes of what `param_constrain` returns, with and without transformed parameters and
        # generated quantities.
        self._known: dict[tuple[bool, bool], dict[str, Shape]] = {}
        self._density = Named("the log density", log_density or _no_terms, arguments, is_last=True)
        self.transformed = self._transformed_of(functions, transformed_parameters, arguments)
        self.generated: Named | None = None
        if generated_quantities or self.stated.discrete:
            self.generated = Generated(self.stated, generated_quantities, arguments)
        self.observed = [*observations, *observed_names(observed, arguments)]
        self._stated_likelihood: LogLikelihood | None = None
        if log_likelihood or (log_likelihood is None and self.stated.parts):
            function: Any = log_likelihood or self._pointwise
            if isinstance(function, str):
                self.dims[LOG_LIKELIHOOD] = [function]
                function = partial(by_dimension, self._pointwise, self.dims, function)
            self._stated_likelihood = LogLikelihood(function, self.observed, declaration, arguments)
        self._check(declaration, is_open=transformed_parameters is not None)
        self._check_labels()
        self.recorded = recorded
        arrays = [x for x in leaves_of(arguments) if isinstance(x, np.ndarray)]
        self._value_and_grad = (
            RecordedWithData(self._target, 0, arrays) if recorded else value_and_grad(self._terms)
        )
        self._check_indices()

    def _transformed_of(
        self, functions: Mapping[str, Function], others: Function | None, data: Mapping[str, object]
    ) -> Derived | None:
        """Collect the functions of transformed parameters: of single values by name, and of
        several.
        """
        for name, f in functions.items():
            if getattr(f, "__module__", None) == "varmat.models.parameters":
                raise TypeError(
                    f"Model: {name} is the function varmat.{f.__name__}, but must be what it "
                    f"returns: varmat.{f.__name__}()!"
                )
        x = {name: Named(name, f, data, by_dict=False) for name, f in functions.items()}
        x = {**self.stated.completions, **x}
        varying: dict[str, Named] = {}
        self._is_summed = False
        if self.stated.discrete:
            varying = self._varying(x)
            # Whether the user's log density is summed over discrete parameters.
            self._is_summed = not {*self.stated.discrete, *varying}.isdisjoint(self._density.names)
            own = [OwnTerms(self._own_terms, self._density.names)] if self._is_summed else []
            self.stated.sum_out(varying, own, self._at_points)
        x = {name: f for name, f in x.items() if name not in varying}
        return Derived(x, others, data) if x or others else None

    def _varying(self, functions: Mapping[str, Named]) -> dict[str, Named]:
        """Return the functions of named values that depend on discrete parameters, in order."""
        names, varying = {*self.stated.discrete}, dict[str, Named]()
        while more := {
            name: f
            for name, f in functions.items()
            if name not in varying and not names.isdisjoint(f.names)
        }:
            varying |= more
            names |= more.keys()
        return Derived(varying, None, {}).functions

    def _at_points(self, function: Function) -> tuple[list[dict[str, Operand]], list[Result]]:
        """Call a function with plain values at several points where it raises no refusal."""
        rng, size = np.random.default_rng(0), self.layout.size
        points, results = [], []

        def accepts(q: np.ndarray) -> bool:
            values = self.completed(self.layout.unpack(q, False)[0])
            results.append(function(values))
            points.append(values)
            return True

        for radius in (0.1, 1.0, 2.0):
            random_start(rng, size, accepts, radius=radius)
        return points, results

    def _check_labels(self) -> None:
        """Label the probabilities of discrete parameters, and raise if labels do not fit."""
        discrete = self.stated.discrete
        shapes = {name: x.shape for name, x in {**self.layout.parameters, **discrete}.items()}
        for name, item in discrete.items():
            own = self.dims.get(name) or [f"{name}_dim_{i}" for i in range(len(item.shape))]
            self.dims[f"{name}_probability"] = [*own, f"{name}_value"]
            self.coords[f"{name}_value"] = item.support.tolist()
        check_names(shapes, self.coords, self.dims)
        coordinates(shapes, self.coords, {k: x for k, x in self.dims.items() if k in shapes})

    def _check(self, parameters: Mapping[str, Transform], is_open: bool) -> None:
        """Raise if a function takes what the model does not have, as far as names are known: those
        of transformed parameters are not.
        """
        derived = self.transformed.functions if self.transformed else {}
        if self.transformed:
            self.transformed.check(parameters)
        varying = {name: f for x in self.stated.summed for name, f in x.derived.items()}
        self.stated.check_order({**derived, **varying})
        if is_open:
            return
        names, more = [*parameters, *derived], [LOG_LIKELIHOOD] if self._stated_likelihood else []
        for function in self.functions():
            if function is self.transformed:
                continue
            also = more if function is self._density else []
            if function in (self._density, self.generated):
                also = [*also, *self.stated.discrete, *varying]
            function.check([*names, *also])
        self.stated.check([*names, *self.stated.discrete, *varying])

    def _check_indices(self) -> None:
        """Refuse data below 0 that are an index of parameters, as codes of missing groups are. An
        evaluation tells, which is made only if there are such data.
        """
        data = below_zero(self.layout.given)
        if data and self._takes_indices_from_zero:
            with nested() as tape:
                with Attempt(), np.errstate(all="ignore"):
                    self._target(var(np.zeros(self._shape)), True, True)
                check_indices(data, tape)

    def functions(self) -> list[Named]:
        """Return the functions of the user."""
        result = (self._density, self.transformed, self.generated)
        likelihood = self._stated_likelihood
        return [*filter(None, result), *([likelihood.function] if likelihood else [])]

    def __repr__(self) -> str:
        declaration = {**self.layout.parameters, **self.stated.discrete}
        parameters = (f"{name}={x!r}" for name, x in declaration.items())
        return f"Model({', '.join(parameters)})"

    def _repr_html_(self) -> str:
        layout, rows = self.layout, []
        for name, parameter in layout.parameters.items():
            sizes = str(parameter.shape), str(parameter.unconstrained_size)
            rows.append((name, repr(parameter), *sizes, ", ".join(self.dims.get(name, []))))
        head = ["parameter", "declared as", "shape", "unconstrained", "dims"]
        text = html.table(head, rows, f"Model of {layout.size} unknowns")
        data = [
            (name, type(x).__name__, str(np.shape(x)) if hasattr(x, "shape") else "")
            for name, x in layout.given.items()
        ]
        return text + (html.table(["data", "type", "shape"], data) if data else "")

    def graph(self) -> ModelGraph:
        """Show what each parameter, named value and observation depends on, as far as it is stated.

        Returns
        -------
        Graph
            Printed, a line for each name; ``graph().dot`` is a text for Graphviz.

        Examples
        --------
        >>> import varmat as vm, varmat.distributions as dist
        >>> vm.Model(
        ...     mu=vm.real(prior=dist.Normal(0, 5)),
        ...     y=vm.observed([1.0, 3.0], lambda mu: dist.Normal(mu, 1.0)),
        ... ).graph()
        mu parameter
        y  observed  mu
        """
        return graph_of(self.stated, self.transformed.functions if self.transformed else {})

    def simulators(self, function: str) -> tuple[Function, Function, Function]:
        """Make the functions for `varmat.testing.calibration`: they draw parameters, simulate
        observations, and make the model of other observations.
        """
        spec = self.stated

        def simulate(rng: np.random.Generator, **values: Operand) -> dict[str, Plain]:
            return spec.simulate(function, rng, self.with_discrete(self.completed(values), rng))

        draw = spec.drawer(function, self.transformed)
        return draw, simulate, lambda observed: self.with_data(**observed)

    def with_data(self, /, *args: Never, **data: Operand) -> Self:
        """Return the same model with other data.

        Parameters
        ----------
        **data
            Observations, and data of the model, by name; the others stay. Shapes may be others. So
            may labels of pandas and xarray; an array of the same shape keeps those that there are.

        Returns
        -------
        Model
            With a separate recording, because recordings hold data as constants.

        Raises
        ------
        TypeError
            If the model has no data of a name.

        Examples
        --------
        >>> import varmat as vm, varmat.distributions as dist
        >>> model = vm.Model(
        ...     mu=vm.real(prior=dist.Normal(0, 5)),
        ...     y=vm.observed([1.0, 3.0], lambda mu: dist.Normal(mu, 1.0)),
        ... )
        >>> [round(m.optimize(seed=1).values["mu"], 3) for m in (model, model.with_data(y=[5.0]))]
        [1.961, 4.808]
        """
        if args:
            raise TypeError("with_data: data are arguments by name, as in with_data(y=...)!")
        return self._with_data("with_data", data)

    def _with_data(self, function: str, data: Mapping[str, Operand]) -> Self:
        settings = dict(self._arguments)
        positional = [settings.pop(name) for name in ("log_density", "parameters")]
        by_name, arguments = dict(settings.pop("kwargs")), dict(settings.pop("data"))
        for name, x in data.items():
            if isinstance(by_name.get(name), Observed):
                by_name[name] = by_name[name].replaced(x)
            elif name in arguments:
                arguments[name] = x
                if name in self.group_labels:  # codes stay those of the parameters
                    settings["coords"] = {
                        **(settings["coords"] or {}),
                        name: self.group_labels[name],
                    }
            else:
                names = [*(k for k, v in by_name.items() if isinstance(v, Observed)), *arguments]
                raise TypeError(
                    f"{function}: the model has no data {name}, but must have: "
                    f"{', '.join(names) or 'it has none'}!"
                )
        return type(self)(*positional, data=arguments, **settings, **by_name)

    # --- evaluation ---

    def completed(self, values: dict[str, object]) -> dict[str, Operand]:
        """Return the parameters with the transformed parameters."""
        if self.transformed is None:
            return values
        return {**values, **self.transformed.named_values(values)}

    def with_discrete(
        self, values: dict[str, object], rng: np.random.Generator
    ) -> dict[str, Operand]:
        """Add the discrete parameters, drawn if they are missing, and the values that depend on
        them.
        """
        for x in self.stated.summed:
            values = x.completed(values, rng)
        return values

    def with_quantities(
        self, values: dict[str, object], rng: np.random.Generator
    ) -> dict[str, Operand]:
        """Add the generated quantities to the parameters and transformed parameters."""
        if self.generated is None:
            return values
        result = self.generated.named_values(values, rng=rng)
        return {**values, **{n: _quantity(x, f"constrain: {n}") for n, x in result.items()}}

    def _terms(self, q: object, propto: bool, jacobian: bool) -> Result:
        """Return the terms whose sum is the log density."""
        values, log_jacobians = self.layout.unpack(q, jacobian)
        if self.transformed is not None:
            values.update(self.transformed.named_values(values))
        if self._stated_likelihood is not None and LOG_LIKELIHOOD in self._density.names:
            values[LOG_LIKELIHOOD] = self._stated_likelihood.function(values)
        log_jacobians = [*self.stated.terms(values, propto, jacobian), *log_jacobians]
        result = () if self._is_summed else self._own_terms(values, propto)
        if isinstance(result, (tuple, list)):
            return Terms((*result, *log_jacobians))
        # A single result must be a scalar, which is checked later.
        return result if np.shape(result) or not log_jacobians else Terms((result, *log_jacobians))

    def _own_terms(self, values: dict[str, object], propto: bool) -> Result:
        """Return the result of the user's log density: a term, or several."""
        result = self._density(values, propto=propto)
        refuse_distributions(result)
        is_dict = isinstance(result, Mapping)
        if result is None or (is_dict and result.keys() >= values.keys()):
            missing = "None (is a return statement missing?)" if result is None else "its dict"
            text = f"Model: the log density returned {missing}, but must return a scalar!"
            raise self._density.explained(TypeError(text), values)
        for name in result.keys() & self.stated.parts.keys() if is_dict else ():
            raise TypeError(
                f"Model: the log density returned a term {name}, but must return terms of other "
                "names: varmat.observed states that one already!"
            )
        return [*result.values()] if is_dict else result

    # --- the log-likelihood ---

    @cached_property
    def likelihood(self) -> LogLikelihood | None:
        """The pointwise log-likelihood, stated or of named terms of the log density, if any."""
        if self._stated_likelihood is None and self._named_terms:
            arguments = self.observed, self.layout.parameters, self.layout.given
            return LogLikelihood(self._pointwise, *arguments)
        return self._stated_likelihood

    @cached_property
    def _named_terms(self) -> tuple[str, ...]:
        """The observations whose terms the user's log density returns by name. An evaluation
        tells.
        """
        names = self.observed if self.observed and not self.stated.parts else self.layout.given
        given = self._arguments["log_likelihood"]
        is_without = self._density.function is _no_terms or LOG_LIKELIHOOD in self._density.names
        results: list[Result] = []
        if names and (given is None or isinstance(given, str)) and not is_without | self._is_summed:
            with Attempt(), np.errstate(all="ignore"):
                results = self._at_points(lambda x: self._density(x, propto=False))[1]
        found = results[-1] if results else None
        return tuple(x for x in found if x in names) if isinstance(found, Mapping) else ()

    def _pointwise(self, **values: Operand) -> dict[str, Operand]:
        """Return the log-likelihood of each observation, of stated ones and of named terms."""
        result = self.stated.pointwise(**values)
        if self._named_terms:
            terms = self._density(values, propto=False)
            result |= chosen_terms(terms, self._named_terms, self.layout.given)
        return result

    def _target(self, q: object, propto: bool, jacobian: bool) -> Result:
        terms = self._terms(q, propto, jacobian)
        return sum_of_terms(*terms) if type(terms) is Terms else terms

    def point(self, function: str, q: Operand, title: str = "q") -> np.ndarray:
        if isinstance(q, Mapping):
            raise TypeError(
                f"{function}: {title} is a dict, but must be the unconstrained vector that "
                "param_unconstrain(values) returns!"
            )
        if type(q) is not np.ndarray or q.dtype is not FLOAT64:
            q = plain_data(q, f"{function}: {title}")
        if np.shape(q) != self._shape:
            raise misfit(function, title, np.shape(q), f"have shape {self._shape}")
        point: np.ndarray = q
        return point

    def constrain(
        self,
        q: object,
        include_tp: bool = False,
        include_gq: bool = False,
        rng: np.random.Generator | None = None,
    ) -> dict[str, Operand]:
        """Return the parameters by name at an unconstrained point.

        Parameters
        ----------
        q : array_like, shape (N,)
        include_tp, include_gq : bool
            Transformed parameters, and generated quantities, too.
        rng : numpy.random.Generator, optional
            For the generated quantities.

        Returns
        -------
        dict of str to float or ndarray
        """
        parameters, _ = self.layout.unpack(self.point("constrain", q).copy(), False)
        values = self.completed(parameters) if include_tp or include_gq else parameters
        shown = values if include_tp else parameters
        result = {name: plain_data(values[name], f"constrain: {name}") for name in shown}
        if include_gq:
            rng = np.random.default_rng() if rng is None else rng
            completed = self.with_quantities(values, rng)
            result |= {name: x for name, x in completed.items() if name not in values}
        return result

    def param_constrain(
        self,
        q: object,
        include_tp: bool = False,
        include_gq: bool = False,
        rng: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Return the parameters at an unconstrained point in a vector, in the order of
        `param_names`; see `constrain` for a dict.

        Returns
        -------
        ndarray, shape (param_num(include_tp, include_gq),)
        """
        values, which = self.constrain(q, include_tp, include_gq, rng), (include_tp, include_gq)
        # A function may return its quantities in another order, and data may have changed their
        # size.
        if {name: np.shape(value) for name, value in values.items()} != self._known.get(which):
            self._known[which] = self.shapes(*which)
            check_shapes("param_constrain", values, self._known[which])
        return np.concatenate(
            [np.empty(0), *(np.ravel(values[name]) for name in self._known[which])]
        )

    def param_unconstrain(self, values: object) -> np.ndarray:
        """Return the unconstrained point at which the parameters have given values.

        Parameters
        ----------
        values : dict, or array_like of shape (param_num(),)
            By name, or in sequence.

        Returns
        -------
        ndarray, shape (N,)

        Raises
        ------
        DomainError
            If a value is not allowed.
        ShapeError
            If a value has another shape.
        TypeError
            If a parameter is missing, or there is one too many.
        """
        if not isinstance(values, Mapping):
            flat = plain_data(values, "param_unconstrain: values")
            if np.shape(flat) != (shape := (self.param_num(),)):
                raise misfit("param_unconstrain", "values", np.shape(flat), f"have shape {shape}")
            values = self.layout.split(flat)
        return self.layout.pack("param_unconstrain", values)

    # --- names and numbers ---

    def shapes(self, include_tp: bool = False, include_gq: bool = False) -> dict[str, Shape]:
        """Return the shape of every parameter by name, and of transformed parameters and generated
        quantities if requested.

        The shapes of the latter are found by calling the functions of the model.
        """
        if (include_tp and self.transformed) or (include_gq and self.generated):
            values = self.example(include_tp, include_gq)
            return {name: np.shape(value) for name, value in values.items()}
        return {name: transform.shape for name, transform in self.layout.parameters.items()}

    def example(self, include_tp: bool, include_gq: bool) -> dict[str, Operand]:
        """Return named values as `constrain` does, at a point where they are allowed."""
        result: dict[str, Operand] = {}

        def is_allowed(q: np.ndarray) -> bool:
            result.update(self.constrain(q, include_tp, include_gq, np.random.default_rng(0)))
            return True

        rng, origin = np.random.default_rng(0), np.zeros(self._shape)
        random_start(rng, self.layout.size, is_allowed, origin, of_values)
        return result

    def param_names(self, include_tp: bool = False, include_gq: bool = False) -> list[str]:
        """Return the name of every element that `param_constrain` returns: ``theta.1``, counted
        from one.
        """
        shapes = self.shapes(include_tp, include_gq).items()
        return [label for name, shape in shapes for label in indexed(name, shape)]

    def param_unc_names(self) -> list[str]:
        """Return the name of every element of the unconstrained vector."""
        return list(self.layout.unconstrained_names())

    def unconstrained_names_at(self, mask: np.ndarray) -> str:
        """Join the names of the first unconstrained parameters in a mask, for a message."""
        return ", ".join(islice(compress(self.param_unc_names(), mask), 5))

    def param_num(self, include_tp: bool = False, include_gq: bool = False) -> int:
        """Return the number of elements of all constrained parameters."""
        return sum(int(np.prod(shape)) for shape in self.shapes(include_tp, include_gq).values())

    def param_unc_num(self) -> int:
        """Return the size of the unconstrained vector."""
        return self.layout.size
