"""Distributions as objects: a row of the table of densities, with values for its parameters, and
the same in an interval.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from varmat.core.operation import is_differentiable
from varmat.densities.density import Density, StructuredDensity
from varmat.densities.lkj import lkj_cov_lpdf
from varmat.densities.multi_normal import multi_normal_cholesky_lpdf
from varmat.densities.normal import std_normal_lpdf
from varmat.densities.random_numbers.row import Source, aligned, wanted_shape
from varmat.densities.truncated import truncated
from varmat.densities.univariate import Univariate
from varmat.functions.missing import refuse_missing

if TYPE_CHECKING:
    from varmat.densities.random_numbers.row import RandomNumbers
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
    def cumulative(self, name: str) -> DensityTerms:
        """One of the cumulative functions `cdf`, `lcdf` and `lccdf`."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain: ...

    @property
    def event(self) -> int:
        """The number of axes of one draw."""
        return 0

    def outer(self) -> Shape:
        """The shape to which the parameters broadcast, without the axes of one draw."""
        return ()

    def extent(self) -> tuple[Shape, int]:
        """The shape of the observations to which the distribution broadcasts, without the axes of
        one of them, and the number of these axes.
        """
        return self.outer(), self.event

    def seen(self, y: Plain) -> dict[str, Plain]:
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
        return self.cumulative("cdf")

    @property
    def lcdf(self) -> DensityTerms:
        """The logarithm of `cdf`."""
        return self.cumulative("lcdf")

    @property
    def lccdf(self) -> DensityTerms:
        """The logarithm of the probability above an observation."""
        return self.cumulative("lccdf")

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
        return self.rng(rng, shape[: len(shape) - self.event], **self.seen(y))

    def truncated(self, lower: Operand = None, upper: Operand = None) -> Truncated:
        """The distribution restricted to an interval, see `varmat.truncated`."""
        return Truncated(self, lower, upper)

    def censored(self, lower: Operand = None, upper: Operand = None) -> Censored:
        """The distribution of observations that are known only to lie outside an interval if they
        do: these are recorded as the end of it.
        """
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
            return self._of_predictor().lpdf.pointwise(y)
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
        outer = [np.shape(y)[: np.ndim(y) - self.event], *self._outers()]
        shape = np.broadcast_shapes(*outer)
        if not shape:
            return self._sum(y)

        def at(x: Operand, lengths: Shape, index: Shape) -> Result:
            there = zip(index[len(index) - len(lengths) :], lengths, strict=True)
            return x[tuple(0 if n == 1 else i for i, n in there)] if lengths else x

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

    def cumulative(self, name: str) -> DensityTerms:
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
    def event(self) -> int:
        return len(self._generator.event)

    def _outers(self) -> list[Shape]:
        """The shape of each parameter without the axes of one draw."""
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
        if "_glm_" in self.row.name:
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
        names = [titles.get(f"{each} parameter", "") for each in ("Location", "Scale")]
        if not isinstance(row, Univariate) or "" in names or not is_location_scale(row, *names):
            return super().standard()
        location, scale = (others[name] for name in names)
        others.update(zip(names, (0.0, 1.0), strict=True))
        return Standard(location, scale, False, lambda z: row(z, *others.values()))


# How often what lies outside an interval is drawn again.
_TRIES = 20


def of_log(name: str, each: Function) -> DensityTerms:
    """The terms of a cumulative function, from the logarithm of each."""
    if name == "cdf":
        return DensityTerms(lambda y: np.exp(total(each(y))), lambda y: np.exp(each(y)))
    return DensityTerms(lambda y: total(each(y)), each)


