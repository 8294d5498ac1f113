"""Check Stan programs with published data against stanli, posterior by posterior.

    python asv_benchmarks/stan_collection.py --collection FOLDER [--only TEXT] [--points 3]
        [--limit SECONDS] [--rows FILE] [--representation | --sample | --table]

FOLDER is a copy of posteriordb: it holds `posterior_database`. Each posterior has a process of its
own, which ends after the limit; FILE collects the rows, and its posteriors are not computed again.

Needs stanli. The table shows the error of the gradient relative to 1 + max |g| (at most 1e-9), the
error of the differences of values relative to the values (at most 1e-10), both at three points, the
seconds of processor time from the file to the first gradient, the microseconds of one native
gradient of many by `log_density_gradient.map` and of one by stanli's C function in a compiled loop,
as it is and with `fast_math`, and what went wrong.

With `--representation`, it shows instead the number of variables that are matvars by choice, the
microseconds of one gradient with all variables as varmats, all as matvars and as chosen, in Python
and, where matvars are chosen, recorded; and the largest difference of gradients among the three.

With `--sample`, the posteriors with reference draws are sampled, four chains of 1,000 draws. For
each the table shows the largest differences of means and of standard deviations, in units of their
Monte Carlo errors (at most 4), and their places. With `--table`, the rows of FILE are printed as
Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import multiprocessing
import resource
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import varmat as vm
from varmat.models.diagnostics import diagnostics

Row = dict[str, Any]
MEMORY = 12 << 30


def posteriors(folder: Path, only: str) -> list[tuple[str, Path, Path, Path]]:
    """The name, program, data and reference draws of each posterior."""
    base = folder / "posterior_database"
    found = []
    for path in sorted((base / "posteriors").glob("*.json")):
        info = json.loads(path.read_text(encoding="utf-8"))
        program = base / "models" / "stan" / f"{info['model_name']}.stan"
        data = base / "data" / "data" / f"{info['data_name']}.json.zip"
        draws = f"{info.get('reference_posterior_name')}.json.zip"
        if only in path.stem:
            reference = base / "reference_posteriors" / "draws" / "draws" / draws
            found.append((path.stem, program, data, reference))
    return found


def unzipped(path: Path) -> str:
    """The text of a zipped file."""
    with zipfile.ZipFile(path) as archive:
        return archive.read(archive.namelist()[0]).decode()


def microseconds(run: Callable[..., object], *args: object, count: int = 1) -> float:
    """The shortest of three processor times, or of as many as fit into a few seconds."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 4:
        start = time.process_time()
        run(*args)
        times.append(time.process_time() - start)
    return 1e6 * min(times) / count


# --- agreement ---


def compare(model: vm.Model, reference: Any, count: int) -> tuple[Row, np.ndarray]:
    """What differs, the largest errors of gradients and values, and a point where both exist."""
    rng = np.random.default_rng(1)
    size = model.param_unc_num()
    if size != reference.n_unconstrained:
        return {"state": f"size {size} for {reference.n_unconstrained}"}, np.zeros(size)
    worst, values = 0.0, []
    for scale in [0.5] * count + [0.1] * 20:
        q = scale * rng.uniform(-2, 2, size)
        try:
            theirs, gradient = reference.log_prob_grad(q)
        except Exception:
            continue
        if not (np.isfinite(theirs) and np.all(np.isfinite(gradient))):
            continue
        ours, mine = model.log_density_gradient(q)
        gradient = np.asarray(gradient)
        error = np.max(np.abs(mine - gradient), initial=0.0)
        worst = max(worst, error / (1 + np.max(np.abs(gradient), initial=0.0)))
        values.append((ours, theirs))
        used = q
        if len(values) == count:
            break
    if not values:
        return {"state": "no point where stanli's gradient is finite"}, q
    (a, b), *others = values
    of_values = max(
        (abs((x - a) - (y - b)) / (1 + max(abs(y), abs(b))) for x, y in others), default=0.0
    )
    agrees = worst <= 1e-9 and of_values <= 1e-10
    state = "agrees" if agrees else "differs"
    return {"state": state, "gradient": worst, "value": of_values}, used


