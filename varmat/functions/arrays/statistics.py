"""NumPy's statistics written with differentiable functions: averages, covariances, quantiles."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from varmat.core.dispatch import plain
from varmat.core.domains import Domain, nonnegative, positive_finite
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, is_differentiable
from varmat.functions.arrays.composites import composite
from varmat.functions.checks import check_settings, delivered, misfit, outside
from varmat.typing import Axis, DTypeLike, Function, Operand, Result


@composite(np.average)
def average(
    a: Operand,
    axis: Axis = None,
    weights: Operand = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Result:
    """Compute the weighted mean, differentiable in values and weights."""
    a = as_operand(a, "average: a")
    if weights is None:
        result = np.mean(a, axis=axis, keepdims=keepdims)
        total: Result = np.size(a) / np.size(result)
    else:
        w = _weights_along("average", as_operand(weights, "average: weights"), np.shape(a), axis)
        total = np.sum(w, axis=axis, keepdims=keepdims)
        if np.any(total == 0):
            raise ZeroDivisionError("average: the weights sum to zero and cannot be normalized")
        result = np.sum(a * w, axis=axis, keepdims=keepdims) / total
    return (result, np.broadcast_to(total, np.shape(result))) if returned else result


def _weights_along(function: str, weights: Operand, shape: tuple[int, ...], axis: Axis) -> Result:
    """Return weights in the shape of `a`, with ones for the axes along which they are the same."""
    if np.shape(weights) == shape:
        return weights
    if axis is None:
        raise misfit(
            function,
            "weights",
            np.shape(weights),
            f"have the shape of a, {shape}, if axis is not given",
        )
    axes = normalize_axis_tuple(axis, len(shape))
    if np.shape(weights) != tuple(shape[i] for i in axes):
        raise misfit(
            function,
            "weights",
            np.shape(weights),
            f"have the shape of a, {shape}, along axis {axis}",
        )
    weights = np.transpose(weights, np.argsort(axes))
    return np.reshape(weights, [n if i in axes else 1 for i, n in enumerate(shape)])


@composite(np.cov)
def cov(
    m: Operand,
    y: Operand = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Operand = None,
    aweights: Operand = None,
    *,
    dtype: DTypeLike | None = None,
) -> Result:
    """Compute the covariance matrix of variables in rows (or in columns)."""
    check_settings(np.cov, dtype=dtype)
    x = _observations(m, rowvar)
    if y is not None:
        x = np.concatenate((x, _observations(y, rowvar)), axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = np.shape(x)[1]
    w: np.ndarray = np.ones(n)
    if fweights is not None:
        w = _observation_weights("fweights", fweights, n)
        if is_differentiable(w) or np.any(w != np.rint(w)):
            raise TypeError(
                "cov: fweights holds variables or fractions, but must be plain whole numbers!"
            )
    if aweights is not None:
        aweights = _observation_weights("aweights", aweights, n)
        w = w * aweights
    total = np.sum(w)
    centred = x - (np.sum(x * w, axis=1) / total)[:, None]
    scale = total - (ddof if aweights is None else ddof * np.sum(w * aweights) / total)
    if scale <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        scale = 0.0
    return np.squeeze((centred * w) @ centred.T / scale)


def _observation_weights(name: str, weights: Operand, n: int) -> Result:
    weights = as_operand(weights, f"cov: {name}")
    if np.shape(weights) != (n,):
        raise misfit("cov", name, np.shape(weights), f"be a vector of {n} numbers")
    nonnegative.check("cov", name, plain(weights))
    return weights


def _observations(x: Operand, rowvar: bool) -> Result:
    x = as_operand(x, "cov: the observations")
    if np.ndim(x) > 2:
        raise ShapeError(
            f"cov: the observations have shape {np.shape(x)}, but must have at most two dimensions!"
        )
    return np.atleast_2d(x) if rowvar or np.ndim(x) < 2 else x.T


@composite(np.corrcoef)
def corrcoef(
    x: Operand,
    y: Operand = None,
    rowvar: bool = True,
    bias: bool | None = None,
    ddof: int | None = None,
    *,
    dtype: DTypeLike | None = None,
) -> Result:
    """Compute the correlation matrix of variables in rows (or in columns)."""
    check_settings(np.corrcoef, dtype=dtype)
    if bias is not None or ddof is not None:  # arguments before NumPy 2.4
        warnings.warn(
            "corrcoef: bias and ddof have no effect and are deprecated",
            DeprecationWarning,
            stacklevel=4,
        )
    c = np.cov(x, y, rowvar)
    if not np.ndim(c):
        return c / c
    scale = np.sqrt(np.diagonal(c))
    return np.clip(c / scale[:, None] / scale[None, :], -1.0, 1.0)


# Fewer ranks than this are found without sorting: of 10^5 elements that takes a third of the time.
FEW = 12

# Virtual index of the quantile q among n sorted values: n q + alpha + q (1 - alpha - beta) - 1
# (Hyndman & Fan 1996, sec. 2).
_METHODS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
    # These round the index, see _ROUNDED.
    **dict.fromkeys(("lower", "higher", "nearest", "midpoint"), (1.0, 1.0)),
    **dict.fromkeys(("inverted_cdf", "averaged_inverted_cdf"), (0.0, 1.0)),
}
_ROUNDED: dict[str, Function] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
    "midpoint": lambda i: 0.5 * (np.floor(i) + np.ceil(i)),
    "inverted_cdf": np.ceil,
    "averaged_inverted_cdf": lambda i: 0.5 * (np.ceil(i) + np.floor(i + 1)),
}


def _lanes(a: Operand, axis: Axis) -> tuple[Result, tuple[int, ...]]:
    """Return the values along a last axis that replaces all of `axis`, and the shape with these
    axes kept as ones.
    """
    shape = np.shape(a)
    axes = tuple(range(len(shape))) if axis is None else normalize_axis_tuple(axis, len(shape))
    remainder = [i for i in range(len(shape)) if i not in axes]
    if remainder:
        a = np.transpose(a, (*remainder, *axes))
    lanes = np.reshape(a, (*(shape[i] for i in remainder), math.prod(shape[i] for i in axes)))
    return lanes, tuple(1 if i in axes else n for i, n in enumerate(shape))


class _Ranked:
    """Values along the last axis by their ranks, perhaps only some of them; nan is the largest."""

    def __init__(self, lanes: Operand, *ranks: Operand) -> None:
        self.lanes, values = lanes, plain(lanes)
        requested = np.unique(
            [0, values.shape[-1] - 1, *(i for rank in ranks for i in np.ravel(rank))]
        )
        few = ranks and values.size and len(requested) < FEW
        self.order = (
            np.argpartition(values, requested, axis=-1) if few else np.argsort(values, axis=-1)
        )

    def __getitem__(self, ranks: Operand) -> Result:
        indices = np.take_along_axis(
            self.order,
            np.broadcast_to(ranks, (*self.order.shape[:-1], np.shape(ranks)[-1])),
            axis=-1,
        )
        return np.take_along_axis(self.lanes, indices, axis=-1)


def _counts(lanes: Operand, skip_nan: bool) -> Result:
    """Count the values of each lane."""
    if skip_nan:
        return np.count_nonzero(~np.isnan(plain(lanes)), axis=-1, keepdims=True)
    return np.full((1,) * np.ndim(lanes), np.shape(lanes)[-1])


def _or_nan(ranked: _Ranked, result: Operand, skip_nan: bool) -> Result:
    """Return the result, but nan for lanes that contain a nan, or with `skip_nan` only nan."""
    last = ranked[[-1]]
    spoilt = np.isnan(plain(ranked[[0]] if skip_nan else last))
    return np.where(spoilt, last, result) if np.any(spoilt) else result


def _quantile(lanes: Operand, q: Operand, method: str, skip_nan: bool) -> Result:
    """Compute quantiles of lanes by a method of Hyndman and Fan, along the last axis."""
    n = _counts(lanes, skip_nan)
    alpha, beta = _METHODS[method]
    position = (
        (n - 1) * q if (alpha, beta) == (1, 1) else n * q + (alpha + q * (1 - alpha - beta)) - 1
    )
    if method in _ROUNDED:
        position = _ROUNDED[method](plain(position))
    floor = np.floor(plain(position))
    lower, upper = (np.clip(i, 0, np.maximum(n - 1, 0)).astype(int) for i in (floor, floor + 1))
    ranked = _Ranked(lanes, lower, upper)
    below, above = ranked[lower], ranked[upper]
    share = position - floor
    step = above - below
    between = np.where(plain(share) >= 0.5, above - step * (1 - share), below + step * share)
    return _or_nan(ranked, np.where(lower == upper, below, between), skip_nan)


def _weighted_quantile(
    function: str, lanes: Operand, q: Operand, weights: Operand, skip_nan: bool
) -> Result:
    """Find the first element of each lane up to which the share of the weights is at least `q`;
    skip elements without a weight.
    """
    ranked, missing = _Ranked(lanes), np.isnan(plain(lanes))
    counted = np.where(missing, 0.0, weights) if skip_nan else weights
    reached = np.cumsum(np.take_along_axis(counted, ranked.order, axis=-1), axis=-1)
    none = skip_nan & np.all(missing, axis=-1)  # the result is nan
    total = np.where(none, 1.0, reached[..., -1])
    positive_finite.check(function, "the sum of weights", total)
    share = reached / total[..., None]
    share[share == 0] = -1.0
    rank = np.count_nonzero(share[..., None, :] < plain(q)[:, None], axis=-1)
    return _or_nan(ranked, ranked[np.minimum(rank, share.shape[-1] - 1)], skip_nan)


def _quantiles_first(
    result: Operand, front: tuple[int, ...], saved: tuple[int, ...], keepdims: bool
) -> Result:
    """Move quantiles from the last axis to the front, with reduced axes kept or dropped."""
    batch = np.shape(result)[:-1]
    return np.reshape(np.moveaxis(result, -1, 0), front + (saved if keepdims else batch))


def _median(
    function: Function, a: Operand, axis: Axis, out: Operand, keepdims: bool, skip_nan: bool
) -> Result:
    check_settings(function, out)
    lanes, saved = _lanes(as_operand(a, f"{function.__name__}: a"), axis)
    if not np.shape(lanes)[-1]:
        result = np.mean(lanes, axis=-1, keepdims=True)
    else:
        n = _counts(lanes, skip_nan)
        lower, upper = np.maximum(n - 1, 0) // 2, n // 2
        ranked = _Ranked(lanes, lower, upper)
        below = ranked[lower]
        result = _or_nan(
            ranked, np.where(lower == upper, below, 0.5 * (below + ranked[upper])), skip_nan
        )
    return delivered(function, out, _quantiles_first(result, (), saved, keepdims))


def _answer(function: Function, scale: float, skip_nan: bool) -> None:
    name = function.__name__
    inside = Domain(f"between 0 and {scale}", lambda q: (q >= 0) & (q <= scale))

    @composite(function)
    def answer(
        a: Operand,
        q: Operand,
        axis: Axis = None,
        out: Operand = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Operand = None,
        interpolation: str | None = None,
    ) -> Result:
        check_settings(function, out)
        if interpolation is not None:  # an argument before NumPy 2.4
            raise TypeError(
                f"{name}: interpolation is {interpolation!r}, but must be left out: its name is "
                "method!"
            )
        if method not in _METHODS:
            raise outside(name, "method", method, f"be one of {', '.join(_METHODS)}")
        a, q = as_operand(a, f"{name}: a"), as_operand(q, f"{name}: q")
        inside.check(name, "q", plain(q))
        lanes, saved = _lanes(a, axis)
        flat = np.ravel(q if scale == 1 else q / scale)
        if weights is None:
            result = _quantile(lanes, flat, method, skip_nan)
        else:
            result = _weighted_quantile(
                name, lanes, flat, _weight_lanes(name, weights, method, np.shape(a), axis), skip_nan
            )
        return delivered(function, out, _quantiles_first(result, np.shape(q), saved, keepdims))


def _weight_lanes(
    function: str, weights: Operand, method: str, shape: tuple[int, ...], axis: Axis
) -> Result:
    """Return the weights of all values, along a last axis as the values are."""
    if method != "inverted_cdf":
        raise outside(function, "method", method, "be 'inverted_cdf' where weights are given")
    weights = as_operand(weights, f"{function}: weights")
    if is_differentiable(weights):
        raise TypeError(f"{function}: weights holds variables, but must be data!")
    nonnegative.check(function, "weights", weights)
    return _lanes(np.broadcast_to(_weights_along(function, weights, shape, axis), shape), axis)[0]


for _function, _scale, _skip_nan in (
    (np.quantile, 1, False),
    (np.percentile, 100, False),
    (np.nanquantile, 1, True),
    (np.nanpercentile, 100, True),
):
    _answer(_function, _scale, _skip_nan)


@composite(np.median)
def median(
    a: Operand,
    axis: Axis = None,
    out: Operand = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Result:
    """Compute the median; of an even number of values the mean of the two in the middle."""
    return _median(np.median, a, axis, out, keepdims, False)


@composite(np.nanmedian)
def nanmedian(
    a: Operand,
    axis: Axis = None,
    out: Operand = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Result:
    """Compute the median of the values that are not nan."""
    return _median(np.nanmedian, a, axis, out, keepdims, True)
