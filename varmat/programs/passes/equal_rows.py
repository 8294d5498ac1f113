"""Rows of data that are equal are computed once, with a count.

Along an axis of data, whose elements enter only one by one and in sums, as the observations of a
regression, rows that are the same in all data give the same numbers. One of them is left, and sums
over the axis count it as often as it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from varmat.programs.ir.program import Program, Shape, Step, Value, broadcast_strides
from varmat.programs.kernels.guards import GUARD
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.places import GATHER, Assemble
from varmat.programs.kernels.reductions import SUM, Reduce
from varmat.programs.passes.affine_rows import RowsNeededError
from varmat.programs.passes.rewriter import Rewriter

# The least number of rows for each one that remains.
FOR_EACH = 2
_JOINED = (np.logical_and, np.logical_or, np.maximum, np.minimum)


def distinct_rows(data: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of one row for each set of rows that are equal in all data, to the bit, and
    the sizes of the sets. Raise `RowsNeededError` where too many differ.
    """
    # Keys are compared first: most data have no equal rows, and rows take long to sort.
    columns = [_bits(column) for x in data for column in x.T]
    factors = np.random.default_rng(0).integers(1 << 63, size=len(columns), dtype=np.uint64)
    keys = np.zeros(len(data[0]), np.uint64)
    for column, factor in zip(columns, factors, strict=True):
        keys += (column ^ (column >> np.uint64(32))) * (2 * factor + np.uint64(1))
    ordered = np.sort(keys)
    if len(keys) < FOR_EACH * (1 + np.count_nonzero(ordered[1:] != ordered[:-1])):
        raise RowsNeededError
    _, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    if any(np.any(column != column[first][inverse]) for column in columns):
        raise RowsNeededError  # rows that differ have the same key
    return first, counts


def _bits(x: np.ndarray) -> np.ndarray:
    x = np.ascontiguousarray(x)
    return x.view(np.uint64) if x.itemsize == 8 else x.astype(np.uint64)


