"""The models of the examples: their densities and gradients. The scripts are run by .ci/run, which installs what they plot with."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import mpmath
import numpy as np
import pytest
from scipy import optimize

import varmat as vm

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def eight_schools():
    return load("eight_schools")


@pytest.fixture
def linear_regression(monkeypatch):
    """The example with data of the shape of the real ones, which come with scikit-learn."""
    rng = np.random.default_rng(3)
    measurements = rng.normal(size=(442, 10)) * rng.uniform(1, 50, size=10)
    made = SimpleNamespace(data=measurements, target=100 + measurements @ rng.normal(size=10) + 30 * rng.normal(size=442))
    datasets = ModuleType("sklearn.datasets")
    datasets.load_diabetes = lambda scaled: made
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)
    return load("linear_regression")


def schools_in_mpmath(example, unknowns):
    """The density as it is written in the example's heading, in 50 digits."""

    def normal(x, mean, scale):
        return mpmath.log(mpmath.npdf(x, mean, scale))

    theta_trans, mu, log_tau = unknowns[:8], unknowns[8], unknowns[9]
    tau = mpmath.exp(log_tau)
    total = normal(mu, 0, 5) - mpmath.log(mpmath.pi * 5 * (1 + (tau / 5) ** 2)) + log_tau
    for t, effect, error in zip(theta_trans, example.y, example.sigma, strict=True):
        total += normal(t, 0, 1) + normal(mpmath.mpf(float(effect)), mu + tau * t, mpmath.mpf(float(error)))
    return total


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_eight_schools_against_mpmath(eight_schools, seed):
    point = np.random.default_rng(seed).normal(size=10)
    value, gradient = vm.value_and_grad(eight_schools.log_density)(point)
    with mpmath.workdps(50):
        unknowns = [mpmath.mpf(float(u)) for u in point]
        expected = float(schools_in_mpmath(eight_schools, unknowns))
        partials = [
            float(mpmath.diff(lambda u, i=i: schools_in_mpmath(eight_schools, [*unknowns[:i], u, *unknowns[i + 1 :]]), unknowns[i]))
            for i in range(10)
        ]
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(gradient, partials, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "density", "size"),
    [("eight_schools", "log_density", 10), ("linear_regression", "log_posterior", 11)],
)
def test_gradient_by_hand(request, name, density, size):
    example = request.getfixturevalue(name)
    f = getattr(example, density)
    for seed in range(5):
        point = 0.5 * np.random.default_rng(seed).normal(size=size)
        value, gradient = vm.value_and_grad(f)(point)
        assert value == pytest.approx(f(point), rel=1e-14)
        np.testing.assert_allclose(gradient, example.gradient_by_hand(point), rtol=1e-11, atol=1e-10)


def test_hessian_of_the_regression(linear_regression):
    point = np.append(np.linspace(-0.2, 0.2, 10), -0.3)
    hessian = vm.hessian(linear_regression.log_posterior, point)
    step = 1e-6 * np.eye(11)
    by_hand = linear_regression.gradient_by_hand
    differences = np.array([(by_hand(point + e) - by_hand(point - e)) / 2e-6 for e in step])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)
    np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-5)
    linear = linear_regression.X.T @ linear_regression.X * np.exp(0.6) + np.eye(10)
    np.testing.assert_allclose(hessian[:10, :10], -linear, rtol=1e-12)


def test_mode_of_the_eight_schools(eight_schools):
    def loss(u):
        return -eight_schools.log_density(u)

    fit = optimize.minimize(vm.value_and_grad(loss), np.zeros(10), jac=True, hessp=vm.hessp(loss), method="trust-krylov")
    np.testing.assert_allclose(eight_schools.gradient_by_hand(fit.x), 0.0, atol=1e-4)
    hessian = vm.hessian(loss, fit.x)
    by_hand = eight_schools.gradient_by_hand
    differences = np.array([(by_hand(fit.x - e) - by_hand(fit.x + e)) / 2e-6 for e in 1e-6 * np.eye(10)])
    np.testing.assert_allclose(hessian, differences, rtol=1e-6, atol=1e-6)
    assert np.all(np.linalg.eigvalsh(hessian) > 0)
