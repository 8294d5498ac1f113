"""The arena: warm memory for the large arrays of a tape.

A bump allocator over blocks of float64. A block is a pair of equally long buffers: the values and
the adjoints of a variable lie at the same offset in them. Blocks grow geometrically. After
`Arena.release` they are used again, unless something still refers to them: a NumPy view keeps
the buffer it looks into alive, so the reference count of the buffer tells.

Small arrays do not come here (see `LARGE`): NumPy's own cache serves them faster than a bump
pointer written in Python can, and a small array that is kept would hold back a whole block.
"""

from __future__ import annotations

import math
import sys

import numpy as np

# Elements up to which arrays stay out of the arena, 256 KB: the rules for large arrays cost 5 us
# more. Measured on chains of products: with a bound of 8192, 10^4 elements take 2.5 times as long;
# higher bounds make no difference at 10^5.
LARGE = 32768
# Elements of the first block.
FIRST_BLOCK = 1 << 17
# Elements per cache line of 64 bytes: what offsets are rounded to.
LINE = 8

Mark = tuple[int, int]

# glibc returns free memory at the top of its heap to the system from 128 KB on, and the next
# recording gets it back as cold pages. Freeing a block of 32 MB, the largest size that glibc learns
# from, raises that bound to 64 MB. Nothing is written into the block.
np.empty((1 << 22) - (1 << 13))


def _aligned(capacity: int) -> np.ndarray:
    """Make a buffer of `capacity` float64 whose address is a multiple of 64."""
    raw = np.empty(capacity + LINE)
    start = -(raw.ctypes.data // 8) % LINE
    return raw[start : start + capacity]


class Block:
    """Two parallel buffers, for values and for adjoints."""

    __slots__ = ("_alone", "adjoints", "capacity", "values")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.values = _aligned(capacity)
        self.adjoints = _aligned(capacity)
        self._alone = self._references()

    def _references(self) -> int:
        # Every view refers to the owner of the memory, which is the base of our slices.
        return sys.getrefcount(self.values.base) + sys.getrefcount(self.adjoints.base)

    def is_free(self) -> bool:
        """Return whether no array outside this block looks into its memory."""
        return self._references() == self._alone


class Arena:
    """A stack of blocks with nested marks.

    Attributes
    ----------
    bytes_taken : int
        Bytes handed out since the arena was made (values and adjoints), for benchmarks.
    """

    __slots__ = ("_free", "_offset", "_used", "bytes_taken")

    def __init__(self) -> None:
        self._used: list[Block] = []
        self._free: list[Block] = []
        self._offset = 0
        self.bytes_taken = 0

    def take(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return uninitialised arrays of `shape` for values and for adjoints."""
        size = math.prod(shape)
        step = -(-size // LINE) * LINE
        if not self._used or self._offset + step > self._used[-1].capacity:
            self._open_block(step)
        block, start = self._used[-1], self._offset
        self._offset = start + step
        self.bytes_taken += 16 * step
        here = slice(start, start + size)
        return block.values[here].reshape(shape), block.adjoints[here].reshape(shape)

    def mark(self) -> Mark:
        """Return the present state, for `release`. Arrays taken later come from other blocks."""
        mark = (len(self._used), self._offset)
        if self._used:
            self._offset = self._used[-1].capacity
        return mark

    def release(self, mark: Mark) -> None:
        """Take back everything taken since `mark`, except blocks that arrays still look into."""
        count, self._offset = mark
        if len(self._used) == count:
            return
        blocks, self._used[count:] = self._used[count:], []
        while blocks:
            block = blocks.pop()
            if block.is_free():
                self._free.append(block)

    def _open_block(self, size: int) -> None:
        # The smallest that is large enough: earlier recordings wrote to its pages.
        fitting = min(
            (block for block in self._free if block.capacity >= size),
            key=lambda block: block.capacity,
            default=None,
        )
        if fitting is not None:
            self._free.remove(fitting)
            self._used.append(fitting)
        else:
            # Free blocks are too small for this request and are dropped. Blocks grow geometrically,
            # so these would not be needed again.
            largest = max((block.capacity for block in self._used + self._free), default=0)
            self._free.clear()
            self._used.append(Block(max(FIRST_BLOCK, 2 * largest, size)))
        self._offset = 0
