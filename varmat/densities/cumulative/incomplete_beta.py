"""Cumulative functions that are incomplete beta functions: beta, Student's t, binomial, negative
binomial.

The regularised functions are symmetric: the function of a and b at p is the complement of the
function of b and a at q = 1 - p. The arguments decide which of p and q has all digits, and which is
a rounded complement; the form of the smaller one is taken. The other form is evaluated at the end
where it is zero, which costs nothing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from varmat.densities.bernoulli import binomial_lpmf
from varmat.densities.bounded import beta_lpdf, beta_proportion_lpdf
from varmat.densities.counts import neg_binomial_2_lpmf, neg_binomial_lpmf
from varmat.densities.cumulative.row import COUNTS, POSITIVE, Tail, Tails, cumulative, scaled
from varmat.densities.location_scale import student_t_lpdf
from varmat.functions.special.dispersion_tails import (
    negative_binomial_above,
    negative_binomial_below,
    proportion_above,
    proportion_below,
)
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.incomplete_functions import betaincc
from varmat.functions.special.log_incomplete import (
    log_betainc,
    log_betainc_derivative,
    log_betaincc,
    log_betaincc_derivative,
)
from varmat.typing import Function, Operand, Result

__all__ = [
    "beta_cdf", "beta_lccdf", "beta_lcdf", "beta_proportion_cdf", "beta_proportion_lccdf",
     "beta_proportion_lcdf",
    "binomial_cdf", "binomial_lccdf", "binomial_lcdf", "neg_binomial_2_cdf", "neg_binomial_2_lccdf",
     "neg_binomial_2_lcdf",
    "neg_binomial_cdf", "neg_binomial_lccdf", "neg_binomial_lcdf", "student_t_cdf",
     "student_t_lccdf", "student_t_lcdf",
]  # fmt: skip

LOG_HALF = math.log(0.5)


class Beta(NamedTuple):
    """The logarithm of a regularised incomplete beta function, and its derivatives."""

    log: Function
    derivative: Function

    def slopes(self, a: Operand, b: Operand, p: Operand) -> tuple[Operand, Operand, Operand]:
        """Compute the derivatives in a, b and p."""
        in_a, in_b, in_p = (self.derivative(order, a, b, p) for order in (100.0, 10.0, 1.0))
        return in_a, in_b, in_p


LOWER = Beta(log_betainc, log_betainc_derivative)
UPPER = Beta(log_betaincc, log_betaincc_derivative)


def _beta(x: object, alpha: object, beta: object) -> Tails:
    """The probability up to theta is the regularised incomplete beta function
    :math:`I_\\theta(\\alpha, \\beta)`. In SciPy ``scipy.stats.beta(alpha, beta)``.

    >>> import varmat as vm
    >>> vm.beta_cdf(0.25, 1.0, 1.0)
    0.25
    """

    def tail(of: Beta) -> Tail:
        in_a, in_b, in_p = of.slopes(alpha, beta, x)
        return Tail(of.log(alpha, beta, x), theta=in_p, alpha=in_a, beta=in_b)

    return Tails(tail(LOWER), tail(UPPER))


beta_cdf, beta_lcdf, beta_lccdf = cumulative(
    beta_lpdf,
    _beta,
    tails=[
        (1e-200, 2.0, 3.0),
        (0.999999, 2.0, 3.0),
        (1e-300, 1e-3, 5.0),
        (0.5001, 400.0, 400.0),
        (0.2, 400.0, 3.0),
    ],
    **POSITIVE,
    end=lambda theta, *_: theta < 1.0,
    after=(1.5, 1.0),
    inside=0.5,
)


def _beta_proportion(x: Operand, mu: Operand, kappa: Operand) -> Tails:
    """The probability up to theta is the regularised incomplete beta function
    :math:`I_\\theta(\\mu \\kappa, (1 - \\mu) \\kappa)`. In SciPy ``scipy.stats.beta(mu * kappa, (1
    - mu) * kappa)``.

    >>> import varmat as vm
    >>> vm.beta_proportion_cdf(0.25, 0.5, 2.0)
    0.25
    """
    a, b = mu * kappa, (1.0 - mu) * kappa

    def tail(of: Beta, proportion: Function) -> Tail:
        in_a, in_b, in_p = of.slopes(a, b, x)
        in_kappa = proportion(1.0, x, mu, kappa)
        return Tail(of.log(a, b, x), theta=in_p, mu=kappa * (in_a - in_b), kappa=in_kappa)

    return Tails(tail(LOWER, proportion_below), tail(UPPER, proportion_above))


beta_proportion_cdf, beta_proportion_lcdf, beta_proportion_lccdf = cumulative(
    beta_proportion_lpdf,
    _beta_proportion,
    tails=[(1e-200, 0.4, 3.0), (0.999999, 0.6, 3.0), (1e-300, 1e-3, 5.0), (0.5001, 0.5, 800.0)],
    **POSITIVE,
    end=lambda theta, *_: theta < 1.0,
    after=(1.5, 1.0),
    inside=0.5,
)


def _up_to(n: Operand, N: Operand, theta: Operand) -> Result:
    inside = np.logical_and(np.greater_equal(n, 0.0), np.less(n, N))
    within = betaincc(
        np.where(inside, n, 0.0) + 1.0, np.where(inside, np.subtract(N, n), 1.0), theta
    )
    return np.where(inside, within, np.where(np.less(n, 0.0), 0.0, 1.0))


# The probability of a success is given; there is always a failure more than n is smaller than N.
def _binomial(x: Operand, N: Operand, theta: Operand) -> Tails:
    """The probability up to n is the regularised incomplete beta function :math:`I_{1 -
    \\theta}(N - n, n + 1)`. In SciPy ``scipy.stats.binom(N, theta)``.

    >>> import varmat as vm
    >>> vm.binomial_cdf(1, 2, 0.5)
    0.75
    """
    a, b = x + 1.0, np.maximum(N - x, 1.0)
    return Tails(
        *(Tail(of.log(a, b, theta), theta=of.derivative(1.0, a, b, theta)) for of in (UPPER, LOWER))
    )


binomial_cdf, binomial_lcdf, binomial_lccdf = cumulative(
    binomial_lpmf,
    _binomial,
    at_zero=_up_to,
    points=[(3, 10, 0.35), (0, 10, 0.01), (9, 10, 0.99), (40, 100, 0.5), (0, 1, 0.5)],
    tails=[
        (0, 2, 1e-300),
        (400, 800, 0.501),
        (1, 10, 1e-12),
        (1, 10, 1.0 - 1e-12),
        (2, 300, 0.9),
        (180, 200, 0.1),
    ],
    **COUNTS,
    end=lambda n, N, *_: n < N,
    after=(10, 11, (0, 0, 0.5)),
    inside=0.0,
)


def negative(
    first: Beta, a: Operand, m: Operand, p: Operand, q: Operand, low: Operand
) -> tuple[Operand, Operand, Operand]:
    """Compute one tail of a negative binomial count, I_p(a, m) or its complement, and the
    derivatives of its logarithm in the shape a and in p: by `first` where p is low, and elsewhere
    with the shapes exchanged at q.
    """
    second, least, most = (UPPER, 1.0, 0.0) if first is LOWER else (LOWER, 0.0, 1.0)
    # The unused form is evaluated where it is one, with shapes for which its derivatives are
    # zero there.
    one = np.where(low, a, 2.0), np.where(low, m, 2.0), np.where(low, p, least)
    other = np.where(low, 2.0, m), np.where(low, 2.0, a), np.where(low, most, q)
    (in_a, _, in_p), (_, in_b, in_q) = first.slopes(*one), second.slopes(*other)
    return first.log(*one) + second.log(*other), in_a + in_b, in_p - in_q


def _neg_binomial(x: Operand, alpha: Operand, beta: Operand) -> Tails:
    """The probability up to n is the regularised incomplete beta function :math:`I_p(\\alpha,
    n + 1)` with :math:`p = \\beta / (1 + \\beta)`. In SciPy ``scipy.stats.nbinom(alpha, beta / (1 +
    beta))``.

    >>> import varmat as vm
    >>> vm.neg_binomial_cdf(1, 1.0, 1.0)
    0.75
    """
    q = 1.0 / (1.0 + beta)

    def tail(of: Beta) -> Tail:
        term, in_a, in_p = negative(of, alpha, np.floor(x) + 1.0, beta * q, q, beta < 1.0)
        return Tail(term, alpha=in_a, beta=q * q * in_p)

    return Tails(tail(LOWER), tail(UPPER))


neg_binomial_cdf, neg_binomial_lcdf, neg_binomial_lccdf = cumulative(
    neg_binomial_lpmf,
    _neg_binomial,
    tails=[
        (13, 1e6, 1e5),
        (11, 1e5, 1e4),
        (1000, 35.0, 0.036),
        (2, 1e-3, 1e5),
        (10, 3.0, 1e-20),
        (5, 2.0, 1e30),
    ],
    **COUNTS,
)


def _neg_binomial_2(x: Operand, mu: Operand, phi: Operand) -> Tails:
    """The probability up to n is the regularised incomplete beta function :math:`I_p(\\phi, n
    + 1)` with :math:`p = \\phi / (\\mu + \\phi)`. In SciPy ``scipy.stats.nbinom(phi, phi / (mu +
    phi))``. For large :math:`\\phi` the derivative in it is of order :math:`\\phi^{-2}`,
    except next to its zero, where the mean is about the count: there it is right to 1e-12 of that
    order.

    >>> import varmat as vm
    >>> vm.neg_binomial_2_cdf(1, 1.0, 1.0)
    0.75
    """
    m, inv = np.floor(x) + 1.0, 1.0 / (mu + phi)
    p, q = phi * inv, mu * inv
    positive = np.where(mu > 0.0, mu, 1.0)

    def tail(of: Beta, score: Function) -> Tail:
        term, _, in_p = negative(of, phi, m, p, q, phi < mu)
        in_phi = np.where(mu > 0.0, score(1.0, phi, positive, m), 0.0)
        return Tail(term, mu=-p * inv * in_p, phi=in_phi)

    return Tails(tail(LOWER, negative_binomial_below), tail(UPPER, negative_binomial_above))


neg_binomial_2_cdf, neg_binomial_2_lcdf, neg_binomial_2_lccdf = cumulative(
    neg_binomial_2_lpmf,
    _neg_binomial_2,
    tails=[(1000, 1020.0, 35.0), (2, 1e5, 1e-3), (1000, 3.0, 2.0), (3, 1e6, 5.0), (3, 2.5, 1e4)],
    **COUNTS,
)

# The tail beyond |z| is half the incomplete beta function of nu / 2 and 1 / 2 at u = nu / (nu +
# z**2), or half the complement of the function with swapped shapes at v = 1 - u; `far` is a factor
# beyond what u can be. The derivative in nu is the sum of the derivative in the shape and the one
# through u, which is the derivative in z times -z / (2 nu).
_FAR = 1e-280


def _student_t(x: Operand, nu: Operand, mu: Operand, sigma: Operand) -> Tails:
    """With :math:`z = (y - \\mu) / \\sigma` the probability of more than :math:`|z|` is half
    the regularised incomplete beta function :math:`I_u(\\frac\\nu2, \\frac12)` with :math:`u = \\nu
    / (\\nu + z^2)`. In SciPy ``scipy.stats.t(nu, mu, sigma)``.

    >>> import varmat as vm
    >>> vm.student_t_cdf(2.0, 3.0, 2.0, 1.0)
    0.5
    """
    inv, half, root = 1.0 / sigma, 0.5 * nu, np.sqrt(nu)
    z = (x - mu) * inv
    a = np.absolute(z)
    h = np.hypot(a, root)
    near, u, v = a < root, np.maximum(np.square(root / h), _FAR), np.square(a / h)
    far = np.minimum(np.log(root / h) - 0.5 * math.log(_FAR), 0.0)
    first, second = (half, 0.5, np.where(near, 1.0, u)), (0.5, half, np.where(near, v, 0.0))
    log_tail = LOWER.log(*first) + UPPER.log(*second) + nu * far + LOG_HALF
    t = np.exp(log_tail)
    odds = t / (1.0 - t)
    # The density at z over the tail.
    hazard = np.exp(
        log_rising_factorial(half, 0.5)
        - 0.5 * np.log(nu)
        - 0.5 * (nu + 1.0) * (2.0 * np.log1p(a / root * np.fmin(a / (root + h), 1.0)))
        - 0.5 * math.log(math.pi)
        - log_tail
    )
    in_shape = 0.5 * (LOWER.derivative(100.0, *first) + UPPER.derivative(10.0, *second)) + far
    in_nu = in_shape + 0.5 * hazard * a / nu

    def tail(is_side: Operand, sign: float) -> Tail:
        slope = sign * (np.where(is_side, 1.0, odds) * hazard)
        return Tail(
            np.where(is_side, log_tail, np.log1p(-t)),
            nu=np.where(is_side, 1.0, -odds) * in_nu,
            **scaled(slope, inv, z),
        )

    return Tails(tail(z < 0.0, 1.0), tail(z > 0.0, -1.0))


student_t_cdf, student_t_lcdf, student_t_lccdf = cumulative(
    student_t_lpdf,
    _student_t,
    tails=[
        (-1e8, 3.0, 0.0, 1.0),
        (1e8, 3.0, 0.0, 1.0),
        (-1e14, 2.0, 0.0, 1.0),
        (0.3, 1e4, 0.1, 1.5),
        (-40.0, 1e4, 3.0, 1.5),
        (0.3, 1e-2, 0.1, 1.5),
    ],
    inside=lambda nu, mu, *_: mu,
)
