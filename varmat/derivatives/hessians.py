"""Exact second derivatives: a reverse pass over the directional derivative."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, overload

import numpy as np

from varmat.core.dual import Level, attached
from varmat.core.tape import Tape
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import bottom, recording, scalar_result, stand_in
from varmat.derivatives.nested import Finish, is_outer_result
from varmat.derivatives.reverse import ABSENT, DerivedFunction, check_alone, finish_of, named
from varmat.derivatives.structure import (
    Arguments,
    derivative_tree,
    leaves_of,
    matching_leaves,
    plain_tree,
    rebuilt,
    unit_directions,
)
from varmat.typing import Function, Operand, Result, Settings

if TYPE_CHECKING:
    from varmat.derivatives.reverse import Gradient


__all__ = ["hessian", "hessian_times_vector", "hessp"]


@overload
def hessian_times_vector(f: Function, /) -> Gradient: ...
@overload
def hessian_times_vector(
    f: Function, x: float, v: object, /, *args: object, **kwargs: object
) -> float: ...
@overload
def hessian_times_vector(
    f: Function, x: np.ndarray, v: object, /, *args: object, **kwargs: object
) -> np.ndarray: ...
@overload
def hessian_times_vector(
    f: Function, x: object, v: object, /, *args: object, **kwargs: object
) -> Result: ...
def hessian_times_vector(
    f: Function, x: object = ABSENT, v: object = ABSENT, /, *args: object, **kwargs: object
) -> Result:
    """The Hessian of a scalar function times a vector, exact and without the Hessian.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    v : like `x`
        The vector, of the same structure and shapes.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

    Returns
    -------
    float, ndarray or structure like `x`
        Without a point and a vector: a function of them and the further arguments, which
        `varmat.recorded` takes too.

    Raises
    ------
    ShapeError
        If `v` does not fit `x`, or `f` returns an array.
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    Forward over reverse: `f` is evaluated once at dual numbers over variables and swept once, at a
    few times the cost of a gradient, whatever the dimension. What is to be a constant in `f` is
    ``varmat.value(x)``; ``x.val`` is a variable there.

    References
    ----------
    B. A. Pearlmutter (1994), "Fast exact multiplication by the Hessian", Neural Computation 6,
    147-160.

    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.hessian_times_vector(
    ...     lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]), np.array([1.0, 1.0])
    ... )
    array([16.,  6.])
    >>> product = vm.hessian_times_vector(lambda x: x[0] ** 2 * x[1])
    >>> product(np.array([3.0, 5.0]), np.array([0.0, 1.0]))
    array([6., 0.])
    """
    if x is ABSENT:
        check_alone("hessian_times_vector", kwargs)
        return named(
            DerivedFunction(_times_vector, f),
            f,
            "hessian_times_vector",
            like=partial(_times_vector, f),
        )
    if v is ABSENT:
        raise TypeError("hessian_times_vector: there is a point, but no vector")
    return _times_vector(f, x, v, *args, **kwargs)


def _times_vector(f: Function, x: object, v: object, /, *args: object, **kwargs: object) -> Result:
    return _product("hessian_times_vector", f, x, v, args, kwargs)


def hessp(f: Function) -> DerivedFunction[np.ndarray]:
    """The Hessian product of a scalar function in the form that `scipy.optimize.minimize` takes as
    its argument ``hessp``.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a scalar.

    Returns
    -------
    callable
        ``(x, p, *args)`` -> the Hessian at `x` times `p`; see `hessian_times_vector`.

    Raises
    ------
    TypeError
        If `f` is not a function.
    ShapeError
        If `f` returns an array, or `p` does not fit `x`; both when the product is computed.

    References
    ----------
    B. A. Pearlmutter (1994), "Fast exact multiplication by the Hessian", Neural Computation 6,
    147-160.

    Examples
    --------
    >>> import numpy as np, scipy.optimize, varmat as vm
    >>> def f(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> r = scipy.optimize.minimize(
    ...     vm.value_and_grad(f), np.array([-1.0, 2.0]), jac=True, hessp=vm.hessp(f),
    ...     method="trust-ncg", tol=1e-10
    ... )
    >>> np.round(r.x, 8)
    array([1., 1.])
    """
    function: DerivedFunction[np.ndarray] = named(
        DerivedFunction(_hessp, f), f, "hessp", like=partial(_hessp, f)
    )
    return function


def _hessp(f: Function, x: object, p: object, /, *args: object) -> Result:
    return _product("hessp", f, x, p, args, {})


@overload
def hessian(f: Function, /) -> Gradient: ...
@overload
def hessian(f: Function, x: float, /, *args: object, **kwargs: object) -> float: ...
@overload
def hessian(f: Function, x: np.ndarray, /, *args: object, **kwargs: object) -> np.ndarray: ...
@overload
def hessian(f: Function, x: object, /, *args: object, **kwargs: object) -> Result: ...
def hessian(f: Function, x: object = ABSENT, /, *args: object, **kwargs: object) -> Result:
    """The exact Hessian of a scalar function.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

    Returns
    -------
    float, ndarray or structure of them
        Of shape ``(N, N)`` for a vector, the shape of `x` twice for an array. For a structure: that
        of `x`, with the structure of `x` in place of each item. Without a point: a function of the
        point and the further arguments, which `varmat.recorded` takes too.

    Raises
    ------
    ShapeError
        If `f` returns an array.
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    One product with each unit vector, see `hessian_times_vector`.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    >>> h = vm.hessian(lambda x: x[0] ** 2 * x[1])
    >>> h(np.array([1.0, 1.0]))
    array([[2., 2.],
           [2., 0.]])
    """
    if x is ABSENT:
        check_alone("hessian", kwargs)
        return named(DerivedFunction(_hessian, f), f, "hessian")
    return _hessian(f, x, *args, **kwargs)


def _hessian(f: Function, x: object, /, *args: object, **kwargs: object) -> Result:
    points = plain_tree("hessian", "x", x, outer_too=True)
    leaves = leaves_of(points)
    rows = (
        _leaf_products("hessian", f, points, direction, args, kwargs)
        for direction in unit_directions(leaves)
    )
    return derivative_tree(points, leaves, rows, points)


def _product(
    name: str, f: Function, x: object, v: object, args: Arguments, kwargs: Settings
) -> Result:
    points = plain_tree(name, "x", x, outer_too=True)
    direction = matching_leaves(name, "v", v, points, outer_too=True)
    return rebuilt(points, _leaf_products(name, f, points, direction, args, kwargs))


def _leaf_products(
    name: str,
    f: Function,
    points: object,
    direction: list[Operand],
    args: Arguments,
    kwargs: Settings,
) -> list[Operand]:
    with recording() as tape:
        finish = _recorded(name, f, points, direction, args, kwargs, tape)
    return list(finish()[1:])


def _recorded(
    name: str,
    f: Function,
    points: object,
    direction: list[Operand],
    args: Arguments,
    kwargs: Settings,
    tape: Tape,
) -> Finish:
    variables: list[Operand] = []

    def make(x: object, t: Operand, level: Level) -> Result:
        # The tangent is a variable too, so that variables can be assigned into it.
        x, t = stand_in(x, tape), stand_in(t, tape)
        variables.append(bottom(x))
        return attached(x, t, level)

    y, parts = call_with_tangents(name, f, (points,), direction, args, kwargs, make)
    value, tangent = scalar_parts(name, y, parts)
    if not is_outer_result(value, tape):
        scalar_result(name, value, tape)
    return finish_of(name, 0.0 if tangent is None else tangent, variables, tape)
