"""The Wiener diffusion model of decisions: the first passage time distribution, with variability
between trials.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from varmat.core.domains import Domain, finite, positive_finite
from varmat.core.operation import as_operand, is_differentiable
from varmat.densities.density import Density, not_nan, positional, probability, typed
from varmat.densities.first_passage import first_passage_ratio, log_first_passage
from varmat.densities.univariate import LogDensity, Univariate
from varmat.functions.arrays.exponentials import logsumexp
from varmat.functions.checks import check_values, outside
from varmat.functions.special.quadrature import gauss
from varmat.typing import Operand, Propto, Result

__all__ = ["wiener_lpdf"]

# Nodes of the Gauss-Legendre rules over starting points and over decision times: where the density
# changes slowly, and elsewhere.
STARTS, TIMES = (16, 32), (32, 96)

variability = Domain("nonnegative and finite", lambda x: (x >= 0) & (x < np.inf))
variability_of_start = Domain("in the interval [0, 1)", lambda x: (x >= 0) & (x < 1))
ARGUMENTS: dict[str, tuple[str, Domain]] = {
    "y": ("Random variable", not_nan),
    "alpha": ("Boundary separation", positive_finite),
    "tau": ("Nondecision time", positive_finite),
    "beta": ("A-priori bias", probability),
    "delta": ("Drift rate", finite),
}
VARIABILITIES: dict[str, tuple[str, Domain]] = {
    "var_delta": ("Inter-trial variability in drift rate", variability),
    "var_beta": ("Inter-trial variability in A-priori bias", variability_of_start),
    "var_tau": ("Inter-trial variability in Nondecision time", variability),
}

# Navarro and Fuss (2009), for the upper boundary: with t = y - tau, u = t / alpha**2, w = 1 - beta
# and the density f of the module `first_passage`,
#     log p = log f(u, beta) - 2 log(alpha) + alpha w delta - delta**2 t / 2.


# If the drift rate is normal with the standard deviation s, the mean of the exponential is
#     exp(alpha w delta - delta**2 t / 2 + s**2 (alpha w - delta t)**2 / (2 q)) / sqrt(q)
# with q = 1 + s**2 t.
def _wiener(
    y: Operand,
    alpha: Operand,
    tau: Operand,
    beta: Operand,
    delta: Operand,
    var_delta: Operand | None = None,
) -> LogDensity:
    t, w = y - tau, 1.0 - beta
    u, reach = t / (alpha * alpha), alpha * w
    miss = reach - delta * t
    first, second = (first_passage_ratio(order, u, beta) for order in (1.0, 2.0))
    term = log_first_passage(u, beta) - 2.0 * np.log(alpha) + delta * (reach - 0.5 * delta * t)
    in_t, drift, missed = 0.5 * (second / (alpha * alpha) - delta * delta), delta, miss
    partials = {}
    if var_delta is not None:
        variance = var_delta * var_delta
        q = 1.0 + variance * t
        drift = (delta + variance * reach) / q
        in_t = 0.5 * (second / (alpha * alpha) - drift * drift - variance / q)
        missed = miss / q
        term = term + 0.5 * (variance * miss * missed - np.log1p(variance * t))
        partials = {"var_delta": var_delta * (missed * missed - t / q)}
    partials |= {
        "y": in_t,
        "alpha": drift * w - (2.0 + u * second) / alpha,
        "tau": -in_t,
        "beta": first - drift * alpha,
        "delta": missed,
    }
    support = (y > tau) & (y < math.inf) & (beta > 0.0) & (beta < 1.0)
    return LogDensity(term, support=support, **partials)


_NAME = "wiener_lpdf"
wiener = Univariate(_NAME, _wiener, ARGUMENTS)
_OF_DRIFTS = ARGUMENTS | {"var_delta": VARIABILITIES["var_delta"]}
wiener_of_drifts = Univariate(_NAME, _wiener, _OF_DRIFTS)
# The density of the decision time only, for integrals: it takes tau = 0.
of_time = Univariate(_NAME, _wiener, _OF_DRIFTS | {"tau": ("Nondecision time", variability)})


@cache
def gauss_rule(size: int) -> tuple[Result, Result]:
    """Return nodes and log weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = gauss(size)
    return nodes, np.log(weights)


