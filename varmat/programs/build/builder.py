"""Making programs, and simplifying them on the way.

Steps that depend on constants alone are computed at once, equal steps are one step, views are no
steps, factors of one disappear, and numbers are taken out of products and sums of arrays. All of
this is local; passes over a whole program are in `varmat.programs.passes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.build.arithmetic import (
    ADD,
    AND,
    MULTIPLY,
    NEGATIVE,
    SIMPLER,
    SQUARE,
    SUBTRACT,
    is_number,
    is_product,
    peeled,
)
from varmat.programs.ir.kernel import Kernel
from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    Part,
    Place,
    Program,
    Shape,
    Step,
    Value,
    broadcast_strides,
    contiguous_strides,
)
from varmat.programs.kernels.elementwise import SELECT, ufunc_kernel
from varmat.programs.kernels.guards import GUARD, GuardBetween
from varmat.programs.kernels.matrices import MATMUL
from varmat.programs.kernels.places import GATHER, Assemble, Write, copy_kernel
from varmat.programs.kernels.reductions import SUM, Accumulate, Reduce

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.programs.ir.program import Array
    from varmat.typing import Linear


class Builder:
    """Collects the steps of a program.

    Attributes
    ----------
    arguments : list of Value
    steps : list of Step
    """

    def __init__(self) -> None:
        self.arguments: list[Value] = []
        self.steps: list[Step] = []
        self._known: dict[Hashable, tuple[Value, ...]] = {}
        self._numbers: dict[Hashable, Value] = {}
        # Id of an array -> its value; the arrays are held.
        self._constants: dict[int, Value] = {}
        self._held: list[np.ndarray] = []
        self._views: dict[Hashable, Value] = {}
        self._guarded: set[tuple[Kernel, Value]] = set()
        # While a check is traced: the conditions it asks for, which must hold at every run.
        self.asked: list[Value] | None = None
        # Whether the traced function asks `any` only to avoid a choice between elements.
        self.in_formula = False

    def program(self, outputs: Iterable[Value]) -> Program:
        return Program(self.arguments, self.steps, list(outputs))

    # --- values ---

    def argument(self, shape: Shape) -> Value:
        value = Value(shape)
        self.arguments.append(value)
        return value

    def constant(self, x: Array) -> Value:
        """The value of a number, or of an array, which is held by reference."""
        if isinstance(x, np.ndarray) and x.ndim:
            value = self._constants.get(id(x))
            if value is None:
                data = x if x.dtype in (FLOAT, BOOL) or x.dtype == np.int64 else x.astype(FLOAT)
                value = self._constants[id(x)] = Value(x.shape, data.dtype, data=data)
                self._held.append(x)
            return value
        number = np.asarray(x)
        number = number if number.dtype == BOOL else number.astype(FLOAT)
        key = (number.dtype.char, number.tobytes())
        if key not in self._numbers:
            self._numbers[key] = Value((), number.dtype, data=number)
        return self._numbers[key]

    def apply(self, kernel: Kernel, *operands: Value) -> tuple[Value, ...]:
        """The results of a kernel."""
        if kernel.is_pure:
            key = (kernel, *operands)
            known = self._known.get(key)
            if known is not None:
                return known
            if kernel.is_foldable and all(v.is_constant for v in operands):
                with np.errstate(all="ignore"):
                    made = tuple(
                        self.constant(np.asarray(x))
                        for x in kernel.evaluate(*(v.data for v in operands))
                    )
                self._known[key] = made
                return made
        step = Step(kernel, operands, kernel.results(*operands))
        self.steps.append(step)
        if kernel.is_pure:
            self._known[key] = step.results
        return step.results

    def call(self, kernel: Kernel, *operands: Value) -> Value:
        """The result of a kernel that makes one value."""
        return self.apply(kernel, *operands)[0]

    def inlined(self, program: Program, *arguments: Value) -> list[Value]:
        """The outputs of another program, whose steps become steps of this one."""
        known = {
            id(v): self.contiguous(x) for v, x in zip(program.arguments, arguments, strict=True)
        }

        def found(x: Value) -> Value:
            base = known.get(id(x.base), x.base)
            if not x.is_view:
                return base
            if base.is_constant:
                return self._view_of_constant(base, lambda a: x.array_in(np.ascontiguousarray(a)))
            return self.part(base, x.shape, x.offset, x.strides)

        for step in program.steps:
            made = self.apply(step.kernel, *map(found, step.operands))
            known.update(zip(map(id, step.results), made, strict=True))
        return [found(x) for x in program.outputs]

    # --- views ---

    def view(self, x: Value, how: Linear) -> Value:
        """A view of a value, taken by a function from an array to a view of it."""
        if x.is_constant:
            return self._view_of_constant(x, how)
        # An array that lies in memory as `x` does, only to see which part is taken.
        like = (
            np.lib.stride_tricks.as_strided(_PLACE, x.shape, x.strides)
            if x.size
            else np.empty(x.shape)
        )
        part = how(like)
        if not np.shape(part) and type(part) is not np.ndarray:
            raise TypeError("an element is no view")
        offset = (
            part.__array_interface__["data"][0] - like.__array_interface__["data"][0]
            if part.size and x.size
            else 0
        )
        return self.part(x, part.shape, offset, part.strides)

    def _view_of_constant(self, x: Value, how: Linear) -> Value:
        part = np.asarray(how(x.data))
        value = Value(part.shape, part.dtype, data=part)
        return value if part.ndim else self.constant(part)

    def part(self, x: Value, shape: Shape, offset: int, strides: Shape) -> Value:
        """The view that begins `offset` bytes after `x`."""
        key = (x.base, x.offset + offset, shape, strides)
        if shape == x.shape and strides == x.strides and not offset:
            return x
        value = self._views.get(key)
        if value is None:
            value = self._views[key] = x.view(shape, x.offset + offset, strides)
        return value

    def element(self, x: Value, index: int) -> Value:
        """An element of a flattened array."""
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
        """A view of a larger shape, the same along some axes."""
        if x.shape == shape:
            return x
        if x.is_constant:
            return self._view_of_constant(x, lambda a: np.broadcast_to(a, shape))
        return self.part(x, shape, 0, broadcast_strides(x.shape, x.strides, shape))

    def contiguous(self, x: Value) -> Value:
        """The same values in one piece."""
        return x if x.is_contiguous else self.call(copy_kernel(x.shape), x)

    def full(self, x: Value, shape: Shape) -> Value:
        """The values of what broadcasts, written out."""
        return self.contiguous(self.broadcast(x, shape))

    # --- arithmetic ---

    def ufunc(self, ufunc: np.ufunc, *operands: Value) -> Value:
        """A ufunc of values; arithmetic in its simplest form."""
        simple: Any = SIMPLER.get(ufunc)
        if simple is not None:
            result: Value = simple(self, *operands)
            return result
        return self.call(ufunc_kernel(ufunc), *map(self.number, operands))

    def number(self, x: Value) -> Value:
        """Truth values as numbers."""
        return (
            self.call(SELECT, x, self.constant(1.0), self.constant(0.0)) if x.dtype == BOOL else x
        )

    def compare(self, ufunc: np.ufunc, x: Value, y: Value) -> Value:
        return self.call(ufunc_kernel(ufunc), self.number(x), self.number(y))

    def logical(self, ufunc: np.ufunc, *operands: Value) -> Value:
        return self.call(ufunc_kernel(ufunc), *map(self.truth, operands))

    def truth(self, x: Value) -> Value:
        """Numbers as truth values: whether they are not zero."""
        if x.dtype == BOOL:
            return x
        if x.step is not None and x.step.kernel is SELECT:
            condition, one, zero = x.step.operands
            if is_number(one, 1.0) and is_number(zero, 0.0):
                return condition
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
        step = None if condition.is_view else condition.step
        if step is not None and step.kernel in (
            AND,
            Reduce(np.logical_and, tuple(range(len(step.operands[0].shape)))),
        ):
            for each in step.operands:  # each part of a conjunction has its own guard
                self.guard(each)
        elif not (condition.is_constant and bool(np.all(condition.data))):
            self._guard(GUARD, condition)

    def guard_between(self, x: Value, low: float, high: float) -> None:
        """End the run unless all elements lie between two numbers."""
        if x.shape:
            above = self.compare(np.greater, x, self.constant(low))
            self.guard(
                self.logical(np.logical_and, above, self.compare(np.less, x, self.constant(high)))
            )
        elif not (x.is_constant and low < float(x.data) < high):
            self._guard(GuardBetween(low, high), x)

    def _guard(self, kernel: Kernel, x: Value) -> None:
        """A guard, once for each value."""
        if (kernel, x) not in self._guarded:
            self._guarded.add((kernel, x))
            self.apply(kernel, x)

    def add_all(self, terms: Sequence[Value]) -> Value:
        """The sum of values that broadcast."""
        terms = [t for t in terms if not is_number(t, 0.0)] or list(terms[:1])
        if not terms:
            return self.constant(0.0)
        if len(terms) == 1:
            return terms[0]
        if len(terms) == 2:
            return self.ufunc(np.add, *terms)
        return self.call(SUM, *terms)

    # --- sums ---

    def sum(self, x: Value, axes: Sequence[int] | None = None) -> Value:
        """The sum over axes, of all by default; numbers are taken out, and products of two arrays
        become inner products.
        """
        x = self.number(x)
        if not x.size:
            return self.broadcast(
                self.constant(0.0),
                tuple(n for i, n in enumerate(x.shape) if axes is not None and i not in axes),
            )
        every = tuple(range(len(x.shape)))
        axes = every if axes is None else tuple(sorted(i % len(x.shape) for i in axes))
        if not axes:
            return x
        if axes == every:
            return self._total(x)
        if any(x.shape[i] == 1 for i in axes):
            index = tuple(0 if i in axes and x.shape[i] == 1 else slice(None) for i in every)
            kept = [i for i in every if index[i] != 0]
            left = [kept.index(i) for i in axes if i in kept]
            x = self.view(x, lambda a: a[(*index, Ellipsis)])
            return self.sum(x, left) if left else x
        # Along repeated axes the sum is a product with their length.
        repeated = [i for i in axes if x.strides[i] == 0 and x.shape[i] > 1]
        if repeated:
            count = math.prod(x.shape[i] for i in repeated)
            x = self.view(
                x, lambda a: a[tuple(slice(0, 1) if i in repeated else slice(None) for i in every)]
            )
            return self.ufunc(np.multiply, self.constant(float(count)), self.sum(x, axes))
        if x.step is not None and not x.is_view:
            number, rest = self._without_number(x)
            if number is not None:
                return self.ufunc(np.multiply, number, self.sum(rest, axes))
        return self.call(Reduce(np.add, axes), x)

    def _without_number(self, x: Value) -> tuple[Value | None, Value]:
        """The number of a product and the rest, of the same shape; or None and the product."""
        kernel, operands = x.step.kernel, x.step.operands  # type: ignore[union-attr]
        if kernel is NEGATIVE:
            return self.constant(-1.0), operands[0]
        if kernel is MULTIPLY and () in (operands[0].shape, operands[1].shape):
            number, rest = operands if not operands[0].shape else reversed(operands)
            return (number, rest) if rest.shape == x.shape else (None, x)
        return None, x

    def _total(self, x: Value) -> Value:
        """The sum of all elements."""
        if not x.shape:
            return x
        count = math.prod(n for n, s in zip(x.shape, x.strides, strict=True) if s == 0)
        if count > 1:  # the same along some axes
            once = self.view(
                x, lambda a: a[(*(0 if s == 0 else slice(None) for s in a.strides), Ellipsis)]
            )
            return self.ufunc(np.multiply, self.constant(float(count)), self._total(once))
        numbers, below, x = peeled(x)
        kernel = None if x.step is None or x.is_view else x.step.kernel
        if kernel in (MULTIPLY, SQUARE) and all(f.shape == x.shape for f in x.step.operands):  # type: ignore[union-attr]
            left, right = x.step.operands if kernel is MULTIPLY else x.step.operands * 2  # type: ignore[union-attr]
            (more, under, left), (others, beneath, right) = peeled(left), peeled(right)
            numbers, below = [*numbers, *more, *others], [*below, *under, *beneath]
            total = self.call(MATMUL, *(self.reshaped(f, (f.size,)) for f in (left, right)))
        else:
            total = self._sum_of_sum(x)
        for number in numbers:
            total = self.ufunc(np.multiply, number, total)
        for number in below:
            total = self.ufunc(np.divide, total, number)
        return total

    def _sum_of_sum(self, x: Value) -> Value:
        """The sum of an array. A number that is added to an array is taken out of the sum."""
        if x.step is not None and x.step.kernel in (ADD, SUBTRACT) and not x.is_view:
            left, right = x.step.operands
            if all(not side.shape or is_product(side) for side in (left, right)):
                totals = [self._total(self.broadcast(side, x.shape)) for side in (left, right)]
                return self.ufunc(np.add if x.step.kernel is ADD else np.subtract, *totals)
        return self.call(Reduce(np.add, tuple(range(len(x.shape)))), x)

    def unbroadcast(self, x: Value, whole: Shape, shape: Shape) -> Value:
        """Bring a contribution to the shape of its operand. It stands for an array of the shape
        `whole`, and may be smaller.
        """
        if x.shape == shape == whole:
            return x
        x = self.broadcast(x, whole) if x.shape else x
        if not x.shape:  # equal elements
            return self.ufunc(
                np.multiply, self.constant(float(math.prod(whole) // max(math.prod(shape), 1))), x
            )
        missing = len(whole) - len(shape)
        axes = [
            *range(missing),
            *(missing + i for i, n in enumerate(shape) if n == 1 != whole[missing + i]),
        ]
        return self.reshaped(self.sum(x, axes), shape) if axes else x

    # --- products of matrices, places ---

    def matmul(self, a: Value, b: Value) -> Value:
        return self.call(MATMUL, self._with_unit_stride(a), self._with_unit_stride(b))

    def _with_unit_stride(self, x: Value) -> Value:
        """A value as BLAS takes it: others are copied, since NumPy's loop without BLAS is slow."""
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

    def product(self, p: Value, q: Value) -> Value:
        """``p @ q``; of one column and one row the outer product."""
        return self.ufunc(np.multiply, p, q) if p.shape[-1] == 1 else self.matmul(p, q)

    def sum_of_products(self, pairs: Sequence[tuple[Value, Value]]) -> Value:
        """The sum of products of matrices, as one product of all left ones side by side and all
        right ones above each other.
        """
        if len(pairs) == 1:
            return self.product(*pairs[0])
        left = self._stacked([self.transposed(p) for p, _ in pairs])
        return self.matmul(self.transposed(left), self._stacked([q for _, q in pairs]))

    def _stacked(self, matrices: Sequence[Value]) -> Value:
        columns, parts, start = matrices[0].shape[1], [], 0
        for x in matrices:
            parts.append(((8 * columns * start, (8 * columns, 8)), x.shape, x))
            start += x.shape[0]
        return self.assemble((start, columns), parts)

    def gather(self, x: Value, index: np.ndarray) -> Value:
        """Elements by their places in the flattened array."""
        if x.dtype == BOOL:
            return self.truth(self.gather(self.number(x), index))
        return self.call(
            GATHER, self.contiguous(x), self.constant(np.ascontiguousarray(index, np.int64))
        )

    def written(self, before: Value, place: Place, shape: Shape, source: Value) -> Value:
        """An array with a part, of a shape, replaced by what broadcasts to it. The place of the
        part is that in a contiguous array, wherever the elements of `before` lie.
        """
        source = self.number(source)
        if shape == before.shape and place == (0, contiguous_strides(shape)):
            return self.full(source, shape)
        return self.call(
            Write(before.shape, place, shape),
            self.contiguous(self.number(before)),
            self.broadcast(source, shape),
        )

    def reduce(self, ufunc: np.ufunc, x: Value, axes: Sequence[int]) -> Value:
        return (
            self.call(Reduce(ufunc, tuple(sorted(i % len(x.shape) for i in axes))), x)
            if axes
            else x
        )

    def accumulate(self, ufunc: np.ufunc, x: Value, axis: int) -> Value:
        return self.call(Accumulate(ufunc, axis % len(x.shape)), x)

    def assemble(self, shape: Shape, parts: Sequence[Part], base: Value | None = None) -> Value:
        """Zeros, or a base, with parts added to it; the place of a part is ``(offset, strides)``,
        or an array of places.
        """
        places, operands = [], [] if base is None else [self.full(base, shape)]
        parts = [
            each
            for place, at, part in parts
            for each in self._without_overlap(shape, place, at, part)
        ]
        for place, _, part in parts:
            is_index = isinstance(place, np.ndarray)
            places.append(None if is_index else place)
            operands.append(self.contiguous(part) if is_index and part.shape else part)
            if is_index:
                operands.append(self.constant(np.ascontiguousarray(place, np.int64)))
        partition = (
            base is None
            and None not in places
            and is_partition(shape, [(p, s) for p, s, _ in parts])
        )
        kernel = Assemble(
            shape, tuple(places), base is not None, partition, FLOAT, tuple(s for _, s, _ in parts)
        )
        return self.call(kernel, *operands)

    def _without_overlap(
        self, shape: Shape, place: Place, at: Shape, part: Value
    ) -> Iterable[Part]:
        """A part as one or more parts that name each element once: windows may overlap."""
        axes = (
            []
            if isinstance(place, np.ndarray) or 0 in at
            else [i for i, n in enumerate(at) if n > 1]
        )
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
        left = (*at[:k], *at[k + 1 :])
        found: list[Part] = []
        for i in range(at[k]):
            there = (offset + i * strides[k], (*strides[:k], *strides[k + 1 :]))
            piece = self.part(
                full, left, i * full.strides[k], (*full.strides[:k], *full.strides[k + 1 :])
            )
            if full.is_constant:
                piece = self.constant(full.data.take(i, k))
            found += self._without_overlap(shape, there, left, piece)
        return found


# Overlapping windows up to which they are added one after the other, and not element by element.
FEW = 8
# The memory of strided arrays whose elements nobody looks at.
_PLACE = np.zeros(1)


def is_partition(shape: Shape, places: Sequence[tuple[tuple[int, Shape], Shape]]) -> bool:
    """Whether views cover an array without overlapping."""
    if sum(math.prod(at) for _, at in places) != math.prod(shape):
        return False
    hits = np.zeros(math.prod(shape), bool)
    for (offset, strides), at in places:
        part = np.ndarray(at, bool, hits, offset // 8, tuple(s // 8 for s in strides))
        if part.any():
            return False
        part[...] = True
    return True
