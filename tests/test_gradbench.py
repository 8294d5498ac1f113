"""The functions of `asv_benchmarks/gradbench` on small inputs, compared with formulas in NumPy."""

import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation
from scipy.special import logsumexp

FOLDER = Path(__file__).resolve().parents[1] / "asv_benchmarks" / "gradbench"
RNG = np.random.default_rng(3)


def multiple_runs(*, pre, post):
    """Stand in for the decorator of GradBench: evaluate once."""
    return lambda function: SimpleNamespace(
        function=function, wrapped=lambda given: post(function(pre(given)))
    )


def function(*, pre, post):
    """Stand in for the decorator of GradBench whose function can be called, too."""

    def decorated(f):
        f.wrapped = lambda given: post(f(pre(given)))
        return f

    return decorated


@pytest.fixture
def evaluate(monkeypatch):
    """Evaluate a function of a module of the tool, without GradBench."""
    package, wrap = ModuleType("gradbench"), ModuleType("gradbench.wrap")
    wrap.multiple_runs, wrap.function, package.wrap = multiple_runs, function, wrap
    monkeypatch.setitem(sys.modules, "gradbench", package)
    monkeypatch.setitem(sys.modules, "gradbench.wrap", wrap)
    monkeypatch.syspath_prepend(str(FOLDER))
    # The modules have short names, which nothing else may find.
    for name in (path.stem for path in FOLDER.glob("*.py")):
        monkeypatch.delitem(sys.modules, name, raising=False)

    def call(module, name, given):
        return getattr(import_module(module), name).wrapped(given)

    yield call
    for name in (path.stem for path in FOLDER.glob("*.py")):
        sys.modules.pop(name, None)


def slopes(f, x):
    """The derivatives of `f` by central differences, along a last axis."""
    x, made = np.array(x, float), []
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-5
        there, here = (f(x + sign * step.reshape(x.shape)) for sign in (1, -1))
        made.append((np.asarray(there) - here) / 2e-5)
    return np.stack(made, axis=-1)


def test_hello(evaluate):
    assert evaluate("hello", "square", 3) == 9.0
    assert evaluate("hello", "double", 3) == 6.0


def test_lse(evaluate):
    x = RNG.normal(size=7)
    assert evaluate("lse", "primal", {"x": x.tolist()}) == pytest.approx(logsumexp(x), rel=1e-14)
    found = evaluate("lse", "gradient", {"x": x.tolist()})
    np.testing.assert_allclose(found, np.exp(x - logsumexp(x)), rtol=1e-13)


def test_llsq(evaluate):
    x, n = RNG.normal(size=3), 5
    t = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    residuals = np.sign(t) - x[0] - x[1] * t - x[2] * t**2
    given = {"x": x.tolist(), "n": n}
    assert evaluate("llsq", "primal", given) == pytest.approx(residuals @ residuals / 2, rel=1e-14)
    wanted = [-(residuals @ t**i) for i in range(3)]
    np.testing.assert_allclose(evaluate("llsq", "gradient", given), wanted, rtol=1e-12)