def check_starts(beta: Operand, var_beta: Operand, name: str) -> None:
    """Raise an error if starting points reach beyond a boundary."""
    for room, what in ((beta, "A-priori bias"), (1.0 - np.asarray(beta), "(1 - A-priori bias)")):
        most, starts = np.broadcast_arrays(2.0 * np.asarray(room), var_beta)
        if not (starts < most).all():
            index = tuple(int(i) for i in np.argwhere(~(starts < most))[0])
            place = f"[{', '.join(map(str, index))}]" if index else ""
            title, _ = VARIABILITIES["var_beta"]
            value, bound = float(starts[index]), float(most[index])
            raise outside(name, f"{title}{place}", value, f"be smaller than 2 {what}, {bound!r}")


# The starting point is uniform on beta -+ var_beta / 2, and the nondecision time on (tau, tau +
# var_tau), cut at the observation. The integral is over decision times t. Its
# variable is the fourth root of t, because the density may rise and fall within a small part of the
# interval next to zero.
def _averaged(
    y: Operand,
    alpha: Operand,
    tau: Operand,
    beta: Operand,
    delta: Operand,
    var_delta: Operand,
    var_beta: Operand,
    var_tau: Operand,
) -> Result:
    values = y, alpha, tau, beta, delta, var_delta, var_beta, var_tau
    shape, args = checked(wiener_lpdf, values)
    if 0 in shape:
        return 0.0
    y, alpha, tau, beta, delta, var_delta, var_beta, var_tau = args
    if not check_values(_is_inside, y, tau):
        return -np.inf
    slow = check_values(_are_slow, y, alpha, tau, beta, var_beta, var_tau)
    starts, log_starts = gauss_rule(1 if is_zero(var_beta) else STARTS[not slow[0]])
    times, log_times = gauss_rule(1 if is_zero(var_tau) else TIMES[not slow[1]])
    high = y - tau
    # Nondecision times beyond the observation contribute nothing.
    is_cut = var_tau >= high
    share = np.log(np.where(is_cut, high, 1.0)) - np.log(np.where(is_cut, var_tau, 1.0))
    last, first = high**0.25, np.where(is_cut, 0.0, np.where(is_cut, 1.0, high - var_tau) ** 0.25)
    alpha, beta, delta, var_delta, var_beta, last, first = (
        np.reshape(x, (*np.shape(x), 1, 1)) if np.ndim(x) else x
        for x in (alpha, beta, delta, var_delta, var_beta, last, first)
    )
    root = first + (last - first) * times
    jacobian = 3.0 * np.log(root) + (
        math.log(4.0) - np.log((last + first) * (last * last + first * first))
    )
    logs = of_time.pointwise(
        root**4, alpha, 0.0, beta + var_beta * (starts[:, None] - 0.5), delta, var_delta
    ) + (log_starts[:, None] + log_times + jacobian)
    item = logsumexp(np.reshape(logs, (*np.shape(logs)[:-2], -1)), axis=-1)
    return np.sum(item + share + np.zeros(shape))


def checked(density: Density, values: Sequence[Operand]) -> tuple[tuple[int, ...], list[Operand]]:
    """Return the shape to which all arguments broadcast, and the arguments as operands, after
    checks.
    """
    name = density.name
    args = [
        as_operand(x, f"{name}: {argument}")
        for argument, x in zip(density.arguments, values, strict=True)
    ]
    shape = density.shape_of(args)
    check_values(partial(check_starts, name=name), args[3], args[6])
    return shape, args


