"""Decompositions under SciPy's names: triangular, polar and Schur factors, and the generalised
symmetric eigenproblem.
"""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_choice, check_values, in_the_name_of, misfit
from varmat.functions.linalg.cholesky import cholesky
from varmat.functions.linalg.eigenvalues import eigh as symmetric_eigh
from varmat.functions.linalg.lapack import MatrixError, check_finite, lapack
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.functions.rarer.linalg.matrix_equations import (
    check_matrix_of,
    check_one_square,
    solve_sylvester,
)
from varmat.plain_arrays import scipy_linalg
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued, pair_valued

__all__ = ["eigh", "eigvalsh", "lu", "orthogonal_procrustes", "polar_decompose", "schur"]


# --- triangular factors ---


def lu(a: Operand, permute_l: bool = False, p_indices: bool = False) -> Result:
    """Compute the factors of a matrix by elimination, ``a = p @ l @ u``: `scipy.linalg.lu`.

    Parameters
    ----------
    a : array_like, shape (m, n)
    permute_l : bool
        Return ``p @ l`` and ``u`` alone.
    p_indices : bool
        Return the permutation as an array of indices, so that ``a = l[p] @ u``.

    Returns
    -------
    p : ndarray
        The permutation, which has no derivative: a matrix, or indices. Not with `permute_l`.
    l : VarMat, shape (m, k)
        Lower triangular with ones on the diagonal, where k is the smaller one of m and n.
    u : VarMat, shape (k, n)
        Upper triangular.

    Raises
    ------
    ShapeError
        If `a` is not a matrix.
    DomainError
        If the first k columns of `a`, or the first k permuted rows, are singular, or
        `a` is not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    For a square matrix :math:`dL = L\\, \\mathrm{tril}_{-1}(M)` and :math:`dU =
    \\mathrm{triu}(M)\\, U`, with :math:`M = L^{-1} P^T dA\\, U^{-1}` [1]_. The permutation is
    constant; where two pivots are equal, the derivative belongs to the one that was chosen. For a
    linear system use `numpy.linalg.solve`.

    References
    ----------
    .. [1] S. F. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with
           application in optimum experimental design", 2010, arXiv:1001.1654.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[1.0, 2.0], [4.0, 2.0]])
    >>> vm.gradient(lambda a: vm.lu(a)[2][1, 1], a)
    array([[-0.5   ,  1.    ],
           [ 0.125 , -0.25  ]])
    """
    a = as_operand(a, "lu: a")
    check_matrix_of("lu", "a", a)
    order = np.array(check_values(_pivots, a), dtype=int)
    m, n = np.shape(a)
    k = min(m, n)
    permuted = a[order]
    low, up = elimination(permuted[:k, :k])
    if m > k:
        low = np.concatenate([low, solve_triangular(up, permuted[k:].T, trans=1).T])
    if n > k:
        up = np.concatenate(
            [up, solve_triangular(low, permuted[:, k:], lower=True, unit_diagonal=True)], axis=1
        )
    back = np.argsort(order)
    if permute_l:
        return low[back], up
    return (back if p_indices else np.eye(m)[:, order]), low, up


def _pivots(a: np.ndarray) -> tuple[int, ...]:
    """Return the rows in the order in which they are the pivots."""
    check_finite("lu", a)
    return tuple(np.argsort(scipy_linalg.lu(a, p_indices=True)[0]).tolist())


@operation()
def elimination(a: Plain) -> Plain:
    """Compute the triangular factors of a square matrix, without exchanging rows."""
    if not a.size:
        return np.array(a), np.array(a)
    factors, order, _ = lapack().dgetrf(a)
    # If pivots are equal but for rounding, LAPACK may choose another one in the permuted matrix.
    factors = factors if (order == np.arange(a.shape[0])).all() else _eliminated(a)
    if (np.diagonal(factors) == 0.0).any():
        raise MatrixError(
            "lu: a leading block of a is singular, so the LU factors are not differentiable!"
        )
    return np.tril(factors, -1) + np.eye(a.shape[0]), np.triu(factors)


def _eliminated(a: np.ndarray) -> np.ndarray:
    """Compute both factors in one matrix."""
    c = np.array(a)
    with np.errstate(divide="ignore", invalid="ignore"):
        for k in range(a.shape[0]):
            c[k + 1 :, k] /= c[k, k]
            c[k + 1 :, k + 1 :] -= np.multiply.outer(c[k + 1 :, k], c[k, k + 1 :])
    return c


