"""NumPy's functions that make arrays, for variables too."""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from varmat.core import tape as tapes
from varmat.core.dispatch import ComplexKind, refuse_dtype
from varmat.core.matvar import MatVar, to_varmat
from varmat.core.operation import as_operand, is_differentiable
from varmat.core.variables import value
from varmat.functions.arrays.shaping import memory_of
from varmat.numpy.buffers import Buffer, settled, waiting
from varmat.typing import DTypeLike, Function, Index, Operand, Shape

__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "c_",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "identity",
    "ones",
    "ones_like",
    "r_",
    "require",
    "zeros",
    "zeros_like",
]

# NumPy's enumeration, one of whose values is not a truth value.
_COPY = {np._CopyMode.ALWAYS: True, np._CopyMode.NEVER: False, np._CopyMode.IF_NEEDED: None}
_PLAIN = frozenset({float, int, bool, complex, str, np.float64, np.int64})


def is_differentiating() -> bool:
    """Tell whether this thread has a tape with variables, or is in a functional or nested scope."""
    tape = getattr(tapes._thread, "tape", None)
    return tape is not None and (tape.parent is not None or bool(tape.leaves) or bool(tape))


def holds(x: Operand) -> bool:
    """Tell whether `x` is, or contains, something that NumPy cannot put in an array: variables,
    and buffers.
    """
    kind = type(x)
    if kind is list or kind is tuple:
        kinds = {*map(type, x)}
        return not kinds <= _PLAIN and any(map(holds, x))
    if kind is np.ndarray:
        return bool(x.dtype == object) and is_differentiable(x)
    return kind is Buffer or (kind not in _PLAIN and is_differentiable(x))


def _new(array: Operand) -> Operand:
    return waiting(array) if is_differentiating() else array


# --- of given values ---


def _values(function: str, x: Operand) -> Operand:
    """Stack a list that contains variables or buffers into one of these, or into an array; return
    other things unchanged.
    """
    if isinstance(x, (list, tuple)) and is_differentiable(settled(x)):
        return _stacked(function, settled(x))
    return np.array(settled(x)) if isinstance(x, (list, tuple)) else x


def _stacked(function: str, x: Operand) -> Operand:
    if isinstance(x, (list, tuple)):
        if any(type(item) is not float and isinstance(item, (complex, ComplexKind)) for item in x):
            return np.stack(list(x))
        return np.stack([_stacked(function, item) for item in x])
    return as_operand(x, f"{function}: an element") if not isinstance(x, complex) else x


def _typed(function: Function, x: Operand, dtype: DTypeLike | None) -> Operand:
    """Convert a variable to a dtype: to itself, a complex variable, constants, or an array of
    objects.
    """
    if dtype is None:
        return x
    dtype = np.dtype(dtype)
    if dtype.kind == "O":
        objects = np.empty(np.shape(x), object)
        for place in np.ndindex(objects.shape):
            objects[place] = x[place] if objects.ndim else x
        return objects
    if isinstance(x, np.ndarray):  # with objects in it
        x = to_varmat(x.view(MatVar))
    if dtype.kind in "iub" or (dtype.kind == "c" and not isinstance(x, ComplexKind)):
        return x.astype(dtype)
    if not isinstance(x, ComplexKind):
        refuse_dtype(function, dtype)
    return x


def _with_axes(x: Operand, ndmin: int) -> Operand:
    missing = ndmin - np.ndim(x)
    return np.reshape(x, (1,) * missing + np.shape(x)) if missing > 0 else x


@wraps(np.array)
def array(
    object: Operand,
    dtype: DTypeLike | None = None,
    *,
    copy: Any = True,
    ndmin: int = 0,
    **settings: Any,
) -> Operand:
    if not holds(object):
        result = np.array(object, dtype, copy=copy, ndmin=ndmin, **settings)
        return result if result is object else _new(result)
    x, copy = _values("array", object), _COPY.get(copy, copy)
    if copy is False and x is not object:
        raise ValueError("array: copy is False, but an array of the parts of a list is a new one")
    if not is_differentiable(settled(x)):
        same = copy is not True and x is object and dtype in (None, x.dtype)
        return _with_axes(x if same else waiting(np.array(settled(x), dtype)), ndmin)
    is_given = x is object
    x = _typed(array, settled(x) if dtype is not None else x, dtype)
    return _with_axes(np.copy(x) if copy and is_given and np.ndim(x) else x, ndmin)


def _has_layout(x: Operand, function: Function) -> bool:
    """Tell whether a function returns an array that lies in memory as the values of `x` do."""
    a = x._array if type(x) is Buffer else memory_of(x)
    return type(a) is not np.ndarray or np.may_share_memory(function(a), a)


def _given(function: Function, least: int = 0) -> Function:
    """Return a function that makes arrays, but passes variables and buffers through."""

    @wraps(function)
    def given(
        a: Operand, dtype: DTypeLike | None = None, *args: Operand, **settings: Any
    ) -> Operand:
        if not holds(a):
            result = function(a, dtype, *args, **settings)
            return result if result is a or isinstance(a, np.ndarray) else _new(result)
        copied = settings.get("copy") or not _has_layout(a, function)
        return array(a, dtype, copy=True if copied else None, ndmin=least)

    return given


