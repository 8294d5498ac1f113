"""The elementwise functions of NumPy, as a table: one row per ufunc.

`varmat.functions.rows` tells how a row reads."""

from __future__ import annotations

import math
import operator

import numpy as np

from varmat.core.dispatch import SPECIAL, implements
from varmat.core.elementwise import ROWS
from varmat.core.rules import ZERO
from varmat.functions.numpy_kernels import (
    PRODUCTS,
    length,
    log_of_sum,
    log_of_sum_of_numbers,
    power_below,
    power_by_products,
    product_of_power,
    rounding,
    scaled_by_power_of_two,
    sign_of_number,
)
from varmat.functions.rows import DEGREE, LN2, LN10, formula, row
from varmat.typing import Operand

# fmt: off
# Arithmetic.

_POWER = ("g * (y * power_below(x, y, r))", "g * r * log(where(x == 0, 1.0, x))")
_CONSTANT_POWERS = {2.0: "square", 0.5: "sqrt", 1.0: "positive", -1.0: "reciprocal"} | {
    float(n): PRODUCTS[n] for n in PRODUCTS
}
_POWER_NOTE = (
    "At x = 0 the derivative with respect to y is 0, and where y = 0 that with respect to x is 0 "
    "as well"
)
_TIES = "Where the operands are equal the first one takes the derivative"
_AT_ZERO = "The derivative at 0 is 0"
_STEPS = "Piecewise constant: the derivative is 0, at the steps as well"

row("add", ("g", "g"), "Sum, also written ``x + y``",
    "x + y", "x + y", ((1.5, -2.25), (1e10, 3.0)), 1.0,
    source="DLMF 1.4(iii); NumPy")
row("subtract", ("g", "-g"), "Difference, also written ``x - y``",
    "x - y", "x - y", ((1.5, -2.25), (1e10, 3.0)), 1.0,
    source="DLMF 1.4(iii); NumPy")
row("multiply", ("g * y", "g * x"), "Product, also written ``x * y``",
    "x * y", "x * y", ((1.5, -2.25), (1e10, 3.0)), -2.25,
    source="DLMF 1.4(iii); NumPy", with_itself="square")
row("divide", ("g / y", "-g * r / y"), "Quotient, also written ``x / y``",
    "x / y", "x / y", ((1.5, -2.0), (1e-10, 3.0), (0.0, 7.0)), -0.5,
    source="DLMF 1.4(iii); NumPy", domain="y is not 0")
row("power", _POWER, "Power, also written ``x**y``",
    math.pow, "x**y", ((1.2, 2.5), (3.0, -0.5), (0.01, 40.0), (250.0, 100.0)), 3.28634,
    source="DLMF 4.2(iv), 4.7(ii); NumPy", domain="x > 0, or x < 0 with whole numbers y",
    note=_POWER_NOTE, shortcuts=_CONSTANT_POWERS)
row("float_power", _POWER, "Power, in floating-point numbers",
    math.pow, "x**y", ((1.2, 2.5), (3.0, -0.5)), 3.28634,
    source="DLMF 4.2(iv), 4.7(ii); NumPy", domain="x > 0, or x < 0 with whole numbers y",
    note=_POWER_NOTE, shortcuts=_CONSTANT_POWERS)
for _n, _name in PRODUCTS.items():
    row(_name, f"{_n}.0 * g{' * x' * (_n - 1)}" if _n > 0 else f"{_n}.0 * g * r / x",
        f"The power ``x**{_n}``",
        product_of_power(_n), f"x**({_n})", (-1.5, 1e-30, 1e30), float(_n * (-1.5) ** (_n - 1)),
        source="DLMF 4.7(ii)", domain="all real numbers" if _n > 0 else "x is not 0",
        ufunc=power_by_products(_n), call=f"np.power(x, {_n})")
ROWS["power_below"] = power_below("power_below")
row("floor_divide", (ZERO, ZERO), "Quotient rounded down, also written ``x // y``",
    operator.floordiv, "floor(x / y)", ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0)), 0.0,
    source="NumPy", domain="y is not 0", note=_STEPS)
row("remainder", ("g", "-g * floor_divide(x, y)"),
    "Remainder with the sign of the divisor, also written ``x % y``",
    operator.mod, "x - y * floor(x / y)", ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1e6, 0.7)), 1.0,
    source="NumPy", domain="y is not 0")
