"""Distributions as objects: what all have, and those in an interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.random_numbers.row import Source, wanted_shape
from varmat.densities.truncated import TruncatedDensity, truncated
from varmat.distributions.hints import WithHints
from varmat.distributions.terms import (
    DensityTerms,
    ElementDensity,
    Standard,
    TruncatedNumbers,
    of_log,
    total,
)
from varmat.functions.missing import refuse_missing

if TYPE_CHECKING:
    from varmat.typing import Operand, Plain, Result, Shape

    Seed = np.random.Generator | int | None


class Distribution(WithHints, ABC):
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
        """Return the log density of each observation."""

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return total(self._each(y))

    @abstractmethod
    def cumulative(self, name: str) -> DensityTerms:
        """Return one of the cumulative functions `cdf`, `lcdf` and `lccdf`."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain: ...

    @property
    def event(self) -> int:
        """The number of axes of one draw."""
        return 0

    def outer(self) -> Shape:
        """Return the shape to which the parameters broadcast, without the axes of one draw."""
        return ()

    def extent(self) -> tuple[Shape, int]:
        """Return the shape of the observations to which the distribution broadcasts, without the
        axes of a single observation, and the number of these axes.
        """
        return self.outer(), self.event

    def seen(self, y: Plain) -> dict[str, Plain]:
        """Return arguments of the generator that can be read off observations."""
        return {}

    @property
    @abstractmethod
    def is_discrete(self) -> bool:
        """Whether the observations are integers."""

    @property
    def has_atoms(self) -> bool:
        """Whether single values have probabilities."""
        return self.is_discrete

    def is_atom(self, y: Operand) -> Operand:
        """Return where the density of an observation is a probability."""
        return self.is_discrete

    def predecessor(self, x: Operand) -> Operand:
        """Return the largest value below `x`; `x` itself if single values have no probabilities."""
        if self.is_discrete:
            return np.ceil(x) - 1.0
        return np.nextafter(x, -np.inf) if self.has_atoms and not is_differentiable(x) else x

    def as_density(self) -> tuple[Any, tuple[Operand, ...]]:
        """Return a density with the cumulative functions, as `varmat.truncated` takes it, and its
        parameters.
        """
        return ElementDensity(self), tuple(self.elements() or ())

    def of_each(self) -> Distribution:
        """Return the distribution of each observation."""
        return self

    def of_draws(self, y: Operand) -> Result:
        """Return the log density of each observation, also if `lpdf` takes it for another one."""
        return self._each(y)

    def elements(self) -> list[Operand] | None:
        """Return the parameters, if all broadcast with observations; otherwise None."""
        return None

    def with_elements(self, elements: Sequence[Operand]) -> Distribution:
        """Return the distribution with other `elements`; itself if it has none."""
        return self

    def selected(self, where: Plain) -> Distribution:
        """Return the distribution of the observations that a mask selects."""
        return self.with_elements(
            [
                np.broadcast_to(x, where.shape)[where] if np.ndim(x) else x
                for x in self.elements() or ()
            ]
        )

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

    def mean(self) -> Result:
        """Return the mean, infinite or nan as in SciPy; a closed form may be a variable."""
        raise TypeError(f"{type(self).__name__} has no mean!")

    def variance(self) -> Result:
        """Return the variance, as `mean` does the mean."""
        raise TypeError(f"{type(self).__name__} has no variance!")

    def ppf(self, p: Operand) -> Plain:
        """Compute the quantile function: the smallest value up to which the probability is at least
        `p`.

        It is the inverse of `cdf`, to the last digits of that; nan if `p` is not a probability.
        Parameters must not be variables.
        """
        from varmat.distributions.integrals import quantiles

        return quantiles(self, p)

    def support(self) -> tuple[Operand, Operand]:
        """Return the least and the largest possible observation."""
        return -np.inf, np.inf

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
        """Restrict the distribution to an interval, see `varmat.truncated`."""
        return Truncated(self, lower, upper)

    def censored(self, lower: Operand = None, upper: Operand = None) -> Censored:
        """Return the distribution of observations that are recorded as an end of an interval if
        they lie outside it.
        """
        return Censored(self, lower, upper)

    def interval_censored(self) -> IntervalCensored:
        """Return the distribution of observations that are pairs ``(left, right)``: the value is
        known only to lie between these.
        """
        return IntervalCensored(self)

    def standard(self) -> Standard:
        """Return the distribution as a location-scale family; raise an error if it does not belong
        to one.
        """
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


