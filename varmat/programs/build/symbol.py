"""Symbols: they stand for values of a program that is being made.

A function of arrays is traced by running it once on symbols, which add steps to the program instead
of computing. A symbol has no numbers to look at. A function that looks at them raises
`UntraceableError`, and is then called from Python at every run. Partials of the elementwise table,
terms of densities, domains, and the value functions and reverse rules of structured operations all
become steps in this one way.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from varmat.core.array_methods import ArrayMethods
from varmat.core.dispatch import COMPARISONS
from varmat.core.operation import Operation, Saved
from varmat.plain_arrays import is_basic
from varmat.programs.build.builder import Builder
from varmat.programs.build.contractions import contracted
from varmat.programs.ir.program import BOOL, FLOAT, Value
from varmat.programs.kernels.matrices import (
    CHOLESKY,
    DETERMINANT,
    EIGH,
    INVERSE,
    LOG_DETERMINANT,
    SOLVE,
    SOLVE_ONE,
)
from varmat.programs.record.conditions import OF_TRUTHS

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from varmat.programs.ir.kernel import Kernel
    from varmat.typing import Axes, Axis, Function, Index, Linear, Operand, Setting, Settings, Shape

_TESTS = frozenset({np.isfinite, np.isnan, np.isinf, np.signbit})


class UntraceableError(Exception):
    """A function requires of a symbol what only numbers have."""


def is_symbol(x: object) -> bool:
    """Return whether a rule is run on symbols, for a program."""
    return type(x) is Symbol


def is_refusal(error: Exception) -> bool:
    """Return whether a function looked at numbers of a symbol. NumPy raises another error, with
    ours as the cause, where a symbol is written into an array.
    """
    return isinstance(error, UntraceableError) or isinstance(error.__cause__, UntraceableError)


def refuse(*_: object, **__: object) -> NoReturn:
    raise UntraceableError


def _reduction(ufunc: np.ufunc) -> Callable[..., Symbol]:
    def method(
        self: Symbol,
        axis: Axis = None,
        *,
        dtype: object = None,
        out: object = None,
        keepdims: bool = False,
    ) -> Symbol:
        return reduced(self, ufunc, axis, keepdims) if out is None else refuse()

    return method


class Symbol(NDArrayOperatorsMixin):
    """Represents a value of the program that is being made, with those methods of an ndarray that
    need only shapes. NumPy's mixin makes each operator a call of the ufunc behind it.
    """

    __slots__ = ("_has_parts", "_is_part", "builder", "value")
    __array_priority__ = 1000.0
    # A symbol has no derivative, and is its own plain value.
    _tape = None
    _plain = property(lambda self: self)

    def __init__(self, builder: Builder, value: Value, is_part: bool = False) -> None:
        self.builder, self.value = builder, value
        # An assignment to an array shows in its views. Between symbols it would not, so nothing is
        # assigned to a symbol with views, or that is one.
        self._is_part, self._has_parts = is_part, False

    # --- what an array is ---

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: len(self.value.shape))
    size = property(lambda self: self.value.size)
    dtype = property(lambda self: self.value.dtype)
    strides = property(lambda self: self.value.strides)
    T = property(lambda self: self.part(self.builder.transposed(self.value)))

    @property
    def mT(self) -> Symbol:  # noqa: N802 - NumPy's name
        axes = list(range(self.ndim))
        axes[-2:] = axes[:-3:-1]
        return self.part(self.builder.transposed(self.value, axes))

    def of(self, value: Value) -> Symbol:
        return Symbol(self.builder, value)

    def part(self, value: Value) -> Symbol:
        """Make a symbol that looks into the memory of this one."""
        self._has_parts = True
        return Symbol(self.builder, value, True)

    def viewed(self, how: Linear) -> Symbol:
        """Make a view of this symbol."""
        return self.part(self.builder.view(self.value, how))

    def become(self, value: Value) -> Symbol:
        """Replace the value from here on, as in an array that is written into."""
        if self._is_part or self._has_parts or value.shape != self.shape:
            refuse()
        self.value = value
        return self

    def __len__(self) -> int:
        return self.shape[0] if self.shape else refuse()  # type: ignore[no-any-return]

    def __bool__(self) -> bool:
        if self.builder.asked is None:
            refuse()
        self.builder.asked.append(self.builder.truth(self.value))
        return True

    __float__ = __int__ = __index__ = __array__ = __contains__ = refuse
    tolist = item = refuse
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Operand:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse()

    def __iter__(self) -> Iterator[Symbol]:
        return (self[i] for i in range(len(self)))

    def apply_operation(
        self, operation: Operation, operands: Sequence[Operand], settings: Settings
    ) -> Operand:
        """Trace the value of an operation."""
        value = operation.function(*operands, **settings)
        return value.value if type(value) is Saved else value

    # --- parts ---

    def __getitem__(self, index: object) -> Symbol:
        builder, x = self.builder, self.value
        if is_basic(index):
            return self.part(part_of(builder, x, index))
        return self.of(builder.gather(x, self._places(index)))

    def __setitem__(self, index: object, source: object) -> None:
        source = lift(self.builder, source)
        if self.dtype == BOOL != source.dtype:
            refuse()
        self.become(_replaced(self.builder, self.value, self._places(index), source))

    def _places(self, index: Index) -> np.ndarray:
        """Return the indices of a part in the flattened array."""
        if any(isinstance(i, Symbol) for i in (index if isinstance(index, tuple) else (index,))):
            refuse()
        return np.asarray(np.arange(self.size).reshape(self.shape)[index])

    def reshape(self, *shape: int | Sequence[int], order: str = "C") -> Symbol:
        if order != "C":
            refuse()
        result: Shape = np.empty(self.shape, bool).reshape(*shape).shape  # type: ignore[arg-type]
        return self.part(self.builder.reshaped(self.value, result))

    def ravel(self, order: str = "C") -> Symbol:
        return self.reshape(-1)

    def transpose(self, *axes: int | Sequence[int] | None) -> Symbol:
        flat: list[int] = [] if axes in ((), (None,)) else np.hstack(axes).tolist()  # type: ignore[arg-type]
        order = [a % self.ndim for a in flat] if flat else None
        return self.part(self.builder.transposed(self.value, order))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbol:
        return self.viewed(lambda a: np.diagonal(a, offset, axis1, axis2))

    def copy(self, order: str = "C") -> Symbol:
        return self.of(self.value)

    def astype(self, dtype: DTypeLike | None, copy: bool = True) -> Symbol:
        return self.of(self.builder.number(self.value)) if np.dtype(dtype) == FLOAT else refuse()

    # --- sums and products ---

    sum, prod, max, min = map(_reduction, (np.add, np.multiply, np.maximum, np.minimum))

    def all(self, axis: Axis = None, keepdims: bool = False) -> Symbol:
        return reduced(self, np.logical_and, axis, keepdims)

    def require(self) -> bool:
        """End the run where this condition does not hold for all elements."""
        self.builder.guard(self.builder.truth(self.value))
        return True

    def any(self) -> bool:
        return self.builder.in_formula or refuse()

    def dot(self, other: Operand, out: object = None) -> Symbol:
        if out is not None or np.ndim(other) not in (1, 2) or self.ndim not in (1, 2):
            refuse()
        return self @ other  # type: ignore[no-any-return]

    # --- protocols ---

    def __array_ufunc__(
        self,
        ufunc: np.ufunc,
        method: str,
        *inputs: Operand,
        out: Operand = None,
        **settings: Setting,
    ) -> Operand:
        if any(isinstance(x, ArrayMethods) for x in inputs):  # duals over symbols answer
            return NotImplemented
        if method == "reduce" and not settings.keys() - {"axis", "keepdims", "dtype"} and not out:
            axis = inputs[1] if len(inputs) > 1 else settings.get("axis", 0)
            return reduced(inputs[0], ufunc, axis, settings.get("keepdims", False))
        is_sequence = method == "accumulate" and is_traced(ufunc)
        if is_sequence and not settings.keys() - {"axis"} and not out:
            value = self.builder.number(self.value)
            if self.ndim:
                value = self.builder.accumulate(ufunc, value, settings.get("axis", 0))
            return self.of(value)
        if settings or (method != "__call__" and (method != "outer" or out)):
            refuse()  # before the operands are values: `at` has indices
        operands = [lift(self.builder, x) for x in inputs]
        if method == "outer":
            x, y = operands
            operands[0] = self.builder.reshaped(x, (*x.shape, *(1,) * len(y.shape)))
        result = self.of(apply_ufunc(self.builder, ufunc, operands))
        if out is None:
            return result
        (target,) = out
        return target.become(result.value) if isinstance(target, Symbol) else refuse()

    def __array_function__(
        self, function: Function, types: Sequence[type], args: Sequence[object], kwargs: Settings
    ) -> Operand:
        if any(issubclass(kind, ArrayMethods) for kind in types):  # as above
            return NotImplemented
        answer = ANSWERS.get(function, refuse)
        try:
            return answer(*args, **kwargs)
        except (TypeError, IndexError, ZeroDivisionError):  # arguments that only NumPy takes
            refuse()


def lift(builder: Builder, x: object) -> Value:
    """Convert anything to a value of the program."""
    if isinstance(x, Symbol):
        return x.value
    if isinstance(x, (list, tuple)):
        return stacked([Symbol(builder, lift(builder, item)) for item in x]).value  # type: ignore[no-any-return]
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        refuse()
    return builder.constant(x if type(x) is np.ndarray else array)


def _replaced(builder: Builder, before: Value, indices: np.ndarray, source: Value) -> Value:
    """Replace the elements of an array at some indices by something that broadcasts to the shape of
    `indices`. If an element is named several times, the last one stays.
    """
    while len(source.shape) > indices.ndim:  # NumPy drops leading axes of length one
        source = builder.reshaped(source, source.shape[1:])
    if not indices.size:
        return before
    written, order = np.unique(indices.reshape(-1)[::-1], return_index=True)
    chosen, changed = np.zeros(before.shape, np.int64), np.zeros(before.shape, bool)
    chosen.reshape(-1)[written] = indices.size - 1 - order
    changed.reshape(-1)[written] = True
    if source.shape:
        source = builder.gather(builder.broadcast(source, indices.shape), chosen)
    return builder.where(builder.constant(changed), source, before)


def part_of(builder: Builder, x: Value, index: object) -> Value:
    """Make a view by a basic index, also of one element."""
    full = index if isinstance(index, tuple) else (index,)
    # With an ellipsis NumPy makes a view of an element, too.
    full = full if any(i is Ellipsis for i in full) else (*full, Ellipsis)
    return builder.view(x, operator.itemgetter(full))


@cache
def is_traced(ufunc: np.ufunc) -> bool:
    """Return whether a ufunc makes of the elements of floats floats, or truth values if it tests
    floats.
    """
    return ufunc in _TESTS or (ufunc.signature is None and f"{'d' * ufunc.nin}->d" in ufunc.types)


def _are_truths(operands: Sequence[Value | Symbol]) -> bool:
    return all(x.dtype == BOOL for x in operands)


def apply_ufunc(builder: Builder, ufunc: np.ufunc, values: list[Value]) -> Value:
    """Apply a ufunc to values."""
    if ufunc in COMPARISONS:
        return builder.compare(ufunc, *values)
    if _are_truths(values):
        return builder.logical(OF_TRUTHS[ufunc], *values) if ufunc in OF_TRUTHS else refuse()
    if OF_TRUTHS.get(ufunc) is ufunc:
        return builder.logical(ufunc, *values)
    if ufunc is np.matmul:
        return builder.matmul(*map(builder.number, values))
    if not is_traced(ufunc):
        refuse()
    return builder.ufunc(ufunc, *values)


# --- what several of NumPy's functions are made of ---


def normalised(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return axes as a tuple, counted from the front."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, tuple) else (axis,)))


def reduced(x: Symbol, ufunc: np.ufunc, axis: Axis = None, keepdims: bool = False) -> Symbol:
    """Reduce a symbol by a ufunc."""
    builder, value = x.builder, x.value
    axes = normalised(axis, x.ndim)
    if ufunc is np.add:
        result = builder.sum(value, axes)
    elif ufunc in (np.logical_and, np.logical_or):
        result = builder.reduce(ufunc, builder.truth(value), axes)
    elif ufunc in (np.maximum, np.minimum, np.multiply):
        result = builder.reduce(ufunc, value, axes)
    else:
        refuse()
    saved = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return x.of(builder.reshaped(result, saved) if keepdims else result)


def builder_of(*operands: object) -> Builder:
    """Return the builder of the first symbol among operands, or in a list of them."""
    for operand in operands:
        for x in operand if isinstance(operand, (list, tuple)) else (operand,):
            if isinstance(x, Symbol):
                return x.builder
    refuse()


def joined(arrays: Sequence[object], axis: int = 0) -> Symbol:
    """Implement `numpy.concatenate`."""
    builder = builder_of(list(arrays))
    values = [lift(builder, x) for x in arrays]
    result = builder.concatenated(values, axis)
    return Symbol(builder, builder.truth(result) if _are_truths(values) else result)


def stacked(arrays: Sequence[Operand], axis: int = 0) -> Operand:
    """Implement `numpy.stack`."""
    if not any(isinstance(x, Symbol) for x in arrays):
        return np.stack(arrays, axis)
    return joined([np.expand_dims(x, axis) for x in as_symbols(*arrays)], axis)


def called(kernel: Kernel, *operands: object) -> list[Symbol]:
    """Return the results of a kernel of contiguous arrays."""
    builder = builder_of(*operands)
    values = [builder.contiguous(lift(builder, x)) for x in operands]
    return [Symbol(builder, v) for v in builder.apply(kernel, *values)]


def as_symbols(*operands: object) -> list[Symbol]:
    """Convert symbols and plain values to symbols."""
    builder = builder_of(*operands)
    return [x if isinstance(x, Symbol) else Symbol(builder, lift(builder, x)) for x in operands]


def spread_back(x: Operand, indices: np.ndarray, shape: Shape) -> Operand:
    """Add the elements of an array to zeros, at indices of the flattened array."""
    if not isinstance(x, Symbol):
        sums = np.bincount(np.ravel(indices), np.ravel(x), math.prod(shape))
        return sums.astype(np.float64).reshape(shape)  # without elements the sums are integers
    return x.of(x.builder.assemble(shape, [(np.asarray(indices, np.int64), x.shape, x.value)]))


def require(condition: object) -> None:
    """End the run where a condition does not hold for all elements."""
    if not holds(condition):
        refuse()


# --- what holds nearly everywhere: rules ask, and of symbols a run ends where it does not hold ---


def holds(condition: Operand) -> bool:
    """Return whether a condition holds for all elements."""
    if isinstance(condition, Symbol):
        return condition.require()
    return condition if type(condition) is bool else bool(condition.all())


def number(x: Operand) -> Operand:
    """Return a float, or a symbol of a number."""
    return x if isinstance(x, Symbol) else float(x)


def is_between(x: Operand, low: float, high: float) -> bool:
    """Return whether non-negative numbers all lie between two others; nan does not."""
    if isinstance(x, float):
        return low < x < high
    if isinstance(x, Symbol):
        return holds((x > low) & (x < high))
    return bool(
        np.minimum.reduce(x, None, initial=math.inf) > low
        and np.maximum.reduce(x, None, initial=0.0) < high
    )


def is_safe_divisor(r: Operand) -> bool:
    """Return whether a product can be divided by its factors: it is not near 0 or overflow."""
    return is_between(np.abs(r), 1e-290, 1e290)


# --- NumPy's functions ---


def _of(kernel: Kernel, *operands: object) -> Symbol:
    return called(kernel, *operands)[0]


def _where(condition: object, x: object, y: object) -> Symbol:
    first, *choices = as_symbols(condition, x, y)
    result = first.builder.where(first.value, *(choice.value for choice in choices))
    return first.of(first.builder.truth(result) if _are_truths(choices) else result)


def _dot(a: Operand, b: Operand) -> Operand:
    if not np.ndim(a) or not np.ndim(b):
        return a * b
    return a @ b if max(np.ndim(a), np.ndim(b)) < 3 else refuse()


def _outer(a: object, b: object) -> Operand:
    x, y = as_symbols(a, b)
    return x.reshape(-1, 1) * y.reshape(1, -1)


def _eigh(a: Symbol, UPLO: str = "L") -> tuple[Operand, ...]:  # noqa: N803 - NumPy's name
    values, vectors = called(EIGH[UPLO.upper()], a)
    require(np.isfinite(values))
    return values, vectors


def _contracted(subscripts: str, *arrays: object, **_: object) -> Operand:
    symbols = as_symbols(*arrays)
    result = None if _are_truths(symbols) else contracted(subscripts, symbols)
    return refuse() if result is None else result


def _inner_of_all(a: object, b: object) -> Operand:
    """Implement `numpy.vdot`."""
    x, y = as_symbols(a, b)
    if a is b and list(x.strides) != sorted(x.strides, reverse=True):
        x = y = x.T  # so that columns are not copied
    return x.ravel() @ y.ravel()


def _moved(x: Symbol, source: Axes, destination: Axes) -> Symbol:
    axes = np.moveaxis(np.empty(range(x.ndim)), source, destination).shape  # type: ignore[arg-type]
    return x.transpose(axes)


def _sine_quotient(x: Symbol) -> Operand:
    """Implement `numpy.sinc`."""
    angle = math.pi * _where(x == 0.0, 1e-20, x)
    return np.sin(angle) / angle


def _flipped(x: Symbol, axis: Axis = None) -> Symbol:
    axes = normalised(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def _accumulated(ufunc: np.ufunc, x: Symbol, axis: int | None = None) -> Operand:
    return ufunc.accumulate(x.ravel() if axis is None else x, axis=axis or 0)


def _taken(x: Symbol, indices: np.ndarray, axis: int | None = None) -> Symbol:
    indices = np.asarray(indices).astype(np.int64, casting="safe")
    return x.ravel()[indices] if axis is None else x[(slice(None),) * (axis % x.ndim) + (indices,)]


def _mean(x: Symbol, axis: Axis = None) -> Operand:
    total = x.sum(axis)
    return total / (x.size / max(total.size, 1))


def _like(x: Symbol, function: Function, *axis: Axis) -> Symbol:
    """Reshape a symbol as a function reshapes an array of its shape."""
    return x.reshape(function(np.empty(x.shape, bool), *axis).shape)


# The handlers of NumPy's functions for symbols.
ANSWERS: dict[Function, Function] = {
    np.shape: attrgetter("shape"),
    np.ndim: attrgetter("ndim"),
    np.size: attrgetter("size"),
    np.sum: Symbol.sum,
    np.prod: Symbol.prod,
    np.max: Symbol.max,
    np.amax: Symbol.max,
    np.min: Symbol.min,
    np.all: Symbol.all,
    np.any: Symbol.any,
    np.mean: _mean,
    np.cumsum: partial(_accumulated, np.add),
    np.cumprod: partial(_accumulated, np.multiply),
    np.diff: lambda x: x[..., 1:] - x[..., :-1],
    np.sinc: _sine_quotient,
    np.where: _where,
    np.dot: _dot,
    np.vdot: _inner_of_all,
    np.inner: lambda a, b: _dot(a, b) if np.ndim(a) <= 1 and np.ndim(b) <= 1 else refuse(),
    np.outer: _outer,
    np.einsum: _contracted,
    np.linalg.cholesky: partial(_of, CHOLESKY),
    np.linalg.inv: partial(_of, INVERSE),
    np.linalg.det: partial(_of, DETERMINANT),
    np.linalg.eigh: _eigh,
    np.linalg.slogdet: lambda a: tuple(called(LOG_DETERMINANT, a)),
    np.linalg.solve: lambda a, b: _of(SOLVE_ONE if np.ndim(b) == 1 else SOLVE, a, b),
    np.reshape: lambda x, shape, order="C": x.reshape(shape, order=order),
    np.ravel: Symbol.ravel,
    np.transpose: lambda x, axes=None: x.transpose(*axes or ()),
    np.matrix_transpose: attrgetter("mT"),
    np.swapaxes: lambda x, a, b: _moved(x, (a, b), (b, a)),
    np.moveaxis: _moved,
    np.expand_dims: lambda x, axis: _like(x, np.expand_dims, axis),
    np.squeeze: lambda x, axis=None: _like(x, np.squeeze, axis),
    np.broadcast_to: lambda x, shape: x.part(
        x.builder.broadcast(x.value, tuple(shape) if np.iterable(shape) else (shape,))
    ),
    np.concatenate: joined,
    np.stack: stacked,
    np.flip: _flipped,
    np.take: _taken,
    np.tril: lambda x, k=0: _where(np.tri(x.shape[-2], x.shape[-1], k, bool), x, 0.0),
    np.diagonal: Symbol.diagonal,
    np.diag: lambda x, k=0: x.diagonal(k) if x.ndim == 2 else refuse(),
    np.trace: lambda x: x.diagonal().sum(),
    np.copy: Symbol.copy,
    np.zeros_like: lambda x, shape=None: np.zeros(x.shape if shape is None else shape, x.dtype),
    np.ones_like: lambda x, shape=None: np.ones(x.shape if shape is None else shape, x.dtype),
}
