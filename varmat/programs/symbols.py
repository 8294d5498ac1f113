"""Tracing: functions of arrays run once on symbols, which add steps to a program instead of
computing.

What a symbol cannot do (it has no numbers to look at) raises `UntraceableError`; whoever traces a
function then calls it from Python at every run instead. Partials of the elementwise table, terms of
densities, domains, and the value functions and reverse rules of structured operations all become
steps in this one way."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from varmat.core.dispatch import COMPARISONS
from varmat.core.elementwise import ROWS, Elementwise
from varmat.plain_arrays import is_basic
from varmat.programs.builder import Builder
from varmat.programs.conditions import COMPARISON_OF, FIXED, SELECTION
from varmat.programs.kernels import Function, Gufunc, Kernel, SolveTriangular
from varmat.programs.program import BOOL, FLOAT, Shape, Value

_LOGICAL = frozenset({np.logical_and, np.logical_or, np.logical_xor, np.logical_not})
_AS_LOGICAL = {
    np.bitwise_and: np.logical_and, np.bitwise_or: np.logical_or, np.bitwise_xor: np.logical_xor,
     np.invert: np.logical_not,
}  # fmt: skip
_LINALG = np.linalg._umath_linalg
CHOLESKY, INVERSE, DETERMINANT = (
    Gufunc(_LINALG.cholesky_lo),
    Gufunc(_LINALG.inv),
    Gufunc(_LINALG.det),
)
SOLVE, SOLVE_ONE, LOG_DETERMINANT = (
    Gufunc(_LINALG.solve),
    Gufunc(_LINALG.solve1),
    Gufunc(_LINALG.slogdet),
)
_TESTS = frozenset({np.isfinite, np.isnan, np.isinf, np.signbit})


class UntraceableError(Exception):
    """A function asks a symbol for what only numbers have."""


def refuse(*_: Any, **__: Any) -> NoReturn:
    raise UntraceableError


class Symbol:
    """Stands for a value of the program that is being made, with the ways of an ndarray that keep
    to shapes.
    """

    __slots__ = ("_has_parts", "_is_part", "builder", "value")
    __array_priority__ = 1000.0
    # There is no derivative to a symbol: it is what it stands for.
    _tape = None
    _plain = property(lambda self: self)

    def __init__(self, builder: Builder, value: Value, is_part: bool = False) -> None:
        self.builder, self.value = builder, value
        # What is written into one array must show in others that look into the same memory: here it
        # would not.
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
        """A symbol that looks into the memory of this one."""
        self._has_parts = True
        return Symbol(self.builder, value, True)

    def become(self, value: Value) -> Symbol:
        """Stand for another value from here on: what writing into an array is to a symbol."""
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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse()

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # --- parts ---

    def __getitem__(self, index: Any) -> Symbol:
        builder, x = self.builder, self.value
        if isinstance(index, Symbol) or (
            isinstance(index, tuple) and any(isinstance(i, Symbol) for i in index)
        ):
            refuse()
        if is_basic(index):
            return self.part(part_of(builder, x, index))
        places = np.arange(x.size).reshape(x.shape)[index]
        return self.of(builder.gather(x, places))

    def __setitem__(self, index: Any, source: Any) -> None:
        if isinstance(index, Symbol) or (
            isinstance(index, tuple) and any(isinstance(i, Symbol) for i in index)
        ):
            refuse()
        places = np.arange(self.size).reshape(self.shape)[index]
        self.become(
            Written(self.builder, self.value, np.asarray(places), lift(self.builder, source)).value
        )

    def reshape(self, *shape: Any, order: str = "C") -> Symbol:
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if order != "C":
            refuse()
        return self.part(
            self.builder.reshaped(self.value, np.empty(self.shape, bool).reshape(shape).shape)
        )

    def ravel(self, order: str = "C") -> Symbol:
        return self.reshape(-1)

    def transpose(self, *axes: Any) -> Symbol:
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self.part(
            self.builder.transposed(self.value, [a % self.ndim for a in axes] if axes else None)
        )

    def copy(self, order: str = "C") -> Symbol:
        return self.of(self.value)

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        return self if np.dtype(dtype) == FLOAT else refuse()

    # --- sums and products ---

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Symbol:
        return reduced(self, np.add, axis, keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Symbol:
        return reduced(self, np.maximum, axis, keepdims)

    def min(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Symbol:
        return reduced(self, np.minimum, axis, keepdims)

    def all(self, axis: Any = None, out: Any = None, keepdims: bool = False) -> Symbol:
        return reduced(self.of(self.builder.truth(self.value)), np.logical_and, axis, keepdims)

    def any(self) -> bool:
        return self.builder.in_formula or refuse()

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbol:
        return _diagonal(self, offset, axis1, axis2)

    def dot(self, other: Any, out: Any = None) -> Symbol:
        if out is not None or np.ndim(other) not in (1, 2) or self.ndim not in (1, 2):
            refuse()
        return self.of(self.builder.matmul(self.value, self.lifted(other)))

    # --- operators of one operand; the others are made below ---

    def __neg__(self) -> Symbol:
        return self.of(self.builder.ufunc(np.negative, self.value))

    def __pos__(self) -> Symbol:
        return self

    def __abs__(self) -> Symbol:
        return self.of(self.builder.ufunc(np.absolute, self.value))

    def __invert__(self) -> Symbol:
        return self.of(self.builder.logical(np.logical_not, self.value))

    # --- protocols ---

    def lifted(self, x: Any) -> Value:
        """Anything beside a symbol as a value."""
        return lift(self.builder, x)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **settings: Any
    ) -> Any:
        if (
            method == "reduce"
            and not settings.keys() - {"axis", "keepdims", "dtype"}
            and out is None
        ):
            axis = inputs[1] if len(inputs) > 1 else settings.get("axis", 0)
            return reduced(inputs[0], ufunc, axis, settings.get("keepdims", False))
        if method == "accumulate" and not settings.keys() - {"axis"} and out is None:
            return (
                self.of(self.builder.accumulate(ufunc, self.value, settings.get("axis", 0)))
                if self.ndim
                else self
            )
        if method == "outer" and not settings and out is None:
            x, y = (lift(self.builder, each) for each in inputs)
            inputs = (
                self.of(self.builder.reshaped(x, (*x.shape, *(1,) * len(y.shape)))),
                self.of(y),
            )
        elif method != "__call__" or settings:
            refuse()
        result = self.of(apply_ufunc(self.builder, ufunc, [lift(self.builder, x) for x in inputs]))
        if out is None:
            return result
        # A symbol is written into by standing for another value from here on.
        (target,) = out
        return target.become(result.value) if isinstance(target, Symbol) else refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        answer = ANSWERS.get(function)
        return refuse() if answer is None else answer(*args, **kwargs)


def lift(builder: Builder, x: Any) -> Value:
    """Anything as a value of the program."""
    if isinstance(x, Symbol):
        return x.value
    if isinstance(x, (list, tuple)):
        return stacked([Symbol(builder, lift(builder, each)) for each in x]).value  # type: ignore[no-any-return]
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        refuse()
    return builder.constant(x if type(x) is np.ndarray else array)


def part_of(builder: Builder, x: Value, index: Any) -> Value:
    """A view by a basic index, also of one element."""
    whole = index if isinstance(index, tuple) else (index,)
    if any(i is Ellipsis for i in whole):
        return builder.view(x, operator.itemgetter(index))
    return builder.view(x, operator.itemgetter((*whole, Ellipsis)))


@cache
def _is_traced(ufunc: np.ufunc) -> bool:
    """Whether it makes one array, of floats or, if it tests them, of truth values."""
    return ufunc.nout == 1 and (
        ufunc in _TESTS or any(each.endswith("->d") for each in ufunc.types)
    )


def apply_ufunc(builder: Builder, ufunc: Any, values: list[Value]) -> Value:
    """A ufunc of values."""
    if ufunc in COMPARISONS:
        return builder.compare(ufunc, *values)
    ufunc = _AS_LOGICAL.get(ufunc, ufunc)
    if ufunc in _LOGICAL:
        return builder.logical(ufunc, *values)
    if ufunc is np.matmul:
        return builder.matmul(*values)
    if ufunc is np.add and all(v.dtype == BOOL for v in values):
        return builder.logical(np.logical_or, *values)
    if not _is_traced(ufunc):
        refuse()
    return builder.ufunc(ufunc, *values)


def _operator(ufunc: Any, reflected: bool = False) -> Any:
    def operate(self: Symbol, other: Any) -> Any:
        operands = (other, self) if reflected else (self, other)
        return self.of(apply_ufunc(self.builder, ufunc, [lift(self.builder, x) for x in operands]))

    return operate


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power,
     "matmul": np.matmul,
    "and": np.logical_and, "or": np.logical_or,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _operator(_ufunc))
    setattr(Symbol, f"__r{_name}__", _operator(_ufunc, True))

    def _in_place(self: Symbol, other: Any, ufunc: Any = _ufunc) -> Symbol:
        return self.become(
            apply_ufunc(self.builder, ufunc, [self.value, lift(self.builder, other)])
        )

    setattr(Symbol, f"__i{_name}__", _in_place)
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
     "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Symbol, f"__{_name}__", _operator(_ufunc))


class Written:
    """An array into which something is written: for each element a choice between what it was and
    an element of what is assigned.

    Parameters
    ----------
    builder : Builder
    before : Value
    places : ndarray of int
        The places in the flattened array that are written to.
    source : Value
        What broadcasts to the shape of `places`.
    """

    def __init__(self, builder: Builder, before: Value, places: np.ndarray, source: Value) -> None:
        self.builder, self.places, self.shape = builder, places, before.shape
        while len(source.shape) > places.ndim:  # NumPy drops leading axes of length one
            source = builder.reshaped(source, source.shape[1:])
        # Where an element is named several times the last one stays.
        written, order = np.unique(places.reshape(-1)[::-1], return_index=True)
        self.last = places.size - 1 - order
        self.is_once = written.size == places.size
        chosen = np.zeros(before.size, np.int64)
        chosen[written] = self.last
        self.changed = np.zeros(before.size, bool)
        self.changed[written] = True
        self.changed = self.changed.reshape(before.shape)
        spread = builder.broadcast(source, places.shape) if source.shape else source
        if source.shape and places.size and places.shape:
            spread = builder.reshaped(builder.gather(spread, chosen), before.shape)
        if not places.size:
            self.value = before
        elif self.changed.all():
            self.value = builder.full(spread, before.shape)
        else:
            self.value = builder.where(builder.constant(self.changed), spread, before)

    def adjoint_before(self, g: Value) -> Value | None:
        """The contribution to the array as it was; None if nothing of it is left."""
        if self.changed.all():
            return None
        return self.builder.where(
            self.builder.constant(self.changed), self.builder.constant(0.0), g
        )

    def adjoint_source(self, g: Value) -> Value:
        """The contribution to what was assigned, of the shape of the places."""
        builder, places = self.builder, self.places
        if not places.shape:
            return builder.element(builder.contiguous(g), int(places))
        taken = builder.gather(g, places)
        if self.is_once:
            return taken
        keep = np.zeros(places.size, bool)
        keep[self.last] = True
        return builder.where(
            builder.constant(keep.reshape(places.shape)), taken, builder.constant(0.0)
        )


# --- NumPy's functions ---


def normalised(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None or not ndim:
        return tuple(range(ndim))
    return tuple(i % ndim for i in (axis if isinstance(axis, tuple) else (axis,)))


def reduced(x: Symbol, ufunc: Any, axis: Any = None, keepdims: bool = False) -> Symbol:
    builder, value = x.builder, x.value
    axes = normalised(axis, x.ndim)
    if ufunc is np.add:
        result = builder.sum(value, axes)
    elif ufunc in (np.maximum, np.minimum, np.multiply, np.logical_and, np.logical_or):
        result = builder.reduce(ufunc, value, axes)
    else:
        refuse()
    if keepdims:
        result = builder.reshaped(
            result, tuple(1 if i in axes else n for i, n in enumerate(x.shape))
        )
    return x.of(result)


def _first(*operands: Any) -> Builder:
    found = [
        x
        for each in operands
        for x in (each if isinstance(each, (list, tuple)) else (each,))
        if isinstance(x, Symbol)
    ]
    return found[0].builder if found else refuse()


def joined(arrays: Any, axis: int = 0) -> Symbol:
    """`numpy.concatenate`."""
    builder = _first(list(arrays))
    values = [lift(builder, x) for x in arrays]
    axis = axis % len(values[0].shape)
    shape = list(values[0].shape)
    shape[axis] = sum(v.shape[axis] for v in values)
    like, parts, start = np.empty(shape), [], 0
    for value in values:
        part = like[(slice(None),) * axis + (slice(start, start + value.shape[axis]),)]
        parts.append(
            ((start * like.strides[axis], part.strides), part.shape, builder.number(value))
        )
        start += value.shape[axis]
    return Symbol(builder, builder.assemble(tuple(shape), [each for each in parts if each[2].size]))


def stacked(arrays: Any, axis: int = 0) -> Any:
    """`numpy.stack`."""
    builder = _first(list(arrays)) if any(isinstance(x, Symbol) for x in arrays) else None
    if builder is None:
        return np.stack(arrays, axis)
    values = [lift(builder, x) for x in arrays]
    axis = axis % (len(values[0].shape) + 1)
    longer = [builder.reshaped(v, (*v.shape[:axis], 1, *v.shape[axis:])) for v in values]
    return joined([Symbol(builder, v) for v in longer], axis)


def _where(condition: Any, x: Any, y: Any) -> Symbol:
    builder = _first(condition, x, y)
    return Symbol(builder, builder.where(*(lift(builder, each) for each in (condition, x, y))))


def _dot(a: Any, b: Any) -> Symbol:
    builder = _first(a, b)
    x, y = lift(builder, a), lift(builder, b)
    if not x.shape or not y.shape:
        return Symbol(builder, builder.ufunc(np.multiply, x, y))
    return (
        Symbol(builder, builder.matmul(x, y)) if max(len(x.shape), len(y.shape)) < 3 else refuse()
    )


def _inner_of_all(a: Any, b: Any) -> Symbol:
    """`numpy.vdot`."""
    builder = _first(a, b)
    x, y = (builder.reshaped(v, (v.size,)) for v in (lift(builder, a), lift(builder, b)))
    return Symbol(builder, builder.matmul(x, y))


def _moved(x: Symbol, source: Any, destination: Any) -> Symbol:
    like = np.moveaxis(np.empty(tuple(range(2, 2 + x.ndim))), source, destination)
    return x.transpose([n - 2 for n in like.shape])


def _expanded(x: Symbol, axis: Any) -> Symbol:
    return x.reshape(np.expand_dims(np.empty(x.shape, bool), axis).shape)


def _diagonal(x: Symbol, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Symbol:
    return x.part(x.builder.view(x.value, lambda a: np.diagonal(a, offset, axis1, axis2)))


def _outer(a: Any, b: Any) -> Symbol:
    builder = _first(a, b)
    x, y = (lift(builder, each) for each in (a, b))
    return Symbol(
        builder,
        builder.ufunc(
            np.multiply, builder.reshaped(x, (x.size, 1)), builder.reshaped(y, (1, y.size))
        ),
    )


def _sine_quotient(x: Any) -> Any:
    return np.sin(x) / x


def _solved(a: Any, b: Any) -> Symbol:
    builder = _first(a, b)
    x, y = lift(builder, a), lift(builder, b)
    return Symbol(builder, builder.call(SOLVE_ONE if len(y.shape) == 1 else SOLVE, x, y))


def _flipped(x: Symbol, axis: Any = None) -> Symbol:
    axes = normalised(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


ANSWERS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    np.sum: lambda x, axis=None, keepdims=False: reduced(x, np.add, axis, keepdims),
    np.linalg.cholesky: lambda a: a.of(a.builder.call(CHOLESKY, a.builder.contiguous(a.value))),
    np.linalg.inv: lambda a: a.of(a.builder.call(INVERSE, a.value)),
    np.linalg.det: lambda a: a.of(a.builder.call(DETERMINANT, a.value)),
    np.linalg.slogdet: lambda a: tuple(map(a.of, a.builder.apply(LOG_DETERMINANT, a.value))),
    np.linalg.solve: lambda a, b: _solved(a, b),
    np.all: lambda x, axis=None: x.all(axis),
    np.any: lambda x: x.any(),
    np.cumprod: lambda x, axis=None: np.multiply.accumulate(
        x.ravel() if axis is None else x, axis=axis or 0
    ),
    np.tril: lambda x, k=0: _where(np.tri(x.shape[-2], x.shape[-1], k, bool), x, 0.0),
    np.sinc: lambda x: _sine_quotient(np.multiply(math.pi, _where(x == 0.0, 1e-20, x))),
    np.diff: lambda x: x[..., 1:] - x[..., :-1],
    np.prod: lambda x, axis=None, keepdims=False: reduced(x, np.multiply, axis, keepdims),
    np.max: lambda x, axis=None, keepdims=False: reduced(x, np.maximum, axis, keepdims),
    np.amax: lambda x, axis=None, keepdims=False: reduced(x, np.maximum, axis, keepdims),
    np.min: lambda x, axis=None, keepdims=False: reduced(x, np.minimum, axis, keepdims),
    np.cumsum: lambda x, axis=None: np.add.accumulate(
        x.ravel() if axis is None else x, axis=axis or 0
    ),
    np.dot: _dot,
    np.vdot: _inner_of_all,
    np.inner: lambda a, b: _dot(a, b) if np.ndim(a) <= 1 and np.ndim(b) <= 1 else refuse(),
    np.outer: _outer,
    np.where: _where,
    np.reshape: lambda x, shape, order="C": x.reshape(shape, order=order),
    np.ravel: lambda x, order="C": x.ravel(order),
    np.transpose: lambda x, axes=None: x.transpose(*axes or ()),
    np.matrix_transpose: lambda x: x.mT,
    np.swapaxes: lambda x, a, b: _moved(x, (a, b), (b, a)),
    np.moveaxis: _moved,
    np.expand_dims: _expanded,
    np.squeeze: lambda x, axis=None: x.reshape(np.squeeze(np.empty(x.shape, bool), axis).shape),
    np.broadcast_to: lambda x, shape: x.part(
        x.builder.broadcast(x.value, tuple(shape) if np.iterable(shape) else (shape,))
    ),
    np.concatenate: joined,
    np.stack: stacked,
    np.diagonal: _diagonal,
    np.diag: lambda x, k=0: _diagonal(x, k) if x.ndim == 2 else refuse(),
    np.trace: lambda x: reduced(_diagonal(x), np.add),
    np.copy: lambda x: x.copy(),
    np.zeros_like: lambda x, shape=None: np.zeros(x.shape if shape is None else shape),
    np.ones_like: lambda x, shape=None: np.ones(x.shape if shape is None else shape),
    np.take: lambda x, indices, axis=None: (
        x.ravel()[indices] if axis is None else x[(slice(None),) * (axis % x.ndim) + (indices,)]
    ),
    np.mean: lambda x, axis=None: (
        reduced(x, np.add, axis) / (x.size / max(math.prod(reduced(x, np.add, axis).shape), 1))
    ),
    np.flip: _flipped,
}


# Rows up to which factorisations are steps of a program; of larger matrices the functions called
# from Python work block by block.
UNROLLED = 128
# Rows up to which triangular systems are solved without products.
BLOCK = 64
# How far elements across a diagonal may be apart: see `varmat.functions.checks`.
TOLERANCE = 1e-8


def called(kernel: Kernel, *operands: Any) -> list[Symbol]:
    """The results of a kernel of contiguous arrays."""
    builder = _first(*operands)
    return [
        Symbol(builder, v)
        for v in builder.apply(kernel, *(builder.contiguous(lift(builder, x)) for x in operands))
    ]


def as_symbols(*operands: Any) -> list[Symbol]:
    """Symbols and plain values as symbols."""
    builder = _first(*operands)
    return [x if isinstance(x, Symbol) else Symbol(builder, lift(builder, x)) for x in operands]


def spread_back(x: Any, places: np.ndarray, shape: Shape) -> Any:
    """Zeros with the elements of a vector added at places of the flattened array."""
    return x.of(x.builder.assemble(shape, [(np.asarray(places, np.int64), x.shape, x.value)]))


def require(condition: Any) -> None:
    """End the run where a condition does not hold for all elements."""
    if isinstance(condition, Symbol):
        condition.builder.guard(condition.builder.truth(condition.value))
    elif not np.all(condition):
        refuse()


def solve_lower(a: Any, b: Any, transposed: bool = False) -> Any:
    """The solution of a lower triangular system, or of that of the transpose, for a vector or the
    columns of a matrix.
    """
    if np.ndim(a) != 2 or np.shape(a)[-1] > UNROLLED:
        refuse()
    if not isinstance(a, Symbol) and not isinstance(b, Symbol):
        return SolveTriangular(transposed).evaluate(*map(np.ascontiguousarray, (a, b)))[0]
    builder, n = _first(a, b), np.shape(a)[-1]
    if n <= BLOCK:
        return Symbol(
            builder,
            builder.call(
                SolveTriangular(transposed), *(builder.contiguous(lift(builder, x)) for x in (a, b))
            ),
        )
    # Half of it after the other, so that nearly all is done by products.
    k = (n + 1) // 2
    a, b = as_symbols(a, b)
    if transposed:
        below = solve_lower(a[k:, k:], b[k:], True)
        return joined([solve_lower(a[:k, :k], b[:k] - a[k:, :k].T @ below, True), below])
    above = solve_lower(a[:k, :k], b[:k])
    return joined([above, solve_lower(a[k:, k:], b[k:] - a[k:, :k] @ above)])


def inverse_lower(factor: Any) -> Any:
    """The inverse of the matrix of which `factor` is the lower Cholesky factor."""
    return solve_lower(factor, solve_lower(factor, np.eye(np.shape(factor)[-1])), transposed=True)


def triangle(x: Any, half: bool = False) -> Any:
    """The lower triangle, zeros above it; with `half` the diagonal is halved."""
    n = np.shape(x)[-1]
    return x * (np.tri(n) - 0.5 * np.eye(n) if half else np.tri(n))


def unrolled(a: Any) -> None:
    """Refuse matrices for which functions that work block by block are called from Python, and
    empty ones.
    """
    if not np.size(a) or np.shape(a)[-1] > UNROLLED:
        refuse()


def positive_definite(a: Any) -> Any:
    """The lower Cholesky factor of what has to be symmetric and positive definite, or the run
    ends.
    """
    unrolled(a)
    require(np.abs(a - a.mT) <= TOLERANCE)
    factor = np.linalg.cholesky(a)
    # all of it is nan where the matrix is not positive definite
    require(np.isfinite(factor[..., :1, 0]))
    return factor


# --- expressions of tables ---


def apply_row(builder: Builder, row: Elementwise, values: list[Value]) -> Value:
    """An elementwise operation of values: its ufunc, the NumPy expression behind it, or, for
    anything else, a call of Python.
    """
    if row is SELECTION:
        return builder.where(*values)
    if row is FIXED:
        return values[0]
    if row in COMPARISON_OF:
        return builder.compare(COMPARISON_OF[row], *values)
    ufunc = row.ufunc
    if isinstance(ufunc, np.ufunc) and _is_traced(ufunc):
        return apply_ufunc(builder, ufunc, values)
    # Set by `varmat.plain_arrays.with_out`, or for the row.
    formula = getattr(row, "formula", None) or getattr(ufunc, "formula", None)
    if formula is not None:
        builder.in_formula = True
        try:
            given = (
                Symbol(builder, v) if v.data is None else v.data[()]
                for v in map(builder.number, values)
            )
            return lift(builder, formula(*given))
        except (UntraceableError, TypeError, AttributeError):
            pass
        finally:
            builder.in_formula = False
    kernel = _FUNCTIONS.setdefault(row, Function(row.name, ufunc))
    return builder.call(kernel, *map(builder.number, values))


def applied(row: Elementwise, *operands: Any) -> Any:
    """An elementwise operation of symbols and plain values, in rules that are traced."""
    if not any(isinstance(x, Symbol) for x in operands):
        return row(*operands)
    builder = _first(*operands)
    return Symbol(builder, apply_row(builder, row, [lift(builder, x) for x in operands]))


def plain_or_symbol(builder: Builder, value: Value) -> Any:
    """What stands for a value in a function that is traced: a rule may ask whether an operand is a
    number.
    """
    if value.data is None:
        return Symbol(builder, value)
    return value.data if value.shape else float(value.data)


# A row -> the kernel of its function.
_FUNCTIONS: dict[Elementwise, Function] = {}


class Scope(dict[str, Any]):
    """What the names in an expression mean: letters and abbreviations that stand for symbols, and
    functions of the table.
    """

    def __init__(
        self, builder: Builder, letters: dict[str, Any], let: dict[str, str] | None = None
    ) -> None:
        super().__init__(letters)
        self.builder, self.let = builder, let or {}

    def __missing__(self, name: str) -> Any:
        if name in self.let:
            self[name] = eval(compiled(self.let[name]), {"__builtins__": {}}, self)
            return self[name]
        row, builder = ROWS.get(name), self.builder
        if row is not None:
            return lambda *args: Symbol(
                builder, apply_row(builder, row, [lift(builder, x) for x in args])
            )
        if name == "where":
            return lambda *args: Symbol(builder, builder.where(*(lift(builder, x) for x in args)))
        return (
            getattr(math, name)
            if hasattr(math, name) and not callable(getattr(math, name))
            else getattr(np, name)
        )

    def evaluate(self, expression: str) -> Value:
        return lift(self.builder, eval(compiled(expression), {"__builtins__": {}}, self))

    def symbol(self, expression: str) -> Symbol:
        return Symbol(self.builder, self.evaluate(expression))


def scope_of(values: Any, names: Any, let: dict[str, str]) -> Scope:
    """A scope in which names stand for symbols and plain values."""
    builder = _first(*values)
    return Scope(
        builder,
        {name: Symbol(builder, lift(builder, x)) for name, x in zip(names, values, strict=True)},
        let,
    )


@cache
def compiled(expression: str) -> Any:
    """The code of an expression of a table."""
    return compile(expression, f"<expression: {expression}>", "eval")
