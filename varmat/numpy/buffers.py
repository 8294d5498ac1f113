"""Arrays that are plain until a variable is written into them: what `varmat.numpy.zeros` makes
while something is differentiated.

Whoever writes ``z = np.zeros(3)`` does not say whether variables will come into it, nor of which
kind: of a reverse pass, of one in forward mode, of one inside the other. A `Buffer` waits for the
first. Until then it is a plain array, whose arithmetic NumPy does and of which nothing is recorded;
from then on it stands for a variable of that kind, and its parts for views of that."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter, itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.array_methods import FLOAT64, ArrayMethods
from varmat.core.dispatch import ComplexKind, Standing
from varmat.core.dual import Dual
from varmat.core.operation import as_operand, is_differentiable
from varmat.plain_arrays import is_basic, is_sparse_product

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from varmat.derivatives.structure import Arguments
    from varmat.typing import Function, Index, Operand, Settings

__all__ = ["Buffer"]

# What may be written into a plain array without a question.
_NUMBERS = frozenset({float, int, bool, np.float64, np.int64})
# Methods, attributes and functions of NumPy of which the result is a view, if that of plain arrays
# is one.
_METHODS = frozenset({"diagonal", "ravel", "reshape", "squeeze", "swapaxes", "transpose"})
_ATTRIBUTES = frozenset({"T", "mT", "real"})
_VIEWS = frozenset(
    getattr(np, name)
    for name in (
        *(
            "atleast_1d",
            "atleast_2d",
            "atleast_3d",
            "broadcast_to",
            "diagonal",
            "expand_dims",
            "flip",
            "fliplr",
            "flipud",
        ),
        *(
            "matrix_transpose",
            "moveaxis",
            "permute_dims",
            "ravel",
            "real",
            "reshape",
            "rollaxis",
            "rot90",
            "squeeze",
        ),
        *("swapaxes", "transpose"),
    )
)
# Those that write into their first argument.
_WRITERS = frozenset({np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask})


def settled(x: Operand) -> Operand:
    """What stands for `x` now: for a buffer its array or its variable, through tuples, lists and
    dicts.
    """
    kind = type(x)
    if kind is Buffer:
        return x._settled
    if kind is list or kind is tuple:
        return kind(map(settled, x))
    if kind is dict:
        return {key: settled(item) for key, item in x.items()}
    return x


def made(array: Operand) -> Operand:
    """A new array as one that waits for variables, if it is of floating-point numbers."""
    if type(array) is np.ndarray and array.ndim and array.dtype.kind in "fc":
        return Buffer(array)
    return tuple(map(made, array)) if type(array) is tuple else array


class Buffer(np.lib.mixins.NDArrayOperatorsMixin, Standing):
    """A plain array that becomes a variable when one is written into it.

    Parameters
    ----------
    array : ndarray
        The plain values; nobody else writes into them.

    Notes
    -----
    Variables read the values it has when they meet it: of data that are changed later they have a
    copy."""

    __slots__ = ("_array", "_how", "_parent", "_part", "_root", "_variable")
    __array_priority__ = 950.0

    def __init__(
        self, array: np.ndarray, parent: Buffer | None = None, how: Function | None = None
    ) -> None:
        self._array, self._parent, self._how = array, parent, how
        self._root: Buffer = self if parent is None else parent._root
        # Of the whole, the variable; of a part, the variable of the whole of which `_part` was
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
        chain, part = [], self
        while part._parent is not None and part._variable is not variable:
            chain.append(part)
            part = part._parent
        for each in reversed(chain):
            above: Operand = each._parent
            how: Any = each._how
            each._part = how(above._part if above._parent is not None else variable)
            each._variable = variable
        return self._part

    @property
    def _is_plain(self) -> bool:
        return self._root._variable is None

    @property
    def _plain(self) -> Operand:
        x = self._settled
        return getattr(x, "_plain", x)

    def _receive(self, source: Operand) -> None:
        """Make this able to hold a variable, or what else is differentiable."""
        root = self._root
        if not self._array.flags.writeable:
            raise ValueError("assignment destination is read-only")
        old, shape = root._variable, root._array.shape
        if old is None:
            if isinstance(source, ComplexKind) and root._array.dtype.kind != "c":
                raise TypeError(
                    "a ComplexVar cannot be written into an array of real numbers; make it with "
                    "dtype=complex"
                )
            root._variable = _filled(np.zeros_like(source, shape=shape), root._array)
        elif _is_beyond(source, old) and np.size(source):
            both = np.ravel(source)[0] + np.ravel(old)[0]
            root._variable = _filled(np.zeros_like(both, shape=shape), old)

    def _taken(self, how: Function) -> Operand:
        """What a function that may give a view gives of this."""
        array = how(self._array)
        if type(array) is np.ndarray and array.ndim and np.may_share_memory(array, self._array):
            return Buffer(array, self, how)
        return made(array) if self._is_plain else how(self._settled)

    # --- parts ---

    def __getitem__(self, index: Index) -> Operand:
        if is_basic(index):
            part = self._array[index]
            if type(part) is np.ndarray and part.ndim:
                return Buffer(part, self, itemgetter(index))
            return part if self._is_plain else self._settled[index]
        index = settled(index)
        return made(self._array[index]) if self._is_plain else self._settled[index]

    def __setitem__(self, index: Index, source: Operand) -> None:
        if type(source) not in _NUMBERS:
            source = settled(source)
            if is_differentiable(source):
                source = as_operand(source, "the assigned value")
                self._receive(source)
            elif not self._is_plain:
                source = np.asarray(source)
        self._settled[index if is_basic(index) else settled(index)] = source

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Operand]:
        return (self[i] for i in range(len(self._array)))

    def __contains__(self, item: Operand) -> bool:
        return settled(item) in self._settled

    @property
    def flat(self) -> Operand:
        return self.reshape(-1)

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
                return made(ufunc(*operands))
        out = settings.pop("out", None)
        operands = [settled(x) for x in inputs]
        variables = [x for x in operands if is_differentiable(x)]
        if variables:
            operands = _separate(inputs, operands)
        if out is None:
            result = getattr(ufunc, method)(*operands, **settled(settings))
            return result if variables else made(result)
        for x in out:
            if variables and type(x) is Buffer:
                x._receive(
                    next((each for each in variables if isinstance(each, Dual)), variables[0])
                )
        getattr(ufunc, method)(*operands, **settled(settings), out=settled(out))
        return out[0] if len(out) == 1 else out

    def _at(self, ufunc: np.ufunc, target: Operand, index: Index, *others: Operand) -> None:
        """``ufunc.at``, which writes into its first operand."""
        others = _copied(others)
        for each in others:
            if is_differentiable(each) and type(target) is Buffer:
                target._receive(as_operand(each, "the second operand"))
        ufunc.at(settled(target), settled(index), *others)

    def __array_function__(
        self, function: Function, types: object, args: Arguments, kwargs: Settings
    ) -> Operand:
        if function in _VIEWS and args and args[0] is self and type(args) is tuple:
            others, named = settled(args[1:]), settled(kwargs)
            return self._taken(lambda a: function(a, *others, **named))
        if function in _WRITERS:
            return self._written(function, args, kwargs)
        out = kwargs.get("out")
        plain_args, plain_kwargs = settled(args), settled(kwargs)
        held = is_differentiable([*plain_args, *plain_kwargs.values()])
        if held:
            if type(out) is Buffer:
                result = function(*_copied(args), **{**_copied(kwargs), "out": None})
                out[...] = result
                return out
            return function(*_copied(args), **_copied(kwargs))
        result = function(*plain_args, **plain_kwargs)
        return out if out is not None else _owned(result, self._array)

    def _written(self, function: Function, args: Arguments, kwargs: Settings) -> Operand:
        """A function that writes into its first argument."""
        first = args[0] if args else next(iter(kwargs.values()))
        others = settled([*args, *kwargs.values()])
        variables = [x for x in others if is_differentiable(x)]
        if variables and type(first) is Buffer:
            first._receive(as_operand(variables[-1], "the assigned value"))
        return function(*settled(args), **settled(kwargs))

    # --- what an array has besides ---

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def dtype(self) -> Any:
        return self._settled.dtype

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _ATTRIBUTES:
            return self._taken(attrgetter(name))
        x = self._settled
        attribute = getattr(x, name)
        if not callable(attribute):
            return _owned(attribute, self._array)
        if name in _METHODS:
            return lambda *args, **kwargs: self._taken(methodcaller(name, *args, **kwargs))
        if type(x) is not np.ndarray:
            return lambda *args, **kwargs: attribute(*settled(args), **settled(kwargs))

        def method(*args: Operand, **kwargs: object) -> Operand:
            if is_differentiable(settled([*args, *kwargs.values()])):
                return getattr(np, name)(self, *args, **kwargs)
            return _owned(attribute(*settled(args), **settled(kwargs)), x)

        return method

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Operand:
        x = self._settled
        if type(x) is not np.ndarray:
            # The products of sparse matrices leave to the other side what is an array of objects.
            return (
                np.empty((), object)
                if is_sparse_product(sys._getframe(1))
                else np.asarray(x, dtype)
            )
        return np.array(x, dtype) if copy is not False else np.asarray(x, dtype)

    def __float__(self) -> float:
        return float(self._settled)

    def __int__(self) -> int:
        return int(self._settled)

    def __complex__(self) -> complex:
        return complex(self._settled)

    def __bool__(self) -> bool:
        return bool(self._settled)

    def __copy__(self) -> Operand:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Operand:
        return self.copy()

    def __reduce__(self) -> Any:
        return self._settled.__reduce__()

    def __repr__(self) -> str:
        return repr(self._settled)

    def __str__(self) -> str:
        return str(self._settled)

    def __format__(self, spec: str) -> str:
        return format(self._settled, spec)


def _is_beyond(source: Operand, old: Operand) -> bool:
    """Whether a dual, or a variable, comes after something that can hold none."""
    if not isinstance(old, Dual):
        return isinstance(source, Dual)
    value = source.val if isinstance(source, Dual) else source
    return type(old.val) is np.ndarray and isinstance(value, ArrayMethods)


def _filled(variable: Operand, values: Operand) -> Operand:
    """A variable of zeros with the values of an array, or of another variable."""
    if type(values) is not np.ndarray:
        variable[...] = values
        return variable
    if values.dtype.kind == "c" and not isinstance(variable, ComplexKind):
        variable = variable + 0j
    if values.any() or np.signbit(values.real).any():
        variable[...] = values.copy()
    return variable


def _separate(given: Operand, operands: list[Operand]) -> list[Operand]:
    """Operands that meet variables: plain buffers are copied, for the tape holds data by reference,
    and they may be changed.
    """
    return [
        y.copy() if type(x) is Buffer and type(y) is np.ndarray else y
        for x, y in zip(given, operands, strict=True)
    ]


def _copied(x: Operand) -> Operand:
    """As `settled`, with copies of plain arrays."""
    kind = type(x)
    if kind is Buffer:
        y = x._settled
        return y.copy() if type(y) is np.ndarray else y
    if kind is list or kind is tuple:
        return kind(map(_copied, x))
    if kind is dict:
        return {key: _copied(item) for key, item in x.items()}
    return x


def _owned(result: Operand, array: np.ndarray) -> Operand:
    """What a function of plain arrays gave: an array that waits for variables, or one into which
    nobody can write at all.
    """
    if type(result) in (list, tuple):
        return type(result)([_owned(each, array) for each in result])
    if type(result) is np.ndarray and np.may_share_memory(result, array):
        result = result.view()
        # a variable that was written into it would not arrive in the whole
        result.flags.writeable = False
        return result
    return made(result)
