"""Integrals as functions of their limits and of what the integrand depends on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.dual import value_now
from varmat.core.errors import DomainError, ShapeError
from varmat.core.operation import is_differentiable, operation
from varmat.core.variables import data
from varmat.derivatives.structure import leaves_of, shaped
from varmat.functions.checks import misfit, outside
from varmat.solvers.double_exponential import RangeSums, integrals
from varmat.solvers.inner import Inner
from varmat.typing import scalar_valued

if TYPE_CHECKING:
    from typing import TypeAlias

    from varmat.typing import Adjoint, Function, Linear, Operand, Plain, Result

    # Corners, absolute and relative tolerance, and the most subdivisions.
    Box: TypeAlias = tuple[np.ndarray, np.ndarray, float, float, int]

__all__ = ["hcubature", "integrate_1d"]

# The relative tolerance that is aimed at, so that derivatives of different modes agree; an integral
# fails only above the user's tolerance.
AIM = 1e-12


@scalar_valued
def integrate_1d(
    f: Function, a: Operand, b: Operand, *args: Operand, relative_tolerance: float = 1.5e-8
) -> Result:
    """Integrate a function of one variable from `a` to `b`.

    Parameters
    ----------
    f : callable
        ``f(x, xc, *args)`` returns a number. Written in NumPy; what it depends on must be among
        `args`. `x` is a float, and `xc` is its signed distance from the nearer limit, ``a - x`` or
        ``b - x``, to full precision even close to it; nan if a limit is infinite.
    a, b : float or Var
        Limits, `a` at most `b`; may be infinite.
    *args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.
    relative_tolerance : float, keyword only
        The relative error that the result may have; positive. The method goes on to 1e-12 if it
        can.

    Returns
    -------
    float or Var

    Raises
    ------
    DomainError
        If a limit is nan, or `a` is above `b`; if the estimated error is above the tolerance when
        the method ends; if the integrand is not finite.
    ShapeError
        If `f` does not return a number.

    Notes
    -----
    The method is double exponential quadrature [1]_, from each limit to the middle of the range,
    which copes with singularities at the limits. Its error is estimated by how the sums change when
    points are added, and by how `f` falls off at both ends. So an integrand that falls too slowly
    there, as 1/x or x**-0.99, raises an error, and one with a pole in between. A narrow peak far
    from the limits is better integrated separately. The derivatives with respect to the arguments
    of `f` are integrals of its derivatives over the same points (Leibniz' rule), to the same
    relative tolerance; the derivatives with respect to the limits are -f(a) and f(b), and zero for
    infinite limits.

    References
    ----------
    .. [1] H. Takahasi and M. Mori, Double exponential formulas for numerical integration, Publ.
       RIMS, Kyoto University 9, 1974.
    .. [2] Stan Functions Reference, "1D integrator".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def density(x, xc, mu, sigma):
    ...     return np.exp(vm.normal_lpdf(x, mu, sigma))
    >>> round(vm.integrate_1d(density, -np.inf, 1.0, 0.0, 1.0), 12)
    0.841344746069
    >>> round(vm.gradient(lambda mu: vm.integrate_1d(density, -np.inf, 1.0, mu, 1.0), 0.0), 12)
    -0.241970724519
    >>> vm.integrate_1d(lambda x, xc: -1 / xc**2 if xc < 0 else 0.0, 1.0, 1.0)
    0.0
    """
    name = "integrate_1d"
    low, high = _limits(name, a, b)
    if not relative_tolerance > 0.0:
        raise outside(name, "relative_tolerance", relative_tolerance, "be positive")
    inner = Inner(name, f, args)
    if not inner.leaves and not is_differentiable([a, b]):
        return float(_integral(inner, low, high, (), relative_tolerance)[0])
    return integral(a, b, *inner.leaves, inner=inner, tolerance=float(relative_tolerance))


def _limits(name: str, a: object, b: object) -> tuple[float, float]:
    """Check the limits, and return their plain values."""
    low, high = (data(value_now(x), f"{name}: {title}") for x, title in ((a, "a"), (b, "b")))
    for x, title in ((low, "a"), (high, "b")):
        if type(x) is not float:
            raise misfit(name, title, np.shape(x), "be a scalar")
        if math.isnan(x):
            raise DomainError(f"{name}: {title} is nan, but must not be nan!")
    if low > high:
        raise outside(name, "a", low, f"be at most b, {high!r}")
    return low, high


@operation(variadic=True)
def integral(a: float, b: float, *leaves: Plain, inner: Inner, tolerance: float) -> Plain:
    _limits(inner.name, a, b)  # in a recording they may be other values
    return float(_integral(inner, a, b, leaves, tolerance)[0])


@integral.reverse
def integral_reverse(
    g: Adjoint, r: Plain, a: float, b: float, *leaves: Plain, inner: Inner, tolerance: float
) -> tuple[Adjoint, ...]:
    ends = [
        0.0 if math.isinf(x) else sign * g * _number(inner, (x, 0.0), leaves)
        for x, sign in ((a, -1.0), (b, 1.0))
    ]
    gradient = g * _integral(inner, a, b, leaves, tolerance, with_gradient=True)[1:]
    return (*ends, *shaped(gradient, map(np.shape, leaves)))


@integral.tangent
def integral_tangent(
    r: Operand, a: Operand, b: Operand, *leaves: Operand, inner: Inner, tolerance: float
) -> tuple[Linear, ...]:
    def at_end(x: object, sign: float) -> Linear:
        if math.isinf(value_now(x)):
            return lambda t: 0.0 * t
        return lambda t: sign * t * inner((x, 0.0), leaves)

    def along(i: int, t: Operand) -> Result:
        rate = IntegrandRate(inner, i)
        return integrate_1d(rate, a, b, list(leaves), t, relative_tolerance=tolerance)

    pushes = (partial(along, i) for i in range(len(leaves)))
    return (at_end(a, -1.0), at_end(b, 1.0), *pushes)


class IntegrandRate:
    """The derivative of an integrand along one leaf: an integrand of the leaves and the tangent."""

    def __init__(self, inner: Inner, i: int) -> None:
        self.inner, self.i = inner, i

    def __call__(self, *numbers: Operand) -> Result:
        *lead, leaves, t = numbers
        rate = self.inner.rate(lead, leaves, self.i, t)
        return 0.0 if rate is None else rate


def _number(inner: Inner, lead: tuple[object, ...], leaves: Sequence[object]) -> float:
    result = inner.values(lead, leaves)
    if result.size != 1:
        raise ShapeError(
            f"{inner.name}: f returns {result.size} elements, but must return a number!"
        )
    return float(result[0])


def _numbers(
    inner: Inner, lead: tuple[object, ...], leaves: Sequence[object], with_gradient: bool
) -> np.ndarray:
    """Evaluate the integrand, and its derivatives with respect to all elements of the leaves."""
    if not with_gradient:
        return np.array([_number(inner, lead, leaves)])
    value, pullback = inner.pullback(lead, leaves)
    contributions = pullback(np.ones(np.shape(value)) if np.shape(value) else 1.0)[len(lead) :]
    return np.concatenate([np.ravel(value), *map(np.ravel, contributions)])


def _integral(
    inner: Inner,
    a: float,
    b: float,
    leaves: Sequence[Operand],
    tolerance: float,
    with_gradient: bool = False,
) -> np.ndarray:
    """Integrate the function, and its derivatives with respect to all elements of the leaves."""
    size = 1 + with_gradient * sum(np.size(x) for x in leaves)
    if a == b or (with_gradient and size == 1):
        return np.zeros(size)

    def away(start: float, sign: float, length: float, is_finite: bool) -> RangeSums:
        """Return the range from a limit, or from zero, to that side."""

        def at(u: np.float64) -> np.ndarray:
            lead = start + sign * u, -sign * u if is_finite else math.nan
            return _numbers(inner, lead, leaves, with_gradient)

        return RangeSums(at, length)

    with np.errstate(all="ignore"):
        if math.isinf(a) and math.isinf(b):
            ranges = [away(0.0, sign, math.inf, False) for sign in (-1.0, 1.0)]
        elif math.isinf(a) or math.isinf(b):
            ranges = [away(*((b, -1.0) if math.isinf(a) else (a, 1.0)), math.inf, False)]
        else:
            half = 0.5 * b - 0.5 * a
            ranges = [away(a, 1.0, half, True), away(b, -1.0, half, True)]
        values, errors, norms = integrals(ranges, min(AIM, tolerance))
    # An integral that cancels to about zero has no relative accuracy, and needs none.
    failed = ~(errors <= np.maximum(tolerance * np.abs(values), 1e-14 * norms))
    if not np.isfinite(values).all() or np.isposinf(errors[failed]).any():
        raise DomainError(
            f"{inner.name}: f is not finite somewhere between the limits, or decays too slowly, "
            "but must have an integral!"
        )
    if failed.any():
        i = int(np.flatnonzero(failed)[0])
        of = "" if i == 0 else f" of derivative {i - 1}"
        raise DomainError(
            f"{inner.name}: the estimate of the error{of} is {float(errors[i])!r} for an integral "
            f"of {float(values[i])!r}, but must be at most {tolerance!r} of it; split the range "
            "where f is not smooth, or allow more!"
        )
    return values


# --- several variables ---


@scalar_valued
def hcubature(
    f: Function,
    a: Operand,
    b: Operand,
    *args: Operand,
    absolute_tolerance: float = 0.0,
    relative_tolerance: float = 1e-8,
    max_subdivisions: int = 10000,
) -> Result:
    """Integrate a function of several variables over a box.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a number for a vector `x`. Written in NumPy; what it depends on must
        be among `args`.
    a, b : array_like, shape (d,)
        Corners of the box, with the smallest and the largest coordinates; they may be infinite.
        They have no derivative.
    *args
        Further arguments of `f`. Scalars and arrays in them may be variables, to any depth of
        lists, tuples and dicts.
    absolute_tolerance, relative_tolerance : float, keyword only
        The error may be as large as the larger of the two bounds.
    max_subdivisions : int, keyword only

    Returns
    -------
    float or Var

    Raises
    ------
    DomainError
        If the estimated error is above the tolerance when the method ends.
    ShapeError
        If the corners are not two vectors of the same length, or `f` does not return a number.
    TypeError
        If a corner is a variable.

    Notes
    -----
    The method is the adaptive cubature of `scipy.integrate.cubature` [1]_. The derivatives are
    integrals of the derivatives, all over one subdivision that is fine enough for each of them.

    References
    ----------
    .. [1] A. C. Genz and A. A. Malik, An adaptive algorithm for numerical integration over an
       n-dimensional rectangular region, J. Comput. Appl. Math. 6, 1980.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x, c):
    ...     return np.exp(-c * np.sum(x))
    >>> round(vm.hcubature(f, [0.0, 0.0], [1.0, 1.0], 1.0), 12)
    0.399576400894
    >>> integral = lambda c: vm.hcubature(f, [0.0, 0.0], [1.0, 1.0], c)
    >>> round(vm.gradient(integral, 1.0), 12)
    -0.334064485918
    """
    name = "hcubature"
    if is_differentiable([a, b]) or any(map(is_differentiable, leaves_of([a, b]))):
        raise TypeError(
            f"{name}: a corner is a variable, but corners have no derivative: substitute x = a + "
            "(b - a) * u in f!"
        )
    low, high = (np.atleast_1d(data(x, f"{name}: {title}")) for x, title in ((a, "a"), (b, "b")))
    if low.ndim != 1 or low.shape != high.shape or not low.size:
        raise ShapeError(
            f"{name}: the corners have shapes {low.shape} and {high.shape}, but must be vectors of "
            "one length!"
        )
    inner = Inner(name, f, args)
    settings = (
        low,
        high,
        float(absolute_tolerance),
        float(relative_tolerance),
        int(max_subdivisions),
    )
    if not inner.leaves:
        return float(_cubature(inner, (), settings)[0])
    return integral_over_box(*inner.leaves, inner=inner, box=settings)


@operation(variadic=True)
def integral_over_box(*leaves: Plain, inner: Inner, box: Box) -> Plain:
    return float(_cubature(inner, leaves, box)[0])


@integral_over_box.reverse
def integral_over_box_reverse(
    g: Adjoint, r: Plain, *leaves: Plain, inner: Inner, box: Box
) -> tuple[Adjoint, ...]:
    gradient = g * _cubature(inner, leaves, box, with_gradient=True)[1:]
    return tuple(shaped(gradient, map(np.shape, leaves)))


@integral_over_box.tangent
def integral_over_box_tangent(
    r: Operand, *leaves: Operand, inner: Inner, box: Box
) -> tuple[Linear, ...]:
    low, high, absolute, relative, most = box

    def along(i: int, t: Operand) -> Result:
        return hcubature(
            IntegrandRate(inner, i),
            low,
            high,
            list(leaves),
            t,
            absolute_tolerance=absolute,
            relative_tolerance=relative,
            max_subdivisions=most,
        )

    return tuple(partial(along, i) for i in range(len(leaves)))


def _cubature(
    inner: Inner, leaves: Sequence[object], box: Box, with_gradient: bool = False
) -> np.ndarray:
    """Integrate the function, and its derivatives with respect to all elements of the leaves."""
    from scipy.integrate import cubature

    low, high, absolute, relative, most = box

    def integrand(points: np.ndarray) -> np.ndarray:
        return np.array(
            [_numbers(inner, (np.ascontiguousarray(x),), leaves, with_gradient) for x in points]
        )

    integral = cubature(integrand, low, high, rtol=relative, atol=absolute, max_subdivisions=most)
    values: np.ndarray = np.atleast_1d(integral.estimate)
    if integral.status != "converged" or not np.isfinite(values).all():
        raise DomainError(
            f"{inner.name}: the estimate of the error is {float(np.max(integral.error))!r} after "
            f"{integral.subdivisions} subdivisions, but must be at most {absolute!r}, or "
            f"{relative!r} "
            "of the integral; allow more of either!"
        )
    return values
