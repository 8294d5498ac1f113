"""Functions of one vector, of 2 to 10^6 elements."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np

from workloads.workload import Workload

SIZES = (2, 8, 64, 1024, 10_000, 100_000, 1_000_000)
# Sizes at which an array of scalar variables is measured too.
SCALARS = (2, 1024)


# --- points and data ---


@cache
def warm(name: str, *shape: int) -> np.ndarray:
    """Return a buffer that is kept for the next call."""
    return np.empty(shape)


@cache
def weights(n: int) -> np.ndarray:
    """Return data that make a scalar of a vector."""
    return np.random.default_rng(7).normal(size=n)


def vector(n: int) -> tuple[np.ndarray, ...]:
    return (np.random.default_rng(1).normal(size=n),)


def weighted_vector(n: int) -> tuple[np.ndarray, ...]:
    return *vector(n), weights(n)


def positive_vector(n: int) -> tuple[np.ndarray, ...]:
    return (np.exp(0.3 * np.random.default_rng(1).normal(size=n)),)


def vector_near_one(n: int) -> tuple[np.ndarray, ...]:
    """Return a vector whose product neither overflows nor underflows."""
    return (np.exp(np.random.default_rng(1).normal(size=n) / math.sqrt(n)),)


def two_vectors(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    return rng.normal(size=n), rng.normal(size=n)


# --- reductions ---


def sum_by_hand(x: np.ndarray) -> Any:
    return float(np.add.reduce(x)), (np.ones(x.size),)


def product_by_hand(x: np.ndarray) -> Any:
    value = float(np.multiply.reduce(x))
    if value == 0.0:
        raise ValueError("a product with a zero has its gradient elsewhere")
    return value, (value / x,)


def mean_by_hand(x: np.ndarray) -> Any:
    return float(np.add.reduce(x)) / x.size, (np.full(x.size, 1.0 / x.size),)


def deviation_by_hand(x: np.ndarray) -> Any:
    gradient = x - np.add.reduce(x) / x.size
    value = math.sqrt(float(gradient.dot(gradient)) / x.size)
    gradient *= 1.0 / (x.size * value)
    return value, (gradient,)


def dot_by_hand(x: np.ndarray, y: np.ndarray) -> Any:
    return float(x.dot(y)), (y.copy(), x.copy())


def dot_self_by_hand(x: np.ndarray) -> Any:
    return float(x.dot(x)), (2.0 * x,)


def cumulative_sum_by_hand(x: np.ndarray, w: np.ndarray) -> Any:
    gradient = np.empty(x.size)
    np.cumsum(w[::-1], out=gradient[::-1])
    return float(w.dot(np.cumsum(x, out=warm("cumulative", x.size)))), (gradient,)


# --- exponentials ---


def logsumexp_by_hand(x: np.ndarray) -> Any:
    largest = x.max()
    gradient = x - largest
    np.exp(gradient, gradient)
    total = np.add.reduce(gradient)
    gradient /= total
    return float(largest + math.log(total)), (gradient,)


def softmax_by_hand(x: np.ndarray, w: np.ndarray) -> Any:
    e = warm("softmax", x.size)
    np.exp(np.subtract(x, x.max(), out=e), out=e)
    e /= np.add.reduce(e)
    value = float(w.dot(e))
    gradient = w - value
    gradient *= e
    return value, (gradient,)


# --- elementwise ---


def square_by_hand(x: np.ndarray) -> Any:
    return float(np.add.reduce(np.multiply(x, x, warm("power", x.size)))), (2.0 * x,)


def cube_by_hand(x: np.ndarray) -> Any:
    """The cube is multiplied out, because NumPy's integer power goes through exponential and
    logarithm.
    """
    gradient = x * x
    value = float(np.add.reduce(np.multiply(gradient, x, warm("power", x.size))))
    gradient *= 3.0
    return value, (gradient,)


def power_by_hand(x: np.ndarray) -> Any:
    """One power serves value and gradient, as for any exponent."""
    gradient = x**1.5
    value = float(np.add.reduce(np.multiply(gradient, x, warm("power", x.size))))
    gradient *= 2.5
    return value, (gradient,)


def six_operations_by_hand(x: np.ndarray) -> Any:
    scaled, bell, gradient = warm("scaled", x.size), warm("bell", x.size), np.empty(x.size)
    np.multiply(x, 0.5, scaled)
    np.subtract(scaled, 0.25, scaled)
    np.square(scaled, bell)
    np.negative(bell, bell)
    np.exp(bell, bell)
    value = float(np.add.reduce(np.log1p(bell, gradient)))
    np.add(bell, 1.0, gradient)
    np.divide(bell, gradient, gradient)
    gradient *= scaled
    np.negative(gradient, gradient)
    return value, (gradient,)


# --- the rows ---


def row(
    name: str,
    point: Any,
    expression: Any,
    by_hand: Any,
    limit: float | None = None,
    variables: int = 1,
) -> Workload:
    """Add a workload at all sizes; `limit` holds for the large ones."""
    limits = {} if limit is None else {100_000: limit}
    return Workload(
        "vectors", name, SIZES, point, expression, by_hand, variables, matvar=SCALARS, limits=limits
    )


def weighted(function: str) -> Any:
    """Return the expression of the inner product of weights, which are data, with a function of a
    vector.
    """

    def expression(xp: Any, n: int) -> Any:
        f = getattr(xp, function)
        return lambda x, w: w @ f(x)

    return expression


row("sum", vector, lambda xp, n: xp.sum, sum_by_hand, 1.2)
row("mean", vector, lambda xp, n: xp.mean, mean_by_hand)
row("std", vector, lambda xp, n: xp.std, deviation_by_hand)
row("prod", vector_near_one, lambda xp, n: xp.prod, product_by_hand)
row("x @ y", two_vectors, lambda xp, n: lambda x, y: x @ y, dot_by_hand, 1.2, variables=2)
row("x @ x", vector, lambda xp, n: lambda x: x @ x, dot_self_by_hand, 1.2)
row("sum(x**2)", vector, lambda xp, n: lambda x: xp.sum(x**2), square_by_hand, 1.4)
row("sum(x**3)", vector, lambda xp, n: lambda x: xp.sum(x**3), cube_by_hand, 1.4)
row("sum(x**2.5)", positive_vector, lambda xp, n: lambda x: xp.sum(x**2.5), power_by_hand, 1.4)
row("cumsum, weighted", weighted_vector, weighted("cumsum"), cumulative_sum_by_hand)
row("logsumexp", vector, lambda xp, n: xp.logsumexp, logsumexp_by_hand, 1.2)
row("softmax, weighted", weighted_vector, weighted("softmax"), softmax_by_hand)
# The steps are multiply, subtract, square, negate, exponential, log1p, and a sum.
row(
    "six operations",
    vector,
    lambda xp, n: lambda x: xp.sum(xp.log1p(xp.exp(-((0.5 * x - 0.25) ** 2)))),
    six_operations_by_hand,
    1.4,
)
