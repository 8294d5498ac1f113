"""A model as a function of JAX."""

import numpy as np
import pytest
from comparing import close

import varmat as vm

jax = pytest.importorskip("jax", reason="JAX is not installed")


def test_values_and_gradients_are_those_of_the_model():
    jax.config.update("jax_enable_x64", True)
    y, s = np.array([28.0, 8.0, -3.0, 7.0]), np.array([15.0, 10.0, 16.0, 11.0])

    def log_density(mu, tau, theta):
        return (
            vm.normal_lpdf(y, theta, s)
            + vm.normal_lpdf(theta, mu, tau)
            + vm.cauchy_lpdf(tau, 0.0, 5.0)
        )

    model = vm.Model(log_density, mu=vm.real(), tau=vm.positive(), theta=vm.real(4))
    q = np.array([0.3, -0.2, 1.0, 2.0, -1.0, 0.5])
    for settings in ({}, {"propto": False, "jacobian": False}):
        f = model.to_jax(**settings)
        value, gradient = model.log_density_gradient(q, **settings)
        close(float(f(q)), value, 1e-12)
        close(jax.jit(jax.grad(f))(q), gradient, 1e-12)
    points = q + np.linspace(0.0, 1.0, 3)[:, None]
    close(jax.vmap(model.to_jax())(points), [model.log_density(each) for each in points], 1e-12)
