"""Loop fission: what a loop computes on no cycle from trip to trip is computed for all trips at
once.

In the graph of a body, a carried value needs the output that hands it to the next trip. Steps on a
cycle of this graph form a recurrence, and stay in the loop. All other steps become steps on arrays
with a leading axis of trips, before or after the loop. A carried value that is on no cycle becomes
an array too: its first value, followed by what the other trips handed on. Steps that are the same
in all trips are run once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from graphlib import TopologicalSorter
from itertools import compress
from typing import Any

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    Program,
    Shape,
    Step,
    Value,
    contiguous_strides,
    read_values,
)
from varmat.programs.kernels.loop import Loop
from varmat.programs.passes.batching import Batch, Column
from varmat.programs.passes.dead_steps import without_dead_steps

# Trips from which steps on arrays are worth it.
LONG = 32
# Elements of a value in one trip, at most: larger arrays gain little and take memory for each trip.
SMALL = 16
# A node of the graph: a step, the number of a carried value, or None for what stays in the loop.
Node = Step | int | None


def fissioned(program: Program) -> Program:
    """Move steps out of the long loops of a program."""
    if not any(map(_is_long, program.steps)):
        return program
    builder = Builder()
    builder.arguments = program.arguments
    new: dict[int, Value] = {}
    read = read_values(program.steps, program.outputs)

    def now(old: Value) -> Value:
        base = new.get(id(old.base))
        if base is None or not old.is_view:
            return old if base is None else base
        return _part(builder, base, old.shape, old.offset, old.strides)

    for step in program.steps:
        operands = [*map(now, step.operands)]
        made: Sequence[Value | None] = (
            _Fission(builder, step.kernel, operands, [id(v) in read for v in step.results]).results
            if isinstance(step.kernel, Loop) and _is_long(step)
            else builder.apply(step.kernel, *operands)
        )
        new.update((id(v), x) for v, x in zip(step.results, made, strict=True) if x is not None)
    return builder.program(map(now, program.outputs))


def _is_long(step: Step) -> bool:
    kernel = step.kernel
    return isinstance(kernel, Loop) and not kernel.ends and kernel.trips >= LONG


def _part(builder: Builder, x: Value, shape: Shape, offset: int, strides: Shape) -> Value:
    """A view of an array as it is if it lies in one piece."""
    if x.is_constant:
        data = np.ndarray(shape, x.dtype, np.ascontiguousarray(x.data), offset, strides)
        return builder.constant(np.array(data))
    return builder.part(builder.contiguous(x), shape, offset, strides)


class _Fission:
    """A loop in parts, as steps of a builder.

    Parameters
    ----------
    builder : Builder
    loop : Loop
    operands : sequence of Value
        Of the loop.
    read : sequence of bool
        Which results of the loop are read.

    Attributes
    ----------
    results : list of Value or None
        None for results that are not read.
    """

    def __init__(
        self, builder: Builder, loop: Loop, operands: Sequence[Value], read: Sequence[bool]
    ) -> None:
        self.builder, self.loop, self.operands = builder, loop, operands
        n, k = loop.carried, loop.carried + loop.stacked
        outputs = loop.body.outputs
        # Sums of assembled arrays are assembled of sums.
        self.summands = [x for v in compress(outputs[k:], read[k:]) for x in _summands(v)]
        self.kept = [*compress(outputs[n:k], read[n:k])]
        arguments = loop.body.arguments
        body = Program(arguments, loop.body.steps, [*outputs[:n], *self.kept, *self.summands])
        self.steps = without_dead_steps(body).steps
        # Values of all trips, or the one value of trips that are alike, by the id of the base.
        self.known = {id(v): x for v, x in zip(arguments[n:], operands[n:], strict=True)}
        passed = [v is x for v, x in zip(arguments, outputs[:n], strict=False)]
        self.known.update((id(arguments[i]), operands[i]) for i in range(n) if passed[i])
        self.carried = {id(arguments[i]): i for i in range(n) if not passed[i]}
        self.varying = {*self.carried, *map(id, arguments[n : n + loop.sliced])}
        self.makers: dict[int, Node] = {**self.carried}
        self.inside = self._in_loop()
        self.sums: dict[int, Value] = {}
        self.last: dict[int, Value] = {}
        nodes: dict[Node, list[Node]] = {}
        every: list[Node] = [*self.steps, *self.carried.values()]
        for node in every:
            needs = [None if each in self.inside else each for each in self._needs(node)]
            if node in self.inside:
                nodes.setdefault(None, []).extend(x for x in needs if x is not None)
            else:
                nodes[node] = needs
        for node in TopologicalSorter(nodes).static_order():
            if node is None:
                self._run()
            elif isinstance(node, int):
                self._shift(node)
            else:
                self._lift(node)
        makers: list[Any] = [partial(self._last, i) for i in range(n)]
        makers += [self._stacked] * loop.stacked + [self._total] * len(outputs[k:])
        self.results = [
            make(v) if each else None for make, v, each in zip(makers, outputs, read, strict=True)
        ]

    # --- what stays in the loop ---

    def _is_liftable(self, step: Step) -> bool:
        """Whether a step can work on arrays of all trips."""
        of_trip = [v for v in step.operands if id(v.base) in self.varying]
        return step.kernel.is_liftable(step.operands) and all(
            v.size <= SMALL for v in (*of_trip, *step.results)
        )

    def _needs(self, node: Node) -> Iterator[Node]:
        """The nodes that a node needs."""
        outputs = self.loop.body.outputs
        values = node.operands if isinstance(node, Step) else outputs[node : node + 1]  # type: ignore[operator]
        return (self.makers[id(v.base)] for v in values if id(v.base) in self.makers)

    def _in_loop(self) -> set[Node]:
        """Recurrences and steps that cannot work on arrays, and everything that is needed by one
        of these and needs another.
        """
        # For each node the carried values that it needs, and whether it needs a step that stays, as
        # bits.
        needs: dict[Node, int] = {i: 1 << i for i in self.carried.values()}
        stays = 1 << self.loop.carried
        roots: list[Node] = []
        for step in self.steps:
            is_free = step.kernel.is_pure or step.kernel.is_guard
            is_free = is_free and all(v.dtype in (FLOAT, BOOL) for v in step.results)
            needs[step] = 0
            if not is_free or any(id(v.base) in self.varying for v in step.operands):
                self.varying.update(map(id, step.results))
                if not (is_free and self._is_liftable(step)):
                    needs[step] = stays
                    roots.append(step)
                for each in self._needs(step):
                    needs[step] |= needs[each]
            self.makers.update((id(v), step) for v in step.results)
        handed = {i: sum(needs[each] for each in self._needs(i)) for i in self.carried.values()}
        for j in handed:  # all that is needed from trip to trip
            for i, bits in handed.items():
                handed[i] |= handed[j] if bits >> j & 1 else 0
        cyclic = [i for i, bits in handed.items() if bits >> i & 1]
        roots += cyclic
        core = stays | sum(1 << i for i in cyclic)
        core |= sum(1 << i for i, bits in handed.items() if bits & core and i not in cyclic)
        inside: set[Node] = set()
        while roots:
            node = roots.pop()
            if node not in inside and needs[node] & core:
                inside.add(node)
                roots.extend(self._needs(node))
        return inside

    def _run(self) -> None:
        """Write the loop of what stays."""
        inside, outputs, body = self.inside, self.loop.body.outputs, Builder()
        now: dict[int, Value] = {}
        carried = {key: i for key, i in self.carried.items() if i in inside}
        steps = [step for step in self.steps if step in inside]
        handed = [outputs[i] for i in carried.values()]
        of_loop = {*carried, *(id(v) for step in steps for v in step.results)}
        summed = [v for v in self.summands if id(v.base) in of_loop]
        read = [*(v.base for step in steps for v in step.operands), *(v.base for v in handed)]
        given = {id(v): v for v in read if id(v) not in of_loop and not v.is_constant}
        outside = [v for step in self.steps if step not in inside for v in step.operands]
        outside += [outputs[i] for i in self.carried.values() if i not in inside] + self.kept
        stacked = {id(v.base): v.base for v in outside if id(v.base) in of_loop}

        def argument(base: Value) -> Value:
            place = body.argument(base.shape)
            return body.truth(place) if base.dtype == BOOL else place

        def at(v: Value) -> Value:
            base = now.get(id(v.base))
            if base is None or not v.is_view:
                return v if base is None else base
            return body.part(base, v.shape, v.offset, v.strides)

        rows = [v for key, v in given.items() if key in self.varying]
        shared = [v for key, v in given.items() if key not in self.varying]
        firsts = [self.loop.body.arguments[i] for i in carried.values()]
        now.update((id(v), argument(v)) for v in (*firsts, *rows, *shared))
        for step in steps:
            made = body.apply(step.kernel, *map(at, step.operands))
            now.update(zip(map(id, step.results), made, strict=True))
        program = body.program(body.number(at(v)) for v in (*handed, *stacked.values(), *summed))
        counts = len(carried), len(rows), len(stacked)
        loop = Loop(program, self.loop.trips, *counts, backwards=self.loop.backwards)
        builder = self.builder
        operands = [self.operands[i] for i in carried.values()]
        operands += [builder.number(self._column(v).make()) for v in (*rows, *shared)]
        results = iter(builder.apply(loop, *map(builder.contiguous, operands)))
        self.last = {i: next(results) for i in carried.values()}
        for key, v in stacked.items():
            x = next(results)
            self.known[key] = builder.truth(x) if v.dtype == BOOL else x
        self.sums = {id(v): next(results) for v in summed}

    # --- what becomes arrays ---

    def _same(self, v: Value) -> Value:
        """A value that is the same in all trips."""
        if v.base.is_constant:
            return self.builder.constant(v.data) if v.is_constant else v
        x = self.known[id(v.base)]
        return _part(self.builder, x, v.shape, v.offset, v.strides) if v.is_view else x

    def _all(self, v: Value) -> Value:
        """The values of all trips."""
        whole = (self.loop.trips, *v.shape)
        if id(v.base) not in self.varying:
            return self.builder.broadcast(self._same(v), whole)
        x, base = self.known[id(v.base)], v.base
        if not v.is_view:
            return x
        row = base.size * base.dtype.itemsize
        return _part(self.builder, x, whole, v.offset, (row, *v.strides))

    def _column(self, v: Value) -> Column:
        varies = id(v.base) in self.varying
        return Column(v.shape, 0.0, partial(self._all if varies else self._same, v), not varies)

    def _lift(self, step: Step) -> None:
        builder, kernel = self.builder, step.kernel
        if kernel.is_guard:
            kernel.require(builder, self._column(step.operands[0]).make())
        elif id(step.results[0]) not in self.varying:
            made = builder.apply(kernel, *map(self._same, step.operands))
            self.known.update(zip(map(id, step.results), made, strict=True))
        else:
            trips, (result,) = self.loop.trips, step.results
            columns = [self._column(v) for v in step.operands]
            whole = kernel.batched(Batch(builder, step, trips, columns))
            assert whole is not None  # because of `_is_liftable`
            self.known[id(result)] = builder.broadcast(whole, (trips, *result.shape))

    def _shift(self, i: int) -> None:
        """A carried value in all trips: its first, and what the trip before handed on."""
        builder, trips, back = self.builder, self.loop.trips, self.loop.backwards
        first, handed = self.loop.body.arguments[i], self._all(self.loop.body.outputs[i])
        row, inner = 8 * first.size, contiguous_strides(first.shape)
        rest = builder.view(handed, lambda a: a[1:] if back else a[:-1])
        self.known[id(first)] = builder.assemble(
            (trips, *first.shape),
            [
                (((trips - 1) * row * back, inner), first.shape, self.operands[i]),
                ((row * (not back), (row, *inner)), (trips - 1, *first.shape), rest),
            ],
        )

    # --- results ---

    def _last(self, i: int, v: Value) -> Value:
        if i in self.last:
            return self.last[i]
        if id(v.base) not in self.varying:
            return self._same(v)
        end = 0 if self.loop.backwards else -1
        return self.builder.view(self._all(v), lambda a: a[end, ...])

    def _stacked(self, v: Value) -> Value:
        return self.builder.contiguous(self._all(v))

    def _total(self, v: Value) -> Value:
        """The sum of a value over the trips."""
        builder = self.builder
        if id(v) in self.sums:
            return self.sums[id(v)]
        if _is_assembled(v):
            parts = [x if x.dtype == np.int64 else self._total(x) for x in v.step.operands]  # type: ignore[union-attr]
            return builder.call(v.step.kernel, *parts)  # type: ignore[union-attr]
        if id(v.base) not in self.varying:
            return builder.ufunc(
                np.multiply, builder.constant(float(self.loop.trips)), self._same(v)
            )
        return builder.sum(self._all(v), (0,))


def _is_assembled(v: Value) -> bool:
    return not v.is_view and v.step is not None and bool(v.step.kernel.parts(v.step.operands)[1])


def _summands(v: Value) -> Iterator[Value]:
    """The values whose sums make up the sum of a value."""
    if not _is_assembled(v):
        yield v
        return
    for x in v.step.operands:  # type: ignore[union-attr]
        if x.dtype != np.int64:
            yield from _summands(x)
