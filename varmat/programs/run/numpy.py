"""The NumPy runner: a program as a list of calls, bound to arrays.

An instance has separate memory, and keeps no results between calls. Threads that run at the same
time take separate instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.interrupts import from_signal
from varmat.programs.ir.memory import Plan
from varmat.programs.ir.program import OBJECT, ElsewhereError, Program, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from varmat.programs.ir.kernel import Arrays, Run
    from varmat.programs.ir.program import Array, Output, Step
    from varmat.typing import Threads

    T = TypeVar("T")

# Elements from which arguments and results are not copied. The steps that use them are then bound
# again at every call.
LARGE = 1 << 12


class Instance:
    """The memory of one run at a time, and the calls bound to it."""

    def __init__(self, program: Program, plan: Plan) -> None:
        self._program, self._plan = program, plan
        self._scratch = np.empty(plan.scratch_bytes // 8 + 8)
        self._start = -(self._scratch.ctypes.data // 8) % 8 * 8
        result = [v for v in program.outputs if id(v) in plan.outputs]
        own = [*program.arguments, *result]
        self._arrays: dict[int, Any] = {
            id(v): np.empty(v.shape, v.dtype) for v in own if v.size <= LARGE
        }
        self.arguments = [self._arrays.get(id(v)) for v in program.arguments]
        # Arrays that every run is given, or makes.
        self._deferred = {id(v) for v in own if v.size > LARGE}
        self._late_outputs = [v for v in result if id(v) in self._deferred]
        self._deferred_steps = [
            i
            for i, step in enumerate(program.steps)
            if any(id(v.base) in self._deferred for v in (*step.operands, *step.results))
        ]
        deferred = set(self._deferred_steps)
        self.calls: list[Any] = [
            None if i in deferred else self._bound(step) for i, step in enumerate(program.steps)
        ]

    def _bound(self, step: Step) -> Run:
        run: Run = step.kernel.bind(
            [self._array(v) for v in step.operands], [self._array(v) for v in step.results]
        )
        return run

    def _array(self, value: Value) -> Array:
        base = value.base
        full = base.data if base.data is not None else self._arrays.get(id(base))
        if full is None:
            full = self._arrays[id(base)] = self._new(base)
        return value.array_in(full)

    def _new(self, base: Value) -> Any:
        if base.dtype is OBJECT:
            return [None]
        at = self._start + self._plan.scratch[id(base)]
        return np.ndarray(base.shape, base.dtype, self._scratch, at)

    def run(self, arguments: Arrays) -> list[Output]:
        """Return the outputs: the first as a float, others as new arrays and floats."""
        program, arrays = self._program, self._arrays
        for place, value, x in zip(self.arguments, program.arguments, arguments, strict=True):
            if place is None:
                arrays[id(value)] = np.ascontiguousarray(x, value.dtype)
            else:
                place[...] = x
        arrays.update((id(v), np.empty(v.shape)) for v in self._late_outputs)
        for i in self._deferred_steps:
            self.calls[i] = self._bound(program.steps[i])
        try:
            return self._called()
        finally:
            for i in self._deferred_steps:
                self.calls[i] = None
            for key in self._deferred:
                arrays.pop(key, None)
            for key in self._plan.objects:
                if key in arrays:
                    arrays[key][0] = None

    def _called(self) -> list[Output]:
        for call in self.calls:
            call()
        args = {id(v) for v in self._late_outputs}
        results: list[Output] = []
        for value in self._program.outputs:
            array = self._array(value)
            if not value.shape:
                results.append(float(array))
            elif id(value) in args:  # a separate array, which is given away once
                args.remove(id(value))
                results.append(array)
            else:
                results.append(np.array(array, order="C"))
        return results


class NumpyRunner:
    """Runs a program; safe from several threads at once."""

    name = "numpy"

    def __init__(self, program: Program) -> None:
        self._program, self._plan = program, Plan(program)
        self._instances: list[Instance] = []

    def __call__(self, arguments: Arrays) -> list[Output]:
        return self.lent(lambda instance: instance.run(arguments))

    def at(self, x: Array) -> list[Output]:
        return self([x])

    def map(
        self, arguments: Sequence[Array], outputs: Sequence[Array], executor: Threads = None
    ) -> None:
        """Run at many points as `NativeRunner.map`, in one thread."""
        for i in range(len(outputs[0])):
            try:
                result = self([x[i] for x in arguments])
            except (ArithmeticError, ValueError, ElsewhereError) as error:
                if from_signal(error):
                    raise
                outputs[0][i] = np.nan
            else:
                for rows, x in zip(outputs, result, strict=True):
                    rows[i] = x

    def lent(self, use: Callable[[Instance], T]) -> T:
        """Call a function with an instance that nothing else uses meanwhile."""
        try:
            instance = self._instances.pop()
        except IndexError:
            instance = Instance(self._program, self._plan)
        try:
            with np.errstate(all="ignore"):
                return use(instance)
        finally:
            self._instances.append(instance)
