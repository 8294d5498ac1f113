"""Covariance functions of Gaussian processes: a table of stationary kernels, the periodic one, and
dot products.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from varmat.core.domains import nonnegative, positive_finite
from varmat.core.operation import as_operand
from varmat.functions.aliases import alias
from varmat.functions.checks import check_values, fixed, misfit
from varmat.functions.docstrings import F, filled
from varmat.functions.stationary_covariances import (
    CovarianceFunction,
    as_rows,
    check_points,
    gp_stationary_cov,
)
from varmat.typing import ArrayFunction, Function, Operand, Result, array_valued

__all__ = [
    "cov_exp_quad",
    "gp_dot_prod_cov",
    "gp_exp_quad_cov",
    "gp_exponential_cov",
    "gp_matern32_cov",
    "gp_matern52_cov",
    "gp_periodic_cov",
]


def _two_sets(
    name: str,
    parameters: tuple[str, ...],
    x: Operand,
    values: tuple[Operand, ...],
    kwargs: dict[str, Operand],
) -> tuple[Result, ...]:
    """Return the arguments of a covariance function with both sets of points; one set serves as
    both.
    """
    count = 1 + len(values) + len(kwargs)
    last = parameters[len(parameters) - len(kwargs) :]
    if kwargs.keys() == {*last}:
        values = (*values, *(kwargs[item] for item in last))
        sets = {0: ("x",), 1: ("x1", "x2")}.get(len(values) - len(parameters))
        if sets is not None:
            titles = (*sets, *parameters)
            first, *others = (
                as_operand(item, f"{name}: {title}")
                for item, title in zip((x, *values), titles, strict=True)
            )
            # The operation sees from the identity of the objects that there is one set.
            return (first, *others) if len(sets) == 2 else (first, first, *others)
    arguments = ", ".join(parameters)
    raise TypeError(
        f"{name}: {count} arguments are given, but must be (x, {arguments}) or (x1, x2, "
        f"{arguments})!"
    )


def _shows(*parameters: str) -> Callable[[F], F]:
    """Decorate a function to show the signature with one set of points, which names all
    parameters.
    """

    def decorate(function: F) -> F:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(x, kind) for x in ("x", *parameters)]
        )
        return function

    return decorate


def _distance(z: Operand) -> Result:
    """Compute the square root, with derivative zero at zero; differentiable."""
    if type(z) is np.ndarray:
        return np.sqrt(z)
    zero = fixed(z) == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, z)))


def _inverse_distance(z: Operand) -> Result:
    """Compute the reciprocal of `_distance`, zero at zero; differentiable."""
    zero = fixed(z) == 0
    return np.where(zero, 0.0, 1.0 / np.sqrt(np.where(zero, 1.0, z)))


def _matern(
    name: str, nu2: float, polynomial: Function, derivative: Function
) -> CovarianceFunction:
    """Make a kernel that is a polynomial in ``a = sqrt(z)`` times ``exp(-a)``; its derivative with
    respect to z is `derivative` times ``exp(-a)``.
    """

    def correlation(z: Operand, out: np.ndarray | None) -> Result:
        a = np.sqrt(z)
        return np.multiply(polynomial(a), np.exp(np.negative(a, out), out), out)

    def slope(z: Operand, r: Operand, variance: Operand) -> Result:
        a = _distance(z)
        return variance * derivative(a) * np.exp(-a)

    return CovarianceFunction(name, nu2, correlation, slope)


def _make(
    kernel: CovarianceFunction, title: str, formula: str, off: str, note: str = ""
) -> ArrayFunction[...]:
    @filled(kernel.name, title=title, formula=formula, note=note, off=off)
    @_shows("sigma", "length_scale")
    @array_valued
    def covariance(x: Operand, *parameters: Operand, **kwargs: Operand) -> Result:
        """{title}

        Called ``{name}(x, sigma, length_scale)``, or ``{name}(x1, x2, sigma, length_scale)`` for
        the covariances between two sets of points.

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

        References
        ----------
        Carl Edward Rasmussen and Christopher K. I. Williams, Gaussian Processes for Machine
        Learning, MIT Press 2006, section 4.2.1.

        Examples
        --------
        >>> import numpy as np, varmat as vm
        >>> vm.{name}(np.array([0.0, 1.0]), 2.0, 1.0).round(3)
        array([[4.   , {off}],
               [{off}, 4.   ]])
        """
        return gp_stationary_cov(
            *_two_sets(kernel.name, ("sigma", "length_scale"), x, parameters, kwargs), kernel=kernel
        )

    return covariance


gp_exp_quad_cov = _make(
    CovarianceFunction("gp_exp_quad_cov", -0.5, np.exp, lambda z, r, variance: r),
    "Compute the squared exponential covariance function.",
    "\\sigma^2 \\exp(-r^2 / 2)",
    "2.426",
)
gp_exponential_cov = _make(
    CovarianceFunction(
        "gp_exponential_cov",
        1.0,
        lambda z, out: np.exp(-np.sqrt(z), out),
        lambda z, r, variance: -0.5 * r * _inverse_distance(z),
    ),
    "Compute the exponential covariance function.",
    "\\sigma^2 \\exp(-r)",
    "1.472",
    " It has a kink where two points coincide; their derivative there is taken to be zero.",
)
gp_matern32_cov = _make(
    _matern("gp_matern32_cov", 3.0, lambda a: 1.0 + a, lambda a: -0.5),
    "Compute the Matern covariance function of order 3/2.",
    "\\sigma^2 (1 + \\sqrt 3\\, r) \\exp(-\\sqrt 3\\, r)",
    "1.933",
)
gp_matern52_cov = _make(
    _matern("gp_matern52_cov", 5.0, lambda a: 1.0 + a + a * a / 3.0, lambda a: (1.0 + a) / -6.0),
    "Compute the Matern covariance function of order 5/2.",
    "\\sigma^2 (1 + \\sqrt 5\\, r + 5 r^2 / 3) \\exp(-\\sqrt 5\\, r)",
    "2.096",
)
# The squared distance enters with the period as length scale. The covariance is a smooth function
# of it, unlike of the distance, so points that coincide have second derivatives too.
_SQUARED_SINES = CovarianceFunction(
    "gp_periodic_cov",
    math.pi**2,
    lambda z, out: np.square(np.sin(np.sqrt(z, out), out), out),
    lambda z, r, variance: variance * np.sinc(2.0 / math.pi * _distance(z)),
)


@_shows("sigma", "length_scale", "period")
@array_valued
def gp_periodic_cov(x: Operand, *parameters: Operand, **kwargs: Operand) -> Result:
    """Compute the periodic covariance function.

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

    References
    ----------
    Carl Edward Rasmussen and Christopher K. I. Williams, Gaussian Processes for Machine Learning,
    MIT Press 2006, section 4.2.3.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gp_periodic_cov(np.array([0.0, 0.5]), 2.0, 1.0, 1.0).round(3)
    array([[4.   , 0.541],
           [0.541, 4.   ]])
    """
    names = ("sigma", "length_scale", "period")
    x1, x2, *scalars = _two_sets("gp_periodic_cov", names, x, parameters, kwargs)
    x1, x2 = as_operand(x1, "gp_periodic_cov: x"), as_operand(x2, "gp_periodic_cov: x2")
    for name, scalar in zip(names, scalars, strict=True):
        if np.ndim(scalar):
            raise misfit("gp_periodic_cov", name, np.shape(scalar), "be a scalar")
        check_values(partial(positive_finite.check, "gp_periodic_cov", name), scalar)
    check_points("gp_periodic_cov", x1, x2, *scalars[:2])
    sigma, length_scale, period = scalars
    square = length_scale * length_scale
    check_values(
        partial(positive_finite.check, "gp_periodic_cov", "the square of length_scale"), square
    )
    squares = gp_stationary_cov(x1, x2, 1.0, period, kernel=_SQUARED_SINES)
    return sigma * sigma * np.exp(-2.0 / square * squares)


@_shows("sigma")
@array_valued
def gp_dot_prod_cov(x: Operand, *parameters: Operand, **kwargs: Operand) -> Result:
    """Compute the dot product covariance function, used in linear regression.

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

    References
    ----------
    Carl Edward Rasmussen and Christopher K. I. Williams, Gaussian Processes for Machine Learning,
    MIT Press 2006, section 4.2.2.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gp_dot_prod_cov(np.array([1.0, 2.0]), 1.0)
    array([[2., 3.],
           [3., 5.]])
    """
    x1, x2, sigma = _two_sets("gp_dot_prod_cov", ("sigma",), x, parameters, kwargs)
    x1, x2 = as_operand(x1, "gp_dot_prod_cov: x"), as_operand(x2, "gp_dot_prod_cov: x2")
    check_points("gp_dot_prod_cov", x1, x2, sigma)
    check_values(partial(nonnegative.check, "gp_dot_prod_cov", "sigma"), sigma)
    return sigma * sigma + as_rows(x1) @ as_rows(x2).T


cov_exp_quad = alias("cov_exp_quad", gp_exp_quad_cov)  # its older name in Stan
