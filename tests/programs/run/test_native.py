"""The native runner: loops are verified before they are trusted; errors of Python, threads, and
memory.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from recordings import in_threads

import varmat as vm
from varmat.programs import run
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import FLOAT, Program
from varmat.programs.kernels.elementwise import PythonFunction, ufunc_kernel
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.kernels.reductions import Reduce
from varmat.programs.run import check_runner, has_native, runner_for

pytest.importorskip("llvmlite", reason="the native runner needs llvmlite")

from varmat.programs.run import loops
from varmat.programs.run.loops import NoLoopError, loop_of
from varmat.programs.run.native import NativeRunner
from varmat.programs.run.nests import merged

ROOT = Path(vm.__file__).parents[1]


def wave(x: Any) -> Any:
    return np.sum(np.sin(x) * x)


def of_one_step(kernel: Any, *shapes: Any) -> Program:
    builder = Builder()
    made = builder.call(kernel, *map(builder.argument, shapes))
    return builder.program([builder.sum(made), made])


def calls_python(program: Program) -> bool:
    return NativeRunner(program).calls_python


# --- loops ---


def test_loops_of_ufuncs_are_found() -> None:
    unary, binary = (np.exp, scipy.special.gammaln), (np.add, np.matmul)
    for ufunc, signature in (
        *((f, "d->d") for f in unary),
        *((f, "dd->d") for f in binary),
        (np.less, "dd->?"),
    ):
        address, _ = loop_of(ufunc, signature)
        assert address
        assert loop_of(ufunc, signature) == (address, _)


def test_a_ufunc_without_a_loop_of_doubles_is_refused() -> None:
    with pytest.raises(NoLoopError, match="add has no loop for dd->i"):
        loop_of(np.add, "dd->i")
    with pytest.raises(NoLoopError, match="no loop for d->d"):
        loop_of(np.frompyfunc(lambda x: x, 1, 1), "d->d")
    with pytest.raises(NoLoopError, match="expn is one of integers"):
        loop_of(scipy.special.expn, "dd->d")


def test_a_loop_with_other_results_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """This stands for a version of NumPy with another order of fields, where the loop of another
    ufunc would be read.
    """

    class Other:
        """A ufunc whose result differs from that of its loop."""

        def __call__(self, *operands: Any) -> Any:
            return np.add(*operands) + 1e-9

        nin, nout, signature, types, __name__ = 2, 1, None, np.add.types, "other"

    with pytest.raises(NoLoopError, match="a loop of other gives"):
        loops._verify(Other(), "dd->d", *loop_of(np.add, "dd->d"))
    loops._verify(np.add, "dd->d", *loop_of(np.add, "dd->d"))
    verified = []
    monkeypatch.setattr(loops, "_verify", lambda *given: verified.append(given))
    loop_of.cache_clear()
    try:
        loop_of(np.exp, "d->d")
        loop_of(np.exp, "d->d")
        assert [ufunc for ufunc, *_ in verified] == [np.exp]
    finally:
        loop_of.cache_clear()


def test_a_step_without_a_loop_calls_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native runner has no code of its own for gammaln, and calls SciPy's loop."""
    program = of_one_step(ufunc_kernel(scipy.special.gammaln), (4,))
    x = np.linspace(0.5, 3.0, 4)
    assert not calls_python(program)

    def refuse(*_: Any) -> None:
        raise NoLoopError

    loop_of.cache_clear()
    monkeypatch.setattr(loops, "_verify", refuse)
    try:
        run = NativeRunner(program)
    finally:
        loop_of.cache_clear()
    assert run.calls_python
    value, made = run([x])
    np.testing.assert_array_equal(made, scipy.special.gammaln(x))
    assert value == pytest.approx(np.sum(made), rel=1e-15)


