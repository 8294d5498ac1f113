"""How many threads run at once: as many as there are processors, and one of the BLAS in each."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

__all__ = ["one_blas_thread", "processors"]


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's BLAS use one thread, if threadpoolctl is installed.

    Threads that each start the threads of a BLAS wait for one another: four chains of a Gaussian
    process of 200 points take ten times as long. Use this both where threads are awaited and in
    each of them, because some libraries have a setting for each thread, and others one for the
    process that belongs to the first thread to change it.
    """
    libraries = _libraries(len(sys.modules))
    if libraries is None:
        yield
    else:
        with libraries.limit(limits=1, user_api="blas"):
            yield


@lru_cache(maxsize=1)
def _libraries(modules: int) -> Any:
    """The libraries of the process, looked for again when modules were imported: they load more."""
    try:
        return import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
