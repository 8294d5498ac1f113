"""Finite differences: of values, to check other derivatives against, or of derivatives of a lower
order.
"""

from __future__ import annotations

from functools import wraps
from typing import overload

import numpy as np

from varmat.core.errors import ShapeError
from varmat.derivatives.hessians import hessian
from varmat.derivatives.inputs_and_outputs import output
from varmat.derivatives.reverse import gradient
from varmat.derivatives.structure import leaves_of, matching_leaves, plain_tree, rebuilt, shaped
from varmat.typing import Function, Operand, Plain, Result

__all__ = [
    "finite_diff_grad_hessian",
    "finite_diff_grad_hessian_auto",
    "finite_diff_gradient",
    "finite_diff_gradient_auto",
    "finite_diff_hessian",
    "finite_diff_hessian_auto",
    "finite_diff_hessian_times_vector_auto",
    "finite_diff_stepsize",
]

# The central difference of order six: f'(x) h = sum of weight * (f(x + step h) - f(x - step h)).
_STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


@overload
def finite_diff_gradient(f: Function, x: float, eps: float = 1e-3) -> float: ...
@overload
def finite_diff_gradient(f: Function, x: np.ndarray, eps: float = 1e-3) -> np.ndarray: ...
@overload
def finite_diff_gradient(f: Function, x: object, eps: float = 1e-3) -> Result: ...
def finite_diff_gradient(f: Function, x: object, eps: float = 1e-3) -> Result:
    """Compute the gradient of a scalar function from central differences of order six.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; it is called with plain numbers, six times per element of
        `x`.
    x : scalar, array_like or nested structure of them
        The point.
    eps : float
        The step, in units of ``max(1, |x_i|)`` for element ``x_i``. The function must exist three
        steps to either side.

    Returns
    -------
    float, ndarray or structure like `x`

    Raises
    ------
    ShapeError
        If `f` returns an array.

    Notes
    -----
    The error is about ``eps**6`` times the seventh derivative over 140, plus ``1e-16 / eps`` times
    the function.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_gradient
    >>> np.round(finite_diff_gradient(lambda x: np.sum(x**3), np.array([1.0, 2.0])), 9)
    array([ 3., 12.])
    """
    return _gradient_in_the_name_of("finite_diff_gradient", f, x, eps)


def _gradient_in_the_name_of(function: str, f: Function, x: object, eps: float) -> Result:
    points = plain_tree(function, "x", x)
    return _rebuilt_from(points, _gradient(_of_vector(function, f, points), _flat(points), eps))


def finite_diff_hessian(f: Function, x: object, eps: float = 5e-3) -> np.ndarray:
    """Compute the Hessian of a scalar function from central differences of order six of its values.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; it is called with plain numbers, 36 times per element of the
        Hessian.
    x : scalar, array_like or nested structure of them
        The point, with N numbers in all.
    eps : float
        The step, in units of ``max(1, |x_i|)`` for element ``x_i``. The function must exist six
        steps to either side.

    Returns
    -------
    ndarray, shape (N, N)
        The elements of a structure follow each other.

    Raises
    ------
    ShapeError
        If `f` returns an array.

    Notes
    -----
    The error is about ``eps**6`` times eighth derivatives over 70, plus ``1e-16 / eps**2`` times
    the function.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_hessian
    >>> np.round(finite_diff_hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0])), 6) + 0.0
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    points = plain_tree("finite_diff_hessian", "x", x)
    function, vector = _of_vector("finite_diff_hessian", f, points), _flat(points)
    return _symmetric(lambda moved: _gradient(function, moved, eps), vector, eps)


# The step is in units of the elements already.
@wraps(finite_diff_gradient, assigned=("__doc__",))
def finite_diff_gradient_auto(f: Function, x: object, eps: float = 1e-3) -> Result:
    return _gradient_in_the_name_of("finite_diff_gradient_auto", f, x, eps)


def finite_diff_hessian_auto(f: Function, x: object) -> np.ndarray:
    """Compute the Hessian of a scalar function from central differences of order six of gradients.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; its gradient is evaluated six times per element of `x`.
    x : scalar, array_like or nested structure of them
        The point, with N numbers in all.

    Returns
    -------
    ndarray, shape (N, N)
        Symmetric. The elements of a structure follow each other.

    Raises
    ------
    ShapeError
        If `f` returns an array.

    Notes
    -----
    The steps are 0.001 times ``max(1, |x_i|)`` for element ``x_i``, so that the error is about
    1e-18 times seventh derivatives of the gradient, plus 1e-13 times the gradient. `varmat.hessian`
    is exact.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_hessian_auto
    >>> found = finite_diff_hessian_auto(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]))
    >>> np.round(found, 9) + 0.0
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    points = plain_tree("finite_diff_hessian_auto", "x", x)
    vector = _flat(points)
    return _symmetric(_gradient_of_vector(f, points), vector, _STEP)