def test_gmm(evaluate):
    d, k, n, gamma, m = 2, 3, 4, 1.5, 2
    given = {"alpha": RNG.normal(size=k), "mu": RNG.normal(size=(k, d))}
    given |= {"q": RNG.normal(size=(k, d)), "l": RNG.normal(size=(k, 1))}
    given = {name: x.tolist() for name, x in given.items()}
    given |= {"x": RNG.normal(size=(n, d)).tolist(), "gamma": gamma, "m": m}

    def log_posterior(parameters):
        alpha, mu, q, lower = np.split(parameters, [k, k + k * d, k + 2 * k * d])
        mu, q = mu.reshape(k, d), q.reshape(k, d)
        value, normals = 0.0, np.zeros((n, k))
        for j in range(k):
            factor = np.array([[np.exp(q[j, 0]), 0.0], [lower[j], np.exp(q[j, 1])]])
            precision = factor.T @ factor
            normal = stats.multivariate_normal(mu[j], np.linalg.inv(precision))
            normals[:, j] = alpha[j] - logsumexp(alpha) + normal.logpdf(given["x"])
            value += stats.wishart(d + m + 1, np.eye(d) / gamma**2).logpdf(precision)
        return value + np.sum(logsumexp(normals, axis=1))

    point = np.concatenate([np.ravel(given[name]) for name in ("alpha", "mu", "q", "l")])
    found = evaluate("gmm", "jacobian", given)
    found = np.concatenate([np.ravel(found[name]) for name in ("alpha", "mu", "q", "l")])
    np.testing.assert_allclose(found, slopes(log_posterior, point), rtol=1e-7, atol=1e-7)
    # GradBench leaves out constants of the Wishart density, so values are compared by differences.
    moved = given | {"alpha": [1.0, 0.0, -1.0]}
    other = np.concatenate([moved["alpha"], point[k:]])
    difference = log_posterior(other) - log_posterior(point)
    found = evaluate("gmm", "objective", moved) - evaluate("gmm", "objective", given)
    assert found == pytest.approx(difference, rel=1e-10)


def test_kmeans(evaluate):
    points = RNG.random((20, 3))
    centroids = points[-4:]
    squares = np.sum((points[:, None] - centroids) ** 2, axis=2)
    nearest = np.argmin(squares, axis=1)
    given = {"points": points.tolist(), "centroids": centroids.tolist()}
    assert evaluate("kmeans", "cost", given) == pytest.approx(np.sum(np.min(squares, axis=1)))
    means = [np.mean(points[nearest == j], axis=0) for j in range(4)]
    np.testing.assert_allclose(evaluate("kmeans", "dir", given), centroids - means, atol=1e-12)


def test_ba(evaluate):
    camera, point = RNG.normal(size=11), np.array([0.3, -0.2, 4.0])
    weight, feature = 0.7, np.array([0.5, -0.5])

    def errors(z):
        r, centre, focal_length, centre_of_image, k, x, w = np.split(z, [3, 6, 7, 9, 11, 14])
        rotated = Rotation.from_rotvec(r).apply(x - centre)
        projected = rotated[:2] / rotated[2]
        square = projected @ projected
        distorted = projected * (1.0 + k[0] * square + k[1] * square**2)
        return w * (distorted * focal_length + centre_of_image - feature)

    z = np.concatenate([camera, point, [weight]])
    given = {"n": 2, "m": 3, "p": 5, "cam": camera.tolist(), "x": point.tolist()}
    given |= {"w": weight, "feat": feature.tolist()}
    found = evaluate("ba", "objective", given)
    np.testing.assert_allclose(found["reproj_error"]["elements"], errors(z), rtol=1e-12)
    assert found["reproj_error"]["repeated"] == found["w_err"]["repeated"] == 5
    assert found["w_err"]["element"] == pytest.approx(1.0 - weight**2)
    found = evaluate("ba", "jacobian", given)
    np.testing.assert_allclose(
        found["vals"], [*slopes(errors, z).ravel(), -2.0 * weight], rtol=1e-6, atol=1e-6
    )
    # The first observation is of the first camera and the first point.
    row = [*range(11), 22, 23, 24, 31]
    assert found["cols"] == [*row, *row, 22 + 9 + 4]
    assert found["rows"][:12] == [*range(0, 151, 15), 151]
    assert found["rows"][-1] == 5 * 30 + 5


