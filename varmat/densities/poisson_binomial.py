"""The Poisson binomial distribution: the number of successes in trials of different probabilities.

The mass is a coefficient of the product of the polynomials 1 - theta + theta x. Multiplying them
one by one adds positive numbers only. To avoid underflow, x is first scaled by a number exp(s),
which changes the coefficients by known factors and makes the wanted one the largest: the trials are
tilted so that their mean is the number of successes. The derivatives use, for each trial, the
products of the trials before and behind it, and so take as long as the value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from varmat.core.operation import Saved, operation
from varmat.densities.density import KeptTerms, density, integer_to, not_nan, probability
from varmat.densities.domains import broadcast
from varmat.functions.arrays.reductions import add_reduce
from varmat.functions.checks import misfit
from varmat.typing import Adjoint, Operand, Plain, Result

__all__ = ["poisson_binomial_lpmf"]

# Steps of the bisection for the tilt. The tilt need not be exact: the log mass may fall by a few
# units.
BISECTIONS = 24


class TiltedTrials(NamedTuple):
    """Tilted trials; the arrays have the shape of the observations and one more axis.

    Attributes
    ----------
    wins, losses : ndarray
        The tilted probabilities.
    up, down : ndarray
        ``exp(s) / (1 - theta + theta exp(s))`` and ``1 / (1 - theta + theta exp(s))``.
    before, behind : ndarray
        The masses of the number of successes in the trials before each one, and of the rest in the
        trials behind it. The first axis counts trials, and has one more element for the masses
        of all trials.
    """

    wins: Plain
    losses: Plain
    up: Plain
    down: Plain
    before: Plain
    behind: Plain

    @property
    def masses(self) -> Result:
        """The masses after tilting."""
        return add_reduce(self.before[0] * self.behind[0], -1)

    def slopes(self) -> Result:
        """Compute the derivatives of the log tilted mass in the tilted probabilities."""
        return (
            np.moveaxis(_inner(self.before[:-1], self.behind[1:]), 0, -1) / self.masses[..., None]
        )

    def gradient(self) -> Result:
        """Compute the derivatives of the log mass with respect to the probabilities."""
        with_one, without = (
            add_reduce(self.before[:-1] * x, -1)
            for x in (_unshifted(self.behind[1:]), self.behind[1:])
        )
        return (
            self.up * np.moveaxis(with_one, 0, -1) - self.down * np.moveaxis(without, 0, -1)
        ) / self.masses[..., None]

    def curvature(self, v: Operand) -> Result:
        """Multiply the second derivatives by a vector for each observation."""
        slopes, (rise, spread) = self.slopes(), (self.up - self.down, self.up * self.down)
        d = spread * v
        moved = np.moveaxis(d, -1, 0)[..., None]
        before, behind = np.zeros_like(self.before), np.zeros_like(self.behind)
        wins, losses = (np.moveaxis(x, -1, 0)[..., None] for x in (self.wins, self.losses))
        for k in range(len(moved)):
            before[k + 1] = losses[k] * before[k] + moved[k] * (
                _shifted(self.before[k]) - self.before[k]
            )
            before[k + 1] += wins[k] * _shifted(before[k])
        for k in reversed(range(len(moved))):
            behind[k] = losses[k] * behind[k + 1] + moved[k] * (
                _unshifted(self.behind[k + 1]) - self.behind[k + 1]
            )
            behind[k] += wins[k] * _unshifted(behind[k + 1])
        change = _inner(before[:-1], self.behind[1:]) + _inner(self.before[:-1], behind[1:])
        change = (
            np.moveaxis(change, 0, -1) / self.masses[..., None]
            - slopes * add_reduce(slopes * d, -1)[..., None]
        )
        return change * spread - (rise * rise + 2.0 * slopes * spread * rise) * v


def _shifted(x: Operand) -> Result:
    """Move masses up by one success."""
    return np.concatenate([np.zeros((*x.shape[:-1], 1)), x[..., :-1]], axis=-1)


def _unshifted(x: Operand) -> Result:
    return np.concatenate([x[..., 1:], np.zeros((*x.shape[:-1], 1))], axis=-1)


def _inner(before: Operand, behind: Operand) -> Result:
    """Compute the change of the mass by one more success."""
    return add_reduce(before * (_unshifted(behind) - behind), -1)


def _tilt(log_odds: Operand, n: Operand) -> Result:
    """Find the number s for which the probabilities of the log odds + s sum to about n. It is far
    out if n is 0 or the number of trials.
    """
    inside = np.isfinite(log_odds)
    margin = math.log(log_odds.shape[-1] + 1.0) + 1.0
    low = -np.max(log_odds, axis=-1, where=inside, initial=-800.0) - margin
    high = -np.min(log_odds, axis=-1, where=inside, initial=800.0) + margin
    low, high = np.minimum(low, high), np.maximum(low, high)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        with np.errstate(over="ignore"):
            is_low = add_reduce(1.0 / (1.0 + np.exp(-(log_odds + middle[..., None]))), -1) < n
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return 0.5 * (low + high)


def _trials(n: Operand, theta: Operand, limit: int) -> tuple[Plain, TiltedTrials]:
    """Compute the tilted trials, after the log masses without the masses of the tilted trials."""
    with np.errstate(divide="ignore", over="ignore"):
        log_theta, log_rest = np.log(theta), np.log1p(-theta)
        log_odds = log_theta - log_rest
        s = _tilt(log_odds, n)[..., None]
        t = log_odds + s
        # The larger term of 1 - theta + theta exp(s) is taken out.
        log_sum = np.where(t > 0.0, log_theta + s, log_rest) + np.log1p(np.exp(-np.abs(t)))
        wins, losses = 1.0 / (1.0 + np.exp(-t)), 1.0 / (1.0 + np.exp(t))
        up, down = np.exp(s - log_sum), np.exp(-log_sum)
    count = theta.shape[-1]
    before, behind = (np.zeros((count + 1, *n.shape, limit + 1)) for _ in range(2))
    before[0, ..., 0] = 1.0
    behind[count] = np.arange(limit + 1) == n[..., None]
    for k in range(count):
        before[k + 1] = losses[..., k, None] * before[k] + wins[..., k, None] * _shifted(before[k])
    for k in reversed(range(count)):
        behind[k] = losses[..., k, None] * behind[k + 1] + wins[..., k, None] * _unshifted(
            behind[k + 1]
        )
    return add_reduce(log_sum, -1) - s[..., 0] * n, TiltedTrials(
        wins, losses, up, down, before, behind
    )


def _observed(y: Operand, theta: Operand) -> tuple[Result, Result]:
    """Return the observations, None if one is not in 0, ..., K, and the probabilities for each."""
    function = "poisson_binomial_lpmf"
    if not np.ndim(theta):
        raise misfit(function, "Probability parameters", (), "be a vector (or a stack of them)")
    *rows, count = np.shape(theta)
    shape = broadcast(function, tuple(rows), ("Successes variable", y))
    n = np.broadcast_to(np.asarray(y, np.float64), shape)
    inside = bool(np.all((n >= 0) & (n <= count) & (np.floor(n) == n)))
    return (n if inside else None), np.broadcast_to(theta, (*shape, count))


def _solved(y: Operand, theta: Operand) -> tuple[float, TiltedTrials | None]:
    """Sum the log masses, and return the trials too: None if empty, or if an observation is
    impossible.
    """
    n, theta = _observed(y, theta)
    if n is None:
        return -math.inf, None
    if not theta.size:
        return 0.0, None
    if np.any(n < add_reduce(theta == 1.0, -1)) or np.any(n > add_reduce(theta > 0.0, -1)):
        return -math.inf, None
    base, trials = _trials(n, theta, int(n.max()))
    return float(add_reduce(base + np.log(trials.masses), None)), trials


def _collected(x: Operand, shape: tuple[int, ...]) -> Result:
    """Sum derivatives for each observation to the shape of the probabilities."""
    x = add_reduce(x, tuple(range(x.ndim - len(shape))))
    return (
        add_reduce(x, tuple(i for i, n in enumerate(shape) if n != x.shape[i]), keepdims=True)
        if x.shape != shape
        else x
    )


@density("y", y=("Successes variable", not_nan), theta=("Probability parameters", probability))
def poisson_binomial_lpmf(y: Operand, theta: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the Poisson binomial distribution, summed over the observations.

    Parameters
    ----------
    y : int or array_like of int
        Successes variable: the number of successes; not nan.
    theta : array_like, shape (..., K)
        Probability parameters: that of each of the K trials, in the interval [0, 1]; the axes
        before the last broadcast with `y`.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``poisson_binomial_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 0,
        ..., K or is impossible.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `y` is a variable.

    Notes
    -----
    The mass is the coefficient of :math:`x^y` in :math:`\\prod_k (1 - \\theta_k + \\theta_k x)`,
    found in :math:`O(K^2)` steps. None of them subtracts, and the trials are tilted so that no mass
    underflows. The mass is linear in each :math:`\\theta_k`. With equal probabilities it is
    `binomial_lpmf`. In SciPy ``scipy.stats.poisson_binom(theta)``.

    References
    ----------
    Stan Math Library, ``poisson_binomial``; S. X. Chen and J. S. Liu, "Statistical applications of
    the Poisson-binomial and conditional Bernoulli distributions", Statistica Sinica 7 (1997),
    875-892.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> round(vm.poisson_binomial_lpmf(1, [0.25, 0.5]), 12)
    -0.69314718056
    >>> vm.gradient(lambda theta: vm.poisson_binomial_lpmf(2, theta), np.array([0.25, 0.5]))
    array([4., 2.])
    """
    value, trials = _solved(y, theta)
    return Saved(value, trials=trials)


