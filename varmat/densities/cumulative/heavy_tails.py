"""Cumulative functions of distributions with heavy tails: Pareto of both types, log-logistic."""

from __future__ import annotations

import numpy as np

from varmat.densities.cumulative.row import POSITIVE, Tail, Tails, cumulative, less, within
from varmat.densities.heavy_tails import loglogistic_lpdf, pareto_lpdf, pareto_type_2_lpdf
from varmat.functions.special.logistic_functions import expit, log_expit
from varmat.typing import Operand

__all__ = [
    "loglogistic_cdf", "loglogistic_lccdf", "loglogistic_lcdf", "pareto_cdf", "pareto_lccdf",
     "pareto_lcdf",
    "pareto_type_2_cdf", "pareto_type_2_lccdf", "pareto_type_2_lcdf",
]  # fmt: skip


# With t = alpha log(1 + u) the probability above is exp(-t). Next to the smallest possible
# observation u is exact, but log(1 + u) of a quotient near 1 is not.
def _pareto(x: Operand, y_min: Operand, alpha: Operand, fast: bool) -> Tails:
    """The probability above y is :math:`(y_{min} / y)^\\alpha`. In SciPy
    ``scipy.stats.pareto(alpha, scale=y_min)``.

    >>> import varmat as vm
    >>> vm.pareto_cdf(2.0, 1.0, 1.0)
    0.5
    """
    log_ratio = np.log1p((x - y_min) / y_min)
    t = alpha * log_ratio
    remainder, odds = less(t, fast)
    slope = odds / log_ratio
    return Tails(
        below=Tail(remainder, y=slope / x, y_min=-slope / y_min, alpha=odds / alpha),
        above=Tail(-t, y=-alpha / x, y_min=alpha / y_min, alpha=-log_ratio),
        when=within(t),
    )


pareto_cdf, pareto_lcdf, pareto_lccdf = cumulative(
    pareto_lpdf,
    _pareto,
    fast=True,
    tails=[(1.0 + 1e-9, 1.0, 2.0), (1e300, 1e-3, 2.0), (10.0, 1.0, 400.0), (2.0, 1.0, 1e-8)],
    start=lambda y, y_min, *_: y > y_min,
    before=(-1.0, 0.2),
    inside=lambda y_min, *_: y_min + y_min,
)


def _pareto_type_2(x: Operand, mu: Operand, scale: Operand, alpha: Operand, fast: bool) -> Tails:
    """The probability above y is :math:`(1 + (y - \\mu) / \\lambda)^{-\\alpha}`, with the
    scale :math:`\\lambda`. In SciPy ``scipy.stats.lomax(alpha, mu, scale)``.

    >>> import varmat as vm
    >>> vm.pareto_type_2_cdf(1.0, 0.0, 1.0, 1.0)
    0.5
    """
    d = x - mu
    u = d / scale
    log_ratio = np.log1p(u)
    t, rate = alpha * log_ratio, alpha / (scale + d)
    remainder, odds = less(t, fast)
    slope = odds / log_ratio / (scale + d)
    return Tails(
        below=Tail(remainder, y=slope, mu=-slope, scale=-slope * u, alpha=odds / alpha),
        above=Tail(-t, y=-rate, mu=rate, scale=rate * u, alpha=-log_ratio),
        when=within(t),
    )


pareto_type_2_cdf, pareto_type_2_lcdf, pareto_type_2_lccdf = cumulative(
    pareto_type_2_lpdf,
    _pareto_type_2,
    fast=True,
    tails=[(1e-9, 0.0, 1.0, 2.0), (1e10, 0.0, 1e-3, 2.0), (10.0, 1.0, 1.0, 400.0)],
    start=lambda y, mu, *_: y > mu,
    before=(-1.0, 0.2),
    inside=lambda mu, scale, *_: mu + scale,
)


def _loglogistic(x: Operand, alpha: Operand, beta: Operand) -> Tails:
    """The probability up to y is :math:`1 / (1 + (y / \\alpha)^{-\\beta})`. In SciPy
    ``scipy.stats.fisk(beta, scale=alpha)``.

    >>> import varmat as vm
    >>> vm.loglogistic_cdf(2.0, 2.0, 3.0)
    0.5
    """
    logarithm = np.log(x / alpha)
    s = beta * logarithm
    p = expit(-s)
    q = expit(s)
    return Tails(
        below=Tail(log_expit(s), y=p * beta / x, alpha=-p * beta / alpha, beta=p * logarithm),
        above=Tail(log_expit(-s), y=-q * beta / x, alpha=q * beta / alpha, beta=-q * logarithm),
    )


loglogistic_cdf, loglogistic_lcdf, loglogistic_lccdf = cumulative(
    loglogistic_lpdf,
    _loglogistic,
    points=[(0.3, 0.2, 1.5), (4.0, 0.7, 0.3), (70.0, 65.0, 12.0), (1.5, 1.0, 2.0)],
    tails=[(1e100, 1e-3, 2.0), (1e-100, 1.0, 2.0), (10.0, 1.0, 400.0)],
    **POSITIVE,
)
