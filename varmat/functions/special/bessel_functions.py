"""Bessel functions of order x, as a table. The order is constant in `jv` and `yv`."""

from __future__ import annotations

from varmat.core.dispatch import SPECIAL
from varmat.core.elementwise import Elementwise
from varmat.functions.aliases import alias
from varmat.functions.rows import ROOT_PI, formula, row
from varmat.functions.special import order_derivatives
from varmat.typing import Function

__all__ = [
    "bessel_first_kind",
    "bessel_second_kind",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "log_modified_bessel_first_kind",
    "modified_bessel_first_kind",
    "modified_bessel_second_kind",
    "y0",
    "y1",
    "yv",
]

# fmt: off
_ORDER = ("the order x",)
j0 = row("j0", "-g * j1(x)", "Bessel function of the first kind of order 0",
    None, "besselj(0, x)", (0.5, -3.0, 0.0, 50.0), -0.242268, source="DLMF 10.2.2, 10.6(i); SciPy")
j1 = row("j1", "0.5 * g * (j0(x) - jv(2.0, x))", "Bessel function of the first kind of order 1",
    None, "besselj(1, x)", (0.5, -3.0, 0.0, 50.0), 0.453933, source="DLMF 10.2.2, 10.6(i); SciPy")
y0 = row("y0", "-g * y1(x)", "Bessel function of the second kind of order 0",
    None, "bessely(0, x)", (0.5, 3.0, 1e-5, 50.0), 1.47147,
    source="DLMF 10.2.3, 10.6(i); SciPy", domain="x > 0")
y1 = row("y1", "0.5 * g * (y0(x) - yv(2.0, x))", "Bessel function of the second kind of order 1",
    None, "bessely(1, x)", (0.5, 3.0, 1e-5, 50.0), 2.49843,
    source="DLMF 10.2.3, 10.6(i); SciPy", domain="x > 0")
i0 = row("i0", "g * i1(x)", "Modified Bessel function of the first kind of order 0",
    None, "besseli(0, x)", (0.5, -3.0, 1e-8, 500.0), 0.257894,
    source="DLMF 10.25.2, 10.29(i); SciPy")
i1 = row("i1", "0.5 * g * (i0(x) + iv(2.0, x))",
    "Modified Bessel function of the first kind of order 1",
    None, "besseli(1, x)", (0.5, -3.0, 1e-8, 500.0), 0.547695,
    source="DLMF 10.25.2, 10.29(i); SciPy")
k0 = row("k0", "-g * k1(x)", "Modified Bessel function of the second kind of order 0",
    None, "besselk(0, x)", (0.5, 3.0, 1e-8, 500.0), -1.65644,
    source="DLMF 10.27.4, 10.29(i); SciPy", domain="x > 0")
k1 = row("k1", "-0.5 * g * (k0(x) + kv(2.0, x))",
    "Modified Bessel function of the second kind of order 1",
    None, "besselk(1, x)", (0.5, 3.0, 1e-8, 500.0), -4.2373,
    source="DLMF 10.27.4, 10.29(i); SciPy", domain="x > 0")
i0e = row("i0e", "-g * sign(x) * hyp1f1(1.5, 2.0, -2.0 * absolute(x))", "``exp(-abs(x)) i0(x)``",
    None, "exp(-abs(x)) * besseli(0, x)", (0.5, -3.0, 1e-8, 1e5), -0.488614,
    source="DLMF 10.25.2, 13.6(iii); SciPy", note="The derivative at 0 is 0")
i1e = row("i1e",
    "0.5 * g * (hyp1f1(1.5, 3.0, -2.0 * absolute(x)) - absolute(x) * hyp1f1(2.5, 4.0, -2.0 * "
    "absolute(x)))",
    "``exp(-abs(x)) i1(x)``",
    None, "exp(-abs(x)) * besseli(1, x)", (0.5, -3.0, 1e-8, 1e5), 0.175773,
    source="DLMF 10.25.2, 13.6(iii); SciPy")
# From x = 20 on the differences of k0e, k1e and kve lose digits, and hyperu, whose argument is 2 x,
# is exact.
_FAR = "maximum(x + x, 40.0)"
k0e = row("k0e", f"g * where(x > 20.0, -{ROOT_PI} * hyperu(1.5, 2.0, {_FAR}), r - k1e(x))",
    "``exp(x) k0(x)``",
    None, "exp(x) * besselk(0, x)", (0.5, 3.0, 1e-8, 1e5), -1.2069,
    source="DLMF 10.27.4, 13.6(iii); SciPy", domain="x > 0")
k1e = row("k1e",
    f"g * where(x > 20.0, {ROOT_PI} * (2.0 * hyperu(1.5, 3.0, {_FAR}) - 6.0 * x * hyperu(2.5, "
    f"4.0, {_FAR})), r - 0.5 * (k0e(x) + kve(2.0, x)))",
    "``exp(x) k1(x)``",
    None, "exp(x) * besselk(1, x)", (0.5, 3.0, 1e-3, 1e4), -4.25512,
    source="DLMF 10.27.4, 13.6(iii); SciPy", domain="x > 0")
jv = row("jv", (None, "0.5 * g * (jv(x - 1.0, y) - jv(x + 1.0, y))"),
    "Bessel function of the first kind of order x",
    None, "besselj(x, y)", ((2.0, 1.7), (0.5, 3.0), (7.5, 50.0)), 0.246308,
    source="DLMF 10.2.2, 10.6(i); SciPy", constant=_ORDER)
