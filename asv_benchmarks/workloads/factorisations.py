"""Functions that factorise a matrix: determinants, solves, decompositions, multivariate normal
densities, Gaussian processes.

The rules of the derivatives by hand are those of `workloads.matrices`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from peers import IMPLEMENTATIONS, namespace
from scipy.linalg import blas, lapack

from workloads.matrices import (
    LIMIT,
    MODERATE,
    SIZES,
    general,
    matrices,
    matrix_workload,
    positive_definite,
    triangle,
    vector,
    warm,
    weighted,
    weights,
)
from workloads.workload import Workload

# Libraries that spread the gradient of a function of a symmetric matrix over both triangles.
SPREADING = ("jax", "torch", "autograd")
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def diagonal(a: np.ndarray) -> np.ndarray:
    """Return a view of the diagonal that can be written to."""
    view: np.ndarray = np.einsum("ii->i", a)
    return view


def one(matrix: Callable[[int], np.ndarray]) -> Callable[[int], tuple[np.ndarray, ...]]:
    return lambda k: (matrix(k),)


def lower(k: int) -> np.ndarray:
    return np.linalg.cholesky(positive_definite(k))


def system(
    matrix: Callable[[int], np.ndarray], columns: bool
) -> Callable[[int], tuple[np.ndarray, ...]]:
    """Return a matrix, and a right-hand side of one column or of as many as the matrix has."""
    return lambda k: (matrix(k), np.random.default_rng(3).normal(size=(k, k) if columns else k))


@cache
def _fold_weights(k: int) -> np.ndarray:
    return np.tri(k) - 0.5 * np.eye(k)


@dataclass(frozen=True)
class SymmetricWorkload(Workload):
    """A function of a symmetric matrix, whose derivative lies in the lower triangle.

    Attributes
    ----------
    symmetric : int
        The index of the argument that is the matrix.
    """

    symmetric: int = 0

    def implementation(self, library: str, k: int) -> Callable[..., Any] | None:
        """Return what `peers.gradient_function` asks for. A gradient over both triangles is folded
        at the end, where that costs least.
        """
        if library not in SPREADING:
            return None
        name, differentiate = IMPLEMENTATIONS[library]
        gradient = differentiate(self.expression(namespace(name), k), self.variables)

        def folded(*arguments: Any) -> tuple[float, tuple[Any, ...]]:
            value, gradients = gradient(*arguments)
            c = gradients[self.symmetric] + gradients[self.symmetric].T
            c *= _fold_weights(k)
            return value, (*gradients[: self.symmetric], c, *gradients[self.symmetric + 1 :])

        return folded


symmetric_workload = partial(SymmetricWorkload, "matrices")

# --- determinants ---


def _lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the LU factor of `a`, its pivots, and the sign of the determinant."""
    lu, pivots, _ = lapack.dgetrf(a)
    odd = np.count_nonzero(pivots != np.arange(len(a))) + np.count_nonzero(lu.diagonal() < 0)
    return lu, pivots, -1.0 if odd % 2 else 1.0


@cache
def _work(k: int) -> int:
    return int(lapack.dgetri_lwork(k)[0])


