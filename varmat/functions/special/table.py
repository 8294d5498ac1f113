"""The special functions of SciPy and Stan, as a table: rows like those of
`varmat.functions.elementwise`.

A function of SciPy is given by its name, so that `scipy.special` is imported when the first of them
is used, not with varmat. Where a derivative would lose digits by cancellation it is written with
another special function that has them."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from varmat.core.dispatch import SPECIAL
from varmat.core.elementwise import ROWS
from varmat.core.errors import DomainError, ShapeError, positive
from varmat.core.operation import as_operand, is_differentiable
from varmat.core.rules import ZERO
from varmat.functions.checks import broadcastable
from varmat.functions.elementwise import LN10, MANY, formula, row, softplus
from varmat.functions.special import (
    hypergeometric_derivatives,
    order_derivatives,
    shape_derivatives,
)

__all__ = [
    "Phi",
    "Phi_approx",
    "bessel_first_kind",
    "bessel_second_kind",
    "beta",
    "beta_density_derivative",
    "betainc",
    "betainc_derivative",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "binary_log_loss",
    "binom",
    "binomial_coefficient_log",
    "boxcox",
    "boxcox1p",
    "cosm1",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "exp1",
    "exp10",
    "expi",
    "expit",
    "expn",
    "exprel",
    "falling_factorial",
    "fdim",
    "fma",
    "gamma",
    "gamma_density_derivative",
    "gamma_p",
    "gamma_q",
    "gammainc",
    "gammainc_derivative",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "huber",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyp2f1_da",
    "hyp2f1_db",
    "hyp2f1_dc",
    "hypergeometric_1F0",
    "hypergeometric_2F1",
    "hyperu",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "inc_beta",
    "inv",
    "inv_Phi",
    "inv_boxcox",
    "inv_boxcox1p",
    "inv_cloglog",
    "inv_erfc",
    "inv_inc_beta",
    "inv_logit",
    "inv_sqrt",
    "inv_square",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kl_div",
    "kv",
    "kve",
    "lambert_w0",
    "lambert_wm1",
    "lbeta",
    "lchoose",
    "lgamma",
    "lmgamma",
    "lmultiply",
    "log1m",
    "log1m_exp",
    "log1m_inv_logit",
    "log1p_exp",
    "log_diff_exp",
    "log_expit",
    "log_falling_factorial",
    "log_inv_logit",
    "log_inv_logit_diff",
    "log_iv_derivative",
    "log_kv_derivative",
    "log_modified_bessel_first_kind",
    "log_ndtr",
    "log_rising_factorial",
    "loggamma",
    "logit",
    "modified_bessel_first_kind",
    "modified_bessel_second_kind",
    "multigammaln",
    "multiply_log",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "owens_t",
    "poch",
    "polygamma",
    "powm1",
    "pseudo_huber",
    "psi",
    "rel_entr",
    "rgamma",
    "rising_factorial",
    "spence",
    "std_normal_log_qf",
    "std_normal_qf",
    "step",
    "tgamma",
    "trigamma",
    "wrightomega",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yv",
    "zeta",
    "zeta_difference",
]

TWO_OVER_ROOT_PI = repr(2.0 / math.sqrt(math.pi))
ROOT_PI_OVER_TWO = repr(math.sqrt(math.pi) / 2.0)
ROOT_PI = repr(math.sqrt(math.pi))
ROOT_HALF = repr(math.sqrt(0.5))
# 1 / sqrt(2 pi), its inverse, sqrt(2 / pi) and its inverse.
NORMAL = repr(1.0 / math.sqrt(2.0 * math.pi))
ROOT_TWO_PI = repr(math.sqrt(2.0 * math.pi))
ROOT_TWO_OVER_PI = repr(math.sqrt(2.0 / math.pi))
ROOT_HALF_PI = repr(math.sqrt(math.pi / 2.0))


@cache
def _special() -> Any:
    import scipy.special

    return scipy.special


def _lazy(function: Any, straight: Any = None) -> Any:
    """A formula with functions of `scipy.special`, which it gets as its first argument when it is
    called.

    In programs `straight` stands for it, where it chooses between ways of which one or the other is
    too long for all elements."""

    def with_special(*values: Any) -> Any:
        return function(_special(), *values)

    ufunc = formula(with_special)
    if straight is not None:
        ufunc.formula = straight  # type: ignore[attr-defined]
    return ufunc


# 1 / e, where the branches of Lambert's W meet, in two parts, and W as a polynomial in sqrt(2 (e x
# + 1)) there.
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


def _lambert(s: Any, x: Any, branch: int) -> Any:
    """Lambert's W. Next to the branch point SciPy has half of the digits, and of the lower branch
    sometimes none.
    """
    p = np.sqrt(2.0 * math.e * np.maximum(x + _BRANCH_POINT[0] + _BRANCH_POINT[1], 0.0))
    near = np.polyval(_AT_BRANCH_POINT, p if branch == 0 else -p)
    return np.where(
        x < -_BRANCH_POINT[0], np.nan, np.where(p < 0.02, near, s.lambertw(x, branch).real)
    )


def kl_div_series(x: Any, v: Any, difference: Any) -> Any:
    """``x log(x / y) - x + y``, given ``x - y`` and that over ``x + y``, which is small."""
    square = v * v
    tail: Any = 0.0
    for k in range(17, 1, -2):
        tail = (tail + 1.0 / k) * square
    return difference * v + 2.0 * x * v * tail


def _kl_div(s: Any, x: Any, y: Any) -> Any:
    """`scipy.special.kl_div`, and a series where its terms cancel."""
    v = np.divide(x - y, x + y)
    return np.where((np.abs(v) < 0.1) & (y > 0), kl_div_series(x, v, x - y), s.kl_div(x, y))


def kl_div_of_numbers(x: float, y: float) -> float:
    """`kl_div` of Python floats; anything unusual is left to the arrays."""
    if not (0.0 <= x < math.inf and 0.0 < y < math.inf):
        raise ArithmeticError
    v = (x - y) / (x + y)
    if abs(v) < 0.1:
        return kl_div_series(x, v, x - y)  # type: ignore[no-any-return]
    return (x * math.log(x / y) - x if x else 0.0) + y


def _inv_boxcox1p(x: Any, y: Any) -> Any:
    """`scipy.special.inv_boxcox1p`, which is ``x`` where ``x * y`` is small."""
    small = np.abs(x * y) < 1e-154
    return np.expm1(np.where(small, x, np.log1p(x * y) / np.where(small, 1.0, y)))


def _expit(x: Any, out: Any = None) -> Any:
    """`scipy.special.expit`, and faster."""
    if np.size(x) < 2 * MANY:
        return _special().expit(x, out=out)
    with np.errstate(over="ignore"):
        e = np.negative(x, out=out)
        np.exp(e, e)
    np.add(e, 1.0, e)
    return np.reciprocal(e, e)


_expit.formula = lambda x: _special().expit(x)  # type: ignore[attr-defined]


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _minus_softplus(sign: float) -> Any:
    def ufunc(x: Any, out: Any = None) -> Any:
        return np.negative(softplus(x if sign > 0 else -x), out=out)

    ufunc.formula = lambda x: -softplus(sign * x)  # type: ignore[attr-defined]
    return ufunc


# Gamma functions.

gammaln = row(
    "gammaln",
    "g * digamma(x)",
    "Logarithm of the absolute value of the gamma function",
    lambda x: math.lgamma(x) if x > -math.inf else x,
    "log(abs(gamma(x)))",
    (0.5, 1e-10, 3.7, 150.0, 1e8, -2.3),
    -1.96351,
    domain="not 0, -1, -2, ...",
)
lgamma = gammaln
loggamma = row(
    "loggamma",
    "g * digamma(x)",
    "Logarithm of the gamma function of a positive number",
    None,
    "log(gamma(x))",
    (0.5, 1e-10, 3.7, 150.0, 1e8),
    -1.96351,
    domain="x > 0",
)
digamma = row(
    "digamma",
    "g * zeta(2.0, x)",
    "Digamma function, the derivative of `gammaln`; SciPy also calls it psi",
    None,
    "psi(0, x)",
    (0.5, 1e-10, 3.7, 150.0, 1e8, -2.3),
    4.9348,
    domain="not 0, -1, -2, ...",
    ufunc="psi",
)
psi = digamma
zeta = row(
    "zeta",
    (None, "-g * (x * zeta(x + 1.0, y))"),
    "Hurwitz zeta function: the sum over k = 0, 1, ... of ``1 / (k + y)**x``",
    None,
    "zeta(x, y)",
    ((2.0, 0.5), (3.5, 1e-5), (2.0, 100.0), (5.0, 3.3)),
    -16.8288,
    domain="x > 1, y > 0",
    constant=("the exponent x",),
)
# Of SciPy's function, which is written in Python, the ufunc behind it.
zeta.formula = lambda x, y: _special()._ufuncs._zeta(x, y)  # type: ignore[attr-defined]
gamma = row(
    "gamma",
    "g * r * digamma(x)",
    "Gamma function",
    math.gamma,
    "gamma(x)",
    (0.5, 1e-10, 3.7, 150.0, -2.3),
    -3.48023,
    domain="not 0, -1, -2, ...",
)
tgamma = gamma
rgamma = row(
    "rgamma",
    "g * where(x < 0.5, gamma(1.0 - minimum(x, 0.5)) * (cos(pi * x) - sin(pi * x) * digamma(1.0 - "
    "minimum(x, 0.5)) / pi), "
    "-r * digamma(maximum(x, 0.5)))",
    "Reciprocal of the gamma function",
    None,
    "rgamma(x)",
    (0.5, 3.7, 150.0, -2.3, 1e-10),
    1.10779,
)
gammasgn = row(
    "gammasgn", ZERO, "Sign of the gamma function", None, "sign(gamma(x))", (0.5, -2.3), 0.0
)
beta = row(
    "beta",
    ("-g * r * zeta_difference(1.0, x, y)", "-g * r * zeta_difference(1.0, y, x)"),
    "Beta function ``gamma(x) gamma(y) / gamma(x + y)``",
    None,
    "beta(x, y)",
    ((0.5, 2.0), (3.0, 4.5), (1e-5, 1.0), (100.0, 2.5), (9e5, 0.3)),
    -3.55556,
    domain="x > 0, y > 0",
    ufunc=_lazy(shape_derivatives.beta),
)
betaln = row(
    "betaln",
    ("-g * zeta_difference(1.0, x, y)", "-g * zeta_difference(1.0, y, x)"),
    "Logarithm of the absolute value of the beta function",
    shape_derivatives.log_beta_of_numbers,
    "log(beta(x, y))",
    (
        (0.5, 2.0),
        (3.0, 4.5),
        (1e-5, 1.0),
        (100.0, 2.5),
        (9e5, 0.3),
        (3e4, 7e4),
        (1e8, 2.0),
        (2.0, 1e10),
    ),
    -2.66667,
    domain="x > 0, y > 0",
    ufunc=_lazy(shape_derivatives.log_beta),
)
lbeta = betaln
poch = row(
    "poch",
    ("g * r * zeta_difference(1.0, x, y)", "g * r * digamma(x + y)"),
    "Rising factorial ``gamma(x + y) / gamma(x)``",
    None,
    "gamma(x + y) / gamma(x)",
    ((0.5, 2.0), (3.5, 1.5), (20.0, 0.3)),
    2.0,
    domain="x > 0, x + y > 0",
)
rising_factorial = poch
binom = row(
    "binom",
    (
        "g * r * zeta_difference(1.0, x - y + 1.0, y)",
        "g * r * (digamma(x - y + 1.0) - digamma(y + 1.0))",
    ),
    "Binomial coefficient, of real numbers",
    None,
    "binomial(x, y)",
    ((5.5, 2.0), (7.5, 3.25), (100.0, 4.5), (1e5, 3.3), (1e5, 30.0)),
    5.0,
    domain="x > -1, y > -1, x - y > -1",
    ufunc=_lazy(shape_derivatives.binomial),
)
_FACTORIAL = "x > -1, x - y > -1"
lchoose = row(
    "lchoose",
    ("g * zeta_difference(1.0, x - y + 1.0, y)", "g * (digamma(x - y + 1.0) - digamma(y + 1.0))"),
    "Logarithm of the binomial coefficient, of real numbers",
    None,
    "log(binomial(x, y))",
    ((5.5, 2.0), (7.5, 3.25), (100.0, 1.5), (1e5, 3.0), (1e8, 2.0)),
    0.40404,
    domain=_FACTORIAL + ", y > -1",
    ufunc=_lazy(shape_derivatives.log_binomial),
)
binomial_coefficient_log = lchoose
falling_factorial = row(
    "falling_factorial",
    ("g * r * zeta_difference(1.0, x - y + 1.0, y)", "g * r * digamma(x - y + 1.0)"),
    "Falling factorial ``gamma(x + 1) / gamma(x - y + 1)``",
    None,
    "gamma(x + 1) / gamma(x - y + 1)",
    ((5.5, 2.0), (7.5, 3.25), (3.0, 0.0)),
    10.0,
    domain=_FACTORIAL,
    ufunc=_lazy(lambda s, x, y: s.poch(x - y + 1.0, y)),
)
log_rising_factorial = row(
    "log_rising_factorial",
    ("g * zeta_difference(1.0, x, y)", "g * digamma(x + y)"),
    "Logarithm of the rising factorial ``gamma(x + y) / gamma(x)``",
    shape_derivatives.log_rising_of_numbers,
    "log(gamma(x + y) / gamma(x))",
    ((5.5, 2.0), (0.5, 3.25), (1e8, 2.0)),
    0.335664,
    domain="x > 0, x + y > 0, y > -1",
    ufunc=_lazy(shape_derivatives.log_rising),
)
log_falling_factorial = row(
    "log_falling_factorial",
    ("g * zeta_difference(1.0, x - y + 1.0, y)", "g * digamma(x - y + 1.0)"),
    "Logarithm of the falling factorial ``gamma(x + 1) / gamma(x - y + 1)``",
    None,
    "log(gamma(x + 1) / gamma(x - y + 1))",
    ((5.5, 2.0), (7.5, 3.25), (1e8, 2.0)),
    0.40404,
    domain=_FACTORIAL + ", y > -1",
    ufunc=_lazy(lambda s, x, y: shape_derivatives.log_rising(s, x - y + 1.0, y)),
)
zeta_difference = row(
    "zeta_difference",
    (None, "-g * x * zeta_difference(x + 1.0, y, z)", "g * x * zeta(x + 1.0, y + z)"),
    "``zeta(x, y) - zeta(x, y + z)`` without cancellation; for x = 1 it is ``digamma(y + z) - "
    "digamma(y)``",
    shape_derivatives.zeta_difference_of_numbers,
    "psi(0, y + z) - psi(0, y) if x == 1 else zeta(x, y) - zeta(x, y + z)",
    (
        (1.0, 0.5, 2.0),
        (1.0, 3.0, 4.5),
        (2.0, 1e-5, 1.0),
        (1.0, 100.0, 2.5),
        (2.0, 1e10, 2.0),
        (1.0, 2.0, 1e10),
        (3.0, 15.5, 0.5),
    ),
    -4.44444,
    domain="x >= 1, y > 0, y + z > 0",
    constant=("the exponent x",),
    ufunc=_lazy(
        shape_derivatives.zeta_difference, straight=shape_derivatives.zeta_difference_straight
    ),
)

# Incomplete gamma and beta functions; gammainc(a, x) is P(a, x), betainc(a, b, x) is I_x(a, b).

_ORDERS = ("the order x",)
_EXACT = (
    "The derivative in a shape comes from an integral in one tail, without cancellation: "
    "worst relative error "
)
_GAMMA_RANGE = (
    _EXACT
    + "1e-13 for shapes from 1e-3 to 1e5, from 20 standard deviations below the mean to 20 above it"
)
_BETA_RANGE = _EXACT + "1e-13 for shapes from 1e-2 to 1e4, within 8 standard deviations of the mean"
gammainc = row(
    "gammainc",
    ("g * gammainc_derivative(1.0, x, y)", "g * gamma_density_derivative(0.0, x, y)"),
    "Regularised lower incomplete gamma function of shape x",
    None,
    "gammainc(x, 0, y, regularized=True)",
    ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0), (1e-2, 1.5), (1e4, 9.8e3)),
    -0.138152,
    domain="x > 0, y >= 0",
    note=_GAMMA_RANGE,
)
gammaincc = row(
    "gammaincc",
    ("-g * gammainc_derivative(1.0, x, y)", "-g * gamma_density_derivative(0.0, x, y)"),
    "Regularised upper incomplete gamma function of shape x",
    None,
    "gammainc(x, y, inf, regularized=True)",
    ((7.5, 6.0), (0.7, 3.0), (2.5, 0.01), (50.0, 60.0), (1e-2, 1.5), (1e4, 1.03e4)),
    0.138152,
    domain="x > 0, y >= 0",
    note=_GAMMA_RANGE,
)
gamma_p, gamma_q = gammainc, gammaincc
gammainc_derivative = row(
    "gammainc_derivative",
    (None, "g * gammainc_derivative(x + 1.0, y, z)", "g * gamma_density_derivative(x, y, z)"),
    "Derivative of order x of `gammainc` with respect to its shape y, at z",
    None,
    "diff(lambda t: gammainc(t, 0, z, regularized=True), y, int(x))",
    ((1, 7.5, 6.0), (1, 0.7, 3.0), (2, 2.5, 0.01), (0, 2.5, 3.0)),
    0.0313825,
    domain="x = 0, 1, 2, ..., y > 0, z >= 0",
    note=_GAMMA_RANGE,
    constant=_ORDERS,
    ufunc=_lazy(shape_derivatives.gammainc_derivative),
)
gamma_density_derivative = row(
    "gamma_density_derivative",
    (
        None,
        "g * gamma_density_derivative(x + 1.0, y, z)",
        (
            "g * (((y - 1.0) / z - 1.0) * r + x / z * gamma_density_derivative(maximum(x - 1.0, "
            "0.0), "
            "y, z))"
        ),
    ),
    "Derivative of order x, with respect to the shape y, of the density ``z**(y - 1) exp(-z) / "
    "gamma(y)``",
    None,
    "diff(lambda t: z**(t - 1) * exp(-z) / gamma(t), y, int(x))",
    ((0, 7.5, 6.0), (1, 0.7, 3.0), (2, 2.5, 0.01), (0, 1e4, 1.01e4)),
    -0.0234644,
    domain="x = 0, 1, 2, ..., y > 0, z > 0",
    constant=_ORDERS,
    ufunc=_lazy(shape_derivatives.gamma_density_derivative),
)
betainc = row(
    "betainc",
    (
        "g * betainc_derivative(10.0, x, y, z)",
        "g * betainc_derivative(1.0, x, y, z)",
        "g * beta_density_derivative(0.0, x, y, z)",
    ),
    "Regularised incomplete beta function of shapes x and y",
    None,
    "betainc(x, y, 0, z, regularized=True)",
    ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.4), (0.05, 3.0, 1e-3)),
    -0.141336,
    domain="x > 0, y > 0, 0 <= z <= 1",
    note=_BETA_RANGE,
)
betaincc = row(
    "betaincc",
    (
        "-g * betainc_derivative(10.0, x, y, z)",
        "-g * betainc_derivative(1.0, x, y, z)",
        "-g * beta_density_derivative(0.0, x, y, z)",
    ),
    "Complement of the regularised incomplete beta function",
    None,
    "betainc(x, y, z, 1, regularized=True)",
    ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8), (20.0, 30.0, 0.4)),
    0.141336,
    domain="x > 0, y > 0, 0 <= z <= 1",
    note=_BETA_RANGE,
)
inc_beta = betainc
# The two digits of x, and the derivative of the density with one of them less by one, unless it is
# zero.
_IN_A = "floor(0.1 * x)"
_IN_B = f"(x - 10.0 * {_IN_A})"
_LESS_A = f"beta_density_derivative(x - 10.0 * minimum({_IN_A}, 1.0), y, z, w)"
_LESS_B = f"beta_density_derivative(x - minimum({_IN_B}, 1.0), y, z, w)"
betainc_derivative = row(
    "betainc_derivative",
    (
        None,
        "g * betainc_derivative(x + 10.0, y, z, w)",
        "g * betainc_derivative(x + 1.0, y, z, w)",
        "g * beta_density_derivative(x, y, z, w)",
    ),
    "Derivative of `betainc` with respect to its shapes y and z, at w; the two digits of x are the "
    "orders, 10 for once in y",
    None,
    "diff(lambda s, t: betainc(s, t, 0, w, regularized=True), (y, z), divmod(int(x), 10))",
    ((10, 5.0, 6.5, 0.4), (1, 0.5, 0.7, 0.8)),
    0.0252221,
    domain="x is one of 0, 1, 2, ..., 10, 11, ..., y > 0, z > 0, 0 <= w <= 1",
    note=_BETA_RANGE,
    constant=_ORDERS,
    ufunc=_lazy(shape_derivatives.betainc_derivative),
)
beta_density_derivative = row(
    "beta_density_derivative",
    (
        None,
        "g * beta_density_derivative(x + 10.0, y, z, w)",
        "g * beta_density_derivative(x + 1.0, y, z, w)",
        (
            f"g * (((y - 1.0) / w - (z - 1.0) / (1.0 - w)) * r + {_IN_A} / w * {_LESS_A} - {_IN_B} "
            "/ "
            f"(1.0 - w) * {_LESS_B})"
        ),
    ),
    "Derivative, with respect to the shapes y and z, of the density ``w**(y - 1) (1 - w)**(z - 1) "
    "/ beta(y, z)``; "
    "the two digits of x are the orders, 10 for once in y",
    None,
    "diff(lambda s, t: w**(s - 1) * (1 - w)**(t - 1) / beta(s, t), (y, z), divmod(int(x), 10))",
    ((0, 5.0, 6.5, 0.4), (11, 0.5, 0.7, 0.8), (0, 900.0, 1100.0, 0.46)),
    -0.0641846,
    domain="x is one of 0, 1, 2, ..., 10, 11, ..., y > 0, z > 0, 0 < w < 1",
    constant=_ORDERS,
    ufunc=_lazy(shape_derivatives.beta_density_derivative),
)
# Implicit differentiation; at the ends, which are the same for all shapes, the derivative in a
# shape is 0.
_IMPLICIT_GAMMA = (
    "where((r == 0) | (r == inf), 0.0, -g * gammainc_derivative(1.0, x, r) / "
    "gamma_density_derivative(0.0, x, r))"
)
_IMPLICIT_BETA = (
    "where((r == 0) | (r == 1), 0.0, -g * betainc_derivative({}, x, y, r) / "
    "beta_density_derivative(0.0, x, y, r))"
)
gammaincinv = row(
    "gammaincinv",
    (_IMPLICIT_GAMMA, "g / gamma_density_derivative(0.0, x, r)"),
    "Inverse of `gammainc` in its argument",
    None,
    "findroot(lambda t: gammainc(x, 0, t, regularized=True) - y, (x / 100, 10 * x), "
    "solver='illinois')",
    ((7.5, 0.3), (0.7, 0.9)),
    0.901497,
    domain="x > 0, 0 < y < 1",
)
gammainccinv = row(
    "gammainccinv",
    (_IMPLICIT_GAMMA, "-g / gamma_density_derivative(0.0, x, r)"),
    "Inverse of `gammaincc` in its argument",
    None,
    "findroot(lambda t: gammainc(x, t, inf, regularized=True) - y, (x / 100, 10 * x + 100), "
    "solver='illinois')",
    ((7.5, 0.3), (2.5, 0.9)),
    1.09784,
    domain="x > 0, 0 < y < 1",
)
_IMPLICIT_BETAS = tuple(map(_IMPLICIT_BETA.format, ("10.0", "1.0")))
betaincinv = row(
    "betaincinv",
    (*_IMPLICIT_BETAS, "g / beta_density_derivative(0.0, x, y, r)"),
    "Inverse of `betainc` in its argument",
    None,
    "findroot(lambda t: betainc(x, y, 0, t, regularized=True) - z, (mpf(0), mpf(1)), "
    "solver='illinois')",
    ((5.0, 6.5, 0.4), (0.5, 0.7, 0.8)),
    0.0533471,
    domain="x > 0, y > 0, 0 < z < 1",
)
betainccinv = row(
    "betainccinv",
    (*_IMPLICIT_BETAS, "-g / beta_density_derivative(0.0, x, y, r)"),
    "Inverse of `betaincc` in its argument",
    None,
    "findroot(lambda t: betainc(x, y, t, 1, regularized=True) - z, (mpf(0), mpf(1)), "
    "solver='illinois')",
    ((5.0, 6.5, 0.4),),
    0.0510735,
    domain="x > 0, y > 0, 0 < z < 1",
)
inv_inc_beta = betaincinv

# The error function and the normal distribution. phi / Phi is written with erfcx, which neither
# overflows nor cancels in the tail.

erf = row(
    "erf",
    f"{TWO_OVER_ROOT_PI} * g * exp(-x * x)",
    "Error function",
    math.erf,
    "erf(x)",
    (0.5, -3.0, 1e-10, 6.0, 20.0),
    0.878783,
)
erfc = row(
    "erfc",
    f"-{TWO_OVER_ROOT_PI} * g * exp(-x * x)",
    "Complementary error function",
    math.erfc,
    "erfc(x)",
    (0.5, -3.0, 1e-10, 6.0, 20.0),
    -0.878783,
)
# From 20 on by the asymptotic series of the derivative, whose terms would cancel: sum (-1)**k (2 k
# + 1)!! / (2 x**2)**k.
_SERIES = "1.0"
for _k in range(17, 1, -2):
    _SERIES = f"(1.0 - {_k}.0 * (0.5 / square(maximum(x, 20.0))) * {_SERIES})"
erfcx = row(
    "erfcx",
    f"g * where(x > 20.0, -{_SERIES} / ({ROOT_PI} * square(maximum(x, 20.0))), (x + x) * r - "
    f"{TWO_OVER_ROOT_PI})",
    "Scaled complementary error function ``exp(x**2) erfc(x)``",
    None,
    "exp(x * x) * erfc(x)",
    (0.5, -5.0, 10.0, 25.0, 1e6),
    -0.512689,
)
erfi = row(
    "erfi",
    f"{TWO_OVER_ROOT_PI} * g * exp(x * x)",
    "Imaginary error function",
    None,
    "erfi(x)",
    (0.5, -3.0, 1e-10, 20.0),
    1.44887,
)
erfinv = row(
    "erfinv",
    f"{ROOT_PI_OVER_TWO} * g * exp(r * r)",
    "Inverse of `erf`",
    None,
    "erfinv(x)",
    (0.5, -0.999, 1e-10),
    1.11258,
    domain="-1 < x < 1",
)
erfcinv = row(
    "erfcinv",
    f"-{ROOT_PI_OVER_TWO} * g * exp(r * r)",
    "Inverse of `erfc`",
    None,
    "erfinv(1 - x)",
    (0.5, 1.999, 1e-10, 1e-40),
    -1.11258,
    domain="0 < x < 2",
)
inv_erfc = erfcinv
dawsn = row(
    "dawsn",
    "g * hyp1f1(1.0, 0.5, -x * x)",
    "Dawson's integral",
    None,
    "exp(-x * x) * erfi(x) * sqrt(pi) / 2",
    (0.5, -3.0, 1e-10, 1e4),
    0.575564,
)
ndtr = row(
    "ndtr",
    f"{NORMAL} * g * exp(-0.5 * x * x)",
    "Standard normal distribution function",
    None,
    "ncdf(x)",
    (0.5, -3.0, -20.0, 6.0),
    0.352065,
)
Phi = ndtr
log_ndtr = row(
    "log_ndtr",
    f"{ROOT_TWO_OVER_PI} * g / erfcx(-{ROOT_HALF} * minimum(x, 37.0))",
    "Logarithm of `ndtr`",
    None,
    "log(erfc(-x / sqrt(2)) / 2)",
    (0.5, -3.0, -20.0, -1e4, 6.0, 20.0),
    0.50916,
)
ndtri = row(
    "ndtri",
    f"{ROOT_TWO_PI} * g * exp(0.5 * r * r)",
    "Inverse of `ndtr`, the normal quantile",
    None,
    "sqrt(2) * erfinv(2 * x - 1)",
    (0.25, 0.999, 1e-10, 1e-40),
    3.14687,
    domain="0 < x < 1",
)
inv_Phi = std_normal_qf = ndtri  # noqa: N816 - Stan's name
ndtri_exp = row(
    "ndtri_exp",
    f"{ROOT_HALF_PI} * g * erfcx(-{ROOT_HALF} * r)",
    "Normal quantile of a probability given by its logarithm",
    None,
    "sqrt(2) * erfinv(2 * exp(x) - 1)",
    (-0.5, -1e-10, -20.0, -80.0),
    1.57691,
    domain="x < 0",
)
std_normal_log_qf = ndtri_exp
Phi_approx = row(
    "Phi_approx",
    "g * r * expit(-x * (0.07056 * x * x + 1.5976)) * (0.21168 * x * x + 1.5976)",
    "Approximation of `Phi` by a logistic function, to 1.4e-4",
    lambda x: _logistic(x * (0.07056 * x * x + 1.5976)),
    "1 / (1 + exp(-x * (mpf(0.07056) * x * x + mpf(1.5976))))",
    (0.5, -3.0, -10.0, 6.0),
    0.352037,
    ufunc=_lazy(lambda s, x: s.expit(x * (0.07056 * x * x + 1.5976))),
)
owens_t = row(
    "owens_t",
    (
        f"-0.5 * {NORMAL} * g * exp(-0.5 * x * x) * erf({ROOT_HALF} * x * y)",
        "g * exp(-0.5 * x * x * (1.0 + y * y)) / (2.0 * pi * (1.0 + y * y))",
    ),
    "Owen's T function",
    None,
    "quad(lambda t: exp(-x * x * (1 + t * t) / 2) / (1 + t * t), [0, y]) / (2 * pi)",
    ((0.5, 1.2), (3.0, -1.0)),
    -0.0794776,
)

# Logistic functions and log-scale arithmetic.

expit = row(
    "expit",
    "g * r * expit(-x)",
    "Logistic function ``1 / (1 + exp(-x))``",
    _logistic,
    "1 / (1 + exp(-x))",
    (0.5, -40.0, 40.0, -700.0, 1e-10),
    0.235004,
    ufunc=_expit,
)
inv_logit = expit
logit = row(
    "logit",
    "g / (x * (1.0 - x))",
    "Log odds ``log(x / (1 - x))``",
    None,
    "log(x / (1 - x))",
    (0.25, 1e-100, 0.999999),
    5.33333,
    domain="0 < x < 1",
)
log_expit = row(
    "log_expit",
    "g * expit(-x)",
    "Logarithm of the logistic function",
    lambda x: -_softplus(-x),
    "-log1p(exp(-x))",
    (0.5, -40.0, 40.0, -700.0, 700.0),
    0.377541,
    ufunc=_minus_softplus(-1.0),
)
log_inv_logit = log_expit
log1p_exp = row(
    "log1p_exp",
    "g * expit(x)",
    "``log(1 + exp(x))`` without overflow (softplus)",
    _softplus,
    "log1p(exp(x))",
    (0.5, -40.0, 40.0, -700.0, 700.0),
    0.622459,
    ufunc=softplus,
)
log1m_inv_logit = row(
    "log1m_inv_logit",
    "-g * expit(x)",
    "``log(1 - inv_logit(x))``",
    lambda x: -_softplus(x),
    "-log1p(exp(x))",
    (0.5, -40.0, 40.0, -700.0, 700.0),
    -0.622459,
    ufunc=_minus_softplus(1.0),
)
log1m = row(
    "log1m",
    "-g / (1.0 - x)",
    "``log(1 - x)``, exact near 0",
    lambda x: math.log1p(-x),
    "log1p(-x)",
    (0.5, -1e100, 1e-10, 0.999),
    -2.0,
    domain="x < 1",
    ufunc=formula(lambda x: np.log1p(-x)),
)
log1m_exp = row(
    "log1m_exp",
    "-g * exp(x) / (0.0 - expm1(x))",
    "``log(1 - exp(x))`` without cancellation",
    lambda x: math.log(-math.expm1(x)) if x > -0.6931471805599453 else math.log1p(-math.exp(x)),
    "log1p(-exp(x))",
    (-0.5, -1e-12, -40.0, -700.0, -0.7),
    -1.54149,
    domain="x < 0",
    ufunc=formula(
        lambda x: np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))
    ),
)
# exp(y) / (exp(x) - exp(y)). Subtracted from 0 the difference at x = y has the sign of those next
# to it, for x > y.
_ODDS = "exp(y - x) / (0.0 - expm1(y - x))"
log_diff_exp = row(
    "log_diff_exp",
    ("g / (0.0 - expm1(y - x))", f"-g * ({_ODDS})"),
    "``log(exp(x) - exp(y))`` without overflow",
    None,
    "log(exp(x) - exp(y))",
    ((0.5, -1.0), (300.0, 299.0), (2.0, 1.999999999999), (800.0, -1.0)),
    1.28722,
    domain="x > y",
    ufunc=formula(lambda x, y: np.where((x == y) & (x == -np.inf), -np.inf, x + _log1m_exp(y - x))),
)
log_inv_logit_diff = row(
    "log_inv_logit_diff",
    (f"g * (expit(-x) + {_ODDS})", f"-g * (expit(y) + {_ODDS})"),
    "``log(inv_logit(x) - inv_logit(y))``",
    None,
    "log(1 / (1 + exp(-x)) - 1 / (1 + exp(-y)))",
    ((0.5, -1.0), (20.0, 3.0), (-30.0, -31.0), (50.0, 49.0)),
    0.664758,
    domain="x > y",
    ufunc=formula(lambda x, y: _log1m_exp(y - x) - np.logaddexp(0.0, -x) - np.logaddexp(0.0, y)),
)
inv_cloglog = row(
    "inv_cloglog",
    "g * exp(x - exp(x))",
    "``1 - exp(-exp(x))``",
    lambda x: -math.expm1(-math.exp(x)),
    "-expm1(-exp(x))",
    (0.5, -30.0, -1.3, 3.0),
    0.317042,
    ufunc=formula(lambda x: -np.expm1(-np.exp(x))),
)
exprel = row(
    "exprel",
    "0.5 * g * hyp1f1(2.0, 3.0, minimum(x, 1000.0))",
    "``(exp(x) - 1) / x``",
    None,
    "expm1(x) / x",
    (0.5, -30.0, 1e-8, 100.0),
    0.702557,
)
exp10 = row(
    "exp10",
    f"g * r * {LN10}",
    "``10**x``",
    None,
    "mpf(10)**x",
    (0.5, -300.0, 1e-10, 300.0),
    7.28141,
)


def _log1m_exp(x: Any) -> Any:
    return ROWS["log1m_exp"].ufunc(x)


# x log(y) and entropies. At x = y = 0 the quotient is 0 over 1 instead of 0 over 0.

_BOTH_ZERO = "(x == 0) & (y == 0)"
_DIVISOR = f"where({_BOTH_ZERO}, 1.0, y)"
_RATIO = f"x / {_DIVISOR}"
# Of a quotient near 1 the logarithm has no digits.
_IS_ALIKE = "absolute(x - y) < 0.5 * y"
_LOG_RATIO = f"where({_IS_ALIKE}, log1p((x - y) / {_DIVISOR}), log(divide(x, y)))"
xlogy = row(
    "xlogy",
    ("g * log(y)", f"g * ({_RATIO})"),
    "``x log(y)``, 0 where x = 0 (and y is not nan)",
    None,
    "x * log(y)",
    ((1.2, 0.5), (-0.4, 1e-100), (0.0, 2.0), (3.0, 1e10)),
    -0.693147,
    domain="y > 0",
    note="At x = y = 0 the derivatives are -inf and 0",
)
lmultiply = multiply_log = xlogy
xlog1py = row(
    "xlog1py",
    ("g * log1p(y)", "g * (x / where((x == 0) & (y == -1), 1.0, 1.0 + y))"),
    "``x log(1 + y)``, 0 where x = 0 (and y is not nan)",
    None,
    "x * log1p(y)",
    ((1.2, 0.5), (-0.4, 1e-20), (0.0, 2.0), (3.0, -0.999)),
    0.405465,
    domain="y > -1",
    note="At x = 0, y = -1 the derivatives are -inf and 0",
)
entr = row(
    "entr",
    "g * (-log(x) - 1.0)",
    "Entropy term ``-x log(x)``",
    None,
    "-x * log(x)",
    (0.5, 1e-300, 3.0),
    -0.306853,
    domain="x > 0",
)
rel_entr = row(
    "rel_entr",
    (f"g * ({_LOG_RATIO} + 1.0)", f"-g * ({_RATIO})"),
    "Relative entropy term ``x log(x / y)``",
    None,
    "x * log(x / y)",
    ((1.2, 0.5), (1e-5, 3.0), (7.0, 1e10)),
    1.87547,
    domain="x > 0, y > 0",
)
kl_div = row(
    "kl_div",
    (f"g * ({_LOG_RATIO})", f"g * where({_BOTH_ZERO}, 1.0, (y - x) / {_DIVISOR})"),
    "Kullback-Leibler term ``x log(x / y) - x + y``",
    kl_div_of_numbers,
    "x * log(x / y) - x + y",
    ((1.2, 0.5), (1e-5, 3.0), (7.0, 1e10), (1e8, 1e8 - 1.0), (3.0, 3.0000001)),
    0.875469,
    domain="x > 0, y > 0",
    ufunc=_lazy(_kl_div),
)

# Powers and Box-Cox transforms. (log(1 + v) / v)' is -1/2 2F1(2, 2; 3; -v), (expm1(u) / u)' is 1/2
# 1F1(2; 3; u), infinite from u = 1000, where SciPy would begin to sum for ever.

inv = ROWS["reciprocal"]
inv_sqrt = row(
    "inv_sqrt",
    "-0.5 * g * r / x",
    "``1 / sqrt(x)``",
    lambda x: 1.0 / math.sqrt(x),
    "1 / sqrt(x)",
    (0.25, 1e-200, 1e8),
    -4.0,
    domain="x > 0",
    ufunc=formula(lambda x: 1.0 / np.sqrt(x)),
)
inv_square = row(
    "inv_square",
    "-2.0 * g * r / x",
    "``1 / x**2``",
    lambda x: 1.0 / (x * x),
    "1 / x**2",
    (-0.5, 1e-100, 1e8),
    16.0,
    domain="x is not 0",
    ufunc=formula(lambda x: 1.0 / np.square(x)),
)
powm1 = row(
    "powm1",
    ("g * (y * power(x, y - 1))", "g * power(x, y) * log(x)"),
    "``x**y - 1`` without cancellation",
    None,
    "x**y - 1",
    ((1.2, 2.5), (3.0, 1e-10), (0.5, -3.0)),
    3.28634,
    domain="x > 0",
)
# At the lower end the transform is -1 / y; the logarithm there is never used.
_IN_EXPONENT = (
    "g * where({0}, square(r), 0.5 * square({1}) * hyp1f1(2.0, 3.0, minimum(y * {1}, 1000.0)))"
).format
boxcox = row(
    "boxcox",
    ("g * power(x, y - 1)", _IN_EXPONENT("x == 0", "log(where(x == 0, 1.0, x))")),
    "Box-Cox transform ``(x**y - 1) / y``",
    None,
    "(x**y - 1) / y if y else log(x)",
    ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5)),
    1.31453,
    domain="x > 0",
)
boxcox1p = row(
    "boxcox1p",
    ("g * power(1.0 + x, y - 1)", _IN_EXPONENT("x == -1", "log1p(where(x == -1, 0.0, x))")),
    "Box-Cox transform of 1 + x",
    None,
    "((1 + x)**y - 1) / y if y else log1p(x)",
    ((1.2, 2.5), (3.0, 1e-8), (-0.5, -1.5), (1e-10, 0.5)),
    3.26313,
    domain="x > -1",
)
inv_boxcox = row(
    "inv_boxcox",
    ("g * r / (1.0 + x * y)", "-0.5 * g * r * square(x) * hyp2f1(2.0, 2.0, 3.0, -x * y)"),
    "Inverse of `boxcox` in its first argument",
    None,
    "(1 + x * y)**(1 / y) if y else exp(x)",
    ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5)),
    0.435275,
    domain="1 + x y > 0",
)
inv_boxcox1p = row(
    "inv_boxcox1p",
    (
        "g * inv_boxcox(x, y) / (1.0 + x * y)",
        "-0.5 * g * inv_boxcox(x, y) * square(x) * hyp2f1(2.0, 2.0, 3.0, -x * y)",
    ),
    "Inverse of `boxcox1p` in its first argument",
    None,
    "(1 + x * y)**(1 / y) - 1 if y else expm1(x)",
    ((1.2, 2.5), (3.0, 1e-8), (0.5, -1.5), (-40.0, 1e-3)),
    0.435275,
    domain="1 + x y > 0",
    ufunc=formula(_inv_boxcox1p),
)
huber = row(
    "huber",
    ("g * maximum(0.0, absolute(y) - x)", "g * minimum(maximum(y, -x), x)"),
    "Huber's loss: ``y**2 / 2`` up to ``abs(y) = x``, linear from there",
    None,
    "y * y / 2 if abs(y) <= x else x * (abs(y) - x / 2)",
    ((1.2, 2.5), (1.2, 0.5), (0.7, -3.0)),
    1.3,
    domain="x > 0",
)
pseudo_huber = row(
    "pseudo_huber",
    (
        "g * absolute(y) * (absolute(y) / hypot(x, y)) * square(y / (hypot(x, y) + x))",
        "g * x * (y / hypot(x, y))",
    ),
    "Smooth version of Huber's loss, ``x**2 (sqrt(1 + (y / x)**2) - 1)``",
    None,
    "x * x * (sqrt(1 + (y / x)**2) - 1)",
    ((1.2, 2.5), (1.2, 0.5), (0.7, -1e3), (3.0, 1e-3), (1e-10, 5.0), (1e-80, 2.0)),
    0.892362,
    domain="x > 0",
)
fma = row(
    "fma",
    ("g * y", "g * x", "g"),
    "``x * y + z``",
    lambda x, y, z: x * y + z,
    "x * y + z",
    ((1.2, 2.3, 0.4), (-3.0, 1e5, 7.0)),
    2.3,
    ufunc=formula(lambda x, y, z: x * y + z),
)
fdim = row(
    "fdim",
    tuple(f"where(x > y, {g}, where(x <= y, 0.0, nan * g))" for g in ("g", "-g")),
    "Positive difference ``max(x - y, 0)``",
    None,
    "max(x - y, 0)",
    ((1.5, -2.0), (-3.0, 4.0)),
    1.0,
    note="The derivative at x = y is 0",
    ufunc=formula(lambda x, y: np.where(x <= y, 0.0, x - y)),
)
step = row(
    "step",
    ZERO,
    "1 where x >= 0, else 0",
    None,
    "mpf(x >= 0)",
    (0.5, -2.0),
    0.0,
    note="The derivative is 0, at 0 as well",
    ufunc=formula(lambda x: np.heaviside(x, 1.0)),
)
binary_log_loss = row(
    "binary_log_loss",
    (None, "where(x == 1, -g / y, g / (1.0 - y))"),
    "Minus the logarithm of the probability of a binary outcome x, that of 1 being y",
    None,
    "-log(y) if x == 1 else -log1p(-y)",
    ((1, 0.3), (0, 0.3), (0, 1e-10)),
    -3.33333,
    domain="x is 0 or 1, 0 < y < 1",
    constant=("the outcome x",),
    ufunc=formula(lambda x, y: np.where(x == 1, -np.log(y), -np.log1p(-y))),
)
cosm1 = row(
    "cosm1",
    "-g * sin(x)",
    "``cos(x) - 1``, exact near 0",
    None,
    "cos(x) - 1",
    (0.5, -2.0, 1e-8),
    -0.479426,
)

# Bessel functions of order x, which is constant in `jv` and `yv`.

_ORDER = ("the order x",)
j0 = row(
    "j0",
    "-g * j1(x)",
    "Bessel function of the first kind of order 0",
    None,
    "besselj(0, x)",
    (0.5, -3.0, 0.0, 50.0),
    -0.242268,
)
j1 = row(
    "j1",
    "0.5 * g * (j0(x) - jv(2.0, x))",
    "Bessel function of the first kind of order 1",
    None,
    "besselj(1, x)",
    (0.5, -3.0, 0.0, 50.0),
    0.453933,
)
y0 = row(
    "y0",
    "-g * y1(x)",
    "Bessel function of the second kind of order 0",
    None,
    "bessely(0, x)",
    (0.5, 3.0, 1e-5, 50.0),
    1.47147,
    domain="x > 0",
)
y1 = row(
    "y1",
    "0.5 * g * (y0(x) - yv(2.0, x))",
    "Bessel function of the second kind of order 1",
    None,
    "bessely(1, x)",
    (0.5, 3.0, 1e-5, 50.0),
    2.49843,
    domain="x > 0",
)
i0 = row(
    "i0",
    "g * i1(x)",
    "Modified Bessel function of the first kind of order 0",
    None,
    "besseli(0, x)",
    (0.5, -3.0, 1e-8, 500.0),
    0.257894,
)
i1 = row(
    "i1",
    "0.5 * g * (i0(x) + iv(2.0, x))",
    "Modified Bessel function of the first kind of order 1",
    None,
    "besseli(1, x)",
    (0.5, -3.0, 1e-8, 500.0),
    0.547695,
)
k0 = row(
    "k0",
    "-g * k1(x)",
    "Modified Bessel function of the second kind of order 0",
    None,
    "besselk(0, x)",
    (0.5, 3.0, 1e-8, 500.0),
    -1.65644,
    domain="x > 0",
)
k1 = row(
    "k1",
    "-0.5 * g * (k0(x) + kv(2.0, x))",
    "Modified Bessel function of the second kind of order 1",
    None,
    "besselk(1, x)",
    (0.5, 3.0, 1e-8, 500.0),
    -4.2373,
    domain="x > 0",
)
i0e = row(
    "i0e",
    "-g * sign(x) * hyp1f1(1.5, 2.0, -2.0 * absolute(x))",
    "``exp(-abs(x)) i0(x)``",
    None,
    "exp(-abs(x)) * besseli(0, x)",
    (0.5, -3.0, 1e-8, 1e5),
    -0.488614,
    note="The derivative at 0 is 0",
)
i1e = row(
    "i1e",
    "0.5 * g * (hyp1f1(1.5, 3.0, -2.0 * absolute(x)) - absolute(x) * hyp1f1(2.5, 4.0, -2.0 * "
    "absolute(x)))",
    "``exp(-abs(x)) i1(x)``",
    None,
    "exp(-abs(x)) * besseli(1, x)",
    (0.5, -3.0, 1e-8, 1e5),
    0.175773,
)
# 2 x at 20 and beyond, where hyperu is exact and the differences of k0e, k1e and kve lose digits.
_FAR = "maximum(x + x, 40.0)"
k0e = row(
    "k0e",
    f"g * where(x > 20.0, -{ROOT_PI} * hyperu(1.5, 2.0, {_FAR}), r - k1e(x))",
    "``exp(x) k0(x)``",
    None,
    "exp(x) * besselk(0, x)",
    (0.5, 3.0, 1e-8, 1e5),
    -1.2069,
    domain="x > 0",
)
k1e = row(
    "k1e",
    f"g * where(x > 20.0, {ROOT_PI} * (2.0 * hyperu(1.5, 3.0, {_FAR}) - 6.0 * x * hyperu(2.5, 4.0, "
    f"{_FAR})), "
    "r - 0.5 * (k0e(x) + kve(2.0, x)))",
    "``exp(x) k1(x)``",
    None,
    "exp(x) * besselk(1, x)",
    (0.5, 3.0, 1e-3, 1e4),
    -4.25512,
    domain="x > 0",
)
jv = row(
    "jv",
    (None, "0.5 * g * (jv(x - 1.0, y) - jv(x + 1.0, y))"),
    "Bessel function of the first kind of order x",
    None,
    "besselj(x, y)",
    ((2.0, 1.7), (0.5, 3.0), (7.5, 50.0)),
    0.246308,
    constant=_ORDER,
)
yv = row(
    "yv",
    (None, "0.5 * g * (yv(x - 1.0, y) - yv(x + 1.0, y))"),
    "Bessel function of the second kind of order x",
    None,
    "bessely(x, y)",
    ((2.0, 1.7), (0.5, 3.0), (7.5, 50.0)),
    0.641155,
    domain="y > 0",
    constant=_ORDER,
)
_ANY_ORDER = (
    "The derivative in the order is an integral without cancellation: worst relative "
    "error 1e-13 for orders up to 400"
)
# With confluent functions, as of the orders 0 and 1, there would be no derivative in the order.
_SCALED = (
    _ANY_ORDER
    + ". That in y is a difference of neighbours: where y is large its relative error is about "
    "1e-15 y, and that "
    "of the second derivative 1e-15 y**2, and beyond y = 1e9 the value is nan; `i0e`, `i1e`, `k0e` "
    "and `k1e` have all digits"
)
_REAL = "y > 0; for whole numbers x all y, and no derivative in x for y < 0"
_IN_ORDER = "where(r == 0, 0.0, g * r * log_{}v_derivative(10.0, x, y))".format
iv = row(
    "iv",
    (_IN_ORDER("i"), "0.5 * g * (iv(x - 1.0, y) + iv(x + 1.0, y))"),
    "Modified Bessel function of the first kind of order x",
    None,
    "besseli(x, y)",
    ((2.0, 1.7), (0.5, 3.0), (7.5, 500.0), (30.5, 3.0)),
    -0.529331,
    domain=_REAL,
    note=_ANY_ORDER,
)
kv = row(
    "kv",
    (_IN_ORDER("k"), "-0.5 * g * (kv(x - 1.0, y) + kv(x + 1.0, y))"),
    "Modified Bessel function of the second kind of order x",
    None,
    "besselk(x, y)",
    ((2.1, 1.7), (0.5, 3.0), (7.5, 500.0)),
    0.41133,
    domain="y > 0",
    note=_ANY_ORDER,
)
ive = row(
    "ive",
    (_IN_ORDER("i"), "g * (0.5 * (ive(x - 1.0, y) + ive(x + 1.0, y)) - sign(y) * r)"),
    "``exp(-abs(y)) iv(x, y)``",
    None,
    "exp(-abs(y)) * besseli(x, y)",
    ((2.0, 1.7), (0.5, 3.0), (7.5, 100.0)),
    -0.0967,
    domain=_REAL,
    note=_SCALED,
)
kve = row(
    "kve",
    (_IN_ORDER("k"), "g * (r - 0.5 * (kve(x - 1.0, y) + kve(x + 1.0, y)))"),
    "``exp(y) kv(x, y)``",
    None,
    "exp(y) * besselk(x, y)",
    ((2.1, 1.7), (0.5, 3.0)),
    2.2516,
    domain="y > 0",
    note=_SCALED,
)
bessel_first_kind, bessel_second_kind, modified_bessel_first_kind, modified_bessel_second_kind = (
    jv,
    yv,
    iv,
    kv,
)
log_modified_bessel_first_kind = row(
    "log_modified_bessel_first_kind",
    ("g * log_iv_derivative(10.0, x, y)", "g * log_iv_derivative(1.0, x, y)"),
    "Logarithm of `iv`, without overflow or underflow",
    None,
    "log(besseli(x, y))",
    ((2.0, 0.9), (0.5, 3.0), (1.5, 1000.0), (300.5, 0.7)),
    -1.74328,
    domain="x >= 0, 0 < y < 1e9",
    note=_ANY_ORDER,
    ufunc=_lazy(order_derivatives.log_iv),
)
_LOG_BESSEL_POINTS = ((10, 2.1, 0.9), (1, 0.3, 1.5))


def _log_bessel_row(letter: str, kind: str, ufunc: Any, slope: float) -> Any:
    """The row of the derivatives of the logarithm of `iv` or `kv`."""
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
        domain="x is one of 0, 1, 2, ..., 10, 11, ..., z > 0",
        note=_ANY_ORDER,
        constant=_ORDERS,
        ufunc=_lazy(ufunc),
    )


log_iv_derivative = _log_bessel_row("i", "first", order_derivatives.log_iv_derivative, -0.367031)
log_kv_derivative = _log_bessel_row("k", "second", order_derivatives.log_kv_derivative, 0.479655)

# Integrals and hypergeometric functions, of constant parameters but for `hyp2f1`.

exp1 = row(
    "exp1",
    "-g * exp(-x) / x",
    "Exponential integral E1",
    None,
    "e1(x)",
    (0.5, 1e-10, 30.0),
    -1.21306,
    domain="x > 0",
)
expi = row(
    "expi",
    "g * exp(x) / x",
    "Exponential integral Ei",
    None,
    "ei(x)",
    (0.5, -3.0, 1e-10, 30.0),
    3.29744,
)
expn = row(
    "expn",
    (None, "-g * where(x > 1, expn(maximum(x - 1.0, 1.0), y), (exp(-y) - (x - 1.0) * r) / y)"),
    "Generalised exponential integral E_x",
    None,
    "expint(x, y)",
    ((2, 0.5), (1, 0.5), (0, 3.0), (5, 1e-5), (3, 30.0)),
    -0.559774,
    domain="y > 0, x = 0, 1, 2, ...",
    constant=_ORDER,
)
# The derivative is log(x) / (1 - x), near 1 as a function of 1 - x, which is rounded elsewhere.
_IS_NEAR = "absolute(x - 1.25) < 0.75"
_NEAR, _ELSE = "minimum(maximum(x, 0.5), 2.0)", f"where({_IS_NEAR}, 3.0, x)"
spence = row(
    "spence",
    f"g * where({_IS_NEAR}, -hyp2f1(1.0, 1.0, 2.0, 1.0 - {_NEAR}), log({_ELSE}) / (1.0 - {_ELSE}))",
    "Spence's integral, the dilogarithm of 1 - x",
    None,
    "re(polylog(2, 1 - x))",
    (0.5, 1e-5, 1.0001, 100.0),
    -1.38629,
    domain="x > 0",
)
lambert_w0 = row(
    "lambert_w0",
    "g * exp(-r) / (1.0 + r)",
    "Principal real branch of Lambert's W, the solution of ``r exp(r) = x``",
    None,
    "re(lambertw(x))",
    (0.5, -0.3, 1e-10, 1e10, -0.36787),
    0.520419,
    domain="x > -1 / e, nan outside",
    ufunc=_lazy(lambda s, x: _lambert(s, x, 0)),
)
lambert_wm1 = row(
    "lambert_wm1",
    "g * exp(-r) / (1.0 + r)",
    "Lower real branch of Lambert's W, the solution of ``r exp(r) = x`` below -1",
    None,
    "re(lambertw(x, -1))",
    (-0.25, -0.3, -1e-10, -0.36787),
    -7.46833,
    domain="-1 / e < x < 0, nan outside",
    ufunc=_lazy(lambda s, x: np.where(x >= 0, np.nan, _lambert(s, x, -1))),
)
wrightomega = row(
    "wrightomega",
    "g * r / (1.0 + r)",
    "Wright's omega function, the solution of ``r + log(r) = x``",
    None,
    "re(lambertw(exp(x)))",
    (0.5, -3.0, 30.0),
    0.433828,
)
_PARAMETERS = ("the parameter x", "the parameter y", "the parameter z")
hypergeometric_1F0 = row(
    "hypergeometric_1F0",
    ("-g * r * log1p(-y)", "g * x * r / (1.0 - y)"),
    "Hypergeometric function 1F0(x; y), ``(1 - y)**-x``",
    None,
    "(1 - y)**-x",
    ((0.5, 0.3), (-2.5, -3.0), (7.0, 1e-10), (30.0, 0.99)),
    0.426308,
    domain="y < 1, nan outside",
    note="Stan refuses y <= -1, where the power series does not converge",
    # Where the logarithm is small the first form loses less, for 1 - y is rounded; elsewhere the
    # second.
    ufunc=formula(
        lambda x, y: np.where(
            abs(y + 0.25) < 0.75, np.exp(-x * np.log1p(-y)), np.power(1.0 - y, -x)
        )
    ),
)
hyp0f1 = row(
    "hyp0f1",
    (None, "g * hyp0f1(x + 1.0, y) / x"),
    "Confluent hypergeometric limit function 0F1(x; y)",
    None,
    "hyp0f1(x, y)",
    ((2.5, 0.5), (2.5, -30.0)),
    0.460416,
    constant=_PARAMETERS[:1],
)
hyp1f1 = row(
    "hyp1f1",
    (None, None, "g * x / y * hyp1f1(x + 1.0, y + 1.0, z)"),
    "Kummer's function 1F1(x; y; z)",
    None,
    "hyp1f1(x, y, z)",
    ((2.0, 3.0, 0.5), (1.0, 0.5, -30.0)),
    0.974425,
    constant=_PARAMETERS[:2],
)
hyperu = row(
    "hyperu",
    (None, None, "-g * x * hyperu(x + 1.0, y + 1.0, z)"),
    "Tricomi's function U(x, y, z)",
    None,
    "hyperu(x, y, z)",
    ((1.5, 1.5, 0.5), (1.5, 1.5, 400.0)),
    -1.85454,
    domain="z > 0",
    constant=_PARAMETERS[:2],
)
_HYP2F1_RANGE = (
    "The derivatives in the parameters are summed with the series: relative error 1e-13 where its "
    "terms do not cancel; where "
    "they do, and fewer than eight digits are left, `DomainError` is raised"
)
_HYP2F1_POINTS = ((1.0, 1.5, 2.5, 0.01),)
hyp2f1 = row(
    "hyp2f1",
    (
        "g * hyp2f1_da(x, y, z, w)",
        "g * hyp2f1_db(x, y, z, w)",
        "g * hyp2f1_dc(x, y, z, w)",
        "g * x * y / z * hyp2f1(x + 1.0, y + 1.0, z + 1.0, w)",
    ),
    "Gauss's function 2F1(x, y; z; w)",
    None,
    "hyp2f1(x, y, z, w)",
    ((1.0, 1.5, 2.5, 0.01), (2.0, 2.0, 3.0, -30.0)),
    0.0060649,
    domain="w < 1, z is not 0, -1, -2, ...",
    note=_HYP2F1_RANGE,
)


def _hyp2f1_text(orders: tuple[int, ...], arguments: str = "(x, y, z, w)") -> str:
    letters = "".join(letter * n for letter, n in zip("abc", orders, strict=True))
    return ("hyp2f1_d" + letters if letters else "hyp2f1") + arguments


def _hyp2f1_slope(i: int, j: int, k: int) -> str:
    """The derivative in w of 2F1(x, y; z; w), x y / z 2F1(x + 1, y + 1; z + 1; w), differentiated
    in the parameters.
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


