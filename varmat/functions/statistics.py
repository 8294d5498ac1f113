"""NumPy's statistics written with differentiable functions: averages, covariances, quantiles."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from varmat.core.dispatch import plain
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_settings
from varmat.functions.composites import composite

__all__: list[str] = []


@composite(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The weighted mean, differentiable in values and weights."""
    a = as_operand(a, "average: a")
    if weights is None:
        result = np.mean(a, axis=axis, keepdims=keepdims)
        total: Any = np.size(a) / np.size(result)
    else:
        w = _weights_along(as_operand(weights, "average: weights"), np.shape(a), axis)
        total = np.sum(w, axis=axis, keepdims=keepdims)
        if np.any(total == 0):
            raise ZeroDivisionError("average: the weights sum to zero and cannot be normalized")
        result = np.sum(a * w, axis=axis, keepdims=keepdims) / total
    return (result, np.broadcast_to(total, np.shape(result))) if returned else result


def _weights_along(weights: Any, shape: tuple[int, ...], axis: Any) -> Any:
    if np.shape(weights) == shape:
        return weights
    if axis is None:
        raise ShapeError(f"average: weights has shape {np.shape(weights)}, but must have that of a, {shape}, without an axis!")
    axes = normalize_axis_tuple(axis, len(shape))
    if np.shape(weights) != tuple(shape[i] for i in axes):
        raise ShapeError(f"average: weights has shape {np.shape(weights)}, but must have that of a, {shape}, along axis {axis}!")
    weights = np.transpose(weights, np.argsort(axes))
    return np.reshape(weights, [n if i in axes else 1 for i, n in enumerate(shape)])


