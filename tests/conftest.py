"""The table of what the tests cover (see `varmat.testing.coverage`). Every run records it, and a
complete run fails if something is missing.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest
import rows_at_import  # noqa: F401 - before the tests, which import more rows
from packaging.requirements import Requirement

from varmat.core.elementwise import USERS
from varmat.programs.run import has_native
from varmat.testing import coverage

HERE = Path(__file__).parent
# Packages of our extras that may be missing in a complete run: nothing that the tests import.
MAY_BE_MISSING = {"torch": "it is large, and only benchmarks compare with it"}
# Folders of tests of functions.
ABOUT_FUNCTIONS = {"complexes", "densities", "functions", "solvers", "transforms"}
RAISES = pytest.raises


@pytest.fixture(autouse=True, scope="module")
def spared_collector() -> None:
    """Spare the garbage collector all tests, and what the files before have left: a full collection
    took seconds.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def hurried_compiler(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let machine code be made in a hurry where tests are about functions: it takes half the time.
    The tests of programs and of models run the code that users run.
    """
    with pytest.MonkeyPatch.context() as patch:
        if has_native() and ABOUT_FUNCTIONS & {*request.path.parts}:
            from varmat.programs.run import compiler

            patch.setattr(compiler, "LARGE", 0)
            patch.setattr(compiler, "HUGE", 0)
        yield


@pytest.fixture(autouse=True)
def compiled_hessians(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the name of a test say which Hessians become machine code, one in four: the same alone
    and in the suite.
    """
    draws = itertools.count(zlib.crc32(request.node.nodeid.encode()))
    compiles = (draw % 4 == 0 for draw in draws)
    monkeypatch.setattr("varmat.testing.expect.COMPILES_HESSIAN", compiles)


@pytest.fixture(autouse=True)
def own_rows() -> Iterator[None]:
    """Forget the rows that a test makes: later expressions would mean them by their names."""
    before = dict(USERS)
    yield
    USERS.clear()
    USERS.update(before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--coverage-table",
        nargs="?",
        const="-",
        metavar="FILE",
        help="print which public functions the tests exercise, or write it as Markdown to "
        "--coverage-table=FILE",
    )


def of_extras() -> set[str]:
    """The names of the packages that our extras install here, as reasons may write them."""
    # Of what is installed: the package may lie elsewhere than its project.
    project = metadata("varmat")
    named = {
        each.name.lower()
        for each in map(Requirement, project.get_all("Requires-Dist", []))
        for extra in project.get_all("Provides-Extra", [])
        if each.marker is not None and each.marker.evaluate({"extra": extra})
    }
    return (named | {"sksundae"} if "scikit-sundae" in named else named) - {"varmat"}


class Skips:
    """A complete run fails if a test is skipped because a package of an extra is missing: the run
    would say that something works that it has not tried.
    """

    def __init__(self, is_complete: Callable[[], bool]) -> None:
        self.is_complete = is_complete
        self.found: set[str] = set()
        self.packages = of_extras() - MAY_BE_MISSING.keys()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2]
            says_so = re.search("not installed|No module named|needs", reason)
            if says_so and self.packages & {*re.findall(r"[a-z][\w-]*", reason.lower())}:
                self.found.add(reason)

    pytest_collectreport = pytest_runtest_logreport

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if self.found and session.exitstatus == pytest.ExitCode.OK and self.is_complete():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.found and self.is_complete():
            text = "Tests were skipped for packages that our extras name"
            terminalreporter.write_line(f"{text}: {'; '.join(sorted(self.found))}", red=True)


class Coverage:
    """What a run of the tests records, and whether the run is complete.

    With ``-n``, worker processes of pytest-xdist run the tests. Each worker collects all tests,
    runs some of them, and sends its notes to the process that prints. That process collects no
    tests itself.
    """

    def __init__(self, config: Any, recorder: coverage.Recorder) -> None:
        self.config = config
        self.recorder = recorder
        self.all_files = False
        self.deselected = 0
        # Whether each worker saw all tests. A worker that crashed reports nothing, and counts as
        # incomplete.
        self.processes: list[bool] = []

    def pytest_collection_finish(self, session: Any) -> None:
        self.all_files = {item.path for item in session.items} == set(HERE.rglob("test_*.py"))

    def pytest_deselected(self, items: Any) -> None:
        self.deselected += len(items)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput.update(
                noted=self.recorder.notes(), saw_all=self.all_files and not self.deselected
            )
        elif (
            session.exitstatus == pytest.ExitCode.OK
            and self.is_complete()
            and self.recorder.missing()
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self.recorder.add(output.get("noted", {}))
        self.processes.append(output.get("saw_all", False))

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        target = self.config.getoption("--coverage-table")
        if target == "-":
            terminalreporter.write_line(self.recorder.text())
        elif target:
            Path(target).write_text(self.recorder.markdown() + "\n", encoding="utf-8")
        if self.is_complete() and (missing := self.recorder.missing()):
            terminalreporter.write_line(
                f"No expect_ad in the tests for {', '.join(missing)}", red=True
            )

    def pytest_unconfigure(self) -> None:
        coverage.stop()
        pytest.raises = RAISES

    def is_complete(self) -> bool:
        """Whether all tests were run: all files, no test deselected, no early stop."""
        option, parts = self.config.option, any("::" in arg for arg in self.config.args)
        saw_all = all(self.processes) if self.processes else self.all_files and not self.deselected
        return saw_all and not (parts or option.collectonly or option.maxfail)


@contextmanager
def noted_raises(*args: Any, **settings: Any) -> Iterator[Any]:
    """Wrap `pytest.raises`, so that its error counts as a tested refusal of the function that it
    names.
    """
    __tracebackhide__ = True
    with RAISES(*args, **settings) as caught:
        yield caught
    coverage.note_refusal(caught.value)


def pytest_configure(config: pytest.Config) -> None:
    # Worker processes share the cores: threads of BLAS that wait for each other took a third of the
    # time of tests of matrices.
    if workers := len(config.getoption("tx", None) or ()):
        threads = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", str(threads))
    # A shell lets jobs in the background ignore interrupts, which tests send to themselves.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Short chains say that they are short; the tests of that say so themselves. For a filter in
    # pyproject.toml pytest would import varmat before pytest-cov notes which lines run.
    config.addinivalue_line("filterwarnings", "ignore::varmat.models.diagnostics.SamplingWarning")
    recorded = Coverage(config, coverage.start())
    config.pluginmanager.register(recorded)
    config.pluginmanager.register(Skips(recorded.is_complete))
    pytest.raises = noted_raises
