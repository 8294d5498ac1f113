"""Testing of differentiable functions: the harness that varmat's own tests use.

`expect_ad` compares all routes to the derivatives of a function, `expect_ad_matvar` repeats that
with matvars, `expect_value` compares value and derivatives with a 50-digit reference, and
`expect_reference` with published figures. `finite_diff_gradient` and the functions like it are
finite differences to compare with. `calibration` checks by simulation that a model, a sampler and
random numbers are of one distribution. `coverage` collects what they are called with, for a table
of what is tested."""

from varmat.derivatives.finite_differences import (
    finite_diff_grad_hessian,
    finite_diff_grad_hessian_auto,
    finite_diff_gradient,
    finite_diff_gradient_auto,
    finite_diff_hessian,
    finite_diff_hessian_auto,
    finite_diff_hessian_times_vector_auto,
    finite_diff_stepsize,
)
from varmat.testing import coverage
from varmat.testing.calibration import Calibration, calibration
from varmat.testing.compare import Report, Tolerances
from varmat.testing.expect import expect_ad
from varmat.testing.expect_matvar import expect_ad_matvar
from varmat.testing.references import expect_reference
from varmat.testing.values import expect_value

__all__ = [
    "Calibration",
    "Report",
    "Tolerances",
    "calibration",
    "coverage",
    "expect_ad",
    "expect_ad_matvar",
    "expect_reference",
    "expect_value",
    "finite_diff_grad_hessian",
    "finite_diff_grad_hessian_auto",
    "finite_diff_gradient",
    "finite_diff_gradient_auto",
    "finite_diff_hessian",
    "finite_diff_hessian_auto",
    "finite_diff_hessian_times_vector_auto",
    "finite_diff_stepsize",
]