def agreement(program: Path, data: Path, points: int) -> Iterator[Row]:
    """What is known of a row, step by step."""
    import stanli

    start = time.process_time()
    parsed = vm.stan.Program(program)
    yield {"parses": True}
    text = unzipped(data)
    model = parsed.model(json.loads(text))
    yield {"loads": True}
    q = np.random.default_rng(0).uniform(-0.2, 0.2, model.param_unc_num())
    with contextlib.suppress(vm.DomainError):
        model.log_density_gradient(q)
    obstacle = getattr(model._value_and_grad, "obstacle", None)
    yield {"first": time.process_time() - start, "obstacle": obstacle and str(obstacle)}
    try:
        reference = stanli.Model(stan_file=str(program), data=text)
    except Exception as error:
        yield {"state": f"stanli: {str(error)[:100]}"}
        return
    row, q = compare(model, reference, points)
    if row["state"] == "differs" and "ode_" in program.read_text(encoding="utf-8"):
        row["state"] = "differs: the program solves differential equations"
    yield row
    if "gradient" not in row:
        return
    once = 1e-6 * microseconds(model.log_density_gradient, q)
    rows = np.tile(q, (int(np.clip(0.2 / once, 2, 50_000)), 1))
    count, start = len(rows), time.perf_counter()
    while time.perf_counter() - start < 0.5:  # what is compiled for many points is compiled
        model.log_density_gradient.map(rows, "serial")
    native = microseconds(model.log_density_gradient.map, rows, "serial", count=count)
    yield {"native": native, "stanli": microseconds(in_a_loop, reference, rows, count=count)}
    fast = stanli.Model(stan_file=str(program), data=text, fast_math=True)
    yield {"fast": microseconds(in_a_loop, fast, rows, count=count)}


@cache
def _loop() -> tuple[Any, Any]:
    """A compiled loop over calls of stanli's gradient, and what holds its code."""
    from llvmlite import ir

    from varmat.programs.run.compiler import DOUBLE, INT, INT32, POINTER, Compiled, Module, counted

    module = Module()
    kind = ir.FunctionType(INT, [POINTER] * 5 + [INT] * 2)
    function = ir.Function(module, kind, "gradients")
    gradient, model, q, values, gradients, count, size = function.args
    b = ir.IRBuilder(function.append_basic_block())
    called = ir.FunctionType(INT32, [POINTER] * 4).as_pointer()
    call = b.inttoptr(b.ptrtoint(gradient, INT), called)

    def body(i: Any, failed: Any) -> Any:
        at = b.mul(i, size)
        places = [
            b.gep(x, [j], source_etype=DOUBLE) for x, j in ((q, at), (values, i), (gradients, at))
        ]
        return [b.add(failed[0], b.sext(b.call(call, [model, *places]), INT))]

    _, (failed,) = counted(b, INT(0), count, 1, [INT(0)], body)
    b.ret(failed)
    code = Compiled(module)
    address = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 5, *[ctypes.c_int64] * 2)
    return address(code.address("gradients")), code


def in_a_loop(reference: Any, rows: np.ndarray) -> np.ndarray:
    """Return the gradients of all points by stanli's C function."""
    import stanli

    address = ctypes.cast(stanli._lib.stanli_grad, ctypes.c_void_p).value
    gradients, values = np.empty_like(rows), np.empty(len(rows))
    arrays = (x.ctypes.data for x in (rows, values, gradients))
    if _loop()[0](address, reference._m, *arrays, *rows.shape):
        raise RuntimeError("stanli has no gradient at some point")
    return gradients


def agreement_text(row: Row) -> str:
    numbers = [
        f"{row[key]:{form}}" if row.get(key) is not None else " -  "
        for key, form in (
            ("gradient", "8.1e"),
            ("value", "8.1e"),
            ("first", "6.2f"),
            ("native", "9.1f"),
            ("stanli", "9.1f"),
            ("fast", "9.1f"),
        )
    ]
    obstacle = f"  [{row['obstacle'][:90]}]" if row.get("obstacle") else ""
    return f"{' '.join(numbers)}  {row['state']}{obstacle}"


