"""Distributions made of several others: mixtures, hidden Markov models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from varmat.core.errors import ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.density import probability
from varmat.densities.domains import simplex
from varmat.densities.hmm import hmm_marginal
from varmat.densities.mixture import log_mix, log_mix_of_many
from varmat.densities.random_numbers.row import wanted_shape
from varmat.distributions.custom import as_distribution
from varmat.distributions.distribution import Distribution
from varmat.distributions.terms import DensityTerms, of_log
from varmat.functions.missing import refuse_missing, with_missing
from varmat.typing import Operand, Plain, Result, Shape

__all__ = ["HiddenMarkov", "Mixture"]


class Mixture(Distribution):
    """A mixture of distributions.

    Parameters
    ----------
    weights : array_like
        The probabilities of the components along the last axis, or, with two components, only the
        first one, as a number. Their sum is checked only if they are not variables.
    components : sequence of Distribution
        Distributions of single variables, or of vectors.

    Examples
    --------
    >>> import varmat.distributions as dist
    >>> counts = dist.Mixture(0.25, [dist.DiscreteRange(0, 0), dist.Poisson(2.0)])
    >>> round(counts.lpmf([0, 3]), 12)
    -3.045541407207
    """

    def __init__(self, weights: Operand, components: Sequence[Distribution]) -> None:
        refuse_missing(weights, "Mixture: weights")
        if isinstance(components, Distribution):
            components = (components,)
        self.components: tuple[Distribution, ...] = tuple(map(as_distribution, components))
        self.weights = np.asarray(weights) if isinstance(weights, (list, tuple)) else weights
        count = len(self.components)
        if (
            not all(isinstance(component, Distribution) for component in self.components)
            or count < 2
        ):
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
        return all(component.is_discrete for component in self.components)

    @property
    def has_atoms(self) -> bool:
        return any(component.has_atoms for component in self.components)

    def is_atom(self, y: Operand) -> Operand:
        return reduce(np.logical_or, [component.is_atom(y) for component in self.components])

    def elements(self) -> list[Operand] | None:
        weights, item = self.weights, [part.elements() for part in self.components]
        result = [x for part in item if part is not None for x in part]
        columns = [weights[..., k] for k in range(len(item))] if np.ndim(weights) else [weights]
        return None if None in item else [*columns, *result]

    def with_elements(self, elements: Sequence[Operand]) -> Mixture:
        others = iter(elements)
        columns = [next(others) for _ in (self.components if np.ndim(self.weights) else (0,))]
        parts = [
            part.with_elements([next(others) for _ in part.elements() or ()])
            for part in self.components
        ]
        first = columns[0]
        if not np.ndim(self.weights) and np.ndim(first):
            columns = [first, 1.0 - first]
        return Mixture(np.stack(columns, axis=-1) if len(columns) > 1 else first, parts)

    def _mixed(self, logs: Sequence[Operand]) -> Result:
        """Return the logarithm of the weighted sum of exponentials."""
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
        logs = [component.of_draws(y) for component in self.components]
        if self.has_atoms and not self.is_discrete:
            # Where one component has a probability, the densities of the others do not count.
            atoms = [
                np.logical_and(component.is_atom(y), np.greater(log, -np.inf))
                for component, log in zip(self.components, logs, strict=True)
            ]
            seen = reduce(np.logical_or, atoms)
            logs = [
                np.where(seen & ~atom, -np.inf, log) for atom, log in zip(atoms, logs, strict=True)
            ]
        return self._mixed(logs)

    def cumulative(self, name: str) -> DensityTerms:
        tails = [
            component.cumulative("lcdf" if name == "cdf" else name) for component in self.components
        ]
        return of_log(name, lambda y: self._mixed([tail.pointwise(y) for tail in tails]))

    def support(self) -> tuple[Operand, Operand]:
        lower, upper = zip(*(component.support() for component in self.components), strict=True)
        return reduce(np.minimum, lower), reduce(np.maximum, upper)

    def mean(self) -> Result:
        return self._average([component.mean() for component in self.components])

    def variance(self) -> Result:
        """Return the mean variance of the components plus the variance of their means."""
        mean = self.mean()
        return self._average(
            [component.variance() + (component.mean() - mean) ** 2 for component in self.components]
        )

    def _average(self, values: Sequence[Operand]) -> Result:
        weights = self.weights
        if not np.ndim(weights):
            return weights * values[0] + (1.0 - weights) * values[1]
        terms = [weights[..., k] * x for k, x in enumerate(values)]
        return reduce(np.add, terms)

    @property
    def event(self) -> int:
        return self.components[0].event

    def outer(self) -> Shape:
        shapes = (component.outer() for component in self.components)
        return np.broadcast_shapes(np.shape(self.weights)[:-1], *shapes)

    def extent(self) -> tuple[Shape, int]:
        shapes = (component.extent()[0] for component in self.components)
        outer = np.broadcast_shapes(np.shape(self.weights)[:-1], *shapes)
        return outer, self.components[0].extent()[1]

    def seen(self, y: Plain) -> dict[str, Plain]:
        return self.components[0].seen(y)

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        outer = wanted_shape("Mixture", size, self.outer())
        result, *others = (component.rng(rng, outer, **more) for component in self.components[::-1])
        weights = self.weights
        ends = np.cumsum(weights, axis=-1) if np.ndim(weights) else np.reshape(weights, (1,))
        ones = (1,) * self.event  # each vector has one component
        u = np.reshape(rng.random((*outer, 1)), (*outer, *ones))
        for k, x in enumerate(others):
            end = ends[..., len(others) - 1 - k]
            end = np.reshape(end, np.shape(end) + ones)
            result = np.where(u < end, x, result)
        return result if np.ndim(result) else result[()]


class HiddenMarkov(Distribution):
    """Observations at successive times, each given a hidden state; the states are a Markov chain.
    Observations that are nan are missing: they are integrated out.

    Parameters
    ----------
    initial : array_like, shape (states,)
        The probabilities of the first state.
    transition : array_like, shape (states, states)
        Those of the next state, a row for each state.
    emission : Distribution
        Distribution of one observation, with parameters for each state along their last axis.

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
        emission = as_distribution(emission)
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
        return self.emission.extent()[0][:-1], 0  # the last axis is for the states

    def log_omegas(self, y: Operand) -> Result:
        """Return the log density of each observation, a column, in each state, a row."""
        if np.ndim(y) != 1:
            raise ShapeError(
                f"HiddenMarkov: y has shape {np.shape(y)}, but must have one number for each time!"
            )
        there = np.full(np.shape(y), True)
        if not is_differentiable(y):
            y = with_missing(y)[0]
            there = ~np.isnan(y)
        if there.size and not there.any():
            return np.zeros((np.shape(self.initial)[0], len(there)))
        is_whole = bool(there.all())
        filled = y if is_whole else np.where(there, y, y[there][0])
        logs = self.emission.lpdf.pointwise(np.reshape(filled, (-1, 1)))
        # What is missing says nothing of the state: its log density is 0 in all of them.
        return (logs if is_whole else np.where(there[:, np.newaxis], logs, 0.0)).T

    def _each(self, y: Operand) -> Result:
        return hmm_marginal(self.log_omegas(y), self.transition, self.initial)

    def latent(self, y: Operand, rng: np.random.Generator | int | None = None) -> Plain:
        """Draw the hidden states of observations, counted from 0. Stan's function
        `varmat.hmm_latent_rng` counts from 1.
        """
        from varmat.densities.random_numbers.processes import hmm_latent_rng

        return hmm_latent_rng(self.log_omegas(y), self.transition, self.initial, rng=rng) - 1

    def cumulative(self, name: str) -> DensityTerms:
        raise TypeError(f"HiddenMarkov has no {name}!")

    def _draw(self, rng: np.random.Generator, size: Shape | None, **more: Plain) -> Plain:
        (times,) = size or (1,)
        x = self.emission.rng(rng, (times, len(self.initial)))
        ends = np.cumsum([self.initial, *np.asarray(self.transition)], axis=-1)[:, :-1]
        state, result = -1, np.empty(times, x.dtype)
        for t, u in enumerate(rng.random(times)):
            state = int(np.sum(u >= ends[state + 1]))
            result[t] = x[t, state]
        return result
