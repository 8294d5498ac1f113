"""Interpolation by piecewise polynomials, in the values, the knots and the places at once: classes
with the names of SciPy.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_values
from varmat.functions.linalg.banded import solve_banded

__all__ = ["Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator"]


def _pieces(knots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The piece of each place; beyond the ends the outermost one."""
    return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)


def _factor(power: int, nu: int) -> float:
    """What the derivative of the order `nu` makes of a power."""
    return float(np.prod(np.arange(power - nu + 1, power + 1, dtype=float)))


def _evaluated(c: np.ndarray, knots: np.ndarray, x: np.ndarray, nu: int) -> np.ndarray:
    i = _pieces(knots, x)
    s, r = (x - knots[i])[:, None], np.zeros((x.size, c.shape[2]))
    for j in range(c.shape[0] - nu):
        r = r * s + _factor(c.shape[0] - 1 - j, nu) * c[j, i]
    return r


@operation()
def piecewise_polynomial(c: Any, knots: Any, x: Any, *, nu: int) -> Any:
    """The derivative of the order `nu` of piecewise polynomials with coefficients ``c[power, piece,
    series]``, highest first.
    """
    return _evaluated(c, knots, x, nu)


@piecewise_polynomial.reverse
def piecewise_polynomial_reverse(g: Any, r: Any, c: Any, knots: Any, x: Any, nu: int) -> Any:
    i = _pieces(knots, x)

    def of_c() -> Any:
        a, s = np.zeros(c.shape), (x - knots[i])[:, None]
        for j in range(c.shape[0] - nu):
            power = c.shape[0] - 1 - j
            np.add.at(a[j], i, _factor(power, nu) * s ** (power - nu) * g)
        return a

    def of_x() -> Any:
        return np.einsum("nd,nd->n", g, _evaluated(c, knots, x, nu + 1))

    return of_c, lambda: -np.bincount(i, of_x(), knots.size), of_x


@piecewise_polynomial.tangent
def piecewise_polynomial_tangent(r: Any, c: Any, knots: Any, x: Any, nu: int) -> Any:
    slope = piecewise_polynomial(c, knots, x, nu=nu + 1)

    def of_knots(t: Any) -> Any:
        # The tangent of the knot at which a place's piece begins: a piecewise constant.
        return -slope * piecewise_polynomial(t[None, :-1, None], knots, x, nu=0)

    return (
        lambda t: piecewise_polynomial(t, knots, x, nu=nu),
        of_knots,
        lambda t: slope * t[:, None],
    )


def check_increasing(function: str, name: str, x: Any, least: int = 2) -> Any:
    """A vector whose elements increase."""
    x = as_operand(x, f"{function}: {name}")
    if np.ndim(x) != 1 or np.size(x) < least:
        raise ShapeError(
            f"{function}: {name} has shape {np.shape(x)}, but must be a vector of at least {least} "
            "elements!"
        )
    check_values(partial(_check_increasing, function, name), x)
    return x


def _check_increasing(function: str, name: str, x: Any) -> None:
    wrong = np.flatnonzero(~(np.diff(x) > 0.0))
    if wrong.size:
        i = int(wrong[0])
        raise DomainError(
            f"{function}: {name}[{i + 1}] is {x[i + 1]}, but must be larger than {name}[{i}], "
            f"which is {x[i]}!"
        )


def series_of(function: str, y: Any, n: int, axis: int) -> tuple[Any, tuple[int, ...], int]:
    """Values as a matrix with a column for each series, the shape of the other axes, and the axis
    along which they lie.
    """
    y = as_operand(y, f"{function}: y")
    if not np.ndim(y):
        raise ShapeError(f"{function}: y is a scalar, but must have at least one axis!")
    axis = normalize_axis_index(axis, np.ndim(y))
    y = np.moveaxis(y, axis, 0)
    if np.shape(y)[0] != n:
        raise ShapeError(
            f"{function}: y has {np.shape(y)[0]} elements along the axis, but must have {n}, as x "
            "has!"
        )
    return np.reshape(y, (n, -1)) if np.size(y) else np.zeros((n, 0)), np.shape(y)[1:], axis


def placed(r: Any, places: tuple[int, ...], rest: tuple[int, ...], axis: int) -> Any:
    """Results for places and series, with the axes of the places where that of the values was."""
    r, count = np.reshape(r, places + rest), len(places)
    order = [*range(count, count + axis), *range(count), *range(count + axis, count + len(rest))]
    return r if order == list(range(len(order))) else np.transpose(r, order)


