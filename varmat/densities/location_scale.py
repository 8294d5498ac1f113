"""Families of a location and a scale: Student's t, Cauchy, double exponential, logistic."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive_finite
from varmat.densities.density import LN2, not_nan
from varmat.densities.moments import if_above
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.typing import Operand

__all__ = ["cauchy_lpdf", "double_exponential_lpdf", "logistic_lpdf", "student_t_lpdf"]

LOCATION = ("Location parameter", finite)
SCALE = ("Scale parameter", positive_finite)


# With h**2 = d**2 + c**2 the logarithm of h / c is log1p(d / c * d / (c + h)), where nothing
# overflows; fmin is for an infinite d. Expressions with two forms use the smaller of the
# ratios d / h and c / h, because derivatives of a ratio near 1 cancel.
@univariate(
    "Student t distribution",
    y=("Random variable", not_nan),
    nu=("Degrees of freedom parameter", positive_finite),
    mu=LOCATION,
    sigma=SCALE,
    lazy=("y", "mu"),
    fast=Fast(in_programs=True),
    points=[
        (0.3, 2.5, 0.1, 1.5),
        (-4.0, 1.0, 0.7, 0.3),
        (1e-9, 30.0, -1e-9, 1e3),
        (7.0, 4.0, 6.5, 1e-3),
    ],
    tails=[
        (1e8, 3.0, 0.0, 1.0),
        (0.3, 1e6, 0.1, 1.5),
        (-40.0, 1e4, 3.0, 1.5),
        (0.3, 1e-6, 0.1, 1.5),
        (40.0, 1e-11, 0.1, 1.5),
    ],
    mean=lambda nu, mu, sigma: if_above(1.0, nu, lambda n: mu + 0.0 * n, math.nan),
    variance=lambda nu, mu, sigma: if_above(
        1.0, nu, lambda n: sigma**2 * if_above(2.0, n, lambda n: n / (n - 2.0)), math.nan
    ),
)
def student_t_lpdf(y: Operand, nu: Operand, mu: Operand, sigma: Operand, fast: bool) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\sigma` the log density is
    :math:`\\log\\Gamma(\\frac{\\nu + 1}2) - \\log\\Gamma(\\frac\\nu2) - \\frac12 \\log \\nu\\pi -
    \\log\\sigma - \\frac{\\nu + 1}2 \\log(1 + z^2 / \\nu)`. In SciPy ``scipy.stats.t(nu, mu,
    sigma)``.

    >>> import varmat as vm
    >>> round(vm.student_t_lpdf(1.0, 3.0, 0.0, 1.0), 12)
    -1.576252994527
    """
    # The partial in sigma equals s z - inv, but that cancels where nu is small.
    d = y - mu
    if fast:
        root = np.sqrt(nu)
        k = 1.0 / (sigma * root)
        t = d * k
        r = t * t
        logarithm = np.log1p(r)
        f = (nu + 1.0) * k / (1.0 + r)
        s = t * f
        v = nu * r - 1.0
        w = f * (root / (nu + 1.0))
        e = r * f * (sigma / root)
    else:
        a = np.absolute(d)
        c = sigma * np.sqrt(nu)
        h = np.hypot(d, c)
        logarithm = 2.0 * np.log1p(a / c * np.fmin(a / (c + h), 1.0))
        s = (nu + 1.0) * (d / h) / h
        p = np.square(d / h)
        q = np.square(c / h)
        v = np.where(a < c, (nu + 1.0) * p - 1.0, nu - (nu + 1.0) * q)
        w = 1.0 / sigma
        e = (nu + 1.0) / nu * np.where(a < c, p, 1.0 - q)
    return LogDensity(
        log_rising_factorial(0.5 * nu, 0.5) - 0.5 * np.log(nu),
        -np.log(sigma),
        -0.5 * (nu + 1.0) * logarithm,
        -0.5723649429247001,
        y=-s,
        mu=s,
        sigma=v * w,
        nu=0.5 * (zeta_difference(1.0, 0.5 * nu, 0.5) - 1.0 / nu) + 0.5 * (e - logarithm),
    )


