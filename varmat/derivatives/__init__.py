"""Gradients, Jacobians, Hessians and products with them: functionals, which take functions and
return plain numbers.
"""

from varmat.derivatives.forward import derivative, gradient_dot_vector, jvp, partial_derivative
from varmat.derivatives.hessians import (
    grad_hessian,
    grad_tr_mat_times_hessian,
    hessian,
    hessian_times_vector,
    hessp,
)
from varmat.derivatives.jacobians import jacobian, vjp
from varmat.derivatives.recorded import recorded, sparse_jacobian
from varmat.derivatives.reverse import grad, gradient, value_and_grad
from varmat.derivatives.structure import ravel_pytree, stop_gradient

__all__ = [
    "derivative",
    "grad",
    "grad_hessian",
    "grad_tr_mat_times_hessian",
    "gradient",
    "gradient_dot_vector",
    "hessian",
    "hessian_times_vector",
    "hessp",
    "jacobian",
    "jvp",
    "partial_derivative",
    "ravel_pytree",
    "recorded",
    "sparse_jacobian",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]