# How often what lies outside an interval is drawn again.
_TRIES = 20


def _interval(
    base: Distribution, lower: Operand, upper: Operand
) -> tuple[TruncatedDensity, tuple[Operand, ...]]:
    """Restrict a distribution to an interval that contains its ends. Return a density and its
    parameters.
    """
    density, values = base.as_density()
    if lower is not None and base.has_atoms and not base.is_discrete:
        lower = base.predecessor(lower)
    return truncated(density, lower=lower, upper=upper), values


class _Bounded(Distribution):
    """A distribution and an interval."""

    def __init__(self, base: Distribution, lower: Operand, upper: Operand) -> None:
        if not isinstance(base, Distribution):
            raise TypeError(
                f"{type(self).__name__}: base is a {type(base).__name__}, but must be a "
                "distribution!"
            )
        for title, x in {"lower": lower, "upper": upper, **base.parts()}.items():
            refuse_missing(x, f"{type(self).__name__}: {title}")
        base = base.of_each()
        # It refuses what has no cumulative functions, and intervals that are empty.
        self._function, self._values = _interval(base, lower, upper)
        self.base, self.lower, self.upper = base, lower, upper

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    def parts(self) -> dict[str, Operand]:
        return {"base": self.base, "lower": self.lower, "upper": self.upper}

    @property
    def _ends(self) -> list[Operand]:
        return [x for x in (self.lower, self.upper) if x is not None]

    @property
    def has_atoms(self) -> bool:
        return self.base.has_atoms

    def support(self) -> tuple[Operand, Operand]:
        lower, upper = self.base.support()
        if self.lower is not None:
            lower = np.maximum(lower, self.lower)
        return lower, upper if self.upper is None else np.minimum(upper, self.upper)

    def mean(self) -> Result:
        return self._moment("mean", 0)

    def variance(self) -> Result:
        return self._moment("variance", 1)

    def _moment(self, name: str, k: int) -> Result:
        """Compute a moment from probabilities, if it is finite."""
        from varmat.distributions.integrals import moments

        if not np.all(np.isfinite(self.support())) and not np.all(
            np.isfinite(getattr(self.base, name)())
        ):
            raise TypeError(
                f"{type(self).__name__} has no {name}, because an end is infinite, and the {name} "
                "of its base is not finite!"
            )
        return moments(self, name)[k]

    def outer(self) -> Shape:
        # The parameters of a distribution of one variable are found faster than its extent.
        own = () if self._values else self.base.extent()[0]
        return np.broadcast_shapes(own, *map(np.shape, (*self._ends, *self._values)))

    def elements(self) -> list[Operand] | None:
        base = self.base.elements()
        return None if base is None else [*self._ends, *base]

    def with_elements(self, elements: Sequence[Operand]) -> Distribution:
        others = iter(elements)
        ends = [None if x is None else next(others) for x in (self.lower, self.upper)]
        return type(self)(self.base.with_elements([*others]), *ends)

    @abstractmethod
    def _log_tail(self, name: str, y: Operand) -> Result:
        """Return the log probability up to a point of the interval, or above it."""

    def cumulative(self, name: str) -> DensityTerms:
        # Nothing is below the lower end, and everything is at the upper end or below it.
        none, all_of_it = (0.0, -np.inf) if name == "lccdf" else (-np.inf, 0.0)

        def pointwise(y: Operand) -> Result:
            y = np.asarray(y) if isinstance(y, list) else y
            lower, upper = self.lower, self.upper
            reaches: np.ufunc = np.less if self.has_atoms else np.less_equal
            below = False if lower is None else reaches(y, lower)
            above = False if upper is None else np.greater_equal(y, upper)
            # A point whose tail is not empty, so that it has derivatives.
            if name == "lccdf":
                inside = upper - 1.0 if lower is None else self.base.predecessor(lower)
            else:
                inside = lower + 1.0 if upper is None else upper
            y = np.where(np.logical_or(below, above), inside, y)
            log = self._log_tail("lccdf" if name == "lccdf" else "lcdf", y)
            return np.where(below, none, np.where(above, all_of_it, log))

        return of_log(name, pointwise)


