"""Making programs, and simplifying them on the way.

Steps that depend only on constants are computed at once, equal steps are one step, views are not
steps, factors of one disappear, and numbers are taken out of products and sums of arrays. All of
this is local; passes over a whole program are in `varmat.programs.passes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.build.arithmetic import (
    ADD,
    AND,
    MULTIPLY,
    SIMPLER,
    SQUARE,
    SUBTRACT,
    is_indicator,
    is_number,
    is_product,
    peeled,
)
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    PackedPart,
    Place,
    Program,
    Shape,
    Step,
    Value,
    broadcast_strides,
    contiguous_strides,
    element_places,
)
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel
from varmat.programs.kernels.guards import GUARD
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.places import GATHER, Assemble, Write, copy_kernel
from varmat.programs.kernels.reductions import SUM, Accumulate, Reduce

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from varmat.typing import Linear


class Builder:
    """Collects the steps of a program.

    Attributes
    ----------
    arguments : list of Value
    steps : list of Step
    """

    # The function that writes an elementwise operation of the library, if not `apply_row`.
    apply_row: Callable[..., Value] | None = None

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.steps: list[Step] = []
        # Earlier results, by what they were made of. Arrays are held, because they are known by
        # their ids.
        self._results: dict[Hashable, tuple[Value, ...]] = {}
        self._values: dict[Hashable, Value] = {}
        self._constants: dict[int, tuple[Value, np.ndarray]] = {}
        # The factors of the products of two matrices.
        self.factors: dict[Value, tuple[Value, Value]] = {}
        # While a check is traced: the conditions it tests, which must hold at every run.
        self.asked: list[Value] | None = None
        # Whether the traced function calls `any` only to avoid a choice between elements.
        self.in_formula = False

    def program(self, outputs: Iterable[Value]) -> Program:
        return Program(self.arguments, self.steps, list(outputs))

    # --- values ---

    def argument(self, shape: Shape) -> Value:
        value = Value(shape)
        self.arguments.append(value)
        return value

    def constant(self, x: object) -> Value:
        """Return the value of a number, or of an array, which is held by reference."""
        if isinstance(x, np.ndarray) and x.ndim:
            if id(x) not in self._constants:
                data = x if x.dtype in (FLOAT, BOOL) or x.dtype == np.int64 else x.astype(FLOAT)
                self._constants[id(x)] = Value(x.shape, data.dtype, data=data), x
            return self._constants[id(x)][0]
        number = np.asarray(x)
        number = number if number.dtype == BOOL else number.astype(FLOAT)
        return self.adopted(Value((), number.dtype, data=number))

    def adopted(self, x: Value) -> Value:
        """Take a value that another builder made; reuse the first of equal numbers and views."""
        if x.is_view and not x.is_constant:
            return self._values.setdefault((x.base, x.offset, x.shape, x.strides), x)
        if x.is_constant and not x.shape:
            return self._values.setdefault((x.dtype.char, x.data.tobytes()), x)
        return x

    def apply(
        self, kernel: Kernel, *operands: Value, step: Step | None = None
    ) -> tuple[Value, ...]:
        """Return the results of a kernel; as results of `step` if given, unless they are known."""
        is_once = kernel.is_pure or kernel.is_guard
        key = (kernel, *operands)
        results = self._results.get(key) if is_once else None
        if results is None:
            output = step or Step(kernel, operands, kernel.results(*operands))
            results = output.results
            if kernel.is_pure and not any(v.size for v in results):
                # Runners rely on having something to compute.
                results = tuple(self.constant(np.empty(v.shape, v.dtype)) for v in results)
            elif kernel.is_pure and kernel.is_foldable and all(v.is_constant for v in operands):
                with np.errstate(all="ignore"):
                    result = kernel.evaluate(*(v.data for v in operands))
                results = tuple(self.constant(np.asarray(x)) for x in result)
            else:
                self.steps.append(output)
            if is_once:
                self._results[key] = results
        return results

    def call(self, kernel: Kernel, *operands: Value) -> Value:
        """Return the result of a kernel that makes one value."""
        return self.apply(kernel, *operands)[0]

    def inlined(self, program: Program, *arguments: Value) -> list[Value]:
        """Return the outputs of another program, whose steps become steps of this one."""
        inputs = map(self.contiguous, arguments)
        values = {id(v): x for v, x in zip(program.arguments, inputs, strict=True)}

        def found(x: Value) -> Value:
            return self.part_like(x, values.get(id(x.base), x.base))

        for step in program.steps:
            result = self.apply(step.kernel, *map(found, step.operands))
            values.update(zip(map(id, step.results), result, strict=True))
        return [found(x) for x in program.outputs]

    # --- views ---

    def view(self, x: Value, how: Linear) -> Value:
        """Make a view of a value, taken by a function from an array to a view of it."""
        if x.is_constant:
            return self._view_of_constant(x, how)
        # An array that lies in memory as `x` does, only to see which part `how` takes.
        like = (
            np.lib.stride_tricks.as_strided(_PLACE, x.shape, x.strides)
            if x.size
            else np.empty(x.shape)
        )
        part = how(like)
        if not np.shape(part) and type(part) is not np.ndarray:
            raise TypeError("an element is not a view")
        first, start = (a.__array_interface__["data"][0] for a in (part, like))
        offset = first - start if part.size and x.size else 0
        return self.part(x, part.shape, offset, part.strides)

    def _view_of_constant(self, x: Value, how: Linear) -> Value:
        part = np.asarray(how(x.data))
        value = Value(part.shape, part.dtype, data=part)
        return value if part.ndim else self.constant(part)

    def part(self, x: Value, shape: Shape, offset: int, strides: Shape) -> Value:
        """Make the view that begins `offset` bytes after `x`."""
        if shape == x.shape and strides == x.strides and not offset:
            return x
        key = (x.base, x.offset + offset, shape, strides)
        if key not in self._values:
            self._values[key] = x.view(shape, x.offset + offset, strides)
        return self._values[key]

    def part_like(self, old: Value, base: Value) -> Value:
        """Return what replaces an old value, where another value replaces its base."""
        if not old.is_view:
            return base
        full = self.contiguous(base)
        if full.is_constant:
            return self.constant(old.array_in(full.data))
        return self.part(full, old.shape, old.offset, old.strides)

    def element(self, x: Value, index: int) -> Value:
        """Return an element of a flattened array."""
        place = np.unravel_index(index, x.shape)
        if x.is_constant:
            return self.constant(x.data[place])
        return self.part(x, (), int(sum(i * s for i, s in zip(place, x.strides, strict=True))), ())

    def reshaped(self, x: Value, shape: Shape) -> Value:
        if x.shape == shape:
            return x
        if x.is_constant:
            return self._view_of_constant(x, lambda a: a.reshape(shape))
        x = self.contiguous(x)
        return self.part(x, shape, 0, contiguous_strides(shape, x.dtype.itemsize))

    def transposed(self, x: Value, axes: Sequence[int] | None = None) -> Value:
        order = tuple(axes) if axes is not None else tuple(reversed(range(len(x.shape))))
        if x.is_constant:
            return self._view_of_constant(x, lambda a: a.transpose(order))
        return self.part(x, tuple(x.shape[i] for i in order), 0, tuple(x.strides[i] for i in order))

    def broadcast(self, x: Value, shape: Shape) -> Value:
        """Make a view of a larger shape, the same along some axes."""
        if x.shape == shape:
            return x
        if x.is_constant:
            return self._view_of_constant(x, lambda a: np.broadcast_to(a, shape))
        return self.part(x, shape, 0, broadcast_strides(x.shape, x.strides, shape))

    def contiguous(self, x: Value) -> Value:
        """Return the same values in one piece."""
        return x if x.is_contiguous else self.call(copy_kernel(x.shape), x)

    def full(self, x: Value, shape: Shape) -> Value:
        """Broadcast values, and write them out."""
        return self.contiguous(self.broadcast(x, shape))

    # --- arithmetic ---

    def ufunc(self, ufunc: np.ufunc, *operands: Value) -> Value:
        """Apply a ufunc to values; write arithmetic in its simplest form."""
        numbers = map(self.number, operands)
        simpler = SIMPLER.get(ufunc)
        return simpler(self, *numbers) if simpler else self.call(ufunc_kernel(ufunc), *numbers)

    def number(self, x: Value) -> Value:
        """Convert truth values to numbers."""
        if x.dtype != BOOL:
            return x
        return self.call(SELECT, x, self.constant(1.0), self.constant(0.0))

    def compare(self, ufunc: np.ufunc, *operands: Value) -> Value:
        if ufunc is np.not_equal and is_number(operands[1], 0.0) and is_indicator(operands[0]):
            return self.truth(operands[0])
        return self.call(ufunc_kernel(ufunc), *map(self.number, operands))

    def logical(self, ufunc: np.ufunc, *operands: Value) -> Value:
        return self.call(ufunc_kernel(ufunc), *map(self.truth, operands))

    def truth(self, x: Value) -> Value:
        """Convert numbers to truth values: whether they are not zero."""
        if x.dtype == BOOL:
            return x
        if is_indicator(x):
            holds, one, _ = x.operands
            return self.logical(np.logical_not, holds) if is_number(one, 0.0) else holds
        if x.kernel is ufunc_kernel(np.maximum) and all(map(is_indicator, x.operands)):
            return self.logical(np.logical_or, *x.operands)  # because a recording writes `|` so
        return self.compare(np.not_equal, x, self.constant(0.0))

    def where(self, condition: Value, x: Value, y: Value) -> Value:
        condition = self.truth(condition)
        if x is y:
            return self.broadcast(x, np.broadcast_shapes(condition.shape, x.shape))
        if condition.is_constant and (np.all(condition.data) or not np.any(condition.data)):
            taken = self.number(x if np.all(condition.data) else y)
            return self.broadcast(taken, np.broadcast_shapes(condition.shape, x.shape, y.shape))
        return self.call(SELECT, condition, self.number(x), self.number(y))

    def guard(self, condition: Value) -> None:
        """End the run where a condition does not hold for all elements."""
        shape = condition.operands[0].shape if condition.operands else ()
        if condition.kernel in (AND, Reduce(np.logical_and, tuple(range(len(shape))))):
            for operand in condition.operands:  # each part of a conjunction has its own guard
                self.guard(operand)
        elif not (condition.is_constant and bool(np.all(condition.data))):
            self.apply(GUARD, condition)

    def guard_between(self, x: Value, low: float, high: float) -> None:
        """End the run unless all elements lie between two numbers."""
        self.guard(self.compare(np.greater, x, self.constant(low)))
        self.guard(self.compare(np.less, x, self.constant(high)))

    def add_all(self, terms: Sequence[Value]) -> Value:
        """Sum values that broadcast."""
        terms = [t for t in terms if not is_number(t, 0.0)] or list(terms[:1])
        if not terms:
            return self.constant(0.0)
        if len(terms) > 2:
            return self.call(SUM, *terms)
        return self.ufunc(np.add, *terms) if len(terms) == 2 else terms[0]

    # --- sums ---

    def sum(self, x: Value, axes: Sequence[int] | None = None) -> Value:
        """Sum over axes, all by default; numbers are taken out, and products of two arrays become
        inner products.
        """
        x = self.number(x)
        every = range(len(x.shape))
        axes = sorted(every if axes is None else {i % len(x.shape) for i in axes})
        if not axes:
            return x
        if not x.size:
            saved = tuple(n for i, n in enumerate(x.shape) if i not in axes)
            return self.broadcast(self.constant(0.0), saved)
        is_all = len(axes) == len(every)
        above, below, remainder = ([], [], x) if is_all else peeled(x)
        if remainder is not x:
            return self._scaled(above, below, self.sum(remainder, axes))
        # Along an axis on which all elements are the same the sum is a product with its length.
        same = [i for i in axes if x.strides[i] == 0 or (x.shape[i] == 1 and not is_all)]
        if same:
            index = tuple(0 if i in same else slice(None) for i in every)
            left = [i - sum(k < i for k in same) for i in axes if i not in same]
            count = float(math.prod(x.shape[i] for i in same))
            once = self.sum(self.view(x, itemgetter((*index, Ellipsis))), left)
            return self.ufunc(np.multiply, self.constant(count), once)
        return self.total(x) if is_all else self.reduce(np.add, x, axes)

    def total(self, x: Value) -> Value:
        """Sum all elements."""
        above, below, x = peeled(x)
        if x.kernel in (MULTIPLY, SQUARE) and all(f.shape == x.shape for f in x.operands):
            factors = x.operands if x.kernel is MULTIPLY else x.operands * 2
            (more, under, left), (others, beneath, right) = map(peeled, factors)
            above, below = [*above, *more, *others], [*below, *under, *beneath]
            total = self.call(MATMUL, *(self.reshaped(f, (f.size,)) for f in (left, right)))
        else:
            total = self._sum_of_sum(x)
        return self._scaled(above, below, total)

    def _scaled(self, above: Sequence[Value], below: Sequence[Value], x: Value) -> Value:
        for number in above:
            x = self.ufunc(np.multiply, number, x)
        for number in below:
            x = self.ufunc(np.divide, x, number)
        return x

    def _sum_of_sum(self, x: Value) -> Value:
        """Sum an array. A number that is added to an array is taken out of the sum."""
        is_sum = x.kernel in (ADD, SUBTRACT, SUM)
        if is_sum and all(not t.shape or is_product(t) for t in x.operands):
            totals = [self.sum(self.broadcast(t, x.shape)) for t in x.operands]
            return (
                self.ufunc(np.subtract, *totals) if x.kernel is SUBTRACT else self.add_all(totals)
            )
        return self.reduce(np.add, x, range(len(x.shape)))

    def unbroadcast(self, x: Value, full_shape: Shape, shape: Shape) -> Value:
        """Reduce a contribution to the shape of its operand. It represents an array of the shape
        `full_shape`, and may be smaller.
        """
        if x.shape == shape == full_shape:
            return x
        if not x.shape:  # equal elements
            count = float(math.prod(full_shape) // max(math.prod(shape), 1))
            return self.ufunc(np.multiply, self.constant(count), x)
        x, missing = self.broadcast(x, full_shape), len(full_shape) - len(shape)
        ones = (missing + i for i, n in enumerate(shape) if n == 1 != full_shape[missing + i])
        axes = [*range(missing), *ones]
        return self.reshaped(self.sum(x, axes), shape) if axes else x

    # --- products of matrices, parts of arrays ---

    def matmul(self, a: Value, b: Value) -> Value:
        """Multiply matrices, vectors or stacks; one column and one row give the outer product."""
        if len(a.shape) > 1 < len(b.shape) and a.shape[-1] == 1:
            result = self.ufunc(np.multiply, a, b)
        else:
            result = self.call(MATMUL, self._with_unit_stride(a), self._with_unit_stride(b))
        if len(a.shape) == len(b.shape) == 2:
            self.factors[result] = a, b
        return result

    def _with_unit_stride(self, x: Value) -> Value:
        """Return a value as BLAS takes it, because NumPy's loop without BLAS is slow."""
        if len(x.shape) == 1:
            return x if x.strides[0] == 8 or x.size <= 1 else self.contiguous(x)
        rows, columns = x.strides[-2:]
        m, n = x.shape[-2:]
        fits = (
            (columns == 8 and (rows >= 8 * n or m == 1))
            or (rows == 8 and (columns >= 8 * m or n == 1))
            or m == n == 1
        )
        return x if fits else self.contiguous(x)

    def sum_of_products(self, pairs: Sequence[tuple[Value, Value]]) -> Value:
        """Sum products of matrices, as one product of all left ones side by side and all right ones
        above each other.
        """
        if len(pairs) == 1:
            return self.matmul(*pairs[0])
        left = self.concatenated([self.transposed(p) for p, _ in pairs])
        return self.matmul(self.transposed(left), self.concatenated([q for _, q in pairs]))

    def concatenated(self, values: Sequence[Value], axis: int = 0) -> Value:
        """Concatenate arrays along an axis."""
        shape, parts, start = [*values[0].shape], [], 0
        axis %= len(shape)
        shape[axis] = sum(x.shape[axis] for x in values)
        strides = contiguous_strides(tuple(shape))
        for x in values:
            if x.size:
                parts.append(((start * strides[axis], strides), x.shape, self.number(x)))
            start += x.shape[axis]
        return self.assemble(tuple(shape), parts)

    def gather(self, x: Value, index: np.ndarray) -> Value:
        """Take elements by their indices in the flattened array: a view if these are regular."""
        x, place = self.contiguous(x), place_at(index, int(x.dtype.itemsize))
        if isinstance(place, tuple) and not x.is_constant:
            return self.part(x, index.shape, *place)
        if x.dtype == BOOL:
            return self.truth(self.gather(self.number(x), index))
        return self.call(GATHER, x, self.constant(np.ascontiguousarray(index, np.int64)))

    def written(self, before: Value, place: Place, shape: Shape, source: Value) -> Value:
        """Replace a part of an array, of a shape, by something that broadcasts to it. The place of
        the part is in a contiguous array, wherever the elements of `before` lie.
        """
        source = self.number(source)
        if shape == before.shape and place == (0, contiguous_strides(shape)):
            return self.full(source, shape)
        before = self.contiguous(self.number(before))
        kernel = Write(before.shape, (place,), (shape,), has_base=True, replaces=True)
        return self.call(kernel, before, self.broadcast(source, shape))

    def reduce(self, ufunc: np.ufunc, x: Value, axes: Sequence[int]) -> Value:
        axes = tuple(sorted(i % len(x.shape) for i in axes))
        return self.call(Reduce(ufunc, axes), x) if axes else x

    def accumulate(self, ufunc: np.ufunc, x: Value, axis: int) -> Value:
        return self.call(Accumulate(ufunc, axis % len(x.shape)), x)

    def assemble(
        self, shape: Shape, parts: Sequence[PackedPart], base: Value | None = None
    ) -> Value:
        """Add parts to zeros, or to a base; the place of a part is ``(offset, strides)``, or an
        array of indices.
        """
        parts = [x for part in parts for x in self._without_overlap(shape, *part)]
        indices: list[Any] = []
        operands = [] if base is None else [self.full(base, shape)]
        for place, _, part in parts:
            if isinstance(place, np.ndarray):
                indices.append(None)
                operands.append(self.contiguous(part) if part.shape else part)
                operands.append(self.constant(np.ascontiguousarray(place, np.int64)))
            else:
                indices.append(place)
                operands.append(part)
        shapes = tuple(at for _, at, _ in parts)
        is_whole = base is None and None not in indices
        replaces = is_whole and is_partition(shape, list(zip(indices, shapes, strict=True)))
        kernel = Assemble(shape, tuple(indices), shapes, base is not None, replaces)
        return self.call(kernel, *operands)

    def _without_overlap(
        self, shape: Shape, place: Place, at: Shape, part: Value
    ) -> Iterable[PackedPart]:
        """Split a part into parts that name each element once, because windows may overlap. An
        array of indices becomes offset and strides if they are regular.
        """
        if isinstance(place, np.ndarray) and not isinstance(regular := place_at(place), np.ndarray):
            place, part = regular, self.broadcast(part, at)
        is_listed = isinstance(place, np.ndarray) or 0 in at
        axes = [] if is_listed else [i for i, n in enumerate(at) if n > 1]
        reach = 0
        for stride, length in sorted((abs(place[1][i]), at[i]) for i in axes):
            if stride <= reach:
                break
            reach += (length - 1) * stride
        else:
            return [(place, at, part)]
        (offset, strides), full = place, self.broadcast(part, at)
        k = min(axes, key=lambda i: at[i])
        if at[k] > FEW:
            index = np.ndarray(at, np.int64, np.arange(math.prod(shape)), offset, strides)
            return [(index.copy(), at, self.contiguous(full))]
        result: list[PackedPart] = []
        left = (*at[:k], *at[k + 1 :])
        for i in range(at[k]):
            there = (offset + i * strides[k], (*strides[:k], *strides[k + 1 :]))
            piece = self.view(full, itemgetter((*(slice(None),) * k, i, Ellipsis)))
            result += self._without_overlap(shape, there, left, piece)
        return result


