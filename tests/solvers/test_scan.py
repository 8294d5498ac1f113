"""Loops over time: values and derivatives against the same loops in plain Python, recorded
programs, and what is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from comparing import close, close_slopes, equal, refuses
from random_flags import check

import varmat.programs.passes.fission
from varmat.programs.run import has_native
from varmat.testing import expect_ad

vm = varmat

RNG = np.random.default_rng(3)
Y = RNG.normal(size=12)
needs_native = pytest.mark.skipif(not has_native(), reason="needs llvmlite")


def looped(f, carry, xs, *args):
    """`scan` in plain Python, for an array or a dict of arrays, and steps that make arrays."""
    rows = (
        [dict(zip(xs, row, strict=True)) for row in zip(*xs.values(), strict=True)]
        if isinstance(xs, dict)
        else xs
    )
    made = []
    for x in rows:
        carry, y = f(carry, x, *args)
        made.append(y)
    if isinstance(y, tuple):
        return carry, [np.stack(each) for each in zip(*made, strict=True)]
    return carry, np.stack(made)


# --- models ---


def garch(carry, y, p):
    variance, residual = carry
    variance = p[1] + p[2] * residual**2 + p[3] * variance
    return (variance, y - p[0]), vm.normal_lpdf(y, p[0], np.sqrt(variance))


def garch_density(p, over=vm.scan):
    (variance, _), terms = over(garch, (1.0, 0.2), Y, p)
    return np.sum(terms) + 0.1 * variance


class State(NamedTuple):
    mean: Any
    covariance: Any


def kalman(state, y, model):
    """A Kalman filter of a level and a slope, observed with noise."""
    moves = np.array([[1.0, 1.0], [0.0, 1.0]])
    mean = moves @ state.mean
    covariance = moves @ state.covariance @ moves.T + np.diag(model["q"])
    scale = covariance[0, 0] + model["r"]
    gain = covariance[:, 0] / scale
    error = y - mean[0]
    term = -0.5 * (np.log(scale) + error**2 / scale)
    return State(mean + gain * error, covariance - np.outer(gain, covariance[0])), term


def kalman_density(p, over=vm.scan):
    model = {"q": np.exp(p[:2]), "r": np.exp(p[2])}
    state, terms = over(kalman, State(p[3:5], np.eye(2)), Y, model)
    return np.sum(terms) + state.mean[1]


def volatility(h, x, mu, phi, sigma):
    h = mu + phi * (h - mu) + sigma * x["z"]
    return h, vm.normal_lpdf(x["y"], 0.0, np.exp(0.5 * h))


def volatility_density(p, over=vm.scan):
    z = p[3:]
    h, terms = over(volatility, p[0], {"y": Y, "z": z}, p[0], vm.inv_logit(p[1]), np.exp(p[2]))
    return np.sum(terms) + vm.normal_lpdf(z, 0.0, 1.0) + h


MODELS = {
    "garch": (garch_density, np.array([0.1, 0.3, 0.2, 0.5])),
    "kalman": (kalman_density, np.array([-1.0, -2.0, 0.3, 0.2, -0.1])),
    "volatility": (volatility_density, np.concatenate([[-0.3, 1.5, -1.0], RNG.normal(size=12)])),
}


@pytest.mark.parametrize("long", [1, 100])
@pytest.mark.parametrize("name", MODELS)
def test_models_agree_with_plain_loops(name, long, monkeypatch):
    """Programs with everything in the loop, and programs without what is not carried."""
    monkeypatch.setattr(varmat.programs.passes.fission, "LONG", long)
    f, point = MODELS[name]
    found, expected = vm.value_and_grad(f)(point), vm.value_and_grad(f)(point, looped)
    close_slopes(found, expected, 1e-12, 1e-12)
    assert f(point) == found[0]
    hessian = vm.hessian(lambda p: f(p, looped), point)
    close(vm.hessian(f, point), hessian, 1e-11, 1e-11)
    tangent = np.cos(np.arange(point.size))
    close(vm.jvp(f, (point,), (tangent,))[1], expected[1] @ tangent, 1e-12)
    for runner in ["numpy", *["native"] * has_native()]:
        recorded = vm.recorded(f, runner=runner)
        for at in (point, 0.9 * point):
            close_slopes(recorded(at), vm.value_and_grad(f)(at, looped), 1e-12, 1e-12)
    close(vm.recorded(vm.hessian(f))(point), hessian, 1e-11, 1e-11)


def test_all_operands_together():
    """Start, rows and arguments are all variables, and all results are used."""

    def body(c, x, a):
        return {"s": np.tanh(a * c["s"] + x[0]), "v": c["v"] * x[1] + c["s"]}, (
            c["s"] * x[0],
            np.outer(c["v"], x[1]),
        )

    def f(s, v, u, w, a):
        c, (y, z) = vm.scan(body, {"s": s, "v": v}, (u, w), a)
        return c["s"] * np.sum(c["v"] ** 2) + np.sum(y**2) + np.sum(np.sin(z))

    expect_ad(f, 0.3, np.array([0.2, -0.4]), RNG.normal(size=4), RNG.normal(size=(4, 2)), 0.8)


@needs_native
def test_nothing_but_the_loop_calls_python():
    f, point = MODELS["kalman"]
    recorded = vm.recorded(f, runner="native")
    recorded(point)
    counts = recorded.program.counts()
    assert counts["loop"] == 2
    hessian = vm.recorded(vm.hessian(f), runner="native")
    hessian(point)
    for each in (recorded, hessian):
        assert {step.kernel.name for step in each.program.python_steps()} <= {"loop"}


@needs_native
def test_what_is_not_carried_is_computed_for_all_steps_at_once():
    def f(p, x, over=vm.scan):
        def body(c, x, a, b):
            u, v = c
            weight = np.where(x[0] > 0.0, a, b[0] * x[1])
            u = np.tanh(np.where(x[0] < 0.5, u * weight, u)) + x[1]
            return (u, v * u + 1.5), (np.exp(b[1]) * v * x[0], np.log(1.0 + u**2), 2.0)

        (u, v), made = over(body, (p[0], 1.0), x, p[1], p[2:])
        return u * v + sum(np.sum((1.0 + i) * y) for i, y in enumerate(made))

    p, x = np.array([0.3, 0.8, -0.4, 0.1]), RNG.normal(size=(40, 2))
    for i in range(2):
        recorded = vm.recorded(f, i, runner="native")
        for at in (p, 1.1 * p):
            close_slopes(recorded(at, x), vm.value_and_grad(f, i)(at, x, looped), 1e-12, 1e-13)
        assert recorded.program.counts()["log"] == 1
        assert {step.kernel.name for step in recorded.program.python_steps()} <= {"loop"}


@needs_native
def test_a_guard_outside_of_the_loop_ends_the_run(monkeypatch):
    monkeypatch.setattr(varmat.programs.passes.fission, "LONG", 1)
    scales = np.array([1.0, 0.5, 2.0])

    def f(p):
        return np.sum(
            vm.scan(lambda c, s, a: (c + a, vm.normal_lpdf(c, 0.0, s * a)), 0.3, scales, p)[1]
        )

    recorded = vm.recorded(f, runner="native")
    close(recorded(0.7)[1], vm.gradient(f, 0.7), 1e-12)
    refuses(vm.DomainError, "Scale parameter", recorded, -0.7)


def test_the_tape_has_one_entry_for_the_loop():
    def entries(count):
        with vm.nested() as tape:
            p = vm.var(np.array([0.1, 0.3, 0.2, 0.5]))
            vm.scan(garch, (1.0, 0.2), np.resize(Y, count), p)
            return len(tape)

    assert entries(5) == entries(50) < 5


# --- meaning ---


def test_meaning_is_that_of_jax():
    carry, ys = vm.scan(lambda c, x: (c + x, c * x), 1.0, np.array([1.0, 2.0, 3.0]))
    assert carry == 7.0
    assert isinstance(carry, float)
    equal(ys, [1.0, 4.0, 12.0])
    carry, ys = vm.scan(lambda c, x: (c + x, c * x), 1.0, np.array([1.0, 2.0, 3.0]), reverse=True)
    assert carry == 7.0
    equal(ys, [6.0, 8.0, 3.0])
    carry, ys = vm.scan(lambda c, _: (2.0 * c, None), np.ones(2), None, length=5)
    equal(carry, [32.0, 32.0])
    assert ys is None
    carry, ys = vm.scan(
        lambda c, x: (c, {"square": x["u"] ** 2, "matrix": np.outer(x["u"], x["u"])}),
        (),
        {"u": np.eye(3)[:, :2]},
    )
    assert carry == ()
    equal(ys["square"], np.eye(3)[:, :2])
    assert ys["matrix"].shape == (3, 2, 2)


def test_backwards_in_time():
    def f(p, order):
        (variance, _), terms = vm.scan(garch, (1.0, 0.2), Y[::order], p, reverse=order < 0)
        return np.sum(terms[::order] * np.arange(12)) + variance

    point = MODELS["garch"][1]
    close(vm.gradient(lambda p: f(p, -1), point), vm.gradient(lambda p: f(p, 1), point), 1e-13)


def test_truth_values_are_handed_on():
    """A level that stays where it first is beyond a bound, as with `done` in JAX."""

    def step(carry, x, bound):
        level, done = carry
        level = np.where(done, level, level + x)
        done |= level > bound
        return (level, done), (level, ~done)

    def f(q):
        (level, done), (levels, goes_on) = vm.scan(step, (q[0], False), np.abs(Y), q[1])
        return (
            level + np.sum(levels, where=goes_on) + q[0] * np.sum(goes_on) + np.where(done, 0, q[1])
        )

    recorded = vm.recorded(f)
    for bound in (-1.0, 2.3, 100.0):
        q = np.array([0.1, bound])
        levels = 0.1 + np.cumsum(np.abs(Y))
        count = np.sum(levels <= bound)
        last = min(count + 1, len(Y))
        expected = levels[last - 1] + np.sum(levels[:count]) + 0.1 * count + (bound > 90) * bound
        close(recorded(q), (expected, np.array([1.0 + 2 * count, float(bound > 90)])), 1e-14)
        close(vm.value_and_grad(f)(q), recorded(q), 1e-14)


def test_random_bodies():
    """`tests/random_flags.py` tries more."""
    assert sum(map(check, range(30))) > 25


def test_a_loop_in_a_loop():
    def inner(c, x, a):
        return np.sin(a * c) + x, c * x

    def f(x, a, over=vm.scan):
        def outer(c, x, a):
            c, y = over(inner, c, x, a)
            return c, np.sum(y)

        c, y = over(outer, 0.3, x, a)
        return c + np.sum(y)

    x = RNG.normal(size=(3, 4))
    for i in range(2):
        gradient = vm.grad(f, i)(x, 0.7)
        close(gradient, vm.grad(f, i)(x, 0.7, looped), 1e-12)
        close(vm.recorded(f, i)(x, 0.7)[1], gradient, 1e-12)


@pytest.mark.parametrize("checkpoints", [1, 4, 5, 12, 40])
def test_checkpoints_change_nothing_but_memory(checkpoints):
    def f(p, **how):
        (variance, _), terms = vm.scan(garch, (1.0, 0.2), Y, p, **how)
        return terms @ np.arange(12) + variance

    point, eager = MODELS["garch"][1], vm.value_and_grad(f)
    for reverse in (False, True):
        found = eager(point, reverse=reverse, checkpoints=checkpoints)
        close_slopes(found, eager(point, reverse=reverse), 1e-12)


# --- where programs end ---


def test_a_step_outside_its_program_is_evaluated_as_written():
    """The density branches where a scale underflows."""

    def f(p, over=vm.scan):
        scales = np.array([1.0, 1e-120, 2.0])
        return np.sum(
            over(lambda c, s, a: (c + s, vm.normal_lpdf(a * s, 0.0, s)), 0.0, scales, p)[1]
        )

    expected = vm.value_and_grad(f)(0.7, looped)
    for route in (vm.value_and_grad(f), vm.recorded(f)):
        close_slopes(route(0.7), expected, 1e-12)


def test_second_derivatives_outside_the_program():
    def f(p, over=vm.scan):
        def body(c, s, a):
            return np.sin(a[0] * c) + s, c * vm.normal_lpdf(a[1] * s, 0.0, s)

        c, y = over(body, p[0], np.array([1.0, 1e-120, 2.0]), p)
        return c * np.sum(y)

    p = np.array([0.7, 0.3])
    for derivative in (vm.gradient, vm.hessian):
        expected = derivative(lambda p: f(p, looped), p)
        close(derivative(f, p), expected, 1e-11)


def test_loops_that_carry_or_keep_nothing():
    assert vm.scan(lambda c, x, a: (c, None), (), Y, vm.var(0.5)) == ((), None)

    def kept(a, over=vm.scan):
        return np.sum(over(lambda c, x, a: (c, np.sin(a * x)), (), Y, a)[1])

    def power(a):
        return vm.scan(lambda c, _, a: (a * c, None), 2.0, None, a, length=40)[0]

    expected = vm.gradient(lambda a: kept(a, looped), 0.3)
    close(vm.gradient(kept, 0.3), expected, 1e-13)
    for route in (vm.value_and_grad(power), vm.recorded(power)):
        close(route(0.9), (2.0 * 0.9**40, 80.0 * 0.9**39), 1e-13)


def test_a_refused_step_is_named():
    def f(p):
        return np.sum(
            vm.scan(
                lambda c, s, a: (c, vm.normal_lpdf(a, 0.0, s)), 0.0, np.array([1.0, 2.0, -1.0]), p
            )[1]
        )

    for route in (vm.value_and_grad(f), vm.recorded(f)):
        with pytest.raises(
            vm.DomainError, match=r"normal_lpdf: Scale parameter is -1\.0, but must be positive!"
        ) as caught:
            route(0.7)
        assert "in step 2 of scan" in caught.value.__notes__


def test_variables_from_outside_are_refused():
    def f(p):
        return np.sum(vm.scan(lambda c, x: (c * p[0], c), 1.0, Y)[1])

    message = r"scan: the function uses a \w+ of shape .* from outside"
    refuses(vm.TapeError, message, lambda: vm.value_and_grad(f)(np.ones(2)))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, None), vm.ShapeError,
     ("scan: xs has no arrays and length is not given, but one of them must say how many steps "
     "there are!")),
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, 1.0), vm.ShapeError,
     "scan: array 1 of xs is a scalar, but must have a row for each step!"),
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, (Y, Y[1:])), vm.ShapeError,
     r"scan: length and the arrays of xs say \[12, 11\] steps, but must agree!"),
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, Y, length=3), vm.ShapeError,
     r"scan: length and the arrays of xs say \[3, 12\] steps, but must agree!"),
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, Y[:0]), vm.DomainError,
     "scan: there are 0 steps, but must be at least one!"),
    (lambda: vm.scan(lambda c, x: (c + np.ones(2), x), 0.0, Y), vm.ShapeError,
     (r"scan: array 1 of the carry returned by f has shape \(2,\), but must have the shape of "
     r"init, \(\)!")),
    (lambda: vm.scan(lambda c, x: ((c, c), x), 0.0, Y), vm.ShapeError,
     "scan: the carry returned by f must have the structure of init!"),
    (lambda: vm.scan(lambda c, x: (c > 0.0, x), 0.0, Y), TypeError,
     "scan: the carry returned by f must have truth values where init has, and numbers elsewhere!"),
    (lambda: vm.scan(lambda c, x: c, 0.0, Y), TypeError,
     ("scan: f returns a Var, but must return a pair: the carry and the output!")),
    (lambda: vm.scan(lambda c, x: (c, x), 0.0, Y, checkpoints=0), vm.DomainError,
     "scan: checkpoints is 0, but must be positive!"),
    (lambda: vm.scan(lambda c, x: (c if c > 0 else -c, x), 0.0, Y), vm.TapeError, "recorded"),
    (lambda: vm.scan(3, 0.0, Y), TypeError, "scan: the function is a int, but must be a function!"),
])  # fmt: skip
def test_what_is_refused(call, error, text):
    refuses(error, text, call)


def _third_by_jacobian(f, x):
    return vm.jacobian(lambda z: vm.hessian(f)(z))(x)


def _third_by_gradients(f, x):
    return vm.grad(lambda z: np.sum(vm.grad(lambda w: np.sum(vm.grad(f)(w) ** 2))(z) ** 2))(x)


def _third_forward(f, x):
    along = lambda f: lambda z: vm.jvp(f, (z,), (np.cos(np.arange(x.size)),))[1]  # noqa: E731
    return along(along(along(f)))(x)


@pytest.mark.parametrize("third", [_third_by_jacobian, _third_by_gradients, _third_forward])
def test_third_derivatives(third):
    """With a variable initial carry: those of the same loop in Python."""

    def step(c, r):
        c = np.sin(c) * r + 0.5 * c
        return c, c * c

    def f(x, over=vm.scan):
        last, ys = over(step, x[0], x[1:])
        return np.sum(ys) * last

    x = np.array([0.3, 0.5, -0.7, 1.1])
    close(third(f, x), third(lambda x: f(x, looped), x), 1e-12, 1e-14)
