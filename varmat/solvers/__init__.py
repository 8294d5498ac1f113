"""Differentiable solvers: equations, differential equations, integrals, and loops over time."""

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
