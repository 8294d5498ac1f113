"""Cumulative functions of skewed distributions: skew normal, skew double exponential, exponentially
modified normal.
"""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.skewed import (
    HAZARD,
    LN2,
    exp_mod_normal_lpdf,
    skew_double_exponential_lpdf,
    skew_normal_lpdf,
)
from varmat.functions.special.table import ROOT_TWO_OVER_PI

__all__ = [
    "exp_mod_normal_cdf", "exp_mod_normal_lccdf", "exp_mod_normal_lcdf",
    "skew_double_exponential_cdf", "skew_double_exponential_lccdf", "skew_double_exponential_lcdf",
    "skew_normal_cdf", "skew_normal_lccdf", "skew_normal_lcdf",
]  # fmt: skip

INF = math.inf
OVER_PI = repr(1.0 / math.pi)

# Below mu the probability is tau e, above it 1 - (1 - tau) f.
skew_double_exponential_cdf, skew_double_exponential_lcdf, skew_double_exponential_lccdf = (
    cumulative(
        skew_double_exponential_lpdf,
        let={
            "inv": "1.0 / sigma",
            "z": "(x - mu) * inv",
            "left": "minimum(z, 0.0)",
            "right": "maximum(z, 0.0)",
            "c": "1.0 - tau",
            "e": "exp(2.0 * c * left)",
            "f": "exp(-2.0 * tau * right)",
            "below": "where(z < 0.0, 2.0 * c, 2.0 * tau * c * f / (1.0 - c * f))",
            "above": "where(z < 0.0, 2.0 * tau * c * e / (1.0 - tau * e), 2.0 * tau)",
        },
        below=Tail(
            "where(z < 0.0, log(tau) + 2.0 * c * left, log1p(-c * f))",
            {
                "y": "below * inv",
                "mu": "-below * inv",
                "sigma": "-below * inv * z",
                "tau": "where(z < 0.0, 1.0 / tau - 2.0 * left, (1.0 + 2.0 * c * right) * f / (1.0 "
                "- c * f))",
            },
            "log(tau) + 2 * (1 - tau) * (y - mu) / sigma if y < mu else log1p(-(1 - tau) * exp(-2 "
            "* tau * (y - mu) / sigma))",
        ),
        above=Tail(
            "where(z < 0.0, log1p(-tau * e), log1p(-tau) - 2.0 * tau * right)",
            {
                "y": "-above * inv",
                "mu": "above * inv",
                "sigma": "above * inv * z",
                "tau": "where(z < 0.0, (2.0 * tau * left - 1.0) * e / (1.0 - tau * e), -1.0 / c - "
                "2.0 * right)",
            },
            "log1p(-tau * exp(2 * (1 - tau) * (y - mu) / sigma)) if y < mu else log1p(-tau) - 2 * "
            "tau * (y - mu) / sigma",
        ),
        points=[
            (0.3, 0.1, 1.5, 0.3),
            (-4.0, 0.7, 0.8, 0.9),
            (1e-3, -0.1, 1e3, 0.5),
            (7.0, 6.5, 0.1, 0.2),
        ],
        tails=[
            (-1e8, 1.0, 1e-3, 0.3),
            (1e8, 1.0, 1e-3, 0.3),
            (30.0, 0.0, 1.0, 0.4),
            (-30.0, 0.0, 1.0, 0.4),
        ],
        start="y > -inf",
        before=[(-INF, 0.1, 1.5, 0.3)],
        end="y < inf",
        after=[(INF, 0.1, 1.5, 0.3)],
        inside="mu",
        notes="""The probability up to y is :math:`\\tau e^{2 (1 - \\tau) z}` below :math:`\\mu` and
    :math:`1 - (1 - \\tau) e^{-2 \\tau z}` above, with :math:`z = (y - \\mu) / \\sigma`.""",
        examples="""
>>> import varmat as vm
>>> vm.skew_double_exponential_cdf(2.0, 2.0, 1.0, 0.25)
0.25
""",
    )
)


def _modified(sign: str, value: str) -> dict[str, str]:
    """The partials of one of the logarithms, in which the exponential part of the function has the
    weight `over`.
    """
    over = f"({sign}exp(second - {value}))"
    return {
        "y": f"rate * {over}",
        "mu": f"-rate * {over}",
        "sigma": f"rate * {over} * (v - z)",
        "rate": f"sigma * v * {over}",
    }


