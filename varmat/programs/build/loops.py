"""Loops and branches of functions of arrays: a function is traced once, and becomes the body of a
`Loop` or a `Branch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.build.symbol import Symbol, builder_of, called, is_symbol, lift
from varmat.programs.kernels.branch import Branch
from varmat.programs.kernels.loop import Loop

if TYPE_CHECKING:
    from varmat.typing import Function, Operand


def loop(
    body: Function,
    trips: int,
    carried: Sequence[object],
    rows: Sequence[object] = (),
    shared: Sequence[object] = (),
    *,
    backwards: bool = False,
    ends: bool = False,
) -> list[Operand]:
    """Run a loop over symbols; return the last carry, then the stacked outputs.

    Parameters
    ----------
    body : callable
        A function of the carry, a row of each of the rows, and the shared operands. It returns a
        list of the next carry and a list of outputs to stack or, if the loop `ends`, a truth value:
        whether to go on.
    trips : int
    carried, rows, shared : sequence of Symbol or array
        At least one is a symbol.
    backwards, ends : bool
        See `Loop`.
    """
    inputs, inner = [*carried, *rows, *shared], Builder()
    outer = builder_of(*inputs)
    values = [lift(outer, x) for x in inputs]
    first, last = len(carried), len(carried) + len(rows)
    arguments = (
        Symbol(inner, inner.argument(v.shape[1:] if first <= i < last else v.shape))
        for i, v in enumerate(values)
    )
    after, remainder = body(*arguments)
    outputs = [inner.number(lift(inner, x)) for x in (*after, *(() if ends else remainder))]
    if ends:
        outputs.append(inner.truth(lift(inner, remainder)))
    kernel = Loop(
        inner.program(outputs),
        trips,
        first,
        len(rows),
        0 if ends else len(remainder),
        backwards=backwards,
        ends=ends,
    )
    return called(kernel, *(Symbol(outer, v) for v in values))


def branch(number: object, bodies: Sequence[Function], *operands: object) -> list[Symbol]:
    """Return the results of one of several functions of symbols, chosen by a number as in `Branch`.

    Parameters
    ----------
    number : Symbol
        The number of the function, or a truth value.
    bodies : sequence of callable
        Each returns a list, of the same shapes.
    *operands : Symbol or array
        The arguments of each function.
    """
    outer, programs = builder_of(number), []
    values = [lift(outer, x) for x in operands]
    for body in bodies:
        inner = Builder()
        result = body(*(Symbol(inner, inner.argument(v.shape)) for v in values))
        programs.append(inner.program([inner.number(lift(inner, x)) for x in result]))
    chosen = Symbol(outer, outer.number(lift(outer, number)))
    return called(Branch(programs), chosen, *(Symbol(outer, v) for v in values))


def each_trip(
    body: Function,
    trips: int,
    carried: Sequence[Operand],
    rows: Sequence[Operand],
    shared: Sequence[Operand],
    *,
    backwards: bool = False,
) -> list[Operand]:
    """Return the results of `loop` for symbols, and the same for arrays and variables."""
    if any(map(is_symbol, (*carried, *rows, *shared))):
        return loop(body, trips, carried, rows, shared, backwards=backwards)
    way, result = -1 if backwards else 1, []
    for t in range(trips)[::way]:
        carried, stacked = body(*carried, *(x[t] for x in rows), *shared)
        result.append(stacked)
    return [*carried, *(np.stack(x) for x in zip(*result[::way], strict=True))]