def test_functions_of_python_and_ufuncs_of_integers_are_called() -> None:
    for kernel in (PythonFunction("cubed", lambda x: x**3), ufunc_kernel(np.frompyfunc(abs, 1, 1))):
        if isinstance(kernel, PythonFunction):
            assert calls_python(of_one_step(kernel, (3,)))
    program = of_one_step(PythonFunction("cubed", lambda x: x**3), (3,))
    assert NativeRunner(program)([np.array([1.0, 2.0, 3.0])])[1].tolist() == [1.0, 8.0, 27.0]


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.minimum])
def test_reductions_do_not_call_python(ufunc: np.ufunc) -> None:
    data = np.array([[0.3, -1.0, 2.0], [0.1, 4.0, -0.5]])
    for axes in ((0,), (1,), (0, 1)):
        program = of_one_step(Reduce(ufunc, axes), (2, 3))
        assert not calls_python(program)
        np.testing.assert_allclose(
            NativeRunner(program)([data])[1], ufunc.reduce(data, axes), rtol=1e-15
        )
    builder = Builder()
    x = builder.argument((3,))
    positive = builder.compare(np.greater, x, builder.constant(np.zeros(3)))
    some = builder.reduce(np.logical_or, positive, (0,))
    chosen = builder.where(some, builder.sum(x), builder.constant(0.0))
    run = NativeRunner(builder.program([chosen]))
    assert not run.calls_python
    assert run([np.array([-1.0, 3.0, -0.5])]) == [1.5]
    assert run([np.array([-1.0, -3.0, 0.0])]) == [0.0]


def test_axes_that_are_one_line_are_merged() -> None:
    assert merged((2, 3, 4), [(96, 32, 8), (96, 32, 8)]) == ([24], [[8, 8]])
    assert merged((2, 3, 4), [(96, 32, 8), (0, 32, 8)]) == ([2, 12], [[96, 0], [8, 8]])
    assert merged((1, 5, 1), [(7, 8, 9)]) == ([5], [[8]])
    assert merged((), [()]) == ([], [])


# --- errors ---


class MineError(Exception):
    pass


def raises_at_seven(x: Any) -> tuple[Any]:
    if x[0] == 7.0:
        raise MineError("seven")
    return (x,)


def test_an_error_of_a_step_is_raised_where_the_runner_is_called() -> None:
    builder = Builder()
    x = builder.argument((3,))
    made = builder.call(PythonCall("refuse", raises_at_seven, [((3,), FLOAT)], True), x)
    run = NativeRunner(builder.program([builder.sum(made), made]))
    for _ in range(3):
        assert run([np.ones(3)])[0] == 3.0
        with pytest.raises(MineError, match="seven") as caught:
            run([np.full(3, 7.0)])
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert "raises_at_seven" in names
        line = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (Path(line.filename).name, line.line) == (
            Path(__file__).name,
            'raise MineError("seven")',
        )
    assert run([np.ones(3)])[0] == 3.0


def test_errors_of_several_threads_are_their_own() -> None:
    def refuse(x: Any) -> tuple[Any]:
        time.sleep(0.0005)
        raise MineError(float(x[0]))

    builder = Builder()
    x = builder.argument((1,))
    run = NativeRunner(
        builder.program(
            [builder.sum(builder.call(PythonCall("refuse", refuse, [((1,), FLOAT)], False), x))]
        )
    )
    wrong = []

    def work(k: float) -> None:
        for _ in range(50):
            try:
                run([np.array([k])])
                wrong.append(None)
            except MineError as error:
                if error.args != (k,):
                    wrong.append(error)

    in_threads(work, map(float, range(6)))
    assert not wrong


def test_interrupts_go_through() -> None:
    def interrupt(x: Any) -> tuple[Any]:
        raise KeyboardInterrupt

    run = NativeRunner(
        of_one_step(PythonCall("interrupt", interrupt, [((2,), FLOAT)], False), (2,))
    )
    with pytest.raises(KeyboardInterrupt):
        run([np.ones(2)])


def test_a_signal_before_the_first_instruction_of_a_call_of_python() -> None:
    """ctypes prints its error and goes on, so the run must not go on with what is in memory."""

    class Pending:
        """Raises when the callback asks for the runner, before its try statement."""

        def __call__(self) -> None:
            raise TimeoutError("limit")

    runner = NativeRunner(
        of_one_step(PythonCall("called", lambda x: (x + 1.0,), [((2,), FLOAT)], False), (2,))
    )
    code = runner._called.__code__
    assert "itself" in code.co_freevars
    cell = runner._called.__closure__[code.co_freevars.index("itself")]
    cell.cell_contents, known = Pending(), cell.cell_contents
    with pytest.raises(TimeoutError, match="limit"):
        runner([np.ones(2)])
    points, values = np.ones((3, 2)), np.zeros(3)
    cell.cell_contents = known
    runner.map([points], [values, np.empty((3, 2))], 1)
    assert runner([np.ones(2)])[0] == values[0]


