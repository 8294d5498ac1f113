"""Covariance functions of Gaussian processes.

A stationary kernel is a row of the table at the end: the correlation as a function of a multiple of
the squared distance in units of the length scale, and its derivative. One operation serves all
rows. Distances are computed once and kept; differences are taken before anything else, so that
close points lose no digits and the matrix is exactly symmetric. Matrices are gone through by blocks
of rows that stay in the cache from the difference to the covariance; the reverse pass needs only
products with vectors."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from varmat.core.arena import LARGE
from varmat.core.errors import ShapeError, finite, nonnegative, positive_finite
from varmat.core.operation import Saved, as_operand, operation
from varmat.functions.checks import check_values, fixed
from varmat.plain_arrays import ones
from varmat.programs.symbols import refuse, require

__all__ = [
    "cov_exp_quad",
    "gp_dot_prod_cov",
    "gp_exp_quad_cov",
    "gp_exponential_cov",
    "gp_matern32_cov",
    "gp_matern52_cov",
    "gp_periodic_cov",
]


class Kernel(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        Of the public function.
    unit : float
        What the squared distances in units of the length scale are multiplied by: the argument `z`
        of the other two.
    correlation : callable
        A function of `z` and of the array that it writes to.
    slope : callable
        The derivative of the covariance, a function of `z`, of the covariance and of the variance;
        differentiable. It must be finite at ``z = 0``, where the distance of two points does not
        depend on them to first order.
    """

    name: str
    unit: float
    correlation: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]


# Elements of a block of rows: some arrays of that size stay in the L2 cache.
BLOCK = 1 << 16
# From so many columns on a product of matrices is faster than differences of vectors.
WIDE = 100
# For length scales below 1e-100, where covariances of points that do not coincide are zero: the
# largest factor of squares of distances, and the largest multiple of them, of which nothing that is
# computed is nan.
SHORT, LARGEST, FAR = 1e200, 1e250, 1e300


def _rows(x: Any) -> Any:
    """Points as rows; differentiable."""
    return x[:, None] if np.ndim(x) == 1 else x


