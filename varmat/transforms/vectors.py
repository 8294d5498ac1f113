"""Transforms of vectors: ordered ones, simplexes, those with sum zero, unit vectors. All work on
stacks, along the last axis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from varmat.core.errors import Domain, ShapeError, nonnegative
from varmat.core.operation import Saved, operation
from varmat.functions.checks import check_matrix, fixed, one
from varmat.functions.special.logistic_functions import expit
from varmat.programs.symbols import refuse, require
from varmat.transforms.common import (
    check_inside,
    check_vector,
    exclusive_cumsum,
    joined,
    later_sums,
    not_zero,
    operand,
    plain_sum,
    split,
    sum_over,
    times_slope,
    zero,
)

__all__ = [
    "ordered_constrain",
    "ordered_free",
    "positive_ordered_constrain",
    "positive_ordered_free",
    "simplex_constrain",
    "simplex_free",
    "stochastic_column_constrain",
    "stochastic_column_free",
    "stochastic_row_constrain",
    "stochastic_row_free",
    "sum_to_zero_constrain",
    "sum_to_zero_free",
    "sum_to_zero_matrix_constrain",
    "sum_to_zero_matrix_free",
    "unit_vector_constrain",
    "unit_vector_free",
]

# --- ordered vectors ---


# y[0] = x[0], y[k] = y[k - 1] + exp(x[k]); the log-Jacobian is the sum of x[1:].
@operation(stacked=True)
def ordered_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a vector to one with ascending elements: sums of ``x[0], exp(x[1]), exp(x[2]), ...``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: the sum of ``x[..., 1:]``.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    The derivative with respect to ``x[k]`` of ``y[k]``, and of all elements after it, is
    ``exp(x[k])``, and one for the first.

    References
    ----------
    Stan Reference Manual, "Ordered vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.ordered_constrain(np.array([-1.0, 0.0, np.log(2.0)]))
    array([-1.,  0.,  2.])
    """
    check_vector("ordered_constrain", "x", np.shape(x))
    steps = np.exp(x)
    steps[..., :1] = x[..., :1]
    y = np.add.accumulate(steps, axis=-1)
    return Saved((y, plain_sum(x[..., 1:])) if jacobian else y, steps=steps)


@ordered_constrain.reverse
def ordered_reverse(g: Any, r: Any, x: Any, jacobian: bool, steps: Any) -> Any:
    g, h, _ = split(g, r, jacobian)
    later = later_sums(g)
    c = times_slope(later, steps) + h
    c[..., :1] = later[..., :1]
    return c


@ordered_constrain.tangent
def ordered_tangent(r: Any, x: Any, jacobian: bool) -> Any:
    steps = np.exp(x[..., 1:])

    def maps(t: Any) -> Any:
        y = np.cumsum(np.concatenate([t[..., :1], steps * t[..., 1:]], axis=-1), axis=-1)
        return y, sum_over(t[..., 1:], x)

    return joined(maps, jacobian)


def ordered_free(y: Any) -> Any:
    """The inverse of `ordered_constrain`: the first element and the logarithms of the steps.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Strictly ascending along the last axis.

    Returns
    -------
    Of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is not strictly ascending.
    ShapeError
        If `y` is a scalar.

    Notes
    -----
    The derivative of element `k` is ``1 / (y[k] - y[k - 1])`` in ``y[k]`` and its negative in ``y[k
    - 1]``, of the first it is one.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.ordered_free([-1.0, 0.0, 1.0])
    array([-1.,  0.,  0.])
    """
    y = operand(y, "ordered_free", "y")
    check_vector("ordered_free", "y", np.shape(y))
    ascending = Domain("greater than the element before it", lambda y: steps(y, -np.inf) > 0)
    check_inside(ascending, "ordered_free", "Ordered variable", y)
    return np.concatenate([y[..., :1], np.log(np.diff(y))], axis=-1)