def finite_diff_hessian_times_vector_auto(f: Function, x: object, v: object) -> Result:
    """Multiply the Hessian of a scalar function by a vector, from central differences of order six
    of its gradient.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; its gradient is evaluated six times.
    x : scalar, array_like or nested structure of them
        The point.
    v : like `x`
        The vector, of the same structure and shapes.

    Returns
    -------
    float, ndarray or structure like `x`

    Raises
    ------
    ShapeError
        If `v` does not fit `x`, or `f` returns an array.

    Notes
    -----
    The step along `v` is 0.001 times ``max(1, max(|x|)) / max(|v|)``. `varmat.hessian_times_vector`
    is exact.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_hessian_times_vector_auto
    >>> product = finite_diff_hessian_times_vector_auto(
    ...     lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]), np.array([1.0, 1.0])
    ... )
    >>> np.round(product, 9)
    array([16.,  6.])
    """
    function = "finite_diff_hessian_times_vector_auto"
    points = plain_tree(function, "x", x)
    vector, direction = (
        _flat(points),
        _flat(rebuilt(points, matching_leaves(function, "v", v, points))),
    )
    longest = np.max(np.abs(direction), initial=0.0)
    if not longest:
        gradient(f, points)  # raises if the function is not scalar
        return _rebuilt_from(points, np.zeros(vector.size))
    h = _STEP * max(1.0, np.max(np.abs(vector), initial=0.0)) / longest
    slope = _gradient_of_vector(f, points)
    parts = (
        weight * (slope(vector + step * h * direction) - slope(vector - step * h * direction))
        for step, weight in _STENCIL
    )
    return _rebuilt_from(points, sum(parts) / h)


def finite_diff_grad_hessian(f: Function, x: object, eps: float = 1e-3) -> np.ndarray:
    """Compute the derivatives of the Hessian of a scalar function, from central differences of
    order six of the exact Hessian.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; its Hessian is evaluated six times per element of `x`.
    x : array_like, shape (n,)
        The point.
    eps : float
        The step, in units of ``max(1, |x_i|)`` for element ``x_i``.

    Returns
    -------
    ndarray, shape (n, n, n)
        Element ``[i, j, k]`` is the derivative in element `i` of the Hessian's element in row `j`
        and column `k`.

    Raises
    ------
    ShapeError
        If `x` is not a vector, or `f` returns an array.

    Notes
    -----
    The error is about ``eps**6`` times ninth derivatives, plus ``1e-16 / eps`` times the Hessian.
    `varmat.grad_hessian` is exact.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_grad_hessian
    >>> found = finite_diff_grad_hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]))
    >>> np.round(found[0], 9) + 0.0
    array([[0., 2.],
           [2., 0.]])
    """
    return _grad_hessian("finite_diff_grad_hessian", f, x, eps)


