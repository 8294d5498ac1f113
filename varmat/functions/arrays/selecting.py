"""Elements selected along an axis, which is indexing, and added at an index."""

from __future__ import annotations

import inspect

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from varmat.core import dispatch
from varmat.core.data import refuse_masks_and_matrices
from varmat.core.indexing import frozen
from varmat.core.matvar import MatVar, object_array
from varmat.core.operation import as_operand, operation
from varmat.core.variables import Var
from varmat.functions.checks import check_settings, delivered
from varmat.plain_arrays import scatter_add
from varmat.typing import Adjoint, Axis, Function, Index, Operand, Plain, Result, Setting, Shape


@dispatch.implements(np.take)
def take(
    a: Operand,
    indices: Index,
    axis: int | None = None,
    out: Operand = None,
    mode: Setting = "raise",
) -> Result:
    """Implement `np.take`: elements, or slices, at given indices along an axis."""
    check_settings(np.take, out)
    refuse_masks_and_matrices(indices, "take: indices")
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    # NumPy, applied to the indices, says which are meant, and refuses wrong ones.
    positions = np.arange(a.shape[axis]).take(indices, mode=mode)
    return delivered(
        np.take, out, a[(slice(None),) * axis + (positions,)] if axis else a[positions]
    )


def _selection(function: Function, condition_first: bool = False) -> Function:
    """Make a handler for a function that selects along an axis: apply the function to the indices,
    then `np.take` to the elements.
    """

    signature = inspect.signature(function)
    first, second, *_ = signature.parameters

    def answer(*args: Setting, **settings: Setting) -> Result:
        arguments = signature.bind(*args, **settings).arguments
        out = arguments.get("out")
        check_settings(function, out)
        a, which = (
            (arguments[second], arguments[first])
            if condition_first
            else (arguments[first], arguments[second])
        )
        axis = arguments.get("axis")
        if axis is None:
            a, axis = np.ravel(a), 0
        indices = np.arange(a.shape[normalize_axis_index(axis, np.ndim(a))])
        which = dispatch.plain(which)
        return delivered(
            function,
            out,
            np.take(
                a, function(which, indices) if condition_first else function(indices, which), axis
            ),
        )

    return answer


dispatch.SUPPORTED[np.delete] = _selection(np.delete)
dispatch.SUPPORTED[np.compress] = _selection(np.compress, condition_first=True)
dispatch.SUPPORTED[np.extract] = _selection(np.extract, condition_first=True)
repeat_each = _selection(np.repeat)


@dispatch.implements(np.trim_zeros)
def trim_zeros(filt: Operand, trim: str = "fb", axis: Axis = None) -> Result:
    """Implement `np.trim_zeros`: a view without the zeros at the ends."""
    ndim, indices = np.ndim(filt), np.argwhere(dispatch.plain(filt))
    axes = normalize_axis_tuple(range(ndim) if axis is None else axis, ndim)
    index = [slice(None)] * ndim
    for i in axes:
        if len(indices):
            start, stop = indices[:, i].min(), indices[:, i].max() + 1
            index[i] = slice(
                start if "f" in trim.lower() else None, stop if "b" in trim.lower() else None
            )
        else:
            index[i] = slice(0, 0)
    return filt[tuple(index)]


@operation(linear=True)
def scattered(x: Plain, *, shape: tuple[int, ...], index: Index) -> Plain:
    """Add `x` to zeros of a shape at an index, as often as the index names an element."""
    total = np.zeros(shape)
    scatter_add(total, index, x)
    return total


@scattered.reverse
def scattered_reverse(g: Adjoint, r: Plain, x: Plain, shape: Shape, index: Index) -> Adjoint:
    return g[index]


def _at(ufunc: np.ufunc) -> Function:
    def at(a: Operand, indices: Index, b: Operand) -> None:
        dispatch.refuse_plain_out(ufunc, a)
        index = frozen(indices)
        part = np.broadcast_to(0.0, np.shape(a))[index].shape
        b = as_operand(b, f"{ufunc.__name__}.at: b")
        if np.ndim(b) > len(part):  # NumPy drops leading axes of length one
            b = np.reshape(b, np.shape(b)[np.ndim(b) - len(part) :])
        b = np.broadcast_to(
            object_array([b], ()) if isinstance(a, MatVar) and type(b) is Var else b, part
        )
        a[...] = ufunc(a, scattered(b, shape=np.shape(a), index=index))

    return at


for _ufunc in (np.add, np.subtract):
    dispatch.SUPPORTED[_ufunc, "at"] = _at(_ufunc)
