"""Stan's readers of partial correlations: correlation and covariance matrices, and their Cholesky
factors.

Partial correlations are read column by column, ``(1, 0), (2, 0), ..., (2, 1), ...``, and lie
between -1 and 1. `corr_matrix_constrain` and `cov_matrix_constrain_lkj` make them from any real
numbers.
"""

from __future__ import annotations

from math import log, prod

import numpy as np

from varmat.core.domains import Domain, positive_finite
from varmat.functions.checks import check_values, misfit
from varmat.transforms.common import check_vector, operand
from varmat.transforms.correlation_matrices import by_columns, correlation_factor, size_of, squared
from varmat.typing import Operand, Result, transforming

__all__ = ["read_corr_L", "read_corr_matrix", "read_cov_L", "read_cov_matrix"]

inside = Domain("between -1 and 1", lambda z: abs(z) < 1.0)


def _corr_factor(function: str, z: Operand, size: Operand, jacobian: bool) -> Result:
    """Compute the Cholesky factor, with the log-Jacobian of the correlation matrix if asked for."""
    z = operand(z, function, "z")
    indices = by_columns(size_of(function, "K", size))
    check_vector(function, "z", np.shape(z), indices.rows.size)
    check_values(lambda z: inside.check(function, "z", z), z)
    factor = correlation_factor(np.arctanh(z), indices=indices, jacobian=False)
    if not jacobian:
        return factor
    # Each weight counts log(sqrt(1 - z**2)). Two of them belong to tanh, which is not applied here.
    return factor, np.sum((0.5 * indices.weights - 1.0) * np.log1p(-z * z))


def _cov_factor(function: str, z: Operand, sds: Operand, jacobian: bool) -> Result:
    sds = operand(sds, function, "sds")
    check_vector(function, "sds", np.shape(sds))
    k = np.shape(sds)[-1]
    check_values(lambda s: positive_finite.check(function, "sds", s), sds)
    if np.shape(z)[:-1] != np.shape(sds)[:-1]:
        raise misfit(function, "sds", np.shape(sds), f"match z, of shape {np.shape(z)}")
    factor = _corr_factor(function, z, k, jacobian)
    if not jacobian:
        return sds[..., None] * factor
    return sds[..., None] * factor[0], factor[1] + k * np.sum(np.log(sds)) + prod(
        np.shape(sds)[:-1]
    ) * k * log(2.0)


@transforming
def read_corr_L(z: Operand, K: int, jacobian: bool = False) -> Result:  # noqa: N802 - Stan's names
    """Compute the Cholesky factor of a correlation matrix with given partial correlations.

    Parameters
    ----------
    z : array_like, shape (..., K * (K - 1) / 2)
        The partial correlations, column by column, between -1 and 1.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    L : shape (..., K, K)
        Lower triangular, with rows of length 1 and a positive diagonal.
    log_jacobian : scalar
        If asked for: as in Stan that of the correlation matrix ``L @ L.T``, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer, or a partial correlation is not between -1 and 1.
    ShapeError
        If the size of `z` is not ``K * (K - 1) / 2``.

    Notes
    -----
    In row and column `i`, `j` below the diagonal, ``L[i, j]`` is ``z[i, j]`` times the product of
    ``sqrt(1 - z[i, m]**2)`` over all ``m < j``, and ``L[i, i]`` that product. The log-Jacobian is
    the sum of ``(K - j - 2) / 2 * log(1 - z[i, j]**2)``.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.read_corr_L([0.6], 2)
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    return _corr_factor("read_corr_L", z, K, jacobian)


@transforming
def read_corr_matrix(z: Operand, K: int, jacobian: bool = False) -> Result:
    """Compute the correlation matrix with given partial correlations.

    Parameters
    ----------
    z : array_like, shape (..., K * (K - 1) / 2)
        The partial correlations, column by column, between -1 and 1.
    K : int
        Number of rows.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K, K)
    log_jacobian : scalar
        If asked for, summed over a stack.

    Raises
    ------
    DomainError
        If `K` is not a nonnegative integer, or a partial correlation is not between -1 and 1.
    ShapeError
        If the size of `z` is not ``K * (K - 1) / 2``.

    Notes
    -----
    ``L @ L.T`` of the factor of `read_corr_L`: the adjoint of `L` is ``(g + g.T) @ L``.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.read_corr_matrix([0.6], 2)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """
    return squared(_corr_factor("read_corr_matrix", z, K, jacobian), jacobian)


@transforming
def read_cov_L(z: Operand, sds: Operand, jacobian: bool = False) -> Result:  # noqa: N802 - Stan's name
    """Compute the Cholesky factor of a covariance matrix with given partial correlations and
    standard deviations.

    Parameters
    ----------
    z : array_like, shape (..., K * (K - 1) / 2)
        The partial correlations, column by column, between -1 and 1.
    sds : array_like, shape (..., K)
        The standard deviations, positive.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    L : shape (..., K, K)
    log_jacobian : scalar
        If asked for: as in Stan that of the covariance matrix ``L @ L.T``, summed over a stack.

    Raises
    ------
    DomainError
        If a partial correlation is not between -1 and 1, or a standard deviation not positive and
        finite.
    ShapeError
        If `z` and `sds` do not fit.

    Notes
    -----
    Row `i` of the factor of `read_corr_L`, times ``sds[i]``. The log-Jacobian is the one of
    `read_corr_L`, plus ``K`` times ``log(2)`` and the logarithms of the standard deviations.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.read_cov_L([0.6], [1.0, 2.0])
    array([[1. , 0. ],
           [1.2, 1.6]])
    """
    return _cov_factor("read_cov_L", z, sds, jacobian)


@transforming
def read_cov_matrix(z: Operand, sds: Operand, jacobian: bool = False) -> Result:
    """Compute the covariance matrix with given partial correlations and standard deviations.

    Parameters
    ----------
    z : array_like, shape (..., K * (K - 1) / 2)
        The partial correlations, column by column, between -1 and 1.
    sds : array_like, shape (..., K)
        The standard deviations, positive.
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
        If a partial correlation is not between -1 and 1, or a standard deviation not positive and
        finite.
    ShapeError
        If `z` and `sds` do not fit.

    Notes
    -----
    ``L @ L.T`` of the factor of `read_cov_L`: the adjoint of `L` is ``(g + g.T) @ L``.

    References
    ----------
    D. Lewandowski, D. Kurowicka and H. Joe, "Generating random correlation matrices based on vines
    and extended onion method", Journal of Multivariate Analysis 100 (2009), 1989.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.read_cov_matrix([0.6], [1.0, 2.0])
    array([[1. , 1.2],
           [1.2, 4. ]])
    """
    return squared(_cov_factor("read_cov_matrix", z, sds, jacobian), jacobian)
