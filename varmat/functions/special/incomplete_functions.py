"""Regularised incomplete gamma and beta functions and their inverses, as a table.

`gammainc(a, x)` is P(a, x), `betainc(a, b, x)` is I_x(a, b)."""

from __future__ import annotations

from functools import partial

from varmat.functions.aliases import alias
from varmat.functions.rows import formula, row
from varmat.functions.special import shape_derivatives
from varmat.functions.special.incomplete_gamma import incomplete_gamma, incomplete_gamma_straight
from varmat.plain_arrays import with_out
from varmat.typing import Function

__all__ = [
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "gamma_p",
    "gamma_q",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "inc_beta",
    "inv_inc_beta",
]


def _values(upper: bool) -> Function:
    """P or Q as a ufunc, which SciPy's needs no guard against warnings in."""
    ufunc = with_out(partial(incomplete_gamma, upper))
    ufunc.formula = partial(incomplete_gamma_straight, upper)  # type: ignore[attr-defined]
    return ufunc


# fmt: off
_ORDERS = ("the order x",)
_EXACT = (
    "The derivative in a shape comes from an integral in one tail, without cancellation: worst "
    "relative error "
)
_GAMMA_RANGE = (
    _EXACT
    + "1e-13 for shapes from 1e-3 to 1e5, from 20 standard deviations below the mean to 20 above it"
)
_BETA_RANGE = _EXACT + "1e-13 for shapes from 1e-2 to 1e4, within 8 standard deviations of the mean"
gammainc = row("gammainc",
    ("g * gammainc_derivative(1.0, x, y)", "g * gamma_density_derivative(0.0, x, y)"),
    "Regularised lower incomplete gamma function of shape x",
    None, "gammainc(x, 0, y, regularized=True)",
    ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0), (1e-2, 1.5), (1e4, 9.8e3)), -0.138152,
    source="DLMF 8.2.4, 8.12; SciPy", domain="x > 0, y >= 0", note=_GAMMA_RANGE,
    ufunc=_values(False), answers_for="gammainc")
gammaincc = row("gammaincc",
    ("-g * gammainc_derivative(1.0, x, y)", "-g * gamma_density_derivative(0.0, x, y)"),
    "Regularised upper incomplete gamma function of shape x",
    None, "gammainc(x, y, inf, regularized=True)",
    ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0), (1e-2, 1.5), (1e4, 1.03e4)), 0.138152,
    source="DLMF 8.2.4, 8.12; SciPy", domain="x > 0, y >= 0", note=_GAMMA_RANGE,
    ufunc=_values(True), answers_for="gammaincc")
gamma_p = alias("gamma_p", gammainc)
gamma_q = alias("gamma_q", gammaincc)
gammainc_derivative = row("gammainc_derivative",
    (None, "g * gammainc_derivative(x + 1.0, y, z)", "g * gamma_density_derivative(x, y, z)"),
    "Derivative of order x of `gammainc` with respect to its shape y, at z",
    None, "diff(lambda t: gammainc(t, 0, z, regularized=True), y, int(x))",
    ((1, 7.5, 6.0), (1, 0.7, 3.0), (2, 2.5, 0.01), (0, 2.5, 3.0)), 0.0313825,
    source="DLMF 8.2.4", domain="x = 0, 1, 2, ..., y > 0, z >= 0", note=_GAMMA_RANGE,
    constant=_ORDERS, ufunc=formula(shape_derivatives.gammainc_derivative), module=__name__)
gamma_density_derivative = row("gamma_density_derivative", (None,
    "g * gamma_density_derivative(x + 1.0, y, z)",
    ("g * (((y - 1.0) / z - 1.0) * r + x / z * gamma_density_derivative(maximum(x - 1.0, "
    "0.0), y, z))")),
    "Derivative of order x, with respect to the shape y, of the density ``z**(y - 1) exp(-z) / "
    "gamma(y)``",
    None, "diff(lambda t: z**(t - 1) * exp(-z) / gamma(t), y, int(x))",
    ((0, 7.5, 6.0), (1, 0.7, 3.0), (2, 2.5, 0.01), (0, 1e4, 1.01e4)), -0.0234644,
    source="DLMF 8.2.1, 8.2.4", domain="x = 0, 1, 2, ..., y > 0, z > 0", constant=_ORDERS,
    ufunc=formula(shape_derivatives.gamma_density_derivative), module=__name__)
betainc = row("betainc", ("g * betainc_derivative(10.0, x, y, z)",
    "g * betainc_derivative(1.0, x, y, z)", "g * beta_density_derivative(0.0, x, y, z)"),
    "Regularised incomplete beta function of shapes x and y",
    None, "betainc(x, y, 0, z, regularized=True)",
    ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.4), (0.05, 3.0, 1e-3)), -0.141336,
    source="DLMF 8.17.1, 8.17.2; SciPy", domain="x > 0, y > 0, 0 <= z <= 1", note=_BETA_RANGE)
betaincc = row("betaincc", ("-g * betainc_derivative(10.0, x, y, z)",
    "-g * betainc_derivative(1.0, x, y, z)", "-g * beta_density_derivative(0.0, x, y, z)"),
    "Complement of the regularised incomplete beta function",
    None, "betainc(x, y, z, 1, regularized=True)",
    ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.4)), 0.141336,
    source="DLMF 8.17.2, 8.17.4; SciPy", domain="x > 0, y > 0, 0 <= z <= 1", note=_BETA_RANGE)