class PPoly:
    """Piecewise polynomials, given by their coefficients: `scipy.interpolate.PPoly`.

    Parameters
    ----------
    c : array_like, shape (k, m, ...)
        The coefficients of each piece in powers of the distance from its beginning, the highest
        power first.
    x : array_like, shape (m + 1,)
        The ends of the pieces, which increase.
    extrapolate : bool or 'periodic'
        Whether the outermost pieces go on beyond the ends, or everything is repeated; otherwise it
        is nan there.

    Raises
    ------
    ShapeError
        If coefficients and ends do not go together.
    DomainError
        If the ends do not increase.

    Notes
    -----
    Differentiable in the coefficients, the ends and the places. At an end between two pieces the
    derivative is that to the right.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: vm.PPoly(c, [0.0, 1.0, 2.0])(1.5), np.ones((2, 2)))
    array([[0. , 0.5],
           [0. , 1. ]])
    """

    def __init__(self, c: Any, x: Any, extrapolate: Any = True) -> None:
        c = as_operand(c, "PPoly: c")
        x = check_increasing("PPoly", "x", x)
        if np.ndim(c) < 2 or np.shape(c)[1] != np.size(x) - 1:
            raise ShapeError(
                f"PPoly: c has shape {np.shape(c)}, but must have shape (k, {np.size(x) - 1}, ...)!"
            )
        rest = np.shape(c)[2:]
        self._set(np.reshape(c, (*np.shape(c)[:2], -1)), x, rest, 0, extrapolate)

    def _set(self, c: Any, x: Any, rest: tuple[int, ...], axis: int, extrapolate: Any) -> None:
        if extrapolate not in (True, False, "periodic"):
            raise DomainError(
                f"{type(self).__name__}: extrapolate is {extrapolate!r}, but must be True, False "
                "or 'periodic'!"
            )
        self._c, self.x, self._rest, self.axis, self.extrapolate = c, x, rest, axis, extrapolate

    def _other(self, c: Any, extrapolate: Any) -> PPoly:
        other = object.__new__(PPoly)
        other._set(c, self.x, self._rest, self.axis, extrapolate)
        return other

    @property
    def c(self) -> Any:
        """The coefficients, shape (k, m, ...)."""
        return np.reshape(self._c, (*np.shape(self._c)[:2], *self._rest))

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """The polynomials, or their derivative of the order `nu`, at the places `x`, which may have
        any shape.
        """
        places = as_operand(x, f"{type(self).__name__}: x")
        flat = np.reshape(places, (-1,))
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        first, last = self.x[0], self.x[-1]
        if extrapolate == "periodic":
            flat = flat - np.floor((flat - first) / (last - first)) * (last - first)
        r = piecewise_polynomial(self._c, self.x, flat, nu=int(nu))
        if not extrapolate:
            r = np.where(np.reshape((flat < first) | (flat > last), (-1, 1)), np.nan, r)
        return placed(r, np.shape(places), self._rest, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of the order `nu`, as piecewise polynomials; of a negative order the
        antiderivative.
        """
        if nu < 0:
            return self.antiderivative(-nu)
        k = np.shape(self._c)[0]
        factors = np.array([_factor(power, nu) for power in range(k - 1, nu - 1, -1)]).reshape(
            -1, 1, 1
        )
        c = self._c[: k - nu] * factors if k > nu else np.zeros((1, *np.shape(self._c)[1:]))
        return self._other(c, self.extrapolate)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The antiderivative of the order `nu` that is zero at the first end, and goes over from
        piece to piece without a jump.
        """
        c, h = self._c, np.diff(self.x)
        for _ in range(nu):
            k = np.shape(c)[0]
            c = c / np.arange(k, 0, -1).reshape(-1, 1, 1)
            rise: Any = 0.0
            for j in range(k):
                rise = (rise + c[j]) * h[:, None]
            start = np.concatenate([np.zeros((1, np.shape(c)[2])), np.cumsum(rise, axis=0)[:-1]])
            c = np.concatenate([c, start[None]])
        return self._other(c, True if self.extrapolate == "periodic" else self.extrapolate)

    def integrate(self, a: Any, b: Any) -> Any:
        """The definite integral between `a` and `b`, which may be variables."""
        if self.extrapolate == "periodic":
            raise DomainError(
                f"{type(self).__name__}: the integral of what is repeated is not there; integrate "
                "over each period!"
            )
        total = self.antiderivative()
        return total(b) - total(a)


def _hermite(x: Any, y: Any, slopes: Any) -> Any:
    """The coefficients of the cubics with given values and slopes at the knots."""
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

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda y: vm.CubicHermiteSpline([0.0, 1.0], y, np.zeros(2))(0.25), np.ones(2))
    array([0.84375, 0.15625])
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = True) -> None:
        x = check_increasing("CubicHermiteSpline", "x", x)
        y, rest, axis = series_of("CubicHermiteSpline", y, np.size(x), axis)
        slopes, other, _ = series_of("CubicHermiteSpline", dydx, np.size(x), axis)
        if rest != other:
            raise ShapeError("CubicHermiteSpline: dydx must have the shape of y!")
        self._set(_hermite(x, y, slopes), x, rest, axis, extrapolate)


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
        self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
    ) -> None:
        x = check_increasing("CubicSpline", "x", x)
        y, rest, axis = series_of("CubicSpline", y, np.size(x), axis)
        h = np.diff(x)
        secants = np.diff(y, axis=0) / h[:, None]
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        if periodic:
            check_values(_check_periodic, y)
            slopes = _periodic_slopes(h, secants)
        else:
            pair = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
            start, end = (_condition(each, rest) for each in pair)
            slopes = _slopes(h, secants, start, end)
        extrapolate = ("periodic" if periodic else True) if extrapolate is None else extrapolate
        self._set(_hermite(x, y, slopes), x, rest, axis, extrapolate)