@operation(stacked=True)
def positive_ordered_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a vector to one with positive, ascending elements: sums of ``exp(x)``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: the sum of `x`.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    The derivative with respect to ``x[k]`` of ``y[k]``, and of all elements after it, is
    ``exp(x[k])``.

    References
    ----------
    Stan Reference Manual, "Positive ordered vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.positive_ordered_constrain(np.zeros(3))
    array([1., 2., 3.])
    """
    check_vector("positive_ordered_constrain", "x", np.shape(x))
    steps = np.exp(x)
    y = np.add.accumulate(steps, axis=-1)
    return Saved((y, plain_sum(x)) if jacobian else y, steps=steps)


@positive_ordered_constrain.reverse
def positive_ordered_reverse(g: Any, r: Any, x: Any, jacobian: bool, steps: Any) -> Any:
    g, h, _ = split(g, r, jacobian)
    return times_slope(later_sums(g), steps) + h


@positive_ordered_constrain.tangent
def positive_ordered_tangent(r: Any, x: Any, jacobian: bool) -> Any:
    steps = np.exp(x)
    return joined(lambda t: (np.cumsum(steps * t, axis=-1), sum_over(t, x)), jacobian)


def positive_ordered_free(y: Any) -> Any:
    """The inverse of `positive_ordered_constrain`: the logarithms of the steps, from 0 on.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Positive and strictly ascending along the last axis.

    Returns
    -------
    Of the shape of `y`

    Raises
    ------
    DomainError
        If `y` is not positive and strictly ascending.
    ShapeError
        If `y` is a scalar.

    Notes
    -----
    The derivative of element `k` is ``1 / (y[k] - y[k - 1])`` in ``y[k]`` and its negative in ``y[k
    - 1]``; of the first it is ``1 / y[0]``.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.positive_ordered_free([1.0, 2.0, 3.0])
    array([0., 0., 0.])
    """
    y = operand(y, "positive_ordered_free", "y")
    check_vector("positive_ordered_free", "y", np.shape(y))
    ascending = Domain(
        "positive and greater than the element before it", lambda y: steps(y, 0.0) > 0
    )
    check_inside(ascending, "positive_ordered_free", "Positive ordered variable", y)
    return np.log(np.diff(y, prepend=0.0))


# --- simplexes ---


@lru_cache(maxsize=64)
def _sticks(n: int) -> tuple[Any, Any]:
    """For each piece broken off a stick how many pieces are left, itself included, and the
    logarithm of the others.
    """
    left = np.arange(n + 1.0, 1.0, -1.0)
    return left, np.log(left - 1.0)


# Stick-breaking: z[k] = expit(x[k] - log(K - 1 - k)), y[k] = z[k] prod_{j < k} (1 - z[j]), and the
# last piece is what is left. With a the argument of expit, log|J| = sum_k log z[k] + (K - 1 - k)
# log(1 - z[k]) = sum_k a[k] - (K - k) log(1 + exp(a[k])).
@operation(stacked=True)
def simplex_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a vector to a simplex, one element longer: nonnegative numbers with sum 1, by
    stick-breaking.

    Parameters
    ----------
    x : array_like, shape (..., K - 1)
        Unconstrained; zeros give equal elements.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: that of the first ``K - 1`` elements, summed over a stack.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    With ``z[k] = expit(x[k] - log(K - 1 - k))`` the element `k` is ``z[k]`` times the product of
    all earlier ``1 - z[j]``. Its derivative in ``x[k]`` is ``y[k] * (1 - z[k])``, and that of each
    later ``y[i]`` is ``-y[i] * z[k]``.

    References
    ----------
    Stan Reference Manual (up to 2.35), "Unit simplex".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> y, log_jacobian = vm.simplex_constrain(np.array([0.0]), jacobian=True)
    >>> y, round(log_jacobian, 12)
    (array([0.5, 0.5]), -1.38629436112)
    """
    check_vector("simplex_constrain", "x", np.shape(x))
    n = x.shape[-1]
    left, shift = _sticks(n)
    a = x - shift
    z, rest = expit.ufunc(a), expit.ufunc(-a)  # of plain arrays: no variable is looked for
    left_over = np.multiply.accumulate(rest, axis=-1)
    inner = [z[..., :1], left_over[..., :-1] * z[..., 1:], left_over[..., n - 1 :]]
    y = np.concatenate(inner, axis=-1) if n else np.ones((*x.shape[:-1], 1))
    return Saved((y, plain_sum(a - left * np.logaddexp(0.0, a))) if jacobian else y, z=z, rest=rest)


