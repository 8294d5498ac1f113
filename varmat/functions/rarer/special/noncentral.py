"""Noncentral distributions of SciPy: chi square, F and Student's t, with derivatives in argument
and noncentrality.

The derivative in the noncentrality is minus a density of more degrees of freedom, and the densities
are confluent hypergeometric functions. The degrees of freedom have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.functions.rarer.special.further_rows import POLISHED, Invertible, of_scipy
from varmat.functions.rows import row
from varmat.functions.special.quadrature import gauss
from varmat.plain_arrays import special
from varmat.typing import Plain

_DF = "the degrees of freedom {}"
_SEARCHED: dict[str, Any] = {
    "note": "The value is what SciPy's search finds, to about 1e-11",
    "reached": (1e-10, 1e-10),
}

# Chi square: the density is a scaled Bessel function; for small noncentrality its limit is taken.


def _chi_square_density(x: Plain, df: Plain, nc: Plain) -> Plain:
    order = 0.5 * df - 1.0
    product = nc * x
    near = (
        np.exp(-0.5 * (x + nc) + special.xlogy(order, 0.5 * x) - special.gammaln(0.5 * df))
        * special.gammasgn(0.5 * df)
        * special.hyp0f1(0.5 * df, 0.25 * np.minimum(product, 9.0))
    )
    root = np.sqrt(np.maximum(product, 1.0))
    far = np.exp(
        -0.5 * np.square(np.sqrt(x) - np.sqrt(nc))
        + 0.5 * order * np.log(x / np.where(nc > 0, nc, 1.0))
    ) * special.ive(order, root)
    return 0.5 * np.where(product < 9.0, near, far)


_DENSITY = "noncentral_chi_square_density"
row(
    _DENSITY,
    (
        f"0.5 * g * ({_DENSITY}(x, y - 2.0, z) - r)",
        None,
        f"0.5 * g * ({_DENSITY}(x, y + 2.0, z) - r)",
    ),
    "Density of the noncentral chi square distribution",
    None,
    "exp(-(x + z) / 2) * (x / 2)**(y / 2 - 1) * hyp0f1(y / 2, x * z / 4) / gamma(y / 2) / 2",
    ((5.0, 3.5, 2.0), (0.5, 7.0, 0.3), (80.0, 3.5, 60.0)),
    domain="x > 0, y > 0, z >= 0",
    constant=(_DF.format("y"),),
    ufunc=of_scipy(_chi_square_density),
    tested=False,
)
chi_square = Invertible(
    (f"{_DENSITY}({{0}}, {{1}}, {{2}})", None, f"-{_DENSITY}({{0}}, {{1}} + 2.0, {{2}})"),
    "fsum(exp(-{2} / 2) * ({2} / 2)**k / factorial(k) * gammainc({1} / 2 + k, 0, {0} / 2, "
    "regularized=True) for k in range(45))",
    ("x > 0", "y > 0", "z > 0"),
    held=(_DF.format("y"),),
)

# fmt: off
chi_square.row("chndtr",
    "Distribution function of the noncentral chi square distribution with y degrees of freedom",
    ((5.0, 3.5, 2.0), (0.5, 7.0, 0.3)), reached=(1e-11, 1e-11))
chi_square.inverse("chndtrix", 0, "Inverse of `chndtr` in its argument",
    "chndtr", ((0.4, 3.5, 2.0),), **_SEARCHED)
chi_square.inverse("chndtrinc", 2, "Inverse of `chndtr` in the noncentrality",
    "chndtr", ((5.0, 3.5, 0.4),), **_SEARCHED)
# fmt: on

# F, with a = dfn / 2, b = dfd / 2 and y = dfn f / (dfd + dfn f): a Poisson mixture of incomplete
# beta functions of shapes a + k, b.

_A, _B, _Y = "(0.5 * {0})", "(0.5 * {1})", "({0} * {3} / ({1} + {0} * {3}))"
_WEIGHT = f"exp(-0.5 * {{2}} + {_A} * log({_Y}) + {_B} * log({{1}} / ({{1}} + {{0}} * {{3}})))"
f = Invertible(
    (
        None,
        None,
        (
            f"-0.5 * {_WEIGHT} / ({_A} * beta({_A}, {_B})) * hyp1f1({_A} + {_B}, {_A} + 1.0, 0.5 * "
            f"{{2}} * {_Y})"
        ),
        f"{_WEIGHT} / (beta({_A}, {_B}) * {{3}}) * hyp1f1({_A} + {_B}, {_A}, 0.5 * {{2}} * {_Y})",
    ),
    "fsum(exp(-{2} / 2) * ({2} / 2)**k / factorial(k) * betainc({0} / 2 + k, {1} / 2, 0, {0} * {3} "
    "/ ({1} + {0} * {3}), regularized=True) for k in range(45))",
    ("x > 0", "y > 0", "z > 0", "w > 0"),
    held=(_DF.format("x"), _DF.format("y")),
)

# fmt: off
f.row("ncfdtr",
    "Distribution function of the noncentral F distribution with x and y degrees of freedom and "
    "noncentrality z",
    ((3.0, 9.0, 1.5, 0.8),), domain="positive operands", reached=(1e-11, 1e-11))
f.inverse("ncfdtri", 3, "Inverse of `ncfdtr` in its argument",
    "ncfdtr", ((3.0, 9.0, 1.5, 0.4),), **_SEARCHED)
f.inverse("ncfdtrinc", 2, "Inverse of `ncfdtr` in the noncentrality",
    "ncfdtr", ((3.0, 9.0, 0.4, 1.2),), note=POLISHED,
    polish=lambda *values: special.ncfdtr(*values))
# fmt: on


# Student's t: with s the root of a chi square variable over its degrees of freedom, the probability
# below t is the mean of Phi(s t - nc). Its derivatives are means of s**k phi(s t - nc), each a
# smooth positive hump in log s.


def _mean_of_power(k: Plain, df: Plain, nc: Plain, t: Plain) -> Plain:
    k, df, nc, t = (v[..., None] for v in np.broadcast_arrays(k, df, nc, t))
    power = df + k
    # The place of the peak, in log s, of s**power exp(-df s**2 / 2 - (s t - nc)**2 / 2).
    peak = (t * nc + np.sqrt(np.square(t * nc) + 4.0 * power * (df + t * t))) / (2.0 * (df + t * t))
    middle = np.log(peak)
    width = 1.0 / np.sqrt(2.0 * df * peak**2 + 2.0 * np.square(t * peak) - t * nc * peak)
    nodes, weights = gauss(96)
    low, high = 10.0 * width + 60.0 / power, np.minimum(10.0 * width + 1.0, 12.0 * np.sqrt(width))
    total: Plain = 0.0
    for start, length in ((middle - low, low), (middle, high)):
        u = start + length * nodes
        s = np.exp(u)
        exponent = power * u - 0.5 * df * s * s - 0.5 * np.square(s * t - nc)
        total = total + length * np.exp(exponent) * weights
    logarithm = 0.5 * df * np.log(0.5 * df) - special.gammaln(0.5 * df) + np.log(2.0)
    return np.sum(total * np.exp(logarithm), axis=-1) / np.sqrt(2.0 * np.pi)


_T = "noncentral_t_mean"
row(
    _T,
    (
        None,
        None,
        f"g * (w * {_T}(x + 1.0, y, z, w) - z * r)",
        f"-g * (w * {_T}(x + 2.0, y, z, w) - z * {_T}(x + 1.0, y, z, w))",
    ),
    "Mean of ``s**x phi(s w - z)``, s the root of a chi square variable with y degrees of freedom "
    "over y",
    None,
    "quad(lambda s: s**(x + y - 1) * exp(-y * s * s / 2 - (s * w - z)**2 / 2), [0, 1, 5]) * 2 * (y "
    "/ 2)**(y / 2) / gamma(y / 2) / sqrt(2 * pi)",
    ((1.0, 7.5, 0.6, 1.3), (0.0, 3.0, -1.0, 0.5)),
    domain="y > 0",
    constant=("the power x", _DF.format("y")),
    ufunc=of_scipy(_mean_of_power),
    tested=False,
)
_WEIGHTED = "exp(-{1}**2 / 2) * ({1}**2 / 2)**k * "
_WITHIN = "betainc(mpf({}) / 2, {{0}} / 2, 0, {{2}}**2 / ({{0}} + {{2}}**2), regularized=True)"
student_t = Invertible(
    (None, f"-{_T}(0.0, {{0}}, {{1}}, {{2}})", f"{_T}(1.0, {{0}}, {{1}}, {{2}})"),
    f"(ncdf(-{{1}}) + fsum({_WEIGHTED}({_WITHIN.format('2 * k + 1')} / factorial(k) + {{1}} * "
    f"{_WITHIN.format('2 * k + 2')} / (sqrt(2) * gamma(k + mpf(3) / 2))) for k in range(60)) / 2)",
    ("x > 0", "", ""),
    held=(_DF.format("x"),),
)

# fmt: off
student_t.row("nctdtr",
    "Distribution function of the noncentral t distribution with x degrees of freedom and "
    "noncentrality y", ((7.5, 0.6, 1.3),))
student_t.inverse("nctdtrit", 2, "Inverse of `nctdtr` in its argument",
    "nctdtr", ((7.5, 0.6, 0.4),), **_SEARCHED)
student_t.inverse("nctdtrinc", 1, "Inverse of `nctdtr` in the noncentrality",
    "nctdtr", ((7.5, 0.4, 1.3),), note=POLISHED, polish=lambda *values: special.nctdtr(*values))
# fmt: on
