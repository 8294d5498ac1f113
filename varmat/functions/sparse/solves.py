"""Sparse systems, log determinants, and the elements of the inverse at the non-zeros, with factors
by `scipy.sparse.linalg.splu`.

A matrix is factorised once for the value; the factors serve the reverse pass. Functions of a
symmetric matrix read its lower triangle, once it is checked that the upper one is the same, and
their adjoint lies there, as it does for dense matrices (see
`varmat.functions.linalg.symmetric_arguments`). The order of elimination and the structure of the
factor are kept with the pattern: where a function is called again and again, hand the `pattern` of
one `SparseVar` on to the next.

In recorded programs these are calls of Python.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from varmat.core.dual import value_now
from varmat.core.operation import Operation, Saved, as_operand, operation
from varmat.functions.checks import check_square, misfit
from varmat.functions.sparse.factors import Definite, General, Pattern
from varmat.functions.sparse.products import sparse_matmul
from varmat.functions.sparse.variable import as_sparse, check_sparse
from varmat.typing import (
    Adjoint,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    array_valued,
    scalar_valued,
)

__all__ = [
    "sparse_inverse_subset",
    "sparse_log_determinant_spd",
    "sparse_mdivide_left_spd",
    "spsolve",
]


def _check_right(function: str, pattern: Pattern, b: Operand) -> None:
    n = pattern.shape[0]
    if np.ndim(b) not in (1, 2) or np.shape(b)[0] != n:
        raise misfit(function, "b", np.shape(b), f"be a vector, or a matrix, of {n} rows, as a has")


def _solved(op: Operation, factor: Operand, pattern: Pattern, w: Operand, c: Operand) -> Result:
    """Solve for another right-hand side, with known factors."""
    return op.known(Saved(factor.solve(value_now(c)), factor=factor), w, c, pattern=pattern)


@operation()
def sparse_solve(w: Plain, b: Plain, *, pattern: Pattern) -> Saved:
    """Solve a sparse system: see `spsolve`."""
    factor = General("spsolve", pattern, w)
    return Saved(factor.solve(b), factor=factor)


@sparse_solve.reverse
def sparse_solve_reverse(
    g: Adjoint, r: Plain, w: Plain, b: Plain, pattern: Pattern, factor: Plain
) -> tuple[Thunk, ...]:
    z = factor.solve(g, transposed=True)
    return lambda: -pattern.sampled(z, r), lambda: z


@sparse_solve.tangent
def sparse_solve_tangent(
    r: Result, w: Operand, b: Operand, pattern: Pattern, factor: Plain
) -> tuple[Linear, ...]:
    solved = partial(_solved, sparse_solve, factor, pattern, w)
    return lambda t: -solved(sparse_matmul(t, r, pattern=pattern)), solved


@operation()
def sparse_solve_spd(w: Plain, b: Plain, *, pattern: Pattern) -> Saved:
    """Solve a sparse symmetric positive definite system: see `sparse_mdivide_left_spd`."""
    factor = Definite("sparse_mdivide_left_spd", pattern, w)
    return Saved(factor.solve(b), factor=factor)


@sparse_solve_spd.reverse
def sparse_solve_spd_reverse(
    g: Adjoint, r: Plain, w: Plain, b: Plain, pattern: Pattern, factor: Plain
) -> tuple[Thunk, ...]:
    z = factor.solve(g)
    return lambda: factor.structure.folded(-pattern.sampled(z, r)), lambda: z


@sparse_solve_spd.tangent
def sparse_solve_spd_tangent(
    r: Result, w: Operand, b: Operand, pattern: Pattern, factor: Plain
) -> tuple[Linear, ...]:
    solved = partial(_solved, sparse_solve_spd, factor, pattern, w)
    return lambda t: -solved(sparse_matmul(t[factor.structure.source], r, pattern=pattern)), solved


@operation()
def sparse_log_determinant(w: Plain, *, pattern: Pattern) -> Saved:
    """Compute the log determinant of a sparse symmetric positive definite matrix: see
    `sparse_log_determinant_spd`.
    """
    factor = Definite("sparse_log_determinant_spd", pattern, w)
    return Saved(factor.log_determinant(), factor=factor)


@sparse_log_determinant.reverse
def sparse_log_determinant_reverse(
    g: Adjoint, r: Plain, w: Plain, pattern: Pattern, factor: Plain
) -> Adjoint:
    return g * factor.structure.counts * factor.inverse_at_non_zeros()


@sparse_log_determinant.tangent
def sparse_log_determinant_tangent(
    r: Result, w: Operand, pattern: Pattern, factor: Plain
) -> Linear:
    z = sparse_inverse.known(
        Saved(factor.inverse_at_non_zeros(), factor=factor), w, pattern=pattern
    )
    return lambda t: np.sum(factor.structure.counts * z * t)


@operation()
def sparse_inverse(w: Plain, *, pattern: Pattern) -> Saved:
    """Compute the elements of the inverse at the non-zeros of a symmetric positive definite matrix:
    see `sparse_inverse_subset`.
    """
    factor = Definite("sparse_inverse_subset", pattern, w)
    return Saved(factor.inverse_at_non_zeros(), factor=factor)


@sparse_inverse.reverse
def sparse_inverse_reverse(
    g: Adjoint, r: Plain, w: Plain, pattern: Pattern, factor: Plain
) -> Adjoint:
    return factor.structure.folded(-factor.sandwich(g))


@sparse_inverse.tangent
def sparse_inverse_tangent(r: Result, w: Operand, pattern: Pattern, factor: Plain) -> Linear:
    unit = np.eye(pattern.shape[0])
    x = sparse_solve_spd.known(Saved(factor.solve(unit), factor=factor), w, unit, pattern=pattern)

    def of_w(t: Operand) -> Result:
        y = sparse_matmul(t[factor.structure.source], x, pattern=pattern)
        return -np.sum(x[pattern.rows] * np.transpose(y)[pattern.columns], axis=1)

    return of_w


def _square_sparse(function: str, a: Operand) -> Result:
    check_sparse(function, a)
    a = as_sparse(a)
    check_square(function, "a", a.shape)
    return a.in_order()


@array_valued
def spsolve(a: Operand, b: Operand) -> Result:
    """Solve the linear system ``a @ x = b`` with a sparse matrix.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (n, n)
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, shape (n,) or (n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is singular (also a `numpy.linalg.LinAlgError`), or has non-zeros that are not
        finite.
    TypeError
        If `a` is not sparse.

    Notes
    -----
    With :math:`Z = A^{-T} \\bar X` the adjoints are :math:`\\bar B = Z` and, for the non-zero in
    row i and column j, minus the inner product of row i of `Z` and row j of `X`: one more solve
    with the factors of the value. The function of `scipy.sparse.linalg` of this name cannot be
    called on variables.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> a = scipy.sparse.csr_array([[2.0, 0.0], [1.0, 4.0]])
    >>> vm.gradient(lambda w: np.sum(vm.spsolve(vm.SparseVar(w, a), [1.0, 1.0])), a.data)
    array([-0.1875 , -0.125  , -0.03125])
    """
    a = _square_sparse("spsolve", a)
    b = as_operand(b, "spsolve: b")
    _check_right("spsolve", a.pattern, b)
    return sparse_solve(a.data, b, pattern=a.pattern)


@array_valued
def sparse_mdivide_left_spd(a: Operand, b: Operand) -> Result:
    """Solve the linear system ``a @ x = b`` with a sparse symmetric positive definite matrix.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (n, n)
        Symmetric, to 1e-8, with both triangles stored; once that is checked, only the lower
        triangle is read.
    b : array_like, shape (n,) or (n, k)

    Returns
    -------
    VarMat, shape (n,) or (n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is not symmetric, has non-zeros that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.
    TypeError
        If `a` is not sparse.

    Notes
    -----
    With :math:`Z = A^{-1} \\bar X` the adjoints are :math:`\\bar B = Z` and :math:`-Z X^T` at the
    non-zeros, folded onto the lower triangle. The matrix is factorised in an order of little fill
    (minimum degree), without pivoting.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> a = scipy.sparse.csr_array([[2.0, -1.0], [-1.0, 2.0]])
    >>> vm.gradient(lambda b: vm.sparse_mdivide_left_spd(a, b)[0], np.zeros(2))
    array([0.66666667, 0.33333333])
    """
    a = _square_sparse("sparse_mdivide_left_spd", a)
    b = as_operand(b, "sparse_mdivide_left_spd: b")
    _check_right("sparse_mdivide_left_spd", a.pattern, b)
    return sparse_solve_spd(a.data, b, pattern=a.pattern)


@scalar_valued
def sparse_log_determinant_spd(a: Operand) -> Result:
    """Compute the logarithm of the determinant of a sparse symmetric positive definite matrix.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (n, n)
        Symmetric, to 1e-8, with both triangles stored; once that is checked, only the lower
        triangle is read.

    Returns
    -------
    Var

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, has non-zeros that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.
    TypeError
        If `a` is not sparse.

    Notes
    -----
    The adjoint of a non-zero is the element of the inverse there (twice that below the diagonal,
    and zero above it). These elements alone are computed, from the factor of the value, by the
    recursion of Takahashi, Fagan and Chen [1]_: as many operations as the factorisation takes. The
    Hessian times a vector takes 2 n solves.

    References
    ----------
    .. [1] Kazuhiro Takahashi, James Fagan, Mo-Shing Chen, "Formation of a sparse bus impedance
           matrix and its application to short circuit study", Proc. 8th PICA Conference, 1973.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> a = scipy.sparse.csr_array([[2.0, -1.0], [-1.0, 2.0]])
    >>> vm.gradient(lambda s: vm.sparse_log_determinant_spd(vm.SparseVar(s * a.data, a)), 1.0)
    2.0
    """
    a = _square_sparse("sparse_log_determinant_spd", a)
    return sparse_log_determinant(a.data, pattern=a.pattern)


def sparse_inverse_subset(a: Operand) -> Result:
    """Compute the elements of the inverse of a sparse symmetric positive definite matrix at its
    non-zeros.

    For a precision matrix, these are the variances and the covariances of neighbours.

    Parameters
    ----------
    a : SparseVar, or sparse array or matrix of SciPy, shape (n, n)
        Symmetric, to 1e-8, with both triangles stored; once that is checked, only the lower
        triangle is read.

    Returns
    -------
    SparseVar, shape (n, n)
        With the pattern of `a`; the inverse itself is dense.

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, has non-zeros that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.
    TypeError
        If `a` is not sparse.

    Notes
    -----
    As many operations as the factorisation takes, by the recursion of Takahashi, Fagan and Chen
    (1973). The adjoint of `a` is :math:`-A^{-1} \\bar Z A^{-1}` at the non-zeros, by 2 n solves, 64
    columns at a time; forward mode and second derivatives make dense matrices of n columns.

    Examples
    --------
    >>> import numpy as np, scipy.sparse, varmat as vm
    >>> a = scipy.sparse.csr_array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    >>> vm.sparse_inverse_subset(a).diagonal()
    array([0.75, 1.  , 0.75])
    """
    a = _square_sparse("sparse_inverse_subset", a)
    return a.with_data(sparse_inverse(a.data, pattern=a.pattern))
