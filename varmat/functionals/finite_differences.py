"""Derivatives from function values alone, to check the others against."""

from __future__ import annotations

from typing import Any

import numpy as np

from varmat.core.errors import ShapeError
from varmat.functionals.recording import output
from varmat.functionals.structure import leaves_of, plain_tree, rebuilt, size_of

__all__ = ["finite_diff_gradient", "finite_diff_hessian"]

# The central difference of order six: f'(x) h = sum of weight * (f(x + step h) - f(x - step h)).
_STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


def finite_diff_gradient(f: Any, x: Any, eps: float = 1e-3) -> Any:
    """The gradient of a scalar function from central differences of order six.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; it is called with plain numbers, six times per element of `x`.
    x : scalar, array_like or nested structure of them
        The point.
    eps : float
        The step, in units of ``max(1, |x_i|)`` for element ``x_i``. The function must exist three steps to either side.

    Returns
    -------
    float, ndarray or structure like `x`

    Raises
    ------
    ShapeError
        If `f` returns an array.

    Notes
    -----
    The error is about ``eps**6`` times the seventh derivative over 140, plus ``1e-16 / eps`` times the function.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.round(vm.finite_diff_gradient(lambda x: np.sum(x**3), np.array([1.0, 2.0])), 9)
    array([ 3., 12.])
    """
    points = plain_tree("finite_diff_gradient", "x", x)
    return _rebuilt_from(points, _gradient(_of_vector("finite_diff_gradient", f, points), _flat(points), eps))


def finite_diff_hessian(f: Any, x: Any, eps: float = 5e-3) -> np.ndarray:
    """The Hessian of a scalar function from central differences of order six of its values.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; it is called with plain numbers, 36 times per element of the Hessian.
    x : scalar, array_like or nested structure of them
        The point, with N numbers in all.
    eps : float
        The step, in units of ``max(1, |x_i|)`` for element ``x_i``. The function must exist six steps to either side.

    Returns
    -------
    ndarray, shape (N, N)
        The elements of a structure stand one after the other.

    Raises
    ------
    ShapeError
        If `f` returns an array.

    Notes
    -----
    The error is about ``eps**6`` times eighth derivatives over 70, plus ``1e-16 / eps**2`` times the function.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> np.round(vm.finite_diff_hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0])), 6) + 0.0
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    points = plain_tree("finite_diff_hessian", "x", x)
    function, vector = _of_vector("finite_diff_hessian", f, points), _flat(points)
    rows: Any = _central(lambda moved: _gradient(function, moved, eps), vector, eps)
    matrix = np.reshape(np.array(rows), (vector.size, vector.size))
    return np.asarray((matrix + matrix.T) / 2)


def _flat(points: Any) -> np.ndarray:
    return np.concatenate([np.ravel(x) for x in leaves_of(points)] or [np.empty(0)])


def _rebuilt_from(points: Any, vector: np.ndarray) -> Any:
    leaves, start = [], 0
    for x in leaves_of(points):
        part = vector[start : start + size_of(x)]
        leaves.append(float(part[0]) if type(x) is float else part.reshape(x.shape).copy())
        start += size_of(x)
    return rebuilt(points, leaves)


def _of_vector(name: str, f: Any, points: Any) -> Any:
    def function(vector: np.ndarray) -> float:
        y = output(name, f(_rebuilt_from(points, vector)))
        if np.shape(y):
            raise ShapeError(f"{name}: the result has shape {np.shape(y)}, but must be a scalar: sum it!")
        return float(y)

    return function


def _gradient(function: Any, vector: np.ndarray, eps: float) -> np.ndarray:
    return np.array(_central(function, vector, eps), dtype=np.float64)


def _central(function: Any, vector: np.ndarray, eps: float) -> list[Any]:
    """The central difference of `function` along each axis."""

    def along(i: int) -> Any:
        h = eps * max(1.0, abs(vector[i]))
        # A step that the arithmetic represents exactly at this point.
        h = (vector[i] + h) - vector[i]

        def at(steps: int) -> Any:
            moved = vector.copy()
            moved[i] += steps * h
            return function(moved)

        return sum(weight * (at(step) - at(-step)) for step, weight in _STENCIL) / h

    return [along(i) for i in range(vector.size)]
