"""Where optimisers and samplers start, and what is said where no start is found."""

from __future__ import annotations

import types

import numpy as np
import pytest
from comparing import refuses
from models.schools import SCHOOLS
from models.small_models import broken

import varmat as vm
from varmat.models.callbacks import Callbacks
from varmat.models.starts import Starts, starts_of


def test_initial_point_is_one_that_the_model_accepts():
    def log_density(x):
        if vm.value(x)[0] < 1.0:
            raise vm.DomainError("small")
        return -np.sum(x)

    model = vm.Model(log_density, x=vm.real(2))
    q = model.initial_point(seed=2)
    assert q[0] >= 1.0
    np.testing.assert_array_equal(model.initial_point(seed=2), q)
    # An error is raised at once, although the model would accept other points.
    failing = vm.Model(lambda x: x if vm.value(x) > 1.0 else {}["small"], x=vm.real())
    refuses(KeyError, "small", failing.initial_point, seed=2)
    other = vm.Model(lambda x: -np.sum(x**2), x=vm.real(2)).optimize(seed=1)
    message = r"initial_point: q has shape \(2,\), but must have shape \(10,\)!"
    refuses(vm.ShapeError, message, SCHOOLS.initial_point, other)
    never = vm.Model(lambda x: -np.inf * vm.value(x) ** 2, x=vm.real())
    message = "the log density is not finite at 100 random starts; .* give a start .*is -inf"
    refuses(vm.DomainError, message, never.initial_point, seed=1)


@pytest.mark.parametrize("seed", range(3))
def test_start_is_around_the_centre_and_not_refused(seed):
    centre = np.array([40.0, -40.0])

    def log_density(x):
        if vm.value(x)[0] < 40.0:
            raise vm.DomainError("too small")
        return np.sum(np.where(x < -41.0, -np.inf, -0.5 * x**2))

    model = vm.Model(log_density, x=vm.real(2))
    point = Callbacks(model, 1, Starts(centre[None])).initial_point(seed)
    assert point[0] >= 40.0
    assert point[1] >= -41.0
    assert np.all(np.abs(point - centre) <= 2.0)


def test_start_where_there_is_little_room():
    centre = np.linspace(100.0, 140.0, 50)
    inside = lambda x: np.sum(np.where(np.abs(x - centre) < 0.1, -x, -np.inf))  # noqa: E731
    calls = Callbacks(vm.Model(inside, x=vm.real(50)), 1, Starts(centre[None]))
    assert np.all(np.abs(calls.initial_point(1) - centre) < 0.1)


@pytest.mark.parametrize(("log_density", "message"), [
    (lambda x, y: -0.5 * x * x,
     "the last refusal: the log density is flat in y: a prior or a bound may be missing"),
    (lambda x, y: 0.0, "flat in x, y:"),
    (lambda x, y: vm.normal_lpdf(x, y, 1) - np.inf, "at the last of these, subtract is -inf"),
    (lambda x, y: x + np.log(-y * y), "at the last of these, log is nan"),
    (lambda x, y: vm.exponential_lpdf([1.0, -2.0], np.exp(x)) + vm.normal_lpdf(y, x, 1.0),
     "at the last of these, exponential_lpdf is -inf"),
    (lambda x, y: np.sum(vm.poisson_lpmf.pointwise([1, -1], np.exp(x + y))),
     r"at the last of these, poisson_lpmf.pointwise\[1\] is -inf"),
    (lambda x, y: -np.inf, "at the last of these, the log density is -inf"),
])  # fmt: skip
def test_start_that_is_not_found(log_density, message):
    calls = Callbacks(vm.Model(log_density, x=vm.real(), y=vm.real()), 1)
    with pytest.raises(vm.DomainError, match=message) as refusal:
        calls.initial_point(1)
    assert calls.failures == [refusal.value]


def test_start_of_a_model_that_fails():
    calls = Callbacks(vm.Model(broken, x=vm.real()), 1)
    with pytest.raises(vm.DomainError):
        calls.initial_point(1)
    assert type(calls.failures[0]) is KeyError


def test_starts_of_chains():
    model = vm.Model(lambda x, s: -0.5 * x * x - s, x=vm.real(), s=vm.positive())

    def starts(inits):
        return starts_of(model.initial_point, model.layout.parameters, inits, None, 3)

    at = {"x": 1.0, "s": 1.0}
    draws = {"x": np.arange(8.0).reshape(2, 4), "s": np.ones((2, 4))}
    for inits, x in (
        (at, [1.0, 1.0, 1.0]),
        (np.array([1.0, 0.0]), [1.0, 1.0, 1.0]),
        (model.optimize(at, jacobian=True), [0.0, 0.0, 0.0]),
        ([at, np.array([2.0, 0.0]), {"x": 3.0, "s": 1.0}], [1.0, 2.0, 3.0]),
        (np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), [1.0, 2.0, 3.0]),
        # Not parameters, but draws: the last of each chain, then earlier ones.
        (types.SimpleNamespace(posterior=draws), [3.0, 7.0, 2.0]),
    ):
        found = starts(inits)
        assert found.radius == 0.0
        np.testing.assert_allclose(found.points, np.transpose([x, np.zeros(3)]), atol=1e-7)
    assert starts(None) == Starts(None, 2.0)
    x = np.ones((1, 0))
    for few, message in (
        ({"x": x, "s": x}, "has 0 draws, but must"),
        ({"x": x}, "has no draws of s"),
    ):
        text, result = f"^Model.sample: inits {message}", types.SimpleNamespace(posterior=few)
        refuses((vm.DomainError, TypeError), text, starts, result)
    message = "not finite at the start that was given; .* another start"
    # Of the second one the gradient is infinite.
    for log_density, x in ((lambda x: np.log(-x * x), 1.0), (lambda x: -np.sqrt(x), 0.0)):
        model = vm.Model(log_density, x=vm.real())
        refused = Callbacks(model, 1, Starts(np.full((1, 1), x), 0.0))
        refuses(vm.DomainError, message, refused.initial_point, 1)
