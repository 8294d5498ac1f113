"""Loops over long axes as vector instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from llvmlite import ir

from varmat.programs.run.compiler import BIT, BYTE, DOUBLE, INT, INT32
from varmat.programs.run.functions import LANES as WIDTH
from varmat.programs.run.nodes import FIRST, Memory, Node, RowSum, Store

if TYPE_CHECKING:
    from varmat.programs.run.code import Code
    from varmat.programs.run.graph import Graph

# Nodes that are kept rather than computed again.
HEAVY = frozenset({"divide", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
     "sin", "cos", "divide1p", "half_exp", "half_expm1", "arctan", "gather", "rows"})  # fmt: skip
READS = frozenset({"load", "gather", "rows"})


class VectorLoop:
    """All sums and stores of one stage along axes of one length.

    Parameters
    ----------
    code : Code
    n : int
    reductions : list of Node
    stores : list of Store
    again : dict
        By the id of a node, the node that loads it.
    """

    def __init__(
        self,
        code: Code,
        n: int,
        reductions: list[Node],
        stores: list[Store | RowSum],
        again: dict[int, Node],
    ) -> None:
        self.code, self.n, self.reductions, self.stores = code, n, reductions, stores
        # What is computed, in order: the node and what stands for it; and the numbers it takes.
        found: dict[int, tuple[Node, Node]] = {}
        self._numbers: dict[int, Node] = {}
        stack = [*(r.args[0] for r in reductions), *(s.node for s in stores)]
        while stack:
            node = stack.pop()
            if not node.n:
                self._numbers[id(node)] = node
            elif id(node) not in found:
                now = again.get(id(node), node)
                found[id(node)] = node, now
                stack += now.args
        self._order = sorted(found.values(), key=lambda pair: pair[0].number)

    def emit(self) -> None:
        code, n, width = self.code, self.n, WIDTH
        self._splats = {key: code.splat(code.number(node)) for key, node in self._numbers.items()}
        weight = sum(12 if now.op in HEAVY else 1 for _, now in self._order)
        copies = max(1, min(4 if weight < 16 else 2 if weight < 60 else 1, n // width))
        firsts = [self._first(r) for r in self.reductions]
        with code.repeated():
            if copies == 1 and n % width:
                turns = -(-n // width)
                made = code.over(turns, firsts, lambda t, x: self._last(0, t, x))
            else:
                made = self._whole(copies, firsts)
        for r, x in zip(self.reductions, made, strict=True):
            code.memo[id(r)] = self._of_lanes(r, x)

    def _whole(self, copies: int, firsts: list[ir.Value]) -> list[ir.Value]:
        code, n, count, step = self.code, self.n, len(self.reductions), copies * WIDTH
        whole = n // step * step

        def body(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            made: list[ir.Value] = []
            for c in range(copies):
                at = code.b.add(i, INT(c * WIDTH)) if c else i
                made += self._turn(at, None, carried[c * count : (c + 1) * count])
            return made

        every = code.over(whole, firsts * copies, body, step)
        made = every[:count]
        for c in range(1, copies):
            pairs = zip(self.reductions, made, every[c * count :], strict=False)
            made = [self._joined(*each) for each in pairs]
        left = n - whole
        if left > WIDTH:
            return code.over(-(-left // WIDTH), made, lambda t, x: self._last(whole, t, x))
        return self._last(whole, INT(0), made) if left else made

    def _last(self, whole: int, t: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """A turn that may overlap with the one before: lanes that were there do not count twice."""
        b = self.code.b
        begin = b.add(INT(whole), b.mul(t, INT(WIDTH)))
        last = INT(self.n - WIDTH)
        i = b.select(b.icmp_signed("<", begin, last), begin, last)
        kind = ir.VectorType(INT, WIDTH)
        lanes = ir.Constant(kind, list(range(WIDTH)))
        return self._turn(i, b.icmp_signed(">=", lanes, self.code.splat(b.sub(begin, i))), carried)

    def _turn(
        self, i: ir.Value, mask: ir.Value | None, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        b, many = self.code.b, self.code.many
        made = dict(self._splats)
        for node, now in self._order:
            made[id(node)] = (
                self._read(now, i)
                if now.op in READS
                else many.apply(b, now.op, *(made[id(a)] for a in now.args))
            )
        for store in self.stores:
            x = made[id(store.node)]
            if isinstance(store, RowSum):
                self._add_rows(store, x, i, mask)
            else:
                self._store(store, x, i, mask)
        results = []
        for r, x in zip(self.reductions, carried, strict=True):
            y = made[id(r.args[0])]
            if mask is not None:
                y = b.select(mask, y, self._first(r))
            results.append(self._joined(r, x, y))
        return results

    def _first(self, r: Node) -> ir.Value:
        return self.code.many.constant(FIRST[r.op[:-4]])

    def _joined(self, r: Node, x: ir.Value, y: ir.Value) -> ir.Value:
        return self.code.many.apply(self.code.b, r.op[:-4], x, y)

    def _of_lanes(self, r: Node, x: ir.Value) -> ir.Value:
        code, name = self.code, r.op[:-4]
        if name == "add":
            return code.sum_of_lanes(x)
        b, shift = code.b, WIDTH // 2
        while shift:  # halves are joined
            lanes = [(j + shift) % WIDTH for j in range(WIDTH)]
            other = b.shuffle_vector(x, x, ir.Constant(ir.VectorType(INT32, WIDTH), lanes))
            x = code.many.apply(b, name, x, other)
            shift //= 2
        return b.extract_element(x, INT32(0))

    def _place(self, memory: Memory, at: int, stride: int, i: ir.Value) -> ir.Value:
        b = self.code.b
        offset = b.mul(i, INT(stride))
        return self.code.address(memory, b.add(offset, INT(at)) if at else offset)

    def _chunks(
        self,
        columns: int,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, ir.Value | None, list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """A loop over the columns of a row. The last turn may overlap with the one before: it has
        a mask of what is new.
        """
        whole, left = columns // WIDTH * WIDTH, columns % WIDTH
        made = self.code.over(whole, carried, lambda c, x: body(c, None, x), WIDTH)
        if left:
            lanes = [j >= WIDTH - left for j in range(WIDTH)]
            mask = ir.Constant(ir.VectorType(BIT, WIDTH), lanes)
            made = list(body(INT(columns - WIDTH), mask, made))
        return made

    def _row(self, matrix: Memory, at: int, stride: int, i: ir.Value, c: ir.Value) -> ir.Value:
        b = self.code.b
        place = b.add(b.add(b.mul(i, INT(stride)), b.mul(c, INT(8))), INT(at))
        return b.load(self.code.address(matrix, place), align=8, typ=self.code.many.kind)

    def _times_rows(self, node: Node, i: ir.Value) -> ir.Value:
        """The inner products of rows of a matrix with a vector."""
        code, b = self.code, self.code.b
        matrix, at, stride, columns, numbers, begin = node.data
        zero = code.many.constant(0.0)

        def turn(c: ir.Value, mask: ir.Value | None, totals: list[ir.Value]) -> list[ir.Value]:
            place = code.address(numbers, b.add(b.mul(c, INT(8)), INT(begin)))
            x = b.load(place, align=8, typ=zero.type)
            x = x if mask is None else b.select(mask, x, zero)
            rows = (self._row(matrix, at, stride, b.add(i, INT(j)), c) for j in range(WIDTH))
            if mask is not None:
                rows = (b.select(mask, row, zero) for row in rows)
            return [
                b.fadd(total, b.fmul(row, x, flags=("contract",)), flags=("contract",))
                for total, row in zip(totals, rows, strict=True)
            ]

        totals = self._chunks(columns, [zero] * WIDTH, turn)
        return code.lanes(lambda j: code.sum_of_lanes(totals[j]))

    def _add_rows(self, store: RowSum, x: ir.Value, i: ir.Value, mask: ir.Value | None) -> None:
        code, b = self.code, self.code.b
        zero = code.many.constant(0.0)
        if mask is not None:
            x = b.select(mask, x, zero)
        weights = [code.splat(b.extract_element(x, INT32(j))) for j in range(WIDTH)]

        def turn(c: ir.Value, new: ir.Value | None, _: object) -> list[ir.Value]:
            place = code.address(store.memory, b.mul(c, INT(8)))
            total = before = b.load(place, align=8, typ=zero.type)
            for j, weight in enumerate(weights):
                row = self._row(store.matrix, store.at, store.stride, b.add(i, INT(j)), c)
                product = b.fmul(row, weight, flags=("contract",))
                total = b.fadd(total, product, flags=("contract",))
            if new is not None:
                total = b.select(new, total, before)
            b.store(total, place, align=8)
            return []

        self._chunks(store.columns, [], turn)

    def _read(self, node: Node, i: ir.Value) -> ir.Value:
        code, b = self.code, self.code.b
        if node.op == "rows":
            return self._times_rows(node, i)
        if node.op == "gather":
            memory, index, index_at, at, size = node.data

            def element(j: int) -> ir.Value:
                here = b.mul(b.load(self._place(index, index_at + 8 * j, 8, i), typ=INT), INT(size))
                place = code.address(memory, b.add(here, INT(at)) if at else here)
                return b.load(place, typ=BYTE if node.truth else DOUBLE)

            x = code.lanes(element)
        else:
            memory, at, stride = node.data
            kind = BYTE if node.truth else DOUBLE
            if stride == memory.itemsize:
                place = self._place(memory, at, stride, i)
                x = b.load(place, align=memory.itemsize, typ=ir.VectorType(kind, WIDTH))
            else:
                x = code.lanes(
                    lambda j: b.load(self._place(memory, at + j * stride, stride, i), typ=kind)
                )
        if node.truth:
            return b.icmp_unsigned("!=", x, ir.Constant(x.type, [0] * WIDTH))
        return x

    def _store(self, store: Store, x: ir.Value, i: ir.Value, mask: ir.Value | None) -> None:
        code, b = self.code, self.code.b
        memory, _, at, stride, add = store
        if memory.itemsize == 1:
            x = b.zext(x, ir.VectorType(BYTE, WIDTH))
        if add and mask is not None:
            x = b.select(mask, x, code.many.constant(0.0))
        if stride == memory.itemsize:
            place = self._place(memory, at, stride, i)
            if add:
                x = b.fadd(b.load(place, align=8, typ=x.type), x)
            b.store(x, place, align=memory.itemsize)
            return
        for j in range(WIDTH):
            place, y = (
                self._place(memory, at + j * stride, stride, i),
                b.extract_element(x, INT32(j)),
            )
            b.store(b.fadd(b.load(place, typ=DOUBLE), y) if add else y, place)


def plan(graph: Graph) -> dict[int, dict[int, Node]]:
    """What loops need of earlier ones and keep rather than compute again: by stage, and by the id
    of the node, the node that loads it.
    """
    again: dict[int, dict[int, Node]] = {}
    heavy: dict[int, bool] = {}
    kept: dict[int, Memory] = {}
    for stage in range(max((s for s, _ in graph.loops), default=-1), 0, -1):
        for key in [key for key in graph.loops if key[0] == stage]:
            reductions, stores = graph.loops[key]
            stack = [*(r.args[0] for r in reductions), *(s.node for s in stores)]
            seen: set[int] = set()
            while stack:
                node = stack.pop()
                if id(node) in seen or not node.n:
                    continue
                seen.add(id(node))
                if node.stage < stage and not node.truth and _is_heavy(node, heavy):
                    if id(node) not in kept:
                        kept[id(node)] = memory = graph.scratch(node.n)
                        memory.stage = node.stage + 1
                        graph.loops[node.stage, node.n][1].append(Store(memory, node, 0, 8, False))
                    load = graph.load(kept[id(node)], 0, 8, node.n)
                    again.setdefault(stage, {})[id(node)] = load
                else:
                    stack += node.args
    return again


def _is_heavy(node: Node, known: dict[int, bool]) -> bool:
    """Whether a node, or what it is made of, takes long."""
    stack = [node]
    while stack:
        each = stack[-1]
        missing = [a for a in each.args if a.n and id(a) not in known]
        if id(each) not in known and missing and each.op not in HEAVY:
            stack += missing
            continue
        if id(each) not in known:
            known[id(each)] = each.op in HEAVY or any(known[id(a)] for a in each.args if a.n)
        stack.pop()
    return known[id(node)]
