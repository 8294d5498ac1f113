"""Joining and choosing: concatenation, stacking, blocks, `where` and its relatives."""

from __future__ import annotations

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from varmat.core import dispatch
from varmat.core.data import refuse_masks_and_matrices
from varmat.core.dual import Dual, newest, result_dual
from varmat.core.errors import ShapeError, mismatch
from varmat.core.operation import Operation, as_operand, is_differentiable, operation
from varmat.core.variables import VARIABLES
from varmat.functions.arrays.repeating import align, alike
from varmat.functions.checks import check_settings, delivered, fixed, misfit
from varmat.plain_arrays import where as chosen
from varmat.programs.ir.program import BOOL
from varmat.programs.record.conditions import Condition
from varmat.typing import (
    Adjoint,
    DTypeLike,
    Function,
    Index,
    Linear,
    Operand,
    Plain,
    Result,
    Thunk,
    array_valued,
)

__all__ = ["append_array", "append_col", "append_row"]


@operation(variadic=True, native=True)
def concatenate(*arrays: Plain, axis: int = 0) -> Plain:
    """Join arrays along an existing axis.

    Parameters
    ----------
    *arrays : array_like
        Arrays of the same shape but for the axis.
    axis : int

    Returns
    -------
    VarMat

    Notes
    -----
    Each operand receives its part of the adjoint.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.concatenate([x, x[:1], [4.0]]) ** 2), np.array([1.0, 2.0]))
    array([4., 4.])
    """
    try:
        return np.concatenate(arrays, axis)
    except ValueError as error:  # the shapes, or their numbers of axes
        raise _mismatch("concatenate", error, arrays) from None


@concatenate.reverse
def concatenate_reverse(g: Adjoint, r: Plain, *arrays: Plain, axis: int) -> Adjoint:
    before = (slice(None),) * (axis % g.ndim)
    parts, start = [], 0
    for x in arrays:
        stop = start + x.shape[axis]
        parts.append(g[(*before, slice(start, stop))])
        start = stop
    return tuple(parts)


@operation(variadic=True, native=True)
def stack(*arrays: Plain, axis: int = 0) -> Plain:
    """Join arrays of one shape along a new axis; use it to make an array of scalars.

    Parameters
    ----------
    *arrays : array_like or scalar
    axis : int

    Returns
    -------
    VarMat

    Notes
    -----
    Each operand receives its part of the adjoint.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.prod(np.stack([x[0], 3.0, x[1]])), np.array([1.0, 2.0]))
    array([6., 3.])
    """
    if not axis and all(type(x) is float for x in arrays):
        return np.array(arrays)
    try:
        return np.stack(arrays, axis)
    except ValueError as error:
        raise _mismatch("stack", error, arrays) from None


def _mismatch(function: str, error: ValueError, arrays: Operand) -> ValueError:
    """Make the error for arrays whose shapes do not go together; keep NumPy's error about the
    axis.
    """
    if isinstance(error, np.exceptions.AxisError) or not arrays:
        return error
    return ShapeError(
        f"{function}: arrays have shapes {' and '.join(str(np.shape(x)) for x in arrays)}, but "
        "must go together!"
    )


@stack.reverse
def stack_reverse(g: Adjoint, r: Plain, *arrays: Plain, axis: int) -> Adjoint:
    return (
        tuple(g.tolist())
        if isinstance(g, np.ndarray) and g.ndim == 1
        else tuple(np.moveaxis(g, axis, 0))
    )


# Duals are joined by the functions of NumPy, not by a tangent rule.
concatenate.rule.recompute = lambda _, arrays, settings: np.concatenate(arrays, **settings)
stack.rule.recompute = lambda _, arrays, settings: np.stack(arrays, **settings)


def operands(function: str, arrays: Operand) -> list[Operand]:
    """Convert array-likes to variables, duals, matvars or float64 arrays, of kinds that go
    together.
    """
    return alike(as_operand(x, f"{function}: arrays[{i}]") for i, x in enumerate(arrays))


# Kinds that the operations take unchanged.
_DIRECT = VARIABLES | {float, int, np.ndarray}


