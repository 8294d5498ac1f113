"""Random correlation and covariance matrices, and their Cholesky factors."""

from __future__ import annotations

import numpy as np

from varmat.core.domains import Domain, positive_finite
from varmat.densities.domains import ScalarDomain
from varmat.densities.lkj import lkj_corr_cholesky_lpdf, lkj_corr_lpdf
from varmat.densities.random_numbers.row import Generator, random_numbers
from varmat.densities.wishart import check_degrees, inv_wishart_lpdf, wishart_lpdf
from varmat.densities.wishart_cholesky import inv_wishart_cholesky_lpdf, wishart_cholesky_lpdf
from varmat.functions.linalg.lapack import cholesky_factor
from varmat.typing import Operand, Result, Shape

__all__ = [
    "inv_wishart_cholesky_rng",
    "inv_wishart_rng",
    "lkj_corr_cholesky_rng",
    "lkj_corr_rng",
    "wishart_cholesky_rng",
    "wishart_rng",
]

DEGREE_DOMAIN = ScalarDomain(positive_finite)
ROW_COUNT = ("#", ScalarDomain(Domain("at least 1", lambda x: x >= 1)), "Number of rows")


# --- correlations ---


def correlation_factors(rng: Generator, shape: Shape, k: int, eta: float) -> Result:
    """Lower factors with rows of unit length: normal numbers, and the root of a gamma number on the
    diagonal.
    """
    factors = np.tril(rng.standard_normal((*shape, k, k)), -1)
    # Row i has i normal numbers before its diagonal element, whose square is twice a gamma number
    # of the shape eta + (k - 1 - i) / 2.
    shapes = eta + 0.5 * np.arange(k - 1, -1, -1)
    diagonal = np.sqrt(2.0 * rng.standard_gamma(shapes, (*shape, k)))
    diagonal[..., 0] = 1.0
    i = np.arange(k)
    factors[..., i, i] = diagonal
    factors /= np.sqrt(np.sum(factors**2, axis=-1, keepdims=True))
    return factors


@random_numbers(
    lkj_corr_cholesky_lpdf,
    "LKJ distribution of the Cholesky factor of a correlation matrix",
    "kk",
    K=ROW_COUNT,
    eta="",
)
def lkj_corr_cholesky_rng(rng: Generator, shape: Shape, K: Operand, eta: Operand) -> Result:
    """The rows of the Cholesky factor are drawn in sequence, which is the onion method:
    the square of the length of the part of row i + 1 before the diagonal has a beta distribution
    with the shapes :math:`i / 2` and :math:`\\eta + (K - 1 - i) / 2`, and its direction is
    uniform.

    >>> import numpy as np, varmat as vm
    >>> L = vm.lkj_corr_cholesky_rng(3, 2.0, rng=1)
    >>> bool(np.allclose(np.sum(L**2, axis=1), 1.0) and vm.lkj_corr_cholesky_lpdf(L, 2.0) > -np.inf)
    True
    """
    return correlation_factors(rng, shape, int(K), eta)


@random_numbers(
    lkj_corr_lpdf, "LKJ distribution of correlation matrices", "kk", K=ROW_COUNT, eta=""
)
def lkj_corr_rng(rng: Generator, shape: Shape, K: Operand, eta: Operand) -> Result:
    """The rows of the Cholesky factor are drawn in sequence, which is the onion method:
    the square of the length of the part of row i + 1 before the diagonal has a beta distribution
    with the shapes :math:`i / 2` and :math:`\\eta + (K - 1 - i) / 2`, and its direction is
    uniform.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.lkj_corr_rng(3, 2.0, rng=1, size=4)
    >>> draws.shape
    (4, 3, 3)
    >>> bool(np.all(np.linalg.eigvalsh(draws) > 0.0))
    True
    """
    factors = correlation_factors(rng, shape, int(K), eta)
    draws, i = products(factors), np.arange(int(K))
    draws[..., i, i] = 1.0
    return draws


# --- Wishart ---


def products(factors: Operand) -> Result:
    """Compute ``L @ L.T``, symmetric to the last digit."""
    lower = np.tril(factors @ factors.mT)
    return lower + np.tril(lower, -1).mT


def bartlett(rng: Generator, shape: Shape, degrees: Operand) -> Result:
    """Lower triangles of normal numbers, with roots of chi-square numbers on the diagonal."""
    k = len(degrees)
    triangles, i = np.tril(rng.standard_normal((*shape, k, k)), -1), np.arange(k)
    triangles[..., i, i] = np.sqrt(rng.chisquare(degrees, (*shape, k)))
    return triangles


