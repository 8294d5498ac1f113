"""Differentiable solvers: equations, differential equations, integrals, and loops over time."""
