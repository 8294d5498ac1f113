"""B-splines in their coefficients, knots and places, interpolation and least squares with them, and
interpolation on grids.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import (
    check_choice,
    check_values,
    in_the_name_of,
    integer,
    misfit,
    outside,
)
from varmat.functions.rarer.linalg.banded import solve_banded, solveh_banded
from varmat.functions.rarer.piecewise_polynomials import check_increasing, piecewise, series_of
from varmat.typing import Operand, Result, array_valued

__all__ = ["BSpline", "RegularGridInterpolator", "interpn", "make_interp_spline", "make_lsq_spline"]


def _intervals(k: int, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Find for each place the index of the knot before it; places beyond the ends belong to the
    outermost interval that counts.
    """
    return np.clip(np.searchsorted(t, x, side="right") - 1, k, t.size - k - 2)


def _basis(t: Operand, x: Operand, i: np.ndarray, k: int, nu: int) -> Result:
    """Compute the ``k + 1`` basis functions that are not zero, or their derivatives of the order
    `nu`, at each place; differentiable.

    By the recursion of Cox and de Boor over the degrees; the last steps are derivatives.
    """
    b: np.ndarray = np.ones((np.size(x), 1))
    nothing = np.zeros((np.size(x), 1))
    if nu > k:
        return np.zeros((np.size(x), k + 1))
    column = np.reshape(x, (-1, 1))
    for p in range(1, k + 1):
        low, high = t[i[:, None] + np.arange(1 - p, 1)], t[i[:, None] + np.arange(1, p + 1)]
        share = b / (high - low)
        rising, falling = (
            ((column - low) * share, (high - column) * share)
            if p <= k - nu
            else (p * share, -p * share)
        )
        b = np.concatenate([falling, nothing], axis=1) + np.concatenate([nothing, rising], axis=1)
    return b


def _check_knots(function: str, k: int, t: Operand) -> None:
    wrong = np.flatnonzero(~(np.diff(t) >= 0.0))
    if wrong.size:
        i = int(wrong[0])
        raise DomainError(
            f"{function}: t[{i + 1}] is {t[i + 1]}, but must not be smaller than t[{i}], which is "
            f"{t[i]}!"
        )
    if k and (not t[k] < t[k + 1] or not t[-k - 2] < t[-k - 1]):
        raise DomainError(
            f"{function}: the first or last interval has no length, but must have one!"
        )


