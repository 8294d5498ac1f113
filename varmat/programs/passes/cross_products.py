"""Sums of products of columns of data, and their triangular factor, without rounding errors.

Columns are cut into slices of few digits, so that products of slices, and their sums over all rows,
are exact in floating point (K. Ozaki, T. Ogita, S. Oishi and S. M. Rump, Error-free transformations
of matrix multiplication by using fast routines of matrix multiplication, 2012). The rest, as many
rows as there are columns, is computed with `DIGITS` decimal digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext

import numpy as np

DIGITS = 80
# Binary digits of a column, relative to its largest element, that count.
BITS = 130
# A column is a combination of others if less than this part of its square is left.
NOTHING = Decimal(10) ** -45

# The part of the square of a column beyond which it is not a combination of others, tried in order
# until the squares of all terms are at most `LARGEST` times the square they explain.
LEAST_LEFT = tuple(Decimal(10) ** e for e in (-45, -24, -16, -8, 0))
LARGEST = 10**4
# Rows whose slices are in memory at once.
BLOCK = 1 << 13
# Columns of a factor, and products of two elements of a row, that take about half a second.
MOST_COLUMNS, MOST_IN_ROWS = 100, 1 << 29
# Numbers in the factors of groups, and products of slices, that take a few tenths of a second.
MOST_IN_GROUPS, MOST_PRODUCTS = 1 << 14, 1 << 25
Decimals = list[list[Decimal]]


def triangular_factor(columns: np.ndarray) -> Decimals | None:
    """Compute the upper triangular R with R'R = X'X for the columns X, whose rows are zero where a
    column is a combination of earlier ones; return None unless all is finite, and where it takes
    too long.

    Parameters
    ----------
    columns : ndarray, shape (n, k)
    """
    n, k = columns.shape
    if k > MOST_COLUMNS or n * k**2 > MOST_IN_ROWS or not np.isfinite(columns).all():
        return None
    with localcontext(Context(DIGITS)):
        return _cholesky(cross_products(columns))


def cross_products(columns: np.ndarray) -> Decimals:
    """Compute the sums of products of all pairs of columns, in the digits of the context."""
    slices, k = Slices(columns, len(columns)), columns.shape[1]
    sums = np.zeros((slices.most * k, slices.most * k))
    for start in range(0, len(columns), BLOCK):
        full = slices.of(columns[start : start + BLOCK])
        sums[: full.shape[1], : full.shape[1]] += full.T @ full
    return slices.numbers(sums)


def group_factors(columns: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Compute the triangular factors of groups of rows as floats, one below the other without rows
    of zeros, and the groups to which their rows belong. Return None unless all is finite, and where
    it takes too long.

    Parameters
    ----------
    columns : ndarray, shape (n, k)
    starts : ndarray of int
        The beginnings of the groups, in order.
    """
    n, k = columns.shape
    if not np.isfinite(columns).all() or len(starts) * k**2 > MOST_IN_GROUPS:
        return None
    slices = Slices(columns, int(np.max(np.diff(starts, append=n))))
    full = slices.of(columns)
    if full.shape[1] * full.size > MOST_PRODUCTS:
        return None
    sums = np.add.reduceat(full[:, :, None] * full[:, None, :], starts, axis=0)
    with localcontext(Context(DIGITS)):
        factors = [_cholesky(slices.numbers(x)) for x in sums]
    result = np.array([[[float(x) for x in row] for row in factor] for factor in factors])
    group, row = np.nonzero(result.any(axis=2))
    return result[group, row], group


class Slices:
    """The cutting of columns into slices, so that sums of products of `count` rows are exact."""

    def __init__(self, columns: np.ndarray, count: int) -> None:
        self._bits = (53 - math.ceil(math.log2(max(count, 2)))) // 2
        self.most = -(-BITS // self._bits)
        largest = np.max(np.abs(columns), axis=0, initial=0.0)
        self._exponents = np.frexp(np.where(largest > 0, largest, 1.0))[1]

    def of(self, columns: np.ndarray) -> np.ndarray:
        """Return the slices of rows, side by side: whole numbers, each with the next digits."""
        slices = [np.zeros((len(columns), 0))]
        remainder = np.ldexp(columns, -self._exponents)
        while len(slices) <= self.most and remainder.any():
            slices.append(np.rint(np.ldexp(remainder, self._bits * len(slices))))
            remainder = remainder - np.ldexp(slices[-1], -self._bits * (len(slices) - 1))
        return np.concatenate(slices, axis=1)

    def numbers(self, sums: np.ndarray) -> Decimals:
        """Compute the sums of products of columns, from the sums for their slices."""
        k, count = len(self._exponents), len(sums) // len(self._exponents)
        result = sums.reshape(count, k, count, k).tolist()
        scales = [Decimal(2) ** e for e in self._exponents.tolist()]
        units = [Decimal(2) ** (-self._bits * (i + 2)) for i in range(2 * count)]
        return [
            [
                sum(
                    (units[i + j] * Decimal(result[i][a][j][b]) for i in range(count)
                     for j in range(min(count, self.most - i)) if result[i][a][j][b]),
                    Decimal(0),
                ) * scales[a] * scales[b]
                for b in range(k)
            ]
            for a in range(k)
        ]  # fmt: skip


def _cholesky(products: Decimals) -> Decimals:
    k = len(products)
    factor = [[Decimal(0)] * k for _ in range(k)]
    for j in range(k):
        left = products[j][j] - sum(factor[i][j] ** 2 for i in range(j))
        if left <= NOTHING * products[j][j]:
            continue
        factor[j][j] = pivot = left.sqrt()
        for m in range(j + 1, k):
            done = sum(factor[i][j] * factor[i][m] for i in range(j))
            factor[j][m] = (products[j][m] - done) / pivot
    return factor


def least_squares(factor: Decimals, k: int, column: int) -> list[float]:
    """Return the factors b with which the sum of the first `k` columns comes closest to minus
    another column, as floats; zero for columns that are combinations of others, or so close to one
    that the factors would be large, and their differences from others inexact.
    """
    with localcontext(Context(DIGITS)):
        squares = [sum((row[i] ** 2 for row in factor), Decimal(0)) for i in range(k)]
        size = sum((row[column] ** 2 for row in factor), Decimal(0))
        for least in LEAST_LEFT:
            result = [Decimal(0)] * k
            for i in reversed(range(k)):
                if factor[i][i] ** 2 > least * squares[i]:
                    done = sum(factor[i][j] * result[j] for j in range(i + 1, k))
                    result[i] = -(factor[i][column] + done) / factor[i][i]
            if all(b * b * s <= LARGEST * size for b, s in zip(result, squares, strict=True)):
                break
        return [float(x) for x in result]


def residual(factor: Decimals, weights: Sequence[float], column: int) -> list[Decimal]:
    """Return the coordinates of a column plus the sum of the first ones, each times its weight."""
    with localcontext(Context(DIGITS)):
        exact = [*map(Decimal, weights)]
        return [
            row[column] + sum(x * w for x, w in zip(row, exact, strict=False)) for row in factor
        ]


def inner(x: Sequence[Decimal], y: Sequence[Decimal]) -> float:
    with localcontext(Context(DIGITS)):
        return float(sum(a * b for a, b in zip(x, y, strict=True)))
