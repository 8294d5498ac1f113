"""Distributions of the table of densities: a row, with values for its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.core.variables import Var, VarMat
from varmat.densities.bernoulli import (
    bernoulli_logit_lpmf,
    bernoulli_lpmf,
    binomial_logit_lpmf,
    binomial_lpmf,
)
from varmat.densities.counts import (
    neg_binomial_2_log_lpmf,
    neg_binomial_2_lpmf,
    poisson_log_lpmf,
    poisson_lpmf,
)
from varmat.densities.density import Density, StructuredDensity
from varmat.densities.lkj import lkj_cov_lpdf
from varmat.densities.multi_normal import multi_normal_cholesky_lpdf
from varmat.densities.normal import std_normal_lpdf
from varmat.densities.univariate import Univariate
from varmat.distributions.distribution import Distribution
from varmat.distributions.terms import DensityTerms, Standard
from varmat.functions.checks import check_values
from varmat.functions.special.logistic_functions import expit

if TYPE_CHECKING:
    from collections.abc import Callable

    from varmat.densities.random_numbers.row import RandomNumbers
    from varmat.typing import Operand, Plain, Result, Shape

__all__ = ["OfRow"]

# Arguments that a generator takes and a density does not, because it sees them in an observation.
_SEEN: dict[str, Callable[[Plain], Plain]] = {
    "K": lambda y: np.shape(y)[-1],
    "N": lambda y: np.sum(y, axis=-1),
    "T": lambda y: np.shape(y)[-1],
}
# A mass in log or logit form -> the mass with the cumulative functions, and its parameters.
_CUMULATIVE: dict[Density, tuple[Density, Callable[..., tuple[Operand, ...]]]] = {
    bernoulli_logit_lpmf: (bernoulli_lpmf, lambda alpha: (expit(alpha),)),
    binomial_logit_lpmf: (binomial_lpmf, lambda N, alpha: (N, expit(alpha))),
    neg_binomial_2_log_lpmf: (neg_binomial_2_lpmf, lambda eta, phi: (np.exp(eta), phi)),
    poisson_log_lpmf: (poisson_lpmf, lambda alpha: (np.exp(alpha),)),
}


_PLAIN = frozenset({float, int, np.ndarray, Var, VarMat})


def is_declaration(x: object) -> bool:
    """Return whether an object declares a parameter of a model."""
    return hasattr(x, "unconstrained_shape")


class OfRow(Distribution):
    """A distribution of the table; its subclasses are made by `of_row`."""

    row: ClassVar[Density]
    __signature__: ClassVar[inspect.Signature]

    def __init__(self, *args: object, **kwargs: object) -> None:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name}: {error}; the signature is {name}{self.__signature__}"
            ) from None
        bound.apply_defaults()
        self.parameters = bound.arguments
        for name, x in self.parameters.items():
            if type(x) not in _PLAIN and (isinstance(x, Distribution) or is_declaration(x)):
                kind, what = type(self).__name__, type(x).__name__
                raise TypeError(
                    f"{kind}: {name} is a {what}, but must be numbers: declare a parameter, such "
                    f"as {name}=varmat.real(prior=...), and give a function that takes {name} and "
                    f"returns the {kind}!"
                )

    def parts(self) -> dict[str, Operand]:
        return self.parameters

    @property
    def is_discrete(self) -> bool:
        return self.row.name.endswith("_lpmf")

    @property
    def _is_glm(self) -> bool:
        return "_glm_" in self.row.name

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return self.row(y, *self.parameters.values(), propto=propto)

    def _each(self, y: Operand) -> Result:
        if isinstance(self.row, Univariate):
            return self.row.pointwise(y, *self.parameters.values())
        if self._is_glm:
            return self._of_predictor().lpdf.pointwise(y)
        return self._of_arrays(y)

    def _of_arrays(self, y: Operand) -> Result:
        """Return the log density of each vector, matrix or category, by its formula if known."""
        from varmat.distributions.observations import FORMULAS

        formula, most = FORMULAS.get(self.row.name, (None, 0))
        y, *values = (
            np.asarray(x) if isinstance(x, list) else x for x in (y, *self.parameters.values())
        )
        if formula is None or np.ndim(values[-1]) > most:
            return self._one_by_one(y)
        self._sum(y)  # refuses arguments
        with np.errstate(divide="ignore"):
            return formula(y, *values)

    def _one_by_one(self, y: Operand) -> Result:
        """Return the log density of each vector or matrix, by one call for each."""
        values = [
            np.asarray(x) if isinstance(x, list) else x for x in (y, *self.parameters.values())
        ]
        outer = [np.shape(y)[: np.ndim(y) - self.event], *self._outers()]
        shape = np.broadcast_shapes(*outer)
        if not shape:
            return self._sum(y)

        def at(x: Operand, lengths: Shape, index: Shape) -> Result:
            there = zip(index[len(index) - len(lengths) :], lengths, strict=True)
            return x[tuple(0 if n == 1 else i for i, n in there)] if lengths else x

        item = [
            self.row(*(at(x, lengths, index) for x, lengths in zip(values, outer, strict=True)))
            for index in np.ndindex(shape)
        ]
        return np.reshape(np.stack(item), shape) if item else np.zeros(shape)

    def _of_predictor(self) -> OfRow:
        """Convert a generalised linear model to the distribution of each observation, given its
        linear predictor.
        """
        from varmat import distributions

        names = self.row.name.rpartition("_glm_")[0].removesuffix("_id").split("_")
        output = getattr(distributions, distributions.class_name(names))
        others = dict(self.parameters)
        predictor = others.pop("X") @ others.pop("beta") + others.pop("alpha", 0.0)
        result: OfRow = output(
            *(others.get(name, predictor) for name in output.__signature__.parameters)
        )
        return result

    def cumulative(self, name: str) -> DensityTerms:
        row, values = self.cumulative_row()
        function = getattr(row, name, None)
        if function is None:
            raise TypeError(f"{type(self).__name__} has no {name}!")
        return DensityTerms(
            lambda y: function(y, *values), lambda y: function.pointwise(y, *values)
        )

    def cumulative_row(self) -> tuple[Density, tuple[Operand, ...]]:
        """Return the row with the cumulative functions of the distribution, and its parameters."""
        values = tuple(self.parameters.values())
        if self._is_glm:
            return self._of_predictor().cumulative_row()
        row, parameters_of = _CUMULATIVE.get(self.row, (self.row, lambda *values: values))
        return row, parameters_of(*values)

    def as_density(self) -> tuple[Any, tuple[Operand, ...]]:
        if getattr(self.row, "lcdf", None):
            return self.row, tuple(self.parameters.values())
        return super().as_density() if self.row in _CUMULATIVE else (self.row, ())

    def of_each(self) -> OfRow:
        return self._of_predictor() if self._is_glm else self

    def mean(self) -> Result:
        return self.of_each().moment("mean")

    def variance(self) -> Result:
        return self.of_each().moment("variance")

    def moment(self, name: str) -> Result:
        row, values = self.row, self._arrays()
        moment = getattr(row, name, None)
        if moment is None:
            raise TypeError(f"{type(self).__name__} has no {name}!")
        _, *domains = row.arguments.values()
        for (title, domain), x in zip(domains, values, strict=True):
            check_values(partial(domain.check, f"{type(self).__name__}.{name}", title), x)
        with np.errstate(all="ignore"):
            result, shape = moment(*values), np.broadcast_shapes(*map(np.shape, values))
        if np.shape(result) != shape:
            result = np.broadcast_to(result, shape)
        return result if shape or is_differentiable(result) else float(result)

    def _arrays(self) -> list[Operand]:
        return [np.asarray(x) if type(x) in (list, tuple) else x for x in self.parameters.values()]

    def support(self) -> tuple[Operand, Operand]:
        if not isinstance(self.row, Univariate):
            return super().support()
        lower, upper = self.row.ends(*self._arrays())
        return lower, upper

    def elements(self) -> list[Operand] | None:
        return [*self.parameters.values()] if isinstance(self.row, Univariate) else None

    def with_elements(self, elements: Sequence[Operand]) -> Distribution:
        return type(self)(*elements)

    @property
    def _generator(self) -> RandomNumbers:
        import_module("varmat.densities.random_numbers")  # gives rows their generators
        if self.row.rng is None:
            raise TypeError(
                f"{type(self).__name__} has no random numbers and no pointwise log density!"
            )
        generator: Any = self.row.rng
        return generator  # type: ignore[no-any-return]

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        return self._generator(**self.parameters, **more, rng=rng, size=size)

    @property
    def event(self) -> int:
        return len(self._generator.event)

    def _outers(self) -> list[Shape]:
        """Return the shape of each parameter without the axes of one draw."""
        generator = self._generator
        axes = [
            len(generator.core_of(name, x)) if name in generator.arguments else 0
            for name, x in self.parameters.items()
        ]
        parameters = self.parameters.values()
        return [np.shape(x)[: np.ndim(x) - n] for x, n in zip(parameters, axes, strict=True)]

    def outer(self) -> Shape:
        return np.broadcast_shapes(*self._outers())

    def extent(self) -> tuple[Shape, int]:
        if self._is_glm:
            return np.shape(self.parameters["X"])[:1], 0
        if not isinstance(self.row, StructuredDensity):
            return np.broadcast_shapes(*map(np.shape, self.parameters.values())), 0
        return super().extent() if self.row is not lkj_cov_lpdf else ((), 2)

    def seen(self, y: Plain) -> dict[str, Plain]:
        arguments = self._generator.arguments
        return {name: _SEEN[name](y) for name in arguments if name not in self.parameters}

    def standard(self) -> Standard:
        from varmat.distributions.observations import is_location_scale

        row, others = self.row, dict(self.parameters)
        if row is multi_normal_cholesky_lpdf:
            return Standard(others["mu"], others["L"], True, std_normal_lpdf)
        titles = {title: name for name, (title, _) in row.arguments.items()}
        names = [titles.get(f"{x} parameter", "") for x in ("Location", "Scale")]
        if not isinstance(row, Univariate) or "" in names or not is_location_scale(row, *names):
            return super().standard()
        location, scale = (others[name] for name in names)
        others.update(zip(names, (0.0, 1.0), strict=True))
        return Standard(location, scale, False, lambda z: row(z, *others.values()))
