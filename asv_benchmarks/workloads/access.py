"""Single elements of an array variable: reading, writing and gathering. And the memory of
arrays.
"""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
import timing
from budgets import Budget
from timing import arena_bytes, duration, entries

import varmat as vm
from workloads.vectors import vector, warm, weighted_vector, weights
from workloads.workload import Workload

N = 1024
# How many elements are read or written, one after the other.
COUNT = 100
# How many elements are gathered for each element of the array.
TIMES = 10


@cache
def places(n: int) -> tuple[int, ...]:
    """Return places that all differ."""
    return tuple(np.random.default_rng(5).permutation(n)[:COUNT].tolist())


@cache
def gathered(n: int) -> np.ndarray:
    return np.random.default_rng(5).integers(n, size=TIMES * n)


def assigned(xp: Any, a: Any, place: int, value: Any) -> Any:
    """Return the array with an element assigned. The assignment is in place, except in JAX, which
    makes a new array.
    """
    if getattr(xp, "library", "") == "jax":
        return a.at[place].set(value)
    a[place] = value
    return a


# --- reading ---


def total_of(x: Any, wanted: tuple[int, ...]) -> Any:
    total = 0.0
    for i in wanted:
        total = total + x[i]
    return total


def reads_by_hand(x: np.ndarray) -> Any:
    total, gradient = 0.0, np.zeros(x.size)
    for i in places(x.size):
        total += x.item(i)
        gradient[i] += 1.0
    return total, (gradient,)


# --- writing ---


def written(xp: Any, n: int) -> Callable[..., Any]:
    def function(x: Any, v: Any, w: Any) -> Any:
        a = 1.0 * x
        for i in places(n):
            a = assigned(xp, a, i, v)
        return w @ a

    return function


def writes_by_hand(x: np.ndarray, v: float, w: np.ndarray) -> Any:
    a = warm("written", x.size)
    np.copyto(a, x)
    gradient, in_v = w.copy(), 0.0
    for i in places(x.size):
        a[i] = v
        in_v += w.item(i)
        gradient[i] = 0.0
    return float(w.dot(a)), (gradient, in_v)


def recurrence(xp: Any, n: int) -> Callable[..., Any]:
    """Filter the first elements in place, each with the one before it."""

    def function(x: Any, w: Any) -> Any:
        a = 1.0 * x
        for i in range(1, COUNT + 1):
            a = assigned(xp, a, i, 0.9 * a[i - 1] + x[i])
        return w @ a

    return function


def recurrence_by_hand(x: np.ndarray, w: np.ndarray) -> Any:
    a = warm("written", x.size)
    np.copyto(a, x)
    last = a.item(0)
    for i in range(1, COUNT + 1):
        a[i] = last = 0.9 * last + a.item(i)
    gradient = w.copy()
    adjoint = gradient.item(COUNT)
    for i in range(COUNT - 1, -1, -1):
        gradient[i] = adjoint = gradient.item(i) + 0.9 * adjoint
    return float(w.dot(a)), (gradient,)


# --- gathering ---


def gather_by_hand(x: np.ndarray, index: np.ndarray, w: np.ndarray) -> Any:
    value = float(w.dot(np.take(x, index, out=warm("gathered", index.size))))
    return value, (np.bincount(index, w, x.size),)


# --- the rows ---

# `budgets` measures the loops with arrays of scalar variables, without the time to make these
# variables.
for name, variables, point, expression, by_hand, without in (
    (
        f"{COUNT} reads",
        1,
        vector,
        lambda xp, n: lambda x: total_of(x, places(n)),
        reads_by_hand,
        (),
    ),
    (
        f"{COUNT} writes",
        2,
        lambda n: (*vector(n), 0.3, weights(n)),
        written,
        writes_by_hand,
        ("autograd",),
    ),
    (f"{COUNT} steps in place", 1, weighted_vector, recurrence, recurrence_by_hand, ("autograd",)),
):
    Workload("access", name, (N, 100_000), point, expression, by_hand, variables, without=without)