class BSpline:
    """A spline as a sum of B-splines: `scipy.interpolate.BSpline`.

    Parameters
    ----------
    t : array_like, shape (n + k + 1,)
        The knots, none smaller than the one before.
    c : array_like, with length n, or more, along `axis`
        The coefficients.
    k : int
        The degree.
    extrapolate : bool or 'periodic'
        Whether the outermost polynomials go on beyond the ends, or everything is repeated;
        otherwise it is nan there.
    axis : int

    Raises
    ------
    ShapeError
        If coefficients and knots do not go together.
    DomainError
        If the knots decrease, or the outermost interval has no length.

    Notes
    -----
    The recursion of Cox and de Boor [1]_, in all places at once. Differentiable in the knots, the
    coefficients and the places. At a knot the derivative is that to the right.

    References
    ----------
    .. [1] Carl de Boor, "A Practical Guide to Splines", Springer, 1978, chapter X.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> t = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0])
    >>> vm.gradient(lambda c: vm.BSpline(t, c, 2)(0.5), np.ones(4))
    array([0.25 , 0.625, 0.125, 0.   ])
    """

    def __init__(
        self, t: Operand, c: Operand, k: int, extrapolate: bool | str | None = True, axis: int = 0
    ) -> None:
        k = integer("BSpline", "k", k)
        t = as_operand(t, "BSpline: t")
        if k < 0:
            raise DomainError(f"BSpline: k is {k}, but must not be negative!")
        if np.ndim(t) != 1 or np.size(t) < 2 * k + 2:
            raise misfit(
                "BSpline", "t", np.shape(t), f"be a vector of at least {2 * k + 2} elements"
            )
        check_choice("BSpline", "extrapolate", extrapolate, True, False, "periodic")
        check_values(partial(_check_knots, "BSpline", k), t)
        c = as_operand(c, "BSpline: c")
        if not np.ndim(c) or np.shape(c)[axis] < np.size(t) - k - 1:
            raise misfit(
                "BSpline", "c", np.shape(c), f"have {np.size(t) - k - 1} elements along the axis"
            )
        self._series, self._settings, self.axis = series_of("BSpline", c, np.shape(c)[axis], axis)
        self.t, self.c, self.k, self.extrapolate = t, c, k, extrapolate

    def __call__(self, x: Operand, nu: int = 0, extrapolate: bool | str | None = None) -> Result:
        """Evaluate the spline, or its derivative of the order `nu`, at the places `x`, which may
        have any shape.
        """
        t, k = self.t, self.k

        def spline(flat: Operand) -> Result:
            i = check_values(partial(_intervals, k), t, flat)
            b = _basis(t, flat, i, k, int(nu))
            return np.einsum("nj,njd->nd", b, self._series[i[:, None] + np.arange(-k, 1)])

        return piecewise(
            spline,
            as_operand(x, "BSpline: x"),
            (t[k], t[np.size(t) - k - 1]),
            self.extrapolate if extrapolate is None else extrapolate,
            self._settings,
            self.axis,
        )

    def derivative(self, nu: int = 1) -> BSpline:
        """Make the derivative of the order `nu`, a spline of lower degree."""
        t, k, c = self.t, self.k, self._series[: np.size(self.t) - self.k - 1]
        for _ in range(nu):
            if not k:
                c = 0.0 * c
                break
            span = t[k + 1 : -1] - t[1 : np.size(t) - k - 1]
            empty = span == 0.0
            rise = k * np.diff(c, axis=0) / np.reshape(np.where(empty, 1.0, span), (-1, 1))
            c = np.where(np.reshape(empty, (-1, 1)), 0.0, rise)
            t, k = t[1:-1], k - 1
        values = np.moveaxis(np.reshape(c, (np.shape(c)[0], *self._settings)), 0, self.axis)
        return BSpline(t, values, k, self.extrapolate, self.axis)

    @staticmethod
    def design_matrix(x: Operand, t: Operand, k: int) -> Result:
        """Compute the values of all B-splines at the places, shape ``(len(x), len(t) - k - 1)``: a
        matrix that is not sparse.
        """
        t, x = as_operand(t, "BSpline: t"), as_operand(x, "BSpline: x")
        i = check_values(partial(_intervals, k), t, x)
        return _spread(_basis(t, x, i, k, 0), i - k, np.size(t) - k - 1)


def _spread(rows: Operand, first: np.ndarray, n: int) -> Result:
    """Return full rows of a matrix from their neighbouring elements, from the column `first` on."""
    m, width = np.shape(rows)
    at = np.arange(n) - first[:, None]
    inside = (at >= 0) & (at < width)
    flat = np.reshape(rows, (-1,))
    return np.where(inside, flat[np.where(inside, at + width * np.arange(m)[:, None], 0)], 0.0)


def _banded(rows: Operand, first: np.ndarray) -> tuple[int, int, Result]:
    """Store a square matrix given by such rows in banded storage: return the numbers of diagonals,
    and their elements.
    """
    n, width = np.shape(rows)
    lower, upper = int(np.max(np.arange(n) - first)), int(np.max(first + width - 1 - np.arange(n)))
    lower, upper = max(lower, 0), max(upper, 0)
    i = np.arange(lower + upper + 1)[:, None] + np.arange(n) - upper  # each element's row
    row = np.clip(i, 0, n - 1)
    at = np.arange(n) - first[row]
    inside = (i == row) & (at >= 0) & (at < width)
    flat = np.reshape(rows, (-1,))
    return lower, upper, np.where(inside, flat[np.where(inside, row * width + at, 0)], 0.0)


def _knots_for(x: Operand, k: int, augmented: bool) -> Result:
    """SciPy's choice of knots: all places but some near the ends; for even degrees those halfway
    between places.
    """
    if augmented:
        return np.concatenate([x[:1]] * k + [x] + [x[-1:]] * k)
    half = (k + 1) // 2 if k % 2 else k // 2
    inner = (
        x[half : np.size(x) - half]
        if k % 2
        else ((x[1:] + x[:-1]) / 2.0)[half : np.size(x) - 1 - half]
    )
    return np.concatenate([x[:1]] * (k + 1) + [inner] + [x[-1:]] * (k + 1))


_ALIASES: dict[str, list[tuple[int, float]]] = {
    "clamped": [(1, 0.0)],
    "natural": [(2, 0.0)],
    "not-a-knot": [],
}


