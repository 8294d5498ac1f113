"""Factors, solves and triangles of arrays and symbols: what the rules of linear algebra share.

LAPACK reads a matrix column by column, so in a C-contiguous array it sees the transpose. It is
given that transpose, and asked for the transposed thing, instead of having every matrix transposed
in memory on the way in and on the way out. Results are written over a copy of the argument: they
are new C-contiguous arrays.

NumPy's own loops serve stacks of small matrices, for which a call of LAPACK costs less than a round
of a loop in Python."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.errors import DomainError
from varmat.functions.linalg.symmetric_arguments import check_symmetric, to_triangle
from varmat.functions.linalg.triangles import (
    TILE,
    clear_above,
    half_diagonal,
    half_triangle,
    lower_triangle,
    place_of,
    tril,
)
from varmat.plain_arrays import ones
from varmat.programs.build import factorisations
from varmat.programs.build.symbol import is_safe_divisor, is_symbol, refuse
from varmat.typing import Function, Operand, Plain, Result

# Stacks of matrices with fewer rows go through NumPy's loops.
FEWEST_ROWS = 16


@cache
def blas() -> Result:
    """`scipy.linalg.blas`, imported on first use: its import takes longer than NumPy's."""
    from scipy.linalg import blas

    return blas


@cache
def lapack() -> Result:
    """`scipy.linalg.lapack`, likewise."""
    from scipy.linalg import lapack

    return lapack


class MatrixError(DomainError, np.linalg.LinAlgError):
    """A matrix is outside the domain of a factorisation: a `DomainError` that code written for
    NumPy catches too.
    """


def check_finite(function: str, a: np.ndarray, name: str = "a") -> None:
    """Raise `MatrixError` if an element of the matrix is infinite or nan."""
    if not np.isfinite(a).all():
        raise MatrixError(
            f"{function}: {name} has elements that are not finite, but must have finite ones!"
        )


def check_svd(function: str, a: Operand) -> None:
    """Refuse a matrix that is not finite: LAPACK may search for its singular values for ever."""
    if not np.isfinite(a).all():
        raise MatrixError(
            f"{function}: a has elements that are not finite, but must have finite ones for "
            "singular values!"
        )


def copied(a: np.ndarray, workspace: Function) -> np.ndarray:
    """Return a copy in C order, in memory from a workspace."""
    copy: np.ndarray = workspace(a.shape)
    np.copyto(copy, a)
    return copy


def many_small(a: np.ndarray) -> bool:
    """Tell whether `a` is left to NumPy's loops: a stack of small matrices, or an empty array."""
    return not a.size or (a.ndim > 2 and a.shape[-1] < FEWEST_ROWS)


def matrices(x: np.ndarray) -> Result:
    """Return the matrices of a C-contiguous stack, as views."""
    return (x,) if x.ndim == 2 else x.reshape(-1, *x.shape[-2:])


def log_diagonal(factor: np.ndarray) -> Result:
    """Sum the logarithms of the diagonal, half the logarithm of the determinant; for each matrix of
    a stack.
    """
    logarithms = np.log(factor.diagonal(0, -2, -1))
    if is_symbol(factor):
        return logarithms.sum(-1)
    return (
        float(logarithms.dot(ones(len(logarithms))))
        if logarithms.ndim == 1
        else np.add.reduce(logarithms, axis=-1)
    )


