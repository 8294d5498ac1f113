"""Products, factorisations and solves of small matrices as instructions.

A call of LAPACK or BLAS takes longer than its arithmetic here. A row of a matrix is one vector of
LLVM, which splits it into registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from llvmlite import ir

from varmat.programs.run.compiler import DOUBLE, INT, counted

if TYPE_CHECKING:
    from varmat.programs.run.code import Code, MemoryPlace


class Matrix(NamedTuple):
    """A matrix in memory.

    Attributes
    ----------
    code : Code
    place : tuple
    columns : int
    strides : tuple of int
        In bytes. If rows are read or written at once, the second is the size of a double.
    """

    code: Code
    place: MemoryPlace
    columns: int
    strides: tuple[int, int]

    def at(self, i: ir.Value, j: ir.Value) -> ir.Value:
        (memory, start), b = self.place, self.code.b
        offsets = (b.mul(k, INT(stride)) for k, stride in zip((i, j), self.strides, strict=True))
        return self.code.address(memory, b.add(INT(start), b.add(*offsets)))

    def element(self, i: ir.Value, j: ir.Value) -> ir.Value:
        return self.code.b.load(self.at(i, j), typ=DOUBLE)

    def row(self, i: ir.Value) -> ir.Value:
        kind = ir.VectorType(DOUBLE, self.columns)
        return self.code.b.load(self.at(i, INT(0)), align=8, typ=kind)

    def column(self, j: ir.Value, rows: int) -> ir.Value:
        return self.code.lanes(lambda i: self.element(INT(i), j), rows)

    def put(self, i: ir.Value, row: ir.Value) -> None:
        self.code.b.store(row, self.at(i, INT(0)), align=8)

    def added(self, total: ir.Value, factor: ir.Value, row: ir.Value, sign: int = 1) -> ir.Value:
        """Add a multiple of another row to a row, or subtract it."""
        b, flags = self.code.b, ("contract",)
        term = b.fmul(self.code.splat(factor, self.columns), row, flags=flags)
        return (b.fadd if sign > 0 else b.fsub)(total, term, flags=flags)


def _contiguous(code: Code, place: MemoryPlace, columns: int) -> Matrix:
    return Matrix(code, place, columns, (8 * columns, 8))


def product(
    code: Code,
    buffers: Sequence[MemoryPlace],
    sizes: tuple[int, int, int],
    left: tuple[int, int],
    right: tuple[int, int],
) -> None:
    """Multiply matrices with strides; the rows of the right one are in one piece."""
    m, k, n = sizes
    a, x = Matrix(code, buffers[0], k, left), Matrix(code, buffers[1], n, right)
    out = _contiguous(code, buffers[2], n)

    def iteration(i: ir.Value, _: object) -> Sequence[ir.Value]:
        zero = code.splat(DOUBLE(0.0), n)
        (total,) = code.over(k, [zero], lambda t, r: [x.added(r[0], a.element(i, t), x.row(t))])
        out.put(i, total)
        return []

    code.over(m, [], iteration)


def solve(
    code: Code, buffers: Sequence[MemoryPlace], n: int, columns: int, transposed: bool
) -> None:
    """Solve equations with a lower triangular matrix, or with its transpose."""
    b = code.b
    a = _contiguous(code, buffers[0], n)
    args, out = (_contiguous(code, place, columns) for place in buffers[1:])

    def nth(i: ir.Value) -> ir.Value:
        return b.sub(INT(n - 1), i) if transposed else i

    def iteration(i: ir.Value, _: object) -> Sequence[ir.Value]:
        here = nth(i)

        def less(j: ir.Value, others: Sequence[ir.Value]) -> Sequence[ir.Value]:
            k = nth(j)
            factor = a.element(*((k, here) if transposed else (here, k)))
            return [out.added(others[0], factor, out.row(k), -1)]

        _, (remainder,) = counted(b, INT(0), i, 1, [args.row(here)], less)
        out.put(here, b.fdiv(remainder, code.splat(a.element(here, here), columns)))
        return []

    code.over(n, [], iteration)


def cholesky(code: Code, buffers: Sequence[MemoryPlace], n: int, strides: tuple[int, int]) -> None:
    """Factor a matrix: the lower triangular factor, nan if it does not exist; its rows are made
    from the columns, which are in the second operand.
    """
    b, a = code.b, Matrix(code, buffers[0], n, strides)
    upper, out = (_contiguous(code, place, n) for place in buffers[1:])
    nan, numbers = DOUBLE(math.nan), ir.Constant(ir.VectorType(INT, n), [*range(n)])

    def column(k: ir.Value, _: object) -> Sequence[ir.Value]:
        def less(j: ir.Value, others: Sequence[ir.Value]) -> Sequence[ir.Value]:
            return [upper.added(others[0], upper.element(j, k), upper.row(j), -1)]

        _, (remainder,) = counted(b, INT(0), k, 1, [a.column(k, n)], less)
        pivot = b.extract_element(remainder, k)
        is_positive = b.fcmp_ordered(">", pivot, DOUBLE(0.0))
        root = b.select(is_positive, code.one.apply(b, "sqrt", pivot), nan)
        below = b.icmp_signed(">", numbers, code.splat(k, n))
        result = b.select(below, b.fdiv(remainder, code.splat(root, n)), code.splat(DOUBLE(0.0), n))
        upper.put(k, b.insert_element(result, root, k))
        return [root]

    (last,) = code.over(n, [DOUBLE(0.0)], column)
    holds = b.fcmp_ordered("==", last, last)

    def row(i: ir.Value, _: object) -> Sequence[ir.Value]:
        out.put(i, b.select(holds, upper.column(i, n), code.splat(nan, n)))
        return []

    code.over(n, [], row)
