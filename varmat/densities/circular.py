"""Distributions of angles: von Mises."""

from __future__ import annotations

import math

from varmat.core.domains import Domain, finite
from varmat.densities.univariate import univariate

__all__ = ["von_mises_lpdf"]

nonnegative_finite = Domain(
    "nonnegative finite",
    lambda x: (x >= 0) & (x < math.inf),
    lambda x: x.min() >= 0 and x.max() < math.inf,
)

# i0e(kappa) = exp(-kappa) I0(kappa) does not overflow. The derivative in kappa is 1 - I1(kappa) /
# I0(kappa), a confluent function over i0e (DLMF 10.39.5), minus 1 - cos(d) = 2 sin(d / 2)**2.
von_mises_lpdf = univariate(
    "von_mises_lpdf",
    "von Mises distribution",
    y=("Random variable", finite),
    mu=("Location parameter", finite),
    kappa=("Scale parameter", nonnegative_finite),
    shown=("y", "mu"),
    let={
        "d": "y - mu",
        "h": "sin(0.5 * d)",
        "gap": "2.0 * h * h",
        "e": "i0e(kappa)",
        "s": "kappa * sin(d)",
    },
    terms=("-log(e)", "-kappa * gap", f"-{math.log(2.0 * math.pi)!r}"),
    dropping=("-log(e) - kappa", "kappa * cos(d)"),
    partials={"y": "-s", "mu": "s", "kappa": "hyp1f1(1.5, 2.0, -2.0 * kappa) / e - gap"},
    reference="kappa * cos(y - mu) - log(2 * pi * besseli(0, kappa))",
    points=[
        (0.3, 0.1, 1.5),
        (-2.0, -1.0, 0.7),
        (2.8, 2.0, 35.0),
        (4.0, -1.0, 1e-6),
        (0.3, 0.31, 200.0),
    ],
    tails=[(3.0, 0.0, 700.0), (0.3, 0.301, 1e5), (0.2, 0.2, 1e9)],
    notes="""The log density is :math:`\\kappa \\cos(y - \\mu) - \\log 2\\pi I_0(\\kappa)`, with the
    derivatives :math:`-\\kappa \\sin(y - \\mu)` and :math:`\\cos(y - \\mu) - I_1(\\kappa) /
    I_0(\\kappa)`. It has the period :math:`2 \\pi` and integrates to one over any one of them: no
    angle is outside. In SciPy ``scipy.stats.vonmises(kappa, mu)``.""",
    examples="""
>>> import varmat as vm
>>> round(vm.von_mises_lpdf(0.5, 0.5, 0.0), 12)
-1.837877066409
""",
)
