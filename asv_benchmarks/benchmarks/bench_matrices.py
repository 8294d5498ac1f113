"""Functions of matrices: value and gradient compared with those by hand and with those of scalar
variables, tape entries and memory.
"""

from __future__ import annotations

from typing import Any

from peers import MissingError, gradient_function, namespace
from timing import arena_bytes, entries
from workloads import factorisations, matrices  # noqa: F401 - they register the workloads
from workloads.workload import FAMILIES

import varmat as vm

from .common import ready

BY_NAME = {workload.name: workload for workload in FAMILIES["matrices"]}
SIZES = (2, 64, 256)
MEMORY_SIZE = 256
DERIVED = tuple(name for name, workload in BY_NAME.items() if workload.by_hand)
NOT_DERIVED = tuple(name for name in BY_NAME if name not in DERIVED)
GRADIENTS = tuple(
    name
    for name, workload in BY_NAME.items()
    if not isinstance(workload, matrices.JacobianWorkload)
)


class _Gradient:
    """Value and gradient by varmat, after a first call that warms up. A workload that this revision
    cannot compute is skipped.
    """

    param_names = ("function", "size")

    def setup(self, name: str, size: int) -> None:
        self.workload = BY_NAME[name]
        self.args = self.workload.point(size)
        self.gradient = ready("varmat", self.workload, size, self.args)


class Matrices(_Gradient):
    """Gradients compared with the derivatives by hand."""

    params = (DERIVED, SIZES)

    def time_by_hand(self, name: str, size: int) -> None:
        self.workload.by_hand(*self.args)  # type: ignore[misc]

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)


class MatricesNotDerived(_Gradient):
    """Gradients compared with the value alone."""

    params = (NOT_DERIVED, SIZES)

    def setup(self, name: str, size: int) -> None:
        super().setup(name, size)
        self.plain = ready("plain", self.workload, size, self.args)

    def time_plain(self, name: str, size: int) -> None:
        self.plain(*self.args)

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)


class RecordedMatrices(_Gradient):
    """Gradients run from a recording, compared with gradients recorded each time."""

    params = (GRADIENTS, SIZES[:2])

    def setup(self, name: str, size: int) -> None:
        super().setup(name, size)
        try:
            self.replayed = ready("recorded", self.workload, size, self.args)
        # The operation cannot be recorded as a program.
        except vm.TapeError as refused:
            raise MissingError(str(refused)) from None

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)

    def time_recorded(self, name: str, size: int) -> None:
        self.replayed(*self.args)


class AgainstScalars(_Gradient):
    """Matrix variables compared with arrays of scalar variables."""

    params = (tuple(name for name, workload in BY_NAME.items() if workload.matvar), (2, 64))
    timeout = 300

    def setup(self, name: str, size: int) -> None:
        super().setup(name, size)
        self.of_scalars = gradient_function("matvar", self.workload, size)

    def time_matvar(self, name: str, size: int) -> None:
        self.of_scalars(*self.args)

    def time_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)


class MatrixMemory(_Gradient):
    """Figures that do not depend on the machine, and the peak memory."""

    params = (DERIVED,)
    param_names = ("function",)

    def setup(self, name: str) -> None:
        super().setup(name, MEMORY_SIZE)

    def _of_variables(self, *variables: Any) -> Any:
        expression = self.workload.expression(namespace("varmat"), MEMORY_SIZE)
        return expression(*variables, *self.args[self.workload.variables :])

    def track_tape_entries(self, name: str) -> int:
        return entries(self._of_variables, *self.args[: self.workload.variables])

    def track_arena_bytes(self, name: str) -> int:
        return arena_bytes(self.gradient, *self.args)

    track_tape_entries.unit = "entries"  # type: ignore[attr-defined]
    track_arena_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def peakmem_varmat(self, name: str) -> None:
        self.gradient(*self.args)

    def peakmem_by_hand(self, name: str) -> None:
        self.workload.by_hand(*self.args)  # type: ignore[misc]
