"""Interpolation by cubic splines, in the values, the knots and the places at once: classes with the
names of SciPy.
"""

from __future__ import annotations

import numpy as np

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand
from varmat.functions.checks import check_choice, check_values, outside
from varmat.functions.rarer.linalg.banded import solve_banded
from varmat.functions.rarer.piecewise_polynomials import PPoly, check_increasing, series_of
from varmat.typing import Operand, Result

__all__ = ["Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PchipInterpolator"]


def _hermite(x: Operand, y: Operand, slopes: Operand) -> Result:
    """Compute the coefficients of the cubics with given values and slopes at the knots."""
    h = np.diff(x)[:, None]
    secant = np.diff(y, axis=0) / h
    excess = (slopes[:-1] + slopes[1:] - 2.0 * secant) / h
    return np.stack([excess / h, (secant - slopes[:-1]) / h - excess, slopes[:-1], y[:-1]])


class CubicHermiteSpline(PPoly):
    """Piecewise cubics with given values and slopes: `scipy.interpolate.CubicHermiteSpline`.

    Parameters
    ----------
    x : array_like, shape (n,)
        The knots, which increase.
    y, dydx : array_like, with length n along `axis`
        Values and slopes there.
    axis : int
    extrapolate : bool or 'periodic'
        See `PPoly`.

    Raises
    ------
    ShapeError
        If values, slopes and knots do not go together.
    DomainError
        If the knots do not increase.

    Notes
    -----
    Differentiable in everything; see `PPoly` for the methods.

    References
    ----------
    SciPy reference, `scipy.interpolate.CubicHermiteSpline`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.CubicHermiteSpline([0.0, 1.0], y, np.zeros(2))(0.25), np.ones(2))
    array([0.84375, 0.15625])
    """

    def __init__(
        self,
        x: Operand,
        y: Operand,
        dydx: Operand,
        axis: int = 0,
        extrapolate: bool | str | None = None,
    ) -> None:
        x = check_increasing("CubicHermiteSpline", "x", x)
        y, remainder, axis = series_of("CubicHermiteSpline", y, np.size(x), axis)
        slopes, other, _ = series_of("CubicHermiteSpline", dydx, np.size(x), axis)
        if remainder != other:
            raise ShapeError("CubicHermiteSpline: dydx must have the shape of y!")
        self._set(_hermite(x, y, slopes), x, remainder, axis, extrapolate)


class CubicSpline(PPoly):
    """The cubic spline through given values, with two continuous derivatives:
    `scipy.interpolate.CubicSpline`.

    Parameters
    ----------
    x : array_like, shape (n,)
        The knots, which increase.
    y : array_like, with length n along `axis`
    axis : int
    bc_type : str, or a pair of str or (order, value)
        What is demanded at the two ends: 'not-a-knot', 'clamped', 'natural', a value of the first
        or second derivative, which may be a variable, or 'periodic'.
    extrapolate : bool or 'periodic', optional
        See `PPoly`; by default True, and 'periodic' for a periodic spline.

    Raises
    ------
    ShapeError
        If values and knots do not go together.
    DomainError
        If the knots do not increase, `bc_type` is unknown, or for a periodic spline the values at
        the ends differ.

    Notes
    -----
    The slopes at the knots solve a tridiagonal system [1]_; so is the derivative, which is had with
    respect to the values, the knots, the conditions and the places. See `PPoly` for the methods.

    References
    ----------
    .. [1] Carl de Boor, "A Practical Guide to Splines", Springer, 1978, chapter IV.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> vm.gradient(lambda y: vm.CubicSpline(x, y, bc_type="natural")(0.5), np.zeros(4)).round(12)
    array([ 0.4  ,  0.725, -0.15 ,  0.025])
    """

    def __init__(
        self,
        x: Operand,
        y: Operand,
        axis: int = 0,
        bc_type: str | tuple[Operand, Operand] = "not-a-knot",
        extrapolate: bool | str | None = None,
    ) -> None:
        x = check_increasing("CubicSpline", "x", x)
        y, remainder, axis = series_of("CubicSpline", y, np.size(x), axis)
        h = np.diff(x)
        secants = np.diff(y, axis=0) / h[:, None]
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        if periodic:
            check_values(_check_periodic, y)
            slopes = _periodic_slopes(h, secants)
        else:
            pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
            start, end = (_condition(item, remainder) for item in pair)
            slopes = _slopes(h, secants, start, end)
        extrapolate = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        self._set(_hermite(x, y, slopes), x, remainder, axis, extrapolate)


def _check_periodic(y: Operand) -> None:
    if not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
        raise DomainError(
            "CubicSpline: the first and the last of y differ, but must be the same for a periodic "
            "spline!"
        )


