"""Transforms of correlation matrices and of their Cholesky factors, on stacks too.

One operation makes a factor. `Places` tell it where the unconstrained elements stand and how much
each counts in the log-Jacobian. A matrix is the product of its factor with the transpose.
`covariance_matrices` works in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from varmat.core.domains import Domain, positive
from varmat.core.errors import DomainError
from varmat.core.operation import Saved, operation
from varmat.functions.arrays.reductions import before
from varmat.functions.checks import check_square, check_values, one
from varmat.functions.linalg.gram_matrices import tcrossprod
from varmat.functions.linalg.lapack import cholesky_factor
from varmat.functions.linalg.symmetric_arguments import check_symmetric
from varmat.functions.linalg.triangles import triangle_mask
from varmat.programs.build.symbol import Symbol
from varmat.transforms.bounded import log_cosh
from varmat.transforms.common import (
    check_inside,
    check_vector,
    exclusive_cumsum,
    joined,
    later_sums,
    operand,
    plain_sum,
    split,
    sum_over,
)
from varmat.typing import Adjoint, Operand, Result, array_valued, transforming

__all__ = [
    "cholesky_corr_constrain",
    "cholesky_corr_free",
    "corr_matrix_constrain",
    "corr_matrix_free",
]


class Places(NamedTuple):
    """Where the unconstrained elements are in a lower triangular matrix.

    Attributes
    ----------
    shape : tuple
        Shape of the matrix.
    rows, cols : ndarray of int
        The place of each element.
    weights : ndarray
        How much each counts in the log-Jacobian.
    constant : float
        A term of the log-Jacobian of each matrix, used for covariance matrices.
    source : ndarray of int
        For each place of the matrix the index of its element; the number of
        elements where it has none.
    diagonal : ndarray of bool
        Which elements are on the diagonal.
    lower, eye : ndarray
        The mask of the lower triangle, and the unit matrix.
    """

    shape: tuple[int, int]
    rows: np.ndarray
    cols: np.ndarray
    weights: np.ndarray
    constant: float
    source: np.ndarray
    diagonal: np.ndarray
    lower: np.ndarray
    eye: np.ndarray

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        rows: Operand,
        cols: Operand,
        weights: Operand,
        constant: float = 0.0,
    ) -> Places:
        source = np.full(shape, rows.size)
        source[rows, cols] = np.arange(rows.size)
        return cls(
            shape,
            rows,
            cols,
            weights,
            constant,
            source,
            rows == cols,
            triangle_mask(shape),
            np.eye(*shape),
        )

    def matrix(self, v: Operand) -> Result:
        """Return the elements in their places, zeros elsewhere; differentiable."""
        return np.concatenate([v, np.zeros((*np.shape(v)[:-1], 1))], axis=-1)[..., self.source]

    def filled(self, v: Operand, remainder: Operand) -> Result:
        """Return the elements in their places in a new array, elements of `remainder` elsewhere."""
        if type(v) is Symbol:
            a = self.matrix(v)
            return np.where(self.source < self.rows.size, a, remainder) if np.any(remainder) else a
        a = np.empty((*v.shape[:-1], *self.shape))
        a[...] = remainder
        a[..., self.rows, self.cols] = v
        return a


def size_of(function: str, name: str, value: object) -> int:
    if not isinstance(value, (int, np.integer)) or value < 0:
        raise DomainError(f"{function}: {name} is {value!r}, but must be a nonnegative integer!")
    return int(value)


def checked_elements(
    function: str, x: Operand, size: Operand, places_of: Callable[[int], Places]
) -> tuple[Result, Places]:
    """Return the unconstrained elements of matrices with `size` rows, and their places."""
    x, indices = operand(x, function, "x"), places_of(size_of(function, "K", size))
    check_vector(function, "x", np.shape(x), indices.rows.size)
    return x, indices


def checked_square(function: str, y: Operand) -> Result:
    y = operand(y, function, "y")
    check_square(function, "y", np.shape(y))
    return y


# --- Cholesky factors of correlation matrices ---


# Row i has i partial correlations z[j] = tanh(x[j]), then the element 1. L[i, j] = z[j] S[j] with
# S[j] = prod_{m < j} c[m] and c = sqrt(1 - z**2) = 1 / cosh(x), so
# dL[i, j] = S[j] c[j]**2 dx[j] - L[i, j] sum_{m < j} z[m] dx[m]. The log-Jacobian counts each
# log(c) twice for tanh, and once more for each element between it and the diagonal.
@operation(stacked=True)
def correlation_factor(x: Operand, *, indices: Places, jacobian: bool = False) -> Result:
    """Compute the Cholesky factor of a correlation matrix from partial correlations."""
    z, e = np.tanh(x), np.exp(-np.abs(x))
    c = 2.0 * e / (1.0 + e * e)
    factors = indices.filled(c, 1.0)
    if type(x) is Symbol and x.size:
        s = before(np.multiply.accumulate(factors, axis=-1))
    else:
        s = np.ones((*x.shape[:-1], *indices.shape))
    if type(x) is not Symbol:
        np.multiply.accumulate(factors[..., :-1], axis=-1, out=s[..., 1:])
    y = s * indices.filled(z, indices.eye)
    slope = s[..., indices.rows, indices.cols] * (c * c)
    if jacobian:
        return Saved((y, -plain_sum(indices.weights * log_cosh(x))), z=z, slope=slope)
    return Saved(y, z=z, slope=slope)


@correlation_factor.reverse
def correlation_factor_reverse(
    g: Adjoint, r: Operand, x: Operand, indices: Places, jacobian: bool, z: Operand, slope: Operand
) -> Result:
    g, h, r = split(g, r, jacobian)
    rows, cols = indices.rows, indices.cols
    later = later_sums(np.where(indices.lower, g, 0.0) * r)
    c = g[..., rows, cols] * slope - z * later[..., rows, cols + 1]
    return c - h * (indices.weights * z) if jacobian else c


@correlation_factor.tangent
def correlation_factor_tangent(r: Operand, x: Operand, indices: Places, jacobian: bool) -> Result:
    y = r[0] if jacobian else r
    z, a = np.tanh(x), log_cosh(x)
    n = indices.shape[1]
    slope = np.exp(-2.0 * a) * np.exp(
        -exclusive_cumsum(indices.matrix(a), n)[..., indices.rows, indices.cols]
    )

    def maps(t: Operand) -> Result:
        value = indices.matrix(slope * t) - y * exclusive_cumsum(indices.matrix(z * t), n)
        return value, -sum_over(indices.weights * z * t, x)

    return joined(maps, jacobian)


@lru_cache(maxsize=64)
def _by_rows(k: int) -> Places:
    rows, cols = np.tril_indices(k, -1)
    return Places.of((k, k), rows, cols, rows - cols + 1.0)


# The Jacobian of L L^T has one factor L[i, i] for each later row. So all elements of a column have
# the same weight.
@lru_cache(maxsize=64)
def by_columns(k: int) -> Places:
    cols, rows = np.triu_indices(k, 1)
    return Places.of((k, k), rows, cols, float(k) - cols)


@transforming
def cholesky_corr_constrain(x: Operand, K: int, jacobian: bool = False) -> Result:
    """Map a vector to the Cholesky factor of a correlation matrix.

    Parameters
    ----------
    x : array_like, shape (..., K * (K - 1) / 2)
        Unconstrained: the transformed partial correlations, row by row.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    L : shape (..., K, K)
        Lower triangular, with rows of length 1 and a positive diagonal.
    log_jacobian : scalar
        If asked for: that of the elements below the diagonal, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer.
    ShapeError
        If the size of `x` is not ``K * (K - 1) / 2``.

    Notes
    -----
    With ``z = tanh(x)``, in row and column `i`, `j` below the diagonal, ``L[i, j]`` is ``z[i, j]``
    times the product of ``sqrt(1 - z[i, m]**2)`` over all ``m < j``, and ``L[i, i]`` that product.
    Its derivative in ``x[i, j]`` is that product times ``1 - z[i, j]**2``, and in each earlier
    ``x[i, m]`` it is ``-L[i, j] * z[i, m]``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Cholesky factors of correlation
    matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.cholesky_corr_constrain(np.array([np.arctanh(0.6)]), 2)
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    x, indices = checked_elements("cholesky_corr_constrain", x, K, _by_rows)
    return correlation_factor(x, indices=indices, jacobian=jacobian)


