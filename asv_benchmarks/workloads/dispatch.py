"""Many small operations, where calls take the time and not arithmetic. And the cost of the tape."""

from __future__ import annotations

import gc
import importlib
import math
import time
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from typing import Any

import bare
import environment  # noqa: F401 - before NumPy
import numpy as np
import peers
from budgets import Budget
from timing import Timing, duration, entries, timings

import varmat as vm
from varmat.programs.run import has_native
from workloads.vectors import vector, warm
from workloads.workload import FAMILIES, Workload, check

# Treatment effects and standard errors of the eight schools: Rubin (1981), Journal of Educational
# Statistics 6, 377-401.
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS_CONSTANT = float(
    -8.5 * math.log(2 * math.pi) - np.sum(np.log(ERRORS)) - math.log(5.0) - math.log(5.0 * math.pi)
)
SCHOOLS_POINT = np.array([0.3, 0.2, -0.2, -0.3, 0.1, 0.3, 0.1, -0.2, -0.2, 0.1])

STEPS = (10, 100, 1000)


def repeated(xp: Any, count: int, step: Callable[[Any], Any], x: Any) -> Any:
    """Return ``step(step(...x))``. JAX compiles one step in a loop instead of a long program."""
    if getattr(xp, "library", "") == "jax":
        return importlib.import_module("jax").lax.fori_loop(0, count, lambda _, x: step(x), x)
    for _ in range(count):
        x = step(x)
    return x


# --- scalars ---


def nested_sines_by_hand(x: float, count: int) -> Any:
    gradient = 1.0
    for _ in range(count):
        gradient *= math.cos(x)
        x = math.sin(x)
    return x, (gradient,)


