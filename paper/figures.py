"""Draw the figures of the paper from the tables of the documentation: `python paper/figures.py`.

The tables themselves are made by `asv_benchmarks/stan_collection.py` and
`asv_benchmarks/compare.py`.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("agg")
from matplotlib import pyplot as plt

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"


def table(page: str, first: str) -> list[dict[str, str]]:
    """The rows of the table of a page whose first column has this title, by titles; a title that
    occurs twice gets a number.
    """
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    cells = [[each.strip() for each in line[1:-1].split("|")] for line in lines]
    start = next(i for i, row in enumerate(cells) if row[0] == first and len(row) > 1)
    titles: list[str] = []
    for title in cells[start]:
        titles.append(f"{title} {titles.count(title) + 1}" if title in titles else title)
    rows = []
    for line, row in zip(lines[start + 2 :], cells[start + 2 :], strict=False):
        if not line.startswith("|"):
            break
        rows.append(dict(zip(titles, row, strict=True)))
    return rows


def collection(path: Path) -> None:
    """The time of a gradient relative to stanli's, for each posterior, in order."""
    rows = table("stan_collection.md", "posterior")
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for title, label in (("ratio", "C function"), ("ratio 2", "C function, fast_math")):
        ratios = sorted(float(row[title]) for row in rows if row[title][:1].isdigit())
        ratios = np.maximum(ratios, 0.002)
        axes.semilogy(ratios, ".", markersize=4, label=f"relative to stanli's {label}")
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set_xlabel("posterior, in order of the ratio")
    axes.set_ylabel("time of a gradient, ratio")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=200)


def libraries(path: Path) -> None:
    """The time of value and gradient relative to derivatives by hand."""
    rows = table("performance.md", "value and gradient")
    shown = {"varmat": "varmat", "recorded, native": "varmat, recorded", "JAX, compiled": "JAX"}
    shown |= {"PyTorch": "PyTorch", "autograd": "autograd"}
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    places = np.arange(len(rows))
    for title, label in shown.items():
        times = [float(row[title]) if row[title][:1].isdigit() else np.nan for row in rows]
        axes.semilogx(times, places, "o", markersize=5, label=label)
    axes.axvline(1.0, color="0.5", linewidth=0.8)
    axes.set_yticks(places, [row["value and gradient"] for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("time relative to derivatives by hand")
    axes.legend(frameon=False, fontsize=7)
    figure.savefig(path, dpi=200)


if __name__ == "__main__":
    collection(HERE / "collection.png")
    libraries(HERE / "libraries.png")