def _partial_correlations(factor: Operand, indices: Places) -> Result:
    """Compute ``arcsinh(z / sqrt(1 - z**2))``, whatever the lengths of the rows; differentiable."""
    rows, cols = indices.rows, indices.cols
    # The square root has no derivative at the zeros above the diagonal, so only the rest is taken.
    remainder = np.sqrt(later_sums(np.square(factor))[..., rows, cols + 1])
    with np.errstate(divide="ignore"):
        return np.arcsinh(factor[..., rows, cols] / remainder)


def _check_factor(function: str, title: str, y: Operand) -> None:
    """Raise unless `y` is lower triangular with a positive diagonal."""
    Domain("0 above the diagonal", lambda y: (y == 0) | triangle_mask(y.shape)).check(
        function, title, y
    )
    positive.check(function, f"diagonal of {title}", np.diagonal(y, axis1=-2, axis2=-1))


@array_valued
def cholesky_corr_free(y: Operand) -> Result:
    """Invert `cholesky_corr_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K, K)
        Lower triangular, with rows of length 1, to within 1e-8, and a positive diagonal.

    Returns
    -------
    array, shape (..., K * (K - 1) / 2)

    Raises
    ------
    DomainError
        If `y` is not such a factor.
    ShapeError
        If `y` is not square.

    Notes
    -----
    The derivative is taken of ``arcsinh(y[i, j] / norm(y[i, j + 1:]))``, whether or not rows keep
    their length.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Cholesky factors of correlation
    matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.tanh(vm.cholesky_corr_free([[1.0, 0.0], [0.6, 0.8]]))
    array([0.6])
    """
    function, title = "cholesky_corr_free", "Cholesky factor of a correlation matrix"
    y = checked_square(function, y)
    check_values(partial(_check_factor, function, title), y)
    check_inside(
        one, function, f"sum(row of {title}**2)", y, lambda y: np.sum(np.square(y), axis=-1)
    )
    return _partial_correlations(y, _by_rows(np.shape(y)[-1]))


