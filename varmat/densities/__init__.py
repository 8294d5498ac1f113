"""Probability functions: log densities and masses with Stan's names, one module per family of
distributions.
"""

from varmat.densities import recorded_forms, unnormalised

__all__ = ["recorded_forms", "unnormalised"]
