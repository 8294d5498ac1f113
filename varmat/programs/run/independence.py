"""Which loops over statements have iterations that are independent of each other.

The iterations of such a loop may run in any order, or side by side. They read and write separate
cells and arrays, add to sums, and have separate elements in the arrays that they share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from varmat.programs.ir import statements as s
from varmat.programs.ir.program import Program
from varmat.programs.kernels.procedure import Line, Procedure

Access = s.Load | s.Store | s.AddAt


class Independent(NamedTuple):
    """The variables of a loop whose iterations are independent.

    Attributes
    ----------
    trips : int
    arrays : set of Storage
        Arrays that every iteration has for itself.
    stacks : set of Stack
    sums : list of Cell
        The cells that iterations add to.
    own, common : set of Cell
        The cells of an iteration, and those among them that are the same in all iterations.
    mentions : Counter
        Counts of the variables in the body.
    """

    trips: int
    arrays: set[s.Storage]
    stacks: set[s.Stack]
    sums: list[s.Cell]
    own: set[s.Cell]
    common: set[s.Cell]
    mentions: Counter[Any]


def independent_loops(
    kernel: Procedure, least: int, accepts: Callable[[s.For, Independent], bool]
) -> dict[s.For, Independent]:
    """Find the outermost loops of at least `least` iterations, all independent, that a function
    accepts.
    """
    mentions = _mentions(kernel.body)
    mentions.update(dict.fromkeys((*kernel.inputs, *kernel.outputs), 1))
    decisions: dict[s.For, Independent | None] = {}

    def visit(statements: Sequence[s.Statement]) -> Iterator[tuple[s.For, Independent]]:
        for statement in statements:
            if isinstance(statement, s.For) and statement not in decisions:
                passes = _known(statement, mentions, least)
                decisions[statement] = passes if passes and accepts(statement, passes) else None
            output = decisions[statement] if isinstance(statement, s.For) else None
            if isinstance(statement, s.For) and output is not None:
                yield statement, output
                continue
            for body in s.bodies(statement):
                yield from visit(body)

    while True:
        result = dict(visit(kernel.body))
        # Loops that have stacks in common with other statements, or have other iterations.
        alone = {
            loop
            for loop, its in result.items()
            for stack in its.stacks
            if mentions[stack]
            != sum(
                x.mentions[stack]
                for item, x in result.items()
                if (item.lower, item.upper) == (loop.lower, loop.upper)
            )
        }
        if not alone:
            return result
        decisions.update(dict.fromkeys(alone))


def _mentions(statements: Sequence[s.Statement]) -> Counter[Any]:
    """Count the mentions of variables, and the actions on each stack. Statements about all of a
    stack hold for vectors too.
    """
    result = Counter(s.variables(statements))
    for statement in s.walk(statements):
        if isinstance(statement, (s.Mark, s.Release)):
            result[statement.stack] -= 1
    return result


class _DependentError(Exception):
    """The iterations of a loop depend on each other."""


def _require(holds: bool) -> None:
    if not holds:
        raise _DependentError


def _known(loop: s.For, mentions: Counter[Any], least: int) -> Independent | None:
    """Analyse a loop; return None unless its iterations are independent."""
    if isinstance(loop.lower, s.Cell) or isinstance(loop.upper, s.Cell):
        return None
    trips = int(loop.upper) - int(loop.lower) + 1
    if trips < least:
        return None
    try:
        passes = _Passes(loop)
        here = _mentions(loop.body)
        # A variable that is declared in an iteration is not read outside of it.
        local = {x for x in here if here[x] == mentions[x]} | s.declared(loop.body)
        _require(local.issuperset(passes.private))
        _require(local.issuperset(x for x in passes.written if not x.is_temporary))
    except _DependentError:
        return None
    stacks = {x for x in here if isinstance(x, s.Stack)}
    return Independent(
        trips, passes.private, stacks, passes.sums, passes.own, passes.common(), here
    )


class _Passes:
    """The iterations of a loop, which are independent of each other."""

    def __init__(self, loop: s.For) -> None:
        self.loop, self._inside = loop, [*s.walk(loop.body)]
        self.written = {x for item in self._inside for x in _written(item)}
        self.own = self.written | {loop.index}
        lines = [x for x in self._inside if isinstance(x, Line)]
        added = dict.fromkeys(x for line in lines for x in line.sums)
        self.sums = [x for x in added if x not in self.own]
        _require(not any(x.is_integer for x in self.sums))
        # The arrays of an iteration, and the accesses of others.
        self.private = set[s.Storage]()
        self._shared: dict[s.Storage, list[Access]] = {}
        self._undone = {x.array for x in self._inside if isinstance(x, s.Undo)}
        self._block(loop.body, {loop.index})
        _require(self._undone <= self.private | self._shared.keys())
        for array, accesses in self._shared.items():
            _require(array not in self.private and 0 not in array.shape)
            stored = any(isinstance(x, s.Store) for x in accesses)
            parts = self._parts(accesses) if stored or array not in self._undone else [accesses]
            _require(all(not self._is_changed(x) or self._has_elements(x) for x in parts))

    def _block(self, statements: Sequence[s.Statement], assigned: set[s.Variable]) -> None:
        """Check that everything that is read has been assigned to in the iteration, and find the
        arrays that belong to it.
        """
        for statement in statements:
            for x in _read(statement):
                _require(x not in self.own or x.is_temporary or x in assigned)
                _require(x not in self.sums)
            if isinstance(statement, Line):
                _require(all(x in assigned or x not in self.own for x in statement.sums))
            elif isinstance(statement, (s.Load, s.Store, s.AddAt)):
                if statement.array in assigned:
                    self.private.add(statement.array)
                else:
                    self._shared.setdefault(statement.array, []).append(statement)
            elif isinstance(statement, s.Fill):
                _require(not isinstance(statement.value, s.Storage) or statement.value in assigned)
                self.private.add(statement.array)
                assigned.add(statement.array)
            elif isinstance(statement, s.Declare):
                if isinstance(statement.variable, s.Storage):
                    self.private.add(statement.variable)
                assigned.add(statement.variable)
            elif isinstance(statement, s.If):
                sides = {*assigned}, {*assigned}
                for body, side in zip((statement.yes, statement.no), sides, strict=True):
                    self._block(body, side)
                assigned |= sides[0] & sides[1]
            elif isinstance(statement, (s.For, s.While)):
                if isinstance(statement, s.While):
                    self._block(statement.condition, assigned)
                self._block(statement.body, assigned | {*_written(statement)})
            assigned |= {*_written(statement)}

    def _parts(self, accesses: Sequence[Access]) -> list[list[Access]]:
        """Split accesses that have no elements in common: along some axis their indices have other
        constants.
        """
        for axis in range(len(accesses[0].array.shape)):
            indices = [s.Affine.of(x.indices[axis]) for x in accesses]
            terms = {i.terms for i in indices}
            if len(terms) == 1 and self.own.isdisjoint(indices[0].cells):
                parts: dict[int, list[Access]] = {}
                for i, x in zip(indices, accesses, strict=True):
                    parts.setdefault(i.constant, []).append(x)
                if len(parts) > 1:
                    return [*parts.values()]
        return [[*accesses]]

    def _is_changed(self, accesses: Sequence[Access]) -> bool:
        """Return whether a shared array is neither only read nor only added to."""
        kinds = {type(x) for x in accesses}
        return len(kinds) > 1 or s.Store in kinds or accesses[0].array in self._undone

    def _has_elements(self, accesses: Sequence[Access]) -> bool:
        """Return whether each iteration has separate elements."""
        first, *others = ([*map(s.Affine.of, x.indices)] for x in accesses)
        return any(
            i.cells == [self.loop.index] and all(x[axis] == i for x in others)
            for axis, i in enumerate(first)
        )

    def common(self) -> set[s.Cell]:
        """Return the cells that are the same in all iterations."""
        levels = {x for item in self._inside for x in _levels(item)}
        times = Counter(x for item in self._inside for x in _written(item))
        common, before = {*self.written}, -1
        depends = {x: dependencies(x.program) for x in self._inside if isinstance(x, Line)}

        def is_common(x: s.Number) -> bool:
            return not isinstance(x, s.Cell) or x in common or x not in self.own

        def visit(statements: Sequence[s.Statement], is_apart: bool) -> None:
            for statement in statements:
                result = [*_written(statement)]
                differ: list[s.Cell] = []
                inner = is_apart or isinstance(statement, s.While)
                if isinstance(statement, Line):
                    inputs = [is_common(x) for x in statement.inputs]
                    same = (all(inputs[i] for i in which) for which in depends[statement])
                    differ = [x for x, holds in zip(result, same, strict=False) if not holds]
                    differ += statement.sums
                elif isinstance(statement, s.Load):
                    shared = self._shared.get(statement.array)
                    is_same = shared is not None and not self._is_changed(shared)
                    differ = (
                        result if not is_same or not all(map(is_common, _read(statement))) else []
                    )
                elif isinstance(statement, s.For):
                    differ = [] if is_common(statement.lower) else result
                    inner |= not (is_common(statement.lower) and is_common(statement.upper))
                elif isinstance(statement, s.If):
                    inner |= not is_common(statement.holds)
                elif isinstance(statement, (s.Pop, s.Recall)):
                    differ = result
                if is_apart and not isinstance(statement, s.For):
                    differ += [x for x in result if times[x] > 1 or not x.is_temporary]
                common.difference_update(x for x in differ if x not in levels)
                for body in s.bodies(statement):
                    visit(body, inner)

        while before != len(common):
            before = len(common)
            visit(self.loop.body, False)
        return common


def _written(x: s.Statement) -> Sequence[s.Cell]:
    """Return the cells to which a statement assigns."""
    if isinstance(x, Line):
        return x.outputs
    if isinstance(x, s.For):
        return [x.index]
    if isinstance(x, s.Declare):
        return [x.variable] if isinstance(x.variable, s.Cell) else []
    if isinstance(x, (s.Pop, s.Recall)):
        return x.cells
    return [x.out] if isinstance(x, (s.Load, s.Mark)) else []


def _read(x: s.Statement) -> Iterator[s.Cell]:
    """Yield the cells that a statement reads before it runs its bodies."""
    inputs: list[Any] = []
    if isinstance(x, Line):
        inputs = x.inputs
    elif isinstance(x, (s.Load, s.Store, s.AddAt)):
        inputs = [cell for i in x.indices for cell in s.Affine.of(i).cells]
        inputs += [] if isinstance(x, s.Load) else [x.value]
    elif isinstance(x, s.For):
        inputs = [x.lower, x.upper]
    elif isinstance(x, s.If):
        inputs = [x.holds]
    elif isinstance(x, s.Push):
        inputs = [*x.cells]
    yield from (item for item in inputs if isinstance(item, s.Cell))


def _levels(x: s.Statement) -> list[s.Cell]:
    """Return the cells that say how much is on a stack."""
    if isinstance(x, s.Mark):
        return [x.out]
    if isinstance(x, s.Recall):
        return [x.cursor]
    return [x.mark] if isinstance(x, (s.Release, s.Undo)) and x.mark is not None else []


def dependencies(program: Program) -> list[set[int]]:
    """Return the arguments on which each output depends, by their numbers."""
    depends_on: dict[int, set[int]] = {id(v): {i} for i, v in enumerate(program.arguments)}
    for step in program.steps:
        depends = set[int]().union(*(depends_on.get(id(v.base), set()) for v in step.operands))
        depends_on |= {id(v): depends for v in step.results}
    return [depends_on.get(id(v.base), set()) for v in program.outputs]
