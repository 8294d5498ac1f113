"""Moving elements: copies, selections, repetitions, triangles.

Functions that only move elements and fill with zeros (`np.roll`, `np.pad`, `np.resize`,
`np.take_along_axis`, sliding windows, diagonals, triangles) are one operation, `moved`: the
function applied to the array ``1, 2, ...`` in the shape of the operand tells where each element of
the result comes from, which is all the reverse pass needs. Selections along an axis (`np.take`,
`np.delete`, `np.compress`) are gathers, and repetitions (`np.tile`, `np.repeat`) broadcasts, or
gathers too."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
from numpy.lib.stride_tricks import sliding_window_view

from varmat.core import dispatch
from varmat.core.array_methods import FLOAT64
from varmat.core.dual import Dual
from varmat.core.errors import DomainError, ShapeError, nonnegative
from varmat.core.indexing import frozen
from varmat.core.matvar import MatVar, matvar, object_array, to_varmat
from varmat.core.operation import as_operand, is_differentiable, operation
from varmat.core.variables import ARRAYS, VARIABLES, Var, data, make_leaf
from varmat.functions.checks import (
    by_position,
    check_matrix,
    check_settings,
    check_square,
    delivered,
    integer,
    kept,
)
from varmat.plain_arrays import scatter_add
from varmat.programs.symbols import refuse, spread_back

__all__ = [
    "add_diag",
    "diag_matrix",
    "rep_array",
    "rep_matrix",
    "rep_vector",
    "symmetrize_from_lower_tri",
    "symmetrize_from_upper_tri",
]


@operation(native=True, stacked=True)
def moved(a: Any, *, move: Callable[[Any], Any], back: Callable[[Any], Any] | None = None) -> Any:
    """The elements of an array moved elsewhere, with zeros where none goes.

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
    The adjoint of an element is the sum of the adjoints of the places it went to.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.roll(x, 1) * [1.0, 10.0, 100.0]), np.array([1.0, 2.0, 3.0]))
    array([ 10., 100.,   1.])
    """
    return move(a)


def sources(move: Callable[[Any], Any], shape: tuple[int, ...]) -> Any:
    """Where each element of the result comes from: 1 + its place among the elements of an array of
    `shape`, 0 for a zero.
    """
    return move(np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape))


@moved.reverse
def moved_reverse(g: Any, r: Any, a: Any, move: Any, back: Any) -> Any:
    if back is not None:
        return back(g)
    shape = np.shape(a)
    places = np.ravel(sources(move, shape))
    c = np.bincount(places, weights=np.ravel(g), minlength=np.size(a) + 1)
    return c[1:].reshape(shape)


@moved.straight
def moved_straight(a: Any, move: Any, back: Any = None) -> Any:
    places = np.asarray(sources(move, np.shape(a)))
    if not np.size(a) or not places.size:
        refuse()
    taken = np.ravel(a)[np.maximum(places - 1, 0)]
    goes = np.flatnonzero(places)
    value = taken if goes.size == places.size else np.where(places > 0, taken, 0.0)
    return value, lambda g: spread_back(
        np.ravel(g)[goes], places.reshape(-1)[goes] - 1, np.shape(a)
    )


@moved.tangent
def moved_tangent(r: Any, a: Any, move: Any, back: Any) -> Any:
    def push(t: Any) -> Any:
        if np.ndim(t) == np.ndim(a):
            return move(t)
        k, shape = len(t), np.shape(a)
        places = np.asarray(sources(move, shape))
        flat = np.reshape(t, (k, -1)) if np.size(a) else np.zeros((k, 1))
        return np.where(places > 0, flat[:, np.maximum(places - 1, 0)], 0.0)

    return push


@operation(np.copy, native=True, stacked=True)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """A copy, which may be assigned to without changing the original.

    Parameters
    ----------
    a : array_like, any shape

    Returns
    -------
    Var or VarMat

    Notes
    -----
    The adjoint is handed through.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> def f(x):
    ...     y = np.copy(x)
    ...     y[0] = 5.0
    ...     return np.sum(x * y)
    >>> vm.gradient(f, np.array([1.0, 2.0]))
    array([5., 4.])
    """
    return np.array(a, order="C")


@copy.straight
def copy_straight(a: Any, **settings: Any) -> Any:
    return a, lambda g: g


@copy.reverse
def copy_reverse(g: Any, r: Any, a: Any, **settings: Any) -> Any:
    return g


@copy.tangent
def copy_tangent(r: Any, a: Any, **settings: Any) -> Any:
    return np.copy


@operation(native=True, stacked=True)
def broadcast_to(a: Any, *, shape: Any) -> Any:
    """The elements repeated along new or longer axes.

    Parameters
    ----------
    a : array_like, any shape that broadcasts to `shape`
    shape : int or tuple of int

    Returns
    -------
    VarMat
        Unlike NumPy's result not a view: it has adjoints of its own.

    Notes
    -----
    The adjoint is summed over the axes along which elements were repeated.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(np.broadcast_to(x, (3, 2))), np.array([1.0, 2.0]))
    array([3., 3.])
    """
    return np.array(np.broadcast_to(a, shape), order="C")


@broadcast_to.straight
def broadcast_to_straight(a: Any, shape: Any) -> Any:
    return np.broadcast_to(a, shape), lambda g: g


@broadcast_to.reverse
def broadcast_to_reverse(g: Any, r: Any, a: Any, shape: Any) -> Any:
    return g


@broadcast_to.tangent
def broadcast_to_tangent(r: Any, a: Any, shape: Any) -> Any:
    return lambda t: np.broadcast_to(align(t, a, r), (*directions(t, a), *np.shape(r)))


def directions(t: Any, x: Any) -> Any:
    """The leading axis of the tangents `t` of `x`, if there is one."""
    return np.shape(t)[: np.ndim(t) - np.ndim(x)]


def align(t: Any, x: Any, r: Any) -> Any:
    """The tangents of an operand of a broadcasting function: directions stay in front of the axes
    that broadcasting adds.
    """
    missing = (1,) * (np.ndim(r) - np.ndim(x))
    return np.reshape(t, (*directions(t, x), *missing, *np.shape(x))) if missing else t


@dispatch.implements(np.broadcast_to)
def _broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    shape = tuple(shape) if np.iterable(shape) else (shape,)
    return array if array.shape == shape else broadcast_to(array, shape=shape)


def _triangle(function: Any) -> Any:
    def answer(m: Any, k: int = 0) -> Any:
        def move(a: Any) -> Any:
            return function(a, k)

        return moved(m, move=move, back=move if m.ndim > 1 else None)

    return answer


dispatch.SUPPORTED[np.tril] = _triangle(np.tril)
dispatch.SUPPORTED[np.triu] = _triangle(np.triu)


@dispatch.implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """The matrix with a given diagonal, or the diagonal of a matrix (as a view).

    Parameters
    ----------
    v : array_like, shape (n,) or (m, n)
    k : int
        Which diagonal; above the main one if positive.

    Returns
    -------
    VarMat

    Raises
    ------
    ShapeError
        If `v` is neither a vector nor a matrix.

    Notes
    -----
    The adjoint of the diagonal is the diagonal of the adjoint. Also reached as ``np.diag``.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.gradient(lambda x: np.sum(vm.diag_matrix(x) * [[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0]))
    array([1., 4.])
    """
    if np.ndim(v) not in (1, 2):
        raise ShapeError(f"diag: v has shape {np.shape(v)}, but must be a vector or a matrix!")
    if np.ndim(v) == 2:
        return np.diagonal(v, k)
    return moved(v, move=lambda a: np.diag(a, k), back=lambda g: np.diagonal(g, k))


@dispatch.implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """`np.diagflat`."""
    return diag(np.ravel(v), k)


@dispatch.implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`np.roll`."""
    shift, axis = kept(shift), kept(axis)
    return moved(
        a,
        move=lambda x: np.roll(x, shift, axis),
        back=lambda g: np.roll(g, np.negative(shift), axis),
    )


def _mover(function: Any) -> Any:
    def answer(a: Any, *args: Any, **settings: Any) -> Any:
        return moved(a, move=lambda x: function(x, *args, **settings))

    return by_position(function, answer)


# Functions that move the elements of their first argument.
MOVERS: tuple[Any, ...] = (np.resize, np.take_along_axis)
dispatch.SUPPORTED.update((_function, _mover(_function)) for _function in MOVERS)


@dispatch.implements(sliding_window_view)
def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """A copy, unlike NumPy's: in a view the adjoints of an element that is in several windows would
    be one number.
    """
    if writeable:
        raise TypeError(
            "sliding_window_view: writeable is True, but must be False: windows of a variable are "
            "a copy!"
        )
    window_shape, axis = kept(window_shape), kept(axis)
    return moved(x, move=lambda a: np.copy(sliding_window_view(a, window_shape, axis)))


@dispatch.implements(np.take)
def take(
    a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: Any = "raise"
) -> Any:
    """`np.take`: elements, or slices, at given places along an axis."""
    check_settings(np.take, out)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    # NumPy says which places are meant, and what is wrong with them, on the places themselves.
    places = np.arange(a.shape[axis]).take(indices, mode=mode)
    return delivered(np.take, out, a[(slice(None),) * axis + (places,)] if axis else a[places])


def _selection(function: Any, condition_first: bool = False) -> Any:
    """An answer for a function that selects along an axis: what it does to the places, `np.take`
    does to the elements.
    """

    signature = inspect.signature(function)
    first, second, *_ = signature.parameters

    def answer(*args: Any, **settings: Any) -> Any:
        given = signature.bind(*args, **settings).arguments
        out = given.get("out")
        check_settings(function, out)
        a, which = (
            (given[second], given[first]) if condition_first else (given[first], given[second])
        )
        axis = given.get("axis")
        if axis is None:
            a, axis = np.ravel(a), 0
        places = np.arange(a.shape[normalize_axis_index(axis, np.ndim(a))])
        which = dispatch.plain(which)
        return delivered(
            function,
            out,
            np.take(
                a, function(which, places) if condition_first else function(places, which), axis
            ),
        )

    return answer


dispatch.SUPPORTED[np.delete] = _selection(np.delete)
dispatch.SUPPORTED[np.compress] = _selection(np.compress, condition_first=True)
dispatch.SUPPORTED[np.extract] = _selection(np.extract, condition_first=True)
_repeat_each = _selection(np.repeat)


@dispatch.implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """`np.repeat`; as often for every element, it is a broadcast."""
    a = a if np.ndim(a) else np.atleast_1d(a)
    if type(repeats) is not int or repeats < 2:
        return _repeat_each(a, repeats, axis=axis)
    if axis is None:
        a, axis = np.ravel(a), 0
    axis = normalize_axis_index(axis, np.ndim(a))
    shape = list(np.shape(a))
    each = np.broadcast_to(
        np.expand_dims(a, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :])
    )
    shape[axis] *= repeats
    return np.reshape(each, shape)


