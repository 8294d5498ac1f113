"""Functions of matrices: value and gradient beside those written by hand and those of scalar variables, tape entries and memory."""

from __future__ import annotations

from typing import Any

import matrices_by_hand as rows
import models
import numpy as np

import varmat as vm

BY_NAME = {row.name: row for row in rows.MATRICES + rows.VECTORS}


class _Gradient:
    """Value and gradient of the rows of one table."""

    param_names = ("function", "size")

    def setup(self, name: str, size: int) -> None:
        row = BY_NAME[name]
        self.row, self.args = row, row.point(size)
        self.gradient: Any = row.gradient
        self.gradient(*self.args)

    def time_by_hand(self, name: str, size: int) -> None:
        self.row.by_hand(*self.args)

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)


class Matrices(_Gradient):
    """Of K x K."""

    params = (tuple(row.name for row in rows.MATRICES), rows.SIZES)


class Vectors(_Gradient):
    """Of length N."""

    params = (tuple(row.name for row in rows.VECTORS), rows.LENGTHS)


class Memory:
    """What does not depend on the machine, and the largest memory, at 256 x 256."""

    params = tuple(row.name for row in rows.MATRICES)
    param_names = ("function",)

    def setup(self, name: str) -> None:
        self.row = BY_NAME[name]
        self.args = self.row.point(256)

    def _of_variables(self, *variables: Any) -> Any:
        return self.row.function(*variables, *self.args[self.row.variables :])

    def track_tape_entries(self, name: str) -> int:
        return models.entries(self._of_variables, *self.args[: self.row.variables])

    track_tape_entries.unit = "entries"  # type: ignore[attr-defined]

    def track_arena_bytes(self, name: str) -> int:
        with vm.nested() as tape:
            before = tape.arena.bytes_taken
        self.row.gradient(*self.args)
        return int(tape.arena.bytes_taken - before)

    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def peakmem_varmat(self, name: str) -> None:
        self.row.gradient(*self.args)

    def peakmem_by_hand(self, name: str) -> None:
        self.row.by_hand(*self.args)


class AgainstScalars:
    """Recording and reverse pass of the sum of ``exp(A) * B`` with matrix variables and with arrays of scalar variables."""

    params = (("var", "matvar"), (2, 8, 32, 64))
    param_names = ("kind", "size")

    def setup(self, kind: str, size: int) -> None:
        self.make: Any = getattr(vm, kind)
        self.a, self.b = rows.matrices(2)(size)

    def _sweep(self, product: bool) -> None:
        with vm.nested():
            a, b = self.make(self.a), self.make(self.b)
            np.sum(a @ b if product else np.exp(a) * b).grad()

    def time_elementwise(self, kind: str, size: int) -> None:
        self._sweep(product=False)

    def time_product(self, kind: str, size: int) -> None:
        self._sweep(product=True)
