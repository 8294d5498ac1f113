"""Forms of `scipy.special`."""

from __future__ import annotations

import numpy as np

from varmat.functions.arrays.exponentials import log_sum_exp
from varmat.typing import Function, Operand, Result, Setting


def logsumexp(
    a: Operand,
    axis: Setting = None,
    b: Operand = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Result:
    if not return_sign:
        return log_sum_exp(a, axis, b, keepdims)
    largest = np.max(a, axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    total = np.sum(np.exp(a - largest) * (1.0 if b is None else b), axis, keepdims=keepdims)
    shift = largest if keepdims else np.reshape(largest, np.shape(total))
    return np.log(np.abs(total)) + shift, np.sign(total)


def _spherical(name: str) -> Function:
    def function(n: int, z: Operand) -> Result:
        import scipy.special

        return np.sqrt(0.5 * np.pi / z) * getattr(scipy.special, name)(np.add(n, 0.5), z)

    return function


spherical_jn, spherical_yn = _spherical("jv"), _spherical("yv")
spherical_in, spherical_kn = _spherical("iv"), _spherical("kv")
