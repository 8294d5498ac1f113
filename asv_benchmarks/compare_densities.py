"""Print the speed of densities, value and gradient, beside that of derivatives written by hand."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import densities_by_hand as rows
import numpy as np
from compare import timings


def check(row: rows.Row, ours: Any, theirs: Any) -> None:
    """Both must have the same value and gradient before they are timed."""
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, err_msg=row.name)
    for a, b in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8, err_msg=row.name)


def measure(row: rows.Row, size: Any, seconds: float, turns: int, **others: Any) -> dict[str, float]:
    data, point = row.data(size)
    gradient = row.gradient(data, len(point))
    check(row, gradient(*point), row.by_hand(*data, *point))
    each = {name: lambda f=f: f(data, point) for name, f in others.items()}
    return timings({"varmat": lambda: gradient(*point), "hand": lambda: row.by_hand(*data, *point), **each}, seconds, turns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and sizes: figures are rough")
    options = parser.parse_args()
    turns, seconds = (5, 0.005) if options.quick else (31, 0.02)
    x = np.linspace(0.1, 1.0, 8)
    multiply = timings({"multiply": lambda: np.multiply(x, x)}, seconds, turns)["multiply"]
    print(f"np.multiply of length 8: {1e6 * multiply:.3f} us. Value and gradient by vm.value_and_grad, and by hand:\n")
    print(f"{'':38}{'N':>9}{'varmat us':>11}{'hand us':>10}{'ratio':>7}{'multiplies':>12}")
    for row in rows.DENSITIES:
        for n in rows.LENGTHS[: 2 if options.quick else 3]:
            t = measure(row, n, seconds, turns)
            ours, hand = t["varmat"], t["hand"]
            figures = f"{1e6 * ours:11.1f}{1e6 * hand:10.1f}{ours / hand:7.2f}{ours / multiply:12.0f}"
            print(f"{row.name:38}{n:9}{figures}", flush=True)
    n, m = rows.GLM_SHAPE
    print(f"\nGeneralised linear models, {n} x {m}: times X @ beta alone, and times two passes by hand")
    for row in rows.GLMS:
        t = measure(row, None, seconds, turns, product=lambda data, point: data[1] @ point[1])
        ours = t["varmat"]
        print(f"{row.name:38}{1e6 * ours:9.0f} us{ours / t['product']:7.2f}{ours / t['hand']:7.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
