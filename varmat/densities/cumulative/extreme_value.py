"""Cumulative functions of distributions of extreme values: Gumbel, Fréchet."""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import LESS, WITHIN, Tail, cumulative
from varmat.densities.extreme_value import frechet_lpdf, gumbel_lpdf

__all__ = [
    "frechet_cdf",
    "frechet_lccdf",
    "frechet_lcdf",
    "gumbel_cdf",
    "gumbel_lccdf",
    "gumbel_lcdf",
]

INF = math.inf

# As for the Weibull distribution, with the two probabilities exchanged.
gumbel_cdf, gumbel_lcdf, gumbel_lccdf = cumulative(
    gumbel_lpdf,
    let={
        "inv": "1.0 / beta",
        "z": "(x - mu) * inv",
        "t": "exp(-z)",
        "odds": "1.0 / exprel(t)",
        "rest": "where(z > 50.0, -z, log1m_exp(-t))",
    },
    quick=LESS | {"odds": "t * e / m"},
    when=WITHIN,
    below=Tail(
        "-t", {"y": "t * inv", "mu": "-t * inv", "beta": "-t * inv * z"}, "-exp(-(y - mu) / beta)"
    ),
    above=Tail(
        "rest",
        {"y": "-odds * inv", "mu": "odds * inv", "beta": "odds * inv * z"},
        "log1m_exp(-exp(-(y - mu) / beta))",
    ),
    points=[(0.3, 0.1, 1.5), (-0.4, 0.7, 0.8), (1e-3, -0.1, 1e3), (7.0, 6.5, 0.1)],
    tails=[(-5.0, 0.0, 1.0), (40.0, 0.0, 1.0), (1000.0, 0.0, 1.0), (-600.0, 0.0, 1.0)],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    inside="mu",
    notes="""The probability up to y is :math:`\\exp(-e^{-z})` with :math:`z = (y - \\mu) / \\beta`.
    In SciPy ``scipy.stats.gumbel_r(mu, beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gumbel_lcdf(2.0, 2.0, 1.0)
-1.0
""",
)

frechet_cdf, frechet_lcdf, frechet_lccdf = cumulative(
    frechet_lpdf,
    let={
        "u": "x / sigma",
        "log_u": "log(u)",
        "t": "power(u, -alpha)",
        "odds": "1.0 / exprel(t)",
        "rest": "where(t < 1e-20, -alpha * log_u, log1m_exp(-t))",
    },
    quick=LESS | {"t": "exp(-alpha * log_u)", "odds": "t * e / m"},
    when=WITHIN,
    below=Tail(
        "-t",
        {"y": "t * alpha / x", "alpha": "t * log_u", "sigma": "-t * alpha / sigma"},
        "-(y / sigma)**(-alpha)",
    ),
    above=Tail(
        "rest",
        {"y": "-odds * alpha / x", "alpha": "-odds * log_u", "sigma": "odds * alpha / sigma"},
        "log1m_exp(-(y / sigma)**(-alpha))",
    ),
    points=[(0.8, 2.0, 1.5), (4.0, 0.7, 0.3), (70.0, 1.5, 65.0), (1.5, 1.0, 2.0)],
    tails=[(1e9, 3.0, 1.0), (1e100, 2.0, 1.0), (0.05, 2.0, 1.0)],
    start="y > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="y < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to y is :math:`\\exp(-(y / \\sigma)^{-\\alpha})`.
    In SciPy ``scipy.stats.invweibull(alpha, scale=sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.frechet_lcdf(0.5, 2.0, 1.0)
-4.0
""",
)
