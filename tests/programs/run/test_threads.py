"""One BLAS thread while threads of the library compute."""

import sys
import threading

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - brings a BLAS of its own
import threadpoolctl
from comparing import refuses

import varmat as vm
from varmat.programs.run import has_native, threads
from varmat.programs.run.threads import one_blas_thread


def blas_threads():
    found = threadpoolctl.threadpool_info()
    return {each["num_threads"] for each in found if each["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_threads():
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        yield


def test_threads_inside_do_not_restore_the_setting():
    def other():
        with one_blas_thread():
            pass

    with one_blas_thread():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
        assert blas_threads() == {1}
    assert blas_threads() == {3}


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1), (2, 1, 0)])
def test_limits_end_in_any_order(order):
    """As those of maps in several threads do."""
    limits = [one_blas_thread() for _ in order]
    for each in limits:
        each.__enter__()
    for i, number in enumerate(order):
        assert blas_threads() == {1}, i
        limits[number].__exit__(None, None, None)
    assert blas_threads() == {3}


def test_an_error_restores_the_setting():
    @one_blas_thread()
    def failing():
        assert blas_threads() == {1}
        raise ZeroDivisionError

    refuses(ZeroDivisionError, None, failing)
    assert blas_threads() == {3}


def test_nothing_is_limited_without_threadpoolctl(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    threads._libraries.cache_clear()
    with one_blas_thread():
        monkeypatch.undo()
        assert blas_threads() == {3}
    threads._libraries.cache_clear()


@pytest.mark.skipif(not has_native(), reason="llvmlite is not installed")
def test_a_map_of_several_threads(monkeypatch):
    """The setting takes longer than a map of few points: it is for programs that call a BLAS."""
    native = pytest.importorskip("varmat.programs.run.native").NativeRunner
    seen = []
    run = native._run

    def noted(*args):
        seen.append(blas_threads())
        return run(*args)

    monkeypatch.setattr(native, "_run", noted)
    weights = np.random.default_rng(0).normal(size=(400, 400))
    for f in (
        lambda x: np.sum(np.exp(x)),
        lambda x: 3.0 + np.sum((weights @ np.repeat(x, 100)) ** 3),
    ):
        recorded = vm.recorded(vm.value_and_grad(f), runner="native")
        values, _ = recorded.map(np.zeros((8, 4)), executor="threads")
        assert set(values.tolist()) <= {3.0, 4.0}
    assert (seen[0], seen[-1]) == ({3}, {1})
    assert blas_threads() == {3}


def test_jobs_on_an_executor():
    seen = []

    def job(_, x):
        seen.append(blas_threads())
        return x * x

    vm.map_rect(job, 0.0, np.ones((4, 1)), executor="threads")
    assert seen
    assert all(each == {1} for each in seen)
    assert blas_threads() == {3}


def test_chains():
    seen = []

    def density(x):
        seen.append(blas_threads())
        return vm.normal_lpdf(x, 0.0, 1.0)

    model = vm.Model(density, x=vm.real(), recorded=False)
    model.sample(draws=5, tune=5, chains=2, cores=1, seed=1, progress_bar=False)
    assert {1} in seen
    assert blas_threads() == {3}
