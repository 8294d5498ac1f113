"""Distributions of angles: von Mises."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.domains import finite
from varmat.densities.density import nonnegative_finite
from varmat.densities.univariate import LogDensity, univariate
from varmat.functions.special.bessel_functions import i0e
from varmat.functions.special.hypergeometric_functions import hyp1f1
from varmat.typing import Operand

__all__ = ["von_mises_lpdf"]


# i0e(kappa) = exp(-kappa) I0(kappa) does not overflow. The derivative in kappa is 1 - I1(kappa) /
# I0(kappa), a confluent function over i0e (DLMF 10.39.5), minus 1 - cos(d) = 2 sin(d / 2)**2.
@univariate(
    "von Mises distribution",
    y=("Random variable", finite),
    mu=("Location parameter", finite),
    kappa=("Scale parameter", nonnegative_finite),
    lazy=("y", "mu"),
    points=[
        (0.3, 0.1, 1.5),
        (-2.0, -1.0, 0.7),
        (2.8, 2.0, 35.0),
        (4.0, -1.0, 1e-6),
        (0.3, 0.31, 200.0),
    ],
    tails=[(3.0, 0.0, 700.0), (0.3, 0.301, 1e5), (0.2, 0.2, 1e9)],
    ends=(-math.pi, math.pi),
)
def von_mises_lpdf(y: Operand, mu: Operand, kappa: Operand) -> LogDensity:
    """The log density is :math:`\\kappa \\cos(y - \\mu) - \\log 2\\pi I_0(\\kappa)`, with the
    derivatives :math:`-\\kappa \\sin(y - \\mu)` and :math:`\\cos(y - \\mu) - I_1(\\kappa) /
    I_0(\\kappa)`. It has the period :math:`2 \\pi` and integrates to one over any one of them: no
    angle is outside. In SciPy ``scipy.stats.vonmises(kappa, mu)``.

    >>> import varmat as vm
    >>> round(vm.von_mises_lpdf(0.5, 0.5, 0.0), 12)
    -1.837877066409
    """
    e = i0e(kappa)
    d = y - mu
    h = np.sin(0.5 * d)
    gap = 2.0 * h * h
    s = kappa * np.sin(d)
    return LogDensity(
        -np.log(e),
        -kappa * gap,
        -1.8378770664093453,
        y=-s,
        mu=s,
        kappa=hyp1f1(1.5, 2.0, -2.0 * kappa) / e - gap,
        dropping=(-np.log(e) - kappa, kappa * np.cos(d)),
    )
