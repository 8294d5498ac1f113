"""Gradients of models for minibatches: recorded once, and unbiased."""

from functools import partial

import numpy as np
import pytest
from comparing import close, refuses
from scipy.special import expit

import varmat as vm
import varmat.distributions as dist
from varmat.derivatives import recorded_batches

RNG = np.random.default_rng(3)
COUNT = 600
X = RNG.normal(size=(COUNT, 2))
GROUP = RNG.integers(4, size=COUNT)
Y = RNG.integers(2, size=COUNT)
Z = X @ [1.0, -1.0] + RNG.normal(size=COUNT)
calls = []


def predictor(beta, u, x, group):
    calls.append(x)
    return dist.BernoulliLogit(x @ beta + u[group])


def hierarchy(recorded=None, **more):
    return vm.Model(
        recorded=recorded,
        beta=vm.real(2, prior=dist.Normal(0, 1)),
        u=vm.real(4, prior=dist.Normal(0, 2)),
        y=vm.observed(Y, predictor, **more),
        data={"x": X, "group": GROUP},
    )


@pytest.mark.parametrize("runner", ["numpy", "auto"])
def test_other_rows_need_no_other_recording(runner, monkeypatch):
    runner_for = recorded_batches.runner_for
    monkeypatch.setattr(recorded_batches, "runner_for", partial(runner_for, runner=runner))
    gradient, q = hierarchy().minibatch_gradient(), np.linspace(-0.5, 0.6, 6)
    assert gradient.rows == ("x", "group", "y")
    evaluations = -1
    for i in range(5):
        rows = RNG.integers(COUNT, size=30)
        value, slope = gradient(q, rows)
        if i:
            assert len(calls) == evaluations
        evaluations = len(calls)
        eta = X[rows] @ q[:2] + q[2:][GROUP[rows]]
        terms = Y[rows] * eta - np.logaddexp(0.0, eta)
        prior = -0.5 * (q[:2] @ q[:2] + q[2:] @ q[2:] / 4.0) - 3.0 * np.log(2 * np.pi)
        close(value, prior - 4.0 * np.log(2.0) + 20.0 * terms.sum(), 1e-13)
        rest = 20.0 * (Y[rows] - expit(eta))
        of_groups = np.bincount(GROUP[rows], rest, minlength=4)
        expected = np.append(X[rows].T @ rest, of_groups) - q / np.array([1, 1, 4, 4, 4, 4])
        close(slope, expected, 1e-12, 1e-12)
    assert (gradient.recordings, gradient.obstacle) == (1, None)
    gradient(q, np.arange(7))
    assert gradient.recordings == 2


MODELS = {
    "normal": lambda: vm.Model(
        beta=vm.real(2, prior=dist.Normal(0, 1)), s=vm.positive(prior=dist.Exponential(1)),
        mean=lambda beta, x: x @ beta, data={"x": X},
        z=vm.observed(Z, lambda mean, s: dist.Normal(mean, s))),
    "weights": lambda: hierarchy(weights=RNG.integers(3, size=COUNT)),
    "terms": lambda: vm.Model(
        lambda mu, z: {"prior": vm.normal_lpdf(mu, 0, 1), "z": vm.normal_lpdf.pointwise(z, mu, 1)},
        mu=vm.real(), data={"z": Z}),
    "vectors": lambda: vm.Model(
        u=vm.real(4, 2, prior=dist.Normal(0, 1)), data={"group": GROUP},
        x=vm.observed(X, lambda u, group: dist.MultiNormal(u[group], np.eye(2)))),
    "categories": lambda: vm.Model(
        c=vm.ordered(3, prior=dist.Normal(0, 1)), beta=vm.real(2, prior=dist.Normal(0, 1)),
        group=vm.observed(GROUP + 1, lambda x, beta, c: dist.OrderedLogistic(x @ beta, c)),
        data={"x": X}),
}  # fmt: skip


@pytest.mark.parametrize("kind", MODELS)
def test_batches_that_cover_all_rows_have_the_mean_of_the_log_density(kind):
    model = MODELS[kind]()
    gradient, q = model.minibatch_gradient(), np.full(model.param_unc_num(), 0.1)
    output = [gradient(q, rows) for rows in RNG.permutation(COUNT).reshape(-1, 50)]
    value, slope = model.log_density_gradient(q, propto=False)
    close(np.mean([v for v, _ in output]), value, 1e-12)
    close(np.mean([x for _, x in output], axis=0), slope, 1e-11, 1e-11)
    assert (gradient.recordings, gradient.obstacle) == (1, None)


