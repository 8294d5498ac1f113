"""The NumPy runner: a program as a list of calls, bound to arrays.

An instance has memory of its own, and keeps no results between calls. Threads that run at the same
time take instances of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from varmat.interrupts import from_signal
from varmat.programs.ir.memory import Plan
from varmat.programs.ir.program import FLOAT, OBJECT, ElsewhereError, Program, Value
from varmat.programs.passes.blocks import by_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from varmat.programs.ir.kernel import Arrays, Run
    from varmat.programs.ir.program import Array, Step

    T = TypeVar("T")

# Elements from which arguments and results are not copied. The steps that use them are then bound
# anew at every call.
LARGE = 1 << 12


class Instance:
    """The memory of one run at a time, and the calls bound to it."""

    def __init__(self, program: Program, plan: Plan) -> None:
        self._arrays: dict[int, Array] = {}
        self._program, self._plan = program, plan
        self._scratch = np.empty(plan.scratch_bytes // 8 + 8)
        self._start = -(self._scratch.ctypes.data // 8) % 8 * 8
        self.arguments: list[Array] = []
        late = set()
        for value in program.arguments:
            if value.size > LARGE:
                late.add(id(value))
                self.arguments.append(None)
            else:
                self._arrays[id(value)] = np.empty(value.shape)
                self.arguments.append(self._arrays[id(value)])
        for value in program.outputs:
            if id(value) in plan.outputs:
                if value.size > LARGE:
                    late.add(id(value))
                else:
                    self._arrays[id(value)] = np.empty(value.shape)
        self._late = late
        self._late_steps: list[int] = []
        self.calls: list[Array] = []
        for i, step in enumerate(program.steps):
            if any(id(v.base) in late for v in (*step.operands, *step.results)):
                self._late_steps.append(i)
                self.calls.append(None)
            else:
                self.calls.append(self._bound(step))

    def _bound(self, step: Step) -> Run:
        run: Run = step.kernel.bind(
            [self._array(v) for v in step.operands], [self._array(v) for v in step.results]
        )
        return run

    def _array(self, value: Value) -> Array:
        base = value.base
        if base.data is not None:
            whole = base.data
        else:
            whole = self._arrays.get(id(base))
            if whole is None:
                whole = self._arrays[id(base)] = self._new(base)
        return value.array_in(whole)

    def _new(self, base: Value) -> Array:
        if base.dtype is OBJECT:
            return [None]
        return np.ndarray(
            base.shape, base.dtype, self._scratch, self._start + self._plan.scratch[id(base)]
        )

    def run(self, arguments: Arrays) -> list[Array]:
        """The outputs: the first as a float, others as new arrays and floats."""
        program, arrays = self._program, self._arrays
        for place, value, x in zip(self.arguments, program.arguments, arguments, strict=True):
            if place is None:
                arrays[id(value)] = np.ascontiguousarray(x, FLOAT)
            else:
                place[...] = x
        late = self._late
        if late:
            for value in program.outputs:
                if id(value) in late and value.step is not None:
                    arrays[id(value)] = np.empty(value.shape)
            for i in self._late_steps:
                self.calls[i] = self._bound(program.steps[i])
        try:
            return self._called(late)
        finally:
            for i in self._late_steps:
                self.calls[i] = None
            for key in late:
                arrays.pop(key, None)
            for key in self._plan.objects:
                if key in arrays:
                    arrays[key][0] = None

    def _called(self, late: set[int]) -> list[Array]:
        for call in self.calls:
            call()
        given: set[int] = set()
        results: list[Array] = []
        for value in self._program.outputs:
            array = self._array(value)
            if not value.shape:
                results.append(float(array))
            elif id(value) in late and value.step is not None and id(value) not in given:
                given.add(id(value))
                results.append(array)
            else:
                results.append(np.array(array, order="C"))
        return results


class NumpyRunner:
    """Runs a program; safe from several threads at once."""

    name = "numpy"

    def __init__(self, program: Program) -> None:
        self._program = by_blocks(program)
        self._plan = Plan(self._program)
        self._instances: list[Instance] = []

    def __call__(self, arguments: Arrays) -> list[Array]:
        return self.lent(lambda instance: instance.run(arguments))

    def map(
        self, arguments: Sequence[Array], outputs: Sequence[Array], workers: int | None = None
    ) -> None:
        """As `NativeRunner.map`, in one thread."""
        for i in range(len(outputs[0])):
            try:
                made = self([x[i] for x in arguments])
            except (ArithmeticError, ValueError, ElsewhereError) as error:
                if from_signal(error):
                    raise
                outputs[0][i] = np.nan
            else:
                for rows, x in zip(outputs, made, strict=True):
                    rows[i] = x

    def lent(self, use: Callable[[Instance], T]) -> T:
        """What a function makes with an instance that is its own for as long."""
        try:
            instance = self._instances.pop()
        except IndexError:
            instance = Instance(self._program, self._plan)
        try:
            with np.errstate(all="ignore"):
                return use(instance)
        finally:
            self._instances.append(instance)
