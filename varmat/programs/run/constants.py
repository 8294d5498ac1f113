"""Constants of machine code, so that programs that differ only in data share their code.

Machine code loads the address of each constant from a table. The signature of a program is all that
is known of it except the elements of its arrays. Two programs with equal signatures can run the
same code if they also agree in the few elements that the code depends on, because these are
literals in it, as the numbers of formulas are.
"""

from __future__ import annotations

import math
from bisect import bisect, insort
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cached_property
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from varmat.programs.ir.memory import array_at
from varmat.programs.ir.program import OBJECT, Program, Step, Value
from varmat.programs.run.nodes import Memory
from varmat.typing import Function

_PLAIN = frozenset({int, str, bool, bytes, type(None)})


class NotSharedError(Exception):
    """A program contains an object that a signature cannot describe."""


class Part(NamedTuple):
    """The layout of an array in a block of memory."""

    block: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


class Block:
    """A contiguous range of addresses, whose memory the caller keeps alive."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def array(self, part: Part) -> np.ndarray:
        return array_at(self.low + part.offset, part.shape, part.dtype, part.strides)


def bounds(x: np.ndarray) -> tuple[int, int]:
    """Return the addresses between which the elements of an array lie."""
    low = high = x.ctypes.data
    for n, stride in zip(x.shape, x.strides, strict=True):
        low, high = low + min((n - 1) * stride, 0), high + max((n - 1) * stride, 0)
    return low, high + x.itemsize


class Signature:
    """The structure of a program, without the elements of its constants.

    Parameters
    ----------
    program : Program, Kernel, or tuple of them
    with_data : bool
        Whether the key includes the elements of constants too; if so, it has no blocks.

    Attributes
    ----------
    key : tuple
        Equal for programs with equal structure.
    blocks : list of Block
        The memory of the constants, in the order in which the program reads them.

    Raises
    ------
    NotSharedError
        If a kernel has an attribute that has no known parts, such as a closure.
    """

    def __init__(self, program: object, *, with_data: bool = False) -> None:
        self._with_data = with_data
        self._numbers: dict[int, int] = {}
        self._key: list[Hashable] = []
        self._arrays: list[np.ndarray] = []
        self._add(program)
        # Overlapping arrays are one block, because code depends on which elements they share.
        merged: list[tuple[int, Block]] = []
        spans = sorted((*bounds(x), k) for k, x in enumerate(self._arrays))
        of_array: dict[int, Block] = {}
        for low, high, k in spans:
            if not merged or low >= merged[-1][1].high:
                merged.append((k, Block(low, high)))
            first, block = merged.pop()
            block.high = max(high, block.high)
            merged.append((min(first, k), block))
            of_array[k] = block
        self.blocks = [block for _, block in sorted(merged, key=lambda x: x[0])]
        number = {id(block): k for k, block in enumerate(self.blocks)}
        addresses = ((number[id(of_array[k])], x.ctypes.data - of_array[k].low)
                  for k, x in enumerate(self._arrays))  # fmt: skip
        self.key = *self._key, *addresses

    def _add(self, x: Any) -> None:
        kind: Any = type(x)
        out = self._key
        if kind in _PLAIN:
            out += (kind, x)
        elif kind is float or isinstance(x, np.generic):
            out += (kind, np.asarray(x).tobytes())
        elif isinstance(x, (tuple, list)):
            out += (kind, len(x))
            for item in x:
                self._add(item)
        elif kind is np.ndarray and x.dtype is not OBJECT:
            out += (x.shape, x.dtype.str, x.tobytes())
        elif isinstance(x, np.dtype):
            out.append(x.str)
        elif isinstance(x, (np.ufunc, type, BuiltinFunctionType)) or is_plain_function(x):
            out.append(x)
        elif kind is Value:
            self._value(x)
        elif not self._is_known(x):
            out.append(kind)
            for name, item in _attributes(x):
                out.append(name)
                self._add(item)

    def _is_known(self, x: object) -> bool:
        """Number an object, and return whether it has been met before."""
        count = len(self._numbers)
        number = self._numbers.setdefault(id(x), count)
        self._key.append(number)
        return number < count

    def _value(self, x: Value) -> None:
        base, out = x.base, self._key
        if not self._is_known(base):
            out += (base.shape, base.dtype.str, base.strides)
            if base.data is None:
                pass
            elif (
                self._with_data
                or not base.size
                or (not base.shape and has_few_digits(float(base.data)))
            ):
                out.append(base.data.tobytes())
            else:
                out.append("constant")
                self._arrays.append(base.data)
            if base.dtype is OBJECT and base.data is not None:
                raise NotSharedError
        if x is not base:
            out += (x.shape, x.offset, x.strides)


def has_few_digits(x: float) -> bool:
    """Return whether a number has few binary digits. Such a number is probably a constant of a
    formula, such as 0.5; others are rather data.
    """
    return math.isinf(x) or (abs(x) < 2.0**20 and (1024.0 * x).is_integer())


def of_few_digits(x: np.ndarray) -> np.ndarray:
    """Replace the elements of a short array that have many digits by nan."""
    saved = [number if has_few_digits(number) else math.nan for number in map(float, x.flat)]
    return np.reshape(saved, x.shape)


def is_plain_function(x: object) -> bool:
    """Return whether a function has neither a closure nor default arguments."""
    return isinstance(x, FunctionType) and not (x.__closure__ or x.__defaults__ or x.__kwdefaults__)


def _attributes(x: object) -> Iterator[tuple[str, object]]:
    kind = type(x)
    if kind.__module__.partition(".")[0] != "varmat":
        raise NotSharedError
    if kind is Program:
        names: Sequence[str] = ("arguments", "steps", "outputs")
    elif kind is Step:
        names = ("kernel", "operands", "results")
    elif is_dataclass(x):
        names = [field.name for field in fields(x)]
    elif hasattr(x, "__dict__"):
        names = [name for name in vars(x)
                 if not isinstance(getattr(kind, name, None), cached_property)]  # fmt: skip
    else:
        names = [name for item in kind.__mro__ for name in getattr(item, "__slots__", ())]
    return ((name, getattr(x, name)) for name in names)


class Constants:
    """The recipe of a table of constants, filled in while code is generated.

    Parameters
    ----------
    blocks : sequence of Block
        The memory of the constants of the program.

    Attributes
    ----------
    slots : list
        For each entry of the table an array, or a part of a block and a function that makes the
        array from it.
    copies : list of Part
        Parts that are copied; the copies are further blocks.
    known : dict of bytes
        For parts and functions of them that the code depends on, the resulting elements.
    long : int
        Axes of more elements are loops.
    """

    long: int

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.slots: list[tuple[Part, Function] | np.ndarray] = []
        self.copies: list[Part] = []
        self.known: dict[tuple[Part, Function], bytes] = {}
        self._spans = sorted((block.low, block.high, k) for k, block in enumerate(blocks))

    def _part(self, x: np.ndarray) -> Part | None:
        low, high = bounds(x)
        at = bisect(self._spans, (low, np.inf)) - 1
        if not x.size or at < 0 or self._spans[at][1] < high:
            return None
        start, _, block = self._spans[at]
        return Part(block, x.ctypes.data - start, x.shape, x.strides, x.dtype)

    def copied(self, x: np.ndarray) -> np.ndarray:
        """Return a contiguous copy."""
        result, part = np.array(x, order="C"), self._part(x)
        if part is not None:
            insort(self._spans, (*bounds(result), len(self._spans)))
            self.copies.append(part)
        return result

    def seen(self, x: np.ndarray, function: Function = np.asarray) -> np.ndarray:
        """Return a function of an array, and note that the code depends on the result."""
        part, result = self._part(x), np.asarray(function(x))
        if part is not None:
            self.known[part, function] = result.tobytes()
        return result

    def memory(self, x: np.ndarray, function: Function = np.asarray) -> Memory:
        """Add the result of a function of an array to the table, and return its memory."""
        part, result = self._part(x), function(x)
        self.slots.append(result if part is None else (part, function))
        return Memory(len(self.slots), result.nbytes, result.itemsize, is_constant=True)

    @property
    def nbytes(self) -> int:
        """Bytes of arrays that are kept from the program for which the code was generated."""
        arrays = (x.nbytes for x in self.slots if isinstance(x, np.ndarray))
        return sum(arrays) + sum(map(len, self.known.values()))

    def bound(self, blocks: Sequence[Block]) -> list[np.ndarray] | None:
        """Return the arrays of the table for the blocks of a program, followed by the copies; None
        if the program differs in elements that the code depends on.
        """
        blocks, references = [*blocks], list[np.ndarray]()
        for part in self.copies:
            references.append(np.array(blocks[part.block].array(part), order="C"))
            blocks.append(Block(*bounds(references[-1])))
        for (part, function), values in self.known.items():
            if function(blocks[part.block].array(part)).tobytes() != values:
                return None
        arrays = []
        for slot in self.slots:
            if isinstance(slot, np.ndarray):
                arrays.append(slot)
            else:
                part, function = slot
                arrays.append(function(blocks[part.block].array(part)))
        return [*arrays, *references]
