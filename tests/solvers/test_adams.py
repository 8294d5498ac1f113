"""Adams formulas as loops of programs, against closed forms and the number of LSODA's steps."""

from fractions import Fraction

import numpy as np
import pytest
from comparing import close
from scipy.integrate import LSODA

import varmat as vm
from varmat.programs.ir.interpret import interpret
from varmat.programs.run import has_native
from varmat.solvers.adams import Adams

RUNNERS = ["numpy", *(["native"] if has_native() else [])]


def test_coefficients():
    """Those of Hairer, Norsett and Wanner, equation III.1.7."""
    explicit = []
    for j in range(14):
        explicit.append(1 - sum(g * Fraction(1, j + 1 - i) for i, g in enumerate(explicit)))
    assert explicit[4:7] == [Fraction(251, 720), Fraction(95, 288), Fraction(19087, 60480)]
    errors = [abs(b - a) for a, b in zip([0, *explicit], explicit, strict=False)]
    close(Adams.constants[0], [*map(float, explicit)], 1e-13)
    close(Adams.constants[1], [*map(float, errors)], 1e-11)


def oscillator(t, y, k):
    return np.stack([y[1], -(k[0] ** 2) * y[0]])


def oscillator_exact(t, y, k):
    s, c = np.sin(k[0] * t), np.cos(k[0] * t)
    return np.stack([y[0] * c + y[1] / k[0] * s, y[1] * c - k[0] * y[0] * s], axis=1)


def logistic(t, y, k):
    return k[0] * y * (1.0 - y / k[1])


def logistic_exact(t, y, k):
    return np.reshape(k[1] / (1.0 + (k[1] / y[0] - 1.0) * np.exp(-k[0] * t)), (-1, 1))


def forced(t, y, k):
    """Becomes stiff: the transient is gone long before the last time."""
    return np.stack([-k[0] * (y[0] - np.cos(t))])


def forced_exact(t, y, k):
    limit = (k[0] ** 2 * np.cos(t) + k[0] * np.sin(t)) / (k[0] ** 2 + 1.0)
    return np.reshape(limit + (y[0] - k[0] ** 2 / (k[0] ** 2 + 1.0)) * np.exp(-k[0] * t), (-1, 1))


def jump(t, y, k):
    """A rate that jumps, which steps cannot see before."""
    return np.stack([k[0] * (1.0 if t > 2.5 else -1.0) + 0.0 * y[0]])


def jump_exact(t, y, k):
    return np.reshape(y[0] + k[0] * np.where(t > 2.5, t - 5.0, -t), (-1, 1))


def predators(t, y, k):
    return np.stack([k[0] * y[0] - k[1] * y[0] * y[1], -k[2] * y[1] + k[3] * y[0] * y[1]])


PROBLEMS = {
    "oscillator": (oscillator, oscillator_exact, [1.0, 0.3], [2.0]),
    "logistic": (logistic, logistic_exact, [0.1], [1.2, 8.0]),
    "forced": (forced, forced_exact, [0.2], [60.0]),
    "jump": (jump, jump_exact, [0.4], [1.3]),
}
# Some repeat or lie within one step.
TIMES = np.array([0.3, 1.0, 1.0, 1.0 + 1e-9, 4.0, 6.0, 6.01, 10.0])


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("name", PROBLEMS)
def test_closed_forms(name, tolerance):
    """States and derivatives in all operands, at two points."""
    f, exact, start, k = PROBLEMS[name]
    n, weights = len(start), np.cos(np.arange(8.0 * len(start))).reshape(8, -1)

    def solved(x, t):
        states = vm.ode_adams_tol(f, x[:n], x[-1], t, tolerance, tolerance, 20_000, x[n:-1])
        return np.sum(weights * states)

    def expected(x, t):
        return np.sum(weights * exact(t - x[-1], x[:n], x[n:-1]))

    if name in ("forced", "jump"):  # rates that depend on time itself
        solved, expected = (
            lambda x, t, g=g: g(np.concatenate([x[:-1], np.zeros(1)]), t)
            for g in (solved, expected)
        )
    x = np.array([*start, *k, 0.0])
    points = [(x, TIMES), (1.1 * x + [*0.0 * x[:-1], 0.02], 1.01 * TIMES)]
    gradients = [vm.recorded(solved, (0, 1), runner=runner) for runner in RUNNERS]
    found = [[gradient(*point) for point in points] for gradient in gradients]
    for gradient in gradients:
        assert not gradient.program.counts()["ode_solution"]
    for point, *results in zip(points, *found, strict=True):
        value, slopes = vm.value_and_grad(expected, (0, 1))(*point)
        for v, g in results:
            assert abs(v - value) < 300.0 * tolerance
            for a, b in zip(g, slopes, strict=True):
                assert np.max(np.abs(a - b)) < 1500.0 * tolerance * (1.0 + np.max(np.abs(b)))


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
@pytest.mark.parametrize("name", ["oscillator", "logistic", "predators"])
def test_steps_are_about_as_many_as_those_of_lsoda(name, tolerance):
    f, _, start, k = {
        "predators": (predators, None, [30.0, 4.0], [0.55, 0.028, 0.8, 0.024]), **PROBLEMS
    }[name]  # fmt: skip
    limits, steps = {"rtol": tolerance, "atol": tolerance}, 0
    solver = LSODA(lambda t, y: f(t, y, k), 0.0, start, 20.0, **limits)
    while solver.status == "running":
        solver.step()
        steps += 1

    def f_of(k, most):
        return np.sum(vm.ode_adams_tol(f, start, 0.0, [20.0], tolerance, tolerance, most, k))

    k = np.array(k)
    expected = vm.recorded(lambda k: f_of(k, 100_000))(k)[0]
    gradient = vm.recorded(lambda k: f_of(k, 2 * steps))
    gradient(k)
    # Where rounding decides whether a step is accepted, the runners may take different steps.
    close(interpret(gradient.program, k)[0], expected, tolerance)
