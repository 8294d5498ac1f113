"""Recurrences written as loops in Python: a stretch of entries with a period becomes one `Loop`.

The entries of one iteration are written as a program, the body. Variables that they take from
earlier iterations are carried; data and parts of variables that differ between iterations are rows;
everything else from outside is shared. The adjoint is a loop backwards, whose body repeats the
iteration, from the carries that the forward loop stacks, and then runs its reverse pass.

A stretch that carries nothing but sums is not a recurrence. It becomes a loop too, which
`varmat.programs.passes.fission` turns into steps on arrays. Short recurrences are written step by
step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.core.tape import ALWAYS
from varmat.core.variables import VARIABLES, Outputs, Variable, View, root_of
from varmat.programs.build.arithmetic import is_number
from varmat.programs.ir.program import Step, Value
from varmat.programs.kernels.loop import Loop
from varmat.programs.record.assignments import rerooted, stand_in
from varmat.programs.record.iterations import kinds_in, moved_ahead
from varmat.programs.record.loop_bodies import Rows, TripBody, write_total
from varmat.programs.record.periods import LEAST, LONG, PLAIN, Periods, Stretch
from varmat.programs.record.places import collected
from varmat.programs.record.tape_programs import RecordedVariable, TapeProgram, operands_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.programs.ir.program import Shape
    from varmat.typing import Entry, Operand

# A value that is carried: the entry of an iteration that makes it, which of its results it is, and
# how many iterations ago.
Slot = tuple[int, int, int]


def write_entries(
    program: TapeProgram, entries: Sequence[Entry], results: Sequence[object]
) -> None:
    """Write the forward part of entries; some of their results are returned."""
    if len(entries) < 2 * LEAST:
        for entry in entries:
            program.entry(*entry)
    else:
        _write(program, Periods(entries, results), 0, len(entries))


def _write(
    program: TapeProgram, periods: Periods, low: int, high: int, *, has_kinds: bool = True
) -> None:
    """Write a range of entries, which may have iterations of several kinds."""
    stretch = next(periods.stretches(low, high), None)
    if has_kinds and (stretch is None or 2 * (stretch.end - stretch.start) < high - low):
        moved, ahead = moved_ahead(periods, low, high)
        if ahead:
            _write(program, moved, low, low + ahead)
            _write(program, moved, low + ahead, high)
            return
        kinds = next(kinds_in(periods, low, high), None)
        if kinds is not None and (stretch is None or kinds.has(stretch)):
            from varmat.programs.record.kinds import KindLoop  # slow to import, and rarely needed

            _write(program, periods, low, kinds.start)
            if not KindLoop(program, kinds).is_written():
                _write(program, periods, kinds.start, kinds.end, has_kinds=False)
            _write(program, periods, kinds.end, high)
            return
    if stretch is None:
        for entry in periods.entries[low:high]:
            program.entry(*entry)
        return
    _write(program, periods, low, stretch.start, has_kinds=has_kinds)
    if not Recurrence(program, periods, stretch).is_written():
        for entry in periods.entries[stretch.start : stretch.end]:
            program.entry(*entry)
    _write(program, periods, stretch.end, high, has_kinds=has_kinds)


class Recurrence:
    """A stretch of entries as a loop.

    Parameters
    ----------
    outer : TapeProgram
    periods : Periods
    stretch : Stretch
    """

    def __init__(self, outer: TapeProgram, periods: Periods, stretch: Stretch) -> None:
        self.outer, self.periods, self.stretch = outer, periods, stretch
        self.entries = periods.entries[stretch.start : stretch.start + stretch.period]
        # The entries of the body, of the first iteration, without entries that are the same in all
        # iterations, and entries that take a part of a variable outside.
        self.trip: list[Entry] = []
        self.hoisted: set[int] = set()
        self.taken: set[int] = set()
        # Placeholders of the arguments of the body, variables and data, with their keys.
        self.stands: list[tuple[Operand, Hashable]] = []
        self.slots: dict[Slot, Shape] = {}
        self.moving: dict[Hashable, tuple[Shape, Callable[[], Rows]]] = {}
        self.fixed: dict[Hashable, Operand] = {}
        # Entry and number of a result -> the entries that read it: operand, iterations later.
        self.uses: dict[tuple[int, int], list[Slot]] = {}
        self._is_guarded = False

    @property
    def rolled(self) -> list[Entry]:
        """The entries that the loop replaces."""
        return self.periods.entries[self.stretch.start : self.stretch.end]

    # --- what an iteration reads ---

    def _column(self, k: int, j: int) -> list[Operand]:
        """Return an operand in all iterations."""
        start, period, _ = self.stretch
        return [x[j] for x in self.periods.operands[start + k : self.stretch.end : period]]

    def result(self, k: int, item: int, trip: int) -> Variable:
        result = self.periods.entries[self.stretch.start + trip * self.stretch.period + k][1]
        return result[item] if isinstance(result, Outputs) else result

    def _sort(self, k: int) -> None:
        """Find out what an entry of the iteration reads."""
        start, period, _ = self.stretch
        rule, result, x, y = self.entries[k]
        layout = operands_of(rule)
        assert layout is not None
        operands, is_fixed = list(self.periods.operands[start + k]), True
        at = slice(start + k, self.stretch.end, period)
        for j, a in enumerate(operands):
            output, part = self.periods.producer[at, j], self.periods.part[at, j]
            if output[0] == PLAIN:
                data = self._data(k, j)
                is_fixed &= data is a
                operands[j] = data
            elif (output < start).all():
                is_same = bool((output == output[0]).all() and (part == part[0]).all())
                # Which of several results of the entry: the same in all iterations.
                item = self.periods.item.get(id(root_of(a)), 0)
                if layout.takes_part and not is_same:
                    self.taken.add(k)
                    self._stand(result, ("taken", k), lambda: self._rows_taken(k))
                    return
                if is_same and not layout.takes_part:
                    key: Hashable = ("fixed", int(output[0]), int(part[0]), item)
                    self.fixed[key] = a
                    operands[j] = self._stand(stand_in(a), key)
                elif not is_same:
                    is_fixed = False
                    key = ("read", output.tobytes(), part.tobytes(), item)
                    operands[j] = self._stand(stand_in(a), key, partial(self._rows_read, k, j))
            else:
                distance = start + k - int(output[0])
                lag = max(-(-(distance - k) // period), 0)
                root = root_of(a)
                maker = k - distance + lag * period, self.periods.item.get(id(root), 0)
                self.uses.setdefault(maker, []).append((k, j, lag))
                is_fixed &= not lag and maker[0] in self.hoisted
                if lag:
                    operands[j] = rerooted(a, self._carry((*maker, lag), root))
        if is_fixed:
            self.hoisted.add(k)
        else:
            self.trip.append((rule, result, *layout.join(rule, x, y, operands)))

    def _stand(
        self, stand: Operand, key: Hashable, rows: Callable[[], Rows] | None = None
    ) -> Operand:
        self.stands.append((stand, key))
        if rows is not None:
            self.moving.setdefault(key, (np.shape(stand), rows))
        return stand

    def _data(self, k: int, j: int) -> Operand:
        """Return a placeholder for plain data in the entry: the data, if they are the same in all
        iterations.
        """
        column = self._column(k, j)
        x = column[0]
        if all(item is x for item in column):
            return x
        is_array = isinstance(x, np.ndarray) and x.ndim > 0
        if not is_array and not isinstance(x, (float, int, np.float64)):
            return x  # equal, as a setting
        array = np.array(column, np.float64)
        rows = array.reshape(len(column), -1)
        if (rows.view(np.uint8) == rows[:1].view(np.uint8)).all():
            return x
        # Another object, because the first may be elsewhere in the iteration.
        data = x.copy() if is_array else float.fromhex(float(x).hex())
        value = self.outer.builder.constant(array)
        return self._stand(data, ("data", array.shape, array.tobytes()), lambda: Rows(value))

    def _carry(self, slot: Slot, root: Variable) -> Operand:
        for lag in range(1, slot[2] + 1):
            self.slots.setdefault((*slot[:2], lag), root.shape)
        return self._stand(stand_in(root), slot)

    def _is_sum(self, slot: Slot) -> bool:
        """Return whether the value is only added to, in each iteration, and not read otherwise."""
        start, period, trips = self.stretch
        used = self.periods.last_use[start : self.stretch.end].reshape(trips, period)
        used_after = used >= self.stretch.end
        maker, lag = slot[:2], 1
        if slot[2] != 1 or used_after[:-1, maker[0]].any():
            return False
        while True:
            uses = self.uses.get(maker, ())
            if len(uses) != 1 or uses[0][2] != lag:
                return False
            k, j, _ = uses[0]
            rule, result, *_ = self.entries[k]
            x = self.periods.operands[start + k][j]
            if (
                not isinstance(rule.op, Elementwise)
                or rule.op.ufunc not in (np.add, np.subtract)
                or (rule.op.ufunc is np.subtract and j)
                or isinstance(x, View)
                or result.shape != self.slots[slot]
            ):
                return False
            if k == slot[0]:
                return True
            if used_after[:, k].any():
                return False
            maker, lag = (k, 0), 0

    # --- rows ---

    def _rows(self, column: Sequence[object], at: Sequence[np.ndarray], shape: Shape) -> Rows:
        """Collect elements of a variable outside, which may be another one in each iteration."""
        size, trips = math.prod(shape), len(column)
        targets = np.arange(trips * size).reshape(trips, size)
        layout = [(target, np.ravel(x)) for target, x in zip(targets, at, strict=True)]
        return Rows(*collected(self.outer, (trips, *shape), column, layout))

    def _rows_read(self, k: int, j: int) -> Rows:
        column = self._column(k, j)
        shape = column[0].shape
        return self._rows(column, [np.arange(math.prod(shape))] * len(column), shape)

    def _rows_taken(self, k: int) -> Rows:
        """Collect the same for the part that an entry takes."""
        start, period, _ = self.stretch
        entries = self.periods.entries[start + k : self.stretch.end : period]
        at = [np.arange(x.size).reshape(x.shape)[index] for _, _, x, index in entries]
        return self._rows([x for _, _, x, _ in entries], at, np.shape(at[0]))

    # --- the loop ---

    def is_written(self) -> bool:
        """Write the loop; False if the stretch is a short recurrence."""
        for k in range(self.stretch.period):
            self._sort(k)
        self.sums = [slot[:2] for slot in self.slots if self._is_sum(slot)]
        self.carried = [slot for slot in self.slots if slot[:2] not in self.sums]
        if self.carried and self.stretch.trips < LONG:
            return False
        outer = self.outer
        for k in sorted(self.hoisted):
            outer.entry(*self.entries[k])
            for item, result in enumerate(self._results(k)):
                key: Hashable = ("hoisted", k, item)
                self.fixed[key] = self._stand(result, key)
        self.first = {slot: outer.find(self.result(*slot[:2], -slot[2])) for slot in self.slots}
        self.rows = {key: (shape, make()) for key, (shape, make) in self.moving.items()}
        self.shared = {key: outer.find(x) for key, x in self.fixed.items()}
        start, end = self.stretch.start, self.stretch.end
        used = self.periods.last_use[start:end].reshape(self.stretch.trips, -1) >= end
        self.used_after = [
            (int(k), item, int(trip))
            for trip, k in np.argwhere(used)
            for item in range(len(self._results(k)))
        ]
        self.stacked = list(
            dict.fromkeys(
                (k, item)
                for k, item, trip in self.used_after
                if k not in self.hoisted | self.taken
                and (k, item) not in self.sums
                and (k, item, self.stretch.trips - trip) not in self.slots
            )
        )
        self.body, self.extra = TripBody(self.stretch.trips), dict[Slot, Value]()
        self.arguments = {slot: self._carried_argument(self.body, slot) for slot in self.carried}
        self._enter(self.body, self.arguments)
        kernels = (step.kernel for step in self.body.written.builder.steps)
        if not all(kernel.is_native or kernel.is_batchable for kernel in kernels):
            return False
        self._write_forward()
        return True

    def _carried_argument(self, body: TripBody, slot: Slot) -> Value:
        body.carried.append(body.written.builder.argument(self.slots[slot]))
        return body.carried[-1]

    def _results(self, k: int) -> Sequence[Variable]:
        result = self.entries[k][1]
        return result if isinstance(result, Outputs) else () if result is ALWAYS else (result,)

    def _enter(
        self, body: TripBody, carried: dict[Slot, Value]
    ) -> dict[Hashable, RecordedVariable]:
        """Write the forward part of the iteration; return the nodes of its inputs."""
        written, builder = body.written, body.written.builder
        values: dict[Hashable, Value] = dict(carried.items())
        for slot, shape in self.slots.items():
            if slot[:2] in self.sums:
                values[slot] = builder.broadcast(builder.constant(-0.0), shape)
        for key, (shape, rows) in self.rows.items():
            values[key] = builder.argument(shape)
            body.rows.append((values[key], rows))
            if rows.value.is_constant:
                written.data[id(values[key])] = rows.value
        for key, node in self.shared.items():
            values[key] = builder.argument(node.shape)
            body.shared.append((values[key], node.value))
        nodes = {key: RecordedVariable(value) for key, value in values.items()}
        for stand, key in self.stands:
            if type(stand) in VARIABLES:
                written.alias(stand, nodes[key])
            else:
                written.inputs[id(stand)] = values[key]
        makers = (slot[:2] for slot in self.slots)
        write_entries(written, self.trip, [self.result(*x, 0) for x in (*makers, *self.stacked)])
        return nodes

    def _forward(self) -> tuple[Loop, list[Value]]:
        """Make the loop forward and its operands."""
        find = self.body.written.find
        outputs = [
            find(self.result(k, item, 0)).value if lag == 1 else self.arguments[k, item, lag - 1]
            for k, item, lag in self.carried
        ]
        outputs += [find(self.result(*x, 0)).value for x in self.stacked]
        outputs += [self.arguments[slot] for slot in self.extra]
        outputs += [find(self.result(*x, 0)).value for x in self.sums]
        loop, operands = self.body.loop(outputs, len(self.stacked) + len(self.extra))
        return loop, [*(self.first[slot].value for slot in self.carried), *operands]

    def _write_forward(self) -> None:
        outer = self.outer
        loop, operands = self._forward()
        self.step = Step(loop, operands, loop.results(*operands))
        outer.builder.steps.append(self.step)
        nodes = [RecordedVariable(value) for value in self.step.results]
        result = iter(nodes)
        self.last = {slot: next(result) for slot in self.carried}
        self.stacks = {x: next(result) for x in self.stacked}
        self.totals = {x: next(result) for x in self.sums}
        outer.back(nodes, self._write_backward)
        outer.loops.append(self)
        for k, item, trip in self.used_after:
            variable, lag = self.result(k, item, trip), self.stretch.trips - trip
            if k in self.hoisted:
                outer.alias(variable, outer.find(self.result(k, item, 0)))
            elif k in self.taken:
                outer.entry(
                    *self.periods.entries[self.stretch.start + trip * len(self.entries) + k]
                )
            elif (k, item) in self.totals:
                write_total(outer, variable, self.first[k, item, 1], self.totals[k, item])
            elif (k, item, lag) in self.last:
                outer.alias(variable, self.last[k, item, lag])
            else:
                outer.rows[id(variable)] = self.stacks[k, item], trip

    def _write_backward(self) -> None:
        """Write the loop backwards, from the adjoints of what the other made."""
        outer, body, trips = self.outer, TripBody(self.stretch.trips), self.stretch.trips
        written, builder = body.written, body.written.builder
        for slot in self.carried:
            self._carried_argument(body, slot)
        before = {slot: builder.argument(self.slots[slot]) for slot in self.carried}
        stacks = {value: Value((trips, *value.shape)) for value in before.values()}
        body.rows += [(value, Rows(stack)) for value, stack in stacks.items()]
        nodes = self._enter(body, before)
        g: Any
        for (k, item, lag), g in zip(self.carried, body.carried, strict=True):
            node = written.find(self.result(k, item, 0)) if lag == 1 else nodes[k, item, lag - 1]
            node.contributions.append(g)
        for x, stack in self.stacks.items():
            g = outer.adjoint(stack)
            if g is not None:
                node = written.find(self.result(*x, 0))
                value = builder.argument(node.shape)
                body.rows.append((value, Rows(outer.builder.broadcast(g, stack.shape))))
                node.contributions.append(value)
        for x, total in self.totals.items():
            g = outer.adjoint(total)
            if g is not None:
                value = (
                    builder.constant(g.data)
                    if g.is_constant and not g.shape
                    else builder.argument(g.shape)
                )
                if not value.is_constant:
                    body.shared.append((value, g))
                written.find(self.result(*x, 0)).contributions.append(value)
        written.write_reverse()
        written.guard_finite()
        self._is_guarded = True
        of_slots = dict(zip(self.carried, stacks.values(), strict=True))
        self._write_loop_backwards(body, nodes, of_slots)

    def _write_loop_backwards(
        self, body: TripBody, nodes: dict[Hashable, RecordedVariable], stacks: dict[Slot, Value]
    ) -> None:
        """Write the step, stack what it needs, and return its results."""
        outer, written = self.outer, body.written
        zero = written.builder.constant(0.0)

        def adjoints(keys: Iterable[Hashable]) -> dict[Hashable, Value]:
            result = {key: written.adjoint(nodes[key]) for key in keys}
            return {
                key: written.full(g, nodes[key].shape)
                for key, g in result.items()
                if g is not None and not is_number(g, 0.0)
            }

        carried = adjoints(self.carried)
        rows = adjoints(key for key, (_, rows) in self.rows.items() if rows.contribute)
        shared = adjoints(key for key, node in self.shared.items() if not node.value.is_constant)
        outputs = [carried.get(slot, written.full(zero, self.slots[slot])) for slot in self.carried]
        loop, inputs = body.loop(
            [*outputs, *rows.values(), *shared.values()], len(rows), backwards=True
        )
        read = set(map(id, inputs))
        self.extra = {slot: stack for slot, stack in stacks.items() if id(stack) in read}
        self._write_again()
        starts = [
            outer.full(outer.adjoint(node) or outer.builder.constant(0.0), node.shape)
            for node in self.last.values()
        ]
        step = Step(loop, [*starts, *inputs], loop.results(*starts, *inputs))
        outer.builder.steps.append(step)
        output = iter(step.results)
        for slot in self.carried:
            g, first = next(output), self.first[slot]
            if not first.value.is_constant:
                first.contributions.append(g)
        for key in rows:
            self.rows[key][1].contribute(next(output))  # type: ignore[misc]
        for key in shared:
            self.shared[key].contributions.append(next(output))

    def _write_again(self) -> None:
        """Write the step forward again, with everything that is needed of it now."""
        step, saved = self.step, len(self.carried) + len(self.stacked)
        old = [value for value in step.results if value not in self.extra.values()]
        step.kernel, operands = self._forward()
        step.operands = tuple(operands)
        step.results = (*old[:saved], *self.extra.values(), *old[saved:])
        for value in self.extra.values():
            value.step = step

    def guard_finite(self) -> None:
        """Guard the results of the body that must be finite, unless the loop backwards does."""
        if not self._is_guarded:
            self.body.written.guard_finite()
            self._write_again()
