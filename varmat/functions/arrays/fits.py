"""Histograms of weighted data and polynomials through data: `numpy.histogram` and
`numpy.polyfit`.
"""

from __future__ import annotations

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand, is_differentiable
from varmat.functions.arrays.composites import composite
from varmat.functions.checks import integer, misfit
from varmat.functions.linalg.least_squares import lstsq_solution
from varmat.typing import ArrayLike, Operand, Plain, Result, Setting


@composite(np.histogram)
def histogram(
    a: Operand,
    bins: Setting = 10,
    range: tuple[float, float] | None = None,
    density: bool | None = None,
    weights: Operand = None,
) -> Result:
    """Sum the weights in bins, which have derivatives; the data and the bins have none."""
    if is_differentiable(a) or is_differentiable(bins) or is_differentiable(range):
        raise TypeError(
            "histogram: the data or the bins are variables, and counts have no derivative; pass "
            "the plain numbers, varmat.value(x); the weights may be variables"
        )
    a, weights = np.ravel(a), as_operand(weights, "histogram: weights")
    if np.size(weights) != a.size:
        raise misfit(
            "histogram",
            "weights",
            np.shape(weights),
            f"have as many elements as the data, {a.size}",
        )
    edges = np.histogram_bin_edges(a, bins, range)
    count = edges.size - 1
    # The last bin includes both its ends. Data outside all bins go into one more, which is left
    # out.
    place: Plain = np.searchsorted(edges, a, side="right") - 1
    place = np.where(a == edges[-1], count - 1, place)
    place = np.where((place < 0) | (place >= count), count, place)
    sums = np.bincount(place, np.ravel(weights), count + 1)[:count]
    return (sums / np.diff(edges) / np.sum(sums) if density else sums), edges


@composite(np.polyfit)
def polyfit(
    x: Operand,
    y: Operand,
    deg: int,
    rcond: ArrayLike | None = None,
    full: bool = False,
    w: Operand = None,
    cov: bool | str = False,
) -> Result:
    """Fit the coefficients of a polynomial to data by least squares; differentiable in the data,
    the abscissas and the weights.
    """
    if full or rcond is not None:
        raise TypeError("polyfit: full or rcond is given, but must be left out for variables!")
    x, y = as_operand(x, "polyfit: x"), as_operand(y, "polyfit: y")
    deg = integer("polyfit", "deg", deg)
    if deg < 0:
        raise DomainError(f"polyfit: deg is {deg}, but must not be negative!")
    if np.ndim(x) != 1 or np.ndim(y) not in (1, 2) or np.shape(y)[0] != np.size(x):
        raise ShapeError(
            f"polyfit: x has shape {np.shape(x)}, y has shape {np.shape(y)}, but they must have "
            "the same number of rows!"
        )
    if np.size(x) <= deg:
        raise ShapeError(
            f"polyfit: there are {np.size(x)} points, but there must be more than the degree, "
            f"{deg}!"
        )
    design: np.ndarray = np.vander(x, deg + 1)
    if w is not None:
        w = as_operand(w, "polyfit: w")
        if np.shape(w) != np.shape(x):
            raise misfit("polyfit", "w", np.shape(w), f"have shape {np.shape(x)}, as x")
        design, y = design * w[:, None], y * (w if np.ndim(y) == 1 else w[:, None])
    # As in NumPy, the columns are scaled to length one.
    scale = np.sqrt(np.sum(design * design, axis=0))
    design = design / scale
    c = lstsq_solution(design, y)[0]
    c = c / scale if np.ndim(c) == 1 else c / scale[:, None]
    return (c, _covariance(design, scale, y, c, cov)) if cov else c


def _covariance(design: Operand, scale: Operand, y: Operand, c: Operand, cov: bool | str) -> Result:
    m, n = np.shape(design)
    base = np.linalg.inv(design.T @ design) / (scale[:, None] * scale)
    factor: Result = 1.0
    if not (isinstance(cov, str) and cov == "unscaled"):
        if m <= n:
            raise ShapeError(
                f"polyfit: there are {m} points, but for a covariance there must be more than {n}!"
            )
        remainder = y - design @ (c * scale if np.ndim(c) == 1 else c * scale[:, None])
        factor = np.sum(remainder * remainder, axis=0) / (m - n)
    return base * factor if np.ndim(y) == 1 else base[:, :, None] * factor