@elimination.reverse
def elimination_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    (low, up), of_m = r, np.zeros(a.shape)
    if g[0] is not None:
        of_m += np.tril(low.T @ g[0], -1)
    if g[1] is not None:
        of_m += np.triu(g[1] @ up.T)
    left = solve_triangular(low, of_m, lower=True, trans=1, unit_diagonal=True)
    return np.array(solve_triangular(up, left.T).T)


@elimination.tangent
def elimination_tangent(r: Result, a: Operand) -> Linear:
    low, up = r

    def push(t: Operand) -> Result:
        left = solve_triangular(low, t, lower=True, unit_diagonal=True)
        m = solve_triangular(up, left.T, trans=1).T
        return low @ np.tril(m, -1), np.triu(m) @ up

    return push


# --- polar factors ---


@pair_valued
def polar_decompose(a: Operand, side: str = "right") -> Result:
    """Compute the polar factors of a matrix, ``a = u @ p``, the nearest one with orthonormal
    columns and the rest.

    Parameters
    ----------
    a : array_like, shape (m, n)
        A matrix of full rank, with at least as many rows as columns, or as columns as rows if
        `side` is 'left'.
    side : {'right', 'left'}
        Whether ``a = u @ p`` or ``a = p @ u``.

    Returns
    -------
    u : VarMat, shape (m, n)
        With orthonormal columns, or rows.
    p : VarMat, shape (n, n) or (m, m)
        Symmetric and positive definite.

    Raises
    ------
    ShapeError
        If `a` is not a matrix, or lies the wrong way for `side`.
    DomainError
        If `side` is unknown, or the rank of `a` not full; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With M the product :math:`U^T dA` the rotation :math:`\\Omega` of U solves :math:`P \\Omega +
    \\Omega P = M - M^T`; then :math:`dU = U \\Omega + (I - U U^T)\\, dA\\, P^{-1}` and :math:`dP =
    M - \\Omega P`. Equal singular values do no harm.

    That of `scipy.linalg.polar`; ``varmat.polar`` is Stan's complex number of a length and an
    angle.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 8.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.polar_decompose(a)[0][0, 1], np.diag([1.0, 3.0]))
    array([[ 0.  ,  0.25],
           [-0.25,  0.  ]])
    """
    a = as_operand(a, "polar_decompose: a")
    check_matrix_of("polar_decompose", "a", a)
    check_choice("polar_decompose", "side", side, "right", "left")
    left = side == "left"
    m, n = np.shape(a)[::-1] if left else np.shape(a)
    if m < n:
        rule = (
            "as many columns as rows, or use side='right'"
            if left
            else "as many rows as columns, or use side='left'"
        )
        raise misfit("polar_decompose", "a", np.shape(a), f"have at least {rule}")
    u, p = polar_factors(a.T if left else a)
    return (u.T if left else u), p


@operation()
def polar_factors(a: Plain) -> Plain:
    """Compute the right factors, by singular values."""
    check_finite("polar_decompose", a)
    w, s, vt = np.linalg.svd(a, full_matrices=False)
    if s.size and not s[-1] > s[0] * max(a.shape) * np.finfo(float).eps:
        raise MatrixError(
            "polar_decompose: a does not have full rank, so its factors are not differentiable!"
        )
    p = (vt.T * s) @ vt
    return w @ vt, 0.5 * (p + p.T)


@polar_factors.reverse
def polar_factors_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    (u, p), (of_u, of_p) = r, g
    of_u, of_p = (np.zeros(x.shape) if item is None else item for item, x in ((of_u, u), (of_p, p)))
    across = np.linalg.solve(p, of_u.T).T
    y = solve_sylvester(p, p, u.T @ of_u - of_p @ p)
    return across + u @ (of_p + y - y.T - u.T @ across)


@polar_factors.tangent
def polar_factors_tangent(r: Result, a: Operand) -> Linear:
    u, p = r

    def push(t: Operand) -> Result:
        m = u.T @ t
        rotation = solve_sylvester(p, p, m - m.T)
        return u @ rotation + np.linalg.solve(p, (t - u @ m).T).T, m - rotation @ p

    return push