def _conditions(side: Operand) -> list[tuple[int, Result]]:
    """Return the orders of the derivatives given at an end, and their values."""
    if side is None:
        return []
    if isinstance(side, str):
        if side not in _ALIASES:
            conditions = (
                "None, 'not-a-knot', 'clamped', 'natural' or pairs of lists of an order and a value"
            )
            raise outside("make_interp_spline", "bc_type", side, f"be {conditions}")
        return list(_ALIASES[side])
    return [(integer("make_interp_spline", "the order", order), value) for order, value in side]


def make_interp_spline(
    x: Operand,
    y: Operand,
    k: int = 3,
    t: Operand = None,
    bc_type: str | tuple[Operand, Operand] | None = None,
    axis: int = 0,
) -> BSpline:
    """Make the spline of a degree through given values: `scipy.interpolate.make_interp_spline`.

    Parameters
    ----------
    x : array_like, shape (n,)
        Places, which increase.
    y : array_like, with length n along `axis`
        The values there.
    k : int
        The degree.
    t : array_like, optional
        The knots; by default as SciPy chooses them.
    bc_type : str, or a pair of lists of (order, value), optional
        Derivatives that are given at the two ends, see SciPy; None is for none.
    axis : int

    Returns
    -------
    BSpline

    Raises
    ------
    ShapeError
        If values and places do not go together, or there are not as many conditions as
        coefficients.
    DomainError
        If the places do not increase, `bc_type` is unknown, or the system is singular.

    Notes
    -----
    The coefficients solve a banded system, and so does the derivative: with respect to the values,
    the places, the knots, and the given derivatives.

    References
    ----------
    * Carl de Boor, A Practical Guide to Splines.
    * SciPy reference, `scipy.interpolate.make_interp_spline`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> vm.gradient(lambda y: vm.make_interp_spline(x, y)(0.5), np.zeros(4)).round(12)
    array([ 0.3125,  0.9375, -0.3125,  0.0625])
    """
    x = check_increasing("make_interp_spline", "x", x)
    k, n = integer("make_interp_spline", "k", k), np.size(x)
    y, remainder, axis = series_of("make_interp_spline", y, n, axis)
    pair = (bc_type, bc_type) if bc_type is None or isinstance(bc_type, str) else bc_type
    start, end = map(_conditions, pair)
    if t is None:
        if n <= k:
            raise ShapeError(
                f"make_interp_spline: x has {n} elements, but must have more than the degree, {k}!"
            )
        t = _knots_for(x, k, bool(start or end)) if k else np.concatenate([x, x[-1:]])
    t = as_operand(t, "make_interp_spline: t")
    count = np.size(t) - k - 1
    if count != n + len(start) + len(end):
        counts = f"{n} values and {len(start) + len(end)} derivatives are given"
        raise ShapeError(
            f"make_interp_spline: {counts}, but there must be {count} of both, one for "
            "each coefficient!"
        )
    i = check_values(partial(_intervals, k), t, x)
    rows = [_basis(t, x[:1], i[:1], k, order) for order, _ in start] + [_basis(t, x, i, k, 0)]
    rows += [_basis(t, x[-1:], i[-1:], k, order) for order, _ in end]
    first = np.concatenate([i[:1]] * len(start) + [i] + [i[-1:]] * len(end)) - k
    values = [[_row(value, remainder) for _, value in side] for side in (start, end)]
    lower, upper, bands = _banded(np.concatenate(rows), first)
    c = solve_banded((lower, upper), bands, np.concatenate([*values[0], y, *values[1]]))
    return BSpline(t, np.moveaxis(np.reshape(c, (count, *remainder)), 0, axis), k, axis=axis)


def _row(value: Operand, others: tuple[int, ...]) -> Result:
    return np.reshape(as_operand(value, "make_interp_spline: bc_type") + np.zeros(others), (1, -1))


