"""Cumulative functions that are incomplete gamma functions: gamma, chi-square, their inverses,
Poisson.

With the regularised functions P and Q = 1 - P of a shape a and an argument t the probabilities are
P(a, t) and Q(a, t), or the other way round. Their logarithms and the derivatives of these are rows
of their own, right in both tails and for all shapes."""

from __future__ import annotations

import math

from varmat.densities.counts import poisson_lpmf
from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.inverse_chi_square import inv_chi_square_lpdf, scaled_inv_chi_square_lpdf
from varmat.densities.positive import chi_square_lpdf, gamma_lpdf, inv_gamma_lpdf

__all__ = [
    "chi_square_cdf", "chi_square_lccdf", "chi_square_lcdf", "gamma_cdf", "gamma_lccdf",
     "gamma_lcdf",
    "inv_chi_square_cdf", "inv_chi_square_lccdf", "inv_chi_square_lcdf", "inv_gamma_cdf",
     "inv_gamma_lccdf", "inv_gamma_lcdf",
    "poisson_cdf", "poisson_lccdf", "poisson_lcdf",
    "scaled_inv_chi_square_cdf", "scaled_inv_chi_square_lccdf", "scaled_inv_chi_square_lcdf",
]  # fmt: skip

INF = math.inf


def tail(function: str, a: str, t: str, partials: dict[str, str], reference: str) -> Tail:
    """The tail ``function(a, t)``; the partials are in terms of its derivatives, `in_a` and
    `in_t`.
    """
    derivatives = {
        "in_a": f"{function}_derivative(10.0, {a}, {t})",
        "in_t": f"{function}_derivative(1.0, {a}, {t})",
    }
    filled = {name: text.format(**derivatives) for name, text in partials.items()}
    return Tail(f"{function}({a}, {t})", filled, f"{function}({reference})")


def both(a: str, t: str, partials: dict[str, str], reference: str) -> tuple[Tail, Tail]:
    """The tails P and Q."""
    return tail("log_gammainc", a, t, partials, reference), tail(
        "log_gammaincc", a, t, partials, reference
    )


