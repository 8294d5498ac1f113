"""Norms of vectors and matrices, and condition numbers."""

from __future__ import annotations

import math

import numpy as np

from varmat.core.dispatch import implements, plain
from varmat.core.errors import ShapeError
from varmat.core.operation import as_operand, operation
from varmat.functions.arrays.reductions import axes_of, max_reduce, min_reduce, restored
from varmat.functions.arrays.sums import sum_of_squares
from varmat.functions.checks import check_matrix, fixed, outside
from varmat.functions.linalg.singular_values import singular_values
from varmat.plain_arrays import summed
from varmat.programs.build.symbol import Symbol, is_between
from varmat.typing import Adjoint, Axis, Linear, Operand, Plain, Result, Setting, scalar_valued

__all__ = ["dot_self", "norm1", "norm2"]

_INFINITE = (np.inf, -np.inf)


def _vector_norm(function: str, x: Operand, ord: Setting, axis: Setting, keepdims: bool) -> Result:
    if ord is None:
        ord = 2
    if isinstance(ord, str):
        raise outside(function, "ord", ord, "be a number for a vector")
    if not np.size(x):  # NumPy knows which norms of nothing are zero
        return np.linalg.vector_norm(plain(x), axis=axis, keepdims=keepdims, ord=ord)
    if ord in _INFINITE:
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(plain(x) != 0, axis=axis, keepdims=keepdims).astype(float)
    return p_norm(x, ord=float(ord), axis=axis, keepdims=keepdims)


def _matrix_norm(
    function: str, x: Operand, ord: Setting, axes: tuple[int, int], keepdims: bool
) -> Result:
    row, col = axes
    if not np.size(x):
        return np.linalg.norm(plain(x), ord, axes, keepdims)
    if ord in (None, "fro", "f"):
        return p_norm(x, axis=None if np.ndim(x) == 2 else axes, keepdims=keepdims)
    if ord in (1, -1, *_INFINITE):
        first, second = (row, col) if abs(ord) == 1 else (col, row)
        sums = np.sum(np.abs(x), axis=first, keepdims=keepdims)
        return (np.max if ord > 0 else np.min)(
            sums, axis=second - (not keepdims and second > first), keepdims=keepdims
        )
    if ord not in ("nuc", 2, -2):
        raise outside(
            function, "ord", ord, "be None, 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2 for a matrix"
        )
    s = singular_values(np.moveaxis(x, axes, (-2, -1)))
    r = np.sum(s, axis=-1) if ord == "nuc" else _extreme_singular_value(s, ord)
    return np.expand_dims(r, axes) if keepdims else r


def _extreme_singular_value(s: Plain, ord: int) -> Result:
    """Return the largest (2) or the smallest (-2) singular value."""
    return np.moveaxis(s, -1, 0)[0 if ord > 0 else -1]


def _normalised(function: str, axis: object, ndim: int) -> tuple[int, ...]:
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    wrapped = tuple(k % ndim for k in axes if -ndim <= k < ndim)
    if len(wrapped) < len(axes) or len(set(wrapped)) < len(axes):
        raise ShapeError(
            f"{function}: axis is {axis}, but must be distinct axes of an array that has {ndim}!"
        )
    return wrapped


