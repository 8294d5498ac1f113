"""Run the evals of GradBench, without Docker, for varmat and other tools in turns.

    python asv_benchmarks/compare_gradbench.py CHECKOUT [--evals gmm,lse] [--all-functions]
        [--tools manual,codipack,jax] [--python jax=/path/of/python] [--cpu] [--limit SECONDS]

CHECKOUT is a copy of https://github.com/gradbench/gradbench. The evals need pydantic, and some
dataclasses-json. Each tool is a process of its own, which GradBench's messages ask for the same
inputs, one tool after the other. Tools in C++ are compiled first: they need ``cpp/json.hpp`` and
the headers of their libraries, for example in ``CPATH``. A tool that does not have an eval, or
takes longer than the limit, has no figure.

The results are compared with those of the eval, as GradBench compares them; the script exits with 1
if one differs. Times are those that GradBench counts: of the evaluations alone, without JSON and
preparation. For JAX they include the wait for its results, which GradBench leaves out. The first
evaluation of varmat, which records and compiles, has a column; the other figures are the quickest
of at least five. One thread is used. With ``--cpu``, all tools count seconds of their processes
instead of seconds of the clock, because the clock misleads where other programs run: a C compiler
makes a library that is loaded before all others.

The last table has geometric means, over the inputs of an eval, of varmat's time over that of each
tool.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import environment  # noqa: F401 - one thread
from timing import duration, mean_ratio

HERE = Path(__file__).resolve().parent
# The options of each eval: sizes that all tools have the time and memory for.
EVALS = {
    "gmm": "-d 2 10 20 32 -k 5 25 50",
    "lse": "-n 2500 20000 160000",
    "llsq": "-n 16 128 1024 8196",
    "kmeans": "-k 10 100 1000 -n 1000 10000 -d 16",
    "lstm": "-l 2 4 6 -c 1024 4096",
    "ba": "--min 1 --max 3",
    "ht": "--min 1 --max 5 --model small",
    "ode": "-n 1000 10000 -s 1 10 100",
    "det": "-l 5 6 7 8 9 10",
    "saddle": "",
    "particle": "",
}
VALUES = {"objective", "primal", "cost"}  # functions without derivatives
IN_PYTHON = ("jax", "pytorch", "tensorflow")
WAITING = """
import os, runpy, sys, jax
from gradbench import wrap
plain = wrap.multiple_runs
def multiple_runs(**options):
    return lambda f: plain(**options)(lambda x: jax.block_until_ready(f(x)))
