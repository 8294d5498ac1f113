"""Which steps of a program can be one: classes of steps that are alike, and an order in which whole
classes can be run.

Steps are coloured by kernel, layouts, and operands that many of their kind share. A class that is
on no cycle of the graph of classes can wait until all its members are ready. Colours on a cycle are
refined a few times, by the colours of operands and readers. A class that is still on a cycle is a
recurrence, and its members at the same depth are run together. All of this takes linear time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from varmat.programs.build.arithmetic import ADD
from varmat.programs.ir.program import Program, Step, Value
from varmat.programs.kernels.reductions import SUM

if TYPE_CHECKING:
    from collections.abc import Hashable

# Readers of a value, and terms of a sum, from which sharing it makes steps alike.
MANY = 64
_ROUNDS, _FEW = 4, 4


class Graph:
    """A program in numbers.

    Attributes
    ----------
    steps : list of Step
    values : list of Value
        All that is read.
    bases : list of Value
        Whose memory they lie in; results of steps too.
    base, offset, constant : ndarray
        Of each value.
    maker : ndarray
        The step that makes a base, or -1.
    first : ndarray
        Where the operands of each step begin in `read`.
    read : ndarray
        Numbers of the values that are read, step by step.
    """

    def __init__(self, program: Program) -> None:
        self.steps = program.steps
        self.values: list[Value] = []
        self.bases: list[Value] = []
        self.numbers: dict[int, int] = {}
        self._base_numbers: dict[int, int] = {}
        self._layouts: dict[Hashable, int] = {}
        base: list[int] = []
        layouts: list[int] = []
        read: list[int] = []
        maker: dict[int, int] = {}

        def number(v: Value) -> int:
            found = self.numbers.setdefault(id(v), len(self.values))
            if found == len(self.values):
                self.values.append(v)
                base.append(self.number_of_base(v.base))
                layouts.append(self._layout(v))
            return found

        for value in program.arguments:
            self.number_of_base(value)
        for i, step in enumerate(program.steps):
            read += map(number, step.operands)
            maker.update((self.number_of_base(v), i) for v in step.results)
        for value in program.outputs:
            number(value)
        self.base, self.read, self.layouts = np.array(base, int), np.array(read, int), layouts
        self.offset = np.array([v.offset for v in self.values], int)
        self.constant = np.array([v.base.data is not None for v in self.values], bool)
        self.maker = np.full(len(self.bases), -1)
        self.maker[list(maker)] = list(maker.values())
        self.arity = np.array([len(step.operands) for step in program.steps], int)
        self.first = np.concatenate([[0], np.cumsum(self.arity)])
        self.is_output = np.zeros(len(self.bases), bool)
        self.is_output[[self._base_numbers[id(v.base)] for v in program.outputs]] = True

    def number_of_base(self, base: Value) -> int:
        number = self._base_numbers.setdefault(id(base), len(self.bases))
        if number == len(self.bases):
            self.bases.append(base)
        return number

    def _layout(self, v: Value) -> int:
        key = (v.shape, v.dtype.char, None if v.base.data is not None else v.strides)
        return self._layouts.setdefault(key, len(self._layouts))

    def adds_up(self, step: Step) -> bool:
        """Whether a step adds up values of its shape, in any order."""
        return step.kernel in (SUM, ADD) and all(
            v.shape == step.results[0].shape for v in step.operands
        )


def _mixed(x: np.ndarray) -> np.ndarray:
    """Hashes of numbers (splitmix64)."""
    x = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))  # type: ignore[no-any-return]


def _inverse(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each element the number of its value, and how many have it."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return inverse.reshape(-1), counts


class Schedule:
    """The order of the steps of a graph, in batches.

    Attributes
    ----------
    batches : list of ndarray
        Numbers of steps that are alike and do not need each other; those of a batch need only what
        is in earlier ones.
    tokens : ndarray
        For each operand of each step a number that is the same for operands that are alike.
    """

    def __init__(self, graph: Graph, batchable: Callable[[Step], bool]) -> None:
        self._graph, n = graph, len(graph.steps)
        self._is_sum = np.array([graph.adds_up(step) for step in graph.steps], bool)
        self._reader = np.repeat(np.arange(n), graph.arity)
        self._position = np.arange(len(graph.read)) - graph.first[self._reader]
        self._position[self._is_sum[self._reader]] = 0
        self._source = graph.maker[graph.base[graph.read]]
        groups = self._groups(batchable)
        self._fixed = self._fixed_tokens(groups)
        with np.errstate(over="ignore"):
            colours = self._first_colours(groups)
            before, after = self._needs()
            for left in range(_ROUNDS, -1, -1):
                classes, _ = _inverse(colours)
                components, cyclic = _components(classes, before, after)
                inside = cyclic[components]
                if not left or not inside.any():
                    break
                finer = self._refined(colours)
                colours = np.where(inside, finer, colours)
            self.tokens = self._tokens(colours)
        self.batches = _ordered(classes, components, inside, before, after)

    def _groups(self, batchable: Callable[[Step], bool]) -> np.ndarray:
        """Numbers that are the same for steps of a kernel and layouts; what is never batched is a
        group of its own.
        """
        graph, known = self._graph, {}  # type: ignore[var-annotated]
        layouts, first, read = graph.layouts, graph.first.tolist(), graph.read.tolist()
        found = []
        for i, (step, is_sum) in enumerate(zip(graph.steps, self._is_sum.tolist(), strict=True)):
            key: Hashable
            if not batchable(step):
                key = i
            elif is_sum:
                key = i if len(step.operands) >= MANY else (SUM, step.results[0].shape)
            else:
                key = (step.kernel, *(layouts[v] for v in read[first[i] : first[i + 1]]))
            found.append(known.setdefault(key, len(known)))
        return np.array(found, int)

    def _fixed_tokens(self, groups: np.ndarray) -> np.ndarray:
        """Tokens of operands that are no results of steps, or that many of a group share; zero for
        others.
        """
        graph = self._graph
        read, group = graph.read, groups[self._reader]
        whole = np.bincount(groups)
        key = (group * (self._position.max(initial=0) + 1) + self._position) * len(
            graph.values
        ) + read
        same, counts = _inverse(key)
        popular = (counts[same] >= MANY) | (
            (counts[same] >= 8) & (4 * counts[same] >= whole[group])
        )
        tokens = np.where(self._source < 0, _mixed(graph.base[read] + (1 << 41)), np.uint64(0))
        tokens = np.where(graph.constant[read], np.uint64(1), tokens)
        return np.where(popular, _mixed(read + (1 << 40)), tokens)

    def _first_colours(self, groups: np.ndarray) -> np.ndarray:
        graph = self._graph
        of_sums = self._is_sum[self._reader]
        tokens = np.where(
            self._fixed != 0,
            self._fixed,
            np.where(of_sums, _mixed(groups[self._source]), np.uint64(2)),
        )
        colours = _mixed(groups) + self._of_operands(tokens)
        # Steps that only one large sum reads are alike if it is the same sum.
        reads = np.bincount(graph.base[graph.read], minlength=len(graph.bases))
        once = (
            (reads[graph.base[graph.read]] == 1)
            & ~graph.is_output[graph.base[graph.read]]
            & (self._source >= 0)
        )
        once &= of_sums & (graph.arity[self._reader] >= MANY)
        colours[self._source[once]] += _mixed(self._reader[once] + (1 << 42))
        return colours  # type: ignore[no-any-return]

    def _of_operands(self, tokens: np.ndarray) -> np.ndarray:
        """A number for each step of its operands and their positions; for a sum of the set of
        them.
        """
        mixed = _mixed(tokens + _mixed(self._position))
        return self._totals(self._reader, mixed)

    def _totals(self, owners: np.ndarray, mixed: np.ndarray) -> np.ndarray:
        """For each step the total of a set of numbers."""
        order = np.lexsort((mixed, owners))
        owners, mixed = owners[order], mixed[order]
        fresh = np.ones(len(owners), bool)
        fresh[1:] = (owners[1:] != owners[:-1]) | (mixed[1:] != mixed[:-1])
        sums = np.concatenate(
            [
                np.zeros(1, np.uint64),
                np.cumsum(np.where(fresh, mixed, np.uint64(0)), dtype=np.uint64),
            ]
        )
        ends = np.searchsorted(owners, np.arange(len(self._graph.steps) + 1))
        return sums[ends[1:]] - sums[ends[:-1]]  # type: ignore[no-any-return]

    def _tokens(self, colours: np.ndarray) -> np.ndarray:
        return np.where(self._fixed != 0, self._fixed, colours[self._source])

    def _refined(self, colours: np.ndarray) -> np.ndarray:
        made = self._source >= 0
        # The position among many operands makes no difference.
        place = np.where(self._graph.arity[self._reader] > _FEW, 0, self._position)[made]
        readers = self._totals(
            self._source[made], _mixed(colours[self._reader[made]] ^ _mixed(place))
        )
        refined: np.ndarray = (
            _mixed(colours) + self._of_operands(self._tokens(colours)) + _mixed(readers)
        )
        return refined

    def _needs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of steps of which the second needs the first. Steps that are not pure keep their
        order; guards may change places with guards.
        """
        made = self._source >= 0
        pairs: list[tuple[int, int]] = []
        last, guards = -1, []
        for i, step in enumerate(self._graph.steps):
            if step.kernel.is_guard:
                guards.append(i)
            elif not step.kernel.is_pure:
                pairs += [(j, i) for j in (*guards, last) if j >= 0]
                last, guards = i, []
        extra = np.array(pairs, int).reshape(-1, 2)
        return np.concatenate([self._source[made], extra[:, 0]]), np.concatenate(
            [self._reader[made], extra[:, 1]]
        )


