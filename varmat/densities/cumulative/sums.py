"""Cumulative functions that are sums of masses: beta-binomial, beta negative binomial, Poisson
binomial.
"""

from __future__ import annotations

import inspect
import math
from functools import cache
from typing import Any

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.beta_counts import beta_binomial_lpmf, beta_neg_binomial_lpmf
from varmat.densities.density import not_nan, positional, typed
from varmat.densities.poisson_binomial import poisson_binomial_lpmf
from varmat.densities.sources import references
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.docstrings import indented
from varmat.functions.special.gamma_functions import lbeta
from varmat.functions.special.logistic_functions import log1m_exp
from varmat.typing import Function, Operand, Plain, Result

__all__ = [
    "beta_binomial_cdf", "beta_binomial_lccdf", "beta_binomial_lcdf", "beta_neg_binomial_cdf",
    "beta_neg_binomial_lccdf", "beta_neg_binomial_lcdf", "poisson_binomial_cdf",
    "poisson_binomial_lccdf", "poisson_binomial_lcdf",
]  # fmt: skip

LOG_HALF = math.log(0.5)


# The logarithm of the sum of masses up to an observation, or of those above it. The docstring is
# that of all instances, but for some words. `sides` gives the logarithms of both sums, `top` the
# largest number of successes; `axes` says how many of the last axes of a parameter belong to one
# observation.
class LogSum:
    """{words}, {title}; {over} over all observations.

    Parameters
    ----------
    {lines}

    Returns
    -------
    float or Var
        0 or 1 (-inf or 0 of the logarithms) where no number of successes is below or above the
        observation. ``pointwise`` of the logarithms has one for each observation.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the arguments do not broadcast.

    Notes
    -----
    For each observation the masses of all numbers of successes on its side are added up on the
    logarithmic scale. See `{mass}`.

    References
    ----------
    {references}

    Examples
    --------
    >>> import varmat as vm
    >>> round(vm.{name}(1, {call}), 6)
    {value}
    """

    # `arguments` has the title and the domain of each argument, the same as for the mass.
    def __init__(
        self, name: str, mass: Operand, upper: bool, sides: Function, top: Function, axes: int
    ) -> None:
        self.__name__ = self.__qualname__ = self.name = name
        self.arguments, self.mass = mass.arguments, mass
        self._upper, self._sides, self._top, self._axes = upper, sides, top, axes
        self.__signature__ = inspect.Signature(positional(mass.arguments))

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<varmat cumulative distribution function {self.name}{self.__signature__}>"

    @typed
    def __call__(self, *args: Operand, **kwargs: Operand) -> Result:
        total = np.sum(self.pointwise(*args, **kwargs))
        return float(total) if isinstance(total, np.floating) else total

    def pointwise(self, *args: Operand, **kwargs: Operand) -> Result:
        """Compute the logarithm at each element, instead of their sum."""
        n, *others = self.__signature__.bind(*args, **kwargs).args
        title, _ = next(iter(self.arguments.values()))
        if is_differentiable(n):
            raise TypeError(
                f"{self.name}: {title} is a variable, but has no derivative: it is discrete!"
            )
        not_nan.check(self.name, title, np.asarray(n, np.float64))
        try:
            return self._elements(np.asarray(n, np.float64), others)
        except (DomainError, ShapeError, TypeError) as error:
            raise type(error)(str(error).replace(self.mass.name, self.name, 1)) from None

    def _elements(self, n: Operand, others: list[Plain]) -> Result:
        shapes = [np.shape(x)[: max(np.ndim(x) - self._axes, 0)] for x in others]
        try:
            shape = np.broadcast_shapes(n.shape, *shapes)
        except ValueError:
            raise ShapeError(
                f"{self.mass.name}: the arguments have shapes {[n.shape, *shapes]}, but must "
                "broadcast!"
            ) from None
        self.mass(np.zeros(n.shape), *others)  # checks their domains
        full = [
            np.broadcast_to(x, shape + np.shape(x)[len(s) :]) if np.shape(x) else x
            for x, s in zip(others, shapes, strict=True)
        ]
        counts = np.broadcast_to(n, shape)
        result = [
            self._element(float(counts[i]), [x[i] if np.shape(x) else x for x in full])
            for i in np.ndindex(*shape)
        ]
        if not shape:
            return result[0]
        return np.reshape(np.stack(result), shape) if result else np.zeros(shape)

    def _element(self, n: float, others: list[Plain]) -> Result:
        if n < 0 or n >= self._top(others[0]):
            # Add zero, which is a variable if an argument is one.
            nothing = sum(0.0 * np.sum(x) for x in others if is_differentiable(x))
            return (-math.inf if (n < 0) != self._upper else 0.0) + nothing
        lower, upper = self._sides(math.floor(n), *others)
        # The larger of the two is one minus the other. The branch not taken must stay finite.
        if self._upper:
            return np.where(lower < LOG_HALF, log1m_exp(np.minimum(lower, -0.5)), upper)
        return np.where(lower < LOG_HALF, lower, log1m_exp(np.minimum(upper, -0.5)))


def _trials(n: int, trials: Plain, *shapes: Operand) -> tuple[Operand, Operand]:
    logs = beta_binomial_lpmf.pointwise(np.arange(int(trials) + 1), trials, *shapes)
    return logsumexp(logs[: n + 1]), logsumexp(logs[n + 1 :])


