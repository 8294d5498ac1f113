"""Loops of numbers, split: steps that need the run before run one by one, all others on arrays.

Forward, what is carried is computed run by run; results that are kept, and all guards, are steps on
arrays of all runs. Backwards, the adjoints of what is carried are computed run by run, and all
other adjoints from these on arrays. Whatever the runs need from other steps is computed before
them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.programs.build import Symbol, as_symbols, called, lift, require
from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import BOOL, FLOAT, Layout, Program, Step, Value
from varmat.programs.kernels import Assemble, Guard, GuardBetween, Kernel, Select, Sum, Ufunc
from varmat.programs.kernels.scans import NativeLoop, Part, Sizes, has_guards

if TYPE_CHECKING:
    from varmat.programs.run.native import NativeRunner
    from varmat.typing import Operand

_ON_NUMBERS = (Ufunc, Sum, Select, Guard, GuardBetween)


class Split:
    """The program of a loop's body, split into runs and steps on arrays.

    Parameters
    ----------
    program : Program
    sizes : Sizes
    in_rows : bool or None
        Backwards, whether there are adjoints of the rows; None for the values.

    Attributes
    ----------
    is_possible : bool
        Whether each step works on numbers, so that it can work on arrays of all runs instead.
    before : list of Value
        The numbers that the runs need from steps before them.
    runs : Program
        Takes arguments of the program and `before`; returns what goes on to the next run.
    """

    def __init__(self, program: Program, sizes: Sizes, in_rows: bool | None) -> None:
        self.program, self.sizes, self.in_rows = program, sizes, in_rows
        back = in_rows is not None
        nc, nx, np_ = len(sizes.carried), len(sizes.rows), len(sizes.shared)
        arguments = program.arguments
        first = nc + nx + np_ if back else 0
        self.handed_on = arguments[first : first + nc]
        self.shared = arguments[nc + nx : nc + nx + np_]
        self.outputs = program.outputs[1:]
        of_runs = {id(x) for x in self.handed_on}
        every_run = {id(x) for x in arguments if not any(x is each for each in self.shared)}
        needed = {id(v.base) for v in self.outputs[:nc]}
        for step in reversed(program.steps):
            if any(id(v) in needed for v in step.results):
                needed.update(id(v.base) for v in step.operands)
        inside: list[Step] = []
        self.is_possible = not back or not has_guards(program)
        for step in program.steps:
            if any(id(v.base) in every_run for v in step.operands):
                every_run.update(map(id, step.results))
            if any(id(v.base) in of_runs for v in step.operands):
                of_runs.update(map(id, step.results))
                if any(id(v) in needed for v in step.results):
                    inside.append(step)
            self.is_possible &= self._is_liftable(step, every_run)
        self.every_run = every_run
        self.before: list[Value] = []
        if self.is_possible:
            self._write(inside, of_runs, nc)

    def _is_liftable(self, step: Step, every_run: set[int]) -> bool:
        if isinstance(step.kernel, Assemble) and any(
            step.results[0] is v for v in self.outputs[len(self.sizes.carried) :]
        ):
            plain = not step.kernel.has_base and all(
                place is not None for place in step.kernel.places
            )
            return plain and not any(v.shape for v in step.operands)
        numbers = not any(v.shape for v in (*step.operands, *step.results))
        return isinstance(step.kernel, _ON_NUMBERS) and numbers

    def _write(self, inside: Sequence[Step], of_runs: set[int], count: int) -> None:
        """The program of the runs."""
        builder = Builder()
        places = {id(x): builder.argument(x.shape) for x in self.program.arguments}

        def now(v: Value) -> Value:
            base = v.base
            if base.is_constant:
                return v
            if id(base) not in places:  # a number that is computed before the runs
                self.before.append(base)
                place = builder.argument(())
                places[id(base)] = builder.truth(place) if base.dtype == BOOL else place
            found = places[id(base)]
            return builder.part(found, v.shape, v.offset, v.strides) if v.is_view else found

        for step in inside:
            made = builder.apply(step.kernel, *map(now, step.operands))
            places.update(zip(map(id, step.results), made, strict=True))
        program = builder.program([builder.constant(0.0), *map(now, self.outputs[:count])])
        # Drop unused arguments, each of which costs a little at every run. Keep two, because a
        # single argument is laid out in another way.
        read = {id(v.base) for step in program.steps for v in step.operands} | {
            id(v.base) for v in program.outputs
        }
        used = [i for i, x in enumerate(program.arguments) if id(x) in read]
        more = [i for i in range(len(program.arguments)) if i not in used]
        self.used = sorted([*used, *more[: max(2 - len(used), 0)]])
        self.runs = Program(
            [program.arguments[i] for i in self.used], program.steps, program.outputs
        )


class Lifted:
    """Steps of a split program for all runs at once.

    Parameters
    ----------
    split : Split
    builder : Builder
    leaf : callable
        Takes the number of an argument and an element of it; returns the vector of that element in
        all runs.
    shared : callable
        Takes the number of a shared argument and a view of it; returns that view.
    """

    def __init__(self, split: Split, builder: Builder, leaf: Operand, shared: Operand) -> None:
        self.split, self.builder, self._leaf, self._shared = split, builder, leaf, shared
        self._arguments = {id(x): i for i, x in enumerate(split.program.arguments)}
        self._first = len(split.sizes.carried) + len(split.sizes.rows)
        self._made: dict[int, Value] = {}

    def value(self, v: Value) -> Value:
        """The values of a number in all runs: a vector, or one number if all are the same."""
        base = v.base
        if v.is_constant:
            return self.builder.constant(v.data)  # the same as in other programs
        i = self._arguments.get(id(base))
        if i is not None:
            is_shared = self._first <= i < self._first + len(self.split.sizes.shared)
            found: Value = (
                self._shared(i - self._first, v) if is_shared else self._leaf(i, v.offset // 8)
            )
            return found
        if id(base) not in self._made:
            self._make(base)
        return self._made[id(base)]

    def _make(self, value: Value) -> None:
        """Write the steps that compute a number, in their order."""
        needed, chosen = {id(value)}, []
        for step in reversed(self.split.program.steps):
            if any(id(v) in needed and id(v) not in self._made for v in step.results):
                chosen.append(step)
                needed.update(id(v.base) for v in step.operands)
        for step in reversed(chosen):
            (result,) = step.results
            self._made[id(result)] = self.builder.call(step.kernel, *map(self.value, step.operands))

    def guards(self) -> None:
        for step in self.split.program.steps:
            if isinstance(step.kernel, Guard):
                self.builder.guard(self.builder.truth(self.value(step.operands[0])))
            elif isinstance(step.kernel, GuardBetween):
                x: Operand = Symbol(self.builder, self.value(step.operands[0]))
                low, high = step.kernel.low, step.kernel.high
                require(
                    np.isfinite(x)
                    if (low, high) == (-math.inf, math.inf)
                    else (x > low) & (x < high)
                )

    def elements(self, v: Value) -> list[tuple[int, Value]]:
        """The numbers of an output that are not zero by construction, with their places."""
        step = None if v.is_view else v.step
        if step is not None and isinstance(step.kernel, Assemble):
            return [
                (at // 8, self.value(part))
                for (at, _), part in zip(step.kernel.places, step.operands, strict=True)
            ]
        if v.shape:
            raise ValueError(f"an output of shape {v.shape}")  # such a program is not split
        return [(0, self.value(v))]


class Block:
    """An operand of a loop, a constant or a value, in a program that is being written."""

    def __init__(self, builder: Builder, x: Operand) -> None:
        self.builder, self.value = builder, builder.contiguous(lift(builder, x))
        self._columns: dict[tuple[int, int], Value] = {}

    @property
    def symbol(self) -> Symbol:
        return Symbol(self.builder, self.value)

    def column(self, j: int, first: int, count: int) -> Value:
        """Column `j` of a matrix, in `count` rows from row `first` on."""
        if (j, first) not in self._columns:
            if self.value.is_constant:
                part = self.builder.constant(np.array(self.value.data[first : first + count, j]))
            else:
                row = 8 * self.value.shape[1]
                part = self.builder.part(self.value, (count,), first * row + 8 * j, (row,))
            self._columns[j, first] = part
        return self._columns[j, first]

    def number(self, i: int) -> Value:
        """An element of a vector."""
        if self.value.is_constant:
            return self.builder.constant(float(self.value.data[i]))
        return self.builder.part(self.value, (), 8 * i, ())


def _starts(sizes: Sequence[int]) -> list[int]:
    return np.cumsum([0, *sizes]).tolist()  # type: ignore[no-any-return]


def _before(lifted: Lifted, count: int) -> Operand:
    """The numbers that the runs need from steps before them, a row for each."""
    split, builder = lifted.split, lifted.builder
    if not split.before:
        return np.empty((0, count))
    made = [builder.broadcast(builder.number(lifted.value(v)), (count,)) for v in split.before]
    places = [((8 * count * i, (8,)), (count,), v) for i, v in enumerate(made)]
    return Symbol(builder, builder.assemble((len(made), count), places))


def blocks_of(*operands: Operand) -> list[Block]:
    """The blocks of operands, at least one of which is a symbol."""
    builder = as_symbols(*operands)[0].builder
    return [Block(builder, x) for x in operands]


def written_forward(
    kernel: SplitLoop, start: Block, given: Block, common: Block
) -> tuple[Operand, Operand]:
    """Write a split loop into a program; return the history with and without what is kept."""
    split, count, builder = kernel.split, given.value.shape[0], given.builder
    sizes, history = split.sizes, None
    carried, taken, whole = _starts(sizes.carried), _starts(sizes.rows), _starts(sizes.shared)
    nc = len(sizes.carried)

    def leaf(i: int, element: int) -> Value:
        if i < nc:
            return history.column(carried[i] + element, 0, count)  # type: ignore[attr-defined, no-any-return]
        return given.column(taken[i - nc] + element, 0, count)

    lifted = Lifted(split, builder, leaf, lambda i, v: common.number(whole[i] + v.offset // 8))
    made, ended, _ = called(
        kernel, start.symbol, given.symbol, common.symbol, _before(lifted, count)
    )
    require(np.equal(ended, 0.0))
    history = Block(builder, made)
    lifted.guards()
    value, row = made.value, 8 * sizes.width
    for at, output in zip(_starts(sizes.made), split.outputs[nc:], strict=False):
        for element, part in lifted.elements(output):
            place = row + 8 * (sizes.n + at + element), (row,)
            value = builder.written(value, place, (count,), builder.broadcast(part, (count,)))
    return Symbol(builder, value), made


def written_backward(
    kernel: SplitLoop, history: Operand, given: Block, common: Block, g: Operand
) -> tuple[Operand, Operand, Operand]:
    """Write the adjoints of a split loop: of the start, the rows and what is shared."""
    split, count, builder = kernel.split, given.value.shape[0], given.builder
    sizes, before, of_kept = split.sizes, Block(builder, history), Block(builder, g)
    carried, taken, kept, whole = map(
        _starts, (sizes.carried, sizes.rows, sizes.made, sizes.shared)
    )
    nc, nx, np_ = len(sizes.carried), len(sizes.rows), len(sizes.shared)
    adjoint: Any = None

    def leaf(i: int, element: int) -> Value:
        if i < nc:
            return before.column(carried[i] + element, 0, count)
        if i < nc + nx:
            return given.column(taken[i - nc] + element, 0, count)
        i -= nc + nx + np_
        if i < nc:
            return adjoint.column(carried[i] + element, 1, count)  # type: ignore[no-any-return]
        return of_kept.column(sizes.n + kept[i - nc] + element, 1, count)

    lifted = Lifted(split, builder, leaf, lambda i, v: common.number(whole[i] + v.offset // 8))
    made, *_ = called(kernel, history, given.symbol, common.symbol, g, _before(lifted, count))
    adjoint = Block(builder, made)
    of_rows: Operand = np.zeros((0, sizes.q))
    following = iter(split.outputs[nc:])
    if split.in_rows:
        parts = [
            (8 * (at + e), v)
            for at, y in zip(taken[:-1], following, strict=False)
            for e, v in lifted.elements(y)
        ]
        places = [
            ((at, (8 * sizes.q,)), (count,), builder.broadcast(v, (count,))) for at, v in parts
        ]
        of_rows = Symbol(builder, builder.assemble((count, sizes.q), places))
    sums = [
        (8 * (at + e), v)
        for at, y in zip(whole[:-1], following, strict=False)
        for e, v in lifted.elements(y)
    ]
    each_sum: list[Operand] = [Symbol(builder, v) for _, v in sums]
    totals = [np.sum(x) if np.ndim(x) else float(count) * x for x in each_sum]
    of_shared = builder.assemble(
        (sizes.m,), [((at, ()), (), x.value) for (at, _), x in zip(sums, totals, strict=True)]
    )
    return made[0, : sizes.n], of_rows, Symbol(builder, of_shared)


class SplitLoop(Kernel):
    is_native = False

    """The runs of a split loop.

    Forward, the history without what is kept; backwards, the adjoints of what is carried.
    """

    def __init__(self, split: Split, runner: NativeRunner) -> None:
        self.split, self.runner = split, runner
        self.name = "scan" if split.in_rows is None else "scan.reverse"
        self._loops: dict[int, SplitNative] = {}

    def loop(self, count: int) -> SplitNative:
        if count not in self._loops:
            self._loops[count] = SplitNative(self.runner, self.split, count)
        return self._loops[count]

    def results(self, *operands: Value) -> list[Layout]:
        count = operands[1].shape[0]
        shape = (count + 1, self.split.sizes.width)
        return [(shape, FLOAT), ((), FLOAT), ((self.loop(count).work,), FLOAT)]

    def _order(self, made: Operand, operands: Sequence[Operand]) -> list[Operand]:
        """The operands of the loop but the work array and the flag."""
        if self.split.in_rows is None:
            start, rows, shared, before = operands
            return [start, made, rows, shared, before]
        history, rows, shared, g, before = operands
        return [g, made, rows, shared, history, before]

    def evaluate(self, *operands: np.ndarray) -> tuple[Operand, ...]:
        count = len(operands[1])
        made = np.zeros((count + 1, self.split.sizes.width))
        ran = self.loop(count)(*self._order(made, [np.ascontiguousarray(x) for x in operands]))
        return made, 0.0 if ran else math.nan, np.zeros(self.loop(count).work)

class SplitNative(NativeLoop):
    """The runs as one native call."""

    def __init__(self, runner: NativeRunner, split: Split, count: int) -> None:
        self.split = split
        super().__init__(runner, split.sizes, count, split.in_rows)
        self.dims[4] = split.sizes.k * (split.in_rows is None)
        self.dims[6] = 0

    def _forward(self, sizes: Sizes) -> tuple[list[Part], list[Part]]:
        arguments, results = super()._forward(sizes)
        count = len(sizes.carried)
        return self._used([*arguments, *self._before(6, 0, 8)]), results[:count]

    def _backward(self, sizes: Sizes, count: int, in_rows: bool) -> tuple[list[Part], list[Part]]:
        arguments, _ = super()._backward(sizes, count, in_rows)
        arguments = self._used([*arguments, *self._before(7, 8 * (count - 1), -8)])
        number = 2 + len(arguments) + len(sizes.carried)
        ends = np.cumsum([0, *sizes.carried]).tolist()
        return arguments, [(0, 8 * (number + at), 0) for at in ends[:-1]]

    def _used(self, arguments: list[Part]) -> list[Part]:
        return [arguments[i] for i in self.split.used]

    def _before(self, operand: int, start: int, step: int) -> list[Part]:
        return [(operand, start + 8 * i * self.count, step) for i in range(len(self.split.before))]
