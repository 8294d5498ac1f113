"""Functions of matrices of K x K: elementwise functions, products, powers, quadratic forms.

"By hand" means the fast code of an expert who uses nothing but NumPy and SciPy. Each factorisation
is made once, LAPACK is called on arrays as they lie in memory (the Fortran order of the transpose),
symmetric results are in one triangle, and intermediate results are in buffers that are used again.
The rules are the same for all: the function is evaluated as it is written, and gradients are new
C-contiguous arrays. The gradient of a function of a symmetric matrix is that of varmat, in the
lower triangle.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import environment  # noqa: F401 - one thread, before NumPy is imported
import numpy as np
from peers import IMPLEMENTATIONS, namespace

from workloads.workload import Workload

SIZES = (2, 8, 64, 128, 256, 512)
# The sizes for functions that take more than a few products. At 512 rows the slower libraries need
# seconds.
MODERATE = SIZES[:-1]
# Size from which the limit holds -> the limit, as a multiple of the time by hand.
LIMIT, ELEMENTWISE_LIMIT = {256: 1.2}, {256: 1.4}

# --- points and data, used by the other functions of matrices too ---


@cache
def warm(name: str, *shape: int) -> np.ndarray:
    """Return a buffer that is kept for the next call."""
    return np.empty(shape)


@cache
def weights(*shape: int) -> np.ndarray:
    """Return data that make a scalar of a result."""
    return np.random.default_rng(7).normal(size=shape)


@cache
def symmetric_weights(k: int) -> np.ndarray:
    w = weights(k, k)
    return w + w.T


@cache
def triangle(k: int) -> np.ndarray:
    return np.tri(k)


def general(k: int, seed: int = 1) -> np.ndarray:
    """Return a matrix far from singular, whose determinant neither overflows nor underflows."""
    return np.eye(k) + np.random.default_rng(seed).normal(size=(k, k)) / (4 * math.sqrt(k))


def positive_definite(k: int) -> np.ndarray:
    a = general(k)
    return a @ a.T


def vector(k: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=k)


def matrices(count: int) -> Callable[[int], tuple[np.ndarray, ...]]:
    return lambda k: tuple(general(k, seed) for seed in range(count))


def weighted(
    f: Callable[..., Any], dimensions: int = 2
) -> Callable[[Any, int], Callable[..., Any]]:
    """Return the expression of the weighted sum of ``f(xp, *arguments)``, which is a matrix of K x
    K or a vector of K elements.
    """

    def expression(xp: Any, k: int) -> Callable[..., Any]:
        w = xp.asarray(weights(*(k,) * dimensions).ravel())
        return lambda *arguments: w @ xp.ravel(f(xp, *arguments))

    return expression


matrix_workload = partial(Workload, "matrices")

# --- elementwise ---


def sum_of_sum_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    value = np.add.reduce(np.add(a, b, out=warm("sum", *a.shape)), None)
    of_a, of_b = np.empty_like(a), np.empty_like(b)
    of_a.fill(1.0)
    of_b.fill(1.0)
    return float(value), (of_a, of_b)


def exp_times_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    of_b = np.exp(a)
    of_a = of_b * b
    return float(np.add.reduce(of_a, None)), (of_a, of_b)


def square_by_hand(a: np.ndarray) -> Any:
    value = np.add.reduce(np.square(a, out=warm("square", *a.shape)), None)
    return float(value), (2.0 * a,)


def fourth_power_by_hand(a: np.ndarray) -> Any:
    square = np.square(a, out=warm("square", *a.shape))
    fourth = np.square(square, out=warm("fourth", *a.shape))
    gradient = square * a
    gradient *= 4.0
    return float(np.add.reduce(fourth, None)), (gradient,)


matrix_workload(
    "sum(A + B)",
    SIZES,
    matrices(2),
    lambda xp, k: lambda a, b: xp.sum(a + b),
    sum_of_sum_by_hand,
    2,
    matvar=(2, 64),
    limits=ELEMENTWISE_LIMIT,
)
matrix_workload(
    "sum(exp(A) * B)",
    SIZES,
    matrices(2),
    lambda xp, k: lambda a, b: xp.sum(xp.exp(a) * b),
    exp_times_by_hand,
    2,
    matvar=(2, 64),
    limits=ELEMENTWISE_LIMIT,
)
matrix_workload(
    "sum(A**2)",
    SIZES,
    matrices(1),
    lambda xp, k: lambda a: xp.sum(a**2),
    square_by_hand,
    matvar=(2, 64),
    limits=ELEMENTWISE_LIMIT,
)
matrix_workload(
    "sum(A**4)",
    SIZES,
    matrices(1),
    lambda xp, k: lambda a: xp.sum(a**4),
    fourth_power_by_hand,
    matvar=(2, 64),
    limits=ELEMENTWISE_LIMIT,
)

# --- products ---


def _sums(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of the sum of a product. The adjoint of the product is one everywhere,
    so sums of rows and columns take the place of products.
    """
    of_a, of_b = np.empty_like(a), np.empty_like(b)
    of_a[...] = np.add.reduce(b, 1)
    of_b[...] = np.add.reduce(a, 0)[:, None]
    return of_a, of_b