def make_lsq_spline(
    x: Operand, y: Operand, t: Operand, k: int = 3, w: Operand = None, axis: int = 0
) -> BSpline:
    """Make the spline with given knots that is nearest to values, by weighted least squares:
    `scipy.interpolate.make_lsq_spline`.

    Parameters
    ----------
    x : array_like, shape (m,)
        Places, which increase.
    y : array_like, with length m along `axis`
        The values there.
    t : array_like, shape (n + k + 1,)
        The knots; the outermost ones must be repeated.
    k : int
        The degree.
    w : array_like, shape (m,), optional
        Weights of the differences, before they are squared.
    axis : int

    Returns
    -------
    BSpline

    Raises
    ------
    ShapeError
        If values, weights and places do not go together.
    DomainError
        If the places do not increase, or do not determine the coefficients.

    Notes
    -----
    The coefficients solve the normal equations, a positive definite banded system, as in SciPy; so
    does the derivative.

    References
    ----------
    * Carl de Boor, A Practical Guide to Splines.
    * SciPy reference, `scipy.interpolate.make_lsq_spline`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> t = np.array([0.0, 0.0, 3.0, 3.0])
    >>> start = lambda y: vm.make_lsq_spline(np.arange(4.0), y, t, 1)(0.0)
    >>> vm.gradient(start, np.zeros(4)).round(12)
    array([ 0.7,  0.4,  0.1, -0.2])
    """
    x = check_increasing("make_lsq_spline", "x", x)
    k = integer("make_lsq_spline", "k", k)
    y, remainder, axis = series_of("make_lsq_spline", y, np.size(x), axis)
    t = as_operand(t, "make_lsq_spline: t")
    w = np.ones(np.size(x)) if w is None else as_operand(w, "make_lsq_spline: w")
    if np.shape(w) != np.shape(x):
        raise misfit("make_lsq_spline", "w", np.shape(w), f"have shape {np.shape(x)}, as x")
    design = np.reshape(w, (-1, 1)) * BSpline.design_matrix(x, t, k)
    gram = design.T @ design
    n = np.size(t) - k - 1
    bands = [
        np.concatenate([np.diagonal(gram, j), np.zeros(min(j, n))]) for j in range(min(k + 1, n))
    ]
    c = solveh_banded(np.stack(bands), design.T @ (np.reshape(w, (-1, 1)) * y), lower=True)
    return BSpline(t, np.moveaxis(np.reshape(c, (n, *remainder)), 0, axis), k, axis=axis)


# --- grids ---


