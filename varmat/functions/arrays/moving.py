"""Functions that only move elements and fill with zeros.

`np.roll`, `np.pad`, `np.resize`, `np.take_along_axis`, sliding windows, diagonals and triangles are
one operation, `moved`. The function applied to the array ``1, 2, ...`` in the shape of the operand
tells where each element of the result comes from, which is all that the reverse pass needs."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from varmat.core import dispatch
from varmat.core.operation import is_differentiable, operation
from varmat.functions.arrays.shaping import read_only, view
from varmat.functions.checks import by_position, kept
from varmat.programs.build.symbol import Symbol, refuse, spread_back
from varmat.typing import Adjoint, Axis, Function, Linear, Operand, Plain, Result, Setting, Shape


@operation(native=True, stacked=True)
def moved(a: Plain, *, move: Linear, back: Linear | None = None) -> Plain:
    """Move the elements of an array, with zeros where none is moved to.

    Parameters
    ----------
    a : array_like, any shape
    move : callable
        A NumPy function with its settings: a linear map all of whose weights are zero or one, one
        element per result.
    back : callable, optional
        Its adjoint map, where that is simple.

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The adjoint of an element is the sum of the adjoints of its copies.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.roll(x, 1) * [1.0, 10.0, 100.0]), np.array([1.0, 2.0, 3.0]))
    array([ 10., 100.,   1.])
    """
    return _taken(np.ravel(a), sources(move, a.shape)) if type(a) is Symbol else move(a)


def _taken(flat: Operand, indices: Plain) -> Result:
    """Take the elements at indices along the last axis, as `sources` counts them."""
    result = flat[..., np.maximum(indices - 1, 0)] if np.size(flat) and indices.size else refuse()
    return result if np.all(indices) else np.where(indices > 0, result, 0.0)


def sources(move: Linear, shape: tuple[int, ...]) -> Result:
    """Find where each element of the result comes from: 1 + its index among the elements of an
    array of `shape`, 0 for a zero.
    """
    return move(np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape))


@moved.reverse
def moved_reverse(g: Adjoint, r: Plain, a: Plain, move: Linear, back: Linear | None) -> Adjoint:
    if back is not None and type(g) is not Symbol:
        return back(g)
    shape = np.shape(a)
    indices = np.ravel(sources(move, shape))
    if type(g) is Symbol:
        goes = np.flatnonzero(indices)
        return spread_back(np.ravel(g)[goes], indices[goes] - 1, shape)
    c = np.bincount(indices, weights=np.ravel(g), minlength=np.size(a) + 1)
    return c[1:].reshape(shape)


@moved.tangent
def moved_tangent(r: Result, a: Operand, move: Linear, back: Linear | None) -> Linear:
    def push(t: Operand) -> Result:
        if np.ndim(t) == np.ndim(a):
            return move(t)
        k, shape = len(t), np.shape(a)
        indices = np.asarray(sources(move, shape))
        flat = np.reshape(t, (k, -1)) if np.size(a) else np.zeros((k, 1))
        return np.where(indices > 0, flat[:, np.maximum(indices - 1, 0)], 0.0)

    return push


@dispatch.implements(np.roll)
def roll(a: Operand, shift: Setting, axis: Axis = None) -> Result:
    """Implement `np.roll`."""
    shift, axis = kept(shift), kept(axis)
    return moved(
        a,
        move=lambda x: np.roll(x, shift, axis),
        back=lambda g: np.roll(g, np.negative(shift), axis),
    )


def _mover(function: Function) -> Function:
    def answer(a: Operand, *args: Setting, **settings: Setting) -> Result:
        args, settings = dispatch.plain(args), dispatch.plain(settings)
        return moved(a, move=lambda x: function(x, *args, **settings))

    return by_position(function, answer)


# Functions that move the elements of their first argument.
MOVERS: tuple[Function, ...] = (np.resize, np.take_along_axis)
dispatch.SUPPORTED.update((_function, _mover(_function)) for _function in MOVERS)


@dispatch.implements(sliding_window_view)
def _sliding_window_view(
    x: Operand,
    window_shape: int | Shape,
    axis: Axis = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> Result:
    """Implement `np.lib.stride_tricks.sliding_window_view`."""
    if writeable:
        raise TypeError(
            "sliding_window_view: writeable is True, but must be False: assign to the variable "
            "itself!"
        )
    window_shape, axis = kept(window_shape), kept(axis)
    # writeable for adjoints
    how = partial(sliding_window_view, window_shape=window_shape, axis=axis, writeable=True)
    return read_only(view(x, how))


# Modes of np.pad that put copies of elements around an array; `reflect_type="odd"` puts differences
# there.
PADS = ("constant", "edge", "reflect", "symmetric", "wrap")


@dispatch.implements(np.pad)
def pad(
    array: Operand, pad_width: Setting, mode: Setting = "constant", **settings: Setting
) -> Result:
    """Implement `np.pad`, in the modes that copy elements or put constants around them."""
    if mode not in PADS or settings.get("reflect_type") == "odd":
        odd = " with reflect_type='odd'" if mode in PADS else ""
        raise TypeError(
            f"pad: mode is {mode!r}{odd}, but must be one of {', '.join(PADS)} (with "
            "reflect_type='even')!"
        )
    pad_width, settings = kept(pad_width), kept(settings)
    constant = settings.pop("constant_values", 0.0) if mode == "constant" else 0.0
    if is_differentiable(constant):
        raise TypeError(
            "pad: constant_values is a variable, but must be plain numbers: join arrays with "
            "np.concatenate!"
        )
    back = None
    if mode == "constant" and np.ndim(array) and not isinstance(pad_width, dict):
        widths = np.broadcast_to(pad_width, (np.ndim(array), 2))
        inner = tuple(
            slice(start, start + n) for (start, _), n in zip(widths, np.shape(array), strict=True)
        )
        back = itemgetter(inner)
    padded = moved(array, move=lambda a: np.pad(a, pad_width, mode, **settings), back=back)
    if not np.any(constant):
        return padded
    inside = np.pad(np.ones(np.shape(array), dtype=bool), pad_width)
    return np.where(
        inside, padded, np.pad(np.zeros(np.shape(array)), pad_width, constant_values=constant)
    )
