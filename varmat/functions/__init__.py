"""Differentiable functions, one module per family.

`varmat` itself imports the modules with public names. These have none, or answer for NumPy's names
alone: importing them fills its dispatch tables.
"""

from varmat.functions import elementwise, refused
from varmat.functions.arrays import (
    composites,
    constant,
    copies,
    differences,
    einops,
    fits,
    grids,
    moving,
    polynomials,
    reduction_names,
    selecting,
    statistics,
    writing,
)
from varmat.functions.linalg import einsum, matmul
from varmat.functions.signals import convolutions
from varmat.functions.sparse import products as sparse_products

__all__ = [
    "composites",
    "constant",
    "convolutions",
    "copies",
    "differences",
    "einops",
    "einsum",
    "elementwise",
    "fits",
    "grids",
    "matmul",
    "moving",
    "polynomials",
    "reduction_names",
    "refused",
    "selecting",
    "sparse_products",
    "statistics",
    "writing",
]