poisson_binomial_lpmf.data_domain = lambda y, theta: integer_to(theta.shape[-1], 0)


@poisson_binomial_lpmf.reverse
def poisson_binomial_reverse(
    g: Adjoint, r: Operand, y: Operand, theta: Operand, keep: KeptTerms, trials: Operand
) -> Result:
    return (
        None,
        lambda: (
            np.zeros(theta.shape)
            if trials is None
            else g * _collected(trials.gradient(), theta.shape)
        ),
    )


@poisson_binomial_lpmf.tangent
def poisson_binomial_tangent(r: Operand, y: Operand, theta: Operand, keep: KeptTerms) -> Result:
    return None, lambda t: np.sum(poisson_binomial_slopes(theta, y=y) * t)


# The gradient as an operation, for second derivatives. Their matrix in theta is symmetric.
@operation()
def poisson_binomial_slopes(theta: Operand, y: Operand = None) -> Result:
    trials = _solved(y, theta)[1]
    return Saved(
        np.zeros(theta.shape) if trials is None else _collected(trials.gradient(), theta.shape),
        trials=trials,
    )


def _product(trials: TiltedTrials | None, v: Operand) -> Result:
    if trials is None:
        return np.zeros(v.shape)
    return _collected(trials.curvature(np.broadcast_to(v, trials.wins.shape)), v.shape)


@poisson_binomial_slopes.reverse
def slopes_reverse(g: Adjoint, r: Operand, theta: Operand, y: Operand, trials: Operand) -> Result:
    return (lambda: _product(trials, g),)


@poisson_binomial_slopes.tangent
def slopes_tangent(r: Operand, theta: Operand, y: Operand) -> Result:
    return lambda t: poisson_binomial_curvature(theta, t, y=y)


@operation()
def poisson_binomial_curvature(theta: Operand, v: Operand, y: Operand = None) -> Result:
    """Multiply the second derivatives by a vector."""
    return _product(_solved(y, theta)[1], v)
