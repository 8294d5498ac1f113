"""What compiled code reads and writes at an address; needs numba.

This is compiled into functions of other modules, which numba keeps on disk until their own file
changes. What means something else from now on therefore gets another name.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

INT64 = ir.IntType(64)
WORDS, DOUBLES, BYTES = (
    types.CPointer(types.int64),
    types.CPointer(types.float64),
    types.CPointer(types.uint8),
)


def _pointer_to(kind: Any, element: Any) -> Any:
    @intrinsic
    def at(context: Any, address: Any) -> Any:
        return kind(types.int64), lambda _, builder, __, args: builder.inttoptr(
            args[0], element.as_pointer()
        )

    return at


words_at = _pointer_to(WORDS, INT64)
doubles_at = _pointer_to(DOUBLES, ir.DoubleType())
bytes_at = _pointer_to(BYTES, ir.IntType(8))


@intrinsic
def start_of(context: Any, array: Any) -> Any:
    """The address of the elements of an array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        return builder.ptrtoint(context.make_array(kind)(context, builder, args[0]).data, INT64)

    return types.int64(array), generate


@intrinsic
def address_of(context: Any, pointer: Any) -> Any:
    return types.int64(pointer), lambda _, builder, __, args: builder.ptrtoint(args[0], INT64)


@intrinsic
def after(context: Any, words: Any, count: Any) -> Any:
    return WORDS(WORDS, types.int64), lambda _, builder, __, args: builder.gep(args[0], [args[1]])
