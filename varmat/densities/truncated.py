"""Truncation: a density restricted to an interval, divided by the probability of that interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.densities.density import typed
from varmat.densities.univariate import Univariate
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.checks import check_values
from varmat.functions.special.logistic_functions import log_diff_exp
from varmat.functions.special.quadrature import gauss
from varmat.typing import Operand, Plain, Result

__all__ = ["truncated"]


class TruncatedDensity:
    """A density restricted to an interval; made by `truncated`.

    Attributes
    ----------
    density : Univariate
    lower, upper : float, array, variable or None
    """

    def __init__(self, density: Univariate, lower: Operand, upper: Operand) -> None:
        self.density, self.lower, self.upper = density, lower, upper
        self.__name__ = self.__qualname__ = f"truncated({density.name})"
        self.__signature__ = density.__signature__.replace(parameters=density.parameters)

    def __repr__(self) -> str:
        bounds = [
            f"{name}={x!r}"
            for name, x in (("lower", self.lower), ("upper", self.upper))
            if x is not None
        ]
        return f"varmat.truncated({', '.join([self.density.name, *bounds])})"

    @typed
    def __call__(self, *args: Operand, **kwargs: Operand) -> Result:
        if kwargs:
            args = self.__signature__.bind(*args, **kwargs).args
        y, *parameters = args
        total = self.density(*args)
        bounds = [x for x in (self.lower, self.upper) if x is not None]
        if any(map(is_differentiable, (y, *bounds))):
            total = total + np.sum(np.where(self.outside(y), -math.inf, 0.0))
        elif np.any(self.outside(y)):
            return -math.inf
        own = np.broadcast_shapes(*map(np.shape, args))
        shape = np.broadcast_shapes(own, *map(np.shape, bounds))
        if shape != own:  # several ends for one observation
            total = total * (math.prod(shape) / max(1, math.prod(own)))
        log = self.log_probability(*parameters)
        # A probability that several observations share is computed once.
        result = total - np.sum(log) * (math.prod(shape) / max(1, math.prod(np.shape(log))))
        return float(result) if isinstance(result, np.floating) else result

    def outside(self, y: Operand) -> Result:
        outside: Result = False
        if self.lower is not None:
            outside = np.less(y, self.lower)
        if self.upper is not None:
            outside = np.logical_or(outside, np.greater(y, self.upper))
        return outside

    def log_probability(self, *parameters: Operand) -> Result:
        """Compute the log probability of the interval for each element of bounds and parameters."""
        below, above = self.density.lcdf.pointwise, self.density.lccdf.pointwise
        lower, upper = self.lower, self.upper
        is_discrete = next(iter(self.density.arguments)) in self.density.discrete
        counts, first = math.inf, lower
        if is_discrete and lower is not None:
            first = np.ceil(lower)  # the lower bound belongs to the interval
            lower = first - 1.0
            if upper is not None:
                counts = np.max(np.subtract(upper, lower), initial=0.0)
                if counts <= _FEW:
                    return self._summed(first, upper, parameters)
        if lower is None:
            return below(upper, *parameters)
        if upper is None:
            return above(lower, *parameters)
        # Subtract the probabilities up to the ends, or those above them, whichever are smaller and
        # so have more digits.
        pairs = [
            f(x, *parameters)
            for f, x in ((below, upper), (below, lower), (above, lower), (above, upper))
        ]
        left = pairs[0] < pairs[2]
        more, less = np.where(left, pairs[0], pairs[2]), np.where(left, pairs[1], pairs[3])
        empty = check_values(np.isneginf, more)
        if not np.any(empty):
            return self._difference(more, less, first, counts, lower, upper, parameters)
        # An interval without probability has no derivative, and the difference would have nan.
        moved = np.where(empty, 0.0, more), np.where(empty, -1.0, less)
        result = self._difference(*moved, first, counts, lower, upper, parameters)
        return np.where(empty, -math.inf, result)

    def _difference(
        self,
        more: Operand,
        less: Operand,
        first: Plain,
        counts: float,
        lower: Operand,
        upper: Operand,
        parameters: Sequence[Operand],
    ) -> Result:
        """Compute the log of the difference of two probabilities, or the sum or integral between
        the ends where the difference has lost digits.
        """
        is_discrete = next(iter(self.density.arguments)) in self.density.discrete
        with np.errstate(invalid="ignore"):
            near = check_values(_are_near, more, less)
        is_integrable = getattr(self.density, "is_integrable", True)
        if not np.any(near) or (counts > _MANY if is_discrete else not is_integrable):
            return log_diff_exp(more, less)
        if is_discrete:
            return self._summed(first, upper, parameters)
        values = (lower, upper, *parameters)
        narrow = check_values(self._is_narrow, more, less, *values)
        if np.all(narrow):
            return self._integrated(10, *values)
        # Where the integral is taken, the ends are moved apart: the derivatives of the difference
        # may be infinite there.
        result: Operand = log_diff_exp(more, np.where(narrow, more - 1.0, less))
        if np.any(narrow):
            integrals = self._integrated(10, *_at(narrow, values))
            indices = np.maximum(np.cumsum(narrow).reshape(narrow.shape) - 1, 0)
            result = np.where(narrow, integrals[indices], result)
        return result

    def _summed(self, first: Plain, upper: Plain, parameters: Sequence[Operand]) -> Result:
        """Compute the log probability of a few counts."""
        axes = len(np.broadcast_shapes(*map(np.shape, (first, upper, *parameters))))
        most = int(np.max(np.subtract(upper, first), initial=0.0))
        n = first + np.reshape(np.arange(1.0 + most), (-1, *(1,) * axes))
        logs = np.where(n <= upper, self.density.pointwise(n, *parameters), -math.inf)
        return logsumexp(logs, axis=0)

    def _is_narrow(
        self, more: Plain, less: Plain, lower: Plain, upper: Plain, *parameters: Plain
    ) -> Plain:
        """Tell where the integral of the density over the interval has more digits than the
        difference.

        Rules of 5 and of 10 nodes differ where the density has a kink or a pole."""
        narrow = np.array(_are_near(more, less))
        more, less, *values = _at(narrow, (more, less, lower, upper, *parameters))
        with np.errstate(all="ignore"):
            difference = np.abs(self._integrated(10, *values) - self._integrated(5, *values))
            narrow[narrow] = difference < EPSILON * (1.0 - more) / (more - less)
        return narrow

    def _integrated(self, count: int, lower: Operand, upper: Operand, *values: Operand) -> Result:
        """Compute the log probability of an interval by a rule of Gauss and Legendre."""
        width = np.subtract(upper, lower)
        shape = np.broadcast_shapes(np.shape(width), *map(np.shape, values))
        nodes, weights = (np.reshape(x, (-1, *(1,) * len(shape))) for x in gauss(count))
        logs = self.density.pointwise(lower + width * nodes, *values)
        return logsumexp(logs + np.log(weights), axis=0) + np.log(width)


def _are_near(more: Operand, less: Operand) -> Result:
    """Tell whether the difference of two probabilities has lost two digits."""
    return more - less < 0.01


def _at(mask: Plain, values: Sequence[Operand]) -> list[Operand]:
    """Select the elements for which a mask holds, of values that broadcast to its shape."""
    return [np.broadcast_to(x, mask.shape)[mask] for x in values]


# Sum at most this many counts always, and where the difference of tails has lost digits.
_FEW, _MANY = 64, 4096
EPSILON = float(np.finfo(float).eps)


def truncated(
    density: Operand, *, lower: Operand = None, upper: Operand = None
) -> TruncatedDensity:
    """Restrict a density or mass to an interval.

    Parameters
    ----------
    density : function
        A density or mass of one variable that has cumulative functions, such as `normal_lpdf`.
    lower, upper : array_like, optional
        The ends of the interval, which belong to it. They broadcast with the arguments of the
        density, and may be variables unless the density is one of integers.

    Returns
    -------
    callable
        A function of the arguments of the density: the log density less the logarithm of the
        probability of the interval, summed over all elements; -inf if an observation is outside the
        interval. Its derivatives are exact, with respect to the ends too.

    Raises
    ------
    TypeError
        If the density has no cumulative functions, or neither end is given.
    DomainError
        If the interval is empty.

    Notes
    -----
    The probability of an interval with both ends is a difference of two lower or of two upper
    tails, whichever are smaller, so that intervals far out in a tail keep their digits. If the
    interval is much narrower than the distribution, the difference has no digits left: it is the
    integral of the density, by the rule of Gauss and Legendre. Few counts are summed.

    An observation that is only known to lie above a bound (which is *censored*) contributes
    ``lccdf(bound, ...)`` instead.

    References
    ----------
    Stan Reference Manual, "Truncated distributions".

    Examples
    --------
    >>> import varmat as vm
    >>> half_normal = vm.truncated(vm.normal_lpdf, lower=0.0)
    >>> round(half_normal(0.5, 0.0, 1.0), 12)
    -0.350791352645
    >>> half_normal(-0.5, 0.0, 1.0)
    -inf
    >>> vm.gradient(lambda upper: vm.truncated(vm.uniform_lpdf, upper=upper)(0.5, 0.0, 4.0), 2.0)
    -0.5
    """
    if getattr(density, "lcdf", None) is None:
        raise TypeError(
            f"truncated: density is {density!r}, but must be a density of one variable that has "
            "cumulative functions!"
        )
    if lower is None and upper is None:
        raise TypeError("truncated: neither lower nor upper is given, but at least one must be!")
    if lower is not None and upper is not None and not any(map(is_differentiable, (lower, upper))):
        holds = (
            np.less_equal(lower, upper)
            if density.arguments.keys() & density.discrete
            else np.less(lower, upper)
        )
        if not np.all(holds):
            raise DomainError(
                f"truncated: lower is {lower!r} and upper is {upper!r}, but lower must be below "
                "upper!"
            )
    # Distribution functions on a bounded set, such as a circle, refuse an infinite end.
    if type(upper) is float and upper == np.inf and lower is not None:
        upper = None
    if type(lower) is float and lower == -np.inf and upper is not None:
        lower = None
    return TruncatedDensity(density, lower, upper)