@dispatch.implements(np.tile)
def tile(A: Any, reps: Any) -> Any:
    """`np.tile`: a broadcast along axes between the array's own."""
    counts, shape = (tuple(reps) if np.iterable(reps) else (reps,)), np.shape(A)
    ndim = max(len(counts), len(shape))
    shape, counts = (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(counts)) + counts
    between = [n for each in shape for n in (1, each)]
    repeated = [n for each in zip(counts, shape, strict=True) for n in each]
    whole = np.reshape(A, between)
    spread = np.copy(whole) if between == repeated else np.broadcast_to(whole, repeated)
    return np.reshape(spread, [n * m for n, m in zip(counts, shape, strict=True)])


@dispatch.implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """`np.trim_zeros`: a view without the zeros at the ends."""
    ndim, places = np.ndim(filt), np.argwhere(dispatch.plain(filt))
    axes = normalize_axis_tuple(range(ndim) if axis is None else axis, ndim)
    index = [slice(None)] * ndim
    for i in axes:
        if len(places):
            start, stop = places[:, i].min(), places[:, i].max() + 1
            index[i] = slice(
                start if "f" in trim.lower() else None, stop if "b" in trim.lower() else None
            )
        else:
            index[i] = slice(0, 0)
    return filt[tuple(index)]