def scalar_chain(x: Any, operations: int) -> Any:
    """Do the given number of additions and multiplications of scalars, one after the other."""
    for _ in range(operations // 2):
        x = x * 0.999 + 0.001
    return x


def scalar_chain_by_hand(x: float, operations: int) -> Any:
    gradient = 1.0
    for _ in range(operations // 2):
        x = x * 0.999 + 0.001
        gradient *= 0.999
    return x, (gradient,)


def halved_by_hand(x: float, count: int) -> Any:
    for _ in range(count):
        x = (x + x) / 2.0
    return x, (1.0,)


def shared_by_hand(x: float, count: int) -> Any:
    """Sum over the 3**count paths from the result to `x`, with a factor for each step."""
    gradient = 1.0
    for _ in range(count):
        gradient *= 1.0 - 0.2 * x
        x = x - 0.1 * x * x
    return x, (gradient,)


# --- short arrays ---


def halved_array_by_hand(x: np.ndarray, count: int) -> Any:
    y = warm("halved", x.size)
    np.copyto(y, x)
    for _ in range(count):
        np.add(y, y, y)
        np.divide(y, 2.0, y)
    return float(np.add.reduce(y)), (np.ones(x.size),)


def multiplied(x: Any, y: Any, count: int) -> Any:
    for _ in range(count):
        x = x * y
    return x


def multiplied_by_hand(x: np.ndarray, y: np.ndarray, count: int) -> Any:
    products = warm("products", count + 1, x.size)
    products[0] = x
    for before, after in pairwise(products):
        np.multiply(before, y, after)
    in_x, in_y, part = np.ones(x.size), np.zeros(x.size), warm("part", x.size)
    for before in products[-2::-1]:
        np.multiply(in_x, before, part)
        np.add(in_y, part, in_y)
        np.multiply(in_x, y, in_x)
    return float(np.add.reduce(products[-1])), (in_x, in_y)


def eight_schools(xp: Any) -> Callable[[Any], Any]:
    """Return the non-centred eight-schools log density of ``(theta_trans[8], mu, log tau)``,
    written with operators and elementary functions.
    """
    effects, errors = xp.asarray(EFFECTS), xp.asarray(ERRORS)

    def log_density(unknowns: Any) -> Any:
        theta_trans, mu, log_tau = unknowns[:8], unknowns[8], unknowns[9]
        tau = xp.exp(log_tau)
        residual = (effects - (mu + tau * theta_trans)) / errors
        return (
            SCHOOLS_CONSTANT
            - 0.5 * (xp.sum(residual * residual) + xp.sum(theta_trans * theta_trans))
            - 0.5 * (mu / 5.0) ** 2
            - xp.log1p((tau / 5.0) ** 2)
            + log_tau
        )

    return log_density


def eight_schools_by_hand(unknowns: np.ndarray) -> Any:
    theta_trans, mu, log_tau = unknowns[:8], float(unknowns[8]), float(unknowns[9])
    tau = math.exp(log_tau)
    residual = (EFFECTS - (mu + tau * theta_trans)) / ERRORS
    ratio = (tau / 5.0) ** 2
    value = (
        SCHOOLS_CONSTANT
        - 0.5 * (residual.dot(residual) + theta_trans.dot(theta_trans))
        - 0.5 * (mu / 5.0) ** 2
        - math.log1p(ratio)
        + log_tau
    )
    score = residual / ERRORS
    gradient = np.empty(10)
    np.subtract(tau * score, theta_trans, gradient[:8])
    gradient[8] = np.add.reduce(score) - mu / 25.0
    gradient[9] = tau * score.dot(theta_trans) - 2.0 * ratio / (1.0 + ratio) + 1.0
    return float(value), (gradient,)


# --- more and more inputs ---


def sine_times_x_by_hand(x: np.ndarray) -> Any:
    sine, gradient = np.sin(x, warm("sine", x.size)), np.cos(x)
    gradient *= x
    gradient += sine
    return float(sine.dot(x)), (gradient,)


# --- the rows ---


def row(
    name: str, sizes: tuple[int, ...], point: Any, expression: Any, by_hand: Any, variables: int = 1
) -> Workload:
    return Workload("dispatch", name, sizes, point, expression, by_hand, variables, dispatch=True)


def steps(start: Any, step: Callable[[Any], Callable[[Any], Any]], end: str = "") -> dict[str, Any]:
    """Return the point and the expression of a row. The size is the number of steps from `start`,
    and `end` makes a scalar of the last result.

    `step` takes the namespace and returns the function that is called, so that nothing else is
    called in between.
    """

    def expression(xp: Any, n: int) -> Any:
        last, one = getattr(xp, end) if end else lambda x: x, step(xp)
        return lambda x, _: last(repeated(xp, n, one, x))

    return {"point": lambda n: (start, n), "expression": expression}


def multiplied_in(xp: Any, n: int) -> Any:
    def function(x: Any, y: Any, _: int) -> Any:
        return xp.sum(repeated(xp, n, lambda x: x * y, x))

    return function


row("nested sines", (2, 8, 64, 1024), **steps(0.7, lambda xp: xp.sin), by_hand=nested_sines_by_hand)
row(
    "x * a + b of a scalar",
    STEPS,
    lambda n: (1.5, n),
    lambda xp, n: lambda x, _: repeated(xp, n // 2, lambda x: x * 0.999 + 0.001, x),
    scalar_chain_by_hand,
)
row(
    "(x + x) / 2, scalar",
    (*STEPS, 10_000),
    **steps(0.7, lambda xp: lambda x: (x + x) / 2.0),
    by_hand=halved_by_hand,
)
row(
    "(x + x) / 2, 8 elements",
    (*STEPS, 10_000),
    **steps(np.linspace(1, 2, 8), lambda xp: lambda x: (x + x) / 2.0, "sum"),
    by_hand=halved_array_by_hand,
)
# There are 3**40 paths, so a reverse pass along each path would never end.
row(
    "x - x * x / 10",
    (10, 20, 40),
    **steps(0.7, lambda xp: lambda x: x - 0.1 * x * x),
    by_hand=shared_by_hand,
)
row(
    "products of 8 elements",
    STEPS,
    lambda n: (np.linspace(1, 2, 8), np.linspace(0.999, 1.001, 8), n),
    multiplied_in,
    multiplied_by_hand,
    variables=2,
)
row(
    "eight schools, operators",
    (10,),
    lambda n: (SCHOOLS_POINT,),
    lambda xp, n: eight_schools(xp),
    eight_schools_by_hand,
)
# This row is not about calls alone: it shows how the gradient grows with the inputs, compared with
# the value.
Workload(
    "dispatch",
    "sum(sin(x) * x)",
    tuple(10**i for i in range(1, 7)),
    vector,
    lambda xp, n: lambda x: xp.sum(xp.sin(x) * x),
    sine_times_x_by_hand,
    limits={100_000: 1.4},
)


# --- budgets ---

# Seconds per turn of each competitor, and the number of turns.
SECONDS, TURNS = 0.01, 21
COUNT = 1000
LENGTHS = (1_000, 1_000_000)
VIEWS: dict[str, Callable[[Any], Any]] = {
    "a[1:]": lambda a: a[1:],
    "a[::-1, ::2]": lambda a: a[::-1, ::2],
    "a[None]": lambda a: a[None],
    "a.T": lambda a: a.T,
    "a.reshape(8, 3)": lambda a: a.reshape(8, 3),
    "np.swapaxes(a, 0, 1)": lambda a: np.swapaxes(a, 0, 1),
}


def multiply_chain(reverse: bool) -> None:
    """Record a chain of `COUNT` products of arrays of length 8."""
    with vm.nested():
        x, y = vm.var(np.linspace(1, 2, 8)), vm.var(np.linspace(0.999, 1.001, 8))
        last = multiplied(x, y, COUNT)
        if reverse:
            np.sum(last).grad()


def bare_chain() -> Any:
    """Record the same chain on a tape that checks nothing."""

    def chain(x: Any) -> Any:
        y = x * 1.0
        return bare.Namespace.sum(multiplied(x, y, COUNT))

    return bare.gradient_function(chain)(np.linspace(0.999, 1.001, 8))


def plain_multiplies() -> None:
    a, b = np.linspace(1, 2, 8), np.linspace(0.999, 1.001, 8)
    for _ in range(COUNT):
        np.multiply(a, b)


def densities_of_eight() -> None:
    """Record small densities, sum them, and run the reverse pass."""
    with vm.nested():
        y, mu, sigma = vm.var(np.linspace(-1, 1, 8)), vm.var(0.3), vm.var(1.2)
        np.sum(np.stack([vm.normal_lpdf(y, mu, sigma) for _ in range(COUNT)])).grad()


def figure(title: str, time: Timing, to: Timing, note: str = "") -> Budget:
    """Make a figure without a bound. Small computations cannot be faster than Python, unless they
    are recorded.
    """
    return Budget(
        0,
        title,
        float(time.over(to)),
        math.inf,
        True,
        ", ".join(filter(None, (duration(time), duration(to), note))),
    )


def one_operation() -> list[Budget]:
    """Compare the entries of the tape with the call of NumPy or of Python that each of them
    contains.
    """

    def empty() -> None:
        pass

    def calls() -> None:
        for _ in range(COUNT):
            empty()

    gradient = vm.value_and_grad(lambda x: scalar_chain(x, COUNT))
    functions = {
        "plain": plain_multiplies, "both": lambda: multiply_chain(reverse=True), "bare": bare_chain,
         "density": densities_of_eight,
        "calls": calls, "chain": lambda: gradient(1.5),
    }  # fmt: skip
    t = timings(functions, SECONDS, TURNS)
    least = f"for {COUNT}; a tape that checks nothing: {float(t['bare'].over(t['plain'])):.3g}"
    return [
        figure(
            "a multiply of length 8, eager, forward and reverse / np.multiply",
            t["both"],
            t["plain"],
            least,
        ),
        figure(
            "a scalar operation, eager, forward and reverse / an empty Python call",
            t["chain"],
            t["calls"],
            f"for {COUNT}",
        ),
        figure(
            "normal_lpdf of 8 variables, eager, forward and reverse / np.multiply",
            t["density"],
            t["plain"],
            f"for {COUNT}",
        ),
    ]


def small_model() -> list[Budget]:
    """Compare eight schools with its value alone, and the eager gradient with the simplest possible
    tape.
    """
    workload = next(each for each in FAMILIES["dispatch"] if each.name.startswith("eight schools"))
    functions = {
        name: peers.gradient_function(name, workload, 10)
        for name in ("plain", "varmat", "recorded", "numpy runner")
    }
    functions["bare"] = bare.gradient_function(eight_schools(bare.Namespace()))
    check(
        functions["bare"](SCHOOLS_POINT),
        eight_schools_by_hand(SCHOOLS_POINT),
        "a tape that checks nothing",
    )
    t = timings(
        {name: lambda f=f: f(SCHOOLS_POINT) for name, f in functions.items()}, SECONDS, TURNS
    )
    alone = [
        figure(f"eight schools, {name}: gradient / value alone", t[name], t["plain"])
        for name in functions
        if name != "plain"
    ]
    return [
        *alone,
        figure("eight schools, varmat / a tape that checks nothing", t["varmat"], t["bare"]),
    ]


def one_step() -> Budget:
    """Measure a step of a program, including its arithmetic on 8 elements, for many points in the
    compiled loop.
    """
    title, limit = "nanoseconds for a step of 8 elements, native runner, at most 30", 30.0
    if not has_native():
        return Budget(8, title, math.nan, limit, None, "llvmlite is not installed")
    points = np.tile(np.linspace(0.5, 1.0, 8), (COUNT, 1))

    gradient = vm.recorded(lambda x: np.sum(multiplied(x, x * 0.999, 100)), runner="native")
    gradient(points[0])
    t = timings({"steps": lambda: gradient.map(points)}, SECONDS, TURNS)
    count = len(gradient.program.steps)
    nanoseconds = 1e9 * float(t["steps"]) / (COUNT * count)
    return Budget(
        8,
        title,
        nanoseconds,
        limit,
        nanoseconds <= limit,
        f"{count} steps, {COUNT} points: {duration(t['steps'])}",
    )


def views() -> Budget:
    counts = {name: entries(view, np.ones((4, 6))) for name, view in VIEWS.items()}
    recorded = [name for name, count in counts.items() if count]
    return Budget(
        0,
        "tape entries of views: none",
        max(counts.values()),
        0,
        not recorded,
        ", ".join(recorded or counts),
    )


def seconds_per_entry(length: int, collect: bool) -> tuple[float, float]:
    """Return the seconds per entry for recording and for the reverse pass of a scalar tape."""
    repeats = max(1, 100_000 // length)
    record = sweep = 0.0
    gc.collect()
    (gc.enable if collect else gc.disable)()
    try:
        for _ in range(repeats):
            with vm.nested():
                x = vm.var(1.5)
                start = time.perf_counter()
                y = scalar_chain(x, length)
                middle = time.perf_counter()
                y.grad()
                sweep += time.perf_counter() - middle
                record += middle - start
    finally:
        gc.enable()
    return record / (repeats * length), sweep / (repeats * length)


def long_tapes() -> Budget:
    """The cyclic collector is off, as it is in functionals while they record."""
    samples: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS}
    for _ in range(3):
        for length in LENGTHS:
            samples[length].append(seconds_per_entry(length, collect=False))
    short, long = (
        [median(part) for part in zip(*samples[length], strict=True)] for length in LENGTHS
    )
    record, _ = seconds_per_entry(LENGTHS[1], collect=True)
    ratio = sum(long) / sum(short)
    note = (
        f"{duration(sum(short))} to {duration(sum(long))}; reverse pass alone "
        f"{long[1] / short[1]:.3g} times; "
        f"with the cyclic collector on recording takes {record / long[0]:.3g} times as long"
    )
    return Budget(
        7, "cost per entry of a tape of 10^6 / of 10^3, at most 1.5", ratio, 1.5, ratio <= 1.5, note
    )


def flat_memory() -> Budget:
    calls, limit = 10_000, 100.0
    gradient = vm.value_and_grad(eight_schools(peers.namespace("varmat")))

    def run(count: int) -> int:
        for _ in range(count):
            gradient(SCHOOLS_POINT)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        grown = (-run(100) + run(calls)) / 1000
    finally:
        tracemalloc.stop()
    return Budget(
        7,
        f"kilobytes held after {calls} more gradients, at most {limit:g}",
        grown,
        limit,
        grown <= limit,
    )


def budgets() -> list[Budget]:
    """Measure the budgets of calls and of the tape."""
    return [*one_operation(), *small_model(), one_step(), views(), long_tapes(), flat_memory()]
