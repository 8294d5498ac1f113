"""Cholesky factors of symmetric positive definite matrices.

Which triangle is read, and where the adjoint lies, is said in
`varmat.functions.linalg.symmetric_arguments`."""

from __future__ import annotations

import numpy as np

from varmat.core.operation import operation
from varmat.functions.checks import check_square
from varmat.functions.linalg.lapack import cholesky_adjoint, cholesky_factor, spd_factor
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.triangles import transposed, triangle_mask
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result, array_valued

__all__ = ["cholesky_decompose"]


@operation(np.linalg.cholesky, stacked=True)
def cholesky(a: Plain, *, upper: bool = False, workspace: Function = np.empty) -> Plain:
    """Compute the Cholesky factor of a symmetric positive definite matrix.

    Parameters
    ----------
    a : array_like, shape (..., n, n)
        Symmetric; the lower triangle is read (the upper one with `upper`).
    upper : bool
        Return the upper factor, ``a = r.T @ r``, instead of the lower one, ``a = r @ r.T``.

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
    With :math:`\\Phi` the lower triangle with halved diagonal, :math:`dL = L\\, \\Phi(L^{-1}\\,
    dA\\, L^{-T})`, and in reverse :math:`L^{-T}\\, \\Phi(L^T \\bar L)\\, L^{-1}`, folded onto the
    triangle that is read: for small matrices by these formulas, for large ones by undoing the
    factorisation block by block, in products of matrices [1]_. ``varmat.cholesky_decompose`` is
    this function with a check of symmetry.

    References
    ----------
    .. [1] I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, 2016.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: np.linalg.cholesky(a)[1, 1], np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[ 0.0625,  0.    ],
           [-0.25  ,  0.25  ]])
    """
    check_square("cholesky", "a", np.shape(a))
    return (
        transposed(cholesky_factor("cholesky", a.mT))
        if upper
        else cholesky_factor("cholesky", a, workspace)
    )


def _phi(x: Operand) -> Result:
    """Return the lower triangle with halved diagonal; differentiable."""
    mask = triangle_mask(np.shape(x))
    return np.where(mask, x, 0.0) * (mask - 0.5 * np.eye(len(mask)))


@cholesky.reverse
def cholesky_reverse(g: Adjoint, r: Plain, a: Plain, upper: bool = False) -> Adjoint:
    return transposed(cholesky_adjoint(transposed(r), g.mT)) if upper else cholesky_adjoint(r, g)


@cholesky.tangent
def cholesky_tangent(r: Result, a: Operand, upper: bool = False) -> Linear:
    factor = r.mT if upper else r

    def push(t: Operand) -> Result:
        left = solve_triangular(factor, symmetric(t, not upper), lower=True)
        d = factor @ _phi(solve_triangular(factor, left.mT, lower=True))
        return d.mT if upper else d

    return push


@operation(stacked=True)
@array_valued
def cholesky_decompose(a: Plain, workspace: Function = np.empty) -> Plain:
    """Compute the lower Cholesky factor of a symmetric positive definite matrix:
    `numpy.linalg.cholesky` with a check of symmetry.

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
    The derivative is the same as for `numpy.linalg.cholesky`; the adjoint lies in the lower
    triangle.

    References
    ----------
    Stan Functions Reference, "Linear algebra functions and solvers".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.cholesky_decompose(a)[1, 0], np.array([[4.0, 2.0], [2.0, 5.0]]))
    array([[-0.125,  0.   ],
           [ 0.5  ,  0.   ]])
    """
    check_square("cholesky_decompose", "a", np.shape(a))
    return spd_factor("cholesky_decompose", a, workspace)


cholesky_decompose.reverse(cholesky_reverse)
cholesky_decompose.tangent(cholesky_tangent)
