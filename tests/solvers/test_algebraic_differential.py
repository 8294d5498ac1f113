"""Differential-algebraic equations: closed forms, ordinary equations, Stan's value, refusals."""

import re

import numpy as np
import pytest
from comparing import close, equal, refuses
from stan import entries

import varmat as vm
from varmat.solvers import sundials

pytest.importorskip("sksundae", reason="scikit-sundae is not installed")


def decay_and_square(t, yy, yp, rate):
    return np.stack([yp[0] + rate * yy[0], yy[1] - yy[0] ** 2])


@pytest.mark.parametrize("entry", entries("algebraic_differential_equations"))
def test_agrees_with_stan(entry):
    yy0, yp0, t0, ts, rate = (x for x, _ in entry["args"])

    def f(rate):
        return vm.dae(decay_and_square, yy0, yp0, t0, ts, rate)

    close(f(rate), entry["output"], 1e-9)
    gradient = vm.gradient(lambda rate: np.sum(np.array(entry["weights"]) * f(rate)), rate)
    close(gradient, entry["args"][4][1], 1e-8)


def scaled(t, yy, yp, p):
    """The first state decays, the second is p[1] times the first, the third integrates their
    sum.
    """
    return [yp[0] + p[0] * yy[0], yy[1] - p[1] * yy[0], yp[2] - yy[0] - yy[1]]


WEIGHTS = np.array([[1.0, -0.5, 0.3], [0.7, 0.2, -1.1]])
TIMES = np.array([0.5, 2.0])


def test_closed_form():
    """The second state follows the parameters of the algebraic equation at once, so its initial
    value has no derivative.
    """
    p, yy0 = np.array([0.8, 1.5]), np.array([1.2, 1.8, 0.1])
    yp0 = np.array([-0.96, -1.44, 3.0])

    def solved(p, yy0):
        return np.sum(WEIGHTS * vm.dae_tol(scaled, yy0, yp0, 0.0, TIMES, 1e-12, 1e-12, 100_000, p))

    def exact(p, yy0):
        first = yy0[0] * np.exp(-p[0] * TIMES)
        third = yy0[2] + (1.0 + p[1]) * (yy0[0] - first) / p[0]
        return np.sum(WEIGHTS * np.stack([first, p[1] * first, third], axis=1))

    (value, gradients), expected = (vm.value_and_grad(f, (0, 1))(p, yy0) for f in (solved, exact))
    close(value, expected[0], 1e-9)
    close(gradients, expected[1], 1e-9, 1e-9)
    # The tangent; and a list of scalar variables.
    direction = (np.array([0.3, -1.0]), np.array([0.5, 2.0, 0.1]))
    _, along = vm.jvp(solved, (p, yy0), direction)
    close(along, sum(g @ d for g, d in zip(gradients, direction, strict=True)), 1e-12)
    close(vm.gradient(lambda x: solved(p, [x, 1.8, 0.1]), 1.2), gradients[1][0], 1e-9)
    # Rates at the start only select a solution.
    rates = vm.gradient(lambda yp0: np.sum(vm.dae(scaled, yy0, yp0, 0.0, TIMES, p)), yp0)
    equal(rates, np.zeros(3))


def test_recordings_and_functions_that_cannot_be_recorded():
    def f(rate, residual=decay_and_square):
        start = [1.0, 1.0], [-rate, -2.0 * rate]
        return np.sum(vm.dae(residual, *start, 0.0, [0.5, 0.5, 1.5], rate))

    def branching(t, yy, yp, rate):
        return decay_and_square(t, yy, yp, rate) if vm.value(rate) > 0.0 else yy

    def exact(rate):
        return sum(np.exp(-rate * t) + np.exp(-2.0 * rate * t) for t in (0.5, 0.5, 1.5))

    recorded = vm.recorded(f)
    for rate in (0.7, 0.4):
        expected = exact(rate), vm.gradient(exact, rate)
        close(recorded(rate), expected, 1e-8)
        close(vm.value_and_grad(lambda rate: f(rate, branching))(rate), expected, 1e-8)


def solve(yy0=(1.0, 1.0), yp0=(-0.7, -1.4), ts=(0.5,), rate=0.7, settings=None, residual=None):
    residual = decay_and_square if residual is None else residual
    if settings is None:
        return vm.dae(residual, yy0, yp0, 0.0, ts, rate)
    return vm.dae_tol(residual, yy0, yp0, 0.0, ts, *settings, rate)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: solve(yy0=[1.0, np.nan]), vm.DomainError, "dae: yy0[1] is nan, but must be finite!"),
    (lambda: solve(yp0=[1.0, np.inf]), vm.DomainError, "dae: yp0[1] is inf, but must be finite!"),
    (lambda: solve(yp0=[1.0]), vm.ShapeError,
     "dae: yp0 has shape (1,), but must have the shape of yy0, (2,)!"),
    (lambda: solve(yy0=[]), vm.ShapeError, "dae: yy0 has no elements, but must have at least one!"),
    (lambda: solve(ts=[0.0]), vm.DomainError, "dae: t0 is 0.0, but must be less than ts[0], 0.0!"),
    (lambda: solve(rate=np.inf), vm.DomainError,
     "dae: an argument of f has an element inf, but must be finite!"),
    (lambda: solve(residual=lambda t, yy, yp, rate: yy[:1]), vm.ShapeError,
     "dae: the residual has shape (1,), but must have one element for each state, (2,)!"),
    (lambda: solve(residual=3.0), TypeError,
     "dae: the function is a float, but must be a function!"),
    (lambda: solve(settings=(1e-8, 0.0, 100)), vm.DomainError,
     "dae_tol: abs_tol is 0.0, but must be positive and finite!"),
    (lambda: solve(settings=(1e-10, 1e-10, 2)), vm.DomainError,
     "dae_tol: the solver stopped at t = "),
    (lambda: vm.gradient(lambda t: solve(ts=[t])[0, 0], 0.5), TypeError,
     ("dae: t0 or ts carries derivatives, but must be plain numbers, because the solution has no "
     "derivatives in the times!")),
    (lambda: vm.hessian(lambda rate: solve(rate=rate)[0, 0], 0.5), TypeError,
     "dae: solutions of differential-algebraic equations have no second derivatives!"),
])  # fmt: skip
def test_errors(call, error, message):
    refuses(error, f"^{re.escape(message)}", call)


def test_without_sundials(monkeypatch):
    monkeypatch.setattr(sundials, "has_sundials", lambda: False)
    message = r'^dae: scikit-sundae is not installed: in a clone .*, pip install -e "\.\[ode\]"$'
    refuses(ImportError, message, solve)
