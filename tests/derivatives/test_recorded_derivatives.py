"""Recorded functionals: Hessians, Jacobians, and products with them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from recordings import X, Y

import varmat as vm

POINT = np.array([0.3, -0.8, 1.2])
DIRECTION = np.array([0.5, 2.0, -1.0])


def log_density(q):
    return vm.normal_lpdf(Y, X @ q, 1.5) + vm.cauchy_lpdf(q, 0.0, np.exp(q[0]))


def several(q):
    return np.stack([np.sum(q * q), np.exp(q[0]) * q[1], np.sin(q[2]), q[0] - q[1]])


def factor(q):
    return np.sum(np.linalg.cholesky(np.outer(q, q) + 3.0 * np.eye(3)))


def agree(made, true):
    assert type(made) is type(true)
    np.testing.assert_allclose(made, true, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "f", [log_density, factor, lambda q: q @ q], ids=["density", "cholesky", "squares"]
)
def test_second_derivatives(f, runner):
    hessian, product = (
        vm.recorded(vm.hessian(f), runner=runner),
        vm.recorded(vm.hessian_times_vector(f), runner=runner),
    )
    for point in (POINT, 2.0 * POINT, POINT[::-1].copy()):
        agree(hessian(point), vm.hessian(f, point))
        agree(product(point, DIRECTION), vm.hessian_times_vector(f, point, DIRECTION))
        agree(
            vm.recorded(vm.hessp(f), runner=runner)(point, DIRECTION), vm.hessp(f)(point, DIRECTION)
        )


def test_jacobians_and_products(runner):
    jacobian, forward = (
        vm.recorded(vm.jacobian(several), runner=runner),
        vm.recorded(vm.jvp(several), runner=runner),
    )
    for point in (POINT, 2.0 * POINT):
        agree(jacobian(point), vm.jacobian(several, point))
        for made, true in zip(
            forward((point,), (DIRECTION,)), vm.jvp(several, (point,), (DIRECTION,)), strict=True
        ):
            agree(made, true)


def test_gradients(runner):
    agree(vm.recorded(vm.grad(log_density), runner=runner)(POINT), vm.grad(log_density)(POINT))
    value, gradient = vm.recorded(vm.value_and_grad(log_density), runner=runner)(POINT)
    true_value, true_gradient = vm.value_and_grad(log_density)(POINT)
    agree(value, true_value)
    agree(gradient, true_gradient)


def test_a_function_is_recorded_once_for_each_shape(runner):
    calls = []

    def f(x):
        calls.append(np.shape(x))
        return np.sum(np.exp(x) * x)

    hessian = vm.recorded(vm.hessian(f), runner=runner)
    for n in (2, 2, 3, 2, 3):
        hessian(np.linspace(0.1, 0.5, n))
    assert sorted(calls) == [(2,), (3,)]


def test_functionals_are_pickled_with_their_function(runner):
    hessian = pickle.loads(pickle.dumps(vm.recorded(vm.hessian(log_density), runner=runner)))
    agree(hessian(POINT), vm.hessian(log_density, POINT))


def test_a_functional_brings_its_own_arguments():
    with pytest.raises(TypeError, match="argnums is given"):
        vm.recorded(vm.hessian(log_density), 0)