def orthogonal_procrustes(a: Operand, b: Operand) -> Result:
    """Find the orthogonal matrix that brings one matrix nearest to another one:
    `scipy.linalg.orthogonal_procrustes`.

    Parameters
    ----------
    a, b : array_like, shape (m, n)
        Matrices; ``a.T @ b`` must be invertible.

    Returns
    -------
    r : VarMat, shape (n, n)
        The orthogonal matrix that minimises the norm of ``a @ r - b``.
    scale : Var
        The sum of the singular values of ``a.T @ b``.

    Raises
    ------
    ShapeError
        If the operands are not matrices of the same shape.
    DomainError
        If ``a.T @ b`` is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The polar factor of ``a.T @ b``, and the trace of the other one; see `polar_decompose` for the
    derivative.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 6.4.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> b = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> vm.gradient(lambda a: vm.orthogonal_procrustes(a, b)[1], np.eye(2)).round(12)
    array([[1.2004901 , 1.88648444],
           [1.88648444, 4.6304618 ]])
    """
    a, b = as_operand(a, "orthogonal_procrustes: a"), as_operand(b, "orthogonal_procrustes: b")
    check_matrix_of("orthogonal_procrustes", "a", a)
    check_matrix_of("orthogonal_procrustes", "b", b, np.shape(a))
    u, p = polar_decompose(a.T @ b)
    return u, np.trace(p)


# --- Schur factors ---


@pair_valued
def schur(a: Operand) -> Result:
    """Compute the real Schur factors of a matrix with real eigenvalues, ``a = z @ t @ z.T``:
    `scipy.linalg.schur`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        A matrix whose eigenvalues are real, and all different.

    Returns
    -------
    t : VarMat, shape (n, n)
        Upper triangular, with the eigenvalues on the diagonal.
    z : VarMat, shape (n, n)
        Orthogonal.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If eigenvalues are complex, or `a` is not finite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`F = Z^T dA\\, Z` the rotation of Z is :math:`M - M^T`, where M lies below the
    diagonal and :math:`\\mathrm{tril}_{-1}(T M - M T) = -\\mathrm{tril}_{-1}(F)`. Where two
    eigenvalues are equal there is no derivative. Blocks of complex pairs are not unique, so that
    they have none either: use `numpy.linalg.eig`.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 7.4.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.schur(a)[0][1, 1], np.array([[1.0, 1.0], [0.0, 3.0]]))
    array([[0. , 0. ],
           [0.5, 1. ]])
    """
    return schur_decomposition(a)


@operation()
def schur_decomposition(a: Plain) -> Plain:
    """`schur`."""
    check_one_square("schur", "a", a)
    check_finite("schur", a)
    if not a.size:
        return np.zeros(a.shape), np.zeros(a.shape)
    t, z = scipy_linalg.schur(a, output="real")
    if np.count_nonzero(np.diagonal(t, -1)):
        raise MatrixError("schur: a has complex eigenvalues, but must have real ones!")
    return np.triu(t), np.ascontiguousarray(z)


@schur_decomposition.reverse
def schur_decomposition_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    (t, z), (of_t, of_z) = r, g
    of_f = np.zeros(a.shape)
    of_rotation = np.zeros(a.shape)
    if of_t is not None:  # only its upper triangle is free
        of_t = np.triu(of_t)
        of_f += of_t
        of_rotation += t.T @ of_t - of_t @ t.T
    if of_z is not None:
        of_rotation += z.T @ of_z
    of_f -= _commuted_back(t, np.tril(of_rotation - of_rotation.T, -1))
    return z @ of_f @ z.T


@schur_decomposition.tangent
def schur_decomposition_tangent(r: Result, a: Operand) -> Linear:
    t, z = r

    def push(d: Operand) -> Result:
        f = z.T @ d @ z
        m = commuted(t, -np.tril(f, -1))
        rotation = m - m.T
        return np.triu(f + t @ rotation - rotation @ t), z @ rotation

    return push


@operation()
def commuted(t: Plain, f: Plain) -> Plain:
    """Find the matrix M, zero except below the diagonal, for which ``t @ M - M @ t`` is `f` below
    the diagonal, for an upper triangle `t`.
    """
    m = np.zeros(t.shape)
    for j in range(t.shape[0] - 1):
        later = slice(j + 1, None)
        m[later, j] = _shifted(t, j, f[later, j] + m[later, :j] @ t[:j, j], False)
    return m


def _shifted(t: np.ndarray, j: int, b: np.ndarray, trans: bool) -> np.ndarray:
    """Solve with the block of `t` below and right of the element j, less that element; nan where it
    is singular.
    """
    block = t[j + 1 :, j + 1 :] - t[j, j] * np.eye(t.shape[0] - j - 1)
    if (np.diagonal(block) == 0.0).any():
        return np.full(b.shape, np.nan)
    return np.array(solve_triangular(block, b, trans=int(trans)))


