"""NumPy's reductions, for lists of variables too."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from varmat.numpy.making import asarray, holds
from varmat.typing import Function, Operand

# Functions of NumPy whose first argument may be a list.
REDUCTIONS = (
    np.all, np.amax, np.amin, np.any, np.argmax, np.argmin, np.average, np.count_nonzero,
    np.cumprod, np.cumsum, np.max, np.mean, np.median, np.min, np.nanmax, np.nanmean, np.nanmin,
    np.nanprod, np.nanstd, np.nansum, np.nanvar, np.percentile, np.prod, np.ptp, np.quantile,
    np.std, np.sum, np.var,
)  # fmt: skip
__all__ = [function.__name__ for function in REDUCTIONS]


def _arrayed(x: Operand) -> Operand:
    return asarray(x) if isinstance(x, (list, tuple)) and holds(x) else x


def _of_lists(function: Function) -> Function:
    @wraps(function)
    def of_lists(*args: Operand, **settings: Any) -> Operand:
        return function(*map(_arrayed, args), **{k: _arrayed(x) for k, x in settings.items()})

    of_lists.__module__ = "varmat.numpy"  # where pickle looks for it
    return of_lists


globals().update((function.__name__, _of_lists(function)) for function in REDUCTIONS)