row("fmod", ("g", "-g * rint(divide(x - r, y))"), "Remainder with the sign of the dividend",
    math.fmod, "x - y * (floor(x / y) if x / y > 0 else ceil(x / y))",
    ((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (1e10, 3.0)), 1.0,
    source="NumPy", domain="y is not 0")
row("negative", "-g", "Negative, also written ``-x``",
    operator.neg, "-x", (2.5, -1e-300), -1.0, source="NumPy")
row("positive", "g", "Return the argument itself, also written ``+x``",
    float, "x", (2.5, -1e-300), 1.0, source="NumPy")
row("conjugate", "g", "Complex conjugate: of a real number, the number itself",
    float, "x", (2.5, -1.0), 1.0, source="DLMF 1.9(i); NumPy")
row("maximum", ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The larger of two numbers, or nan",
    lambda x, y: x if x >= y or x != x else y, "max(x, y)", ((1.5, -2.0), (-3.0, 4.0)), 1.0,
    source="NumPy", note=_TIES)
row("minimum", ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The smaller of two numbers, or nan",
    lambda x, y: x if x <= y or x != x else y, "min(x, y)", ((1.5, -2.0), (-3.0, 4.0)), 0.0,
    source="NumPy", note=_TIES)
row("fmax", ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The larger of two numbers, passing over nan",
    lambda x, y: x if x >= y or y != y else y, "max(x, y)", ((1.5, -2.0), (-3.0, 4.0)), 1.0,
    source="NumPy", note=_TIES)
row("fmin", ("where(r == x, g, 0.0)", "where(r == x, 0.0, g)"),
    "The smaller of two numbers, passing over nan",
    lambda x, y: x if x <= y or y != y else y, "min(x, y)", ((1.5, -2.0), (-3.0, 4.0)), 0.0,
    source="NumPy", note=_TIES)
row("hypot", ("g * (x / where(r == 0, 1.0, r))", "g * (y / where(r == 0, 1.0, r))"),
    "Length of the vector (x, y)",
    math.hypot, "hypot(x, y)",
    ((3.0, 4.0), (-1e-5, 2.0), (1e200, 1e200), (1e-200, -1e-200), (0.0, 2.0)), 0.6,
    source="DLMF 1.9(i); NumPy", note="At (0, 0) both derivatives are 0", ufunc=length)
row("arctan2", ("g * (y / hypot(x, y)) / hypot(x, y)", "-g * (x / hypot(x, y)) / hypot(x, y)"),
    "Angle of the point with ordinate x and abscissa y",
    math.atan2, "atan2(x, y)",
    ((1.5, 2.0), (-1.5, -2.0), (1e-8, -3.0), (1e200, 1e200), (-2.0, 0.0)), 0.32,
    source="DLMF 1.9(i), 4.24(ii); NumPy", domain="not x = y = 0")
row("copysign", ("g * sign(x) * copysign(1.0, y)", ZERO), "Magnitude of x with the sign of y",
    math.copysign, "abs(x) * sign(y)", ((1.5, -2.0), (-1.5, -2.0), (3.0, 1.0)), -1.0,
    source="NumPy", note="The derivative at x = 0 is 0")
row("heaviside", (ZERO, "where(x == 0, g, 0.0)"),
    "Step: 0 for negative x, 1 for positive x, y at 0",
    None, "mpf(x > 0)", ((1.5, 0.5), (-1.5, 0.5)), 0.0, source="DLMF 1.16(iv); NumPy", note=_STEPS)
row("ldexp", ("g * exp2(y)", None), "``x * 2**y``",
    lambda x, y: math.ldexp(x, y) if type(y) is int else float(scaled_by_power_of_two(x, y)),
    "x * 2**y", ((1.5, 3), (-0.3, -40)), 8.0,
    source="NumPy", constant=("the exponent",), ufunc=scaled_by_power_of_two)
row("logaddexp",
    ("where(r == -inf, 0.0, g * expit(x - y))", "where(r == -inf, 0.0, g * expit(y - x))"),
    "``log(exp(x) + exp(y))`` without overflow",
    log_of_sum_of_numbers, "log(exp(x) + exp(y))",
    ((0.5, -1.0), (1000.0, 999.0), (1e10, 1e10 + 1.0), (-50.0, 3.0), (-1e3, -1e3)), 0.817574,
    source="NumPy", note="The derivatives are 0 where both operands are -inf", ufunc=log_of_sum)
row("logaddexp2", (f"where(r == -inf, 0.0, g * expit({LN2} * (x - y)))",
    f"where(r == -inf, 0.0, g * expit({LN2} * (y - x)))"),
    "``log2(2**x + 2**y)`` without overflow",
    None, "log(2**x + 2**y, 2)", ((0.5, -1.0), (1100.0, 1099.0), (-50.0, 3.0)), 0.738796,
    source="NumPy", note="The derivatives are 0 where both operands are -inf")

# Magnitude and rounding.

row("absolute", "g * sign(x)", "Absolute value, also ``abs(x)``",
    math.fabs, "abs(x)", (-2.5, 1e-300), -1.0, source="NumPy", note=_AT_ZERO)
row("fabs", "g * sign(x)", "Absolute value",
    math.fabs, "abs(x)", (-2.5, 1e-300), -1.0, source="NumPy", note=_AT_ZERO)
row("sign", ZERO, "-1, 0 or 1",
    sign_of_number, "sign(x)", (-2.5, 3.0), 0.0, source="NumPy", note=_STEPS)
row("floor", ZERO, "Rounded down",
    rounding(math.floor), "floor(x)", (-2.5, 3.2), 0.0, source="NumPy", note=_STEPS)
row("ceil", ZERO, "Rounded up",
    rounding(math.ceil), "ceil(x)", (-2.5, 3.2), 0.0, source="NumPy", note=_STEPS)
row("trunc", ZERO, "Rounded towards zero",
    rounding(math.trunc), "floor(x) if x > 0 else ceil(x)", (-2.5, 3.2), 0.0,
    source="NumPy", note=_STEPS)
row("rint", ZERO, "Rounded to the nearest whole number, ties to even",
    rounding(round), "nint(x)", (-2.4, 3.2), 0.0, source="NumPy", note=_STEPS)
row("square", "(g + g) * x", "``x * x``",
    lambda x: x * x, "x * x", (-1.5, 1e-100, 1e100), -3.0, source="DLMF 1.4(iii); NumPy")
reciprocal = row("reciprocal", "-g * r * r", "``1 / x``",
    lambda x: 1.0 / x, "1 / x", (-0.5, 1e-100, 1e100), -4.0,
    source="DLMF 1.4(iii); NumPy", domain="x is not 0")
row("sqrt", "0.5 * g / r", "Square root",
    math.sqrt, "sqrt(x)", (0.25, 1e-300, 1e300), 1.0,
    source="DLMF 4.7(ii); NumPy", domain="x > 0; at 0 the derivative is inf")
row("cbrt", "g / (3.0 * r * r)", "Cube root",
    math.cbrt, "sign(x) * cbrt(abs(x))", (0.125, -27.0, 1e-300), 1.33333,
    source="DLMF 4.7(ii); NumPy", note="At 0 the derivative is inf")
row("sinc", "-g * x * (pi * pi / 3.0) * hyp0f1(2.5, -0.25 * square(pi * x))",
    "``sin(pi x) / (pi x)``",
    None, "sincpi(x)", (0.5, -1e-8, 0.0, 1e-4, 2.4, 100.3), -1.27324,
    source="DLMF 10.49(i), 10.51(i); NumPy", ufunc=formula(np.sinc))

# Exponentials and logarithms.

row("exp", "g * r", "Exponential",
    math.exp, "exp(x)", (0.5, -700.0, 1e-10, 700.0), 1.64872,
    source="DLMF 4.2(iii), 4.7(ii); NumPy")
row("exp2", f"g * r * {LN2}", "``2**x``",
    math.exp2, "2**x", (0.5, -1000.0, 1e-10, 1000.0), 0.980258,
    source="DLMF 4.2(iv), 4.7(ii); NumPy")
row("expm1", "g * exp(x)", "``exp(x) - 1``, exact near 0",
    math.expm1, "expm1(x)", (0.5, -50.0, 1e-10, 700.0), 1.64872, source="DLMF 4.7(ii); NumPy")
row("log", "g / x", "Natural logarithm",
    math.log, "log(x)", (0.5, 1e-300, 3.0, 1e300), 2.0,
    source="DLMF 4.2(i), 4.7(i); NumPy", domain="x > 0")
row("log2", f"g / ({LN2} * x)", "Logarithm to base 2",
    math.log2, "log(x, 2)", (0.5, 1e-300, 3.0, 1e300), 2.88539,
    source="DLMF 4.2(ii), 4.7(i); NumPy", domain="x > 0")
row("log10", f"g / ({LN10} * x)", "Logarithm to base 10",
    math.log10, "log10(x)", (0.5, 1e-300, 3.0, 1e300), 0.868589,
    source="DLMF 4.2(ii), 4.7(i); NumPy", domain="x > 0")
row("log1p", "g / (1.0 + x)", "``log(1 + x)``, exact near 0",
    math.log1p, "log1p(x)", (0.5, -0.999, 1e-10, 1e100), 0.666667,
    source="DLMF 4.7(i); NumPy", domain="x > -1")

# Trigonometric and hyperbolic functions. Derivatives are written so that nothing cancels near the
# ends of the domain.

row("sin", "g * cos(x)", "Sine",
    math.sin, "sin(x)", (0.5, -2.0, 1e-8, 100.0), 0.877583, source="DLMF 4.14, 4.20; NumPy")
row("cos", "-g * sin(x)", "Cosine",
    math.cos, "cos(x)", (0.5, -2.0, 1e-8, 100.0), -0.479426, source="DLMF 4.14, 4.20; NumPy")
row("tan", "g * (1.0 + r * r)", "Tangent",
    math.tan, "tan(x)", (0.5, -2.0, 1e-8, 100.0), 1.29845, source="DLMF 4.14, 4.20; NumPy")
row("arcsin", "g / sqrt((1.0 - x) * (1.0 + x))", "Inverse sine",
    math.asin, "asin(x)", (0.5, -0.9999999, 1e-8, 0.99), 1.1547,
    source="DLMF 4.23, 4.24(ii); NumPy", domain="-1 <= x <= 1")
row("arccos", "-g / sqrt((1.0 - x) * (1.0 + x))", "Inverse cosine",
    math.acos, "acos(x)", (0.5, -0.9999999, 1e-8, 0.99), -1.1547,
    source="DLMF 4.23, 4.24(ii); NumPy", domain="-1 <= x <= 1")
row("arctan", "g / (1.0 + x * x)", "Inverse tangent",
    math.atan, "atan(x)", (0.5, -2.0, 1e-8, 1e100), 0.8, source="DLMF 4.23, 4.24(ii); NumPy")
row("sinh", "g * cosh(x)", "Hyperbolic sine",
    math.sinh, "sinh(x)", (0.5, -20.0, 1e-8, 700.0), 1.12763, source="DLMF 4.28, 4.34; NumPy")
row("cosh", "g * sinh(x)", "Hyperbolic cosine",
    math.cosh, "cosh(x)", (0.5, -20.0, 1e-8, 700.0), 0.521095, source="DLMF 4.28, 4.34; NumPy")
row("tanh", "g / square(cosh(minimum(maximum(x, -350.0), 350.0)))", "Hyperbolic tangent",
    math.tanh, "tanh(x)", (0.5, -20.0, 1e-8, 100.0), 0.786448, source="DLMF 4.28, 4.34; NumPy")
row("arcsinh", "g / hypot(1.0, x)", "Inverse hyperbolic sine",
    math.asinh, "asinh(x)", (0.5, -20.0, 1e-8, 1e200), 0.894427,
    source="DLMF 4.37, 4.38(ii); NumPy")
row("arccosh", "g / (sqrt(x - 1.0) * sqrt(x + 1.0))", "Inverse hyperbolic cosine",
    math.acosh, "acosh(x)", (2.0, 1.0001, 20.0, 1e200), 0.57735,
    source="DLMF 4.37, 4.38(ii); NumPy", domain="x > 1")
row("arctanh", "g / ((1.0 - x) * (1.0 + x))", "Inverse hyperbolic tangent",
    math.atanh, "atanh(x)", (0.5, -0.9999999, 1e-8, 0.99), 1.33333,
    source="DLMF 4.37, 4.38(ii); NumPy", domain="-1 < x < 1")
for _name in ("deg2rad", "radians"):
    row(_name, f"{DEGREE} * g", "Degrees to radians",
        math.radians, "x * pi / 180", (90.0, -1e5), 0.0174533, source="NumPy")
for _name in ("rad2deg", "degrees"):
    row(_name, f"g / {DEGREE}", "Radians to degrees",
        math.degrees, "x * 180 / pi", (0.5, -1e5), 57.2958, source="NumPy")
# fmt: on

# Ufuncs of SciPy that are twins of NumPy's.
SPECIAL.update({name: ROWS[name].call for name in ("exp2", "cbrt", "expm1", "log1p")})
SPECIAL["round"] = ROWS["rint"].call


@implements(np.modf)
def _modf(x: Operand) -> tuple[Operand, Operand]:
    return np.fmod(np.where(abs(x) == np.inf, np.copysign(0.0, x), x), 1.0), np.trunc(x)


@implements(np.divmod)
def _divmod(x: Operand, y: Operand) -> tuple[Operand, Operand]:
    return np.floor_divide(x, y), np.remainder(x, y)