class _Bounded(Distribution):
    """A distribution and an interval."""

    def __init__(self, base: Distribution, lower: Operand, upper: Operand) -> None:
        if (row := getattr(base, "row", None)) is None:
            raise TypeError(
                f"{type(self).__name__}: base is a {type(base).__name__}, but must be a "
                "distribution with a density of its own!"
            )
        for title, x in {"lower": lower, "upper": upper, **base.parts()}.items():
            refuse_missing(x, f"{type(self).__name__}: {title}")
        # It refuses what has no cumulative functions, and intervals that are empty.
        self._function = truncated(row, lower=lower, upper=upper)
        self.base, self.lower, self.upper = base, lower, upper
        self._values = tuple(base.parts().values())

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    def parts(self) -> dict[str, Operand]:
        return {"base": self.base, "lower": self.lower, "upper": self.upper}

    @property
    def _ends(self) -> list[Operand]:
        return [x for x in (self.lower, self.upper) if x is not None]

    def outer(self) -> Shape:
        return np.broadcast_shapes(*map(np.shape, (*self._ends, *self._values)))

    @abstractmethod
    def _log_tail(self, name: str, y: Operand) -> Result:
        """The logarithm of the probability up to a point of the interval, or above it."""

    def cumulative(self, name: str) -> DensityTerms:
        # Nothing is below the lower end, and everything is at the upper end or below it.
        none, all_of_it = (0.0, -np.inf) if name == "lccdf" else (-np.inf, 0.0)

        def each(y: Operand) -> Result:
            y = np.asarray(y) if isinstance(y, list) else y
            lower, upper = self.lower, self.upper
            below = False if lower is None else np.less(y, lower)
            above = False if upper is None else np.greater_equal(y, upper)
            log = self._log_tail("lccdf" if name == "lccdf" else "lcdf", np.clip(y, lower, upper))
            return np.where(below, none, np.where(above, all_of_it, log))

        return of_log(name, each)


class Truncated(_Bounded):
    """A distribution restricted to an interval; made by `Distribution.truncated`.

    Parameters
    ----------
    base : Distribution
        Of one variable, with cumulative functions.
    lower, upper : array_like, optional
        The ends, which belong to the interval.

    Examples
    --------
    >>> import varmat.distributions as dist
    >>> half = dist.Normal(0.0, 1.0).truncated(lower=0.0)
    >>> round(half.lpdf(0.5), 12)
    -0.350791352645
    >>> bool((half.rng(1, size=100) >= 0.0).all())
    True
    """

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return self._function(y, *self._values)

    def _each(self, y: Operand) -> Result:
        outside = np.where(self._function.outside(y), -np.inf, 0.0)
        return self.base.lpdf.pointwise(y) - self._function.log_probability(*self._values) + outside

    def _log_tail(self, name: str, y: Operand) -> Result:
        """The log probability of a part of the interval, given all of it."""
        above = 1 if self.is_discrete else 0  # the lower end belongs to the interval
        start, end = (y + above, self.upper) if name == "lccdf" else (self.lower, y)
        part = type(self._function)(self._function.density, start, end)
        return part.log_probability(*self._values) - self._function.log_probability(*self._values)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        """Draw until all are inside; after some tries, invert the distribution function."""
        shape = wanted_shape("Truncated", size, self.outer())
        # One call, because the tries depend on the draws.
        if isinstance(rng, Source) and isinstance(self.base, OfRow):
            has = [x is not None for x in (self.lower, self.upper)]
            made = _TruncatedNumbers(type(self.base), has)
            return rng.draw(made, (*self._ends, *self._values), size=shape)
        draws = np.asarray(self.base.rng(rng, shape))
        for _ in range(_TRIES):
            outside = self._function.outside(draws)
            if not np.any(outside):
                return draws if draws.ndim else draws.item()
            draws = np.where(outside, self.base.rng(rng, shape), draws)
        draws = np.where(self._function.outside(draws), self._inverted(rng, shape), draws)
        return draws if draws.ndim else draws.item()

    def _inverted(self, rng: np.random.Generator, shape: Shape) -> Plain:
        """Draws by bisection, also far out in a tail."""
        wanted = np.log1p(-rng.random(shape))
        each = self.cumulative("lcdf").pointwise

        def reaches(x: Plain) -> Plain:
            return each(x) >= wanted

        lower = -np.inf if self.lower is None else self.lower
        upper = np.inf if self.upper is None else self.upper
        low, high = (np.broadcast_to(x, wanted.shape) for x in (lower, upper))
        # Elements without an end get one that is far enough away.
        no_low, no_high, step = np.isinf(low), np.isinf(high), 1.0
        low = np.where(no_low, np.where(no_high, 0.0, high), low)
        high = np.where(no_high, low, high)
        with np.errstate(all="ignore"):
            while np.any(no_high & ~reaches(high)):
                high, step = np.where(no_high, low + step, high), 2.0 * step
            while np.any(no_low & reaches(low)):
                low, step = np.where(no_low, high - step, low), 2.0 * step
            low = np.where(no_low, low, low - 1.0) if self.is_discrete else low
            while True:
                middle = np.floor(0.5 * (low + high)) if self.is_discrete else 0.5 * (low + high)
                if np.all((middle <= low) | (middle >= high)):
                    break
                right = reaches(middle)
                low, high = np.where(right, low, middle), np.where(right, middle, high)
        return high.astype(np.int64) if self.is_discrete else high


