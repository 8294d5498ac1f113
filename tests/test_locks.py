"""Several threads that need something for the first time at once."""

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from comparing import refuses

import varmat as vm
import varmat.distributions as dist
from varmat.densities import univariate
from varmat.functions.elementwise import ROWS
from varmat.locks import Once
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.run import has_native
from varmat.scipy import mirrors

ROOT = Path(vm.__file__).parents[1]


def at_once(task, count=6):
    """What threads that start together get, in any order."""
    barrier, found = threading.Barrier(count), []

    def run():
        barrier.wait(30)
        found.append(task())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(found) == count
    return found


def slow(make):
    """A function that lets other threads run while it makes its result."""

    def made(*args):
        time.sleep(0.02)
        return make(*args)

    return made


def test_a_result_is_made_once():
    calls = []
    function = Once(slow(lambda *args: calls.append(args) or object()))
    assert len({*map(id, at_once(lambda: function(1)))}) == 1
    assert function(2) is not function(1)
    assert calls == [(1,), (2,)]


def test_functions_that_are_made_once_call_each_other():
    """In either order: with a lock for each, two threads would wait for one another."""
    first = Once(slow(lambda n: n and second(n - 1)))
    second = Once(slow(lambda n: n and first(n - 1)))
    turns = iter([first, second] * 3)
    assert at_once(lambda: next(turns)(4)) == [0] * 6


def test_copies_are_the_same_function():
    for copied in (pickle.loads(pickle.dumps(ufunc_kernel)), copy.deepcopy(ufunc_kernel)):
        assert copied is ufunc_kernel


def test_an_error_is_no_result():
    found = iter([0, 5])
    function = Once(lambda: 1 // next(found))
    refuses(ZeroDivisionError, None, function)
    assert function() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_wait_for_a_thread_of_its_parent():
    text = """
import os, threading
from varmat.locks import Once
inside, over = threading.Event(), threading.Event()
wait = Once(lambda: inside.set() or over.wait(30))
thread = threading.Thread(target=wait)
thread.start()
inside.wait(30)
child = os.fork()
if child == 0:
    os._exit(Once(lambda: 7)())
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
over.set()
"""
    assert run_python(text) == "7"


def run_python(text):
    """Run a process that must end within a minute."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "ignore", "-c", text],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- what the package makes when it is first needed ---


def test_threads_share_what_they_need_first(monkeypatch):
    """The graph of a density, the rule of a row, a class, and a function of a mirror."""
    density, row, linalg = dist.Normal(0.0, 1.0).row, ROWS["exp"], mirrors.MIRRORS["scipy.linalg"]
    compile_rule = slow(lambda *_: object())
    for thing in (density, "_graphs"), (row, "_rules"):
        monkeypatch.setattr(*thing, {})
    for module, name in (univariate, "RowGraph"), (dist, "of_row"), (mirrors, "reflected"):
        monkeypatch.setattr(module, name, slow(getattr(module, name)))
    for module, name in (dist, "Cauchy"), (linalg, "solve"):
        monkeypatch.delitem(vars(module), name, raising=False)
    for task in (
        lambda: density.graph(True), lambda: row.rule((True,), compile_rule),
        lambda: dist.Cauchy, lambda: linalg.solve,
    ):  # fmt: skip
        assert len({*map(id, at_once(task))}) == 1


# --- machine code ---

RECORD = """
import threading
import numpy as np, varmat as vm
count, wrong = 6, []
barrier = threading.Barrier(count)

def work(c):
    # Functions of numbers are compiled once for the process, and of vectors as part of a program.
    first = vm.recorded(lambda x: np.exp(x[0]) * x[1] * c)
    barrier.wait(30)
    first(np.array([0.1, 1.5]))
    barrier.wait(30)
    second = vm.recorded(lambda x: np.sin(x[0]) * np.log1p(np.exp(x[1])) * c)
    second(np.array([0.1, 1.5]))
    for at in (0.5, -1.0, 2.0):
        value, gradient = first(np.array([at, 1.5]))
        expected = np.exp(at) * c * np.array([1.5, 1.0])
        if not np.allclose([value, *gradient], [expected[0], *expected]):
            wrong.append((c, at, value))
    vm.recorded(lambda x: np.sum(np.sin(x) * np.exp(x)) * c)(np.linspace(0.1, 1.0, 70))

threads = [threading.Thread(target=work, args=(i + 1.0,)) for i in range(count)]
for each in threads: each.start()
for each in threads: each.join(60)
print(wrong)
"""
MAP_RECT = """
import numpy as np, varmat as vm
jobs = np.linspace(-1.0, 1.0, 24).reshape(12, 2)
def job(shared, own):
    return np.stack([np.exp(own[0]) * shared[0], np.log1p(np.exp(own[1])) * shared[1]])
def total(x):
    return np.sum(vm.map_rect(job, x, jobs) ** 2)
def plain(x):
    return np.sum(np.concatenate([job(x, own) for own in jobs]) ** 2)
x = np.array([0.7, 1.3])
given, expected = vm.recorded(total)(x), vm.value_and_grad(plain)(x)
print([] if np.allclose(given[0], expected[0]) and np.allclose(given[1], expected[1]) else given)
"""


@pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")
@pytest.mark.parametrize("text", [RECORD, MAP_RECT], ids=["recorded", "map_rect"])
def test_threads_that_record_first_have_their_own_code(text):
    """In new processes, because each compiles its functions once. Three of eight that recorded were
    wrong while the last thread replaced the code of the others.
    """
    assert [run_python(text) for _ in range(3)] == ["[]"] * 3
