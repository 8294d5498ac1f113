"""Cumulative functions that are incomplete gamma functions: gamma, chi-square, their inverses,
Poisson.

The probabilities are the regularised functions P(a, t) and Q(a, t) = 1 - P(a, t) of a shape a and
an argument t (DLMF 8.2.4), or the other way round. Their logarithms and the derivatives of these
are rows of the elementwise table, accurate in both tails and for all shapes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from varmat.densities.counts import poisson_lpmf
from varmat.densities.cumulative.row import COUNTS, POSITIVE, Tail, Tails, cumulative
from varmat.densities.inverse_chi_square import inv_chi_square_lpdf, scaled_inv_chi_square_lpdf
from varmat.densities.positive import chi_square_lpdf, gamma_lpdf, inv_gamma_lpdf
from varmat.functions.special.log_incomplete import (
    log_gammainc,
    log_gammainc_derivative,
    log_gammaincc,
    log_gammaincc_derivative,
)
from varmat.typing import Function, Operand

__all__ = [
    "chi_square_cdf", "chi_square_lccdf", "chi_square_lcdf", "gamma_cdf", "gamma_lccdf",
     "gamma_lcdf",
    "inv_chi_square_cdf", "inv_chi_square_lccdf", "inv_chi_square_lcdf", "inv_gamma_cdf",
     "inv_gamma_lccdf", "inv_gamma_lcdf",
    "poisson_cdf", "poisson_lccdf", "poisson_lcdf",
    "scaled_inv_chi_square_cdf", "scaled_inv_chi_square_lccdf", "scaled_inv_chi_square_lcdf",
]  # fmt: skip


class Gamma(NamedTuple):
    """The logarithm of a regularised incomplete gamma function, and its derivatives."""

    log: Function
    derivative: Function

    def tail(self, a: object, t: object, partials: Function) -> Tail:
        """Make the tail; `partials` is a function of the derivatives in a and t."""
        slopes = self.derivative(10.0, a, t), self.derivative(1.0, a, t)
        return Tail(self.log(a, t), **partials(*slopes))


P = Gamma(log_gammainc, log_gammainc_derivative)
Q = Gamma(log_gammaincc, log_gammaincc_derivative)


def both_tails(which: tuple[Gamma, Gamma], a: object, t: object, partials: Function) -> Tails:
    return Tails(*(x.tail(a, t, partials) for x in which))


def _gamma(x: Operand, alpha: Operand, beta: Operand) -> Tails:
    """The probability up to y is the regularised incomplete gamma function :math:`P(\\alpha,
    \\beta y)`. In SciPy ``scipy.stats.gamma(alpha, scale=1 / beta)``.

    >>> import varmat as vm
    >>> vm.gamma_lccdf(1000.0, 1.0, 1.0)
    -1000.0
    """
    return both_tails(
        (P, Q), alpha, beta * x, lambda a, t: {"y": beta * t, "alpha": a, "beta": x * t}
    )


gamma_cdf, gamma_lcdf, gamma_lccdf = cumulative(
    gamma_lpdf,
    _gamma,
    tails=[
        (41.0, 45.0, 1.1),
        (1e-300, 1e-3, 1.0),
        (1e-300, 2.0, 1.0),
        (1000.0, 2.0, 1.0),
        (1e4, 1e-3, 1.0),
        (1.0, 1e4, 1.1e4),
    ],
    **POSITIVE,
)


def _chi_square(x: Operand, nu: Operand) -> Tails:
    """The probability up to y is the regularised incomplete gamma function
    :math:`P(\\frac\\nu2, \\frac y2)`. In SciPy ``scipy.stats.chi2(nu)``.

    >>> import varmat as vm
    >>> vm.chi_square_lccdf(1000.0, 2.0)
    -500.0
    """
    return both_tails((P, Q), 0.5 * nu, 0.5 * x, lambda a, t: {"y": 0.5 * t, "nu": 0.5 * a})


chi_square_cdf, chi_square_lcdf, chi_square_lccdf = cumulative(
    chi_square_lpdf,
    _chi_square,
    tails=[(50.0, 55.0), (1e-300, 1e-3), (1000.0, 2.5), (1e-100, 6.0)],
    **POSITIVE,
)


def _inv_gamma(x: Operand, alpha: Operand, beta: Operand) -> Tails:
    """The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\alpha, \\beta / y)`. In SciPy ``scipy.stats.invgamma(alpha, scale=beta)``.

    >>> import varmat as vm
    >>> vm.inv_gamma_lcdf(0.001, 1.0, 1.0)
    -1000.0
    """
    t = beta / x
    return both_tails(
        (Q, P), alpha, t, lambda in_a, in_t: {"y": -in_t * t / x, "alpha": in_a, "beta": in_t / x}
    )


inv_gamma_cdf, inv_gamma_lcdf, inv_gamma_lccdf = cumulative(
    inv_gamma_lpdf,
    _inv_gamma,
    tails=[(0.03, 45.0, 1.1), (1e300, 1e-3, 1.0), (1e-3, 2.0, 1.0), (1e300, 2.0, 1.0)],
    **POSITIVE,
)


def _inv_chi_square(x: Operand, nu: Operand) -> Tails:
    """The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\frac\\nu2, \\frac1{2y})`. In SciPy ``scipy.stats.invgamma(nu / 2, scale=1 / 2)``.

    >>> import varmat as vm
    >>> vm.inv_chi_square_lcdf(0.0005, 2.0)
    -1000.0
    """
    t = 0.5 / x
    return both_tails(
        (Q, P), 0.5 * nu, t, lambda in_a, in_t: {"y": -in_t * t / x, "nu": 0.5 * in_a}
    )


inv_chi_square_cdf, inv_chi_square_lcdf, inv_chi_square_lccdf = cumulative(
    inv_chi_square_lpdf,
    _inv_chi_square,
    tails=[(0.001, 0.1), (1e-4, 1.002e4), (1e300, 2.0)],
    **POSITIVE,
)


def _scaled_inv_chi_square(x: Operand, nu: Operand, s: Operand) -> Tails:
    """The probability up to y is the regularised upper incomplete gamma function
    :math:`Q(\\frac\\nu2, \\frac{\\nu s^2}{2y})`. In SciPy ``scipy.stats.invgamma(nu / 2, scale=nu *
    s**2 / 2)``.

    >>> import varmat as vm
    >>> vm.scaled_inv_chi_square_lcdf(0.001, 2.0, 1.0)
    -1000.0
    """
    half = 0.5 * nu
    t = half * (s / x) * s

    def partials(in_a: Operand, in_t: Operand) -> dict[str, Operand]:
        in_nu = 0.5 * (in_a + s / x * s * in_t)
        return {"y": -in_t * t / x, "nu": in_nu, "s": 2.0 * in_t * t / s}

    return both_tails((Q, P), half, t, partials)


scaled_inv_chi_square_cdf, scaled_inv_chi_square_lcdf, scaled_inv_chi_square_lccdf = cumulative(
    scaled_inv_chi_square_lpdf,
    _scaled_inv_chi_square,
    tails=[(0.01, 2.0, 1.0), (1.01, 1e4, 1.0), (1e300, 2.0, 1.1)],
    **POSITIVE,
)


def _poisson(x: Operand, rate: Operand) -> Tails:
    """With the rate :math:`\\lambda` the probability up to n is the regularised upper
    incomplete gamma function :math:`Q(n + 1, \\lambda)`. In SciPy
    ``scipy.stats.poisson(rate)``.

    >>> import varmat as vm
    >>> vm.poisson_lcdf(0, 1000.0)
    -1000.0
    """
    a = np.floor(x) + 1.0
    return Tails(*(Tail(of.log(a, rate), rate=of.derivative(1.0, a, rate)) for of in (Q, P)))


poisson_cdf, poisson_lcdf, poisson_lccdf = cumulative(
    poisson_lpmf,
    _poisson,
    tails=[(10000, 10050.0), (5, 1e-50), (0, 700.0), (300, 1000.0), (1000, 3.0)],
    **COUNTS,
)
