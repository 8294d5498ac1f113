"""Matrices made of vectors and of smaller matrices: those of Toeplitz and Hankel, circulants,
companions, blocks.
"""

from __future__ import annotations

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_choice, integer, misfit
from varmat.typing import Operand, Result, array_valued

__all__ = [
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "hankel",
    "khatri_rao",
    "toeplitz",
]


def check_vector(function: str, name: str, x: Operand, least: int = 0) -> Result:
    """Check that an operand is a vector with at least `least` elements, and return it."""
    x = as_operand(x, f"{function}: {name}")
    if np.ndim(x) != 1 or np.size(x) < least:
        rule = (
            "a vector" if not least else f"a vector of at least {least} element{'s' * (least > 1)}"
        )
        raise misfit(function, name, np.shape(x), f"be {rule}")
    return x


@array_valued
def toeplitz(c: Operand, r: Operand = None) -> Result:
    """Make the matrix with constant diagonals: `scipy.linalg.toeplitz`.

    Parameters
    ----------
    c : array_like, shape (m,)
        The first column.
    r : array_like, shape (n,), optional
        The first row, whose first element is not read; by default `c`, which makes the
        matrix symmetric.

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If `c` or `r` is not a vector, or is empty.

    Notes
    -----
    The derivative of an element of `c` or `r` is the sum along its diagonal. Systems with such a
    matrix are solved by `solve_toeplitz`, products made by `matmul_toeplitz`, both without making
    it.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: np.sum(vm.toeplitz(c)), np.array([1.0, 2.0, 3.0]))
    array([3., 4., 2.])
    """
    c = check_vector("toeplitz", "c", c, 1)
    r = c if r is None else check_vector("toeplitz", "r", r, 1)
    m, n = np.size(c), np.size(r)
    return np.concatenate([c[::-1], r[1:]])[m - 1 - np.arange(m)[:, None] + np.arange(n)]


@array_valued
def hankel(c: Operand, r: Operand = None) -> Result:
    """Make the matrix with constant antidiagonals: `scipy.linalg.hankel`.

    Parameters
    ----------
    c : array_like, shape (m,)
        The first column.
    r : array_like, shape (n,), optional
        The last row, whose first element is not read; by default zeros, as many as `c` has
        elements.

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If `c` or `r` is not a vector, or is empty.

    Notes
    -----
    The derivative of an element of `c` or `r` is the sum along its antidiagonal.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: np.sum(vm.hankel(c)), np.array([1.0, 2.0, 3.0]))
    array([1., 2., 3.])
    """
    c = check_vector("hankel", "c", c, 1)
    r = np.zeros(np.shape(c)) if r is None else check_vector("hankel", "r", r, 1)
    return np.concatenate([c, r[1:]])[np.arange(np.size(c))[:, None] + np.arange(np.size(r))]


