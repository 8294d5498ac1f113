"""Recurrences found again in recordings: random loops over time agree with eager evaluation at
points away from the recorded one, and their programs do not grow with the number of steps.

Run as a script, it checks many of them: ``python tests/programs/test_recurrences.py 5000 1``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import varmat as vm
from programs.verified import verify
from varmat.programs.ir.interpret import interpret
from varmat.programs.ir.program import Program

UNARY = [
    np.tanh,
    np.sin,
    lambda x: np.exp(-x * x),
    lambda x: 0.5 * x - 0.1,
    lambda x: x / (1 + x * x),
]
BINARY = [
    lambda x, y: x * y, lambda x, y: x - 0.3 * y, np.add, np.hypot,
    lambda x, y: np.where(x > y, x, 0.5 * y), lambda x, y: x / (1.5 + np.cos(y)), np.maximum,
    lambda x, y: np.where(x < 0.1, y, x * y),
]  # fmt: skip


class Filled:
    """A list whose values are written into the rows of an array, some of them by ``+=``."""

    def __init__(self, q: Any, values: list[Any], most: int) -> None:
        self.array = np.zeros_like(q, shape=(most, *np.shape(values[0])))
        self.length = 0
        for value in values:
            self.append(value)

    def append(self, value: Any) -> None:
        if self.length % 50 < 25:
            self.array[self.length] = value
        else:
            self.array[self.length] += value
        self.length += 1

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        return self.array[: self.length][index]

    def __iter__(self) -> Any:
        return (self[t] for t in range(self.length))


class Source:
    """A random loop, as a list of decisions that every run of the function repeats.

    The argument has ``trips + 8`` elements."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.trips = int(rng.integers(33, 60))
        self.shape = [(), (), (), (2,), (3,), (2, 2)][rng.integers(6)]
        self.lag = int(rng.integers(1, 4))
        self.reset = int(rng.integers(1 << 31))
        n = self.trips + 8
        self.size = n
        self.numbers, self.arrays = rng.normal(size=n).tolist(), rng.normal(size=(n, *self.shape))
        self.places = rng.permutation(n)
        self.counts = rng.poisson(3.0, size=n).tolist()
        self.length = int(rng.integers(2, 9))
        # Whether values are written into an array; a second loop may append to a list again.
        self.is_filled = bool(rng.integers(2))

    def __call__(self, q: Any) -> Any:
        self.rng = np.random.default_rng(self.reset)
        total = self.loop(q, self.start(q), 0)
        if self.rng.random() < 0.4:
            total = total + self.loop(q, [*self.values], 1)
        return total

    def start(self, q: Any) -> list[Any]:
        pick = self.rng.integers(3)
        made = [0.3, q[0], np.exp(q[1])][pick]
        one = np.ones(self.shape) if self.shape else 1.0
        return [made * one] * self.lag

    def loop(self, q: Any, values: list[Any], number: int) -> Any:
        rng, earlier = self.rng, getattr(self, "values", None) if number else None
        choices = rng.integers(1 << 30, size=self.length)
        totals: list[Any] = [0.0, q[2], 0.0]
        kinds = rng.integers(0, 10, size=3)
        shared = np.tanh(q[3])
        peeled = int(rng.integers(0, 3))
        inner = int(rng.integers(0, 12))
        first = len(values)
        if self.is_filled and (number == 0 or self.trips % 2):
            values = Filled(q, values, first + self.trips + 3)  # type: ignore[assignment]
        for t in range(first, self.trips + int(rng.integers(0, 3))):
            x = values[t - 1] if rng.integers(1) else values[-1]
            if t - first < peeled:
                x = x * 0.5 + 0.1
            for c in choices.tolist():
                x = self.step(c, x, q, t, values, earlier, shared)
            if inner == 0:
                for j in range(3):
                    x = x * q[j] + 0.2
            x = np.tanh(x)
            values.append(x)
            term = np.sum(x) if self.shape else x
            for k, kind in enumerate(kinds.tolist()):
                totals[k] = self.add(kind, totals[k], term, q, t)
        self.values = values
        return self.finish(values, totals)

    def step(
        self, c: int, x: Any, q: Any, t: int, values: list[Any], earlier: Any, shared: Any
    ) -> Any:
        one, two = UNARY[c % 5], BINARY[c // 5 % 8]
        others = [
            lambda: self.numbers[t], lambda: q[t], lambda: values[-min(self.lag, len(values))],
            lambda: shared, lambda: self.arrays[t], lambda: q[self.places[t]],
            lambda: np.sum(q[t : t + 3]), lambda: 0.7, lambda: q[5], lambda: values[-1],
            lambda: np.sum(q[2:5] * self.numbers[t]), lambda: q[[t, 0, 3]][1], lambda: q[-1 - t],
            lambda: (earlier or values)[t // 2 if earlier else -1],
            lambda: vm.lgamma(self.counts[t] + 1.0) * 0.1,
        ]  # fmt: skip
        y = others[c // 40 % len(others)]()
        if self.shape == (2, 2) and c // 600 % 4 == 0:
            return one(x @ (q[:4].reshape(2, 2) * 0.3) + y)
        if self.shape and c // 600 % 7 == 1:
            return one(x) * np.sum(x) * 0.2
        return two(one(x), y + 0.137)

    def add(self, kind: int, total: Any, term: Any, q: Any, t: int) -> Any:
        if kind < 3:
            return total + term
        if kind == 3:
            return total - 0.5 * term + q[t]
        if kind == 4:
            return total + vm.normal_lpdf(self.numbers[t], term, np.exp(q[4]))
        if kind == 5:
            return 0.9 * total + term
        if kind == 6:
            return total + vm.poisson_log_lpmf(self.counts[t], term)
        if kind == 7:
            return total + vm.normal_lpdf(term, q[0], 1.5)
        if kind == 8:
            return np.where(term > 0.0, total + term, total)
        return np.tanh(total) * 0.8 + 0.01 * term * total

    def finish(self, values: list[Any], totals: list[Any]) -> Any:
        end = self.rng.integers(5)
        last = np.sum(values[-1])
        if end == 1:
            last = np.sum(np.stack([*values][-len(values) // 2 :]) ** 2) + values[-2] * 0.1
        elif end == 2:
            last = np.sum(values[self.trips // 2] * values[-1])
        elif end == 3:
            last = np.sum(sum([*values][10:]))
        return np.sum(totals[0] + totals[1] * 0.5 + totals[2]) + np.sum(last)


def loops_in(program: Program) -> int:
    return sum(step.kernel.name == "loop" for step in program.steps)


def close(x: Any, y: Any, tolerance: float = 1e-11) -> None:
    scale = max(float(np.max(np.abs(y))), 1e-3)
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def check(seed: int) -> int:
    """How many loops were found in a random function whose recording agrees with it."""
    f = Source(seed)
    rng = np.random.default_rng(seed + 1)
    x, y = 0.5 * rng.normal(size=(2, f.size))
    recorded = vm.recorded(f, runner="numpy")
    recorded(x)
    value, gradient = vm.value_and_grad(f)(y)
    found, slope = recorded(y)
    close(found, value)
    close(slope, gradient)
    verify(recorded.program)
    interpreted = interpret(recorded.program, y)
    close(interpreted[0], value)
    close(interpreted[1], gradient)
    return loops_in(recorded.program)


@pytest.mark.parametrize("start", [10, 20])
def test_random_recurrences(start: int) -> None:
    assert sum(map(check, range(start, start + 6))) >= 3


def test_a_program_is_as_long_as_its_source() -> None:
    def garch(times: int) -> Any:
        y = np.sin(np.arange(float(times))).tolist()

        def log_density(q: Any) -> Any:
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


def test_a_loop_that_fills_arrays_is_as_short_as_one_that_passes_values_on() -> None:
    def filled(times: int) -> Any:
        y = np.sin(np.arange(float(times)))

        def log_density(q: Any) -> Any:
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
        for each, true in zip(recorded(x + 0.1), vm.value_and_grad(f)(x + 0.1), strict=True):
            close(each, true)
        assert loops_in(recorded.program) == 2
        lengths.add(len(recorded.program))
    assert len(lengths) == 1


def test_a_sum_alone_is_no_recurrence() -> None:
    recorded = vm.recorded(lambda q: sum(np.exp(q[0] * t) for t in range(64)), runner="numpy")
    recorded(np.array([0.01]))
    assert loops_in(recorded.program) == 0


def test_a_recurrence_begins_with_the_first_entry() -> None:
    def f(x: Any) -> Any:
        for _ in range(40):
            x = np.sin(x) + 1.0
        return np.sum(x)

    recorded, x = vm.recorded(f, runner="numpy"), np.array([0.3, 0.7])
    for found, true in zip(recorded(x), vm.value_and_grad(f)(x), strict=True):
        close(found, true)
    assert loops_in(recorded.program) == 2


def test_a_run_ends_where_a_value_of_the_loop_is_refused() -> None:
    def f(q: Any) -> Any:
        x, total = q[0], 0.0
        for t in range(40):
            x = 0.9 * x + q[1]
            total = total + vm.normal_lpdf(0.1 * t, 0.0, x)
        return total

    recorded = vm.recorded(f, runner="numpy")
    recorded(np.array([1.0, 0.2]))
    with pytest.raises(vm.DomainError, match="Scale parameter"):
        recorded(np.array([1.0, -0.2]))


@pytest.mark.parametrize("seed", range(2))
def test_second_derivatives_jacobians_and_maps(seed: int) -> None:
    f = Source(900 + seed)
    rng = np.random.default_rng(seed)
    x, y = 0.5 * rng.normal(size=(2, f.size))
    times = vm.recorded(vm.hessp(f), runner="numpy")
    times(x, y)
    close(times(y, x), vm.hessp(f)(y, x), 1e-9)
    mapped = vm.recorded(f, runner="numpy")
    values, gradients = mapped.map(np.stack([x, y]))
    close(values, [f(x), f(y)])
    close(gradients[1], vm.grad(f)(y))


def test_different_results_of_one_entry_are_different_in_a_loop() -> None:
    def log_density(a: Any, b: Any) -> Any:
        x = np.zeros_like(a, shape=40)
        x[0] = 0.5
        for i in range(1, 40):
            x[i] = np.sqrt(a + b * x[i - 1])
        return np.sum(x)

    # One entry of the tape gives both parameters.
    model = vm.Model(log_density, a=vm.positive(), b=vm.positive(), recorded=True)
    q = np.array([0.3, -0.4])
    value, gradient = model.log_density_gradient(q)
    expected = vm.value_and_grad(model._target)(q, True, True)
    np.testing.assert_allclose(value, expected[0], rtol=1e-14)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-13)


if __name__ == "__main__":
    count, first = map(int, sys.argv[1:])
    found = 0
    for seed in range(first, first + count):
        try:
            found += check(seed)
        except Exception as error:
            print(seed, type(error).__name__, str(error).strip()[:300])
    print(f"{found} loops in {count} functions")
