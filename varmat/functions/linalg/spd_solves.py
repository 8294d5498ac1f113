"""Linear systems and inverses of symmetric positive definite matrices, by Cholesky factors.

The factor that gave the value is kept for the reverse pass. Which triangle is read, and where the
adjoint lies, is said in `varmat.functions.linalg.symmetric_arguments`."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import check_square
from varmat.functions.linalg.lapack import (
    cholesky_solve,
    folded_outer,
    inverse_triangle,
    spd_factor,
)
from varmat.functions.linalg.solves import from_the_right
from varmat.functions.linalg.symmetric_arguments import symmetric, to_triangle
from varmat.functions.linalg.systems import check_system, column, columns, uncolumn
from varmat.functions.linalg.triangles import mirrored
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = [
    "inverse_spd",
    "mdivide_left_ldlt",
    "mdivide_left_spd",
    "mdivide_right_ldlt",
    "mdivide_right_spd",
]


@operation()
@array_valued
def mdivide_left_spd(a: Plain, b: Plain, workspace: Function = np.empty) -> Saved:
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
    The adjoints are as for `numpy.linalg.solve`; the one of `a` is folded onto the lower triangle.
    The Cholesky factor serves the reverse pass. Also called ``varmat.mdivide_left_ldlt``.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> a = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> vm.gradient(lambda b: np.sum(vm.mdivide_left_spd(a, b)), np.ones(2))
    array([0., 1.])
    """
    check_system("mdivide_left_spd", a, b)
    factor = spd_factor("mdivide_left_spd", a, workspace)
    return Saved(cholesky_solve(factor, b, b.ndim == 1), factor=factor)


@mdivide_left_spd.reverse
def mdivide_left_spd_reverse(
    g: Adjoint, r: Plain, a: Plain, b: Plain, factor: Plain
) -> tuple[Thunk, ...]:
    vector = b.ndim == 1
    z = cholesky_solve(factor, g, vector)
    return lambda: folded_outer(*columns(z, r, vector), -1.0), lambda: z


@mdivide_left_spd.tangent
def mdivide_left_spd_tangent(
    r: Result, a: Operand, b: Operand, factor: Plain
) -> tuple[Linear, ...]:
    vector, x = np.ndim(b) == 1, inverse_spd_of(a, factor)
    y = column(r, vector)
    return lambda t: -uncolumn(x @ (symmetric(t) @ y), vector), lambda t: uncolumn(
        x @ column(t, vector), vector
    )


mdivide_right_spd = from_the_right(
    "mdivide_right_spd",
    mdivide_left_spd,
    "``b @ inv(a)`` for a symmetric positive definite `a`: `mdivide_left_spd` with `b` transposed.",
)


@operation(stacked=True)
@array_valued
def inverse_spd(a: Plain) -> Plain:
    """Invert a symmetric positive definite matrix; the result is exactly symmetric.

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
    The adjoint is `numpy.linalg.inv`'s, folded onto the lower triangle.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.inverse_spd(a)[0, 0], np.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[-1.,  0.],
           [ 2., -1.]])
    """
    check_square("inverse_spd", "a", np.shape(a))
    return mirrored(inverse_triangle(spd_factor("inverse_spd", a)))


def inverse_spd_of(a: Operand, factor: Plain) -> Result:
    """Compute the inverse of `a` from its Cholesky factor."""
    return inverse_spd.known(mirrored(inverse_triangle(factor)), a)


@inverse_spd.reverse
def inverse_spd_reverse(g: Adjoint, r: Plain, a: Plain) -> Adjoint:
    c = to_triangle((r @ g) @ r)
    return np.negative(c, out=c)


@inverse_spd.tangent
def inverse_spd_tangent(r: Result, a: Operand) -> Linear:
    return lambda t: -(r @ symmetric(t) @ r)


mdivide_left_ldlt = alias("mdivide_left_ldlt", mdivide_left_spd)
mdivide_right_ldlt = alias("mdivide_right_ldlt", mdivide_right_spd)
