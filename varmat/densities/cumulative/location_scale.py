"""Cumulative functions of location-scale families: normal."""

from __future__ import annotations

import math

from varmat.densities import normal
from varmat.densities.cumulative.row import Tail, cumulative

__all__ = ["normal_cdf", "normal_lccdf", "normal_lcdf"]

ROOT_HALF = repr(math.sqrt(0.5))
ROOT_TWO_OVER_PI = repr(math.sqrt(2.0 / math.pi))


def scaled(slope: str) -> dict[str, str]:
    """The partials of a function of ``z = (y - mu) / sigma``, given that in z."""
    return {"y": f"{slope} * inv", "mu": f"-{slope} * inv", "sigma": f"-{slope} * inv * z"}


def mills(z: str) -> str:
    """The derivative of ``log_ndtr(z)``: density over probability, which is about -z far below and 0 above."""
    return f"{ROOT_TWO_OVER_PI} / erfcx(-{ROOT_HALF} * minimum({z}, 38.0))"


STANDARD = {"inv": "1.0 / sigma", "z": "(x - mu) * inv"}

normal_cdf, normal_lcdf, normal_lccdf = cumulative(
    normal.normal_lpdf,
    let={**STANDARD, "below": mills("z"), "above": mills("-z")},
    below=Tail("log_ndtr(z)", scaled("below"), "log_ncdf((y - mu) / sigma)"),
    above=Tail("log_ndtr(-z)", scaled("-above"), "log_ncdf((mu - y) / sigma)"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 1.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 0.1)],
    tails=[(-40.0, 3.0, 1.0), (40.0, 0.0, 1.0), (-1e8, 0.0, 1.0), (1e8, 0.0, 1.0), (37.0, 0.0, 1.0)],
    start="y > -inf", before=[(-math.inf, 0.1, 1.5)],
    end="y < inf", after=[(math.inf, 0.1, 1.5)], inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` the probabilities are :math:`\\Phi(z)` up to y and :math:`\\Phi(-z)` above. The
    derivative of :math:`\\log \\Phi(z)` is the inverse Mills ratio :math:`\\phi(z) / \\Phi(z)`.
    In SciPy ``scipy.stats.norm(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.normal_cdf(2.0, 2.0, 1.0)
0.5
>>> round(vm.normal_lccdf(40.0, 0.0, 1.0), 10)
-804.6084420138
""",
)  # fmt: skip
