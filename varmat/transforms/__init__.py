"""Constrained sets and the maps onto them from all of R^n, with log-Jacobians: as functions with
Stan's names, and as objects.
"""

from varmat.transforms import bounded, matrices, readers, vectors
from varmat.transforms.classes import *  # noqa: F403 - the names are listed there
from varmat.transforms.classes import __all__ as _classes

__all__ = ["bounded", "matrices", "readers", "vectors", *_classes]
