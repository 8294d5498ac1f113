"""The complex Schur form of real and complex matrices."""

from __future__ import annotations

import numpy as np

from varmat.complexes.linear_algebra import square_matrix
from varmat.complexes.operation import adjoint, complex_operation
from varmat.complexes.variable import complex_pair_valued, complex_valued
from varmat.functions.checks import misfit
from varmat.typing import Adjoint, Linear, Operand, Plain, Result

__all__ = ["complex_schur_decompose", "complex_schur_decompose_t", "complex_schur_decompose_u"]


@complex_operation(results="cc")
def complex_schur(a: Operand) -> Result:
    """Compute the unitary and the triangular factor of a square matrix."""
    from scipy.linalg import schur

    t, u = schur(a, output="complex", check_finite=False)
    return u, t


# Let A = U T U^H and M = U^H dA U. Then dU = U K with K skew-Hermitian, and dT = M + T K - K T, of
# which the part below the diagonal is zero. That determines K below the diagonal, column by column
# from the left; its diagonal, the phases, is taken to be zero.
@complex_schur.push
def complex_schur_push(r: Plain, a: Plain) -> Linear:
    u, t = r
    n = np.shape(a)[-1]

    def push(tangent: Operand) -> Result:
        m = adjoint(u) @ tangent @ u
        columns: list[Plain] = []
        for j in range(n - 1):
            b = m[j + 1 :, j]
            for k, column in enumerate(columns):
                b = b - column[j - k :] * t[k, j]
            system = t[j, j] * np.eye(n - 1 - j) - t[j + 1 :, j + 1 :]
            columns.append(np.linalg.solve(system, b))
        padded = [
            np.concatenate([np.zeros(j + 1), column])
            for j, column in enumerate([*columns, np.zeros(0)])
        ]
        below = np.stack(padded, axis=1)
        k = below - adjoint(below)
        return u @ k, np.triu(m + t @ k - k @ t)

    return push


@complex_schur.pull
def complex_schur_pull(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    (gu, gt), (u, t) = g, r
    n, gt = len(t), np.triu(gt)
    gk = adjoint(u) @ gu + adjoint(t) @ gt - gt @ adjoint(t)
    below = np.tril(gk - adjoint(gk), -1)
    gm = gt.astype(complex)
    for j in reversed(range(n - 1)):
        system = t[j, j] * np.eye(n - 1 - j) - t[j + 1 :, j + 1 :]
        c = np.linalg.solve(adjoint(system), below[j + 1 :, j])
        gm[j + 1 :, j] = c
        below[j + 1 :, :j] -= np.multiply.outer(c, np.conjugate(t[:j, j]))
    return lambda: u @ gm @ adjoint(u)


@complex_pair_valued
def complex_schur_decompose(a: Operand) -> tuple[Result, Result]:
    """Compute the complex Schur form of a square matrix: unitary `u` and upper triangular `t` with
    ``a = u @ t @ u.conj().T``.

    Parameters
    ----------
    a : array_like, shape (n, n), real or complex

    Returns
    -------
    u, t : ComplexVar, shape (n, n)
        The eigenvalues are on the diagonal of `t`, in the order of LAPACK.

    Raises
    ------
    ShapeError
        If `a` is not a square matrix, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The columns of `u` may be multiplied with numbers of modulus one, and `t` accordingly:
    derivatives follow a smooth choice, and are right for functions that do not depend on it. With
    :math:`M = U^H dA\\, U` they are :math:`dU = U K` and :math:`dT = M + T K - K T`, where the
    skew-Hermitian `K` makes the part of `dT` below the diagonal zero. At equal eigenvalues they
    do not exist.

    References
    ----------
    Golub and Van Loan, Matrix Computations, section 7.1: the Schur decomposition.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> u, t = vm.complex_schur_decompose(vm.var([[0.0, -1.0], [1.0, 0.0]]))
    >>> np.imag(np.diagonal(t))
    VarMat([ 1., -1.])
    """
    return complex_schur(_matrix("complex_schur_decompose", a))  # type: ignore[no-any-return]


@complex_valued
def complex_schur_decompose_u(a: Operand) -> Result:
    """Compute the unitary factor of `complex_schur_decompose`.

    Parameters
    ----------
    a : array_like, shape (n, n), real or complex

    Returns
    -------
    ComplexVar, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not a square matrix, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The derivative is as for `complex_schur_decompose`.

    References
    ----------
    * Stan Functions Reference, "Complex matrix operations".
    * Golub and Van Loan, Matrix Computations, section 7.1.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.abs(vm.complex_schur_decompose_u(vm.var([[0.0, -1.0], [1.0, 0.0]])))[0]
    VarMat([0.70710678, 0.70710678])
    """
    return complex_schur(_matrix("complex_schur_decompose_u", a))[0]


@complex_valued
def complex_schur_decompose_t(a: Operand) -> Result:
    """Compute the triangular factor of `complex_schur_decompose`.

    Parameters
    ----------
    a : array_like, shape (n, n), real or complex

    Returns
    -------
    ComplexVar, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not a square matrix, or is empty.
    DomainError
        If `a` has elements that are not finite.

    Notes
    -----
    The derivative is as for `complex_schur_decompose`.

    References
    ----------
    * Stan Functions Reference, "Complex matrix operations".
    * Golub and Van Loan, Matrix Computations, section 7.1.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.imag(np.diagonal(vm.complex_schur_decompose_t(vm.var([[0.0, -1.0], [1.0, 0.0]]))))
    VarMat([ 1., -1.])
    """
    return complex_schur(_matrix("complex_schur_decompose_t", a))[1]


def _matrix(function: str, a: Operand) -> Result:
    a = square_matrix(function, a)
    if np.ndim(a) > 2:
        raise misfit(function, "a", np.shape(a), "be a square matrix")
    return a
