"""Hypergeometric functions with at most two upper parameters and one lower, as a table.

The parameters are constant but for `hypergeometric_1F0` and `hyp2f1`."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from varmat.core.elementwise import ROWS, Elementwise
from varmat.functions.aliases import alias
from varmat.functions.rows import formula, row
from varmat.functions.special import hypergeometric_derivatives
from varmat.typing import Operand

__all__ = ["hyp0f1", "hyp1f1", "hyp2f1", "hypergeometric_1F0", "hypergeometric_2F1", "hyperu"]


def _power_of_complement(x: Operand, y: Operand) -> Operand:
    """``(1 - y)**-x``. Because ``1 - y`` is rounded, the form with the logarithm loses less where
    the logarithm is small, and more elsewhere.
    """
    near = np.exp(-x * np.log1p(-y))
    return np.where(abs(y + 0.25) < 0.75, near, np.power(1.0 - y, -x))


# fmt: off
_PARAMETERS = ("the parameter x", "the parameter y", "the parameter z")
hypergeometric_1F0 = row("hypergeometric_1F0", ("-g * r * log1p(-y)", "g * x * r / (1.0 - y)"),
    "Hypergeometric function 1F0(x; y), ``(1 - y)**-x``",
    None, "(1 - y)**-x", ((0.5, 0.3), (-2.5, -3.0), (7.0, 1e-10), (30.0, 0.99)), 0.426308,
    source="DLMF 15.4.6, 16.2.1", domain="y < 1, nan outside",
    note="Stan refuses y <= -1, where the power series does not converge",
    ufunc=formula(_power_of_complement))
hyp0f1 = row("hyp0f1", (None, "g * hyp0f1(x + 1.0, y) / x"),
    "Confluent hypergeometric limit function 0F1(x; y)",
    None, "hyp0f1(x, y)", ((2.5, 0.5), (2.5, -30.0)), 0.460416,
    source="DLMF 16.2.1, 16.3.1; SciPy", constant=_PARAMETERS[:1])
hyp1f1 = row("hyp1f1", (None, None, "g * x / y * hyp1f1(x + 1.0, y + 1.0, z)"),
    "Kummer's function 1F1(x; y; z)",
    None, "hyp1f1(x, y, z)", ((2.0, 3.0, 0.5), (1.0, 0.5, -30.0)), 0.974425,
    source="DLMF 13.2.2, 13.3.15; SciPy", constant=_PARAMETERS[:2])
hyperu = row("hyperu", (None, None, "-g * x * hyperu(x + 1.0, y + 1.0, z)"),
    "Tricomi's function U(x, y, z)",
    None, "hyperu(x, y, z)", ((1.5, 1.5, 0.5), (1.5, 1.5, 400.0)), -1.85454,
    source="DLMF 13.2.6, 13.3.22; SciPy", domain="z > 0", constant=_PARAMETERS[:2])
_HYP2F1_RANGE = (
    "The derivatives in the parameters are summed with the series: relative error 1e-13 where its "
    "terms do not cancel; where they do, and fewer than eight digits are left, `DomainError` is "
    "raised"
)
_HYP2F1_POINTS = ((1.0, 1.5, 2.5, 0.01),)
hyp2f1 = row("hyp2f1", ("g * hyp2f1_da(x, y, z, w)", "g * hyp2f1_db(x, y, z, w)",
    "g * hyp2f1_dc(x, y, z, w)", "g * x * y / z * hyp2f1(x + 1.0, y + 1.0, z + 1.0, w)"),
    "Gauss's function 2F1(x, y; z; w)",
    None, "hyp2f1(x, y, z, w)", ((1.0, 1.5, 2.5, 0.01), (2.0, 2.0, 3.0, -30.0)), 0.0060649,
    source="DLMF 15.2.1, 15.5.1; SciPy", domain="w < 1, z is not 0, -1, -2, ...",
    note=_HYP2F1_RANGE)
# fmt: on


def _hyp2f1_text(orders: tuple[int, ...], arguments: str = "(x, y, z, w)") -> str:
    letters = "".join(letter * n for letter, n in zip("abc", orders, strict=True))
    return ("hyp2f1_d" + letters if letters else "hyp2f1") + arguments


def _hyp2f1_slope(i: int, j: int, k: int) -> str:
    """Write the derivative in w of 2F1(x, y; z; w), x y / z 2F1(x + 1, y + 1; z + 1; w),
    differentiated in the parameters.
    """
    terms = []
    for p, q, m in product(range(min(i, 1) + 1), range(min(j, 1) + 1), range(k + 1)):
        number = float(
            (-1) ** m * math.factorial(m) * (i if p else 1) * (j if q else 1) * math.comb(k, m)
        )
        text = _hyp2f1_text((i - p, j - q, k - m), "(x + 1.0, y + 1.0, z + 1.0, w)")
        terms.append(
            f"{number!r}{'' if p else ' * x'}{'' if q else ' * y'}{' / z' * (m + 1)} * {text}"
        )
    return f"g * ({' + '.join(terms)})"


def _hyp2f1_row(orders: tuple[int, ...], slope: float = 0.0) -> Elementwise:
    """Make the row of a derivative with respect to the parameters. The rows that its rules need are
    made when it is first evaluated.
    """
    name = _hyp2f1_text(orders, "")
    if name in ROWS:
        return ROWS[name]
    above = [tuple(n + (i == axis) for i, n in enumerate(orders)) for axis in range(3)]
    axes = tuple(axis for axis, n in enumerate(orders) for _ in range(n))

    def value(*values: Operand) -> Operand:
        for x in (*above, *product(*(range(n + 1) for n in orders))):
            _hyp2f1_row(x)
        return hypergeometric_derivatives.hyp2f1_derivative(axes, *values)

    return row(
        name,
        (*(f"g * {_hyp2f1_text(x)}" for x in above), _hyp2f1_slope(*orders)),
        f"Derivative of `hyp2f1` with respect to its parameters x, y and z, of orders {orders[0]}, "
        f"{orders[1]} and {orders[2]}",
        None,
        f"diff(lambda r, s, t: hyp2f1(r, s, t, w), (x, y, z), {orders})",
        _HYP2F1_POINTS,
        slope,
        source="DLMF 15.2.1, 15.5.1",
        domain="w < 1, z is not 0, -1, -2, ...",
        note=_HYP2F1_RANGE,
        ufunc=formula(value),
        module=__name__,
    )


hypergeometric_2F1 = alias("hypergeometric_2F1", hyp2f1)  # noqa: N816 - Stan's name
hyp2f1_da = _hyp2f1_row((1, 0, 0), 4.35319e-05)
hyp2f1_db = _hyp2f1_row((0, 1, 0), 0.00406941)
hyp2f1_dc = _hyp2f1_row((0, 0, 1), -0.00244464)
