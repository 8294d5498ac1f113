"""Densities: value and gradient beside those written by hand."""

from __future__ import annotations

from typing import Any

import densities_by_hand as rows

BY_NAME = {row.name: row for row in rows.DENSITIES + rows.GLMS}


class _Gradient:
    param_names = ("density", "size")

    def setup(self, name: str, size: Any) -> None:
        self.row = BY_NAME[name]
        self.data, self.point = self.row.data(size)
        self.gradient = self.row.gradient(self.data, len(self.point))
        self.gradient(*self.point)

    def time_by_hand(self, name: str, size: Any) -> None:
        self.row.by_hand(*self.data, *self.point)

    def time_varmat(self, name: str, size: Any) -> None:
        self.gradient(*self.point)


class Densities(_Gradient):
    """Of one variable."""

    params = (tuple(row.name for row in rows.DENSITIES), rows.LENGTHS)


class Glms(_Gradient):
    """Generalised linear models."""

    params = (tuple(row.name for row in rows.GLMS), ("x".join(map(str, rows.GLM_SHAPE)),))

    def time_product_alone(self, name: str, size: Any) -> None:
        self.data[1] @ self.point[1]
