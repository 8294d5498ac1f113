"""The native runner: one compiled loop goes through the table of a program, without the GIL."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np

from varmat.interrupts import from_signal, kept_from_callbacks
from varmat.programs.ir.memory import Plan
from varmat.programs.ir.program import OBJECT, Program, Value
from varmat.programs.run import compiled
from varmat.programs.run.compiled import PYTHON, SCRATCH
from varmat.programs.run.table import Table, kinds
from varmat.programs.run.threads import one_blas_thread, processors

if TYPE_CHECKING:
    from varmat.programs.ir.kernel import Arrays
    from varmat.programs.ir.program import Array
    from varmat.programs.run.addresses import Words


# Bytes of scratch memory up to which a frame is kept between calls.
KEPT_BYTES = 1 << 18
# Points in the first slice of a map, and about how many seconds a later one takes at most: an
# interrupt waits for one slice.
FIRST_SLICE = 16
SLICE = 0.05
NO_STEPS = np.empty(0, np.int64)


class Frame:
    """The memory of one run at a time."""

    __slots__ = ("address", "objects", "scratch")

    def __init__(self, table: Table, plan: Plan) -> None:
        raw = np.empty(table.scratch_bytes // 8 + 16)
        start = -(raw.ctypes.data // 8) % 8
        self.scratch = raw[start:]
        self.address: int = self.scratch.ctypes.data
        self.objects: list[object] = [None] * len(plan.objects)


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
        # By the address of their scratch memory: frames at work, and errors of calls of Python.
        self._busy: dict[int, Frame] = {}
        self._raised: dict[int, BaseException] = {}
        # A callback that held the runner would keep both alive until the collector comes.
        itself = ref(self)

        def call_python(user: object, number: int, bases: Words) -> int:
            return itself()._call_python(user, number, bases)  # type: ignore[union-attr]

        self._called, self._callback = call_python, _CALLBACK(call_python)
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

    def _call_python(self, user: object, number: int, bases: Words) -> int:
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
            self._keep(bases[SCRATCH], error)
            return 1
        return 0

    def _keep(self, address: int, error: BaseException) -> None:
        """Keep an error of a run, but not instead of one that comes only once."""
        if not ((known := self._raised.get(address)) and from_signal(known)):
            self._raised[address] = error

    def _watched(self, frame: Frame) -> AbstractContextManager[None]:
        """What to run a program in: errors of its calls of Python are kept."""
        if not self.calls_python:
            return nullcontext()
        return kept_from_callbacks(self._called, partial(self._keep, frame.address))

    def _array(self, value: Value, frame: Frame, bases: Words) -> Array:
        if value.dtype is OBJECT:
            return frame.objects[self._plan.objects[id(value)]]
        base = value.base
        if base.data is not None:
            return value.array_in(base.data)
        number, offset = self._table.place(value)
        if number == SCRATCH:
            return np.ndarray(value.shape, value.dtype, frame.scratch, offset, value.strides)
        memory: Array = (ctypes.c_double * max(base.size, 1)).from_address(
            bases[number] + self._table.place(base)[1]
        )
        return np.ndarray(value.shape, value.dtype, memory, value.offset, value.strides)

    def __call__(self, arguments: Arrays) -> list[Array]:
        frame = self.take_frame()
        results: list[Array]
        if self._single:
            (argument,) = arguments
            gradient = np.empty(self._shapes[0])
            place = gradient
            if not (argument.ndim == 1 and argument.flags.c_contiguous):
                argument, place = argument.ravel(), gradient.reshape(-1)
            if self.calls_python:
                with self._watched(frame):
                    value = compiled.run(self.table, frame.scratch, argument, place)
            else:
                value = compiled.run(self.table, frame.scratch, argument, place)
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
            # One argument and one place for outputs always come first.
            arrays = [
                *(given[:1] or [self.table]),
                *(places[:1] or [self.table]),
                *given[1:],
                *places[1:],
            ]
            bases = np.array([0, frame.address, *(x.ctypes.data for x in arrays)], np.int64)
            with self._watched(frame):
                compiled.run_many(self.table, bases, NO_STEPS, values := np.empty(1))
            value = float(values[0])
            if places is not results:
                ends = np.cumsum([v.size for v in made])
                for x, end in zip(results, ends, strict=True):
                    x[...] = places[0][end - x.size : end].reshape(x.shape)
            results = [x if x.ndim else float(x) for x in results]
        # The value may be finite: after an error before a callback begins, ctypes returns anything.
        raised = self._raised.pop(frame.address, None) if self.calls_python else None
        self.give_frame(frame)
        if raised is not None:
            raise raised
        return [value, *results]

    @one_blas_thread()
    def map(
        self,
        points: np.ndarray,
        values: np.ndarray,
        gradients: np.ndarray,
        workers: int | None = None,
    ) -> None:
        """Run at many points, in threads, by default one for each processor; a value is nan where
        the run ended, as by an error of a step that calls Python.

        A row of `points` has all arguments one after the other, a row of `gradients` all outputs
        but the first. Signals are looked for between slices of points."""
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
        if self.calls_python:  # threads would only take turns
            workers = 1
        count = min(workers or processors(), len(points))
        shares = np.array_split(np.arange(len(points)), count) if count else []
        is_stopped = False

        def work(share: np.ndarray) -> None:
            frame, start, count = self.take_frame(), int(share[0]), FIRST_SLICE
            try:
                while start <= share[-1] and not is_stopped:
                    end, begun = min(start + count, int(share[-1]) + 1), time.perf_counter()
                    run(frame, slice(start, end))
                    took = time.perf_counter() - begun
                    start, count = end, count * 2 if took < 0.5 * SLICE else max(1, count // 2)
            finally:
                self.give_frame(frame)

        def run(frame: Frame, here: slice) -> None:
            pairs = [(flat[here], starts[0]), (places[here], starts[1])]
            given, made = ([x.ctypes.data + int(at) for at in each] for x, each in pairs)
            arguments, results = ([x.strides[0]] * len(each) for x, each in pairs)
            bases = [0, frame.address, *given[:1], *made[:1], *given[1:], *made[1:]]
            steps = [0, 0, *arguments[:1], *results[:1], *arguments[1:], *results[1:]]
            with self._watched(frame):
                compiled.run_many(
                    self.table, np.array(bases, np.int64), np.array(steps, np.int64), values[here]
                )
            raised = self._raised.pop(frame.address, None)
            if raised is not None and from_signal(raised):
                raise raised

        if len(shares) < 2:
            for share in shares:
                work(share)
            return
        with ThreadPoolExecutor(len(shares)) as executor:
            try:
                list(executor.map(work, shares))
            finally:
                is_stopped = True  # a signal ends the other threads too

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
        """Give memory back. Large memory goes to the allocator, which keeps it warm for the next
        run.
        """
        if self.calls_python:
            del self._busy[frame.address]
            frame.objects = [None] * len(frame.objects)
        if self._table.scratch_bytes <= KEPT_BYTES:
            self._frames.append(frame)
