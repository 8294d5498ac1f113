"""Exact second and third derivatives: a reverse pass over the directional derivative, or over the
second derivative along two directions, which duals of duals compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, overload

import numpy as np

from varmat.core.dual import Level, attached, paired, taken_apart
from varmat.core.errors import ShapeError
from varmat.core.tape import Tape, current_tape
from varmat.core.variables import borrow_leaf
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import bottom, recording, scalar_result, stand_in
from varmat.derivatives.nested import Finish, gradients_of, is_outer_result
from varmat.derivatives.reverse import ABSENT, DerivedFunction, check_alone, finish_of, named
from varmat.derivatives.structure import (
    Arguments,
    derivative_tree,
    leaves_of,
    matching_leaves,
    plain_tree,
    rebuilt,
    size_of,
    unit_directions,
    unit_rows,
)
from varmat.typing import Function, Operand, Result, Settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from varmat.derivatives.reverse import Gradient


__all__ = ["grad_hessian", "grad_tr_mat_times_hessian", "hessian", "hessian_times_vector", "hessp"]


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
    """Multiply the Hessian of a scalar function by a vector, exactly and without the Hessian.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    v : like `x`
        The vector, of the same structure and shapes.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

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
    few times the cost of a gradient, whatever the dimension. Write a constant in `f` as
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
    """Make the Hessian product of a scalar function that `scipy.optimize.minimize` takes as its
    argument ``hessp``.

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
    """Compute the exact Hessian of a scalar function.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : scalar, array_like or nested structure of them
        The point.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    float, ndarray or structure of them
        Of shape ``(N, N)`` for a vector, the shape of `x` twice for an array. For a structure: the
        structure of `x`, with the structure of `x` in place of each item. Without a point: a
        function of the point and the further arguments, which `varmat.recorded` takes too.

    Raises
    ------
    ShapeError
        If `f` returns an array.
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    It is one product with each unit vector, see `hessian_times_vector`.

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
    if current_tape().watch is not None and any(map(size_of, leaves)):  # a loop of the program
        with recording() as tape:
            direction = [borrow_leaf(x, tape) for x in next(unit_directions(leaves))]
            along = [*zip(direction, unit_rows(leaves), strict=True)]
            finish = _recorded("hessian", f, points, direction, args, kwargs, None, tape, along)
        return derivative_tree(points, leaves, zip(*finish()[1:], strict=True), points)
    rows = (
        _gradient_along("hessian", f, points, direction, args, kwargs)
        for direction in unit_directions(leaves)
    )
    return derivative_tree(points, leaves, rows, points)


def _product(
    name: str, f: Function, x: object, v: object, args: Arguments, kwargs: Settings
) -> Result:
    points = plain_tree(name, "x", x, outer_too=True)
    direction = matching_leaves(name, "v", v, points, outer_too=True)
    return rebuilt(points, _gradient_along(name, f, points, direction, args, kwargs))


def _gradient_along(
    name: str,
    f: Function,
    points: object,
    direction: Sequence[object],
    args: Arguments,
    kwargs: Settings,
    second: Sequence[object] | None = None,
) -> list[Operand]:
    """Compute the leaves of the gradient of the derivative of a scalar function in a direction or,
    with a `second`, of the second derivative in both.
    """
    with recording() as tape:
        finish = _recorded(name, f, points, direction, args, kwargs, second, tape)
    return list(finish()[1:])


def _recorded(
    name: str,
    f: Function,
    points: object,
    direction: Sequence[object],
    args: Arguments,
    kwargs: Settings,
    second: Sequence[object] | None,
    tape: Tape,
    rows: Sequence[tuple[object, np.ndarray]] = (),
) -> Finish:
    variables, inner, others = list[Operand](), Level(name), iter(second or ())

    def make(x: object, t: object, level: Level) -> Result:
        # All parts are variables, so that the function can assign variables into them.
        x, t = stand_in(x, tape), stand_in(t, tape)
        variables.append(bottom(x))
        if second is None:
            return attached(x, t, level)
        u = stand_in(next(others), tape)
        return paired(
            paired(x, u, inner), paired(t, stand_in(np.zeros(u.shape), tape), inner), level
        )

    y, parts = call_with_tangents(name, f, (points,), direction, args, kwargs, make)
    value, slope = scalar_parts(name, y, parts)
    if second is not None:
        value, slope = taken_apart(value, inner)[0], taken_apart(slope, inner)[1]
    if second is not None or not is_outer_result(value, tape):
        scalar_result(name, value, tape)
    slope = 0.0 if slope is None else slope
    if rows:
        return gradients_of(name, slope, variables, tape, rows)
    return finish_of(name, slope, variables, tape)


