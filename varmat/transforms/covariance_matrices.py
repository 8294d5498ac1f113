"""Transforms of covariance matrices and of their Cholesky factors."""

from __future__ import annotations

from functools import lru_cache, partial
from math import log, prod

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import operation
from varmat.functions.checks import check_values, misfit
from varmat.functions.linalg.gram_matrices import tcrossprod
from varmat.programs.build.symbol import Symbol
from varmat.transforms.common import check_vector, joined, operand, plain_sum, split, sum_over
from varmat.transforms.correlation_matrices import (
    Places,
    _check_factor,
    _factor,
    _partial_correlations,
    by_columns,
    checked_elements,
    checked_square,
    correlation_factor,
    size_of,
    squared,
)
from varmat.typing import Adjoint, Operand, Result, array_valued, transforming

__all__ = [
    "cholesky_factor_constrain",
    "cholesky_factor_free",
    "cov_matrix_constrain",
    "cov_matrix_constrain_lkj",
    "cov_matrix_free",
    "cov_matrix_free_lkj",
]


# The diagonal is exp(x) and the rest is x, so log|J| is a weighted sum of the x on the diagonal.
@operation(stacked=True)
def covariance_factor(x: Operand, *, indices: Places, jacobian: bool = False) -> Result:
    """Compute a lower triangular matrix with positive diagonal."""
    if type(x) is Symbol:
        v = np.where(indices.diagonal, np.exp(np.where(indices.diagonal, x, 0.0)), x)
    else:
        v = np.array(x)
        v[..., indices.diagonal] = np.exp(v[..., indices.diagonal])
    y = indices.filled(v, 0.0)
    if not jacobian:
        return y
    return y, prod(x.shape[:-1]) * indices.constant + plain_sum(x * indices.weights)


@covariance_factor.reverse
def covariance_factor_reverse(
    g: Adjoint, r: Operand, x: Operand, indices: Places, jacobian: bool
) -> Result:
    g, h, r = split(g, r, jacobian)
    c = g[..., indices.rows, indices.cols]
    # Where the adjoint is 0 the slope may be infinite, as in `times_slope`.
    scaled = indices.diagonal & (c != 0.0)
    if type(c) is Symbol:
        c = np.where(scaled, c * r[..., indices.rows, indices.cols], c)
    else:
        np.multiply(c, r[..., indices.rows, indices.cols], out=c, where=scaled)
    return c + h * indices.weights if jacobian else c


@covariance_factor.tangent
def covariance_factor_tangent(r: Operand, x: Operand, indices: Places, jacobian: bool) -> Result:
    slope = np.where(indices.diagonal, np.exp(np.where(indices.diagonal, x, 0.0)), 1.0)
    return joined(lambda t: (indices.matrix(slope * t), sum_over(indices.weights * t, x)), jacobian)


@lru_cache(maxsize=64)
def _trapezoid(m: int, n: int) -> Places:
    rows, cols = np.tril_indices(m, 0, n)
    return Places.of((m, n), rows, cols, np.where(rows == cols, 1.0, 0.0))


# The Jacobian of L L^T is 2^K times the product of all L[i, i]**(K - i). That of exp on the
# diagonal adds one more factor L[i, i] each.
@lru_cache(maxsize=64)
def _triangle(k: int) -> Places:
    rows, cols = np.tril_indices(k)
    return Places.of((k, k), rows, cols, np.where(rows == cols, k + 1.0 - rows, 0.0), k * log(2.0))


@transforming
def cholesky_factor_constrain(
    x: Operand, M: int, N: int | None = None, jacobian: bool = False
) -> Result:
    """Map a vector to the Cholesky factor of a covariance matrix: lower triangular with a positive
    diagonal.

    Parameters
    ----------
    x : array_like, shape (..., N * (N + 1) / 2 + (M - N) * N)
        Unconstrained: the elements of the factor row by row, the logarithms of those on the
        diagonal.
    M : int
        Number of rows.
    N : int, optional
        Number of columns, at most `M`; by default `M`. With fewer columns the matrix ``L @ L.T`` is
        singular.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    L : shape (..., M, N)
    log_jacobian : scalar
        If asked for: the sum of the logarithms of the diagonal.

    Raises
    ------
    DomainError
        If `M` is less than `N`, or one of them is not a nonnegative integer.
    ShapeError
        If the size of `x` does not go with `M` and `N`.

    Notes
    -----
    The derivative is one for an element below the diagonal, and ``L[i, i]`` for one on it.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Cholesky factors of covariance
    matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.cholesky_factor_constrain(np.array([0.0, 5.0, np.log(2.0)]), 2)
    array([[1., 0.],
           [5., 2.]])
    """
    x = operand(x, "cholesky_factor_constrain", "x")
    m = size_of("cholesky_factor_constrain", "M", M)
    n = m if N is None else size_of("cholesky_factor_constrain", "N", N)
    if m < n:
        raise DomainError(
            f"cholesky_factor_constrain: M is {m}, but must be at least N, which is {n}!"
        )
    indices = _trapezoid(m, n)
    check_vector("cholesky_factor_constrain", "x", np.shape(x), indices.rows.size)
    return covariance_factor(x, indices=indices, jacobian=jacobian)


def _coordinates(factor: Operand, indices: Places) -> Result:
    """Read the elements from their places, with logarithms of the diagonal; differentiable."""
    v = factor[..., indices.rows, indices.cols]
    return np.where(indices.diagonal, np.log(np.where(indices.diagonal, v, 1.0)), v)


