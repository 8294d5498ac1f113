"""Linear systems: inverses, general, triangular and symmetric positive definite systems.

A matrix is factorised once: the LU or Cholesky factor that gave the value is kept for the reverse
pass. (Stacks of small matrices go through NumPy's loops, which keep nothing.)

**Symmetric arguments.** A function of a symmetric matrix (here and in
`varmat.functions.linalg.factorisations`) computes with the lower triangle, as LAPACK does. Its
derivative is that of exactly this function: the adjoint lies in the lower triangle, and an element
off the diagonal carries the derivative of both places it stands for. For a matrix that is symmetric
by construction (``b @ b.T``, a covariance function) the gradient of what it was made from is the
same as with any other convention. Functions with a name of NumPy (`numpy.linalg.cholesky`, `eigh`,
`eigvalsh`) never look at the upper triangle. Those with a name of Stan (``cholesky_decompose``,
``eigenvalues_sym``, ``inverse_spd``, ...) refuse a matrix that is not symmetric: elements that
should be equal may differ by 1e-8, or by 1e-8 of their size if they are larger than one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import check_square
from varmat.functions.linalg.lapack import (
    LU,
    MatrixError,
    check_lower,
    check_symmetric,
    cholesky_factor,
    cholesky_solve,
    folded_outer,
    inverse_triangle,
    lower_outer,
    lu_factor,
    lu_inverse,
    lu_solve,
    mirrored,
    outer,
    place_of,
    to_triangle,
    triangle_mask,
    triangular_solve,
    tril,
)
from varmat.programs.symbols import (
    inverse_lower,
    positive_definite,
    refuse,
    require,
    solve_lower,
    triangle,
    unrolled,
)

__all__ = [
    "cho_solve",
    "chol2inv",
    "inverse",
    "inverse_spd",
    "mdivide_left",
    "mdivide_left_ldlt",
    "mdivide_left_spd",
    "mdivide_left_tri_low",
    "mdivide_right",
    "mdivide_right_ldlt",
    "mdivide_right_spd",
    "mdivide_right_tri_low",
    "solve_triangular",
]


def _singular(function: str, a: Any) -> MatrixError:
    """The refusal of a stack of which some matrices are singular, with the place of the first one
    if it is found again.
    """
    with np.errstate(invalid="ignore"):
        where = np.argwhere(~(np.linalg.slogdet(a)[1] > -math.inf))
    # Rounding decides whether an elimination ends in zero: that of a matrix and that of its
    # transpose may differ.
    place = place_of(where[0]) if len(where) else ""
    return MatrixError(f"{function}: a{place} is singular, but must be invertible!")


# What the rules share; differentiable.


def symmetric(t: Any, lower: bool = True) -> Any:
    """The symmetric matrix whose one triangle is that of `t`."""
    return np.where(triangle_mask(np.shape(t), lower), t, t.mT)


def inner(x: Any, y: Any) -> Any:
    """The inner product of matrices, for each of a stack."""
    return np.sum(x * y, axis=(-2, -1))


def column(x: Any, vector: bool) -> Any:
    """A vector, or a stack of them, as matrices with one column."""
    return x[..., None] if vector else x


def uncolumn(x: Any, vector: bool) -> Any:
    return x[..., 0] if vector else x


def columns(x: Any, y: Any, vector: bool) -> tuple[Any, Any]:
    """Vectors, or stacks of them, as they go into products of a column with a row: a single one as
    it is.
    """
    return (x, y) if x.ndim == 1 else (column(x, vector), column(y, vector))


def check_system(function: str, a: Any, b: Any) -> None:
    """Raise `ShapeError` unless ``a x = b`` makes sense: `a` square (a stack), `b` a vector or a
    matrix (a stack).
    """
    square, shape = np.shape(a), np.shape(b)
    if len(square) == 2 and square == shape[:1] * 2 and len(shape) < 3:
        return
    check_square(function, "a", square)
    n = square[-1]
    rows = shape[-2:][0] if shape else None
    if rows != n:
        raise ShapeError(f"{function}: b has shape {shape}, but must have {n} rows, as a has!")
    try:
        if len(shape) > 2 < len(square):
            np.broadcast_shapes(square[:-2], shape[:-2])
    except ValueError:
        raise ShapeError(
            f"{function}: b has shape {shape}, but must go with a, of shape {square}!"
        ) from None


@operation(np.linalg.inv)
def inv(a: Any) -> Any:
    """The inverse of a square matrix.

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
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise _singular("inv", a) from None


