"""Compare real posteriors with Stan's log densities and gradients, and measure the gradients.

    python asv_benchmarks/posteriors.py [--data FOLDER] [--quick] [--peers jax,torch,autograd]
    [--stan]

The models and their data are those of ``workloads/posteriors.py``; ``--data`` names another folder.
The bounds on errors are 1e-10 (1 + |log density|) and 1e-9 (1 + largest |gradient|), in every
library. With ``--peers``, a second table has the times of other libraries, which take turns with
varmat, and their ratios to varmat's time. Stan's times in it were recorded with its values, on
another machine. With ``--stan``, a third table has varmat and Stan itself in turns, if httpstan and
g++ are installed. It compares gradients of the programs in ``stan_programs/``. Stan drops constants
there, and varmat keeps them. For the posterior that varmat cannot compute, only Stan's time is
printed.

Statements are those of the Stan program, in transformed parameters and model, and each line of a
loop counts once. Operations are the entries that one gradient records on the tape. There are two
figures: the operations of the model as it is written here, and all operations. The latter include
what `vm.Model` adds, which takes the unknowns apart and constrains them, with the log-Jacobians.
The aim is that all operations are at most two more than the statements. One thread is used, and
times are medians over turns. The script exits with 1 if an error is over its bound."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import environment  # noqa: F401 - before NumPy
import numpy as np
import peers
import stan
from timing import Timing, at, mean_ratio, timings
from workloads.posteriors import Posterior, default_folder, find, operations_of

VALUE_BOUND, GRADIENT_BOUND = 1e-10, 1e-9
# Posteriors that varmat cannot compute, and their Stan programs.
STAN_ALONE = {"hudson_lynx_hare-lotka_volterra": "lotka_volterra"}


class Figures(NamedTuple):
    """The printed figures of a posterior."""

    # Errors are in units of the bounds' scales.
    value_error: float
    gradient_error: float
    own_statements: int
    own_operations: int
    operations: int
    gradient_seconds: float
    plain_seconds: float


def statements_of(function: Any) -> int:
    """Count the statements of a log density: its assignments, and the terms that it returns."""
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
        *each.errors(gradient),
        statements_of(log_density),
        *operations_of(each, q),
        times["gradient"],
        times["plain"],
    )


def over_bounds(title: str, errors: tuple[float, float]) -> list[str]:
    """Return messages about errors over their bounds."""
    checks = zip(("log density", "gradient"), errors, (VALUE_BOUND, GRADIENT_BOUND), strict=True)
    broken = [check for check in checks if not check[1] <= check[2]]
    return [
        f"{title}: the error of the {what} is {error:.1e}, over {bound:g}"
        for what, error, bound in broken
    ]


def print_checks(found: list[Posterior], seconds: float, turns: int) -> list[str]:
    """Print the first table, and return messages about what is broken."""
    print(
        f"{'':41}{'worst error of':>18}{'statements':>12}{'operations':>12}"
        f"{'microseconds of':>18}{'':7}{'Stan':>8}"
    )
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
            f"{figures.gradient_seconds / figures.plain_seconds:7.2f}"
            f"{1e6 * each.stan_seconds:8.1f}",
            flush=True,
        )
        broken += over_bounds(each.name, (figures.value_error, figures.gradient_error))
        longer += figures.operations > max(statements, figures.own_statements) + 2
    print(f"\noperations over statements + 2: {longer} of {len(found)}")
    return broken


def gradients_of(
    each: Posterior, libraries: list[str]
) -> tuple[dict[str, Callable[[], Any]], list[str]]:
    """Return the gradient at the first point in varmat and in the libraries that can compute it,
    checked and compiled. Return messages about what is broken too.
    """
    functions, broken = {}, []
    for library in ["varmat", *libraries]:
        try:
            gradient = peers.gradient_function(library, each, each.sizes[0])
        except peers.MissingError:
            continue
        broken += over_bounds(f"{each.name} in {library}", each.errors(gradient))
        functions[library] = at(gradient, *each.point(each.sizes[0]))
    return functions, broken


def print_peers(
    found: list[Posterior], libraries: list[str], seconds: float, turns: int
) -> list[str]:
    """Print the second table, and return messages about what is broken."""
    ratios: dict[str, list[Timing]] = {library: [] for library in [*libraries, "Stan"]}
    print(
        f"\n{'microseconds of a gradient':41}{'varmat':>9}"
        + "".join(f"{library:>11}{'ratio':>8}" for library in ratios)
    )
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
    print(
        f"{'geometric mean':50}"
        + "".join(f"{'':11}{mean_ratio(each):8.3g}" for each in ratios.values())
    )
    return broken


def print_stan(found: list[Posterior], folder: Path, seconds: float, turns: int) -> list[str]:
    """Print the table of Stan, and return messages about what is broken."""
    ways = ("varmat", "recorded")
    ratios: dict[str, list[Timing]] = {way: [] for way in ways}
    print(
        f"\n{'microseconds of a gradient':41}{'Stan':>9}"
        + "".join(f"{way:>11}{'ratio':>8}{'10-90 %':>14}" for way in ways)
    )
    broken = []
    for each in found:
        functions, wrong = gradients_of(each, ["recorded", "stan"])
        broken += wrong
        times = timings(functions, seconds, turns)
        text = f"{each.name:41}{1e6 * times['stan']:9.3g}"
        for way in ways:
            if way in times:
                ratio = times[way].over(times["stan"])
                ratios[way].append(ratio)
                text += (
                    f"{1e6 * times[way]:11.4g}{ratio:8.3g}{f'{ratio.low:.3g}-{ratio.high:.3g}':>14}"
                )
            else:
                text += f"{'-':>11}{'':22}"
        print(text, flush=True)
    for name, program in STAN_ALONE.items():
        path = folder / f"{name}.json"
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
            server = stan.Server(program, content["data"])
            q = np.array(content["golden"][0]["theta"])
            times = timings({"stan": stan.TimedInServer(server, q)}, seconds, turns)
            print(
                f"{name:41}{1e6 * times['stan']:9.3g}" + f"{'-':>11}{'':22}" * len(ways), flush=True
            )
    print(
        f"{'geometric mean':50}"
        + "".join(f"{'':11}{mean_ratio(ratios[way]):8.3g}{'':14}" for way in ways)
    )
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=default_folder(), help="folder of the posteriors' files"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats: times are rough")
    parser.add_argument(
        "--peers", default="", help="of recorded,jax,torch,autograd,stan, separated by commas"
    )
    parser.add_argument("--stan", action="store_true", help="a table of Stan, measured now")
    options = parser.parse_args()
    found = find(options.data)
    if not found:
        print(
            f"There are no posteriors in {options.data}: name their folder by --data or "
            "VARMAT_POSTERIORS. Nothing was measured."
        )
        return 2
    turns, seconds = (5, 0.005) if options.quick else (31, 0.02)
    broken = print_checks(found, seconds, turns)
    libraries = [library for library in options.peers.split(",") if library]
    if libraries:
        broken += print_peers(found, libraries, seconds, turns)
    if options.stan:
        reason = stan.missing()
        if reason is None:
            broken += print_stan(found, options.data, seconds, turns)
        else:
            print(f"stan is left out: {reason}")
    bounds = f"{VALUE_BOUND:g} (1 + |log density|) and {GRADIENT_BOUND:g} (1 + largest |gradient|)"
    print("\n".join(broken) or f"errors: all within {bounds}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
