"""Cumulative distribution functions and their logarithms, one module per family of distributions as
for the densities.
"""

from varmat.densities.cumulative import (
    bounded,
    circular,
    counts,
    extreme_value,
    heavy_tails,
    incomplete_beta,
    incomplete_gamma,
    location_scale,
    positive,
    skewed,
    sums,
)

__all__ = [
    "bounded",
    "circular",
    "counts",
    "extreme_value",
    "heavy_tails",
    "incomplete_beta",
    "incomplete_gamma",
    "location_scale",
    "positive",
    "skewed",
    "sums",
]