def _check_periodic(y: Any) -> None:
    if not np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
        raise DomainError(
            "CubicSpline: the first and the last of y differ, but must be the same for a periodic "
            "spline!"
        )


def _condition(kind: Any, rest: tuple[int, ...]) -> tuple[int, Any]:
    """The order of the derivative that is given at an end, and its value as a row; 3 for no
    knot.
    """
    known = {"not-a-knot": (3, 0.0), "clamped": (1, 0.0), "natural": (2, 0.0)}
    order, value = known.get(kind, (0, 0.0)) if isinstance(kind, str) else kind
    if order not in (1, 2, 3) or (order == 3 and not isinstance(kind, str)):
        rule = (
            "'not-a-knot', 'clamped', 'natural', 'periodic' or pairs of an order, 1 or 2, and "
            "a "
            "value"
        )
        raise DomainError(f"CubicSpline: bc_type is {kind!r}, but must be of {rule}!")
    value = as_operand(value, "CubicSpline: bc_type")
    return order, np.reshape(value + np.zeros(rest), (1, -1))


def _slopes(h: Any, secants: Any, start: Any, end: Any) -> Any:
    """The slopes at the knots, with a condition at each end."""
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


def _end(condition: Any, h: Any, secants: Any, sign: float, parabola: bool) -> tuple[Any, Any, Any]:
    """The equation of an end: the coefficients of the slope there and of the next one, and the
    right-hand side.
    """
    (order, value), one = condition, np.ones(1)
    if parabola:
        return one, one, 2.0 * secants[:1]
    if order == 3 and np.shape(h)[0] == 1:  # of two knots: a straight line
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


def _periodic_slopes(h: Any, secants: Any) -> Any:
    """The slopes of a periodic spline, the last one again the first: two tridiagonal systems with
    one unknown less.
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
    # Equation i: h[i] s[i - 1] + diagonal[i] s[i] + before[i] s[i + 1] = right[i]; the last unknown
    # is taken out.
    nothing = np.zeros(1)
    bands = np.stack([
        np.concatenate([nothing, before[: m - 2]]), diagonal[: m - 1],
         np.concatenate([h[1 : m - 1], nothing])
    ])  # fmt: skip
    corner = np.concatenate([-h[:1], np.zeros(m - 3), -before[m - 2 : m - 1]])
    both = solve_banded((1, 1), bands, np.concatenate([right[: m - 1], corner[:, None]], axis=1))
    known, response = both[:, :d], both[:, d:]
    last = (right[m - 1 :] - before[m - 1] * known[:1] - h[m - 1] * known[m - 2 :]) / (
        diagonal[m - 1] + before[m - 1] * response[:1] + h[m - 1] * response[m - 2 :]
    )
    slopes = known + response * last
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
    same sign [1]_: there is a kink, and the derivative is that of zero. See `PPoly` for the
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

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        x = check_increasing("PchipInterpolator", "x", x)
        y, rest, axis = series_of("PchipInterpolator", y, np.size(x), axis)
        h = np.diff(x)[:, None]
        secants = np.diff(y, axis=0) / h
        self._set(
            _hermite(x, y, _monotone(h, secants)),
            x,
            rest,
            axis,
            True if extrapolate is None else extrapolate,
        )


def _monotone(h: Any, m: Any) -> Any:
    if np.shape(m)[0] == 1:
        return np.concatenate([m, m])
    bent = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0.0) | (m[:-1] == 0.0)
    left, right = (np.where(bent, 1.0, each) for each in (m[:-1], m[1:]))
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    inside = np.where(bent, 0.0, (w1 + w2) / (w1 / left + w2 / right))
    ends = [_one_sided(h[i], h[j], m[i], m[j])[None] for i, j in ((0, 1), (-1, -2))]
    return np.concatenate([ends[0], inside, ends[1]])


def _one_sided(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """The slope at an end, of three points, changed so that the shape is kept."""
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
    >>> vm.gradient(lambda y: vm.Akima1DInterpolator(x, y)(2.0), np.array([0.0, 1.0, 3.0, 2.0, 5.0]))
    array([0., 0., 1., 0., 0.])
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None
    ) -> None:
        if method not in ("akima", "makima"):
            raise DomainError(
                f"Akima1DInterpolator: method is {method!r}, but must be 'akima' or 'makima'!"
            )
        x = check_increasing("Akima1DInterpolator", "x", x)
        y, rest, axis = series_of("Akima1DInterpolator", y, np.size(x), axis)
        secants = np.diff(y, axis=0) / np.diff(x)[:, None]
        slopes = _akima(secants, method == "makima")
        self._set(
            _hermite(x, y, slopes), x, rest, axis, False if extrapolate is None else extrapolate
        )


def _akima(m: Any, modified: bool) -> Any:
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