@univariate(
    "Cauchy distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    lazy=("y", "mu"),
    fast=Fast(in_programs=True),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 1e-3)],
    tails=[(-1e8, 0.0, 1.0), (1.0, 2.0, 1e8)],
    mean=lambda mu, sigma: math.nan * (mu + sigma),
    variance=lambda mu, sigma: math.nan * (mu + sigma),
)
def cauchy_lpdf(y: Operand, mu: Operand, sigma: Operand, fast: bool) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-\\log \\pi\\sigma -
    \\log(1 + z^2)`. In SciPy ``scipy.stats.cauchy(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.cauchy_lpdf([1.0, 3.0], mu, 1.0), 2.0)
    0.0
    """
    # The partial in sigma equals s z - inv, but the derivative of that cancels where z is large.
    inv = 1.0 / sigma
    if fast:
        z = (y - mu) * inv
        logarithm = np.log1p(z * z)
        p = 1.0 / (1.0 + z * z)
        s = 2.0 * inv * z * p
        w = 2.0 * inv * p
    else:
        d = y - mu
        a = np.absolute(d)
        h = np.hypot(d, sigma)
        logarithm = 2.0 * np.log1p(a / sigma * np.fmin(a / (sigma + h), 1.0))
        s = 2.0 * (d / h) / h
        w = 2.0 * (sigma / h) / h
    return LogDensity(-np.log(sigma), -logarithm, -1.1447298858494002, y=-s, mu=s, sigma=inv - w)


@univariate(
    "double exponential (Laplace) distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    lazy=("y", "mu"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-3, -0.1, 1e3), (7.0, 6.5, 1e-3)],
    tails=[(1e8, 1.0, 1e-3), (-1e-20, 1.0, 1e5)],
    mean=lambda mu, sigma: mu,
    variance=lambda mu, sigma: 2.0 * sigma**2,
)
def double_exponential_lpdf(y: Operand, mu: Operand, sigma: Operand) -> LogDensity:
    """The log density is :math:`-\\log 2\\sigma - |y - \\mu| / \\sigma`; at the kink
    :math:`y = \\mu` the derivative in both is 0. In SciPy ``scipy.stats.laplace(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.double_exponential_lpdf([1.0, 3.0, 4.0], mu, 0.5), 2.0)
    2.0
    """
    inv = 1.0 / sigma
    d = y - mu
    a = np.absolute(d) * inv
    s = np.sign(d) * inv
    return LogDensity(-np.log(sigma), -a, -LN2, y=-s, mu=s, sigma=a * inv - inv)


# The density is symmetric. With e = exp(-|z|) its logarithm -|z| - 2 log(1 + e) never overflows.
@univariate(
    "logistic distribution",
    y=("Random variable", not_nan),
    mu=LOCATION,
    sigma=SCALE,
    lazy=("y", "mu"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (6.51, 6.5, 1e-3)],
    tails=[(1000.0, 0.0, 1.0), (-1000.0, 0.0, 1.0)],
    mean=lambda mu, sigma: mu,
    variance=lambda mu, sigma: math.pi**2 / 3.0 * sigma**2,
)
def logistic_lpdf(y: Operand, mu: Operand, sigma: Operand) -> LogDensity:
    """With :math:`z = (y - \\mu) / \\sigma` the log density is :math:`-\\log\\sigma - z - 2
    \\log(1 + e^{-z})`, with the derivative :math:`-\\tanh(z / 2) / \\sigma` in y. In SciPy
    ``scipy.stats.logistic(mu, sigma)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.logistic_lpdf([1.0, 3.0], mu, 1.0), 2.0)
    0.0
    """
    inv = 1.0 / sigma
    z = (y - mu) * inv
    a = np.absolute(z)
    s = np.tanh(0.5 * z) * inv
    return LogDensity(
        -np.log(sigma), -a - 2.0 * np.log1p(np.exp(-a)), y=-s, mu=s, sigma=s * z - inv
    )
