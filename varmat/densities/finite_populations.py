"""Distributions of counts with integer parameters only: hypergeometric, uniform on a range of
integers."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import finite, nonnegative
from varmat.densities.density import not_nan
from varmat.densities.univariate import Demand, LogDensity, univariate
from varmat.functions.special.gamma_functions import lchoose
from varmat.typing import Operand

__all__ = ["discrete_range_lpmf", "hypergeometric_lpmf"]


@univariate(
    "uniform distribution on a range of integers",
    "y",
    "lower",
    "upper",
    y=("Random variable", not_nan),
    lower=("Lower bound parameter", finite),
    upper=("Upper bound parameter", finite),
    demand=Demand(
        "upper", lambda y, lower, upper: upper >= lower, "greater than or equal to the lower bound"
    ),
    points=[(3, 1, 5), (0, -2, 4), (2, 2, 2), (-1, -3, 40)],
    outside=[(0, 1, 5), (6, 1, 5), (2.5, 1, 5)],
    mean=lambda lower, upper: 0.5 * (lower + upper),
    variance=lambda lower, upper: (upper - lower) * (upper - lower + 2.0) / 12.0,
    ends=lambda lower, upper: (lower, upper),
)
def discrete_range_lpmf(y: Operand, lower: Operand, upper: Operand) -> LogDensity:
    """The log mass is minus the logarithm of the number of integers from the lower bound to
    the upper one, both included. There are no derivatives: all arguments are discrete. In SciPy
    ``scipy.stats.randint(lower, upper + 1)``.

    >>> import varmat as vm
    >>> vm.discrete_range_lpmf([1, 5], 1, 5) == 2 * vm.discrete_range_lpmf(3, 1, 5)
    True
    """
    return LogDensity(
        -np.log(upper - lower + 1.0), support=(y >= lower) & (y <= upper) & (np.floor(y) == y)
    )


@univariate(
    "hypergeometric distribution",
    "n",
    "N",
    "a",
    "b",
    n=("Successes variable", not_nan),
    N=("Draws parameter", nonnegative),
    a=("Successes in population parameter", nonnegative),
    b=("Failures in population parameter", nonnegative),
    demand=Demand("N", lambda n, N, a, b: a + b >= N, "at most the size of the population"),
    points=[(5, 5, 10, 10), (3, 5, 7, 6), (1, 4, 3, 5), (0, 1, 3, 2), (4, 13, 9, 20)],
    tails=[(40, 100, 300, 450), (2, 3, 10**6, 10**7), (300, 1000, 3000, 7000)],
    outside=[(-1, 5, 7, 6), (6, 5, 7, 6), (0.5, 5, 7, 6), (0, 7, 7, 6)],
    mean=lambda N, a, b: N * a / (a + b),
    variance=lambda N, a, b: (
        N * a / (a + b) * (b / (a + b)) * (a + b - N) / np.maximum(a + b - 1.0, 1.0)
    ),
    ends=lambda N, a, b: (np.maximum(0, N - b), np.minimum(N, a)),
)
def hypergeometric_lpmf(n: Operand, N: Operand, a: Operand, b: Operand) -> LogDensity:
    """The log mass is :math:`\\log \\binom an \\binom b{N - n} / \\binom{a + b}N`: of n
    successes in N draws, without replacement, from a successes and b failures. There are no
    derivatives: all arguments are discrete. In SciPy ``scipy.stats.hypergeom(a + b, a, N)``.

    >>> import varmat as vm
    >>> round(vm.hypergeometric_lpmf(1, 2, 5, 5), 12)
    -0.587786664902
    """
    return LogDensity(
        lchoose(a, n) + lchoose(b, N - n) - lchoose(a + b, N),
        support=(n >= 0.0) & (n <= N) & (n <= a) & (N - n <= b) & (np.floor(n) == n),
    )
