"""Arrays that are plain until a variable is written into them: what `varmat.numpy.zeros` makes
while something is differentiated.

``z = np.zeros(3)`` does not say whether variables will be written into it, nor which kind: of
reverse mode, of forward mode, or of one inside the other. A `Buffer` waits for the first. Until
then it is a plain array, with NumPy's arithmetic and without recording; from then on it represents
a variable of that kind, and its parts represent views of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from varmat.core.array_methods import FLOAT64, ArrayMethods
from varmat.core.dispatch import ComplexKind, Standing
from varmat.core.dual import Dual
from varmat.core.operation import as_operand, is_differentiable
from varmat.derivatives.structure import Arguments
from varmat.functions.arrays.shaping import read_only
from varmat.functions.arrays.writing import WRITERS
from varmat.numpy.parts import BYTES, Region, plain_part, taking
from varmat.plain_arrays import flat, is_basic, is_sparse_product
from varmat.typing import DTypeLike, Function, Index, Operand, Settings

__all__ = ["Buffer"]

_TWICE = "it writes into a part in which elements are several times; write into the whole array"
# Methods that write into the array.
_IN_PLACE = frozenset({"partition", "put", "setfield", "sort"})
# What may be written into a plain array without a question.
_NUMBERS = frozenset({float, int, bool, np.float64, np.int64})


def settled(x: Operand, of: Function = attrgetter("_settled")) -> Operand:
    """Replace buffers by their arrays or variables, or by another function of them, in tuples,
    lists and dicts.
    """
    kind = type(x)
    if kind is Buffer:
        return of(x)
    if kind is list or kind is tuple:
        return kind([settled(item, of) for item in x])
    if kind is dict:
        return {key: settled(item, of) for key, item in x.items()}
    return x


def waiting(result: Operand) -> Operand:
    """Make new arrays of floating-point numbers wait for variables."""
    if type(result) in (list, tuple):
        return type(result)(map(waiting, result))
    if type(result) is not np.ndarray or result.dtype.kind not in "fc":
        return result
    if result.ndim and result.flags.c_contiguous:
        return Buffer(result)
    # The place of a part is that in one piece of memory, which the whole stands for.
    inward = sorted(range(result.ndim), key=lambda axis: -abs(result.strides[axis]))
    full = result.transpose(inward)
    if not (full.flags.c_contiguous and result.flags.writeable):
        full = full.copy()
        result = full.transpose(np.argsort(inward))
    return part_of(Buffer(full.reshape(-1)), result)


class Buffer(np.lib.mixins.NDArrayOperatorsMixin, Standing):
    """A plain array that becomes a variable when one is written into it.

    Parameters
    ----------
    array : ndarray
        The plain values; nothing else writes into them.

    Notes
    -----
    Variables read its values when they meet it, and copy data that are changed later."""

    __slots__ = ("_array", "_how", "_parent", "_part", "_root", "_variable")
    __array_priority__ = 950.0
    flat = flat

    def __init__(
        self, array: np.ndarray, parent: Buffer | None = None, how: Function | None = None
    ) -> None:
        self._array, self._parent, self._how = array, parent, how
        self._root: Buffer = self if parent is None else parent._root
        # For the whole, the variable; for a part, the variable of the whole from which `_part` was
        # taken.
        self._variable: Operand = None
        self._part: Operand = None

    @property
    def _settled(self) -> Operand:
        """The plain array, or the variable: for a part the view of it."""
        variable = self._root._variable
        if variable is None:
            return self._array
        if self._parent is None:
            return variable
        if self._part is None or self._variable is not variable:
            chain, part = [], self
            while part._parent is not None and part._variable is not variable:
                chain.append(part)
                part = part._parent
            for x in reversed(chain):
                above: Operand = x._parent
                how: Any = x._how
                x._part = how(above._part if above._parent is not None else variable)
                if not x._array.flags.writeable:
                    read_only(x._part)
                x._variable = variable if x._array.ndim else None
        return self._part

    @property
    def _is_plain(self) -> bool:
        return self._root._variable is None

    @property
    def _has_places(self) -> bool:
        """Whether it is an element, or has elements several times."""
        return type(self._how) is Region and self._how.places is not None

    @property
    def _plain(self) -> Operand:
        x = self._settled
        return getattr(x, "_plain", x)

    def _check_writeable(self) -> None:
        if not self._array.flags.writeable:
            raise ValueError("assignment destination is read-only")

    def _receive(self, source: Operand) -> None:
        """Make this able to hold a variable, or what else is differentiable."""
        root = self._root
        self._check_writeable()
        if self._array.dtype.kind not in "fc":
            raise TypeError(BYTES)
        old, shape = root._variable, root._array.shape
        if old is None:
            if isinstance(source, ComplexKind) and self._array.dtype.kind != "c":
                raise TypeError(
                    "a ComplexVar cannot be written into an array of real numbers; make it with "
                    "dtype=complex"
                )
            root._variable = _filled(np.zeros_like(source, shape=shape), root._array)
        elif _is_beyond(source, old) and np.size(source):
            both = np.ravel(source)[0] + np.ravel(old)[0]
            root._variable = _filled(np.zeros_like(both, shape=shape), old)

    # --- parts ---

    def __getitem__(self, index: Index) -> Operand:
        if is_basic(index):
            part = self._array[index]
            if type(part) is np.ndarray:
                if part.ndim and not self._has_places:
                    return Buffer(part, self, itemgetter(index))
                return part_of(self._root, part)
            return part if self._is_plain else self._settled[index]
        index = settled(index)
        return waiting(self._array[index]) if self._is_plain else self._settled[index]

    def __setitem__(self, index: Index, source: Operand) -> None:
        if type(source) not in _NUMBERS:
            source = settled(source)
            if is_differentiable(source):
                source = as_operand(source, "the assigned value")
                self._receive(source)
            elif not self._is_plain:
                source = np.asarray(source)
        index = index if is_basic(index) else settled(index)
        if self._is_plain:
            self._array[index] = source
        elif self._has_places:
            self._check_writeable()
            how: Any = self._how
            how.write(self._root._variable, index, source)
        else:
            self._settled[index] = source

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Operand]:
        return (self[i] for i in range(len(self._array)))

    def __contains__(self, item: object) -> bool:
        return settled(item) in self._settled

    def fill(self, value: Operand) -> None:
        self[...] = value

    def dot(self, b: Operand, out: Operand = None) -> Operand:
        return np.dot(self, b, out)

    # --- NumPy's functions ---

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Operand, **settings: Any
    ) -> Operand:
        if method == "at":
            return self._at(ufunc, *inputs)
        if method == "__call__" and not settings:
            operands = [x._settled if type(x) is Buffer else x for x in inputs]
            if all(
                type(x) in _NUMBERS or (type(x) is np.ndarray and x.dtype is FLOAT64)
                for x in operands
            ):
                return waiting(ufunc(*operands))
        out = settings.pop("out", None)
        operands = [settled(x) for x in inputs]
        variables = [x for x in operands if is_differentiable(x)]
        if variables:
            operands = _separate(inputs, operands)
        if out is None:
            result = getattr(ufunc, method)(*operands, **settled(settings))
            return result if variables else waiting(result)
        for x in out:
            if variables and type(x) is Buffer:
                x._receive(
                    next(
                        (variable for variable in variables if isinstance(variable, Dual)),
                        variables[0],
                    )
                )
        if any(type(x) is Buffer and x._has_places and not x._is_plain for x in out):
            where = settings.pop("where", ...)
            result = getattr(ufunc, method)(*operands, **settled(settings))
            for x, part in zip(out, result if len(out) > 1 else (result,), strict=True):
                x[settled(where)] = part if where is ... else part[settled(where)]
        else:
            getattr(ufunc, method)(*operands, **settled(settings), out=settled(out))
        return out[0] if len(out) == 1 else out

    def _at(self, ufunc: np.ufunc, target: Operand, index: Index, *others: Operand) -> None:
        """Call ``ufunc.at``, which writes into its first operand."""
        others = _copied(others)
        for x in others:
            if is_differentiable(x) and type(target) is Buffer:
                target._receive(as_operand(x, "the second operand"))
        if type(target) is Buffer and target._has_places and not target._is_plain:
            raise TypeError(f"np.{ufunc.__name__}.at: {_TWICE}")
        ufunc.at(settled(target), settled(index), *others)

    def __array_function__(
        self, function: Function, types: object, args: Arguments, kwargs: Settings
    ) -> Operand:
        out = kwargs.get("out")
        plain_args, plain_kwargs = settled(args), settled(kwargs)
        has_variables = is_differentiable([*plain_args, *plain_kwargs.values()])
        if not has_variables:
            result = function(*plain_args, **plain_kwargs)
            return out if out is not None else _followed(result, _buffers((args, kwargs)))
        if function in WRITERS:
            return WRITERS[function](*args, **kwargs)
        if type(out) is Buffer:
            out[...] = function(*_copied(args), **{**_copied(kwargs), "out": None})
            return out
        result = function(*_copied(args), **_copied(kwargs))
        buffers = _buffers((args, kwargs))
        if type(result) in (list, tuple) and any(type(x) is np.ndarray for x in result):
            # some were made of copies of plain arrays, but may be views of these
            repeated = function(*plain_args, **plain_kwargs)
            result = type(result)(
                y if type(y) is np.ndarray else x for x, y in zip(result, repeated, strict=True)
            )
        return _followed(result, buffers, lambda: function(*_arrays(args), **_arrays(kwargs)))

    # --- other attributes of an array ---

    shape, ndim, size = (
        property(attrgetter(f"_array.{name}")) for name in ("shape", "ndim", "size")
    )
    dtype = property(attrgetter("_settled.dtype"))

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("_"):
            raise AttributeError(name)
        x = self._settled
        if name in ("base", "ctypes", "data"):
            raise AttributeError(f"a deferred array has no {name}")
        if name in _IN_PLACE and self._has_places and not self._is_plain:
            raise TypeError(f"{name}: {_TWICE}")
        attribute = getattr(x, name)
        if not callable(attribute):
            return _followed(attribute, [self], lambda: getattr(self._array, name))

        def method(*args: Operand, **kwargs: object) -> Operand:
            if type(x) is np.ndarray and is_differentiable(settled([*args, *kwargs.values()])):
                return getattr(np, name)(self, *args, **kwargs)
            result = attribute(*settled(args), **settled(kwargs))
            return _followed(
                result,
                _buffers((self, args, kwargs)),
                lambda: getattr(self._array, name)(*_arrays(args), **_arrays(kwargs)),
            )

        return method

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Operand:
        x = self._settled
        if type(x) is not np.ndarray:
            # Products of sparse matrices leave arrays of objects to the other operand.
            return (
                np.empty((), object)
                if is_sparse_product(sys._getframe(1))
                else np.asarray(x, dtype)
            )
        if copy is False:
            raise ValueError("a deferred array can only be copied")
        return np.array(x, dtype)

    def __copy__(self) -> Operand:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Operand:
        return self.copy()


def _delegated(name: str) -> Function:
    return lambda self, *args: getattr(self._settled, name)(*args)


for _name in ("float", "int", "complex", "bool", "reduce", "repr", "str", "format"):
    setattr(Buffer, f"__{_name}__", _delegated(f"__{_name}__"))


def _is_beyond(source: object, old: object) -> bool:
    """Tell whether a dual, or a variable, is assigned to something that cannot contain it."""
    if not isinstance(old, Dual):
        return isinstance(source, Dual)
    value = source.val if isinstance(source, Dual) else source
    return type(old.val) is np.ndarray and isinstance(value, ArrayMethods)


def _filled(variable: Operand, values: Operand) -> Operand:
    """Fill a variable of zeros with the values of an array, or of another variable."""
    if type(values) is not np.ndarray:
        variable[...] = values
        return variable
    if values.dtype.kind == "c" and not isinstance(variable, ComplexKind):
        variable = variable + 0j
    if values.any() or np.signbit(values.real).any():
        variable[...] = values.copy()
    return variable


def _separate(arguments: Operand, operands: list[Operand]) -> list[Operand]:
    """Copy plain buffers that meet variables, because the tape holds data by reference and they may
    be changed.
    """
    return [
        y.copy() if type(x) is Buffer and type(y) is np.ndarray else y
        for x, y in zip(arguments, operands, strict=True)
    ]


def _copied(x: Operand) -> Operand:
    """Apply `settled`, with copies of plain arrays."""

    def copy(buffer: Buffer) -> Operand:
        y = buffer._settled
        return y.copy() if type(y) is np.ndarray else y

    return settled(x, copy)


def _buffers(x: object) -> list[Buffer]:
    """List the buffers in nested containers."""
    if type(x) is Buffer:
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return (
        [buffer for item in x for buffer in _buffers(item)] if isinstance(x, (list, tuple)) else []
    )


def part_of(root: Buffer, part: np.ndarray) -> Buffer:
    """Make the buffer of a plain array that lies in the memory of a whole one."""
    return Buffer(part, root, taking(root._array, part))


def _arrays(x: Operand) -> Operand:
    """Apply `settled`, with the arrays of buffers, whose values may be old."""
    return settled(x, attrgetter("_array"))


def _followed(result: Operand, buffers: list[Buffer], of_arrays: Function | None = None) -> Operand:
    """Replace views in the result of a function by parts of buffers, and new arrays by buffers.

    `of_arrays` computes the same of arrays, because a variable has no views of a single element.
    """
    repeated = None
    if of_arrays is not None and any(
        buffer.size == 1 and not buffer._is_plain for buffer in buffers
    ):
        with np.errstate(all="ignore"):
            repeated = of_arrays()
    return _views(result, repeated, buffers)


def _views(result: Operand, repeated: Operand, buffers: list[Buffer]) -> Operand:
    kind = type(result)
    if kind is list or kind is tuple:
        others = repeated if type(repeated) is kind else [None] * len(result)
        return kind(_views(x, y, buffers) for x, y in zip(result, others, strict=True))
    for x in (repeated, result):
        if type(x) is np.ndarray:
            for buffer in buffers:
                if x is buffer._array:
                    return buffer
                if np.may_share_memory(x, buffer._root._array):
                    return part_of(buffer._root, x)
    if isinstance(result, ArrayMethods) and result.shape:
        for root in {id(item._root): item._root for item in buffers}.values():
            part = None if root._is_plain else plain_part(root._array, root._variable, result)
            if part is not None:
                return part_of(root, part)
    return waiting(result)