def branching(mu):
    return dist.Normal(mu if vm.value(mu) > 0.0 else 2.0 * mu, 1.0)


def comparing_rows(mu, z):
    return dist.Normal(mu * np.mean(z), 1.0)


@pytest.mark.parametrize("distribution", [branching, comparing_rows])
def test_what_cannot_be_recorded_is_evaluated(distribution):
    model = vm.Model(mu=vm.real(prior=dist.Normal(0, 1)), z=vm.observed(Z, distribution))
    gradient, rows = model.minibatch_gradient(), np.arange(40)
    for mu in (0.5, -0.5):
        part = vm.Model(mu=vm.real(), z=vm.observed(Z[rows], distribution))
        expected = part.log_density_gradient([mu])[1] * 15.0 - mu
        close(gradient([mu], rows)[1], expected, 1e-12)
    assert gradient.recordings == 0
    assert isinstance(gradient.obstacle, vm.TapeError)


def test_nothing_is_recorded_against_the_setting():
    gradients = [hierarchy(recorded).minibatch_gradient() for recorded in (False, True, None)]
    q, rows = np.linspace(-0.5, 0.6, 6), RNG.integers(COUNT, size=20)
    (value, slope), *others = (gradient(q, rows) for gradient in gradients)
    assert [gradient.recordings for gradient in gradients] == [0, 1, 1]
    for other in others:
        close(other[0], value, 1e-13)
        close(other[1], slope, 1e-12, 1e-12)


def test_rows_of_tables():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": X[:, 0], "group": np.array(list("abcd"))[GROUP]}, X[:, 1])
    model = vm.Model(
        u=vm.real(prior=dist.Normal(0, 1), dims="group"),
        z=vm.observed(pandas.Series(Z, X[:, 1]), lambda u, group, x: dist.Normal(u[group] * x, 1)),
        data={"x": table["x"], "group": table["group"]},
    )
    rows = np.array([5, 3, 5])
    _, slope = model.minibatch_gradient()(np.ones(4), rows)
    rest = (Z[rows] - X[rows, 0]) * X[rows, 0] * 200.0
    close(slope, np.bincount(GROUP[rows], rest, minlength=4) - 1.0, 1e-12)


def named(**more):
    return vm.Model(mu=vm.real(), y=vm.observed(Z, lambda mu: dist.Normal(mu, 1)), **more)


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: named().minibatch_gradient("w"), TypeError,
     "rows has 'w', but must have observations or data: y!"),
    (lambda: named(data={"x": X[:3]}).minibatch_gradient(["y", "x"]), vm.ShapeError,
     r"x has 3 rows, but must have as many as y, 600: name the data with rows, as in rows=\['y'\]"),
    (lambda: vm.Model(lambda mu: -mu * mu, mu=vm.real()).minibatch_gradient(), TypeError,
     "the model has no observations with names, but must have varmat.observed"),
    (lambda: vm.Model(lambda mu, z: vm.normal_lpdf(z, mu, 1), mu=vm.real(), data={"z": Z})
     .minibatch_gradient("z")([0.0], [1]), TypeError,
     "the log density reads z and returns no dict, but must return a dict of terms"),
    (lambda: vm.Model(k=vm.discrete([0, 1]), y=vm.observed(Z, lambda k: dist.Normal(k, 1)))
     .minibatch_gradient(), TypeError, "the model has discrete parameters, but must not have any!"),
    (lambda: vm.Model(y=vm.observed([1.0, np.nan], dist.Normal(0, 1), missing=vm.real))
     .minibatch_gradient(), TypeError, "the model has missing y, but must not have any!"),
    (lambda: named().minibatch_gradient()([0.0], [0.5]), TypeError,
     "rows has dtype float64, but must be integers!"),
    (lambda: named().minibatch_gradient()([0.0], [600]), IndexError,
     "rows has 600, but must have indices from 0 to 599!"),
    (lambda: named().minibatch_gradient()([0.0], np.empty(0, int)), vm.ShapeError,
     r"rows has shape \(0,\), but must be a vector of at least one index"),
])  # fmt: skip
def test_mistakes(make, error, message):
    refuses(error, f"^Model.minibatch_gradient: {message}", make)
