"""Inverse chi-square distributions, plain and scaled.

They are inverse gamma distributions with half the degrees of freedom, h, as the shape. The terms
of the log density have the size ``h log(h)``, but their sum is much smaller. So it is written with
the deviance u - 1 - log(u) of u = scale / y from 1, which is `kl_div` of 1 and u, and with
Stirling's remainder of the gamma function. For arrays the deviance is the plain difference of u - 1
and log(u), which loses no more than the rounding of u does."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import positive_finite
from varmat.densities.density import LN2, not_nan
from varmat.densities.moments import if_above
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.entropies_and_losses import kl_div
from varmat.functions.special.gamma_functions import gammaln
from varmat.functions.special.stirling import digamma_excess, log_gamma_excess
from varmat.typing import Operand

__all__ = ["inv_chi_square_lpdf", "scaled_inv_chi_square_lpdf"]

VARIABLE = ("Random variable", not_nan)
FREEDOM = ("Degrees of freedom parameter", positive_finite)


@univariate(
    "inverse chi-square distribution",
    y=VARIABLE,
    nu=FREEDOM,
    lazy=("y",),
    fast=Fast(in_programs=True),
    points=[(1.3, 2.0), (0.4, 0.9), (0.2, 5.0), (0.01, 102.5), (1e9, 1e-3)],
    tails=[(0.001, 0.1), (1e-6, 1.001e6), (1e300, 2.0)],
    outside=[(-1.0, 2.0), (0.0, 2.0)],
    mean=lambda nu: if_above(2.0, nu, lambda n: 1.0 / (n - 2.0)),
    variance=lambda nu: if_above(4.0, nu, lambda n: 2.0 / ((n - 2.0) ** 2 * (n - 4.0))),
    ends=(0.0, math.inf),
)
def inv_chi_square_lpdf(y: Operand, nu: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`-\\frac\\nu2 \\log 2 - \\log\\Gamma(\\frac\\nu2) -
    (\\frac\\nu2 + 1) \\log y - \\frac1{2y}`. In SciPy ``scipy.stats.invgamma(nu / 2, scale=1 /
    2)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda y: vm.inv_chi_square_lpdf(y, 2.0), 0.25)
    0.0
    """
    half = 0.5 * nu
    w = 0.5 / y
    u = w / half
    log_u = np.log(u)
    if fast:
        deviance = u - 1.0 - log_u
        log_y = -log_u - np.log(nu)
    else:
        deviance = kl_div(1.0, u)
        log_y = np.log(y)
    return LogDensity(
        -log_gamma_excess(half),
        -half * deviance,
        -log_y,
        y=(w - half - 1.0) / y,
        nu=0.5 * (log_u - digamma_excess(half)),
        support=y > 0.0,
        dropping=(-gammaln(half) - LN2 * half, -(half + 1.0) * log_y, -w),
    )


@univariate(
    "scaled inverse chi-square distribution",
    y=VARIABLE,
    nu=FREEDOM,
    s=("Scale parameter", positive_finite),
    lazy=("y",),
    fast=Fast(in_programs=True),
    points=[(1.3, 2.0, 1.1), (0.4, 0.9, 0.7), (3.9, 100.5, 2.0), (1e9, 1e-3, 1e3)],
    tails=[(0.01, 2.0, 1.0), (1.001, 1e6, 1.0), (1e300, 2.0, 1.1)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    mean=lambda nu, s: if_above(2.0, nu, lambda n: n * s**2 / (n - 2.0)),
    variance=lambda nu, s: if_above(
        4.0, nu, lambda n: 2.0 * (n * s**2 / (n - 2.0)) ** 2 / (n - 4.0)
    ),
    ends=(0.0, math.inf),
)
def scaled_inv_chi_square_lpdf(y: Operand, nu: Operand, s: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`\\frac\\nu2 \\log \\frac\\nu2 - \\log\\Gamma(\\frac\\nu2) +
    \\nu \\log s - (\\frac\\nu2 + 1) \\log y - \\frac{\\nu s^2}{2y}`. In SciPy
    ``scipy.stats.invgamma(nu / 2, scale=nu * s**2 / 2)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda s: vm.scaled_inv_chi_square_lpdf([4.0, 4.0], 3.0, s), 2.0)
    0.0
    """
    half = 0.5 * nu
    u = s / y * s
    if fast:
        log_u = np.log(u)
        deviance = u - 1.0 - log_u
        log_y = 2.0 * np.log(s) - log_u
    else:
        deviance = kl_div(1.0, u)
        log_y = np.log(y)
    return LogDensity(
        -log_gamma_excess(half),
        -half * deviance,
        -log_y,
        y=(half * (u - 1.0) - 1.0) / y,
        nu=-0.5 * (deviance + digamma_excess(half)),
        s=nu * (1.0 - u) / s,
        support=y > 0.0,
        dropping=(
            half * np.log(half) - gammaln(half),
            nu * np.log(s),
            -(half + 1.0) * log_y,
            -half * u,
        ),
    )
