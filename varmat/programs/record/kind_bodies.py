"""The bodies of loops whose iterations are of several kinds, while they are written."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.core.tape import ALWAYS
from varmat.core.variables import VARIABLES, root_of
from varmat.programs.build.arithmetic import is_number
from varmat.programs.build.builder import Builder
from varmat.programs.build.procedures import procedure
from varmat.programs.build.scalar_functions import SAME
from varmat.programs.ir import statements as s
from varmat.programs.ir.program import Program, Step, Value
from varmat.programs.ir.statements import Cell, Statement, Storage
from varmat.programs.kernels.procedure import Line
from varmat.programs.passes import optimised
from varmat.programs.record.assignments import stand_in
from varmat.programs.record.loop_bodies import Rows
from varmat.programs.record.periods import PLAIN
from varmat.programs.record.places import collected, taken
from varmat.programs.record.tape_programs import RecordedVariable, TapeProgram, operands_of

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.programs.record.iterations import CellKey, Kinds
    from varmat.typing import Operand


# A result of a loop: a word, and what it is of.
Output = tuple[str, "Hashable"]


class Body:
    """The iterations of one kind.

    Attributes
    ----------
    entries : list of Entry
        The entries of the first iteration of the kind, with placeholders for variables from
        outside.
    hoisted, parts : set of int
        Entries that are the same in all iterations, and that take elements of variables outside.
    rows : dict
        The arguments that differ between iterations.
    shared : dict
        The arguments that do not.
    """

    def __init__(self, outer: TapeProgram, kinds: Kinds, k: int) -> None:
        self.outer, self.kinds, self.k, self.periods = outer, kinds, k, kinds.periods
        self.made, self.part = (
            x[self.kinds.rows[k]] for x in (self.periods.producer, self.periods.part)
        )
        self.first = self.kinds.rows[k][0].tolist()
        self.hoisted, self.parts = set[int](), set[int]()
        self.stands: list[tuple[Operand, Hashable]] = []
        self.makers: dict[Hashable, Callable[[], Rows]] = {}
        self.rows: dict[Hashable, Rows] = {}
        self.fixed: dict[Hashable, Operand] = {}
        self.shared: dict[Hashable, RecordedVariable] = {}
        self.entries = [
            entry for o in range(self.kinds.lengths[k]) if (entry := self._sort(o)) is not None
        ]

    @property
    def count(self) -> int:
        return len(self.kinds.members[self.k])

    def result(self, o: int) -> Operand:
        """Return the result of an entry in the first iteration of the kind."""
        return self.periods.entries[self.first[o]][1]

    def _sort(self, o: int) -> Operand:
        """Find out what an entry reads; what is written in the body, if anything is."""
        rule, result, x, y = self.periods.entries[self.first[o]]
        layout = operands_of(rule)
        assert layout is not None
        operands, is_fixed = list(self.periods.operands[self.first[o]]), True
        for j, operand in enumerate(operands):
            output, part = self.made[:, o, j], self.part[:, o, j]
            # Which of several results of an entry it is: the same in all iterations.
            item = self.periods.item.get(id(root_of(operand)), 0)
            if output[0] == PLAIN:
                operands[j] = self._data(o, j)
                is_fixed &= operands[j] is operand
            elif (self.k, o, j) in self.kinds.cells:
                operands[j] = self._stand(stand_in(operand), self.kinds.cells[self.k, o, j])
                is_fixed = False
            elif output[0] >= self.first[0]:
                is_fixed &= int(output[0] - self.first[0]) in self.hoisted
            elif (output == output[0]).all() and (part == part[0]).all():
                if not layout.takes_part:
                    key: Hashable = ("fixed", int(output[0]), int(part[0]), item)
                    self.fixed[key] = operand
                    operands[j] = self._stand(stand_in(operand), key)
            elif layout.takes_part:
                self.parts.add(o)
                self._stand(result, ("part", o), partial(self._elements, o, j, True))
                return None
            else:
                is_fixed = False
                key = ("read", output.tobytes(), part.tobytes(), item)
                rows = partial(self._elements, o, j, False)
                operands[j] = self._stand(stand_in(operand), key, rows)
        if not is_fixed:
            return rule, result, *layout.join(rule, x, y, operands)
        self.hoisted.add(o)
        if result is not ALWAYS:
            self.fixed["hoisted", o] = self._stand(result, ("hoisted", o))
        return None

    def _stand(
        self, stand: object, key: Hashable, rows: Callable[[], Rows] | None = None
    ) -> Operand:
        self.stands.append((stand, key))
        if rows is not None:
            self.makers.setdefault(key, rows)
        return stand

    def _data(self, o: int, j: int) -> Operand:
        """Return a placeholder for plain data: the data, if they are the same in all iterations."""
        column = [self.periods.operands[i][j] for i in self.kinds.rows[self.k][:, o].tolist()]
        x = column[0]
        if not isinstance(x, (float, int, np.float64)) or all(item is x for item in column):
            return x
        data = np.array(column, np.float64)
        if (data.view(np.int64) == data.view(np.int64)[0]).all():
            return x
        # Another object, because the first may be elsewhere in the iteration.
        value, stand = self.outer.builder.constant(data), float.fromhex(float(x).hex())
        return self._stand(stand, ("data", data.tobytes()), lambda: Rows(value))

    def _elements(self, o: int, j: int, is_part: bool) -> Rows:
        """Collect numbers from outside, one for each iteration."""
        outer, result = self.outer, []
        indices: dict[int, tuple[RecordedVariable, np.ndarray]] = {}
        for i in self.kinds.rows[self.k][:, o].tolist():
            x = self.periods.operands[i][j]
            if id(x) not in indices:
                indices[id(x)] = outer.place(x)
            node, full = indices[id(x)]
            result.append((node, x, int(full[self.periods.entries[i][3] if is_part else ()])))
        if all(node is result[0][0] for node, _, _ in result):
            return Rows(*taken(outer, result[0][0], np.array([at for _, _, at in result])))
        layout = []
        for t, (_, x, at) in enumerate(result):
            within = np.flatnonzero(indices[id(x)][1].reshape(-1) == at)
            layout.append((np.array([t]), within[:1]))
        return Rows(*collected(outer, (len(result),), [x for _, x, _ in result], layout))

    def find_outside(self) -> None:
        """Find the nodes of what is read, and write what is the same in all iterations."""
        outer = self.outer
        for o in sorted(self.hoisted):
            outer.entry(*self.periods.entries[self.first[o]])
        self.rows = {key: make() for key, make in self.makers.items()}
        self.shared = {key: outer.find(x) for key, x in self.fixed.items()}

    def enter(self, sums: Container[CellKey]) -> Entered:
        """Write the forward part of an iteration."""
        written = TapeProgram()
        builder = written.builder
        nodes: dict[Hashable, RecordedVariable] = {}
        for key in dict.fromkeys(key for _, key in self.stands):
            if key in sums:
                value = builder.constant(-0.0)
            elif key in self.shared and self.shared[key].value.is_constant:
                value = builder.constant(self.shared[key].value.data)
            else:
                value = builder.argument(())
            if key in self.rows and self.rows[key].value.is_constant:
                written.data[id(value)] = self.rows[key].value
            nodes[key] = RecordedVariable(value)
        for stand, key in self.stands:
            if type(stand) in VARIABLES:
                written.alias(stand, nodes[key])
            else:
                written.inputs[id(stand)] = nodes[key].value
        for entry in self.entries:
            written.entry(*entry)
        return Entered(written, nodes)

    def writes(self, entered: Entered, cells: Iterable[CellKey]) -> dict[CellKey, RecordedVariable]:
        """Return the cells that an iteration changes, with what they hold then."""
        low = int(self.kinds.base[self.k])
        result: dict[CellKey, RecordedVariable] = {}
        for group, depth in cells:
            own = [n - low for n in group if low <= n < self.kinds.base[self.k + 1]]
            if own:
                newest = [entered.written.find(self.result(o)) for o in sorted(own, reverse=True)]
                before = (group, depth - len(newest))
                result[group, depth] = (
                    newest[depth] if depth < len(newest) else entered.cell(before)
                )
        return result


class Entered(NamedTuple):
    """The program of an iteration while it is written, and the nodes of what it is given."""

    written: TapeProgram
    nodes: dict[Hashable, RecordedVariable]

    def cell(self, key: CellKey) -> RecordedVariable:
        """Return the node of the earlier content of a cell."""
        if key not in self.nodes:
            self.nodes[key] = RecordedVariable(self.written.builder.argument(()))
        return self.nodes[key]


class Frame:
    """A procedure over all iterations while it is written.

    Attributes
    ----------
    begin, end : list of Statement
    outputs : dict of Output to Storage
    """

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._index, self._at = Cell("i", is_integer=True), Cell("at", is_integer=True)
        self.begin: list[Statement] = []
        self.end: list[Statement] = []
        self.outputs: dict[Output, Storage] = {}
        self._inputs: dict[int, tuple[Storage, Value]] = {}
        self._numbers: dict[int, Cell] = {}

    def _array(self, value: Value, name: str = "") -> Storage:
        """Return the array of an operand."""
        return self._inputs.setdefault(id(value), (Storage(value.shape, name), value))[0]

    def number(self, value: Value) -> Cell:
        """Return the cell of an operand that is a number."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = self.starting(Cell("", False), value)
        return self._numbers[id(value)]

    def starting(self, cell: Cell, value: Value | None = None) -> Cell:
        """Make the cell hold an operand at first, or zero."""
        self.begin.append(
            s.Compute(cell, SAME, (0.0,)) if value is None else s.Load(cell, self._array(value), ())
        )
        return cell

    def last(self, name: Output, cell: Cell) -> None:
        """Add an output: what a cell holds at the end."""
        self.outputs[name] = Storage(())
        self.end.append(s.Store(self.outputs[name], (), cell))

    def store(self, name: Output, count: int, cell: Cell) -> Statement:
        """Make a statement for an output: what a cell holds in each iteration of a kind."""
        self.outputs[name] = Storage((count,))
        return s.Store(self.outputs[name], (self._at,), cell)

    def load(self, cell: Cell, rows: Value) -> Statement:
        return s.Load(cell, self._array(rows), (self._at,))

    def step(self, bodies: Sequence[list[Statement]], backwards: bool = False) -> Step:
        """Make the step; the kind of an iteration says which body runs."""
        kind, kinds = Cell("kind", is_integer=True), self._kinds
        *others, block = bodies
        for n, body in enumerate(reversed(others)):
            block = [s.If(kind, [*([s.Add(kind, -1.0)] if n else []), *block], body)]
        builder, count = Builder(), len(kinds.kinds)
        indices = np.empty(count)
        for member in kinds.members:
            indices[member] = np.arange(len(member))
        first = [
            s.Load(cell, self._array(builder.constant(x), f"{cell.name}s"), (self._index,))
            for cell, x in ((kind, kinds.kinds.astype(float)), (self._at, indices))
        ]
        loop = s.For(self._index, 0.0, count - 1.0, [*first, *block], backwards, count)
        inputs, operands = zip(*self._inputs.values(), strict=True)
        body = [*self.begin, loop, *self.end]
        kernel = procedure(inputs, [*self.outputs.values()], body)
        return Step(kernel, operands, kernel.results(*operands))


