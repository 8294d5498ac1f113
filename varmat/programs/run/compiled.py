"""The compiled part of the native runner: one loop over a table of steps, for all programs.

The loop and our own kernels are C functions called at their addresses, so each is compiled once,
and a kernel only when a program first uses it. It needs numba. The kernels that run tables
themselves are here, because they share the form of a table with the loop. The others are in
`own_kernels`.

A row of the table is ``[kind, words, ...]``. It gives every address as the number of a base and an
offset from it. The bases are absolute addresses, the scratch memory of the run, its argument and
its output, so threads share tables and bring their own memory.

    CALL        loop, data, number of operands, where the dimensions and the strides begin, then
                base and offset of each operand
    NEST        as CALL, within loops over outer axes: their number, lengths, and strides for each
                operand
    BLOCKS      runs the following rows block by block: how many words these rows have, how many
                elements there are, and how many in a block
    GUARD       truth values, their number and stride: the run ends with 1 unless all are true
    ARITHMETIC  a code, and base and offset of two numbers and of their result
    BETWEEN     base and offset of a number, and the address of two bounds: the run ends with 1
                unless the number lies between them
    PYTHON      the number of a step that calls Python: the run ends with 2 if that raises
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import cfunc, njit, types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from varmat.interrupts import from_signal, uninterrupted
from varmat.programs.run.addresses import (
    INT64,
    WORDS,
    after,
    bytes_at,
    doubles_at,
    start_of,
    words_at,
)
from varmat.programs.run.own_kernels import IN_ANY_ORDER, OWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numba.core.base import BaseContext
    from numba.core.typing import Context, Signature

    from varmat.programs.run.addresses import Intrinsic, Words
    from varmat.typing import Function, Result

CALL, NEST, BLOCKS, GUARD, PYTHON, ARITHMETIC, BETWEEN = range(7)
ABSOLUTE, SCRATCH, ARGUMENT, OUTPUT = range(4)
# Words before the rows of a table: base and offset of the first output, the address of the function
# that calls Python, and that of `run_table`.
HEADER = 4
MOST_OPERANDS, MOST_AXES = 10, 8


class _Cache(FunctionCache):  # type: ignore[misc]
    """The cache of a function on disk, where a damaged file counts as missing."""

    def load_overload(self, *args: object) -> object:
        try:
            return super().load_overload(*args)
        except Exception as error:  # unpickling a file that was cut short may raise any
            if from_signal(error):
                raise
            self.flush()
            return None


def on_disk(make: Function, function: Function) -> Any:
    """Compile a function, and cache it on disk if possible."""
    with uninterrupted():
        try:
            cache = _Cache(function)
        except RuntimeError:  # no writable folder for the cache
            return make(error_model="numpy")(function)
        try:
            made: Any = make(cache=True, error_model="numpy")(function)
        except Exception as error:  # from the cache, whose damaged files may raise any
            if from_signal(error):
                raise
            cache.flush()
            made = make(cache=True, error_model="numpy")(function)
        if isinstance(made, Dispatcher):  # it reads the cache when it is called
            vars(made)["_cache"] = cache
        return made


def _inner(function: Function) -> Result:
    """Compile a function for compiled callers only, without a wrapper for Python."""
    return njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)(
        function
    )


def calling(result: Any, *kinds: Any) -> Callable[..., Any]:
    """What generates a call of a function at an address, the first of the arguments."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        function = ir.FunctionType(result, kinds).as_pointer()
        return builder.call(builder.inttoptr(args[0], function), args[1:])

    return generate


@intrinsic
def call_loop(
    context: Context,
    loop: types.Type,
    arguments: types.Type,
    dimensions: types.Type,
    strides: types.Type,
    data: types.Type,
) -> Intrinsic:
    """Call a function with the signature of NumPy's inner loops at an address."""

    def generate(
        _: BaseContext, builder: ir.IRBuilder, __: Signature, args: Sequence[ir.Value]
    ) -> None:
        pointer = INT64.as_pointer()
        function = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer, INT64]).as_pointer()
        builder.call(builder.inttoptr(args[0], function), args[1:])

    return types.void(types.int64, WORDS, WORDS, WORDS, types.int64), generate


