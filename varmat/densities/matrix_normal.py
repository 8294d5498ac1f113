"""Normal distributions of matrices: with given precisions of rows and columns, and with Gaussian
processes as rows."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import finite, positive_finite
from varmat.core.operation import Saved
from varmat.densities.density import (
    HALF_LOG_TWO_PI,
    ZERO,
    KeptTerms,
    StructuredDensity,
    density,
    member,
    not_nan,
)
from varmat.densities.domains import possible_value, symmetric_matrix
from varmat.densities.multi_normal import is_empty, whitened
from varmat.densities.scale_matrices import Cholesky, Covariance, tangents
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.functions.linalg.lapack import cholesky_factor, inverse_triangle, log_diagonal
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import inner
from varmat.functions.linalg.triangles import half_triangle, mirrored
from varmat.programs.build.symbol import number
from varmat.typing import Adjoint, Operand, Result

__all__ = ["matrix_normal_prec_lpdf", "multi_gp_cholesky_lpdf", "multi_gp_lpdf"]

_Y = ("Random variable", not_nan)


# With d = y - mu, a = Sigma d and b = d D:
#     log p = -trace(D d' Sigma d) / 2 + n log det(Sigma) / 2 + m log det(D) / 2
#         - m n log(2 pi) / 2,
#     d/dy = -Sigma d D,
#     d/dSigma = (n inv(Sigma) - d D d') / 2,  d/dD = (m inv(D) - d' Sigma d) / 2.
@density(
    y=_Y,
    mu=("Location parameter", finite),
    Sigma=("Row precision matrix", symmetric_matrix),
    D=("Column precision matrix", symmetric_matrix),
)
def matrix_normal_prec_lpdf(
    y: Operand, mu: Operand, sigma: Operand, d: Operand, keep: KeptTerms
) -> Result:
    """Compute the log density of the matrix normal distribution with given precisions of rows and
    columns.

    Parameters
    ----------
    y : array_like, shape (m, n)
        Random variable; not nan.
    mu : array_like, shape (m, n), or scalar
        Location parameter: finite.
    Sigma : array_like, shape (m, m)
        Precision matrix of the rows, the inverse of their covariance: symmetric positive definite.
    D : array_like, shape (n, n)
        Precision matrix of the columns: symmetric positive definite.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``matrix_normal_prec_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if an element of `y` is infinite.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for a matrix that is not positive definite also a
        `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    With :math:`R = y - \\mu` the log density is :math:`-\\tfrac12 \\mathrm{tr}(D R^T \\Sigma R) +
    \\tfrac n2 \\log\\det\\Sigma + \\tfrac m2 \\log\\det D - \\tfrac{mn}2 \\log 2\\pi`. The
    derivatives are :math:`\\mp\\Sigma R D` with respect to y and mu, and :math:`\\tfrac12 (n
    \\Sigma^{-1} - R D R^T)` and :math:`\\tfrac12 (m D^{-1} - R^T \\Sigma R)`, folded onto the lower
    triangles. In SciPy ``scipy.stats.matrix_normal(mu, inv(Sigma), inv(D))``.

    References
    ----------
    Stan Math Library, ``matrix_normal_prec``; A. K. Gupta and D. K. Nagar, "Matrix Variate
    Distributions", Chapman & Hall/CRC 2000, chapter 2.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> f = lambda y: vm.matrix_normal_prec_lpdf(y, 0.0, np.eye(2), 2.0 * np.eye(2))
    >>> vm.gradient(f, np.array([[1.0, 0.0], [0.0, 2.0]]))
    array([[-2., -0.],
           [-0., -4.]])
    """
    m, n = _check_matrix_shapes(y, mu, sigma, d)
    factors = [
        cholesky_factor("matrix_normal_prec_lpdf", x, name=title)
        for x, title in ((sigma, "Row precision matrix"), (d, "Column precision matrix"))
    ]
    with np.errstate(all="ignore"):
        z = factors[0].T @ (y - mu) @ factors[1]
        value = -0.5 * number(np.vdot(z, z))
    if "Sigma" in keep:
        value += n * log_diagonal(factors[0])
    if "D" in keep:
        value += m * log_diagonal(factors[1])
    if "constants" in keep:
        value -= m * n * HALF_LOG_TWO_PI
    return Saved(possible_value(value), factors=factors, z=z)


def _check_matrix_shapes(y: Operand, mu: Operand, sigma: Operand, d: Operand) -> tuple[int, int]:
    shape, function = (np.shape(sigma)[0], np.shape(d)[0]), "matrix_normal_prec_lpdf"
    if np.shape(y) != shape:
        rule = f"have the shape {shape}, as the precision matrices say"
        raise misfit(function, "Random variable", np.shape(y), rule)
    if np.shape(mu) not in ((), shape):
        rule = f"be a scalar or have the shape {shape}"
        raise misfit(function, "Location parameter", np.shape(mu), rule)
    return shape


@matrix_normal_prec_lpdf.reverse
def matrix_normal_prec_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    mu: Operand,
    sigma: Operand,
    d: Operand,
    keep: KeptTerms,
    factors: Operand,
    z: Operand,
) -> Result:
    if is_empty(r, y):
        return (lambda: ZERO,) * 4
    (m, n), (of_rows, of_columns) = y.shape, factors

    def in_mu() -> Result:
        return g * (of_rows @ z @ of_columns.T)

    def in_precision(factor: Operand, half: Operand, times: int) -> Result:
        return half_triangle(g * (times * mirrored(inverse_triangle(factor)) - half @ half.T))

    def in_rows() -> Result:
        return in_precision(of_rows, (y - mu) @ of_columns, n)

    def in_columns() -> Result:
        return in_precision(of_columns, (y - mu).T @ of_rows, m)

    return lambda: -in_mu(), in_mu, in_rows, in_columns


@matrix_normal_prec_lpdf.tangent
def matrix_normal_prec_tangent(
    r: Operand,
    y: Operand,
    mu: Operand,
    sigma: Operand,
    d: Operand,
    keep: KeptTerms,
    factors: Operand,
) -> Result:
    residuals = y - mu
    if is_empty(r, residuals):
        return (lambda t: 0.0,) * 4
    m, n = np.shape(residuals)
    rows, columns = symmetric(sigma), symmetric(d)
    left, right = rows @ residuals, residuals @ columns
    slopes, inverses = (
        left @ columns,
        [inverse_spd_of(x, factor) for x, factor in zip((sigma, d), factors, strict=True)],
    )
    return (
        lambda t: -np.sum(slopes * t),
        lambda t: np.sum(slopes * t),
        lambda t: 0.5 * inner(n * inverses[0] - right @ residuals.T, symmetric(t)),
        lambda t: 0.5 * inner(m * inverses[1] - residuals.T @ left, symmetric(t)),
    )


def _gp(
    y: Operand, matrix: Operand, w: Operand, keep: KeptTerms, kind: type[Covariance], function: str
) -> Result:
    """Compute the log density of Gaussian processes that share {given}, with separate scales.

    Parameters
    ----------
    y : array_like, shape (K, N)
        Random variable: a row for each process; not nan.
    {matrix} : array_like, shape (N, N)
        {title}: {domain}.
    w : array_like, shape (K,)
        Kernel scales, the factors of the precisions of the processes: positive and finite.
    {propto}

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if an element of `y` is infinite.

    {raises}

    Notes
    -----
    Row i is normal with the mean zero and the covariance :math:`\\Sigma / w_i`{where}: with
    :math:`q_i = y_i \\Sigma^{{-1}} y_i^T` the log density is :math:`\\tfrac12 [\\sum_i (N \\log w_i
    - w_i q_i) - K \\log\\det\\Sigma - K N \\log 2 \\pi]`. The derivatives are :math:`-w_i y_i
    \\Sigma^{{-1}}`, :math:`\\tfrac12 (N / w_i - q_i)`, and the normal density's with respect
    to {matrix}, in the lower triangle. SciPy has no equivalent.

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y, matrix = np.array([[4.0, 3.0]]), np.array({example})
    >>> vm.gradient(lambda w: vm.{name}(y, matrix, w), np.ones(1))
    array([-1.5])
    """
    k, n = _check_gp_shapes(y, matrix, w, function, kind)
    scale = kind(function, matrix, k)
    with np.errstate(all="ignore"):
        z = whitened(scale, y)
        q = np.einsum("ij,ij->i", z, z)
        value = -0.5 * number(q @ w)
    if "w" in keep:
        value += 0.5 * n * number(add_reduce(np.log(w)))
    if kind.name in keep:
        value -= k * scale.half_log_determinant()
    if "constants" in keep:
        value -= k * n * HALF_LOG_TWO_PI
    return Saved(possible_value(value), scale=scale, z=z, q=q)


def _check_gp_shapes(
    y: Operand, matrix: Operand, w: Operand, function: str, kind: type[Covariance]
) -> tuple[int, int]:
    n: int = np.shape(matrix)[0]
    shape = np.shape(y)
    if len(shape) != 2 or shape[1] != n:
        rule = f"a matrix with {n} columns, as many as {kind.title} has rows"
        raise misfit(function, "Random variable", shape, f"be {rule}")
    if np.shape(w) != shape[:1]:
        rule = f"{shape[:1]}: one for each row of Random variable"
        raise misfit(function, "Kernel scales", np.shape(w), f"have the shape {rule}")
    return shape[0], n


def _gp_reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    matrix: Operand,
    w: Operand,
    keep: KeptTerms,
    scale: Operand,
    z: Operand,
    q: Operand,
) -> Result:
    if is_empty(r, y):
        return (lambda: ZERO,) * 3
    weights = w[:, None]
    return (
        lambda: -g * (weights * scale.pulled(z)),
        lambda: scale.gradient(z, g, len(w), weights),
        lambda: 0.5 * g * (y.shape[1] / w - q),
    )


def _gp_tangent(
    r: Operand, y: Operand, matrix: Operand, w: Operand, keep: KeptTerms, scale: Operand
) -> Result:
    if is_empty(r, y):
        return (lambda t: 0.0,) * 3
    q, along, of_matrix = tangents(scale, matrix, y, lambda q: w)
    return (lambda t: -along(t), of_matrix, lambda t: 0.5 * np.sum((np.shape(y)[1] / w - q) * t))


def _gp_density(name: str, kind: type[Covariance], title: str) -> StructuredDensity:
    arguments = {
        "y": _Y,
        kind.name: (kind.title, kind.domain),
        "w": ("Kernel scales", positive_finite),
    }
    words = {"given": title, **kind.words()}
    result = member(_gp, name, arguments, words, kind=kind, function=name)
    result.reverse(_gp_reverse)
    result.tangent(_gp_tangent)
    return result


multi_gp_lpdf = _gp_density("multi_gp_lpdf", Covariance, "a covariance")
multi_gp_cholesky_lpdf = _gp_density(
    "multi_gp_cholesky_lpdf", Cholesky, "the Cholesky factor of a covariance"
)