# Add at most this many overlapping windows in sequence, and more of them element by element.
FEW = 8
# Dummy memory for strided arrays that are never read.
_PLACE = np.zeros(1)


def place_at(indices: np.ndarray, itemsize: int = 8) -> Place:
    """Return indices as the offset and strides of a view, in bytes, if they are regular."""
    if not indices.ndim:
        return itemsize * int(indices), ()
    if not indices.size:
        return indices
    first = int(indices.flat[0])
    strides = [
        int(indices.take(1, axis).flat[0]) - first if n > 1 else 0
        for axis, n in enumerate(indices.shape)
    ]
    if np.array_equal(indices, element_places(indices.shape, strides, first, 1)):
        return itemsize * first, tuple(itemsize * stride for stride in strides)
    return np.ascontiguousarray(indices, np.int64)


def is_partition(shape: Shape, indices: Sequence[tuple[tuple[int, Shape], Shape]]) -> bool:
    """Return whether views cover an array without overlapping."""
    if sum(math.prod(at) for _, at in indices) != math.prod(shape):
        return False
    hits = np.zeros(math.prod(shape), bool)
    for (offset, strides), at in indices:
        part = np.ndarray(at, bool, hits, offset // 8, tuple(s // 8 for s in strides))
        if part.any():
            return False
        part[...] = True
    return bool(hits.all())  # a part may overlap itself
