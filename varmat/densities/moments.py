"""Moments of families, as functions of their parameters, for the rows of the table of densities."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from varmat.functions.special.gamma_functions import gammaln
from varmat.typing import Operand, Result

__all__ = ["gamma_moments", "if_above"]


def if_above(
    bound: float, shape: Operand, moment: Callable[[Operand], Operand], otherwise: float = math.inf
) -> Result:
    """A moment that exists if a shape is above a bound."""
    exists = np.greater(shape, bound)
    value = moment(np.where(exists, shape, bound + 1.0))
    return np.where(exists, value, otherwise)


def gamma_moments(scale: Operand, step: Operand) -> tuple[Result, Result]:
    """Mean and variance of a variable whose n-th moment is ``scale**n * gamma(1 + n * step)``."""
    first, second = gammaln(1.0 + step), gammaln(1.0 + 2.0 * step)
    mean = scale * np.exp(first)
    return mean, mean**2 * np.expm1(second - 2.0 * first)
