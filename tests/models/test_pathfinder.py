"""Pathfinder against posteriors that are known, and its parts against ArviZ."""

import warnings
from importlib import import_module

import numpy as np
import pytest
from comparing import close, equal, refuses
from models.small_models import told

import varmat as vm
from varmat.models.pathfinder import _normals, pareto_smoothed


def test_weights_are_those_of_arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
    ratios = 2.0 * np.random.default_rng(1).standard_t(5, size=1000)
    weights, k = pareto_smoothed(ratios)
    if hasattr(arviz, "psislw"):
        (expected, shape), rtol = arviz.psislw(ratios), 1e-6
    else:  # since 1 it has taken logarithms of inverse ratios, and another prior of the shape
        inverse = import_module("arviz_stats.base").array_stats.psislw
        (expected, shape), rtol = inverse(-ratios), 1e-2
    close(weights, np.exp(expected), rtol, 1e-12)
    close(k, shape, rtol)
    assert pareto_smoothed(np.zeros(1000))[1] == 0.0
    for ratios in (np.zeros(20), np.append(np.full(90, -np.inf), np.zeros(10))):
        assert np.isinf(pareto_smoothed(ratios)[1])


@pytest.mark.parametrize("shape", [0.8, 1.2])
def test_a_heavy_tail_is_said_to_be_heavy(shape):
    logs = shape * np.random.default_rng(1).exponential(size=4000)
    close(pareto_smoothed(logs)[1], shape, 0.2)


def test_the_inverse_hessian_is_that_of_bfgs():
    """The compact form against the recursion, from the first diagonal on."""
    rng = np.random.default_rng(1)
    a = np.diag(np.arange(1.0, 6.0)) + 0.1
    points = np.cumsum(rng.normal(size=(2, 5)), axis=0)
    slopes = -points @ a
    (normal,) = _normals(points, slopes)
    made, _ = normal.draws(np.eye(5))
    root = made - normal.draws(np.zeros((1, 5)))[0]
    s, z = points[1] - points[0], slopes[0] - slopes[1]
    ratio, inner = z @ s, z @ z
    alpha = 1.0 / (inner / ratio + z * z / ratio - inner * s * s / (ratio * (s @ s)))
    rank = np.eye(5) - np.outer(s, z) / ratio
    expected = rank @ np.diag(alpha) @ rank.T + np.outer(s, s) / ratio
    close(root.T @ root, expected, 1e-10)
    mean = points[1] + expected @ slopes[1]
    close(normal.mean, mean, 1e-10)
    log_normal = normal.draws(np.zeros((1, 5)))[1][0]
    known = -0.5 * np.linalg.slogdet(2.0 * np.pi * expected)[1]
    close(log_normal, known, 1e-10)


def test_a_normal_distribution_is_found_without_warning():
    mean = np.array([1.0, -2.0, 30.0])
    precision = np.linalg.inv([[1.0, 0.5, 0.0], [0.5, 2.0, -3.0], [0.0, -3.0, 9.0]])
    model = vm.Model(
        lambda x: -0.5 * (x - mean) @ precision @ (x - mean),
        x=vm.real(3),
        generated_quantities=lambda x: {"twice": 2.0 * x},
        recorded=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Nearly all ratios are equal. With four of these seeds a few are larger.
        for seed in range(10):
            model.pathfinder(200, trials=10, seed=seed)
        found = model.pathfinder(2000, seed=1)
    x = found.posterior["x"].values[0]
    scaled = (x - mean) @ np.linalg.cholesky(precision)
    close(scaled.mean(axis=0), 0.0, 1e-7, 0.1)
    close(np.cov(scaled.T), np.eye(3), 1e-7, 0.15)
    equal(found.posterior["twice"].values[0], 2.0 * x)
    assert set(np.unique(found.sample_stats["path"])) == {0, 1, 2, 3}
    assert found.sample_stats["pareto_k"].values[0, 0] < 0.5
    assert repr(found).startswith("1 chains of 2000 draws\n")


def test_a_bad_approximation_says_so():
    model = vm.Model(lambda x: vm.student_t_lpdf(x, 0.3, 0.0, 1.0), x=vm.real(4))
    with told(r"^Model.pathfinder: pareto_k is .*, above 0.7", vm.SamplingWarning) as said:
        found = model.pathfinder(200, seed=1)
    assert "pareto_k" in said[0].message.problems
    assert found.posterior["x"].shape == (1, 200, 4)


def test_what_has_no_path():
    flat = vm.Model(lambda x: 1e-9 * x, x=vm.real())
    refuses(vm.DomainError, r"^pathfinder: no path led to a normal", flat.pathfinder, seed=1)
    message = r"^Model.pathfinder: paths is 0, but must be an integer"
    refuses(vm.DomainError, message, flat.pathfinder, paths=0)
