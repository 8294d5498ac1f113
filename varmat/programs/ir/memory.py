"""The memory of the values of a program: results share memory as soon as nothing reads the values
in it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from varmat.programs.ir.program import OBJECT, Program, Step, Value
from varmat.typing import Shape

# Arrays begin at multiples of this many bytes; numbers may lie anywhere.
LINE = 64


class Plan:
    """The position of each value with separate memory, by the id of the value.

    Parameters
    ----------
    program : Program
    numbers : bool
        Whether outputs that are numbers have memory, too.

    Attributes
    ----------
    scratch : dict
        Bytes from the beginning of the scratch memory.
    scratch_bytes : int
    outputs : dict
        The number of the output that the value is, for results that are made where they are
        returned.
    objects : dict
        The number of each value for Python steps only.
    """

    def __init__(self, program: Program, numbers: bool = False) -> None:
        self.scratch: dict[int, int] = {}
        self.scratch_bytes = 0
        self.objects: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        for number, value in enumerate(program.outputs):
            if (
                value.step is not None
                and number
                and value.is_contiguous
                and (value.shape or numbers)
            ):
                self.outputs.setdefault(id(value), number)
        self._free: dict[int, list[int]] = {}
        last = {id(v.base): i for i, step in enumerate(program.steps) for v in step.operands}
        last.update((id(v.base), len(program.steps)) for v in program.outputs)
        for i, step in enumerate(program.steps):
            dying = {
                id(v.base): v.base
                for v in step.operands
                if last[id(v.base)] == i and id(v.base) in self.scratch
            }
            for result in step.results:
                self._place(result, step, dying)
            for base in dying.values():
                self._release(base)
            for result in step.results:
                if id(result) not in last and id(result) in self.scratch:
                    self._release(result)

    def _place(self, result: Value, step: Step, dying: dict[int, Value]) -> None:
        if result.dtype is OBJECT:
            self.objects[id(result)] = len(self.objects)
        elif id(result) not in self.outputs:
            like = (
                v for v in overwritable(step) if v.dtype == result.dtype and v.shape == result.shape
            )
            heir = next((v for v in like if id(v) in dying), None)
            if heir is not None:
                self.scratch[id(result)] = self.scratch[id(heir)]
                del dying[id(heir)]
            else:
                self.scratch[id(result)] = self._take(_bytes(result))

    def _take(self, size: int) -> int:
        values = self._free.get(size)
        if values:
            return values.pop()
        if size >= LINE:
            self.scratch_bytes = -(-self.scratch_bytes // LINE) * LINE
        offset = self.scratch_bytes
        self.scratch_bytes += size
        return offset

    def _release(self, base: Value) -> None:
        self._free.setdefault(_bytes(base), []).append(self.scratch[id(base)])


def array_at(address: int, shape: Shape, dtype: np.dtype, strides: Shape) -> np.ndarray:
    """Return an array whose first element is at an address; the caller keeps the memory alive."""
    # Not made with ctypes, where each length is a type, which only the garbage collector frees.
    layout = {"shape": shape, "typestr": dtype.str, "strides": strides, "data": (address, False)}
    return np.asarray(SimpleNamespace(__array_interface__=layout | {"version": 3}))


def _bytes(value: Value) -> int:
    """Return the size of a value, a multiple of a double."""
    return max(-(-value.size * int(value.dtype.itemsize) // 8) * 8, 8)


def overwritable(step: Step) -> list[Value]:
    """Return the operands over which the first result may be written."""
    operands = step.operands
    chosen = operands[step.kernel.overwritable]
    # An operand that is read twice, in two layouts or in sequence, would be overwritten before it
    # is read.
    at_once = len(chosen) == len(operands)
    readers = [sum(v is operand.base for operand in operands) for v in chosen]
    same = [sum(v is operand for operand in operands) if at_once else 1 for v in chosen]
    return [v for v, n, m in zip(chosen, readers, same, strict=True) if not v.is_view and n == m]
