"""Loops over observations and groups: how many steps batching leaves, and that these compute the
same.
"""

import sys

import numpy as np
import pytest
from comparing import near

import varmat as vm
from programs.verified import verify
from varmat.derivatives.recorded_programs import record
from varmat.programs.ir.interpret import interpret
from varmat.programs.passes import optimised, without_dead_steps
from varmat.programs.passes.batching import batched
from varmat.programs.run import has_native

rng = np.random.default_rng(1)
Y = rng.normal(size=1000)


def plain(f, x, monkeypatch):
    """Return the program of a function before batching."""
    with monkeypatch.context() as patch:
        patch.setattr(
            sys.modules["varmat.derivatives.recorded_programs"], "optimised", without_dead_steps
        )
        return record(f, (0,), (x,), {})


def check(f, x, steps, monkeypatch):
    """Demand that batching leaves at most the given number of steps, and that every runner gives
    the same values as before.
    """
    before = plain(f, x, monkeypatch)
    with vm.keep_rows():
        after = optimised(before)
        verify(after)
        assert str(after) == str(optimised(before))
    for point in (x, x + 0.1 * np.cos(np.arange(x.size))):
        expected = interpret(before, point)
        near(interpret(after, point), expected)
        eager = vm.value_and_grad(f)(point)
        near(expected, eager)
        for runner in ("numpy", "native") if has_native() else ("numpy",):
            near(vm.recorded(f, runner=runner)(point), eager)
    assert len(after) <= steps
    return after


# --- loops over observations and groups ---

COUNTY, FLOOR = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float)
GROUP, STATES = rng.integers(0, 30, 600), rng.integers(0, 4, 60)
GROUPS_IN_TURN = np.arange(600) * 7 % 30
OUTCOMES, PREDICTORS = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 4))


def autoregression(x):
    alpha, sigma, beta = x[0], np.exp(x[1]), x[2:]
    lp = vm.normal_lpdf(alpha, 0, 10)
    for t in range(5, 200):
        mu = alpha
        for k in range(5):
            mu = mu + beta[k] * Y[t - k - 1]
        lp = lp + vm.normal_lpdf(Y[t], mu, sigma)
    return lp


def rows_of_groups(x):
    sigma, alpha = np.exp(x[1]), x[4:]
    lp = vm.normal_lpdf(x[0], 0, 5) + x[1] + x[2] + vm.normal_lpdf(alpha, x[0], np.exp(x[2]))
    for n in range(919):
        lp = lp + vm.normal_lpdf(Y[n], alpha[COUNTY[n]] + x[3] * FLOOR[n], sigma)
    return lp


def shared_parameters_of_groups(x):
    """Contributions to the shared parameters are added up."""
    theta, lp = [x[0] + np.exp(x[1]) * x[2 + g] for g in range(30)], 0.0
    for n in range(600):
        lp = lp + vm.normal_lpdf(Y[n], theta[GROUP[n]], 1.5)
    return lp


def members_of_groups(x):
    """Locations are taken by one gather. The member before the others has a location of its own,
    which is a row of the same array.
    """
    locations, total = [x[0] + np.exp(x[1]) * x[2 + k] for k in range(30)], 0.0
    for n in range(600):
        total = total + vm.normal_lpdf(0.01 * n, locations[GROUPS_IN_TURN[n]], 1.5)
    return total


def results_in_a_list(x):
    made = np.stack([np.exp(x[t % 5]) * x[5] + t for t in range(100)])
    products = np.stack([made[3 * t] * made[t] for t in range(20)])
    return np.sum(np.sin(made) * made) + np.sum(products)


def small_vectors(x):
    lp = 0.0
    for g in range(50):
        mu = PREDICTORS[g] @ x[:4] + x[5 + g]
        lp = lp + vm.normal_lpdf(OUTCOMES[g], mu, np.exp(x[4])) - np.exp(mu) @ mu
        lp = lp + 0.1 * np.sum(np.where(mu > 0, mu, mu**2))
    return lp


def running_sums_of_groups(x):
    """As of the categories of a partial credit model."""
    steps = np.reshape(x[:6], (2, 3))
    scores = [np.cumsum(x[6 + i % 4] - steps[i % 2]) for i in range(60)]
    return sum(vm.log_softmax(score)[i % 3] for i, score in enumerate(scores)) - x @ x


def windows(x):
    """Elements in the overlap get contributions from several windows."""
    return sum(np.sum(np.sin(x[i : i + 3])) * np.sum(np.cos(x[i + 1 : i + 3])) for i in range(50))


def small_matrices(x):
    total, shared = 0.0, x[:4].reshape(2, 2)
    for g in range(20):
        a = x[4 * g : 4 * g + 4].reshape(2, 2)
        total = total + np.sum((a @ a.T) @ a) + np.sum(a @ x[:2])
        total = total + np.sum(shared @ a[0]) + np.sum(a[1] @ a)
    return total


