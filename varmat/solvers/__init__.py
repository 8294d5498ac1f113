"""Solutions of equations and integrals as differentiable functions of what they depend on."""

from varmat.solvers import implicit, quadrature

__all__ = ["implicit", "quadrature"]
