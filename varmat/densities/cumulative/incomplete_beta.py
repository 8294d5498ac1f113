"""Cumulative functions that are incomplete beta functions: beta, Student's t, binomial, negative
binomial.

The regularised functions are symmetric: that of the shapes a and b at p is the complement of that
of b and a at q = 1 - p. Which of p and q has all digits, and which is the rounded complement of the
other, is a matter of the arguments; the form is taken that wants the smaller one. The other form
then stands at the end at which it is zero and costs nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from varmat.densities.bernoulli import binomial_lpmf
from varmat.densities.bounded import beta_lpdf, beta_proportion_lpdf
from varmat.densities.counts import neg_binomial_2_lpmf, neg_binomial_lpmf
from varmat.densities.cumulative.row import Tail, cumulative
from varmat.densities.location_scale import student_t_lpdf
from varmat.functions.special import dispersion_tails  # noqa: F401 - its rows are named in the expressions below
from varmat.functions.special.incomplete_functions import betaincc

if TYPE_CHECKING:
    from varmat.typing import Operand, Result

__all__ = [
    "beta_cdf", "beta_lccdf", "beta_lcdf", "beta_proportion_cdf", "beta_proportion_lccdf",
     "beta_proportion_lcdf",
    "binomial_cdf", "binomial_lccdf", "binomial_lcdf", "neg_binomial_2_cdf", "neg_binomial_2_lccdf",
     "neg_binomial_2_lcdf",
    "neg_binomial_cdf", "neg_binomial_lccdf", "neg_binomial_lcdf", "student_t_cdf",
     "student_t_lccdf", "student_t_lcdf",
]  # fmt: skip

INF = math.inf
LOG_HALF = repr(math.log(0.5))


def tail(function: str, operands: str, partials: dict[str, str], reference: str) -> Tail:
    """The tail ``function(a, b, p)``; the partials are in terms of its derivatives, `in_a`, `in_b`
    and `in_p`.
    """
    orders = {"in_a": 100.0, "in_b": 10.0, "in_p": 1.0}
    derivatives = {
        name: f"{function}_derivative({order}, {operands})" for name, order in orders.items()
    }
    filled = {name: text.format(**derivatives) for name, text in partials.items()}
    return Tail(f"{function}({operands})", filled, f"{function}({reference})")


def both(operands: str, partials: dict[str, str], reference: str) -> tuple[Tail, Tail]:
    """The function and its complement."""
    return tail("log_betainc", operands, partials, reference), tail(
        "log_betaincc", operands, partials, reference
    )


below, above = both(
    "alpha, beta, x", {"theta": "{in_p}", "alpha": "{in_a}", "beta": "{in_b}"}, "alpha, beta, theta"
)
beta_cdf, beta_lcdf, beta_lccdf = cumulative(
    beta_lpdf,
    below=below,
    above=above,
    points=[
        (0.3, 2.0, 3.0),
        (0.9, 0.7, 0.3),
        (1e-2, 0.1, 10.0),
        (0.6, 65.0, 40.0),
        (0.5, 1.0, 1.0),
    ],
    tails=[
        (1e-200, 2.0, 3.0),
        (0.999999, 2.0, 3.0),
        (1e-300, 1e-3, 5.0),
        (0.5001, 400.0, 400.0),
        (0.2, 400.0, 3.0),
    ],
    start="theta > 0.0",
    before=[(-1.0, 2.0, 1.5), (0.0, 2.0, 1.5)],
    end="theta < 1.0",
    after=[(1.5, 2.0, 1.5), (1.0, 2.0, 1.5)],
    inside="0.5",
    notes="""The probability up to theta is the regularised incomplete beta function
    :math:`I_\\theta(\\alpha, \\beta)`. In SciPy ``scipy.stats.beta(alpha, beta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.beta_cdf(0.25, 1.0, 1.0)
0.25
""",
)

below, above = (
    tail(
        function,
        "a, b, x",
        {
            "theta": "{in_p}",
            "mu": "kappa * ({in_a} - {in_b})",
            "kappa": f"proportion_{word}(1.0, x, mu, kappa)",
        },
        "mu * kappa, (1 - mu) * kappa, theta",
    )
    for function, word in (("log_betainc", "below"), ("log_betaincc", "above"))
)
beta_proportion_cdf, beta_proportion_lcdf, beta_proportion_lccdf = cumulative(
    beta_proportion_lpdf,
    let={"nu": "1.0 - mu", "a": "mu * kappa", "b": "nu * kappa"},
    below=below,
    above=above,
    points=[
        (0.3, 0.4, 3.0),
        (0.9, 0.6, 0.7),
        (1e-2, 0.01, 10.0),
        (0.61, 0.6, 105.0),
        (0.4, 0.5, 2.0),
    ],
    tails=[(1e-200, 0.4, 3.0), (0.999999, 0.6, 3.0), (1e-300, 1e-3, 5.0), (0.5001, 0.5, 800.0)],
    start="theta > 0.0",
    before=[(-1.0, 0.4, 1.5), (0.0, 0.4, 1.5)],
    end="theta < 1.0",
    after=[(1.5, 0.4, 1.5), (1.0, 0.4, 1.5)],
    inside="0.5",
    notes="""The probability up to theta is the regularised incomplete beta function
    :math:`I_\\theta(\\mu \\kappa, (1 - \\mu) \\kappa)`. In SciPy ``scipy.stats.beta(mu * kappa, (1
    - mu) * kappa)``.""",
    examples="""
>>> import varmat as vm
>>> vm.beta_proportion_cdf(0.25, 0.5, 2.0)
0.25
""",
)


def _up_to(n: Operand, N: Operand, theta: Operand) -> Result:
    inside = np.logical_and(np.greater_equal(n, 0.0), np.less(n, N))
    within = betaincc(
        np.where(inside, n, 0.0) + 1.0, np.where(inside, np.subtract(N, n), 1.0), theta
    )
    return np.where(inside, within, np.where(np.less(n, 0.0), 0.0, 1.0))


# The probability of a success is given; there is always a failure more than n is smaller than N.
above, below = both(
    "x + 1.0, maximum(N - x, 1.0), theta", {"theta": "{in_p}"}, "floor(n) + 1, N - floor(n), theta"
)
binomial_cdf, binomial_lcdf, binomial_lccdf = cumulative(
    binomial_lpmf,
    at_zero=_up_to,
    below=below,
    above=above,
    points=[(3, 10, 0.35), (0, 10, 0.01), (9, 10, 0.99), (40, 100, 0.5), (0, 1, 0.5)],
    tails=[
        (0, 2, 1e-300),
        (400, 800, 0.501),
        (1, 10, 1e-12),
        (1, 10, 1.0 - 1e-12),
        (2, 300, 0.9),
        (180, 200, 0.1),
    ],
    start="n >= 0.0",
    before=[(-1, 10, 0.5)],
    end="n < N",
    after=[(10, 10, 0.5), (11, 10, 0.5), (0, 0, 0.5)],
    inside="0.0",
    notes="""The probability up to n is the regularised incomplete beta function :math:`I_{1 -
    \\theta}(N - n, n + 1)`. In SciPy ``scipy.stats.binom(N, theta)``.""",
    examples="""
>>> import varmat as vm
>>> vm.binomial_cdf(1, 2, 0.5)
0.75
""",
)


def negative(a: str, partials: dict[str, str], reference: str) -> tuple[Tail, Tail]:
    """Both tails of a negative binomial count: I_p(a, n + 1), the first form, or that of the shapes
    exchanged at q.

    The partials are in terms of the derivatives, `in_a`, and `in_p` and `in_q`, of which one is
    zero."""
    # The form that is not wanted stands where it is one, and its shapes are such that its
    # derivatives are zero there.
    one, other = (
        f"where(low, {a}, 2.0), where(low, m, 2.0)",
        f"where(low, 2.0, m), where(low, 2.0, {a})",
    )
    tails = []
    for first, second, at in (
        ("log_betainc", "log_betaincc", (1.0, 0.0)),
        ("log_betaincc", "log_betainc", (0.0, 1.0)),
    ):
        operands, others = f"{one}, where(low, p, {at[0]})", f"{other}, where(low, {at[1]}, q)"
        derivatives = {
            "in_a": f"({first}_derivative(100.0, {operands}) + "
            f"{second}_derivative(10.0, {others}))",
            "in_p": f"({first}_derivative(1.0, {operands}) - {second}_derivative(1.0, {others}))",
            "in_phi": f"negative_binomial_{'below' if first == 'log_betainc' else 'above'}(1.0, "
            "phi, mu, m)",
        }
        filled = {name: text.format(**derivatives) for name, text in partials.items()}
        tails.append(
            Tail(f"{first}({operands}) + {second}({others})", filled, f"{first}({reference})")
        )
    return tails[0], tails[1]


below, above = negative(
    "alpha",
    {"alpha": "{in_a}", "beta": "q * q * {in_p}"},
    "alpha, floor(n) + 1, beta / (1 + beta), 1 / (1 + beta)",
)
neg_binomial_cdf, neg_binomial_lcdf, neg_binomial_lccdf = cumulative(
    neg_binomial_lpmf,
    let={"m": "floor(x) + 1.0", "q": "1.0 / (1.0 + beta)", "p": "beta * q", "low": "beta < 1.0"},
    below=below,
    above=above,
    points=[(3, 2.0, 0.5), (0, 1.5, 1.2), (12, 4.0, 0.3), (40, 370.0, 12.0), (1, 0.1, 40.0)],
    tails=[
        (13, 1e6, 1e5),
        (11, 1e5, 1e4),
        (1000, 35.0, 0.036),
        (2, 1e-3, 1e5),
        (10, 3.0, 1e-20),
        (5, 2.0, 1e30),
    ],
    start="n >= 0.0",
    before=[(-1, 2.0, 1.5)],
    end="n < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to n is the regularised incomplete beta function :math:`I_p(\\alpha,
    n + 1)` with :math:`p = \\beta / (1 + \\beta)`. In SciPy ``scipy.stats.nbinom(alpha, beta / (1 +
    beta))``.""",
    examples="""
>>> import varmat as vm
>>> vm.neg_binomial_cdf(1, 1.0, 1.0)
0.75
""",
)

