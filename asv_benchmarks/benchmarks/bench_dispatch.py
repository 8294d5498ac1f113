"""Many small operations, compared with the value alone and with derivatives by hand; and counts of
tape entries.
"""

from __future__ import annotations

import numpy as np
from timing import entries
from workloads import dispatch

import varmat as vm

from .common import _Counts, _Rows, _Times, rows_of


class Dispatch(_Rows, _Times):
    """The times of the rows of the table."""

    rows = rows_of("dispatch")
    params = tuple(rows)


class DispatchCounts(_Rows, _Counts):
    """The counts of the rows of the table."""

    rows = Dispatch.rows
    params = Dispatch.params


class Multiply:
    """A chain of 1000 multiplications of arrays of length 8."""

    def setup(self) -> None:
        self.a, self.b = np.linspace(1, 2, 8), np.linspace(0.999, 1.001, 8)

    def time_numpy(self) -> None:
        for _ in range(dispatch.COUNT):
            np.multiply(self.a, self.b)

    def time_forward(self) -> None:
        dispatch.multiply_chain(reverse=False)

    def time_forward_and_reverse(self) -> None:
        dispatch.multiply_chain(reverse=True)


class LongTapes:
    """Chains of operations on scalars."""

    params = dispatch.LENGTHS
    param_names = ("entries",)
    timeout = 300

    def setup(self, entries: int) -> None:
        self.gradient = vm.value_and_grad(lambda x: dispatch.scalar_chain(x, entries))

    def time_plain(self, entries: int) -> None:
        dispatch.scalar_chain(1.5, entries)

    def time_varmat(self, entries: int) -> None:
        self.gradient(1.5)

    def peakmem_plain(self, entries: int) -> None:
        dispatch.scalar_chain(1.5, entries)

    def peakmem_varmat(self, entries: int) -> None:
        self.gradient(1.5)


class Views:
    """Views, which record nothing."""

    params = tuple(dispatch.VIEWS)
    param_names = ("view",)

    def track_tape_entries(self, view: str) -> int:
        return entries(dispatch.VIEWS[view], np.ones((4, 6)))

    track_tape_entries.unit = "entries"  # type: ignore[attr-defined]