class EqualRows(Rewriter):
    """Writes the program with the rows that differ, along axes of `n` elements."""

    def __init__(self, program: Program, n: int) -> None:
        super().__init__(program)
        self.n = n
        # Along which axis values have rows, by id, and the data that say which rows are equal.
        self._axes: dict[int, int] = {}
        self._data: dict[tuple[int, int], np.ndarray] = {}
        for step in program.steps:
            if not self._is_found(step) and any(self._axis(v) is not None for v in step.operands):
                raise RowsNeededError
        if not self._axes or any(self._axis(v) is not None for v in program.outputs):
            raise RowsNeededError
        self._first, counts = distinct_rows([x.reshape(n, -1) for x in self._data.values()])
        self.counts = counts.astype(float)

    # --- where rows are ---

    def _axis(self, v: Value) -> int | None:
        """Return the axis of the rows of a value that is not data; None if it has none."""
        base_axis = self._axes.get(id(v.base))
        if base_axis is None:
            return None
        if not v.is_view:
            return base_axis
        step = v.base.strides[base_axis]
        result = [i for i, (m, s) in enumerate(zip(v.shape, v.strides, strict=True))
                 if m == self.n and s == step]  # fmt: skip
        outer = step * self.n
        is_regular = len(result) == 1 and v.offset % outer < step and all(
            i in result or s % outer == 0 or (s > 0 and s * m <= step)
            for i, (m, s) in enumerate(zip(v.shape, v.strides, strict=True))
        )  # fmt: skip
        if not is_regular:
            raise RowsNeededError
        return result[0]

    def _add_data(self, v: Value, axis: int) -> None:
        """Take note of data with rows along an axis."""
        self._data[id(v), axis] = np.moveaxis(v.data, axis, 0)

    def _is_found(self, step: Step) -> bool:
        """Find out where the results of a step have rows; False if that is not known."""
        kernel, operands = step.kernel, step.operands
        if kernel is GUARD:
            return True
        (result,) = step.results if len(step.results) == 1 else (None,)
        if result is None:
            return False
        if kernel.elementwise is not None or kernel is SUM:
            axis = self._common_axis(operands, result.shape)
        elif kernel is GATHER:
            axis = self._of_gather(*operands)
        elif kernel is MATMUL:
            return self._of_product(operands, result)
        elif isinstance(kernel, Reduce):
            return self._of_reduction(kernel, operands[0], result)
        elif isinstance(kernel, Assemble):
            return self._of_parts(kernel, operands)
        else:
            return False
        if axis is not None:
            self._axes[id(result)] = axis
        return axis is not None

    def _common_axis(self, operands: Sequence[Value], shape: Shape) -> int | None:
        """Return the axis along which all operands that broadcast have rows, or one element."""
        ends = {a - len(v.shape) for v in operands if (a := self._axis(v)) is not None}
        data = [v for v in operands if v.is_constant and v.data.size > 1]
        if not ends:
            there = (i - len(v.shape) for v in data for i, m in enumerate(v.shape) if m == self.n)
            ends = {*list(there)[:1]}
        if len(ends) != 1:
            return None
        (end,) = ends
        inputs = []
        for v in operands:
            strides = broadcast_strides(v.shape, v.strides, shape)
            if strides[end] and self._axis(v) is None:
                if not v.is_constant:
                    return None
                inputs.append(v)
        for v in inputs:
            self._add_data(v, end + len(v.shape))
        return end + len(shape)

    def _of_gather(self, x: Value, index: Value) -> int | None:
        axes = [i for i, m in enumerate(index.shape) if m == self.n]
        if self._axis(x) is not None or not index.is_constant or not axes or x.is_constant:
            return None
        self._add_data(index, axes[0])
        return axes[0]

    def _of_product(self, operands: Sequence[Value], result: Value) -> bool:
        a, b = operands
        of_a, of_b = map(self._axis, operands)
        inner = len(a.shape) - 1, 0
        if (of_a, of_b) in (inner, (inner[0], None), (None, 0)):
            for v, axis, stats in zip(operands, inner, (of_a, of_b), strict=True):
                if stats is None:
                    if not v.is_constant:
                        return False
                    self._add_data(v, axis)
            return True
        for v, own, other, axis in ((a, of_a, b, 0), (b, of_b, a, 1)):
            is_given = own is None and v.is_constant and not other.is_constant
            has_rows = len(v.shape) == 2 and v.shape[axis] == self.n and (own == axis or is_given)
            if has_rows and self._axis(other) is None:
                if is_given:
                    self._add_data(v, axis)
                self._axes[id(result)] = axis and len(result.shape) - 1
                return True
        return False

    def _of_reduction(self, kernel: Reduce, x: Value, result: Value) -> bool:
        axis = self._axis(x)
        if axis is None:
            return False
        if axis in kernel.axes:
            return kernel.ufunc is np.add or kernel.ufunc in _JOINED
        self._axes[id(result)] = axis - sum(i < axis for i in kernel.axes)
        return True

    def _of_parts(self, kernel: Assemble, operands: Sequence[Value]) -> bool:
        """Return whether parts with rows are sums by index."""
        base, parts = kernel.parts(operands)
        if base is not None and self._axis(base) is not None:
            return False
        for _, shape, part, index in parts:
            axis = self._axis(part)
            if axis is not None:
                if index is None or shape != part.shape or index.shape != shape:
                    return False
                self._add_data(index, axis)
        return True

    # --- the new program ---

    def program(self) -> Program:
        for step in self.old.steps:
            axes = [*map(self._axis, step.operands)]
            result = step.results[0] if step.results else None
            if all(a is None for a in axes) and (result is None or id(result) not in self._axes):
                self.keep(step)
            elif isinstance(step.kernel, Assemble):
                self.replace(step.results, [self._assembled(step, step.kernel)])
            else:
                self.replace(step.results, self._written(step))
        return super().program()

    def _written(self, step: Step) -> Sequence[Value]:
        kernel, b = step.kernel, self.builder
        operands = [self._fewer(v) for v in step.operands]
        x = step.operands[0]
        if isinstance(kernel, Reduce) and kernel.ufunc is np.add and self._axis(x) in kernel.axes:
            return [b.sum(self._counted(operands[0], self._axis(x)), kernel.axes)]
        if kernel is MATMUL and id(step.results[0]) not in self._axes:
            which = 0 if operands[0].is_constant else 1
            axis = 0 if which else len(x.shape) - 1
            operands[which] = self._counted(operands[which], axis)
            return [b.matmul(*operands)]
        result = b.apply(kernel, *operands)
        for v, x in zip(step.results, result, strict=True):
            place = self._axes.get(id(v))
            shape = tuple(len(self.counts) if i == place else m for i, m in enumerate(v.shape))
            if x.shape != shape:
                raise RowsNeededError
        return result

    def _counted(self, v: Value, axis: int | None) -> Value:
        """Multiply rows by how often they occur."""
        shape = [1] * len(v.shape)
        shape[axis or 0] = len(self.counts)
        counts = self.builder.constant(self.counts.reshape(shape))
        return self.builder.ufunc(np.multiply, counts, self.builder.number(v))

    def _fewer(self, v: Value) -> Value:
        """Return what replaces an operand: the rows of data that differ."""
        b = self.builder
        axis = self._axis(v)
        if axis is None:
            result = [axis for key, axis in self._data if key == id(v)]
            if result:
                return b.constant(np.ascontiguousarray(v.data.take(self._first, result[0])))
            # One element along the rows may be repeated.
            once = [slice(1) if m == self.n and s == 0 else slice(None)
                    for m, s in zip(v.shape, v.strides, strict=True)]  # fmt: skip
            if slice(1) not in once:
                return self.value(v)
            if v.is_constant:
                return b.constant(v.data[tuple(once)])
            shape = tuple(1 if part.stop else m for part, m in zip(once, v.shape, strict=True))
            return self.value(v.view(shape, v.offset, v.strides))
        base = self.value(v.base)
        if not v.is_view:
            return base
        m, step = len(self.counts), v.base.strides[self._axes[id(v.base)]]
        outer = step * self.n

        def moved(place: int) -> int:
            return place // outer * step * m + place % outer

        shape = tuple(m if i == axis else k for i, k in enumerate(v.shape))
        strides = tuple(s if i == axis else moved(s) for i, s in enumerate(v.strides))
        return b.part(b.contiguous(base), shape, moved(v.offset), strides)

    def _assembled(self, step: Step, kernel: Assemble) -> Value:
        base, parts = kernel.parts(step.operands)
        result = []
        for place, shape, part, index in parts:
            axis, x = self._axis(part), self._fewer(part)
            if axis is not None:
                assert index is not None
                place = self._fewer(index).data
                shape, x = place.shape, self._counted(x, axis)
            elif index is not None:
                place = index.data
            result.append((place, shape, x))
        full = None if base is None else self.value(base)
        return self.builder.assemble(step.results[0].shape, result, full)
