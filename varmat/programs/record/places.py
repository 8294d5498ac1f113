"""Parts of variables, by the indices of their elements in the flattened array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.builder import Builder, place_at
from varmat.programs.ir.program import Shape, Value
from varmat.programs.kernels.places import kept_kernel
from varmat.programs.record.tape_programs import RecordedVariable

if TYPE_CHECKING:
    from varmat.programs.ir.program import PackedPart
    from varmat.programs.record.tape_programs import TapeProgram

Contribute = Callable[[Value], object]
# For each source: the indices that its elements take in the result, and in the source.
TripLayout = Sequence[tuple[np.ndarray, np.ndarray]]


def taken(
    program: TapeProgram, node: RecordedVariable, indices: np.ndarray
) -> tuple[Value, Contribute | None]:
    """Take elements of a node; return also what adds to their adjoint, or None for data."""
    if node.value.is_constant:
        return program.builder.constant(
            np.asarray(node.value.data, float).reshape(-1)[indices]
        ), None
    place, value = place_at(indices), program.builder.gather(node.value, indices)
    return value, lambda g: node.parts.append((place, indices.shape, g))


class _Piece:
    """Elements of one node, and their indices in an array that is put together."""

    def __init__(self, program: TapeProgram, node: RecordedVariable, parts: TripLayout) -> None:
        # One axis for the parts if they are of one shape, because then they often lie regularly.
        join = np.stack if len({target.shape for target, _ in parts}) == 1 else _chained
        targets, at = (join(part) for part in zip(*parts, strict=True))
        self.node, self.targets, self.at, self.place = node, targets, at, place_at(targets)
        self.value, self._contribute = taken(program, node, at)

    def is_base(self, size: int) -> bool:
        """Return whether the whole array is the node's, but for other pieces."""
        return self.node.value.size == size and np.array_equal(self.targets, self.at)

    def contribute(self, builder: Builder, g: Value, *, is_kept: bool) -> None:
        """Contribute the part of an adjoint. Keep a copy where the next step may write over it."""
        if self._contribute is not None:
            c = builder.gather(g, self.targets)
            self._contribute(builder.call(kept_kernel(c.shape), c) if is_kept else c)


def _chained(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.reshape(-1) for array in arrays])


def _pieces(
    program: TapeProgram, size: int, sources: Sequence[object], layout: TripLayout
) -> list[_Piece]:
    """Collect the elements of sources: of one node together, and all data together."""
    data, values = np.zeros(size), []
    groups: dict[RecordedVariable, list[tuple[np.ndarray, np.ndarray]]] = {}
    for source, (target, at) in zip(sources, layout, strict=True):
        node, indices = program.place(source)
        if np.array_equal(at, np.arange(indices.size)):
            target, at = target.reshape(indices.shape), indices
        else:
            at = indices.reshape(-1)[at]
        if node.value.is_constant:
            data[target] = np.reshape(node.value.data, -1)[at]
            values.append(target)
        else:
            groups.setdefault(node, []).append((target, at))
    if values:
        node = RecordedVariable(program.builder.constant(data))
        groups[node] = [(_chained(values), _chained(values))]
    return [_Piece(program, node, parts) for node, parts in groups.items()]


class _Collected:
    """An array made of pieces.

    If one of them is the whole array before parts were replaced, it is the `base`."""

    def __init__(self, builder: Builder, shape: Shape, pieces: Sequence[_Piece]) -> None:
        self.builder, self.shape, size = builder, shape, math.prod(shape)
        self.base = next((piece for piece in pieces if piece.is_base(size)), None)
        self.pieces = [piece for piece in pieces if piece is not self.base]

    def value(self) -> Value:
        parts = [(piece.place, piece.targets.shape, piece.value) for piece in self.pieces]
        if self.base is None:
            return self._assembled(parts)
        before = self.builder.reshaped(self.base.node.value, self.shape)
        if self._is_one_part:
            return self.builder.written(before, *parts[0])
        return self.builder.where(self._replaced(), self._assembled(parts), before)

    def _assembled(self, parts: Sequence[PackedPart]) -> Value:
        is_partition = self.base is None and not any(
            isinstance(place, np.ndarray) for place, _, _ in parts
        )
        # Parts are added, and only negative zeros keep the sign of zeros that are added to them.
        zeros = None if is_partition else self.builder.constant(-0.0)
        return self.builder.assemble(self.shape, parts, zeros)

    @property
    def _is_one_part(self) -> bool:
        return len(self.pieces) == 1 and not isinstance(self.pieces[0].place, np.ndarray)

    def _replaced(self) -> Value:
        replaced = np.zeros(self.shape, bool)
        for piece in self.pieces:
            replaced.reshape(-1)[piece.targets] = True
        return self.builder.constant(replaced)

    def contribute(self, g: Value) -> None:
        builder, base = self.builder, self.base
        g = builder.full(g, self.shape)
        is_base_reached = base is not None and not base.node.value.is_constant
        for piece in self.pieces:
            piece.contribute(builder, g, is_kept=is_base_reached)
        if base is None or not is_base_reached:
            return
        zero = builder.constant(0.0)
        if self._is_one_part:
            (piece,) = self.pieces
            remainder = builder.written(g, piece.place, piece.targets.shape, zero)
        else:
            remainder = builder.where(self._replaced(), zero, g)
        base.node.contributions.append(builder.reshaped(remainder, base.node.shape))


def collected(
    program: TapeProgram, shape: Shape, sources: Sequence[object], layout: TripLayout
) -> tuple[Value, Contribute | None]:
    """Make an array of elements of others, each at one index in it."""
    pieces = _pieces(program, math.prod(shape), sources, layout)
    if len(pieces) > 1:
        result = _Collected(program.builder, shape, pieces)
        return result.value(), result.contribute
    (piece,) = pieces
    indices = np.empty(math.prod(shape), np.int64)
    indices[piece.targets] = piece.at
    return taken(program, piece.node, indices.reshape(shape))
