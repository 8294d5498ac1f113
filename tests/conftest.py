"""The table of what the tests cover (see `varmat.testing.coverage`). Every run records it, and a
complete run fails if something is missing.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rows_at_import  # noqa: F401 - before the tests, which import more rows

from varmat.core.elementwise import USERS
from varmat.testing import coverage

HERE = Path(__file__).parent
RAISES = pytest.raises


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
            Path(target).write_text(self.recorder.markdown() + "\n")
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


def pytest_collection_finish() -> None:
    """Spare the garbage collector the twenty thousand tests: a full collection took 0.8 s."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Coverage(config, coverage.start()))
    pytest.raises = noted_raises
