"""Distributions of one of K ordered categories, by cutpoints on a latent scale."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from varmat.core.domains import finite
from varmat.core.operation import Saved, operation
from varmat.densities.categorical import categories, count, rows_of
from varmat.densities.density import HALF_LOG_TWO_PI, ZERO, KeptTerms, density, integer_to, not_nan
from varmat.densities.domains import broadcast, ordered, possible_value
from varmat.functions.special.logistic_functions import expit, log1m_exp
from varmat.functions.special.quadrature import gauss
from varmat.programs.build.expressions import applied
from varmat.programs.build.symbol import Symbol, is_symbol, number, spread_back
from varmat.typing import Adjoint, Linear, Operand, Plain, Result

__all__ = ["ordered_logistic_lpmf", "ordered_probit_lpmf"]


class Cells:
    """The cells between cutpoints in which the observations lie: `which`, from 0.

    Attributes
    ----------
    places : ndarray of int
        The places of the lower cutpoints when all are flattened, with an infinity before the first
        and after the last.
    counts : ndarray
        The number of observations in each inner cell, one without an infinite end.
    """

    def __init__(self, which: object, shape: tuple[int, ...], full: tuple[int, ...]) -> None:
        *rows, cutpoints = shape
        self.outer, self.ends = (*rows, 1), (*rows, cutpoints + 2)
        self.places = rows_of(self.ends) + which
        cells = (*rows, cutpoints + 1)
        self.counts = count(np.broadcast_to(rows_of(cells) + which, full), cells)[..., 1:-1]

    def bounds(self, cutpoints: Operand, infinity: float = math.inf) -> tuple[Result, Result]:
        """Return the cutpoints below and above each observation; differentiable."""
        before, after = np.full(self.outer, -infinity), np.full(self.outer, infinity)
        flat = np.reshape(np.concatenate([before, cutpoints, after], axis=-1), (-1,))
        return flat[self.places], flat[self.places + 1]

    def logistic_tangent(self, eta: Operand, cutpoints: Operand) -> tuple[Result, Linear]:
        """Compute the derivatives of the log mass of the ordered logistic distribution with respect
        to `eta`, and along a tangent of the cutpoints; differentiable.
        """
        low, high = self.bounds(cutpoints)
        below, above = expit(low - eta), expit(eta - high)
        # In this form neither the value nor its derivative is inf / inf where the cutpoints are far
        # apart.
        widths = np.diff(cutpoints)
        odds = self.counts * (np.exp(-widths) / -np.expm1(-widths))

        def along(t: Operand) -> Result:
            first, second = self.bounds(t, infinity=0.0)
            return np.sum(above * second - below * first) + np.sum(odds * np.diff(t))

        return below - above, along


def _check_shapes(
    n: Operand, eta: Operand, cutpoints: Operand, function: str = "ordered_logistic_lpmf"
) -> tuple[int, ...]:
    arguments = ("Random variable", n), ("Location parameter", eta)
    return broadcast(function, np.shape(cutpoints)[:-1], *arguments)


@density(
    "n",
    n=("Random variable", not_nan),
    eta=("Location parameter", finite),
    cutpoints=("Cut-points", ordered),
)
def ordered_logistic_lpmf(n: Operand, eta: Operand, cutpoints: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the ordered logistic distribution, summed over the observations.

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
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

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
    With F the logistic function, and minus and plus infinity before the first and after the last of
    the cutpoints c, the mass is :math:`F(\\eta - c_{n-1}) - F(\\eta - c_n) = F(\\eta - c_{n-1})
    F(c_n - \\eta) (1 - e^{c_{n-1} - c_n})`, whose factors have logarithms without cancellation.
    SciPy has no equivalent.

    References
    ----------
    Stan Functions Reference, "Ordered logistic distribution"; P. McCullagh, "Regression models for
    ordinal data", Journal of the Royal Statistical Society B 42 (1980), 109-142.

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
    ends, widths = cell_ends(which, cutpoints.shape, full), np.diff(cutpoints)
    counts, flat = Cells(which, cutpoints.shape, full).counts, np.reshape(cutpoints, (-1,))
    has = [x.astype(np.float64) for x in (ends.has_low, ends.has_high)]
    t = [flat[ends.low] - eta, eta - flat[ends.high]]
    # One exponential for the value and the slope at an end.
    e = [np.exp(-np.abs(x)) for x in t]
    value = np.sum(counts * applied(log1m_exp, -widths)) - sum(
        np.sum(here * (np.maximum(x, 0.0) + np.log1p(small)))
        for here, x, small in zip(has, t, e, strict=True)
    )
    return Saved(number(value), cells=(ends, counts, widths, has, t, e))


ordered_logistic_lpmf.data_domain = lambda n, eta, cutpoints: integer_to(cutpoints.shape[-1] + 1)


# With odds = 1 / (exp(width) - 1) the derivatives are F(low - eta) - F(eta - high) with respect to
# eta, -F(low - eta) - odds to the lower cutpoint, and F(eta - high) + odds to the upper one.
@ordered_logistic_lpmf.reverse
def ordered_logistic_reverse(
    g: Adjoint,
    r: Operand,
    n: Operand,
    eta: Operand,
    cutpoints: Operand,
    keep: KeptTerms,
    cells: Operand,
) -> Result:
    if cells is None:
        return None, lambda: ZERO, lambda: ZERO
    (ends, counts, widths, has, t, e), shape = cells, np.shape(cutpoints)
    below, above = (
        here * np.where(x > 0.0, 1.0, small) / (1.0 + small)
        for here, x, small in zip(has, t, e, strict=True)
    )

    def of_cutpoints() -> Result:
        odds, none = counts / np.expm1(widths), np.zeros((*shape[:-1], 1))
        slopes = spread_back(above, ends.high, shape) - spread_back(below, ends.low, shape)
        return g * (
            slopes + np.concatenate([none, odds], axis=-1) - np.concatenate([odds, none], axis=-1)
        )

    return None, lambda: g * (below - above), of_cutpoints


@ordered_logistic_lpmf.tangent
def ordered_logistic_tangent(
    r: Operand, n: Operand, eta: Operand, cutpoints: Operand, keep: KeptTerms
) -> Result:
    shape = np.shape(cutpoints)
    which = categories(n, shape[-1] + 1)
    if which is None or not np.size(cutpoints):
        return None, lambda t: 0.0, lambda t: 0.0
    cells = Cells(which, shape, _check_shapes(n, eta, cutpoints))
    slopes, along = cells.logistic_tangent(eta, cutpoints)
    return None, lambda t: np.sum(slopes * t), along


# The standard normal probability between low and high, for cells of any width and in any tail.


class Ends(NamedTuple):
    """For each observation: whether its cell has a lower and an upper end, and which cutpoints
    these are.
    """

    has_low: Plain
    has_high: Plain
    # Indices in the flattened cutpoints; for a missing end, the index of some existing cutpoint.
    low: Plain
    high: Plain


def cell_ends(which: Plain, shape: tuple[int, ...], full: tuple[int, ...]) -> Ends:
    which, last = np.broadcast_to(which, full), shape[-1]
    begin = rows_of(shape) + np.zeros(full, np.intp)
    return Ends(
        which > 0,
        which < last,
        begin + np.maximum(which - 1, 0),
        begin + np.minimum(which, last - 1),
    )


# A cell is narrow, and integrated by a Gauss-Legendre rule, if its w (a + w / 2) below is less.
NARROW = 1.0
ROOT_HALF, ROOT_HALF_PI = math.sqrt(0.5), math.sqrt(0.5 * math.pi)


# Reflect the cell so that it lies above its end a nearer to zero, and let w be its width. Its mass
# is phi(a) D with
#     D = integral from 0 to w of exp(-a t - t**2 / 2) dt
#       = M(a) - exp(-w (a + w / 2)) M(a + w),
# where M is the Mills ratio. D of a narrow cell is integrated; the two parts of a cell that
# contains zero are added. The slopes phi / mass at the two ends are 1 / D and
# exp(-w (a + w / 2)) / D.
def normal_cell(
    low: Operand, high: Operand, width: Operand, has_low: Operand, has_high: Operand
) -> tuple[Result, Result, Result, Result]:
    """Compute the log mass; the normal density over the mass at the lower end and at the upper one,
    zero without an end; and the difference of these two.

    The width of a cell with both ends is an argument because the difference of its ends has lost
    digits."""
    from scipy.special import erf, erfc, erfcx, log_ndtr

    both = has_low & has_high
    reflected = np.where(both, low + high < 0.0, has_high)
    a = np.where(reflected, -high, low)
    w = np.where(both, width, 1.0)
    exponent = w * (a + 0.5 * w)
    far = np.exp(-exponent)
    # The cell contains zero: add the masses on both sides, or subtract the rest from one.
    parts = 0.5 * (erf(ROOT_HALF * (a + w)) - erf(ROOT_HALF * a))
    missing = 0.5 * (erfc(ROOT_HALF * (a + w)) + erfc(-ROOT_HALF * a))
    log_parts = np.where(
        missing < 0.5, np.log1p(-np.minimum(missing, 0.5)), np.log(np.maximum(parts, 1e-300))
    )
    positive = np.maximum(a, 0.0)
    wide = ROOT_HALF_PI * (erfcx(ROOT_HALF * positive) - far * erfcx(ROOT_HALF * (positive + w)))
    is_narrow = exponent < NARROW
    d = np.where(is_narrow, _narrow(a, w, is_narrow & both & (a >= 0.0)), np.maximum(wide, 1e-300))
    beyond = both & (a >= 0.0)
    value = np.where(
        both, np.where(beyond, np.log(d) - 0.5 * a * a - HALF_LOG_TWO_PI, log_parts), log_ndtr(-a)
    )
    hazard = 1.0 / (ROOT_HALF_PI * erfcx(ROOT_HALF * a))
    density_at_a = np.exp(-0.5 * a * a - HALF_LOG_TWO_PI - log_parts)
    near = np.where(both, np.where(beyond, 1.0 / d, density_at_a), hazard)
    other = np.where(
        both,
        np.where(beyond, far / d, np.exp(-0.5 * (a + w) ** 2 - HALF_LOG_TWO_PI - log_parts)),
        0.0,
    )
    difference = near * np.where(both, -np.expm1(-np.where(both, exponent, 1.0)), 1.0)
    return (
        value,
        np.where(reflected, other, near),
        np.where(reflected, near, other),
        np.where(reflected, -difference, difference),
    )


def _narrow(a: Operand, w: Operand, where: Plain) -> Result:
    """Compute D for narrow cells; return one for others."""
    nodes, weights = gauss(12)
    if not isinstance(where, Symbol):
        out = np.ones(np.shape(a))
        a, w = a[where], w[where]
        out[where] = w * np.exp(-w[:, None] * nodes * (a[:, None] + 0.5 * w[:, None] * nodes)).dot(
            weights
        )
        return out
    a, w = np.where(where, a, 0.0), np.where(where, w, 1.0)
    columns = [
        weight * np.exp(-w * node * (a + 0.5 * w * node))
        for node, weight in zip(nodes, weights, strict=True)
    ]
    return w * sum(columns[1:], columns[0])


@operation()
def log_normal_cell(
    low: Operand, high: Operand, width: Operand, *, has_low: Operand, has_high: Operand
) -> Result:
    """Compute the log mass of `normal_cell` as a function of the ends only."""
    value, at_low, at_high, _ = normal_cell(low, high, width, has_low, has_high)
    return Saved(value, at_low=at_low, at_high=at_high)


@log_normal_cell.reverse
def log_normal_cell_reverse(
    g: Adjoint,
    r: Operand,
    low: Operand,
    high: Operand,
    width: Operand,
    has_low: Operand,
    has_high: Operand,
    at_low: Operand,
    at_high: Operand,
) -> Result:
    return lambda: -g * at_low, lambda: g * at_high, lambda: np.zeros(np.shape(width))


@log_normal_cell.tangent
def log_normal_cell_tangent(
    r: Operand, low: Operand, high: Operand, width: Operand, has_low: Operand, has_high: Operand
) -> Result:
    at_low, at_high = _slopes(r, low, high, has_low, has_high)
    return lambda t: -at_low * t, lambda t: at_high * t, lambda t: 0.0 * t


def _slopes(r: Operand, low: Operand, high: Operand, has_low: Operand, has_high: Operand) -> Result:
    """Compute the normal density at the ends over the mass exp(r); differentiable."""
    return tuple(
        np.where(here, np.exp(-0.5 * x * x - HALF_LOG_TWO_PI - r), 0.0)
        for x, here in ((low, has_low), (high, has_high))
    )


@density(
    "n",
    n=("Random variable", not_nan),
    eta=("Location parameter", finite),
    cutpoints=("Cut-points", ordered),
)
def ordered_probit_lpmf(n: Operand, eta: Operand, cutpoints: Operand, keep: KeptTerms) -> Result:
    """Compute the log mass of the ordered probit distribution, summed over the observations.

    Parameters
    ----------
    n : int or array_like of int
        Random variable: the categories, from 1 to K as in Stan; not nan.
    eta : scalar or array_like
        Location parameter: finite. It broadcasts with `n`.
    cutpoints : array_like, shape (..., K - 1)
        Cut-points: finite and strictly increasing; the axes before the last broadcast with `n`.
    propto : bool, keyword only
        Drop the terms that depend on data only, as ``ordered_probit_lupmf`` does.

    Returns
    -------
    float or Var
        Zero without observations; -inf, with a gradient of zero, if one is not among 1,
        ..., K.

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
    With the distribution function of the standard normal distribution, and minus and plus infinity
    before the first and after the last of the cutpoints c, the mass is :math:`\\Phi(\\eta -
    c_{n-1}) - \\Phi(\\eta - c_n)`. It is computed without cancellation, in either tail and for
    cutpoints next to each other. The derivatives are normal densities at the ends of the cell over
    the mass. SciPy has no equivalent.

    References
    ----------
    Stan Functions Reference, "Ordered probit distribution"; P. McCullagh, "Regression models for
    ordinal data", Journal of the Royal Statistical Society B 42 (1980), 109-142.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda eta: vm.ordered_probit_lpmf([1, 3], eta, [-1.0, 1.0]), 0.0)
    0.0
    """
    full = _check_shapes(n, eta, cutpoints, "ordered_probit_lpmf")
    which = categories(n, cutpoints.shape[-1] + 1)
    if which is None or not cutpoints.size:
        return Saved(0.0 if which is not None else -math.inf, slopes=None)
    is_traced = is_symbol(eta) or is_symbol(cutpoints)
    ends = cell_ends(which, cutpoints.shape, full or (1,) if is_traced else full)
    flat = np.reshape(cutpoints, (-1,))
    with np.errstate(all="ignore"):
        low, high = flat[ends.low], flat[ends.high]
        value, *slopes = normal_cell(low - eta, high - eta, high - low, ends.has_low, ends.has_high)
    return Saved(possible_value(number(np.sum(value))), slopes=(ends, *slopes))


ordered_probit_lpmf.data_domain = lambda n, eta, cutpoints: integer_to(cutpoints.shape[-1] + 1)


@ordered_probit_lpmf.reverse
def ordered_probit_reverse(
    g: Adjoint,
    r: Operand,
    n: Operand,
    eta: Operand,
    cutpoints: Operand,
    keep: KeptTerms,
    slopes: Operand,
) -> Result:
    if slopes is None:
        return None, lambda: ZERO, lambda: ZERO
    (ends, at_low, at_high, in_eta), shape = slopes, np.shape(cutpoints)

    def of_cutpoints() -> Result:
        return g * (spread_back(at_high, ends.high, shape) - spread_back(at_low, ends.low, shape))

    return None, lambda: g * in_eta, of_cutpoints


@ordered_probit_lpmf.tangent
def ordered_probit_tangent(
    r: Operand, n: Operand, eta: Operand, cutpoints: Operand, keep: KeptTerms
) -> Result:
    shape = np.shape(cutpoints)
    which = categories(n, shape[-1] + 1)
    if which is None or not np.size(cutpoints):
        return None, lambda t: 0.0, lambda t: 0.0
    ends = cell_ends(which, shape, _check_shapes(n, eta, cutpoints, "ordered_probit_lpmf"))
    flat = np.reshape(cutpoints, (-1,))
    first, last = flat[ends.low], flat[ends.high]
    low, high = first - eta, last - eta
    cell = log_normal_cell(low, high, last - first, has_low=ends.has_low, has_high=ends.has_high)
    at_low, at_high = _slopes(cell, low, high, ends.has_low, ends.has_high)

    def along(t: Operand) -> Result:
        t = np.reshape(t, (-1,))
        return np.sum(at_high * t[ends.high]) - np.sum(at_low * t[ends.low])

    return None, lambda t: np.sum((at_low - at_high) * t), along
