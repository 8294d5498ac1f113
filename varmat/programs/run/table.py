"""The table of a program: its steps as rows of words, which `compiled.run_table` runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from varmat.plain_arrays import BLOCK
from varmat.programs.ir.memory import Plan
from varmat.programs.ir.program import BOOL, Program, Value, broadcast_strides
from varmat.programs.kernels import Sum, Ufunc
from varmat.programs.passes.blocks import Loop as Blocks
from varmat.programs.passes.blocks import product_of
from varmat.programs.run import compiled
from varmat.programs.run.compiled import (
    ABSOLUTE,
    ARGUMENT,
    ARITHMETIC,
    BETWEEN,
    BLOCKS,
    CALL,
    GUARD,
    NEST,
    OUTPUT,
    PYTHON,
    SCRATCH,
)
from varmat.programs.run.loops import Loop, NoLoopError, loop_of

if TYPE_CHECKING:
    from varmat.programs.ir.program import Step

# In the order of their codes in `compiled.run_table`.
ARITHMETIC_OF = (
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.negative,
    np.square,
    np.positive,
    np.sqrt,
)


class Table:
    """Collects the rows of a program.

    Attributes
    ----------
    words : list of int
    held : list
        What addresses in the rows refer to.
    """

    def __init__(self, program: Program, plan: Plan) -> None:
        self.words: list[int] = []
        self.held: list[object] = []
        self._plan = plan
        self._places: dict[int, tuple[int, int]] = {}
        self._numbers: dict[float, Value] = {}
        self.output_places: list[tuple[int, int]] = []
        self._place_arguments_and_outputs(program)
        # Behind the scratch memory of the plan: blocks of numbers, blocks of truth values, and a
        # number.
        loops = [
            step.kernel.place_of_temporary.values()
            for step in program.steps
            if isinstance(step.kernel, Blocks)
        ]
        most = {
            kind: max((n + 1 for each in loops for k, n in each if k == kind), default=0)
            for kind in (False, True)
        }
        self._share = -(-plan.scratch_bytes // 64) * 64
        self._blocks_at = {
            False: self._share + 64,
            True: self._share + 64 + most[False] * BLOCK * 8,
        }
        self.scratch_bytes = self._blocks_at[True] + most[True] * BLOCK
        # Loops that become arithmetic if the result is a single number.
        self._negative = loop_of(np.negative, "d->d")
        self._arithmetic = {
            loop_of(ufunc, "d" * ufunc.nin + "->d"): code
            for code, ufunc in enumerate(ARITHMETIC_OF)
        }
        self._program = program
        for i, step in enumerate(program.steps):
            start = len(self.words)
            try:
                if not step.kernel.is_native:
                    raise NoLoopError
                step.kernel.rows(self, step.operands, step.results)
            except NoLoopError:
                del self.words[start:]
                self.words += [PYTHON, 3, i]
        copy = loop_of(np.positive, "d->d")
        for value, place in zip(program.outputs[1:], self.output_places, strict=True):
            if self._places.get(id(value)) != place and value.size:
                output = Value(value.shape)
                self._places[id(output)] = place
                self.held.append(output)
                self.elementwise(copy, [value], output)

    def _place_arguments_and_outputs(self, program: Program) -> None:
        # A single argument has a base, and all outputs together have another. With several
        # arguments, each argument and each output has its own.
        several, at = len(program.arguments) > 1, 0
        for i, value in enumerate(program.arguments):
            self._places[id(value)] = (ARGUMENT if i == 0 else OUTPUT + i, 0)
        first = OUTPUT + len(program.arguments) - 1
        for number, value in enumerate(program.outputs[1:], 1):
            place = (
                (OUTPUT if number == 1 else first + number - 1, 0) if several else (OUTPUT, 8 * at)
            )
            if self._plan.outputs.get(id(value)) == number:
                self._places[id(value)] = place
            self.output_places.append(place)
            at += value.size
        self.output_size = at

    # --- places ---

    def place(self, value: Value) -> tuple[int, int]:
        """The base of a value, and its offset from there."""
        base = value.base
        known = self._places.get(id(base))
        if known is None:
            if base.data is not None:
                self.held.append(base.data)
                known = ABSOLUTE, base.data.__array_interface__["data"][0]
            else:
                known = SCRATCH, self._plan.scratch[id(base)]
            self._places[id(base)] = known
        return known[0], known[1] + value.offset

    def number(self, x: float) -> Value:
        """A constant."""
        if x not in self._numbers:
            self._numbers[x] = Value((), data=np.asarray(x))
        return self._numbers[x]

    def is_same_place(self, x: Value, y: Value) -> bool:
        return self.place(x) == self.place(y)

    # --- rows ---

    loop_of = staticmethod(loop_of)

    def own(self, name: str) -> Loop:
        """A kernel of our own."""
        return compiled.own_kernel(name), 0

    def call(
        self, loop: Loop, operands: Sequence[Value], dims: Sequence[int], steps: Sequence[int]
    ) -> None:
        """One call of a loop."""
        self._calls(CALL, loop, operands, (), (), dims, steps)

    def nest(
        self,
        loop: Loop,
        operands: Sequence[Value],
        lengths: Sequence[int],
        outer: Sequence[Sequence[int]],
        dims: Sequence[int],
        steps: Sequence[int],
    ) -> None:
        """Calls of a loop within loops; `outer` has the strides of all operands for each outer
        axis.
        """
        if not lengths:
            self.call(loop, operands, dims, steps)
            return
        if len(lengths) > compiled.MOST_AXES:
            raise NoLoopError("too many axes")
        if 0 in lengths:
            return
        self._calls(NEST, loop, operands, lengths, outer, dims, steps)

    def _calls(
        self,
        kind: int,
        loop: Loop,
        operands: Sequence[Value],
        lengths: Sequence[int],
        outer: Sequence[Sequence[int]],
        dims: Sequence[int],
        steps: Sequence[int],
    ) -> None:
        start = 8 + 2 * len(operands) + len(lengths) * (1 + len(operands))
        row = [
            kind,
            start + len(dims) + len(steps),
            *loop,
            len(operands),
            start,
            start + len(dims),
            len(lengths),
        ]
        for value in operands:
            row += self.place(value)
        row += [*lengths, *(s for strides in outer for s in strides)]
        self.words += [*row, *dims, *steps]

    def elementwise(self, loop: Loop, operands: Sequence[Value], result: Value) -> None:
        """A loop over all elements of a result, to which the operands broadcast."""
        values = [*operands, result]
        if result.size == 1 and loop in self._arithmetic:
            places = (*self.place(values[0]), *self.place(values[-2]), *self.place(result))
            self.words += [ARITHMETIC, 9, self._arithmetic[loop], *places]
            return
        if len(values) > compiled.MOST_OPERANDS:
            raise NoLoopError("too many operands")
        shape, strides = merged(
            result.shape, [broadcast_strides(v.shape, v.strides, result.shape) for v in values]
        )
        if 0 in shape:
            return
        if not shape:
            shape, strides = [1], [[0] * len(values)]
        # The longest axis goes inside, unless the last one is long enough.
        inner = len(shape) - 1
        # NumPy's loops of `isfinite` and `signbit` are wrong with other strides
        if shape[inner] < 16 and result.dtype != BOOL:
            longest = max(range(len(shape)), key=lambda i: shape[i])
            # So is its loop of `negative` if the operand's elements are 64 bytes apart and those of
            # the result are not 8.
            inner = inner if loop == self._negative and abs(strides[longest][0]) == 64 else longest
        self._nest_around(inner, loop, values, shape, strides)

    def _nest_around(
        self,
        inner: int,
        loop: Loop,
        operands: Sequence[Value],
        shape: Sequence[int],
        strides: Sequence[Sequence[int]],
    ) -> None:
        """A loop along one axis within loops over the others."""
        order = [i for i in range(len(shape)) if i != inner]
        lengths, outer = [shape[i] for i in order], [strides[i] for i in order]
        self.nest(loop, operands, lengths, outer, (shape[inner],), strides[inner])

    def reduce(self, ufunc: np.ufunc, x: Value, axes: Sequence[int], result: Value) -> None:
        """A reduction: the loop of the ufunc with the result as an operand."""
        if x.dtype == BOOL:
            raise NoLoopError("truth values")
        loop = self.loop_of(ufunc, "dd->d")
        extremes: dict[np.ufunc, float] = {np.maximum: -math.inf, np.minimum: math.inf}
        first = extremes[ufunc] if ufunc.identity is None else ufunc.identity
        self.elementwise(self.loop_of(np.positive, "d->d"), [self.number(float(first))], result)
        kept = iter(result.strides)
        out = [0 if i in axes else next(kept) for i in range(len(x.shape))]
        shape, strides = merged(x.shape, [out, x.strides, out])
        if 0 in shape:
            return
        if not shape:
            shape, strides = [1], [[0, 0, 0]]
        inner = min(range(len(shape)), key=lambda i: (abs(strides[i][1]), -shape[i]))
        self._nest_around(inner, loop, [result, x, result], shape, strides)

    def accumulate(self, ufunc: np.ufunc, x: Value, axis: int, result: Value) -> None:
        """Running results: each is made of the one before."""
        n = x.shape[axis]
        if not x.size:
            return
        others = [i for i in range(len(x.shape)) if i != axis]

        def line(value: Value, start: int) -> Value:
            strides = tuple(value.strides[i] for i in others)
            view = value.view(
                tuple(value.shape[i] for i in others),
                value.offset + start * value.strides[axis],
                strides,
            )
            self.held.append(view)
            return view

        self.elementwise(self.loop_of(np.positive, "d->d"), [line(x, 0)], line(result, 0))
        if n > 1:
            operands = [line(result, 0), line(x, 1), line(result, 1)]
            strides = [[v.strides[k] for v in operands] for k in range(len(others))]
            steps = [v.strides[axis] for v in (result, x, result)]
            self.nest(
                self.loop_of(ufunc, "dd->d"),
                operands,
                [x.shape[i] for i in others],
                strides,
                (n - 1,),
                steps,
            )

    def gufunc(
        self,
        loop: Loop,
        operands: Sequence[Value],
        leading: Sequence[int],
        core: Sequence[int],
        steps: Sequence[int],
    ) -> None:
        """A generalised ufunc, whose loop takes one leading axis; `leading` counts those of each
        operand.
        """
        shape = operands[-1].shape[: leading[-1]]
        aligned = [
            broadcast_strides(v.shape[:n], v.strides[:n], shape)
            for v, n in zip(operands, leading, strict=True)
        ]
        lengths, strides = merged(shape, aligned)
        if 0 in shape:
            return
        inner, first = (lengths[-1], strides[-1]) if lengths else (1, [0] * len(operands))
        self.nest(loop, operands, lengths[:-1], strides[:-1], (inner, *core), (*first, *steps))

    def loop(self, kernel: Blocks, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Rows that are run block by block."""
        places = {id(v): (v, x) for v, x in zip(kernel.outside, operands, strict=True)}
        places |= {id(v): (v, x) for v, x in zip(kernel.kept, results, strict=False)}
        for total in results[len(kernel.kept) :]:
            self.elementwise(self.loop_of(np.positive, "d->d"), [self.number(0.0)], total)
        totals = dict(zip(map(id, kernel.sums), results[len(kernel.kept) :], strict=True))
        rows: list[int] = []
        for step in kernel.steps:
            rows += self._loop_row(kernel, step, places, totals.get(id(step)))
        self.words += [BLOCKS, 5, len(rows), kernel.size, kernel.block, *rows]

    def _loop_row(
        self,
        kernel: Blocks,
        step: Step,
        places: dict[int, tuple[Value, Value]],
        total: Value | None,
    ) -> list[int]:
        """The rows of a step within a block; `total` gets the sum of what it makes."""
        argument = partial(self._argument, kernel, places)
        operands, product = [argument(v) for v in step.operands], product_of(step)
        if product is not None:
            matrix, vector = operands[product.matrix], operands[1 - product.matrix]
            columns = step.operands[product.matrix].shape[1 - product.axis]
            out = argument(step.results[0]) if total is None else ([*self.place(total), 0], 0)
            return _block_row(
                self.own("add_rows" if product.is_sum else "times_rows"),
                [matrix, vector, out],
                (matrix[1], columns),
            )
        if total is not None:
            out, loop = ([*self.place(total), 0], 0), self.loop_of(np.add, "dd->d")
            if len(operands) == 1:
                return _block_row(loop, [out, operands[0], out])
            share = ([SCRATCH, self._share, 0], 0)
            product_row = _block_row(
                self.loop_of(np.matmul, "dd->d"),
                [*operands, share],
                (0, 0, 0, 8, 8, 8, 8, 8, 8),
                vectors=True,
            )
            return product_row + _block_row(loop, [out, share, out], (0, 0, 0), vectors=True)
        result = argument(step.results[0])
        if isinstance(step.kernel, Sum):
            loop, total_so_far = self.loop_of(np.add, "dd->d"), operands[0]
            rows: list[int] = []
            for each in operands[1:]:
                rows += _block_row(loop, [total_so_far, each, result])
                total_so_far = result
            return rows
        if isinstance(step.kernel, Ufunc):
            signature = step.kernel.signature(step.operands, step.results)
            loop = self.loop_of(step.kernel.ufunc, signature)
        else:
            loop = self.own("select")
        return _block_row(loop, [*operands, result])

    def _argument(
        self, kernel: Blocks, places: dict[int, tuple[Value, Value]], value: Value
    ) -> tuple[list[int], int]:
        """The base, the offset, and the bytes of an element from block to block and inside."""
        size = value.dtype.itemsize
        key = id(value) if id(value) in places else id(value.base)
        if key in kernel.place_of_temporary:
            kind, number = kernel.place_of_temporary[key]
            return [SCRATCH, self._blocks_at[kind] + number * BLOCK * size, 0], size
        _, now = places[key]
        stride = kernel.stride(value)
        return [*self.place(now), stride], stride

    def guard(self, condition: Value) -> None:
        for shape, offset, stride in _lines(condition):
            base, at = self.place(condition)
            self.words += [GUARD, 6, base, at + offset, shape, stride]

    def guard_between(self, x: Value, low: float, high: float) -> None:
        bounds = np.array([low, high])
        self.held.append(bounds)
        self.words += [BETWEEN, 5, *self.place(x), bounds.ctypes.data]