def _components(
    classes: np.ndarray, before: np.ndarray, after: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each step the component of its class, and for each component whether it is a cycle."""
    n = int(classes.max(initial=-1)) + 1
    pairs = np.unique(classes[before] * n + classes[after])
    of_class, count = _strong_components(n, pairs // n, pairs % n)
    cyclic = np.bincount(of_class, minlength=count) > 1
    cyclic[of_class[(pairs // n)[pairs // n == pairs % n]]] = True
    return of_class[classes], cyclic


def _strong_components(n: int, begins: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """The strongly connected component of each node, and how many there are; edges are sorted
    (Tarjan's algorithm).
    """
    bounds, readers = np.searchsorted(begins, np.arange(n + 1)).tolist(), ends.tolist()
    following, last = bounds[:-1], bounds[1:]
    index, low, component = [-1] * n, [0] * n, [-1] * n
    seen = count = 0
    open_nodes: list[int] = []
    for start in range(n):
        path = [start] if index[start] < 0 else []
        while path:
            node = path[-1]
            if index[node] < 0:
                index[node] = low[node] = seen
                seen += 1
                open_nodes.append(node)
            if following[node] < last[node]:
                reader = readers[following[node]]
                following[node] += 1
                if index[reader] < 0:
                    path.append(reader)
                elif component[reader] < 0:
                    low[node] = min(low[node], index[reader])
                continue
            path.pop()
            if path:
                low[path[-1]] = min(low[path[-1]], low[node])
            if low[node] == index[node]:
                while component[node] < 0:
                    component[open_nodes.pop()] = count
                count += 1
    return np.array(component, int), count


def _ordered(
    classes: np.ndarray,
    components: np.ndarray,
    inside: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
) -> list[np.ndarray]:
    """Steps by component, depth within it, and class; the component that begins first comes first
    where there is a choice.
    """
    n = len(classes)
    if not n:
        return []
    depth = [0] * n
    within = (components[before] == components[after]) & inside[before]
    order = np.argsort(after[within], kind="stable")
    for i, j in zip(before[within][order].tolist(), after[within][order].tolist(), strict=True):
        if depth[i] >= depth[j]:
            depth[j] = depth[i] + 1
    rank = _ranks(components, before, after)[components]
    order = np.lexsort((np.arange(n), classes, np.array(depth), rank))
    keys = np.stack([rank, depth, classes])[:, order]
    return np.split(order, np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(0)) + 1)


def _ranks(components: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The places of components in an order in which they can be run."""
    count = int(components.max()) + 1
    pairs = np.unique(components[before] * count + components[after])
    pairs = pairs[pairs // count != pairs % count]
    waits = np.bincount(pairs % count, minlength=count).tolist()
    ends = np.searchsorted(pairs // count, np.arange(count + 1)).tolist()
    readers = (pairs % count).tolist()
    begins = np.full(count, len(components))
    np.minimum.at(begins, components, np.arange(len(components)))
    begin = begins.tolist()
    ready = [(begin[c], c) for c in range(count) if not waits[c]]
    heapify(ready)
    ranks = np.zeros(count, int)
    for rank in range(count):
        _, c = heappop(ready)
        ranks[c] = rank
        for reader in readers[ends[c] : ends[c + 1]]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, (begin[reader], reader))
    return ranks
