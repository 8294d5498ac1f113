"""The matrix of a multivariate normal density: a covariance, a scale, a Cholesky factor or a
precision."""

from __future__ import annotations

import numpy as np

from varmat.densities.domains import lower_factor, symmetric_matrix
from varmat.functions.linalg.lapack import (
    blas,
    cholesky_factor,
    inverse_triangle,
    lapack,
    log_diagonal,
    lower_outer,
    outer,
    triangular_solve,
)
from varmat.functions.linalg.spd_solves import inverse_spd_of
from varmat.functions.linalg.symmetric_arguments import symmetric
from varmat.functions.linalg.systems import inner
from varmat.functions.linalg.triangles import (
    add_quotients,
    clear_above,
    diagonal_of,
    half_diagonal,
    half_triangle,
    triangle_mask,
)
from varmat.functions.linalg.triangular_solves import solve_triangular
from varmat.programs.build.symbol import is_symbol
from varmat.typing import Function, Linear, Operand, Plain, Result


class Covariance:
    """The matrix is the covariance, ``L @ L.T``: whitened residuals are ``inv(L) @ d``."""

    name, title, domain = "Sigma", "Covariance matrix", symmetric_matrix
    # For docstrings: how the covariance follows from the matrix, and an example of it.
    covariance, where, example = "Sigma", "", "[[4.0, 2.0], [2.0, 2.0]]"
    # The sign with which log det of the matrix enters log det of the covariance.
    sign = 1.0

    def __init__(self, function: str, matrix: Operand, rows: int) -> None:
        self.factor = self.factorise(function, matrix)
        self.inverse: np.ndarray | None = None
        self._pulled: tuple[Plain, Plain] = (None, None)
        if rows > 2 * len(matrix) > 0 and not is_symbol(self.factor):
            # Fortran sees the transpose, and does not read above the diagonal.
            self.inverse = clear_above(lapack().dtrtri(self.factor.T, lower=False)[0].T)

    @classmethod
    def words(cls) -> dict[str, str]:
        """Return the words for the matrix in a docstring."""
        words = {"matrix": cls.name, "title": cls.title, "domain": cls.domain.phrase}
        return words | {x: getattr(cls, x) for x in ("covariance", "where", "example")}

    def factorise(self, function: str, matrix: Operand) -> Result:
        return cholesky_factor(function, matrix, name=self.title)

    def half_log_determinant(self) -> float:
        return self.sign * log_diagonal(self.factor)  # type: ignore[no-any-return]

    def solve(self, rows: Operand, trans: bool = False) -> Result:
        """Solve with the factor, or its transpose, for each row or for a single vector."""
        if rows.ndim == 1:
            return triangular_solve(self.factor, rows, True, trans)
        if self.inverse is None:
            return triangular_solve(self.factor, rows, lower=True, trans=not trans, right=True)
        return rows.dot(self.inverse if trans else self.inverse.T)

    def whiten(self, d: Operand) -> Result:
        return self.solve(d)

    def pull(self, z: Operand) -> Result:
        """Compute the derivatives of half the squares in the residuals, from weighted whitened
        residuals.
        """
        return self.solve(z, trans=True)

    def pulled(self, z: Operand) -> Result:
        """Compute the same, and keep it for the next call, because several derivatives need it."""
        if self._pulled[0] is not z:
            self._pulled = z, self.pull(z)
        return self._pulled[1]

    # With S = L L^T and d = L z this is the sum of inv(S) (d d^T - S) inv(S) / 2 = inv(L)^T (z z^T
    # - 1) inv(L) / 2.
    def gradient(self, z: Operand, g: float, n: int, w: Operand = None) -> Result:
        """Compute the derivative of the log density with respect to the matrix, times g, where rows
        have weights `w`.
        """
        if self.inverse is None:
            return folded(self.factor, self.pulled(z), g, n, w)
        middle = z.T.dot(weighted(w, z))
        diagonal_of(middle)[...] -= n
        return half_triangle(g * self.inverse.T.dot(middle.dot(self.inverse)))

    @staticmethod
    def tangent(matrix: Operand, d: Operand, factor: Operand) -> Result:
        """Return the derivative of half the squares with respect to d, and the derivatives along t
        of half the squares and of half the log determinant.
        """
        x = inverse_spd_of(matrix, factor)
        a = d @ x
        return (
            a,
            lambda t: -0.5 * np.sum(a * (a @ symmetric(t)), axis=-1),
            lambda t: 0.5 * inner(x, symmetric(t)),
        )