def _condition(kind: str | tuple[int, Operand], others: tuple[int, ...]) -> tuple[int, Result]:
    """Return the order of the derivative given at an end, and its value as a row; the order 3
    stands for "not a knot".
    """
    conditions = {"not-a-knot": (3, 0.0), "clamped": (1, 0.0), "natural": (2, 0.0)}
    order, value = conditions.get(kind, (0, 0.0)) if isinstance(kind, str) else kind
    if order not in (1, 2, 3) or (order == 3 and not isinstance(kind, str)):
        rule = (
            "'not-a-knot', 'clamped', 'natural', 'periodic' or pairs of an order, 1 or 2, and a "
            "value"
        )
        raise outside("CubicSpline", "bc_type", kind, f"be of {rule}")
    value = as_operand(value, "CubicSpline: bc_type")
    return order, np.reshape(value + np.zeros(others), (1, -1))


def _slopes(h: Operand, secants: Operand, start: Operand, end: Operand) -> Result:
    """Compute the slopes at the knots, with a condition at each end."""
    n = np.shape(secants)[0] + 1
    inside = 3.0 * (h[1:, None] * secants[:-1] + h[:-1, None] * secants[1:])
    parabola = n == 3 and start[0] == end[0] == 3
    first = _end(start, h[:2], secants[:2], -1.0, parabola)
    last = _end(end, h[-2:][::-1], secants[-2:][::-1], 1.0, parabola)
    nothing = np.zeros(1)
    bands = np.stack([
        np.concatenate([nothing, first[1], h[:-1]]),
        np.concatenate([first[0], 2.0 * (h[:-1] + h[1:]), last[0]]),
        np.concatenate([h[1:], last[1], nothing]),
    ])  # fmt: skip
    return solve_banded((1, 1), bands, np.concatenate([first[2], inside, last[2]]))


def _end(
    condition: Operand, h: Operand, secants: Operand, sign: float, parabola: bool
) -> tuple[Result, Result, Result]:
    """Return the equation at an end: the coefficients of the slopes there and at the next knot, and
    the right-hand side.
    """
    (order, value), one = condition, np.ones(1)
    if parabola:
        return one, one, 2.0 * secants[:1]
    if order == 3 and np.shape(h)[0] == 1:  # two knots: a straight line
        return one, np.zeros(1), secants[:1]
    if order == 3:
        width = h[:1] + h[1:]
        return (
            h[1:],
            width,
            ((h[:1] + 2.0 * width) * h[1:] * secants[:1] + h[:1] ** 2 * secants[1:]) / width,
        )
    if order == 1:
        return one, np.zeros(1), value
    return 2.0 * h[:1], h[:1], sign * 0.5 * value * h[:1] ** 2 + 3.0 * secants[:1] * h[:1]


def _periodic_slopes(h: Operand, secants: Operand) -> Result:
    """Compute the slopes of a periodic spline, whose last slope is the first: solve two tridiagonal
    systems with one unknown less.
    """
    m, d = np.shape(secants)
    if m == 1:
        return np.zeros((2, d))
    if m == 2:
        common = np.sum(secants / h[:, None], axis=0) / np.sum(1.0 / h)
        return np.stack([common, common, common])
    before, wide = np.concatenate([h[-1:], h[:-1]]), h[:, None]
    earlier = np.concatenate([secants[-1:], secants[:-1]])
    right = 3.0 * (before[:, None] * secants + wide * earlier)
    diagonal = 2.0 * (before + h)
    # Equation i is h[i] s[i - 1] + diagonal[i] s[i] + before[i] s[i + 1] = right[i]. The last
    # unknown is eliminated.
    nothing = np.zeros(1)
    bands = np.stack([
        np.concatenate([nothing, before[: m - 2]]), diagonal[: m - 1],
         np.concatenate([h[1 : m - 1], nothing])
    ])  # fmt: skip
    corner = np.concatenate([-h[:1], np.zeros(m - 3), -before[m - 2 : m - 1]])
    both = solve_banded((1, 1), bands, np.concatenate([right[: m - 1], corner[:, None]], axis=1))
    fixed, response = both[:, :d], both[:, d:]
    last = (right[m - 1 :] - before[m - 1] * fixed[:1] - h[m - 1] * fixed[m - 2 :]) / (
        diagonal[m - 1] + before[m - 1] * response[:1] + h[m - 1] * response[m - 2 :]
    )
    slopes = fixed + response * last
    return np.concatenate([slopes, last, slopes[:1]])