def _are_slow(
    y: Operand, alpha: Operand, tau: Operand, beta: Operand, var_beta: Operand, var_tau: Operand
) -> tuple[bool, bool]:
    """Tell whether the density changes slowly over starting points, and over decision times."""
    last = np.asarray(y - tau)
    first = np.maximum(last - var_tau, 1e-300)
    # Powers of Python's floats raise an error on overflow, products do not.
    way, width = alpha * (1.0 - beta + 0.5 * var_beta), alpha * var_beta
    rise = 0.5 * way * way * (1.0 / first - 1.0 / last)
    return bool(np.all(width * width < 16.0 * first)), bool(
        np.all((rise < 8.0) & (8.0 * first > last))
    )


def is_zero(x: Operand) -> bool:
    """Tell whether x is data and zero, so that there is nothing to integrate."""
    return not is_differentiable(x) and not np.any(x)


def _is_inside(y: Operand, tau: Operand) -> bool:
    return bool(np.all((y > tau) & (y < np.inf)))


def with_variabilities(arguments: Iterable[str]) -> list[inspect.Parameter]:
    """Return the parameters of a call, with optional ones for the variability."""
    return positional(arguments) + [p.replace(default=None) for p in positional(VARIABILITIES)]


def bound(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> list[Any]:
    """Bind the arguments of a call, in the order of the signature; None for those left out."""
    try:
        arguments = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{name}: {error}; the signature is {name}{signature}") from None
    return [arguments.get(parameter) for parameter in signature.parameters]


# The docstring describes the only instance.
class Wiener(Density):
    """Compute the log density of the Wiener first passage time distribution at the upper boundary,
    summed over all elements.

    Parameters
    ----------
    y : array_like
        Random variable, the time of a decision: not nan.
    alpha : array_like
        Boundary separation: positive finite.
    tau : array_like
        Nondecision time, the shortest one: positive finite.
    beta : array_like
        A-priori bias, the relative starting point: in the interval [0, 1].
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
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``wiener_lupdf`` does: with a variable, none.

    Returns
    -------
    float or Var
        The sum over the elements to which the arguments broadcast; zero without any. Where
        ``tau < y < inf`` and ``0 < beta < 1`` do not hold the value is -inf and the gradient zero.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not broadcast.

    Notes
    -----
    The density is a series over images for short times and one over eigenfunctions for long ones;
    derivatives are ratios of such series, accurate to 1e-13 for all starting points and times. The
    drift rate is integrated in closed form. With `var_beta` or `var_tau` the density is integrated
    over starting points and nondecision times by Gauss-Legendre rules. Value and derivatives are
    then accurate to 1e-12, or to 1e-8 if there are decision times next to zero and starting points
    next to the upper boundary. The density at the lower boundary has ``1 - beta`` and ``-delta``
    instead of `beta` and `delta`.

    References
    ----------
    Stan Functions Reference, "Wiener First Passage Time Distribution"; D. J. Navarro and I. G.
    Fuss, Journal of Mathematical Psychology 53 (2009), 222-230; K. Foster and H. Singmann, "Another
    approximation of the first-passage time densities for the Ratcliff diffusion decision model"
    (2021); F. Henrich, R. Hartmann, V. Pratz, A. Voss and K. C. Klauer, "The seven-parameter
    diffusion model: an implementation in Stan for Bayesian analyses", Behavior Research Methods
    (2023).

    Examples
    --------
    >>> import varmat as vm
    >>> round(vm.wiener_lpdf([0.5, 0.8], 1.2, 0.1, 0.4, 0.6), 12)
    -1.665231044301
    """

    def __init__(self) -> None:
        super().__init__(_NAME, {**ARGUMENTS, **VARIABILITIES})
        self.takes(with_variabilities(ARGUMENTS))

    @typed
    def __call__(self, *args: Any, propto: Propto = False, **kwargs: Any) -> Any:
        values = bound(_NAME, self.__signature__, args, kwargs)[: len(self.arguments)]
        if values[6] is None and values[7] is None:
            row = wiener if values[5] is None else wiener_of_drifts
            return row(*values[: len(row.arguments)], propto=propto)
        values[5:] = [0.0 if x is None else x for x in values[5:]]
        result = _averaged(*values)
        return 0.0 if propto is True and not any(map(is_differentiable, values)) else result


wiener_lpdf = Wiener()