Workload(
    "access",
    "10 N gathered",
    (64, N, 100_000),
    lambda n: (*vector(n), gathered(n), weights(TIMES * n)),
    lambda xp, n: lambda x, index, w: w @ x[index],
    gather_by_hand,
    matvar=(N,),
)


# --- budgets: elements ---


def write_all(x: Any) -> None:
    """Set all elements to the same scalar variable."""
    v = x[0]
    for i in places(N):
        x[i] = v


def writes_read_once(x: Any) -> Any:
    write_all(x)
    return x[places(N)[-1]]


def writes_summed(x: Any) -> Any:
    write_all(x)
    return np.sum(x)


# An assignment into a matvar exchanges a reference and records nothing. The third case shows its
# cost together with a use of the array.
ELEMENTS: dict[str, Callable[[Any], Any]] = {
    f"{COUNT} reads, summed": lambda x: total_of(x, places(N)),
    f"{COUNT} writes, one read": writes_read_once,
    f"{COUNT} writes, all summed": writes_summed,
    "10 N gathered, weighted": lambda x: weights(TIMES * N) @ x[gathered(N)],
}


def seconds_of(function: Callable[[Any], Any], make: Callable[[Any], Any]) -> float:
    """Return the seconds of recording and reverse pass, without those of making the variables."""
    with vm.nested():
        x = make(vector(N)[0])
        start = time.perf_counter()
        function(x).grad()
        return time.perf_counter() - start


def against_scalars(function: Callable[[Any], Any]) -> tuple[float, float]:
    """Return the seconds with an array variable and with an array of scalar variables; the two take
    turns.
    """
    samples: dict[str, list[float]] = {"var": [], "matvar": []}
    gc.disable()
    try:
        for _ in range(31):
            for kind, seconds in samples.items():
                seconds.append(seconds_of(function, getattr(vm, kind)))
    finally:
        gc.enable()
    return median(samples["var"]), median(samples["matvar"])


def bare_writes() -> None:
    """Write into an array in the simplest way that is possible in Python: without checks, without
    runs of writes, and without looking at what is written.
    """
    values, source, adjoints, log = vector(N)[0].copy(), 0.3, np.zeros(N), []

    def write(i: int, value: float) -> None:
        log.append((i, values[i]))
        values[i] = value

    for i in places(N):
        write(i, source)
    adjoints[places(N)[-1]] = 1.0
    of_source = 0.0
    for i, old in reversed(log):
        of_source += adjoints.item(i)
        adjoints[i] = 0.0
        values[i] = old


def elements() -> list[Budget]:
    found = []
    least = median([timing.seconds_of(bare_writes) for _ in range(31)])
    for name, function in ELEMENTS.items():
        ours, scalars = against_scalars(function)
        ratio = ours / scalars
        title = f"{name}: varmat / matvar, at most 4"
        floor = (
            f"; writes that check nothing: {least / scalars:.3g}" if "writes, one" in name else ""
        )
        found.append(
            Budget(5, title, ratio, 4, ratio <= 4, f"{duration(ours)}, {duration(scalars)}{floor}")
        )
    count = entries(lambda x: x[gathered(N)], vector(N)[0])
    return [*found, Budget(5, "tape entries of a gather of 10 N: one", count, 1, count == 1)]


# --- budgets: memory ---

LARGE = 100_000
# The share of an array that objects, and rounding up to lines of memory, may take.
BESIDE = 0.01
# How many arrays of the length of `x` each case writes before the reverse pass: results, and values
# saved in addition.
WRITTEN: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "sum(x)": (0, np.sum),
    "sum of views": (0, lambda x: np.sum(x[1:]) + np.sum(x[::-2]) + np.sum(x.reshape(2, -1).T)),
    "x @ x": (0, lambda x: x @ x),
    "x + x[::-1]": (1, lambda x: np.sum(x + x[::-1])),
    "x * x[::-1]": (1, lambda x: np.sum(x * x[::-1])),
    "x**2": (1, lambda x: np.sum(x**2)),
    "logsumexp": (1, lambda x: vm.logsumexp(x)),
    "softmax": (1, lambda x: np.max(vm.softmax(x))),
    "six operations": (6, lambda x: np.sum(np.log1p(np.exp(-((0.5 * x - 0.25) ** 2))))),
}
# Operations whose derivatives need no values.
LINEAR: dict[str, Callable[[Any], Any]] = {
    "x + x[::-1]": lambda x: x + x[::-1],
    "x - x[::-1]": lambda x: x - x[::-1],
    "-x": lambda x: -x,
    "3 x": lambda x: 3.0 * x,
    "sum": np.sum,
    "mean": np.mean,
    "sum of columns": lambda x: np.sum(x.reshape(100, -1), axis=0),
    "cumsum": np.cumsum,
    "diff": np.diff,
    "roll": lambda x: np.roll(x, 3),
    "concatenate": lambda x: np.concatenate([x, x]),
}


