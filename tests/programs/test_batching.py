"""Loops over observations and groups: how many steps batching leaves, and that these compute the
same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import varmat as vm
from programs.verified import verify
from varmat.derivatives.recorded_programs import record
from varmat.programs.build.builder import Builder
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import Program
from varmat.programs.passes import optimised, without_dead_steps
from varmat.programs.passes.batching import batched
from varmat.programs.run import has_native

rng = np.random.default_rng(1)
Y = rng.normal(size=1000)


def plain(f: Callable[..., Any], x: Any, monkeypatch: Any) -> Program:
    """Return the program of a function before batching."""
    with monkeypatch.context() as patch:
        patch.setattr(
            sys.modules["varmat.derivatives.recorded_programs"], "optimised", without_dead_steps
        )
        return record(f, (0,), (x,), {})


def agree(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    for one, other in zip(a, b, strict=True):
        assert np.max(np.abs(one - other), initial=0) <= tolerance * (
            1 + np.max(np.abs(other), initial=0)
        )


def check(f: Callable[..., Any], x: Any, steps: int, monkeypatch: Any) -> Program:
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
        agree(interpret(after, point), expected)
        value, gradient = vm.value_and_grad(f)(point)
        agree(expected, [value, gradient])
        for runner in ("numpy", "native") if has_native() else ("numpy",):
            agree(vm.recorded(f, runner=runner)(point), [value, gradient])
    assert len(after) <= steps
    return after


# --- loops over observations ---


def test_autoregression(monkeypatch):
    def f(x):
        alpha, sigma, beta = x[0], np.exp(x[1]), x[2:]
        lp = vm.normal_lpdf(alpha, 0, 10)
        for t in range(5, 200):
            mu = alpha
            for k in range(5):
                mu = mu + beta[k] * Y[t - k - 1]
            lp = lp + vm.normal_lpdf(Y[t], mu, sigma)
        return lp

    program = check(f, np.full(7, 0.1), 100, monkeypatch)
    # The contributions to each coefficient make one inner product with data.
    assert program.counts()["matmul"] == 6


def test_rows_of_groups(monkeypatch):
    county, floor = rng.integers(0, 85, 919), rng.integers(0, 2, 919).astype(float)

    def f(x):
        sigma, alpha = np.exp(x[1]), x[4:]
        lp = vm.normal_lpdf(x[0], 0, 5) + x[1] + x[2] + vm.normal_lpdf(alpha, x[0], np.exp(x[2]))
        for n in range(919):
            lp = lp + vm.normal_lpdf(Y[n], alpha[county[n]] + x[3] * floor[n], sigma)
        return lp

    check(f, np.full(89, 0.1), 65, monkeypatch)


def test_contributions_to_shared_parameters_of_groups_are_added_up(monkeypatch):
    group = rng.integers(0, 30, 600)

    def f(x):
        theta = [x[0] + np.exp(x[1]) * x[2 + g] for g in range(30)]
        lp = 0.0
        for n in range(600):
            lp = lp + vm.normal_lpdf(Y[n], theta[group[n]], 1.5)
        return lp

    check(f, np.linspace(-0.5, 0.5, 32), 31, monkeypatch)


def test_results_collected_in_a_list(monkeypatch):
    def f(x):
        made = np.stack([np.exp(x[t % 5]) * x[5] + t for t in range(100)])
        return np.sum(np.sin(made) * made) + np.sum(
            np.stack([made[3 * t] * made[t] for t in range(20)])
        )

    check(f, np.linspace(0.1, 0.6, 6), 50, monkeypatch)


def test_small_vectors(monkeypatch):
    y, predictors = rng.normal(size=(50, 3)), rng.normal(size=(50, 3, 4))

    def f(x):
        lp = 0.0
        for g in range(50):
            mu = predictors[g] @ x[:4] + x[5 + g]
            lp = (
                lp
                + vm.normal_lpdf(y[g], mu, np.exp(x[4]))
                - np.exp(mu) @ mu
                + 0.1 * np.sum(np.where(mu > 0, mu, mu**2))
            )
        return lp

    check(f, np.linspace(-0.5, 0.5, 55), 98, monkeypatch)


def test_running_sums_of_groups(monkeypatch):
    """As of the categories of a partial credit model."""

    def f(x):
        steps = np.reshape(x[:6], (2, 3))
        scores = [np.cumsum(x[6 + i % 4] - steps[i % 2]) for i in range(60)]
        return sum(vm.log_softmax(score)[i % 3] for i, score in enumerate(scores)) - x @ x

    program = check(f, np.linspace(-1, 1, 10), 40, monkeypatch)
    assert program.counts()["add.accumulate"] == 2


def test_windows(monkeypatch):
    """Elements in the overlap get contributions from several windows."""

    def f(x):
        return sum(
            np.sum(np.sin(x[i : i + 3])) * np.sum(np.cos(x[i + 1 : i + 3])) for i in range(50)
        )

    check(f, np.linspace(-0.5, 0.5, 53), 30, monkeypatch)


def test_small_matrices(monkeypatch):
    def f(x):
        total = 0.0
        for g in range(20):
            a = x[4 * g : 4 * g + 4].reshape(2, 2)
            total = (
                total
                + np.sum((a @ a.T) @ a)
                + np.sum(a @ x[:2])
                + np.sum(x[:4].reshape(2, 2) @ a[0])
                + np.sum(a[1] @ a)
            )
        return total

    check(f, np.linspace(-0.5, 0.5, 80), 110, monkeypatch)


def test_choices_and_truth_values(monkeypatch):
    def f(x):
        lp = 0.0
        for t in range(1, 150):
            near = np.where((x[t] > 0) & (x[t - 1] < 0.2), x[t] ** 2, -x[t])
            lp = lp + near * np.where((x[t // 2] > 0.1) | (x[t] < Y[t]), 1.0, x[t - 1])
        return lp

    check(f, np.linspace(-0.5, 0.5, 150), 100, monkeypatch)


# --- recurrences ---


def test_the_observations_of_a_recurrence(monkeypatch):
    def f(x):
        a, b, c, s = (np.exp(x[i]) for i in range(1, 5))
        lp = 0.0
        for t in range(1, 1000):
            s = a + b * (Y[t - 1] - x[0]) ** 2 + c * s
            lp = lp + vm.normal_lpdf(Y[t], x[0], np.sqrt(s))
        return lp

    # Each time takes a product and a sum, forward and in reverse.
    check(f, np.full(5, -1.0), 4 * 999 + 70, monkeypatch)


def test_two_recurrences(monkeypatch):
    def f(x):
        s, m, lp = np.exp(x[0]), x[1], 0.0
        for t in range(300):
            s = np.exp(x[2]) + 0.5 * s * np.exp(-(Y[t] ** 2))
            m = x[3] * m + 0.1 * Y[t]
            lp = lp + vm.normal_lpdf(Y[t], m, s)
        return lp

    check(f, np.array([0.1, 0.2, -0.3, 0.4]), 3100, monkeypatch)


def test_states(monkeypatch):
    def f(x):
        lp = 0.0
        for t in range(1, 300):
            lp = (
                lp
                + vm.normal_lpdf(x[2 + t], x[0] * x[1 + t], np.exp(x[1]))
                + vm.poisson_log_lpmf(t % 7, x[2 + t])
            )
        return lp

    check(f, np.linspace(-0.5, 0.5, 302), 70, monkeypatch)


def test_hidden_states(monkeypatch):
    y = rng.integers(0, 4, 60)

    def vectors(x):
        a, b = x[:9].reshape(3, 3), x[9:21].reshape(3, 4)
        forward = b[:, y[0]]
        for t in range(1, 60):
            forward = np.log(np.sum(np.exp(forward[:, None] + a), axis=0)) + b[:, y[t]]
        return np.log(np.sum(np.exp(forward)))

    def numbers(x):
        a, b = x[:9].reshape(3, 3), x[9:21].reshape(3, 4)
        forward = [b[k, y[0]] for k in range(3)]
        for t in range(1, 60):
            forward = [
                np.log(sum(np.exp(forward[i] + a[i, j]) for i in range(3))) + b[j, y[t]]
                for j in range(3)
            ]
        return np.log(sum(np.exp(x) for x in forward))

    x = np.linspace(-1, 1, 21)
    check(vectors, x, 560, monkeypatch)
    # Python's sums of three terms keep their order, so they take more steps.
    check(numbers, x, 1600, monkeypatch)


# --- what stays as it is, and what ends the run ---


def test_small_programs_are_left_alone(monkeypatch):
    program = plain(lambda x: np.sum(np.exp(x[0] * x) + x[1]), np.ones(3), monkeypatch)
    assert batched(program) is program


# --- sums of overlapping views of one array ---


@pytest.mark.parametrize("other", ["every second", "backwards", "columns"])
def test_sums_of_strided_windows(other, monkeypatch):
    def f(x):
        total, m = 0.0, np.reshape(x[:25], (5, 5))
        for i in range(20):
            j = 7 * i % 20
            windows = {
                "every second": x[j : j + 6 : 2],
                "backwards": x[j : j + 3][::-1],
                "columns": m[j % 3 : j % 3 + 3, j // 4],
            }
            total = total + np.sum(np.arctan(x[i : i + 3] + windows[other]))
        return total

    check(f, np.cos(np.arange(26.0)), 20, monkeypatch)


# --- random programs ---

UNARY = (np.exp, np.sin, np.negative, np.square, np.tanh)
BINARY = (np.add, np.subtract, np.multiply, np.maximum)


def chance(seed: int) -> Program:
    """Return a program of random steps, many of them alike."""
    random = np.random.default_rng(seed)
    builder = Builder()
    x, y = builder.argument((12,)), builder.argument((6, 2))
    known: dict[Any, list[Any]] = {(): [builder.element(x, i) for i in range(12)]}
    known[(2,)] = [builder.view(y, lambda a, i=i: a[i]) for i in range(6)]

    def chosen(shape: Any) -> Any:
        pool = known[shape]
        if random.random() < 0.15:
            return builder.constant(random.normal(size=shape) if shape else float(random.normal()))
        recent = (
            random.integers(max(0, len(pool) - 25), len(pool))
            if random.random() < 0.7
            else random.integers(len(pool))
        )
        return pool[recent]

    for _ in range(random.integers(3, 8)):
        shape = () if random.random() < 0.6 else (2,)
        kind, template = random.integers(9), random.integers(1 << 30)
        for _ in range(random.integers(4, 30)):
            pick, a, b = np.random.default_rng(template), chosen(shape), chosen(shape)
            if kind < 4:
                inner = builder.ufunc(np.sin, builder.ufunc(BINARY[pick.integers(4)], a, b))
                outer, unary = BINARY[pick.integers(4)], UNARY[pick.integers(5)]
                made = builder.ufunc(outer, inner, builder.ufunc(unary, builder.ufunc(np.sin, b)))
            elif kind == 4:
                made = builder.where(builder.compare(np.greater, a, b), builder.ufunc(np.sin, a), b)
            elif kind == 5:
                made = builder.ufunc(
                    np.tanh, builder.add_all([chosen(shape) for _ in range(random.integers(2, 6))])
                )
            elif kind == 6:
                parts = [((8 * i, ()), (), chosen(())) for i in pick.integers(0, 2, 3)]
                made, shape = builder.ufunc(np.tanh, builder.assemble((2,), parts)), (2,)
            elif kind == 7:
                made, shape = builder.ufunc(np.sin, builder.matmul(chosen((2,)), chosen((2,)))), ()
            else:
                made = builder.ufunc(np.multiply, chosen(()), builder.ufunc(np.tanh, chosen((2,))))
                shape = (2,)
                known[()] += (
                    [builder.element(builder.contiguous(made), 1)] if not made.is_constant else []
                )
            if not made.is_constant:
                known[made.shape].append(made)
    terms = [builder.ufunc(np.tanh, v) for v in known[()][-60:]] + [
        builder.sum(v) for v in known[(2,)][-40:]
    ]
    whole = builder.assemble((len(terms),), [((8 * i, ()), (), v) for i, v in enumerate(terms)])
    return builder.program([builder.add_all(terms), whole, known[()][-1], known[(2,)][-1]])


@pytest.mark.parametrize("seed", range(20))
def test_programs_of_chance(seed):
    program = without_dead_steps(chance(seed))
    after = optimised(program)
    verify(after)
    again = optimised(after)
    verify(again)
    assert len(after) <= 1.1 * len(program)
    random = np.random.default_rng(seed)
    x, y = random.normal(size=12), random.normal(size=(6, 2))
    expected = interpret(program, x, y)
    agree(interpret(after, x, y), expected, 1e-10)
    agree(interpret(again, x, y), expected, 1e-10)


def test_a_recurrence_has_as_many_steps_for_any_number_of_times(monkeypatch):
    def steps(n: int) -> int:
        def f(x):
            s, lp = x[0], 0.0
            for t in range(n):
                s = x[1] * s + Y[t % 1000]
                lp = lp + vm.normal_lpdf(Y[t % 1000], s, np.exp(x[2]))
            return lp

        return len(optimised(plain(f, np.array([0.1, 0.5, 0.2]), monkeypatch)))

    assert steps(500) == steps(2000)


def test_members_of_groups_take_their_locations_by_one_gather(monkeypatch):
    """The member before the others has a location of its own, which is a row of the same array."""
    groups = np.arange(600) * 7 % 30

    def log_density(x: Any) -> Any:
        locations, total = [x[0] + np.exp(x[1]) * x[2 + k] for k in range(30)], 0.0
        for n in range(600):
            total = total + vm.normal_lpdf(0.01 * n, locations[groups[n]], 1.5)
        return total

    check(log_density, np.linspace(-0.5, 0.5, 32), 25, monkeypatch)
