"""Check Stan programs with published data against stanli, posterior by posterior.

    python asv_benchmarks/stan_collection.py --collection FOLDER [--only TEXT] [--points 3]

FOLDER is a copy of posteriordb: it holds `posterior_database`. Needs stanli. For each posterior the
table shows the error of the gradient relative to 1 + max |g| (at most 1e-9), the error of the
differences of values relative to the values (at most 1e-10), both at three points, the seconds from
the file to the first gradient, the microseconds of one native gradient by
`log_density_gradient.map` and of one by stanli, and what went wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
import traceback
import zipfile
from pathlib import Path

import numpy as np

import varmat as vm


def posteriors(folder: Path, only: str) -> list[tuple[str, Path, Path]]:
    """The name, program and data of each posterior."""
    base = folder / "posterior_database"
    found = []
    for path in sorted((base / "posteriors").glob("*.json")):
        info = json.loads(path.read_text())
        program = base / "models" / "stan" / f"{info['model_name']}.stan"
        data = base / "data" / "data" / f"{info['data_name']}.json.zip"
        if only in path.stem:
            found.append((path.stem, program, data))
    return found


def data_of(path: Path) -> str:
    """The text of zipped data."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.namelist()[0]).decode()


def seconds_each(run: object, *args: object) -> float:
    """The shortest of three times."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run(*args)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return min(times)


def compare(model: vm.Model, reference: object, count: int) -> tuple[str, float, float, np.ndarray]:
    """What differs, the largest errors of gradients and values, and a point where both exist."""
    rng = np.random.default_rng(1)
    size = model.param_unc_num()
    if size != reference.n_unconstrained:  # type: ignore[attr-defined]
        text = f"size {size} for {reference.n_unconstrained}"  # type: ignore[attr-defined]
        return text, np.nan, np.nan, np.zeros(size)
    worst, values, found = 0.0, [], 0
    for scale in [0.5] * count + [0.1] * 20:
        q = scale * rng.uniform(-2, 2, size)
        try:
            theirs, gradient = reference.log_prob_grad(q)  # type: ignore[attr-defined]
        except Exception:
            continue
        if not (np.isfinite(theirs) and np.all(np.isfinite(gradient))):
            continue
        ours, mine = model.log_density_gradient(q)
        gradient = np.asarray(gradient)
        error = np.max(np.abs(mine - gradient), initial=0.0)
        worst = max(worst, error / (1 + np.max(np.abs(gradient), initial=0.0)))
        values.append((ours, theirs))
        found, used = found + 1, q
        if found == count:
            break
    if not values:
        return "no point", np.nan, np.nan, q
    (a, b), *others = values
    of_values = max(
        (abs((x - a) - (y - b)) / (1 + max(abs(y), abs(b))) for x, y in others), default=0.0
    )
    agrees = worst <= 1e-9 and of_values <= 1e-10
    return "agrees" if agrees else "differs", worst, of_values, used


def row_of(name: str, program: Path, data: Path, count: int) -> dict[str, object]:
    """One row of the table."""
    import stanli

    row: dict[str, object] = {"name": name}
    if not data.exists():
        return row | {"state": "no data in the collection"}
    text = data_of(data)
    given = json.loads(text)
    start = time.perf_counter()
    try:
        parsed = vm.stan.Program(program)
        row["parses"] = True
        model = parsed.model(given)
        row["loads"] = True
        q = np.random.default_rng(0).uniform(-0.2, 0.2, model.param_unc_num())
        with contextlib.suppress(vm.DomainError):
            model.log_density_gradient(q)
    except Exception as error:
        return row | {
            "state": f"{type(error).__name__}: {str(error)[:150]}",
            "trace": traceback.format_exc(),
        }
    row["first"] = time.perf_counter() - start
    row["obstacle"] = getattr(model._value_and_grad, "obstacle", None)
    try:
        reference = stanli.Model(stan_file=str(program), data=text)
    except Exception as error:
        return row | {"state": f"stanli: {str(error)[:100]}"}
    try:
        row["state"], row["gradient"], row["value"], q = compare(model, reference, count)
        if row["state"] == "differs" and "ode_" in program.read_text():
            row["state"] = "as the tolerance of the solver allows"
        if np.isnan(row["gradient"]):
            return row
        points = np.tile(q, (100, 1))
        model.log_density_gradient.map(points[:8], "serial")
        row["native"] = 1e4 * seconds_each(model.log_density_gradient.map, points, "serial")
        row["stanli"] = 1e4 * seconds_each(lambda: [reference.log_prob_grad(x) for x in points])
    except Exception as error:
        row |= {
            "state": f"{type(error).__name__}: {str(error)[:150]}",
            "trace": traceback.format_exc(),
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collection", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    rows = []
    for name, program, data in posteriors(options.collection, options.only):
        with contextlib.redirect_stdout(io.StringIO()):
            row = row_of(name, program, data, options.points)
        rows.append(row)
        numbers = " ".join(
            f"{row[key]:{form}}" if key in row else " -  "
            for key, form in (
                ("gradient", "8.1e"),
                ("value", "8.1e"),
                ("first", "6.2f"),
                ("native", "9.1f"),
                ("stanli", "9.1f"),
            )
        )
        obstacle = f"  [{str(row['obstacle'])[:90]}]" if row.get("obstacle") else ""
        print(f"{name:62} {numbers}  {row['state']}{obstacle}", flush=True)
        if options.trace and "trace" in row:
            print(row["trace"], file=sys.stderr)
    states = [row["state"] for row in rows]
    print(f"{len(rows)} posteriors: {states.count('agrees')} agree")
    pairs = [(row["native"], row["stanli"]) for row in rows if "stanli" in row]
    if pairs:
        ratio = np.exp(np.mean([np.log(a / b) for a, b in pairs]))
        print(f"time relative to stanli, geometric mean of {len(pairs)}: {ratio:.2f}")


if __name__ == "__main__":
    main()