def arena_limit() -> Budget:
    """Each element written may take two numbers, a value and an adjoint."""
    (x,) = vector(LARGE)
    used = {
        name: arena_bytes(vm.value_and_grad(function), x) / (16 * x.size) - arrays
        for name, (arrays, function) in WRITTEN.items()
    }
    worst = max(used, key=lambda name: used[name])
    title = "arena beyond 16 bytes for each element written, in arrays: none"
    return Budget(
        6,
        title,
        used[worst],
        BESIDE,
        used[worst] <= BESIDE,
        f"of {', '.join(used)}; closest: {worst}",
    )


def kept_beyond_result(function: Callable[[Any], Any], x: np.ndarray) -> float:
    """Return how many arrays of the length of `x` are held after an operation, besides its
    result.
    """
    with vm.nested() as tape:
        variable = vm.var(x)
        function(variable)  # the arena then has its blocks
        taken, (held, _) = tape.arena.bytes_taken, tracemalloc.get_traced_memory()
        result = function(variable)
        held = tracemalloc.get_traced_memory()[0] - held + (tape.arena.bytes_taken - taken) // 2
        return float(held / 8 - result.size) / x.size


def nothing_kept() -> Budget:
    (x,) = vector(LARGE)
    tracemalloc.start()
    try:
        kept = {name: kept_beyond_result(function, x) for name, function in LINEAR.items()}
    finally:
        tracemalloc.stop()
    worst = max(kept, key=lambda name: kept[name])
    title = "arrays kept beyond the result by operations whose derivatives need no value: none"
    return Budget(
        6,
        title,
        kept[worst],
        BESIDE,
        kept[worst] <= BESIDE,
        f"of {', '.join(kept)}; closest: {worst}",
    )


ADDITIONS, ROWS = 100, 1000


def peak_of_process() -> int:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * next(
        int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")
    )


def additions(x: Any, b: np.ndarray, count: int = ADDITIONS) -> Any:
    for _ in range(count):
        x = x + b
    return np.sum(x)


def peaks_of_additions() -> list[float]:
    """Return the peak memory of a first and of a second gradient of many additions, in arrays, less
    their results.
    """
    x = np.ones((ROWS, ROWS))
    b = x.copy()
    gradient = vm.value_and_grad(additions)
    gradient(x[:8, :8].copy(), b[:8, :8])
    before = peak_of_process()
    peaks = []
    for _ in range(2):
        gradient(x, b)
        peaks.append((peak_of_process() - before) / x.nbytes - ADDITIONS)
    return peaks


def peak_of_additions() -> Budget:
    """Measure in a process of its own, whose peak comes from nothing else."""
    title = (
        f"{ADDITIONS} additions to {ROWS} x {ROWS}: peak beyond the results, in arrays, at most 3"
    )
    if not Path("/proc/self/status").exists():
        return Budget(6, title, math.nan, 3, None, "only on Linux")
    code = "from workloads import access; print(*access.peaks_of_additions())"
    folder = Path(__file__).parents[1]
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder
    ).stdout.split()
    first, second = map(float, found)
    worst = max(first, second)
    return Budget(
        6, title, worst, 3, worst <= 3, f"first gradient {first:.3g}, second {second:.3g}"
    )


def budgets() -> list[Budget]:
    """Measure the budgets of elements and memory."""
    return [*elements(), arena_limit(), nothing_kept(), peak_of_additions()]
