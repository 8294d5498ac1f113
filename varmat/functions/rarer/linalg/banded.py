"""Systems with banded matrices, which are given by their diagonals and never made as a whole.

A banded matrix is stored as in LAPACK: a row for each diagonal, with the elements of a column in
one column. Elements of the storage that stand for none of the matrix are not read, and have no
derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import check_columns, in_the_name_of, integer, misfit, pair
from varmat.functions.linalg.lapack import MatrixError, cholesky_adjoint, lapack, triangular_solve
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["cho_solve_banded", "cholesky_banded", "solve_banded", "solveh_banded"]


def _check_bands(
    function: str, ab: Operand, rows: int | None, b: Operand = None, name: str = "ab"
) -> None:
    """Refuse what does not store a banded matrix, or a right-hand side that does not go with it."""
    if np.ndim(ab) != 2 or (np.shape(ab)[0] != rows if rows is not None else not np.shape(ab)[0]):
        rule = (
            f"a matrix with {rows} rows, one for each diagonal"
            if rows is not None
            else "a matrix with a row for each diagonal"
        )
        raise misfit(function, name, np.shape(ab), f"be {rule}")
    if b is not None:
        check_columns(function, "b", b, np.shape(ab)[1])


def _part(shift: int, n: int) -> tuple[slice, slice]:
    """Return rows and columns of the elements of an n by n matrix that are `shift` places below the
    diagonal.
    """
    row, column = min(max(shift, 0), n), min(max(-shift, 0), n)
    size = n - max(row, column)
    return slice(row, row + size), slice(column, column + size)


def _bands(x: np.ndarray, y: np.ndarray, upper: int, rows: int) -> np.ndarray:
    """Compute the diagonals of ``x @ y.T``, or of the product of vectors, in the storage of a
    banded matrix.
    """
    c = np.zeros((rows, x.shape[0]))
    for k in range(rows):
        i, j = _part(k - upper, x.shape[0])
        c[k, j] = x[i] * y[j] if x.ndim == 1 else np.einsum("ik,ik->i", x[i], y[j])
    return c


def _banded_product(ab: Operand, x: Operand, upper: int) -> Result:
    """Multiply a banded matrix by a vector or a matrix; differentiable."""
    total: Any = np.zeros(np.shape(x))
    for k in range(np.shape(ab)[0]):
        i, j = _part(k - upper, np.shape(x)[0])
        total = total + _moved_rows(ab[k, j], x, j, i)
    return total


def _moved_rows(factors: Operand, x: Operand, source: slice, target: slice) -> Result:
    """Multiply some rows of `x` by their factors, and move them; differentiable."""
    n, remainder = np.shape(x)[0], np.shape(x)[1:]
    rows = (factors[:, None] if remainder else factors) * x[source]
    return np.concatenate(
        [np.zeros((target.start, *remainder)), rows, np.zeros((n - target.stop, *remainder))]
    )


@array_valued
def solve_banded(l_and_u: tuple[int, int], ab: Operand, b: Operand) -> Result:
    """Solve a system with a banded matrix: `scipy.linalg.solve_banded`.

    Parameters
    ----------
    l_and_u : (int, int)
        The numbers of diagonals below and above the main one.
    ab : array_like, shape (l + u + 1, n)
        The diagonals, the highest first: ``ab[u + i - j, j]`` is the element in row i and column j.
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, of the shape of `b`

    Raises
    ------
    ShapeError
        If `ab` has not a row for each diagonal, or `b` not `n` rows.
    DomainError
        If the matrix is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`Z = A^{-T} \\bar X` the adjoint of `b` is :math:`Z`; the one of `ab` has the
    diagonals of :math:`-Z X^T`. The factor of the value serves the reverse pass, which takes as
    many steps as the value: ``O(n (l + u)^2)``.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> ab = np.array([[0.0, 1.0, 1.0], [4.0, 4.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(vm.solve_banded((0, 1), ab, b)), np.ones(3))
    array([0.25    , 0.1875  , 0.203125])
    """
    lower, upper = (
        integer("solve_banded", "l_and_u", x) for x in pair("solve_banded", "l_and_u", l_and_u)
    )
    with in_the_name_of("solve_banded"):
        return banded_solution(ab, b, lower=lower, upper=upper)


@operation()
def banded_solution(ab: Plain, b: Plain, *, lower: int, upper: int) -> Saved:
    """Solve the system, saving the factor that `dgbtrf` makes."""
    _check_bands("solve_banded", ab, lower + upper + 1, b)
    if not np.size(b):
        return Saved(np.zeros(b.shape), factor=None)
    n = ab.shape[1]
    # LAPACK wants room for what pivoting fills in, and must not find nan in elements that stand for
    # none of the matrix.
    room = np.zeros((2 * lower + upper + 1, n), order="F")
    for k in range(lower + upper + 1):
        j = _part(k - upper, n)[1]
        room[lower + k, j] = ab[k, j]
    factor, pivots, info = lapack().dgbtrf(room, lower, upper, overwrite_ab=True)
    if info > 0:
        raise MatrixError("solve_banded: the matrix is singular, but must be invertible!")
    return Saved(lapack().dgbtrs(factor, lower, upper, b, pivots)[0], factor=(factor, pivots))


@banded_solution.reverse
def banded_solution_reverse(
    g: Adjoint, r: Plain, ab: Plain, b: Plain, lower: int, upper: int, factor: Plain
) -> Adjoint:
    if factor is None:
        return np.zeros(ab.shape), np.zeros(b.shape)
    z = lapack().dgbtrs(factor[0], lower, upper, g, factor[1], trans=1)[0]
    return lambda: -_bands(z, r, upper, lower + upper + 1), lambda: np.ascontiguousarray(z)


@banded_solution.tangent
def banded_solution_tangent(
    r: Result, ab: Operand, b: Operand, lower: int, upper: int
) -> tuple[Linear, ...]:
    return (
        lambda t: -banded_solution(ab, _banded_product(t, r, upper), lower=lower, upper=upper),
        lambda t: banded_solution(ab, t, lower=lower, upper=upper),
    )


# --- positive definite ---


def _banded_factor(function: str, ab: np.ndarray, lower: bool) -> np.ndarray:
    """Compute the factor in the storage of its matrix, with zeros where nothing is stored."""
    room, width = np.zeros(ab.shape, order="F"), ab.shape[0] - 1
    for k in range(ab.shape[0]):
        j = _part(k if lower else k - width, ab.shape[1])[1]
        room[k, j] = ab[k, j]
    if not room.size:
        return room
    factor, info = lapack().dpbtrf(room, lower=int(lower), overwrite_ab=True)
    if info > 0:
        raise MatrixError(
            f"{function}: the leading block of size {info} is not positive definite, but must be!"
        )
    return np.ascontiguousarray(factor)


def _from_factor(factor: np.ndarray, b: np.ndarray, lower: bool) -> np.ndarray:
    if not b.size:
        return np.zeros(b.shape)
    return np.ascontiguousarray(lapack().dpbtrs(factor, b, lower=int(lower))[0])


@array_valued
def solveh_banded(ab: Operand, b: Operand, lower: bool = False) -> Result:
    """Solve a system with a symmetric positive definite banded matrix:
    `scipy.linalg.solveh_banded`.

    Parameters
    ----------
    ab : array_like, shape (u + 1, n)
        The main diagonal and those above it, which come first: ``ab[u + i - j, j]`` is the element
        in row i and column j. With `lower` the main diagonal is the first, and ``ab[i - j, j]`` the
        element.
    b : array_like, shape (n,) or (n, k)
    lower : bool
        Whether the diagonals are those below the main one.

    Returns
    -------
    VarMat, of the shape of `b`

    Raises
    ------
    ShapeError
        If `ab` is not a matrix, or `b` has not `n` rows.
    DomainError
        If the matrix is not positive definite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    As for `solve_banded`, but an element off the diagonal carries the derivative of both places it
    stands for.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> ab = np.array([[0.0, 1.0], [4.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(vm.solveh_banded(ab, b)), np.ones(2))
    array([0.2, 0.2])
    """
    return symmetric_banded_solution(ab, b, lower=bool(lower))


@operation()
def symmetric_banded_solution(ab: Plain, b: Plain, *, lower: bool) -> Saved:
    """Solve the system, saving the factor that `dpbtrf` makes."""
    _check_bands("solveh_banded", ab, None, b)
    factor = _banded_factor("solveh_banded", ab, lower)
    return Saved(_from_factor(factor, b, lower), factor=factor)


@symmetric_banded_solution.reverse
def symmetric_banded_solution_reverse(
    g: Adjoint, r: Plain, ab: Plain, b: Plain, lower: bool, factor: Plain
) -> tuple[Thunk, ...]:
    z, upper = _from_factor(factor, g, lower), 0 if lower else ab.shape[0] - 1

    def of_ab() -> Result:
        c = _bands(z, r, upper, ab.shape[0]) + _bands(r, z, upper, ab.shape[0])
        c[upper] *= 0.5
        return -c

    return of_ab, lambda: z


def _symmetric_times(ab: Operand, x: Operand, lower: bool) -> Result:
    """Multiply by a symmetric matrix, given one stored half; differentiable."""
    upper = 0 if lower else np.shape(ab)[0] - 1
    total = _banded_product(ab, x, upper)
    for k in range(np.shape(ab)[0]):
        if k != upper:
            i, j = _part(k - upper, np.shape(x)[0])
            total = total + _moved_rows(ab[k, j], x, i, j)
    return total


@symmetric_banded_solution.tangent
def symmetric_banded_solution_tangent(
    r: Result, ab: Operand, b: Operand, lower: bool
) -> tuple[Linear, ...]:
    return (
        lambda t: -symmetric_banded_solution(ab, _symmetric_times(t, r, lower), lower=lower),
        lambda t: symmetric_banded_solution(ab, t, lower=lower),
    )


@array_valued
def cholesky_banded(ab: Operand, lower: bool = False) -> Result:
    """Compute the Cholesky factor of a symmetric positive definite banded matrix:
    `scipy.linalg.cholesky_banded`.

    Parameters
    ----------
    ab : array_like, shape (u + 1, n)
        The main diagonal and those above it, see `solveh_banded`; with `lower` those below it.
    lower : bool

    Returns
    -------
    VarMat, shape (u + 1, n)
        The diagonals of the upper factor `U` of the matrix ``U.T @ U``, or with `lower` of
        the lower one. Elements that stand for none of the factor are zero.

    Raises
    ------
    ShapeError
        If `ab` is not a matrix.
    DomainError
        If the matrix is not positive definite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The reverse rule goes through blocks of columns from the last to the first [1]_.

    References
    ----------
    .. [1] Iain Murray, "Differentiation of the Cholesky decomposition", 2016, arXiv:1602.07527.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> log_determinant = lambda ab: 2.0 * np.sum(np.log(vm.cholesky_banded(ab)[-1]))
    >>> vm.gradient(log_determinant, np.array([[0.0, 1.0], [4.0, 4.0]])).round(12)
    array([[ 0.        , -0.13333333],
           [ 0.26666667,  0.26666667]])
    """
    ab = as_operand(ab, "cholesky_banded: ab")
    _check_bands("cholesky_banded", ab, None)
    if lower:
        return banded_cholesky(ab)
    # The upper factor is the transposed lower one; a diagonal is moved by its distance from the
    # main one.
    return _flipped(banded_cholesky(_flipped(ab, False)), True)


def _flipped(ab: Operand, to_upper: bool) -> Result:
    """Diagonals above the main one in the storage of those below, or the other way round."""
    m, n = np.shape(ab)
    rows = []
    for k in range(m):
        missing = np.zeros(min(k, n))
        row = ab[m - 1 - k] if not to_upper else ab[k]
        saved = row[: n - len(missing)] if to_upper else row[len(missing) :]
        rows.append(np.concatenate([missing, saved] if to_upper else [saved, missing]))
    return np.stack(rows[::-1] if to_upper else rows)


@operation()
def banded_cholesky(ab: Plain) -> Plain:
    """Compute the diagonals of the lower factor."""
    return _banded_factor("cholesky_banded", ab, True)


# At least this many columns of the factor are taken at once.
_COLUMNS = 48


@banded_cholesky.reverse
def banded_cholesky_reverse(g: Adjoint, r: Plain, ab: Plain) -> Adjoint:
    # Some columns of the factor are a triangle D and what stands below it, B: made by D D^T = A_D,
    # B D^T = A_B, and then B B^T was taken from the block below and to the right. This is undone
    # here, from the last columns to the first. Elements outside the band are zero; their adjoints
    # are not needed.
    width, n = ab.shape[0] - 1, ab.shape[1]
    size, c = max(_COLUMNS, width), np.zeros(ab.shape)
    for stop in range(n, 0, -size):
        start, end = max(0, stop - size), min(n, stop + width)
        i, j = np.arange(start, end)[:, None], np.arange(start, stop)
        band = np.clip(i - j, 0, width)
        inside = (i >= j) & (i - j <= width)
        factor, adjoint = (np.where(inside, x[band, j], 0.0) for x in (r, g))
        m, triangle = stop - start, factor[: stop - start]
        if end > stop:
            rows = np.arange(end - stop)
            later = np.where(
                rows[:, None] >= rows, c[np.clip(rows[:, None] - rows, 0, width), stop + rows], 0.0
            )
            below = adjoint[m:] - (later + later.T) @ factor[m:]
            adjoint[m:] = triangular_solve(triangle, below, lower=True, right=True)
            adjoint[:m] -= np.tril(adjoint[m:].T @ factor[m:])
        adjoint[:m] = cholesky_adjoint(triangle, adjoint[:m])
        where = np.nonzero(inside)
        c[band[where], start + where[1]] = adjoint[where]
    return c


@banded_cholesky.tangent
def banded_cholesky_tangent(r: Result, ab: Operand) -> Linear:
    return lambda t: banded_cholesky_rate(r, t)


@operation()
def banded_cholesky_rate(factor: Plain, t: Plain) -> Plain:
    """Compute the derivative of the lower factor along `t`, from the factor itself."""
    width, n = t.shape[0] - 1, t.shape[1]
    left = np.array(t)  # what is left of the rate of the matrix
    rate = np.zeros(t.shape)
    for k in range(n):
        d, size = factor[0, k], min(width, n - 1 - k)
        rate[0, k] = 0.5 * left[0, k] / d
        if size:
            column = factor[1 : size + 1, k]
            rate[1 : size + 1, k] = (left[1 : size + 1, k] - rate[0, k] * column) / d
            moved = np.multiply.outer(rate[1 : size + 1, k], column)
            for j in range(size):
                left[: size - j, k + 1 + j] -= moved[j:, j] + moved[j, j:]
    return rate


@banded_cholesky_rate.reverse
def banded_cholesky_rate_reverse(g: Adjoint, r: Plain, factor: Plain, t: Plain) -> Adjoint:
    width, n = t.shape[0] - 1, t.shape[1]
    of_left, of_factor, of_rate = np.zeros(t.shape), np.zeros(t.shape), np.array(g)
    for k in range(n - 1, -1, -1):
        d, size = factor[0, k], min(width, n - 1 - k)
        if size:
            column, below = factor[1 : size + 1, k], slice(1, size + 1)
            s = np.zeros((size, size))
            for j in range(size):
                s[j:, j] = of_left[: size - j, k + 1 + j]
            s = s + s.T
            z = (of_rate[below, k] - s @ column) / d
            of_factor[below, k] -= s @ r[below, k] + z * r[0, k]
            of_factor[0, k] -= z @ r[below, k]
            of_left[below, k] = z
            of_rate[0, k] -= z @ column
        of_left[0, k] = 0.5 * of_rate[0, k] / d
        of_factor[0, k] -= r[0, k] * of_rate[0, k] / d
    return of_factor, of_left


@banded_cholesky_rate.tangent
def banded_cholesky_rate_tangent(r: Result, factor: Plain, t: Operand) -> tuple[Linear, ...]:
    # By r L' + L r' = t: with the rate L' of the factor, r changes as if t changed by the opposite
    # of L' r' + r L'.
    def of_factor(rate: Operand) -> Result:
        return -banded_cholesky_rate(factor, _outer_bands(rate, r))

    return of_factor, lambda u: banded_cholesky_rate(factor, u)


def _outer_bands(x: Operand, y: Operand) -> Result:
    """Compute the diagonals of ``X @ Y.T + Y @ X.T`` of two lower triangles, in the storage of a
    banded matrix; differentiable.
    """
    m, n = np.shape(x)
    rows = []
    for k in range(m):
        total: np.ndarray = np.zeros(n)
        for p in range(m - k):  # elements (j + k, j - p) and (j, j - p)
            count = max(n - p - k, 0)
            if count:
                part = x[p + k, :count] * y[p, :count] + y[p + k, :count] * x[p, :count]
                total = total + np.concatenate([np.zeros(p), part, np.zeros(n - p - count)])
        rows.append(total)
    return np.stack(rows)


@array_valued
def cho_solve_banded(cb_and_lower: Operand, b: Operand) -> Result:
    """Solve a system of the factor that `cholesky_banded` makes: `scipy.linalg.cho_solve_banded`.

    Parameters
    ----------
    cb_and_lower : (array_like of shape (u + 1, n), bool)
        The diagonals of the factor, and whether it is the lower one.
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, of the shape of `b`

    Raises
    ------
    ShapeError
        If the factor is not a matrix, or `b` has not `n` rows.
    DomainError
        If there is a zero on the diagonal of the factor; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    It is `solve_banded` with the lower triangle and then with the upper one, and so is the
    derivative.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> factor = vm.cholesky_banded(np.array([[0.0, 1.0], [4.0, 4.0]]))
    >>> vm.gradient(lambda b: np.sum(vm.cho_solve_banded((factor, False), b)), np.ones(2)).round(12)
    array([0.2, 0.2])
    """
    cb, lower = pair("cho_solve_banded", "cb_and_lower", cb_and_lower)
    cb, b = as_operand(cb, "cho_solve_banded: cb"), as_operand(b, "cho_solve_banded: b")
    _check_bands("cho_solve_banded", cb, None, b, "cb")
    low = cb if lower else _flipped(cb, False)
    width = np.shape(cb)[0] - 1
    return solve_banded((0, width), _flipped(low, True), solve_banded((width, 0), low, b))
