"""What an ndarray offers: attributes and methods of the types of varmat, and the conversions that
they refuse.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core import dispatch
from varmat.plain_arrays import Flat, Length, is_sparse_product

FLOAT64 = np.dtype(np.float64)
# NumPy as its functions are here: they take our types, which its annotations do not know.
_numpy: Any = np


def _forward_to_numpy(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(np, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"Same as ``np.{name}(self, ...)``."
    return method


class ArrayMethods:
    """What `Var`, `VarMat` and `Dual` share: the attributes and methods of an ndarray, and
    refusals.
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __pandas_priority__ = 5000  # a DataFrame has 4000
    __array_ufunc__ = dispatch.array_ufunc
    __array_function__ = dispatch.array_function

    # Provided by each type.
    shape: Any
    _plain: Any
    __getitem__: Any
    __setitem__: Any

    dtype: Any = FLOAT64
    itemsize = 8

    if TYPE_CHECKING:  # set below, and from the table of elementwise operations
        from varmat.typing import anything

        def _set(self, *args: Any, **kwargs: Any) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = (
            __rtruediv__
        ) = anything
        __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = anything
        __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = _set
        __lt__ = __le__ = __ge__ = __gt__ = all = any = argmax = argmin = argsort = clip = (
            cumprod
        ) = cumsum = diagonal = dot = _set
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
    def T(self) -> Any:
        return np.transpose(self)

    @property
    def mT(self) -> Any:  # noqa: N802 - NumPy's name
        return np.matrix_transpose(self)

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> Any:
        return np.zeros(self.shape) if self.shape else 0.0

    @property
    def flat(self) -> Flat:
        return Flat(self)

    @flat.setter
    def flat(self, source: Any) -> None:
        self.flat[...] = source

    @property
    def flags(self) -> Any:
        # Of a view: what is set there changes nothing here.
        part = next(
            getattr(self, name) for name in ("_val", "_re", "val") if hasattr(type(self), name)
        )
        return (
            part.view().flags
            if isinstance(part, np.ndarray)
            else getattr(part, "flags", np.float64().flags)
        )

    def conj(self) -> Any:
        return self

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        return _numpy.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Any:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def flatten(self, order: str = "C") -> Any:
        return np.copy(_numpy.ravel(self, order=order))

    def copy(self, order: str = "C") -> Any:
        return np.copy(self)

    def astype(self, dtype: Any, *args: Any, copy: bool = True, **kwargs: Any) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return dispatch.constant(np.not_equal, (self, 0.0), {})
        if kind == "i" and hasattr(self, "_tape") and self._tape.watch is not None:
            return np.trunc(self)
        if kind in "iu":  # steps: constants, as comparisons are
            return np.asarray(self._plain).astype(dtype)[()]
        if kind == "c":
            return self + 0j
        if np.dtype(dtype) != FLOAT64:
            raise TypeError(
                f"astype: variables are float64 only, not {np.dtype(dtype)}; varmat.value(x) gives "
                "plain numbers"
            )
        return np.copy(self) if copy else self

    def tolist(self) -> Any:
        return [self[i].tolist() for i in range(self.shape[0])] if self.shape else self

    def item(self, *index: Any) -> Any:
        at: Any = index[0] if len(index) == 1 else index
        return (
            np.ravel(self)[at]
            if type(at) is not tuple
            else self[at]
            if at
            else np.reshape(self, ())
        )

    def compress(self, condition: Any, axis: Any = None) -> Any:
        return np.compress(condition, self, axis=axis)

    def fill(self, fill_value: Any) -> None:
        self[...] = fill_value

    def sort(
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> None:
        self[...] = np.sort(self, axis=axis, kind=kind, order=order, stable=stable)

    def partition(
        self, kth: Any, axis: int = -1, kind: Any = "introselect", order: Any = None
    ) -> None:
        self[...] = np.partition(self, kth, axis=axis, kind=kind, order=order)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        if is_sparse_product(frame):
            return np.empty((), object)
        raise TypeError(
            f"a {type(self).__name__} cannot become a plain array, its derivative would be lost: "
            f"{dispatch.ADVICE['array'](frame)}"
        )

    def _refuse_number(self) -> Any:
        advice = dispatch.ADVICE["number"](sys._getframe(1))
        raise TypeError(
            f"a {type(self).__name__} cannot become a plain number, its derivative would be lost: "
            f"{advice}"
        )

    __float__ = __int__ = __complex__ = __index__ = __trunc__ = _refuse_number

    def __hash__(self) -> int:
        raise TypeError(
            f"a {type(self).__name__} cannot be hashed, being equal to plain numbers; use "
            "varmat.value(x), or id(x)"
        )

    def __bool__(self) -> bool:
        return bool(self._plain)

    def __round__(self, ndigits: int | None = None) -> Any:
        return np.round(self, ndigits or 0)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"a {type(self).__name__} belongs to its tape and cannot be pickled; pickle "
            "varmat.value(x)"
        )

    def __format__(self, spec: str) -> str:
        return format(self._plain, spec) if spec else str(self)


for _name in [
    *(
        "all",
        "any",
        "argmax",
        "argmin",
        "argpartition",
        "argsort",
        "clip",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "max",
        "mean",
    ),
    *(
        "min",
        "nonzero",
        "prod",
        "ptp",
        "ravel",
        "repeat",
        "round",
        "searchsorted",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
    ),
    *("trace", "var"),
]:
    setattr(ArrayMethods, _name, _forward_to_numpy(_name))


def _comparison(compare: Any, ufunc: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        if hasattr(self, "_tape") and self._tape.watch is not None:
            return dispatch.constant(ufunc, (self, other), {})
        return compare(self._plain, dispatch.plain(other))

    return method


for _name, _ufunc in zip(("lt", "le", "eq", "ne", "ge", "gt"), dispatch.COMPARISONS, strict=True):
    setattr(ArrayMethods, f"__{_name}__", _comparison(getattr(operator, _name), _ufunc))


def is_foreign(x: Any) -> bool:
    """Whether `x` is of another library that may know what to do with a variable; what pandas has
    is data.
    """
    own = (ArrayMethods, np.ndarray, np.generic, dispatch.Standing)
    return (
        hasattr(x, "__array_ufunc__")
        and not isinstance(x, own)
        and not hasattr(x, "__pandas_priority__")
    )


class Container:
    """The sequence protocol of arrays."""

    __slots__ = ()
    shape: Any
    _plain: Any
    __getitem__: Any
    __len__: Any = Length()

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self._plain == dispatch.plain(item)))