def _block_row(
    loop: Loop,
    arguments: Sequence[tuple[list[int], int]],
    steps: Sequence[int] = (),
    vectors: bool = False,
) -> list[int]:
    """A row within a block, which is given the number of elements, or the dimensions of an inner
    product of vectors.
    """
    start = 8 + 3 * len(arguments)
    inner = [*(steps or [inside for _, inside in arguments])]
    row = [CALL, start + len(inner), *loop, len(arguments), int(vectors), start, 0]
    return [*row, *(word for each, _ in arguments for word in each), *inner]


def _lines(value: Value) -> list[tuple[int, int, int]]:
    """The elements of a value as lines: count, offset, stride."""
    lengths, strides = merged(value.shape, [value.strides])
    if 0 in lengths:
        return []
    if not lengths:
        return [(1, 0, 0)]
    lines = []
    for index in np.ndindex(*lengths[:-1]):
        lines.append(
            (
                lengths[-1],
                sum(i * s[0] for i, s in zip(index, strides, strict=False)),
                strides[-1][0],
            )
        )
    return lines


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """The lengths of the axes of several arrays, and for each axis the strides of all. Neighbouring
    axes that are one line in all arrays are merged.
    """
    lengths: list[int] = []
    found: list[list[int]] = []
    for i, n in enumerate(shape):
        if n == 1:
            continue
        here = [s[i] for s in strides]
        if lengths and all(
            before == n * each for before, each in zip(found[-1], here, strict=True)
        ):
            lengths[-1] *= n
            found[-1] = here
        else:
            lengths.append(n)
            found.append(here)
    return lengths, found


def kinds(words: Sequence[int]) -> list[int]:
    """The kinds of the rows of a table."""
    found, at = [], 0
    while at < len(words):
        found.append(words[at])
        at += words[at + 1]
    return found