def test_an_interrupt_ends_a_map_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of many points looks for signals now and then, whatever the number of threads."""

    def run_some(self: NativeRunner, *args: Any) -> Any:
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
        with pytest.raises(KeyboardInterrupt):
            g.map(points, workers=workers)
        assert len(runs) <= 3 * workers


def test_a_map_returns_after_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread sends a signal. One of these may not end the wait for the others, which write
    into the arrays of the caller. After a handler that raises nothing the map goes on.
    """

    def run_some(self: NativeRunner, *args: Any) -> Any:
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
        with pytest.raises(KeyboardInterrupt):
            g.map(points, workers=workers)
        assert not running
    before = signal.signal(signal.SIGINT, lambda *_: came.append(1))
    try:
        np.testing.assert_array_equal(g.map(points, workers=2)[0], value)
    finally:
        signal.signal(signal.SIGINT, before)
    assert came


def test_a_domain_error_of_a_recording_is_the_functions_own() -> None:
    g = vm.recorded(lambda x: np.sum(vm.eigenvalues_sym(x.reshape(2, 2))), runner="native")
    g(np.array([2.0, 0.5, 0.5, 1.0]))
    with pytest.raises(vm.DomainError, match=r"eigenvalues_sym: a\[0, 1\] is 0.5, but must be 0.7"):
        g(np.array([2.0, 0.5, 0.7, 1.0]))


# --- threads and memory ---


def test_threads_run_at_once() -> None:
    """While one thread is in a step of Python the others go on. No thread sees another thread's
    memory.
    """
    builder = Builder()
    x = builder.argument((2000,))
    y = x
    for _ in range(20):
        y = builder.ufunc(np.sin, builder.ufunc(np.add, y, x))
    slow = PythonCall("slow", lambda y: (time.sleep(0.001), (y,))[1], [((2000,), FLOAT)], False)
    z = builder.call(slow, y)
    run = NativeRunner(builder.program([builder.sum(builder.ufunc(np.multiply, z, y)), z]))
    points = [np.linspace(0.0, 1.0 + k, 2000) for k in range(8)]
    expected = [run([p]) for p in points]
    wrong = []

    def work(k: int) -> None:
        for _ in range(20):
            value, made = run([points[k]])
            if value != expected[k][0] or not np.array_equal(made, expected[k][1]):
                wrong.append(k)

    in_threads(work, range(8))
    assert not wrong


def test_a_hundred_thousand_calls_leave_memory_flat() -> None:
    g = vm.recorded(lambda x: np.sum(np.exp(-0.5 * x**2)) * x[0], runner="native")
    x = np.linspace(0.0, 1.0, 5)
    g(x)
    tracemalloc.start()
    for _ in range(100):
        g(x)
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100_000):
        g(x)
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 1_000


def test_the_code_of_a_program_is_freed_with_its_runner() -> None:
    """No cycle keeps a runner, so its code is freed without the collector."""
    run = NativeRunner(of_one_step(PythonFunction("cubed", lambda x: x**3), (3,)))
    code = weakref.ref(run._code)
    assert run([np.full(3, 2.0)])[0] == 24.0
    gc.disable()
    try:
        del run
        assert code() is None
    finally:
        gc.enable()


def test_recordings_are_pickled_without_their_code() -> None:
    g = vm.recorded(wave, runner="native")
    x = np.linspace(0.0, 1.0, 7)
    value, gradient = g(x)
    again = pickle.loads(pickle.dumps(g))(x)
    assert again[0] == value
    np.testing.assert_array_equal(again[1], gradient)


@pytest.mark.parametrize("n", range(1, 36))
def test_lanes_beyond_the_end_do_not_count(n: int) -> None:
    """A loop takes several vectors in a turn, and what is left in a last turn, which overlaps."""
    builder = Builder()
    x = builder.argument((n,))
    y = builder.ufunc(np.exp, x)
    outputs = [builder.reduce(f, y, (0,)) for f in (np.add, np.maximum, np.minimum)]
    run = NativeRunner(builder.program([*outputs, y]))
    data = np.random.default_rng(n).normal(size=n)
    total, most, least, made = run([data])
    expected = np.exp(data)
    np.testing.assert_allclose(made, expected, rtol=1e-15)
    assert total == pytest.approx(np.sum(expected), rel=1e-14)
    assert (most, least) == (np.max(made), np.min(made))