# The probability above y is that of the normal variable and a second term, which is the density
# over the rate: so all derivatives are made of it, as are those of the density.
exp_mod_normal_cdf, exp_mod_normal_lcdf, exp_mod_normal_lccdf = cumulative(
    exp_mod_normal_lpdf,
    let={
        "inv": "1.0 / sigma",
        "z": "(x - mu) * inv",
        "a": "rate * sigma",
        "w": "z - a",
        "h": HAZARD.format("w"),
        # That in a is minus the mean of a normal variable beyond -w: far on the left by the series
        # of DLMF 7.12.1 over itself.
        "far": "minimum(w, -28.0)",
        "q": "1.0 / (far * far)",
        "v": "where(w > -28.0, w + h, (q * (2.0 - q * (10.0 - q * (74.0 - q * (706.0 - q * (8162.0 "
        "- q * (110410.0 "
        "- q * 1708394.0)))))) - 1.0) / far)",
        "left": f"-0.5 * z * z + log({ROOT_TWO_OVER_PI} / h) - {LN2}",
        "right": "a * (0.5 * a - z) + log_ndtr(maximum(w, 0.0))",
        "second": "where(w < 0.0, left, right)",
        "lower": "log_exp_mod_normal(z, a)",
        "upper": "where(lower < -0.6931471805599453, log1p(-exp(lower)), logaddexp(log_ndtr(-z), "
        "second))",
    },
    below=Tail(
        "lower", _modified("", "lower"), "log_exp_mod_normal((y - mu) / sigma, rate * sigma)[0]"
    ),
    above=Tail(
        "upper", _modified("-", "upper"), "log_exp_mod_normal((y - mu) / sigma, rate * sigma)[1]"
    ),
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
        (-30.0, 0.0, 1.0, 1e-3),
        (7.0, 0.0, 1.0, 1e-3),
    ],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5, 0.8)],
    end="y < inf",
    after=[(INF, 0.1, 1.5, 0.8)],
    inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` and :math:`a = \\lambda\\sigma` the probability
    up to y is :math:`\\Phi(z) - e^{a^2 / 2 - a z} \\Phi(z - a)`, which is computed as an integral
    of positive terms where the two are close. In SciPy ``scipy.stats.exponnorm(1 / (rate * sigma),
    mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> round(vm.exp_mod_normal_lccdf(1e4, 0.0, 1.0, 2.0), 9)
-19998.0
""",
)

# Mirrored, the distribution is that of the opposite shape. The derivative in the shape is closed.
_HEIGHT = f"{ROOT_TWO_OVER_PI} * exp(log_ndtr(alpha * z) - 0.5 * z * z - {{}}) * inv"
_IN_SHAPE = (
    f"{OVER_PI} * exp(-0.5 * (1.0 + alpha * alpha) * (z * z) - {{}}) / (1.0 + alpha * alpha)"
)
skew_normal_cdf, skew_normal_lcdf, skew_normal_lccdf = cumulative(
    skew_normal_lpdf,
    let={
        "inv": "1.0 / omega",
        "z": "(x - xi) * inv",
        "lower": "log_skew_normal(z, alpha)",
        "upper": "log_skew_normal(-z, -alpha)",
        "below": _HEIGHT.format("lower"),
        "above": _HEIGHT.format("upper"),
    },
    below=Tail(
        "lower",
        {
            "y": "below",
            "xi": "-below",
            "omega": "-z * below",
            "alpha": f"-{_IN_SHAPE.format('lower')}",
        },
        "log_skew_normal((y - xi) / omega, alpha)",
    ),
    above=Tail(
        "upper",
        {"y": "-above", "xi": "above", "omega": "z * above", "alpha": _IN_SHAPE.format("upper")},
        "log_skew_normal((xi - y) / omega, -alpha)",
    ),
    points=[(0.3, 0.1, 1.5, 0.8), (-2.0, -1.0, 0.7, -2.0), (4.0, 3.0, 2.5, -3.0)],
    tails=[(-5.0, 0.0, 1.0, 1.0), (8.0, 0.0, 1.0, 1.0)],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5, 0.8)],
    end="y < inf",
    after=[(INF, 0.1, 1.5, 0.8)],
    inside="xi",
    notes="""With :math:`z = (y - \\xi) / \\omega` the probability up to y is :math:`\\Phi(z) - 2
    T(z, \\alpha)`, with Owen's function T, or the integral of the density where the two cancel. In
    SciPy ``scipy.stats.skewnorm(alpha, xi, omega)``.""",
    examples="""
>>> import varmat as vm
>>> vm.skew_normal_cdf(2.0, 2.0, 1.0, 0.0)
0.5
""",
)
