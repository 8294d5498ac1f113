"""The attributes and methods of an ndarray, for the types of varmat, and conversions that raise."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from varmat.core import dispatch
from varmat.core.errors import lost_derivative
from varmat.core.tape import current_tape
from varmat.plain_arrays import Length, flat, is_sparse_product

if TYPE_CHECKING:
    from types import FrameType, ModuleType

    from numpy.typing import DTypeLike

    from varmat.typing import Function, Index, Operand, Plain, Setting, Shape

FLOAT64 = np.dtype(np.float64)
# NumPy's functions take our types; its annotations do not know that.
_numpy: ModuleType = np


def _forward_to_numpy(name: str) -> Operand:
    def method(self: object, *args: object, **kwargs: object) -> Operand:
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Same as ``np.{name}(self, ...)``."
    return method


# NumPy's, because Python's `~True` is -2.
_TRUTHS = (np.False_, np.True_)


def _comparison(compare: Function, ufunc: np.ufunc) -> Function:
    def method(self: Operand, other: Operand) -> Operand:
        if dispatch.is_watched(self):
            return dispatch.constant(ufunc, (self, other), {})
        x, y = self._plain, getattr(other, "_plain", other)
        if type(x) is float:
            if type(y) is float or type(y) is int:
                return _TRUTHS[compare(x, y)]
            x = np.float64(x)
        return compare(x, dispatch.plain(y))

    return method


def _refuse(x: object, kind: str, frame: FrameType, *, is_lost: bool = True) -> NoReturn:
    text = f"a {type(x).__name__} cannot become a plain {kind}, its derivative would be lost: "
    error = lost_derivative(text + dispatch.HOOKS[kind](frame))
    # Libraries catch this to try something else, as operators do.
    if is_lost and "-packages" not in frame.f_code.co_filename:
        current_tape().lost = error
    raise error


class ArrayMethods:
    """The shared part of `Var`, `VarMat` and `Dual`: the attributes and methods of an ndarray, and
    conversions that raise.
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # a DataFrame has 4000
    __array_ufunc__ = dispatch.array_ufunc
    __array_function__ = dispatch.array_function

    # Provided by each type.
    shape: Any
    _plain: Plain
    __getitem__: Function
    __setitem__: Function

    dtype: np.dtype = FLOAT64
    flat = flat
    itemsize = 8
    device = "cpu"

    if TYPE_CHECKING:  # set below, and from the table of elementwise operations
        from varmat.typing import anything

        def _set(self, *args: Setting, **kwargs: Setting) -> Operand: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
            __rtruediv__
        ) = anything
        __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = anything
        __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = _set
        all = any = argmax = argmin = argsort = clip = cumprod = cumsum = diagonal = dot = _set
        max = mean = min = nonzero = prod = ptp = ravel = repeat = round = searchsorted = (
            squeeze
        ) = std = sum = swapaxes = _set
        take = trace = var = _set

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=int))

    @property
    def nbytes(self) -> int:
        return 8 * self.size

    @property
    def T(self) -> Operand:
        return np.transpose(self)

    @property
    def mT(self) -> Operand:  # noqa: N802 - NumPy's name
        return np.matrix_transpose(self)

    @property
    def real(self) -> Operand:
        return self

    @property
    def imag(self) -> Operand:
        return np.zeros(self.shape) if self.shape else 0.0

    @property
    def flags(self) -> Operand:
        # Those are the flags of a view, so that setting one changes nothing here.
        names = ("_val", "_re", "val")
        part = next(getattr(self, name) for name in names if hasattr(type(self), name))
        if isinstance(part, np.ndarray):
            return part.view().flags
        return getattr(part, "flags", np.float64().flags)

    def conj(self) -> Operand:
        return self

    conjugate = conj

    def reshape(self, *shape: int | Shape, order: str = "C") -> Operand:
        return _numpy.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: int | Sequence[int] | None) -> Operand:
        return _numpy.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self, order: str = "C") -> Operand:
        return np.copy(_numpy.ravel(self, order=order))

    def copy(self, order: str = "C") -> Operand:
        return np.copy(self)

    def astype(
        self, dtype: DTypeLike | None, *args: object, copy: bool = True, **kwargs: object
    ) -> Operand:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return dispatch.constant(np.not_equal, (self, 0.0), {})
        if kind in "iu":  # a step function: its derivative is zero, so the result is a constant
            is_recorded = kind == "i" and dispatch.is_watched(self)
            return np.trunc(self) if is_recorded else np.asarray(self._plain).astype(dtype)[()]
        if kind == "c":
            return self + 0j
        if np.dtype(dtype) != FLOAT64:
            raise TypeError(
                f"astype: variables are float64 only, not {np.dtype(dtype)}; varmat.value(x) gives "
                "plain numbers"
            )
        return np.copy(self) if copy else self

    def view(self, dtype: DTypeLike | None = None) -> Operand:
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise TypeError(
                f"view: dtype is {np.dtype(dtype)}, but must be left out: the bytes of a variable "
                "cannot be read as another type; use x.astype(dtype)"
            )
        return self[...] if self.shape else self

    def tolist(self) -> Operand:
        return [self[i].tolist() for i in range(self.shape[0])] if self.shape else self

    def item(self, *index: object) -> Operand:
        at: Index = index[0] if len(index) == 1 else index
        if type(at) is not tuple:
            return np.ravel(self)[at]
        return self[at] if at else np.reshape(self, ())

    def compress(self, condition: Operand, axis: int | None = None) -> Operand:
        return np.compress(condition, self, axis=axis)

    def fill(self, fill_value: object) -> None:
        self[...] = fill_value

    def sort(self, *args: Setting, **kwargs: Setting) -> None:
        self[...] = np.sort(self, *args, **kwargs)

    def partition(self, *args: Setting, **kwargs: Setting) -> None:
        self[...] = np.partition(self, *args, **kwargs)

    def __array__(self, *args: object, **kwargs: object) -> Operand:
        frame = sys._getframe(1)
        if is_sparse_product(frame):
            return np.empty((), object)
        _refuse(self, "array", frame)

    def __index__(self) -> int:
        _refuse(self, "number", sys._getframe(1), is_lost=False)

    def _refuse_number(self) -> Operand:
        # NumPy raises for arrays of several elements too, so code that catches this acts the same.
        _refuse(self, "number", sys._getframe(1), is_lost=self.shape in ((), (1,)))

    __float__ = __int__ = __complex__ = __trunc__ = _refuse_number

    __lt__ = _comparison(operator.lt, np.less)
    __le__ = _comparison(operator.le, np.less_equal)
    __eq__ = _comparison(operator.eq, np.equal)
    __ne__ = _comparison(operator.ne, np.not_equal)
    __ge__ = _comparison(operator.ge, np.greater_equal)
    __gt__ = _comparison(operator.gt, np.greater)

    def __hash__(self) -> int:
        raise TypeError(
            f"a {type(self).__name__} cannot be hashed, because it can equal plain numbers; use "
            "varmat.value(x), or id(x)"
        )

    def __bool__(self) -> bool:
        return bool(self._plain)

    def __round__(self, ndigits: int | None = None) -> Operand:
        return np.round(self, ndigits or 0)

    def __divmod__(self, other: object) -> tuple[Operand, Operand]:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> tuple[Operand, Operand]:
        return other // self, other % self

    def __copy__(self) -> Operand:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Operand:
        return self.copy()

    def __reduce__(self) -> Operand:
        raise TypeError(
            f"a {type(self).__name__} belongs to its tape and cannot be pickled; pickle "
            "varmat.value(x)"
        )

    def __format__(self, spec: str) -> str:
        return format(self._plain, spec) if spec else str(self)


for _name in [
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "clip", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel",
    "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "var",
]:  # fmt: skip
    setattr(ArrayMethods, _name, _forward_to_numpy(_name))


def is_foreign(x: object) -> bool:
    """Return whether `x` is from another library that may know what to do with a variable. Objects
    of pandas are data, and symbols may be the values of duals.
    """
    own = (ArrayMethods, np.ndarray, np.generic, dispatch.Standing)
    return (
        hasattr(x, "__array_ufunc__")
        and not isinstance(x, own)
        and not (hasattr(x, "__pandas_priority__") or hasattr(x, "apply_row"))
    )


class Container:
    """The sequence protocol of arrays."""

    __slots__ = ()
    shape: Any
    _plain: Plain
    __getitem__: Function
    __len__: Any = Length()

    def __iter__(self) -> Iterator[Operand]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, item: object) -> bool:
        return bool(np.any(self._plain == dispatch.plain(item)))
