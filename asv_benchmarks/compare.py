"""Compare the speed of varmat with NumPy, derivatives by hand, and other libraries.

    python asv_benchmarks/compare.py                     # everything installed: 15 minutes
    python asv_benchmarks/compare.py --quick             # two sizes of each, few repeats, no peers
    python asv_benchmarks/compare.py --peers jax --only vectors gp_regr

The measured workloads are in ``workloads/``, with one or more modules for each family. A call goes
from plain arrays to a value and new gradient arrays. The figures in one row come from one process
and one thread. The competitors take turns, and each figure is the median over the turns. Each
competitor is checked before it is timed, against the derivatives by hand or, if there are none,
against varmat. "plain" is the value alone, in NumPy. "matvar" takes arrays of scalar variables.
"jit" is the time that JAX takes to compile, and "record" is the first call of "recorded". "stan"
takes part if httpstan and g++ are installed. It is a process of its own, which measures its own
times. Each program is built when it is first needed, which takes up to a minute, and kept. The
script exits with 1 if two competitors disagree. Budgets are bounds that the project has set itself;
missing one is not an error."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import budgets
import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np
import peers
import workloads
from budgets import Budget, Row
from timing import Timing, at, duration, mean_ratio, seconds_of, timings
from workloads.workload import FAMILIES, Workload, check

import varmat as vm

OWN = ("plain", "varmat", "recorded", "matvar")
# Implementations whose first call prepares something, and the column for the time of that call.
FIRST = {"jax": "jit", "recorded": "record"}


def load() -> list[Any]:
    """Import the modules of workloads, which fill `FAMILIES`."""
    names = [module.name for module in pkgutil.iter_modules(workloads.__path__)]
    return [importlib.import_module(f"workloads.{name}") for name in names]


def sizes_of(workload: Workload, quick: bool) -> tuple[int, ...]:
    """Return all sizes. If quick, return the first size, and one that has a limit or one in the
    middle.
    """
    if not quick:
        return workload.sizes
    limited = [size for size in workload.sizes if any(size >= limit for limit in workload.limits)]
    other = limited[0] if limited else workload.sizes[len(workload.sizes) // 2]
    return tuple(dict.fromkeys((workload.sizes[0], other)))


def competitors(
    workload: Workload, size: int, libraries: tuple[str, ...], args: tuple[Any, ...]
) -> dict[str, Callable[..., Any]]:
    """Return the implementations of a workload: "by hand", varmat's own, and the libraries that can
    compute it.
    """
    found = {}
    arrays = any(map(np.ndim, args[: workload.variables]))
    for name in ("by hand", *OWN, *libraries):
        if name == "matvar" and not (arrays and size in workload.matvar):
            continue
        try:
            found[name] = peers.gradient_function(name, workload, size)
        except peers.MissingError:
            continue
    return found


def checked(
    workload: Workload, size: int, found: dict[str, Any], args: tuple[Any, ...]
) -> tuple[dict[str, Any], list[str], dict[str, float]]:
    """Return the implementations with the right value and gradients, messages about the others, and
    the times of first calls.
    """
    base = "by hand" if "by hand" in found else "varmat"
    expected = found[base](*args)
    right, wrong, first_seconds = {}, [], {}
    for name, function in found.items():
        title = f"{workload.name} [{size}], {name}"
        results: list[Any] = []
        try:
            seconds = seconds_of(lambda f=function, r=results: r.append(f(*args)))
            # The plain value has no gradients.
            check(
                (results[0][0], results[0][1] if name != "plain" else expected[1]),
                expected,
                title,
                workload.rtol,
            )
        except peers.MissingError:
            continue
        except Exception as error:
            if name == "recorded" and isinstance(error, vm.TapeError):
                # The implementation reports that it cannot record this workload.
                continue
            # A failure of one library must not keep the others from being measured.
            text = " ".join(str(error).split()).replace(title, "").strip(" :")
            wrong.append(f"{title}: {type(error).__name__}: {text[:200]}")
            continue
        right[name] = function
        if name in FIRST:
            first_seconds[name] = seconds
    return right, wrong, first_seconds


def measure(
    workload: Workload, size: int, libraries: tuple[str, ...], seconds: float, turns: int
) -> tuple[Row | None, list[str]]:
    """Return a row, and messages about what is wrong."""
    args = workload.point(size)
    try:
        right, wrong, first_seconds = checked(
            workload, size, competitors(workload, size, libraries, args), args
        )
    except Exception as error:
        return None, [f"{workload.name} [{size}]: {type(error).__name__}: {error}"]
    if not right:
        return None, wrong
    times = timings({name: at(f, *args) for name, f in right.items()}, seconds, turns)
    unknowns = sum(map(np.size, args[: workload.variables]))
    return Row(workload, size, unknowns, times, first_seconds), wrong


# --- tables ---


def columns(libraries: tuple[str, ...]) -> list[str]:
    return [name for name in (*OWN, *libraries) if name != "recorded" or hasattr(vm, "recorded")]


def firsts(libraries: tuple[str, ...]) -> list[str]:
    return [name for name in FIRST if name in columns(libraries)]


def heading(family: str, libraries: tuple[str, ...]) -> str:
    names = "".join(
        f"{name:>20}" if name == "varmat" else f"{name:>10}" for name in columns(libraries)
    )
    names += "".join(f"{FIRST[name]:>10}" for name in firsts(libraries))
    return (
        f"\n{family}: ratios to the derivatives by hand (*: to "
        f"varmat)\n{'':30}{'size':>9}{'by hand':>11}{names}"
    )


def line(row: Row, libraries: tuple[str, ...]) -> str:
    mark = " " if row.base == "by hand" else "*"
    text = f"{row.workload.name:30.30}{row.size:>9,}{duration(row.times[row.base]):>10}{mark}"
    for name in columns(libraries):
        ratio = row.ratio(name, row.base) if row.has(name) else None
        if name == "varmat":
            limit = budgets.limit_of(row)
            over = ratio is not None and limit is not None and ratio > limit
            shown = (
                f"{ratio:.3g}{'!' if over else ''} ({ratio.low:.3g}-{ratio.high:.3g})"
                if ratio is not None
                else "-"
            )
            text += f"{shown:>20}"
        else:
            text += f"{'-' if ratio is None else format(ratio, '.3g'):>10}"
    for name in firsts(libraries):
        text += f"{duration(row.first_seconds[name]) if name in row.first_seconds else '-':>10}"
    return text


def means(rows: list[Row], libraries: tuple[str, ...]) -> str:
    text = f"{'geometric mean':30}{'':20}"
    for name in columns(libraries):
        found = [row.ratio(name, row.base) for row in rows if row.has(name)]
        width = 20 if name == "varmat" else 10
        text += f"{format(mean_ratio(found), '.3g') if found else '-':>{width}}"
    return text


def family(
    name: str, chosen: list[Workload], libraries: tuple[str, ...], quick: bool
) -> tuple[list[Row], list[str]]:
    """Measure and print a table."""
    seconds, turns = (0.005, 5) if quick else (0.01, 11)
    rows, wrong = [], []
    print(heading(name, libraries))
    for workload in chosen:
        for size in sizes_of(workload, quick):
            row, errors = measure(workload, size, libraries, seconds, turns)
            wrong += errors
            if row is not None:
                rows.append(row)
                print(line(row, libraries), flush=True)
            for error in errors:
                print(f"    wrong: {error}", flush=True)
    print(means(rows, libraries))
    return rows, wrong


# --- output ---


def machine(libraries: tuple[str, ...]) -> dict[str, Any]:
    """Return a description of the machine and of the versions."""
    model = platform.processor() or platform.machine()
    described = Path("/proc/cpuinfo")
    if described.exists():
        model = next(
            (
                text.split(":")[1].strip()
                for text in described.read_text(encoding="utf-8").splitlines()
                if "model name" in text
            ),
            model,
        )
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index, call-overload]
    versions = {name: peers.version(name) for name in ("varmat", "numpy", "scipy", *libraries)}
    return {
        "processor": model,
        "system": platform.platform(),
        "blas": f"{blas['name']} {blas['version']}",
        "python": platform.python_version(),
        "versions": versions,
    }


def figures(timing: Timing) -> dict[str, float]:
    return {
        "median": float(timing),
        "low": timing.low,
        "high": timing.high,
        "turns": len(timing.samples),
    }


def save(
    path: Path, described: dict[str, Any], rows: list[Row], judged: list[Budget], wrong: list[str]
) -> None:
    content = {
        "machine": described,
        "rows": [
            {
                "family": row.workload.family,
                "name": row.workload.name,
                "size": row.size,
                "base": row.base,
                "seconds": {name: figures(timing) for name, timing in row.times.items()},
                "ratio": {
                    name: figures(row.ratio(name, row.base))
                    for name in row.times
                    if name != row.base
                },
                "jax_compile_seconds": row.first_seconds.get("jax"),
                "record_seconds": row.first_seconds.get("recorded"),
            }
            for row in rows
        ],
        "budgets": [
            vars(budget) | {"figure": None if budget.met is None else budget.figure}
            for budget in judged
        ],
        "wrong": wrong,
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def plot(path: Path, rows: list[Row], libraries: tuple[str, ...]) -> None:
    """Plot ratio against size, with a panel for each family. Thin lines are workloads, and thick
    lines are geometric means where sizes are shared.
    """
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    families = list(dict.fromkeys(row.workload.family for row in rows))
    height = -(-len(families) // 3)
    figure, axes = plt.subplots(
        height,
        min(3, len(families)),
        figsize=(15, 4.5 * height),
        squeeze=False,
        layout="constrained",
    )
    for axis, name in zip(axes.flat, families, strict=False):
        inside = [row for row in rows if row.workload.family == name]
        for i, implementation in enumerate((*OWN, *peers.PEERS)):
            if implementation in columns(libraries):
                draw(
                    axis,
                    [row for row in inside if row.has(implementation)],
                    implementation,
                    f"C{i}",
                )
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(
            xscale="log", yscale="log", title=name, xlabel="size", ylabel=f"times {inside[0].base}"
        )
    for axis in axes.flat[len(families) :]:
        axis.set_visible(False)
    axes[0][0].legend(fontsize="small")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw(axis: Any, rows: list[Row], implementation: str, colour: str) -> None:
    """Draw the lines of one implementation, from the rows of a family that have it."""
    single: dict[str, list[tuple[int, float]]] = {}
    at_size: dict[int, list[float]] = {}
    for row in rows:
        ratio = row.ratio(implementation, row.base)
        single.setdefault(row.workload.name, []).append((row.size, ratio))
        at_size.setdefault(row.size, []).append(ratio)
    for points in single.values():
        axis.plot(
            *zip(*points, strict=True), ".-", color=colour, alpha=0.25, linewidth=0.7, markersize=3
        )
    shared = sorted(size for size, found in at_size.items() if len(found) > len(single) / 2)
    axis.plot(
        shared,
        [mean_ratio(at_size[size]) for size in shared],
        color=colour,
        linewidth=2,
        label=implementation,
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="two sizes of each workload and few repeats: figures are rough",
    )
    parser.add_argument(
        "--peers",
        help="of jax,torch,autograd,stan, separated by commas; all that are installed, or none if "
        "--quick",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="TEXT",
        help="families, workloads or 'budgets' whose names contain one of these",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("compare_results"),
        help="folder for the figures and the plot",
    )
    given = parser.parse_args()
    default = "" if given.quick else ",".join(peers.PEERS)
    wanted = [name for name in (default if given.peers is None else given.peers).split(",") if name]
    unknown = set(wanted) - set(peers.PEERS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    reasons = {name: peers.missing(name) for name in wanted}
    for name, reason in reasons.items():
        if reason is not None:
            print(f"{name} is left out: {reason}")
    given.peers = tuple(name for name, reason in reasons.items() if reason is None)
    return given


def main() -> int:
    given = arguments()
    modules = load()
    described = machine(given.peers)
    versions = ", ".join(f"{name} {version}" for name, version in described["versions"].items())
    print(
        f"{described['processor']}, {described['blas']}, Python {described['python']}, {versions}; "
        "one thread"
    )
    rows, wrong = [], []
    for name, members in FAMILIES.items():
        chosen = [
            w
            for w in members
            if not given.only or any(text in name or text in w.name for text in given.only)
        ]
        if chosen:
            found, errors = family(name, chosen, given.peers, given.quick)
            rows += found
            wrong += errors
    judged = budgets.of_rows(rows)
    if not given.only or any(text in "budgets" for text in given.only):
        judged += [
            budget
            for module in modules
            if hasattr(module, "budgets")
            for budget in module.budgets()
        ]
    judged.sort(key=lambda budget: budget.number)
    print("\nBudgets")
    print(*judged, sep="\n")
    given.output.mkdir(parents=True, exist_ok=True)
    save(given.output / "compare.json", described, rows, judged, wrong)
    figures_at = given.output / "compare.json"
    if not rows:
        print(f"\nFigures: {figures_at}")
    else:
        try:
            plot(given.output / "compare.png", rows, given.peers)
            print(f"\nFigures and plot: {figures_at}, {given.output / 'compare.png'}")
        except ImportError:
            print(f"\nFigures: {figures_at}. With matplotlib installed there is a plot too.")
    if wrong:
        print("\nWrong:", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
