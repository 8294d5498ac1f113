"""Solutions of equations and integrals as differentiable functions of what they depend on."""

from varmat.solvers import differential, implicit, quadrature

__all__ = ["differential", "implicit", "quadrature"]
