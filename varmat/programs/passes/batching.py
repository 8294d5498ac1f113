"""Batching: independent steps that are alike become one step over a leading axis, so that a loop
over elements runs as one of arrays.

`schedule` says which steps are alike. Here the program is written anew, batch by batch. The results
of a batch are rows of one value. What the members read in one place is a column: a value that they
share, constants on top of each other, a view if the rows lie at regular distances, a gather if they
lie in one value, and otherwise an array assembled of parts, if that is cheaper than the steps one
by one. `varmat.programs.passes.batch_writers` writes the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
from varmat.programs.kernels import GUARD, Assemble
from varmat.programs.passes.batch_writers import WRITERS, write_guard
from varmat.programs.passes.schedule import GUARDS, Graph, Schedule, is_worth_it

if TYPE_CHECKING:
    from collections.abc import Hashable

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
    return Batching(program).program() if is_worth_it(program.steps, LEAST) else program


def _is_batchable(step: Step) -> bool:
    if isinstance(step.kernel, GUARDS):
        return True
    if (
        not step.kernel.is_pure
        or len(step.results) != 1
        or step.results[0].dtype not in (FLOAT, BOOL)
    ):
        return False
    return type(step.kernel) in WRITERS and all(v.size for v in (*step.operands, *step.results))


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
            self._settle([self.graph.number_of_base(value)], self.builder.argument(value.shape))

    def program(self) -> Program:
        graph = self.graph
        schedule = Schedule(graph, _is_batchable)
        self._tokens = schedule.tokens
        for batch in schedule.batches:
            step = graph.steps[batch[0]]
            if len(batch) < 2:
                self._singles(batch)
            elif isinstance(step.kernel, GUARDS):
                self._guards(batch)
            elif graph.adds_up(step):
                self._sums(batch)
            else:
                self._alike(batch)
        return self.builder.program([self.value(graph.numbers[id(v)]) for v in self._old.outputs])

    # --- places ---

    def _settle(
        self, old: int | list[int] | np.ndarray, new: Value, rows: np.ndarray | None = None
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
        bases = [self.graph.number_of_base(self.graph.steps[i].results[0]) for i in batch.tolist()]
        shape = self.graph.bases[bases[0]].shape
        self._settle(
            bases, self.builder.broadcast(new, (len(batch), *shape)), np.arange(len(batch))
        )

    def where(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where old values are now: numbers of bases, negative for constants, and bytes."""
        base, is_constant = self.graph.base[numbers], self.graph.constant[numbers]
        places, offsets = self._place[base], self._offset[base] + self.graph.offset[numbers]
        return np.where(is_constant, -1, places), np.where(is_constant, 0, offsets)

    def value(self, number: int) -> Value:
        """An old value in the new program."""
        old = self.graph.values[number]
        if old.base.data is not None:
            return self.builder.constant(self.constant(number))
        base = self.graph.base[number]
        return self.builder.part(
            self._made[self._place[base]],
            old.shape,
            int(self._offset[base]) + old.offset,
            old.strides,
        )

    def constant(self, number: int) -> Array:
        """The array of an old value that is constant."""
        old = self.graph.values[number]
        return old.array_in(old.base.data)

    def made(self, place: int) -> Value:
        return self._made[place]

    # --- columns ---

    def column(self, numbers: np.ndarray) -> Column:
        """What members read in one place, by the numbers of the values."""
        old, n = self.graph.values[numbers[0]], len(numbers)
        places, offsets = self.where(numbers)
        is_one = (places == places[0]).all()
        if (numbers == numbers[0]).all() or (
            is_one and places[0] >= 0 and (offsets == offsets[0]).all()
        ):
            return Column(old.shape, 0.0, partial(self.value, int(numbers[0])), True)
        if is_one and places[0] < 0:
            return Column(old.shape, 0.0, partial(self.taken, numbers, places, offsets))
        if is_one and _step_of(offsets) is not None:
            return Column(old.shape, 0.0, partial(self.taken, numbers, places, offsets))
        cost = STEP + IRREGULAR * n * old.size if is_one else self._cost_of_parts(places, old.size)
        if old.dtype == BOOL and not old.shape:
            return Column(
                (),
                cost + 3 * STEP + 2 * ELEMENT * n,
                partial(self._truths, numbers, places, offsets),
            )
        cost = cost if old.dtype == FLOAT else math.inf
        return Column(
            old.shape,
            cost,
            partial(self.taken if is_one else self._assembled, numbers, places, offsets),
        )

    def _cost_of_parts(self, places: np.ndarray, size: int) -> float:
        counts = np.unique(places, return_counts=True)[1]
        alone = NUMBER_PART if size == 1 else PART + ELEMENT * size
        return float(np.where(counts > 1, PART + 2 * IRREGULAR * size * counts, alone).sum())

    def _truths(self, numbers: np.ndarray, places: np.ndarray, offsets: np.ndarray) -> Value:
        """Truth values with a leading axis, by way of numbers."""
        known = np.unique(places[places >= 0]).tolist()
        of_numbers = {
            place: self._place_of(self.builder.number(self._made[place])) for place in known
        }
        places, offsets = (
            np.array([of_numbers.get(place, place) for place in places.tolist()]),
            8 * offsets,
        )
        if (places == places[0]).all():
            return self.builder.truth(self.taken(numbers, places, offsets))
        return self.builder.truth(self._added(np.arange(len(numbers)), numbers, places, offsets))

    def taken(self, numbers: np.ndarray, places: np.ndarray, offsets: np.ndarray) -> Value:
        """Constants, or parts of one value, with a leading axis: as a view if they lie at equal
        distances.
        """
        like, place = self.graph.values[numbers[0]], places[0]
        step = _step_of(offsets)
        if place >= 0 and step is not None:
            return self.builder.part(
                self._made[place],
                (len(offsets), *like.shape),
                int(offsets[0]),
                (step, *like.strides),
            )
        key = (
            numbers.tobytes() if place < 0 else (place, offsets.tobytes(), like.shape, like.strides)
        )
        known = self._known.get(key)
        if known is None:
            if place < 0:
                known = self.builder.constant(
                    np.array([self.constant(i) for i in numbers.tolist()])
                )
            else:
                known = self.builder.gather(
                    self._made[place],
                    np.add.outer(offsets // 8, element_places(like.shape, like.strides)),
                )
            self._known[key] = known
        return known

    def _assembled(self, numbers: np.ndarray, places: np.ndarray, offsets: np.ndarray) -> Value:
        """Values assembled with a leading axis, where later steps find them from now on."""
        made = self._added(np.arange(len(numbers)), numbers, places, offsets)
        graph = self.graph
        whole = np.flatnonzero(
            [not graph.values[i].is_view and not graph.constant[i] for i in numbers.tolist()]
        )
        self._settle(graph.base[numbers[whole]], made, whole)
        return made

    def _added(
        self, rows: np.ndarray, numbers: np.ndarray, places: np.ndarray, offsets: np.ndarray
    ) -> Value:
        """Zeros with old values added to rows."""
        member = self.graph.values[numbers[0]].shape
        shape = (int(rows.max()) + 1, *member)
        strides = contiguous_strides(shape)
        order = np.argsort(places, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(places[order])) + 1)
        return self.builder.assemble(
            shape,
            [
                self._part(rows[g] * strides[0], strides[1:], numbers[g], places[g], offsets[g])
                for g in groups
            ],
        )

    def _part(
        self,
        to: np.ndarray,
        strides: Shape,
        numbers: np.ndarray,
        places: np.ndarray,
        offsets: np.ndarray,
    ) -> Part:
        """Values that lie in one base as one part of an assembled array; each is added at its byte
        `to`.
        """
        shape = (len(to), *self.graph.values[numbers[0]].shape)
        order = np.argsort(to, kind="stable")
        step = _step_of(to[order])
        place: Place
        if step:
            place = (int(to[order[0]]), (step, *strides))
        else:
            order = np.argsort(offsets, kind="stable")
            place = np.add.outer(to[order] // 8, element_places(shape[1:], strides))
        return place, shape, self.builder.number(self.taken(numbers[order], places, offsets[order]))

    # --- batches ---

    def _alike(self, batch: np.ndarray) -> None:
        """Write steps of one kernel as one step, if that pays."""
        graph, step = self.graph, self.graph.steps[batch[0]]
        numbers = graph.read[graph.first[batch][:, None] + np.arange(len(step.operands))]
        strays = _strays(self.where(numbers.reshape(-1))[0].reshape(numbers.shape))
        self._singles(batch[strays])
        batch, numbers = batch[~strays], numbers[~strays]
        order = self._order(numbers)
        batch, numbers = batch[order], numbers[order]
        n, size = len(batch), step.results[0].size
        columns = [self.column(numbers[:, i]) for i in range(numbers.shape[1])]
        cost = STEP + ELEMENT * n * size + sum(column.cost for column in columns)
        made = (
            WRITERS[type(step.kernel)](self, step, columns, numbers)
            if cost < n * _alone(step)
            else None
        )
        if made is None:
            self._singles(np.sort(batch))
        else:
            self._settle_batch(batch, made)

    def _order(self, numbers: np.ndarray) -> np.ndarray:
        """The members in the order of the operand that differs most among them."""
        best, most = np.arange(len(numbers)), 1
        for i in range(numbers.shape[1]):
            places, offsets = self.where(numbers[:, i])
            order = np.lexsort((offsets, places))
            places, offsets = places[order], offsets[order]
            different = 1 + int(((places[1:] != places[:-1]) | (offsets[1:] != offsets[:-1])).sum())
            if different > most:
                best, most = order, different
        return best

    def _guards(self, batch: np.ndarray) -> None:
        """Write guards as one, if that pays; guards of the same value are always one."""
        numbers = self.graph.read[self.graph.first[batch]]
        _, once = np.unique(np.stack(self.where(numbers)), axis=1, return_index=True)
        column, kernel = self.column(numbers[once]), self.graph.steps[batch[0]].kernel
        steps = 1 if kernel is GUARD else 4
        if (
            len(once) == 1
            or column.cost + steps * (STEP + ELEMENT * len(once)) > len(once) * NUMBER
        ):
            self._singles(np.sort(batch[once]))
            return
        write_guard(self.builder, kernel, column.make())

    def _sums(self, batch: np.ndarray) -> None:
        """Write sums as one, if that pays: with equally many terms as a sum of columns, others by
        adding each term to its place.
        """
        graph, arity = self.graph, self.graph.arity[batch]
        rows = np.repeat(np.arange(len(batch)), arity)
        at = np.arange(len(rows)) + np.repeat(graph.first[batch] - np.cumsum(arity) + arity, arity)
        numbers = graph.read[at]
        places, offsets = self.where(numbers)
        n, size = len(batch), graph.steps[batch[0]].results[0].size
        singly = float((arity - 1).sum()) * _alone(graph.steps[batch[0]])
        adding = STEP + self._cost_of_parts(places, size)
        # A constant has no layout of its own.
        layouts = np.where(graph.constant[numbers], -1, np.array(graph.layouts)[numbers])
        if _differ(layouts[layouts >= 0]):
            adding = math.inf
        aligned = (
            np.lexsort((offsets, places, layouts, self._tokens[at], rows)).reshape(n, -1)
            if not _differ(arity)
            else None
        )
        if aligned is not None and not any(
            _differ(column[column >= 0]) for column in layouts[aligned].T
        ):
            aligned = numbers[aligned]
            order = self._order(aligned)
            columns = [self.column(column) for column in aligned[order].T]
            cost = (len(columns) - 1) * (STEP + ELEMENT * n * size) + sum(
                column.cost for column in columns
            )
            if cost < min(singly, adding):
                self._settle_batch(
                    batch[order], self.builder.add_all([column.make() for column in columns])
                )
                return
        if adding < singly:
            self._settle_batch(batch, self._added(rows, numbers, places, offsets))
        else:
            self._singles(batch)

    # --- steps on their own ---

    def _singles(self, batch: np.ndarray) -> None:
        graph = self.graph
        for i in batch.tolist():
            step, numbers = graph.steps[i], graph.read[graph.first[i] : graph.first[i + 1]]
            made: Sequence[Value]
            if len(numbers) >= LEAST and graph.adds_up(step):
                made = [self._sum_of(numbers)]
            elif (
                len(numbers) >= LEAST
                and isinstance(step.kernel, Assemble)
                and step.kernel.dtype == FLOAT
            ):
                made = [self._assembly(step.kernel, numbers)]
            else:
                made = self.builder.apply(step.kernel, *map(self.value, numbers.tolist()))
            for old, new in zip(step.results, made, strict=True):
                self._settle([graph.number_of_base(old)], new)

    def _sum_of(self, numbers: np.ndarray) -> Value:
        """A sum of many terms: those that lie in one base are summed at once."""
        places, offsets = self.where(numbers)
        keys = [
            (place, self.graph.values[i].strides)
            for place, i in zip(places.tolist(), numbers.tolist(), strict=True)
        ]
        terms = []
        for (place, _), mine in _grouped(keys).items():
            if place < 0 or len(mine) < 4:
                terms += [self.value(i) for i in numbers[mine].tolist()]
            else:
                mine = mine[np.argsort(offsets[mine], kind="stable")]
                terms.append(
                    self.builder.sum(self.taken(numbers[mine], places[mine], offsets[mine]), (0,))
                )
        return self.builder.add_all(terms)

    def _assembly(self, kernel: Assemble, numbers: np.ndarray) -> Value:
        """An array of many parts: those that lie in one base become one part."""
        values, parts, keys = self.graph.values, [], []
        given = kernel.parts(numbers.tolist())
        of_parts = np.array([number for _, _, number, _ in given])
        places, offsets = self.where(of_parts)
        for i, (place, shape, number, index) in enumerate(given):
            old = values[number]
            alone = index is not None or old.shape != shape
            keys.append(
                (i,)
                if alone
                else (
                    places[i],
                    place[1],
                    shape,
                    None if old.base.data is not None else old.strides,
                )
            )
        for mine in _grouped(keys).values():
            if len(keys[mine[0]]) == 1 or len(mine) < 4:
                for i in mine.tolist():
                    place, shape, number, index = given[i]
                    parts.append(
                        (
                            place if index is None else self.constant(index),
                            shape,
                            self.value(number),
                        )
                    )
            else:
                to = np.array([given[i][0][0] for i in mine.tolist()])
                parts.append(
                    self._part(
                        to, given[mine[0]][0][1], of_parts[mine], places[mine], offsets[mine]
                    )
                )
        return self.builder.assemble(
            kernel.shape, parts, self.value(numbers[0]) if kernel.has_base else None
        )


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


def _grouped(keys: Sequence[K]) -> dict[K, np.ndarray]:
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
