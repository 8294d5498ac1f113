"""Triangular linear systems, and the inverse of a matrix from its Cholesky factor."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_choice, check_square
from varmat.functions.linalg.lapack import (
    MatrixError,
    inverse_triangle,
    lower_outer,
    triangular_solve,
)
from varmat.functions.linalg.solves import from_the_right
from varmat.functions.linalg.systems import check_system, column, columns, uncolumn
from varmat.functions.linalg.triangles import check_lower, mirrored, place_of, triangle_mask, tril
from varmat.programs.build.symbol import Symbol, require
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = [
    "cho_solve",
    "chol2inv",
    "mdivide_left_tri_low",
    "mdivide_right_tri_low",
    "solve_triangular",
]


@operation()
@array_valued
def solve_triangular(
    a: Plain, b: Plain, lower: bool = False, trans: int | str = 0, unit_diagonal: bool = False
) -> Plain:
    """Solve a triangular linear system.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Only the triangle named by `lower` is read.
    b : array_like, shape (n,) or (..., n, k)
    lower : bool
        Whether the lower triangle of `a` is meant; by default the upper one.
    trans : {0, 1, 2, "N", "T", "C"}
        0 or "N" solves ``a @ x = b``, the others ``a.T @ x = b``.
    unit_diagonal : bool
        Take the diagonal to be one, without reading it.

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If there is a zero on the diagonal; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint of `a` is as for `numpy.linalg.solve`, in the triangle that is read. The function
    of `scipy.linalg` of this name, which cannot be called on variables.
    ``varmat.mdivide_left_tri_low(a, b)`` is the same with ``lower=True``.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 3.1.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> vm.gradient(lambda a: np.sum(vm.solve_triangular(a, np.ones(2), lower=True)), a)
    array([[-0.1875 ,  0.     ],
           [-0.125  , -0.03125]])
    """
    check_system("solve_triangular", a, b)
    if not unit_diagonal:
        check_diagonal("solve_triangular", a)
    return triangular_solve(a, b, lower, _is_transposed(trans), unit_diagonal, vector=b.ndim == 1)


def check_diagonal(function: str, a: Operand, name: str = "a") -> None:
    diagonal = a.diagonal(0, -2, -1)
    if type(a) is Symbol:
        require(diagonal != 0.0)
    elif np.count_nonzero(diagonal) < diagonal.size:
        index = np.argwhere(diagonal == 0)[0]
        raise MatrixError(
            f"{function}: {name}{place_of((*index, index[-1]))} is 0.0, but must be nonzero!"
        )


def _is_transposed(trans: int | str) -> bool:
    check_choice("solve_triangular", "trans", trans, 0, 1, 2, "N", "T", "C")
    return trans not in (0, "N")


@solve_triangular.reverse
def solve_triangular_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, lower: bool, trans: int | str, unit_diagonal: bool
) -> tuple[Thunk, ...]:
    vector, transposed = b.ndim == 1, _is_transposed(trans)
    z = triangular_solve(a, g, lower, not transposed, unit_diagonal, vector=vector)

    def of_a() -> Result:
        x, y = columns(r, z, vector)
        c = lower_outer(x, y, -1.0) if transposed == lower else lower_outer(y, x, -1.0)
        c = c if lower else c.mT
        if unit_diagonal:
            np.einsum("...ii->...i", c)[...] = 0.0
        return c

    return of_a, lambda: z


@solve_triangular.tangent
def solve_triangular_tangent(
    r: Result, a: Operand, b: Operand, lower: bool, trans: int | str, unit_diagonal: bool
) -> tuple[Linear, ...]:
    vector = np.ndim(b) == 1
    y = column(r, vector)

    def solved(c: Operand) -> Result:
        return uncolumn(
            solve_triangular(a, c, lower=lower, trans=trans, unit_diagonal=unit_diagonal), vector
        )

    def of_a(t: Operand) -> Result:
        t = np.where(triangle_mask(np.shape(t), lower, strict=unit_diagonal), t, 0.0)
        return -solved((t.mT if _is_transposed(trans) else t) @ y)

    return of_a, lambda t: solved(column(t, vector))


@array_valued
def cho_solve(c_and_lower: tuple[Operand, bool], b: Operand) -> Result:
    """Solve ``a @ x = b`` from a Cholesky factor of `a`.

    Parameters
    ----------
    c_and_lower : tuple of array_like, shape (..., n, n), and bool
        The factor, and whether it is the lower one (``a = c @ c.T``) or the upper one (``a = c.T @
        c``). Only that triangle is read.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If the factor is not square, or `b` has another number of rows.
    DomainError
        If there is a zero on the diagonal; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    Two calls of `solve_triangular`, whose derivatives these are. The function of `scipy.linalg` of
    this name.

    References
    ----------
    Gene H. Golub and Charles F. Van Loan, Matrix Computations, 4th edition, 2013, section 4.2.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> factor = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: vm.cho_solve((factor, True), b)[0], np.ones(2))
    array([ 0.5, -0.5])
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        kind = type(c_and_lower).__name__
        raise TypeError(f"cho_solve: c_and_lower is a {kind}, but must be a pair (factor, lower)!")
    c, lower = c_and_lower
    c, b = as_operand(c, "cho_solve: c"), as_operand(b, "cho_solve: b")
    check_square("cho_solve", "c", np.shape(c))
    half = solve_triangular(c, b, lower=lower, trans=0 if lower else 1)
    vector = np.ndim(b) == 1  # of a stack of factors it makes a stack of vectors
    return uncolumn(
        solve_triangular(c, column(half, vector), lower=lower, trans=1 if lower else 0), vector
    )


