"""Piecewise polynomials, in the coefficients, the knots and the places at once."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.checks import check_array, check_choice, check_values, misfit
from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

__all__ = ["PPoly"]


def _pieces(knots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Find the index of the piece of each place; beyond the ends, the outermost piece."""
    return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)


def _factor(power: int, nu: int) -> float:
    """Compute the factor that the derivative of order `nu` brings to a power."""
    return float(np.prod(np.arange(power - nu + 1, power + 1, dtype=float)))


def _evaluated(c: np.ndarray, knots: np.ndarray, x: np.ndarray, nu: int) -> np.ndarray:
    i = _pieces(knots, x)
    s, r = (x - knots[i])[:, None], np.zeros((x.size, c.shape[2]))
    for j in range(c.shape[0] - nu):
        r = r * s + _factor(c.shape[0] - 1 - j, nu) * c[j, i]
    return r


@operation()
def piecewise_polynomial(c: Operand, knots: Operand, x: Operand, *, nu: int) -> Result:
    """Compute the derivative of the order `nu` of piecewise polynomials with coefficients
    ``c[power, piece, series]``, highest first.
    """
    return _evaluated(c, knots, x, nu)


@piecewise_polynomial.reverse
def piecewise_polynomial_reverse(
    g: Adjoint, r: Plain, c: Plain, knots: Plain, x: Plain, nu: int
) -> Adjoint:
    i = _pieces(knots, x)

    def of_c() -> Result:
        a, s = np.zeros(c.shape), (x - knots[i])[:, None]
        for j in range(c.shape[0] - nu):
            power = c.shape[0] - 1 - j
            np.add.at(a[j], i, _factor(power, nu) * s ** (power - nu) * g)
        return a

    def of_x() -> Result:
        return np.einsum("nd,nd->n", g, _evaluated(c, knots, x, nu + 1))

    return of_c, lambda: -np.bincount(i, of_x(), knots.size), of_x


@piecewise_polynomial.tangent
def piecewise_polynomial_tangent(
    r: Plain, c: Plain, knots: Plain, x: Plain, nu: int
) -> tuple[Linear, ...]:
    slope = piecewise_polynomial(c, knots, x, nu=nu + 1)

    def of_knots(t: Operand) -> Result:
        # The tangent of the knot where the piece of each place begins.
        return -slope * piecewise_polynomial(t[None, :-1, None], knots, x, nu=0)

    return (
        lambda t: piecewise_polynomial(t, knots, x, nu=nu),
        of_knots,
        lambda t: slope * t[:, None],
    )


def check_increasing(function: str, name: str, x: Operand, least: int = 2) -> Result:
    """Check that a vector increases, and return it."""
    x = as_operand(x, f"{function}: {name}")
    if np.ndim(x) != 1 or np.size(x) < least:
        raise misfit(function, name, np.shape(x), f"be a vector of at least {least} elements")
    check_values(partial(_check_increasing, function, name), x)
    return x


def _check_increasing(function: str, name: str, x: Operand) -> None:
    wrong = np.flatnonzero(~(np.diff(x) > 0.0))
    if wrong.size:
        i = int(wrong[0])
        raise DomainError(
            f"{function}: {name}[{i + 1}] is {x[i + 1]}, but must be larger than {name}[{i}], "
            f"which is {x[i]}!"
        )


def series_of(function: str, y: Operand, n: int, axis: int) -> tuple[Result, tuple[int, ...], int]:
    """Return values as a matrix with a column for each series, the shape of the other axes, and the
    axis along which they lie.
    """
    y = as_operand(y, f"{function}: y")
    check_array(function, "y", y, "have at least one axis")
    axis = normalize_axis_index(axis, np.ndim(y))
    y = np.moveaxis(y, axis, 0)
    if np.shape(y)[0] != n:
        raise ShapeError(
            f"{function}: y has {np.shape(y)[0]} elements along the axis, but must have {n}, as x "
            "has!"
        )
    return np.reshape(y, (n, -1)) if np.size(y) else np.zeros((n, 0)), np.shape(y)[1:], axis


