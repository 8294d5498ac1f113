"""The native runner: a program as a table of steps, each the inner loop of a ufunc, run by one
compiled loop without the GIL.

A ufunc of NumPy or SciPy holds the addresses of its loops, of one signature: ``loop(args,
dimensions, strides, data)``. Before the loops of a ufunc are trusted, one is called and compared
with what the ufunc itself gives."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from weakref import ref

import numpy as np

from varmat.programs.blocks import BLOCK, product_of
from varmat.programs.blocks import Loop as Blocks
from varmat.programs.kernels import Sum, Ufunc
from varmat.programs.memory import Plan
from varmat.programs.program import BOOL, OBJECT, Program, Shape, Value
from varmat.programs.runners import compiled
from varmat.programs.runners.compiled import (
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

Loop = tuple[int, int]
# Bytes of scratch memory up to which it is kept between calls.
LARGE = 1 << 18
NO_STEPS = np.empty(0, np.int64)
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


class NoLoopError(Exception):
    """A ufunc has no loop that can be called."""


@cache
def loop_of(ufunc: np.ufunc, signature: str) -> Loop:
    """The address and the data of a loop of a ufunc, for types as in "dd->d"; raises `NoLoopError`
    if there is none.

    The fields are those of ``PyUFuncObject`` in NumPy's C API: an object head, four ints,
    ``functions`` and ``data``."""
    if signature not in ufunc.types:
        raise NoLoopError(f"{ufunc.__name__} has no loop for {signature}")
    if any(
        "d" in each.partition("->")[0] and set(each.partition("->")[0]) & set("ilq")
        for each in ufunc.types
    ):
        # Functions of integers, which warn in their loops of whatever is none.
        raise NoLoopError(f"{ufunc.__name__} is one of integers")
    head = object.__basicsize__
    counts = [ctypes.c_int.from_address(id(ufunc) + head + at).value for at in (0, 4)]
    if counts != [ufunc.nin, ufunc.nout]:
        raise NoLoopError("ufuncs of this NumPy are laid out in another way")
    at, pointers = ufunc.types.index(signature), ctypes.POINTER(ctypes.c_void_p)
    functions = ctypes.cast(
        ctypes.c_void_p.from_address(id(ufunc) + head + 16).value or 0, pointers
    )
    all_data = ctypes.c_void_p.from_address(id(ufunc) + head + 24).value
    data = ctypes.cast(all_data, pointers)[at] or 0 if all_data else 0
    loop = functions[at] or 0
    if not loop:
        raise NoLoopError(f"{ufunc.__name__} has no loop at an address")
    if ufunc.signature is None:
        _verify(ufunc, signature, loop, data)
    return loop, data


_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _verify(ufunc: np.ufunc, signature: str, loop: int, data: int) -> None:
    """Call a loop, and compare with the ufunc."""
    inputs, _, outputs = signature.partition("->")
    points = np.array([0.3, 0.7, 0.9])
    arrays = [points.astype(np.dtype(char)) for char in inputs] + [
        np.zeros(3, np.dtype(char)) for char in outputs
    ]
    with np.errstate(all="ignore"):
        expected = ufunc(*arrays[: ufunc.nin])
        addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        strides = (ctypes.c_ssize_t * len(arrays))(*(a.itemsize for a in arrays))
        _LOOP(loop)(addresses, (ctypes.c_ssize_t * 1)(3), strides, data)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for made, true in zip(arrays[ufunc.nin :], expected, strict=True):
        if not np.array_equal(made, true, equal_nan=True):
            raise NoLoopError(f"a loop of {ufunc.__name__} gives {made}, but the ufunc {true}")


def call_loop(
    loop: int, arrays: Sequence[np.ndarray], dims: Sequence[int], steps: Sequence[int], data: int
) -> None:
    """Call a loop at an address, without the GIL."""
    addresses = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    _LOOP(loop)(
        addresses,
        (ctypes.c_ssize_t * len(dims))(*dims),
        (ctypes.c_ssize_t * len(steps))(*steps),
        data,
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
        self.held: list[Any] = []
        self._plan = plan
        self._places: dict[int, tuple[int, int]] = {}
        self._numbers: dict[float, Value] = {}
        # One argument, and all outputs one after the other, have a base together; several arguments
        # one each, and so the outputs.
        several, at = len(program.arguments) > 1, 0
        for i, value in enumerate(program.arguments):
            self._places[id(value)] = (ARGUMENT if i == 0 else OUTPUT + i, 0)
        first = OUTPUT + len(program.arguments) - 1
        self.output_places: list[tuple[int, int]] = []
        for number, value in enumerate(program.outputs[1:], 1):
            place = (
                (OUTPUT if number == 1 else first + number - 1, 0) if several else (OUTPUT, 8 * at)
            )
            if plan.outputs.get(id(value)) == number:
                self._places[id(value)] = place
            self.output_places.append(place)
            at += value.size
        self.output_size = at
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
        # What numbers go through is computed on the spot.
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
        start = 8 + 2 * len(operands)
        row = [
            CALL,
            start + len(dims) + len(steps),
            *loop,
            len(operands),
            start,
            start + len(dims),
            0,
        ]
        for value in operands:
            row += self.place(value)
        self.words += [*row, *dims, *steps]

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
        start = 8 + 2 * len(operands) + len(lengths) * (1 + len(operands))
        row = [
            NEST,
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
        shape, strides = merged(result.shape, [_aligned(v, result.shape) for v in values])
        if 0 in shape:
            return
        if not shape:
            shape, strides = [1], [[0] * len(values)]
        # The longest axis goes inside, unless the last one is long enough.
        inner = len(shape) - 1
        # NumPy's loops of `isfinite` and `signbit` are wrong with other strides
        if shape[inner] < 16 and result.dtype != BOOL:
            longest = max(range(len(shape)), key=lambda i: shape[i])
            # So is its loop of `negative` where the operand's elements are 64 bytes apart and those
            # of the result not 8.
            inner = inner if loop == self._negative and abs(strides[longest][0]) == 64 else longest
        order = [i for i in range(len(shape)) if i != inner]
        self.nest(
            loop,
            values,
            [shape[i] for i in order],
            [strides[i] for i in order],
            (shape[inner],),
            strides[inner],
        )

    def reduce(self, ufunc: Any, x: Value, axes: Sequence[int], result: Value) -> None:
        """A reduction: the loop of the ufunc with the result as an operand."""
        kind = "?" if x.dtype == BOOL else "d"
        loop = self.loop_of(ufunc, f"{kind * 2}->{kind}")
        if kind == "?":
            raise NoLoopError("truth values")
        first = (
            ufunc.identity
            if ufunc.identity is not None
            else {np.maximum: -math.inf, np.minimum: math.inf}[ufunc]
        )
        self.elementwise(self.loop_of(np.positive, "d->d"), [self.number(float(first))], result)
        kept = iter(result.strides)
        out = [0 if i in axes else next(kept) for i in range(len(x.shape))]
        shape, strides = merged(x.shape, [out, x.strides, out])
        if 0 in shape:
            return
        if not shape:
            shape, strides = [1], [[0, 0, 0]]
        inner = min(range(len(shape)), key=lambda i: (abs(strides[i][1]), -shape[i]))
        order = [i for i in range(len(shape)) if i != inner]
        lengths, outer = [shape[i] for i in order], [strides[i] for i in order]
        self.nest(loop, [result, x, result], lengths, outer, (shape[inner],), strides[inner])

    def accumulate(self, ufunc: Any, x: Value, axis: int, result: Value) -> None:
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
        """A generalised ufunc, whose loop takes one leading axis; `leading` is how many each
        operand has.
        """
        shape = operands[-1].shape[: leading[-1]]
        aligned = [
            _aligned_strides(v.shape[:n], v.strides[:n], shape)
            for v, n in zip(operands, leading, strict=True)
        ]
        lengths, strides = merged(shape, aligned)
        if 0 in shape:
            return
        inner, first = (lengths[-1], strides[-1]) if lengths else (1, [0] * len(operands))
        self.nest(loop, operands, lengths[:-1], strides[:-1], (inner, *core), (*first, *steps))

    def loop(self, kernel: Any, operands: Sequence[Value], results: Sequence[Value]) -> None:
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
        self, kernel: Any, step: Any, places: dict[int, Any], total: Value | None
    ) -> list[int]:
        def argument(value: Value) -> tuple[list[int], int]:
            """The base, the offset and the bytes from element to element across blocks, and inside
            of one.
            """
            size = value.dtype.itemsize
            key = id(value) if id(value) in places else id(value.base)
            if key in kernel.place_of_temporary:
                kind, number = kernel.place_of_temporary[key]
                return [SCRATCH, self._blocks_at[kind] + number * BLOCK * size, 0], size
            _, now = places[key]
            stride = kernel.stride(value)
            return [*self.place(now), stride], stride

        rows: list[int] = []

        def add(
            loop: Loop,
            arguments: list[tuple[list[int], int]],
            steps: Sequence[int] = (),
            vectors: bool = False,
        ) -> None:
            """A row, which is given the number of elements, or the dimensions of an inner product
            of vectors.
            """
            start = 8 + 3 * len(arguments)
            inner = [*(steps or [inside for _, inside in arguments])]
            row = [CALL, start + len(inner), *loop, len(arguments), int(vectors), start, 0]
            rows.extend([*row, *(word for each, _ in arguments for word in each), *inner])

        operands, product = [argument(v) for v in step.operands], product_of(step)
        if product is not None:
            matrix, vector = operands[product.matrix], operands[1 - product.matrix]
            columns = step.operands[product.matrix].shape[1 - product.axis]
            out = argument(step.results[0]) if total is None else ([*self.place(total), 0], 0)
            add(
                self.own("add_rows" if product.is_sum else "times_rows"),
                [matrix, vector, out],
                (matrix[1], columns),
            )
            return rows
        if total is not None:
            out, loop = ([*self.place(total), 0], 0), self.loop_of(np.add, "dd->d")
            if len(operands) == 1:
                add(loop, [out, operands[0], out])
            else:
                share = ([SCRATCH, self._share, 0], 0)
                add(
                    self.loop_of(np.matmul, "dd->d"),
                    [*operands, share],
                    (0, 0, 0, 8, 8, 8, 8, 8, 8),
                    vectors=True,
                )
                add(loop, [out, share, out], (0, 0, 0), vectors=True)
            return rows
        result = argument(step.results[0])
        if isinstance(step.kernel, Sum):
            loop, total_so_far = self.loop_of(np.add, "dd->d"), operands[0]
            for each in operands[1:]:
                add(loop, [total_so_far, each, result])
                total_so_far = result
        elif isinstance(step.kernel, Ufunc):
            add(
                self.loop_of(step.kernel.ufunc, step.kernel.signature(step.operands, step.results)),
                [*operands, result],
            )
        else:
            add(self.own("select"), [*operands, result])
        return rows

    def guard(self, condition: Value) -> None:
        for shape, offset, stride in _lines(condition):
            base, at = self.place(condition)
            self.words += [GUARD, 6, base, at + offset, shape, stride]

    def guard_between(self, x: Value, low: float, high: float) -> None:
        bounds = np.array([low, high])
        self.held.append(bounds)
        self.words += [BETWEEN, 5, *self.place(x), bounds.ctypes.data]


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


def _aligned(value: Value, shape: Shape) -> list[int]:
    return _aligned_strides(value.shape, value.strides, shape)


def _aligned_strides(shape: Shape, strides: Shape, whole: Shape) -> list[int]:
    """The strides of an array as if it had been broadcast to a shape."""
    missing = len(whole) - len(shape)
    return [0] * missing + [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]


def merged(
    shape: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[list[int], list[list[int]]]:
    """The axes of several arrays, with neighbours that are one line in all of them as one; for each
    axis the strides of all.
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


