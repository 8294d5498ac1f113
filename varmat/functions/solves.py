"""Linear systems: inverses, general, triangular and symmetric positive definite systems.

A matrix is factorised once: the LU or Cholesky factor that gave the value is kept for the reverse pass. Stacks of matrices (leading
axes) go through NumPy's own loops.

**Symmetric arguments.** A function of a symmetric matrix (here and in `varmat.functions.factorisations`) reads the lower
triangle, as LAPACK does, and never looks at the upper one. Its derivative is that of exactly this function: the adjoint lies in
the lower triangle, and an element off the diagonal carries the derivative of both places it stands for. For a matrix that is
symmetric by construction (``b @ b.T``, a covariance function) the gradient of what it was made from is the same as with any
other convention.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.dispatch import implements
from varmat.core.errors import DomainError, ShapeError, check_square
from varmat.core.operation import Saved, as_operand, operation

__all__ = [
    "cho_solve",
    "chol2inv",
    "inverse",
    "inverse_spd",
    "mdivide_left",
    "mdivide_left_spd",
    "mdivide_left_tri_low",
    "mdivide_right",
    "mdivide_right_spd",
    "mdivide_right_tri_low",
    "solve_triangular",
]


class MatrixError(DomainError, np.linalg.LinAlgError):
    """A matrix is outside the domain of a factorisation: a `DomainError` that code written for NumPy catches too."""


def _singular(function: str) -> MatrixError:
    return MatrixError(f"{function}: a is singular, but must be invertible!")


# What the rules share, on plain arrays or, where it says so, on anything differentiable.


def triangle_mask(shape: tuple[int, ...], lower: bool = True, strict: bool = False) -> np.ndarray:
    """Where the elements of one triangle of a matrix of `shape` are; `strict` leaves the diagonal out."""
    n, m = shape[-2:]
    return np.tri(n, m, -1 if strict else 0, dtype=bool) if lower else ~np.tri(n, m, 0 if strict else -1, dtype=bool)


def symmetric(t: Any, lower: bool = True) -> Any:
    """The symmetric matrix whose one triangle is that of `t`; differentiable."""
    return np.where(triangle_mask(np.shape(t), lower), t, t.mT)


def to_triangle(c: Any, lower: bool = True) -> Any:
    """The transpose of `symmetric` as a linear map: fold a matrix onto one triangle."""
    return half_diagonal((np.tril if lower else np.triu)(c + c.mT))


def half_diagonal(x: Any) -> Any:
    """Halve the diagonal of an array in place."""
    diagonal = np.einsum("...ii->...i", x)
    np.multiply(diagonal, 0.5, out=diagonal)
    return x


def inner(x: Any, y: Any) -> Any:
    """The inner product of matrices, for each of a stack; differentiable."""
    return np.sum(x * y, axis=(-2, -1))


def column(x: Any, vector: bool) -> Any:
    """A vector, or a stack of them, as matrices with one column; differentiable."""
    return x[..., None] if vector else x


def uncolumn(x: Any, vector: bool) -> Any:
    return x[..., 0] if vector else x


def outer(x: Any, y: Any, vector: bool) -> Any:
    """``x y^T`` for vectors or for matrices of columns."""
    return column(x, vector) @ column(y, vector).mT


def check_system(function: str, a: Any, b: Any, name: str = "b") -> None:
    """Raise `ShapeError` unless ``a x = b`` makes sense: `a` square (a stack), `b` a vector or a matrix (a stack)."""
    check_square(function, "a", np.shape(a))
    shape, n = np.shape(b), a.shape[-1]
    rows = shape[-2:][0] if shape else None
    if rows != n:
        raise ShapeError(f"{function}: {name} has shape {shape}, but must have {n} rows, as a has!")
    try:
        np.broadcast_shapes(a.shape[:-2], shape[:-2])
    except ValueError:
        raise ShapeError(f"{function}: {name} has shape {shape}, but must go with a, of shape {a.shape}!") from None


def lu_factor(a: np.ndarray) -> tuple[Any, Any, bool]:
    """LU factor, pivots, and whether a pivot is exactly zero, of one matrix."""
    from scipy.linalg.lapack import dgetrf

    lu, pivots, info = dgetrf(a)
    return lu, pivots, info > 0


def lu_solve(factor: Any, b: Any, trans: bool = False) -> Any:
    """Solve with the factor of `lu_factor`, or with its transpose."""
    from scipy.linalg.lapack import dgetrs

    return dgetrs(factor[0], factor[1], b, trans=trans)[0]


def lu_inverse(factor: Any) -> Any:
    """The inverse from the factor of `lu_factor`; nan for a singular matrix."""
    from scipy.linalg.lapack import dgetri

    return np.full(factor[0].shape, np.nan) if factor[2] else dgetri(factor[0], factor[1])[0]


def triangular_solve(a: Any, b: Any, lower: bool, trans: bool = False, unit: bool = False) -> Any:
    """Solve for a matrix of columns, on plain arrays; a zero on the diagonal gives inf and nan, not an error."""
    if a.ndim == b.ndim == 2 and b.size:
        from scipy.linalg.blas import dtrsm

        # Fortran sees the transpose of a C-contiguous matrix, so it needs no copy of a.T.
        return dtrsm(1.0, a.T, b, lower=not lower, trans_a=not trans, diag=unit)
    a = np.where(triangle_mask(a.shape, lower, strict=unit), a, np.eye(a.shape[-1]) if unit else 0.0)
    # NumPy refuses a zero on the diagonal; nan marks the whole solution instead.
    zero = np.any(np.diagonal(a, axis1=-2, axis2=-1) == 0, axis=-1)[..., None, None]
    a = np.where(zero, np.nan, a)
    return np.linalg.solve(a.mT if trans else a, b)


def cholesky_factor(function: str, a: Any) -> Any:
    """The lower Cholesky factor, or the refusal of a matrix that has none."""
    try:
        factor = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise _indefinite(function, a) from None
    # LAPACK lets nan pass.
    if not np.isfinite(np.diagonal(factor, axis1=-2, axis2=-1)).all():
        raise _indefinite(function, a)
    return factor


def _indefinite(function: str, a: Any) -> MatrixError:
    for index in np.ndindex(a.shape[:-2]):
        try:
            if not np.isfinite(np.linalg.cholesky(a[index])).all():
                break
        except np.linalg.LinAlgError:
            break
    place = f"[{', '.join(map(str, index))}]" if index else ""
    matrix = symmetric(a[index])
    if np.isfinite(matrix).all():
        what = f"has the eigenvalue {float(np.linalg.eigvalsh(matrix)[0]):.4g}"
    else:
        what = "has elements that are not finite"
    return MatrixError(f"{function}: a{place} {what}, but must be positive definite!")


def factor_inverse(factor: Any) -> Any:
    """The inverse of a positive definite matrix from its lower Cholesky factor; exactly symmetric."""
    if factor.ndim == 2 and factor.size:
        from scipy.linalg.lapack import dpotri

        return symmetric(dpotri(factor.T)[0], lower=False)
    x = triangular_solve(factor, np.broadcast_to(np.eye(factor.shape[-1]), factor.shape), lower=True)
    return x.mT @ x


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
    With :math:`X = A^{-1}`, :math:`dX = -X\\, dA\\, X`. To solve a system use `numpy.linalg.solve`. Also called ``varmat.inverse``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.inv(a)[0, 1], np.array([[2.0, 1.0], [0.0, 1.0]]))
    array([[ 0.25, -0.5 ],
           [-0.25,  0.5 ]])
    """
    check_square("inv", "a", np.shape(a))
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        raise _singular("inv") from None


