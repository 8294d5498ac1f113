"""Covariance functions of Gaussian processes.

A stationary kernel is a row of the table at the end: the correlation as a function of the squared distance in units of the
length scale, and its derivative. One operation serves all rows. Distances are computed once and kept; differences are taken
before anything else, so that close points lose no digits and the matrix is exactly symmetric; the reverse pass goes through
products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from varmat.core.dispatch import plain
from varmat.core.errors import ShapeError, finite, nonnegative, positive_finite
from varmat.core.operation import Saved, as_operand, operation

__all__ = [
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
    correlation : callable
        A function of the squared distances `z`; differentiable.
    slope : callable
        Its derivative, a function of `z` and of the correlation; differentiable. It must be finite at ``z = 0``, where the
        distance of two points does not depend on them to first order.
    """

    name: str
    correlation: Callable[[Any], Any]
    slope: Callable[[Any, Any], Any]


def _rows(x: Any) -> Any:
    """Points as rows; differentiable."""
    return x[:, None] if np.ndim(x) == 1 else x


def _differences(x1: Any, x2: Any, length_scale: Any) -> Any:
    """Differences between all points in units of the length scale, one dimension after the other."""
    x1, x2 = _rows(x1), _rows(x2)
    for u, v, scale in zip(x1.T, x2.T, np.broadcast_to(length_scale, x1.shape[1]), strict=True):
        part = np.subtract.outer(u, v)
        yield np.divide(part, scale, out=part)


def _check_points(function: str, x1: Any, x2: Any, sigma: Any, length_scale: Any = 1.0) -> None:
    for name, x in (("x", x1), ("x2", x2)):
        if np.ndim(x) not in (1, 2):
            raise ShapeError(f"{function}: {name} has shape {np.shape(x)}, but must have one row (or number) per point!")
        finite.check(function, name, plain(x))
    point = np.shape(x1)[1:]
    if np.shape(x2)[1:] != point:
        raise ShapeError(f"{function}: x2 has shape {np.shape(x2)}, but must have points of shape {point}, as x has!")
    if np.ndim(sigma):
        raise ShapeError(f"{function}: sigma has shape {np.shape(sigma)}, but must be a scalar!")
    if np.ndim(length_scale) and np.shape(length_scale) != point:
        shape = np.shape(length_scale)
        raise ShapeError(f"{function}: length_scale has shape {shape}, but must be a scalar or have shape {point}!")


@operation(operands="x1 x2 sigma length_scale")
def gp_stationary_cov(x1: Any, x2: Any, sigma: Any, length_scale: Any, *, kernel: Kernel) -> Any:
    """The covariances between two sets of points for a row of the table: what the public functions record."""
    _check_points(kernel.name, x1, x2, sigma, length_scale)
    positive_finite.check(kernel.name, "sigma", sigma)
    positive_finite.check(kernel.name, "length_scale", length_scale)
    z = np.zeros((len(x1), len(x2)))
    for part in _differences(x1, x2, length_scale):
        np.multiply(part, part, out=part)
        np.add(z, part, out=z)
    k = kernel.correlation(z)
    return Saved(np.multiply(k, sigma * sigma, out=k), z=z)


@gp_stationary_cov.reverse
def gp_stationary_cov_reverse(g: Any, r: Any, x1: Any, x2: Any, sigma: Any, length_scale: Any, kernel: Kernel, z: Any) -> Any:
    # w is the adjoint of the squared distances.
    w = np.multiply(g, kernel.slope(z, r / (sigma * sigma)))
    np.multiply(w, sigma * sigma, out=w)

    def of_points(w: Any, x: Any, y: Any) -> Any:
        # Around their mean, on which nothing depends, less is lost in the difference.
        u, v = _rows(x), _rows(y)
        centre = u.mean(axis=0) if len(u) else 0.0
        u, v = u - centre, v - centre
        c = u * w.sum(axis=1)[:, None] - w @ v
        return (c * (2.0 / np.square(length_scale))).reshape(x.shape)

    def of_scale() -> Any:
        if np.ndim(length_scale) == 0:
            return -2.0 / length_scale * np.vdot(w, z)
        return -2.0 / length_scale * np.array([np.vdot(w, np.square(part)) for part in _differences(x1, x2, length_scale)])

    return lambda: of_points(w, x1, x2), lambda: of_points(w.T, x2, x1), lambda: 2.0 / sigma * np.vdot(g, r), of_scale


@gp_stationary_cov.tangent
def gp_stationary_cov_tangent(r: Any, x1: Any, x2: Any, sigma: Any, length_scale: Any, kernel: Kernel) -> Any:
    # All differences at once, for here they must be differentiable themselves: shape (n1, n2, d).
    u = (_rows(x1)[:, None, :] - _rows(x2)[None, :, :]) / length_scale
    z = np.sum(u * u, axis=-1)
    w = 2.0 * sigma * sigma * kernel.slope(z, kernel.correlation(z))
    return (
        lambda t: w * np.sum(u * (_rows(t)[:, None, :] / length_scale), axis=-1),
        lambda t: -w * np.sum(u * (_rows(t)[None, :, :] / length_scale), axis=-1),
        lambda t: 2.0 * t / sigma * r,
        lambda t: -w * np.sum(u * u * t / length_scale, axis=-1),
    )


