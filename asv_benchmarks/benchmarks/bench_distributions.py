"""Cumulative functions and further densities and masses, compared with the value alone and with
derivatives by hand.
"""

from __future__ import annotations

from workloads import cumulative, distributions  # noqa: F401 - they make the families
from workloads.workload import FAMILIES

from .common import _Times

_BY_NAME = {
    workload.name: workload
    for family in ("cumulative", "distributions")
    for workload in FAMILIES[family]
}


class Probabilities(_Times):
    """Log probabilities up to or above N observations."""

    params = (tuple(workload.name for workload in FAMILIES["cumulative"]), cumulative.SIZES)
    param_names = ("function", "size")

    def setup(self, name: str, size: int) -> None:
        self.prepare(_BY_NAME[name], size)


class Distributions(Probabilities):
    """Log densities and masses of N observations."""

    params = (tuple(workload.name for workload in FAMILIES["distributions"]), cumulative.SIZES)
