"""The number of threads that run at once: one for each processor, and one of the BLAS in each."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

from varmat.locks import held

__all__ = ["one_blas_thread", "processors"]


def processors() -> int:
    """Count the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# The limits that are on, and what each restores: threads by library.
_limits: dict[int, dict[str, int]] = {}
_lock = threading.RLock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's BLAS use one thread, if threadpoolctl is installed.

    Threads that each start the threads of a BLAS wait for one another: four chains of a Gaussian
    process of 200 points take ten times as long. Use this both where threads are awaited and in
    each of them, because some libraries have a setting for each thread, and others one for the
    process that belongs to the first thread to change it.

    Limits may end in any order. One that ends before another that has found its single thread
    leaves the number to that one to restore.
    """
    libraries = _libraries(len(sys.modules))
    blas = [item for item in libraries or () if item.user_api == "blas"]
    saved: dict[str, int] = {}
    try:
        with held(_lock):
            _limits[id(saved)] = saved
            for x in blas:
                saved[x.filepath] = x.num_threads
                x.set_num_threads(1)
        yield
    finally:
        with held(_lock):
            _limits.pop(id(saved), None)
            for x in blas:
                threads = saved.get(x.filepath, 1)
                others = (other for other in _limits.values() if other.get(x.filepath) == 1)
                heir = next(others, None)
                if heir is None:
                    x.set_num_threads(threads)
                else:
                    heir[x.filepath] = threads


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """Find the libraries of the process, again when modules were imported: they load more."""
    try:
        return import_module("threadpoolctl").ThreadpoolController().lib_controllers
    except ImportError:
        return None
