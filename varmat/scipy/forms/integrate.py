"""Forms of `scipy.integrate`."""

from __future__ import annotations

import numpy as np

from varmat.typing import Function, Operand, Result

trapezoid = np.trapezoid


def fixed_quad(
    func: Function, a: Operand, b: Operand, args: tuple[Operand, ...] = (), n: int = 5
) -> Result:
    x, w = np.polynomial.legendre.leggauss(n)
    half = (b - a) * 0.5
    return half * np.sum(w * func(half * (x + 1.0) + a, *args), axis=-1), None
