"""Loops in programs: the program of the body runs again and again, each run on the results of the
last.

All numbers lie in a few blocks; the arguments and results of the body are parts of them:

    history    (T + 1, n + k)  in each row the n numbers that are carried, then the k numbers that
                               the step made
    rows       (T, q)          what each step takes
    shared     (m,)            what all steps take

Backwards, a copy of the adjoints of the history accumulates the contributions of later steps. The
sum of the adjoints of `shared` follows it in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from varmat.programs.ir.program import FLOAT, Layout, Program, Shape, Step, Value
from varmat.programs.kernels import Guard, GuardBetween, Kernel, Ufunc
from varmat.programs.passes import without_dead_steps

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner
    from varmat.typing import Operand

# Where a part lies: its operand, the bytes to it there, and the bytes from one run to the next.
Part: TypeAlias = tuple[int, int, int]


class Sizes:
    """How many numbers each leaf has: leaves carried, of a step, made by a step, and shared."""

    def __init__(
        self,
        carried: Sequence[Shape],
        rows: Sequence[Shape],
        made: Sequence[Shape],
        shared: Sequence[Shape],
    ) -> None:
        self.shapes = [list(carried), list(rows), list(shared), list(made)]
        self.carried, self.rows, self.shared, self.made = (
            [math.prod(s) for s in each] for each in self.shapes
        )
        self.n, self.q, self.m, self.k = (
            sum(each) for each in (self.carried, self.rows, self.shared, self.made)
        )
        self.width = self.n + self.k


def with_guards(program: Program) -> Program:
    """The same program, with one step instead of two for each guard of a finite number."""
    steps = [
        Step(GuardBetween(-math.inf, math.inf), [x], [])
        if (x := _finite(step)) is not None
        else step
        for step in program.steps
    ]
    return without_dead_steps(Program(program.arguments, steps, program.outputs))


def without_guards(program: Program, first: int, of_others: bool) -> Program:
    """The same program without some guards.

    Without those that depend on arguments from number `first` on or, if `of_others`, without all
    other guards.
    """
    depending = {id(x) for x in program.arguments[first:]}
    steps = []
    for step in program.steps:
        depends = any(id(x.base) in depending for x in step.operands)
        if depends:
            depending.update(map(id, step.results))
        if depends is of_others or not isinstance(step.kernel, (Guard, GuardBetween)):
            steps.append(step)
    return without_dead_steps(Program(program.arguments, steps, program.outputs))


def has_guards(program: Program) -> bool:
    return any(isinstance(step.kernel, (Guard, GuardBetween)) for step in program.steps)


def _finite(step: Step) -> Value | None:
    """The number that a guard requires to be finite; None for other steps."""
    if not isinstance(step.kernel, Guard):
        return None
    made = step.operands[0].step
    if (
        made is None
        or not isinstance(made.kernel, Ufunc)
        or made.kernel.ufunc is not np.isfinite
        or made.operands[0].shape
    ):
        return None
    return made.operands[0]


def _places(operand: int, start: int, step: int, sizes: Sequence[int]) -> list[Part]:
    """The places of leaves that lie one after the other in an operand."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [(operand, start + 8 * at, step) for at in ends[:-1]]


