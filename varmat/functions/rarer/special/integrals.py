"""Integrals, and solutions of differential equations, as functions of one argument: sine and
exponential integrals, Fresnel, Airy, Kelvin, Struve.

The derivatives follow from the integrands and from the differential equations. Orders are constant.
"""

from __future__ import annotations

import math

import numpy as np

from varmat.functions.rarer.special.further_rows import of_scipy, results, rows
from varmat.functions.rows import DEGREE, row
from varmat.plain_arrays import special
from varmat.typing import Plain

_ORDER = ("the order x",)
_SPECFUN = (
    "The value is of the library specfun; its relative error, not the derivative's, is up to {}"
)


# Angles in degrees.

# fmt: off
rows(("sindg", f"{DEGREE} * g * cosdg(x)", "Sine of an angle in degrees", "sin(x * pi / 180)"),
    ("cosdg", f"-{DEGREE} * g * sindg(x)", "Cosine of an angle in degrees", "cos(x * pi / 180)"),
    ("tandg", f"{DEGREE} * g * (1.0 + r * r)", "Tangent of an angle in degrees",
    "tan(x * pi / 180)"),
    ("cotdg", f"-{DEGREE} * g * (1.0 + r * r)", "Cotangent of an angle in degrees",
    "cot(x * pi / 180)"),
    points=(30.0, -200.0))
row("radian", (f"{DEGREE} * g", f"{DEGREE} / 60.0 * g", f"{DEGREE} / 3600.0 * g"),
    "The angle of x degrees, y minutes and z seconds in radians",
    None, "(x + (y + z / 60) / 60) * pi / 180", ((30.0, 7.0, -3.5),))

# Sine, cosine, hyperbolic and Fresnel integrals.

_POSITIVE = "x > 0"
results("sici",
    ("si", "g * sinc(x / pi)", "Sine integral", "si(x)", {"points": (0.7, -3.0, 1e-5, 40.0)}),
    ("ci", "g * cos(x) / x", "Cosine integral", "ci(x)", {"domain": _POSITIVE}),
    points=(0.7, 3.0, 40.0))
_HYPERBOLIC = {"domain": _POSITIVE, "points": (0.7, 3.0, 20.0)}
results("shichi",
    ("shi", "g * hyp0f1(1.5, 0.25 * square(x))", "Hyperbolic sine integral", "shi(x)"),
    ("chi", "g * cosh(x) / x", "Hyperbolic cosine integral", "chi(x)", _HYPERBOLIC),
    points=(0.7, -3.0, 20.0))
results("fresnel",
    ("s", "g * sin(0.5 * pi * square(x))", "Fresnel's sine integral", "fresnels(x)"),
    ("c", "g * cos(0.5 * pi * square(x))", "Fresnel's cosine integral", "fresnelc(x)"),
    points=(0.7, -1.3, 4.2))

# Airy functions, whose second derivative is the argument times the function.

results("airy",
    ("ai", "g * airy_aip(x)", "Airy function Ai", "airyai(x)"),
    ("aip", "g * x * airy_ai(x)", "Derivative of Ai", "airyai(x, derivative=1)"),
    ("bi", "g * airy_bip(x)", "Airy function Bi", "airybi(x)"),
    ("bip", "g * x * airy_bi(x)", "Derivative of Bi", "airybi(x, derivative=1)"),
    points=(0.7, -2.3, 5.0))
_UP, _DOWN = "exp(2 * x**1.5 / 3) * {}", "exp(-2 * x**1.5 / 3) * {}"
results("airye",
    ("eai", "g * (airye_eaip(x) + sqrt(x) * r)", "Ai, scaled", _UP.format("airyai(x)")),
    ("eaip", "g * (x * airye_eai(x) + sqrt(x) * r)", "Derivative of Ai, scaled",
    _UP.format("airyai(x, derivative=1)")),
    ("ebi", "g * (airye_ebip(x) - sqrt(x) * r)", "Bi, scaled", _DOWN.format("airybi(x)")),
    ("ebip", "g * (x * airye_ebi(x) - sqrt(x) * r)", "Derivative of Bi, scaled",
    _DOWN.format("airybi(x, derivative=1)")),
    points=(0.7, 5.0), domain=_POSITIVE,
    note="The derivatives are differences: of large arguments z their relative error is about "
    "1e-16 z**1.5")
results("itairy",
    ("ai", "g * airy_ai(x)", "Integral of Ai from 0 to x", "airyai(x, derivative=-1)"),
    ("bi", "g * airy_bi(x)", "Integral of Bi from 0 to x", "airybi(x, derivative=-1)"),
    ("ain", "g * airy_ai(-x)", "Integral of Ai from -x to 0", "-airyai(-x, derivative=-1)"),
    ("bin", "g * airy_bi(-x)", "Integral of Bi from -x to 0", "-airybi(-x, derivative=-1)"),
    points=(0.7, 5.0), domain=_POSITIVE,
    reached=(1e-4, 1e-11), note=_SPECFUN.format("1e-4"))
