"""Truncation: a density restricted to an interval, divided by the probability of that interval."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.errors import DomainError
from varmat.core.operation import is_differentiable
from varmat.densities.density import typed
from varmat.densities.univariate import Univariate
from varmat.functions.special.logistic_functions import log_diff_exp
from varmat.typing import Operand, Result

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
    def __call__(self, *args: Operand, **named: Operand) -> Result:
        if named:
            args = self.__signature__.bind(*args, **named).args
        y, *parameters = args
        total = self.density(*args)
        bounds = [x for x in (self.lower, self.upper) if x is not None]
        if any(map(is_differentiable, (y, *bounds))):
            total = total + np.sum(np.where(self._outside(y), -math.inf, 0.0))
        elif np.any(self._outside(y)):
            return -math.inf
        own = np.broadcast_shapes(*map(np.shape, args))
        shape = np.broadcast_shapes(own, *map(np.shape, bounds))
        if shape != own:  # several ends for one observation
            total = total * (math.prod(shape) / max(1, math.prod(own)))
        log = self.log_probability(*parameters)
        # A probability that several observations share is computed once.
        result = total - np.sum(log) * (math.prod(shape) / max(1, math.prod(np.shape(log))))
        return float(result) if isinstance(result, np.floating) else result

    def _outside(self, y: Operand) -> Result:
        outside: Result = False
        if self.lower is not None:
            outside = np.less(y, self.lower)
        if self.upper is not None:
            outside = np.logical_or(outside, np.greater(y, self.upper))
        return outside

    def log_probability(self, *parameters: Operand) -> Result:
        """The log probability of the interval, for each element of bounds and parameters."""
        below, above = self.density.lcdf.pointwise, self.density.lccdf.pointwise
        lower, upper = self.lower, self.upper
        if lower is not None and next(iter(self.density.arguments)) in self.density.discrete:
            lower = np.subtract(lower, 1)  # the lower bound belongs to the interval
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
        return log_diff_exp(np.where(left, pairs[0], pairs[2]), np.where(left, pairs[1], pairs[3]))


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
    interval is much narrower than the distribution, the result loses as many digits as the
    probability of the interval is small.

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
        raise TypeError("truncated: neither lower nor upper is given, but one of them must be!")
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
    return TruncatedDensity(density, lower, upper)
