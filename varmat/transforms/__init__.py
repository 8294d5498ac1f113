"""Constrained sets and the maps onto them from all of R^n, with log-Jacobians: as functions with
Stan's names, and as objects.
"""

from varmat.transforms import (
    bounded,
    correlation_matrices,
    covariance_matrices,
    elementwise,
    ordered,
    readers,
    simplexes,
    sum_to_zero,
    unit_vectors,
)
from varmat.transforms.classes import *  # noqa: F403
from varmat.transforms.classes import __all__ as _classes
from varmat.transforms.transform import *  # noqa: F403
from varmat.transforms.transform import __all__ as _base

__all__ = [
    "bounded",
    "correlation_matrices",
    "covariance_matrices",
    "elementwise",
    "ordered",
    "readers",
    "simplexes",
    "sum_to_zero",
    "unit_vectors",
    *_base,
    *_classes,
]
