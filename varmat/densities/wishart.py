"""Wishart and inverse Wishart distributions of positive definite matrices.

The lower triangle of a matrix is read, and the derivative lies in it (see
`varmat.functions.linalg.symmetric_arguments`).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from varmat.core.domains import Domain
from varmat.core.operation import Saved
from varmat.densities.density import ZERO, KeptTerms, density, not_nan, possible
from varmat.densities.domains import (
    ScalarDomain,
    definite_matrix,
    factor_or_none,
    square_matrix,
    symmetric_matrix,
)
from varmat.densities.scale_matrices import folded
from varmat.functions.checks import is_held, misfit
from varmat.functions.linalg.determinants import log_determinant_spd_of
from varmat.functions.linalg.lapack import (
    cholesky_factor,
    inverse_triangle,
    log_diagonal,
    triangular_solve,
)
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import inner
from varmat.functions.linalg.triangles import half_diagonal
from varmat.functions.special.gamma_functions import gammaln
from varmat.functions.special.zeta_functions import digamma
from varmat.programs.build.symbol import number
from varmat.typing import Adjoint, Operand, Result

__all__ = ["inv_wishart_lpdf", "wishart_lpdf"]

QUARTER_LOG_PI = 0.25 * math.log(math.pi)
HALF_LOG_TWO = 0.5 * math.log(2.0)

DEGREES = ("Degrees of freedom parameter", ScalarDomain(not_nan))


def check_degrees(function: str, nu: object, rows: int) -> None:
    """Raise an error for degrees of freedom without a density."""
    Domain(f"finite and greater than {rows - 1}", lambda x: (x > rows - 1) & (x < math.inf)).check(
        function, DEGREES[0], nu
    )


# Both log densities in W are, with the sign s = +1 for Wishart and -1 for inverse Wishart,
#     s nu / 2 log(det W / det S) - (K + 1) / 2 log det W - trace(inv(P) M) / 2
#         - nu K / 2 log 2 - log gamma_K(nu / 2),
# where (M, P) = (W, S) for Wishart and (S, W) for inverse Wishart.
def _wishart(
    w: Operand, nu: float, s: Operand, keep: KeptTerms, function: str, sign: float
) -> Result:
    k = len(s)
    if w.shape != s.shape:
        raise misfit(
            function, "random variable", w.shape, f"have the shape of scale parameter, {s.shape}"
        )
    check_degrees(function, nu, k)
    factors = factor_or_none(w), cholesky_factor(function, s, name="scale parameter")
    if factors[0] is None:
        return Saved(-math.inf, factors=None, root=None)
    m, p = factors if sign > 0 else factors[::-1]
    root = triangular_solve(p, m, lower=True)
    half_w, half_s = map(log_diagonal, factors)
    value = 0.0
    if keep & {"W", "S"}:
        value -= 0.5 * number(np.vdot(root, root))
    if keep & {"W", "nu"}:
        value += (sign * nu - k - 1.0) * half_w
    if keep & {"S", "nu"}:
        value -= sign * nu * half_s
    if "nu" in keep:
        value -= nu * k * HALF_LOG_TWO + log_multigamma(k, nu)
    return Saved(value, factors=factors, root=root)


def _wishart_reverse(
    g: Adjoint,
    r: Operand,
    w: Operand,
    nu: Operand,
    s: Operand,
    keep: KeptTerms,
    factors: Operand,
    root: Operand,
    sign: float,
) -> Result:
    if factors is None:
        return (lambda: ZERO,) * 3
    k = len(s)
    m, p = factors if sign > 0 else factors[::-1]

    def of_m() -> Result:
        return g * half_diagonal(
            _power_of_m(nu, k, sign) * inverse_triangle(m) - inverse_triangle(p)
        )

    def of_p() -> Result:
        return folded(
            p, triangular_solve(p, root, lower=True, trans=True).T, g, _power_of_p(nu, k, sign)
        )

    def of_nu() -> Result:
        return g * nu_slope(
            sign * 2.0 * (log_diagonal(factors[0]) - log_diagonal(factors[1])), nu, k
        )

    return (of_m, of_nu, of_p) if sign > 0 else (of_p, of_nu, of_m)


def _power_of_m(nu: Operand, k: int, sign: float) -> Result:
    """Return twice the power of the determinant of M."""
    return nu - k - 1.0 if sign > 0 else nu


def _power_of_p(nu: Operand, k: int, sign: float) -> Result:
    """Return twice the power of the determinant of P, which divides."""
    return nu if sign > 0 else nu + k + 1.0


def log_multigamma(k: int, nu: Operand) -> Result:
    """Compute the logarithm of the multivariate gamma function of ``nu / 2``."""
    logarithms = gammaln(0.5 * (nu - np.arange(k)))
    return k * (k - 1) * QUARTER_LOG_PI + number(np.sum(logarithms))


def nu_slope(log_ratio: Operand, nu: Operand, k: int) -> Result:
    """Compute the derivative with respect to the degrees of freedom; differentiable."""
    return 0.5 * log_ratio - k * HALF_LOG_TWO - 0.5 * np.sum(digamma(0.5 * (nu - np.arange(k))))


def _wishart_tangent(
    r: Operand, w: Operand, nu: Operand, s: Operand, keep: KeptTerms, factors: Operand, sign: float
) -> Result:
    if not is_held(possible, r):
        return (lambda t: 0.0,) * 3
    k = len(s)
    m, p = (w, s) if sign > 0 else (s, w)
    y, x = map(inverse_spd_of, (m, p), factors if sign > 0 else factors[::-1])

    def along_m(t: Operand) -> Result:
        return 0.5 * inner(_power_of_m(nu, k, sign) * y - x, symmetric(t))

    def along_p(t: Operand) -> Result:
        return 0.5 * inner(x @ symmetric(m) @ x - _power_of_p(nu, k, sign) * x, symmetric(t))

    def along_nu(t: Operand) -> Result:
        log_w, log_s = map(log_determinant_spd_of, (w, s), factors)
        return t * nu_slope(sign * (log_w - log_s), nu, k)

    return (along_m, along_nu, along_p) if sign > 0 else (along_p, along_nu, along_m)


@density(W=("random variable", square_matrix), nu=DEGREES, S=("scale parameter", symmetric_matrix))
def wishart_lpdf(w: Operand, nu: Operand, s: Operand, keep: KeptTerms) -> Result:
    """Compute the log density of the Wishart distribution.

    Parameters
    ----------
    W : array_like, shape (K, K)
        Random variable: symmetric positive definite; not nan.
    nu : scalar
        Degrees of freedom parameter: finite and greater than K - 1.
    S : array_like, shape (K, K)
        Scale parameter: symmetric positive definite.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``wishart_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `W` is not symmetric positive definite.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for an `S` that is not positive definite also a
        `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The log density is :math:`\\tfrac{\\nu-K-1}2 \\log\\det W - \\tfrac12 \\mathrm{tr}(S^{-1} W) -
    \\tfrac\\nu2 \\log\\det S - \\tfrac{\\nu K}2 \\log 2 - \\log\\Gamma_K(\\tfrac\\nu2)`. The
    derivatives :math:`\\tfrac12 [(\\nu-K-1) W^{-1} - S^{-1}]` and :math:`\\tfrac12 [S^{-1} W S^{-1}
    - \\nu S^{-1}]` are folded onto the lower triangles. In SciPy ``scipy.stats.wishart(nu, S)``.

    References
    ----------
    Stan Functions Reference, "Wishart distribution"; T. W. Anderson, "An Introduction to
    Multivariate Statistical Analysis", 3rd edition, Wiley 2003, chapter 7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda W: vm.wishart_lpdf(W, 5.0, np.eye(2)), np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    return _wishart(w, nu, s, keep, "wishart_lpdf", 1.0)


@density(W=("random variable", square_matrix), nu=DEGREES, S=("scale parameter", symmetric_matrix))
def inv_wishart_lpdf(w: Operand, nu: Operand, s: Operand, keep: KeptTerms) -> Result:
    """Compute the log density of the inverse Wishart distribution.

    Parameters
    ----------
    W : array_like, shape (K, K)
        Random variable: symmetric positive definite; not nan.
    nu : scalar
        Degrees of freedom parameter: finite and greater than K - 1.
    S : array_like, shape (K, K)
        Scale parameter: symmetric positive definite.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``inv_wishart_lupdf`` does.

    Returns
    -------
    float or Var
        -inf, with a gradient of zero, if `W` is not symmetric positive definite.

    Raises
    ------
    DomainError
        If an argument is outside its domain; for an `S` that is not positive definite also a
        `numpy.linalg.LinAlgError`.
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    The log density is :math:`\\tfrac\\nu2 \\log\\det S - \\tfrac{\\nu+K+1}2 \\log\\det W -
    \\tfrac12 \\mathrm{tr}(S W^{-1}) - \\tfrac{\\nu K}2 \\log 2 - \\log\\Gamma_K(\\tfrac\\nu2)`. The
    derivatives :math:`\\tfrac12 [W^{-1} S W^{-1} - (\\nu+K+1) W^{-1}]` and :math:`\\tfrac12 [\\nu
    S^{-1} - W^{-1}]` are folded onto the lower triangles. In SciPy ``scipy.stats.invwishart(nu,
    S)``.

    References
    ----------
    Stan Functions Reference, "Inverse Wishart distribution"; T. W. Anderson, "An Introduction to
    Multivariate Statistical Analysis", 3rd edition, Wiley 2003, chapter 7.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda W: vm.inv_wishart_lpdf(W, 5.0, np.eye(2)), np.eye(2))
    array([[-3.5,  0. ],
           [ 0. , -3.5]])
    """
    return _wishart(w, nu, s, keep, "inv_wishart_lpdf", -1.0)


for _density, _sign in ((wishart_lpdf, 1.0), (inv_wishart_lpdf, -1.0)):
    _density.data_domain = lambda *_: definite_matrix
    _density.reverse(partial(_wishart_reverse, sign=_sign))
    _density.tangent(partial(_wishart_tangent, sign=_sign))