class Truncated(_Bounded):
    """A distribution restricted to an interval; made by `Distribution.truncated`.

    Parameters
    ----------
    base : Distribution
        A distribution of one variable, with cumulative functions.
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

    def is_atom(self, y: Operand) -> Operand:
        return self.base.is_atom(y)

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        return self._function(y, *self._values) if self._values else total(self._each(y))

    def _each(self, y: Operand) -> Result:
        outside = np.where(self._function.outside(y), -np.inf, 0.0)
        return self.base.of_draws(y) - self._function.log_probability(*self._values) + outside

    def _log_tail(self, name: str, y: Operand) -> Result:
        """Return the log probability of a part of the interval, given all of it."""
        start, end = self._function.lower, y
        if name == "lccdf":  # the lower end of counts belongs to the interval
            start, end = (y + 1 if self.is_discrete else y), self.upper
        part = type(self._function)(self._function.density, start, end)
        return part.log_probability(*self._values) - self._function.log_probability(*self._values)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        """Draw until all are inside; after some tries, invert the distribution function."""
        shape = wanted_shape("Truncated", size, self.outer())
        # One call, because the tries depend on the draws.
        if isinstance(rng, Source) and (elements := self.elements()) is not None:
            return rng.draw(TruncatedNumbers(self), (*elements,), size=shape)
        draws = np.asarray(self.base.rng(rng, shape))
        for _ in range(_TRIES):
            outside = self._function.outside(draws)
            if not np.any(outside):
                return draws if draws.ndim else draws.item()
            draws = np.where(outside, self.base.rng(rng, shape), draws)
        inverted = self.ppf(1.0 - rng.random(shape))
        inverted = np.asarray(inverted, draws.dtype)
        draws = np.where(self._function.outside(draws), inverted, draws)
        return draws if draws.ndim else draws.item()


class Censored(_Bounded):
    """A distribution whose values outside an interval are recorded as the end that they exceed;
    made by `Distribution.censored`.

    Parameters
    ----------
    base : Distribution
        A distribution of one variable, with cumulative functions.
    lower, upper : array_like, optional
        The ends. An observation at `lower`, or below it, has the probability of all values up to
        there; one at `upper`, or above it, the probability of all values from there on.

    Examples
    --------
    One of three lifetimes had not ended after 10 years:

    >>> import varmat as vm, varmat.distributions as dist
    >>> round(dist.Exponential(0.2).censored(upper=10.0).lpdf([3.0, 6.0, 10.0]), 12)
    -7.018875824868
    >>> round(vm.exponential_lpdf([3.0, 6.0], 0.2) + vm.exponential_lccdf(10.0, 0.2), 12)
    -7.018875824868
    """

    @property
    def has_atoms(self) -> bool:
        return True

    def is_atom(self, y: Operand) -> Operand:
        return reduce(np.logical_or, [y == end for end in self._ends], self.base.is_atom(y))

    def of_draws(self, y: Operand) -> Result:
        # Beyond the ends are observations, but no draws.
        return np.where(np.equal(y, np.clip(y, self.lower, self.upper)), self._each(y), -np.inf)

    def _masks(self, y: Operand) -> list[tuple[Plain, str, Operand]]:
        """Find which observations are seen, and which are at each end: the masks, each with the
        name of a function and its first argument.
        """
        # One observation may have several ends.
        shape = np.broadcast_shapes(np.shape(y), *map(np.shape, self._ends))
        masks, seen = [], np.full(shape, True)
        ends = ((self.lower, np.less_equal, "lcdf"), (self.upper, np.greater_equal, "lccdf"))
        for end, reaches, name in ends:
            if end is None:
                continue
            there = np.broadcast_to(reaches(y, end), shape)
            bound = np.broadcast_to(end, shape)
            # The value at the upper end may be that number itself.
            masks.append((there, name, self.base.predecessor(bound) if name == "lccdf" else bound))
            seen = seen & ~there
        return [(seen, "pointwise", y), *masks]

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        shape = np.shape(y)
        same = shape and np.broadcast_shapes(shape, self.outer()) == shape
        if not same or self.base.elements() is None:
            return total(self._each(y))
        result: Result = 0.0
        for where, name, x in self._masks(y):
            if np.any(where):
                part = self.base.selected(where)
                result = result + (part.lpdf if name == "pointwise" else part.cumulative(name))(
                    x[where]
                )
        return result

    def _each(self, y: Operand) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        (_, _, _), *ends = self._masks(y)
        result = self.base.of_draws(y)
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


class IntervalCensored(Distribution):
    """A distribution whose values are known only to lie between two numbers; made by
    `Distribution.interval_censored`.

    An observation is a pair ``(left, right)`` along the last axis. It is the value itself if both
    are equal. If `right` is infinite, the value is above `left`; if `left` is 0 or -inf, the value
    of a positive distribution is up to `right`. Other pairs have the probability of the values from
    `left` to `right`. Draws are values that are seen: both numbers are equal.

    Parameters
    ----------
    base : Distribution
        A distribution of one variable, with cumulative functions.

    Raises
    ------
    DomainError
        If `left` is above `right`, or one of them is nan.

    Examples
    --------
    One event came between the visits in years 2 and 5, one was seen in year 3, one had not come in
    year 10:

    >>> import numpy as np, varmat as vm, varmat.distributions as dist
    >>> times = dist.Exponential(0.2).interval_censored()
    >>> round(times.lpdf([[2.0, 5.0], [3.0, 3.0], [10.0, np.inf]]), 12)
    -5.40530828078
    >>> between = np.log(vm.exponential_cdf(5.0, 0.2) - vm.exponential_cdf(2.0, 0.2))
    >>> seen = vm.exponential_lpdf(3.0, 0.2) + vm.exponential_lccdf(10.0, 0.2)
    >>> round(float(between + seen), 12)
    -5.40530828078
    """

    def __init__(self, base: Distribution) -> None:
        self.base = Censored(base, None, np.inf).base  # refuses what has no cumulative functions

    @property
    def is_discrete(self) -> bool:
        return False  # an end may be infinite

    @property
    def event(self) -> int:
        return 1

    def outer(self) -> Shape:
        return self.base.extent()[0]

    def _groups(self, y: Operand) -> list[tuple[Plain, str, list[Plain]]]:
        """Group observations by kind: their mask, the name of their function, and its ends."""
        y = np.asarray(y, float)
        if y.shape[-1:] != (2,):
            raise ShapeError(
                f"IntervalCensored: y has shape {y.shape}, but must have pairs (left, right) along "
                "its last axis!"
            )
        left, right = y[..., 0], y[..., 1]
        if not np.all(left <= right):
            index = tuple(np.argwhere(~(left <= right))[0].tolist())
            raise DomainError(
                f"IntervalCensored: y{[*index] if index else ''} is {y[index].tolist()}, but left "
                "must not be above right!"
            )
        exact = left == right
        below = ~exact & (left == -np.inf)
        above = ~exact & ~below & (right == np.inf)
        return [
            (exact, "lpdf", [left]),
            (below, "lcdf", [right]),
            (above, "lccdf", [self.base.predecessor(left)]),
            (~(exact | below | above), "", [left, right]),
        ]

    @staticmethod
    def _terms(base: Distribution, name: str, ends: Sequence[Plain]) -> Result:
        """Return the log probabilities of observations of one kind."""
        if name:
            return getattr(base, name).pointwise(*ends)
        function, values = _interval(base, *ends)
        return function.log_probability(*values)

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        shape, base, result = np.shape(y)[:-1], self.base, 0.0
        same = shape and np.broadcast_shapes(shape, self.outer()) == shape
        if not same or base.elements() is None:
            return total(self._each(y))
        for where, name, ends in self._groups(y):
            if np.any(where):
                part = base.selected(where)
                result = result + total(self._terms(part, name, [x[where] for x in ends]))
        return result

    def _each(self, y: Operand) -> Result:
        result: Result = 0.0
        for where, name, ends in self._groups(y):
            if np.any(where):
                # The others are selected away; they get ends that are possible here.
                safe = [np.where(where, x, x[where][0]) for x in ends]
                result = np.where(where, self._terms(self.base, name, safe), result)
        return result

    def cumulative(self, name: str) -> DensityTerms:
        raise TypeError(f"IntervalCensored has no {name}!")

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        shape = wanted_shape("IntervalCensored", size, self.outer())
        x = self.base.rng(rng, shape, **more)
        return np.stack([x, x], axis=-1)
