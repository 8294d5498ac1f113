"""Requests to executors: the pools of the library, and the loss of a worker."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from varmat.parallel.shares import Failure, JobError, Unknown, dumps, here, identity, run
from varmat.programs.run.threads import one_blas_thread, processors
from varmat.typing import Operand, Result, Thunk

Parcel = Callable[[Any, bool], tuple[bytes | None, bytes]]
# How often jobs are given to a new pool after their worker was lost.
ATTEMPTS = 3
# Large packages that the native runner and the samplers import.
LARGE = ("llvmlite", "arviz", "nutpie")


class Pools:
    """The pools that the library has made, by name."""

    def __init__(self) -> None:
        self._pools: dict[str, Executor] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Leave the pools to the parent: their threads do not exist in a forked child."""
        self._pools, self._lock = {}, threading.Lock()

    def get(self, name: str) -> Executor:
        """Return the pool of this name, made at the first call."""
        with self._lock:
            if name not in self._pools:
                self._pools[name] = _executor(name)
            return self._pools[name]

    def renew(self, name: str, broken: Executor) -> None:
        """Forget a pool that has lost a worker."""
        with self._lock:
            if self._pools.get(name) is broken:
                del self._pools[name]
        broken.shutdown(wait=False)


def _executor(name: str) -> Executor:
    if name == "threads":
        return ThreadPoolExecutor(processors(), "varmat")
    try:
        loky: ModuleType = import_module("loky")
    except ImportError as error:
        raise ImportError(
            'executor="processes" needs loky, which is not installed: in a clone of varmat, '
            'pip install -e ".[parallel]"'
        ) from error
    loaded = [name for name in LARGE if name in sys.modules]
    pool: Executor = loky.ProcessPoolExecutor(processors(), initializer=partial(begin, loaded))
    return pool


def begin(modules: Sequence[str]) -> None:
    """Import, in a new process, what its parent has imported.

    If a process grew by hundreds of megabytes later, loky would take it for a memory leak.
    """
    for name in modules:
        with suppress(ImportError):
            import_module(name)


pools = Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pools.forget)


def check(name: str, executor: object) -> None:
    """Refuse anything but an executor or the name of one."""
    if (
        executor is None
        or executor in ("threads", "processes", "serial")
        or callable(getattr(executor, "submit", None))
    ):
        return
    raise TypeError(
        f"{name}: executor is {executor!r}, but must be an executor of concurrent.futures, "
        '"threads", "processes" or "serial"!'
    )


def sendable(name: str, thing: object) -> bytes:
    """Pickle an object for another process."""
    try:
        return dumps(thing)
    except Exception as error:
        raise TypeError(
            f"{name}: the function, or its data, cannot be sent to another process: {error}"
        ) from error


def workers_of(executor: Executor | str | None) -> int:
    """Return how many workers an executor has; the number of processors if it does not say."""
    if executor == "serial" or here.is_busy:
        return 1
    if executor is None or isinstance(executor, str):
        return processors()
    for title in ("_max_workers", "max_workers", "num_workers"):
        result = getattr(executor, title, None)
        if isinstance(result, int) and result > 0:
            return result
    client = getattr(executor, "_client", None)  # of Dask
    if client is not None:
        return sum(client.nthreads().values()) or 1
    return processors()


class Asking(NamedTuple):
    """How a function sends requests to workers.

    Attributes
    ----------
    name : str
        The function that the user called.
    parcel : callable
        Makes the data sent to a worker with a request: the work, if the second argument is true,
        and the jobs.
    noun : str
        What messages call a job; empty if errors are not to name theirs.
    result : callable
        Waits for the future of a request, and returns the answer; takes the number of the request
        and the future.
    """

    name: str
    parcel: Parcel
    noun: str = "job"
    result: Callable[[int, Future[Any]], Any] = lambda _, future: future.result()


