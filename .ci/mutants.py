"""Measure how many small errors the tests of a package find: the mutation score of a seeded sample.

    python -m pytest --cov=varmat --cov-context=test --cov-report= tests/core tests/derivatives
    python .ci/mutants.py core --count 150 --seed 1

The script draws places of the source at random, and an operator of cosmic-ray that can change
something there. It runs the changed module with those tests that, by the data of coverage.py, run
the changed line. A mutant is killed if one of these tests fails. The sample depends on the source
and the seed alone.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import hypothesis
import mpmath
import pandas
import pytest
import scipy.stats
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
# Each change is an error that people make. A change from addition to a bit shift, say, would fail
# wherever it runs, and would show nothing about the tests.
CHANGES = {
    "ReplaceBinaryOperator": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul "
    "BitOr_BitAnd BitAnd_BitOr",
    "ReplaceComparisonOperator": "Eq_NotEq NotEq_Eq Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE Gt_LtE "
    "Is_IsNot IsNot_Is",
    "ReplaceUnaryOperator": "Delete_USub Delete_Not",
}
OPERATORS = [f"{kind}_{change}" for kind, changes in CHANGES.items() for change in changes.split()]
OPERATORS += ["AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr"]
OPERATORS += ["ReplaceOrWithAnd", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak"]
OPERATORS += ["ExceptionReplacer", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"]
# These are imported here so that forked processes have them already.
IMPORTED = (hypothesis, mpmath, pandas, scipy.stats)
# How many tests of other modules are run besides the module's own tests.
OTHERS = 60
Place = tuple[int, int]
Mutant = tuple[Path, Place, str, int]


def not_run(tree: ast.Module) -> list[tuple[Place, Place]]:
    """Return where annotations and blocks for type checkers begin and end."""
    found: list[ast.expr | ast.stmt | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.append(node)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in found
        if node is not None
    ]


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    text = path.read_text(encoding="utf-8")
    ignored, nodes = not_run(ast.parse(text)), list(ast_nodes(get_ast(text)))
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        places = [begin for node in nodes for begin, _ in operator.mutation_positions(node)]
        for occurrence, place in enumerate(places):
            if not any(begin <= place < end for begin, end in ignored):
                yield path, place, name, occurrence


def sample(package: str, count: int, seed: int) -> list[Mutant]:
    """Draw `count` places of a package, with one mutant each."""
    at = defaultdict(list)
    for path in sorted((ROOT / "varmat" / package).rglob("*.py")):
        for mutant in mutants(path):
            at[mutant[:2]].append(mutant)
    draw = random.Random(seed)
    places = draw.sample(sorted(at), min(count, len(at)))
    return [draw.choice(at[place]) for place in places]


def tests_of(data: CoverageData, package: str, path: Path, line: int) -> list[str]:
    """Return the tests that run a line: all in the file of its module, and some of the others.

    If only the import runs the line, return all tests of its package.
    """
    contexts = data.contexts_by_lineno(str(path)).get(line, [])
    names = sorted({each.partition("|")[0].partition("[")[0] for each in contexts if each})
    if not names and contexts:
        return [f"tests/{package}"]
    own = [name for name in names if f"test_{path.stem}.py" in name]
    others = [name for name in names if name not in own]
    return own + random.Random(line).sample(others, min(OTHERS, len(others)))


class FirstFailure:
    """A plugin of pytest that writes the name of the first failing test to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.file.write_text(report.nodeid, encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.file.write_text(report.nodeid, encoding="utf-8")


def outcome_of(code: str, path: Path, tests: list[str], limit: int, file: Path) -> str:
    """Run tests with the text of a module replaced, and return what they say."""
    original = path.read_text(encoding="utf-8")
    path.write_text(code, encoding="utf-8")
    try:
        child = os.fork()
        if not child:
            run_tests(tests, limit, FirstFailure(file))
        _, status = os.waitpid(child, 0)
    finally:
        path.write_text(original, encoding="utf-8")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM):
        return "timed out"
    return "killed" if status else "survived"


def verdict(code: str, path: Path, tests: list[str], limit: int) -> str:
    """Return the verdict on a mutant. A test kills it if the test passes without the change."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "failure")
        outcome = outcome_of(code, path, tests, limit, file)
        if outcome == "killed" and file.exists():
            control = outcome_of(
                path.read_text(encoding="utf-8"),
                path,
                [file.read_text(encoding="utf-8")],
                limit,
                file,
            )
            outcome = "killed" if control == "survived" else "unclear"
        return outcome


def run_tests(tests: list[str], limit: int, plugin: FirstFailure) -> NoReturn:
    """Run tests in a forked process, which has already imported what takes long."""
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    signal.alarm(10 * limit)  # stops tests that wait for ever
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.dont_write_bytecode = True
    settings = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:cov"]
    settings += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    os._exit(pytest.main([*settings, *tests], [plugin]))


def changed(before: str, after: str) -> str:
    """Return the line that a mutant changes, before and after."""
    old, new = before.splitlines(), after.splitlines()
    at = next(i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y)
    return re.sub(r"\s+", " ", f"{old[at].strip()}  ->  {new[at].strip()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("package", choices=["core", "programs"])
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="mutants of the sample that are done")
    parser.add_argument("--limit", type=int, default=120, help="processor time, in seconds")
    parser.add_argument(
        "--data", default=".coverage", help="file of coverage.py, with a context for each test"
    )
    options = parser.parse_args()
    data, outcomes = CoverageData(options.data), defaultdict(int)
    data.read()
    for mutant in sample(options.package, options.count, options.seed)[options.skip :]:
        path, (line, _), name, occurrence = mutant
        before = path.read_text(encoding="utf-8")
        after = mutate_code(before, get_operator(f"core/{name}")(), occurrence)
        assert after is not None
        start, tests = time.perf_counter(), tests_of(data, options.package, path, line)
        outcome = verdict(after, path, tests, options.limit) if tests else "not run"
        outcomes[outcome] += 1
        where = f"{path.relative_to(ROOT)}:{line}"
        seconds = time.perf_counter() - start
        print(
            f"{outcome:9} {seconds:4.0f} s  {where}  {name}  {changed(before, after)}", flush=True
        )
    # A mutant that has timed out may run for ever or just take long, so it does not count.
    decided = sum(outcomes.values()) - outcomes["timed out"] - outcomes["unclear"]
    share = outcomes["killed"] / max(1, decided)
    print(f"{options.package}: {outcomes['killed']} of {decided} killed ({share:.1%})", outcomes)


if __name__ == "__main__":
    main()