# fmt: on

# Kelvin functions, in pairs: ber satisfies ``x f'' = -f' - x bei``, and bei ``x f'' = -f' + x
# ber``.

_LOGARITHMIC = (
    "sum({}(psi(0, k + 1) + mpf(1) / (2 * k) - log(x / 2)) * (x / 2)**(2 * k) / (2 * k * "
    "factorial(k)**2) for k in range(1, 60))"
)
# fmt: off
for _kind, _first in (("be", "first"), ("ke", "second")):
    _r, _i = _kind + "r", _kind + "i"
    rows((_r, f"g * {_r}p(x)", f"Kelvin function {_r} of the {_first} kind", f"{_r}(0, x)"),
        (_i, f"g * {_i}p(x)", f"Kelvin function {_i} of the {_first} kind", f"{_i}(0, x)"),
        (f"{_r}p", f"g * (-{_i}(x) - r / x)", f"Derivative of `{_r}`",
        f"({_r}(1, x) + {_i}(1, x)) / sqrt(2)"),
        (f"{_i}p", f"g * ({_r}(x) - r / x)", f"Derivative of `{_i}`",
        f"({_i}(1, x) - {_r}(1, x)) / sqrt(2)"),
        points=(0.7, 3.0, 9.0), domain="x > 0" if _kind == "ke" else "all real numbers",
        note=_SPECFUN.format("1e-9"),
        reached=(1e-9, 1e-9))
# fmt: on

# Struve functions, and integrals of these and of Bessel functions.

_CHANGE = (
    "{} + power(0.5 * y, x) * (0.5 * rgamma(x + 1.5) * " + repr(1.0 / math.sqrt(math.pi)) + ")"
)
# SciPy's Bessel functions of whole orders, with the values of the functions of any order.
# fmt: off
for _of, _about, _reference, _partial in (
    (
        "kn",
        "Modified Bessel function of the second kind",
        "besselk(x, y)",
        "-0.5 * g * (kv(x - 1.0, y) + kv(x + 1.0, y))",
    ),
    (
        "yn",
        "Bessel function of the second kind",
        "bessely(x, y)",
        "0.5 * g * (yv(x - 1.0, y) - yv(x + 1.0, y))",
    ),
):
    row(_of, (None, _partial), f"{_about} of whole order x", None, _reference,
        ((2.0, 1.7), (0.0, 0.3), (7.0, 50.0)), domain="x = 0, 1, 2, ..., y > 0", constant=_ORDER,
        ufunc=of_scipy(lambda n, x, any_order=_of[0] + "v": getattr(special, any_order)(n, x)),
        answers_for=_of)
rows(("struve", (None,
    "g * (" + _CHANGE.format("0.5 * (struve(x - 1.0, y) - struve(x + 1.0, y))") + ")"),
    "Struve function of order x", "struveh(x, y)"),
    ("modstruve", (None,
    "g * (" + _CHANGE.format("0.5 * (modstruve(x - 1.0, y) + modstruve(x + 1.0, y))") + ")"),
    "Modified Struve function of order x", "struvel(x, y)"),
    points=((1.5, 2.3), (0.0, 0.4), (2.0, 12.0)), domain="y > 0", constant=_ORDER)
# fmt: on
_NUMERICAL: dict[str, Plain] = {
    "points": (0.7, 5.0),
    "domain": _POSITIVE,
    "note": _SPECFUN.format("1e-7"),
    "reached": (1e-7, 1e-11),
}
# fmt: off
rows(("itstruve0", "g * struve(0.0, x)", "Integral of the Struve function of order 0 from 0 to x",
    "x**2 / pi * hyper([1, 1], [1.5, 1.5, 2], -x**2 / 4)"),
    ("it2struve0", "-g * struve(0.0, x) / x",
    "Integral of the Struve function of order 0, over its argument, from x to infinity",
    "pi / 2 - 2 * x / pi * hyper([0.5, 1], [1.5, 1.5, 1.5], -x**2 / 4)"),
    ("itmodstruve0", "g * modstruve(0.0, x)",
    "Integral of the modified Struve function of order 0 from 0 to x",
    "x**2 / pi * hyper([1, 1], [1.5, 1.5, 2], x**2 / 4)"),
    **_NUMERICAL)
_BY_STRUVE = "x * {0}(0, x) + pi * x / 2 * ({0}(1, x) * {1}(0, x) {2} {0}(0, x) * {1}(1, x))"
results("itj0y0",
    ("j0", "g * j0(x)", "Integral of `j0` from 0 to x", "x * hyper([0.5], [1, 1.5], -x**2 / 4)"),
    ("y0", "g * y0(x)", "Integral of `y0` from 0 to x",
    _BY_STRUVE.format("bessely", "struveh", "-")),
    **_NUMERICAL)
