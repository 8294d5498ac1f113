"""Skewed relatives of the normal and of the double exponential distribution."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite, positive, positive_finite
from varmat.densities.density import HALF_LOG_TWO_PI, LARGEST, LN2, not_nan, probability
from varmat.densities.univariate import LogDensity, univariate
from varmat.functions.special.error_functions import erfcx, log_ndtr
from varmat.typing import Operand

__all__ = ["exp_mod_normal_lpdf", "skew_double_exponential_lpdf", "skew_normal_lpdf"]

VARIABLE = ("Random variable", not_nan)
LOCATION = ("Location parameter", finite)
ROOT_HALF, ROOT_TWO_OVER_PI = math.sqrt(0.5), math.sqrt(2.0 / math.pi)


def hazard(x: Operand) -> Operand:
    """Divide the normal density by the normal distribution function. Beyond 37 it is negligible."""
    return ROOT_TWO_OVER_PI / erfcx(-ROOT_HALF * np.minimum(x, 37.0))


def mean_beyond(x: Operand, h: Operand) -> Operand:
    """Compute minus the mean of a normal variable beyond -x, where the hazard is h.

    Far on the left it is a ratio of series DLMF 7.12.1."""
    far = np.minimum(x, -28.0)
    q = 1.0 / (far * far)
    series = 0.0
    for c in (1708394.0, 110410.0, 8162.0, 706.0, 74.0, 10.0, 2.0):
        series = c - q * series
    return np.where(x > -28.0, x + h, (q * series - 1.0) / far)


@univariate(
    "skew normal distribution",
    y=VARIABLE,
    xi=LOCATION,
    omega=("Scale parameter", positive),
    alpha=("Shape parameter", finite),
    lazy=("y", "xi", "omega"),
    points=[
        (0.3, 0.1, 1.5, 0.8),
        (-2.0, -1.0, 0.7, -2.0),
        (4.0, 3.0, 2.5, -3.0),
        (1e-9, -1e-9, 1e3, 40.0),
        (0.3, 0.1, 1.5, 0.0),
    ],
    tails=[
        (-5.0, 0.0, 1.0, 4.0),
        (8.0, 0.0, 1.0, 1.0),
        (-40.0, 3.0, 0.01, 1e3),
        (1e8, 0.0, 1.0, -3.0),
    ],
    outside=[(float("-inf"), 0.1, 1.5, 0.8), (float("inf"), 0.1, 1.5, 0.0)],
    mean=lambda xi, omega, alpha: xi + omega * alpha * np.sqrt(2.0 / (math.pi * (1.0 + alpha**2))),
    variance=lambda xi, omega, alpha: (
        omega**2 * (1.0 - 2.0 / math.pi * alpha**2 / (1.0 + alpha**2))
    ),
)
def skew_normal_lpdf(y: Operand, xi: Operand, omega: Operand, alpha: Operand) -> LogDensity:
    """With :math:`z = (y - \\xi) / \\omega` the log density is :math:`-\\log\\omega - z^2 /
    2 + \\log 2\\Phi(\\alpha z) - \\log(2 \\pi) / 2`. In SciPy ``scipy.stats.skewnorm(alpha, xi,
    omega)``.

    >>> import varmat as vm
    >>> vm.skew_normal_lpdf(1.5, 1.0, 2.0, 0.0) == vm.normal_lpdf(1.5, 1.0, 2.0)
    True
    """
    inv = 1.0 / omega
    z = (y - xi) * inv
    h = hazard(alpha * z)
    s = (alpha * h - z) * inv
    return LogDensity(
        -np.log(omega),
        -0.5 * z * z,
        log_ndtr(alpha * z) + LN2,
        -HALF_LOG_TWO_PI,
        y=s,
        xi=-s,
        omega=-z * s - inv,
        alpha=z * h,
        support=(y >= -LARGEST) & (y <= LARGEST),
    )


# With a skewness of 0 or 1 the density is zero everywhere.
@univariate(
    "skew double exponential distribution",
    y=VARIABLE,
    mu=LOCATION,
    sigma=("Scale parameter", positive_finite),
    tau=("Skewness parameter", probability),
    lazy=("y", "mu"),
    points=[
        (0.3, 0.1, 1.5, 0.4),
        (-2.0, -1.0, 0.7, 0.8),
        (4.0, 3.0, 2.5, 0.15),
        (-1e-3, 0.1, 1e3, 1e-9),
    ],
    tails=[(1e8, 1.0, 1e-3, 0.5), (-1e-20, 1.0, 1e5, 1.0 - 1e-9)],
    mean=lambda mu, sigma, tau: mu + 0.5 * sigma * (1.0 / tau - 1.0 / (1.0 - tau)),
    variance=lambda mu, sigma, tau: 0.25 * sigma**2 * (1.0 / tau**2 + 1.0 / (1.0 - tau) ** 2),
)
def skew_double_exponential_lpdf(
    y: Operand, mu: Operand, sigma: Operand, tau: Operand
) -> LogDensity:
    """The log density is :math:`\\log 2 \\tau (1 - \\tau) - \\log \\sigma - \\frac2\\sigma
    \\tau (y - \\mu)` above :math:`\\mu` and :math:`\\log 2 \\tau (1 - \\tau) - \\log \\sigma -
    \\frac2\\sigma (1 - \\tau) (\\mu - y)` below, where the probability is :math:`\\tau`; at the
    kink :math:`y = \\mu` the derivative in both is 0. With :math:`\\tau = 1/2` it is
    `double_exponential_lpdf`. In SciPy ``scipy.stats.laplace_asymmetric``.

    >>> import varmat as vm
    >>> vm.gradient(lambda mu: vm.skew_double_exponential_lpdf([1.0, 3.0, 4.0], mu, 1.0, 0.25), 2.0)
    -0.5
    """
    d = y - mu
    inv = 1.0 / sigma
    k = np.where(d > 0.0, tau, np.where(d < 0.0, tau - 1.0, 0.0))
    s = 2.0 * k * inv
    logarithm = s * d
    return LogDensity(
        -np.log(sigma),
        np.log(tau) + np.log1p(-tau),
        -logarithm,
        LN2,
        y=-s,
        mu=s,
        sigma=(logarithm - 1.0) * inv,
        tau=1.0 / tau - 1.0 / (1.0 - tau) - 2.0 * d * inv,
    )


# With x = z - a the log density is log(rate) + a**2 / 2 - a z + log(Phi(x)). Left of 0 log(Phi(x))
# cancels with the terms before it, and the last three terms are -z**2 / 2 + log(erfcx(-x / sqrt(2))
# / 2). With the hazard h the derivatives are h - a in z and -(x + h) in a. Here x + h is the mean
# of a normal variable beyond -x. It cancels far on the left, where a ratio of series DLMF 7.12.1
# takes over.
def exponential_part(z: Operand, a: Operand) -> tuple[Operand, ...]:
    """Compute x, h and x + h; log(2 Phi(x)) with the terms before it left of 0, and log(Phi(x))
    with them elsewhere.
    """
    x = z - a
    h = hazard(x)
    # Right of 0, where it is not used, the hazard may be so small that a derivative overflows.
    left = -0.5 * z * z + np.log(ROOT_TWO_OVER_PI / np.maximum(h, 0.75))
    right = a * (0.5 * a - z) + log_ndtr(np.maximum(x, 0.0))
    return x, h, mean_beyond(x, h), left, right


@univariate(
    "exponentially modified normal distribution",
    y=VARIABLE,
    mu=LOCATION,
    sigma=("Scale parameter", positive_finite),
    rate=("Inv_scale parameter", positive_finite),
    lazy=("y", "mu"),
    points=[
        (0.3, 0.1, 1.5, 0.8),
        (-2.0, -1.0, 0.7, 2.0),
        (4.0, 3.0, 2.5, 0.3),
        (4.0, 0.1, 0.5, 1.7),
        (0.3, 0.1, 1.5, 19.0),
    ],
    tails=[
        (-30.0, 0.0, 1.0, 1.0),
        (1.0, 0.0, 1.0, 50.0),
        (1e4, 0.0, 1.0, 2.0),
        (-60.0, 0.0, 1.0, 1e-3),
        (0.5, 0.0, 1.0, 3e3),
    ],
    mean=lambda mu, sigma, rate: mu + 1.0 / rate,
    variance=lambda mu, sigma, rate: sigma**2 + 1.0 / rate**2,
)
def exp_mod_normal_lpdf(y: Operand, mu: Operand, sigma: Operand, rate: Operand) -> LogDensity:
    """The density of the sum of a normal and an exponential variable. With :math:`z = (y -
    \\mu) / \\sigma` and :math:`a = \\lambda\\sigma` its logarithm is :math:`\\log \\lambda + a^2 /
    2 - a z + \\log\\Phi(z - a)`, computed without cancellation in both tails. In SciPy
    ``scipy.stats.exponnorm(1 / (rate * sigma), mu, sigma)``.

    >>> import varmat as vm
    >>> round(vm.exp_mod_normal_lpdf(1.0, 0.0, 1.0, 50.0), 12)
    -1.399151886237
    """
    inv = 1.0 / sigma
    z, a = (y - mu) * inv, rate * sigma
    x, h, v, left, right = exponential_part(z, a)
    p = np.where(x < 0.0, v - z, h - a) * inv
    return LogDensity(
        np.log(rate),
        np.where(x < 0.0, left, right + LN2),
        -LN2,
        y=p,
        mu=-p,
        sigma=-(z * p + rate * v),
        rate=1.0 / rate - sigma * v,
    )
