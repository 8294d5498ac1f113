"""Jumps of right-hand sides, at times or states that depend on variables."""

from __future__ import annotations

import numpy as np

from varmat.derivatives.recorded_programs import margins_of
from varmat.interrupts import Attempt
from varmat.typing import Function

__all__ = ["jumps"]

# How far from a jump both sides are evaluated, and how much they then differ, both relative.
_NEAR, _JUMP = 1e-7, 1e-5


def jumps(rates: Function, point: np.ndarray, own: int) -> bool:
    """Return whether a function jumps where its first elements pass something of the rest.

    Parameters
    ----------
    rates : callable
        From a vector to a vector.
    point : ndarray
        Where its comparisons are recorded.
    own : int
        How many elements come first: the time and the state.
    """
    # At time zero what is divided by a variable does not depend on it.
    for start in (point, 1.01 * point + 0.01):
        for i, (_, slope) in enumerate(_margins(rates, start)):
            if slope[:own].any() and slope[own:].any():
                at = _zero_of_margin(rates, i, start.copy(), own)
                if at is not None and _is_jump(rates, *at, own):
                    return True
    return False


def _margins(rates: Function, point: np.ndarray) -> list[tuple[float, np.ndarray]]:
    with Attempt(), np.errstate(all="ignore"):
        return margins_of(rates, point)
    return []


def _zero_of_margin(
    rates: Function, i: int, at: np.ndarray, own: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Find a point at which a comparison changes its outcome, by Newton's method in the first
    elements, and a small step across; return None if it finds none.
    """
    for _ in range(20):
        result = _margins(rates, at)
        if i >= len(result) or not result[i][1][:own].any():
            return None
        value, slope = result[i][0], result[i][1][:own]
        across = slope * (_NEAR * (1.0 + np.abs(at[:own]).max()) / np.abs(slope).max())
        if abs(value) < 1e-3 * abs(slope @ across):
            return at, across
        at[:own] -= value * slope / (slope @ slope)
    return None


def _is_jump(rates: Function, at: np.ndarray, across: np.ndarray, own: int) -> bool:
    sides: list[np.ndarray] = []
    with Attempt(), np.errstate(all="ignore"):
        for step in (-across, across):
            sides.append(rates(np.concatenate([at[:own] + step, at[own:]])))
    # Rates that raise there say nothing.
    size = max((np.abs(side).max() for side in sides), default=0.0)
    return len(sides) == 2 and bool((np.abs(sides[1] - sides[0]) > _JUMP * size).any())
