"""Integrals of several functions of one variable by double exponential formulas, on plain arrays.

A range starts at a distance of zero from a limit, where the integrands may be singular, and ends at
a finite distance, or at infinity (H. Takahasi and M. Mori, Publ. RIMS, Kyoto University 9, 1974).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

# The first distance of the points, and how often it is halved: before a result is trusted, before
# one of zero is, because a peak may hide between the points, and at most.
WIDEST, FEWEST, UNSEEN, MOST = 0.5, 2, 5, 9
# Contributions below this part of the integral of |f| are left out.
NOTHING = 1e-20
# An integrand may be nan or infinite from the start to this part of the range.
CLOSE = 1e-6
# The rounding error of an integral, as a part of the integral of |f|.
ROUNDING = 1e-15


class RangeSums:
    """The sums over one range, with estimates of their errors.

    Parameters
    ----------
    at : callable
        The values of all integrands at a distance from the start: float -> ndarray, shape (size,).
    length : float
        May be infinite.

    Attributes
    ----------
    integral, norm, error, ends : ndarray, shape (size,)
        The integrals, the integrals of the absolute values, estimates of the errors, and the share
        of these beyond the outermost points: infinite if the integrand does not fall off there. All
        are nan if it is not finite between the ends.
    """

    integral: np.ndarray
    norm: np.ndarray
    error: np.ndarray
    ends: np.ndarray

    def __init__(self, at: Callable[[np.float64], np.ndarray], length: float) -> None:
        self.at, self.length, self.h = at, length, WIDEST
        # As far as the exponential function goes; and until the distance from the end is lost.
        low, high = (-450.0, 450.0) if math.isinf(length) else (-225.0, 20.0)
        first, last = (math.asinh(x) / self.h for x in (low, high))
        self.t = self.h * np.arange(math.ceil(first), math.floor(last) + 1.0)
        self.values = self._at(self.t)
        self.differences: list[np.ndarray] = []
        self._estimate()
        self.ends = self.error

    def _places(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the distances from the start and from the end, and the weights.

        From an infinite end the distance is counted in the same way as from the start.
        """
        if math.isinf(self.length):
            u = np.exp(0.5 * math.pi * np.sinh(t))
            return u, u, 0.5 * math.pi * np.cosh(t) * u
        s = math.pi * np.sinh(t)
        u, v = self.length / (1.0 + np.exp(-s)), self.length / (1.0 + np.exp(s))
        return u, v, math.pi * np.cosh(t) * u * (v / self.length)

    def _at(self, t: np.ndarray) -> np.ndarray:
        return np.array([self.at(u) for u in self._places(t)[0]])

    def refine(self) -> None:
        """Halve the distance of the points."""
        between = self.t[:-1] + 0.5 * self.h
        order = np.argsort(np.concatenate([self.t, between]))
        self.t = np.concatenate([self.t, between])[order]
        self.values = np.concatenate([self.values, self._at(between)])[order]
        self.h *= 0.5
        before = self.integral
        self._estimate()
        self.differences.append(np.abs(self.integral - before))
        self.ends = self._ends()
        self.error = self.ends + self._of_differences()

    def _estimate(self) -> None:
        """Compute the sums, without points far out that are not finite, or give nothing."""
        self.error = np.full(self.values.shape[1], np.inf)
        good = np.isfinite(self.values).all(axis=1)
        # Close to the start rounding may spoil the integrand, but not elsewhere.
        if good.any() and self._places(self.t[good][:1])[0] < CLOSE * min(self.length, 1.0):
            self._keep(good, 0)
        terms = self.h * self._places(self.t)[2][:, None] * self.values
        self.integral, self.norm = np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0)
        self._keep((np.abs(terms) > NOTHING * self.norm).any(axis=1), 2)

    def _keep(self, good: np.ndarray, more: int) -> None:
        """Keep the points from the first good one to the last, and some more on both sides."""
        if good.any():
            first, last = np.flatnonzero(good)[[0, -1]]
            saved = slice(max(first - more, 0), last + 1 + more)
            self.t, self.values = self.t[saved], self.values[saved]

    def _of_differences(self) -> np.ndarray:
        """Estimate the errors by the differences of the sums between the last levels.

        They fall as powers of each other where the integrand is analytic. Otherwise the last one
        may be small by chance, and the one before it counts too.
        """
        if len(self.differences) < 3:
            return np.full(self.norm.shape, np.inf)
        norm = np.where(self.norm > 0.0, self.norm, 1.0)
        first, before, last = (np.maximum(x / norm, ROUNDING) for x in self.differences[-3:])
        falls = (before <= np.maximum(first**1.2, 10.0 * ROUNDING)) & (
            last <= np.maximum(before**1.4, 10.0 * ROUNDING)
        )
        error: np.ndarray = self.norm * np.where(falls, last, 10.0 * np.maximum(last, before))
        return error

    def _ends(self) -> np.ndarray:
        """Estimate what the integrals lack beyond the outermost points.

        There the distance times |f| goes as a power of the distance.
        """
        u, v, _ = self._places(self.t)
        total = np.zeros(self.norm.shape)
        for distance, values in ((u, self.values), (v[::-1], self.values[::-1])):
            products = distance[:4, None] * np.abs(values[:4])
            if len(products) < 4:
                return np.full(total.shape, np.inf)
            outer, inner = products[:2].max(axis=0), products[2:].max(axis=0)
            power = np.log(inner / outer) / abs(math.log(distance[2] / distance[0]))
            lacks = np.where(power > 0.0, outer / power, np.inf)
            total += np.where(outer > NOTHING * self.norm, lacks, 0.0)
        return total


def integrals(ranges: Sequence[RangeSums], aim: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute the integrals over several ranges together, estimates of their errors, and the norms.

    Parameters
    ----------
    ranges : sequence of Range
    aim : float
        The relative error at which to stop.
    """

    def total(name: str) -> np.ndarray:
        of_all: np.ndarray = np.sum([getattr(item, name) for item in ranges], axis=0)
        return of_all

    for level in range(MOST):
        bound = 0.5 * aim * np.abs(total("integral"))
        requested = [
            item
            for item in ranges
            if level < FEWEST
            or (level < UNSEEN and not total("norm").any())
            or (item.error > np.maximum(bound, 2.0 * ROUNDING * item.norm)).any()
        ]
        # An integrand that does not fall off at an end will not do so between the points either.
        if not requested or (level > FEWEST and np.isinf(total("ends")).any()):
            break
        for x in requested:
            x.refine()
    return total("integral"), total("error"), total("norm")
