"""Cumulative functions of distributions of angles: von Mises."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import Domain
from varmat.densities.circular import von_mises_lpdf
from varmat.densities.cumulative.row import Tail, Tails, cumulative
from varmat.functions.special.bessel_functions import i0e
from varmat.functions.special.hypergeometric_functions import hyp1f1
from varmat.functions.special.log_normal_tails import log_von_mises_integral, von_mises_moment
from varmat.typing import Operand

__all__ = ["von_mises_cdf", "von_mises_lccdf", "von_mises_lcdf"]

TURN, LOG_HALF = 2.0 * math.pi, math.log(0.5)
ONE_TURN = Domain("in the interval [-pi, pi]", lambda x: abs(x) <= math.pi)


# The smaller part of the circle is integrated. Locations that differ by full turns are the same.
def _von_mises(x: Operand, mu: Operand, kappa: Operand) -> Tails:
    """The probability between :math:`-\\pi` and y, of angles between :math:`-\\pi` and
    :math:`\\pi`: the integral of the density, by Gauss' rule. The density has a value at all
    angles, so others are refused, and not counted as below or above. In SciPy, with the location 0,
    ``scipy.stats.vonmises(kappa)``.

    >>> import varmat as vm
    >>> round(vm.von_mises_cdf(0.0, 0.0, 1.5), 12)
    0.5
    """
    m = mu - TURN * np.floor(mu / TURN + 0.5)
    low, mid, high = -math.pi - m, x - m, math.pi - m
    e = i0e(kappa)
    log_scale = np.log(TURN * e)
    mean = hyp1f1(1.5, 2.0, -2.0 * kappa) / e
    first = log_von_mises_integral(low, mid, kappa) - log_scale
    second = log_von_mises_integral(mid, high, kappa) - log_scale
    in_first = von_mises_moment(1.0, low, mid, kappa)
    in_second = von_mises_moment(1.0, mid, high, kappa)

    def tail(
        sign: float, end: Operand, own: Operand, other: Operand, in_own: Operand, in_other: Operand
    ) -> Tail:
        """Compute the log probability between the observation and an end of the circle."""
        value = np.where(own < LOG_HALF, own, np.log1p(-np.exp(np.minimum(other, LOG_HALF))))

        def density(t: Operand) -> Operand:
            return np.exp(-kappa * (2.0 * np.square(np.sin(0.5 * t))) - log_scale - value)

        at, there = density(mid), density(end)
        # Next to the end the two densities nearly cancel; their difference is computed by 1 -
        # cos(s) - (1 - cos(t)) = 2 sin((s + t) / 2) sin((s - t) / 2), as a part of the larger of
        # the two: the smaller one may be an underflow.
        difference = 2.0 * kappa * np.sin(0.5 * (mid + end)) * np.sin(0.5 * (x + sign * math.pi))
        larger = np.where(difference < 0.0, -at, there)
        odds = np.exp(np.minimum(other - value, 0.0))
        return Tail(
            value,
            y=sign * at,
            mu=-sign * (larger * np.expm1(-np.absolute(difference))),
            kappa=np.where(own < LOG_HALF, mean - in_own, -odds * (mean - in_other)),
        )

    return Tails(
        below=tail(1.0, low, first, second, in_first, in_second),
        above=tail(-1.0, high, second, first, in_second, in_first),
    )


von_mises_cdf, von_mises_lcdf, von_mises_lccdf = cumulative(
    von_mises_lpdf,
    _von_mises,
    points=[
        (0.3, 0.1, 1.5),
        (-2.0, -1.0, 0.7),
        (2.8, 2.0, 3.5),
        (1.0, -1.0, 0.5),
        (0.3, 0.31, 60.0),
    ],
    tails=[(3.0, 0.0, 50.0), (-0.5, 0.5, 150.0), (1.0, 7.0, 1.5)],
    start=lambda y, *_: y > -3.141592653589793,
    before=(-math.pi,),
    end=lambda y, *_: y < 3.141592653589793,
    after=(math.pi,),
    inside=0.0,
    observed=ONE_TURN,
)