@inv.straight
def inv_straight(a: Any) -> Any:
    unrolled(a)
    x = np.linalg.inv(a)
    require(np.isfinite(x[..., 0, 0]))  # all of it is nan where the matrix is singular
    return x, lambda g: -(x.mT @ g @ x.mT)


@inv.reverse
def inv_reverse(g: Any, r: Any, a: Any) -> Any:
    c = (r.mT @ g) @ r.mT
    return np.negative(c, out=c)


@inv.tangent
def inv_tangent(r: Any, a: Any) -> Any:
    return lambda t: -(r @ t @ r)


def inverse_of(a: Any, factor: LU | None) -> Any:
    """The inverse, of LU factors if they are at hand; nan for a singular matrix."""
    return inv.known(lu_inverse(factor), a) if factor else inv(a)


@operation(np.linalg.solve)
def solve(a: Any, b: Any, workspace: Any = np.empty) -> Any:
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
    factor = lu_factor(a, workspace)
    if factor:
        if factor.singular:
            raise _singular("solve", a)
        return Saved(lu_solve(factor, b, b.ndim == 1), factor=factor)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise _singular("solve", a) from None


# A program factorises again in the reverse pass, as stacks of small matrices do.
@solve.straight
def solve_straight(a: Any, b: Any) -> Any:
    unrolled(a)
    vector = np.ndim(b) == 1
    x = np.linalg.solve(a, column(b, vector))
    require(np.isfinite(x[..., 0, 0]))

    def contributions(g: Any) -> Any:
        z = np.linalg.solve(a.mT, column(g, vector))
        return lambda: -(z @ x.mT), lambda: uncolumn(z, vector)

    return uncolumn(x, vector), contributions


@solve.reverse
def solve_reverse(g: Any, r: Any, a: Any, b: Any, factor: LU | None = None) -> Any:
    vector = b.ndim == 1
    z = (
        lu_solve(factor, g, vector, trans=True)
        if factor
        else uncolumn(np.linalg.solve(a.mT, column(g, vector)), vector)
    )
    return lambda: outer(*columns(z, r, vector), -1.0), lambda: z


@solve.tangent
def solve_tangent(r: Any, a: Any, b: Any, factor: LU | None = None) -> Any:
    # All directions, and the derivatives of these maps, go through one inverse.
    vector, x = np.ndim(b) == 1, inverse_of(a, factor)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (t @ y), vector), lambda t: uncolumn(
        x @ column(t, vector), vector
    )


@operation()
def solve_triangular(
    a: Any, b: Any, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False
) -> Any:
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
    The adjoint of `a` is that of `numpy.linalg.solve`, in the triangle that is read. The function
    of `scipy.linalg` of this name, which cannot be called on variables.
    ``varmat.mdivide_left_tri_low(a, b)`` is the same with ``lower=True``.

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
    return triangular_solve(a, b, lower, _transposed(trans), unit_diagonal, vector=b.ndim == 1)


def check_diagonal(function: str, a: Any, name: str = "a") -> None:
    diagonal = a.diagonal(0, -2, -1)
    if np.count_nonzero(diagonal) < diagonal.size:
        index = np.argwhere(diagonal == 0)[0]
        raise MatrixError(
            f"{function}: {name}{place_of((*index, index[-1]))} is 0.0, but must be nonzero!"
        )


