"""The native runner: loops are verified before they are trusted; errors of Python, threads, and
memory.
"""

import os
import re
import signal
import threading
import time
import tomllib
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from comparing import equal, refuses
from layouts import of_one_step, python, with_arguments
from recordings import in_threads

import varmat as vm
from varmat.programs import run
from varmat.programs.ir.program import FLOAT
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.run import check_runner, runner_for

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run.native import NativeRunner

ROOT = Path(vm.__file__).parents[1]


# --- errors ---


def test_a_signal_before_the_first_instruction_of_a_call_of_python():
    """ctypes prints its error and goes on, so the run must not go on with what is in memory."""

    class Pending:
        """Raises when the callback asks for the runner, before its try statement."""

        def __call__(self):
            raise TimeoutError("limit")

    runner = NativeRunner(
        of_one_step(PythonCall("called", lambda x: (x + 1.0,), [((2,), FLOAT)], False), (2,))
    )
    code = runner._called.__code__
    assert "itself" in code.co_freevars
    cell = runner._called.__closure__[code.co_freevars.index("itself")]
    cell.cell_contents, known = Pending(), cell.cell_contents
    refuses(TimeoutError, "limit", runner, [np.ones(2)])
    points, values = np.ones((3, 2)), np.zeros(3)
    cell.cell_contents = known
    runner.map([points], [values, np.empty((3, 2))], 1)
    assert runner([np.ones(2)])[0] == values[0]


def test_an_interrupt_ends_a_map_between_slices(monkeypatch):
    """A run of many points looks for signals now and then, whatever the number of threads."""

    def run_some(self, *args):
        runs.append(args)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        return known(self, *args)

    known, runs = NativeRunner._run, []
    g = vm.recorded(lambda x: np.sum(np.exp(x)), runner="native")
    points = np.ones((100_000, 2))
    g(points[0])
    monkeypatch.setattr(NativeRunner, "_run", run_some)
    for workers in (1, 2):
        runs.clear()
        refuses(KeyboardInterrupt, None, g.map, points, executor=ThreadPoolExecutor(workers))
        assert len(runs) <= 3 * workers


def test_a_map_returns_after_its_threads(monkeypatch):
    """Each thread sends a signal. One of these may not end the wait for the others, which write
    into the arrays of the caller. After a handler that raises nothing the map goes on.
    """

    def run_some(self, *args):
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.001)  # longer than threads take to start
            return known(self, *args)
        running.add(args[2])
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        raised = known(self, *args)
        running.discard(args[2])
        return raised

    known, running, came = NativeRunner._run, set[int](), []
    g = vm.recorded(lambda x: np.sum(np.exp(x)), runner="native")
    points = np.arange(200.0).reshape(100, 2) / 100.0
    value, _ = g.map(points)
    monkeypatch.setattr(NativeRunner, "_run", run_some)
    for workers in (2, 4):
        refuses(KeyboardInterrupt, None, g.map, points, executor=ThreadPoolExecutor(workers))
        assert not running
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        equal(g.map(points, executor=ThreadPoolExecutor(2))[0], value)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came


# --- threads and memory ---


def test_threads_run_at_once():
    """While one thread is in a step of Python the others go on. No thread sees another thread's
    memory.
    """
    builder, x = with_arguments((2000,))
    y = x
    for _ in range(20):
        y = builder.ufunc(np.sin, builder.ufunc(np.add, y, x))
    slow = PythonCall("slow", lambda y: (time.sleep(0.001), (y,))[1], [((2000,), FLOAT)], False)
    z = builder.call(slow, y)
    run = NativeRunner(builder.program([builder.sum(builder.ufunc(np.multiply, z, y)), z]))
    points = [np.linspace(0.0, 1.0 + k, 2000) for k in range(8)]
    expected = [run([p]) for p in points]
    wrong = []

    def work(k):
        for _ in range(20):
            value, made = run([points[k]])
            if value != expected[k][0] or not np.array_equal(made, expected[k][1]):
                wrong.append(k)

    in_threads(work, range(8))
    assert not wrong


def test_many_calls_leave_memory_flat():
    g = vm.recorded(lambda x: np.sum(np.exp(-0.5 * x**2)) * x[0], runner="native")
    x = np.linspace(0.0, 1.0, 5)
    g(x)
    tracemalloc.start()
    for _ in range(100):
        g(x)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(30_000):
        g(x)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 1_000


# --- where there is no llvmlite ---


def clear_decision():
    run.why_not_native.cache_clear()
    run._warn.cache_clear()


def test_without_llvmlite(monkeypatch):
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    clear_decision()
    text = (
        "recorded functions run in NumPy, several times as slow: the native runner needs llvmlite, "
        'which is not installed: in a clone of varmat, pip install -e ".[native]"'
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert vm.recorded(np.sum, runner="numpy")(np.ones(2))[0] == 2.0
        with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
            assert vm.recorded(np.sum)(np.ones(2))[0] == 2.0
        with warnings.catch_warnings():  # once
            warnings.simplefilter("error")
            assert vm.recorded(np.exp)(0.0) == (1.0, 1.0)
            assert runner_for(of_one_step(ufunc_kernel(np.exp), (2,))).name == "numpy"
        message = r"^recorded: the native runner needs llvmlite, which is not installed: in"
        refuses(ImportError, message, vm.recorded, np.sum, runner="native")
        with pytest.raises(ImportError, match=r"^Model: the native runner needs llvmlite"):
            check_runner("Model", "native")
    finally:
        monkeypatch.undo()
        clear_decision()


def test_the_readme_has_what_the_warning_says():
    """So has the page on installation. The extra brings llvmlite, and so do those of the README's
    two commands.
    """
    for page in ("README.md", "docs/installation.md"):
        assert 'pip install -e ".[native]"' in (ROOT / page).read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert any(each.startswith("llvmlite") for each in extras["native"])
    assert "varmat[native,parallel]" in extras["sample"]
    assert extras["test"][0].startswith("varmat[sample,")


@pytest.mark.parametrize(("text", "printed"), [
    # Only the native runner imports llvmlite, and only when it runs a program.
    ('vm.recorded(np.sum, runner="numpy")(np.ones(2)); print("llvmlite" in sys.modules)', "False"),
    ('sys.modules["llvmlite"] = None; print(vm.recorded(np.exp, runner="numpy")(0.0)[0])', "1.0"),
])  # fmt: skip
def test_processes_without_llvmlite(text, printed):
    done = python(f"import sys, numpy as np, varmat as vm; {text}")
    assert (done.stdout.strip(), done.returncode) == (printed, 0), done.stderr
