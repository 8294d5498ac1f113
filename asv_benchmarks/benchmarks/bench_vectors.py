"""Functions of vectors, densities and generalised linear models, compared with the value alone and
with derivatives by hand.
"""

from __future__ import annotations

from workloads import densities, vectors  # noqa: F401 - they make the families
from workloads.workload import FAMILIES

from .common import _Counts, _Times

_BY_NAME = {
    workload.name: workload for family in ("vectors", "densities") for workload in FAMILIES[family]
}
_VECTORS = tuple(workload.name for workload in FAMILIES["vectors"])
_DENSITIES = tuple(
    workload.name for workload in FAMILIES["densities"] if "glm" not in workload.name
)
_GLMS = tuple(workload.name for workload in FAMILIES["densities"] if "glm" in workload.name)
_SIZES = (2, 1024, 10_000, 1_000_000)


class Vectors(_Times):
    """Functions of N elements."""

    params = (_VECTORS, _SIZES)
    param_names = ("function", "size")

    def setup(self, name: str, size: int) -> None:
        self.prepare(_BY_NAME[name], size)


class Densities(Vectors):
    """Densities of N observations."""

    params = (_DENSITIES, _SIZES)


class Glms(Vectors):
    """Generalised linear models, also compared with one product with the matrix."""

    params = (_GLMS, densities.GLM_SIZES)

    def time_product_alone(self, name: str, size: int) -> None:
        self.data[-1] @ self.variables[1]


class VectorCounts(_Counts):
    """Counts at a size small enough for the heap, and at one large enough for the arena."""

    params = (_VECTORS + _DENSITIES, (1024, 100_000))
    param_names = ("function", "size")

    def setup(self, name: str, size: int) -> None:
        self.prepare(_BY_NAME[name], size)


class GlmCounts(VectorCounts):
    """Figures that do not depend on the machine."""

    params = (_GLMS, densities.GLM_SIZES)


class VectorMemory(VectorCounts):
    """The peak memory at 10^6 elements."""

    params = (_VECTORS + _DENSITIES, (1_000_000,))

    def peakmem_by_hand(self, name: str, size: int) -> None:
        self.by_hand(*self.args)

    def peakmem_varmat(self, name: str, size: int) -> None:
        self.gradient(*self.args)
