"""Cumulative functions of skewed distributions: skew double exponential."""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.skewed import skew_double_exponential_lpdf

__all__ = ["skew_double_exponential_cdf", "skew_double_exponential_lccdf", "skew_double_exponential_lcdf"]

INF = math.inf

# Below mu the probability is tau e, above it 1 - (1 - tau) f.
skew_double_exponential_cdf, skew_double_exponential_lcdf, skew_double_exponential_lccdf = cumulative(
    skew_double_exponential_lpdf,
    let={
        "inv": "1.0 / sigma", "z": "(x - mu) * inv", "left": "minimum(z, 0.0)", "right": "maximum(z, 0.0)", "c": "1.0 - tau",
        "e": "exp(2.0 * c * left)", "f": "exp(-2.0 * tau * right)",
        "below": "where(z < 0.0, 2.0 * c, 2.0 * tau * c * f / (1.0 - c * f))",
        "above": "where(z < 0.0, 2.0 * tau * c * e / (1.0 - tau * e), 2.0 * tau)",
    },
    below=Tail(
        "where(z < 0.0, log(tau) + 2.0 * c * left, log1p(-c * f))",
        {"y": "below * inv", "mu": "-below * inv", "sigma": "-below * inv * z",
         "tau": "where(z < 0.0, 1.0 / tau - 2.0 * left, (1.0 + 2.0 * c * right) * f / (1.0 - c * f))"},
        "log(tau) + 2 * (1 - tau) * (y - mu) / sigma if y < mu else log1p(-(1 - tau) * exp(-2 * tau * (y - mu) / sigma))",
    ),
    above=Tail(
        "where(z < 0.0, log1p(-tau * e), log1p(-tau) - 2.0 * tau * right)",
        {"y": "-above * inv", "mu": "above * inv", "sigma": "above * inv * z",
         "tau": "where(z < 0.0, (2.0 * tau * left - 1.0) * e / (1.0 - tau * e), -1.0 / c - 2.0 * right)"},
        "log1p(-tau * exp(2 * (1 - tau) * (y - mu) / sigma)) if y < mu else log1p(-tau) - 2 * tau * (y - mu) / sigma",
    ),
    points=[(0.3, 0.1, 1.5, 0.3), (-4.0, 0.7, 0.8, 0.9), (1e-3, -0.1, 1e3, 0.5), (7.0, 6.5, 0.1, 0.2)],
    tails=[(-1e8, 1.0, 1e-3, 0.3), (1e8, 1.0, 1e-3, 0.3), (30.0, 0.0, 1.0, 0.4), (-30.0, 0.0, 1.0, 0.4)],
    start="y > -inf", before=[(-INF, 0.1, 1.5, 0.3)],
    end="y < inf", after=[(INF, 0.1, 1.5, 0.3)], inside="mu",
    notes="""The probability up to y is :math:`\\tau e^{2 (1 - \\tau) z}` below :math:`\\mu` and
    :math:`1 - (1 - \\tau) e^{-2 \\tau z}` above, with :math:`z = (y - \\mu) / \\sigma`.""",
    examples="""
>>> import varmat as vm
>>> vm.skew_double_exponential_cdf(2.0, 2.0, 1.0, 0.25)
0.25
""",
)  # fmt: skip