results("iti0k0",
    ("i0", "g * i0(x)", "Integral of `i0` from 0 to x", "x * hyper([0.5], [1, 1.5], x**2 / 4)"),
    ("k0", "g * k0(x)", "Integral of `k0` from 0 to x",
    _BY_STRUVE.format("besselk", "struvel", "+")),
    **_NUMERICAL)
# fmt: on


def _less_one(x: Plain, sign: float) -> Plain:
    """``i0(x) - 1``, or with the sign -1 ``1 - j0(x)``; by their series near 0."""
    function = special.i0 if sign > 0 else special.j0
    total, term = np.zeros(np.shape(x)), np.ones(np.shape(x))
    for k in range(1, 14):
        term = term * (sign * 0.25 * x * x / (k * k))
        total = total + term
    return sign * np.where(np.abs(x) < 2.0, total, function(x) - 1.0)


# fmt: off
for _name, _partial, _about, _reference, _sign in (
    ("i0_less_one", "g * i1(x)", "``i0(x) - 1``", "besseli(0, x) - 1", 1.0),
    ("one_less_j0", "g * j1(x)", "``1 - j0(x)``", "1 - besselj(0, x)", -1.0),
):
    row(_name, _partial, _about, None, _reference, (0.7, 1e-5, 5.0),
        ufunc=of_scipy(lambda x, sign=_sign: _less_one(x, sign)))
results("it2i0k0",
    ("i0", "g * i0_less_one(x) / x", "Integral of ``(i0(t) - 1) / t`` from 0 to x",
    "x**2 / 8 * hyper([1, 1], [2, 2, 2], x**2 / 4)"),
    ("k0", "-g * k0(x) / x", "Integral of ``k0(t) / t`` from x to infinity",
    "log(x / 2)**2 / 2 + euler * log(x / 2) + pi**2 / 24 + euler**2 / 2 - "
    + _LOGARITHMIC.format("")),
    **_NUMERICAL)
results("it2j0y0",
    ("j0", "g * one_less_j0(x) / x", "Integral of ``(1 - j0(t)) / t`` from 0 to x",
    "x**2 / 8 * hyper([1, 1], [2, 2, 2], -x**2 / 4)"),
    ("y0", "-g * y0(x) / x", "Integral of ``y0(t) / t`` from x to infinity",
    "-(log(x / 2)**2 + 2 * euler * log(x / 2) - pi**2 / 6 + euler**2) / pi + 2 / pi * "
    + _LOGARITHMIC.format("(-1)**k * "), {"points": (0.7,)}),
    **_NUMERICAL)
row("besselpoly",
    ("g * (besselpoly(x, y + 1.0, z - 1.0) - besselpoly(x, y + 1.0, z + 1.0))", None, None),
    "Integral of ``t**y jv(z, 2 x t)`` over t from 0 to 1",
    None, "quad(lambda t: t**y * besselj(z, 2 * x * t), [0, 1])", ((0.7, 1.5, 1.0),),
    domain="z >= 1, or z = 0", constant=("the exponent y", "the order z"),
    note="SciPy sums a power series, whose terms cancel for large a")

# Parabolic cylinder functions: pairs of a function and its derivative.

_BOTH_CURVE = "(0.25 * square(y) - x - 0.5)"
for _name, _letter, _curve, _reference, _points in (
    ("pbdv", "D", _BOTH_CURVE, "pcfd(x, y)", ((1.5, 0.7), (2.0, -1.2))),
    ("pbvv", "V", _BOTH_CURVE, "pcfv(-x - mpf(1) / 2, y)", ((1.5, 0.7), (0.0, 1.2))),
    ("pbwa", "W", "(x - 0.25 * square(y))", "pcfw(x, y)", ((1.5, 0.7), (-0.5, 1.2))),
):
    _about = f"arabolic cylinder function {_letter}"
    results(_name,
        ("f", (None, f"g * {_name}_p(x, y)"), f"P{_about} of order x", _reference),
        ("p", (None, f"g * {_curve} * {_name}_f(x, y)"), f"Derivative of the p{_about}", ""),
        points=_points, constant=_ORDER, note=_SPECFUN.format("1e-9"),
        reached=(1e-9, 1e-9))

row("lpmv",
    (None, None, "g * (y * z * r - (y + x) * lpmv(x, y - 1.0, z)) / ((z - 1.0) * (z + 1.0))"),
    "Associated Legendre function of order x and degree y", None, "legenp(y, x, z)", ((2.0, 3.5,
    0.4),),
    domain="-1 < z < 1, x = 0, 1, 2, ..., y >= 0", constant=("the order x", "the degree y"))
# fmt: on