@composite(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables in rows (or in columns)."""
    check_settings(np.cov, dtype=dtype)
    x = _observations(m, rowvar)
    if y is not None:
        x = np.concatenate((x, _observations(y, rowvar)), axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = np.shape(x)[1]
    w: Any = np.ones(n) if fweights is None else np.asarray(fweights, dtype=float)
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and (np.shape(weights) != (n,) or np.any(plain(weights) < 0)):
            raise ShapeError(f"cov: {name} has shape {np.shape(weights)}, but must be a vector of {n} nonnegative numbers!")
    if aweights is not None:
        w = w * aweights
    total = np.sum(w)
    centred = x - (np.sum(x * w, axis=1) / total)[:, None]
    scale = total - (ddof if aweights is None else ddof * np.sum(w * aweights) / total)
    if scale <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        scale = 0.0
    return np.squeeze((centred * w) @ centred.T / scale)


def _observations(x: Any, rowvar: bool) -> Any:
    x = as_operand(x, "cov: the observations")
    if np.ndim(x) > 2:
        raise ShapeError(f"cov: the observations have shape {np.shape(x)}, but must have at most two dimensions!")
    return np.atleast_2d(x) if rowvar or np.ndim(x) < 2 else x.T


@composite(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlation matrix of variables in rows (or in columns)."""
    check_settings(np.corrcoef, dtype=dtype)
    c = np.cov(x, y, rowvar)
    if not np.ndim(c):
        return c / c
    scale = np.sqrt(np.diagonal(c))
    return np.clip(c / scale[:, None] / scale[None, :], -1.0, 1.0)


# Ranks up to which elements are not sorted for them: of 10^5 that takes a third of the time.
FEW = 12

# Virtual index of the quantile q among n sorted values: n q + alpha + q (1 - alpha - beta) - 1 (Hyndman & Fan 1996, sec. 2).
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
_ROUNDED: dict[str, Any] = {
    "lower": np.floor,
    "higher": np.ceil,
    "nearest": np.rint,
    "midpoint": lambda i: 0.5 * (np.floor(i) + np.ceil(i)),
    "inverted_cdf": np.ceil,
    "averaged_inverted_cdf": lambda i: 0.5 * (np.ceil(i) + np.floor(i + 1)),
}


def _lanes(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The values along a last axis that stands for all of `axis`, and the shape with these axes kept as ones."""
    a = as_operand(a, "quantile: a")
    shape = np.shape(a)
    axes = tuple(range(len(shape))) if axis is None else normalize_axis_tuple(axis, len(shape))
    rest = [i for i in range(len(shape)) if i not in axes]
    if rest:
        a = np.transpose(a, (*rest, *axes))
    lanes = np.reshape(a, (*(shape[i] for i in rest), math.prod(shape[i] for i in axes)))
    return lanes, tuple(1 if i in axes else n for i, n in enumerate(shape))


class _Ranked:
    """Values along the last axis by their ranks, of which only some are looked for; nan is the largest."""

    def __init__(self, lanes: Any, *ranks: Any) -> None:
        self.lanes, values = lanes, plain(lanes)
        wanted = np.unique([0, values.shape[-1] - 1, *(i for each in ranks for i in np.ravel(each))])
        few = values.size and len(wanted) < FEW
        self.order = np.argpartition(values, wanted, axis=-1) if few else np.argsort(values, axis=-1)

    def __getitem__(self, ranks: Any) -> Any:
        places = np.take_along_axis(self.order, np.broadcast_to(ranks, (*self.order.shape[:-1], np.shape(ranks)[-1])), axis=-1)
        return np.take_along_axis(self.lanes, places, axis=-1)


def _counts(lanes: Any, skip_nan: bool) -> Any:
    """How many values each lane has."""
    if skip_nan:
        return np.count_nonzero(~np.isnan(plain(lanes)), axis=-1, keepdims=True)
    return np.full((1,) * np.ndim(lanes), np.shape(lanes)[-1])


def _or_nan(ranked: _Ranked, result: Any, skip_nan: bool) -> Any:
    """nan for lanes with a nan among their values, or of nothing else."""
    last = ranked[[-1]]
    spoilt = np.isnan(plain(ranked[[0]] if skip_nan else last))
    return np.where(spoilt, last, result) if np.any(spoilt) else result


def _quantile(a: Any, q: Any, axis: Any, method: str, weights: Any, keepdims: bool, skip_nan: bool) -> Any:
    if method not in _METHODS or weights is not None:
        raise TypeError(f"quantile: method is {method!r}, but must be one of {', '.join(_METHODS)}, without weights!")
    q = as_operand(q, "quantile: q")
    if not np.all((plain(q) >= 0) & (plain(q) <= 1)):
        raise ValueError("Quantiles must be in the range [0, 1]")
    lanes, kept = _lanes(a, axis)
    n = _counts(lanes, skip_nan)
    alpha, beta = _METHODS[method]
    flat = np.ravel(q)
    position = (n - 1) * flat if (alpha, beta) == (1, 1) else n * flat + (alpha + flat * (1 - alpha - beta)) - 1
    if method in _ROUNDED:
        position = _ROUNDED[method](plain(position))
    floor = np.floor(plain(position))
    lower, upper = (np.clip(i, 0, np.maximum(n - 1, 0)).astype(int) for i in (floor, floor + 1))
    ranked = _Ranked(lanes, lower, upper)
    below, above = ranked[lower], ranked[upper]
    share = position - floor
    step = above - below
    between = np.where(plain(share) >= 0.5, above - step * (1 - share), below + step * share)
    result = _or_nan(ranked, np.where(lower == upper, below, between), skip_nan)
    return _placed(result, np.shape(q), kept, keepdims)


def _placed(result: Any, front: tuple[int, ...], kept: tuple[int, ...], keepdims: bool) -> Any:
    """Quantiles from the last axis to the front, reduced axes kept or dropped."""
    batch = np.shape(result)[:-1]
    return np.reshape(np.moveaxis(result, -1, 0), front + (kept if keepdims else batch))


def _median(a: Any, axis: Any, keepdims: bool, skip_nan: bool) -> Any:
    lanes, kept = _lanes(a, axis)
    if not np.shape(lanes)[-1]:
        return _placed(np.mean(lanes, axis=-1, keepdims=True), (), kept, keepdims)
    n = _counts(lanes, skip_nan)
    lower, upper = np.maximum(n - 1, 0) // 2, n // 2
    ranked = _Ranked(lanes, lower, upper)
    below = ranked[lower]
    result = np.where(lower == upper, below, 0.5 * (below + ranked[upper]))
    return _placed(_or_nan(ranked, result, skip_nan), (), kept, keepdims)


def _answer(function: Any, scale: float, skip_nan: bool) -> None:
    @composite(function)
    def answer(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Any:
        q = as_operand(q, f"{function.__name__}: q")
        return _quantile(a, q if scale == 1 else q / scale, axis, method, weights, keepdims, skip_nan)


for _function, _scale, _skip_nan in (
    (np.quantile, 1, False),
    (np.percentile, 100, False),
    (np.nanquantile, 1, True),
    (np.nanpercentile, 100, True),
):
    _answer(_function, _scale, _skip_nan)


@composite(np.median)
def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The median; of an even number of values the mean of the two in the middle."""
    return _median(a, axis, keepdims, False)


@composite(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The median of the values that are not nan."""
    return _median(a, axis, keepdims, True)
