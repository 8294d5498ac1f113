"""Densities with their value and gradient written by hand in NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import environment  # noqa: F401 - before NumPy
import numpy as np
from matrices_by_hand import warm

import varmat as vm

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
LENGTHS = (8, 1000, 1_000_000)
# Rows and columns of the matrix of a generalised linear model.
GLM_SHAPE = (100_000, 50)


class Row(NamedTuple):
    """A density of data and parameters, the same with its gradient by hand, and a function from a size to data and point."""

    name: str
    density: Callable[..., Any]
    by_hand: Callable[..., Any]
    data: Callable[[Any], tuple[tuple[Any, ...], tuple[Any, ...]]]

    def gradient(self, data: tuple[Any, ...], count: int) -> Any:
        """The function of the parameters that gives value and gradient."""
        return vm.value_and_grad(lambda *parameters: self.density(*data, *parameters), tuple(range(count)))


def generator() -> np.random.Generator:
    return np.random.default_rng(1)


def normal_by_hand(y: Any, mu: float, sigma: float) -> tuple[float, tuple[float, float]]:
    z = y - mu
    z /= sigma
    squares = float(z.dot(z))
    value = -0.5 * squares - y.size * (math.log(sigma) + HALF_LOG_TWO_PI)
    return value, (float(np.add.reduce(z)) / sigma, (squares - y.size) / sigma)


def normal_arrays_by_hand(y: Any, mu: Any, sigma: Any) -> tuple[float, tuple[Any, Any, Any]]:
    z, in_y, in_mu, in_sigma = (warm(name, y.size) for name in ("z", "y", "mu", "sigma"))
    np.subtract(y, mu, z)
    np.divide(z, sigma, z)
    np.log(sigma, in_sigma)
    value = -0.5 * float(z.dot(z)) - float(np.add.reduce(in_sigma)) - y.size * HALF_LOG_TWO_PI
    np.divide(z, sigma, in_mu)
    np.negative(in_mu, in_y)
    np.multiply(z, z, in_sigma)
    np.subtract(in_sigma, 1.0, in_sigma)
    np.divide(in_sigma, sigma, in_sigma)
    return value, (in_y, in_mu, in_sigma)


def lognormal_by_hand(y: Any, mu: float, sigma: float) -> tuple[float, tuple[float, float]]:
    z = np.log(y)
    logs = float(np.add.reduce(z))
    value, gradient = normal_by_hand(z, mu, sigma)
    return value - logs, gradient


def bernoulli_logit_by_hand(n: Any, alpha: Any) -> tuple[float, tuple[Any]]:
    sign = 2.0 * n - 1.0
    t = sign * alpha
    e = np.exp(-np.abs(t))
    value = float(np.add.reduce(np.minimum(t, 0.0)) - np.add.reduce(np.log1p(e)))
    return value, (sign * np.where(t > 0.0, e, 1.0) / (1.0 + e),)


def two_passes(weigh: Callable[..., Any]) -> Callable[..., Any]:
    """A generalised linear model: the linear predictors, and then the product of what `weigh` makes of them."""

    def by_hand(y: Any, x: Any, alpha: float, beta: Any, *others: Any) -> Any:
        t = x @ beta
        t += alpha
        value, w, *rest = weigh(y, t, *others)
        return value, (float(np.add.reduce(w)), w @ x, *rest)

    return by_hand


def weigh_normal(y: Any, t: Any, sigma: float) -> Any:
    z = y - t
    z /= sigma
    squares = float(z.dot(z))
    value = -0.5 * squares - y.size * (math.log(sigma) + HALF_LOG_TWO_PI)
    z /= sigma
    return value, z, (squares - y.size) / sigma


def weigh_bernoulli(y: Any, t: Any) -> Any:
    value, (w,) = bernoulli_logit_by_hand(y, t)
    return value, w


def glm_data(kind: str) -> Callable[[Any], Any]:
    def make(_: Any) -> Any:
        rng, (n, m) = generator(), GLM_SHAPE
        x, beta = rng.normal(size=(n, m)), 0.1 * rng.normal(size=m)
        eta = x @ beta + 0.3
        if kind == "normal":
            return (eta + rng.normal(size=n), x), (0.2, 0.9 * beta, 1.1)
        return ((rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float), x), (0.2, 0.9 * beta)

    return make


DENSITIES = [
    Row("normal of two numbers", vm.normal_lpdf, normal_by_hand, lambda n: ((generator().normal(size=n),), (0.1, 1.2))),
    Row(
        "normal of three arrays", vm.normal_lpdf, normal_arrays_by_hand,
        lambda n: ((), tuple(f(generator().normal(size=n)) for f in (np.copy, np.sin, np.exp))),
    ),
    Row("lognormal", vm.lognormal_lpdf, lognormal_by_hand, lambda n: ((np.exp(generator().normal(size=n)),), (0.1, 1.2))),
    Row(
        "Bernoulli of log odds", vm.bernoulli_logit_lpmf, bernoulli_logit_by_hand,
        lambda n: (((generator().random(n) < 0.5).astype(float),), (generator().normal(size=n),)),
    ),
]  # fmt: skip
GLMS = [
    Row("normal_id_glm", vm.normal_id_glm_lpdf, two_passes(weigh_normal), glm_data("normal")),
    Row("bernoulli_logit_glm", vm.bernoulli_logit_glm_lpmf, two_passes(weigh_bernoulli), glm_data("bernoulli")),
]
