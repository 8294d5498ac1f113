"""Directional derivatives, by one pass with dual numbers; nothing is recorded but what the function records of its own."""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np

from varmat.core.array_methods import ArrayMethods
from varmat.core.callbacks import CALLBACKS
from varmat.core.dual import Dual, Level
from varmat.core.errors import ShapeError, TapeError
from varmat.core.matvar import MatVar
from varmat.core.tape import current_tape
from varmat.functionals.recording import lost, output, plain_copy, recording
from varmat.functionals.reverse import ABSENT, Derived, named
from varmat.functionals.structure import leaves_of, matching_leaves, plain_tree, rebuilt

__all__ = ["derivative", "gradient_dot_vector", "jvp", "partial_derivative"]


def call_with_tangents(
    function: str, f: Any, points: Any, tangents: list[Any], args: Any = (), kwargs: Any = None, make: Any = Dual
) -> Any:
    """Call `f`, in a scope, at the duals that `make` makes of the leaves of `points` and the tangents."""

    duals = list(map(make, leaves_of(points), tangents))
    # What else is a dual, of a functional around this one or made by hand, carries a derivative in another direction.
    level = Level(function)
    for dual in duals:
        dual.level = level
    y = f(*rebuilt(points, duals), *args, **(kwargs or {}))
    for item in leaves_of(y):
        if isinstance(item, Dual) and item.level is not level:
            if item.level is not None:
                raise lost(function, item)
            asked = "whose derivative is not the one asked for: return x.val or x.tan"
            raise TapeError(f"{function}: the result is a Dual that was made by hand, {asked}")
    for rule, _, _, _ in current_tape():
        if rule in CALLBACKS:
            raise TypeError(
                f"{function}: the function uses {rule.name}, which has no tangent rule, so its share in the derivative would be "
                "lost: make it an operation with one, see varmat.operation"
            )
    return y


def dual_parts(function: str, y: Any) -> tuple[Any, Any]:
    """Value and tangent of one result; the tangent is None if the result is constant."""
    if isinstance(y, Dual):
        return y.val, y.tan
    return output(function, y), None


def plain_parts(function: str, y: Any, k: int | None = None) -> tuple[Any, Any]:
    """Value and tangent of one result as a float and new arrays, the tangent with a leading axis if there are `k` directions."""
    value, tangent = dual_parts(function, y)
    for part in (value, tangent):
        if isinstance(part, (ArrayMethods, MatVar)):
            raise lost(function, part)
    shape = np.shape(value) if k is None else (k, *np.shape(value))
    return plain_copy(value), plain_copy(np.zeros(shape) if tangent is None else tangent)


@overload
def jvp(f: Any) -> Derived[tuple[Any, Any]]: ...
@overload
def jvp(f: Any, primals: Any, tangents: Any) -> tuple[Any, Any]: ...
def jvp(f: Any, primals: Any = ABSENT, tangents: Any = ABSENT) -> Any:
    """The value of a function and its derivative in a direction: the Jacobian times a vector.

    Parameters
    ----------
    f : callable
        Takes ``*primals`` and returns a scalar, an array, or a structure of them.
    primals : tuple or list
        The point: one item per argument, a scalar, an array_like or a nested structure of them.
    tangents : tuple or list
        The direction, of the same structure and shapes.

    Returns
    -------
    value, tangent : float, ndarray or structure of them
        Without a point and a direction: a function of them, which `varmat.recorded` takes too.

    Raises
    ------
    TypeError
        If `primals` is not a tuple or a list.
    ShapeError
        If the tangents do not fit the primals.
    TapeError
        If something differentiable besides the arguments enters: a dual made by hand, or of a functional around this one.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.jvp(np.multiply, (np.array([1.0, 2.0]), 3.0), (np.array([1.0, 0.0]), 1.0))
    (array([3., 6.]), array([4., 2.]))
    >>> vm.jvp(np.sin)((0.0,), (2.0,))
    (0.0, 2.0)
    """
    if primals is ABSENT and tangents is ABSENT:
        return named(Derived(_jvp, f), f, "jvp", like=partial(_jvp, f))
    if primals is ABSENT or tangents is ABSENT:
        raise TypeError("jvp: there is a point without a direction, or a direction without a point")
    return _jvp(f, primals, tangents)


def _jvp(f: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    if not isinstance(primals, (tuple, list)):
        raise TypeError(f"jvp: primals is a {type(primals).__name__}, but must be a tuple or list of the arguments!")
    points = plain_tree("jvp", "primals", primals)
    directions = matching_leaves("jvp", "tangents", tangents, points)
    with recording():
        y = call_with_tangents("jvp", f, points, directions)
        parts = [plain_parts("jvp", item) for item in leaves_of(y)]
    return rebuilt(y, (value for value, _ in parts)), rebuilt(y, (tangent for _, tangent in parts))


def gradient_dot_vector(f: Any, x: Any, v: Any, /, *args: Any, **kwargs: Any) -> float:
    """The directional derivative of a scalar function, the gradient times a vector, without the gradient.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    v : like `x`
        The direction, of the same structure and shapes.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

    Returns
    -------
    float

    Raises
    ------
    ShapeError
        If `v` does not fit `x`, or `f` returns an array.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient_dot_vector(lambda x: np.sum(x**2), np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    42.0
    """
    return _directional("gradient_dot_vector", f, x, v, args, kwargs)


def _directional(name: str, f: Any, x: Any, v: Any, args: Any, kwargs: Any) -> float:
    points = (plain_tree(name, "x", x),)
    tangents = matching_leaves(name, "v", v, points[0])
    with recording():
        value, tangent = plain_parts(name, call_with_tangents(name, f, points, tangents, args, kwargs))
    if np.shape(value):
        raise ShapeError(f"{name}: the result has shape {np.shape(value)}, but must be a scalar: sum it, or use varmat.jvp!")
    return float(tangent)


def partial_derivative(f: Any, x: Any, n: int | tuple[int, ...], /, *args: Any, **kwargs: Any) -> float:
    """The derivative of a scalar function with respect to one element of its argument.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like
        The point.
    n : int or tuple of int
        The index of the element.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

    Returns
    -------
    float

    Raises
    ------
    IndexError
        If `x` has no such element.
    ShapeError
        If `f` returns an array.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.partial_derivative(lambda x: x[0] * x[1] ** 3, np.array([5.0, 2.0]), 1)
    60.0
    """
    point = np.asarray(plain_tree("partial_derivative", "x", np.asarray(x) if isinstance(x, (list, tuple)) else x))
    direction = np.zeros(point.shape)
    if np.ndim(direction[n]):
        raise IndexError(f"partial_derivative: n is {n!r}, but must be the index of one element in the shape {point.shape}!")
    direction[n] = 1.0
    return _directional("partial_derivative", f, point, direction, args, kwargs)


def derivative(f: Any, x: float, /, *args: Any, **kwargs: Any) -> float:
    """The derivative of a scalar function of one number, in forward mode.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar
        The point.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

    Returns
    -------
    float

    Raises
    ------
    ShapeError
        If `x` is not a scalar, or `f` returns an array.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.derivative(np.exp, 0.0)
    1.0
    """
    point = plain_tree("derivative", "x", x)
    if type(point) is not float:
        raise ShapeError(f"derivative: x has shape {np.shape(point)}, but must be a scalar; see varmat.gradient!")
    return _directional("derivative", f, point, 1.0, args, kwargs)