def choices_and_truth_values(x):
    lp = 0.0
    for t in range(1, 150):
        near = np.where((x[t] > 0) & (x[t - 1] < 0.2), x[t] ** 2, -x[t])
        lp = lp + near * np.where((x[t // 2] > 0.1) | (x[t] < Y[t]), 1.0, x[t - 1])
    return lp


def sums_in_any_order(x):
    lp = 0.0
    for t in range(60):
        a, b = np.sin(x[t]), np.exp(x[t + 1])
        lp = lp + np.tanh(a + b if FLOOR[t] else b + a)
    return lp


def observations_of_a_recurrence(x):
    a, b, c, s = (np.exp(x[i]) for i in range(1, 5))
    lp = 0.0
    for t in range(1, 1000):
        s = a + b * (Y[t - 1] - x[0]) ** 2 + c * s
        lp = lp + vm.normal_lpdf(Y[t], x[0], np.sqrt(s))
    return lp


def two_recurrences(x):
    s, m, lp = np.exp(x[0]), x[1], 0.0
    for t in range(300):
        s = np.exp(x[2]) + 0.5 * s * np.exp(-(Y[t] ** 2))
        m = x[3] * m + 0.1 * Y[t]
        lp = lp + vm.normal_lpdf(Y[t], m, s)
    return lp


def states(x):
    lp = 0.0
    for t in range(1, 300):
        lp = lp + vm.normal_lpdf(x[2 + t], x[0] * x[1 + t], np.exp(x[1]))
        lp = lp + vm.poisson_log_lpmf(t % 7, x[2 + t])
    return lp


def hidden_states(x):
    a, b = x[:9].reshape(3, 3), x[9:21].reshape(3, 4)
    forward = b[:, STATES[0]]
    for t in range(1, 60):
        forward = np.log(np.sum(np.exp(forward[:, None] + a), axis=0)) + b[:, STATES[t]]
    return np.log(np.sum(np.exp(forward)))


def hidden_states_as_numbers(x):
    """Python's sums of three terms keep their order, so they take more steps."""
    a, b = x[:9].reshape(3, 3), x[9:21].reshape(3, 4)
    forward = [b[k, STATES[0]] for k in range(3)]
    for t in range(1, 60):
        sums = [sum(np.exp(forward[i] + a[i, j]) for i in range(3)) for j in range(3)]
        forward = [np.log(sums[j]) + b[j, STATES[t]] for j in range(3)]
    return np.log(sum(np.exp(x) for x in forward))


def of_windows(other):
    """Sums of overlapping views of one array."""

    def f(x):
        total, m = 0.0, np.reshape(x[:25], (5, 5))
        for i in range(20):
            total = total + np.sum(np.arctan(x[i : i + 3] + other(x, m, 7 * i % 20)))
        return total

    return f


def even(n, end=0.5):
    return np.linspace(-end, end, n)


# The function, the point, and the most steps; a recurrence takes a product and a sum each time,
# forward and in reverse.
LOOPS = {
    "autoregression": (autoregression, np.full(7, 0.1), 100),
    "rows of groups": (rows_of_groups, np.full(89, 0.1), 65),
    "shared parameters of groups": (shared_parameters_of_groups, even(32), 31),
    "members of groups": (members_of_groups, even(32), 25),
    "results in a list": (results_in_a_list, np.linspace(0.1, 0.6, 6), 50),
    "small vectors": (small_vectors, even(55), 98),
    "running sums of groups": (running_sums_of_groups, even(10, 1.0), 40),
    "windows": (windows, even(53), 30),
    "small matrices": (small_matrices, even(80), 110),
    "choices and truth values": (choices_and_truth_values, even(150), 100),
    "sums in any order": (sums_in_any_order, even(61), 15),
    "a recurrence": (observations_of_a_recurrence, np.full(5, -1.0), 4 * 999 + 70),
    "two recurrences": (two_recurrences, np.array([0.1, 0.2, -0.3, 0.4]), 3100),
    "states": (states, even(302), 70),
    "hidden states": (hidden_states, even(21, 1.0), 560),
    "hidden states as numbers": (hidden_states_as_numbers, even(21, 1.0), 1600),
    "every second": (of_windows(lambda x, m, j: x[j : j + 6 : 2]), np.cos(np.arange(26.0)), 20),
    "backwards": (of_windows(lambda x, m, j: x[j : j + 3][::-1]), np.cos(np.arange(26.0)), 20),
    "columns": (
        of_windows(lambda x, m, j: m[j % 3 : j % 3 + 3, j // 4]), np.cos(np.arange(26.0)), 20),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_take_few_steps(name, monkeypatch):
    program = check(*LOOPS[name], monkeypatch)
    # The contributions to each coefficient make one inner product with data.
    assert name != "autoregression" or program.counts()["matmul"] == 6
    assert name != "running sums of groups" or program.counts()["add.accumulate"] == 2


# --- what stays as it is, and what ends the run ---


def test_small_programs_are_left_alone(monkeypatch):
    program = plain(lambda x: np.sum(np.exp(x[0] * x) + x[1]), np.ones(3), monkeypatch)
    assert batched(program) is program


def test_a_recurrence_has_as_many_steps_for_any_number_of_times(monkeypatch):
    def steps(n):
        def f(x):
            s, lp = x[0], 0.0
            for t in range(n):
                s = x[1] * s + Y[t % 1000]
                lp = lp + vm.normal_lpdf(Y[t % 1000], s, np.exp(x[2]))
            return lp

        return len(optimised(plain(f, np.array([0.1, 0.5, 0.2]), monkeypatch)))

    assert steps(500) == steps(2000)