below, above = negative(
    "phi",
    {"mu": "-p * inv * {in_p}", "phi": "{in_phi}"},
    "phi, floor(n) + 1, phi / (mu + phi), mu / (mu + phi)",
)
neg_binomial_2_cdf, neg_binomial_2_lcdf, neg_binomial_2_lccdf = cumulative(
    neg_binomial_2_lpmf,
    let={
        "m": "floor(x) + 1.0",
        "inv": "1.0 / (mu + phi)",
        "p": "phi * inv",
        "q": "mu * inv",
        "low": "phi < mu",
    },
    below=below,
    above=above,
    points=[(3, 2.5, 1.3), (0, 1e-3, 0.5), (40, 37.0, 12.0), (1, 0.1, 4.0), (7, 50.0, 0.3)],
    tails=[(1000, 1020.0, 35.0), (2, 1e5, 1e-3), (1000, 3.0, 2.0), (3, 1e6, 5.0), (3, 2.5, 1e4)],
    start="n >= 0.0",
    before=[(-1, 2.0, 1.5)],
    end="n < inf",
    after=[(INF, 2.0, 1.5)],
    notes="""The probability up to n is the regularised incomplete beta function :math:`I_p(\\phi, n
    + 1)` with :math:`p = \\phi / (\\mu + \\phi)`. In SciPy ``scipy.stats.nbinom(phi, phi / (mu +
    phi))``. For large :math:`\\phi` the derivative in it is of order :math:`\\phi^{-2}`,
    except next to its zero, where the mean is about the count: there it is right to 1e-12 of that
    order.""",
    examples="""
>>> import varmat as vm
>>> vm.neg_binomial_2_cdf(1, 1.0, 1.0)
0.75
""",
)