def _join(op: Operation, arrays: Operand, axis: int, new: int = 0) -> Result:
    """Join operands of any kinds; `new` is 1 if the axis is a new one."""
    if not _DIRECT.issuperset(map(type, arrays)):
        arrays = operands(op.name, arrays)
        if any(type(x) is Dual for x in arrays):
            return _join_duals(
                op, arrays, normalize_axis_index(axis, np.ndim(arrays[0]) + new), new
            )
    return op(*arrays, axis=axis)


def _join_duals(op: Operation, arrays: Operand, axis: int, new: int) -> Dual:
    level = newest([x for x in arrays if type(x) is Dual])
    mine = [type(x) is Dual and x.level is level for x in arrays]
    directions = {x.directions for x, is_mine in zip(arrays, mine, strict=True) if is_mine}
    if len(directions) > 1:
        raise ShapeError(
            f"{op.name}: duals with {' and '.join(map(str, directions))} directions meet"
        )
    k = directions.pop()
    front = () if k is None else (k,)
    values = [x.val if is_mine else x for x, is_mine in zip(arrays, mine, strict=True)]
    tangents = [
        x.tan if is_mine else np.zeros((*front, *np.shape(x)))
        for x, is_mine in zip(arrays, mine, strict=True)
    ]
    return result_dual(
        _join(op, values, axis, new), _join(op, tangents, axis + len(front), new), level
    )


