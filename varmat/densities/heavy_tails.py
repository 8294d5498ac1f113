"""Distributions with power tails: Pareto of both types, log-logistic."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive_finite
from varmat.densities.density import LARGEST, not_nan
from varmat.densities.moments import if_above
from varmat.densities.univariate import Fast, LogDensity, univariate
from varmat.functions.special.logistic_functions import expit
from varmat.typing import Operand

__all__ = ["loglogistic_lpdf", "pareto_lpdf", "pareto_type_2_lpdf"]

VARIABLE = ("Random variable", not_nan)
SHAPE = ("Shape parameter", positive_finite)
SCALE = ("Scale parameter", positive_finite)


# The logarithm of a rounded quotient near 1 has lost its digits.
@univariate(
    "Pareto distribution",
    y=VARIABLE,
    y_min=SCALE,
    alpha=SHAPE,
    fast=Fast(),
    points=[(1.3, 0.2, 1.1), (3.9, 1.2, 0.7), (4.0, 0.999, 20.0), (8e9, 1e-3, 0.2)],
    tails=[(1e200, 1e-100, 2.0), (4.0, 3.999999, 1e6), (1.0, 1.0, 1e10)],
    outside=[(0.1, 0.2, 1.5), (-1.0, 0.2, 1.5)],
    mean=lambda y_min, alpha: if_above(1.0, alpha, lambda a: a * y_min / (a - 1.0)),
    variance=lambda y_min, alpha: if_above(
        2.0, alpha, lambda a: a * (y_min / (a - 1.0)) ** 2 / (a - 2.0)
    ),
    ends=lambda y_min, alpha: (y_min, math.inf),
)
def pareto_lpdf(y: Operand, y_min: Operand, alpha: Operand, fast: bool) -> LogDensity:
    """The log density is :math:`\\log \\alpha + \\alpha \\log y_{min} - (\\alpha + 1) \\log
    y` from :math:`y_{min}` on. In SciPy ``scipy.stats.pareto(alpha, scale=y_min)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda y_min: vm.pareto_lpdf([2.0, 3.0], y_min, 1.5), 1.0)
    3.0
    """
    log_ratio = np.log1p((y - y_min) / y_min)
    log_y = np.log(y_min) + log_ratio if fast else np.log(y)
    return LogDensity(
        np.log(alpha),
        -log_y,
        -alpha * log_ratio,
        y=-(alpha + 1.0) / y,
        y_min=alpha / y_min,
        alpha=1.0 / alpha - log_ratio,
        support=y >= y_min,
        dropping=(np.log(alpha), alpha * np.log(y_min), -(alpha + 1.0) * log_y),
    )


@univariate(
    "Pareto type 2 (Lomax) distribution",
    y=VARIABLE,
    mu=("Location parameter", finite),
    scale=SCALE,
    alpha=SHAPE,
    points=[
        (1.3, 0.2, 1.1, 2.0),
        (4.4, -3.9, 0.7, 0.8),
        (3.9, 3.5, 1e2, 1e2),
        (8.0, 1.0, 1e-2, 0.2),
    ],
    tails=[(1e20, 1.0, 1e-10, 2.0), (3.9, 3.5, 1e6, 1e6), (1.0, 1.0, 2.0, 1e10)],
    outside=[(0.1, 0.2, 1.5, 2.0), (-1.0, 0.2, 1.5, 2.0)],
    mean=lambda mu, scale, alpha: if_above(1.0, alpha, lambda a: mu + scale / (a - 1.0)),
    variance=lambda mu, scale, alpha: if_above(
        2.0, alpha, lambda a: a * (scale / (a - 1.0)) ** 2 / (a - 2.0)
    ),
    ends=lambda mu, scale, alpha: (mu, math.inf),
)
def pareto_type_2_lpdf(y: Operand, mu: Operand, scale: Operand, alpha: Operand) -> LogDensity:
    """The log density is :math:`\\log \\alpha - \\log \\lambda - (\\alpha + 1) \\log(1 + (y -
    \\mu) / \\lambda)` from :math:`\\mu` on, with :math:`\\lambda` the scale. In SciPy
    ``scipy.stats.lomax(alpha, mu, scale)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda y: vm.pareto_type_2_lpdf(y, 0.0, 1.0, 2.0), 2.0)
    -1.0
    """
    d = y - mu
    r = d / scale
    logarithm = np.log1p(r)
    w = 1.0 / (scale + d)
    s = (alpha + 1.0) * w
    return LogDensity(
        np.log(alpha),
        -np.log(scale),
        -(alpha + 1.0) * logarithm,
        y=-s,
        mu=s,
        scale=(alpha * r - 1.0) * w,
        alpha=1.0 / alpha - logarithm,
        support=y >= mu,
    )


# With w = beta log(y / alpha), log(1 + exp(w)) takes out exp(w) where that is large. The derivative
# in y is written with the probability below y, which is small where the other terms cancel.
@univariate(
    "log-logistic distribution",
    y=VARIABLE,
    alpha=SCALE,
    beta=SHAPE,
    points=[(1.3, 2.0, 1.1), (0.4, 0.9, 0.7), (3.9, 3.5, 20.0), (1e-9, 1.0, 1.0), (1e9, 1e-3, 0.3)],
    tails=[(1e300, 1e-5, 2.0), (1e-300, 1e5, 3.0), (1.5, 1.0, 1e4)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5), (float("inf"), 2.0, 1.5)],
    mean=lambda alpha, beta: if_above(1.0, beta, lambda b: alpha / np.sinc(1.0 / b)),
    variance=lambda alpha, beta: if_above(
        2.0, beta, lambda b: alpha**2 * (1.0 / np.sinc(2.0 / b) - 1.0 / np.sinc(1.0 / b) ** 2)
    ),
    ends=(0.0, math.inf),
)
def loglogistic_lpdf(y: Operand, alpha: Operand, beta: Operand) -> LogDensity:
    """With :math:`u = y / \\alpha` the log density is :math:`\\log\\frac\\beta\\alpha +
    (\\beta - 1) \\log u - 2 \\log(1 + u^\\beta)`: scale :math:`\\alpha`, shape :math:`\\beta`. In
    SciPy ``scipy.stats.fisk(beta, scale=alpha)``.

    >>> import varmat as vm
    >>> vm.gradient(lambda alpha: vm.loglogistic_lpdf([0.5, 2.0], alpha, 3.0), 1.0)
    0.0
    """
    ratio = np.log(y / alpha)
    w = beta * ratio
    logarithm = np.maximum(w, 0.0) + np.log1p(np.exp(-np.absolute(w)))
    t = np.tanh(0.5 * w)
    return LogDensity(
        np.log(beta),
        -np.log(alpha),
        (beta - 1.0) * ratio,
        -2.0 * logarithm,
        y=(beta - 1.0 - 2.0 * beta * expit(w)) / y,
        alpha=beta * t / alpha,
        beta=1.0 / beta - ratio * t,
        support=(y > 0.0) & (y <= LARGEST),
        dropping=(np.log(beta), -beta * np.log(alpha), (beta - 1.0) * np.log(y), -2.0 * logarithm),
    )