yv = row("yv", (None, "0.5 * g * (yv(x - 1.0, y) - yv(x + 1.0, y))"),
    "Bessel function of the second kind of order x",
    None, "bessely(x, y)", ((2.0, 1.7), (0.5, 3.0), (7.5, 50.0)), 0.641155,
    source="DLMF 10.2.3, 10.6(i); SciPy", domain="y > 0", constant=_ORDER)
_ANY_ORDER = (
    "The derivative in the order is an integral without cancellation: worst relative error 1e-13 "
    "for orders up to 400"
)
# Confluent functions, as for the orders 0 and 1, would have no derivative in the order.
_SCALED = (
    _ANY_ORDER
    + ". That in y is a difference of neighbours: where y is large its relative error is about "
    "1e-15 y, of the second derivative 1e-15 y**2, and beyond y = 1e9 the value is nan; "
    "`i0e`, `i1e`, `k0e` and `k1e` have all digits"
)
_REAL = "y > 0; for whole numbers x all y, and no derivative in x for y < 0"
_IN_ORDER = "where(r == 0, 0.0, g * r * log_{}v_derivative(10.0, x, y))".format
iv = row("iv", (_IN_ORDER("i"), "0.5 * g * (iv(x - 1.0, y) + iv(x + 1.0, y))"),
    "Modified Bessel function of the first kind of order x",
    None, "besseli(x, y)", ((2.0, 1.7), (0.5, 3.0), (7.5, 500.0), (30.5, 3.0)), -0.529331,
    source="DLMF 10.25.2, 10.29(i), 10.38; SciPy", domain=_REAL, note=_ANY_ORDER)
kv = row("kv", (_IN_ORDER("k"), "-0.5 * g * (kv(x - 1.0, y) + kv(x + 1.0, y))"),
    "Modified Bessel function of the second kind of order x",
    None, "besselk(x, y)", ((2.1, 1.7), (0.5, 3.0), (7.5, 500.0)), 0.41133,
    source="DLMF 10.27.4, 10.29(i), 10.38; SciPy", domain="y > 0", note=_ANY_ORDER)
ive = row("ive", (_IN_ORDER("i"), "g * (0.5 * (ive(x - 1.0, y) + ive(x + 1.0, y)) - sign(y) * r)"),
    "``exp(-abs(y)) iv(x, y)``",
    None, "exp(-abs(y)) * besseli(x, y)", ((2.0, 1.7), (0.5, 3.0), (7.5, 100.0)), -0.0967,
    source="DLMF 10.25.2, 10.29(i), 10.38; SciPy", domain=_REAL, note=_SCALED)
kve = row("kve", (_IN_ORDER("k"), "g * (r - 0.5 * (kve(x - 1.0, y) + kve(x + 1.0, y)))"),
    "``exp(y) kv(x, y)``",
    None, "exp(y) * besselk(x, y)", ((2.1, 1.7), (0.5, 3.0)), 2.2516,
    source="DLMF 10.27.4, 10.29(i), 10.38; SciPy", domain="y > 0", note=_SCALED)
bessel_first_kind = alias("bessel_first_kind", jv)
bessel_second_kind = alias("bessel_second_kind", yv)
modified_bessel_first_kind = alias("modified_bessel_first_kind", iv)
modified_bessel_second_kind = alias("modified_bessel_second_kind", kv)
log_modified_bessel_first_kind = row("log_modified_bessel_first_kind",
    ("g * log_iv_derivative(10.0, x, y)", "g * log_iv_derivative(1.0, x, y)"),
    "Logarithm of `iv`, without overflow or underflow",
    None, "log(besseli(x, y))", ((2.0, 0.9), (0.5, 3.0), (1.5, 1000.0), (300.5, 0.7)), -1.74328,
    source="DLMF 10.25.2, 10.29(i), 10.38; Stan Combinatorial functions",
    domain="x >= 0, 0 < y < 1e9", note=_ANY_ORDER,
    ufunc=formula(order_derivatives.log_iv, order_derivatives.log_iv_straight))
_LOG_BESSEL_POINTS = ((10, 2.1, 0.9), (1, 0.3, 1.5))
# fmt: on


def _log_bessel_row(
    letter: str, kind: str, ufunc: Function, slope: float, straight: Function | None = None
) -> Elementwise:
    """Make the row of the derivatives of the logarithm of `iv` or `kv`."""
    name = f"log_{letter}v_derivative"
    about = (
        "Derivative, with respect to order y and argument z, of the logarithm of the modified "
        f"Bessel function of {kind} kind; "
    )
    return row(
        name,
        (None, f"g * {name}(x + 10.0, y, z)", f"g * {name}(x + 1.0, y, z)"),
        about + "the two digits of x are the orders of differentiation, 10 for once in y",
        None,
        f"diff(lambda s, t: log(bessel{letter}(s, t)), (y, z), divmod(int(x), 10))",
        _LOG_BESSEL_POINTS,
        slope,
        source="DLMF 10.25.2, 10.38" if letter == "i" else "DLMF 10.27.4, 10.38",
        domain="x is one of 0, 1, 2, ..., 10, 11, ..., z > 0",
        note=_ANY_ORDER,
        constant=_ORDER,
        ufunc=formula(ufunc, straight),
        module=__name__,
    )


log_iv_derivative = _log_bessel_row(
    "i",
    "first",
    order_derivatives.log_iv_derivative,
    -0.367031,
    order_derivatives.log_iv_derivative_straight,
)
log_kv_derivative = _log_bessel_row("k", "second", order_derivatives.log_kv_derivative, 0.479655)

# Further ufuncs of SciPy that are the same functions of real numbers.
SPECIAL.update(jve=jv.call, yve=yv.call)
