"""Cumulative functions of distributions with heavy tails: Pareto of both types, log-logistic."""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import LESS, WITHIN, Tail, cumulative
from varmat.densities.heavy_tails import loglogistic_lpdf, pareto_lpdf, pareto_type_2_lpdf

__all__ = [
    "loglogistic_cdf", "loglogistic_lccdf", "loglogistic_lcdf", "pareto_cdf", "pareto_lccdf",
     "pareto_lcdf",
    "pareto_type_2_cdf", "pareto_type_2_lccdf", "pareto_type_2_lcdf",
]  # fmt: skip

INF = math.inf

# With t = alpha log(1 + u) the probability above is exp(-t). Next to the smallest observation u is
# exact, its logarithm not.
pareto_cdf, pareto_lcdf, pareto_lccdf = cumulative(
    pareto_lpdf,
    let={
        "u": "(x - y_min) / y_min",
        "l": "log1p(u)",
        "t": "alpha * l",
        "odds": "1.0 / expm1(t)",
        "rest": "log1m_exp(-t)",
    },
    quick=LESS | {"odds": "e / m"},
    when=WITHIN,
    below=Tail(
        "rest",
        {"y": "odds * alpha / x", "y_min": "-odds * alpha / y_min", "alpha": "odds * l"},
        "log1m_exp(-alpha * log(y / y_min))",
    ),
    above=Tail(
        "-t",
        {"y": "-alpha / x", "y_min": "alpha / y_min", "alpha": "-l"},
        "-alpha * log(y / y_min)",
    ),
    points=[(0.3, 0.2, 1.5), (4.0, 0.7, 0.3), (70.0, 65.0, 12.0), (1.5, 1.0, 2.0)],
    tails=[(1.0 + 1e-9, 1.0, 2.0), (1e300, 1e-3, 2.0), (10.0, 1.0, 400.0), (2.0, 1.0, 1e-8)],
    start="y > y_min",
    before=[(-1.0, 0.2, 1.5), (0.2, 0.2, 1.5)],
    end="y < inf",
    after=[(INF, 0.2, 1.5)],
    inside="y_min + y_min",
    notes="""The probability above y is :math:`(y_{min} / y)^\\alpha`. In SciPy ``scipy.stats.pareto(alpha, scale=y_min)``.""",
    examples="""
>>> import varmat as vm
>>> vm.pareto_cdf(2.0, 1.0, 1.0)
0.5
""",
)

pareto_type_2_cdf, pareto_type_2_lcdf, pareto_type_2_lccdf = cumulative(
    pareto_type_2_lpdf,
    let={
        "d": "x - mu",
        "u": "d / scale",
        "l": "log1p(u)",
        "t": "alpha * l",
        "rate": "alpha / (scale + d)",
        "odds": "1.0 / expm1(t)",
        "rest": "log1m_exp(-t)",
    },
    quick=LESS | {"odds": "e / m"},
    when=WITHIN,
    below=Tail(
        "rest",
        {
            "y": "odds * rate",
            "mu": "-odds * rate",
            "scale": "-odds * rate * u",
            "alpha": "odds * l",
        },
        "log1m_exp(-alpha * log1p((y - mu) / scale))",
    ),
    above=Tail(
        "-t",
        {"y": "-rate", "mu": "rate", "scale": "rate * u", "alpha": "-l"},
        "-alpha * log1p((y - mu) / scale)",
    ),
    points=[
        (0.3, 0.2, 1.3, 1.5),
        (4.0, -0.7, 2.0, 0.3),
        (70.0, 65.0, 0.5, 12.0),
        (1.5, 1.0, 2.0, 2.0),
    ],
    tails=[(1e-9, 0.0, 1.0, 2.0), (1e10, 0.0, 1e-3, 2.0), (10.0, 1.0, 1.0, 400.0)],
    start="y > mu",
    before=[(-1.0, 0.2, 1.3, 1.5), (0.2, 0.2, 1.3, 1.5)],
    end="y < inf",
    after=[(INF, 0.2, 1.3, 1.5)],
    inside="mu + scale",
    notes="""The probability above y is :math:`(1 + (y - \\mu) / \\lambda)^{-\\alpha}`, with the
    scale :math:`\\lambda`. In SciPy ``scipy.stats.lomax(alpha, mu, scale)``.""",
    examples="""
>>> import varmat as vm
>>> vm.pareto_type_2_cdf(1.0, 0.0, 1.0, 1.0)
0.5
""",
)

loglogistic_cdf, loglogistic_lcdf, loglogistic_lccdf = cumulative(
    loglogistic_lpdf,
    let={"l": "log(x / alpha)", "s": "beta * l", "p": "expit(-s)", "q": "expit(s)"},
    below=Tail(
        "log_expit(s)",
        {"y": "p * beta / x", "alpha": "-p * beta / alpha", "beta": "p * l"},
        "-log1p((alpha / y)**beta)",
    ),
    above=Tail(
        "log_expit(-s)",
        {"y": "-q * beta / x", "alpha": "q * beta / alpha", "beta": "-q * l"},
        "-log1p((y / alpha)**beta)",
    ),
    points=[(0.3, 0.2, 1.5), (4.0, 0.7, 0.3), (70.0, 65.0, 12.0), (1.5, 1.0, 2.0)],
    tails=[(1e100, 1e-3, 2.0), (1e-100, 1.0, 2.0), (10.0, 1.0, 400.0)],
    start="y > 0.0",
    before=[(-1.0, 0.2, 1.5), (0.0, 0.2, 1.5)],
    end="y < inf",
    after=[(INF, 0.2, 1.5)],
    notes="""The probability up to y is :math:`1 / (1 + (y / \\alpha)^{-\\beta})`.
    In SciPy ``scipy.stats.fisk(beta, scale=alpha)``.""",
    examples="""
>>> import varmat as vm
>>> vm.loglogistic_cdf(2.0, 2.0, 3.0)
0.5
""",
)
