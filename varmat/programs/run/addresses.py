"""What compiled code reads and writes at an address; needs numba.

This is compiled into functions of other modules, which numba keeps on disk until their own file
changes. What means something else from now on therefore gets another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Protocol

    from numba.core.base import BaseContext
    from numba.core.typing import Context, Signature

    from varmat.typing import Result

    # What makes an intrinsic: its signature, and what writes its instructions.
    Intrinsic = tuple[Signature, Callable[..., ir.Value | None]]

    class Words(Protocol):
        """Integers of 64 bits that lie one after the other, at an address or in an array."""

        def __getitem__(self, place: int, /) -> int: ...
        def __setitem__(self, place: int, word: int, /) -> None: ...

    class Doubles(Protocol):
        """Numbers that lie one after the other."""

        def __getitem__(self, place: int, /) -> float: ...
        def __setitem__(self, place: int, number: float, /) -> None: ...


INT64 = ir.IntType(64)
WORDS, DOUBLES, BYTES = (
    types.CPointer(types.int64),
    types.CPointer(types.float64),
    types.CPointer(types.uint8),
)


def _pointer_to(kind: types.Type, element: ir.Type) -> Result:
    @intrinsic
    def at(context: Context, address: types.Type) -> Intrinsic:
        return kind(types.int64), lambda _, builder, __, args: builder.inttoptr(
            args[0], element.as_pointer()
        )

    return at


words_at = _pointer_to(WORDS, INT64)
doubles_at = _pointer_to(DOUBLES, ir.DoubleType())
bytes_at = _pointer_to(BYTES, ir.IntType(8))


@intrinsic
def start_of(context: Context, array: types.Type) -> Intrinsic:
    """The address of the elements of an array."""

    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        kind = signature.args[0]
        return builder.ptrtoint(context.make_array(kind)(context, builder, args[0]).data, INT64)

    return types.int64(array), generate


@intrinsic
def address_of(context: Context, pointer: types.Type) -> Intrinsic:
    return types.int64(pointer), lambda _, builder, __, args: builder.ptrtoint(args[0], INT64)


@intrinsic
def after(context: Context, words: types.Type, count: types.Type) -> Intrinsic:
    return WORDS(WORDS, types.int64), lambda _, builder, __, args: builder.gep(args[0], [args[1]])
