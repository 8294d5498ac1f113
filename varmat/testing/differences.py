"""Finite differences with an estimate of their error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from varmat.typing import Plain

# Steps relative to a size. Each is a quarter of the one before: two extrapolations remove the terms
# in h**2 and h**4. All are powers of two, so that adding them to an argument is exact.
STEPS = (2.0**-4, 2.0**-6, 2.0**-8)
# Rounding of the function, relative to its magnitude.
NOISE = 2e-15
# An estimate with a relative error like this ends the search for a better step.
GOOD = 1e-8
# So does one whose error is this small against the magnitude of the function: the derivative is
# zero.
NOTHING = 1e-10
# With a relative error as small as this there is a finite derivative, whatever the rule says.
SURE = 1e-4
# Sizes of step along a direction whose elements are of the order of the argument's.
SIZES = tuple(2.0**-k for k in (22, 17, 12, 7, 2))


class OutsideDomainError(Exception):
    """The function refuses every point near the one where its derivative is wanted."""


def sizes_at(x: float) -> list[float]:
    """List step sizes for an element that is `x`, ascending: relative ones, and absolute ones."""
    if not math.isfinite(x) or x == 0.0:
        return list(SIZES)
    scale = 2.0 ** round(math.log2(abs(x)))
    ascending = sorted({scale * s for s in SIZES} | {s for s in SIZES[2:] if s > 2.0**-40 * scale})
    # Keep one of two that are almost the same.
    return [s for s, before in zip(ascending, [0.0, *ascending], strict=False) if s > 4.0 * before]


def slope(function: Callable[[float], Plain], sizes: Sequence[float]) -> tuple[Plain, Plain]:
    """Compute the derivative of ``function(h)`` at zero, and estimate its error, from central
    differences extrapolated twice.

    The smallest of the ascending `sizes` of step at which rounding does not matter is taken: a
    larger one could reach across a kink or a pole. A size at which the function raises is passed
    over."""
    function = cache(function)
    refusal: Exception | None = None
    best: tuple[Plain, Plain] | None = None
    nearer: list[tuple[float, Plain, float]] = []
    with np.errstate(all="ignore"):
        for size in sizes:
            try:
                rough, magnitude = _difference(function, size * STEPS[-1])
                noise = NOISE * magnitude / (STEPS[-1] * size)
                if _largest(rough) * GOOD >= noise:
                    estimate, error, _ = _extrapolate(function, size)
                    if np.max(error, initial=0.0) <= GOOD * _largest(estimate):
                        return estimate, _doubted(estimate, error, size, nearer)
                nearer.append((size, rough, noise))
            except (ArithmeticError, ValueError) as exception:
                refusal = exception
        for size in reversed(sizes):
            try:
                estimate, error, magnitude = _extrapolate(function, size)
            except (ArithmeticError, ValueError):
                continue
            error = _doubted(estimate, error, size, nearer)
            if best is None or np.max(error, initial=0.0) < np.max(best[1], initial=0.0):
                best = estimate, error
            if np.all(error <= NOTHING * magnitude):
                break
    if best is None:
        raise OutsideDomainError(str(refusal)) from refusal
    return best


def _doubted(
    estimate: Plain, error: Plain, size: float, nearer: list[tuple[float, object, float]]
) -> Plain:
    """Increase the error of an estimate where smaller steps clearly disagree with it."""
    for smaller, rough, noise in nearer:
        gap = np.abs(estimate - rough)
        if smaller < size:
            error = np.where(gap > 3.0 * error + 100.0 * noise, np.maximum(error, gap), error)
    return error


def conclusive(exact: Plain, estimate: Plain, error: Plain) -> Plain:
    """Tell where an estimate may be compared with a derivative. Only a good estimate can refute a
    derivative that is not finite.
    """
    with np.errstate(all="ignore"):
        needed = np.where(np.isfinite(exact), np.inf, SURE * (1.0 + np.abs(estimate)))
        return np.isfinite(estimate) & np.isfinite(error) & (error <= needed)


def _extrapolate(function: Callable[[float], Plain], size: float) -> tuple[Plain, Plain, float]:
    (d0, _), (d1, _), (d2, magnitude) = (_difference(function, h * size) for h in STEPS)
    once, second = (16.0 * d1 - d0) / 15.0, (16.0 * d2 - d1) / 15.0
    twice = (256.0 * second - once) / 255.0
    # This overestimates truncation, and does not underestimate rounding, which the last
    # extrapolation hardly changes.
    error = 0.1 * np.abs(second - once) + NOISE * magnitude / (STEPS[-1] * size)
    return twice, np.where(np.isfinite(twice) & np.isfinite(error), error, np.inf), magnitude


def _difference(function: Callable[[float], Plain], h: float) -> tuple[Plain, float]:
    """Compute a central difference, and the magnitude of the numbers that were subtracted."""
    ahead, behind = np.asarray(function(h)), np.asarray(function(-h))
    return (ahead - behind) / (2.0 * h), _largest(ahead) + _largest(behind)


def _largest(x: Plain) -> float:
    return float(np.max(np.abs(x), initial=0.0))
