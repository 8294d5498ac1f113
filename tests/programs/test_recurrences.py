"""Recurrences found again in recordings: loops over time agree with eager evaluation at points away
from the recorded one, and their programs do not grow with the number of steps.
"""

import numpy as np
import pytest
from comparing import near, refuses

import varmat as vm
from programs.verified import verify
from varmat.programs.ir.interpret import interpret

RNG = np.random.default_rng(6)
DATA, PLACES, COUNTS = RNG.normal(size=(60, 3)), RNG.permutation(60), RNG.poisson(3.0, size=60)
X, Z = 0.5 * RNG.normal(size=(2, 68))


def vectors_of_two_lags(q):
    h, total, turned = [q[:3], q[3:6]], 0.0, q[6:9]
    for t in range(50):
        h.append(np.tanh(h[-1] * q[t] - 0.3 * h[-2] + DATA[t]) * np.sum(h[-2]) * 0.4)
        total, turned = total + np.sum(h[-1]) + q[t], turned[::-1] + q[t]
    return total + np.sum(np.stack(h[-20:]) ** 2) + h[-2] @ h[25] + turned[0] * turned[1]


def matrices(q):
    """A sum that decays, of elements at places apart."""
    x, total, moves = np.eye(2) * q[0], 0.0, q[:4].reshape(2, 2) * 0.3
    for t in range(45):
        x = np.sin(x @ moves + DATA[t, 0]) + np.sum(q[t : t + 3]) * 0.1
        total = 0.9 * total + np.sum(x) * q[PLACES[t]] + x[0, 1] * q[-1 - t]
    return total


def first_trips_are_others(q):
    """Values are carried that are not added up, and are read three trips later."""
    values, shared = [0.3, q[0], np.exp(q[1])], np.tanh(q[3])
    for t in range(3, 48):
        x = values[-1] * 0.5 + 0.1 if t < 5 else values[-1]
        x = np.hypot(np.exp(-x * x), values[-3]) - 0.3 * DATA[t, 1] + shared * q[[t, 0, 3]][1]
        for j in range(3):
            x = x * q[j] + 0.2
        values.append(np.tanh(x))
    return np.sum(sum(values[10:])) + values[24] * values[-1]


def filled_arrays(q):
    """Some rows are written and others are added to; each is a pair."""
    a = np.zeros_like(q, shape=(68, 2))
    a[0] = q[:2]
    for t in range(1, 68):
        made = np.tanh(np.where(a[t - 1] > q[2], a[t - 1], 0.5 * q[t]) - 0.1 * q[5])
        if t < 34:
            a[t] = made
        else:
            a[t] += made
    return np.sum(np.stack([*a][-28:]) ** 2) + a[-2, 0] * 0.1