@intrinsic
def call_table(
    context: Context,
    function: types.Type,
    table: types.Type,
    words: types.Type,
    bases: types.Type,
    python: types.Type,
    user: types.Type,
) -> Intrinsic:
    """Call `run_table` at its address."""
    pointer = INT64.as_pointer()
    generate = calling(INT64, pointer, INT64, pointer, INT64, INT64)
    return types.int64(types.int64, WORDS, types.int64, WORDS, types.int64, types.int64), generate


@intrinsic
def call_python(
    context: Context, function: types.Type, user: types.Type, step: types.Type, bases: types.Type
) -> Intrinsic:
    """Call a function of two numbers and the bases that returns a number, at an address."""
    generate = calling(INT64, INT64, INT64, INT64.as_pointer())
    return types.int64(types.int64, types.int64, types.int64, WORDS), generate


def _on_stack(count: int) -> Result:
    @intrinsic
    def place(context: Context) -> Intrinsic:
        def generate(
            _: BaseContext, builder: ir.IRBuilder, __: Signature, args: Sequence[ir.Value]
        ) -> ir.Value:
            with builder.goto_entry_block():
                return builder.alloca(INT64, count)

        return WORDS(), generate

    return place


operands_on_stack = _on_stack(MOST_OPERANDS)
counters_on_stack = _on_stack(MOST_AXES)
given_on_stack = _on_stack(MOST_OPERANDS)
one_word_on_stack = _on_stack(1)
bases_on_stack = _on_stack(4)


def _scan(args: Words, dims: Words, steps: Words, data: int) -> None:
    """Run the table of a loop's body again and again.

    `varmat.programs.kernels.scans.NativeLoop` describes the operands.
    """
    table, number, words = words_at(data), dims[1], dims[2]
    source, target, flag = doubles_at(args[1]), doubles_at(args[2]), doubles_at(args[5])
    copied, zeroed, carried, summed = dims[3], dims[4], dims[5], dims[6]
    for j in range(copied):
        target[j] = source[j]
    for j in range(copied, copied + zeroed):
        target[j] = 0.0
    bases, part = words_at(args[0]), doubles_at(args[0] + 8 * (number + 2))
    bases[0] = 0
    bases[1] = (args[0] + 8 * (number + 2 + carried + summed) + 63) // 64 * 64
    for k in range(number):
        bases[k + 2] = args[steps[3 * k]] + steps[3 * k + 1]
    flag[0] = math.nan
    carry, total = args[2] + dims[7], doubles_at(args[2] + dims[9])
    for _ in range(dims[0]):
        if call_table(table[3], after(table, HEADER), words, bases, table[2], 0):
            return
        if carried:
            place = doubles_at(carry)
            for j in range(carried):
                place[j] += part[j]
            carry += dims[8]
        for j in range(summed):
            total[j] += part[carried + j]
        for k in range(number):
            bases[k + 2] += steps[3 * k + 2]
    flag[0] = 0.0


_OWN = {"scan": _scan, **OWN}


@cache
def own_kernel(name: str) -> int:
    """The address of one of our kernels, with the signature of NumPy's inner loops."""
    signature = types.void(WORDS, WORDS, WORDS, types.int64)
    fast = {"reassoc", "contract"} if name in IN_ANY_ORDER else False
    return on_disk(partial(cfunc, signature, fastmath=fast), _OWN[name]).address  # type: ignore[no-any-return]


@_inner
def _nest(row: Words, arguments: Words) -> None:
    """A loop within loops over outer axes, whose lengths and strides follow the operands."""
    count, axes = row[4], row[7]
    lengths = after(row, 8 + 2 * count)
    outer = after(lengths, axes)
    counters, given = counters_on_stack(), given_on_stack()
    for k in range(axes):
        counters[k] = 0
    while True:
        for j in range(count):  # a copy: some loops advance their arguments
            given[j] = arguments[j]
        call_loop(row[2], given, after(row, row[5]), after(row, row[6]), row[3])
        k = axes - 1
        while k >= 0:
            counters[k] += 1
            if counters[k] < lengths[k]:
                for j in range(count):
                    arguments[j] += outer[k * count + j]
                break
            for j in range(count):
                arguments[j] -= outer[k * count + j] * (lengths[k] - 1)
            counters[k] = 0
            k -= 1
        if k < 0:
            return


