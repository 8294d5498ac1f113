"""Trigonometric and hyperbolic functions of a matrix, as blocks of the exponential of a larger real
one.
"""

from __future__ import annotations

import numpy as np

from varmat.core.operation import as_operand
from varmat.functions.linalg.matrix_functions import expm
from varmat.functions.rarer.linalg.matrix_equations import check_one_square
from varmat.typing import Operand, Result, array_valued

__all__ = ["coshm", "cosm", "sinhm", "sinm", "tanhm", "tanm"]


def _cosine_and_sine(function: str, a: Operand, sign: float) -> tuple[Result, Result]:
    """Cosine and sine, or with `sign` 1 the hyperbolic ones, as blocks of the exponential of one
    real matrix.
    """
    a = as_operand(a, f"{function}: a")
    check_one_square(function, "a", a)
    n = np.shape(a)[0]
    zero = np.zeros((n, n))
    e = expm(
        np.concatenate(
            [np.concatenate([zero, sign * a], axis=1), np.concatenate([a, zero], axis=1)]
        )
    )
    return e[:n, :n], e[n:, :n]


@array_valued
def cosm(a: Operand) -> Result:
    """Compute the cosine of a matrix: `scipy.linalg.cosm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    A block of the exponential of ``[[0, -a], [a, 0]]``; so is the derivative, see `expm`.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.cosm(a)[0, 0], np.diag([np.pi / 2, 0.0])).round(12)
    array([[-1.,  0.],
           [ 0.,  0.]])
    """
    return _cosine_and_sine("cosm", a, -1.0)[0]


@array_valued
def sinm(a: Operand) -> Result:
    """Compute the sine of a matrix: `scipy.linalg.sinm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    A block of the exponential of ``[[0, -a], [a, 0]]``; so is the derivative, see `expm`.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.sinm(a)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    return _cosine_and_sine("sinm", a, -1.0)[1]


@array_valued
def tanm(a: Operand) -> Result:
    """Compute the tangent of a matrix: `scipy.linalg.tanm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the cosine is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The solution of ``cosm(a) @ x = sinm(a)``; so is the derivative.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.tanm(a)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    cosine, sine = _cosine_and_sine("tanm", a, -1.0)
    return np.linalg.solve(cosine, sine)


@array_valued
def coshm(a: Operand) -> Result:
    """Compute the hyperbolic cosine of a matrix: `scipy.linalg.coshm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    A block of the exponential of ``[[0, a], [a, 0]]``; so is the derivative, see `expm`.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.coshm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return _cosine_and_sine("coshm", a, 1.0)[0]


@array_valued
def sinhm(a: Operand) -> Result:
    """Compute the hyperbolic sine of a matrix: `scipy.linalg.sinhm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    A block of the exponential of ``[[0, a], [a, 0]]``, which keeps the digits of small matrices; so
    is the derivative.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.sinhm(a)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    return _cosine_and_sine("sinhm", a, 1.0)[1]


@array_valued
def tanhm(a: Operand) -> Result:
    """Compute the hyperbolic tangent of a matrix: `scipy.linalg.tanhm`.

    Parameters
    ----------
    a : array_like, shape (n, n)

    Returns
    -------
    VarMat, shape (n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.
    DomainError
        If the hyperbolic cosine is singular; also a `numpy.linalg.LinAlgError`.

    Notes
    -----
    The solution of ``coshm(a) @ x = sinhm(a)``; so is the derivative.

    References
    ----------
    N. J. Higham, Functions of Matrices, SIAM, 2008, chapter 12.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda a: vm.tanhm(a)[0, 1], np.zeros((2, 2)))
    array([[0., 1.],
           [0., 0.]])
    """
    cosine, sine = _cosine_and_sine("tanhm", a, 1.0)
    return np.linalg.solve(cosine, sine)