class RegularGridInterpolator:
    """Linear interpolation between the points of a grid:
    `scipy.interpolate.RegularGridInterpolator`.

    Parameters
    ----------
    points : sequence of array_like
        The coordinates of the grid along each axis, which increase.
    values : array_like, shape (m_1, ..., m_d, ...)
        The values at the points of the grid.
    method : {'linear', 'nearest'}
    bounds_error : bool
        Whether a place outside the grid is refused.
    fill_value : float, optional
        What is returned there otherwise; None is to extrapolate.

    Raises
    ------
    ShapeError
        If values and coordinates do not go together.
    DomainError
        If coordinates do not increase, a place is outside of them, or `method` is unknown.

    Notes
    -----
    Differentiable in the values, the places and the coordinates. At a point of the grid the
    derivative belongs to the cell behind it; 'nearest' has a derivative only in the values.

    References
    ----------
    SciPy reference, `scipy.interpolate.RegularGridInterpolator`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x, y = np.array([0.0, 1.0]), np.array([0.0, 2.0])
    >>> f = vm.RegularGridInterpolator((x, y), np.array([[1.0, 3.0], [2.0, 8.0]]))
    >>> vm.gradient(lambda p: f(p)[0], np.array([0.5, 0.5]))
    array([2., 2.])
    """

    def __init__(
        self,
        points: Operand,
        values: Operand,
        method: str = "linear",
        bounds_error: bool = True,
        fill_value: Operand = np.nan,
    ) -> None:
        check_choice("RegularGridInterpolator", "method", method, "linear", "nearest")
        self.grid = tuple(
            check_increasing("RegularGridInterpolator", f"points[{i}]", p, 1)
            for i, p in enumerate(points)
        )
        self.values = as_operand(values, "RegularGridInterpolator: values")
        sizes = tuple(map(np.size, self.grid))
        if np.shape(self.values)[: len(sizes)] != sizes:
            raise misfit(
                "RegularGridInterpolator", "values", np.shape(self.values), f"begin with {sizes}"
            )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value

    def __call__(self, xi: Operand, method: str | None = None) -> Result:
        """Compute the values at the places `xi`, whose last axis has their coordinates; or a tuple
        of arrays of coordinates.
        """
        if isinstance(xi, tuple):
            arrays = [as_operand(x, "RegularGridInterpolator: xi") for x in xi]
            shape = np.broadcast_shapes(*map(np.shape, arrays))
            xi = np.stack([np.broadcast_to(x, shape) for x in arrays], axis=-1)
        xi = as_operand(xi, "RegularGridInterpolator: xi")
        count = len(self.grid)
        xi = np.reshape(xi, (-1, 1)) if count == 1 and np.ndim(xi) == 1 else xi
        if not np.ndim(xi) or np.shape(xi)[-1] != count:
            raise ShapeError(
                f"RegularGridInterpolator: xi has shape {np.shape(xi)}, but its last axis must "
                f"have length {count}!"
            )
        # A single place counts as one row, as in SciPy.
        outer_shape = np.shape(xi)[:-1] or (1,)
        flat = np.reshape(xi, (-1, count))
        outside: Result = False
        corners, shares = [], []
        for d, p in enumerate(self.grid):
            x = flat[:, d]
            if self.bounds_error:
                check_values(partial(_check_inside, d), p, x)
            outside = outside | (x < p[0]) | (x > p[-1])
            i = check_values(_cells, p, x)
            j = np.minimum(i + 1, np.size(p) - 1)
            width = p[j] - p[i] if np.size(p) > 1 else 1.0
            corners.append((i, j))
            shares.append((x - p[i]) / width)
        r = (
            self._nearest(corners, shares)
            if (method or self.method) == "nearest"
            else self._mean(corners, shares)
        )
        if self.fill_value is not None and not self.bounds_error:
            r = np.where(np.reshape(outside, (-1,) + (1,) * (np.ndim(r) - 1)), self.fill_value, r)
        return np.reshape(r, outer_shape + np.shape(self.values)[count:])

    def _mean(self, corners: Operand, shares: Operand) -> Result:
        r: Result = 0.0
        shape = (-1,) + (1,) * (np.ndim(self.values) - len(self.grid))
        for choice in product((0, 1), repeat=len(self.grid)):
            weight: Result = 1.0
            for share, side in zip(shares, choice, strict=True):
                weight = weight * (share if side else 1.0 - share)
            r = (
                r
                + np.reshape(weight, shape)
                * self.values[tuple(c[side] for c, side in zip(corners, choice, strict=True))]
            )
        return r

    def _nearest(self, corners: Operand, shares: Operand) -> Result:
        chosen = [
            np.where(check_values(_is_low, s), i, j)
            for (i, j), s in zip(corners, shares, strict=True)
        ]
        return self.values[tuple(chosen)]


def _is_low(share: Operand) -> Result:
    return share <= 0.5


def _cells(p: Operand, x: Operand) -> Result:
    return np.clip(np.searchsorted(p, x, side="right") - 1, 0, max(p.size - 2, 0))


def _check_inside(d: int, p: Operand, x: Operand) -> None:
    wrong = np.flatnonzero((x < p[0]) | (x > p[-1]))
    if wrong.size:
        i = int(wrong[0])
        raise DomainError(
            f"RegularGridInterpolator: xi[{i}, {d}] is {x[i]}, but must be between {p[0]} and "
            f"{p[-1]}!"
        )


@array_valued
def interpn(
    points: Operand,
    values: Operand,
    xi: Operand,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Operand = np.nan,
) -> Result:
    """Interpolation on a grid: `scipy.interpolate.interpn`.

    Parameters
    ----------
    points, values, method, bounds_error, fill_value
        As for `RegularGridInterpolator`.
    xi : array_like, shape (..., d)
        The places.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If values, coordinates and places do not go together.
    DomainError
        If coordinates do not increase, a place is outside of them, or `method` is unknown.

    Notes
    -----
    What `RegularGridInterpolator` gives at the places, and so is the derivative.

    References
    ----------
    SciPy reference, `scipy.interpolate.interpn`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> grid = [0.0, 1.0], [0.0, 1.0]
    >>> vm.gradient(lambda v: vm.interpn(grid, v, [0.5, 0.25])[0], np.zeros((2, 2)))
    array([[0.375, 0.125],
           [0.375, 0.125]])
    """
    if not isinstance(points, (list, tuple)):
        raise TypeError(
            f"interpn: points is a {type(points).__name__}, but must be a list or tuple of vectors!"
        )
    with in_the_name_of("interpn"):
        return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
