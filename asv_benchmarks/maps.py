"""Gradients at many points: varmat's ``map`` beside JAX's ``lax.map``, compiled as one loop.

    python asv_benchmarks/maps.py [NAME ...]

The functions are the models of ``workloads/models.py``, of their unknowns alone; both libraries
have the data as constants. The points lie near that of the workload. Values are compared first. The
table has CPU microseconds a point, the least of several rounds in turn, in one thread. The script
exits with 1 if varmat is slower somewhere.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np
from peers import namespace
from workloads import models  # noqa: F401 - which are registered
from workloads.workload import FAMILIES, Workload

import varmat as vm

SECONDS, ROUNDS, MOST = 0.3, 7, 1 << 21


def of_points(workload: Workload, size: int, library: str) -> Callable[..., Any]:
    """Return the values and gradients of a workload as a function of points in rows."""
    count, data = workload.variables, workload.point(size)[workload.variables :]
    given = namespace(library)
    f = workload.expression(given, size)
    if library == "varmat":
        return vm.recorded(lambda *x: f(*x, *data), tuple(range(count))).map
    jax = importlib.import_module("jax")
    data = tuple(jax.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in data)
    gradient = jax.value_and_grad(lambda *x: f(*x, *data), tuple(range(count)))
    compiled = jax.jit(lambda *points: jax.lax.map(lambda x: gradient(*x), points))
    return lambda *points: jax.block_until_ready(compiled(*points))


def seconds(f: Callable[..., Any], points: tuple[np.ndarray, ...]) -> float:
    start = time.process_time()
    f(*points)
    return time.process_time() - start


def measure(workload: Workload, size: int) -> list[float]:
    """Return CPU seconds a point, of varmat and of JAX."""
    rng, variables = np.random.default_rng(0), workload.point(size)[: workload.variables]

    def points(count: int) -> tuple[np.ndarray, ...]:
        return tuple(x + 1e-3 * rng.normal(size=(count, *np.shape(x))) for x in variables)

    ours, theirs = (of_points(workload, size, library) for library in ("varmat", "jax"))
    few = points(8)
    for x, y in zip(ours(*few)[1], theirs(*few)[1], strict=True):
        np.testing.assert_allclose(x, y, 1e-7, 1e-9, err_msg=workload.name)
    count = int(np.clip(8 * SECONDS / max(seconds(theirs, few), 1e-6), 8, 1 << 14))
    many = points(count)
    theirs(*many)  # compiles
    for _ in range(min(MOST // count, 200)):  # as often as lanes are worth compiling
        ours(*many)
    rounds = [[seconds(f, many) for f in (ours, theirs)] for _ in range(ROUNDS)]
    return [min(each) / count for each in zip(*rounds, strict=True)]


def main() -> int:
    names, slower = sys.argv[1:], 0
    print("| model | size | varmat, us | JAX, us | ratio |\n|---|---|---|---|---|")
    for workload in FAMILIES["models"]:
        if "jax" in workload.without or (names and workload.name not in names):
            continue
        for size in workload.sizes:
            ours, theirs = measure(workload, size)
            slower += ours > theirs
            row = workload.name, size, f"{1e6 * ours:.3g}", f"{1e6 * theirs:.3g}"
            print("|", " | ".join(map(str, row)), f"| {ours / theirs:.2f} |", flush=True)
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