# The tail beyond |z| is half the incomplete beta function of nu / 2 and 1 / 2 at u = nu / (nu +
# z**2), or half the complement of that of the shapes exchanged at v = 1 - u; `far` is a factor
# beyond what u can be. In nu the derivative is that in the shape, and that through u, which is the
# one in z times -z / (2 nu).
_FAR = 1e-280
_FIRST, _SECOND = "half, 0.5, where(near, 1.0, u)", "0.5, half, where(near, v, 0.0)"
_T = {
    "inv": "1.0 / sigma", "z": "(x - mu) * inv", "a": "absolute(z)", "half": "0.5 * nu",
     "root": "sqrt(nu)", "h": "hypot(a, root)",
    "near": "a < root", "u": f"maximum(square(root / h), {_FAR!r})", "v": "square(a / h)",
    "far": f"nu * minimum(log(root / h) - {0.5 * math.log(_FAR)!r}, 0.0)",
    "log_tail": f"log_betainc({_FIRST}) + log_betaincc({_SECOND}) + far + {LOG_HALF}",
    "t": "exp(log_tail)", "odds": "t / (1.0 - t)",
    "l": "2.0 * log1p(a / root * fmin(a / (root + h), 1.0))",
    # The density at z over the tail.
    "hazard": "exp(log_rising_factorial(half, 0.5) - 0.5 * log(nu) - 0.5 * (nu + 1.0) * l - "
              "0.5723649429247001 - log_tail)",
    "in_shape": f"0.5 * (log_betainc_derivative(100.0, {_FIRST}) + log_betaincc_derivative(10.0, "
                f"{_SECOND}))"
    f" + minimum(log(root / h) - {0.5 * math.log(_FAR)!r}, 0.0)",
    "in_nu": "in_shape + 0.5 * hazard * a / nu",
    "below": "where(z < 0.0, 1.0, odds) * hazard", "above": "where(z > 0.0, 1.0, odds) * hazard",
}  # fmt: skip


