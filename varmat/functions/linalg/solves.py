"""Inverses and general linear systems.

A matrix is factorised once: the LU factor that gave the value is kept for the reverse pass. Stacks
of small matrices go through NumPy's loops, which keep nothing."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.errors import DomainError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import check_square, in_the_name_of, misfit
from varmat.functions.docstrings import filled
from varmat.functions.linalg.lapack import LU, MatrixError, lu_factor, lu_inverse, lu_solve, outer
from varmat.functions.linalg.systems import check_system, column, columns, uncolumn
from varmat.functions.linalg.triangles import place_of
from varmat.programs.build.factorisations import regular
from varmat.typing import (
    Adjoint,
    EitherFunction,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
    Thunk,
    array_valued,
    scalar_or_array_valued,
)

__all__ = ["inverse", "mdivide_left", "mdivide_right"]


def _singular(function: str, a: Operand) -> MatrixError:
    """Make the error for a stack with singular matrices, with the index of the first one if it is
    found again.
    """
    with np.errstate(invalid="ignore"):
        where = np.argwhere(~(np.linalg.slogdet(a)[1] > -math.inf))
    # Rounding decides whether an elimination ends in zero, and may do so differently for a matrix
    # and its transpose.
    place = place_of(where[0]) if len(where) else ""
    return MatrixError(f"{function}: a{place} is singular, but must be invertible!")


@operation(np.linalg.inv)
@array_valued
def inv(a: Plain) -> Plain:
    """Invert a square matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`X = A^{-1}`, :math:`dX = -X\\, dA\\, X`. To solve a system use `numpy.linalg.solve`.
    Also called ``varmat.inverse``.

    References
    ----------
    Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.inv(a)[0, 1], np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([[ 0.25, -0.5 ],
           [-0.25,  0.5 ]])
    """
    check_square("inv", "a", np.shape(a))
    factor = lu_factor(a)
    if factor:
        if factor.singular:
            raise _singular("inv", a)
        return lu_inverse(factor)
    try:
        return regular(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        raise _singular("inv", a) from None


@inv.reverse
def inv_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    c = (r.mT @ g) @ r.mT
    return np.negative(c, out=c)


@inv.tangent
def inv_tangent(r: Result, a: Operand) -> Linear:
    return lambda t: -(r @ t @ r)


def inverse_of(a: Operand, factor: LU | None) -> Result:
    """Compute the inverse, from LU factors if they are given; nan for a singular matrix."""
    return inv.known(lu_inverse(factor), a) if factor else inv(a)


@operation(np.linalg.solve)
@array_valued
def solve(a: Plain, b: Plain, workspace: Function = np.empty) -> Plain | Saved:
    """Solve the linear system ``a @ x = b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, k)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them, as in NumPy
        2.

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`Z = A^{-T} \\bar X`, the adjoints are :math:`\\bar B = Z` and :math:`\\bar A = -Z
    X^T` [1]_. The LU factor of the value serves the reverse pass. Also called
    ``varmat.mdivide_left``.

    References
    ----------
    .. [1] Michael B. Giles, "Collected matrix derivative results for forward and reverse mode
           algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(np.linalg.solve(a, b)), np.ones(2))
    array([0.375, 0.25 ])
    """
    check_system("solve", a, b)
    factor = lu_factor(a, workspace, b)
    if factor:
        if factor.singular:
            raise _singular("solve", a)
        return Saved(lu_solve(factor, b, b.ndim == 1), factor=factor)
    try:
        vector = b.ndim == 1
        return uncolumn(regular(np.linalg.solve(a, column(b, vector))), vector)
    except np.linalg.LinAlgError:
        raise _singular("solve", a) from None


@solve.reverse
def solve_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, factor: LU | None = None
) -> tuple[Thunk, ...]:
    vector = b.ndim == 1
    z = (
        lu_solve(factor, g, vector, trans=True)
        if factor
        else uncolumn(np.linalg.solve(a.mT, column(g, vector)), vector)
    )
    return lambda: outer(*columns(z, r, vector), -1.0), lambda: z


@solve.tangent
def solve_tangent(
    r: Result, a: Operand, b: Operand, factor: LU | None = None
) -> tuple[Linear, ...]:
    # One inverse serves all directions, and the derivatives of these maps.
    vector, x = np.ndim(b) == 1, inverse_of(a, factor)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (t @ y), vector), lambda t: uncolumn(
        x @ column(t, vector), vector
    )


def from_the_right(name: str, left: Function, summary: str) -> EitherFunction[...]:
    """Make the function ``b @ inv(a)`` from one for ``inv(a) @ b``."""

    @filled(name, summary=summary)
    @scalar_or_array_valued
    def divide(b: Operand, a: Operand) -> Result:
        """{summary}

        Parameters
        ----------
        b : array_like, shape (n,) or (..., k, n)
        a : array_like, shape (..., n, n)

        Returns
        -------
        Var or VarMat

        Raises
        ------
        ShapeError
            If `a` is not square, or `b` has another number of columns.
        DomainError
            If `a` is singular, or not of the kind it must be.

        Notes
        -----
        The adjoints are the left function's, transposed.

        References
        ----------
        Stan Functions Reference, "Linear algebra functions and solvers".

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> vm.{name}(np.array([2.0, 4.0]), vm.var([[2.0, 0.0], [0.0, 4.0]]))
        VarMat([1., 1.])
        """
        return right_solution(name, left, b, a)

    divide.__module__ = left.__module__  # where it is assigned, so that it can be pickled
    return divide


def right_solution(name: str, left: Function, b: Operand, a: Operand) -> Result:
    """``b @ inv(a)`` by a function for ``inv(a) @ b``, which solves the transposed system."""
    b, a = as_operand(b, f"{name}: b"), as_operand(a, f"{name}: a")
    check_square(name, "a", np.shape(a))
    shape, n = np.shape(b), np.shape(a)[-1]
    if shape[-1:] != (n,):
        raise misfit(name, "b", shape, f"have {n} columns, as a has rows")
    with in_the_name_of(name):
        return left(a, b) if np.ndim(b) == 1 else left(a, b.mT).mT


mdivide_right = from_the_right(
    "mdivide_right",
    lambda a, b: solve(a.mT, b),
    "``b @ inv(a)``, by `numpy.linalg.solve` with the transposed matrices.",
)


@implements(np.linalg.tensorinv)
def tensorinv(a: Operand, ind: int = 2) -> Result:
    """Invert a tensor: `numpy.linalg.tensorinv`, by reshaping to a matrix."""
    shape = np.shape(a)
    if ind <= 0:
        raise DomainError(f"tensorinv: ind is {ind}, but must be positive!")
    size = int(np.prod(shape[ind:], dtype=int))
    return np.reshape(np.linalg.inv(np.reshape(a, (-1, size))), shape[ind:] + shape[:ind])


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Operand, b: Operand, axes: Setting = None) -> Result:
    """Solve a tensor equation: `numpy.linalg.tensorsolve`, by reshaping to a matrix."""
    if axes is not None:
        axes = [k % np.ndim(a) for k in axes]
        a = np.transpose(a, [k for k in range(np.ndim(a)) if k not in axes] + axes)
    shape = np.shape(a)[np.ndim(b) :]
    size = int(np.prod(shape, dtype=int))
    return np.reshape(np.linalg.solve(np.reshape(a, (-1, size)), np.ravel(b)), shape)


inverse = alias("inverse", inv)
mdivide_left = alias("mdivide_left", solve)
