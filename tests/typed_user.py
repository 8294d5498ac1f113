"""A file of a user, which mypy checks without `Any`: see `test_types`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import varmat as vm
import varmat.distributions as dist
from varmat.typing import Array, Scalar

Floats = npt.NDArray[np.float64]

X: Floats = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
Y: Floats = np.ones(3)


def plain(y: float, mu: float) -> float:
    return vm.normal_lpdf(y, mu, 1.0) + vm.exponential_lpdf(y, 2.0)


def prior(theta: vm.VarMat, sigma: vm.Var) -> vm.Var:
    total = vm.normal_lpdf(theta, 0.0, 10.0) + vm.exponential_lpdf(sigma, 1.0)
    return total - 0.5 * (theta**2).sum() / (1.0 + sigma)


def of_either(theta: Array, sigma: Scalar) -> Scalar:
    return vm.normal_lpdf(Y, X @ theta, sigma) + vm.gamma_lpdf(sigma, 2.0, 1.0)


def log_density(theta: vm.VarMat) -> Scalar:
    residual = theta[1:] * 2.0 - Y[:1]
    terms = vm.normal_lpdf.pointwise(residual, theta[:1], 1.0)
    return terms.sum() + of_either(theta, 1.5) + vm.std_normal_lpdf(vm.inv_logit(theta))


def model() -> vm.Model:
    return vm.Model(
        mu=vm.real(prior=dist.Normal(0, 5)),
        y=vm.observed(Y, lambda mu: dist.StudentT(4.0, mu, 1.0)),
    )


def log_density_at(theta: Floats) -> float:
    return vm.value_and_grad(log_density)(theta)[0]


def steps(start: Floats) -> Floats:
    value, slope = vm.value_and_grad(log_density)(start)
    return (
        start
        + 1e-3 * slope / (1.0 + abs(value))
        + 1e-3 * vm.grad(log_density)(start)
        + 0.0 * vm.gradient(log_density, start)
    )


def gaussian_process(theta: vm.VarMat) -> vm.Var:
    covariance = vm.gp_exp_quad_cov(X[:, 0], theta[0], theta[1])
    factor = vm.cholesky_decompose(vm.add_diag(covariance, 1e-6))
    z = vm.mdivide_left_tri_low(factor, Y)
    values, log_scale = vm.eigenvalues_sym(covariance), vm.lb_constrain(theta[1], 0.0)
    return -0.5 * (vm.dot_product(z, z) + vm.log_determinant(covariance)) + values[0] * log_scale


def wrong(x: vm.Var) -> float:
    return vm.normal_lpdf(x, 0.0, 1.0)  # type: ignore[return-value]  # as mypy notices


def misspelt(x: vm.VarMat) -> None:
    vm.cholesky_decompos(x)  # type: ignore[attr-defined]  # as mypy notices