def _half(side: str, sign: str, nu: str) -> dict[str, str]:
    return {
        "y": f"{sign}{side} * inv",
        "nu": nu,
        "mu": f"-({sign}{side}) * inv",
        "sigma": f"-({sign}{side}) * z * inv",
    }


_TAIL = "log_t_tail(nu, abs(y - mu) / sigma)"
student_t_cdf, student_t_lcdf, student_t_lccdf = cumulative(
    student_t_lpdf,
    let=_T,
    below=Tail(
        "where(z < 0.0, log_tail, log1p(-t))",
        _half("below", "", "where(z < 0.0, 1.0, -odds) * in_nu"),
        f"{_TAIL} if y < mu else log1p(-exp({_TAIL}))",
    ),
    above=Tail(
        "where(z > 0.0, log_tail, log1p(-t))",
        _half("above", "-", "where(z > 0.0, 1.0, -odds) * in_nu"),
        f"{_TAIL} if y > mu else log1p(-exp({_TAIL}))",
    ),
    points=[
        (0.3, 2.5, 0.1, 1.5),
        (-4.0, 1.0, 0.7, 0.3),
        (1e-9, 30.0, -1e-9, 1e3),
        (7.0, 4.0, 6.5, 0.1),
    ],
    tails=[
        (-1e8, 3.0, 0.0, 1.0),
        (1e8, 3.0, 0.0, 1.0),
        (-1e14, 2.0, 0.0, 1.0),
        (0.3, 1e4, 0.1, 1.5),
        (-40.0, 1e4, 3.0, 1.5),
        (0.3, 1e-2, 0.1, 1.5),
    ],
    start="y > -inf",
    before=[(-INF, 2.5, 0.1, 1.5)],
    end="y < inf",
    after=[(INF, 2.5, 0.1, 1.5)],
    inside="mu",
    notes="""With :math:`z = (y - \\mu) / \\sigma` the probability of more than :math:`|z|` is half
    the regularised incomplete beta function :math:`I_u(\\frac\\nu2, \\frac12)` with :math:`u = \\nu
    / (\\nu + z^2)`. In SciPy ``scipy.stats.t(nu, mu, sigma)``.""",
    examples="""
>>> import varmat as vm
>>> vm.student_t_cdf(2.0, 3.0, 2.0, 1.0)
0.5
""",
)