@simplex_constrain.reverse
def simplex_reverse(g: Any, r: Any, x: Any, jacobian: bool, z: Any, rest: Any) -> Any:
    g, h, r = split(g, r, jacobian)
    p = g * r
    c = p[..., :-1] * rest - z * later_sums(p[..., 1:])
    return c + h * (1.0 - _sticks(x.shape[-1])[0] * z) if jacobian else c


@simplex_constrain.tangent
def simplex_tangent(r: Any, x: Any, jacobian: bool) -> Any:
    y = r[0] if jacobian else r
    n = np.shape(x)[-1]
    left, shift = _sticks(n)
    z, rest = expit(x - shift), expit(shift - x)

    def maps(t: Any) -> Any:
        # Of the logarithms of the elements.
        own = np.concatenate([rest * t, np.zeros((*np.shape(t)[:-1], 1))], axis=-1)
        return y * (own - exclusive_cumsum(z * t, n + 1)), sum_over((1.0 - left * z) * t, x)

    return joined(maps, jacobian)


def simplex_free(y: Any) -> Any:
    """The inverse of `simplex_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Nonnegative, with sum 1 to within 1e-8; a zero gives -inf, and the last element that is none
        gives inf, if zeros follow.

    Returns
    -------
    Of shape (..., K - 1)

    Raises
    ------
    DomainError
        If `y` is not a simplex.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    The derivative is that of ``log(y[k]) - log(sum(y[k + 1:]))``, whether or not the sum of all
    elements is kept.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.simplex_free([0.5, 0.25, 0.25])
    array([0.69314718, 0.        ])
    """
    y = operand(y, "simplex_free", "y")
    check_vector("simplex_free", "y", np.shape(y), least=1)
    check_inside(nonnegative, "simplex_free", "Simplex variable", y)
    check_inside(one, "simplex_free", "sum(Simplex variable)", y, lambda y: np.sum(y, axis=-1))
    return _odds(y)


def steps(y: Any, before: float) -> Any:
    """The difference of each element from that before it, along the last axis, with a number before
    the first; also of symbols.
    """
    return y - np.concatenate([np.full((*np.shape(y)[:-1], 1), before), y[..., :-1]], axis=-1)


def _odds(y: Any) -> Any:
    """Of simplexes that have been checked the unconstrained elements; differentiable."""
    pieces = y[..., :-1]
    # A piece of nothing is broken off a stick of any length, also of one that is used up.
    rest = np.where(pieces == 0.0, 1.0, later_sums(y[..., 1:]))
    with np.errstate(divide="ignore"):
        odds = np.log(pieces) - np.log(rest)
    return odds + _sticks(np.shape(y)[-1] - 1)[1]


def _check_columns(function: str, name: str, shape: tuple[int, ...], least: int) -> None:
    if len(shape) < 2 or shape[-2] < least:
        rule = f"with {least} or more rows" if least else "or a stack of them"
        raise ShapeError(f"{function}: {name} has shape {shape}, but must be a matrix {rule}!")


