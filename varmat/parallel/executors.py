"""Tasks on executors: the pools of the library, and what is done when a worker is lost."""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

from varmat.parallel.shares import Answer, Failure, JobError, Request, Unknown, here, identity, run

__all__: list[str] = []

Parcel = Callable[[Request, bool], tuple[bytes | None, bytes]]
# How often jobs are given to a fresh pool after a worker that had them was lost.
ATTEMPTS = 3


class Pools:
    """The pools that the library has made itself, by name."""

    def __init__(self) -> None:
        self._pools: dict[str, Any] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Leave the pools to the parent: a forked child has none of their threads."""
        self._pools, self._lock = {}, threading.Lock()

    def get(self, name: str) -> Any:
        """The pool of this name; made when it is first asked for."""
        with self._lock:
            if name not in self._pools:
                self._pools[name] = _made(name)
            return self._pools[name]

    def renew(self, name: str, broken: Any) -> None:
        """Forget a pool that has lost a worker."""
        with self._lock:
            if self._pools.get(name) is broken:
                del self._pools[name]
        broken.shutdown(wait=False)


def _made(name: str) -> Any:
    if name == "threads":
        return ThreadPoolExecutor(processors(), "varmat")
    try:
        loky: Any = import_module("loky")
    except ImportError as error:
        raise ImportError(
            'executor="processes" needs loky, which is not installed: pip install '
            '"varmat[parallel]"'
        ) from error
    return loky.ProcessPoolExecutor(processors())


pools = Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pools.forget)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check(name: str, executor: Any) -> None:
    """Refuse what is no executor."""
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


def workers_of(executor: Any) -> int:
    """How many workers an executor has, as far as it says so."""
    if executor == "serial" or here.is_busy:
        return 1
    if executor is None or isinstance(executor, str):
        return processors()
    for title in ("_max_workers", "max_workers", "num_workers"):
        found = getattr(executor, title, None)
        if isinstance(found, int) and found > 0:
            return found
    client = getattr(executor, "_client", None)  # of Dask
    if client is not None:
        return sum(client.nthreads().values()) or 1
    return processors()


def answers(name: str, requests: Sequence[Request], executor: Any, parcel: Parcel) -> list[Answer]:
    """The answers to requests, in order.

    Parameters
    ----------
    name : str
        What the user called.
    requests : sequence of Request
    executor : Executor, str or None
    parcel : callable
        What a worker is sent besides a request: its jobs, and the work itself if the second
        argument is true.

    Raises
    ------
    Exception
        The error of the first job that has one, with a note that says which.
    """
    if executor is None:
        executor = "threads"
    if (
        executor == "serial"
        or here.is_busy
        or (executor == "threads" and (len(requests) == 1 or processors() == 1))
    ):
        return [_here(name, request, parcel) for request in requests]
    found: list[Any] = [None] * len(requests)
    left = list(range(len(requests)))
    for _ in range(ATTEMPTS + 1):
        pool = pools.get(executor) if isinstance(executor, str) else executor
        left = _round(name, pool, requests, found, left, parcel)
        if not left:
            return found
        if not isinstance(executor, str):
            _warn(name, requests, left)
            for i in left:
                found[i] = _here(name, requests[i], parcel)
            return found
        pools.renew(executor, pool)
    jobs = [job for i in left for job in requests[i].jobs]
    raise RuntimeError(
        f"{name}: a worker that had the jobs {_listed(jobs)} was killed or crashed {ATTEMPTS + 1} "
        "times, perhaps because there "
        "was not enough memory"
    )


def _here(name: str, request: Request, parcel: Parcel) -> Any:
    """The answer to a request in this thread."""
    found = _checked(name, lambda: run(identity(), request))
    # Other threads may have asked for so much else meanwhile that the work is forgotten.
    return (
        _checked(name, lambda: run(identity(), request, parcel(request, True)))
        if type(found) is Unknown
        else found
    )


def _warn(name: str, requests: Sequence[Request], left: list[int]) -> None:
    jobs = [job for i in left for job in requests[i].jobs]
    text = (
        f"{name}: the executor has lost a worker and is broken; the jobs {_listed(jobs)} are "
        "computed in this process"
    )
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _listed(jobs: list[int]) -> str:
    return ", ".join(map(str, jobs[:8])) + (f" and {len(jobs) - 8} others" if len(jobs) > 8 else "")


def _round(
    name: str,
    pool: Any,
    requests: Sequence[Request],
    found: list[Any],
    left: list[int],
    parcel: Parcel,
) -> list[int]:
    """Submit what is left, and collect the answers; what is lost with a worker is left again."""
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
                    found[i] = _checked(name, future.result)
                except BrokenExecutor:
                    lost.append(i)
                    continue
                if type(found[i]) is Unknown:
                    unknown.append(i)
                    without += found[i].lacks_work
            # The work is sent to as many as there are workers at most: the next ones find it there,
            # or say so.
            most = min(without, workers_of(pool))
            futures = [
                (i, _submitted(pool, requests[i], parcel(requests[i], n < most)))
                for n, i in enumerate(unknown)
            ]
    except BaseException:
        for _, future in futures:
            if future is not None:
                future.cancel()
        raise
    return lost


def _submitted(pool: Any, request: Request, parcel: Any = None) -> Any:
    """The future of a request; None if the pool is broken."""
    try:
        return pool.submit(run, identity(), request, parcel)
    except BrokenExecutor:
        return None


def _checked(name: str, result: Callable[[], Any]) -> Any:
    """An answer; raises the error that a job had, with its number, and the traceback of the other
    process as its cause.
    """
    try:
        answer = result()
    except JobError as wrapped:
        answer = wrapped
    if isinstance(answer, JobError):
        # Raised here, it keeps its own cause.
        answer.error.add_note(f"in job {answer.job} of {name}")
        raise answer.error
    if type(answer) is not Failure:
        return answer
    error = RuntimeError(answer.text) if answer.error is None else pickle.loads(answer.error)
    error.add_note(f"in job {answer.job} of {name}, in another process")
    raise error from RemoteError(answer.trace)


class RemoteError(Exception):
    """The cause of an error of another process: its text is the traceback there."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'
