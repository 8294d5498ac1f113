"""Access to single elements of an array variable, and the memory that arrays keep."""

from __future__ import annotations

import tracemalloc

from timing import arena_bytes
from workloads import access
from workloads.vectors import vector

import varmat as vm

from .common import _Counts, _Rows, _Times, rows_of


class Access(_Rows, _Times):
    """The times of the rows of the table."""

    rows = rows_of("access")
    params = tuple(rows)


class AccessCounts(_Rows, _Counts):
    """The counts of the rows of the table."""

    rows = Access.rows
    params = Access.params


class AgainstScalars:
    """The time with an array variable, as a multiple of the time with an array of scalar variables.
    The two take turns.
    """

    params = tuple(access.ELEMENTS)
    param_names = ("elements",)

    def track_ratio(self, name: str) -> float:
        ours, scalars = access.against_scalars(access.ELEMENTS[name])
        return ours / scalars

    track_ratio.unit = "times"  # type: ignore[attr-defined]


class ArenaBytes:
    """The bytes that one gradient takes from the arena."""

    params = tuple(access.WRITTEN)
    param_names = ("function",)

    def setup(self, name: str) -> None:
        _, function = access.WRITTEN[name]
        self.gradient = vm.value_and_grad(function)
        (self.x,) = vector(access.LARGE)
        try:
            self.gradient(self.x)
        except AttributeError as missing:
            raise NotImplementedError(str(missing)) from None

    def track_arena_bytes(self, name: str) -> int:
        return arena_bytes(self.gradient, self.x)

    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]


class Kept:
    """The memory that is held after an operation, besides its result. The operations need no values
    for their derivatives.
    """

    params = tuple(access.LINEAR)
    param_names = ("operation",)

    def track_arrays_kept(self, name: str) -> float:
        tracemalloc.start()
        try:
            return round(access.kept_beyond_result(access.LINEAR[name], *vector(access.LARGE)), 2)
        finally:
            tracemalloc.stop()

    track_arrays_kept.unit = "arrays"  # type: ignore[attr-defined]
