"""Cumulative functions of location-scale families: normal, lognormal, logistic, double exponential,
Cauchy.
"""

from __future__ import annotations

import math

from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.location_scale import cauchy_lpdf, double_exponential_lpdf, logistic_lpdf
from varmat.densities.normal import normal_lpdf, std_normal_lpdf
from varmat.densities.positive import lognormal_lpdf

__all__ = [
    "cauchy_cdf", "cauchy_lccdf", "cauchy_lcdf", "double_exponential_cdf",
     "double_exponential_lccdf", "double_exponential_lcdf",
    "logistic_cdf", "logistic_lccdf", "logistic_lcdf", "lognormal_cdf", "lognormal_lccdf",
     "lognormal_lcdf",
    "normal_cdf", "normal_lccdf", "normal_lcdf", "std_normal_cdf", "std_normal_lccdf",
     "std_normal_lcdf",
]  # fmt: skip

ROOT_HALF = repr(math.sqrt(0.5))
ROOT_TWO_OVER_PI = repr(math.sqrt(2.0 / math.pi))
LOG_HALF = repr(math.log(0.5))
PI = repr(math.pi)
INF = math.inf
STANDARD = {"inv": "1.0 / sigma", "z": "(x - mu) * inv"}


def scaled(slope: str) -> dict[str, str]:
    """The partials of a function of ``z = (y - mu) / sigma``, given that in z."""
    return {"y": f"{slope} * inv", "mu": f"-{slope} * inv", "sigma": f"-{slope} * inv * z"}


def mills(z: str) -> str:
    """The derivative of ``log_ndtr(z)``: density over probability, which is about -z far below and
    0 above.
    """
    return f"{ROOT_TWO_OVER_PI} / erfcx(-{ROOT_HALF} * minimum({z}, 38.0))"