def test_arguments_lie_anywhere() -> None:
    """Arguments may have any order of axes, gaps, and addresses that are not multiples of eight."""
    g = vm.recorded(lambda x: np.sum(np.exp(x) * x) + np.sum(np.sin(x)), runner="native")
    data = np.linspace(0.0, 1.0, 600).reshape(20, 30)
    odd = np.zeros(8 * data.size + 1, np.uint8)[1:].view(np.float64).reshape(data.shape)
    odd[...] = data
    expected = g(data)
    for x in (
        odd,
        np.asfortranarray(data),
        np.repeat(data, 2, axis=1)[:, ::2],
        data[::-1][::-1],
        data.copy(),
    ):
        value, gradient = g(x)
        assert value == pytest.approx(expected[0], rel=1e-14)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-14)
        assert gradient.flags.c_contiguous


def test_results_are_the_callers_own() -> None:
    g = vm.recorded(lambda x, y: np.sum(np.exp(x)) * y + np.sum(x), (0, 1), runner="native")
    value, (gx, gy) = g(np.zeros(3), 2.0)
    assert (value, gx.tolist(), gy) == (6.0, [3.0, 3.0, 3.0], 3.0)
    gx += 5.0
    assert g(np.zeros(3), 2.0)[1][0].tolist() == [3.0, 3.0, 3.0]


# --- where there is no llvmlite ---


def test_without_llvmlite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    has_native.cache_clear()
    try:
        assert runner_for(of_one_step(ufunc_kernel(np.exp), (2,))).name == "numpy"
        assert vm.recorded(np.sum)(np.ones(2))[0] == 2.0
        with pytest.raises(
            ImportError,
            match=r"^recorded: the native runner needs llvmlite, which is not installed: in",
        ):
            vm.recorded(np.sum, runner="native")
        with pytest.raises(ImportError, match=r"^Model: the native runner needs llvmlite"):
            check_runner("Model", "native")
    finally:
        has_native.cache_clear()


def in_a_process(text: str, **environment: str) -> str:
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=settings,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_library_does_not_import_llvmlite() -> None:
    """Only the native runner imports llvmlite, and only when it runs a program."""
    text = """
import sys, numpy as np, varmat as vm
vm.recorded(np.sum, runner="numpy")(np.ones(2))
print("llvmlite" in sys.modules)
"""
    assert in_a_process(text) == "False"


def test_a_process_in_which_llvmlite_cannot_be_imported() -> None:
    text = """
import sys
sys.modules["llvmlite"] = None
import numpy as np, varmat as vm
f = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
print(f(np.zeros(2))[0])
"""
    assert in_a_process(text) == "2.0"


@pytest.mark.parametrize(
    "function", [np.negative, np.isfinite, np.signbit, np.positive, np.square, np.absolute, np.exp]
)
def test_columns_of_rows_of_eight(function):
    """Some of NumPy's own loops are wrong for some strides; that of `negative` is wrong at 64
    bytes.
    """
    x = np.random.default_rng(1).normal(size=(34, 8))
    for columns in (slice(0, 2), slice(1, 8), slice(5, 2, -1)):
        builder = Builder()
        part = builder.view(builder.argument(x.shape), lambda a, columns=columns: a[:, columns])
        made = builder.number(builder.call(ufunc_kernel(function), part))
        run = runner_for(builder.program([builder.sum(made), made]), "native")
        np.testing.assert_allclose(run([x])[1], function(x[:, columns].copy()), 4e-16)


def pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_is_flat_where_recordings_are_made_and_dropped() -> None:
    """A compilation that kept what LLVM works with would grow by 0.1 MB each time."""

    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    recorded(np.ones(30))
    before = 0
    for i in range(90):
        runner_for(recorded.program, "native")
        before = pages() if i == 40 else before
    assert (pages() - before) * 4096 < 2.5e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_live_recording_is_small() -> None:
    """An engine that made its code would keep 0.8 MB for it."""
    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    recorded(np.ones(30))
    alive = [runner_for(recorded.program, "native") for _ in range(5)]
    before = pages()
    alive += [runner_for(recorded.program, "native") for _ in range(40)]
    assert (pages() - before) * 4096 < 40 * 0.3e6


def test_the_function_of_a_program_keeps_its_code() -> None:
    x, gradient = np.linspace(0.0, 1.0, 5), np.empty(5)
    recorded = vm.recorded(lambda x: np.sum(np.exp(x)), runner="numpy")
    value, expected = recorded(x)
    call = NativeRunner(recorded.program)._call
    gc.collect()
    assert call(x, gradient) == pytest.approx(value, rel=1e-15)
    np.testing.assert_allclose(gradient, expected, rtol=1e-15)
