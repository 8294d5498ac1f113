"""Cumulative functions of distributions of angles: von Mises."""

from __future__ import annotations

import math

from varmat.core.domains import Domain
from varmat.densities.circular import von_mises_lpdf
from varmat.densities.cumulative.row import Tail, cumulative

__all__ = ["von_mises_cdf", "von_mises_lccdf", "von_mises_lcdf"]

PI = repr(math.pi)
TURN = repr(2.0 * math.pi)
ONE_TURN = Domain("in the interval [-pi, pi]", lambda x: abs(x) <= math.pi)
_GAP = "2.0 * square(sin(0.5 * {}))"


def _partials(value: str, sign: str, end: str, own: str, other: str) -> dict[str, str]:
    """The partials of `value`, the log probability between the observation and an end of the
    circle.
    """
    at, there = (f"exp(-kappa * ({_GAP.format(t)}) - log_scale - {value})" for t in ("mid", end))
    # Next to the end the two densities nearly cancel; their difference is computed by 1 - cos(s) -
    # (1 - cos(t)) = 2 sin((s + t) / 2) sin((s - t) / 2), as a part of the larger of the two: the
    # smaller one may be an underflow.
    apart = (
        f"2.0 * kappa * sin(0.5 * (mid + {end})) * sin(0.5 * "
        f"({'x + ' + PI if end == 'low' else 'x - ' + PI}))"
    )
    odds = f"exp({other} - {value})"
    return {
        "y": f"{sign}{at}",
        "mu": f"-({sign}where({apart} < 0.0, -{at}, {there}) * expm1(-absolute({apart})))",
        "kappa": f"where({own} < -0.6931471805599453, mean - in_{own}, -{odds} * (mean - "
        f"in_{other}))",
    }


# The smaller part of the circle is integrated. Locations that differ by full turns are the same.
von_mises_cdf, von_mises_lcdf, von_mises_lccdf = cumulative(
    von_mises_lpdf,
    let={
        "m": f"mu - {TURN} * floor(mu / {TURN} + 0.5)",
        "low": f"-{PI} - m",
        "mid": "x - m",
        "high": f"{PI} - m",
        "e": "i0e(kappa)",
        "log_scale": f"log({TURN} * e)",
        "mean": "hyp1f1(1.5, 2.0, -2.0 * kappa) / e",
        "first": "log_von_mises_integral(low, mid, kappa) - log_scale",
        "second": "log_von_mises_integral(mid, high, kappa) - log_scale",
        "in_first": "von_mises_moment(1.0, low, mid, kappa)",
        "in_second": "von_mises_moment(1.0, mid, high, kappa)",
        "lower": "where(first < -0.6931471805599453, first, log1p(-exp(second)))",
        "upper": "where(second < -0.6931471805599453, second, log1p(-exp(first)))",
    },
    below=Tail(
        "lower", _partials("lower", "", "low", "first", "second"), "log_von_mises(y, mu, kappa)[0]"
    ),
    above=Tail(
        "upper",
        _partials("upper", "-", "high", "second", "first"),
        "log_von_mises(y, mu, kappa)[1]",
    ),
    points=[
        (0.3, 0.1, 1.5),
        (-2.0, -1.0, 0.7),
        (2.8, 2.0, 3.5),
        (1.0, -1.0, 0.5),
        (0.3, 0.31, 60.0),
    ],
    tails=[(3.0, 0.0, 50.0), (-0.5, 0.5, 150.0), (1.0, 7.0, 1.5)],
    start=f"y > -{PI}",
    before=[(-math.pi, 0.1, 1.5)],
    end=f"y < {PI}",
    after=[(math.pi, 0.1, 1.5)],
    inside="0.0",
    observed=ONE_TURN,
    notes="""The probability between :math:`-\\pi` and y, of angles between :math:`-\\pi` and
    :math:`\\pi`: the integral of the density, by Gauss' rule. The density has a value at all
    angles, so others are refused, and not counted as below or above. In SciPy, with the location 0,
    ``scipy.stats.vonmises(kappa)``.""",
    examples="""
>>> import varmat as vm
>>> round(vm.von_mises_cdf(0.0, 0.0, 1.5), 12)
0.5
""",
)