@dispatch.implements(np.concatenate)
def _concatenate(
    arrays: Operand,
    axis: int | None = 0,
    out: Operand = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Result:
    check_settings(np.concatenate, out, dtype, casting)
    if axis is None:
        arrays, axis = [np.ravel(x) for x in operands("concatenate", arrays)], 0
    return delivered(np.concatenate, out, _join(concatenate, list(arrays), axis))


@dispatch.implements(np.stack)
def _stack(
    arrays: Operand,
    axis: int = 0,
    out: Operand = None,
    *,
    dtype: DTypeLike | None = None,
    casting: str = "same_kind",
) -> Result:
    check_settings(np.stack, out, dtype, casting)
    return delivered(np.stack, out, _join(stack, list(arrays), axis, new=1))


def _joined(function: Function, atleast: Function, axis_of: Function) -> Function:
    """Make a handler for a function that brings arrays to some number of axes and joins them along
    one.
    """

    def answer(
        tup: Operand, *, dtype: DTypeLike | None = None, casting: str = "same_kind"
    ) -> Result:
        check_settings(function, dtype=dtype, casting=casting)
        arrays = [atleast(x) for x in operands(function.__name__, tup)]
        return np.concatenate(arrays, axis_of(arrays))

    return answer


def _as_column(x: Operand) -> Result:
    return np.reshape(x, (-1, 1)) if np.ndim(x) < 2 else x


JOINS: tuple[tuple[Function, Function, Function], ...] = (
    (np.hstack, np.atleast_1d, lambda arrays: 0 if np.ndim(arrays[0]) == 1 else 1),
    (np.vstack, np.atleast_2d, lambda arrays: 0),
    (np.dstack, np.atleast_3d, lambda arrays: 2),
    (np.column_stack, _as_column, lambda arrays: 1),
)
dispatch.SUPPORTED.update((_function, _joined(_function, *_how)) for _function, *_how in JOINS)


@dispatch.implements(np.append)
def append(arr: Operand, values: Plain, axis: int | None = None) -> Result:
    """Implement `np.append`."""
    return np.concatenate([arr, values], axis)


def _appended(function: str, x: Operand, y: Operand, shaped: Function, axis: int = 0) -> Result:
    """Join `y` after `x` along an axis; `shaped` gives an array the axes it needs, from the greater
    number of axes of both.
    """
    parts = alike([as_operand(x, f"{function}: x"), as_operand(y, f"{function}: y")])
    ndim = max(map(np.ndim, parts))
    parts = [shaped(part, ndim) for part in parts]
    full, shape = map(np.shape, parts)
    if not full:
        raise ShapeError(f"{function}: x is a scalar, but must be an array!")
    if len(full) != len(shape) or any(
        m != n for i, (m, n) in enumerate(zip(full, shape, strict=True)) if i != axis
    ):
        raise misfit(function, "y", shape, f"have the shape of x, {full}, except along axis {axis}")
    return np.concatenate(parts, axis)


@array_valued
def append_row(x: Operand, y: Operand) -> Result:
    """Append `y` below `x`.

    Parameters
    ----------
    x, y : scalar, or array_like of one or two axes
        A vector is a column, but with a matrix a row.

    Returns
    -------
    VarMat
        A matrix if one of them is one, otherwise a vector.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    Each of `x` and `y` receives its part of the adjoint.

    References
    ----------
    Stan Functions Reference, "Matrix concatenation".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.append_row(1.0, [2.0, 3.0])
    array([1., 2., 3.])
    """
    return _appended(
        "append_row",
        x,
        y,
        lambda part, ndim: np.atleast_2d(part) if ndim > 1 else np.atleast_1d(part),
    )


@array_valued
def append_col(x: Operand, y: Operand) -> Result:
    """Append `y` to the right of `x`.

    Parameters
    ----------
    x, y : array_like of one or two axes
        A vector is a column.

    Returns
    -------
    VarMat
        A matrix.

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    Each of `x` and `y` receives its part of the adjoint.

    References
    ----------
    Stan Functions Reference, "Matrix concatenation".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.append_col([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    array([[1., 2., 5.],
           [3., 4., 6.]])
    """
    return _appended("append_col", x, y, lambda part, _: _as_column(part), 1)


@array_valued
def append_array(x: Operand, y: Operand) -> Result:
    """Join the elements (or slices) of `x` and then of `y` along the first axis.

    Parameters
    ----------
    x, y : array_like, one or more axes

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Notes
    -----
    Each of `x` and `y` receives its part of the adjoint.

    References
    ----------
    Stan Functions Reference, "Array concatenation".

    Examples
    --------
    >>> import varmat as vm
    >>> vm.append_array([1.0], [2.0, 3.0])
    array([1., 2., 3.])
    """
    return _appended("append_array", x, y, lambda part, _: part)


@dispatch.implements(np.block)
def block(arrays: Operand) -> Result:
    """Implement `np.block`: make a matrix (or array) of a nested list of parts."""
    leaves: list[Operand] = []

    def depth(part: object) -> int:
        if not isinstance(part, list):
            leaves.append(part)
            return 0
        if not part:
            raise ShapeError(
                "block: arrays holds an empty list, but every list must have at least one part!"
            )
        depths = {depth(item) for item in part}
        if len(depths) > 1:
            raise ShapeError(
                "block: arrays holds lists of different depths, but all parts must have the same "
                "depth!"
            )
        return 1 + depths.pop()

    def join(part: Operand, axis: int) -> Result:
        if not isinstance(part, list):
            x = next(parts)
            return np.reshape(x, (1,) * (ndim - np.ndim(x)) + np.shape(x))
        return np.concatenate([join(item, axis + 1) for item in part], axis)

    levels = depth(arrays)
    ndim = max(levels, *map(np.ndim, leaves))
    parts = iter(operands("block", leaves))
    return join(arrays, -levels) if levels else np.copy(arrays)


@dispatch.implements(np.insert)
def insert(arr: Operand, obj: Index, values: Plain, axis: int | None = None) -> Result:
    """Implement `np.insert`; the inserted values may be variables too."""
    if (
        is_differentiable(values)
        and not is_differentiable(arr)
        and np.asarray(arr).dtype.kind in "biu"
    ):
        raise TypeError(
            f"insert: arr has dtype {np.asarray(arr).dtype}, but must be float64 where variables "
            "are inserted!"
        )
    arr, values = operands("insert", [arr, values])
    if axis is None:
        arr, axis = np.ravel(arr), 0
    ndim = np.ndim(arr)
    axis = normalize_axis_index(axis, ndim)
    n = arr.shape[axis]
    values = np.reshape(values, (1,) * (ndim - np.ndim(values)) + np.shape(values))
    if not isinstance(obj, slice):
        obj = np.asarray(dispatch.plain(obj))
        if not obj.size:
            obj = obj.astype(int)
        if not obj.ndim:
            values = np.moveaxis(values, 0, axis)
    # NumPy, applied to the indices, says how many elements are inserted, and where.
    if isinstance(obj, slice) or obj.size != 1 or obj.dtype == bool:
        count = len(np.insert(np.arange(n), obj, -1)) - n
    else:
        count = values.shape[axis]
    new = np.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :]))
    order = np.insert(np.arange(n), obj, n + np.arange(count))
    return np.take(np.concatenate([arr, new], axis), order, axis)