def _transposed(trans: Any) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise DomainError(
            f"solve_triangular: trans is {trans!r}, but must be 0, 1, 2, 'N', 'T' or 'C'!"
        )
    return trans not in (0, "N")


@solve_triangular.straight
def solve_triangular_straight(
    a: Any, b: Any, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False
) -> Any:
    if np.ndim(a) != 2 or np.ndim(b) > 2 or not np.size(b) or unit_diagonal:
        refuse()
    factor, transposed = (a, _transposed(trans)) if lower else (a.mT, not _transposed(trans))
    require(np.diagonal(factor) != 0.0)
    x = solve_lower(factor, b, transposed)

    def contributions(g: Any) -> Any:
        z = solve_lower(factor, g, not transposed)

        def of_a() -> Any:
            u, v = (column(each, np.ndim(b) == 1) for each in ((x, z) if transposed else (z, x)))
            c = -triangle(u @ v.mT)
            return c if lower else c.mT

        return of_a, lambda: z

    return x, contributions


@solve_triangular.reverse
def solve_triangular_reverse(
    g: Any, r: Any, a: Any, b: Any, lower: bool, trans: Any, unit_diagonal: bool
) -> Any:
    vector, transposed = b.ndim == 1, _transposed(trans)
    z = triangular_solve(a, g, lower, not transposed, unit_diagonal, vector=vector)

    def of_a() -> Any:
        x, y = columns(r, z, vector)
        c = lower_outer(x, y, -1.0) if transposed == lower else lower_outer(y, x, -1.0)
        c = c if lower else c.mT
        if unit_diagonal:
            np.einsum("...ii->...i", c)[...] = 0.0
        return c

    return of_a, lambda: z


@solve_triangular.tangent
def solve_triangular_tangent(
    r: Any, a: Any, b: Any, lower: bool, trans: Any, unit_diagonal: bool
) -> Any:
    vector = np.ndim(b) == 1
    y = column(r, vector)

    def solved(c: Any) -> Any:
        return uncolumn(
            solve_triangular(a, c, lower=lower, trans=trans, unit_diagonal=unit_diagonal), vector
        )

    def of_a(t: Any) -> Any:
        t = np.where(triangle_mask(np.shape(t), lower, strict=unit_diagonal), t, 0.0)
        return -solved((t.mT if _transposed(trans) else t) @ y)

    return of_a, lambda t: solved(column(t, vector))


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> factor = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: vm.cho_solve((factor, True), b)[0], np.ones(2))
    array([ 0.5, -0.5])
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        kind = type(c_and_lower).__name__
        raise TypeError(
            f"cho_solve: c_and_lower is a {kind}, but must be a pair of a factor and whether that "
            "is lower triangular!"
        )
    c, lower = c_and_lower
    c, b = as_operand(c, "cho_solve: c"), as_operand(b, "cho_solve: b")
    check_square("cho_solve", "c", np.shape(c))
    half = solve_triangular(c, b, lower=lower, trans=0 if lower else 1)
    vector = np.ndim(b) == 1  # of a stack of factors it makes a stack of vectors
    return uncolumn(
        solve_triangular(c, column(half, vector), lower=lower, trans=1 if lower else 0), vector
    )


