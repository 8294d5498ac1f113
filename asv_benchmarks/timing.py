"""Measuring times of competitors that take turns, and figures that do not depend on the machine."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from statistics import geometric_mean, median
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np

import varmat as vm

Timed = Callable[[], Any]
# A function that takes longer than this many seconds is called once.
CAP = 2.0


class Timing(float):
    """The median over the turns, of seconds per call or of a ratio. `samples` are the values of all
    turns, and `low` and `high` are their 10-90 % range.
    """

    samples: tuple[float, ...]

    def __new__(cls, samples: Any) -> Timing:
        figure = super().__new__(cls, median(samples))
        figure.samples = tuple(samples)
        return figure

    @property
    def low(self) -> float:
        return float(np.quantile(self.samples, 0.1))

    @property
    def high(self) -> float:
        return float(np.quantile(self.samples, 0.9))

    def over(self, other: Timing) -> Timing:
        """Return the ratio to a competitor of the same run. It is taken turn by turn, so that a
        slow turn slows both.
        """
        if len(self.samples) == len(other.samples):
            return Timing([a / b for a, b in zip(self.samples, other.samples, strict=True)])
        return Timing([a / other for a in self.samples])


def seconds_of(function: Timed, count: int = 1) -> float:
    """Return the seconds per call of `count` calls in a row. A function with a method
    ``seconds(count)`` measures its own time.
    """
    timed = getattr(function, "seconds", None)
    if timed is not None:
        return float(timed(count))
    calls = range(count)
    start = time.perf_counter()
    for _ in calls:
        function()
    return (time.perf_counter() - start) / count


def at(function: Callable[..., Any], *args: Any) -> Timed:
    """Return a function at a point, to be timed. If the function has a method ``at``, use that."""
    own = getattr(function, "at", None)
    return partial(function, *args) if own is None else own(*args)  # type: ignore[no-any-return]


def timings(
    functions: Mapping[str, Timed], seconds: float, turns: int, cap: float = CAP
) -> dict[str, Timing]:
    """Return the seconds per call of each function. In every turn each function runs in a loop of
    about `seconds`.

    A function that compiles itself must have been called once before.
    """
    loops, figures = {}, {}
    for name, function in functions.items():
        first = seconds_of(function)
        figures[name] = [first] if first > cap else []
        if first <= cap:
            loops[name] = max(1, int(seconds / max(seconds_of(function), 1e-7)))
    for _ in range(turns):
        for name, count in loops.items():
            figures[name].append(seconds_of(functions[name], count))
    return {name: Timing(samples) for name, samples in figures.items()}


def duration(seconds: float) -> str:
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 999.5:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def mean_ratio(ratios: Any) -> float:
    """Return the geometric mean, or NaN for no ratios."""
    ratios = [float(ratio) for ratio in ratios]
    return geometric_mean(ratios) if ratios else float("nan")


def entries(f: Any, *args: Any) -> int:
    """Count the tape entries that `f` records for variables with these values."""
    with vm.nested() as tape:
        f(*map(vm.var, args))
        return len(tape)


def arena_bytes(gradient: Any, *args: Any) -> int:
    """Return the bytes of values and adjoints that a call takes from the arena."""
    with vm.nested() as tape:
        before = tape.arena.bytes_taken
    gradient(*args)
    return int(tape.arena.bytes_taken - before)


def peak_bytes(function: Timed) -> int:
    """Return the peak memory of NumPy and Python during a call, less the memory that they hold
    before it.
    """
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
