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
from varmat.functions.special import (
    bessel_functions,
    entropies_and_losses,
    error_functions,
    exponential_integrals,
    gamma_functions,
    hypergeometric_functions,
    incomplete_functions,
    log_incomplete,
    log_normal_tails,
    logistic_functions,
    powers_and_arithmetic,
    zeta_functions,
)

__all__ = [
    "bessel_functions",
    "composites",
    "constant",
    "convolutions",
    "covariances",
    "cumulative",
    "determinants",
    "dot_products",
    "einsum",
    "elementwise",
    "entropies_and_losses",
    "error_functions",
    "exponential_integrals",
    "exponentials",
    "factorisations",
    "fits",
    "forms",
    "gamma_functions",
    "gathering",
    "hypergeometric_functions",
    "incomplete_functions",
    "joining",
    "least_squares",
    "log_incomplete",
    "log_normal_tails",
    "logistic_functions",
    "matrix_functions",
    "norms",
    "orderings",
    "powers_and_arithmetic",
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
    "zeta_functions",
]
