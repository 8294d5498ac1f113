"""The distribution functions of the Wiener diffusion model of decisions, with variability between
trials.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from varmat.core.domains import Domain
from varmat.densities.density import Density, typed
from varmat.densities.first_passage import log_first_passage
from varmat.densities.first_passage_time import (
    DROP,
    NODES,
    PANEL,
    log_passage_after,
    log_passage_before,
    mean_passage_after,
    mean_passage_before,
)
from varmat.densities.univariate import LogDensity, Univariate
from varmat.densities.wiener import (
    ARGUMENTS,
    VARIABILITIES,
    bound,
    checked,
    gauss_rule,
    is_zero,
    of_time,
    variability,
    with_variabilities,
)
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.checks import check_values, fixed
from varmat.functions.docstrings import indented
from varmat.typing import Function, Operand, Result

__all__ = ["wiener_lccdf_unnorm", "wiener_lcdf_unnorm"]

# For starting points: the largest (alpha var_beta)**2 / time for which a number of nodes is enough,
# and this number. For nondecision times: the numbers of nodes for tiny intervals and for others.
STARTS_BY_WIDTH: tuple[tuple[float, int], ...] = ((16.0, 16), (400.0, 32), (math.inf, 96))
FEW_TIMES, MANY_TIMES = 4, 48

_OPEN = Domain(
    "in the interval (0, 1)", lambda x: (x > 0) & (x < 1), lambda x: x.min() > 0 and x.max() < 1
)
_ARGUMENTS: dict[str, Any] = {
    **ARGUMENTS, "tau": (ARGUMENTS["tau"][0], variability), "beta": (ARGUMENTS["beta"][0], _OPEN),
}  # fmt: skip


def _passage(
    log_passage: Function,
    mean: Function,
    sign: float,
    is_possible: Callable[[Operand, Operand], Operand],
    *values: Operand,
) -> LogDensity:
    y, alpha, tau, beta, delta = values
    square = alpha * alpha
    inner = (y > tau) & (y < math.inf)
    time = np.where(inner, y - tau, square) / square
    u = np.where(inner, time, np.where(y > tau, math.inf, 0.0))
    v, w = alpha * delta, 1.0 - beta
    passage = log_passage(u, beta, v)
    density = np.exp(log_first_passage(time, beta) - 0.5 * v * v * time - passage)
    rate = sign * np.where(inner, density, 0.0)
    miss, in_y = w - v * mean(1.0, u, beta, v), rate / square
    partials = {
        "y": in_y,
        "alpha": delta * miss - 2.0 * time * rate / alpha,
        "tau": -in_y,
        "beta": mean(10.0, u, beta, v) - v,
        "delta": alpha * miss,
    }
    return LogDensity(passage + v * w, support=is_possible(y, tau), **partials)


def _range(
    upper: bool, time: Operand, alpha: Operand, b: Operand, delta: Operand, var_delta: Operand
) -> tuple[Result, Result]:
    """Find the times up to `time`, or from `time` on, where the density is not negligible."""
    square = alpha * alpha
    u, w, v, s = time / square, 1.0 - b, delta * alpha, (var_delta * alpha) ** 2
    at = (np.maximum if upper else np.minimum)(u, w / np.sqrt(v * v + math.pi**2))
    # Minus the logarithm of the bound for short times, with an addition for long ones.
    level = (
        (w - v * at) ** 2 / (2.0 * at * (1.0 + s * at))
        + np.maximum(0.5 * math.pi**2 * at - 0.5 * w * w / at, 0.0)
        + DROP
    )
    # The bounds for short and for long times reach this level at the roots of quadratic equations.
    half = level + w * v
    low = w * w / (half + np.sqrt(np.maximum(half * half - w * w * (v * v - 2.0 * level * s), 0.0)))
    linear, remainder = math.pi**2 + v * v - 2.0 * level * s, 2.0 * half + s * w * w
    root = np.sqrt(linear * linear + 4.0 * math.pi**2 * s * remainder)
    is_falling = linear > 0.0
    high = np.where(
        is_falling,
        2.0 * remainder / (root + np.where(is_falling, linear, 1.0)),
        (root - linear) / (2.0 * math.pi**2 * np.where(is_falling, 1.0, s)),
    )
    return low * square, high * square


def _count_of(*lengths: Operand) -> int:
    """Choose the number of panels on the axis of the log time."""
    most = max((float(np.max(x, initial=0.0)) for x in lengths), default=0.0)
    return int(min(max(math.ceil(most / PANEL), 1), 100))


def _nodes(length: Operand) -> tuple[Result, Result]:
    """Return nodes between 0 and 1, and their log weights."""
    count = check_values(_count_of, length)
    nodes, logs = gauss_rule(NODES)
    return ((np.arange(count)[:, None] + nodes) / count).reshape(-1), np.tile(
        logs - math.log(count), count
    )


class _Model:
    """The arguments of the density of decision times, with an axis for starting points and one for
    times.
    """

    def __init__(
        self,
        upper: bool,
        count: int,
        alpha: object,
        beta: object,
        delta: object,
        var_delta: object,
        var_beta: object,
    ) -> None:
        self.upper = upper
        self.starts, self.log_starts = gauss_rule(count)
        alpha, beta, delta, var_delta, var_beta = map(
            _with_axes, (alpha, beta, delta, var_delta, var_beta)
        )
        self.args = alpha, beta + var_beta * (self.starts[:, None] - 0.5), delta, var_delta
        self.fixed = [fixed(x) for x in self.args]

    def integral(self, bottom: Operand, distance: Operand, weight: Operand = None) -> Result:
        """Compute the log integral of the density from `bottom` to ``bottom + apart``."""
        length = np.log1p(distance / bottom)
        abscissas, log_weights = _nodes(length)
        logs = log_weights + np.log(length) + self.log_starts[:, None]
        if weight is not None:
            logs = logs + np.log(weight(bottom, distance, length, abscissas))
        times = bottom * np.exp(length * abscissas)
        alpha, *others = self.args
        logs = logs + np.log(times) + of_time.pointwise(times, alpha, 0.0, *others)
        return logsumexp(np.reshape(logs, (*np.shape(logs)[:-2], -1)), axis=-1)

    def passed(self, time: Operand) -> Result:
        """Compute the log probability of a decision before a time, or after it."""
        time = _with_axes(time)
        now = np.maximum(fixed(time), 0.0)
        low, high = _range(self.upper, now, *self.fixed)
        if self.upper:
            bottom = np.where(now > low, np.where(now > low, time, 1.0), low)
            return self.integral(bottom, high - bottom)
        is_cut = now < high
        return self.integral(low, np.where(is_cut, np.where(is_cut, time, 1.0), high) - low)

    def large_time(self, time: Operand, var_tau: Operand) -> Result:
        """Compute the same for a nondecision time that is uniform on an interval: decision times at
        its ends are `time` and ``time - var_tau``.
        """
        most, width = _with_axes(time), _with_axes(var_tau)
        least = most - width
        latest, earliest = fixed(most), fixed(least)
        # Decision times are positive, which cuts the interval.
        low, high = _range(
            self.upper, np.maximum(earliest, 0.0) if self.upper else latest, *self.fixed
        )
        starts_inside, ends_inside = earliest > low, latest < high
        something = np.where(starts_inside, earliest, low) < np.where(ends_inside, latest, high)
        of_all = something & starts_inside & ends_inside
        bottom = np.where(starts_inside & something, np.where(something, least, 1.0), low)
        top = np.where(
            ends_inside & something,
            np.where(something, most, 1.0),
            np.where(something, high, 2.0 * low),
        )
        distance = np.where(of_all, width, top - bottom)

        def weight(bottom: Operand, distance: Operand, length: Operand, indices: Operand) -> Result:
            if self.upper:
                before = np.where(
                    starts_inside | ~something,
                    0.0,
                    bottom - np.where(something & ~starts_inside, least, 0.0),
                )
                share = (before + bottom * np.expm1(length * indices)) / width
            else:
                after = np.where(
                    ends_inside | ~something, 0.0, np.where(something, most, 1.0) - top
                )
                share = (after - top * np.expm1(length * (indices - 1.0))) / width
            # The weight is tiny where the density is negligible in all of the interval.
            return np.where(something, share, 1e-300)

        return self.integral(bottom, distance, weight)


def _with_axes(x: Operand) -> Result:
    return np.reshape(x, (*np.shape(x), 1, 1)) if np.ndim(x) else x


def _log_probability(
    upper: bool, y: Operand, tau: Operand, var_tau: Operand, model: _Model
) -> Result:
    """Compute the log probability at each element."""
    high = y - tau
    if is_zero(var_tau):
        return model.passed(high)
    if check_values(_has_zero, var_tau):
        # A mean over few times is differentiable in the width at zero too.
        count = check_values(_count_of_times, high, var_tau)
        abscissas, logs = gauss_rule(count)
        x = [
            model.passed(high - var_tau * place) + log
            for place, log in zip(abscissas.tolist(), logs.tolist(), strict=True)
        ]
        return logsumexp(np.stack(x), axis=0)
    large_time = model.large_time(high, var_tau)
    if upper:
        return np.logaddexp(model.passed(high), large_time)
    least = high - var_tau
    has_passed = fixed(least) > 0.0
    passed = model.passed(np.where(has_passed, least, 1.0))
    return np.where(
        has_passed, np.logaddexp(np.where(has_passed, passed, large_time), large_time), large_time
    )


def _has_zero(var_tau: Operand) -> bool:
    return not np.all(var_tau)


def _count_of_starts(y: Operand, tau: Operand, alpha: Operand, var_beta: Operand) -> int:
    width, times = alpha * np.asarray(var_beta), np.asarray(y - tau)
    most = float(
        np.max(np.where(times > 0.0, width * width / np.where(times > 0.0, times, 1.0), 0.0))
    )
    return next(count for limit, count in STARTS_BY_WIDTH if most <= limit)


def _count_of_times(high: Operand, var_tau: Operand) -> int:
    return FEW_TIMES if np.all(1000.0 * np.asarray(var_tau) < np.abs(high)) else MANY_TIMES


# The docstring describes both instances, which fill in some words.
class WienerCumulative:
    """Compute the log probability of a decision for the upper boundary {words} an observation,
    Wiener process; summed over all elements.

    Parameters
    ----------
    y : array_like
        Random variable, the time of a decision: not nan.
    alpha : array_like
        Boundary separation: positive finite.
    tau : array_like
        Nondecision time, the shortest one: nonnegative and finite.
    beta : array_like
        A-priori bias, the relative starting point: in the interval (0, 1).
    delta : array_like
        Mean drift rate over decisions: finite.
    var_delta : array_like, optional
        Standard deviation of the normal drift rates of the decisions: nonnegative and finite.
    var_beta : array_like, optional
        Width of the interval around `beta` in which starting points are uniform: in [0, 1), and
        inside the boundaries.
    var_tau : array_like, optional
        Width of the interval above `tau` in which nondecision times are uniform: nonnegative and
        finite.

    Returns
    -------
    float or Var
        The sum over the elements to which the arguments broadcast; zero without any.
        {outside}

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not broadcast.

    Notes
    -----
    The distribution is defective: the probabilities up to y and above it add up to the one of a
    decision for the upper boundary, :math:`(1 - e^{{-2 \\alpha \\beta \\delta}}) / (1 - e^{{-2
    \\alpha \\delta}})`. Those of the lower boundary have ``1 - beta`` and ``-delta`` instead of
    `beta` and `delta`. The density is integrated over the logarithm of the time by Gauss-Legendre
    rules, on the range where it is not negligible, so that far tails have all digits. Value and
    derivatives are accurate to 1e-13, with variability between trials to 1e-12. For the logarithm
    of a probability next to one, and for derivatives next to zero, these are absolute errors.

    References
    ----------
    Stan Functions Reference, "Wiener First Passage Time Distribution"; S. P. Blurton, M.
    Kesselmeier and M. Gondan, Journal of Mathematical Psychology 56 (2012), 470-475; F. Henrich, R.
    Hartmann, V. Pratz, A. Voss and K. C. Klauer, "The seven-parameter diffusion model: an
    implementation in Stan for Bayesian analyses", Behavior Research Methods (2023).

    Examples
    --------
    >>> import varmat as vm
    >>> round(vm.{name}(0.5, 1.2, 0.1, 0.4, 0.6), 12)
    {value}
    """

    def __init__(
        self,
        name: str,
        upper: bool,
        log_passage: Function,
        mean: Function,
        is_possible: Callable[[Operand, Operand], Operand],
        **words: str,
    ) -> None:
        self.__name__ = self.__qualname__ = self.name = name
        self.arguments = {**_ARGUMENTS, **VARIABILITIES}
        form = partial(_passage, log_passage, mean, -1.0 if upper else 1.0, is_possible)
        self.row, self.upper = Univariate(name, form, _ARGUMENTS), upper
        self._density = Density(name, self.arguments)
        self.__signature__ = inspect.Signature(with_variabilities(_ARGUMENTS))
        self.__doc__ = indented(type(self)).format(name=name, **words)

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<varmat cumulative distribution function {self.name}{self.__signature__}>"

    @typed
    def __call__(self, *args: Operand, **kwargs: Operand) -> Result:
        values = bound(self.name, self.__signature__, args, kwargs)
        if values[5] is values[6] is values[7] is None:
            return self.row(*values[:5])
        return self._averaged([0.0 if x is None else x for x in values])

    def _averaged(self, values: list[Operand]) -> Result:
        shape, args = checked(self._density, values)
        y, alpha, tau, beta, delta, var_delta, var_beta, var_tau = args
        if 0 in shape:
            return 0.0
        if not check_values(_is_before if self.upper else _is_after, y, tau):
            return -np.inf
        count = 1 if is_zero(var_beta) else check_values(_count_of_starts, y, tau, alpha, var_beta)
        model = _Model(self.upper, count, alpha, beta, delta, var_delta, var_beta)
        result = _log_probability(self.upper, y, tau, var_tau, model)
        return np.sum(result + np.zeros(shape)) if shape else result


def _is_after(y: Operand, tau: Operand) -> bool:
    return bool(np.all(y > tau))


def _is_before(y: Operand, tau: Operand) -> bool:
    return bool(np.all(y < np.inf))


wiener_lcdf_unnorm = WienerCumulative(
    "wiener_lcdf_unnorm",
    False,
    log_passage_before,
    mean_passage_before,
    lambda y, tau: y > tau,
    words="up to",
    outside="Where ``tau < y`` does not hold the value is -inf and the gradient zero.",
    value="-1.006332980395",
)
wiener_lccdf_unnorm = WienerCumulative(
    "wiener_lccdf_unnorm",
    True,
    log_passage_after,
    mean_passage_after,
    lambda y, _: y < math.inf,
    words="above",
    outside="Where ``y < inf`` does not hold the value is -inf and the gradient zero.",
    value="-1.569007573762",
)
