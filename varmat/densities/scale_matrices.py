"""How the multivariate normal densities use their matrix: as a covariance, a scale, a factor or a
precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.densities.domains import lower_factor, symmetric_matrix
from varmat.functions.linalg.lapack import (
    blas,
    cholesky_factor,
    clear_above,
    diagonal_of,
    half_diagonal,
    inverse_triangle,
    lapack,
    log_diagonal,
    lower_outer,
    triangle_mask,
    triangular_solve,
)
from varmat.functions.linalg.solves import inner, inverse_spd_of, solve_triangular, symmetric

__all__: list[str] = []


class Covariance:
    """The matrix is the covariance, ``L @ L.T``: whitened residuals are ``inv(L) @ d``."""

    title, domain, where = "Covariance matrix", symmetric_matrix, ""
    # The sign of the logarithm of the determinant of the matrix in that of the covariance.
    sign = 1.0

    def __init__(self, function: str, matrix: Any, rows: int) -> None:
        self.factor = self.factorise(function, matrix)
        self.inverse: Any = None
        self._pulled: Any = (None, None)
        if rows > 2 * len(matrix) > 0:
            # Fortran sees the transpose, and leaves alone what is above the diagonal.
            self.inverse = clear_above(lapack().dtrtri(self.factor.T, lower=False)[0].T)

    def factorise(self, function: str, matrix: Any) -> Any:
        return cholesky_factor(function, matrix, name=self.title)

    def half_log_determinant(self) -> float:
        return self.sign * float(log_diagonal(self.factor))

    def solve(self, rows: Any, trans: bool = False) -> Any:
        """Solve with the factor, or its transpose, for each row, or for a single vector."""
        if rows.ndim == 1:
            return triangular_solve(self.factor, rows, True, trans)
        if self.inverse is None:
            return triangular_solve(self.factor, rows, lower=True, trans=not trans, right=True)
        return rows.dot(self.inverse if trans else self.inverse.T)

    def whiten(self, d: Any) -> Any:
        return self.solve(d)

    def pull(self, z: Any) -> Any:
        """From whitened residuals, times weights, to the derivatives of half their squares with
        respect to the residuals.
        """
        return self.solve(z, trans=True)

    def pulled(self, z: Any) -> Any:
        """The same, of which several derivatives are made: computed once for the same residuals."""
        if self._pulled[0] is not z:
            self._pulled = z, self.pull(z)
        return self._pulled[1]

    # With S = L L^T and d = L z, the sum of inv(S) (d d^T - S) inv(S) / 2 = inv(L)^T (z z^T - 1)
    # inv(L) / 2.
    def gradient(self, z: Any, g: float, n: int) -> Any:
        """The derivative of the log density with respect to the matrix, times g."""
        if self.inverse is None:
            return folded(self.factor, self.pulled(z), g, n)
        middle = z.T.dot(z)
        diagonal_of(middle)[...] -= n
        return half_diagonal(clear_above(g * self.inverse.T.dot(middle.dot(self.inverse))))

    @staticmethod
    def tangent(matrix: Any, d: Any, factor: Any) -> Any:
        """The derivative of half the squares with respect to d; along t, those of half the squares
        and half the log determinant.
        """
        x = inverse_spd_of(matrix, factor)
        a = d @ x
        return (
            a,
            lambda t: -0.5 * np.sum(a * (a @ symmetric(t)), axis=-1),
            lambda t: 0.5 * inner(x, symmetric(t)),
        )


class Scale(Covariance):
    """As `Covariance`, where it is none."""

    title = "Scale parameter"


class Cholesky(Covariance):
    """The matrix is the lower Cholesky factor of the covariance."""

    title, domain, where = "Cholesky factor", lower_factor, "; here :math:`\\Sigma = L L^T`"

    def factorise(self, function: str, matrix: Any) -> Any:
        return matrix

    # The sum of inv(L)^T z z^T - 1 / diag(L).
    def gradient(self, z: Any, g: float, n: int) -> Any:
        if z.ndim == 1:
            c = lower_outer(self.pulled(z), z, g)
        elif self.inverse is None:
            c = lower_outer(g * self.pulled(z).T, z.T)
        else:
            c = clear_above(self.inverse.T.dot(g * z.T.dot(z)))
        diagonal = diagonal_of(c)
        np.subtract(diagonal, g * n / self.factor.diagonal(), diagonal)
        return c

    @staticmethod
    def tangent(matrix: Any, d: Any, factor: Any) -> Any:
        z = solve_triangular(matrix, d.T, lower=True)
        a = solve_triangular(matrix, z, lower=True, trans=1).T

        def along(t: Any) -> Any:
            return -np.sum(a * (np.where(triangle_mask(np.shape(t)), t, 0.0) @ z).T, axis=-1)

        return a, along, lambda t: np.sum(np.diagonal(t) / np.diagonal(matrix))


class Precision(Covariance):
    """The matrix is the inverse of the covariance, ``L @ L.T``: whitened residuals are ``L.T @
    d``.
    """

    title, where, sign = (
        "Precision matrix",
        "; here :math:`\\Sigma` is the inverse of the argument",
        -1.0,
    )

    def __init__(self, function: str, matrix: Any, rows: int) -> None:
        super().__init__(function, matrix, 0)

    def whiten(self, d: Any) -> Any:
        self.residuals = d
        return d.dot(self.factor)

    def pull(self, z: Any) -> Any:
        return z.dot(self.factor.T)

    def gradient(self, z: Any, g: float, n: int) -> Any:
        return folded(self.factor, self.residuals, -g, n)

    @staticmethod
    def tangent(matrix: Any, d: Any, factor: Any) -> Any:
        x, whole = inverse_spd_of(matrix, factor), symmetric(matrix)
        return (
            d @ whole,
            lambda t: 0.5 * np.sum(d * (d @ symmetric(t)), axis=-1),
            lambda t: -0.5 * inner(x, symmetric(t)),
        )


def folded(factor: Any, rows: Any, g: float, n: int) -> Any:
    """Half of ``g (rows.T @ rows - n inv(L @ L.T))``, folded onto the lower triangle; `rows` may be
    a single one, a vector.
    """
    # In place: the other triangle keeps its zeros.
    c = inverse_triangle(factor)
    if rows.ndim == 1:
        np.multiply(c, -g * n, c)
        blas().dsyr(g, rows, 0, 1, 0, len(c), c.T, 1)
    else:
        blas().dsyrk(g, rows.T, beta=-g * n, c=c.T, overwrite_c=True)
    return half_diagonal(c)
