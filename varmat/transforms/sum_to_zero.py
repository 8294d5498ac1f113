"""Transforms of vectors and matrices with sum zero."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from varmat.core.operation import operation
from varmat.functions.checks import check_matrix, misfit
from varmat.programs.build.symbol import Symbol
from varmat.transforms.common import check_inside, check_vector, later_sums, operand, zero
from varmat.typing import Adjoint, Operand, Result, array_valued, transforming

__all__ = [
    "sum_to_zero_constrain",
    "sum_to_zero_free",
    "sum_to_zero_matrix_constrain",
    "sum_to_zero_matrix_free",
]


@lru_cache(maxsize=64)
def _helmert(n: int) -> tuple[Result, Result]:
    """Return the numbers j = 1, ..., n, and sqrt(j (j + 1))."""
    j = np.arange(1.0, n + 1.0)
    return j, np.sqrt(j * (j + 1.0))


# Column j = 1, ..., n of the isometry (Helmert's matrix) has j ones, then -j, then zeros, all
# divided by sqrt(j (j + 1)). The reverse rule of each operation is the other one.
@operation(stacked=True, linear=True)
def sum_to_zero_isometry(x: Operand) -> Result:
    """Map a vector to one with sum zero, one element longer than `x`."""
    if not x.size:
        return np.zeros((*x.shape[:-1], x.shape[-1] + 1))
    j, root = _helmert(x.shape[-1])
    w = x / root
    if type(x) is Symbol:
        none = np.zeros((*x.shape[:-1], 1))
        return np.concatenate([later_sums(w), none], axis=-1) - np.concatenate(
            [none, j * w], axis=-1
        )
    y = np.zeros((*x.shape[:-1], x.shape[-1] + 1))
    y[..., :-1] = later_sums(w)
    y[..., 1:] -= j * w
    return y


@operation(stacked=True, linear=True)
def sum_to_zero_coordinates(y: Operand) -> Result:
    """Apply the transpose of `sum_to_zero_isometry`, its inverse where the sum is zero."""
    j, root = _helmert(y.shape[-1] - 1)
    return (np.add.accumulate(y[..., :-1], axis=-1) - j * y[..., 1:]) / root


@sum_to_zero_isometry.reverse
def isometry_reverse(g: Adjoint, r: Operand, x: Operand) -> Result:
    return sum_to_zero_coordinates.function(g) if x.size else np.zeros(x.shape)


@sum_to_zero_coordinates.reverse
def coordinates_reverse(g: Adjoint, r: Operand, y: Operand) -> Result:
    return sum_to_zero_isometry.function(g)


@transforming
def sum_to_zero_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map a vector to one, one element longer, with sum zero: an isometry.

    Parameters
    ----------
    x : array_like, shape (..., K - 1)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
        It has the same Euclidean length as `x`.
    log_jacobian : float
        If asked for: 0.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    Column `j` of the orthonormal matrix, counted from 1, is
    ``(1, ..., 1, -j, 0, ..., 0) / sqrt(j (j + 1))`` with `j` ones. It is not formed; its transpose
    gives the adjoint. If elements of `x` are independent and standard normal, elements of `y` have
    variance ``(K - 1) / K``.

    References
    ----------
    Stan Reference Manual (from 2.36), chapter "Constraint Transforms", section "Zero sum vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sum_to_zero_constrain(np.array([np.sqrt(2.0), np.sqrt(6.0)]))
    array([ 2.,  0., -2.])
    """
    x = operand(x, "sum_to_zero_constrain", "x")
    check_vector("sum_to_zero_constrain", "x", np.shape(x))
    y = sum_to_zero_isometry(x)
    return (y, 0.0) if jacobian else y


@array_valued
def sum_to_zero_free(y: Operand) -> Result:
    """Invert `sum_to_zero_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K)
        With sum zero, to within 1e-8.

    Returns
    -------
    array, shape (..., K - 1)

    Raises
    ------
    DomainError
        If the sum is not zero.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    Linear: the adjoint is multiplied by the matrix of `sum_to_zero_constrain`, and so has sum zero.

    References
    ----------
    Stan Reference Manual (from 2.36), chapter "Constraint Transforms", section "Zero sum vector".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero_free([2.0, 0.0, -2.0])
    array([1.41421356, 2.44948974])
    """
    y = operand(y, "sum_to_zero_free", "y")
    check_vector("sum_to_zero_free", "y", np.shape(y), least=1)
    check_inside(
        zero, "sum_to_zero_free", "sum(Zero sum variable)", y, lambda y: np.sum(y, axis=-1)
    )
    return sum_to_zero_coordinates(y)


@transforming
def sum_to_zero_matrix_constrain(x: Operand, jacobian: bool = False) -> Result:
    """Map a matrix to one with a row and a column more, all of whose rows and columns have sum
    zero: an isometry.

    Parameters
    ----------
    x : array_like, shape (..., M - 1, N - 1)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., M, N)
        It has the same Euclidean length as `x`.
    log_jacobian : float
        If asked for: 0.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Notes
    -----
    `sum_to_zero_constrain` of all rows, and then of all columns, whose first row and column become
    the last, as in Stan. Linear, so the adjoint goes the same way back.

    References
    ----------
    Stan Reference Manual (from 2.37), chapter "Constraint Transforms", section "Zero sum matrix".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sum_to_zero_matrix_constrain(np.array([[2.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    x = operand(x, "sum_to_zero_matrix_constrain", "x")
    check_matrix("sum_to_zero_matrix_constrain", "x", x)
    rows = sum_to_zero_isometry(x)
    both = np.matrix_transpose(sum_to_zero_isometry(np.matrix_transpose(rows)))
    y = np.roll(both, (-1, -1), (-2, -1))
    return (y, 0.0) if jacobian else y


@array_valued
def sum_to_zero_matrix_free(y: Operand) -> Result:
    """Invert `sum_to_zero_matrix_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., M, N)
        With rows and columns of sum zero, to within 1e-8.

    Returns
    -------
    array, shape (..., M - 1, N - 1)

    Raises
    ------
    DomainError
        If a sum is not zero.
    ShapeError
        If `y` is empty, or has fewer than two axes.

    Notes
    -----
    Linear: `sum_to_zero_free` of all rows, and then of all columns; the last ones become the
    first.

    References
    ----------
    Stan Reference Manual (from 2.37), chapter "Constraint Transforms", section "Zero sum matrix".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero_matrix_free([[1.0, -1.0], [-1.0, 1.0]])
    array([[2.]])
    """
    function = "sum_to_zero_matrix_free"
    y = operand(y, function, "y")
    if np.ndim(y) < 2 or 0 in np.shape(y)[-2:]:
        raise misfit(function, "y", np.shape(y), "be a matrix that is not empty")
    check_inside(zero, function, "sum(row of Zero sum matrix)", y, lambda y: np.sum(y, axis=-1))
    check_inside(zero, function, "sum(column of Zero sum matrix)", y, lambda y: np.sum(y, axis=-2))
    rows = sum_to_zero_coordinates(np.roll(y, (1, 1), (-2, -1)))
    return np.matrix_transpose(sum_to_zero_coordinates(np.matrix_transpose(rows)))