below, above = both(
    "alpha", "t", {"y": "beta * {in_t}", "alpha": "{in_a}", "beta": "x * {in_t}"}, "alpha, beta * y"
)
gamma_cdf, gamma_lcdf, gamma_lccdf = cumulative(
    gamma_lpdf,
    let={"t": "beta * x"},
    below=below,
    above=above,
    points=[(0.3, 2.0, 1.5), (4.0, 0.7, 0.3), (1e-3, 0.1, 1e3), (70.0, 65.0, 1.1), (1.5, 1.0, 2.0)],
    tails=[
        (41.0, 45.0, 1.1),
        (1e-300, 1e-3, 1.0),
        (1e-300, 2.0, 1.0),
        (1000.0, 2.0, 1.0),
        (1e4, 1e-3, 1.0),
        (1.0, 1e4, 1.1e4),
    ],
    start="y > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="y < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to y is the regularised incomplete gamma function :math:`P(\\alpha,
    \\beta y)`. In SciPy ``scipy.stats.gamma(alpha, scale=1 / beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.gamma_lccdf(1000.0, 1.0, 1.0)
-1000.0
""",
)

below, above = both("half", "t", {"y": "0.5 * {in_t}", "nu": "0.5 * {in_a}"}, "nu / 2, y / 2")
chi_square_cdf, chi_square_lcdf, chi_square_lccdf = cumulative(
    chi_square_lpdf,
    let={"t": "0.5 * x", "half": "0.5 * nu"},
    below=below,
    above=above,
    points=[(0.3, 2.5), (4.0, 0.7), (1e-3, 0.1), (70.0, 65.0), (1.5, 2.0)],
    tails=[(50.0, 55.0), (1e-300, 1e-3), (1000.0, 2.5), (1e-100, 6.0)],
    start="y > 0.0",
    before=[(-1.0, 2.0), (0.0, 2.0)],
    end="y < inf",
    after=[(INF, 2.0)],
    notes="""The probability up to y is the regularised incomplete gamma function
    :math:`P(\\frac\\nu2, \\frac y2)`. In SciPy ``scipy.stats.chi2(nu)``.""",
    examples="""
>>> import varmat as vm
>>> vm.chi_square_lccdf(1000.0, 2.0)
-500.0
""",
)

above, below = both(
    "alpha",
    "t",
    {"y": "-{in_t} * t / x", "alpha": "{in_a}", "beta": "{in_t} / x"},
    "alpha, beta / y",
)
inv_gamma_cdf, inv_gamma_lcdf, inv_gamma_lccdf = cumulative(
    inv_gamma_lpdf,
    let={"t": "beta / x"},
    below=below,
    above=above,
    points=[
        (0.3, 2.0, 1.5),
        (4.0, 0.7, 0.3),
        (1e-2, 0.1, 1e-2),
        (1.1, 65.0, 70.0),
        (1.5, 1.0, 2.0),
    ],
    tails=[(0.03, 45.0, 1.1), (1e300, 1e-3, 1.0), (1e-3, 2.0, 1.0), (1e300, 2.0, 1.0)],
    start="y > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="y < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\alpha, \\beta / y)`. In SciPy ``scipy.stats.invgamma(alpha, scale=beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.inv_gamma_lcdf(0.001, 1.0, 1.0)
-1000.0
""",
)

above, below = both(
    "half", "t", {"y": "-{in_t} * t / x", "nu": "0.5 * {in_a}"}, "nu / 2, 1 / (2 * y)"
)
inv_chi_square_cdf, inv_chi_square_lcdf, inv_chi_square_lccdf = cumulative(
    inv_chi_square_lpdf,
    let={"t": "0.5 / x", "half": "0.5 * nu"},
    below=below,
    above=above,
    points=[(1.3, 2.0), (0.4, 0.9), (0.2, 5.0), (0.01, 102.5), (1e3, 1e-3)],
    tails=[(0.001, 0.1), (1e-4, 1.002e4), (1e300, 2.0)],
    start="y > 0.0",
    before=[(-1.0, 2.0), (0.0, 2.0)],
    end="y < inf",
    after=[(INF, 2.0)],
    notes="""The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\frac\\nu2, \\frac1{2y})`. In SciPy ``scipy.stats.invgamma(nu / 2, scale=1 / 2)``.""",
    examples="""
>>> import varmat as vm
>>> vm.inv_chi_square_lcdf(0.0005, 2.0)
-1000.0
""",
)

above, below = both(
    "half",
    "t",
    {
        "y": "-{in_t} * t / x",
        "nu": "0.5 * ({in_a} + s / x * s * {in_t})",
        "s": "2.0 * {in_t} * t / s",
    },
    "nu / 2, nu * s**2 / (2 * y)",
)
scaled_inv_chi_square_cdf, scaled_inv_chi_square_lcdf, scaled_inv_chi_square_lccdf = cumulative(
    scaled_inv_chi_square_lpdf,
    let={"half": "0.5 * nu", "t": "half * (s / x) * s"},
    below=below,
    above=above,
    points=[(1.3, 2.0, 1.1), (0.4, 0.9, 0.7), (3.9, 100.5, 2.0), (1e3, 1e-3, 30.0)],
    tails=[(0.01, 2.0, 1.0), (1.01, 1e4, 1.0), (1e300, 2.0, 1.1)],
    start="y > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="y < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\frac\\nu2, \\frac{\\nu s^2}{2y})`. In SciPy ``scipy.stats.invgamma(nu / 2, scale=nu *
    s**2 / 2)``.""",
    examples="""
>>> import varmat as vm
>>> vm.scaled_inv_chi_square_lcdf(0.001, 2.0, 1.0)
-1000.0
""",
)

above, below = both("a", "rate", {"rate": "{in_t}"}, "floor(n) + 1, rate")
poisson_cdf, poisson_lcdf, poisson_lccdf = cumulative(
    poisson_lpmf,
    let={"a": "floor(x) + 1.0"},
    below=below,
    above=above,
    points=[(3, 2.5), (0, 1e-3), (40, 37.0), (1, 0.01), (0, 5.0)],
    tails=[(10000, 10050.0), (5, 1e-50), (0, 700.0), (300, 1000.0), (1000, 3.0)],
    start="n >= 0.0",
    before=[(-1, 2.0)],
    end="n < inf",
    after=[(INF, 2.0)],
    notes="""With the rate :math:`\\lambda` the probability up to n is the regularised upper
    incomplete gamma function :math:`Q(n + 1, \\lambda)`. In SciPy
    ``scipy.stats.poisson(rate)``.""",
    examples="""
>>> import varmat as vm
>>> vm.poisson_lcdf(0, 1000.0)
-1000.0
""",
)