# Modes of np.pad that put copies of elements around an array. What `reflect_type="odd"` puts there
# are differences.
PADS = ("constant", "edge", "reflect", "symmetric", "wrap")


@dispatch.implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **settings: Any) -> Any:
    """`np.pad`, in the modes that copy elements or put constants around them."""
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


def _to_be_filled(make: Any) -> Any:
    function = getattr(np, f"{make.__name__}_like")

    def like(
        a: Any,
        dtype: Any = None,
        order: Any = "K",
        subok: bool = True,
        shape: Any = None,
        *,
        device: Any = None,
    ) -> Any:
        check_settings(function, device=device)
        if dtype is not None and np.dtype(dtype) != FLOAT64:
            if np.dtype(dtype).kind == "c" and is_differentiable(a):
                return like(a, shape=shape) + 0j
            return make(np.shape(a) if shape is None else shape, dtype)
        values = make(np.shape(a) if shape is None else shape)
        if isinstance(a, Dual):
            tangent = values.shape if a.directions is None else (a.directions, *values.shape)
            result = Dual(like(a.val, shape=values.shape), np.zeros_like(a.tan, shape=tangent))
            result.level = a.level
            return result
        if type(a) in VARIABLES:
            return make_leaf(data(values), a._tape.top)
        return matvar(values) if isinstance(a, MatVar) else values

    like.__doc__ = (
        f"`np.{make.__name__}_like`: of a variable it makes one, an array into which "
        "variables may be assigned."
    )
    return like


