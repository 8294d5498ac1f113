"""Functionals: gradients, Jacobians, Hessians and products with them, as plain numbers that outlive the tape."""

from varmat.functionals.finite_differences import finite_diff_gradient, finite_diff_hessian
from varmat.functionals.forward import gradient_dot_vector, jvp, partial_derivative
from varmat.functionals.hessians import hessian, hessian_times_vector, hessp
from varmat.functionals.jacobians import jacobian
from varmat.functionals.recorded import recorded
from varmat.functionals.reverse import grad, gradient, value_and_grad, vjp

__all__ = [
    "finite_diff_gradient",
    "finite_diff_hessian",
    "grad",
    "gradient",
    "gradient_dot_vector",
    "hessian",
    "hessian_times_vector",
    "hessp",
    "jacobian",
    "jvp",
    "partial_derivative",
    "recorded",
    "value_and_grad",
    "vjp",
]
