"""The probability that Brownian motion between two boundaries reaches the upper one before, or
after, a given time.

With the density f of the module `first_passage`, the drift rate v and the distance w = 1 - b of the
start from the boundary the probabilities are

    exp(v w) times the integral of f(s, b) exp(-v**2 s / 2) ds

over the times s before u, or after it. The two add up to the probability of reaching the upper
boundary at all. As a function of the log time the integrand is a smooth positive hump with double
exponential tails, so Gauss-Legendre rules over its essential part have all digits, however small
the probability and wherever the start. Series for the probabilities [1]_ lose digits by
cancellation. The derivatives are means, with the same weights, of times and of ratios of
derivatives of f.

References
----------
.. [1] S. P. Blurton, M. Kesselmeier and M. Gondan, "Fast and accurate calculations for cumulative
       first-passage time distributions in Wiener diffusion models", Journal of Mathematical
       Psychology 56 (2012), 470-475.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.core.elementwise import Elementwise, new_row
from varmat.densities.first_passage import first_passage_ratio, log_first_passage
from varmat.functions.rows import formula
from varmat.functions.special.quadrature import gauss
from varmat.plain_arrays import blocks
from varmat.typing import Operand, Result

# The integrand is dropped where it is less than exp(-DROP) of its maximum. That leaves room for
# powers of the time, and for the difference of the exponents of the two series where they meet.
DROP = 48.0
# The axis of the log time is cut into panels of at most the length PANEL with NODES nodes each.
# So many panels are computed at once.
NODES, PANEL, AT_ONCE = 32, 4.0, 512


def time_range(upper: bool, u: Operand, w: Operand, c: Operand) -> tuple[Result, Result]:
    """Find the range of s up to u, or from u on, where ``exp(-w**2 / (2 s) - c s / 2)`` is not
    negligible. Its ends may be 0 and infinity.
    """
    root = np.sqrt(c)
    top = w / root  # the place of the maximum
    nearest = (np.maximum if upper else np.minimum)(u, top)
    with np.errstate(over="ignore"):
        # The exponent relative to its least value, w root.
        level = 0.5 * (w / np.sqrt(nearest) - root * np.sqrt(nearest)) ** 2 + DROP
        both = level + np.sqrt(level * (level + 2.0 * w * root)) + w * root
        low, high = w * w / both, both / c
    return (np.maximum(u, low), high) if upper else (low, np.minimum(u, high))


def _panels(upper: bool, u: Operand, b: Operand, v: Operand) -> tuple[Result, Result, Result]:
    low, high = time_range(upper, u, 1.0 - b, v * v + math.pi**2)
    length = np.log(high) - np.log(low)
    return np.ceil(length / PANEL).clip(1, 100).astype(int), low, length


def _weights(
    count: int, low: Operand, length: Operand, b: Operand, v: Operand
) -> tuple[Result, Result, Result]:
    """Return times, starts, and the log of weight times density at each of them, panel by panel."""
    nodes, weights = gauss(NODES)
    abscissas = ((np.arange(count)[:, None] + nodes) / count).reshape(-1)
    times = low[:, None] * np.exp(length[:, None] * abscissas)
    starts = np.broadcast_to(b[:, None], times.shape)
    logs = log_first_passage.ufunc(times, starts) - 0.5 * (v * v)[:, None] * times + np.log(times)
    return times, starts, logs + np.log(np.tile(weights / count, count) * length[:, None])


def _by_panels(upper: bool, code: Operand, u: Operand, b: Operand, v: Operand) -> Result:
    """Compute the log integral if `code` is negative. Otherwise compute a mean: the tens of `code`
    are the order of a ratio, its units a power of the time.
    """
    code, u, b, v = np.broadcast_arrays(code, u, b, v)
    shape = u.shape
    code, u, b, v = (np.asarray(x, float).ravel() for x in (code, u, b, v))
    out = np.full(u.shape, np.nan)
    inside = (u >= 0.0) & (b > 0.0) & (b < 1.0) & np.isfinite(v)
    none = inside & (np.isinf(u) if upper else u == 0.0)
    out[none] = np.where(code[none] < 0.0, -np.inf, 0.0)
    inside &= ~none
    counts, low, length = np.zeros(u.shape, int), np.ones(u.shape), np.ones(u.shape)
    counts[inside], low[inside], length[inside] = _panels(upper, u[inside], b[inside], v[inside])
    for count in np.unique(counts[inside]).tolist():
        which = np.flatnonzero(inside & (counts == count))
        for here in blocks(len(which), max(1, AT_ONCE // count)):
            part = which[here]
            out[part] = _of_block(count, code[part], low[part], length[part], b[part], v[part])
    return out.reshape(shape)[()]


def _of_block(
    count: int, code: Operand, low: Operand, length: Operand, b: Operand, v: Operand
) -> Result:
    times, starts, logs = _weights(count, low, length, b, v)
    most = np.max(logs, axis=1)
    weights = np.exp(logs - most[:, None])
    total = np.sum(weights, axis=1)
    result = most + np.log(total)
    for x in np.unique(code[code >= 0.0]):
        here = code == x
        order, power = divmod(x, 10.0)
        integrand = weights[here] * times[here] ** power
        if order:
            integrand = integrand * first_passage_ratio.ufunc(order, times[here], starts[here])
        result[here] = np.sum(integrand, axis=1) / total[here]
    return result


def _rows(word: str, upper: bool) -> tuple[Elementwise, Elementwise]:
    """Make the rows for the logarithm of the integral over times, and for the means."""
    log, mean, sign = f"log_passage_{word}", f"mean_passage_{word}", "-" if upper else ""

    def inner(time: str) -> tuple[str, str]:
        """Write the condition that a time has a density, and a safe time where it fails."""
        condition = f"({time} > 0.0) & ({time} < inf)"
        return condition, f"where({condition}, {time}, 1.0)"

    def rate(time: str, start: str, drift: str, value: str) -> str:
        condition, at = inner(time)
        return (
            f"{sign}where({condition}, exp(log_first_passage({at}, {start}) - 0.5 * {drift} * "
            f"{drift} * {at} - {value}), 0.0)"
        )

    integral = new_row(
        log,
        formula(lambda x, y, z: _by_panels(upper, -1.0, x, y, z)),
        f"g * ({rate('x', 'y', 'z', 'r')})",
        f"g * {mean}(10.0, x, y, z)",
        f"-g * z * {mean}(1.0, x, y, z)",
        doc=f"Logarithm of the integral over times {word} x, for the start y and the drift rate z.",
    )
    time = inner("y")[1]
    at_end = (
        f"power({time}, fmod(x, 10.0)) * first_passage_ratio(floor(0.1 * x + 0.01), {time}, z) - r"
    )
    means = new_row(
        mean,
        formula(partial(_by_panels, upper)),
        "nan * g",
        f"g * ({rate('y', 'z', 'w', f'{log}(y, z, w)')}) * ({at_end})",
        f"g * ({mean}(x + 10.0, y, z, w) - r * {mean}(10.0, y, z, w))",
        f"g * w * (r * {mean}(1.0, y, z, w) - {mean}(x + 1.0, y, z, w))",
        doc=f"Mean over times {word} y, for the start z and the drift rate w; x has two digits, "
        "the order of a ratio and a power.",
    )
    return integral, means


# These are names in the expressions of distribution functions, not functions for users.
log_passage_before, mean_passage_before = _rows("before", upper=False)
log_passage_after, mean_passage_after = _rows("after", upper=True)
