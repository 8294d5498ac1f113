"""Random correlation and covariance matrices, and their Cholesky factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.core.domains import Domain, positive_finite
from varmat.densities.domains import ScalarDomain, lower_factor, symmetric_matrix
from varmat.densities.lkj import lkj_corr_cholesky_lpdf, lkj_corr_lpdf
from varmat.densities.random_numbers.row import Generator, vectors
from varmat.densities.wishart import inv_wishart_lpdf, wishart_lpdf
from varmat.densities.wishart_cholesky import inv_wishart_cholesky_lpdf, wishart_cholesky_lpdf
from varmat.functions.linalg.lapack import cholesky_factor

if TYPE_CHECKING:
    from varmat.typing import Operand, Result, Shape

__all__ = [
    "inv_wishart_cholesky_rng",
    "inv_wishart_rng",
    "lkj_corr_cholesky_rng",
    "lkj_corr_rng",
    "wishart_cholesky_rng",
    "wishart_rng",
]

SHAPE = ("Shape parameter", ScalarDomain(positive_finite))
ROW_COUNT = ("Number of rows", ScalarDomain(Domain("at least 1", lambda x: x >= 1)), "#")
DEGREES = ("Degrees of freedom parameter", ScalarDomain(positive_finite))
SCALE = ("scale parameter", symmetric_matrix, "kk")
FACTOR = ("Cholesky Scale matrix", lower_factor, "kk")


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


ONION = """The rows of the Cholesky factor are drawn one after the other, which is the onion method:
    the square of the length of the part of row i + 1 before the diagonal has a beta distribution
    with the shapes :math:`i / 2` and :math:`\\eta + (K - 1 - i) / 2`, and its direction is
    uniform."""


@vectors(
    "LKJ distribution of the Cholesky factor of a correlation matrix",
    "kk",
    density=lkj_corr_cholesky_lpdf,
    K=ROW_COUNT,
    eta=SHAPE,
    notes=ONION,
    examples="""
>>> import numpy as np, varmat as vm
>>> L = vm.lkj_corr_cholesky_rng(3, 2.0, rng=1)
>>> bool(np.allclose(np.sum(L**2, axis=1), 1.0) and vm.lkj_corr_cholesky_lpdf(L, 2.0) > -np.inf)
True
""",
)
def lkj_corr_cholesky_rng(rng: Generator, shape: Shape, K: Operand, eta: Operand) -> Result:
    return correlation_factors(rng, shape, int(K), eta)


@vectors(
    "LKJ distribution of correlation matrices",
    "kk",
    density=lkj_corr_lpdf,
    K=ROW_COUNT,
    eta=SHAPE,
    notes=ONION,
    examples="""
>>> import numpy as np, varmat as vm
>>> draws = vm.lkj_corr_rng(3, 2.0, rng=1, size=4)
>>> draws.shape
(4, 3, 3)
>>> bool(np.all(np.linalg.eigvalsh(draws) > 0.0))
True
""",
)
def lkj_corr_rng(rng: Generator, shape: Shape, K: Operand, eta: Operand) -> Result:
    factors = correlation_factors(rng, shape, int(K), eta)
    draws, i = products(factors), np.arange(int(K))
    draws[..., i, i] = 1.0
    return draws


# --- Wishart ---


def check_degrees(function: str, nu: Operand, rows: int) -> None:
    """Raise an error for degrees of freedom with which there is no density."""
    Domain(f"finite and greater than {rows - 1}", lambda x: (x > rows - 1) & (x < np.inf)).check(
        function, DEGREES[0], nu
    )


def products(factors: Operand) -> Result:
    """``L @ L.T``, symmetric to the last digit."""
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
    # Elimination leaves a triangle as it is, so the general solver works by substitution here.
    return np.tril(np.linalg.solve(triangles.mT, np.broadcast_to(factor.T, triangles.shape)).mT)


BARTLETT = """A draw is made of Bartlett's triangle: normal numbers, and roots of chi-square
    numbers on the diagonal{}; M. S. Bartlett, "On the theory of statistical regression",
    Proceedings of the Royal Society of Edinburgh 53 (1933), 260-283."""
MATRIX_EXAMPLE = """
>>> import numpy as np, varmat as vm
>>> draws = vm.{}(5.0, [[4.0, 2.0], [2.0, 2.0]], rng=1, size=3)
>>> bool(np.all(np.linalg.eigvalsh(draws) > 0.0))
True
"""
TRIANGLE_EXAMPLE = """
>>> import numpy as np, varmat as vm
>>> draws = vm.{}(5.0, [[2.0, 0.0], [1.0, 1.0]], rng=1, size=3)
>>> draws.shape, bool(np.all(draws[:, 0, 1] == 0.0))
((3, 2, 2), True)
"""


@vectors(
    "Wishart distribution",
    "kk",
    density=wishart_lpdf,
    nu=DEGREES,
    S=SCALE,
    notes=BARTLETT.format(""),
    examples=MATRIX_EXAMPLE.format("wishart_rng"),
)
def wishart_rng(rng: Generator, shape: Shape, nu: Operand, S: Operand) -> Result:
    factor = cholesky_factor("wishart_rng", S, name="scale parameter")
    return products(wishart_factors("wishart_rng", rng, shape, nu, factor))


@vectors(
    "Wishart distribution, by Cholesky factors",
    "kk",
    density=wishart_cholesky_lpdf,
    nu=DEGREES,
    L_S=FACTOR,
    notes=BARTLETT.format("") + " It is the Cholesky factor of what `wishart_rng` draws.",
    examples=TRIANGLE_EXAMPLE.format("wishart_cholesky_rng"),
)
def wishart_cholesky_rng(rng: Generator, shape: Shape, nu: Operand, L_S: Operand) -> Result:  # noqa: N803
    return wishart_factors("wishart_cholesky_rng", rng, shape, nu, np.tril(L_S))


@vectors(
    "inverse Wishart distribution",
    "kk",
    density=inv_wishart_lpdf,
    nu=DEGREES,
    S=SCALE,
    notes=BARTLETT.format(", by which the factor of the scale is divided"),
    examples=MATRIX_EXAMPLE.format("inv_wishart_rng"),
)
def inv_wishart_rng(rng: Generator, shape: Shape, nu: Operand, S: Operand) -> Result:
    factor = cholesky_factor("inv_wishart_rng", S, name="scale parameter")
    return products(inv_wishart_factors("inv_wishart_rng", rng, shape, nu, factor))


@vectors(
    "inverse Wishart distribution, by Cholesky factors",
    "kk",
    density=inv_wishart_cholesky_lpdf,
    nu=DEGREES,
    L_S=FACTOR,
    notes=BARTLETT.format(", by which the factor of the scale is divided")
    + " It is the Cholesky factor of what `inv_wishart_rng` draws.",
    examples=TRIANGLE_EXAMPLE.format("inv_wishart_cholesky_rng"),
)
def inv_wishart_cholesky_rng(rng: Generator, shape: Shape, nu: Operand, L_S: Operand) -> Result:  # noqa: N803
    return inv_wishart_factors("inv_wishart_cholesky_rng", rng, shape, nu, np.tril(L_S))
