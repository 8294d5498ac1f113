"""Elements repeated along axes: broadcasts, `np.repeat`, `np.tile`, grids."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.matvar import MatVar, object_array, to_varmat
from varmat.core.operation import operation
from varmat.core.variables import ARRAYS, Var
from varmat.functions.arrays.selecting import repeat_each
from varmat.functions.arrays.shaping import view
from varmat.functions.checks import check_choice, count, misfit
from varmat.typing import Adjoint, ArrayLike, Linear, Operand, Plain, Result, Shape, array_valued

__all__ = []


@operation(native=True, stacked=True)
def broadcast_to(a: Plain, *, shape: Shape) -> Plain:
    """Repeat the elements along new or longer axes.

    Parameters
    ----------
    a : array_like, any shape that broadcasts to `shape`
    shape : int or tuple of int

    Returns
    -------
    VarMat
        A copy, which can be assigned to. `np.broadcast_to` returns a read-only view, as NumPy does.

    Notes
    -----
    The adjoint is summed over the axes along which elements were repeated.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.broadcast_to(x, (3, 2))), np.array([1.0, 2.0]))
    array([3., 3.])
    """
    return np.copy(np.broadcast_to(a, shape), order="C")


@broadcast_to.reverse
def broadcast_to_reverse(g: Adjoint, r: Plain, a: Plain, shape: Shape) -> Adjoint:
    return g


@broadcast_to.tangent
def broadcast_to_tangent(r: Result, a: Operand, shape: Shape) -> Linear:
    return lambda t: np.broadcast_to(align(t, a, r), (*directions(t, a), *np.shape(r)))


def directions(t: Operand, x: Operand) -> Result:
    """Return the shape of the leading axis of the tangents `t` of `x`; empty without one."""
    return np.shape(t)[: np.ndim(t) - np.ndim(x)]


def align(t: Operand, x: Operand, r: Operand) -> Result:
    """Reshape the tangents of an operand of a broadcasting function: directions stay in front of
    the axes that broadcasting adds.
    """
    missing = (1,) * (np.ndim(r) - np.ndim(x))
    return np.reshape(t, (*directions(t, x), *missing, *np.shape(x))) if missing else t


@dispatch.implements(np.broadcast_to)
def _broadcast_to(array: Operand, shape: int | Shape, subok: bool = False) -> Result:
    shape = tuple(shape) if np.iterable(shape) else (shape,)
    if not array.shape:
        array = np.reshape(array, (1,) * len(shape))
    return view(array, partial(np.broadcast_to, shape=shape))


@dispatch.implements(np.repeat)
def repeat(a: Operand, repeats: ArrayLike, axis: int | None = None) -> Result:
    """Implement `np.repeat`; if every element is repeated as often, it is a broadcast."""
    a = a if np.ndim(a) else np.atleast_1d(a)
    if type(repeats) is not int or repeats < 2:
        return repeat_each(a, repeats, axis=axis)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    shape = list(np.shape(a))
    x = np.broadcast_to(
        np.expand_dims(a, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    )
    shape[axis] *= repeats
    return np.reshape(x, shape)


@dispatch.implements(np.tile)
def tile(A: Operand, reps: int | Shape) -> Result:
    """Implement `np.tile`: a broadcast along axes between the array's own."""
    counts, shape = (tuple(reps) if np.iterable(reps) else (reps,)), np.shape(A)
    ndim = max(len(counts), len(shape))
    shape, counts = (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(counts)) + counts
    between = [n for x in shape for n in (1, x)]
    repeated = [n for count in zip(counts, shape, strict=True) for n in count]
    full = np.reshape(A, between)
    spread = np.copy(full) if between == repeated else np.broadcast_to(full, repeated)
    return np.reshape(spread, [n * m for n, m in zip(counts, shape, strict=True)])


@dispatch.implements(np.broadcast_arrays)
def broadcast_arrays(*args: Operand, subok: bool = False) -> Result:
    """Implement `np.broadcast_arrays`."""
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(x, shape) for x in alike(args))


def alike(arrays: Iterable[Operand]) -> list[Operand]:
    """Convert the arrays of one call to kinds that go together: with a varmat, matvars become
    varmats; with matvars only, scalars become matvars.
    """
    arrays = list(arrays)
    kinds = set(map(type, arrays))
    if MatVar not in kinds:
        return arrays
    if kinds & ARRAYS:
        return [to_varmat(x) for x in arrays]
    return [object_array([x], ()) if type(x) is Var else x for x in arrays]


