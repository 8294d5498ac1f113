"""Real posteriors against Stan's own log densities and gradients, with what a gradient costs.

    python asv_benchmarks/posteriors.py [--data FOLDER] [--quick] [--peers jax,torch,autograd]

The models and their data are those of ``workloads/posteriors.py``; ``--data`` names another folder. The bounds on errors are
1e-10 (1 + |log density|) and 1e-9 (1 + largest |gradient|), in every library. With ``--peers``, a second table has the times of
other libraries, which take turns with varmat, and how many times as long varmat takes; those of Stan were recorded with its values,
on another machine.

Statements are those of the Stan program, in transformed parameters and model, each line of a loop counted once. Operations are
what one gradient records on the tape: those of the model as it is written here, and in all, with what `vm.Model` adds: taking the
unknowns apart and constraining them, with the log-Jacobians; the aim is at most two more in all than there are statements.
One thread; times are medians over turns. It exits with 1 if an error is over its bound.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import environment  # noqa: F401 - before NumPy
import peers
from timing import Timing, mean_ratio, timings
from workloads.posteriors import Posterior, default_folder, find, operations_of

VALUE_BOUND, GRADIENT_BOUND = 1e-10, 1e-9


class Figures(NamedTuple):
    """What is printed of a posterior."""

    # In units of the bounds' scales.
    value_error: float
    gradient_error: float
    own_statements: int
    own_operations: int
    operations: int
    gradient_seconds: float
    plain_seconds: float


def statements_of(function: Any) -> int:
    """Of a log density: its assignments, and each term that it returns."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    *assignments, last = definition.body  # type: ignore[attr-defined]
    return len(assignments) + (len(last.value.elts) if isinstance(last.value, ast.Tuple) else 1)


def measure(each: Posterior, seconds: float, turns: int) -> Figures:
    size = each.sizes[0]
    gradient, plain = (peers.gradient_function(name, each, size) for name in ("varmat", "plain"))
    (q,) = each.point(size)
    times = timings({"gradient": lambda: gradient(q), "plain": lambda: plain(q)}, seconds, turns)
    _, log_density = each.definition.build(each.data)
    return Figures(
        *each.errors(gradient), statements_of(log_density), *operations_of(each, q), times["gradient"], times["plain"]
    )  # fmt: skip


def over_bounds(title: str, errors: tuple[float, float]) -> list[str]:
    """What is wrong with an implementation."""
    checks = zip(("log density", "gradient"), errors, (VALUE_BOUND, GRADIENT_BOUND), strict=True)
    broken = [check for check in checks if not check[1] <= check[2]]
    return [f"{title}: the error of the {what} is {error:.1e}, over {bound:g}" for what, error, bound in broken]


def print_checks(found: list[Posterior], seconds: float, turns: int) -> list[str]:
    """The first table; returns what is broken."""
    print(f"{'':41}{'worst error of':>18}{'statements':>12}{'operations':>12}{'microseconds of':>18}{'':7}{'Stan':>8}")
    heads = f"{'value':>9}{'gradient':>9}{'Stan':>6}{'here':>6}{'here':>6}{'all':>6}"
    print(f"{'':41}{heads}{'gradient':>9}{'value':>9}{'ratio':>7}{'us':>8}")
    broken, longer = [], 0
    for each in found:
        figures = measure(each, seconds, turns)
        statements = each.definition.statements
        print(
            f"{each.name:41}{figures.value_error:9.1e}{figures.gradient_error:9.1e}"
            f"{statements:6d}{figures.own_statements:6d}{figures.own_operations:6d}{figures.operations:6d}"
            f"{1e6 * figures.gradient_seconds:9.1f}{1e6 * figures.plain_seconds:9.1f}"
            f"{figures.gradient_seconds / figures.plain_seconds:7.2f}{1e6 * each.stan_seconds:8.1f}",
            flush=True,
        )
        broken += over_bounds(each.name, (figures.value_error, figures.gradient_error))
        longer += figures.operations > max(statements, figures.own_statements) + 2
    print(f"\noperations over statements + 2: {longer} of {len(found)}")
    return broken


def gradients_of(each: Posterior, libraries: list[str]) -> tuple[dict[str, Callable[[], Any]], list[str]]:
    """The gradient at the first point in varmat and in the libraries that can do it, checked and compiled; what is broken."""
    functions, broken = {}, []
    for library in ["varmat", *libraries]:
        try:
            gradient = peers.gradient_function(library, each, each.sizes[0])
        except peers.MissingError:
            continue
        broken += over_bounds(f"{each.name} in {library}", each.errors(gradient))
        functions[library] = partial(gradient, *each.point(each.sizes[0]))
    return functions, broken


def print_peers(found: list[Posterior], libraries: list[str], seconds: float, turns: int) -> list[str]:
    """The second table; returns what is broken."""
    ratios: dict[str, list[Timing]] = {library: [] for library in [*libraries, "Stan"]}
    print(f"\n{'microseconds of a gradient':41}{'varmat':>9}" + "".join(f"{library:>11}{'ratio':>8}" for library in ratios))
    broken = []
    for each in found:
        functions, wrong = gradients_of(each, libraries)
        broken += wrong
        times = timings(functions, seconds, turns) | {"Stan": Timing([each.stan_seconds])}
        cells = ""
        for library in ratios:
            if library not in times:
                cells += f"{'-':>11}{'':8}"
                continue
            ratio = times["varmat"].over(times[library])
            ratios[library].append(ratio)
            cells += f"{1e6 * times[library]:11.1f}{ratio:8.3g}"
        print(f"{each.name:41}{1e6 * times['varmat']:9.1f}{cells}", flush=True)
    print(f"{'geometric mean':50}" + "".join(f"{'':11}{mean_ratio(each):8.3g}" for each in ratios.values()))
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_folder(), help="folder of the posteriors' files")
    parser.add_argument("--quick", action="store_true", help="fewer repeats: times are rough")
    parser.add_argument("--peers", default="", help="of recorded,jax,torch,autograd, separated by commas")
    options = parser.parse_args()
    found = find(options.data)
    if not found:
        print(f"There are no posteriors in {options.data}: name their folder by --data or VARMAT_POSTERIORS. Nothing was measured.")
        return 2
    turns, seconds = (5, 0.005) if options.quick else (31, 0.02)
    broken = print_checks(found, seconds, turns)
    libraries = [library for library in options.peers.split(",") if library]
    if libraries:
        broken += print_peers(found, libraries, seconds, turns)
    bounds = f"{VALUE_BOUND:g} (1 + |log density|) and {GRADIENT_BOUND:g} (1 + largest |gradient|)"
    print("\n".join(broken) or f"errors: all within {bounds}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
