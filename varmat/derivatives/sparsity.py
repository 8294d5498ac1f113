"""Sparsity patterns: the elements of the first argument on which elements of results depend, and
the columns of such a pattern that can share a direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from varmat.programs.ir.program import BOOL, Program, Step, Value, element_places
from varmat.programs.kernels.elementwise import SELECT
from varmat.programs.kernels.loop import Loop
from varmat.programs.kernels.matrices import Matmul
from varmat.programs.kernels.places import Assemble, Copy, Gather
from varmat.programs.kernels.reductions import Accumulate, Reduce, Sum
from varmat.programs.kernels.sparse import SparseProduct
from varmat.typing import Shape


class Pattern(Protocol):
    """A boolean matrix, a sparse array of SciPy: a row for each element of a value, a column for
    each element of the argument.
    """

    shape: tuple[int, int]
    indices: np.ndarray
    indptr: np.ndarray
    data: np.ndarray

    @property
    def T(self) -> Pattern: ...
    def __getitem__(self, rows: np.ndarray, /) -> Pattern: ...
    def __add__(self, other: Pattern, /) -> Pattern: ...
    def astype(self, dtype: type, /) -> Pattern: ...
    def sort_indices(self) -> None: ...
    def tocsc(self) -> Pattern: ...
    def tocoo(self) -> Any: ...


# Products and loops with more terms or steps than this count as dense.
_MOST_TERMS, _MOST_STEPS = 10_000_000, 20_000


def sparsity_pattern(program: Program, result: Value) -> Pattern:
    """Find the pattern of a result, as a sparse array of SciPy with sorted indices.

    It holds for all points at which the program does: an element that is missing is zero at all of
    them. An element that is present may be zero."""
    from scipy.sparse import eye_array

    n = program.arguments[0].size
    patterns = _Patterns(n)
    patterns.known[program.arguments[0]] = eye_array(n, dtype=bool, format="csr")
    patterns.follow(program.steps)
    pattern = patterns.of(result)
    pattern.sort_indices()
    return pattern


def colours_of(pattern: Pattern) -> np.ndarray:
    """Number the columns, such that columns with the same number have no row in common: each gets
    the first free number, in order of decreasing length.
    """
    columns = pattern.tocsc()
    taken: list[int] = [0] * pattern.shape[0]  # the numbers in each row, as bits
    colours = np.zeros(pattern.shape[1], np.intp)
    for j in np.argsort(-np.diff(columns.indptr), kind="stable"):
        rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]].tolist()
        used = 0
        for i in rows:
            used |= taken[i]
        free = ~used & (used + 1)  # the lowest bit that is not set
        colours[j] = free.bit_length() - 1
        for i in rows:
            taken[i] |= free
    return colours


class _Patterns:
    """The patterns of the values of a program, by the value whose memory they lie in."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.known: dict[Value, Pattern] = {}

    def follow(self, steps: Sequence[Step]) -> None:
        """Derive the patterns of the results of steps from the patterns of their operands."""
        for step in steps:
            if any(v.base in self.known for v in step.operands):
                patterns = self._patterns(step)
                self.known.update(
                    (v, p) for v, p in zip(step.results, patterns, strict=True) if p is not None
                )

    def of(self, x: Value) -> Pattern:
        """Return the pattern of a value."""
        full = self.known.get(x.base)
        if full is None or x.dtype == BOOL:
            return self._empty(x.size)
        if not x.is_view:
            return full
        return full[element_places(x.shape, x.strides, x.offset).ravel()]

    def _empty(self, size: int) -> Pattern:
        from scipy.sparse import csr_array

        pattern: Pattern = csr_array((size, self.n), dtype=bool)
        return pattern

    def _at(self, x: Value, shape: Shape) -> Pattern:
        """Return the pattern of a value that is broadcast to a shape."""
        if x.shape == shape:
            return self.of(x)
        return self.of(x)[np.broadcast_to(_numbers(x.shape), shape).ravel()]

    def _sum(self, patterns: Sequence[Pattern], size: int) -> Pattern:
        return sum(patterns, start=self._empty(size))

    def _collected(self, x: Pattern, to: np.ndarray, at: np.ndarray, size: int) -> Pattern:
        """Return the pattern of sums: element `to` of the result has element `at` of `x`."""
        from scipy.sparse import csr_array

        to, at = np.ravel(to), np.ravel(at)
        # int64, because a sum of more than 255 bytes might be zero.
        terms = csr_array((np.ones(to.size, np.int64), (to, at)), shape=(size, x.shape[0]))
        result: Pattern = (terms @ x.astype(np.int64)).astype(bool)
        return result

    def _dense(self, step: Step) -> list[Pattern]:
        """Make each element of the results depend on all elements of the operands."""
        patterns = [self.of(v) for v in step.operands]
        every = self._sum(
            [
                self._collected(p, np.zeros(p.shape[0], int), _numbers(p.shape[:1]), 1)
                for p in patterns
            ],
            1,
        )
        return [every[np.zeros(v.size, int)] for v in step.results]

    def _patterns(self, step: Step) -> list[Pattern] | list[None]:
        """Return the patterns of the results of a step; a result without derivatives has none."""
        kernel, operands = step.kernel, step.operands
        if all(v.dtype == BOOL for v in step.results):
            return [None] * len(step.results)
        if isinstance(kernel, Loop):
            return self._loop(kernel, step) or self._dense(step)
        rule: Callable[..., Pattern | None] | None = next(
            (_RULES[kind] for kind in type(kernel).__mro__ if kind in _RULES), None
        )
        if rule is None and kernel.elementwise is not None:
            rule = _Patterns._elementwise
        patterns = None if rule is None else rule(self, kernel, step.results[0], *operands)
        return self._dense(step) if patterns is None else [patterns]

    # --- rules ---

    def _elementwise(self, kernel: object, out: Value, *operands: Value) -> Pattern | None:
        if np.broadcast_shapes(*[v.shape for v in operands]) != out.shape:
            return None  # a function that also sums
        args = operands[1:] if kernel is SELECT else operands
        return self._sum([self._at(v, out.shape) for v in args], out.size)

    def _copy(self, kernel: Copy, out: Value, x: Value) -> Pattern:
        return self._at(x, out.shape)

    def _reduce(self, kernel: Reduce, out: Value, x: Value) -> Pattern:
        to = np.broadcast_to(np.expand_dims(_numbers(out.shape), kernel.axes), x.shape)
        return self._collected(self.of(x), to, _numbers(x.shape), out.size)

    def _accumulate(self, kernel: Accumulate, out: Value, x: Value) -> Pattern:
        """Make an element depend on all of its line, not only on the elements before it."""
        axis = kernel.axis
        lines = np.expand_dims(_numbers(x.shape[:axis] + x.shape[axis + 1 :]), axis)
        lines = np.broadcast_to(lines, x.shape)
        full = self._collected(self.of(x), lines, _numbers(x.shape), int(lines.max(initial=0)) + 1)
        return full[lines.ravel()]

    def _gather(self, kernel: Gather, out: Value, x: Value, index: Value) -> Pattern | None:
        return self.of(x)[np.ravel(index.data)] if index.is_constant else None

    def _assemble(self, kernel: Assemble, out: Value, *operands: Value) -> Pattern | None:
        base, parts = kernel.parts(operands)
        result = self._empty(out.size) if base is None else self.of(base)
        for place, shape, part, index in parts:
            assert part is not None
            if index is not None and not index.is_constant:
                return None
            to = np.ravel(
                element_places(shape, place[1], place[0]) if index is None else index.data
            )
            if kernel.replaces and index is None:
                remains = np.setdiff1d(np.arange(out.size), to)
                result = self._collected(
                    result[remains], remains, _numbers(remains.shape), out.size
                )
            result = result + self._collected(
                self._at(part, shape), to, _numbers(to.shape), out.size
            )
        return result

    def _matmul(self, kernel: Matmul, out: Value, a: Value, b: Value) -> Pattern | None:
        """Collect the terms of all sums, without those in which a constant factor is zero."""
        rows, columns = a.shape[-2:-1] or (1,), b.shape[-1:] if len(b.shape) > 1 else (1,)
        inner, leading = a.shape[-1], np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        shape = (*leading, *rows, inner, *columns)
        if math.prod(shape) > _MOST_TERMS:
            return None
        left = _numbers(a.shape).reshape((*a.shape[:-2], *rows, inner, 1))
        right = _numbers(b.shape).reshape((*b.shape[:-2], 1, inner, *columns))
        to = _numbers(out.shape).reshape((*leading, *rows, 1, *columns))
        to, left, right = (np.broadcast_to(x, shape).ravel() for x in (to, left, right))
        for factor, indices in ((a, left), (b, right)):
            if factor.is_constant:
                holds = np.ravel(factor.data)[indices] != 0.0
                to, left, right = to[holds], left[holds], right[holds]
        return self._collected(self.of(a), to, left, out.size) + self._collected(
            self.of(b), to, right, out.size
        )

    def _sparse(
        self,
        kernel: SparseProduct,
        out: Value,
        data: Value,
        indices: Value,
        indptr: Value,
        b: Value,
    ) -> Pattern | None:
        if not (indices.is_constant and indptr.is_constant):
            return None
        counts, width = np.diff(indptr.data), math.prod(b.shape[1:])
        rows, columns = np.repeat(np.arange(len(counts)), counts), np.asarray(indices.data)
        if kernel.transposed:
            rows, columns = columns, rows
        line = np.arange(width)
        to, at = (np.add.outer(x * width, line) for x in (rows, columns))
        terms = np.broadcast_to(np.arange(len(columns))[:, None], to.shape)
        return self._collected(self.of(b), to, at, out.size) + self._collected(
            self.of(data), to, terms, out.size
        )

    def _loop(self, kernel: Loop, step: Step) -> list[Pattern] | None:
        """Return the patterns after all iterations, taken in sequence."""
        if kernel.ends or kernel.trips * len(kernel.body.steps) > _MOST_STEPS:
            return None
        n, m = kernel.carried, kernel.carried + kernel.sliced
        args = [*map(self.of, step.operands)]
        carried, shared = args[:n], args[m:]
        stacked: list[list[Pattern]] = [[] for _ in range(kernel.stacked)]
        summed = [self._empty(v.size) for v in step.results[n + kernel.stacked :]]
        for t in range(kernel.trips)[:: -1 if kernel.backwards else 1]:
            rows = [
                p[_numbers(v.shape)[t].ravel()]
                for p, v in zip(args[n:m], step.operands[n:m], strict=True)
            ]
            inner, arguments = _Patterns(self.n), kernel.body.arguments
            inner.known.update(zip(arguments, [*carried, *rows, *shared], strict=True))
            inner.follow(kernel.body.steps)
            patterns = [*map(inner.of, kernel.outputs)]
            carried = patterns[:n]
            for result, p in zip(stacked, patterns[n:], strict=False):
                result.append(p)
            summed = [x + p for x, p in zip(summed, patterns[n + kernel.stacked :], strict=True)]
        ordered = [output[:: -1 if kernel.backwards else 1] for output in stacked]
        return [*carried, *(self._stacked(output) for output in ordered), *summed]

    def _stacked(self, patterns: Sequence[Pattern]) -> Pattern:
        from scipy.sparse import vstack

        return vstack(patterns, format="csr") if patterns else self._empty(0)


def _numbers(shape: Shape) -> np.ndarray:
    """Number the elements of an array."""
    return np.arange(math.prod(shape)).reshape(shape)


_RULES: dict[type, Callable[..., Pattern | None]] = {
    Accumulate: _Patterns._accumulate,
    Assemble: _Patterns._assemble,
    Copy: _Patterns._copy,
    Gather: _Patterns._gather,
    Matmul: _Patterns._matmul,
    Reduce: _Patterns._reduce,
    SparseProduct: _Patterns._sparse,
    Sum: _Patterns._elementwise,
}