def _two_sets(name: str, parameters: tuple[str, ...], x: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a covariance function with both sets of points; one set stands for both."""
    if len(given) == len(parameters):
        x = as_operand(x, f"{name}: x")
        return (x, x, *given)
    if len(given) == len(parameters) + 1:
        return (x, *given)
    arguments = ", ".join(parameters)
    raise TypeError(f"{name}: {1 + len(given)} arguments are given, but must be (x, {arguments}) or (x1, x2, {arguments})!")


def _distance(z: Any) -> Any:
    """The square root, with derivative zero at zero; differentiable."""
    zero = plain(z) == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, z)))


def _inverse_distance(z: Any) -> Any:
    """Its reciprocal, zero at zero; differentiable."""
    zero = plain(z) == 0
    return np.where(zero, 0.0, 1.0 / np.sqrt(np.where(zero, 1.0, z)))


def _matern(name: str, nu2: float, polynomial: Any, derivative: Any) -> Kernel:
    """A polynomial in ``a = sqrt(nu2 z)`` times ``exp(-a)``; the derivative with respect to z is another one."""

    def times_exponential(factor: Any, z: Any) -> Any:
        a = np.sqrt(nu2) * _distance(z)
        return factor(a) * np.exp(-a)

    return Kernel(name, lambda z: times_exponential(polynomial, z), lambda z, k: times_exponential(derivative, z))


_DOC = """{title}

    Called ``{name}(x, sigma, length_scale)``, or ``{name}(x1, x2, sigma, length_scale)`` for the covariances between two sets of
    points.

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
    def covariance(x: Any, *parameters: Any) -> Any:
        return gp_stationary_cov(*_two_sets(kernel.name, ("sigma", "length_scale"), x, parameters), kernel=kernel)

    example = f"array([[4.   , {off}],\n           [{off}, 4.   ]])"
    covariance.__name__ = covariance.__qualname__ = kernel.name
    covariance.__doc__ = _DOC.format(title=title, name=kernel.name, formula=formula, note=note, example=example)
    return covariance


gp_exp_quad_cov = _make(
    Kernel("gp_exp_quad_cov", lambda z: np.exp(-0.5 * z), lambda z, k: -0.5 * k),
    "The squared exponential covariance function.",
    "\\sigma^2 \\exp(-r^2 / 2)",
    "2.426",
)
gp_exponential_cov = _make(
    Kernel("gp_exponential_cov", lambda z: np.exp(-_distance(z)), lambda z, k: -0.5 * k * _inverse_distance(z)),
    "The exponential covariance function.",
    "\\sigma^2 \\exp(-r)",
    "1.472",
    " It has a kink where two points coincide; their derivative there is taken to be zero.",
)
gp_matern32_cov = _make(
    _matern("gp_matern32_cov", 3.0, lambda a: 1.0 + a, lambda a: -1.5),
    "The Matern covariance function of order 3/2.",
    "\\sigma^2 (1 + \\sqrt 3\\, r) \\exp(-\\sqrt 3\\, r)",
    "1.933",
)
gp_matern52_cov = _make(
    _matern("gp_matern52_cov", 5.0, lambda a: 1.0 + a + a * a / 3.0, lambda a: (-5.0 / 6.0) * (1.0 + a)),
    "The Matern covariance function of order 5/2.",
    "\\sigma^2 (1 + \\sqrt 5\\, r + 5 r^2 / 3) \\exp(-\\sqrt 5\\, r)",
    "2.096",
)
_DISTANCES = Kernel("gp_periodic_cov", _distance, lambda z, k: 0.5 * _inverse_distance(z))


def gp_periodic_cov(x: Any, *parameters: Any) -> Any:
    """The periodic covariance function.

    Called ``gp_periodic_cov(x, sigma, length_scale, period)``, or ``gp_periodic_cov(x1, x2, sigma, length_scale, period)`` for the
    covariances between two sets of points.

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
    x1, x2, *scalars = _two_sets("gp_periodic_cov", names, x, parameters)
    x1, x2 = as_operand(x1, "gp_periodic_cov: x"), as_operand(x2, "gp_periodic_cov: x2")
    for name, scalar in zip(names, scalars, strict=True):
        if np.ndim(scalar):
            raise ShapeError(f"gp_periodic_cov: {name} has shape {np.shape(scalar)}, but must be a scalar!")
        positive_finite.check("gp_periodic_cov", name, plain(scalar))
    _check_points("gp_periodic_cov", x1, x2, *scalars[:2])
    sigma, length_scale, period = scalars
    wave = np.sin(np.pi / period * gp_stationary_cov(x1, x2, 1.0, 1.0, kernel=_DISTANCES)) / length_scale
    return sigma * sigma * np.exp(-2.0 * np.square(wave))


def gp_dot_prod_cov(x: Any, *parameters: Any) -> Any:
    """The dot product covariance function, of a linear regression.

    Called ``gp_dot_prod_cov(x, sigma)``, or ``gp_dot_prod_cov(x1, x2, sigma)`` for the covariances between two sets of points.

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
    x1, x2, sigma = _two_sets("gp_dot_prod_cov", ("sigma",), x, parameters)
    x1, x2 = as_operand(x1, "gp_dot_prod_cov: x"), as_operand(x2, "gp_dot_prod_cov: x2")
    _check_points("gp_dot_prod_cov", x1, x2, sigma)
    nonnegative.check("gp_dot_prod_cov", "sigma", plain(sigma))
    return sigma * sigma + _rows(x1) @ _rows(x2).T
