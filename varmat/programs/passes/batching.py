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
    """

    shape: Shape
    cost: float
    make: Callable[[], Value]
    is_shared: bool = False


class Batch:
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

    def __init__(self, builder: Builder, step: Step, n: int, columns: list[Column]) -> None:
        self.builder, self.step, self.n, self.columns = builder, step, n, columns

    def operands(self) -> list[Value]:
        """The columns in shapes that broadcast to the result."""
        return [self.aligned(column, self.step.results[0].shape) for column in self.columns]

    def aligned(self, column: Column, shape: Shape) -> Value:
        """A column in a shape that broadcasts to members of a shape behind a leading axis."""
        x, missing = column.make(), (1,) * (len(shape) - len(column.shape))
        if column.is_shared or not missing:
            return x
        whole = (self.n, *missing, *column.shape)
        if x.data is not None:
            return self.builder.constant(x.data.reshape(whole))
        return self.builder.part(x, whole, 0, (x.strides[0], *(0 for _ in missing), *x.strides[1:]))

    def full(self, column: Column) -> Value:
        """A column with a leading axis, also if it is shared."""
        return self.builder.broadcast(column.make(), (self.n, *column.shape))

    def whole(self, operand: int) -> tuple[Value, np.ndarray] | None:
        """The value in which an operand of all members lies, and where, in bytes; None if it lies
        in several, or is constant.
        """
        return None

    def constants(self, operand: int) -> np.ndarray | None:
        """The arrays of an operand; None if they are not constant."""
        return None


class _Batch(Batch):
    """Steps of the program that is written anew."""

    def __init__(self, batching: Batching, step: Step, numbers: np.ndarray) -> None:
        columns = [batching.column(each) for each in numbers.T]
        super().__init__(batching.builder, step, len(numbers), columns)
        self._batching, self._numbers = batching, numbers

    def whole(self, operand: int) -> tuple[Value, np.ndarray] | None:
        _, places, offsets = self._batching.where(self._numbers[:, operand])
        if places[0] < 0 or _differ(places):
            return None
        return self._batching.made(int(places[0])), offsets

    def constants(self, operand: int) -> np.ndarray | None:
        numbers = self._numbers[:, operand]
        if not self._batching.graph.constant[numbers].all():
            return None
        return np.array([self._batching.constant(i) for i in numbers.tolist()])


class Batching:
    """Writes a program anew."""

    def __init__(self, program: Program) -> None:
        self._old, self.graph = program, Graph(program)
        self.builder = Builder()
        self._made: list[Value] = []
        self._made_numbers: dict[int, int] = {}
        # Where the bases of the old program are in the new one: the number of a base, and bytes.
        self._place = np.full(len(self.graph.bases), -1)
        self._offset = np.zeros(len(self.graph.bases), int)
        # Constants and gathers by what they are made of, so that equal steps are one.
        self._known: dict[Hashable, Value] = {}
        for value in program.arguments:
            self._settle([self.graph.base_number[id(value)]], self.builder.argument(value.shape))

    def program(self) -> Program:
        graph = self.graph
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
        return self.builder.program([self.value(graph.number[id(v)]) for v in self._old.outputs])

    # --- places ---

    def _settle(
        self, old: list[int] | np.ndarray, new: Value, rows: np.ndarray | None = None
    ) -> None:
        """Note where old bases are: one, or several that are rows of a new value."""
        if new.data is not None and not new.is_contiguous:
            new = self.builder.constant(np.ascontiguousarray(new.data))
        elif len(new.shape) > (rows is not None):
            new = self.builder.contiguous(new)
        self._place[old] = self._place_of(new.base)
        self._offset[old] = new.offset if rows is None else new.offset + rows * new.strides[0]

    def _place_of(self, base: Value) -> int:
        number = self._made_numbers.setdefault(id(base), len(self._made))
        if number == len(self._made):
            self._made.append(base)
        return number

    def _settle_batch(self, batch: np.ndarray, new: Value) -> None:
        bases = [self.graph.base_number[id(self.graph.steps[i].results[0])] for i in batch.tolist()]
        shape = self.graph.bases[bases[0]].shape
        self._settle(
            bases, self.builder.broadcast(new, (len(batch), *shape)), np.arange(len(batch))
        )

    def where(self, numbers: np.ndarray) -> Members:
        """Old values, and where they are now."""
        base, is_constant = self.graph.base[numbers], self.graph.constant[numbers]
        places, offsets = self._place[base], self._offset[base] + self.graph.offset[numbers]
        return Members(
            numbers, np.where(is_constant, -1, places), np.where(is_constant, 0, offsets)
        )

    def value(self, number: int) -> Value:
        """An old value in the new program."""
        old = self.graph.values[number]
        if old.base.data is not None:
            return self.builder.constant(self.constant(number))
        base = self.graph.base[number]
        whole, offset = self._made[self._place[base]], int(self._offset[base]) + old.offset
        return self.builder.part(whole, old.shape, offset, old.strides)

    def constant(self, number: int) -> Array:
        """The array of an old value that is constant."""
        old = self.graph.values[number]
        return old.array_in(old.base.data)

    def made(self, place: int) -> Value:
        return self._made[place]

    # --- columns ---

    def column(self, numbers: np.ndarray) -> Column:
        """What members read in one place, by the numbers of the values."""
        old, n, members = self.graph.values[numbers[0]], len(numbers), self.where(numbers)
        _, places, offsets = members
        is_one = not _differ(places)
        if not _differ(numbers) or (is_one and places[0] >= 0 and not _differ(offsets)):
            return Column(old.shape, 0.0, partial(self.value, int(numbers[0])), True)
        if is_one and (places[0] < 0 or _step_of(offsets) is not None):
            return Column(old.shape, 0.0, partial(self.taken, members))
        make = self.taken if is_one else self._assembled
        cost = STEP + IRREGULAR * n * old.size if is_one else self._cost_of_parts(places, old.size)
        if old.dtype == BOOL and not old.shape:
            cost, make = cost + 3 * STEP + 2 * ELEMENT * n, self._truths
        elif old.dtype != FLOAT:
            cost = math.inf
        return Column(old.shape, cost, partial(make, members))

    def _cost_of_parts(self, places: np.ndarray, size: int) -> float:
        counts = np.unique(places, return_counts=True)[1]
        alone = NUMBER_PART if size == 1 else PART + ELEMENT * size
        return float(np.where(counts > 1, PART + 2 * IRREGULAR * size * counts, alone).sum())

    def _truths(self, members: Members) -> Value:
        """Truth values with a leading axis, by way of numbers."""
        numbers, places, offsets = members
        of_numbers = {
            place: self._place_of(self.builder.number(self._made[place]))
            for place in np.unique(places[places >= 0]).tolist()
        }
        places = np.array([of_numbers.get(place, place) for place in places.tolist()])
        make = self._added if _differ(places) else self.taken
        return self.builder.truth(make(Members(numbers, places, 8 * offsets)))

    def taken(self, members: Members) -> Value:
        """Constants, or parts of one value, with a leading axis: as a view if they lie at equal
        distances.
        """
        numbers, places, offsets = members
        like, place, step = self.graph.values[numbers[0]], places[0], _step_of(offsets)
        if place >= 0 and step is not None:
            shape, strides = (len(offsets), *like.shape), (step, *like.strides)
            return self.builder.part(self._made[place], shape, int(offsets[0]), strides)
        key = (
            numbers.tobytes() if place < 0 else (place, offsets.tobytes(), like.shape, like.strides)
        )
        if key not in self._known and place < 0:
            rows = np.array([self.constant(i) for i in numbers.tolist()])
            self._known[key] = self.builder.constant(rows)
        elif key not in self._known:
            index = np.add.outer(offsets // 8, element_places(like.shape, like.strides))
            self._known[key] = self.builder.gather(self._made[place], index)
        return self._known[key]

    def _assembled(self, members: Members) -> Value:
        """Values assembled with a leading axis, where later steps find them from now on."""
        made, graph = self._added(members), self.graph
        whole = np.flatnonzero(
            [
                not graph.values[i].is_view and not graph.constant[i]
                for i in members.numbers.tolist()
            ]
        )
        self._settle(graph.base[members.numbers[whole]], made, whole)
        return made

    def _added(self, members: Members, rows: np.ndarray | None = None) -> Value:
        """Zeros with old values added to rows, by default each to its own."""
        rows = np.arange(len(members.numbers)) if rows is None else rows
        shape = (int(rows.max()) + 1, *self.graph.values[members.numbers[0]].shape)
        first, *strides = contiguous_strides(shape)
        order = np.argsort(members.places, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(members.places[order])) + 1)
        parts = [self._part(rows[g] * first, tuple(strides), members.at(g)) for g in groups]
        return self.builder.assemble(shape, parts)

    def _part(self, to: np.ndarray, strides: Shape, members: Members) -> Part:
        """Values that lie in one base as one part of an assembled array; each is added at its byte
        `to`.
        """
        shape = (len(to), *self.graph.values[members.numbers[0]].shape)
        order = np.argsort(to, kind="stable")
        step = _step_of(to[order])
        place: Place
        if step:
            place = (int(to[order[0]]), (step, *strides))
        else:
            order = np.argsort(members.offsets, kind="stable")
            place = np.add.outer(to[order] // 8, element_places(shape[1:], strides))
        return place, shape, self.builder.number(self.taken(members.at(order)))

    # --- batches ---

    def _alike(self, batch: np.ndarray) -> None:
        """Write steps of one kernel as one step, if that pays."""
        graph, step = self.graph, self.graph.steps[batch[0]]
        numbers = graph.read[graph.first[batch][:, None] + np.arange(len(step.operands))]
        strays = _strays(self.where(numbers).places)
        self._singles(batch[strays])
        batch, numbers = batch[~strays], numbers[~strays]
        order = self._order(numbers)
        batch, joined = batch[order], _Batch(self, step, numbers[order])
        cost = STEP + ELEMENT * joined.n * step.results[0].size
        cost += sum(column.cost for column in joined.columns)
        made = step.kernel.batched(joined) if cost < joined.n * _alone(step) else None
        if made is None:
            self._singles(np.sort(batch))
        else:
            self._settle_batch(batch, made)

    def _order(self, numbers: np.ndarray) -> np.ndarray:
        """The members in the order of the operand that differs most among them."""
        best, most = np.arange(len(numbers)), 1
        for column in numbers.T:
            _, places, offsets = self.where(column)
            order = np.lexsort((offsets, places))
            places, offsets = places[order], offsets[order]
            different = 1 + int(((places[1:] != places[:-1]) | (offsets[1:] != offsets[:-1])).sum())
            if different > most:
                best, most = order, different
        return best

    def _guards(self, batch: np.ndarray) -> None:
        """Write guards as one, if that pays; guards of the same value are always one."""
        step, numbers = self.graph.steps[batch[0]], self.graph.read[self.graph.first[batch]]
        _, once = np.unique(np.stack(self.where(numbers)[1:]), axis=1, return_index=True)
        column, n = self.column(numbers[once]), len(once)
        steps = 1 if step.operands[0].dtype == BOOL else 4
        if n > 1 and column.cost + steps * (STEP + ELEMENT * n) <= n * NUMBER:
            step.kernel.require(self.builder, column.make())
        else:
            self._singles(np.sort(batch[once]))

    def _sums(self, batch: np.ndarray) -> None:
        """Write sums as one, if that pays: with equally many terms as a sum of columns, others by
        adding each term to its place.
        """
        graph, arity = self.graph, self.graph.arity[batch]
        rows = np.repeat(np.arange(len(batch)), arity)
        at = np.arange(len(rows)) + np.repeat(graph.first[batch] - np.cumsum(arity) + arity, arity)
        members = self.where(graph.read[at])
        numbers, places, offsets = members
        n, size = len(batch), graph.steps[batch[0]].results[0].size
        singly = float((arity - 1).sum()) * _alone(graph.steps[batch[0]])
        adding = STEP + self._cost_of_parts(places, size)
        # A constant has no layout of its own.
        layouts = np.where(graph.constant[numbers], -1, graph.layout[numbers])
        if _differ(layouts[layouts >= 0]):
            adding = math.inf
        if not _differ(arity):
            order = np.lexsort((offsets, places, layouts, self._tokens[at], rows)).reshape(n, -1)
            if not any(_differ(column[column >= 0]) for column in layouts[order].T):
                aligned = numbers[order]
                order = self._order(aligned)
                columns = [self.column(column) for column in aligned[order].T]
                cost = (len(columns) - 1) * (STEP + ELEMENT * n * size)
                cost += sum(column.cost for column in columns)
                if cost < min(singly, adding):
                    total = self.builder.add_all([column.make() for column in columns])
                    self._settle_batch(batch[order], total)
                    return
        if adding < singly:
            self._settle_batch(batch, self._added(members, rows))
        else:
            self._singles(batch)

    # --- steps on their own ---

    def _singles(self, batch: np.ndarray) -> None:
        graph = self.graph
        for i in batch.tolist():
            step, numbers = graph.steps[i], graph.read[graph.first[i] : graph.first[i + 1]]
            made = self._of_many(step, numbers) if len(numbers) >= LEAST else None
            news = (
                self.builder.apply(step.kernel, *map(self.value, numbers.tolist()))
                if made is None
                else (made,)
            )
            for old, new in zip(step.results, news, strict=True):
                self._settle([graph.base_number[id(old)]], new)

    def _of_many(self, step: Step, numbers: np.ndarray) -> Value | None:
        """The result of a step with many operands, if it can be had from few values."""
        if adds_up(step):
            return self._sum_of(numbers)
        base, given = step.kernel.parts(numbers.tolist())
        return self._assembly(step, base, given) if given else None

    def _sum_of(self, numbers: np.ndarray) -> Value:
        """A sum of many terms: those that lie in one base are summed at once."""
        members, values = self.where(numbers), self.graph.values
        strides = [values[i].strides for i in numbers.tolist()]
        keys = zip(members.places.tolist(), strides, strict=True)
        terms = []
        for (place, _), mine in _grouped(keys).items():
            if place < 0 or len(mine) < 4:
                terms += [self.value(i) for i in numbers[mine].tolist()]
            else:
                mine = mine[np.argsort(members.offsets[mine], kind="stable")]
                terms.append(self.builder.sum(self.taken(members.at(mine)), (0,)))
        return self.builder.add_all(terms)

    def _assembly(self, step: Step, base: int | None, given: Parts[int]) -> Value | None:
        """An array of many parts: those that lie in one base become one part."""
        (result,), values, parts = step.results, self.graph.values, []
        if result.dtype != FLOAT:
            return None
        members = self.where(np.array([number for _, _, number, _ in given]))
        keys: list[Hashable] = []
        for i, (place, shape, number, index) in enumerate(given):
            old = values[number]
            strides = None if old.base.data is not None else old.strides
            is_alone = index is not None or old.shape != shape
            keys.append(i if is_alone else (members.places[i], place[1], shape, strides))
        for mine in _grouped(keys).values():
            if len(mine) < 4:
                parts += [
                    (place if index is None else self.constant(index), shape, self.value(number))
                    for place, shape, number, index in (given[i] for i in mine.tolist())
                ]
            else:
                to = np.array([given[i][0][0] for i in mine.tolist()])
                parts.append(self._part(to, given[mine[0]][0][1], members.at(mine)))
        whole = None if base is None else self.value(base)
        return self.builder.assemble(result.shape, parts, whole)


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
    strays = np.zeros(len(places), bool)
    for column in places.T:
        values, counts = np.unique(column, return_counts=True)
        elsewhere = column != values[counts.argmax()]
        if elsewhere.sum() <= min(_STRAYS, len(column) // LEAST):
            strays |= elsewhere
    return strays