def outer(x: np.ndarray, y: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """``factor * x @ y.mT`` for matrices of columns, for stacks of them, or for two vectors."""
    out: np.ndarray
    if is_symbol(x) or is_symbol(y):
        out = x[:, None] * y if x.ndim == 1 else x @ y.mT
        return out if factor == 1.0 else factor * out
    if x.ndim == 1:  # added to zeros it takes half as long as a product
        out = np.zeros((len(x), len(y)))
        if out.size:
            add_outer(out, x, y, factor)
    elif x.ndim == 2 and x.size:
        out = np.empty((len(x), len(y)))
        blas().dgemm(factor, y.T, x.T, trans_a=True, c=out.T, overwrite_c=True)
    else:
        out = factor * x * y.mT if x.shape[-1] == 1 else factor * x @ y.mT
    return out


def add_outer(out: np.ndarray, x: np.ndarray, y: np.ndarray, factor: float = 1.0) -> None:
    """Add ``factor * x @ y.T`` of matrices of columns, or of two vectors, to a C-contiguous matrix
    in place.
    """
    if x.ndim == 1:
        blas().dger(factor, y, x, 1, 1, out.T, 1, 1, 1)
    else:
        blas().dgemm(factor, y, x, 1.0, out.T, trans_b=True, overwrite_c=True)


def folded_outer(x: np.ndarray, y: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """`outer` of two arrays of one shape, folded onto the lower triangle."""
    if x.ndim > 2 or not x.size or is_symbol(x) or is_symbol(y):
        return to_triangle(outer(x, y, factor))
    n = len(x)
    out = np.zeros((n, n))
    if x.ndim == 1:  # in Fortran's order it is the upper triangle
        blas().dsyr2(factor, x, y, 0, 1, 0, 1, 0, n, out.T, 1)
    else:
        blas().dsyr2k(factor, x.T, y.T, trans=True, c=out.T, overwrite_c=True)
    return half_diagonal(out)  # type: ignore[no-any-return]


def lower_outer(x: np.ndarray, y: np.ndarray, factor: float = 1.0) -> np.ndarray:
    """Compute the lower triangle of ``factor * x @ y.mT``, for two arrays of one shape, with less
    work for the upper one.
    """
    if is_symbol(x) or is_symbol(y):
        return factorisations.triangle(outer(x, y), factor=factor)  # type: ignore[no-any-return]
    if x.ndim == 1 or (x.ndim == 2 and (x.shape[1] == 1 or len(x) <= TILE)):
        return clear_above(outer(x, y, factor))
    x = factor * x
    product: Function = np.multiply if x.shape[-1] == 1 else np.matmul
    shape = (*x.shape[:-1], x.shape[-2])
    return lower_triangle(
        shape, lambda i, j, out: product(x[..., i:j, :], y[..., :j, :].mT, out=out)
    )


def product(x: np.ndarray, y: np.ndarray) -> Result:
    """``x @ y``; of two small matrices in less than half the time."""
    return x.dot(y) if x.ndim == y.ndim == 2 and type(y) is np.ndarray else x @ y


# Systems of equations


def solve_each(
    one: Function, factor: tuple[Operand, ...], b: Operand, vector: bool = False
) -> Result:
    """Solve, with ``one(*factor, b)`` for a single matrix, the systems of a stack of matrices and a
    stack of right-hand sides.

    The arrays of the factor have the leading axes of the matrices. With `vector` the last axis of
    `b` belongs to a vector."""
    a = factor[0]
    if a.ndim == 2 >= b.ndim and b.size:
        return one(*factor, b)
    if vector:
        return np.array(solve_each(one, factor, b[..., None])[..., 0])
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*stack, *b.shape[-2:]))
    if not x.size:
        return x
    if a.ndim == 2:  # one matrix for all: their columns side by side
        columns = np.moveaxis(b, -2, 0)
        x[...] = np.moveaxis(
            one(a, *factor[1:], columns.reshape(len(a), -1)).reshape(columns.shape), 0, -2
        )
        return x
    parts = [np.broadcast_to(part, stack + part.shape[a.ndim - 2 :]) for part in factor]
    b = np.broadcast_to(b, x.shape)
    for index in np.ndindex(stack):
        x[index] = one(*(part[index] for part in parts), b[index])
    return x


