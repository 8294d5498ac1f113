"""Distributions made of others: truncated, censored, mixtures, hidden Markov models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import probability
from varmat.densities.domains import simplex
from varmat.densities.hmm import hmm_marginal
from varmat.densities.mixture import log_mix, log_mix_of_many
from varmat.densities.random_numbers.row import Source, aligned, wanted_shape
from varmat.densities.truncated import truncated
from varmat.distributions.distribution import DensityTerms, Distribution, OfRow, total
from varmat.functions.missing import refuse_missing
from varmat.typing import Function, Operand, Plain, Result, Shape

__all__ = ["Censored", "HiddenMarkov", "Mixture", "Truncated"]


# How often what lies outside an interval is drawn again.
_TRIES = 20


def _of_log(name: str, each: Function) -> DensityTerms:
    """The terms of a cumulative function, from the logarithm of each."""
    if name == "cdf":
        return DensityTerms(lambda y: np.exp(total(each(y))), lambda y: np.exp(each(y)))
    return DensityTerms(lambda y: total(each(y)), each)


class _Bounded(Distribution):
    """A distribution and an interval."""

    def __init__(self, base: Distribution, lower: Operand, upper: Operand) -> None:
        if not isinstance(base, OfRow):
            raise TypeError(
                f"{type(self).__name__}: base is a {type(base).__name__}, but must be a "
                "distribution with a density of its own!"
            )
        for title, x in {"lower": lower, "upper": upper, **base.parameters}.items():
            refuse_missing(x, f"{type(self).__name__}: {title}")
        # It refuses what has no cumulative functions, and intervals that are empty.
        self._function = truncated(base.row, lower=lower, upper=upper)
        self.base, self.lower, self.upper = base, lower, upper
        self._values = tuple(base.parameters.values())

    @property
    def is_discrete(self) -> bool:
        return self.base.is_discrete

    def parts(self) -> dict[str, Operand]:
        return {"base": self.base, "lower": self.lower, "upper": self.upper}

    @property
    def _ends(self) -> list[Operand]:
        return [x for x in (self.lower, self.upper) if x is not None]

    def _outer(self) -> Shape:
        return np.broadcast_shapes(*map(np.shape, (*self._ends, *self._values)))

    @abstractmethod
    def _log_tail(self, name: str, y: Operand) -> Result:
        """The logarithm of the probability up to a point of the interval, or above it."""

    def _tail(self, name: str) -> DensityTerms:
        # Nothing is below the lower end, and everything is at the upper end or below it.
        none, all_of_it = (0.0, -np.inf) if name == "lccdf" else (-np.inf, 0.0)

        def each(y: Operand) -> Result:
            y = np.asarray(y) if isinstance(y, list) else y
            lower, upper = self.lower, self.upper
            below = False if lower is None else np.less(y, lower)
            above = False if upper is None else np.greater_equal(y, upper)
            log = self._log_tail("lccdf" if name == "lccdf" else "lcdf", np.clip(y, lower, upper))
            return np.where(below, none, np.where(above, all_of_it, log))

        return _of_log(name, each)


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
        outside = np.where(self._function._outside(y), -np.inf, 0.0)
        return self.base._each(y) - self._function.log_probability(*self._values) + outside

    def _log_tail(self, name: str, y: Operand) -> Result:
        """The log probability of a part of the interval, given all of it."""
        above = 1 if self.is_discrete else 0  # the lower end belongs to the interval
        start, end = (y + above, self.upper) if name == "lccdf" else (self.lower, y)
        row: Any = self.base.row
        part = type(self._function)(row, start, end)
        return part.log_probability(*self._values) - self._function.log_probability(*self._values)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        """Draw until all are inside; after some tries, invert the distribution function."""
        shape = wanted_shape("Truncated", size, self._outer())
        if isinstance(rng, Source):  # one call, because the tries depend on the draws
            made = _TruncatedNumbers(
                type(self.base), [x is not None for x in (self.lower, self.upper)]
            )
            return rng.draw(made, (*self._ends, *self._values), size=shape)
        draws = np.asarray(self.base._draw(rng, shape))
        for _ in range(_TRIES):
            outside = self._function._outside(draws)
            if not np.any(outside):
                return draws if draws.ndim else draws.item()
            draws = np.where(outside, self.base._draw(rng, shape), draws)
        draws = np.where(self._function._outside(draws), self._inverted(rng, shape), draws)
        return draws if draws.ndim else draws.item()

    def _inverted(self, rng: np.random.Generator, shape: Shape) -> Plain:
        """Draws by bisection, also far out in a tail."""
        wanted = np.log1p(-rng.random(shape))
        each = self._tail("lcdf").pointwise

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
        return Truncated(self._base(*rest), lower, upper)._draw(rng, size)

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

    def _function_of(self, name: str) -> DensityTerms:
        return self.base.lpdf if name == "pointwise" else self.base._tail(name)

    def _sum(self, y: Operand, propto: bool = False) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        shape = np.shape(y)
        if not shape or np.broadcast_shapes(shape, self._outer()) != shape:
            return super()._sum(y)
        result: Result = 0.0
        for where, name, x in self._masks(y):
            if np.any(where):
                values = (
                    np.broadcast_to(v, shape)[where] if np.ndim(v) else v for v in self._values
                )
                part = type(self.base)(*values)
                result = result + (part.lpdf if name == "pointwise" else part._tail(name))(x[where])
        return result

    def _each(self, y: Operand) -> Result:
        y = y if is_differentiable(y) else np.asarray(y)
        (_, _, _), *ends = self._masks(y)
        result = self.base._each(y)
        for where, name, x in ends:
            result = np.where(where, self.base._tail(name).pointwise(np.where(where, x, y)), result)
        return result

    def _log_tail(self, name: str, y: Operand) -> Result:
        return self.base._tail(name).pointwise(y)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        shape = wanted_shape("Censored", size, self._outer())
        return np.clip(self.base._draw(rng, shape, **more), self.lower, self.upper)


class Mixture(Distribution):
    """A mixture of distributions.

    Parameters
    ----------
    weights : array_like
        The probabilities of the components along the last axis, or, of two components, that of the
        first, as a number. Their sum is checked only if they are not variables.
    components : sequence of Distribution
        Of single variables, or of vectors.

    Examples
    --------
    >>> import varmat.distributions as dist
    >>> counts = dist.Mixture(0.25, [dist.DiscreteRange(0, 0), dist.Poisson(2.0)])
    >>> round(counts.lpmf([0, 3]), 12)
    -3.045541407207
    """

    def __init__(self, weights: Operand, components: Sequence[Distribution]) -> None:
        refuse_missing(weights, "Mixture: weights")
        self.components = tuple(components)
        self.weights = np.asarray(weights) if isinstance(weights, (list, tuple)) else weights
        count = len(self.components)
        if not all(isinstance(each, Distribution) for each in self.components) or count < 2:
            raise TypeError("Mixture: components must be two or more distributions!")
        if np.shape(self.weights)[-1:] != ((count,) if np.ndim(self.weights) or count > 2 else ()):
            raise TypeError(
                f"Mixture: weights has shape {np.shape(self.weights)}, but must have one for each "
                f"of {count} components!"
            )
        if not is_differentiable(self.weights):
            domain = simplex if np.ndim(self.weights) else probability
            domain.check("Mixture", "weights", self.weights)

    @property
    def is_discrete(self) -> bool:
        return all(each.is_discrete for each in self.components)

    def _mixed(self, logs: Sequence[Operand]) -> Result:
        """The logarithm of the weighted sum of exponentials."""
        if not np.ndim(self.weights):
            return log_mix(self.weights, *logs)
        weights, count = self.weights, len(logs)
        shape = np.broadcast_shapes(np.shape(weights)[:-1], *map(np.shape, logs))
        columns = [x if np.shape(x) == shape else np.broadcast_to(x, shape) for x in logs]
        if np.ndim(weights) > 1:
            weights = np.reshape(np.broadcast_to(weights, (*shape, count)), (-1, count))
        # Its derivatives hold where a weight is zero, and so its logarithm infinite.
        rows = np.reshape(np.stack(columns, axis=-1), (-1, count))
        return np.reshape(log_mix_of_many(weights, rows), shape)

    def _each(self, y: Operand) -> Result:
        return self._mixed([each._each(y) for each in self.components])

    def _tail(self, name: str) -> DensityTerms:
        tails = [each._tail("lcdf" if name == "cdf" else name) for each in self.components]
        return _of_log(name, lambda y: self._mixed([tail.pointwise(y) for tail in tails]))

    @property
    def _event(self) -> int:
        return self.components[0]._event

    def extent(self) -> tuple[Shape, int]:
        shapes = (each.extent()[0] for each in self.components)
        outer = np.broadcast_shapes(np.shape(self.weights)[:-1], *shapes)
        return outer, self.components[0].extent()[1]

    def _outer(self) -> Shape:
        shapes = (each._outer() for each in self.components)
        return np.broadcast_shapes(np.shape(self.weights)[:-1], *shapes)

    def _seen(self, y: Plain) -> dict[str, Plain]:
        return self.components[0]._seen(y)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        outer = wanted_shape("Mixture", size, self._outer())
        result, *others = (each._draw(rng, outer, **more) for each in self.components[::-1])
        weights = self.weights
        ends = np.cumsum(weights, axis=-1) if np.ndim(weights) else np.reshape(weights, (1,))
        ones = (1,) * self._event  # each vector has one component
        u = np.reshape(rng.random((*outer, 1)), (*outer, *ones))
        for k, each in enumerate(others):
            end = ends[..., len(others) - 1 - k]
            end = np.reshape(end, np.shape(end) + ones)
            result = np.where(u < end, each, result)
        return result if np.ndim(result) else result[()]


class HiddenMarkov(Distribution):
    """Observations at successive times, each given a hidden state; the states are a Markov chain.

    Parameters
    ----------
    initial : array_like, shape (states,)
        The probabilities of the first state.
    transition : array_like, shape (states, states)
        Those of the next state, a row for each state.
    emission : Distribution
        Of one observation, with parameters for each state along their last axis.

    Examples
    --------
    >>> import numpy as np, varmat.distributions as dist
    >>> chain = dist.HiddenMarkov(
    ...     [0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], dist.Normal(np.array([0.0, 5.0]), 1.0)
    ... )
    >>> round(chain.lpdf([0.1, -0.3, 4.6]), 12)
    -5.987657896799
    >>> chain.rng(1, size=3).shape
    (3,)
    """

    def __init__(self, initial: Operand, transition: Operand, emission: Distribution) -> None:
        if not isinstance(emission, Distribution):
            raise TypeError(
                f"HiddenMarkov: emission is a {type(emission).__name__}, but must be a "
                "distribution!"
            )
        refuse_missing(initial, "HiddenMarkov: initial")
        refuse_missing(transition, "HiddenMarkov: transition")
        self.initial, self.transition, self.emission = initial, transition, emission

    @property
    def is_discrete(self) -> bool:
        return self.emission.is_discrete

    def extent(self) -> tuple[Shape, int]:
        return self.emission.extent()[0][:-1], 0  # the last axis is that of the states

    def log_omegas(self, y: Operand) -> Result:
        """The log density of each observation, a column, in each state, a row."""
        if np.ndim(y) != 1:
            raise ShapeError(
                f"HiddenMarkov: y has shape {np.shape(y)}, but must have one number for each time!"
            )
        return self.emission._each(np.reshape(y, (-1, 1))).T

    def _each(self, y: Operand) -> Result:
        return hmm_marginal(self.log_omegas(y), self.transition, self.initial)

    def latent(self, y: Operand, rng: np.random.Generator | int | None = None) -> Plain:
        """Draw the hidden states of observations, counted from 0. Stan's function
        `varmat.hmm_latent_rng` counts from 1.
        """
        from varmat.densities.random_numbers.processes import hmm_latent_rng

        return hmm_latent_rng(self.log_omegas(y), self.transition, self.initial, rng=rng) - 1

    def _tail(self, name: str) -> DensityTerms:
        raise TypeError(f"HiddenMarkov has no {name}!")

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        (times,) = size or (1,)
        each = self.emission._draw(rng, (times, len(self.initial)))
        ends = np.cumsum([self.initial, *np.asarray(self.transition)], axis=-1)[:, :-1]
        state, found = -1, np.empty(times, each.dtype)
        for t, u in enumerate(rng.random(times)):
            state = int(np.sum(u >= ends[state + 1]))
            found[t] = each[t, state]
        return found
