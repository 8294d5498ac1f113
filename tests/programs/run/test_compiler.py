"""Machine code: how long its memory lives, and how much it takes."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from comparing import close, near
from layouts import of_one_step

import varmat as vm
from varmat.programs.kernels.elementwise import PythonFunction

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run import compiler, runner_for
from varmat.programs.run.native import CODES, NativeRunner


def test_the_code_of_a_program_is_freed_with_its_runner():
    """No cycle keeps a runner, so its code is freed without the collector."""
    power = 3  # a function with a value of its own, whose code is not kept for other programs
    run = NativeRunner(of_one_step(PythonFunction("cubed", lambda x: x**power), (3,)))
    code = weakref.ref(run._table.references[0])
    assert run([np.full(3, 2.0)])[0] == 24.0
    gc.disable()
    try:
        del run
        assert code() is None
    finally:
        gc.enable()


def pages():
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_is_flat_where_recordings_are_made_and_dropped():
    """A compilation that kept what LLVM works with would grow by 0.1 MB each time."""

    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    recorded(np.ones(30))
    before = 0
    for i in range(90):
        CODES.clear()
        runner_for(recorded.program, "native")
        before = pages() if i == 40 else before
    assert (pages() - before) * 4096 < 2.5e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_live_recording_is_small():
    """An engine that made its code would keep 0.8 MB for it."""
    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    recorded(np.ones(30))
    alive, before = [], 0
    for i in range(45):
        CODES.clear()
        alive.append(runner_for(recorded.program, "native"))
        before = pages() if i == 4 else before
    assert (pages() - before) * 4096 < 40 * 0.3e6


def test_the_function_of_a_program_keeps_its_code():
    x, gradient = np.linspace(0.0, 1.0, 5), np.empty(5)
    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    value, expected = recorded(x)
    call = NativeRunner(recorded.program).single
    gc.collect()
    assert call(x, gradient) == pytest.approx(value, rel=1e-15)
    close(gradient, expected, 1e-15)


def test_code_that_is_made_in_a_hurry_gives_the_same(monkeypatch):
    """Long programs are compiled with less care: two further levels."""
    recorded = vm.recorded(lambda x: np.sum(np.exp(np.sin(x)) / (1.0 + x**2)), runner="numpy")
    x = np.linspace(0.0, 2.0, 37)
    expected = recorded(x)
    levels = []
    target = compiler._target
    monkeypatch.setattr(compiler, "_target", lambda level: levels.append(level) or target(level))
    for large, huge in ((1 << 30, 1 << 30), (0, 1 << 30), (0, 0)):
        monkeypatch.setattr(compiler, "LARGE", large)
        monkeypatch.setattr(compiler, "HUGE", huge)
        CODES.clear()
        near(NativeRunner(recorded.program)([x]), expected, 1e-14)
    assert [*dict.fromkeys(levels)] == [2, 1, 0]