def _commuted_back(t: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Apply the transpose of the linear map `commuted` from `f`."""
    g, c = np.tril(g, -1), np.zeros(t.shape)
    for j in range(t.shape[0] - 2, -1, -1):
        later = slice(j + 1, None)
        c[later, j] = _shifted(t, j, g[later, j], True)
        g[later, :j] += np.multiply.outer(c[later, j], t[:j, j])
    return c


@commuted.reverse
def commuted_reverse(g: Adjoint, r: Plain, t: Plain, f: Plain) -> tuple[Thunk, ...]:
    c = _commuted_back(t, g)
    return lambda: np.triu(r.T @ c - c @ r.T), lambda: c


@commuted.tangent
def commuted_tangent(r: Result, t: Operand, f: Operand) -> tuple[Linear, ...]:
    def of_t(d: Operand) -> Result:
        d = np.triu(d)
        return commuted(t, np.tril(r @ d - d @ r, -1))

    return of_t, lambda d: commuted(t, np.tril(d, -1))


# --- symmetric eigenproblems ---


@pair_valued
def eigh(a: Operand, b: Operand = None, lower: bool = True, type: int = 1) -> Result:
    """Eigenvalues and vectors of symmetric matrices, ``a @ v = b @ v * w``: `scipy.linalg.eigh`.

    Parameters
    ----------
    a : array_like, shape (n, n)
        Symmetric; one triangle is read.
    b : array_like, shape (n, n), optional
        Symmetric and positive definite; one triangle is read. By default the identity.
    lower : bool
        Whether the lower triangles are read.
    type : {1, 2, 3}
        With `b`, whether ``a @ v = b @ v * w``, ``a @ b @ v = v * w`` or ``b @ a @ v = v * w``.

    Returns
    -------
    w : VarMat, shape (n,)
        The eigenvalues, the smallest first.
    v : VarMat, shape (n, n)
        The eigenvectors in its columns, with ``v.T @ b @ v`` the identity, or ``v.T @
        inv(b) @ v`` if `type` is 3. The sign of each is arbitrary.

    Raises
    ------
    ShapeError
        If the matrices are not square, or of different size.
    DomainError
        If `b` is not positive definite, or `type` unknown; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    That of the symmetric matrix which the Cholesky factor of `b` makes of `a`, and so is the
    derivative; see `numpy.linalg.eigh` for it where eigenvalues are equal.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 8.7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda b: vm.eigh(np.diag([1.0, 4.0]), b)[0][1], np.diag([1.0, 2.0])).round(12)
    array([[ 0.,  0.],
           [ 0., -1.]])
    """
    a = as_operand(a, "eigh: a")
    check_one_square("eigh", "a", a)
    if b is None:
        return tuple(symmetric_eigh(a, UPLO="L" if lower else "U"))
    b = as_operand(b, "eigh: b")
    check_matrix_of("eigh", "b", b, np.shape(a))
    check_choice("eigh", "type", type, 1, 2, 3)
    keep = np.tri(np.shape(a)[0], dtype=bool)
    a, b = (x if lower else x.T for x in (a, b))
    a = np.where(keep, a, a.T)
    factor = cholesky(b)
    if type == 1:
        reduced = solve_triangular(factor, solve_triangular(factor, a, lower=True).T, lower=True)
    else:
        reduced = factor.T @ a @ factor
    w, y = symmetric_eigh(reduced)
    return w, (factor @ y if type == 3 else solve_triangular(factor, y, lower=True, trans=1))


@array_valued
def eigvalsh(a: Operand, b: Operand = None, lower: bool = True, type: int = 1) -> Result:
    """Eigenvalues of symmetric matrices, ``a @ v = b @ v * w``: `scipy.linalg.eigvalsh`.

    Parameters
    ----------
    a, b, lower, type
        As for `eigh`.

    Returns
    -------
    VarMat, shape (n,)
        The eigenvalues, the smallest first.

    Raises
    ------
    ShapeError
        If the matrices are not square, or of different size.
    DomainError
        If `b` is not positive definite, or `type` unknown; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The derivative of an eigenvalue is ``v.T @ (da - w * db) @ v``, for the first type.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 8.7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda b: vm.eigvalsh(np.diag([1.0, 4.0]), b)[1], np.diag([1.0, 2.0])).round(12)
    array([[ 0.,  0.],
           [ 0., -1.]])
    """
    with in_the_name_of("eigvalsh"):
        return eigh(a, b, lower, type)[0]
