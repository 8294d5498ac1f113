"""Cumulative functions of distributions of positive numbers: exponential, Weibull, Rayleigh."""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import LESS, WITHIN, Tail, cumulative
from varmat.densities.positive import exponential_lpdf, rayleigh_lpdf, weibull_lpdf

__all__ = [
    "exponential_cdf", "exponential_lccdf", "exponential_lcdf",
    "rayleigh_cdf", "rayleigh_lccdf", "rayleigh_lcdf", "weibull_cdf", "weibull_lccdf",
     "weibull_lcdf",
]  # fmt: skip

INF = math.inf

exponential_cdf, exponential_lcdf, exponential_lccdf = cumulative(
    exponential_lpdf,
    let={"t": "beta * x", "odds": "1.0 / expm1(t)", "rest": "log1m_exp(-t)"},
    quick=LESS | {"odds": "e / m"},
    when=WITHIN,
    below=Tail("rest", {"y": "beta * odds", "beta": "x * odds"}, "log1m_exp(-beta * y)"),
    above=Tail("-t", {"y": "-beta", "beta": "-x"}, "-beta * y"),
    points=[(0.3, 1.5), (4.0, 0.3), (1e-3, 10.0), (70.0, 1e-2)],
    tails=[(1e-9, 1e3), (1e10, 2e-10), (1e-200, 2e200), (1e-300, 1.0), (800.0, 1.0)],
    start="y > 0.0",
    before=[(-1.0, 1.5), (0.0, 1.5)],
    end="y < inf",
    after=[(INF, 1.5)],
    notes="""The probability above y is :math:`e^{-\\beta y}`. In SciPy ``scipy.stats.expon(scale=1 / beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.exponential_lccdf([0.5, 1.5], 1.0)
-2.0
""",
)

# The odds are t / expm1(t), the reciprocal of `exprel`, which is 1 at 0 and does not overflow
# early.
weibull_cdf, weibull_lcdf, weibull_lccdf = cumulative(
    weibull_lpdf,
    let={
        "u": "x / sigma",
        "log_u": "log(u)",
        "t": "power(u, alpha)",
        "odds": "1.0 / exprel(t)",
        "rest": "where(t < 1e-20, alpha * log_u, log1m_exp(-t))",
    },
    quick=LESS | {"t": "exp(alpha * log_u)", "odds": "t * e / m"},
    when=WITHIN,
    below=Tail(
        "rest",
        {"y": "odds * alpha / x", "alpha": "odds * log_u", "sigma": "-odds * alpha / sigma"},
        "log1m_exp(-(y / sigma)**alpha)",
    ),
    above=Tail(
        "-t",
        {"y": "-t * alpha / x", "alpha": "-t * log_u", "sigma": "t * alpha / sigma"},
        "-(y / sigma)**alpha",
    ),
    points=[
        (0.3, 2.0, 1.5),
        (4.0, 0.7, 0.3),
        (1e-3, 0.1, 10.0),
        (70.0, 1.5, 65.0),
        (1.5, 1.0, 2.0),
    ],
    tails=[
        (1e-9, 0.1, 1e3),
        (1e-300, 1e-3, 1.0),
        (1e-100, 2.0, 1.0),
        (40.0, 2.0, 1.0),
        (1.001, 100.0, 1.0),
    ],
    start="y > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="y < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability above y is :math:`\\exp(-(y / \\sigma)^\\alpha)`.
    In SciPy ``scipy.stats.weibull_min(alpha, scale=sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.weibull_lccdf(3.0, 2.0, 1.0)
-9.0
""",
)

rayleigh_cdf, rayleigh_lcdf, rayleigh_lccdf = cumulative(
    rayleigh_lpdf,
    let={
        "u": "x / sigma",
        "t": "0.5 * square(u)",
        "odds": "2.0 / exprel(t)",
        "rest": "where(u < 1e-8, 2.0 * log(u) - 0.6931471805599453, log1m_exp(-t))",
    },
    quick=LESS | {"odds": "2.0 * t * e / m"},
    when=WITHIN,
    below=Tail(
        "rest", {"y": "odds / x", "sigma": "-odds / sigma"}, "log1m_exp(-(y / sigma)**2 / 2)"
    ),
    above=Tail("-t", {"y": "-u / sigma", "sigma": "2.0 * t / sigma"}, "-(y / sigma)**2 / 2"),
    points=[(0.3, 1.5), (4.0, 2.3), (1e-3, 0.1), (7.0, 65.0)],
    tails=[(1e-100, 2.0), (1e10, 3.0), (40.0, 1.0)],
    start="y > 0.0",
    before=[(-1.0, 1.5), (0.0, 1.5)],
    end="y < inf",
    after=[(INF, 1.5)],
    notes="""The probability above y is :math:`\\exp(-y^2 / (2 \\sigma^2))`. In SciPy ``scipy.stats.rayleigh(scale=sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.rayleigh_lccdf(4.0, 2.0)
-2.0
""",
)
