"""The NumPy runner: calls that are bound to fixed memory, and large arrays that are not copied."""

import threading
import warnings

import numpy as np
import pytest
from comparing import close, equal, refuses
from layouts import with_arguments
from recordings import LARGE, in_threads

from varmat.programs.ir.program import FLOAT, ElsewhereError
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.run import check_runner, runner_for
from varmat.programs.run import numpy as numpy_runner
from varmat.programs.run.numpy import NumpyRunner


def program(n):
    """Return a number, an array of the last step (twice), an argument, a part, and data."""
    builder, x, s = with_arguments((n,), ())
    y = builder.ufunc(np.multiply, builder.ufunc(np.exp, x), s)
    builder.guard(builder.compare(np.greater, s, builder.constant(0.0)))
    part = builder.view(y, lambda a: a[::2])
    return builder.program([builder.sum(y), y, y, x, part, s, builder.constant(np.arange(3.0))])


@pytest.mark.parametrize("n", [0, 1, 7, 4096, 4097, LARGE.size])
def test_outputs_are_the_callers_own(n):
    run = NumpyRunner(program(n))
    x = np.linspace(0.0, 1.0, n)
    before = x.copy()
    for s in (2.0, 3.0, 2.0):
        value, *results = run([x, s])
        y = s * np.exp(x)
        assert type(value) is float
        assert type(results[4]) is float
        assert value == pytest.approx(np.sum(y), rel=1e-13)
        for made, true in zip(results, (y, y, x, y[::2], s, np.arange(3.0)), strict=True):
            close(made, true, 1e-14)
        arrays = [a for a in results if type(a) is not float]
        for i, a in enumerate(arrays):
            assert a.flags.c_contiguous
            assert not np.may_share_memory(a, x)
            assert not any(np.may_share_memory(a, b) for b in arrays[:i])
            a += 100.0
    equal(x, before)


def test_large_arguments_and_results_are_not_copied(monkeypatch):
    """Steps that use them are bound again at every call, since they may have other addresses and
    orders.
    """
    monkeypatch.setattr(numpy_runner, "LARGE", 3)
    builder, x = with_arguments((2, 3))
    y = builder.ufunc(np.exp, x)
    seen = []

    def note(a, b):
        seen.append((a, b))
        return (a,)

    noted = builder.call(PythonCall("noted", note, [((2, 3), FLOAT)], False), x, y)
    run = NumpyRunner(builder.program([builder.sum(noted), y]))
    for order in ("C", "F"):
        given = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
        value, made = run([given])
        assert value == 15.0
        close(made, np.exp(given), 1e-15)
        assert made is seen[-1][1]
        assert np.may_share_memory(seen[-1][0], given) is (order == "C")


def test_nothing_large_is_kept_between_calls(monkeypatch):
    monkeypatch.setattr(numpy_runner, "LARGE", 3)
    run = NumpyRunner(program(10))
    x = np.ones(10)
    _, made, *_ = run([x, 1.0])
    (instance,) = run._instances
    kept = [a for a in instance._arrays.values() if type(a) is np.ndarray]
    assert not any(np.may_share_memory(a, b) for a in kept for b in (x, made))


def test_a_run_that_ends_leaves_the_runner_as_it_was():
    run = NumpyRunner(program(5))
    for _ in range(3):
        refuses(ElsewhereError, None, run, [np.ones(5), -1.0])
        assert run([np.ones(5), 1.0])[0] == pytest.approx(5.0 * np.e, rel=1e-15)


def test_threads_have_memory_of_their_own():
    """There are as many instances as concurrent threads, and they are used again."""
    builder, x = with_arguments((50,))
    y = builder.ufunc(np.exp, x)
    meet = threading.Barrier(4)
    waiting = PythonCall("wait", lambda y: (meet.wait(), (y,))[1], [((50,), FLOAT)], False)
    run = NumpyRunner(builder.program([builder.sum(builder.call(waiting, y))]))
    found = {k: [] for k in range(4)}

    def work(k):
        for _ in range(5):
            found[k].append(run([np.full(50, float(k))])[0])

    in_threads(work, range(4))
    for k in range(4):
        close(found[k], [50.0 * np.exp(k)] * 5, 1e-14)
    assert len(run._instances) == 4


def test_nothing_warns_and_settings_are_left_alone():
    builder, x = with_arguments((2,))
    run = NumpyRunner(builder.program([builder.sum(builder.ufunc(np.log, x))]))
    before = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(run([np.array([-1.0, 0.0])])[0])
    assert np.geterr() == before


def test_which_runner_runs():
    assert runner_for(program(3), "numpy").name == "numpy"
    for runner in ("auto", "numpy"):
        assert check_runner("recorded", runner) == runner
