"""Densities in programs: several shapes, broadcasting, and points at which the function is
evaluated instead.
"""

import numpy as np
import pytest
from comparing import refuses
from recordings import X, agree

import varmat as vm


def test_densities_of_arrays_of_several_shapes():
    def f(x):
        return vm.lognormal_lpdf(np.ones((3, 2)), np.outer(x[:3], x[3:]), x[3:]) + vm.normal_lpdf(
            x[:3, None], x[3:], 1.0
        )

    g = agree(f, (np.arange(1.0, 6.0),), (np.linspace(0.5, 2.0, 5),))
    message = r"lognormal_lpdf: Scale parameter\[1\] is -5.0, but must be positive finite!"
    refuses(vm.DomainError, message, g, np.array([1.0, 2.0, 3.0, 4.0, -5.0]))


@pytest.mark.parametrize("shape", [(3,), (3, 1), ()])
def test_recorded_outside_the_support(shape):
    y = np.arange(1.0, 4.0).reshape(shape) if shape else 1.0
    points = [(k, 2.0) for k in (-10.0, 1.0, -11.0, 2.0)]
    agree(
        lambda k, rate: vm.gamma_lpdf(y + k, 2.0, rate) + rate * k,
        *points,
        argnums=(0, 1),
        elsewhere=2,
    )


def test_densities_of_arguments_that_are_broadcast():
    def f(x):
        return vm.normal_lpdf(x[:2].reshape(2, 1), x[2:5], np.exp(x[5])) + vm.normal_lpdf(
            X, x[:3], x[3:8].reshape(5, 1)
        )

    g = agree(f, (np.linspace(0.5, 1.5, 8),), (np.linspace(2.0, 1.0, 8),))
    message = r"normal_lpdf: Scale parameter\[2, 0\] is -1.0, but must be positive!"
    refuses(vm.DomainError, message, g, np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0]))


def test_dynamic_linear_models_are_loops():
    rng = np.random.default_rng(5)
    y, f = rng.normal(size=(2, 300)), rng.normal(size=(3, 2))
    g = np.linalg.qr(rng.normal(size=(3, 3)))[0] * 0.9

    def density(x):
        noise = np.exp(x[0]) * np.eye(2)
        return vm.gaussian_dlm_obs_lpdf(
            y, f * x[1], g, noise, np.exp(x[2]) * np.eye(3), x[3:] * np.ones(3), np.eye(3)
        )

    points = np.array([0.3, 0.8, -0.4, 0.5]), np.array([-0.5, 1.2, 0.1, -1.0])
    recorded = agree(density, *((x,) for x in points), rtol=1e-10)
    assert len(recorded.program) < 100


def test_parameters_of_no_observations_are_checked():
    recorded = agree(lambda x: vm.normal_lpdf(np.empty(0), x[0], x[1]) + np.sum(x), (np.ones(2),))
    with pytest.raises(vm.DomainError, match=r"normal_lpdf: Scale parameter is -1\.0"):
        recorded(np.array([0.0, -1.0]))
