"""Distributions as objects: a row of the table of densities, with values for its parameters."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from varmat.densities.density import Density, StructuredDensity
from varmat.densities.lkj import lkj_cov_lpdf
from varmat.densities.multi_normal import multi_normal_cholesky_lpdf
from varmat.densities.normal import std_normal_lpdf
from varmat.densities.univariate import Univariate

if TYPE_CHECKING:
    from varmat.densities.random_numbers.row import RandomNumbers
    from varmat.distributions.composed import Censored, Truncated
    from varmat.typing import Function, Operand, Plain, Result, Shape

    Seed = np.random.Generator | int | None

# Arguments that a generator takes and a density does not, because it sees them in an observation.
_SEEN: dict[str, Callable[[Plain], Plain]] = {
    "K": lambda y: np.shape(y)[-1],
    "N": lambda y: np.sum(y, axis=-1),
    "T": lambda y: np.shape(y)[-1],
}


class DensityTerms(NamedTuple):
    """A function of observations, and the same for each observation, as `pointwise`."""

    summed: Function
    pointwise: Function

    def __call__(self, y: Operand, **settings: bool) -> Result:
        return self.summed(y, **settings)


class Standard(NamedTuple):
    """A location-scale family at given parameters: ``location + scale * z``.

    Attributes
    ----------
    location, scale : array_like or variable
    is_matrix : bool
        Whether `scale` is a Cholesky factor, by which vectors are multiplied.
    log_density : callable
        Of z.
    """

    location: Operand
    scale: Operand
    is_matrix: bool
    log_density: Function


class Distribution(ABC):
    """A distribution with its parameters; the base of all classes of `varmat.distributions`.

    Its functions have the names and the meaning of varmat's functions: ``d.lpdf(y)`` is the sum
    over the observations, and ``d.lpdf.pointwise(y)`` the log density of each. Parameters and
    observations may be variables.

    Examples
    --------
    >>> import varmat.distributions as dist
    >>> isinstance(dist.Normal(0, 1), dist.Distribution)
    True
    """

    @abstractmethod
    def _each(self, y: Operand) -> Result:
        """The log density of each observation."""

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return total(self._each(y))

    @abstractmethod
    def _tail(self, name: str) -> DensityTerms:
        """One of the cumulative functions `cdf`, `lcdf` and `lccdf`."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain: ...

    @property
    def _event(self) -> int:
        """The number of axes of one draw."""
        return 0

    def _outer(self) -> Shape:
        """The shape to which the parameters broadcast, without the axes of one draw."""
        return ()

    def extent(self) -> tuple[Shape, int]:
        """The shape of the observations to which the distribution broadcasts, without the axes of
        one of them, and the number of these axes.
        """
        return self._outer(), self._event

    def _seen(self, y: Plain) -> dict[str, Plain]:
        """Arguments of the generator that are seen in observations."""
        return {}

    @property
    @abstractmethod
    def is_discrete(self) -> bool:
        """Whether the observations are integers."""

    @property
    def lpdf(self) -> DensityTerms:
        """The log density of observations, summed; ``lpdf.pointwise`` that of each."""
        return DensityTerms(self._sum, self._each)

    lpmf = lpdf

    @property
    def cdf(self) -> DensityTerms:
        """The probability up to an observation; of several the product, as in Stan."""
        return self._tail("cdf")

    @property
    def lcdf(self) -> DensityTerms:
        """The logarithm of `cdf`."""
        return self._tail("lcdf")

    @property
    def lccdf(self) -> DensityTerms:
        """The logarithm of the probability above an observation."""
        return self._tail("lccdf")

    def rng(self, rng: Seed = None, size: int | Shape | None = None, **more: Plain) -> Plain:
        """Draw from the distribution.

        Parameters
        ----------
        rng : numpy.random.Generator or int, optional
            The source of random numbers, or a seed.
        size : int or tuple of int, optional
            The shape of the draws, to which the parameters broadcast.
        **more
            Arguments of the generator that the density sees in an observation: the number of rows
            ``K`` of a correlation matrix, the number of trials ``N`` of multinomial counts.

        Returns
        -------
        float, int or ndarray
        """
        shape = (size,) if isinstance(size, int) else size
        # A generator may be one that is given the calls of many draws.
        if rng is None or isinstance(rng, (int, np.integer)):
            rng = np.random.default_rng(rng)
        return self._draw(rng, shape, **more)

    def like(self, y: Plain, rng: Seed = None) -> Plain:
        """Draw observations of the shape of `y`, with as many trials as `y` has."""
        shape = np.shape(y)
        return self.rng(rng, shape[: len(shape) - self._event], **self._seen(y))

    def truncated(self, lower: Operand = None, upper: Operand = None) -> Truncated:
        """The distribution restricted to an interval, see `varmat.truncated`."""
        from varmat.distributions.composed import Truncated

        return Truncated(self, lower, upper)

    def censored(self, lower: Operand = None, upper: Operand = None) -> Censored:
        """The distribution of observations that are known only to lie outside an interval if they
        do: these are recorded as the end of it.
        """
        from varmat.distributions.composed import Censored

        return Censored(self, lower, upper)

    def standard(self) -> Standard:
        """The distribution as a location-scale family; raises if it is none."""
        raise TypeError(
            f"{type(self).__name__} has no location and scale, but must have them for "
            "centred=False: declare a standard variable, and compute the parameter from it!"
        )

    def parts(self) -> dict[str, Operand]:
        return vars(self)

    def __repr__(self) -> str:
        shown = (
            f"{name}={x!r}" if not np.ndim(x) else f"{name}=<{type(x).__name__} {np.shape(x)}>"
            for name, x in self.parts().items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def total(terms: Operand) -> Result:
    """The sum of all terms, a float if they are plain."""
    result = np.sum(terms)
    return float(result) if isinstance(result, np.generic) else result


class OfRow(Distribution):
    """A distribution of the table; its subclasses are made by `of_row`."""

    row: ClassVar[Density]
    __signature__: ClassVar[inspect.Signature]

    def __init__(self, *args: Operand, **named: Operand) -> None:
        try:
            bound = self.__signature__.bind(*args, **named)
        except TypeError as error:
            name = type(self).__name__
            raise TypeError(
                f"{name}: {error}; the signature is {name}{self.__signature__}"
            ) from None
        bound.apply_defaults()
        self.parameters = bound.arguments

    def parts(self) -> dict[str, Operand]:
        return self.parameters

    @property
    def is_discrete(self) -> bool:
        return self.row.name.endswith("_lpmf")

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return self.row(y, *self.parameters.values(), propto=propto)

    def _each(self, y: Operand) -> Result:
        if isinstance(self.row, Univariate):
            return self.row.pointwise(y, *self.parameters.values())
        if self.row.name.rpartition("_")[0].endswith("_glm"):
            return self._of_predictor()._each(y)
        return self._of_arrays(y)

    def _of_arrays(self, y: Operand) -> Result:
        """The log density of each vector, matrix or category: by its formula, if it has one."""
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
        """The log density of each vector or matrix."""
        values = [
            np.asarray(x) if isinstance(x, list) else x for x in (y, *self.parameters.values())
        ]
        outer = [np.shape(y)[: np.ndim(y) - self._event], *self._outers()]
        shape = np.broadcast_shapes(*outer)
        if not shape:
            return self._sum(y)

        def at(x: Operand, lengths: Shape, index: Shape) -> Result:
            there = index[len(index) - len(lengths) :]
            return (
                x[tuple(0 if n == 1 else i for i, n in zip(there, lengths, strict=True))]
                if lengths
                else x
            )

        each = [
            self.row(*(at(x, lengths, index) for x, lengths in zip(values, outer, strict=True)))
            for index in np.ndindex(shape)
        ]
        return np.reshape(np.stack(each), shape) if each else np.zeros(shape)

    def _of_predictor(self) -> Distribution:
        """A generalised linear model as the distribution of each observation, given its linear
        predictor.
        """
        from varmat import distributions

        names = self.row.name.rpartition("_glm_")[0].removesuffix("_id").split("_")
        made = getattr(distributions, distributions.class_name(names))
        others = dict(self.parameters)
        predictor = others.pop("X") @ others.pop("beta") + others.pop("alpha", 0.0)
        found: Distribution = made(
            *(others.get(name, predictor) for name in made.__signature__.parameters)
        )
        return found

    def _tail(self, name: str) -> DensityTerms:
        function = getattr(self.row, name, None)
        if function is None:
            raise TypeError(f"{type(self).__name__} has no {name}!")
        values = self.parameters.values()
        return DensityTerms(
            lambda y: function(y, *values), lambda y: function.pointwise(y, *values)
        )

    @property
    def _generator(self) -> RandomNumbers:
        import_module("varmat.densities.random_numbers")  # gives rows their generators
        if self.row.rng is None:
            raise TypeError(
                f"{type(self).__name__} has no random numbers, and no log density of each "
                "observation!"
            )
        generator: Any = self.row.rng
        return generator  # type: ignore[no-any-return]

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        return self._generator(**self.parameters, **more, rng=rng, size=size)

    @property
    def _event(self) -> int:
        return len(self._generator.event)

    def _outers(self) -> list[Shape]:
        """The shape of each parameter without the axes of one draw."""
        generator = self._generator
        axes = [
            len(generator._core(name, x)) if name in generator.arguments else 0
            for name, x in self.parameters.items()
        ]
        parameters = self.parameters.values()
        return [np.shape(x)[: np.ndim(x) - n] for x, n in zip(parameters, axes, strict=True)]

    def _outer(self) -> Shape:
        return np.broadcast_shapes(*self._outers())

    def extent(self) -> tuple[Shape, int]:
        if "_glm_" in self.row.name:
            return np.shape(self.parameters["X"])[:1], 0
        if not isinstance(self.row, StructuredDensity):
            return np.broadcast_shapes(*map(np.shape, self.parameters.values())), 0
        return super().extent() if self.row is not lkj_cov_lpdf else ((), 2)

    def _seen(self, y: Plain) -> dict[str, Plain]:
        arguments = self._generator.arguments
        return {name: _SEEN[name](y) for name in arguments if name not in self.parameters}

    def standard(self) -> Standard:
        row, others = self.row, dict(self.parameters)
        if row is multi_normal_cholesky_lpdf:
            return Standard(others["mu"], others["L"], True, std_normal_lpdf)
        titles = {title: name for name, (title, _) in row.arguments.items()}
        names = [titles.get(f"{each} parameter", "") for each in ("Location", "Scale")]
        if not isinstance(row, Univariate) or "" in names or not _is_location_scale(row, *names):
            return super().standard()
        location, scale = (others[name] for name in names)
        others.update(zip(names, (0.0, 1.0), strict=True))
        return Standard(location, scale, False, lambda z: row(z, *others.values()))


def _is_location_scale(row: Univariate, location: str, scale: str) -> bool:
    """Whether ``location + scale * z`` has the density of the row if z has the standard one."""
    names = list(row.arguments)[1:]

    def at(y: float, of_location: float, of_scale: float) -> float:
        given = {location: of_location, scale: of_scale}
        return float(row(y, *(given.get(name, 0.5) for name in names)))

    differences = [at(0.3 + 1.7 * z, 0.3, 1.7) - at(z, 0.0, 1.0) + np.log(1.7) for z in (-1.5, 0.7)]
    return bool(np.all(np.abs(differences) < 1e-10))


def of_row(name: str, row: Density) -> type[Distribution]:
    """The class of the distribution of a row."""
    _, *parameters = inspect.signature(row).parameters.values()
    shown = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    functions = f"`varmat.{row.name}`"
    lines = "\n".join(
        f"    {p.name} : array_like\n        {row.arguments[p.name][0]}." for p in shown
    )
    return type(name, (OfRow,), {
        "row": row,
        "__signature__": inspect.Signature(shown),
        "__module__": "varmat.distributions",
        "__doc__": f"The distribution of {functions}.\n\n    Parameters\n    ----------\n{lines}\n",
    })  # fmt: skip
