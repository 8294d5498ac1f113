"""Print the speed of varmat beside that of NumPy, of derivatives written by hand, and of other libraries.

    python asv_benchmarks/compare.py            # everything, a minute or two
    python asv_benchmarks/compare.py --quick    # fewer repeats

Figures in one row come from one run of this script: the competitors take turns, and each figure is the median over the turns.
One thread. A call goes from a plain array to a value and a fresh gradient array, recording and recovery included. PyTorch,
autograd and JAX appear where they are installed. A limit is a bound that the project set itself; "over" marks what misses it.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import platform
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import models
import numpy as np

import varmat as vm

Timed = Callable[[], Any]


def timings(functions: dict[str, Timed], seconds: float, turns: int) -> dict[str, float]:
    """Median seconds per call of each function; in every turn each of them runs in a loop of about `seconds`."""
    loops = {}
    for name, function in functions.items():
        function()
        start = time.perf_counter()
        function()
        loops[name] = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    figures: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(turns):
        for name, function in functions.items():
            count = range(loops[name])
            start = time.perf_counter()
            for _ in count:
                function()
            figures[name].append((time.perf_counter() - start) / len(count))
    return {name: median(samples) for name, samples in figures.items()}


def duration(seconds: float) -> str:
    for unit, scale in (("us", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def row(text: str, figure: str, ratio: float | None = None, limit: float | None = None) -> None:
    """One line: what, how long, how many times the yardstick, and the limit on that."""
    line = f"  {text:<58}{figure:>10}"
    if ratio is not None:
        line += f"{ratio:>9.3g} x"
    if limit is not None:
        line += f"   limit {limit:g}{'' if ratio is None or ratio <= limit else '   over'}"
    print(line)


def one_operation(seconds: float, turns: int) -> None:
    print("\nOne recorded multiply of two arrays of length 8, in a chain of 1000")
    a, b = np.linspace(1, 2, 8), np.linspace(0.999, 1.001, 8)
    count = 1000

    def plain() -> None:
        for _ in range(count):
            np.multiply(a, b)

    def forward() -> Any:
        x, y = vm.var(a), vm.var(b)
        for _ in range(count):
            x = x * y
        return x

    def recorded() -> None:
        with vm.nested():
            forward()

    def differentiated() -> None:
        with vm.nested():
            np.sum(forward()).grad()

    t = timings({"plain": plain, "forward": recorded, "both": differentiated}, seconds, turns)
    numpy = t["plain"]
    row("np.multiply", duration(numpy / count))
    row("VarMat multiply, forward", duration(t["forward"] / count), t["forward"] / numpy)
    row("VarMat multiply, forward and reverse", duration(t["both"] / count), t["both"] / numpy, 9)


def other_libraries(x: np.ndarray) -> dict[str, Timed]:
    """Value and gradient of eight schools in the other libraries that are installed."""
    found: dict[str, Timed] = {}
    if importlib.util.find_spec("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        in_torch = models.eight_schools(torch, torch.tensor)

        def torch_gradient() -> Any:
            leaf = torch.tensor(x, requires_grad=True)
            value = in_torch(leaf)
            value.backward()
            return value.item(), leaf.grad.numpy()

        found["PyTorch, eager"] = torch_gradient
    if importlib.util.find_spec("autograd"):
        autograd = importlib.import_module("autograd")
        gradient = autograd.value_and_grad(models.eight_schools(importlib.import_module("autograd.numpy")))
        found["autograd"] = lambda: gradient(x)
    if importlib.util.find_spec("jax"):
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        compiled = jax.jit(jax.value_and_grad(models.eight_schools(importlib.import_module("jax.numpy"))))
        found["JAX, compiled"] = lambda: tuple(map(np.asarray, compiled(x)))
    return found


def eight_schools(seconds: float, turns: int) -> None:
    print("\nEight schools, 10 unknowns: value and gradient (ratios to the plain evaluation)")
    x = models.SCHOOLS_POINT
    log_density = models.eight_schools()
    gradient = vm.value_and_grad(log_density)
    others = other_libraries(x)
    expected = models.eight_schools_by_hand(x)
    for name, function in {"varmat": lambda: gradient(x), **others}.items():
        value, g = function()
        if not (np.isclose(value, expected[0], rtol=1e-12) and np.allclose(g, expected[1], rtol=1e-10)):
            raise AssertionError(f"{name} disagrees with the derivatives written by hand")
    functions: dict[str, Timed] = {
        "the density in plain NumPy, no derivatives": lambda: log_density(x),
        "by hand in NumPy": lambda: models.eight_schools_by_hand(x),
        "varmat": lambda: gradient(x),
        **others,
    }
    t = timings(functions, seconds, turns)
    plain = t["the density in plain NumPy, no derivatives"]
    for name, figure in t.items():
        row(name, duration(figure), figure / plain, 2.5 if name == "varmat" else None)
    for name, least in (("PyTorch, eager", 8), ("autograd", 15)):
        if name in t:
            times = t[name] / t["varmat"]
            print(f"  varmat is {times:.3g} times as fast as {name} (aim: {least}{'' if times >= least else ', missed'})")


def scalars(seconds: float, turns: int) -> None:
    print("\nScalar tape: a chain of 1000 multiplications and additions of Var, per operation, recorded and swept")
    count = 1000
    gradient = vm.value_and_grad(lambda x: models.scalar_chain(x, count))

    def empty() -> None:
        pass

    def empty_calls() -> None:
        for _ in range(count):
            empty()

    t = timings({"empty": empty_calls, "chain": lambda: gradient(1.5)}, seconds, turns)
    row("empty Python call", duration(t["empty"] / count))
    row("Var operation", duration(t["chain"] / count), t["chain"] / t["empty"], 20)


def large_arrays(seconds: float, turns: int) -> None:
    print(f"\nArrays of length {models.N:,}: value and gradient (ratios to those written by hand in NumPy)")
    x = models.large_point()
    for name, (f, by_hand) in models.LARGE.items():
        gradient = vm.value_and_grad(f)
        value, g = by_hand(x)
        found, g_found = gradient(x)
        if not (np.isclose(found, value, rtol=1e-12) and np.allclose(g_found, g, rtol=1e-11, atol=1e-300)):
            raise AssertionError(f"{name}: varmat disagrees with the derivatives written by hand")
        del g, g_found
        t = timings({"hand": lambda h=by_hand: h(x), "varmat": lambda v=gradient: v(x)}, seconds, turns)  # type: ignore[misc]
        row(f"{name}, by hand", duration(t["hand"]))
        megabytes = models.bytes_from_arena(f, x) / 1e6
        row(f"{name}, varmat ({megabytes:.3g} MB from the arena)", duration(t["varmat"]), t["varmat"] / t["hand"], 1.2)


def counts() -> None:
    print("\nTape entries")
    matrix = np.ones((4, 6))
    views = {
        "a[1:]": lambda a: a[1:],
        "a[::-1, ::2]": lambda a: a[::-1, ::2],
        "a[None]": lambda a: a[None],
        "a.T": lambda a: a.T,
        "a.reshape(8, 3)": lambda a: a.reshape(8, 3),
        "np.swapaxes(a, 0, 1)": lambda a: np.swapaxes(a, 0, 1),
    }
    for name, view in views.items():
        row(name, str(models.entries(view, matrix)), limit=0)
    row("eight schools", str(models.entries(models.eight_schools(), models.SCHOOLS_POINT)))


def long_tapes(turns: int) -> None:
    print("\nLong scalar tapes: seconds per entry, and what the cyclic collector costs")
    figures: dict[tuple[int, bool], list[tuple[float, float]]] = {}
    lengths = (1_000, 1_000_000)
    for _ in range(max(1, turns // 10)):
        for length in lengths:
            for collect in (True, False):
                figures.setdefault((length, collect), []).append(_record_and_sweep(length, collect))
    cost = {key: [median(part) for part in zip(*samples, strict=True)] for key, samples in figures.items()}
    for length in lengths:
        (record, sweep), (record_off, sweep_off) = cost[length, True], cost[length, False]
        row(f"{length:,} entries: recording, collector on", duration(record), record / record_off)
        row(f"{length:,} entries: recording, collector off", duration(record_off), 1.0)
        row(f"{length:,} entries: reverse pass, collector on", duration(sweep), sweep / sweep_off)
    row("reverse pass per entry, long tape to short", "", cost[lengths[1], True][1] / cost[lengths[0], True][1])


def _record_and_sweep(length: int, collect: bool) -> tuple[float, float]:
    repeats = max(1, 100_000 // length)
    record = sweep = 0.0
    gc.collect()
    (gc.enable if collect else gc.disable)()
    try:
        for _ in range(repeats):
            with vm.nested():
                x = vm.var(1.5)
                start = time.perf_counter()
                y = models.scalar_chain(x, length)
                middle = time.perf_counter()
                y.grad()
                sweep += time.perf_counter() - middle
                record += middle - start
    finally:
        gc.enable()
    return record / (repeats * length), sweep / (repeats * length)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats: figures are rough")
    quick = parser.parse_args().quick
    turns, seconds = (5, 0.005) if quick else (41, 0.02)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread, medians of {turns} turns")
    one_operation(seconds, turns)
    eight_schools(seconds, turns)
    scalars(seconds, turns)
    large_arrays(6 * seconds, turns // 3)
    counts()
    long_tapes(turns)


if __name__ == "__main__":
    main()
