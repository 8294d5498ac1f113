"""Exponential integrals, the dilogarithm and Lambert's W, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.rows import formula, row
from varmat.plain_arrays import special
from varmat.typing import Operand

__all__ = ["exp1", "expi", "expn", "lambert_w0", "lambert_wm1", "spence", "wrightomega"]

# The branches of Lambert's W meet at -1 / e: its magnitude in two parts, and the coefficients of W
# near it, as a polynomial in sqrt(2 (e x + 1)).
_BRANCH_POINT = (0.36787944117144233, -1.2428753672788363e-17)
_AT_BRANCH_POINT = (
    226287557 / 37623398400,
    -1963 / 204120,
    680863 / 43545600,
    -221 / 8505,
    769 / 17280,
    -43 / 540,
    11 / 72,
    -1 / 3,
    1.0,
    -1.0,
)


def _lambert(x: Operand, branch: int) -> Operand:
    """Lambert's W. Next to the branch point SciPy's has half of the digits, and sometimes none on
    the lower branch.
    """
    p = np.sqrt(2.0 * math.e * np.maximum(x + _BRANCH_POINT[0] + _BRANCH_POINT[1], 0.0))
    near = np.polyval(_AT_BRANCH_POINT, p if branch == 0 else -p)
    return np.where(
        x < -_BRANCH_POINT[0], np.nan, np.where(p < 0.02, near, special.lambertw(x, branch).real)
    )


# fmt: off
exp1 = row("exp1", "-g * exp(-x) / x", "Exponential integral E1",
    None, "e1(x)", (0.5, 1e-10, 30.0), -1.21306, source="DLMF 6.2.1; SciPy", domain="x > 0")
expi = row("expi", "g * exp(x) / x", "Exponential integral Ei",
    None, "ei(x)", (0.5, -3.0, 1e-10, 30.0), 3.29744, source="DLMF 6.2.5; SciPy")
expn = row("expn",
    (None, "-g * where(x > 1, expn(maximum(x - 1.0, 1.0), y), (exp(-y) - (x - 1.0) * r) / y)"),
    "Generalised exponential integral E_x",
    None, "expint(x, y)", ((2, 0.5), (1, 0.5), (0, 3.0), (5, 1e-5), (3, 30.0)), -0.559774,
    source="DLMF 8.19(i), 8.19(v); SciPy", domain="y > 0, x = 0, 1, 2, ...",
    constant=("the order x",))
# The derivative is log(x) / (1 - x). Near x = 1 it is a function of 1 - x, which is exact there.
_IS_NEAR = "absolute(x - 1.25) < 0.75"
_NEAR, _ELSE = "minimum(maximum(x, 0.5), 2.0)", f"where({_IS_NEAR}, 3.0, x)"
spence = row("spence",
    f"g * where({_IS_NEAR}, -hyp2f1(1.0, 1.0, 2.0, 1.0 - {_NEAR}), log({_ELSE}) / (1.0 - {_ELSE}))",
    "Spence's integral, the dilogarithm of 1 - x",
    None, "re(polylog(2, 1 - x))", (0.5, 1e-5, 1.0001, 100.0), -1.38629,
    source="DLMF 25.12(i); SciPy", domain="x > 0")
lambert_w0 = row("lambert_w0", "g * exp(-r) / (1.0 + r)",
    "Principal real branch of Lambert's W, the solution of ``r exp(r) = x``",
    None, "re(lambertw(x))", (0.5, -0.3, 1e-10, 1e10, -0.36787), 0.520419,
    source="DLMF 4.13; Stan Special functions", domain="x > -1 / e, nan outside",
    ufunc=formula(lambda x: _lambert(x, 0)))
lambert_wm1 = row("lambert_wm1", "g * exp(-r) / (1.0 + r)",
    "Lower real branch of Lambert's W, the solution of ``r exp(r) = x`` below -1",
    None, "re(lambertw(x, -1))", (-0.25, -0.3, -1e-10, -0.36787), -7.46833,
    source="DLMF 4.13; Stan Special functions", domain="-1 / e < x < 0, nan outside",
    ufunc=formula(lambda x: np.where(x >= 0, np.nan, _lambert(x, -1))))
wrightomega = row("wrightomega", "g * r / (1.0 + r)",
    "Wright's omega function, the solution of ``r + log(r) = x``",
    None, "re(lambertw(exp(x)))", (0.5, -3.0, 30.0), 0.433828,
    source=("Corless and Jeffrey (2002), The Wright omega function, Lecture Notes in Computer "
    "Science 2385, 76-89; SciPy"))
# fmt: on