def finite_diff_grad_hessian_auto(f: Function, x: object) -> np.ndarray:
    """Compute `finite_diff_grad_hessian` with steps chosen by the size of the elements.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; its Hessian is evaluated six times per element of `x`.
    x : array_like, shape (n,)
        The point.

    Returns
    -------
    ndarray, shape (n, n, n)
        Element ``[i, j, k]`` is the derivative in element `i` of the Hessian's element in row `j`
        and column `k`.

    Raises
    ------
    ShapeError
        If `x` is not a vector, or `f` returns an array.

    Notes
    -----
    The steps are 0.001 times ``max(1, |x_i|)`` for element ``x_i``. `varmat.grad_hessian` is exact.

    References
    ----------
    B. Fornberg (1988), "Generation of finite difference formulas on arbitrarily spaced grids",
    Mathematics of Computation 51, 699-706.

    Examples
    --------
    >>> import numpy as np
    >>> from varmat.testing import finite_diff_grad_hessian_auto
    >>> found = finite_diff_grad_hessian_auto(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]))
    >>> np.round(found[1], 9) + 0.0
    array([[2., 0.],
           [0., 0.]])
    """
    return _grad_hessian("finite_diff_grad_hessian_auto", f, x, _STEP)


def finite_diff_stepsize(u: float) -> float:
    """Return ``cbrt(2**-52) * max(1, |u|)``, the step that balances the errors of a central
    difference of order two.

    Parameters
    ----------
    u : float
        The point.

    Returns
    -------
    float

    Notes
    -----
    About 6.1e-6 for moderate numbers. The functions of this module, whose differences are of order
    six, take longer steps.

    References
    ----------
    W. H. Press, S. A. Teukolsky, W. T. Vetterling and B. P. Flannery (2007), Numerical Recipes,
    third edition, Cambridge University Press, section 5.7.

    Examples
    --------
    >>> from varmat.testing import finite_diff_stepsize
    >>> print(f"{finite_diff_stepsize(-100.0):.6g}")
    0.000605545
    """
    return float(np.cbrt(np.finfo(np.float64).eps) * max(1.0, abs(float(u))))


# The step for differences of derivatives, in units of the elements.
_STEP = 1e-3


def _symmetric(slope: Function, vector: np.ndarray, eps: float) -> np.ndarray:
    """Compute the Hessian by differences of the gradient."""
    rows: list[Plain] = _central(slope, vector, eps)
    matrix = np.reshape(np.array(rows), (vector.size, vector.size))
    return np.asarray((matrix + matrix.T) / 2)


def _gradient_of_vector(f: Function, points: object) -> Function:
    return lambda vector: _flat(gradient(f, _rebuilt_from(points, vector)))


def _grad_hessian(function: str, f: Function, x: object, eps: float) -> np.ndarray:
    args = np.asarray(x) if isinstance(x, (list, tuple)) else x
    vector = np.asarray(plain_tree(function, "x", args))
    if vector.ndim != 1:
        raise ShapeError(f"{function}: x has shape {vector.shape}, but must be a vector!")
    n = vector.size
    return np.reshape(np.array(_central(lambda moved: hessian(f, moved), vector, eps)), (n, n, n))


def _flat(points: object) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in leaves_of(points)] or [np.empty(0)])


def _rebuilt_from(points: object, vector: np.ndarray) -> Result:
    leaves = shaped(vector, map(np.shape, leaves_of(points)))
    return rebuilt(points, (x if type(x) is float else x.copy() for x in leaves))


def _of_vector(name: str, f: Function, points: object) -> Function:
    def function(vector: np.ndarray) -> float:
        y = output(name, f(_rebuilt_from(points, vector)))
        if np.shape(y):
            raise ShapeError(
                f"{name}: the result has shape {np.shape(y)}, but must be a scalar: sum it!"
            )
        return float(y)

    return function


def _gradient(function: Function, vector: np.ndarray, eps: float) -> np.ndarray:
    return np.array(_central(function, vector, eps), dtype=np.float64)


def _central(function: Function, vector: np.ndarray, eps: float) -> list[Operand]:
    """Compute the central difference of `function` along each axis."""

    def along(i: int) -> Plain:
        h = eps * max(1.0, abs(vector[i]))
        # Rounded so that adding it to the element is exact.
        h = (vector[i] + h) - vector[i]

        def at(steps: int) -> Plain:
            moved = vector.copy()
            moved[i] += steps * h
            return function(moved)

        return sum(weight * (at(step) - at(-step)) for step, weight in _STENCIL) / h

    return [along(i) for i in range(vector.size)]
