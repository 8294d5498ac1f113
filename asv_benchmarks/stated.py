"""Sample twelve models, each stated once, in varmat and in other libraries, and compare.

    python asv_benchmarks/stated.py [NAME ...] [--peer LIBRARY[=PYTHON] ...]
        [--method METHOD] [--draws N]

The models are those of ``workloads/stated_models.py``, ``stated_numpyro.py`` and
``stated_pymc.py``, of the same simulated data, with float64 in all. ``--peer`` names a library,
"numpyro" or "pymc", and a Python that has it, by default this one; without it the peer is NumPyro.
Each model is sampled in a process of its own: 4 chains of 1,000 draws of adaptation and 2,000 kept,
with the log likelihood of each observation and generated quantities, twice. The first call includes
making the model and compiling, and neither includes imports. Peers run chains as ``--method`` says:
"parallel" (a device or a process for each chain, the default), "vectorized" (of NumPyro) or
"sequential".

Lines are those of the function that states the model, without its docstring. Effective draws are
the least bulk effective size of all elements of the parameters, of the second call. The last column
of a peer is the largest difference of the posterior means of an element, in units of its Monte
Carlo errors. The script exits with 1 if it is over 5, or if a first call takes more than a fifth of
a peer's.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np
from workloads import stated_data

NAMES = (
    "hierarchical_logit", "censored_survival", "gaussian_process", "lotka_volterra",
    "stochastic_volatility", "hidden_markov", "ordinal", "zero_inflated",
    "delayed_entry", "switch_point", "occupancy", "doses",
)  # fmt: skip
# The module with a library's models, and what is imported before the clock starts.
MODULES = {
    "varmat": ("workloads.stated_models", ("nutpie", "arviz")),
    "numpyro": ("stated_numpyro", ()),
    "pymc": ("stated_pymc", ()),
}
PEERS = {"numpyro": "NumPyro", "pymc": "PyMC"}
METHODS = ("vectorized", "parallel", "sequential")
LONGEST = 360.0
LARGEST, SHARE = 5.0, 0.2


def lines_of(function: Any) -> int:
    """The lines of a function that are neither empty nor its docstring."""
    shown = [line for line in inspect.getsource(function).splitlines() if line.strip()]
    return len(shown) - len((function.__doc__ or "").splitlines())


def sampled(library: str, name: str, method: str, draws: int) -> dict[str, Any]:
    """Sample a model twice in this process: seconds, effective draws, means and their errors."""
    from varmat.models.diagnostics import diagnostics

    home, first = MODULES[library]
    module = import_module(home)
    if not hasattr(module, name):
        return {}
    data, _ = getattr(stated_data, name)()
    for each in first:
        import_module(each)
    seconds, start = [], time.perf_counter()
    sample = module.sampler(getattr(module, name)(**data), draws // 2, draws, method)
    for seed in (1, 2):
        found = sample(seed)
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
    table: dict[str, Any] = {}
    for each, x in found.items():
        sizes = diagnostics(x)["ess_bulk"].reshape(x.shape[2:])
        table[each] = [x.mean((0, 1)), x.std((0, 1)) / np.sqrt(sizes), sizes]
    return {
        "lines": lines_of(getattr(module, name)), "seconds": seconds, "method": method,
        "table": {each: [np.asarray(x).tolist() for x in row] for each, row in table.items()},
    }  # fmt: skip


def elsewhere(
    python: str, library: str, name: str, method: str, draws: int
) -> dict[str, Any] | None:
    """The same in another process; empty if the library lacks the model, None if it is too slow."""
    here = Path(__file__)
    paths = [str(here.parent.parent), os.environ.get("PYTHONPATH", "")]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    if method == "parallel":
        surroundings["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    # A session of its own, so that the processes of the chains end with it.
    with subprocess.Popen(
        [python, str(here), name, "--run", library, "--method", method, "--draws", str(draws)],
        env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as run:  # fmt: skip
        try:
            said, errors = run.communicate(timeout=LONGEST)
        except BaseException as error:
            os.killpg(run.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    if run.returncode:
        raise RuntimeError(f"{library}, {name}: {errors}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def compared(one: dict[str, Any], other: dict[str, Any]) -> float:
    """The largest difference of means, in units of its Monte Carlo error."""
    largest = 0.0
    for name in one.keys() & other.keys():
        (mean, error, _), (mean_too, error_too, _) = (
            map(np.asarray, each[name]) for each in (one, other)
        )
        with np.errstate(invalid="ignore"):
            largest = max(largest, np.nanmax(abs(mean - mean_too) / np.hypot(error, error_too)))
    return largest


def figures(found: dict[str, Any] | None, names: set[str]) -> list[str]:
    """Lines, seconds of both calls, and effective draws each second."""
    if not found:
        return ["", "none" if found == {} else f"> {LONGEST:.0f}", "", ""]
    first, second = found["seconds"]
    least = min(np.nanmin(found["table"][name][2]) for name in names)
    return [str(found["lines"]), f"{first:.2f}", f"{second:.2f}", f"{least / second:,.0f}"]


def peer(text: str) -> tuple[str, str]:
    """A library and a Python that has it."""
    library, _, python = text.partition("=")
    if library not in PEERS:
        raise argparse.ArgumentTypeError(f"{library!r} is not one of {', '.join(PEERS)}")
    return library, python or sys.executable


def main() -> int:
    arguments = argparse.ArgumentParser(description="Sample twelve models in several libraries.")
    arguments.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="NAME")
    arguments.add_argument("--peer", type=peer, action="append", metavar="LIBRARY[=PYTHON]")
    arguments.add_argument("--method", choices=METHODS, default="parallel")
    arguments.add_argument("--draws", type=int, default=2000)
    arguments.add_argument("--run", choices=[*MODULES], help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.run:
        print(json.dumps(sampled(given.run, given.names[0], given.method, given.draws)))
        return 0
    peers = given.peer or [peer("numpyro")]
    columns = ["lines", "first call, s", "second call, s", "effective draws / s"]
    head = ["model", *columns]
    for library, _ in peers:
        head += [f"{PEERS[library]}: {each}" for each in (*columns, "difference of means")]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    failed = False
    for name in given.names or NAMES:
        ours = elsewhere(sys.executable, "varmat", name, given.method, given.draws)
        assert ours is not None
        cells = [name.replace("_", " "), *figures(ours, {*ours["table"]})]
        for library, python in peers:
            theirs = elsewhere(python, library, name, given.method, given.draws)
            apart = compared(ours["table"], theirs["table"]) if theirs else 0.0
            both = ours["table"].keys() & theirs["table"].keys() if theirs else set()
            cells += [*figures(theirs, both), f"{apart:.1f}" if theirs else ""]
            bound = SHARE * (theirs["seconds"][0] if theirs else LONGEST)
            failed |= apart > LARGEST or ours["seconds"][0] > bound
        print("| " + " | ".join(cells) + " |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
