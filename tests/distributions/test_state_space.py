"""Linear state space models: compared with the joint normal distribution of all states and
observations, which knows nothing of filters.
"""

import numpy as np
import pytest
import scipy.stats
from comparing import DOMAIN, SHAPE, close, equal, refuses, refuses_as

import varmat as vm
import varmat.distributions as dist

RNG = np.random.default_rng(5)
N, R, TIMES = 3, 2, 7
F, G = RNG.normal(size=(N, R)), 0.4 * RNG.normal(size=(N, N))
V, W = np.eye(R) + 0.3, 0.5 * np.eye(N) + 0.1
M0, C0 = RNG.normal(size=N), np.eye(N) + 0.2
MODEL = dist.LinearStateSpace(F, G, V, W, M0, C0)


def joint(f, g, v, w, m0, c0, times):
    """Means and covariances of the states, and of the observations, and between both."""
    n = len(m0)
    means, blocks = [], np.zeros((times, times, n, n))
    mean, covariance = m0, c0
    for t in range(times):
        mean, covariance = g @ mean, g @ covariance @ g.T + w
        means.append(mean)
        blocks[t, t] = covariance
        for s in range(t):
            blocks[t, s] = g @ blocks[t - 1, s]
            blocks[s, t] = blocks[t, s].T
    of_states = np.block([[blocks[t, s] for s in range(times)] for t in range(times)])
    sees = np.kron(np.eye(times), f)
    states = np.concatenate(means)
    noise = np.kron(np.eye(times), v)
    return states, of_states, sees.T @ states, sees.T @ of_states @ sees + noise, of_states @ sees


def gaps(seed):
    y = MODEL.rng(seed, size=TIMES)
    y[np.random.default_rng(seed).random(y.shape) < 0.3] = np.nan
    y[seed % TIMES] = np.nan
    return y


@pytest.mark.parametrize("seed", range(5))
def test_a_series_with_gaps(seed):
    y = gaps(seed)
    there = ~np.isnan(y.ravel())
    states, of_states, mean, covariance, between = joint(F, G, V, W, M0, C0, TIMES)
    seen = covariance[np.ix_(there, there)]
    expected = scipy.stats.multivariate_normal(mean[there], seen).logpdf(y.ravel()[there])
    close(MODEL.lpdf(y), expected, 1e-12)
    weights = between[:, there] @ np.linalg.inv(seen)
    found = MODEL.smooth(y)
    close(found.mean.ravel(), states + weights @ (y.ravel()[there] - mean[there]), 1e-10, 1e-12)
    after = of_states - weights @ between[:, there].T
    for t in range(TIMES):
        part = slice(N * t, N * (t + 1))
        close(found.covariance[t], after[part, part], 1e-10, 1e-12)


def test_each_term_is_a_forecast_and_the_last_state_is_filtered():
    y = gaps(1)
    terms = MODEL.lpdf.pointwise(y)
    assert terms.shape == (TIMES,)
    for t in (1, 4):
        close(np.sum(terms[:t]), MODEL.lpdf(y[:t]), 1e-13)
        ahead, expected = MODEL.forecast(y[:t], 1), 0.0
        k = ~np.isnan(y[t])
        if k.any():
            covariance = ahead.covariance[0][np.ix_(k, k)]
            normal = scipy.stats.multivariate_normal(ahead.mean[0][k], covariance)
            expected = normal.logpdf(y[t][k])
        close(terms[t], expected, 1e-11, 1e-14)
    for found, expected in zip(MODEL.filter(y), MODEL.smooth(y), strict=True):
        close(found[-1], expected[-1], 1e-13)
    longer = np.vstack([y, np.full((3, R), np.nan)])
    ahead, smooth = MODEL.forecast(y, 3), MODEL.smooth(longer)
    close(ahead.mean, smooth.mean[-3:] @ F, 1e-11)
    close(ahead.covariance[2], F.T @ smooth.covariance[-1] @ F + V, 1e-11)