inc_beta = alias("inc_beta", betainc)
# The two digits of x, and the derivatives of the density with one digit less by one; a digit of
# zero stays.
_IN_A = "floor(0.1 * x)"
_IN_B = f"(x - 10.0 * {_IN_A})"
_LESS_A = f"beta_density_derivative(x - 10.0 * minimum({_IN_A}, 1.0), y, z, w)"
_LESS_B = f"beta_density_derivative(x - minimum({_IN_B}, 1.0), y, z, w)"
betainc_derivative = row("betainc_derivative", (None, "g * betainc_derivative(x + 10.0, y, z, w)",
    "g * betainc_derivative(x + 1.0, y, z, w)", "g * beta_density_derivative(x, y, z, w)"),
    "Derivative of `betainc` with respect to its shapes y and z, at w; the two digits of x are the "
    "orders, 10 for once in y",
    None, "diff(lambda s, t: betainc(s, t, 0, w, regularized=True), (y, z), divmod(int(x), 10))",
    ((10, 5.0, 6.5, 0.4), (1, 0.5, 0.7, 0.8)), 0.0252221,
    source="DLMF 8.17.1, 8.17.2",
    domain="x is one of 0, 1, 2, ..., 10, 11, ..., y > 0, z > 0, 0 <= w <= 1", note=_BETA_RANGE,
    constant=_ORDERS, ufunc=formula(shape_derivatives.betainc_derivative), module=__name__)
beta_density_derivative = row("beta_density_derivative", (None,
    "g * beta_density_derivative(x + 10.0, y, z, w)",
    "g * beta_density_derivative(x + 1.0, y, z, w)",
    (f"g * (((y - 1.0) / w - (z - 1.0) / (1.0 - w)) * r + {_IN_A} / w * {_LESS_A} - {_IN_B} / "
    f"(1.0 - w) * {_LESS_B})")),
    "Derivative, with respect to the shapes y and z, of the density ``w**(y - 1) (1 - w)**(z - 1) "
    "/ beta(y, z)``; the two digits of x are the orders, 10 for once in y",
    None,
    "diff(lambda s, t: w**(s - 1) * (1 - w)**(t - 1) / beta(s, t), (y, z), divmod(int(x), 10))",
    ((0, 5.0, 6.5, 0.4), (11, 0.5, 0.7, 0.8), (0, 900.0, 1100.0, 0.46)), -0.0641846,
    source="DLMF 5.12.1, 8.17.1",
    domain="x is one of 0, 1, 2, ..., 10, 11, ..., y > 0, z > 0, 0 < w < 1", constant=_ORDERS,
    ufunc=formula(shape_derivatives.beta_density_derivative), module=__name__)
# By implicit differentiation. At the ends, which are the same for all shapes, the derivative in a
# shape is 0.
_IMPLICIT_GAMMA = (
    "where((r == 0) | (r == inf), 0.0, -g * gammainc_derivative(1.0, x, r) / "
    "gamma_density_derivative(0.0, x, r))"
)
_IMPLICIT_BETA = (
    "where((r == 0) | (r == 1), 0.0, -g * betainc_derivative({}, x, y, r) / "
    "beta_density_derivative(0.0, x, y, r))"
)
gammaincinv = row("gammaincinv", (_IMPLICIT_GAMMA, "g / gamma_density_derivative(0.0, x, r)"),
    "Inverse of `gammainc` in its argument",
    None, "findroot(lambda t: gammainc(x, 0, t, regularized=True) - y, (x / 100, 10 * x), "
    "solver='illinois')", ((7.5, 0.3), (0.7, 0.9)), 0.901497,
    source="DLMF 8.2.4; SciPy", domain="x > 0, 0 < y < 1")
gammainccinv = row("gammainccinv", (_IMPLICIT_GAMMA, "-g / gamma_density_derivative(0.0, x, r)"),
    "Inverse of `gammaincc` in its argument",
    None, "findroot(lambda t: gammainc(x, t, inf, regularized=True) - y, (x / 100, 10 * x + 100), "
    "solver='illinois')", ((7.5, 0.3), (2.5, 0.9)), 1.09784,
    source="DLMF 8.2.4; SciPy", domain="x > 0, 0 < y < 1")
_IMPLICIT_BETAS = tuple(map(_IMPLICIT_BETA.format, ("10.0", "1.0")))
betaincinv = row("betaincinv", (*_IMPLICIT_BETAS, "g / beta_density_derivative(0.0, x, y, r)"),
    "Inverse of `betainc` in its argument",
    None, "findroot(lambda t: betainc(x, y, 0, t, regularized=True) - z, (mpf(0), mpf(1)), "
    "solver='illinois')", ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8)), 0.0533471,
    source="DLMF 8.17.2; SciPy", domain="x > 0, y > 0, 0 < z < 1")
betainccinv = row("betainccinv", (*_IMPLICIT_BETAS, "-g / beta_density_derivative(0.0, x, y, r)"),
    "Inverse of `betaincc` in its argument",
    None, "findroot(lambda t: betainc(x, y, t, 1, regularized=True) - z, (mpf(0), mpf(1)), "
    "solver='illinois')", ((5.0, 6.5, 0.4),), 0.0510735,
    source="DLMF 8.17.2, 8.17.4; SciPy", domain="x > 0, y > 0, 0 < z < 1")
inv_inc_beta = alias("inv_inc_beta", betaincinv)
# fmt: on