class NativeLoop:
    """A loop as one call of `compiled._scan`.

    Its operands are a work array (addresses for the body, its contributions to adjoints, its
    scratch memory), the source and the target of the initial copy, the rows, what is shared, a flag
    (zero if all steps were run, nan otherwise) and, backwards, the history and the adjoints of the
    rows.

    Parameters
    ----------
    runner : NativeRunner
        Of the values of the body, or of its contributions to adjoints.
    sizes : Sizes
    count : int
        Steps.
    in_rows : bool or None
        Backwards, whether there are adjoints of the rows; None for the values.
    """

    def __init__(
        self, runner: NativeRunner, sizes: Sizes, count: int, in_rows: bool | None
    ) -> None:
        from varmat.programs.run import compiled

        self.runner, self.count = runner, count
        arguments, results = (
            self._forward(sizes) if in_rows is None else self._backward(sizes, count, in_rows)
        )
        if len(arguments) == 1:  # the results then have one base and lie one after the other
            results = results[:1]
        bases = [*arguments[:1], *results[:1], *arguments[1:], *results[1:]]
        row, back = 8 * sizes.width, in_rows is not None
        self.strides = [word for each in bases for word in each]
        whole = (count + 1) * sizes.width
        self.dims = [count, len(bases), len(runner.table) - compiled.HEADER]
        self.dims += [whole, sizes.m, sizes.n, sizes.m] if back else [sizes.n, sizes.k, 0, 0]
        self.dims += [(count - 1) * row, -row, 8 * whole]
        # Forward, nothing stands between the addresses and the scratch memory.
        self.work = len(bases) + 2 + back * (sizes.n + sizes.m) + runner.scratch_bytes // 8 + 9
        self.address = runner.table.ctypes.data
        self.kernel = compiled.own_kernel("scan")

    def _forward(self, sizes: Sizes) -> tuple[list[Part], list[Part]]:
        row = 8 * sizes.width
        arguments = [
            *_places(2, 0, row, sizes.carried),
            *_places(3, 0, 8 * sizes.q, sizes.rows),
            *_places(4, 0, 0, sizes.shared),
        ]
        return arguments, _places(2, row, row, [*sizes.carried, *sizes.made])

    def _backward(self, sizes: Sizes, count: int, in_rows: bool) -> tuple[list[Part], list[Part]]:
        row, line, last = 8 * sizes.width, 8 * sizes.q, count - 1
        arguments = [
            *_places(6, last * row, -row, sizes.carried), *_places(3, last * line, -line,
             sizes.rows),
            *_places(4, 0, 0, sizes.shared), *_places(2, count * row, -row,
             [*sizes.carried, *sizes.made]),
        ]  # fmt: skip
        rows = _places(7, last * line, -line, sizes.rows) if in_rows else []
        number = 2 + len(arguments) + len(sizes.carried) + len(rows) + len(sizes.shared)
        results = [
            *_places(0, 8 * number, 0, sizes.carried),
            *rows,
            *_places(0, 8 * (number + sizes.n), 0, sizes.shared),
        ]
        return arguments, results

    def __call__(self, *arrays: np.ndarray) -> bool:
        """Run it on the operands but the work array and the flag; False if a step failed."""
        from varmat.programs.run.loops import call_loop

        flag = np.empty(1)
        operands = [np.empty(self.work), *arrays[:4], flag, *arrays[4:]]
        call_loop(self.kernel, operands, self.dims, self.strides, self.address)
        return bool(flag[0] == 0.0)


class Loop(Kernel):
    is_native = False

    """The history of a loop (`in_rows` is None) or its adjoints.

    `body` is a `varmat.solvers.scan.Body`.
    """

    def __init__(self, body: Any, in_rows: bool | None) -> None:
        self.body, self.in_rows = body, in_rows
        self.name = "scan" if in_rows is None else "scan.reverse"

    def results(self, *operands: Value) -> list[Layout]:
        sizes, count = self.body.sizes, operands[1].shape[0]
        loop = self._native(count)
        work = 0 if loop is None else loop.work
        if self.in_rows is None:
            shapes: list[Shape] = [(count + 1, sizes.width), (), (work,)]
        else:
            shapes = [
                ((count + 1) * sizes.width + sizes.m,),
                (count * self.in_rows, sizes.q),
                (),
                (work,),
            ]
        return [(shape, FLOAT) for shape in shapes]

    def evaluate(self, *operands: np.ndarray) -> tuple[Operand, ...]:
        made = (
            self.body.forward(*operands)
            if self.in_rows is None
            else self.body.backward(*operands, self.in_rows)
        )
        made = made if isinstance(made, tuple) else (made,)
        loop = self._native(len(operands[1]))
        return (*made, 0.0, np.zeros(0 if loop is None else loop.work))

    def _native(self, count: int) -> NativeLoop | None:
        loop: NativeLoop | None = self.body.native(
            self.in_rows, count, guarded=self.in_rows is None
        )
        return loop

