"""Cumulative functions of counts that are elementary or gamma functions: Bernoulli, discrete range,
geometric, Yule-Simon.
"""

from __future__ import annotations

import numpy as np

from varmat.densities.bernoulli import bernoulli_lpmf
from varmat.densities.beta_counts import yule_simon_lpmf
from varmat.densities.counts import geometric_lpmf
from varmat.densities.cumulative.row import COUNTS, Tail, Tails, cumulative
from varmat.densities.finite_populations import discrete_range_lpmf
from varmat.functions.special.gamma_functions import lbeta
from varmat.functions.special.logistic_functions import log1m_exp
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.typing import Operand, Result

__all__ = [
    "bernoulli_cdf", "bernoulli_lccdf", "bernoulli_lcdf", "discrete_range_cdf",
     "discrete_range_lccdf", "discrete_range_lcdf", "geometric_cdf", "geometric_lccdf",
     "geometric_lcdf",
     "yule_simon_cdf", "yule_simon_lccdf",
     "yule_simon_lcdf",
]  # fmt: skip


def _up_to(n: Operand, theta: Operand) -> Result:
    return np.where(np.less(n, 0.0), 0.0, np.where(np.less(n, 1.0), 1.0 - theta, 1.0))


def _bernoulli(x: Operand, theta: Operand) -> Tails:
    """The probability up to 0 is :math:`1 - \\theta`, that up to 1 is 1. In
    SciPy ``scipy.stats.bernoulli(theta)``.

    >>> import varmat as vm
    >>> vm.bernoulli_cdf([0, 1], 0.25)
    0.75
    """
    return Tails(
        below=Tail(np.log1p(-theta), theta=-1.0 / (1.0 - theta)),
        above=Tail(np.log(theta), theta=1.0 / theta),
    )


bernoulli_cdf, bernoulli_lcdf, bernoulli_lccdf = cumulative(
    bernoulli_lpmf,
    _bernoulli,
    at_zero=_up_to,
    points=[(0, 0.3), (0, 0.9), (0, 0.5)],
    tails=[(0, 1e-300), (0, 1.0 - 2.0**-53)],
    **COUNTS,
    end=lambda n, *_: n < 1.0,
    after=(1, 2),
    inside=0.0,
)


# The smaller one of the counts of integers up to y and above it has all digits.
def _discrete_range(x: Operand, lower: Operand, upper: Operand) -> Tails:
    """The probability up to y is the number of integers from the lower bound to y over that
    of all up to the upper bound. There are no derivatives: all arguments are discrete. In SciPy
    ``scipy.stats.randint(lower, upper + 1)``.

    >>> import varmat as vm
    >>> vm.discrete_range_cdf(1, 1, 4)
    0.25
    """
    size = upper - lower + 1.0
    under = (np.floor(x) - lower + 1.0) / size
    over = (upper - np.floor(x)) / size
    return Tails(
        below=Tail(np.where(under < 0.5, np.log(under), np.log1p(-over))),
        above=Tail(np.where(over < 0.5, np.log(over), np.log1p(-under))),
    )


discrete_range_cdf, discrete_range_lcdf, discrete_range_lccdf = cumulative(
    discrete_range_lpmf,
    _discrete_range,
    tails=[(1, 1, 10**9), (10**9 - 1, 1, 10**9)],
    start=lambda y, lower, *_: y >= lower,
    before=(0, -7),
    end=lambda y, _, upper: y < upper,
    after=(5, 6, (2, 2, 2)),
    inside=lambda lower, *_: lower,
)


def _yule_simon(x: Operand, alpha: Operand) -> Tails:
    """The probability above n is :math:`n B(n, \\alpha + 1)`. In SciPy
    ``scipy.stats.yulesimon(alpha)``.

    >>> import varmat as vm
    >>> round(vm.yule_simon_cdf(3, 1.0), 12)
    0.75
    """
    n = np.floor(x)
    log_above = np.log(n) + lbeta(n, alpha + 1.0)
    slope = zeta_difference(1.0, alpha + 1.0, n)
    return Tails(
        below=Tail(log1m_exp(log_above), alpha=-slope * np.exp(log_above) / np.expm1(log_above)),
        above=Tail(log_above, alpha=-slope),
    )


yule_simon_cdf, yule_simon_lcdf, yule_simon_lccdf = cumulative(
    yule_simon_lpmf,
    _yule_simon,
    tails=[(10**6, 1.5), (3, 1e8)],
    start=lambda n, *_: n >= 1.0,
    before=(0, -1),
    inside=1.0,
)


def _geometric(x: Operand, theta: Operand) -> Tails:
    """The probability above n is :math:`(1 - \\theta)^{n + 1}`. In SciPy
    ``scipy.stats.geom(theta, loc=-1)``.

    >>> import varmat as vm
    >>> vm.geometric_cdf(1, 0.5)
    0.75
    """
    trials = np.floor(x) + 1.0
    above = trials * np.log1p(-theta)
    slope = trials / (1.0 - theta)
    return Tails(
        below=Tail(log1m_exp(above), theta=-slope * np.exp(above) / np.expm1(above)),
        above=Tail(above, theta=-slope),
    )


geometric_cdf, geometric_lcdf, geometric_lccdf = cumulative(
    geometric_lpmf,
    _geometric,
    points=[(3, 0.3), (0, 0.9), (40, 0.02), (1, 0.5)],
    tails=[(2, 1e-300), (10**10, 1e-9), (3, 1.0 - 1e-12)],
    **COUNTS,
)