@operation(native=True, stacked=True)
def where(x: Plain, y: Plain, *, condition: Plain) -> Plain:
    """Select elements of `x` where the condition holds, of `y` elsewhere.

    Parameters
    ----------
    x, y : array_like or scalar
    condition : array_like of bool

    Returns
    -------
    Var or VarMat
        With the shape to which the three broadcast.

    Raises
    ------
    ShapeError
        If they do not broadcast.

    Notes
    -----
    Called as ``np.where(condition, x, y)``. Each element hands its adjoint to the one it was chosen
    from; the other one receives zero, also where it is infinite or nan.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.where(x > 1.5, x**2, -x)), np.array([1.0, 2.0]))
    array([-1.,  4.])
    """
    try:
        return np.where(condition, x, y)
    except ValueError as error:
        raise mismatch("where", error, condition, x, y) from None


@where.reverse
def where_reverse(g: Adjoint, r: Plain, x: Plain, y: Plain, condition: Plain) -> tuple[Thunk, ...]:
    return lambda: chosen(condition, g, 0.0), lambda: chosen(condition, 0.0, g)


@where.tangent
def where_tangent(r: Result, x: Operand, y: Operand, condition: Plain) -> tuple[Linear, ...]:
    return (
        lambda t: np.where(condition, align(t, x, r), 0.0),
        lambda t: np.where(condition, 0.0, align(t, y, r)),
    )


@dispatch.implements(np.where)
def _where(condition: Plain, *choices: Operand) -> Result:
    if type(condition) is Condition:
        return condition.select(*choices)
    if type(condition) is not np.ndarray:
        refuse_masks_and_matrices(condition, "where: condition")
        condition = fixed(condition)
        if type(condition) in VARIABLES:
            return _where(condition != 0.0, *choices)
    if not choices:
        return np.nonzero(condition)
    return where(*choices, condition=condition)


@dispatch.implements(np.select)
def select(condlist: Operand, choicelist: Operand, default: Operand = 0) -> Result:
    """Implement `np.select`: take the choice of the first condition that holds."""
    if len(condlist) != len(choicelist) or not condlist:
        raise ShapeError(
            f"select: condlist has {len(condlist)} and choicelist {len(choicelist)} items, but "
            "must have the same number (at least one)!"
        )
    result = default
    for i in reversed(range(len(condlist))):
        condition: Result = (
            condlist[i]
            if type(condlist[i]) is Condition
            else np.asarray(dispatch.plain(condlist[i]))
        )
        if condition.dtype != bool:
            raise TypeError(
                f"select: condlist[{i}] has dtype {condition.dtype}, but must be boolean!"
            )
        choice = choicelist[i]
        if getattr(choice, "dtype", None) != BOOL:
            choice = as_operand(choice, f"select: choicelist[{i}]")
        result = np.where(condition, choice, result)
    return result


@dispatch.implements(np.choose)
def choose(a: Operand, choices: Operand, out: Operand = None, mode: str = "raise") -> Result:
    """Implement `np.choose`: take each element from the array that `a` numbers."""
    check_settings(np.choose, out)
    choices = operands("choose", choices)
    numbers: np.ndarray = np.arange(len(choices))
    which = np.choose(dispatch.plain(a), numbers, None, mode)  # type: ignore[call-overload]
    result: Result = 0.0
    for i, choice in enumerate(choices):
        result = np.where(which == i, choice, result)
    return delivered(np.choose, out, result)