def test_without_gaps_it_is_the_density_of_stan():
    y = MODEL.rng(3, size=40)

    def ours(f, g, v, w, m0, c0):
        return dist.LinearStateSpace(f, g, v, w, m0, c0).lpdf(y)

    def stan(f, g, v, w, m0, c0):
        # in Stan one triangle of a covariance counts
        v, w, c0 = (0.5 * (x + x.T) for x in (v, w, c0))
        return vm.gaussian_dlm_obs_lpdf(y.T, f, g, v, w, m0, c0)

    point = (F, G, V, W, M0, C0)
    close(ours(*point), stan(*point), 1e-12)
    for k in range(6):
        found, expected = vm.grad(ours, k)(*point), vm.grad(stan, k)(*point)
        if k in (2, 3, 5):
            found = 0.5 * (found + found.T)
        close(found, expected, 1e-10, 1e-12)


def test_series_of_numbers_and_variances():
    y = np.array([1.0, np.nan, 1.4, 0.8])
    plain = dist.LinearStateSpace(
        [1.0, 0.0], [[1.0, 1.0], [0.0, 1.0]], 0.5, [0.1, 0.2], M0[:2], C0[:2, :2]
    )
    full = dist.LinearStateSpace(
        [[1.0], [0.0]], [[1.0, 1.0], [0.0, 1.0]], [[0.5]], np.diag([0.1, 0.2]), M0[:2], C0[:2, :2]
    )
    close(plain.lpdf(y), full.lpdf(y[:, np.newaxis]), 1e-14)
    assert plain.rng(1, size=5).shape == (5,)
    assert full.rng(1, size=5).shape == (5, 1)
    assert plain.lpdf(np.empty(0)) == 0.0
    equal(plain.lpdf.pointwise(y)[1], 0.0)


def test_the_gradient_is_recorded_without_calls_of_python():
    y = gaps(2)

    def f(q):
        model = dist.LinearStateSpace(F, G * q[0], V * np.exp(q[1]), W * np.exp(q[2]), M0, C0)
        return model.lpdf(y)

    q = np.array([0.9, 0.2, -0.3])
    recorded = vm.recorded(f, runner="numpy")
    value, gradient = vm.value_and_grad(f)(q)
    close(recorded(q)[0], value, 1e-13)
    close(recorded(q)[1], gradient, 1e-11)
    assert all(step.kernel.is_native for step in recorded.program.steps)


def test_draws_of_states_have_their_moments():
    y, count = gaps(4), 1000
    found = MODEL.smooth(y)
    draws = np.array([MODEL.latent(y, seed) for seed in range(count)])
    z = (draws.mean(0) - found.mean) / np.sqrt(
        np.diagonal(found.covariance, axis1=1, axis2=2) / count
    )
    assert np.abs(z).max() < 4.5
    ratio = draws.var(0) / np.diagonal(found.covariance, axis1=1, axis2=2)
    assert np.abs(ratio - 1.0).max() < 4.5 * np.sqrt(2.0 / count)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: dist.LinearStateSpace(F, G[:2], V, W, M0, C0), SHAPE, "G has shape"),
    (lambda: dist.LinearStateSpace(F, G, V[0, 0], W, M0, C0), SHAPE, "V has shape"),
    (lambda: dist.LinearStateSpace(1.0, G, V, W, M0, C0), SHAPE, "F has shape"),
    (lambda: MODEL.lpdf(np.zeros(3)), SHAPE, "LinearStateSpace: y has shape"),
    (lambda: MODEL.lpdf(np.full((3, R), np.inf)), DOMAIN, "LinearStateSpace: y is infinite"),
    (lambda: MODEL.cdf(np.zeros((3, R))), TypeError, "LinearStateSpace has no cdf!"),
])  # fmt: skip
def test_refusals(call, error, text):
    refuses_as(error, text, call)


def test_states_of_variables_are_refused():
    def f(g):
        return np.sum(dist.LinearStateSpace(F, g, V, W, M0, C0).smooth(np.zeros((3, R))).mean)

    refuses(TypeError, "a parameter is a variable, but must be numbers", vm.grad(f), G)
