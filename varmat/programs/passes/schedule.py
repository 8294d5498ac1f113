"""Which steps of a program can be one: classes of steps that are alike, and an order in which whole
classes can be run.

Steps are coloured by kernel, layouts, and operands that many of their kind share. A class that is
on no cycle of the graph of classes can wait until all its members are ready. Colours on a cycle are
refined a few times, by the colours of operands and readers. A class that is still on a cycle is a
recurrence, and its members at the same depth are run together. All of this takes linear time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from varmat.programs.build.arithmetic import ADD
from varmat.programs.ir.program import Program, Step
from varmat.programs.kernels.reductions import SUM

if TYPE_CHECKING:
    from collections.abc import Hashable

# Readers of a value, and terms of a sum, from which sharing it makes steps alike.
MANY = 64
_ROUNDS, _FEW = 4, 4
# Tokens of constants, and of other operands while their colours are unknown.
_CONSTANT, _ANY = np.uint64(1), np.uint64(2)


def numbered(keys: Iterable[Hashable]) -> np.ndarray:
    """Number keys in the order in which they first occur."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], int)


class Graph:
    """A program in numbers.

    Attributes
    ----------
    steps : list of Step
    values : list of Value
        All that is read.
    bases : list of Value
        Whose memory they lie in; results of steps too.
    number, base_number : dict
        Of a value, and of a base, by its id.
    base, offset, constant, layout : ndarray
        Of each value.
    arity, first : ndarray
        How many operands each step has, and where they begin in `read`.
    read : ndarray
        Numbers of the values that are read, step by step.
    reader, source : ndarray
        For each of them the step that reads it, and the step that makes it, or -1.
    """

    def __init__(self, program: Program) -> None:
        self.steps = steps = program.steps
        read = [v for step in steps for v in step.operands]
        made = {id(v): i for i, step in enumerate(steps) for v in step.results}
        self.values = [*{id(v): v for v in (*read, *program.outputs)}.values()]
        results = (v for step in steps for v in step.results)
        bases = (*program.arguments, *results, *(v.base for v in self.values))
        self.bases = [*{id(v): v for v in bases}.values()]
        self.number = {id(v): i for i, v in enumerate(self.values)}
        self.base_number = {id(v): i for i, v in enumerate(self.bases)}
        self.base = np.array([self.base_number[id(v.base)] for v in self.values], int)
        self.constant = np.array([v.base.is_constant for v in self.values], bool)
        self.offset = np.array([0 if v.base.is_constant else v.offset for v in self.values], int)
        self.layout = numbered(
            (v.shape, v.dtype.char, None if v.base.is_constant else v.strides) for v in self.values
        )
        self.arity = np.array([len(step.operands) for step in steps], int)
        self.first = np.concatenate([[0], np.cumsum(self.arity)])
        self.read = np.array([self.number[id(v)] for v in read], int)
        self.reader = np.repeat(np.arange(len(steps)), self.arity)
        self.source = np.array([made.get(id(v.base), -1) for v in read], int)

    def operands(self, step: int) -> np.ndarray:
        """The numbers of what a step reads."""
        return self.read[self.first[step] : self.first[step + 1]]


def adds_up(step: Step) -> bool:
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


def _hashes_of_sets(count: int, owners: np.ndarray, elements: np.ndarray) -> np.ndarray:
    """A hash of the set of elements of each owner."""
    order = np.lexsort((elements, owners))
    owners, elements = owners[order], elements[order]
    fresh = np.ones(len(owners), bool)
    fresh[1:] = (owners[1:] != owners[:-1]) | (elements[1:] != elements[:-1])
    hashes = np.zeros(count, np.uint64)
    np.add.at(hashes, owners[fresh], elements[fresh])
    return hashes


