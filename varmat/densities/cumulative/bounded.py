"""Cumulative functions of distributions on an interval: uniform."""

from __future__ import annotations

from varmat.densities.bounded import uniform_lpdf
from varmat.densities.cumulative.row import Tail, cumulative

__all__ = ["uniform_cdf", "uniform_lccdf", "uniform_lcdf"]

# Next to an end the distance to that end has the digits.
uniform_cdf, uniform_lcdf, uniform_lccdf = cumulative(
    uniform_lpdf,
    let={
        "inv": "1.0 / (beta - alpha)",
        "under": "x - alpha",
        "over": "beta - x",
        "p": "under * inv",
        "q": "over * inv",
    },
    below=Tail(
        "where(p < 0.5, log(p), log1p(-q))",
        {"y": "1.0 / under", "alpha": "-q / under", "beta": "-inv"},
        "log1p(-(beta - y) / (beta - alpha))",
    ),
    above=Tail(
        "where(q < 0.5, log(q), log1p(-p))",
        {"y": "-1.0 / over", "alpha": "inv", "beta": "p / over"},
        "log1p(-(y - alpha) / (beta - alpha))",
    ),
    points=[(0.3, 0.1, 1.5), (-4.0, -10.0, 3.0), (1e-3, 0.0, 1.0), (0.999, 0.0, 1.0)],
    tails=[(1e-12, 0.0, 1.0), (1.0 - 1e-12, 0.0, 1.0), (1.0, 0.0, 1e20)],
    start="y > alpha",
    before=[(-1.0, 0.1, 1.5), (0.1, 0.1, 1.5)],
    end="y < beta",
    after=[(2.0, 0.1, 1.5), (1.5, 0.1, 1.5)],
    inside="0.5 * (alpha + beta)",
    notes="""The probability up to y is :math:`(y - \\alpha) / (\\beta - \\alpha)`.
    In SciPy ``scipy.stats.uniform(alpha, beta - alpha)``.""",
    examples="""
>>> import varmat as vm
>>> vm.uniform_cdf(1.0, 0.0, 4.0)
0.25
""",
)
