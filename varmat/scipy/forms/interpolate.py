"""Forms of `scipy.interpolate`."""

from __future__ import annotations

from varmat.functions.rarer.interpolation import PchipInterpolator
from varmat.functions.rarer.splines import BSpline
from varmat.typing import Operand, Result


def pchip_interpolate(xi: Operand, yi: Operand, x: Operand, der: int = 0, axis: int = 0) -> Result:
    return PchipInterpolator(xi, yi, axis)(x, der)


def splev(x: Operand, tck: tuple[Operand, Operand, int], der: int = 0) -> Result:
    t, c, k = tck
    return BSpline(t, c, k)(x, der)
