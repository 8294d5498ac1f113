"""The bodies of loops while they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.programs.ir.program import ElsewhereError, Program, Step, Value
from varmat.programs.kernels.elementwise import Ufunc
from varmat.programs.kernels.loop import Loop
from varmat.programs.kernels.python_calls import PythonCall
from varmat.programs.passes import optimised
from varmat.programs.record.tape_programs import TapeProgram

if TYPE_CHECKING:
    from varmat.programs.ir.program import Array


class Rows(NamedTuple):
    """What differs from trip to trip.

    Attributes
    ----------
    value : Value
        With a leading axis of trips.
    contribute : callable, optional
        Takes a contribution to its adjoint; None for data.
    """

    value: Value
    contribute: Callable[[Value], object] | None = None


class Body:
    """The program of a trip while it is written.

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
        """The kernel, and the operands without those carried; arguments that nothing reads are left
        out.
        """
        builder, n = self.written.builder, len(self.carried)
        given = [*self.carried, *(v for v, _ in self.rows), *(v for v, _ in self.shared)]
        outputs = [builder.full(builder.number(v), v.shape) for v in outputs]
        program = optimised(Program(given, builder.steps, outputs))
        read = {id(v.base) for v in chain(*(s.operands for s in program.steps), program.outputs)}
        wanted = [i for i, v in enumerate(program.arguments) if i < n or id(v) in read]
        sliced = sum(n <= i < n + len(self.rows) for i in wanted)
        program.arguments = [program.arguments[i] for i in wanted]
        outside = [*(rows.value for _, rows in self.rows), *(v for _, v in self.shared)]
        loop = Loop(program, self.trips, n, sliced, stacked, backwards=backwards)
        return loop, [outside[i - n] for i in wanted if i >= n]

    def fold(self) -> bool:
        """Compute now what depends on data alone, for all trips; False if a guard does not hold."""
        known: dict[int, Array] = {
            id(v): rows.value.data for v, rows in self.rows if rows.value.is_constant
        }
        if not known:
            return True
        builder = self.written.builder
        steps, made, holds = builder.steps[:], [], True
        builder.steps.clear()
        for step in steps:
            bases = [v.base for v in step.operands]
            if (
                not any(id(v) in known for v in bases)
                or not all(id(v) in known or v.is_constant for v in bases)
                or isinstance(step.kernel, (PythonCall, Loop))
            ):
                builder.steps.append(step)
                continue
            try:
                found = self._of_data(step, known)
            except ElsewhereError:
                builder.steps.append(step)
                holds = False
                continue
            for value, array in zip(step.results, found, strict=True):
                known[id(value)] = array
                made.append((value, array))
        for value, array in made:
            # From now on it is an argument.
            value._step = None
            self.rows.append((value, Rows(Value(array.shape, array.dtype, data=array))))
        return holds

    def _of_data(self, step: Step, known: dict[int, Array]) -> list[Array]:
        """The results of a step in all trips."""
        values = [*step.operands, *step.results]
        if isinstance(step.kernel, Ufunc) and not any(v.shape or v.is_view for v in values):
            with np.errstate(all="ignore"):
                given: list[Array] = [known.get(id(v), v.data) for v in step.operands]
                return [np.asarray(x) for x in step.kernel.evaluate(*given)]
        found = []
        with np.errstate(all="ignore"):
            for t in range(self.trips):
                arrays = (
                    v.array_in(v.base.data if v.base.is_constant else known[id(v.base)][t])
                    for v in step.operands
                )
                found.append(step.kernel.evaluate(*arrays))
        return [np.array([each[i] for each in found], v.dtype) for i, v in enumerate(step.results)]