class Given:
    """The arguments of a program of an iteration, and how its cells are made.

    Parameters
    ----------
    frame : Frame
    body : Body
    entered : Entered
    """

    def __init__(self, frame: Frame, body: Body, entered: Entered) -> None:
        self._frame, self._builder = frame, entered.written.builder
        self._arguments: list[tuple[Value, Callable[[], Cell]]] = []
        self._loads: list[Statement] = []
        for key, rows in body.rows.items():
            self.rows(entered.nodes[key].value, rows.value)
        for key, node in body.shared.items():
            if not node.value.is_constant:
                self.number(node.value, entered.nodes[key].value)

    def _given(self, argument: Value | None, cell: Callable[[], Cell]) -> Value:
        self._arguments.append((argument or self._builder.argument(()), cell))
        return self._arguments[-1][0]

    def cell(self, argument: Value | None, cell: Cell) -> Value:
        """Return an argument, a new one if it is None, that a cell holds."""
        return self._given(argument, lambda: cell)

    def number(self, value: Value, argument: Value | None = None) -> Value:
        """Return an argument that is a number outside."""
        return self._given(argument, lambda: self._frame.number(value))

    def rows(self, argument: Value | None, rows: Value | Callable[[], Value]) -> Value:
        """Return an argument that is an element of an outer array, which may be made when read."""

        def loaded() -> Cell:
            cell = Cell()
            self._loads.append(self._frame.load(cell, rows() if callable(rows) else rows))
            return cell

        return self._given(argument, loaded)

    def statements(
        self, outputs: Sequence[tuple[Cell, Value]], sums: Iterable[tuple[Cell, Value]]
    ) -> list[Statement]:
        """Return the program from cells to cells, with what it reads. Arguments that nothing reads
        are left out.
        """
        sums = [(cell, v) for cell, v in sums if not is_number(v, 0.0)]
        result = [self._builder.number(v) for _, v in (*outputs, *sums)]
        arguments = [v for v, _ in self._arguments]
        program = optimised(Program(arguments, self._builder.steps, result))
        read = {id(v.base) for v in chain(*(x.operands for x in program.steps), program.outputs)}
        if not result and not program.steps:
            return []
        inputs = [(v, cell()) for v, cell in self._arguments if id(v) in read]
        program.arguments = [v for v, _ in inputs]
        cells = [cell for _, cell in inputs]
        line = Line(program, cells, [cell for cell, _ in outputs], [cell for cell, _ in sums])
        return [*self._loads, line]
