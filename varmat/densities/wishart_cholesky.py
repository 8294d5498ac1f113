"""Wishart and inverse Wishart distributions of Cholesky factors.

The observation and the scale are lower Cholesky factors of the matrices in
`varmat.densities.wishart`. The scale is not read above its diagonal. The derivatives lie in the
lower triangles."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.core.operation import Saved
from varmat.densities.density import ZERO, KeptTerms, StructuredDensity, member, possible
from varmat.densities.domains import lower_factor, lower_matrix, possible_value, square_matrix
from varmat.densities.wishart import DEGREES, HALF_LOG_TWO, check_degrees, log_multigamma, nu_slope
from varmat.functions.checks import is_held, misfit
from varmat.functions.linalg.lapack import log_diagonal, triangular_solve
from varmat.functions.linalg.triangles import add_quotients, clear_above, triangle_mask, tril
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.programs.build.symbol import holds, number
from varmat.typing import Adjoint, Operand, Result

__all__ = ["inv_wishart_cholesky_lpdf", "wishart_cholesky_lpdf"]

_OBSERVATION, _SCALE = "Cholesky random variable", "Cholesky Scale matrix"


# Let Y be the factor of the observation and S that of the scale. With the sign s = +1 for Wishart
# and -1 for inverse Wishart, the log density is
#     sum((s nu - i) log(Y_ii) - s nu log(S_ii), i = 1, ..., K) - sum(A**2) / 2
#         - nu K / 2 log 2 - log gamma_K(nu / 2) + K log 2,
# where A = inv(P) M, and (M, P) = (Y, S) for Wishart, (S, Y) for inverse Wishart.
def _powers(nu: Operand, k: int, sign: float) -> tuple[Result, Result]:
    """Return the powers of the diagonal elements of M and P."""
    of_y, of_s = sign * nu - np.arange(1.0, k + 1.0), -sign * nu * np.ones(k)
    return (of_y, of_s) if sign > 0 else (of_s, of_y)


def _check(function: str, y: Operand, nu: Operand, s: Operand) -> int:
    k = len(s)
    if y.shape != s.shape:
        raise misfit(function, _OBSERVATION, y.shape, f"have the shape of {_SCALE}, {s.shape}")
    check_degrees(function, nu, k)
    return k


def _log_density(
    k: int, nu: Operand, squares: Operand, logs: Operand, keep: KeptTerms, sign: float
) -> Result:
    """Compute the log density, from the sum of squares and the log diagonals of Y and S."""
    value = (
        -0.5 * squares
        + (sign * nu) * (np.sum(logs[0]) - np.sum(logs[1]))
        - np.vdot(np.arange(1.0, k + 1.0), logs[0])
    )
    if "nu" in keep:
        value = value - nu * k * HALF_LOG_TWO - log_multigamma(k, nu)
    # as in Stan, which never drops the constant of the inverse distribution
    if "constants" in keep or sign < 0.0:
        value = value + k * 2.0 * HALF_LOG_TWO
    return value


def _value(
    y: Operand, nu: float, s: Operand, keep: KeptTerms, function: str, sign: float
) -> Result:
    """Compute the log density of the Cholesky factor of a matrix that has the {family}
    distribution.

    Parameters
    ----------
    L_Y : array_like, shape (K, K)
        Random variable: a lower Cholesky factor; not nan.
    nu : scalar
        Degrees of freedom parameter: finite and greater than K - 1.
    L_S : array_like, shape (K, K)
        Cholesky factor of the scale matrix: lower triangular with a positive diagonal; what stands
        above it is not read.
    {propto}

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `L_Y` is not lower triangular with a positive diagonal, or
        not finite.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    `{plain}` of :math:`L_Y L_Y^T` and :math:`L_S L_S^T` times the Jacobian :math:`2^K \\prod_i
    L_{{Y,ii}}^{{K-i+1}}`: the log density is :math:`{formula} - \\tfrac{{\\nu K}}2 \\log 2 -
    \\log\\Gamma_K(\\tfrac\\nu2) + K \\log 2`. The derivatives with respect to the factors lie in
    their lower triangles. SciPy has no equivalent.

    References
    ----------
    {references}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda L: vm.{name}(L, 5.0, np.eye(2)), np.eye(2))
    array([[{first}, 0.],
           [0., {second}]])
    """
    k = _check(function, y, nu, s)
    if not (holds(y.diagonal() > 0) and holds(tril(y) == y) and holds(np.isfinite(y))):
        return Saved(-math.inf, root=None)
    m, p = (y, s) if sign > 0 else (s, y)
    root = triangular_solve(p, m if sign > 0 else tril(m), lower=True)
    logs = [np.log(x.diagonal()) for x in (y, s)]
    value = _log_density(k, nu, number(np.vdot(root, root)), logs, keep, sign)
    return Saved(possible_value(value), root=root)


def _reverse(
    g: Adjoint,
    r: Operand,
    y: Operand,
    nu: Operand,
    s: Operand,
    keep: KeptTerms,
    root: Operand,
    sign: float,
) -> Result:
    if root is None:
        return (lambda: ZERO,) * 3
    k = len(s)
    m, p = (y, s) if sign > 0 else (s, y)
    powers = _powers(nu, k, sign)

    def of_m() -> Result:
        c = clear_above(-g * triangular_solve(p, root, lower=True, trans=True))
        return add_quotients(c, g * powers[0], m.diagonal())

    def of_p() -> Result:
        c = triangular_solve(p, root, lower=True, trans=True).dot(root.T)
        return add_quotients(clear_above(g * c), g * powers[1], p.diagonal())

    def of_nu() -> Result:
        return g * nu_slope(sign * 2.0 * (log_diagonal(y) - log_diagonal(s)), nu, k)

    return (of_m, of_nu, of_p) if sign > 0 else (of_p, of_nu, of_m)


def _tangent(
    r: Operand, y: Operand, nu: Operand, s: Operand, keep: KeptTerms, sign: float
) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 3
    k = np.shape(s)[0]
    mask = triangle_mask((k, k))
    y, s = np.where(mask, y, 0.0), np.where(mask, s, 0.0)
    m, p = (y, s) if sign > 0 else (s, y)
    root = solve_triangular(p, m, lower=True)
    pulled = solve_triangular(p, root, lower=True, trans=1)
    powers = _powers(nu, k, sign)

    def along_m(t: Operand) -> Result:
        return np.sum(powers[0] * np.diagonal(t) / np.diagonal(m)) - np.sum(
            pulled * np.where(mask, t, 0.0)
        )

    def along_p(t: Operand) -> Result:
        return np.sum(powers[1] * np.diagonal(t) / np.diagonal(p)) + np.sum(
            (pulled @ root.T) * np.where(mask, t, 0.0)
        )

    def along_nu(t: Operand) -> Result:
        log_y, log_s = (np.sum(np.log(np.diagonal(x))) for x in (y, s))
        return t * nu_slope(sign * 2.0 * (log_y - log_s), nu, k)

    return (along_m, along_nu, along_p) if sign > 0 else (along_p, along_nu, along_m)


def _cholesky_density(
    name: str, sign: float, family: str, formula: str, first: str, second: str
) -> StructuredDensity:
    words = {"family": family, "formula": formula, "first": first, "second": second}
    words["plain"] = name.replace("_cholesky", "")
    arguments = {"L_Y": (_OBSERVATION, square_matrix), "nu": DEGREES, "L_S": (_SCALE, lower_factor)}
    result = member(_value, name, arguments, words, function=name, sign=sign)
    result.data_domain = lambda *_: lower_matrix
    result.reverse(partial(_reverse, sign=sign))
    result.tangent(partial(_tangent, sign=sign))
    return result


wishart_cholesky_lpdf = _cholesky_density(
    "wishart_cholesky_lpdf",
    1.0,
    "Wishart",
    "\\sum_i [(\\nu - i) \\log L_{Y,ii} - \\nu \\log L_{S,ii}] - \\tfrac12 \\|L_S^{-1} L_Y\\|^2",
    "3.",
    "2.",
)
inv_wishart_cholesky_lpdf = _cholesky_density(
    "inv_wishart_cholesky_lpdf",
    -1.0,
    "inverse Wishart",
    "\\sum_i [\\nu \\log L_{S,ii} - (\\nu + i) \\log L_{Y,ii}] - \\tfrac12 \\|L_Y^{-1} L_S\\|^2",
    "-5.",
    "-6.",
)
