"""Native programs between pages that nothing may touch.

All arguments, outputs, constants and pieces of scratch memory are buffers of their own that begin
or end at such a page, so that code which reads or writes beside one ends the process. They are
filled with nan, which shows numbers that are read before they are written. As a plugin of pytest
this runs any tests so:

    PYTHONPATH=tests GUARDED=end python -m pytest -p guarded tests/programs
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

PAGE = mmap.PAGESIZE
MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def region(size: int, guards: Sequence[int]) -> tuple[mmap.mmap, int]:
    """Memory filled with nan, and its address; the pages at `guards` cannot be touched."""
    memory = mmap.mmap(-1, size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.memset(start, 0xFF, size)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for each in guards:
        if protect(start + each, PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory, start


def pages(size: int) -> int:
    """Bytes of whole pages, at least one."""
    return max(-(-size // PAGE), 1) * PAGE


class Guards:
    """Buffers that end at a page that nothing may touch, or that begin behind one."""

    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end
        # The pages between pieces of scratch memory, by its size.
        self.layouts: dict[int, list[int]] = {}
        self.taken: dict[int, mmap.mmap] = {}

    def empty(self, shape: Any, dtype: Any = np.float64) -> np.ndarray:
        dtype = np.dtype(dtype)
        size = int(np.prod(shape, dtype=int)) * dtype.itemsize
        inside = pages(size)
        memory, _ = region(inside + 2 * PAGE, [0, inside + PAGE])
        at = PAGE + (inside - size if self.at_end else 0)
        return np.ndarray(shape, dtype, memory, at)

    def copy(self, x: np.ndarray) -> np.ndarray:
        made = self.empty(x.shape, x.dtype)
        made[...] = x
        return made

    def place(self, code: Any) -> None:
        """Give each piece of scratch memory pages of its own, as `Code.finish` gives places."""
        from varmat.programs.run.compiler import INT

        code.b.ret(INT(0))
        guards, at = [0], PAGE
        for memory, places in code._scratch.values():
            inside = pages(memory.size)
            for each in places:
                each.constant = at + (inside - memory.size if self.at_end else 0)
            guards.append(at + inside)
            at += inside + PAGE
        while at + 64 in self.layouts:
            at += PAGE
        self.layouts[at + 64] = guards
        code.scratch_bytes = at

    def malloc(self, size: int) -> int:
        memory, start = region(pages(size), self.layouts[size])
        self.taken[start] = memory
        return start

    def free(self, start: int) -> None:
        del self.taken[start]


@contextmanager
def replaced(**functions: Any) -> Iterator[None]:
    """Let code that is compiled inside call other functions of C."""
    import llvmlite.binding as llvm

    own = {name: getattr(ctypes.CDLL(None), name) for name in functions}
    for name, function in functions.items():
        llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    try:
        yield
    finally:
        for name, function in own.items():
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)


class GuardedNumpy:
    """NumPy for the native runner, whose new arrays are guarded."""

    def __init__(self, guards: Guards) -> None:
        self.empty = guards.empty

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


# Kept for ever, because code that was compiled inside may live longer than its guards.
KEPT: list[object] = []


@contextmanager
def guarded(at_end: bool) -> Iterator[Guards]:
    """Compile and run native programs between guards."""
    from varmat.programs.run import native
    from varmat.programs.run.code import Code
    from varmat.programs.run.constants import Constants

    guards, runner = Guards(at_end), native.NativeRunner
    call, map_, bound = runner.__call__, runner.map, Constants.bound

    def guarded_call(self: Any, arguments: Sequence[np.ndarray]) -> list[Any]:
        values = self.program.arguments
        given = [
            guards.copy(np.asarray(x, v.dtype)) for x, v in zip(arguments, values, strict=True)
        ]
        return [np.array(x) if np.ndim(x) else x for x in call(self, given)]

    def guarded_map(self: Any, arguments: Any, outputs: Any, workers: int | None = None) -> None:
        made = [guards.empty(x.shape, x.dtype) for x in outputs]
        map_(self, [guards.copy(x) for x in arguments], made, workers)
        for x, y in zip(outputs, made, strict=True):
            x[...] = y

    def guarded_constants(self: Any, blocks: Any) -> Any:
        arrays = bound(self, blocks)
        return arrays and [guards.copy(x) if x.flags.c_contiguous else x for x in arrays]

    functions: dict[str, Callable[..., Any]] = {
        "malloc": MALLOC(guards.malloc),
        "free": FREE(guards.free),
    }
    KEPT.append(functions)
    with pytest.MonkeyPatch.context() as patch, replaced(**functions):
        patch.setattr(native, "ON_STACK", -1)
        patch.setattr(native, "np", GuardedNumpy(guards))
        patch.setattr(runner, "__call__", guarded_call)
        patch.setattr(runner, "map", guarded_map)
        patch.setattr(Constants, "bound", guarded_constants)
        patch.setattr(native, "CODES", native.CODES.copy())
        native.CODES.clear()
        patch.setattr(Code, "finish", lambda self: guards.place(self))
        yield guards


@pytest.fixture(autouse=True)
def between_guards() -> Iterator[None]:
    if "GUARDED" not in os.environ:
        yield
        return
    with guarded(os.environ["GUARDED"] == "end"):
        yield