@operation(stacked=True)
def chol2inv(factor: Any) -> Any:
    """The inverse of ``factor @ factor.T`` for a lower triangular `factor`, exactly symmetric.

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


@chol2inv.straight
def chol2inv_straight(factor: Any) -> Any:
    require(np.diagonal(factor) != 0.0)
    require(triangle(factor) == factor)
    x = inverse_lower(factor)
    return x, lambda g: -triangle(solve_lower(factor, (g + g.mT) @ x, transposed=False).mT)


@chol2inv.reverse
def chol2inv_reverse(g: Any, r: Any, factor: Any) -> Any:
    c = triangular_solve(factor, r @ (g + g.mT), lower=True, trans=True, right=True)
    return tril(np.negative(c, out=c))


@chol2inv.tangent
def chol2inv_tangent(r: Any, factor: Any) -> Any:
    def push(t: Any) -> Any:
        c = r @ np.where(triangle_mask(np.shape(t)), t, 0.0)
        p = solve_triangular(factor, c.mT, lower=True, trans=1).mT
        return -(p + p.mT)

    return push


@operation()
def mdivide_left_tri_low(a: Any, b: Any) -> Any:
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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.mdivide_left_tri_low(vm.var([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    VarMat([1., 2.])
    """
    check_system("mdivide_left_tri_low", a, b)
    check_diagonal("mdivide_left_tri_low", a)
    return triangular_solve(a, b, lower=True, vector=b.ndim == 1)


@mdivide_left_tri_low.straight
def mdivide_left_tri_low_straight(a: Any, b: Any) -> Any:
    return solve_triangular_straight(a, b, lower=True)


@mdivide_left_tri_low.reverse
def mdivide_left_tri_low_reverse(g: Any, r: Any, a: Any, b: Any) -> Any:
    return solve_triangular_reverse(g, r, a, b, lower=True, trans=0, unit_diagonal=False)


@mdivide_left_tri_low.tangent
def mdivide_left_tri_low_tangent(r: Any, a: Any, b: Any) -> Any:
    return solve_triangular_tangent(r, a, b, lower=True, trans=0, unit_diagonal=False)


@operation()
def mdivide_left_spd(a: Any, b: Any, workspace: Any = np.empty) -> Any:
    """``inv(a) @ b`` for a symmetric positive definite `a`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoints are those of `numpy.linalg.solve`, that of `a` folded onto the lower triangle. The
    Cholesky factor of the value serves the reverse pass. Also called ``varmat.mdivide_left_ldlt``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: np.sum(vm.mdivide_left_spd(a, b)), np.ones(2))
    array([0., 1.])
    """
    check_system("mdivide_left_spd", a, b)
    check_symmetric("mdivide_left_spd", a)
    factor = cholesky_factor("mdivide_left_spd", a, workspace)
    return Saved(cholesky_solve(factor, b, b.ndim == 1), factor=factor)


@mdivide_left_spd.straight
def mdivide_left_spd_straight(a: Any, b: Any) -> Any:
    if np.ndim(b) > 2 or not np.size(b):
        refuse()
    factor, vector = positive_definite(a), np.ndim(b) == 1
    x = solve_lower(factor, solve_lower(factor, b), transposed=True)

    def contributions(g: Any) -> Any:
        z = solve_lower(factor, solve_lower(factor, g), transposed=True)
        c = column(z, vector) @ column(x, vector).mT
        return lambda: -triangle(c + c.mT, half=True), lambda: z

    return x, contributions


@mdivide_left_spd.reverse
def mdivide_left_spd_reverse(g: Any, r: Any, a: Any, b: Any, factor: Any) -> Any:
    vector = b.ndim == 1
    z = cholesky_solve(factor, g, vector)
    return lambda: folded_outer(*columns(z, r, vector), -1.0), lambda: z


@mdivide_left_spd.tangent
def mdivide_left_spd_tangent(r: Any, a: Any, b: Any, factor: Any) -> Any:
    vector, x = np.ndim(b) == 1, inverse_spd_of(a, factor)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (symmetric(t) @ y), vector), lambda t: uncolumn(
        x @ column(t, vector), vector
    )


_FROM_THE_RIGHT = """{summary}

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
    The adjoints are those of the function from the left, transposed.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.{name}(np.array([2.0, 4.0]), vm.var([[2.0, 0.0], [0.0, 4.0]]))
    VarMat([1., 1.])
    """


