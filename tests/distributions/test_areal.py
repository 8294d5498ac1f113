"""Intrinsic autoregressions: compared with the singular normal distribution that they are."""

import numpy as np
import pytest
from comparing import DOMAIN, SHAPE, close, refuses_as

import varmat as vm
import varmat.distributions as dist

EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]
LAPLACIAN = np.zeros((5, 5))
for _i, _j in EDGES:
    LAPLACIAN[[_i, _j], [_j, _i]] -= 1.0
LAPLACIAN -= np.diag(LAPLACIAN.sum(axis=1))
Y = np.array([0.5, -0.2, 0.9, -1.4, 0.2])


@pytest.mark.parametrize("scaled", [False, True])
def test_it_is_a_normal_distribution_on_vectors_with_sum_zero(scaled):
    covariance = np.linalg.pinv(LAPLACIAN)
    if scaled:
        covariance = covariance / np.exp(np.mean(np.log(np.diag(covariance))))
    basis = np.linalg.svd(np.ones((1, 5)))[2][1:]
    inside = basis @ (0.7**2 * covariance) @ basis.T
    expected = vm.multi_normal_lpdf(basis @ Y, np.zeros(4), inside)
    areas = dist.ICAR(EDGES, 5, 0.7, scaled=scaled)
    close(areas.lpdf(Y), expected, 1e-12)
    close(areas.lpdf.pointwise(np.stack([Y, -Y])), [expected, expected], 1e-12)
    draws = areas.rng(1, size=20_000)
    assert np.abs(draws.sum(-1)).max() < 1e-12
    found = np.cov(draws.T)
    assert np.abs(found - 0.49 * covariance).max() < 5 * 0.49 * covariance.max() / np.sqrt(10_000)


def test_the_density_on_the_unconstrained_scale_integrates_to_one():
    model = vm.Model(phi=vm.sum_to_zero(3, prior=dist.ICAR([(0, 1), (1, 2)], 3, 0.5)))
    grid = np.linspace(-6.0, 6.0, 241)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    values = model.log_density_gradient.map(points)[0]
    offset = model.log_density([0.3, 0.1], propto=False) - model.log_density([0.3, 0.1])
    close(np.sum(np.exp(values + offset)) * (grid[1] - grid[0]) ** 2, 1.0, 1e-6)


def test_gradients_of_vector_and_scale():
    def f(y, scale):
        return dist.ICAR(EDGES, 5, scale, scaled=True).lpdf(y)

    recorded = vm.recorded(f, (0, 1), runner="numpy")
    value, (of_y, of_scale) = recorded(Y, 0.7)
    precision = -np.linalg.pinv(-LAPLACIAN)
    typical = np.exp(np.mean(np.log(np.diag(precision))))
    close(value, f(Y, 0.7), 1e-13)
    close(of_y, -typical * LAPLACIAN @ Y / 0.49, 1e-11)
    close(of_scale, (-4.0 + typical * Y @ LAPLACIAN @ Y / 0.49) / 0.7, 1e-11)
    assert all(step.kernel.is_native for step in recorded.program.steps)


@pytest.mark.parametrize(("edges", "settings", "error", "text"), [
    ([0, 1], {}, SHAPE, "edges has shape (2,), but must have shape (m, 2)"),
    ([(0.5, 1.0)], {}, DOMAIN, "edges are of float64, but must be integers"),
    ([(0, 3)], {}, DOMAIN, "edges[0, 1] is 3, but must be the number of an area"),
    ([(0, 1), (2, 2)], {}, DOMAIN, "edges[1] is from area 2 to itself"),
    ([(0, 1), (1, 2), (1, 0)], {}, DOMAIN, "edges[2] occurs twice"),
    ([(0, 1)], {}, DOMAIN, "no path of neighbours leads from area 0 to area 2"),
    ([(0, 1), (1, 2)], {"scale": -1.0}, DOMAIN, "scale is -1.0, but must be positive"),
    ([(0, 1), (1, 2)], {"scale": np.ones(2)}, SHAPE, "scale has shape (2,)"),
])  # fmt: skip
def test_refusals(edges, settings, error, text):
    refuses_as(error, text, lambda: dist.ICAR(edges, 3, **settings).lpdf(np.zeros(3)))