wrap.multiple_runs = multiple_runs
script = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(script))
runpy.run_path(script, run_name="__main__")
"""
CLOCK = """
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t clock, struct timespec *t) {
  return syscall(SYS_clock_gettime, clock == CLOCK_MONOTONIC ? CLOCK_PROCESS_CPUTIME_ID : clock, t);
}
"""


class Tool:
    """A tool of GradBench as a process, which is started again if it ended."""

    def __init__(self, name: str, command: list[str], checkout: Path, env: dict[str, str]) -> None:
        self.name, self.command, self.checkout, self.env = name, command, checkout, env
        self.process: subprocess.Popen[str] | None = None

    def answer(self, message: dict[str, Any], limit: float) -> dict[str, Any]:
        """Send a message, and return the answer, or a failure after the limit."""
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command, cwd=self.checkout, env=self.env, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps({"id": 0, **message}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        process.wait()  # it has been killed, or has ended
        return {"success": False, "error": "no answer"}

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def inputs_of(name: str, checkout: Path, env: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the messages by which an eval asks a tool to evaluate, with a tool that refuses all."""
    command = [sys.executable, "-m", f"gradbench.evals.{name}.run", *EVALS[name].split()]
    quick = name in ("saddle", "particle")
    command += ["--min-runs", "2" if quick else "5", "--min-seconds", "0" if quick else "0.3"]
    with subprocess.Popen(
        command, cwd=checkout, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if message["kind"] == "evaluate":
                yield message
            answer = {"id": message["id"], "success": message["kind"] == "define"}
            process.stdin.write(json.dumps(answer) + "\n")
            process.stdin.flush()


def seconds_in(answer: dict[str, Any]) -> tuple[float, float]:
    """Return the time of the first evaluation, and the least of the others."""
    found = [each["nanoseconds"] for each in answer["timings"] if each["name"] == "evaluate"]
    return found[0] / 1e9, min(found[1:] or found) / 1e9


def preloaded(folder: str) -> str:
    """Compile the library whose clock counts seconds of the process."""
    source, library = Path(folder, "clock.c"), Path(folder, "clock.so")
    source.write_text(CLOCK, encoding="utf-8")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--evals", default=",".join(EVALS))
    parser.add_argument("--tools", default="manual,codipack,jax")
    parser.add_argument("--python", action="append", default=[], metavar="TOOL=PATH")
    parser.add_argument("--all-functions", action="store_true", help="values without derivatives")
    parser.add_argument("--cpu", action="store_true", help="count seconds of the process")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for an answer")
    args = parser.parse_args()

    checkout = args.checkout.resolve()
    package = checkout / "python" / "gradbench"
    paths = [str(package), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "JAX_PLATFORMS": "cpu"}
    pythons = dict(each.split("=", 1) for each in args.python)
    with tempfile.TemporaryDirectory() as folder:
        counting = {**env, "LD_PRELOAD": preloaded(folder)} if args.cpu else env
        tools = [
            Tool("varmat", [sys.executable, str(HERE / "gradbench/run.py")], checkout, counting)
        ]
        for name in filter(None, args.tools.split(",")):
            script = package / "gradbench" / "tools" / name / "run.py"
            command = [sys.executable, str(package / "gradbench" / "cpp.py"), name]
            if name in IN_PYTHON:
                command = [pythons.get(name, sys.executable), str(script)]
            if name == "jax":
                command[1:] = ["-c", WAITING, str(script)]
            tools.append(Tool(name, command, checkout, counting))
        sys.path.insert(0, str(package))
        os.chdir(checkout)  # the golden results come from programs there
        try:
            return compared(tools, args.evals.split(","), env, args)
        finally:
            for tool in tools:
                tool.end()


def compared(tools: list[Tool], evals: list[str], env: dict[str, str], args: Any) -> int:
    """Print the tables, and return how many results differ, at most 1."""
    mismatches_of = import_module("gradbench.comparison").compare_json_objects
    own, *others = (tool.name for tool in tools)
    ratios: dict[str, dict[str, list[float]]] = {}
    is_wrong = 0
    heads = ["eval", "function", "input", "varmat, first", "varmat", *others]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}", flush=True)
    for name in evals:
        define = {"kind": "define", "module": name}
        able = [tool for tool in tools if tool.answer(define, 600.0)["success"]]
        expect = import_module(f"gradbench.evals.{name}.run").expect
        row = ratios[name] = {other: [] for other in others}
        for message in inputs_of(name, args.checkout.resolve(), env):
            if message["function"] in VALUES and not args.all_functions:
                continue
            golden, times = expect(message["function"], message["input"]), {}
            for tool in able:
                answer = tool.answer(message, args.limit)
                if not answer["success"]:
                    continue
                times[tool.name] = seconds_in(answer)
                for text in mismatches_of(golden.get("output"), answer["output"])[:3]:
                    is_wrong = 1
                    print(f"{tool.name} differs in {name}, {message['description']}: {text}")
            first, warm = times.get(own, (float("nan"),) * 2)
            for other in times.keys() - {own}:
                row[other].append(warm / times[other][1])
            cells = [duration(times[other][1]) if other in times else "" for other in others]
            cells = [f"{first:.2g} s", duration(warm), *cells]
            cells = [name, message["function"], message["description"], *cells]
            print(f"| {' | '.join(cells)} |", flush=True)
    print(
        f"\n| varmat's time relative to | {' | '.join(others)} |\n|{' --- |' * (len(others) + 1)}"
    )
    for name, row in ratios.items():
        cells = [f"{mean_ratio(row[other]):.2g}" if row[other] else "" for other in others]
        print(f"| {name} | {' | '.join(cells)} |")
    return is_wrong


if __name__ == "__main__":
    sys.exit(main())