@array_valued
def cholesky_factor_free(y: Operand) -> Result:
    """Invert `cholesky_factor_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., M, N)
        Lower triangular with a positive diagonal, not more columns than rows.

    Returns
    -------
    array, shape (..., N * (N + 1) / 2 + (M - N) * N)

    Raises
    ------
    DomainError
        If `y` is not such a factor.
    ShapeError
        If `y` is not a matrix, or a stack of them, of such a shape.

    Notes
    -----
    The derivative is one for an element below the diagonal, and ``1 / y[i, i]`` for one on it.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Cholesky factors of covariance
    matrices".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cholesky_factor_free([[1.0, 0.0], [5.0, 1.0]])
    array([0., 5., 0.])
    """
    function, title = "cholesky_factor_free", "Cholesky factor variable"
    y = operand(y, function, "y")
    shape = np.shape(y)[-2:]
    if len(shape) < 2 or shape[0] < shape[1]:
        raise misfit(function, "y", np.shape(y), "have at least as many rows as columns")
    check_values(partial(_check_factor, function, title), y)
    return _coordinates(y, _trapezoid(*shape))


@transforming
def cov_matrix_constrain(x: Operand, K: int, jacobian: bool = False) -> Result:
    """Map a vector to a covariance matrix: symmetric and positive definite.

    Parameters
    ----------
    x : array_like, shape (..., K * (K + 1) / 2)
        Unconstrained: the elements of the Cholesky factor row by row, the logarithms of those on
        the diagonal.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K, K)
    log_jacobian : scalar
        If asked for: that of the lower triangle, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer.
    ShapeError
        If the size of `x` is not ``K * (K + 1) / 2``.

    Notes
    -----
    ``L @ L.T`` of a factor `L` as `cholesky_factor_constrain` makes it: the adjoint of `L` is
    ``(g + g.T) @ L``.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Covariance matrices".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.cov_matrix_constrain(np.array([0.0, 5.0, np.log(2.0)]), 2)
    array([[ 1.,  5.],
           [ 5., 29.]])
    """
    x, indices = checked_elements("cov_matrix_constrain", x, K, _triangle)
    return squared(covariance_factor(x, indices=indices, jacobian=jacobian), jacobian)


@array_valued
def cov_matrix_free(y: Operand) -> Result:
    """Invert `cov_matrix_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K, K)
        Symmetric, to within 1e-8 absolutely and relatively, and positive definite.

    Returns
    -------
    array, shape (..., K * (K + 1) / 2)

    Raises
    ------
    DomainError
        If `y` is not a covariance matrix.
    ShapeError
        If `y` is not square.

    Notes
    -----
    The result is computed from the Cholesky factor. After the checks only the lower triangle is
    read, so the adjoint is lower triangular.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Covariance matrices".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.cov_matrix_free([[1.0, 5.0], [5.0, 26.0]])
    array([0., 5., 0.])
    """
    function = "cov_matrix_free"
    y = checked_square(function, y)
    return _coordinates(
        _factor(function, "Covariance matrix variable", y), _triangle(np.shape(y)[-1])
    )


@transforming
def cov_matrix_constrain_lkj(x: Operand, K: int, jacobian: bool = False) -> Result:
    """Map a vector to a covariance matrix by way of correlations and standard deviations.

    Parameters
    ----------
    x : array_like, shape (..., K * (K + 1) / 2)
        Unconstrained: the ``K * (K - 1) / 2`` transformed partial correlations, column by column as
        in `corr_matrix_constrain`, then the logarithms of the `K` standard deviations.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K, K)
    log_jacobian : scalar
        If asked for: that of the lower triangle, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer.
    ShapeError
        If the size of `x` is not ``K * (K + 1) / 2``.

    Notes
    -----
    ``L @ L.T`` for the factor `L` of the correlations with row `i` times the standard deviation
    ``s[i]``. In the log-Jacobian each logarithm of a standard deviation counts ``K + 1`` times.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.cov_matrix_constrain_lkj(np.array([np.arctanh(0.6), 0.0, np.log(2.0)]), 2)
    array([[1. , 1.2],
           [1.2, 4. ]])
    """
    x = operand(x, "cov_matrix_constrain_lkj", "x")
    k = size_of("cov_matrix_constrain_lkj", "K", K)
    indices = by_columns(k)
    m = indices.rows.size
    check_vector("cov_matrix_constrain_lkj", "x", np.shape(x), m + k)
    factor = correlation_factor(x[..., :m], indices=indices, jacobian=jacobian)
    scales = np.exp(x[..., m:])[..., None]
    if not jacobian:
        return tcrossprod(scales * factor)
    constant = prod(np.shape(x)[:-1]) * k * log(2.0)
    return tcrossprod(scales * factor[0]), factor[1] + (k + 1.0) * np.sum(x[..., m:]) + constant


@array_valued
def cov_matrix_free_lkj(y: Operand) -> Result:
    """Invert `cov_matrix_constrain_lkj`.

    Parameters
    ----------
    y : array_like, shape (..., K, K)
        Symmetric, to within 1e-8 absolutely and relatively, and positive definite.

    Returns
    -------
    array, shape (..., K * (K + 1) / 2)

    Raises
    ------
    DomainError
        If `y` is not a covariance matrix.
    ShapeError
        If `y` is not square.

    Notes
    -----
    The result is computed from the Cholesky factor and the diagonal. After the checks only the
    lower triangle is read, so the adjoint is lower triangular.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.cov_matrix_free_lkj([[1.0, 0.0], [0.0, np.exp(4.0)]])
    array([0., 0., 2.])
    """
    function = "cov_matrix_free_lkj"
    y = checked_square(function, y)
    factor = _factor(function, "Covariance matrix variable", y)
    correlations = _partial_correlations(factor, by_columns(np.shape(y)[-1]))
    return np.concatenate([correlations, 0.5 * np.log(np.diagonal(y, axis1=-2, axis2=-1))], axis=-1)
