"""Powers, Box-Cox transforms and arithmetic, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.rules import ZERO
from varmat.functions.aliases import alias
from varmat.functions.elementwise import reciprocal
from varmat.functions.rows import formula, row
from varmat.typing import Operand

__all__ = [
    "boxcox",
    "boxcox1p",
    "cosm1",
    "fdim",
    "fma",
    "inv",
    "inv_boxcox",
    "inv_boxcox1p",
    "inv_sqrt",
    "inv_square",
    "powm1",
    "step",
]


def _inv_boxcox1p(x: Operand, y: Operand) -> Operand:
    """`scipy.special.inv_boxcox1p`, which is ``x`` where ``x * y`` is small."""
    small = np.abs(x * y) < 1e-154
    return np.expm1(np.where(small, x, np.log1p(x * y) / np.where(small, 1.0, y)))


# fmt: off
# (log(1 + v) / v)' is -1/2 2F1(2, 2; 3; -v). (expm1(u) / u)' is 1/2 1F1(2; 3; u), which is infinite
# from u = 1000 on, where SciPy would sum for ever.
inv = alias("inv", reciprocal)
inv_sqrt = row("inv_sqrt", "-0.5 * g * r / x", "``1 / sqrt(x)``",
    lambda x: 1.0 / math.sqrt(x), "1 / sqrt(x)", (0.25, 1e-200, 1e8), -4.0,
    source="DLMF 4.7(ii); Stan Power and logarithm functions", domain="x > 0",
    ufunc=formula(lambda x: 1.0 / np.sqrt(x)))
inv_square = row("inv_square", "-2.0 * g * r / x", "``1 / x**2``",
    lambda x: 1.0 / (x * x), "1 / x**2", (-0.5, 1e-100, 1e8), 16.0,
    source="DLMF 1.4(iii); Stan Power and logarithm functions", domain="x is not 0",
    ufunc=formula(lambda x: 1.0 / np.square(x)))
powm1 = row("powm1", ("g * (y * power(x, y - 1))", "g * power(x, y) * log(x)"),
    "``x**y - 1`` without cancellation",
    None, "x**y - 1", ((1.2, 2.5), (3.0, 1e-10), (0.5, -3.0)), 3.28634,
    source="DLMF 4.7(ii); SciPy", domain="x > 0")
# At the lower end of the domain the transform is -1 / y, and the logarithm is not used.
_IN_EXPONENT = (
    "g * where({0}, square(r), 0.5 * square({1}) * hyp1f1(2.0, 3.0, minimum(y * {1}, 1000.0)))"
).format
boxcox = row("boxcox",
    ("g * power(x, y - 1)", _IN_EXPONENT("x == 0", "log(where(x == 0, 1.0, x))")),
    "Box-Cox transform ``(x**y - 1) / y``",
    None, "(x**y - 1) / y if y else log(x)", ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5)), 1.31453,
    source=("Box and Cox (1964), An analysis of transformations, Journal of the Royal "
    "Statistical Society B 26, 211-252; SciPy"), domain="x > 0")
boxcox1p = row("boxcox1p",
    ("g * power(1.0 + x, y - 1)", _IN_EXPONENT("x == -1", "log1p(where(x == -1, 0.0, x))")),
    "Box-Cox transform of 1 + x",
    None, "((1 + x)**y - 1) / y if y else log1p(x)",
    ((1.2, 2.5), (3.0, 1e-8), (-0.5, -1.5), (1e-10, 0.5)), 3.26313,
    source="SciPy", domain="x > -1")
inv_boxcox = row("inv_boxcox",
    ("g * r / (1.0 + x * y)", "-0.5 * g * r * square(x) * hyp2f1(2.0, 2.0, 3.0, -x * y)"),
    "Inverse of `boxcox` in its first argument",
    None, "(1 + x * y)**(1 / y) if y else exp(x)", ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5)), 0.435275,
    source="SciPy", domain="1 + x y > 0")
inv_boxcox1p = row("inv_boxcox1p", ("g * inv_boxcox(x, y) / (1.0 + x * y)",
    "-0.5 * g * inv_boxcox(x, y) * square(x) * hyp2f1(2.0, 2.0, 3.0, -x * y)"),
    "Inverse of `boxcox1p` in its first argument",
    None, "(1 + x * y)**(1 / y) - 1 if y else expm1(x)",
    ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5), (-40.0, 1e-3)), 0.435275,
    source="SciPy", domain="1 + x y > 0", ufunc=formula(_inv_boxcox1p), answers_for="inv_boxcox1p")
fma = row("fma", ("g * y", "g * x", "g"), "``x * y + z``",
    lambda x, y, z: x * y + z, "x * y + z", ((1.2, 2.3, 0.4), (-3.0, 1e5, 7.0)), 2.3,
    source="Stan Composed functions", ufunc=formula(lambda x, y, z: x * y + z))
fdim = row("fdim", tuple(f"where(x > y, {g}, where(x <= y, 0.0, nan * g))" for g in ("g", "-g")),
    "Positive difference ``max(x - y, 0)``",
    None, "max(x - y, 0)", ((1.5, -2.0), (-3.0, 4.0)), 1.0,
    source="Stan Step-like functions", note="The derivative at x = y is 0",
    ufunc=formula(lambda x, y: np.where(x <= y, 0.0, x - y)))
step = row("step", ZERO, "1 where x >= 0, else 0",
    None, "mpf(x >= 0)", (0.5, -2.0), 0.0,
    source="Stan Logical functions", note="The derivative is 0, at 0 as well",
    ufunc=formula(lambda x: np.heaviside(x, 1.0)))
cosm1 = row("cosm1", "-g * sin(x)", "``cos(x) - 1``, exact near 0",
    None, "cos(x) - 1", (0.5, -2.0, 1e-8), -0.479426, source="DLMF 4.20; SciPy")
# fmt: on
