"""Distributions of one of K ordered categories, by cutpoints on a latent scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from varmat.core.errors import ShapeError, finite
from varmat.core.operation import Saved
from varmat.densities.categorical import categories, count, rows_of
from varmat.densities.density import density, not_nan
from varmat.densities.domains import ZERO, ordered
from varmat.functions.elementwise import softplus
from varmat.functions.reductions import add_reduce
from varmat.functions.special import expit, log1m_exp
from varmat.programs.symbols import applied, refuse, spread_back

__all__ = ["ordered_logistic_lpmf"]



class Cells:
    """The cells, between one cutpoint and the next, in which the observations lie: `which`, from 0.

    Attributes
    ----------
    places : ndarray of int
        Where the lower cutpoints are if all, and infinities before the first and after the last, stand one after the other.
    counts : ndarray
        How many observations there are in each of the inner cells, those without an infinite end.
    """

    def __init__(self, which: Any, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
        *rows, cutpoints = shape
        self.outer, self.ends = (*rows, 1), (*rows, cutpoints + 2)
        self.places = rows_of(self.ends) + which
        cells = (*rows, cutpoints + 1)
        self.counts = count(np.broadcast_to(rows_of(cells) + which, full), cells)[..., 1:-1]

    def bounds(self, cutpoints: Any, infinity: float = math.inf) -> tuple[Any, Any]:
        """The cutpoints below and above each observation; differentiable."""
        before, after = np.full(self.outer, -infinity), np.full(self.outer, infinity)
        flat = np.reshape(np.concatenate([before, cutpoints, after], axis=-1), (-1,))
        return flat[self.places], flat[self.places + 1]

    def gather(self, below: Any, above: Any) -> Any:
        """The transpose: what belongs to the cutpoints below and above each observation, added up by cutpoint."""
        size = math.prod(self.ends)
        places = np.broadcast_to(self.places, np.shape(below)).ravel()
        sums = np.bincount(places, np.ravel(below), size) + np.bincount(places + 1, np.ravel(above), size)
        # Of nothing the sums are integers.
        return sums.astype(np.float64).reshape(self.ends)[..., 1:-1]


def _check_shapes(n: Any, eta: Any, cutpoints: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.shape(cutpoints)[:-1]
    for title, x in (("Random variable", n), ("Location parameter", eta)):
        try:
            shape = np.broadcast_shapes(shape, np.shape(x))
        except ValueError:
            raise ShapeError(f"ordered_logistic_lpmf: {title} has shape {np.shape(x)}, but must broadcast with {shape}!") from None
    return shape


@density("n", n=("Random variable", not_nan), eta=("Location parameter", finite), cutpoints=("Cut-points", ordered))
def ordered_logistic_lpmf(n: Any, eta: Any, cutpoints: Any, keep: Any) -> Any:
    """Log mass of the ordered logistic distribution, summed over the observations.

    Parameters
    ----------
    n : int or array_like of int
        Random variable: the categories, from 1 to K as in Stan; not nan.
    eta : scalar or array_like
        Location parameter: finite. It broadcasts with `n`.
    cutpoints : array_like, shape (..., K - 1)
        Cut-points: finite and strictly increasing; the axes before the last broadcast with `n`.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``ordered_logistic_lupmf`` does.

    Returns
    -------
    float or Var
        Zero if there are no observations; -inf, with a gradient of zero, if one is not among 1, ..., K.

    Raises
    ------
    DomainError
        If an argument is outside its domain.
    ShapeError
        If the shapes do not fit.
    TypeError
        If `n` is a variable.

    Notes
    -----
    With F the logistic function, and minus and plus infinity before the first and after the last of the cutpoints c, the mass is
    :math:`F(\\eta - c_{n-1}) - F(\\eta - c_n) = F(\\eta - c_{n-1}) F(c_n - \\eta) (1 - e^{c_{n-1} - c_n})`, whose factors have
    logarithms without cancellation. SciPy has no equivalent.

    References
    ----------
    Stan Functions Reference, "Ordered logistic distribution".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda eta: vm.ordered_logistic_lpmf([1, 3], eta, [-1.0, 1.0]), 0.0)
    0.0
    """
    full = _check_shapes(n, eta, cutpoints)
    which = categories(n, cutpoints.shape[-1] + 1)
    if which is None or not cutpoints.size:
        return Saved(0.0 if which is not None else -math.inf, cells=None)
    cells = Cells(which, cutpoints.shape, full)
    low, high = cells.bounds(cutpoints)
    inner = float(add_reduce(cells.counts * log1m_exp(-np.diff(cutpoints)), None))
    below, above = (float(add_reduce(softplus(np.broadcast_to(x, full)), None)) for x in (low - eta, eta - high))
    return Saved(inner - below - above, cells=cells)


@ordered_logistic_lpmf.straight
def ordered_logistic_straight(n: Any, eta: Any, cutpoints: Any, keep: Any) -> Any:
    shape, full = np.shape(cutpoints), _check_shapes(n, eta, cutpoints)
    which = categories(n, shape[-1] + 1)
    if which is None or not np.size(cutpoints):
        refuse()
    cells, widths = Cells(which, shape, full), np.diff(cutpoints)
    low, high = cells.bounds(cutpoints)
    value = np.sum(cells.counts * applied(log1m_exp, -widths))
    for x in (low - eta, eta - high):
        value = value - np.sum(np.broadcast_to(softplus(x), full))

    def contributions(g: Any) -> Any:
        below, above = applied(expit, low - eta), applied(expit, eta - high)

        def in_cutpoints() -> Any:
            places, odds, none = np.broadcast_to(cells.places, full), cells.counts / np.expm1(widths), np.zeros((*shape[:-1], 1))
            first, second = (np.broadcast_to(x, full) for x in (below, above))
            ends = spread_back(second, places + 1, cells.ends) - spread_back(first, places, cells.ends)
            return g * (ends[..., 1:-1] + np.concatenate([none, odds], axis=-1) - np.concatenate([odds, none], axis=-1))

        return None, lambda: g * (below - above), in_cutpoints

    return value, contributions


# With odds = 1 / (exp(width) - 1) the derivatives are F(low - eta) - F(eta - high) with respect to eta, -F(low - eta) - odds to
# the lower cutpoint, and F(eta - high) + odds to the upper one.
@ordered_logistic_lpmf.reverse
def ordered_logistic_reverse(g: Any, r: Any, n: Any, eta: Any, cutpoints: Any, keep: Any, cells: Any) -> Any:
    if cells is None:
        return None, lambda: ZERO, lambda: ZERO
    low, high = cells.bounds(cutpoints)
    below, above = expit(low - eta), expit(eta - high)

    def of_cutpoints() -> Any:
        c = cells.gather(-below, above)
        odds = cells.counts / np.expm1(np.diff(cutpoints))
        c[..., 1:] += odds
        c[..., :-1] -= odds
        return g * c

    return None, lambda: np.asarray(g * (below - above)), of_cutpoints


@ordered_logistic_lpmf.tangent
def ordered_logistic_tangent(r: Any, n: Any, eta: Any, cutpoints: Any, keep: Any) -> Any:
    shape = np.shape(cutpoints)
    which = categories(n, shape[-1] + 1)
    if which is None or not np.size(cutpoints):
        return None, lambda t: 0.0, lambda t: 0.0
    cells = Cells(which, shape, _check_shapes(n, eta, cutpoints))
    low, high = cells.bounds(cutpoints)
    below, above = expit(low - eta), expit(eta - high)
    # Written so that neither it nor its derivative is inf / inf where the cutpoints are far apart.
    widths = np.diff(cutpoints)
    odds = cells.counts * (np.exp(-widths) / -np.expm1(-widths))

    def along(t: Any) -> Any:
        first, second = cells.bounds(t, infinity=0.0)
        return np.sum(above * second - below * first) + np.sum(odds * np.diff(t))

    return None, lambda t: np.sum((below - above) * t), along