def test_lstm(evaluate):
    layers, bits, characters = 2, 3, 5
    main, extra = RNG.normal(size=(2 * layers, 4 * bits)), RNG.normal(size=(3, bits))
    state = RNG.normal(size=(2 * layers, bits))
    sequence = RNG.integers(0, 2, (characters, bits)).astype(float)

    def sigmoid(x):
        return 1.0 / (1.0 + np.exp(-x))

    def loss(parameters):
        gates, ends = parameters[: main.size].reshape(main.shape), parameters[main.size :]
        ends, hidden, cell, total = ends.reshape(3, bits), [*state[::2]], [*state[1::2]], 0.0
        for now, after in pairwise(sequence):
            y = now * ends[0]
            for i in range(layers):
                weights, biases = gates[2 * i].reshape(4, bits), gates[2 * i + 1].reshape(4, bits)
                given = weights * [y, hidden[i], y, hidden[i]] + biases
                cell[i] = cell[i] * sigmoid(given[0]) + sigmoid(given[1]) * np.tanh(given[3])
                y = hidden[i] = sigmoid(given[2]) * np.tanh(cell[i])
            y = y * ends[1] + ends[2]
            total += after @ (y - np.log(np.sum(np.exp(y)) + 2.0))
        return -total / (bits * (characters - 1))

    given = {"main_params": main.tolist(), "extra_params": extra.tolist()}
    given |= {"state": state.tolist(), "sequence": sequence.tolist()}
    point = np.concatenate([main.ravel(), extra.ravel()])
    assert evaluate("lstm", "objective", given) == pytest.approx(loss(point), rel=1e-12)
    found = evaluate("lstm", "jacobian", given)
    np.testing.assert_allclose(found, slopes(loss, point), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("steps", [1, 3, 40])
def test_ode(evaluate, steps):
    """The method of order four is exact for the first four elements, which are polynomials."""
    x = RNG.random(4) + 0.5
    given = {"x": x.tolist(), "s": steps}
    y = np.cumprod(x * 2.0 / np.arange(1, 5))
    np.testing.assert_allclose(evaluate("ode", "primal", given), y, rtol=1e-12)
    np.testing.assert_allclose(evaluate("ode", "gradient", given), y[-1] / x, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_det(evaluate, n):
    a = RNG.random((n, n))
    given = {"A": a.ravel().tolist(), "ell": n}
    determinant = np.linalg.det(a)
    assert evaluate("det", "primal", given) == pytest.approx(determinant, rel=1e-9)
    wanted = determinant * np.linalg.inv(a).T
    np.testing.assert_allclose(evaluate("det", "gradient", given), wanted.ravel(), rtol=1e-9)


def hand(has_us):
    """An input of hand tracking with random numbers."""
    bones, count, points = 22, 12, 4
    model = {"base_relatives": RNG.normal(size=(bones, 4, 4))}
    model["inverse_base_absolutes"] = RNG.normal(size=(bones, 4, 4))
    for matrices in model.values():
        matrices[:, 3] = [0.0, 0.0, 0.0, 1.0]
    model["base_positions"] = np.column_stack([RNG.normal(size=(count, 3)), np.ones(count)])
    model["weights"] = RNG.random((count, bones))
    model["weights"] /= np.sum(model["weights"], axis=1, keepdims=True)
    model["triangles"] = RNG.integers(0, count, (6, 3))
    model["parents"] = np.arange(bones) // 2 - 1
    model = {name: x.tolist() for name, x in model.items()}
    data = {"model": model, "correspondences": RNG.integers(0, 6, points).tolist()}
    data["points"] = RNG.normal(size=(points, 3)).tolist()
    us = RNG.random((points, 2)).tolist() if has_us else []
    return {"theta": (RNG.normal(size=26) * 0.3).tolist(), "data": data, "us": us}


def hand_errors(given, theta, us):
    """The errors of hand tracking, bone by bone and point by point."""
    model = {name: np.array(x) for name, x in given["data"]["model"].items()}
    bones = len(model["parents"])
    angles = np.zeros((bones, 3))
    for finger in range(5):
        bend, spread, middle, tip = theta[6 + 4 * finger : 10 + 4 * finger]
        angles[2 + 4 * finger : 5 + 4 * finger] = [[bend, spread, 0], [middle, 0, 0], [tip, 0, 0]]
    absolutes = []
    for parent, base, (x, z, y) in zip(
        model["parents"], model["base_relatives"], angles, strict=True
    ):
        turn = np.eye(4)
        turn[:3, :3] = Rotation.from_euler("xyz", [x, y, z]).as_matrix()
        absolutes.append((np.eye(4) if parent == -1 else absolutes[parent]) @ base @ turn)
    transforms = [a @ b for a, b in zip(absolutes, model["inverse_base_absolutes"], strict=True)]
    moved = np.einsum("nb,bij,nj->ni", model["weights"], transforms, model["base_positions"])
    found, errors = Rotation.from_rotvec(theta[:3]).apply(moved[:, :3]) + theta[3:6], []
    pairs = zip(given["data"]["correspondences"], given["data"]["points"], strict=True)
    for i, (j, point) in enumerate(pairs):
        if len(us):
            a, b, c = (found[corner] for corner in model["triangles"][j])
            u, v = us[i]
            errors.append(point - (u * a + v * b + (1.0 - u - v) * c))
        else:
            errors.append(point - found[j])
    return np.concatenate(errors)


@pytest.mark.parametrize("has_us", [False, True])
def test_ht(evaluate, has_us):
    given = hand(has_us)
    theta, us = np.array(given["theta"]), np.array(given["us"])
    wanted = hand_errors(given, theta, us)
    np.testing.assert_allclose(evaluate("ht", "objective", given), wanted, rtol=1e-10, atol=1e-12)
    found = np.array(evaluate("ht", "jacobian", given))
    by_theta = slopes(lambda theta: hand_errors(given, theta, us), theta)
    np.testing.assert_allclose(found[:, -26:], by_theta, rtol=1e-6, atol=1e-6)
    assert found.shape == (12, 28 if has_us else 26)
    if has_us:
        by_us = slopes(lambda us: hand_errors(given, theta, us), us)
        own = [by_us[3 * i : 3 * i + 3, 2 * i : 2 * i + 2] for i in range(4)]
        np.testing.assert_allclose(found[:, :2], np.concatenate(own), rtol=1e-6, atol=1e-6)


def searches(monkeypatch):
    """Let descents end where they start; return what they are given."""
    found = []

    def argmin(f, gradient, x):
        found.append((f, gradient))
        return x

    monkeypatch.setattr(import_module("descent"), "argmin", argmin)
    return found


def test_descent(evaluate):
    """GradBench publishes this result, because both descents of `saddle` are alike."""
    argmin = import_module("descent").argmin
    found = argmin(lambda x: x @ x, lambda x: 2.0 * x, np.array([1.0, 1.0]))
    np.testing.assert_allclose(found, 8.246324826140356e-06, rtol=1e-12)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_saddle(evaluate, monkeypatch, modes):
    found = searches(monkeypatch)
    assert evaluate("saddle", modes, {"start": [3.0, 4.0]}) == [3.0, 4.0, 3.0, 4.0]
    (height, rise), (depth, fall) = found
    x = np.array([1.0, 2.0])
    assert height(x) == 5.0 - 25.0
    np.testing.assert_array_equal(rise(x), 2.0 * x)
    # The last search is for the greatest height at the place that the first one returned.
    assert depth(x) == 5.0 - 25.0
    np.testing.assert_array_equal(fall(x), 2.0 * x)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_particle(evaluate, monkeypatch, modes):
    """The function and the gradient of the descent are those of the path, step by step."""
    found = searches(monkeypatch)
    assert evaluate("particle", modes, {"w": 0.1}) == 0.1
    ((value, slope),) = found

    def squared_distance(w):
        x, v = np.array([0.0, 8.0]), np.array([0.75, 0.0])
        charges = np.array([[10.0, 0.0], [10.0, 10.0 - w[0]]])
        while x[1] + 0.1 * v[1] >= 0.0:
            apart = x - charges
            force = np.sum(apart / np.sum(apart**2, axis=1, keepdims=True) ** 1.5, axis=0)
            x, v = x + 0.1 * v, v + 0.1 * force
        return (x[0] - x[1] / v[1] * v[0]) ** 2

    w = np.array([0.1])
    assert value(w) == pytest.approx(squared_distance(w), rel=1e-10)
    np.testing.assert_allclose(slope(w), slopes(squared_distance, w), rtol=1e-6)


def test_the_list_of_evals_is_that_of_the_modules():
    names = (FOLDER / "evals.txt").read_text(encoding="utf-8").split()
    assert names == sorted({path.stem for path in FOLDER.glob("*.py")} - {"run", "descent"})
