"""Distributions with power tails: Pareto of both types, log-logistic."""

from __future__ import annotations

from varmat.core.domains import finite, positive_finite
from varmat.densities.density import not_nan
from varmat.densities.univariate import Quick, univariate

__all__ = ["loglogistic_lpdf", "pareto_lpdf", "pareto_type_2_lpdf"]

VARIABLE = ("Random variable", not_nan)
SHAPE = ("Shape parameter", positive_finite)
SCALE = ("Scale parameter", positive_finite)

# The logarithm of a rounded quotient near 1 has lost its digits.
pareto_lpdf = univariate(
    "pareto_lpdf",
    "Pareto distribution",
    y=VARIABLE,
    y_min=SCALE,
    alpha=SHAPE,
    support="y >= y_min",
    let={"log_y": "log(y)", "log_ratio": "log1p((y - y_min) / y_min)"},
    quick=Quick({"log_y": "log(y_min) + log_ratio"}),
    terms=("log(alpha)", "-log_y", "-alpha * log_ratio"),
    dropping=("log(alpha)", "alpha * log(y_min)", "-(alpha + 1.0) * log_y"),
    partials={
        "y": "-(alpha + 1.0) / y",
        "y_min": "alpha / y_min",
        "alpha": "1.0 / alpha - log_ratio",
    },
    reference="log(alpha) + alpha * log(y_min) - (alpha + 1) * log(y)",
    points=[(1.3, 0.2, 1.1), (3.9, 1.2, 0.7), (4.0, 0.999, 20.0), (8e9, 1e-3, 0.2)],
    tails=[(1e200, 1e-100, 2.0), (4.0, 3.999999, 1e6), (1.0, 1.0, 1e10)],
    outside=[(0.1, 0.2, 1.5), (-1.0, 0.2, 1.5)],
    notes="""The log density is :math:`\\log \\alpha + \\alpha \\log y_{min} - (\\alpha + 1) \\log
    y` from :math:`y_{min}` on. In SciPy ``scipy.stats.pareto(alpha, scale=y_min)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda y_min: vm.pareto_lpdf([2.0, 3.0], y_min, 1.5), 1.0)
3.0
""",
)

pareto_type_2_lpdf = univariate(
    "pareto_type_2_lpdf",
    "Pareto type 2 (Lomax) distribution",
    y=VARIABLE,
    mu=("Location parameter", finite),
    scale=SCALE,
    alpha=SHAPE,
    support="y >= mu",
    let={
        "d": "y - mu",
        "r": "d / scale",
        "l": "log1p(r)",
        "w": "1.0 / (scale + d)",
        "s": "(alpha + 1.0) * w",
    },
    terms=("log(alpha)", "-log(scale)", "-(alpha + 1.0) * l"),
    partials={"y": "-s", "mu": "s", "scale": "(alpha * r - 1.0) * w", "alpha": "1.0 / alpha - l"},
    reference="log(alpha) - log(scale) - (alpha + 1) * log1p((y - mu) / scale)",
    points=[
        (1.3, 0.2, 1.1, 2.0),
        (4.4, -3.9, 0.7, 0.8),
        (3.9, 3.5, 1e2, 1e2),
        (8.0, 1.0, 1e-2, 0.2),
    ],
    tails=[(1e20, 1.0, 1e-10, 2.0), (3.9, 3.5, 1e6, 1e6), (1.0, 1.0, 2.0, 1e10)],
    outside=[(0.1, 0.2, 1.5, 2.0), (-1.0, 0.2, 1.5, 2.0)],
    notes="""The log density is :math:`\\log \\alpha - \\log \\lambda - (\\alpha + 1) \\log(1 + (y -
    \\mu) / \\lambda)` from :math:`\\mu` on, with :math:`\\lambda` the scale. In SciPy
    ``scipy.stats.lomax(alpha, mu, scale)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda y: vm.pareto_type_2_lpdf(y, 0.0, 1.0, 2.0), 2.0)
-1.0
""",
)

# With w = beta log(y / alpha), log(1 + exp(w)) takes out exp(w) where that is large. The derivative
# in y is written with the probability below y, which is small where the other terms cancel.
loglogistic_lpdf = univariate(
    "loglogistic_lpdf",
    "log-logistic distribution",
    y=VARIABLE,
    alpha=SCALE,
    beta=SHAPE,
    support="(y > 0.0) & (y <= 1.7976931348623157e308)",
    let={
        "ratio": "log(y / alpha)",
        "w": "beta * ratio",
        "l": "maximum(w, 0.0) + log1p(exp(-absolute(w)))",
        "t": "tanh(0.5 * w)",
    },
    terms=("log(beta)", "-log(alpha)", "(beta - 1.0) * ratio", "-2.0 * l"),
    dropping=("log(beta)", "-beta * log(alpha)", "(beta - 1.0) * log(y)", "-2.0 * l"),
    partials={
        "y": "(beta - 1.0 - 2.0 * beta * expit(w)) / y",
        "alpha": "beta * t / alpha",
        "beta": "1.0 / beta - ratio * t",
    },
    reference="log(beta / alpha) + (beta - 1) * log(y / alpha) - 2 * log1p((y / alpha)**beta)",
    points=[(1.3, 2.0, 1.1), (0.4, 0.9, 0.7), (3.9, 3.5, 20.0), (1e-9, 1.0, 1.0), (1e9, 1e-3, 0.3)],
    tails=[(1e300, 1e-5, 2.0), (1e-300, 1e5, 3.0), (1.5, 1.0, 1e4)],
    outside=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5), (float("inf"), 2.0, 1.5)],
    notes="""With :math:`u = y / \\alpha` the log density is :math:`\\log\\frac\\beta\\alpha +
    (\\beta - 1) \\log u - 2 \\log(1 + u^\\beta)`: scale :math:`\\alpha`, shape :math:`\\beta`. In
    SciPy ``scipy.stats.fisk(beta, scale=alpha)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gradient(lambda alpha: vm.loglogistic_lpdf([0.5, 2.0], alpha, 3.0), 1.0)
0.0
""",
)
