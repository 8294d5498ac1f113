"""The form of the rows of a program: sums of products of at most two affine functions of
parameters.

It is found step by step, for each row of an array: columns of data times numbers of the program,
and numbers that are gathered by group.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from varmat.programs.build.arithmetic import ADD, DIVIDE, MULTIPLY, NEGATIVE, SQUARE, SUBTRACT
from varmat.programs.ir.program import BOOL, Program, Step, Value
from varmat.programs.kernels.elementwise import ufunc_kernel
from varmat.programs.kernels.guards import GUARD
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.places import GATHER, Assemble
from varmat.programs.kernels.reductions import SUM, Reduce

_ABSOLUTE, _FINITE, _LESS, _EQUAL = map(ufunc_kernel, (np.absolute, np.isfinite, np.less, np.equal))


class RowsNeededError(Exception):
    """A step needs the rows themselves."""


class WeightedColumns(NamedTuple):
    """Columns of data, each times an element of a value and a number; with groups one column,
    times the element of the value that the row's group says.
    """

    columns: np.ndarray
    weights: Value
    number: float = 1.0
    groups: np.ndarray | None = None


class AffineFunction:
    """A column of data plus blocks."""

    def __init__(self, column: np.ndarray, *blocks: WeightedColumns) -> None:
        self.column, self.blocks = column, blocks
        # Columns with which products are summed.
        self.others: list[np.ndarray] = []

    def times(self, column: np.ndarray | None) -> AffineFunction:
        """Return the function with each row multiplied by a number."""
        if column is None:
            return self
        blocks = (b._replace(columns=b.columns * column[:, None]) for b in self.blocks)
        return AffineFunction(self.column * column, *blocks)


class RowTerm(NamedTuple):
    """A number times values or their inverses, a column of data, and an affine function or its
    square.
    """

    affine: AffineFunction
    number: float = 1.0
    scales: tuple[tuple[Value, bool], ...] = ()
    is_square: bool = False
    weights: np.ndarray | None = None

    def times(self, number: float, *scales: tuple[Value, bool]) -> RowTerm:
        return self._replace(number=self.number * number, scales=(*self.scales, *scales))

    @property
    def is_affine(self) -> bool:
        return not (self.scales or self.is_square)

    @property
    def data(self) -> np.ndarray | None:
        """The column, if it is the whole term."""
        is_data = self.is_affine and not self.affine.blocks
        return self.number * self.affine.times(self.weights).column if is_data else None

    @property
    def sum(self) -> float:
        """The sum of the rows, if the function is one of data, without the values."""
        column = self.affine.times(self.weights).column.tolist()
        squared = self.affine.column.tolist() if self.is_square else [1.0] * len(column)
        return self.number * math.fsum(map(operator.mul, column, squared))


# A row as a sum of these terms.
TermsOfRow = tuple[RowTerm, ...]


class SumOverRows(NamedTuple):
    """The sum of a term, and of its product with a column if given, over all rows, or over the rows
    of each group.
    """

    term: RowTerm
    column: np.ndarray | None
    groups: np.ndarray | None = None


class RowAnalysis:
    """The analysis of the rows of a program, of `n` elements each."""

    def __init__(self, program: Program, n: int) -> None:
        self.n = n
        # By ids of values: rows; terms that are asked to be finite; sums for each element.
        self.known: dict[int, list[TermsOfRow]] = {}
        self.bounded: dict[int, TermsOfRow] = {}
        self.totals: dict[int, list[list[SumOverRows]]] = {}
        # By the id of an assembled array and the number of an operand.
        self.scattered: dict[tuple[int, int], list[SumOverRows]] = {}
        self._rules: dict[object, Callable[..., TermsOfRow]] = {
            ADD: partial(self._sum, (1.0, 1.0)),
            SUBTRACT: partial(self._sum, (1.0, -1.0)),
            NEGATIVE: partial(self._sum, (-1.0,)),
            SUM: lambda *x: self._sum((1.0,) * len(x), *x),
            MULTIPLY: self._product,
            DIVIDE: self._quotient,
            SQUARE: lambda x: self._product(x, x),
        }
        for step in program.steps:
            if not self._is_found(step) and any(map(self.has_rows, step.operands)):
                raise RowsNeededError
        if any(map(self.has_rows, program.outputs)):
            raise RowsNeededError

    def has_rows(self, v: Value) -> bool:
        return id(v.base) in self.known or id(v) in self.bounded

    def _is_found(self, step: Step) -> bool:
        """Find out what a step makes of rows; False if that is not known."""
        kernel, operands = step.kernel, step.operands
        if kernel is GUARD:
            return id(operands[0]) in self.bounded and operands[0].dtype == BOOL
        if len(step.results) != 1:
            return False
        (result,) = step.results
        try:
            if kernel in self._rules and result.shape[-1:] == (self.n,):
                self.known[id(result)] = self._each(kernel, operands, result.shape)
            elif kernel is GATHER and result.shape == (self.n,) and operands[1].is_constant:
                self.known[id(result)] = self._gathered(operands[0], operands[1].data)
            elif isinstance(kernel, Assemble):
                self._assembled(step, kernel)
            elif kernel is MATMUL and result.shape == (self.n,):
                self.known[id(result)] = self._times(*operands)
            elif kernel is MATMUL and len(result.shape) < 3:
                self.totals[id(result)] = self._products(*operands)
            elif kernel == Reduce(np.add, (len(operands[0].shape) - 1,)):
                rows = self._rows(operands[0])
                ones = ((RowTerm(AffineFunction(np.ones(self.n))),),)
                self.totals[id(result)] = self._all_products(rows, ones)
            elif kernel in (_ABSOLUTE, _FINITE) or (kernel is _EQUAL and len({*operands}) == 1):
                rows = self._rows(operands[0])
                self.bounded[id(result)] = tuple(t for row in rows for t in row)
            elif kernel is _LESS and operands[0].kernel is _ABSOLUTE and _is_infinite(operands[1]):
                self.bounded[id(result)] = self.bounded[id(operands[0])]
            else:
                return False
        except (RowsNeededError, KeyError):
            return False
        return True

    # --- operands ---

    def _rows(self, v: Value) -> list[TermsOfRow]:
        """Return the rows of an array with elements along its last axis."""
        result = self._operand(v, v.shape)
        if any(isinstance(x, Value) for x in result):
            raise RowsNeededError
        return result  # type: ignore[return-value]

    def _operand(self, v: Value, shape: tuple[int, ...]) -> Sequence[TermsOfRow | Value]:
        """Return, for each row of a shape, the row of a value that broadcasts, or its number."""
        lead = shape[:-1]
        if len(lead) > 1:
            raise RowsNeededError
        count = math.prod(lead)
        if v.shape[-1:] == (self.n,) and (v.is_constant or v.strides[-1]):
            rows = self._whole(v)
            if len(rows) not in (1, count):
                raise RowsNeededError
            return rows * (count // len(rows))
        own = v.shape[:-1] if v.shape and v.shape[-1] in (1, self.n) else v.shape
        if v.shape and v.shape[-1] != 1 and (v.shape[-1] != self.n or v.strides[-1]):
            raise RowsNeededError
        stride = v.strides[0] if len(v.shape) == 2 and own != (1,) else 0
        if v.is_constant:
            numbers = np.broadcast_to(v.data[..., :1] if v.shape else v.data, (*lead, 1)).ravel()
            return [Value((), data=np.asarray(x)) for x in numbers]
        if not v.shape:
            return [v] * count
        return [v.view((), v.offset + i * stride, ()) for i in range(count)]

    def _whole(self, v: Value) -> list[TermsOfRow]:
        if v.is_constant:
            if v.dtype == BOOL or len(v.shape) > 2:
                raise RowsNeededError
            lines = np.asarray(v.data, float).reshape(-1, self.n)
            return [(RowTerm(AffineFunction(x)),) for x in lines]
        rows, size = self.known.get(id(v.base)), 8 * self.n
        if rows is None or v.strides[-1] != 8 or v.offset % size or len(v.shape) > 2:
            raise RowsNeededError
        indices = [v.offset + i * v.strides[0] for i in range(math.prod(v.shape[:-1]))]
        if any(at % size for at in indices):
            raise RowsNeededError
        return [rows[at // size] for at in indices]

    def _row(self, x: TermsOfRow | Value) -> TermsOfRow:
        """Convert a number to a row."""
        if not isinstance(x, Value):
            return x
        if x.is_constant:
            return (RowTerm(AffineFunction(np.full(self.n, float(x.data)))),)
        return self._weighted(np.ones((self.n, 1)), x)

    def _weighted(
        self, columns: np.ndarray, weights: Value, groups: np.ndarray | None = None
    ) -> TermsOfRow:
        """Multiply columns by a value."""
        block = WeightedColumns(columns, weights, groups=groups)
        return (RowTerm(AffineFunction(np.zeros(self.n), block)),)

    # --- elementwise ---

    def _each(self, kernel: object, operands: Sequence[Value], shape: tuple[int, ...]) -> Any:
        columns = [self._operand(v, shape) for v in operands]
        if all(isinstance(x, Value) for column in columns for x in column):
            raise RowsNeededError
        return [self._rules[kernel](*x) for x in zip(*columns, strict=True)]

    def _sum(self, signs: tuple[float, ...], *operands: TermsOfRow | Value) -> TermsOfRow:
        terms = [
            t.times(sign) for sign, x in zip(signs, operands, strict=True) for t in self._row(x)
        ]
        plain, others = [t for t in terms if t.is_affine], [t for t in terms if not t.is_affine]
        if len(plain) > 1:
            pairs = [(t.number, t.affine.times(t.weights)) for t in plain]
            column = np.sum([number * x.column for number, x in pairs], axis=0)
            blocks = [b._replace(number=n * b.number) for n, x in pairs for b in x.blocks]
            plain = [RowTerm(AffineFunction(column, *blocks))]
        return (*plain, *others)

    def _product(self, x: TermsOfRow | Value, y: TermsOfRow | Value) -> TermsOfRow:
        if isinstance(y, Value):
            x, y = y, x
        if isinstance(x, Value):
            return tuple(self._scaled(t, x) for t in y)  # type: ignore[union-attr]
        return tuple(_multiplied(a, b) for a, b in product(x, y))  # type: ignore[arg-type]

    def _quotient(self, x: TermsOfRow | Value, y: TermsOfRow | Value) -> TermsOfRow:
        if isinstance(y, Value):
            if y.is_constant:
                return tuple(t.times(1.0 / float(y.data)) for t in x)  # type: ignore[union-attr]
            return tuple(t.times(1.0, (y, True)) for t in x)  # type: ignore[union-attr]
        column = y[0].data if len(y) == 1 else None
        if column is None or not column.all():
            raise RowsNeededError
        return self._product(x, (RowTerm(AffineFunction(1.0 / column)),))

    def _scaled(self, t: RowTerm, x: Value) -> RowTerm:
        if x.is_constant:
            return t.times(float(x.data))
        column = t.data
        if column is not None:
            return self._weighted(column[:, None], x)[0]
        return t.times(1.0, (x, False))

    # --- groups ---

    def _gathered(self, source: Value, index: np.ndarray) -> list[TermsOfRow]:
        if self.has_rows(source) or source.is_constant:
            raise RowsNeededError
        return [self._weighted(np.ones((self.n, 1)), source, index)]

    def _assembled(self, step: Step, kernel: Assemble) -> None:
        """Find the rows among the parts of an array, which must be sums by index."""
        parts = kernel.parts([*enumerate(step.operands)])[1]
        result: dict[tuple[int, int], list[SumOverRows]] = {}
        for _, shape, (i, part), index in parts:
            if self.has_rows(part):
                if index is None or shape != part.shape or len(shape) > 1:
                    raise RowsNeededError
                (row,) = self._rows(part)
                ones, groups = RowTerm(AffineFunction(np.ones(self.n))), index[1].data
                sums = [_total(t, ones)._replace(groups=groups) for t in row]
                result[id(step.results[0]), i] = sums
        if not result or any(t.term.is_square for x in result.values() for t in x):
            raise RowsNeededError
        if sum(map(self.has_rows, step.operands)) > len(result):
            raise RowsNeededError
        self.scattered |= result

    # --- products ---

    def _times(self, a: Value, b: Value) -> list[TermsOfRow]:
        """Multiply a matrix of data by a vector."""
        matrix, weights = (a, b) if a.is_constant else (b, a)
        if not matrix.is_constant or weights.is_constant or self.has_rows(weights):
            raise RowsNeededError
        if len(weights.shape) > 1:
            raise RowsNeededError
        columns = matrix.data if matrix is a else matrix.data.T
        return [self._weighted(np.asarray(columns, float), weights)]

    def _products(self, a: Value, b: Value) -> list[list[SumOverRows]]:
        """Sum the products of two arrays along the rows."""
        if not (self.has_rows(a) or self.has_rows(b)):
            raise RowsNeededError
        if b.is_constant:
            b = Value(b.shape[::-1], data=np.ascontiguousarray(b.data.T))
        elif len(b.shape) == 2:
            if b.shape[1] > 1:
                raise RowsNeededError
            b = b.view(b.shape[:1], b.offset, b.strides[:1])
        return self._all_products(self._rows(a), self._rows(b))

    def _all_products(
        self, a: Sequence[TermsOfRow], b: Sequence[TermsOfRow]
    ) -> list[list[SumOverRows]]:
        return [[_total(s, t) for s, t in product(x, y)] for x, y in product(a, b)]


def _is_infinite(v: Value) -> bool:
    return v.is_constant and bool(np.all(v.data == np.inf))


def _split(a: RowTerm, b: RowTerm) -> tuple[np.ndarray | None, RowTerm, RowTerm]:
    """Return two factors, data first, and its column if one of them is data."""
    column = a.data
    if column is None:
        column, a, b = b.data, b, a
    return column, a, b


def _multiplied(a: RowTerm, b: RowTerm) -> RowTerm:
    """Multiply two terms."""
    column, a, b = _split(a, b)
    if column is not None:
        if not np.ptp(column):
            return b.times(float(column[0]))
        return b._replace(weights=product_of(column, b.weights))
    if a.affine is not b.affine or a.is_square or b.is_square:
        raise RowsNeededError
    weights = product_of(a.weights, b.weights)
    return RowTerm(a.affine, a.number * b.number, (*a.scales, *b.scales), True, weights)


def product_of(x: np.ndarray | None, y: np.ndarray | None) -> np.ndarray | None:
    return y if x is None else x if y is None else x * y


def _total(a: RowTerm, b: RowTerm) -> SumOverRows:
    """Sum the product of two terms over all rows."""
    column, a, b = _split(a, b)
    if column is None or b.is_square:
        return SumOverRows(_multiplied(a, b), None)
    return SumOverRows(b._replace(weights=None), product_of(column, b.weights))
