"""The bodies of loops while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from varmat.programs.ir.program import Program, Value
from varmat.programs.kernels.loop import Loop
from varmat.programs.passes import optimised
from varmat.programs.record.tape_programs import RecordedVariable, TapeProgram


class Rows(NamedTuple):
    """Values that differ between iterations.

    Attributes
    ----------
    value : Value
        With a leading axis of iterations.
    contribute : callable, optional
        Takes a contribution to its adjoint; None for data.
    """

    value: Value
    contribute: Callable[[Value], object] | None = None


class TripBody:
    """The program of an iteration while it is written.

    Attributes
    ----------
    written : TapeProgram
    carried : list of Value
        Its first arguments.
    rows, shared : list of tuple
        Its other arguments, each with the value outside, as `Rows` for rows.
    """

    def __init__(self, trips: int) -> None:
        self.written, self.trips = TapeProgram(), trips
        self.carried: list[Value] = []
        self.rows: list[tuple[Value, Rows]] = []
        self.shared: list[tuple[Value, Value]] = []

    def loop(
        self, outputs: Sequence[Value], stacked: int, *, backwards: bool = False
    ) -> tuple[Loop, list[Value]]:
        """Return the kernel, and the operands without the carry; arguments that nothing reads are
        left out.
        """
        builder, n = self.written.builder, len(self.carried)
        inputs = [*self.carried, *(v for v, _ in self.rows), *(v for v, _ in self.shared)]
        outputs = [builder.full(builder.number(v), v.shape) for v in outputs]
        program = optimised(Program(inputs, builder.steps, outputs))
        read = {id(v.base) for v in chain(*(s.operands for s in program.steps), program.outputs)}
        requested = [i for i, v in enumerate(program.arguments) if i < n or id(v) in read]
        sliced = sum(n <= i < n + len(self.rows) for i in requested)
        program.arguments = [program.arguments[i] for i in requested]
        outside = [*(rows.value for _, rows in self.rows), *(v for _, v in self.shared)]
        loop = Loop(program, self.trips, n, sliced, stacked, backwards=backwards)
        return loop, [outside[i - n] for i in requested if i >= n]


def write_total(
    outer: TapeProgram, variable: object, first: RecordedVariable, total: RecordedVariable
) -> None:
    """Write a sum after a loop that only added to it: its earlier value, and the terms."""
    node = outer.node(variable, outer.builder.ufunc(np.add, first.value, total.value))

    def back() -> None:
        for x in (first, total):
            if not x.value.is_constant:
                x.contributions.append(outer.adjoint(node))  # type: ignore[arg-type]

    outer.back((node,), back)