normal_cdf, normal_lcdf, normal_lccdf = cumulative(
    normal_lpdf,
    let={**STANDARD, "below": mills("z"), "above": mills("-z")},
    below=Tail("log_ndtr(z)", scaled("below"), "log_ncdf((y - mu) / sigma)"),
    above=Tail("log_ndtr(-z)", scaled("-above"), "log_ncdf((mu - y) / sigma)"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 1.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 0.1)],
    tails=[
        (-40.0, 3.0, 1.0),
        (40.0, 0.0, 1.0),
        (-1e8, 0.0, 1.0),
        (1e8, 0.0, 1.0),
        (37.0, 0.0, 1.0),
    ],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` the probabilities are :math:`\\Phi(z)` up to y
    and :math:`\\Phi(-z)` above. The derivative of :math:`\\log \\Phi(z)` is the inverse Mills ratio
    :math:`\\phi(z) / \\Phi(z)`. In SciPy ``scipy.stats.norm(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.normal_cdf(2.0, 2.0, 1.0)
0.5
>>> round(vm.normal_lccdf(40.0, 0.0, 1.0), 10)
-804.6084420138
""",
)

std_normal_cdf, std_normal_lcdf, std_normal_lccdf = cumulative(
    std_normal_lpdf,
    let={"below": mills("x"), "above": mills("-x")},
    below=Tail("log_ndtr(x)", {"y": "below"}, "log_ncdf(y)"),
    above=Tail("log_ndtr(-x)", {"y": "-above"}, "log_ncdf(-y)"),
    points=[(0.3,), (-4.0,), (1e-9,), (3.0,)],
    tails=[(-40.0,), (40.0,), (-1e8,), (1e8,)],
    start="y > -inf",
    before=[(-INF,)],
    end="y < inf",
    after=[(INF,)],
    inside="0.0",
    notes="""The probabilities are :math:`\\Phi(y)` up to y and :math:`\\Phi(-y)` above. In SciPy ``scipy.stats.norm``.""",
    examples="""
>>> import varmat as vm
>>> vm.std_normal_cdf([0.0, 0.0])
0.25
""",
)

lognormal_cdf, lognormal_lcdf, lognormal_lccdf = cumulative(
    lognormal_lpdf,
    let={
        "inv": "1.0 / sigma",
        "z": "(log(x) - mu) * inv",
        "below": mills("z"),
        "above": mills("-z"),
    },
    below=Tail(
        "log_ndtr(z)", scaled("below") | {"y": "below * inv / x"}, "log_ncdf((log(y) - mu) / sigma)"
    ),
    above=Tail(
        "log_ndtr(-z)",
        scaled("-above") | {"y": "-above * inv / x"},
        "log_ncdf((mu - log(y)) / sigma)",
    ),
    points=[(0.3, 0.1, 1.5), (4.0, 0.7, 0.3), (1e-3, -5.0, 2.0), (700.0, 6.5, 0.1)],
    tails=[(1e-300, 3.0, 0.5), (1e300, -3.0, 2.0), (1e-9, -20.0, 1e3)],
    start="y > 0.0",
    before=[(-1.0, 0.1, 1.5), (0.0, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    notes="""With :math:`z = (\\log y - \\mu) / \\sigma` the probabilities are :math:`\\Phi(z)` up
    to y and :math:`\\Phi(-z)` above. In SciPy ``scipy.stats.lognorm(sigma, scale=exp(mu))``.""",
    examples="""
>>> import varmat as vm
>>> vm.lognormal_cdf(1.0, 0.0, 2.0)
0.5
""",
)

logistic_cdf, logistic_lcdf, logistic_lccdf = cumulative(
    logistic_lpdf,
    let=STANDARD,
    below=Tail("log_expit(z)", scaled("expit(-z)"), "-log1p(exp(-(y - mu) / sigma))"),
    above=Tail("log_expit(-z)", scaled("-expit(z)"), "-log1p(exp((y - mu) / sigma))"),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (6.51, 6.5, 1e-2)],
    tails=[(1000.0, 0.0, 1.0), (-1000.0, 0.0, 1.0), (300.0, 0.0, 1.0), (-1e10, 1.0, 2.0)],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` the probability up to y is :math:`1 / (1 +
    e^{-z})`. In SciPy ``scipy.stats.logistic(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.logistic_lcdf(-1000.0, 0.0, 1.0)
-1000.0
""",
)

# The half in which the observation is has an exponential, the other one the rest.
double_exponential_cdf, double_exponential_lcdf, double_exponential_lccdf = cumulative(
    double_exponential_lpdf,
    let={
        **STANDARD,
        "a": "absolute(z)",
        "e": "0.5 * exp(-a)",
        "rest": "log1p(-e)",
        "slope": "e / (1.0 - e)",
    },
    below=Tail(
        f"where(z < 0.0, {LOG_HALF} - a, rest)",
        scaled("where(z < 0.0, 1.0, slope)"),
        "log(1/mpf(2)) - (mu - y) / sigma if y < mu else log1p(-exp((mu - y) / sigma) / 2)",
    ),
    above=Tail(
        f"where(z > 0.0, {LOG_HALF} - a, rest)",
        scaled("-where(z > 0.0, 1.0, slope)"),
        "log(1/mpf(2)) - (y - mu) / sigma if y > mu else log1p(-exp((y - mu) / sigma) / 2)",
    ),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-3, -0.1, 1e3), (7.0, 6.5, 1e-1)],
    tails=[(1e8, 1.0, 1e-3), (-1e-20, 1.0, 1e5), (-1e8, 1.0, 1e-3), (700.0, 0.0, 1.0)],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    inside="mu",
    notes="""The probability up to y is :math:`\\frac12 e^{-|z|}` below :math:`\\mu` and one less
    that above, with :math:`z = (y - \\mu) / \\sigma`. In SciPy ``scipy.stats.laplace(mu,
    sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.double_exponential_cdf(2.0, 2.0, 1.0)
0.5
""",
)

# The angle of (-z, 1) is pi times the probability, with all digits far below.
cauchy_cdf, cauchy_lcdf, cauchy_lccdf = cumulative(
    cauchy_lpdf,
    let={
        **STANDARD,
        "under": "arctan2(1.0, -z)",
        "over": "arctan2(1.0, z)",
        "p": f"under / {PI}",
        "q": f"over / {PI}",
        "lower": "where(z < 0.0, log(p), log1p(-q))",
        "upper": "where(z > 0.0, log(q), log1p(-p))",
        "rate": "1.0 / hypot(1.0, z)",
        "below": "(rate / under) * rate",
        "above": "(rate / over) * rate",
    },
    # One of the probabilities is s, the other one less s; the second terms are what that has lost.
    quick={
        "s": f"arctan(1.0 / absolute(z)) / {PI}",
        "h": "maximum(z > 0.0, 0.0)",
        "g": "s - 2.0 * h * s",
        "p": "h + g",
        "q": "1.0 - h - g",
        "lower": "log(p) + (h - p + g) * p",
        "upper": "log(q) + (1.0 - h - q - g) * q",
        "below": f"1.0 / ({PI} * (1.0 + z * z) * p)",
        "above": f"1.0 / ({PI} * (1.0 + z * z) * q)",
    },
    when="(z > -1e100) & (z < 1e100)",
    below=Tail(
        "lower",
        scaled("below"),
        "log(atan2(1, (mu - y) / sigma) / pi) if y < mu else log1p(-atan2(1, (y - mu) / sigma) / "
        "pi)",
    ),
    above=Tail(
        "upper",
        scaled("-above"),
        "log(atan2(1, (y - mu) / sigma) / pi) if y > mu else log1p(-atan2(1, (mu - y) / sigma) / "
        "pi)",
    ),
    points=[(0.3, 0.1, 1.5), (-4.0, 0.7, 0.3), (1e-9, -1e-9, 1e3), (7.0, 6.5, 1e-1)],
    tails=[(-1e8, 0.0, 1.0), (1.0, 2.0, 1e8), (1e20, 0.0, 1.0), (-1e20, 0.0, 1.0)],
    start="y > -inf",
    before=[(-INF, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 0.1, 1.5)],
    inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` the probability up to y is :math:`\\frac12 +
    \\arctan(z) / \\pi`. In SciPy ``scipy.stats.cauchy(mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.cauchy_cdf(2.0, 2.0, 1.0)
0.5
""",
)