@dispatch.implements(np.meshgrid)
def meshgrid(*xi: Operand, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Result:
    """Implement `np.meshgrid`."""
    check_choice("meshgrid", "indexing", indexing, "xy", "ij")
    n = len(xi)
    axes = list(range(n))
    if indexing == "xy" and n > 1:
        axes[:2] = 1, 0
    grids = [
        np.reshape(x, [-1 if i == axis else 1 for i in range(n)])
        for x, axis in zip(alike(xi), axes, strict=True)
    ]
    if not copy:
        return tuple(grids) if sparse else np.broadcast_arrays(*grids)
    shape = np.broadcast_shapes(*map(np.shape, grids))
    return tuple(np.copy(x) if sparse else broadcast_to(x, shape=shape) for x in grids)


@array_valued
def rep_vector(x: Operand, n: int) -> Result:
    """Make a vector of `n` elements equal to `x`.

    Parameters
    ----------
    x : scalar
    n : int

    Returns
    -------
    VarMat, shape (n,)

    Raises
    ------
    ShapeError
        If `x` is not a scalar.
    DomainError
        If a count is negative.

    Notes
    -----
    `x` receives the sum of the adjoints.

    References
    ----------
    Stan Functions Reference, "Broadcast functions".

    Examples
    --------
    >>> from varmat.stan.functions import rep_vector
    >>> rep_vector(1.5, 3)
    array([1.5, 1.5, 1.5])
    """
    _check_ndim("rep_vector", x, 0, "a scalar")
    return _along_new_axes("rep_vector", _real(x), n=n)


@array_valued
def rep_matrix(x: Operand, m: int, n: int | None = None) -> Result:
    """Make a matrix of equal elements, or of equal columns.

    Parameters
    ----------
    x : scalar, or array_like, shape (k,)
    m : int
        Number of rows; of columns if `x` is a vector.
    n : int, optional
        Number of columns if `x` is a scalar.

    Returns
    -------
    VarMat, shape (m, n), or (k, m) if `x` is a vector

    Raises
    ------
    ShapeError
        If `x` is not a vector, or with `n` not a scalar.
    DomainError
        If a count is negative.

    Notes
    -----
    `x` receives the sum of the adjoints, over columns if it is a vector.

    References
    ----------
    Stan Functions Reference, "Broadcast functions".

    Examples
    --------
    >>> from varmat.stan.functions import rep_matrix
    >>> rep_matrix([1.0, 2.0], 3)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    if n is None:
        _check_ndim("rep_matrix", x, 1, "a vector where only the number of columns is given")
        return np.transpose(_along_new_axes("rep_matrix", x, m=m))
    _check_ndim("rep_matrix", x, 0, "a scalar where the numbers of rows and columns are given")
    return _along_new_axes("rep_matrix", _real(x), m=m, n=n)


@array_valued
def rep_array(x: Operand, *counts: int) -> Result:
    """Repeat `x` along new leading axes.

    Parameters
    ----------
    x : scalar or array_like, any shape
    *counts : int
        Lengths of the new axes.

    Returns
    -------
    VarMat, shape (\\*counts, \\*x.shape)

    Raises
    ------
    DomainError
        If a count is negative.

    Notes
    -----
    `x` receives the sum of the adjoints over the new axes.

    References
    ----------
    Stan Functions Reference, "Array broadcasting".

    Examples
    --------
    >>> from varmat.stan.functions import rep_array
    >>> rep_array([1.0, 2.0], 3)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """
    return _along_new_axes("rep_array", x, **{f"counts[{i}]": n for i, n in enumerate(counts)})


def _real(x: Operand) -> Operand:
    """Convert an integer to a real number, because Stan's vectors and matrices contain only
    reals.
    """
    return float(x) if isinstance(x, (int, np.integer)) else x


def _check_ndim(function: str, x: Operand, ndim: int, rule: str) -> None:
    if np.ndim(x) != ndim:
        raise misfit(function, "x", np.shape(x), f"be {rule}")


def _along_new_axes(function: str, x: Operand, **counts: int) -> Result:
    """Repeat `x` along new leading axes, of lengths named as in the function that the user
    called.
    """
    lengths = [count(function, name, n) for name, n in counts.items()]
    return broadcast_to(x, shape=(*lengths, *np.shape(x)))