def _transposed_inverse(lu: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    inverse: np.ndarray = lapack.dgetri(lu, pivots, lwork=_work(len(lu)), overwrite_lu=True)[0].T
    return inverse


def determinant_by_hand(a: np.ndarray) -> Any:
    lu, pivots, sign = _lu(a)
    value = sign * float(np.abs(lu.diagonal()).prod())
    gradient = _transposed_inverse(lu, pivots)
    gradient *= value
    return value, (gradient,)


def log_determinant_by_hand(a: np.ndarray) -> Any:
    lu, pivots, _ = _lu(a)
    value = float(np.log(np.abs(lu.diagonal())).sum())
    return value, (_transposed_inverse(lu, pivots),)


def _cholesky(a: np.ndarray, clean: bool = True) -> np.ndarray:
    """Return the lower factor in C order, which LAPACK sees as the upper factor of the
    transpose.
    """
    factor: np.ndarray = lapack.dpotrf(a.T, lower=0, clean=clean)[0].T
    return factor


def _fold(c: np.ndarray) -> np.ndarray:
    """Double a lower triangle off the diagonal."""
    c += c
    diagonal(c)[...] *= 0.5
    return c


def log_determinant_spd_by_hand(a: np.ndarray) -> Any:
    factor = _cholesky(a)
    value = 2.0 * float(np.log(factor.diagonal()).sum())
    return value, (_fold(lapack.dpotri(factor.T, overwrite_c=True)[0].T),)


matrix_workload(
    "det", SIZES, matrices(1), lambda xp, k: xp.linalg.det, determinant_by_hand, limits=LIMIT
)
matrix_workload(
    "log_determinant",
    SIZES,
    matrices(1),
    lambda xp, k: xp.log_determinant,
    log_determinant_by_hand,
    limits=LIMIT,
)
symmetric_workload(
    "log_determinant_spd",
    SIZES,
    one(positive_definite),
    lambda xp, k: xp.log_determinant_spd,
    log_determinant_spd_by_hand,
    limits=LIMIT,
)

# --- solves ---


def _columns(x: np.ndarray) -> np.ndarray:
    return x if x.ndim == 2 else x[:, None]


def solve_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w = weights(*b.shape)
    lu, pivots, _ = lapack.dgetrf(a)
    x = lapack.dgetrs(lu, pivots, b)[0]
    z = lapack.dgetrs(lu, pivots, w, trans=1)[0]
    value = np.vdot(w, x)
    return float(value), (_minus_outer(z, x), np.ascontiguousarray(z))


def _minus_outer(z: np.ndarray, x: np.ndarray) -> np.ndarray:
    if z.ndim == 1:
        return np.multiply.outer(-z, x)
    # In C order, this is the transpose of -x z^T in Fortran order.
    product: np.ndarray = blas.dgemm(-1.0, x, z, trans_b=True).T
    return product


def solve_spd_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w = weights(*b.shape)
    factor = _cholesky(a, clean=False).T
    x = lapack.dpotrs(factor, b)[0]
    z = lapack.dpotrs(factor, w)[0]
    value = np.vdot(w, x)
    # This is -(z x^T + x z^T), the upper triangle in Fortran order. Its diagonal is twice the
    # wanted one.
    of_a = blas.dsyr2k(-1.0, _columns(z), _columns(x)).T
    diagonal(of_a)[...] *= 0.5
    return float(value), (of_a, np.ascontiguousarray(z))


def solve_lower_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w = weights(*b.shape)
    if b.ndim == 1:
        x, z = blas.dtrsv(a.T, b, trans=1), blas.dtrsv(a.T, w)
    else:
        x, z = blas.dtrsm(1.0, a.T, b, trans_a=1), blas.dtrsm(1.0, a.T, w)
    value = np.vdot(w, x)
    of_a = _minus_outer(z, x)
    of_a *= triangle(len(a))
    return float(value), (of_a, np.ascontiguousarray(z))


def inverse_by_hand(a: np.ndarray) -> Any:
    w = weights(*a.shape)
    lu, pivots, _ = lapack.dgetrf(a)
    x = _transposed_inverse(lu, pivots)
    value = np.einsum("ij,ji->", w, x)
    gradient = np.matmul(x, w, out=warm("product", *a.shape)) @ x
    np.negative(gradient, out=gradient)
    return float(value), (gradient,)


def _solve(xp: Any, a: Any, b: Any) -> Any:
    return xp.linalg.solve(a, b)


def _solve_spd(xp: Any, a: Any, b: Any) -> Any:
    return xp.mdivide_left_spd(a, b)


def _solve_lower(xp: Any, a: Any, b: Any) -> Any:
    return xp.solve_triangular(a, b, lower=True)


for shape, columns in (("vector", False), ("matrix", True)):
    for add, name, f, matrix, by_hand in (
        (matrix_workload, "solve", _solve, general, solve_by_hand),
        (symmetric_workload, "mdivide_left_spd", _solve_spd, positive_definite, solve_spd_by_hand),
        (matrix_workload, "solve_triangular", _solve_lower, lower, solve_lower_by_hand),
    ):
        sizes, expression = MODERATE if columns else SIZES, weighted(f, 1 + columns)
        add(
            f"{name}, {shape}", sizes, system(matrix, columns), expression, by_hand, 2, limits=LIMIT
        )
matrix_workload(
    "inv",
    MODERATE,
    matrices(1),
    weighted(lambda xp, a: xp.linalg.inv(a)),
    inverse_by_hand,
    limits=LIMIT,
)

# --- decompositions ---


def cholesky_by_hand(a: np.ndarray) -> Any:
    """Differentiate block by block from the end: I. Murray, "Differentiation of the Cholesky
    decomposition", arXiv:1602.07527, 2016.
    """
    w, k = weights(*a.shape), len(a)
    factor = _cholesky(a)
    value = np.vdot(w, factor)
    c = w * triangle(k)
    for end in range(k, 0, -64):
        start = max(0, end - 64)
        block, left = factor[start:end, start:end], factor[start:end, :start]
        if end < k:
            # In Fortran order all matrices are transposed, so we solve from the left instead of
            # from the right.
            below = blas.dtrsm(1.0, block.T, c[end:, start:end].T).T
            c[end:, start:end] = below
            c[end:, :start] -= below @ left
            c[start:end, :end] -= below.T @ factor[end:, :end]
        phi = block.T @ c[start:end, start:end]
        phi *= triangle(end - start)
        diagonal(phi)[...] *= 0.5
        half = blas.dtrsm(1.0, block.T, phi.T, side=1, trans_a=1, overwrite_b=True)
        s = blas.dtrsm(1.0, block.T, half, overwrite_b=True)
        s = s + s.T
        c[start:end, :start] -= s @ left
        diagonal(s)[...] *= 0.5
        c[start:end, start:end] = s * triangle(end - start)
    return float(value), (c,)


def _to_lower(c: np.ndarray) -> np.ndarray:
    """Fold a symmetric matrix onto its lower triangle."""
    c *= triangle(len(c))
    return _fold(c)


def eigenvalues_by_hand(a: np.ndarray) -> Any:
    w = weights(len(a))
    values, v, _ = lapack.dsyevd(a.T, lower=0)
    return float(w.dot(values)), (_to_lower(np.multiply(v, w, out=warm("scaled", *a.shape)) @ v.T),)


def square_root_by_hand(a: np.ndarray) -> Any:
    # Daleckii and Krein: the divided differences of the square root are 1 / (r_i + r_j).
    w = weights(*a.shape)
    values, v, _ = lapack.dsyevd(a.T, lower=0)
    r = np.sqrt(values)
    value = np.vdot(
        w,
        np.matmul(np.multiply(v, r, out=warm("scaled", *a.shape)), v.T, out=warm("root", *a.shape)),
    )
    inside = np.matmul(
        v.T, np.matmul(w, v, out=warm("scaled", *a.shape)), out=warm("root", *a.shape)
    )
    inside /= np.add.outer(r, r)
    gradient = np.matmul(v, inside, out=warm("scaled", *a.shape)) @ v.T
    gradient += gradient.T.copy()
    gradient *= triangle(len(a))
    diagonal(gradient)[...] *= 0.5
    return float(value), (gradient,)


def singular_values_by_hand(a: np.ndarray) -> Any:
    w = weights(len(a))
    # LAPACK sees the transpose, whose left and right singular vectors are exchanged.
    v, s, ut, _ = lapack.dgesdd(a.T, full_matrices=False)
    return float(w.dot(s)), (np.multiply(ut.T, w, out=warm("scaled", *a.shape)) @ v.T,)


def qr_by_hand(a: np.ndarray) -> Any:
    # S. F. Walter and L. Lehmann, arXiv:1001.1654, 2010: (of_q + Q sym(M)) R^-T with M = R of_r^T -
    # of_q^T Q.
    w, shape = weights(*a.shape), a.shape
    q, r = np.linalg.qr(a)
    of_q, of_r = (
        np.multiply(q, w, out=warm("of_q", *shape)),
        np.multiply(r, w, out=warm("of_r", *shape)),
    )
    value = np.vdot(of_q, q) + np.vdot(of_r, r)
    of_q *= 2.0
    of_r *= 2.0
    m = np.matmul(r, of_r.T, out=warm("scaled", *shape))
    m -= np.matmul(of_q.T, q, out=of_r)
    m *= triangle(len(a))
    both = np.add(m, m.T, out=of_r)
    diagonal(both)[...] *= 0.5
    of_q += np.matmul(q, both, out=m)
    # We solve x R^T = y. In Fortran order the memory holds R^T, and the equation is R x^T = y^T.
    gradient: np.ndarray = blas.dtrsm(1.0, r.T, of_q.T, lower=1, trans_a=1).T
    return float(value), (gradient,)


def _cholesky_factor(xp: Any, a: Any) -> Any:
    return xp.linalg.cholesky(a)


def _eigenvalues(xp: Any, a: Any) -> Any:
    return xp.linalg.eigh(a)[0]


def _square_root(xp: Any, a: Any) -> Any:
    values, v = xp.linalg.eigh(a)
    return (v * xp.sqrt(values)) @ v.T


def _singular_values(xp: Any, a: Any) -> Any:
    return xp.linalg.svd(a, full_matrices=False)[1]


def _squares_of_qr(xp: Any, a: Any) -> Any:
    # The squares do not depend on the signs of columns and rows, which libraries choose
    # differently.
    q, r = xp.linalg.qr(a)
    return q * q + r * r


symmetric_workload(
    "cholesky", SIZES, one(positive_definite), weighted(_cholesky_factor), cholesky_by_hand
)
symmetric_workload(
    "eigenvalues_sym",
    MODERATE,
    one(positive_definite),
    weighted(_eigenvalues, 1),
    eigenvalues_by_hand,
)
symmetric_workload(
    "square root by eigh",
    MODERATE,
    one(positive_definite),
    weighted(_square_root),
    square_root_by_hand,
)
matrix_workload(
    "singular_values", MODERATE, matrices(1), weighted(_singular_values, 1), singular_values_by_hand
)
matrix_workload(
    "qr", MODERATE, matrices(1), weighted(_squares_of_qr), qr_by_hand, without=("autograd",)
)

# --- multivariate normal densities ---


def normal_point(matrix: Callable[[int], np.ndarray]) -> Callable[[int], tuple[np.ndarray, ...]]:
    return lambda k: (vector(k, 3), vector(k, 4), matrix(k))


def multi_normal_by_hand(y: np.ndarray, mu: np.ndarray, sigma: np.ndarray) -> Any:
    d = y - mu
    factor, _ = lapack.dpotrf(sigma.T)
    of_mu = lapack.dpotrs(factor, d)[0]
    value = (
        -0.5 * float(d.dot(of_mu))
        - float(np.log(factor.diagonal()).sum())
        - len(d) * HALF_LOG_TWO_PI
    )
    # This is (a a^T - inv(sigma)) / 2, folded onto the lower triangle. The other triangle keeps the
    # zeros of the factor.
    c = lapack.dpotri(factor, overwrite_c=True)[0]
    np.negative(c, out=c)
    of_sigma = blas.dsyr(1.0, of_mu, a=c, overwrite_a=True).T
    diagonal(of_sigma)[...] *= 0.5
    return value, (-of_mu, of_mu, of_sigma)


def multi_normal_cholesky_by_hand(y: np.ndarray, mu: np.ndarray, factor: np.ndarray) -> Any:
    z = blas.dtrsv(factor.T, y - mu, trans=1)
    of_mu = blas.dtrsv(factor.T, z)
    value = (
        -0.5 * float(z.dot(z)) - float(np.log(factor.diagonal()).sum()) - len(z) * HALF_LOG_TWO_PI
    )
    of_factor = np.multiply.outer(of_mu, z)
    of_factor *= triangle(len(z))
    diagonal(of_factor)[...] -= 1.0 / factor.diagonal()
    return value, (-of_mu, of_mu, of_factor)


symmetric_workload(
    "multi_normal_lpdf",
    SIZES,
    normal_point(positive_definite),
    lambda xp, k: xp.multi_normal_lpdf,
    multi_normal_by_hand,
    3,
    limits=LIMIT,
    symmetric=2,
)
matrix_workload(
    "multi_normal_cholesky_lpdf",
    SIZES,
    normal_point(lower),
    lambda xp, k: xp.multi_normal_cholesky_lpdf,
    multi_normal_cholesky_by_hand,
    3,
    limits=LIMIT,
)

# --- Gaussian processes ---


def gp_point(k: int) -> tuple[np.ndarray, float, float]:
    return np.sort(np.random.default_rng(5).uniform(0, 10, k)), 1.3, 0.8


def _squared_distances(x: np.ndarray) -> np.ndarray:
    k = len(x)
    z = np.subtract(x[:, None], x, out=warm("distances", k, k))
    return np.multiply(z, z, out=z)


def covariance_by_hand(x: np.ndarray, sigma: float, length_scale: float) -> Any:
    k = len(x)
    z = _squared_distances(x)
    c = np.multiply(z, -0.5 / length_scale**2, out=warm("covariance", k, k))
    np.exp(c, out=c)
    c *= sigma * sigma
    c *= weights(k, k)
    value = float(np.add.reduce(c, None))
    sums = np.add.reduce(c, 1) + np.add.reduce(c, 0)
    of_x = (c.dot(x) + x.dot(c) - sums * x) / length_scale**2
    return value, (of_x, 2.0 * value / sigma, float(np.vdot(c, z)) / length_scale**3)


def gp_regression_point(k: int) -> tuple[Any, ...]:
    """Return the logarithms of the three parameters, and then the data."""
    x = gp_point(k)[0]
    return 0.2, -0.3, -1.0, x, np.sin(x) + 0.3 * np.random.default_rng(6).normal(size=k)


def gp_regression(xp: Any, k: int) -> Callable[..., Any]:
    """Return the log density of noisy observations of a Gaussian process."""

    def log_density(log_sigma: Any, log_scale: Any, log_noise: Any, x: Any, y: Any) -> Any:
        smooth = xp.gp_exp_quad_cov(x, xp.exp(log_sigma), xp.exp(log_scale))
        c = xp.add_diag(smooth, xp.exp(2.0 * log_noise))
        return xp.multi_normal_lpdf(y, 0.0, c)

    return log_density


def gp_regression_by_hand(
    log_sigma: float, log_scale: float, log_noise: float, x: np.ndarray, y: np.ndarray
) -> Any:
    k, noise = len(x), math.exp(2.0 * log_noise)
    z = _squared_distances(x)
    z *= math.exp(-2.0 * log_scale)
    smooth = np.multiply(z, -0.5, out=warm("smooth", k, k))
    np.exp(smooth, out=smooth)
    smooth *= math.exp(2.0 * log_sigma)
    c = warm("covariance", k, k)
    np.copyto(c, smooth)
    diagonal(c)[...] += noise
    factor, _ = lapack.dpotrf(c.T, overwrite_a=True)
    a = lapack.dpotrs(factor, y)[0]
    value = -0.5 * float(y.dot(a)) - float(np.log(factor.diagonal()).sum()) - k * HALF_LOG_TWO_PI
    # The adjoint of the covariance is (a a^T - C^-1) / 2. Only one triangle of the inverse is
    # computed, and the other is zero.
    inverse = _fold(lapack.dpotri(factor, overwrite_c=True)[0].T)
    scaled = np.multiply(smooth, z, out=z)
    return value, (
        float(a @ smooth @ a) - float(np.vdot(inverse, smooth)),
        0.5 * (float(a @ scaled @ a) - float(np.vdot(inverse, scaled))),
        noise * (float(a.dot(a)) - float(np.trace(inverse))),
    )


matrix_workload(
    "gp_exp_quad_cov",
    SIZES,
    gp_point,
    weighted(lambda xp, x, sigma, scale: xp.gp_exp_quad_cov(x, sigma, scale)),
    covariance_by_hand,
    3,
    limits=LIMIT,
)
matrix_workload(
    "GP regression",
    SIZES,
    gp_regression_point,
    gp_regression,
    gp_regression_by_hand,
    3,
    limits=LIMIT,
    stan=lambda k: (
        "gaussian_process",
        dict(zip("Nxy", (k, *gp_regression_point(k)[-2:]), strict=True)),
    ),
)