class _Classes(NamedTuple):
    """Steps by their class, its strongly connected component, and whether that is a cycle."""

    number: np.ndarray
    component: np.ndarray
    is_cyclic: np.ndarray


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

    def __init__(self, graph: Graph, is_batchable: Callable[[Step], bool]) -> None:
        self._graph = graph
        is_sum = np.array([adds_up(step) for step in graph.steps], bool)
        self._position = np.arange(len(graph.read)) - graph.first[graph.reader]
        self._position[is_sum[graph.reader]] = 0
        before, after = self._needs()
        with np.errstate(over="ignore"):
            groups = self._groups(is_batchable, is_sum)
            self._fixed = self._fixed_tokens(groups)
            # Sums are alike if the steps that make their terms are of the same groups.
            of_terms = np.where(is_sum[graph.reader], _mixed(groups[graph.source]), _ANY)
            colours = _mixed(groups) + self._of_operands(self._tokens(of_terms))
            only, sums = self._terms_of_large_sums(is_sum)
            colours[only] += _mixed(sums + (1 << 42))
            classes = _classes(colours, before, after)
            for _ in range(_ROUNDS):
                if classes.is_cyclic.any():
                    colours = np.where(classes.is_cyclic, self._refined(colours), colours)
                    classes = _classes(colours, before, after)
            self.tokens = self._tokens(colours[graph.source])
        self.batches = _batches(classes, before, after)

    def _needs(self) -> np.ndarray:
        """Pairs of steps of which the second needs the first, in the order of the second. Steps
        that are not pure keep their order; guards may change places with guards.
        """
        made = self._graph.source >= 0
        pairs = np.stack([self._graph.source[made], self._graph.reader[made]])
        last: list[int] = []
        guards: list[int] = []
        extra: list[tuple[int, int]] = []
        for i, step in enumerate(self._graph.steps):
            if step.kernel.is_guard:
                guards.append(i)
            elif not step.kernel.is_pure:
                extra += [(j, i) for j in (*last, *guards)]
                last, guards = [i], []
        pairs = np.concatenate([pairs, np.array(extra, int).reshape(-1, 2).T], axis=1)
        return pairs[:, np.argsort(pairs[1], kind="stable")]

    def _groups(self, is_batchable: Callable[[Step], bool], is_sum: np.ndarray) -> np.ndarray:
        """Numbers that are the same for steps of a kernel and layouts; a step that is never
        batched, and a sum of many terms, is a group of its own.
        """
        graph = self._graph
        layouts, first = graph.layout[graph.read].tolist(), graph.first.tolist()

        def key(i: int, step: Step) -> Hashable:
            if not is_batchable(step) or (is_sum[i] and len(step.operands) >= MANY):
                return i
            if is_sum[i]:
                return SUM, step.results[0].shape
            return step.kernel, *layouts[first[i] : first[i + 1]]

        return numbered(key(i, step) for i, step in enumerate(graph.steps))

    def _fixed_tokens(self, groups: np.ndarray) -> np.ndarray:
        """Tokens of operands that are no results of steps, or that many of a group share; zero for
        others.
        """
        graph = self._graph
        group = groups[graph.reader]
        places = group * (self._position.max(initial=0) + 1) + self._position
        same = numbered((places * len(graph.values) + graph.read).tolist())
        shared, whole = np.bincount(same)[same], np.bincount(groups)[group]
        is_popular = (shared >= MANY) | ((shared >= 8) & (4 * shared >= whole))
        given = _mixed(graph.base[graph.read] + (1 << 41))
        tokens = np.where(graph.source < 0, given, np.uint64(0))
        tokens = np.where(graph.constant[graph.read], _CONSTANT, tokens)
        return np.where(is_popular, _mixed(graph.read + (1 << 40)), tokens)

    def _tokens(self, of_sources: np.ndarray | np.uint64) -> np.ndarray:
        """The tokens of operands, where those of the steps that make them are given."""
        return np.where(self._fixed != 0, self._fixed, of_sources)

    def _terms_of_large_sums(self, is_sum: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Steps that only one large sum reads, and these sums: such steps are alike if the sum is
        the same.
        """
        graph = self._graph
        large = is_sum & (graph.arity >= MANY)
        reads = np.bincount(graph.source + 1)[graph.source + 1]
        terms = large[graph.reader] & (graph.source >= 0) & (reads == 1)
        return graph.source[terms], graph.reader[terms]

    def _of_operands(self, tokens: np.ndarray) -> np.ndarray:
        """A number for each step of its operands and their positions; for a sum of the set of
        them.
        """
        graph = self._graph
        placed = _mixed(tokens + _mixed(self._position))
        return _hashes_of_sets(len(graph.steps), graph.reader, placed)

    def _refined(self, colours: np.ndarray) -> np.ndarray:
        graph = self._graph
        made = graph.source >= 0
        # The position among many operands makes no difference.
        place = np.where(graph.arity[graph.reader] > _FEW, 0, self._position)
        seen = _mixed(colours[graph.reader] ^ _mixed(place))[made]
        readers = _hashes_of_sets(len(graph.steps), graph.source[made], seen)
        operands = self._of_operands(self._tokens(colours[graph.source]))
        return _mixed(colours) + operands + _mixed(readers)  # type: ignore[no-any-return]


def _classes(colours: np.ndarray, before: np.ndarray, after: np.ndarray) -> _Classes:
    classes = numbered(colours.tolist())
    needs: list[dict[int, None]] = [{} for _ in range(int(classes.max(initial=-1)) + 1)]
    for i, j in zip(classes[before].tolist(), classes[after].tolist(), strict=True):
        needs[j][i] = None
    of_class = np.array(strong_components(needs), int)
    cyclic = np.bincount(of_class, minlength=1) > 1
    cyclic[of_class[[i for i, each in enumerate(needs) if i in each]]] = True
    components = of_class[classes]
    return _Classes(classes, components, cyclic[components])


def strong_components(needs: Sequence[Iterable[int]]) -> list[int]:
    """The strongly connected component of each node; components are numbered so that each needs
    only earlier ones (Gabow's algorithm).
    """
    index, component = [-1] * len(needs), [-1] * len(needs)
    remaining = [iter(each) for each in needs]
    seen = count = 0
    open_nodes: list[int] = []
    # The nodes that begin a component, as far as is known.
    begins: list[int] = []
    for start in range(len(needs)):
        path = [start] if index[start] < 0 else []
        while path:
            node = path[-1]
            if index[node] < 0:
                index[node], seen = seen, seen + 1
                open_nodes.append(node)
                begins.append(node)
            for other in remaining[node]:
                if index[other] < 0:
                    path.append(other)
                    break
                while component[other] < 0 and index[begins[-1]] > index[other]:
                    begins.pop()
            else:
                path.pop()
                if begins[-1] == node:
                    begins.pop()
                    while component[node] < 0:
                        component[open_nodes.pop()] = count
                    count += 1
    return component


def _batches(classes: _Classes, before: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
    """Steps by component, depth within a cycle, and class."""
    inside = classes.is_cyclic[before] & (classes.component[before] == classes.component[after])
    depth = [0] * len(classes.number)
    for i, j in zip(before[inside].tolist(), after[inside].tolist(), strict=True):
        depth[j] = max(depth[j], depth[i] + 1)
    keys = np.stack([classes.number, depth, classes.component])
    order = np.lexsort(keys)
    new = (np.diff(keys[:, order]) != 0).any(0)
    return np.split(order, np.flatnonzero(new) + 1) if len(order) else []