def triangular_solve(
    a: Operand,
    b: Operand,
    lower: bool,
    trans: bool = False,
    unit: bool = False,
    *,
    right: bool = False,
    vector: bool = False,
) -> Result:
    """``inv(a) @ b``, or ``b @ inv(a)`` with `right`; a zero on the diagonal gives inf and nan, not
    an error.
    """
    if is_symbol(a) or is_symbol(b):
        if unit:
            refuse()
        if right:
            return triangular_solve(a, b.mT, lower, not trans).mT
        return factorisations.solve_lower(a if lower else a.mT, b, trans == lower)
    if a.ndim == 2 and b.ndim == 1 and b.size:  # with keywords the call would take 0.2 us more
        return blas().dtrsv(a.T, b, 1, 0, not lower, not trans, unit)
    if a.ndim > 2 and a.shape[-1] < FEWEST_ROWS and math.prod(a.shape[:-2]) > a.shape[-1]:
        if vector:
            return _substituted(a, b[..., None], lower, trans, unit)[..., 0].copy()
        # From the right the transposes solve the transposed system.
        x = _substituted(a, b.mT if right else b, lower, trans != right, unit)
        return np.array(x.mT, order="C") if right else x

    def one(a: Operand, b: Operand) -> Result:
        x = np.array(b, order="C")
        blas().dtrsm(1.0, a.T, x.T, not right, not lower, trans, unit, 1)
        return x

    return solve_each(one, (a,), b, vector)


@np.errstate(all="ignore")
def _substituted(a: np.ndarray, b: np.ndarray, lower: bool, trans: bool, unit: bool) -> np.ndarray:
    """Solve with many small triangular matrices, row by row for all of them at once: for thousands
    in a tenth of the time.
    """
    a, rows = (a.mT if trans else a), range(a.shape[-1])
    forwards = lower != trans
    x = np.array(
        np.broadcast_to(b, np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]),
        order="C",
    )
    for i in rows if forwards else reversed(rows):
        done = slice(0, i) if forwards else slice(i + 1, None)
        if done != slice(0, 0):
            x[..., i, :] -= (a[..., i : i + 1, done] @ x[..., done, :])[..., 0, :]
        if not unit:
            x[..., i, :] /= a[..., i, i, None]
    return x


class LU(NamedTuple):
    """LU factors of matrices: `lu` seen by LAPACK is the factor of the transpose."""

    lu: np.ndarray
    pivots: np.ndarray
    singular: bool
    """Whether any of the matrices is exactly singular."""

    @property
    def diagonal(self) -> np.ndarray:
        return self.lu.diagonal(0, -2, -1)


def lu_factor(a: np.ndarray, workspace: Function = np.empty, b: object = None) -> LU | None:
    """Compute the LU factors, to solve for `b`; return None for what is left to NumPy's loops,
    which factorise again in the reverse pass: stacks of small matrices, and symbols.
    """
    if is_symbol(a) or is_symbol(b):
        factorisations.unrolled(a)
        return None
    if many_small(a):
        return None
    dgetrf = lapack().dgetrf
    if a.ndim == 2:
        lu, pivots, info = _factorised(dgetrf, a, workspace)
        return LU(lu, pivots, info > 0)
    lu, singular = copied(a, workspace), False
    pivots = np.empty(a.shape[:-1], np.int32)
    for matrix, row in zip(matrices(lu), pivots.reshape(-1, a.shape[-1]), strict=True):
        _, row[:], info = dgetrf(matrix.T, overwrite_a=True)
        singular |= info > 0
    return LU(lu, pivots, singular)


def _factorised(routine: Function, a: np.ndarray, workspace: Function, *options: int) -> Result:
    """Call a routine of LAPACK for a single matrix; return the factor, in C order, and the other
    results. A large factor is written into a workspace.
    """
    if a.size <= LARGE:  # it makes the copy itself
        factor, *others = routine(a.T, *options, 0)
        return factor.T, *others
    factor = copied(a, workspace)
    return factor, *routine(factor.T, *options, 1)[1:]


def _permutation_sign(factor: LU) -> Result:
    moved = factor.pivots != np.arange(factor.pivots.shape[-1])
    swaps = np.count_nonzero(moved) if moved.ndim == 1 else np.add.reduce(moved, axis=-1)
    return 1.0 - 2.0 * (swaps % 2)


@np.errstate(over="ignore", invalid="ignore")
def lu_det(factor: LU) -> Result:
    """Compute the determinants; from logarithms if the product, or a part of it, leaves the range
    of a float.
    """
    running = np.multiply.accumulate(factor.diagonal, axis=-1)
    if is_safe_divisor(running):
        return _permutation_sign(factor) * running[..., -1]
    return lu_sign(factor) * np.exp(lu_logabsdet(factor))


