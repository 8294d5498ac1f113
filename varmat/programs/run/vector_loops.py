"""Nests of loops as vector instructions.

A nest runs over one axis in vectors, and over the others one element at a time. A node is computed
as far outside as it varies. A reduction has an accumulator in the loops that are reduced; where a
loop around them is reduced as well, the accumulators are in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from varmat.programs.ir.program import Shape, contiguous_strides
from varmat.programs.run.compiler import BIT, BYTE, DOUBLE, INT, INT32
from varmat.programs.run.functions import CONTRACT, Functions
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.nests import merged
from varmat.programs.run.nodes import FIRST, Memory, Node, RowSum, Store

if TYPE_CHECKING:
    from varmat.programs.run.code import Code
    from varmat.programs.run.graph import Graph

# Nodes that take as long as a dozen others.
HEAVY = frozenset({"divide", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
     "sin", "cos", "divide1p", "half_exp", "half_expm1", "arctan", "gather", "rows"})  # fmt: skip
READS = frozenset({"load", "gather", "rows"})
# Elements that a loop can keep in the cache.
CACHED = 1 << 12


class Nest:
    """All reductions and stores of one stage along axes of the same lengths.

    Parameters
    ----------
    code : Code
    lengths : tuple of int
    stores : list of Store
    again : dict
        By the id of a node, the node that loads it.
    """

    def __init__(
        self, code: Code, lengths: Shape, stores: list[Store | RowSum], repeated: dict[int, Node]
    ) -> None:
        self.code, self.stores = code, stores
        # Nodes that are computed: the node and what stands for it; and the numbers it takes.
        pairs: dict[int, tuple[Node, Node]] = {}
        self._numbers: dict[int, Node] = {}
        stack = [s.node for s in stores]
        while stack:
            node = stack.pop()
            if not node.loops:
                self._numbers[id(node)] = node
            elif id(node) not in pairs:
                now = repeated.get(id(node), node)
                pairs[id(node)] = node, now
                stack += now.args
        order = sorted(pairs.values(), key=lambda pair: pair[0].number)
        self._arrange(lengths, [now for _, now in order])
        depth: dict[int, int] = {}
        self._order: list[list[tuple[Node, Node]]] = [[] for _ in self.lengths]
        for node, now in order:
            own = self._depth(now) if now.op in READS else -1
            depth[id(node)] = max([own, *(depth.get(id(a), -1) for a in now.args)])
            self._order[depth[id(node)]].append((node, now))
        # By the loop in whose body they begin and end, the outermost being 0; and before all, -1.
        last = len(self.lengths) - 1
        self._totals = [
            [s for s in stores if isinstance(s, Store) and s.is_total and self._depth(s) == k]
            for k in range(-1, last)
        ]
        self._all_totals = [s for x in self._totals for s in x]
        around = {id(s) for s in self._all_totals}
        self._inside = [s for s in stores if id(s) not in around]

    def _arrange(self, lengths: Shape, nodes: list[Node]) -> None:
        """Order the axes, the one in vectors last, and join axes that are one line everywhere."""
        accesses = [*(node for node in nodes if node.op in READS), *self.stores]
        along = [_strides(place) for place in accesses]
        strange = [sum(s[k] not in (0, 1, 8) for s in along) for k in range(len(lengths))]
        inner = min(
            range(len(lengths)), key=lambda k: (lengths[k] < WIDTH, strange[k], -lengths[k])
        )
        order = [*(k for k in range(len(lengths)) if k != inner), inner]
        self.lengths, result = merged(
            [lengths[k] for k in order], [[s[k] for k in order] for s in along]
        )
        self._along = {id(place): [s[i] for s in result] for i, place in enumerate(accesses)}
        self.n = self.lengths[-1]
        # Elements that are mostly written apart gain nothing by vectors, and are long code.
        scattered = sum(self._along[id(s)][-1] not in (0, 1, 8) for s in self.stores)
        light = not any(node.op in HEAVY for node in nodes)
        scalar = self.n < WIDTH or (light and 2 * scattered > len(self.stores))
        # Where lanes are points already, take elements in sequence.
        scalar = scalar or self.code.lane is self.code.many
        self.width = 1 if scalar else WIDTH
        self.lane = self.code.many if self.width > 1 else self.code.lane

    def _depth(self, place: Node | Store) -> int:
        """Return the innermost loop in which a place in memory moves."""
        return max((k for k, stride in enumerate(self._along[id(place)]) if stride), default=-1)

    def emit(self) -> None:
        code = self.code
        result = {key: code.number(node) for key, node in self._numbers.items()}
        with code.repeated():
            self._level(0, result, [], [])

    def _level(
        self, k: int, result: dict[int, ir.Value], index: list[ir.Value], carried: list[ir.Value]
    ) -> list[ir.Value]:
        """Emit the loop over an axis, the loops within it, and reductions that begin before it."""
        code, own = self.code, self._totals[k]
        start = [*carried, *(self._first(s) for s in own)]
        if k == len(self.lengths) - 1:
            if self.width > 1:
                result = {key: code.splat(x) for key, x in result.items()}
            done = self._vectors(result, index, start)
        else:

            def iteration(i: ir.Value, x: list[ir.Value]) -> list[ir.Value]:
                (here,) = self._computed(k, result, [[*index, i]], code.lane)
                return self._level(k + 1, here, [*index, i], x)

            done = code.over(self.lengths[k], start, iteration)
        for s, x in zip(own, done[len(carried) :], strict=True):
            self._store(s, self._of_lanes(s, x), index, code.lane)
        return done[: len(carried)]

    def _computed(
        self, k: int, args: dict[int, ir.Value], turns: list[list[ir.Value]], lane: Functions
    ) -> list[dict[int, ir.Value]]:
        """Emit all values in the body of a loop, of several iterations side by side, because a
        processor looks ahead some 200 instructions, and would not find a second exponential behind
        the first one's logarithm.
        """
        result = [dict(args) for _ in turns]
        for node, now in self._order[k]:
            for x, index in zip(result, turns, strict=True):
                x[id(node)] = (
                    self._read(now, index, lane)
                    if now.op in READS
                    else lane.apply(self.code.b, now.op, *(x[id(a)] for a in now.args))
                )
        return result

    def _vectors(
        self, result: dict[int, ir.Value], index: list[ir.Value], firsts: list[ir.Value]
    ) -> list[ir.Value]:
        """Emit the innermost loop."""
        code, n, width, count = self.code, self.n, self.width, len(firsts)
        weight = sum(12 if now.op in HEAVY else 1 for _, now in self._order[-1])
        copies = 4 if weight < 16 else 2 if weight < 200 else 1
        copies = max(1, min(copies, n // WIDTH)) if width > 1 else 1

        def body(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            offsets = [code.b.add(i, INT(c * width)) if c else i for c in range(copies)]
            return self._turns(result, [[*index, at] for at in offsets], None, carried)

        def tail(t: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            """Emit an iteration that may overlap with the one before: lanes that were in it do not
            count twice.
            """
            b = code.b
            begin, last = b.add(INT(vector_count), b.mul(t, INT(width))), INT(n - width)
            i = b.select(b.icmp_signed("<", begin, last), begin, last)
            lanes = ir.Constant(ir.VectorType(INT, width), list(range(width)))
            mask = b.icmp_signed(">=", lanes, code.splat(b.sub(begin, i)))
            return self._turns(result, [[*index, i]], mask, carried)

        if copies == 1 and n % width:
            vector_count = 0
            return code.over(-(-n // width), firsts, tail)
        vector_count = n // (copies * width) * copies * width
        others = [self._first(s) for s in self._all_totals] * (copies - 1)
        every = code.over(vector_count, [*firsts, *others], body, copies * width)
        done = every[:count]
        for c in range(1, copies):
            pairs = zip(self._all_totals, done, every[c * count :], strict=False)
            done = [self.lane.apply(code.b, s.op, x, y) for s, x, y in pairs]
        left = n - vector_count
        if left > width:
            return code.over(-(-left // width), done, tail)
        return tail(INT(0), done) if left else done

    def _turns(
        self,
        args: dict[int, ir.Value],
        turns: list[list[ir.Value]],
        mask: ir.Value | None,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """Emit iterations side by side, each with separate accumulators."""
        b, lane, before, results = self.code.b, self.lane, iter(carried), []
        for result, index in zip(self._computed(-1, args, turns, lane), turns, strict=True):
            for s in self._inside:
                if isinstance(s, RowSum):
                    self._add_rows(s, result[id(s.node)], index[-1], mask)
                else:
                    self._store(s, result[id(s.node)], index, lane, mask)
            for s in self._all_totals:
                y = result[id(s.node)]
                if mask is not None:
                    y = b.select(mask, y, self._first(s))
                results.append(lane.apply(b, self._op(s), next(before), y))
        return results

    def _op(self, s: Store) -> str:
        return "accumulate" if s.op == "add" and s.is_total else s.op

    def _first(self, s: Store) -> ir.Constant:
        return self.lane.constant(FIRST[s.op])

    def _of_lanes(self, s: Store, x: ir.Value) -> ir.Value:
        code = self.code
        if self.width == 1:
            return x
        if s.op == "add":
            return code.sum_of_lanes(x)
        b, shift = code.b, WIDTH // 2
        while shift:  # halves are joined
            lanes = [(j + shift) % WIDTH for j in range(WIDTH)]
            other = b.shuffle_vector(x, x, ir.Constant(ir.VectorType(INT32, WIDTH), lanes))
            x = code.many.apply(b, s.op, x, other)
            shift //= 2
        return b.extract_element(x, INT32(0))

    # --- memory ---

    def _offset(self, at: int, strides: Sequence[int], index: Sequence[ir.Value]) -> ir.Value:
        b = self.code.b
        offset: ir.Value = INT(at)
        for i, stride in zip(index, strides, strict=False):
            if stride:
                offset = b.add(offset, b.mul(i, INT(stride)))
        return offset

    def _elements(
        self,
        memory: Memory,
        at: int,
        strides: Sequence[int],
        index: list[ir.Value],
        lane: Functions,
    ) -> ir.Value:
        """Load elements of memory; elements of a vector may lie apart."""
        code, b, size = self.code, self.code.b, memory.itemsize
        offset, stride = self._offset(at, strides, index), strides[len(index) - 1]
        if lane is code.lane:
            return code.read(memory, offset, size == 1)
        kind, place = BYTE if size == 1 else DOUBLE, code.address(memory, offset)
        if stride == size:
            x = b.load(place, align=size, typ=ir.VectorType(kind, WIDTH))
        else:
            x = code.lanes(lambda j: b.load(code.beyond(place, j * stride), typ=kind))
        return x if size > 1 else b.icmp_unsigned("!=", x, ir.Constant(x.type, None))

    def _chunks(
        self,
        columns: int,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, ir.Value | None, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """Emit a loop over the columns of a row. The last iteration may overlap with the one
        before: it has a mask of new elements.
        """
        vector_count, left = columns // WIDTH * WIDTH, columns % WIDTH
        result = self.code.over(vector_count, carried, lambda c, x: body(c, None, x), WIDTH)
        if left:
            lanes = [j >= WIDTH - left for j in range(WIDTH)]
            mask = ir.Constant(ir.VectorType(BIT, WIDTH), lanes)
            result = list(body(INT(columns - WIDTH), mask, result))
        return result

    def _row(self, matrix: Memory, at: int, stride: int, i: ir.Value, c: ir.Value) -> ir.Value:
        b = self.code.b
        place = b.add(b.add(b.mul(i, INT(stride)), b.mul(c, INT(8))), INT(at))
        return b.load(self.code.address(matrix, place), align=8, typ=self.code.many.kind)

    def _times_rows(self, node: Node, i: ir.Value) -> ir.Value:
        """Compute the inner products of rows of a matrix with a vector."""
        code, b = self.code, self.code.b
        matrix, at, stride, columns, numbers, begin = node.data
        zero = code.many.constant(0.0)

        def iteration(c: ir.Value, mask: ir.Value | None, totals: list[ir.Value]) -> list[ir.Value]:
            place = code.address(numbers, b.add(b.mul(c, INT(8)), INT(begin)))
            x = b.load(place, align=8, typ=zero.type)
            x = x if mask is None else b.select(mask, x, zero)
            rows = (self._row(matrix, at, stride, b.add(i, INT(j)), c) for j in range(WIDTH))
            if mask is not None:
                rows = (b.select(mask, row, zero) for row in rows)
            return [
                b.fadd(total, b.fmul(row, x, flags=CONTRACT), flags=CONTRACT)
                for total, row in zip(totals, rows, strict=True)
            ]

        totals = self._chunks(columns, [zero] * WIDTH, iteration)
        return code.lanes(lambda j: code.sum_of_lanes(totals[j]))

    def _add_rows(self, store: RowSum, x: ir.Value, i: ir.Value, mask: ir.Value | None) -> None:
        code, b = self.code, self.code.b
        zero = code.many.constant(0.0)
        if mask is not None:
            x = b.select(mask, x, zero)
        weights = [code.splat(b.extract_element(x, INT32(j))) for j in range(WIDTH)]

        def iteration(c: ir.Value, new: ir.Value | None, _: object) -> list[ir.Value]:
            place = code.address(store.memory, b.mul(c, INT(8)))
            total = before = b.load(place, align=8, typ=zero.type)
            for j, weight in enumerate(weights):
                row = self._row(store.matrix, store.at, store.stride, b.add(i, INT(j)), c)
                product = b.fmul(row, weight, flags=CONTRACT)
                total = b.fadd(total, product, flags=CONTRACT)
            if new is not None:
                total = b.select(new, total, before)
            b.store(total, place, align=8)
            return []

        self._chunks(store.columns, [], iteration)

    def _read(self, node: Node, index: list[ir.Value], lane: Functions) -> ir.Value:
        code, b = self.code, self.code.b
        if node.op == "rows":
            return self._times_rows(node, index[-1])
        strides = self._along[id(node)]
        if node.op == "load":
            memory, at, _ = node.data
            return self._elements(memory, at, strides, index, lane)
        memory, at, _, size, offsets, places_at = node.data

        first = code.address(offsets, self._offset(places_at, strides, index))

        def element(j: int) -> ir.Value:
            place = code.beyond(first, j * strides[len(index) - 1])
            here = b.add(b.mul(b.load(place, typ=INT), INT(size)), INT(at))
            return code.read(memory, here, node.truth)

        return element(0) if lane is code.lane else code.lanes(element)

    def _store(
        self,
        s: Store,
        x: ir.Value,
        index: list[ir.Value],
        lane: Functions,
        mask: ir.Value | None = None,
    ) -> None:
        """Write values, or join them with what is in memory."""
        b, memory, strides = self.code.b, s.memory, self._along[id(s)]
        around = [i for i, stride in zip(index, strides, strict=False) if not stride]
        if s.op and (around or not s.is_total):
            first = lane.constant(FIRST[s.op])
            before = self._elements(memory, s.at, strides, index, lane)
            if s.is_total:  # at its first iteration, memory is not set
                is_first: ir.Value = BIT(1)
                for i in around:
                    is_first = b.and_(is_first, b.icmp_unsigned("==", i, INT(0)))
                is_first = is_first if lane is self.code.lane else self.code.splat(is_first)
                is_first = is_first if mask is None else b.and_(is_first, mask)
                before = b.select(is_first, first, before)
            x = x if mask is None else b.select(mask, x, first)
            x = lane.apply(b, self._op(s), before, x)
        offset, stride = self._offset(s.at, strides, index), strides[len(index) - 1]
        if lane is self.code.lane:
            self.code.put(memory, offset, x)
            return
        if memory.itemsize == 1:
            x = b.zext(x, ir.VectorType(BYTE, WIDTH))
        place = self.code.address(memory, offset)
        if stride == memory.itemsize:
            b.store(x, place, align=memory.itemsize)
            return
        for j in range(WIDTH):
            b.store(b.extract_element(x, INT32(j)), self.code.beyond(place, j * stride))


def _strides(place: Node | Store | RowSum) -> Sequence[int]:
    """Return by how many bytes a place in memory moves in each loop; for a gather, indices."""
    if isinstance(place, Store):
        return place.strides
    if isinstance(place, RowSum) or place.op == "rows":
        return (0,) if isinstance(place, RowSum) else (8,)
    return place.data[2]  # type: ignore[no-any-return]


def plan(graph: Graph) -> dict[int, dict[int, Node]]:
    """Choose the values of earlier loops that are kept, not computed again: by stage, and by the id
    of the node, the node that loads it.
    """
    repeated: dict[int, dict[int, Node]] = {}
    costs: dict[int, int] = {}
    saved: dict[int, Memory] = {}
    for stage in range(max((s for s, _ in graph.loops), default=-1), 0, -1):
        for key in [key for key in graph.loops if key[0] == stage]:
            stack = [s.node for s in graph.loops[key]]
            seen: set[int] = set()
            while stack:
                node = stack.pop()
                if id(node) in seen or not node.loops:
                    continue
                seen.add(id(node))
                # Memory beyond the cache takes as long as a few functions.
                most = 11 if math.prod(node.loops) <= CACHED else 47
                if node.stage < stage and not node.truth and _cost(node, costs) > most:
                    strides = contiguous_strides(node.loops, 8)
                    if id(node) not in saved:
                        saved[id(node)] = memory = graph.scratch(math.prod(node.loops))
                        memory.stage = node.stage + 1
                        graph.loops[node.stage, node.loops].append(Store(memory, node, 0, strides))
                    load = graph.load(saved[id(node)], 0, strides, node.loops)
                    repeated.setdefault(stage, {})[id(node)] = load
                else:
                    stack += node.args
    return repeated


def _cost(node: Node, costs: dict[int, int]) -> int:
    """Estimate how many simple instructions a node takes, with the nodes that it is made of."""
    stack = [node]
    while stack:
        x = stack.pop()
        missing = [a for a in x.args if a.loops and id(a) not in costs]
        if missing:
            stack += [x, *missing]
            continue
        own = 12 if x.op in HEAVY else int(x.op not in READS)
        costs[id(x)] = min(own + sum(costs[id(a)] for a in x.args if a.loops), 1000)
    return costs[id(node)]
