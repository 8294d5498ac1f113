"""Loop fission: what a loop computes on no cycle is computed for all iterations at once.

In the graph of a body, a carried value needs the output that the iteration before makes for it.
Steps on a cycle of this graph form a recurrence, and stay in the loop. All other steps become steps
on arrays with a leading axis of iterations, before or after the loop. A carried value that is on no
cycle becomes an array too: its first value, followed by the outputs of the other iterations. Steps
that are the same in all iterations are run once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from graphlib import TopologicalSorter
from itertools import compress
from operator import or_

import numpy as np

from varmat.programs.build.builder import Builder
from varmat.programs.ir.program import (
    BOOL,
    FLOAT,
    Program,
    Step,
    Value,
    contiguous_strides,
    read_values,
)
from varmat.programs.kernels.loop import Loop
from varmat.programs.passes.batching import Batch, Column
from varmat.programs.passes.dead_steps import without_dead_steps
from varmat.programs.passes.rewriter import Rewriter

# The least number of iterations that makes steps on arrays worth it.
LONG = 16
# The most elements of a value in one iteration: larger arrays gain little and take much memory.
SMALL = 16
# The node of everything that stays in the loop.
_LOOP = -1


def fissioned(program: Program) -> Program:
    """Move steps out of the long loops of a program."""
    if not any(map(_is_long, program.steps)):
        return program
    rewriter = Rewriter(program)
    read = read_values(program.steps, program.outputs)
    for step in program.steps:
        if (loop := step.kernel.as_loop) and _is_long(step):
            used = [id(v) in read for v in step.results]
            operands = [*map(rewriter.value, step.operands)]
            parts = _Fission(rewriter.builder, loop, operands, used)
            rewriter.replace(compress(step.results, used), parts.results)
        else:
            rewriter.keep(step)
    return rewriter.program()


def _is_long(step: Step) -> bool:
    loop = step.kernel.as_loop
    return loop is not None and not loop.ends and loop.trips >= LONG


class _Fission:
    """A loop in parts, as steps of a builder. Nodes of its graph are the numbers of carried values,
    followed by the numbers of steps.

    Parameters
    ----------
    builder : Builder
    loop : Loop
    operands : sequence of Value
        The operands of the loop.
    used : sequence of bool
        Which results of the loop are read.

    Attributes
    ----------
    results : list of Value
        The results that are read.
    """

    def __init__(
        self, builder: Builder, loop: Loop, operands: Sequence[Value], used: Sequence[bool]
    ) -> None:
        self.builder, self.loop, self.operands = builder, loop, operands
        n, k = loop.carried, loop.carried + loop.stacked
        arguments, outputs = loop.body.arguments, loop.body.outputs
        # Sums of assembled arrays are assembled of sums.
        self.summands = [x for v in compress(outputs[k:], used[k:]) for x in _summands(v)]
        self.stacks = [*compress(outputs[n:k], used[n:k])]
        body = Program(arguments, loop.body.steps, [*outputs[:n], *self.stacks, *self.summands])
        self.steps = without_dead_steps(body).steps
        # A value that is handed on as it came is the same in all iterations.
        self.carried = [i for i in range(n) if arguments[i] is not outputs[i]]
        # Values of all iterations, or the one value of equal iterations, by the id of the base.
        self.known = {
            id(v): x
            for i, (v, x) in enumerate(zip(arguments, operands, strict=True))
            if i not in self.carried
        }
        of_trip = [arguments[i] for i in self.carried] + arguments[n : n + loop.sliced]
        self.varying = {*map(id, of_trip)}
        self.needs = self._needs()
        self.inside = self._recurrences()
        self.last: dict[int, Value] = {}
        self.sums: dict[int, Value] = {}
        for node in self._order():
            if node == _LOOP:
                self._run()
            elif node < n:
                self._shift(node)
            else:
                self._lift(self.steps[node - n])
        self.results = [self._result(i, v) for i, v in compress(enumerate(outputs), used)]

    # --- what stays in the loop ---

    def _needs(self) -> list[list[int]]:
        """Return the nodes that each node needs."""
        body, n = self.loop.body, self.loop.carried
        sources = {id(body.arguments[i]): i for i in self.carried}
        sources |= {id(v): n + j for j, step in enumerate(self.steps) for v in step.results}
        reads: list[Iterable[Value]] = [[v] for v in body.outputs[:n]]
        reads += [step.operands for step in self.steps]
        return [[sources[id(v.base)] for v in x if id(v.base) in sources] for x in reads]

    def _recurrences(self) -> set[int]:
        """Return nodes on cycles, steps that cannot work on arrays, and every node that is needed
        by one of these and needs another.
        """
        reach = _closed(self.needs)
        core = {i for i, x in enumerate(reach) if x >> i & 1}
        for node, step in enumerate(self.steps, self.loop.carried):
            if not _is_free(step) or any(id(v.base) in self.varying for v in step.operands):
                self.varying.update(map(id, step.results))
                if not (_is_free(step) and self._is_liftable(step)):
                    core.add(node)
        of_core = sum(1 << i for i in core)
        before = reduce(or_, (reach[i] for i in core), of_core)
        return {i for i, x in enumerate(reach) if (x | 1 << i) & of_core and before >> i & 1}

    def _is_liftable(self, step: Step) -> bool:
        """Return whether a step can work on arrays of all iterations."""
        of_trip = [v for v in step.operands if id(v.base) in self.varying]
        return step.kernel.is_liftable(step.operands) and all(
            v.size <= SMALL for v in (*of_trip, *step.results)
        )

    def _order(self) -> Iterable[int]:
        """Return the nodes in an order in which they can be run, with one for the loop."""
        nodes: dict[int, set[int]] = {}
        for node in (*self.carried, *range(self.loop.carried, len(self.needs))):
            place = _LOOP if node in self.inside else node
            needs = {_LOOP if x in self.inside else x for x in self.needs[node]}
            nodes.setdefault(place, set()).update(needs - {place})
        return TopologicalSorter(nodes).static_order()

    def _run(self) -> None:
        """Write the loop of what stays."""
        n, outputs = self.loop.carried, self.loop.body.outputs
        carried = [i for i in self.carried if i in self.inside]
        firsts, handed = ([x[i] for i in carried] for x in (self.loop.body.arguments, outputs))
        steps, lifted = (
            [step for j, step in enumerate(self.steps, n) if (j in self.inside) is inside]
            for inside in (True, False)
        )
        of_loop = {id(v) for v in (*firsts, *(v for step in steps for v in step.results))}
        read = _bases([*(v for step in steps for v in step.operands), *handed])
        inputs = [v for v in read if id(v) not in of_loop and not v.is_constant]
        rows = [v for v in inputs if id(v) in self.varying]
        shared = [v for v in inputs if id(v) not in self.varying]
        outside = [v for step in lifted for v in step.operands] + self.stacks
        outside += [outputs[i] for i in self.carried if i not in self.inside]
        stacked = [v for v in _bases(outside) if id(v) in of_loop]
        summed = [v for v in self.summands if id(v.base) in of_loop]

        body = Rewriter(self.loop.body)
        body.builder.arguments = []
        for v in (*firsts, *rows, *shared):
            place = body.builder.argument(v.shape)
            body.replace([v], [body.builder.truth(place) if v.dtype == BOOL else place])
        for step in steps:
            body.keep(step)
        result = [body.builder.number(body.value(v)) for v in (*handed, *stacked, *summed)]
        counts = len(carried), len(rows), len(stacked)
        backwards = self.loop.backwards
        loop = Loop(body.builder.program(result), self.loop.trips, *counts, backwards=backwards)
        builder = self.builder
        operands = [self.operands[i] for i in carried]
        operands += [builder.number(self._column(v).make()) for v in (*rows, *shared)]
        results = iter(builder.apply(loop, *map(builder.contiguous, operands)))
        self.last = {i: next(results) for i in carried}
        for v in stacked:
            x = next(results)
            self.known[id(v)] = builder.truth(x) if v.dtype == BOOL else x
        self.sums = {id(v): next(results) for v in summed}

    # --- what becomes arrays ---

    def _same(self, v: Value) -> Value:
        """Return a value that is the same in all iterations."""
        if v.base.is_constant:
            return self.builder.constant(v.data) if v.is_constant else v
        return self.builder.part_like(v, self.known[id(v.base)])

    def _all(self, v: Value) -> Value:
        """Return the values of all iterations."""
        full = (self.loop.trips, *v.shape)
        if id(v.base) not in self.varying:
            return self.builder.broadcast(self._same(v), full)
        row = v.base.size * v.base.dtype.itemsize
        x = v.base.view(full, v.offset, (row, *v.strides)) if v.is_view else v
        return self.builder.part_like(x, self.known[id(v.base)])

    def _column(self, v: Value) -> Column:
        varies = id(v.base) in self.varying
        return Column(v.shape, partial(self._all if varies else self._same, v), not varies)

    def _lift(self, step: Step) -> None:
        builder, kernel = self.builder, step.kernel
        if kernel.is_guard:
            builder.guard(self._column(step.operands[0]).make())
        elif id(step.results[0]) not in self.varying:
            output = builder.apply(kernel, *map(self._same, step.operands))
            self.known.update(zip(map(id, step.results), output, strict=True))
        else:
            trips, (result,) = self.loop.trips, step.results
            columns = [self._column(v) for v in step.operands]
            full = kernel.batched(Batch(builder, step, trips, columns))
            assert full is not None  # because of `_is_liftable`
            self.known[id(result)] = builder.broadcast(full, (trips, *result.shape))

    def _shift(self, i: int) -> None:
        """Make a carried value in all iterations: its first, then the results of the one before."""
        builder, trips, back = self.builder, self.loop.trips, self.loop.backwards
        first, handed = self.loop.body.arguments[i], self._all(self.loop.body.outputs[i])
        row, inner = 8 * first.size, contiguous_strides(first.shape)
        remainder = builder.view(handed, lambda a: a[1:] if back else a[:-1])
        self.known[id(first)] = builder.assemble(
            (trips, *first.shape),
            [
                (((trips - 1) * row * back, inner), first.shape, self.operands[i]),
                ((row * (not back), (row, *inner)), (trips - 1, *first.shape), remainder),
            ],
        )

    # --- results ---

    def _result(self, i: int, v: Value) -> Value:
        n = self.loop.carried
        if i >= n + self.loop.stacked:
            return self._total(v)
        if i >= n:
            return self.builder.contiguous(self._all(v))
        if i in self.last:
            return self.last[i]
        if id(v.base) not in self.varying:
            return self._same(v)
        end = 0 if self.loop.backwards else -1
        return self.builder.view(self._all(v), lambda a: a[end, ...])

    def _total(self, v: Value) -> Value:
        """Sum a value over the iterations."""
        builder = self.builder
        if id(v) in self.sums:
            return self.sums[id(v)]
        if _is_assembled(v):
            parts = [x if x.dtype == np.int64 else self._total(x) for x in v.step.operands]  # type: ignore[union-attr]
            return builder.call(v.step.kernel, *parts)  # type: ignore[union-attr]
        if id(v.base) not in self.varying:
            trips = builder.constant(float(self.loop.trips))
            return builder.ufunc(np.multiply, trips, self._same(v))
        return builder.sum(self._all(v), (0,))


def _closed(needs: Sequence[Iterable[int]]) -> list[int]:
    """Return the nodes that each node needs, directly or not, as the bits of a number."""
    reach, changes = [sum(1 << j for j in {*item}) for item in needs], True
    while changes:
        changes = False
        for i, x in enumerate(needs):
            more = reduce(or_, (reach[j] for j in x), reach[i])
            changes |= more != reach[i]
            reach[i] = more
    return reach


def _is_free(step: Step) -> bool:
    """Return whether a step does the same outside of the loop as in it."""
    is_free = step.kernel.is_pure or step.kernel.is_guard
    return is_free and all(v.dtype in (FLOAT, BOOL) for v in step.results)


def _bases(values: Iterable[Value]) -> list[Value]:
    """Return the bases of values, each once."""
    return [*{id(v.base): v.base for v in values}.values()]


def _is_assembled(v: Value) -> bool:
    return not v.is_view and v.step is not None and bool(v.step.kernel.parts(v.step.operands)[1])


def _summands(v: Value) -> Iterator[Value]:
    """Yield the values whose sums make up the sum of a value."""
    if not _is_assembled(v):
        yield v
        return
    for x in v.step.operands:  # type: ignore[union-attr]
        if x.dtype != np.int64:
            yield from _summands(x)
