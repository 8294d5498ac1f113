"""Batching: independent steps that are alike become one step over a leading axis, so that a loop
over elements runs as one of arrays.

`schedule` says which steps are alike. Here the program is written anew, batch by batch. The results
of a batch are rows of one value. What the members read in one place is a column: a value that they
share, constants on top of each other, a view if the rows lie at regular distances, a gather if they
lie in one value, and otherwise an array assembled of parts, if that is cheaper than the steps one
by one. `Kernel.batched` writes the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    Part,
    Program,
    Shape,
    Step,
    Value,
    contiguous_strides,
    element_places,
)
from varmat.programs.passes.schedule import Graph, Schedule, adds_up

if TYPE_CHECKING:
    from collections.abc import Hashable

    from varmat.programs.ir.kernel import Parts
    from varmat.programs.ir.program import Array, Place

    K = TypeVar("K", bound=Hashable)

# Equal steps from which a program is worth batching.
LEAST = 16
# What steps cost natively, in nanoseconds: a step of numbers, a step of arrays and each of its
# elements, an element of a gather, a part of an assembled array. A part that is a number counts
# little, since all later steps find it in its new place.
NUMBER, STEP, ELEMENT, IRREGULAR, PART, NUMBER_PART = 12.0, 20.0, 0.7, 1.0, 15.0, 4.0
# Members that read from elsewhere leave a batch if there are at most so many.
_STRAYS = 2
# Terms in one base from which they are summed at once.
_FEW = 4


def batched(program: Program) -> Program:
    """Make one step of many that are alike."""
    most = max(program.counts().values(), default=0)
    return Batching(program).program() if most >= LEAST else program


def _is_batchable(step: Step) -> bool:
    if step.kernel.is_guard:
        return True
    return (
        step.kernel.is_batchable
        and len(step.results) == 1
        and step.results[0].dtype in (FLOAT, BOOL)
        and all(v.size for v in (*step.operands, *step.results))
    )


class Members(NamedTuple):
    """Old values, and where they are now.

    Attributes
    ----------
    numbers : ndarray
        Of the old values.
    places : ndarray
        The numbers of the new bases, negative for constants.
    offsets : ndarray
        Bytes.
    """

    numbers: np.ndarray
    places: np.ndarray
    offsets: np.ndarray

    def at(self, index: np.ndarray) -> Members:
        return Members(*(x[index] for x in self))


class Column(NamedTuple):
    """What the members of a batch read in one place.

    Attributes
    ----------
    shape : tuple of int
        Of what one member reads.
    cost : float
        Of bringing it together.
    make : callable
        Makes the value: of that shape if the members share it, else with a leading axis.
    is_shared : bool
    whole : tuple, optional
        The value in which all lies, and where, in bytes.
    """

    shape: Shape
    cost: float
    make: Callable[[], Value]
    is_shared: bool = False
    whole: tuple[Value, np.ndarray] | None = None


class Batch(NamedTuple):
    """Steps that are alike, about to become one.

    Attributes
    ----------
    builder : Builder
    step : Step
        One of them.
    n : int
        How many they are.
    columns : list of Column
        Their operands.
    """

    builder: Builder
    step: Step
    n: int
    columns: list[Column]

    def operands(self) -> list[Value]:
        """The columns in shapes that broadcast to the result."""
        return [self.aligned(column, self.step.results[0].shape) for column in self.columns]

    def aligned(self, column: Column, shape: Shape) -> Value:
        """A column in a shape that broadcasts to members of a shape behind a leading axis."""
        x, missing = column.make(), len(shape) - len(column.shape)
        if column.is_shared or not missing:
            return x
        return self.builder.view(x, lambda a: a[(slice(None), *(None,) * missing)])

    def full(self, column: Column) -> Value:
        """A column with a leading axis, also if it is shared."""
        return self.builder.broadcast(column.make(), (self.n, *column.shape))

    def cost(self, steps: int = 1) -> float:
        """What bringing the columns together and steps on them cost."""
        each = STEP + ELEMENT * self.n * self.step.results[0].size
        return steps * each + sum(column.cost for column in self.columns)


class Batching:
    """Writes a program anew."""

    def __init__(self, program: Program) -> None:
        self._old, self._graph = program, Graph(program)
        self._builder = Builder()
        self._made: list[Value] = []
        self._made_numbers: dict[int, int] = {}
        # Where the bases of the old program are in the new one: the number of a base, and bytes.
        self._place = np.full(len(self._graph.bases), -1)
        self._offset = np.zeros(len(self._graph.bases), int)
        # Constants and gathers by what they are made of, so that equal steps are one.
        self._known: dict[Hashable, Value] = {}
        arguments = [self._builder.argument(v.shape) for v in program.arguments]
        self._settle(program.arguments, arguments)

    def program(self) -> Program:
        graph = self._graph
        schedule = Schedule(graph, _is_batchable)
        self._tokens = schedule.tokens
        for batch in schedule.batches:
            step = graph.steps[batch[0]]
            if len(batch) < 2:
                self._singles(batch)
            elif step.kernel.is_guard:
                self._guards(batch)
            elif adds_up(step):
                self._sums(batch)
            else:
                self._alike(batch)
        return self._builder.program([self._value(graph.number[id(v)]) for v in self._old.outputs])

    # --- places ---

    def _settle(self, old: Iterable[Value], new: Iterable[Value]) -> None:
        """Note where old bases are."""
        for v, x in zip(old, new, strict=True):
            x, number = self._builder.contiguous(x), self._graph.base_number[id(v)]
            self._place[number], self._offset[number] = self._place_of(x.base), x.offset

    def _settle_rows(self, old: np.ndarray, new: Value, rows: np.ndarray) -> None:
        """Note that old bases are rows of a value."""
        x = self._builder.contiguous(new) if len(new.shape) > 1 else new
        self._place[old], self._offset[old] = self._place_of(x.base), x.offset + rows * x.strides[0]

    def _settle_batch(self, batch: np.ndarray, new: Value) -> None:
        results = [self._graph.steps[i].results[0] for i in batch.tolist()]
        bases = np.array([self._graph.base_number[id(v)] for v in results])
        whole = self._builder.broadcast(new, (len(batch), *results[0].shape))
        self._settle_rows(bases, whole, np.arange(len(batch)))

    def _place_of(self, base: Value) -> int:
        number = self._made_numbers.setdefault(id(base), len(self._made))
        if number == len(self._made):
            self._made.append(base)
        return number

    def _where(self, numbers: np.ndarray) -> Members:
        """Old values, and where they are now."""
        base = self._graph.base[numbers]
        return Members(numbers, self._place[base], self._offset[base] + self._graph.offset[numbers])

    def _value(self, number: int) -> Value:
        """An old value in the new program."""
        old, base = self._graph.values[number], self._graph.base[number]
        if old.base.is_constant:
            return self._builder.constant(self._constant(number))
        whole, offset = self._made[self._place[base]], int(self._offset[base]) + old.offset
        return self._builder.part(whole, old.shape, offset, old.strides)

    def _constant(self, number: int) -> Array:
        """The array of an old value that is constant."""
        old = self._graph.values[number]
        return old.array_in(old.base.data)

    # --- columns ---

    def _column(self, numbers: np.ndarray) -> Column:
        """What members read in one place, by the numbers of the values."""
        old, n, members = self._graph.values[numbers[0]], len(numbers), self._where(numbers)
        _, places, offsets = members
        is_one = not (_differ(places) or _differ(self._graph.layout[numbers]))
        is_given = places[0] < 0
        whole = None if is_given or not is_one else (self._made[places[0]], offsets)
        if not _differ(numbers) or (whole and not _differ(offsets)):
            return Column(old.shape, 0.0, partial(self._value, int(numbers[0])), True, whole)
        if is_one and (is_given or _step_of(offsets) is not None):
            return Column(old.shape, 0.0, partial(self._taken, members), whole=whole)
        cost = STEP + IRREGULAR * n * old.size if is_one else self._cost_of_parts(places, old.size)
        if old.dtype == BOOL:  # by way of numbers
            cost += 3 * STEP + 2 * ELEMENT * n
        make = self._taken if is_one else self._assembled
        return Column(old.shape, cost, partial(make, members), whole=whole)

    def _cost_of_parts(self, places: np.ndarray, size: int) -> float:
        counts = np.bincount(places + 1)
        alone = NUMBER_PART if size == 1 else PART + ELEMENT * size
        costs = np.where(counts > 1, PART + 2 * IRREGULAR * size * counts, alone * counts)
        return float(costs.sum())

    def _taken(self, members: Members) -> Value:
        """Constants, or parts of one value, with a leading axis: as a view if they lie at equal
        distances.
        """
        numbers, places, offsets = members
        like, place, step = self._graph.values[numbers[0]], places[0], _step_of(offsets)
        if place >= 0 and step is not None:
            shape, strides = (len(offsets), *like.shape), (step, *like.strides)
            return self._builder.part(self._made[place], shape, int(offsets[0]), strides)
        of_constants, of_parts = numbers.tobytes(), (offsets.tobytes(), like.shape, like.strides)
        key = (place, of_constants if place < 0 else of_parts)
        if key not in self._known and place < 0:
            rows = np.array([self._constant(i) for i in numbers.tolist()])
            self._known[key] = self._builder.constant(rows)
        elif key not in self._known:
            size = like.dtype.itemsize
            places = element_places(like.shape, like.strides, itemsize=size)
            index = np.add.outer(offsets // size, places)
            self._known[key] = self._builder.gather(self._made[place], index)
        return self._known[key]

    def _assembled(self, members: Members) -> Value:
        """Values assembled with a leading axis, where later steps find them from now on."""
        graph, made = self._graph, self._added(members, np.arange(len(members.numbers)))
        values = [graph.values[i] for i in members.numbers.tolist()]
        if values[0].dtype == BOOL:
            made = self._builder.truth(made)
        rows = np.array([i for i, v in enumerate(values) if not (v.is_view or v.is_constant)], int)
        self._settle_rows(graph.base[members.numbers[rows]], made, rows)
        return made

    def _added(self, members: Members, rows: np.ndarray) -> Value:
        """Zeros with old values added to rows."""
        shape = (int(rows.max()) + 1, *self._graph.values[members.numbers[0]].shape)
        first, *strides = contiguous_strides(shape)
        layouts = self._graph.layout[members.numbers]
        parts = [
            self._part(rows[mine] * first, tuple(strides), members.at(mine))
            for mine in _grouped(zip(members.places, layouts, strict=True)).values()
        ]
        return self._builder.assemble(shape, parts)

    def _part(self, to: np.ndarray, strides: Shape, members: Members) -> Part:
        """Values that lie in one base as one part of an assembled array; each is added at its byte
        `to`.
        """
        shape = (len(to), *self._graph.values[members.numbers[0]].shape)
        order = np.argsort(to, kind="stable")
        step = _step_of(to[order])
        place: Place
        if step:
            place = (int(to[order[0]]), (step, *strides))
        else:
            order = np.argsort(members.offsets, kind="stable")
            place = np.add.outer(to[order] // 8, element_places(shape[1:], strides))
        return place, shape, self._builder.number(self._taken(members.at(order)))

    # --- batches ---

    def _batch(self, step: Step, numbers: np.ndarray) -> Batch:
        columns = [self._column(each) for each in numbers.T]
        return Batch(self._builder, step, len(numbers), columns)

    def _alike(self, batch: np.ndarray) -> None:
        """Write steps of one kernel as one step, if that pays."""
        graph, step = self._graph, self._graph.steps[batch[0]]
        numbers = graph.read[graph.first[batch][:, None] + np.arange(len(step.operands))]
        strays = _strays(self._where(numbers).places)
        self._singles(batch[strays])
        batch, numbers = batch[~strays], numbers[~strays]
        order = self._order(numbers)
        joined = self._batch(step, numbers[order])
        # Steps that read the same become one step by themselves.
        pays = not all(c.is_shared for c in joined.columns)
        pays = pays and joined.cost() < joined.n * _alone(step)
        made = step.kernel.batched(joined) if pays else None
        if made is None:
            self._singles(batch)
        else:
            self._settle_batch(batch[order], made)

    def _order(self, numbers: np.ndarray) -> np.ndarray:
        """The members in the order of the operand that differs most among them."""
        best, most = np.arange(len(numbers)), 1
        for column in numbers.T:
            _, places, offsets = self._where(column)
            order = np.lexsort((offsets, places))
            steps = np.diff(places[order]) != 0, np.diff(offsets[order]) != 0
            different = 1 + int(np.logical_or(*steps).sum())
            if different > most:
                best, most = order, different
        return best

    def _guards(self, batch: np.ndarray) -> None:
        """Write guards as one, if that pays."""
        step, n = self._graph.steps[batch[0]], len(batch)
        column = self._column(self._graph.read[self._graph.first[batch]])
        steps = 1 if step.operands[0].dtype == BOOL else 4
        if column.cost + steps * (STEP + ELEMENT * n) <= n * NUMBER:
            step.kernel.require(self._builder, column.make())
        else:
            self._singles(batch)

    def _sums(self, batch: np.ndarray) -> None:
        """Write sums as one, if that pays: with equally many terms as a sum of columns, others by
        adding each term to its place.
        """
        graph, step, arity = self._graph, self._graph.steps[batch[0]], self._graph.arity[batch]
        rows = np.repeat(np.arange(len(batch)), arity)
        at = np.concatenate([np.arange(graph.first[i], graph.first[i + 1]) for i in batch])
        members = self._where(graph.read[at])
        numbers, places, offsets = members
        alone = float((arity - 1).sum()) * _alone(step)
        adding = STEP + self._cost_of_parts(places, step.results[0].size)
        if not _differ(arity):
            order = np.lexsort((offsets, places, graph.layout[numbers], self._tokens[at], rows))
            numbers = numbers[order].reshape(len(batch), -1)
            order = self._order(numbers)
            joined = self._batch(step, numbers[order])
            if joined.cost(len(joined.columns) - 1) < min(alone, adding):
                total = self._builder.add_all([column.make() for column in joined.columns])
                self._settle_batch(batch[order], total)
                return
        if adding < alone:
            self._settle_batch(batch, self._added(members, rows))
        else:
            self._singles(batch)

    # --- steps on their own ---

    def _singles(self, batch: np.ndarray) -> None:
        for i in np.sort(batch).tolist():
            step, numbers = self._graph.steps[i], self._graph.operands(i)
            made = self._of_many(step, numbers) if len(numbers) >= LEAST else None
            if made is None:
                operands = map(self._value, numbers.tolist())
                self._settle(step.results, self._builder.apply(step.kernel, *operands))
            else:
                self._settle(step.results, [made])

    def _of_many(self, step: Step, numbers: np.ndarray) -> Value | None:
        """The result of a step with many operands, if it can be had from few values."""
        if adds_up(step):
            return self._sum_of(numbers)
        base, given = step.kernel.parts(numbers.tolist())
        return self._assembly(step, base, given) if given else None

    def _sum_of(self, numbers: np.ndarray) -> Value:
        """A sum of many terms: those that lie in one base are summed at once."""
        members, values = self._where(numbers), self._graph.values
        strides = [values[i].strides for i in numbers.tolist()]
        terms = []
        for (place, _), mine in _grouped(zip(members.places, strides, strict=True)).items():
            if place < 0 or len(mine) < _FEW:
                terms += [self._value(i) for i in numbers[mine].tolist()]
            else:
                mine = mine[np.argsort(members.offsets[mine], kind="stable")]
                terms.append(self._builder.sum(self._taken(members.at(mine)), (0,)))
        return self._builder.add_all(terms)

    def _assembly(self, step: Step, base: int | None, given: Parts[int]) -> Value | None:
        """An array of many parts: those that lie in one base become one part."""
        (result,), graph, parts = step.results, self._graph, []
        if result.dtype != FLOAT:
            return None
        groups: dict[tuple[int, int, Shape], list[int]] = {}
        for i, (place, shape, number, index) in enumerate(given):
            if index is not None or graph.values[number].shape != shape:
                at = place if index is None else self._constant(index)
                parts.append((at, shape, self._value(number)))
            else:
                key = self._place[graph.base[number]], graph.layout[number], place[1]
                groups.setdefault(key, []).append(i)
        for (_, _, strides), mine in groups.items():
            to = np.array([given[i][0][0] for i in mine])
            members = self._where(np.array([given[i][2] for i in mine]))
            parts.append(self._part(to, strides, members))
        whole = None if base is None else self._value(base)
        return self._builder.assemble(result.shape, parts, whole)


def _alone(step: Step) -> float:
    """What a step costs if it is not batched."""
    shapes = [v.shape for v in (*step.operands, *step.results)]
    return NUMBER if not any(shapes) else STEP + ELEMENT * max(map(math.prod, shapes))


def _step_of(offsets: np.ndarray) -> int | None:
    """The distance of numbers that are at equal distances; that of one is that of doubles."""
    if len(offsets) == 1:
        return 8
    step = int(offsets[1] - offsets[0])
    return step if (np.diff(offsets) == step).all() else None


def _differ(numbers: np.ndarray) -> bool:
    """Whether some of them are not equal."""
    return bool((numbers != numbers[:1]).any())


def _grouped(keys: Iterable[K]) -> dict[K, np.ndarray]:
    """The places of equal keys."""
    groups: dict[K, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return {key: np.array(group) for key, group in groups.items()}


def _strays(places: np.ndarray) -> np.ndarray:
    """The few members that read another base than all others."""
    most = [np.bincount(column + 1).argmax() - 1 for column in places.T]
    elsewhere = places != most
    few = elsewhere.sum(0) <= min(_STRAYS, len(places) // LEAST)
    return (elsewhere & few).any(1)  # type: ignore[no-any-return]
