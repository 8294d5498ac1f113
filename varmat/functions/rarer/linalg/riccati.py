"""Riccati equations, of optimal control and of stationary Kalman filters.

The derivative of a solution solves a Lyapunov equation with the matrix of the controlled system.
"""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand, operation
from varmat.functions.linalg.lapack import MatrixError
from varmat.functions.rarer.linalg.matrix_equations import (
    check_matrix_of,
    check_one_square,
    solve_continuous_lyapunov,
    solve_discrete_lyapunov,
)
from varmat.plain_arrays import scipy_linalg
from varmat.typing import Adjoint, Linear, Operand, Plain, Result, Thunk, array_valued

__all__ = ["solve_continuous_are", "solve_discrete_are"]


def _operands(
    function: str, a: Operand, b: Operand, q: Operand, r: Operand
) -> tuple[Result, Result, Result, Result]:
    """Check that the sizes of the matrices fit; return them, with `q` and `r` symmetric, as the
    mean of them and their transposes.
    """
    a, b, q, r = (
        as_operand(x, f"{function}: {name}") for name, x in (("a", a), ("b", b), ("q", q), ("r", r))
    )
    check_one_square(function, "a", a)
    check_matrix_of(function, "b", b, (np.shape(a)[0], None))
    check_matrix_of(function, "q", q, np.shape(a))
    check_matrix_of(function, "r", r, (np.shape(b)[1],) * 2)
    return a, b, 0.5 * (q + q.T), 0.5 * (r + r.T)


def _solution(function: str, *matrices: np.ndarray) -> np.ndarray:
    try:
        return np.array(getattr(scipy_linalg, function)(*matrices))
    except (np.linalg.LinAlgError, ValueError) as error:
        raise MatrixError(f"{function}: there is no stabilising solution ({error})!") from None


@array_valued
def solve_continuous_are(a: Operand, b: Operand, q: Operand, r: Operand) -> Result:
    """Find the stabilising solution of ``a.T @ x + x @ a - x @ b @ inv(r) @ b.T @ x + q = 0``:
    `scipy.linalg.solve_continuous_are`.

    Parameters
    ----------
    a : array_like, shape (n, n)
    b : array_like, shape (n, m)
    q : array_like, shape (n, n)
        Symmetric; of another matrix the symmetric part is taken.
    r : array_like, shape (m, m)
        Symmetric and invertible; of another matrix the symmetric part is taken.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If the matrices do not go together.
    DomainError
        If no stabilising solution exists, or `r` is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`K = R^{-1} B^T X` and :math:`Z` from :math:`(A - BK) Z + Z (A - BK)^T = \\bar X` the
    adjoints are :math:`\\bar A = -X (Z + Z^T)`, :math:`\\bar B = X (Z + Z^T) K^T`, :math:`\\bar Q =
    -Z` and :math:`\\bar R = -K Z K^T`.

    References
    ----------
    Peter Lancaster and Leiba Rodman, Algebraic Riccati Equations, Oxford, 1995.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> one = np.eye(1)
    >>> vm.gradient(lambda q: vm.solve_continuous_are(0.0 * one, one, q, one)[0, 0], 4.0 * one)
    array([[0.25]])
    """
    return continuous_riccati(*_operands("solve_continuous_are", a, b, q, r))


@operation()
def continuous_riccati(a: Plain, b: Plain, q: Plain, r: Plain) -> Plain:
    """Solve the equation for symmetric `q` and `r`."""
    return _solution("solve_continuous_are", a, b, q, r)


# The result is called x, because r is an operand.
@continuous_riccati.reverse
def continuous_riccati_reverse(
    g: Adjoint, x: Plain, a: Plain, b: Plain, q: Plain, r: Plain
) -> tuple[Thunk, ...]:
    gain = np.linalg.solve(r, b.T @ x)
    z = solve_continuous_lyapunov(a - b @ gain, g)
    both = x @ (z + z.T)
    return lambda: -both, lambda: both @ gain.T, lambda: -z, lambda: -(gain @ z @ gain.T)


@continuous_riccati.tangent
def continuous_riccati_tangent(
    x: Result, a: Operand, b: Operand, q: Operand, r: Operand
) -> tuple[Linear, ...]:
    gain = np.linalg.solve(r, b.T @ x)
    closed = (a - b @ gain).T

    def change(rate: Operand) -> Result:
        return -solve_continuous_lyapunov(closed, rate)

    def of_b(t: Operand) -> Result:
        half = x @ t @ gain
        return change(-(half + half.T))

    return (lambda t: change(t.T @ x + x @ t), of_b, change, lambda t: change(gain.T @ t @ gain))


@array_valued
def solve_discrete_are(a: Operand, b: Operand, q: Operand, r: Operand) -> Result:
    """Find the stabilising solution of the discrete equation of Riccati:
    `scipy.linalg.solve_discrete_are`.

    It is ``x = a.T @ x @ a - a.T @ x @ b @ inv(r + b.T @ x @ b) @ b.T @ x @ a + q``.

    Parameters
    ----------
    a : array_like, shape (n, n)
    b : array_like, shape (n, m)
    q : array_like, shape (n, n)
        Symmetric; of another matrix the symmetric part is taken.
    r : array_like, shape (m, m)
        Symmetric; of another matrix the symmetric part is taken.

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If the matrices do not go together.
    DomainError
        If no stabilising solution exists; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    With :math:`K = (R + B^T X B)^{-1} B^T X A`, :math:`C = A - BK` and :math:`Z = C Z C^T + \\bar
    X` the adjoints are :math:`\\bar A = X C (Z + Z^T)`, :math:`\\bar B = -\\bar A K^T`,
    :math:`\\bar Q = Z` and :math:`\\bar R = K Z K^T`. The stationary covariance of the prediction
    of a Kalman filter is the solution for the transposed matrices.

    References
    ----------
    Peter Lancaster and Leiba Rodman, Algebraic Riccati Equations, Oxford, 1995.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> one = np.eye(1)
    >>> vm.gradient(lambda q: vm.solve_discrete_are(0.0 * one, one, q, one)[0, 0], 4.0 * one)
    array([[1.]])
    """
    return discrete_riccati(*_operands("solve_discrete_are", a, b, q, r))


@operation()
def discrete_riccati(a: Plain, b: Plain, q: Plain, r: Plain) -> Plain:
    """Solve the equation for symmetric `q` and `r`."""
    return _solution("solve_discrete_are", a, b, q, r)


@discrete_riccati.reverse
def discrete_riccati_reverse(
    g: Adjoint, x: Plain, a: Plain, b: Plain, q: Plain, r: Plain
) -> tuple[Thunk, ...]:
    gain = np.linalg.solve(r + b.T @ x @ b, b.T @ x @ a)
    closed = a - b @ gain
    z = solve_discrete_lyapunov(closed, g)
    both = x @ closed @ (z + z.T)
    return lambda: both, lambda: -(both @ gain.T), lambda: z, lambda: gain @ z @ gain.T


@discrete_riccati.tangent
def discrete_riccati_tangent(
    x: Result, a: Operand, b: Operand, q: Operand, r: Operand
) -> tuple[Linear, ...]:
    gain = np.linalg.solve(r + b.T @ x @ b, b.T @ x @ a)
    closed = a - b @ gain

    def change(rate: Operand) -> Result:
        return solve_discrete_lyapunov(closed.T, rate)

    def twice(half: Operand) -> Result:
        return change(half + half.T)

    return (
        lambda t: twice(closed.T @ x @ t),
        lambda t: -twice(closed.T @ x @ t @ gain),
        change,
        lambda t: change(gain.T @ t @ gain),
    )
