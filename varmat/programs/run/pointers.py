"""Programs as C functions for a sampler that calls from threads of its own, without the GIL; needs
numba.

Two functions are compiled, once for all models: a log density with its gradient, and the values at
a draw. What they run is in their user data: two blocks of words, each with the table of a program,
memory for as many runs at a time as there are threads, and the address of a Python function for
points where the program does not hold."""

from __future__ import annotations

import ctypes
import math
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.extending import intrinsic

from varmat.programs.run import addresses, compiled
from varmat.programs.run.addresses import DOUBLES, WORDS, address_of, after, doubles_at, words_at
from varmat.programs.run.compiled import (
    ABSOLUTE,
    ARGUMENT,
    HEADER,
    OUTPUT,
    SCRATCH,
    bases_on_stack,
    call_table,
    calling,
    on_disk,
)
from varmat.programs.run.native import Frame, NativeRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numba.core.base import BaseContext
    from numba.core.typing import Context, Signature

    from varmat.programs.ir.program import Array
    from varmat.programs.run.addresses import Intrinsic, Words
    from varmat.typing import Result


# The words of a block; the block of the values at a draw follows that of the density.
TABLE, LENGTH, SLOTS, COUNT, ELSEWHERE, MADE, KEPT, REFUSED, BLOCK = range(9)
# Words from one slot to the next, so that threads do not write to one line of the cache.
SLOT = 8
# What a sampler is told of a derivative that is zero.
FLAT = 1e-10

_INT64 = ir.IntType(64)