def lu_sign(factor: LU) -> Result:
    """Compute the signs of the determinants."""
    return _permutation_sign(factor) * np.multiply.reduce(np.sign(factor.diagonal), axis=-1)


def lu_logabsdet(factor: LU) -> Result:
    """Compute the logarithms of the absolute values of the determinants."""
    size = np.abs(factor.diagonal)
    if not factor.singular:
        return np.add.reduce(np.log(size), axis=-1)
    with np.errstate(divide="ignore"):
        return np.add.reduce(np.log(size), axis=-1)


def lu_inverse(factor: LU) -> np.ndarray:
    """Compute the inverses; nan for a singular matrix."""
    x, n = np.array(factor.lu), factor.lu.shape[-1]
    dgetri = lapack().dgetri
    for matrix, row in zip(matrices(x), matrices(factor.pivots[..., None, :]), strict=True):
        # SciPy's default workspace is too small for LAPACK to work in blocks.
        if dgetri(matrix.T, row[0], lwork=TILE * n, overwrite_lu=True)[1]:
            matrix[...] = np.nan
    return x


def _is_small(b: Operand) -> Result:
    """Tell whether one call of LAPACK solves for `b`: a vector, or a matrix so small that
    transposing it costs less than a second call.
    """
    return b.size > 0 and (b.ndim == 1 or (b.ndim == 2 and b.size <= TILE**2))


def _in_c_order(x: Operand) -> Result:
    return x if x.ndim == 1 else x.copy()


def lu_solve(factor: LU, b: Operand, vector: bool, trans: bool = False) -> Result:
    """Solve with the matrices, or with their transposes."""
    if factor.lu.ndim == 2 and _is_small(b):
        return _in_c_order(lapack().dgetrs(factor.lu.T, factor.pivots, b, not trans)[0])

    def one(lu: Plain, pivots: Plain, b: Operand) -> Result:
        # With a^T = P L U, x = P L^{-T} U^{-T} b, and U^{-1} L^{-1} P^T b for the transpose; from
        # the right, for the columns of x are rows of what LAPACK sees.
        order = _row_order(pivots)
        x = np.ascontiguousarray(np.take(b, order, axis=0)) if trans else np.array(b, order="C")
        for lower in (True, False) if trans else (False, True):
            blas().dtrsm(
                1.0, lu.T, x.T, side=True, lower=lower, trans_a=trans, diag=lower, overwrite_b=True
            )
        if not trans:
            x[order] = x.copy()
        return x

    return solve_each(one, factor[:2], b, vector)


def _row_order(pivots: Plain) -> list[int]:
    """Return the permutation made by swapping each row in turn with the row of its pivot."""
    order = list(range(len(pivots)))
    for i, p in enumerate(pivots.tolist()):
        order[i], order[p] = order[p], order[i]
    return order


# Positive definite matrices


def cholesky_factor(
    function: str, a: np.ndarray, workspace: Function = np.empty, name: str = "a"
) -> np.ndarray:
    """Compute the lower Cholesky factors; raise for a matrix that has none. Only the lower triangle
    is read.
    """
    if is_symbol(a):
        return factorisations.cholesky(a)  # type: ignore[no-any-return]
    if a.ndim == 2 and a.size:
        factor, info = _factorised(lapack().dpotrf, a, workspace, 0, 1)
        diagonal = factor.diagonal()
        # LAPACK lets nan pass. It is in the sum if it is anywhere.
        if info or not (math.isfinite(diagonal.dot(diagonal)) or np.isfinite(diagonal).all()):
            raise _indefinite(function, a, name)
        return factor  # type: ignore[no-any-return]
    if many_small(a):
        try:
            factor = np.linalg.cholesky(a)
        except np.linalg.LinAlgError:
            raise _indefinite(function, a, name) from None
    else:
        factor = copied(a, workspace)
        for matrix in matrices(factor):
            if lapack().dpotrf(matrix.T, lower=False, clean=True, overwrite_a=True)[1]:
                raise _indefinite(function, a, name)
    if not np.isfinite(factor.diagonal(0, -2, -1)).all():
        raise _indefinite(function, a, name)
    return factor  # type: ignore[no-any-return]