@transforming
def corr_matrix_constrain(x: Operand, K: int, jacobian: bool = False) -> Result:
    """Map a vector to a correlation matrix.

    Parameters
    ----------
    x : array_like, shape (..., K * (K - 1) / 2)
        Unconstrained: the transformed partial correlations, column by column.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K, K)
        Symmetric, positive definite, with ones on the diagonal.
    log_jacobian : scalar
        If asked for: that of the elements below the diagonal, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer.
    ShapeError
        If the size of `x` is not ``K * (K - 1) / 2``.

    Notes
    -----
    ``L @ L.T`` of a factor `L` as `cholesky_corr_constrain` makes it: the adjoint of `L` is
    ``(g + g.T) @ L``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Correlation matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.corr_matrix_constrain(np.array([np.arctanh(0.6)]), 2)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    x, indices = checked_elements("corr_matrix_constrain", x, K, by_columns)
    return squared(correlation_factor(x, indices=indices, jacobian=jacobian), jacobian)


def squared(factor: Operand, jacobian: bool) -> Result:
    """Compute ``L L^T``, and the log-Jacobian if there is one."""
    if jacobian:
        return tcrossprod(factor[0]), factor[1]
    return tcrossprod(factor)


def _factor(function: str, title: str, y: Operand) -> Result:
    """Factorise a symmetric matrix, also a variable, by Cholesky; errors name `function`."""

    def factor(y: Operand) -> Result:
        check_symmetric(function, y, title)
        return cholesky_factor(function, y, name=title)

    def check(y: object) -> None:
        factor(y)

    if isinstance(y, np.ndarray) and y.dtype != object:
        return factor(y)
    check_values(check, y)
    return np.linalg.cholesky(y)


@array_valued
def corr_matrix_free(y: Operand) -> Result:
    """Invert `corr_matrix_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K, K)
        Symmetric, positive definite, with ones on the diagonal, all to within 1e-8.

    Returns
    -------
    array, shape (..., K * (K - 1) / 2)

    Raises
    ------
    DomainError
        If `y` is not a correlation matrix.
    ShapeError
        If `y` is not square.

    Notes
    -----
    The result is computed from the Cholesky factor. After the checks only the lower triangle is
    read, so the adjoint is lower triangular.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Correlation matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.tanh(vm.corr_matrix_free([[1.0, 0.6], [0.6, 1.0]]))
    array([0.6])
    """
    function, title = "corr_matrix_free", "Correlation matrix variable"
    y = checked_square(function, y)
    check_inside(
        one, function, f"diagonal of {title}", y, lambda y: np.diagonal(y, axis1=-2, axis2=-1)
    )
    return _partial_correlations(_factor(function, title, y), by_columns(np.shape(y)[-1]))
