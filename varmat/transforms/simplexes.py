"""Transforms of simplexes, and of matrices with simplexes in their columns or rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from varmat.core.domains import nonnegative
from varmat.core.operation import Saved, operation
from varmat.functions.aliases import alias
from varmat.functions.checks import misfit, one
from varmat.functions.special.logistic_functions import expit
from varmat.transforms.common import (
    check_inside,
    check_vector,
    exclusive_cumsum,
    joined,
    later_sums,
    operand,
    plain_sum,
    split,
    sum_over,
)
from varmat.typing import Adjoint, Operand, Result, Shape, array_valued, transforming

__all__ = [
    "simplex_constrain",
    "simplex_free",
    "stochastic_column_constrain",
    "stochastic_column_free",
    "stochastic_row_constrain",
    "stochastic_row_free",
]


@lru_cache(maxsize=64)
def _sticks(n: int) -> tuple[Result, Result]:
    """Count the pieces of a stick that are left before each is broken off, and return the logarithm
    of that number less one too.
    """
    left = np.arange(n + 1.0, 1.0, -1.0)
    return left, np.log(left - 1.0)


# Stick-breaking: z[k] = expit(a[k]) with a[k] = x[k] - log(K - 1 - k), and
# y[k] = z[k] prod_{j < k} (1 - z[j]). The last piece is the rest of the stick.
# log|J| = sum_k log z[k] + (K - 1 - k) log(1 - z[k]) = sum_k a[k] - (K - k) log(1 + exp(a[k])).
@operation(stacked=True)
@transforming
def simplex_constrain(x: Operand, jacobian: bool = False) -> Result:
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
    all earlier ``1 - z[j]``. Its derivative in ``x[k]`` is ``y[k] * (1 - z[k])``; the derivative of
    each later ``y[i]`` is ``-y[i] * z[k]``.

    References
    ----------
    Stan Reference Manual (up to 2.35), chapter "Constraint Transforms", section "Unit simplex".

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
    z, remainder = expit.ufunc(a), expit.ufunc(-a)  # `x` is a plain array here
    left_over = np.multiply.accumulate(remainder, axis=-1)
    inner = [z[..., :1], left_over[..., :-1] * z[..., 1:], left_over[..., n - 1 :]]
    y = np.concatenate(inner, axis=-1) if n else np.ones((*x.shape[:-1], 1))
    return Saved(
        (y, plain_sum(a - left * np.logaddexp(0.0, a))) if jacobian else y, z=z, remainder=remainder
    )


@simplex_constrain.reverse
def simplex_reverse(
    g: Adjoint, r: Operand, x: Operand, jacobian: bool, z: Operand, remainder: Operand
) -> Result:
    g, h, r = split(g, r, jacobian)
    p = g * r
    c = p[..., :-1] * remainder - z * later_sums(p[..., 1:])
    return c + h * (1.0 - _sticks(x.shape[-1])[0] * z) if jacobian else c


@simplex_constrain.tangent
def simplex_tangent(r: Operand, x: Operand, jacobian: bool) -> Result:
    y = r[0] if jacobian else r
    n = np.shape(x)[-1]
    left, shift = _sticks(n)
    z, remainder = expit(x - shift), expit(shift - x)

    def maps(t: Operand) -> Result:
        # The derivative of log(y), in two parts.
        own = np.concatenate([remainder * t, np.zeros((*np.shape(t)[:-1], 1))], axis=-1)
        return y * (own - exclusive_cumsum(z * t, n + 1)), sum_over((1.0 - left * z) * t, x)

    return joined(maps, jacobian)


@array_valued
def simplex_free(y: Operand) -> Result:
    """Invert `simplex_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., K)
        Nonnegative, with sum 1 to within 1e-8; a zero gives -inf, and the last positive element
        gives inf, if zeros follow.

    Returns
    -------
    array, shape (..., K - 1)

    Raises
    ------
    DomainError
        If `y` is not a simplex.
    ShapeError
        If `y` is empty or a scalar.

    Notes
    -----
    The derivative is taken of ``log(y[k]) - log(sum(y[k + 1:]))``, whether or not the sum of all
    elements is kept.

    References
    ----------
    Stan Reference Manual (up to 2.35), chapter "Constraint Transforms", section "Unit simplex".

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


def _odds(y: Operand) -> Result:
    """Compute the unconstrained elements of simplexes that have been checked; differentiable."""
    pieces = y[..., :-1]
    # An empty piece may follow when the stick is used up: 0 / 1 stands for 0 / 0.
    remainder = np.where(pieces == 0.0, 1.0, later_sums(y[..., 1:]))
    with np.errstate(divide="ignore"):
        odds = np.log(pieces) - np.log(remainder)
    return odds + _sticks(np.shape(y)[-1] - 1)[1]


def _check_columns(function: str, name: str, shape: Shape, least: int) -> None:
    if len(shape) < 2 or shape[-2] < least:
        rule = f"with {least} or more rows" if least else "or a stack of them"
        raise misfit(function, name, shape, f"be a matrix {rule}")


@transforming
def stochastic_column_constrain(x: Operand, jacobian: bool = False) -> Result:
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
    The derivative is as for `simplex_constrain`, column by column.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Stochastic matrix".

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


@array_valued
def stochastic_column_free(y: Operand) -> Result:
    """Invert `stochastic_column_constrain`.

    Parameters
    ----------
    y : array_like, shape (..., M, N)
        Its columns are simplexes.

    Returns
    -------
    array, shape (..., M - 1, N)

    Raises
    ------
    DomainError
        If a column is not a simplex, to within 1e-8.
    ShapeError
        If `y` is not a matrix, or a stack of them, or has no rows.

    Notes
    -----
    The derivative is as for `simplex_free`, column by column.

    References
    ----------
    Stan Reference Manual, chapter "Constraint Transforms", section "Stochastic matrix".

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


# A matrix whose rows are simplexes is a stack of simplexes.
stochastic_row_constrain = alias("stochastic_row_constrain", simplex_constrain)


stochastic_row_free = alias("stochastic_row_free", simplex_free)