def spd_factor(
    function: str, a: np.ndarray, workspace: Function = np.empty, name: str = "a"
) -> np.ndarray:
    """Compute the lower Cholesky factors; raise unless the matrices are symmetric."""
    if is_symbol(a) and a.ndim > 2:
        refuse()
    check_symmetric(function, a, name)
    return cholesky_factor(function, a, workspace, name)


def _indefinite(function: str, a: np.ndarray, name: str) -> MatrixError:
    for index in np.ndindex(a.shape[:-2]):
        try:
            if not np.isfinite(np.linalg.cholesky(a[index])).all():
                break
        except np.linalg.LinAlgError:
            break
    matrix = np.tril(a[index])
    if np.isfinite(matrix).all():
        what = f"has the eigenvalue {float(np.linalg.eigvalsh(matrix)[0]):.4g}"
    else:
        what = "has elements that are not finite"
    return MatrixError(
        f"{function}: {name}{place_of(index)} {what}, but must be positive definite!"
    )


def cholesky_solve(factor: Plain, b: Operand, vector: bool) -> Result:
    """Solve with the matrices whose lower Cholesky factor is `factor`."""
    if is_symbol(factor) or is_symbol(b):
        half = factorisations.solve_lower(factor, b)
        return factorisations.solve_lower(factor, half, transposed=True)
    if factor.ndim == 2 and _is_small(b):
        return _in_c_order(lapack().dpotrs(factor.T, b)[0])

    def one(factor: Plain, b: Operand) -> Result:
        half = triangular_solve(factor, b, lower=True)
        return triangular_solve(factor, half, lower=True, trans=True)

    return solve_each(one, (factor,), b, vector)


def inverse_triangle(factor: np.ndarray) -> np.ndarray:
    """Compute, from a lower Cholesky factor, the lower triangle of the inverse of its matrix; zeros
    above. For a symbol, compute the whole inverse.
    """
    if is_symbol(factor):
        return factorisations.inverse_lower(factor)  # type: ignore[no-any-return]
    x = np.array(factor, order="C")
    if x.ndim == 2 and x.size:
        lapack().dpotri(x.T, 0, 1)
    elif x.size:
        for matrix in matrices(x):
            lapack().dpotri(matrix.T, lower=False, overwrite_c=True)
    return x


def cholesky_adjoint(factor: np.ndarray, g: np.ndarray) -> np.ndarray:
    r"""Compute the adjoint of a matrix from its lower Cholesky factor's, on the lower triangle.

    Block by block, from the end, undo what the factorisation does: with D a block on the diagonal
    of the factor, R what stands left of it, C below it and B below R, it sets ``D D^T = A_D - R
    R^T`` and ``C D^T = A_C - B R^T``."""
    n = factor.shape[-1]
    if n <= TILE or is_symbol(factor):
        return half_triangle(_block_adjoint(factor, g))
    c = np.array(g, order="C")
    for k in range(n, 0, -TILE):
        j = max(0, k - TILE)
        block, left = factor[..., j:k, j:k], factor[..., j:k, :j]
        if k < n:
            below = c[..., k:, j:k]
            below[...] = triangular_solve(block, below, lower=True, right=True)
            c[..., k:, :j] -= below @ left
            c[..., j:k, :k] -= below.mT @ factor[..., k:, :k]
        c[..., j:k, j:k] = s = _block_adjoint(block, c[..., j:k, j:k])
        if j:
            c[..., j:k, :j] -= s @ left
    return half_triangle(c)


def _block_adjoint(factor: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Twice the symmetric adjoint: ``L^{-T} Phi(L^T G) L^{-1}`` and its transpose, Phi the lower
    triangle with halved diagonal.
    """
    phi = half_triangle(factor.mT @ tril(g))
    left = triangular_solve(factor, phi, lower=True, trans=True)
    # The transpose of the first, for which LAPACK is faster from the left.
    s = triangular_solve(factor, left.mT, lower=True, trans=True)
    return s + s.mT  # type: ignore[no-any-return]