def two_loops(q):
    """The second one reads what the first one made."""
    first = [q[0]]
    for t in range(40):
        first.append(np.sin(first[-1]) + q[t] / (1.5 + np.cos(DATA[t, 2])))
    x, total = np.exp(q[1]), 0.0
    for t in range(36):
        x = np.maximum(np.tanh(x - 0.3 * first[t // 2]), -x / (1.0 + x * x))
        total = total - 0.5 * x + q[t]
    return np.tanh(0.1 * total) + x


def sums_of_several_kinds(q):
    x, totals = 0.3, [0.0, q[2], 0.0, 0.1]
    for t in range(58):
        x = np.tanh(np.where(x < 0.1, q[5], x * 0.7) + 0.137 * vm.lgamma(COUNTS[t] + 1.0))
        totals[0] = totals[0] + vm.normal_lpdf(DATA[t, 0], x, np.exp(q[4]))
        totals[1] = totals[1] + vm.poisson_log_lpmf(COUNTS[t], x)
        totals[2] = np.where(x > 0.0, totals[2] + x, totals[2])
        totals[3] = np.tanh(totals[3]) * 0.8 + 0.01 * x * totals[3]
    return totals[0] + totals[1] * 0.5 + totals[2] + totals[3] + vm.normal_lpdf(x, q[0], 1.5)


def iterations_of_four_kinds(q):
    """In an order without a pattern, and with another loop among them."""
    kinds = (
        (np.square, np.expm1, np.sinh),
        (np.sinh, np.sin, np.square, np.square, np.square, np.exp, np.sin),
        (np.cosh, np.arctan, np.log1p, np.log1p, np.cosh, np.square, np.square, np.cosh),
        (np.expm1, np.sinh, np.arctan, np.log1p, np.exp, np.cosh, np.expm1, np.sin),
    )  # fmt: skip
    order = "3023100011110131021210330231303323023233031312231213103103000030122121222"
    x, total = q[0], 0.0
    for t, kind in enumerate(map(int, order)):
        for function in kinds[kind]:
            x = function(np.tanh(x))
        for _ in range(31 if t == 36 else 0):
            x = np.sin(x) * q[2]
        x = np.tanh(x)
        total = total + x
    return total


FUNCTIONS = [
    vectors_of_two_lags, matrices, first_trips_are_others, filled_arrays, two_loops,
    sums_of_several_kinds, iterations_of_four_kinds,
]  # fmt: skip


def loops_in(program):
    return sum(step.kernel.name in ("loop", "procedure") for step in program.steps)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_recordings_hold_at_other_points(f):
    recorded = vm.recorded(f, runner="numpy")
    recorded(X)
    for found in (recorded(Z), interpret(recorded.program, Z)):
        near(found, vm.value_and_grad(f)(Z), 1e-11)
    verify(recorded.program)
    assert loops_in(recorded.program) >= 2


def test_a_program_is_as_long_as_its_source():
    def garch(times):
        y = np.sin(np.arange(float(times))).tolist()

        def log_density(q):
            variance, total = 1.0, 0.0
            for t in range(1, times):
                variance = np.exp(q[1]) + 0.3 * (y[t - 1] - q[0]) ** 2 + vm.expit(q[2]) * variance
                total = total + vm.normal_lpdf(y[t], q[0], np.sqrt(variance))
            return total

        return log_density

    lengths = set()
    for times in (50, 200):
        recorded = vm.recorded(garch(times), runner="numpy")
        recorded(np.array([0.1, -0.5, 0.2]))
        assert loops_in(recorded.program) == 2
        lengths.add(len(recorded.program))
    assert len(lengths) == 1


def test_a_loop_that_fills_arrays_is_as_short_as_one_that_passes_values_on():
    def filled(times):
        y = np.sin(np.arange(float(times)))

        def log_density(q):
            variance, states = np.zeros_like(q, shape=times), np.zeros_like(q, shape=(times, 2))
            variance[0], states[0] = 1.0, q[:2]
            for t in range(1, times):
                variance[t] = np.exp(q[1]) + 0.3 * (y[t - 1] - q[0]) ** 2
                variance[t] += vm.expit(q[2]) * variance[t - 1]
                states[t] = np.tanh(states[t - 1]) * q[2]
                states[t, 1] += 0.1 * states[t - 1, 0]
            return vm.normal_lpdf(y, q[0], np.sqrt(variance)) + np.sum(states**2)

        return log_density

    lengths = set()
    x = np.array([0.1, -0.5, 0.2])
    for times in (50, 200):
        f = filled(times)
        recorded = vm.recorded(f, runner="numpy")
        recorded(x)
        near(recorded(x + 0.1), vm.value_and_grad(f)(x + 0.1), 1e-11)
        assert loops_in(recorded.program) == 2
        lengths.add(len(recorded.program))
    assert len(lengths) == 1


def test_a_sum_alone_is_no_recurrence():
    recorded = vm.recorded(lambda q: sum(np.exp(q[0] * t) for t in range(64)), runner="numpy")
    recorded(np.array([0.01]))
    assert loops_in(recorded.program) == 0


def test_a_recurrence_begins_with_the_first_entry():
    def f(x):
        for _ in range(40):
            x = np.sin(x) + 1.0
        return np.sum(x)

    recorded, x = vm.recorded(f, runner="numpy"), np.array([0.3, 0.7])
    near(recorded(x), vm.value_and_grad(f)(x), 1e-11)
    assert loops_in(recorded.program) == 2


def test_a_run_ends_where_a_value_of_the_loop_is_refused():
    def f(q):
        x, total = q[0], 0.0
        for t in range(40):
            x = 0.9 * x + q[1]
            total = total + vm.normal_lpdf(0.1 * t, 0.0, x)
        return total

    recorded = vm.recorded(f, runner="numpy")
    recorded(np.array([1.0, 0.2]))
    refuses(vm.DomainError, "Scale parameter", recorded, np.array([1.0, -0.2]))


@pytest.mark.parametrize("f", [vectors_of_two_lags, first_trips_are_others])
def test_second_derivatives_and_maps(f):
    times = vm.recorded(vm.hessp(f), runner="numpy")
    times(X, Z)
    near(times(Z, X), vm.hessp(f)(Z, X), 1e-9)
    mapped = vm.recorded(f, runner="numpy")
    values, gradients = mapped.map(np.stack([X, Z]))
    near(values, [f(X), f(Z)], 1e-11)
    near(gradients[1], vm.grad(f)(Z), 1e-11)


def test_different_results_of_one_entry_are_different_in_a_loop():
    def log_density(a, b):
        x = np.zeros_like(a, shape=40)
        x[0] = 0.5
        for i in range(1, 40):
            x[i] = np.sqrt(a + b * x[i - 1])
        return np.sum(x)

    # One entry of the tape gives both parameters.
    model = vm.Model(log_density, a=vm.positive(), b=vm.positive(), recorded=True)
    q = np.array([0.3, -0.4])
    expected = vm.value_and_grad(model._target)(q, True, True)
    near(model.log_density_gradient(q), expected, 1e-14)
