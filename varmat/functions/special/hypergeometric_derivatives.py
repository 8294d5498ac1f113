"""Derivatives of Gauss's hypergeometric function with respect to its parameters, of any order: the
algorithm.

The power series, and the Taylor series of the differential equation, are summed in numbers that
carry the derivatives along. Negative integers as parameters, and integer differences of parameters,
are therefore no special cases.

`hypergeometric_functions` has the rows that call it."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from varmat.core.errors import DomainError
from varmat.functions.special.quadrature import on_domain
from varmat.plain_arrays import special
from varmat.typing import Plain

# The power series is summed up to these arguments, the second one for large c. Beyond them follow
# Taylor series, at points that halve the distance to 1.
_SERIES, _SERIES_LARGE = 0.5, 0.9
_LARGE = 20.0
_TERMS = 20000
# Larger relative errors are refused; they are estimated from the size of the terms that cancel.
_LOST = 1e-8
_NAMES = "abc"


@cache
def _pairs(size: int) -> tuple[tuple[int, int, int], ...]:
    """List the terms of each part of a product, beyond those with a value: the part, and the parts
    of the two factors.
    """
    return tuple((m, i, m ^ i) for m in range(size) for i in range(1, m) if i & m == i)


class Jet:
    """A value and its derivatives in k directions, each taken once or not: the rows of an array,
    numbered by sets of directions.

    A number with k infinitesimals whose squares are zero. Part 0 is the value, part 1 the
    derivative in the first direction, part 2 that in the second, part 3 that in both, and so on.
    """

    __slots__ = ("parts",)

    def __init__(self, parts: Plain) -> None:
        self.parts = parts

    def __mul__(self, other: Jet) -> Jet:
        a, b = self.parts, other.parts
        product = a[0] * b
        product[1:] += a[1:] * b[0]
        for m, i, j in _pairs(len(a)):
            product[m] += a[i] * b[j]
        return Jet(product)

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.parts + other.parts)

    def times(self, c: Plain) -> Jet:
        """Times a number."""
        return Jet(c * self.parts)

    def plus(self, c: Plain) -> Jet:
        """Plus a number."""
        parts = self.parts.copy()
        parts[0] += c
        return Jet(parts)

    def composed(self, *derivatives: Plain) -> Jet:
        """Compute a function of this number from its derivatives; the number must be linear in the
        infinitesimals.
        """
        parts = np.empty_like(self.parts)
        parts[0] = 1.0
        for m in range(1, len(parts)):
            last = 1 << (m.bit_length() - 1)
            parts[m] = parts[m ^ last] * self.parts[last]
        for m in range(len(parts)):
            parts[m] *= derivatives[m.bit_count()]
        return Jet(parts)

    def reciprocal(self) -> Jet:
        """Compute the reciprocal of this number, which must be linear in the infinitesimals."""
        r = 1.0 / self.parts[0]
        powers = [r]
        for n in range(1, len(self.parts).bit_length()):
            powers.append(-n * r * powers[-1])
        return self.composed(*powers)

    def exponential(self, value: Plain) -> Jet:
        """Compute the exponential of this number, given the exponential of its value."""
        parts = np.zeros_like(self.parts)
        parts[0] = value
        for m in range(1, len(parts)):
            last = 1 << (m.bit_length() - 1)
            remainder = m ^ last
            for i in range(remainder + 1):
                if i & remainder == i:
                    parts[m] += parts[i] * self.parts[(remainder ^ i) | last]
        return Jet(parts)


class JetSum:
    """A sum of jets, with the sum of the sizes of its terms, which tells how much cancelled."""

    def __init__(self, first: Jet) -> None:
        self.total = first
        self.sizes = np.abs(first.parts)

    def add(self, term: Jet) -> bool:
        """Add a term, and tell whether it is negligible compared with the sum."""
        sizes = np.abs(term.parts)
        self.total = self.total + term
        self.sizes += sizes
        # A sum that is no longer finite will not change.
        return bool(
            np.all((sizes <= 1e-17 * self.sizes) | (self.sizes == np.inf) | np.isnan(self.sizes))
        )

    def lost(self) -> Plain:
        """Return the relative error of the last part that comes from cancellation."""
        scale = np.abs(self.total.parts[-1]) + np.abs(self.total.parts[0])
        return np.finfo(float).eps * self.sizes[-1] / np.where(scale > 0, scale, 1.0)


def hyp2f1_derivative(axes: tuple[int, ...], a: Plain, b: Plain, c: Plain, z: Plain) -> Plain:
    """Compute the derivative of 2F1(a, b; c; z) with respect to its parameters, given by their
    numbers 0, 1, 2.
    """
    a, b, c, z = np.broadcast_arrays(a, b, c, z)
    pole = (c <= 0) & (c == np.round(c))
    inside = np.isfinite(a + b + c + z) & ~pole & ((z < 1) | ((z == 1) & (c - a - b > 0)))
    region = np.where(z == 1, 3, np.where(z >= 0, 0, np.where(b <= a, 1, 2)))
    return on_domain(partial(_parts, axes), region, inside, a, b, c, z, at_once=4096)


def _parts(axes: tuple[int, ...], region: int, *values: Plain) -> Plain:
    z = values[3]
    jets = []
    for i, value in enumerate(values[:3]):
        parts = np.zeros((2 ** len(axes), z.size))
        parts[0] = value
        for k, axis in enumerate(axes):
            parts[1 << k] = i == axis
        jets.append(Jet(parts))
    a, b, c = jets if region != 2 else (jets[1], jets[0], jets[2])
    if region == 3:
        result, lost = _at_one(a, b, c)
    elif region == 0:
        result, lost = _continued(a, b, c, z, 1.0 - z)
    else:
        # Pfaff's transformation: F(a, b; c; z) = (1 - z)**-a F(a, c - b; c; z / (z - 1)). Most
        # terms are positive if b is the smaller of the two parameters.
        logarithm = -np.log1p(-z)
        result, lost = _continued(a, c + b.times(-1.0), c, z / (z - 1.0), 1.0 / (1.0 - z))
        result = result * a.times(logarithm).exponential((1.0 - z) ** -a.parts[0])
    bad = np.isfinite(result.parts[0]) & ~(lost <= _LOST)
    if np.any(bad):
        where = ", ".join(repr(float(v[bad][0])) for v in values)
        names = " and ".join(_NAMES[axis] for axis in axes)
        raise DomainError(
            f"hyp2f1: the arguments are ({where}), but must be such that the derivative with "
            f"respect to {names} does not cancel!"
        )
    return result.parts[-1]


def _continued(a: Jet, b: Jet, c: Jet, z: Plain, remainder: Plain) -> tuple[Jet, Plain]:
    """Compute the function at z from 0 to 1, given 1 - z as well, and the relative error."""
    start = np.where(np.abs(c.parts[0]) < _LARGE, _SERIES, _SERIES_LARGE)
    value, slope, lost = _power_series(a, b, c, np.minimum(z, start))
    gap = 1.0 - start
    while np.any(gap > remainder):
        which = gap > remainder
        here = gap[which]
        # For large c steps are short, because rounding would excite the second solution z**(1 - c).
        step = np.minimum(
            here - np.maximum(0.5 * here, remainder[which]), 5.0 / (1.0 + np.abs(c.parts[0, which]))
        )
        jets = [Jet(jet.parts[:, which]) for jet in (a, b, c, value, slope)]
        moved = _taylor_series(here, step, *jets)
        value.parts[:, which], slope.parts[:, which] = moved[0].parts, moved[1].parts
        lost[which] = np.maximum(lost[which], moved[2])
        gap[which] = np.maximum(here - step, remainder[which])
    return value, lost


def _power_series(a: Jet, b: Jet, c: Jet, z: Plain) -> tuple[Jet, Jet, Plain]:
    """Value, derivative in z and relative error of the sum of (a)_k (b)_k / ((c)_k k!) z**k."""
    term = a.times(0.0).plus(1.0)
    value, slope = JetSum(term), JetSum(a.times(0.0))
    last = max(0.0, *(float(np.max(-jet.parts[0])) for jet in (a, b, c)))
    for k in range(_TERMS):
        term = term * (a.plus(k) * b.plus(k) * c.plus(k).reciprocal()).times(1.0 / (k + 1.0))
        negligible = slope.add(term.times(k + 1.0))
        term = term.times(z)
        if value.add(term) and negligible and k > last:
            return value.total, slope.total, value.lost()
    return value.total, slope.total, np.full(z.shape, np.inf)


def _taylor_series(
    gap: Plain, step: Plain, a: Jet, b: Jet, c: Jet, value: Jet, slope: Jet
) -> tuple[Jet, Jet, Plain]:
    """Value, derivative and relative error at 1 - gap + step, given value and derivative at 1 -
    gap.
    """
    # z (1 - z) F'' + (c - (a + b + 1) z) F' - a b F = 0, for the coefficients of a power series.
    z = 1.0 - gap
    drift = c + (a + b).plus(1.0).times(-z)
    before, term = value, slope.times(step)
    total, change = JetSum(value), JetSum(slope)
    total.add(term)
    for k in range(_TERMS):
        upper = (a.plus(k) * b.plus(k) * before).times(step * step)
        lower = (drift.plus((2.0 * gap - 1.0) * k) * term).times(-(k + 1.0) * step)
        before, term = term, (upper + lower).times(1.0 / (z * gap * (k + 2.0) * (k + 1.0)))
        negligible = change.add(term.times((k + 2.0) / step))
        if total.add(term) and negligible and k > 4:
            return total.total, change.total, total.lost()
    return total.total, change.total, np.full(gap.shape, np.inf)


def _at_one(a: Jet, b: Jet, c: Jet) -> tuple[Jet, Plain]:
    """Compute the value at z = 1, by Gauss's theorem: gamma(c) gamma(c - a - b) / (gamma(c - a)
    gamma(c - b)).
    """
    less_a, less_b = a.times(-1.0), b.times(-1.0)
    logarithm = a.times(0.0)
    for sign, jet in ((1.0, c), (1.0, c + less_a + less_b), (-1.0, c + less_a), (-1.0, c + less_b)):
        derivatives = [
            special.polygamma(n, jet.parts[0]) for n in range(len(jet.parts).bit_length() - 1)
        ]
        logarithm = logarithm + jet.composed(0.0, *derivatives).times(sign)
    result = logarithm.exponential(special.hyp2f1(a.parts[0], b.parts[0], c.parts[0], 1.0))
    return result, np.where(np.isfinite(result.parts[-1]), 0.0, np.inf)
