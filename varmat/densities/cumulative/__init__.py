"""Cumulative distribution functions and their logarithms, one module per family of distributions as for the densities."""

from varmat.densities.cumulative import location_scale, positive

__all__ = ["location_scale", "positive"]