def sum_of_product_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    value = np.add.reduce(np.matmul(a, b, out=warm("product", *a.shape)), None)
    return float(value), _sums(a, b)


def product_plus_by_hand(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    total = np.matmul(a, b, out=warm("product", *a.shape))
    total += c
    of_c = np.empty_like(c)
    of_c.fill(1.0)
    return float(np.add.reduce(total, None)), (*_sums(a, b), of_c)


def sum_of_squared_product_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    c = np.matmul(a, b, out=warm("product", *a.shape))
    value = np.vdot(c, c)
    c += c
    return float(value), (c @ b.T, a.T @ c)


def sum_of_three_by_hand(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    ab = np.matmul(a, b, out=warm("product", *a.shape))
    value = np.add.reduce(np.matmul(ab, c, out=warm("second", *a.shape)), None)
    row = np.add.reduce(c, 1)
    of_a, of_c = np.empty_like(a), np.empty_like(c)
    of_a[...] = b @ row
    of_c[...] = np.add.reduce(ab, 0)[:, None]
    return float(value), (of_a, np.multiply.outer(np.add.reduce(a, 0), row), of_c)


def times_constant_by_hand(a: np.ndarray, x: np.ndarray) -> Any:
    w = weights(*a.shape)
    value = np.vdot(w, np.matmul(a, x, out=warm("product", *a.shape)))
    return float(value), (w @ x.T,)


def constant_times_by_hand(a: np.ndarray, x: np.ndarray) -> Any:
    w = weights(*a.shape)
    value = np.vdot(w, np.matmul(x, a, out=warm("product", *a.shape)))
    return float(value), (x.T @ w,)


def constant_times_vector_by_hand(v: np.ndarray, x: np.ndarray) -> Any:
    w = weights(len(v))
    return float(w.dot(np.matmul(x, v, out=warm("product", len(v))))), (w.dot(x),)


matrix_workload(
    "sum(A @ B)",
    SIZES,
    matrices(2),
    lambda xp, k: lambda a, b: xp.sum(a @ b),
    sum_of_product_by_hand,
    2,
    matvar=(2, 64),
    limits=LIMIT,
)
matrix_workload(
    "sum(A @ B + C)",
    SIZES,
    matrices(3),
    lambda xp, k: lambda a, b, c: xp.sum(a @ b + c),
    product_plus_by_hand,
    3,
    matvar=(2, 64),
    limits=LIMIT,
)
matrix_workload(
    "sum((A @ B)**2)",
    SIZES,
    matrices(2),
    lambda xp, k: lambda a, b: xp.sum((a @ b) ** 2),
    sum_of_squared_product_by_hand,
    2,
    limits=LIMIT,
)
matrix_workload(
    "sum(A @ B @ C)",
    SIZES,
    matrices(3),
    lambda xp, k: lambda a, b, c: xp.sum(a @ b @ c),
    sum_of_three_by_hand,
    3,
    limits=LIMIT,
)
matrix_workload(
    "A @ X, X constant",
    SIZES,
    matrices(2),
    weighted(lambda xp, a, x: a @ x),
    times_constant_by_hand,
    limits=LIMIT,
)
matrix_workload(
    "X @ A, X constant",
    SIZES,
    matrices(2),
    weighted(lambda xp, a, x: x @ a),
    constant_times_by_hand,
    limits=LIMIT,
)
matrix_workload(
    "X @ v, X constant",
    SIZES,
    lambda k: (vector(k), general(k)),
    weighted(lambda xp, v, x: x @ v, 1),
    constant_times_vector_by_hand,
    limits=LIMIT,
)

# --- quadratic forms ---


def form_of_vector_by_hand(a: np.ndarray, x: np.ndarray) -> Any:
    ax = np.matmul(a, x, out=warm("product", len(x)))
    return float(x.dot(ax)), (np.multiply.outer(x, x), x.dot(a) + ax)


def quadratic_form_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w, shape = weights(*a.shape), a.shape
    ab = np.matmul(a, b, out=warm("product", *shape))
    value = np.vdot(w, np.matmul(b.T, ab, out=warm("form", *shape)))
    bw = np.matmul(b, w, out=warm("second", *shape))
    of_b = ab @ w.T
    of_b += np.matmul(a.T, bw, out=warm("form", *shape))
    return float(value), (bw @ b.T, of_b)


def symmetric_form_by_hand(a: np.ndarray, b: np.ndarray) -> Any:
    w, shape = symmetric_weights(len(a)), a.shape
    ab = np.matmul(a, b, out=warm("product", *shape))
    value = np.vdot(w, np.matmul(b.T, ab, out=warm("form", *shape)))
    of_b = ab @ w
    of_b *= 2.0
    return float(value), (np.matmul(b, w, out=ab) @ b.T, of_b)


def symmetric_form(xp: Any, k: int) -> Callable[..., Any]:
    # The weights are symmetric, so the gradient is symmetric in all libraries.
    w = xp.asarray(symmetric_weights(k).ravel())
    return lambda a, b: w @ xp.ravel(xp.quad_form_sym(a, b))


matrix_workload(
    "x @ A @ x",
    SIZES,
    lambda k: (general(k), vector(k)),
    lambda xp, k: lambda a, x: x @ (a @ x),
    form_of_vector_by_hand,
    2,
    limits=LIMIT,
)
matrix_workload(
    "quad_form",
    SIZES,
    matrices(2),
    weighted(lambda xp, a, b: xp.quad_form(a, b)),
    quadratic_form_by_hand,
    2,
    limits=LIMIT,
)
matrix_workload(
    "quad_form_sym",
    SIZES,
    lambda k: (positive_definite(k), general(k)),
    symmetric_form,
    symmetric_form_by_hand,
    2,
    limits=LIMIT,
)

# --- functions of a matrix as a whole ---


def fifth_power_by_hand(a: np.ndarray) -> Any:
    w, shape = weights(*a.shape), a.shape
    square = np.matmul(a, a, out=warm("square", *shape))
    fourth = np.matmul(square, square, out=warm("fourth", *shape))
    value = np.vdot(w, np.matmul(fourth, a, out=warm("fifth", *shape)))
    of_fourth = np.matmul(w, a.T, out=warm("fifth", *shape))
    gradient = fourth.T @ w
    of_square = np.matmul(of_fourth, square.T, out=fourth)
    of_square += np.matmul(square.T, of_fourth, out=warm("product", *shape))
    gradient += np.matmul(of_square, a.T, out=square)
    gradient += np.matmul(a.T, of_square, out=square)
    return float(value), (gradient,)


matrix_workload(
    "matrix_power(A, 5)",
    MODERATE,
    matrices(1),
    weighted(lambda xp, a: xp.linalg.matrix_power(a, 5)),
    fifth_power_by_hand,
    without=("autograd",),
    limits=LIMIT,
)
matrix_workload(
    "matrix_exp",
    MODERATE,
    matrices(1),
    weighted(lambda xp, a: xp.matrix_exp(a)),
    without=("autograd",),
)

# --- Jacobians ---


@dataclass(frozen=True)
class JacobianWorkload(Workload):
    """The Jacobian of K outputs with respect to the first argument, a vector of K elements, in
    place of a gradient.

    Attributes
    ----------
    outputs : callable
        Takes a namespace and returns the function of the arguments. The value counts as zero,
        because no library returns the value with the Jacobian.
    """

    outputs: Callable[[Any], Callable[..., Any]] = lambda xp: lambda x: x

    def implementation(self, library: str, k: int) -> Callable[..., Any] | None:
        """Return what `peers.gradient_function` asks for: the Jacobian in the way of each library,
        with the data converted once.
        """
        if library not in JACOBIANS:
            return None
        xp = namespace(IMPLEMENTATIONS[library][0])
        data = [xp.asarray(x) for x in self.point(k)[1:]]
        jacobian = JACOBIANS[library](self.outputs(xp))
        return lambda x, *_: (0.0, (jacobian(x, *data),))


def _in_varmat(f: Callable[..., Any]) -> Callable[..., Any]:
    vm = importlib.import_module("varmat")
    return lambda *arguments: vm.jacobian(f, *arguments)


def _in_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    jax = importlib.import_module("jax")
    compiled = jax.jit(jax.jacrev(f))
    return lambda *arguments: np.asarray(compiled(*arguments))


def _in_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    torch = importlib.import_module("torch")
    jacobian = torch.func.jacrev(f)
    return lambda x, *data: jacobian(torch.from_numpy(x), *data).numpy()


def _in_autograd(f: Callable[..., Any]) -> Callable[..., Any]:
    jacobian: Callable[..., Any] = importlib.import_module("autograd").jacobian(f)
    return jacobian


JACOBIANS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "plain": lambda f: f,
    "varmat": _in_varmat,
    "jax": _in_jax,
    "torch": _in_torch,
    "autograd": _in_autograd,
}


def product_jacobian_by_hand(x: np.ndarray, w: np.ndarray) -> Any:
    np.matmul(w, x, out=warm("product", len(x)))
    return 0.0, (w.copy(),)


def layer_jacobian_by_hand(x: np.ndarray, w: np.ndarray) -> Any:
    slope = np.matmul(w, x, out=warm("product", len(x)))
    np.tanh(slope, out=slope)
    np.square(slope, out=slope)
    np.subtract(1.0, slope, out=slope)
    return 0.0, (slope[:, None] * w,)


for name, outputs, by_hand in (
    ("Jacobian of W @ x", lambda xp: lambda x, w: w @ x, product_jacobian_by_hand),
    ("Jacobian of tanh(W @ x)", lambda xp: lambda x, w: xp.tanh(w @ x), layer_jacobian_by_hand),
):
    JacobianWorkload(
        "matrices",
        name,
        MODERATE,
        lambda k: (vector(k), general(k)),
        lambda xp, k, f=outputs: lambda *x: xp.sum(f(xp)(*x)),
        by_hand,
        without=("recorded",),
        outputs=outputs,
    )