@intrinsic
def swap(context: Context, words: types.Type, old: types.Type, new: types.Type) -> Intrinsic:
    """Write a word if it is the old one, in one piece; whether it was."""

    def generate(
        _: BaseContext, builder: ir.IRBuilder, __: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        return builder.extract_value(
            builder.cmpxchg(args[0], args[1], args[2], "acq_rel", "acquire"), 1
        )

    return types.boolean(WORDS, types.int64, types.int64), generate


@intrinsic
def release(context: Context, words: types.Type) -> Intrinsic:
    """Write zero after everything else was written."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, __: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        builder.store_atomic(ir.Constant(_INT64, 0), args[0], "release", 8)
        return context.get_dummy_value()

    return types.void(WORDS), generate


@intrinsic
def call_elsewhere(
    context: Context, function: types.Type, point: types.Type, first: types.Type, second: types.Type
) -> Intrinsic:
    """Call a function of three addresses that returns a number, at an address."""
    return types.int64(*[types.int64] * 4), calling(*[_INT64] * 4)


@njit(nogil=True)
def take(slots: Words, count: int) -> Result:
    """A slot that no other thread has. There are enough for all threads, or nearly so: nobody waits
    for long.
    """
    while True:
        for k in range(count):
            slot = after(slots, k * SLOT)
            if slot[0] == 0 and swap(slot, 0, 1):
                return slot


@njit(nogil=True)
def run_block(block: Words, slot: Words, point: int, output: int) -> tuple[int, float]:
    """Run the program of a block in a slot; 0 or why it ended, and its first output."""
    bases, table = bases_on_stack(), words_at(block[TABLE])
    bases[ABSOLUTE], bases[SCRATCH], bases[ARGUMENT], bases[OUTPUT] = 0, slot[1], point, output
    status = call_table(table[3], after(table, HEADER), block[LENGTH] - HEADER, bases, table[2], 0)
    return status, math.nan if status else doubles_at(bases[table[0]] + table[1])[0]


# Numba keeps compiled functions until their own file changes: what they are made of is part of the
# key, as a variable of theirs.
def _functions(version: int) -> tuple[Result, Result]:
    def log_density(size, point, gradient, value, user):  # type: ignore[no-untyped-def]
        """0, or 1 where the point is refused."""
        block = words_at(address_of(user))
        if block[REFUSED] or version < 0:
            return 1
        slot = take(words_at(block[SLOTS]), block[COUNT])
        _, result = run_block(block, slot, address_of(point), address_of(gradient))
        release(slot)
        if not math.isfinite(result):
            return call_elsewhere(
                block[ELSEWHERE], address_of(point), address_of(gradient), address_of(value)
            )
        for i in range(size):
            if gradient[i] == 0.0:
                gradient[i] = FLAT
        value[0] = result
        return 0

    def expand(size, expanded, point, draw, user):  # type: ignore[no-untyped-def]
        """The values that the program makes, nan for those that come later, and, if it is asked
        for, the point.
        """
        block = after(words_at(address_of(user)), BLOCK)
        made = block[MADE]
        if made and version >= 0:
            slot = take(words_at(block[SLOTS]), block[COUNT])
            status, _ = run_block(block, slot, address_of(point), address_of(draw))
            release(slot)
            for i in range(made):
                if not math.isfinite(draw[i]):
                    status = 1
            if status:
                call_elsewhere(block[ELSEWHERE], address_of(point), address_of(draw), 0)
        later = expanded - size if block[KEPT] else expanded
        for i in range(made, later):
            draw[i] = math.nan
        for i in range(later, expanded):
            draw[i] = point[i - later]
        return 0

    return log_density, expand


_MADE_OF = addresses.__file__, compiled.__file__
_SIGNATURES = (
    types.int32(types.int64, DOUBLES, DOUBLES, DOUBLES, types.voidptr),
    types.int32(types.int64, types.int64, DOUBLES, DOUBLES, types.voidptr),
)
log_density, expand = (
    on_disk(partial(cfunc, signature), function)
    for signature, function in zip(
        _SIGNATURES,
        _functions(zlib.crc32(b"".join(Path(each).read_bytes() for each in _MADE_OF))),
        strict=True,
    )
)

_ELSEWHERE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def doubles(address: int, size: int) -> np.ndarray:
    """The numbers at an address."""
    memory: Array = (ctypes.c_double * size).from_address(address)
    return np.frombuffer(memory, np.float64)


class UserData:
    """What the two functions are called with.

    Parameters
    ----------
    density : NativeRunner
        Of a program of one vector, which returns a value and a gradient.
    values : NativeRunner, optional
        Of one that returns zero and the values at a draw; without it there are none.
    runs : int
        How many threads there may be.
    density_elsewhere, values_elsewhere : callable
        Python functions for points where a program does not hold: of the addresses of the point,
        the gradient and the value, which returns 0 or 1, and of those of the point and the values.
        They must not raise.
    keeps_point : bool
        Whether the point comes after the values.

    Attributes
    ----------
    words : ndarray of int64
        The user data.
    """

    def __init__(
        self,
        density: NativeRunner,
        values: NativeRunner | None,
        runs: int,
        density_elsewhere: Callable[[int, int, int], int],
        values_elsewhere: Callable[[int, int, int], int],
        keeps_point: bool,
    ) -> None:
        self.words = np.zeros(2 * BLOCK, np.int64)
        # Everything whose address is in the words.
        self._held: list[object] = []
        self._lent: list[tuple[NativeRunner, int]] = []
        self._fill(self.words[:BLOCK], density, runs, density_elsewhere)
        if values is not None:
            self._fill(self.words[BLOCK:], values, runs, values_elsewhere)
            self.words[BLOCK + MADE] = sum(v.size for v in values.program.outputs[1:])
        self.words[BLOCK + KEPT] = keeps_point

    def _fill(
        self,
        block: np.ndarray,
        runner: NativeRunner,
        runs: int,
        elsewhere: Callable[[int, int, int], int],
    ) -> None:
        raw = np.zeros(SLOT * (runs + 1), np.int64)
        slots = raw[-(raw.ctypes.data // 8) % SLOT :]
        for k in range(runs):
            frame = Frame(runner._table, runner._plan)
            slots[SLOT * k + 1] = frame.address
            runner._busy[frame.address] = frame  # where steps that call Python find it
            self._lent.append((runner, frame.address))
        callback = _ELSEWHERE(elsewhere)
        self._held += [runner, slots, callback]
        block[TABLE], block[LENGTH] = runner.table.ctypes.data, len(runner.table)
        block[SLOTS], block[COUNT] = slots.ctypes.data, runs
        block[ELSEWHERE] = ctypes.cast(callback, ctypes.c_void_p).value

    def refuse(self) -> None:
        """From here on refuse every point."""
        self.words[REFUSED] = 1

    def close(self) -> None:
        """Forget the memory of the runs, once no thread calls any more."""
        for runner, address in self._lent:
            runner._busy.pop(address, None)
            runner._raised.pop(address, None)
        self._lent.clear()
