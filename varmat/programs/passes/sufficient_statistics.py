"""Rows of data that enter by squares of affine functions, as sufficient statistics.

The residuals ``y - X @ b`` of a normal regression occur in sums of their squares and of their
products with columns of data. Such sums stay the same if the rows are multiplied by an orthogonal
matrix, as in a QR factorisation of all columns: thousands of rows become as many as there are
columns (G. H. Golub and C. F. Van Loan, Matrix Computations, 4th ed., section 5.3). The factor is
taken about the least-squares point, so that small residuals of large numbers lose no digits.

Where parameters are gathered by group, as in multilevel models, the rows of each group become as
many as there are columns. Where a step needs the rows themselves, they stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from varmat.programs.ir.program import Program, Step, Value
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.guards import GUARD
from varmat.programs.passes.affine_rows import (
    AffineFunction,
    RowAnalysis,
    RowsNeededError,
    RowTerm,
    SumOverRows,
    TermsOfRow,
    WeightedColumns,
    product_of,
)
from varmat.programs.passes.cross_products import (
    group_factors,
    inner,
    least_squares,
    residual,
    triangular_factor,
)
from varmat.programs.passes.rewriter import Rewriter

# The least number of rows for each column, and for each row that remains if rows have groups.
FOR_EACH, LEAST_IN_GROUPS = 3, 2
_FINITE = ufunc_kernel(np.isfinite)


class Settled:
    """Totals whose weights became part of the affine functions."""

    def __init__(self, totals: Sequence[SumOverRows]) -> None:
        every = [t for t in totals if t.term.affine.blocks]
        # By the id of a function: by what its rows are multiplied, which sums of squares say.
        self._roots: dict[int, np.ndarray] = {}
        for t in every:
            if t.term.is_square and t.term.weights is not None:
                self._roots.setdefault(id(t.term.affine), self._root(t.term.weights))
        self._functions: dict[tuple[int, bytes], AffineFunction] = {}
        groups: dict[int, list[np.ndarray]] = defaultdict(list)
        for t in map(self, every):
            affine = t.term.affine
            if t.column is not None:
                affine.others.append(t.column)
            if t.groups is not None:
                groups[id(affine)].append(t.groups)
        for x in self._functions.values():
            groups[id(x)] += [b.groups for b in x.blocks if b.groups is not None]
        self.statistics = {
            id(x): GroupStatistics(x, groups[id(x)]) if groups[id(x)] else Statistics(x)
            for x in self._functions.values()
        }

    def _root(self, weights: np.ndarray) -> np.ndarray:
        """Return the square root of weights that all have one sign."""
        if not (np.all(weights > 0) or np.all(weights < 0)):
            raise RowsNeededError
        root: np.ndarray = np.sqrt(np.abs(weights))
        return root

    def __call__(self, total: SumOverRows) -> SumOverRows:
        term, column, weights = total.term, total.column, total.term.weights
        if not term.affine.blocks:
            return total
        if column is None:
            root = None if weights is None else self._root(weights)
            sign = 1.0 if weights is None else float(np.sign(weights[0]))
        else:
            root, sign = self._roots.get(id(term.affine)), 1.0
            column = column if root is None else column / root
        key = id(term.affine), b"" if root is None else root.tobytes()
        if key not in self._functions:
            self._functions[key] = term.affine.times(root)
        changed = term._replace(
            affine=self._functions[key], number=sign * term.number, weights=None
        )
        return total._replace(term=changed, column=column)


# --- statistics ---


class Columns:
    """The different columns of an affine function, and of its factors.

    Attributes
    ----------
    whole : ndarray, shape (n, m)
        Columns that are multiplied by elements of values come first, the one that is not comes
        last.
    dense : int
        The number of those that come first.
    numbers : ndarray
        The numbers by which they are also multiplied.
    places : dict
        The index of each column, by its bytes.
    """

    def __init__(self, affine: AffineFunction) -> None:
        dense = [b for b in affine.blocks if b.groups is None]
        by_group = [b.columns[:, 0] for b in affine.blocks if b.groups is not None]
        empty = np.empty((len(affine.column), 0))
        blocks = np.concatenate([empty, *(b.columns for b in dense)], axis=1)
        self.dense = blocks.shape[1]
        self.numbers = np.repeat([b.number for b in dense], [b.columns.shape[1] for b in dense])
        if not self.numbers.all():
            raise RowsNeededError
        self.places = {x.tobytes(): i for i, x in reversed([*enumerate(blocks.T.copy())])}
        others: list[np.ndarray] = []
        for x in (*by_group, *affine.others):
            if x.tobytes() not in self.places:
                self.places[x.tobytes()] = self.dense + len(others)
                others.append(x)
        self.whole = np.column_stack([blocks, *others, affine.column])


class Statistics:
    """The triangular factor of the columns of an affine function, about its least-squares point.

    Parameters
    ----------
    affine : AffineFunction
        ``column + X @ w``, of any number of rows.

    Attributes
    ----------
    matrix, centre, start : ndarray
        The function becomes ``start + matrix @ (w - centre)``.
    rest : float
        The rest of the sum of its squares.
    """

    blocks: Sequence[WeightedColumns] = ()

    def __init__(self, affine: AffineFunction) -> None:
        columns = Columns(affine)
        self._k = k = columns.dense
        self._places = columns.places
        n, m = columns.whole.shape
        factor = triangular_factor(columns.whole) if n >= FOR_EACH * m else None
        if factor is None:
            raise RowsNeededError
        self._factor = factor
        centre = least_squares(factor, k, -1)
        self._start = residual(factor, centre, -1)
        self.centre = np.array(centre) / columns.numbers
        matrix = np.array([[float(x) for x in row[:k]] for row in factor[:k]])
        self.matrix = matrix * columns.numbers
        self.start = np.array([float(x) for x in self._start[:k]])
        self.rest = inner(self._start[k:], self._start[k:])

    def product(self, column: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the vector, and the number, that give the sum of products with a column."""
        coordinates = [row[self._places[column.tobytes()]] for row in self._factor]
        vector = np.array([float(x) for x in coordinates[: self._k]])
        return vector, inner(coordinates[self._k :], self._start[self._k :])


