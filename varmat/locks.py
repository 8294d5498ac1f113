"""Locks: holding one, and functions whose results are made once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import update_wrapper
from typing import Generic, TypeVar

__all__ = ["Once", "held"]

T = TypeVar("T")


@contextmanager
def held(lock: threading.RLock) -> Iterator[None]:
    """Hold an `RLock`. A plain ``with lock`` is not enough: from Python 3.14 on an interrupt can
    come between its entry and its block.
    """
    try:
        lock.acquire()
        yield
    finally:
        with suppress(RuntimeError):  # it came before the lock was taken
            lock.release()


class Once(Generic[T]):
    """Decorator: a function that is called once for each combination of arguments.

    Several threads that need a result at once all get the first one, where `functools.cache` would
    keep the last. Use this where a result is known by its identity, changes a registry, or owns
    memory whose address others keep. A module that the function imports must call none of these
    functions while it is imported: a thread that imports it would wait for this one, and this one
    for that.
    """

    # One lock for all, because these functions call each other in any order.
    _lock = threading.RLock()

    def __init__(self, function: Callable[..., T]) -> None:
        update_wrapper(self, function)
        self._function, self._cache = function, dict[Hashable, T]()

    def __call__(self, *args: Hashable) -> T:
        if args not in self._cache:
            with held(self._lock):
                if args not in self._cache:
                    self._cache[args] = self._function(*args)
        return self._cache[args]

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[no-any-return, attr-defined]  # of the function

    def cache_clear(self) -> None:
        """Forget all results."""
        self._cache.clear()

    @classmethod
    def renew_lock(cls) -> None:
        """Make a new lock in a forked child: another thread of the parent may hold the old one."""
        cls._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Once.renew_lock)