@array_valued
def circulant(c: Operand) -> Result:
    """Make the matrix whose columns are each the column before, moved down by one place:
    `scipy.linalg.circulant`.

    Parameters
    ----------
    c : array_like, shape (n,)
        The first column.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `c` is not a vector.

    Notes
    -----
    The derivative of an element of `c` is the sum over the elements that repeat it. Systems are
    solved by `solve_circulant`.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.8.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: vm.circulant(c)[0] @ np.array([1.0, 10.0, 100.0]), np.zeros(3))
    array([  1., 100.,  10.])
    """
    c = check_vector("circulant", "c", c)
    n = np.size(c)
    return c[(np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


@array_valued
def companion(a: Operand) -> Result:
    """Make the companion matrix of a polynomial, whose eigenvalues are its roots:
    `scipy.linalg.companion`.

    Parameters
    ----------
    a : array_like, shape (n,), n > 1
        The coefficients, the highest power first; that one is not zero.

    Returns
    -------
    VarMat, shape (n - 1, n - 1)

    Raises
    ------
    ShapeError
        If `a` is not a vector, or has fewer than two elements.

    Notes
    -----
    The first row is ``-a[1:] / a[0]``, and below it an identity; only the row has a derivative.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 7.4.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(vm.companion(a)), np.array([2.0, 1.0, 3.0]))
    array([ 1. , -0.5, -0.5])
    """
    a = check_vector("companion", "a", a, 2)
    n = np.size(a) - 1
    return np.concatenate([np.reshape(-a[1:] / a[0], (1, n)), np.eye(n - 1, n)])


@array_valued
def block_diag(*arrs: Operand) -> Result:
    """Make the matrix with given blocks along its diagonal, and zeros elsewhere:
    `scipy.linalg.block_diag`.

    Parameters
    ----------
    *arrs : array_like, at most two axes each
        A vector is a row, a scalar a block of one element.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If a block has more than two axes.

    Notes
    -----
    The adjoint of a block is its part of the adjoint of the result.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: vm.block_diag(x, [[1.0]])[0, 1], np.ones((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    blocks = []
    for i, x in enumerate(arrs):
        x = as_operand(x, f"block_diag: block {i}")
        if np.ndim(x) > 2:
            raise misfit(
                "block_diag", f"block {i}", np.shape(x), "be a matrix, a vector or a scalar"
            )
        blocks.append(x if np.ndim(x) == 2 else np.reshape(x, (1, -1)))
    if not blocks:
        return np.zeros((1, 0))
    before, total, rows = 0, sum(np.shape(x)[1] for x in blocks), []
    for x in blocks:
        m, n = np.shape(x)
        rows.append(
            np.concatenate([np.zeros((m, before)), x, np.zeros((m, total - before - n))], axis=1)
        )
        before += n
    return np.concatenate(rows)


@array_valued
def khatri_rao(a: Operand, b: Operand) -> Result:
    """Compute the Kronecker products of the columns of two matrices: `scipy.linalg.khatri_rao`.

    Parameters
    ----------
    a : array_like, shape (m, k)
    b : array_like, shape (n, k)

    Returns
    -------
    VarMat, shape (m * n, k)

    Raises
    ------
    ShapeError
        If an operand is not a matrix, or they have different numbers of columns.

    Notes
    -----
    The derivative follows from the products of elements.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 12.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(vm.khatri_rao(a, [[1.0, 2.0], [3.0, 4.0]])), np.ones((1, 2)))
    array([[4., 6.]])
    """
    a, b = as_operand(a, "khatri_rao: a"), as_operand(b, "khatri_rao: b")
    if np.ndim(a) != 2 or np.ndim(b) != 2 or np.shape(a)[1] != np.shape(b)[1]:
        shapes = f"a has shape {np.shape(a)}, b has shape {np.shape(b)}"
        raise ShapeError(
            f"khatri_rao: {shapes}, but they must be matrices with the same number of columns!"
        )
    return np.reshape(a[:, None, :] * b, (np.shape(a)[0] * np.shape(b)[0], np.shape(a)[1]))


@array_valued
def convolution_matrix(a: Operand, n: int, mode: str = "full") -> Result:
    """Make the matrix whose product with a vector is the convolution of `a` with it:
    `scipy.linalg.convolution_matrix`.

    Parameters
    ----------
    a : array_like, shape (m,)
    n : int
        The length of the vector.
    mode : {'full', 'same', 'valid'}
        As for `numpy.convolve`.

    Returns
    -------
    VarMat, with `n` columns

    Raises
    ------
    DomainError
        If `mode` is unknown, or `n` not positive.
    ShapeError
        If `a` is not a vector, or is empty.

    Notes
    -----
    The derivative of an element of `a` is the sum along its diagonal.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.sum(vm.convolution_matrix(a, 3, "valid")), np.array([1.0, 2.0]))
    array([2., 2.])
    """
    a = check_vector("convolution_matrix", "a", a, 1)
    n = integer("convolution_matrix", "n", n)
    if n < 1:
        raise DomainError(f"convolution_matrix: n is {n}, but must be at least 1!")
    check_choice("convolution_matrix", "mode", mode, "full", "same", "valid")
    m, less = np.size(a), min(n, np.size(a)) - 1
    first = {"full": 0, "same": less // 2, "valid": less}[mode]
    rows = m + n - 1 - {"full": 0, "same": less, "valid": 2 * less}[mode]
    lag = first + np.arange(rows)[:, None] - np.arange(n)
    inside = (lag >= 0) & (lag < m)
    return np.where(inside, a[np.where(inside, lag, 0)], 0.0)