class GroupStatistics:
    """The triangular factors of the rows of each group, for functions of numbers by group.

    Parameters
    ----------
    affine : AffineFunction
    indices : list of ndarray
        Rows of a group have the same element of each.

    Attributes
    ----------
    matrix, start : ndarray
        The function becomes ``start + matrix @ w`` plus blocks by group.
    blocks : list of WeightedColumns
    """

    centre, rest = None, 0.0

    def __init__(self, affine: AffineFunction, indices: Sequence[np.ndarray]) -> None:
        columns = Columns(affine)
        pairs = np.unique(np.column_stack(indices), axis=0, return_inverse=True)[1].ravel()
        order = np.argsort(pairs, kind="stable")
        starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
        if LEAST_IN_GROUPS * len(starts) * columns.whole.shape[1] > len(order):
            raise RowsNeededError
        factors = group_factors(columns.whole[order], starts)
        if factors is None:
            raise RowsNeededError
        rows, group = factors
        self._places, self._rows = columns.places, rows
        self._first = order[starts[group]]
        self.matrix = rows[:, : columns.dense] * columns.numbers
        self.start = rows[:, -1].copy()
        self.blocks = [
            b._replace(columns=self.column(b.columns[:, 0]), groups=self.index(b.groups))
            for b in affine.blocks
            if b.groups is not None
        ]

    def index(self, index: np.ndarray) -> np.ndarray:
        """Return an index of the rows."""
        return np.ascontiguousarray(index[self._first])

    def column(self, column: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self._rows[:, self._places[column.tobytes()]])

    def product(self, column: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the same as `Statistics.product`."""
        return self.column(column), 0.0


# --- the new program ---


class SufficientStatistics(Rewriter):
    """Writes the program again, without the rows."""

    def __init__(self, program: Program, n: int) -> None:
        super().__init__(program)
        self._rows = rows = RowAnalysis(program, n)
        totals = [t for every in rows.totals.values() for x in every for t in x]
        by_index = [t for x in rows.scattered.values() for t in x]
        self._settled = Settled([*totals, *by_index])
        self._statistics = self._settled.statistics
        if not self._statistics:
            raise RowsNeededError
        self._reduced: dict[int, Value] = {}

    def program(self) -> Program:
        rows, scattered = self._rows, {key for key, _ in self._rows.scattered}
        for step in self.old.steps:
            key = id(step.results[0]) if step.results else 0
            if key in rows.totals:
                self.replace(step.results, [self._totals(rows.totals[key], step.results[0].shape)])
            elif key in scattered:
                self.replace(step.results, [self._assembled(step)])
            elif step.kernel is GUARD and id(step.operands[0]) in rows.bounded:
                self._guard(rows.bounded[id(step.operands[0])])
            elif key not in rows.known and key not in rows.bounded:
                self.keep(step)
        return super().program()

    def _assembled(self, step: Step) -> Value:
        """Make an array with sums by index among its parts."""
        key, kernel = id(step.results[0]), step.kernel
        base, parts = kernel.parts([*enumerate(step.operands)])
        result: list[Any] = []
        for place, shape, (i, part), index in parts:
            totals = self._rows.scattered.get((key, i))
            if totals is None:
                result.append((place if index is None else index[1].data, shape, self.value(part)))
                continue
            for t in map(self._settled, totals):
                at, x = self._by_index(t)
                result.append((at, at.shape, x))
        full = None if base is None else self.value(base[1])
        return self.builder.assemble(step.results[0].shape, result, full)

    def _by_index(self, t: SumOverRows) -> tuple[np.ndarray, Value]:
        """Return the indices, and the sums that are added up at them."""
        b, term, index = self.builder, t.term, t.groups
        assert index is not None
        if not term.affine.blocks:
            weights = product_of(t.column, term.weights)
            column = term.number * term.affine.times(weights).column
            indices, groups = np.unique(index, return_inverse=True)
            sums = np.bincount(groups.ravel(), column)
            return indices, self._times(term, b.constant(sums))
        stats = self._statistics[id(term.affine)]
        assert isinstance(stats, GroupStatistics)
        assert t.column is not None
        factors = b.constant(term.number * stats.column(t.column))
        result = b.ufunc(np.multiply, factors, self._vector(term.affine))
        return stats.index(index), self._times(term, result)

    def _totals(self, totals: list[list[SumOverRows]], shape: tuple[int, ...]) -> Value:
        """Return the sums, as a number or a vector: products with a matrix if all have one form."""
        b, totals = self.builder, [[*map(self._settled, x)] for x in totals]
        if len(totals) == 1:
            return b.reshaped(b.add_all([self._total(t) for t in totals[0]]), shape)
        firsts = [x[0] for x in totals]
        first = firsts[0].term
        is_one = all(len(x) == 1 for x in totals) and all(
            t.term[:3:2] == first[:3:2] and t.column is not None for t in firsts
        )
        if not is_one or not first.affine.blocks:
            numbers = [b.reshaped(b.add_all([*map(self._total, x)]), (1,)) for x in totals]
            return b.reshaped(b.concatenated(numbers), shape)
        product = self._statistics[id(first.affine)].product
        result = [product(t.column) for t in firsts if t.column is not None]
        factors = np.array([t.term.number for t in firsts])
        matrix = factors[:, None] * np.array([vector for vector, _ in result])
        output = b.matmul(b.constant(matrix), self._vector(first.affine))
        remainder = factors * np.array([number for _, number in result])
        if remainder.any():
            output = b.ufunc(np.add, output, b.constant(remainder))
        return b.reshaped(self._times(first, output), shape)

    def _total(self, total: SumOverRows) -> Value:
        term, b = total.term, self.builder
        if not term.affine.blocks:
            weights = product_of(total.column, term.weights)
            return self._times(term, b.constant(term._replace(weights=weights).sum))
        stats, v = self._statistics[id(term.affine)], self._vector(term.affine)
        if total.column is None:
            result, remainder = b.matmul(v, v), stats.rest
        else:
            vector, remainder = stats.product(total.column)
            result = b.matmul(b.constant(vector), v)
        if remainder:
            result = b.ufunc(np.add, result, b.constant(remainder))
        return self._times(term, b.ufunc(np.multiply, b.constant(term.number), result))

    def _times(self, term: RowTerm, x: Value) -> Value:
        for scale, is_inverse in term.scales:
            x = self.builder.ufunc(np.divide if is_inverse else np.multiply, x, self.value(scale))
        return x

    def _weights(self, affine: AffineFunction) -> Value | None:
        """Return the elements of values by which whole columns are multiplied."""
        b, dense = self.builder, [x for x in affine.blocks if x.groups is None]
        values = [b.reshaped(self.value(x.weights), x.columns.shape[1:]) for x in dense]
        return b.concatenated(values) if values else None

    def _vector(self, affine: AffineFunction) -> Value:
        """Write an affine function of few rows."""
        if id(affine) not in self._reduced:
            b, stats, weights = self.builder, self._statistics[id(affine)], self._weights(affine)
            terms = [b.constant(stats.start)]
            if weights is not None:
                if stats.centre is not None:
                    weights = b.ufunc(np.subtract, weights, b.constant(stats.centre))
                terms.append(b.matmul(b.constant(stats.matrix), weights))
            for x in stats.blocks:
                assert x.groups is not None
                numbers = b.gather(self.value(x.weights), x.groups)
                terms.append(b.ufunc(np.multiply, b.constant(x.number * x.columns), numbers))
            self._reduced[id(affine)] = b.add_all(terms)
        return self._reduced[id(affine)]

    def _guard(self, terms: TermsOfRow) -> None:
        """End the run unless a bound of the rows is finite: where rows are infinite or nan, so is
        their bound.
        """
        b, bounds = self.builder, []
        for t in terms:
            parts = [b.constant(float(np.max(np.abs(t.affine.column))))]
            for x in t.affine.blocks:
                sizes = b.ufunc(np.absolute, self.value(x.weights))
                largest = np.abs(x.number) * np.max(np.abs(x.columns), axis=0)
                if x.groups is not None:
                    largest = np.broadcast_to(largest, (sizes.size,))
                parts.append(b.matmul(b.constant(largest.copy()), b.reshaped(sizes, largest.shape)))
            bound = b.add_all(parts)
            bound = b.ufunc(np.square, bound) if t.is_square else bound
            most = 1.0 if t.weights is None else float(np.max(np.abs(t.weights)))
            number = abs(t.number) * most
            bounds.append(self._times(t, b.ufunc(np.multiply, b.constant(number), bound)))
        b.guard(b.call(_FINITE, b.add_all([b.ufunc(np.absolute, x) for x in bounds])))
