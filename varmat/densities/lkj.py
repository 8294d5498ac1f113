"""LKJ densities of correlation matrices and of their Cholesky factors."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from varmat.core.domains import finite, positive_finite
from varmat.core.operation import Saved
from varmat.densities.density import HALF_LOG_TWO_PI, ZERO, KeptTerms, density, possible
from varmat.densities.domains import (
    ScalarDomain,
    definite_matrix,
    factor_or_none,
    lower_matrix,
    square_matrix,
    with_ones,
)
from varmat.densities.wishart import QUARTER_LOG_PI
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import TOLERANCE, is_held, misfit, one
from varmat.functions.linalg.determinants import log_determinant_spd_of
from varmat.functions.linalg.lapack import inverse_triangle, log_diagonal
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import inner
from varmat.functions.linalg.triangles import add_quotients, diagonal_of, half_diagonal, tril
from varmat.functions.special.gamma_functions import log_rising_factorial
from varmat.functions.special.zeta_functions import zeta_difference
from varmat.programs.build.symbol import Symbol, holds, number
from varmat.typing import Adjoint, Operand, Result

__all__ = ["lkj_corr_cholesky_lpdf", "lkj_corr_lpdf", "lkj_cov_lpdf"]


SHAPE = ("Shape parameter", ScalarDomain(positive_finite))


# Lewandowski, Kurowicka and Joe (2009), Journal of Multivariate Analysis 100, 1989-2001: the sum
# over k = 1, ..., K - 1 of log(gamma(eta + (K - 1) / 2) / gamma(eta + (K - 1 - k) / 2)) - k log(pi)
# / 2. Each quotient of gamma functions is computed without cancellation.
def _lkj_constant(eta: Operand, k: int) -> Result:
    # Most models have the same one throughout.
    return _constant(eta, k) if type(eta) is Symbol else _cached_constant(float(eta), k)


def _constant(eta: Operand, k: int) -> Result:
    half = 0.5 * np.arange(1.0, k)
    logarithms = log_rising_factorial(eta + (half[::-1] - 0.5), half)
    return number(add_reduce(logarithms)) - k * (k - 1) * QUARTER_LOG_PI


_cached_constant = lru_cache(_constant)


def _lkj_constant_slope(eta: Operand, k: int) -> Result:
    """Compute the derivative of the log constant in eta; differentiable."""
    half = 0.5 * np.arange(1.0, k)
    return np.sum(zeta_difference(1.0, eta + (half[::-1] - 0.5), half))


@density(L=("Random variable", square_matrix), eta=SHAPE)
def lkj_corr_cholesky_lpdf(factor: Operand, eta: Operand, keep: KeptTerms) -> Result:
    """Compute the log density of the LKJ distribution of the Cholesky factor of a correlation
    matrix.

    Parameters
    ----------
    L : array_like, shape (K, K)
        Random variable: a Cholesky factor of a correlation matrix; not nan.
    eta : scalar
        Shape parameter: positive and finite. With 1 all correlation matrices have the same density.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``lkj_corr_cholesky_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `L` is not lower triangular with a positive diagonal and
        rows of norm one, to 1e-8.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If `L` is not square, or `eta` no scalar.

    Notes
    -----
    The log density is :math:`\\sum_{k=2}^K (K - k + 2 \\eta - 2) \\log L_{kk} + c(\\eta)` with
    :math:`c(\\eta) = \\sum_{k=1}^{K-1} [\\log\\Gamma(\\eta + \\tfrac{K-1}2) - \\log\\Gamma(\\eta +
    \\tfrac{K-1-k}2) - \\tfrac k2 \\log\\pi]`. The derivative with respect to `L` is diagonal, as if
    the diagonal were free. SciPy has no equivalent.

    References
    ----------
    Stan Functions Reference, "Cholesky LKJ correlation distribution"; D. Lewandowski, D. Kurowicka
    and H. Joe, "Generating random correlation matrices based on vines and extended onion method",
    Journal of Multivariate Analysis 100 (2009), 1989-2001.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda L: vm.lkj_corr_cholesky_lpdf(L, 2.0), np.array([[1.0, 0.0], [0.6, 0.8]]))
    array([[0. , 0. ],
           [0. , 2.5]])
    """
    if not _is_correlation_factor(factor):
        return -math.inf
    value = number(add_reduce(_powers(len(factor), eta) * np.log(factor.diagonal())))
    return value + _lkj_constant(eta, len(factor)) if "eta" in keep else value


def _is_correlation_factor(x: Operand) -> bool:
    norms = np.einsum("ij,ij->i", x, x)
    is_factor = holds(x.diagonal() > 0) and holds(tril(x) == x)
    return is_factor and holds(abs(norms - 1.0) <= 2.0 * TOLERANCE)


@lru_cache
def _linear_powers(k: int) -> tuple[Result, Result]:
    """Return intercepts and slopes of the powers of diagonal elements, which are linear in eta."""
    later = np.arange(k) > 0
    return np.where(later, np.arange(k - 3.0, -3.0, -1.0), 0.0), np.where(later, 2.0, 0.0)


def _powers(k: int, eta: Operand) -> Result:
    """Compute the powers of the diagonal elements; differentiable."""
    intercepts, slopes = _linear_powers(k)
    return intercepts + slopes * eta


lkj_corr_cholesky_lpdf.data_domain = lambda *_: with_ones(
    lower_matrix, lambda x: np.einsum("ij,ij->i", x, x), "the squared length of rows"
)


@lkj_corr_cholesky_lpdf.reverse
def lkj_corr_cholesky_reverse(
    g: Adjoint, r: Operand, factor: Operand, eta: Operand, keep: KeptTerms
) -> Result:
    if type(r) is not Symbol and r == -math.inf:
        return (lambda: ZERO,) * 2
    k = len(factor)

    def of_factor() -> Result:
        return add_quotients(np.zeros((k, k)), g * _powers(k, eta), factor.diagonal())

    return of_factor, lambda: g * _eta_slope(factor, eta)


def _eta_slope(factor: Operand, eta: Operand) -> Result:
    return 2.0 * np.sum(np.log(np.diagonal(factor)[1:])) + _lkj_constant_slope(eta, len(factor))


@lkj_corr_cholesky_lpdf.tangent
def lkj_corr_cholesky_tangent(r: Operand, factor: Operand, eta: Operand, keep: KeptTerms) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 2
    slopes = _powers(len(factor), eta) / np.diagonal(factor)
    return lambda t: np.sum(slopes * np.diagonal(t)), lambda t: t * _eta_slope(factor, eta)


@density(Sigma=("Correlation matrix", square_matrix), eta=SHAPE)
def lkj_corr_lpdf(sigma: Operand, eta: Operand, keep: KeptTerms) -> Result:
    """Compute the log density of the LKJ distribution of a correlation matrix.

    Parameters
    ----------
    Sigma : array_like, shape (K, K)
        Random variable: a correlation matrix; not nan.
    eta : scalar
        Shape parameter: positive and finite. With 1 all correlation matrices have the same density.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``lkj_corr_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `Sigma` is not symmetric positive definite with ones on
        the diagonal, to 1e-8.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If `Sigma` is not square, or `eta` no scalar.

    Notes
    -----
    The log density is :math:`(\\eta - 1) \\log\\det\\Sigma + c(\\eta)`, with the constant of
    `lkj_corr_cholesky_lpdf`, which is to be preferred. The derivative with respect to Sigma is
    :math:`(\\eta - 1) \\Sigma^{-1}`, folded onto the lower triangle. SciPy has no equivalent.

    References
    ----------
    Stan Functions Reference, "LKJ correlation distribution"; D. Lewandowski, D. Kurowicka and H.
    Joe, "Generating random correlation matrices based on vines and extended onion method", Journal
    of Multivariate Analysis 100 (2009), 1989-2001.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda Sigma: vm.lkj_corr_lpdf(Sigma, 2.0), np.array([[1.0, 0.6], [0.6, 1.0]]))
    array([[ 1.5625,  0.    ],
           [-1.875 ,  1.5625]])
    """
    factor = factor_or_none(sigma) if holds(one.holds(sigma.diagonal())) else None
    if factor is None:
        return Saved(-math.inf, factor=None)
    value = 2.0 * (eta - 1.0) * log_diagonal(factor)
    return Saved(value + _lkj_constant(eta, len(sigma)) if "eta" in keep else value, factor=factor)


lkj_corr_lpdf.data_domain = lambda *_: with_ones(definite_matrix, np.diagonal, "the diagonal")


@lkj_corr_lpdf.reverse
def lkj_corr_reverse(
    g: Adjoint, r: Operand, sigma: Operand, eta: Operand, keep: KeptTerms, factor: Operand
) -> Result:
    if factor is None:
        return (lambda: ZERO,) * 2
    return (
        lambda: 2.0 * g * (eta - 1.0) * half_diagonal(inverse_triangle(factor)),
        lambda: g * (2.0 * log_diagonal(factor) + _lkj_constant_slope(eta, len(sigma))),
    )


@lkj_corr_lpdf.tangent
def lkj_corr_tangent(
    r: Operand, sigma: Operand, eta: Operand, keep: KeptTerms, factor: Operand
) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 2
    x = inverse_spd_of(sigma, factor)
    return (
        lambda t: (eta - 1.0) * inner(x, symmetric(t)),
        lambda t: (
            t * (log_determinant_spd_of(sigma, factor) + _lkj_constant_slope(eta, len(sigma)))
        ),
    )


# The standard deviations d are the square roots of the diagonal; their logarithms l are normal.
# With z = (l - mu) / sigma and R = Sigma / (d d'):
#     log p = -sum(z**2 / 2 + log(sigma) + log(2 pi) / 2 + l) + (eta - 1) log det R + c(eta).
@density(
    Sigma=("Covariance matrix", square_matrix),
    mu=("Location parameter", finite),
    sigma=("Scale parameter", positive_finite),
    eta=SHAPE,
)
def lkj_cov_lpdf(
    matrix: Operand, mu: Operand, sigma: Operand, eta: Operand, keep: KeptTerms
) -> Result:
    """Compute the log density of a covariance matrix with lognormal standard deviations and an LKJ
    distribution of the correlations.

    Parameters
    ----------
    Sigma : array_like, shape (K, K)
        Random variable: a covariance matrix; not nan.
    mu : array_like, shape (K,), or scalar
        Location parameter of the logarithms of the standard deviations: finite.
    sigma : array_like, shape (K,), or scalar
        Scale parameter of these: positive and finite.
    eta : scalar
        Shape parameter of the correlations: positive and finite.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``lkj_cov_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `Sigma` is not symmetric positive definite.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The sum of `lognormal_lpdf` of the square roots of the diagonal and of `lkj_corr_lpdf` of the
    correlations, as in Stan: it is not a density with respect to the elements of Sigma, for which a
    Jacobian is missing. The derivative with respect to Sigma is folded onto the lower triangle.
    Stan has deprecated it: rather give the two parts to a model that has a matrix of correlations
    and a vector of standard deviations. SciPy has no equivalent.

    References
    ----------
    Stan Math Library, ``lkj_cov``; D. Lewandowski, D. Kurowicka and H. Joe, "Generating random
    correlation matrices based on vines and extended onion method", Journal of Multivariate Analysis
    100 (2009), 1989-2001.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> Sigma = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> vm.gradient(lambda Sigma: vm.lkj_cov_lpdf(Sigma, 0.0, 1.0, 2.0), Sigma)
    array([[ 0.0625,  0.    ],
           [-1.875 ,  0.0625]])
    """
    k = len(matrix)
    for title, x in (("Location parameter", mu), ("Scale parameter", sigma)):
        if np.shape(x) not in ((), (k,)):
            raise misfit(
                "lkj_cov_lpdf", title, np.shape(x), f"be a scalar or have the shape ({k},)"
            )
    factor = factor_or_none(matrix)
    if factor is None:
        return Saved(-math.inf, factor=None)
    value, logs = 0.0, 0.5 * np.log(matrix.diagonal())
    if keep & {"Sigma", "mu", "sigma"}:
        z = (logs - mu) / sigma
        value -= float(add_reduce(0.5 * z * z + np.log(sigma) + HALF_LOG_TWO_PI + logs))
    if keep & {"Sigma", "eta"}:
        value += 2.0 * (eta - 1.0) * (log_diagonal(factor) - float(add_reduce(logs)))
    return Saved(value + _lkj_constant(eta, k) if "eta" in keep else value, factor=factor)


lkj_cov_lpdf.data_domain = lambda *_: definite_matrix


@lkj_cov_lpdf.reverse
def lkj_cov_reverse(
    g: Adjoint,
    r: Operand,
    matrix: Operand,
    mu: Operand,
    sigma: Operand,
    eta: Operand,
    keep: KeptTerms,
    factor: Operand,
) -> Result:
    if factor is None:
        return (lambda: ZERO,) * 4
    variances = matrix.diagonal()
    logs = 0.5 * np.log(variances)
    z = (logs - mu) / sigma

    def of_matrix() -> Result:
        c = half_diagonal(2.0 * g * (eta - 1.0) * inverse_triangle(factor))
        diagonal = diagonal_of(c)
        diagonal -= g * _cov_slopes(z, sigma, eta) / variances
        return c

    return (
        of_matrix,
        lambda: g * z / sigma,
        lambda: g * (z * z - 1.0) / sigma,
        lambda: (
            g
            * (
                2.0 * (log_diagonal(factor) - add_reduce(logs))
                + _lkj_constant_slope(eta, len(matrix))
            )
        ),
    )


def _cov_slopes(z: Operand, sigma: Operand, eta: Operand) -> Result:
    """Compute the variances times minus the derivative with respect to them, without the term of
    the determinant.
    """
    return 0.5 * (1.0 + z / sigma) + (eta - 1.0)


@lkj_cov_lpdf.tangent
def lkj_cov_tangent(
    r: Operand,
    matrix: Operand,
    mu: Operand,
    sigma: Operand,
    eta: Operand,
    keep: KeptTerms,
    factor: Operand,
) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 4
    x, variances = inverse_spd_of(matrix, factor), np.diagonal(matrix)
    logs = 0.5 * np.log(variances)
    z = (logs - mu) / sigma
    slopes = _cov_slopes(z, sigma, eta) / variances

    def along_eta(t: Operand) -> Result:
        half = log_determinant_spd_of(matrix, factor) - 2.0 * np.sum(logs)
        return t * (half + _lkj_constant_slope(eta, np.shape(matrix)[0]))

    return (
        lambda t: (eta - 1.0) * inner(x, symmetric(t)) - np.sum(slopes * np.diagonal(t)),
        lambda t: np.sum(z / sigma * t),
        lambda t: np.sum((z * z - 1.0) / sigma * t),
        along_eta,
    )
