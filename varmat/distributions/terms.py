"""What distributions hand on: their functions, their standard form, their draws."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varmat.densities.random_numbers.row import aligned

if TYPE_CHECKING:
    from varmat.typing import Function, Operand, Result, Shape

__all__ = ["DensityTerms", "ElementDensity", "Standard", "TruncatedNumbers", "of_log", "total"]


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
        The log density of z.
    """

    location: Operand
    scale: Operand
    is_matrix: bool
    log_density: Function


def total(terms: Operand) -> Result:
    """Sum all terms; return a float if they are plain."""
    result = np.sum(terms)
    return float(result) if isinstance(result, np.generic) else result


def of_log(name: str, each: Function) -> DensityTerms:
    """Make the terms of a cumulative function from their logarithms."""
    if name == "cdf":
        return DensityTerms(lambda y: np.exp(total(each(y))), lambda y: np.exp(each(y)))
    return DensityTerms(lambda y: total(each(y)), each)


class ElementDensity:
    """A distribution as a density of observations and elements.

    Attributes
    ----------
    is_integrable : bool
        Whether an integral over some of the elements is a probability.
    """

    arguments = MappingProxyType({"y": ("Observations", None)})
    parameters = ()
    __signature__ = inspect.Signature()

    def __init__(self, base: Any) -> None:
        self._base, self.name = base, type(base).__name__
        self.lcdf, self.lccdf = self._cumulative("lcdf"), self._cumulative("lccdf")
        self.discrete = frozenset(self.arguments if base.is_discrete else ())
        self.is_integrable = not base.has_atoms and base.elements() is not None

    def __call__(self, *args: Operand) -> Result:
        return total(self.pointwise(*args))

    def pointwise(self, y: Operand, *elements: Operand) -> Result:
        return self._at(elements).of_draws(y)

    def _at(self, elements: Sequence[Operand]) -> Any:
        return self._base.with_elements(elements) if elements else self._base

    def _cumulative(self, name: str) -> DensityTerms:
        self._base.cumulative(name)  # refuses what has none
        return DensityTerms(
            lambda y, *elements: self._at(elements).cumulative(name)(y),
            lambda y, *elements: self._at(elements).cumulative(name).pointwise(y),
        )


class TruncatedNumbers:
    """Draws from a truncated distribution, as a function of its ends and parameters.

    Parameters
    ----------
    example : Distribution
        With other ends and parameters.
    """

    def __init__(self, example: Any) -> None:
        self._example = example

    def __call__(self, *args: Operand, rng: Operand, size: Operand) -> Result:
        return self._example.with_elements(args).rng(rng, size)

    def stacks(self, varying: Sequence[int]) -> bool:
        return True

    def rows(
        self, count: int, args: Sequence[Operand], varying: Sequence[int],
        rng: np.random.Generator, size: int | Shape | None = None,
    ) -> np.ndarray:  # fmt: skip
        shape = (size,) if isinstance(size, int) else size or ()
        stacked = aligned(args, varying, [1 + len(shape) - np.ndim(x) for x in args])
        return np.asarray(self(*stacked, rng=rng, size=(count, *shape)))
