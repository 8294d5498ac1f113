"""Parts of an array by their place in memory: how the same part is taken of a variable.

A view that any function of NumPy returns is described by an offset and strides in the memory of the
array. The variable that this array becomes has its elements in the same order, so the same offset
and strides give the same part of it. No function has to be known by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from varmat.complexes.variable import ComplexVar
from varmat.functions.arrays.shaping import memory_of, view
from varmat.plain_arrays import address, overlaps
from varmat.typing import Function, Index, Operand, Shape

BYTES = (
    "a variable is written into an array whose bytes are read as other numbers, as by "
    "x.view(int); use x.astype(dtype)"
)


def strided(a: np.ndarray, offset: int, shape: Shape, strides: Sequence[int]) -> np.ndarray:
    """Return the part of an array in row-major order with a first element and steps, counted in
    elements.
    """
    flat = a.reshape(-1)
    step = flat.strides[0]
    return as_strided(flat[offset:], shape, [n * step for n in strides])


def _component(x: Operand, which: str | None) -> Operand:
    return x if which is None else getattr(x, which)


class Region:
    """How to take a part of a variable, as a view, or a single element."""

    __slots__ = ("_how", "_which", "places")

    def __init__(self, which: str | None, how: Function, indices: np.ndarray | None) -> None:
        self._which, self._how = which, how
        # Indices of an element, which is read whenever it is needed, or of a part with repeated
        # elements, to write into them.
        self.places = indices

    def __call__(self, full: Operand) -> Operand:
        x = _component(full, self._which)
        if self.places is not None and not self.places.ndim:
            return np.reshape(x, -1)[int(self.places)]
        if isinstance(x, ComplexVar):
            return ComplexVar(view(x.real, self._how), view(x.imag, self._how))
        return view(x, self._how)

    def write(self, full: Operand, index: Index, source: Operand) -> None:
        """Assign to elements by their places."""
        assert self.places is not None
        flat, indices = np.reshape(_component(full, self._which), -1), self.places[index]
        if np.ndim(indices):
            flat[indices] = source
        else:
            flat[int(indices)] = np.reshape(source, ())


def taking(full: np.ndarray, part: np.ndarray) -> Function:
    """Return how to take from a variable the part that `part`, which lies in its memory, is of an
    array in row-major order.
    """
    item, offset = full.itemsize, address(part) - address(full) if part.size else 0
    steps = [
        step if n > 1 and part.size else 0 for step, n in zip(part.strides, part.shape, strict=True)
    ]
    which = None
    if part.dtype != full.dtype or any(step % item for step in steps) or offset % item:
        if not (full.dtype.kind == "c" and part.dtype == full.real.dtype) or any(
            step % item for step in steps
        ):
            return _refuse
        which = "imag" if offset % item else "real"
    elif part.dtype.kind not in "fc":
        return _refuse
    offset //= item
    strides = [step // item for step in steps]
    how = partial(strided, offset=offset, shape=part.shape, strides=strides)
    if part.ndim and not overlaps(part):
        return Region(which, how, None)
    offsets = np.array(offset)
    for n, step in zip(part.shape, strides, strict=True):
        offsets = offsets[..., None] + step * np.arange(n)
    return Region(which, how, offsets)


def _refuse(full: Operand) -> Operand:
    raise TypeError(BYTES)


def plain_part(full: np.ndarray, variable: object, part: object) -> np.ndarray | None:
    """Return the part of an array that `part`, a variable, is of the variable that it became; None
    if it is not a view of that.
    """
    pairs = [(variable, part, full)]
    if isinstance(variable, ComplexVar):
        if isinstance(part, ComplexVar):
            if not _lies_in(part.imag, variable.imag):
                return None
            pairs = [(variable.real, part.real, full)]
        else:
            pairs = [(variable.real, part, full.real), (variable.imag, part, full.imag)]
    for x, y, array in pairs:
        if _lies_in(y, x):
            a, b = memory_of(x), memory_of(y)
            result = strided(
                array,
                (address(b) - address(a)) // 8 if b.size else 0,
                b.shape,
                [n // 8 for n in b.strides],
            )
            if not b.flags.writeable:
                result.flags.writeable = False
            return result
    return None


def _lies_in(part: object, full: object) -> bool:
    if isinstance(part, ComplexVar):
        return False
    a, b = memory_of(full), memory_of(part)
    return (
        type(a) is np.ndarray and type(b) is np.ndarray and b.ndim > 0 and np.may_share_memory(a, b)
    )