@implements(np.linalg.norm)
def norm(x: Operand, ord: Setting = None, axis: Axis = None, keepdims: bool = False) -> Result:
    """`numpy.linalg.norm`: norms of vectors (one axis) and of matrices (two axes).

    Parameters
    ----------
    x : array_like
        With one or two axes, unless `axis` or no `ord` is given.
    ord : {None, "fro", "nuc", inf, -inf, int, float}
        The order, as in NumPy.
    axis : int or pair of int, optional
    keepdims : bool

    Returns
    -------
    Var or VarMat

    Notes
    -----
    Conventions: where a norm has a kink, elements that are zero have derivative zero (so has the
    norm of a vector of zeros), maxima and minima hand their derivative on as `numpy.max` and
    `numpy.min` do, and singular values as `numpy.linalg.svdvals`. The number of nonzero elements
    (``ord=0``) is a constant."""
    if axis is None and ord is None:
        return p_norm(x, keepdims=keepdims)
    x = as_operand(x, "norm: x")
    ndim = np.ndim(x)
    if axis is None:
        axis = tuple(range(ndim))
    axes = _normalised("norm", axis, ndim)
    if len(axes) == 1:
        return _vector_norm("norm", x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm("norm", x, ord, (axes[0], axes[1]), keepdims)
    raise ShapeError(f"norm: axis is {axis}, but must be one axis of vectors or two of matrices!")


@implements(np.linalg.vector_norm)
def vector_norm(
    x: Operand, /, *, axis: Axis = None, keepdims: bool = False, ord: Setting = 2
) -> Result:
    """`numpy.linalg.vector_norm`: the norm of all elements along the given axes, by default of
    all.
    """
    x = as_operand(x, "vector_norm: x")
    axes = None if axis is None else _normalised("vector_norm", axis, np.ndim(x))
    return _vector_norm("vector_norm", x, ord, axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Setting = "fro") -> Result:
    """`numpy.linalg.matrix_norm`: norms of the matrices in the last two axes."""
    x = as_operand(x, "matrix_norm: x")
    check_matrix("matrix_norm", "x", x)
    return _matrix_norm("matrix_norm", x, ord, (np.ndim(x) - 2, np.ndim(x) - 1), keepdims)


@implements(np.linalg.cond)
def cond(x: Operand, p: Operand = None) -> Result:
    """`numpy.linalg.cond`: the condition number, as a ratio of singular values or a product of two
    norms.

    A singular matrix has no condition number in the norms other than 2 and -2: its inverse is
    refused."""
    x = as_operand(x, "cond: x")
    check_matrix("cond", "x", x)
    if not np.size(x):
        return np.linalg.cond(plain(x), p)
    if p in (None, 2, -2):
        s = singular_values(x)
        most, least = _extreme_singular_value(s, 2), _extreme_singular_value(s, -2)
        return np.where(most == 0.0, np.inf, least / most if p == -2 else most / least)
    return np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))


# Sums of powers, and norms, between these have lost nothing to overflow or underflow.
ORDINARY = (1e-140, 1e140)


@operation(stacked=True)
@scalar_valued
def dot_self(x: Plain) -> Plain:
    """Sum of squares of all elements, of complex ones of their moduli.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is ``2 x``.

    References
    ----------
    Stan Functions Reference, "Dot products and specialized products".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.dot_self, np.array([1.0, 2.0]))
    array([2., 4.])
    """
    return np.vdot(x, x)


@dot_self.reverse
def dot_self_reverse(g: Adjoint, r: Plain, x: Plain) -> Adjoint:
    return (g + g) * x


@dot_self.tangent
def dot_self_tangent(r: Result, x: Operand) -> Linear:
    axes = axes_of(None, np.ndim(x))
    return lambda t: 2.0 * np.sum(x * t, axis=axes)


@scalar_valued
def norm1(x: Operand) -> Result:
    """Sum of the absolute values of all elements.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is the sign of each element, zero at zero.

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.norm1, np.array([1.0, -2.0]))
    array([ 1., -1.])
    """
    return p_norm(as_operand(x, "norm1: x"), ord=1.0)