def answers(
    asking: Asking, requests: Sequence[object], executor: Executor | str | None
) -> list[Result]:
    """Return the answers to requests, in order.

    Parameters
    ----------
    asking : Asking
    requests : sequence of Request or Block
    executor : Executor, str or None

    Raises
    ------
    Exception
        The error of the first job that fails, with a note that names the job.
    """
    if executor is None:
        executor = "threads"
    if (
        executor == "serial"
        or here.is_busy
        or (executor == "threads" and (len(requests) == 1 or processors() == 1))
    ):
        return [_here(asking, request) for request in requests]
    result: list[Result] = [None] * len(requests)
    left = list(range(len(requests)))
    for _ in range(ATTEMPTS + 1):
        pool = pools.get(executor) if isinstance(executor, str) else executor
        left = _round(asking, pool, requests, result, left)
        if not left:
            return result
        if not isinstance(executor, str):
            _warn(asking, requests, left)
            for i in left:
                result[i] = _here(asking, requests[i])
            return result
        pools.renew(executor, pool)
    raise RuntimeError(
        f"{asking.name}: a worker that had the {_listed(asking, requests, left)} was killed or "
        f"crashed {ATTEMPTS + 1} times, perhaps because there was not enough memory"
    )


def _here(asking: Asking, request: object) -> Result:
    """Answer a request in this thread."""
    result = _checked(asking, lambda: run(identity(), request))
    if type(result) is not Unknown:
        return result
    # Requests of other threads may have displaced the work meanwhile: send it again.
    return _checked(asking, lambda: run(identity(), request, asking.parcel(request, True)))


def _warn(asking: Asking, requests: Sequence[object], left: list[int]) -> None:
    jobs = _listed(asking, requests, left)
    text = (
        f"{asking.name}: the executor has lost a worker and is broken; the {jobs} are computed in "
        "this process"
    )
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _listed(asking: Asking, requests: Sequence[Operand], left: list[int]) -> str:
    jobs = [job for i in left for job in requests[i].jobs]
    others = f" and {len(jobs) - 8} others" if len(jobs) > 8 else ""
    return f"{asking.noun or 'job'}s " + ", ".join(map(str, jobs[:8])) + others


@one_blas_thread()
def _beside_others(
    process: tuple[str, int], request: object, parcel: tuple[bytes | None, bytes] | None
) -> Result:
    """Answer a request as one of several workers."""
    return run(process, request, parcel)


@one_blas_thread()
def _round(
    asking: Asking,
    pool: Executor,
    requests: Sequence[object],
    result: list[Result],
    left: list[int],
) -> list[int]:
    """Submit the requests in `left`, collect the answers, and return those lost with a worker."""
    lost: list[int] = []
    futures: list[tuple[int, Future[Any] | None]] = [
        (i, _submitted(pool, requests[i])) for i in left
    ]
    try:
        while futures:
            unknown: list[int] = []
            without = 0
            for i, future in futures:
                if future is None:
                    lost.append(i)
                    continue
                try:
                    result[i] = _checked(asking, partial(asking.result, i, future))
                except BrokenExecutor:
                    lost.append(i)
                    continue
                if type(result[i]) is Unknown:
                    unknown.append(i)
                    without += result[i].lacks_work
            # Send the work at most once for each worker: later requests find it there, or say that
            # they do not.
            most = min(without, workers_of(pool))
            futures = [
                (i, _submitted(pool, requests[i], asking.parcel(requests[i], n < most)))
                for n, i in enumerate(unknown)
            ]
    except BaseException:
        for _, future in futures:
            if future is not None:
                future.cancel()
        raise
    return lost


def _submitted(
    pool: Executor, request: object, parcel: tuple[bytes | None, bytes] | None = None
) -> Future[Result] | None:
    """Submit a request, and return its future; None if the pool is broken."""
    try:
        return pool.submit(_beside_others, identity(), request, parcel)
    except BrokenExecutor:
        return None


def _checked(asking: Asking, result: Thunk) -> Result:
    """Return the answer, or raise the error of a job with a note that names the job.

    The cause of an error from another process is the traceback there.
    """
    try:
        answer = result()
    except JobError as wrapped:
        answer = wrapped
    if isinstance(answer, JobError):
        # Raised outside the except clause, the error keeps its own cause.
        if asking.noun:
            answer.error.add_note(f"in {asking.noun} {answer.job} of {asking.name}")
        raise answer.error
    if type(answer) is not Failure:
        return answer
    error = RuntimeError(answer.text) if answer.error is None else pickle.loads(answer.error)
    # The error brings the notes that it has, since they are pickled with it.
    if asking.noun:
        error.add_note(f"in {asking.noun} {answer.job} of {asking.name}, in another process")
    raise error from RemoteError(answer.trace)


class RemoteError(Exception):
    """The cause of an error from another process: its text is the traceback there."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'