@operation(stacked=True)
@array_valued
def chol2inv(factor: Plain) -> Plain:
    """Compute the inverse of ``factor @ factor.T`` for a lower triangular `factor`, exactly
    symmetric.

    Parameters
    ----------
    factor : array_like, shape (..., n, n)
        Zero above the diagonal.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `factor` is not square.
    DomainError
        If there is a zero on the diagonal, or something else above it.

    Notes
    -----
    With :math:`X = (L L^T)^{-1}`, :math:`dX = -P - P^T` where :math:`P = X\\, dL\\, L^{-1}`, and in
    reverse :math:`\\bar L` is the lower triangle of :math:`-X (\\bar X + \\bar X^T) L^{-T}`.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: np.trace(vm.chol2inv(c)), np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[-0.5,  0. ],
           [ 0.5, -2.5]])
    """
    check_square("chol2inv", "factor", np.shape(factor))
    check_lower("chol2inv", factor, "factor")
    check_diagonal("chol2inv", factor, "factor")
    return mirrored(inverse_triangle(factor))


@chol2inv.reverse
def chol2inv_reverse(g: Adjoint, r: Plain, factor: Plain) -> Adjoint:
    c = triangular_solve(factor, (g + g.mT) @ r, lower=True)
    return tril(np.negative(c, out=c).mT)


@chol2inv.tangent
def chol2inv_tangent(r: Result, factor: Plain) -> Linear:
    def push(t: Operand) -> Result:
        c = r @ np.where(triangle_mask(np.shape(t)), t, 0.0)
        p = solve_triangular(factor, c.mT, lower=True, trans=1).mT
        return -(p + p.mT)

    return push


@operation()
@array_valued
def mdivide_left_tri_low(a: Plain, b: Plain) -> Plain:
    """``inv(a) @ b`` for a lower triangular `a`: `solve_triangular` with ``lower=True``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        The lower triangle is read, and nothing else.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If there is a zero on the diagonal; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint of `b` is ``inv(a).T @ g``, that of `a` is the negative outer product of this and
    the result, in the lower triangle.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.mdivide_left_tri_low(vm.var([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    VarMat([1., 2.])
    """
    check_system("mdivide_left_tri_low", a, b)
    check_diagonal("mdivide_left_tri_low", a)
    return triangular_solve(a, b, lower=True, vector=b.ndim == 1)


@mdivide_left_tri_low.reverse
def mdivide_left_tri_low_reverse(g: Adjoint, r: Plain, a: Plain, b: Plain) -> Adjoint:
    return solve_triangular_reverse(g, r, a, b, lower=True, trans=0, unit_diagonal=False)


@mdivide_left_tri_low.tangent
def mdivide_left_tri_low_tangent(r: Result, a: Operand, b: Operand) -> Result:
    return solve_triangular_tangent(r, a, b, lower=True, trans=0, unit_diagonal=False)


mdivide_right_tri_low = from_the_right(
    "mdivide_right_tri_low",
    lambda a, b: solve_triangular(a, b, lower=True, trans=1),
    "``b @ inv(a)`` for a lower triangular `a`: `solve_triangular` with the transposed matrices.",
)
