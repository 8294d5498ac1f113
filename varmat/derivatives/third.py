"""Exact third derivatives: a reverse pass over the second derivative along two directions, which
duals of duals compute.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.dual import Level, paired, taken_apart
from varmat.core.errors import ShapeError
from varmat.core.variables import borrow_leaf
from varmat.derivatives.forward import call_with_tangents, scalar_parts
from varmat.derivatives.inputs_and_outputs import recording, scalar_result
from varmat.derivatives.reverse import finish_of
from varmat.derivatives.structure import Arguments, plain_tree
from varmat.typing import Function, Operand, Settings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


__all__ = ["grad_hessian", "grad_tr_mat_times_hessian"]


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


def _gradient_of_second(
    function: str,
    f: Function,
    x: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    args: Arguments,
    kwargs: Settings,
) -> np.ndarray:
    """The gradient of the second derivative of `f` along `u` and `v`."""
    with recording() as tape:
        variables: list[Operand] = []

        inner = Level(function)

        def make(point: Operand, direction: Operand, level: Level) -> Operand:
            # All four parts are variables, so that the function can assign variables into them.
            pairs = ((point, v), (direction, np.zeros_like(v)))
            parts = [paired(borrow_leaf(a, tape), borrow_leaf(b, tape), inner) for a, b in pairs]
            variables.append(parts[0].val)
            return paired(parts[0], parts[1], level)

        y, found = call_with_tangents(function, f, (x,), [u], args, kwargs, make)
        value, slope = scalar_parts(function, y, found)
        scalar_result(function, taken_apart(value, inner)[0], tape)
        second = taken_apart(slope, inner)[1]
        finish = finish_of(function, 0.0 if second is None else second, variables, tape)
        del y, found, value, slope, second
    return np.asarray(finish()[1])


def grad_hessian(f: Function, x: ArrayLike, /, *args: object, **kwargs: object) -> np.ndarray:
    """The derivatives of the Hessian of a scalar function, exactly: all third derivatives.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like, shape (n,)
        The point.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

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
        gradient = _gradient_of_second("grad_hessian", f, point, units[j], units[k], args, kwargs)
        result[:, j, k] = result[:, k, j] = gradient
    return result


def grad_tr_mat_times_hessian(
    f: Function, x: ArrayLike, m: ArrayLike, /, *args: object, **kwargs: object
) -> np.ndarray:
    """The gradient of the trace of a matrix times the Hessian of a scalar function, exactly.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar.
    x : array_like, shape (n,)
        The point.
    m : array_like, shape (n, n)
        The matrix, which is constant.
    *args, **kwargs
        Further arguments of `f`, passed on as they are.

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
    The sum of third derivatives ``m[j, i] * f[i, j, k]``, as one needs it for Laplace
    approximations and Riemannian samplers: one evaluation at duals of duals over variables, and one
    reverse pass, for each row of the matrix that is not zero.

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
            result += _gradient_of_second(function, f, point, unit, row.copy(), args, kwargs)
    return result