def _step(columns: int) -> int:
    """The rows of a block of so many columns."""
    return max(1, BLOCK // max(1, columns))


def _blocks(*matrices: Any) -> Iterator[tuple[Any, ...]]:
    """Ranges of rows that make up matrices of one shape, each with these rows of the matrices."""
    count, columns = matrices[0].shape
    step = _step(columns)
    if count <= step:
        yield slice(None), *matrices
        return
    for start in range(0, count, step):
        rows = slice(start, start + step)
        yield rows, *(matrix[rows] for matrix in matrices)


def _dimensions(x1: Any, x2: Any, length_scale: Any, unit: float) -> list[tuple[Any, Any, float]]:
    """For each dimension the coordinates of both sets, and the factor of the squares of their
    differences.
    """
    if x1.ndim == 1:
        return [(x1, x2, _factor(length_scale, unit))]
    scales = [length_scale] * x1.shape[1] if type(length_scale) is float else length_scale.tolist()
    return [(x1[:, k], x2[:, k], _factor(scale, unit)) for k, scale in enumerate(scales)]


def _factor(scale: float, unit: float) -> float:
    # Points that coincide must not become nan, however short the scale.
    return math.copysign(min(abs(unit) / scale / scale, LARGEST), unit)


def _squared_differences(u: Any, v: Any, factor: float, out: Any, scratch: Any) -> Any:
    """Along one dimension, times the factor; through an array that is written over, which may be
    `out`.
    """
    if len(v) < WIDE:
        np.subtract(u[:, None], v, scratch)
    else:
        # Of ``u * 1 + 1 * (-v)`` nothing is rounded but the sum.
        left, right = np.empty((len(u), 2)), np.empty((2, len(v)))
        left[:, 0], left[:, 1], right[0] = u, 1.0, 1.0
        np.negative(v, right[1])
        np.dot(left, right, scratch)
    np.multiply(scratch, scratch, scratch)
    return np.multiply(scratch, factor, out)


def _ndim(x: Any) -> int:
    """As `numpy.ndim` of a number, an array or a variable, without its detour by way of an
    exception.
    """
    return getattr(x, "ndim", 0)


def _check_points(function: str, x1: Any, x2: Any, sigma: Any, length_scale: Any = 1.0) -> None:
    for name, x in (("x", x1), ("x2", x2))[: 1 if x2 is x1 else 2]:
        if _ndim(x) not in (1, 2):
            raise ShapeError(
                f"{function}: {name} has shape {np.shape(x)}, but must have one row (or number) "
                "per point!"
            )
        check_values(partial(finite.check, function, name), x)
    point = x1.shape[1:]
    if x2.shape[1:] != point:
        raise ShapeError(
            f"{function}: x2 has shape {np.shape(x2)}, but must have points of shape {point}, as x "
            "has!"
        )
    if _ndim(sigma):
        raise ShapeError(f"{function}: sigma has shape {np.shape(sigma)}, but must be a scalar!")
    if _ndim(length_scale) and np.shape(length_scale) != point:
        shape = np.shape(length_scale)
        raise ShapeError(
            f"{function}: length_scale has shape {shape}, but must be a scalar or have shape "
            f"{point}!"
        )


@operation()
def gp_stationary_cov(
    x1: Any, x2: Any, sigma: Any, length_scale: Any, *, kernel: Kernel, workspace: Any = np.empty
) -> Any:
    """The covariances between two sets of points for a row of the table: what the public functions
    record.
    """
    _check_points(kernel.name, x1, x2, sigma, length_scale)
    positive_finite.check(kernel.name, "sigma", sigma)
    positive_finite.check(kernel.name, "length_scale", length_scale)
    shape = (len(x1), len(x2))
    dimensions = _dimensions(x1, x2, length_scale, kernel.unit)
    # as a workspace would, and sooner
    make = np.empty if shape[0] * shape[1] <= LARGE else workspace
    r, z, scratch = make(shape), make(shape), make((min(_step(shape[1]), shape[0]), shape[1]))
    far = any(abs(factor) > SHORT for *_, factor in dimensions)
    for rows, out, sum_ in _blocks(r, z):
        if not dimensions:
            sum_.fill(0.0)
        for k, (u, v, factor) in enumerate(dimensions):
            if k:
                np.add(sum_, _squared_differences(u[rows], v, factor, out, out), sum_)
            else:
                _squared_differences(u[rows], v, factor, sum_, out)
        if far:
            np.clip(sum_, -FAR, FAR, sum_)
        np.multiply(kernel.correlation(sum_, out), sigma * sigma, out)
    return Saved(r, z=z, scratch=scratch)


@gp_stationary_cov.reverse
def gp_stationary_cov_reverse(
    g: Any,
    r: Any,
    x1: Any,
    x2: Any,
    sigma: Any,
    length_scale: Any,
    kernel: Kernel,
    z: Any,
    scratch: Any,
) -> Any:
    def weights() -> Iterator[tuple[slice, Any, Any]]:
        """The adjoint of z, and z, by blocks of rows."""
        for rows, z_, r_, g_ in _blocks(z, r, g):
            yield rows, np.multiply(kernel.slope(z_, r_, sigma * sigma), g_, scratch[: len(z_)]), z_

    found: list[Any] = []

    def of_points(i: int) -> Any:
        if not found:
            unit = 2.0 * kernel.unit
            factor = (
                np.array([_factor(s, unit) for s in length_scale])
                if _ndim(length_scale)
                else _factor(length_scale, unit)
            )
            found.extend(_of_points(weights(), x1, x2, factor))
        return found[i]

    def of_scale() -> Any:
        if not _ndim(length_scale):  # one way through the matrices serves points and scale
            total = found[2] if found else math.fsum(np.vdot(w, z_) for _, w, z_ in weights())
            return -2.0 / length_scale * total
        totals, dimensions = (
            np.zeros(length_scale.shape),
            _dimensions(x1, x2, length_scale, kernel.unit),
        )
        for rows, w, _ in weights():
            part = np.empty(w.shape)
            for k, (u, v, factor) in enumerate(dimensions):
                totals[k] += np.vdot(w, _squared_differences(u[rows], v, factor, part, part))
        return -2.0 / length_scale * totals

    return (
        lambda: of_points(0),
        lambda: of_points(1),
        lambda: 2.0 / sigma * float(np.vdot(g, r)),
        of_scale,
    )


@gp_stationary_cov.straight
def gp_stationary_cov_straight(
    x1: Any, x2: Any, sigma: Any, length_scale: Any, kernel: Kernel
) -> Any:
    if not np.size(x1) * np.size(x2) or len(x1) * len(x2) > LARGE:
        refuse()
    for parameter in (sigma, length_scale):
        require((parameter > 1e-100) & (parameter < 1e100))
    differences = _rows(x1)[:, None, :] - _rows(x2)[None, :, :]
    shape, squares = differences.shape[:2], np.square(differences)
    # A column for each length scale.
    squares = kernel.unit * (
        np.reshape(squares, (-1, squares.shape[-1]))
        if _ndim(length_scale)
        else np.sum(squares, axis=-1)
    )
    inverse = 1.0 / length_scale
    variance = sigma * sigma
    z = (
        np.reshape(squares @ (inverse * inverse), shape)
        if _ndim(length_scale)
        else squares * (inverse * inverse)
    )
    r = kernel.correlation(z * 1.0, z * 1.0) * variance

    def contributions(g: Any) -> Any:
        w = kernel.slope(z, r, variance) * g

        def of_points(x: Any, axis: int, sign: float) -> Any:
            return np.reshape(
                np.sum((sign * w)[:, :, None] * (differences * (inverse * inverse)), axis=axis),
                np.shape(x),
            )

        def of_scale() -> Any:
            if _ndim(length_scale):
                return -2.0 * inverse * inverse * inverse * (np.reshape(w, (-1,)) @ squares)
            return -2.0 * inverse * np.vdot(w, z)

        unit = 2.0 * kernel.unit
        return (
            lambda: of_points(x1, 1, unit),
            lambda: of_points(x2, 0, -unit),
            lambda: 2.0 / sigma * np.vdot(g, r),
            of_scale,
        )

    return r, contributions


def _of_points(
    weights: Iterator[tuple[slice, Any, Any]], x1: Any, x2: Any, factor: Any
) -> tuple[Any, Any, float]:
    """For the points of both sets the weighted sums of their differences from the others, ``sum_j
    w_ij (u_i - v_j)``, times the factor, and the weighted sum of `z`."""
    # Around their mean, on which nothing depends, less is lost in the differences. Products with
    # ones are the fastest sums.
    other = ones(len(x2))
    centre = other.dot(x2) / max(1, len(x2))
    u = (x1 - centre) * factor
    v = u if x2 is x1 else (x2 - centre) * factor
    blocks = [_weighted_sums(w, z, u[rows], v, other) for rows, w, z in weights]
    if len(blocks) == 1:
        c, d, of_columns, total = blocks[0]
    else:
        parts: Any = zip(*blocks, strict=True)
        c, d, of_columns, total = parts
        c, d, of_columns, total = np.concatenate(c), sum(d), sum(of_columns), math.fsum(total)
    return c, (v.T * of_columns).T - d, float(total)


def _weighted_sums(w: Any, z: Any, u: Any, v: Any, other: Any) -> tuple[Any, Any, Any, Any]:
    c, transposed = (u.T * w.dot(other)).T, w.T
    np.subtract(c, w.dot(v), c)
    return c, transposed.dot(u), transposed.dot(ones(len(u))), np.vdot(w, z)


@gp_stationary_cov.tangent
def gp_stationary_cov_tangent(
    r: Any, x1: Any, x2: Any, sigma: Any, length_scale: Any, kernel: Kernel
) -> Any:
    # All differences at once, for here they must be differentiable themselves: shape (n1, n2, d).
    u = (_rows(x1)[:, None, :] - _rows(x2)[None, :, :]) / length_scale
    w = 2.0 * kernel.unit * kernel.slope(kernel.unit * np.sum(u * u, axis=-1), r, sigma * sigma)
    return (
        lambda t: w * np.sum(u * (_rows(t)[:, None, :] / length_scale), axis=-1),
        lambda t: -w * np.sum(u * (_rows(t)[None, :, :] / length_scale), axis=-1),
        lambda t: 2.0 * t / sigma * r,
        lambda t: -w * np.sum(u * u * t / length_scale, axis=-1),
    )


def _two_sets(
    name: str, parameters: tuple[str, ...], x: Any, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments of a covariance function with both sets of points; one set stands for both."""
    count = 1 + len(given) + len(named)
    last = parameters[len(parameters) - len(named) :]
    if named.keys() == {*last}:
        given = (*given, *(named[each] for each in last))
        sets = {0: ("x",), 1: ("x1", "x2")}.get(len(given) - len(parameters))
        if sets is not None:
            titles = (*sets, *parameters)
            first, *others = (
                as_operand(each, f"{name}: {title}")
                for each, title in zip((x, *given), titles, strict=True)
            )
            # One set is twice the same object, which it is then seen to be.
            return (first, *others) if len(sets) == 2 else (first, first, *others)
    arguments = ", ".join(parameters)
    raise TypeError(
        f"{name}: {count} arguments are given, but must be (x, {arguments}) or (x1, x2, "
        f"{arguments})!"
    )


def _shows(*parameters: str) -> Callable[[Any], Any]:
    """Decorator: let the signature of a covariance function be that with one set of points, which
    names all its parameters.
    """

    def decorate(function: Any) -> Any:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        function.__signature__ = inspect.Signature(
            [inspect.Parameter(each, kind) for each in ("x", *parameters)]
        )
        return function

    return decorate


def _distance(z: Any) -> Any:
    """The square root, with derivative zero at zero; differentiable."""
    if type(z) is np.ndarray:
        return np.sqrt(z)
    zero = fixed(z) == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, z)))


def _inverse_distance(z: Any) -> Any:
    """Its reciprocal, zero at zero; differentiable."""
    zero = fixed(z) == 0
    return np.where(zero, 0.0, 1.0 / np.sqrt(np.where(zero, 1.0, z)))


def _matern(name: str, nu2: float, polynomial: Any, derivative: Any) -> Kernel:
    """A polynomial in ``a = sqrt(z)`` times ``exp(-a)``; the derivative with respect to z is
    another one.
    """

    def correlation(z: Any, out: Any) -> Any:
        a = np.sqrt(z)
        return np.multiply(polynomial(a), np.exp(np.negative(a, out), out), out)

    def slope(z: Any, r: Any, variance: Any) -> Any:
        a = _distance(z)
        return variance * derivative(a) * np.exp(-a)

    return Kernel(name, nu2, correlation, slope)


_DOC = """{title}

    Called ``{name}(x, sigma, length_scale)``, or ``{name}(x1, x2, sigma, length_scale)`` for the
    covariances between two sets of points.

    Parameters
    ----------
    x, x1, x2 : array_like, shape (n,) or (n, d)
        One number or one row per point.
    sigma : float
        The marginal standard deviation; positive.
    length_scale : float, or array_like of shape (d,)
        The length scale, or one for each dimension; positive.

    Returns
    -------
    VarMat, shape (n, n) or (n1, n2)

    Raises
    ------
    DomainError
        If `sigma` or `length_scale` is not positive and finite, or a point is not finite.
    ShapeError
        If the points do not go together.

    Notes
    -----
    :math:`{formula}`, where :math:`r` is the distance in units of the length scale.{note}

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.{name}(np.array([0.0, 1.0]), 2.0, 1.0).round(3)
    {example}
    """


def _make(kernel: Kernel, title: str, formula: str, off: str, note: str = "") -> Any:
    @_shows("sigma", "length_scale")
    def covariance(x: Any, *parameters: Any, **named: Any) -> Any:
        return gp_stationary_cov(
            *_two_sets(kernel.name, ("sigma", "length_scale"), x, parameters, named), kernel=kernel
        )

    example = f"array([[4.   , {off}],\n           [{off}, 4.   ]])"
    covariance.__name__ = covariance.__qualname__ = kernel.name
    covariance.__doc__ = _DOC.format(
        title=title, name=kernel.name, formula=formula, note=note, example=example
    )
    return covariance


gp_exp_quad_cov = _make(
    Kernel("gp_exp_quad_cov", -0.5, np.exp, lambda z, r, variance: r),
    "The squared exponential covariance function.",
    "\\sigma^2 \\exp(-r^2 / 2)",
    "2.426",
)
gp_exponential_cov = _make(
    Kernel(
        "gp_exponential_cov",
        1.0,
        lambda z, out: np.exp(-np.sqrt(z), out),
        lambda z, r, variance: -0.5 * r * _inverse_distance(z),
    ),
    "The exponential covariance function.",
    "\\sigma^2 \\exp(-r)",
    "1.472",
    " It has a kink where two points coincide; their derivative there is taken to be zero.",
)
gp_matern32_cov = _make(
    _matern("gp_matern32_cov", 3.0, lambda a: 1.0 + a, lambda a: -0.5),
    "The Matern covariance function of order 3/2.",
    "\\sigma^2 (1 + \\sqrt 3\\, r) \\exp(-\\sqrt 3\\, r)",
    "1.933",
)
gp_matern52_cov = _make(
    _matern("gp_matern52_cov", 5.0, lambda a: 1.0 + a + a * a / 3.0, lambda a: (1.0 + a) / -6.0),
    "The Matern covariance function of order 5/2.",
    "\\sigma^2 (1 + \\sqrt 5\\, r + 5 r^2 / 3) \\exp(-\\sqrt 5\\, r)",
    "2.096",
)
# A smooth function of the squared distance, with the period as length scale, unlike the distance
# itself: points that coincide have second derivatives too.
_SQUARED_SINES = Kernel(
    "gp_periodic_cov",
    math.pi**2,
    lambda z, out: np.square(np.sin(np.sqrt(z, out), out), out),
    lambda z, r, variance: variance * np.sinc(2.0 / math.pi * _distance(z)),
)


@_shows("sigma", "length_scale", "period")
def gp_periodic_cov(x: Any, *parameters: Any, **named: Any) -> Any:
    """The periodic covariance function.

    Called ``gp_periodic_cov(x, sigma, length_scale, period)``, or ``gp_periodic_cov(x1, x2, sigma,
    length_scale, period)`` for the covariances between two sets of points.

    Parameters
    ----------
    x, x1, x2 : array_like, shape (n,) or (n, d)
        One number or one row per point.
    sigma, length_scale, period : float
        The marginal standard deviation, the length scale and the period; positive.

    Returns
    -------
    VarMat, shape (n, n) or (n1, n2)

    Raises
    ------
    DomainError
        If a parameter is not positive and finite, or a point is not finite.
    ShapeError
        If the points do not go together.

    Notes
    -----
    :math:`\\sigma^2 \\exp(-2 \\sin^2(\\pi r / p) / \\ell^2)` with the distance :math:`r`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gp_periodic_cov(np.array([0.0, 0.5]), 2.0, 1.0, 1.0).round(3)
    array([[4.   , 0.541],
           [0.541, 4.   ]])
    """
    names = ("sigma", "length_scale", "period")
    x1, x2, *scalars = _two_sets("gp_periodic_cov", names, x, parameters, named)
    x1, x2 = as_operand(x1, "gp_periodic_cov: x"), as_operand(x2, "gp_periodic_cov: x2")
    for name, scalar in zip(names, scalars, strict=True):
        if np.ndim(scalar):
            raise ShapeError(
                f"gp_periodic_cov: {name} has shape {np.shape(scalar)}, but must be a scalar!"
            )
        check_values(partial(positive_finite.check, "gp_periodic_cov", name), scalar)
    _check_points("gp_periodic_cov", x1, x2, *scalars[:2])
    sigma, length_scale, period = scalars
    square = length_scale * length_scale
    check_values(
        partial(positive_finite.check, "gp_periodic_cov", "the square of length_scale"), square
    )
    squares = gp_stationary_cov(x1, x2, 1.0, period, kernel=_SQUARED_SINES)
    return sigma * sigma * np.exp(-2.0 / square * squares)


@_shows("sigma")
def gp_dot_prod_cov(x: Any, *parameters: Any, **named: Any) -> Any:
    """The dot product covariance function, of a linear regression.

    Called ``gp_dot_prod_cov(x, sigma)``, or ``gp_dot_prod_cov(x1, x2, sigma)`` for the covariances
    between two sets of points.

    Parameters
    ----------
    x, x1, x2 : array_like, shape (n,) or (n, d)
        One number or one row per point.
    sigma : float
        The standard deviation of the intercept; nonnegative.

    Returns
    -------
    VarMat, shape (n, n) or (n1, n2)

    Raises
    ------
    DomainError
        If `sigma` is negative, or a point is not finite.
    ShapeError
        If the points do not go together.

    Notes
    -----
    :math:`\\sigma^2 + x \\cdot y`.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gp_dot_prod_cov(np.array([1.0, 2.0]), 1.0)
    array([[2., 3.],
           [3., 5.]])
    """
    x1, x2, sigma = _two_sets("gp_dot_prod_cov", ("sigma",), x, parameters, named)
    x1, x2 = as_operand(x1, "gp_dot_prod_cov: x"), as_operand(x2, "gp_dot_prod_cov: x2")
    _check_points("gp_dot_prod_cov", x1, x2, sigma)
    check_values(partial(nonnegative.check, "gp_dot_prod_cov", "sigma"), sigma)
    return sigma * sigma + _rows(x1) @ _rows(x2).T


cov_exp_quad = gp_exp_quad_cov  # its older name in Stan
