"""The functions that are measured, each with its value and gradient written by hand."""

from __future__ import annotations

import math
from typing import Any

import environment  # noqa: F401 - before NumPy
import numpy as np

import varmat as vm

N = 1_000_000
# Treatment effects and standard errors of the eight schools: Rubin (1981), Journal of Educational Statistics 6, 377-401.
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS_CONSTANT = float(-8.5 * math.log(2 * math.pi) - np.sum(np.log(ERRORS)) - math.log(5.0) - math.log(5.0 * math.pi))
SCHOOLS_POINT = np.array([0.3, 0.2, -0.2, -0.3, 0.1, 0.3, 0.1, -0.2, -0.2, 0.1])


def eight_schools(xp: Any = np, array: Any = np.asarray) -> Any:
    """The non-centred eight-schools log density of ``(theta_trans[8], mu, log tau)`` in the array library `xp`."""
    effects, errors = array(EFFECTS), array(ERRORS)

    def log_density(unknowns: Any) -> Any:
        theta_trans, mu, log_tau = unknowns[:8], unknowns[8], unknowns[9]
        tau = xp.exp(log_tau)
        residual = (effects - (mu + tau * theta_trans)) / errors
        return (
            SCHOOLS_CONSTANT
            - 0.5 * (xp.sum(residual * residual) + xp.sum(theta_trans * theta_trans))
            - 0.5 * (mu / 5.0) ** 2
            - xp.log1p((tau / 5.0) ** 2)
            + log_tau
        )

    return log_density


def eight_schools_by_hand(unknowns: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and gradient of the same density, derived on paper."""
    theta_trans, mu, log_tau = unknowns[:8], float(unknowns[8]), float(unknowns[9])
    tau = math.exp(log_tau)
    residual = (EFFECTS - (mu + tau * theta_trans)) / ERRORS
    ratio = (tau / 5.0) ** 2
    value = (
        SCHOOLS_CONSTANT
        - 0.5 * (residual.dot(residual) + theta_trans.dot(theta_trans))
        - 0.5 * (mu / 5.0) ** 2
        - math.log1p(ratio)
        + log_tau
    )
    score = residual / ERRORS
    gradient = np.empty(10)
    np.subtract(tau * score, theta_trans, gradient[:8])
    gradient[8] = np.add.reduce(score) - mu / 25.0
    gradient[9] = tau * score.dot(theta_trans) - 2.0 * ratio / (1.0 + ratio) + 1.0
    return float(value), gradient


def sum_of_squares(x: Any) -> Any:
    return x @ x


def sum_of_squares_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(x.dot(x)), 2.0 * x


def sum_of_elementwise_squares(x: Any) -> Any:
    return np.sum(x**2)


def sum_of_elementwise_squares_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sum(x**2)), 2.0 * x


def logsumexp(x: Any) -> Any:
    return vm.logsumexp(x)


def logsumexp_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    largest = x.max()
    gradient = x - largest
    np.exp(gradient, gradient)
    total = np.add.reduce(gradient)
    gradient /= total
    return float(largest + math.log(total)), gradient


def six_operations(x: Any) -> Any:
    """Multiply, subtract, square, negate, exp and log1p, then a sum."""
    return np.sum(np.log1p(np.exp(-((0.5 * x - 0.25) ** 2))))


def six_operations_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    scaled = 0.5 * x
    scaled -= 0.25
    bell = np.square(scaled)
    np.negative(bell, bell)
    np.exp(bell, bell)
    gradient = np.log1p(bell)
    value = float(np.add.reduce(gradient))
    np.add(bell, 1.0, gradient)
    np.divide(bell, gradient, gradient)
    gradient *= scaled
    np.negative(gradient, gradient)
    return value, gradient


# Name -> function of an array of length N and its value and gradient by hand.
LARGE = {
    "sum of squares": (sum_of_squares, sum_of_squares_by_hand),
    "sum of x**2": (sum_of_elementwise_squares, sum_of_elementwise_squares_by_hand),
    "logsumexp": (logsumexp, logsumexp_by_hand),
    "chain of six": (six_operations, six_operations_by_hand),
}


def large_point() -> np.ndarray:
    return np.random.default_rng(1).normal(size=N)


def scalar_chain(x: Any, operations: int) -> Any:
    """So many additions and multiplications of scalars, one after the other."""
    for _ in range(operations // 2):
        x = x * 0.999 + 0.001
    return x


def bytes_from_arena(f: Any, x: np.ndarray) -> int:
    """Bytes that one gradient of `f` takes from the arena."""
    with vm.nested() as tape:
        before = tape.arena.bytes_taken
    vm.value_and_grad(f)(x)
    return int(tape.arena.bytes_taken - before)


def entries(f: Any, *args: np.ndarray) -> int:
    """Tape entries that `f` records for variables with these values."""
    with vm.nested() as tape:
        f(*map(vm.var, args))
        return len(tape)
