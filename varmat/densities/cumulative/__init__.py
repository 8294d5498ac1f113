"""Cumulative distribution functions and their logarithms, one module per family of distributions as for the densities."""

from varmat.densities.cumulative import bounded, extreme_value, heavy_tails, location_scale, positive, skewed

__all__ = ["bounded", "extreme_value", "heavy_tails", "location_scale", "positive", "skewed"]
