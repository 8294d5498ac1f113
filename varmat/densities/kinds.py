"""Kinds of arguments, by which the functions of a density are compiled: numbers or arrays, data or
variables.
"""

from __future__ import annotations

import numpy as np

from varmat.core.array_methods import FLOAT64
from varmat.core.variables import ARRAYS, Var
from varmat.typing import Operand

# A use is a number with two bits for each argument, and what is kept if terms may be dropped.
IS_ARRAY, IS_VARIABLE = 1, 2
KINDS = {float: 0, np.ndarray: IS_ARRAY, Var: IS_VARIABLE} | dict.fromkeys(
    ARRAYS, IS_ARRAY | IS_VARIABLE
)


def as_number(x: Operand) -> tuple[float, int] | None:
    """A number or an array of integers as floats, with its kind; None for anything else."""
    kind = type(x)
    if kind is int or kind is np.float64:
        return float(x), 0
    if kind is np.ndarray and x.ndim and x.dtype.kind in "iub":
        return x.astype(FLOAT64), IS_ARRAY
    return None
