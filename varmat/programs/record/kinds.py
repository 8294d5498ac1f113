"""Loops in Python whose iterations branch on data: one procedure that runs one of several bodies.

The entries of an iteration of each kind are written as a program, as in recurrences. Forward, each
iteration keeps the numbers that it was given, where its derivatives need them. Backwards, it
repeats its entries, runs their reverse pass, and carries the adjoints of the cells.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from varmat.core.elementwise import Elementwise
from varmat.programs.build.arithmetic import is_number
from varmat.programs.ir.program import Step, Value
from varmat.programs.ir.statements import Cell, Statement
from varmat.programs.record.iterations import CellKey, Kinds
from varmat.programs.record.kind_bodies import Body, Frame, Given, Output
from varmat.programs.record.loop_bodies import write_total
from varmat.programs.record.tape_programs import RecordedVariable, TapeProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from varmat.typing import Entry


class Adjoints:
    """The inputs of the loop backwards, and its results.

    Attributes
    ----------
    of_results : dict
        The adjoints of the results of the other loop.
    cells, shared : dict
        The cells of the adjoints of cells, and of what all iterations read, by the id of its node.
    takers : dict
        The functions that use the results.
    """

    def __init__(self, of_results: dict[Output, Value | None]) -> None:
        self.of_results = of_results
        self.cells: dict[CellKey, Cell] = {}
        self.shared: dict[int, tuple[RecordedVariable, Cell]] = {}
        self.takers: dict[Output, Callable[[Value], object]] = {}

    def of_shared(self, node: RecordedVariable) -> Cell:
        return self.shared.setdefault(id(node), (node, Cell("", False)))[1]


class KindLoop:
    """Iterations of several kinds as a loop.

    Parameters
    ----------
    outer : TapeProgram
    kinds : Kinds

    Attributes
    ----------
    cells : dict of CellKey to Cell
        The cells of values that are carried, and of sums.
    sums : set of CellKey
        The cells that iterations only add to.
    """

    def __init__(self, outer: TapeProgram, kinds: Kinds) -> None:
        self.outer, self.kinds, self.periods = outer, kinds, kinds.periods
        depths: dict[frozenset[int], int] = {}
        for group, depth in kinds.cells.values():
            depths[group] = max(depths.get(group, 0), depth)
        self.cells = {
            (group, depth): Cell("", False)
            for group, most in depths.items()
            for depth in range(most + 1)
        }
        used = np.flatnonzero(self.periods.last_use[kinds.start : kinds.end] >= kinds.end)
        self.used = (used + kinds.start).tolist()
        self.sums = {
            (group, 0) for group, most in depths.items() if not most and self._is_sum(group)
        }
        # Entries whose results are in cells at the end. Of each kind: the results that are stacked,
        # and what it is handed that is kept.
        self.last: dict[int, CellKey] = {}
        self.stacked: list[dict[int, None]] = [{} for _ in kinds.members]
        self.kept: list[dict[CellKey, Value]] = [{} for _ in kinds.members]
        self.made: dict[Output, RecordedVariable] = {}
        self._is_guarded = False

    @property
    def rolled(self) -> list[Entry]:
        """The entries that the loop replaces."""
        return self.periods.entries[self.kinds.start : self.kinds.end]

    def _is_sum(self, group: frozenset[int]) -> bool:
        """Return whether a value is only added to, and nothing else reads it."""
        kinds = self.kinds
        indices = [place for place, (result, _) in kinds.cells.items() if result == group]
        others = frozenset().union(*(x for x, _ in kinds.cells.values() if x != group))
        writers = np.searchsorted(kinds.base, sorted(group), side="right") - 1
        used = set(kinds.writes(group)[:-1].tolist()).intersection(self.used)
        if used or sorted(k for k, _, _ in indices) != writers.tolist() or group & others:
            return False
        return all(self._is_only_added_to(group, others, *place) for place in indices)

    def _is_only_added_to(
        self, group: frozenset[int], others: frozenset[int], k: int, o: int, j: int
    ) -> bool:
        rows = self.kinds.rows[k]
        result, low = self.periods.producer[rows[0]], int(self.kinds.base[k])
        used = set(self.used)
        while True:
            rule = self.periods.entries[rows[0, o]][0]
            if (
                not isinstance(rule.op, Elementwise)
                or rule.op.ufunc not in (np.add, np.subtract)
                or (rule.op.ufunc is np.subtract and j)
            ):
                return False
            uses = np.argwhere(result == rows[0, o]).tolist()
            if low + o in group:
                return not uses
            if len(uses) != 1 or low + o in others or not used.isdisjoint(rows[:, o].tolist()):
                return False
            ((o, j),) = uses

    # --- the loop ---

    def is_written(self) -> bool:
        """Write the loop; False if it carries nothing but sums, or if its entries have arrays, or
        steps that call Python.
        """
        if not self.cells.keys() - self.sums:
            return False
        self.bodies = [Body(self.outer, self.kinds, k) for k in range(len(self.kinds.members))]
        self._find_results()
        for body in self.bodies:
            body.find_outside()
        self.first = {key: self.outer.find(x.variable) for key, x in self.kinds.first.items()}
        self.entered = [body.enter(self.sums) for body in self.bodies]
        if not all(
            step.kernel.is_native and not any(v.shape for v in (*step.operands, *step.results))
            for entered in self.entered
            for step in entered.written.builder.steps
        ):
            return False
        self.step = self._forward()
        self.outer.builder.steps.append(self.step)
        self.outer.back([*self.made.values()], self._write_backward)
        self.outer.loops.append(self)
        self._hand_on()
        return True

    def _place(self, i: int) -> tuple[int, int]:
        """Return the kind of an iteration that has an entry, and the offset there."""
        n = int(self.kinds.entry_of[i - self.kinds.start])
        k = int(np.searchsorted(self.kinds.base, n, side="right")) - 1
        return k, n - int(self.kinds.base[k])

    def _find_results(self) -> None:
        """Find out where the results are that are read afterwards."""
        groups: dict[int, list[frozenset[int]]] = {}
        for group in dict.fromkeys(group for group, _ in self.cells):
            for n in group:
                groups.setdefault(n, []).append(group)
        for i in self.used:
            k, o = self._place(i)
            if o in self.bodies[k].hoisted | self.bodies[k].parts:
                continue
            for group in groups.get(int(self.kinds.base[k]) + o, ()):
                writes = self.kinds.writes(group)
                key = group, len(writes) - 1 - int(np.searchsorted(writes, i))
                if key in self.cells:
                    self.last[i] = key
            if i not in self.last:
                self.stacked[k].setdefault(o)

    def _forward(self) -> Step:
        """Write the step forward. Its results are the results that it had before, and others."""
        frame = Frame(self.kinds)
        for key, cell in self.cells.items():
            first = None if key in self.sums else self.first.get(key)
            frame.starting(cell, None if first is None else first.value)
        bodies = [self._body_forward(frame, k) for k in range(len(self.bodies))]
        for key in dict.fromkeys((*self.sums, *self.last.values())):
            frame.last(("end", key), self.cells[key])
        step = frame.step(bodies)
        saved = {("kept", (k, key)): v for k, x in enumerate(self.kept) for key, v in x.items()}
        step.results = tuple(
            saved[name]
            if name in saved
            else self.made.setdefault(name, RecordedVariable(value)).value
            for name, value in zip(frame.outputs, step.results, strict=True)
        )
        return step

    def _body_forward(self, frame: Frame, k: int) -> list[Statement]:
        body, entered = self.bodies[k], self.entered[k]
        inputs = Given(frame, body, entered)
        writes = body.writes(entered, self.cells)
        for key, cell in self.cells.items():
            if key in entered.nodes and key not in self.sums:
                inputs.cell(entered.nodes[key].value, cell)
        outputs = [(self.cells[key], x.value) for key, x in writes.items() if key not in self.sums]
        sums = [(self.cells[key], x.value) for key, x in writes.items() if key in self.sums]
        stores = []
        for o in self.stacked[k]:
            outputs.append((Cell(), entered.written.find(body.result(o)).value))
            stores.append(frame.store(("stack", (k, o)), body.count, outputs[-1][0]))
        saved = [
            frame.store(("kept", (k, key)), body.count, self.cells[key]) for key in self.kept[k]
        ]
        return [*saved, *inputs.statements(outputs, sums), *stores]

    def _hand_on(self) -> None:
        """Make the results available to later entries."""
        outer = self.outer
        for i in self.used:
            rule, variable, x, y = self.periods.entries[i]
            k, o = self._place(i)
            if o in self.bodies[k].parts:
                outer.entry(rule, variable, x, y)
            elif o in self.bodies[k].hoisted:
                outer.alias(variable, outer.find(self.bodies[k].result(o)))
            elif i not in self.last:
                number = int(np.searchsorted(self.kinds.rows[k][:, o], i))
                outer.rows[id(variable)] = self.made["stack", (k, o)], number
            elif self.last[i] in self.sums:
                write_total(
                    outer, variable, self.first[self.last[i]], self.made["end", self.last[i]]
                )
            else:
                outer.alias(variable, self.made["end", self.last[i]])

    # --- the loop backwards ---

    def _write_backward(self) -> None:
        """Write the loop backwards, from the adjoints of what the other made."""
        frame = Frame(self.kinds)
        adjoints = Adjoints({name: self.outer.adjoint(node) for name, node in self.made.items()})
        for key in (key for key in self.cells if key not in self.sums):
            g = adjoints.of_results.get(("end", key))
            bar = Cell("", False)
            adjoints.cells[key] = frame.starting(bar, None if g is None or is_number(g, 0.0) else g)
        bodies = [self._body_backward(frame, k, adjoints) for k in range(len(self.bodies))]
        for node, total in adjoints.shared.values():
            frame.starting(total)
            frame.last(("shared", id(node)), total)
            adjoints.takers["shared", id(node)] = node.contributions.append
        for key, bar in adjoints.cells.items():
            first = self.first.get(key)
            if first is not None and not first.value.is_constant:
                frame.last(("first", key), bar)
                adjoints.takers["first", key] = first.contributions.append
        self._is_guarded = True
        step = frame.step(bodies, backwards=True)
        self._write_again()
        self.outer.builder.steps.append(step)
        for name, value in zip(frame.outputs, step.results, strict=True):
            adjoints.takers[name](value)

    def _body_backward(self, frame: Frame, k: int, adjoints: Adjoints) -> list[Statement]:
        body = self.bodies[k]
        entered = body.enter(self.sums)
        written, nodes, inputs = entered.written, entered.nodes, Given(frame, body, entered)
        writes = body.writes(entered, self.cells)
        handed = [key for key in adjoints.cells if key in nodes]
        for key in handed:
            inputs.rows(nodes[key].value, partial(self._kept_rows, k, key))
        for key, node in writes.items():
            if node.value.is_constant:
                continue
            if key in adjoints.cells:
                node.contributions.append(inputs.cell(None, adjoints.cells[key]))
            elif (g := adjoints.of_results["end", key]) is not None:
                is_known = g.is_constant
                node.contributions.append(
                    written.builder.constant(g.data) if is_known else inputs.number(g)
                )
        for o in self.stacked[k]:
            g, node = adjoints.of_results["stack", (k, o)], written.find(body.result(o))
            if g is not None and not node.value.is_constant:
                rows = self.outer.builder.broadcast(g, (body.count,))
                node.contributions.append(inputs.rows(None, rows))
        written.write_reverse()
        written.guard_finite()
        zero = written.builder.constant(0.0)
        result = {key: written.adjoint(node) or zero for key, node in nodes.items()}
        outputs = [
            (adjoints.cells[key], result.get(key, zero)) for key in writes if key in adjoints.cells
        ]
        sums = [(adjoints.cells[key], result[key]) for key in handed if key not in writes]
        sums += [
            (adjoints.of_shared(node), result[name])
            for name, node in body.shared.items()
            if not node.value.is_constant and not is_number(result[name], 0.0)
        ]
        stores = []
        for name, row in body.rows.items():
            if row.contribute is not None and not is_number(result[name], 0.0):
                outputs.append((Cell(), result[name]))
                stores.append(frame.store(("rows", (k, name)), body.count, outputs[-1][0]))
                adjoints.takers["rows", (k, name)] = row.contribute
        return [*inputs.statements(outputs, sums), *stores]

    def _kept_rows(self, k: int, key: CellKey) -> Value:
        """Return the cells handed to iterations of a kind, which the loop forward keeps."""
        return self.kept[k].setdefault(key, Value((self.bodies[k].count,)))

    def _write_again(self) -> None:
        """Write the step forward again, with everything that is needed of it now."""
        repeated = self._forward()
        self.step.kernel, self.step.operands = repeated.kernel, repeated.operands
        self.step.results = repeated.results
        for value in chain.from_iterable(x.values() for x in self.kept):
            value.step = self.step

    def guard_finite(self) -> None:
        """Guard the results of the bodies that must be finite, unless the loop backwards does."""
        if not self._is_guarded:
            for entered in self.entered:
                entered.written.guard_finite()
            self._write_again()