def _hyp2f1_row(orders: tuple[int, ...], slope: float = 0.0) -> Any:
    """The row of a derivative with respect to the parameters. The rows that its rules need are made
    when it is first evaluated.
    """
    name = _hyp2f1_text(orders, "")
    if name in ROWS:
        return ROWS[name]
    above = [tuple(n + (i == axis) for i, n in enumerate(orders)) for axis in range(3)]
    axes = tuple(axis for axis, n in enumerate(orders) for _ in range(n))

    def value(special: Any, *values: Any) -> Any:
        for each in (*above, *product(*(range(n + 1) for n in orders))):
            _hyp2f1_row(each)
        return hypergeometric_derivatives.hyp2f1_derivative(special, axes, *values)

    return row(
        name,
        (*(f"g * {_hyp2f1_text(each)}" for each in above), _hyp2f1_slope(*orders)),
        "Derivative of `hyp2f1` with respect to its parameters x, y and z, of orders {}, {} and {}".format(
            *orders
        ),
        None,
        f"diff(lambda r, s, t: hyp2f1(r, s, t, w), (x, y, z), {orders})",
        _HYP2F1_POINTS,
        slope,
        domain="w < 1, z is not 0, -1, -2, ...",
        note=_HYP2F1_RANGE,
        ufunc=_lazy(value),
    )