@scalar_valued
def norm2(x: Operand) -> Result:
    """Euclidean length of all elements, the root of the sum of squares, without overflow or
    underflow.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    Var

    Notes
    -----
    The derivative is ``x / norm2(x)``; zero at the origin, the smallest subgradient there (Stan has
    nan).

    References
    ----------
    Stan Functions Reference, "Reductions".

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(vm.norm2, np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return p_norm(as_operand(x, "norm2: x"))


@operation(stacked=True)
def p_norm(x: Plain, ord: float = 2.0, axis: Axis = None, keepdims: bool = False) -> Plain:
    """Compute the norm ``sum(abs(x)**ord)**(1/ord)`` over given axes, for a finite order other than
    zero, without overflow or underflow.

    Parameters
    ----------
    x : array_like, any shape
    ord : float
        The order; 2 is the Euclidean (for a matrix the Frobenius) norm.
    axis : int or tuple of int, optional
        All axes by default.
    keepdims : bool
        Keep the summed axes with length one.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The derivative is :math:`\\mathrm{sign}(x_i) (|x_i| / r)^{p-1}`. It is taken to be zero where
    :math:`x_i = 0`, and so for the vector of zeros, where the norm has no derivative: zero is one
    of its subgradients.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(np.linalg.norm, np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> vm.gradient(np.linalg.norm, np.zeros(2))
    array([0., 0.])
    """
    if ord == 1:
        return summed(np.abs(x), axis, keepdims)
    # The common case needs no `errstate`.
    if ord == 2 and axis is None and not keepdims and type(x) is not Symbol:
        total = np.vdot(x, x)
        if is_between(total, *ORDINARY):
            return math.sqrt(total)
    return _root_of_powers(x, ord, axis, keepdims)


@np.errstate(all="ignore")
def _root_of_powers(x: Operand, ord: float, axis: Axis, keepdims: bool) -> Result:
    """Compute a norm. If the sum of the powers leaves the range of a float, first divide the
    elements by the one that dominates.
    """

    def powers(x: Operand) -> Result:
        return (
            sum_of_squares(x, axis, keepdims)
            if ord == 2
            else summed(np.abs(x) ** ord, axis, keepdims)
        )

    def root(total: Operand) -> Result:
        return np.sqrt(total) if ord == 2 else total ** (1.0 / ord)

    total = powers(x)
    r = root(total)
    if is_between(total, *ORDINARY):
        return r
    reduce, initial = (max_reduce, 0.0) if ord > 0 else (min_reduce, np.inf)
    unit = reduce(np.abs(x), axis=axis, keepdims=True, initial=initial)
    # Elements that are zero, infinite or nan are so in any unit.
    lost = ~((total > 1e-290) & (total < np.inf)) & ((unit > 0) & (unit < np.inf)).reshape(
        np.shape(r)
    )
    if not np.count_nonzero(lost):
        return r
    return np.where(lost, unit.reshape(np.shape(r)) * root(powers(x / unit)), r)[()]


def _slope(
    g: Adjoint, r: Operand, x: Operand, ord: float, r_plain: Operand, x_plain: Operand
) -> Result:
    """`g` times the derivative with respect to each element, for `r` with all axes;
    differentiable.
    """
    if ord == 1:
        return g * np.sign(x_plain)
    is_plain = type(r_plain) in (float, np.ndarray)
    if ord == 2 and (type(r) is Symbol or (is_plain and is_between(r_plain, *ORDINARY))):
        return x * (g / r)
    none = r_plain == 0 if type(r) is not Symbol else False
    slope = x / np.where(none, 1.0, r)
    if ord != 2:
        sign = np.sign(x_plain)
        slope = np.where(
            sign == 0, 0.0, sign * np.abs(np.where(sign == 0, 1.0, slope)) ** (ord - 1.0)
        )
    return np.where(none, 0.0, g * slope)


@p_norm.reverse
def p_norm_reverse(
    g: Adjoint, r: Plain, x: Plain, ord: float, axis: Axis, keepdims: bool
) -> Adjoint:
    if axis is not None and not keepdims:
        g, r = (restored(item, x.shape, axis, False) for item in (g, r))
    return _slope(g, r, x, ord, r, x)


@p_norm.tangent
def p_norm_tangent(r: Result, x: Operand, ord: float, axis: Axis, keepdims: bool) -> Linear:
    axes, r = axes_of(axis, np.ndim(x)), restored(r, np.shape(x), axis, keepdims)
    slope = _slope(1.0, r, x, ord, fixed(r), fixed(x))
    return lambda t: np.sum(slope * t, axis=axes, keepdims=keepdims)
