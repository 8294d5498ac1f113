"""Solutions of equations and integrals as differentiable functions of what they depend on, and
loops over time.
"""

from varmat.solvers import (
    algebraic_differential,
    differential,
    implicit,
    laplace_likelihoods,
    laplace_marginal,
    quadrature,
    scan,
)

__all__ = [
    "algebraic_differential",
    "differential",
    "implicit",
    "laplace_likelihoods",
    "laplace_marginal",
    "quadrature",
    "scan",
]