hypergeometric_2F1 = hyp2f1  # noqa: N816 - Stan's name
hyp2f1_da = _hyp2f1_row((1, 0, 0), 4.35319e-05)
hyp2f1_db = _hyp2f1_row((0, 1, 0), 0.00406941)
hyp2f1_dc = _hyp2f1_row((0, 0, 1), -0.00244464)

# Ufuncs of SciPy that are twins of NumPy's, that are computed in another way here, and that have
# another name.
SPECIAL.update({name: ROWS[name].call for name in ("exp2", "cbrt", "expm1", "log1p")})
SPECIAL.update(
    {name: ROWS[name].call for name in ("beta", "betaln", "binom", "expit", "log_expit")}
)
SPECIAL.update(round=ROWS["rint"].call, jve=jv.call, yve=yv.call, yn=yv.call, kn=kv.call)
SPECIAL.update(kl_div=kl_div.call, inv_boxcox1p=inv_boxcox1p.call)


# Compositions.


def polygamma(n: int, x: Any) -> Any:
    """Derivative of order n of `digamma`.

    Parameters
    ----------
    n : int
        Order, from 0 to 170: the factorial is a float.
    x : array_like of real numbers
        Not 0, -1, -2, ...

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `n` is less than 0 or greater than 170.
    TypeError
        If `n` is not an integer.

    Notes
    -----
    The derivative is ``polygamma(n + 1, x)``. Computed as ``(-1)**(n + 1) n! zeta(n + 1, x)``.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(0.5)
    >>> vm.polygamma(1, x).grad()
    >>> print(f"{x.adj:.6g}")
    -16.8288
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"polygamma: the order n is {n!r}, but must be an integer!")
    if n < 0:
        raise DomainError(f"polygamma: the order n is {n!r}, but must be nonnegative!")
    if n > 170:
        raise DomainError(f"polygamma: the order n is {n!r}, but must be at most 170!")
    n = int(n)
    if n == 0:
        return digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta(n + 1.0, x)


def trigamma(x: Any) -> Any:
    """Trigamma function, the derivative of `digamma`.

    Parameters
    ----------
    x : array_like of real numbers
        Not 0, -1, -2, ...

    Returns
    -------
    Var, VarMat or MatVar

    Notes
    -----
    The same as ``zeta(2, x)``; the derivative is ``polygamma(2, x)``.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(0.5)
    >>> vm.trigamma(x).grad()
    >>> print(f"{x.adj:.6g}")
    -16.8288
    """
    return zeta(2.0, x)


def multigammaln(a: Any, d: int) -> Any:
    """Logarithm of the multivariate gamma function of dimension d.

    Parameters
    ----------
    a : array_like of real numbers
        Greater than ``(d - 1) / 2``.
    d : int
        Dimension, 1 or more.

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `d` is less than 1.
    TypeError
        If `d` is not an integer.

    Notes
    -----
    ``d (d - 1) / 4 log(pi) + sum over j = 0, ..., d - 1 of gammaln(a - j / 2)``, with the
    derivative of this sum. Stan's `lmgamma` takes the dimension first.

    Examples
    --------
    >>> import varmat as vm
    >>> x = vm.var(2.5)
    >>> vm.multigammaln(x, 3).grad()
    >>> print(f"{x.adj:.6g}")
    1.16243
    """
    return _multigamma("multigammaln: the dimension d", a, d)


def _multigamma(title: str, a: Any, d: Any) -> Any:
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(f"{title} is {d!r}, but must be an integer!")
    if d < 1:
        raise DomainError(f"{title} is {d!r}, but must be positive!")
    d = int(d)  # NumPy's wrap around
    total = d * (d - 1) / 4.0 * math.log(math.pi) + gammaln(a)
    for j in range(1, d):
        total = total + gammaln(a - 0.5 * j)
    return total


def lmgamma(k: int, x: Any) -> Any:
    """Logarithm of the multivariate gamma function of dimension k: `multigammaln` with the
    dimension first.

    Parameters
    ----------
    k : int, or array_like of int
        Dimension, 1 or more; dimensions broadcast with `x`.
    x : array_like of real numbers
        Greater than ``(k - 1) / 2``.

    Returns
    -------
    Var, VarMat or MatVar

    Raises
    ------
    DomainError
        If `k` is less than 1.
    TypeError
        If `k` is not an integer.

    Notes
    -----
    The derivative is the sum of ``digamma(x - j / 2)`` over ``j = 0, ..., k - 1``.

    Examples
    --------
    >>> import varmat as vm
    >>> print(f"{vm.lmgamma(3, 2.5):.6g}")
    1.881
    """
    if not np.ndim(k):
        return _multigamma("lmgamma: the dimension k", x, k)
    if is_differentiable(k):
        raise TypeError(
            f"lmgamma: the dimension k is a {type(k).__name__}, but must be an integer, or an "
            "array of them!"
        )
    dimensions, x = np.asarray(k), as_operand(x, "lmgamma: x")
    if dimensions.dtype.kind not in "iu" and dimensions.size:
        raise TypeError(
            f"lmgamma: the dimensions k have dtype {dimensions.dtype}, but must be integers!"
        )
    positive.check("lmgamma", "k", dimensions)
    if not broadcastable(dimensions.shape, np.shape(x)):
        raise ShapeError(
            f"lmgamma: x has shape {np.shape(x)}, but must broadcast with k, of shape "
            f"{dimensions.shape}!"
        )
    total = dimensions * (dimensions - 1.0) / 4.0 * math.log(math.pi) + gammaln(x)
    for j in range(1, int(np.max(dimensions, initial=1))):
        within = dimensions > j
        total = total + np.where(within, gammaln(np.where(within, x - 0.5 * j, 1.0)), 0.0)
    return total
