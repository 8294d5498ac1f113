"""Jobs in other processes: values and derivatives, errors with their remote traceback, and killed
workers.
"""

import os
import signal
import threading
import traceback
from functools import partial

import numpy as np
import pytest
from comparing import close, equal, refuses

import varmat as vm
from varmat.parallel import executors

loky = pytest.importorskip("loky", reason="loky is not installed")

Y = np.array([0.1, -0.4, 1.2, 2.2, 0.7, -2.0])


@pytest.fixture(scope="module")
def pool():
    with loky.ProcessPoolExecutor(2) as executor:
        yield executor


def test_the_results_are_those_of_this_process(pool):
    def part(y, start, end, mu, sigma):
        return vm.normal_lpdf(y, mu, sigma)

    def total(q, executor):
        return vm.reduce_sum_static(part, Y, 2, q[0], q[1], executor=executor)

    q = np.array([0.3, 1.2])
    here, there = vm.value_and_grad(total)(q, "serial"), vm.value_and_grad(total)(q, pool)
    assert here[0] == there[0]
    equal(here[1], there[1])
    equal(vm.hessian(total, q, "serial"), vm.hessian(total, q, pool))

    def rows(phi, theta, x):
        return phi * theta * x

    mapped = vm.gradient(
        lambda a: np.arange(3.0) @ vm.map_rect(rows, a[0], a[1:], Y[:3], executor=pool), np.ones(4)
    )
    close(mapped, [Y[1] + 2 * Y[2], 0.0, Y[1], 2 * Y[2]], 1e-15)


def test_errors_come_with_their_job_and_their_line(pool):
    class OfTwoError(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    def f(x, start, end, kind):
        if start < 2:
            return float(np.sum(x))
        if kind:
            raise OfTwoError("this", "that")
        return vm.normal_lpdf(x, 0.0, -1.0)

    with pytest.raises(vm.DomainError, match=r"^normal_lpdf: Scale parameter is -1\.0") as caught:
        vm.reduce_sum_static(f, Y, 2, 0, executor=pool)
    assert caught.value.__notes__ == ["in job 1 of reduce_sum_static, in another process"]
    # Newer versions of cloudpickle drop the file, and with it the text of the line.
    line = f.__code__.co_firstlineno + 5
    assert f"line {line}, in f\n" in "".join(traceback.format_exception(caught.value))
    # This error cannot be pickled.
    with pytest.raises(RuntimeError, match=r"^OfTwoError: this and that"):
        vm.reduce_sum_static(f, Y, 2, 1, executor=pool)


def test_data_that_cannot_be_sent_are_refused(pool):
    lock = threading.Lock()
    message = (
        "^reduce_sum: the function, or its data, cannot be sent to another process: cannot pickle"
    )
    f = lambda x, i, j: 0.0 if lock else 1.0  # noqa: E731
    refuses(TypeError, message, vm.reduce_sum, f, Y, 1, executor=pool)


def killing(path, home):
    """Return a function that kills its process the first time that another process gets the second
    slice.
    """

    def part(y, start, end, mu):
        if start == 2 and os.getpid() != home and not os.path.exists(path):
            with open(path, "w", encoding="utf-8"):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        return np.sum((y - mu) ** 2)

    return part


EXPECTED = (np.sum((Y - 0.5) ** 2), -2.0 * np.sum(Y - 0.5))


needs_sigkill = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system"
)


@needs_sigkill
def test_jobs_of_a_killed_worker_go_to_a_fresh_pool(tmp_path):
    part = killing(str(tmp_path / "was here"), os.getpid())
    found = vm.value_and_grad(partial(total, part, "processes"))(0.5)
    close(found, EXPECTED, 1e-14)
    assert (tmp_path / "was here").exists()


def total(part, executor, mu):
    return vm.reduce_sum_static(part, Y, 2, mu, executor=executor)


@needs_sigkill
def test_jobs_of_a_killed_worker_of_another_pool_are_computed_here(tmp_path):
    part = killing(str(tmp_path / "was here"), os.getpid())
    message = r"^reduce_sum_static: the executor has lost a worker and is broken; the jobs "
    with loky.ProcessPoolExecutor(2) as own, pytest.warns(RuntimeWarning, match=message):
        found = vm.value_and_grad(partial(total, part, own))(0.5)
    close(found, EXPECTED, 1e-14)
    assert (tmp_path / "was here").exists()


@needs_sigkill
def test_a_job_that_kills_its_worker_every_time_is_named(monkeypatch):
    monkeypatch.setattr(executors, "ATTEMPTS", 0)
    home = os.getpid()

    def part(y, start, end):
        if os.getpid() != home:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    message = r"^reduce_sum: a worker that had the jobs 0 was killed or crashed 1 times"
    refuses(RuntimeError, message, vm.reduce_sum, part, Y, 6, executor="processes")


@pytest.fixture(scope="module", autouse=True)
def no_processes_remain():
    yield
    left = executors.pools._pools.pop("processes", None)
    if left is not None:
        left.shutdown(wait=True, kill_workers=True)
