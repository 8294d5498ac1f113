"""The inner loops of ufuncs, and where they are.

A ufunc of NumPy or SciPy holds the addresses of its loops, of one signature: ``loop(args,
dimensions, strides, data)``. Before the loops of a ufunc are trusted, one is called and compared
with what the ufunc itself gives.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

LoopLengths = tuple[int, int]


class NoLoopError(Exception):
    """A ufunc has no loop that can be called."""


@cache
def loop_of(ufunc: np.ufunc, signature: str) -> LoopLengths:
    """Return the address and the data of a loop of a ufunc, for types as in "dd->d"; raise
    `NoLoopError` if it does not exist.

    The fields are as in ``PyUFuncObject`` of NumPy's C API: an object head, four ints,
    ``functions`` and ``data``."""
    if signature not in ufunc.types:
        raise NoLoopError(f"{ufunc.__name__} has no loop for {signature}")
    if any(
        "d" in x.partition("->")[0] and set(x.partition("->")[0]) & set("ilq") for x in ufunc.types
    ):
        # Functions of integers, whose loops warn of any float that is not an integer.
        raise NoLoopError(f"{ufunc.__name__} is one of integers")
    head = object.__basicsize__
    counts = [ctypes.c_int.from_address(id(ufunc) + head + at).value for at in (0, 4)]
    if counts != [ufunc.nin, ufunc.nout]:
        raise NoLoopError("ufuncs of this NumPy are laid out in another way")
    at, pointers = ufunc.types.index(signature), ctypes.POINTER(ctypes.c_void_p)
    functions = ctypes.cast(
        ctypes.c_void_p.from_address(id(ufunc) + head + 16).value or 0, pointers
    )
    all_data = ctypes.c_void_p.from_address(id(ufunc) + head + 24).value
    data = ctypes.cast(all_data, pointers)[at] or 0 if all_data else 0
    loop = functions[at] or 0
    if not loop:
        raise NoLoopError(f"{ufunc.__name__} has no loop at an address")
    if ufunc.signature is None:
        _verify(ufunc, signature, loop, data)
    return loop, data


_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _verify(ufunc: np.ufunc, signature: str, loop: int, data: int) -> None:
    """Call a loop, and compare with the ufunc."""
    inputs, _, outputs = signature.partition("->")
    points = np.array([0.3, 0.7, 0.9])
    arrays = [points.astype(np.dtype(char)) for char in inputs] + [
        np.zeros(3, np.dtype(char)) for char in outputs
    ]
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays[: ufunc.nin])
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        strides = (ctypes.c_ssize_t * len(arrays))(*(a.itemsize for a in arrays))
        _LOOP(loop)(addresses, (ctypes.c_ssize_t * 1)(3), strides, data)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, true in zip(arrays[ufunc.nin :], expected, strict=True):
        if not np.array_equal(result, true, equal_nan=True):
            raise NoLoopError(f"a loop of {ufunc.__name__} gives {result}, but the ufunc {true}")
