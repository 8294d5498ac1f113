"""Measure how a logistic regression in slices scales from one thread to two.

    cd asv_benchmarks && python -m workloads.parallel [--quick]

The efficiency is the time of one thread over twice that of two threads, turn by turn, with the same
slices. For comparison, the script prints the efficiency of hashing, which only computes, without
the GIL. It shows what the machine itself gives two threads at that time. If it is not near one,
other programs use the processors, and the efficiency of the regression means nothing. The overhead
is the time for slices of almost no rows. It is the cost of dividing the work, most of it with the
GIL held."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import environment  # noqa: F401 - one thread of the BLAS, before NumPy is imported
import numpy as np
from timing import Timing, duration, timings

import varmat as vm

COLUMNS, SLICES = 10, 8
# The efficiency should be at least this.
TARGET = 0.85
HASHED = bytes(4_000_000)


def regression(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data and a point: the intercept and the coefficients."""
    rng = np.random.default_rng(8)
    x, beta = rng.normal(size=(rows, COLUMNS)), 0.3 * rng.normal(size=COLUMNS)
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-x @ beta))).astype(int)
    return x, y, np.append(0.1, beta)


def of_rows(y: Any, start: int, end: int, x: np.ndarray, alpha: Any, beta: Any) -> Any:
    return vm.bernoulli_logit_glm_lpmf(y, x[start:end], alpha, beta)


def sliced(rows: int, executor: Any) -> Callable[[], Any]:
    """Return the gradient in slices, to be timed."""
    x, y, q = regression(rows)

    def total(q: Any) -> Any:
        return vm.reduce_sum_static(of_rows, y, rows // SLICES, x, q[0], q[1:], executor=executor)

    return partial(vm.value_and_grad(total), q)


def whole(rows: int) -> Callable[[], Any]:
    """Return the recorded gradient without slices."""
    x, y, q = regression(rows)
    return partial(vm.recorded(lambda q: vm.bernoulli_logit_glm_lpmf(y, x, q[0], q[1:])), q)


def hashed(_: Any = None) -> bytes:
    return hashlib.sha256(HASHED).digest()


@contextmanager
def pools() -> Iterator[tuple[Executor, Executor]]:
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(2) as two:
        yield one, two


def figures(rows: int, seconds: float, turns: int) -> dict[str, Timing]:
    """Return the seconds of each competitor, and the efficiencies."""
    with pools() as (one, two):
        functions: dict[str, Callable[[], Any]] = {
            "whole": whole(rows),
            "one thread": sliced(rows, one),
            "two threads": sliced(rows, two),
            "overhead": sliced(10 * SLICES, two),
            "hashing, one thread": lambda: list(one.map(hashed, range(2))),
            "hashing, two threads": lambda: list(two.map(hashed, range(2))),
        }
        for _ in range(4):  # the slices are recorded after some calls
            values = [function()[0] for function in list(functions.values())[:3]]
        np.testing.assert_allclose(values, values[0], rtol=1e-12)
        found = timings(functions, seconds, turns)
    for name, title in (("", "efficiency"), ("hashing, ", "efficiency of hashing")):
        ratio = found[f"{name}one thread"].over(found[f"{name}two threads"])
        found[title] = Timing([0.5 * each for each in ratio.samples])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and turns")
    quick = parser.parse_args().quick
    found = figures(100_000 if quick else 1_000_000, 0.02 if quick else 0.1, 5 if quick else 31)
    for name, figure in found.items():
        shown = "{:.2f}".format if name.startswith("efficiency") else duration
        text = [shown(x) for x in (float(figure), figure.low, figure.high)]
        print(f"{name:24} {text[0]:>8}  ({text[1]} to {text[2]})")
    if found["efficiency of hashing"] < TARGET:
        print(f"target {TARGET}: cannot be told while other programs have the processors")
    else:
        print(f"target {TARGET}: {'reached' if found['efficiency'] >= TARGET else 'not reached'}")


if __name__ == "__main__":
    main()