def stochastic_column_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a matrix to one with one row more whose columns are simplexes.

    Parameters
    ----------
    x : array_like, shape (..., M - 1, N)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., M, N)
    log_jacobian : scalar
        If asked for.

    Raises
    ------
    ShapeError
        If `x` is not a matrix, or a stack of them.

    Notes
    -----
    The derivative is that of `simplex_constrain`, column by column.

    References
    ----------
    Stan Reference Manual, "Stochastic matrix".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.stochastic_column_constrain(np.zeros((1, 3)))
    array([[0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5]])
    """
    x = operand(x, "stochastic_column_constrain", "x")
    _check_columns("stochastic_column_constrain", "x", np.shape(x), 0)
    rows = simplex_constrain(np.matrix_transpose(x), jacobian=jacobian)
    return (np.matrix_transpose(rows[0]), rows[1]) if jacobian else np.matrix_transpose(rows)


def stochastic_column_free(y: Any) -> Any:
    """The inverse of `stochastic_column_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., M, N)
        Its columns are simplexes.

    Returns
    -------
    Of shape (..., M - 1, N)

    Raises
    ------
    DomainError
        If a column is not a simplex, to within 1e-8.
    ShapeError
        If `y` is not a matrix, or a stack of them, or has no rows.

    Notes
    -----
    The derivative is that of `simplex_free`, column by column.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.stochastic_column_free([[0.5, 0.5], [0.5, 0.5]])
    array([[0., 0.]])
    """
    function, title = "stochastic_column_free", "Stochastic matrix variable"
    y = operand(y, function, "y")
    _check_columns(function, "y", np.shape(y), 1)
    check_inside(nonnegative, function, title, y)
    check_inside(one, function, f"sum(column of {title})", y, lambda y: np.sum(y, axis=-2))
    return np.matrix_transpose(_odds(np.matrix_transpose(y)))


# A matrix whose rows are simplexes is a stack of them.
stochastic_row_constrain = simplex_constrain
stochastic_row_free = simplex_free


# --- vectors with sum zero ---


@lru_cache(maxsize=64)
def _helmert(n: int) -> tuple[Any, Any]:
    """j = 1, ..., n and sqrt(j (j + 1))."""
    j = np.arange(1.0, n + 1.0)
    return j, np.sqrt(j * (j + 1.0))


# Column j = 1, ..., n of the isometry has j elements 1, then -j, then zeros, all over sqrt(j (j +
# 1)). It and its transpose are each the other's reverse rule.
@operation(stacked=True)
def sum_to_zero_isometry(x: Any) -> Any:
    j, root = _helmert(x.shape[-1])
    w = x / root
    y = np.zeros((*x.shape[:-1], x.shape[-1] + 1))
    y[..., :-1] = later_sums(w)
    y[..., 1:] -= j * w
    return y


@operation(stacked=True)
def sum_to_zero_coordinates(y: Any) -> Any:
    j, root = _helmert(y.shape[-1] - 1)
    return (np.add.accumulate(y[..., :-1], axis=-1) - j * y[..., 1:]) / root


@sum_to_zero_isometry.straight
def isometry_straight(x: Any) -> Any:
    if not np.size(x):
        refuse()
    j, root = _helmert(np.shape(x)[-1])
    w, none = x / root, np.zeros((*np.shape(x)[:-1], 1))
    value = np.concatenate([later_sums(w), none], axis=-1) - np.concatenate([none, j * w], axis=-1)
    return value, sum_to_zero_coordinates.function


@sum_to_zero_isometry.reverse
def isometry_reverse(g: Any, r: Any, x: Any) -> Any:
    return sum_to_zero_coordinates.function(g)


@sum_to_zero_isometry.tangent
def isometry_tangent(r: Any, x: Any) -> Any:
    return sum_to_zero_isometry


@sum_to_zero_coordinates.reverse
def coordinates_reverse(g: Any, r: Any, y: Any) -> Any:
    return sum_to_zero_isometry.function(g)


@sum_to_zero_coordinates.tangent
def coordinates_tangent(r: Any, y: Any) -> Any:
    return sum_to_zero_coordinates


def sum_to_zero_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a vector to one, one element longer, with sum zero: an isometry.

    Parameters
    ----------
    x : array_like, shape (..., K - 1)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., K)
        Of the same Euclidean length as `x`.
    log_jacobian : float
        If asked for: 0.

    Raises
    ------
    ShapeError
        If `x` is a scalar.

    Notes
    -----
    Column `j` of the orthonormal matrix, counted from 1, is ``(1, ..., 1, -j, 0, ..., 0) / sqrt(j
    (j + 1))`` with `j` ones. It is not formed; its transpose gives the adjoint. If the elements of
    `x` are independent and standard normal, those of `y` have variance ``(K - 1) / K``.

    References
    ----------
    Stan Reference Manual (from 2.36), "Zero sum vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sum_to_zero_constrain(np.array([np.sqrt(2.0), np.sqrt(6.0)]))
    array([ 2.,  0., -2.])
    """
    x = operand(x, "sum_to_zero_constrain", "x")
    check_vector("sum_to_zero_constrain", "x", np.shape(x))
    y = sum_to_zero_isometry(x)
    return (y, 0.0) if jacobian else y


def sum_to_zero_free(y: Any) -> Any:
    """The inverse of `sum_to_zero_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K)
        With sum zero, to within 1e-8.

    Returns
    -------
    Of shape (..., K - 1)

    Raises
    ------
    DomainError
        If the sum is not zero.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    Linear: the adjoint is multiplied by the matrix of `sum_to_zero_constrain`, and so has sum zero.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero_free([2.0, 0.0, -2.0])
    array([1.41421356, 2.44948974])
    """
    y = operand(y, "sum_to_zero_free", "y")
    check_vector("sum_to_zero_free", "y", np.shape(y), least=1)
    check_inside(
        zero, "sum_to_zero_free", "sum(Zero sum variable)", y, lambda y: np.sum(y, axis=-1)
    )
    return sum_to_zero_coordinates(y)


def sum_to_zero_matrix_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a matrix to one with a row and a column more, all of whose rows and columns have sum
    zero: an isometry.

    Parameters
    ----------
    x : array_like, shape (..., M - 1, N - 1)
        Unconstrained.
    jacobian : bool
        Return the logarithm of the absolute Jacobian determinant too.

    Returns
    -------
    y : shape (..., M, N)
        Of the same Euclidean length as `x`.
    log_jacobian : float
        If asked for: 0.

    Raises
    ------
    ShapeError
        If `x` has fewer than two axes.

    Notes
    -----
    `sum_to_zero_constrain` of all rows, and then of all columns. Linear, so the adjoint goes the
    same way back.

    References
    ----------
    Stan Reference Manual (from 2.37), "Zero sum matrix".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.sum_to_zero_matrix_constrain(np.array([[2.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    x = operand(x, "sum_to_zero_matrix_constrain", "x")
    check_matrix("sum_to_zero_matrix_constrain", "x", x)
    rows = sum_to_zero_isometry(x)
    y = np.matrix_transpose(sum_to_zero_isometry(np.matrix_transpose(rows)))
    return (y, 0.0) if jacobian else y


def sum_to_zero_matrix_free(y: Any) -> Any:
    """The inverse of `sum_to_zero_matrix_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., M, N)
        With rows and columns of sum zero, to within 1e-8.

    Returns
    -------
    Of shape (..., M - 1, N - 1)

    Raises
    ------
    DomainError
        If a sum is not zero.
    ShapeError
        If `y` is empty, or has fewer than two axes.

    Notes
    -----
    Linear: `sum_to_zero_free` of all rows, and then of all columns.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.sum_to_zero_matrix_free([[1.0, -1.0], [-1.0, 1.0]])
    array([[2.]])
    """
    function = "sum_to_zero_matrix_free"
    y = operand(y, function, "y")
    if np.ndim(y) < 2 or 0 in np.shape(y)[-2:]:
        raise ShapeError(
            f"{function}: y has shape {np.shape(y)}, but must be a matrix that is not empty!"
        )
    check_inside(zero, function, "sum(row of Zero sum matrix)", y, lambda y: np.sum(y, axis=-1))
    check_inside(zero, function, "sum(column of Zero sum matrix)", y, lambda y: np.sum(y, axis=-2))
    rows = sum_to_zero_coordinates(y)
    return np.matrix_transpose(sum_to_zero_coordinates(np.matrix_transpose(rows)))


# --- unit vectors ---


# y = x / |x|, and the length has the density exp(-|x|**2 / 2): of the differential of y the part
# along y is missing.
@operation(stacked=True)
def unit_vector_constrain(x: Any, jacobian: bool = False) -> Any:
    """Map a vector to the unit vector of its direction: ``x / norm(x)``.

    Parameters
    ----------
    x : array_like, shape (..., K)
        Unconstrained, not zero.
    jacobian : bool
        Return what makes the distribution on the sphere uniform and proper too.

    Returns
    -------
    y : shape (..., K)
    log_jacobian : scalar
        If asked for: ``-sum(x**2) / 2``. There is one unconstrained element more than the sphere
        has dimensions, so this is no Jacobian but the density of the length, under which `x` is
        standard normal.

    Raises
    ------
    DomainError
        If `x` is zero.
    ShapeError
        If `x` is empty or a scalar.

    Notes
    -----
    The derivative is the projection ``I - y @ y.T`` over the length of `x`.

    References
    ----------
    Stan Reference Manual, "Unit vector".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.unit_vector_constrain(np.array([3.0, 4.0]), jacobian=True)
    (array([0.6, 0.8]), -12.5)
    """
    check_vector("unit_vector_constrain", "x", np.shape(x), least=1)
    with np.errstate(over="ignore"):
        squared = np.add.reduce(x * x, axis=-1, keepdims=True)
    length = np.sqrt(squared)
    if not np.all((squared > 1e-280) & (squared < np.inf)):
        # In units of the largest element, squares neither overflow nor underflow.
        unit = np.maximum.reduce(np.abs(x), axis=-1, keepdims=True)
        not_zero.check("unit_vector_constrain", "norm(x)", unit[..., 0])
        length = unit * np.sqrt(np.add.reduce(np.square(x / unit), axis=-1, keepdims=True))
    y = x / length
    return Saved((y, -0.5 * plain_sum(squared)) if jacobian else y, length=length)


@unit_vector_constrain.straight
def unit_vector_straight(x: Any, jacobian: bool = False) -> Any:
    squared = np.sum(np.square(x), axis=-1, keepdims=True)
    require((squared > 1e-280) & (squared < np.inf))
    length = np.sqrt(squared)
    value = (x / length, -0.5 * np.sum(squared)) if jacobian else x / length
    return value, lambda g: unit_vector_reverse(g, value, x, jacobian, length)


@unit_vector_constrain.reverse
def unit_vector_reverse(g: Any, r: Any, x: Any, jacobian: bool, length: Any) -> Any:
    g, h, r = split(g, r, jacobian)
    c = (g - r * np.add.reduce(g * r, axis=-1, keepdims=True)) / length
    return c - h * x if jacobian else c


@unit_vector_constrain.tangent
def unit_vector_tangent(r: Any, x: Any, jacobian: bool) -> Any:
    y = r[0] if jacobian else r
    unit = np.max(np.abs(fixed(x)), axis=-1, keepdims=True)
    length = unit * np.sqrt(np.sum(np.square(x / unit), axis=-1, keepdims=True))
    return joined(
        lambda t: ((t - y * np.sum(y * t, axis=-1, keepdims=True)) / length, -sum_over(x * t, x)),
        jacobian,
    )


def unit_vector_free(y: Any) -> Any:
    """A vector that `unit_vector_constrain` maps to `y`: `y` itself.

    Parameters
    ----------
    y : array_like, shape (..., K)
        With sum of squares 1, to within 1e-8.

    Returns
    -------
    Of the shape of `y`

    Raises
    ------
    DomainError
        If the sum of squares is not 1.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    The derivative is that of the identity: the adjoint is handed through.

    Examples
    --------
    >>> import varmat as vm
    >>> vm.unit_vector_free([0.6, 0.8])
    array([0.6, 0.8])
    """
    y = operand(y, "unit_vector_free", "y")
    check_vector("unit_vector_free", "y", np.shape(y), least=1)
    check_inside(
        one,
        "unit_vector_free",
        "sum(Unit vector variable**2)",
        y,
        lambda y: np.sum(np.square(y), axis=-1),
    )
    return np.copy(y)
