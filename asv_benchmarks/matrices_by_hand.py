"""Functions of matrices that are measured, each with its value and gradient written by hand.

By hand means as an expert would write it who may use nothing but NumPy and SciPy, and who wants it fast: each factorisation made
once, LAPACK called on what lies in memory (the Fortran order of the transpose), symmetric results in one triangle, intermediate
results in warm buffers. The rules of the game: the function is evaluated as it is written, gradients are new C-contiguous
arrays, and that of a function of a symmetric matrix is the one of varmat, in the lower triangle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import models  # first, for it sets one thread before NumPy is imported
import numpy as np
from scipy.linalg import blas, lapack

import varmat as vm


class Workload(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
    function : callable
        The function, written in NumPy and varmat.
    by_hand : callable
        Takes the same arguments and returns ``(value, gradients)``, a tuple of them.
    point : callable
        Size to the arguments.
    variables : int
        How many of the arguments, the first ones, are differentiated with respect to.
    """

    name: str
    function: Callable[..., Any]
    by_hand: Callable[..., tuple[float, tuple[Any, ...]]]
    point: Callable[[int], tuple[Any, ...]]
    variables: int = 1

    @property
    def gradient(self) -> Callable[..., Any]:
        """What varmat makes of it: the gradients are a tuple, unless there is one only."""
        return vm.value_and_grad(self.function, argnums=tuple(range(self.variables)) if self.variables > 1 else 0)

    def check(self, k: int) -> None:
        """Raise `AssertionError` unless both ways give the same value and gradients at size `k`."""
        args = self.point(k)
        (value, gradients), (expected, by_hand) = self.gradient(*args), self.by_hand(*args)
        gradients = gradients if self.variables > 1 else (gradients,)
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10 * k, err_msg=f"{self.name}: value")
        for i, (found, g) in enumerate(zip(gradients, by_hand, strict=True)):
            if np.ndim(g) and not g.flags.c_contiguous:
                raise AssertionError(f"{self.name}: gradient {i} by hand is not C-contiguous")
            largest = float(np.max(np.abs(g)))
            np.testing.assert_allclose(found, g, rtol=1e-9, atol=1e-10 * largest, err_msg=f"{self.name}: gradient {i}")


# --- points and data ---


@cache
def warm(name: str, *shape: int) -> np.ndarray:
    """A buffer that stays."""
    return np.empty(shape)


@cache
def weights(*shape: int) -> np.ndarray:
    """Data that makes a scalar of a result."""
    return np.random.default_rng(7).normal(size=shape)


@cache
def triangle(k: int) -> np.ndarray:
    return np.tri(k)


def general(k: int, seed: int = 1) -> np.ndarray:
    """A matrix far from singular, with a determinant that neither overflows nor underflows."""
    return np.eye(k) + np.random.default_rng(seed).normal(size=(k, k)) / (4 * math.sqrt(k))


def positive_definite(k: int) -> np.ndarray:
    a = general(k)
    return a @ a.T


def lower(k: int) -> np.ndarray:
    return np.linalg.cholesky(positive_definite(k))


def matrices(count: int) -> Callable[[int], tuple[np.ndarray, ...]]:
    return lambda k: tuple(general(k, seed) for seed in range(count))


def system(matrix: Callable[[int], np.ndarray], columns: bool) -> Callable[[int], tuple[np.ndarray, ...]]:
    """A matrix, and a right-hand side of one column or of as many as the matrix has."""
    return lambda k: (matrix(k), np.random.default_rng(3).normal(size=(k, k) if columns else k))


def weighted_sum(r: Any) -> Any:
    w = weights(*r.shape)
    return w @ r if r.ndim == 1 else np.vdot(w, r)


# --- products ---


def sum_of_product(a: Any, b: Any) -> Any:
    return np.sum(a @ b)


def sum_of_product_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    value = np.add.reduce(np.matmul(a, b, out=warm("product", *a.shape)), None)
    # The adjoint of the product is one everywhere: sums of rows and columns instead of products.
    of_a, of_b = np.empty_like(a), np.empty_like(b)
    of_a[...] = np.add.reduce(b, 1)
    of_b[...] = np.add.reduce(a, 0)[:, None]
    return float(value), (of_a, of_b)


def sum_of_squared_product(a: Any, b: Any) -> Any:
    return np.sum((a @ b) ** 2)


def sum_of_squared_product_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    c = np.matmul(a, b, out=warm("product", *a.shape))
    value = np.vdot(c, c)
    c += c
    return float(value), (c @ b.T, a.T @ c)


def sum_of_three(a: Any, b: Any, c: Any) -> Any:
    return np.sum(a @ b @ c)


