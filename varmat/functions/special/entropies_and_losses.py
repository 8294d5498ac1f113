"""``x log(y)``, entropies and losses, as a table."""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.aliases import alias
from varmat.functions.rows import formula, row
from varmat.plain_arrays import special
from varmat.typing import Operand

__all__ = [
    "binary_log_loss",
    "entr",
    "huber",
    "kl_div",
    "lmultiply",
    "multiply_log",
    "pseudo_huber",
    "rel_entr",
    "xlog1py",
    "xlogy",
]


def kl_div_series(x: Operand, v: Operand, difference: Operand) -> Operand:
    """``x log(x / y) - x + y``, given ``x - y`` and that over ``x + y``, which is small."""
    square = v * v
    tail: Operand = 0.0
    for k in range(17, 1, -2):
        tail = (tail + 1.0 / k) * square
    return difference * v + 2.0 * x * v * tail


def _kl_div(x: Operand, y: Operand) -> Operand:
    """`scipy.special.kl_div`, and a series where its terms cancel."""
    v = np.divide(x - y, x + y)
    return np.where((np.abs(v) < 0.1) & (y > 0), kl_div_series(x, v, x - y), special.kl_div(x, y))


def kl_div_of_numbers(x: float, y: float) -> float:
    """`kl_div` of Python floats; anything unusual is left to the arrays."""
    if not (0.0 <= x < math.inf and 0.0 < y < math.inf):
        raise ArithmeticError
    v = (x - y) / (x + y)
    if abs(v) < 0.1:
        return kl_div_series(x, v, x - y)  # type: ignore[no-any-return]
    return (x * math.log(x / y) - x if x else 0.0) + y


# fmt: off
# At x = y = 0 the quotient is 0 over 1 instead of 0 over 0.
_BOTH_ZERO = "(x == 0) & (y == 0)"
_DIVISOR = f"where({_BOTH_ZERO}, 1.0, y)"
_RATIO = f"x / {_DIVISOR}"
# The logarithm of a quotient near 1 has few digits.
_IS_ALIKE = "absolute(x - y) < 0.5 * y"
_LOG_RATIO = f"where({_IS_ALIKE}, log1p((x - y) / {_DIVISOR}), log(divide(x, y)))"
xlogy = row("xlogy", ("g * log(y)", f"g * ({_RATIO})"),
    "``x log(y)``, 0 where x = 0 (and y is not nan)",
    None, "x * log(y)", ((1.2, 0.5), (-0.4, 1e-100), (0.0, 2.0), (3.0, 1e10)), -0.693147,
    source="SciPy; Stan Composed functions", domain="y > 0",
    note="At x = y = 0 the derivatives are -inf and 0")
lmultiply = alias("lmultiply", xlogy)
multiply_log = alias("multiply_log", xlogy)
xlog1py = row("xlog1py", ("g * log1p(y)", "g * (x / where((x == 0) & (y == -1), 1.0, 1.0 + y))"),
    "``x log(1 + y)``, 0 where x = 0 (and y is not nan)",
    None, "x * log1p(y)", ((1.2, 0.5), (-0.4, 1e-20), (0.0, 2.0), (3.0, -0.999)), 0.405465,
    source="SciPy", domain="y > -1", note="At x = 0, y = -1 the derivatives are -inf and 0")
entr = row("entr", "g * (-log(x) - 1.0)", "Entropy term ``-x log(x)``",
    None, "-x * log(x)", (0.5, 1e-300, 3.0), -0.306853, source="SciPy", domain="x > 0")
rel_entr = row("rel_entr", (f"g * ({_LOG_RATIO} + 1.0)", f"-g * ({_RATIO})"),
    "Relative entropy term ``x log(x / y)``",
    None, "x * log(x / y)", ((1.2, 0.5), (1e-5, 3.0), (7.0, 1e10)), 1.87547,
    source="SciPy", domain="x > 0, y > 0")
kl_div = row("kl_div",
    (f"g * ({_LOG_RATIO})", f"g * where({_BOTH_ZERO}, 1.0, (y - x) / {_DIVISOR})"),
    "Kullback-Leibler term ``x log(x / y) - x + y``",
    kl_div_of_numbers, "x * log(x / y) - x + y",
    ((1.2, 0.5), (1e-5, 3.0), (7.0, 1e10), (1e8, 1e8 - 1.0), (3.0, 3.0000001)), 0.875469,
    source="SciPy", domain="x > 0, y > 0", ufunc=formula(_kl_div),
    answers_for="kl_div")
huber = row("huber", ("g * maximum(0.0, absolute(y) - x)", "g * minimum(maximum(y, -x), x)"),
    "Huber's loss: ``y**2 / 2`` up to ``abs(y) = x``, linear from there",
    None, "y * y / 2 if abs(y) <= x else x * (abs(y) - x / 2)",
    ((1.2, 2.5), (1.2, 0.5), (0.7, -3.0)), 1.3,
    source=("Huber (1964), Robust estimation of a location parameter, Annals of Mathematical "
    "Statistics 35, 73-101; SciPy"), domain="x > 0")
pseudo_huber = row("pseudo_huber",
    ("g * absolute(y) * (absolute(y) / hypot(x, y)) * square(y / (hypot(x, y) + x))",
    "g * x * (y / hypot(x, y))"),
    "Smooth version of Huber's loss, ``x**2 (sqrt(1 + (y / x)**2) - 1)``",
    None, "x * x * (sqrt(1 + (y / x)**2) - 1)",
    ((1.2, 2.5), (1.2, 0.5), (0.7, -1e3), (3.0, 1e-3), (1e-10, 5.0), (1e-80, 2.0)), 0.892362,
    source="SciPy", domain="x > 0")
binary_log_loss = row("binary_log_loss", (None, "where(x == 1, -g / y, g / (1.0 - y))"),
    "Minus the logarithm of the probability of a binary outcome x, if 1 has the probability y",
    None, "-log(y) if x == 1 else -log1p(-y)", ((1, 0.3), (0, 0.3), (0, 1e-10)), -3.33333,
    source="Stan Probability-related functions", domain="x is 0 or 1, 0 < y < 1",
    constant=("the outcome x",),
    ufunc=formula(lambda x, y: np.where(x == 1, -np.log(y), -np.log1p(-y))))
# fmt: on
