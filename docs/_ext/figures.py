"""The figures of the pages.

They are drawn from the tables of a page, so that figure and table cannot disagree, or measured
while the site is built.
"""

from __future__ import annotations

import io
import re
import timeit
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[1]


def table(page: str, header: str) -> list[list[str]]:
    """The rows of the table of a page whose first cell is `header`, without the header itself."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {header} |"):
            rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")]]
            next(lines)
            for row in lines:
                if not row.startswith("|"):
                    return rows
                rows.append([cell.strip() for cell in row.strip("| \n").split(" | ")])
            return rows
    raise LookupError(f"{page} has no table that begins with {header!r}")


def run_blocks(page: str, last: str, names: dict[str, Any]) -> None:
    """Run the blocks of a page that its test runs, down to the one that contains `last`, so that a
    figure shows the results of the page. What they print is dropped."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        with redirect_stdout(io.StringIO()):
            exec(compile(block, page, "exec"), names)
        if last in block:
            return
    raise LookupError(f"{page} has no block with {last!r}")


def number(cell: str) -> float:
    """The number of a cell; the middle of a range."""
    found = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", cell)]
    return float(np.mean(found[:2])) if " to " in cell else found[0]


def prices(ax: Any) -> None:
    """The fixed prices as bars, the cheapest on top."""
    # Without what stands in brackets, of which some holds brackets itself.
    inner = re.compile(r"`|\s*\((?:[^()]|\([^()]*\))*\)")
    rows = [
        (inner.sub("", name), number(price)) for name, price in table("performance.md", "step")[1:]
    ]
    rows.sort(key=lambda row: -row[1])
    ax.barh([name for name, _ in rows], [price for _, price in rows], height=0.6)
    for i, (_, price) in enumerate(rows):
        ax.text(price + 0.4, i, f"{price:g}", va="center", fontsize="small")
    ax.set_xlabel("units: one np.multiply of 8 elements")
    ax.tick_params(left=False)


def beside_others(ax: Any) -> None:
    """Each library's time as a multiple of derivatives by hand, a row for each workload."""
    header, *rows = table("performance.md", "value and gradient")
    markers = {
        "varmat": ("C0", "o"),
        "recorded, native": ("C1", "D"),
        "JAX, compiled": ("C2", "s"),
        "PyTorch": ("C3", "^"),
    }
    markers["autograd"] = ("C4", "v")
    places = np.arange(len(rows))[::-1]
    ax.axvline(1.0, color="black", linewidth=0.8)
    for name, (colour, marker) in markers.items():
        column = header.index(name)
        filled = (
            {"markerfacecolor": colour}
            if name in ("varmat", "recorded, native")
            else {"markerfacecolor": "none"}
        )
        times = [float(row[column]) for row in rows]
        ax.plot(
            times,
            places,
            marker,
            color=colour,
            label=name,
            markersize=6,
            linestyle="none",
            **filled,
        )
    for place in places:
        ax.axhline(place, color="black", linewidth=0.3, alpha=0.3, zorder=0)
    ax.set_xscale("log")
    ax.set_xticks([0.2, 0.5, 1, 2, 5, 10, 20, 50], ["0.2", "0.5", "1", "2", "5", "10", "20", "50"])
    ax.minorticks_off()
    ax.set_yticks(places, [row[0] for row in rows])
    ax.tick_params(left=False)
    ax.set_xlabel("time, derivatives by hand = 1")


def best(function: Callable[[], Any]) -> float:
    """Seconds a call takes: the least of several runs of a few milliseconds each."""
    function()
    number = max(1, int(2e-3 / max(timeit.timeit(function, number=1), 1e-7)))
    return min(timeit.repeat(function, number=number, repeat=7)) / number


def over_sizes(ax: Any, f: Callable[[Any], Any]) -> None:
    """Time of a function and of its gradients, over the number of elements of its argument."""
    import varmat as vm

    sizes = [2**k for k in range(3, 19, 3)]
    runs: dict[str, list[float]] = {}
    for size in sizes:
        x = np.random.default_rng(1).uniform(0.5, 1.5, size)
        eager, numpy, native = (
            vm.value_and_grad(f),
            vm.recorded(f, runner="numpy"),
            vm.recorded(f, runner="native"),
        )
        ways = {
            "value alone, NumPy": lambda x=x: f(x),
            "value and gradient": lambda x=x, run=eager: run(x),
            "recorded, NumPy runner": lambda x=x, run=numpy: run(x),
            "recorded, native runner": lambda x=x, run=native: run(x),
        }
        for name, way in ways.items():
            runs.setdefault(name, []).append(1e6 * best(way))
    for (name, times), style, colour in zip(
        runs.items(), ("--", "-", "-", "-"), ("black", "C0", "C2", "C1"), strict=True
    ):
        ax.loglog(sizes, times, style, marker="o", markersize=4, color=colour, label=name)
    ax.set(xlabel="elements", ylabel="microseconds")
    ax.legend()