# What people make in order to write into it, element by element: in a recording, data would refuse
# that. Ones, and what is filled with a number, stay data.
zeros_like = dispatch.implements(np.zeros_like)(_to_be_filled(np.zeros))
empty_like = dispatch.implements(np.empty_like)(_to_be_filled(np.empty))


@dispatch.implements(np.full_like)
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """`np.full_like`, for data and for variables to fill with."""
    check_settings(np.full_like, device=device)
    if not is_differentiable(fill_value):
        return np.full(
            np.shape(a) if shape is None else shape, fill_value, FLOAT64 if dtype is None else dtype
        )
    check_settings(np.full_like, dtype=dtype)
    return broadcast_to(fill_value, shape=np.shape(a) if shape is None else shape)


@dispatch.implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """`np.broadcast_arrays`."""
    shape = np.broadcast_shapes(*map(np.shape, args))
    return tuple(np.broadcast_to(x, shape) for x in alike(args))


def alike(arrays: Iterable[Any]) -> list[Any]:
    """The arrays of one call, of kinds that go together: a varmat makes varmats of matvars, which
    otherwise take scalars in.
    """
    arrays = list(arrays)
    kinds = set(map(type, arrays))
    if MatVar not in kinds:
        return arrays
    if kinds & ARRAYS:
        return [to_varmat(x) for x in arrays]
    return [object_array([x], ()) if type(x) is Var else x for x in arrays]


@operation()
def scattered(x: Any, *, shape: tuple[int, ...], index: Any) -> Any:
    """Zeros of a shape with `x` added at an index, as often as the index names an element."""
    total = np.zeros(shape)
    scatter_add(total, index, x)
    return total


@scattered.reverse
def scattered_reverse(g: Any, r: Any, x: Any, shape: Any, index: Any) -> Any:
    return g[index]


@scattered.tangent
def scattered_tangent(r: Any, x: Any, shape: Any, index: Any) -> Any:
    return lambda t: scattered(t, shape=shape, index=index)


def _at(ufunc: Any) -> Any:
    def at(a: Any, indices: Any, b: Any) -> None:
        dispatch.refuse_plain_out(ufunc, a)
        index = frozen(indices)
        part = np.broadcast_to(0.0, np.shape(a))[index].shape
        b = as_operand(b, f"{ufunc.__name__}.at: b")
        b = np.broadcast_to(
            object_array([b], ()) if isinstance(a, MatVar) and type(b) is Var else b, part
        )
        a[...] = ufunc(a, scattered(b, shape=np.shape(a), index=index))

    return at


for _ufunc in (np.add, np.subtract):
    dispatch.UFUNC_METHODS[_ufunc, "at"] = _at(_ufunc)


