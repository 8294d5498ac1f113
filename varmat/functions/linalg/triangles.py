"""Triangles and transposes of plain arrays, and of symbols, which are not written into.

Large matrices are taken in tiles, because a matrix is much slower to read along its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from varmat.functions.checks import outside
from varmat.programs.build.factorisations import triangle
from varmat.programs.build.symbol import is_symbol, require
from varmat.typing import Operand, Plain, Result

# Tiles of this many rows and columns stay in the cache while a matrix and its transpose are read,
# and are large enough for products.
TILE = 64
# Rows a multiple of this many bytes apart share few places in the cache.
GAP = 2048


def place_of(index: Iterable[int]) -> str:
    """Brackets for the elements of an index; nothing for an empty one."""
    inside = ", ".join(str(int(i)) for i in index)
    return f"[{inside}]" if inside else ""


def triangle_mask(shape: tuple[int, ...], lower: bool = True, strict: bool = False) -> np.ndarray:
    """Return the mask of one triangle of a matrix of `shape`; `strict` leaves the diagonal out."""
    n, m = shape[-2:]
    return (
        np.tri(n, m, -1 if strict else 0, dtype=bool)
        if lower
        else ~np.tri(n, m, 0 if strict else -1, dtype=bool)
    )


@lru_cache
def above(n: int, k: int = 0) -> np.ndarray:
    """Return the mask of a block of `n` rows and columns above its diagonal `k`."""
    mask = ~np.tri(n, k=k, dtype=bool)
    mask.flags.writeable = False
    return mask


def gapped(x: np.ndarray) -> np.ndarray:
    """Return a block of a matrix that is to be read along its columns; copied with gaps between the
    rows if these are multiples of 2048 bytes apart.

    Rows so far apart share few places in the cache, and reading a column takes 2 to 4 times as
    long."""
    if x.strides[-2] % GAP:
        return x
    copy = np.empty((*x.shape[:-1], x.shape[-1] + 8))[..., :-8]
    np.copyto(copy, x)
    return copy


def clear_above(x: np.ndarray, k: int = 0) -> np.ndarray:
    """Set to zero, in place, what stands above the diagonal of square matrices, or also the
    diagonal, if `k` is -1.
    """
    if is_symbol(x):
        return triangle(x, k=k)  # type: ignore[no-any-return]
    n = x.shape[-1]
    if n <= TILE:
        np.copyto(x, 0.0, where=above(n, k))
        return x
    for i, j in tiles(n):
        if j < n:
            x[..., i:j, j:] = 0.0
        np.copyto(x[..., i:j, i:j], 0.0, where=above(j - i, k))
    return x


def tril(x: np.ndarray, k: int = 0) -> np.ndarray:
    """Faster than `numpy.tril`, for square matrices."""
    if is_symbol(x):
        return triangle(x, k=k)  # type: ignore[no-any-return]
    return clear_above(np.array(x, order="C"), k)


@lru_cache
def tiles(n: int) -> tuple[tuple[int, int], ...]:
    """Begin and end of the rows of each tile."""
    return tuple((i, min(i + TILE, n)) for i in range(0, n, TILE))


def diagonal_of(x: Operand) -> Result:
    """Return the diagonals as a view to write to."""
    return (
        x.reshape(-1)[:: len(x) + 1]
        if x.ndim == 2 and x.flags.c_contiguous
        else np.einsum("...ii->...i", x)
    )


def half_diagonal(x: Operand) -> Result:
    """Halve the diagonal of lower triangles in place; of symbols the upper triangle is cleared
    too.
    """
    if is_symbol(x):
        return triangle(x, half=True)
    diagonal = diagonal_of(x)
    np.multiply(diagonal, 0.5, diagonal)
    return x


def add_quotients(x: Operand, a: Operand, b: Operand) -> Result:
    """Add ``a / b`` to the diagonal of a square matrix, in place."""
    if is_symbol(x) or is_symbol(b):
        return x + np.eye(len(x)) * a / b
    diagonal = diagonal_of(x)
    np.add(diagonal, a / b, diagonal)
    return x


def half_triangle(x: np.ndarray) -> np.ndarray:
    """Reduce a new array, in place, to its lower triangle with halved diagonal."""
    return triangle(x, half=True) if is_symbol(x) else half_diagonal(clear_above(x))  # type: ignore[no-any-return]


def lower_triangle(
    shape: tuple[int, ...], rows: Callable[[int, int, np.ndarray], object]
) -> np.ndarray:
    """Make matrices of `shape` with zeros above the diagonal; ``rows(i, j, out)`` writes the rows i
    to j up to column j.
    """
    x = np.empty(shape)
    for i, j in tiles(shape[-1]):
        rows(i, j, x[..., i:j, :j])
    return clear_above(x)


def mirrored(x: np.ndarray) -> np.ndarray:
    """Copy, in place, the lower triangle of square matrices to the upper one. They are symmetric
    but for rounding, or zero there; symbols are symmetric.
    """
    if is_symbol(x):
        return x
    for i, j in tiles(x.shape[-1]):
        block = x[..., i:j, i:j]
        np.copyto(block, block.mT, where=above(j - i, 0))
        if i:
            x[..., :i, i:j] = gapped(x[..., i:j, :i]).mT
    return x


def transposed(x: np.ndarray, factor: Plain = 1.0) -> np.ndarray:
    """Compute the transpose in C order, times a number for each matrix."""
    factor = factor[..., None, None] if np.ndim(factor) else factor
    if is_symbol(x):
        return x.mT if type(factor) is float else x.mT * factor
    if x.shape[-1] <= TILE:
        return np.multiply(x.mT, factor, order="C")  # type: ignore[no-any-return]
    out = np.empty(x.mT.shape)
    for i, j in tiles(x.shape[-2]):
        np.multiply(gapped(x[..., i:j, :]).mT, factor, out=out[..., i:j])
    return out


def check_lower(function: str, a: np.ndarray, name: str) -> None:
    """Raise `DomainError` unless the matrices `a` are zero above the diagonal."""
    if is_symbol(a):
        require(triangle(a) == a)
    elif any(
        a[..., :i, i:j].any() or tril(a[..., i:j, i:j].mT, -1).any() for i, j in tiles(a.shape[-1])
    ):
        index = np.argwhere(np.triu(a, 1))[0]
        value = a[tuple(index)].item()
        raise outside(function, f"{name}{place_of(index)}", value, "be 0.0, above the diagonal")
