"""Solutions of equations and integrals as differentiable functions of what they depend on."""

from varmat.solvers import algebraic_differential, differential, implicit, laplace_likelihoods, laplace_marginal, quadrature

__all__ = ["algebraic_differential", "differential", "implicit", "laplace_likelihoods", "laplace_marginal", "quadrature"]