def _from_the_right(name: str, left: Any, summary: str) -> Any:
    def divide(b: Any, a: Any) -> Any:
        b, a = as_operand(b, f"{name}: b"), as_operand(a, f"{name}: a")
        check_square(name, "a", np.shape(a))
        shape, n = np.shape(b), np.shape(a)[-1]
        if shape[-1:] != (n,):
            raise ShapeError(
                f"{name}: b has shape {shape}, but must have {n} columns, as a has rows!"
            )
        if np.ndim(b) == 1:
            return left(a, b)
        return left(a, b.mT).mT

    divide.__name__ = divide.__qualname__ = name
    divide.__doc__ = _FROM_THE_RIGHT.format(name=name, summary=summary)
    return divide


mdivide_right = _from_the_right(
    "mdivide_right",
    lambda a, b: solve(a.mT, b),
    "``b @ inv(a)``, by `numpy.linalg.solve` with the transposed matrices.",
)
mdivide_right_spd = _from_the_right(
    "mdivide_right_spd",
    mdivide_left_spd,
    "``b @ inv(a)`` for a symmetric positive definite `a`: `mdivide_left_spd` with `b` transposed.",
)
mdivide_right_tri_low = _from_the_right(
    "mdivide_right_tri_low",
    lambda a, b: solve_triangular(a, b, lower=True, trans=1),
    "``b @ inv(a)`` for a lower triangular `a`: `solve_triangular` with the transposed matrices.",
)


@operation(stacked=True)
def inverse_spd(a: Any) -> Any:
    """The inverse of a symmetric positive definite matrix, exactly symmetric.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric, to 1e-8; once that is checked, only the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not symmetric, has elements that are not finite, or is not positive definite; the
        last is also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoint is that of `numpy.linalg.inv`, folded onto the lower triangle.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.inverse_spd(a)[0, 0], np.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[-1.,  0.],
           [ 2., -1.]])
    """
    check_square("inverse_spd", "a", np.shape(a))
    check_symmetric("inverse_spd", a)
    return mirrored(inverse_triangle(cholesky_factor("inverse_spd", a)))


def inverse_spd_of(a: Any, factor: Any) -> Any:
    """The inverse of a matrix of which the Cholesky factor is at hand."""
    return inverse_spd.known(mirrored(inverse_triangle(factor)), a)


@inverse_spd.straight
def inverse_spd_straight(a: Any) -> Any:
    x = inverse_lower(positive_definite(a))

    def contribution(g: Any) -> Any:
        c = x @ g @ x
        return -triangle(c + c.mT, half=True)

    return x, contribution


@inverse_spd.reverse
def inverse_spd_reverse(g: Any, r: Any, a: Any) -> Any:
    c = to_triangle((r @ g) @ r)
    return np.negative(c, out=c)


@inverse_spd.tangent
def inverse_spd_tangent(r: Any, a: Any) -> Any:
    return lambda t: -(r @ symmetric(t) @ r)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of a tensor: `numpy.linalg.tensorinv`, by reshaping to a matrix."""
    shape = np.shape(a)
    if ind <= 0:
        raise DomainError(f"tensorinv: ind is {ind}, but must be positive!")
    size = int(np.prod(shape[ind:], dtype=int))
    return np.reshape(np.linalg.inv(np.reshape(a, (-1, size))), shape[ind:] + shape[:ind])


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Solve a tensor equation: `numpy.linalg.tensorsolve`, by reshaping to a matrix."""
    if axes is not None:
        axes = [k % np.ndim(a) for k in axes]
        a = np.transpose(a, [k for k in range(np.ndim(a)) if k not in axes] + axes)
    shape = np.shape(a)[np.ndim(b) :]
    size = int(np.prod(shape, dtype=int))
    return np.reshape(np.linalg.solve(np.reshape(a, (-1, size)), np.ravel(b)), shape)


inverse = inv
mdivide_left = solve
mdivide_left_ldlt = mdivide_left_spd
mdivide_right_ldlt = mdivide_right_spd