# --- third derivatives ---


def _point(function: str, x: Operand) -> np.ndarray:
    point = plain_tree(function, "x", np.asarray(x) if isinstance(x, (list, tuple)) else x)
    if type(point) is not np.ndarray or point.ndim != 1:
        what = (
            f"is a {type(point).__name__}"
            if isinstance(point, dict)
            else f"has shape {np.shape(point)}"
        )
        raise ShapeError(f"{function}: x {what}, but must be a vector!")
    return point


def grad_hessian(f: Function, x: ArrayLike, /, *args: object, **kwargs: object) -> np.ndarray:
    """Compute the derivatives of the Hessian of a scalar function, exactly: all third derivatives.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like, shape (n,)
        The point.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    ndarray, shape (n, n, n)
        Element ``[i, j, k]`` is the third derivative in elements `i`, `j` and `k` of `x`. In Stan
        it is a list of matrices, along the first axis.

    Raises
    ------
    ShapeError
        If `x` is not a vector, or `f` returns an array.
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    Forward over forward over reverse: for each pair of elements one evaluation at duals of duals
    over variables, and one reverse pass.

    References
    ----------
    A. Griewank and A. Walther (2008), Evaluating Derivatives, second edition, SIAM, chapter 5.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.grad_hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]))
    array([[[0., 2.],
            [2., 0.]],
    <BLANKLINE>
           [[2., 0.],
            [0., 0.]]])
    """
    point = _point("grad_hessian", x)
    n = point.size
    result, units = np.zeros((n, n, n)), np.eye(n)
    for j, k in combinations_with_replacement(range(n), 2):
        (gradient,) = _gradient_along(
            "grad_hessian", f, point, [units[j]], args, kwargs, [units[k]]
        )
        result[:, j, k] = result[:, k, j] = gradient
    return result


def grad_tr_mat_times_hessian(
    f: Function, x: ArrayLike, m: ArrayLike, /, *args: object, **kwargs: object
) -> np.ndarray:
    """Differentiate the trace of a matrix times the Hessian of a scalar function, exactly.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like, shape (n,)
        The point.
    m : array_like, shape (n, n)
        The matrix, which is constant.
    *args, **kwargs
        Further arguments of `f`, passed unchanged.

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ShapeError
        If `x` is not a vector, `m` does not fit it, or `f` returns an array.
    TypeError, TapeError
        As `value_and_grad`.

    Notes
    -----
    The sum of third derivatives ``m[j, i] * f[i, j, k]``, for Laplace approximations and Riemannian
    samplers: one evaluation at duals of duals over variables, and one reverse pass, for each row of
    the matrix that is not zero.

    References
    ----------
    M. Betancourt (2013), "A general metric for Riemannian manifold Hamiltonian Monte Carlo",
    arXiv:1212.4693.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> weights = np.array([[1.0, 0.5], [0.5, 0.0]])
    >>> vm.grad_tr_mat_times_hessian(lambda x: x[0] ** 2 * x[1], np.array([3.0, 5.0]), weights)
    array([2., 2.])
    """
    function = "grad_tr_mat_times_hessian"
    point = _point(function, x)
    matrix = np.asarray(
        plain_tree(function, "m", np.asarray(m) if isinstance(m, (list, tuple)) else m)
    )
    if matrix.shape != (point.size, point.size):
        raise ShapeError(
            f"{function}: m has shape {matrix.shape}, but must have shape "
            f"{(point.size, point.size)}!"
        )
    result, units = np.zeros(point.size), np.eye(point.size)
    for unit, row in zip(units, matrix, strict=True):
        if np.any(row):
            result += _gradient_along(function, f, point, [unit], args, kwargs, [row.copy()])[0]
    return result