class PchipInterpolator(PPoly):
    """Piecewise cubics that are monotonic where the values are:
    `scipy.interpolate.PchipInterpolator`.

    Parameters
    ----------
    x : array_like, shape (n,)
        The knots, which increase.
    y : array_like, with length n along `axis`
    axis : int
    extrapolate : bool, optional

    Raises
    ------
    ShapeError
        If values and knots do not go together.
    DomainError
        If the knots do not increase.

    Notes
    -----
    A slope is a weighted harmonic mean of those to both sides, or zero where these have not the
    same sign [1]_: at this kink the derivative is zero. See `PPoly` for the
    methods.

    References
    ----------
    .. [1] F. N. Fritsch and J. Butland, "A method for constructing local monotone piecewise cubic
       interpolants", SIAM Journal on Scientific and Statistical Computing 5, 1984.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> vm.gradient(lambda y: vm.PchipInterpolator(x, y)(0.5), np.array([0.0, 1.0, 3.0])).round(12)
    array([ 0.42361111,  0.66666667, -0.09027778])
    """

    def __init__(
        self, x: Operand, y: Operand, axis: int = 0, extrapolate: bool | str | None = None
    ) -> None:
        x = check_increasing("PchipInterpolator", "x", x)
        y, remainder, axis = series_of("PchipInterpolator", y, np.size(x), axis)
        h = np.diff(x)[:, None]
        secants = np.diff(y, axis=0) / h
        self._set(_hermite(x, y, _monotone(h, secants)), x, remainder, axis, extrapolate)


def _monotone(h: Operand, m: Operand) -> Result:
    if np.shape(m)[0] == 1:
        return np.concatenate([m, m])
    bent = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0.0) | (m[:-1] == 0.0)
    left, right = (np.where(bent, 1.0, x) for x in (m[:-1], m[1:]))
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    inside = np.where(bent, 0.0, (w1 + w2) / (w1 / left + w2 / right))
    ends = [_one_sided(h[i], h[j], m[i], m[j])[None] for i, j in ((0, 1), (-1, -2))]
    return np.concatenate([ends[0], inside, ends[1]])


def _one_sided(h0: Operand, h1: Operand, m0: Operand, m1: Operand) -> Result:
    """Compute the slope at an end from three points, limited so that the interpolant keeps their
    shape.
    """
    d = ((2.0 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3.0 * np.abs(m0))
    return np.where(np.sign(d) != np.sign(m0), 0.0, np.where(steep, 3.0 * m0, d))


class Akima1DInterpolator(PPoly):
    """Akima's piecewise cubics, whose slopes depend on the nearest values alone:
    `scipy.interpolate.Akima1DInterpolator`.

    Parameters
    ----------
    x : array_like, shape (n,)
        The knots, which increase.
    y : array_like, with length n along `axis`
    axis : int
    method : {'akima', 'makima'}
    extrapolate : bool, optional
        By default False: nan beyond the ends.

    Raises
    ------
    ShapeError
        If values and knots do not go together.
    DomainError
        If the knots do not increase, or `method` is unknown.

    Notes
    -----
    A slope is a mean of those to both sides, weighted with how much the slopes change on the other
    side [1]_. Where they do not change on both sides it is the plain mean, and so is the
    derivative. See `PPoly` for the methods.

    References
    ----------
    .. [1] H. Akima, "A new method of interpolation and smooth curve fitting based on local
       procedures", Journal of the ACM 17, 1970.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> x = np.arange(5.0)
    >>> y = np.array([0.0, 1.0, 3.0, 2.0, 5.0])
    >>> vm.gradient(lambda y: vm.Akima1DInterpolator(x, y)(2.0), y)
    array([0., 0., 1., 0., 0.])
    """

    def __init__(
        self,
        x: Operand,
        y: Operand,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: bool | str | None = None,
    ) -> None:
        check_choice("Akima1DInterpolator", "method", method, "akima", "makima")
        x = check_increasing("Akima1DInterpolator", "x", x)
        y, remainder, axis = series_of("Akima1DInterpolator", y, np.size(x), axis)
        secants = np.diff(y, axis=0) / np.diff(x)[:, None]
        slopes = _akima(secants, method == "makima")
        self._set(
            _hermite(x, y, slopes),
            x,
            remainder,
            axis,
            False if extrapolate is None else extrapolate,
        )


def _akima(m: Operand, modified: bool) -> Result:
    if np.shape(m)[0] == 1:
        return np.concatenate([m, m])
    left, right = 2.0 * m[:1] - m[1:2], 2.0 * m[-1:] - m[-2:-1]
    m = np.concatenate([2.0 * left - m[:1], left, m, right, 2.0 * right - m[-1:]])
    change = np.abs(np.diff(m, axis=0))
    if modified:
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    f1, f2 = change[2:], change[:-2]
    total = f1 + f2
    largest = np.max(total) if np.size(total) else 0.0
    sound = total > 1e-9 * largest
    share = f2 / np.where(sound, total, 1.0)
    return np.where(sound, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))
