"""Whole models: value and gradient compared with derivatives by hand and with the value alone, tape
entries and memory.
"""

from __future__ import annotations

from peers import gradient_function
from timing import peak_bytes
from workloads import equations, loops, models  # noqa: F401 - make the families

from .common import _Counts, _Rows, _Times, ready, rows_of

ROWS = rows_of("models")
ADDITIONS = tuple(
    row for row in ROWS if row.startswith("hundred_additions") and row.endswith("1000")
)


class Models(_Rows, _Times, _Counts):
    """The rows of the table."""

    rows = ROWS
    params = tuple(ROWS)
    param_names = ("model",)


class Additions:
    """The memory of a hundred additions to a matrix, without a first call that warms up."""

    params = ADDITIONS
    param_names = ("additions",)
    timeout = 120

    def setup(self, row: str) -> None:
        workload, size = ROWS[row]
        self.args = workload.point(size)
        self.by_hand = gradient_function("by hand", workload, size)
        self.gradient = gradient_function("varmat", workload, size)

    def peakmem_by_hand(self, row: str) -> None:
        self.by_hand(*self.args)

    def peakmem_varmat(self, row: str) -> None:
        self.gradient(*self.args)

    def track_peak_by_hand(self, row: str) -> float:
        return peak_bytes(lambda: self.by_hand(*self.args)) / self.args[0].nbytes

    def track_peak(self, row: str) -> float:
        return peak_bytes(lambda: self.gradient(*self.args)) / self.args[0].nbytes

    track_peak.unit = track_peak_by_hand.unit = "matrices"  # type: ignore[attr-defined]


LOOPS = rows_of("loops")


class Loops:
    """Models written as loops over observations: an eager gradient, a gradient from a recording,
    and the recording itself.
    """

    params = tuple(LOOPS)
    param_names = ("model",)
    timeout = 120

    def setup(self, row: str) -> None:
        self.workload, self.size = LOOPS[row]
        self.args = self.workload.point(self.size)
        self.gradient, self.recorded = (
            ready(way, self.workload, self.size, self.args) for way in ("varmat", "recorded")
        )

    def time_varmat(self, row: str) -> None:
        self.gradient(*self.args)

    def time_recorded(self, row: str) -> None:
        self.recorded(*self.args)

    def time_record(self, row: str) -> None:
        gradient_function("recorded", self.workload, self.size)(*self.args)


EQUATIONS = rows_of("equations")


class Equations:
    """Differential equations: the solution alone, an eager gradient, and a gradient from a
    recording.
    """

    params = tuple(EQUATIONS)
    param_names = ("equation",)
    timeout = 120

    def setup(self, row: str) -> None:
        workload, size = EQUATIONS[row]
        self.args = workload.point(size)
        ways = ("plain", "varmat", "recorded")
        self.plain, self.gradient, self.recorded = (
            ready(way, workload, size, self.args) for way in ways
        )

    def time_plain(self, row: str) -> None:
        self.plain(*self.args)

    def time_varmat(self, row: str) -> None:
        self.gradient(*self.args)

    def time_recorded(self, row: str) -> None:
        self.recorded(*self.args)
