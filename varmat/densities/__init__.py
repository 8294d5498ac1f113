"""Probability functions: log densities and masses with Stan's names, one module per family of distributions."""

from varmat.densities.normal import normal_lpdf, std_normal_lpdf

__all__ = ["normal_lpdf", "std_normal_lpdf"]