def wishart_factors(
    function: str, rng: Generator, shape: Shape, nu: Operand, factor: Operand
) -> Result:
    k = len(factor)
    check_degrees(function, nu, k)
    return factor @ bartlett(rng, shape, nu - np.arange(k))


def inv_wishart_factors(
    function: str, rng: Generator, shape: Shape, nu: Operand, factor: Operand
) -> Result:
    """Lower triangular factors L inv(B). B has its degrees of freedom in reverse order, so that B.T
    @ B has a Wishart distribution.
    """
    k = len(factor)
    check_degrees(function, nu, k)
    triangles = bartlett(rng, shape, nu - np.arange(k)[::-1])
    # Elimination does not change a triangle, so the general solver works by substitution here.
    return np.tril(np.linalg.solve(triangles.mT, np.broadcast_to(factor.T, triangles.shape)).mT)


@random_numbers(wishart_lpdf, "Wishart distribution", "kk", nu=("", DEGREE_DOMAIN), S="kk")
def wishart_rng(rng: Generator, shape: Shape, nu: Operand, S: Operand) -> Result:
    """A draw is made of Bartlett's triangle: normal numbers, and roots of chi-square
    numbers on the diagonal; M. S. Bartlett, "On the theory of statistical regression",
    Proceedings of the Royal Society of Edinburgh 53 (1933), 260-283.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.wishart_rng(5.0, [[4.0, 2.0], [2.0, 2.0]], rng=1, size=3)
    >>> bool(np.all(np.linalg.eigvalsh(draws) > 0.0))
    True
    """
    factor = cholesky_factor("wishart_rng", S, name="scale parameter")
    return products(wishart_factors("wishart_rng", rng, shape, nu, factor))


@random_numbers(
    wishart_cholesky_lpdf,
    "Wishart distribution, by Cholesky factors",
    "kk",
    nu=("", DEGREE_DOMAIN),
    L_S="kk",
)
def wishart_cholesky_rng(rng: Generator, shape: Shape, nu: Operand, L_S: Operand) -> Result:  # noqa: N803
    """A draw is made of Bartlett's triangle: normal numbers, and roots of chi-square numbers on the
    diagonal; M. S. Bartlett, "On the theory of statistical regression", Proceedings of the Royal
    Society of Edinburgh 53 (1933), 260-283. It is the Cholesky factor of what `wishart_rng` draws.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.wishart_cholesky_rng(5.0, [[2.0, 0.0], [1.0, 1.0]], rng=1, size=3)
    >>> draws.shape, bool(np.all(draws[:, 0, 1] == 0.0))
    ((3, 2, 2), True)
    """
    return wishart_factors("wishart_cholesky_rng", rng, shape, nu, np.tril(L_S))


@random_numbers(
    inv_wishart_lpdf, "inverse Wishart distribution", "kk", nu=("", DEGREE_DOMAIN), S="kk"
)
def inv_wishart_rng(rng: Generator, shape: Shape, nu: Operand, S: Operand) -> Result:
    """A draw is made of Bartlett's triangle: normal numbers, and roots of chi-square numbers on the
    diagonal, by which the factor of the scale is divided; M. S. Bartlett, "On the theory of
    statistical regression", Proceedings of the Royal Society of Edinburgh 53 (1933), 260-283.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.inv_wishart_rng(5.0, [[4.0, 2.0], [2.0, 2.0]], rng=1, size=3)
    >>> bool(np.all(np.linalg.eigvalsh(draws) > 0.0))
    True
    """
    factor = cholesky_factor("inv_wishart_rng", S, name="scale parameter")
    return products(inv_wishart_factors("inv_wishart_rng", rng, shape, nu, factor))


@random_numbers(
    inv_wishart_cholesky_lpdf,
    "inverse Wishart distribution, by Cholesky factors",
    "kk",
    nu=("", DEGREE_DOMAIN),
    L_S="kk",
)
def inv_wishart_cholesky_rng(rng: Generator, shape: Shape, nu: Operand, L_S: Operand) -> Result:  # noqa: N803
    """A draw is made of Bartlett's triangle: normal numbers, and roots of chi-square numbers on the
    diagonal, by which the factor of the scale is divided; M. S. Bartlett, "On the theory of
    statistical regression", Proceedings of the Royal Society of Edinburgh 53 (1933), 260-283. It is
    the Cholesky factor of what `inv_wishart_rng` draws.

    >>> import numpy as np, varmat as vm
    >>> draws = vm.inv_wishart_cholesky_rng(5.0, [[2.0, 0.0], [1.0, 1.0]], rng=1, size=3)
    >>> draws.shape, bool(np.all(draws[:, 0, 1] == 0.0))
    ((3, 2, 2), True)
    """
    return inv_wishart_factors("inv_wishart_cholesky_rng", rng, shape, nu, np.tril(L_S))
