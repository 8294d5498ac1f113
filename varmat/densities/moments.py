"""Moments of families, as functions of their parameters, for the rows of the table of densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from varmat.functions.special.gamma_functions import gammaln
from varmat.functions.special.logistic_functions import exprel
from varmat.plain_arrays import special
from varmat.typing import Operand, Result

__all__ = ["extreme_moments", "gamma_moments", "if_above"]


def if_above(
    bound: float, shape: Operand, moment: Callable[[Operand], Operand], otherwise: float = math.inf
) -> Result:
    """Compute a moment that exists if a shape is above a bound; else return `otherwise`."""
    exists = np.greater(shape, bound)
    value = moment(np.where(exists, shape, bound + 1.0))
    return np.where(exists, value, otherwise)


def gamma_moments(scale: Operand, step: Operand) -> tuple[Result, Result]:
    """Compute mean and variance for n-th moments of ``scale**n * gamma(1 + n * step)``."""
    first, second = gammaln(1.0 + step), gammaln(1.0 + 2.0 * step)
    mean = scale * np.exp(first)
    return mean, mean**2 * np.expm1(second - 2.0 * first)


_COUNTS = np.arange(2, 40)


@cache
def _series() -> np.ndarray:
    """Return the series of the logarithm of gamma(1 - x) over x."""
    return np.concatenate([[np.euler_gamma], special.zeta(_COUNTS) / _COUNTS])


def _log_gamma_ratio(x: Operand) -> Result:
    """Compute the logarithm of gamma(1 - x) over x."""
    near = np.less(np.abs(x), 0.3)
    small, large = np.where(near, x, 0.0), np.where(near, -1.0, x)
    series: Result = 0.0
    for c in _series()[::-1]:
        series = c + small * series
    return np.where(near, series, gammaln(1.0 - large) / large)


def _second_ratio(x: Operand) -> Result:
    """Compute the logarithm of gamma(1 - 2 x) / gamma(1 - x)**2 over x**2."""
    near = np.less(np.abs(x), 0.15)
    small, large = np.where(near, x, 0.0), np.where(near, -1.0, x)
    series: Result = 0.0
    for k, c in zip(_COUNTS[::-1], _series()[:0:-1], strict=True):
        series = c * (2.0**k - 2.0) + small * series
    direct = (gammaln(1.0 - 2.0 * large) - 2.0 * gammaln(1.0 - large)) / large**2
    return np.where(near, series, direct)


def extreme_moments(mu: Operand, sigma: Operand, xi: Operand) -> tuple[Result, Result]:
    """Compute mean and variance of generalised extreme values; a shape near 0 loses no digits."""

    def mean(t: Operand) -> Result:
        ratio = _log_gamma_ratio(-t)
        return mu + sigma * ratio * exprel(-t * ratio)

    def variance(t: Operand) -> Result:
        ratio, second = _log_gamma_ratio(-t), _second_ratio(-t)
        square = np.exp(-2.0 * t * ratio)
        return sigma**2 * square * second * exprel(t**2 * second)

    return if_above(-1.0, -xi, mean), if_above(-0.5, -xi, variance)
