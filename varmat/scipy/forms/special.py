"""Forms of `scipy.special`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.functions.arrays.exponentials import log_sum_exp

if TYPE_CHECKING:
    from varmat.typing import Function, Operand, Result

logsumexp = log_sum_exp


def _spherical(name: str) -> Function:
    def function(n: int, z: Operand) -> Result:
        import scipy.special

        return np.sqrt(0.5 * np.pi / z) * getattr(scipy.special, name)(np.add(n, 0.5), z)

    return function


spherical_jn, spherical_yn = _spherical("jv"), _spherical("yv")
spherical_in, spherical_kn = _spherical("iv"), _spherical("kv")
