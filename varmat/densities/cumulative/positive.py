"""Cumulative functions of distributions of positive numbers: exponential."""

from __future__ import annotations

from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.positive import exponential_lpdf

__all__ = ["exponential_cdf", "exponential_lccdf", "exponential_lcdf"]

exponential_cdf, exponential_lcdf, exponential_lccdf = cumulative(
    exponential_lpdf,
    let={"t": "beta * x", "odds": "1.0 / expm1(t)"},
    below=Tail("log1m_exp(-t)", {"y": "beta * odds", "beta": "x * odds"}, "log(-expm1(-beta * y))"),
    above=Tail("-t", {"y": "-beta", "beta": "-x"}, "-beta * y"),
    points=[(0.3, 1.5), (4.0, 0.3), (1e-3, 10.0), (70.0, 1e-2)],
    tails=[(1e-9, 1e3), (1e10, 2e-10), (1e-200, 2e200), (1e-300, 1.0), (800.0, 1.0)],
    start="y > 0.0", before=[(-1.0, 1.5), (0.0, 1.5)],
    end="y < inf", after=[(float("inf"), 1.5)],
    notes="""The probability above y is :math:`e^{-\\beta y}`. In SciPy ``scipy.stats.expon(scale=1 / beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.exponential_lccdf([0.5, 1.5], 1.0)
-2.0
""",
)  # fmt: skip