def agreement_summary(rows: list[Row]) -> None:
    states = [row["state"] for row in rows]
    print(f"{len(rows)} posteriors: {states.count('agrees')} agree")
    for key in ("stanli", "fast"):
        ratios = [row["native"] / row[key] for row in rows if key in row]
        if ratios:
            mean, slower = np.exp(np.mean(np.log(ratios))), sum(x > 1 for x in ratios)
            print(f"{key}: geometric mean of {len(ratios)} ratios {mean:.2f}, slower in {slower}")


def agreement_table(rows: list[Row]) -> None:
    """Print rows as Markdown."""
    heads = ["posterior", "parses, loads", "agreement", "gradient error", "value error"]
    heads += ["first gradient, s", "varmat, us", "stanli, us", "ratio", "fast, us", "ratio"]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for row in sorted(rows, key=lambda row: str(row["name"]).lower()):
        read = ", ".join("yes" if row.get(key) else "no" for key in ("parses", "loads"))
        cells = [row["name"], read, "yes" if row["state"] == "agrees" else row["state"]]
        forms = {"gradient": ".0e", "value": ".0e", "first": ".1f", "native": ".2f"}
        cells += [f"{row[key]:{form}}" if key in row else "" for key, form in forms.items()]
        for key in ("stanli", "fast"):
            cells += (
                [f"{row[key]:.2f}", f"{row['native'] / row[key]:.2f}"] if key in row else ["", ""]
            )
        print("| " + " | ".join(cells) + " |")


# --- representations ---


def representations(program: Path, data: Path) -> Iterator[Row]:
    parsed, given = vm.stan.Program(program), json.loads(unzipped(data))
    chosen = sum(each.form == "matvar" for each in parsed.representation().variables.values())
    yield {"matvars": chosen}
    models = [parsed.model(given, representation=each) for each in ("varmat", "matvar", None)]
    q = np.random.default_rng(1).uniform(-0.2, 0.2, models[0].param_unc_num())
    eager = [partial(vm.value_and_grad(each._target), q, True, True) for each in models]
    gradients = np.array([each()[1] for each in eager])
    scale = 1 + np.max(np.abs(gradients), initial=0.0)
    yield {"error": np.max(np.ptp(gradients, 0), initial=0.0) / scale}
    yield {"eager": [*map(microseconds, eager)], "state": "eager alone"}
    if chosen:
        rows = np.tile(q, (20, 1))
        recorded = [partial(each.log_density_gradient.map, rows, "serial") for each in models]
        for each in recorded:
            each()
        yield {"recorded": [microseconds(each, count=20) for each in recorded], "state": "both"}


def representation_text(row: Row) -> str:
    if "eager" not in row:
        return str(row["state"])
    times = " ".join(f"{x:9.0f}" for x in row["eager"])
    recorded = " ".join(f"{x:8.1f}" for x in row.get("recorded", ()))
    return f"{row['matvars']:2} {row['error']:8.1e} {times}  {recorded}"


# --- sampling ---


def moments(draws: np.ndarray) -> np.ndarray:
    """Mean, its error, standard deviation and its error, of draws (chains, draws)."""
    mean, sd = draws.mean(), draws.std(ddof=1)
    squares = (draws - mean) ** 2
    (of_mean,) = diagnostics(draws[:, :, None])["ess_bulk"]
    (of_squares,) = diagnostics(squares[:, :, None])["ess_bulk"]
    error = squares.std() / np.sqrt(of_squares) / (2 * sd)
    return np.array([mean, sd / np.sqrt(of_mean), sd, error])


