"""Print the speed of varmat's functions of matrices beside that of derivatives written by hand and of arrays of scalar variables.

    python asv_benchmarks/compare_matrices.py            # everything, a few minutes
    python asv_benchmarks/compare_matrices.py --quick    # fewer repeats and sizes
    python asv_benchmarks/compare_matrices.py cholesky   # the rows whose names contain this

As in ``compare.py`` competitors take turns, figures are medians, there is one thread, and a call goes from plain arrays to a value
and fresh gradients. Each row is checked before it is timed. From a matrix of 64 x 64 and a vector of 10^4 up, the project set
itself a limit of 1.3 times the derivatives written by hand; what misses it is marked with a star.
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Callable
from typing import Any

import matrices_by_hand as rows
import numpy as np
from compare import duration, timings

import varmat as vm

LIMIT = 1.3
AIM = 100.0


def ratio_of(workload: rows.Workload, size: int, seconds: float, turns: int) -> tuple[float, float]:
    """Seconds by hand, and how many times that varmat takes."""
    workload.check(size)
    args, gradient = workload.point(size), workload.gradient
    t = timings({"hand": lambda: workload.by_hand(*args), "varmat": lambda: gradient(*args)}, seconds, turns)
    return t["hand"], t["varmat"] / t["hand"]


def table(title: str, workloads: Any, sizes: tuple[int, ...], bound_from: int, seconds: float, turns: int) -> None:
    print(f"\n{title}: value and gradient, ratio to those written by hand (and what these take)")
    print(f"  {'':<30}" + "".join(f"{size:>18,}" for size in sizes))
    missed = 0
    for workload in workloads:
        line = f"  {workload.name:<30}"
        for size in sizes:
            by_hand, ratio = ratio_of(workload, size, seconds, turns)
            over = size >= bound_from and ratio > LIMIT
            missed += over
            line += f"{f'({duration(by_hand)})':>12}{ratio:>5.2f}{'*' if over else ' '}"
        print(line, flush=True)
    print(f"  over the limit of {LIMIT} from {bound_from:,} up: {missed}")


def gain(f: Callable[..., Any], arrays: tuple[np.ndarray, ...], seconds: float, turns: int) -> tuple[float, float]:
    """Seconds for value and gradients, recorded with arrays of scalar variables and with matrix variables."""

    def differentiated(make: Callable[[Any], Any]) -> Callable[[], Any]:
        def call() -> Any:
            with vm.nested():
                variables = [make(x) for x in arrays]
                y = f(*variables)
                y.grad()
                return float(y.val), [np.array(x.adj) for x in variables]

        return call

    ways = {"matvar": differentiated(vm.matvar), "varmat": differentiated(vm.var)}
    (value, gradients), (expected, others) = ways["varmat"](), ways["matvar"]()
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    for g, other in zip(gradients, others, strict=True):
        np.testing.assert_allclose(g, other, rtol=1e-10)
    del gradients, others
    # In turns of their own, for between the sweeps over millions of scalars the memory of the others is cold.
    t = {name: timings({name: way}, seconds, turns)[name] for name, way in ways.items()}
    return t["matvar"], t["varmat"]


# Name -> function, number of arguments, and up to which size the scalar variables fit into memory.
AGAINST_SCALARS = {
    "sum(A + B)": (lambda a, b: np.sum(a + b), 2, 256),
    "sum(exp(A) * B)": (lambda a, b: np.sum(np.exp(a) * b), 2, 256),
    "sum(A @ B + C)": (lambda a, b, c: np.sum(a @ b + c), 3, 128),
}


def against_scalars(seconds: float, turns: int, largest: int) -> None:
    sizes = [2**i for i in range(1, 9) if 2**i <= largest]
    print("\nHow many times as fast as with an array of scalar variables (and what that takes)")
    print(f"  {'':<18}" + "".join(f"{f'{k} x {k}':>16}" for k in sizes))
    for name, (f, count, most) in AGAINST_SCALARS.items():
        line, at_64 = f"  {name:<18}", 0.0
        for k in sizes:
            if k <= most:
                scalars, matrices = gain(f, rows.matrices(count)(k), seconds, turns if k < 64 else 3)
                line += f"{f'({duration(scalars)})':>11}{scalars / matrices:>5.4g}"
                at_64 = scalars / matrices if k == 64 else at_64
        print(f"{line}   aim {AIM:g} at 64 x 64{'' if at_64 >= AIM else ', missed'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes: figures are rough")
    parser.add_argument("name", nargs="?", default="", help="only rows whose names contain this")
    given = parser.parse_args()
    turns, seconds = (5, 0.005) if given.quick else (15, 0.03)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one thread, medians of {turns} turns")
    sizes, lengths = (rows.SIZES[:-1], rows.LENGTHS[:-1]) if given.quick else (rows.SIZES, rows.LENGTHS)
    chosen = [[w for w in workloads if given.name in w.name] for workloads in (rows.MATRICES, rows.VECTORS)]
    table("Matrices of K x K", chosen[0], sizes, 64, seconds, turns)
    table("Vectors of length N", chosen[1], lengths, 10_000, seconds, turns)
    if not given.name:
        against_scalars(seconds, turns, 64 if given.quick else 256)


if __name__ == "__main__":
    main()