@inv.reverse
def inv_reverse(g: Any, r: Any, a: Any) -> Any:
    return r.mT @ g @ -r.mT


@inv.tangent
def inv_tangent(r: Any, a: Any) -> Any:
    return lambda t: -(r @ t @ r)


@operation(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Solve the linear system ``a @ x = b``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
    b : array_like, shape (n,) or (..., n, k)
        A vector if it has one axis, otherwise a matrix of columns or a stack of them, as in NumPy 2.

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
    With :math:`Z = A^{-T} \\bar X`, the adjoints are :math:`\\bar B = Z` and :math:`\\bar A = -Z X^T` [1]_. The LU factor of
    the value serves the reverse pass. Also called ``varmat.mdivide_left``.

    References
    ----------
    .. [1] M. B. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation", 2008.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> vm.gradient(lambda b: np.sum(np.linalg.solve(a, b)), np.ones(2))
    array([0.375, 0.25 ])
    """
    check_system("solve", a, b)
    if a.ndim == 2 and b.ndim <= 2 and b.size:
        factor = lu_factor(a)
        if factor[2]:
            raise _singular("solve")
        return Saved(lu_solve(factor, b), factor=factor)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise _singular("solve") from None


@solve.reverse
def solve_reverse(g: Any, r: Any, a: Any, b: Any, factor: Any = None) -> Any:
    vector = b.ndim == 1
    z = lu_solve(factor, g, trans=True) if factor else uncolumn(np.linalg.solve(a.mT, column(g, vector)), vector)
    return lambda: outer(-z, r, vector), lambda: z


@solve.tangent
def solve_tangent(r: Any, a: Any, b: Any) -> Any:
    # All directions, and the derivatives of these maps, go through one inverse.
    vector, x = np.ndim(b) == 1, np.linalg.inv(a)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (t @ y), vector), lambda t: uncolumn(x @ column(t, vector), vector)


@operation(operands="a b")
def solve_triangular(a: Any, b: Any, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False) -> Any:
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
    The adjoint of `a` is that of `numpy.linalg.solve`, in the triangle that is read. The function of `scipy.linalg` of this
    name, which cannot be called on variables. ``varmat.mdivide_left_tri_low(a, b)`` is ``solve_triangular(a, b, lower=True)``.

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
        _check_diagonal("solve_triangular", a)
    vector = b.ndim == 1
    return np.array(uncolumn(triangular_solve(a, column(b, vector), lower, _transposed(trans), unit_diagonal), vector))


def _check_diagonal(function: str, a: Any) -> None:
    zeros = np.argwhere(np.diagonal(a, axis1=-2, axis2=-1) == 0)
    if len(zeros):
        index = ", ".join(map(str, (*zeros[0], zeros[0][-1])))
        raise MatrixError(f"{function}: a[{index}] is 0.0, but must be nonzero!")


def _transposed(trans: Any) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise DomainError(f"solve_triangular: trans is {trans!r}, but must be 0, 1, 2, 'N', 'T' or 'C'!")
    return trans not in (0, "N")


@solve_triangular.reverse
def solve_triangular_reverse(g: Any, r: Any, a: Any, b: Any, lower: bool, trans: Any, unit_diagonal: bool) -> Any:
    vector, transposed = b.ndim == 1, _transposed(trans)
    z = uncolumn(triangular_solve(a, column(g, vector), lower, not transposed, unit_diagonal), vector)

    def of_a() -> Any:
        c = outer(r, -z, vector) if transposed else outer(-z, r, vector)
        return np.tril(c, -int(unit_diagonal)) if lower else np.triu(c, int(unit_diagonal))

    return of_a, lambda: np.array(z)


@solve_triangular.tangent
def solve_triangular_tangent(r: Any, a: Any, b: Any, lower: bool, trans: Any, unit_diagonal: bool) -> Any:
    vector = np.ndim(b) == 1
    y = column(r, vector)

    def solved(c: Any) -> Any:
        return uncolumn(solve_triangular(a, c, lower=lower, trans=trans, unit_diagonal=unit_diagonal), vector)

    def of_a(t: Any) -> Any:
        t = np.where(triangle_mask(np.shape(t), lower, strict=unit_diagonal), t, 0.0)
        return -solved((t.mT if _transposed(trans) else t) @ y)

    return of_a, lambda t: solved(column(t, vector))


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Any:
    """Solve ``a @ x = b`` from a Cholesky factor of `a`.

    Parameters
    ----------
    c_and_lower : tuple of array_like, shape (..., n, n), and bool
        The factor, and whether it is the lower one (``a = c @ c.T``) or the upper one (``a = c.T @ c``). Only that triangle is
        read.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Notes
    -----
    Two calls of `solve_triangular`, whose derivatives and refusals these are. The function of `scipy.linalg` of this name.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> factor = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: vm.cho_solve((factor, True), b)[0], np.ones(2))
    array([ 0.5, -0.5])
    """
    c, lower = c_and_lower
    half = solve_triangular(c, b, lower=lower, trans=0 if lower else 1)
    vector = np.ndim(b) == 1  # of a stack of factors it makes a stack of vectors
    return uncolumn(solve_triangular(c, column(half, vector), lower=lower, trans=1 if lower else 0), vector)


def chol2inv(factor: Any) -> Any:
    """The inverse of ``factor @ factor.T`` for a lower triangular `factor`, exactly symmetric.

    Parameters
    ----------
    factor : array_like, shape (..., n, n)
        The lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: np.trace(vm.chol2inv(c)), np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[-0.5,  0. ],
           [ 0.5, -2.5]])
    """
    factor = as_operand(factor, "chol2inv: factor")
    check_square("chol2inv", "factor", np.shape(factor))
    x = solve_triangular(factor, np.eye(np.shape(factor)[-1]), lower=True)
    return x.mT @ x


def mdivide_left_tri_low(a: Any, b: Any) -> Any:
    """``inv(a) @ b`` for a lower triangular `a`: `solve_triangular` with ``lower=True``.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        The lower triangle is read.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    Var or VarMat

    Raises
    ------
    ShapeError
        If `a` is not square or `b` does not fit.
    DomainError
        If `a` has a zero on its diagonal.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.mdivide_left_tri_low(vm.var([[2.0, 0.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    VarMat([1., 2.])
    """
    return solve_triangular(a, b, lower=True)


@operation(operands="a b")
def mdivide_left_spd(a: Any, b: Any) -> Any:
    """``inv(a) @ b`` for a symmetric positive definite `a`.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric; the lower triangle is read.
    b : array_like, shape (n,) or (..., n, k)

    Returns
    -------
    VarMat, shape (..., n) or (..., n, k)

    Raises
    ------
    ShapeError
        If `a` is not square, or `b` has another number of rows.
    DomainError
        If `a` is not positive definite; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The adjoints are those of `numpy.linalg.solve`, that of `a` folded onto the lower triangle. The Cholesky factor of the value
    serves the reverse pass.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: np.sum(vm.mdivide_left_spd(a, b)), np.ones(2))
    array([0., 1.])
    """
    check_system("mdivide_left_spd", a, b)
    factor = cholesky_factor("mdivide_left_spd", a)
    return Saved(_factor_solve(factor, b, b.ndim == 1), factor=factor)


def _factor_solve(factor: Any, b: Any, vector: bool) -> Any:
    half = triangular_solve(factor, column(b, vector), lower=True)
    return np.array(uncolumn(triangular_solve(factor, half, lower=True, trans=True), vector))


@mdivide_left_spd.reverse
def mdivide_left_spd_reverse(g: Any, r: Any, a: Any, b: Any, factor: Any) -> Any:
    vector = b.ndim == 1
    z = _factor_solve(factor, g, vector)
    return lambda: to_triangle(outer(-z, r, vector)), lambda: z


@mdivide_left_spd.tangent
def mdivide_left_spd_tangent(r: Any, a: Any, b: Any) -> Any:
    vector, x = np.ndim(b) == 1, inverse_spd(a)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (symmetric(t) @ y), vector), lambda t: uncolumn(x @ column(t, vector), vector)


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
        If `a` is not square or `b` does not fit.
    DomainError
        If `a` is singular or not of the kind it must be.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.{name}(np.array([2.0, 4.0]), vm.var([[2.0, 0.0], [0.0, 4.0]]))
    VarMat([1., 1.])
    """


def _from_the_right(name: str, left: Any, summary: str) -> Any:
    def divide(b: Any, a: Any) -> Any:
        b, a = as_operand(b, f"{name}: b"), as_operand(a, f"{name}: a")
        if np.ndim(b) == 1:
            return left(a, b)
        return left(a, b.mT).mT

    divide.__name__ = divide.__qualname__ = name
    divide.__doc__ = _FROM_THE_RIGHT.format(name=name, summary=summary)
    return divide


mdivide_right = _from_the_right(
    "mdivide_right", lambda a, b: solve(a.mT, b), "``b @ inv(a)``, by `numpy.linalg.solve` with the transposed matrices."
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


@operation(operands="a", stacked=True)
def inverse_spd(a: Any) -> Any:
    """The inverse of a symmetric positive definite matrix, exactly symmetric.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric; the lower triangle is read.

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If `a` is not positive definite; also a `numpy.linalg.LinAlgError`.

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
    return factor_inverse(cholesky_factor("inverse_spd", a))


@inverse_spd.reverse
def inverse_spd_reverse(g: Any, r: Any, a: Any) -> Any:
    return to_triangle(r @ g @ -r)


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
