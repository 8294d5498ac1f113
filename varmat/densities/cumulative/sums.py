"""Cumulative functions that are sums of masses: beta-binomial, Poisson binomial."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable
from varmat.densities.beta_counts import beta_binomial_lpmf
from varmat.densities.density import not_nan, positional, typed
from varmat.densities.poisson_binomial import poisson_binomial_lpmf
from varmat.densities.sources import indented, references
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.special.logistic_functions import log1m_exp

if TYPE_CHECKING:
    from varmat.typing import Function, Operand, Plain, Result

__all__ = [
    "beta_binomial_cdf", "beta_binomial_lccdf", "beta_binomial_lcdf", "poisson_binomial_cdf",
     "poisson_binomial_lccdf",
    "poisson_binomial_lcdf",
]  # fmt: skip

LOG_HALF = math.log(0.5)


# The logarithm of the sum of masses up to an observation, or of those above it. The docstring is
# that of all instances, but for some words.
class LogSum:
    """{words}, {title}; {over} over all observations.

    Parameters
    ----------
    {lines}

    Returns
    -------
    float or Var
        0 or 1 (-inf or 0 of the logarithms) where no number of successes is below or above the
        observation. ``pointwise`` of the logarithms is that of each observation.

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
    def __init__(self, name: str, mass: Operand, upper: bool, log_masses: Function) -> None:
        self.__name__ = self.__qualname__ = self.name = name
        self.arguments, self.mass = mass.arguments, mass
        self._upper, self._log_masses = upper, log_masses
        self.__signature__ = inspect.Signature(positional(mass.arguments))

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<varmat cumulative distribution function {self.name}{self.__signature__}>"

    @typed
    def __call__(self, *args: Operand, **named: Operand) -> Result:
        total = np.sum(self.pointwise(*args, **named))
        return float(total) if isinstance(total, np.floating) else total

    def pointwise(self, *args: Operand, **named: Operand) -> Result:
        """The logarithm at each element, instead of their sum."""
        n, *rest = self.__signature__.bind(*args, **named).args
        title, _ = next(iter(self.arguments.values()))
        if is_differentiable(n):
            raise TypeError(
                f"{self.name}: {title} is a variable, but has no derivative: it is discrete!"
            )
        not_nan.check(self.name, title, np.asarray(n, np.float64))
        try:
            return self._elements(np.asarray(n, np.float64), rest)
        except (DomainError, ShapeError, TypeError) as error:
            raise type(error)(str(error).replace(self.mass.name, self.name, 1)) from None

    def _elements(self, n: Operand, rest: list[Plain]) -> Result:
        # The last argument of the Poisson binomial mass has a vector for each observation.
        shapes = [np.shape(x) for x in rest]
        if self.mass is poisson_binomial_lpmf:
            self.mass(0.0, *rest)
            shapes = [shapes[0][:-1]]
        try:
            shape = np.broadcast_shapes(n.shape, *shapes)
        except ValueError:
            raise ShapeError(
                f"{self.mass.name}: the arguments have shapes {[n.shape, *shapes]}, but must "
                "broadcast!"
            ) from None
        if self.mass is not poisson_binomial_lpmf:
            self.mass(np.zeros(n.shape), *rest)
        full = [
            np.broadcast_to(x, shape + np.shape(x)[len(s) :]) if np.shape(x) else x
            for x, s in zip(rest, shapes, strict=True)
        ]
        counts = np.broadcast_to(n, shape)
        made = [
            self._element(float(counts[i]),
             [x[i] if np.shape(x) else x for x in full]) for i in np.ndindex(*shape)
        ]  # fmt: skip
        return (
            np.reshape(np.stack(made), shape)
            if shape and made
            else np.zeros(shape)
            if shape
            else made[0]
        )

    def _element(self, n: float, rest: list[Plain]) -> Result:
        top = np.shape(rest[0])[-1] if self.mass is poisson_binomial_lpmf else int(rest[0])
        if n < 0 or n >= top:
            # Add zero, which is a variable if an argument is one.
            nothing = sum(0.0 * np.sum(x) for x in rest if is_differentiable(x))
            return (-math.inf if (n < 0) != self._upper else 0.0) + nothing
        logs, split = self._log_masses(np.arange(top + 1), *rest), math.floor(n) + 1
        here, other = (logs[split:], logs[:split]) if self._upper else (logs[:split], logs[split:])
        log, log_other = logsumexp(here), logsumexp(other)
        # A probability next to one is one minus the other. The branch not taken must stay finite.
        return np.where(log < LOG_HALF, log, log1m_exp(np.minimum(log_other, -0.5)))


class ProbabilityProduct(LogSum):
    """The probability itself, multiplied over the observations."""

    @typed
    def __call__(self, *args: Any, **named: Any) -> Any:
        log = super().__call__(*args, **named)
        return math.exp(log) if type(log) is float else np.exp(log)


def _cumulative_functions(
    mass: Operand, log_masses: Function, title: str, lines: str, call: str
) -> tuple[LogSum, LogSum, LogSum]:
    family = mass.name.removesuffix("_lpmf")
    found = []
    for suffix, kind, words in (
        ("cdf", ProbabilityProduct, "Probability up to an observation"),
        ("lcdf", LogSum, "Log probability up to an observation"),
        ("lccdf", LogSum, "Log probability above an observation"),
    ):
        made = kind(f"{family}_{suffix}", mass, suffix == "lccdf", log_masses)
        made.__module__ = __name__
        made.__doc__ = indented(LogSum).format(
            words=words,
            title=title,
            over="multiplied" if kind is ProbabilityProduct else "summed",
            lines=lines,
            mass=mass.name,
            references=references(made.name).lstrip(),
            name=made.name,
            call=call,
            value="0.5" if suffix == "cdf" else "-0.693147",
        )
        found.append(made)
    mass.lcdf, mass.lccdf = found[1:]
    return found[0], found[1], found[2]


beta_binomial_cdf, beta_binomial_lcdf, beta_binomial_lccdf = _cumulative_functions(
    beta_binomial_lpmf,
    beta_binomial_lpmf.pointwise,
    "beta-binomial distribution",
    "n : array_like of int\n        Successes.\n    N : array_like of int\n        Trials.\n"
    "    alpha, beta : array_like\n        Prior sample sizes, positive.",
    "3, 2.0, 2.0",
)
poisson_binomial_cdf, poisson_binomial_lcdf, poisson_binomial_lccdf = _cumulative_functions(
    poisson_binomial_lpmf,
    lambda ks, theta: np.stack([poisson_binomial_lpmf(int(k), theta) for k in ks]),
    "Poisson binomial distribution",
    "y : array_like of int\n        Successes.\n    theta : array_like, shape (..., K)\n       "
    " Probabilities of the trials.",
    "[0.5, 0.5, 0.5]",
)