def _probabilities(y: int, theta: Operand) -> tuple[Operand, Operand]:
    logs = np.stack([poisson_binomial_lpmf(k, theta) for k in range(np.shape(theta)[-1] + 1)])
    return logsumexp(logs[: y + 1]), logsumexp(logs[y + 1 :])


# Masses that are added up one by one before a tail is integrated: where they still matter then, the
# next ones are at least 0.9 of those before, so that ten differences correct the integral.
_HEAD, _DIFFERENCES = 430, 10


@cache
def _tail_weights() -> tuple[Plain, Plain, Plain]:
    """Compute the weights of the first masses of a tail, and nodes and weights of its integral.

    The sum of a smooth function over 0, 1, 2, ... is its integral and Gregory's multiples of its
    differences at 0, whose generating function is 1 / log(1 + z) - 1 / z. The integral is computed
    by the double exponential rule on a half line (Takahasi and Mori, Publ. RIMS 9, 721, 1974).
    """
    series = (-1.0) ** np.arange(_DIFFERENCES + 2) / np.arange(1, _DIFFERENCES + 3)
    inverse = [1.0]
    for k in range(1, _DIFFERENCES + 2):
        inverse.append(-float(series[1 : k + 1] @ inverse[::-1]))
    weights = np.zeros(_DIFFERENCES + 1)
    for j, c in enumerate(inverse[1:]):
        weights[: j + 1] += [c * (-1) ** (j - i) * math.comb(j, i) for i in range(j + 1)]
    t = np.arange(-3.7, 6.7, 1 / 16)
    nodes = np.exp(np.pi / 2 * np.sinh(t))
    return weights, nodes, np.pi / 32 * np.cosh(t) * nodes


def _failures(n: int, r: Operand, alpha: Operand, beta: Operand) -> tuple[Operand, Operand]:
    weights, nodes, integral = _tail_weights()
    start = n + _HEAD
    head = np.arange(start + len(weights))
    logs = beta_neg_binomial_lpmf.pointwise(head, r, alpha, beta)
    x = start + start * nodes
    tail = lbeta(alpha + r, beta + x) - lbeta(alpha, beta) - lbeta(x + 1.0, r) - np.log(x + r)
    w = np.concatenate([np.ones(_HEAD - 1), weights, start * integral])
    return logsumexp(logs[: n + 1]), logsumexp(np.concatenate([logs[n + 1 :], tail]), b=w)


class ProbabilityProduct(LogSum):
    """The probability itself, multiplied over the observations."""

    @typed
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        log = super().__call__(*args, **kwargs)
        return math.exp(log) if type(log) is float else np.exp(log)


def _cumulative_functions(
    mass: Operand, sides: Function, top: Function, title: str, lines: str, call: str, axes: int = 0
) -> tuple[LogSum, LogSum, LogSum]:
    family = mass.name.removesuffix("_lpmf")
    functions = []
    for suffix, kind, words in (
        ("cdf", ProbabilityProduct, "Compute the probability up to an observation"),
        ("lcdf", LogSum, "Compute the log probability up to an observation"),
        ("lccdf", LogSum, "Compute the log probability above an observation"),
    ):
        result = kind(f"{family}_{suffix}", mass, suffix == "lccdf", sides, top, axes)
        result.__module__ = __name__
        result.__doc__ = indented(LogSum).format(
            words=words,
            title=title,
            over="multiplied" if kind is ProbabilityProduct else "summed",
            lines=lines,
            mass=mass.name,
            references=references(result.name).lstrip(),
            name=result.name,
            call=call,
            value="0.5" if suffix == "cdf" else "-0.693147",
        )
        functions.append(result)
    mass.lcdf, mass.lccdf = functions[1:]
    return functions[0], functions[1], functions[2]


beta_binomial_cdf, beta_binomial_lcdf, beta_binomial_lccdf = _cumulative_functions(
    beta_binomial_lpmf,
    _trials,
    int,
    "beta-binomial distribution",
    "n : array_like of int\n        Successes.\n    N : array_like of int\n        Trials.\n"
    "    alpha, beta : array_like\n        Prior sample sizes, positive.",
    "3, 2.0, 2.0",
)
beta_neg_binomial_cdf, beta_neg_binomial_lcdf, beta_neg_binomial_lccdf = _cumulative_functions(
    beta_neg_binomial_lpmf,
    _failures,
    lambda r: math.inf,
    "beta negative binomial distribution",
    "n : array_like of int\n        Failures.\n    r : array_like\n        Successes, positive.\n"
    "    alpha, beta : array_like\n        Shapes of the beta distribution, positive.",
    "1.0, 1.0, 2.0",
)
poisson_binomial_cdf, poisson_binomial_lcdf, poisson_binomial_lccdf = _cumulative_functions(
    poisson_binomial_lpmf,
    _probabilities,
    lambda theta: np.shape(theta)[-1],
    "Poisson binomial distribution",
    "y : array_like of int\n        Successes.\n    theta : array_like, shape (..., K)\n       "
    " Probabilities of the trials.",
    "[0.5, 0.5, 0.5]",
    axes=1,
)