def sampling(program: Path, data: Path, reference: Path) -> Iterator[Row]:
    model = vm.stan.Program(program).model(json.loads(unzipped(data)))
    chains = json.loads(unzipped(reference))
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", vm.SamplingWarning)
        result = model.sample(
            1000, 4, seed=1, target_accept=0.9, progress_bar=False, keep_warmup=False
        )
    problems = sorted({key for each in caught for key in getattr(each.message, "problems", {})})
    yield {"seconds": time.perf_counter() - start, "problems": problems}
    worst: dict[str, tuple[float, str]] = {"mean": (0.0, ""), "sd": (0.0, "")}
    count = 0
    for label in chains[0]:
        name, _, rest = label.partition("[")
        place = tuple(int(i) - 1 for i in rest.rstrip("]").split(",") if i)
        ours = np.asarray(result.posterior[name])[(slice(None), slice(None), *place)]
        theirs = np.array([chain[label] for chain in chains])
        if np.ptp(theirs) == 0 == np.ptp(ours):
            continue
        a, b = moments(ours), moments(theirs)
        count += 1
        for key, i in (("mean", 0), ("sd", 2)):
            z = (a[i] - b[i]) / np.hypot(a[i + 1], b[i + 1])
            worst[key] = max(worst[key], (float(abs(z)), label))
    within = max(z for z, _ in worst.values()) < 4
    yield {**worst, "count": count, "state": "agrees" if within else "differs"}


def sampling_text(row: Row) -> str:
    if "count" not in row:
        return str(row["state"])
    worst = "  ".join(f"{key} {row[key][0]:4.2f} {row[key][1]:14}" for key in ("mean", "sd"))
    return f"{row['seconds']:6.1f} s {row['count']:4}  {worst} {row['state']}  {row['problems']}"


# --- rows ---


def compute(steps: Callable[..., Iterator[Row]], args: tuple[object, ...], found: Any) -> None:
    """Send what is known of a row, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            for part in steps(*args):
                found.send(part)
        except Exception as error:
            text = f"{type(error).__name__}: {str(error)[:150]}"
            found.send({"state": text, "trace": traceback.format_exc()})
    found.close()


def row_of(steps: Callable[..., Iterator[Row]], args: tuple[object, ...], limit: float) -> Row:
    """One row of the table, as far as it is known when the process ends."""
    row: Row = {}
    found, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=compute, args=(steps, args, sender))
    end = time.monotonic() + limit
    process.start()
    sender.close()
    try:
        while found.poll(max(0.0, end - time.monotonic())):
            row |= found.recv()
        late = f"no result within {limit:g} s"
    except EOFError:
        late = "the process was killed"
    process.kill()
    process.join()
    return {"state": late} | row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collection", type=Path, required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--points", type=int, default=3)
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--representation", action="store_true")
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    text_of = agreement_text
    if options.sample or options.representation:
        text_of = sampling_text if options.sample else representation_text
    # Warm this process, because the others start as copies of it.
    vm.stan.Program(
        "parameters { real x; } model { x ~ normal(0, 1); }"
    ).model().log_density_gradient(np.zeros(1))
    known = (
        options.rows.read_text(encoding="utf-8").splitlines()
        if options.rows and options.rows.exists()
        else []
    )
    rows: dict[str, Row] = {row["name"]: row for row in map(json.loads, known)}
    if options.table:
        agreement_table([*rows.values()])
        return
    for name, program, data, reference in posteriors(options.collection, options.only):
        if options.sample and not reference.exists():
            continue
        if name not in rows:
            row: Row = {"state": "no data in the collection"}
            if data.exists() and options.sample:
                row = row_of(sampling, (program, data, reference), options.limit)
            elif data.exists() and options.representation:
                row = row_of(representations, (program, data), options.limit)
            elif data.exists():
                row = row_of(agreement, (program, data, options.points), options.limit)
            rows[name] = {"name": name} | row
            if options.rows:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(rows[name], default=float) + "\n")
        print(f"{name:62} {text_of(rows[name])}", flush=True)
    if text_of is agreement_text:
        agreement_summary([*rows.values()])


if __name__ == "__main__":
    main()