class Scale(Covariance):
    """As `Covariance`, for a distribution whose scale matrix is not its covariance."""

    title = "Scale parameter"


class Cholesky(Covariance):
    """The matrix is the lower Cholesky factor of the covariance."""

    name, title, domain = "L", "Cholesky factor", lower_factor
    covariance, where = "L @ L.T", "; here :math:`\\Sigma = L L^T`"
    example = "[[2.0, 0.0], [1.0, 1.0]]"

    def factorise(self, function: str, matrix: Operand) -> Result:
        return matrix

    # This is the sum of inv(L)^T z z^T - 1 / diag(L).
    def gradient(self, z: Operand, g: float, n: int, w: Operand = None) -> Result:
        rows = weighted(w, z)
        if self.inverse is None:
            c = lower_outer(self.pulled(z).T, rows.T, g)
        else:
            c = clear_above(self.inverse.T.dot(g * z.T.dot(rows)))
        return add_quotients(c, -g * n, self.factor.diagonal())

    @staticmethod
    def tangent(matrix: Operand, d: Operand, factor: Operand) -> Result:
        z = solve_triangular(matrix, d.T, lower=True)
        a = solve_triangular(matrix, z, lower=True, trans=1).T

        def along(t: Operand) -> Result:
            return -np.sum(a * (np.where(triangle_mask(np.shape(t)), t, 0.0) @ z).T, axis=-1)

        return a, along, lambda t: np.sum(np.diagonal(t) / np.diagonal(matrix))


class Precision(Covariance):
    """The matrix is the inverse of the covariance, ``L @ L.T``: whitened residuals are ``L.T @
    d``.
    """

    name, title, sign = "Omega", "Precision matrix", -1.0
    covariance = "np.linalg.inv(Omega)"
    where = "; here :math:`\\Sigma` is the inverse of the argument"

    def __init__(self, function: str, matrix: object, rows: int) -> None:
        super().__init__(function, matrix, 0)
        self.residuals: Operand = None

    def whiten(self, d: Operand) -> Result:
        self.residuals = d
        return d @ self.factor

    def pull(self, z: Operand) -> Result:
        return z @ self.factor.T

    def gradient(self, z: Operand, g: float, n: int, w: Operand = None) -> Result:
        return folded(self.factor, self.residuals, -g, n)

    @staticmethod
    def tangent(matrix: Operand, d: Operand, factor: Operand) -> Result:
        x, precision = inverse_spd_of(matrix, factor), symmetric(matrix)
        return (
            d @ precision,
            lambda t: 0.5 * np.sum(d * (d @ symmetric(t)), axis=-1),
            lambda t: -0.5 * inner(x, symmetric(t)),
        )


def tangents(
    scale: Covariance, matrix: Operand, d: Operand, weigh: Function | None = None
) -> tuple[Result, Linear, Linear]:
    """Compute the derivatives of a log density along tangents of residuals d, but for the sign, and
    of the matrix, and the squares q of whitened residuals before them; `weigh` makes weights of
    these.
    """
    rows = np.reshape(d, (-1, np.shape(d)[-1]))
    a, half_square, half_log_determinant = scale.tangent(matrix, rows, scale.factor)
    q: Result = None
    w: Result = 1.0
    if weigh is not None:
        q = np.sum(a * rows, axis=-1)
        w = weigh(q)
        a = w[:, None] * a
    slopes = np.reshape(a, np.shape(d))
    return (
        q,
        lambda t: np.sum(slopes * t),
        lambda t: -np.sum(w * half_square(t)) - len(rows) * half_log_determinant(t),
    )


def weighted(w: Operand, rows: Operand) -> Result:
    return rows if w is None else w * rows


def folded(factor: Operand, rows: Operand, g: float, n: int, w: Operand = None) -> Result:
    """Compute half of ``g (rows.T @ (w * rows) - n inv(L @ L.T))``, folded onto the lower triangle.
    A vector is a single row.
    """
    if is_symbol(factor):
        squares = outer(weighted(w, rows).T, rows.T) - n * inverse_triangle(factor)
        return g * half_triangle(squares)
    rows = rows if w is None else np.sqrt(w) * rows
    # This works in place: the other triangle keeps its zeros.
    c = inverse_triangle(factor)
    if rows.ndim == 1:
        np.multiply(c, -g * n, c)
        blas().dsyr(g, rows, 0, 1, 0, len(c), c.T, 1)
    else:
        blas().dsyrk(g, rows.T, beta=-g * n, c=c.T, overwrite_c=True)
    return half_diagonal(c)
