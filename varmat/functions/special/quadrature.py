"""Integrals of many elements at a time with a fixed number of nodes, and functions by domains."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from varmat.plain_arrays import blocks
from varmat.typing import Operand

# Elements computed at a time, each with an array of some hundred nodes.
AT_ONCE = 512
# exp(-DROP) is negligible compared with 1.
DROP = 45.0
# From these shapes on the integrand varies on one scale only, and a Gauss rule is exact enough.
SMOOTH = 4.0


def on_domain(
    function: Callable[..., Operand],
    code: Operand,
    inside: Operand,
    *values: Operand,
    at_once: int = AT_ONCE,
) -> Operand:
    """``function(code, *values)`` for the elements inside the domain, nan for the others. It is
    called for `at_once` elements with the same code, or fewer.
    """
    codes, inside, *flat = (array.ravel() for array in np.broadcast_arrays(code, inside, *values))
    result = np.full(np.broadcast_shapes(*map(np.shape, (code, *values))), np.nan)
    for x in np.unique(codes[inside]):
        which = np.flatnonzero(inside & (codes == x))
        for here in blocks(len(which), at_once):
            part = which[here]
            result.reshape(-1)[part] = function(int(x), *(v[part] for v in flat))
    return result


@cache
def gauss(count: int) -> tuple[Operand, Operand]:
    """Nodes and weights on (0, 1) of Gauss' rule, for integrands of one scale."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 + 0.5 * nodes, 0.5 * weights


@cache
def double_exponential() -> tuple[Operand, Operand]:
    """Nodes and weights on (0, 1) of the tanh-sinh rule of Takahasi and Mori (1974), for integrands
    that vary on all scales.
    """
    t, step = np.linspace(-3.2, 3.2, 121, retstep=True)
    nodes = 1.0 / (1.0 + np.exp(-np.pi * np.sinh(t)))
    return nodes, step * np.pi * np.cosh(t) * nodes / (1.0 + np.exp(np.pi * np.sinh(t)))


def reach(fall: Callable[[Operand], tuple[Operand, Operand]], start: Operand) -> Operand:
    """Find the distance at which a convex function (and its slope) rises to DROP, or `start` if
    that is nearer.

    Newton's method from `start`, which lies beyond the distance or is too near. The answer need not
    be exact."""
    u = start
    for _ in range(60):
        value, slope = fall(u)
        step = np.where(value > DROP, (value - DROP) / np.where(slope > 0, slope, 1.0), 0.0)
        # Each element stops by itself, so that its result does not depend on the others.
        step = np.where(step > 0.01 * u, step, 0.0)
        if not step.any():
            break
        u = u - step
    return u