class _TruncatedNumbers:
    """Draws from a truncated distribution, as a function of its ends and parameters.

    Parameters
    ----------
    base : type
    has : sequence of bool
        Whether there is a lower end, and an upper end.
    """

    def __init__(self, base: type[Distribution], has: Sequence[bool]) -> None:
        self._base, self._has = base, has

    def __call__(self, *args: Operand, rng: Operand, size: Operand) -> Result:
        rest = [*args]
        lower, upper = (rest.pop(0) if each else None for each in self._has)
        return Truncated(self._base(*rest), lower, upper).rng(rng, size)

    def stacks(self, varying: Sequence[int]) -> bool:
        return True

    def rows(
        self, count: int, args: Sequence[Operand], varying: Sequence[int],
        rng: np.random.Generator, size: int | Shape | None = None,
    ) -> np.ndarray:  # fmt: skip
        shape = (size,) if isinstance(size, int) else size or ()
        stacked = aligned(args, varying, [1 + len(shape) - np.ndim(x) for x in args])
        return np.asarray(self(*stacked, rng=rng, size=(count, *shape)))


class Censored(_Bounded):
    """A distribution whose values outside an interval are recorded as the end that they exceed;
    made by `Distribution.censored`.

    Parameters
    ----------
    base : Distribution
        Of one variable, with cumulative functions.
    lower, upper : array_like, optional
        The ends. An observation at `lower`, or below it, has the probability of all values up to
        there; one at `upper`, or above it, that of all values from there on.

    Examples
    --------
    Of three lifetimes one had not ended after 10 years:

    >>> import varmat as vm, varmat.distributions as dist
    >>> round(dist.Exponential(0.2).censored(upper=10.0).lpdf([3.0, 6.0, 10.0]), 12)
    -7.018875824868
    >>> round(vm.exponential_lpdf([3.0, 6.0], 0.2) + vm.exponential_lccdf(10.0, 0.2), 12)
    -7.018875824868
    """

    def _masks(self, y: Operand) -> list[tuple[Plain, str, Operand]]:
        """Which observations are seen, and which are at each end: with the name of their function,
        and its first argument.
        """
        # One observation may have several ends.
        shape = np.broadcast_shapes(np.shape(y), *map(np.shape, self._ends))
        found, seen = [], np.full(shape, True)
        ends = ((self.lower, np.less_equal, "lcdf"), (self.upper, np.greater_equal, "lccdf"))
        for end, reaches, name in ends:
            if end is None:
                continue
            there = np.broadcast_to(reaches(y, end), shape)
            bound = np.broadcast_to(end, shape)
            # A count at the upper end may be that number itself.
            found.append(
                (there, name, bound - 1 if self.is_discrete and name == "lccdf" else bound)
            )
            seen = seen & ~there
        return [(seen, "pointwise", y), *found]

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        shape = np.shape(y)
        same = shape and np.broadcast_shapes(shape, self.outer()) == shape
        if not same or not isinstance(self.base, OfRow):
            return total(self._each(y))
        result: Result = 0.0
        for where, name, x in self._masks(y):
            if np.any(where):
                values = (
                    np.broadcast_to(v, shape)[where] if np.ndim(v) else v for v in self._values
                )
                part = type(self.base)(*values)
                result = result + (part.lpdf if name == "pointwise" else part.cumulative(name))(
                    x[where]
                )
        return result

    def _each(self, y: Operand) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        (_, _, _), *ends = self._masks(y)
        result = self.base.lpdf.pointwise(y)
        for where, name, x in ends:
            result = np.where(
                where, self.base.cumulative(name).pointwise(np.where(where, x, y)), result
            )
        return result

    def _log_tail(self, name: str, y: Operand) -> Result:
        return self.base.cumulative(name).pointwise(y)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        shape = wanted_shape("Censored", size, self.outer())
        return np.clip(self.base.rng(rng, shape, **more), self.lower, self.upper)