@dispatch.implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """`np.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise DomainError(f"meshgrid: indexing is {indexing!r}, but must be 'xy' or 'ij'!")
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


def symmetrize_from_lower_tri(a: Any) -> Any:
    """The symmetric matrix with the lower triangle of `a`; its upper triangle is not looked at.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    An element below the diagonal receives the adjoints of both its places.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.symmetrize_from_lower_tri(np.array([[1.0, 9.0], [2.0, 3.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    return _symmetrized("symmetrize_from_lower_tri", a, np.tri)


def symmetrize_from_upper_tri(a: Any) -> Any:
    """The symmetric matrix with the upper triangle of `a`; its lower triangle is not looked at.

    Parameters
    ----------
    a : array_like, shape (..., n, n)

    Returns
    -------
    VarMat, shape (..., n, n)

    Raises
    ------
    ShapeError
        If `a` is not square.

    Notes
    -----
    An element above the diagonal receives the adjoints of both its places.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.symmetrize_from_upper_tri(np.array([[1.0, 9.0], [2.0, 3.0]]))
    array([[1., 9.],
           [9., 3.]])
    """
    return _symmetrized("symmetrize_from_upper_tri", a, lambda n, dtype: np.tri(n, dtype=dtype).T)


def _symmetrized(name: str, a: Any, triangle: Any) -> Any:
    check_square(name, "a", np.shape(a))
    kept = triangle(np.shape(a)[-1], dtype=bool)
    return moved(a, move=lambda x: np.where(kept, x, np.swapaxes(x, -1, -2)))


@operation(stacked=True)
def add_diag(m: Any, d: Any) -> Any:
    """A matrix with something added to its diagonal.

    Parameters
    ----------
    m : array_like, shape (..., n, p)
    d : scalar or array_like, shape (min(n, p),)

    Returns
    -------
    VarMat, shape (..., n, p)

    Raises
    ------
    ShapeError
        If `m` is not a matrix or `d` does not fit its diagonal.

    Notes
    -----
    The adjoint of `d` is the diagonal of that of the result.

    Examples
    --------
    >>> import numpy as np, varmat as vm
    >>> vm.add_diag(np.zeros((2, 2)), np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    shape = np.shape(m)
    check_matrix("add_diag", "m", m)
    if np.shape(d) not in ((), shape[-2:][:1] if shape[-2] <= shape[-1] else shape[-1:]):
        raise ShapeError(
            f"add_diag: d has shape {np.shape(d)}, but must be a scalar or have shape "
            f"({min(shape[-2:])},)!"
        )
    result = np.array(m, order="C")
    rows, columns = shape[-2:]
    # The elements of the diagonal are one row and one column apart.
    end = min(rows, columns) * (columns + 1)
    result.reshape(*shape[:-2], rows * columns)[..., : end : columns + 1] += d
    return result


@add_diag.reverse
def add_diag_reverse(g: Any, r: Any, m: Any, d: Any) -> Any:
    return lambda: g, lambda: np.diagonal(g, axis1=-2, axis2=-1)


@add_diag.straight
def add_diag_straight(m: Any, d: Any) -> Any:
    n, p = np.shape(m)[-2:]
    on_diagonal = np.eye(n, p, dtype=bool)
    along = d[:, None] if np.ndim(d) and n <= p else d

    def contributions(g: Any) -> Any:
        diagonal = np.diagonal(g, axis1=-2, axis2=-1)
        return g, diagonal if np.ndim(d) else np.sum(diagonal)

    return np.where(on_diagonal, m + along, m), contributions


@add_diag.tangent
def add_diag_tangent(r: Any, m: Any, d: Any) -> Any:
    n, p = np.shape(m)[-2:]
    on_diagonal = np.tri(n, p, dtype=bool) & np.tri(p, n, dtype=bool).T
    matrix = (1, 1) if not np.ndim(d) else (n, 1) if n <= p else (1, p)

    def push(t: Any) -> Any:
        return np.where(
            on_diagonal, np.reshape(t, (*directions(t, d), *(1,) * (np.ndim(r) - 2), *matrix)), 0.0
        )

    return np.copy, push


def rep_vector(x: Any, n: int) -> Any:
    """A vector of `n` elements equal to `x`.

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

    Examples
    --------
    >>> import varmat as vm
    >>> vm.rep_vector(1.5, 3)
    array([1.5, 1.5, 1.5])
    """
    _check_ndim("rep_vector", x, 0, "a scalar")
    return _repeated("rep_vector", x, n=n)


def rep_matrix(x: Any, m: int, n: int | None = None) -> Any:
    """A matrix of equal elements, or of equal columns.

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

    Examples
    --------
    >>> import varmat as vm
    >>> vm.rep_matrix([1.0, 2.0], 3)
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    if n is None:
        _check_ndim("rep_matrix", x, 1, "a vector where only the number of columns is given")
        return np.transpose(_repeated("rep_matrix", x, m=m))
    _check_ndim("rep_matrix", x, 0, "a scalar where the numbers of rows and columns are given")
    return _repeated("rep_matrix", x, m=m, n=n)


def rep_array(x: Any, *counts: int) -> Any:
    """`x` repeated along new leading axes.

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

    Examples
    --------
    >>> import varmat as vm
    >>> vm.rep_array([1.0, 2.0], 3)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """
    return _repeated("rep_array", x, **{f"counts[{i}]": n for i, n in enumerate(counts)})


def _check_ndim(function: str, x: Any, ndim: int, rule: str) -> None:
    if np.ndim(x) != ndim:
        raise ShapeError(f"{function}: x has shape {np.shape(x)}, but must be {rule}!")


def _repeated(function: str, x: Any, **counts: int) -> Any:
    """`x` along new leading axes, of lengths named as in the function that the user called."""
    lengths = [integer(function, name, n) for name, n in counts.items()]
    for name, n in zip(counts, lengths, strict=True):
        nonnegative.check(function, name, n)
    return broadcast_to(x, shape=(*lengths, *np.shape(x)))


diag_matrix = diag
