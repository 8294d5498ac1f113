"""Differentiable functions, one module per family.

Importing this package fills the dispatch tables of NumPy.
"""

from varmat.functions import covariances, elementwise, refused, sums_of_products
from varmat.functions.arrays import (
    composites,
    constant,
    cumulative,
    exponentials,
    fits,
    gathering,
    joining,
    orderings,
    reduction_names,
    reductions,
    shaping,
    statistics,
)
from varmat.functions.linalg import (
    determinants,
    dot_products,
    einsum,
    factorisations,
    forms,
    least_squares,
    matrix_functions,
    norms,
    products,
    qr,
    solves,
)
from varmat.functions.signals import convolutions, recurrences
from varmat.functions.sparse import products as sparse_products
from varmat.functions.sparse import solves as sparse_solves
from varmat.functions.sparse import variable as sparse_variable
from varmat.functions.special import log_incomplete, log_normal_tails, table

__all__ = [
    "composites",
    "constant",
    "convolutions",
    "covariances",
    "cumulative",
    "determinants",
    "dot_products",
    "einsum",
    "elementwise",
    "exponentials",
    "factorisations",
    "fits",
    "forms",
    "gathering",
    "joining",
    "least_squares",
    "log_incomplete",
    "log_normal_tails",
    "matrix_functions",
    "norms",
    "orderings",
    "products",
    "qr",
    "recurrences",
    "reduction_names",
    "reductions",
    "refused",
    "shaping",
    "solves",
    "sparse_products",
    "sparse_solves",
    "sparse_variable",
    "statistics",
    "sums_of_products",
    "table",
]