asarray = _given(np.asarray)
asanyarray = _given(np.asanyarray)
ascontiguousarray = _given(np.ascontiguousarray, 1)
asfortranarray = _given(np.asfortranarray, 1)


@wraps(np.require)
def require(
    a: Operand, dtype: DTypeLike | None = None, requirements: Any = None, **settings: Any
) -> Operand:
    if not holds(a):
        return np.require(a, dtype, requirements, **settings)
    required = _given(lambda x, *_: np.require(x, None, requirements))
    return required(a, dtype)


@wraps(np.asarray_chkfinite)
def asarray_chkfinite(a: Operand, *args: Operand, **settings: Any) -> Operand:
    np.asarray_chkfinite(value(settled(a)))
    return asarray(a, *args, **settings)


def _at_least(function: Function) -> Function:
    @wraps(function)
    def at_least(*arys: Operand) -> Operand:
        return function(
            *(asarray(x) if isinstance(x, (list, tuple)) and holds(x) else x for x in arys)
        )

    return at_least


atleast_1d = _at_least(np.atleast_1d)
atleast_2d = _at_least(np.atleast_2d)
atleast_3d = _at_least(np.atleast_3d)


@wraps(np.copy)
def copy(a: Operand, *args: Operand, **settings: Any) -> Operand:
    if holds(a):
        return np.copy(asarray(a))
    return _new(np.copy(a, *args, **settings))


# --- of a shape ---


def _maker(function: Function) -> Function:
    @wraps(function)
    def make(*args: Operand, **settings: Any) -> Operand:
        return _new(function(*args, **settings))

    return make


zeros = _maker(np.zeros)
ones = _maker(np.ones)
eye = _maker(np.eye)
identity = _maker(np.identity)


@wraps(np.empty)
def empty(shape: Shape | int, dtype: DTypeLike = float, *args: Operand, **settings: Any) -> Operand:
    # What happens to lie in memory would be written into the variable that this may become.
    return _new((np.zeros if is_differentiating() else np.empty)(shape, dtype, *args, **settings))


@wraps(np.full)
def full(
    shape: Shape | int,
    fill_value: Operand,
    dtype: DTypeLike | None = None,
    *args: Operand,
    **settings: Any,
) -> Operand:
    if not holds(fill_value):
        return _new(np.full(shape, fill_value, dtype, *args, **settings))
    x = _typed(full, settled(asarray(fill_value)), dtype)
    shape = shape if isinstance(shape, (list, tuple)) else (shape,)
    return np.copy(np.broadcast_to(x, tuple(shape))) if shape else x


def _like(function: Function, make: Function) -> Function:
    @wraps(function)
    def like(
        a: Operand,
        dtype: DTypeLike | None = None,
        order: Any = "K",
        subok: bool = True,
        shape: Shape | int | None = None,
        **settings: Any,
    ) -> Operand:
        if not holds(a):
            result = function(a, dtype, order, subok, shape, **settings)
            return _new(result)
        a = asarray(a)
        return make(np.shape(a) if shape is None else shape, a.dtype if dtype is None else dtype)

    return like


zeros_like = _like(np.zeros_like, zeros)
ones_like = _like(np.ones_like, ones)
empty_like = _like(np.empty_like, empty)


@wraps(np.full_like)
def full_like(
    a: Operand,
    fill_value: Operand,
    dtype: DTypeLike | None = None,
    order: Any = "K",
    subok: bool = True,
    shape: Shape | int | None = None,
    **settings: Any,
) -> Operand:
    if not holds(a) and not holds(fill_value):
        return _new(np.full_like(a, fill_value, dtype, order, subok, shape, **settings))
    a = asarray(a)
    shape = np.shape(a) if shape is None else shape
    return full(shape, fill_value, a.dtype if dtype is None else dtype)


# --- joined ---


class _Joined:
    """`numpy.r_` and `numpy.c_` for variables too."""

    def __init__(self, plain: Any, axis: int, ndmin: int) -> None:
        self._plain, self._axis, self._ndmin = plain, axis, ndmin

    def __getitem__(self, key: Index) -> Operand:
        items = key if type(key) is tuple else (key,)
        if not any(map(holds, items)):
            return _new(self._plain[key])
        return np.concatenate([self._part(item) for item in items], self._axis)

    def _part(self, item: Operand) -> Operand:
        if isinstance(item, str):
            raise TypeError(
                f"np.r_: {item!r} is given with variables, but must be left out: use "
                "np.concatenate or np.stack!"
            )
        if isinstance(item, slice):
            item = np.r_[item]
        x = settled(asarray(item))
        if np.ndim(x) == 1 and self._ndmin == 2:  # a column
            return np.reshape(x, (-1, 1))
        return _with_axes(x, self._ndmin)

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __len__(self) -> int:
        return 0


r_ = _Joined(np.r_, 0, 1)
c_ = _Joined(np.c_, -1, 2)

for _name in __all__:
    if _name not in ("r_", "c_"):
        globals()[_name].__module__ = "varmat.numpy"  # where pickle looks for it
