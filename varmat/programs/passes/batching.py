"""Batching: independent similar steps become one step over a leading axis.

Loops that repeat the same entries are arrays already (see `varmat.programs.record.recurrences`).
The rest are loops that branch on data, sums of several lengths, trees. The program is written
again, batch by batch: of the steps whose operands are known, next come those of the role with the
least average depth (G. Neubig et al., On-the-fly operation batching in dynamic computation graphs,
2017). The results of a batch are rows of one value. The members' operands at one position are a
column: a value that they share, constants on top of each other, a view or a gather if the rows lie
in one value, and otherwise an array assembled of parts. `Kernel.batched` writes the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from varmat.programs.build.arithmetic import ADD
from varmat.programs.ir.program import BOOL, FLOAT, Program, Shape, Step, Value, element_places
from varmat.programs.kernels.reductions import SUM
from varmat.programs.passes.rewriter import Rewriter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from varmat.programs.build.builder import Builder

    K = TypeVar("K", bound=Hashable)

# Equal steps from which a program is worth batching.
LEAST = 8
# Terms in one base from which they are summed at once.
_FEW = 4
# How far the role of a step looks back.
_ROUNDS = 2


class Column(NamedTuple):
    """An operand of all members of a batch.

    Attributes
    ----------
    shape : tuple of int
        The shape of the operand of one member.
    make : callable
        Makes the value: of that shape if the members share it, else with a leading axis.
    is_shared : bool
    whole : tuple, optional
        The value in which all lies, and where, in bytes.
    """

    shape: Shape
    make: Callable[[], Value]
    is_shared: bool = False
    whole: tuple[Value, np.ndarray] | None = None


class Batch(NamedTuple):
    """Similar steps, about to become one.

    Attributes
    ----------
    builder : Builder
    step : Step
        One of them.
    n : int
        The number of members.
    columns : list of Column
        Their operands.
    """

    builder: Builder
    step: Step
    n: int
    columns: list[Column]

    def operands(self) -> list[Value]:
        """Return the columns in shapes that broadcast to the result."""
        return [self.aligned(column, self.step.results[0].shape) for column in self.columns]

    def aligned(self, column: Column, shape: Shape) -> Value:
        """Return a column in a shape that broadcasts to members of a shape after a leading axis."""
        x, missing = column.make(), len(shape) - len(column.shape)
        if column.is_shared or not missing:
            return x
        return self.builder.view(x, lambda a: a[(slice(None), *(None,) * missing)])

    def full(self, column: Column) -> Value:
        """Return a column with a leading axis, also if it is shared."""
        return self.builder.broadcast(column.make(), (self.n, *column.shape))


def batched(program: Program) -> Program:
    """Make one step of many similar ones."""
    keys, longest = [*map(_key, program.steps)], [len(step.operands) for step in program.steps]
    if max([*Counter(keys).values(), *longest], default=0) < LEAST:
        return program
    batching = _Batching(program, keys)
    if max([*Counter(batching.roles).values(), *longest]) < LEAST:
        return program
    for batch in _agenda(program.steps, batching.roles):
        if len(batch) < LEAST or not batching.join(batch):
            for step in batch:
                batching.keep(step)
    return batching.program()


def _adds_up(step: Step) -> bool:
    """Return whether a step adds up values of its shape, in any order."""
    return step.kernel in (SUM, ADD) and all(
        v.shape == step.results[0].shape for v in step.operands
    )


_IN_ANY_ORDER = "terms"


def _key(step: Step) -> tuple[Hashable, ...] | None:
    """Return a key that is equal for steps that may be one, but for the roles of their operands;
    None for a step that stays.
    """
    kernel, results = step.kernel, step.results
    is_one = len(results) == 1 and results[0].dtype in (FLOAT, BOOL)
    has_elements = all(v.size for v in (*step.operands, *results))
    if not (kernel.is_guard or (kernel.is_batchable and is_one and has_elements)):
        return None
    if _adds_up(step):
        return _IN_ANY_ORDER, results[0].shape
    return kernel, *(
        (v.shape, v.dtype.char, *(() if v.base.is_constant else v.strides), v.base.is_constant)
        for v in step.operands
    )


def _agenda(steps: Sequence[Step], roles: Sequence[int]) -> Iterator[list[Step]]:
    """Yield steps of one role, the results of earlier ones known. Steps that are not pure keep
    their order; guards may change places with guards.
    """
    result = {id(v): i for i, step in enumerate(steps) for v in step.results}
    readers: list[list[int]] = [[] for _ in steps]
    waits, depths, barrier = [0] * len(steps), [0] * len(steps), list[int]()
    for i, step in enumerate(steps):
        needs = {result[id(v.base)] for v in step.operands if id(v.base) in result}
        if not (step.kernel.is_pure or step.kernel.is_guard):
            needs.update(barrier)
            barrier = [i]
        elif step.kernel.is_guard:
            barrier.append(i)
        waits[i], depths[i] = len(needs), max((depths[j] + 1 for j in needs), default=0)
        for j in needs:
            readers[j].append(i)
    # Steps that no other is like go first: others may wait for them.
    counts = np.bincount(roles)
    average = np.where(counts > 1, np.bincount(roles, depths) / np.maximum(counts, 1), -1.0)
    ready: dict[int, list[int]] = {}
    heap: list[tuple[float, int]] = []

    def enter(i: int) -> None:
        if roles[i] not in ready:
            heappush(heap, (float(average[roles[i]]), roles[i]))
        ready.setdefault(roles[i], []).append(i)

    for i in range(len(steps)):
        if not waits[i]:
            enter(i)
    while heap:
        batch = sorted(ready.pop(heappop(heap)[1]))
        yield [steps[i] for i in batch]
        for i in batch:
            for j in readers[i]:
                waits[j] -= 1
                if not waits[j]:
                    enter(j)


def _grouped(keys: Iterable[K]) -> dict[K, list[int]]:
    """Return the indices of equal keys."""
    groups: dict[K, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return groups


def _where(x: Value) -> Hashable:
    """Return a key that is equal for values that lie in one base as rows may."""
    return (0 if x.base.is_constant else id(x.base), x.shape, x.strides, x.dtype)


def _rows(to: Sequence[int], strides: Shape, shape: Shape, itemsize: int = 8) -> np.ndarray:
    """Return the indices of the elements of values on top of each other, each at its byte."""
    indices = element_places(shape, strides, itemsize=itemsize)
    return np.asarray(np.add.outer(np.array(to) // itemsize, indices))


class _Batching(Rewriter):
    """Writes a program again.

    Attributes
    ----------
    roles : list of int
        The role of each step; steps of one role may be one.
    """

    def __init__(self, program: Program, keys: Sequence[tuple[Hashable, ...] | None]) -> None:
        super().__init__(program)
        # Constants and gathers by what they are made of, so that equal steps are one.
        self._values: dict[Hashable, Value] = {}
        self._role = dict.fromkeys(map(id, program.arguments), 0)
        numbers = {key: i for i, key in enumerate(keys)}
        bases = [[id(v.base) for v in step.operands] for step in program.steps]
        for _ in range(_ROUNDS + 1):
            stats: dict[Hashable, int] = {}
            self.roles = []
            for i, (key, read) in enumerate(zip(keys, bases, strict=True)):
                seen = [self._role.get(base, -1) for base in read]
                if key is not None and key[0] == _IN_ANY_ORDER:
                    seen.sort()
                full = i if key is None else (numbers[key], *seen)
                self.roles.append(stats.setdefault(full, len(stats) + 1))
            if max(Counter(self.roles).values(), default=0) < LEAST:
                break  # later rounds only tell more steps apart
            for step, role, key in zip(program.steps, self.roles, keys, strict=True):
                self._role.update((id(v), -2 if key is None else role) for v in step.results)

    def join(self, batch: Sequence[Step]) -> bool:
        """Write steps as one; False if that does not pay."""
        step, n, builder = batch[0], len(batch), self.builder
        members = [x.operands for x in batch]
        if is_sum := _adds_up(step):
            members = [tuple(sorted(member, key=self._order)) for member in members]
        columns, scattered = [], 0
        for olds in zip(*members, strict=True):
            column, pieces = self._column(olds)
            scattered += pieces - 1
            columns.append(column)
        # Steps that read the same become one step by themselves.
        if scattered > n or all(column.is_shared for column in columns):
            return False
        if step.kernel.is_guard:
            builder.guard(columns[0].make())
            return True
        joined = Batch(builder, step, n, columns)
        result = builder.add_all(joined.operands()) if is_sum else step.kernel.batched(joined)
        if result is not None:
            self._replace_by_rows([x.results[0] for x in batch], result)
        return result is not None

    def _order(self, v: Value) -> tuple[int, int]:
        return self._role.get(id(v.base), -1), v.offset

    def _replace_by_rows(self, old: Sequence[Value], new: Value) -> None:
        shape = old[0].shape
        x = self.builder.contiguous(self.builder.broadcast(new, (len(old), *shape)))
        rows = (
            self.builder.part(x, shape, i * x.strides[0], x.strides[1:]) for i in range(len(old))
        )
        self.replace(old, rows)

    def _column(self, old: Sequence[Value]) -> tuple[Column, int]:
        """Make the column of an operand of the members, and count the pieces it is made of."""
        values = [*map(self.value, old)]
        first, groups = values[0], _grouped(map(_where, values))
        full = None
        if len(groups) == 1 and not first.base.is_constant:
            full = first.base, np.array([x.offset for x in values])
        if all(x is first for x in values):
            return Column(first.shape, lambda: first, True, full), 1
        if len(groups) == 1:
            return Column(first.shape, lambda: self._taken(values), False, full), 1
        return Column(first.shape, lambda: self._assembled(old, values, groups)), len(groups)

    def _taken(self, values: Sequence[Value]) -> Value:
        """Return constants, or parts of one value, with a leading axis."""
        first, builder = values[0], self.builder
        key = tuple(map(id, values))
        if key not in self._values:
            if first.base.is_constant:
                rows = np.array([x.array_in(x.base.data) for x in values])
                self._values[key] = builder.constant(rows)
            else:
                to, size = [x.offset for x in values], int(first.dtype.itemsize)
                indices = _rows(to, first.strides, first.shape, size)
                self._values[key] = builder.gather(first.base, indices)
        return self._values[key]

    def _assembled(
        self, old: Sequence[Value], values: Sequence[Value], groups: dict[Hashable, list[int]]
    ) -> Value:
        """Assemble values with a leading axis, where later steps find them from now on."""
        builder, shape = self.builder, (len(values), *values[0].shape)
        full = Value(shape)
        parts = []
        for mine in groups.values():
            x = builder.number(self._taken([values[i] for i in mine]))
            to = [i * full.strides[0] for i in mine]
            parts.append((_rows(to, full.strides[1:], shape[1:]), x.shape, x))
        result = builder.assemble(shape, parts)
        result = builder.truth(result) if values[0].dtype == BOOL else result
        for i, v in enumerate(old):
            if not (v.is_view or v.is_constant):
                self.replace([v], [builder.part(result, v.shape, i * result.strides[0], v.strides)])
        return result

    # --- steps on their own ---

    def keep(self, step: Step) -> None:
        result = None
        if len(step.operands) >= LEAST:
            result = self._sum(step) if _adds_up(step) else self._assembly(step)
        if result is None:
            super().keep(step)
        else:
            self.replace(step.results, [result])

    def _sum(self, step: Step) -> Value:
        """Sum many terms: terms that lie in one base are summed at once."""
        values, terms = [*map(self.value, step.operands)], list[Value]()
        for mine in _grouped(map(_where, values)).values():
            group = sorted((values[i] for i in mine), key=lambda x: x.offset)
            is_few = len(group) < _FEW or group[0].base.is_constant
            terms += group if is_few else [self.builder.sum(self._taken(group), (0,))]
        return self.builder.add_all(terms)

    def _assembly(self, step: Step) -> Value | None:
        """Make an array of many parts: parts that lie in one base become one part."""
        (base, inputs), parts = step.kernel.parts([*map(self.value, step.operands)]), []
        if not inputs or step.results[0].dtype != FLOAT:
            return None
        inputs = sorted(inputs, key=lambda part: 0 if part[0] is None else part[0][0])
        groups = _grouped(
            i if index is not None or x.shape != shape else (_where(x), place[1])
            for i, (place, shape, x, index) in enumerate(inputs)
        )
        for key, mine in groups.items():
            place, shape, x, index = inputs[mine[0]]
            if isinstance(key, int):
                parts.append((place if index is None else index.data, shape, x))
            else:
                rows = self.builder.number(self._taken([inputs[i][2] for i in mine]))
                to = [inputs[i][0][0] for i in mine]
                parts.append((_rows(to, place[1], shape), rows.shape, rows))
        return self.builder.assemble(step.results[0].shape, parts, base)