def sum_of_three_by_hand(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    ab = np.matmul(a, b, out=warm("product", *a.shape))
    value = np.add.reduce(np.matmul(ab, c, out=warm("second", *a.shape)), None)
    row = np.add.reduce(c, 1)
    of_a, of_c = np.empty_like(a), np.empty_like(c)
    of_a[...] = b @ row
    of_c[...] = np.add.reduce(ab, 0)[:, None]
    return float(value), (of_a, np.multiply.outer(np.add.reduce(a, 0), row), of_c)


def quadratic_form(a: Any, b: Any) -> Any:
    return weighted_sum(vm.quad_form(a, b))


def quadratic_form_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w, shape = weights(*a.shape), a.shape
    ab = np.matmul(a, b, out=warm("product", *shape))
    value = np.vdot(w, np.matmul(b.T, ab, out=warm("form", *shape)))
    bw = np.matmul(b, w, out=warm("second", *shape))
    of_b = ab @ w.T
    of_b += np.matmul(a.T, bw, out=warm("form", *shape))
    return float(value), (bw @ b.T, of_b)


def symmetric_form(a: Any, b: Any) -> Any:
    return weighted_sum(vm.quad_form_sym(a, b))


def symmetric_form_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w, shape = weights(*a.shape), a.shape
    ab = np.matmul(a, b, out=warm("product", *shape))
    q = np.matmul(b.T, ab, out=warm("form", *shape))
    value = np.vdot(w, q)
    both = np.add(w, w.T, out=q)
    of_b = ab @ both
    both *= 0.5
    return float(value), (np.matmul(b, both, out=ab) @ b.T, of_b)


# --- determinants ---


def _lu(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The LU factor of `a`, its pivots, and the sign of the determinant."""
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
    """The lower factor in C order: for LAPACK the upper factor of the transpose."""
    factor: np.ndarray = lapack.dpotrf(a.T, lower=0, clean=clean)[0].T
    return factor


def _fold(c: np.ndarray) -> np.ndarray:
    """Double a lower triangle off the diagonal."""
    c += c
    diagonal = np.einsum("ii->i", c)
    diagonal *= 0.5
    return c


def log_determinant_spd_by_hand(a: np.ndarray) -> Any:
    factor = _cholesky(a)
    value = 2.0 * float(np.log(factor.diagonal()).sum())
    return value, (_fold(lapack.dpotri(factor.T, overwrite_c=True)[0].T),)


# --- solves ---


def solve(a: Any, b: Any) -> Any:
    return weighted_sum(np.linalg.solve(a, b))


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
    # In C order: the transpose of -x z^T in Fortran order.
    product: np.ndarray = blas.dgemm(-1.0, x, z, trans_b=True).T
    return product


def solve_spd(a: Any, b: Any) -> Any:
    return weighted_sum(vm.mdivide_left_spd(a, b))


def solve_spd_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w = weights(*b.shape)
    factor = _cholesky(a, clean=False).T
    x = lapack.dpotrs(factor, b)[0]
    z = lapack.dpotrs(factor, w)[0]
    value = np.vdot(w, x)
    # -(z x^T + x z^T), the upper triangle in Fortran order; its diagonal is twice the one wanted.
    of_a = blas.dsyr2k(-1.0, _columns(z), _columns(x)).T
    np.multiply(np.einsum("ii->i", of_a), 0.5, out=np.einsum("ii->i", of_a))
    return float(value), (of_a, np.ascontiguousarray(z))


def solve_lower(a: Any, b: Any) -> Any:
    return weighted_sum(vm.mdivide_left_tri_low(a, b))


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


# --- factorisation ---


def cholesky(a: Any) -> Any:
    return weighted_sum(np.linalg.cholesky(a))


def cholesky_by_hand(a: np.ndarray) -> Any:
    """By blocks, from the end: I. Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527, 2016."""
    w, k = weights(*a.shape), len(a)
    factor = _cholesky(a)
    value = np.vdot(w, factor)
    c = w * triangle(k)
    for end in range(k, 0, -64):
        start = max(0, end - 64)
        block, left = factor[start:end, start:end], factor[start:end, :start]
        if end < k:
            # Seen in Fortran order everything is transposed: solved from the left instead of from the right.
            below = blas.dtrsm(1.0, block.T, c[end:, start:end].T).T
            c[end:, start:end] = below
            c[end:, :start] -= below @ left
            c[start:end, :end] -= below.T @ factor[end:, :end]
        phi = block.T @ c[start:end, start:end]
        phi *= triangle(end - start)
        np.einsum("ii->i", phi)[...] *= 0.5
        half = blas.dtrsm(1.0, block.T, phi.T, side=1, trans_a=1, overwrite_b=True)
        s = blas.dtrsm(1.0, block.T, half, overwrite_b=True)
        s = s + s.T
        c[start:end, :start] -= s @ left
        np.einsum("ii->i", s)[...] *= 0.5
        c[start:end, start:end] = s * triangle(end - start)
    return float(value), (c,)


# --- Gaussian processes ---


def gp_point(k: int) -> tuple[np.ndarray, float, float]:
    return np.sort(np.random.default_rng(5).uniform(0, 10, k)), 1.3, 0.8


def covariance(x: Any, sigma: Any, length_scale: Any) -> Any:
    return weighted_sum(vm.gp_exp_quad_cov(x, sigma, length_scale))


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
    """The logarithms of the three parameters, then the data."""
    x = gp_point(k)[0]
    return 0.2, -0.3, -1.0, x, np.sin(x) + 0.3 * np.random.default_rng(6).normal(size=k)


def gp_regression(log_sigma: Any, log_scale: Any, log_noise: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """The log density of noisy observations of a Gaussian process."""
    c = vm.add_diag(vm.gp_exp_quad_cov(x, np.exp(log_sigma), np.exp(log_scale)), np.exp(2.0 * log_noise))
    return vm.multi_normal_lpdf(y, 0.0, c)


def gp_regression_by_hand(log_sigma: float, log_scale: float, log_noise: float, x: np.ndarray, y: np.ndarray) -> Any:
    k, noise = len(x), math.exp(2.0 * log_noise)
    z = _squared_distances(x)
    z *= math.exp(-2.0 * log_scale)
    smooth = np.multiply(z, -0.5, out=warm("smooth", k, k))
    np.exp(smooth, out=smooth)
    smooth *= math.exp(2.0 * log_sigma)
    c = warm("covariance", k, k)
    np.copyto(c, smooth)
    np.einsum("ii->i", c)[...] += noise
    factor, _ = lapack.dpotrf(c.T, overwrite_a=True)
    a = lapack.dpotrs(factor, y)[0]
    value = -0.5 * float(y.dot(a)) - float(np.log(factor.diagonal()).sum()) - 0.5 * k * math.log(2.0 * math.pi)
    # The adjoint of the covariance is (a a^T - C^-1) / 2; of the inverse one triangle is there, the other is zero.
    inverse = _fold(lapack.dpotri(factor, overwrite_c=True)[0].T)
    scaled = np.multiply(smooth, z, out=z)
    return value, (
        float(a @ smooth @ a) - float(np.vdot(inverse, smooth)),
        0.5 * (float(a @ scaled @ a) - float(np.vdot(inverse, scaled))),
        noise * (float(a.dot(a)) - float(np.trace(inverse))),
    )


# --- vectors ---


def vector(n: int) -> tuple[np.ndarray, ...]:
    return (np.random.default_rng(1).normal(size=n),)


def softmax(x: Any) -> Any:
    return weights(x.size) @ vm.softmax(x)


def softmax_by_hand(x: np.ndarray) -> Any:
    w, e = weights(x.size), warm("softmax", x.size)
    np.exp(np.subtract(x, x.max(), out=e), out=e)
    e /= np.add.reduce(e)
    value = float(w.dot(e))
    gradient = w - value
    gradient *= e
    return value, (gradient,)


def logsumexp_by_hand(x: np.ndarray) -> Any:
    value, gradient = models.logsumexp_by_hand(x)
    return value, (gradient,)


# --- the rows ---

SIZES = (2, 8, 64, 256, 512)
MATRICES = (
    Workload("sum(A @ B)", sum_of_product, sum_of_product_by_hand, matrices(2), 2),
    Workload("sum((A @ B)**2)", sum_of_squared_product, sum_of_squared_product_by_hand, matrices(2), 2),
    Workload("sum(A @ B @ C)", sum_of_three, sum_of_three_by_hand, matrices(3), 3),
    Workload("det", np.linalg.det, determinant_by_hand, matrices(1)),
    Workload("log_determinant", vm.log_determinant, log_determinant_by_hand, matrices(1)),
    Workload("log_determinant_spd", vm.log_determinant_spd, log_determinant_spd_by_hand, lambda k: (positive_definite(k),)),
    Workload("solve, vector", solve, solve_by_hand, system(general, columns=False), 2),
    Workload("solve, matrix", solve, solve_by_hand, system(general, columns=True), 2),
    Workload("mdivide_left_spd, vector", solve_spd, solve_spd_by_hand, system(positive_definite, columns=False), 2),
    Workload("mdivide_left_spd, matrix", solve_spd, solve_spd_by_hand, system(positive_definite, columns=True), 2),
    Workload("mdivide_left_tri_low, vector", solve_lower, solve_lower_by_hand, system(lower, columns=False), 2),
    Workload("mdivide_left_tri_low, matrix", solve_lower, solve_lower_by_hand, system(lower, columns=True), 2),
    Workload("cholesky", cholesky, cholesky_by_hand, lambda k: (positive_definite(k),)),
    Workload("gp_exp_quad_cov", covariance, covariance_by_hand, gp_point, 3),
    Workload("GP regression, log density", gp_regression, gp_regression_by_hand, gp_regression_point, 3),
)
if hasattr(vm, "quad_form"):
    MATRICES += (
        Workload("quad_form", quadratic_form, quadratic_form_by_hand, matrices(2), 2),
        Workload("quad_form_sym", symmetric_form, symmetric_form_by_hand, lambda k: (positive_definite(k), general(k)), 2),
    )

LENGTHS = (100, 10_000, 100_000, 1_000_000)
VECTORS = (
    Workload("softmax", softmax, softmax_by_hand, vector),
    Workload("log_sum_exp", vm.log_sum_exp, logsumexp_by_hand, vector),
)
