"""Shapes: NumPy's functions that return views of an array, as views of variables.

A view of a variable shares its values and its adjoints and costs no entry on the tape. Where NumPy
has to copy (the reshape of a transposed array, an array made of a scalar) one entry is recorded,
`reshaped`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from operator import methodcaller

import numpy as np
from numpy.lib.stride_tricks import as_strided

from varmat.core import dispatch
from varmat.core.dual import Dual, paired
from varmat.core.errors import DomainError, ShapeError
from varmat.core.matvar import MatVar
from varmat.core.operation import as_operand, operation
from varmat.core.variables import ARRAYS, VARIABLES, Var, make_view
from varmat.functions.checks import by_position, check_array, integer, kept, misfit
from varmat.programs.record.conditions import Condition
from varmat.typing import (
    Adjoint,
    Axes,
    Function,
    Linear,
    Operand,
    Plain,
    Result,
    Setting,
    Shape,
    array_valued,
)

__all__ = ["reverse", "to_matrix", "to_vector"]


@operation()
def reshaped(a: Plain, *, shape: Shape) -> Plain:
    """Copy the elements in row-major order into another shape: what `np.reshape` records where it
    cannot return a view.

    Parameters
    ----------
    a : Var or VarMat
    shape : tuple of int

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The adjoint is reshaped back.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.reshape(x[0], (1, 1)) * [[2.0]]), np.array([1.0, 2.0]))
    array([2., 0.])
    """
    return np.copy(a, order="C").reshape(shape)


@reshaped.reverse
def reshaped_reverse(g: Adjoint, r: Plain, a: Plain, shape: Shape) -> Adjoint:
    return np.reshape(g, np.shape(a))


@reshaped.tangent
def reshaped_tangent(r: Result, a: Operand, shape: Shape) -> Linear:
    return lambda t: np.reshape(t, shape)


def view(x: Operand, how: Function) -> Result:
    """Apply `how`, which takes a view of an array, to an array of any kind.

    Where the result is not a view, `how` must be a reshape (in row-major order).
    """
    kind = type(x)
    if kind in ARRAYS:
        val = how(x._val)
        if val.ndim and _is_view(val, x._val):
            return make_view(x, how, val)
        return reshaped(x, shape=val.shape)
    if kind is Var:
        shape = np.shape(how(np.float64(x._val)))
        return reshaped(x, shape=shape) if shape else x
    if kind is Dual:
        return paired(
            view(x.val, how),
            view(x.tan, how if x.directions is None else _each_direction(how)),
            x.level,
        )
    if kind is Condition:
        return Condition(view(x.variable, how))
    if isinstance(x, MatVar):
        result = how(x.view(np.ndarray))
        return result.view(MatVar) if result.ndim else result.item()
    return how(np.float64(x) if type(x) is float else x)


def read_only(x: Operand) -> Result:
    """Make a view of any kind read-only."""
    if type(x) is Dual:
        read_only(x.val), read_only(x.tan)
    elif type(memory_of(x)) is np.ndarray:
        memory_of(x).flags.writeable = False
    return x


def _is_view(part: np.ndarray, full: np.ndarray) -> bool:
    base = part.base
    # The same base settles it in most cases, and at once.
    return (
        (base is not None and (base is full or base is full.base))
        or np.may_share_memory(part, full)
        or not part.size
    )


def _each_direction(how: Function) -> Function:
    """Make a function that takes the same view of each of the arrays along the leading axis, all in
    one view.
    """

    return partial(_stacked, how)


def _stacked(how: Function, t: Plain) -> Plain:
    first = how(t[0])
    shape = (len(t), *first.shape)
    if first.ndim and _is_view(first, t):
        return as_strided(first, shape, (t.strides[0], *first.strides))
    return np.array(t, order="C").reshape(shape)  # a copy, as the value is


@dispatch.implements(np.reshape)
def reshape(
    a: Operand,
    shape: Setting = None,
    order: str = "C",
    *,
    newshape: Setting = None,
    copy: bool | None = None,
) -> Result:
    """Implement `np.reshape`: a view where NumPy's is one.

    There is one more case: the result of an index with arrays always lies in row-major order here,
    so that the reshape of ``x[:, [0, 2]]`` is a view, where NumPy makes a copy."""
    if shape is None:  # its name before NumPy 2.1
        shape = newshape
    if copy is False:
        _check_view(memory_of(a), shape, order)
    if order == "C" or order is None:
        result = view(a, methodcaller("reshape", kept(shape)))
    elif order == "F":
        backwards = tuple(shape)[::-1] if np.iterable(shape) else shape
        result = np.transpose(np.reshape(np.transpose(a), backwards))
    else:
        raise TypeError(
            f"reshape: order is {order!r}, but must be 'C' or 'F': variables have no memory layout "
            "of their own!"
        )
    return np.copy(result) if copy else result


def memory_of(x: Operand) -> Result:
    """Return the array in which an array of any kind keeps its values, or its scalars."""
    if type(x) is Dual:
        return memory_of(x.val)
    return x.view(np.ndarray) if isinstance(x, MatVar) else x._val if type(x) in VARIABLES else x


def _check_view(values: Plain, shape: int | Shape, order: Setting) -> None:
    if np.size(values) and not np.may_share_memory(values, np.reshape(values, shape, order)):
        raise DomainError(
            "reshape: copy is False, but must be None or True where the result cannot be a view!"
        )


@dispatch.implements(np.ravel)
def ravel(a: Operand, order: str = "C") -> Result:
    """Implement `np.ravel`: a view of an array that is contiguous in memory."""
    if order not in ("C", "F"):
        return reshape(a, -1, order)
    return view(a if order == "C" else np.transpose(a), methodcaller("ravel"))


@dispatch.implements(np.transpose)
def transpose(a: Operand, axes: Axes = None) -> Result:
    """Implement `np.transpose` (`np.permute_dims`)."""
    return view(a, methodcaller("transpose", kept(axes)))


@dispatch.implements(np.swapaxes)
def swapaxes(a: Operand, axis1: int, axis2: int) -> Result:
    """Implement `np.swapaxes`."""
    return view(a, methodcaller("swapaxes", axis1, axis2))


@dispatch.implements(np.diagonal)
def diagonal(a: Operand, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Result:
    """Implement `np.diagonal`: a view that cannot be assigned to."""

    def how(x: Plain) -> Plain:
        part = x.diagonal(offset, axis1, axis2)
        part.flags.writeable = x.flags.writeable  # that of an adjoint is written to
        return part

    return read_only(view(a, how))


def _answer(function: Function) -> Function:
    def answer(x: Operand, *args: Setting, **settings: Setting) -> Result:
        return view(x, lambda a: function(a, *args, **settings))

    return by_position(function, answer)


# Views of their first argument; all but a few of them always are.
VIEWS: tuple[Function, ...] = (
    np.expand_dims,
    np.flip,
    np.fliplr,
    np.flipud,
    np.matrix_transpose,
    np.moveaxis,
    np.rollaxis,
    np.rot90,
    np.squeeze,
)
dispatch.SUPPORTED.update((_function, _answer(_function)) for _function in VIEWS)


def _atleast(function: Function) -> Function:
    def answer(*arrays: Operand) -> Result:
        results = tuple(view(x, function) for x in arrays)
        return results[0] if len(results) == 1 else results

    return answer


ATLEAST: tuple[Function, ...] = (np.atleast_1d, np.atleast_2d, np.atleast_3d)
dispatch.SUPPORTED.update((_function, _atleast(_function)) for _function in ATLEAST)


@dispatch.implements(np.real)
def real(val: Operand) -> Result:
    """Implement `np.real`: variables are real."""
    return val


def _split(function: Function, axis_of: Callable[[int], int] | None) -> Function:
    """Make a handler for a function of the split family: slices along one axis."""

    def answer(ary: Operand, indices_or_sections: int | Sequence[int], axis: int = 0) -> Result:
        settings = {} if axis_of else {"axis": axis}
        where = dispatch.plain(indices_or_sections)
        # NumPy, applied to an array without memory, says how long the parts are, and refuses wrong
        # arguments.
        parts = function(np.broadcast_to(0.0, ary.shape), where, **settings)
        along = axis_of(ary.ndim) if axis_of else axis % ary.ndim
        # Given indices are the ends of slices, which may leave out elements or overlap.
        ends = (
            where
            if np.iterable(where)
            else np.cumsum([part.shape[along] for part in parts[:-1]], dtype=int).tolist()
        )
        return [
            ary[(slice(None),) * along + (slice(*x),)]
            for x in pairwise([0, *ends, ary.shape[along]])
        ]

    return answer


# Function -> the axis along which it splits, if that depends on the number of axes only.
SPLITS: tuple[tuple[Function, Function | None], ...] = (
    (np.split, None),
    (np.array_split, None),
    (np.hsplit, lambda ndim: min(1, ndim - 1)),
    (np.vsplit, lambda ndim: 0),
    (np.dsplit, lambda ndim: 2),
)
dispatch.SUPPORTED.update(
    (_function, _split(_function, _axis_of)) for _function, _axis_of in SPLITS
)


def unstack(x: Operand, /, *, axis: int = 0) -> Result:
    """Implement `np.unstack`: the parts along an axis."""
    if not x.shape:
        raise ShapeError("unstack: x has shape (), but must have at least one axis!")
    return tuple(np.moveaxis(x, axis, 0))


if hasattr(np, "unstack"):  # NumPy 2.1
    dispatch.SUPPORTED[np.unstack] = unstack


@array_valued
def reverse(x: Operand) -> Result:
    """Reverse the elements (or slices) along the first axis, as a view.

    Parameters
    ----------
    x : array_like, one or more axes

    Returns
    -------
    VarMat

    Raises
    ------
    numpy.exceptions.AxisError
        If `x` is a scalar.

    Notes
    -----
    Values and adjoints belong to `x`: nothing is recorded.

    References
    ----------
    Stan Functions Reference, "Reverse functions".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.reverse([1.0, 2.0, 3.0])
    array([3., 2., 1.])
    """
    x = as_operand(x, "reverse: x")
    check_array("reverse", "x", x)
    return np.flip(x, 0)


@array_valued
def to_vector(x: Operand) -> Result:
    """Put the elements column by column in a vector.

    Parameters
    ----------
    x : array_like, any shape

    Returns
    -------
    VarMat, shape (x.size,)

    Notes
    -----
    Each element receives the adjoint of the element it became.

    References
    ----------
    Stan Functions Reference, "Mixed Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.to_vector([[1.0, 2.0], [3.0, 4.0]])
    array([1., 3., 2., 4.])
    """
    return np.ravel(as_operand(x, "to_vector: x"), order="F")


@array_valued
def to_matrix(
    x: Operand, m: int | None = None, n: int | None = None, col_major: bool = True
) -> Result:
    """Fill the elements into a matrix column by column.

    Parameters
    ----------
    x : array_like, one or two axes
    m, n : int, optional
        Numbers of rows and columns; by default those of `x`, where a vector is a column.
    col_major : bool
        Whether columns are filled in sequence, and not rows.

    Returns
    -------
    VarMat, shape (m, n)

    Raises
    ------
    ShapeError
        If `x` has not ``m * n`` elements, or if these are not given and `x` has more or fewer axes.

    Notes
    -----
    Each element receives the adjoint of the element it became.

    References
    ----------
    Stan Functions Reference, "Mixed Operations".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.to_matrix([1.0, 2.0, 3.0, 4.0], 2, 2)
    array([[1., 3.],
           [2., 4.]])
    """
    x = as_operand(x, "to_matrix: x")
    if m is None or n is None:
        if np.ndim(x) not in (1, 2):
            raise misfit("to_matrix", "x", np.shape(x), "be a vector or a matrix")
        m, n = (*np.shape(x), 1)[:2]
    m, n = integer("to_matrix", "m", m), integer("to_matrix", "n", n)
    if m * n != np.size(x):
        raise ShapeError(f"to_matrix: x has {np.size(x)} elements, but must have {m} * {n}!")
    return np.reshape(x, (m, n), order="F" if col_major else "C")
