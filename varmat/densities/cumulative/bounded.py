"""Cumulative functions of distributions on an interval: uniform."""

from __future__ import annotations

import numpy as np

from varmat.densities.bounded import uniform_lpdf
from varmat.densities.cumulative.row import Tail, Tails, cumulative
from varmat.typing import Operand

__all__ = ["uniform_cdf", "uniform_lccdf", "uniform_lcdf"]


# The distance to the nearer end has more digits.
def _uniform(x: Operand, alpha: Operand, beta: Operand) -> Tails:
    """The probability up to y is :math:`(y - \\alpha) / (\\beta - \\alpha)`. In SciPy
    ``scipy.stats.uniform(alpha, beta - alpha)``.

    >>> import varmat as vm
    >>> vm.uniform_cdf(1.0, 0.0, 4.0)
    0.25
    """
    inv = 1.0 / (beta - alpha)
    under = x - alpha
    p = under * inv
    over = beta - x
    q = over * inv
    return Tails(
        below=Tail(
            np.where(p < 0.5, np.log(p), np.log1p(-q)), y=1.0 / under, alpha=-q / under, beta=-inv
        ),
        above=Tail(
            np.where(q < 0.5, np.log(q), np.log1p(-p)), y=-1.0 / over, alpha=inv, beta=p / over
        ),
    )


uniform_cdf, uniform_lcdf, uniform_lccdf = cumulative(
    uniform_lpdf,
    _uniform,
    tails=[(1e-12, 0.0, 1.0), (1.0 - 1e-12, 0.0, 1.0), (1.0, 0.0, 1e20)],
    start=lambda y, alpha, *_: y > alpha,
    before=(-1.0, 0.1),
    end=lambda y, _, beta: y < beta,
    after=(2.0, 1.5),
    inside=lambda alpha, beta: 0.5 * (alpha + beta),
)