class Frame:
    """The memory of one run at a time."""

    __slots__ = ("address", "objects", "scratch")

    def __init__(self, table: Table, plan: Plan) -> None:
        raw = np.empty(table.scratch_bytes // 8 + 16)
        start = -(raw.ctypes.data // 8) % 8
        self.scratch = raw[start:]
        self.address: int = self.scratch.ctypes.data
        self.objects: list[Any] = [None] * len(plan.objects)


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
)


class NativeRunner:
    """Runs a program; safe from several threads at once, without the GIL but for steps that call
    Python.

    Parameters
    ----------
    program : Program
    numbers : bool
        Whether outputs that are numbers are computed where they are returned, as arrays are: for
        bodies of loops.
    """

    name = "native"

    def __init__(self, program: Program, numbers: bool = False) -> None:
        self.program, self._plan = program, Plan(program, numbers)
        made = Table(program, self._plan)
        self._table = made
        self._frames: list[Frame] = []
        # Frames at work, by the address of their scratch memory, and what was raised in a call of
        # Python.
        self._busy: dict[int, Frame] = {}
        self._raised: dict[int, BaseException] = {}
        # a callback that held the runner would keep both until the collector comes
        itself = ref(self)

        def call_python(user: Any, number: int, bases: Any) -> int:
            return itself()._call_python(user, number, bases)  # type: ignore[union-attr]

        self._callback = _CALLBACK(call_python)
        self.python = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.table = np.array(
            [*made.place(program.outputs[0]), self.python, compiled.run_table.address, *made.words],
            np.int64,
        )
        self.calls_python = any(kind == PYTHON for kind in kinds(made.words))
        self.scratch_bytes = made.scratch_bytes
        shapes = [v.shape for v in program.outputs[1:]]
        self._shapes = shapes
        self._single = (
            len(program.arguments) == 1 and bool(program.arguments[0].shape) and len(shapes) == 1
        )

    def _call_python(self, user: int, number: int, bases: Any) -> int:
        try:
            frame, step = self._busy[bases[SCRATCH]], self.program.steps[number]
            with np.errstate(all="ignore"):
                made = step.kernel.evaluate(*[self._array(v, frame, bases) for v in step.operands])
                for value, x in zip(step.results, made, strict=True):
                    if value.dtype is OBJECT:
                        frame.objects[self._plan.objects[id(value)]] = x
                    else:
                        self._array(value, frame, bases)[...] = x
        except BaseException as error:
            self._raised[bases[SCRATCH]] = error
            return 1
        return 0

    def _array(self, value: Value, frame: Frame, bases: Any) -> Any:
        if value.dtype is OBJECT:
            return frame.objects[self._plan.objects[id(value)]]
        base = value.base
        if base.data is not None:
            return (
                value.data
                if not value.is_view
                else np.ndarray(value.shape, value.dtype, base.data, value.offset, value.strides)
            )
        number, offset = self._table.place(value)
        if number == SCRATCH:
            return np.ndarray(value.shape, value.dtype, frame.scratch, offset, value.strides)
        memory: Any = (ctypes.c_double * max(base.size, 1)).from_address(
            bases[number] + self._table.place(base)[1]
        )
        return np.ndarray(value.shape, value.dtype, memory, value.offset, value.strides)

    def __call__(self, arguments: Any) -> list[Any]:
        frame, results = self.take_frame(), list[Any]()
        if self._single:
            (argument,) = arguments
            gradient = np.empty(self._shapes[0])
            if argument.ndim == 1 and argument.flags.c_contiguous:
                value = compiled.run(self.table, frame.scratch, argument, gradient)
            else:
                value = compiled.run(
                    self.table, frame.scratch, argument.ravel(), gradient.reshape(-1)
                )
            results = [gradient]
        else:
            given = [
                np.ascontiguousarray(x, v.dtype)
                for x, v in zip(arguments, self.program.arguments, strict=True)
            ]
            made = self.program.outputs[1:]
            results = [np.empty(v.shape, v.dtype) for v in made]
            places = results
            if len(given) < 2:  # all outputs one after the other
                places = [np.empty(self._table.output_size)]
            # An argument and a place for outputs come first, whether there are any or not.
            arrays = [
                *(given[:1] or [self.table]),
                *(places[:1] or [self.table]),
                *given[1:],
                *places[1:],
            ]
            bases = np.array([0, frame.address, *(x.ctypes.data for x in arrays)], np.int64)
            compiled.run_many(self.table, bases, NO_STEPS, values := np.empty(1))
            value = float(values[0])
            if places is not results:
                ends = np.cumsum([v.size for v in made])
                for x, end in zip(results, ends, strict=True):
                    x[...] = places[0][end - x.size : end].reshape(x.shape)
            results = [x if x.ndim else float(x) for x in results]
        raised = self._raised.pop(frame.address, None) if value != value else None
        self.give_frame(frame)
        if raised is not None:
            raise raised
        return [value, *results]

    def map(
        self, points: np.ndarray, values: np.ndarray, gradients: np.ndarray, workers: int
    ) -> None:
        """Run at many points, in threads; a value is nan where the run ended.

        A row of `points` has all arguments one after the other, a row of `gradients` all outputs
        but the first."""
        flat, places = points.reshape(len(points), -1), gradients.reshape(len(points), -1)
        sizes = [v.size for v in self.program.arguments], [v.size for v in self.program.outputs[1:]]
        in_order = flat.flags.c_contiguous and places.flags.c_contiguous
        if (flat.shape[1], places.shape[1]) != tuple(map(sum, sizes)) or not in_order:
            raise ValueError(
                f"the points have shape {points.shape} and the places {gradients.shape}, which do "
                "not fit the program"
            )
        starts = [
            8 * np.cumsum([0, *each[:-1]]) for each in (sizes if len(sizes[0]) > 1 else ([0], [0]))
        ]
        if self.calls_python:  # which would only take turns
            workers = 1
        shares = [s for s in np.array_split(np.arange(len(points)), workers) if len(s)]

        def work(share: np.ndarray) -> None:
            frame = self.take_frame()
            here = slice(share[0], share[-1] + 1)
            try:
                pairs = [(flat[here], starts[0]), (places[here], starts[1])]
                given, made = ([x.ctypes.data + int(at) for at in each] for x, each in pairs)
                arguments, results = ([x.strides[0]] * len(each) for x, each in pairs)
                bases = [0, frame.address, *given[:1], *made[:1], *given[1:], *made[1:]]
                steps = [0, 0, *arguments[:1], *results[:1], *arguments[1:], *results[1:]]
                compiled.run_many(
                    self.table, np.array(bases, np.int64), np.array(steps, np.int64), values[here]
                )
            finally:
                self.give_frame(frame)

        if len(shares) < 2:
            for share in shares:
                work(share)
        else:
            with ThreadPoolExecutor(len(shares)) as executor:
                list(executor.map(work, shares))
        for address in [*self._raised]:
            raise self._raised.pop(address)

    def take_frame(self) -> Frame:
        """Memory for a run."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = Frame(self._table, self._plan)
        if self.calls_python:
            self._busy[frame.address] = frame
        return frame

    def give_frame(self, frame: Frame) -> None:
        """Give memory back: what is large goes back to the allocator, which has it warm for the
        next.
        """
        if self.calls_python:
            del self._busy[frame.address]
            frame.objects = [None] * len(frame.objects)
        if self._table.scratch_bytes <= LARGE:
            self._frames.append(frame)


def kinds(words: Sequence[int]) -> list[int]:
    """The kinds of the rows of a table."""
    found, at = [], 0
    while at < len(words):
        found.append(words[at])
        at += words[at + 1]
    return found