def piecewise(
    function: Function,
    indices: Operand,
    ends: tuple[Operand, Operand],
    extrapolate: bool | str | None,
    others: tuple[int, ...],
    axis: int,
) -> Result:
    """Several series, given as a function of a vector of places, at places of any shape. Beyond the
    ends they are repeated, or nan, if they are not extrapolated.
    """
    flat, (first, last) = np.reshape(indices, (-1,)), ends
    if extrapolate == "periodic":
        flat = flat - np.floor((flat - first) / (last - first)) * (last - first)
    r = function(flat)
    if not extrapolate:
        r = np.where(np.reshape((flat < first) | (flat > last), (-1, 1)), np.nan, r)
    r, count = np.reshape(r, (*np.shape(indices), *others)), np.ndim(indices)
    # The axes of the places replace the axis of the values.
    order = [*range(count, count + axis), *range(count), *range(count + axis, count + len(others))]
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
    extrapolate : bool or 'periodic', optional
        Whether the outermost pieces go on beyond the ends, as by default, or everything is
        repeated; otherwise it is nan there.
    axis : int
        The axis of `c` with the powers; the pieces are along the next one. It becomes the axis of
        the places in results.

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

    References
    ----------
    SciPy reference, `scipy.interpolate.PPoly`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda c: vm.PPoly(c, [0.0, 1.0, 2.0])(1.5), np.ones((2, 2)))
    array([[0. , 0.5],
           [0. , 1. ]])
    """

    def __init__(
        self, c: Operand, x: Operand, extrapolate: bool | str | None = None, axis: int = 0
    ) -> None:
        c = as_operand(c, "PPoly: c")
        x = check_increasing("PPoly", "x", x)
        if np.ndim(c) > 2 and axis:
            axis = normalize_axis_index(axis, np.ndim(c) - 1)
            c = np.moveaxis(c, (axis, axis + 1), (0, 1))
        if np.ndim(c) < 2 or np.shape(c)[1] != np.size(x) - 1:
            raise misfit("PPoly", "c", np.shape(c), f"have shape (k, {np.size(x) - 1}, ...)")
        remainder = np.shape(c)[2:]
        self._set(np.reshape(c, (*np.shape(c)[:2], -1)), x, remainder, axis, extrapolate)

    def _set(
        self,
        c: Operand,
        x: Operand,
        others: tuple[int, ...],
        axis: int,
        extrapolate: bool | str | None,
    ) -> None:
        extrapolate = True if extrapolate is None else extrapolate
        check_choice(type(self).__name__, "extrapolate", extrapolate, True, False, "periodic")
        self._c, self.x, self._settings, self.axis, self.extrapolate = (
            c,
            x,
            others,
            axis,
            extrapolate,
        )

    def _other(self, c: object, extrapolate: bool | str | None) -> PPoly:
        other = object.__new__(PPoly)
        other._set(c, self.x, self._settings, self.axis, extrapolate)
        return other

    @property
    def c(self) -> Result:
        """The coefficients, shape (k, m, ...)."""
        return np.reshape(self._c, (*np.shape(self._c)[:2], *self._settings))

    def __call__(self, x: Operand, nu: int = 0, extrapolate: bool | str | None = None) -> Result:
        """Evaluate the polynomials, or their derivative of the order `nu`, at the places `x`, which
        may have any shape.
        """
        return piecewise(
            lambda flat: piecewise_polynomial(self._c, self.x, flat, nu=int(nu)),
            as_operand(x, f"{type(self).__name__}: x"),
            (self.x[0], self.x[-1]),
            self.extrapolate if extrapolate is None else extrapolate,
            self._settings,
            self.axis,
        )

    def derivative(self, nu: int = 1) -> PPoly:
        """Make the derivative of the order `nu`, as piecewise polynomials; for a negative order the
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
        """Make the antiderivative of the order `nu`: continuous, and zero at the first end."""
        c, h = self._c, np.diff(self.x)
        for _ in range(nu):
            k = np.shape(c)[0]
            c = c / np.arange(k, 0, -1).reshape(-1, 1, 1)
            rise: Result = 0.0
            for j in range(k):
                rise = (rise + c[j]) * h[:, None]
            start = np.concatenate([np.zeros((1, np.shape(c)[2])), np.cumsum(rise, axis=0)[:-1]])
            c = np.concatenate([c, start[None]])
        return self._other(c, True if self.extrapolate == "periodic" else self.extrapolate)

    def integrate(self, a: Operand, b: Operand) -> Result:
        """Compute the definite integral between `a` and `b`, which may be variables."""
        if self.extrapolate == "periodic":
            raise DomainError(
                f"{type(self).__name__}: integrals of periodic extrapolations are not supported; "
                "integrate over each period!"
            )
        total = self.antiderivative()
        return total(b) - total(a)
