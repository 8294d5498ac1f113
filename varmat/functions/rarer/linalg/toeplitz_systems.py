"""Products and systems with Toeplitz and circulant matrices, which are given by a column and a row
and never made as a whole.
"""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_columns, check_values, misfit
from varmat.functions.linalg.lapack import MatrixError
from varmat.functions.rarer.linalg.structured_matrices import check_vector
from varmat.functions.rarer.signals.nd_convolutions import convolve
from varmat.plain_arrays import scipy_linalg
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["matmul_toeplitz", "solve_circulant", "solve_toeplitz"]


def _column_and_row(function: str, c_or_cr: Operand) -> tuple[Result, Result]:
    """Return the first column and row; a tuple has both."""
    if isinstance(c_or_cr, tuple):
        c, r = c_or_cr
        return check_vector(function, "c", c, 1), check_vector(function, "r", r, 1)
    c = check_vector(function, "c", c_or_cr, 1)
    return c, c


@array_valued
def matmul_toeplitz(c_or_cr: Operand, x: Operand) -> Result:
    """Multiply a Toeplitz matrix by a vector or a matrix, by convolution:
    `scipy.linalg.matmul_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like of shape (m,), or a tuple of two such, of shapes (m,) and (n,)
        The first column, and the first row, see `toeplitz`.
    x : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, shape (m,) or (m, k)

    Raises
    ------
    ShapeError
        If column or row is not a vector, or `x` has not `n` rows.

    Notes
    -----
    The derivative follows from the convolution, see `convolve`.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: vm.matmul_toeplitz(c, np.array([1.0, 2.0, 4.0]))[1], np.zeros(3))
    array([2., 5., 0.])
    """
    c, r = _column_and_row("matmul_toeplitz", c_or_cr)
    x = as_operand(x, "matmul_toeplitz: x")
    m, n = np.size(c), np.size(r)
    check_columns("matmul_toeplitz", "x", x, n)
    diagonals = np.concatenate([r[:0:-1], c])
    if np.ndim(x) == 1:
        return convolve(diagonals, x)[n - 1 : n - 1 + m]
    return convolve(np.reshape(diagonals, (-1, 1)), x)[n - 1 : n - 1 + m]


@array_valued
def solve_toeplitz(c_or_cr: Operand, b: Operand) -> Result:
    """Solve a system with a Toeplitz matrix by Levinson's recursion: `scipy.linalg.solve_toeplitz`.

    Parameters
    ----------
    c_or_cr : array_like of shape (n,), or a tuple of two such
        The first column, and the first row, see `toeplitz`.
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, of the shape of `b`

    Raises
    ------
    ShapeError
        If column or row is not a vector, or they or `b` have not as many elements.
    DomainError
        If a leading block of the matrix is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`Z = T^{-T} \\bar X` the adjoint of `b` is :math:`Z`; column and row have the sums
    along the diagonals of :math:`-Z X^T`, by correlation. ``O(n^2)`` steps, as the value.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda b: np.sum(vm.solve_toeplitz(np.array([4.0, 1.0]), b)), np.ones(2))
    array([0.2, 0.2])
    """
    c, r = _column_and_row("solve_toeplitz", c_or_cr)
    b = as_operand(b, "solve_toeplitz: b")
    n = np.size(c)
    if np.size(r) != n:
        raise misfit("solve_toeplitz", "r", np.shape(r), f"have shape {np.shape(c)}, as c")
    check_columns("solve_toeplitz", "b", b, n)
    return toeplitz_solution(c, r, b)


def _levinson(c: Operand, r: Operand, b: Operand) -> Result:
    try:
        return np.array(scipy_linalg.solve_toeplitz((c, r), b)) if b.size else np.zeros(b.shape)
    except np.linalg.LinAlgError:
        raise MatrixError(
            "solve_toeplitz: a leading block of the matrix is singular, but must be invertible!"
        ) from None


@operation()
def toeplitz_solution(c: Plain, r: Plain, b: Plain) -> Plain:
    """Solve the system with this first column and row; the first element of the row is not read."""
    return _levinson(c, r, b)


# The result is called x, because r is the row.
@toeplitz_solution.reverse
def toeplitz_solution_reverse(
    g: Adjoint, x: Plain, c: Plain, r: Plain, b: Plain
) -> tuple[Thunk, ...]:
    z, n = _levinson(np.append(c[:1], r[1:]), c, g), c.size

    def along_diagonals(first: Operand, second: Operand) -> Result:
        """Compute the sums over j of ``first[j + k] second[j]``, for k = 0, ..., n - 1."""
        if first.ndim == 1:
            return np.correlate(first, second, "full")[n - 1 :]
        return np.sum(
            [np.correlate(p, q, "full")[n - 1 :] for p, q in zip(first.T, second.T, strict=True)],
            axis=0,
        )

    def of_r() -> Result:
        a = -along_diagonals(x, z)
        a[0] = 0.0
        return a

    return lambda: -along_diagonals(z, x), of_r, lambda: z


@toeplitz_solution.tangent
def toeplitz_solution_tangent(x: Result, c: Operand, r: Operand, b: Operand) -> tuple[Linear, ...]:
    nothing = np.zeros(np.shape(c))
    return (
        lambda t: -toeplitz_solution(c, r, matmul_toeplitz((t, nothing), x)),
        lambda t: -toeplitz_solution(c, r, matmul_toeplitz((nothing, t), x)),
        lambda t: toeplitz_solution(c, r, t),
    )


@array_valued
def solve_circulant(c: Operand, b: Operand) -> Result:
    """Solve a system with a circulant matrix by Fourier transforms: `scipy.linalg.solve_circulant`.

    Parameters
    ----------
    c : array_like, shape (n,)
        The first column, see `circulant`.
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, of the shape of `b`

    Raises
    ------
    ShapeError
        If `c` is not a vector, or `b` has not `n` rows.
    DomainError
        If an element of the Fourier transform of `c` is zero, or as small as rounding: then the
        matrix is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The transform of `b` is divided by the transform of `c`, for the derivative as well.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.8.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda b: vm.solve_circulant(np.array([4.0, 0.0]), b)[0], np.ones(2))
    array([0.25, 0.  ])
    """
    c, b = check_vector("solve_circulant", "c", c, 1), as_operand(b, "solve_circulant: b")
    n = np.size(c)
    check_columns("solve_circulant", "b", b, n)
    check_values(_check_spectrum, c)
    spectrum = np.fft.rfft(c)
    spectrum = spectrum if np.ndim(b) == 1 else np.reshape(spectrum, (-1, 1))
    return np.fft.irfft(np.fft.rfft(b, axis=0) / spectrum, n, axis=0)


def _check_spectrum(c: Operand) -> None:
    sizes = np.abs(np.fft.fft(c))
    if np.min(sizes) <= np.max(sizes) * c.size * np.finfo(float).eps:
        raise MatrixError("solve_circulant: the matrix is singular, but must be invertible!")