@_inner
def _arithmetic(code: int, x: float, y: float) -> float:
    if code == 0:
        return x + y
    if code == 1:
        return x - y
    if code == 2:
        return x * y
    if code == 3:
        return x / y
    if code == 4:
        return -x
    if code == 5:
        return x * x
    if code == 7:
        return math.sqrt(x)
    return x


def _run_table(table: Words, words: int, bases: Words, python: int, user: int) -> int:
    """Run all rows; returns 0, or why the run ended."""
    arguments = operands_on_stack()
    # The dimensions of a block: of elementwise loops, and of an inner product.
    length, vector = one_word_on_stack(), bases_on_stack()
    vector[0] = vector[1] = vector[3] = 1
    at = 0
    while at < words:
        row = after(table, at)
        kind = row[0]
        at += row[1]
        if kind == ARITHMETIC:
            x = doubles_at(bases[row[3]] + row[4])[0]
            y = doubles_at(bases[row[5]] + row[6])[0]
            doubles_at(bases[row[7]] + row[8])[0] = _arithmetic(row[2], x, y)
        elif kind == CALL:
            for j in range(row[4]):
                arguments[j] = bases[row[8 + 2 * j]] + row[9 + 2 * j]
            call_loop(row[2], arguments, after(row, row[5]), after(row, row[6]), row[3])
        elif kind == NEST:
            for j in range(row[4]):
                arguments[j] = bases[row[8 + 2 * j]] + row[9 + 2 * j]
            _nest(row, arguments)
        elif kind == BLOCKS:
            rows, inside, n, block = after(row, row[1]), row[2], row[3], row[4]
            for start in range(0, n, block):
                length[0] = vector[2] = min(block, n - start)
                inner = 0
                while inner < inside:
                    each = after(rows, inner)
                    inner += each[1]
                    for j in range(each[4]):
                        arguments[j] = (
                            bases[each[8 + 3 * j]] + each[9 + 3 * j] + start * each[10 + 3 * j]
                        )
                    call_loop(
                        each[2],
                        arguments,
                        vector if each[5] else length,
                        after(each, each[6]),
                        each[3],
                    )
            at += inside
        elif kind == GUARD:
            truth = bases[row[2]] + row[3]
            for _ in range(row[4]):
                if not bytes_at(truth)[0]:
                    return 1
                truth += row[5]
        elif kind == BETWEEN:
            x, bounds = doubles_at(bases[row[2]] + row[3])[0], doubles_at(row[4])
            if not bounds[0] < x < bounds[1]:
                return 1
        elif kind == PYTHON and call_python(python, user, row[2], bases):
            return 2
    return 0


run_table = on_disk(
    partial(cfunc, types.int64(WORDS, types.int64, WORDS, types.int64, types.int64)), _run_table
)


def _run(table: np.ndarray, scratch: np.ndarray, argument: np.ndarray, output: np.ndarray) -> float:
    """Run a table on arrays, and return the first output, a number; nan if the run failed.

    The caller keeps alive the memory that the addresses of the table refer to.
    """
    bases = bases_on_stack()
    bases[0], bases[1], bases[2], bases[3] = (
        0,
        start_of(scratch),
        start_of(argument),
        start_of(output),
    )
    words = words_at(start_of(table))
    if call_table(words[3], after(words, HEADER), len(table) - HEADER, bases, words[2], 0):
        return math.nan
    return doubles_at(bases[words[0]] + words[1])[0]  # type: ignore[no-any-return]


def _run_many(table: np.ndarray, bases: np.ndarray, steps: np.ndarray, values: np.ndarray) -> None:
    """Run a table again and again, with all bases given, for any number of arguments and outputs.

    Each base moves on by its number of bytes after every run; the array of bases is overwritten.
    """
    words, places = words_at(start_of(table)), words_at(start_of(bases))
    for i in range(len(values)):
        values[i] = math.nan
        if (
            call_table(words[3], after(words, HEADER), len(table) - HEADER, places, words[2], 0)
            == 0
        ):
            values[i] = doubles_at(places[words[0]] + words[1])[0]
        for k in range(len(steps)):
            bases[k] += steps[k]


run, run_many = (on_disk(partial(njit, nogil=True), each) for each in (_run, _run_many))
