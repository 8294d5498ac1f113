"""`numpy.ma` for code that makes masked arrays of all data: `varmat.numpy.ma`.

While something is differentiated, the functions below return variables unchanged, and data without
a masked element as an array that waits for variables, because masked arrays cannot meet variables.
Everything else is `numpy.ma`'s."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from varmat.numpy import making
from varmat.numpy.buffers import waiting
from varmat.typing import Function, Operand

__all__ = ["asanyarray", "asarray", "atleast_1d", "atleast_2d", "atleast_3d"]


def _without_mask(function: Function, of_variables: Function) -> Function:
    @wraps(function)
    def make(a: Operand, *args: Operand, **settings: Any) -> Operand:
        if making.holds(a):
            return of_variables(a, *args, **settings)
        result = function(a, *args, **settings)
        if not making.is_differentiating() or np.ma.is_masked(result):
            return result
        return waiting(np.array(np.ma.getdata(result)))

    return make


asarray = _without_mask(np.ma.asarray, making.asarray)
asanyarray = _without_mask(np.ma.asanyarray, making.asanyarray)
atleast_1d = _without_mask(np.ma.atleast_1d, making.atleast_1d)
atleast_2d = _without_mask(np.ma.atleast_2d, making.atleast_2d)
atleast_3d = _without_mask(np.ma.atleast_3d, making.atleast_3d)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(np.ma, name)
