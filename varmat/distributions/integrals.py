"""Quantiles and moments of distributions, from their probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.operation import is_differentiable

if TYPE_CHECKING:
    from collections.abc import Callable

    from varmat.typing import Operand, Plain

__all__ = ["moments", "quantiles"]

# An absolute error of the logarithm of a probability that does not move a quantile of counts.
_ROUNDING = 64.0 * np.finfo(float).eps
# So many counts are summed.
_MOST = 1e6


def _plain(function: str, of: Any) -> Callable[[str, Plain], Plain]:
    """Make a function of a name and values: the log probability up to them, or above."""

    def log(name: str, x: Plain) -> Plain:
        result = of.cumulative(name).pointwise(x)
        if is_differentiable(result):
            raise TypeError(
                f"{type(of).__name__}.{function}: a parameter is a variable, but must be a plain "
                "number or array, because the result has no derivative!"
            )
        return result

    return log


def _number(x: Plain) -> Plain:
    return x if np.ndim(x) else float(x)


def quantiles(of: Any, p: Operand) -> Plain:
    """Find the smallest values up to which the probability is at least `p`, by bisection.

    Counts are bracketed first. Of other numbers the places in the order of all floats are halved,
    so that each quantile is found in 64 steps, wherever it is.
    """
    log, p = _plain("ppf", of), np.asarray(p, float)
    lower, upper = of.support()
    shape = np.broadcast_shapes(p.shape, np.shape(lower), np.shape(upper), of.outer())
    p, low, high = (np.broadcast_to(np.asarray(x, float), shape) for x in (p, lower, upper))

    def reaches(x: Plain) -> Plain:
        return log("lcdf", x) >= log_p

    with np.errstate(all="ignore"):
        log_p = np.log(p) - (_ROUNDING if of.is_discrete else 0.0)
        inside = (p > 0.0) & (p < 1.0)
        start, end = (np.where(inside, x, 0.0) for x in (low, high))
        if of.is_discrete:
            start, end = _bracket(reaches, start, end, inside)
            while np.any(is_open := (middle := np.floor(0.5 * (start + end))) > start):
                right = reaches(middle)
                start = np.where(is_open & ~right, middle, start)
                end = np.where(is_open & right, middle, end)
        else:
            # The end itself may be a quantile.
            first, last = _places(start) - np.isfinite(start), _places(end)
            while np.any(is_open := (middle := _between(first, last)) > first):
                right = reaches(_floats(middle))
                first = np.where(is_open & ~right, middle, first)
                last = np.where(is_open & right, middle, last)
            end = _floats(last)
    result = np.where(inside, end, np.where(p == 0.0, low, np.where(p == 1.0, high, np.nan)))
    return _number(result)


def _bracket(
    reaches: Callable[[Plain], Plain], low: Plain, high: Plain, inside: Plain
) -> tuple[Plain, Plain]:
    """Find counts around each quantile; the first is below it."""
    no_low, no_high = inside & np.isinf(low), inside & np.isinf(high)
    bound = np.where(no_high, np.where(no_low, 0.0, np.maximum(low, 0.0)) + 1.0, high)
    low, step = np.where(no_low, np.minimum(bound, 0.0), low) - 1.0, 1.0
    while np.any(missing := no_high & ~reaches(bound)):
        low = np.where(missing, bound, low)
        bound, step = np.where(missing, bound + step, bound), 2.0 * step
    step = 1.0
    while np.any(missing := no_low & reaches(low)):
        bound = np.where(missing, low, bound)
        low, step = np.where(missing, low - step, low), 2.0 * step
    return low, bound


# Floats in their order are integers in their order, but for the sign.
_SIGN = np.int64(2**63 - 1)


def _places(x: Plain) -> Plain:
    bits = np.array(x + 0.0).view(np.int64)
    return np.where(bits < 0, -(bits & _SIGN), bits)


def _floats(indices: Plain) -> Plain:
    return np.where(indices < 0, -np.abs(indices).view(float), np.abs(indices).view(float))


def _between(first: Plain, last: Plain) -> Plain:
    return first // 2 + last // 2 + (first % 2 + last % 2) // 2


def moments(of: Any, name: str) -> tuple[Plain, Plain]:
    """Compute mean and variance from probabilities: by sums for counts, otherwise by integrals.

    The mean is ``c`` plus the integral of the probability above from ``c`` on, less the integral of
    the probability up to before it; the mean square is a similar one.
    """
    log = _plain(name, of)
    lower, upper = of.support()
    shape = np.broadcast_shapes(np.shape(lower), np.shape(upper), of.outer())
    log("lcdf", np.clip(0.0, lower, upper))  # refuses variables
    if of.is_discrete:
        start, end = np.min(of.ppf(1e-300)), np.max(of.ppf(1.0 - 1e-16))
        if end - start > _MOST:
            raise TypeError(
                f"{type(of).__name__} has no {name}, because it has too many possible counts!"
            )
        n = np.reshape(np.arange(start, 2.0 * end - start + 2.0), (-1, *(1,) * len(shape)))
        masses = np.exp(of.of_draws(n))
        mean = np.sum(n * masses, axis=0)
        return _number(mean), _number(np.sum((n - mean) ** 2 * masses, axis=0))
    lower, upper = (np.broadcast_to(np.asarray(x, float), shape) for x in (lower, upper))

    def integral(centre: Plain, power: int) -> Plain:
        """Integrate the tails around a centre."""

        def side(end: Plain, tail: str) -> Plain:
            def weighted(y: Plain) -> Plain:
                nodes = y.reshape(*shape, -1)
                rows = np.moveaxis(nodes, -1, 0)
                weight = power * np.abs(rows - centre) ** (power - 1)
                return np.moveaxis(weight * np.exp(log(tail, rows)), 0, -1).reshape(y.shape)

            between = np.minimum(centre, end), np.maximum(centre, end)
            from scipy import integrate  # slow to import

            return integrate.tanhsinh(weighted, *between, rtol=1e-12, preserve_shape=True).integral

        return side(upper, "lccdf") + (-1.0) ** power * side(lower, "lcdf")

    with np.errstate(all="ignore"):
        centre = np.broadcast_to(np.asarray(of.ppf(0.5)), shape)
        mean = centre + integral(centre, 1)
        return _number(mean), _number(integral(mean, 2))
